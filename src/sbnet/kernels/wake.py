"""Wake-sleep learning, one row after another (Hinton, Dayan, Frey & Neal 1995)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sbnet._types import BoolArray, FloatArray, Model, States
from sbnet.kernels import gates
from sbnet.kernels._compile import bare, kernel
from sbnet.kernels.gates import SIGMOID


class Recognition(NamedTuple):
    """A factorial guess at the hidden units, R(H | V), from the bottom up: each is a sigmoid unit given its children.

    Attributes
    ----------
    weight : ndarray of shape (n_edges,)
        One number per edge of the network, in its order. An edge with a hidden parent is read backwards, from child to
        parent; one from an observed parent to a hidden child forwards. Edges between observed units have no use: 0.
    bias : ndarray of shape (n_units,)
        One number per unit; 0 for units that are observed or have no observed descendant.
    """

    weight: FloatArray
    bias: FloatArray


@bare
def _input(model: Model, bias: FloatArray, state: States, i: int) -> float:
    """z_i, below eq. (2)."""
    z = bias[i]
    for e in range(model.indptr[i], model.indptr[i + 1]):
        z += model.weight[e] * state[model.parent[e]]
    return z


@bare
def _recognition_input(model: Model, recognition: Recognition, hidden: BoolArray, state: States, j: int) -> float:
    """The same for hidden unit j in the recognition network: from its children and its observed parents."""
    z = recognition.bias[j]
    for c in range(model.child_indptr[j], model.child_indptr[j + 1]):
        z += recognition.weight[model.child_edge[c]] * state[model.child[c]]
    for e in range(model.indptr[j], model.indptr[j + 1]):
        if not hidden[model.parent[e]]:
            z += recognition.weight[e] * state[model.parent[e]]
    return z


@bare
def _wake(
    model: Model,
    bias: FloatArray,
    recognition: Recognition,
    live: BoolArray,
    hidden: BoolArray,
    uniform: FloatArray,
    rate: float,
    state: States,
) -> float:
    """Draw the hidden units from R, and teach the network to make them; returns ln P(H, V) - ln R(H | V) before."""
    total = 0.0
    for j in range(len(state) - 1, -1, -1):  # children come after their parents, so they are drawn by now
        if live[j] and hidden[j]:
            z = _recognition_input(model, recognition, hidden, state, j)
            state[j] = gates.draw(SIGMOID, z, uniform[j])
            total -= gates.log_p(SIGMOID, state[j], z)
    for i in range(len(state)):
        if not live[i]:
            continue
        z = _input(model, bias, state, i)
        total += gates.log_p(model.gate[i], state[i], z)
        step = rate * gates.slope(model.gate[i], float(state[i]), z)
        bias[i] += step
        for e in range(model.indptr[i], model.indptr[i + 1]):
            model.weight[e] += step * state[model.parent[e]]
    return total


@bare
def _sleep(
    model: Model,
    bias: FloatArray,
    recognition: Recognition,
    live: BoolArray,
    hidden: BoolArray,
    uniform: FloatArray,
    rate: float,
    state: States,
) -> None:
    """Dream: draw all units from the network, and teach R to tell the hidden ones."""
    for i in range(len(state)):
        if live[i]:
            state[i] = gates.draw(model.gate[i], _input(model, bias, state, i), uniform[i])
    for j in range(len(state)):
        if not (live[j] and hidden[j]):
            continue
        z = _recognition_input(model, recognition, hidden, state, j)
        step = rate * gates.slope(SIGMOID, float(state[j]), z)
        recognition.bias[j] += step
        for c in range(model.child_indptr[j], model.child_indptr[j + 1]):
            recognition.weight[model.child_edge[c]] += step * state[model.child[c]]
        for e in range(model.indptr[j], model.indptr[j + 1]):
            if not hidden[model.parent[e]]:
                recognition.weight[e] += step * state[model.parent[e]]


@kernel
def wake_sleep_rows(
    model: Model,
    bias: FloatArray,
    recognition: Recognition,
    live: BoolArray,
    states: States,
    uniform: FloatArray,
    rate: float,
) -> float:
    """For each row one step awake and one asleep; weights, biases and `recognition` change in place.

    `uniform` holds two random numbers for each row and unit: rows by 2 by units. Units that are not `live` stay 0, and
    so neither act nor learn. Returns the sum of ln P(H, V) - ln R(H | V) over the rows, each before its step.
    """
    total = 0.0
    hidden = np.zeros(states.shape[1], np.bool_)
    state = np.zeros(states.shape[1], np.int8)
    for r in range(states.shape[0]):
        for i in range(states.shape[1]):
            hidden[i] = states[r, i] < 0
            state[i] = max(states[r, i], 0)
        total += _wake(model, bias, recognition, live, hidden, uniform[r, 0], rate, state)
        _sleep(model, bias, recognition, live, hidden, uniform[r, 1], rate, state)
    return total
