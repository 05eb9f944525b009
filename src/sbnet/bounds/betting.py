r"""An interval for the mean of numbers in [0, 1], from a sample of them, that holds whenever one stops: a bet on it.

Who says that the mean is at least m is offered a game. From a capital of 1, each number x multiplies what the opponent
has by :math:`1 + \lambda (m - x)`, with any :math:`0 \le \lambda \le 1` that is settled before x is seen. If the mean
is at least m, the game is not in the opponent's favour, and by Ville's inequality the capital *ever* reaches
:math:`1 / \delta` with a chance of at most :math:`\delta`. So an m at which it does is ruled out; the capital rises
with m, and the interval ends where it is :math:`1 / \delta`. From below, x multiplies the capital by
:math:`1 + \lambda (x - m)` with :math:`\lambda \le 1 / m`, and no bound on x is needed (Waudby-Smith & Ramdas 2024).
One may stop at any time and for any reason, and the best ends of all intervals on the way hold together.

Numbers come in stages, each as long as all before it together, and the stakes of a stage are settled by those before:
:math:`\lambda^2 = 2 \ln(1/\delta) / (n v)`, with v the variance so far and n the count at which the interval should be
narrow enough by now. Stakes decide how narrow it is, not whether it holds.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from sbnet._types import FloatArray

FIRST = 256
"""Numbers in the first stage."""
_BLIND = 0.5  # the stake against large means before anything is known
_SHARE = 0.5  # of the capital at most is staked against small means
_ACCURACY = 1e-4  # relative, of the point where the capital is large enough; the interval ends on its far side
_ROUNDING = 1e-6  # of the logarithm of a capital


class Mean(NamedTuple):
    """An interval for a mean, the mean of the sample, its standard error and size."""

    low: float
    high: float
    mean: float
    error: float
    samples: int


class _Stage(NamedTuple):
    numbers: FloatArray
    above: float  # the stake against large means
    below: float  # against small ones


class Plan(NamedTuple):
    """When to stop."""

    delta: float  # the chance with which the interval may fail
    width: float  # of the logarithm of the mean, that is narrow enough
    most: int  # numbers that are drawn


def bet(draw: Callable[[int, int], FloatArray], plan: Plan, stop: Callable[[Mean], bool] | None = None) -> Mean:
    """An interval that holds the mean. ``draw(first, n)`` gives n numbers, of which the first is number `first`.

    It ends when the interval is narrow enough, when that many numbers have been drawn, or when told to `stop`, which is
    asked after each stage.
    """
    goal = math.log(2.0 / plan.delta) + _ROUNDING  # half for each end
    stages, above, below = list[_Stage](), _BLIND, 0.0
    found = Mean(0.0, 1.0, math.nan, math.inf, 0)
    while found.samples < plan.most:
        size = min(max(found.samples, FIRST), plan.most - found.samples)
        stages.append(_Stage(draw(found.samples, size), above, below))
        found = _settle(stages, goal, found)
        if found.high <= found.low * math.exp(plan.width) or (stop is not None and stop(found)):
            break
        above, below = _stakes(found, goal, plan)
    return found


def _settle(stages: list[_Stage], goal: float, before: Mean) -> Mean:
    """The interval after one more stage, inside the one before."""
    numbers = np.concatenate([stage.numbers for stage in stages])
    mean, n = float(numbers.mean()), len(numbers)
    low, high = _low_end(stages, goal, before.low, mean), _high_end(stages, goal, mean, before.high)
    return Mean(low, high, mean, float(numbers.std()) / math.sqrt(n), n)


def _stakes(found: Mean, goal: float, plan: Plan) -> tuple[float, float]:
    """The stakes of the next stage: best for the count at which the interval will probably be narrow enough."""
    n, half = found.samples, 0.5 * plan.width * found.mean
    variance = n * found.error**2 + found.mean**2 / n  # equal numbers do not prove that there are no others
    needed = float(plan.most)
    if half > 0.0:
        ratio = math.sqrt(variance) / half
        needed = max(2.0 * goal * ratio * ratio, goal / half)  # with the best stakes, and with the largest there are
    stake = math.sqrt(2.0 * goal / max(variance * min(max(needed, 2 * n), plan.most), 1e-300))
    return min(stake, 1.0), min(stake, _SHARE / max(found.mean, 1e-300))


def _high_end(stages: list[_Stage], goal: float, mean: float, high: float) -> float:
    def over(m: float) -> float:
        return sum(float(np.log1p(s.above * (m - s.numbers)).sum()) for s in stages) - goal

    if not over(high) > 0.0 or not mean < high:
        return high
    return min(_crossing(over, mean, high) * (1.0 + 2.0 * _ACCURACY), high) if over(mean) < 0.0 else mean


def _low_end(stages: list[_Stage], goal: float, low: float, mean: float) -> float:
    def over(m: float) -> float:
        return sum(float(np.log1p(s.below * (s.numbers - m)).sum()) for s in stages) - goal

    if not over(low) > 0.0 or not low < mean:
        return low
    return max(_crossing(over, low, mean) * (1.0 - 2.0 * _ACCURACY), low) if over(mean) < 0.0 else mean


def _crossing(over: Callable[[float], float], a: float, b: float) -> float:
    from scipy.optimize import brentq  # a fifth of a second that `import sbnet` need not take

    return float(brentq(over, a, b, xtol=1e-300, rtol=_ACCURACY))
