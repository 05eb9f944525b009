"""The logarithm term of the paper, eqs. (19)-(20) and (30)-(33), for sigmoid units; xi held at 0 is Jensen's bound.

Every edge is written with a positive weight: J S = -W + W (1 - S) if J = -W < 0. With p the mean of S or of 1 - S,
q = 1 - p, and z between zmin and zmax, the averages of eqs. (30) and (31) become

    A = <e^{-xi z}>    = e^{-xi zmin}       prod_j fA_j,   fA = q + p E_A,   E_A = e^{-xi W}
    B = <e^{(1-xi) z}> = e^{(1 - xi) zmax}  prod_j fB_j,   fB = p + q E_B,   E_B = e^{-(1-xi) W}

with all factors between 0 and 1, so that no weight, however large, overflows. E_A and E_B come from one evaluation of
a polynomial: e^r = cosh r + sinh r and e^{-r} = cosh r - sinh r share their even and odd parts.

In a sweep the terms follow their parents by multiplication. After it, a pass with the same exponentials adds them up
anew and finds the next step of Newton's method for each xi; where it promises much, a second pass takes it.
"""

from __future__ import annotations

import math

import numpy as np

from sbnet._types import FloatArray, IndexArray
from sbnet.kernels._compile import bare, vector
from sbnet.kernels.arrays import load
from sbnet.kernels.gates import sigmoid, softplus
from sbnet.kernels.terms.work import (
    ACTIVE,
    ADDED,
    BLOCK,
    BLOCK_ROOM,
    BLOCKS,
    EDGE_PLACE,
    HIGH,
    KIND,
    LANES,
    LOW,
    MEAN,
    MINE,
    MINE_TOO,
    N_BLOCKS,
    N_FACTORS,
    N_TILES,
    PARENT,
    PLACE,
    PTR,
    TERM,
    TILE,
    TILE_BLOCK,
    TILE_PARENT,
    TILE_PTR,
    TILES,
    VALUE,
    WEIGHT,
    Work,
)
from sbnet.kernels.terms.work import ROOM as ROOM_OF
from sbnet.kernels.vector_math import LN2, LN2_HIGH, LN2_LOW, LOG2E, cosh_sinh, exp_minus, log, power_of_two, split

ROOM = 0
KINDS = {"xi": 0, "jensen": 3}  # Jensen's bound is the same with xi held at zero
TILED = True

_u = np.uint64
XI = MINE  # the parameter of eq. (19)
_PHI = MINE + _u(16)  # eq. (32)
_PRODUCT_A = MINE + _u(32)  # the products of fA and fB, times 2^-EXP
_PRODUCT_B = MINE + _u(48)
_EXP_A = MINE + _u(64)
_EXP_B = MINE + _u(80)
_MEAN_A = MINE + _u(96)  # <z> - zmin under the two tilted distributions, and the variances there
_MEAN_B = MINE + _u(112)
_VARIANCE_A = MINE + _u(128)
_VARIANCE_B = MINE + _u(144)
_NEXT = MINE + _u(160)  # where Newton's method would have xi
_FREE = MINE + _u(176)  # 1 if xi may move, 0 if it is fixed
_OLD = MINE + _u(192)  # xi before the step that is being tried
_LIMIT = MINE + _u(208)  # the term there, which it must not exceed after the step

_MANTISSA = MINE_TOO  # e^-W = MANTISSA * 2^-EXPONENT, which never underflows
_EXPONENT = MINE_TOO + _u(16)
_E_A = MINE_TOO + _u(32)
_E_B = MINE_TOO + _u(48)
_OVER_A = MINE_TOO + _u(64)  # 1 / fA and 1 / fB
_OVER_B = MINE_TOO + _u(80)

_SAFE = 16  # factors that can be multiplied before the product is rescaled: each is at least 1e-14
_ROUNDING = 1e-13
_SHORT = 1e-3
_STEPS = 60


@bare
def prepare(work: Work) -> None:
    """What depends on the weights alone: e^-W of every edge."""
    index, numbers = work.ints, work.numbers
    tile_block, block_room, tiles = load(index, TILE_BLOCK), load(index, BLOCK_ROOM), _u(load(index, TILES))
    for t in range(load(index, N_TILES)):
        if load(index, block_room, load(index, tile_block, t)) == ROOM:
            for lane in range(LANES):
                i = tiles + _u(t) * TILE + lane
                w = abs(load(numbers, i, WEIGHT))
                n = math.floor(w * LOG2E)
                numbers[i + _MANTISSA] = math.exp(-((w - n * LN2_HIGH) - n * LN2_LOW))
                numbers[i + _EXPONENT] = n


@bare
def begin(work: Work) -> None:
    """Every xi starts at one half, or stays at 0."""
    index, numbers = work.ints, work.numbers
    room, kind, place = load(index, ROOM_OF), load(index, KIND), load(index, PLACE)
    for f in range(load(index, N_FACTORS)):
        if load(index, room, f) == ROOM:
            free, k = 1.0 if load(index, kind, f) == ROOM else 0.0, _u(load(index, place, f))
            numbers[k + XI] = numbers[k + _NEXT] = numbers[k + _OLD] = 0.5 * free
            numbers[k + _FREE] = free


@bare
def pull(work: Work, j: int, mu: FloatArray) -> float:
    """What the children of unit j add to its effective input, eq. (24): the sum of J (S - xi) + K."""
    return _pull(work.ints, work.numbers, work.numbers, j)


@bare
def push(work: Work, mu: FloatArray, j: int, old: float, new: float) -> None:
    """Unit j has moved: A and B of its children change by one factor each."""
    _push(work.ints, work.numbers, work.numbers, j, old, new)


@vector
def _pull(index: IndexArray, edges: FloatArray, blocks: FloatArray, j: int) -> float:
    total, tiles, first = 0.0, _u(load(index, TILES)), _u(load(index, BLOCKS))
    tile_ptr, tile_block, block_room = load(index, TILE_PTR) + j, load(index, TILE_BLOCK), load(index, BLOCK_ROOM)
    for t in range(load(index, tile_ptr), load(index, tile_ptr, 1)):
        b = load(index, tile_block, t)
        if load(index, block_room, b) != ROOM:
            continue
        e, o = tiles + _u(t) * TILE, first + _u(b) * BLOCK
        for lane in range(LANES):
            i, k = e + lane, o + lane
            w, phi = load(edges, i, WEIGHT), load(blocks, k, _PHI)
            part_a = (1.0 - phi) * (1.0 - load(edges, i, _E_A)) * load(edges, i, _OVER_A)
            part_b = phi * (1.0 - load(edges, i, _E_B)) * load(edges, i, _OVER_B)
            influence = part_a - part_b  # eq. (33), for J > 0
            total += w * (load(blocks, k, VALUE) - load(blocks, k, XI)) + (influence if w > 0.0 else -influence)
    return total


@vector
def _push(index: IndexArray, edges: FloatArray, blocks: FloatArray, j: int, old: float, new: float) -> None:
    tiles, first = _u(load(index, TILES)), _u(load(index, BLOCKS))
    tile_ptr, tile_block, block_room = load(index, TILE_PTR) + j, load(index, TILE_BLOCK), load(index, BLOCK_ROOM)
    for t in range(load(index, tile_ptr), load(index, tile_ptr, 1)):
        b = load(index, tile_block, t)
        if load(index, block_room, b) != ROOM:
            continue
        e, o = tiles + _u(t) * TILE, first + _u(b) * BLOCK
        for lane in range(LANES):
            i, k = e + lane, o + lane
            w, phi = load(edges, i, WEIGHT), load(blocks, k, _PHI)
            p, q = (new, 1.0 - new) if w > 0.0 else (1.0 - new, new)
            part_a = (1.0 - phi) * ((q + p * load(edges, i, _E_A)) * load(edges, i, _OVER_A))
            part_b = phi * ((p + q * load(edges, i, _E_B)) * load(edges, i, _OVER_B))
            blocks[k + _PHI] = part_b / (part_a + part_b)
            blocks[k + MEAN] += w * (new - old)


@vector
def _add_up(index: IndexArray, edges: FloatArray, blocks: FloatArray, mu: FloatArray, fresh: bool) -> None:
    """What the terms of the active blocks are made of at the present means; with new exponentials if their xi are new.

    Tile after tile as they stand in memory; so each block is also left alone for a while after it was written to.
    """
    tiles, first, active, added = (
        _u(load(index, TILES)),
        _u(load(index, BLOCKS)),
        load(index, ACTIVE),
        load(index, ADDED),
    )
    tile_block, parent = load(index, TILE_BLOCK), load(index, TILE_PARENT)
    for b in range(load(index, N_BLOCKS)):
        if load(index, active, b) == 0:
            continue
        index[added + b] = 0
        o = first + _u(b) * BLOCK
        for lane in range(LANES):
            k = o + lane
            blocks[k + _PRODUCT_A] = blocks[k + _PRODUCT_B] = 1.0
            blocks[k + _EXP_A] = blocks[k + _EXP_B] = 0.0
            blocks[k + _MEAN_A] = blocks[k + _MEAN_B] = 0.0
            blocks[k + _VARIANCE_A] = blocks[k + _VARIANCE_B] = 0.0
            blocks[k + MEAN] = load(blocks, k, LOW)
    for t in range(load(index, N_TILES)):
        b = load(index, tile_block, t)
        if load(index, active, b) == 0:
            continue
        e, o, m = tiles + _u(t) * TILE, first + _u(b) * BLOCK, load(mu, load(index, parent, t))
        if fresh:
            for lane in range(LANES):
                i = e + lane
                x = load(blocks, o + lane, XI) * abs(load(edges, i, WEIGHT))
                n = np.floor(x * LOG2E + 0.5)
                even, odd = cosh_sinh((x - n * LN2_HIGH) - n * LN2_LOW)
                edges[i + _E_A] = (even - odd) * power_of_two(-n)
                edges[i + _E_B] = (even + odd) * load(edges, i, _MANTISSA) * power_of_two(n - load(edges, i, _EXPONENT))
        for lane in range(LANES):
            i, k = e + lane, o + lane
            j, e_a, e_b = load(edges, i, WEIGHT), load(edges, i, _E_A), load(edges, i, _E_B)
            w = abs(j)
            p, q = (m, 1.0 - m) if j > 0.0 else (1.0 - m, m)
            f_a = q + p * e_a
            f_b = p + q * e_b
            inverse = 1.0 / (f_a * f_b)
            over_a, over_b = f_b * inverse, f_a * inverse
            w_a, w_b = w * p * e_a * over_a, w * p * over_b  # W times the tilted means
            blocks[k + _PRODUCT_A] *= f_a
            blocks[k + _PRODUCT_B] *= f_b
            blocks[k + MEAN] += w * p
            blocks[k + _MEAN_A] += w_a
            blocks[k + _MEAN_B] += w_b
            blocks[k + _VARIANCE_A] += w_a * (w - w_a)
            blocks[k + _VARIANCE_B] += w_b * (w - w_b)
            edges[i + _OVER_A] = over_a
            edges[i + _OVER_B] = over_b
        index[added + b] += 1
        if (
            load(index, added, b) % _SAFE == 0
        ):  # long products must not underflow: their powers of two go into the exponents
            for lane in range(LANES):
                k = o + lane
                m_a, n_a = split(load(blocks, k, _PRODUCT_A))
                m_b, n_b = split(load(blocks, k, _PRODUCT_B))
                blocks[k + _PRODUCT_A], blocks[k + _PRODUCT_B] = m_a, m_b
                blocks[k + _EXP_A] += n_a
                blocks[k + _EXP_B] += n_b


@vector
def _close(blocks: FloatArray, o: np.uint64) -> float:
    """Terms, eq. (32), and the next step of Newton's method from the sums; returns what that step promises.

    With f(xi) = xi <z> + ln(A + B): f' = <z> - (1 - phi) m_A - phi m_B, and f'' = (1 - phi) v_A + phi v_B +
    phi (1 - phi) (m_B - m_A)^2, which is never negative.
    """
    promise = 0.0
    for lane in range(LANES):
        k = o + lane
        xi, mean = load(blocks, k, XI), load(blocks, k, MEAN)
        log_a = -xi * load(blocks, k, LOW) + log(load(blocks, k, _PRODUCT_A)) + load(blocks, k, _EXP_A) * LN2
        log_b = (1.0 - xi) * load(blocks, k, HIGH) + log(load(blocks, k, _PRODUCT_B)) + load(blocks, k, _EXP_B) * LN2
        gap = log_b - log_a
        small = exp_minus(abs(gap))
        over = 1.0 / (1.0 + small)
        phi = over if gap > 0.0 else small * over
        log_sum = max(log_a, log_b) + log(1.0 + small)
        mean_a, mean_b = load(blocks, k, _MEAN_A), load(blocks, k, _MEAN_B)
        apart = mean_b - mean_a
        slope = (mean - load(blocks, k, LOW)) - mean_a - phi * apart
        spread = phi * (1.0 - phi) * apart * apart
        curvature = (1.0 - phi) * load(blocks, k, _VARIANCE_A) + phi * load(blocks, k, _VARIANCE_B) + spread
        step = load(blocks, k, _FREE) * slope / max(curvature, 1e-300)  # a curvature of zero means known inputs
        new = min(max(xi - step, 0.0), 1.0)
        gain = 0.5 * abs(slope * (new - xi))
        blocks[k + _PHI] = phi
        blocks[k + TERM] = xi * mean + log_sum
        blocks[k + _NEXT] = new
        promise += gain
    return promise


@vector
def _step(numbers: FloatArray, o: np.uint64) -> None:
    """Put xi where Newton's method wants it, and remember the old xi and the term there."""
    for lane in range(LANES):
        k = o + lane
        numbers[k + _OLD] = load(numbers, k, XI)
        numbers[k + _LIMIT] = load(numbers, k, TERM)
        numbers[k + XI] = load(numbers, k, _NEXT)


@bare
def renew(work: Work, mu: FloatArray, enough: float, fresh: bool) -> float:
    """Compute the terms at the present means; where a step of xi promises more than `enough` in a block, take it.

    Steps are shortened until no term rises. Returns what more steps would promise. Exponentials are kept from the pass
    before unless `fresh`: in a sweep no xi moves.
    """
    index, numbers, promised = work.ints, work.numbers, 0.0
    active, room, n_blocks = load(index, ACTIVE), load(index, BLOCK_ROOM), load(index, N_BLOCKS)
    for b in range(n_blocks):
        index[active + b] = 1 if load(index, room, b) == ROOM else 0
    anew, left, stepped = fresh, n_blocks, False
    while left > 0:
        _add_up(index, numbers, numbers, mu, anew)
        left = 0
        for b in range(n_blocks):
            if load(index, active, b) == 1:
                o = _u(load(index, BLOCKS)) + _u(b) * BLOCK
                promise = _close(numbers, o)
                if stepped:
                    again = _shorten(numbers, o)
                else:
                    again = promise > enough
                    if again:
                        _step(numbers, o)
                if again:
                    left += 1
                else:
                    index[active + b] = 0
                    promised += promise
        anew = stepped = left > 0
    return promised


@bare
def _shorten(numbers: FloatArray, o: np.uint64) -> bool:
    """Halve the steps after which a term has risen beyond rounding, and take back short ones; were there any?"""
    any_bad = False
    for lane in range(LANES):
        k = o + lane
        limit, old, new = load(numbers, k, _LIMIT), load(numbers, k, _OLD), load(numbers, k, XI)
        if new != old and load(numbers, k, TERM) > limit + _ROUNDING * (1.0 + abs(limit)):
            numbers[k + XI] = 0.5 * (old + new) if abs(new - old) > _SHORT else old
            any_bad = True
    return any_bad


@bare
def gradient(work: Work, mu: FloatArray, by_slot: FloatArray, by_factor: FloatArray) -> None:
    """The slopes of the terms in weights and in biases, eqs. (34) and (35)."""
    index, numbers = work.ints, work.numbers
    for f in range(load(index, N_FACTORS)):
        if load(index, load(index, ROOM_OF), f) != ROOM:
            continue
        k = _u(load(index, load(index, PLACE), f))
        xi, phi = load(numbers, k, XI), load(numbers, k, _PHI)
        by_factor[f] = phi
        for s in range(load(index, load(index, PTR), f), load(index, load(index, PTR) + f, 1)):
            i, m = _u(load(index, load(index, EDGE_PLACE), s)), load(mu, load(index, load(index, PARENT), s))
            over_a, over_b = m * load(numbers, i, _OVER_A), m * load(numbers, i, _OVER_B)
            on = load(numbers, i, WEIGHT) > 0.0  # the tilted means of S: alpha under A, beta under B
            alpha = load(numbers, i, _E_A) * over_a if on else over_a
            beta = over_b if on else load(numbers, i, _E_B) * over_b
            by_slot[s] = xi * m - (1.0 - phi) * xi * alpha + phi * (1.0 - xi) * beta


@bare
def _term(weight: FloatArray, mu: FloatArray, bias: float, xi: float) -> tuple[float, float, float]:
    """xi <z> + ln(A + B), eq. (20), and its first two derivatives in xi; logarithms throughout."""
    mean, log_a, log_b = bias, -xi * bias, (1.0 - xi) * bias
    mean_a, mean_b, variance_a, variance_b = bias, bias, 0.0, 0.0
    for s in range(len(weight)):
        j, log_odds = load(weight, s), math.log(load(mu, s)) - math.log1p(-load(mu, s))
        base = math.log1p(-load(mu, s))
        log_a += base + softplus(log_odds - xi * j)  # ln(1 - mu + mu e^{-xi J}), eq. (30)
        log_b += base + softplus(log_odds + (1.0 - xi) * j)  # eq. (31)
        alpha, beta = sigmoid(log_odds - xi * j), sigmoid(log_odds + (1.0 - xi) * j)
        mean += j * load(mu, s)
        mean_a += j * alpha
        mean_b += j * beta
        variance_a += j * j * alpha * (1.0 - alpha)
        variance_b += j * j * beta * (1.0 - beta)
    phi = sigmoid(log_b - log_a)  # eq. (32)
    slope = mean - (1.0 - phi) * mean_a - phi * mean_b
    curvature = (1.0 - phi) * variance_a + phi * variance_b + phi * (1.0 - phi) * (mean_b - mean_a) * (mean_b - mean_a)
    return xi * mean + log_a + softplus(log_b - log_a), slope, curvature


@bare
def reference(
    kind: int, gate: int, weight: FloatArray, mu: FloatArray, bias: float, parameter: float
) -> tuple[float, float]:
    """The term of one factor at the given xi, or at the best one if that is NaN: (xi, term)."""
    return best(weight, mu, bias, parameter if kind == ROOM else 0.0)


@bare
def best(weight: FloatArray, mu: FloatArray, bias: float, xi: float) -> tuple[float, float]:
    """The same, one parent after the other."""
    if not np.isnan(xi):
        return xi, _term(weight, mu, bias, xi)[0]
    left, right, x, term = 0.0, 1.0, 0.5, np.inf
    for _ in range(_STEPS):
        value, slope, curvature = _term(weight, mu, bias, x)
        if value <= term:
            xi, term = x, value
        # The slope rises with xi: its sign tells on which side the minimum lies.
        if slope > 0.0:
            right = x
        else:
            left = x
        new = x - slope / curvature if curvature > 0.0 else 0.5 * (left + right)
        new = min(max(new, left), right)
        if (new == left and left > 0.0) or (new == right and right < 1.0):  # been there
            new = 0.5 * (left + right)
        if abs(new - x) < 1e-12:
            break
        x = new
    return xi, term
