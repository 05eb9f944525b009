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
from typing import Any

import numpy as np

from sbnet.kernels.codes import NOISY_OR
from sbnet.kernels.compiling import inner, kernel
from sbnet.kernels.kinds import SERIES
from sbnet.kernels.lobatto import NODES, NOTHING, UNTIL, WEIGHTS, nodes_for
from sbnet.kernels.structs import Problem
from sbnet.kernels.terms.frequencies import unsigned
from sbnet.kernels.thresholds import dt, rarity

SERVES = (SERIES,)


def room(problem: Problem, factors: Any) -> Any:
    """Rows for the nodes, as many as the weakest cause of a factor needs, and for the one at infinity."""
    of_slot = np.where(problem.slots["weight"] > NOTHING, problem.slots["weight"], np.inf)
    weakest = [of_slot[first:end].min() for first, end in zip(factors["slot"], factors["slot_end"], strict=True)]
    problem.factors["width"][problem.factors["kind"] == SERIES] = width = np.array([nodes_for(w) + 1 for w in weakest])
    return (factors["slot_end"] - factors["slot"] + 4) * width


@kernel
def prepare(problem, blocks, tiles, numbers):
    """e^{-k J} of every slot, and the weights of the nodes."""
    for f in range(len(problem.factors)):
        factor = problem.factors[f]
        if factor.kind != SERIES:
            continue
        n, at = factor.width - 1, factor.table
        for s in range(factor.slot, factor.slot_end):
            j = problem.slots[s].weight if problem.slots[s].weight > NOTHING else 0.0
            for k in range(n):
                numbers[at + k] = math.exp(-NODES[k] * j)
            numbers[at + n] = 0.0 if j > 0.0 else 1.0
            at += n + 1
        for k in range(n):
            numbers[at + k] = WEIGHTS[k]


@inner
def _leak(problem, factor, h, numbers):
    """w e^{-kh} in a row with this leak, the weight of the node at infinity, and the tail, which is returned."""
    least, n = np.inf, factor.width - 1
    for s in range(factor.slot, factor.slot_end):
        j = problem.slots[s].weight
        least = j if NOTHING < j < least else least
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
def _rows(factor):
    """Where the rows begin that hold w e^{-kh}, the product, and one f."""
    first = factor.table + (factor.slot_end - factor.slot + 1) * factor.width
    return first, first + factor.width, first + 2 * factor.width


@inner
def _one_factor(numbers, first, to, width, q, column, n):
    """f of a parent whose rows begin at `first`; Q of its n states from 1 on begins at `column`."""
    rest = 1.0
    for s in range(n):
        rest -= q[column + s]
    x = unsigned(to)
    for k in range(unsigned(width)):
        numbers[x + k] = rest
    for s in range(n):
        p, y = q[column + s], unsigned(first + s * width)
        for k in range(unsigned(width)):
            numbers[x + k] += p * numbers[y + k]


@inner(fast=True)
def _times(numbers, product, by, width, inverse):
    """Multiply the product by one f, or divide it."""
    x, y = unsigned(product), unsigned(by)
    for k in range(unsigned(width)):
        numbers[x + k] *= 1.0 / numbers[y + k] if inverse else numbers[y + k]


@inner(fast=True)
def _sum(numbers, row, product, width):
    total, x, y = 0.0, unsigned(row), unsigned(product)
    for k in range(unsigned(width)):
        total += numbers[x + k] * numbers[y + k]
    return total


@inner
def look(f, problem, blocks, tiles, numbers, q):
    """The term of one factor, whose product follows Q."""
    factor = problem.factors[f]
    row, product, _ = _rows(factor)
    return _sum(numbers, row, product, factor.width) + blocks[factor.block].constant[factor.lane]


@inner
def value(problem, blocks, tiles, numbers, q, enough, fresh, more):
    """The terms at the present Q; nothing more to promise."""
    for f in range(len(problem.factors)):
        factor = problem.factors[f]
        if factor.kind != SERIES:
            continue
        block, i, width = blocks[factor.block], factor.lane, factor.width
        if fresh:
            block.constant[i] = _leak(problem, factor, block.h[i], numbers)
        (_, product, scratch), s, x = _rows(factor), factor.slot, block.h[i]
        for k in range(product, product + width):
            numbers[k] = 1.0
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
def _slope(numbers, edge, row, product, scratch, width):
    """The derivative of the term in Q_u(s): e^{-k J_s} - 1 in place of f."""
    total, e, w, x, f = 0.0, unsigned(edge), unsigned(row), unsigned(product), unsigned(scratch)
    for k in range(unsigned(width)):
        total += numbers[w + k] * numbers[x + k] * (numbers[e + k] - 1.0) / numbers[f + k]
    return total


@inner
def pull(parent, problem, blocks, tiles, numbers, q, field):
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
def push(parent, problem, blocks, tiles, numbers, old, q):
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
def gradient(problem, blocks, tiles, numbers, q, by_slot, by_factor):
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
