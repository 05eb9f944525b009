"""Sums over all states where they are small: mean field theory is overconfident of one cause where several would do."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import ClassVar, TypeVar

import numpy as np

from sbnet._types import FloatArray, IndexArray, States
from sbnet.errors import TooManyHiddenError
from sbnet.exact.enumeration import Effort, enumerate_states
from sbnet.exact.of_states import means_of_states
from sbnet.exact.predictions import barren_means
from sbnet.exact.sparse import patterns
from sbnet.inference import Solution, Solver, Status
from sbnet.inference.solution import Gather
from sbnet.model.network import Network
from sbnet.parallel.blocks import Taken
from sbnet.questions.prediction import predict_rows
from sbnet.questions.reduction import absorb

T = TypeVar("T")

LIMIT = 18
"""The logarithm to base 2 of the largest table of a small sum, some tenths of a second; or as many positive findings of
independent causes."""
WIDE, _WORK = 22, 2.0**28
"""The largest table where variables have states and tables, of which one is seldom as large as the largest; and how
many numbers are multiplied for a row, some seconds."""
_MOST = 2000
"""Sums more for the means of units without observed descendants, in one block of rows."""


@dataclass(frozen=True)
class Sums:
    """Sums over all states, as a solver.

    Parameters
    ----------
    wanted : frozenset of str
        Variables whose means are exact even if nothing below them is observed; each such variable of a row takes a sum
        of its own. The others without observed descendants have the prediction of independent parents. Where variables
        have states or tables, the means of all are exact, or, if that takes too large a sum, of these alone. They go by
        name, since a part of a network numbers them in another way.
    work : float
        Numbers that are multiplied for a row of variables with states and tables, at most, if some seconds' worth is
        too much.
    """

    wanted: frozenset[str] = frozenset()
    work: float = math.inf
    knows_states: ClassVar[bool] = True

    def solve(self, network: Network, states: States, *, start: FloatArray | None, trace: bool) -> Solution:
        """Sum; a wanted unit that dropped out of the sum is brought back."""
        if not network.is_binary:
            bound, means = self._of_states(network, states)
            done = np.full(len(states), Status.EXACT.code)
            return Solution(bound, means, done, np.zeros(len(states), np.int64))
        effort = Effort(LIMIT, 1, progress=False)
        bound, means = enumerate_states(network, states, effort)
        below = np.flatnonzero(np.diff(network.graph.indptr)).tolist()  # a variable without parents has its prior
        wanted = np.array([i for i in below if network.names[i] in self.wanted], np.int64)
        rows, which = np.nonzero(np.isnan(means[:, wanted]))
        if len(rows) > _MOST:
            raise TooManyHiddenError(f"{len(rows):,} more sums are needed; use a solver instead")
        predict_rows(network.model, states, absorb(network, states), means)
        means[rows, wanted[which]] = barren_means(network, Taken(states, rows), bound[rows], wanted[which], effort)
        n = len(states)
        return Solution(bound, means, np.full(n, Status.EXACT.code), np.zeros(n, np.int64))

    def _of_states(self, network: Network, states: States) -> tuple[FloatArray, FloatArray]:
        """All means; where those take too large a sum, those that are wanted, and NaN for the others."""
        effort = Effort(WIDE, 1, progress=False, work=min(self.work, _WORK))
        try:
            return means_of_states(network, states, effort)
        except TooManyHiddenError:
            if not self.wanted:
                raise
            asked = np.array([i for i, name in enumerate(network.names) if name in self.wanted], np.int64)
            return means_of_states(network, states, effort, asked)

    def sums(self, network: Network, names: Iterable[str]) -> bool:
        """Are the means of all these variables exact, whatever is observed?"""
        if not network.is_binary:
            return not self.wanted or self.wanted.issuperset(names)
        return all(name in self.wanted or not network.parents(name) for name in names)


@dataclass(frozen=True)
class Best:
    """Sums over all states in the rows where they are small, another solver in the others; the status tells them apart.

    Rows are taken together where the same variables are observed, and no row depends on the others.
    """

    other: Solver
    wanted: frozenset[str] = frozenset()
    knows_states: ClassVar[bool] = True

    def solve(self, network: Network, states: States, *, start: FloatArray | None, trace: bool) -> Solution:
        """Sum; a row for which that is too large is left to the other solver."""
        gather, left, sums = Gather(len(states), len(network.bias)), list[IndexArray](), Sums(self.wanted)
        most = max(1, _MOST // network.n_units)
        for alike in patterns(network, states):
            for rows in np.split(alike, range(most, len(alike), most)):
                try:
                    gather.put(rows, sums.solve(network, states[rows], start=None, trace=False))
                except TooManyHiddenError:
                    left.append(rows)
        if left:
            rows = np.concatenate(left)
            gather.put(rows, self.other.solve(network, states[rows], start=None, trace=False))
        return gather.solution()


def best(ask: Callable[[Solver | None], T], wanted: Iterable[str] = ()) -> tuple[T, bool]:
    """The answer of a function that takes a solver: by sums if they are small, else of mean field
    theory; and whether it is of sums."""
    try:
        return ask(Sums(frozenset(wanted))), True
    except TooManyHiddenError:
        return ask(None), False
