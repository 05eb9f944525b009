"""The mean of t(x) of a noisy-OR variable, for any number of parents: t is a sum of exponentials.

With nodes k and weights w of `quadrature.lobatto`, t(x) <= sum_k w_k e^{-kx} + tail for every x, and for independent
parents <e^{-kx}> = e^{-kh} prod_u f_u(k), f_u = sum_s Q_u(s) e^{-k J_s}. The joint state in which no cause is on, where
t is largest, is put right by a node of its own, k = infinity: e^{-kx} is 1 there (leak apart) and 0 elsewhere, and its
weight makes the sum equal to t in that state. So the number of nodes depends on the weakest cause, not on the leak,
which may be as small as it likes.

The table of a factor has rows of nodes: e^{-k J} for each slot, then w e^{-kh}, the product of all f, and one f.
"""

import math

import numpy as np

from sbnet.kernels.codes import NOISY_OR
from sbnet.kernels.compiling import inner
from sbnet.kernels.kinds import SERIES
from sbnet.kernels.thresholds import dt, rarity
from sbnet.kernels.vector import unsigned
from sbnet.quadrature.lobatto import NODES, NOTHING, UNTIL, WEIGHTS, nodes_for


def room(problem, factors):
    """Rows for the nodes, as many as the weakest cause of a factor needs, and for the one at infinity."""
    of_slot = np.where(problem.slots["weight"] > NOTHING, problem.slots["weight"], np.inf)
    weakest = [of_slot[first:end].min() for first, end in zip(factors["slot"], factors["slot_end"], strict=True)]
    problem.factors["width"][problem.factors["kind"] == SERIES] = width = np.array([nodes_for(w) + 1 for w in weakest])
    return (factors["slot_end"] - factors["slot"] + 3) * width


def prepare(problem, blocks, tiles, numbers):
    """e^{-k J} of every slot."""
    for factor in problem.factors[problem.factors["kind"] == SERIES]:
        j, n = problem.slots["weight"][factor["slot"] : factor["slot_end"], None], factor["width"]
        table = numbers[factor["table"] : factor["table"] + len(j) * n].reshape(len(j), n)
        table[:, :-1] = np.exp(-NODES[: n - 1] * np.where(j > NOTHING, j, 0.0))
        table[:, -1:] = j <= NOTHING


@inner
def _rows(factor):
    """Where the rows begin that hold w e^{-kh}, the product, and one f."""
    first = factor.table + (factor.slot_end - factor.slot) * factor.width
    return first, first + factor.width, first + 2 * factor.width


@inner(fast=True)
def _include(numbers, factor, slot, q, column, n, power):
    """f of the parent whose slots begin there, its n probabilities at `column`; the product times f to that power."""
    width, (_, product, one) = factor.width, _rows(factor)
    x, f, rest = unsigned(product), unsigned(one), 1.0
    for c in range(column, column + n):
        rest -= q[c]
    for k in range(unsigned(width)):
        numbers[f + k] = rest
    for c in range(n):
        p, e = q[column + c], unsigned(factor.table + (slot - factor.slot + c) * width)
        for k in range(unsigned(width)):
            numbers[f + k] += p * numbers[e + k]
    for k in range(unsigned(width if power != 0 else 0)):
        numbers[x + k] *= numbers[f + k] if power > 0 else 1.0 / numbers[f + k]


@inner(fast=True)
def look(f, problem, blocks, tiles, numbers, q):
    """The term of one factor, whose product follows Q."""
    factor = problem.factors[f]
    row, product, _ = _rows(factor)
    total, w, x = blocks[factor.block].constant[factor.lane], unsigned(row), unsigned(product)
    for k in range(unsigned(factor.width)):
        total += numbers[w + k] * numbers[x + k]
    return total


@inner
def value(problem, blocks, tiles, numbers, q, enough, fresh, more):
    """The terms at the present Q; nothing more to promise. A new row has another leak, and so other weights."""
    for f in range(len(problem.factors)):
        factor = problem.factors[f]
        if factor.kind != SERIES:
            continue
        block, i, n, (row, product, _) = blocks[factor.block], factor.lane, factor.width - 1, _rows(factor)
        x, least, s = block.h[i], np.inf, factor.slot
        for c in range(factor.slot, factor.slot_end):
            j = problem.slots[c].weight
            x, least = x + j * q[problem.slots[c].column], j if NOTHING < j < least else least
        if fresh:
            reach = UNTIL[n - 1] * (least + block.h[i])
            block.constant[i] = total = math.exp(-reach) / reach  # the tail
            for k in range(n):
                numbers[row + k] = WEIGHTS[k] * math.exp(-NODES[k] * block.h[i])
                total += numbers[row + k]
            numbers[row + n] = rarity(block.h[i]) - total
        for k in range(product, product + n + 1):
            numbers[k] = 1.0
        while s < factor.slot_end:
            states = problem.hidden[problem.slots[s].parent].states - 1
            _include(numbers, factor, s, q, problem.slots[s].column, states, 1)
            s += states
        block.x[i], block.t[i] = x, look(f, problem, blocks, tiles, numbers, q)
    return 0.0


@inner(fast=True)
def pull(parent, problem, blocks, tiles, numbers, q, field):
    """What children say about each state, e^{-k J_s} - 1 in place of f; a finding that is absent has only a J."""
    for k in range(parent.child, parent.child_end):
        child, factor = problem.children[k], problem.factors[problem.children[k].factor]
        if factor.kind != SERIES:
            continue
        a, c, (row, product, one) = (
            blocks[factor.block].a[factor.lane],
            blocks[factor.block].c[factor.lane],
            _rows(factor),
        )
        w, x, f = unsigned(row), unsigned(product), unsigned(one)
        if c > 0.0:
            _include(numbers, factor, child.slot, q, parent.column, parent.states - 1, 0)
        for s in range(parent.states - 1):
            e, total = unsigned(factor.table + (child.slot - factor.slot + s) * factor.width), 0.0
            for i in range(unsigned(factor.width if c > 0.0 else 0)):
                total += numbers[w + i] * numbers[x + i] * (numbers[e + i] - 1.0) / numbers[f + i]
            field[s] += a * problem.slots[child.slot + s].weight - c * total


@inner
def push(parent, problem, blocks, tiles, numbers, old, q):
    """A parent has moved: mean inputs of its children follow, and products where they count."""
    for k in range(parent.child, parent.child_end):
        child, factor, n = problem.children[k], problem.factors[problem.children[k].factor], parent.states - 1
        block = blocks[factor.block]
        for s in range(n if factor.kind == SERIES else 0):
            block.x[factor.lane] += problem.slots[child.slot + s].weight * (q[parent.column + s] - old[s])
        if factor.kind == SERIES and block.c[factor.lane] > 0.0:
            _include(numbers, factor, child.slot, old, 0, n, -1)
            _include(numbers, factor, child.slot, q, parent.column, n, 1)


@inner
def gradient(problem, blocks, tiles, numbers, q, by_slot, by_factor):
    """The derivatives of the terms in weights and in the leak."""
    for f in range(len(by_factor)):
        factor = problem.factors[f]
        if factor.kind != SERIES:
            continue
        (row, product, one), width, s = _rows(factor), factor.width, factor.slot
        last = numbers[product + width - 1]  # of the node at infinity, whose weight makes up for the others
        by_factor[f] = dt(NOISY_OR, blocks[factor.block].h[factor.lane]) * last
        for k in range(width - 1):
            by_factor[f] += NODES[k] * numbers[row + k] * (last - numbers[product + k])
        while s < factor.slot_end:
            column, end = problem.slots[s].column, s + problem.hidden[problem.slots[s].parent].states - 1
            _include(numbers, factor, s, q, column, end - s, 0)
            for c in range(s, end):
                edge, total = factor.table + (c - factor.slot) * width, 0.0
                for k in range(width - 1):
                    part = numbers[row + k] * numbers[product + k] / numbers[one + k]
                    total -= NODES[k] * part * numbers[edge + k]
                by_slot[c] = q[column + c - s] * total
            s = end
