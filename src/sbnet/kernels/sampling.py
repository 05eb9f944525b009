"""One complete state after another: draws from a network, their ln P, and wake-sleep learning.

A network is a set of regressions of variables on others, and so is the recognition network R(H | V) of the wake-sleep
algorithm (Hinton, Dayan, Frey & Neal 1995): there the others are the children of a hidden variable and its observed
parents.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sbnet._types import BoolArray, FloatArray, IndexArray, Model, States
from sbnet.kernels import thresholds
from sbnet.kernels.codes import SIGMOID
from sbnet.kernels.compiling import inner, kernel


class Regressions(NamedTuple):
    """Variable v depends on ``other[ptr[v]:ptr[v + 1]]``; thresholds, blocks and weights are as in a `Model`."""

    ptr: IndexArray
    other: IndexArray
    block: IndexArray
    n_states: IndexArray
    threshold: IndexArray
    gate: States
    weight: FloatArray
    bias: FloatArray
    x: FloatArray  # room, by threshold of a variable


def generative(model: Model, bias: FloatArray) -> Regressions:
    """The network itself."""
    room = np.zeros(int(model.n_states.max(initial=2)) - 1)
    return Regressions(
        model.indptr, model.parent, model.block, model.n_states, model.threshold, model.gate, model.weight, bias, room
    )


@inner(fast=True)
def _inputs(net: Regressions, state: States, v: int) -> FloatArray:
    """x of each threshold of v."""
    other, block, n_states, weight, x = net.other, net.block, net.n_states, net.weight, net.x
    two = len(weight) == len(other)  # everything that has an edge has two states
    for l in range(n_states[v] - 1):  # noqa: E741 (the letter of the definition)
        total = net.bias[net.threshold[v] + l]
        for e in range(net.ptr[v], net.ptr[v + 1]):
            s = state[other[e]]
            if two:
                total += weight[e] * s
            elif s > 0:
                total += weight[block[e] + l * (n_states[other[e]] - 1) + s - 1]
        x[l] = total
    return x[: n_states[v] - 1]


@inner(fast=True)
def _learn(net: Regressions, state: States, v: int, x: FloatArray, rate: float) -> None:
    """One step up the gradient of ln P(v | x), which is a_l - c_l t'(x_l) for each threshold: the delta rule."""
    other, block, n_states, weight = net.other, net.block, net.n_states, net.weight
    two = len(weight) == len(other)
    for l in range(n_states[v] - 1):  # noqa: E741
        a, c = thresholds.loads(net.gate[v], l + 1, state[v])
        step = rate * (a - c * thresholds.dt(net.gate[v], x[l]))
        net.bias[net.threshold[v] + l] += step
        for e in range(net.ptr[v], net.ptr[v + 1]):
            s = state[other[e]]
            if two:
                weight[e] += step * s
            elif s > 0:
                weight[block[e] + l * (n_states[other[e]] - 1) + s - 1] += step


@kernel
def draw_rows(net: Regressions, uniform: FloatArray, states: States) -> None:
    """Fill in the entries of `states` that are -1, variable after variable, from eq. (2)."""
    for r in range(len(states)):
        for v in range(states.shape[1]):
            if states[r, v] < 0:
                states[r, v] = thresholds.draw(net.gate[v], _inputs(net, states[r], v), uniform[r, v])


@kernel
def log_joint_rows(net: Regressions, states: States, live: BoolArray, result: FloatArray) -> None:
    """ln P(S) of each row, eq. (6), of the live variables alone."""
    for r in range(len(states)):
        result[r] = 0.0
        for v in range(states.shape[1]):
            if live[v]:
                result[r] += thresholds.log_p(net.gate[v], states[r, v], _inputs(net, states[r], v))


@kernel
def wake_sleep_rows(
    net: Regressions, guess: Regressions, live: BoolArray, state: States, states: States, uniform: FloatArray,
    rate: float,
) -> float:  # fmt: skip
    """For each row one step awake and one asleep; the network and R, `guess`, change in place.

    `uniform` holds two random numbers for each row and variable: rows by 2 by variables. Variables that are not `live`
    stay 0, and so neither act nor learn. Returns the sum of ln P(H, V) - ln R(H | V) over the rows, each before its
    step. `state` is room for one row.
    """
    total, n = 0.0, len(live)
    for r in range(len(states)):
        for v in range(n):
            state[v] = max(states[r, v], 0)
        for v in range(n - 1, -1, -1):  # awake: children come after their parents, so they are drawn by now
            if live[v] and states[r, v] < 0:
                x = _inputs(guess, state, v)
                state[v] = thresholds.draw(SIGMOID, x, uniform[r, 0, v])
                total -= thresholds.log_p(SIGMOID, state[v], x)
        for v in range(n):
            if live[v]:
                x = _inputs(net, state, v)
                total += thresholds.log_p(net.gate[v], state[v], x)
                _learn(net, state, v, x, rate)
        for v in range(n):  # asleep: all variables are drawn from the network
            if live[v]:
                state[v] = thresholds.draw(net.gate[v], _inputs(net, state, v), uniform[r, 1, v])
        for v in range(n):
            if live[v] and states[r, v] < 0:
                _learn(guess, state, v, _inputs(guess, state, v), rate)
    return total
