"""Rows of a batch: one by its number, some by a slice, by their numbers or by truth values."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sbnet._types import IndexArray

OneRow: TypeAlias = "int | np.integer[Any]"
SomeRows: TypeAlias = "slice | Sequence[int] | Sequence[bool] | NDArray[Any]"


def are_some(key: object) -> bool:
    """Does it stand for some rows, and not for one?"""
    return isinstance(key, slice | Sequence) or (isinstance(key, np.ndarray) and key.ndim > 0)


def some(key: Any, n: int) -> IndexArray:
    """The numbers of the rows that are meant, of `n`."""
    if isinstance(key, slice):
        return np.arange(n)[key]
    rows = np.asarray(key)
    if rows.size and (rows.ndim != 1 or rows.dtype.kind not in "iub"):
        raise TypeError(f"rows are a slice, their numbers or truth values; got {key!r}")
    try:
        found: IndexArray = np.arange(n)[rows if rows.size else rows.astype(np.int64)]
    except IndexError as error:
        raise IndexError(f"the batch has {n} rows; {error}") from None
    return found


def one(key: Any, n: int) -> int:
    """The number of the row that is meant, of `n`, counted from 0."""
    try:
        row = operator.index(key)
    except TypeError:
        raise TypeError(f"a row is given by its number, a unit by its name; got {key!r}") from None
    if not -n <= row < n:
        known = f"it has rows 0 to {n - 1}" if n else "it is empty"
        raise IndexError(f"there is no row {row} in this batch; {known}")
    return row % n
