"""Published numbers: Figures 2 and 5 of Saul, Jaakkola & Jordan (1996), and the same yardstick for the other terms."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.optimize import minimize_scalar

import sbnet as sb
from sbnet.bounds import lower_bound

FIGURE_2 = {"exact": 0.806, "xi": 0.818, "jensen": 0.974}


@pytest.mark.small
def test_figure_2_for_a_gaussian_input():  # z normal with mean 0 and variance 1
    def gaussian(z):
        return np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)

    exact = quad(lambda z: gaussian(z) * np.logaddexp(0, z), -12, 12)[0]

    def bound(xi):  # eq. (19)
        return np.log(np.exp(xi**2 / 2) + np.exp((1 - xi) ** 2 / 2))

    best = minimize_scalar(bound, bounds=(0, 1), method="bounded").fun
    assert_allclose([exact, best, bound(0.0)], list(FIGURE_2.values()), rtol=0, atol=5e-4)


@pytest.mark.small
@pytest.mark.parametrize("log_term", FIGURE_2)
def test_figure_2_for_a_unit_with_many_parents(log_term):  # a sum of 1,000 fair coins is as good as Gaussian
    n = 1000
    edges = {(f"u{k}", "child"): 2 / np.sqrt(n) for k in range(n)}
    network = sb.from_edges(edges, bias={"child": -np.sqrt(n)})
    # Parents at one half add nothing, and a child that is 0 only its logarithm term.
    term = -lower_bound(network, {"child": 0}, np.full(n + 1, 0.5), log_term=log_term)
    assert_allclose(term, FIGURE_2[log_term], rtol=0, atol=7e-4)  # the last digit, and 1/n


N_NETWORKS = 2000


@pytest.fixture(scope="module")
def figure_5():
    """Random 2×4×6 networks, weights and biases uniform in ±1, and ln P of a bottom layer that is all zero."""
    rng = np.random.default_rng(1996)
    networks = [sb.layered((2, 4, 6), rng=rng, scale=1.0) for _ in range(N_NETWORKS)]
    return networks, np.array([sb.log_likelihood(network, np.zeros(6)) for network in networks])


def relative_error(figure_5, solver):
    networks, log_p = figure_5
    return np.array([sb.infer(network, np.zeros(6), solver=solver).bound for network in networks]) / log_p - 1


def within_errors(values, published, tolerance):
    """Does the mean agree with a published one? The tolerance must be three standard errors or more."""
    assert 3 * values.std() / np.sqrt(len(values)) <= tolerance
    return abs(100 * values.mean() - published) <= 100 * tolerance


def test_figure_5_mean_field(figure_5):  # "the mean relative error is 1.6 %"
    error = relative_error(figure_5, sb.MeanField(log_term="xi", enumerate_up_to=0))
    assert np.all(error >= 0.0)  # ln P is negative, and the bound below it
    assert within_errors(error, 1.6, 0.001)


def test_figure_5_uniform(figure_5):  # "the root mean square relative error is 22.6 %"
    _, log_p = figure_5
    error = np.log(2.0**-6) / log_p - 1
    assert abs(100 * np.sqrt(np.mean(error**2)) - 22.6) <= 1.5


@pytest.mark.parametrize(
    ("log_term", "published", "tolerance"),
    [("jensen", 8.00, 0.003), ("quadratic", 2.03, 0.0015), ("exact", 1.48, 0.001)],
)
def test_the_yardstick_for_other_terms(figure_5, log_term, published, tolerance):  # on the same networks
    error = relative_error(figure_5, sb.MeanField(log_term=log_term, enumerate_up_to=0))
    assert within_errors(error, published, tolerance)
