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

from sbnet._types import BoolArray, FloatArray, IndexArray, Problem
from sbnet.kernels._compile import bare, inner, vector

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
BLOCK = _u(336)

# The numbers of a tile.
WEIGHT = _u(0)
MINE_TOO = _u(16)  # likewise
TILE = _u(112)

_RUN = 8  # factors with the same parents that earn blocks of their own


class Work(NamedTuple):
    """Factors and edges in their places, and the numbers that stand there; `waves` belong to the exact term."""

    ints: IndexArray
    numbers: FloatArray
    wave_index: IndexArray
    waves: FloatArray


@bare
def block_at(index: IndexArray, b: int) -> np.uint64:
    """Where block b begins."""
    return _u(index[BLOCKS]) + _u(b) * BLOCK


@bare
def _same_parents(problem: Problem, f: int, g: int) -> bool:
    k = problem.ptr[f + 1] - problem.ptr[f]
    if problem.ptr[g + 1] - problem.ptr[g] != k:
        return False
    for s in range(k):  # noqa: SIM110 (kernels have no generators)
        if problem.parent[problem.ptr[f] + s] != problem.parent[problem.ptr[g] + s]:
            return False
    return True


@inner
def lay_out(problem: Problem, kind: IndexArray, room: IndexArray, tiled: BoolArray, strict: bool) -> Work:
    """Give every factor a lane in a block of its room; where `tiled` is true, give its edges lanes in tiles.

    A parent has a tile in every block where it has a child. So a factor with other parents than the one before begins a
    new block: always if `strict`, and otherwise unless that would leave too many lanes empty.
    """
    n_factors, n_hidden, n_slots = len(problem.factor), len(problem.hidden), len(problem.weight)
    block_of, lane_of = np.zeros(n_factors, np.int64), np.zeros(n_factors, np.int64)
    block_room, width = np.zeros(n_factors + 1, np.int64), np.zeros(n_factors + 1, np.int64)
    n_blocks = n_rooms = 0
    for f in range(n_factors):
        n_rooms = max(n_rooms, room[f] + 1)
    for r in range(n_rooms):
        before, run = -1, 0
        for f in range(n_factors):
            if room[f] != r:
                continue
            alike = before >= 0 and _same_parents(problem, f, before)
            if before < 0 or width[n_blocks - 1] == 16 or (not alike and (run >= _RUN or (strict and tiled[f]))):
                block_room[n_blocks] = r
                n_blocks += 1
            run = run + 1 if alike else 1
            before = f
            block_of[f], lane_of[f] = n_blocks - 1, width[n_blocks - 1]
            width[n_blocks - 1] += 1
    tile_of = np.zeros(n_slots, np.int64)
    tile_ptr, few_ptr = np.zeros(n_hidden + 1, np.int64), np.zeros(n_hidden + 1, np.int64)
    latest = np.zeros(n_blocks + 1, np.int64)  # one more than the last tile of each block
    n_tiles = n_few = 0
    for j in range(n_hidden):
        for c in range(problem.child_ptr[j], problem.child_ptr[j + 1]):
            f = problem.child[c]
            if tiled[f]:
                if latest[block_of[f]] <= tile_ptr[j]:
                    n_tiles += 1
                    latest[block_of[f]] = n_tiles
                tile_of[problem.child_slot[c]] = latest[block_of[f]] - 1
            else:
                n_few += 1
        tile_ptr[j + 1], few_ptr[j + 1] = n_tiles, n_few
    n_table = most = 0
    for f in range(n_factors):
        if not tiled[f] and room[f] >= 0:
            most = max(most, problem.ptr[f + 1] - problem.ptr[f])
            n_table += 1 << (problem.ptr[f + 1] - problem.ptr[f])
    index, numbers = _rooms(n_hidden, n_factors, n_slots, n_blocks, n_tiles, n_few, n_table, most)
    for j in range(n_hidden):
        index[index[UNIT] + j], index[index[FACTOR_OF] + j] = problem.hidden[j], problem.factor_of[j]
        index[index[HIDDEN_GATE] + j] = problem.gate[problem.hidden[j]]
        index[index[TILE_PTR] + j + 1], index[index[FEW_PTR] + j + 1] = tile_ptr[j + 1], few_ptr[j + 1]
    for b in range(n_blocks):
        index[index[BLOCK_ROOM] + b], index[index[WIDTH] + b] = block_room[b], width[b]
        index[HAS + block_room[b]] += 1
    n_table = 0
    for f in range(n_factors):
        at = index[BLOCKS] + block_of[f] * np.int64(BLOCK) + lane_of[f]
        index[index[FACTOR] + f], index[index[OWN] + f] = problem.factor[f], problem.own[f]
        index[index[PTR] + f + 1], index[index[PLACE] + f] = problem.ptr[f + 1], at
        index[index[KIND] + f], index[index[ROOM] + f] = kind[f], room[f]
        index[index[GATE] + f] = problem.gate[problem.factor[f]]
        index[index[LANE_FACTOR] + block_of[f] * 16 + lane_of[f]] = f
        if not tiled[f] and room[f] >= 0:
            n_table += 1 << (problem.ptr[f + 1] - problem.ptr[f])
        index[index[TABLE_PTR] + f + 1] = n_table
        for s in range(problem.ptr[f], problem.ptr[f + 1]):
            w, t = problem.weight[s], tile_of[s]
            index[index[PARENT] + s], numbers[index[WEIGHTS] + s] = problem.parent[s], w
            numbers[index[BELOW] + f] += min(w, 0.0)
            numbers[index[ABOVE] + f] += max(w, 0.0)
            if tiled[f]:
                at = index[TILES] + t * np.int64(TILE) + lane_of[f]
                index[index[EDGE_PLACE] + s], numbers[at] = at, w
                index[index[TILE_BLOCK] + t], index[index[TILE_PARENT] + t] = block_of[f], problem.parent[s]
    for t in range(n_tiles):
        index[index[BLOCK_PTR] + index[index[TILE_BLOCK] + t] + 1] += 1
    for b in range(n_blocks):
        index[index[BLOCK_PTR] + b + 1] += index[index[BLOCK_PTR] + b]
        latest[b] = index[index[BLOCK_PTR] + b]
    for t in range(n_tiles):
        b = index[index[TILE_BLOCK] + t]
        index[index[BLOCK_TILE] + latest[b]] = t
        latest[b] += 1
    n_few = 0
    for c in range(n_slots):
        if not tiled[problem.child[c]]:
            index[index[FEW_FACTOR] + n_few] = problem.child[c]
            index[index[FEW_SLOT] + n_few] = problem.child_slot[c]
            n_few += 1
    return Work(index, numbers, np.zeros(0, np.int64), np.zeros(0))


@inner
def _rooms(
    n_hidden: int, n_factors: int, n_slots: int, n_blocks: int, n_tiles: int, n_few: int, n_table: int, most: int
) -> tuple[IndexArray, FloatArray]:
    """The two arrays, with the beginnings of all regions in their header."""
    size = np.zeros(_HEADER, np.int64)
    size[UNIT] = size[FACTOR_OF] = size[HIDDEN_GATE] = n_hidden
    size[TILE_PTR] = size[FEW_PTR] = n_hidden + 1
    for region in (FACTOR, OWN, PLACE, KIND, ROOM, BELOW, ABOVE, GATE):
        size[region] = n_factors
    size[PTR] = size[TABLE_PTR] = n_factors + 1
    size[PARENT] = size[EDGE_PLACE] = size[WEIGHTS] = n_slots
    size[BLOCK_ROOM] = size[WIDTH] = n_blocks
    size[BLOCK_PTR], size[LANE_FACTOR] = n_blocks + 1, 16 * n_blocks
    size[BLOCK_TILE] = size[TILE_BLOCK] = size[TILE_PARENT] = n_tiles
    size[FEW_FACTOR] = size[FEW_SLOT] = n_few
    size[BLOCKS], size[TILES] = n_blocks * np.int64(BLOCK), n_tiles * np.int64(TILE)
    size[TABLES], size[NEAR], size[SCRATCH] = n_table, most, 1 << most
    header = np.zeros(_HEADER, np.int64)
    at = _HEADER
    for region in range(WEIGHTS):
        header[region] = at
        at += size[region]
    index = np.zeros(at, np.int64)
    at = 0
    for region in range(WEIGHTS, N_HIDDEN):
        header[region] = at
        at += size[region]
    header[N_HIDDEN], header[N_FACTORS], header[N_BLOCKS], header[N_TILES] = n_hidden, n_factors, n_blocks, n_tiles
    header[N_LANES] = 16
    for region in range(_HEADER):
        index[region] = header[region]
    return index, np.zeros(at)


# A function of tiles and blocks is given the same array twice: under two names the compiler checks once that two places
# do not overlap, and then uses vectors; under one name it gives up.


@vector
def moments(index: IndexArray, edges: FloatArray, blocks: FloatArray, b: int, mu: FloatArray) -> None:
    """<x> and <x^2> of the factors of block b."""
    o, lanes = _u(index[BLOCKS]) + _u(b) * BLOCK, _u(index[N_LANES])
    for lane in range(lanes):
        blocks[o + lane + MEAN] = blocks[o + lane + BIAS]
        blocks[o + lane + SECOND] = 0.0
    for k in range(index[index[BLOCK_PTR] + b], index[index[BLOCK_PTR] + b + 1]):
        t = index[index[BLOCK_TILE] + k]
        m = mu[index[index[TILE_PARENT] + t]]
        e, spread = _u(index[TILES]) + _u(t) * TILE, m * (1.0 - m)
        for lane in range(lanes):
            w = edges[e + lane + WEIGHT]
            blocks[o + lane + MEAN] += w * m
            blocks[o + lane + SECOND] += w * w * spread
    for lane in range(lanes):
        blocks[o + lane + SECOND] += blocks[o + lane + MEAN] * blocks[o + lane + MEAN]


@vector
def push_moments(
    index: IndexArray, edges: FloatArray, blocks: FloatArray, j: int, room: int, old: float, new: float
) -> None:
    """Unit j has moved: <x> and <x^2> of its children in one room follow."""
    lanes = _u(index[N_LANES])
    for t in range(index[index[TILE_PTR] + j], index[index[TILE_PTR] + j + 1]):
        b = index[index[TILE_BLOCK] + t]
        if index[index[BLOCK_ROOM] + b] != room:
            continue
        e, o = _u(index[TILES]) + _u(t) * TILE, _u(index[BLOCKS]) + _u(b) * BLOCK
        for lane in range(lanes):
            w, mean = edges[e + lane + WEIGHT], blocks[o + lane + MEAN]
            blocks[o + lane + SECOND] += (new - old) * w * (2.0 * mean + w * (1.0 - 2.0 * old))
            blocks[o + lane + MEAN] = mean + w * (new - old)
