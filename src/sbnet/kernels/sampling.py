"""One complete state after another: draws from a network, their ln P, and wake-sleep learning."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from sbnet._types import BoolArray, FloatArray, IndexArray, Model, States
from sbnet.kernels.codes import SIGMOID
from sbnet.kernels.compiling import inner, kernel
from sbnet.kernels.structs import struct
from sbnet.kernels.thresholds import log_part, sigmoid, softplus

variable_t = struct(
    ("gate", "i8"),
    ("states", "i8"),  # how many it has
    ("threshold", "i8"),  # its first one
    ("parent", "i8"), ("parent_end", "i8"),  # its parents
    ("plain", "i8"),  # is it sigmoid, with two states, and so have its parents? Weights stand in a row then;
    ("shift", "i8"),  # what to add to the number of a parent to get that of its weight
    ("edge", "i8"), ("edge_end", "i8"),  # its edges to its children: for `chains`
)  # fmt: skip
parent_t = struct(
    ("variable", "i8"),
    ("block", "i8"),  # its first weight: thresholds of the child by states of the parent from 1 on
    ("width", "i8"),  # weights of each threshold
)


class Family(NamedTuple):
    """Variables given their parents."""

    variables: np.ndarray  # of variable_t
    parents: np.ndarray  # of parent_t
    other: IndexArray  # the variables of the parents
    weight: FloatArray
    bias: FloatArray


def generative(model: Model, bias: FloatArray) -> Family:
    """The network."""
    variables, parents = np.zeros(len(model.gate), variable_t), np.zeros(len(model.parent), parent_t)
    parents["variable"], parents["block"] = model.parent, model.block[:-1]
    parents["width"] = model.n_states[model.parent] - 1
    first, end = model.indptr[:-1], model.indptr[1:]
    variables["gate"], variables["states"], variables["threshold"] = model.gate, model.n_states, model.threshold[:-1]
    variables["parent"], variables["parent_end"] = first, end
    wide = np.concatenate([[0], np.cumsum(parents["width"] > 1)])
    variables["plain"] = (wide[end] == wide[first]) & (model.n_states == 2) & (model.gate == SIGMOID)
    variables["shift"] = model.block[first] - first
    return Family(variables, parents, model.parent, model.weight, bias)


@inner(lanewise=True)
def _plain_input(one: Any, other: IndexArray, weight: FloatArray, bias: FloatArray, states: States, r: int) -> float:
    """x of a plain variable in row r."""
    x, shift = bias[one.threshold], one.shift
    for e in range(one.parent, one.parent_end):
        if states[r, other[e]] > 0:
            x += weight[e + shift]
    return x


@inner
def _log_p(one: Any, state: int, net: Family, states: States, r: int) -> float:
    """ln P(v = state) in row r, of any variable."""
    total = 0.0
    for l in range(1, one.states):  # noqa: E741 (the letter of the definition)
        x = net.bias[one.threshold + l - 1]
        for e in range(one.parent, one.parent_end):
            parent = net.parents[e]
            s = states[r, parent.variable]
            if s > 0:
                x += net.weight[parent.block + (l - 1) * parent.width + s - 1]
        total += log_part(one.gate, l, state, x)
    return total


@kernel
def draw_rows(net: Family, uniform: FloatArray, states: States) -> None:
    """Fill in the entries of `states` that are -1, variable after variable, from eq. (2)."""
    variables, _, other, weight, bias = net
    for r in range(len(states)):
        for v in range(len(variables)):
            one = variables[v]
            if states[r, v] < 0 and one.plain == 1:
                x = _plain_input(one, other, weight, bias, states, r)
                states[r, v] = 1 if uniform[r, v] < sigmoid(x) else 0
            elif states[r, v] < 0:
                above, k = 0.0, one.states  # at least k if the number is below P(v >= k)
                while k > 0 and not uniform[r, v] < above:
                    k -= 1
                    above += math.exp(_log_p(one, k, net, states, r))
                states[r, v] = k


@kernel
def log_joint_rows(net: Family, states: States, live: BoolArray, result: FloatArray) -> None:
    """ln P(S) of each row, eq. (6), of the live variables alone."""
    variables, _, other, weight, bias = net
    for r in range(len(states)):
        result[r] = 0.0
        for v in range(len(variables)):
            one = variables[v]
            if live[v] and one.plain == 1:
                x = _plain_input(one, other, weight, bias, states, r)
                result[r] -= softplus(-x if states[r, v] == 1 else x)
            elif live[v]:
                result[r] += _log_p(one, states[r, v], net, states, r)


class Regressions(NamedTuple):
    """Sigmoid variables given others, all with two states: those of v are ``other[begin[v]:begin[v + 1]]``.

    A network is that, and so is the recognition network R(H | V) of the wake-sleep algorithm (Hinton, Dayan, Frey &
    Neal 1995): there the others are the children of a hidden variable and its observed parents.
    """

    begin: IndexArray
    other: IndexArray
    weight: FloatArray
    bias: FloatArray


@inner(lanewise=True)
def _input(net: Regressions, v: int, states: States, r: int) -> float:
    begin, other, weight, bias = net
    x = bias[v]
    for e in range(begin[v], begin[v + 1]):
        x += weight[e] if states[r, other[e]] > 0 else 0.0
    return x


@inner(lanewise=True)
def _learn(net: Regressions, v: int, step: float, states: States, r: int) -> None:
    """The delta rule."""
    begin, other, weight, bias = net
    bias[v] += step
    for e in range(begin[v], begin[v + 1]):
        weight[e] += step * states[r, other[e]]


@kernel
def wake_sleep_rows(
    net: Regressions, guess: Regressions, live: BoolArray, hidden: BoolArray, states: States, uniform: FloatArray,
    rate: float,
) -> float:  # fmt: skip
    """For each row one step awake and one asleep; the network and R, `guess`, change in place, and so do the rows.

    `uniform` holds two random numbers for each row and variable: rows by 2 by variables. Variables that are not `live`
    stay as they are, 0, and so neither act nor learn; all that are `hidden` are live. Returns the sum of
    ln P(H, V) - ln R(H | V) over the rows, each before its step.
    """
    total, n = 0.0, len(live)
    for r in range(len(states)):
        for v in range(n - 1, -1, -1):  # draw from R, children first
            if hidden[v]:
                x = _input(guess, v, states, r)
                states[r, v] = 1 if uniform[r, 0, v] < sigmoid(x) else 0
                total += softplus(-x if states[r, v] == 1 else x)
        for v in range(n):  # teach the network
            if live[v]:
                x = _input(net, v, states, r)
                total -= softplus(-x if states[r, v] == 1 else x)
                _learn(net, v, rate * (states[r, v] - sigmoid(x)), states, r)
        for v in range(n):  # draw from it, a dream
            if live[v]:
                states[r, v] = 1 if uniform[r, 1, v] < sigmoid(_input(net, v, states, r)) else 0
        for v in range(n):  # teach R
            if hidden[v]:
                _learn(guess, v, rate * (states[r, v] - sigmoid(_input(guess, v, states, r))), states, r)
    return total
