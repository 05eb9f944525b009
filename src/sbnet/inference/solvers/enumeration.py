"""Sums over all states where they are small: mean field theory is overconfident of one cause where several would do.

Where they are not, and units are tied to each other, answers come from samples: see :mod:`sbnet.questions.ties`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import ClassVar, TypeVar

import numpy as np

from sbnet._types import FloatArray, IndexArray, States
from sbnet.errors import TooManyHiddenError
from sbnet.exact.enumeration import Effort, enumerate_states
from sbnet.exact.of_states import means_of_states
from sbnet.exact.predictions import barren_means
from sbnet.inference import Chains, MeanField, Solution, Solver, Status
from sbnet.inference.solvers.block_gibbs import block_means
from sbnet.inference.solvers.weighing import weigh
from sbnet.model.network import Network
from sbnet.parallel.blocks import Taken
from sbnet.questions.prediction import predict_rows
from sbnet.questions.reduction import absorb
from sbnet.questions.ties import blocks, tied_rows

T = TypeVar("T")

_LIMIT = 12
"""Coupled hidden units, or positive findings of independent causes, up to which a sum is small: thousands of terms."""
_MOST_EDGES = 1 << 14
"""Rows of larger networks are summed with a kernel."""
_MOST = 2000
"""Sums more for the means of units without observed descendants, in one block of rows."""


@dataclass(frozen=True)
class Sums:
    """Sums over all states, as a solver.

    Parameters
    ----------
    wanted : frozenset of str
        Variables whose means are exact even if nothing below them is observed; each such variable of a row takes a sum
        of its own. The others without observed descendants have the prediction of independent parents. They go by name,
        since a part of a network numbers them in another way.
    """

    wanted: frozenset[str] = frozenset()
    knows_states: ClassVar[bool] = True

    def solve(self, network: Network, states: States, *, start: FloatArray | None, trace: bool) -> Solution:
        """Sum; a wanted unit that dropped out of the sum is brought back."""
        few = network.n_edges <= _MOST_EDGES  # whatever the number of rows, which depends on the clock
        if not network.is_binary:
            bound, means = means_of_states(network, states, Effort(_LIMIT, 1, progress=False, one_by_one=few))
            done = np.full(len(states), Status.CONVERGED.code)
            return Solution(bound, means, done, np.zeros(len(states), np.int64))
        tied = bool(tied_rows(network, states).any())  # tables of such rows are answered from samples, and so is one
        effort = Effort(_LIMIT, 1, progress=False, one_by_one=few, sparse=not tied)
        bound, means = enumerate_states(network, states, effort)
        size = np.diff(network.graph.indptr)
        named = (i for i, name in enumerate(network.names) if name in self.wanted)
        wanted = np.array([i for i in named if size[i]], np.int64)  # a variable without parents has its prior
        rows, which = np.nonzero(np.isnan(means[:, wanted]))
        if len(rows) > _MOST:
            raise TooManyHiddenError(f"{len(rows):,} more sums are needed; use a solver instead")
        predict_rows(network.model, states, absorb(network, states), means)
        means[rows, wanted[which]] = barren_means(network, Taken(states, rows), bound[rows], wanted[which], effort)
        n = len(states)
        return Solution(bound, means, np.full(n, Status.CONVERGED.code), np.zeros(n, np.int64))

    def sums(self, network: Network, names: Iterable[str]) -> bool:
        """Are the means of all these variables exact, whatever is observed?"""
        return all(name in self.wanted or not network.parents(name) for name in names)


@dataclass(frozen=True)
class Sampled:
    """Mean field theory; in rows whose units are tied, means from samples beside its bound.

    The ``sweeps`` of such a row are its samples.
    """

    knows_states: ClassVar[bool] = True

    def solve(self, network: Network, states: States, *, start: FloatArray | None, trace: bool) -> Solution:
        """Solve, and put means and their standard errors in the place of those that say nothing."""
        solution = MeanField().solve(network, states, start=start, trace=False)
        rows = np.flatnonzero(tied_rows(network, states)) if network.is_binary else np.empty(0, np.int64)
        if not len(rows):
            return solution
        means, error = solution.means.copy(), np.full(states.shape, np.nan)
        sweeps = solution.sweeps.copy()
        means[rows], error[rows], sweeps[rows] = sampled_means(network, states[rows])
        chains = Chains(error, np.full(states.shape, np.nan))
        return Solution(solution.bound, means, solution.status, sweeps, chains=chains)


def sampled_means(network: Network, states: States) -> tuple[FloatArray, FloatArray, IndexArray]:
    """Posterior means of all units and their standard errors, rows by units, and the number of samples of each row.

    Raises
    ------
    TooRareError
        If the evidence of a row is too improbable for that.
    """
    if blocks(network) is not None:
        found = block_means(network, states)
        return found.means, found.error, found.chains
    each, back = np.unique(states, axis=0, return_inverse=True)
    means, error, number = zip(*(weigh(network, row) for row in each), strict=True)
    back = back.ravel()
    return np.array(means)[back], np.array(error)[back], np.array(number)[back]


def best(ask: Callable[[Solver | None], T], wanted: Iterable[str] = ()) -> tuple[T, bool]:
    """The answer of a function that takes a solver: by sums if they are small, and whether they were."""
    try:
        return ask(Sums(frozenset(wanted))), True
    except TooManyHiddenError:
        return ask(Sampled()), False
