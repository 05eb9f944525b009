"""The numbers of a conditional distribution: a prior, links and a leak, weights and biases, entries of a table."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from sbnet._types import FloatArray, IndexArray
from sbnet.kernels.codes import NAMES, SIGMOID, TABLE
from sbnet.model.conditional import Family
from sbnet.model.gates import sigma
from sbnet.model.probabilities import thresholds_of


class Number(NamedTuple):
    """A number of the network: what to call it, its value, the largest that it can be, and the family at another.

    A weight, which is no probability, has the derivative of the entries by it, for joint states of the parents.
    """

    title: str
    value: float
    top: float
    changed: Callable[[float], Family]
    derivative: Callable[[IndexArray], FloatArray] | None = None


def numbers_of(family: Family) -> Iterator[Number]:
    """All numbers of a conditional distribution."""
    if family.gate == TABLE:
        yield from _of_table(family)
    elif family.gate == SIGMOID and family.parents:
        yield from _weights(family)
    else:
        yield from _probabilities(family)


def _probabilities(family: Family) -> Iterator[Number]:
    """A prior, or a leak and the links of a noisy-MAX."""
    gate = NAMES[family.gate]

    def biased(p: FloatArray) -> Family:
        return replace(family, bias=thresholds_of(p, gate, family.bias))

    first = family.distribution(np.zeros((1, len(family.parents)), np.int64))[0]
    word = "leak of" if family.parents else "prior of"
    yield from _states_of(f"{word} {family.name}", family.states, first, biased)
    for k, parent in enumerate(family.parents):
        block = family.weights[k]
        for s, own in enumerate(family.parent_states[k][1:]):

            def linked(p: FloatArray, k: int = k, s: int = s) -> Family:
                return _replaced(family, k, (slice(None), s), thresholds_of(p, gate, family.bias))

            cause = parent if block.shape[1] == 1 else f"{parent} = {own}"
            yield from _states_of(f"{cause} → {family.name}", family.states, _alone(block[:, s]), linked)


def _replaced(family: Family, parent: int, where: Any, value: Any) -> Family:
    """A family with other weights of one parent."""
    block = family.weights[parent].copy()
    block[where] = value
    return replace(family, weights=(*family.weights[:parent], block, *family.weights[parent + 1 :]))


def _alone(weight: FloatArray) -> FloatArray:
    """The distribution that one cause of a noisy-MAX alone brings: P(v <= k) = exp(-sum of x_l over l > k)."""
    below = np.append(np.exp(-np.cumsum(weight[::-1])[::-1]), 1.0)
    return np.diff(below, prepend=0.0)


def _states_of(
    title: str, states: tuple[str, ...], p: FloatArray, changed: Callable[[FloatArray], Family]
) -> Iterator[Number]:
    """The probability of each state but the first, which takes up the difference, if there is any."""
    for k in (np.flatnonzero(p[0] + p[1:]) + 1).tolist():

        def at(theta: float, k: int = k) -> Family:
            new = p.copy()
            new[k], new[0] = theta, max(p[0] + p[k] - theta, 0.0)
            return changed(new)

        yield Number(title if len(p) == 2 else f"{title} = {states[k]}", float(p[k]), float(p[0] + p[k]), at)


def _of_table(family: Family) -> Iterator[Number]:
    """Each entry of a table; the others of its row move in proportion."""
    assert family.table is not None
    table = family.table
    for row in itertools.product(*(range(len(states)) for states in family.parent_states)):
        p = table[row]
        pairs = zip(family.parents, family.parent_states, row, strict=True)
        given = ", ".join(f"{parent} = {states[s]}" for parent, states, s in pairs)
        for k in range(1 if len(p) == 2 else 0, len(p)):

            def at(theta: float, p: FloatArray = p, row: tuple[int, ...] = row, k: int = k) -> Family:
                others = p if p[k] < 1.0 else np.ones_like(p)  # a certain state gives to all others alike
                new = others * (1.0 - theta) / (others.sum() - others[k])
                new[k] = theta
                whole = table.copy()
                whole[row] = new
                return replace(family, table=whole)

            title = f"P({family.name} = {family.states[k]}{' | ' * bool(given)}{given})"
            yield Number(title, float(p[k]), 1.0, at)


def _weights(family: Family) -> Iterator[Number]:
    """The biases and weights of a sigmoid unit with parents."""
    for level in range(len(family.bias)):
        of = "" if len(family.bias) == 1 else f" at {family.states[level + 1]}"

        def biased(x: float, level: int = level) -> Family:
            new = family.bias.copy()
            new[level] = x
            return replace(family, bias=new)

        def by_bias(rows: IndexArray, level: int = level) -> FloatArray:
            return _by_input(family, level, rows)

        yield Number(f"bias of {family.name}{of}", float(family.bias[level]), math.nan, biased, by_bias)
        for k, parent in enumerate(family.parents):
            block = family.weights[k]
            for s in range(block.shape[1]):

                def linked(x: float, k: int = k, where: tuple[int, int] = (level, s)) -> Family:
                    return _replaced(family, k, where, x)

                def by_weight(rows: IndexArray, level: int = level, k: int = k, s: int = s) -> FloatArray:
                    return np.where((rows[:, k] == s + 1)[:, None], _by_input(family, level, rows), 0.0)

                cause = parent if block.shape[1] == 1 else f"{parent} = {family.parent_states[k][s + 1]}"
                title = f"weight {cause} → {family.name}{of}"
                yield Number(title, float(block[level, s]), math.nan, linked, by_weight)


def _by_input(family: Family, level: int, rows: IndexArray) -> FloatArray:
    """The derivative of P(v = k | parents) by the input x_l of a threshold: P times a_l(k) - c_l(k) sigma(x_l)."""
    state = np.arange(len(family.states))[None, :]
    sure = sigma(family.inputs(rows)[:, level, None])
    change: FloatArray = family.distribution(rows) * ((state > level) * 1.0 - (state >= level) * sure)
    return change
