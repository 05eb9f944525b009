"""Exact likelihoods where hidden units are few roots, and switches of columns: see :mod:`sbnet.kernels.roots`.

Mean field theory pretends that hidden units are independent, given a row, and learning with it gives up on hidden units
whose posteriors are not. A sum over their states pretends nothing: what is learned is better, and what is scored is the
likelihood itself, whatever the starting point.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse
from scipy.special import expit

from sbnet._types import BoolArray, FloatArray, IndexArray, Model, States
from sbnet.bounds.margins import UNIT, scale
from sbnet.inference import BoundGradient, DifferentiableSolver, Solution, Status
from sbnet.kernels.gates import SIGMOID
from sbnet.kernels.root_slots import Answer, Edges, Slots, Task
from sbnet.kernels.roots import sum_rows
from sbnet.model.network import Network
from sbnet.questions.reduction import absorb_rows

MOST_ROOTS = 10
"""More of them are left to mean field theory: each doubles the time."""
_SLIGHT, _NOTHING = 1e-5, 1e-12
"""Shares of states in a row that do not count: while learning, and in means."""
_DEAR, _FEW, _MANY = 150_000, 50, 200
"""Slots times states from which threads pay for few rows; and rows that are few and many."""


@dataclass(frozen=True, eq=False)
class Plan:
    """The slots that columns and their switches have; the states of the roots, roots by states; and hidden units of no
    use.
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
        """The same with its gradient."""
        if trace:
            return self.other.maximise(model, bias, states, start, row_weight=row_weight, trace=trace)
        found, slope, done = self._summed(model, bias, states, row_weight)
        if not done.all():
            point, weight = None if start is None else start[~done], None if row_weight is None else row_weight[~done]
            rest, more = self.other.maximise(model, bias, states[~done], point, row_weight=weight)
            found = _both(found, rest, done)
            if slope is not None and more is not None:
                slope = BoundGradient(slope.weight + more.weight, slope.bias + more.bias)
        return found, slope

    def _summed(
        self, model: Model, bias: FloatArray, states: States, row_weight: FloatArray | None
    ) -> tuple[Solution, BoundGradient | None, BoolArray]:
        """Rows without holes, with a slope if rows have weights; which rows they are comes last."""
        plan, n, climbs = self.plan, len(states), row_weight is not None
        weight = np.ones(n) if row_weight is None else np.ascontiguousarray(row_weight)
        slope = BoundGradient(np.zeros(len(model.weight)), np.zeros(len(bias)))
        answer = Answer(
            np.empty(n), np.zeros((n, plan.states.shape[1])), np.zeros((n, len(plan.slots.edge))), slope.weight,
            slope.bias,
        )  # fmt: skip
        task = Task(np.ascontiguousarray(states), weight, _SLIGHT if climbs else _NOTHING, climbs)
        sum_rows(plan.slots, Edges(model.indptr, model.parent, model.weight, bias), task, answer)
        means = states.astype(np.float64)
        means[:, plan.slots.roots] = _root_means(answer.share, len(plan.slots.roots))
        means[:, plan.switches] = answer.switch
        if len(plan.idle):
            means[:, plan.idle] = self._idle(model, bias, states, answer.share)
        found = Solution(answer.log_p, means, np.full(n, Status.CONVERGED.code), np.zeros(n, np.int64))
        return found, slope if climbs else None, np.isfinite(answer.log_p)

    def _idle(self, model: Model, bias: FloatArray, states: States, share: FloatArray) -> FloatArray:
        """The means of units that nothing depends on."""
        plan = self.plan
        rows = scipy.sparse.csr_array((model.weight, model.parent, model.indptr), shape=2 * (len(bias),))[plan.idle]
        observed = absorb_rows(model, bias, states)[:, plan.idle]
        above = rows[:, plan.slots.roots] @ plan.states
        found = [(share * expit(z[:, None] + w)).sum(axis=1) for z, w in zip(observed.T, above, strict=True)]
        return np.stack(found, axis=1)


def _root_means(share: FloatArray, n: int) -> FloatArray:
    """The probability of each root, from those of the joint states of all: the last root is the highest bit.

    Row by row: the rounding of a product of matrices would depend on how many rows are asked for at once.
    """
    means = np.empty((len(share), n))
    for k in reversed(range(n)):
        off, on = share[:, : 2**k], share[:, 2**k :]
        means[:, k], share = on.sum(axis=1), off + on
    return means


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
