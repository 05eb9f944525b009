"""Every bound holds on networks that mix noisy-OR and sigmoid units, however weak, strong or unlikely their causes."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import oracle
import sbnet as sb
from sbnet import bounds
from sbnet.bounds import proven
from sbnet.bounds.lower import bound_terms, check_log_term
from sbnet.bounds.proven import gates as ball_gates
from sbnet.bounds.proven import series as ball_series
from sbnet.errors import ConvergenceWarning, NetworkError
from sbnet.inference.maximum import _ENUMERATED
from sbnet.kernels import codes as gates
from sbnet.model import gates as array_gates
from sbnet.quadrature import lobatto
from strategies import LOG_TERMS, causes, leaks, mixed_cases, mixed_networks, questions, seeds

pytestmark = pytest.mark.filterwarnings("ignore::sbnet.errors.ConvergenceWarning")
some, few = settings(max_examples=40), settings(max_examples=15)


def truth(network, row):
    """ln P of evidence that is possible, and how far the oracle may be off."""
    J, h = network.weight_matrix(), network.bias
    assume(not oracle.is_impossible(J, h, row, network.gate))
    return oracle.log_likelihood(J, h, row, network.gate), oracle.rounding(J, h, network.gate)


# --- the terms of the bound -----------------------------------------------------------------------------------------


@pytest.mark.small
@pytest.mark.parametrize("weakest", [1.0, 0.1, 1e-3, 1e-6, 1e-12])
def test_the_nodes_lie_above_the_series_and_close(weakest):
    x = np.exp(np.linspace(np.log(weakest), np.log(50.0), 1000))
    n = lobatto.nodes_for(weakest)
    reach = lobatto.UNTIL[n - 1] * weakest
    sums = np.exp(-np.outer(x, lobatto.NODES[:n])) @ lobatto.WEIGHTS[:n] + np.exp(-reach) / reach
    t = array_gates.rarity(x)
    assert np.all(sums >= t * (1.0 - 1e-15))
    assert np.max(sums - t) < 1e-6


@pytest.mark.small
def test_nodes_and_weights_are_those_of_balls():
    pytest.importorskip("flint")
    with proven.balls():
        rules = ball_series._rules()
        nodes, weights = ([float(x) for rule in rules for x in rule[k]] for k in (0, 1))
    assert pytest.approx(nodes, rel=1e-14) == lobatto.NODES
    assert np.all(weights <= lobatto.WEIGHTS)
    assert pytest.approx(weights, rel=1e-12) == lobatto.WEIGHTS
    assert [rule.until for rule in rules if len(rule.nodes) > 1] == lobatto.UNTIL[
        lobatto.FIRST :: lobatto.POINTS
    ].tolist()


def mean_of_t(weight, mu, bias):
    S = oracle.all_states(np.full(len(weight), np.nan))
    q = np.prod(np.where(S == 1, mu, 1 - mu), axis=1)
    return float(q @ -np.log(-np.expm1(-np.maximum(S @ weight + bias, oracle.LEAST))))


@pytest.mark.small
@some
@given(seed=seeds, n=st.integers(1, 7), hostile=st.booleans())
def test_terms_lie_above_the_mean_of_t(seed, n, hostile):
    rng = np.random.default_rng(seed)
    weight, mu = causes(hostile, n, rng), rng.random(n) ** rng.choice([0.2, 1.0, 5.0])
    bias = float(leaks(hostile, (), rng))
    exact = mean_of_t(weight, mu, bias)
    names = [f"c{k}" for k in range(n)]
    edges = {(name, "x"): w for name, w in zip(names, weight.tolist(), strict=True)}
    net = sb.from_edges(edges, bias={"x": bias}, gate={"x": "noisy-or"}, names=[*names, "x"])
    states, means = sb.questions.evidence.coerce_one(net, {"x": 1}), np.array([[*mu, 1.0]])
    close, cheap = (
        -bound_terms(net, states, means, np.full((1, n + 1), np.nan), check_log_term(log_term, 0))[1][0, n]
        for log_term in ("exact", "quadratic")
    )
    assert exact - 1e-12 * (1 + exact) <= close <= exact + 1e-6
    assert cheap >= exact - 1e-12 * (1 + exact)
    flint = pytest.importorskip("flint")
    with proven.balls():
        ball = ball_series.term([flint.arb(w) for w in weight], [flint.arb(m) for m in mu], flint.arb(bias))
    assert float(ball) == pytest.approx(close, rel=1e-10, abs=1e-10)


# --- lower bounds ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("up_to", [0, 4])
@pytest.mark.parametrize("log_term", LOG_TERMS)
@few
@given(case=mixed_cases())
def test_mean_field_is_a_lower_bound_that_rises(log_term, up_to, case):
    network, row = case
    exact, error = truth(network, row)
    found = sb.infer(network, row, solver=sb.MeanField(log_term=log_term, enumerate_up_to=up_to))
    assert found.bound <= exact + error
    assert np.diff(found.trace).min(initial=0.0) >= -100 * error
    parts = found.breakdown()
    if log_term in ("exact", "xi"):
        assert parts.bound == pytest.approx(found.bound, abs=1e-5 + 100 * error)
    else:  # the shares of the cheap term are found once more, and need not be the same
        assert parts.bound <= exact + error
    total = sum(np.sum(part) for part in (parts.linear, parts.log_term, parts.entropy))
    assert total == pytest.approx(parts.bound, abs=100 * error)


@few
@given(case=mixed_cases())
def test_other_solvers_are_lower_bounds_too(case):
    network, row = case
    exact, error = truth(network, row)
    plain = sb.infer(network, row).bound
    for solver in (sb.Conditioned(2), sb.Mixture(2)):
        found = sb.infer(network, row, solver=solver).bound
        assert found <= exact + error
        assert found >= plain - 1e-3 - 1e-3 * abs(plain) or isinstance(solver, sb.Conditioned)


@few
@given(case=mixed_cases(), seed=seeds)
def test_the_bound_at_given_means_is_that_of_the_equation(case, seed):
    """Eq. (16) with exact averages: ln P - KL(Q || P)."""
    network, row = case
    exact, error = truth(network, row)
    mu = np.random.default_rng(seed).uniform(0.05, 0.95, network.n_units)
    found = bounds.lower_bound(network, row, mu, log_term="exact", enumerate_up_to=7)
    kl = oracle.kl(network.weight_matrix(), network.bias, row, mu, network.gate)
    assert found <= exact + error
    assert found >= exact - kl - 1e-6 - 100 * error


def test_many_parents_take_nodes_and_few_take_sums():
    rng = np.random.default_rng(0)
    net = sb.noisy_or(
        {(f"d{j}", f"f{i}"): rng.uniform(0.1, 0.9) for i in range(4) for j in range(12)}, leak=0.01, prior=0.1
    )
    rows = np.array([[1.0, 0, 1, 1], [0, 0, 0, 0], [1, 1, 1, 1]])
    exact = sb.log_likelihood(net, rows)
    summed = sb.infer_many(net, rows, solver=sb.MeanField(enumerate_up_to=12)).bound
    nodes = sb.infer_many(net, rows, solver=sb.MeanField(enumerate_up_to=0)).bound
    cheap = sb.infer_many(net, rows, solver=sb.MeanField(log_term="quadratic", enumerate_up_to=0)).bound
    assert np.all(nodes <= exact)
    assert np.all(cheap <= nodes + 1e-6)
    assert nodes == pytest.approx(summed, abs=1e-4)
    assert nodes[1] == pytest.approx(exact[1])  # absent findings leave causes independent


# --- upper bounds, certificates, intervals --------------------------------------------------------------------------


@some
@given(case=mixed_cases(max_units=6))
def test_upper_bounds_lie_above(case):
    network, row = case
    exact, error = truth(network, row)
    for options in ({"table_up_to": 0}, {"table_up_to": 4}, {"condition": 1}):
        found = sb.upper_bound(network, row, exact_up_to=0, **options)
        assert found.bound >= exact - error, options
    assert sb.upper_bound(network, row).bound >= exact - error


@few
@given(case=mixed_cases(max_units=6), effort=st.sampled_from(["fast", "normal"]))
@pytest.mark.usefixtures("bounded")
def test_certificates_hold_where_nothing_is_summed(case, effort):
    network, row = case
    exact, error = truth(network, row)
    for options in ({}, {"proven": True}):
        found = sb.certify(network, row, effort=effort, **options)
        assert found.lower - error <= exact <= found.upper + error, options
        assert found.lower <= found.estimate <= found.upper
    intervals = sb.posterior_intervals(network, row)
    p = oracle.posterior(network.weight_matrix(), network.bias, row, network.gate)
    for name, (low, high) in intervals.items():
        assert low - 10 * error <= p[network.index(name)] <= high + 10 * error


@few
@given(case=mixed_cases(max_units=6))
def test_certificates_hold_where_all_is_summed(case):
    network, row = case
    exact, error = truth(network, row)
    for options in ({}, {"proven": True}):
        found = sb.certify(network, row, **options)
        assert found.lower - error <= exact <= found.upper + error, options
        assert found.upper - found.lower <= 100 * error


@pytest.mark.usefixtures("bounded")
def test_what_can_only_come_about_against_all_odds():
    """Causes that are less likely than the smallest number that kernels count with, 1e-300."""
    net = sb.from_edges({("a", "x"): 1.0, ("b", "x"): 1e-12}, bias={"a": -1001.0, "b": -1001.0}, gate="noisy-or")
    exact = sb.log_likelihood(net, {"x": 1})
    assert exact == pytest.approx(-1001.0 + np.log(-np.expm1(-1.0)))
    assert sb.infer(net, {"x": 1}).bound <= exact
    for options in ({}, {"proven": True}, {"settings": sb.solvers.CertifySettings(exact_up_to=0)}):
        found = sb.certify(net, {"x": 1}, **options)
        assert found.lower <= exact <= found.upper


@pytest.mark.small
@some
@given(seed=seeds)
def test_the_highest_place_of_a_line_in_balls(seed):
    flint = pytest.importorskip("flint")
    rng = np.random.default_rng(seed)
    c, high = float(leaks(True, (), rng)), float(causes(True, (), rng))
    lam, eta = float(10.0 ** rng.uniform(-9, 9) * rng.choice([-1, 1])), float(rng.normal() * 10)
    t = np.concatenate([[0.0, high], high * 10.0 ** rng.uniform(-12, 0, 200)])
    x = np.maximum(c + t, oracle.LEAST)
    on, off = np.log(-np.expm1(-x)), -(c + t)
    with proven.balls():
        numbers = [flint.arb(v) for v in (c, lam, 0.0, high)]
        hidden = ball_gates.highest_hidden(gates.NOISY_OR, numbers[0], flint.arb(eta), *numbers[1:])
        seen = [float(ball_gates.highest_observed(gates.NOISY_OR, s, *numbers).upper()) for s in (0, 1)]
        hidden = float(hidden.upper())
    size = 1e-12 * (1000 + np.abs(lam * t).max() + c + high + abs(eta))
    assert seen[0] >= np.max(off - lam * t) - size
    assert seen[1] >= np.max(on - lam * t) - size
    assert hidden >= np.max(np.logaddexp(off, on + eta) - lam * t) - size
    assert max(*seen, hidden) < np.inf


# --- sampling, the best state, questions ----------------------------------------------------------------------------


def mixed(n=6):
    """Two levels of noisy-OR units over sigmoid causes, one of them preventing."""
    edges = {("a", "x"): 1.2, ("b", "x"): 0.4, ("b", "y"): 2.0, ("c", "y"): 0.1, ("x", "z"): 3.0, ("y", "z"): 0.5}
    edges |= {("c", "b"): -1.5, ("z", "w"): 1.0}
    bias = {"a": -1.0, "b": 0.3, "c": -0.5, "x": 0.01, "y": 1e-4, "z": 0.05, "w": -0.5}
    return sb.from_edges(edges, bias=bias, gate={"x": "noisy-or", "y": "noisy-or", "z": "noisy-or"})


def test_samples_and_gibbs_agree_with_exact_means():
    net, evidence = mixed(), {"w": 1, "y": 1}
    exact = sb.exact_posterior(net, evidence)
    found = sb.infer(net, evidence, solver=sb.Gibbs(samples=4000, rng=1))
    assert np.all(np.abs(found.means - exact) <= 5 * found.error + 1e-3)
    states = sb.sample(net, 20_000, rng=0)
    prior = sb.exact_posterior(net, {})
    assert np.all(np.abs(states.mean(axis=0) - prior) < 5 * 0.5 / np.sqrt(20_000))


def test_gibbs_sampling_keeps_a_small_leak_beside_causes_that_never_fail():
    """Weights of thirty million come and go; beside them a leak of 1e-9 is less than rounding, and decides."""
    edges = {("a", "x"): 3e7, ("b", "x"): 3e7, ("a", "y"): 20.7, ("b", "y"): 20.7}
    net = sb.from_edges(
        edges, bias={"a": -0.5, "b": 0.5, "x": 1e-9, "y": 1e-9}, gate={"x": "noisy-or", "y": "noisy-or"}
    )
    exact = sb.exact_posterior(net, {"y": 0})
    found = sb.infer(net, {"y": 0, "x": 1}, solver=sb.Gibbs(samples=500, rng=1))
    again = sb.exact_posterior(net, {"y": 0, "x": 1})
    assert exact[:2].max() < 0.01
    assert np.abs(found.means - again).max() < 0.05


def test_estimates_are_unbiased():
    net, evidence = mixed(), {"w": 0, "z": 1, "y": 1}
    exact = sb.log_likelihood(net, evidence)
    shares = [np.exp(sb.estimate(net, evidence, samples=400, rng=k).log_probability - exact) for k in range(30)]
    assert np.mean(shares) == pytest.approx(1.0, abs=5 * np.std(shares) / np.sqrt(30) + 1e-3)
    annealed = sb.estimate(net, evidence, samples=200, method="annealed", rng=0, steps=200)
    assert annealed.log_probability == pytest.approx(exact, abs=5 * annealed.error + 1e-6)


@few
@given(case=mixed_cases())
def test_no_state_is_better_than_the_most_probable(case):
    network, row = case
    S = oracle.all_states(row)
    log_p = oracle.log_joint(network.weight_matrix(), network.bias, S, network.gate)
    assume(log_p.max() > -np.inf)
    error = oracle.rounding(network.weight_matrix(), network.bias, network.gate)
    found = sb.most_probable(network, row)
    assert found.exact
    assert found.log_p == pytest.approx(log_p.max(), abs=error)
    assert found.upper >= log_p.max() - error


@pytest.mark.parametrize("seed", range(3))
def test_the_search_for_the_best_state_with_more_units_than_are_enumerated(seed):
    rng = np.random.default_rng(seed)
    n = _ENUMERATED + 2
    edges = {
        (f"d{j}", f"f{i}"): float(rng.uniform(0.1, 3.0)) for i in range(6) for j in rng.choice(n, 6, replace=False)
    }
    edges |= {("d0", "d1"): 1.0, ("d1", "d2"): -1.0}
    bias = {f"d{j}": -2.0 for j in range(n)} | {f"f{i}": 0.01 for i in range(6)}
    net = sb.from_edges(edges, bias=bias, gate={f"f{i}": "noisy-or" for i in range(6)})
    evidence = {f"f{i}": int(i < 4) for i in range(5)}  # one finding is hidden too
    found = sb.most_probable(net, evidence)
    row = np.array([evidence.get(name, np.nan) for name in net.names])
    log_p = oracle.log_joint(net.weight_matrix(), net.bias, oracle.all_states(row), net.gate)
    assert found.exact
    assert found.log_p == pytest.approx(log_p.max(), abs=1e-9)
    hasty = sb.most_probable(net, evidence, limit=0, parts=1)
    assert hasty.log_p <= log_p.max() + 1e-9 <= hasty.upper + 2e-9


@some
@given(question=questions(max_units=6, of=mixed_networks))
def test_interventions_and_soft_evidence(question):
    network, given_, held, arrays = question
    J, h = network.weight_matrix(), network.bias
    S, weight = oracle.log_weights(J, h, *arrays, gate=network.gate)
    size = oracle.rounding(J, h, network.gate) + 1e-11
    exact = np.logaddexp.reduce(weight)
    assume(exact > -np.inf)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        assert sb.log_likelihood(network, given_, do=held) == pytest.approx(exact, abs=size, rel=1e-12)
        assert sb.infer(network, given_, do=held).bound <= exact + size * (1 + abs(exact))
    p = np.exp(weight - exact) @ S
    assert sb.exact_posterior(network, given_, do=held) == pytest.approx(p, abs=10 * size)


@pytest.mark.small
def test_what_is_for_sigmoid_units_alone_says_so():
    net = mixed()
    with pytest.raises(NetworkError, match=r"variable 'x' is a noisy-OR variable; steps\(\) shows the paper's"):
        sb.steps(net, {"z": 1})
    with pytest.raises(NetworkError, match=r"variable 'x' is a noisy-OR variable; wake_sleep\(\) is for sigmoid"):
        sb.wake_sleep(net, np.zeros((3, 2)), epochs=1)


@pytest.mark.usefixtures("bounded")
def test_sampling_beside_sigmoid_units_with_inputs_of_minus_a_thousand():
    edges = {("a", "b"): -1000.0, ("a", "x"): 0.1, ("b", "x"): 0.5}
    net = sb.from_edges(edges, bias={"b": -1000.0, "a": 0.03, "x": 0.01}, gate={"a": "noisy-or", "x": "noisy-or"})
    assert sb.certify(net, {"x": 1}).upper >= sb.log_likelihood(net, {"x": 1}) - 1e-9
    assert sb.sample(net, 10, rng=0)[:, net.index("b")].max() == 0


@pytest.mark.small
@pytest.mark.parametrize("state", [0, 1])
@pytest.mark.parametrize("gate", [gates.SIGMOID, gates.NOISY_OR])
def test_where_a_line_touches_no_place_is_higher(gate, state):
    codes, low, high = np.full(4, gate, np.int8), np.array([0.0, 1e-9, 0.5, 3.0]), np.array([2.0, 1e-3, 0.5, 40.0])
    x = low + np.linspace(0.0, 1.0, 401)[:, None] * (high - low)
    for slope in (-3.0, -1.0, -0.5, 0.0, 1e-6, 0.5, 1.0, 30.0):
        best = array_gates.touching(codes, state, np.full(4, slope), low, high)
        assert np.all((low <= best) & (best <= high))
        at = array_gates.log_p(codes, state, best) - slope * best
        assert np.all(at >= np.max(array_gates.log_p(codes, state, x) - slope * x, axis=0) - 1e-12)
