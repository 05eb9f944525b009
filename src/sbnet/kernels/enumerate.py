"""Exact sums over the states of the hidden units, eq. (8)."""

from __future__ import annotations

import math

import numpy as np

from sbnet._types import FloatArray, IndexArray, Model, Problem, States
from sbnet.kernels._compile import inner, kernel
from sbnet.kernels.gates import softplus
from sbnet.kernels.reduce import components, reduce

_FRESH = 64  # states between two evaluations from scratch, so that rounding does not pile up


@kernel
def largest_components(model: Model, states: States) -> IndexArray:
    """For each row, how many hidden units the largest coupled group has."""
    result = np.zeros(states.shape[0], np.int64)
    for r in range(states.shape[0]):
        label = components(reduce(model, states[r]))
        if len(label):
            result[r] = np.bincount(label).max()
    return result


@kernel
def enumerate_rows(model: Model, states: States, bias: FloatArray, means: FloatArray) -> FloatArray:
    """ln P(V) of each row; the posterior means of its hidden units that are not barren go to `means`."""
    result = np.empty(states.shape[0])
    for r in range(states.shape[0]):
        problem = reduce(model, states[r])
        total = _known_terms(problem, states[r], bias[r])
        label = components(problem)
        for first in range(len(label)):
            if label[first] == first:
                group = np.flatnonzero(label == first)
                total += enumerate_group(problem, group, states[r], bias[r], means[r])
        result[r] = total
    return result


@kernel
def coupled_groups(model: Model, states: States) -> IndexArray:
    """For each unit of one row, the first unit of the coupled group that it is in, or -1 if it is in none."""
    problem = reduce(model, states)
    label = components(problem)
    result = np.full(len(states), -1, np.int64)
    for k in range(len(label)):
        result[problem.hidden[k]] = problem.hidden[label[k]]
    return result


@kernel
def known_terms(model: Model, states: States, bias: FloatArray) -> float:
    """ln P of the observed units of one row whose parents are all observed."""
    return _known_terms(reduce(model, states), states, bias)


@kernel
def enumerate_part(model: Model, states: States, bias: FloatArray, unit: int, first: int, last: int) -> FloatArray:
    """The part of the sum of one group, whose first unit is `unit`, over the states `first` to `last` of its code.

    The logarithm of the largest term, the sum in units of that term, and the share of it with each unit on.
    """
    problem = reduce(model, states)
    place = 0
    while problem.hidden[place] != unit:
        place += 1
    group = np.flatnonzero(components(problem) == place)
    part = np.empty(len(group) + 2)
    _sum_states(problem, group, states, bias, first, last, part)
    return part


@inner
def enumerate_group(problem: Problem, group: IndexArray, states: States, bias: FloatArray, means: FloatArray) -> float:
    """ln of the sum over all states of one group."""
    part = np.empty(len(group) + 2)
    _sum_states(problem, group, states, bias, 0, 1 << len(group), part)
    for b in range(len(group)):
        means[problem.hidden[group[b]]] = part[2 + b] / part[1]
    return part[0] + math.log(part[1])


@inner
def _known_terms(problem: Problem, states: States, bias: FloatArray) -> float:
    total = 0.0
    for i in problem.settled:
        if states[i] >= 0:
            total += states[i] * bias[i] - softplus(bias[i])
    return total


@inner
def _sum_states(
    problem: Problem, group: IndexArray, states: States, bias: FloatArray, first: int, last: int, part: FloatArray
) -> None:
    """Add up the states `first` to `last` in Gray code: neighbouring states differ in one unit."""
    k = len(group)
    inside = np.zeros(len(problem.hidden), np.bool_)
    inside[group] = True
    n_factors = len(problem.factor)
    mine = np.empty(n_factors, np.int64)  # the factors of this group
    m = 0
    for f in range(n_factors):
        if inside[problem.parent[problem.ptr[f]]]:
            mine[m] = f
            m += 1
    constant = 0.0  # a root that is hidden: its term is S z - ln(1 + e^z) with z known
    for place in group:
        if problem.factor_of[place] < 0:
            constant -= softplus(bias[problem.hidden[place]])
    on = np.zeros(len(problem.hidden), np.int8)
    z = np.zeros(n_factors)
    log_term = np.zeros(n_factors)  # ln(1 + e^z) of each factor, kept beside its z
    top, total = -np.inf, 0.0
    weight_on = part[2:]
    weight_on[:] = 0.0
    value = 0.0
    for state in range(first, last):
        if state == first or state % _FRESH == 0:
            code = state ^ (state >> 1)
            for b in range(k):
                on[group[b]] = (code >> b) & 1
            value = _from_scratch(problem, group, mine[:m], on, states, bias, z, log_term)
        else:
            flipped = 0
            while not (state >> flipped) & 1:
                flipped += 1
            value += _flip(problem, group[flipped], on, states, bias, z, log_term)
        if value > top:
            scale = math.exp(top - value)
            total *= scale
            for b in range(k):
                weight_on[b] *= scale
            top = value
        w = math.exp(value - top)
        total += w
        for b in range(k):
            weight_on[b] += w * on[group[b]]
    part[0], part[1] = constant + top, total


@inner
def _from_scratch(
    problem: Problem,
    group: IndexArray,
    mine: IndexArray,
    on: States,
    states: States,
    bias: FloatArray,
    z: FloatArray,
    log_term: FloatArray,
) -> float:
    """ln P(H, V), but for a constant, of the state `on`."""
    value = 0.0
    for place in group:
        if problem.factor_of[place] < 0:
            value += on[place] * bias[problem.hidden[place]]
    for f in mine:
        z[f] = bias[problem.factor[f]]
        for s in range(problem.ptr[f], problem.ptr[f + 1]):
            z[f] += problem.weight[s] * on[problem.parent[s]]
        log_term[f] = softplus(z[f])
        value += _state(problem, f, on, states) * z[f] - log_term[f]
    return value


@inner
def _state(problem: Problem, f: int, on: States, states: States) -> int:
    return on[problem.own[f]] if problem.own[f] >= 0 else states[problem.factor[f]]


@inner
def _flip(
    problem: Problem,
    place: int,
    on: States,
    states: States,
    bias: FloatArray,
    z: FloatArray,
    log_term: FloatArray,
) -> float:
    """Flip one unit; return the change of ln P(H, V)."""
    step = 1 - 2 * on[place]
    on[place] += step
    f = problem.factor_of[place]
    change = step * (z[f] if f >= 0 else bias[problem.hidden[place]])
    for c in range(problem.child_ptr[place], problem.child_ptr[place + 1]):
        f = problem.child[c]
        moved = z[f] + step * problem.weight[problem.child_slot[c]]
        new_term = softplus(moved)
        change += _state(problem, f, on, states) * (moved - z[f]) - (new_term - log_term[f])
        z[f] = moved
        log_term[f] = new_term
    return change


@kernel
def mean_softplus(weight: FloatArray, means: FloatArray, bias: float) -> float:
    """<ln(1 + e^z)> for independent parents, summed over all their states."""
    k = len(weight)
    result = 0.0
    for state in range(1 << k):
        z, q = bias, 1.0
        for b in range(k):
            if (state >> b) & 1:
                z += weight[b]
                q *= means[b]
            else:
                q *= 1.0 - means[b]
        if q > 0.0:
            result += q * softplus(z)
    return result
