"""The cheap term of a noisy-OR unit (Jaakkola & Jordan 1999): t is convex, so for shares r_j that sum to one

    t(theta_0 + sum_j theta_j S_j) <= sum_j r_j [S_j t(theta_0 + theta_j / r_j) + (1 - S_j) t(theta_0)] ,

which is linear in the means. The best shares have no closed form; a fixed point with a look whether it helped finds
good ones. The table of a factor has a share for each parent.
"""

from __future__ import annotations

import math

import numpy as np

from sbnet._types import FloatArray
from sbnet.kernels import gates
from sbnet.kernels._compile import bare, inner
from sbnet.kernels.arrays import real_numbers
from sbnet.kernels.terms.work import (
    BIAS,
    FEW_FACTOR,
    FEW_PTR,
    FEW_SLOT,
    GATE,
    MEAN,
    N_FACTORS,
    PARENT,
    PLACE,
    PTR,
    TABLE_PTR,
    TABLES,
    TERM,
    VALUE,
    WEIGHTS,
    Work,
)
from sbnet.kernels.terms.work import ROOM as ROOM_OF

ROOM = 6
KINDS: dict[str, int] = {}  # what noisy-OR units get for "quadratic" and for "jensen"
TILED = False

_u = np.uint64
_STEPS = 3  # of the fixed point, after each sweep
_LEAST = 1e-12  # share


@bare
def _gain(theta: float, share: float, bias: float) -> float:
    """t(theta_0 + theta / r) - t(theta_0), never positive."""
    return gates.rarity(bias + theta / share) - gates.rarity(bias)


@bare
def _term(share: FloatArray, theta: FloatArray, mu: FloatArray, bias: float) -> float:
    total = gates.rarity(bias)
    for s in range(len(theta)):
        total += share[s] * mu[s] * _gain(theta[s], share[s], bias)
    return total


@bare
def _improve(share: FloatArray, new: FloatArray, theta: FloatArray, mu: FloatArray, bias: float) -> float:
    """Better shares, and the term with them: r_j in proportion to how much the term falls with it."""
    term = _term(share, theta, mu, bias)
    for _ in range(_STEPS):
        total = 0.0
        for s in range(len(theta)):
            y = theta[s] / share[s]
            slope = -_gain(theta[s], share[s], bias) + y * gates.t_slope(gates.NOISY_OR, bias + y)
            new[s] = max(share[s] * mu[s] * max(slope, 0.0), _LEAST)
            total += new[s]
        for s in range(len(theta)):
            new[s] = max(new[s] / total, _LEAST) / (1.0 + len(theta) * _LEAST)
        after = _term(new, theta, mu, bias)
        if not after < term:
            break
        term = after
        for s in range(len(theta)):
            share[s] = new[s]
    return term


@bare
def begin(work: Work) -> None:
    """Equal shares."""
    index, numbers = work.ints, work.numbers
    for f in range(index[N_FACTORS]):
        if index[index[ROOM_OF] + f] == ROOM:
            at = index[TABLES] + index[index[TABLE_PTR] + f]
            k = index[index[PTR] + f + 1] - index[index[PTR] + f]
            for s in range(k):
                numbers[at + s] = 1.0 / k


@bare
def pull(work: Work, j: int, mu: FloatArray) -> float:
    """What the children of unit j add to its effective input."""
    index, numbers, total = work.ints, work.numbers, 0.0
    few, factor, slots = index[FEW_PTR] + j, index[FEW_FACTOR], index[FEW_SLOT]
    for c in range(index[few], index[few + 1]):
        f, slot = index[factor + c], index[slots + c]
        if index[index[ROOM_OF] + f] == ROOM:
            o, theta = _u(index[index[PLACE] + f]), numbers[index[WEIGHTS] + slot]
            share = numbers[index[TABLES] + index[index[TABLE_PTR] + f] + slot - index[index[PTR] + f]]
            a, load = gates.loads(index[index[GATE] + f], numbers[o + VALUE])
            total += a * theta - load * share * _gain(theta, share, numbers[o + BIAS])
    return total


@bare
def push(work: Work, mu: FloatArray, j: int, old: float, new: float) -> None:
    """Unit j has moved: mean inputs and terms of its children follow."""
    index, numbers = work.ints, work.numbers
    few, factor, slots = index[FEW_PTR] + j, index[FEW_FACTOR], index[FEW_SLOT]
    for c in range(index[few], index[few + 1]):
        f, slot = index[factor + c], index[slots + c]
        if index[index[ROOM_OF] + f] == ROOM:
            o, theta = _u(index[index[PLACE] + f]), numbers[index[WEIGHTS] + slot]
            share = numbers[index[TABLES] + index[index[TABLE_PTR] + f] + slot - index[index[PTR] + f]]
            numbers[o + MEAN] += theta * (new - old)
            numbers[o + TERM] += (new - old) * share * _gain(theta, share, numbers[o + BIAS])


@bare
def renew(work: Work, mu: FloatArray, enough: float, fresh: bool) -> float:
    """New shares, and the terms with them; nothing more to promise."""
    index, numbers = work.ints, work.numbers
    for f in range(index[N_FACTORS]):
        if index[index[ROOM_OF] + f] != ROOM:
            continue
        start, end, o = index[index[PTR] + f], index[index[PTR] + f + 1], _u(index[index[PLACE] + f])
        at, bias = index[TABLES] + index[index[TABLE_PTR] + f], numbers[o + BIAS]
        near, new = (
            numbers[at + end - start : at + 2 * (end - start)],
            numbers[at + 2 * (end - start) : at + 3 * (end - start)],
        )
        numbers[o + MEAN] = bias
        for s in range(start, end):
            near[s - start] = mu[index[index[PARENT] + s]]
            numbers[o + MEAN] += numbers[index[WEIGHTS] + s] * near[s - start]
        theta = numbers[index[WEIGHTS] + start : index[WEIGHTS] + end]
        numbers[o + TERM] = _improve(numbers[at : at + end - start], new, theta, near, bias)
    return 0.0


@bare
def gradient(work: Work, mu: FloatArray, by_slot: FloatArray, by_factor: FloatArray) -> None:
    """The slopes of the terms in weights and in the leak."""
    index, numbers = work.ints, work.numbers
    for f in range(index[N_FACTORS]):
        if index[index[ROOM_OF] + f] != ROOM:
            continue
        start, end = index[index[PTR] + f], index[index[PTR] + f + 1]
        at, bias = index[TABLES] + index[index[TABLE_PTR] + f], numbers[_u(index[index[PLACE] + f]) + BIAS]
        flat = gates.t_slope(gates.NOISY_OR, bias)
        by_factor[f] = flat
        for s in range(start, end):
            m, share = mu[index[index[PARENT] + s]], numbers[at + s - start]
            slope = gates.t_slope(gates.NOISY_OR, bias + numbers[index[WEIGHTS] + s] / share)
            by_slot[s] = m * slope
            by_factor[f] += share * m * (slope - flat)


@inner
def reference(
    kind: int, gate: int, weight: FloatArray, mu: FloatArray, bias: float, parameter: float
) -> tuple[float, float]:
    """The term of one factor with shares that no more steps improve; it has no parameter to return."""
    if gate != gates.NOISY_OR:
        return math.nan, math.nan
    share, new, before, term = real_numbers(len(weight)), real_numbers(len(weight)), math.inf, math.inf
    for s in range(len(weight)):
        share[s] = 1.0 / len(weight)
    for _ in range(100):
        before, term = term, _improve(share, new, weight, mu, bias)
        if not term < before - 1e-12:
            break
    return math.nan, term
