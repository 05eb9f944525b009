"""Exact sums over causes that are independent a priori and have only observed noisy-OR findings.

:mod:`sbnet.kernels.firing` says how nothing cancels. Here many findings are present, and arrays are long.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from sbnet._types import FloatArray, IndexArray, Model, States
from sbnet.kernels import codes
from sbnet.kernels.structs import Problem
from sbnet.model import gates

MOST_FINDINGS = 22  # that are present: four million sets
_TINY = 1e-250  # a smaller sum may have lost digits among denormal numbers
_LEAST = 1e-300  # a smaller probability is zero, wherever one is divided by


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

    @property
    def error(self) -> float:
        """A bound on the relative error of a sum."""
        return (4 * len(self.weight) + 6 * len(self.log_odds) + 4 * self.positive + 16) * 2.0**-53


def two_levels(
    model: Model, problem: Problem, states: States, bias: FloatArray, units: IndexArray, mine: IndexArray
) -> TwoLevels | None:
    """A group of hidden variables and its factors in that form, or None if it has another."""
    hidden, factors = problem.hidden[units], problem.factors[mine]
    if np.any(hidden["own"] >= 0) or np.any(factors["gate"] != codes.NOISY_OR):
        return None
    if np.any(hidden["states"] != 2) or np.any(model.n_states[factors["variable"]] != 2):
        return None
    place = np.full(len(problem.hidden), -1, np.int64)
    place[units] = np.arange(len(units))
    own, code = bias[model.threshold[hidden["variable"]]], model.gate[hidden["variable"]]
    log_odds = gates.log_odds(code, own)
    constant = float(gates.log_p(code, 0, own).sum())
    ptr, parent, weight, leak = [0], [], [], []
    for factor in factors:
        slots = problem.slots[factor["slot"] : factor["slot_end"]]
        above, theta, h = place[slots["parent"]], slots["weight"], bias[factor["threshold"]]
        if states[factor["variable"]] == 1:
            parent.append(above)
            weight.append(theta)
            leak.append(max(h, codes.LEAST))
            ptr.append(ptr[-1] + len(above))
        else:
            np.subtract.at(log_odds, above, theta)
            constant -= h
    order = np.argsort(-np.diff(ptr), kind="stable")  # few causes last: arrays are longest there
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


def total(levels: TwoLevels, *, with_means: bool = True) -> tuple[float, FloatArray, float]:
    """ln of the sum, the probability of each cause if they are asked for, and a bound on the relative error."""
    means = np.asarray(gates.sigma(levels.log_odds))
    if levels.positive == 0:
        return levels.constant, means, 0.0
    if not with_means:
        log_p = float(log_sums(levels, levels.log_odds[None])[0])
        return log_p, means, levels.error if log_p > -np.inf else np.inf
    causes = _in_order(levels, levels.log_odds[None])
    value, shares = _with_shares(causes)
    if not value > _TINY:
        return -np.inf, means, np.inf
    p, n = np.empty(len(shares)), len(causes.shared)
    p[causes.order] = np.minimum(shares / value, 1.0)
    means[causes.shared], means[causes.single.cause] = p[:n], causes.single.means(p[n:])
    return levels.constant + float(np.log(value)), means, levels.error


def log_sums(levels: TwoLevels, log_odds: FloatArray) -> FloatArray:
    """ln of the sum for other log-odds of the causes, in rows; -∞ where it is too small to be relied on."""
    change = (np.logaddexp(0.0, log_odds) - np.logaddexp(0.0, levels.log_odds)).sum(axis=1)
    if levels.positive == 0:
        return np.asarray(levels.constant + change)
    causes = _in_order(levels, log_odds)
    rest = np.ones((1 << levels.positive, len(log_odds)))
    _grow(causes, 0, len(causes.top), rest)
    with np.errstate(divide="ignore"):
        log_p: FloatArray = levels.constant + change + np.log(np.where(rest[0] > _TINY, rest[0], 0.0))
    return log_p


class _Single(NamedTuple):
    """Causes of one finding each, and by row: -ln of the probability that they do not fire it, alone and together."""

    cause: IndexArray
    finding: IndexArray  # places in `together`
    weight: FloatArray
    on: FloatArray  # the probability of each, by row; and that if it does not fire its finding
    on_if_silent: FloatArray
    alone: FloatArray
    together: FloatArray

    def means(self, fired: FloatArray) -> FloatArray:
        """The probability of each, given those that some of them fire their findings; for one row."""
        p, others = fired[self.finding], self.together[self.finding, 0] - self.alone[:, 0]
        some = np.maximum(-np.expm1(-self.together[self.finding, 0]), _LEAST)
        on_if_fired = self.on[:, 0] * -np.expm1(-(self.weight + others)) / some
        return np.asarray(np.minimum(p * on_if_fired + (1.0 - p) * self.on_if_silent[:, 0], 1.0))


class _Causes(NamedTuple):
    """Causes in the order of the last of their findings, ``top[j]``; an edge has its bit, e^-theta and 1 - e^-theta.

    While those up to cause j are gone through, sets have bits for the findings up to ``top[j]`` only; that a leak fires
    any other one is a factor, ``alone[i]``. With findings of few causes last, most causes meet short arrays. Those of
    one finding count as one cause together, which fires it for certain.
    """

    off: FloatArray  # by cause and row of log-odds
    on: FloatArray
    top: IndexArray
    edges: list[list[tuple[int, float, float]]]
    alone: FloatArray
    order: IndexArray  # places among `shared`, the causes of several findings, and behind them those of one finding
    shared: IndexArray
    single: _Single


def _in_order(levels: TwoLevels, log_odds: FloatArray) -> _Causes:
    """The causes that have findings present."""
    finding = np.repeat(np.arange(levels.positive), np.diff(levels.ptr))
    one = np.bincount(levels.parent, minlength=len(levels.log_odds))[levels.parent] == 1
    shared, place = np.unique(levels.parent[~one], return_inverse=True)
    findings, of = np.unique(finding[one], return_inverse=True)
    single = _single(levels.parent[one], of, levels.weight[one], log_odds.T)
    n = len(shared) + len(findings)
    place = np.concatenate([place, np.arange(len(shared), n)])
    finding = np.concatenate([finding[~one], findings])
    weight = np.concatenate([levels.weight[~one], np.full(len(findings), np.inf)])
    last, edges = np.zeros(n, np.int64), [list[tuple[int, float, float]]() for _ in range(n)]
    np.maximum.at(last, place, finding)
    fails, fires = np.exp(-weight), -np.expm1(-weight)
    for j, *edge in zip(place.tolist(), (1 << finding).tolist(), fails.tolist(), fires.tolist(), strict=True):
        edges[j].append(tuple(edge))
    order, odds = np.argsort(last, kind="stable"), log_odds.T[shared]
    off = np.concatenate([gates.sigma(-odds), np.exp(-single.together)])[order]
    on = np.concatenate([gates.sigma(odds), -np.expm1(-single.together)])[order]
    edges, alone = [edges[j] for j in order], -np.expm1(-levels.leak)
    return _Causes(off, on, last[order], edges, alone, order, shared, single)


def _single(cause: IndexArray, finding: IndexArray, weight: FloatArray, log_odds: FloatArray) -> _Single:
    on, fails, fires = gates.sigma(log_odds[cause]), np.exp(-weight)[:, None], -np.expm1(-weight)[:, None]
    silent = np.maximum(gates.sigma(-log_odds[cause]) + on * fails, _LEAST)
    # Each of the two has all its digits where the other one loses them.
    alone = -np.where(silent < 0.5, np.log(silent), np.log1p(-np.minimum(on * fires, 0.75)))
    together = np.zeros((int(finding.max(initial=-1)) + 1, log_odds.shape[1]))
    np.add.at(together, finding, alone)
    return _Single(cause, finding, weight, on, on * fails / silent, alone, together)


def _with_shares(causes: _Causes) -> tuple[float, FloatArray]:
    """The sum, and its parts with each cause on, for one row.

    The way is gone back again, with what was met on it: it is kept at the beginnings of stretches, and each
    stretch is gone through once more. So memory grows with the square root of the number of causes.
    """
    n, sets = len(causes.off), 1 << len(causes.alone)
    rest, back, shares = np.ones((sets, 1)), np.zeros((sets, 1)), np.empty(n)
    long = float(np.sum(2.0 ** (causes.top + 1 - len(causes.alone))))  # causes, counted by the lengths of their arrays
    starts = [*range(0, n, max(1, math.ceil(math.sqrt(long)))), n]
    kept = []
    for first, last in pairwise(starts):
        kept.append(rest[: 1 << (int(causes.top[first - 1]) + 1) if first else 1].copy())
        _grow(causes, first, last, rest)
    value, back[0] = float(rest[0, 0]), 1.0
    for (first, last), begin in reversed(list(zip(pairwise(starts), kept, strict=True))):
        rest[: len(begin)] = begin
        met: list[FloatArray] = []
        _grow(causes, first, last, rest, met)
        _shrink(causes, first, met, back, shares)
    return value, shares


def _pairs(sets: FloatArray, bit: int) -> list[tuple[FloatArray, FloatArray]]:
    """The sets without a finding and those with it, in parts that arrays are quick with."""
    pairs = sets.reshape(-1, 2, bit * sets.shape[1])
    if pairs.shape[2] > 8 or len(pairs) < 256:
        return [(pairs[:, 0], pairs[:, 1])]
    return [(pairs[:, 0, i], pairs[:, 1, i]) for i in range(pairs.shape[2])]


def _grow(causes: _Causes, first: int, last: int, rest: FloatArray, met: list[FloatArray] | None = None) -> None:
    """Go through the causes from `first` to `last`; `rest` comes to be that after them. What it was before: `met`."""
    known = int(causes.top[first - 1]) + 1 if first > 0 else 0
    for j in range(first, last):
        for i in range(known, int(causes.top[j]) + 1):
            rest[1 << i : 2 << i] = rest[: 1 << i]
            rest[: 1 << i] *= causes.alone[i]
        known = max(known, int(causes.top[j]) + 1)
        now = rest[: 1 << known]
        if met is not None:
            met.append(now.copy())
        on = causes.on[j] * now
        for bit, fails, fires in causes.edges[j]:
            for without, fired in _pairs(on, bit):
                without *= fails
                without += fires * fired
        now *= causes.off[j]
        now += on


def _shrink(causes: _Causes, first: int, met: list[FloatArray], sets: FloatArray, shares: FloatArray) -> None:
    """Back again, with the probabilities of sets: the part of the sum with each cause on goes to `shares`."""
    for j in range(first + len(met) - 1, first - 1, -1):
        rest = met[j - first]
        on = causes.on[j] * sets[: len(rest)]
        for bit, fails, fires in causes.edges[j]:
            for without, fired in _pairs(on, bit):
                fired += fires * without
                without *= fails
        shares[j] = np.sum(on * rest)
        sets[: len(rest)] *= causes.off[j]
        sets[: len(rest)] += on
        for i in range(int(causes.top[j]), int(causes.top[j - 1]) if j > 0 else -1, -1):
            sets[: 1 << i] = causes.alone[i] * sets[: 1 << i] + sets[1 << i : 2 << i]
