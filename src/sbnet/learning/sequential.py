"""Autoregressive networks of variables with states: regressions of each on those before it, penalties chosen.

With sequential logits a variable of K states is K - 1 logistic regressions: threshold l has the answer v >= l, in the
rows with v >= l - 1, and other rows have no factor. As parents, ordered states enter by increments [u >= s], others by
indicators [u = s], so that all regressions have one binary design, and :mod:`sbnet.kernels.lasso` solves them. What is
found is a network of variables with states: increments are summed to the weights of states.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.special import expit, ndtri

from sbnet._types import BoolArray, FloatArray, IndexArray, States
from sbnet.inference.equal_rows import first_equal
from sbnet.kernels.codes import SIGMOID, TABLE
from sbnet.kernels.lasso import Ones, coefficient_t, regress, rows_of
from sbnet.learning.trees import Bins, Rule, boosted, holds
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
RIDGES = (0.3, 3.0, 30.0, 300.0)
"""Ridge penalties that are tried: what half the square of a coefficient costs."""
_MOST_SLOPES = 400
"""Above that many a straight line in each variable is not tried."""
LEAST_GAIN = 5e-4
"""Nats a row that rules must gain."""
_NEWTON = 12
"""Steps of a ridge regression, at most."""
_RULES = 400
"""Rules of a variable, at most: those of its thresholds serve all of them."""


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
    line: FloatArray | None = None  # thresholds by features, then the intercept: the regression begins there

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

    def without(self, fold: int) -> Design:
        """With no weight for the rows of a fold."""
        return replace(self, weight=np.where(self.fold == fold, 0.0, self.weight))

    def with_rules(self, rules: Sequence[Rule]) -> Design:
        """With rules after the features."""
        line = None if self.line is None else np.insert(self.line, [len(self.x)] * len(rules), 0.0, axis=1)
        return replace(self, x=np.concatenate([self.x, *(holds(self.x, rule)[None] for rule in rules)]), line=line)

    def at(self, level: int) -> Level:
        """Of a threshold: the rows with v >= l - 1."""
        rows = self.own >= level - 1
        x, y = self.x[:, rows], (self.own[rows] >= level).astype(np.float64)
        line = None if self.line is None else self.line[level - 1]
        return Level(
            ones_of(x), y, self.weight[rows], self.fold[rows], None if line is None else line[:-1] @ x + line[-1]
        )


class Level(NamedTuple):
    """What a threshold is regressed on."""

    ones: Ones
    y: FloatArray  # v >= l
    weight: FloatArray
    fold: IndexArray
    begin: FloatArray | None  # inputs to begin with


class Threshold:
    """One regression on features, solved under one penalty after the other, each from the last."""

    def __init__(self, level: Level, tol: float = TOL) -> None:
        ones, y, weight = level[:3]
        self.rows, self.ones = rows_of(y, weight), ones
        self.b = np.zeros(len(ones.begin), coefficient_t)
        self.room = np.zeros((2, len(self.b)), np.int64)
        yes, no = weight @ y, weight @ (1.0 - y)
        self.tol, self.fixed = tol * (yes + no), min(yes, no) <= 0.0
        if level.begin is None or self.fixed:
            self.b["value"][-1] = self.rows.z[:] = np.log((yes + 0.5) / (no + 0.5))
        else:
            self.rows.z[:] = level.begin

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


@dataclass(frozen=True, eq=False)
class Regression:
    """A variable regressed on those before it.

    Attributes
    ----------
    coefficients : ndarray, thresholds by features
        Those of the variables before it, of rules, and the intercept.
    rules : tuple of Rule
    cost : Cost
        The penalty that was chosen.
    held_out : float
        Mean ln P of its state in held-out rows.
    """

    coefficients: FloatArray
    rules: tuple[Rule, ...]
    cost: Cost
    held_out: float


def regress_variable(
    table: Table,
    features: Features,
    v: int,
    costs: Sequence[Cost] = COSTS,
    *,
    folds: Sequence[int] = FOLDS,
    rules: bool = False,
) -> Regression:
    """A variable on those before it, under the penalty that is best for held-out folds, then from all rows.

    If there may be rules, the regression may begin with a straight line in each variable that is ordered, and rules of
    boosted trees may be features too: each of the two if the validation log-likelihood improves.
    """
    design, levels = Design.of(table, features, v), range(1, int(table.n_states[v]))
    costs = costs if len(design.x) else costs[:1]
    some, chosen = design.in_folds(), list[Rule]()
    total = max(float(some.weight[np.isin(some.fold, folds)].sum()), 1e-300)
    parts = dict.fromkeys(folds, some)
    losses = _held_out(parts, levels, costs) / total
    scores = score_of(features, design) if rules and len(design.x) else np.empty((0, 0))
    if 0 < len(scores) <= _MOST_SLOPES:
        ridge = _best_ridge(some, levels, scores, folds)
        straight = {fold: replace(some, line=lines(some.without(fold), levels, scores, ridge)) for fold in folds}
        other = _held_out(straight, levels, costs) / total
        if other.min() < losses.min():
            losses, parts = other, straight
            some, design = (replace(rows, line=lines(rows, levels, scores, ridge)) for rows in (some, design))
    cost, loss = costs[int(losses.argmin())], float(losses.min())
    if rules and len(design.x):
        for fold, part in parts.items():  # with rules that the other folds choose
            parts[fold] = part.with_rules(rules_of(part.without(fold), levels, features))
        losses = _held_out(parts, levels, costs) / total
        if losses.min() < loss - LEAST_GAIN:
            chosen, loss = rules_of(some, levels, features), float(losses.min())
            cost, design = costs[int(losses.argmin())], design.with_rules(chosen)
    b = np.array([_solved(design.at(level), costs, cost) for level in levels])
    return Regression(b if design.line is None else b + design.line, tuple(chosen), cost, -loss)


def _solved(level: Level, costs: Sequence[Cost], cost: Cost) -> FloatArray:
    """Coefficients under a penalty, from those under one that is stronger."""
    one = Threshold(level)
    for before in [c for c in costs[: costs.index(cost)] if c.l2 == 0.0][-1:]:
        one.solve(before)
    return one.solve(cost).coefficients


def _held_out(parts: Mapping[int, Design], levels: range, costs: Sequence[Cost]) -> FloatArray:
    """The loss of rows held out under each penalty: of each fold, by the design that goes with it."""
    losses = np.zeros(len(costs))
    for number, design in parts.items():
        for level in map(design.at, levels):
            out = level.fold == number
            if not out.any():
                continue
            one = Threshold(level._replace(weight=np.where(out, 0.0, level.weight)), NEARLY)
            for k, cost in enumerate(costs):
                z = one.solve(cost).rows.z[out]
                losses[k] += level.weight[out] @ (np.logaddexp(0.0, z) - level.y[out] * z)
    return losses


def score_of(features: Features, design: Design) -> FloatArray:
    """Slopes by features: what each feature adds to the score of its variable; nothing if no variable is ordered.

    Ordered states have normal scores, the quantiles of a normal distribution at the middle of their shares, so that a
    slope is a straight line in what was cut into states. Of other variables each feature has a slope of its own.
    """
    n = len(design.x)
    parts, some = [], False
    for u in np.unique(features.variable[:n]):
        own = np.flatnonzero(features.variable[:n] == u)
        if not features.increment[own[0]] or len(own) == 1:
            parts.append(np.eye(n)[own])
            continue
        above = design.x[own] @ design.weight / design.weight.sum()  # P(u >= s)
        upper = np.concatenate([[1.0], above, [0.0]])
        middle = np.clip(1.0 - 0.5 * (upper[:-1] + upper[1:]), 1e-4, 1.0 - 1e-4)
        parts.append(np.diff(ndtri(middle))[None, :] @ np.eye(n)[own])
        some = True
    return np.concatenate(parts) if some else np.empty((0, n))


def _best_ridge(design: Design, levels: range, scores: FloatArray, folds: Sequence[int]) -> float:
    """The penalty of slopes that is best for held-out folds."""
    losses = np.zeros(len(RIDGES))
    for fold in folds:
        rest = design.without(fold)
        for k, ridge in enumerate(RIDGES):
            line = lines(rest, levels, scores, ridge)
            for level in levels:
                out = (design.fold == fold) & (design.own >= level - 1)
                z, y = line[level - 1, :-1] @ design.x[:, out] + line[level - 1, -1], design.own[out] >= level
                losses[k] += design.weight[out] @ (np.logaddexp(0.0, z) - y * z)
    return RIDGES[int(losses.argmin())]


def lines(design: Design, levels: range, scores: FloatArray, ridge: float) -> FloatArray:
    """Thresholds by features, then the intercept: slopes of scores by ridge regression, as weights of features."""
    x = np.concatenate([scores @ design.x, np.ones((1, len(design.own)))])
    lines = np.zeros((len(levels), design.x.shape[0] + 1))
    for level in levels:
        rows = (design.own >= level - 1) & (design.weight > 0.0)
        y, weight, inputs = (design.own[rows] >= level).astype(float), design.weight[rows], x[:, rows]
        b = np.append(np.zeros(len(scores)), np.log((weight @ y + 0.5) / (weight @ (1.0 - y) + 0.5)))
        cost = np.append(np.full(len(scores), ridge), 1e-6)
        for _ in range(_NEWTON):
            p = expit(b @ inputs)
            curve = (inputs * (weight * np.maximum(p * (1.0 - p), 1e-3))) @ inputs.T + np.diag(cost)
            step = np.linalg.solve(curve, inputs @ (weight * (y - p)) - cost * np.append(b[:-1], 0.0))
            b += step
            if np.abs(step).max() < 1e-3:
                break
        lines[level - 1] = np.append(b[:-1] @ scores, b[-1])
    return lines


def rules_of(design: Design, levels: range, features: Features) -> list[Rule]:
    """Of each threshold the rules of two conditions or more that gained most in boosted trees."""
    n = len(design.x)
    bins, found = Bins.of(design.x, features.variable[:n], features.increment[:n]), dict[Rule, None]()
    for level in levels:
        rows = design.own >= level - 1
        part, y = replace(bins, place=bins.place[rows]), (design.own[rows] >= level).astype(np.float64)
        gains = boosted(part, design.x[:, rows], y, design.weight[rows], level)
        some = [rule for rule in gains if len(rule) > 1]
        found |= dict.fromkeys(sorted(some, key=lambda rule: -gains[rule])[: _RULES // len(levels)])
    return list(found)


def network_of(
    features: Features, regressions: Sequence[Regression], names: Sequence[str], states: Sequence[Sequence[str]]
) -> Network:
    """The network of the regressions: parents are the variables before one that have a weight that is not zero.

    A rule is a variable of its own, a function of those that it has conditions on, before the variable that needs it.
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
        """A variable, after the rules that it needs."""
        features, b, n = self.features, regression.coefficients, self.features.before(v)
        extra = dict[int, FloatArray]()
        for k, rule in enumerate(regression.rules):
            if b[:, n + k].any():
                u = self._rule(rule)
                extra[u] = extra.get(u, np.zeros(len(b))) + b[:, n + k]
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

    def _rule(self, rule: Rule) -> int:
        """A variable that is a function: are all conditions met? It is made of two parents at a time."""
        features, met = self.features, dict[int, BoolArray]()
        for f, one in rule:
            u, s = int(features.variable[f]), int(features.state[f])
            state = np.arange(len(self.given[1][u]))
            inside = state >= s if features.increment[f] else state == s
            met[u] = met.get(u, np.ones(len(state), np.bool_)) & (inside == one)
        (u, own), *rest = sorted(met.items(), key=lambda condition: self.place[condition[0]])
        name, found, inside = self._condition(u, own), self.place[u], own
        if not rest:  # an interval of one variable
            return self._function(name, [found], inside)
        for u, own in rest:
            name = f"{name} & {self._condition(u, own)}"
            found = self._function(name, [found, self.place[u]], np.outer(inside, own))
            inside = np.array([False, True])
        return found

    def _function(self, name: str, parents: list[int], table: BoolArray) -> int:
        """A variable that is yes where the table of its parents' states says so."""
        while name in self.given[0]:  # a column is called so
            name += "'"
        if name not in self.tables:
            moved = np.transpose(table, np.argsort(parents))
            self.tables[name] = np.stack([~moved, moved], axis=-1).astype(np.float64)
            self._append(name, ("no", "yes"), sorted(parents), np.zeros(1))
        return self.names.index(name)

    def _condition(self, u: int, inside: BoolArray) -> str:
        """Which states of a variable are meant, in words."""
        name, states, first, last = self.given[0][u], self.given[1][u], int(inside.argmax()), len(inside) - 1
        if inside.sum() == 1:
            return f"{name} = {states[first]}"
        if not self.features.increment[np.searchsorted(self.features.variable, u)]:
            return f"{name} not {', '.join(states[k] for k in np.flatnonzero(~inside).tolist())}"
        if inside[last]:
            return f"{name} >= {states[first]}"
        last -= int(inside[::-1].argmax())
        return f"{name} < {states[last + 1]}" if inside[0] else f"{name} from {states[first]} to {states[last]}"

    def network(self) -> Network:
        """All of them."""
        indptr = np.concatenate([[0], np.cumsum([len(own) for own in self.parents])]).astype(np.int64)
        graph = Graph(indptr, np.array([u for own in self.parents for u in own], np.int64))
        weight, bias = np.concatenate(self.weight), np.concatenate(self.bias)
        gate = np.array([TABLE if name in self.tables else SIGMOID for name in self.names], np.int8)
        return Network(tuple(self.names), graph, weight, bias, gate, states=self.states, tables=self.tables)
