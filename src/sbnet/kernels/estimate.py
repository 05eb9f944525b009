"""Random states of the hidden units with weights whose mean is P(V): annealed importance sampling."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from sbnet._types import FloatArray, Model, Problem, States
from sbnet.kernels import gates
from sbnet.kernels._compile import bare, kernel
from sbnet.kernels.gibbs import FRESH, sweep
from sbnet.kernels.random import GOLDEN, mix, row_seed, uniform
from sbnet.kernels.reduce import reduced
from sbnet.kernels.states import Complete, input_of, known_units, set_inputs


class Guess(NamedTuple):
    """The factorial distribution Q, by hidden unit."""

    mu: FloatArray
    log_on: FloatArray
    log_off: FloatArray
    log_odds: FloatArray


@bare
def _log_p(problem: Problem, states: States, bias: FloatArray, complete: Complete) -> float:
    """ln P(H, V) but for units with known inputs."""
    on, gate = complete.on, problem.gate
    total = 0.0
    for j in range(len(on)):
        total += gates.log_p(gate[problem.hidden[j]], on[j], input_of(problem, j, bias, complete))
    for f in range(len(complete.z)):
        i = problem.factor[f]
        if problem.own[f] < 0:
            total += gates.log_p(gate[i], states[i], complete.z[f] + complete.rest[f])
    return total


@bare
def _log_q(log_on: FloatArray, log_off: FloatArray, on: States) -> float:
    total = 0.0
    for j in range(len(on)):
        total += log_on[j] if on[j] == 1 else log_off[j]
    return total


@kernel
def anneal_rows(
    model: Model, states: States, bias: FloatArray, means: FloatArray, steps: int, seed: np.uint64, out: FloatArray
) -> None:
    """ln w for each row and draw, with <w> = P(V).

    H comes from the factorial distribution Q with the given means and goes through Q^(1-b) P^b, b rising from 0 to 1
    in `steps` steps (Neal 2001).
    """
    for r in range(len(states)):
        problem = reduced(model, states[r])
        n, n_factors = len(problem.hidden), len(problem.factor)
        guess = Guess(np.empty(n), np.empty(n), np.empty(n), np.empty(n))
        complete = Complete(np.zeros(n, np.int8), np.zeros(n_factors), np.zeros(n_factors), np.zeros(n_factors))
        own_seed = row_seed(seed, states[r])
        _weigh_row(problem, states[r], bias[r], means[r], steps, own_seed, guess, complete, np.empty(n), out[r])


@bare
def _weigh_row(
    problem: Problem,
    states: States,
    bias: FloatArray,
    means: FloatArray,
    steps: int,
    seed: np.uint64,
    guess: Guess,
    complete: Complete,
    chance: FloatArray,
    out: FloatArray,
) -> None:
    """ln w of each draw for one row."""
    mu, log_on, log_off, log_odds = guess.mu, guess.log_on, guess.log_off, guess.log_odds
    constant, n = known_units(problem, states, bias), len(mu)
    for j in range(n):
        mu[j] = min(max(means[problem.hidden[j]], 1e-14), 1.0 - 1e-14)  # no state is impossible
        log_on[j], log_off[j] = math.log(mu[j]), math.log1p(-mu[j])
        log_odds[j] = log_on[j] - log_off[j]
    for k in range(len(out)):
        out[k] = constant
        state = mix(seed + np.uint64(k + 1) * GOLDEN) + GOLDEN
        for j in range(n):
            state += GOLDEN
            complete.on[j] = 1 if uniform(state) < mu[j] else 0
        set_inputs(problem, bias, complete)
        for s in range(steps if n > 0 else 0):
            if s > 0:
                if s % FRESH == 0:
                    set_inputs(problem, bias, complete)
                state = sweep(problem, states, bias, log_odds, s / steps, complete, chance, state)
            out[k] += (_log_p(problem, states, bias, complete) - _log_q(log_on, log_off, complete.on)) / steps
