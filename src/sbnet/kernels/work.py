"""The state of one problem while it is solved, and how it is laid out."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sbnet._types import FloatArray, IndexArray, PlaceArray, Problem, Settings
from sbnet.kernels._compile import bare, inner
from sbnet.kernels.terms import MAX_NODES, OMEGA, powers, trapezoid_nodes, trapezoid_weights
from sbnet.kernels.tiles import BLOCK, LANES, TILE, set_weight

XI, EXACT, QUADRATIC, JENSEN, ENUMERATED = 0, 1, 2, 3, 4
MAX_WAVES = 40_000_000  # complex numbers, 640 MB: in a network with more, some terms stay the paper's
NEAR_ZERO = 1e-4  # squared size of a factor too small to divide by: multiply the others anew


class Work(NamedTuple):
    """The state of one problem while it is solved: arrays by factor, by tile, and by child."""

    kind: IndexArray  # by factor: which logarithm term
    place: PlaceArray  # by factor: its lane in `blocks`
    below: FloatArray  # by factor: the sum of its negative weights
    above: FloatArray  # by factor: the sum of its positive weights
    second: FloatArray  # by factor: <z^2>, for the quadratic and the exact term
    c: FloatArray  # by factor: parameter of the quadratic term
    blocks: FloatArray  # the numbers of all factors; see the module `tiles`
    tiles: FloatArray  # the edges into factors that have a xi
    tile_block: IndexArray
    tile_ptr: IndexArray  # by hidden unit: its tiles
    child_place: PlaceArray  # by child: its lane in `tiles`, if it has one
    active: IndexArray  # by block: does it take part in the pass?
    others: IndexArray  # by hidden unit: how many of its children have no xi
    near: FloatArray  # scratch: means of the parents of one factor
    table: FloatArray  # ln(1 + e^z) by state, for enumerated factors
    table_ptr: IndexArray
    scratch: FloatArray


class Waves(NamedTuple):
    """Characteristic functions of z, for the factors whose logarithm term is the exact one."""

    ptr: IndexArray  # by factor: its frequencies
    weight: FloatArray
    constant: FloatArray
    step: FloatArray
    re: FloatArray
    im: FloatArray
    edge_ptr: IndexArray  # by slot: e^(i w J) at the frequencies of its factor
    edge_re: FloatArray
    edge_im: FloatArray
    less_ptr: IndexArray  # scratch, by child of one unit: the functions without that unit
    less_re: FloatArray
    less_im: FloatArray


@inner
def prepare(problem: Problem, settings: Settings) -> Work:
    """Everything about a problem that does not depend on the values of the evidence."""
    n_factors, n_hidden, n_slots = len(problem.factor), len(problem.hidden), len(problem.weight)
    kind = np.empty(n_factors, np.int64)
    place = np.empty(n_factors, np.uint64)
    below, above = np.zeros(n_factors), np.zeros(n_factors)
    table_ptr = np.zeros(n_factors + 1, np.int64)
    widest = 0
    lanes = np.int64(LANES)
    for f in range(n_factors):
        place[f] = np.uint64(f // lanes) * BLOCK + np.uint64(f % lanes)
        for s in range(problem.ptr[f], problem.ptr[f + 1]):
            below[f] += min(problem.weight[s], 0.0)
            above[f] += max(problem.weight[s], 0.0)
        k = problem.ptr[f + 1] - problem.ptr[f]
        widest = max(widest, k)
        kind[f] = XI if settings.log_term == EXACT else settings.log_term
        table_ptr[f + 1] = table_ptr[f]
        if k <= settings.enumerate_up_to:
            kind[f] = ENUMERATED
            table_ptr[f + 1] += 1 << k
    child_place = np.zeros(n_slots, np.uint64)
    others = np.zeros(n_hidden, np.int64)
    tile_ptr = np.zeros(n_hidden + 1, np.int64)
    tile_block = np.empty(n_slots, np.int64)  # at most one tile for each edge
    n_tiles = 0
    for j in range(n_hidden):
        last = -1
        for c in range(problem.child_ptr[j], problem.child_ptr[j + 1]):
            f = problem.child[c]
            if kind[f] == XI or kind[f] == JENSEN:
                if f // lanes != last:
                    last = f // lanes
                    tile_block[n_tiles] = last
                    n_tiles += 1
                child_place[c] = np.uint64(n_tiles - 1) * TILE + np.uint64(f % lanes)
            else:
                others[j] += 1
        tile_ptr[j + 1] = n_tiles
    tiles = np.zeros(n_tiles * np.int64(TILE))
    for t in range(n_tiles * lanes):  # edges that do not exist: weight zero
        set_weight(tiles, np.uint64(t // lanes) * TILE + np.uint64(t % lanes), 0.0)
    for c in range(n_slots):
        f = problem.child[c]
        if kind[f] == XI or kind[f] == JENSEN:
            set_weight(tiles, child_place[c], problem.weight[problem.child_slot[c]])
    active = np.zeros((n_factors + lanes - 1) // lanes, np.int64)
    blocks = np.zeros(len(active) * np.int64(BLOCK))
    return Work(
        kind, place, below, above, np.zeros(n_factors), np.zeros(n_factors), blocks, tiles, tile_block[:n_tiles].copy(),
        tile_ptr, child_place, active, others, np.zeros(widest), np.zeros(table_ptr[n_factors]), table_ptr,
        np.zeros(1 << min(widest, settings.enumerate_up_to)),
    )  # fmt: skip


@inner
def no_waves() -> Waves:
    none, zero = np.empty(0), np.zeros(1, np.int64)
    return Waves(zero, none, none, none, none, none, zero, none, none, zero, none, none)


@bare
def _nodes(problem: Problem, f: int, bias: FloatArray, mu: FloatArray) -> int:
    """How many frequencies the exact term of factor f needs at the present means; none if that is too many."""
    low = high = mean = bias[problem.factor[f]]
    variance = largest = 0.0
    for s in range(problem.ptr[f], problem.ptr[f + 1]):
        j, m = problem.weight[s], mu[problem.parent[s]]
        low += min(j, 0.0)
        high += max(j, 0.0)
        largest = max(largest, abs(j))
        mean += j * m
        variance += j * j * m * (1.0 - m)
    nodes = trapezoid_nodes(low, high, mean, variance, largest)
    return nodes if nodes <= MAX_NODES else 0


@bare
def stale(problem: Problem, work: Work, waves: Waves, bias: FloatArray, mu: FloatArray) -> bool:
    """Would new frequencies help: has z moved beyond those of an exact term, or is there a term still to replace?"""
    for f in range(len(problem.factor)):
        if (work.kind[f] == XI or work.kind[f] == QUADRATIC) and _nodes(problem, f, bias, mu) > 0:
            return True
        if work.kind[f] == EXACT and _nodes(problem, f, bias, mu) > waves.ptr[f + 1] - waves.ptr[f]:
            return True
    return False


@inner
def make_waves(problem: Problem, work: Work, old: Waves, bias: FloatArray, mu: FloatArray) -> Waves:
    """Frequencies for every factor that has, or may have, the exact term; no fewer than it had, or it would loosen."""
    n_factors = len(problem.factor)
    ptr = np.zeros(n_factors + 1, np.int64)
    edge_ptr = np.zeros(len(problem.weight) + 1, np.int64)
    most = 1
    for f in range(n_factors):
        nodes = 0 if work.kind[f] == ENUMERATED else _nodes(problem, f, bias, mu)
        if work.kind[f] == EXACT:
            nodes = max(nodes, old.ptr[f + 1] - old.ptr[f])
        if edge_ptr[problem.ptr[f]] + nodes * (problem.ptr[f + 1] - problem.ptr[f]) > MAX_WAVES:
            nodes = 0
        most = max(most, nodes)
        ptr[f + 1] = ptr[f] + nodes
        for s in range(problem.ptr[f], problem.ptr[f + 1]):
            edge_ptr[s + 1] = edge_ptr[s] + nodes
    total, edges = ptr[n_factors], edge_ptr[len(problem.weight)]
    children = 1
    for j in range(len(problem.hidden)):
        children = max(children, problem.child_ptr[j + 1] - problem.child_ptr[j])
    less_ptr = most * np.arange(children)
    less = np.empty((2, most * children))
    waves = Waves(
        ptr, np.empty(total), np.empty(n_factors), np.empty(n_factors), np.empty(total), np.empty(total),
        edge_ptr, np.empty(edges), np.empty(edges), less_ptr, less[0], less[1],
    )  # fmt: skip
    for f in range(n_factors):
        nodes = ptr[f + 1] - ptr[f]
        if nodes:
            waves.step[f] = OMEGA / nodes
            waves.constant[f] = trapezoid_weights(nodes, waves.weight[ptr[f] : ptr[f + 1]])
            for s in range(problem.ptr[f], problem.ptr[f + 1]):
                e = slice(edge_ptr[s], edge_ptr[s + 1])
                powers(waves.step[f] * problem.weight[s], waves.edge_re[e], waves.edge_im[e])
    return waves
