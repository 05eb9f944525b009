"""Gradients of the bound: eqs. (34)-(35) against finite differences, for every logarithm term."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import sbnet as sb
from sbnet.learning import gradient

TERMS = ("xi", "exact", "quadratic", "jensen")


def finite_differences(network, table, solver, step=1e-5):
    def total(weight, bias):
        return sb.infer_many(network.with_parameters(weight=weight, bias=bias), table, solver=solver).bound.sum()

    slopes = []
    for vector, make in (
        (network.weight, lambda w: (w, network.bias)),
        (network.bias, lambda b: (network.weight, b)),
    ):
        slope = np.empty(len(vector))
        for k in range(len(vector)):
            up, down = vector.copy(), vector.copy()
            up[k] += step
            down[k] -= step
            slope[k] = (total(*make(up)) - total(*make(down))) / (2 * step)
        slopes.append(slope)
    return slopes


@pytest.mark.parametrize("log_term", TERMS)
@pytest.mark.parametrize("enumerate_up_to", [0, 4])
@pytest.mark.parametrize("autoregressive", [False, True])
def test_gradient_is_the_slope_of_the_bound(log_term, enumerate_up_to, autoregressive):
    network = sb.layered((2, 5, 4), rng=3, scale=1.2, autoregressive=autoregressive)
    table = sb.sample(network, 5, rng=0).astype(float)
    table[:, :7] = np.nan  # hidden everywhere
    table[1, 8] = table[2, 10] = np.nan  # and some missing, differently in each row
    table[3, 3] = 1.0  # a hidden unit that someone has seen
    table[4] = np.nan
    solver = sb.MeanField(log_term=log_term, enumerate_up_to=enumerate_up_to, tol=1e-13, max_sweeps=5000)
    found = gradient(network, table, solver=solver)
    weight, bias = finite_differences(network, table, solver)
    assert_allclose(found.weight, weight, atol=2e-6)
    assert_allclose(found.bias, bias, atol=2e-6)
    assert_allclose(found.bound, sb.infer_many(network, table, solver=solver).bound)


def test_without_hidden_units_it_is_the_gradient_of_logistic_regressions():
    network = sb.layered((4,), rng=0, autoregressive=True)
    table = np.array([[0, 1, 1, 0], [1, 1, 0, 1], [1, 0, 0, 1]])
    z = table @ network.weight_matrix().T + network.bias
    error = table - 1 / (1 + np.exp(-z))
    found = gradient(network, table)
    assert_allclose(found.bias, error.sum(axis=0), atol=1e-12)
    parents, children = network.graph.parent, np.repeat(np.arange(4), np.diff(network.graph.indptr))
    assert_allclose(found.weight, (error.T @ table)[children, parents], atol=1e-12)


def test_rows_count_by_their_weight_and_threads_do_not_count():
    network = sb.layered((3, 6), rng=1, scale=1.0)
    table = sb.sample(network, 150, rng=2)[:, 3:]
    double = gradient(network, np.repeat(table, 2, axis=0), threads=1)
    weighted = gradient(network, table, row_weight=np.full(150, 2.0), threads=2)
    assert_allclose(weighted.weight, double.weight, rtol=1e-10)
    one, two = (gradient(network, table, threads=k) for k in (1, 2))
    assert np.array_equal(one.weight, two.weight)
    assert np.array_equal(one.bias, two.bias)


def test_row_weight_of_the_wrong_length_is_refused():
    network = sb.layered((2,), rng=0)
    with pytest.raises(sb.errors.ParameterError, match=r"row_weight has shape \(3,\); expected \(2,\)"):
        gradient(network, [[0, 1], [1, 1]], row_weight=[1, 2, 3])


def test_starting_means_are_checked_as_in_inference():
    network = sb.layered((2, 3), rng=0)
    with pytest.raises(sb.errors.EvidenceError, match=r"start has shape \(4,\); expected \(1, 5\)"):
        gradient(network, [[0, 1, 1]], start=[0.5] * 4)
    given = gradient(network, [[0, 1, 1]], start=np.full(5, 0.3), solver=sb.MeanField(tol=1e-12))
    assert_allclose(given.weight, gradient(network, [[0, 1, 1]], solver=sb.MeanField(tol=1e-12)).weight, atol=1e-5)
