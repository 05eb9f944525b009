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
        seen = states[rows[0]].copy()
        seen[hidden] = 0
        variables = np.flatnonzero(live_variables(network.model, seen)).tolist()
        one = Sum(network, states[rows], variables, effort.limit)
        if one.plan.work > effort.work:
            bits = math.log2(one.plan.work)
            raise TooManyHiddenError(f"exact elimination multiplies 2**{bits:.4g} numbers; use a solver instead")
        found = one.solve(states[rows], hidden.tolist())
        log_p[rows] = found.log_p
        for v in hidden.tolist():
            means[np.ix_(rows, np.r_[network.columns_of(v)])] = found.posteriors[v][:, 1:]
    return log_p, means


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
            result[r] += own @ np.log(own) - float((weight * np.where(weight > 0.0, log_p, 0.0)).sum())
    return result
