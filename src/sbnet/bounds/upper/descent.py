"""SciPy's limited-memory BFGS for a few dozen parameters.

It is for callers within :class:`OneThread`: threads for vectors as short as these make a descent 2 to 5 times as long
on two cores, and longer on busy ones.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.optimize import minimize
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped,unused-ignore]

from sbnet._types import FloatArray

_MEMORY = 12


class OneThread:
    """Linear algebra in one thread, in the whole process, while anyone is inside: the last to leave restores it."""

    _lock, _inside = threading.Lock(), 0
    _limits: Any = None

    def __enter__(self) -> None:
        with self._lock:
            if not OneThread._inside:
                OneThread._limits = threadpool_limits(1)
            OneThread._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            OneThread._inside -= 1
            if not OneThread._inside:
                OneThread._limits.restore_original_limits()


def descend(evaluate: Callable[[FloatArray, FloatArray], float], x: FloatArray, max_steps: int, tol: float) -> float:
    """Lower a function from x, in place; stop when a step gains less than `tol`. x is evaluated last.

    `evaluate` gives the value at its first argument, and puts the gradient into its second.
    """
    gradient = np.empty_like(x)
    before = evaluate(x, gradient)
    options = {"maxiter": max_steps, "ftol": tol / max(abs(before), 1.0), "gtol": 0.0, "maxcor": _MEMORY}
    found = minimize(
        lambda y: (evaluate(y, gradient), gradient.copy()), x, jac=True, method="L-BFGS-B", options=options
    )
    if found.fun < before:
        x[:] = found.x
    return evaluate(x, gradient)
