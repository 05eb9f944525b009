"""Mean field theory where variables have tables: means are sums over the joint states of a family, in NumPy.

A family with too many of them, which is no table then, has the terms of its gate: see :mod:`.wide`.

Under Q = prod_v Q_v the bound is the sum over families of <ln P(v | parents)>, and of the entropies. It is linear in
each Q_v but for its entropy, so Q_v(s) proportional to exp(field_s) maximises it, one variable after the other. An
entry of zero counts as less than any joint state that can be (:func:`sbnet.questions.support.depth`), and no state that
can be is reached from one that cannot: so where there are zeros, ascent also starts from a state that can be.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import scipy

from sbnet._types import HIDDEN, Bound, FloatArray, States, Stop
from sbnet.errors import TooRareError
from sbnet.exact.factors import Family, log_table
from sbnet.inference.solution import Solution, Status, Xi, equal_shares
from sbnet.inference.solvers.families import Row, begin, shares
from sbnet.inference.solvers.row_completions import families_in
from sbnet.inference.solvers.wide import Q, Wide
from sbnet.kernels.codes import TABLE
from sbnet.model import gates
from sbnet.model.network import Network
from sbnet.questions.by_state import probabilities
from sbnet.questions.prediction import predict_rows
from sbnet.questions.reduction import absorb, live_variables
from sbnet.questions.support import depth

_LARGEST = 1 << 18  # joint states of the hidden parents of a variable without a table that are summed over
_ROUNDING = 1e-13


class _Factor(NamedTuple):
    """ln P of a variable given its parents, what is observed put in: an axis for each hidden variable."""

    axes: tuple[int, ...]
    log_p: FloatArray
    size: float

    def mean(self, q: Q, kept: int | None = None) -> FloatArray:
        """Over all axes but one, the last axis first."""
        value = self.log_p
        for axis in reversed(range(len(self.axes))):
            if self.axes[axis] != kept:
                value = np.moveaxis(value, axis, -1) @ q[self.axes[axis]]
        return value


class Ascended(NamedTuple):
    """What one row came to: the bounds on the way, Q, and why it ended."""

    bounds: FloatArray
    q: Q
    status: Status


def solve_tables(
    network: Network, which: Bound, stop: Stop, states: States, points: Sequence[FloatArray | None], trace: bool
) -> Solution:
    """Solve every row from each of some starting points, means rows by columns or None for equal probabilities."""
    n = len(states)
    means, status = np.full((n, len(network.bias)), np.nan), np.empty(n, np.int8)
    bound, sweeps = np.empty(n), np.empty(n, np.int64)
    path = np.full((n, stop.max_sweeps + 1 if trace else 0), np.nan)
    for r, row in enumerate(states):
        found = ascend(network, row, [None if point is None else point[r] for point in points], stop)
        bound[r], sweeps[r], status[r] = found.bounds[-1], len(found.bounds) - 1, found.status.code
        if trace:
            path[r, : len(found.bounds)] = found.bounds
        fill_means(network, row, found.q, means[r])
    parameters = Xi(which, np.full(means.shape, np.nan))
    return Solution(bound, means, status, sweeps, parameters, trace=path if trace else None)


def ascend(network: Network, row: States, points: Sequence[FloatArray | None], stop: Stop) -> Ascended:
    """The best of some ascents; if entries are zero, one begins at a state of positive probability."""
    zero = depth(network)
    factors, zeros = _factors(network, row, zero)
    hidden = sorted({v for factor in factors for v in factor.axes})
    starts = [_start(network, hidden, point) for point in points]
    if zeros:
        starts += _possible(network, row, hidden)
    steps, q, converged = max((_ascend(factors, q, stop) for q in starts), key=lambda one: one[0][-1])
    size = math.fsum(factor.size for factor in factors)
    bounds = np.maximum.accumulate(np.array(steps) - _ROUNDING * (size + np.abs(steps)))
    if zeros and bounds[-1] < 1000.0 - zero:  # no state that can be is as improbable
        return Ascended(np.full(len(bounds), -np.inf), q, Status.NO_STATE)
    return Ascended(bounds, q, Status.CONVERGED if converged else Status.MAX_SWEEPS)


def _factors(network: Network, row: States, zero: float) -> tuple[list[_Factor | Wide], bool]:
    """The families that the evidence is about; has one of them a probability of zero?"""
    found, zeros = list[_Factor | Wide](), False
    for family in families_in(network, np.flatnonzero(live_variables(network.model, row)).tolist()):
        axes = tuple(v for v in (*family.parents, family.variable) if row[v] == HIDDEN)
        if _is_wide(network, family, row):
            found.append(wide := Wide(family, row, zero))
            zeros = zeros or wide.zeros
            continue
        log_p = log_table(family, row[None, :])[0]
        finite = np.isfinite(log_p)
        zeros = zeros or not finite.all()
        found.append(_Factor(axes, np.maximum(log_p, -zero), float(np.abs(log_p[finite]).max(initial=1.0))))
    return found, zeros


def _is_wide(network: Network, family: Family, row: States) -> bool:
    """Are the joint states of its hidden parents too many for a sum? Those of a table are as many as its entries."""
    joint = math.prod(int(network.n_states[u]) for u in family.parents if row[u] == HIDDEN)
    return family.gate != TABLE and joint > _LARGEST


def _start(network: Network, hidden: list[int], point: FloatArray | None) -> Q:
    means = equal_shares(network) if point is None else point
    q = {v: probabilities(means[network.columns_of(v)]) for v in hidden}
    return {v: share / share.sum() for v, share in q.items()}


def _possible(network: Network, row: States, hidden: list[int]) -> list[Q]:
    """All probability on one state that can be; nothing, if none is found."""
    try:
        state = begin(Row(network, row), 1, np.uint64(0))[0]
    except TooRareError:
        return []
    return [{v: np.eye(network.n_states[v])[state[v]] for v in hidden}]


def _ascend(factors: list[_Factor | Wide], q: Q, stop: Stop) -> tuple[list[float], Q, bool]:
    """Sweep until the bound rises too little: the bounds on the way, Q, and whether that came about."""
    of = {v: [factor for factor in factors if v in factor.axes] for v in q}
    wide = [factor for factor in factors if isinstance(factor, Wide)]
    for factor in wide:
        factor.refine(q)
    steps, converged = [_bound(factors, q)], not q
    while len(steps) <= stop.max_sweeps and not converged:
        for v, near in of.items():
            q[v] = shares(np.sum([factor.mean(q, v) for factor in near], axis=0)[None, :])[0]
        for factor in wide:
            factor.refine(q)
        steps.append(_bound(factors, q))
        converged = steps[-1] - steps[-2] < stop.tol
    return steps, q, converged


def _bound(factors: list[_Factor | Wide], q: Q) -> float:
    energy = math.fsum(float(factor.mean(q)) for factor in factors)
    return energy + math.fsum(float(scipy.special.entr(share).sum()) for share in q.values())


def fill_means(network: Network, row: States, q: Q, means: FloatArray) -> None:
    """Probabilities of all variables; those that had no part follow from their parents, which come first."""
    q = dict(q)
    for family in families_in(network, range(network.n_units)):
        v = family.variable
        if row[v] != HIDDEN:
            means[network.columns_of(v)] = np.arange(1, network.n_states[v]) == row[v]
            continue
        if v not in q:
            hidden = [u for u in family.parents if row[u] == HIDDEN]
            if _is_wide(network, family, row):
                q[v] = _predicted(network, row, means, v)
                means[network.columns_of(v)] = q[v][1:]
                continue
            p = np.exp(log_table(family, row[None, :])[0])
            for axis, u in reversed(list(enumerate(hidden))):
                p = np.moveaxis(p, axis, -1) @ q[u]
            q[v] = p / p.sum()
        means[network.columns_of(v)] = q[v][1:]


def _predicted(network: Network, row: States, means: FloatArray, v: int) -> FloatArray:
    """The distribution of a variable if its parents, whose means are known, were independent."""
    known = np.nan_to_num(means)[None, :]
    known[0, network.columns_of(v)] = np.nan
    predict_rows(network.model, row[None, :], absorb(network, row[None, :]), known)
    return probabilities(known[0, network.columns_of(v)])


# --- learning ---------------------------------------------------------------------------------------------------------


def add_statistics(network: Network, row: States, q: Q, weight: float, total: FloatArray) -> None:
    """Add to `total` the gradient of the bound of a row by weights and biases, and behind it, for each entry of a
    table, how often the row is expected to use it; all times a weight."""
    n_weights, place = len(network.weight), len(network.weight) + len(network.bias)
    begin_of = {}
    for name, table in network.tables.items():
        begin_of[network.index(name)], place = place, place + table.size
    for family in families_in(network, np.flatnonzero(live_variables(network.model, row)).tolist()):
        members = (*family.parents, family.variable)
        if _is_wide(network, family, row):
            _add_wide(network, family, row, q, weight, total)
            continue
        joint = np.full((), weight)
        for v in members:
            share = q[v] if row[v] == HIDDEN else np.eye(network.n_states[v])[row[v]]
            joint = np.multiply.outer(joint, share)
        i = family.variable
        if family.gate == TABLE:
            total[begin_of[i] : begin_of[i] + joint.size] += joint.ravel()
            continue
        by_input = _by_input(family, joint)
        own = slice(int(network.model.threshold[i]), int(network.model.threshold[i + 1]))
        total[n_weights:][own] += by_input.reshape(len(by_input), -1).sum(axis=1)
        edges = range(int(network.model.indptr[i]), int(network.model.indptr[i + 1]))
        for axis, e in enumerate(edges):
            others = tuple(a + 1 for a in range(by_input.ndim - 1) if a != axis)
            block = slice(int(network.model.block[e]), int(network.model.block[e + 1]))
            total[:n_weights][block] += by_input.sum(axis=others)[:, 1:].ravel()


def _add_wide(network: Network, family: Family, row: States, q: Q, weight: float, total: FloatArray) -> None:
    model, i, terms = network.model, family.variable, Wide(family, row, depth(network))
    terms.refine(q)
    by_bias, by_weight = terms.gradient(q)
    total[len(network.weight) :][network.columns_of(i)] += weight * by_bias
    for u, e in zip(family.parents, range(int(model.indptr[i]), int(model.indptr[i + 1])), strict=True):
        block = slice(int(model.block[e]), int(model.block[e + 1]))
        if row[u] == HIDDEN:
            total[block] += weight * by_weight[u][:, 1:].ravel()
        elif row[u] > 0:
            total[block].reshape(len(by_bias), -1)[:, row[u] - 1] += weight * by_bias


def _by_input(family: Family, joint: FloatArray) -> FloatArray:
    """The derivative of the sum of `joint` times ln P by the input of each threshold, thresholds by parents' states."""
    shape, n = joint.shape[:-1], len(family.bias)
    state = np.arange(n + 1)
    found = np.empty((n, *shape))
    for k in range(n):
        x = np.full(shape, family.bias[k])
        for axis, weight in enumerate(family.weights):
            own = np.append(0.0, weight[k]).reshape([-1 if a == axis else 1 for a in range(len(shape))])
            x = x + own
        a, c = gates.loads_of_states(family.gate, k + 1, state)
        found[k] = joint @ a - (joint @ c) * gates.dt(family.gate, x)
    return found
