"""Exact sums over the joint states of the hidden variables, eq. (8).

Joint states are counted up, the first variable's state first. An input is summed from the last variable to the first,
and what the last ones contribute is kept: when those up to variable b move, theirs alone is added anew. So no rounding
piles up, and a small leak survives large weights that come and go.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from sbnet._types import FloatArray, IndexArray, Model, States
from sbnet.kernels.compiling import inner, kernel
from sbnet.kernels.structs import Problem
from sbnet.kernels.thresholds import log_p, log_part


class Room(NamedTuple):
    """What is known of the joint state that is at hand."""

    state: IndexArray  # by hidden variable
    first: IndexArray  # by factor: the first variable of the group that it depends on
    x: FloatArray  # by variables of the group, one more, and factor: the input, from that variable on
    value: FloatArray  # by factor: its part of ln P
    root: FloatArray  # by state of each hidden variable: ln P, if its input is known
    share: FloatArray  # likewise: the sum of the terms with that state


@inner
def _room(model: Model, problem: Problem, bias: FloatArray, largest: int) -> Room:
    hidden, n, n_states = problem.hidden, len(problem.factors), problem.n_columns + len(problem.hidden)
    x, root = np.zeros((largest + 1, n)), np.zeros(n_states)
    for j in range(len(hidden)):
        v = hidden[j].variable
        for k in range(hidden[j].states if hidden[j].own < 0 else 0):
            root[hidden[j].column + j + k] = log_p(model.gate[v], k, bias[model.threshold[v] : model.threshold[v + 1]])
    return Room(np.zeros(len(hidden), np.int64), np.zeros(n, np.int64), x, np.zeros(n), root, np.zeros(n_states))


@inner
def _begin(problem: Problem, bias: FloatArray, room: Room, group: IndexArray, mine: IndexArray, k: int) -> None:
    """Joint state k, and what the factors depend on."""
    for f in mine:
        room.x[len(group), f] = bias[problem.factors[f].threshold]
    for b in range(len(group) - 1, -1, -1):
        one = problem.hidden[group[b]]
        for f in range(one.own, one.own + one.states - 1 if one.own >= 0 else one.own):
            room.first[f] = b
        for c in range(one.child, one.child_end):
            room.first[problem.children[c].factor] = b
    for j in group:
        room.state[j], k = k % problem.hidden[j].states, k // problem.hidden[j].states


@inner
def _sum_states(
    problem: Problem, states: States, bias: FloatArray, room: Room, group: IndexArray, mine: IndexArray, start: int,
    end: int,
) -> tuple[float, float]:  # fmt: skip
    """Add up the joint states `start` to `end` of a group: the logarithm of the largest term, and the sum in units of
    that; likewise the sums of the terms with each state.
    """
    hidden, factors, slots, children, _, _ = problem
    state, first, x, value, root, share = room
    top, total = -np.inf, 0.0
    _begin(problem, bias, room, group, mine, start)
    for k in range(start, end):
        b = 0 if k > start else len(group) - 1  # the last variable that moves
        while k > start and state[group[b]] == hidden[group[b]].states - 1:
            state[group[b]] = 0
            b += 1
        state[group[b]] += 1 if k > start else 0
        for i in range(b, -1, -1):
            one, s = hidden[group[i]], state[group[i]] - 1
            for f in mine:
                x[i, f] = x[i + 1, f]
            for c in range(one.child, one.child_end if s >= 0 else one.child):
                x[i, children[c].factor] += slots[children[c].slot + s].weight
        log_joint = 0.0
        for f in mine:
            if first[f] <= b:
                one = factors[f]
                own = state[one.hidden] if one.hidden >= 0 else states[one.variable]
                value[f] = log_part(one.gate, one.level, own, x[0, f])
            log_joint += value[f]
        for j in group:
            log_joint += root[hidden[j].column + j + state[j]]
        if log_joint > top:
            scale = math.exp(top - log_joint)
            top, total = log_joint, total * scale
            for j in group:
                for s in range(hidden[j].column + j, hidden[j].column + j + hidden[j].states):
                    share[s] *= scale
        w = math.exp(log_joint - top)
        total += w
        for j in group:
            share[hidden[j].column + j + state[j]] += w
    return top, total


@kernel
def sum_part(
    model: Model, problem: Problem, states: States, bias: FloatArray, group: IndexArray, mine: IndexArray, first: int,
    last: int,
) -> FloatArray:  # fmt: skip
    """A part of the sum over the joint states of a group of hidden variables with the factors `mine`.

    The logarithm of the largest term, the sum in units of that term, and the share of each column.
    """
    room, part, c = _room(model, problem, bias, len(group)), np.empty(2 + problem.n_columns), 2
    part[0], part[1] = _sum_states(problem, states, bias, room, group, mine, first, last)
    for j in group:
        for k in range(1, problem.hidden[j].states):
            part[c] = room.share[problem.hidden[j].column + j + k]
            c += 1
    return part[:c]


@kernel
def sum_groups(
    model: Model, problem: Problem, units: tuple[IndexArray, IndexArray], factors: tuple[IndexArray, IndexArray],
    states: States, bias: FloatArray, means: FloatArray,
) -> float:  # fmt: skip
    """ln P(V) of a row. Those in a group stand together in `units` and `factors`, which say where each group begins.

    Posterior probabilities of states that are summed over go to `means`.
    """
    total, largest = 0.0, 0
    for v in problem.known:
        if states[v] >= 0:
            total += log_p(model.gate[v], states[v], bias[model.threshold[v] : model.threshold[v + 1]])
    for g in range(len(units[1]) - 1):
        largest = max(largest, units[1][g + 1] - units[1][g])
    room = _room(model, problem, bias, largest)
    for g in range(len(units[1]) - 1):
        group, mine = units[0][units[1][g] : units[1][g + 1]], factors[0][factors[1][g] : factors[1][g + 1]]
        size = 1
        for j in group:
            size *= problem.hidden[j].states
        top, whole = _sum_states(problem, states, bias, room, group, mine, 0, size)
        total += top + math.log(whole)
        for j in group:
            one = problem.hidden[j]
            for k in range(1, one.states):
                means[model.threshold[one.variable] + k - 1] = room.share[one.column + j + k] / whole
    return total
