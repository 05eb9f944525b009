"""A good joint state of variables with states, where elimination is too large to find the best: steps uphill.

Particles are followed: each variable in turn takes its best state given all others, until nothing changes; then some
are drawn anew from that distribution, and it goes uphill again. No state has a larger ln P than the sum over all of
them, so that an upper bound on ln P(evidence) says how much better one might be.
"""

from __future__ import annotations

import numpy as np

from sbnet._types import HIDDEN, States
from sbnet.inference.solvers.families import Numbers, Row, begin, draw, shares
from sbnet.inference.solvers.row_completions import Conditional
from sbnet.kernels.random import streams_of
from sbnet.model.network import Network

_FOLLOWED, _ROUNDS, _MOST = 32, 8, 100
"""States that are followed, how often they leave a summit, and sweeps to reach one at most."""


def good_state(network: Network, row: States, free: list[int], seed: int) -> States:
    """A complete state; variables that are not `free` stay as they are, or are in their first state.

    Raises
    ------
    TooRareError
        If no state of positive probability is found to begin with.
    """
    problem = Row(network, row)
    states = begin(problem, _FOLLOWED, np.uint64(seed))
    numbers = Numbers(streams_of(np.array([seed], np.uint64), _FOLLOWED)[0])
    for v in problem.barren:
        states[:, v] = draw(shares(problem.all[v].log_p(states)), numbers.next())
    moving = [v for v in free if row[v] == HIDDEN]
    children = {v: [problem.all[i] for i in free if v in problem.all[i].parents] for v in moving}
    best, log_p = states, np.full(_FOLLOWED, -np.inf)
    for _ in range(_ROUNDS):
        _uphill(problem, states, moving, children)
        new = problem.log_joint(states, free)
        better = new > log_p
        best = np.where(better[:, None], states, best)
        log_p, states = np.maximum(new, log_p), best.copy()
        for v in moving:  # a step of Gibbs sampling for about one in four
            drawn = draw(shares(problem.given_others(v, states, children[v])), numbers.next())
            states[:, v] = np.where(numbers.next() < 0.25, drawn, states[:, v])
    found: States = best[np.argmax(log_p)]
    return found


def _uphill(problem: Row, states: States, moving: list[int], children: dict[int, list[Conditional]]) -> None:
    """All states to summits, in place: no variable alone can be better."""
    for _ in range(_MOST):
        before = states.copy()
        for v in moving:
            states[:, v] = problem.given_others(v, states, children[v]).argmax(axis=1)
        if np.array_equal(before, states):
            return
