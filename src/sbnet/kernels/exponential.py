"""Exponentials and logarithms for loops that the compiler turns into vectors: polynomials, no calls."""

from __future__ import annotations

import math

import numpy as np

from sbnet.kernels.compiling import inner

LN2 = 0.6931471805599453
_LOG2E, _LN2_HIGH, _LN2_LOW = (
    1.4426950408889634,
    0.6931471803691238,
    1.9082149292705877e-10,
)  # of 20 bits less; the rest
_C2, _C3, _C4, _C5, _C6, _C7, _C8, _C9, _C10, _C11, _C12, _C13 = (1.0 / math.factorial(k) for k in range(2, 14))
_L3, _L5, _L7, _L9, _L11, _L13, _L15, _L17, _L19 = (2.0 / k for k in range(3, 21, 2))


@inner(lanewise=True)
def exp_parts(x: float) -> tuple[float, np.int64]:
    """m and n with e^x = m 2^n and |ln m| <= ln(2) / 2; the bits of 2^n are (n + 1023) << 52."""
    n = np.floor(x * _LOG2E + 0.5)
    r = (x - n * _LN2_HIGH) - n * _LN2_LOW
    s = r * r
    even = 1.0 + s * (_C2 + s * (_C4 + s * (_C6 + s * (_C8 + s * (_C10 + s * _C12)))))
    odd = r * (1.0 + s * (_C3 + s * (_C5 + s * (_C7 + s * (_C9 + s * (_C11 + s * _C13))))))
    return even + odd, np.int64(n)


@inner(fast=True)
def log_one_plus(t: float) -> float:
    """ln(1 + t) for t between 0 and 1: 2 artanh s, of 1 + t or of half of that."""
    upper = t > 0.41421356237309503
    s = (t - 1.0) / (t + 3.0) if upper else t / (t + 2.0)
    q = s * s
    rest = _L9 + q * (_L11 + q * (_L13 + q * (_L15 + q * (_L17 + q * _L19))))
    return (LN2 if upper else 0.0) + s * (2.0 + q * (_L3 + q * (_L5 + q * (_L7 + q * rest))))
