"""What a variable is, for whole arrays: `kernels.thresholds` again, where one call for many numbers needs no compiler.

An unknown gate gives NaN.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from sbnet._types import BoolArray, FloatArray, States
from sbnet.kernels.codes import LEAST, NOISY_OR, SIGMOID


def _by_gate(gate: States, sigmoid: FloatArray, noisy_or: Callable[[], FloatArray]) -> FloatArray:
    """The one or the other, unit by unit; what belongs to noisy-OR units is computed only where there are some."""
    if np.all(gate == SIGMOID):
        return sigmoid
    return np.select([gate == SIGMOID, gate == NOISY_OR], [sigmoid, noisy_or()], np.nan)


def sigma(x: Any) -> FloatArray:
    """1 / (1 + e^-x)."""
    tail = np.exp(-np.abs(x))
    value: FloatArray = np.where(x >= 0.0, 1.0, tail) / (1.0 + tail)
    return value


def softplus(x: FloatArray) -> FloatArray:
    """ln(1 + e^x)."""
    value: FloatArray = np.log1p(np.exp(-np.abs(x)))
    value += np.maximum(x, 0.0)
    return value


def rarity(x: FloatArray) -> FloatArray:
    """-ln(1 - e^-x)."""
    y, half = np.maximum(x, LEAST), np.log(2.0)
    # Both sides are worked out for all: the larger of y and ln 2 keeps the second from taking the logarithm of zero.
    value: FloatArray = np.where(y < half, -np.log(-np.expm1(-y)), -np.log1p(-np.exp(-np.maximum(y, half))))
    return value


def log_p(gate: States, state: Any, x: FloatArray) -> FloatArray:
    """ln P(S | x), without loss of digits where P is near 1."""
    sigmoid = -softplus(np.where(state == 1, -x, x))
    return _by_gate(gate, sigmoid, lambda: np.where(state == 1, -rarity(x), -np.maximum(x, 0.0)))


def log_part(gate: Any, level: Any, state: Any, x: FloatArray) -> FloatArray:
    """a x - c t(x) of thresholds, as `thresholds.log_part` has it."""
    above = state >= level
    sigmoid = -softplus(np.where(above, -x, x))
    if np.any(np.greater(level, 1)):
        sigmoid[state < level - 1] = 0.0

    def noisy_or() -> FloatArray:
        value = np.where(state < level, -np.maximum(x, 0.0), 0.0)
        here = np.broadcast_to(state == level, x.shape)
        value[here] = -rarity(x[here])
        return value

    return _by_gate(gate, sigmoid, noisy_or)


def log_odds(gate: States, x: FloatArray) -> FloatArray:
    """ln P(S = 1 | x) - ln P(S = 0 | x)."""
    return _by_gate(gate, x, lambda: np.maximum(x, 0.0) - rarity(x))


def loads(gate: States, mean: FloatArray) -> tuple[FloatArray, FloatArray]:
    """a and c of units with those means."""
    return _by_gate(gate, mean, lambda: mean - 1.0), _by_gate(gate, np.ones_like(mean), lambda: mean)


def loads_of_states(gate: int, level: int, state: Any) -> tuple[FloatArray, FloatArray]:
    """a and c of a threshold for states of its variable, as `thresholds.loads` has them."""
    if gate == SIGMOID:
        return (state >= level) * 1.0, (state >= level - 1) * 1.0
    return (state < level) * -1.0, (state == level) * 1.0


def t(gate: int, x: FloatArray) -> FloatArray:
    """The function whose mean is hard."""
    return softplus(x) if gate == SIGMOID else rarity(x)


def dt(gate: int, x: FloatArray) -> FloatArray:
    """The derivative of t(x)."""
    return sigma(x) if gate == SIGMOID else -1.0 / np.expm1(np.clip(x, LEAST, 700.0))


def touching(gate: States, state: int, slope: FloatArray, low: FloatArray, high: FloatArray) -> FloatArray:
    """Where ln P(S = state | x) - slope x, a concave function, is largest between two ends: inside, or at an end."""
    wanted = state - slope  # of sigma(x)
    inside = np.clip(wanted, 1e-300, 1.0 - 2.0**-52)
    x = np.clip(np.log(inside) - np.log1p(-inside), low, high)
    sigmoid = np.where(wanted <= 0.0, low, np.where(wanted >= 1.0, high, x))
    return _by_gate(gate, sigmoid, lambda: _touching_noisy(state, slope, low, high))


def _touching_noisy(state: int, slope: FloatArray, low: FloatArray, high: FloatArray) -> FloatArray:
    """The maximum for a noisy-OR unit: -x is linear, and ln(1 - e^-x) has the derivative 1 / (e^x - 1)."""
    if state == 0:
        return np.where(slope > -1.0, low, high)
    x = np.clip(np.log1p(1.0 / np.maximum(slope, 1e-300)), low, high)
    return np.where(slope <= 0.0, high, x)


def draw(gate: States, x: FloatArray, uniform: FloatArray) -> BoolArray:
    """Is the state 1? From uniform numbers, as `gates.draw` does it."""
    tail = np.exp(-np.abs(x))
    sigmoid = uniform * (1.0 + tail) - np.where(x >= 0.0, 1.0, tail)
    on: BoolArray = _by_gate(gate, sigmoid, lambda: uniform + np.expm1(-np.maximum(x, 0.0))) < 0.0
    return on
