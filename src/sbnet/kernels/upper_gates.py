"""What the upper bound needs to know of a gate, a line in each ladder; `sbnet.bounds.upper` has the proof."""

from __future__ import annotations

import math

from sbnet.kernels import gates
from sbnet.kernels._compile import bare
from sbnet.kernels.gates import NOISY_OR, SIGMOID, sigmoid, softplus


@bare
def bracket(gate: int, z: float, eta: float, omega: float) -> tuple[float, float, float]:
    """ln of (sum over S of [P(S | z) e^(eta S)]^(1 / omega))^omega: G of a hidden unit.

    Also its slope in eta, which is the mean of the unit, and its slope in omega, an entropy.
    """
    y = (gates.log_odds(gate, z) + eta) / omega
    mean, sum_ = sigmoid(y), softplus(y)
    return omega * sum_ + gates.log_p(gate, 0, z), mean, sum_ - mean * y


@bare
def curvature(gate: int, z: float) -> float:
    """The curvature of t, as a measure of what a split could gain: no more than 1 for a noisy-OR unit."""
    if gate == NOISY_OR:
        half = 2.0 * math.sinh(min(max(0.5 * z, 0.5), 300.0))
        return 1.0 / (half * half)
    if gate != SIGMOID:
        return math.nan
    s = sigmoid(z)
    return s * (1.0 - s)


@bare
def highest_observed(gate: int, state: int, c: float, lam: float, low: float, high: float) -> float:
    """Where in [low, high] G(c + t) - lam t of an observed unit, ln P(S | c + t) - lam t, is largest."""
    if gate == NOISY_OR:
        if state == 0:  # -(c + t) - lam t is straight
            return high if lam < -1.0 else low
        if lam <= 0.0:  # ln(1 - e^-x) rises
            return high
        return min(max(math.log1p(1.0 / lam) - c, low), high)  # its slope, 1 / (e^x - 1), falls
    if gate != SIGMOID:
        return math.nan
    slope = state - lam  # of slope t - ln(1 + e^(c + t)), which is concave
    if slope <= 0.0:
        return low
    if slope >= 1.0:
        return high
    return min(max(math.log(slope) - math.log1p(-slope) - c, low), high)


@bare
def highest_hidden(gate: int, c: float, eta: float, lam: float, low: float, high: float) -> float:
    """Where in [low, high] G(c + t) - lam t of a hidden unit is largest, with all of Hölder's weight on its own factor.

    That is sp(c + t + eta) - sp(c + t) - lam t, with sp(z) = ln(1 + e^z). Its slope is sinh(eta / 2) / (cosh(c + t +
    eta / 2) + cosh(eta / 2)) - lam: at most one local maximum inside. For a noisy-OR unit it is
    ln(e^eta + (1 - e^eta) e^-(c + t)) - lam t, convex for eta < 0 and concave for eta > 0.
    """
    if gate != SIGMOID and gate != NOISY_OR:
        return math.nan
    best, highest = low, -math.inf
    for k in range(3):  # an end is taken before the inside if they are equal
        t = low
        if k == 1:
            t = high
        elif k == 2:
            inside = noisy_turn(eta, lam) if gate == NOISY_OR else turn(eta, lam) - 0.5 * eta
            t = min(max(inside - c, low), high)
        value = softplus(gates.log_odds(gate, c + t) + eta) + gates.log_p(gate, 0, c + t) - lam * t
        if value > highest:
            best, highest = t, value
    return best


@bare
def noisy_turn(eta: float, lam: float) -> float:
    """The x at which ln(e^eta + (1 - e^eta) e^-x) has slope lam, for a concave one; 0 if there is none."""
    if eta <= 0.0 or lam <= 0.0:
        return 0.0
    return math.log(-math.expm1(-eta)) + math.log1p(1.0 / lam)


@bare
def turn(eta: float, lam: float) -> float:
    """The y with cosh y = sinh(eta / 2) / lam - cosh(eta / 2) at which the slope above falls; 0 if there is none."""
    if eta * lam <= 0.0 or abs(lam) < 1e-300:  # so flat a line: the ends decide
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
