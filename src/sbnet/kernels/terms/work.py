"""The state of one problem while it is solved: everything in two arrays, one of whole numbers and one of the others.

A record of forty arrays is dear to pass, and dearer to compile: every function that takes one is handed all of them.
So the arrays stand one after the other as *regions*, and the first entries of the whole numbers, `index`, say where
each begins:
entry f of region PLACE is ``index[index[PLACE] + f]``.

Factors (units with hidden parents) stand in *blocks* of sixteen lanes, each block served by one term; a *tile* is the
edges from one parent to one block, an edge that does not exist having weight zero, which changes nothing. All loops run
along the lanes of a block, so that nothing is summed across lanes, and all numbers of a block (and of a tile) stand at
fixed distances from one another, so that the compiler can tell that they do not overlap, and use vector units. (Places
are unsigned: a place that could be negative would be checked, and the loop would stay scalar.) Every block begins with
the numbers named below, which all terms share; what else a term keeps of its factors stands behind them, at distances
that its own file knows. Likewise every tile begins with its weights.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sbnet._types import FloatArray, IndexArray, Problem
from sbnet.kernels._compile import bare, disjoint, inner
from sbnet.kernels.arrays import load, real_numbers, whole_numbers

# Regions of `index`. By hidden unit: the unit, its own factor or -1, its first tile, its first child with a table.
UNIT, FACTOR_OF, TILE_PTR, FEW_PTR = 0, 1, 2, 3
# By factor: the unit, its place among the hidden or -1, its first slot, its lane in `numbers`, kind, room, and table.
FACTOR, OWN, PTR, PLACE, KIND, ROOM, TABLE_PTR = 4, 5, 6, 7, 8, 9, 10
# By slot (an edge into a factor): the hidden parent, and its lane in `numbers` if it has one.
PARENT, EDGE_PLACE = 11, 12
# By block: the term that serves it, how many lanes are taken, its first tile in BLOCK_TILE. By lane: the factor.
BLOCK_ROOM, WIDTH, BLOCK_PTR, BLOCK_TILE, LANE_FACTOR = 13, 14, 15, 16, 17
# By tile: its block and its parent. By child with a table: the factor and the slot.
TILE_BLOCK, TILE_PARENT, FEW_FACTOR, FEW_SLOT = 18, 19, 20, 21
# By factor, and by hidden unit: the gate.
GATE, HIDDEN_GATE = 22, 23
# Regions of `numbers`. By slot: the weight. By factor: the sums of its negative and its positive weights. Then blocks,
# tiles, tables, and scratch.
WEIGHTS, BELOW, ABOVE, BLOCKS, TILES, TABLES, NEAR, SCRATCH = 24, 25, 26, 27, 28, 29, 30, 31
# And how many there are of what.
N_HIDDEN, N_FACTORS, N_BLOCKS, N_TILES = 32, 33, 34, 35
# Sixteen, where the compiler cannot see it: it spells out a short loop of known length, and finds no vectors in that.
N_LANES = 36
# How many blocks each room has, by its number.
HAS = 37
_HEADER = 53

_u = np.uint64
LANES = _u(16)

# The numbers of a block that all terms share: sixteen of each.
MEAN = _u(0)  # <x>, the mean input
VALUE = _u(16)  # the state or mean of the unit itself
TERM = _u(32)  # the bound on <t(x)>
SECOND = _u(48)  # <x^2>
BIAS = _u(64)
LOW, HIGH = _u(80), _u(96)  # the range of x
MINE = _u(112)  # here the numbers begin that belong to the term of the block
BLOCK = _u(416)

# The numbers of a tile.
WEIGHT = _u(0)
MINE_TOO = _u(16)  # likewise
TILE = _u(80)
_BLOCK, _TILE = int(BLOCK), int(TILE)

_RUN = 8  # factors with the same parents that earn blocks of their own


class Work(NamedTuple):
    """Factors and edges in their places, and the numbers that stand there; `waves` belong to the exact term."""

    ints: IndexArray
    numbers: FloatArray
    wave_index: IndexArray
    waves: FloatArray


@bare
def _same_parents(problem: Problem, f: int, g: int) -> bool:
    ptr, parent = problem.ptr, problem.parent
    one, other = load(ptr, f), load(ptr, g)
    k = load(ptr, f, 1) - one
    if load(ptr, g, 1) - other != k:
        return False
    for s in range(k):  # noqa: SIM110 (kernels have no generators)
        if load(parent, one, s) != load(parent, other, s):
            return False
    return True


# How many entries each region of `index` has at most, as multiples of these. (A table, because every line of a kernel
# takes time to compile.) Blocks are at most as many as factors, and tiles as many as slots.
_BY_HIDDEN, _BY_FACTOR, _BY_SLOT, _BY_LANE = 0, 1, 2, 3
_SIZE_OF = np.zeros(WEIGHTS, np.int64)
_SIZE_OF[[FACTOR, OWN, PTR, PLACE, KIND, ROOM, TABLE_PTR, GATE]] = _BY_FACTOR
_SIZE_OF[[BLOCK_ROOM, WIDTH, BLOCK_PTR]] = _BY_FACTOR  # there are no more blocks than that
_SIZE_OF[[PARENT, EDGE_PLACE, BLOCK_TILE, TILE_BLOCK, TILE_PARENT, FEW_FACTOR, FEW_SLOT]] = _BY_SLOT
_SIZE_OF[LANE_FACTOR] = _BY_LANE


@inner
def lay_out(
    problem: Problem, kind: IndexArray, room: IndexArray, tiled: IndexArray, table: IndexArray, strict: int
) -> Work:
    """Give every factor a lane in a block of its room; where `tiled` is 1, give its edges lanes in tiles.

    A factor without tiles has a table of its own, of the given size.

    A parent has a tile in every block where it has a child. So a factor with other parents than the one before begins a
    new block: always if `strict`, and otherwise unless that would leave too many lanes empty.
    """
    n_hidden, n_factors, n_slots = len(problem.hidden), len(problem.factor), len(problem.weight)
    size = whole_numbers(4)
    size[_BY_HIDDEN], size[_BY_FACTOR], size[_BY_SLOT] = n_hidden + 1, n_factors + 1, n_slots
    size[_BY_LANE] = 16 * n_factors
    at = _HEADER
    for region in range(WEIGHTS):
        at += load(size, _SIZE_OF[region])
    index, near = whole_numbers(at), whole_numbers(n_factors)
    at = _HEADER
    for region in range(WEIGHTS):
        index[region] = at
        at += load(size, _SIZE_OF[region])
    index[N_HIDDEN], index[N_FACTORS], index[N_LANES] = n_hidden, n_factors, 16
    _fill_blocks(problem, kind, room, tiled, table, strict, index)
    _fill_tiles(problem, tiled, near, index)
    numbers = real_numbers(_rooms(n_slots, index))
    _fill_edges(problem, tiled, index, numbers)
    return Work(index, numbers, whole_numbers(len(size) - 4), real_numbers(len(size) - 4))


@bare
def _fill_blocks(
    problem: Problem,
    kind: IndexArray,
    room: IndexArray,
    tiled: IndexArray,
    size_of_table: IndexArray,
    strict: int,
    index: IndexArray,
) -> None:
    """What is known of each factor, and its lane in a block: its place there is that in the first of all regions."""
    block_room, width, place, lane_factor = (
        load(index, BLOCK_ROOM),
        load(index, WIDTH),
        load(index, PLACE),
        load(index, LANE_FACTOR),
    )
    b = -1  # the last block
    for r in range(_HEADER - HAS):
        before, run = -1, 0
        for f in range(len(room)):
            if load(room, f) == r:
                alike = before >= 0 and _same_parents(problem, f, before)
                full = before >= 0 and load(index, width, b) == 16
                if before < 0 or full or (not alike and (run >= _RUN or strict * load(tiled, f) > 0)):
                    b += 1
                    index[block_room + b] = r
                    index[HAS + r] += 1
                run = run + 1 if alike else 1
                before, lane = f, load(index, width, b)
                index[place + f], index[lane_factor + 16 * b + lane] = b * _BLOCK + lane, f
                index[width + b] = lane + 1
    index[N_BLOCKS] = b + 1
    factor, own, ptr, table = load(index, FACTOR), load(index, OWN), load(index, PTR), load(index, TABLE_PTR)
    kinds, rooms, gate = load(index, KIND), load(index, ROOM), load(index, GATE)
    most = 0
    for f in range(len(room)):
        i, end, size = problem.factor[f], problem.ptr[f + 1], size_of_table[f]
        index[factor + f], index[own + f], index[ptr + f + 1] = i, problem.own[f], end
        index[kinds + f], index[rooms + f], index[gate + f] = kind[f], room[f], problem.gate[i]
        if size == 1 << min(end - problem.ptr[f], 60):  # a sum over states, which needs as much once more
            most = max(most, end - problem.ptr[f])
        index[table + f + 1] = index[table + f] + size
    index[NEAR] = most


@bare
def _fill_tiles(problem: Problem, tiled: IndexArray, latest: IndexArray, index: IndexArray) -> None:
    """The tiles of each hidden unit and of each block, and the children that have none."""
    unit, factor_of, gate, place = (
        load(index, UNIT),
        load(index, FACTOR_OF),
        load(index, HIDDEN_GATE),
        load(index, PLACE),
    )
    tile_ptr, few_ptr, edge_place = load(index, TILE_PTR) + 1, load(index, FEW_PTR) + 1, load(index, EDGE_PLACE)
    tile_block, tile_parent, few_factor, few_slot = (
        load(index, TILE_BLOCK), load(index, TILE_PARENT), load(index, FEW_FACTOR), load(index, FEW_SLOT),
    )  # fmt: skip
    block_ptr, block_tile = load(index, BLOCK_PTR), load(index, BLOCK_TILE)
    n_tiles = n_few = 0
    for j in range(len(problem.hidden)):
        i, first = load(problem.hidden, j), n_tiles
        index[unit + j], index[factor_of + j], index[gate + j] = i, load(problem.factor_of, j), load(problem.gate, i)
        for c in range(load(problem.child_ptr, j), load(problem.child_ptr, j, 1)):
            f, s = load(problem.child, c), load(problem.child_slot, c)
            if load(tiled, f) > 0:
                b = load(index, place, f) // _BLOCK
                if load(latest, b) <= first:  # one more than the last tile of the block
                    index[tile_block + n_tiles], index[tile_parent + n_tiles] = b, j
                    n_tiles += 1
                    latest[b] = n_tiles
                    index[block_ptr + b + 1] += 1
                index[edge_place + s] = (load(latest, b) - 1) * _TILE + load(index, place, f) % _BLOCK
            else:
                index[few_factor + n_few], index[few_slot + n_few] = f, s
                n_few += 1
        index[tile_ptr + j], index[few_ptr + j] = n_tiles, n_few
    index[N_TILES] = n_tiles
    for b in range(load(index, N_BLOCKS)):
        latest[b] = load(index, block_ptr, b)
        index[block_ptr + b + 1] += load(latest, b)
    for t in range(n_tiles):
        b = load(index, tile_block, t)
        index[block_tile + load(latest, b)] = t
        latest[b] += 1


@bare
def _rooms(n_slots: int, index: IndexArray) -> int:
    """Where the regions of `numbers` begin; how many numbers there are in all."""
    n_factors, most = load(index, N_FACTORS), load(index, NEAR)
    index[WEIGHTS], index[BELOW], index[ABOVE] = 0, n_slots, n_slots + n_factors
    index[BLOCKS] = n_slots + 2 * n_factors
    index[TILES] = load(index, BLOCKS) + load(index, N_BLOCKS) * _BLOCK
    index[TABLES] = load(index, TILES) + load(index, N_TILES) * _TILE
    index[NEAR] = load(index, TABLES) + load(index, load(index, TABLE_PTR), n_factors)
    index[SCRATCH] = load(index, NEAR) + most
    return load(index, SCRATCH) + (1 << most)


@bare
def _fill_edges(problem: Problem, tiled: IndexArray, index: IndexArray, numbers: FloatArray) -> None:
    """Weights where they belong; and places are counted from the beginning of all numbers from now on."""
    place, edge_place, parent = load(index, PLACE), load(index, EDGE_PLACE), load(index, PARENT)
    blocks, tiles, weights, below, above = (
        load(index, BLOCKS),
        load(index, TILES),
        load(index, WEIGHTS),
        load(index, BELOW),
        load(index, ABOVE),
    )
    for f in range(load(index, N_FACTORS)):
        index[place + f] += blocks
        for s in range(load(problem.ptr, f), load(problem.ptr, f, 1)):
            w = load(problem.weight, s)
            index[parent + s], numbers[weights + s] = load(problem.parent, s), w
            if w < 0.0:
                numbers[below + f] += w
            else:
                numbers[above + f] += w
            if load(tiled, f) > 0:
                at = tiles + load(index, edge_place, s)
                index[edge_place + s], numbers[at] = at, w


# A function of tiles and blocks is given the same array twice. Under two names the compiler checks once that two places
# do not overlap, and then uses vectors; under one name it gives up. If it is `disjoint`, it takes that on trust.


@disjoint
def moments(index: IndexArray, edges: FloatArray, blocks: FloatArray, b: int, mu: FloatArray) -> None:
    """<x> and <x^2> of the factors of block b."""
    o, lanes, tiles = _u(load(index, BLOCKS)) + _u(b) * BLOCK, _u(load(index, N_LANES)), _u(load(index, TILES))
    block_ptr, block_tile, parent = load(index, BLOCK_PTR) + b, load(index, BLOCK_TILE), load(index, TILE_PARENT)
    for lane in range(lanes):
        k = o + lane
        blocks[k + MEAN] = load(blocks, k, BIAS)
        blocks[k + SECOND] = 0.0
    for tile in range(load(index, block_ptr), load(index, block_ptr, 1)):
        t = load(index, block_tile, tile)
        e, m = tiles + _u(t) * TILE, load(mu, load(index, parent, t))
        spread = m * (1.0 - m)
        for lane in range(lanes):
            k, w = o + lane, load(edges, e, lane)
            blocks[k + MEAN] += w * m
            blocks[k + SECOND] += w * w * spread
    for lane in range(lanes):
        k = o + lane
        mean = load(blocks, k, MEAN)
        blocks[k + SECOND] += mean * mean


@disjoint
def push_moments(
    index: IndexArray, edges: FloatArray, blocks: FloatArray, j: int, room: int, old: float, new: float
) -> None:
    """Unit j has moved: <x> and <x^2> of its children in one room follow."""
    lanes, tiles, first = _u(load(index, N_LANES)), _u(load(index, TILES)), _u(load(index, BLOCKS))
    tile_ptr, tile_block, block_room = load(index, TILE_PTR) + j, load(index, TILE_BLOCK), load(index, BLOCK_ROOM)
    step, bend = new - old, 1.0 - 2.0 * old
    for t in range(load(index, tile_ptr), load(index, tile_ptr, 1)):
        b = load(index, tile_block, t)
        if load(index, block_room, b) == room:
            e, o = tiles + _u(t) * TILE, first + _u(b) * BLOCK
            for lane in range(lanes):
                k, w = o + lane, load(edges, e, lane)
                mean = load(blocks, k, MEAN)
                blocks[k + SECOND] += step * w * (2.0 * mean + w * bend)
                blocks[k + MEAN] = mean + w * step


@bare
def spread(weight: FloatArray, mu: FloatArray, bias: float) -> tuple[float, float, float, float, float]:
    """Of x = bias + sum of weight times S, with independent S: its range, mean and variance, and the largest weight."""
    low = high = mean = bias
    variance = largest = 0.0
    for s in range(len(weight)):
        low += min(load(weight, s), 0.0)
        high += max(load(weight, s), 0.0)
        largest = max(largest, abs(load(weight, s)))
        mean += load(weight, s) * load(mu, s)
        variance += load(weight, s) * load(weight, s) * load(mu, s) * (1.0 - load(mu, s))
    return low, high, mean, variance, largest
