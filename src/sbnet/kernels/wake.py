"""Wake-sleep learning, one row after another (Hinton, Dayan, Frey & Neal 1995).

The network and the recognition network R(H | V) are both regressions of variables on others. In R, these are the
children of a hidden variable and its observed parents.
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
    weight: FloatArray
    bias: FloatArray


def generative(model: Model, bias: FloatArray) -> Regressions:
    """The network itself, with copies of its parameters that may be written to."""
    weight = model.weight.copy(), bias.copy()
    return Regressions(model.indptr, model.parent, model.block, model.n_states, model.threshold, *weight)


def recognition(model: Model, hidden: BoolArray) -> tuple[Regressions, IndexArray]:
    """R, all of it zero, and where each of its weights stands in the network.

    An edge with a hidden parent is read backwards, and its block of weights is turned round with it.
    """
    child = np.repeat(np.arange(len(hidden)), np.diff(model.indptr))
    back, forth = np.flatnonzero(hidden[model.parent]), np.flatnonzero(hidden[child] & ~hidden[model.parent])
    edge, owner = np.concatenate([back, forth]), np.concatenate([model.parent[back], child[forth]])
    order = np.argsort(owner, kind="stable")
    edge, owner, turned = edge[order], owner[order], (order < len(back))
    other = np.where(turned, child[edge], model.parent[edge])
    rows, columns = model.n_states[owner] - 1, model.n_states[other] - 1
    block = np.concatenate([[0], np.cumsum(rows * columns)])
    rows, columns, turned = (np.repeat(values, np.diff(block)) for values in (rows, columns, turned))
    k = np.arange(block[-1]) - np.repeat(block[:-1], np.diff(block))
    place = np.repeat(model.block[edge], np.diff(block)) + np.where(turned, k % columns * rows + k // columns, k)
    ptr = np.searchsorted(owner, np.arange(len(hidden) + 1))
    parameters = np.zeros(block[-1]), np.zeros(model.threshold[-1])
    return Regressions(ptr, other, block, model.n_states, model.threshold, *parameters), place


@inner(fast=True)
def _inputs(net: Regressions, state: States, v: int, x: FloatArray) -> None:
    """x of each threshold of v."""
    ptr, other, block, n_states, weight = net.ptr, net.other, net.block, net.n_states, net.weight
    two = len(weight) == len(other)  # everything that has an edge has two states
    for l in range(len(x)):  # noqa: E741 (the letter of the definition)
        total = net.bias[net.threshold[v] + l]
        for e in range(ptr[v], ptr[v + 1]):
            s = state[other[e]]
            if two:
                total += weight[e] * s
            elif s > 0:
                total += weight[block[e] + l * (n_states[other[e]] - 1) + s - 1]
        x[l] = total


@inner(fast=True)
def _learn(net: Regressions, gate: int, state: States, v: int, x: FloatArray, rate: float) -> None:
    """One step up the gradient of ln P(v | x), which is a_l - c_l t'(x_l) for each threshold: the delta rule."""
    ptr, other, block, n_states, weight = net.ptr, net.other, net.block, net.n_states, net.weight
    two = len(weight) == len(other)
    for l in range(len(x)):  # noqa: E741
        a, c = thresholds.loads(gate, l + 1, state[v])
        step = rate * (a - c * thresholds.dt(gate, x[l]))
        net.bias[net.threshold[v] + l] += step
        for e in range(ptr[v], ptr[v + 1]):
            s = state[other[e]]
            if two:
                weight[e] += step * s
            elif s > 0:
                weight[block[e] + l * (n_states[other[e]] - 1) + s - 1] += step


@kernel
def wake_sleep_rows(
    model: Model, net: Regressions, guess: Regressions, live: BoolArray, states: States, uniform: FloatArray,
    rate: float,
) -> float:  # fmt: skip
    """For each row one step awake and one asleep; the network and R, `guess`, change in place.

    `uniform` holds two random numbers for each row and variable: rows by 2 by variables. Variables that are not `live`
    stay 0, and so neither act nor learn. Returns the sum of ln P(H, V) - ln R(H | V) over the rows, each before its
    step.
    """
    total, n, gate, n_states = 0.0, len(live), model.gate, model.n_states
    state, room = np.zeros(n, np.int8), np.zeros(len(net.bias))
    for r in range(len(states)):
        for v in range(n):
            state[v] = max(states[r, v], 0)
        for v in range(n - 1, -1, -1):  # awake: children come after their parents, so they are drawn by now
            if live[v] and states[r, v] < 0:
                x = room[: n_states[v] - 1]
                _inputs(guess, state, v, x)
                state[v] = thresholds.draw(SIGMOID, x, uniform[r, 0, v])
                total -= thresholds.log_p(SIGMOID, state[v], x)
        for v in range(n):
            if live[v]:
                x = room[: n_states[v] - 1]
                _inputs(net, state, v, x)
                total += thresholds.log_p(gate[v], state[v], x)
                _learn(net, gate[v], state, v, x, rate)
        for v in range(n):  # asleep: all variables are drawn from the network
            if live[v]:
                x = room[: n_states[v] - 1]
                _inputs(net, state, v, x)
                state[v] = thresholds.draw(gate[v], x, uniform[r, 1, v])
        for v in range(n):
            if live[v] and states[r, v] < 0:
                x = room[: n_states[v] - 1]
                _inputs(guess, state, v, x)
                _learn(guess, SIGMOID, state, v, x, rate)
    return total
