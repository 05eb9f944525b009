"""The frequencies of the exact term: how many, where they stand, and what is known of them before Q moves.

A block has the frequencies k d, k = 1, 2, ... Those of its factors stand side by side, in *places*: sixteen lanes of
one frequency, or fewer lanes of several where it has fewer factors, always 32 places or a multiple. Even k come before
odd ones: alone they are the same rule with twice the step, and the lower ones of them are the few that the ascent makes
do with.

The numbers of a block begin at `first`: the weights of the frequencies, then complex numbers, all real parts before the
imaginary ones: the function of the biases, the product over parents, e^{iwJ} - 1 of each slot, and the turn of each.
"""

import math
from typing import Any

import numpy as np

from sbnet._types import IndexArray
from sbnet.kernels.compiling import inner
from sbnet.kernels.kinds import EXACT
from sbnet.kernels.structs import LANES, aligned
from sbnet.kernels.terms import CROWDED, ENOUGH, LACKS, ROUGH, WHOLE
from sbnet.kernels.terms.quadratic import moments
from sbnet.kernels.vector import unsigned
from sbnet.quadrature.frequencies import FAR, MAX_NODES, OMEGA, nodes

MAX_NUMBERS = 100_000_000  # 800 MB: in a problem that would need more, some terms are others
_SIZE = 32
_LOWER = 0.42  # of the even frequencies: what the ascent makes do with
_MORE = 6  # frequencies, so that the even ones alone are within 1e-3 for the ascent, and Q may move

nodes_in_kernels = inner(nodes)


def room_for(slots: IndexArray, nodes: IndexArray) -> IndexArray:
    """Numbers that factors take, roughly."""
    return 6 * slots * np.maximum(nodes, _SIZE)


def make_room(blocks: Any, numbers: Any, places: IndexArray) -> Any:
    """Numbers with room for so many places. The tables of other terms come first among them, and are kept."""
    ours = blocks["kind"] == EXACT
    tables = int(blocks["first"][ours].min()) if blocks["kept"].any() else len(numbers)
    size = np.where(ours, places * (5 + 4 * (blocks["slot_end"] - blocks["slot"])), 0)
    start = -(-tables // LANES) * LANES
    more = aligned(start + int(size.sum()), np.float64)
    more[: min(tables, len(numbers))] = numbers[:tables]
    blocks["first"], blocks["kept"], blocks["places"] = start + np.cumsum(size) - size, places, 0
    return more


@inner
def refine(turn, at_all, problem, blocks, tiles, numbers, places, q):
    """The frequencies that are needed at the present Q: a few for the ascent, then all of them to end it.

    Where Q has moved so far that more are needed, it goes on with those. If this row has some, no block may lose any,
    or its term would loosen. The kernel stops where there is no room for them, or where a factor would need too many.
    """
    again, whole = turn > 0, turn % 2 == 1
    if not whole:
        enough, fits, crowded = look_at_needs(blocks, tiles, q, again, places)
        if enough:
            return ENOUGH
        if crowded and not at_all and not again:
            return CROWDED
        if not fits:
            return LACKS
        tune(problem.factors, problem.slots, blocks, numbers, places)
    attend(blocks, numbers, whole)
    return WHOLE if whole else ROUGH


@inner
def lanes_of(block):
    """Lanes of a block, a power of two; the compiler divides by it quickly where it sees that."""
    lanes = 1
    while lanes < block.width:
        lanes *= 2
    return lanes


@inner
def few_of(places):
    """How many of the places the ascent makes do with: even multiples, the lower ones."""
    return math.ceil(_LOWER * (places if places == _SIZE else places // 2) / _SIZE) * _SIZE


@inner
def multiple(i, places, lanes):
    """Which multiple of the step stands at place i."""
    if places == _SIZE:
        return i // lanes + 1
    return 2 * (i // lanes) + 2 if i < places // 2 else 2 * ((i - places // 2) // lanes) + 1


@inner
def look_at_needs(blocks, tiles, q, again, places):
    """How many places each block needs at the present Q, to begin or to go on; few numbers, so that rows share them.

    Returns whether those are enough that a row has, whether there is room for what is needed, and whether that would be
    too many for some.
    """
    total, crowded, enough, fits = 0, False, again, True
    for b in range(len(blocks)):
        block, places[b], need, lanes = blocks[b], 0, 0, lanes_of(blocks[b])
        if block.kind != EXACT:
            continue
        if not again:  # else the terms have just been found
            moments(block, tiles, q)
        for i in range(block.width):
            mean = block.x[i]
            variance = max(block.second[i] - mean * mean, 0.0)
            n = nodes_in_kernels(block.low[i], block.high[i], mean, variance, block.largest[i], block.squares[i])
            need, total = max(need, n), total + 6 * (block.slot_end - block.slot) * max(n, _SIZE)
        crowded = crowded or need > MAX_NODES or total > MAX_NUMBERS
        need = min(need, MAX_NODES)
        if need * lanes > _SIZE and not again:
            need += _MORE
        chunks = (need * lanes + _SIZE - 1) // _SIZE
        few = 1 if chunks <= 1 else 2 if chunks <= 16 else 8
        places[b] = (chunks + few - 1) // few * few * _SIZE
    for b in range(len(blocks)):
        if blocks[b].kind == EXACT and again:
            enough = enough and (crowded or places[b] <= blocks[b].places)
            places[b] = blocks[b].places if crowded else max(places[b], blocks[b].places)
        fits = fits and places[b] <= blocks[b].kept
    return enough, fits, crowded


@inner
def tune(factors, slots, blocks, numbers, places):
    """Where a block gets other frequencies: their weights, and e^{iwJ} - 1 of its edges."""
    for b in range(len(blocks)):
        block, n, lanes = blocks[b], places[b], lanes_of(blocks[b])
        if block.kind != EXACT or block.places == n:
            continue
        block.places, step = n, OMEGA * lanes / max(n, 1)
        for i in range(n):
            omega = multiple(i, n, lanes) * step
            numbers[block.first + i] = step / (omega * math.sinh(math.pi * omega))
        for k in range(block.slot_end - block.slot if n > 0 else 0):
            for i in range(lanes):
                f = block.factor[i]
                block.arg[i] = step * slots[factors[f].slot + k].weight if f >= 0 else 0.0
            edge = block.first + (5 + 2 * k) * n
            _powers(block, numbers, edge)
            for i in range(n):
                numbers[edge + i] -= 1.0


@inner
def _powers(block, numbers, at):
    """e^{i k angle} for the multiples k of all places, the angles of the lanes being in `arg`."""
    lanes, places = lanes_of(block), block.places
    evens = places if places == _SIZE else places // 2
    for lane in range(lanes):
        c, s = math.cos(block.arg[lane]), math.sin(block.arg[lane])
        u, v = (c, s) if evens == places else (c * c - s * s, 2.0 * c * s)  # from a multiple to the next but one
        re, im = u, v
        for i in range(lane, LANES, lanes):
            numbers[at + i], numbers[at + places + i] = re, im
            if evens < places:
                numbers[at + evens + i], numbers[at + evens + places + i] = c, s
            for k in range(lane, LANES, lanes):
                block.f_a[k], block.f_b[k] = re, im  # at last, from sixteen places to the next sixteen
            c, s, re, im = c * u - s * v, c * v + s * u, re * u - im * v, re * v + im * u
    size, far = unsigned(LANES), unsigned(places)
    for half in range(2):  # the even ones, and the odd ones
        first, n = (at, evens) if half == 0 else (at + evens, places - evens)
        for k in range(first, first + n - LANES, LANES):
            x = unsigned(k)
            for i in range(size):
                a, b, c, d = block.f_a[i], block.f_b[i], numbers[x + i], numbers[x + far + i]
                numbers[x + size + i], numbers[x + far + size + i] = a * c - b * d, a * d + b * c


@inner
def attend(blocks, numbers, whole):
    """What the terms are made of beside the frequencies that count: all of them, or unless `whole`, the few.

    A row begins with those: then also the characteristic function of its biases, times the weights of the frequencies.
    """
    for b in range(len(blocks)):
        block = blocks[b]
        if block.kind != EXACT:
            continue
        lanes, places, first = lanes_of(block), block.places, block.first
        n, by = (places, 1.0) if whole else (few_of(places), 2.0 if places > _SIZE else 1.0)
        block.used, block.by, step = n, by, by * OMEGA * lanes / max(places, 1)
        omega = step * max(n, 1) / lanes  # where the sum is cut; a bound on what is left out is added
        tail = 4.0 * math.exp(-math.pi * omega) / (math.pi * omega * (1.0 - math.exp(-2.0 * math.pi * omega)))
        constant = math.log(2.0) + (tail if n > 0 else 0.0)
        for i in range(0, n, lanes):
            constant += by * numbers[first + i]
        for i in range(LANES):
            low, high = block.low[i % lanes], block.high[i % lanes]
            block.alive[i] = 0.0 if n == 0 or low > FAR or high < -FAR else 1.0
            block.straight[i], block.curve[i], block.constant[i] = 0.5, step / (4.0 * math.pi), constant
            if block.alive[i] == 0.0:
                block.straight[i], block.curve[i] = 1.0 if low > -high else 0.0, 0.0
                block.constant[i] = math.exp(-max(low, -high))
            block.arg[i] = OMEGA * lanes / max(places, 1) * block.h[i]
        if places > 0 and not whole:
            _powers(block, numbers, first + places)
            far = unsigned(places)
            for k in range(first, first + places, LANES):
                x = unsigned(k)
                for i in range(unsigned(LANES)):
                    weight = numbers[x + i] * block.alive[i]
                    numbers[x + far + i] *= weight
                    numbers[x + far + far + i] *= weight
