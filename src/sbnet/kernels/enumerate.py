"""Exact sums over the states of the hidden units, eq. (8)."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from sbnet._types import FloatArray, IndexArray, Model, Problem, States
from sbnet.kernels import gates
from sbnet.kernels._compile import bare, entry, kernel
from sbnet.kernels.reduce import components, reduced
from sbnet.kernels.states import added, known_units

_FRESH = 64  # states between two evaluations from scratch, so that rounding does not pile up


class Flips(NamedTuple):
    """What a sum over states looks up when a hidden unit flips, and what it keeps."""

    child_ptr: IndexArray  # by hidden unit
    child: IndexArray
    weight: FloatArray  # beside `child`
    factor_of: IndexArray  # by hidden unit, or -1
    root: FloatArray  # by hidden unit: the log odds of one that has no factor
    gate: IndexArray  # by factor
    bias: FloatArray
    state: FloatArray  # that of an observed unit, for good; that of a hidden one, which is 0 at first
    z: FloatArray
    rest: FloatArray  # what z has lost to rounding: small leaks must survive large weights that come and go
    value: FloatArray  # a(S) z - c(S) t(z)


class Lists(NamedTuple):
    """Groups of coupled hidden units: by label, the first unit and the first factor; for each of those the next."""

    label: IndexArray
    unit: IndexArray
    next_unit: IndexArray
    group: IndexArray  # the units of one group
    factor: IndexArray
    next_factor: IndexArray
    mine: IndexArray  # the factors of one group


@entry
def sum_states(flips: Flips, group: IndexArray, mine: IndexArray, first: int, last: int, part: FloatArray) -> None:
    """Add up the states `first` to `last` of a group in Gray code: neighbouring states differ in one unit.

    Units without a factor count as their log odds if they are on, else as nothing. The logarithm of the largest term,
    the sum in units of that term, and the share of it with each unit on go to `part`.
    """
    child_ptr, child, weight, factor_of, root, gate, bias, state, z, rest, value = flips
    top, total, log_p, code = -np.inf, 0.0, 0.0, 0
    for b in range(len(group)):
        part[2 + b] = 0.0
    for k in range(first, last):
        before, code = code, k ^ (k >> 1)
        if k == first or k % _FRESH == 0:
            for b in range(len(group)):
                f = factor_of[group[b]]
                if f >= 0:
                    state[f] = 0.0
            log_p, before = 0.0, 0
            for g in range(len(mine)):
                f = mine[g]
                z[f], rest[f] = bias[f], 0.0
                a, c = gates.loads(gate[f], state[f])
                value[f] = a * z[f] - c * gates.t(gate[f], z[f])
                log_p += value[f]
        changed, b = before ^ code, 0
        while changed >> b:
            if (changed >> b) & 1:
                j, step = group[b], 1.0 if (code >> b) & 1 else -1.0
                f = factor_of[j]
                change = step * (gates.log_odds(gate[f], z[f] + rest[f]) if f >= 0 else root[j])
                log_p += change
                if f >= 0:
                    state[f] += step
                    value[f] += change
                for e in range(child_ptr[j], child_ptr[j + 1]):
                    f = child[e]
                    z[f], lost = added(z[f], step * weight[e])
                    rest[f] += lost
                    x = z[f] + rest[f]
                    a, c = gates.loads(gate[f], state[f])
                    new = a * x - c * gates.t(gate[f], x)
                    log_p += new - value[f]
                    value[f] = new
            b += 1
        scale = 1.0
        if log_p > top:
            scale, top = math.exp(top - log_p), log_p
        w = math.exp(log_p - top)
        total = total * scale + w
        for b in range(len(group)):
            part[2 + b] = part[2 + b] * scale + w * ((code >> b) & 1)
    part[0], part[1] = top, total


@kernel
def enumerate_rows(
    model: Model, states: States, bias: FloatArray, limit: int, means: FloatArray, largest: IndexArray
) -> FloatArray:
    """ln P(V) of each row; groups of more than `limit` coupled hidden units are left out.

    The posterior means of the units that are summed over go to `means`, the size of the largest group to `largest`.
    """
    result = np.empty(len(states))
    for r in range(len(states)):
        problem = reduced(model, states[r])
        n, m = len(problem.hidden), len(problem.factor)
        lists = Lists(
            components(problem), np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64),
            np.empty(n, np.int64), np.empty(m, np.int64), np.empty(m, np.int64),
        )  # fmt: skip
        flips = Flips(
            problem.child_ptr, problem.child, np.empty(len(problem.child)), problem.factor_of, np.empty(n),
            np.empty(m, np.int64), np.empty(m), np.empty(m), np.empty(m), np.empty(m), np.empty(m),
        )  # fmt: skip
        _fill(problem, states[r], bias[r], flips)
        result[r], largest[r] = _sum_row(problem, states[r], bias[r], limit, lists, flips, np.empty(n + 2), means[r])
    return result


@bare
def _fill(problem: Problem, states: States, bias: FloatArray, flips: Flips) -> None:
    """What one row needs for a sum; `sbnet.exact.enumeration` does the same with whole arrays."""
    hidden, factor, every = problem.hidden, problem.factor, problem.gate
    slot, slot_weight = problem.child_slot, problem.weight
    weight, root, gate, own_bias, state = flips.weight, flips.root, flips.gate, flips.bias, flips.state
    for e in range(len(weight)):
        weight[e] = slot_weight[slot[e]]
    for j in range(len(root)):
        root[j] = gates.log_odds(every[hidden[j]], bias[hidden[j]])
    for f in range(len(gate)):
        i = factor[f]
        gate[f], own_bias[f], state[f] = every[i], bias[i], max(states[i], 0)


@bare
def _sum_row(
    problem: Problem,
    states: States,
    bias: FloatArray,
    limit: int,
    lists: Lists,
    flips: Flips,
    part: FloatArray,
    means: FloatArray,
) -> tuple[float, int]:
    """ln P of one row, but for groups beyond the limit, and the size of the largest group."""
    label, group, mine, hidden = lists.label, lists.group, lists.mine, problem.hidden
    _list_groups(problem.ptr, problem.parent, label, lists.unit, lists.next_unit, lists.factor, lists.next_factor)
    total, largest = known_units(problem, states, bias), 0
    for first in range(len(label)):
        if label[first] == first:
            size = _follow(lists.unit[first], lists.next_unit, group)
            largest = max(largest, size)
            if size <= limit:
                n_mine = _follow(lists.factor[first], lists.next_factor, mine)
                sum_states(flips, group[:size], mine[:n_mine], 0, 1 << size, part)
                total += part[0] + math.log(part[1])
                for b in range(size):
                    i = hidden[group[b]]
                    if flips.factor_of[group[b]] < 0:
                        total += gates.log_p(problem.gate[i], 0, bias[i])
                    means[i] = part[2 + b] / part[1]
    return total, largest


@bare
def _list_groups(
    ptr: IndexArray,
    parent: IndexArray,
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
    for f in range(len(next_factor) - 1, -1, -1):
        group = label[parent[ptr[f]]]
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
