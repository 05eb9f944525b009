"""Exact likelihoods where hidden units are few roots, and switches of columns: see :mod:`sbnet.kernels.roots`.

Mean field theory pretends that hidden units are independent, given a row, and learning with it gives up on hidden units
whose posteriors are not. A sum over their states pretends nothing: what is learned is better, and what is scored is the
likelihood itself, whatever the starting point.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.special import expit

from sbnet._types import HIDDEN, BoolArray, FloatArray, IndexArray, Model, States
from sbnet.bounds.margins import UNIT, scale
from sbnet.inference import Climber, Slope, Solution, Status
from sbnet.kernels.gates import SIGMOID
from sbnet.kernels.roots import Above, Answer, Columns, Slopes, edge_slopes, sum_rows
from sbnet.network import Network
from sbnet.reduction import absorb_rows

MOST_ROOTS = 10
"""More of them are left to mean field theory: each doubles the time."""


@dataclass(frozen=True, eq=False)
class Plan:
    """Which units are columns, switches, roots, and of no use; the states of the roots, roots by states."""

    columns: IndexArray
    switch: IndexArray
    edge: IndexArray
    roots: IndexArray
    states: FloatArray
    root: IndexArray
    idle: IndexArray

    @property
    def mixed(self) -> BoolArray:
        """Columns that have a switch."""
        found: BoolArray = self.switch >= 0
        return found

    def above(self, model: Model, bias: FloatArray) -> Above:
        """What the roots say."""
        edges = np.flatnonzero(self.root[model.parent] >= 0)
        weight = np.zeros((len(bias), len(self.roots)))
        child = np.searchsorted(model.indptr, edges, side="right") - 1
        weight[child, self.root[model.parent[edges]]] = model.weight[edges]
        h = bias[self.roots]
        log_p = h @ self.states - np.logaddexp(0.0, h).sum()
        most = np.maximum(np.maximum(weight, 0.0).sum(axis=1), np.maximum(-weight, 0.0).sum(axis=1))
        return Above(
            log_p, _products(np.exp(np.minimum(weight, 700.0))), _products(np.exp(np.minimum(-weight, 700.0))), most
        )


def _products(factor: FloatArray) -> FloatArray:
    """For each unit, products of the factors of the roots that are on, state by state; too large ones are not used."""
    found = np.ones((len(factor), 1))
    with np.errstate(over="ignore", invalid="ignore"):
        for column in factor.T:
            found = np.concatenate([found, found * column[:, None]], axis=1)
    return found


def plan_of(network: Network, columns: IndexArray) -> Plan | None:
    """How to sum over the hidden units of a network, if they are few roots, and at most one switch a column.

    A root with one child is a switch of that child; a hidden unit without children is neither.
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
    if len(roots) > MOST_ROOTS or several or (network.gate != SIGMOID).any():
        return None
    root = np.full(n, -1)
    root[roots] = np.arange(len(roots))
    edge = edge_of[columns]
    switch = np.where(edge >= 0, _at(graph.parent, edge), -1).astype(np.int64)
    states = ((np.arange(2 ** len(roots)) >> np.arange(len(roots))[:, None]) & 1).astype(np.float64)
    return Plan(columns, switch, edge, roots, states, root, np.flatnonzero(hidden & (fan_out == 0)))


def _only_children(network: Network, inner: BoolArray, hidden: BoolArray) -> tuple[IndexArray, bool]:
    """For each unit the edge from its switch, or -1; and whether one of these has several children, or a hidden one."""
    n, graph = network.n_units, network.graph
    down = np.flatnonzero(inner[graph.parent])
    child = graph.child_of_edge[down]
    counts = np.bincount(graph.parent[down], minlength=n), np.bincount(child, minlength=n)
    several = any(count.max(initial=0) > 1 for count in counts) or bool(hidden[child].any())
    edge = np.full(n, -1)
    edge[child] = down
    return edge, several


@dataclass(frozen=True, eq=False)
class Summing:
    """A solver that sums over hidden units in rows without holes, and leaves other rows to another."""

    plan: Plan = field(repr=False)
    other: Climber

    def solve(self, network: Network, states: States, *, start: FloatArray | None, trace: bool) -> Solution:
        """The likelihood of each row, less what rounding may have added."""
        if trace or not self._whole(states).any():
            return self.other.solve(network, states, start=start, trace=trace)
        found, _, done = self._summed(network.model, network.bias, states, np.ones(len(states)))
        found.bound[:] -= margin(network)
        if done.all():
            return found
        rest = self.other.solve(network, states[~done], start=None if start is None else start[~done], trace=False)
        return _both(found, rest, done)

    def climb(
        self,
        model: Model,
        bias: FloatArray,
        states: States,
        start: FloatArray | None,
        *,
        row_weight: FloatArray | None = None,
        trace: bool = False,
    ) -> tuple[Solution, Slope | None]:
        """The same with its gradient."""
        if trace or not self._whole(states).any():
            return self.other.climb(model, bias, states, start, row_weight=row_weight, trace=trace)
        weight = np.ones(len(states)) if row_weight is None else row_weight
        found, slope, done = self._summed(model, bias, states, weight)
        if not done.all():
            point = None if start is None else start[~done]
            rest, more = self.other.climb(model, bias, states[~done], point, row_weight=weight[~done])
            assert more is not None
            found, slope = _both(found, rest, done), Slope(slope.weight + more.weight, slope.bias + more.bias)
        return found, None if row_weight is None else slope

    def _whole(self, states: States) -> BoolArray:
        """Rows without holes."""
        found: BoolArray = (states[:, self.plan.columns] != HIDDEN).all(axis=1)
        return found

    def _summed(
        self, model: Model, bias: FloatArray, states: States, row_weight: FloatArray
    ) -> tuple[Solution, Slope, BoolArray]:
        """Rows without holes; which they are comes last."""
        plan, n = self.plan, len(states)
        whole = self._whole(states)
        rows = states if whole.all() else states[whole]
        inputs, above = absorb_rows(model, bias, rows), plan.above(model, bias)
        columns = Columns(plan.columns, plan.switch, np.where(plan.mixed, _at(model.weight, plan.edge), 0.0))
        m, width = len(rows), len(columns.unit)
        answer = Answer(np.empty(m), np.empty((m, len(above.log_p))), np.zeros((m, width)))
        slopes = Slopes(
            np.ascontiguousarray(row_weight[whole]), np.zeros(inputs.shape), np.zeros(above.up.shape),
            np.zeros(width),
        )  # fmt: skip
        sum_rows(columns, above, inputs, rows, answer, slopes)
        done = whole.copy()
        done[whole] = np.isfinite(answer.log_p)
        share = np.where(np.isfinite(answer.log_p)[:, None], answer.share, 0.0)
        bound, means = np.full(n, np.nan), states.astype(np.float64)
        bound[whole] = answer.log_p
        means[np.ix_(whole, plan.roots)] = share @ plan.states.T
        means[np.ix_(whole, plan.switch[plan.mixed])] = answer.switch[:, plan.mixed]
        for unit in plan.idle:
            z = inputs[:, [unit]] + np.log(np.clip(above.up[unit], 1e-300, 1e300))
            means[whole, unit] = (share * expit(z)).sum(axis=1)
        found = Solution(bound, means, np.full(n, Status.CONVERGED.code), np.zeros(n, np.int64))
        return found, self._slope(model, bias, rows, share, slopes), done

    def _slope(self, model: Model, bias: FloatArray, rows: States, share: FloatArray, slopes: Slopes) -> Slope:
        plan = self.plan
        weight, by_row = np.zeros(len(model.weight)), np.ascontiguousarray(slopes.by_row.T)
        on = np.ascontiguousarray((rows == 1).T.astype(np.float64))
        edge_slopes(model.indptr, model.parent, plan.root, on, by_row, plan.states, slopes.by_state, weight)
        weight[plan.edge[plan.mixed]] = slopes.strength[plan.mixed]
        own = by_row.sum(axis=1)
        row_weight = slopes.row_weight * (share.sum(axis=1) > 0.5)
        own[plan.roots] = (row_weight @ share) @ plan.states.T - row_weight.sum() * expit(bias[plan.roots])
        return Slope(weight, own)


def summing(network: Network, columns: IndexArray, other: Any) -> Any:
    """The solver for a network: sums where that is possible, another everywhere else."""
    plan = plan_of(network, columns)
    return other if plan is None else Summing(plan, other)


def margin(network: Network) -> float:
    """How far rounding can raise a sum, generously: a factor is wrong by what its input is, a logarithm by its size."""
    sizes = scale(network)
    total = float(sizes.size.sum())
    own = float(sizes.size @ (4.0 * sizes.parents + 50.0))
    return UNIT * (own + 8.0 * (len(sizes.size) + 50.0) * total + 2.0 ** (MOST_ROOTS + 3))


def _both(found: Solution, rest: Solution, done: BoolArray) -> Solution:
    """One solution of rows that were summed and rows that were not."""
    bound, means, status, sweeps = found.bound, found.means, found.status, found.sweeps
    bound[~done], means[~done], status[~done], sweeps[~done] = rest.bound, rest.means, rest.status, rest.sweeps
    return found


def _at(values: Any, edge: IndexArray) -> Any:
    return values[edge] if len(values) else np.zeros(len(edge))
