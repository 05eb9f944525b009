"""Exact means of variables with any number of states and of tables, by elimination; divergences from them."""

from __future__ import annotations

import math

import numpy as np

from sbnet._types import HIDDEN, FloatArray, IndexArray, States
from sbnet.errors import EvidenceError, TooManyHiddenError
from sbnet.exact.enumeration import Effort, check_limit
from sbnet.exact.factors import families_of, log_table
from sbnet.exact.sparse import Sum, patterns
from sbnet.model.network import Network
from sbnet.questions.by_state import probabilities
from sbnet.questions.evidence import observed_means
from sbnet.questions.reduction import live_variables

_MORE = 6
"""Sums for parts of the means may multiply 2**6 times as many numbers as the largest table may have."""
_SMALL = 2.0**24
"""Sums that multiply fewer numbers are not looked at for cheaper parts."""
_SUM = 1e-9  # that means of the states of a variable may be above one, by rounding


def means_of_states(
    network: Network, states: States, effort: Effort, asked: IndexArray | None = None
) -> tuple[FloatArray, FloatArray]:
    """ln P(V), and the probability of each state from the second one on, rows by columns; of the variables asked for,
    if that is said, and NaN for others that are not observed.

    Variables that neither are asked for nor have what is below them drop out of the sum.
    """
    log_p, means = np.empty(len(states)), observed_means(network, states)
    wanted = np.arange(network.n_units) if asked is None else asked
    for rows in patterns(network, states):
        hidden = wanted[states[rows[0], wanted] == HIDDEN]
        for one, mine in _sums(network, states[rows], hidden.tolist(), effort):
            found = one.solve(states[rows], mine)
            log_p[rows] = found.log_p
            for v in mine:
                means[np.ix_(rows, np.r_[network.columns_of(v)])] = found.posteriors[v][:, 1:]
    return log_p, means


def _sums(network: Network, states: States, asked: list[int], effort: Effort) -> list[tuple[Sum, list[int]]]:
    """A sum that has the means of all that are asked for; or, where its tables are too large, several that share them.

    Each brings back only its own variables without observed descendants, and their ancestors.
    """
    whole = _feasible(network, states, asked, effort)
    if isinstance(whole, Sum) and whole.plan.work <= _SMALL:
        return [(whole, asked)]
    most = whole.plan.work if isinstance(whole, Sum) else min(effort.work, 2.0 ** (effort.limit + _MORE))
    parts = _parts(network, states, asked, effort, most) if len(asked) > 1 else []
    if parts:
        return parts
    if isinstance(whole, Sum):
        return [(whole, asked)]
    raise whole


def _parts(
    network: Network, states: States, asked: list[int], effort: Effort, most: float
) -> list[tuple[Sum, list[int]]]:
    """Feasible sums for parts of what is asked for, that multiply fewer numbers in all than `most`; or none."""
    least = _feasible(network, states, [], effort)
    if not isinstance(least, Sum) or least.plan.work >= most:
        return []
    left, found, work = [asked[len(asked) // 2 :], asked[: len(asked) // 2]], list[tuple[Sum, list[int]]](), 0.0
    while left:
        mine = left.pop()
        one = _feasible(network, states, mine, effort._replace(work=most - work))
        if isinstance(one, Sum):
            found.append((one, mine))
            work += one.plan.work
        elif len(mine) == 1:
            return []
        else:
            left += [mine[len(mine) // 2 :], mine[: len(mine) // 2]]
    return found


def _feasible(network: Network, states: States, asked: list[int], effort: Effort) -> Sum | TooManyHiddenError:
    """The sum that has the means of all that are asked for, or why it is too large."""
    seen = states[0].copy()
    seen[asked] = 0
    try:
        one = Sum(network, states, np.flatnonzero(live_variables(network.model, seen)).tolist(), effort.limit)
    except TooManyHiddenError as error:
        return error
    if one.plan.work <= effort.work:
        return one
    bits = math.log2(one.plan.work)
    return TooManyHiddenError(f"exact elimination multiplies 2**{bits:.4g} numbers; use a solver instead")


def kl_of_states(network: Network, states: States, means: FloatArray, limit: int) -> FloatArray:
    """Eq. (12), of each row: ln P(V) - <ln P(H, V)> + <ln Q(H)>, the mean of a variable given its parents by a sum."""
    nothing = np.empty(0, np.int64)
    result, _ = means_of_states(network, states, Effort(limit, None, None, means=False), nothing)
    tables = {network.index(name): table for name, table in network.tables.items()}
    families = families_of(network.model, network.bias, range(network.n_units), tables)
    for r, row in enumerate(states):
        q = [probabilities(means[r, network.columns_of(i)]) for i in range(network.n_units)]
        for i, family in enumerate(families):
            if q[i].sum() > 1.0 + _SUM:
                raise EvidenceError(f"the means of {network.names[i]!r} add up to {q[i].sum():.6g}, which is above one")
            above = [u for u in family.parents if row[u] == HIDDEN]
            check_limit(math.fsum(math.log2(network.n_states[u]) for u in above), limit, len(above))
            weight = np.ones(1)
            for u in [*above, *([i] if row[i] == HIDDEN else [])]:
                weight = np.multiply.outer(weight, q[u])
            own = q[i][q[i] > 0.0]  # one if it is observed
            log_p = log_table(family, row[None, :])
            with np.errstate(invalid="ignore"):  # impossible evidence has no posterior
                result[r] += own @ np.log(own) - float((weight * np.where(weight > 0.0, log_p, 0.0)).sum())
    return result
