"""Bounds, certificates and samplers for variables with states, against sums over all joint states."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp, xlogy

import oracle
import sbnet as sb
from sbnet.certificates import branching, enclosure
from sbnet.cli import main
from sbnet.errors import EvidenceError, ParameterError
from sbnet.exact.enumeration import Reduced
from sbnet.inference import Solution, Status
from sbnet.inference.importance import log_weights
from sbnet.inference.solvers.particles import average
from sbnet.kernels.compiling import INTERPRETED
from strategies import state_networks, states_of

pytestmark = pytest.mark.small

FEVER = ("none", "mild", "high")
ROUNDING = 1e-11


def by_number(network):
    return {network.index(name): table for name, table in network.tables.items()}


def possible_states(network, row):
    """Joint states of a positive probability that agree with the evidence, and their ln P."""
    tables = by_number(network)
    S, log_p = oracle.weights_of_states(network.model, network.bias, row, tables=tables)
    kept = [not oracle.cannot_be_of_states(network.model, network.bias, s, tables) for s in S]
    return S[kept], log_p[kept]


def magnitude(network):
    return 1.0 + np.abs(network.bias).sum() + np.abs(network.weight).sum()


def on(network, S):
    """Joint states by columns: is the variable in that state?"""
    variable, state = network.columns
    return (S[:, variable] == state) * 1.0


def random_case(seed, *, tables, n=5):
    """A network of sigmoid, noisy-OR and table variables with 2 to 4 states, and evidence that leaves some hidden.

    Weights go to 30; the last variable is observed, so that most hidden ones are involved.
    """
    rng = np.random.default_rng([28, seed])
    names, sizes = [f"v{k}" for k in range(n)], rng.integers(2, 5, n)
    gate = rng.choice(["sigmoid", "noisy-or", "table"] if tables else ["sigmoid", "noisy-or"], n)
    scale, edges, bias, own = float(rng.choice([0.5, 2.0, 30.0])), [], {}, {}
    for i in range(n):
        parents = np.flatnonzero(rng.random(i) < 0.6)
        if gate[i] == "table":
            table = rng.dirichlet(np.ones(sizes[i]), tuple(sizes[parents]))
            table = np.where((rng.random(table.shape) < 0.2) & (table < table.max(axis=-1, keepdims=True)), 0.0, table)
            own[names[i]] = table / table.sum(axis=-1, keepdims=True)
        else:
            sign = 1.0 if gate[i] == "noisy-or" else -1.0
            bias[names[i]] = rng.uniform(min(sign, 0.0), 1.0, sizes[i] - 1) * scale
        for j in parents:
            block = None
            if gate[i] != "table":
                block = rng.uniform(min(sign, 0.0), 1.0, (sizes[i] - 1, sizes[j] - 1)) * scale
            edges.append((names[j], names[i], block))
    states = {name: [f"s{k}" for k in range(size)] for name, size in zip(names, sizes, strict=True) if size > 2}
    kinds = {name: kind for name, kind in zip(names, gate.tolist(), strict=True) if kind != "table"}
    network = sb.from_edges(edges, bias=bias, gate=kinds, names=names, states=states, tables=own)
    row = np.where(rng.random(n) < 0.3, rng.integers(0, sizes), -1).astype(np.int8)
    row[-1] = rng.integers(0, sizes[-1])
    return network, row


@pytest.fixture
def mixed():
    """A noisy-MAX variable with three states, one with sequential logits, and a table."""
    return sb.from_edges(
        [("flu", "fever", [[0.7], [0.4]]), ("cold", "fever", [[0.5], [0.0]]), ("fever", "ill", None),
         ("fever", "mood", [[1.0, 2.0], [-1.0, 0.5]])],
        bias={"flu": -1.0, "cold": -2.0, "fever": [0.1, 0.05], "mood": [0.2, -0.3]},
        states={"fever": FEVER, "mood": ["good", "fair", "poor"]},
        gate={"fever": "noisy-or"},
        tables={"ill": [[0.9, 0.1], [0.4, 0.6], [0.2, 0.8]]},
    )  # fmt: skip


# --- exact answers ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(40))
def test_pairs_are_those_of_a_sum_over_all_joint_states(seed):
    network, row = random_case(seed, tables=True, n=4)
    S, log_p = possible_states(network, row)
    if not len(S):
        assert sb.log_likelihood(network, row) == -np.inf
        return
    S1 = on(network, S)
    expected = (S1 * np.exp(log_p - logsumexp(log_p))[:, None]).T @ S1
    assert sb.exact_pairs(network, row) == pytest.approx(expected, abs=1e-8)


@pytest.mark.parametrize("seed", range(40))
def test_kl_is_that_of_a_sum_over_all_joint_states(seed):  # eq. (12)
    (network, row), rng = random_case(seed, tables=True, n=4), np.random.default_rng(seed)
    Q = [np.eye(K)[s] if s >= 0 else rng.dirichlet(np.ones(K)) for K, s in zip(network.n_states, row, strict=True)]
    S, log_p = possible_states(network, row)
    if not len(S) or logsumexp(log_p) < -500.0:
        return
    q = np.prod([[Q[v][k] for v, k in enumerate(s)] for s in S], axis=1)
    found = sb.kl(network, row, np.concatenate([p[1:] for p in Q]))
    if q.sum() < 1.0 - 1e-9:
        assert found == np.inf
    else:
        expected = np.sum(xlogy(q, q) - q * (log_p - logsumexp(log_p)))
        assert found == pytest.approx(max(expected, 0.0), abs=ROUNDING * magnitude(network), rel=1e-9)


def test_kl_refuses_means_of_states_that_are_no_distribution(mixed):
    means = np.full(len(mixed.bias), 0.6)
    with pytest.raises(EvidenceError, match="the means of 'fever' add up to 1.2"):
        sb.kl(mixed, {"ill": 1}, means)


# --- certificates -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(60))
def test_certificates_hold_the_sum_of_random_cases(seed):
    check_certificates(*random_case(seed, tables=True))


@given(state_networks(max_units=4), st.data())
@settings(max_examples=60, deadline=None)
def test_certificates_hold_the_sum_over_all_joint_states(network, data):
    check_certificates(network, data.draw(states_of(network)))


def check_certificates(network, row):
    S, log_p = possible_states(network, row)
    if not len(S):
        assert sb.certify(network, row).upper == -np.inf
        return
    certificate, exact = sb.certify(network, row), logsumexp(log_p)
    scale = ROUNDING * magnitude(network)
    assert certificate.exact
    assert certificate.lower - scale <= exact <= certificate.upper + scale
    assert certificate.lower <= certificate.estimate <= certificate.upper <= 0.0
    assert certificate.gap <= 1e-9 * magnitude(network) * len(row)
    assert certificate.interval == (certificate.lower, certificate.upper)
    if network.is_binary:
        return
    hidden = [name for name, state in zip(network.names, row, strict=True) if state < 0]
    intervals = sb.posterior_intervals(network, row)
    assert list(intervals) == hidden
    p = np.exp(log_p - exact)
    for name in hidden:
        expected = np.bincount(S[:, network.index(name)], p, network.n_states[network.index(name)])
        found = intervals[name]
        if len(expected) == 2:
            found, expected = {"yes": found}, expected[1:]
        else:
            assert list(found) == list(network.states[name])
        for (low, high), truth in zip(found.values(), expected, strict=True):
            assert low - 1e-9 <= truth <= high + 1e-9
            assert low <= high <= low + 1e-6


def test_certificates_of_states_read_well(mixed):
    certificate = sb.certify(mixed, {"ill": 1, "mood": "poor"})
    assert repr(certificate).splitlines() == [
        "ln P(evidence) = -2.4350 (elimination of all hidden variables)",
        "  rounding: covered, by a margin for the worst; proven=True counts it in ball arithmetic",
    ]
    assert certificate.estimate == pytest.approx(sb.log_likelihood(mixed, {"ill": 1, "mood": "poor"}), abs=1e-12)
    many = sb.certify(mixed, [{"ill": 1}, {"fever": "high"}, {"ill": 0, "flu": (0.2, 0.9)}])
    expected = sb.log_likelihood(mixed, [{"ill": 1}, {"fever": "high"}, {"ill": 0, "flu": (0.2, 0.9)}])
    assert many.estimate == pytest.approx(expected, abs=1e-12)
    assert (many.lower <= expected).all()
    assert (many.upper >= expected).all()


def test_a_proven_certificate_of_states_says_so(mixed):
    pytest.importorskip("flint")
    assert repr(sb.certify(mixed, {"ill": 1}, proven=True)).endswith("rounding: covered, by ball arithmetic")


def test_posterior_intervals_are_by_state(mixed):
    evidence = {"ill": 1, "mood": [0.1, 0.2, 0.9]}
    intervals = sb.posterior_intervals(mixed, evidence, do={"cold": 1})
    exact = sb.exact_posterior(mixed, evidence, do={"cold": 1})
    for state in FEVER:
        low, high = intervals["fever"][state]
        assert low <= exact["fever"][state] <= high
        assert high - low < 1e-9
    low, high = intervals["flu"]
    assert low <= exact["flu"] <= high
    frame = intervals.to_frame()
    assert {"fever = none", "fever = mild", "fever = high", "flu"} <= set(frame.index)
    assert "fever = high" in repr(intervals)
    given_ = sb.posterior_intervals(mixed, {"fever": "mild"}, units=["fever"])
    assert given_["fever"] == {"none": (0.0, 0.0), "mild": (1.0, 1.0), "high": (0.0, 0.0)}


def test_impossible_states_have_the_probability_zero():
    net = sb.from_edges(
        [("a", "b", None)], bias={"a": [0.3, 0.1]}, states={"a": ["x", "y", "z"]},
        tables={"b": [[1.0, 0.0], [0.5, 0.5], [0.2, 0.8]]},
    )  # fmt: skip
    intervals = sb.posterior_intervals(net, {"b": 1})["a"]
    assert intervals["x"] == (0.0, 0.0)
    assert 0.0 < intervals["y"][0] <= intervals["y"][1] < 1.0


# --- samplers ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def wards():
    """Three layers of variables with two to four states: noisy-MAX in the middle, sequential logits below."""
    rng = np.random.default_rng(5)
    states = {"a": ["0", "1", "2"], "c": FEVER, "d": ["w", "x", "y", "z"], "e": ["n", "p", "q"]}
    sizes = {name: len(states.get(name, "no")) - 1 for name in "abcdef"}
    pairs = [("a", "c"), ("b", "c"), ("a", "d"), ("b", "d"), ("c", "e"), ("d", "e"), ("d", "f"), ("c", "f")]
    noisy = {"c": "noisy-or", "d": "noisy-or"}
    weight = {(u, v): rng.normal(size=(sizes[v], sizes[u])) for u, v in pairs}
    bias = {name: rng.normal(size=size) for name, size in sizes.items()}
    weight = {pair: abs(w) if pair[1] in noisy else w for pair, w in weight.items()}
    bias = {name: 0.2 * abs(h) if name in noisy else h for name, h in bias.items()}
    return sb.from_edges(weight, bias=bias, states=states, gate=noisy)


@pytest.mark.parametrize("evidence", [{"e": "p", "f": 1}, {"d": "z"}, {"e": "q", "a": [0.1, 0.5, 0.9]}])
def test_gibbs_samples_states(wards, evidence):
    exact, solver = sb.exact_posterior(wards, evidence), sb.Gibbs(samples=40, burn_in=10, chains=8)
    if not INTERPRETED:
        solver = sb.Gibbs(samples=20_000)
    found = sb.infer(wards, evidence, solver=solver)
    assert found.means == pytest.approx(exact.means, abs=0.2 if INTERPRETED else 0.01)
    assert list(found["c"]) == list(FEVER)
    assert sum(found["c"].values()) == pytest.approx(1.0)


# --- upper bounds -----------------------------------------------------------------------------------------------------

LOOSE = [{"exact_up_to": 0, "table_up_to": 0}, {"exact_up_to": 0, "table_up_to": 3}, {"exact_up_to": 3}, {}]


@pytest.mark.parametrize("seed", range(5 if INTERPRETED else 80))
def test_no_upper_bound_is_below_the_sum_of_random_cases(seed):
    check_upper_bounds(*random_case(seed, tables=False))


@given(state_networks(max_units=6, tables=False, max_states=4), st.data())
@settings(max_examples=5 if INTERPRETED else 60, deadline=None)
def test_no_upper_bound_is_below_the_sum_over_all_joint_states(network, data):  # weights to 30
    check_upper_bounds(network, data.draw(states_of(network)))


def check_upper_bounds(network, row):
    S, log_p = possible_states(network, row)
    if not len(S):
        assert sb.upper_bound(network, row).bound == -np.inf
        return
    split = sb.upper_bound(network, row, exact_up_to=0, table_up_to=0, condition=2)
    assert logsumexp(log_p) <= split.bound + 1e-13 * magnitude(network)
    for options in LOOSE:
        upper = sb.upper_bound(network, row, **options)
        assert logsumexp(log_p) <= upper.bound + 1e-13 * magnitude(network)
    assert upper.exact
    # the margin has 700 nats for each threshold of a noisy-OR variable
    assert upper.bound == pytest.approx(logsumexp(log_p), abs=1e-8 + ROUNDING * magnitude(network))


@pytest.mark.parametrize("condition", [2, ["c"], ["c", "d"], ["a", "b", "c", "d"]])
def test_conditioning_on_states_lowers_the_bound(wards, condition):
    evidence = {"e": "p", "f": 1}
    exact = sb.log_likelihood(wards, evidence)
    whole = sb.upper_bound(wards, evidence, exact_up_to=0, table_up_to=0)
    split = sb.upper_bound(wards, evidence, exact_up_to=0, table_up_to=0, condition=condition)
    assert exact <= split.bound < whole.bound
    assert split.n_subproblems > 1
    if condition == ["a", "b", "c", "d"]:
        assert split.bound == pytest.approx(exact, abs=1e-9)


def test_upper_bounds_with_soft_evidence_and_interventions(wards):
    rows = [{"e": "p", "a": [0.1, 0.5, 0.9]}, {"f": 1}, {"e": "q", "f": 0}]
    exact = sb.log_likelihood(wards, rows, do={"b": 1})
    upper = sb.upper_bound(wards, rows, do={"b": 1}, exact_up_to=0)
    assert (upper.bound >= exact).all()
    assert upper.bound == pytest.approx(exact, abs=0.5)


def test_upper_bounds_refuse_too_many_joint_states_by_name():
    net = sb.from_edges({}, names=[f"v{k}" for k in range(9)], states={f"v{k}": list("wxyz") for k in range(9)})
    with pytest.raises(ParameterError, match="conditioning on these 9 variables needs 262,144 subproblems"):
        sb.upper_bound(net, {}, condition=[f"v{k}" for k in range(9)])


# --- certificates where elimination takes too large tables ------------------------------------------------------------


class Products:
    """A solver in the place of mean field theory: the product of exact marginals, and its bound by the oracle."""

    knows_states = True

    def solve(self, network, states, *, start, trace):
        means = np.array([sb.exact_posterior(network, row).means for row in states])
        bound, cuts = [], np.cumsum(network.n_states - 1)[:-1]
        for row in means:
            Q = [np.append(max(1.0 - own.sum(), 0.0), own) for own in np.split(row, cuts)]
            bound.append(oracle.bound_of_states(network.model, network.bias, Q) - 1e-9)
        done = np.full(len(states), Status.CONVERGED.code)
        return Solution(np.array(bound), means, done, np.zeros(len(states), np.int64))


@pytest.fixture
def no_sums(monkeypatch):
    """No exact sums, and a solver that knows states."""
    for place in (enclosure, branching):
        monkeypatch.setattr(place, "MeanField", Products)
    return sb.certificates.CertifySettings(exact_up_to=0)


@pytest.mark.skipif(INTERPRETED, reason="thousands of samples")
@pytest.mark.parametrize("effort", ["fast", "normal"])
def test_bounds_enclose_ln_p_without_elimination(wards, no_sums, effort):
    evidence = {"e": "p", "f": 1}
    exact = sb.log_likelihood(wards, evidence)
    found = sb.certify(wards, evidence, effort=effort, settings=no_sums)
    assert not found.exact
    assert found.lower <= exact <= found.upper
    assert found.estimate == pytest.approx(exact, abs=0.2)
    assert found.gap < 2.0
    assert "paper" not in repr(found)


@pytest.mark.skipif(INTERPRETED, reason="hundreds of subproblems")
def test_branch_and_bound_splits_states(wards, no_sums):
    evidence = {"e": "p", "f": 1}
    exact = sb.log_likelihood(wards, evidence)
    found = sb.certify(wards, evidence, gap=1e-6, settings=no_sums)
    assert found.lower <= exact <= found.upper
    assert found.gap <= 1e-6


@pytest.mark.skipif(INTERPRETED, reason="thousands of samples")
def test_samples_with_bounded_weights_hold_ln_p(wards, no_sums):
    evidence = {"e": "p", "f": 1}
    exact = sb.log_likelihood(wards, evidence)
    found = sb.certify(wards, evidence, confidence=0.999, settings=no_sums)
    low, high = found.interval
    assert found.lower <= low <= exact <= high <= found.upper
    assert high - low < 0.2


def test_posterior_intervals_without_elimination(wards, no_sums):
    evidence = {"e": "p", "f": 1}
    exact, found = sb.exact_posterior(wards, evidence), sb.posterior_intervals(wards, evidence, settings=no_sums)
    for name in "acd":
        for state, (low, high) in found[name].items():
            assert low <= exact[name][state] <= high


# --- estimates --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["importance", "annealed"])
def test_estimates_of_states_are_right(wards, method):
    samples, rows = (300 if INTERPRETED else 5000), [{"e": "p", "f": 1}, {"d": "z", "e": "n"}, {"f": 0, "a": "2"}]
    exact = sb.log_likelihood(wards, rows)
    options = {"steps": 5 if INTERPRETED else 20, "solver": Products()}
    found = sb.estimate(wards, rows, samples=samples, method=method, **options)
    assert (np.abs(found.log_probability - exact) <= 5.0 * found.error + 1e-12).all()
    assert (found.error < 0.1).all()
    assert (found.lower <= exact).all()


@pytest.mark.parametrize("seed", range(40))
def test_weights_of_importance_sampling_have_the_mean_p(seed):
    network, row = random_case(seed, tables=False)
    log_p = logsumexp(possible_states(network, row)[1])
    if log_p < -6.0:  # too rare for a few thousand samples
        return
    means = np.repeat(1.0 / network.n_states, network.n_states - 1)
    w = np.exp(log_weights(Reduced(network, row), means, 0.5, np.uint64(1), 20_000) - log_p)
    assert w.max() <= 2.0 * np.exp(-log_p) * (1.0 + 1e-9)  # the share of the network is one half
    assert abs(w.mean() - 1.0) <= 6.0 * w.std() / np.sqrt(len(w)) + 1e-9


@pytest.mark.skipif(INTERPRETED, reason="thousands of particles")
def test_particles_of_states_are_right(wards):
    rows = np.array([[-1, -1, -1, -1, 1, 1], [-1, -1, -1, 3, 0, -1], [2, -1, -1, -1, -1, 0]], np.int8)
    found = average(wards, rows, number=20_000)
    exact = sb.exact_posterior(wards, rows)
    assert found.log_p == pytest.approx(exact.log_likelihood, abs=0.05)
    assert found.means == pytest.approx(exact.means, abs=0.03)


def test_the_command_certifies_states(mixed, tmp_path, capsys):
    sb.write(mixed, tmp_path / "ward.toml")
    assert main(["certify", str(tmp_path / "ward.toml"), "ill=1", "--about", "fever", "flu", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    exact = sb.exact_posterior(mixed, {"ill": 1})
    assert told["mean_field"] is None
    assert told["units"]["fever"]["high"]["lower"] <= exact["fever"]["high"] <= told["units"]["fever"]["high"]["upper"]
    assert told["units"]["flu"]["lower"] <= exact["flu"] <= told["units"]["flu"]["upper"]
