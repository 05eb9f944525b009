"""The logarithm term of the paper, eqs. (19)-(20) and (30)-(33), for sigmoid units; xi held at 0 is Jensen's bound.

Every edge is written with a positive weight: J S = -W + W (1 - S) if J = -W < 0. With p the mean of S or of 1 - S,
q = 1 - p, and z between zmin and zmax, the averages of eqs. (30) and (31) become

    A = <e^{-xi z}>    = e^{-xi zmin}       prod_j fA_j,   fA = q + p E_A,   E_A = e^{-xi W}
    B = <e^{(1-xi) z}> = e^{(1 - xi) zmax}  prod_j fB_j,   fB = p + q E_B,   E_B = e^{-(1-xi) W}

with all factors between 0 and 1, so that no weight, however large, overflows. E_A and E_B come from one evaluation of
a polynomial: e^r = cosh r + sinh r and e^{-r} = cosh r - sinh r share their even and odd parts.

In a sweep A and B follow the means by multiplication. After it, one pass adds up the terms anew, with what the next
step of Newton's method needs; where that promises much, xi moves, and another pass finds the exponentials there. The
first takes two parents at a time: what is added up then goes to memory half as often.
"""

from __future__ import annotations

import math

import numpy as np

from sbnet._types import FloatArray, IndexArray
from sbnet.kernels._compile import bare, inlined, vector
from sbnet.kernels.arrays import load
from sbnet.kernels.gates import sigmoid, softplus
from sbnet.kernels.terms.work import (
    BLOCK,
    BLOCK_PTR,
    BLOCK_ROOM,
    BLOCK_TILE,
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
_SHARE_A = MINE + _u(16)  # of A and B in their sum, 1 - phi and phi of eq. (32); in a sweep their sum need not be 1
_SHARE_B = MINE + _u(32)
_K_A = MINE + _u(48)  # by how much A and B fall and rise if the parent moves that was asked for last, eq. (33)
_K_B = MINE + _u(64)
_PRODUCT_A = MINE + _u(80)  # the products of fA and fB, times 2^-EXP
_PRODUCT_B = MINE + _u(96)
_EXP_A = MINE + _u(112)
_EXP_B = MINE + _u(128)
_MEAN_A = MINE + _u(144)  # <z> - zmin under the two tilted distributions, and the variances there
_MEAN_B = MINE + _u(160)
_VARIANCE_A = MINE + _u(176)
_VARIANCE_B = MINE + _u(192)
_NEXT = MINE + _u(208)  # where Newton's method would have xi
_GAIN = MINE + _u(224)  # what it promises of that
_FREE = MINE + _u(240)  # 1 if xi may move, 0 if it is fixed
_OLD = MINE + _u(256)  # xi before the step that is being tried
_LIMIT = MINE + _u(272)  # the term there, which it must not exceed after the step

_E_A = MINE_TOO
_E_B = MINE_TOO + _u(16)
_MANTISSA = MINE_TOO + _u(32)  # e^-W = MANTISSA * 2^-EXPONENT, which never underflows
_EXPONENT = MINE_TOO + _u(48)

_SAFE = 16  # factors that can be multiplied before the product is rescaled: each is at least 1e-14
_ROUNDING = 1e-13
_SHORT = 1e-3
_STEPS = 60


@bare
def prepare(work: Work) -> None:
    """What depends on the weights alone: e^-W of every edge."""
    index, numbers = work.ints, work.numbers
    tile_block, block_room, tiles = load(index, TILE_BLOCK), load(index, BLOCK_ROOM), _u(load(index, TILES))
    for t in range(load(index, N_TILES) + 1):
        if t == load(index, N_TILES) or load(index, block_room, load(index, tile_block, t)) == ROOM:
            for lane in range(LANES):
                i = tiles + _u(t) * TILE + lane
                w = abs(load(numbers, i, WEIGHT))
                n = math.floor(w * LOG2E)
                numbers[i + _MANTISSA] = math.exp(-((w - n * LN2_HIGH) - n * LN2_LOW))
                numbers[i + _EXPONENT] = n
                numbers[i + _E_A] = numbers[i + _E_B] = 1.0


@bare
def begin(work: Work) -> None:
    """Every xi starts at one half, or stays at 0; and so do the exponentials."""
    index, numbers = work.ints, work.numbers
    room, kind, place = load(index, ROOM_OF), load(index, KIND), load(index, PLACE)
    for f in range(load(index, N_FACTORS)):
        if load(index, room, f) == ROOM:
            free, k = 1.0 if load(index, kind, f) == ROOM else 0.0, _u(load(index, place, f))
            numbers[k + XI] = numbers[k + _NEXT] = numbers[k + _OLD] = 0.5 * free
            numbers[k + _FREE] = free
    tile_block, block_room, tiles = load(index, TILE_BLOCK), load(index, BLOCK_ROOM), _u(load(index, TILES))
    for t in range(load(index, N_TILES)):
        b = load(index, tile_block, t)
        if load(index, block_room, b) == ROOM:
            _first(numbers, tiles + _u(t) * TILE, numbers, _u(load(index, BLOCKS)) + _u(b) * BLOCK)


@vector
def _first(edges: FloatArray, e: np.uint64, blocks: FloatArray, o: np.uint64) -> None:
    """The exponentials of a tile where xi starts. There e^-W may underflow; means stay farther from 0 than that."""
    for lane in range(LANES):
        i = e + lane
        whole = load(edges, i, _MANTISSA) * power_of_two(-load(edges, i, _EXPONENT))
        half = np.sqrt(whole)
        free = load(blocks, o + lane, _FREE) > 0.0
        edges[i + _E_A], edges[i + _E_B] = half if free else 1.0, half if free else whole


@bare
def pull(work: Work, j: int, mu: FloatArray) -> float:
    """What the children of unit j add to its effective input, eq. (24): the sum of J (S - xi) + K."""
    return _pull(work.ints, work.numbers, work.numbers, j, load(mu, j))


@bare
def push(work: Work, mu: FloatArray, j: int, old: float, new: float) -> None:
    """Unit j has moved: A and B of its children change by one factor each."""
    _push(work.ints, work.numbers, work.numbers, j, old, new)


@vector
def _pull(index: IndexArray, edges: FloatArray, blocks: FloatArray, j: int, m: float) -> float:
    total, tiles, first = 0.0, _u(load(index, TILES)), _u(load(index, BLOCKS))
    tile_ptr, tile_block, block_room = load(index, TILE_PTR) + j, load(index, TILE_BLOCK), load(index, BLOCK_ROOM)
    for t in range(load(index, tile_ptr), load(index, tile_ptr, 1)):
        block = load(index, tile_block, t)
        if load(index, block_room, block) != ROOM:
            continue
        e, o = tiles + _u(t) * TILE, first + _u(block) * BLOCK
        for lane in range(LANES):
            i, k = e + lane, o + lane
            w, e_a, e_b = load(edges, i, WEIGHT), load(edges, i, _E_A), load(edges, i, _E_B)
            p, q = (m, 1.0 - m) if w > 0.0 else (1.0 - m, m)
            a, b = load(blocks, k, _SHARE_A), load(blocks, k, _SHARE_B)
            f_a, f_b = q + p * e_a, p + q * e_b
            inverse = 1.0 / (f_a * f_b * (a + b))
            rest_a, rest_b = a * f_b * inverse, b * f_a * inverse
            influence = rest_a * (1.0 - e_a) - rest_b * (1.0 - e_b)  # eq. (33), for J > 0
            total += w * (load(blocks, k, VALUE) - load(blocks, k, XI)) + (influence if w > 0.0 else -influence)
            blocks[k + _SHARE_A], blocks[k + _SHARE_B] = rest_a, rest_b
    return total


@vector
def _push(index: IndexArray, edges: FloatArray, blocks: FloatArray, j: int, old: float, new: float) -> None:
    tiles, first = _u(load(index, TILES)), _u(load(index, BLOCKS))
    tile_ptr, tile_block, block_room = load(index, TILE_PTR) + j, load(index, TILE_BLOCK), load(index, BLOCK_ROOM)
    for t in range(load(index, tile_ptr), load(index, tile_ptr, 1)):
        block = load(index, tile_block, t)
        if load(index, block_room, block) != ROOM:
            continue
        e, o = tiles + _u(t) * TILE, first + _u(block) * BLOCK
        for lane in range(LANES):
            i, k = e + lane, o + lane
            w = load(edges, i, WEIGHT)
            p, q = (new, 1.0 - new) if w > 0.0 else (1.0 - new, new)
            blocks[k + _SHARE_A] *= q + p * load(edges, i, _E_A)
            blocks[k + _SHARE_B] *= p + q * load(edges, i, _E_B)
            blocks[k + MEAN] += w * (new - old)


@inlined
def _factors(j: float, m: float, e_a: float, e_b: float) -> tuple[float, float, float]:
    """f_A, f_B, and p."""
    p, q = (m, 1.0 - m) if j > 0.0 else (1.0 - m, m)
    return q + p * e_a, p + q * e_b, p


@inlined
def _tilted(w: float, p: float, e_a: float, f_a: float, f_b: float) -> tuple[float, float]:
    """W times the two tilted means."""
    over = w * p / (f_a * f_b)
    return e_a * f_b * over, f_a * over


@vector
def _rescale(blocks: FloatArray, o: np.uint64) -> None:
    """Long products must not underflow: their powers of two go into the exponents."""
    for lane in range(LANES):
        k = o + lane
        m_a, n_a = split(load(blocks, k, _PRODUCT_A))
        m_b, n_b = split(load(blocks, k, _PRODUCT_B))
        blocks[k + _PRODUCT_A], blocks[k + _PRODUCT_B] = m_a, m_b
        blocks[k + _EXP_A] += n_a
        blocks[k + _EXP_B] += n_b


@vector
def _multiply(index: IndexArray, edges: FloatArray, blocks: FloatArray, b: int, mu: FloatArray) -> None:
    """Exponentials at the present xi of a block, and the products that A and B are made of."""
    o, tiles = _u(load(index, BLOCKS)) + _u(b) * BLOCK, _u(load(index, TILES))
    block_tile, parent, block_ptr = load(index, BLOCK_TILE), load(index, TILE_PARENT), load(index, BLOCK_PTR) + b
    first, last = load(index, block_ptr), load(index, block_ptr, 1)
    for lane in range(LANES):
        k = o + lane
        blocks[k + _PRODUCT_A] = blocks[k + _PRODUCT_B] = 1.0
        blocks[k + _EXP_A] = blocks[k + _EXP_B] = 0.0
    for tile in range(first, last):
        t = load(index, block_tile, tile)
        e, m = tiles + _u(t) * TILE, load(mu, load(index, parent, t))
        for lane in range(LANES):
            i, k = e + lane, o + lane
            j = load(edges, i, WEIGHT)
            x = load(blocks, k, XI) * abs(j)
            n = np.floor(x * LOG2E + 0.5)
            even, odd = cosh_sinh((x - n * LN2_HIGH) - n * LN2_LOW)
            e_a = (even - odd) * power_of_two(-n)
            e_b = (even + odd) * load(edges, i, _MANTISSA) * power_of_two(n - load(edges, i, _EXPONENT))
            f_a, f_b, _ = _factors(j, m, e_a, e_b)
            edges[i + _E_A], edges[i + _E_B] = e_a, e_b
            blocks[k + _PRODUCT_A] *= f_a
            blocks[k + _PRODUCT_B] *= f_b
        if (tile - first) % _SAFE == _SAFE - 1:
            _rescale(blocks, o)


@vector
def _add_up(index: IndexArray, edges: FloatArray, blocks: FloatArray, b: int, mu: FloatArray) -> None:
    """The same products with exponentials that are there, and the means and variances of z in a block."""
    o, tiles, blank = _u(load(index, BLOCKS)) + _u(b) * BLOCK, _u(load(index, TILES)), load(index, N_TILES)
    block_tile, parent, block_ptr = load(index, BLOCK_TILE), load(index, TILE_PARENT), load(index, BLOCK_PTR) + b
    first, last = load(index, block_ptr), load(index, block_ptr, 1)
    for lane in range(LANES):
        k = o + lane
        blocks[k + _PRODUCT_A] = blocks[k + _PRODUCT_B] = 1.0
        blocks[k + _EXP_A] = blocks[k + _EXP_B] = 0.0
        blocks[k + _MEAN_A] = blocks[k + _MEAN_B] = 0.0
        blocks[k + _VARIANCE_A] = blocks[k + _VARIANCE_B] = 0.0
        blocks[k + MEAN] = load(blocks, k, LOW)
    for tile in range(first, last, 2):
        s = load(index, block_tile, tile)
        t = load(index, block_tile, tile + 1) if tile + 1 < last else blank
        x, y = tiles + _u(s) * TILE, tiles + _u(t) * TILE
        m = load(mu, load(index, parent, s))
        n = load(mu, load(index, parent, t)) if tile + 1 < last else m
        for lane in range(LANES):
            c, d, k = x + lane, y + lane, o + lane
            j, h = load(edges, c, WEIGHT), load(edges, d, WEIGHT)
            v, w, e_a, d_a = abs(j), abs(h), load(edges, c, _E_A), load(edges, d, _E_A)
            f_a, f_b, p = _factors(j, m, e_a, load(edges, c, _E_B))
            g_a, g_b, r = _factors(h, n, d_a, load(edges, d, _E_B))
            v_a, v_b = _tilted(v, p, e_a, f_a, f_b)
            w_a, w_b = _tilted(w, r, d_a, g_a, g_b)
            blocks[k + _PRODUCT_A] *= f_a * g_a
            blocks[k + _PRODUCT_B] *= f_b * g_b
            blocks[k + MEAN] += v * p + w * r
            blocks[k + _MEAN_A] += v_a + w_a
            blocks[k + _MEAN_B] += v_b + w_b
            blocks[k + _VARIANCE_A] += v_a * (v - v_a) + w_a * (w - w_a)
            blocks[k + _VARIANCE_B] += v_b * (v - v_b) + w_b * (w - w_b)
        if (tile - first) % _SAFE == _SAFE - 2:
            _rescale(blocks, o)


@vector
def _evaluate(blocks: FloatArray, o: np.uint64) -> float:
    """Terms and shares, eq. (32), from the products; returns by how much the last steps fell short of, or exceeded,
    what they promised.
    """
    missed = 0.0
    for lane in range(LANES):
        k = o + lane
        xi = load(blocks, k, XI)
        log_a = load(blocks, k, _EXP_A) * LN2 - xi * load(blocks, k, LOW)
        log_b = load(blocks, k, _EXP_B) * LN2 + (1.0 - xi) * load(blocks, k, HIGH)
        small = exp_minus(abs(log_b - log_a))
        a, b = (small, 1.0) if log_b > log_a else (1.0, small)
        a *= load(blocks, k, _PRODUCT_A)
        b *= load(blocks, k, _PRODUCT_B)
        over = 1.0 / (a + b)
        term = xi * load(blocks, k, MEAN) + max(log_a, log_b) + log(a + b)
        blocks[k + _SHARE_A], blocks[k + _SHARE_B] = a * over, b * over
        blocks[k + TERM] = term
        missed += abs(load(blocks, k, _LIMIT) - term - load(blocks, k, _GAIN))
    return missed


@vector
def _look_ahead(blocks: FloatArray, o: np.uint64) -> float:
    """The next step of Newton's method; returns what it promises.

    With f(xi) = xi <z> + ln(A + B): f' = <z> - (1 - phi) m_A - phi m_B, and f'' = (1 - phi) v_A + phi v_B +
    phi (1 - phi) (m_B - m_A)^2, which is never negative.
    """
    promise = 0.0
    for lane in range(LANES):
        k = o + lane
        xi, a, b = load(blocks, k, XI), load(blocks, k, _SHARE_A), load(blocks, k, _SHARE_B)
        mean_a, mean_b = load(blocks, k, _MEAN_A), load(blocks, k, _MEAN_B)
        apart = mean_b - mean_a
        slope = (load(blocks, k, MEAN) - load(blocks, k, LOW)) - mean_a - b * apart
        curvature = a * load(blocks, k, _VARIANCE_A) + b * load(blocks, k, _VARIANCE_B) + a * b * apart * apart
        step = load(blocks, k, _FREE) * slope / max(curvature, 1e-300)  # a curvature of zero means known inputs
        new = min(max(xi - step, 0.0), 1.0)
        gain = 0.5 * abs(slope * (new - xi))
        blocks[k + _NEXT], blocks[k + _GAIN] = new, gain
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

    Steps are shortened until no term rises. Returns what more steps would promise. Exponentials are always those of the
    present xi, `fresh` or not: nothing else moves it.
    """
    index, numbers, promised = work.ints, work.numbers, 0.0
    room, first = load(index, BLOCK_ROOM), _u(load(index, BLOCKS))
    for b in range(load(index, N_BLOCKS)):
        if load(index, room, b) == ROOM:
            o = first + _u(b) * BLOCK
            _add_up(index, numbers, numbers, b, mu)
            _evaluate(numbers, o)
            promise = _look_ahead(numbers, o)
            if promise > enough:
                _step(numbers, o)
                again = True
                while again:
                    _multiply(index, numbers, numbers, b, mu)
                    promise = _evaluate(numbers, o)
                    again = _shorten(numbers, o)
            promised += promise
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
        xi, phi = load(numbers, k, XI), load(numbers, k, _SHARE_B)
        by_factor[f] = phi
        for s in range(load(index, load(index, PTR), f), load(index, load(index, PTR) + f, 1)):
            i, m = _u(load(index, load(index, EDGE_PLACE), s)), load(mu, load(index, load(index, PARENT), s))
            e_a, e_b = load(numbers, i, _E_A), load(numbers, i, _E_B)
            if load(numbers, i, WEIGHT) > 0.0:  # the tilted means of S: alpha under A, beta under B
                alpha, beta = e_a * m / (1.0 - m + m * e_a), m / (m + (1.0 - m) * e_b)
            else:
                alpha, beta = m / (m + (1.0 - m) * e_a), e_b * m / (1.0 - m + m * e_b)
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
