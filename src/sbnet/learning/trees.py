"""Rules that tell a binary answer from states of other variables: paths in small boosted trees.

Each tree is fitted to the gradient of the loss of those before it (Friedman 2001), on half of the rows; a rule is the
path to one of its nodes, a conjunction of conditions. Friedman & Popescu (2008) regress the answer on such rules.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np
from scipy.special import expit

from sbnet._types import BoolArray, FloatArray, IndexArray

Rule: TypeAlias = tuple[tuple[int, bool], ...]
"""Features, each with whether it is one, in their order."""

_TREES, _DEPTH, _RATE, _SHARE = 100, 3, 0.1, 0.5
"""How many trees, how deep, how much of each is taken, and the share of rows that it is fitted to."""
_RIDGE, _FEWEST, _LEAST = 1.0, 5.0, 1e-3
"""What half the square of a leaf's value costs; the rows that a node needs; the gain that a split needs."""


@dataclass(frozen=True, eq=False)
class Bins:
    """Rows of states as places in histograms, and how features are read from these.

    Attributes
    ----------
    place : ndarray, rows by variables
        Bins of different variables are different.
    begin : ndarray of int, length variables + 1
        Where the bins of each variable begin.
    feature : ndarray of int
        That of each bin; -1 for none: the first bin of a variable that has increments.
    increment : ndarray of bool
        Is the feature of a bin one in all later bins of the variable too?
    """

    place: IndexArray
    begin: IndexArray
    feature: IndexArray
    increment: BoolArray

    @classmethod
    def of(cls, x: BoolArray, variable: IndexArray, increment: BoolArray) -> Bins:
        """Of features by rows, those of a variable together: increments, or an indicator for each state."""
        places, features, steps, begin = list[IndexArray](), list[int](), list[bool](), [0]
        for u in np.unique(variable):
            own = np.flatnonzero(variable == u)
            step = bool(increment[own[0]])
            places.append(begin[-1] + (x[own].sum(axis=0) if step else x[own].argmax(axis=0)))
            features += [-1, *own.tolist()] if step else own.tolist()
            steps += [step] * (len(own) + step)
            begin.append(len(features))
        return cls(np.column_stack(places), np.array(begin), np.array(features), np.array(steps))

    def sums(self, node: IndexArray, n_nodes: int, values: FloatArray) -> FloatArray:
        """Sums of values over the rows of each node in which the feature of each bin is one: nodes by bins."""
        size, width = int(self.begin[-1]), np.diff(self.begin)
        place = (self.place + (node * size)[:, None]).ravel()
        found = np.bincount(place, weights=np.repeat(values, len(width)), minlength=n_nodes * size)
        found = found.reshape(n_nodes, size)
        above = np.zeros((n_nodes, size + 1))
        above[:, :-1] = np.cumsum(found[:, ::-1], axis=1)[:, ::-1]
        made: FloatArray = np.where(self.increment, above[:, :-1] - above[:, np.repeat(self.begin[1:], width)], found)
        return made


@dataclass(eq=False)
class Boosting:
    """Trees so far: the inputs that they give to rows, and what each rule gained."""

    bins: Bins
    x: BoolArray  # features by rows
    y: FloatArray
    weight: FloatArray
    rng: np.random.Generator
    z: FloatArray = field(init=False)
    gains: dict[Rule, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        yes, no = self.weight @ self.y, self.weight @ (1.0 - self.y)
        self.z = np.full(len(self.y), np.log((yes + 0.5) / (no + 0.5)))

    def grow(self) -> None:
        """One tree more."""
        rows = np.flatnonzero((self.rng.random(len(self.y)) < _SHARE) & (self.weight > 0.0))
        weight, p = self.weight[rows], expit(self.z[rows])
        gradient, curve = weight * (self.y[rows] - p), weight * np.maximum(p * (1.0 - p), 1e-6)
        node, paths = np.zeros(len(self.y), np.int64), list[Rule]([()])
        for _ in range(_DEPTH):
            node, paths = self._split(rows, (gradient, curve, weight), node, paths)
        total, bend = (np.bincount(node[rows], weights=v, minlength=len(paths)) for v in (gradient, curve))
        self.z += _RATE * (total / (bend + _RIDGE))[node]

    def _split(
        self, rows: IndexArray, values: tuple[FloatArray, ...], node: IndexArray, paths: list[Rule]
    ) -> tuple[IndexArray, list[Rule]]:
        """Each node by the feature that gains most, if any does."""
        bins, own, m = replace(self.bins, place=self.bins.place[rows]), node[rows], len(paths)
        g1, h1, n1 = (bins.sums(own, m, v) for v in values)
        g, h, n = (np.bincount(own, weights=v, minlength=m)[:, None] for v in values)
        with np.errstate(divide="ignore", invalid="ignore"):  # rounding may leave less than nothing on one side
            gain = g1**2 / (h1 + _RIDGE) + (g - g1) ** 2 / (h - h1 + _RIDGE) - g**2 / (h + _RIDGE)
        gain[(n1 < _FEWEST) | (n - n1 < _FEWEST) | (bins.feature < 0)] = 0.0
        best = gain.argmax(axis=1)
        fresh, new = list[Rule](), np.empty(len(node), np.int64)
        for k, path in enumerate(paths):
            here, by, feature = node == k, float(gain[k, best[k]]), int(bins.feature[best[k]])
            if by < _LEAST:
                new[here] = len(fresh)
                fresh.append(path)
                continue
            for one in (False, True):
                rule = tuple(sorted({*path, (feature, one)}))
                new[here & (self.x[feature] == one)] = len(fresh)
                fresh.append(rule)
                self.gains[rule] = self.gains.get(rule, 0.0) + by
        return new, fresh


def boosted(bins: Bins, x: BoolArray, y: FloatArray, weight: FloatArray, seed: int) -> dict[Rule, float]:
    """What each rule gained, of trees that tell y from features."""
    found = Boosting(bins, x, y, weight, np.random.default_rng(seed))
    for _ in range(_TREES):
        found.grow()
    return found.gains


def holds(x: BoolArray, rule: Rule) -> BoolArray:
    """The rows in which all conditions of a rule are met."""
    met: BoolArray = np.logical_and.reduce([x[feature] == one for feature, one in rule])
    return met
