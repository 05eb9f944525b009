"""The mean of t(x) itself, at any number of parents: a sum over frequencies of the characteristic function of x.

For sigmoid units, sp(z) = z/2 + ln 2 + int_0^inf (1 - cos wz) / (w sinh pi w) dw, by the trapezoid rule. With step d,
Poisson's summation formula gives the error of the rule in closed form: the sum over k >= 1 of
ln[1 + (cosh z - 1) / (cosh s_k + 1)] with s_k = 2 pi k / d. It is never negative, so the rule is an upper bound for
every step, and about e^(|z| - s_1) large. Cutting the sum at frequency W leaves out positive terms of at most
int_W^inf 2 / (w sinh pi w) dw <= 4 e^(-pi W) / (pi W (1 - e^(-2 pi W))), which is added. So the result is rigorous,
for every step and every W. The climb makes do with a few frequencies (:mod:`sbnet.kernels.terms.waves`). A unit whose z
stays beyond 20 needs none: there sp(z) is straight, but for e^-20.

For independent parents <e^(iwz)> = e^(iwh) prod_j (1 + mu_j g_j) with g_j = e^(iwJ_j) - 1. Before a sweep, R, the
product over the parents that follow, grows from the last parent to the first, and the *turn* R g of each is laid down;
in the sweep, P, the product over the parents before it, grows from the first to the last. P R g is the slope in mu_j:
nothing is ever divided. One pass over the frequencies moves P past a parent and finds the slope of the next one.
"""

from __future__ import annotations

import math

import numpy as np

from sbnet._types import FloatArray, IndexArray
from sbnet.kernels._compile import bare, disjoint, inner
from sbnet.kernels.arrays import load, real_numbers
from sbnet.kernels.terms import quadratic, xi
from sbnet.kernels.terms.waves import (
    CHUNK,
    CONSTANT,
    CURVE,
    HALF,
    MAX_NODES,
    OMEGA,
    edges_after,
    edges_of,
    lanes_of,
    multiple,
    nodes,
    places_of,
    start_of,
    step_of,
    tail,
    used,
)
from sbnet.kernels.terms.waves import ROOM as ROOM
from sbnet.kernels.terms.waves import attend as attend
from sbnet.kernels.terms.waves import prepare as prepare
from sbnet.kernels.terms.work import (
    BLOCK,
    BLOCK_PTR,
    BLOCK_ROOM,
    BLOCK_TILE,
    BLOCKS,
    LANE_FACTOR,
    LANES,
    MEAN,
    MINE,
    N_BLOCKS,
    N_LANES,
    PTR,
    SECOND,
    TERM,
    TILE,
    TILE_BLOCK,
    TILE_PARENT,
    TILE_PTR,
    TILES,
    VALUE,
    WEIGHT,
    WEIGHTS,
    WIDTH,
    Work,
    moments,
    push_moments,
    spread,
)

KINDS = {"exact": 1}
TILED = True

_u = np.uint64
_NEXT = MINE + _u(96)  # what the waves tell the next parent, in the first lane


@disjoint
def _fill(waves: FloatArray, at: int, n: int) -> None:
    """The product over no parents: n complex numbers, all of them 1."""
    size = _u(n)
    for i in range(size):
        waves[_u(at) + i] = 1.0
        waves[_u(at) + i + size] = 0.0


@disjoint
def _copy(source: FloatArray, x: int, to: FloatArray, y: int, n: int) -> None:
    """n complex numbers."""
    for i in range(_u(2) * _u(n)):
        to[_u(y) + i] = load(source, _u(x), i)


@disjoint
def _mix_in(
    edges: FloatArray, e: int, apart: int, turns: FloatArray, t: int, product: FloatArray, p: int, n: int, mu: float
) -> None:
    """Multiply a product by 1 + mu g: one more parent. Its turn is what mu multiplies."""
    size = _u(n) // CHUNK * CHUNK
    for i in range(size):
        x, y, z = _u(e) + i, _u(t) + i, _u(p) + i
        a, b, r, s = load(edges, x), load(edges, x, _u(apart)), load(product, z), load(product, z, size)
        re, im = a * r - b * s, a * s + b * r
        turns[y] = re
        turns[y + size] = im
        product[z] = r + mu * re
        product[z + size] = s + mu * im


@disjoint
def _go_past(
    edges: FloatArray, e: int, apart: int, turns: FloatArray, t: int, product: FloatArray, p: int, n: int, mu: float
) -> float:
    """The same without a turn; returns what the waves tell the next parent, whose turn is given."""
    total, size = 0.0, _u(n) // CHUNK * CHUNK
    for i in range(size):
        x, y, z = _u(e) + i, _u(t) + i, _u(p) + i
        a, b, r, s = load(edges, x), load(edges, x, _u(apart)), load(product, z), load(product, z, size)
        re, im = r + mu * (a * r - b * s), s + mu * (a * s + b * r)
        product[z] = re
        product[z + size] = im
        total += re * load(turns, y) - im * load(turns, y, size)
    return total


@disjoint
def _real(turns: FloatArray, t: int, product: FloatArray, p: int, n: int) -> float:
    """What the waves tell the first parent."""
    total, size = 0.0, _u(n) // CHUNK * CHUNK
    for i in range(size):
        y, z = _u(t) + i, _u(p) + i
        total += load(product, z) * load(turns, y) - load(product, z, size) * load(turns, y, size)
    return total


@bare
def open_sweep(work: Work, mu: FloatArray) -> None:
    """Lay down the turns, last parent first, and begin the products over the parents before each.

    There is room for the turns of those frequencies only that the climb makes do with.
    """
    index, waves = work.ints, work.waves
    for b in range(load(index, N_BLOCKS)):
        if load(index, load(index, BLOCK_ROOM), b) != ROOM:
            continue
        n, apart, block_ptr = used(work, b), places_of(work, b), load(index, BLOCK_PTR) + b
        product, turn = start_of(work, b) + 2 * n, 0
        _fill(waves, product, n)
        for k in range(load(index, block_ptr, 1) - 1, load(index, block_ptr) - 1, -1):
            t = load(index, load(index, BLOCK_TILE), k)
            turn, m = edges_of(work, t) + 2 * apart, load(mu, load(index, load(index, TILE_PARENT), t))
            _mix_in(waves, edges_of(work, t), apart, waves, turn, waves, product, n, m)
        _copy(waves, start_of(work, b), waves, product, n)
        work.numbers[_u(load(index, BLOCKS)) + _u(b) * BLOCK + _NEXT] = _real(waves, turn, waves, product, n)


@bare
def pull(work: Work, j: int, mu: FloatArray) -> float:
    """What the children of unit j add to its effective input: the sum of J S less the slope of the term."""
    return _pull(work.ints, work.numbers, work.numbers, j, load(mu, j))


@bare
def push(work: Work, mu: FloatArray, j: int, old: float, new: float) -> None:
    """Add unit j, at its new mean, to the products of its children; also if it has not moved."""
    index, waves, numbers = work.ints, work.waves, work.numbers
    tile_ptr, tile_block, blocks = load(index, TILE_PTR) + j, load(index, TILE_BLOCK), _u(load(index, BLOCKS))
    push_moments(index, numbers, numbers, j, np.int64(ROOM), old, new)
    for t in range(load(index, tile_ptr), load(index, tile_ptr, 1)):
        b = load(index, tile_block, t)
        if load(index, load(index, BLOCK_ROOM), b) == ROOM:
            n, apart = used(work, b), places_of(work, b)
            turn, product = edges_after(work, t) + 2 * apart, start_of(work, b) + 2 * n
            numbers[blocks + _u(b) * BLOCK + _NEXT] = _go_past(
                waves, edges_of(work, t), apart, waves, turn, waves, product, n, new
            )


@disjoint
def _pull(index: IndexArray, edges: FloatArray, blocks: FloatArray, j: int, m: float) -> float:
    total, lanes, tiles, first = 0.0, _u(load(index, N_LANES)), _u(load(index, TILES)), _u(load(index, BLOCKS))
    tile_ptr, tile_block, block_room = load(index, TILE_PTR) + j, load(index, TILE_BLOCK), load(index, BLOCK_ROOM)
    for t in range(load(index, tile_ptr), load(index, tile_ptr, 1)):
        b = load(index, tile_block, t)
        if load(index, block_room, b) != ROOM:
            continue
        e, o = tiles + _u(t) * TILE, first + _u(b) * BLOCK
        total += load(blocks, o, _NEXT)
        for lane in range(lanes):
            k, w = o + lane, load(edges, e + lane, WEIGHT)
            bend = w * (2.0 * load(blocks, k, MEAN) + w * (1.0 - 2.0 * m))  # the slope of <z^2>
            total += w * (load(blocks, k, VALUE) - load(blocks, k, HALF)) - load(blocks, k, CURVE) * bend
    return total


@bare
def renew(work: Work, mu: FloatArray, enough: float, fresh: bool) -> float:
    """The terms, from the products over all parents: those of the sweep, or from scratch. Nothing more to promise."""
    index, numbers, waves = work.ints, work.numbers, work.waves
    for b in range(load(index, N_BLOCKS)):
        if load(index, load(index, BLOCK_ROOM), b) == ROOM:
            n, first = used(work, b), _u(load(index, BLOCKS)) + _u(b) * BLOCK
            if fresh:
                moments(index, numbers, numbers, b, mu)
                _multiply(work, mu, b, start_of(work, b) + 4 * n, np.int64(0))
            _add_up(waves, start_of(work, b) + 2 * n, n, numbers, first)
            _evaluate(numbers, first, lanes_of(work, b))
    return 0.0


@bare
def _multiply(work: Work, mu: FloatArray, b: int, turns: int, apart: int) -> None:
    """The product of block b over all its parents; the turns, of this side, stand so far apart."""
    index, waves, block_ptr = work.ints, work.waves, load(work.ints, BLOCK_PTR) + b
    start, n, product = start_of(work, b), used(work, b), start_of(work, b) + 2 * used(work, b)
    _copy(waves, start, waves, product, n)
    for k in range(load(index, block_ptr), load(index, block_ptr, 1)):
        t = load(index, load(index, BLOCK_TILE), k)
        m = load(mu, load(index, load(index, TILE_PARENT), t))
        _mix_in(waves, edges_of(work, t), places_of(work, b), waves, turns, waves, product, n, m)
        turns += apart


@disjoint
def _add_up(waves: FloatArray, at: int, n: int, numbers: FloatArray, first: np.uint64) -> None:
    """The real parts of a product, all frequencies of a lane."""
    for lane in range(LANES):
        numbers[first + lane + TERM] = 0.0
    for c in range(_u(n) // LANES):
        for lane in range(LANES):
            numbers[first + lane + TERM] += load(waves, _u(at) + c * LANES + lane)


@bare
def _evaluate(numbers: FloatArray, first: np.uint64, lanes: int) -> None:
    """The terms of a block: constant and straight parts less the waves. A few units have several lanes each."""
    for lane in range(lanes):
        p, wave = first + _u(lane), 0.0
        for i in range(lane, 16, lanes):
            wave += load(numbers, first + _u(i), TERM)
        straight = load(numbers, p, HALF) * load(numbers, p, MEAN) + load(numbers, p, CURVE) * load(numbers, p, SECOND)
        numbers[p + TERM] = load(numbers, p, CONSTANT) + straight - wave


@bare
def gradient(work: Work, mu: FloatArray, by_slot: FloatArray, by_factor: FloatArray) -> None:
    """The slopes of the terms in weights and in biases; the parents of a block are the same for all its factors.

    With T the turn of a parent on one side, R the product over the others on the other side: the function without the
    parent, times e^(iwJ), is the whole function plus (1 - mu) T R.
    """
    index, numbers, waves = work.ints, work.numbers, work.waves
    for b in range(load(index, N_BLOCKS)):
        if load(index, load(index, BLOCK_ROOM), b) != ROOM:
            continue
        step, n, lanes, width = step_of(work, b), used(work, b), lanes_of(work, b), load(index, load(index, WIDTH), b)
        first, last = load(index, load(index, BLOCK_PTR), b), load(index, load(index, BLOCK_PTR) + b, 1)
        block, factor = _u(load(index, BLOCKS)) + _u(b) * BLOCK, load(index, LANE_FACTOR) + 16 * b
        rest, spare = start_of(work, b) + 2 * n, start_of(work, b) + 4 * n
        _multiply(work, mu, b, np.int64(0), 2 * n)
        _fill(waves, spare, n)
        for lane in range(width):
            by_factor[load(index, factor, lane)] = step * _turned(waves, rest, spare, n, lane, lanes)
        _fill(waves, rest, n)
        for k in range(last - 1, first - 1, -1):
            t = load(index, load(index, BLOCK_TILE), k)
            m, turn = load(mu, load(index, load(index, TILE_PARENT), t)), (k - first) * 2 * n
            for lane in range(width):
                f, p = load(index, factor, lane), block + _u(lane)
                s = load(index, load(index, PTR), f) + k - first
                wave = load(by_factor, f) + (1.0 - m) * step * _turned(waves, turn, rest, n, lane, lanes)
                second = 2.0 * (load(numbers, p, MEAN) * m + load(numbers, load(index, WEIGHTS), s) * m * (1.0 - m))
                by_slot[s] = m * (load(numbers, p, HALF) + wave) + load(numbers, p, CURVE) * second
            _mix_in(waves, edges_of(work, t), places_of(work, b), waves, spare, waves, rest, n, m)
        for lane in range(width):
            p = block + _u(lane)
            slope = load(numbers, p, HALF) + 2.0 * load(numbers, p, CURVE) * load(numbers, p, MEAN)
            by_factor[load(index, factor, lane)] += slope


@bare
def _turned(waves: FloatArray, x: int, y: int, n: int, lane: int, lanes: int) -> float:
    """The sum over frequencies q of q times the imaginary part of a product, for one lane."""
    total = 0.0
    for i in range(lane, n, lanes):
        im = load(waves, x, i) * load(waves, y + n, i) + load(waves, x + n, i) * load(waves, y, i)
        total += multiple(i, n, lanes) * im
    return total


@inner
def _characteristic(weight: FloatArray, mu: FloatArray, bias: float, n: int) -> tuple[float, float]:
    """Sums over n frequencies of the weights times 1 - Re phi, and of step / sinh(pi w) times Im phi."""
    step, k = OMEGA / n, len(weight)
    c, d, re_of, im_of = real_numbers(k), real_numbers(k), real_numbers(k), real_numbers(k)
    for s in range(k):
        c[s], d[s], re_of[s] = math.cos(step * load(weight, s)), math.sin(step * load(weight, s)), 1.0
    real = imaginary = 0.0
    for q in range(1, n + 1):
        re, im = math.cos(q * step * bias), math.sin(q * step * bias)
        for s in range(k):
            a, b = (
                load(re_of, s) * load(c, s) - load(im_of, s) * load(d, s),
                load(re_of, s) * load(d, s) + load(im_of, s) * load(c, s),
            )
            re_of[s], im_of[s] = a, b
            fr, fi = 1.0 - load(mu, s) + load(mu, s) * a, load(mu, s) * b
            re, im = re * fr - im * fi, re * fi + im * fr
        over = step / math.sinh(math.pi * q * step)
        real += over * (1.0 - re) / (q * step)
        imaginary += over * im
    return real, imaginary


@inner
def reference(
    kind: int, gate: int, weight: FloatArray, mu: FloatArray, bias: float, parameter: float
) -> tuple[float, float]:
    """The term of one factor, or one of those that stand in for it if that is less; also the xi of the paper's."""
    low, high, mean, variance, largest = spread(weight, mu, bias)
    second = mean * mean + variance
    parameter, term = xi.best(weight, mu, bias, parameter)
    term = min(term, quadratic.best(mean, second))
    n = nodes(low, high, mean, variance, largest, math.inf)
    if 0 < n <= MAX_NODES:
        real, _ = _characteristic(weight, mu, bias, n)
        term = min(term, math.log(2.0) + 0.5 * mean + (OMEGA / n) * second / (4.0 * math.pi) + real + tail(OMEGA))
    return parameter, term


@inner
def mean_sigmoid(weight: FloatArray, mu: FloatArray, bias: float, mean: float, n: int) -> float:
    """<sigma(z)>, the derivative of the same sum."""
    _, imaginary = _characteristic(weight, mu, bias, n)
    # sin(wz) / sinh(pi w) at w = 0 is z / pi; half of it counts
    return min(max(0.5 + (OMEGA / n) * mean / (2.0 * math.pi) + imaginary, 0.0), 1.0)
