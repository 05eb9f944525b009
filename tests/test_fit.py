"""Learning: the bound is climbed, from tables with holes, and the same seed gives the same weights."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest
from numpy.testing import assert_allclose

import sbnet as sb
from sbnet.errors import ParameterError

TERMS = ("xi", "exact", "quadratic", "jensen")


@pytest.fixture(scope="module")
def data():
    truth = sb.layered((2, 8), rng=0, scale=3.0)
    return sb.sample(truth, 300, rng=1)[:, 2:].astype(float)


def start(autoregressive=False):
    return sb.layered((2, 8), rng=2, scale=0.1, autoregressive=autoregressive)


@pytest.mark.parametrize("log_term", TERMS)
def test_full_batch_ascent_with_a_small_rate_never_falls(data, log_term):
    solver = sb.MeanField(log_term=log_term, tol=1e-8, enumerate_up_to=0)
    result = sb.fit(start(), data[:60], epochs=12, optimizer=sb.SGD(0.2), batch_size=60, solver=solver, rng=0)
    assert np.all(np.diff(result.bounds) > -1e-7)
    assert result.bounds[-1] > result.bounds[0] + 0.1


def test_one_pattern_at_a_time_is_the_papers_procedure(data):  # eqs. (25)-(26), one step worked out by hand
    network, solver = start(), sb.MeanField(log_term="xi", tol=1e-9)
    slope = sb.gradient(network, data[:1], solver=solver)
    result = sb.fit(network, data[:1], epochs=1, optimizer=sb.SGD(0.05), solver=solver)
    assert_allclose(result.network.weight, network.weight + 0.05 * slope.weight, atol=1e-12)
    assert_allclose(result.network.bias, network.bias + 0.05 * slope.bias, atol=1e-12)


def test_the_bound_rises_and_beats_independent_units(data):
    result = sb.fit(start(), data, epochs=20, rng=0)
    p = data.mean(axis=0)
    independent = np.mean(data * np.log(p) + (1 - data) * np.log(1 - p), axis=0).sum()
    assert sb.log_likelihood(result.network, data).mean() > independent + 0.1


@pytest.mark.parametrize("batch_size", [1, 7, 100])
def test_the_same_seed_gives_the_same_weights_with_any_number_of_threads(data, batch_size):
    one, two = (
        sb.fit(start(), data[:100], epochs=2, batch_size=batch_size, rng=5, threads=threads).network
        for threads in (1, 2)
    )
    assert one == two
    assert one != sb.fit(start(), data[:100], epochs=2, batch_size=batch_size, rng=6).network


def test_holes_are_not_filled_but_left_out(data):
    holes = np.where(np.random.default_rng(3).random(data.shape) < 0.3, np.nan, data)
    holes[5] = np.nan
    result = sb.fit(start(autoregressive=True), holes, epochs=10, rng=0)
    assert np.all(np.isfinite(result.network.weight))
    assert result.bounds[-1] > result.bounds[0]
    nothing = sb.fit(start(), np.full((4, 8), np.nan), epochs=2, rng=0)
    assert nothing.network == start()  # rows without evidence teach nothing


def test_without_hidden_units_it_finds_the_logistic_regressions():
    rng = np.random.default_rng(0)
    data = (rng.random((400, 3)) < [0.2, 0.5, 0.9]).astype(float)
    network = sb.layered((3,), rng=0)
    optimizer = sb.SGD(1.0, momentum=0.5)
    result = sb.fit(network, data, epochs=200, batch_size=400, optimizer=optimizer, rng=0)
    p = data.mean(axis=0)
    assert_allclose(result.network.bias, np.log(p / (1 - p)), atol=1e-3)


@pytest.mark.parametrize("optimizer", [sb.SGD(0.1, momentum=0.8), sb.SGD(0.3, decay=0.5), sb.Adam(0.05)])
def test_optimisers_climb(data, optimizer):
    result = sb.fit(start(), data, epochs=6, batch_size=20, optimizer=optimizer, rng=0)
    assert result.bounds[-1] > result.bounds[0] + 0.2


@pytest.mark.parametrize("optimizer", [sb.SGD(0.4, until=4), sb.Adam(0.4, until=4)])
def test_the_rate_may_fall_along_a_straight_line(optimizer):
    moves = [optimizer.step(np.ones(1), optimizer.init(1), epoch)[0][0] for epoch in range(6)]
    assert_allclose(moves, [0.4, 0.3, 0.2, 0.1, 0.0, 0.0], atol=1e-7)


def test_steps_of_the_optimisers_worked_out_by_hand():
    slope = np.array([2.0, -1.0])
    optimizer = sb.SGD(0.1, momentum=0.5, decay=1.0)
    first, state = optimizer.step(slope, optimizer.init(2), 0)
    second, _ = optimizer.step(slope, state, 1)
    assert_allclose(first, 0.1 * slope)
    assert_allclose(second, 0.05 * slope + 0.5 * first)
    optimizer = sb.Adam(0.1)
    first, state = optimizer.step(slope, optimizer.init(2), 0)
    second, _ = optimizer.step(-slope, state, 0)
    assert_allclose(first, [0.1, -0.1])
    mean = (0.9 * 0.1 - 0.1) / (1 - 0.9**2)  # of a gradient that has turned round; its square has not changed
    assert_allclose(second, 0.1 * mean * np.sign(slope), rtol=1e-6)


def test_adam_may_measure_each_parameter_in_a_unit_of_its_own():
    """The steps are those of Adam in x / scale."""
    scale, gradients = np.array([2.0, 0.5]), np.array([[2.0, -1.0], [1.0, 3.0]])
    plain, scaled = sb.Adam(0.1), sb.Adam(0.1, scale=scale)
    before, after = plain.init(2), scaled.init(2)
    for gradient in gradients:
        move, before = plain.step(scale * gradient, before, 0)
        found, after = scaled.step(gradient, after, 0)
        assert_allclose(found, scale * move)
        assert_allclose(scaled.size(after, 0), scale**2 * plain.size(before, 0))
    with pytest.raises(ParameterError, match="scale is .*; give one positive number for each parameter, weights first"):
        sb.Adam(scale=[1.0, 0.0])


@pytest.mark.parametrize("prior", [sb.Gaussian(0.05), sb.Laplace(0.01)])
def test_priors_hold_weights_small(data, prior):
    free, held = (sb.fit(start(), data, epochs=15, prior=p, rng=0).network for p in (None, prior))
    assert np.abs(held.weight).mean() < 0.7 * np.abs(free.weight).mean()


def test_a_weight_of_two_counts_like_a_row_given_twice(data):
    weight = np.ones(20)
    weight[:5] = 2.0
    double = np.concatenate([data[:20], data[:5]])
    solver = sb.MeanField(log_term="xi", tol=1e-10)
    a = sb.fit(start(), data[:20], epochs=3, batch_size=20, sample_weight=weight, solver=solver, rng=0)
    b = sb.fit(start(), double, epochs=3, batch_size=25, solver=solver, rng=0)
    assert_allclose(a.network.weight, b.network.weight, atol=1e-6)


def test_frozen_parameters_stay(data):
    network = start()
    result = sb.fit(network, data[:50], epochs=2, frozen=["x0", ("h1_0", "x3")], optimizer=sb.Adam(0.1), rng=0)
    j = result.network.weight_matrix()
    assert result.network.bias[network.index("x0")] == network.bias[network.index("x0")]
    assert j[network.index("x3"), network.index("h1_0")] == network.weight_matrix()[5, 0]
    assert j[network.index("x3"), network.index("h1_1")] != network.weight_matrix()[5, 1]
    unit = np.arange(network.n_units) == network.index("x0")
    edge = (network.graph.parent == network.index("h1_0")) & (network.graph.child_of_edge == network.index("x3"))
    mask = np.r_[edge, unit]  # weights first
    assert sb.fit(network, data[:50], epochs=2, frozen=mask, optimizer=sb.Adam(0.1), rng=0).network == result.network


def test_held_out_rows_choose_the_epoch(data):
    few = data[:12]  # overfitted soon
    result = sb.fit(
        sb.layered((6, 8), rng=2), few, epochs=200, validation=data[200:], patience=5, optimizer=sb.SGD(0.3), rng=0
    )
    assert len(result.bounds) < 200
    assert result.best_epoch == np.argmax(result.held_out) + 1
    solver = sb.MeanField(log_term="xi", tol=1e-3)
    assert_allclose(sb.infer_many(result.network, data[200:], solver=solver).bound.mean(), result.held_out.max())
    part = sb.fit(start(), data, epochs=2, validation=0.25, rng=0)
    assert len(part.held_out) == 2


def test_callbacks_and_interruption_return_what_was_reached(data):
    seen = []

    def stop(epoch, network, bound):
        seen.append((epoch, network, bound))
        if epoch == 3:
            raise KeyboardInterrupt

    result = sb.fit(start(), data[:50], epochs=10, callbacks=[stop], rng=0)
    assert result.interrupted
    assert [epoch for epoch, _, _ in seen] == [1, 2, 3]
    assert result.network == seen[-1][1]
    assert "(interrupted)" in repr(result)


def test_the_result_prints_and_plots(data):
    result = sb.fit(start(), data[:50], epochs=2, validation=0.2, rng=0)
    assert repr(result).startswith("FitResult: 2 epochs in ")
    ax = result.plot()
    assert [line.get_label() for line in ax.lines] == ["bound", "bound, held-out rows"]
    assert len({line.get_marker() for line in ax.lines}) == 2  # told apart without their colours
    assert_allclose(ax.lines[0].get_ydata(), result.bounds)
    ax.figure.clear()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"epochs": 0}, "epochs is 0; it must be a whole number, one or more"),
        ({"batch_size": 2.5}, "batch_size is 2.5; it must be a whole number"),
        ({"patience": 3}, "patience watches held-out rows; give some with validation="),
        ({"validation": 1.5}, "validation is 1.5; it must lie between 0 and 1"),
        ({"sample_weight": [1, 2]}, r"sample_weight is \[1, 2\]; it must hold 300 numbers"),
        ({"frozen": [("x0", "x1")]}, "there is no edge 'x0' -> 'x1' to freeze"),
        ({"frozen": np.zeros(3, dtype=bool)}, r"the mask of frozen has shape \(3,\); expected \(26,\), weights first"),
    ],
)
def test_bad_arguments_are_refused(data, arguments, message):
    with pytest.raises(sb.errors.ParameterError, match=message):
        sb.fit(start(), data, **arguments)


def test_bad_settings_are_refused():
    for make, message in (
        (lambda: sb.SGD(0.0), "rate is 0.0; it must be positive"),
        (lambda: sb.SGD(0.1, momentum=1.0), "momentum is 1.0"),
        (lambda: sb.Adam(beta1=-0.1), "beta1 is -0.1"),
        (lambda: sb.SGD(decay=-1.0), "decay is -1.0"),
        (lambda: sb.Adam(until=0), "until is 0; it must be a whole number, one or more"),
        (lambda: sb.Gaussian(0.0), "the scales of a prior are positive"),
    ):
        with pytest.raises(sb.errors.ParameterError, match=message):
            make()
    with pytest.raises(sb.errors.ParameterError, match="there are no rows to learn from"):
        sb.fit(start(), np.empty((0, 8)))


def test_the_exact_log_likelihood_runs_above_the_bound(data):  # the two curves of Figure 6
    result = sb.fit(start(), data[:60], epochs=3, batch_size=10, log_likelihood=True, rng=0)
    assert np.all(result.bounds <= result.log_likelihood)
    assert result.log_likelihood[-1] == pytest.approx(sb.log_likelihood(result.network, data[:60]).mean())
    solver = sb.MeanField(log_term="xi", tol=1e-3)
    assert result.bounds[-1] == pytest.approx(sb.infer_many(result.network, data[:60], solver=solver).bound.mean())
    assert [line.get_label() for line in result.plot().lines] == ["log-likelihood, exact", "bound"]
    assert sb.fit(start(), data[:5], epochs=1).log_likelihood is None
    with pytest.raises(sb.errors.TooManyHiddenError, match="exact enumeration over 30 hidden variables"):
        sb.fit(sb.layered((30, 8), rng=0), data[:5], epochs=1, log_likelihood=True)


def test_a_prior_may_have_a_scale_for_each_edge(data):
    network = start()
    scale = np.where(np.arange(network.n_edges) < 8, 1e-3, 1e3)
    prior = sb.Gaussian(scale)
    assert prior == sb.Gaussian(scale.tolist())
    np.testing.assert_allclose(prior.gradient(network.weight, network.bias)[:16], -network.weight / scale**2)
    np.testing.assert_allclose(
        sb.Laplace(scale).gradient(network.weight, network.bias)[:16], -np.sign(network.weight) / scale
    )
    learned = sb.fit(network, data, epochs=20, batch_size=20, optimizer=sb.Adam(0.02), prior=prior, rng=0).network
    assert np.abs(learned.weight[:8]).max() < 0.05 < 0.5 < np.abs(learned.weight[8:]).max()
    with pytest.raises(ParameterError, match="the prior has 3 scales, but the network has 16 edges"):
        sb.fit(network, data, prior=sb.Gaussian([1.0, 1.0, 1.0]))
    with pytest.raises(ParameterError, match="scale is -1.0 among its numbers; the scales of a prior are positive"):
        sb.Gaussian([1.0, -1.0])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"optimizer": "adam"}, r"optimizer is 'adam'; give an optimiser, such as sbnet.SGD\(0.05\) or sbnet.Adam\(\)"),
        ({"solver": sb.Gibbs()}, r"solver is Gibbs\(.*\); learning needs a solver whose bound has a gradient"),
        ({"prior": 1.0}, r"prior is 1.0; give a prior, such as sbnet.Gaussian\(1.0\)"),
        ({"callbacks": print}, "callbacks is a function; give a list of them"),
    ],
)
def test_helpers_of_the_wrong_kind_are_refused(data, settings, message):
    with pytest.raises(ParameterError, match=message):
        sb.fit(start(), data, **settings)
    with pytest.raises(ParameterError, match="solver is 'gibbs'; give a solver, such as"):
        sb.infer(start(), {}, solver="gibbs")


@dataclass(frozen=True)
class Wrapped:
    """A climber of one's own, which notes where it starts."""

    starts: list = field(default_factory=list, repr=False)
    inner: sb.MeanField = field(default_factory=lambda: sb.MeanField(log_term="xi", tol=1e-3))

    def solve(self, network, states, *, start, trace):
        return self.inner.solve(network, states, start=start, trace=trace)

    def maximise(self, model, bias, states, start, *, row_weight=None, trace=False):
        self.starts.append(start)
        return self.inner.maximise(model, bias, states, start, row_weight=row_weight, trace=trace)


def test_any_climber_can_learn(data, tmp_path):
    mine: sb.solvers.DifferentiableSolver = Wrapped()
    settings = {"epochs": 2, "batch_size": 7, "validation": 0.2, "rng": 0}
    learned = sb.fit(start(), data[:50], solver=mine, **settings)
    assert learned.network == sb.fit(start(), data[:50], **settings).network
    slope = sb.gradient(start(), data[:5], solver=mine)
    assert np.array_equal(slope.weight, sb.gradient(start(), data[:5], solver=mine.inner).weight)
    path = tmp_path / "run"
    sb.fit(start(), data[:50], solver=Wrapped(), checkpoint=path, **{**settings, "epochs": 1})
    assert sb.fit(start(), data[:50], solver=Wrapped(), resume=path, **settings).network == learned.network
    with pytest.raises(ParameterError, match=r"its maximise\(\) gives no gradient, though row_weight"):
        sb.fit(start(), data[:2], solver=Silent())


class Silent(Wrapped):
    def maximise(self, model, bias, states, start, *, row_weight=None, trace=False):
        return super().maximise(model, bias, states, start)


def test_the_first_epoch_has_no_starting_point_and_later_ones_the_means_before(data):
    mine = Wrapped()
    sb.fit(start(), data[:6], epochs=2, batch_size=3, shuffle=False, solver=mine)
    assert mine.starts[:2] == [None, None]
    first = sb.infer_many(start(), data[:3], solver=mine.inner).means
    assert np.array_equal(mine.starts[2], first)


def test_a_network_is_made_for_each_epoch_and_not_for_each_row(data, monkeypatch):
    made, make = [], sb.Network.with_parameters
    monkeypatch.setattr(sb.Network, "with_parameters", lambda *a, **k: made.append(1) or make(*a, **k))
    sb.fit(start(), data[:40], epochs=3)
    assert len(made) <= 2 * 3 + 1


def test_weights_that_run_away_are_told_in_the_step_where_they_do(data):
    mine = Wrapped()
    with pytest.raises(sb.errors.NetworkError, match="weight|bias"):
        sb.fit(start(), data[:40], epochs=1, optimizer=sb.SGD(1e12), solver=mine)
    assert len(mine.starts) == 1
