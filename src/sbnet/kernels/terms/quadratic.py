"""A parabola above ln(1 + e^x), for sigmoid variables (Jaakkola & Jordan 1997); it needs <x> and <x^2> alone:

    ln(1 + e^x) <= lambda(c) (x^2 - c^2) + (x - c) / 2 + ln(1 + e^c) ,    lambda(c) = tanh(c / 2) / 4c ,

best at c^2 = <x^2>. With r the mean of x without parent u, <x^2> in state s of u is 2 r J_s + J_s^2 above that in state
0: for a given c the bound is linear in Q_u. `straight` and `curve` of a block are the factors of <x> and <x^2>; the
exact term has such parts as well.

Loops over lanes end at min(block.lanes, LANES), which is sixteen: the compiler, which must not know that they are so
short, nor fear that they are long, makes vectors of them. See `lanes` in `structs`.
"""

import math

from sbnet.kernels.compiling import inner
from sbnet.kernels.kinds import QUADRATIC
from sbnet.kernels.structs import LANES
from sbnet.kernels.thresholds import softplus


@inner(fast=True)
def moments(block, tiles, q):
    """<x> and <x^2> of the factors of a block."""
    for i in range(min(block.lanes, LANES)):
        block.x[i], block.second[i] = block.h[i], 0.0
    t = block.pair
    while t >= 0:
        tile, m = tiles[t], q[tiles[t].column]
        for i in range(min(block.lanes, LANES)):
            w = tile.weight[i]
            block.x[i] += w * m
            block.second[i] += w * w * (m * (1.0 - m))
        t = tile.after
    t = block.group
    while t >= 0:
        for i in range(min(block.lanes, LANES)):
            block.arg[i] = 0.0
        for s in range(1, tiles[t].states):
            tile, p = tiles[t + s], q[tiles[t].column + s - 1]
            for i in range(min(block.lanes, LANES)):
                w = tile.weight[i]
                block.arg[i] += w * p
                block.second[i] += w * w * p
        for i in range(min(block.lanes, LANES)):
            block.x[i] += block.arg[i]
            block.second[i] -= block.arg[i] * block.arg[i]
        t = tiles[t].after
    for i in range(min(block.lanes, LANES)):
        block.second[i] += block.x[i] * block.x[i]


def verbs_of(kind):
    """`pull`, `push` and `gradient` for the parts in <x> and <x^2> of factors of this kind."""

    @inner(fast=True)
    def pull(parent, problem, blocks, tiles, numbers, q, field):
        """What children say about each state: (a - c straight) J_s - c curve (2 r J_s + J_s^2)."""
        n, k, total, m = parent.states, parent.tile[kind], 0.0, 1.0 - 2.0 * q[parent.column]
        while k < parent.tile_end[kind] and n == 2:  # r = <x> - J Q(1)
            tile, block, part = tiles[k], blocks[tiles[k].block], 0.0
            for i in range(min(block.lanes, LANES)):
                w = tile.weight[i]
                straight = block.straight[i] + block.curve[i] * (2.0 * block.x[i] + w * m)
                part += w * (block.a[i] - block.c[i] * straight)
            total += part
            k += 1
        field[0] += total
        while k < parent.tile_end[kind]:
            block = blocks[tiles[k].block]
            for i in range(min(block.lanes, LANES)):
                block.arg[i] = block.x[i]
            for s in range(1, n):
                tile, p = tiles[k + s], q[parent.column + s - 1]
                for i in range(min(block.lanes, LANES)):
                    block.arg[i] -= p * tile.weight[i]
            for s in range(1, n):
                tile, total = tiles[k + s], 0.0
                for i in range(min(block.lanes, LANES)):
                    w = tile.weight[i]
                    total += w * (
                        block.a[i] - block.c[i] * (block.straight[i] + block.curve[i] * (2.0 * block.arg[i] + w))
                    )
                field[s - 1] += total
            k += n

    @inner(fast=True)
    def push(parent, problem, blocks, tiles, numbers, old, q):
        """A parent has moved: <x> of its children follows."""
        for k in range(parent.tile[kind], parent.tile_end[kind]):
            tile, block = tiles[k], blocks[tiles[k].block]
            if tile.state > 0:
                change = q[parent.column + tile.state - 1] - old[tile.state - 1]
                for i in range(min(block.lanes, LANES)):
                    block.x[i] += tile.weight[i] * change

    @inner
    def gradient(problem, blocks, tiles, numbers, q, by_slot, by_factor):
        """The derivatives: straight + 2 curve <x> in biases, and that with (r + J_s) for <x>, times Q_u(s)."""
        slots = problem.slots
        for f in range(len(by_factor)):
            factor = problem.factors[f]
            block, i, s = blocks[factor.block], factor.lane, factor.slot
            if factor.kind == kind:
                by_factor[f] = block.straight[i] + 2.0 * block.curve[i] * block.x[i]
            while factor.kind == kind and s < factor.slot_end:
                r, end = block.x[i], s + problem.hidden[slots[s].parent].states - 1
                for c in range(s, end):
                    r -= q[slots[c].column] * slots[c].weight
                for c in range(s, end):
                    by_slot[c] = q[slots[c].column] * (block.straight[i] + 2.0 * block.curve[i] * (r + slots[c].weight))
                s = end

    return pull, push, gradient


pull, push, gradient = verbs_of(QUADRATIC)


@inner
def value(problem, blocks, tiles, numbers, q, enough, fresh, more):
    """The terms at the present Q, with the best c; nothing more to promise."""
    for b in range(len(blocks)):
        block = blocks[b]
        if block.kind != QUADRATIC:
            continue
        moments(block, tiles, q)
        for i in range(block.width):
            c = math.sqrt(block.second[i])
            block.straight[i], block.curve[i] = (
                0.5,
                0.125 - c * c / 96.0 if c < 1e-3 else math.tanh(0.5 * c) / (4.0 * c),
            )
            block.constant[i] = softplus(c) - 0.5 * c - block.curve[i] * c * c
            block.t[i] = softplus(c) + 0.5 * (block.x[i] - c)
    return 0.0


@inner
def look(f, problem, blocks, tiles, numbers, q):
    """The term of one factor at the present Q and c: constant + straight <x> + curve <x^2>."""
    factor, slots, variance = problem.factors[f], problem.slots, 0.0
    block, i, s = blocks[factor.block], factor.lane, factor.slot
    mean = block.h[i]
    while s < factor.slot_end:
        first, end = 0.0, s + problem.hidden[slots[s].parent].states - 1
        for c in range(s, end):
            p, w = q[slots[c].column], slots[c].weight
            first, variance = first + p * w, variance + p * w * w
        mean, variance, s = mean + first, variance - first * first, end
    return block.constant[i] + block.straight[i] * mean + block.curve[i] * (mean * mean + variance)
