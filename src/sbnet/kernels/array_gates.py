"""What a unit is, for whole arrays: `kernels.gates` again, where one call for many numbers needs no compiled kernel.

An unknown gate gives NaN.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sbnet._types import BoolArray, FloatArray, States
from sbnet.kernels.gates import SIGMOID


def _known(gate: States, value: FloatArray) -> FloatArray:
    return value if np.all(gate == SIGMOID) else np.where(gate == SIGMOID, value, np.nan)


def softplus(x: FloatArray) -> FloatArray:
    """ln(1 + e^x)."""
    value: FloatArray = np.log1p(np.exp(-np.abs(x)))
    value += np.maximum(x, 0.0)
    return value


def log_p(gate: States, state: Any, x: FloatArray) -> FloatArray:
    """ln P(S | x), without loss of digits where the chance is near 1."""
    return _known(gate, -softplus(np.where(state == 1, -x, x)))


def log_odds(gate: States, x: FloatArray) -> FloatArray:
    """ln P(S = 1 | x) - ln P(S = 0 | x)."""
    return _known(gate, x)


def slope(gate: States, state: Any, x: FloatArray) -> FloatArray:
    """The slope of ln P(S | x) in x."""
    tail = np.exp(-np.abs(x))
    return _known(gate, state - np.where(x >= 0.0, 1.0, tail) / (1.0 + tail))


def draw(gate: States, x: FloatArray, uniform: FloatArray) -> BoolArray:
    """Is the state 1? From uniform numbers, as `gates.draw` does it."""
    tail = np.exp(-np.abs(x))
    on: BoolArray = _known(gate, uniform * (1.0 + tail)) < np.where(x >= 0.0, 1.0, tail)
    return on
