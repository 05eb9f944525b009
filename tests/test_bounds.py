"""The bound at given means and xi, eq. (22) with the entropy of eq. (16), against the oracle."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.optimize import minimize_scalar

import oracle
import sbnet as sb
from sbnet.bounds import lower_bound
from strategies import LOG_TERMS, MAX_UNITS, cases, live_units, means, seeds, tables

# Terms are added in another order than in the oracle: errors of a few units in the last place of the largest.
UNITS_IN_THE_LAST_PLACE = 8


def rounding(network):
    return UNITS_IN_THE_LAST_PLACE * oracle.rounding(network.weight_matrix(), network.bias)


def reduced(case, data):
    """Means and xi for a case, and then for the oracle: J, h, mu, xi of the units that are not barren."""
    network, evidence = case
    mu, xi = data.draw(means(network.n_units)), np.random.default_rng(data.draw(seeds)).random(network.n_units)
    live = live_units(network, evidence)
    J, h = network.weight_matrix()[np.ix_(live, live)], network.bias[live]
    return mu, xi, J, h, oracle.clamp(evidence, mu)[live], xi[live]


# --- against the oracle ---------------------------------------------------------------------------------------------


@pytest.mark.small
@given(cases(), st.data())
def test_lower_bound_is_equation_22_with_the_entropy_of_equation_16(case, data):  # means of exactly 0 and 1 too
    mu, xi, *terms = reduced(case, data)
    assert_allclose(lower_bound(*case, mu, xi), oracle.bound(*terms), rtol=0, atol=rounding(case[0]))


@pytest.mark.small
def test_half_a_step_of_newtons_method_is_not_taken_for_the_last_one():  # where (20) is straight
    net = sb.from_edges({("far", "seen"): -1001.0, ("near", "seen"): -9.94}, bias={"seen": 19.7})
    evidence, means = {"near": 1, "seen": 0}, [0.95, 1.0, 0.0]
    best = lower_bound(net, evidence, means, [np.nan, np.nan, 0.00974665])
    assert lower_bound(net, evidence, means) >= best - 1e-6


@pytest.mark.small
@given(cases(max_units=min(10, MAX_UNITS)), st.data())
def test_without_xi_each_term_takes_its_best(case, data):  # eq. (20), minimised by golden section
    mu, _, J, h, m, _ = reduced(case, data)
    best = oracle.bound(J, h, m, oracle.tightest_xi(J, h, m))
    assert_allclose(lower_bound(*case, mu), best, rtol=0, atol=1e-9 + rounding(case[0]))


@pytest.mark.small
@given(cases(max_units=min(12, MAX_UNITS)), st.data())
def test_enumerated_and_quadratic_and_standard_terms_are_their_formulas(case, data):
    mu, _, J, h, m, _ = reduced(case, data)
    rest, atol = m @ J @ m + h @ m + oracle.entropy(m), rounding(case[0])
    exact = lower_bound(*case, mu, log_term="jensen", enumerate_up_to=12)
    assert_allclose(exact, oracle.exact_average_bound(J, h, m), rtol=0, atol=atol)
    jensen = lower_bound(*case, mu, log_term="jensen")
    assert_allclose(jensen, oracle.bound(J, h, m, np.zeros(len(h))), rtol=0, atol=atol)
    # a unit whose inputs are known has its exact term, whatever the log_term
    known = (J != 0) @ ((m > 0) & (m < 1)) == 0
    quadratic = np.where(known, np.logaddexp(0, J @ m + h), oracle.quadratic_log1pexp(J, h, m))
    assert_allclose(lower_bound(*case, mu, log_term="quadratic"), rest - quadratic.sum(), rtol=0, atol=atol)


@pytest.mark.small
@pytest.mark.parametrize("seed", range(3))
def test_the_best_xi_is_where_a_minimiser_finds_it(seed):
    rng = np.random.default_rng(seed)
    network = sb.layered((9, 1), rng=seed, scale=3.0)
    J, h, mu = network.weight_matrix(), network.bias, np.append(rng.random(9), 0.0)

    def minus_bound(xi):
        return -oracle.bound(J, h, mu, np.full(10, xi))

    found = minimize_scalar(minus_bound, bounds=(0, 1), method="bounded", options={"xatol": 1e-10})
    assert_allclose(lower_bound(network, [0], mu), -found.fun, rtol=0, atol=1e-12)
    post = sb.infer(network, [0], solver=sb.MeanField(log_term="xi", enumerate_up_to=0, tol=1e-13))
    at = minimize_scalar(
        lambda xi: -oracle.bound(J, h, oracle.clamp([np.nan] * 9 + [0.0], post.means), np.full(10, xi)),
        bounds=(0, 1),
        method="bounded",
        options={"xatol": 1e-10},
    )
    assert_allclose(post.xi[-1], at.x, atol=1e-4)


@pytest.mark.small
def test_the_sign_of_the_entropy_is_not_the_misprint_of_equation_22():
    network = sb.from_edges({("a", "b"): 1.5}, bias={"a": 0.3, "b": -0.7})
    mu = sb.exact_posterior(network, {"b": 1})
    entropy = oracle.entropy(mu)
    assert entropy > 0.5
    # One hidden parent: the best xi makes eq. (20) an equality, and Q can be the posterior.
    log_p = sb.log_likelihood(network, {"b": 1})
    assert_allclose(lower_bound(network, {"b": 1}, mu), log_p, rtol=0, atol=1e-14)
    assert lower_bound(network, {"b": 1}, mu) > log_p - 2 * entropy + 1  # what the printed sign would give


@given(tables(max_units=8), st.sampled_from(LOG_TERMS))
def test_a_table_gives_what_its_rows_give_one_by_one(table, log_term):
    network, rows = table
    rng = np.random.default_rng(0)
    mu, xi = rng.random(rows.shape), np.where(rng.random(rows.shape) < 0.5, np.nan, rng.random(rows.shape))
    together = lower_bound(network, rows, mu, xi, log_term=log_term)
    assert together.shape == (len(rows),)
    for r, row in enumerate(rows):
        assert lower_bound(network, row, mu[r], xi[r], log_term=log_term) == together[r]


@pytest.mark.small
def test_given_xi_are_used_where_they_are_numbers_and_not_changed(sprinkler):
    xi = np.array([0.5, 0.5, 0.9, np.nan])
    kept = xi.copy()
    mu = np.full(4, 0.4)
    partly = lower_bound(sprinkler, {"slippery": 1}, mu, xi)
    assert partly < lower_bound(sprinkler, {"slippery": 1}, mu)
    assert partly > lower_bound(sprinkler, {"slippery": 1}, mu, [0.5, 0.5, 0.9, 0.0])
    assert np.array_equal(xi, kept, equal_nan=True)


# --- breakdown ------------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::sbnet.errors.ConvergenceWarning")
@pytest.mark.parametrize("log_term", LOG_TERMS)
@given(data=st.data())
def test_a_breakdown_adds_up_to_the_bound(log_term, data):
    # The exact term is a sum over frequencies, chosen anew for the breakdown; that tells with large weights only.
    moderate = {"max_weight": 3.0, "scales": ("zero", "tame", "strong")}
    network, evidence = data.draw(cases(**moderate) if log_term == "exact" else cases())
    post = sb.infer(network, evidence, solver=sb.MeanField(log_term=log_term))
    parts = post.breakdown()
    atol = rounding(network) + 1e-6 * network.n_units * (log_term == "exact")
    assert_allclose(parts.bound, post.bound, rtol=0, atol=atol)
    assert_allclose(parts.by_unit.sum(), parts.bound, rtol=0, atol=rounding(network))
    assert_allclose(sum(parts.by_term.values()), parts.bound, rtol=0, atol=rounding(network))
    assert np.all(parts.log_term <= rounding(network))
    assert np.all(parts.entropy >= 0.0)
    assert np.all(parts.entropy[~np.isnan(evidence)] == 0.0)
    barren = np.setdiff1d(np.arange(network.n_units), live_units(network, evidence))
    assert np.all(parts.by_unit[barren] == 0.0)


@pytest.mark.small
def test_a_breakdown_by_hand(sprinkler):
    parts = sb.infer(sprinkler, {"rain": 1, "sprinkler": 0, "wet": 1}).breakdown()
    z = np.array([-1.0, 0.0, 2.0 - 2.0, 0.0])
    assert_allclose(parts.linear, [-1.0, 0.0, 0.0, 0.0], atol=1e-15)
    exact = sb.log_likelihood(sprinkler, {"rain": 1, "sprinkler": 0, "wet": 1})
    assert_allclose(parts.energy.sum(), -exact, rtol=1e-14)  # -<ln P(H, V)>, eq. (13); what is hidden is barren
    assert_allclose(parts.log_term, [*-np.log1p(np.exp(z[:3])), 0.0], rtol=1e-15)  # "slippery" is barren
    assert np.all(parts.entropy == 0.0)
    assert list(parts.by_term) == ["linear", "log_term", "entropy"]
    assert parts.names == sprinkler.names


@pytest.mark.small
def test_a_breakdown_as_a_table_and_as_text(sprinkler):
    parts = sb.infer(sprinkler, {"wet": 1}).breakdown()
    frame = parts.to_frame()
    assert list(frame.columns) == ["linear", "log_term", "entropy", "total"]
    assert frame.index.name == "unit"
    assert_allclose(frame["total"].sum(), parts.bound, rtol=1e-15)
    lines = str(parts).splitlines()
    assert lines[0].startswith(f"The bound is {parts.bound:.6g} nats")
    assert lines[1].split() == ["variable", "linear", "log", "term", "entropy", "total"]
    assert [line.split()[0] for line in lines[2:]] == [*sprinkler.names, "all"]
    assert lines[-1].split()[-1] == f"{parts.bound:.4f}"


@pytest.mark.small
def test_a_long_breakdown_shows_the_units_that_cost_most():
    network = sb.from_edges({}, bias={f"u{k}": float(k) for k in range(30)})
    text = str(sb.infer(network, np.zeros(30)).breakdown())
    assert "... 18 more" in text
    assert "u29" in text
    assert "u17" not in text


# --- errors ---------------------------------------------------------------------------------------------------------


@pytest.mark.small
@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"means": [0.5]}, "means have shape (1,); expected (4,), one for every variable"),
        ({"means": [[0.5] * 4]}, "means have shape (1, 4); expected (4,), one for every variable"),
        ({"means": [0.5, 0.5, 0.5, -0.25]}, "means must lie between 0 and 1; got -0.25"),
        ({"means": [0.5, np.nan, 0.5, 0.5]}, "means must lie between 0 and 1; got nan"),
        ({"xi": [0.5]}, "xi has shape (1,); expected (4,), one for every variable"),
        ({"xi": [[0.5] * 4]}, "xi has shape (1, 4); expected (4,), one for every variable"),
        ({"xi": [0.5, 1.5, 0.5, 0.5]}, "xi must lie between 0 and 1, where its best value is; got 1.5"),
    ],
)
def test_means_and_xi_that_cannot_be_are_refused(sprinkler, arguments, text):
    with pytest.raises(sb.errors.EvidenceError) as caught:
        lower_bound(sprinkler, {"wet": 1}, **{"means": np.full(4, 0.5), **arguments})
    assert str(caught.value) == text


@pytest.mark.small
@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"log_term": "xy"}, "log_term is 'xy'; choose one of 'xi', 'exact', 'quadratic', 'jensen'"),
        ({"enumerate_up_to": 13}, "enumerate_up_to is 13; it must be a whole number from 0 to 12"),
        ({"enumerate_up_to": -1}, "enumerate_up_to is -1; it must be a whole number from 0 to 12"),
        ({"enumerate_up_to": 2.0}, "enumerate_up_to is 2.0; it must be a whole number from 0 to 12"),
        ({"enumerate_up_to": True}, "enumerate_up_to is True; it must be a whole number from 0 to 12"),
    ],
)
def test_the_bound_and_the_solver_refuse_the_same_settings(sprinkler, arguments, text):
    for call in (
        lambda: lower_bound(sprinkler, {"wet": 1}, np.full(4, 0.5), **arguments),
        lambda: sb.MeanField(**arguments),
    ):
        with pytest.raises(sb.errors.ParameterError) as caught:
            call()
        assert str(caught.value) == text
