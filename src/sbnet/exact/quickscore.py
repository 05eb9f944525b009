"""Exact sums over causes that are independent a priori and have only observed noisy-OR findings; see the kernel."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from sbnet import kernels
from sbnet._types import FloatArray, IndexArray, Model, States
from sbnet.kernels import codes
from sbnet.kernels.firing import Firing, Growing, edge_t
from sbnet.kernels.structs import Problem
from sbnet.model import gates

MOST_FINDINGS = 22  # that are present: four million sets
_FEW = 12  # findings whose sets need no kernel
_TINY = 1e-250  # a smaller sum may have lost digits among denormal numbers


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


def total(levels: TwoLevels, *, with_means: bool = True) -> tuple[float, FloatArray, float]:
    """ln of the sum, the probability of each cause (NaN if not asked for), and a bound on the relative error."""
    means = np.asarray(gates.sigma(levels.log_odds))
    if levels.positive == 0:
        return levels.constant, means, 0.0
    touched, firing, causes = _in_order(levels)
    value, shares = _sum(firing, causes, with_means)
    if not value > _TINY:
        return -np.inf, means, np.inf
    means[touched] = np.minimum(shares / value, 1.0)
    roundings = 4 * len(levels.weight) + 6 * len(touched) + 4 * levels.positive + 16
    return levels.constant + float(np.log(value)), means, roundings * 2.0**-53


def _in_order(levels: TwoLevels) -> tuple[IndexArray, Firing, Growing]:
    """The causes that have findings present, by the last of those; findings with few causes come last."""
    touched, place = np.unique(levels.parent, return_inverse=True)
    finding = np.repeat(np.arange(levels.positive), np.diff(levels.ptr))
    weight = np.zeros((len(touched), levels.positive))
    weight[place, finding] = levels.weight
    last = np.zeros(len(touched), np.int64)
    np.maximum.at(last, place, finding)
    order = np.argsort(last, kind="stable")
    log_odds = levels.log_odds[touched[order]]
    causes = Growing(gates.sigma(-log_odds), gates.sigma(log_odds), last[order], -np.expm1(-levels.leak))
    return touched[order], firing_of(weight[order], levels.leak[:0]), causes


def _sum(firing: Firing, causes: Growing, with_means: bool) -> tuple[float, FloatArray]:
    """The sum, and its parts with each cause on.

    For those, the way is gone back again, with what was met on it: it is kept at the beginnings of stretches, and each
    stretch is gone through once more. So memory grows with the square root of the number of causes.
    """
    few = len(causes.alone) <= _FEW and "numba" not in sys.modules  # not worth a compiler; the digits are the same
    grow, shrink = (_grow, _shrink) if few else (kernels.firing.grow, kernels.firing.shrink)
    n, sets, nothing = len(causes.off), 1 << len(causes.alone), np.empty((0, 0))
    rest, shares = np.ones(sets), np.full(n, np.nan)
    if not with_means:
        grow(firing, causes, 0, n, rest, nothing)
        return float(rest[0]), shares
    long = float(np.sum(2.0 ** (causes.top + 1 - len(causes.alone))))  # causes, counted by the lengths of their arrays
    starts = [*range(0, n, max(1, math.ceil(math.sqrt(long)))), n]
    kept = []
    for first, last in pairwise(starts):
        kept.append(rest[: 1 << (int(causes.top[first - 1]) + 1) if first else 1].copy())
        grow(firing, causes, first, last, rest, nothing)
    value, back = float(rest[0]), np.zeros(sets)
    back[0] = 1.0
    for (first, last), begin in reversed(list(zip(pairwise(starts), kept, strict=True))):
        rest[: len(begin)] = begin
        rows = np.empty((last - first, 1 << (int(causes.top[last - 1]) + 1)))
        grow(firing, causes, first, last, rest, rows)
        shrink(firing, causes, first, last, rows, back, shares)
    return value, shares


def _edges(firing: Firing, j: int) -> list[tuple[int, float, float]]:
    edges: list[tuple[int, float, float]] = firing.edges[firing.ptr[j] : firing.ptr[j + 1]].tolist()
    return edges


def _grow(firing: Firing, causes: Growing, first: int, last: int, rest: FloatArray, rows: FloatArray) -> None:
    """`kernels.firing.grow` with arrays, to the digit."""
    known = int(causes.top[first - 1]) + 1 if first > 0 else 0
    for j in range(first, last):
        for i in range(known, int(causes.top[j]) + 1):
            rest[1 << i : 2 << i] = rest[: 1 << i]
            rest[: 1 << i] *= causes.alone[i]
        known = max(known, int(causes.top[j]) + 1)
        now = rest[: 1 << known]
        if len(rows):
            rows[j - first, : len(now)] = now
        if firing.ptr[j] == firing.ptr[j + 1]:
            now *= causes.off[j] + causes.on[j]
            continue
        on = now.copy()
        for bit, fires, fails in _edges(firing, j):
            halves = on.reshape(-1, 2, bit)
            halves[:, 0] = fails * halves[:, 0] + fires * halves[:, 1]
        now[:] = causes.off[j] * now + causes.on[j] * on


def _shrink(
    firing: Firing, causes: Growing, first: int, last: int, rows: FloatArray, sets: FloatArray, shares: FloatArray
) -> None:
    """`kernels.firing.shrink` with arrays, to the digit: sums run from first to last."""
    known = int(causes.top[last]) + 1 if last < len(causes.off) else len(causes.alone)
    for j in range(last - 1, first - 1, -1):
        while known > causes.top[j] + 1:
            known -= 1
            sets[: 1 << known] = causes.alone[known] * sets[: 1 << known] + sets[1 << known : 2 << known]
        now = sets[: 1 << known]
        on = causes.on[j] * now
        for bit, fires, fails in _edges(firing, j):
            halves = on.reshape(-1, 2, bit)
            halves[:, 1] += fires * halves[:, 0]
            halves[:, 0] *= fails
        shares[j] = np.cumsum(on * rows[j - first, : len(now)])[-1]
        now[:] = causes.off[j] * now + on
