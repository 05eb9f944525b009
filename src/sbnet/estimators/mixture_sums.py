"""Exact likelihoods where every hidden unit is a switch of a column, of which a column may have several.

See :mod:`sbnet.kernels.switches`; with one switch a column, and with roots, :mod:`sbnet.estimators.root_sums` does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from sbnet._types import HIDDEN, BoolArray, FloatArray, IndexArray, Model, States
from sbnet.estimators.root_sums import Summing
from sbnet.inference import BoundGradient, Solution, Status
from sbnet.kernels.gates import SIGMOID
from sbnet.kernels.switches import Climb, Found, Switched, edge_slopes, sum_cells
from sbnet.model.network import Network
from sbnet.questions.reduction import absorb_rows

MOST_SWITCHES, _MOST = 6, 256
"""More of them for one column are left to mean field theory: each doubles the time; and the most rows of a block."""


@dataclass(frozen=True, eq=False)
class Board:
    """Which units are columns; the edges from the switches of each to it, and where they begin."""

    columns: IndexArray
    first: IndexArray
    edge: IndexArray
    switch: IndexArray

    @property
    def most(self) -> int:
        """How many switches a column has at most."""
        return int(np.diff(self.first).max(initial=0))

    def switched(self, model: Model) -> Switched:
        """For the kernels, with the weights of a model."""
        return Switched(self.columns, self.first, self.switch, np.ascontiguousarray(model.weight[self.edge]))


def board_of(network: Network, columns: IndexArray) -> Board | None:
    """How to sum over switches, if all hidden units are some: they have one child, a column, and no hidden parents."""
    graph, hidden = network.graph, np.ones(network.n_units, dtype=np.bool_)
    hidden[columns] = False
    edge = np.flatnonzero(hidden[graph.parent])
    of_column = np.argsort(columns)[np.searchsorted(np.sort(columns), graph.child_of_edge[edge]) % len(columns)]
    once = np.array_equal(np.sort(graph.parent[edge]), np.flatnonzero(hidden))
    count = np.bincount(of_column, minlength=len(columns))
    if not once or hidden[graph.child_of_edge[edge]].any() or count.max(initial=0) > MOST_SWITCHES:
        return None
    if (network.gate != SIGMOID).any():
        return None
    edge = edge[np.argsort(of_column, kind="stable")]
    return Board(columns, np.concatenate([[0], np.cumsum(count)]), edge, graph.parent[edge])


@dataclass(frozen=True, eq=False)
class Switching(Summing):
    """A solver that sums over switches in rows without holes, and leaves other rows to another."""

    plan: Any  # a Board
    rows_at_once = _MOST

    def _summed(
        self, model: Model, bias: FloatArray, states: States, row_weight: FloatArray | None
    ) -> tuple[Solution, BoundGradient | None, BoolArray]:
        """Rows without holes, with a slope if rows have weights; which rows they are comes last."""
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
        return solution, None if row_weight is None else self._climbed(model, rows, climb), done

    def _climbed(self, model: Model, rows: States, climb: Climb) -> BoundGradient:
        weight, by_row = np.zeros(len(model.weight)), np.ascontiguousarray(climb.by_row.T)
        on = np.ascontiguousarray((rows == 1).T.astype(np.float64))
        edge_slopes(model.indptr, model.parent, on, by_row, weight)
        weight[self.plan.edge] = climb.strength
        return BoundGradient(weight, by_row.sum(axis=1))


def switching(network: Network, columns: IndexArray, other: Any) -> Any:
    """The solver for a network: sums where every hidden unit is a switch, another everywhere else."""
    board = board_of(network, columns)
    return other if board is None else Switching(board, other)
