"""Variables with many hidden parents beside tables: the terms of their thresholds as products over parents, in NumPy.

A threshold has <a> <x> - <c> T, as in `kernels.terms`: T >= <t(x)> is made of means of exponentials at some nodes r,
<e^{rx}> = e^{rh} prod_u f_u(r), f_u(r) = sum_s Q_u(s) e^{r J_s}. For a sigmoid variable it is that of eq. (20), with
r = -xi and 1 - xi; for a noisy-OR the sum of exponentials of :mod:`sbnet.quadrature.lobatto`. In one Q_u, T is concave
or straight, so that its tangent in its place cannot lower the bound.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import scipy

from sbnet._types import HIDDEN, FloatArray, IndexArray, States
from sbnet.exact.factors import Family, absorbed
from sbnet.kernels.codes import NOISY_OR, SIGMOID
from sbnet.model import gates
from sbnet.quadrature.lobatto import NODES, NOTHING, UNTIL, WEIGHTS, nodes_for

Q = dict[int, FloatArray]
"""The distribution of each hidden variable."""
_LEAST = 1e-300  # of a mean of exponentials: more of them is a looser bound


class Term(NamedTuple):
    """T of one threshold at some Q; its derivative by each Q_u(s), by the bias and by each weight."""

    value: float
    by_q: FloatArray
    by_bias: float
    by_weight: FloatArray


def _means(power: FloatArray, first: IndexArray, q: FloatArray) -> tuple[FloatArray, FloatArray]:
    """ln <e^{r(x-h)}> at each node; and e^{r J_s} / f_u, nodes by slots.

    From powers r J: there is a slot for each state of each parent, whose slots begin at `first`.
    """
    owner = np.repeat(np.arange(len(first)), np.diff(np.append(first, len(q))))
    top = np.maximum.reduceat(power, first, axis=1)
    e = np.exp(power - top[:, owner])
    f = np.maximum(np.add.reduceat(q * e, first, axis=1), _LEAST)
    return (top + np.log(f)).sum(axis=1), e / f[:, owner]


class _Paper:
    """Eq. (20)."""

    def __init__(self, bias: float, weight: FloatArray, first: IndexArray) -> None:
        self.bias, self.weight, self.first, self.xi = bias, weight, first, 0.5

    def at(self, q: FloatArray, xi: float | None = None) -> Term:
        xi = self.xi if xi is None else xi
        r = np.array([-xi, 1.0 - xi])
        log, ratio = _means(np.multiply.outer(r, self.weight), self.first, q)
        log = log + r * self.bias
        total = float(np.logaddexp(*log))
        share = np.exp(log - total)[:, None] * ratio
        by_weight = q * (xi + r @ share)
        value = xi * (self.bias + float(q @ self.weight)) + total
        return Term(value, xi * self.weight + share.sum(axis=0), float(np.exp(log[1] - total)), by_weight)

    def refine(self, q: FloatArray) -> None:
        """The best xi: T is convex in it."""
        new = scipy.optimize.minimize_scalar(lambda xi: self.at(q, xi).value, bounds=(0, 1), options={"xatol": 1e-8}).x
        self.xi = new if self.at(q, new).value < self.at(q).value else self.xi


class _Series:
    """The sum of exponentials above -ln(1 - e^-x); the node at infinity puts right the state without a cause."""

    def __init__(self, bias: float, weight: FloatArray, first: IndexArray, zero: float) -> None:
        self.bias, self.first, causes = bias, first, weight > NOTHING
        least = float(weight[causes].min(initial=np.inf))
        n = nodes_for(least)
        reach = UNTIL[n - 1] * (least + bias)
        self.nodes, self.tail = NODES[:n], math.exp(-reach) / reach
        self.coefficient = WEIGHTS[:n] * np.exp(-self.nodes * bias)
        self.nothing = zero if bias <= 0.0 else float(gates.rarity(np.array(bias)))  # t of that state
        rest = self.nothing - self.tail - self.coefficient.sum()
        self.coefficient = np.append(self.coefficient, rest)
        power = -np.multiply.outer(self.nodes, np.where(causes, weight, 0.0))
        self.power = np.vstack([power, np.where(causes, -1e4, 0.0)])  # e^-10,000 is 0

    def at(self, q: FloatArray) -> Term:
        log, ratio = _means(self.power, self.first, q)
        mean = np.exp(log)
        part = (self.coefficient * mean)[:, None] * ratio
        slope = float(gates.dt(NOISY_OR, np.array(self.bias))) * mean[-1]
        slope += float((self.nodes * self.coefficient[:-1]) @ (mean[-1] - mean[:-1]))
        by_weight = q * (-self.nodes @ part[:-1])
        return Term(self.tail + float(self.coefficient @ mean), part.sum(axis=0), slope, by_weight)

    def refine(self, q: FloatArray) -> None:
        """There is nothing to choose."""


class Wide:
    """The mean of ln P of a variable given its parents, of which what is observed is put in; bounded from below."""

    def __init__(self, family: Family, row: States, zero: float) -> None:
        self.family, own = family, int(row[family.variable])
        hidden = [k for k, u in enumerate(family.parents) if row[u] == HIDDEN]
        self.parents = tuple(family.parents[k] for k in hidden)
        self.axes = (*self.parents, family.variable) if own == HIDDEN else self.parents
        n = len(family.bias)
        blocks = [np.hstack([np.zeros((n, 1)), np.minimum(family.weights[k], zero)]) for k in hidden]
        sizes = [block.shape[1] for block in blocks]
        first = np.cumsum([0, *sizes[:-1]])
        self.slots = {u: slice(b, b + s) for u, b, s in zip(self.parents, first.tolist(), sizes, strict=True)}
        self.bias, self.weight = np.minimum(absorbed(family, row[None, :])[0], zero), np.hstack(blocks)
        states = np.arange(n + 1) if own == HIDDEN else np.array([own])
        loads = [gates.loads_of_states(family.gate, k + 1, states) for k in range(n)]
        self.a, self.c = np.array([a for a, _ in loads]), np.array([c for _, c in loads])  # thresholds by states
        self.terms: list[_Paper | _Series] = [
            _Paper(h, weight, first) if family.gate == SIGMOID else _Series(max(h, 0.0), weight, first, zero)
            for h, weight in zip(self.bias.tolist(), self.weight, strict=True)
        ]
        self.zeros = family.gate == NOISY_OR and bool((self.bias[self.c.any(axis=1)] <= 0.0).any())

    @property
    def size(self) -> float:
        """What rounding is in proportion to."""
        ranges = sum(np.ptp(self.weight[:, own], axis=1).sum() for own in self.slots.values())
        return float(np.abs(self.bias).sum() + ranges) + 800.0 * len(self.bias)

    def mean(self, q: Q, kept: int | None = None) -> FloatArray:
        """The mean of ln P; or its derivative by Q of one variable, up to a constant: the input of eq. (24)."""
        flat, own = np.concatenate([q[u] for u in self.parents]), self._own(q)
        if kept is None or kept == self.family.variable:
            x, t = self.bias + self.weight @ flat, np.array([term.at(flat).value for term in self.terms])
            by_state: FloatArray = x @ self.a - np.where(self.c.any(axis=1), t, 0.0) @ self.c
            return by_state if kept is not None else by_state @ own
        place, total = self.slots[kept], np.zeros(self.slots[kept].stop - self.slots[kept].start)
        for term, weight, a, c in zip(self.terms, self.weight, self.a @ own, self.c @ own, strict=True):
            total += a * weight[place] - (c * term.at(flat).by_q[place] if c else 0.0)
        return total

    def refine(self, q: Q) -> None:
        """The best parameters of all terms."""
        flat = np.concatenate([q[u] for u in self.parents])
        for term, c in zip(self.terms, self.c, strict=True):
            if c.any():
                term.refine(flat)

    def gradient(self, q: Q) -> tuple[FloatArray, dict[int, FloatArray]]:
        """By the bias of each threshold; and by parent, by its weights, thresholds by all of its states."""
        flat, own = np.concatenate([q[u] for u in self.parents]), self._own(q)
        found = [term.at(flat) for term in self.terms]
        a, c = self.a @ own, self.c @ own
        by_bias = a - c * np.array([term.by_bias for term in found])
        by_weight = np.outer(a, flat) - c[:, None] * np.array([term.by_weight for term in found])
        return by_bias, {u: by_weight[:, place] for u, place in self.slots.items()}

    def _own(self, q: Q) -> FloatArray:
        return q[self.family.variable] if self.family.variable in self.axes else np.ones(1)
