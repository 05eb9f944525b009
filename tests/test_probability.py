"""The joint distribution and samples from it, eqs. (2) and (6)."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import oracle
import sbnet as sb
from strategies import networks, seeds


def five_sigma(p, n):
    """Five standard deviations of the frequency of an event of probability p in n draws, and one draw."""
    return 5 * np.sqrt(p * (1 - p) / n) + 1 / n


# --- log_joint ------------------------------------------------------------------------------------------------------


@given(networks(), seeds)
def test_log_joint_is_equation_6(network, seed):
    states = np.random.default_rng(seed).integers(0, 2, (7, network.n_units))
    J, h = network.weight_matrix(), network.bias
    expected = oracle.log_joint(J, h, states)
    assert_allclose(sb.log_joint(network, states), expected, rtol=0, atol=oracle.rounding(J, h))


@given(networks(max_units=8))
def test_the_joint_distribution_sums_to_one(network):  # below eq. (6)
    states = oracle.all_states(np.full(network.n_units, np.nan))
    tolerance = oracle.rounding(network.weight_matrix(), network.bias)
    assert_allclose(np.exp(sb.log_joint(network, states)).sum(), 1.0, rtol=0, atol=10 * tolerance)


@given(networks(), st.integers(0, 5))
def test_a_table_of_states_gives_what_its_rows_give_one_by_one(network, n):
    states = sb.sample(network, n, rng=0)
    together = sb.log_joint(network, states)
    assert together.shape == (n,)
    alone = [sb.log_joint(network, state) for state in states]
    assert_allclose(together, alone, rtol=0, atol=oracle.rounding(network.weight_matrix(), network.bias))


def test_log_joint_by_hand(sprinkler):
    state = {"rain": 1, "sprinkler": 0, "wet": 1, "slippery": 0}

    def ln_sigma(z):
        return -np.log(1 + np.exp(-z))

    by_hand = ln_sigma(-1.0) + ln_sigma(0.0) + ln_sigma(2.0 - 2.0) + ln_sigma(-(-0.5 + 0.25))
    found = sb.log_joint(sprinkler, state)
    assert type(found) is float
    assert_allclose(found, by_hand, rtol=1e-15)


def test_log_joint_wants_a_value_for_every_unit(sprinkler):
    with pytest.raises(sb.errors.EvidenceError) as caught:
        sb.log_joint(sprinkler, [[0, 0, 0, 0], [0, np.nan, 1, 0]])
    assert str(caught.value) == (
        "variable 'sprinkler' has no value in row 1; log_joint() needs all 4. Use log_likelihood() for partial evidence"
    )


# --- sample ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_frequencies_of_samples_are_the_exact_marginals(seed):
    network, n = sb.layered((2, 3, 4), rng=seed, scale=2.0, autoregressive=True), 20_000
    drawn = sb.sample(network, n, rng=seed).astype(float)
    pairs = sb.exact_pairs(network, {})
    assert np.all(np.abs(drawn.T @ drawn / n - pairs) <= five_sigma(pairs, n))


def test_frequencies_of_whole_states_are_their_joint_probabilities(sprinkler):
    n = 50_000
    drawn = sb.sample(sprinkler, n, rng=1)
    states = oracle.all_states(np.full(4, np.nan))
    frequency = np.bincount(drawn @ (8, 4, 2, 1), minlength=16) / n
    p = np.exp(sb.log_joint(sprinkler, states))
    assert np.all(np.abs(frequency - p) <= five_sigma(p, n))


def test_an_intervention_acts_below_but_not_above(sprinkler):
    n = 20_000
    drawn = sb.sample(sprinkler, n, rng=2, do={"wet": 1})
    assert np.all(drawn[:, sprinkler.index("wet")] == 1)
    prior, conditional = sb.exact_posterior(sprinkler, {}), sb.exact_posterior(sprinkler, {"wet": 1})
    above, below = [sprinkler.index("rain"), sprinkler.index("sprinkler")], sprinkler.index("slippery")
    frequency = drawn.mean(axis=0)
    assert np.all(np.abs(frequency[above] - prior[above]) <= five_sigma(prior[above], n))  # as if nothing were done
    assert np.all(np.abs(conditional[above] - prior[above]) > five_sigma(prior[above], n))  # unlike an observation
    assert abs(frequency[below] - conditional[below]) <= five_sigma(conditional[below], n)


@given(networks(scales=("strong", "hostile")), seeds)
def test_interventions_hold_in_every_draw_each_its_own(network, seed):
    do = np.random.default_rng(seed).choice([0.0, 1.0, np.nan], (5, network.n_units))
    drawn = sb.sample(network, 5, rng=seed, do=do)
    held = ~np.isnan(do)
    assert np.array_equal(drawn[held], do[held])
    assert np.isin(drawn, (0, 1)).all()


@pytest.mark.parametrize(("bias", "value"), [(1000.0, 1), (-1000.0, 0)])
def test_certain_units_are_drawn_with_certainty(bias, value):
    network = sb.from_edges({("a", "b"): -2 * bias}, bias={"a": bias, "b": bias})
    assert np.all(sb.sample(network, 1000, rng=0) == [value, 1 - value if value else 0])


def test_samples_follow_from_the_rng(sprinkler):
    first = sb.sample(sprinkler, 100, rng=7)
    assert np.array_equal(first, sb.sample(sprinkler, 100, rng=7))
    assert np.array_equal(first, sb.sample(sprinkler, 100, rng=np.random.default_rng(7)))
    assert not np.array_equal(first, sb.sample(sprinkler, 100, rng=8))
    generator = np.random.default_rng(7)
    assert not np.array_equal(
        sb.sample(sprinkler, 100, rng=generator), sb.sample(sprinkler, 100, rng=generator)
    )  # a generator moves on


def test_samples_do_not_depend_on_the_size_of_a_block(sprinkler, monkeypatch):
    whole = sb.sample(sprinkler, 100, rng=7)
    monkeypatch.setattr("sbnet.parallel.blocks._WORKING", 28)
    assert np.array_equal(whole, sb.sample(sprinkler, 100, rng=7))


def test_samples_are_small_integers_also_if_there_are_none(sprinkler):
    assert sb.sample(sprinkler, 3, rng=0).dtype == np.int8
    assert sb.sample(sprinkler, 0, rng=0).shape == (0, 4)
    assert sb.sample(sprinkler, 0, rng=0, do={"wet": 1}).shape == (0, 4)


@pytest.mark.parametrize("n", [-1, 2.0, True, "3", None])
def test_the_number_of_draws_is_a_whole_number(sprinkler, n):
    with pytest.raises(sb.errors.ParameterError) as caught:
        sb.sample(sprinkler, n)
    assert str(caught.value) == f"n is {n!r}; it must be a whole number, zero or more"


def test_interventions_are_one_pattern_or_one_for_each_draw(sprinkler):
    with pytest.raises(sb.errors.EvidenceError) as caught:
        sb.sample(sprinkler, 3, do=np.zeros((2, 4)))
    assert str(caught.value) == "do has 2 rows; give one pattern, or one for each of the 3 draws"
