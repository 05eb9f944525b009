"""Random states of the hidden units with weights whose mean is P(V): importance sampling, plain and annealed."""

from __future__ import annotations

import math

import numpy as np

from sbnet._types import FloatArray, Model, Problem, States
from sbnet.kernels._compile import bare, inner, kernel
from sbnet.kernels.gates import sigmoid, softplus
from sbnet.kernels.random import GOLDEN, mix, row_seed, uniform
from sbnet.kernels.reduce import reduce

_FRESH = 64  # sweeps after which z is summed anew, so that rounding does not pile up


@bare
def _inputs(problem: Problem, bias: FloatArray, on: States, z: FloatArray) -> None:
    """z of every factor."""
    for f in range(len(z)):
        z[f] = bias[problem.factor[f]]
        for s in range(problem.ptr[f], problem.ptr[f + 1]):
            z[f] += problem.weight[s] * on[problem.parent[s]]


@bare
def _log_p(problem: Problem, states: States, bias: FloatArray, on: States, z: FloatArray) -> tuple[float, float]:
    """ln P(H, V) but for the settled units, and the part of it that is ln P of hidden units given their parents."""
    total = hidden = 0.0
    for j in range(len(on)):
        f = problem.factor_of[j]
        input_ = z[f] if f >= 0 else bias[problem.hidden[j]]
        hidden -= softplus(-input_ if on[j] == 1 else input_)
    for f in range(len(z)):
        if problem.own[f] < 0:
            total -= softplus(-z[f] if states[problem.factor[f]] == 1 else z[f])
    return total + hidden, hidden


@bare
def _log_q(log_on: FloatArray, log_off: FloatArray, on: States) -> float:
    total = 0.0
    for j in range(len(on)):
        total += log_on[j] if on[j] == 1 else log_off[j]
    return total


@bare
def _draw_prior(problem: Problem, bias: FloatArray, on: States, z: FloatArray, seed: np.uint64) -> np.uint64:
    """Draw the hidden units from their parents, first to last; z of all factors follows."""
    for f in range(len(z)):
        z[f] = bias[problem.factor[f]]
    for j in range(len(on)):
        f = problem.factor_of[j]
        seed += GOLDEN
        on[j] = 1 if uniform(seed) < sigmoid(z[f] if f >= 0 else bias[problem.hidden[j]]) else 0
        if on[j] == 1:
            for c in range(problem.child_ptr[j], problem.child_ptr[j + 1]):
                z[problem.child[c]] += problem.weight[problem.child_slot[c]]
    return seed


@bare
def _anneal(
    problem: Problem,
    states: States,
    bias: FloatArray,
    log_odds: FloatArray,
    b: float,
    on: States,
    z: FloatArray,
    term: FloatArray,
    seed: np.uint64,
) -> np.uint64:
    """Draw every hidden unit given all others from Q^(1-b) P^b; `term` keeps ln(1 + e^z) beside z."""
    own, weight = problem.own, problem.weight
    for j in range(len(on)):
        f = problem.factor_of[j]
        field = z[f] if f >= 0 else bias[problem.hidden[j]]
        for c in range(problem.child_ptr[j], problem.child_ptr[j + 1]):
            f = problem.child[c]
            w = weight[problem.child_slot[c]]
            value = on[own[f]] if own[f] >= 0 else states[problem.factor[f]]
            change = softplus(z[f] - w) - term[f] if on[j] == 1 else term[f] - softplus(z[f] + w)
            field += value * w + change
        seed += GOLDEN
        new = 1 if uniform(seed) < sigmoid((1.0 - b) * log_odds[j] + b * field) else 0
        if new != on[j]:
            for c in range(problem.child_ptr[j], problem.child_ptr[j + 1]):
                f = problem.child[c]
                z[f] += (new - on[j]) * weight[problem.child_slot[c]]
                term[f] = softplus(z[f])
            on[j] = new
    return seed


@inner
def _settled(problem: Problem, states: States, bias: FloatArray) -> float:
    """ln P of the observed units whose parents are all observed."""
    total = 0.0
    for i in problem.settled:
        if states[i] >= 0:
            total -= softplus(-bias[i] if states[i] == 1 else bias[i])
    return total


@kernel
def log_weights(
    model: Model,
    states: States,
    bias: FloatArray,
    means: FloatArray,
    defence: float,
    steps: int,
    seed: np.uint64,
    out: FloatArray,
) -> None:
    """ln w for each row and draw, with <w> = P(V).

    Without steps, H comes from the factorial distribution Q with the given means, or with chance `defence` from the
    network with the evidence held fixed, and w = P(H, V) / [(1 - defence) Q(H) + defence P(H)] is at most 1 / defence.
    With steps, H comes from Q and goes through Q^(1-b) P^b, b rising from 0 to 1 (Neal 2001).
    """
    for r in range(len(states)):
        problem = reduce(model, states[r])
        constant = _settled(problem, states[r], bias[r])
        n = len(problem.hidden)
        own_seed = row_seed(seed, states[r])
        on, z, term = np.zeros(n, np.int8), np.zeros(len(problem.factor)), np.zeros(len(problem.factor))
        mu, log_on, log_off = means[r][problem.hidden], np.empty(n), np.empty(n)
        for j in range(n):
            mu[j] = min(max(mu[j], 1e-14), 1.0 - 1e-14)  # no state is impossible, or the mean would be too low
            log_on[j], log_off[j] = math.log(mu[j]), math.log1p(-mu[j])
        log_odds = log_on - log_off
        for k in range(out.shape[1]):
            state = mix(own_seed + np.uint64(k + 1) * GOLDEN)
            state += GOLDEN
            if n == 0:
                out[r, k] = constant
                continue
            if steps == 0 and uniform(state) < defence:
                state = _draw_prior(problem, bias[r], on, z, state)
            else:
                for j in range(n):
                    state += GOLDEN
                    on[j] = 1 if uniform(state) < mu[j] else 0
                _inputs(problem, bias[r], on, z)
            log_p, log_prior = _log_p(problem, states[r], bias[r], on, z)
            log_q = _log_q(log_on, log_off, on)
            if steps == 0:
                a, b = math.log1p(-defence) + log_q, math.log(defence) + log_prior
                out[r, k] = constant + log_p - (max(a, b) + math.log1p(math.exp(-abs(a - b))))
                continue
            total = (log_p - log_q) / steps
            for t in range(1, steps):
                if t % _FRESH == 1:
                    _inputs(problem, bias[r], on, z)
                    for f in range(len(z)):
                        term[f] = softplus(z[f])
                state = _anneal(problem, states[r], bias[r], log_odds, t / steps, on, z, term, state)
                total += (_log_p(problem, states[r], bias[r], on, z)[0] - _log_q(log_on, log_off, on)) / steps
            out[r, k] = constant + total
