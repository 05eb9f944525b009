"""Autoregressive weights alone: each column regressed on those before it, with a penalty that leaves few parents.

Without hidden units the log-likelihood of a network is a sum of logistic regressions, one for each column, and under a
Laplace prior each of them is convex: :mod:`sbnet.kernels.lasso` solves them one by one. A missing answer leaves its row
out; a missing parent counts as the commoner value of its column. That is the optimum for complete tables, and a start
for others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import scipy.sparse

from sbnet._types import HIDDEN, BoolArray, FloatArray, States
from sbnet.inference.equal_rows import first_equal
from sbnet.kernels.lasso import Ones, Rows, coefficient_t, regress, rows_of
from sbnet.model.graph import Graph
from sbnet.model.network import Network
from sbnet.parallel.blocks import Threads, map_blocks

TOL = 1e-6
"""A regression ends when a step gains less than this for each row, in nats."""
_BLOCKS = 8  # of columns, every eighth in each: a task a column would take half as long again

ColumnPenalty = Callable[[int], FloatArray]
"""The penalty of each parent of a column, which is given by its number: one over the scale of a Laplace prior, or over
the variance of a Gaussian one.
"""


@dataclass(frozen=True, eq=False)
class Design:
    """A table ready to be regressed on itself.

    Attributes
    ----------
    cells : ndarray of int8
        Different rows; columns in which ones are common are turned round, so that ones are rare everywhere.
    weight : ndarray
        How often each of them was there.
    turned : ndarray of bool
        The columns that are turned round.
    ones : Ones
        Where the ones of each column stand.
    first : int
        Columns that are parents only: answers begin here.
    """

    cells: States
    weight: FloatArray
    turned: BoolArray
    ones: Ones
    first: int

    @classmethod
    def of(cls, cells: States, weight: FloatArray, *, first: int = 0) -> Design:
        """The design of a table of 0, 1 and -1 (not observed), with a weight for each row."""
        kept, group = np.unique(first_equal(cells), return_inverse=True)
        total = np.bincount(group, weights=weight, minlength=len(kept)).astype(np.float64)
        cells = cells[kept]
        turned = total @ (cells == 1) > total @ (cells == 0)
        cells = np.where(turned & (cells != HIDDEN), 1 - cells, cells).astype(np.int8)
        return cls(cells, total, turned, ones_of(cells.T == 1), first)

    @property
    def n_answers(self) -> int:
        """Columns that are regressed on those before them."""
        return int(self.cells.shape[1]) - self.first

    def answer(self, k: int) -> tuple[FloatArray, FloatArray]:
        """The states of a column, and the weights of the rows in which they count."""
        own = self.cells[:, self.first + k]
        return (own == 1).astype(np.float64), np.where(own != HIDDEN, self.weight, 0.0)

    def alone(self) -> list[FloatArray]:
        """Coefficients of columns without parents: all zero, but for the logits of the columns' means."""
        found = []
        for k in range(self.n_answers):
            y, weight = self.answer(k)
            ones, zeros = weight @ y, weight @ (1.0 - y)
            found.append(np.append(np.zeros(self.first + k), np.log((ones + 0.5) / (zeros + 0.5))))
        return found


@dataclass(frozen=True, eq=False)
class Regressions:
    """Coefficients of every column: those of the columns before it, then its intercept; in turned columns."""

    design: Design
    coefficients: list[FloatArray] = field(repr=False)

    def weights(self) -> tuple[scipy.sparse.csr_array, FloatArray]:
        """Answers by columns, only what is not zero, and biases; for the table as it was given."""
        first, turned = self.design.first, self.design.turned
        sign = np.where(turned, -1.0, 1.0)
        parents = [np.flatnonzero(c[:-1]) for c in self.coefficients]
        values, bias = [], np.empty(len(parents))
        for k, (c, parent) in enumerate(zip(self.coefficients, parents, strict=True)):
            values.append(sign[first + k] * sign[parent] * c[parent])
            bias[k] = sign[first + k] * (c[-1] + c[parent] @ turned[parent])
        indptr = np.concatenate([[0], np.cumsum([len(p) for p in parents])])
        shape = len(parents), len(turned)
        return scipy.sparse.csr_array((np.concatenate(values), np.concatenate(parents), indptr), shape=shape), bias

    @property
    def n_edges(self) -> int:
        """Coefficients that are not zero."""
        return sum(int(np.count_nonzero(c[:-1])) for c in self.coefficients)


def regress_columns(
    design: Design,
    penalty: ColumnPenalty,
    *,
    ridge: ColumnPenalty | None = None,
    start: Sequence[FloatArray] | None = None,
    threads: int | None = None,
    tol: float = TOL,
    every: int = 1,
) -> Regressions:
    """Every column on those before it, from the coefficients of another penalty or from none; `ridge` is what squares
    cost beside absolute values. With `every` above one, only so many columns are: the others stay as they are.
    """
    coefficients = design.alone() if start is None else list(start)
    columns = range(every // 2, design.n_answers, every)
    blocks = [columns[first::_BLOCKS] for first in range(min(len(columns), _BLOCKS))]
    task = partial(_regress, design, penalty, ridge, coefficients, tol * float(design.weight.sum()))
    for block, found in zip(blocks, map_blocks(task, blocks, executor=Threads(threads)), strict=True):
        for k, coefficient in zip(block, found, strict=True):
            coefficients[k] = coefficient
    return Regressions(design, coefficients)


def _regress(
    design: Design,
    penalty: ColumnPenalty,
    ridge: ColumnPenalty | None,
    start: Sequence[FloatArray],
    tol: float,
    columns: range,
) -> list[FloatArray]:
    found = []
    for k in columns:
        coefficient, (y, weight) = start[k], design.answer(k)
        if weight.any() and 0.0 < weight @ y < weight.sum():  # a column that never changes needs no parents
            coefficient = _regression(design.ones, y, weight, coefficient, penalty(k), ridge and ridge(k), tol)
        found.append(coefficient)
    return found


def _regression(
    ones: Ones,
    y: FloatArray,
    weight: FloatArray,
    start: FloatArray,
    penalty: FloatArray,
    ridge: FloatArray | None,
    tol: float,
) -> FloatArray:
    """The coefficients of one column: those of the columns before it, then the intercept."""
    b = np.zeros(len(start), coefficient_t)
    b["value"], b["penalty"][:-1], b["ridge"][:-1] = start, penalty, 0.0 if ridge is None else ridge
    improve(ones, rows_of(y, weight), b, tol)
    return b["value"].copy()


def improve(ones: Ones, rows: Rows, b: np.ndarray, tol: float) -> None:
    """The best coefficients under the penalties beside them, in place: those that are not zero are in the first set."""
    inside, (working, active) = np.flatnonzero(b["value"][:-1]), np.zeros((2, len(b)), np.int64)
    b["inside"] = 0
    b["inside"][inside], working[: len(inside)] = 1, inside
    regress(ones, rows, b, working, len(inside), active, tol)


def ones_of(is_one: BoolArray) -> Ones:
    """Where features are one, features by rows."""
    column, row = np.nonzero(is_one)
    begin = np.searchsorted(column, np.arange(len(is_one) + 1))
    return Ones(begin, row.astype(np.int32), np.ascontiguousarray(is_one).view(np.int8))


def without_edges(network: Network, edges: BoolArray) -> Network:
    graph, kept = network.graph, ~edges
    counts = np.bincount(graph.child_of_edge[kept], minlength=graph.n_units)
    smaller = Graph(np.concatenate([[0], np.cumsum(counts)]), graph.parent[kept])
    layers = network.layers if network.layers is not None and not edges.any() else None
    return Network(network.names, smaller, network.weight[kept], network.bias, network.gate, layers)
