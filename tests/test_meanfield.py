"""Mean field theory on random networks: the bound holds, sweeps raise it, and its fixed points solve eq. (24)."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.special import log_expit, logsumexp
from scipy.stats import binom

import oracle
import sbnet as sb
from sbnet.bounds import lower_bound, rows
from strategies import (
    INTERPRETED,
    LOG_TERMS,
    MAX_UNITS,
    cases,
    live_units,
    means,
    networks,
    seeds,
    separate_hidden_units,
)

pytestmark = pytest.mark.filterwarnings("ignore::sbnet.errors.ConvergenceWarning")  # hostile networks need long

every_log_term = pytest.mark.parametrize("log_term", LOG_TERMS)
paper = sb.MeanField(log_term="xi", enumerate_up_to=0)

# Every term is of the size of the weights, and is rounded a few times on its way into the bound.
ROUNDINGS = 4
# What "exact" may add to each <ln(1 + e^z)>, on purpose: the proven error of its sum over frequencies. With large
# weights it may add more, if inputs many deviations from the mean matter: so equalities are for moderate weights.
EXACT_MARGIN = 1e-6
MODERATE = {"max_weight": 3.0, "scales": ("zero", "tame", "strong")}


def rounding(network):
    return ROUNDINGS * oracle.rounding(network.weight_matrix(), network.bias)


def log_term_of(log_term, weights, mu, bias, **options):
    """The bound on <ln(1 + e^z)> of one unit: what a child that is observed to be 0 takes away from the bound."""
    names = [f"u{k}" for k in range(len(weights))]
    edges = {(name, "child"): float(w) for name, w in zip(names, weights, strict=True)}
    network = sb.from_edges(edges, bias={"child": float(bias)}, names=[*names, "child"])
    roots = oracle.entropy(mu) - len(mu) * np.log(2)
    return roots - lower_bound(network, {"child": 0}, np.append(mu, 0), log_term=log_term, **options)


# --- the bound is a bound, and sweeps raise it ----------------------------------------------------------------------


@pytest.mark.small
@every_log_term
@given(case=cases(), enumerate_up_to=st.sampled_from([0, 1, 4]))
def test_bound_never_exceeds_the_exact_log_likelihood(log_term, case, enumerate_up_to):  # eq. (11)
    network, evidence = case
    post = sb.infer(network, evidence, solver=sb.MeanField(log_term=log_term, enumerate_up_to=enumerate_up_to))
    assert np.isfinite(post.bound)
    assert post.bound <= sb.log_likelihood(network, evidence) + rounding(network)


@pytest.mark.small
@every_log_term
@given(case=cases(), enumerate_up_to=st.sampled_from([0, 1, 4]), seed=seeds)
def test_the_bound_never_falls_from_any_start(log_term, case, enumerate_up_to, seed):  # footnote 4
    network, evidence = case
    solver = sb.MeanField(log_term=log_term, enumerate_up_to=enumerate_up_to)
    for start in (None, np.random.default_rng(seed).choice([0.0, 1e-9, 0.3, 1.0], network.n_units)):
        post = sb.infer(network, evidence, solver=solver, start=start)
        assert np.all(np.isfinite(post.trace))
        assert np.all(np.diff(post.trace) >= -rounding(network))
        assert post.trace[-1] == post.bound


@pytest.mark.small
@every_log_term
@given(data=st.data(), enumerate_up_to=st.sampled_from([0, 4]))
def test_the_bound_is_that_of_the_means_and_xi_in_the_answer(log_term, data, enumerate_up_to):  # eq. (22)
    network, evidence = data.draw(cases(**MODERATE) if log_term == "exact" else cases())
    post = sb.infer(network, evidence, solver=sb.MeanField(log_term=log_term, enumerate_up_to=enumerate_up_to))
    xi = None if log_term == "exact" else post.xi
    again = lower_bound(network, evidence, post.means, xi, log_term=log_term, enumerate_up_to=enumerate_up_to)
    margin = EXACT_MARGIN * network.n_units if log_term == "exact" else 0.0
    assert_allclose(again, post.bound, rtol=0, atol=rounding(network) + margin)


@pytest.mark.small
@every_log_term
@pytest.mark.parametrize("enumerate_up_to", [0, 4])
def test_stopping_early_is_said_and_the_bound_is_valid(log_term, enumerate_up_to):
    network, evidence = sb.layered((3, 5, 6), rng=3, scale=4.0), np.zeros(6)
    solver = sb.MeanField(log_term=log_term, max_sweeps=2, tol=1e-9, enumerate_up_to=enumerate_up_to)
    text = (
        "1 of 1 row reached max_sweeps=2 before the bound settled; "
        "their bounds are valid all the same. Raise max_sweeps or tol"
    )
    with pytest.warns(sb.errors.ConvergenceWarning) as caught:
        post = sb.infer(network, evidence, solver=solver)
    assert [str(w.message) for w in caught] == [text]
    assert caught[0].filename == __file__
    assert post.status is sb.results.Status.MAX_SWEEPS
    assert not post.converged
    assert post.sweeps == 2
    assert post.bound <= sb.log_likelihood(network, evidence)
    with pytest.warns(sb.errors.ConvergenceWarning, match="^2 of 3 rows reached max_sweeps=2 before"):
        sb.infer_many(network, [evidence, np.full(6, np.nan), evidence], solver=solver)


@pytest.mark.small
@every_log_term
@pytest.mark.parametrize("max_sweeps", [1, 2, 3, 5, 8])
def test_the_trace_ends_at_the_bound_wherever_it_is_stopped(log_term, max_sweeps):
    network = sb.layered((3, 5, 6), rng=3, scale=4.0)
    post = sb.infer(network, np.zeros(6), solver=sb.MeanField(log_term=log_term, max_sweeps=max_sweeps, tol=1e-9))
    assert post.trace[-1] == post.bound
    assert len(post.trace) <= max_sweeps + 1


@pytest.mark.small
@every_log_term
def test_without_hidden_units_there_is_nothing_to_wait_for(log_term, sprinkler):
    solver = sb.MeanField(log_term=log_term, max_sweeps=1, tol=0.0)
    assert all(sb.infer_many(sprinkler, [[0, 1, 0, 1], [np.nan] * 4], solver=solver).converged)


# --- where the bound is exact ---------------------------------------------------------------------------------------


@pytest.mark.small
@every_log_term
@given(case=cases())
def test_without_hidden_units_the_bound_is_exact(log_term, case):
    network, evidence = case
    state = np.where(np.isnan(evidence), 0.0, evidence)
    post = sb.infer(network, state, solver=sb.MeanField(log_term=log_term))
    assert_allclose(post.bound, sb.log_joint(network, state), rtol=0, atol=rounding(network))


@pytest.mark.small
@every_log_term
@given(network=networks(), seed=seeds)
def test_without_evidence_the_bound_is_zero(log_term, network, seed):  # all units are barren
    assert sb.infer(network, {}, solver=sb.MeanField(log_term=log_term)).bound == 0.0


@pytest.mark.small
@pytest.mark.parametrize(("log_term", "enumerate_up_to"), [("exact", 0), ("xi", 0), ("quadratic", 1), ("jensen", 1)])
@given(data=st.data())
def test_the_bound_is_exact_if_hidden_units_do_not_meet(log_term, enumerate_up_to, data):
    # The posterior factorises. With one hidden parent, z has two values; the xi that gives e^(-xi z) + e^((1-xi) z)
    # one value for both makes eq. (20) an equality, so the paper's bound is exact too.
    network, evidence = data.draw(separate_hidden_units(**({} if enumerate_up_to else MODERATE)))
    solver = sb.MeanField(log_term=log_term, enumerate_up_to=enumerate_up_to, tol=1e-12, max_sweeps=20_000)
    post = sb.infer(network, evidence, solver=solver)
    margin = EXACT_MARGIN * network.n_units if log_term == "exact" else 1e-8
    assert_allclose(post.bound, sb.log_likelihood(network, evidence), rtol=0, atol=rounding(network) + margin)


@pytest.mark.small
@every_log_term
@given(case=cases(scales=("tame", "strong")))
def test_the_bound_is_exact_without_weights(log_term, case):  # all units are independent
    network, evidence = case
    network = network.with_parameters(weight=np.zeros(network.n_edges))
    post = sb.infer(network, evidence, solver=sb.MeanField(log_term=log_term, enumerate_up_to=0, tol=1e-12))
    margin = EXACT_MARGIN * network.n_units if log_term == "exact" else 1e-10
    assert_allclose(post.bound, sb.log_likelihood(network, evidence), rtol=0, atol=rounding(network) + margin)
    assert_allclose(post.means, sb.exact_posterior(network, evidence), rtol=0, atol=1e-5)


# --- what the answer does not depend on -----------------------------------------------------------------------------


@pytest.mark.small
@every_log_term
@given(case=cases())
def test_names_do_not_matter(log_term, case):
    network, evidence = case
    renamed = sb.Network(
        tuple(f"other {k}" for k in range(network.n_units)),
        network.graph,
        network.weight,
        network.bias,
    )
    solver = sb.MeanField(log_term=log_term)
    ours, theirs = sb.infer(network, evidence, solver=solver), sb.infer(renamed, evidence, solver=solver)
    assert ours.bound == theirs.bound
    assert np.array_equal(ours.means, theirs.means)


@pytest.mark.small
@every_log_term
@given(case=cases())
def test_barren_units_do_not_matter(log_term, case):  # they sum to one
    network, evidence = case
    live = live_units(network, evidence)
    assume(live)
    solver = sb.MeanField(log_term=log_term)
    whole, part = (
        sb.infer(network, evidence, solver=solver),
        sb.infer(network.subnetwork(live), evidence[live], solver=solver),
    )
    assert whole.bound == part.bound
    assert np.array_equal(whole.means[live], part.means)


def reordered(network, seed):
    """The same network with its units in another order that puts parents first, and where each unit went."""
    names = np.random.default_rng(seed).permutation(network.names).tolist()
    bias = dict(zip(network.names, network.bias.tolist(), strict=True))
    other = sb.from_edges(network.edges(), bias=bias, names=names)
    return other, [network.index(name) for name in other.names]


@pytest.mark.small
@every_log_term
@given(case=cases(), data=st.data(), seed=seeds)
def test_the_bound_at_given_means_does_not_depend_on_the_order_of_units(log_term, case, data, seed):
    network, evidence = case
    other, order = reordered(network, seed)
    mu, xi = data.draw(means(network.n_units)), np.random.default_rng(seed).random(network.n_units)
    ours = lower_bound(network, evidence, mu, xi, log_term=log_term)
    theirs = lower_bound(other, evidence[order], mu[order], xi[order], log_term=log_term)
    margin = EXACT_MARGIN * network.n_units if log_term == "exact" else 0.0  # factors side by side share frequencies
    assert_allclose(theirs, ours, rtol=0, atol=rounding(network) + margin)


@pytest.mark.small
@every_log_term
@given(case=cases(scales=("tame",), max_units=min(10, MAX_UNITS)), seed=seeds)
def test_the_fixed_point_of_a_weak_network_does_not_depend_on_the_order_of_units(log_term, case, seed):
    network, evidence = case
    network = network.with_parameters(weight=0.2 * network.weight)  # so weak that the updates contract: one fixed point
    other, order = reordered(network, seed)
    solver = sb.MeanField(log_term=log_term, enumerate_up_to=2, tol=1e-12)
    ours, theirs = sb.infer(network, evidence, solver=solver), sb.infer(other, evidence[order], solver=solver)
    margin = EXACT_MARGIN if log_term == "exact" else 1e-9
    assert_allclose(theirs.bound, ours.bound, rtol=0, atol=margin)
    assert_allclose(theirs.means, ours.means[order], rtol=0, atol=1e-4)


# --- one term against another ---------------------------------------------------------------------------------------


@pytest.mark.small
@given(cases(), st.data())
def test_tighter_terms_give_tighter_bounds_at_the_same_means(case, data):
    network, evidence = case
    mu = data.draw(means(network.n_units))
    bound = {name: lower_bound(network, evidence, mu, log_term=name) for name in LOG_TERMS}
    best = lower_bound(network, evidence, mu, enumerate_up_to=12)
    atol = rounding(network)
    assert bound["jensen"] <= bound["xi"] + atol  # xi = 0 is one choice of xi
    assert bound["xi"] <= bound["exact"] + atol + EXACT_MARGIN * network.n_units  # eq. (20)
    assert bound["xi"] <= best + atol
    assert bound["quadratic"] <= best + atol


@given(cases(max_weight=30.0, scales=("zero", "tame", "strong")), seeds)
def test_the_exact_term_is_tighter_than_the_quadratic_one(case, seed):
    network, evidence = case
    mu = np.random.default_rng(seed).random(network.n_units)
    exact, quadratic = (lower_bound(network, evidence, mu, log_term=name) for name in ("exact", "quadratic"))
    assert exact >= quadratic - EXACT_MARGIN * network.n_units


@pytest.mark.small
@every_log_term
@given(case=cases(), data=st.data())
def test_enumeration_never_loosens_the_bound_at_the_same_means(log_term, case, data):
    network, evidence = case
    mu = data.draw(means(network.n_units))
    bounds = [lower_bound(network, evidence, mu, log_term=log_term, enumerate_up_to=k) for k in range(5)]
    assert np.all(np.diff(bounds) >= -rounding(network))


# --- the exact term -------------------------------------------------------------------------------------------------


@pytest.mark.small
@given(st.integers(1, MAX_UNITS), st.sampled_from([0.5, 3.0, 30.0]), seeds)
def test_the_exact_term_is_never_below_the_average(fan_in, scale, seed):  # METHODS section 1: the rule errs upwards
    rng = np.random.default_rng(seed)
    weights, bias = rng.uniform(-scale, scale, fan_in), rng.uniform(-scale, scale)
    mu = rng.random(fan_in) ** rng.choice([1, 8])  # also means near 0
    z = oracle.all_states(np.full(fan_in, np.nan)) @ weights + bias
    true = np.sum(oracle.q_of_states(np.full(fan_in, np.nan), mu) * np.logaddexp(0, z))
    term = log_term_of("exact", weights, mu, bias)
    assert term >= true - 1e-12
    if scale <= 3.0:
        assert term <= true + EXACT_MARGIN


@pytest.mark.small
@pytest.mark.parametrize(("weight", "mu", "fan_in", "bias"), [(30.0, 0.99, 14, -300.0), (20.0, 0.01, 10, 0.0)])
def test_the_exact_term_does_not_forget_rare_inputs(weight, mu, fan_in, bias):  # many deviations away from the mean
    on = np.arange(fan_in + 1)
    true = binom.pmf(on, fan_in, mu) @ np.logaddexp(0, weight * on + bias)
    term = log_term_of("exact", np.full(fan_in, weight), np.full(fan_in, mu), bias)
    assert true - 1e-12 <= term <= true + 1e-4


@pytest.mark.small
@pytest.mark.parametrize("bias", [-60.0, -21.0, 21.0, 60.0])
def test_the_exact_term_far_from_zero_is_a_straight_line(bias):  # ln(1 + e^z) is 0 or z, but for e^-|z|
    weights, mu = np.array([0.3, -0.2, 0.9]), np.array([0.2, 0.5, 0.7])
    assert_allclose(log_term_of("exact", weights, mu, bias), max(0.0, weights @ mu + bias), rtol=0, atol=1e-7)


@pytest.mark.small
def test_the_exact_term_of_very_large_weights_is_still_a_bound():  # too many frequencies: the paper's term
    on = np.arange(15)
    true = binom.pmf(on, 14, 0.5) @ np.logaddexp(0, 100.0 * on - 700.0)
    exact, xi = (log_term_of(name, np.full(14, 100.0), np.full(14, 0.5), -700.0) for name in ("exact", "xi"))
    assert true <= exact <= xi + 1e-9


@pytest.mark.parametrize("seed", range(4))
def test_the_exact_term_of_two_hundred_parents(seed):  # J ~ N(0, 1), against the distribution of z by convolution
    rng = np.random.default_rng(seed)
    steps, mu = np.rint(64 * rng.standard_normal(200)).astype(int), rng.random(200)
    value, p = oracle.lattice_distribution(steps, mu)
    true = p @ np.logaddexp(0, value / 64 + 0.5)
    exact, xi, quadratic = (log_term_of(name, steps / 64, mu, 0.5) for name in ("exact", "xi", "quadratic"))
    assert true - 1e-12 <= exact <= true + EXACT_MARGIN
    assert min(quadratic, xi) > true + 0.1


@every_log_term
def test_ten_thousand_parents(log_term):
    n, w, bias, h = 10_000, 0.003, -1.0, -6.0
    edges = {(f"u{k}", "child"): w for k in range(n)}
    network = sb.from_edges(edges, bias={**{f"u{k}": bias for k in range(n)}, "child": h})
    active = np.arange(n + 1)  # parents are alike: a sum over how many are 1
    log_p = logsumexp(binom.logpmf(active, n, 1 / (1 + np.exp(-bias))) + log_expit(w * active + h))
    post = sb.infer(network, {"child": 1}, solver=sb.MeanField(log_term=log_term))
    assert np.isfinite(post.bound)
    assert log_p - 0.02 <= post.bound <= log_p + 1e-9
    strong = network.with_parameters(weight=1000.0 * network.weight)
    post = sb.infer(strong, {"child": 0}, solver=sb.MeanField(log_term=log_term))
    log_p = logsumexp(binom.logpmf(active, n, 1 / (1 + np.exp(-bias))) + log_expit(-(1000 * w * active + h)))
    assert np.isfinite(post.bound)
    assert post.bound <= log_p + 1e-6


@pytest.mark.small
@pytest.mark.parametrize("evidence", [[1] * 6, [0] * 6, [1, 0] * 3])
def test_units_far_from_zero_need_no_frequencies(evidence):
    network = sb.layered((2, 7, 6), rng=1, scale=1000.0)
    post = sb.infer(network, evidence, solver=sb.MeanField(enumerate_up_to=0))
    assert np.isfinite(post.bound)
    assert post.bound <= sb.log_likelihood(network, evidence)


@pytest.mark.small
@pytest.mark.parametrize("seed", range(3))
def test_the_few_frequencies_of_a_short_climb_cost_little(seed):
    network = sb.layered((3, 8, 12), rng=seed, scale=3.0)
    evidence = np.random.default_rng(seed).integers(0, 2, 12)
    solver = sb.MeanField(enumerate_up_to=0, tol=1e-10, max_sweeps=5000)
    best = sb.infer(network, evidence, solver=solver)
    near = sb.infer(network, evidence, solver=sb.MeanField(enumerate_up_to=0, tol=1e-4), start=best.means)
    assert near.bound >= best.bound - 1e-5
    assert_allclose(near.bound, lower_bound(network, evidence, near.means, log_term="exact"), rtol=0, atol=1e-6)


# --- fixed points ---------------------------------------------------------------------------------------------------


@pytest.mark.small
@given(cases(max_weight=3.0, scales=("tame", "strong"), max_units=min(10, MAX_UNITS)))
def test_at_convergence_the_means_solve_equation_24(case):
    network, evidence = case
    solver = sb.MeanField(log_term="xi", enumerate_up_to=0, tol=1e-13, max_sweeps=20_000)
    post = sb.infer(network, evidence, solver=solver)
    live = live_units(network, evidence)
    hidden = np.isnan(evidence)[live]
    J, h = network.weight_matrix()[np.ix_(live, live)], network.bias[live]
    with np.errstate(invalid="ignore", divide="ignore"):  # K of an observed parent has no meaning
        xi = np.nan_to_num(post.xi[live], nan=0.5)  # without hidden parents there is none, and any value will do
        wanted = oracle.mean_field(J, h, post.means[live], xi)
    assert_allclose(post.means[live][hidden], wanted[hidden], rtol=0, atol=1e-5)


@pytest.mark.small
@every_log_term
@given(case=cases(max_weight=3.0, scales=("tame", "strong"), max_units=min(10, MAX_UNITS)))
def test_at_convergence_the_bound_is_flat_in_every_mean(log_term, case):  # central differences in ln(mu / (1 - mu))
    network, evidence = case
    solver = sb.MeanField(log_term=log_term, enumerate_up_to=0, tol=1e-13, max_sweeps=20_000)
    post = sb.infer(network, evidence, solver=solver)
    enumerated = 12 if log_term == "exact" else 0  # the exact term itself, without the steps of its sum
    for j in np.flatnonzero(np.isnan(evidence)):
        near = np.tile(post.means, (2, 1))
        odds = near[:, j] / (1 - near[:, j]) * np.exp([-1e-4, 1e-4])
        near[:, j] = odds / (1 + odds)
        low, high = lower_bound(network, np.tile(evidence, (2, 1)), near, log_term=log_term, enumerate_up_to=enumerated)
        assert abs(high - low) / 2e-4 < 1e-5


@pytest.mark.small
@every_log_term
@given(case=cases(), data=st.data())
def test_the_trace_begins_at_the_bound_of_the_start(log_term, case, data):
    network, evidence = case
    start = np.random.default_rng(data.draw(seeds)).uniform(0.01, 0.99, network.n_units)
    post = sb.infer(network, evidence, solver=sb.MeanField(log_term=log_term, enumerate_up_to=0), start=start)
    own = lower_bound(network, evidence, start, log_term=log_term)
    # xi has yet to find its best value; the exact term is good to 1e-7 a unit, with a little more or less frequencies
    slack = 1e-7 * network.n_units if log_term == "exact" else 0.0
    assert post.trace[0] <= own + slack + rounding(network)
    if log_term in ("quadratic", "jensen"):
        assert_allclose(post.trace[0], own, rtol=0, atol=rounding(network))


@pytest.mark.small
@pytest.mark.parametrize(("log_term", "sweeps"), [("exact", 25), ("xi", 25), ("quadratic", 2), ("jensen", 2)])
@given(case=cases(**MODERATE))
def test_a_warm_start_stays_and_stops_soon(log_term, sweeps, case):  # xi starts anew; other terms have no memory
    network, evidence = case
    solver = sb.MeanField(log_term=log_term)
    first = sb.infer(network, evidence, solver=solver)
    again = sb.infer(network, evidence, solver=solver, start=first.means)
    assert again.bound >= first.bound - 1e-5
    assert again.sweeps <= sweeps


@pytest.mark.small
@every_log_term
@given(case=cases(max_units=min(10, MAX_UNITS)))
def test_restarts_never_loosen_the_bound(log_term, case):
    network, evidence = case
    one, four = (
        sb.infer(network, evidence, solver=sb.MeanField(log_term=log_term, restarts=k, max_sweeps=50)) for k in (1, 4)
    )
    assert four.bound >= one.bound
    assert four.trace[-1] == four.bound


@pytest.mark.small
@pytest.mark.parametrize("seed", range(4))
def test_each_restart_more_can_only_help(seed):
    network = sb.layered((3, 4), rng=seed, scale=8.0)
    bounds = [sb.infer(network, np.zeros(4), solver=sb.MeanField(restarts=k)).bound for k in range(1, 6)]
    assert np.all(np.diff(bounds) >= 0.0)
    assert bounds[-1] <= sb.log_likelihood(network, np.zeros(4))


@pytest.mark.small
@pytest.mark.parametrize("enumerate_up_to", [0, 4])
@every_log_term
def test_restarts_leave_the_saddle_of_a_symmetric_network(log_term, enumerate_up_to):
    # One child says "a or b", the other "not both". Turning both parents round exchanges the children, so that means of
    # one half solve the equations; a is 1 or b is 1 is far better, and breaks the symmetry.
    edges = {("a", "or"): 20.0, ("b", "or"): 20.0, ("a", "not both"): -20.0, ("b", "not both"): -20.0}
    network = sb.from_edges(edges, bias={"or": -10.0, "not both": 30.0})
    evidence = {"or": 1, "not both": 1}
    options = {"log_term": log_term, "enumerate_up_to": enumerate_up_to}
    stuck = sb.infer(network, evidence, solver=sb.MeanField(**options))
    free = sb.infer(network, evidence, solver=sb.MeanField(restarts=4, **options))
    assert_allclose([stuck["a"], stuck["b"]], 0.5, atol=1e-6)
    assert_allclose(free["a"] + free["b"], 1.0, atol=1e-3)
    assert abs(free["a"] - free["b"]) > 0.99
    assert free.bound > stuck.bound + 1
    assert_allclose(free.bound, np.log(1 / 4), atol=1e-3)  # of ln P = ln(1/2)


# --- means of barren units ------------------------------------------------------------------------------------------


@pytest.mark.small
@given(cases(max_weight=3.0, scales=("tame", "strong")))
def test_means_of_barren_units_are_their_predictions(case):  # E_Q[sigma(z)], under the means of their parents
    network, evidence = case
    means_ = sb.infer(network, evidence).means
    barren = np.setdiff1d(np.arange(network.n_units), live_units(network, evidence))
    predicted = oracle.mean_sigmoid(network.weight_matrix(), network.bias, means_)
    assert_allclose(means_[barren], predicted[barren], rtol=0, atol=1e-6)


# --- settings -------------------------------------------------------------------------------------------------------


@pytest.mark.small
@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"tol": -1e-3}, "tol is -0.001; it must be zero or more nats"),
        ({"tol": np.nan}, "tol is nan; it must be zero or more nats"),
        ({"max_sweeps": 0}, "max_sweeps is 0; it must be a whole number, one or more"),
        ({"max_sweeps": 1.5}, "max_sweeps is 1.5; it must be a whole number, one or more"),
        ({"restarts": 0}, "restarts is 0; it must be a whole number, one or more"),
        ({"restarts": True}, "restarts is True; it must be a whole number, one or more"),
    ],
)
def test_settings_that_cannot_be_are_refused(arguments, text):
    with pytest.raises(sb.errors.ParameterError) as caught:
        sb.MeanField(**arguments)
    assert str(caught.value) == text


@pytest.mark.small
def test_starting_means_that_cannot_be_are_refused(sprinkler):
    for start, text in (
        ([0.5], "start has shape (1,); expected (1, 4), a mean for every variable"),
        ([0.5, 1.5, 0.5, 0.5], "starting means must lie between 0 and 1; NaN stands for one half"),
    ):
        with pytest.raises(sb.errors.EvidenceError) as caught:
            sb.infer(sprinkler, {"wet": 1}, start=start)
        assert str(caught.value) == text
    half = sb.infer(sprinkler, {"wet": 1})
    assert sb.infer(sprinkler, {"wet": 1}, start=[np.nan, np.nan, 7.0, np.nan]).bound == half.bound


@pytest.mark.small
def test_random_starts_follow_from_the_rng():
    network, evidence = sb.layered((3, 4), rng=1, scale=8.0), np.zeros(4)
    one, same = (sb.infer(network, evidence, solver=sb.MeanField(restarts=3, rng=5)) for _ in range(2))
    assert np.array_equal(one.means, same.means)
    if not INTERPRETED:
        bounds = {sb.infer(network, evidence, solver=sb.MeanField(restarts=2, rng=k)).bound for k in range(20)}
        assert len(bounds) > 1


@pytest.mark.small
def test_a_problem_is_laid_out_once_for_a_network_while_there_is_room(monkeypatch):
    made, set_weights = [], rows.set_weights
    monkeypatch.setattr(rows, "set_weights", lambda *given: made.append(given) or set_weights(*given))
    network = sb.layered((2, 3), rng=0)
    answers = [sb.infer(network, np.array([1.0, 0.0, x]), solver=paper).bound for x in (0, 1, 0)]
    assert len(made) == 1
    monkeypatch.setattr(rows, "_ROOM", 0)
    assert [sb.infer(network, np.array([1.0, 0.0, x]), solver=paper).bound for x in (0, 1, 0)] == answers
    assert len(made) == 3
