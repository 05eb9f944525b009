"""Factors side by side: sixteen lanes a block, all of one kind of term; a tile is the edges from a parent to a block.

All hot loops run along the lanes of a block, so nothing is summed across lanes, and an edge that does not exist has the
weight zero, which changes nothing. A parent with two states has one tile in each block where it has children; one with
K > 2 states has a *group* of K tiles there, state 0 first.
"""

from __future__ import annotations

import numpy as np

from sbnet.kernels.compiling import kernel
from sbnet.kernels.kinds import N_KINDS, TILED
from sbnet.kernels.structs import LANES, Problem, aligned, block_t, tile_t

_RUN = 8  # factors with the same parents that earn blocks of their own


def lay_out(problem: Problem) -> tuple[np.ndarray, np.ndarray]:
    """Blocks and tiles, without weights; tiles of a kind and a parent stand together, and the last tile is blank."""
    hidden, factors, slots, children, *_ = problem
    blocks = aligned(_assign_lanes(factors, slots), block_t)
    blocks["xi"], blocks["lanes"] = 0.5, LANES
    blocks["pair"] = blocks["group"] = blocks["last"] = blocks["factor"] = -1
    n = _fill_blocks(hidden, factors, children, blocks)
    first, tiles = factors[factors["lane"] == 0], aligned(n + 1, tile_t)
    blocks["slot"][first["block"]], blocks["slot_end"][first["block"]] = first["slot"], first["slot_end"]
    blocks["last"] = tiles["slot"] = tiles["after"] = -1
    tiles[n]["states"] = 2
    _fill_tiles(hidden, factors, children, blocks, tiles, n)
    return blocks, tiles


@kernel
def _assign_lanes(factors, slots):
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
            other, n = factors[before], factor.slot_end - factor.slot
            alike = before >= 0 and n == other.slot_end - other.slot
            for s in range(n if alike else 0):
                alike = alike and slots[factor.slot + s].parent == slots[other.slot + s].parent
            apart = TILED[kind] == 2 or run >= _RUN
            if before < 0 or width == LANES or (not alike and apart):
                b, width = b + 1, 0
            run = run + 1 if alike else 1
            before, factor.block, factor.lane = f, b, width
            width += 1
    return b + 1


@kernel
def _fill_blocks(hidden, factors, children, blocks):
    """Which factors stand where; how many tiles there are."""
    n = 0
    for j in range(len(hidden)):
        one = hidden[j]
        for c in range(one.child, one.child_end):
            factor = factors[children[c].factor]
            block, i = blocks[factor.block], factor.lane
            block.factor[i], block.kind, block.width = children[c].factor, factor.kind, max(block.width, i + 1)
            block.asked = max(block.asked, i + 1 if factor.hidden >= 0 else 0)
            if TILED[factor.kind] and block.last != j:
                block.last = j
                n += 1 if one.states == 2 else one.states
    return n


@kernel
def set_weights(problem, weight, blocks, tiles):
    """The weights of the network, everywhere; how far they let inputs reach."""
    hidden, factors, slots, children = problem.hidden, problem.factors, problem.slots, problem.children
    for s in range(len(slots)):
        slots[s].weight = weight[slots[s].place]
    for k in range(len(tiles)):
        tile = tiles[k]
        for i in range(LANES):
            tile.weight[i] = slots[tile.slot[i]].weight if tile.slot[i] >= 0 else 0.0
    for b in range(len(blocks)):
        block = blocks[b]
        for i in range(LANES):
            block.below[i] = block.above[i] = block.largest[i] = block.squares[i] = 0.0
    for j in range(len(hidden)):
        for c in range(hidden[j].child, hidden[j].child_end):
            factor, least, most = factors[children[c].factor], 0.0, 0.0
            block, i = blocks[factor.block], factor.lane
            for s in range(children[c].slot, children[c].slot + hidden[j].states - 1):
                least, most = min(least, slots[s].weight), max(most, slots[s].weight)
            block.below[i] += least
            block.above[i] += most
            block.largest[i] = max(block.largest[i], most - least)
            block.squares[i] += (most - least) * (most - least)


@kernel
def _fill_tiles(hidden, factors, children, blocks, tiles, n_tiles):
    """The edges to each parent's children, block by block; then the tiles of each block are strung together."""
    n = 0
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
                        tile.block, tile.parent, tile.column = factor.block, j, parent.column
                        tile.states, tile.state = parent.states, 1 if parent.states == 2 else s
                        n += 1
                for s in range(parent.states - 1):
                    tile, slot = tiles[block.last + (s if parent.states == 2 else s + 1)], children[c].slot + s
                    tile.slot[factor.lane] = slot
            parent.tile_end[kind] = n
    for t in range(n_tiles - 1, -1, -1):
        tile = tiles[t]
        block = blocks[tile.block]
        if tile.states == 2:
            tile.after, block.pair = block.pair, t
        elif tile.state == 0:
            tile.after, block.group = block.group, t
