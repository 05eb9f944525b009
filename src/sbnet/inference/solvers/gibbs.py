"""Gibbs sampling, the rival that the paper compares with."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from sbnet import checks
from sbnet._types import HIDDEN, BoolArray, FloatArray, RngLike, States
from sbnet.inference.chains import Length, gibbs_means
from sbnet.inference.solution import Chains, Solution, Status, codes
from sbnet.inference.solvers.families import chain_means
from sbnet.model.network import Network
from sbnet.questions.reduction import live_variables
from sbnet.questions.support import has_zeros, impossible

_AGREE = 1.05


@dataclass(frozen=True)
class Gibbs:
    """Gibbs sampling: posterior means with a Monte Carlo error. It has no bound, and says so (NaN).

    Each sweep draws every hidden variable given all others; the mean of a variable is the average of its conditional
    probabilities, or of those of each of its states from the second one on. Several chains from random states give the
    error and R-hat, which is near 1 if they agree. Where variables have tables, chains start from particles: states of
    positive probability; so do those that would end in a state that cannot be. Zeros may keep a chain from where it
    should go, which R-hat tells only if chains started on both sides.

    Parameters
    ----------
    samples : int
        Sweeps kept in each chain.
    burn_in : int
        Sweeps thrown away at the start of each chain.
    chains : int
        Number of chains, two or more.
    rng : int or numpy.random.Generator
        Seed. Equal seeds give equal answers, whatever the number of threads and wherever a row stands in a table.

    Examples
    --------
    >>> import sbnet as sb
    >>> net = sb.from_edges({("rain", "wet"): 2.0, ("sprinkler", "wet"): 1.5}, bias={"rain": -1.0})
    >>> chains = sb.infer(net, {"wet": 1}, solver=sb.Gibbs(samples=2000, rng=0))
    >>> bool(abs(chains["rain"] - sb.exact_posterior(net, {"wet": 1})["rain"]) < 0.05)
    True
    """

    samples: int = 1000
    burn_in: int = 100
    chains: int = 4
    rng: RngLike = 0
    knows_states: ClassVar[bool] = True

    def __post_init__(self) -> None:
        checks.whole("samples", self.samples, 2)
        checks.whole("burn_in", self.burn_in, 0)
        checks.whole("chains", self.chains, 2)

    @cached_property
    def _seed(self) -> np.uint64:
        return checks.generator(self.rng).integers(2**64, dtype=np.uint64)

    def solve(self, network: Network, states: States, *, start: FloatArray | None, trace: bool) -> Solution:
        """Run the chains of every row. They start from random states; `start` is not used.

        See :meth:`sbnet.solvers.Solver.solve`.
        """
        n = len(states)
        length = Length(self.samples, self.burn_in, self.chains)
        if network.tables:
            means, within = chain_means(network, states, self._seed, *length)
        else:
            means, within, last = gibbs_means(network.model, states, network.bias, self._seed, length)
            for r in np.flatnonzero(_stuck(network, states, last)):
                means[r : r + 1], within[r : r + 1] = chain_means(network, states[r : r + 1], self._seed, *length)
        between = means.var(axis=1, ddof=1)
        inside = within.mean(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            r_hat = np.sqrt((self.samples - 1) / self.samples + between / inside)
        r_hat = np.where(between <= 1e-24, 1.0, r_hat)  # a unit that never moves, in any chain
        status = codes(np.all(r_hat < _AGREE, axis=1), Status.MIXED, Status.NOT_MIXED)
        chains = Chains(np.sqrt(between / self.chains), r_hat)
        sweeps = np.full(n, self.samples + self.burn_in)
        return Solution(np.full(n, np.nan), means.mean(axis=1), status, sweeps, chains=chains)


def _stuck(network: Network, states: States, last: States) -> BoolArray:
    """Rows in which a chain ended in a state that cannot be, and is only rare where kernels count: rows by chains."""
    if not has_zeros(network):
        return np.zeros(len(states), np.bool_)
    live = np.array([live_variables(network.model, row) for row in states], np.bool_).reshape(states.shape)
    ends = np.where(live[:, None], last, HIDDEN).reshape(-1, states.shape[1])
    gone = impossible(network, ends).reshape(last.shape[:2])
    return np.logical_or.reduce(gone, axis=1)  # type: ignore[no-any-return]
