"""Sums over all states where they are small: mean field theory is too sure of one cause where several would do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from sbnet._types import FloatArray, States
from sbnet.enumeration import Effort, barren_means, enumerate_states
from sbnet.errors import TooManyHiddenError
from sbnet.execution import Taken
from sbnet.inference import Solution, Solver, Status
from sbnet.kernels.rows import predict_rows
from sbnet.network import Network
from sbnet.reduction import absorb

T = TypeVar("T")

_LIMIT = 12
"""Coupled hidden units, or positive findings of independent causes, up to which a sum is small: thousands of terms."""
_MOST = 2000
"""Sums more for the means of units without observed descendants, in one block of rows."""


@dataclass(frozen=True)
class Sums:
    """Sums over all states, as a solver.

    Parameters
    ----------
    wanted : tuple of int
        Units whose means are exact even if nothing below them is observed; each such unit of a row takes a sum of its
        own. The others without observed descendants have the prediction of independent parents.
    """

    wanted: tuple[int, ...] = ()

    def solve(self, network: Network, states: States, *, start: FloatArray | None, trace: bool) -> Solution:
        """Sum; a wanted unit that dropped out of the sum is brought back."""
        effort = Effort(_LIMIT, 1, progress=False)
        bound, means = enumerate_states(network, states, effort)
        size = np.diff(network.graph.indptr)
        wanted = np.array([i for i in self.wanted if size[i]], np.int64)  # a unit without parents has its prior
        rows, which = np.nonzero(np.isnan(means[:, wanted]))
        if len(rows) > _MOST:
            raise TooManyHiddenError(f"{len(rows):,} more sums are needed; use a solver instead")
        predict_rows(network.model, states, absorb(network, states), means)
        means[rows, wanted[which]] = barren_means(network, Taken(states, rows), bound[rows], wanted[which], effort)
        n = len(states)
        return Solution(bound, means, np.full(n, Status.CONVERGED.code), np.zeros(n, np.int64))


def best(ask: Callable[[Solver | None], T], wanted: tuple[int, ...] = ()) -> tuple[T, bool]:
    """The answer of a function that takes a solver: by sums if they are small, and whether they were."""
    try:
        return ask(Sums(wanted)), True
    except TooManyHiddenError:
        return ask(None), False
