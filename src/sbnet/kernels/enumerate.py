"""Exact sums over the states of the hidden units, eq. (8)."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from sbnet._types import FloatArray, IndexArray, Model, Problem, States
from sbnet.kernels import gates
from sbnet.kernels._compile import bare, kernel
from sbnet.kernels.gates import softplus
from sbnet.kernels.reduce import components, reduce
from sbnet.kernels.states import Complete, input_of, known_units, set_input, state_of

_FRESH = 64  # states between two evaluations from scratch, so that rounding does not pile up


class Lists(NamedTuple):
    """Groups of coupled hidden units: by label, the first unit and the first factor; for each of those the next."""

    label: IndexArray
    unit: IndexArray
    next_unit: IndexArray
    group: IndexArray  # the units of one group
    factor: IndexArray
    next_factor: IndexArray
    mine: IndexArray  # the factors of one group


@kernel
def enumerate_rows(
    model: Model, states: States, bias: FloatArray, limit: int, means: FloatArray, largest: IndexArray
) -> FloatArray:
    """ln P(V) of each row; groups of more than `limit` coupled hidden units are left out.

    The posterior means of the units that are summed over go to `means`, the size of the largest group to `largest`.
    """
    result = np.empty(len(states))
    for r in range(len(states)):
        problem = reduce(model, states[r])
        n, n_factors = len(problem.hidden), len(problem.factor)
        lists = Lists(
            components(problem), np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64),
            np.empty(n, np.int64), np.empty(n_factors, np.int64), np.empty(n_factors, np.int64),
        )  # fmt: skip
        complete = Complete(np.zeros(n, np.int8), np.empty(n_factors), np.empty(n_factors))
        result[r], largest[r] = _sum_row(problem, states[r], bias[r], limit, lists, complete, np.empty(n + 2), means[r])
    return result


@kernel
def enumerate_part(
    problem: Problem, group: IndexArray, states: States, bias: FloatArray, first: int, last: int
) -> FloatArray:
    """The part of the sum of one group over the states `first` to `last` of its code.

    The logarithm of the largest term, the sum in units of that term, and the part of it with each unit on.
    """
    n_factors, part = len(problem.factor), np.empty(len(group) + 2)
    complete = Complete(np.zeros(len(problem.hidden), np.int8), np.empty(n_factors), np.empty(n_factors))
    inside, mine, n_mine = np.zeros(len(problem.hidden), np.bool_), np.empty(n_factors, np.int64), 0
    for b in range(len(group)):
        inside[group[b]] = True
    for f in range(n_factors):
        if inside[problem.parent[problem.ptr[f]]]:
            mine[n_mine] = f
            n_mine += 1
    _sum_states(problem, group, len(group), mine, n_mine, states, bias, complete, first, last, part)
    return part


@bare
def _sum_row(
    problem: Problem,
    states: States,
    bias: FloatArray,
    limit: int,
    lists: Lists,
    complete: Complete,
    part: FloatArray,
    means: FloatArray,
) -> tuple[float, int]:
    """ln P of one row, but for groups beyond the limit, and the size of the largest group."""
    label, group, mine = lists.label, lists.group, lists.mine
    _list_groups(problem, label, lists.unit, lists.next_unit, lists.factor, lists.next_factor)
    total, largest = known_units(problem, states, bias), 0
    for first in range(len(label)):
        if label[first] == first:
            size = _follow(lists.unit[first], lists.next_unit, group)
            largest = max(largest, size)
            if size <= limit:
                n_mine = _follow(lists.factor[first], lists.next_factor, mine)
                _sum_states(problem, group, size, mine, n_mine, states, bias, complete, 0, 1 << size, part)
                total += part[0] + math.log(part[1])
                for b in range(size):
                    means[problem.hidden[group[b]]] = part[2 + b] / part[1]
    return total, largest


@bare
def _list_groups(
    problem: Problem,
    label: IndexArray,
    unit: IndexArray,
    next_unit: IndexArray,
    factor: IndexArray,
    next_factor: IndexArray,
) -> None:
    """Lists of the units and of the factors of each group: the first of them, and the next of each; -1 ends a list."""
    for k in range(len(label)):
        unit[k] = factor[k] = -1
    for k in range(len(label) - 1, -1, -1):
        next_unit[k] = unit[label[k]]
        unit[label[k]] = k
    for f in range(len(problem.factor) - 1, -1, -1):
        group = label[problem.parent[problem.ptr[f]]]
        next_factor[f] = factor[group]
        factor[group] = f


@bare
def _follow(first: int, next_one: IndexArray, out: IndexArray) -> int:
    """Write a list out; returns its length."""
    n = 0
    while first >= 0:
        out[n] = first
        first = next_one[first]
        n += 1
    return n


@bare
def _sum_states(
    problem: Problem,
    group: IndexArray,
    size: int,
    mine: IndexArray,
    n_mine: int,
    states: States,
    bias: FloatArray,
    complete: Complete,
    first: int,
    last: int,
    part: FloatArray,
) -> None:
    """Add up the states `first` to `last` of a group in Gray code: neighbouring states differ in one unit."""
    on = complete.on
    top, total, value = -np.inf, 0.0, 0.0
    for b in range(size):
        part[2 + b] = 0.0
    for state in range(first, last):
        if state == first or state % _FRESH == 0:
            code = state ^ (state >> 1)
            for b in range(size):
                on[group[b]] = (code >> b) & 1
            value = _from_scratch(problem, group, size, mine, n_mine, states, bias, complete)
        else:
            flipped = 0
            while not (state >> flipped) & 1:
                flipped += 1
            value += _flip(problem, group[flipped], states, bias, complete)
        if value > top:
            scale = math.exp(top - value)
            total *= scale
            for b in range(size):
                part[2 + b] *= scale
            top = value
        w = math.exp(value - top)
        total += w
        for b in range(size):
            part[2 + b] += w * on[group[b]]
    part[0], part[1] = top, total


@bare
def _from_scratch(
    problem: Problem,
    group: IndexArray,
    size: int,
    mine: IndexArray,
    n_mine: int,
    states: States,
    bias: FloatArray,
    complete: Complete,
) -> float:
    """ln P of the units of a group and of its factors, in its present state."""
    value = 0.0
    for b in range(size):
        i = problem.hidden[group[b]]
        if problem.factor_of[group[b]] < 0:
            value += gates.log_p(problem.gate[i], complete.on[group[b]], bias[i])
    for g in range(n_mine):
        f = mine[g]
        gate = problem.gate[problem.factor[f]]
        set_input(problem, f, bias, complete)
        complete.t[f] = gates.t(gate, complete.z[f])
        a, c = gates.loads(gate, state_of(problem, f, complete.on, states))
        value += a * complete.z[f] - c * complete.t[f]
    return value


@bare
def _flip(problem: Problem, j: int, states: States, bias: FloatArray, complete: Complete) -> float:
    """Flip hidden unit j; returns the change of ln P(H, V)."""
    on, z, t = complete.on, complete.z, complete.t
    step = 1 - 2 * on[j]
    on[j] += step
    change = step * gates.log_odds(problem.gate[problem.hidden[j]], input_of(problem, j, bias, z))
    for c in range(problem.child_ptr[j], problem.child_ptr[j + 1]):
        f = problem.child[c]
        gate = problem.gate[problem.factor[f]]
        moved = z[f] + step * problem.weight[problem.child_slot[c]]
        new_t = gates.t(gate, moved)
        a, load = gates.loads(gate, state_of(problem, f, on, states))
        change += a * (moved - z[f]) - load * (new_t - t[f])
        z[f], t[f] = moved, new_t
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
