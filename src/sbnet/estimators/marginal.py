"""Solvers that marginalise latent variables exactly, where they are few shared ones and mixtures of columns.

Mean field theory pretends that hidden units are independent, given a row, and learning with it gives up on hidden units
whose posteriors are not. A sum over their states pretends nothing: what is learned is better, and what is scored is the
likelihood itself, whatever the starting point. See :mod:`sbnet.kernels.roots` for shared latent variables with at most
one mixture variable a column, and :mod:`sbnet.kernels.switches` for several of these and no shared ones.
"""

from __future__ import annotations

from concurrent.futures import Executor
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse
from scipy.special import expit

from sbnet._types import HIDDEN, BoolArray, FloatArray, IndexArray, Model, States
from sbnet.bounds.margins import UNIT, scale
from sbnet.inference import BoundGradient, DifferentiableSolver, Solution, Status
from sbnet.inference.solvers.particles import average, seeds_of_rows
from sbnet.kernels.codes import SIGMOID
from sbnet.kernels.holes import filter_rows
from sbnet.kernels.root_slots import Answer, Edges, Slots, Task
from sbnet.kernels.roots import sum_rows
from sbnet.kernels.switches import Climb, Found, Switched, edge_slopes, sum_cells
from sbnet.model.network import Network
from sbnet.parallel.blocks import Block, RowBlocks, join, map_blocks
from sbnet.questions.reduction import absorb_rows

MOST_SHARED = 10
"""More of them are left to mean field theory: each doubles the time."""
MOST_MIXTURES, _MOST = 6, 256
"""More of them for one column are left to mean field theory: each doubles the time; and the most rows of a block."""
_SLIGHT, _NOTHING = 1e-5, 1e-12
"""Shares of states in a row that do not count: while learning, and in means."""
_DEAR, _FEW, _MANY = 150_000, 50, 200
"""Slots times states from which threads are worth it for few rows; and rows that are few and many."""


@dataclass(frozen=True, eq=False)
class Plan:
    """The slots that columns and their mixture variables have; the states of the shared latent variables, variables by
    states; and hidden units of no use.
    """

    slots: Slots
    states: FloatArray
    idle: IndexArray

    @property
    def switches(self) -> IndexArray:
        """Their units, in the order of their slots."""
        first = self.slots.plain + self.slots.mixed
        found: IndexArray = self.slots.unit[first : first + len(self.slots.edge)]
        return found


def plan_of(network: Network, columns: IndexArray) -> Plan | None:
    """How to sum over the hidden units of a network, if few are shared, and a column has at most one mixture variable.

    A hidden unit without parents and with one child is a mixture variable; one without children is neither.
    """
    n, graph = network.n_units, network.graph
    fan_in, fan_out = np.diff(graph.indptr), np.bincount(graph.parent, minlength=network.n_units)
    hidden: BoolArray = np.ones(n, dtype=np.bool_)
    hidden[columns] = False
    inner = hidden & (fan_in > 0) & (fan_out > 0)
    edge_of, several = _only_children(network, inner, hidden)
    for i in np.flatnonzero(hidden & (fan_in == 0) & (fan_out == 1)):
        down = graph.child_edge[graph.child_indptr[i]]
        if not hidden[graph.child_of_edge[down]] and edge_of[graph.child_of_edge[down]] < 0:
            edge_of[graph.child_of_edge[down]], inner[i] = down, True
    roots = np.flatnonzero(hidden & (fan_out > 0) & ~inner)
    if len(roots) > MOST_SHARED or several or (network.gate != SIGMOID).any():
        return None
    root = np.full(n, -1)
    root[roots] = np.arange(len(roots))
    mixed = columns[edge_of[columns] >= 0]
    edge = edge_of[mixed]
    parts = [_filled(units) for units in (columns[edge_of[columns] < 0], mixed, graph.parent[edge])]
    slots = Slots(np.concatenate(parts), edge, len(parts[0]), len(parts[1]), roots, root)
    states = ((np.arange(2 ** len(roots)) >> np.arange(len(roots))[:, None]) & 1).astype(np.float64)
    return Plan(slots, states, np.flatnonzero(hidden & (fan_out == 0)))


def _filled(units: IndexArray) -> IndexArray:
    """Up to a multiple of eight."""
    return np.concatenate([units, np.full(-len(units) % 8, -1)]).astype(np.int64)


def _only_children(network: Network, inner: BoolArray, hidden: BoolArray) -> tuple[IndexArray, bool]:
    """For each unit the edge from its mixture variable, or -1; has one of these several children, or a hidden one?"""
    n, graph = network.n_units, network.graph
    down = np.flatnonzero(inner[graph.parent])
    child = graph.child_of_edge[down]
    counts = np.bincount(graph.parent[down], minlength=n), np.bincount(child, minlength=n)
    several = any(count.max(initial=0) > 1 for count in counts) or bool(hidden[child].any())
    edge = np.full(n, -1)
    edge[child] = down
    return edge, several


@dataclass(frozen=True, eq=False)
class SharedLatents:
    """A solver that marginalises hidden units in rows without missing values, and leaves other rows to another."""

    plan: Plan = field(repr=False)
    other: DifferentiableSolver

    @property
    def rows_at_once(self) -> int:
        """To start a thread takes longer than some rows of narrow tables."""
        return _FEW if len(self.plan.slots.unit) * self.plan.states.shape[1] > _DEAR else _MANY

    def solve(self, network: Network, states: States, *, start: FloatArray | None, trace: bool) -> Solution:
        """The likelihood of each row, less what rounding may have added."""
        if trace:
            return self.other.solve(network, states, start=start, trace=trace)
        found, _, done = self._summed(network.model, network.bias, states, None)
        found.bound[:] -= margin(network)
        if done.all():
            return found
        rest = self.other.solve(network, states[~done], start=None if start is None else start[~done], trace=False)
        return _both(found, rest, done)

    def maximise(
        self,
        model: Model,
        bias: FloatArray,
        states: States,
        start: FloatArray | None,
        *,
        row_weight: FloatArray | None = None,
        trace: bool = False,
    ) -> tuple[Solution, BoundGradient | None]:
        """The likelihood of each row, and the gradient of their weighted sum."""
        if trace:
            return self.other.maximise(model, bias, states, start, row_weight=row_weight, trace=trace)
        found, gradient, done = self._summed(model, bias, states, row_weight)
        if not done.all():
            point, weight = None if start is None else start[~done], None if row_weight is None else row_weight[~done]
            rest, more = self.other.maximise(model, bias, states[~done], point, row_weight=weight)
            found = _both(found, rest, done)
            if gradient is not None and more is not None:
                gradient = BoundGradient(gradient.weight + more.weight, gradient.bias + more.bias)
        return found, gradient

    def _summed(
        self, model: Model, bias: FloatArray, states: States, row_weight: FloatArray | None
    ) -> tuple[Solution, BoundGradient | None, BoolArray]:
        """Rows without holes, with a gradient if rows have weights; which rows they are comes last."""
        plan, n, differentiates = self.plan, len(states), row_weight is not None
        weight = np.ones(n) if row_weight is None else np.ascontiguousarray(row_weight)
        gradient = BoundGradient(np.zeros(len(model.weight)), np.zeros(len(bias)))
        answer = Answer(
            np.empty(n), np.zeros((n, plan.states.shape[1])), np.zeros((n, len(plan.slots.edge))), gradient.weight,
            gradient.bias,
        )  # fmt: skip
        task = Task(np.ascontiguousarray(states), weight, _SLIGHT if differentiates else _NOTHING, differentiates)
        sum_rows(plan.slots, Edges(model.indptr, model.parent, model.weight, bias), task, answer)
        means = states.astype(np.float64)
        means[:, plan.slots.roots] = _shared_means(answer.share, len(plan.slots.roots))
        means[:, plan.switches] = answer.switch
        if len(plan.idle):
            means[:, plan.idle] = self._idle(model, bias, states, answer.share)
        found = Solution(answer.log_p, means, np.full(n, Status.CONVERGED.code), np.zeros(n, np.int64))
        return found, gradient if differentiates else None, np.isfinite(answer.log_p)

    def _idle(self, model: Model, bias: FloatArray, states: States, share: FloatArray) -> FloatArray:
        """The means of units that nothing depends on."""
        plan = self.plan
        rows = scipy.sparse.csr_array((model.weight, model.parent, model.indptr), shape=2 * (len(bias),))[plan.idle]
        observed = absorb_rows(model, bias, states)[:, plan.idle]
        above = rows[:, plan.slots.roots] @ plan.states
        found = [(share * expit(z[:, None] + w)).sum(axis=1) for z, w in zip(observed.T, above, strict=True)]
        return np.stack(found, axis=1)


def _shared_means(share: FloatArray, n: int) -> FloatArray:
    """The probability of each shared variable, from those of their joint states: the last one is the highest bit.

    Row by row: the rounding of a product of matrices would depend on how many rows are asked for at once.
    """
    means = np.empty((len(share), n))
    for k in reversed(range(n)):
        off, on = share[:, : 2**k], share[:, 2**k :]
        means[:, k], share = on.sum(axis=1), off + on
    return means


def margin(network: Network) -> float:
    """How far rounding can raise a sum, generously: a factor is wrong by what its input is, a logarithm by its size."""
    sizes = scale(network)
    total = float(sizes.size.sum())
    own = float(sizes.size @ (4.0 * sizes.parents + 50.0))
    return UNIT * (own + 8.0 * (len(sizes.size) + 50.0) * total + 2.0 ** (MOST_SHARED + 3))


def _both(found: Solution, rest: Solution, done: BoolArray) -> Solution:
    """One solution of rows that were summed and rows that were not."""
    bound, means, status, sweeps = found.bound, found.means, found.status, found.sweeps
    bound[~done], means[~done], status[~done], sweeps[~done] = rest.bound, rest.means, rest.status, rest.sweeps
    return found


@dataclass(frozen=True, eq=False)
class Board:
    """Which units are columns; the edges from the mixture variables of each to it, and where they begin."""

    columns: IndexArray
    first: IndexArray
    edge: IndexArray
    switch: IndexArray

    @property
    def most(self) -> int:
        """How many mixture variables a column has at most."""
        return int(np.diff(self.first).max(initial=0))

    def switched(self, model: Model) -> Switched:
        """For the kernels, with the weights of a model."""
        return Switched(self.columns, self.first, self.switch, np.ascontiguousarray(model.weight[self.edge]))


def board_of(network: Network, columns: IndexArray) -> Board | None:
    """How to marginalise, if all hidden units are mixture variables: with one child, a column, and no hidden parent."""
    graph, hidden = network.graph, np.ones(network.n_units, dtype=np.bool_)
    hidden[columns] = False
    edge = np.flatnonzero(hidden[graph.parent])
    of_column = np.argsort(columns)[np.searchsorted(np.sort(columns), graph.child_of_edge[edge]) % len(columns)]
    once = np.array_equal(np.sort(graph.parent[edge]), np.flatnonzero(hidden))
    count = np.bincount(of_column, minlength=len(columns))
    if not once or hidden[graph.child_of_edge[edge]].any() or count.max(initial=0) > MOST_MIXTURES:
        return None
    if (network.gate != SIGMOID).any():
        return None
    edge = edge[np.argsort(of_column, kind="stable")]
    return Board(columns, np.concatenate([[0], np.cumsum(count)]), edge, graph.parent[edge])


@dataclass(frozen=True, eq=False)
class ColumnMixtures(SharedLatents):
    """A solver that marginalises mixture variables in rows without missing values, and leaves other rows to another."""

    plan: Any  # a Board
    rows_at_once = _MOST

    def _summed(
        self, model: Model, bias: FloatArray, states: States, row_weight: FloatArray | None
    ) -> tuple[Solution, BoundGradient | None, BoolArray]:
        """Rows without holes, with a gradient if rows have weights; which rows they are comes last."""
        board, n = self.plan, len(states)
        whole: BoolArray = (states[:, board.columns] != HIDDEN).all(axis=1)
        rows = states if whole.all() else states[whole]
        inputs, width = absorb_rows(model, bias, rows), len(board.edge)
        found = Found(np.empty(len(rows)), np.zeros((len(rows), width)))
        weight = np.ones(len(rows)) if row_weight is None else np.ascontiguousarray(row_weight[whole])
        climb = Climb(weight, np.zeros(inputs.shape), np.zeros(width))
        sum_cells(board.switched(model), board.most, inputs, rows, found, climb)
        done = whole.copy()
        done[whole] = np.isfinite(found.log_p)
        bound, means = np.full(n, np.nan), states.astype(np.float64)
        bound[whole] = found.log_p
        means[np.ix_(whole, board.switch)] = found.on
        solution = Solution(bound, means, np.full(n, Status.CONVERGED.code), np.zeros(n, np.int64))
        return solution, None if row_weight is None else self._gradient(model, rows, climb), done

    def _gradient(self, model: Model, rows: States, climb: Climb) -> BoundGradient:
        weight, by_row = np.zeros(len(model.weight)), np.ascontiguousarray(climb.by_row.T)
        on = np.ascontiguousarray((rows == 1).T.astype(np.float64))
        edge_slopes(model.indptr, model.parent, on, by_row, weight)
        weight[self.plan.edge] = climb.strength
        return BoundGradient(weight, by_row.sum(axis=1))


def marginalising(network: Network, columns: IndexArray, other: Any) -> Any:
    """The solver for a network: exact where all latent variables can be marginalised, another everywhere else."""
    plan = plan_of(network, columns)
    if plan is not None:
        return SharedLatents(plan, with_column_mixtures(network, columns, other))
    return with_column_mixtures(network, columns, other)


def with_column_mixtures(network: Network, columns: IndexArray, other: Any) -> Any:
    """The solver where every hidden unit is a mixture variable of a column, of which it may have several."""
    board = board_of(network, columns)
    return other if board is None else ColumnMixtures(board, other)


def estimates(network: Network, states: States, columns: IndexArray, number: int, executor: Executor) -> FloatArray:
    """Estimates of ln P of rows with missing values, each from so many particles; those of P are right in the mean."""
    board = board_of(network, np.sort(columns))
    if board is None:
        return average(network, states, number=number, executor=executor).log_p
    blocks = RowBlocks(states, seeds_of_rows(0, states), most=_MOST)
    parts = map_blocks(partial(_estimated, network, board, number), blocks, executor=executor)
    found: FloatArray = join(parts, np.zeros(0))
    return found


def _estimated(network: Network, board: Board, number: int, block: Block) -> FloatArray:
    states, seeds = block.columns
    log_p = np.empty(len(states))
    bias = absorb_rows(network.model, network.bias, states)
    filter_rows(network.model, board.switched(network.model), board.most, states, bias, seeds, number, log_p)
    return log_p
