"""Autoregressive networks of variables with states: regressions of each on those before it, penalties chosen.

With sequential logits a variable of K states is K - 1 logistic regressions: threshold l has the answer v >= l, in the
rows with v >= l - 1, and other rows have no factor. As parents, ordered states enter by increments [u >= s], others by
indicators [u = s], so that all regressions have one binary design, and :mod:`sbnet.kernels.lasso` solves them. What is
found is a network of variables with states: increments are summed to the weights of states.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeAlias

import numpy as np
from scipy.special import expit

from sbnet._types import BoolArray, FloatArray, IndexArray, States
from sbnet.inference.equal_rows import first_equal
from sbnet.kernels.codes import SIGMOID, TABLE
from sbnet.kernels.lasso import Ones, coefficient_t, regress, rows_of
from sbnet.model.graph import Graph
from sbnet.model.network import Network

TOL, NEARLY = 1e-6, 1e-5
"""A regression ends when a step gains less than this for each row, in nats; and as long as penalties are compared."""


class Cost(NamedTuple):
    """What a weight costs: `l1` times its size, and `l2` times half its square."""

    l1: float
    l2: float = 0.0


COSTS = (
    Cost(8.0), Cost(4.0), Cost(2.0), Cost(1.0), Cost(1.0, 1.0), Cost(0.5, 0.5), Cost(0.5), Cost(0.25, 0.25), Cost(0.2),
    Cost(0.1, 1.0), Cost(0.1, 0.3), Cost(0.05, 0.1),
)  # fmt: skip
"""Penalties that are tried, from strong to weak."""
FOLDS = tuple(range(5))
"""Parts of a table that are held out in turn."""
LEAST_GAIN = 5e-4
"""Nats a row that products must gain."""
_FEWEST, _SCORE = 5, 1.0
"""Products that are one in fewer rows, or whose score statistic is smaller, are not taken."""


@dataclass(frozen=True, eq=False)
class Table:
    """Rows of states, in the order in which variables become parents.

    Attributes
    ----------
    parents : ndarray of int8
        Rows by variables, complete.
    cells : ndarray of int8
        The same, but -1 where a state was missing: such rows tell nothing of the variable.
    n_states : ndarray of int
    ordered : ndarray of bool
        Are the states of a variable ordered?
    weight : ndarray
        Of rows.
    fold : ndarray of int
        The part of the table that a row is held out with; -1 if it is not among those that penalties are chosen on.
    """

    parents: States
    cells: States
    n_states: IndexArray
    ordered: BoolArray
    weight: FloatArray
    fold: IndexArray

    def in_folds(self) -> Table:
        """The rows that penalties are chosen on."""
        rows = self.fold >= 0
        return replace(
            self, parents=self.parents[rows], cells=self.cells[rows], weight=self.weight[rows], fold=self.fold[rows]
        )


def ones_of(is_one: BoolArray) -> Ones:
    """Where features are one, features by rows."""
    column, row = np.nonzero(is_one)
    begin = np.searchsorted(column, np.arange(len(is_one) + 1))
    return Ones(begin, row.astype(np.int32), np.ascontiguousarray(is_one).view(np.int8))


@dataclass(frozen=True, eq=False)
class Features:
    """States as binary features, those of a variable after those of the variables before it.

    Ordered states enter by increments; of others each has an indicator.
    """

    variable: IndexArray
    state: IndexArray
    increment: BoolArray

    @classmethod
    def of(cls, n_states: IndexArray, ordered: BoolArray) -> Features:
        """Of variables with so many states."""
        parts = []
        for u, (n, in_order) in enumerate(zip(n_states.tolist(), ordered.tolist(), strict=True)):
            increments = in_order or n == 2
            parts += [(u, s, increments) for s in range(int(increments), n)]
        return cls(*(np.array(part) for part in zip(*parts, strict=True)))

    def before(self, v: int) -> int:
        """How many features the variables before one have."""
        return int(np.searchsorted(self.variable, v))

    def read(self, parents: States, n: int) -> BoolArray:
        """The first n features of rows: features by rows."""
        cells, state = parents.T[self.variable[:n]], self.state[:n, None]
        found: BoolArray = np.where(self.increment[:n, None], cells >= state, cells == state)
        return found


@dataclass(frozen=True, eq=False)
class Design:
    """What a variable is regressed on: different rows in which it is observed, by the features of those before it."""

    x: BoolArray
    own: States
    weight: FloatArray
    fold: IndexArray

    @classmethod
    def of(cls, table: Table, features: Features, v: int) -> Design:
        """Rows that agree in all that counts here become one."""
        key = np.concatenate([table.parents[:, :v], table.cells[:, [v]], table.fold[:, None].astype(np.int8)], axis=1)
        seen = np.flatnonzero(table.cells[:, v] >= 0)
        kept, group = np.unique(first_equal(np.ascontiguousarray(key[seen])), return_inverse=True)
        weight = np.bincount(group, weights=table.weight[seen], minlength=len(kept)).astype(np.float64)
        kept = seen[kept]
        x = features.read(table.parents[kept], features.before(v))
        return cls(x, table.cells[kept, v], weight, table.fold[kept])

    def in_folds(self) -> Design:
        """The rows that are in a fold: those that penalties are chosen on."""
        rows = self.fold >= 0
        return self if rows.all() else Design(self.x[:, rows], self.own[rows], self.weight[rows], self.fold[rows])

    def with_products(self, products: Products) -> Design:
        """With products of features after them."""
        return replace(self, x=np.concatenate([self.x, self.x[products.one] & self.x[products.other]]))

    def at(self, level: int) -> tuple[Ones, FloatArray, FloatArray, IndexArray]:
        """Of a threshold: features, v >= l, weights and folds, of the rows with v >= l - 1."""
        rows = self.own >= level - 1
        return (
            ones_of(self.x[:, rows]),
            (self.own[rows] >= level).astype(np.float64),
            self.weight[rows],
            self.fold[rows],
        )


class Threshold:
    """One regression on features, solved under one penalty after the other, each from the last."""

    def __init__(self, ones: Ones, y: FloatArray, weight: FloatArray, tol: float = TOL) -> None:
        self.rows, self.ones = rows_of(y, weight), ones
        self.b = np.zeros(len(ones.begin), coefficient_t)
        self.room = np.zeros((2, len(self.b)), np.int64)
        yes, no = weight @ y, weight @ (1.0 - y)
        self.tol, self.fixed = tol * (yes + no), min(yes, no) <= 0.0
        self.b["value"][-1] = self.rows.z[:] = np.log((yes + 0.5) / (no + 0.5))

    def solve(self, cost: Cost) -> Threshold:
        """The best coefficients; inputs of all rows, those of weight zero too, are in `rows.z`."""
        if self.fixed:  # an answer that never changes needs no parents
            return self
        b, (working, active) = self.b, self.room
        inside = np.flatnonzero(b["value"][:-1])
        b["before"], b["inside"] = b["value"], 0
        b["penalty"][:-1], b["ridge"][:-1] = cost.l1, cost.l2
        b["inside"][inside], working[: len(inside)] = 1, inside
        regress(self.ones, self.rows, b, working, len(inside), active, self.tol)
        return self

    @property
    def coefficients(self) -> FloatArray:
        """Those of the features, then the intercept."""
        found: FloatArray = self.b["value"].copy()
        return found


@dataclass(frozen=True)
class Products:
    """Pairs of features of different variables whose products are features too."""

    one: IndexArray
    other: IndexArray

    def __len__(self) -> int:
        return len(self.one)


NO_PRODUCTS = Products(np.empty(0, np.int64), np.empty(0, np.int64))


@dataclass(frozen=True, eq=False)
class Regression:
    """A variable regressed on those before it.

    Attributes
    ----------
    coefficients : ndarray, thresholds by features
        Those of the variables before it, of products, and the intercept.
    products : Products
    cost : Cost
        The penalty that was chosen.
    held_out : float
        Mean ln P of its state in held-out rows.
    """

    coefficients: FloatArray
    products: Products
    cost: Cost
    held_out: float


def regress_variable(
    table: Table,
    features: Features,
    v: int,
    costs: Sequence[Cost] = COSTS,
    *,
    folds: Sequence[int] = FOLDS,
    products: int = 0,
) -> Regression:
    """A variable on those before it, under the penalty that is best for held-out folds, then from all rows.

    Up to so many products of features are taken, those with the largest scores given the rest, if the validation
    log-likelihood improves.
    """
    design, levels = Design.of(table, features, v), range(1, int(table.n_states[v]))
    costs = costs if len(design.x) else costs[:1]
    variable, some = features.variable[: len(design.x)], design.in_folds()
    total = max(float(some.weight[np.isin(some.fold, folds)].sum()), 1e-300)
    losses = np.sum([_held_out(some.at(level), costs, folds) for level in levels], axis=0) / total
    cost, loss, chosen = costs[int(losses.argmin())], float(losses.min()), NO_PRODUCTS
    if products and len(design.x):
        losses = _held_out_with_products(some, levels, variable, costs, cost, products, folds) / total
        if losses.min() < loss - LEAST_GAIN:
            chosen, loss = screened(some, levels, variable, cost, products), float(losses.min())
            cost, design = costs[int(losses.argmin())], design.with_products(chosen)
    b = [_solved(design.at(level), costs, cost) for level in levels]
    return Regression(np.array(b), chosen, cost, -loss)


_Level: TypeAlias = tuple[Ones, FloatArray, FloatArray, IndexArray]


def _solved(level: _Level, costs: Sequence[Cost], cost: Cost) -> FloatArray:
    """Coefficients under a penalty, from those under one that is stronger."""
    one = Threshold(*level[:3])
    for before in [c for c in costs[: costs.index(cost)] if c.l2 == 0.0][-1:]:
        one.solve(before)
    return one.solve(cost).coefficients


def _held_out(level: _Level, costs: Sequence[Cost], folds: Sequence[int]) -> FloatArray:
    """The loss of rows held out, fold by fold, under each penalty."""
    (ones, y, weight, fold), losses = level, np.zeros(len(costs))
    for number in folds:
        out = fold == number
        if not out.any():
            continue
        one = Threshold(ones, y, np.where(out, 0.0, weight), NEARLY)
        for k, cost in enumerate(costs):
            z = one.solve(cost).rows.z[out]
            losses[k] += weight[out] @ (np.logaddexp(0.0, z) - y[out] * z)
    return losses


def _held_out_with_products(
    design: Design,
    levels: range,
    variable: IndexArray,
    costs: Sequence[Cost],
    before: Cost,
    most: int,
    folds: Sequence[int],
) -> FloatArray:
    """The same, with products that the other folds choose."""
    losses = np.zeros(len(costs))
    for fold in folds:
        rest = replace(design, weight=np.where(design.fold == fold, 0.0, design.weight))
        more = design.with_products(screened(rest, levels, variable, before, most))
        losses += np.sum([_held_out(more.at(level), costs, [fold]) for level in levels], axis=0)
    return losses


def screened(design: Design, levels: range, variable: IndexArray, cost: Cost, most: int) -> Products:
    """The products that would improve a regression most: those with the largest score statistics."""
    x = design.x.astype(np.float64)
    best = np.zeros((len(x), len(x)))
    for level in levels:
        ones, y, weight, _ = design.at(level)
        p, own = expit(Threshold(ones, y, weight, NEARLY).solve(cost).rows.z), x[:, design.own >= level - 1]
        gradient = (own * (weight * (y - p))) @ own.T
        curve = (own * (weight * np.maximum(p * (1.0 - p), 1e-6))) @ own.T
        best = np.maximum(best, np.abs(gradient) / np.sqrt(curve + 1e-3))
    both = (x * (design.weight > 0.0)) @ x.T  # rows in which a product is one
    alone = np.diag(both)
    trivial = (both < _FEWEST) | (both >= alone[:, None]) | (both >= alone)
    best[trivial | (variable[:, None] >= variable)] = 0.0
    place = np.argsort(-best, axis=None, kind="stable")[:most]
    place = place[best.ravel()[place] > _SCORE]
    return Products(*np.unravel_index(place, best.shape))


def network_of(
    features: Features, regressions: Sequence[Regression], names: Sequence[str], states: Sequence[Sequence[str]]
) -> Network:
    """The network of the regressions: parents are the variables before one that have a weight that is not zero.

    A product is a variable of its own, a function of the two that it multiplies, before the variable that needs it.
    """
    made = _Builder(features, names, states)
    for v, regression in enumerate(regressions):
        made.add(v, regression)
    return made.network()


class _Builder:
    """Variables one after the other."""

    def __init__(self, features: Features, names: Sequence[str], states: Sequence[Sequence[str]]) -> None:
        self.features, self.given = features, (names, states)
        self.names: list[str] = []
        self.parents: list[list[int]] = []
        self.weight: list[FloatArray] = [np.empty(0)]
        self.bias: list[FloatArray] = []
        self.states: dict[str, tuple[str, ...]] = {}
        self.tables: dict[str, FloatArray] = {}
        self.place: dict[int, int] = {}

    def add(self, v: int, regression: Regression) -> None:
        """A variable, after the products that it needs."""
        features, b, n = self.features, regression.coefficients, self.features.before(v)
        products = [k for k in range(len(regression.products)) if b[:, n + k].any()]
        extra = {self._product(regression.products, k): b[:, n + k] for k in products}
        h, blocks = b[:, -1].copy(), {}
        for u in range(v):
            here = np.flatnonzero(features.variable[:n] == u)
            block = b[:, here]
            if not block.any():
                continue
            if features.increment[here[0]]:
                block = np.cumsum(block, axis=1)
            else:
                h += block[:, 0]
                block = block[:, 1:] - block[:, :1]
            blocks[self.place[u]] = block
        blocks |= extra
        name = self.given[0][v]
        self.place[v] = len(self.names)
        self._append(name, tuple(map(str, self.given[1][v])), sorted(blocks), h)
        self.weight += [blocks[u].ravel() for u in sorted(blocks)]

    def _append(self, name: str, states: tuple[str, ...], parents: list[int], bias: FloatArray) -> None:
        self.names.append(name)
        self.states[name] = states
        self.parents.append(parents)
        self.bias.append(bias)

    def _product(self, products: Products, k: int) -> int:
        """A variable that is a function: is each of two others in certain states?"""
        features = sorted((int(products.one[k]), int(products.other[k])), key=self._place_of)
        names, parents, inside = [], [], []
        for f in features:
            u, s, step = int(self.features.variable[f]), int(self.features.state[f]), bool(self.features.increment[f])
            n = len(self.given[1][u])
            names.append(f"{self.given[0][u]} {'>=' if step and n > 2 else '='} {self.given[1][u][s]}")
            parents.append(self.place[u])
            inside.append(np.arange(n) >= s if step else np.arange(n) == s)
        table = np.outer(*inside)
        name = " & ".join(names)
        if name not in self.states:
            self.tables[name] = np.stack([~table, table], axis=-1).astype(np.float64)
            self._append(name, ("no", "yes"), parents, np.zeros(1))
        return self.names.index(name)

    def _place_of(self, feature: int) -> int:
        return self.place[int(self.features.variable[feature])]

    def network(self) -> Network:
        """All of them."""
        indptr = np.concatenate([[0], np.cumsum([len(own) for own in self.parents])]).astype(np.int64)
        graph = Graph(indptr, np.array([u for own in self.parents for u in own], np.int64))
        weight, bias = np.concatenate(self.weight), np.concatenate(self.bias)
        gate = np.array([TABLE if name in self.tables else SIGMOID for name in self.names], np.int8)
        return Network(tuple(self.names), graph, weight, bias, gate, states=self.states, tables=self.tables)
