"""Checks of arguments: each gives the value back, or an error that names it and says what it may be."""

from __future__ import annotations

import math
from collections.abc import Collection
from numbers import Integral, Real
from typing import TypeGuard, TypeVar

from sbnet.errors import ParameterError

_T = TypeVar("_T")
_WORDS = {0: "zero", 1: "one"}


def is_whole(value: object) -> TypeGuard[int]:
    """A whole number of Python or NumPy; True and False are not meant as numbers."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, Real)


def whole(name: str, value: object, least: int, most: int | None = None) -> int:
    """A whole number from `least` to `most`."""
    if is_whole(value) and least <= value and (most is None or value <= most):
        return int(value)
    wanted = f", {_WORDS.get(least, least)} or more" if most is None else f" from {least} to {most}"
    raise ParameterError(f"{name} is {value!r}; it must be a whole number{wanted}")


def chance(name: str, value: object) -> float:
    """A number between 0 and 1, neither of them."""
    if _is_number(value) and 0.0 < value < 1.0:
        return float(value)
    raise ParameterError(f"{name} is {value!r}; it must lie between 0 and 1")


def below_one(name: str, value: object) -> float:
    """A number from 0 up to 1, without 1."""
    if _is_number(value) and 0.0 <= value < 1.0:
        return float(value)
    raise ParameterError(f"{name} is {value!r}; it must be at least 0 and less than 1")


def positive(name: str, value: object) -> float:
    """A finite number above zero."""
    if _is_number(value) and 0.0 < value < math.inf:
        return float(value)
    raise ParameterError(f"{name} is {value!r}; it must be positive and finite")


def not_negative(name: str, value: object) -> float:
    """A finite number, zero or more."""
    if _is_number(value) and 0.0 <= value < math.inf:
        return float(value)
    raise ParameterError(f"{name} is {value!r}; it must be finite and not negative")


def tolerance(name: str, value: object) -> float:
    """Nats, zero or more; an infinity accepts anything."""
    if _is_number(value) and value >= 0.0:
        return float(value)
    raise ParameterError(f"{name} is {value!r}; it must be zero or more nats")


def choice(name: str, value: _T, options: Collection[_T]) -> _T:
    """One of a few."""
    if value in options:
        return value
    raise ParameterError(f"{name} is {value!r}; choose one of {', '.join(map(repr, options))}")
