"""The frequencies of the exact term: how many, where they stand, and what is known of them before Q moves.

A block has the frequencies k d, k = 1, 2, ... Those of its factors stand side by side, in *places*: sixteen lanes of
one frequency, or fewer lanes of several where it has fewer factors, always 32 places or a multiple. Even k come before
odd ones: alone they are the same rule with twice the step, and the lower ones of them are the few that the ascent makes
do with.

Complex numbers have their real parts first, then their imaginary parts. From `FIRST` on, a block keeps its weights, the
characteristic function of its biases times these, the product over parents, and for each column of Q in its inputs
e^{iwJ} - 1 and the *turn* of the column (see `exact`).
"""

from __future__ import annotations

import math

import numpy as np

from sbnet._types import FloatArray, IndexArray
from sbnet.kernels.compiling import inner
from sbnet.kernels.kinds import EXACT
from sbnet.kernels.newterms.quadratic import moments
from sbnet.kernels.structs import LANES, LINE, Problem

MAX_NODES = 512
MAX_NUMBERS = 100_000_000  # 800 MB: in a problem that would need more, some terms are others
OMEGA = 5.0  # where the sum over frequencies ends; what is left is bounded and added
MARGIN = 15.0  # aliases of the sum are below e^-15 / 2 for |x| in the expected range
_BERNSTEIN = 16.0
FAR = 20.0  # beyond it ln(1 + e^x) is straight
_SIZE = 32
_LOWER = 0.42  # of the even frequencies: what the ascent makes do with
_MORE = 6  # frequencies, so that the even ones alone are within 1e-3 for the ascent, and Q may move

# What the first factor of a block keeps in its table.
USED, PLACES, KEPT, FIRST, BY, ALL = range(6)  # `ALL`: where the numbers of all blocks begin
HEADER = 8

unsigned = np.uint64
"""For indices along lanes and frequencies: one that might be negative keeps a loop from becoming vectors."""


@inner
def tail(omega: float) -> float:
    """A bound on what is left out beyond frequency omega."""
    return 4.0 * math.exp(-math.pi * omega) / (math.pi * omega * (1.0 - math.exp(-2.0 * math.pi * omega)))


@inner
def nodes(low: float, high: float, mean: float, variance: float, largest: float, squares: float) -> int:
    """How many frequencies give about 1e-7; 0 if x stays far from 0.

    x lies between `low` and `high`, and but for a probability of 2 e^-16 (Bernstein's inequality) within t of its mean,
    t^2 = 2 u (variance + largest t / 3) with u = 16. The weights of a parent's states, 0 among them, have a range:
    `largest` is the largest of these. Aliases are about <e^|x|> e^-s, and that mean is at most
    2 e^(|mean| + squares / 8) (Hoeffding's lemma), `squares` being the sum of the squares of all ranges.
    """
    if low > FAR or high < -FAR:
        return 0
    third = largest * _BERNSTEIN / 3.0
    reach = third + math.sqrt(third * third + 2.0 * variance * _BERNSTEIN)
    low, high = max(low, mean - reach), min(high, mean + reach)
    return math.ceil(OMEGA * (min(max(-low, high, 0.0), abs(mean) + squares / 8.0) + MARGIN) / (2.0 * math.pi))


@inner
def ranges(problem: Problem, blocks: np.ndarray) -> None:
    """What depends on the weights alone: the largest range of a parent, and the sum of their squares."""
    hidden, slots = problem.hidden, problem.slots
    for f in range(len(problem.factors)):
        factor = problem.factors[f]
        if factor.kind != EXACT:
            continue
        s, largest, squares = factor.slot, 0.0, 0.0
        while s < factor.slot_end:
            least = most = 0.0
            for _ in range(hidden[slots[s].parent].states - 1):
                least, most = min(least, slots[s].weight), max(most, slots[s].weight)
                s += 1
            largest, squares = max(largest, most - least), squares + (most - least) * (most - least)
        blocks[factor.block].largest[factor.lane], blocks[factor.block].squares[factor.lane] = largest, squares


@inner
def lanes_of(block: np.ndarray) -> int:
    """Lanes of a block, a power of two."""
    lanes = 1
    while lanes < block.width:
        lanes *= 2
    return lanes


@inner
def lower(places: int) -> int:
    """Places that the ascent makes do with: the lower ones of the even multiples of the step."""
    evens = places if places == _SIZE else places // 2
    return math.ceil(_LOWER * evens / _SIZE) * _SIZE


@inner
def multiple(i: int, places: int, lanes: int) -> int:
    """Which multiple of the step stands at place i."""
    if places == _SIZE:
        return i // lanes + 1
    return 2 * (i // lanes) + 2 if i < places // 2 else 2 * ((i - places // 2) // lanes) + 1


@inner
def places_for(
    problem: Problem, blocks: np.ndarray, tiles: np.ndarray, q: FloatArray, again: bool
) -> tuple[IndexArray, bool]:
    """How many places each block needs at the present Q, to begin or to go on; and would that be too many for some?

    A few numbers only, so that rows with other needs can share them.
    """
    places, total, crowded = np.zeros(len(blocks), np.int64), 0, False
    for b in range(len(blocks)):
        block = blocks[b]
        if block.kind != EXACT:
            continue
        moments(block, tiles, q)
        lead, need, lanes = problem.factors[block.factor[0]], 0, lanes_of(block)
        for i in range(block.width):
            mean = block.x[i]
            variance = max(block.second[i] - mean * mean, 0.0)
            n = nodes(block.low[i], block.high[i], mean, variance, block.largest[i], block.squares[i])
            need, total = max(need, n), total + 6 * (lead.slot_end - lead.slot) * max(n, _SIZE)
        crowded = crowded or need > MAX_NODES or total > MAX_NUMBERS
        need = min(need, MAX_NODES)
        if need * lanes > _SIZE and not again:
            need += _MORE
        chunks = (need * lanes + _SIZE - 1) // _SIZE
        few = 1 if chunks <= 1 else 2 if chunks <= 16 else 8
        places[b] = (chunks + few - 1) // few * few * _SIZE
    return places, crowded


@inner
def attune(
    problem: Problem, blocks: np.ndarray, tiles: np.ndarray, numbers: FloatArray, q: FloatArray, again: bool,
    at_all: bool,
) -> tuple[FloatArray, bool]:  # fmt: skip
    """Numbers with the frequencies that are needed at the present Q; and were those enough that it had?

    If `again`, this row had some: no block may lose any, or its term would loosen. Unless `at_all`, all is left as it
    is where some factor would need too many.
    """
    factors = problem.factors
    places, crowded = places_for(problem, blocks, tiles, q, again)
    enough, fits, size = again or (crowded and not at_all), True, len(numbers)
    for b in range(len(blocks)):
        if blocks[b].kind == EXACT:
            table = factors[blocks[b].factor[0]].table
            has = int(numbers[table + PLACES])
            if again:
                enough = enough and (crowded or places[b] <= has)
                places[b] = has if crowded else max(places[b], has)
            fits = fits and numbers[table + ALL] > 0.0 and places[b] <= int(numbers[table + KEPT])
            if numbers[table + ALL] > 0.0:
                size = int(numbers[table + ALL])
    if enough:
        return numbers, True
    if not fits:
        numbers = _make_room(factors, blocks, numbers, places, size)
    for b in range(len(blocks)):
        if blocks[b].kind == EXACT:
            table = factors[blocks[b].factor[0]].table
            if int(numbers[table + PLACES]) != places[b]:
                numbers[table + PLACES] = places[b]
                _tune(factors, problem.slots, blocks[b], numbers)
    return numbers, False


@inner
def _make_room(
    factors: np.ndarray, blocks: np.ndarray, numbers: FloatArray, places: IndexArray, size: int
) -> FloatArray:
    """The tables, which take the first `size` numbers, and behind them room for so many places of each block."""
    first = total = (size + HEADER - 1) // HEADER * HEADER
    for b in range(len(blocks)):
        if blocks[b].kind == EXACT:
            lead = factors[blocks[b].factor[0]]
            total += places[b] * (5 + 4 * (lead.slot_end - lead.slot))
    raw = np.zeros(8 * total + LINE, np.uint8)
    begin = -raw.ctypes.data % LINE
    more = raw[begin : begin + 8 * total].view(np.float64)
    more[:size] = numbers[:size]
    for b in range(len(blocks)):
        if blocks[b].kind == EXACT:
            lead = factors[blocks[b].factor[0]]
            more[lead.table + PLACES], more[lead.table + KEPT] = 0.0, places[b]
            more[lead.table + FIRST], more[lead.table + ALL] = first, size
            first += places[b] * (5 + 4 * (lead.slot_end - lead.slot))
    return more


@inner
def _tune(factors: np.ndarray, slots: np.ndarray, block: np.ndarray, numbers: FloatArray) -> None:
    """The weights of the frequencies of a block, and e^{iwJ} - 1 of its edges."""
    lead, lanes = factors[block.factor[0]], lanes_of(block)
    places, first = int(numbers[lead.table + PLACES]), int(numbers[lead.table + FIRST])
    step = OMEGA * lanes / max(places, 1)
    for i in range(places):
        omega = multiple(i, places, lanes) * step
        numbers[first + i] = step / (omega * math.sinh(math.pi * omega))
    for k in range(lead.slot_end - lead.slot if places > 0 else 0):
        for i in range(lanes):
            f, block.arg[i] = block.factor[i], 0.0
            if f >= 0:
                block.arg[i] = step * slots[factors[f].slot + k].weight
        edge = first + (5 + 4 * k) * places
        _powers(block, lanes, numbers, edge, places)
        for i in range(places):
            numbers[edge + i] -= 1.0


@inner
def _powers(block: np.ndarray, lanes: int, numbers: FloatArray, at: int, places: int) -> None:
    """e^{i k angle} for the multiples k of all places, the angles of the lanes being in `arg`."""
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
    _geometric(block, numbers, at, places, evens)
    _geometric(block, numbers, at + evens, places, places - evens)


@inner(fast=True)
def _geometric(block: np.ndarray, numbers: FloatArray, at: int, apart: int, n: int) -> None:
    size, far = unsigned(LANES), unsigned(apart)
    for k in range(at, at + n - LANES, LANES):
        x = unsigned(k)
        for i in range(size):
            a, b, c, d = block.f_a[i], block.f_b[i], numbers[x + i], numbers[x + far + i]
            numbers[x + size + i], numbers[x + far + size + i] = a * c - b * d, a * d + b * c


@inner(fast=True)
def fill(numbers: FloatArray, at: int, value: float, n: int) -> None:
    """n times the same number."""
    x = unsigned(at)
    for i in range(unsigned(n)):
        numbers[x + i] = value


@inner(fast=True)
def bring_biases(block: np.ndarray, lanes: int, numbers: FloatArray, first: int, places: int) -> None:
    """The characteristic function of the biases of a row, times the weights of the frequencies."""
    for i in range(LANES):
        block.arg[i] = OMEGA * lanes / max(places, 1) * block.h[i]
    _powers(block, lanes, numbers, first + places, places)
    far = unsigned(places)
    for k in range(first, first + places, LANES):
        x = unsigned(k)
        for i in range(unsigned(LANES)):
            weight = numbers[x + i] * block.alive[i]
            numbers[x + far + i] *= weight
            numbers[x + far + far + i] *= weight


@inner
def attend(problem: Problem, blocks: np.ndarray, numbers: FloatArray, whole: bool) -> None:
    """What the terms are made of beside the frequencies that count: all of them, or unless `whole`, the few."""
    for b in range(len(blocks)):
        block = blocks[b]
        if block.kind != EXACT:
            continue
        table, lanes = problem.factors[block.factor[0]].table, lanes_of(block)
        places, first = int(numbers[table + PLACES]), int(numbers[table + FIRST])
        n, by = places if whole else lower(places), 1.0 if whole or places == _SIZE else 2.0
        numbers[table + USED], numbers[table + BY] = n, by
        step = by * OMEGA * lanes / max(places, 1)
        constant = math.log(2.0) + (tail(step * n / lanes) if n > 0 else 0.0)
        for i in range(0, n, lanes):
            constant += by * numbers[first + i]
        for i in range(LANES):
            low, high = block.low[i % lanes], block.high[i % lanes]
            block.alive[i] = 0.0 if n == 0 or low > FAR or high < -FAR else 1.0
            if block.alive[i] > 0.0:
                block.straight[i], block.curve[i], block.constant[i] = 0.5, step / (4.0 * math.pi), constant
            else:
                block.straight[i], block.curve[i] = 1.0 if low > -high else 0.0, 0.0
                block.constant[i] = math.exp(-max(low, -high))
