"""The mean of t(x) itself, for any number of parents of a sigmoid variable: a sum over frequencies.

ln(1 + e^x) = x/2 + ln 2 + int_0^inf (1 - cos wx) / (w sinh pi w) dw, by the trapezoid rule. With step d, Poisson's
summation formula gives the error of the rule in closed form: the sum over k >= 1 of
ln[1 + (cosh x - 1) / (cosh s_k + 1)] with s_k = 2 pi k / d. It is never negative, so the rule is an upper bound for
every step, and about e^(|x| - s_1) large. Cutting the sum at frequency W leaves out positive terms of at most
int_W^inf 2 / (w sinh pi w) dw <= 4 e^(-pi W) / (pi W (1 - e^(-2 pi W))), which is added. So the result is rigorous,
for every step and every W. The ascent makes do with a few frequencies (`frequencies`). An x that stays beyond 20 needs
none: there ln(1 + e^x) is straight, but for e^-20.

For independent parents the characteristic function is a product, <e^{iwx}> = e^{iwh} prod_u F_u with
F_u = 1 + sum_s Q_u(s) g_s, g_s = e^{iwJ_s} - 1. Before a sweep, R, the product over the parents that follow, grows from
the last parent to the first, and the *turn* R g_s of each state is kept; in the sweep, P, the product over the parents
before, grows from the first to the last. Re(P R g_s) is the derivative in Q_u(s): nothing is ever divided.

All factors of a block have the same parents, so a column of Q has one place among the edges of all of them.
"""

import numpy as np

from sbnet.kernels.compiling import inner
from sbnet.kernels.kinds import EXACT
from sbnet.kernels.structs import LANES
from sbnet.kernels.terms import quadratic
from sbnet.kernels.terms.frequencies import lanes_of, multiple, refine
from sbnet.kernels.vector import unsigned
from sbnet.quadrature.frequencies import OMEGA

__all__ = ["gradient", "look", "pull", "push", "refine", "value"]

_pull, _push, _gradient = quadratic.verbs_of(EXACT)


@inner(fast=True)
def _times(numbers, edge, product, block, p):
    """The product times F = 1 + p g, for a parent with two states."""
    e, x, far = unsigned(edge), unsigned(product), unsigned(block.places)
    for i in range(unsigned(block.used)):
        a, b, r, s = numbers[e + i], numbers[e + far + i], numbers[x + i], numbers[x + far + i]
        numbers[x + i], numbers[x + far + i] = r + p * (a * r - b * s), s + p * (a * s + b * r)


@inner(fast=True)
def _turn(numbers, edge, turn, product, block, p):
    """The product times 1 + p g, and the turn is kept."""
    e, t, x, far = unsigned(edge), unsigned(turn), unsigned(product), unsigned(block.places)
    for i in range(unsigned(block.used)):
        a, b, r, s = numbers[e + i], numbers[e + far + i], numbers[x + i], numbers[x + far + i]
        re, im = a * r - b * s, a * s + b * r
        numbers[t + i], numbers[t + far + i] = re, im
        numbers[x + i], numbers[x + far + i] = r + p * re, s + p * im


@inner(fast=True)
def _include(numbers, edge, turn, product, block, q, c, m):
    """The product times F of a parent with m states above 0, whose Q begins at c; their turns are kept."""
    step, x, far = 2 * block.places, unsigned(product), unsigned(block.places)
    for k in range(m):
        _turn(numbers, edge + k * step, turn + k * step, product, block, 0.0)
    for k in range(m):
        t, p = unsigned(turn + k * step), q[c + k]
        for i in range(unsigned(block.used)):
            numbers[x + i] += p * numbers[t + i]
            numbers[x + far + i] += p * numbers[t + far + i]


@inner(fast=True)
def _where(block, tile):
    """Where e^{iwJ} - 1 of a tile begins, its turn, and the product of its block."""
    edge = block.first + (5 + 2 * (tile.slot[0] - block.slot)) * block.places
    return edge, edge + 2 * (block.slot_end - block.slot) * block.places, block.first + 3 * block.places


@inner(fast=True)
def pull(parent, problem, blocks, tiles, numbers, q, field):
    """What children say about each state: the parts in <x> and <x^2>, and the frequencies."""
    _pull(parent, problem, blocks, tiles, numbers, q, field)
    for k in range(parent.tile[EXACT], parent.tile_end[EXACT]):  # a step might be 0, and numba would count references
        tile, block = tiles[k], blocks[tiles[k].block]
        if tile.state != 1:
            continue
        _, turn, product = _where(block, tile)
        x, far = unsigned(product), unsigned(block.places)
        for s in range(parent.states - 1):
            t, total = unsigned(turn + 2 * s * block.places), 0.0
            for i in range(unsigned(block.used)):
                total += numbers[x + i] * numbers[t + i] - numbers[x + far + i] * numbers[t + far + i]
            field[s] += total


@inner(fast=True)
def push(parent, problem, blocks, tiles, numbers, old, q):
    """A parent is done with: into the products over the parents before, also if it has not moved."""
    _push(parent, problem, blocks, tiles, numbers, old, q)
    for k in range(parent.tile[EXACT], parent.tile_end[EXACT]):
        tile, block = tiles[k], blocks[tiles[k].block]
        if tile.state != 1:
            continue
        edge, turn, product = _where(block, tile)
        if tile.states == 2:
            _times(numbers, edge, product, block, q[parent.column])
        else:
            _include(numbers, edge, turn, product, block, q, parent.column, parent.states - 1)


@inner(fast=True)
def value(problem, blocks, tiles, numbers, q, enough, fresh, more):
    """The terms at the present Q, and the turns for the next sweep; nothing more to promise."""
    for b in range(len(blocks)):
        block = blocks[b]
        if block.kind == EXACT:
            quadratic.moments(block, tiles, q)
            x, far = unsigned(block.first + 3 * block.places), unsigned(block.places)
            for i in range(unsigned(block.used)):
                numbers[x + i], numbers[x + far + i] = 1.0, 0.0
    for k in range(len(tiles) - 2, -1, -1):  # the last parent first
        tile, block = tiles[k], blocks[tiles[k].block]
        if block.kind != EXACT or tile.state != 1:
            continue
        edge, turn, product = _where(block, tile)
        if tile.states == 2 and more:
            _turn(numbers, edge, turn, product, block, q[tile.column])
        elif tile.states == 2:
            _times(numbers, edge, product, block, q[tile.column])
        else:
            _include(numbers, edge, turn, product, block, q, np.int64(tile.column), tile.states - 1)
    for b in range(len(blocks)):
        if blocks[b].kind == EXACT:
            _evaluate(blocks[b], numbers)
    return 0.0


@inner(fast=True)
def _evaluate(block, numbers):
    """The terms of a block from the product over all parents; then the product over none of them takes its place.

    That one is multiplied by c, so that what children say needs no factor.
    """
    lanes, far = lanes_of(block), unsigned(block.places)
    start, product = block.first + block.places, block.first + 3 * block.places
    for i in range(LANES):
        block.power[i], block.f_a[i] = 0.0, block.by * block.c[i % lanes]
    for k in range(0, block.used, LANES):
        y, x = unsigned(start + k), unsigned(product + k)
        for i in range(unsigned(LANES)):
            re, im = numbers[y + i], numbers[y + far + i]
            block.power[i] += re * numbers[x + i] - im * numbers[x + far + i]
            numbers[x + i], numbers[x + far + i] = block.f_a[i] * re, block.f_a[i] * im
    for i in range(block.width):
        straight = block.constant[i] + block.straight[i] * block.x[i] + block.curve[i] * block.second[i]
        block.t[i] = straight - block.by * _of_lane(block, i, lanes)


@inner
def _of_lane(block, i, lanes):
    """The sum over the frequencies of one factor."""
    total = 0.0
    for k in range(i, LANES, lanes):
        total += block.power[k]
    return total


@inner
def look(f, problem, blocks, tiles, numbers, q):
    """The term of one factor, in a sweep that has come to its own variable: all its parents are in the product."""
    block, i = blocks[problem.factors[f].block], problem.factors[f].lane
    product, wave = block.first + 3 * block.places, 0.0
    for k in range(product + i, product + block.used, lanes_of(block)):
        wave += numbers[k]
    return quadratic.look(f, problem, blocks, tiles, numbers, q) - wave / block.c[i]


@inner
def gradient(problem, blocks, tiles, numbers, q, by_slot, by_factor):
    """The derivatives of the terms: sums over w times the imaginary part of the characteristic function, in biases;
    in weights, times Q_u(s), of that in which e^{iwJ_s} has the place of F_u.
    """
    _gradient(problem, blocks, tiles, numbers, q, by_slot, by_factor)
    factors, slots = problem.factors, problem.slots
    for b in range(len(blocks)):
        block = blocks[b]
        if block.kind != EXACT or block.used == 0:
            continue
        n, lanes, s = block.places, lanes_of(block), block.slot
        product, edge, turn = block.first + 3 * n, block.first + 5 * n, block.first + (5 + 2 * (block.slot_end - s)) * n
        before = np.empty(2 * n * (block.slot_end - block.slot))
        for i in range(2 * n):
            numbers[product + i] = numbers[block.first + n + i]
        while s < block.slot_end:  # the products over the parents before each
            at, m = s - block.slot, problem.hidden[slots[s].parent].states - 1
            for i in range(2 * n):
                before[2 * n * at + i] = numbers[product + i]
            _include(numbers, edge + 2 * n * at, turn + 2 * n * at, product, block, q, slots[s].column, m)
            s += m
        for i in range(n):
            numbers[product + i], numbers[product + n + i] = 1.0, 0.0
        while s > block.slot:  # and over those after each
            m = problem.hidden[slots[s - 1].parent].states - 1
            s -= m
            at = s - block.slot
            for c in range(at, at + m):
                _imaginary(block, before, 2 * n * at, numbers, edge + 2 * n * c, 1.0)
                for i in range(block.width):
                    p = q[slots[block.slot + c].column]
                    by_slot[factors[block.factor[i]].slot + c] += p * _of_lane(block, i, lanes)
            _include(numbers, edge + 2 * n * at, turn + 2 * n * at, product, block, q, slots[s].column, m)
        _imaginary(block, before, 0, numbers, edge, 0.0)
        for i in range(block.width):
            by_factor[block.factor[i]] += _of_lane(block, i, lanes)


@inner(fast=True)
def _imaginary(block, before, at, numbers, edge, has):
    """Sums of w times the imaginary part of (product before) (1 + g, or 1 if there is no edge) (product after)."""
    n, lanes, far, after = block.places, lanes_of(block), unsigned(block.places), block.first + 3 * block.places
    step = OMEGA * lanes / n
    for i in range(LANES):
        block.power[i] = 0.0
    for k in range(0, block.used, LANES):
        x, y, e = unsigned(at + k), unsigned(after + k), unsigned(edge + k)
        for i in range(unsigned(LANES)):
            block.arg[i] = step * multiple(k + np.int64(i), n, lanes)
        for i in range(unsigned(LANES)):
            a, b, c, d = before[x + i], before[x + far + i], numbers[y + i], numbers[y + far + i]
            g, h = 1.0 + has * numbers[e + i], has * numbers[e + far + i]
            block.power[i] += block.arg[i] * ((a * c - b * d) * h + (a * d + b * c) * g)
