"""The mean of t(x) of a noisy-OR unit, at any number of parents: t is a sum of exponentials, and their means products.

With nodes k_q and weights w_q of `kernels.lobatto`, t(x) <= sum_q w_q e^{-k_q x} + tail for every x, and for
independent parents <e^{-kx}> = e^{-k theta_0} prod_j (1 - mu_j + mu_j e^{-k theta_j}). The state in which no cause is
on, where t is largest, is put right by a node of its own, k = infinity: e^{-kx} is 1 there (leak apart) and 0
elsewhere, and its weight makes the sum equal to t in that state. So the number of nodes depends on the weakest cause,
not on the leak, which may be as small as it likes.

A table of a factor has a row for each parent, e^{-k_q theta}, then rows for w_q, w_q e^{-k_q theta_0}, and the product.
"""

from __future__ import annotations

import math

import numpy as np

from sbnet._types import FloatArray
from sbnet.kernels import gates
from sbnet.kernels._compile import bare, vector
from sbnet.kernels.lobatto import NODES, POINTS, UNTIL, WEIGHTS
from sbnet.kernels.terms.work import (
    BIAS,
    FEW_FACTOR,
    FEW_PTR,
    FEW_SLOT,
    GATE,
    MEAN,
    MINE,
    N_FACTORS,
    PARENT,
    PLACE,
    PTR,
    TABLE_PTR,
    TABLES,
    TERM,
    VALUE,
    Work,
)
from sbnet.kernels.terms.work import ROOM as ROOM_OF
from sbnet.kernels.terms.work import WEIGHTS as SLOT_WEIGHTS

ROOM = 5
KINDS: dict[str, int] = {}  # what noisy-OR units get for "exact" and for "xi"
TILED = False

_u = np.uint64
_TAIL = MINE  # what lies beyond the last node
FAR = 30.0  # where e^-x is nothing beside 1e-12
_N = len(NODES)
NOTHING = 1e-20  # a cause that works less often than that has none of the octaves


@bare
def nodes_for(weakest: float) -> int:
    """How many nodes leave less than 1e-13 beyond the last, for inputs of at least `weakest`; whole octaves."""
    n = 0
    while n < _N and UNTIL[n] * weakest < FAR:
        n += 1
    n = min(n + POINTS, _N)
    while n < _N and UNTIL[n] == UNTIL[n - 1]:
        n += 1
    return n


@bare
def weakest(weight: FloatArray) -> float:
    """The smallest weight that counts. Weaker ones count as zero, which only raises t."""
    least = math.inf
    for s in range(len(weight)):
        if NOTHING < weight[s] < least:
            least = weight[s]
    return least


@bare
def rows_of(parents: int) -> int:
    """Rows of the table of a factor."""
    return parents + 3


@bare
def width_of(weight: FloatArray) -> int:
    """Numbers in a row of the table: the nodes and the one at infinity, in whole vectors."""
    return (nodes_for(weakest(weight)) + 1 + 7) // 8 * 8


@bare
def _place(work: Work, f: int) -> tuple[int, int, int, int]:
    """The table of factor f: where it begins, its first slot, how many parents, and how wide its rows are."""
    index = work.ints
    table, ptr = index[TABLE_PTR] + f, index[PTR] + f
    k, size = index[ptr + 1] - index[ptr], index[table + 1] - index[table]
    return index[TABLES] + index[table], index[ptr], k, size // rows_of(k)


@bare
def prepare(work: Work) -> None:
    """The decays of every edge, e^{-k theta}, and the weights of the nodes."""
    index, numbers = work.ints, work.numbers
    room = index[ROOM_OF]
    for f in range(index[N_FACTORS]):
        if index[room + f] == ROOM:
            at, start, k, width = _place(work, f)
            weights = index[SLOT_WEIGHTS] + start
            _fill(numbers, at, k, width, numbers[weights : weights + k])


@bare
def _fill(numbers: FloatArray, at: int, k: int, width: int, theta: FloatArray) -> None:
    n = nodes_for(weakest(theta))
    for s in range(k):
        counts = 1.0 if theta[s] > NOTHING else 0.0
        for q in range(width):
            numbers[at + s * width + q] = math.exp(-NODES[q] * theta[s] * counts) if q < n else 0.0
        numbers[at + s * width + n] = 1.0 - counts
    for q in range(width):
        numbers[at + k * width + q] = WEIGHTS[q] if q < n else 0.0


@bare
def begin(work: Work) -> None:
    """The leak of the row: its decays, the weight of the node at infinity, and the tail."""
    index, numbers = work.ints, work.numbers
    room, place = index[ROOM_OF], index[PLACE]
    for f in range(index[N_FACTORS]):
        if index[room + f] == ROOM:
            at, start, k, width = _place(work, f)
            o, weights = _u(index[place + f]), index[SLOT_WEIGHTS] + start
            tail = _with_leak(numbers, at, k, width, numbers[weights : weights + k], numbers[o + BIAS])
            numbers[o + _TAIL] = tail


@bare
def _with_leak(numbers: FloatArray, at: int, k: int, width: int, theta: FloatArray, bias: float) -> float:
    least = weakest(theta)
    n = nodes_for(least)
    raw, row, total = at + k * width, at + (k + 1) * width, 0.0
    reach = UNTIL[n - 1] * (least + bias)
    tail = math.exp(-reach) / reach
    for q in range(width):
        numbers[row + q] = numbers[raw + q] * math.exp(-NODES[q] * bias) if q < n else 0.0
        total += numbers[row + q]
    numbers[row + n] = gates.rarity(bias) - total - tail
    return tail


@vector
def _sum(numbers: FloatArray, row: int, width: int) -> float:
    """The sum over the nodes of the weights times the product."""
    total = 0.0
    for q in range(_u(width)):
        total += numbers[_u(row) + q] * numbers[_u(row) + _u(width) + q]
    return total


@vector
def _slope(numbers: FloatArray, edge: int, row: int, width: int, mu: float) -> float:
    """The slope of the term in the mean of one parent."""
    total = 0.0
    for q in range(_u(width)):
        decay = numbers[_u(edge) + q]
        weight = numbers[_u(row) + q] * numbers[_u(row) + _u(width) + q]
        total += weight * (decay - 1.0) / (1.0 - mu + mu * decay)
    return total


@vector
def _mix_in(edges: FloatArray, edge: int, numbers: FloatArray, product: int, width: int, mu: float) -> None:
    for q in range(_u(width)):
        numbers[_u(product) + q] *= 1.0 - mu + mu * edges[_u(edge) + q]


@vector
def _exchange(
    edges: FloatArray, edge: int, numbers: FloatArray, product: int, width: int, old: float, new: float
) -> None:
    for q in range(_u(width)):
        decay = edges[_u(edge) + q]
        numbers[_u(product) + q] *= (1.0 - new + new * decay) / (1.0 - old + old * decay)


@bare
def pull(work: Work, j: int, mu: FloatArray) -> float:
    """What the children of unit j add to its effective input: a finding that is absent only its weight."""
    index, numbers, total = work.ints, work.numbers, 0.0
    few, factor, slots = index[FEW_PTR] + j, index[FEW_FACTOR], index[FEW_SLOT]
    for c in range(index[few], index[few + 1]):
        f, slot = index[factor + c], index[slots + c]
        if index[index[ROOM_OF] + f] != ROOM:
            continue
        a, load = gates.loads(index[index[GATE] + f], numbers[_u(index[index[PLACE] + f]) + VALUE])
        total += a * numbers[index[SLOT_WEIGHTS] + slot]
        if load > 0.0:
            at, start, k, width = _place(work, f)
            total -= load * _slope(numbers, at + (slot - start) * width, at + (k + 1) * width, width, mu[j])
    return total


@bare
def push(work: Work, mu: FloatArray, j: int, old: float, new: float) -> None:
    """Unit j has moved: mean inputs, products and terms of its children follow."""
    index, numbers = work.ints, work.numbers
    few, factor, slots = index[FEW_PTR] + j, index[FEW_FACTOR], index[FEW_SLOT]
    for c in range(index[few], index[few + 1]):
        f, slot = index[factor + c], index[slots + c]
        if index[index[ROOM_OF] + f] != ROOM:
            continue
        o = _u(index[index[PLACE] + f])
        numbers[o + MEAN] += numbers[index[SLOT_WEIGHTS] + slot] * (new - old)
        if numbers[o + VALUE] > 0.0:  # an absent finding has no term
            at, start, k, width = _place(work, f)
            _exchange(numbers, at + (slot - start) * width, numbers, at + (k + 2) * width, width, old, new)
            numbers[o + TERM] = _sum(numbers, at + (k + 1) * width, width) + numbers[o + _TAIL]


@bare
def renew(work: Work, mu: FloatArray, enough: float, fresh: bool) -> float:
    """Compute the terms at the present means; nothing more to promise."""
    index, numbers = work.ints, work.numbers
    room, place, parent = index[ROOM_OF], index[PLACE], index[PARENT]
    for f in range(index[N_FACTORS]):
        if index[room + f] == ROOM:
            at, start, k, width = _place(work, f)
            o, product = _u(index[place + f]), at + (k + 2) * width
            mean = numbers[o + BIAS]
            for q in range(width):
                numbers[product + q] = 1.0
            for s in range(k):
                m = mu[index[parent + start + s]]
                mean += numbers[index[SLOT_WEIGHTS] + start + s] * m
                _mix_in(numbers, at + s * width, numbers, product, width, m)
            numbers[o + MEAN] = mean
            numbers[o + TERM] = _sum(numbers, at + (k + 1) * width, width) + numbers[o + _TAIL]
    return 0.0


@bare
def gradient(work: Work, mu: FloatArray, by_slot: FloatArray, by_factor: FloatArray) -> None:
    """The slopes of the terms in weights and in the leak."""
    index, numbers = work.ints, work.numbers
    for f in range(index[N_FACTORS]):
        if index[index[ROOM_OF] + f] != ROOM:
            continue
        at, start, k, width = _place(work, f)
        bias = numbers[_u(index[index[PLACE] + f]) + BIAS]
        weights = index[SLOT_WEIGHTS] + start
        n, row = nodes_for(weakest(numbers[weights : weights + k])), at + (k + 1) * width
        own, missed = 0.0, 0.0
        for q in range(n):
            own -= NODES[q] * numbers[row + q] * numbers[row + width + q]
            missed += NODES[q] * numbers[row + q]
        by_factor[f] = own + (gates.t_slope(index[index[GATE] + f], bias) + missed) * numbers[row + width + n]
        for s in range(k):
            m, edge, slope = mu[index[index[PARENT] + start + s]], at + s * width, 0.0
            for q in range(n):
                decay = numbers[edge + q]
                slope -= NODES[q] * numbers[row + q] * numbers[row + width + q] * m * decay / (1.0 - m + m * decay)
            by_slot[start + s] = slope


@bare
def reference(
    kind: int, gate: int, weight: FloatArray, mu: FloatArray, bias: float, parameter: float
) -> tuple[float, float]:
    """The term of one factor, node after node; it has no parameter to return."""
    if gate != gates.NOISY_OR:
        return math.nan, math.nan
    least = weakest(weight)
    n = nodes_for(least)
    reach = UNTIL[n - 1] * (least + bias)
    tail = math.exp(-reach) / reach
    none, total, missed = 1.0, tail, tail
    for s in range(len(weight)):
        none *= 1.0 - mu[s] if weight[s] > NOTHING else 1.0
    for q in range(n):
        product = WEIGHTS[q] * math.exp(-NODES[q] * bias)
        missed += product
        for s in range(len(weight)):
            product *= 1.0 - mu[s] + mu[s] * math.exp(-NODES[q] * (weight[s] if weight[s] > NOTHING else 0.0))
        total += product
    return math.nan, total + none * (gates.rarity(bias) - missed)
