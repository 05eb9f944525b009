"""The paper's algorithm step by step: each is eq. (24) or a better xi, none lowers the bound, and it ends right."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oracle
import sbnet as sb
from strategies import INTERPRETED, questions, states_of

PAPER = sb.MeanField(log_term="xi", enumerate_up_to=0)


@pytest.mark.small
@settings(max_examples=5 if INTERPRETED else 40)
@given(questions(max_units=6))
def test_no_step_lowers_the_bound_and_none_exceeds_the_truth(case):  # footnote 4 and eq. (11)
    network, evidence, do, arrays = case
    done = list(sb.steps(network, evidence, do=do, max_sweeps=4))
    bounds = np.array([step.bound for step in done])
    assert np.all(np.diff(bounds) >= 0.0)
    rounding = 10 * oracle.rounding(network.weight_matrix(), network.bias) + 1e-12
    logs = np.abs(np.log(arrays[2][arrays[2] > 0.0])).sum()
    assert bounds[-1] <= sb.log_likelihood(network, evidence, do=do) + rounding + 1e-13 * logs
    for step in done:
        assert step.means.shape == step.xi.shape == (network.n_units,)
        assert np.all((step.means >= 0.0) & (step.means <= 1.0))
        assert np.all(np.isnan(step.xi) | ((step.xi >= 0.0) & (step.xi <= 1.0)))


@pytest.mark.parametrize("scale", [0.5, 2.0, 5.0])
def test_it_ends_where_the_engine_ends(scale):
    network = sb.layered((2, 3, 4), rng=1, scale=scale)
    evidence = np.r_[np.full(6, np.nan), 1.0, 0.0, 1.0]  # one unit at the bottom is barren
    *_, last = sb.steps(network, evidence)
    post = sb.infer(network, evidence, solver=PAPER)
    assert abs(last.bound - post.bound) < 1e-5
    assert np.allclose(last.means, post.means, rtol=0, atol=1e-2)
    assert np.array_equal(np.isnan(last.xi), np.isnan(post.xi))


@pytest.mark.parametrize("scale", [0.5, 2.0, 5.0])
def test_the_end_of_each_sweep_stands_beside_the_trace_of_the_engine(scale):
    network = sb.layered((2, 4, 6), rng=1, scale=scale)
    post = sb.infer(network, [0] * 6, solver=PAPER)
    ends = {step.sweep: step.bound for step in sb.steps(network, [0] * 6)}
    both = min(len(ends), len(post.trace))
    apart = np.array([ends[sweep] for sweep in range(both)]) - post.trace[:both]
    assert abs(apart[0]) < 0.05 * abs(post.trace[0])  # the engine begins with one step of Newton's method
    assert np.all(np.abs(apart[1:]) < 0.02 * scale)
    assert abs(apart[-1]) < 1e-4


def test_the_bound_is_that_of_the_paper_at_every_step():
    network = sb.layered((2, 3, 4), rng=1, scale=3.0)
    evidence = np.r_[np.full(5, np.nan), 1.0, 0.0, 1.0, 1.0]
    for step in sb.steps(network, evidence, max_sweeps=3):
        xi = np.where(np.isnan(step.xi), 0.5, step.xi)
        expected = oracle.bound(network.weight_matrix(), network.bias, step.means, xi)
        assert abs(step.bound - expected) < 1e-10
        assert abs(step.bound - sb.bounds.lower_bound(network, evidence, step.means, xi)) < 1e-10


def test_a_step_of_a_mean_is_equation_24_and_a_step_of_xi_the_best_one():
    network = sb.layered((2, 3, 4), rng=1, scale=3.0)
    J, h = network.weight_matrix(), network.bias
    evidence = np.r_[np.full(5, np.nan), 1.0, 0.0, 1.0, 1.0]
    for before, after in pairwise(sb.steps(network, evidence, max_sweeps=2)):
        k = network.index(after.unit)
        xi = np.where(np.isnan(before.xi), 0.5, before.xi)
        if after.what == "mean":
            inside = np.clip(before.means, 1e-14, 1 - 1e-14)
            assert after.means[k] == pytest.approx(oracle.mean_field(J, h, inside, xi)[k], abs=1e-9)
        else:
            assert after.xi[k] == pytest.approx(oracle.tightest_xi(J, h, before.means)[k], abs=1e-6)
        moved = np.flatnonzero(after.means != before.means).tolist()
        changed = np.flatnonzero((after.xi != before.xi) & ~np.isnan(after.xi)).tolist()
        assert moved + changed in ([], [k])
        assert after.gain == pytest.approx(after.bound - before.bound, abs=1e-12)


def test_the_order_is_that_of_the_engine_and_the_start_comes_first(sprinkler):
    done = list(sb.steps(sprinkler, {"slippery": 1}, max_sweeps=1))
    found = [(step.sweep, step.what, step.unit) for step in done]
    means = [(1, "mean", unit) for unit in ("rain", "sprinkler", "wet")]
    tightened = [[(sweep, "xi", unit) for unit in ("wet", "slippery")] for sweep in (0, 1)]
    assert found == [(0, "start", None), *tightened[0], *means, *tightened[1]]  # (i), (ii), (i), as in section 3
    assert done[0].means.tolist() == [0.5, 0.5, 0.5, 1.0]
    assert done[0]["wet"] == 0.5
    begun = next(sb.steps(sprinkler, {"slippery": 1}, start=[0.1, 0.2, 0.3, 0.9]))
    assert begun.means.tolist() == [0.1, 0.2, 0.3, 1.0]
    assert [step.what for step in sb.steps(sprinkler, [0, 1, 1, 0])] == ["start"]


def test_interventions_and_reports_are_stepped_through_too(sprinkler):
    evidence, do = {"slippery": (1.0, 3.0)}, {"rain": 1}
    *_, last = sb.steps(sprinkler, evidence, do=do, tol=1e-9)
    assert last["rain"] == 1.0
    assert last.bound == pytest.approx(sb.infer(sprinkler, evidence, do=do, solver=PAPER).bound, abs=1e-5)
    assert {step.unit for step in sb.steps(sprinkler, evidence, do=do)} <= {None, *sprinkler.names}


# --- variables with more states ---------------------------------------------------------------------------------------


def sigmoid_states(seed, n=4, scale=2.0):
    """A network of sigmoid variables with 2 to 4 states, each with all before it as parents."""
    rng = np.random.default_rng(seed)
    size = rng.integers(2, 5, n)
    names = [f"v{i}" for i in range(n)]
    edges = [(names[j], names[i], rng.normal(0, scale, (size[i] - 1, size[j] - 1))) for i in range(n) for j in range(i)]
    bias = {name: rng.normal(0, 1, k - 1) for name, k in zip(names, size, strict=True)}
    states = {name: [f"s{k}" for k in range(K)] for name, K in zip(names, size, strict=True)}
    return sb.from_edges(edges, bias=bias, names=names, states=states)


def distributions(network, means):
    parts = [means[network.columns_of(v)] for v in range(network.n_units)]
    return [np.append(1.0 - part.sum(), part) for part in parts]


def bound_of_states(network, means, xi):
    """Eq. (22) over thresholds, with the oracle's right-hand side of eq. (20)."""
    model, Q, total = network.model, distributions(network, means), 0.0
    for v, K in enumerate(model.n_states):
        a, c = oracle.loads_of_states(0, K)
        for l in range(1, K):  # noqa: E741
            k = model.threshold[v] + l - 1
            at = 0.5 if np.isnan(xi[k]) else xi[k]
            mean = network.bias[k]
            for e in range(model.indptr[v], model.indptr[v + 1]):
                u = model.parent[e]
                J = model.weight[model.block[e] : model.block[e + 1]].reshape(K - 1, -1)[l - 1]
                mean += Q[u][1:] @ J
            total += Q[v] @ a[:, l - 1] * mean
            total -= Q[v] @ c[:, l - 1] * oracle.xi_bound_of_states(model, network.bias, Q, v, l, at)
    return total - sum(float(np.sum(q[q > 0] * np.log(q[q > 0]))) for q in Q)


@pytest.mark.parametrize("seed", range(4))
def test_the_bound_of_states_is_that_of_the_paper_at_every_step(seed):
    network = sigmoid_states(seed)
    evidence = {"v3": "s1", "v1": (1.0,) * int(network.n_states[1])}
    for before, after in pairwise(sb.steps(network, evidence, max_sweeps=3)):
        assert after.bound == pytest.approx(bound_of_states(network, after.means, after.xi), abs=1e-10)
        assert after.gain >= 0.0
        moved = {int(network.columns[0][k]) for k in np.flatnonzero(after.means != before.means)}
        assert moved <= ({network.index(after.unit)} if after.what == "mean" else set())
        if after.what == "xi":  # the best one: neighbours are no better
            k = network.columns_of(after.unit).start
            k += 0 if after.state is None else network.states[after.unit].index(after.state) - 1
            for near in (1e-4, -1e-4):
                other = after.xi.copy()
                other[k] = np.clip(other[k] + near, 0.0, 1.0)
                assert bound_of_states(network, after.means, other) <= after.bound + 1e-12


@pytest.mark.parametrize("seed", range(4))
def test_a_step_of_a_distribution_is_the_softmax_of_the_gradient_of_the_rest(seed):  # eq. (24) for any number of states
    network, h = sigmoid_states(seed), 1e-6
    for before, after in pairwise(sb.steps(network, {"v3": "s1"}, max_sweeps=2)):
        if after.what != "mean":
            continue
        own, slopes = network.columns_of(after.unit), []
        p = distributions(network, before.means)[network.index(after.unit)]
        for k in range(own.start, own.stop):
            up, down = before.means.copy(), before.means.copy()
            up[k], down[k] = up[k] + h, down[k] - h
            slope = (bound_of_states(network, up, before.xi) - bound_of_states(network, down, before.xi)) / (2 * h)
            slopes.append(slope + np.log(p[1 + k - own.start]) - np.log(p[0]))  # without the entropy
        expected = np.exp([0.0, *slopes])
        expected /= expected.sum()
        assert np.allclose(after.means[own], expected[1:], atol=1e-6)


@pytest.mark.parametrize("seed", range(4))
def test_states_end_where_the_engine_ends(seed):
    network = sigmoid_states(seed)
    evidence, do = {"v3": "s1", "v2": [0.2] * int(network.n_states[2] - 1) + [1.0]}, {"v0": "s1"}
    for held in (None, do):
        *_, last = sb.steps(network, {"v3": "s1"}, do=held, tol=1e-9)
        post = sb.infer(network, {"v3": "s1"}, do=held, solver=sb.MeanField(log_term="xi", enumerate_up_to=0, tol=1e-9))
        assert last.bound == pytest.approx(post.bound, abs=1e-5)
        assert np.allclose(last.means, post.means, atol=1e-3)
    *_, last = sb.steps(network, evidence, tol=1e-9)
    assert last.bound <= sb.log_likelihood(network, evidence) + 1e-9
    assert last.bound >= sb.infer(network, evidence, solver=PAPER).bound - 1e-4  # reports have their exact term here


@pytest.mark.small
@settings(max_examples=4 if INTERPRETED else 25)
@given(st.integers(0, 2**32), st.sampled_from([0.5, 5.0, 30.0, 500.0]), st.data())
def test_no_step_of_states_lowers_the_bound_and_none_exceeds_the_truth(seed, scale, data):
    network = sigmoid_states(seed, 3, scale)
    states = data.draw(states_of(network))
    evidence = {network.names[i]: network.states[network.names[i]][s] for i, s in enumerate(states) if s >= 0}
    bounds = np.array([step.bound for step in sb.steps(network, evidence, max_sweeps=3)])
    size = np.abs(network.weight).sum() + np.abs(network.bias).sum()
    assert np.all(np.diff(bounds) >= 0.0)
    assert bounds[-1] <= sb.log_likelihood(network, evidence) + 1e-13 * size + 1e-12


def test_steps_of_states_read_well():
    states = {"fever": ["none", "mild", "high"]}
    network = sb.from_edges({("flu", "fever"): [[1.0], [2.0]], ("fever", "sweat"): [[1.0, 2.0]]}, states=states)
    start, *others = sb.steps(network, {"sweat": 1}, max_sweeps=1)
    assert start["flu"] == 0.5
    assert start["fever"] == pytest.approx({"none": 1 / 3, "mild": 1 / 3, "high": 1 / 3})
    assert repr(others[0]).startswith("sweep 0: xi of fever at mild is 0.")
    assert (others[1].unit, others[1].state, others[2].unit, others[2].state) == ("fever", "high", "sweat", None)
    assert any(repr(step).startswith("sweep 1: distribution of fever is none 0.") for step in others)
    noisy = sb.noisy_or({("flu", "fever"): 0.9}, prior=0.1)
    with pytest.raises(sb.errors.NetworkError, match=r"^variable 'fever' is a noisy-OR variable; steps\(\) shows"):
        sb.steps(noisy, {"fever": 1})
    table = sb.from_edges([("flu", "fever", None)], tables={"fever": [[0.9, 0.1], [0.2, 0.8]]})
    with pytest.raises(sb.errors.NetworkError, match=r"^variable 'fever' has a table; steps\(\) shows the paper's"):
        sb.steps(table, {"fever": 1})


# ----------------------------------------------------------------------------------------------------------------------


def test_it_reads_well_and_refuses_at_once(sprinkler):
    lines = [repr(step) for step in sb.steps(sprinkler, {"wet": 1}, max_sweeps=1)]
    assert lines[0].startswith("start: bound -")
    assert lines[1].startswith("sweep 0: xi of wet is 0.")
    assert lines[2].startswith("sweep 1: mean of rain is 0.")
    assert lines[-1].startswith("sweep 1: xi of wet is 0.")
    with pytest.raises(sb.errors.ParameterError, match="^tol is -1; it must be zero or more nats$"):
        sb.steps(sprinkler, {"wet": 1}, tol=-1)
    with pytest.raises(sb.errors.EvidenceError, match="^one pattern was expected, but the evidence has 2 rows"):
        sb.steps(sprinkler, np.zeros((2, 4)))
