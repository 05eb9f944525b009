"""Mean field theory over variables with any number of states, held to sums over all joint states."""

from __future__ import annotations

import itertools
from decimal import Decimal, localcontext

import numpy as np
import pytest

from sbnet._types import Bound, Stop
from sbnet.bounds import rows
from sbnet.kernels import kinds
from sbnet.kernels.gradient import Gradients
from strategies import model_of

STOP = Stop(1e-8, 400)
EXACT_TERM = 1e-6  # the exact term has an error of about 1e-7, which varies with the frequencies


def random_model(rng, most_states, scale, n=5, density=0.7):
    """A network of sigmoid variables: its arrays, and its biases."""
    n_states = rng.integers(2, most_states + 1, n)
    parents = [[u for u in range(v) if rng.random() < density] for v in range(n)]
    indptr = np.cumsum([0, *map(len, parents)])
    parent = np.array([u for some in parents for u in some], dtype=np.int64)
    child = np.repeat(np.arange(n), np.diff(indptr))
    block = np.cumsum([0, *(n_states[child] - 1) * (n_states[parent] - 1)])
    order = np.argsort(parent, kind="stable")
    child_indptr = np.searchsorted(parent[order], np.arange(n + 1))
    threshold = np.cumsum([0, *(n_states - 1)])
    weight, bias = rng.uniform(-scale, scale, block[-1]), rng.uniform(-scale, scale, threshold[-1]) / 2
    gate = np.zeros(n, np.int8)
    return model_of(indptr, parent, child_indptr, child[order], order, weight, gate, n_states, threshold, block), bias


def inputs(model, bias, states, v):
    """x_l of the thresholds of v in a joint state: h_l + sum of J_l[u, s_u]; parents that are not set count 0."""
    x = bias[model.threshold[v] : model.threshold[v + 1]].copy()
    for e in range(model.indptr[v], model.indptr[v + 1]):
        u = model.parent[e]
        if states[u] > 0:
            shape = model.n_states[v] - 1, model.n_states[u] - 1
            x += model.weight[model.block[e] :][: shape[0] * shape[1]].reshape(shape)[:, states[u] - 1]
    return x


def log_joint(model, bias, states):
    """The sum over variables of ln P(v = k | parents): P(v >= l | v >= l - 1) = sigma(x_l)."""
    total = 0.0
    for v, k in enumerate(states):
        x = inputs(model, bias, states, v)
        total -= np.logaddexp(0.0, -x[:k]).sum() + (np.logaddexp(0.0, x[k]) if k < len(x) else 0.0)
    return total


def log_likelihood(model, bias, evidence):
    choices = [range(k) if s < 0 else [s] for k, s in zip(model.n_states, evidence, strict=True)]
    return np.logaddexp.reduce([log_joint(model, bias, states) for states in itertools.product(*choices)])


def solve(model, bias, evidence, log_term, *, enumerate_up_to=0, gradients=None, stop=STOP, start=None):
    """One row; evidence is absorbed here, into the biases of the children."""
    absorbed = np.concatenate([inputs(model, bias, evidence, v) for v in range(len(evidence))])[None]
    n = len(bias)
    start = np.repeat(1.0 / model.n_states, model.n_states - 1) if start is None else start
    answers = rows.Answers(
        np.empty(1), np.array(start)[None], np.full((1, n), np.nan), np.empty(1, np.int64), np.empty(1, np.bool_),
        np.full((1, stop.max_sweeps + 1), np.nan), np.empty((1, 0)),
    )  # fmt: skip
    which = Bound(kinds.LOG_TERMS[log_term], enumerate_up_to)
    rows.solve_rows(model, which, stop, evidence[None], absorbed, False, answers, gradients)
    return answers


def case(seed, most_states, scale):
    rng = np.random.default_rng(seed)
    model, bias = random_model(rng, most_states, scale)
    evidence = np.where(rng.random(len(model.gate)) < 0.4, rng.integers(0, model.n_states), -1).astype(np.int8)
    evidence[-1] = rng.integers(0, model.n_states[-1])
    return model, bias, evidence


@pytest.mark.parametrize("log_term", ["xi", "jensen", "quadratic", "exact"])
@pytest.mark.parametrize("scale", [0.5, 3.0, 30.0, 1000.0])
@pytest.mark.parametrize("most_states", [2, 3, 5])
def test_bounds_never_exceed_the_log_likelihood_and_never_fall(log_term, scale, most_states):  # eq. (11), footnote 4
    for seed in range(6):
        model, bias, evidence = case(seed, most_states, scale)
        truth, answers = log_likelihood(model, bias, evidence), solve(model, bias, evidence, log_term)
        rounding = 1e-12 * (1.0 + np.abs(model.weight).sum() + np.abs(bias).sum())
        assert answers.bound[0] <= truth + rounding
        assert np.isfinite(answers.bound[0])
        assert answers.trace[0, answers.sweeps[0]] == answers.bound[0]
        # A trace holds the best bound so far and cannot fall. So stop after each sweep instead.
        stops = [Stop(STOP.tol, sweeps) for sweeps in range(12)]
        bounds = [solve(model, bias, evidence, log_term, stop=stop).bound[0] for stop in stops]
        assert np.diff(bounds).min() >= -rounding - (EXACT_TERM if log_term == "exact" else 0.0)


def bound_in_sixty_digits(model, bias, evidence, means, xi):
    """Eqs. (16) and (20) at these means and these xi; Q(0) is 1 less the others, as a kernel's number has it."""
    q = []
    for v, state in enumerate(evidence):
        rest, others = 1.0, means[model.threshold[v] : model.threshold[v + 1]]
        for p in others:
            rest -= p
        known = [float(s == state) for s in range(model.n_states[v])]
        q.append([Decimal(p) for p in (known if state >= 0 else [float(rest), *others.tolist()])])
    total, live = Decimal(0), evidence >= 0
    for v in reversed(range(len(evidence))):  # variables without an observed descendant drop out
        live[model.parent[model.indptr[v] : model.indptr[v + 1]]] |= live[v]
    for v in np.flatnonzero(live):
        total -= sum(p * p.ln() for p in q[v] if p > 0)
        for level in range(1, model.n_states[v]):
            at = model.threshold[v] + level - 1
            h, y = Decimal(float(bias[at])), Decimal(float(np.nan_to_num(xi[at])))
            x, a, b = h, (-y * h).exp(), ((1 - y) * h).exp()
            for e in range(model.indptr[v], model.indptr[v + 1]):
                u = model.parent[e]
                width = model.n_states[u] - 1
                row = model.weight[model.block[e] + (level - 1) * width :][:width]
                weights = [Decimal(0), *(Decimal(float(w)) for w in row)]
                x += sum(p * w for p, w in zip(q[u], weights, strict=True))
                a *= sum(p * (-y * w).exp() for p, w in zip(q[u], weights, strict=True))
                b *= sum(p * ((1 - y) * w).exp() for p, w in zip(q[u], weights, strict=True))
            total += sum(q[v][level:]) * x - sum(q[v][level - 1 :]) * (y * x + (a + b).ln())
    return float(total)


@pytest.mark.parametrize("scale", [1.0, 30.0, 1000.0])
@pytest.mark.parametrize("most_states", [2, 4])
def test_bounds_are_evaluated_to_rounding(scale, most_states):  # a bound with wrong digits proves nothing
    for seed in range(10):
        model, bias, evidence = case(seed, most_states, scale)
        answers = solve(model, bias, evidence, "xi")
        with localcontext() as context:
            context.prec, context.Emin, context.Emax = 60, -(10**9), 10**9
            truth = bound_in_sixty_digits(model, bias, evidence, answers.means[0], answers.xi[0])
        rounding = 1e-13 * (10.0 + np.abs(model.weight).sum() + np.abs(bias).sum())
        assert answers.bound[0] == pytest.approx(truth, abs=rounding)


@pytest.mark.parametrize("seed", range(4))
def test_all_parents_observed_is_exact(seed):
    model, bias, _ = case(seed, 4, 2.0)
    evidence = np.array([k - 1 for k in model.n_states], np.int8)
    answers = solve(model, bias, evidence, "xi")
    assert answers.bound[0] == pytest.approx(log_joint(model, bias, evidence), abs=1e-12)
    assert answers.sweeps[0] == 0
    assert answers.converged[0]


@pytest.mark.parametrize("seed", range(4))
def test_enumeration_of_one_hidden_variable_is_exact(seed):  # a factorial Q is no restriction
    model, bias, evidence = case(seed, 5, 2.0)
    evidence[:] = 0
    evidence[0] = -1
    answers = solve(model, bias, evidence, "xi", enumerate_up_to=5)
    assert answers.bound[0] == pytest.approx(log_likelihood(model, bias, evidence), abs=1e-6)
    probabilities = [log_joint(model, bias, [s, *evidence[1:]]) for s in range(model.n_states[0])]
    posterior = np.exp(probabilities - np.logaddexp.reduce(probabilities))
    assert answers.means[0, : model.n_states[0] - 1] == pytest.approx(posterior[1:], abs=1e-3)


@pytest.mark.parametrize("log_term", ["xi", "exact"])
def test_gradients_are_derivatives_of_the_bound(log_term):  # eqs. (34)-(35), and the envelope theorem
    model, bias, evidence = case(3, 4, 1.0)
    stop = Stop(1e-14, 3000)
    gradients = Gradients(np.ones(1), np.zeros(len(model.weight)), np.zeros(len(bias)))
    solve(model, bias, evidence, log_term, gradients=gradients, stop=stop)
    step = 1e-4
    for k in range(len(bias)):
        ends = [bias.copy(), bias.copy()]
        ends[0][k], ends[1][k] = bias[k] - step, bias[k] + step
        low, high = (solve(model, end, evidence, log_term, stop=stop).bound[0] for end in ends)
        assert gradients.bias[k] == pytest.approx((high - low) / (2 * step), abs=1e-5)
    for k in range(0, len(model.weight), 3):
        ends = [model.weight.copy(), model.weight.copy()]
        ends[0][k], ends[1][k] = model.weight[k] - step, model.weight[k] + step
        low, high = (solve(model._replace(weight=w), bias, evidence, log_term, stop=stop).bound[0] for w in ends)
        assert gradients.weight[k] == pytest.approx((high - low) / (2 * step), abs=1e-5)


@pytest.mark.parametrize("seed", range(3))
def test_what_has_no_say_in_the_evidence_is_predicted(seed):
    model, bias, _ = case(seed, 4, 1.5)
    evidence = np.full(len(model.gate), -1, np.int8)
    evidence[0] = 1
    answers = solve(model, bias, evidence, "xi")
    second = np.exp([log_likelihood(model, bias, np.array([1, s, -1, -1, -1])) for s in range(model.n_states[1])])
    first = model.threshold[1]
    assert answers.means[0, first : model.threshold[2]] == pytest.approx((second / second.sum())[1:], abs=1e-9)
    for v in range(len(model.gate)):
        assert 0.0 <= answers.means[0, model.threshold[v] : model.threshold[v + 1]].sum() <= 1.0 + 1e-12


@pytest.mark.parametrize("log_term", ["xi", "jensen"])
@pytest.mark.parametrize("scale", [0.5, 8.0, 30.0, 1000.0])
def test_two_states_have_the_bounds_of_the_kernels_for_units(log_term, scale):
    stop = Stop(1e-13, 5000)  # both must come to rest: what is left by the tolerance differs
    for seed in range(6):
        model, bias, evidence = case(seed, 2, scale)
        absorbed = np.concatenate([inputs(model, bias, evidence, v) for v in range(len(evidence))])[None]
        answers = rows.Answers(
            np.empty(1), np.full((1, len(bias)), 0.5), np.full((1, len(bias)), np.nan), np.empty(1, np.int64),
            np.empty(1, np.bool_), np.empty((1, 0)), np.empty((1, 0)),
        )  # fmt: skip
        rows.solve_rows(model, Bound(kinds.LOG_TERMS[log_term], 0), stop, evidence[None], absorbed, False, answers)
        rounding = 1e-9 + 1e-13 * (np.abs(model.weight).sum() + np.abs(bias).sum())
        assert solve(model, bias, evidence, log_term, stop=stop).bound[0] == pytest.approx(
            answers.bound[0], abs=rounding
        )
