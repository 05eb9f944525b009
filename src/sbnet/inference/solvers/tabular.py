"""Mean field theory where variables have tables: all means are sums over the joint states of a family, in NumPy.

Under Q = prod_v Q_v the bound is the sum over families of <ln P(v | parents)>, and of the entropies. It is linear in
each Q_v but for its entropy, so Q_v(s) proportional to exp(field_s) maximises it, one variable after the other. An
entry of zero counts as 1e-300: the bound is then one on a sum that is larger by no more than that.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import scipy

from sbnet._types import Bound, FloatArray, States, Stop
from sbnet.errors import NetworkError, TooManyHiddenError
from sbnet.exact.factors import families_of, log_table
from sbnet.exact.sparse import Sum
from sbnet.inference.solution import Solution, Status, Xi, codes
from sbnet.kernels.codes import LEAST
from sbnet.model.network import Network
from sbnet.questions.reduction import live_variables

_LARGEST = 1 << 18  # entries of the table of a family
_ROUNDING = 1e-13


class _Factor(NamedTuple):
    """ln P of a variable given its parents, what is observed put in: an axis for each hidden variable."""

    axes: tuple[int, ...]
    log_p: FloatArray

    def mean(self, q: dict[int, FloatArray], kept: int | None = None) -> FloatArray:
        """Over all axes but one, the last axis first."""
        value = self.log_p
        for axis in reversed(range(len(self.axes))):
            if self.axes[axis] != kept:
                value = np.moveaxis(value, axis, -1) @ q[self.axes[axis]]
        return value


def solve_tables(
    network: Network, which: Bound, stop: Stop, states: States, start: FloatArray | None, trace: bool
) -> Solution:
    """Solve every row, from equal probabilities (or `start`), and from the most probable state if entries are zero."""
    n = len(states)
    bound, sweeps, converged = np.empty(n), np.empty(n, np.int64), np.empty(n, np.bool_)
    means = np.full((n, len(network.bias)), np.nan)
    path = np.full((n, stop.max_sweeps + 1 if trace else 0), np.nan)
    for r, row in enumerate(states):
        factors, zeros = _factors(network, row)
        hidden = sorted({v for factor in factors for v in factor.axes})
        tries = [_start(network, hidden, None if start is None else start[r])]
        best = _most_probable(network, row) if zeros and start is None else None
        if best is not None:
            tries.append({v: np.eye(network.n_states[v])[best[v]] for v in hidden})
        found = [_ascend(factors, q, stop) for q in tries]
        steps, converged[r] = max(found, key=lambda one: one[0][-1])
        q = tries[int(np.argmax([one[0][-1] for one in found]))]
        margin = _ROUNDING * sum(float(np.abs(factor.log_p).max(initial=1.0)) for factor in factors)
        bound[r], sweeps[r] = steps[-1] - margin, len(steps) - 1
        path[r, : len(steps) if trace else 0] = np.maximum.accumulate(np.array(steps) - margin)[: path.shape[1]]
        _store(network, row, q, means[r])
    status = codes(converged, Status.CONVERGED, Status.MAX_SWEEPS)
    parameters = Xi(which, np.full(means.shape, np.nan))
    return Solution(bound, means, status, sweeps, parameters, trace=path if trace else None)


def _factors(network: Network, row: States) -> tuple[list[_Factor], bool]:
    """The families that the evidence is about; has one of them a probability of zero?"""
    tables = {network.index(name): table for name, table in network.tables.items()}
    live, found, zeros = np.flatnonzero(live_variables(network.model, row)).tolist(), [], False
    for family in families_of(network.model, network.bias, live, tables):
        axes = tuple(v for v in (*family.parents, family.variable) if row[v] < 0)
        if math.prod(int(network.n_states[v]) for v in axes) > _LARGEST:
            raise NetworkError(
                f"variable {network.names[family.variable]!r} has {len(axes)} hidden parents, too many for a sum over "
                "their states, and stands in a network with tables; ask exact_posterior()"
            )
        log_p = log_table(family, row[None, :])[0]
        zeros = zeros or not np.isfinite(log_p).all()
        found.append(_Factor(axes, np.maximum(log_p, math.log(LEAST))))
    return found, zeros


def _start(network: Network, hidden: list[int], start: FloatArray | None) -> dict[int, FloatArray]:
    q = {}
    for v in hidden:
        share = np.full(network.n_states[v], 1.0 / network.n_states[v])
        if start is not None:
            share[1:] = start[network.columns_of(v)]
            share[0] = max(1.0 - share[1:].sum(), 0.0)
        q[v] = share / share.sum()
    return q


def _most_probable(network: Network, row: States) -> States | None:
    """A state of positive probability, found by elimination; none, if that takes too long."""
    try:
        everything = list(range(network.n_units))
        best: States = Sum(network, row[None, :], everything, 22, maximum=True).explain(row[None, :])[1][0]
    except TooManyHiddenError:
        return None
    return best


def _ascend(factors: list[_Factor], q: dict[int, FloatArray], stop: Stop) -> tuple[list[float], bool]:
    """Sweep until the bound rises too little: the bounds on the way, and whether that came about; Q is left in `q`."""
    of = {v: [factor for factor in factors if v in factor.axes] for v in q}
    steps, converged = [_bound(factors, q)], not q
    while len(steps) <= stop.max_sweeps and not converged:
        for v, near in of.items():
            q[v] = scipy.special.softmax(np.sum([factor.mean(q, v) for factor in near], axis=0))
        steps.append(_bound(factors, q))
        converged = steps[-1] - steps[-2] < stop.tol
    return steps, converged


def _bound(factors: list[_Factor], q: dict[int, FloatArray]) -> float:
    energy = math.fsum(float(factor.mean(q)) for factor in factors)
    return energy - math.fsum(float(scipy.special.xlogy(share, share).sum()) for share in q.values())


def _store(network: Network, row: States, q: dict[int, FloatArray], means: FloatArray) -> None:
    """Probabilities of all variables; those that had no part follow from their parents, which come first."""
    tables = {network.index(name): table for name, table in network.tables.items()}
    q = dict(q)
    for family in families_of(network.model, network.bias, range(network.n_units), tables):
        v = family.variable
        if row[v] >= 0:
            means[network.columns_of(v)] = np.arange(1, network.n_states[v]) == row[v]
            continue
        if v not in q:
            p = np.exp(log_table(family, row[None, :])[0])
            hidden = [u for u in family.parents if row[u] < 0]
            for axis, u in reversed(list(enumerate(hidden))):
                p = np.moveaxis(p, axis, -1) @ q[u]
            q[v] = p / p.sum()
        means[network.columns_of(v)] = q[v][1:]
