"""The mean of t(x) itself, at any number of parents: a sum over frequencies of the characteristic function of x.

For sigmoid units, sp(z) = z/2 + ln 2 + int_0^inf (1 - cos wz) / (w sinh pi w) dw, by the trapezoid rule. With step d,
Poisson's summation formula gives the error of the rule in closed form: the sum over k >= 1 of
ln[1 + (cosh z - 1) / (cosh s_k + 1)] with s_k = 2 pi k / d. It is never negative, so the rule is an upper bound for
every step, and about e^(|z| - s_1) large. Cutting the sum at frequency W leaves out positive terms of at most
int_W^inf 2 / (w sinh pi w) dw <= 4 e^(-pi W) / (pi W (1 - e^(-2 pi W))), which is added. So the result is rigorous,
for every step and every W: the climb makes do with the lower half of the frequencies. A unit whose z stays beyond
20 needs none: there sp(z) is straight, but for e^-20.

For independent parents <e^(iwz)> = e^(iwh) prod_j (1 - mu_j + mu_j e^(iwJ_j)). Units with the same parents share a
block, and their frequencies stand side by side in *chunks* of 32 numbers: two frequencies of sixteen units, or 32 of
one. Before a sweep, the products over the parents that follow each parent are laid down, last to first; in the sweep,
the product over the parents before it grows, first to last. One times the other is the function without that parent:
nothing is ever divided.
"""

from __future__ import annotations

import math

import numpy as np

from sbnet._types import FloatArray, IndexArray, Problem
from sbnet.kernels._compile import bare, inner, vector
from sbnet.kernels.arrays import load, real_numbers, whole_numbers
from sbnet.kernels.terms import quadratic, xi
from sbnet.kernels.terms.work import (
    BIAS,
    BLOCK,
    BLOCK_PTR,
    BLOCK_ROOM,
    BLOCK_TILE,
    BLOCKS,
    HIGH,
    LANE_FACTOR,
    LOW,
    MEAN,
    MINE,
    N_BLOCKS,
    N_FACTORS,
    N_LANES,
    N_TILES,
    PLACE,
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

ROOM = 1
KINDS = {"exact": 1}
TILED = True
MAX_NODES = 512
MAX_WAVES = 100_000_000  # numbers, 800 MB: in a problem that would need more, some terms are others
OMEGA = 5.0  # where the sum over frequencies ends; what is left is bounded and added
MARGIN = 15.0  # aliases of the sum are below e^-15 / 2 for |z| in the expected range
BERNSTEIN = 16.0
FAR = 20.0  # beyond it ln(1 + e^z) is straight

_u = np.uint64
_HALF = MINE  # the slope of the straight part of the term in <z>
_CURVE = MINE + _u(16)  # its slope in <z^2>: the frequency zero
_CONSTANT = MINE + _u(32)

_CHUNK = _u(32)
_SIZE = 32
# The numbers of a chunk, for a block: weights, the function of the bias alone, the product over the parents so far.
_WEIGHT, _BIAS_RE, _BIAS_IM, _RE, _IM, _OF_BLOCK = _u(0), _u(32), _u(64), _u(96), _u(128), _u(160)
# And for a tile: e^(iwJ), and the product over the parents that follow.
_EDGE_RE, _EDGE_IM, _REST_RE, _REST_IM, _OF_TILE = _u(0), _u(32), _u(64), _u(96), _u(128)
_LOWER = 0.56  # of the frequencies: what the climb makes do with, W = 2.8, within 1e-4 of the whole


@bare
def nodes(low: float, high: float, mean: float, variance: float, largest: float) -> int:
    """How many frequencies give about 1e-7; 0 if z stays far from 0.

    z lies between `low` and `high`, and but for a chance of 2 e^-16 (Bernstein's inequality) within t of its mean,
    t^2 = 2 u (variance + largest t / 3) with u = 16 and `largest` the largest weight.
    """
    if low > FAR or high < -FAR:
        return 0
    third = largest * BERNSTEIN / 3.0
    reach = third + math.sqrt(third * third + 2.0 * variance * BERNSTEIN)
    low, high = max(low, mean - reach), min(high, mean + reach)
    return math.ceil(OMEGA * (max(-low, high, 0.0) + MARGIN) / (2.0 * math.pi))


@inner
def nodes_of(problem: Problem, bias: FloatArray, mu: FloatArray) -> IndexArray:
    """The same for every factor at the present means."""
    found, near = whole_numbers(len(problem.factor)), real_numbers(len(problem.weight))
    for s in range(len(near)):
        near[s] = load(mu, load(problem.parent, s))
    for f in range(len(found)):
        first, last = load(problem.ptr, f), load(problem.ptr, f, 1)
        low, high, mean, variance, largest = spread(
            problem.weight[first:last], near[first:last], bias[load(problem.factor, f)]
        )
        found[f] = nodes(low, high, mean, variance, largest)
    return found


@bare
def fits(problem: Problem, kind: IndexArray, nodes: IndexArray, found: IndexArray) -> bool:
    """For each factor, 0 if it would need too many frequencies for this term, else 1; do all fit?"""
    numbers, every = 0, True
    for f in range(len(kind)):
        found[f] = 1
        if load(kind, f) == ROOM:
            more = 4 * (load(problem.ptr, f, 1) - load(problem.ptr, f)) * max(load(nodes, f), 32)
            if load(nodes, f) <= MAX_NODES and numbers + more <= MAX_WAVES:
                numbers += more
            else:
                found[f], every = 0, False
    return every


@bare
def _lanes(width: int) -> int:
    """Lanes of a chunk: a power of two."""
    lanes = 1
    while lanes < width:
        lanes *= 2
    return lanes


@bare
def _tail(omega: float) -> float:
    """A bound on what is left out beyond frequency omega."""
    return 4.0 * math.exp(-math.pi * omega) / (math.pi * omega * (1.0 - math.exp(-2.0 * math.pi * omega)))


@bare
def _chunks(work: Work, b: int) -> int:
    """Chunks of block b."""
    return load(work.wave_index, b)


@bare
def _used(work: Work, b: int) -> int:
    """Those of them that count at present."""
    return load(work.wave_index, load(work.ints, N_BLOCKS), b)


@bare
def _of_block(work: Work, b: int) -> int:
    """Where the chunks of block b begin."""
    return load(work.wave_index, 3 * load(work.ints, N_BLOCKS), b)


@bare
def _of_tile(work: Work, t: int) -> int:
    """Where the chunks of tile t begin."""
    return load(work.wave_index, 4 * load(work.ints, N_BLOCKS), t)


@bare
def _step(work: Work, b: int) -> float:
    """The distance between two frequencies of block b."""
    return OMEGA / max(load(work.wave_index, b) * (_SIZE // _lanes(load(work.ints, load(work.ints, WIDTH), b))), 1)


@inner
def chunks_for(work: Work, needed: IndexArray) -> IndexArray:
    """How many chunks each block needs: a few numbers only, so that rows with other needs can share them."""
    index = work.ints
    chunks = whole_numbers(load(index, N_BLOCKS))
    for f in range(load(index, N_FACTORS)):
        b = (load(index, load(index, PLACE), f) - load(index, BLOCKS)) // np.int64(BLOCK)
        if load(index, load(index, BLOCK_ROOM), b) == ROOM:
            each = _SIZE // _lanes(load(index, load(index, WIDTH), b))
            need = (load(needed, f) + each - 1) // each
            step = 1 if need <= 4 else 4 if need <= 32 else 8
            chunks[b] = max(load(chunks, b), (need + step - 1) // step * step)
    return chunks


@bare
def has_room(work: Work, chunks: IndexArray) -> bool:
    """Can so many chunks be kept?"""
    if len(work.wave_index) == 0:
        return False
    for b in range(len(chunks)):  # noqa: SIM110 (kernels have no generators)
        if load(chunks, b) > load(work.wave_index, 2 * len(chunks), b):
            return False
    return True


@inner
def make_room(work: Work, chunks: IndexArray) -> Work:
    """The same with room for so many chunks of each block, still empty."""
    index, n_blocks, n_tiles = work.ints, load(work.ints, N_BLOCKS), load(work.ints, N_TILES)
    wave_index = whole_numbers(4 * n_blocks + n_tiles)
    total = 0
    for b in range(n_blocks):
        wave_index[2 * n_blocks + b], wave_index[3 * n_blocks + b] = load(chunks, b), total
        total += load(chunks, b) * np.int64(_OF_BLOCK)
    for t in range(n_tiles):
        wave_index[4 * n_blocks + t] = total
        total += load(chunks, load(index, load(index, TILE_BLOCK), t)) * np.int64(_OF_TILE)
    return Work(index, work.numbers, wave_index, real_numbers(total))


@bare
def tune(work: Work, chunks: IndexArray) -> None:
    """Give each block so many chunks, and e^(iwJ) to its edges; blocks that have that many keep what they have."""
    index = work.ints
    for b in range(len(chunks)):
        if load(work.wave_index, b) == load(chunks, b):
            continue
        work.wave_index[b] = load(chunks, b)
        lanes, step = _lanes(load(index, load(index, WIDTH), b)), _step(work, b)
        for k in range(load(index, load(index, BLOCK_PTR), b), load(index, load(index, BLOCK_PTR) + b, 1)):
            t = load(index, load(index, BLOCK_TILE), k)
            for lane in range(lanes):
                weight = load(work.numbers, _u(load(index, TILES)) + _u(t) * TILE + _u(lane), WEIGHT)
                at = _of_tile(work, t) + np.int64(_EDGE_RE)
                _powers(work.waves, at, np.int64(_OF_TILE), load(chunks, b), lane, lanes, step * weight)


@vector
def _powers(out: FloatArray, at: int, stride: int, chunks: int, lane: int, lanes: int, angle: float) -> None:
    """e^(i q angle), q = 1, 2, ..., into one lane of all chunks; the imaginary parts stand 32 places further on."""
    c, s = math.cos(angle), math.sin(angle)
    re, im = 1.0, 0.0
    for k in range(chunks):
        for i in range(lane, _SIZE, lanes):
            re, im = re * c - im * s, re * s + im * c
            out[at + k * stride + i] = re
            out[at + k * stride + i + _SIZE] = im


@bare
def attend(work: Work, whole: bool) -> None:
    """What depends on the biases: their own functions, the weights of the frequencies, and all constants.

    Unless `whole`, only the lower frequencies count.
    """
    index, numbers, waves = work.ints, work.numbers, work.waves
    for b in range(load(index, N_BLOCKS)):
        if load(index, load(index, BLOCK_ROOM), b) != ROOM:
            continue
        lanes, step, at = _lanes(load(index, load(index, WIDTH), b)), _step(work, b), _of_block(work, b)
        used = _chunks(work, b) if whole else math.ceil(_LOWER * _chunks(work, b))
        work.wave_index[load(index, N_BLOCKS) + b] = used
        each, weights = _SIZE // lanes, 0.0
        for q in range(used * each):
            omega = (q + 1) * step
            weight = step / (omega * math.sinh(math.pi * omega))
            weights += weight
            for lane in range(lanes):
                waves[at + (q // each) * np.int64(_OF_BLOCK) + (q % each) * lanes + lane] = weight
        for lane in range(lanes):
            k = _u(load(index, BLOCKS)) + _u(b) * BLOCK + _u(lane)
            bias, low, high = load(numbers, k, BIAS), load(numbers, k, LOW), load(numbers, k, HIGH)
            _powers(waves, at + np.int64(_BIAS_RE), np.int64(_OF_BLOCK), used, lane, lanes, step * bias)
            if low > FAR or high < -FAR:
                numbers[k + _HALF], numbers[k + _CURVE] = 1.0 if low > FAR else 0.0, 0.0
                numbers[k + _CONSTANT] = math.exp(-max(low, -high))
                for q in range(used * each):
                    waves[at + (q // each) * np.int64(_OF_BLOCK) + (q % each) * lanes + lane] = 0.0
            else:
                numbers[k + _HALF], numbers[k + _CURVE] = 0.5, step / (4.0 * math.pi)
                numbers[k + _CONSTANT] = weights + _tail(used * each * step) + math.log(2.0)


@vector
def _start(waves: FloatArray, at: int, chunks: int) -> None:
    """The product over no parents: the function of the bias."""
    for k in range(_u(chunks)):
        o = _u(at) + k * _OF_BLOCK
        for i in range(_CHUNK):
            waves[o + i + _RE] = load(waves, o + i, _BIAS_RE)
            waves[o + i + _IM] = load(waves, o + i, _BIAS_IM)


@vector
def _mix_in(of_tile: FloatArray, e: int, of_block: FloatArray, at: int, chunks: int, mu: float) -> None:
    """Multiply the product of a block by 1 - mu + mu e^(iwJ): one more parent."""
    for k in range(_u(chunks)):
        x, o = _u(e) + k * _OF_TILE, _u(at) + k * _OF_BLOCK
        for i in range(_CHUNK):
            fr = 1.0 - mu + mu * load(of_tile, x + i, _EDGE_RE)
            fi = mu * load(of_tile, x + i, _EDGE_IM)
            r, s = load(of_block, o + i, _RE), load(of_block, o + i, _IM)
            of_block[o + i + _RE] = r * fr - s * fi
            of_block[o + i + _IM] = r * fi + s * fr


@vector
def _first_rest(waves: FloatArray, e: int, chunks: int) -> None:
    """No parent follows the last one."""
    for k in range(_u(chunks)):
        x = _u(e) + k * _OF_TILE
        for i in range(_CHUNK):
            waves[x + i + _REST_RE] = 1.0
            waves[x + i + _REST_IM] = 0.0


@vector
def _next_rest(waves: FloatArray, e: int, before: int, chunks: int, mu: float) -> None:
    """The product over the parents that follow `before`, from that over those that follow `e`."""
    for k in range(_u(chunks)):
        x, y = _u(e) + k * _OF_TILE, _u(before) + k * _OF_TILE
        for i in range(_CHUNK):
            fr = 1.0 - mu + mu * load(waves, x + i, _EDGE_RE)
            fi = mu * load(waves, x + i, _EDGE_IM)
            r, s = load(waves, x + i, _REST_RE), load(waves, x + i, _REST_IM)
            waves[y + i + _REST_RE] = r * fr - s * fi
            waves[y + i + _REST_IM] = r * fi + s * fr


@bare
def open_sweep(work: Work, mu: FloatArray) -> None:
    """Lay down the products over the parents that follow each parent, and begin those over the parents before it."""
    index = work.ints
    for b in range(load(index, N_BLOCKS)):
        if load(index, load(index, BLOCK_ROOM), b) != ROOM:
            continue
        first, last, used = (
            load(index, load(index, BLOCK_PTR), b),
            load(index, load(index, BLOCK_PTR) + b, 1),
            _used(work, b),
        )
        moments(index, work.numbers, work.numbers, b, mu)
        _start(work.waves, _of_block(work, b), used)
        t = load(index, load(index, BLOCK_TILE) + last - 1)
        _first_rest(work.waves, _of_tile(work, t), used)
        for k in range(last - 2, first - 1, -1):
            before, m = load(index, load(index, BLOCK_TILE), k), load(mu, load(index, load(index, TILE_PARENT), t))
            _next_rest(work.waves, _of_tile(work, t), _of_tile(work, before), used, m)
            t = before


@vector
def _weighed(waves: FloatArray, at: int, chunks: int, lane: int, lanes: int) -> float:
    """The sum of weights times Re phi, for one lane."""
    total = 0.0
    for k in range(_u(chunks)):
        o = _u(at) + k * _OF_BLOCK
        for i in range(_u(lane), _CHUNK, _u(lanes)):
            total += load(waves, o + i, _WEIGHT) * load(waves, o + i, _RE)
    return total


@bare
def renew(work: Work, mu: FloatArray, enough: float, fresh: bool) -> float:
    """The terms, from the products over all parents: those of the sweep, or from scratch. Nothing more to promise."""
    index, numbers, waves, of_block = work.ints, work.numbers, work.waves, 3 * load(work.ints, N_BLOCKS)
    for b in range(load(index, N_BLOCKS)):
        if load(index, load(index, BLOCK_ROOM), b) != ROOM:
            continue
        width, used, at = load(index, load(index, WIDTH), b), _used(work, b), load(work.wave_index, of_block, b)
        lanes, block_ptr = _lanes(width), load(index, BLOCK_PTR) + b
        if fresh:
            moments(index, numbers, numbers, b, mu)
            _start(waves, at, used)
            for k in range(load(index, block_ptr), load(index, block_ptr, 1)):
                t = load(index, load(index, BLOCK_TILE), k)
                _mix_in(waves, _of_tile(work, t), waves, at, used, load(mu, load(index, load(index, TILE_PARENT), t)))
        first = _u(load(index, BLOCKS)) + _u(b) * BLOCK
        for lane in range(width):
            p, wave = first + _u(lane), _weighed(waves, at, used, lane, lanes)
            straight = load(numbers, p, _HALF) * load(numbers, p, MEAN) + load(numbers, p, _CURVE) * load(
                numbers, p, SECOND
            )
            numbers[p + TERM] = load(numbers, p, _CONSTANT) + straight - wave
    return 0.0


@bare
def pull(work: Work, j: int, mu: FloatArray) -> float:
    """What the children of unit j add to its effective input: the sum of J S less the slope of the term."""
    index, total, n_blocks = (
        work.ints,
        _straight(work.ints, work.numbers, work.numbers, j, load(mu, j)),
        load(work.ints, N_BLOCKS),
    )
    tile_ptr, tile_block, waves = load(index, TILE_PTR) + j, load(index, TILE_BLOCK), work.wave_index
    for t in range(load(index, tile_ptr), load(index, tile_ptr, 1)):
        b = load(index, tile_block, t)
        if load(index, load(index, BLOCK_ROOM), b) == ROOM:
            total += _wave(
                work.waves, load(waves, 4 * n_blocks, t), load(waves, 3 * n_blocks, b), load(waves, n_blocks, b)
            )
    return total


@bare
def push(work: Work, mu: FloatArray, j: int, old: float, new: float) -> None:
    """Add unit j, at its new mean, to the products of its children; also if it has not moved."""
    index, waves, n_blocks = work.ints, work.wave_index, load(work.ints, N_BLOCKS)
    tile_ptr, tile_block = load(index, TILE_PTR) + j, load(index, TILE_BLOCK)
    push_moments(index, work.numbers, work.numbers, j, np.int64(ROOM), old, new)
    for t in range(load(index, tile_ptr), load(index, tile_ptr, 1)):
        b = load(index, tile_block, t)
        if load(index, load(index, BLOCK_ROOM), b) == ROOM:
            at, used = load(waves, 3 * n_blocks, b), load(waves, n_blocks, b)
            _mix_in(work.waves, load(waves, 4 * n_blocks, t), work.waves, at, used, new)


@vector
def _straight(index: IndexArray, edges: FloatArray, blocks: FloatArray, j: int, m: float) -> float:
    """The part of the term that is not a wave: linear in <z> and <z^2>."""
    total, lanes, tiles, first = 0.0, _u(load(index, N_LANES)), _u(load(index, TILES)), _u(load(index, BLOCKS))
    tile_ptr, tile_block, block_room = load(index, TILE_PTR) + j, load(index, TILE_BLOCK), load(index, BLOCK_ROOM)
    for t in range(load(index, tile_ptr), load(index, tile_ptr, 1)):
        b = load(index, tile_block, t)
        if load(index, block_room, b) != ROOM:
            continue
        e, o = tiles + _u(t) * TILE, first + _u(b) * BLOCK
        for lane in range(lanes):
            k, w = o + lane, load(edges, e + lane, WEIGHT)
            bend = w * (2.0 * load(blocks, k, MEAN) + w * (1.0 - 2.0 * m))  # the slope of <z^2>
            total += w * (load(blocks, k, VALUE) - load(blocks, k, _HALF)) - load(blocks, k, _CURVE) * bend
    return total


@vector
def _wave(waves: FloatArray, e: int, at: int, chunks: int) -> float:
    """The sum of weights times Re[phi (e^(iwJ) - 1)], phi without the parent."""
    total = 0.0
    for c in range(_u(chunks)):
        x, o = _u(e) + c * _OF_TILE, _u(at) + c * _OF_BLOCK
        for i in range(_CHUNK):
            pr, pi = load(waves, o + i, _RE), load(waves, o + i, _IM)
            rr, ri = load(waves, x + i, _REST_RE), load(waves, x + i, _REST_IM)
            re, im = pr * rr - pi * ri, pr * ri + pi * rr
            turn = re * (load(waves, x + i, _EDGE_RE) - 1.0) - im * load(waves, x + i, _EDGE_IM)
            total += load(waves, o + i, _WEIGHT) * turn
    return total


@bare
def gradient(work: Work, mu: FloatArray, by_slot: FloatArray, by_factor: FloatArray) -> None:
    """The slopes of the terms in weights and in biases; the parents of a block are the same for all its factors."""
    index, numbers, waves = work.ints, work.numbers, work.waves
    open_sweep(work, mu)
    for b in range(load(index, N_BLOCKS)):
        if load(index, load(index, BLOCK_ROOM), b) != ROOM:
            continue
        width, used, at, step = load(index, load(index, WIDTH), b), _used(work, b), _of_block(work, b), _step(work, b)
        lanes, first = _lanes(width), load(index, load(index, BLOCK_PTR), b)
        for k in range(first, load(index, load(index, BLOCK_PTR) + b, 1)):
            t = load(index, load(index, BLOCK_TILE), k)
            m, e = load(mu, load(index, load(index, TILE_PARENT), t)), _of_tile(work, t)
            for lane in range(width):
                p = _u(load(index, BLOCKS)) + _u(b) * BLOCK + _u(lane)
                s = load(index, load(index, PTR), load(index, load(index, LANE_FACTOR) + 16 * b, lane)) + k - first
                wave = step * _turned(waves, e, at, used, lane, lanes)
                second = 2.0 * (load(numbers, p, MEAN) * m + load(numbers, load(index, WEIGHTS), s) * m * (1.0 - m))
                by_slot[s] = m * (load(numbers, p, _HALF) + wave) + load(numbers, p, _CURVE) * second
            _mix_in(waves, e, waves, at, used, m)
        for lane in range(width):
            p, wave = _u(load(index, BLOCKS)) + _u(b) * BLOCK + _u(lane), 0.0
            for q in range(used * (_SIZE // lanes)):
                o = _u(at) + _u(q * lanes // _SIZE) * _OF_BLOCK + _u(q * lanes % _SIZE + lane)
                wave += load(waves, o, _WEIGHT) * (q + 1) * load(waves, o, _IM)
            slope = load(numbers, p, _HALF) + 2.0 * load(numbers, p, _CURVE) * load(numbers, p, MEAN)
            by_factor[load(index, load(index, LANE_FACTOR) + 16 * b, lane)] = slope + step * wave


@bare
def _turned(waves: FloatArray, e: int, at: int, used: int, lane: int, lanes: int) -> float:
    """The sum over frequencies q of weights times q Im[phi e^(iwJ)], phi without the parent, for one lane."""
    total = 0.0
    for q in range(used * (_SIZE // lanes)):
        c, i = _u(q * lanes // _SIZE), _u(q * lanes % _SIZE + lane)
        x, o = _u(e) + c * _OF_TILE + i, _u(at) + c * _OF_BLOCK + i
        pr, pi, rr, ri = load(waves, o, _RE), load(waves, o, _IM), load(waves, x, _REST_RE), load(waves, x, _REST_IM)
        re, im = pr * rr - pi * ri, pr * ri + pi * rr
        total += load(waves, o, _WEIGHT) * (q + 1) * (re * load(waves, x, _EDGE_IM) + im * load(waves, x, _EDGE_RE))
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
    n = nodes(low, high, mean, variance, largest)
    if 0 < n <= MAX_NODES:
        real, _ = _characteristic(weight, mu, bias, n)
        term = min(term, math.log(2.0) + 0.5 * mean + (OMEGA / n) * second / (4.0 * math.pi) + real + _tail(OMEGA))
    return parameter, term


@inner
def mean_sigmoid(weight: FloatArray, mu: FloatArray, bias: float, mean: float, n: int) -> float:
    """<sigma(z)>, the derivative of the same sum."""
    _, imaginary = _characteristic(weight, mu, bias, n)
    # sin(wz) / sinh(pi w) at w = 0 is z / pi; half of it counts
    return min(max(0.5 + (OMEGA / n) * mean / (2.0 * math.pi) + imaginary, 0.0), 1.0)
