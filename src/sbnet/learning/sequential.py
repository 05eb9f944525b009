"""Autoregressive networks of variables with states: regressions of each on those before it, penalties chosen.

With sequential logits a variable of K states is K - 1 logistic regressions: threshold l has the answer v >= l, in the
rows with v >= l - 1, and other rows have no factor. As parents, ordered states enter by increments [u >= s], others by
indicators [u = s], so that all regressions have one binary design, and :mod:`sbnet.kernels.lasso` solves them. What is
found is a network of variables with states: increments are summed to the weights of states.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import NamedTuple

import numpy as np
from scipy.special import expit, ndtri

from sbnet._types import BoolArray, FloatArray, IndexArray, States
from sbnet.inference.equal_rows import first_equal
from sbnet.kernels.codes import SIGMOID, TABLE
from sbnet.kernels.lasso import Ones, coefficient_t, rows_of
from sbnet.kernels.trees import Trees
from sbnet.learning.regressions import improve, ones_of
from sbnet.learning.trees import Bins, centred, no_loss
from sbnet.model.graph import Graph
from sbnet.model.network import Network
from sbnet.model.states import Tables, offsets

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
_MOST_SLOPES = 150
"""Above that many, slopes give way to weights of features with an L1 penalty."""
_INTERACTIONS, _CELLS, _STEPS, _LEAST = 600, 1 << 20, 16, 0.003
"""Interactions in the conditional of a label, at most, over all its thresholds, and the joint states of all of them;
steps that what one says is rounded to; the standard deviation of that below which it is left out, in nats."""
_NEWTON = 12
"""Steps of a ridge regression, at most."""


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
        The part of the table that a row is held out with; -1 minus that if penalties are not chosen on the row.
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
        """The features of variables with so many states."""
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
    parents: States

    @classmethod
    def of(cls, table: Table, features: Features, v: int) -> Design:
        """The design of a variable: rows that agree in it and in its features become one, with their weight."""
        key = np.concatenate([table.parents[:, :v], table.cells[:, [v]], table.fold[:, None].astype(np.int8)], axis=1)
        seen = np.flatnonzero(table.cells[:, v] >= 0)
        kept, group = np.unique(first_equal(np.ascontiguousarray(key[seen])), return_inverse=True)
        weight = np.bincount(group, weights=table.weight[seen], minlength=len(kept)).astype(np.float64)
        kept = seen[kept]
        x = features.read(table.parents[kept], features.before(v))
        return cls(x, table.cells[kept, v], weight, table.fold[kept], table.parents[kept, :v])

    def in_folds(self) -> Design:
        """The rows that penalties are chosen on."""
        rows = self.fold >= 0
        if rows.all():
            return self
        return Design(self.x[:, rows], self.own[rows], self.weight[rows], self.fold[rows], self.parents[rows])

    def all_in_folds(self) -> Design:
        """With all rows in the folds that they belong to."""
        return replace(self, fold=np.where(self.fold < 0, -1 - self.fold, self.fold))

    def without(self, fold: int) -> Design:
        """The design with no weight for the rows of a fold."""
        return replace(self, weight=np.where(self.fold == fold, 0.0, self.weight))

    def at(self, level: int) -> Level:
        """What a threshold is regressed on: the rows with v >= l - 1."""
        rows = self.own >= level - 1
        return Level(
            ones_of(self.x[:, rows]), (self.own[rows] >= level).astype(float), self.weight[rows], self.fold[rows]
        )


class Level(NamedTuple):
    """What a threshold is regressed on."""

    ones: Ones
    y: FloatArray  # v >= l
    weight: FloatArray
    fold: IndexArray


class Threshold:
    """One regression on features, solved under one penalty after the other, each from the last."""

    def __init__(self, level: Level, tol: float = TOL) -> None:
        ones, y, weight = level[:3]
        self.rows, self.ones = rows_of(y, weight), ones
        self.b = np.zeros(len(ones.begin), coefficient_t)
        yes, no = weight @ y, weight @ (1.0 - y)
        self.tol, self.fixed = float(tol * (yes + no)), min(yes, no) <= 0.0
        self.b["value"][-1] = self.rows.z[:] = np.log((yes + 0.5) / (no + 0.5))

    def solve(self, cost: Cost) -> Threshold:
        """The best coefficients; inputs of all rows, those of weight zero too, are in `rows.z`."""
        if self.fixed:  # an answer that never changes needs no parents
            return self
        self.b["before"], self.b["penalty"][:-1], self.b["ridge"][:-1] = self.b["value"], cost.l1, cost.l2
        improve(self.ones, self.rows, self.b, self.tol)
        return self

    @property
    def coefficients(self) -> FloatArray:
        """The coefficients of the features, then the intercept."""
        found: FloatArray = self.b["value"].copy()
        return found


@dataclass(frozen=True, eq=False)
class Interaction:
    """What two or three variables say together of a threshold: a value for each state of a function of theirs."""

    variables: tuple[int, ...]
    level: int
    state: States  # one axis for each variable
    value: FloatArray
    spread: float  # standard deviation


@dataclass(frozen=True, eq=False)
class Regression:
    """A variable regressed on those before it.

    Attributes
    ----------
    coefficients : ndarray, thresholds by features
        Those of the variables before it, and the intercept.
    cost : Cost
        The penalty that was chosen.
    held_out : float
        Mean ln P of its state in held-out rows.
    interactions : tuple of Interaction
    """

    coefficients: FloatArray
    cost: Cost
    held_out: float
    interactions: tuple[Interaction, ...] = ()


def regress_variable(
    table: Table, features: Features, v: int, costs: Sequence[Cost] = COSTS, *, folds: Sequence[int] = FOLDS
) -> Regression:
    """A variable on those before it, under the penalty that is best by cross-validation, then from all rows."""
    design, levels = Design.of(table, features, v), range(1, int(table.n_states[v]))
    costs = costs if len(design.x) else costs[:1]
    some = design.in_folds()
    losses = _held_out(some, levels, costs, folds)
    cost = costs[int(losses.argmin())]
    total = max(float(some.weight[np.isin(some.fold, folds)].sum()), 1e-300)
    return Regression(_solved(design, levels, costs, cost), cost, -float(losses.min()) / total)


def _solved(design: Design, levels: range, costs: Sequence[Cost], cost: Cost, tol: float = TOL) -> FloatArray:
    """Coefficients under a penalty, from those under one that is stronger."""
    found = []
    for level in levels:
        one = Threshold(design.at(level), tol)
        for before in [c for c in costs[: costs.index(cost)] if c.l2 == 0.0][-1:]:
            one.solve(before)
        found.append(one.solve(cost).coefficients)
    return np.array(found)


def _held_out(design: Design, levels: range, costs: Sequence[Cost], folds: Sequence[int]) -> FloatArray:
    """The loss of rows held out under each penalty."""
    losses = np.zeros(len(costs))
    for level in map(design.at, levels):
        for number in folds:
            out = level.fold == number
            if not out.any():
                continue
            one = Threshold(level._replace(weight=np.where(out, 0.0, level.weight)), NEARLY)
            for k, cost in enumerate(costs):
                z = one.solve(cost).rows.z[out]
                losses[k] += level.weight[out] @ (np.logaddexp(0.0, z) - level.y[out] * z)
    return losses


# --- labels -----------------------------------------------------------------------------------------------------------


def regress_label(table: Table, features: Features, v: int) -> Regression:
    """A label on the variables before it: a straight line in each, and boosted trees of two or four conditions.

    Fitted to the rows without each fold in turn. Held-out rows choose the penalty of the line, whether trees begin at
    it or at no line, how deep they are and their number; what is returned is the mean of the five.
    """
    design, levels = Design.of(table, features, v), range(1, int(table.n_states[v]))
    starts, cost = _starts(design, levels, features)
    design = design.all_in_folds()
    width, ordered = table.n_states[:v], features.increment[np.searchsorted(features.variable, np.arange(v))]
    bins = Bins(design.parents, np.concatenate([[0], np.cumsum(width)]), ordered)
    flat = [lines(design.without(fold), levels, np.empty((0, len(design.x))), 1.0) for fold in FOLDS]
    tried = min((_grown(design, levels, bins, start, 2) for start in (starts, flat)), key=_Grown.least)
    tried = min(tried, _grown(design, levels, bins, tried.starts, 4), key=_Grown.least)
    begun, loss, grown = tried
    best, b, interactions = int(loss.argmin()), np.mean(begun, axis=0), list[Interaction]()
    shares = [_share(own, design.weight, k) for own, k in zip(design.parents.T, width.tolist(), strict=True)]
    for level, trees in zip(levels, grown, strict=True):
        for variables, value in centred(bins.functions(trees, best), shares).items():
            if len(variables) < 2:
                _add(features, b[level - 1], variables, value)
            else:
                interactions.append(_stepped(variables, level, value, shares))
    interactions = sorted((one for one in interactions if one.spread > _LEAST), key=lambda one: -one.spread)
    cells = np.cumsum([one.state.size for one in interactions])
    held_out = -float(loss[best]) / max(float(design.weight.sum()), 1e-300)
    return Regression(b, cost, held_out, tuple(interactions[: min(_INTERACTIONS, int((cells <= _CELLS).sum()))]))


class _Grown(NamedTuple):
    """Where trees begin, the loss of held-out rows after no tree, one, and so on, and the trees: of each threshold
    those of each fold.
    """

    starts: Sequence[FloatArray]
    loss: FloatArray
    trees: list[list[Trees]]

    def least(self) -> float:
        """The loss of held-out rows after the best number of trees."""
        return float(self.loss.min())


def _grown(design: Design, levels: range, bins: Bins, starts: Sequence[FloatArray], depth: int) -> _Grown:
    """Trees of some depth for each threshold, from the rows without each fold."""
    loss, grown = no_loss(), list[list[Trees]]()
    for level in levels:
        rows = design.own >= level - 1
        part, y, weight = bins.of(rows), (design.own[rows] >= level).astype(np.float64), design.weight[rows]
        grown.append([])
        for number, start in enumerate(starts):
            out, z = design.fold[rows] == number, start[level - 1, :-1] @ design.x[:, rows] + start[level - 1, -1]
            weights, seed = (np.where(out, 0.0, weight), np.where(out, weight, 0.0)), len(FOLDS) * level + number
            grown[-1].append(part.boosted(y, *weights, z, depth, seed, loss))
    return _Grown(starts, loss, grown)


def _starts(design: Design, levels: range, features: Features) -> tuple[list[FloatArray], Cost]:
    """Thresholds by features, then the intercept, from the rows outside of each fold; and the penalty."""
    scores, some, every = score_of(features, design), design.in_folds(), design.all_in_folds()
    if len(scores) <= _MOST_SLOPES:
        ridge = _best_ridge(some, levels, scores)
        return [lines(every.without(fold), levels, scores, ridge) for fold in FOLDS], Cost(0.0, ridge)
    cost = COSTS[int(_held_out(some, levels, COSTS, FOLDS).argmin())]
    return [_solved(every.without(fold), levels, COSTS, cost, NEARLY) for fold in FOLDS], cost


def score_of(features: Features, design: Design) -> FloatArray:
    """Slopes by features: what each feature adds to the score of its variable.

    Ordered states have normal scores, the quantiles of a normal distribution at the middle of their shares, so that a
    slope is a straight line in what was cut into states. Of other variables each feature has a slope of its own.
    """
    n, parts = len(design.x), []
    for u in np.unique(features.variable[:n]):
        own = np.flatnonzero(features.variable[:n] == u)
        if not features.increment[own[0]] or len(own) == 1:
            parts.append(np.eye(n)[own])
            continue
        above = design.x[own] @ design.weight / design.weight.sum()  # P(u >= s)
        upper = np.concatenate([[1.0], above, [0.0]])
        middle = np.clip(1.0 - 0.5 * (upper[:-1] + upper[1:]), 1e-4, 1.0 - 1e-4)
        parts.append(np.diff(ndtri(middle))[None, :] @ np.eye(n)[own])
    return np.concatenate([np.empty((0, n)), *parts])


def _best_ridge(design: Design, levels: range, scores: FloatArray) -> float:
    """The penalty of slopes that is best for held-out folds."""
    losses = np.zeros(len(RIDGES))
    for fold in FOLDS:
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


def _share(states: States, weight: FloatArray, n: int) -> FloatArray:
    """The share of the rows that have each state."""
    count = np.bincount(states, weight, n)
    found: FloatArray = count / count.sum()
    return found


def _add(features: Features, b: FloatArray, variables: tuple[int, ...], value: FloatArray) -> None:
    """A value for each state of a variable, or of none, is added to coefficients, of which the intercept is last."""
    own = np.flatnonzero(np.isin(features.variable[: len(b) - 1], variables))
    if not variables:
        b[-1] += value
    elif features.increment[own[0]]:
        b[own], b[-1] = b[own] + np.diff(value), b[-1] + value[0]
    else:
        b[own] += value


def _stepped(variables: tuple[int, ...], level: int, value: FloatArray, shares: Sequence[FloatArray]) -> Interaction:
    """An interaction in a few steps: each has the mean of the values that are rounded to it."""
    low, high, mass = value.min(), value.max(), reduce(np.multiply.outer, [shares[v] for v in variables])
    scale = (_STEPS - 1) / max(high - low, 1e-300)
    _, place = np.unique(np.round((value - low) * scale), return_inverse=True)
    place, weight = place.ravel(), mass.ravel() + 1e-12
    mean = np.bincount(place, weight * value.ravel()) / np.bincount(place, weight)
    state: States = place.reshape(value.shape).astype(np.int8)
    return Interaction(variables, level, state, mean, float(np.sqrt((mass * value**2).sum())))


def network_of(
    features: Features, regressions: Sequence[Regression], names: Sequence[str], states: Sequence[Sequence[str]]
) -> Network:
    """The network of the regressions: parents are the variables before one that have a weight that is not zero.

    An interaction is a variable of its own, a function of two or three, before the label.
    """
    parents, bias, weight = list[list[int]](), list[FloatArray](), [np.empty(0)]
    listed, functions, place = dict[str, tuple[str, ...]](), dict[str, States](), dict[int, int]()

    def append(name: str, own: tuple[str, ...], above: list[int], h: FloatArray) -> int:
        """A variable with its states, parents and biases; its number."""
        listed[name] = own
        parents.append(above)
        bias.append(h)
        return len(bias) - 1

    for v, (name, regression) in enumerate(zip(names, regressions, strict=True)):
        b, n = regression.coefficients, features.before(v)
        h, blocks = b[:, -1].copy(), dict[int, FloatArray]()
        for one in regression.interactions:
            made = " × ".join(names[u] for u in one.variables) + f", {one.level}" * (len(b) > 1)
            while made in names or made in listed:  # a column is called so
                made += "'"
            told = tuple(f"{k}: {x:+.2f}" for k, x in enumerate(one.value))  # what it says of a threshold, in nats
            above = [place[u] for u in one.variables]
            functions[made] = np.transpose(one.state, np.argsort(above))
            block = np.zeros((len(b), len(told) - 1))
            block[one.level - 1] = one.value[1:] - one.value[0]
            blocks[append(made, told, sorted(above), np.zeros(len(told) - 1))] = block
            h[one.level - 1] += one.value[0]
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
            blocks[place[u]] = block
        place[v] = append(name, tuple(map(str, states[v])), sorted(blocks), h)
        weight += [blocks[u].ravel() for u in sorted(blocks)]
    indptr, parent = offsets(np.array([len(own) for own in parents])), [u for own in parents for u in own]
    gate = np.array([TABLE if name in functions else SIGMOID for name in listed], np.int8)
    tables, h = Tables(functions, {name: len(listed[name]) for name in functions}), np.concatenate(bias)
    graph = Graph(indptr, np.array(parent, np.int64))
    return Network(tuple(listed), graph, np.concatenate(weight), h, gate, states=listed, tables=tables)
