"""The upper bound on ln P(evidence) at given parameters, and its gradient; `sbnet.bounds.upper` has the proof."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from sbnet._types import BoolArray, FloatArray, IndexArray, Problem, States
from sbnet.kernels._compile import bare, kernel
from sbnet.kernels.gates import log_p
from sbnet.kernels.upper_gates import bracket, curvature, highest_hidden, highest_observed

LARGEST = 25.0  # of the logarithm of a claim: weights of Hölder's inequality stay above e^-25


class Regions(NamedTuple):
    """How the factors of a problem are bounded.

    A factor f is `active` unless it is summed exactly with its group. The states of its hidden parents in `table`
    (places of slots) are enumerated; the others together move its input between `low[f]` and `high[f]`.

    Parameters are one slope for each slot of a table, then a slope for each factor, then the logarithm of the *claim*
    of each factor: its part of the weight, in Hölder's inequality, of each parent in its table, before they are made to
    add up to one.
    """

    states: States  # of all units
    bias: FloatArray  # of all units
    large: BoolArray  # by hidden unit: is its group not summed exactly?
    active: BoolArray  # by factor
    table: BoolArray  # by slot
    low: FloatArray  # by factor
    high: FloatArray
    busiest: IndexArray  # by factor: the parent in the table that has the largest load
    by_unit: FloatArray  # what an evaluation finds: see the names of the rows below
    by_factor: FloatArray
    by_state: FloatArray  # scratch: z, p and t by state of one table


MU, SPREAD, ETA, LOAD, OMEGA, PULL, BY_UNIT = range(7)
"""Rows of `by_unit`: the mean; the slope in omega; what the children send up; the sum of the claims on a unit; the
weight of its own factor; how the bound changes with its load."""
CLAIM, TAU, ENTROPY, CURVATURE, BY_FACTOR = range(5)
"""Rows of `by_factor`: the claim; the weight for the parents in its table; the slope in it; the mean curvature of t."""


# A tuple of many arrays is dear to look into, for the compiler too: functions name the arrays they need first.


@kernel
def evaluate(problem: Problem, regions: Regions, x: FloatArray, gradient: FloatArray) -> float:
    """The bound on the active part at the parameters x, and its gradient."""
    ptr, parent, weight, hidden, factor_of = (
        problem.ptr, problem.parent, problem.weight, problem.hidden, problem.factor_of
    )  # fmt: skip
    table, active, large, bias, gate = regions.table, regions.active, regions.large, regions.bias, problem.gate
    busiest, unit, factor = regions.busiest, regions.by_unit, regions.by_factor
    n_slots, n_factors = len(parent), len(active)
    _weigh(ptr, parent, weight, table, active, x, busiest, unit, factor)
    value = 0.0
    for k in range(len(hidden)):
        if large[k] and factor_of[k] < 0:
            i = hidden[k]
            part, unit[MU, k], unit[SPREAD, k] = bracket(gate[i], bias[i], unit[ETA, k], unit[OMEGA, k])
            value += part
    for f in range(n_factors):
        if active[f]:
            value += _table(problem, regions, f, x, gradient)
    for f in range(n_factors):
        for s in range(ptr[f], ptr[f + 1]):
            k = parent[s]
            if not active[f]:
                gradient[s] = 0.0
            elif table[s]:  # `gradient` holds the mean of the parent in the table
                gradient[s] = unit[MU, k] - gradient[s]
                factor[ENTROPY, f] -= unit[SPREAD, k]
            else:
                gradient[s] = 0.0
                gradient[n_slots + f] += weight[s] * unit[MU, k]
        if active[f] and busiest[f] >= 0:
            unit[PULL, busiest[f]] += factor[ENTROPY, f] * factor[TAU, f] * factor[TAU, f] / factor[CLAIM, f]
    for f in range(n_factors):
        slope = factor[TAU, f] * factor[ENTROPY, f]
        for s in range(ptr[f], ptr[f + 1]):
            if table[s]:
                slope -= factor[CLAIM, f] * unit[PULL, parent[s]]
        if not active[f]:
            gradient[n_slots + f] = slope = 0.0
        gradient[n_slots + n_factors + f] = slope if abs(x[n_slots + n_factors + f]) < LARGEST else 0.0
    return value


@bare
def _weigh(
    ptr: IndexArray,
    parent: IndexArray,
    weight: FloatArray,
    table: BoolArray,
    active: BoolArray,
    x: FloatArray,
    busiest: IndexArray,
    unit: FloatArray,
    factor: FloatArray,
) -> None:
    """What the children of each unit send up, and the weights of Hölder's inequality: those of a unit add up to one."""
    n_slots, n_factors = len(parent), len(active)
    for k in range(unit.shape[1]):
        for row in range(BY_UNIT):
            unit[row, k] = 0.0
        unit[OMEGA, k] = 1.0
    for f in range(n_factors):
        factor[ENTROPY, f], factor[CURVATURE, f], busiest[f] = 0.0, 0.0, -1
        claim = math.exp(min(max(x[n_slots + n_factors + f], -LARGEST), LARGEST))
        factor[CLAIM, f] = claim
        for s in range(ptr[f], ptr[f + 1]):
            if table[s]:
                unit[ETA, parent[s]] += x[s]
                unit[LOAD, parent[s]] += claim
            elif active[f]:
                unit[ETA, parent[s]] += weight[s] * x[n_slots + f]
    for f in range(n_factors):
        most = 0.0
        for s in range(ptr[f], ptr[f + 1]):
            if table[s] and unit[LOAD, parent[s]] > most:
                most, busiest[f] = unit[LOAD, parent[s]], parent[s]
        tau = factor[CLAIM, f] / (1.0 + most)
        factor[TAU, f] = tau
        for s in range(ptr[f], ptr[f + 1]):
            if table[s]:
                unit[OMEGA, parent[s]] -= tau
    for k in range(unit.shape[1]):
        unit[OMEGA, k] = max(unit[OMEGA, k], 1e-12)  # more weight than one is valid too


@bare
def _table(problem: Problem, regions: Regions, f: int, x: FloatArray, gradient: FloatArray) -> float:
    """tau ln sum exp((G - b S) / tau) over the states of the parents in the table of factor f.

    Its slope in tau (the entropy of the states), the mean of the unit itself and its conditional entropy, and the mean
    curvature of t go to `regions`; the slope in the slope of the other parents, and the means of the parents in the
    table, to `gradient`.
    """
    ptr, weight, table, n_slots = problem.ptr, problem.weight, regions.table, len(problem.parent)
    unit, factor, by_state = regions.by_unit, regions.by_factor, regions.by_state
    z, p, shift = by_state[0], by_state[1], by_state[2]
    i, k, tau, lam = problem.factor[f], problem.own[f], factor[TAU, f], x[n_slots + f]
    gate, state, low, high = problem.gate[i], regions.states[i], regions.low[f], regions.high[f]
    eta, omega = (unit[ETA, k], unit[OMEGA, k]) if k >= 0 else (0.0, 1.0)
    size = 1
    z[0], p[0] = regions.bias[i], 0.0
    for s in range(ptr[f], ptr[f + 1]):
        if table[s]:
            for c in range(size):
                z[c + size], p[c + size] = z[c] + weight[s], p[c] - x[s]
            size *= 2
    top = -np.inf
    for c in range(size):
        t = 0.0
        if k < 0:
            t = highest_observed(gate, state, z[c], lam, low, high)
        elif low < high:
            t = highest_hidden(gate, z[c], eta, lam, low, high)
        z[c] += t
        shift[c] = t
        p[c] += (log_p(gate, state, z[c]) if k < 0 else bracket(gate, z[c], eta, omega)[0]) - lam * t
        top = max(top, p[c])
    total = mean_log = mean_t = mean = spread = bend = 0.0
    for c in range(size):
        a = (p[c] - top) / tau
        p[c] = math.exp(a)
        total += p[c]
        if p[c] > 0.0:
            mean_log += p[c] * a
            mean_t += p[c] * shift[c]
            bend += p[c] * curvature(gate, z[c])
            if k >= 0:
                _, own_mean, own_spread = bracket(gate, z[c], eta, omega)
                mean += p[c] * own_mean
                spread += p[c] * own_spread
    bit = 1
    for s in range(ptr[f], ptr[f + 1]):
        if table[s]:
            on = 0.0
            for c in range(size):
                if c & bit:
                    on += p[c]
            gradient[s] = on / total
            bit *= 2
    if k >= 0:
        unit[MU, k], unit[SPREAD, k] = mean / total, spread / total
    factor[ENTROPY, f], factor[CURVATURE, f] = math.log(total) - mean_log / total, bend / total
    gradient[n_slots + f] = -mean_t / total
    return top + tau * math.log(total)
