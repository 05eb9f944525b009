"""Which unit a table is: a sigmoid of weights that add up, or a product (a noisy-OR or a noisy-AND), and how far off.

A table has a row for every joint state of the parents, in it the probabilities of two states. A fit is relative to one
row: every other state of a parent adds its own number, whatever the others do.

    sigmoid     P(one) = sigma(bias + sum of the numbers of the states that differ from the reference)
    or          P(zero) = exp(-(the same)), numbers not negative: the unit "one" is a noisy-OR unit
    and         P(one) = exp(-(the same)): the unit "zero" is a noisy-OR unit, of whatever keeps "one" away
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import expit

from sbnet._types import FloatArray, IndexArray
from sbnet.model.probabilities import CERTAIN

KINDS = ("sigmoid", "or", "and")
EXACT = 1e-9
"""A difference of probabilities that is rounding: tables are written with some digits, and added up to one."""
_SAME = 1e-14
"""A difference of probabilities of which no fit of all rows can make less."""
_MOST_WORK = 10**9
"""Steps of a fit of all rows, which takes the square of the columns: a larger table is judged by a row's neighbours."""
_POLISHED = 1024
"""Rows of a table, at most, whose nearest unit is looked for by linear programs."""
_LOG_NEVER = -690.0
"""ln of a probability that counts as none: units say e^-1000 where a table says 0."""
_FINITE = 40.0
"""Log-odds that count as certain where an average is taken."""


@dataclass(frozen=True, eq=False)
class Fit:
    """A unit that stands for a table: numbers for states of the parents, by (parent, state), and the largest error."""

    kind: str
    bias: float
    terms: dict[tuple[int, int], float]
    error: float
    nats: float


@dataclass(frozen=True, eq=False)
class Table:
    """The probabilities of states zero and one for all joint states of the parents; the last parent runs fastest."""

    sizes: tuple[int, ...]
    zero: FloatArray
    one: FloatArray

    @cached_property
    def states(self) -> IndexArray:
        """The states of the parents, row by row."""
        return np.indices(self.sizes).reshape(len(self.sizes), len(self.zero)).T

    def columns(self, row: int) -> tuple[list[tuple[int, int]], FloatArray]:
        """The states that differ from those of a row, as (parent, state), and where each is so."""
        states, own = self.states, self.states[row]
        pairs = [(j, s) for j, size in enumerate(self.sizes) for s in range(size) if s != own[j]]
        design = np.array([states[:, j] == s for j, s in pairs], dtype=np.float64).reshape(len(pairs), len(states)).T
        return pairs, design

    def neighbours(self, row: int, pairs: list[tuple[int, int]]) -> list[int]:
        """The rows that differ from a row in one parent, which is in another state there."""
        strides = np.cumprod([1, *reversed(self.sizes[1:])])[::-1] if self.sizes else np.zeros(0, np.int64)
        own = self.states[row]
        return [row + int((s - own[j]) * strides[j]) for j, s in pairs]

    @cached_property
    def log_odds(self) -> FloatArray:
        with np.errstate(divide="ignore"):
            return np.asarray(np.clip(np.log(self.one) - np.log(self.zero), -CERTAIN, CERTAIN))


def _log(p: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore"):
        return np.asarray(np.maximum(np.log(p), _LOG_NEVER))


def first_fits(table: Table, kinds: tuple[str, ...] = KINDS) -> list[Fit]:
    """A unit of each kind, from the reference row and its neighbours or from all rows, whichever is nearer."""
    return [_first(_link(table, kind)) for kind in kinds]


def nearest(table: Table, kinds: tuple[str, ...] = KINDS) -> Fit:
    """The nearest unit of some kinds, by linear programs where there are not too many rows."""
    small = len(table.zero) <= _POLISHED
    links = [_link(table, kind) for kind in kinds]
    return min((link.polished(_first(link)) if small else _first(link) for link in links), key=lambda fit: fit.error)


def _first(link: _Link) -> Fit:
    near = link.judged(link.from_neighbours())
    if near.error <= _SAME or link.design.size * link.design.shape[1] > _MOST_WORK:
        return near
    return min(near, link.judged(link.from_all()), key=lambda fit: fit.error)


def _link(table: Table, kind: str) -> _Link:
    return _Sigmoid(table) if kind == "sigmoid" else _Product(table, kind)


def judge_log_odds(table: Table, x: FloatArray, bias: float, terms: dict[tuple[int, int], float]) -> Fit:
    """A sigmoid fit of which the sums are known, whatever else is in them."""
    return Fit("sigmoid", bias, terms, *_apart(table, np.asarray(expit(-x)), np.asarray(expit(x))))


def _apart(table: Table, zero: FloatArray, one: FloatArray) -> tuple[float, float]:
    """The largest difference of a probability, and of the logarithm of one."""
    error = max(np.abs(one - table.one).max(), np.abs(zero - table.zero).max())
    nats = max(np.abs(_log(one) - _log(table.one)).max(), np.abs(_log(zero) - _log(table.zero)).max())
    return float(error), float(nats)


def from_probes(row: Callable[[FloatArray], tuple[float, float]], n: int) -> Fit | None:
    """The unit that gives rows (zero, one) for states of so many parents that there is no table; None if it is no unit.

    No parent and each alone give the numbers of a sigmoid or noisy-OR unit; pairs, halves and all of them test it.
    """
    rng, eye = np.random.default_rng(0), np.eye(n)
    states = np.concatenate(
        [np.zeros((1, n)), eye, np.ones((1, n)), rng.random((32, n)) < 0.5, eye + np.roll(eye, 1, 0)]
    )
    zero, one = np.array([row(on) for on in states]).T
    table = Table((2,) * n, zero, one)
    for kind, x in (("sigmoid", table.log_odds), ("or", _against(zero))):
        bias, terms = x[0], x[1 : n + 1] - x[0]
        sums = bias + states @ terms
        p = (expit(-sums), expit(sums)) if kind == "sigmoid" else (np.exp(-sums), -np.expm1(-sums))
        error, nats = _apart(table, *p)
        if error <= EXACT and (kind == "sigmoid" or terms.min() >= -EXACT):
            numbers = terms if kind == "sigmoid" else np.maximum(terms, 0.0)
            return Fit(kind, float(bias), {(j, 1): w for j, w in enumerate(numbers.tolist())}, error, nats)
    return None


def _against(p: FloatArray) -> FloatArray:
    """-ln of probabilities, where none is a thousand nats."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.clip(-np.log(p), 0.0, CERTAIN))


class _Link:
    """What the kinds share: a reference row, columns, and how numbers become probabilities. Column 0 is the bias."""

    kind: str
    least: float  # that a number may be

    def __init__(self, table: Table, row: int) -> None:
        self.table, self.row = table, row
        self.pairs, design = table.columns(row)
        self.design = np.column_stack([np.ones(len(table.zero)), design])

    def chance_of_one(self, x: FloatArray) -> FloatArray:
        raise NotImplementedError

    def gradient(self, x: FloatArray) -> FloatArray:
        raise NotImplementedError

    def inputs(self) -> FloatArray:
        """What the sums should be."""
        raise NotImplementedError

    def from_neighbours(self) -> FloatArray:
        """The reference row gives the bias, each row that differs from it in one parent a number."""
        x, near = self.inputs(), self.table.neighbours(self.row, self.pairs)
        numbers = np.concatenate([[x[self.row]], x[near] - x[self.row]])
        return np.asarray(np.maximum(numbers, self.least))

    def from_all(self) -> FloatArray:
        raise NotImplementedError

    def judged(self, theta: FloatArray) -> Fit:
        x = self.design @ theta
        terms = dict(zip(self.pairs, theta[1:].tolist(), strict=True))
        off = _apart(self.table, self.chance_of_zero(x), self.chance_of_one(x))
        return Fit(self.kind, float(theta[0]), terms, *off)

    def chance_of_zero(self, x: FloatArray) -> FloatArray:
        raise NotImplementedError

    def polished(self, fit: Fit) -> Fit:
        """Steps that bring the largest error down, each the best for the gradients at hand (a linear program)."""
        theta, radius = np.array([fit.bias, *fit.terms.values()]), 1.0
        for _ in range(12):
            found = self.judged(self.stepped(theta, radius))
            if found.error < fit.error * (1.0 - 1e-3):
                fit, theta, radius = found, np.array([found.bias, *found.terms.values()]), min(2.0 * radius, 4.0)
            else:
                radius /= 4.0
        return fit

    def stepped(self, theta: FloatArray, radius: float) -> FloatArray:
        from scipy.optimize import linprog  # slow to import, and needed here only

        x = self.design @ theta
        gradients = self.gradient(x)[:, None] * self.design
        gap = (self.table.one - self.chance_of_one(x))[:, None]
        n = len(theta)
        rows = np.block([[gradients, -np.ones_like(gap)], [-gradients, -np.ones_like(gap)]])
        limits = [(max(-radius, self.least - t), radius) for t in theta] + [(0.0, None)]
        cost = np.concatenate([np.zeros(n), [1.0]])
        found = linprog(cost, A_ub=rows, b_ub=np.concatenate([gap, -gap]).ravel(), bounds=limits, method="highs")
        return theta + found.x[:n] if found.x is not None else theta


class _Sigmoid(_Link):
    kind, least = "sigmoid", -np.inf

    def __init__(self, table: Table) -> None:
        x = table.log_odds
        row, on = int(np.argmin(np.abs(x))), x > 0.0
        if abs(x[row]) == CERTAIN:  # of an AND or an OR, which are certain in all rows, the one row unlike the others
            row = int(np.argmax(on if 2 * on.sum() <= len(on) else ~on))
        super().__init__(table, row)

    def inputs(self) -> FloatArray:
        return self.table.log_odds

    def chance_of_one(self, x: FloatArray) -> FloatArray:
        return np.asarray(expit(x))

    def chance_of_zero(self, x: FloatArray) -> FloatArray:
        return np.asarray(expit(-x))

    def gradient(self, x: FloatArray) -> FloatArray:
        return np.asarray(expit(x) * expit(-x))

    def from_all(self) -> FloatArray:
        weight = np.sqrt(self.table.zero * self.table.one) + 1e-9
        wanted = np.clip(self.inputs(), -_FINITE, _FINITE)
        return np.asarray(np.linalg.lstsq(weight[:, None] * self.design, weight * wanted, rcond=None)[0], np.float64)


class _Product(_Link):
    least = 0.0

    def __init__(self, table: Table, kind: str) -> None:
        self.kind = kind
        self.fails = table.zero if kind == "or" else table.one
        super().__init__(table, int(np.argmax(self.fails)))

    def inputs(self) -> FloatArray:
        return _against(self.fails)

    def fail(self, x: FloatArray) -> FloatArray:
        return np.exp(-np.maximum(x, 0.0))

    def work(self, x: FloatArray) -> FloatArray:
        return -np.expm1(-np.maximum(x, 0.0))

    def chance_of_one(self, x: FloatArray) -> FloatArray:
        return self.work(x) if self.kind == "or" else self.fail(x)

    def chance_of_zero(self, x: FloatArray) -> FloatArray:
        return self.fail(x) if self.kind == "or" else self.work(x)

    def gradient(self, x: FloatArray) -> FloatArray:
        return self.fail(x) * (1.0 if self.kind == "or" else -1.0)

    def from_all(self) -> FloatArray:
        from scipy.optimize import nnls  # slow to import, and needed here only

        weight = self.fails + 1e-9
        wanted = np.minimum(self.inputs(), _FINITE)
        found: FloatArray = nnls(weight[:, None] * self.design, weight * wanted)[0]
        return found
