"""Sums over a few hidden roots: the likelihood itself and its gradient, and what is left to mean field theory."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import oracle
import sbnet as sb
from sbnet.estimators import SBNDensity, _learning
from sbnet.estimators.marginal import SharedLatents, marginalising, plan_of

pytestmark = pytest.mark.small


@st.composite
def crowned(draw, scales=(0.5, 3.0, 40.0, 300.0)):
    """Roots above columns with autoregressive edges, some with switches, some edges gone; and rows of columns."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    roots, width = draw(st.integers(0, 3)), draw(st.integers(1, 5))
    scale = draw(st.sampled_from(scales))
    sizes = (roots, width) if roots else (width,)
    net = sb.layered(sizes, autoregressive=True, rng=rng, scale=scale)
    names = net.names[roots:]
    fan_in = np.diff(net.graph.indptr)[roots:]
    chosen = [name for name, n in zip(names, fan_in, strict=True) if n and rng.random() < 0.6]
    net = sb.add_column_mixtures(net, units=chosen, rng=rng, scale=scale, strength=rng.normal() * 3)
    matrix = net.weight_matrix() * (rng.random((net.n_units, net.n_units)) < draw(st.sampled_from([1.0, 0.7])))
    net = sb.from_weight_matrix(matrix, bias=net.bias + rng.normal(size=net.n_units), names=net.names)
    columns = np.array([net.index(name) for name in names])
    states = np.full((6, net.n_units), -1, np.int8)
    states[:, columns] = rng.integers(0, 2, (6, width))
    return net, columns, states


@given(crowned())
@settings(max_examples=60, deadline=None)
def test_sums_are_likelihoods_from_below(case):
    net, columns, states = case
    found = marginalising(net, columns, sb.MeanField()).solve(net, states, start=None, trace=False)
    truth, means = sb.log_likelihood(net, states), sb.exact_posterior(net, states).means
    assert np.all(found.bound <= truth + 1e-13 * np.abs(truth))
    if np.abs(net.weight).sum() + np.abs(net.bias).sum() < 140:  # nothing is left to mean field theory
        assert_allclose(found.bound, truth, atol=1e-9)
        assert_allclose(found.means, means, atol=1e-9)


@given(crowned(scales=(0.5, 3.0)), st.floats(-2.0, 2.0))
@settings(max_examples=30, deadline=None)
def test_gradients_of_sums_are_differences(case, weight):
    net, columns, states = case
    assume(np.abs(net.weight).sum() + np.abs(net.bias).sum() < 140 and net.n_edges)
    solver, row_weight = marginalising(net, columns, sb.MeanField()), np.array([1.0, 0.5, weight, 0.0, 1.0, 2.0])
    _, slope = solver.maximise(net.model, net.bias, states, None, row_weight=row_weight)

    def total(weight, bias):
        return row_weight @ solver.maximise(net.model._replace(weight=weight), bias, states, None)[0].bound

    step = 1e-5
    for e in range(net.n_edges):
        move = step * (np.arange(net.n_edges) == e)
        assert slope.weight[e] == pytest.approx(
            (total(net.weight + move, net.bias) - total(net.weight - move, net.bias)) / (2 * step), abs=1e-4
        )
    for i in range(net.n_units):
        move = step * (np.arange(net.n_units) == i)
        assert slope.bias[i] == pytest.approx(
            (total(net.weight, net.bias + move) - total(net.weight, net.bias - move)) / (2 * step), abs=1e-4
        )


@pytest.mark.parametrize("switches", [0, 5])
def test_many_columns_and_states_are_summed_as_the_equations_say(switches):
    """More rows than go together, more states than lanes, and products that would be too large as one number."""
    rng = np.random.default_rng(3)
    net = sb.layered((4, 110), autoregressive=True, rng=rng, scale=7.0)
    net = sb.add_column_mixtures(net, units=net.names[20 : 20 + switches], rng=rng, scale=2.0, strength=3.0)
    columns = np.array([k for k, name in enumerate(net.names) if name.startswith("x") and "." not in name])
    states = np.full((11, net.n_units), -1, np.int8)
    states[:, columns] = rng.integers(0, 2, (11, 110))
    row_weight = rng.normal(size=11)
    found, slope = marginalising(net, columns, sb.MeanField()).maximise(
        net.model, net.bias, states, None, row_weight=row_weight
    )
    J, evidence = net.weight_matrix(), np.where(states < 0, np.nan, states)
    assert_allclose(found.bound, [oracle.log_likelihood(J, net.bias, row) for row in evidence], rtol=1e-12)
    parts = [oracle.slopes(J, net.bias, row) for row in evidence]
    weight = sum(w * part[0] for w, part in zip(row_weight, parts, strict=True))
    bias = sum(w * part[1] for w, part in zip(row_weight, parts, strict=True))
    child, parent = net.graph.child_of_edge, net.graph.parent
    assert_allclose(slope.weight, weight[child, parent], atol=1e-4)  # states that hardly count are left out
    assert_allclose(slope.bias, bias, atol=1e-4)


@pytest.mark.parametrize("roots", [0, 1])
def test_states_that_fill_lanes_never_count_however_unlikely_a_row_is(roots):
    width = 2600
    matrix = np.zeros((roots + width, roots + width))
    matrix[roots : roots + 2, :roots] = 1.0
    net = sb.from_weight_matrix(matrix, bias=np.repeat([0.0, -290.0], [roots, width]))
    states = np.array([[-1] * roots + [1] * width], np.int8)
    found = marginalising(net, np.arange(roots, net.n_units), sb.MeanField()).solve(
        net, states, start=None, trace=False
    )
    truth = sb.log_likelihood(net, states)
    assert truth[0] < -750_000
    assert found.bound[0] <= truth[0]
    assert_allclose(found.bound, truth, rtol=1e-6)


def test_rows_with_holes_and_other_networks_are_left_to_mean_field_theory():
    net = sb.layered((2, 4), autoregressive=True, rng=0, scale=2.0)
    columns, states = np.arange(2, 6), np.array([[-1, -1, 1, 0, 1, 1], [-1, -1, 1, -1, 1, 0]], np.int8)
    plain = sb.MeanField(log_term="xi")
    both, slope = marginalising(net, columns, plain).maximise(net.model, net.bias, states, None, row_weight=np.ones(2))
    alone, more = plain.maximise(net.model, net.bias, states[1:], None, row_weight=np.ones(1))
    assert both.bound[1] == alone.bound[0]
    assert_allclose(both.means[1], alone.means[0])
    first, rest = marginalising(net, columns, plain).maximise(
        net.model, net.bias, states[:1], None, row_weight=np.ones(1)
    )
    assert both.bound[0] == first.bound[0]
    assert_allclose(slope.weight, more.weight + rest.weight)
    assert plan_of(sb.layered((2, 2, 4)), np.arange(4, 8)) is None
    assert plan_of(sb.layered((11, 4)), np.arange(11, 15)) is None
    two = sb.add_column_mixtures(sb.layered((1, 2), autoregressive=True), count=2)
    assert plan_of(two, np.array([two.index("x0"), two.index("x1")])) is None
    assert plan_of(sb.noisy_or(causes={("a", "b"): 0.5}, prior={"a": 0.5}), np.array([1])) is None


def test_a_density_scores_with_sums_unless_a_solver_is_given():
    rng = np.random.default_rng(0)
    table = (rng.random((120, 5)) < 0.4).astype(float)
    density = SBNDensity(hidden=2, column_mixtures=1, epochs=2, random_state=0).fit(table)
    solver = _learning.solver_for(density._settings(), density.network_, density._names())
    assert isinstance(solver, SharedLatents)
    exact = [sb.log_likelihood(density.network_, {f"x{k}": int(v) for k, v in enumerate(row)}) for row in table[:9]]
    assert_allclose(density.score_samples(table[:9]), exact, atol=1e-9)
    assert np.all(density.score_samples(table[:9]) <= exact)
    paper = density.set_params(solver=sb.MeanField(log_term="xi", enumerate_up_to=0)).score_samples(table[:9])
    assert np.all(paper < exact)
