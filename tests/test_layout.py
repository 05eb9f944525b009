"""Blocks of lanes and tiles of edges, against the factors and slots that they stand for."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sbnet as sb
from sbnet.bounds.layout import lay_out
from sbnet.kernels.kinds import N_KINDS, TILED
from sbnet.kernels.mean_field import set_weights
from sbnet.kernels.structs import LANES
from sbnet.questions.reduction import reduce
from strategies import state_networks

pytestmark = pytest.mark.small


@st.composite
def problems(draw):
    """A reduced problem whose factors are of any kinds, and the weights of its network."""
    network = draw(state_networks(max_units=9, tables=False))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    row = np.where(rng.random(len(network.names)) < draw(st.sampled_from([0.2, 0.5])), 0, -1)
    row[-1] = 0
    problem = reduce(network.model, row.astype(np.int8))
    few = rng.integers(1, N_KINDS + 1)  # kinds side by side are what fills blocks
    problem.factors["kind"] = rng.integers(0, few, len(problem.factors))
    return problem, network.model.weight


def _chain(tiles, first):
    while first >= 0:
        yield int(first)
        first = tiles[first]["after"]


@given(problems())
def test_every_edge_stands_once_in_the_lane_of_its_factor(case):
    problem, weight = case
    blocks, tiles = lay_out(problem)
    set_weights(problem, weight, blocks, tiles)
    factors, slots, hidden = problem.factors, problem.slots, problem.hidden
    assert all(blocks["factor"][f["block"], f["lane"]] == k for k, f in enumerate(factors))
    assert (blocks["factor"] >= 0).sum() == len(factors)
    for b, block in enumerate(blocks):
        mine = factors[block["factor"][: block["width"]]]
        assert np.all(block["factor"][block["width"] :] == -1)
        assert np.all(mine["kind"] == block["kind"])
        assert block["asked"] == max((i + 1 for i in range(block["width"]) if mine["hidden"][i] >= 0), default=0)
        if TILED[block["kind"]] == 2:  # the same parents
            assert len({tuple(slots["parent"][f["slot"] : f["slot_end"]]) for f in mine}) == 1
        here = [k for k in range(len(tiles) - 1) if tiles["block"][k] == b]
        assert list(_chain(tiles, block["pair"])) == [k for k in here if tiles["states"][k] == 2]
        assert list(_chain(tiles, block["group"])) == [
            k for k in here if tiles["states"][k] > 2 and not tiles["state"][k]
        ]
    found = {}
    for k, tile in enumerate(tiles[:-1]):
        parent, kind = hidden[tile["parent"]], blocks["kind"][tile["block"]]
        assert parent["tile"][kind] <= k < parent["tile_end"][kind]
        for i in np.flatnonzero(tile["slot"] >= 0):
            s = tile["slot"][i]
            factor = factors[blocks["factor"][tile["block"], i]]
            assert factor["slot"] <= s < factor["slot_end"]
            assert (slots["parent"][s], slots["column"][s]) == (tile["parent"], tile["column"] + tile["state"] - 1)
            assert tile["weight"][i] == slots["weight"][s] == weight[slots["place"][s]]
            assert found.setdefault(s, k) == k
        assert np.all(tile["weight"][tile["slot"] < 0] == 0.0)
    tiled = [f for f in factors if TILED[f["kind"]]]
    assert sorted(found) == [s for f in tiled for s in range(f["slot"], f["slot_end"])]


@given(problems())
def test_reaches_are_those_of_the_parents_states(case):
    problem, weight = case
    blocks, tiles = lay_out(problem)
    set_weights(problem, weight, blocks, tiles)
    for factor in problem.factors:
        slots = problem.slots[factor["slot"] : factor["slot_end"]]
        moves = [np.append(0.0, slots["weight"][slots["parent"] == u]) for u in dict.fromkeys(slots["parent"])]
        block, i = blocks[factor["block"]], factor["lane"]
        assert block["below"][i] == pytest.approx(sum(move.min() for move in moves))
        assert block["above"][i] == pytest.approx(sum(move.max() for move in moves))
        assert block["largest"][i] == max(np.ptp(move) for move in moves)
        assert block["squares"][i] == pytest.approx(sum(np.ptp(move) ** 2 for move in moves))


@pytest.mark.parametrize(("apart", "n_blocks"), [(1, 3), (4, 3), (9, 6)])
def test_factors_with_other_parents_share_blocks_unless_many_in_a_row_have_the_same(apart, n_blocks):
    n = 3 * LANES
    parents = [f"a{k // apart % 5}" for k in range(n)]
    names = [*(f"a{k}" for k in range(5)), *(f"x{k}" for k in range(n))]
    network = sb.from_edges({(u, f"x{k}"): 1.0 for k, u in enumerate(parents)}, names=names)
    row = np.array([-1] * 5 + [0] * n, np.int8)
    row[5], row[-1] = -1, -1  # barren
    problem = reduce(network.model, row)
    assert len(lay_out(problem)[0]) == n_blocks
