"""Sixteen values of xi: the term from its products, and Newton's method for the best xi.

With f(xi) = xi <x> + ln(A + B) and phi = B / (A + B), eq. (32): f' = <x> - (1 - phi) m_A - phi m_B, and
f'' = (1 - phi) v_A + phi v_B + phi (1 - phi) (m_B - m_A)^2, which is never negative; m and v are the means and
variances of x under the distributions tilted by e^{-xi x} and e^{(1-xi) x}.
"""

from __future__ import annotations

from sbnet.kernels.compiling import inner
from sbnet.kernels.structs import LANES
from sbnet.kernels.vector import HALF, LN2, MANTISSA, exp_minus, log

_ROUNDING = 1e-13
_SHORT = 1e-3


@inner(fast=True)
def rescale(block):
    """Bring the products back into [1/2, 1): their powers of two are kept apart."""
    for i in range(LANES):
        block.exponent_a[i] += float((block.digits_a[i] >> 52) - 1022)
        block.exponent_b[i] += float((block.digits_b[i] >> 52) - 1022)
        block.digits_a[i] = (block.digits_a[i] & MANTISSA) | HALF
        block.digits_b[i] = (block.digits_b[i] & MANTISSA) | HALF


@inner(fast=True)
def evaluate(block):
    """Term and shares, eq. (32), from the products."""
    for i in range(LANES):
        log_a = block.exponent_a[i] * LN2 - block.xi[i] * block.low[i]
        log_b = block.exponent_b[i] * LN2 + (1.0 - block.xi[i]) * block.high[i]
        block.f_a[i], block.arg[i] = log_b - log_a, abs(log_b - log_a)
        block.t[i] = block.xi[i] * block.x[i] + max(log_a, log_b)
    exp_minus(block)
    for i in range(LANES):
        a = (block.power[i] if block.f_a[i] > 0.0 else 1.0) * block.product_a[i]
        b = (1.0 if block.f_a[i] > 0.0 else block.power[i]) * block.product_b[i]
        over = 1.0 / (a + b)
        block.share_a[i], block.share_b[i], block.power[i] = a * over, b * over, a + b
    log(block)
    for i in range(LANES):
        block.t[i] += block.arg[i]


@inner(fast=True)
def newton(block, enough):
    """What a step of each xi promises in all; where that is enough, it is taken, and `check` must follow."""
    total = 0.0
    for i in range(LANES):
        apart, phi = block.mean_b[i] - block.mean_a[i], block.share_b[i]
        slope = (block.x[i] - block.low[i]) - block.mean_a[i] - phi * apart
        curvature = block.share_a[i] * (block.variance_a[i] + phi * apart * apart) + phi * block.variance_b[i]
        new = block.xi[i] - block.free[i] * slope / max(curvature, 1e-300)  # zero: inputs are known
        block.next_xi[i] = min(max(new, 0.0), 1.0)
        block.gain[i] = 0.5 * abs(slope * (block.next_xi[i] - block.xi[i]))
        total += block.gain[i]
    if total > enough:
        for i in range(LANES):
            block.old_xi[i], block.limit[i], block.xi[i] = block.xi[i], block.t[i], block.next_xi[i]
    return total


@inner(fast=True)
def check(block):
    """After a step: by how much it missed what it promised; did an xi go too far?

    A step after which a term has risen beyond rounding is halved, and a short one is taken back.
    """
    missed = risen = 0.0
    for i in range(LANES):
        far, limit = abs(block.xi[i] - block.old_xi[i]), block.limit[i]
        missed += abs(limit - block.t[i] - block.gain[i])
        bad = far > 0.0 and block.t[i] - limit > _ROUNDING * (1.0 + abs(limit))
        risen += 1.0 if bad else 0.0
        shorter = 0.5 * (block.old_xi[i] + block.xi[i]) if far > _SHORT else block.old_xi[i]
        block.xi[i] = shorter if bad else block.xi[i]
    return missed, risen > 0.0
