"""Rows of a batch: one by its number, some by a slice, by their numbers or by truth values."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sbnet import checks
from sbnet._types import IndexArray
from sbnet.errors import KindError, RowError

OneRow: TypeAlias = "int | np.integer[Any]"
SomeRows: TypeAlias = "slice | Sequence[int] | Sequence[bool] | NDArray[Any]"


def are_some(key: object) -> bool:
    """Does it stand for some rows, and not for one?"""
    return isinstance(key, slice | Sequence) or (isinstance(key, np.ndarray) and key.ndim > 0)


def some(key: Any, n: int) -> IndexArray:
    """The numbers of the rows that are meant, of `n`."""
    try:
        if isinstance(key, slice):
            return np.arange(n)[key]
        rows = np.asarray(key)
    except (TypeError, ValueError):
        raise _no_rows(key) from None
    if rows.ndim != 1 or (rows.size and rows.dtype.kind not in "iub"):
        raise _no_rows(key)
    try:
        found: IndexArray = np.arange(n)[rows if rows.size else rows.astype(np.int64)]
    except IndexError as error:
        raise RowError(f"the batch has {n} rows; {error}") from None
    return found


def _no_rows(key: Any) -> KindError:
    return KindError(f"rows are a slice, their numbers or truth values; got {checks.shown(key)}")


def one(key: Any, n: int) -> int:
    """The number of the row that is meant, of `n`, counted from 0."""
    try:
        row = operator.index(key)
    except TypeError:
        raise KindError(f"a row is given by its number, a unit by its name; got {checks.shown(key)}") from None
    if not -n <= row < n:
        known = f"it has rows 0 to {n - 1}" if n else "it is empty"
        raise RowError(f"there is no row {checks.shown(row)} in this batch; {known}")
    return row % n
