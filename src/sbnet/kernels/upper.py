"""The upper bound on ln P(evidence) at given parameters, and its gradient; `sbnet.bounds.upper` has the proof."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from sbnet._types import BoolArray, FloatArray, IndexArray, Problem, States
from sbnet.kernels._compile import bare, entry
from sbnet.kernels.arrays import load
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
    claims: FloatArray  # the sum of the claims on it
    omega: FloatArray  # the weight of its own factor
    pull: FloatArray  # how the bound changes with its claims


class OfFactor(NamedTuple):
    """What an evaluation finds for each factor."""

    busiest: IndexArray  # the parent in the table that has the largest claims
    claim: FloatArray
    tau: FloatArray  # the weight for the parents in its table
    entropy: FloatArray  # the slope in it
    curvature: FloatArray  # the mean curvature of t


# A tuple of many arrays is dear to look into, for the compiler too: functions name the arrays they need first.


def evaluated(problem: Problem, regions: Regions, x: FloatArray, gradient: FloatArray) -> float:
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
        if load(large, k) and load(factor_of, k) < 0:
            i = load(hidden, k)
            part, mu[k], spread[k] = bracket(load(gate, i), load(bias, i), load(eta, k), load(omega, k))
            value += part
    for f in range(n_factors):
        entropy[f] = 0.0
        if load(active, f):
            value += _table(problem, regions, f, x, gradient)
    for f in range(n_factors):
        slope = 0.0
        for s in range(load(ptr, f), load(ptr, f, 1)):
            mean = load(mu, load(parent, s))
            if load(table, s):  # `gradient` holds the mean of the parent in the table
                gradient[s] = mean - load(gradient, s)
                entropy[f] -= load(spread, load(parent, s))
            else:
                gradient[s] = 0.0
                slope += load(weight, s) * mean
        gradient[n_slots + f] = load(gradient, n_slots, f) + slope if load(active, f) else 0.0
        if load(busiest, f) >= 0:
            pull[load(busiest, f)] += load(entropy, f) * load(tau, f) * load(tau, f) / load(claim, f)
    for f in range(n_factors):
        slope, place = load(tau, f) * load(entropy, f), n_slots + n_factors + f
        for s in range(load(ptr, f), load(ptr, f, 1)):
            if load(table, s):
                slope -= load(claim, f) * load(pull, load(parent, s))
        gradient[place] = slope if load(active, f) and abs(load(x, place)) < LARGEST else 0.0
    return value


evaluate: Any = entry(evaluated)
"""The same for Python."""


@bare
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
    mu, spread, eta, claims, omega, pull = of_unit
    n_slots, n_factors = len(parent), len(active)
    for k in range(len(mu)):
        mu[k] = spread[k] = eta[k] = claims[k] = pull[k] = 0.0
        omega[k] = 1.0
    for f in range(n_factors):
        claim[f] = math.exp(min(max(load(x, n_slots + n_factors, f), -LARGEST), LARGEST))
        for s in range(load(ptr, f), load(ptr, f, 1)):
            k = load(parent, s)
            if load(table, s):
                eta[k] += load(x, s)
                claims[k] += load(claim, f)
            elif load(active, f):
                eta[k] += load(weight, s) * load(x, n_slots, f)
    for f in range(n_factors):
        most, busiest[f] = 0.0, -1
        for s in range(load(ptr, f), load(ptr, f, 1)):
            k = load(parent, s)
            if load(table, s) and load(claims, k) > most:
                most, busiest[f] = load(claims, k), k
        tau[f] = load(claim, f) / (1.0 + most)
        for s in range(load(ptr, f), load(ptr, f, 1)):
            if load(table, s):
                k = load(parent, s)
                omega[k] = max(load(omega, k) - load(tau, f), 1e-12)  # more weight than one is valid too


@bare
def log_table(problem: Problem, regions: Regions, f: int, x: FloatArray) -> int:
    """The exponents G - b S for the states of the parents in the table of factor f; how many states there are.

    They go to the second row of `regions.by_state`; the input, the shift t at the maximum, and the mean of the unit
    itself and its conditional entropy, to the others.
    """
    ptr, weight, table, n_slots = problem.ptr, problem.weight, regions.table, len(problem.parent)
    of_unit, by_state = regions.of_unit, regions.by_state
    z, p, shift, own_mean, own_spread = by_state[0], by_state[1], by_state[2], by_state[3], by_state[4]
    i, k, lam = load(problem.factor, f), load(problem.own, f), load(x, n_slots, f)
    gate, state, low, high = load(problem.gate, i), load(regions.states, i), load(regions.low, f), load(regions.high, f)
    eta, omega = (load(of_unit.eta, k), load(of_unit.omega, k)) if k >= 0 else (0.0, 1.0)
    size = 1
    z[0], p[0] = load(regions.bias, i), 0.0
    for s in range(load(ptr, f), load(ptr, f, 1)):
        if load(table, s):
            for c in range(size):
                z[c + size], p[c + size] = load(z, c) + load(weight, s), load(p, c) - load(x, s)
            size *= 2
    for c in range(size):
        t = own = 0.0
        if k < 0:
            t = highest_observed(gate, state, load(z, c), lam, low, high)
            own = log_p(gate, state, load(z, c) + t)
        else:
            if low < high:
                t = highest_hidden(gate, load(z, c), eta, lam, low, high)
            own, own_mean[c], own_spread[c] = bracket(gate, load(z, c) + t, eta, omega)
        z[c] += t
        shift[c] = t
        p[c] += own - lam * t
    return size


@bare
def _table(problem: Problem, regions: Regions, f: int, x: FloatArray, gradient: FloatArray) -> float:
    """tau ln sum exp((G - b S) / tau) over the states of the parents in the table of factor f.

    Its slope in tau (the entropy of the states), the mean of the unit itself and its conditional entropy, and the mean
    curvature of t go to `regions`; the slope in the slope of the other parents, and the means of the parents in the
    table, to `gradient`.
    """
    ptr, table, n_slots = problem.ptr, regions.table, len(problem.parent)
    of_unit, of_factor, by_state = regions.of_unit, regions.of_factor, regions.by_state
    z, p, shift, own_mean, own_spread = by_state[0], by_state[1], by_state[2], by_state[3], by_state[4]
    gate, k, tau = load(problem.gate, load(problem.factor, f)), load(problem.own, f), load(of_factor.tau, f)
    size, top = log_table(problem, regions, f, x), -np.inf
    for c in range(size):
        top = max(top, load(p, c))
    total = mean_log = mean_t = mean = spread = bend = 0.0
    for c in range(size):
        a = (load(p, c) - top) / tau
        w = math.exp(a)
        p[c] = w
        if w > 0.0:
            total += w
            mean_log += w * a
            mean_t += w * load(shift, c)
            bend += w * curvature(gate, load(z, c))
            if k >= 0:
                mean += w * load(own_mean, c)
                spread += w * load(own_spread, c)
    bit = 1
    for s in range(load(ptr, f), load(ptr, f, 1)):
        if load(table, s):
            on = 0.0
            for c in range(size):
                if c & bit:
                    on += load(p, c)
            gradient[s] = on / total
            bit *= 2
    if k >= 0:
        of_unit.mu[k], of_unit.spread[k] = mean / total, spread / total
    of_factor.entropy[f], of_factor.curvature[f] = math.log(total) - mean_log / total, bend / total
    gradient[n_slots + f] = -mean_t / total
    return top + tau * math.log(total)
