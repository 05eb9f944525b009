"""Checks of arguments: each gives the value back, or an error that names it and says what it may be."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Collection, Iterable, Mapping
from importlib import import_module
from numbers import Integral, Real
from typing import Any, TypeGuard, TypeVar

import numpy as np

from sbnet.errors import MissingExtraError, ParameterError, SBNetError

_T = TypeVar("_T")
_WORDS = {0: "zero", 1: "one"}
MOST = 2**63 - 1
"""The largest whole number that arrays and kernels can count to."""


def is_whole(value: object) -> TypeGuard[int]:
    """A whole number of Python or NumPy; True and False are not meant as numbers."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def whole(name: str, value: object, least: int, most: int | None = None) -> int:
    """A whole number from `least` to `most`, or to the largest that can be counted to."""
    if is_whole(value) and least <= value <= (MOST if most is None else most):
        return int(value)
    wanted = f", {_WORDS.get(least, least)} or more" if most is None else f" from {least} to {most}"
    if most is None and is_whole(value) and value > MOST:
        wanted += ", below 2**63"
    raise ParameterError(f"{name} is {shown(value)}; it must be a whole number{wanted}")


def _range(inside: Callable[[float], bool], wanted: str) -> Callable[[str, object], float]:
    """A check for a number in a range, `wanted` being the way out."""

    def check(name: str, value: object) -> float:
        try:
            number = float(value) if isinstance(value, Real) else math.nan  # which no range holds
        except OverflowError:
            number = math.nan
        if inside(number):
            return number
        raise ParameterError(f"{name} is {shown(value)}; {wanted}")

    return check


fraction = _range(lambda x: 0.0 < x < 1.0, "it must lie between 0 and 1")
probability = _range(lambda x: 0.0 <= x <= 1.0, "it must be a probability, from 0 to 1")
below_one = _range(lambda x: 0.0 <= x < 1.0, "it must be at least 0 and less than 1")
positive = _range(lambda x: 0.0 < x < math.inf, "it must be positive and finite")
not_negative = _range(lambda x: 0.0 <= x < math.inf, "it must be finite and not negative")
finite = _range(math.isfinite, "it must be a finite number")
tolerance = _range(lambda x: x >= 0.0, "it must be zero or more nats")  # an infinity accepts anything


def positive_or_infinite(name: str, value: object, wanted: str) -> float:
    return _range(lambda x: x > 0.0, wanted)(name, value)


def flag(name: str, value: object) -> bool:
    """True or False; 0 and 1 are taken for them."""
    if isinstance(value, bool | np.bool_) or (is_whole(value) and value in (0, 1)):
        return bool(value)
    raise ParameterError(f"{name} is {shown(value)}; it must be True or False")


def choice(name: str, value: _T, options: Collection[_T]) -> _T:
    if any(isinstance(value, type(option)) and value == option for option in options):
        return value
    raise ParameterError(f"{name} is {shown(value)}; choose one of {', '.join(map(repr, options))}")


def text(name: str, value: object) -> str:
    if isinstance(value, str):
        return value
    raise ParameterError(f"{name} is {shown(value)}; it must be a text")


def no_class(name: str, value: object) -> None:
    """A class stands where one of its instances was meant."""
    if isinstance(value, type):
        prefix = "sb." if value.__module__.startswith("sbnet.") else ""
        raise ParameterError(f"{name} is the class {value.__name__}; write {name}={prefix}{value.__name__}()")


def settings(value: object, kind: type[_T]) -> _T:
    """A record of settings; the one with all defaults if there is none."""
    if value is None:
        return kind()
    if isinstance(value, kind):
        return value
    raise ParameterError(f"settings is {shown(value)}; write settings={kind.__name__}(threads=1), for example")


def units(name: str, value: Any) -> list[str | int]:
    """Units as a list; one unit may stand alone."""
    if isinstance(value, str) or is_whole(value):
        return [value]
    return listed(name, value, "give a list of variables, by name or by number")


def listed(name: str, value: Any, wanted: str, error: type[SBNetError] = ParameterError) -> list[Any]:
    """The items of anything that has some, `wanted` being the way out; a text is not a list of its letters."""
    try:
        if isinstance(value, Iterable) and not isinstance(value, str | bytes):
            return list(value)
    except TypeError:  # an array without axes has no items, and says so only when asked for them
        pass
    raise error(f"{name} is {shown(value)}; {wanted}")


def mapping(name: str, value: Any, wanted: str, error: type[SBNetError] = ParameterError) -> Mapping[Any, Any]:
    """A mapping, `wanted` being the way out."""
    if isinstance(value, Mapping):
        return value
    raise error(f"{name} is {shown(value)}; {wanted}")


def callbacks(value: Any) -> list[Callable[[int, Any, float], Any]]:
    """Functions that can be called after an epoch."""
    wanted = "give a list of functions of the epoch, the network and the mean bound"
    if callable(value):
        raise ParameterError("callbacks is a function; give a list of them")
    found = listed("callbacks", value, wanted)
    for k, function in enumerate(found):
        if isinstance(function, type) or not callable(function) or not _takes_three(function):
            raise ParameterError(f"callbacks[{k}] is {shown(function)}; {wanted}")
    return found


def _takes_three(function: Callable[..., Any]) -> bool:
    """Whether it can be called with three arguments, as far as it says."""
    try:
        inspect.signature(function).bind(1, None, 0.0)
    except TypeError:
        return False
    except ValueError:  # some functions of other languages do not say
        pass
    return True


def generator(rng: Any, name: str = "rng") -> np.random.Generator:
    try:
        return np.random.default_rng(rng)
    except (TypeError, ValueError):
        raise ParameterError(
            f"{name} is {shown(rng)}; give a whole number, zero or more, or a numpy Generator"
        ) from None


def floats(value: Any) -> np.ndarray[Any, np.dtype[np.float64]]:
    """An array of numbers, NaN where it is masked; a TypeError, ValueError or OverflowError says why it is none."""
    if isinstance(value, np.ma.MaskedArray) and value.dtype.kind in "biuf":
        value = np.ma.filled(value.astype(np.float64), np.nan)
    kind = np.asarray(value).dtype.kind
    if kind in "cmM":  # NumPy would drop the imaginary parts, and count the days
        raise TypeError("these are complex" if kind == "c" else "these are dates or times")
    return np.asarray(value, dtype=np.float64)


def numbers(
    name: str, value: Any, wanted: str = "give an array of numbers, one for every variable"
) -> np.ndarray[Any, np.dtype[np.float64]]:
    """An array of numbers of its own, `wanted` being the way out."""
    try:
        return np.array(floats(value))
    except (TypeError, ValueError, OverflowError):
        raise ParameterError(f"{name} is {shown(value)}; {wanted}") from None


def axes(value: Any) -> Any:
    from matplotlib.axes import Axes  # whoever draws has it already

    if isinstance(value, Axes):
        return value
    raise ParameterError(f"ax is {shown(value)}; give matplotlib axes, such as plt.subplots()[1]")


def extra(module: str, use: str, *, of: str | None = None) -> Any:
    """A module that few need, or an error that says how to get it; extras are called as modules are, or `of`."""
    try:
        return import_module(module)
    except ImportError:
        raise MissingExtraError(f"{use} needs {module}; {how_to_install(of or module)}") from None


def how_to_install(extra: str) -> str:
    """How to get what an extra brings, for a message; the project need not be on an index to be installed."""
    return f'install it with: pip install "sbnet[{extra}]", or, in a checkout: pip install ".[{extra}]"'


def shown(value: object, most: int = 60) -> str:
    """A value for a message: short, whatever it is."""
    try:
        text = repr(value.item() if isinstance(value, np.generic) else value)
    except Exception:  # numbers of many thousand digits, and objects that cannot show themselves
        text = f"a {type(value).__name__}"
    return text if len(text) <= most else f"{text[: most - 1]}…"
