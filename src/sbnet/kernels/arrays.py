"""New arrays for kernels: `np.zeros` itself is compiled once more for every shape, element, and place it is called."""

from __future__ import annotations

import numpy as np

from sbnet._types import FloatArray, IndexArray
from sbnet.kernels._compile import inner


@inner
def whole_numbers(n: int) -> IndexArray:
    """So many zeros."""
    return np.zeros(n, np.int64)


@inner
def real_numbers(n: int) -> FloatArray:
    """So many zeros."""
    return np.zeros(n, np.float64)
