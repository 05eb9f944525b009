"""The logarithm term of the paper, eqs. (19)-(20) and (30)-(33), for many units side by side.

Every edge is written with a positive weight: J S = -W + W (1 - S) if J = -W < 0. With p the mean of S or of 1 - S,
q = 1 - p, and z between zmin and zmax, the averages of eqs. (30) and (31) become

    A = <e^{-xi z}>    = e^{-xi zmin}       prod_j fA_j,   fA = q + p E_A,   E_A = e^{-xi W}
    B = <e^{(1-xi) z}> = e^{(1 - xi) zmax}  prod_j fB_j,   fB = p + q E_B,   E_B = e^{-(1-xi) W}

with all factors between 0 and 1, so that no weight, however large, overflows. E_A and E_B come from one evaluation of
a polynomial: e^r = cosh r + sinh r and e^{-r} = cosh r - sinh r share their even and odd parts.

Factors (units with hidden parents) stand in blocks of sixteen; a *tile* is the edges from one parent to one block, an
edge that does not exist having weight zero, which changes nothing. All loops run along the lanes of a block, so
that nothing is summed across lanes, and all numbers of a block stand at fixed distances from one another, so that the
compiler can tell that they do not overlap, and use vector units. (Places are unsigned: a place that could be negative
would be checked, and the loop would stay scalar.)
"""

from __future__ import annotations

import math

import numpy as np

from sbnet._types import FloatArray, IndexArray
from sbnet.kernels._compile import bare, vector

_u = np.uint64
LANES = _u(16)

# The numbers of a block: sixteen of each.
XI = _u(0)  # the parameter of eq. (19)
PHI = _u(16)  # eq. (32)
VALUE = _u(32)  # the state or mean of the unit itself
MEAN = _u(48)  # <z>
PRODUCT_A = _u(64)  # the products of fA and fB, times 2^-EXP
PRODUCT_B = _u(80)
EXP_A = _u(96)
EXP_B = _u(112)
MEAN_A = _u(128)  # <z> - zmin under the two tilted distributions, and the variances there
MEAN_B = _u(144)
VARIANCE_A = _u(160)
VARIANCE_B = _u(176)
LOW = _u(192)  # zmin
HIGH = _u(208)  # zmax
TERM = _u(224)  # xi <z> + ln(A + B)
NEXT = _u(240)  # where Newton's method would have xi
OLD = _u(256)  # xi before the step that is being tried
LIMIT = _u(272)  # the term there, which it must not exceed after the step
FREE = _u(288)  # 1 if xi may move, 0 if it is fixed
BLOCK = _u(304)

# The numbers of a tile.
WEIGHT = _u(0)
MANTISSA = _u(16)  # e^-W = MANTISSA * 2^-EXPONENT, which never underflows
EXPONENT = _u(32)
E_A = _u(48)
E_B = _u(64)
OVER_A = _u(80)  # 1 / fA and 1 / fB
OVER_B = _u(96)
TILE = _u(112)

_ROUNDING = 1e-13
_SHORT = 1e-3
_LOG2E = 1.4426950408889634
_LN2 = 0.6931471805599453
_LN2_HIGH = 0.6931471803691238  # ln 2 with its last digits zero: n * _LN2_HIGH is exact for n < 2**20
_LN2_LOW = 1.9082149292705877e-10
_C2, _C3, _C4, _C5, _C6, _C7, _C8, _C9, _C10, _C11, _C12, _C13 = (1.0 / math.factorial(k) for k in range(2, 14))
_L3, _L5, _L7, _L9, _L11, _L13, _L15, _L17, _L19 = (2.0 / k for k in range(3, 21, 2))
_MANTISSA_BITS = np.int64(0x000FFFFFFFFFFFFF)
_HALF_BITS = np.int64(0x3FE0000000000000)


@bare
def set_weight(tiles: FloatArray, place: np.uint64, weight: float) -> None:
    """Put an edge into its lane of a tile."""
    w = abs(weight)
    n = math.floor(w * _LOG2E)
    tiles[place + WEIGHT] = weight
    tiles[place + MANTISSA] = math.exp(-((w - n * _LN2_HIGH) - n * _LN2_LOW))
    tiles[place + EXPONENT] = n


@vector
def open_block(blocks: FloatArray, b: int) -> None:
    """Clear the sums of a block before a pass."""
    o = _u(b) * BLOCK
    for lane in range(LANES):
        k = o + lane
        blocks[k + PRODUCT_A] = 1.0
        blocks[k + PRODUCT_B] = 1.0
        blocks[k + EXP_A] = 0.0
        blocks[k + EXP_B] = 0.0
        blocks[k + MEAN_A] = 0.0
        blocks[k + MEAN_B] = 0.0
        blocks[k + VARIANCE_A] = 0.0
        blocks[k + VARIANCE_B] = 0.0
        blocks[k + MEAN] = blocks[k + LOW]


@vector
def add_parent(
    tiles: FloatArray,
    tile_block: IndexArray,
    first: int,
    last: int,
    blocks: FloatArray,
    active: IndexArray,
    mu: float,
) -> None:
    """Add one parent to the sums of its children, in the active blocks."""
    for t in range(_u(first), _u(last)):
        if active[_u(tile_block[t])] == 0:
            continue
        e, o = t * TILE, _u(tile_block[t]) * BLOCK
        for lane in range(LANES):
            i, k = e + lane, o + lane
            j, e_a, e_b = tiles[i + WEIGHT], tiles[i + E_A], tiles[i + E_B]
            w = abs(j)
            p, q = (mu, 1.0 - mu) if j > 0.0 else (1.0 - mu, mu)
            f_a = q + p * e_a
            f_b = p + q * e_b
            inverse = 1.0 / (f_a * f_b)
            over_a, over_b = f_b * inverse, f_a * inverse
            alpha, beta = p * e_a * over_a, p * over_b
            blocks[k + PRODUCT_A] *= f_a
            blocks[k + PRODUCT_B] *= f_b
            blocks[k + MEAN] += w * p
            blocks[k + MEAN_A] += w * alpha
            blocks[k + MEAN_B] += w * beta
            blocks[k + VARIANCE_A] += w * w * (alpha * (q * over_a))
            blocks[k + VARIANCE_B] += w * w * (beta * (q * e_b * over_b))
            tiles[i + OVER_A] = over_a
            tiles[i + OVER_B] = over_b


@vector
def exponentials(
    tiles: FloatArray, tile_block: IndexArray, first: int, last: int, blocks: FloatArray, active: IndexArray
) -> None:
    """E_A and E_B of the edges from one parent to its children, in the active blocks."""
    for t in range(_u(first), _u(last)):
        if active[_u(tile_block[t])] == 0:
            continue
        e, o = t * TILE, _u(tile_block[t]) * BLOCK
        for lane in range(LANES):
            i, k = e + lane, o + lane
            x = blocks[k + XI] * abs(tiles[i + WEIGHT])
            n = np.floor(x * _LOG2E + 0.5)
            r = (x - n * _LN2_HIGH) - n * _LN2_LOW
            s = r * r
            even = 1.0 + s * (_C2 + s * (_C4 + s * (_C6 + s * (_C8 + s * (_C10 + s * _C12)))))
            odd = r * (1.0 + s * (_C3 + s * (_C5 + s * (_C7 + s * (_C9 + s * (_C11 + s * _C13))))))
            # powers of two by their exponent bits; below 2^-1022 they are zero
            down = np.int64(max(-n, -1023.0)) + 1023
            up = np.int64(max(n - tiles[i + EXPONENT], -1023.0)) + 1023
            tiles[i + E_A] = (even - odd) * np.int64(down << 52).view(np.float64)
            tiles[i + E_B] = (even + odd) * tiles[i + MANTISSA] * np.int64(up << 52).view(np.float64)


@vector
def pull(tiles: FloatArray, tile_block: IndexArray, first: int, last: int, blocks: FloatArray) -> float:
    """What the children of a unit add to its effective input, eq. (24): the sum of J (S - xi) + K."""
    total = 0.0
    for t in range(_u(first), _u(last)):
        e, o = t * TILE, _u(tile_block[t]) * BLOCK
        for lane in range(LANES):
            i, k = e + lane, o + lane
            j, phi = tiles[i + WEIGHT], blocks[k + PHI]
            part_a = (1.0 - phi) * (1.0 - tiles[i + E_A]) * tiles[i + OVER_A]
            part_b = phi * (1.0 - tiles[i + E_B]) * tiles[i + OVER_B]
            influence = part_a - part_b  # eq. (33), for J > 0
            total += j * (blocks[k + VALUE] - blocks[k + XI]) + (influence if j > 0.0 else -influence)
    return total


@vector
def push(
    tiles: FloatArray, tile_block: IndexArray, first: int, last: int, blocks: FloatArray, mu: float, change: float
) -> None:
    """Tell the children that their parent has moved to `mu`: A and B change by one factor each."""
    for t in range(_u(first), _u(last)):
        e, o = t * TILE, _u(tile_block[t]) * BLOCK
        for lane in range(LANES):
            i, k = e + lane, o + lane
            j, phi = tiles[i + WEIGHT], blocks[k + PHI]
            p, q = (mu, 1.0 - mu) if j > 0.0 else (1.0 - mu, mu)
            a = (1.0 - phi) * ((q + p * tiles[i + E_A]) * tiles[i + OVER_A])
            b = phi * ((p + q * tiles[i + E_B]) * tiles[i + OVER_B])
            blocks[k + PHI] = b / (a + b)
            blocks[k + MEAN] += j * change


@vector
def rescale(blocks: FloatArray, n_blocks: int, product: np.uint64, exponent: np.uint64) -> None:
    """Move the powers of two of a product into its exponent, so that a long product neither under- nor overflows."""
    for b in range(_u(n_blocks)):
        o = b * BLOCK
        for lane in range(LANES):
            bits = np.float64(blocks[o + lane + product]).view(np.int64)
            blocks[o + lane + exponent] += np.float64((bits >> 52) - 1022)
            blocks[o + lane + product] = np.int64((bits & _MANTISSA_BITS) | _HALF_BITS).view(np.float64)


@vector
def _log(x: float) -> float:
    """ln x for an ordinary positive x, in a form that compiles to vectors."""
    bits = np.float64(x).view(np.int64)
    n = np.float64((bits >> 52) - 1022)
    m = np.int64((bits & _MANTISSA_BITS) | _HALF_BITS).view(np.float64)  # in [1/2, 1)
    small = m < 0.7071067811865476
    m, n = (2.0 * m, n - 1.0) if small else (m, n)
    s = (m - 1.0) / (m + 1.0)
    r = s * s
    tail = _L9 + r * (_L11 + r * (_L13 + r * (_L15 + r * (_L17 + r * _L19))))
    return n * _LN2 + s * (2.0 + r * (_L3 + r * (_L5 + r * (_L7 + r * tail))))


@vector
def _exp_minus(x: float) -> float:
    """e^-x for x >= 0."""
    x = min(x, 800.0)
    n = np.floor(x * _LOG2E + 0.5)
    r = (x - n * _LN2_HIGH) - n * _LN2_LOW
    s = r * r
    even = 1.0 + s * (_C2 + s * (_C4 + s * (_C6 + s * (_C8 + s * (_C10 + s * _C12)))))
    odd = r * (1.0 + s * (_C3 + s * (_C5 + s * (_C7 + s * (_C9 + s * (_C11 + s * _C13))))))
    down = np.int64(max(-n, -1023.0)) + 1023
    return (even - odd) * np.int64(down << 52).view(np.float64)


@vector
def step_block(blocks: FloatArray, b: int) -> None:
    """Put xi where Newton's method wants it, and remember the old xi and the term there."""
    o = _u(b) * BLOCK
    for lane in range(LANES):
        k = o + lane
        blocks[k + OLD] = blocks[k + XI]
        blocks[k + LIMIT] = blocks[k + TERM]
        blocks[k + XI] = blocks[k + NEXT]


@vector
def close_block(blocks: FloatArray, b: int) -> float:
    """Terms, eq. (32), and the next step of Newton's method from the sums; returns what that step promises.

    With f(xi) = xi <z> + ln(A + B): f' = <z> - (1 - phi) m_A - phi m_B, and f'' = (1 - phi) v_A + phi v_B +
    phi (1 - phi) (m_B - m_A)^2, which is never negative.
    """
    promise = 0.0
    o = _u(b) * BLOCK
    for lane in range(LANES):
        k = o + lane
        xi, mean = blocks[k + XI], blocks[k + MEAN]
        log_a = -xi * blocks[k + LOW] + _log(blocks[k + PRODUCT_A]) + blocks[k + EXP_A] * _LN2
        log_b = (1.0 - xi) * blocks[k + HIGH] + _log(blocks[k + PRODUCT_B]) + blocks[k + EXP_B] * _LN2
        gap = log_b - log_a
        small = _exp_minus(abs(gap))
        over = 1.0 / (1.0 + small)
        phi = over if gap > 0.0 else small * over
        log_sum = max(log_a, log_b) + _log(1.0 + small)
        mean_a, mean_b = blocks[k + MEAN_A], blocks[k + MEAN_B]
        apart = mean_b - mean_a
        slope = (mean - blocks[k + LOW]) - mean_a - phi * apart
        spread = phi * (1.0 - phi) * apart * apart
        curvature = (1.0 - phi) * blocks[k + VARIANCE_A] + phi * blocks[k + VARIANCE_B] + spread
        step = blocks[k + FREE] * slope / max(curvature, 1e-300)  # a curvature of zero means known inputs
        new = min(max(xi - step, 0.0), 1.0)
        gain = 0.5 * abs(slope * (new - xi))
        blocks[k + PHI] = phi
        blocks[k + TERM] = xi * mean + log_sum
        blocks[k + NEXT] = new
        promise += gain
    return promise


@bare
def shorten(blocks: FloatArray, b: int) -> bool:
    """Halve the steps after which a term has risen beyond rounding, and take back short ones; were there any?"""
    any_bad = False
    for lane in range(LANES):
        k = _u(b) * BLOCK + lane
        limit, old, new = blocks[k + LIMIT], blocks[k + OLD], blocks[k + XI]
        if new != old and blocks[k + TERM] > limit + _ROUNDING * (1.0 + abs(limit)):
            blocks[k + XI] = 0.5 * (old + new) if abs(new - old) > _SHORT else old
            any_bad = True
    return any_bad


@vector
def entropy(mu: FloatArray) -> float:
    """The entropy of independent units."""
    total = 0.0
    for j in range(_u(len(mu))):
        total -= mu[j] * _log(mu[j]) + (1.0 - mu[j]) * _log(1.0 - mu[j])
    return total
