"""Tables given back as they came: the values of each column in its own type, in a table of the same kind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from sbnet._types import BoolArray, IndexArray
from sbnet.estimators._codings import ColumnCoding
from sbnet.tables import as_array, as_frame, is_records, sheet


@dataclass(frozen=True)
class Originals:
    """What each value of each column looked like in the table that an encoder was fitted on.

    Attributes
    ----------
    columns : tuple
        For each column its values, as a series of the table's own library or an array.
    names : tuple
        Labels of the columns.
    """

    columns: tuple[Any, ...]
    names: tuple[Any, ...]

    @classmethod
    def of(cls, X: Any, codings: Sequence[ColumnCoding]) -> Originals:
        """Take from the table the rows that have each value."""
        frame = as_frame(X)
        if frame is not None:
            parts = tuple(_taken(frame[:, k], coding.rows) for k, coding in enumerate(codings))
            return cls(parts, tuple(frame.columns))
        array = _array(X)
        parts = tuple(_picked(array[:, k], coding.rows) for k, coding in enumerate(codings))
        return cls(parts, tuple(range(len(codings))))

    def table(self, index: IndexArray) -> Any:
        """A table with these values, rows by columns; -1 is a missing cell."""
        columns = [_taken(values, index[:, k]) for k, values in enumerate(self.columns)]
        if not isinstance(columns[0], nw.Series):
            return _stacked([_picked(values, index[:, k]) for k, values in enumerate(self.columns)])
        first = columns[0].to_frame()
        return first.with_columns(*columns[1:]).to_native()

    def fill(self, X: Any, index: IndexArray) -> Any:
        """The table with some cells replaced: those where `index` is not -1."""
        frame = as_frame(X)
        if frame is None:
            return self._fill_array(_array(X), index)
        changed = [k for k in range(index.shape[1]) if np.any(index[:, k] >= 0)]
        return frame.with_columns(*[self._filled(frame[:, k], k, index[:, k]) for k in changed]).to_native()

    def _fill_array(self, array: Any, index: IndexArray) -> Any:
        filled = np.array(array)
        for k, values in enumerate(self.columns):
            rows = index[:, k] >= 0
            filled[rows, k] = values[index[rows, k]]
        return filled

    def _filled(self, given: nw.Series[Any], k: int, index: IndexArray) -> nw.Series[Any]:
        new = _taken(self.columns[k], np.maximum(index, 0)).alias(given.name)
        if new.dtype != given.dtype:
            new = new.cast(given.dtype)
        return given.zip_with(_mask(given, index < 0), _beside(new, given))


def _mask(given: nw.Series[Any], flags: BoolArray) -> nw.Series[Any]:
    mask = nw.new_series("mask", flags.tolist(), nw.Boolean(), backend=given.implementation)
    return _beside(mask, given)


def _beside(series: nw.Series[Any], given: nw.Series[Any]) -> nw.Series[Any]:
    """The series with the row labels of another, where there are such."""
    labels = nw.maybe_get_index(given)
    return series if labels is None else nw.maybe_set_index(series, index=labels)


def _array(X: Any) -> Any:
    """The cells as they are; a list of mappings as an array of objects."""
    if is_records(X):
        columns = sheet(X).names or ()
        array = np.empty((len(X), len(columns)), dtype=object)
        array[:] = [[row.get(name) for name in columns] for row in X]
        return array
    return as_array(X)


def _taken(values: Any, rows: IndexArray) -> Any:
    """These rows of a series, in its own type; those at -1 are missing."""
    if not isinstance(values, nw.Series):
        return None
    if not len(values):
        return values
    found = nw.maybe_reset_index(values[np.maximum(rows, 0).tolist()])
    if np.all(rows >= 0):
        return found
    seen = nw.new_series("seen", (rows >= 0).tolist(), nw.Boolean(), backend=values.implementation)
    return found.to_frame().select(nw.when(seen).then(nw.col(found.name))).get_column(found.name)


def _picked(values: Any, rows: IndexArray) -> Any:
    """These rows of an array; those at -1 are NaN."""
    found = np.array(values[np.maximum(rows, 0)]) if len(values) else np.full(len(rows), np.nan)
    if np.all(rows >= 0):
        return found
    found = found.astype(np.float64 if found.dtype.kind in "iufb" else object)
    found[rows < 0] = np.nan
    return found


def _stacked(columns: list[Any]) -> Any:
    """One array; of objects if its columns are of different kinds."""
    numeric = all(column.dtype.kind in "iufb" for column in columns)
    return np.column_stack(columns if numeric else [column.astype(object) for column in columns])
