"""An interval for ln P(evidence) that holds with confidence: a bet on the mean of bounded weights."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from sbnet._types import FloatArray, States
from sbnet.bounds import margins
from sbnet.bounds.upper.proposal import Proposal, propose
from sbnet.bounds.upper.regions import Parameters
from sbnet.certificates.betting import Plan, bet
from sbnet.certificates.enclosure import Bounded
from sbnet.inference.importance import seeds_of
from sbnet.kernels.random import uniforms

DRAWS = {"fast": 2**18, "normal": 2**20, "high": 2**22}
"""Weights that are drawn at most, by effort."""
WIDTH = 0.1
"""Nats: an interval as narrow as that is enough, unless told otherwise."""
_EDGES = 4096  # in networks with more, as many fewer weights are drawn
log_sum = np.logaddexp.reduce
_ALPHA = 0.75  # the share of the draws from the proposal of the upper bound; weights are at most U / alpha


class Sampled(NamedTuple):
    """Both bounds of ln P(evidence), an estimate of it and its standard error, and the number of weights drawn."""

    low: float
    high: float
    estimate: float
    error: float
    samples: int

    def within(self, lower: float, upper: float) -> Sampled:
        """No bound, and no estimate, outside of an interval that is certain."""
        low, high, estimate = (min(max(x, lower), upper) for x in self[:3])
        return self._replace(low=low, high=high, estimate=estimate)


class _Sampler(NamedTuple):
    """Proposals of all subproblems, and their probabilities: first those of the upper bound, then factorial ones."""

    states: States
    seed: np.uint64
    proposals: list[Proposal]
    log_bounds: FloatArray
    log_factorial: FloatArray  # what each factorial distribution adds to U q: its share, in units of weights
    cumulative: FloatArray  # running sums of the probabilities

    def weights(self, first: int, n: int) -> FloatArray:
        """Weights in units of their bound U / alpha: numbers in [0, 1] with the mean P(V) alpha / U."""
        seeds = seeds_of(self.seed, self.states, n, first)
        chosen = np.minimum(np.searchsorted(self.cumulative, uniforms(seeds), side="right"), len(self.cumulative) - 1)
        subproblem, factorial = chosen % len(self.proposals), chosen >= len(self.proposals)
        weights = np.empty(n)
        for c in np.unique(subproblem):
            mine = np.flatnonzero(subproblem == c)
            log_p, log_q, log_other = self.proposals[c].draw(seeds[mine], factorial[mine])
            below = np.logaddexp(self.log_bounds[c] + log_q, self.log_factorial[c] + log_other)
            weights[mine] = np.exp(np.minimum(log_p + self.proposals[c].constant - below, 0.0))
        return weights


def sample(bounded: Bounded, plan: Plan, seed: int) -> Sampled:
    """An interval for ln P(evidence) that fails with a probability of at most `plan.delta`."""
    sampler = _sampler(bounded, np.uint64(seed))
    log_scale = float(log_sum(sampler.log_bounds)) - math.log(_ALPHA)
    margin = max(p.margin for p in sampler.proposals) + 64.0 * margins.UNIT * (abs(log_scale) + 4.0)
    variation = max(p.variation for p in sampler.proposals) + 16.0 * margins.UNIT * len(sampler.cumulative)
    size = max(len(p.joint.links) + 32 * p.drawn for p in sampler.proposals)

    most = max(int(plan.most * min(_EDGES / max(size, 1), 1.0)), 1)
    found = bet(sampler.weights, plan._replace(most=most))
    low = math.log(found.low - variation) - margin if found.low > variation else -math.inf
    high = math.log(found.high + variation) + margin
    estimate, error = -math.inf, 1.0
    if found.mean > 0.0:
        estimate, error = math.log(found.mean) + log_scale, found.error / found.mean
    low, high = low + log_scale, high + log_scale
    return Sampled(low, high, min(max(estimate, low), high), error, found.samples)


def _sampler(bounded: Bounded, seed: np.uint64) -> _Sampler:
    subproblems, solution = bounded.subproblems, bounded.mean_field_in_each()
    proposals = []
    for r, means in enumerate(solution.means):
        parameters = Parameters(subproblems.edge[r], subproblems.unit[r])
        proposals.append(propose(bounded.reduced(r), bounded.limits, parameters, means))
    log_bounds = np.array([p.log_bound + p.constant for p in proposals])
    log_shares = solution.bound - log_sum(solution.bound)
    log_factorial = math.log1p(-_ALPHA) - math.log(_ALPHA) + log_sum(log_bounds) + log_shares
    of_bounds, of_factorials = _ALPHA * np.exp(log_bounds - log_sum(log_bounds)), (1.0 - _ALPHA) * np.exp(log_shares)
    probabilities = np.concatenate([of_bounds, of_factorials])
    cumulative = np.cumsum(probabilities / probabilities.sum())
    return _Sampler(bounded.row.states, seed, proposals, log_bounds, log_factorial, cumulative)
