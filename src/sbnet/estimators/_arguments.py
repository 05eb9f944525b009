"""What the arguments of estimators may be: each is looked at before anything is learned, and an error names it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils import check_random_state

from sbnet import checks
from sbnet._types import FloatArray
from sbnet.errors import ParameterError
from sbnet.estimators import _learning, _priors
from sbnet.estimators._priors import is_auto
from sbnet.inference import check_differentiable
from sbnet.tables import frames

if TYPE_CHECKING:
    from sbnet.estimators.density import SBNDensity

MOST = 2**31 - 1
"""The largest count that is taken; what a large one would need is told where it is known."""

_MOST_PARTICLES = 1_000_000


def check(density: SBNDensity) -> None:
    """Every argument of a density, in their order."""
    hidden(density.hidden)
    flag("autoregressive", density.autoregressive)
    unless_auto("column_mixtures", density.column_mixtures, lambda name, value: count(name, value, 0, ", or 'auto'"))
    count("orders", density.orders, 1)
    label(density.label)
    unless_auto("epochs", density.epochs, lambda name, value: count(name, value, 1, ", or 'auto'"))
    count("batch_size", density.batch_size, 1)
    unless_auto("learning_rate", density.learning_rate, lambda name, value: positive(name, value, ", or 'auto'"))
    checks.no_class("optimizer", density.optimizer)
    _learning.optimizer(density)
    _priors.by_group(density.prior)
    if density.solver is not None:
        check_differentiable(density.solver)
    unless_auto("weight_scale", density.weight_scale, _not_negative)
    if density.validation_fraction is not None:
        fraction("validation_fraction", density.validation_fraction)
    if density.patience is not None:
        count("patience", density.patience, 1, ", or None")
    threshold(density.binarize)
    frames.missing_values(density.missing)
    jobs(density.n_jobs)
    executor(density.executor)
    seed(density.random_state)
    flag("verbose", density.verbose, MOST)


def unless_auto(name: str, value: Any, check: Callable[[str, Any], Any]) -> None:
    """Check an argument that may be left to be chosen."""
    if not is_auto(value):
        check(name, value)


def hidden(value: Any) -> None:
    """Sizes of layers."""
    if is_auto(value) or (checks.is_whole(value) and 0 <= value <= MOST):
        return
    listed = list(value) if isinstance(value, Iterable) and not isinstance(value, str | bytes) else [value]
    if not all(checks.is_whole(size) and 1 <= size <= MOST for size in listed):
        raise ParameterError(
            f"hidden is {short(value)}; give the sizes of the hidden layers, such as (8, 24), or 'auto'"
        )


def flag(name: str, value: Any, most: int = 1) -> None:
    """Yes or no; 0 and 1 will do."""
    if not isinstance(value, bool | np.bool_) and not (checks.is_whole(value) and 0 <= value <= most):
        raise ParameterError(f"{name} is {short(value)}; give True or False")


def count(name: str, value: Any, least: int, other: str = "") -> None:
    """A whole number that a computer can count to."""
    if not checks.is_whole(value) or value < least:
        words = {0: "zero", 1: "one"}.get(least, least)
        raise ParameterError(f"{name} is {short(value)}; it must be a whole number, {words} or more{other}")
    if value > MOST:
        raise ParameterError(f"{name} is {short(value)}; at most {MOST:,} are taken")


def numbers(value: Any) -> FloatArray:
    """An array of numbers, with NaN in the place of what is none."""
    try:
        return np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        return np.array([np.nan])


def particles(value: Any) -> None:
    """Particles of a row, which are all in memory at once."""
    if not checks.is_whole(value) or not 0 <= value <= _MOST_PARTICLES:
        raise ParameterError(
            f"particles is {short(value)}; it must be a whole number from 0 to {_MOST_PARTICLES:,}: 256 are usual, and "
            "0 is mean field theory"
        )


def real(value: Any) -> float:
    """A number as one of floating point; NaN for anything else."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.integer | np.floating):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.inf


def positive(name: str, value: Any, other: str = "") -> None:
    """A finite number above zero."""
    if not 0.0 < real(value) < math.inf:
        raise ParameterError(f"{name} is {short(value)}; it must be positive and finite{other}")


def _not_negative(name: str, value: Any) -> None:
    if not 0.0 <= real(value) < math.inf:
        raise ParameterError(f"{name} is {short(value)}; it must be finite and not negative, or 'auto'")


def fraction(name: str, value: Any) -> None:
    """A share of the rows."""
    if not 0.0 < real(value) < 1.0:
        raise ParameterError(f"{name} is {short(value)}; a fraction lies between 0 and 1")


def label(value: Any) -> None:
    """The name of a column."""
    if value is not None and not isinstance(value, str):
        raise ParameterError(f"label is {short(value)}; give the name of a column, such as 'x3', or None")


def threshold(value: Any) -> None:
    """A number to compare cells with; nothing is above NaN or infinity."""
    if value is not None and not math.isfinite(real(value)):
        raise ParameterError(f"binarize is {short(value)}; a threshold is a finite number, or None")


def jobs(value: Any) -> None:
    """Threads, or minus the cores that are left alone."""
    if value is not None and not (checks.is_whole(value) and value != 0 and abs(value) <= MOST):
        raise ParameterError(f"n_jobs is {short(value)}; give a number of threads, -1 for all cores, or None")


def executor(value: Any) -> None:
    """Something that takes work."""
    if value is not None and (isinstance(value, type) or not callable(getattr(value, "submit", None))):
        raise ParameterError(f"executor is {short(value)}; give a concurrent.futures.Executor, or None")


def seed(value: Any) -> None:
    """What scikit-learn takes for a `random_state`; a whole number is not negative."""
    try:
        good = value >= 0 if checks.is_whole(value) else bool(check_random_state(value))
    except (ValueError, TypeError):
        good = False
    if not good:
        raise ParameterError(
            f"random_state is {short(value)}; give a whole number, zero or more, a RandomState or None"
        )


def short(value: Any) -> str:
    """A value for a message."""
    try:
        text = repr(value)
    except ValueError:  # a whole number of thousands of digits
        text = f"a number of {value.bit_length():,} bits"
    return text if len(text) <= 60 else f"{text[:60]}…"
