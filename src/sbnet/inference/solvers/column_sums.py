"""Latent variables marginalised exactly, where they are few shared ones and mixture variables of columns.

Mean field theory pretends that latent variables are independent, given a row, and learning with it gives up on those
whose posteriors are not. A sum over their states pretends nothing: what is learned is better, and what is scored is the
likelihood itself, whatever the starting point. See :mod:`sbnet.kernels.columns`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse
from scipy.special import expit

from sbnet._types import HIDDEN, BoolArray, FloatArray, IndexArray, Model, States
from sbnet.bounds.margins import UNIT, scale
from sbnet.inference.solution import Solution, Status
from sbnet.inference.solvers.protocol import BoundGradient, DifferentiableSolver
from sbnet.kernels.column_records import Answer, Columns, Task, edge_t, feature_t, group_t, slot_t
from sbnet.kernels.columns import marginalise
from sbnet.kernels.gates import SIGMOID
from sbnet.kernels.structs import LANES
from sbnet.model.network import Network
from sbnet.questions.reduction import absorb_rows

MOST_SHARED, MOST_MIXTURES, _MOST = 10, 6, 11
"""More shared latent variables, mixture variables of a column, or both, are left to another solver: each doubles the
time.
"""
_SLIGHT, _NOTHING = 1e-5, 1e-12
"""Shares of states in a row that do not count: while learning, and in means."""
_DEAR, _FEW, _MANY = 150_000, 48, 208
"""Slots times states from which threads are worth it for few rows; and rows that are few and many."""


@dataclass(frozen=True, eq=False)
class Plan:
    """How to marginalise.

    `shared` latent variables; `idle` hidden variables, on which nothing depends; and `slots`, as the kernels read them.
    """

    columns: IndexArray
    shared: IndexArray
    idle: IndexArray
    slots: Columns

    @property
    def n_states(self) -> int:
        """Joint states of the shared latent variables."""
        return int(2 ** len(self.shared))

    @property
    def mixture_slots(self) -> IndexArray:
        """Where mixture variables stand."""
        return np.flatnonzero(self.slots.slots["strength"] >= 0)


def plan_of(network: Network, columns: IndexArray) -> Plan | None:
    """How to marginalise all hidden variables of a network, or None if that takes too long.

    A mixture variable has one child, a column. Other hidden variables with children are shared, and have no parents.
    """
    n, graph = network.n_units, network.graph
    fan_in, fan_out = np.diff(graph.indptr), np.bincount(graph.parent, minlength=n)
    hidden: BoolArray = np.ones(n, dtype=np.bool_)
    hidden[columns] = False
    edge = np.flatnonzero((hidden & (fan_out == 1))[graph.parent] & ~hidden[graph.child_of_edge])
    mixture: BoolArray = np.zeros(n, dtype=np.bool_)
    mixture[graph.parent[edge]] = True
    number = np.full(n, -1)
    number[columns] = np.arange(len(columns))
    of_column = number[graph.child_of_edge[edge]]
    edge = edge[np.argsort(of_column, kind="stable")]
    count = np.bincount(of_column, minlength=len(columns))
    shared, most = np.flatnonzero(hidden & (fan_out > 0) & ~mixture), int(count.max(initial=0))
    if len(shared) > MOST_SHARED or most > MOST_MIXTURES or len(shared) + most > _MOST:
        return None
    if fan_in[shared].any() or (network.gate != SIGMOID).any():
        return None
    first = np.concatenate([[0], np.cumsum(count)])
    number[shared] = np.arange(len(shared))
    slots = _slots(network, columns, first, edge, number, hidden)
    return Plan(columns, shared, np.flatnonzero(hidden & (fan_out == 0)), Columns(*slots, shared))


def _slots(
    network: Network, columns: IndexArray, first: IndexArray, edge: IndexArray, number: IndexArray, hidden: BoolArray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Groups, slots, edges and features: see :mod:`sbnet.kernels.columns`."""
    graph, count = network.graph, np.diff(first)
    kinds = np.unique(count)
    groups, parts, begin = np.zeros(len(kinds), group_t), [], 0
    for group, mixtures in zip(groups, kinds, strict=True):
        own = np.flatnonzero(count == mixtures)
        width = len(own) + -len(own) % LANES
        group["first"], group["width"], group["columns"], group["mixtures"] = begin, width, len(own), mixtures
        part = np.full((1 + mixtures, width, 2), -1)
        part[0, : len(own), 0] = columns[own]
        part[1:, : len(own), 1] = edge[first[own] + np.arange(mixtures)[:, None]]
        part[1:, : len(own), 0] = graph.parent[part[1:, : len(own), 1]]
        parts.append(part.reshape(-1, 2))
        begin += len(parts[-1])
    slots, placed = np.zeros(begin, slot_t), np.concatenate(parts)
    slots["variable"] = slots["threshold"] = placed[:, 0]
    slots["strength"], slots["level"] = placed[:, 1], 1
    slot_of = np.full(network.n_units, -1)
    slot_of[placed[:, 0][placed[:, 0] >= 0]] = np.flatnonzero(placed[:, 0] >= 0)
    key = 2 * slot_of[graph.child_of_edge] + hidden[graph.parent]
    key[(key < 0) | (number[graph.parent] < 0)] = 2 * begin
    order = np.argsort(key, kind="stable")[: np.count_nonzero(key < 2 * begin)]
    edges, at = np.zeros(len(order), edge_t), np.searchsorted(key[order], np.arange(2 * begin + 1))
    edges["parent"], edges["place"] = number[graph.parent[order]], order
    slots["edge"], slots["latent_edge"], slots["edge_end"] = at[:-1:2], at[1::2], at[2::2]
    features = np.zeros(len(columns), feature_t)
    features["variable"], features["state"] = columns, 1
    return groups, slots, edges, features


@dataclass(frozen=True, eq=False)
class ColumnSums:
    """A solver that marginalises hidden variables in rows without missing values, and leaves other rows to another."""

    plan: Plan = field(repr=False)
    other: DifferentiableSolver

    @property
    def rows_at_once(self) -> int:
        """To start a thread takes longer than some rows of narrow tables."""
        return _FEW if len(self.plan.slots.slots) * self.plan.n_states > _DEAR else _MANY

    def solve(self, network: Network, states: States, *, start: FloatArray | None, trace: bool) -> Solution:
        """The likelihood of each row, less what rounding may have added."""
        if trace:
            return self.other.solve(network, states, start=start, trace=trace)
        found, _ = self._marginalised(network.model, network.bias, states, None)
        done = np.isfinite(found.bound)
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
        """The likelihood of each row, and the gradient of their weighted sum if rows have weights."""
        if trace:
            return self.other.maximise(model, bias, states, start, row_weight=row_weight, trace=trace)
        found, gradient = self._marginalised(model, bias, states, row_weight)
        done = np.isfinite(found.bound)
        if not done.all():
            point, weight = None if start is None else start[~done], None if row_weight is None else row_weight[~done]
            rest, more = self.other.maximise(model, bias, states[~done], point, row_weight=weight)
            found = _both(found, rest, done)
            if gradient is not None and more is not None:
                gradient = BoundGradient(gradient.weight + more.weight, gradient.bias + more.bias)
        return found, gradient

    def _marginalised(
        self, model: Model, bias: FloatArray, states: States, row_weight: FloatArray | None, *, careful: bool = False
    ) -> tuple[Solution, BoundGradient | None]:
        """Rows without missing values; the bound of others, and of rows with inputs too large to multiply, is NaN."""
        plan, n, differentiates = self.plan, len(states), row_weight is not None
        weight = np.ones(n) if row_weight is None else np.ascontiguousarray(row_weight)
        gradient = BoundGradient(np.zeros(len(model.weight)), np.zeros(len(bias)))
        share, mean = np.zeros((n, plan.n_states)), np.zeros((n, len(plan.slots.slots)))
        answer = Answer(np.empty(n), share, mean, gradient.weight, gradient.bias)
        rows, least = np.ascontiguousarray(states), _SLIGHT if differentiates else _NOTHING
        marginalise(plan.slots, model.weight, bias, Task(rows, weight, least, differentiates, careful), answer)
        means, mixtures = states.astype(np.float64), plan.mixture_slots
        means[:, plan.shared] = _shared_means(share, len(plan.shared))
        means[:, plan.slots.slots["variable"][mixtures]] = mean[:, mixtures]
        if len(plan.idle):
            means[:, plan.idle] = self._idle(model, bias, states, share)
        found = Solution(answer.log_p, means, np.full(n, Status.CONVERGED.code), np.zeros(n, np.int64))
        lost = np.isnan(answer.log_p) & (states[:, plan.columns] != HIDDEN).all(axis=1)
        if lost.any() and not careful:
            some = None if row_weight is None else row_weight[lost]
            more, other = self._marginalised(model, bias, states[lost], some, careful=True)
            found = _both(found, more, ~lost)
            if other is not None:
                gradient = BoundGradient(gradient.weight + other.weight, gradient.bias + other.bias)
        return found, gradient if differentiates else None

    def _idle(self, model: Model, bias: FloatArray, states: States, share: FloatArray) -> FloatArray:
        """The means of variables that nothing depends on."""
        idle, shared, n = self.plan.idle, self.plan.shared, len(self.plan.shared)
        rows = scipy.sparse.csr_array((model.weight, model.parent, model.indptr), shape=2 * (len(bias),))[idle]
        observed = absorb_rows(model, bias, states)[:, idle]
        above = rows[:, shared] @ ((np.arange(2**n) >> np.arange(n)[:, None]) & 1).astype(np.float64)
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
    """One solution of rows that were marginalised and rows that were not."""
    bound, means, status, sweeps = found.bound, found.means, found.status, found.sweeps
    bound[~done], means[~done], status[~done], sweeps[~done] = rest.bound, rest.means, rest.status, rest.sweeps
    return found


def marginalising(network: Network, columns: IndexArray, other: Any) -> Any:
    """The solver for a network: exact where all latent variables can be marginalised, another everywhere else."""
    plan = plan_of(network, columns)
    return other if plan is None else ColumnSums(plan, other)
