"""The logarithm terms, each by each: what a solver makes of them, and their verbs, against formulas and slopes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import oracle
import sbnet as sb
from sbnet.bounds import lower_bound
from sbnet.kernels import terms, vector_math
from sbnet.kernels._compile import kernel
from sbnet.kernels.reduce import reduce
from sbnet.kernels.terms import enumerated, exact, waves
from sbnet.kernels.terms import work as at
from sbnet.kernels.terms.work import MEAN, PLACE, TERM, VALUE
from sbnet.questions.reduction import absorb
from strategies import INTERPRETED, LOG_TERMS, cases, live_units

pytestmark = [pytest.mark.small, pytest.mark.filterwarnings("ignore::sbnet.errors.ConvergenceWarning")]
TIGHT = 1e-6  # nats that the exact term may lose in a unit


def factors(case, post, enumerate_up_to):
    """Of the live units: J, h and means as the oracle takes them, with many inputs, and with few."""
    network, evidence = case
    live = live_units(network, evidence)
    J, h = network.weight_matrix()[np.ix_(live, live)], network.bias[live]
    m = oracle.clamp(evidence, post.means)[live]
    n_hidden = (J != 0).astype(int) @ np.isnan(evidence)[live]
    return live, J, h, m, n_hidden > enumerate_up_to


# --- after a solver -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("log_term", LOG_TERMS)
@settings(max_examples=8 if INTERPRETED else 60)
@given(case=cases(max_units=8), enumerate_up_to=st.sampled_from([0, 2]))
def test_every_term_of_a_solution_is_its_formula(log_term, case, enumerate_up_to):
    solver = sb.MeanField(log_term=log_term, enumerate_up_to=enumerate_up_to, max_sweeps=30)
    post = sb.infer(*case, solver=solver)
    live, J, h, m, many = factors(case, post, enumerate_up_to)
    found, truth = -post.breakdown().log_term[live], oracle.mean_log1pexp(J, h, m)
    atol = 8 * oracle.rounding(J, h) + 1e-12
    assert_allclose(found[~many], truth[~many], rtol=0, atol=atol)  # summed over the states of the parents
    assert np.all(found >= truth - atol)
    if log_term == "exact":
        spread = np.abs(J).sum(axis=1)  # where it is hundreds of nats, others stand in
        assert np.all((found <= truth + TIGHT + atol)[spread < 100])
    elif log_term == "quadratic":
        assert_allclose(found[many], oracle.quadratic_log1pexp(J, h, m)[many], rtol=0, atol=atol)
    else:
        xi = np.zeros(len(h)) if log_term == "jensen" else np.nan_to_num(post.xi[live])
        assert_allclose(found[many], oracle.log1pexp_bound(J, h, m, xi)[many], rtol=0, atol=atol)


@pytest.mark.parametrize("log_term", ["xi", "jensen"])
@pytest.mark.parametrize("scale", [1.0, 40.0, 1000.0])
@pytest.mark.parametrize("parents", [1, 2, 15, 16, 17, 35])  # taken in twos, and rescaled after every sixteen
def test_the_papers_term_of_any_number_of_parents_is_its_formula(log_term, scale, parents):
    network = sb.layered((parents, 18), rng=parents, scale=scale)
    case = network, np.r_[np.full(parents, np.nan), np.arange(18) % 2]
    post = sb.infer(*case, solver=sb.MeanField(log_term=log_term, enumerate_up_to=0, max_sweeps=3))
    live, J, h, m, many = factors(case, post, 0)
    xi = np.zeros(len(h)) if log_term == "jensen" else np.nan_to_num(post.xi[live])
    atol = 8 * oracle.rounding(J, h) + 1e-12
    own = -post.breakdown().log_term[live]  # evaluated by the slow reference
    assert_allclose(own[many], oracle.log1pexp_bound(J, h, m, xi)[many], rtol=0, atol=atol)
    assert_allclose(post.bound, post.breakdown().bound, rtol=0, atol=20 * atol)  # and this by the kernel


@given(st.floats(0.0, 900.0), st.integers(-1100, 1023), st.floats(1e-300, 1e300))
def test_exponentials_and_logarithms_that_compile_to_vectors(x, n, y):
    assert_allclose(_vector_math(x, float(n), y), _library_math(x, n, y), rtol=1e-15, atol=1e-307)


def _library_math(x, n, y):
    mantissa, exponent = np.frexp(y)
    return np.exp(-x), np.ldexp(1.0, n), mantissa, exponent, np.log(y) + 1.0 * (y == 1.0)


@kernel
def _vector_math(x, n, y):
    mantissa, exponent = vector_math.split(y)
    return (
        vector_math.exp_minus(x),
        vector_math.power_of_two(n),
        mantissa,
        exponent,
        vector_math.log(y) + 1.0 * (y == 1.0),
    )


@pytest.mark.parametrize("log_term", LOG_TERMS)
@settings(max_examples=8 if INTERPRETED else 60)
@given(case=cases(max_units=8), enumerate_up_to=st.sampled_from([0, 2]))
def test_the_bound_of_a_solution_is_that_of_its_means(log_term, case, enumerate_up_to):
    which = {"log_term": log_term, "enumerate_up_to": enumerate_up_to}
    post = sb.infer(*case, solver=sb.MeanField(**which, max_sweeps=30))
    again = lower_bound(*case, post.means, post.xi, **which)
    rounding = 16 * oracle.rounding(case[0].weight_matrix(), case[0].bias) + 1e-12
    assert abs(post.breakdown().bound - again) <= rounding
    if log_term == "exact":  # with other frequencies; and the reference may take a tighter term than was climbed
        rounding += TIGHT * case[0].n_units
    assert post.bound <= again + rounding
    if log_term != "exact" or np.abs(case[0].weight_matrix()).sum() < 100:
        assert post.bound >= again - rounding


@pytest.mark.parametrize("log_term", LOG_TERMS)
@pytest.mark.parametrize("autoregressive", [False, True])
def test_gradients_are_slopes_of_the_bound_at_fixed_parameters(log_term, autoregressive):  # envelope theorem
    network, step = sb.layered((2, 4, 3), rng=5, scale=1.2, autoregressive=autoregressive), 1e-4
    row = np.array([1.0, np.nan, 0.0]) if autoregressive else np.array([1.0, 1.0, 0.0])
    which = {"log_term": log_term, "enumerate_up_to": 2}
    solver = sb.MeanField(**which, tol=1e-12, max_sweeps=2000)
    post, slope = sb.infer(network, row, solver=solver), sb.gradient(network, row, solver=solver)

    def bound(**moved):
        return lower_bound(network.with_parameters(**moved), row, post.means, **which)

    assert_allclose(slope.bound, post.bound, rtol=0, atol=1e-9)
    for name in ("weight", "bias"):
        value = getattr(network, name)
        moves = step * np.eye(len(value))
        numeric = [(bound(**{name: value + move}) - bound(**{name: value - move})) / (2 * step) for move in moves]
        assert_allclose(getattr(slope, name), numeric, rtol=0, atol=2e-5 if log_term == "exact" else 2e-6)


# --- the verbs, one after the other ---------------------------------------------------------------------------------

each = terms.each
pull = each("pull", "work, j, mu", adds=True)
renew = each("renew", "work, mu, enough, fresh", adds=True)
KINDS = {**terms.LOG_TERMS, "enumerated": enumerated.ROOM}


class Factor:
    """One factor of a problem, its term by the oracle; xi and c are held where they were when it was made."""

    def __init__(self, name, problem, work, f, bias, mu):
        here = slice(problem.ptr[f], problem.ptr[f + 1])
        self.name, self.parent, self.weight = name, problem.parent[here], problem.weight[here]
        self.bias, self.place = bias[problem.factor[f]], work.ints[work.ints[PLACE] + f]
        self.xi, self.c = terms.parameter(work, f), np.sqrt(self.moments(self.weight, mu, self.bias)[1])

    def moments(self, weight, mu, bias):
        m = mu[self.parent]
        mean = bias + weight @ m
        return mean, mean**2 + weight**2 @ (m * (1 - m))

    def term(self, weight, mu, bias):
        J, h, m = weight[None, :], np.array([bias]), mu[self.parent]
        if self.name in ("xi", "jensen"):
            return oracle.log1pexp_bound(J, h, m, np.array([self.xi]))[0]
        if self.name == "quadratic":
            mean, second = self.moments(weight, mu, bias)
            bend = np.tanh(self.c / 2) / (4 * self.c)
            return bend * (second - self.c**2) + (mean - self.c) / 2 + np.logaddexp(0, self.c)
        return oracle.mean_log1pexp(J, h, m)[0]


def slope(function, x, step=1e-5):
    """Its derivatives, by differences."""
    moves = step * np.eye(len(x))
    return np.array([(function(x + move) - function(x - move)) / (2 * step) for move in moves])


def numbers(work, f):
    """The numbers of factor f, from its lane on."""
    return work.numbers[work.ints[work.ints[at.PLACE] + f] :]


def prepared(name, seed):
    """A problem with factors of four to six hidden parents, laid out for one kind, and means anywhere."""
    rng = np.random.default_rng(seed)
    network = sb.layered((4, 6, 20), rng=seed, scale=1.0, autoregressive=True)
    states = np.full((1, network.n_units), -1, np.int8)
    states[0, 10:] = rng.integers(0, 2, 20)
    problem, bias = reduce(network.model, states[0]), absorb(network, states)[0]
    mu = rng.uniform(0.05, 0.95, len(problem.hidden))
    work = terms.prepare(problem, np.full(len(problem.factor), KINDS[name]), False, each("prepare", "work"))
    terms.begin(work, states[0], bias, mu, each("begin", "work"))
    if name == "exact":
        places = 2 * waves.places_for(work, np.full(len(mu), 0.5), False)[0]
        work = waves.make_room(work, places, True)
        waves.tune(work, places)
    exact.attend(work, True)
    promise = 1.0
    for _ in range(21):
        promise = renew(work, mu, 0.0, True)
    assert promise < 1e-9
    return problem, work, bias, mu, rng


def check_terms(name, factors, work, mu):
    atol = TIGHT if name == "exact" else 1e-12
    for factor in factors:
        place = factor.place
        assert abs(work.numbers[place + int(MEAN)] - factor.moments(factor.weight, mu, factor.bias)[0]) < 1e-12
        assert abs(work.numbers[place + int(TERM)] - factor.term(factor.weight, mu, factor.bias)) < atol
        near = mu[factor.parent]
        _, found = terms.reference(KINDS[name], 0, factor.weight, near, factor.bias, factor.xi)
        assert abs(work.numbers[place + int(TERM)] - found) < atol


@pytest.mark.skipif(not INTERPRETED, reason="compiled, only kernels can call these")
@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("seed", range(2))
def test_the_verbs_of_a_term_agree_with_one_another(name, seed):
    problem, work, bias, mu, rng = prepared(name, seed)

    def every():
        return [Factor(name, problem, work, f, bias, mu) for f in range(len(problem.factor))]

    factors, atol = every(), TIGHT if name == "exact" else 1e-7
    check_terms(name, factors, work, mu)
    each("open_sweep", "work, mu")(work, mu)
    for j in range(len(mu)):  # a sweep of eq. (24), but to means of our own
        children = [factor for factor in factors if j in factor.parent]

        def gain(value, j=j, children=children):  # what the children of unit j add to the bound
            moved = np.where(np.arange(len(mu)) == j, value, mu)
            return sum(
                work.numbers[factor.place + int(VALUE)] * factor.moments(factor.weight, moved, factor.bias)[0]
                - factor.term(factor.weight, moved, factor.bias)
                for factor in children
            )

        assert_allclose(pull(work, j, mu), slope(gain, mu[j : j + 1])[0], rtol=0, atol=20 * atol)
        old, mu[j] = mu[j], rng.uniform(0.05, 0.95)
        if problem.factor_of[j] >= 0:
            numbers(work, problem.factor_of[j])[at.VALUE] = mu[j]
        each("push", "work, mu, j, old, new")(work, mu, j, old, mu[j])
        asked = np.flatnonzero(problem.own >= 0)  # the mean inputs of hidden units: the sweep has yet to come to them
        inputs = [factors[f].moments(factors[f].weight, mu, factors[f].bias)[0] for f in asked]
        assert_allclose([numbers(work, f)[at.MEAN] for f in asked], inputs, rtol=0, atol=1e-12)
    renew(work, mu, 0.0, False)
    check_terms(name, every(), work, mu)
    renew(work, mu, 0.0, True)
    factors = every()
    check_terms(name, factors, work, mu)
    by_slot, by_factor = np.full(len(problem.weight), np.nan), np.full(len(problem.factor), np.nan)
    each("gradient", "work, mu, by_slot, by_factor")(work, mu, by_slot, by_factor)
    for f, factor in enumerate(factors):
        in_weight = slope(lambda weight, factor=factor: factor.term(weight, mu, factor.bias), factor.weight)
        in_bias = slope(lambda bias, factor=factor: factor.term(factor.weight, mu, bias[0]), np.array([factor.bias]))
        assert_allclose(by_slot[problem.ptr[f] : problem.ptr[f + 1]], in_weight, rtol=0, atol=10 * atol)
        assert_allclose(by_factor[f], in_bias[0], rtol=0, atol=10 * atol)


@pytest.mark.skipif(not INTERPRETED, reason="compiled, only kernels can call these")
@pytest.mark.parametrize("seed", range(2))
def test_a_few_frequencies_bound_the_exact_term_and_know_its_slope(seed):
    problem, work, _, mu, rng = prepared("exact", seed)
    mu[:] = rng.choice([0.02, 0.5, 0.98], len(mu))

    def values(m, whole):  # <x> and term of every factor
        exact.attend(work, whole)
        renew(work, m, 0.0, True)
        return np.array([numbers(work, f)[[int(MEAN), int(TERM)]] for f in range(len(problem.factor))])

    few, every = values(mu, False)[:, 1], values(mu, True)[:, 1]
    assert np.all(few >= every - TIGHT)
    assert np.all(few <= every + 3e-3)
    own = np.array([numbers(work, f)[at.VALUE] for f in range(len(problem.factor))])
    slopes = []
    for j in range(len(mu)):  # the terms are linear in every mean
        off, on = (values(np.where(np.arange(len(mu)) == j, s, mu), False) for s in (0.0, 1.0))
        slopes.append(np.sum(own * (on - off)[:, 0] - (on - off)[:, 1]))
    values(mu, False)
    each("open_sweep", "work, mu")(work, mu)
    for j in range(len(mu)):
        assert_allclose(pull(work, j, mu), slopes[j], rtol=0, atol=1e-11)
        each("push", "work, mu, j, old, new")(work, mu, j, mu[j], mu[j])


# --- kernels that draw at random ------------------------------------------------------------------------------------

# Whole numbers of NumPy warn where the generator means them to wrap.
wraps = pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")


@wraps
def test_gibbs_means_are_exact_ones_within_their_error(sprinkler):
    rows = [{"slippery": 1}, {"wet": 1}, {}]
    batch = sb.infer_many(sprinkler, rows, solver=sb.Gibbs(samples=150, burn_in=10, chains=8))
    exact_means = np.array([sb.exact_posterior(sprinkler, row) for row in rows])
    assert np.all(np.abs(batch.means - exact_means) <= 6 * batch.error + 1e-12)
    assert np.all(batch.error < 0.05)


@wraps
@pytest.mark.parametrize(("method", "steps"), [("importance", 1), ("annealed", 5), ("annealed", 70)])
def test_estimates_are_ln_p_within_their_error(sprinkler, method, steps):
    samples = 400 if steps < 50 else 50
    estimate = sb.estimate(sprinkler, {"slippery": 1, "rain": 0}, samples=samples, method=method, steps=steps)
    truth = sb.log_likelihood(sprinkler, {"slippery": 1, "rain": 0})
    assert abs(estimate.log_probability - truth) <= 6 * estimate.error + 1e-12
    assert estimate.error < 0.2


@wraps
def test_weights_have_the_mean_of_p_where_the_prior_is_drawn_from_too():
    network = sb.layered((2, 3, 3), rng=1, scale=2.0)
    estimate = sb.estimate(network, [1, 0, 1], samples=400, settings=sb.solvers.EstimateSettings(defence=0.5))
    assert abs(estimate.log_probability - sb.log_likelihood(network, [1, 0, 1])) <= 6 * estimate.error


def test_samples_have_the_frequencies_of_the_network(sprinkler):
    states = sb.sample(sprinkler, 1500, rng=0)
    marginals = sb.exact_posterior(sprinkler, {})
    assert_allclose(states.mean(axis=0), marginals, rtol=0, atol=0.06)  # four standard errors
    J, h = sprinkler.weight_matrix(), sprinkler.bias
    assert_allclose(sb.log_joint(sprinkler, states[:20]), oracle.log_joint(J, h, states[:20]), rtol=0, atol=1e-12)


@wraps
@pytest.mark.parametrize("evidence", [{"x0": 1, "x1": 0}, {"x0": 1, "x2": 1, "h1_0": 0}])
def test_exact_answers_are_sums_over_all_states(evidence):
    network = sb.layered((2, 3, 3), rng=0, scale=2.0)
    row = np.full(network.n_units, np.nan)
    for name, value in evidence.items():
        row[network.index(name)] = value
    J, h = network.weight_matrix(), network.bias
    assert_allclose(sb.log_likelihood(network, evidence), oracle.log_likelihood(J, h, row), rtol=0, atol=1e-12)
    assert_allclose(sb.exact_posterior(network, evidence), oracle.posterior(J, h, row), rtol=0, atol=1e-12)
