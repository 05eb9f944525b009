"""Particles: means, probabilities and draws agree with enumeration, and depend on nothing but the row and its seed."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import sbnet as sb
from sbnet.inference.solvers.particles import particles, seeds_of_places, seeds_of_rows
from sbnet.parallel.blocks import Inline, Threads


def evidence(network, n, seed, visible):
    """Rows drawn from the network: a third of the last units hidden, and all others."""
    states = sb.sample(network, n, rng=seed).astype(np.int8)
    states[:, :-visible] = -1
    states[np.random.default_rng(seed + 1).random(states.shape) < 1 / 3] = -1
    return states


def sampled(network, states, number=256, seed=0, **more):
    return particles(network, states, seeds_of_rows(seed, states), number=number, **more)


@pytest.mark.parametrize("sizes", [(2, 4, 6), (8,), (1, 2, 2, 3)])
def test_means_and_probabilities_are_those_of_enumeration(sizes):
    network = sb.layered(sizes, rng=3, scale=2.5, autoregressive=True)
    states = evidence(network, 8, 0, sizes[-1])
    found = sampled(network, states, 4096)
    assert_allclose(found.means, [sb.exact_posterior(network, row) for row in states], atol=0.03)
    assert_allclose(found.log_p, [sb.log_likelihood(network, row) for row in states], atol=0.1)


def test_probabilities_are_right_in_the_mean():
    network = sb.layered((3, 6), rng=1, scale=3.0, autoregressive=True)
    row = evidence(network, 1, 4, 6)
    seeds = seeds_of_places(0, 4000)
    values = np.exp(particles(network, np.repeat(row, 4000, axis=0), seeds, number=8).log_p)
    truth = np.exp(sb.log_likelihood(network, row[0]))
    assert abs(values.mean() - truth) < 4 * values.std() / np.sqrt(4000)


def test_values_that_no_single_flip_connects():
    # "a equals b" is certain, both states are likely, and mean field can only settle on one of them.
    edges = {("a", "x"): 20.0, ("b", "x"): -20.0, ("a", "y"): -20.0, ("b", "y"): 20.0}
    pair = sb.from_edges(edges, bias={"a": 0.5, "x": 10.0, "y": 10.0})
    states = np.full((1, 4), -1, np.int8)
    states[0, [pair.index("x"), pair.index("y")]] = 1
    found, exact = sampled(pair, states, 1000), sb.exact_posterior(pair, {"x": 1, "y": 1})
    assert_allclose(found.means[0], exact, atol=0.08)


def test_draws_have_the_joint_distribution_of_the_posterior():
    network = sb.layered((1, 5), rng=2, scale=4.0, autoregressive=True)
    states = np.full((4000, 6), -1, np.int8)
    states[:, -1] = 1
    drawn = particles(network, states, seeds_of_places(7, 4000), number=32, draws=1).drawn[:, 0]
    assert_array_equal(drawn[:, -1], 1)
    weight = np.exp(np.array([sb.log_joint(network, s[None])[0] for s in _all_states(6) if s[-1] == 1]))
    each = [s for s in _all_states(6) if s[-1] == 1]
    truth = weight / weight.sum()
    share = np.array([(drawn == s).all(axis=1).mean() for s in each])
    assert np.abs(share - truth).max() < 0.03


def test_answers_depend_on_the_row_alone():
    network = sb.layered((2, 9), rng=0, scale=2.0, autoregressive=True)
    states = evidence(network, 60, 2, 9)
    one = sampled(network, states, 32, executor=Inline(), draws=2)
    order = np.random.default_rng(0).permutation(60)
    other = sampled(network, states[order], 32, executor=Threads(2), draws=2)
    for name in ("means", "log_p", "drawn"):
        assert_array_equal(getattr(other, name), getattr(one, name)[order])
    assert (sampled(network, states, 32, seed=1).means != one.means).any()


@pytest.mark.parametrize("scale", [40.0, 3e3, 1e8])
def test_steep_weights_give_finite_answers(scale):
    network = sb.layered((3, 4, 6), rng=1, scale=scale, autoregressive=True)
    states = evidence(network, 20, 0, 6)
    found = sampled(network, states, 16)
    assert np.all((found.means >= 0.0) & (found.means <= 1.0))
    assert np.all(np.isfinite(found.log_p))


def test_rows_of_nothing_and_of_everything():
    network = sb.layered((2, 4), rng=0, scale=1.0)
    states = np.array([[-1] * 6, [1, 0, 1, 1, 0, 1]], np.int8)
    found = sampled(network, states, 4096)
    assert_allclose(found.means[0], sb.exact_posterior(network, {}), atol=0.02)
    assert_array_equal(found.means[1], states[1])
    assert_allclose(found.log_p, [0.0, sb.log_joint(network, states[1:])[0]], atol=1e-9)


def _all_states(n):
    return ((np.arange(2**n)[:, None] >> np.arange(n)) & 1).astype(np.int8)
