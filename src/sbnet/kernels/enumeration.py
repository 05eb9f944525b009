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
from sbnet.kernels.codes import SIGMOID
from sbnet.kernels.compiling import inner, kernel
from sbnet.kernels.structs import LANES, Problem, aligned
from sbnet.kernels.thresholds import log_p, log_part
from sbnet.kernels.vector import exp_minus, log_one_plus


class Room(NamedTuple):
    """What is known of the joint state that is at hand; the factors of a group are numbered in their order."""

    state: IndexArray  # by hidden variable
    place: IndexArray  # by factor of the problem: its number in the group
    x: FloatArray  # by variables of the group, one more, and factor: the input, from that variable on
    sign: (
        FloatArray  # by factor: c - 2 a, which is 1 where a sigmoid threshold stops its variable, else -1, or 0 (c = 0)
    )
    arg: FloatArray  # by factor: |x|
    power: FloatArray  # by factor: e^-|x|
    bits: IndexArray  # of that
    root: FloatArray  # by state of each hidden variable: ln P, if its input is known
    share: FloatArray  # likewise: the sum of the terms with that state


def room_for(problem: Problem, units: int, factors: int) -> Room:
    """Room for groups of up to so many variables and factors."""
    n_states, width = problem.n_columns + len(problem.hidden), factors + -factors % LANES
    sign, arg, power = aligned((3, width), np.float64)
    whole = np.zeros(len(problem.hidden), np.int64), np.zeros(len(problem.factors), np.int64)
    by_state = np.zeros(n_states), np.zeros(n_states)
    return Room(*whole, aligned((units + 1, width), np.float64), sign, arg, power, power.view(np.int64), *by_state)


@inner
def _set_roots(model: Model, problem: Problem, bias: FloatArray, root: FloatArray) -> None:
    hidden = problem.hidden
    for j in range(len(hidden)):
        v = hidden[j].variable
        for k in range(hidden[j].states if hidden[j].own < 0 else 0):
            root[hidden[j].column + j + k] = log_p(model.gate[v], k, bias[model.threshold[v] : model.threshold[v + 1]])


@inner
def _begin(problem: Problem, states: States, bias: FloatArray, room: Room, group: IndexArray, mine: IndexArray) -> None:
    """The factors of a group, their biases and, if they are those of observed variables, their signs."""
    for i in range(room.x.shape[1]):
        room.sign[i] = room.x[len(group), i] = 0.0
    for i in range(len(mine)):
        one = problem.factors[mine[i]]
        room.place[mine[i]], room.x[len(group), i] = i, bias[one.threshold]
        if one.hidden < 0 and one.gate == SIGMOID:
            room.sign[i] = _sign(one.level, states[one.variable])


@inner
def _sign(level: int, state: int) -> float:
    return -1.0 if state >= level else 1.0 if state == level - 1 else 0.0


@inner(fast=True)
def _log_sigmoids(x: FloatArray, room: Room) -> float:
    """The sum of all a x - c ln(1 + e^x), as -c ln(1 + e^((c - 2 a) x)), which loses no digits."""
    sign, arg, power, total = room.sign, room.arg, room.power, 0.0
    for i in range(len(arg)):
        arg[i] = abs(x[0, i])
    exp_minus(room)
    for i in range(len(arg)):
        total -= max(sign[i] * x[0, i], 0.0) + abs(sign[i]) * log_one_plus(power[i])
    return total


@inner
def _sum_states(
    problem: Problem, states: States, bias: FloatArray, room: Room, group: IndexArray, mine: IndexArray, start: int,
    end: int,
) -> tuple[float, float]:  # fmt: skip
    """Add up the joint states `start` to `end` of a group: the logarithm of the largest term, and the sum in units of
    that; likewise the sums of the terms with each state.
    """
    hidden, factors, slots, children, _, _ = problem
    state, place, x, sign, root, share = room.state, room.place, room.x, room.sign, room.root, room.share
    top, total, rest, n_noisy = -np.inf, 0.0, start, 0
    _begin(problem, states, bias, room, group, mine)
    for f in mine:
        n_noisy += factors[f].gate != SIGMOID
    for j in group:
        state[j], rest = rest % hidden[j].states, rest // hidden[j].states
    for k in range(start, end):
        b = 0 if k > start else len(group) - 1  # the last variable that moves
        while k > start and state[group[b]] == hidden[group[b]].states - 1:
            state[group[b]] = 0
            b += 1
        state[group[b]] += 1 if k > start else 0
        for i in range(b, -1, -1):
            one, s = hidden[group[i]], state[group[i]]
            for f in range(x.shape[1]):
                x[i, f] = x[i + 1, f]
            for c in range(one.child, one.child_end if s > 0 else one.child):
                x[i, place[children[c].factor]] += slots[children[c].slot + s - 1].weight
            for f in range(one.own, one.own + one.states - 1 if one.own >= 0 else one.own):
                sign[place[f]] = _sign(factors[f].level, s) if factors[f].gate == SIGMOID else 0.0
        log_joint = _log_sigmoids(x, room)
        for i in range(len(mine) if n_noisy > 0 else 0):
            one = factors[mine[i]]
            if one.gate != SIGMOID:
                own = state[one.hidden] if one.hidden >= 0 else states[one.variable]
                log_joint += log_part(one.gate, one.level, own, x[0, i])
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
    model: Model, problem: Problem, states: States, bias: FloatArray, room: Room, group: IndexArray, mine: IndexArray,
    first: int, last: int,
) -> tuple[float, float]:  # fmt: skip
    """A part of the sum over the joint states of a group of hidden variables with the factors `mine`."""
    _set_roots(model, problem, bias, room.root)
    return _sum_states(problem, states, bias, room, group, mine, first, last)


@kernel
def sum_groups(
    model: Model, problem: Problem, units: tuple[IndexArray, IndexArray], factors: tuple[IndexArray, IndexArray],
    states: States, bias: FloatArray, room: Room, means: FloatArray,
) -> float:  # fmt: skip
    """ln P(V) of a row. Those in a group stand together in `units` and `factors`, which say where each group begins.

    Posterior probabilities of states that are summed over go to `means`.
    """
    total = 0.0
    _set_roots(model, problem, bias, room.root)
    for v in problem.known:
        if states[v] >= 0:
            total += log_p(model.gate[v], states[v], bias[model.threshold[v] : model.threshold[v + 1]])
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
