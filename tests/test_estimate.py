"""Estimates by sampling: unbiased, with an honest error, and a lower bound that holds as often as it says."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

import sbnet as sb
from sbnet.exact.enumeration import Reduced
from sbnet.inference.estimation import summary
from sbnet.inference.importance import log_weights
from strategies import cases

pytestmark = pytest.mark.filterwarnings("ignore::sbnet.errors.ConvergenceWarning")

both = pytest.mark.parametrize("options", [{}, {"method": "annealed", "steps": 5}], ids=["importance", "annealed"])


@both
@pytest.mark.parametrize("seed", range(6))
def test_the_mean_weight_is_the_probability(options, seed):
    network = sb.layered((2, 3, 4), rng=seed, scale=1.5, autoregressive=seed % 2 == 1)
    evidence = np.r_[np.full(5, np.nan), np.random.default_rng(seed).choice([0.0, 1.0, np.nan], 4)]
    estimate = sb.estimate(network, evidence, samples=50_000, rng=seed, **options)
    true = np.exp(sb.log_likelihood(network, evidence))
    assert abs(np.exp(estimate.log_probability) - true) <= 4.5 * estimate.error * true + 1e-12
    assert estimate.error < 0.03
    assert estimate.bound <= estimate.lower <= np.log(true) + 1e-12


@both
def test_bad_means_do_no_harm_to_the_mean(options):
    # Q far from the posterior: the weights vary more, but their mean is P(V) all the same
    class Wrong:
        def solve(self, network, states, *, start, trace):
            solution = sb.MeanField().solve(network, states, start=start, trace=trace)
            return replace(solution, means=np.where(states < 0, 1 - 0.8 * solution.means, states))

    network = sb.layered((2, 3, 4), rng=1, scale=1.0)
    true = sb.log_likelihood(network, np.zeros(4))
    estimate = sb.estimate(network, np.zeros(4), samples=50_000, solver=Wrong(), rng=1, **options)
    good = sb.estimate(network, np.zeros(4), samples=50_000, rng=1, **options)
    assert abs(estimate.log_probability - true) <= 4.5 * estimate.error + 1e-12
    assert estimate.effective_samples < good.effective_samples


def test_the_error_is_that_of_the_estimate():
    network = sb.layered((3, 6), rng=0, scale=1.5)
    true = sb.log_likelihood(network, np.zeros(6))
    estimates = [sb.estimate(network, np.zeros(6), samples=2000, rng=k) for k in range(200)]
    scaled = np.array([(np.exp(g.log_probability - true) - 1) / g.error for g in estimates])
    assert abs(scaled.mean()) < 0.25
    assert 0.85 < scaled.std() < 1.15


@pytest.mark.parametrize("delta", [0.3, 0.05])
def test_the_lower_bound_holds_as_often_as_it_says(delta):
    # weights from a distribution with a heavy tail: P is 1, and most draws are far below
    rng = np.random.default_rng(0)
    heavy = rng.normal(0.0, 2.0, (4000, 64)) - 2.0  # ln w; <w> = e^(-2 + 4/2) = 1
    log_mean, _, lower, _ = summary(heavy, delta)
    assert np.mean(lower > 0.0) <= delta
    assert np.mean(log_mean > 0.0) > 0.2  # the estimate itself is no bound
    light = rng.normal(0.0, 0.2, (1000, 1000)) - 0.02
    assert np.median(summary(light, delta)[2]) > -0.05  # with equal weights the loss nearly vanishes
    assert np.mean(summary(light, delta)[2] > 0.0) <= delta


def test_weights_are_bounded_by_the_defence():
    network = sb.layered((3, 5, 6), rng=2, scale=8.0)
    states = np.array([-1] * 8 + [1, 0, 1, 0, 1, 0], np.int8)
    row = Reduced(network, states)
    for defence in (0.1, 0.5):
        out = log_weights(row, np.full(14, 0.01), defence, np.uint64(1), 20_000)
        assert out.max() <= -np.log(defence) + 1e-12


@both
@given(case=cases(max_units=10))
@settings(max_examples=30)
def test_hostile_networks_give_finite_numbers(options, case):
    network, evidence = case
    estimate = sb.estimate(network, evidence, samples=16, **options)
    exact = sb.log_likelihood(network, evidence)
    numbers = (estimate.log_probability, estimate.error, estimate.lower, estimate.bound, estimate.effective_samples)
    assert np.all(np.isfinite(numbers))
    assert 1 - 1e-9 <= estimate.effective_samples <= 16 + 1e-9
    if not np.isnan(evidence).any():
        assert abs(estimate.log_probability - exact) <= 1e-9 * (1 + abs(exact))
        assert estimate.error <= 1e-9


def test_annealing_is_worth_its_steps():
    network = sb.layered((4, 8, 12), rng=3, scale=3.0)
    X = sb.sample(network, 5, rng=1)[:, -12:]
    short, long = (sb.estimate(network, X, samples=100, method="annealed", steps=k) for k in (2, 100))
    assert np.all(long.effective_samples > short.effective_samples)
    assert np.all(np.abs(long.log_probability - sb.log_likelihood(network, X)) < 6 * long.error + 0.01)


@both
def test_a_row_has_the_answer_it_would_have_alone(options):
    network = sb.layered((2, 3, 4), rng=0, scale=2.0)
    X = sb.sample(network, 12, rng=0)[:, -4:].astype(float)
    X[::3, 0] = np.nan
    table = sb.estimate(network, X, samples=50, rng=3, **options)
    assert table.log_probability.shape == table.lower.shape == (12,)
    again = sb.estimate(
        network,
        X[::-1],
        samples=50,
        rng=np.random.default_rng(3),
        settings=sb.solvers.EstimateSettings(threads=2),
        **options,
    )
    alone = [sb.estimate(network, row, samples=50, rng=3, **options) for row in X]
    for name in ("log_probability", "error", "lower", "bound", "effective_samples"):
        assert np.array_equal(getattr(table, name), getattr(again, name)[::-1])
        assert np.array_equal(getattr(table, name), [getattr(one, name) for one in alone])
    assert not np.array_equal(table.log_probability, sb.estimate(network, X, samples=50, rng=4).log_probability)
    assert all(table[r] == one for r, one in enumerate(alone))
    p, low = table.log_probability, table.lower
    lines = repr(table).splitlines()
    assert lines[:3] == [
        "Estimates: 12 rows, 50 samples each",
        f"  ln P ≈ mean {p.mean():.6g}, from {p.min():.6g} to {p.max():.6g} nats; "
        f"errors up to {table.error.max():.2g}, effective samples from {table.effective_samples.min():,.1f} up",
        f"  ln P ≥ mean {low.mean():.6g}, from {low.min():.6g} to {low.max():.6g} nats "
        "with 0.95 confidence in each row",
    ]
    assert lines[4].split() == ["0", f"{p[0]:.6g}", "±", f"{table.error[0]:.2g}", f"{low[0]:.6g}", lines[4].split()[-1]]
    assert lines[-1] == "  ... 7 more"
    empty = sb.estimate(network, np.empty((0, 4)), **options)
    assert len(empty) == len(empty.lower) == 0
    assert repr(empty) == "Estimates: 0 rows, 1,000 samples each"


def test_it_says_what_it_is(sprinkler):
    estimate = sb.estimate(sprinkler, {"wet": 1}, samples=1000)
    first, second = repr(estimate).splitlines()
    assert first.startswith(f"ln P ≈ {estimate.log_probability:.6g} ± ")
    assert first.endswith("effective of 1,000 samples")
    assert second == f"  ln P ≥ {estimate.lower:.6g} with 0.95 confidence, ≥ {estimate.bound:.6g} for certain"
    assert type(estimate.log_probability) is float


@pytest.mark.small
@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"samples": 1}, "samples is 1; it must be a whole number, 2 or more"),
        ({"steps": 0}, "steps is 0; it must be a whole number, one or more"),
        ({"method": "magic"}, "method is 'magic'; choose one of 'importance', 'annealed'"),
        ({"delta": 0.0}, "delta is 0.0; it must lie between 0 and 1"),
        (
            {"settings": {"threads": 1}},
            "settings is {'threads': 1}; write settings=EstimateSettings(threads=1), for example",
        ),
    ],
)
def test_settings_that_cannot_be_are_refused(sprinkler, arguments, text):
    with pytest.raises(sb.errors.ParameterError) as caught:
        sb.estimate(sprinkler, {"wet": 1}, **arguments)
    assert str(caught.value) == text
    with pytest.raises(sb.errors.ParameterError, match="defence is 1; it must lie between 0 and 1"):
        sb.solvers.EstimateSettings(defence=1)
