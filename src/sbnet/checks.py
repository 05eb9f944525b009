"""Checks of arguments: each gives the value back, or an error that names it and says what it may be."""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Iterable
from importlib import import_module
from numbers import Integral, Real
from typing import Any, TypeGuard, TypeVar

import numpy as np

from sbnet.errors import MissingExtraError, ParameterError

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


def probability(name: str, value: object) -> float:
    """A number from 0 to 1, both included."""
    if _is_number(value) and 0.0 <= value <= 1.0:
        return float(value)
    raise ParameterError(f"{name} is {value!r}; it must be a probability, from 0 to 1")


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


def finite(name: str, value: object) -> float:
    """A finite number."""
    if _is_number(value) and math.isfinite(value):
        return float(value)
    raise ParameterError(f"{name} is {value!r}; it must be a finite number")


def tolerance(name: str, value: object) -> float:
    """Nats, zero or more; an infinity accepts anything."""
    if _is_number(value) and value >= 0.0:
        return float(value)
    raise ParameterError(f"{name} is {value!r}; it must be zero or more nats")


def choice(name: str, value: _T, options: Collection[_T]) -> _T:
    """One of a few."""
    if isinstance(value, Hashable) and value in options:
        return value
    raise ParameterError(f"{name} is {value!r}; choose one of {', '.join(map(repr, options))}")


def no_class(name: str, value: object) -> None:
    """A class stands where one of its instances was meant."""
    if isinstance(value, type):
        prefix = "sb." if value.__module__.startswith("sbnet.") else ""
        raise ParameterError(f"{name} is the class {value.__name__}; write {name}={prefix}{value.__name__}()")


def units(name: str, value: Any) -> list[str | int]:
    """Units as a list; one unit may stand alone."""
    if isinstance(value, str) or is_whole(value):
        return [value]
    if isinstance(value, Iterable):
        return list(value)
    raise ParameterError(f"{name} is {value!r}; give a list of units, by name or by number")


def generator(rng: Any) -> np.random.Generator:
    """The generator that a seed stands for."""
    try:
        return np.random.default_rng(rng)
    except (TypeError, ValueError):
        raise ParameterError(f"rng is {rng!r}; give a whole number, zero or more, or a numpy Generator") from None


def numbers(name: str, value: Any) -> np.ndarray[Any, np.dtype[np.float64]]:
    """An array of numbers."""
    try:
        return np.array(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise ParameterError(f"{name} is {_short(value)}; give an array of numbers, one for every unit") from None


def extra(module: str, use: str, *, of: str | None = None) -> Any:
    """A module that few need, or an error that says how to get it; extras are called as modules are, or `of`."""
    try:
        return import_module(module)
    except ImportError:
        raise MissingExtraError(f"{use} needs {module}; {how_to_install(of or module)}") from None


def how_to_install(extra: str) -> str:
    """How to get what an extra brings, for a message; the project need not be on an index to be installed."""
    return f'install it with: pip install "sbnet[{extra}]", or, in a checkout: pip install ".[{extra}]"'


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}..."
