"""Shared latent variables marginalised: the likelihood itself and its gradient, and what is left to other solvers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import oracle
import sbnet as sb
from sbnet.estimators import SBNDensity, _learning
from sbnet.inference.solvers.column_sums import ColumnSums, marginalising, plan_of
from strategies import INTERPRETED

pytestmark = pytest.mark.small


@st.composite
def shared(draw, scales=(0.5, 3.0, 40.0, 300.0)):
    """Latent variables above columns with autoregressive edges, some with mixtures, some edges gone; and rows."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    latents, width = draw(st.integers(0, 3)), draw(st.integers(1, 5))
    scale = draw(st.sampled_from(scales))
    sizes = (latents, width) if latents else (width,)
    net = sb.layered(sizes, autoregressive=True, rng=rng, scale=scale)
    names = net.names[latents:]
    fan_in = np.diff(net.graph.indptr)[latents:]
    chosen = [name for name, n in zip(names, fan_in, strict=True) if n and rng.random() < 0.6]
    net = sb.add_column_mixtures(
        net, units=chosen, count=draw(st.integers(1, 2)), rng=rng, scale=scale, strength=rng.normal() * 3
    )
    matrix = net.weight_matrix() * (rng.random((net.n_units, net.n_units)) < draw(st.sampled_from([1.0, 0.7])))
    net = sb.from_weight_matrix(matrix, bias=net.bias + rng.normal(size=net.n_units), names=net.names)
    columns = np.array([net.index(name) for name in names])
    states = np.full((6, net.n_units), -1, np.int8)
    states[:, columns] = rng.integers(0, 2, (6, width))
    return net, columns, states


@given(shared())
@settings(max_examples=60, deadline=None)
def test_sums_are_likelihoods_from_below(case):
    net, columns, states = case
    found = marginalising(net, columns, sb.MeanField()).solve(net, states, start=None, trace=False)
    truth, means = sb.log_likelihood(net, states), sb.exact_posterior(net, states).means
    assert np.all(found.bound <= truth + 1e-13 * np.abs(truth))
    assume(np.abs(net.weight).sum() + np.abs(net.bias).sum() < 290)  # nothing is left to mean field theory
    assert_allclose(found.bound, truth, atol=1e-9)
    assert_allclose(found.means, means, atol=1e-9)


@given(shared(scales=(0.5, 3.0)), st.floats(-2.0, 2.0))
@settings(max_examples=3 if INTERPRETED else 30, deadline=None)
def test_gradients_of_sums_are_differences(case, weight):
    net, columns, states = case
    assume(np.abs(net.weight).sum() + np.abs(net.bias).sum() < 290 and net.n_edges)
    solver, row_weight = marginalising(net, columns, sb.MeanField()), np.array([1.0, 0.5, weight, 0.0, 1.0, 2.0])
    _, gradient = solver.maximise(net.model, net.bias, states, None, row_weight=row_weight)

    def total(weight, bias):
        return row_weight @ solver.maximise(net.model._replace(weight=weight), bias, states, None)[0].bound

    step = 1e-5
    for e in range(net.n_edges):
        move = step * (np.arange(net.n_edges) == e)
        assert gradient.weight[e] == pytest.approx(
            (total(net.weight + move, net.bias) - total(net.weight - move, net.bias)) / (2 * step), abs=1e-4
        )
    for i in range(net.n_units):
        move = step * (np.arange(net.n_units) == i)
        assert gradient.bias[i] == pytest.approx(
            (total(net.weight, net.bias + move) - total(net.weight, net.bias - move)) / (2 * step), abs=1e-4
        )


@pytest.mark.parametrize(("mixtures", "count"), [(0, 1), (5, 1), (5, 2)])
def test_many_columns_and_states_are_summed_as_the_equations_say(mixtures, count):
    """More rows than go together, more states than lanes, and products that would be too large as one number."""
    rng = np.random.default_rng(3)
    net = sb.layered((4, 110), autoregressive=True, rng=rng, scale=7.0)
    net = sb.add_column_mixtures(
        net, units=net.names[20 : 20 + mixtures], count=count, rng=rng, scale=2.0, strength=3.0
    )
    columns = np.array([k for k, name in enumerate(net.names) if name.startswith("x") and "." not in name])
    states = np.full((11, net.n_units), -1, np.int8)
    states[:, columns] = rng.integers(0, 2, (11, 110))
    row_weight = rng.normal(size=11)
    found, gradient = marginalising(net, columns, sb.MeanField()).maximise(
        net.model, net.bias, states, None, row_weight=row_weight
    )
    J, evidence = net.weight_matrix(), np.where(states < 0, np.nan, states)
    assert_allclose(found.bound, [oracle.log_likelihood(J, net.bias, row) for row in evidence], rtol=1e-12)
    parts = [oracle.slopes(J, net.bias, row) for row in evidence]
    weight = sum(w * part[0] for w, part in zip(row_weight, parts, strict=True))
    bias = sum(w * part[1] for w, part in zip(row_weight, parts, strict=True))
    child, parent = net.graph.child_of_edge, net.graph.parent
    assert_allclose(gradient.weight, weight[child, parent], atol=1e-4)  # states that hardly count are left out
    assert_allclose(gradient.bias, bias, atol=1e-4)


@pytest.mark.parametrize("count", [0, 1, 2])
def test_inputs_too_large_to_multiply_at_once_are_still_marginalised(count):
    rng = np.random.default_rng(2)
    net = sb.layered((2, 6), autoregressive=True, rng=rng, scale=2.0)
    if count:
        net = sb.add_column_mixtures(net, units=net.names[3:], count=count, rng=rng, scale=2.0, strength=3.0)
    columns = np.array([net.index(f"x{k}") for k in range(6)])
    bias = net.bias.copy()
    bias[columns] = [200.0, -190.0, 210.0, -180.0, 5.0, 200.0]
    net = net.with_parameters(weight=net.weight, bias=bias)
    states = np.full((5, net.n_units), -1, np.int8)
    states[:, columns] = rng.integers(0, 2, (5, 6))
    solver = marginalising(net, columns, None)  # nothing is left to another
    found, gradient = solver.maximise(net.model, net.bias, states, None, row_weight=np.ones(5))
    J, evidence = net.weight_matrix(), np.where(states < 0, np.nan, states)
    assert_allclose(found.bound, [oracle.log_likelihood(J, bias, row) for row in evidence], rtol=1e-12, atol=1e-13)
    weight, own = (sum(parts) for parts in zip(*[oracle.slopes(J, bias, row) for row in evidence], strict=True))
    assert_allclose(gradient.weight, weight[net.graph.child_of_edge, net.graph.parent], atol=1e-4)
    assert_allclose(gradient.bias, own, atol=1e-4)


@pytest.mark.parametrize(("latents", "mixtures"), [(4, 0), (2, 1), (0, 1), (0, 2), (1, 2)])
@pytest.mark.parametrize("scale", [2.0, 40.0])
def test_rows_have_the_same_bits_alone_and_with_others(latents, mixtures, scale):
    rng = np.random.default_rng(1)
    net = sb.layered((latents, 21) if latents else (21,), autoregressive=True, rng=rng, scale=scale)
    names = net.names[latents:]
    if mixtures:
        net = sb.add_column_mixtures(net, units=names[5:], count=mixtures, rng=rng, scale=2.0, strength=3.0)
    columns = np.array([net.index(name) for name in names])
    states = np.full((35, net.n_units), -1, np.int8)
    states[:, columns] = rng.integers(0, 2, (35, 21))
    solver = marginalising(net, columns, sb.MeanField())
    together = solver.solve(net, states, start=None, trace=False)
    alone = [solver.solve(net, states[k : k + 1], start=None, trace=False) for k in range(35)]
    np.testing.assert_array_equal(together.bound, np.concatenate([one.bound for one in alone]))
    np.testing.assert_array_equal(together.means, np.concatenate([one.means for one in alone]))


@pytest.mark.parametrize("latents", [0, 1])
def test_states_that_fill_lanes_never_count_however_improbable_a_row_is(latents):
    width = 2600
    matrix = np.zeros((latents + width, latents + width))
    matrix[latents : latents + 2, :latents] = 1.0
    net = sb.from_weight_matrix(matrix, bias=np.repeat([0.0, -290.0], [latents, width]))
    states = np.array([[-1] * latents + [1] * width], np.int8)
    found = marginalising(net, np.arange(latents, net.n_units), sb.MeanField()).solve(
        net, states, start=None, trace=False
    )
    truth = sb.log_likelihood(net, states)
    assert truth[0] < -750_000
    assert found.bound[0] <= truth[0]
    assert_allclose(found.bound, truth, rtol=1e-6)


def test_rows_with_missing_values_and_other_networks_are_left_to_mean_field_theory():
    net = sb.layered((2, 4), autoregressive=True, rng=0, scale=2.0)
    columns, states = np.arange(2, 6), np.array([[-1, -1, 1, 0, 1, 1], [-1, -1, 1, -1, 1, 0]], np.int8)
    plain = sb.MeanField(log_term="xi")
    both, gradient = marginalising(net, columns, plain).maximise(
        net.model, net.bias, states, None, row_weight=np.ones(2)
    )
    alone, more = plain.maximise(net.model, net.bias, states[1:], None, row_weight=np.ones(1))
    assert both.bound[1] == alone.bound[0]
    assert_allclose(both.means[1], alone.means[0])
    first, rest = marginalising(net, columns, plain).maximise(
        net.model, net.bias, states[:1], None, row_weight=np.ones(1)
    )
    assert both.bound[0] == first.bound[0]
    assert_allclose(gradient.weight, more.weight + rest.weight)
    assert plan_of(sb.layered((2, 2, 4)), np.arange(4, 8)) is None
    assert plan_of(sb.layered((11, 4)), np.arange(11, 15)) is None
    many = sb.add_column_mixtures(sb.layered((10, 2), autoregressive=True), count=2)
    assert plan_of(many, np.array([many.index("x0"), many.index("x1")])) is None
    assert plan_of(sb.noisy_or(causes={("a", "b"): 0.5}, prior={"a": 0.5}), np.array([1])) is None


def test_a_density_scores_with_sums_unless_a_solver_is_given():
    rng = np.random.default_rng(0)
    table = (rng.random((120, 5)) < 0.4).astype(float)
    density = SBNDensity(hidden=2, column_mixtures=1, epochs=2, random_state=0).fit(table)
    solver = _learning.solver_for(density._settings(), density.network_, density._names())
    assert isinstance(solver, ColumnSums)
    exact = [sb.log_likelihood(density.network_, {f"x{k}": int(v) for k, v in enumerate(row)}) for row in table[:9]]
    assert_allclose(density.score_samples(table[:9]), exact, atol=1e-9)
    assert np.all(density.score_samples(table[:9]) <= exact)
    paper = density.set_params(solver=sb.MeanField(log_term="xi", enumerate_up_to=0)).score_samples(table[:9])
    assert np.all(paper < exact)
