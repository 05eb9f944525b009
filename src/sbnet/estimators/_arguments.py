"""Checks of estimators' arguments: an error names the argument and says what it may be."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from sbnet import checks
from sbnet.errors import ParameterError
from sbnet.estimators._priors import is_auto

MOST = 2**31 - 1
"""The largest count that is taken; what a large one would need is told where it is known."""
_MOST_PARTICLES = 1_000_000


def hidden(value: Any) -> None:
    """Sizes of layers."""
    if is_auto(value) or (checks.is_whole(value) and 0 <= value <= MOST):
        return
    listed = list(value) if isinstance(value, Iterable) and not isinstance(value, str | bytes) else [value]
    if not all(checks.is_whole(size) and 1 <= size <= MOST for size in listed):
        raise ParameterError(
            f"hidden is {checks.shown(value)}; give the sizes of the hidden layers, such as (8, 24), or 'auto'"
        )


def flag(name: str, value: Any, most: int = 1) -> None:
    """Yes or no; 0 and 1 will do."""
    if not isinstance(value, bool | np.bool_) and not (checks.is_whole(value) and 0 <= value <= most):
        raise ParameterError(f"{name} is {checks.shown(value)}; give True or False")


def count(name: str, value: Any, least: int, other: str = "") -> None:
    """A whole number that a computer can count to."""
    if not checks.is_whole(value) or value < least:
        words = {0: "zero", 1: "one"}.get(least, least)
        raise ParameterError(f"{name} is {checks.shown(value)}; it must be a whole number, {words} or more{other}")
    if value > MOST:
        raise ParameterError(f"{name} is {checks.shown(value)}; at most {MOST:,} are taken")


def particles(value: Any) -> None:
    """Particles of a row, which are all in memory at once."""
    if not checks.is_whole(value) or not 0 <= value <= _MOST_PARTICLES:
        raise ParameterError(
            f"particles is {checks.shown(value)}; it must be a whole number from 0 to {_MOST_PARTICLES:,}: 256 are "
            "usual, and 0 is mean field theory"
        )


def number(name: str, value: Any, least: float, below: float, wanted: str) -> None:
    """A finite number from `least` on and below another."""
    is_number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    try:
        good = is_number and math.isfinite(value) and least <= value < below
    except OverflowError:  # a whole number that no float can hold
        good = False
    if not good:
        raise ParameterError(f"{name} is {checks.shown(value)}; {wanted}")


def threshold(value: Any) -> None:
    """A number to compare cells with; nothing is above NaN or infinity."""
    if value is not None:
        number("binarize", value, -math.inf, math.inf, "a threshold is a finite number, or None")


def label(value: Any) -> None:
    """The name of a column."""
    if value is not None and not isinstance(value, str):
        raise ParameterError(f"label is {checks.shown(value)}; give the name of a column, such as 'x3', or None")


def jobs(value: Any) -> None:
    """Threads, or minus the cores that are left alone."""
    if value is not None and not (checks.is_whole(value) and value != 0 and abs(value) <= MOST):
        raise ParameterError(f"n_jobs is {checks.shown(value)}; give a number of threads, -1 for all cores, or None")


def executor(value: Any) -> None:
    """Something that takes work."""
    if value is not None and (isinstance(value, type) or not callable(getattr(value, "submit", None))):
        raise ParameterError(f"executor is {checks.shown(value)}; give a concurrent.futures.Executor, or None")


def seed(value: Any) -> None:
    """What scikit-learn takes for a `random_state`; a whole number is not negative."""
    try:
        good = value >= 0 if checks.is_whole(value) else bool(check_random_state(value))
    except (ValueError, TypeError):
        good = False
    if not good:
        raise ParameterError(
            f"random_state is {checks.shown(value)}; give a whole number, zero or more, a RandomState or None"
        )
