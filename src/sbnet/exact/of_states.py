"""Exact means of variables with any number of states, those without observed descendants included."""

from __future__ import annotations

import numpy as np

from sbnet._types import FloatArray, IndexArray, States
from sbnet.exact.enumeration import Effort, enumerate_states
from sbnet.model.network import Network


def means_of_states(
    network: Network, states: States, effort: Effort, asked: IndexArray | None = None
) -> tuple[FloatArray, FloatArray]:
    """ln P(V), and the probability of each state from the second one on, rows by columns.

    A variable that drops out of the sum has P(v = s | V) = P(v = s, V) / P(V); only those asked for, if that is said.
    """
    variable, state = network.columns
    log_p, means = enumerate_states(network, states, effort)
    open_ = np.isnan(means)
    if asked is not None:
        open_ &= np.isin(variable, asked)
    rows, columns = np.nonzero(open_)
    if len(rows):
        given = states[rows]
        given[np.arange(len(rows)), variable[columns]] = state[columns]
        log_share = enumerate_states(network, given, effort._replace(means=False))[0] - log_p[rows]
        means[rows, columns] = np.exp(np.minimum(log_share, 0.0))
    return log_p, means
