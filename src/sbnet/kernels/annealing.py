"""Random states of the hidden variables with weights whose mean is P(V): annealed importance sampling."""

from __future__ import annotations

import math

import numpy as np

from sbnet._types import FloatArray, IndexArray, Model, States
from sbnet.kernels import thresholds
from sbnet.kernels.chains import Chains, chains_of, input_of, next_uniform, refresh
from sbnet.kernels.compiling import inner, kernel
from sbnet.kernels.gibbs import FRESH, sweep
from sbnet.kernels.random import GOLDEN, mix, row_seed
from sbnet.kernels.sampling import LANES
from sbnet.kernels.structs import Problem
from sbnet.questions.reduction import reduce


@kernel
def anneal_rows(
    model: Model, states: States, bias: FloatArray, means: FloatArray, steps: int, seed: np.uint64, log_w: FloatArray
) -> None:
    """ln w for each row and draw, with <w> = P(V).

    H comes from the factorial distribution Q with the given means, by threshold, and goes through Q^(1-b) P^b, b rising
    from 0 to 1 in `steps` steps (Neal 2001).
    """
    for r in range(len(states)):
        problem, own_seed = reduce(model, states[r]), row_seed(seed, states[r])
        room = chains_of(model, problem, states[r], bias[r])
        log_q, prior = _log_q(model, problem, means[r])
        log_w[r] = known_log_p(model, problem.known, states[r], bias[r])
        if len(problem.hidden) == 0:
            continue
        for first in range(0, log_w.shape[1], LANES):
            used = min(LANES, log_w.shape[1] - first)
            _start_from(model, problem, room, log_q, prior, own_seed, first)
            for s in range(steps):
                if s % FRESH == 0:
                    refresh(room)
                if s > 0:
                    sweep(room, prior, s / steps, used)
                for i in range(used):
                    gap = _log_p(model, problem, room, i)
                    for j in range(len(problem.hidden)):
                        v = problem.hidden[j].variable
                        k = room.cells[v, 0].state[i]
                        gap -= log_q[v] + (prior[model.threshold[v] + k - 1] if k > 0 else 0.0)
                    log_w[r, first + i] += gap / steps


@inner
def known_log_p(model: Model, known: IndexArray, states: States, bias: FloatArray) -> float:
    """ln P of the observed ones of some variables whose parents are all observed."""
    total = 0.0
    for v in known:
        if states[v] >= 0:
            total += thresholds.log_p(model.gate[v], states[v], bias[model.threshold[v] : model.threshold[v + 1]])
    return total


@inner
def _log_q(model: Model, problem: Problem, means: FloatArray) -> tuple[FloatArray, FloatArray]:
    """ln Q(0) by variable, and ln Q(k) - ln Q(0) by threshold. No state is impossible."""
    log_q, prior = np.zeros(len(model.gate)), np.zeros(len(means))
    for j in range(len(problem.hidden)):
        v, total = problem.hidden[j].variable, 0.0
        own = prior[model.threshold[v] : model.threshold[v + 1]]
        for k in range(len(own)):
            own[k] = max(means[model.threshold[v] + k], 1e-14)
            total += own[k]
        scale = min((1.0 - 1e-14) / total, 1.0)
        log_q[v] = math.log1p(-scale * total)
        for k in range(len(own)):
            own[k] = math.log(scale * own[k]) - log_q[v]
    return log_q, prior


@inner
def _start_from(
    model: Model, problem: Problem, chains: Chains, log_q: FloatArray, prior: FloatArray, seed: np.uint64, first: int
) -> None:
    """States drawn from Q, and a stream of random numbers for each lane."""
    out = chains.draws[0]
    for i in range(LANES):
        out.seed[i] = mix(seed + np.uint64(first + i + 1) * GOLDEN) + GOLDEN
    for j in range(len(problem.hidden)):
        v = problem.hidden[j].variable
        next_uniform(out)
        for i in range(LANES):
            chains.cells[v, 0].state[i], above = 0, 0.0
            for k in range(problem.hidden[j].states - 1):
                q = math.exp(prior[model.threshold[v] + k] + log_q[v])
                if above <= out.uniform[i] < above + q:
                    chains.cells[v, 0].state[i] = k + 1
                above += q


@inner
def _log_p(model: Model, problem: Problem, chains: Chains, i: int) -> float:
    """ln P(H, V) of one lane, but for observed variables whose parents are all observed."""
    total = 0.0
    for f in range(len(problem.factors)):
        factor, side = problem.factors[f], chains.sides[f]
        state = chains.cells[factor.variable, 0].state[i]
        total += thresholds.log_part(factor.gate, factor.level, state, input_of(side, chains.mild[f], i))
    for v in problem.known:
        if chains.known[v] < 0:
            own = chains.bias[model.threshold[v] : model.threshold[v + 1]]
            total += thresholds.log_p(model.gate[v], chains.cells[v, 0].state[i], own)
    return total
