"""Exact sums over causes that are independent a priori and have only observed noisy-OR findings; see the kernel."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.special import expit

from sbnet._types import FloatArray, IndexArray, Problem, States
from sbnet.execution import Inline, Threads, map_blocks
from sbnet.kernels import array_gates, gates
from sbnet.kernels.firing import Firing
from sbnet.kernels.quickscore import INNER, score

_DIGITS = 2.0**-102
"""Relative error of a term for each factor in it: a product of numbers of two doubles is right to 2^-103."""

MOST_FINDINGS = 22  # that are present: four million terms
_PART = 256  # outer subsets in one task: about a hundredth of a second


@dataclass(frozen=True, eq=False)
class TwoLevels:
    """Independent causes and their findings; `positive` is what the cost is exponential in."""

    cause: IndexArray  # the hidden units of the problem
    ptr: IndexArray  # of the positive findings
    parent: IndexArray  # places in `cause`
    weight: FloatArray
    leak: FloatArray
    log_odds: FloatArray  # of the causes, given the negative findings
    constant: float

    @property
    def positive(self) -> int:
        return len(self.leak)


def two_levels(
    problem: Problem, states: States, bias: FloatArray, units: IndexArray, mine: IndexArray
) -> TwoLevels | None:
    """A group of hidden units and its factors in that form, or None if it has another."""
    factors = problem.factor[mine]
    if np.any(problem.factor_of[units] >= 0) or np.any(problem.gate[factors] != gates.NOISY_OR):
        return None
    place = np.full(len(problem.hidden), -1, np.int64)
    place[units] = np.arange(len(units))
    own = bias[problem.hidden[units]]
    code = problem.gate[problem.hidden[units]]
    log_odds = array_gates.log_odds(code, own)
    constant = float(array_gates.log_p(code, 0, own).sum())
    ptr, parent, weight, leak = [0], [], [], []
    for f, i in zip(mine, factors, strict=True):
        slots = slice(problem.ptr[f], problem.ptr[f + 1])
        above, theta = place[problem.parent[slots]], problem.weight[slots]
        if states[i] == 1:
            parent.append(above)
            weight.append(theta)
            leak.append(max(bias[i], gates.LEAST))
            ptr.append(ptr[-1] + len(above))
        else:
            np.subtract.at(log_odds, above, theta)
            constant -= bias[i]
    order = np.argsort(-np.diff(ptr), kind="stable")  # few causes last: those are gone through most often
    parts = [(parent[k], weight[k]) for k in order]
    return TwoLevels(
        units,
        np.concatenate([[0], np.cumsum([len(p) for p, _ in parts])]).astype(np.int64),
        np.concatenate([np.zeros(0, np.int64), *(p for p, _ in parts)]),
        np.concatenate([np.zeros(0), *(w for _, w in parts)]),
        np.array(leak)[order] if leak else np.zeros(0),
        log_odds,
        constant + float(np.logaddexp(0.0, log_odds).sum()),
    )


def firing_of(weight: FloatArray, leak: FloatArray) -> Firing:
    """Causes by findings, for sums without a minus sign."""
    cause, finding = np.nonzero(weight)
    theta = weight[cause, finding]
    ptr = np.concatenate([[0], np.cumsum(np.bincount(cause, minlength=len(weight)))]).astype(np.int64)
    by_set = np.ones(1)
    for fires in -np.expm1(-leak):
        by_set = np.concatenate([by_set * fires, by_set])
    return Firing(ptr, np.int64(1) << finding, -np.expm1(-theta), np.exp(-theta), by_set)


def total(levels: TwoLevels, *, threads: int | None = 1, with_means: bool = True) -> tuple[float, FloatArray, float]:
    """ln of the sum, the chance of each cause to be on, and a bound on the relative error of the sum."""
    touched = np.unique(levels.parent)
    means = np.asarray(expit(levels.log_odds))
    if levels.positive == 0:
        return levels.constant, means, 0.0
    place = np.full(len(levels.log_odds), -1, np.int64)
    place[touched] = np.arange(len(touched))
    m = levels.positive
    n_inner = min(INNER, m)
    cause = place[levels.parent]
    lam = levels.log_odds[touched]
    decay = _decay(levels.weight)
    inner, table = _table(levels.ptr, cause, decay, m - n_inner, n_inner)
    off, on = _double(expit(-lam)), _double(expit(lam))
    task = partial(_part, _Sum(levels.ptr, cause, decay, _decay(levels.leak), off, on, inner, table), with_means)
    n_outer = 1 << (m - n_inner)
    blocks = [_Stretch(first, min(first + _PART, n_outer)) for first in range(0, n_outer, _PART)]
    found = list(map_blocks(task, blocks, executor=Inline() if len(blocks) == 1 else Threads(threads)))
    value, size = _exact_sum([r[0] for r in found]), sum(float(r[0][2]) for r in found)
    error = _DIGITS * size * (len(touched) + len(levels.weight)) / value if value > 0.0 else np.inf
    if with_means and value > 0.0:
        means[touched] = np.clip([_exact_sum([r[1][k] for r in found]) / value for k in range(len(touched))], 0.0, 1.0)
    return levels.constant + (np.log(value) if value > 0.0 else -np.inf), means, float(error)


@dataclass(frozen=True)
class _Stretch:
    first: int
    last: int

    def __len__(self) -> int:
        return self.last - self.first


class _Sum(NamedTuple):
    """What the kernel needs; numbers of two doubles stand side by side."""

    ptr: IndexArray
    cause: IndexArray
    decay: FloatArray
    leak: FloatArray
    off: FloatArray
    on: FloatArray
    inner: IndexArray
    table: FloatArray


def _part(numbers: _Sum, with_means: bool, stretch: _Stretch) -> tuple[FloatArray, FloatArray]:
    result, shares = np.empty(3), np.empty((len(numbers.off), 2))
    score(stretch.first, stretch.last, *numbers, with_means, result, shares)
    return result, shares


def _exact_sum(parts: list[FloatArray]) -> float:
    """The sum of numbers of two doubles each, rounded once."""
    return math.fsum(float(x) for part in parts for x in part[:2])


def _double(x: FloatArray) -> FloatArray:
    return np.column_stack([x, np.zeros(len(x))])


def _decay(theta: FloatArray) -> FloatArray:
    """e^-theta = 1 + expm1(-theta) as two doubles, so that 1 - e^-theta keeps its digits."""
    less = np.expm1(-theta)
    high = 1.0 + less
    return np.column_stack([high, less - (high - 1.0)])


def _table(
    ptr: IndexArray, cause: IndexArray, decay: FloatArray, first: int, n_inner: int
) -> tuple[IndexArray, FloatArray]:
    """The causes of the last findings, and the products of their decays in each lane."""
    inner = np.unique(cause[ptr[first] :])
    lanes = 1 << n_inner
    table = np.zeros((len(inner), 2, lanes))
    table[:, 0] = 1.0
    row = {int(j): k for k, j in enumerate(inner)}
    for i in range(n_inner):
        on = ((np.arange(lanes) >> i) & 1).astype(bool)
        for e in range(ptr[first + i], ptr[first + i + 1]):
            k = row[int(cause[e])]
            table[k, 0, on], table[k, 1, on] = _times(table[k, 0, on], table[k, 1, on], decay[e, 0], decay[e, 1])
    return inner.astype(np.int64), table


def _times(a: FloatArray, a_rest: FloatArray, b: float, b_rest: float) -> tuple[FloatArray, FloatArray]:
    """The product of numbers of two doubles, for arrays."""
    splitter = 134217729.0
    p = a * b
    c, d = splitter * a, splitter * b
    a_high, b_high = c - (c - a), d - (d - b)
    a_low, b_low = a - a_high, b - b_high
    rest = ((a_high * b_high - p) + a_high * b_low + a_low * b_high) + a_low * b_low
    rest += a * b_rest + a_rest * b
    high = p + rest
    return high, rest - (high - p)
