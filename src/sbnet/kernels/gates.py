"""What a unit is: its distribution given its input x. The only place that knows how many gates there are.

A unit with state S and input x = h + sum_j J_j S_j contributes

    ln P(S | x) = a(S) x - c(S) t(x)

to ln P, with a and c linear in S: under a factorial distribution its mean is a(mu) <x> - c(mu) <t(x)>.

    gate        a(S)    c(S)    t(x)
    sigmoid     S       1       ln(1 + e^x)
    noisy-OR    S - 1   S       -ln(1 - e^-x)

The input of a noisy-OR unit is never negative: x = -ln P(S = 0), and every cause that is on adds -ln(1 - p). A unit
without a leak and without a cause that is on has x = 0 and cannot be on; so that no sum meets an infinity, its chance
counts as LEAST there.

A gate that has no line in a ladder below gives NaN, which shows at once; it never borrows another's.
"""

from __future__ import annotations

import math

from sbnet.kernels._compile import bare
from sbnet.kernels.codes import LEAST as LEAST
from sbnet.kernels.codes import NOISY_OR as NOISY_OR
from sbnet.kernels.codes import SIGMOID as SIGMOID


@bare
def softplus(x: float) -> float:
    """ln(1 + e^x)."""
    return max(x, 0.0) + math.log1p(math.exp(-abs(x)))


@bare
def sigmoid(x: float) -> float:
    """1 / (1 + e^-x), without overflow."""
    t = math.exp(-abs(x))
    return 1.0 / (1.0 + t) if x >= 0.0 else t / (1.0 + t)


@bare
def rarity(x: float) -> float:
    """-ln(1 - e^-x): how unlikely it is that none of the causes of a noisy-OR unit fails to work."""
    y = max(x, LEAST)
    return -math.log(-math.expm1(-y)) if y < 0.6931471805599453 else -math.log1p(-math.exp(-y))


@bare
def t(gate: int, x: float) -> float:
    """The function whose mean is hard."""
    if gate == SIGMOID:
        return softplus(x)
    return rarity(x) if gate == NOISY_OR else math.nan


@bare
def t_slope(gate: int, x: float) -> float:
    """Its slope."""
    if gate == SIGMOID:
        return sigmoid(x)
    return -1.0 / math.expm1(min(max(x, LEAST), 700.0)) if gate == NOISY_OR else math.nan


@bare
def p(gate: int, x: float) -> float:
    """The chance of S = 1."""
    if gate == SIGMOID:
        return sigmoid(x)
    return -math.expm1(-max(x, LEAST)) if gate == NOISY_OR else math.nan


@bare
def log_p(gate: int, state: int, x: float) -> float:
    """ln P(S | x), without loss of digits where the chance is near 1."""
    if gate == SIGMOID:
        return -softplus(-x if state == 1 else x)
    if gate == NOISY_OR:
        return -rarity(x) if state == 1 else -max(x, 0.0)
    return math.nan


@bare
def log_odds(gate: int, x: float) -> float:
    """ln P(S = 1 | x) - ln P(S = 0 | x)."""
    if gate == SIGMOID:
        return x
    return max(x, 0.0) - rarity(x) if gate == NOISY_OR else math.nan


@bare
def loads(gate: int, mean: float) -> tuple[float, float]:
    """a and c of a unit with that mean."""
    if gate == SIGMOID:
        return mean, 1.0
    return (mean - 1.0, mean) if gate == NOISY_OR else (math.nan, math.nan)


@bare
def weighs(gate: int) -> float:
    """The slope of c in S: does a unit's own state weigh its term? (That of a is 1 for every gate.)"""
    if gate == SIGMOID:
        return 0.0
    return 1.0 if gate == NOISY_OR else math.nan


@bare
def slope(gate: int, state: float, x: float) -> float:
    """The slope of a(S) x - c(S) t(x) in x: what a unit with a known input learns by, eq. (35)."""
    if gate == SIGMOID:
        return state - sigmoid(x)
    if gate == NOISY_OR:
        return state - 1.0 + state / math.expm1(min(max(x, LEAST), 700.0))
    return math.nan


@bare
def draw(gate: int, x: float, uniform: float) -> int:
    """A state from a uniform number: u < P(S = 1 | x), written so that neither tail loses digits or overflows."""
    if gate == NOISY_OR:
        return 1 if uniform < -math.expm1(-x) else 0
    if gate != SIGMOID:
        return -1
    if x >= 0.0:
        return 1 if uniform * (1.0 + math.exp(-x)) < 1.0 else 0
    tail = math.exp(x)
    return 1 if uniform * (1.0 + tail) < tail else 0
