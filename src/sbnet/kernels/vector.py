"""Exponentials and logarithms of many numbers at once: polynomials, and powers of two by their bits.

They work on records or tuples with the fields `arg` and `power`, `bits` being the bits of `power`: a union is the cast
between whole and other numbers that the compiler can turn into vectors.
"""

import math

import numpy as np

from sbnet.kernels.compiling import inner

LOG2E = 1.4426950408889634
LN2 = 0.6931471805599453
LN2_HIGH = 0.6931471803691238  # ln 2 with its last digits zero: n * LN2_HIGH is exact for n < 2**20
LN2_LOW = 1.9082149292705877e-10
C2, C3, C4, C5, C6, C7, C8, C9, C10, C11, C12, C13 = (1.0 / math.factorial(k) for k in range(2, 14))
_L3, _L5, _L7, _L9, _L11, _L13, _L15, _L17, _L19 = (2.0 / k for k in range(3, 21, 2))
MANTISSA, HALF = 0x000FFFFFFFFFFFFF, 0x3FE0000000000000  # the bits of the digits; those of 0.5


@inner(fast=True)
def exp_minus(lanes):
    """power = e^-arg for arg >= 0."""
    for i in range(len(lanes.arg)):
        x = min(lanes.arg[i], 708.0)
        n = np.floor(x * LOG2E + 0.5)
        r = n * LN2_LOW - (x - n * LN2_HIGH)  # in a function of its own, the compiler reorders this and loses digits
        s = r * r
        even = 1.0 + s * (C2 + s * (C4 + s * (C6 + s * (C8 + s * (C10 + s * C12)))))
        odd = r * (1.0 + s * (C3 + s * (C5 + s * (C7 + s * (C9 + s * (C11 + s * C13))))))
        lanes.arg[i] = even + odd
        lanes.bits[i] = (1023 - np.int64(n)) << 52
    for i in range(len(lanes.arg)):
        lanes.power[i] *= lanes.arg[i]


@inner(fast=True)
def log(lanes):
    """arg = ln power, for ordinary positive numbers; `power` is used up."""
    for i in range(len(lanes.arg)):
        lanes.arg[i] = float((lanes.bits[i] >> 52) - 1022)
        lanes.bits[i] = (lanes.bits[i] & MANTISSA) | HALF
    for i in range(len(lanes.arg)):
        m, n = lanes.power[i], lanes.arg[i]
        small = 1.0 if m < 0.7071067811865476 else 0.0
        m, n = m + small * m, n - small
        s = (m - 1.0) / (m + 1.0)
        r = s * s
        tail = _L9 + r * (_L11 + r * (_L13 + r * (_L15 + r * (_L17 + r * _L19))))
        lanes.arg[i] = n * LN2 + s * (2.0 + r * (_L3 + r * (_L5 + r * (_L7 + r * tail))))


@inner(fast=True)
def log_one_plus(t: float) -> float:
    """ln(1 + t) for t between 0 and 1: 2 artanh s, of 1 + t or of half of that."""
    upper = t > 0.41421356237309503
    s = (t - 1.0) / (t + 3.0) if upper else t / (t + 2.0)
    q = s * s
    rest = _L9 + q * (_L11 + q * (_L13 + q * (_L15 + q * (_L17 + q * _L19))))
    return (LN2 if upper else 0.0) + s * (2.0 + q * (_L3 + q * (_L5 + q * (_L7 + q * rest))))
