r"""An interval for the mean of numbers in [0, 1], from a sample of them, that holds whenever one stops: bets on it.

*One bet against large means.* Who says that the mean :math:`\mu` is at least m is offered a game. From a capital of 1,
each number x multiplies what the opponent has by :math:`1 + \lambda (m - x)`, with a stake
:math:`0 \le \lambda \le 15/16` that is settled before x is seen.

1. No factor is below 1/16, because :math:`m - x \ge -1`: the capital stays positive, whatever comes.
2. If :math:`\mu \ge m`, the factor's expectation given all numbers before it is :math:`1 + \lambda (m - \mu) \le 1`:
   the capital is a supermartingale. By Ville's inequality it *ever* reaches :math:`1 / \delta` with probability at most
   :math:`\delta`. An m at which it does is ruled out.
3. The factor rises with m, so if any :math:`m \le \mu` is ever ruled out, so is :math:`\mu` itself. All m are tested at
   once, at every length of the sample, with one failure of probability :math:`\delta`; the least m that was ever ruled
   out is an upper bound.

*One bet against small means.* If :math:`\mu \le m`, the number :math:`x / m` is an asset that is not expected to gain.
The opponent keeps a share :math:`1 - \rho` of the capital and invests :math:`0 \le \rho \le 15/16`: x multiplies it by
:math:`1 - \rho + \rho x / m`. That is at least 1/16 for every m and x, without any bound on x from above; its
expectation is :math:`1 - \rho + \rho \mu / m \le 1`; and it falls with m. So 1 to 3 hold with the signs exchanged, and
the largest m that was ever ruled out is a lower bound (Waudby-Smith & Ramdas 2024). In a stake
:math:`\lambda = \rho / m` that is the same for all m the first property would fail where :math:`\lambda m > 1`.

*Several bets.* Each bound has several opponents, and each of them a share of :math:`\delta`; by the union bound the
best of what they rule out fails with probability at most :math:`\delta`. One of them follows the sample: numbers come
in stages, each as long as all before it together, and the stakes of a stage are settled by the stages before. It makes
the interval narrow where the sample is what it seems. If large numbers are rare, a sample without any seems harmless,
and that opponent loses its capital when the first one comes, or stakes it against means that are none. The other
opponents keep one stake for good, from 1/2 down in steps of one half: with one of them, the interval follows as soon as
the large numbers come. Stakes decide how narrow the interval is, not whether it holds. Until a large number has come
the lower bound stays low, as it must.

*Rounding.* With u the unit roundoff, a factor is computed with an error of at most 48u of itself (the subtraction loses
at most what 1/16 leaves), its logarithm with 4u of the logarithm, and the sum of n logarithms with 64u of the sum of
their sizes; 128u (n + sum of sizes) is taken off before a capital is compared. A bound is a point that was itself ruled
out, found by bisection: nothing is interpolated.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from sbnet._types import FloatArray
from sbnet.bounds.margins import UNIT

FIRST = 256
"""Numbers in the first stage."""
_MOST = 15 / 16  # of the capital is staked
_BLIND = 0.5  # the stake against large means before anything is known
_FOLLOWS = 0.8  # the share of delta for the opponent that follows the sample
_FIXED_ABOVE: FloatArray = 2.0 ** -np.arange(1.0, 10.0)
_FIXED_BELOW: FloatArray = 2.0 ** -np.arange(1.0, 18.0)
_ACCURACY = 1e-4  # relative: how near a bound is to the next point that is not ruled out
_LEAST = 1e-300  # no smaller mean is tested
_ROUNDING = 128.0 * UNIT


class Mean(NamedTuple):
    """An interval for a mean, the mean of the sample, its standard error and size."""

    low: float
    high: float
    mean: float
    error: float
    samples: int


class Plan(NamedTuple):
    """When to stop."""

    delta: float  # the probability with which the interval may fail
    width: float  # of the logarithm of the mean, that is narrow enough
    most: int  # numbers that are drawn


class _Stage(NamedTuple):
    """Numbers, and what the opponent that follows the sample staked on them before they were seen."""

    numbers: FloatArray
    above: float
    below: float


def bet(draw: Callable[[int, int], FloatArray], plan: Plan, stop: Callable[[Mean], bool] | None = None) -> Mean:
    """An interval that holds the mean. ``draw(first, n)`` gives n numbers, of which the first is number `first`.

    It ends when the interval is narrow enough, when that many numbers have been drawn, or when told to `stop`, which is
    asked after each stage.
    """
    stages, above, below = list[_Stage](), _BLIND, 0.0
    found = Mean(0.0, 1.0, math.nan, math.inf, 0)
    while found.samples < plan.most:
        size = min(max(found.samples, FIRST), plan.most - found.samples)
        stages.append(_Stage(draw(found.samples, size), above, below))
        found = _settle(stages, plan.delta, found)
        if found.high <= found.low * math.exp(plan.width) or (stop is not None and stop(found)):
            break
        above, below = _stakes(found, plan)
    if found.low > found.high:  # one of them has failed, nobody knows which: what lies between is left
        return found._replace(low=found.high, high=found.low)
    return found


def _settle(stages: list[_Stage], delta: float, before: Mean) -> Mean:
    """The interval after one more stage, inside the one before."""
    numbers = np.concatenate([stage.numbers for stage in stages])
    mean, n = float(numbers.mean()), len(numbers)
    low, high = before.low, before.high
    for stakes, goal in _opponents([s.below for s in stages], _FIXED_BELOW, delta):
        low = _lower_bound(stages, stakes, goal, low, mean)
    for stakes, goal in _opponents([s.above for s in stages], _FIXED_ABOVE, delta):
        high = _upper_bound(stages, stakes, goal, high, mean)
    return Mean(low, high, mean, float(numbers.std()) / math.sqrt(n), n)


def _opponents(following: list[float], fixed: FloatArray, delta: float) -> Iterator[tuple[list[float], float]]:
    """The stakes of each in every stage, and ln of the capital at which a mean is ruled out: half of delta a bound."""
    yield following, math.log(2.0 / (_FOLLOWS * delta)) + 1e-12
    for stake in fixed.tolist():
        yield [stake] * len(following), math.log(2.0 * len(fixed) / ((1.0 - _FOLLOWS) * delta)) + 1e-12


def _stakes(found: Mean, plan: Plan) -> tuple[float, float]:
    """The stakes of the next stage: best for the count at which the interval will probably be narrow enough."""
    n, half, goal = found.samples, 0.5 * plan.width * found.mean, math.log(2.0 / (_FOLLOWS * plan.delta))
    variance = n * found.error**2 + found.mean**2 / n  # equal numbers do not prove that there are no others
    needed = float(plan.most)
    if half > 0.0:
        ratio = math.sqrt(variance) / half
        needed = max(2.0 * goal * ratio * ratio, goal / half)  # with the best stakes, and with the largest there are
    stake = math.sqrt(2.0 * goal / max(variance * min(max(needed, 2 * n), plan.most), _LEAST))
    return min(stake, _MOST), min(stake * found.mean, 0.5)


def _upper_bound(stages: list[_Stage], stakes: list[float], goal: float, high: float, mean: float) -> float:
    """The least mean that this opponent rules out, if it is below `high`."""

    def ruled_out(m: float) -> bool:
        return _log_capital([stake * (m - s.numbers) for s, stake in zip(stages, stakes, strict=True)]) > goal

    return _bisect(ruled_out, high, min(max(mean, _LEAST), high), _LEAST) if ruled_out(high) else high


def _lower_bound(stages: list[_Stage], stakes: list[float], goal: float, low: float, mean: float) -> float:
    """The largest mean that this opponent rules out, if it is above `low`."""

    def ruled_out(m: float) -> bool:
        return _log_capital([stake * (s.numbers / m - 1.0) for s, stake in zip(stages, stakes, strict=True)]) > goal

    least = max(low, _LEAST)
    return _bisect(ruled_out, least, max(mean, least), 1.0) if ruled_out(least) else low


def _log_capital(gains: list[FloatArray]) -> float:
    """ln of the product of all factors 1 + gain, less what rounding may have added to it."""
    total = size = 0.0
    for gain in gains:
        logs = np.log1p(gain)
        total += float(logs.sum())
        size += float(np.abs(logs).sum()) + len(logs)
    return total - _ROUNDING * size


def _bisect(ruled_out: Callable[[float], bool], out: float, likely: float, far: float) -> float:
    """A mean that is ruled out, as `out` is, next to one that is not: `likely` presumably, else before `far`."""
    if ruled_out(likely):
        out, likely = likely, far
    a, b = math.log(out), math.log(likely)
    while abs(a - b) > _ACCURACY:
        middle = 0.5 * (a + b)
        point = math.exp(middle)
        if ruled_out(point):
            a, out = middle, point
        else:
            b = middle
    return out
