"""The upper bound on ln P(evidence) at given parameters, and its gradient; `sbnet.bounds.upper` has the proof."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from sbnet._types import BoolArray, FloatArray, IndexArray, Problem, States
from sbnet.kernels._compile import entry, inlined
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
    of_unit: OfUnit  # what an evaluation finds
    of_factor: OfFactor
    by_state: FloatArray  # scratch: for each state of one table, what `_table` names


class OfUnit(NamedTuple):
    """What an evaluation finds for each hidden unit."""

    mu: FloatArray  # the mean
    spread: FloatArray  # the slope in omega
    eta: FloatArray  # what the children send up
    load: FloatArray  # the sum of the claims on it
    omega: FloatArray  # the weight of its own factor
    pull: FloatArray  # how the bound changes with its load


class OfFactor(NamedTuple):
    """What an evaluation finds for each factor."""

    busiest: IndexArray  # the parent in the table that has the largest load
    claim: FloatArray
    tau: FloatArray  # the weight for the parents in its table
    entropy: FloatArray  # the slope in it
    curvature: FloatArray  # the mean curvature of t


# A tuple of many arrays is dear to look into, for the compiler too: functions name the arrays they need first.


@entry
def evaluate(problem: Problem, regions: Regions, x: FloatArray, gradient: FloatArray) -> float:
    """The bound on the active part at the parameters x, and its gradient."""
    ptr, parent, weight, hidden, factor_of = (
        problem.ptr, problem.parent, problem.weight, problem.hidden, problem.factor_of
    )  # fmt: skip
    table, active, large, bias, gate = regions.table, regions.active, regions.large, regions.bias, problem.gate
    mu, spread, eta, _, omega, pull = regions.of_unit
    busiest, claim, tau, entropy, _ = regions.of_factor
    n_slots, n_factors = len(parent), len(active)
    _weigh(ptr, parent, weight, table, active, x, regions.of_unit, busiest, claim, tau)
    value = 0.0
    for k in range(len(hidden)):
        if large[k] and factor_of[k] < 0:
            i = hidden[k]
            part, mu[k], spread[k] = bracket(gate[i], bias[i], eta[k], omega[k])
            value += part
    for f in range(n_factors):
        entropy[f] = 0.0
        if active[f]:
            value += _table(problem, regions, f, x, gradient)
    for f in range(n_factors):
        slope = 0.0
        for s in range(ptr[f], ptr[f + 1]):
            mean = mu[parent[s]]
            if table[s]:  # `gradient` holds the mean of the parent in the table
                gradient[s] = mean - gradient[s]
                entropy[f] -= spread[parent[s]]
            else:
                gradient[s] = 0.0
                slope += weight[s] * mean
        gradient[n_slots + f] = gradient[n_slots + f] + slope if active[f] else 0.0
        if busiest[f] >= 0:
            pull[busiest[f]] += entropy[f] * tau[f] * tau[f] / claim[f]
    for f in range(n_factors):
        slope, place = tau[f] * entropy[f], n_slots + n_factors + f
        for s in range(ptr[f], ptr[f + 1]):
            if table[s]:
                slope -= claim[f] * pull[parent[s]]
        gradient[place] = slope if active[f] and abs(x[place]) < LARGEST else 0.0
    return value


@inlined
def _weigh(
    ptr: IndexArray,
    parent: IndexArray,
    weight: FloatArray,
    table: BoolArray,
    active: BoolArray,
    x: FloatArray,
    of_unit: OfUnit,
    busiest: IndexArray,
    claim: FloatArray,
    tau: FloatArray,
) -> None:
    """What the children of each unit send up, and the weights of Hölder's inequality: those of a unit add up to one."""
    mu, spread, eta, load, omega, pull = of_unit
    n_slots, n_factors = len(parent), len(active)
    for k in range(len(mu)):
        mu[k] = spread[k] = eta[k] = load[k] = pull[k] = 0.0
        omega[k] = 1.0
    for f in range(n_factors):
        claim[f] = math.exp(min(max(x[n_slots + n_factors + f], -LARGEST), LARGEST))
        for s in range(ptr[f], ptr[f + 1]):
            k = parent[s]
            if table[s]:
                eta[k] += x[s]
                load[k] += claim[f]
            elif active[f]:
                eta[k] += weight[s] * x[n_slots + f]
    for f in range(n_factors):
        most, busiest[f] = 0.0, -1
        for s in range(ptr[f], ptr[f + 1]):
            k = parent[s]
            if table[s] and load[k] > most:
                most, busiest[f] = load[k], k
        tau[f] = claim[f] / (1.0 + most)
        for s in range(ptr[f], ptr[f + 1]):
            if table[s]:
                k = parent[s]
                omega[k] = max(omega[k] - tau[f], 1e-12)  # more weight than one is valid too


@inlined
def _table(problem: Problem, regions: Regions, f: int, x: FloatArray, gradient: FloatArray) -> float:
    """tau ln sum exp((G - b S) / tau) over the states of the parents in the table of factor f.

    Its slope in tau (the entropy of the states), the mean of the unit itself and its conditional entropy, and the mean
    curvature of t go to `regions`; the slope in the slope of the other parents, and the means of the parents in the
    table, to `gradient`.
    """
    ptr, weight, table, n_slots = problem.ptr, problem.weight, regions.table, len(problem.parent)
    of_unit, of_factor, by_state = regions.of_unit, regions.of_factor, regions.by_state
    z, p, shift, own_mean, own_spread = by_state[0], by_state[1], by_state[2], by_state[3], by_state[4]
    i, k, tau, lam = problem.factor[f], problem.own[f], of_factor.tau[f], x[n_slots + f]
    gate, state, low, high = problem.gate[i], regions.states[i], regions.low[f], regions.high[f]
    eta, omega = (of_unit.eta[k], of_unit.omega[k]) if k >= 0 else (0.0, 1.0)
    size = 1
    z[0], p[0] = regions.bias[i], 0.0
    for s in range(ptr[f], ptr[f + 1]):
        if table[s]:
            for c in range(size):
                z[c + size], p[c + size] = z[c] + weight[s], p[c] - x[s]
            size *= 2
    top = -np.inf
    for c in range(size):
        t = own = 0.0
        if k < 0:
            t = highest_observed(gate, state, z[c], lam, low, high)
            own = log_p(gate, state, z[c] + t)
        else:
            if low < high:
                t = highest_hidden(gate, z[c], eta, lam, low, high)
            own, own_mean[c], own_spread[c] = bracket(gate, z[c] + t, eta, omega)
        z[c] += t
        shift[c] = t
        p[c] += own - lam * t
        top = max(top, p[c])
    total = mean_log = mean_t = mean = spread = bend = 0.0
    for c in range(size):
        a = (p[c] - top) / tau
        w = math.exp(a)
        p[c] = w
        if w > 0.0:
            total += w
            mean_log += w * a
            mean_t += w * shift[c]
            bend += w * curvature(gate, z[c])
            if k >= 0:
                mean += w * own_mean[c]
                spread += w * own_spread[c]
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
        of_unit.mu[k], of_unit.spread[k] = mean / total, spread / total
    of_factor.entropy[f], of_factor.curvature[f] = math.log(total) - mean_log / total, bend / total
    gradient[n_slots + f] = -mean_t / total
    return top + tau * math.log(total)
