r"""Both bounds on a sum over independent causes when too many noisy-OR findings are present to sum over them all.

In a subproblem (:mod:`sbnet.bounds.branch_and_bound`) some causes are on and some off; those that are on add to the
leaks of their findings. A few findings, those that are explained least, are *kept*: they are summed over exactly,
together with all free causes (:mod:`sbnet.kernels.firing`). Of each of the others
:math:`f(x) = \ln P = \ln(1 - e^{-x})`, which is concave, gives way to something linear in the causes, which only moves
their log-odds:

- from above a line (Jaakkola & Jordan 1999),
  :math:`f(x) \le \lambda x + \lambda \ln \lambda - (1 + \lambda) \ln(1 + \lambda)` for all :math:`\lambda > 0`. The
  bound is convex in ln λ, and its slope there is λ times the mean of x less ln(1 + 1/λ).
- from below by Jensen's inequality, with Q the causes given the kept findings and with log-odds moved by any τ:
  :math:`\ln P \ge \ln Z_Q - \tau \cdot \langle S \rangle + \sum \langle f(x) \rangle`. The means of f are sums of
  exponentials (:mod:`sbnet.quadrature.lobatto`), each one more sum over the kept findings. So Q is not factorial:
  which of many causes explains a kept finding is left open.

Rounding is covered in both directions: each number is a sum of few numbers whose sizes are known, or the logarithm of a
sum in which nothing cancels.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from sbnet import kernels
from sbnet._types import FloatArray, IndexArray
from sbnet.bounds import margins
from sbnet.bounds.branch_and_bound import branch_and_bound, upper
from sbnet.bounds.upper.descent import OneThread, descend
from sbnet.exact.quickscore import TwoLevels
from sbnet.kernels.codes import LEAST
from sbnet.kernels.firing import Firing, edge_t
from sbnet.model.gates import sigma
from sbnet.quadrature import lobatto

_STEEPEST = 40.0  # of the logarithm of a slope: e^40 is far beyond what matters
_TINY = 1e-250  # a smaller sum may have lost digits among denormal numbers, and is not relied on
_SPLIT_WEIGHT = 3.0  # a pull beyond that decides alone; it counts no more for the choice of a split
_ROUNDS = 6  # of improvements to Q
_CANDIDATES = 6  # causes at which a split is tried, until one lowers the bound


class Found(NamedTuple):
    """Both bounds, and from how many subproblems."""

    lower: float
    upper: float
    subproblems: int


class Steps(NamedTuple):
    """How far the slopes of a subproblem are taken."""

    most: int
    tol: float


_FIRST, _NEXT = Steps(60, 2e-5), Steps(20, 2e-4)  # of the whole, and of a subproblem that starts where its whole ended


def enclose(levels: TwoLevels, kept: int, subproblems: int) -> Found:
    """Bounds with up to `kept` findings summed over, never all of several, in up to so many subproblems of causes."""
    network = _Network(levels, min(kept, max(levels.positive - 1, 1)))
    with np.errstate(all="ignore"), OneThread():  # what overflows is no bound, and is given up
        *_, last = branch_and_bound(
            [network.whole()], lambda problems: [problem.halves() for problem in problems], most=subproblems
        )
        made = sorted(last.subproblems(), key=lambda subproblem: -subproblem.upper)
        parts = np.array([subproblem.lower() for subproblem in made])
        known = parts[parts > -np.inf]
        lower = margins.log_sum_below(known) if len(known) else -np.inf
        return Found(lower, upper(made), len(made))


class _Network:
    """Causes by findings, and what all subproblems share."""

    def __init__(self, levels: TwoLevels, kept: int) -> None:
        touched, place = np.unique(levels.parent, return_inverse=True)
        self.kept = kept
        self.constant = levels.constant
        self.leak = levels.leak
        self.log_odds = levels.log_odds[touched]
        self.weight = np.zeros((len(touched), levels.positive))
        self.weight[place, np.repeat(np.arange(levels.positive), np.diff(levels.ptr))] = levels.weight
        self.off = levels.constant - float(np.logaddexp(0.0, self.log_odds).sum())  # ln P with all causes off
        self.size = abs(levels.constant) + float(np.abs(self.log_odds).sum() + self.weight.sum() + self.leak.sum())

    def whole(self) -> _Subproblem:
        """All states: no cause is on or off yet."""
        n, m = self.weight.shape
        most = self.constant + margins.UNIT * (n + m + 64) * self.size  # no probability is above 1
        return _Subproblem(self, np.full(n, -1, np.int8), np.zeros(m), most, _FIRST)


@dataclass
class _Subproblem:
    """Some causes on (1), some off (0), the others free (-1); `start` are logarithms of slopes, `whole` a bound."""

    network: _Network
    states: np.ndarray
    start: FloatArray
    whole: float
    steps: Steps
    log_slope: FloatArray = field(init=False)  # by finding
    upper: float = field(init=False)
    means: FloatArray = field(init=False)  # of the free causes, at the end of the descent

    def __post_init__(self) -> None:
        net, on = self.network, self.states == 1
        self.free = np.flatnonzero(self.states < 0)
        self.leak = net.leak + net.weight[on].sum(axis=0)
        self.fixed = net.off + float(net.log_odds[on].sum())
        order = np.argsort(self.leak, kind="stable")  # the least explained first
        self.kept, self.others = np.sort(order[: net.kept]), np.sort(order[net.kept :])
        self.log_odds, weight = net.log_odds[self.free], net.weight[self.free]
        self.weight = weight[:, self.others]
        self.firing = firing_of(weight[:, self.kept], self.leak[self.kept])
        self.means = np.zeros(len(self.free))
        x = self.start[self.others]
        value = descend(self._above, x, *self.steps) if len(x) else self._above(x, np.empty(0))
        self.log_slope = self.start.copy()
        self.log_slope[self.others] = x
        value += self._margin(np.exp(np.clip(x, -_STEEPEST, _STEEPEST)))
        self.upper = value if value < self.whole else self.whole  # P of a part is at most that of the whole; no NaN

    def _above(self, x: FloatArray, gradient: FloatArray) -> float:
        """The upper bound at slopes e^x, and its gradient."""
        x = np.clip(x, -_STEEPEST, _STEEPEST)
        slope, leak = np.exp(x), self.leak[self.others]
        value, self.means = self._sum(self.log_odds + self.weight @ slope)
        gradient[:] = slope * (leak + self.means @ self.weight - np.log1p(1.0 / slope))
        return value + float(np.sum(slope * (leak + x) - (1.0 + slope) * np.log1p(slope)))

    def _sum(self, log_odds: FloatArray) -> tuple[float, FloatArray]:
        """ln of the sum over free causes with other log-odds, of the kept findings alone, and the means under it."""
        total, shares = kernels.firing.with_shares(self.firing, sigma(-log_odds), sigma(log_odds))
        if not total > _TINY:
            return np.inf, np.zeros(len(self.free))
        return self.fixed + float(np.logaddexp(0.0, log_odds).sum()) + float(np.log(total)), shares / total

    def _margin(self, slope: FloatArray) -> float:
        """How far the upper bound may be off, by rounding: few operations on each of its numbers, added up."""
        moved = float((self.weight @ slope).sum()) + float(slope @ self.leak[self.others])
        lines = float(np.sum(slope * (np.abs(np.log(slope)) + 1.0) + (1.0 + slope) * np.log1p(slope)))
        return self._roundings * (self.network.size + 2.0 * len(self.free) + moved + lines)

    @cached_property
    def _roundings(self) -> float:
        """The rounding error of any number of this subproblem, relative to the sizes of the numbers behind it."""
        n, m = self.network.weight.shape
        return margins.UNIT * (4 * len(self.firing.edges) + 6 * (n + m) + 64)

    @property
    def priority(self) -> float:
        """The larger its part of P(V) may be, the more a split may take off."""
        return self.upper

    def halves(self) -> tuple[_Subproblem, ...]:
        """Its states in two parts, at the cause that promises most; none if no split lowers the bound."""
        slope = np.exp(np.clip(self.log_slope[self.others], -_STEEPEST, _STEEPEST))
        pull = np.minimum(self.weight * slope, _SPLIT_WEIGHT)
        score = self.means * (1.0 - self.means) * np.sum(pull * pull, axis=1)
        for k in np.argsort(-score, kind="stable")[:_CANDIDATES]:
            if score[k] > 0.0:
                both = np.repeat(self.states[None, :], 2, axis=0)
                both[:, self.free[k]] = 0, 1
                first, second = (
                    _Subproblem(self.network, states, self.log_slope, self.upper, _NEXT) for states in both
                )
                if np.logaddexp(first.upper, second.upper) < self.upper:
                    return first, second
        return ()

    def lower(self) -> float:
        """The lower bound at the best τ that a few rounds find; -∞ where digits are lost."""
        terms = [_Term.of(self.weight[:, k], float(self.leak[i])) for k, i in enumerate(self.others)]
        best, tau = -np.inf, np.zeros(len(self.free))
        moved, _ = _pulls(terms, self.means)
        for _ in range(_ROUNDS):  # half the way each time: the whole way may overshoot, and come back
            value, means = self._sum(self.log_odds + moved)
            pulled, cost = _pulls(terms, means)
            rough = value - float(moved @ means) - cost
            if rough > best:
                best, tau = rough, moved
            moved = 0.5 * (moved + pulled)
        return self._below(tau, terms)

    def _below(self, tau: FloatArray, terms: list[_Term]) -> float:
        """The lower bound at τ."""
        log_odds = self.log_odds + tau
        value, means = self._sum(log_odds)
        off, on, cost = sigma(-log_odds), sigma(log_odds), float(tau @ means)
        every, none = np.arange(len(off)), np.zeros(0, np.int64)
        whole = kernels.firing.all_fired(self.firing, off, on, every, none, np.empty((1, 0)))[0]
        if not whole > _TINY:
            return -np.inf
        for term in terms:
            parts = kernels.firing.all_fired(self.firing, off, on, term.others, term.touched, term.lost)
            cost += float(term.weight @ parts) / float(whole) + term.beyond
        size = self.network.size + 2.0 * (len(self.free) + float(tau.sum()) + cost)
        found = value - cost - self._roundings * size
        return found if found < np.inf else -np.inf


def firing_of(weight: FloatArray, leak: FloatArray) -> Firing:
    """Causes by findings, for sums without a minus sign."""
    cause, finding = np.nonzero(weight)
    theta = weight[cause, finding]
    ptr = np.concatenate([[0], np.cumsum(np.bincount(cause, minlength=len(weight)))]).astype(np.int64)
    by_set = np.ones(1)
    for fires in -np.expm1(-leak):
        by_set = np.concatenate([by_set * fires, by_set])
    edges = np.empty(len(theta), edge_t)
    for name, column in zip(edge_t.names, (np.int64(1) << finding, -np.expm1(-theta), np.exp(-theta)), strict=True):
        edges[name] = column
    return Firing(ptr, edges, by_set)


class _Term(NamedTuple):
    """-ln(1 - e^-x) of one finding from above, as a sum of exponentials e^-sx."""

    touched: IndexArray  # its causes
    others: IndexArray
    weight: FloatArray  # by node, e^-s leak in it
    lost: FloatArray  # e^-s theta, nodes by causes
    beyond: float  # what is left of it

    @classmethod
    def of(cls, theta: FloatArray, leak: float) -> _Term:
        n = lobatto.nodes_for(leak)
        s, reach = lobatto.NODES[:n], lobatto.UNTIL[n - 1] * max(leak, LEAST)
        touched, others = np.flatnonzero(theta > 0.0), np.flatnonzero(theta == 0.0)
        lost, beyond = np.exp(-np.outer(s, theta[touched])), float(np.exp(-reach) / reach)
        return cls(touched, others, lobatto.WEIGHTS[:n] * np.exp(-s * leak), lost, beyond)

    def pull(self, means: FloatArray, into: FloatArray) -> float:
        """Add what the finding adds to the log-odds of each cause, were they independent with these means.

        Also the mean of the term itself, if they were.
        """
        fired = 1.0 - self.lost
        share = np.maximum(1.0 - means[self.touched] * fired, LEAST)
        together = self.weight * np.prod(share, axis=1)
        into[self.touched] += together @ (fired / share)
        return float(together.sum()) + self.beyond


def _pulls(terms: list[_Term], means: FloatArray) -> tuple[FloatArray, float]:
    """What all findings add to the log-odds of independent causes, and the sum of their terms."""
    pulled = np.zeros(len(means))
    return pulled, sum(term.pull(means, pulled) for term in terms)
