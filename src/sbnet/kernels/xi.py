"""The logarithm term of the paper, eqs. (19)-(20) and (30)-(33), for one unit.

Every edge is written with a positive weight: J S = -W + W (1 - S) if J = -W < 0. With p the mean of S or of 1 - S, and
z between zmin and zmax, the averages of eqs. (30) and (31) become

    A = <e^{-xi z}>    = e^{-xi zmin}       prod_j fA_j,   fA = 1 - p + p E_A,     E_A = e^{-xi W}
    B = <e^{(1-xi) z}> = e^{(1 - xi) zmax}  prod_j fB_j,   fB = p + (1 - p) E_B,   E_B = e^{-(1-xi) W}

with all factors between 0 and 1, so that no weight, however large, overflows. E_A and E_B come from one evaluation of
a polynomial: e^r = cosh r + sinh r and e^{-r} = cosh r - sinh r share their even and odd parts.
"""

from __future__ import annotations

import math

import numpy as np

from sbnet._types import FloatArray
from sbnet.kernels._compile import bare, kernel, vector

_LOG2E = 1.4426950408889634
_LN2_HIGH = 0.6931471803691238  # ln 2 with its last digits zero: n * _LN2_HIGH is exact for n < 2**20
_LN2_LOW = 1.9082149292705877e-10
_C2, _C3, _C4, _C5, _C6, _C7, _C8, _C9, _C10, _C11, _C12, _C13 = (1.0 / math.factorial(k) for k in range(2, 14))


@kernel
def split_exponential(weight: FloatArray, mantissa: FloatArray, exponent: FloatArray) -> None:
    """Write e^{-|weight|} as mantissa * 2^-exponent, which never underflows."""
    for s in range(len(weight)):
        w = abs(weight[s])
        n = math.floor(w * _LOG2E)
        exponent[s] = n
        mantissa[s] = math.exp(-((w - n * _LN2_HIGH) - n * _LN2_LOW))


@vector
def xi_sums(
    weight: FloatArray,
    mantissa: FloatArray,
    exponent: FloatArray,
    first: int,
    mu: FloatArray,
    start: int,
    end: int,
    xi: float,
    out_ea: FloatArray,
    out_eb: FloatArray,
    out_oa: FloatArray,
    out_ob: FloatArray,
) -> tuple[float, float, float, float, float, float, float]:
    """One pass over parents `start` to `end` of a unit, whose edges begin at `first`.

    Returns both products, the mean of z, its tilted means and variances.
    E_A, E_B, 1 / fA and 1 / fB of each edge go to the last four arrays; the updates of the means live on them.
    """
    product_a, product_b = 1.0, 1.0
    mean, mean_a, mean_b = 0.0, 0.0, 0.0
    variance_a, variance_b = 0.0, 0.0
    edge = np.uint64(first)  # unsigned: an index that cannot be negative needs no check, and the loop becomes vectors
    for s in range(np.uint64(start), np.uint64(end)):
        j = weight[edge + s]
        w = abs(j)
        m = mu[s]
        p, q = (m, 1.0 - m) if j > 0.0 else (1.0 - m, m)
        t = xi * w
        n = np.floor(t * _LOG2E + 0.5)
        r = (t - n * _LN2_HIGH) - n * _LN2_LOW
        x = r * r
        even = 1.0 + x * (_C2 + x * (_C4 + x * (_C6 + x * (_C8 + x * (_C10 + x * _C12)))))
        odd = r * (1.0 + x * (_C3 + x * (_C5 + x * (_C7 + x * (_C9 + x * (_C11 + x * _C13))))))
        # powers of two by their exponent bits; below 2^-1022 they are zero
        down = np.int64(max(-n, -1023.0)) + 1023
        up = np.int64(max(n - exponent[edge + s], -1023.0)) + 1023
        e_a = (even - odd) * np.int64(down << 52).view(np.float64)
        e_b = (even + odd) * mantissa[edge + s] * np.int64(up << 52).view(np.float64)
        f_a = q + p * e_a
        f_b = p + q * e_b
        inverse = 1.0 / (f_a * f_b)
        o_a, o_b = f_b * inverse, f_a * inverse
        alpha = p * e_a * o_a
        beta = p * o_b
        product_a *= f_a
        product_b *= f_b
        mean += w * p
        mean_a += w * alpha
        mean_b += w * beta
        variance_a += w * w * (alpha * (q * o_a))
        variance_b += w * w * (beta * (q * e_b * o_b))
        out_ea[s] = e_a
        out_eb[s] = e_b
        out_oa[s] = o_a
        out_ob[s] = o_b
    return product_a, product_b, mean, mean_a, mean_b, variance_a, variance_b


_CHUNK = 64  # parents per product: few enough that a product of ordinary factors does not underflow
_TINY = 1e-280


@bare
def xi_pass(
    weight: FloatArray,
    mantissa: FloatArray,
    exponent: FloatArray,
    first: int,
    k: int,
    mu: FloatArray,
    low: float,
    high: float,
    xi: float,
    e_a: FloatArray,
    e_b: FloatArray,
    o_a: FloatArray,
    o_b: FloatArray,
) -> tuple[float, float, float, float, float]:
    """The term and what Newton's method needs: (term, phi, <z>, f', f'') with f(xi) = xi <z> + ln(A + B).

    The unit has `k` parents with means `mu`; their edges begin at `first`. z lies between `low` and `high`. (Places
    instead of slices: a slice of an array costs as much as several edges.)
    """
    log_a, log_b = -xi * low, (1.0 - xi) * high
    product_a, product_b = 1.0, 1.0
    mean, mean_a, mean_b, variance_a, variance_b = 0.0, 0.0, 0.0, 0.0, 0.0
    for start in range(0, k, _CHUNK):
        end = min(start + _CHUNK, k)
        sums = xi_sums(weight, mantissa, exponent, first, mu, start, end, xi, e_a, e_b, o_a, o_b)
        product_a, product_b = sums[0], sums[1]
        if end < k or product_a < _TINY or product_b < _TINY:
            if product_a < _TINY or product_b < _TINY:
                for s in range(start, end):  # rare: sum logarithms, one by one
                    log_a -= math.log(o_a[s])
                    log_b -= math.log(o_b[s])
            else:
                log_a += math.log(product_a)
                log_b += math.log(product_b)
            product_a, product_b = 1.0, 1.0
        mean += sums[2]
        mean_a += sums[3]
        mean_b += sums[4]
        variance_a += sums[5]
        variance_b += sums[6]
    gap = log_b - log_a
    if abs(gap) < 300.0:
        ratio = math.exp(gap) * product_b  # B / A, but for the factor product_a
        total = product_a + ratio
        phi = ratio / total
        log_sum = log_a + math.log(total)
    else:
        log_a += math.log(product_a)
        log_b += math.log(product_b)
        gap = log_b - log_a
        small = math.exp(-abs(gap))
        phi = 1.0 / (1.0 + small) if gap > 0.0 else small / (1.0 + small)
        log_sum = max(log_a, log_b) + math.log1p(small)
    slope = mean - (1.0 - phi) * mean_a - phi * mean_b
    curvature = (1.0 - phi) * variance_a + phi * variance_b + phi * (1.0 - phi) * (mean_b - mean_a) ** 2
    mean += low
    return xi * mean + log_sum, phi, mean, slope, curvature


@vector
def xi_pull(
    weight: FloatArray,
    e_a: FloatArray,
    e_b: FloatArray,
    o_a: FloatArray,
    o_b: FloatArray,
    start: int,
    end: int,
    value: FloatArray,
    xi: FloatArray,
    phi: FloatArray,
    shift: int,
) -> float:
    """What the children of a unit add to its effective input, eq. (24): the sum of J (S - xi) + K.

    The children are the factors `shift` places before `start` to `end`.
    """
    total = 0.0
    for c in range(np.uint64(start), np.uint64(end)):
        f = c - np.uint64(shift)
        k = (1.0 - phi[f]) * (1.0 - e_a[c]) * o_a[c] - phi[f] * (1.0 - e_b[c]) * o_b[c]  # eq. (33), for J > 0
        total += weight[c] * (value[f] - xi[f]) + (k if weight[c] > 0.0 else -k)
    return total


@vector
def xi_push(
    weight: FloatArray,
    e_a: FloatArray,
    e_b: FloatArray,
    o_a: FloatArray,
    o_b: FloatArray,
    start: int,
    end: int,
    mu: float,
    change: float,
    phi: FloatArray,
    growth: FloatArray,
    mean: FloatArray,
    shift: int,
) -> None:
    """Tell the children that their parent has moved to `mu`: A and B change by one factor each."""
    for c in range(np.uint64(start), np.uint64(end)):
        f = c - np.uint64(shift)
        p, q = (mu, 1.0 - mu) if weight[c] > 0.0 else (1.0 - mu, mu)
        a = (1.0 - phi[f]) * ((q + p * e_a[c]) * o_a[c])
        b = phi[f] * ((p + q * e_b[c]) * o_b[c])
        total = a + b
        phi[f] = b / total
        growth[f] *= total
        mean[f] += weight[c] * change
