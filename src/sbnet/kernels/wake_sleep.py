"""Wake-sleep learning, one complete state after another."""

from __future__ import annotations

from typing import NamedTuple

from sbnet._types import BoolArray, FloatArray, IndexArray, States
from sbnet.kernels.compiling import inner, kernel
from sbnet.kernels.thresholds import sigmoid, softplus


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
