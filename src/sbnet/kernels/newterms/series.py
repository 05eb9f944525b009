"""The mean of t(x) of a noisy-OR variable, for any number of parents: t is a sum of exponentials.

With nodes k and weights w of `kernels.lobatto`, t(x) <= sum_k w_k e^{-kx} + tail for every x, and for independent
parents <e^{-kx}> = e^{-kh} prod_u f_u(k), f_u = sum_s Q_u(s) e^{-k J_s}. The joint state in which no cause is on, where
t is largest, is put right by a node of its own, k = infinity: e^{-kx} is 1 there (leak apart) and 0 elsewhere, and its
weight makes the sum equal to t in that state. So the number of nodes depends on the weakest cause, not on the leak,
which may be as small as it likes.

The table of a factor has rows of nodes: e^{-k J} for each slot, then w, w e^{-kh}, the product of all f, and one f.
"""

from __future__ import annotations

import math

import numpy as np

from sbnet._types import FloatArray
from sbnet.kernels.compiling import inner
from sbnet.kernels.gates import NOISY_OR
from sbnet.kernels.kinds import SERIES
from sbnet.kernels.lobatto import NODES, POINTS, UNTIL, WEIGHTS
from sbnet.kernels.newterms.frequencies import fill, unsigned
from sbnet.kernels.structs import Problem
from sbnet.kernels.thresholds import dt, rarity

FAR = 30.0  # where e^-x is nothing beside 1e-12
_N = len(NODES)
NOTHING = 1e-20  # a cause that works less often than that counts as none, which only raises t


SERVES = (SERIES,)


@inner
def _weakest(slots: np.ndarray, factor: np.ndarray) -> float:
    """The smallest weight that counts."""
    least = np.inf
    for s in range(factor.slot, factor.slot_end):
        if NOTHING < slots[s].weight < least:
            least = slots[s].weight
    return least


@inner
def nodes_for(weakest: float) -> int:
    """How many nodes leave less than 1e-13 beyond the last, for inputs of at least `weakest`; whole octaves."""
    n = 0
    while n < _N and UNTIL[n] * weakest < FAR:
        n += 1
    n = min(n + POINTS, _N)
    while n < _N and UNTIL[n] == UNTIL[n - 1]:
        n += 1
    return n


@inner
def room(problem: Problem, factor: np.ndarray) -> int:
    """Rows for the nodes and the one at infinity."""
    return (factor.slot_end - factor.slot + 4) * (nodes_for(_weakest(problem.slots, factor)) + 1)


@inner
def prepare(problem: Problem, blocks: np.ndarray, tiles: np.ndarray, numbers: FloatArray) -> None:
    """e^{-k J} of every slot, and the weights of the nodes."""
    for f in range(len(problem.factors)):
        factor = problem.factors[f]
        if factor.kind != SERIES:
            continue
        n = nodes_for(_weakest(problem.slots, factor))
        factor.width, at = n + 1, factor.table
        for s in range(factor.slot, factor.slot_end):
            j = problem.slots[s].weight if problem.slots[s].weight > NOTHING else 0.0
            for k in range(n):
                numbers[at + k] = math.exp(-NODES[k] * j)
            numbers[at + n] = 0.0 if j > 0.0 else 1.0
            at += n + 1
        for k in range(n):
            numbers[at + k] = WEIGHTS[k]


@inner
def _leak(problem: Problem, factor: np.ndarray, h: float, numbers: FloatArray) -> float:
    """w e^{-kh} in a row with this leak, the weight of the node at infinity, and the tail, which is returned."""
    least, n = _weakest(problem.slots, factor), factor.width - 1
    weights, row = _rows(factor)[0] - factor.width, _rows(factor)[0]
    reach = UNTIL[n - 1] * (least + h)
    tail = math.exp(-reach) / reach
    total = tail
    for k in range(n):
        numbers[row + k] = numbers[weights + k] * math.exp(-NODES[k] * h)
        total += numbers[row + k]
    numbers[row + n] = rarity(h) - total
    return tail


@inner
def _rows(factor: np.ndarray) -> tuple[int, int, int]:
    """Where the rows begin that hold w e^{-kh}, the product, and one f."""
    first = factor.table + (factor.slot_end - factor.slot + 1) * factor.width
    return first, first + factor.width, first + 2 * factor.width


@inner
def _one_factor(numbers: FloatArray, first: int, to: int, width: int, q: FloatArray, column: int, n: int) -> None:
    """f of a parent whose rows begin at `first`; Q of its n states from 1 on begins at `column`."""
    rest = 1.0
    for s in range(n):
        rest -= q[column + s]
    x = unsigned(to)
    fill(numbers, to, rest, width)
    for s in range(n):
        p, y = q[column + s], unsigned(first + s * width)
        for k in range(unsigned(width)):
            numbers[x + k] += p * numbers[y + k]


@inner(fast=True)
def _times(numbers: FloatArray, product: int, by: int, width: int, inverse: bool) -> None:
    """Multiply the product by one f, or divide it."""
    x, y = unsigned(product), unsigned(by)
    for k in range(unsigned(width)):
        numbers[x + k] *= 1.0 / numbers[y + k] if inverse else numbers[y + k]


@inner(fast=True)
def _sum(numbers: FloatArray, row: int, product: int, width: int) -> float:
    total, x, y = 0.0, unsigned(row), unsigned(product)
    for k in range(unsigned(width)):
        total += numbers[x + k] * numbers[y + k]
    return total


@inner
def look(f: int, problem: Problem, blocks: np.ndarray, tiles: np.ndarray, numbers: FloatArray, q: FloatArray) -> float:
    """The term of one factor, whose product follows Q."""
    factor = problem.factors[f]
    row, product, _ = _rows(factor)
    return _sum(numbers, row, product, factor.width) + blocks[factor.block].constant[factor.lane]


@inner
def value(
    problem: Problem, blocks: np.ndarray, tiles: np.ndarray, numbers: FloatArray, q: FloatArray, enough: float,
    fresh: bool,
) -> float:  # fmt: skip
    """The terms at the present Q; nothing more to promise."""
    for f in range(len(problem.factors)):
        factor = problem.factors[f]
        if factor.kind != SERIES:
            continue
        block, i, width = blocks[factor.block], factor.lane, factor.width
        if fresh:
            block.constant[i] = _leak(problem, factor, block.h[i], numbers)
        (_, product, scratch), s, x = _rows(factor), factor.slot, block.h[i]
        fill(numbers, product, 1.0, width)
        while s < factor.slot_end:
            column, n = problem.slots[s].column, problem.hidden[problem.slots[s].parent].states - 1
            _one_factor(numbers, factor.table + (s - factor.slot) * width, scratch, width, q, column, n)
            _times(numbers, product, scratch, width, False)
            for c in range(n):
                x += problem.slots[s + c].weight * q[column + c]
            s += n
        block.x[i], block.t[i] = x, look(f, problem, blocks, tiles, numbers, q)
    return 0.0


@inner(fast=True)
def _slope(numbers: FloatArray, edge: int, row: int, product: int, scratch: int, width: int) -> float:
    """The derivative of the term in Q_u(s): e^{-k J_s} - 1 in place of f."""
    total, e, w, x, f = 0.0, unsigned(edge), unsigned(row), unsigned(product), unsigned(scratch)
    for k in range(unsigned(width)):
        total += numbers[w + k] * numbers[x + k] * (numbers[e + k] - 1.0) / numbers[f + k]
    return total


@inner
def pull(
    parent: np.ndarray, problem: Problem, blocks: np.ndarray, tiles: np.ndarray, numbers: FloatArray, q: FloatArray,
    field: FloatArray,
) -> None:  # fmt: skip
    """What children say about each state; a finding that is absent has no term, only a J."""
    for k in range(parent.child, parent.child_end):
        child = problem.children[k]
        factor = problem.factors[child.factor]
        if factor.kind != SERIES:
            continue
        a, c = blocks[factor.block].a[factor.lane], blocks[factor.block].c[factor.lane]
        (row, product, scratch), edge = _rows(factor), factor.table + (child.slot - factor.slot) * factor.width
        if c > 0.0:
            _one_factor(numbers, edge, scratch, factor.width, q, parent.column, parent.states - 1)
        for s in range(parent.states - 1):
            field[s] += a * problem.slots[child.slot + s].weight
            if c > 0.0:
                slope = _slope(numbers, edge + s * factor.width, row, product, scratch, factor.width)
                field[s] -= c * slope


@inner
def push(
    parent: np.ndarray, problem: Problem, blocks: np.ndarray, tiles: np.ndarray, numbers: FloatArray, old: FloatArray,
    q: FloatArray,
) -> None:  # fmt: skip
    """A parent has moved: mean inputs of its children follow, and products where they count."""
    for k in range(parent.child, parent.child_end):
        child = problem.children[k]
        factor = problem.factors[child.factor]
        if factor.kind != SERIES:
            continue
        block, n = blocks[factor.block], parent.states - 1
        for s in range(n):
            block.x[factor.lane] += problem.slots[child.slot + s].weight * (q[parent.column + s] - old[s])
        if block.c[factor.lane] > 0.0:
            width, (_, product, scratch) = factor.width, _rows(factor)
            edge = factor.table + (child.slot - factor.slot) * width
            _one_factor(numbers, edge, scratch, width, old, 0, n)
            _times(numbers, product, scratch, width, True)
            _one_factor(numbers, edge, scratch, width, q, parent.column, n)
            _times(numbers, product, scratch, width, False)


@inner
def gradient(
    problem: Problem, blocks: np.ndarray, tiles: np.ndarray, numbers: FloatArray, q: FloatArray, by_slot: FloatArray,
    by_factor: FloatArray,
) -> None:  # fmt: skip
    """The derivatives of the terms in weights and in the leak."""
    for f in range(len(by_factor)):
        factor = problem.factors[f]
        if factor.kind != SERIES:
            continue
        (row, product, scratch), width, s = _rows(factor), factor.width, factor.slot
        inside = missed = 0.0
        for k in range(width - 1):
            inside -= NODES[k] * numbers[row + k] * numbers[product + k]
            missed += NODES[k] * numbers[row + k]
        h = blocks[factor.block].h[factor.lane]
        by_factor[f] = inside + (dt(NOISY_OR, h) + missed) * numbers[product + width - 1]
        while s < factor.slot_end:
            column, n = problem.slots[s].column, problem.hidden[problem.slots[s].parent].states - 1
            first = factor.table + (s - factor.slot) * width
            _one_factor(numbers, first, scratch, width, q, column, n)
            for c in range(n):
                edge, total = first + c * width, 0.0
                for k in range(width - 1):
                    part = numbers[row + k] * numbers[product + k] / numbers[scratch + k]
                    total -= NODES[k] * part * numbers[edge + k]
                by_slot[s + c] = q[column + c] * total
            s += n
