"""Variables with many hidden parents in a network with tables: their own terms, in the place of sums over states."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import sbnet as sb
from sbnet._types import Stop
from sbnet.inference.solvers import tabular
from strategies import INTERPRETED, seeds, state_networks, states_of
from test_states_bounds import magnitude

PAPER = sb.MeanField(log_term="xi", tol=1e-10)


@pytest.fixture
def narrow(monkeypatch):
    """Every family without a table counts as one with many parents."""
    monkeypatch.setattr(tabular, "_LARGEST", 1)


def ward(n, gate="sigmoid", rooted="table", seed=0):
    """A table, sigmoid causes, and two findings of all of them; `rooted` says what the first cause is made of."""
    rng = np.random.default_rng(seed)
    states = {"season": ["dry", "wet", "cold"]}
    names = [f"c{k}" for k in range(n)]
    noisy = gate == "noisy-or"
    edges = [("season", name, rng.normal(0, 1, (1, 2))) for name in names]
    for finding in ("f", "g"):
        for name in names:
            edges.append((name, finding, rng.uniform(0.02, 0.4) if noisy else rng.normal(0, 0.5)))
        edges.append(("season", finding, rng.uniform(0.1, 0.5, (1, 2))))
    bias = dict.fromkeys(names, -1.0) | dict.fromkeys(("f", "g"), 0.05 if noisy else -1.0)
    p = np.array([0.5, 0.3, 0.2])
    if rooted == "table":
        return sb.from_edges(edges, bias=bias, gate=dict.fromkeys("fg", gate), states=states, tables={"season": p})
    bias["season"] = [np.log((1 - p[0]) / p[0]), np.log(p[2] / p[1])]  # sequential logits of the same numbers
    return sb.from_edges(edges, bias=bias, gate=dict.fromkeys("fg", gate), states=states)


@pytest.mark.parametrize("gate", ["sigmoid", "noisy-or"])
def test_a_table_beside_wide_families_changes_nothing(gate):
    """The same network with the table as logits is solved by the kernels."""
    for evidence in ({"f": 1}, {"f": 1, "g": 0, "c3": 1}, {"f": 0, "season": (0.2, 1.0, 0.5)}):
        with_table, plain = (ward(30, gate, rooted) for rooted in ("table", "logits"))
        mine, engine = (sb.infer(network, evidence, solver=PAPER) for network in (with_table, plain))
        assert mine.bound == pytest.approx(engine.bound, abs=1e-6)
        for name in ("c0", "c9", "season", "g"):
            assert mine[name] == pytest.approx(engine[name], abs=1e-4)


@pytest.mark.small
@settings(max_examples=10 if INTERPRETED else 60, deadline=None)
@given(state_networks(max_units=4), st.data())
def test_no_bound_with_wide_families_is_above_ln_p(network, data):
    assume(network.tables)
    row = data.draw(states_of(network))
    truth = sb.log_likelihood(network, row)
    assume(truth > -np.inf)
    kept, tabular._LARGEST = tabular._LARGEST, 1
    try:
        found = sb.infer(network, row, solver=sb.MeanField(max_sweeps=30, tol=1e-8))
    finally:
        tabular._LARGEST = kept
    assert found.bound <= truth + 1e-13 * magnitude(network)
    assert np.all(np.diff(found.trace) >= 0.0)
    assert np.all((found.means >= 0.0) & (found.means <= 1.0))


@settings(max_examples=20, deadline=None)
@given(seeds)
def test_no_sweep_lowers_the_bound_before_it_is_evened(seed):  # footnote 4
    rng = np.random.default_rng(seed)
    network = ward(4, rng.choice(["sigmoid", "noisy-or"]), seed=seed)
    kept, tabular._LARGEST = tabular._LARGEST, 1
    try:
        factors, _ = tabular._factors(network, np.array([-1, -1, -1, -1, -1, 1, 0], np.int8), 1e5)
        q = {v: rng.dirichlet(np.ones(network.n_states[v])) for v in range(5)}
        steps, _, _ = tabular._ascend(factors, q, Stop(0.0, 6))
    finally:
        tabular._LARGEST = kept
    assert np.all(np.diff(steps) >= -1e-12)


def test_the_gradient_of_wide_families_is_that_of_finite_differences(narrow):
    for gate in ("sigmoid", "noisy-or"):
        network, row = ward(3, gate), np.array([-1, -1, 1, -1, 1, 0], np.int8)
        solver = sb.MeanField(tol=1e-13, max_sweeps=5000)
        found, size = sb.gradient(network, row[None], solver=solver), 1e-5
        for what in ("weight", "bias"):
            values, gradient = getattr(network, what), getattr(found, what)
            for k in np.flatnonzero(values):
                ends = [
                    sb.infer(
                        network.with_parameters(**{what: np.where(np.arange(len(values)) == k, values + step, values)}),
                        row,
                        solver=solver,
                        start=found.means[0],
                    ).bound
                    for step in (size, -size)
                ]
                assert (ends[0] - ends[1]) / (2 * size) == pytest.approx(gradient[k], rel=1e-4, abs=1e-4)


def test_barren_variables_with_many_parents_are_predicted():
    network = ward(30)
    found = sb.infer(network, {"c0": 1})
    rng = np.random.default_rng(0)
    drawn = sb.sample(network, 20_000, rng=rng, do={"season": "dry"})
    alone = sb.infer(network, {"c0": 1, "season": "dry"})
    assert 0.0 < found["f"] < 1.0
    assert alone["f"] == pytest.approx(drawn[drawn[:, network.index("c0")] == 1, network.index("f")].mean(), abs=0.02)


def test_a_network_with_tables_and_wide_families_learns():
    network = ward(20)
    rows = sb.sample(network, 30, rng=0).astype(np.int8)
    rows[:, 1:21] = -1
    result = sb.fit(network, rows, epochs=2, rng=0, progress=False)
    assert np.isfinite(result.network.weight).all()
