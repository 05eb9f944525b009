"""Zeros count as zeros, however unlikely the evidence: kernels count 1e-300 or e^-1000 in their place."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import oracle
import sbnet as sb
from sbnet.errors import ConvergenceWarning
from sbnet.solvers import CertifySettings

THREE = {"states": {"f": ["none", "mild", "high"], "g": ["none", "mild", "high"]}}


def two(rarest=-800.0):
    """Two findings without leaks, of a cause each; and what is observed."""
    net = sb.from_edges(
        {("a", "f"): 0.7, ("b", "g"): 1.3}, bias={"a": rarest, "b": rarest}, gate={"f": "noisy-or", "g": "noisy-or"}
    )
    return net, {"f": 1, "g": 1}


def three(rarest=-800.0):
    """The same with findings of three states, and a chain: f is a cause of g."""
    net = sb.from_edges(
        {("a", "f"): [[0.7], [0.2]], ("f", "g"): [[0.1, 0.4], [0.5, 0.0]], ("b", "g"): [[0.0], [1.0]]},
        bias={"a": rarest, "b": rarest},
        gate={"f": "noisy-or", "g": "noisy-or"},
        **THREE,
    )
    return net, {"f": "high", "g": "mild"}


def truth(net, evidence):
    states = [net.states[name] for name in net.names]
    row = [
        -1 if name not in evidence else evidence[name] if len(own) == 2 else own.index(evidence[name])
        for name, own in zip(net.names, states, strict=True)
    ]
    return oracle.exact_of_states(net.model, net.bias, row)


CASES = pytest.mark.parametrize("case", [two(), three(), two(-340.0), two(-650.0)])


@CASES
def test_exact_answers_of_what_only_rare_causes_explain(case):
    net, evidence = case
    log_p, means = truth(net, evidence)
    assert log_p < -600.0
    assert sb.log_likelihood(net, evidence) == pytest.approx(log_p, rel=1e-13)
    assert np.asarray(sb.exact_posterior(net, evidence)) == pytest.approx(means, abs=1e-12)
    best = sb.most_probable(net, evidence)
    assert best.exact
    assert best.log_p <= log_p <= best.log_p + 1.0
    assert all(best[name] == 1 for name in ("a", "b") if means[net.columns_of(name)][0] > 0.9)


@CASES
@pytest.mark.parametrize(
    "solver",
    [sb.MeanField(), sb.MeanField(log_term="xi", enumerate_up_to=0), sb.Structured(), sb.Mixture(2), sb.Conditioned(1)],
    ids=lambda solver: type(solver).__name__,
)
def test_lower_bounds_stay_below(case, solver):
    net, evidence = case
    if not net.is_binary and isinstance(solver, sb.Structured | sb.Mixture | sb.Conditioned):
        pytest.skip("for two states")
    log_p, _ = truth(net, evidence)
    found = sb.infer(net, evidence, solver=solver)
    assert log_p - 10.0 < found.bound <= log_p
    assert sb.infer_many(net, [evidence], solver=solver).bound[0] == found.bound


@CASES
@pytest.mark.parametrize(
    "options",
    [{}, {"proven": True}, {"confidence": 0.99}, {"gap": 0.1}, {"effort": "normal"}],
    ids=lambda options: "".join(options) or "fast",
)
@pytest.mark.parametrize("exact_up_to", [None, 0])
def test_certificates_hold(case, options, exact_up_to):
    net, evidence = case
    log_p, means = truth(net, evidence)
    options = {**options, "settings": CertifySettings(exact_up_to=exact_up_to)}
    found = sb.certify(net, evidence, **options)
    error = 1e-13 * abs(log_p)
    assert found.lower - error <= log_p <= found.upper + error
    assert found.interval[0] - error <= log_p <= found.interval[1] + error
    if {"confidence", "gap"}.isdisjoint(options):
        for name, (low, high) in sb.posterior_intervals(net, evidence, **options).items():
            assert low <= means[net.columns_of(name)][0] + 1e-12
            assert high >= means[net.columns_of(name)][0] - 1e-12


@pytest.mark.parametrize("method", ["importance", "annealed"])
def test_an_estimate_and_its_lower_end_count_zeros(method):
    net, evidence = two()
    log_p, _ = truth(net, evidence)
    found = sb.estimate(net, evidence, method=method, samples=200)
    assert found.log_probability == pytest.approx(log_p, abs=1.0)
    assert found.lower <= log_p + 1e-9


def test_chains_do_not_stay_in_states_that_cannot_be():
    net, evidence = two()
    found = sb.infer(net, evidence, solver=sb.Gibbs(samples=50, burn_in=5))
    assert [found["a"], found["b"]] == [1.0, 1.0]


def test_a_cause_that_never_is_explains_nothing():
    """By a, which has the prior 0, it would be e^-1000; by b and c it is less."""
    net = sb.noisy_or(
        {("a", "f"): 0.9, ("a", "g"): 0.9, ("b", "f"): 0.5, ("c", "g"): 0.5},
        prior={"a": 0.0, "b": 1e-250, "c": 1e-250},
    )
    evidence, log_p = {"f": 1, "g": 1}, 2.0 * np.log(0.5e-250)
    assert sb.log_likelihood(net, evidence) == pytest.approx(log_p, rel=1e-13)
    assert sb.exact_posterior(net, evidence)["a"] == 0.0
    assert log_p - 10.0 < sb.infer(net, evidence).bound <= log_p
    for options in ({}, {"proven": True}, {"settings": CertifySettings(exact_up_to=0)}):
        found = sb.certify(net, evidence, **options)
        assert found.lower <= log_p + 1e-9 <= found.upper + 2e-9
    assert sb.most_probable(net, evidence)["a"] == 0


def test_sigmoid_thresholds_of_probability_zero_and_one_are_certain_in_sums():
    """Either cause brings y for certain, and without one it cannot be; z tells that there was none, in vain."""
    net = sb.from_probabilities(
        {("a", "y"): 1.0, ("b", "y"): 0.5, ("y", "z"): {"low": 0.5}, ("a", "z"): {"low": 0.5}},
        leak={"y": 0.0, "z": {"low": 0.1}},
        prior={"a": 1e-250, "b": 0.0},
        states={"z": ["none", "low", "high"]},
    )
    assert sb.log_likelihood(net, {"y": 1}) == pytest.approx(np.log(1e-250))
    assert sb.log_likelihood(net, {"y": 0, "a": 1}) == -np.inf
    assert sb.exact_posterior(net, {"y": 1})["a"] == 1.0


def test_what_only_a_sum_finds_impossible_has_no_bound_and_no_best_state():
    """f is high by a or by c, and each of the two rules out one of the states that x is left with."""
    net = sb.from_edges(
        {("a", "f"): [[0.0], [1.0]], ("c", "f"): [[0.0], [1.0]], ("a", "x"): None, ("c", "x"): None},
        bias={"a": -1.0, "c": -1.0, "f": [0.0, 0.0]},
        gate={"f": "noisy-or"},
        states={"f": ["none", "mild", "high"]},
        tables={"x": [[[0.5, 0.5], [1.0, 0.0]], [[1.0, 0.0], [1.0, 0.0]]]},
    )
    evidence = {"f": "high", "x": 1}
    assert sb.log_likelihood(net, evidence) == -np.inf
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        assert sb.infer(net, evidence).bound == -np.inf
    assert sb.most_probable(net, evidence).log_p == -np.inf
    assert sb.certify(net, evidence).upper == -np.inf


def test_the_divergence_from_what_cannot_be_is_infinite():
    net, evidence = two(-2.0)
    assert sb.kl(net, evidence, [0.5, 0.5, 1.0, 1.0]) == np.inf
    assert np.isfinite(sb.kl(net, evidence, [1.0, 1.0, 1.0, 1.0]))
