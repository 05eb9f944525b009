"""Compiled kernels: arrays in, arrays out. They check nothing and raise nothing; their callers do.

A module is imported when it is first asked for, ``kernels.lasso.regress(...)``: the compiler takes half a second to
import, and small exact answers do without it.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return import_module(f"{__name__}.{name}")
    except ModuleNotFoundError as error:
        if error.name != f"{__name__}.{name}":
            raise
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None
