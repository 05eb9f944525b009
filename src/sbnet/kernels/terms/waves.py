"""The frequencies of the exact term: how many, where they stand, and what is known of them before the means move.

A block has the frequencies q d, q = 1, 2, ... Those of its units stand side by side in *chunks* of 32 numbers: two
frequencies of sixteen units, or 32 of one. Real parts of all chunks come first, then imaginary parts. Even q come
before odd ones: alone they are the same rule with twice the step, and the lower ones of them are the few that the climb
makes do with.

A tile keeps e^(iwJ) - 1 of its edges, and its turns. A block keeps the weights of its frequencies, the function of its
biases times these, the product over parents, and as much room to spare.
"""

from __future__ import annotations

import math

import numpy as np

from sbnet._types import FloatArray, IndexArray, Problem
from sbnet.kernels._compile import bare, disjoint, inner
from sbnet.kernels.arrays import load, real_numbers, whole_numbers
from sbnet.kernels.terms.work import (
    BIAS,
    BLOCK,
    BLOCK_PTR,
    BLOCK_ROOM,
    BLOCK_TILE,
    BLOCKS,
    HAS,
    HIGH,
    LANES,
    LOW,
    MEAN,
    MINE,
    N_BLOCKS,
    N_LANES,
    N_TILES,
    SECOND,
    TILE,
    TILE_BLOCK,
    TILES,
    WEIGHT,
    WIDTH,
    Work,
    moments,
    spread,
)

ROOM = 1
MAX_NODES = 512
MAX_WAVES = 100_000_000  # numbers, 800 MB: in a problem that would need more, some terms are others
OMEGA = 5.0  # where the sum over frequencies ends; what is left is bounded and added
MARGIN = 15.0  # aliases of the sum are below e^-15 / 2 for |z| in the expected range
BERNSTEIN = 16.0
FAR = 20.0  # beyond it ln(1 + e^z) is straight

_u = np.uint64
HALF = MINE  # the slope of the straight part of the term in <z>
CURVE = MINE + _u(16)  # its slope in <z^2>: the frequency zero
CONSTANT = MINE + _u(32)
_LARGEST = MINE + _u(48)  # of the weights
_SQUARES = MINE + _u(64)  # their sum
_LIVE = MINE + _u(80)  # 0 if z stays far from 0, else 1

SIZE = 32
CHUNK = _u(SIZE)
_LOWER = 0.42  # of the even frequencies: what the climb makes do with
FEW = 1e-6  # nats: these serve a climb that stops here; one that goes on has all of them
_MORE = 6  # frequencies, so that the even ones alone are within 1e-3 for the climb, and means may move


@bare
def tail(omega: float) -> float:
    """A bound on what is left out beyond frequency omega."""
    return 4.0 * math.exp(-math.pi * omega) / (math.pi * omega * (1.0 - math.exp(-2.0 * math.pi * omega)))


@bare
def nodes(low: float, high: float, mean: float, variance: float, largest: float, squares: float) -> int:
    """How many frequencies give about 1e-7; 0 if z stays far from 0.

    z lies between `low` and `high`, and but for a chance of 2 e^-16 (Bernstein's inequality) within t of its mean,
    t^2 = 2 u (variance + largest t / 3) with u = 16 and `largest` the largest weight. Aliases are about <e^|z|> e^-s,
    and that mean is at most 2 e^(|mean| + squares / 8) (Hoeffding's lemma), `squares` being the sum of all J^2.
    """
    if low > FAR or high < -FAR:
        return 0
    third = largest * BERNSTEIN / 3.0
    reach = third + math.sqrt(third * third + 2.0 * variance * BERNSTEIN)
    low, high = max(low, mean - reach), min(high, mean + reach)
    return math.ceil(OMEGA * (min(max(-low, high, 0.0), abs(mean) + squares / 8.0) + MARGIN) / (2.0 * math.pi))


@inner
def nodes_of(problem: Problem, bias: FloatArray, mu: FloatArray) -> IndexArray:
    """The same for every factor at the present means."""
    found, near = whole_numbers(len(problem.factor)), real_numbers(len(problem.weight))
    for s in range(len(near)):
        near[s] = load(mu, load(problem.parent, s))
    for f in range(len(found)):
        first, last, squares = load(problem.ptr, f), load(problem.ptr, f, 1), 0.0
        low, high, mean, variance, largest = spread(
            problem.weight[first:last], near[first:last], bias[load(problem.factor, f)]
        )
        for s in range(first, last):
            squares += load(problem.weight, s) * load(problem.weight, s)
        found[f] = nodes(low, high, mean, variance, largest, squares)
    return found


@bare
def _room_for(parents: int, nodes: int) -> int:
    """Numbers that a factor takes, roughly."""
    return 6 * parents * max(nodes, 32)


@bare
def fits(problem: Problem, kind: IndexArray, nodes: IndexArray, found: IndexArray) -> None:
    """For each factor, 0 if it would need too many frequencies for this term, else 1."""
    numbers = 0
    for f in range(len(kind)):
        found[f] = 1
        if load(kind, f) == ROOM:
            more = _room_for(load(problem.ptr, f, 1) - load(problem.ptr, f), load(nodes, f))
            if load(nodes, f) <= MAX_NODES and numbers + more <= MAX_WAVES:
                numbers += more
            else:
                found[f] = 0


@bare
def prepare(work: Work) -> None:
    """What depends on the weights alone: the largest, and the sum of their squares."""
    index = work.ints
    for t in range(load(index, N_TILES)):
        b = load(index, load(index, TILE_BLOCK), t)
        if load(index, load(index, BLOCK_ROOM), b) == ROOM:
            tile, block = load(index, TILES) + t * np.int64(TILE), load(index, BLOCKS) + b * np.int64(BLOCK)
            _prepare(work.numbers, tile, work.numbers, block, load(index, N_LANES))


@disjoint
def _prepare(edges: FloatArray, e: int, blocks: FloatArray, o: int, lanes: int) -> None:
    for lane in range(_u(lanes)):
        k, w = _u(o) + lane, load(edges, _u(e) + lane, WEIGHT)
        blocks[k + _LARGEST] = max(load(blocks, k, _LARGEST), abs(w))
        blocks[k + _SQUARES] += w * w


@bare
def lanes_of(work: Work, b: int) -> int:
    """Lanes of a chunk of block b: a power of two."""
    width, lanes = load(work.ints, load(work.ints, WIDTH), b), 1
    while lanes < width:
        lanes *= 2
    return lanes


@bare
def places_of(work: Work, b: int) -> int:
    """Numbers in all chunks of block b, real parts alone."""
    return load(work.wave_index, b)


@bare
def used(work: Work, b: int) -> int:
    """Those of them that count at present."""
    return load(work.wave_index, load(work.ints, N_BLOCKS), b)


@bare
def start_of(work: Work, b: int) -> int:
    """Where the function of the biases of block b begins; the product follows, and as much to spare."""
    return load(work.wave_index, 3 * load(work.ints, N_BLOCKS), b)


@bare
def edges_of(work: Work, t: int) -> int:
    """Where e^(iwJ) - 1 of tile t begins; the turn follows."""
    return load(work.wave_index, 4 * load(work.ints, N_BLOCKS), t)


@bare
def edges_after(work: Work, t: int) -> int:
    """Where those of the next tile of the same block begin."""
    return load(work.wave_index, 4 * load(work.ints, N_BLOCKS) + load(work.ints, N_TILES), t)


@bare
def _evens(places: int) -> int:
    """Places of even multiples of the step: half of them, unless there is one chunk only."""
    return places if places == SIZE else places // 2


@bare
def _lower(places: int) -> int:
    """Places that the climb makes do with: whole chunks."""
    return math.ceil(_LOWER * _evens(places) / SIZE) * SIZE


@bare
def step_of(work: Work, b: int) -> float:
    """The distance between two frequencies of block b."""
    return OMEGA * lanes_of(work, b) / max(places_of(work, b), 1)


@bare
def multiple(i: int, places: int, lanes: int) -> int:
    """Which multiple of the step stands at place i."""
    evens = _evens(places)
    if evens == places:
        return i // lanes + 1
    return 2 * (i // lanes) + 2 if i < evens else 2 * ((i - evens) // lanes) + 1


@inner
def places_for(work: Work, mu: FloatArray, again: bool) -> tuple[IndexArray, bool]:
    """How many places each block needs, to begin or to go on, and would that be too many for some?

    A few numbers only, so that rows with other needs can share them.
    """
    index, numbers, total, crowded = work.ints, work.numbers, 0, False
    places = whole_numbers(load(index, N_BLOCKS))
    for b in range(len(places)):
        if load(index, load(index, BLOCK_ROOM), b) != ROOM:
            continue
        parents = load(index, load(index, BLOCK_PTR) + b, 1) - load(index, load(index, BLOCK_PTR), b)
        moments(index, numbers, numbers, b, mu)
        need, lanes = 0, lanes_of(work, b)
        for lane in range(load(index, load(index, WIDTH), b)):
            k = _u(load(index, BLOCKS)) + _u(b) * BLOCK + _u(lane)
            mean, largest, squares = load(numbers, k, MEAN), load(numbers, k, _LARGEST), load(numbers, k, _SQUARES)
            variance = max(load(numbers, k, SECOND) - mean * mean, 0.0)
            n = nodes(load(numbers, k, LOW), load(numbers, k, HIGH), mean, variance, largest, squares)
            need, total = max(need, n), total + _room_for(parents, n)
        crowded = crowded or need > MAX_NODES or total > MAX_WAVES
        need = min(need, MAX_NODES)
        if need * lanes > SIZE and not again:
            need += _MORE
        chunks = (need * lanes + SIZE - 1) // SIZE
        few = 1 if chunks <= 1 else 2 if chunks <= 16 else 8
        places[b] = (chunks + few - 1) // few * few * SIZE
    return places, crowded


@bare
def has(work: Work) -> bool:
    """Has the problem terms of this kind?"""
    return load(work.ints, HAS + ROOM) > 0


@bare
def has_room(work: Work, places: IndexArray) -> bool:
    """Can so many be kept?"""
    if len(work.wave_index) == 0:
        return False
    for b in range(len(places)):  # noqa: SIM110 (kernels have no generators)
        if load(places, b) > load(work.wave_index, 2 * len(places), b):
            return False
    return True


@inner
def make_room(work: Work, places: IndexArray, whole: bool) -> Work:
    """The same with room for so many places of each block, still empty; for their turns too only if `whole`."""
    index, n_blocks, n_tiles = work.ints, load(work.ints, N_BLOCKS), load(work.ints, N_TILES)
    wave_index = whole_numbers(4 * n_blocks + 2 * n_tiles)
    total = 0
    for b in range(n_blocks):  # first the turns of one block, for the gradient
        parents = load(index, load(index, BLOCK_PTR) + b, 1) - load(index, load(index, BLOCK_PTR), b)
        total = max(total, 2 * parents * load(places, b))
    for b in range(n_blocks):
        total += load(places, b)  # the weights
        wave_index[2 * n_blocks + b], wave_index[3 * n_blocks + b] = load(places, b), total
        total += 6 * load(places, b)
    for t in range(n_tiles):
        wave_index[4 * n_blocks + t] = total
        room = load(places, load(index, load(index, TILE_BLOCK), t))
        total += 2 * (room + (room if whole else _lower(room)))
    for b in range(n_blocks):
        for k in range(load(index, load(index, BLOCK_PTR), b), load(index, load(index, BLOCK_PTR) + b, 1)):
            t, last = load(index, load(index, BLOCK_TILE), k), load(index, load(index, BLOCK_PTR) + b, 1) - 1
            after = load(index, load(index, BLOCK_TILE), min(k + 1, last))
            wave_index[4 * n_blocks + n_tiles + t] = load(wave_index, 4 * n_blocks, after)
    return Work(index, work.numbers, wave_index, real_numbers(total))


@bare
def tune(work: Work, places: IndexArray) -> None:
    """Give each block so many places: weights of the frequencies there, and e^(iwJ) - 1 of its edges.

    Blocks that have that many keep what they have.
    """
    index, waves = work.ints, work.waves
    for b in range(len(places)):
        n = load(places, b)
        if places_of(work, b) == n:
            continue
        work.wave_index[b] = n
        lanes, step, weights = lanes_of(work, b), step_of(work, b), start_of(work, b) - n
        for i in range(n):
            omega = multiple(i, n, lanes) * step
            waves[weights + i] = (
                step / (omega * math.sinh(math.pi * omega)) if i % lanes == 0 else load(waves, weights + i - 1)
            )
        for k in range(load(index, load(index, BLOCK_PTR), b), load(index, load(index, BLOCK_PTR) + b, 1)):
            t = load(index, load(index, BLOCK_TILE), k)
            _powers(work, b, load(index, TILES) + t * np.int64(TILE) + np.int64(WEIGHT), edges_of(work, t), n)
            _less_one(waves, edges_of(work, t), n)


@bare
def _powers(work: Work, b: int, angles: int, at: int, n: int) -> None:
    """e^(i q step angle) in n places of all lanes of block b."""
    waves, lanes, step, evens = work.waves, lanes_of(work, b), step_of(work, b), _evens(places_of(work, b))
    ratio = start_of(work, b) + 4 * n
    if n == 0:
        return
    for lane in range(lanes):
        angle = step * load(work.numbers, angles, lane)
        c, s = math.cos(angle), math.sin(angle)
        double, turn = (c * c - s * s, 2.0 * c * s) if evens < places_of(work, b) else (c, s)
        re, im = double, turn
        for i in range(lane, SIZE, lanes):
            waves[at + i], waves[at + i + n] = re, im
            if n > evens:
                waves[at + evens + i], waves[at + evens + i + n] = c, s
            c, s = c * double - s * turn, c * turn + s * double
            re, im = re * double - im * turn, re * turn + im * double
        for i in range(lane, SIZE, lanes):  # from one chunk to the next
            waves[ratio + i] = load(waves, at + SIZE - lanes + lane)
            waves[ratio + i + SIZE] = load(waves, at + SIZE - lanes + lane, n)
    _go_on(waves, ratio, waves, at, waves, at + n, min(n, evens))
    _go_on(waves, ratio, waves, at + evens, waves, at + evens + n, n - evens)


@disjoint
def _go_on(ratio: FloatArray, r: int, res: FloatArray, x: int, ims: FloatArray, y: int, n: int) -> None:
    """A geometric series of chunks of complex numbers, from the first and the ratio on."""
    for k in range(CHUNK, _u(max(n, 0)), CHUNK):
        for i in range(CHUNK):
            re, im = _u(x) + k + i, _u(y) + k + i
            a, b = load(ratio, _u(r) + i), load(ratio, _u(r) + i, CHUNK)
            c, d = load(res, re - CHUNK), load(ims, im - CHUNK)
            res[re], ims[im] = a * c - b * d, a * d + b * c


@disjoint
def _less_one(waves: FloatArray, at: int, n: int) -> None:
    for i in range(_u(n)):
        waves[_u(at) + i] -= 1.0


@disjoint
def _weigh(
    weights: FloatArray, w: int, starts: FloatArray, at: int, n: int, live: FloatArray, k: int, by: float
) -> None:
    """Multiply the function of the biases by the weights of the frequencies."""
    for c in range(_u(0), _u(n), LANES):
        for lane in range(LANES):
            x = _u(at) + c + lane
            weight = by * load(weights, _u(w) + c, lane) * load(live, _u(k), lane)
            starts[x] *= weight
            starts[x + _u(n)] *= weight


@bare
def attend(work: Work, whole: bool) -> None:
    """What depends on the biases: their own functions and all constants.

    Unless `whole`, only the lower ones of the even frequencies count.
    """
    index, numbers, waves = work.ints, work.numbers, work.waves
    for b in range(load(index, N_BLOCKS)):
        if load(index, load(index, BLOCK_ROOM), b) != ROOM:
            continue
        places, lanes, start = places_of(work, b), lanes_of(work, b), start_of(work, b)
        first = load(index, BLOCKS) + b * np.int64(BLOCK)
        n, by = (places, 1.0) if whole else (_lower(places), places / max(_evens(places), 1))
        work.wave_index[load(index, N_BLOCKS) + b] = n
        step = by * step_of(work, b)
        weights = tail(step * n / lanes) if n > 0 else 0.0
        for i in range(0, n, lanes):
            weights += by * load(waves, start - places, i)
        for lane in range(16):
            k = _u(first) + _u(lane % lanes)
            low, high = load(numbers, k, LOW), load(numbers, k, HIGH)
            if n == 0 or low > FAR or high < -FAR:
                numbers[k + HALF], numbers[k + CURVE] = 1.0 if low > -high else 0.0, 0.0
                numbers[k + CONSTANT] = math.exp(-max(low, -high))
            else:
                numbers[k + HALF], numbers[k + CURVE] = 0.5, step / (4.0 * math.pi)
                numbers[k + CONSTANT] = weights + math.log(2.0)
            numbers[_u(first + lane) + _LIVE] = 1.0 if load(numbers, k, CURVE) > 0.0 else 0.0
        _powers(work, b, first + np.int64(BIAS), start, n)
        _weigh(waves, start - places, waves, start, n, numbers, first + np.int64(_LIVE), by)
