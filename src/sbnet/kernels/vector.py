"""Exponentials and logarithms that the compiler turns into vectors: polynomials, and powers of two by their bits."""

import math

import numpy as np

from sbnet.kernels.compiling import inner

unsigned = np.uint64
"""For indices along lanes, tiles and frequencies: one that might be negative keeps loops from becoming vectors."""

LOG2E = 1.4426950408889634
LN2 = 0.6931471805599453
LN2_HIGH = 0.6931471803691238  # ln 2 with its last digits zero: n * LN2_HIGH is exact for n < 2**20
LN2_LOW = 1.9082149292705877e-10
_C2, _C3, _C4, _C5, _C6, _C7, _C8, _C9, _C10, _C11, _C12 = (1.0 / math.factorial(k) for k in range(2, 13))
_L3, _L5, _L7, _L9, _L11, _L13, _L15, _L17, _L19 = (2.0 / k for k in range(3, 21, 2))
MANTISSA, HALF = 0x000FFFFFFFFFFFFF, 0x3FE0000000000000  # the bits of the digits; those of 0.5
WHOLE = 1.5 * 2.0**52  # a small number plus this is rounded to a whole one, which then stands in the last bits


@inner(fast=True)
def cosh_sinh(r):
    """cosh r and sinh r for |r| <= ln 2 / 2: e^r is their sum, e^-r their difference."""
    s = r * r
    even = 1.0 + s * (_C2 + s * (_C4 + s * (_C6 + s * (_C8 + s * (_C10 + s * _C12)))))
    return even, r * (1.0 + s * (_C3 + s * (_C5 + s * (_C7 + s * (_C9 + s * _C11)))))


@inner(lanewise=True)
def power_of_two(n):
    """2^n for a whole number n; 0 below 2^-1022."""
    return np.int64(np.float64(max(n, -1023.0) + (WHOLE + 1023.0)).view(np.int64) << 52).view(np.float64)


@inner(lanewise=True)
def parts_of(x):
    """The multiple of ln 2 that is nearest to x, and what is left: x = n ln 2 + r. Reordered, it would lose digits."""
    n = (x * LOG2E + WHOLE) - WHOLE
    return n, (x - n * LN2_HIGH) - n * LN2_LOW


@inner(fast=True)
def exp_of_minus(x):
    """e^-x for x >= 0."""
    n, r = parts_of(min(x, 708.0))
    even, odd = cosh_sinh(r)
    return (even - odd) * power_of_two(-n)


@inner(fast=True)
def digits_and_exponent(x):
    """x = d 2^n with 1/2 <= d < 1, for ordinary positive numbers."""
    bits = np.float64(x).view(np.int64)
    return np.int64((bits & MANTISSA) | HALF).view(np.float64), float((bits >> 52) - 1022)


@inner(fast=True)
def ln(x):
    """ln x for ordinary positive numbers."""
    d, n = digits_and_exponent(x)
    small = 1.0 if d < 0.7071067811865476 else 0.0
    d, n = d + small * d, n - small
    s = (d - 1.0) / (d + 1.0)
    return n * LN2 + _artanh(s)


@inner(fast=True)
def _artanh(s):
    """2 artanh s = ln((1 + s) / (1 - s)) for |s| < 0.18."""
    r = s * s
    tail = _L9 + r * (_L11 + r * (_L13 + r * (_L15 + r * (_L17 + r * _L19))))
    return s * (2.0 + r * (_L3 + r * (_L5 + r * (_L7 + r * tail))))


@inner(fast=True)
def log_one_plus(t):
    """ln(1 + t) for t between 0 and 1, that of 1 + t or of half of it."""
    upper = t > 0.41421356237309503
    return (LN2 if upper else 0.0) + _artanh((t - 1.0) / (t + 3.0) if upper else t / (t + 2.0))


@inner(fast=True)
def exp_minus(lanes):
    """power = e^-arg for arg >= 0, of all lanes of a record."""
    for i in range(len(lanes.arg)):
        lanes.power[i] = exp_of_minus(lanes.arg[i])
