"""One complete state after another: draws from a network, their ln P, and wake-sleep learning.

A network is a set of regressions of variables on others, and so is the recognition network R(H | V) of the wake-sleep
algorithm (Hinton, Dayan, Frey & Neal 1995): there the others are the children of a hidden variable and its observed
parents.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from sbnet._types import BoolArray, FloatArray, IndexArray, Model, States
from sbnet.kernels import thresholds
from sbnet.kernels.codes import SIGMOID
from sbnet.kernels.compiling import inner, kernel
from sbnet.kernels.structs import struct

variable_t = struct(
    ("gate", "i8"),
    ("states", "i8"),  # how many it has
    ("threshold", "i8"),  # its first one
    ("parent", "i8"),  # where its parents begin, and end
    ("parent_end", "i8"),
    ("plain", "i8"),  # have it and all its parents two states? Then its weights stand in a row, and
    ("shift", "i8"),  # what to add to the number of a parent to get that of its weight
    ("edge", "i8"),  # where the edges to its children begin, and end: for `chains`
    ("edge_end", "i8"),
)
parent_t = struct(
    ("variable", "i8"),
    ("block", "i8"),  # its first weight: thresholds of the child by states of the parent from 1 on
    ("width", "i8"),  # weights of each threshold
)


class Regressions(NamedTuple):
    """Variables given others, their parents."""

    variables: np.ndarray
    parents: np.ndarray
    other: IndexArray  # the variables of the parents
    weight: FloatArray
    bias: FloatArray


def generative(model: Model, bias: FloatArray) -> Regressions:
    """The network itself."""
    return regressions(model, model.gate, model.indptr, model.parent, model.block, model.weight, bias)


def regressions(
    model: Model, gate: Any, ends: IndexArray, other: IndexArray, block: IndexArray, weight: FloatArray, bias: FloatArray
) -> Regressions:
    """Of the variables of a network on others, ``other[ends[v]:ends[v + 1]]``."""
    variables, parents = np.zeros(len(ends) - 1, variable_t), np.zeros(len(other), parent_t)
    parents["variable"], parents["block"], parents["width"] = other, block[:-1], model.n_states[other] - 1
    variables["gate"], variables["states"], variables["threshold"] = gate, model.n_states, model.threshold[:-1]
    variables["parent"], variables["parent_end"] = ends[:-1], ends[1:]
    wide = np.concatenate([[0], np.cumsum(parents["width"] > 1)])
    variables["plain"] = (wide[ends[1:]] == wide[ends[:-1]]) & (model.n_states == 2)
    variables["shift"] = block[ends[:-1]] - ends[:-1]
    return Regressions(variables, parents, other, weight, bias)


@inner(fast=True)
def _input(one: Any, level: int, net: Regressions, states: States, r: int) -> float:
    """x of a threshold of a variable in row r."""
    _, parents, other, weight, bias = net
    x = bias[one.threshold + level - 1]
    for e in range(one.parent, one.parent_end if one.plain else one.parent):
        x += weight[e + one.shift] * states[r, other[e]]
    for e in range(one.parent, one.parent if one.plain else one.parent_end):
        s = states[r, other[e]]
        x += weight[parents[e].block + (level - 1) * parents[e].width + s - 1] if s > 0 else 0.0
    return x


@inner(lanewise=True)
def _draw(one: Any, net: Regressions, states: States, r: int, uniform: float) -> int:
    """A state of a variable in row r: at least k if the number is below P(v >= k)."""
    state, above, quick = 0, 0.0, one.states == 2 and one.gate == SIGMOID
    if quick:
        state = 1 if uniform < thresholds.sigmoid(_input(one, 1, net, states, r)) else 0
    for k in range(0 if quick else one.states - 1, 0, -1):
        log_p = 0.0
        for l in range(1, one.states):  # noqa: E741 (the letter of the definition)
            log_p += thresholds.log_part(one.gate, l, k, _input(one, l, net, states, r))
        above += math.exp(log_p)
        state = k if state == 0 and uniform < above else state
    return state


@inner(fast=True)
def _learn(one: Any, v: int, net: Regressions, states: States, r: int, rate: float) -> float:
    """One step up the gradient of ln P(v | x), a_l - c_l t'(x_l) for each threshold: the delta rule; ln P before it."""
    (_, parents, other, weight, bias), total = net, 0.0
    for l in range(1, one.states):  # noqa: E741
        x = _input(one, l, net, states, r)
        total += thresholds.log_part(one.gate, l, states[r, v], x)
        a, c = thresholds.loads(one.gate, l, states[r, v])
        step = rate * (a - c * thresholds.dt(one.gate, x))
        bias[one.threshold + l - 1] += step
        for e in range(one.parent, one.parent_end if one.plain else one.parent):
            weight[e + one.shift] += step * states[r, other[e]]
        for e in range(one.parent, one.parent if one.plain else one.parent_end):
            s = states[r, other[e]]
            if s > 0:
                weight[parents[e].block + (l - 1) * parents[e].width + s - 1] += step
    return total


@kernel
def draw_rows(net: Regressions, uniform: FloatArray, states: States) -> None:
    """Fill in the entries of `states` that are -1, variable after variable, from eq. (2)."""
    variables = net.variables
    for r in range(len(states)):
        for v in range(len(variables)):
            if states[r, v] < 0:
                states[r, v] = _draw(variables[v], net, states, r, uniform[r, v])


@kernel
def log_joint_rows(net: Regressions, states: States, live: BoolArray, result: FloatArray) -> None:
    """ln P(S) of each row, eq. (6), of the live variables alone."""
    variables = net.variables
    for r in range(len(states)):
        total = 0.0
        for v in range(len(variables)):
            one = variables[v]
            for l in range(1, one.states if live[v] else 1):  # noqa: E741
                x = _input(one, l, net, states, r)
                total += thresholds.log_part(one.gate, l, states[r, v], x)
        result[r] = total


@kernel
def wake_sleep_rows(
    net: Regressions, guess: Regressions, live: BoolArray, hidden: BoolArray, states: States, uniform: FloatArray,
    rate: float,
) -> float:  # fmt: skip
    """For each row one step awake and one asleep; the network and R, `guess`, change in place, and so do the rows.

    `uniform` holds two random numbers for each row and variable: rows by 2 by variables. Variables that are not `live`
    stay as they are, 0, and so neither act nor learn. Returns the sum of ln P(H, V) - ln R(H | V) over the rows, each
    before its step.
    """
    total, n, variables, guessed = 0.0, len(live), net.variables, guess.variables
    for r in range(len(states)):
        for v in range(n - 1, -1, -1):  # awake: children come after their parents, so they are drawn by now
            if live[v] and hidden[v]:
                one = guessed[v]
                states[r, v] = _draw(one, guess, states, r, uniform[r, 0, v])
                total -= _learn(one, v, guess, states, r, 0.0)
        for v in range(n):
            if live[v]:
                total += _learn(variables[v], v, net, states, r, rate)
        for v in range(n):  # asleep: all variables are drawn from the network
            if live[v]:
                states[r, v] = _draw(variables[v], net, states, r, uniform[r, 1, v])
        for v in range(n):
            if live[v] and hidden[v]:
                _learn(guessed[v], v, guess, states, r, rate)
    return total
