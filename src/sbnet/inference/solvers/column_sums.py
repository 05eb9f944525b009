"""Latent variables marginalised exactly, where they are few shared ones and mixture variables of columns.

Mean field theory pretends that latent variables are independent, given a row, and learning with it gives up on those
whose posteriors are not. A sum over their states pretends nothing: what is learned is better, and what is scored is the
likelihood itself, whatever the starting point. See :mod:`sbnet.kernels.columns`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from scipy.special import expit

from sbnet._types import HIDDEN, BoolArray, FloatArray, IndexArray, Model, States
from sbnet.bounds.margins import UNIT, scale
from sbnet.inference.solution import Solution, Status
from sbnet.inference.solvers.protocol import BoundGradient, DifferentiableSolver
from sbnet.kernels.column_gradients import Means, above_t, add_gradients, differentiate, side_t, strength_t
from sbnet.kernels.columns import (
    FOUR,
    FRACTION,
    LIMIT,
    PLAIN,
    ROOM,
    SUM,
    Given,
    add_inputs,
    edge_t,
    group_t,
    mixed_t,
    multiply,
    row_t,
    state_t,
    zeros,
)
from sbnet.kernels.gates import SIGMOID
from sbnet.kernels.structs import LANES
from sbnet.kernels.vector import LN2, LN2_HIGH, LN2_LOW, LOG2E
from sbnet.model.network import Network
from sbnet.questions.reduction import absorb_rows

MOST_SHARED, MOST_MIXTURES, _MOST = 10, 6, 11
"""More shared latent variables, mixture variables of a column, or both, are left to another solver: each doubles the
time.
"""
_SLIGHT, _NOTHING = 1e-5, 1e-12
"""Shares of states in a row that do not count: while learning, and in means."""
_ROWS = ((2_000, 832), (150_000, 208))
_FEW = 48
"""Rows at once up to so many slots times states, and beyond: what is done once for all rows should not take longer than
the rows do.
"""


class Columns(NamedTuple):
    """Where everything stands, by slot: see :mod:`sbnet.kernels.columns`."""

    groups: np.ndarray  # of group_t
    variable: IndexArray  # -1 if nobody has the slot
    threshold: IndexArray  # where its bias stands
    level: IndexArray  # l of its threshold
    strength: IndexArray  # of a mixture variable: where its weight to its column stands, else -1
    edges: np.ndarray  # of edge_t, from features to slots
    latent_edges: np.ndarray  # of edge_t, from slots to the shared latent variables above them, the first being 1
    features: IndexArray  # (2, n): a column is in a state
    latents: IndexArray  # the thresholds of the shared latent variables


class Answer(NamedTuple):
    """What is found, of each row and in all."""

    log_p: FloatArray  # ln P, NaN if a cell is missing or inputs are too large to multiply
    share: FloatArray  # the posterior of joint states of the shared latent variables
    latent_mean: FloatArray
    mixture_mean: FloatArray  # by slot
    weight: FloatArray  # gradients of the weighted sum of ln P
    bias: FloatArray


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

    @property
    def mixture_slots(self) -> IndexArray:
        """Where mixture variables stand."""
        return np.flatnonzero(self.slots.strength >= 0)


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
    number[shared] = np.arange(len(shared))
    groups, variable, strength = _slots(network, columns, np.concatenate([[0], np.cumsum(count)]), edge)
    slot = np.full(n, -1)
    slot[variable[variable >= 0]] = np.flatnonzero(variable >= 0)
    child, parent, latent = slot[graph.child_of_edge], number[graph.parent], hidden[graph.parent]
    below, above = (np.flatnonzero((child >= 0) & (parent >= 0) & (latent == kind)) for kind in (False, True))
    edges = _edges(parent[below], child[below], below), _edges(child[above], 1 + parent[above], above)
    features, level = np.stack([columns, np.ones_like(columns)]), np.ones_like(variable)
    slots = Columns(groups, variable, variable, level, strength, *edges, features, shared)
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


def _given(columns: Columns, weight: FloatArray, bias: FloatArray, rows: States) -> tuple[Given, FloatArray, BoolArray]:
    """What is multiplied, the features of rows, and the rows that are lost: cells are missing, or inputs too large."""
    n_rows, used, mixture = len(rows) + -len(rows) % LANES, columns.variable >= 0, columns.strength >= 0
    cells = np.ones((rows.shape[1] + 1, n_rows), np.int8)  # the last: mixture variables, and slots that nobody has
    cells[:-1, : len(rows)] = rows.T
    state, below = cells[np.where(mixture, -1, columns.variable)], (columns.level - 1).astype(np.int8)[:, None]
    features = (cells[columns.features[0]] == columns.features[1].astype(np.int8)[:, None]).astype(np.float64)
    off, x = zeros((2, *state.shape), np.float64)
    off[:], x[:] = state == below, np.where(used, bias[columns.threshold], 0.0)[:, None]
    add_inputs(columns.edges, weight, features, x)
    strength = np.zeros(len(x))
    strength[mixture] = weight[columns.strength[mixture]]
    d, most = _above(columns, weight)
    cost, lost = _costs(columns.groups, x, most, strength)
    lost |= (state < 0).any(axis=0)
    head, power = _heads(columns, weight, bias, off, x)
    a = np.exp(np.negative(x, out=x), out=x)
    a[~used] = 0.0
    if below.any():  # some columns have more than two states
        a[state < below] = 0.0
    k, lanes = np.exp(-np.clip(strength, -ROOM, ROOM)), (-1, n_rows // LANES, LANES)
    a, off, head, power = a.reshape(lanes), off.reshape(lanes), head.reshape(lanes), power.reshape(lanes)
    return Given(a, off, cost, head, power, d, k), features, lost[: len(rows)]


def _heads(
    columns: Columns, weight: FloatArray, bias: FloatArray, off: FloatArray, x: FloatArray
) -> tuple[FloatArray, IndexArray]:
    """By row, P(s = 0) and all numerators, and what each latent variable that is on makes of that: m 2^n."""
    head, h = np.empty((1 + len(columns.latents), x.shape[1])), bias[columns.latents]
    head[0] = (off * x).sum(axis=0) + np.logaddexp(0.0, h).sum()
    head[1:] = -h[:, None]
    add_inputs(columns.latent_edges, weight, off, head)
    n = np.rint(head * -LOG2E)
    return np.exp((-head - n * LN2_HIGH) - n * LN2_LOW), n.astype(np.int64)


def _above(columns: Columns, weight: FloatArray) -> tuple[FloatArray, FloatArray]:
    """By slot, e^-(what each joint state of the shared latent variables contributes), and the most that one does."""
    edges, n = columns.latent_edges, len(columns.latents)
    above = np.zeros((len(columns.variable), n))
    above[edges["source"], edges["target"] - 1] = weight[edges["place"]]
    most = np.maximum(np.maximum(above, 0.0).sum(axis=1), np.maximum(-above, 0.0).sum(axis=1))
    above[~(most <= ROOM)] = 0.0  # all rows are lost
    d, factor = np.ones((len(above), 1 << n)), np.exp(-above)
    for k in range(n):
        np.multiply(d[:, : 1 << k], factor[:, k : k + 1], out=d[:, 1 << k : 2 << k])
    return d, most


def _costs(groups: np.ndarray, x: FloatArray, most: FloatArray, strength: FloatArray) -> tuple[FloatArray, BoolArray]:
    """The largest exponents that columns add, and the rows in which one adds too much: their inputs become zero."""
    lost: BoolArray = np.zeros(x.shape[1], np.bool_)
    cost = _cost(groups, np.abs(x).max(axis=1, keepdims=True), most, strength)
    if np.isinf(cost).any():  # in some of the rows
        lost |= np.isinf(_cost(groups, np.abs(x), most, strength)).any(axis=0)
        x[:, lost] = 0.0
        cost = _cost(groups, np.abs(x).max(axis=1, keepdims=True), most, strength)
    return cost[:, 0], lost


def _cost(groups: np.ndarray, size: FloatArray, most: FloatArray, strength: FloatArray) -> FloatArray:
    """The largest exponents that columns add, from the sizes of inputs; infinite if they are too large."""
    size, strength, cost = size + (most + 1.0)[:, None], np.abs(strength)[:, None], np.zeros_like(size)
    for first, width, _, mixtures, form in groups.tolist():
        begin, end = first + width, first + (1 + mixtures) * width
        own = size[first:begin] + strength[begin:end].reshape(mixtures, width, 1).sum(axis=0)
        if form == FRACTION:
            own *= 2.0
        if mixtures:
            own += size[begin:end].reshape(mixtures, *own.shape).max(axis=0) + 1.0
        own[~(own <= LIMIT[form])] = np.inf
        cost[first:begin] = own
        if form == PLAIN:
            cost[first:begin:FOUR] = own.reshape(-1, FOUR, own.shape[1]).sum(axis=1)
    return cost


def marginalise(
    columns: Columns,
    weight: FloatArray,
    bias: FloatArray,
    rows: States,
    row_weight: FloatArray | None,
    *,
    careful: bool = False,
) -> Answer:
    """Likelihoods and means of rows of states by variable, and gradients if rows have weights.

    If `careful`, all columns are treated as those with several mixture variables: slower, but for larger inputs. What
    becomes of a row does not depend on the rows beside it.
    """
    if careful:
        groups = columns.groups.copy()
        groups["form"] = SUM
        columns = columns._replace(groups=groups)
    groups, n_slots, n_states = columns.groups, len(columns.variable), 1 << len(columns.latents)
    given, features, lost = _given(columns, weight, bias, rows)
    share, total, top = np.empty((len(rows), n_states)), np.empty(len(rows)), np.empty(len(rows), np.int64)
    mixed, states = zeros(((1 << int(groups["mixtures"].max(initial=0))) + 1,), mixed_t), zeros((n_states,), state_t)
    multiply(groups, given, states, mixed, zeros((1,), row_t), share, total, top)
    log_p = np.log(total) + top * LN2
    log_p[lost], share[lost] = np.nan, 0.0
    latent_mean, mean = _folded(share, len(columns.latents)), np.zeros((len(rows), n_slots))
    answer = Answer(log_p, share, latent_mean, mean, np.zeros(len(weight)), np.zeros(len(bias)))
    if row_weight is None and len(mixed) == 2:
        return answer
    x, n_blocks = np.zeros((n_slots, features.shape[1])), n_slots // LANES
    above, strengths = zeros((n_states + 1, n_blocks), above_t), zeros((n_blocks,), strength_t)
    strengths["k"] = given.k.reshape(-1, LANES)
    room = zeros((n_blocks,), side_t), strengths, mixed, np.zeros(n_states + 1, np.int64), np.zeros(n_states + 1)
    means, least = Means(above, *room, x, mean), _NOTHING if row_weight is None else _SLIGHT
    w = np.ones(len(rows)) if row_weight is None else row_weight
    differentiate(groups, given, share, w, least, row_weight is not None, means)
    if row_weight is not None:
        _gather(columns, bias, features, means, np.where(lost, 0.0, w), answer)
    return answer


def _gather(
    columns: Columns, bias: FloatArray, features: FloatArray, means: Means, row_weight: FloatArray, answer: Answer
) -> None:
    """Gradients in weights and biases, from those in the inputs of slots: by row for edges from columns, by joint state
    for edges from shared latent variables.
    """
    used, mixture, latents, edges = columns.variable >= 0, columns.strength >= 0, columns.latents, columns.latent_edges
    add_gradients(columns.edges, features, means.x, answer.weight)
    answer.bias[columns.threshold[used]] = means.x.sum(axis=1)[used]
    answer.weight[columns.strength[mixture]] = means.strengths["gradient"].ravel()[mixture]
    above = means.above["gradient"][:-1].reshape(-1, len(used))
    answer.weight[edges["place"]] = _folded(above.T, len(latents))[edges["source"], edges["target"] - 1]
    answer.bias[latents] = (row_weight[:, None] * (answer.latent_mean - expit(bias[latents]))).sum(axis=0)


def _folded(share: FloatArray, n: int) -> FloatArray:
    """Sums over the joint states in which each shared variable is on: the last one is the highest bit.

    Row by row: the rounding of a product of matrices would depend on how many rows are asked for at once.
    """
    sums = np.empty((len(share), n))
    for k in reversed(range(n)):
        off, on = share[:, : 2**k], share[:, 2**k :]
        sums[:, k], share = on.sum(axis=1), off + on
    return sums


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
        plan, n = self.plan, len(states)
        answer = marginalise(plan.slots, model.weight, bias, states, row_weight, careful=careful)
        means, mixtures = states.astype(np.float64), plan.mixture_slots
        means[:, plan.shared] = answer.latent_mean
        means[:, plan.slots.variable[mixtures]] = answer.mixture_mean[:, mixtures]
        if len(plan.idle):
            means[:, plan.idle] = self._idle(model, bias, states, answer.share)
        found = Solution(answer.log_p, means, np.full(n, Status.CONVERGED.code), np.zeros(n, np.int64))
        lost = np.isnan(answer.log_p) & (states[:, plan.columns] != HIDDEN).all(axis=1)
        gradient = None if row_weight is None else BoundGradient(answer.weight, answer.bias)
        if lost.any() and not careful:
            some = None if row_weight is None else row_weight[lost]
            more, other = self._marginalised(model, bias, states[lost], some, careful=True)
            found = _both(found, more, ~lost)
            if gradient is not None and other is not None:
                gradient = BoundGradient(gradient.weight + other.weight, gradient.bias + other.bias)
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


def _both(found: Solution, rest: Solution, done: BoolArray) -> Solution:
    """One solution of rows that were marginalised and rows that were not."""
    bound, means, status, sweeps = found.bound, found.means, found.status, found.sweeps
    bound[~done], means[~done], status[~done], sweeps[~done] = rest.bound, rest.means, rest.status, rest.sweeps
    return found


def marginalising(network: Network, columns: IndexArray, other: Any) -> Any:
    """The solver for a network: exact where all latent variables can be marginalised, another everywhere else."""
    plan = plan_of(network, columns)
    return other if plan is None else ColumnSums(plan, other)
