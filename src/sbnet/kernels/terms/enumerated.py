"""Few parents: the mean of t(x) as a sum over their states. For any gate."""

from __future__ import annotations

import math

import numpy as np

from sbnet._types import FloatArray
from sbnet.kernels import gates
from sbnet.kernels._compile import bare, inlined, kernel
from sbnet.kernels.terms.work import (
    BIAS,
    FEW_FACTOR,
    FEW_PTR,
    FEW_SLOT,
    GATE,
    MEAN,
    N_FACTORS,
    NEAR,
    OWN,
    PARENT,
    PLACE,
    PTR,
    SCRATCH,
    TABLE_PTR,
    TABLES,
    TERM,
    VALUE,
    WEIGHTS,
    Work,
)
from sbnet.kernels.terms.work import ROOM as ROOM_OF

ROOM = 4
KINDS: dict[str, int] = {}  # nobody asks for it by name: it serves the factors that have few parents
TILED = False

_u = np.uint64


@inlined
def begin(work: Work) -> None:
    """Fill the tables; bit b of a state is that of parent b."""
    index, numbers = work.ints, work.numbers
    room, table, ptr, place, gate = index[ROOM_OF], index[TABLE_PTR], index[PTR], index[PLACE], index[GATE]
    for f in range(index[N_FACTORS]):
        if index[room + f] != ROOM:
            continue
        start, bias = index[ptr + f], numbers[_u(index[place + f]) + BIAS]
        first, weights, k = index[TABLES] + index[table + f], index[WEIGHTS] + start, index[ptr + f + 1] - start
        for state in range(1 << k):
            x = bias
            for b in range(k):
                if (state >> b) & 1:
                    x += numbers[weights + b]
            numbers[first + state] = gates.t(index[gate + f], x)


@bare
def _contract(work: Work, f: int, mu: FloatArray, skip: int) -> float:
    """The mean of the table of factor f over its independent parents.

    With `skip`, its slope in the mean of that parent instead.
    """
    index, numbers = work.ints, work.numbers
    ptr, scratch = index[PTR] + f, index[SCRATCH]
    first, start, k = index[TABLES] + index[index[TABLE_PTR] + f], index[ptr], index[ptr + 1] - index[ptr]
    size, parent = 1 << k, index[PARENT] + start
    for s in range(size):
        numbers[scratch + s] = numbers[first + s]
    for b in range(k - 1, -1, -1):
        size >>= 1
        m = mu[index[parent + b]]
        for s in range(scratch, scratch + size):
            off, on = numbers[s], numbers[s + size]
            numbers[s] = on - off if b == skip else off + m * (on - off)
    return numbers[scratch]


@inlined
def pull(work: Work, j: int, mu: FloatArray) -> float:
    """What the children of unit j add to its effective input."""
    index, numbers, total = work.ints, work.numbers, 0.0
    few, factor, slots = index[FEW_PTR] + j, index[FEW_FACTOR], index[FEW_SLOT]
    for k in range(index[few], index[few + 1]):
        f, slot = index[factor + k], index[slots + k]
        if index[index[ROOM_OF] + f] == ROOM:
            a, c = gates.loads(index[index[GATE] + f], numbers[_u(index[index[PLACE] + f]) + VALUE])
            total += a * numbers[index[WEIGHTS] + slot] - c * _contract(work, f, mu, slot - index[index[PTR] + f])
    return total


@inlined
def push(work: Work, mu: FloatArray, j: int, old: float, new: float) -> None:
    """Unit j has moved: the mean inputs of its children follow, and the terms of those that look at them."""
    index, numbers = work.ints, work.numbers
    few, factor, slots = index[FEW_PTR] + j, index[FEW_FACTOR], index[FEW_SLOT]
    for k in range(index[few], index[few + 1]):
        f = index[factor + k]
        if index[index[ROOM_OF] + f] == ROOM:
            at = _u(index[index[PLACE] + f])
            numbers[at + MEAN] += numbers[index[WEIGHTS] + index[slots + k]] * (new - old)
            if index[index[OWN] + f] >= 0 and gates.weighs(index[index[GATE] + f]) > 0.0:
                numbers[at + TERM] = _contract(work, f, mu, np.int64(-1))


@inlined
def renew(work: Work, mu: FloatArray, enough: float, fresh: bool) -> float:
    """Compute the terms at the present means; nothing more to promise."""
    index, numbers = work.ints, work.numbers
    room, place, ptr, parent, weights = index[ROOM_OF], index[PLACE], index[PTR], index[PARENT], index[WEIGHTS]
    for f in range(index[N_FACTORS]):
        if index[room + f] == ROOM:
            at = _u(index[place + f])
            mean = numbers[at + BIAS]
            for s in range(index[ptr + f], index[ptr + f + 1]):
                mean += numbers[weights + s] * mu[index[parent + s]]
            numbers[at + MEAN] = mean
            numbers[at + TERM] = _contract(work, f, mu, np.int64(-1))
    return 0.0


@inlined
def _state(weight: FloatArray, mu: FloatArray, bias: float, state: int) -> tuple[float, float]:
    """The input that one state of the parents gives, and its chance."""
    x, chance = bias, 1.0
    for b in range(len(weight)):
        if (state >> b) & 1:
            x += weight[b]
            chance *= mu[b]
        else:
            chance *= 1.0 - mu[b]
    return x, chance


@bare
def gradient(work: Work, mu: FloatArray, by_slot: FloatArray, by_factor: FloatArray) -> None:
    """The slopes of the terms in weights and in biases."""
    index, numbers = work.ints, work.numbers
    for f in range(index[N_FACTORS]):
        if index[index[ROOM_OF] + f] != ROOM:
            continue
        start, end = index[index[PTR] + f], index[index[PTR] + f + 1]
        near, bias = numbers[index[NEAR] : index[NEAR] + end - start], numbers[_u(index[index[PLACE] + f]) + BIAS]
        by_factor[f] = 0.0
        for s in range(start, end):
            near[s - start], by_slot[s] = mu[index[index[PARENT] + s]], 0.0
        for state in range(1 << (end - start)):
            x, chance = _state(numbers[index[WEIGHTS] + start : index[WEIGHTS] + end], near, bias, state)
            part = chance * gates.t_slope(index[index[GATE] + f], x)
            by_factor[f] += part
            for s in range(start, end):
                if (state >> (s - start)) & 1:
                    by_slot[s] += part


@bare
def reference(
    kind: int, gate: int, weight: FloatArray, mu: FloatArray, bias: float, parameter: float
) -> tuple[float, float]:
    """The term of one factor; it has no parameter to return."""
    return math.nan, mean_t(gate, weight, mu, bias)


@kernel
def mean_t(gate: int, weight: FloatArray, mu: FloatArray, bias: float) -> float:
    """The mean of t(x), summed over all states of the parents."""
    total = 0.0
    for state in range(1 << len(weight)):
        x, chance = _state(weight, mu, bias, state)
        if chance > 0.0:
            total += chance * gates.t(gate, x)
    return total


@inlined
def mean_p(gate: int, weight: FloatArray, mu: FloatArray, bias: float) -> float:
    """The mean chance of being 1, likewise."""
    total = 0.0
    for state in range(1 << len(weight)):
        x, chance = _state(weight, mu, bias, state)
        total += chance * gates.p(gate, x)
    return min(total, 1.0)  # the chances sum to one but for rounding
