r"""An upper bound on a sum over independent causes when too many noisy-OR findings are present to sum over them all.

Some findings stay as they are, and the sum runs over their subsets (:mod:`sbnet.quickscore`). Of each of the others
:math:`\ln P = \ln(1 - e^{-x})`, which is concave, is replaced by a line above it (Jaakkola & Jordan 1999),

.. math:: \ln(1 - e^{-x}) \le \lambda x + \lambda \ln \lambda - (1 + \lambda) \ln(1 + \lambda), \qquad \lambda > 0,

which only moves the log-odds of the causes. The bound is convex in ln λ, and its slope there is λ times the mean of x
less ln(1 + 1/λ).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sbnet._types import FloatArray, IndexArray
from sbnet.bounds.upper.descent import descend
from sbnet.quickscore import TwoLevels, total


class _Part:
    """Two levels divided into findings that are summed over and findings that are replaced."""

    def __init__(self, levels: TwoLevels, kept: IndexArray) -> None:
        self.levels = levels
        self.kept = kept
        self.others = np.setdiff1d(np.arange(levels.positive), kept)
        self.slots = [np.arange(levels.ptr[i], levels.ptr[i + 1]) for i in range(levels.positive)]
        self.plain = levels.constant - float(np.logaddexp(0.0, levels.log_odds).sum())

    def value(self, moved: FloatArray, constant: float) -> tuple[float, FloatArray, float]:
        """ln of the sum with other log-odds, the means, and the relative error of the sum."""
        two, log_odds = self.levels, self.levels.log_odds + moved
        sizes = [len(self.slots[i]) for i in self.kept]
        every = np.concatenate([np.zeros(0, np.int64), *(self.slots[i] for i in self.kept)])
        part = replace(
            two,
            ptr=np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
            parent=two.parent[every],
            weight=two.weight[every],
            leak=two.leak[self.kept],
            log_odds=log_odds,
            constant=self.plain + constant + float(np.logaddexp(0.0, log_odds).sum()),
        )
        return total(part)

    def above(self, log_slope: FloatArray) -> tuple[float, FloatArray, float]:
        """The upper bound at these slopes, its gradient in their logarithms, and the relative error."""
        two, slope = self.levels, np.exp(log_slope)
        moved, constant = np.zeros(len(two.log_odds)), 0.0
        for k, i in enumerate(self.others):
            lam, at = slope[k], self.slots[i]
            np.add.at(moved, two.parent[at], lam * two.weight[at])
            constant += lam * two.leak[i] + lam * np.log(lam) - (1.0 + lam) * np.log1p(lam)
        value, means, error = self.value(moved, constant)
        inside = [self.slots[i] for i in self.others]
        mean = two.leak[self.others] + np.array([two.weight[at] @ means[two.parent[at]] for at in inside])
        return value, slope * (mean - np.log1p(1.0 / slope)), error


def upper(levels: TwoLevels, exact: int, max_steps: int, tol: float) -> float:
    """An upper bound with up to `exact` findings summed over: those whose line is furthest off."""
    alone = _Part(levels, np.zeros(0, np.int64))
    start = np.zeros(levels.positive)
    best, slopes, _ = _descend(alone, start, max_steps, tol)
    if exact <= 0:
        return best
    gains = []
    for i in range(levels.positive):
        part = _Part(levels, np.array([i]))
        gains.append(best - part.above(np.delete(slopes, i))[0])
    kept = np.sort(np.argsort(-np.array(gains), kind="stable")[:exact])
    part = _Part(levels, kept)
    value, _, error = _descend(part, slopes[part.others], max_steps, tol)
    return min(best, value + error)


def _descend(part: _Part, start: FloatArray, max_steps: int, tol: float) -> tuple[float, FloatArray, float]:
    worst = 0.0

    def evaluate(x: FloatArray, slopes: FloatArray) -> float:
        nonlocal worst
        value, slopes[:], error = part.above(x)
        worst = max(worst, error)
        return value

    x = start.copy()
    with np.errstate(all="ignore"):
        value = descend(evaluate, x, max_steps, tol) if len(x) else part.above(x)[0]
    return value, x, worst
