"""Exact means of variables with any number of states and of tables, by elimination."""

from __future__ import annotations

import numpy as np

from sbnet._types import HIDDEN, FloatArray, IndexArray, States
from sbnet.exact.enumeration import Effort
from sbnet.exact.sparse import Sum, patterns
from sbnet.model.network import Network
from sbnet.questions.evidence import observed_means
from sbnet.questions.reduction import live_variables


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
        found = Sum(network, states[rows], variables, effort.limit).solve(states[rows], hidden.tolist())
        log_p[rows] = found.log_p
        for v in hidden.tolist():
            means[np.ix_(rows, np.r_[network.columns_of(v)])] = found.posteriors[v][:, 1:]
    return log_p, means
