"""Factors side by side: sixteen lanes a block, all of one kind of term; a tile is the edges from a parent to a block.

All hot loops run along the lanes of a block, so nothing is summed across lanes, and an edge that does not exist has the
weight zero, which changes nothing. A parent with two states has one tile in each block where it has children; one with
K > 2 states has a *group* of K tiles there, state 0 first.
"""

from __future__ import annotations

import numpy as np

from sbnet.kernels.compiling import inner
from sbnet.kernels.kinds import N_KINDS, TILED
from sbnet.kernels.structs import LANES, LINE, Problem, lanes, struct

_RUN = 8  # factors with the same parents that earn blocks of their own

block_t = struct(
    *lanes(
        "x",  # <x>, the mean input
        "t",  # the bound on <t(x)>
        "a", "c",  # <a> and <c> of the threshold, see `thresholds`
        "h",  # the bias
        "low", "high",  # the range of x
        "below", "above",  # how far it reaches from the bias
        # of the paper's term
        "xi",  # the parameter of eq. (19)
        "free",  # 1 if it may move, 0 if it is held
        "share_a", "share_b",  # 1 - phi and phi of eq. (32); in a sweep their sum need not be 1
        "product_a", "product_b",  # the products of f_A and f_B, times 2^-exponent
        "exponent_a", "exponent_b",
        "mean_a", "mean_b",  # <x> - low under the two tilted distributions, and the variances there
        "variance_a", "variance_b",
        "gain",  # what the next step of Newton's method promises
        "next_xi",  # where it would have xi
        "old_xi",  # xi before the step that is being tried
        "limit",  # the term there, which it must not exceed after the step
        "f_a", "f_b",  # of a parent with several states
        # of the quadratic and the exact term
        "second",  # <x^2>
        "straight", "curve", "constant",  # t <= constant + straight <x> + curve <x^2> - waves
        "largest", "squares",  # of the weights: the largest, and the sum of their squares
        "alive",  # 0 where x stays so far from 0 that t is straight
        # scratch
        "arg", "power", "power_a", "power_b",
    ),
    ("factor", "i8", LANES),  # -1 in empty lanes
    ("kind", "i8"),  # which term serves it
    ("width", "i8"),  # lanes that are taken
    ("pair", "i8"),  # its first tile from a parent with two states, and its first group from another; or -1
    ("group", "i8"),
    ("last", "i8"),  # while it is laid out: its last tile
    bits="power", bits_a="power_a", bits_b="power_b", digits_a="product_a", digits_b="product_b",
)  # fmt: skip
tile_t = struct(
    *lanes(
        "weight",
        "e_a", "e_b",  # of the paper's term: E_A and E_B
        "half",  # both where xi is 1/2
        "mantissa", "exponent",  # e^-W = mantissa 2^-exponent, which never underflows
        "from_least", "from_most",  # of a state of a parent with more than two: J_s - least, most - J_s
    ),
    ("slot", "i8", LANES),  # of each edge; -1 where there is none
    ("block", "i8"),
    ("parent", "i8"),  # the hidden variable
    ("column", "i8"),  # its first column in Q
    ("states", "i8"),  # how many it has
    ("state", "i8"),  # which of them this tile is for, in a group; 1 for a pair
    ("after", "i8"),  # the next tile of the same block, or the first of the next group; -1 at the end
)  # fmt: skip


_BLOCK, _TILE = block_t.itemsize, tile_t.itemsize


@inner
def _zeros(size: int) -> np.ndarray:
    """Bytes that begin with a cache line: lanes that lie in two lines take half as long again."""
    raw = np.zeros(size + LINE, np.uint8)
    first = -raw.ctypes.data % LINE
    return raw[first : first + size]


@inner
def lay_out(problem: Problem) -> tuple[np.ndarray, np.ndarray]:
    """Blocks and tiles: a lane for every factor in a block of its kind and, where the term is tiled, for its edges.

    Tiles of a kind and a parent stand together; the last tile is blank.
    """
    hidden, factors, slots, children = problem.hidden, problem.factors, problem.slots, problem.children
    blocks = _zeros(_assign_lanes(factors, slots) * _BLOCK).view(block_t)
    for b in range(len(blocks)):
        blocks[b].pair = blocks[b].group = blocks[b].last = -1
        for i in range(LANES):
            blocks[b].factor[i] = -1
    n = 0
    for j in range(len(hidden)):
        one = hidden[j]
        for c in range(one.child, one.child_end):
            factor = factors[children[c].factor]
            block, i = blocks[factor.block], factor.lane
            block.factor[i], block.kind, block.width = children[c].factor, factor.kind, max(block.width, i + 1)
            if TILED[factor.kind] and block.last != j:
                block.last = j
                n += 1 if one.states == 2 else one.states
            least = most = 0.0  # weight of this parent
            for s in range(children[c].slot, children[c].slot + one.states - 1):
                least, most = min(least, slots[s].weight), max(most, slots[s].weight)
            block.below[i] += least
            block.above[i] += most
    tiles = _zeros((n + 1) * _TILE).view(tile_t)
    tiles[n].states, tiles[n].after = 2, -1
    _fill_tiles(hidden, factors, slots, children, blocks, tiles)
    return blocks, tiles


@inner
def _assign_lanes(factors: np.ndarray, slots: np.ndarray) -> int:
    """A block and a lane for each factor, kind after kind; how many blocks there are.

    A parent has a tile in every block where it has a child. So a factor with other parents than the one before begins
    a new block, unless that would leave too many lanes empty.
    """
    b, width = -1, 0
    for kind in range(N_KINDS):
        before, run = -1, 0
        for f in range(len(factors)):
            factor = factors[f]
            if factor.kind != kind:
                continue
            alike = before >= 0
            if alike:
                other = factors[before]
                alike = factor.slot_end - factor.slot == other.slot_end - other.slot
                for s in range(factor.slot_end - factor.slot if alike else 0):
                    alike = alike and slots[factor.slot + s].parent == slots[other.slot + s].parent
            apart = TILED[kind] == 2 or run >= _RUN
            if before < 0 or width == LANES or (not alike and apart):
                b, width = b + 1, 0
            run = run + 1 if alike else 1
            before, factor.block, factor.lane = f, b, width
            width += 1
    return b + 1


@inner
def _fill_tiles(
    hidden: np.ndarray, factors: np.ndarray, slots: np.ndarray, children: np.ndarray, blocks: np.ndarray,
    tiles: np.ndarray,
) -> None:  # fmt: skip
    """The weights of each parent's children, block by block; then the tiles of each block are strung together."""
    n = 0
    for b in range(len(blocks)):
        blocks[b].last = -1
    for kind in range(N_KINDS):
        for j in range(len(hidden)):
            parent = hidden[j]
            parent.tile[kind] = n
            for c in range(parent.child, parent.child_end if TILED[kind] else parent.child):
                factor = factors[children[c].factor]
                if factor.kind != kind:
                    continue
                block = blocks[factor.block]
                if block.last < parent.tile[kind]:
                    block.last = n
                    for s in range(1 if parent.states == 2 else parent.states):
                        tile = tiles[n]
                        tile.block, tile.parent, tile.column, tile.after = factor.block, j, parent.column, -1
                        tile.states, tile.state = parent.states, 1 if parent.states == 2 else s
                        for i in range(LANES):
                            tile.slot[i] = -1
                        n += 1
                for s in range(parent.states - 1):
                    tile, slot = tiles[block.last + (s if parent.states == 2 else s + 1)], children[c].slot + s
                    tile.weight[factor.lane], tile.slot[factor.lane] = slots[slot].weight, slot
            parent.tile_end[kind] = n
    for t in range(n - 1, -1, -1):
        block = blocks[tiles[t].block]
        if tiles[t].states == 2:
            tiles[t].after, block.pair = block.pair, t
        elif tiles[t].state == 0:
            tiles[t].after, block.group = block.group, t
