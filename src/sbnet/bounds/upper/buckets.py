r"""An upper bound on ln P(evidence) where variables have tables: mini-buckets (Dechter & Rish 2003).

Hidden variables are summed out one by one, each from the product of the factors that it is in. Where that product would
be too large, the factors are put into smaller groups, and

.. math:: \sum_s \prod_g F_g(s) \le \sum_s F_1(s) \prod_{g > 1} \max_s F_g(s)

since no factor is negative. With room enough there is one group, and the sum is exact. A variable of thresholds with
more parents than fit in a table is replaced by something larger: ln P(v = k | x) is concave in each input,
:math:`a x - c\,t(x)` with t convex and c not negative, and a tangent is a product with one factor for each parent.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from sbnet._types import HIDDEN, FloatArray, IndexArray, States
from sbnet.bounds import margins
from sbnet.exact.factors import Family, absorbed, families_of, log_table
from sbnet.model import gates
from sbnet.model.network import CERTAIN, Network
from sbnet.questions.reduction import live_variables


class Factor(NamedTuple):
    """The logarithm of a factor, with an axis for each of its variables, whose numbers rise."""

    axes: tuple[int, ...]
    log: FloatArray


class Bounded(NamedTuple):
    """A bound, whether nothing was lost, and the variables of the largest product, which are worth splitting."""

    bound: float
    exact: bool
    widest: tuple[int, ...]


def bucket_bound(network: Network, row: States, room: float) -> Bounded:
    """The bound of one row, with products of at most 2**room numbers; rounding is covered."""
    live = live_variables(network.model, row)
    factors, widest = _factors(network, row, np.flatnonzero(live).tolist(), room)
    exact = not widest
    constant = math.fsum(float(factor.log) for factor in factors if not factor.axes)
    factors = [factor for factor in factors if factor.axes]
    left = {v for factor in factors for v in factor.axes}
    while left:
        v = min(left, key=lambda u: (_bits(network.n_states, _joint(_near(factors, u))), u))
        left.remove(v)
        near = _near(factors, v)
        factors = [factor for factor in factors if v not in factor.axes]
        groups = _grouped(network.n_states, near, room)
        if len(groups) > 1:
            exact, widest = False, max(widest, _joint(near), key=len)
        for k, group in enumerate(groups):
            whole = _product(network.n_states, group)
            axis = whole.axes.index(v)
            log = np.logaddexp.reduce(whole.log, axis=axis) if k == 0 else whole.log.max(axis=axis)
            rest = tuple(u for u in whole.axes if u != v)
            if rest:
                factors.append(Factor(rest, log))
            else:
                constant += float(log)
    if constant == -math.inf:
        return Bounded(constant, exact, widest)
    margin = margins.of_elimination(network, live) + 1e-13 * (abs(constant) + len(network.bias))
    return Bounded(min(constant + margin, 0.0), exact, widest)


def split_bound(network: Network, row: States, room: float, units: Sequence[int]) -> float:
    """The bound with some hidden variables enumerated: the sum of the bounds of their joint states."""
    rows = row[None, :]
    for v in units:
        rows = np.repeat(rows, network.n_states[v], axis=0)
        rows[:, v] = np.tile(np.arange(network.n_states[v]), len(rows) // network.n_states[v])
    bounds = np.array([bucket_bound(network, one, room).bound for one in rows])
    possible = bounds[bounds > -np.inf]
    return min(margins.log_sum_above(possible), 0.0) if len(possible) else -math.inf


def _bits(n_states: IndexArray, axes: tuple[int, ...]) -> float:
    return math.fsum(math.log2(n_states[v]) for v in axes)


def _near(factors: list[Factor], v: int) -> list[Factor]:
    return [factor for factor in factors if v in factor.axes]


def _joint(factors: list[Factor]) -> tuple[int, ...]:
    return tuple(sorted({v for factor in factors for v in factor.axes}))


def _grouped(n_states: IndexArray, factors: list[Factor], room: float) -> list[list[Factor]]:
    """Groups whose products have room, the largest factors first, each where most of its variables are."""
    groups = list[list[Factor]]()
    for factor in sorted(factors, key=lambda one: -one.log.size):
        fits = [group for group in groups if _bits(n_states, _joint([*group, factor])) <= room]
        if fits:
            max(fits, key=lambda group: len(set(_joint(group)) & set(factor.axes))).append(factor)
        else:
            groups.append([factor])
    return groups


def _product(n_states: IndexArray, factors: list[Factor]) -> Factor:
    axes = _joint(factors)
    total = np.zeros([n_states[v] for v in axes])
    for factor in factors:
        total = total + factor.log.reshape([n_states[v] if v in factor.axes else 1 for v in axes])
    return Factor(axes, total)


# --- the factors that are given ---------------------------------------------------------------------------------------


def _factors(network: Network, row: States, live: list[int], room: float) -> tuple[list[Factor], tuple[int, ...]]:
    """The factors of families, given the evidence; and the hidden variables of the largest one that is replaced."""
    tables, found = {network.index(name): table for name, table in network.tables.items()}, list[Factor]()
    widest: tuple[int, ...] = ()
    for family in families_of(network.model, network.bias, live, tables):
        axes = tuple(v for v in (*family.parents, family.variable) if row[v] == HIDDEN)
        if family.table is None and _bits(network.n_states, axes) > room:
            found += _tangents(family, row)
            widest = max(widest, _by_weight(family, axes), key=len)
        else:
            found.append(_sorted(axes, log_table(family, row[None, :])[0]))
    return found, widest


def _by_weight(family: Family, axes: tuple[int, ...]) -> tuple[int, ...]:
    """The hidden variables of a family, parents of large weights first."""
    size = {u: -float(np.abs(weight).max()) for u, weight in zip(family.parents, family.weights, strict=True)}
    return tuple(sorted(axes, key=lambda v: size.get(v, 0.0)))


def _sorted(axes: tuple[int, ...], log: FloatArray) -> Factor:
    order = sorted(range(len(axes)), key=axes.__getitem__)
    return Factor(tuple(axes[k] for k in order), log.transpose(order))


def _tangents(family: Family, row: States) -> list[Factor]:
    """Factors whose product is nowhere below P(v | parents): tangents at the mean input, each parent apart."""
    v, x = family.variable, np.minimum(absorbed(family, row[None, :])[0], CERTAIN)
    weights = (np.hstack([np.zeros((len(x), 1)), np.minimum(w, CERTAIN)]) for w in family.weights)
    hidden = list(zip(family.parents, weights, strict=True))
    hidden = [(u, w) for u, w in hidden if row[u] == HIDDEN]
    states = np.arange(len(x) + 1) if row[v] == HIDDEN else row[v : v + 1].astype(np.int64)
    at = x + sum((w.mean(axis=1) for _, w in hidden), np.zeros(len(x)))
    alone, slopes = np.zeros(len(states)), np.zeros((len(states), len(x)))
    for k in range(len(x)):
        a, c = gates.loads_of_states(family.gate, k + 1, states)
        t, dt = gates.t(family.gate, at[k : k + 1])[0], gates.dt(family.gate, at[k : k + 1])[0]
        slopes[:, k] = a - c * dt
        alone += a * x[k] - c * (t + dt * (x[k] - at[k]))
    if row[v] != HIDDEN:
        return [Factor((), alone[0]), *(Factor((u,), (slopes @ w)[0]) for u, w in hidden)]
    return [Factor((v,), alone), *(_sorted((v, u), slopes @ w) for u, w in hidden)]
