"""Factors side by side: sixteen lanes a block, all of one kind of term; a tile is the edges from a parent to a block.

All hot loops run along the lanes of a block, so nothing is summed across lanes, and an edge that does not exist has the
weight zero, which changes nothing. A parent with two states has one tile in each block where it has children; one with
K > 2 states has a *group* of K tiles there, state 0 first.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sbnet._types import IndexArray
from sbnet.kernels.kinds import N_KINDS, TILED
from sbnet.kernels.structs import LANES, Problem, aligned, block_t, tile_t

_RUN = 8  # factors with the same parents that earn blocks of their own


def lay_out(problem: Problem) -> tuple[Any, Any]:
    """Blocks and tiles, without weights; tiles of a kind and a parent stand together, and the last tile is blank."""
    factors = problem.factors
    block, lane = factors["block"], factors["lane"] = _lanes_of(factors, problem.slots["parent"])
    blocks = aligned(int(block.max(initial=-1)) + 1, block_t)
    blocks["xi"], blocks["lanes"] = 0.5, LANES
    blocks["pair"] = blocks["group"] = blocks["factor"] = -1
    blocks["factor"][block, lane], blocks["kind"][block] = np.arange(len(factors)), factors["kind"]
    blocks["width"] = np.bincount(block, minlength=len(blocks))
    np.maximum.at(blocks["asked"], block, np.where(factors["hidden"] >= 0, lane + 1, 0))
    first = lane == 0
    blocks["slot"][block[first]], blocks["slot_end"][block[first]] = factors["slot"][first], factors["slot_end"][first]
    return blocks, _tiles_of(problem, blocks)


def _lanes_of(factors: Any, parents: IndexArray) -> tuple[IndexArray, IndexArray]:
    """A block and a lane for each factor, kind after kind.

    A parent has a tile in every block where it has a child. So a factor with other parents than the one before begins
    a new block, unless that would leave too many lanes empty.
    """
    n, order = len(factors), np.argsort(factors["kind"], kind="stable")
    kind, first, size = factors["kind"][order], factors["slot"][order], (factors["slot_end"] - factors["slot"])[order]
    place, again = np.arange(n), np.flatnonzero((kind[1:] == kind[:-1]) & (size[1:] == size[:-1])) + 1
    ends, alike = np.cumsum(size[again]), np.zeros(n, np.bool_)
    if len(again):  # as many parents as the one before; are they the same?
        here = np.arange(ends[-1]) + np.repeat(first[again] - ends + size[again], size[again])
        differ = parents[here] != parents[here + np.repeat(first[again - 1] - first[again], size[again])]
        alike[again] = ~np.logical_or.reduceat(differ, ends - size[again])
    run = place - np.maximum.accumulate(np.where(alike, 0, place)) + 1
    apart = (TILED[kind[1:]] == 2) | (run[:-1] >= _RUN)
    begins = np.append(True, (kind[1:] != kind[:-1]) | (~alike[1:] & apart))[:n]
    lane = (place - np.maximum.accumulate(np.where(begins, place, 0))) % LANES
    found = np.empty((2, n), np.int64)
    found[:, order] = np.cumsum(lane == 0) - 1, lane
    return found[0], found[1]


def _tiles_of(problem: Problem, blocks: Any) -> Any:
    """The edges to each parent's children, block by block; then the tiles of each block are strung together."""
    hidden, factors, factor, slot = problem.hidden, problem.factors, *(problem.children[k] for k in ("factor", "slot"))
    parent = np.repeat(np.arange(len(hidden)), hidden["child_end"] - hidden["child"])
    kind = factors["kind"][factor]
    if not TILED[kind].all():
        parent, factor, slot, kind = (x[TILED[kind] > 0] for x in (parent, factor, slot, kind))
    key = (kind * len(hidden) + parent) * len(blocks) + factors["block"][factor]
    key, group = np.unique(key, return_inverse=True)
    row, block = np.divmod(key, max(len(blocks), 1))
    of, states = row % max(len(hidden), 1), hidden["states"][row % max(len(hidden), 1)]
    size = np.where(states == 2, 1, states)
    begin, n = np.cumsum(size) - size, int(size.sum())
    tiles = aligned(n + 1, tile_t)
    tiles["slot"] = tiles["after"] = -1
    tiles["states"][n] = 2
    made, state = tiles[:n], np.arange(n) - np.repeat(begin, size)
    for name, values in (("block", block), ("parent", of), ("column", hidden["column"][of]), ("states", states)):
        made[name] = np.repeat(values, size)
    made["state"] = np.where(made["states"] == 2, 1, state)
    ends = np.cumsum(np.bincount(row, size, N_KINDS * len(hidden))).reshape(N_KINDS, -1).astype(np.int64)
    hidden["tile_end"], hidden["tile"] = ends.T, np.append(0, ends)[: ends.size].reshape(ends.shape).T
    width = hidden["states"][parent] - 1
    above = np.arange(width.sum()) - np.repeat(np.cumsum(width) - width, width)  # the state of each slot, less one
    tile = np.repeat(begin[group] + (width > 1), width) + above
    tiles["slot"][tile, np.repeat(factors["lane"][factor], width)] = np.repeat(slot, width) + above
    for name, heads in (("pair", begin[states == 2]), ("group", begin[states > 2])):
        if len(heads):
            heads = heads[np.argsort(tiles["block"][heads], kind="stable")]
            mine = tiles["block"][heads]
            last = np.append(mine[1:] != mine[:-1], True)
            tiles["after"][heads], first = np.where(last, -1, np.append(heads[1:], -1)), np.roll(last, 1)
            blocks[name][mine[first]] = heads[first]
    return tiles
