"""Exponentials and logarithms that compile to vectors: polynomials, and powers of two by their bits."""

from __future__ import annotations

import math

import numpy as np

from sbnet._types import FloatArray
from sbnet.kernels._compile import inlined, vector
from sbnet.kernels.lanes import exponent, mantissa, nearest, power_of_two, where

LOG2E = 1.4426950408889634
LN2 = 0.6931471805599453
LN2_HIGH = 0.6931471803691238  # ln 2 with its last digits zero: n * LN2_HIGH is exact for n < 2**20
LN2_LOW = 1.9082149292705877e-10
_C2, _C3, _C4, _C5, _C6, _C7, _C8, _C9, _C10, _C11, _C12, _C13 = (1.0 / math.factorial(k) for k in range(2, 14))
_L3, _L5, _L7, _L9, _L11, _L13, _L15, _L17, _L19 = (2.0 / k for k in range(3, 21, 2))


@inlined
def cosh_sinh(r: float) -> tuple[float, float]:
    """cosh r and sinh r for |r| <= ln(2) / 2: e^r and e^-r are their sum and their difference."""
    s = r * r
    even = 1.0 + s * (_C2 + s * (_C4 + s * (_C6 + s * (_C8 + s * (_C10 + s * _C12)))))
    odd = r * (1.0 + s * (_C3 + s * (_C5 + s * (_C7 + s * (_C9 + s * (_C11 + s * _C13))))))
    return even, odd


@inlined
def exp_minus(x: float) -> float:
    """e^-x for x >= 0."""
    x = where(x - 800.0, 800.0, x)
    n = nearest(x * LOG2E)
    even, odd = cosh_sinh((x - n * LN2_HIGH) - n * LN2_LOW)
    return (even - odd) * power_of_two(0.0 - n)


@inlined
def split(x: float) -> tuple[float, float]:
    """m in [1/2, 1) and n with x = m 2^n, for an ordinary positive x."""
    return mantissa(x), exponent(x)


@inlined
def log(x: float) -> float:
    """ln x for an ordinary positive x."""
    m, n = split(x)
    small = where(0.7071067811865476 - m, 1.0, 0.0)
    m, n = m + small * m, n - small
    s = (m - 1.0) / (m + 1.0)
    r = s * s
    tail = _L9 + r * (_L11 + r * (_L13 + r * (_L15 + r * (_L17 + r * _L19))))
    return n * LN2 + s * (2.0 + r * (_L3 + r * (_L5 + r * (_L7 + r * tail))))


@vector
def entropy(mu: FloatArray) -> float:
    """The entropy of independent units with means inside (0, 1)."""
    total = 0.0
    for j in range(np.uint64(len(mu))):
        total -= mu[j] * log(mu[j]) + (1.0 - mu[j]) * log(1.0 - mu[j])
    return total
