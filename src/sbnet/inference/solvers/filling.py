"""Missing cells filled in, so that the cells of a row belong together.

The most probable value of each cell by itself may contradict that of another: two copies of a column would differ. The
most probable completion of a row as a whole may be an odd one where many are about equally probable. Of the completions
of a row, that one is taken which has the most cells right in the mean over all of them. A number is better filled in by
what is expected of it, among the states that do not contradict what was filled in for the words of its row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from sbnet._types import HIDDEN, FloatArray, IndexArray, States
from sbnet.inference import Solution, Status
from sbnet.inference.solvers.row_completions import MOST, complete
from sbnet.kernels.codes import TABLE
from sbnet.model.network import Network

_ODD = 0.03
"""A state contradicts the other cells if it has less than this share of the probability of the likeliest one."""


@dataclass(frozen=True, eq=False)
class Filled:
    """Rows without missing cells, and the probabilities of the states of each variable, rows by states."""

    states: States
    probabilities: list[FloatArray]


@dataclass(frozen=True)
class Completed:
    """Completions of rows, as a solver; its bound is ln P, exact where `most` of them are enough, else an estimate."""

    most: int = MOST
    knows_states: ClassVar[bool] = True

    def solve(self, network: Network, states: States, *, start: FloatArray | None, trace: bool) -> Solution:
        """Sum over the completions of each row, or weigh some that are drawn."""
        found = complete(network, states, most=self.most)
        done, sweeps = np.full(len(states), Status.CONVERGED.code), np.zeros(len(states), np.int64)
        return Solution(found.log_p, found.means(network.n_states), done, sweeps)


def fill(network: Network, states: States, numbers: IndexArray, *, most: int = MOST) -> Filled:
    """Every row with its missing cells filled in; the probabilities of `numbers` are without the states that contradict
    the other variables as they were filled in.
    """
    found = complete(network, states, most=most)
    each = [found.probabilities(v, int(n)) for v, n in enumerate(network.n_states)]
    right = np.zeros(len(found.row))
    for v in np.flatnonzero((states == HIDDEN).any(axis=0)).tolist():
        right += each[v][found.row, found.states[:, v]] * (states[found.row, v] == HIDDEN)
    best = np.lexsort((-found.share, -np.round(right, 12), found.row))
    first = np.searchsorted(found.row[best], np.arange(len(states)))
    whole = found.states[best[first]]
    if len(numbers):
        free = np.union1d(numbers, np.flatnonzero(network.gate == TABLE))  # tables say what numbers are, as rules do
        others = whole.copy()
        others[:, free] = states[:, free]
        again = complete(network, others, asked=numbers, most=most)
        for v in numbers.tolist():
            given = again.probabilities(v, int(network.n_states[v]))
            kept = np.where(given >= _ODD * given.max(axis=1, keepdims=True), each[v], 0.0)
            total = kept.sum(axis=1, keepdims=True)
            each[v] = np.where(total > 0.0, kept / np.where(total > 0.0, total, 1.0), given)
    return Filled(whole, each)


def draw(network: Network, states: States, rng: np.random.Generator) -> States:
    """Every row with its missing cells drawn together from their posterior."""
    return complete(network, states, seed=int(rng.integers(2**62))).draw(rng.random(len(states)))
