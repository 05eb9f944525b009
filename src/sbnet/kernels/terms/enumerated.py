"""Few parents: the mean of t(x) as a sum over their states. For any gate."""

from __future__ import annotations

import math

import numpy as np

from sbnet._types import FloatArray
from sbnet.kernels import gates
from sbnet.kernels._compile import bare, kernel, vector
from sbnet.kernels.arrays import load
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


@bare
def begin(work: Work) -> None:
    """Fill the tables; bit b of a state is that of parent b."""
    index, numbers = work.ints, work.numbers
    room, table, ptr, place, gate = (
        load(index, ROOM_OF),
        load(index, TABLE_PTR),
        load(index, PTR),
        load(index, PLACE),
        load(index, GATE),
    )
    for f in range(load(index, N_FACTORS)):
        if load(index, room, f) != ROOM:
            continue
        start, bias = load(index, ptr, f), load(numbers, _u(load(index, place, f)), BIAS)
        first, weights, k = (
            load(index, TABLES) + load(index, table, f),
            load(index, WEIGHTS) + start,
            load(index, ptr + f, 1) - start,
        )
        for state in range(1 << k):
            x = bias
            for b in range(k):
                if (state >> b) & 1:
                    x += load(numbers, weights, b)
            numbers[first + state] = gates.t(load(index, gate, f), x)


@vector
def _contract(work: Work, f: int, mu: FloatArray, skip: int) -> float:
    """The mean of the table of factor f over its independent parents.

    With `skip`, its slope in the mean of that parent instead.
    """
    index, numbers = work.ints, work.numbers
    ptr, scratch = load(index, PTR) + f, load(index, SCRATCH)
    first, start, k = (
        load(index, TABLES) + load(index, load(index, TABLE_PTR), f),
        load(index, ptr),
        load(index, ptr, 1) - load(index, ptr),
    )
    size, parent = 1 << k, load(index, PARENT) + start
    for s in range(size):
        numbers[scratch + s] = load(numbers, first, s)
    for b in range(k - 1, -1, -1):
        size >>= 1
        m = load(mu, load(index, parent, b))
        for s in range(scratch, scratch + size):
            off, on = load(numbers, s), load(numbers, s, size)
            numbers[s] = on - off if b == skip else off + m * (on - off)
    return load(numbers, scratch)


@bare
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


@bare
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


@bare
def renew(work: Work, mu: FloatArray, enough: float, fresh: bool) -> float:
    """Compute the terms at the present means; nothing more to promise."""
    index, numbers = work.ints, work.numbers
    room, place, ptr, parent, weights = (
        load(index, ROOM_OF),
        load(index, PLACE),
        load(index, PTR),
        load(index, PARENT),
        load(index, WEIGHTS),
    )
    for f in range(load(index, N_FACTORS)):
        if load(index, room, f) == ROOM:
            at = _u(load(index, place, f))
            mean = load(numbers, at, BIAS)
            for s in range(load(index, ptr, f), load(index, ptr + f, 1)):
                mean += load(numbers, weights, s) * load(mu, load(index, parent, s))
            numbers[at + MEAN] = mean
            numbers[at + TERM] = _contract(work, f, mu, np.int64(-1))
    return 0.0


@bare
def _state(weight: FloatArray, mu: FloatArray, bias: float, state: int) -> tuple[float, float]:
    """The input that one state of the parents gives, and its chance."""
    x, chance = bias, 1.0
    for b in range(len(weight)):
        if (state >> b) & 1:
            x += load(weight, b)
            chance *= load(mu, b)
        else:
            chance *= 1.0 - load(mu, b)
    return x, chance


@bare
def gradient(work: Work, mu: FloatArray, by_slot: FloatArray, by_factor: FloatArray) -> None:
    """The slopes of the terms in weights and in biases."""
    index, numbers = work.ints, work.numbers
    for f in range(load(index, N_FACTORS)):
        if load(index, load(index, ROOM_OF), f) != ROOM:
            continue
        start, end = load(index, load(index, PTR), f), load(index, load(index, PTR) + f, 1)
        near, bias = (
            numbers[load(index, NEAR) : load(index, NEAR) + end - start],
            load(numbers, _u(load(index, load(index, PLACE), f)), BIAS),
        )
        by_factor[f] = 0.0
        for s in range(start, end):
            near[s - start], by_slot[s] = load(mu, load(index, load(index, PARENT), s)), 0.0
        for state in range(1 << (end - start)):
            x, chance = _state(numbers[load(index, WEIGHTS) + start : load(index, WEIGHTS) + end], near, bias, state)
            part = chance * gates.t_slope(load(index, load(index, GATE), f), x)
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


@bare
def mean_p(gate: int, weight: FloatArray, mu: FloatArray, bias: float) -> float:
    """The mean chance of being 1, likewise."""
    total = 0.0
    for state in range(1 << len(weight)):
        x, chance = _state(weight, mu, bias, state)
        total += chance * gates.p(gate, x)
    return min(total, 1.0)  # the chances sum to one but for rounding
