"""Mixtures of factorial distributions: the bound against sums over all states, and against fewer components."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from scipy.special import expit, logsumexp, xlogy

import oracle
import sbnet as sb
from sbnet.bounds.rows import Answers, solve_rows
from sbnet.questions.reduction import absorb, reduce, uncoupled, whole, with_gates
from strategies import INTERPRETED, cases

pytestmark = pytest.mark.filterwarnings("ignore::sbnet.errors.ConvergenceWarning")  # hostile networks need long

ROUNDINGS = 4


def rounding(network):
    return ROUNDINGS * oracle.rounding(network.weight_matrix(), network.bias)


@pytest.mark.small
@pytest.mark.parametrize("log_term", ["exact", "xi"])
@given(case=cases(max_units=5 if INTERPRETED else 12))
@settings(max_examples=2 if INTERPRETED else 40)
def test_the_bound_lies_between_that_of_the_solver_and_the_truth(log_term, case):
    network, evidence = case
    solver = sb.MeanField(log_term=log_term, tol=1e-4)
    bounds = [sb.infer(network, evidence, solver=sb.Mixture(m, solver)).bound for m in (1, 2, 4)]
    assert bounds[0] == sb.infer(network, evidence, solver=solver).bound
    assert bounds[1] >= bounds[0] - rounding(network)
    assert bounds[2] >= bounds[1] - rounding(network)
    assert bounds[2] <= sb.log_likelihood(network, evidence) + rounding(network)


def components_of(network, evidence, m):
    """The components of a mixture, as the solver finds them."""
    solver = sb.MeanField(tol=1e-10, enumerate_up_to=10)
    states = np.where(np.isnan(evidence), -1, evidence).astype(np.int8)
    plain, bias = sb.infer(network, evidence, solver=solver), absorb(network, states[None])[0]
    parts = sb.Mixture(m, solver).divide(network, states, bias, plain.bound, plain.means)
    return parts, np.flatnonzero(whole(network.model, states).hidden)


@pytest.mark.parametrize("seed", range(5))
def test_two_components_have_their_whole_mutual_information(seed):
    # L(Q) = sum over all states of Q ln P - Q ln Q, for the mixture Q itself
    network = sb.layered((2, 4, 6), rng=seed, scale=3.0)
    evidence = np.r_[np.full(6, np.nan), np.zeros(6)]
    parts, hidden = components_of(network, evidence, 2)
    J, h = network.weight_matrix(), network.bias
    values = np.array([part.bound for part in parts])
    share = np.exp(values - logsumexp(values))
    full = np.zeros((2, 12))
    full[:, hidden] = [part.mu for part in parts]
    q = share @ [oracle.q_of_states(evidence, mu) for mu in full]
    true = np.sum(q * oracle.log_joint(J, h, oracle.all_states(evidence)) - xlogy(q, q))
    assert abs(logsumexp(values) - true) < 1e-6
    assert logsumexp(values) <= true + 1e-12


@pytest.mark.parametrize("m", [3, 5])
@pytest.mark.parametrize("seed", range(3))
def test_more_components_have_at_most_their_mutual_information(seed, m):
    network = sb.layered((2, 4, 6), rng=seed, scale=2.0)
    evidence = np.r_[np.full(6, np.nan), np.ones(6)]
    parts, hidden = components_of(network, evidence, m)
    values = np.array([part.bound for part in parts])
    share = np.exp(values - logsumexp(values))
    full = np.zeros((m, 12))
    full[:, hidden] = [part.mu for part in parts]
    q = share @ [oracle.q_of_states(evidence, mu) for mu in full]
    J, h = network.weight_matrix(), network.bias
    true = np.sum(q * oracle.log_joint(J, h, oracle.all_states(evidence)) - xlogy(q, q))
    assert logsumexp(values) <= true + 1e-9
    assert logsumexp(values) > true - 0.02


@pytest.mark.small
def test_a_component_is_the_problem_with_an_observed_gate():
    # the same as a network that has the gate for a further unit, with all hidden units as parents
    network = sb.layered((2, 3, 4), rng=0, scale=2.0)
    weight, bias = np.array([1.0, -2.0, 0.5, 3.0, -1.0]), -0.3
    edges = [*network.edges(), *((network.names[j], "gate", w) for j, w in enumerate(weight))]
    names = (*network.names, "gate")
    larger = sb.from_edges(edges, bias=dict(zip(names, [*network.bias, bias], strict=True)), names=names)
    solver, states = sb.MeanField(tol=1e-12), np.array([-1] * 5 + [0, 1, 0, 1], np.int8)
    part, shifted = whole(network.model, states), absorb(network, states[None])[0]
    for side in (0, 1):
        answers = Answers(
            np.empty(1), np.full((1, 10), 0.5), np.full((1, 10), np.nan), np.empty(1, np.int64), np.empty(1, np.bool_),
            np.empty((1, 0)), np.empty((1, 0)),
        )  # fmt: skip
        model, observed = with_gates(part.model, part.hidden, weight[None]), np.append(states, side).astype(np.int8)
        solve_rows(model, solver.bound, solver.stop, observed[None], np.append(shifted, bias)[None], True, answers)
        post = sb.infer(larger, [*[np.nan] * 5, 0, 1, 0, 1, side], solver=solver)
        assert abs(post.bound - answers.bound[0]) < 1e-6
        assert np.allclose(post.means[:5], answers.means[0, :5], rtol=0, atol=1e-3)


def test_two_modes_are_both_found():
    # "a equals b" is certain, and both states are equally likely: two components are exact, one loses ln 2
    edges = {("a", "x"): 20.0, ("b", "x"): -20.0, ("a", "y"): -20.0, ("b", "y"): 20.0}
    pair = sb.from_edges(edges, bias={"x": 10.0, "y": 10.0})
    exact = sb.log_likelihood(pair, {"x": 1, "y": 1})
    one, two = (sb.infer(pair, {"x": 1, "y": 1}, solver=sb.Mixture(m)) for m in (1, 2))
    assert one.bound < exact - 0.6
    assert abs(two.bound - exact) < 1e-4
    assert np.allclose(two.means[:2], 0.5, rtol=0, atol=1e-3)


def test_the_means_are_weighted_by_the_components():
    # as above, but one of the two modes is e^2 times as likely as the other
    edges = {("a", "x"): 20.0, ("b", "x"): -20.0, ("a", "y"): -20.0, ("b", "y"): 20.0}
    pair = sb.from_edges(edges, bias={"a": 1.0, "b": 1.0, "x": 10.0, "y": 10.0})
    evidence = {"x": 1, "y": 1}
    post = sb.infer(pair, evidence, solver=sb.Mixture(2))
    assert abs(post.bound - sb.log_likelihood(pair, evidence)) < 1e-4
    assert np.allclose(post.means, sb.exact_posterior(pair, evidence), rtol=0, atol=1e-3)


def test_barren_units_follow_from_each_component():
    edges = {("a", "x"): 20.0, ("b", "x"): -20.0, ("a", "y"): -20.0, ("b", "y"): 20.0, ("a", "c"): 4.0, ("b", "c"): 4.0}
    network = sb.from_edges(edges, bias={"x": 10.0, "y": 10.0, "c": -4.0})
    post = sb.infer(network, {"x": 1, "y": 1}, solver=sb.Mixture(2))
    assert abs(post["c"] - (expit(-4.0) + expit(4.0)) / 2) < 1e-3


@pytest.mark.parametrize(("scale", "percent"), [(1, 0.8), (2, 1.78), (5, 2.33)])  # half the error of the paper
def test_five_components_leave_less_than_half_the_error(scale, percent):
    rng, errors = np.random.default_rng(1996), []
    for _ in range(25):
        network = sb.layered((2, 4, 6), rng=rng, scale=scale)
        bound = sb.infer(network, np.zeros(6), solver=sb.Mixture(5, sb.MeanField(tol=1e-4))).bound
        errors.append(bound / sb.log_likelihood(network, np.zeros(6)) - 1)
    assert 100 * np.mean(errors) <= percent / 4


def test_it_works_inside_conditioning():
    network = sb.layered((2, 4, 6), rng=5, scale=2.0)
    mixed = sb.Mixture(2)
    bounds = [sb.infer(network, np.zeros(6), solver=s).bound for s in (mixed, sb.Conditioned("roots", mixed))]
    assert bounds[0] < bounds[1] <= sb.log_likelihood(network, np.zeros(6))


@pytest.mark.small
@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"components": 0}, "components is 0; it must be a whole number, one or more"),
        ({"components": 2.0}, "components is 2.0; it must be a whole number, one or more"),
        ({"components": True}, "components is True; it must be a whole number, one or more"),
    ],
)
def test_settings_that_cannot_be_are_refused(arguments, text):
    with pytest.raises(sb.errors.ParameterError) as caught:
        sb.Mixture(**arguments)
    assert str(caught.value) == text
    with pytest.raises(sb.errors.ParameterError, match="^solver is Gibbs.*; components are found by mean field"):
        sb.Mixture(2, sb.Gibbs())


def test_any_solver_that_says_its_bound_and_when_it_stops_finds_components():
    class Wrapped:
        inner = sb.MeanField(log_term="xi", tol=1e-4)
        bound, stop = inner.bound, inner.stop

        def solve(self, network, states, *, start, trace):
            return self.inner.solve(network, states, start=start, trace=trace)

    network = sb.layered((2, 4, 6), rng=5, scale=2.0)
    mine, plain = (sb.infer(network, np.zeros(6), solver=sb.Mixture(3, s)) for s in (Wrapped(), Wrapped.inner))
    assert mine.bound == plain.bound
    assert np.array_equal(mine.means, plain.means)


@pytest.mark.small
@given(case=cases(max_units=5 if INTERPRETED else 12))
@settings(max_examples=3 if INTERPRETED else 40)
def test_uncoupled_parts_are_the_problem_taken_apart(case):
    """Every hidden variable, factor and edge between them is in one part, with its weight."""
    network, evidence = case
    states = np.where(np.isnan(evidence), -1, evidence).astype(np.int8)
    problem, parts = reduce(network.model, states), uncoupled(network.model, states)
    hidden = problem.hidden["variable"]
    assert sorted(v for part in parts for v in np.flatnonzero(part.hidden)) == sorted(hidden)
    owners = problem.slots["parent"][problem.factors["slot"]]
    for variable, parent in zip(problem.factors["variable"], hidden[owners], strict=True):
        assert [part.variables[variable] for part in parts] == [part.hidden[parent] for part in parts]
    for v in problem.known[states[problem.known] >= 0]:
        assert sum(part.variables[v] for part in parts) == 1
    factor = np.repeat(problem.factors["variable"], problem.factors["slot_end"] - problem.factors["slot"])
    edges = zip(factor, hidden[problem.slots["parent"]], problem.slots["weight"], strict=True)
    assert sorted(edges) == sorted(edge for part in parts for edge in _listed(part))


def _listed(part):
    """Edges of a part, under the numbers that variables have in the network."""
    name, model = np.flatnonzero(part.variables), part.model
    child = np.repeat(np.arange(len(name)), np.diff(model.indptr))
    return zip(name[child], name[model.parent], model.weight, strict=True)


def test_parts_have_mixtures_of_their_own():
    # three pairs like that above: four modes each time two components are not enough for, if they are shared
    edges, bias = {}, {}
    for k in range(3):
        edges |= {(f"a{k}", f"x{k}"): 20.0, (f"b{k}", f"x{k}"): -20.0, (f"a{k}", f"y{k}"): -20.0}
        edges |= {(f"b{k}", f"y{k}"): 20.0}
        bias |= {f"x{k}": 10.0, f"y{k}": 10.0}
    edges |= {("a0", "both"): 3.0, ("a1", "both"): 3.0, ("b2", "one"): 4.0}  # barren, below two parts and below one
    network = sb.from_edges(edges, bias=bias | {"both": -3.0, "one": -2.0})
    evidence = {f"{name}{k}": 1 for name in "xy" for k in range(3)}
    post = sb.infer(network, evidence, solver=sb.Mixture(2))
    assert post.bound == pytest.approx(sb.log_likelihood(network, evidence), abs=3e-4)
    assert np.allclose(post.means, sb.exact_posterior(network, evidence), rtol=0, atol=0.05)
    assert post["one"] == pytest.approx(sb.exact_posterior(network, evidence)["one"], abs=1e-3)


@pytest.mark.parametrize("seed", range(3))
def test_the_trace_goes_on_from_that_of_the_solver_and_rises(seed):
    network = sb.layered((2, 4, 6), rng=seed, scale=3.0)
    post, single = (sb.infer(network, np.zeros(6), solver=sb.Mixture(m)) for m in (4, 1))
    assert np.array_equal(post.trace[: len(single.trace)], single.trace)
    assert len(post.trace) > len(single.trace)
    assert np.all(np.diff(post.trace) >= 0.0)
    assert post.trace[-1] == post.bound
