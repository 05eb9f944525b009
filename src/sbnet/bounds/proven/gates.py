"""What a variable with two states is, in ball arithmetic: `kernels.thresholds` and `kernels.upper` again.

An unknown gate gives NaN.
"""

from __future__ import annotations

import math
from typing import Any

from sbnet.bounds.proven import log_sum, softplus
from sbnet.kernels.codes import LEAST, NOISY_OR, SIGMOID
from sbnet.kernels.compiling import plain
from sbnet.kernels.upper import peak_hidden


def t(gate: int, x: Any) -> Any:
    """The function whose mean is hard."""
    if gate == NOISY_OR:
        return _rarity(x)
    return softplus(x) if gate == SIGMOID else x * math.nan


def _rarity(x: Any) -> Any:
    """-ln(1 - e^-x)."""
    return -(-(-x.max(type(x)(LEAST))).expm1()).log()


def loads(gate: int, state: Any) -> tuple[Any, Any]:
    """a and c of a unit with that state, or mean."""
    if gate == NOISY_OR:
        return state - 1, state
    return (state, 1) if gate == SIGMOID else (math.nan, math.nan)


def log_p(gate: int, state: int, x: Any) -> Any:
    """ln P(S | x)."""
    a, c = loads(gate, state)
    return a * x - c * t(gate, x)


def log_odds(gate: int, x: Any) -> Any:
    """ln P(S = 1 | x) - ln P(S = 0 | x)."""
    if gate == NOISY_OR:
        return x - t(gate, x)
    return x if gate == SIGMOID else x * math.nan


def bracket(gate: int, x: Any, eta: Any, omega: Any) -> Any:
    """G of a hidden unit."""
    return omega * softplus((log_odds(gate, x) + eta) / omega) + log_p(gate, 0, x)


def highest_observed(gate: int, state: int, c: Any, lam: Any, low: Any, high: Any) -> Any:
    """Not below the maximum over [low, high] of ln P(S | c + t) - lam t.

    A concave function is below its tangents; the tangent where floating point sees the maximum is nearly level.
    """
    if gate == NOISY_OR and state == 0:
        return -c + _larger(-(1 + lam) * low, -(1 + lam) * high)
    if gate == NOISY_OR:
        return _highest_present(c, lam, low, high)
    if gate != SIGMOID:
        return c * math.nan
    arb, slope = type(c), state - lam
    s, limits = float(slope), (float(low), float(high))
    if s <= 0.0 or s >= 1.0:
        t = arb(limits[s >= 1.0])
    else:
        t = arb(min(max(math.log(s) - math.log1p(-s) - float(c), limits[0]), limits[1]))
    value = slope * t - softplus(c + t)
    rise = slope - 1 / (1 + (-(c + t)).exp())
    return state * c + value + _larger(rise * (low - t), rise * (high - t))


def _highest_present(c: Any, lam: Any, low: Any, high: Any) -> Any:
    """Not below the maximum for a noisy-OR unit that is on, whose probability is constant below LEAST."""
    least = type(c)(LEAST)
    at = high if lam <= 0 else type(c)(min(max(math.log1p(1.0 / float(lam)) - float(c), float(low)), float(high)))
    x = (c + at).max(least)
    first, last = (c + low).max(least), (c + high).max(least)
    rise = 1 / x.expm1() - lam
    best = -_rarity(x) - lam * (x - c) + _larger(rise * (first - x), rise * (last - x))
    return best if c + low >= least else _larger(best, -_rarity(least) + _larger(-lam * low, -lam * (least - c)))


def highest_hidden(gate: int, c: Any, eta: Any, lam: Any, low: Any, high: Any) -> Any:
    """Not below the maximum over [low, high] of g(t) = sp(c + t + eta) - sp(c + t) - lam t, sp(z) = ln(1 + e^z).

    For eta > 0, g is convex up to t = m = -c - eta / 2 and concave from there: the maximum is at low, at high, at m, or
    below a tangent in the concave part. For eta < 0 it is the mirror image, since sp(z) = z + sp(-z). A noisy-OR unit
    has ln(e^eta + (1 - e^eta) e^-(c + t)) - lam t, convex for eta < 0 and concave for eta > 0.
    """
    if gate not in (SIGMOID, NOISY_OR):
        return c * math.nan
    if eta.contains(0):  # sp rises by at most eta
        return eta.abs_upper() + _larger(-lam * low, -lam * high)
    if gate == NOISY_OR:
        return _highest_noisy(c, eta, lam, low, high)
    if eta < 0:
        return eta + highest_hidden(gate, -c, -eta, -lam, -high, -low)

    def g(t: Any) -> Any:
        return softplus(c + t + eta) - softplus(c + t) - lam * t

    at_limits = _larger(g(low), g(high))
    m = -c - eta / 2
    if m >= high:
        return at_limits
    # The derivative falls from m on, and is zero where floating point says, or too far out to matter.
    x = plain(peak_hidden)(gate, float(eta), float(lam)) if lam > 1e-300 else math.inf
    t = type(c)(min(max(x - float(c), float(low)), float(high)))
    if not t >= m:  # the middle of a ball may be on the wrong side of m
        t = m.upper()
    rise = 1 / (1 + (-(c + t + eta)).exp()) - 1 / (1 + (-(c + t)).exp()) - lam
    first = low if m <= low else m
    tangent = g(t) + _larger(rise * (first - t), rise * (high - t))
    return _larger(at_limits, _larger(g(first), tangent))


def _highest_noisy(c: Any, eta: Any, lam: Any, low: Any, high: Any) -> Any:
    """Not below the maximum for a hidden noisy-OR unit, whose probability is constant below LEAST."""
    least = type(c)(LEAST)

    def g(x: Any) -> Any:
        return log_sum([-x, eta - _rarity(x)]) - lam * (x - c)

    first, last, more = (c + low).max(least), (c + high).max(least), least * (1 + abs(lam))
    if eta < 0:
        return _larger(g(first), g(last)) + more
    x = type(c)(plain(peak_hidden)(NOISY_OR, float(eta), float(lam))).max(first).min(last)
    on, off = eta - x, -x  # the derivative of ln(e^eta - (e^eta - 1) e^-x)
    rise = (on.exp() - off.exp()) / (eta.exp() - on.exp() + off.exp()) - lam
    return g(x) + _larger(rise * (first - x), rise * (last - x)) + more


def _larger(one: Any, other: Any) -> Any:
    return one.max(other)
