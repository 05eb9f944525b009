"""Latent variables marginalised exactly, where they are few shared ones and mixture variables of columns.

Mean field theory pretends that latent variables are independent, given a row, and learning with it gives up on those
whose posteriors are not. A sum over their states pretends nothing: what is learned is better, and what is scored is the
likelihood itself, whatever the starting point. See :mod:`sbnet.kernels.columns`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse
from scipy.special import expit

from sbnet._types import HIDDEN, BoolArray, FloatArray, IndexArray, Model, States
from sbnet.bounds.margins import UNIT, scale
from sbnet.inference.solution import Solution, Status
from sbnet.inference.solvers.column_marginals import Columns, marginalise
from sbnet.inference.solvers.protocol import BoundGradient, DifferentiableSolver
from sbnet.kernels.codes import SIGMOID
from sbnet.kernels.columns import FRACTION, PLAIN, SUM, edge_t, group_t
from sbnet.kernels.structs import LANES
from sbnet.model.network import Network
from sbnet.questions.reduction import absorb_rows

MOST_SHARED, MOST_MIXTURES, _MOST = 10, 6, 11
"""More shared latent variables, mixture variables of a column, or both, are left to another solver: each doubles the
time.
"""
Solved: TypeAlias = tuple[Solution, BoundGradient | None]
_ROWS = ((2_000, 832), (150_000, 208))
_FEW = 48
"""Rows at once up to so many slots times states, and beyond: what is done once for all rows should not take longer than
the rows do.
"""


@dataclass(frozen=True, eq=False)
class Plan:
    """How to marginalise.

    `shared` latent variables; `idle` hidden variables, on which nothing depends; and `slots`, where all others stand.
    """

    columns: IndexArray
    shared: IndexArray
    idle: IndexArray
    slots: Columns

    @property
    def n_states(self) -> int:
        """Joint states of the shared latent variables."""
        return int(2 ** len(self.shared))


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
    if fan_in[shared].any() or (network.gate != SIGMOID).any() or not network.is_binary:
        return None
    number[shared] = np.arange(len(shared))
    groups, variable, strength = _slots(network, columns, np.concatenate([[0], np.cumsum(count)]), edge)
    slot = np.full(n, -1)
    slot[variable[variable >= 0]] = np.flatnonzero(variable >= 0)
    child, parent, latent = slot[graph.child_of_edge], number[graph.parent], hidden[graph.parent]
    below, above = (np.flatnonzero((child >= 0) & (parent >= 0) & (latent == kind)) for kind in (False, True))
    edges = _edges(parent[below], child[below], below), _edges(child[above], 1 + parent[above], above)
    slots = Columns(groups, variable, strength, *edges, columns, shared)
    return Plan(columns, shared, np.flatnonzero(hidden & (fan_out == 0)), slots)


def _slots(
    network: Network, columns: IndexArray, first: IndexArray, edge: IndexArray
) -> tuple[np.ndarray, IndexArray, IndexArray]:
    """Groups; and of slots, the variables, and the edges of mixture variables to their columns."""
    count = np.diff(first)
    kinds = np.unique(count)
    groups, parts, begin = np.zeros(len(kinds), group_t), [], 0
    for g, mixtures in enumerate(kinds.tolist()):
        own = np.flatnonzero(count == mixtures)
        n, width = len(own), len(own) + -len(own) % LANES
        groups[g] = begin, width, n, mixtures, (PLAIN, FRACTION, SUM)[min(mixtures, 2)]
        part = np.full((2, 1 + mixtures, width), -1)
        part[0, 0, :n] = columns[own]
        part[1, 1:, :n] = edge[first[own] + np.arange(mixtures)[:, None]]
        part[0, 1:, :n] = network.graph.parent[part[1, 1:, :n]]
        parts.append(part.reshape(2, -1))
        begin += (1 + mixtures) * width
    variable, strength = np.concatenate(parts, axis=1)
    return groups, variable, strength


def _edges(source: IndexArray, target: IndexArray, place: IndexArray) -> np.ndarray:
    edges = np.zeros(len(place), edge_t)
    edges["source"], edges["target"], edges["place"] = source, target, place
    return edges[np.argsort(target, kind="stable")]


@dataclass(frozen=True, eq=False)
class ColumnSums:
    """A solver that marginalises hidden variables in rows without missing values, and leaves other rows to another."""

    plan: Plan = field(repr=False)
    other: DifferentiableSolver

    @property
    def rows_at_once(self) -> int:
        """To start a thread takes longer than some rows of narrow tables."""
        size = len(self.plan.slots.variable) * self.plan.n_states
        return next((rows for most, rows in _ROWS if size <= most), _FEW)

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
        return _both((found, None), (rest, None), done)[0]

    def maximise(
        self,
        model: Model,
        bias: FloatArray,
        states: States,
        start: FloatArray | None,
        *,
        row_weight: FloatArray | None = None,
        trace: bool = False,
    ) -> Solved:
        """The likelihood of each row, and the gradient of their weighted sum if rows have weights."""
        if trace:
            return self.other.maximise(model, bias, states, start, row_weight=row_weight, trace=trace)
        found = self._marginalised(model, bias, states, row_weight)
        done = np.isfinite(found[0].bound)
        if done.all():
            return found
        point, weight = None if start is None else start[~done], None if row_weight is None else row_weight[~done]
        return _both(found, self.other.maximise(model, bias, states[~done], point, row_weight=weight), done)

    def _marginalised(
        self, model: Model, bias: FloatArray, states: States, row_weight: FloatArray | None, *, careful: bool = False
    ) -> Solved:
        """Rows without missing values; the bound of others, and of rows with inputs too large to multiply, is NaN."""
        plan, n = self.plan, len(states)
        answer = marginalise(plan.slots, model.weight, bias, states, row_weight, careful=careful)
        means, mixtures = states.astype(np.float64), np.flatnonzero(plan.slots.strength >= 0)
        means[:, plan.shared] = answer.latent_mean
        means[:, plan.slots.variable[mixtures]] = answer.mixture_mean[:, mixtures]
        if len(plan.idle):
            means[:, plan.idle] = self._idle(model, bias, states, answer.share)
        found = Solution(answer.log_p, means, np.full(n, Status.CONVERGED.code), np.zeros(n, np.int64))
        lost = np.isnan(answer.log_p) & (states[:, plan.columns] != HIDDEN).all(axis=1)
        gradient = None if row_weight is None else BoundGradient(answer.weight, answer.bias)
        if lost.any() and not careful:
            some = None if row_weight is None else row_weight[lost]
            more = self._marginalised(model, bias, states[lost], some, careful=True)
            return _both((found, gradient), more, ~lost)
        return found, gradient

    def _idle(self, model: Model, bias: FloatArray, states: States, share: FloatArray) -> FloatArray:
        """The means of variables that nothing depends on."""
        idle, shared, n = self.plan.idle, self.plan.shared, len(self.plan.shared)
        rows = scipy.sparse.csr_array((model.weight, model.parent, model.indptr), shape=2 * (len(bias),))[idle]
        observed = absorb_rows(model, bias, states)[:, idle]
        above = rows[:, shared] @ ((np.arange(2**n) >> np.arange(n)[:, None]) & 1).astype(np.float64)
        found = [(share * expit(z[:, None] + w)).sum(axis=1) for z, w in zip(observed.T, above, strict=True)]
        return np.stack(found, axis=1)


def margin(network: Network) -> float:
    """How far rounding can raise a sum, generously: a factor is wrong by what its input is, a logarithm by its size."""
    sizes = scale(network)
    total = float(sizes.size.sum())
    own = float(sizes.size @ (4.0 * sizes.parents + 50.0))
    return UNIT * (own + 8.0 * (len(sizes.size) + 50.0) * total + 2.0 ** (MOST_SHARED + 3))


def _both(one: Solved, other: Solved, done: BoolArray) -> Solved:
    """One solution of rows that were marginalised and rows that were not, and the sum of the gradients."""
    (found, gradient), (rest, more) = one, other
    bound, means, status, sweeps = found.bound, found.means, found.status, found.sweeps
    bound[~done], means[~done], status[~done], sweeps[~done] = rest.bound, rest.means, rest.status, rest.sweeps
    if gradient is not None and more is not None:
        gradient = BoundGradient(gradient.weight + more.weight, gradient.bias + more.bias)
    return found, gradient


def marginalising(network: Network, columns: IndexArray, other: Any) -> Any:
    """The solver for a network: exact where all latent variables can be marginalised, another everywhere else."""
    plan = plan_of(network, columns)
    return other if plan is None else ColumnSums(plan, other)
