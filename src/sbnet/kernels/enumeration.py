"""Exact sums over the joint states of the hidden variables, eq. (8).

Joint states are gone through in a Gray code of mixed radix, in which neighbours differ in one variable by one state:
digit b of number k is floor(k / R) mod K, counted backwards if floor(k / R K) is odd, with K the number of states of
variable b and R the product of those before it. A move changes the inputs of the children of one variable. What inputs
lose to rounding is kept beside them, for small leaks must survive large weights that come and go, and now and then all
is evaluated from scratch.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from sbnet._types import FloatArray, IndexArray, Model, States
from sbnet.kernels.codes import SIGMOID
from sbnet.kernels.compiling import inner, kernel
from sbnet.kernels.structs import Problem, struct
from sbnet.kernels.thresholds import loads, log_p, softplus, t

_FRESH = 64  # states between two evaluations from scratch, so that rounding does not pile up

threshold_t = struct(  # a factor, while states change
    ("h", "f8"),  # bias
    ("x", "f8"),  # input
    ("lost", "f8"),  # what x has lost to rounding
    ("value", "f8"),  # its part of ln P
    ("a", "f8"),  # loads in the present state of its variable
    ("c", "f8"),
    ("gate", "i8"),
    ("level", "i8"),
)


@inner
def _add(one: Any, weight: float) -> None:
    """x + weight, and what its rounding has lost (Knuth's two-sum)."""
    total = one.x + weight
    back = total - one.x
    one.lost += (one.x - (total - back)) + (weight - back)
    one.x = total


@inner(fast=True)
def _rise(one: Any) -> float:
    """How much its part of ln P, a x - c t(x), rises to the value at its present input and loads.

    For a sigmoid that is -c softplus((c - 2 a) x), which loses no digits, and has no branch that states decide.
    """
    x = one.x + one.lost
    if one.gate == SIGMOID:
        value = -one.c * softplus((one.c - 2.0 * one.a) * x)
    else:
        value = one.a * max(x, 0.0) - one.c * t(one.gate, x)
    rise = value - one.value
    one.value = value
    return rise


@inner
def _move(
    hidden: np.ndarray, slots: np.ndarray, children: np.ndarray, now: np.ndarray, root: FloatArray, j: int, old: int,
    new: int,
) -> float:  # fmt: skip
    """How much ln P rises if hidden variable j goes from one state to another."""
    variable, rise = hidden[j], 0.0
    if variable.own < 0:
        first = variable.column + j
        rise += root[first + new] - root[first + old]
    else:
        for f in range(variable.own, variable.own + variable.states - 1):
            now[f].a, now[f].c = loads(now[f].gate, now[f].level, new)
            rise += _rise(now[f])
    for c in range(variable.child, variable.child_end):
        one, first = now[children[c].factor], children[c].slot - 1
        if old > 0:
            _add(one, -slots[first + old].weight)
        if new > 0:
            _add(one, slots[first + new].weight)
        rise += _rise(one)
    return rise


@inner
def _sum_states(
    problem: Problem, now: np.ndarray, root: FloatArray, group: IndexArray, mine: IndexArray, first: int, last: int,
    part: FloatArray,
) -> None:  # fmt: skip
    """Add up the joint states `first` to `last` of a group.

    The logarithm of the largest term, the sum in units of that term, and the share of each column go to `part`.
    """
    hidden, _, slots, children, _, _ = problem
    digit, step = np.zeros(len(group), np.int64), np.ones(len(group), np.int64)
    place, share = np.zeros(len(group), np.int64), np.zeros(len(part) - 2 + len(group))  # by state, from 0 on
    top, total, log_joint = -np.inf, 0.0, 0.0
    for k in range(first, last):
        if k == first or k % _FRESH == 0:
            log_joint = _begin(hidden, now, root, group, mine)
            rest, s = k, 0
            for b in range(len(group)):
                n = hidden[group[b]].states
                rest, a = rest // n, rest % n
                digit[b], step[b] = (a, 1) if rest % 2 == 0 else (n - 1 - a, -1)
                place[b], s = s + digit[b], s + n
                if digit[b] > 0:
                    log_joint += _move(hidden, slots, children, now, root, group[b], 0, digit[b])
        else:
            b = 0
            while not 0 <= digit[b] + step[b] < hidden[group[b]].states:
                step[b] = -step[b]
                b += 1
            old, digit[b], place[b] = digit[b], digit[b] + step[b], place[b] + step[b]
            log_joint += _move(hidden, slots, children, now, root, group[b], old, digit[b])
        if log_joint > top:
            scale, top = math.exp(top - log_joint), log_joint
            total *= scale
            for s in range(len(share)):
                share[s] *= scale
        w = math.exp(log_joint - top)
        total += w
        for b in range(len(group)):
            share[place[b]] += w
    part[0], part[1] = top, total
    c = s = 2
    for b in range(len(group)):
        for _ in range(hidden[group[b]].states - 1):
            part[c], c, s = share[s - 1], c + 1, s + 1
        s += 1


@inner
def _begin(hidden: np.ndarray, now: np.ndarray, root: FloatArray, group: IndexArray, mine: IndexArray) -> float:
    """Put all variables of a group into state 0; ln P there."""
    log_joint = 0.0
    for j in group:
        one = hidden[j]
        if one.own < 0:
            log_joint += root[one.column + j]
        else:
            for f in range(one.own, one.own + one.states - 1):
                now[f].a, now[f].c = loads(now[f].gate, now[f].level, 0)
    for f in mine:
        now[f].x, now[f].lost, now[f].value = now[f].h, 0.0, 0.0
        log_joint += _rise(now[f])
    return log_joint


@inner
def _prepare(model: Model, problem: Problem, states: States, bias: FloatArray) -> tuple[np.ndarray, FloatArray]:
    """The thresholds of one row, and ln P of each state of the hidden variables whose inputs are known."""
    now, root = np.zeros(len(problem.factors), threshold_t), np.zeros(problem.n_columns + len(problem.hidden))
    for f in range(len(now)):
        factor = problem.factors[f]
        now[f].h, now[f].gate, now[f].level = bias[factor.threshold], factor.gate, factor.level
        now[f].a, now[f].c = loads(factor.gate, factor.level, max(states[factor.variable], 0))
    for j in range(len(problem.hidden)):
        one = problem.hidden[j]
        if one.own < 0:
            v = one.variable
            x = bias[model.threshold[v] : model.threshold[v + 1]]
            for k in range(one.states):
                root[one.column + j + k] = log_p(model.gate[v], k, x)
    return now, root


@kernel
def sum_part(
    model: Model, problem: Problem, states: States, bias: FloatArray, group: IndexArray, mine: IndexArray, first: int,
    last: int,
) -> FloatArray:  # fmt: skip
    """A part of the sum over the joint states of a group of hidden variables with the factors `mine`.

    See `_sum_states` for what is in it.
    """
    now, root = _prepare(model, problem, states, bias)
    n_columns = 0
    for j in group:
        n_columns += problem.hidden[j].states - 1
    part = np.empty(2 + n_columns)
    _sum_states(problem, now, root, group, mine, first, last, part)
    return part


@inner
def _sorted_by(label: IndexArray, n: int) -> tuple[IndexArray, IndexArray]:
    """The places of each of n labels, in rising order, and where those of each label begin."""
    order, first = np.empty(len(label), np.int64), np.zeros(n + 1, np.int64)
    for one in label:
        first[one + 1] += 1
    for k in range(n):
        first[k + 1] += first[k]
    place = first.copy()
    for k in range(len(label)):
        order[place[label[k]]] = k
        place[label[k]] += 1
    return order, first


@kernel
def sum_groups(model, problem, label, states, bias, limit, means):
    """ln P(V) of a row, without groups of more than 2**limit joint states; log2 of those that the largest group has.

    `label` is the group of each hidden variable. Posterior probabilities of states that are summed over go to `means`.
    """
    total, largest = 0.0, 0.0
    for v in problem.known:
        if states[v] >= 0:
            total += log_p(model.gate[v], states[v], bias[model.threshold[v] : model.threshold[v + 1]])
    of_factor = np.empty(len(problem.factors), np.int64)
    for f in range(len(of_factor)):
        of_factor[f] = label[problem.slots[problem.factors[f].slot].parent]
    units, first = _sorted_by(label, len(label))
    factors, first_factor = _sorted_by(of_factor, len(label))
    now, root = _prepare(model, problem, states, bias)
    part = np.empty(2 + problem.n_columns)
    for g in range(len(label)):
        group, mine = units[first[g] : first[g + 1]], factors[first_factor[g] : first_factor[g + 1]]
        size, bits, n_columns = 1, 0.0, 0
        for j in group:
            n = problem.hidden[j].states
            size, bits, n_columns = size * n, bits + math.log2(n), n_columns + n - 1
        largest = max(largest, bits)
        if len(group) > 0 and bits <= limit:
            _sum_states(problem, now, root, group, mine, 0, size, part[: 2 + n_columns])
            total += part[0] + math.log(part[1])
            c = 2
            for j in group:
                v = problem.hidden[j].variable
                for column in range(model.threshold[v], model.threshold[v + 1]):
                    means[column] = part[c] / part[1]
                    c += 1
    return total, largest
