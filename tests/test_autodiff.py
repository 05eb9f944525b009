"""Gradients of the bound against automatic differentiation of the same bound, for every logarithm term."""

from __future__ import annotations

import itertools

import autograd.numpy as anp
import numpy as np
import pytest
from autograd import grad
from numpy.testing import assert_allclose

import sbnet as sb
from strategies import live_units

# The exact term is a rule with a proven error of about 1e-7, and so is its slope; the others are formulas.
TOLERANCE = {"exact": 5e-6, "xi": 1e-11, "quadratic": 1e-11, "jensen": 1e-11}


def mean_log1pexp(J, h, mu):
    """<ln(1 + e^z)>, by summing over the states of the parents."""
    S = np.array(list(itertools.product((0.0, 1.0), repeat=len(mu)))).reshape(2 ** len(mu), len(mu))
    q = np.prod(np.where(S == 1, mu, 1 - mu), axis=1)
    return anp.dot(q, anp.logaddexp(0.0, anp.dot(S, J) + h))


def xi_term(J, h, mu, xi):
    """The right-hand side of eq. (20)."""
    a = anp.exp(-xi * h) * anp.prod(1 - mu + mu * anp.exp(-xi * J))  # eq. (30)
    b = anp.exp((1 - xi) * h) * anp.prod(1 - mu + mu * anp.exp((1 - xi) * J))  # eq. (31)
    return xi * (anp.dot(J, mu) + h) + anp.log(a + b)


def quadratic_term(J, h, mu, c):
    """A parabola that touches ln(1 + e^z) at z = c and -c."""
    mean = anp.dot(J, mu) + h
    second = mean**2 + anp.dot(J**2, mu * (1 - mu))
    return np.tanh(c / 2) / (4 * c) * (second - c**2) + (mean - c) / 2 + np.logaddexp(0, c)


def bound(weight, bias, network, row, posterior, log_term, enumerate_up_to):
    """Eqs. (15)-(22) at the means and xi of a posterior, entropy in the sign of eq. (16), without barren units."""
    total, means = 0.0, posterior.means
    for i in live_units(network, row):
        edges = slice(network.graph.indptr[i], network.graph.indptr[i + 1])
        J, h, mu, pa = weight[edges], bias[i], means[network.graph.parent[edges]], network.graph.parent[edges]
        if log_term == "exact" or np.isnan(row[pa]).sum() <= enumerate_up_to:
            term = mean_log1pexp(J, h, mu)
        elif log_term == "quadratic":
            w = network.weight[edges]
            c = np.sqrt((w @ mu + network.bias[i]) ** 2 + w**2 @ (mu * (1 - mu)))  # the best, and then a constant
            term = quadratic_term(J, h, mu, c)
        else:
            term = xi_term(J, h, mu, posterior.xi[i] if log_term == "xi" else 0.0)
        total = total + means[i] * (anp.dot(J, mu) + h) - term
        if np.isnan(row[i]):
            total = total - means[i] * np.log(means[i]) - (1 - means[i]) * np.log(1 - means[i])
    return total


def random_case(seed):
    """A network of any shape with up to nine parents, and rows with different holes."""
    rng = np.random.default_rng(seed)
    n = 10
    edge = np.tri(n, k=-1, dtype=bool) & (rng.random((n, n)) < rng.uniform(0.4, 1.0))
    network = sb.from_weight_matrix(np.where(edge, rng.normal(0, 1.2, (n, n)), 0.0), bias=rng.normal(0, 1, n))
    rows = rng.integers(0, 2, (5, n)).astype(float)
    rows[rng.random(rows.shape) < np.array([0.2, 0.4, 0.5, 0.6, 0.8])[:, None]] = np.nan
    rows[:, :2] = np.nan
    rows[:3, -1] = 1.0  # evidence at the bottom: here all units count
    return network, rows


def slopes(network, rows, log_term, enumerate_up_to):
    """(found, expected): weights and biases in one array, after checking that the bounds themselves agree."""
    solver = sb.MeanField(log_term=log_term, enumerate_up_to=enumerate_up_to, tol=1e-14, max_sweeps=20_000)
    found = sb.gradient(network, rows, solver=solver)
    expected = np.zeros(network.n_edges + network.n_units)
    for row, posterior, value in zip(rows, sb.infer_many(network, rows, solver=solver), found.bound, strict=True):
        fixed = network, row, posterior, log_term, enumerate_up_to
        assert_allclose(bound(network.weight, network.bias, *fixed), value, atol=TOLERANCE[log_term])
        expected += np.concatenate([grad(bound, k)(network.weight, network.bias, *fixed) for k in (0, 1)])
    return np.concatenate([found.weight, found.bias]), expected


@pytest.mark.parametrize("enumerate_up_to", [0, 4])
@pytest.mark.parametrize("log_term", ["exact", "xi", "quadratic", "jensen"])
def test_the_gradient_is_what_automatic_differentiation_finds(log_term, enumerate_up_to):  # eqs. (34)-(35)
    for seed in range(4):
        found, expected = slopes(*random_case(seed), log_term, enumerate_up_to)
        assert np.abs(expected).max() > 0.1
        assert_allclose(found, expected, atol=TOLERANCE[log_term])
