"""The logarithm term of the paper, eqs. (19)-(20) and (30)-(33), for sigmoid units; xi held at 0 is Jensen's bound.

Every edge is written with a positive weight: J S = -W + W (1 - S) if J = -W < 0. With p the mean of S or of 1 - S,
q = 1 - p, and z between zmin and zmax, the averages of eqs. (30) and (31) become

    A = <e^{-xi z}>    = e^{-xi zmin}       prod_j fA_j,   fA = q + p E_A,   E_A = e^{-xi W}
    B = <e^{(1-xi) z}> = e^{(1 - xi) zmax}  prod_j fB_j,   fB = p + q E_B,   E_B = e^{-(1-xi) W}

with all factors between 0 and 1, so that no weight, however large, overflows. E_A and E_B come from one evaluation of
a polynomial: e^r = cosh r + sinh r and e^{-r} = cosh r - sinh r share their even and odd parts.

In a sweep A and B follow the means by multiplication. After it, one pass adds up the terms anew, with what the next
step of Newton's method needs; where that promises much, xi moves, and another pass finds the exponentials there. Both
take eight lanes of a block at a time, a `half`, from parent to parent, so that what is added up stays in registers.
"""

from __future__ import annotations

import math

import numpy as np

from sbnet._types import FloatArray, IndexArray
from sbnet.kernels._compile import bare, inlined, vector
from sbnet.kernels.arrays import load
from sbnet.kernels.lanes import (
    EIGHT,
    exponent,
    mantissa,
    nearest,
    power_of_two,
    put,
    root,
    size,
    take,
    total,
    where,
    zeros,
)
from sbnet.kernels.terms.work import (
    BLOCK,
    BLOCK_PTR,
    BLOCK_ROOM,
    BLOCK_TILE,
    BLOCKS,
    EDGE_PLACE,
    HIGH,
    KIND,
    LANE_FACTOR,
    LANES,
    LOW,
    MEAN,
    MINE,
    MINE_TOO,
    N_BLOCKS,
    N_FACTORS,
    N_TILES,
    OWN,
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
    WIDTH,
    Work,
)
from sbnet.kernels.terms.work import ROOM as ROOM_OF
from sbnet.kernels.terms.xi_alone import best as best
from sbnet.kernels.vector_math import LN2, LN2_HIGH, LN2_LOW, LOG2E, cosh_sinh, exp_minus, log

ROOM = 0
KINDS = {"xi": 0, "jensen": 3}  # Jensen's bound is the same with xi held at zero
TILED = True

_u = np.uint64
XI = MINE  # the parameter of eq. (19)
_SHARE_A = MINE + _u(16)  # of A and B in their sum, 1 - phi and phi of eq. (32); in a sweep their sum need not be 1
_SHARE_B = MINE + _u(32)
_FREE = MINE + _u(48)  # 1 if xi may move, 0 if it is fixed
_PRODUCT_A = MINE + _u(64)  # the products of fA and fB, times 2^-EXP
_PRODUCT_B = MINE + _u(80)
_EXP_A = MINE + _u(96)
_EXP_B = MINE + _u(112)
_MEAN_A = MINE + _u(128)  # <z> - zmin under the two tilted distributions, and the variances there
_MEAN_B = MINE + _u(144)
_VARIANCE_A = MINE + _u(160)
_VARIANCE_B = MINE + _u(176)
_GAIN = MINE + _u(192)  # what the next step of Newton's method promises
_NEXT = MINE + _u(208)  # where it would have xi
_OLD = MINE + _u(224)  # xi before the step that is being tried
_LIMIT = MINE + _u(240)  # the term there, which it must not exceed after the step
_ASKED = MINE + _u(256)  # 1 if a unit of the block is hidden: its mean input is asked for during a sweep

_E_A = MINE_TOO
_E_B = MINE_TOO + _u(16)
_MANTISSA = MINE_TOO + _u(32)  # e^-W = MANTISSA * 2^-EXPONENT, which never underflows
_EXPONENT = MINE_TOO + _u(48)

_SAFE = 16  # factors that can be multiplied before the product is rescaled: each is at least 1e-14
_ROUNDING = 1e-13
_SHORT = 1e-3


@bare
def prepare(work: Work) -> None:
    """What does not depend on the row: e^-W of every edge, and which means are asked for."""
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
    for b in range(load(index, N_BLOCKS)):
        if load(index, block_room, b) == ROOM:
            for lane in range(load(index, load(index, WIDTH), b)):
                f = load(index, load(index, LANE_FACTOR) + 16 * b, lane)
                if load(index, load(index, OWN), f) >= 0:
                    numbers[_place(index, b, 0) + _ASKED] = 1.0


@bare
def begin(work: Work) -> None:
    """Every xi starts at one half, or stays at 0; and so do the exponentials."""
    index, numbers = work.ints, work.numbers
    room, kind, place = load(index, ROOM_OF), load(index, KIND), load(index, PLACE)
    for f in range(load(index, N_FACTORS)):
        if load(index, room, f) == ROOM:
            free, k = 1.0 if load(index, kind, f) == ROOM else 0.0, _u(load(index, place, f))
            numbers[k + XI], numbers[k + _FREE] = 0.5 * free, free
    for t in range(load(index, N_TILES)):
        if load(index, load(index, BLOCK_ROOM), load(index, load(index, TILE_BLOCK), t)) == ROOM:
            _first(index, numbers, t)


@vector
def _first(index: IndexArray, numbers: FloatArray, t: int) -> None:
    """The exponentials of a tile where xi starts. There e^-W may underflow; means stay farther from 0 than that."""
    b = load(index, load(index, TILE_BLOCK), t)
    for half in range(_halves(index, b)):
        i, k = _u(load(index, TILES)) + _u(t) * TILE + _u(half) * EIGHT, _place(index, b, half)
        whole = take(numbers, i + _MANTISSA) * power_of_two(0.0 - take(numbers, i + _EXPONENT))
        free, half_way = take(numbers, k + _FREE), root(whole)
        put(numbers, i + _E_A, where(free, half_way, 1.0))
        put(numbers, i + _E_B, where(free, half_way, whole))


@bare
def _halves(index: IndexArray, b: int) -> int:
    """How many times eight lanes of a block are taken."""
    return 1 + (load(index, load(index, WIDTH), b) > 8)


@inlined
def _place(index: IndexArray, b: int, half: int) -> np.uint64:
    """Where the numbers of a half begin."""
    return _u(load(index, BLOCKS)) + _u(b) * BLOCK + _u(half) * EIGHT


@bare
def pull(work: Work, j: int, mu: FloatArray) -> float:
    """What the children of unit j add to its effective input, eq. (24): the sum of J (S - xi) + K."""
    return _pull(work.ints, work.numbers, j, load(mu, j))


@bare
def push(work: Work, mu: FloatArray, j: int, old: float, new: float) -> None:
    """Unit j has moved: A and B of its children change by one factor each."""
    _push(work.ints, work.numbers, j, old, new)


@vector
def _pull(index: IndexArray, numbers: FloatArray, j: int, m: float) -> float:
    field, tiles = zeros(), _u(load(index, TILES))
    tile_ptr, tile_block, block_room = load(index, TILE_PTR) + j, load(index, TILE_BLOCK), load(index, BLOCK_ROOM)
    for t in range(load(index, tile_ptr), load(index, tile_ptr, 1)):
        block = load(index, tile_block, t)
        if load(index, block_room, block) != ROOM:
            continue
        for half in range(_halves(index, block)):
            i, k = tiles + _u(t) * TILE + _u(half) * EIGHT, _place(index, block, half)
            w, e_a, e_b = take(numbers, i + WEIGHT), take(numbers, i + _E_A), take(numbers, i + _E_B)
            a, b = take(numbers, k + _SHARE_A), take(numbers, k + _SHARE_B)
            f_a, f_b, _ = _factors(w, m, e_a, e_b)
            inverse = 1.0 / (f_a * f_b * (a + b))
            rest_a, rest_b = a * f_b * inverse, b * f_a * inverse
            influence = rest_a * (1.0 - e_a) - rest_b * (1.0 - e_b)  # eq. (33), for J > 0
            field += w * (take(numbers, k + VALUE) - take(numbers, k + XI)) + where(w, influence, 0.0 - influence)
            put(numbers, k + _SHARE_A, rest_a)
            put(numbers, k + _SHARE_B, rest_b)
    return total(field)


@vector
def _push(index: IndexArray, numbers: FloatArray, j: int, old: float, new: float) -> None:
    tiles = _u(load(index, TILES))
    tile_ptr, tile_block, block_room = load(index, TILE_PTR) + j, load(index, TILE_BLOCK), load(index, BLOCK_ROOM)
    for t in range(load(index, tile_ptr), load(index, tile_ptr, 1)):
        block = load(index, tile_block, t)
        if load(index, block_room, block) != ROOM:
            continue
        asked = load(numbers, _place(index, block, 0), _ASKED)
        for half in range(_halves(index, block)):
            i, k = tiles + _u(t) * TILE + _u(half) * EIGHT, _place(index, block, half)
            w = take(numbers, i + WEIGHT)
            f_a, f_b, _ = _factors(w, new, take(numbers, i + _E_A), take(numbers, i + _E_B))
            put(numbers, k + _SHARE_A, take(numbers, k + _SHARE_A) * f_a)
            put(numbers, k + _SHARE_B, take(numbers, k + _SHARE_B) * f_b)
            if asked > 0.0:
                put(numbers, k + MEAN, take(numbers, k + MEAN) + w * (new - old))


@inlined
def _factors(j: float, m: float, e_a: float, e_b: float) -> tuple[float, float, float]:
    """f_A, f_B, and p."""
    p, q = where(j, m, 1.0 - m), where(j, 1.0 - m, m)
    return q + p * e_a, p + q * e_b, p


@inlined
def _keep(numbers: FloatArray, k: np.uint64, product_a: float, product_b: float, exp_a: float, exp_b: float) -> None:
    put(numbers, k + _PRODUCT_A, product_a)
    put(numbers, k + _PRODUCT_B, product_b)
    put(numbers, k + _EXP_A, exp_a)
    put(numbers, k + _EXP_B, exp_b)


@vector
def _add_up(index: IndexArray, numbers: FloatArray, b: int, mu: FloatArray) -> None:
    """The products that A and B of a block are made of, and the means and variances of z."""
    block_tile, parent, block_ptr = load(index, BLOCK_TILE), load(index, TILE_PARENT), load(index, BLOCK_PTR) + b
    first, last = load(index, block_ptr), load(index, block_ptr, 1)
    for half in range(_halves(index, b)):
        k, tiles = _place(index, b, half), _u(load(index, TILES)) + _u(half) * EIGHT
        product_a, product_b, exp_a, exp_b = zeros() + 1.0, zeros() + 1.0, zeros(), zeros()
        mean, mean_a, mean_b, variance_a, variance_b = take(numbers, k + LOW), zeros(), zeros(), zeros(), zeros()
        for tile in range(first, last):
            t = load(index, block_tile, tile)
            i, m = tiles + _u(t) * TILE, load(mu, load(index, parent, t))
            j, e_a, e_b = take(numbers, i + WEIGHT), take(numbers, i + _E_A), take(numbers, i + _E_B)
            w = size(j)
            f_a, f_b, p = _factors(j, m, e_a, e_b)
            over = w * p / (f_a * f_b)
            w_a, w_b = e_a * f_b * over, f_a * over  # W times the two tilted means
            product_a *= f_a
            product_b *= f_b
            mean += w * p
            mean_a += w_a
            mean_b += w_b
            variance_a += w_a * (w - w_a)
            variance_b += w_b * (w - w_b)
            if (tile - first) % _SAFE == _SAFE - 1:  # long products must not underflow
                exp_a, exp_b = exp_a + exponent(product_a), exp_b + exponent(product_b)
                product_a, product_b = mantissa(product_a), mantissa(product_b)
        _keep(numbers, k, product_a, product_b, exp_a, exp_b)
        put(numbers, k + MEAN, mean)
        put(numbers, k + _MEAN_A, mean_a)
        put(numbers, k + _MEAN_B, mean_b)
        put(numbers, k + _VARIANCE_A, variance_a)
        put(numbers, k + _VARIANCE_B, variance_b)


@vector
def _multiply(index: IndexArray, numbers: FloatArray, b: int, half: int, mu: FloatArray) -> None:
    """Exponentials at the present xi of a block, and the products there."""
    block_tile, parent, block_ptr = load(index, BLOCK_TILE), load(index, TILE_PARENT), load(index, BLOCK_PTR) + b
    first, last = load(index, block_ptr), load(index, block_ptr, 1)
    k, tiles = _place(index, b, half), _u(load(index, TILES)) + _u(half) * EIGHT
    xi = take(numbers, k + XI)
    product_a, product_b, exp_a, exp_b = zeros() + 1.0, zeros() + 1.0, zeros(), zeros()
    for tile in range(first, last):
        t = load(index, block_tile, tile)
        i, m = tiles + _u(t) * TILE, load(mu, load(index, parent, t))
        j = take(numbers, i + WEIGHT)
        x = xi * size(j)
        n = nearest(x * LOG2E)
        even, odd = cosh_sinh((x - n * LN2_HIGH) - n * LN2_LOW)
        e_a = (even - odd) * power_of_two(0.0 - n)
        e_b = (even + odd) * take(numbers, i + _MANTISSA) * power_of_two(n - take(numbers, i + _EXPONENT))
        f_a, f_b, _ = _factors(j, m, e_a, e_b)
        put(numbers, i + _E_A, e_a)
        put(numbers, i + _E_B, e_b)
        product_a *= f_a
        product_b *= f_b
        if (tile - first) % _SAFE == _SAFE - 1:
            exp_a, exp_b = exp_a + exponent(product_a), exp_b + exponent(product_b)
            product_a, product_b = mantissa(product_a), mantissa(product_b)
    _keep(numbers, k, product_a, product_b, exp_a, exp_b)


@inlined
def _evaluated(numbers: FloatArray, k: np.uint64, xi: float) -> tuple[float, float, float]:
    """Term and shares, eq. (32), from the products; and they are put where they belong."""
    log_a = take(numbers, k + _EXP_A) * LN2 - xi * take(numbers, k + LOW)
    log_b = take(numbers, k + _EXP_B) * LN2 + (1.0 - xi) * take(numbers, k + HIGH)
    apart = log_b - log_a
    small = exp_minus(size(apart))
    a = where(apart, small, 1.0) * take(numbers, k + _PRODUCT_A)
    b = where(apart, 1.0, small) * take(numbers, k + _PRODUCT_B)
    over = 1.0 / (a + b)
    a, b, term = a * over, b * over, xi * take(numbers, k + MEAN) + where(apart, log_b, log_a) + log(a + b)
    put(numbers, k + TERM, term)
    put(numbers, k + _SHARE_A, a)
    put(numbers, k + _SHARE_B, b)
    return term, a, b


@vector
def _look_ahead(index: IndexArray, numbers: FloatArray, b: int) -> None:
    """Terms and shares, and the next step of Newton's method.

    With f(xi) = xi <z> + ln(A + B): f' = <z> - (1 - phi) m_A - phi m_B, and f'' = (1 - phi) v_A + phi v_B +
    phi (1 - phi) (m_B - m_A)^2, which is never negative.
    """
    for half in range(_halves(index, b)):
        k = _place(index, b, half)
        xi, mean_a = take(numbers, k + XI), take(numbers, k + _MEAN_A)
        _, share_a, share_b = _evaluated(numbers, k, xi)
        apart = take(numbers, k + _MEAN_B) - mean_a
        slope = (take(numbers, k + MEAN) - take(numbers, k + LOW)) - mean_a - share_b * apart
        curvature = share_a * (take(numbers, k + _VARIANCE_A) + share_b * apart * apart)
        curvature += share_b * take(numbers, k + _VARIANCE_B)
        new = xi - take(numbers, k + _FREE) * slope / where(curvature, curvature, 1e-300)  # zero: inputs are known
        new = where(new, where(1.0 - new, new, 1.0), 0.0)
        put(numbers, k + _NEXT, new)
        put(numbers, k + _GAIN, 0.5 * size(slope * (new - xi)))


@vector
def _promise(index: IndexArray, numbers: FloatArray, b: int, half: int) -> float:
    """What the steps of eight lanes promise."""
    return total(take(numbers, _place(index, b, half) + _GAIN))


@vector
def _step(index: IndexArray, numbers: FloatArray, b: int, half: int) -> None:
    """Put xi where Newton's method wants it, and remember the old xi and the term there."""
    k = _place(index, b, half)
    put(numbers, k + _OLD, take(numbers, k + XI))
    put(numbers, k + _LIMIT, take(numbers, k + TERM))
    put(numbers, k + XI, take(numbers, k + _NEXT))


@vector
def _check(index: IndexArray, numbers: FloatArray, b: int, half: int) -> tuple[float, float]:
    """Terms and shares after a step: by how much it missed what it promised, and how many xi went too far.

    A step after which a term has risen beyond rounding is halved, and a short one is taken back.
    """
    k = _place(index, b, half)
    old, xi, limit = take(numbers, k + _OLD), take(numbers, k + XI), take(numbers, k + _LIMIT)
    term, _, _ = _evaluated(numbers, k, xi)
    far = size(xi - old)
    rise = where(far, term - limit - _ROUNDING * (1.0 + size(limit)), 0.0)
    put(numbers, k + XI, where(rise, where(far - _SHORT, 0.5 * (old + xi), old), xi))
    return total(size(limit - term - take(numbers, k + _GAIN))), total(where(rise, 1.0, zeros()))


@bare
def renew(work: Work, mu: FloatArray, enough: float, fresh: bool) -> float:
    """Compute the terms at the present means; where a step of xi promises more than `enough` in a block, take it.

    Steps are shortened until no term rises. Returns what more steps would promise. Exponentials are always those of the
    present xi, `fresh` or not: nothing else moves it.
    """
    index, numbers, promised = work.ints, work.numbers, 0.0
    room, blocks = load(index, BLOCK_ROOM), load(index, N_BLOCKS)
    for b in range(blocks):
        if load(index, room, b) == ROOM:
            _add_up(index, numbers, b, mu)
    for b in range(blocks):
        if load(index, room, b) == ROOM:
            _look_ahead(index, numbers, b)
    for b in range(blocks):
        if load(index, room, b) == ROOM:
            for half in range(_halves(index, b)):
                promise = _promise(index, numbers, b, half)
                if promise > 0.5 * enough:
                    _step(index, numbers, b, half)
                    bad = 1.0
                    while bad > 0.0:
                        _multiply(index, numbers, b, half, mu)
                        promise, bad = _check(index, numbers, b, half)
                promised += promise
    return promised


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
def reference(
    kind: int, gate: int, weight: FloatArray, mu: FloatArray, bias: float, parameter: float
) -> tuple[float, float]:
    """The term of one factor at the given xi, or at the best one if that is NaN: (xi, term)."""
    return best(weight, mu, bias, parameter if kind == ROOM else 0.0)
