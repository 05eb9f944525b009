"""A parabola above ln(1 + e^z): sp(z) <= lam(c) (z^2 - c^2) + (z - c) / 2 + sp(c), best at c^2 = <z^2>. Sigmoid units.

It needs the first two moments alone, and is linear in the mean of each parent.
"""

from __future__ import annotations

import math

import numpy as np

from sbnet._types import FloatArray, IndexArray
from sbnet.kernels._compile import bare, vector
from sbnet.kernels.arrays import load
from sbnet.kernels.gates import softplus
from sbnet.kernels.terms.work import (
    BLOCK,
    BLOCK_ROOM,
    BLOCKS,
    LANES,
    MEAN,
    MINE,
    N_BLOCKS,
    N_FACTORS,
    N_LANES,
    PARENT,
    PLACE,
    PTR,
    SECOND,
    TERM,
    TILE,
    TILE_BLOCK,
    TILE_PTR,
    TILES,
    VALUE,
    WEIGHT,
    WEIGHTS,
    Work,
    moments,
    push_moments,
    spread,
)
from sbnet.kernels.terms.work import ROOM as ROOM_OF

ROOM = 2
KINDS = {"quadratic": 2}
TILED = True

_u = np.uint64
_LAMBDA = MINE


@bare
def _lambda(c: float) -> float:
    """tanh(c/2) / (4c), by its series near zero."""
    return 0.125 - c * c / 96.0 if c < 1e-3 else math.tanh(0.5 * c) / (4.0 * c)


@bare
def pull(work: Work, j: int, mu: FloatArray) -> float:
    """What the children of unit j add to its effective input: the sum of J S less the slope of the term."""
    return _pull(work.ints, work.numbers, work.numbers, j, load(mu, j))


@vector
def _pull(index: IndexArray, edges: FloatArray, blocks: FloatArray, j: int, m: float) -> float:
    total, lanes, tiles, first = 0.0, _u(load(index, N_LANES)), _u(load(index, TILES)), _u(load(index, BLOCKS))
    tile_ptr, tile_block, block_room = load(index, TILE_PTR) + j, load(index, TILE_BLOCK), load(index, BLOCK_ROOM)
    for t in range(load(index, tile_ptr), load(index, tile_ptr, 1)):
        b = load(index, tile_block, t)
        if load(index, block_room, b) == ROOM:
            e, o = tiles + _u(t) * TILE, first + _u(b) * BLOCK
            for lane in range(lanes):
                k, w = o + lane, load(edges, e + lane, WEIGHT)
                bend = w * (2.0 * load(blocks, k, MEAN) + w * (1.0 - 2.0 * m))  # the slope of <z^2>
                total += w * (load(blocks, k, VALUE) - 0.5) - load(blocks, k, _LAMBDA) * bend
    return total


@bare
def push(work: Work, mu: FloatArray, j: int, old: float, new: float) -> None:
    """Unit j has moved: the moments of its children follow."""
    push_moments(work.ints, work.numbers, work.numbers, j, np.int64(ROOM), old, new)


@bare
def renew(work: Work, mu: FloatArray, enough: float, fresh: bool) -> float:
    """Compute the terms at the present means, with the best c; nothing more to promise."""
    index, numbers = work.ints, work.numbers
    for b in range(load(index, N_BLOCKS)):
        if load(index, load(index, BLOCK_ROOM), b) == ROOM:
            moments(index, numbers, numbers, b, mu)
            o = _u(load(index, BLOCKS)) + _u(b) * BLOCK
            for lane in range(LANES):
                k = o + lane
                mean, second = load(numbers, k, MEAN), load(numbers, k, SECOND)
                c = math.sqrt(second)
                numbers[k + _LAMBDA] = _lambda(c)
                numbers[k + TERM] = _term(mean, second, c)
    return 0.0


@bare
def _term(mean: float, second: float, c: float) -> float:
    """The bound for given <z>, <z^2> and c >= 0."""
    return _lambda(c) * (second - c * c) + 0.5 * (mean - c) + softplus(c)


@bare
def gradient(work: Work, mu: FloatArray, by_slot: FloatArray, by_factor: FloatArray) -> None:
    """The slopes of the terms in weights and in biases."""
    index, numbers = work.ints, work.numbers
    for f in range(load(index, N_FACTORS)):
        if load(index, load(index, ROOM_OF), f) == ROOM:
            k = _u(load(index, load(index, PLACE), f))
            mean, curve = load(numbers, k, MEAN), 2.0 * load(numbers, k, _LAMBDA)
            by_factor[f] = curve * mean + 0.5
            for s in range(load(index, load(index, PTR), f), load(index, load(index, PTR) + f, 1)):
                m, w = load(mu, load(index, load(index, PARENT), s)), load(numbers, load(index, WEIGHTS), s)
                by_slot[s] = curve * (mean * m + w * m * (1.0 - m)) + 0.5 * m


@bare
def reference(
    kind: int, gate: int, weight: FloatArray, mu: FloatArray, bias: float, parameter: float
) -> tuple[float, float]:
    """The term of one factor; it has no parameter to return."""
    _, _, mean, variance, _ = spread(weight, mu, bias)
    return math.nan, best(mean, mean * mean + variance)


@bare
def best(mean: float, second: float) -> float:
    """The term at the best c."""
    return _term(mean, second, math.sqrt(second))
