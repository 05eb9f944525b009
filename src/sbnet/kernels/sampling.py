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
    ("plain", "i8"),  # is it sigmoid, with two states, and so have its parents? Weights stand in a row then;
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
    model: Model,
    gate: Any,
    ends: IndexArray,
    other: IndexArray,
    block: IndexArray,
    weight: FloatArray,
    bias: FloatArray,
) -> Regressions:
    """Of the variables of a network on others, ``other[ends[v]:ends[v + 1]]``."""
    variables, parents = np.zeros(len(ends) - 1, variable_t), np.zeros(len(other), parent_t)
    parents["variable"], parents["block"], parents["width"] = other, block[:-1], model.n_states[other] - 1
    variables["gate"], variables["states"], variables["threshold"] = gate, model.n_states, model.threshold[:-1]
    variables["parent"], variables["parent_end"] = ends[:-1], ends[1:]
    wide = np.concatenate([[0], np.cumsum(parents["width"] > 1)])
    variables["plain"] = (wide[ends[1:]] == wide[ends[:-1]]) & (model.n_states == 2) & (variables["gate"] == SIGMOID)
    variables["shift"] = block[ends[:-1]] - ends[:-1]
    return Regressions(variables, parents, other, weight, bias)


@inner(lanewise=True)
def _plain_input(one: Any, other: IndexArray, weight: FloatArray, bias: FloatArray, states: States, r: int) -> float:
    """x of a plain variable in row r."""
    x, shift = bias[one.threshold], one.shift
    for e in range(one.parent, one.parent_end):
        if states[r, other[e]] > 0:
            x += weight[e + shift]
    return x


@inner
def _input(one: Any, level: int, net: Regressions, states: States, r: int) -> float:
    """x of a threshold of any variable in row r."""
    x = net.bias[one.threshold + level - 1]
    for e in range(one.parent, one.parent_end):
        parent = net.parents[e]
        s = states[r, parent.variable]
        if s > 0:
            x += net.weight[parent.block + (level - 1) * parent.width + s - 1]
    return x


@inner
def _log_p(one: Any, state: int, net: Regressions, states: States, r: int) -> float:
    """ln P(v = state) in row r."""
    total = 0.0
    for l in range(1, one.states):  # noqa: E741 (the letter of the definition)
        total += thresholds.log_part(one.gate, l, state, _input(one, l, net, states, r))
    return total


@inner
def _draw(one: Any, net: Regressions, states: States, r: int, uniform: float) -> int:
    """A state of a variable in row r: at least k if the number is below P(v >= k)."""
    above, k = 0.0, one.states
    while k > 0 and not uniform < above:
        k -= 1
        above += math.exp(_log_p(one, k, net, states, r))
    return k


@kernel
def draw_rows(net: Regressions, uniform: FloatArray, states: States) -> None:
    """Fill in the entries of `states` that are -1, variable after variable, from eq. (2)."""
    variables, _, other, weight, bias = net
    for r in range(len(states)):
        for v in range(len(variables)):
            one = variables[v]
            if states[r, v] < 0 and one.plain == 1:
                x = _plain_input(one, other, weight, bias, states, r)
                states[r, v] = 1 if uniform[r, v] < thresholds.sigmoid(x) else 0
            elif states[r, v] < 0:
                states[r, v] = _draw(one, net, states, r, uniform[r, v])


@kernel
def log_joint_rows(net: Regressions, states: States, live: BoolArray, result: FloatArray) -> None:
    """ln P(S) of each row, eq. (6), of the live variables alone."""
    variables, _, other, weight, bias = net
    for r in range(len(states)):
        total = 0.0
        for v in range(len(variables)):
            one = variables[v]
            if live[v] and one.plain == 1:
                x = _plain_input(one, other, weight, bias, states, r)
                total -= thresholds.softplus(-x if states[r, v] == 1 else x)
            elif live[v]:
                total += _log_p(one, states[r, v], net, states, r)
        result[r] = total


@inner(lanewise=True)
def _plain_step(
    stage: int, v: int, one: Any, other: IndexArray, weight: FloatArray, bias: FloatArray, states: States, r: int,
    uniform: float, rate: float,
) -> float:  # fmt: skip
    """Draw variable v of row r in stages 0 and 2, learn from its state in 1 and 3; its ln P in 0 and 1."""
    x, shift = _plain_input(one, other, weight, bias, states, r), one.shift
    p = thresholds.sigmoid(x)
    states[r, v] = states[r, v] if stage % 2 == 1 else 1 if uniform < p else 0
    step = rate * (states[r, v] - p) if stage % 2 == 1 else 0.0
    bias[one.threshold] += step
    for e in range(one.parent, one.parent_end if stage % 2 == 1 else one.parent):
        weight[e + shift] += step * states[r, other[e]]
    return -thresholds.softplus(-x if states[r, v] == 1 else x) if stage < 2 else 0.0


@inner
def _step(stage: int, v: int, net: Regressions, states: States, r: int, uniform: float, rate: float) -> float:
    """Likewise for any variable; the gradient of ln P(v | x) is a_l - c_l t'(x_l) for each threshold."""
    one = net.variables[v]
    if stage % 2 == 0:
        states[r, v] = _draw(one, net, states, r, uniform)
    total = _log_p(one, states[r, v], net, states, r) if stage < 2 else 0.0
    for l in range(1, one.states if stage % 2 == 1 else 1):  # noqa: E741
        a, c = thresholds.loads(one.gate, l, states[r, v])
        step = rate * (a - c * thresholds.dt(one.gate, _input(one, l, net, states, r)))
        net.bias[one.threshold + l - 1] += step
        for e in range(one.parent, one.parent_end):
            parent = net.parents[e]
            s = states[r, parent.variable]
            if s > 0:
                net.weight[parent.block + (l - 1) * parent.width + s - 1] += step
    return total


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
    variables, _, other, weight, bias = net
    guessed, _, others, guess_weight, guess_bias = guess
    total, n = 0.0, len(live)
    for r in range(len(states)):
        for j in range(4 * n):  # draw from R, children first; teach the network; draw from it, a dream; teach R
            stage, v = j // n, j % n if j >= n else n - 1 - j
            if not live[v] or (not hidden[v] and stage % 3 == 0):
                continue
            u, told = uniform[r, stage // 2, v], 0.0
            if stage % 3 > 0 and variables[v].plain == 1:
                told = _plain_step(stage, v, variables[v], other, weight, bias, states, r, u, rate)
            elif stage % 3 > 0:
                told = _step(stage, v, net, states, r, u, rate)
            elif guessed[v].plain == 1:
                told = _plain_step(stage, v, guessed[v], others, guess_weight, guess_bias, states, r, u, rate)
            else:
                told = _step(stage, v, guess, states, r, u, rate)
            total += told if stage > 0 else -told
    return total
