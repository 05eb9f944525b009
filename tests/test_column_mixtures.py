"""Several mixture variables of each column marginalised: the likelihood itself and its gradient."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import sbnet as sb
from sbnet.estimators import SBNDensity
from sbnet.inference.solvers.column_sums import ColumnSums, marginalising, plan_of
from sbnet.inference.solvers.particles import log_probabilities, seeds_of_places, seeds_of_rows
from sbnet.parallel.blocks import Inline
from strategies import INTERPRETED

pytestmark = pytest.mark.small


@st.composite
def mixtures(draw, scales=(0.5, 3.0, 40.0, 300.0)):
    """Columns with autoregressive edges, and up to three mixture variables each; and rows of columns."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    width, scale = draw(st.integers(1, 4)), draw(st.sampled_from(scales))
    net = sb.layered((width,), autoregressive=True, rng=rng, scale=scale)
    names = net.names
    for count in (2, 1):
        units = [name for name in names if rng.random() < 0.5 and f"{name}.switch1" not in net.names]
        net = sb.add_column_mixtures(net, units=units, count=count, rng=rng, scale=scale, strength=rng.normal() * 3)
    net = net.with_parameters(weight=net.weight, bias=net.bias + rng.normal(size=net.n_units))
    columns = np.array([net.index(name) for name in names])
    states = np.full((6, net.n_units), -1, np.int8)
    states[:, columns] = rng.integers(0, 2, (6, width))
    return net, columns, states


@given(mixtures())
@settings(max_examples=60, deadline=None)
def test_sums_are_likelihoods_from_below(case):
    net, columns, states = case
    found = marginalising(net, columns, sb.MeanField()).solve(net, states, start=None, trace=False)
    truth, means = sb.log_likelihood(net, states), sb.exact_posterior(net, states).means
    assert np.all(found.bound <= truth + 1e-13 * np.abs(truth))
    assume(np.abs(net.weight).sum() + np.abs(net.bias).sum() < 290)  # nothing is left to mean field theory
    assert_allclose(found.bound, truth, atol=1e-9)
    assert_allclose(found.means, means, atol=1e-9)


@given(mixtures(scales=(0.5, 3.0)), st.floats(-2.0, 2.0))
@settings(max_examples=3 if INTERPRETED else 30, deadline=None)
def test_gradients_of_sums_are_differences(case, weight):
    net, columns, states = case
    assume(np.abs(net.weight).sum() + np.abs(net.bias).sum() < 290)
    solver, row_weight = marginalising(net, columns, sb.MeanField()), np.array([1.0, 0.5, weight, 0.0, 1.0, 2.0])
    _, gradient = solver.maximise(net.model, net.bias, states, None, row_weight=row_weight)
    n, step = net.n_edges, 1e-5
    everything = np.concatenate([net.weight, net.bias])

    def total(p):
        return row_weight @ solver.maximise(net.model._replace(weight=p[:n]), p[n:], states, None)[0].bound

    moves = step * np.eye(len(everything))
    differences = [(total(everything + move) - total(everything - move)) / (2 * step) for move in moves]
    assert_allclose(np.concatenate([gradient.weight, gradient.bias]), differences, atol=1e-4)


def test_other_networks_and_rows_with_missing_values_are_left_to_mean_field_theory():
    net = sb.add_column_mixtures(sb.layered((3,), autoregressive=True, rng=0, scale=2.0), count=2, rng=0)
    columns = np.array([net.index(f"x{k}") for k in range(3)])
    assert isinstance(marginalising(net, columns, sb.MeanField()), ColumnSums)
    states = np.full((2, net.n_units), -1, np.int8)
    states[:, columns] = [[1, 0, 1], [1, -1, 0]]
    plain = sb.MeanField(log_term="xi")
    both = marginalising(net, columns, plain).solve(net, states, start=None, trace=False)
    assert both.bound[1] == plain.solve(net, states[1:], start=None, trace=False).bound[0]
    assert both.bound[0] == pytest.approx(sb.log_likelihood(net, states[0]))
    assert plan_of(sb.layered((2, 2, 2)), np.arange(4, 6)) is None  # hidden children
    many = sb.add_column_mixtures(sb.layered((2,), autoregressive=True), count=7)
    assert plan_of(many, np.array([many.index("x0"), many.index("x1")])) is None
    assert plan_of(sb.noisy_or(causes={("a", "b"): 0.5}, prior={"a": 0.5}), np.array([1])) is None


def test_a_density_with_two_mixture_variables_scores_with_sums():
    rng = np.random.default_rng(0)
    table = (rng.random((120, 5)) < 0.4).astype(float)
    density = SBNDensity(hidden=0, column_mixtures=2, epochs=2, random_state=0).fit(table)
    exact = [sb.log_likelihood(density.network_, {f"x{k}": int(v) for k, v in enumerate(row)}) for row in table[:9]]
    assert_allclose(density.score_samples(table[:9]), exact, atol=1e-9)
    assert np.all(density.score_samples(table[:9]) <= exact)


@pytest.mark.skipif(INTERPRETED, reason="many particles take minutes without a compiler")
def test_estimates_for_rows_with_missing_values_are_right_in_the_mean():
    net = sb.add_column_mixtures(
        sb.layered((5,), autoregressive=True, rng=3, scale=2.0), count=2, rng=1, scale=2.0, strength=3.0
    )
    columns = np.array([net.index(f"x{k}") for k in range(5)])
    states = np.full((4, net.n_units), -1, np.int8)
    states[:, columns] = [[-1, 1, -1, 0, 1], [1, -1, -1, -1, 0], [1, 0, 0, 1, 1], [-1, -1, -1, -1, -1]]
    truth = sb.log_likelihood(net, states)
    many = estimates(net, states, 20_000)
    assert_allclose(many, truth, atol=0.03)
    assert_allclose(many[2:], truth[2:], atol=1e-9)  # nothing is drawn
    few = log_probabilities(
        net, np.repeat(states[:1], 3000, axis=0), seeds_of_places(0, 3000), number=5, executor=Inline()
    )
    error = np.std(np.exp(few)) / np.sqrt(len(few))
    assert abs(np.mean(np.exp(few)) - np.exp(truth[0])) < 4 * error  # with five particles each


def estimates(net, states, number):
    return log_probabilities(net, states, seeds_of_rows(0, states), number=number, executor=Inline())


def test_networks_with_other_hidden_units_are_estimated_with_all_of_them_drawn():
    net = sb.layered((2, 4), autoregressive=True, rng=0, scale=1.0)
    states = np.array([[-1, -1, 1, -1, 0, 1]], np.int8)
    found = estimates(net, states, 5_000)
    assert_allclose(found, sb.log_likelihood(net, states), atol=0.05)
