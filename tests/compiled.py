"""Functions of tests that call kernels: compiled with them, whoever imports numba first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sbnet.kernels.compiling import INTERPRETED, Deferred


def compiled(function: Callable[..., Any]) -> Any:
    """As a kernel, but not kept in a file: that would outlive a change of the package."""
    return function if INTERPRETED else Deferred(function, {"error_model": "numpy"})
