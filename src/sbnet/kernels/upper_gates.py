"""What the upper bound needs to know of a threshold, and of a hidden variable with two states.

`sbnet.bounds.upper` has the proof.
"""

from __future__ import annotations

import math

from sbnet.kernels.codes import NOISY_OR, SIGMOID
from sbnet.kernels.compiling import inner
from sbnet.kernels.thresholds import loads, rarity, sigmoid, softplus


@inner
def peak(gate: int, level: int, state: int, lam: float) -> float:
    """The input x at which a threshold's part of ln P(v = state | x), less lam x, is largest: it is concave."""
    a, c = loads(gate, level, state)
    if c == 0.0:  # a straight line
        return math.inf if a > lam else -math.inf
    if gate == NOISY_OR:  # the slope of ln(1 - e^-x), 1 / (e^x - 1), falls
        return math.log1p(1.0 / lam) if lam > 0.0 else math.inf
    if gate != SIGMOID:
        return math.nan
    slope = a - lam  # of slope x - ln(1 + e^x)
    if slope <= 0.0:
        return -math.inf
    return math.log(slope) - math.log1p(-slope) if slope < 1.0 else math.inf


@inner
def bracket(gate: int, z: float, eta: float, omega: float) -> tuple[float, float, float]:
    """ln of (sum over both states s of [P(s | z) e^(eta s)]^(1 / omega))^omega: G of a hidden variable with two states.

    Also its derivative in eta, which is the mean, and in omega, an entropy.
    """
    log_odds, off = z, math.nan
    if gate == SIGMOID:
        off = -softplus(z)
    elif gate == NOISY_OR:
        off = -max(z, 0.0)
        log_odds = -rarity(z) - off
    y = (log_odds + eta) / omega
    mean, total = sigmoid(y), softplus(y)
    return omega * total + off, mean, total - mean * y


@inner
def curvature(gate: int, z: float) -> float:
    """The curvature of t, as a measure of what a split could gain: no more than 1 for a noisy-OR variable."""
    if gate == NOISY_OR:
        half = 2.0 * math.sinh(min(max(0.5 * z, 0.5), 300.0))
        return 1.0 / (half * half)
    if gate != SIGMOID:
        return math.nan
    s = sigmoid(z)
    return s * (1.0 - s)


@inner
def peak_hidden(gate: int, eta: float, lam: float) -> float:
    """The input x at which G(x) - lam x of a hidden variable with two states may have a local maximum, for omega = 1.

    That is sp(x + eta) - sp(x) - lam x, with sp(x) = ln(1 + e^x). Its slope is sinh(eta / 2) / (cosh(x + eta / 2) +
    cosh(eta / 2)) - lam: there is at most one. For a noisy-OR variable it is ln(e^eta + (1 - e^eta) e^-x) - lam x,
    convex for eta < 0 and concave for eta > 0.
    """
    if gate == NOISY_OR:
        return noisy_turn(eta, lam)
    return turn(eta, lam) - 0.5 * eta if gate == SIGMOID else math.nan


@inner
def highest_hidden(gate: int, z: float, eta: float, lam: float, x: float, low: float, high: float) -> float:
    """Where in [low, high] G(z + t) - lam t is largest: at low, at high, or where z + t is x, the peak inside."""
    best, most = low, -math.inf
    for k in range(3):  # an end is taken before the inside if they are equal
        t = min(max(x - z, low), high)
        if k < 2:
            t = low if k == 0 else high
        y = z + t
        if gate == SIGMOID:
            value = softplus(y + eta) - softplus(y) - lam * t
        else:
            value = softplus(max(y, 0.0) - rarity(y) + eta) - max(y, 0.0) - lam * t
        if value > most:
            best, most = t, value
    return best


@inner
def noisy_turn(eta: float, lam: float) -> float:
    """The x at which ln(e^eta + (1 - e^eta) e^-x) has slope lam, for a concave one; 0 if there is none."""
    if eta <= 0.0 or lam <= 0.0:
        return 0.0
    return math.log(-math.expm1(-eta)) + math.log1p(1.0 / lam)


@inner
def turn(eta: float, lam: float) -> float:
    """The y with cosh y = sinh(eta / 2) / lam - cosh(eta / 2) at which the slope above falls; 0 if there is none."""
    if eta * lam <= 0.0 or abs(lam) < 1e-300:  # so flat a line: low and high decide
        return 0.0
    a, ratio = 0.5 * abs(eta), 1.0 / abs(lam)
    # cosh y = e^a q, and e^a is kept apart: eta may be in the thousands
    q = 0.5 * (ratio * (1.0 - math.exp(-2.0 * a)) - 1.0 - math.exp(-2.0 * a))
    if q <= 0.0:
        return 0.0
    log_cosh = a + math.log(q)
    if log_cosh <= 0.0:
        return 0.0
    y = log_cosh + math.log1p(math.sqrt(max(1.0 - math.exp(-2.0 * log_cosh), 0.0)))  # arcosh of e^log_cosh
    return y if eta > 0.0 else -y
