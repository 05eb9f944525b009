"""Tables given back as they came: the values of each column in its own type, in a table of the same kind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from sbnet._types import IndexArray
from sbnet.estimators.codings import ColumnCoding
from sbnet.tables.frames import as_array, as_frame, is_records


@dataclass(frozen=True)
class Originals:
    """What each value of each column looked like in the table that an encoder was fitted on.

    Attributes
    ----------
    columns : tuple
        For each column its values, as a series of the table's own library or an array.
    names : tuple of str
        Of the columns.
    records : bool
        Whether the table was a list of mappings.
    """

    columns: tuple[Any, ...]
    names: tuple[str, ...]
    records: bool

    @classmethod
    def of(cls, X: Any, codings: Sequence[ColumnCoding], names: Sequence[str]) -> Originals:
        """Take from the table the rows that have each value."""
        frame = as_frame(X)
        if frame is None:
            array = _array(X, names)
            parts = tuple(_picked(array[:, k], coding.rows) for k, coding in enumerate(codings))
        else:
            parts = tuple(_taken(frame[:, k], coding.rows) for k, coding in enumerate(codings))
        return cls(parts, tuple(names), is_records(X))

    def table(self, index: IndexArray) -> Any:
        """A table with these values, rows by columns; -1 is a missing cell."""
        if isinstance(self.columns[0], nw.Series):
            first, *others = (_taken(values, index[:, k]) for k, values in enumerate(self.columns))
            return first.to_frame().with_columns(*others).to_native()
        columns = [_picked(values, index[:, k]) for k, values in enumerate(self.columns)]
        numeric = all(column.dtype.kind in "iufb" for column in columns)
        array = np.column_stack(columns if numeric else [column.astype(object) for column in columns])
        return [dict(zip(self.names, row, strict=True)) for row in array.tolist()] if self.records else array

    def fill(self, X: Any, index: IndexArray) -> Any:
        """The table with some cells replaced: those where `index` is not -1."""
        frame = as_frame(X)
        if frame is not None:
            changed = [k for k in range(index.shape[1]) if np.any(index[:, k] >= 0)]
            return frame.with_columns(*[self._filled(frame[:, k], k, index[:, k]) for k in changed]).to_native()
        filled = np.array(_array(X, self.names))
        for k, values in enumerate(self.columns):
            rows = index[:, k] >= 0
            filled[rows, k] = values[index[rows, k]]
        if not is_records(X):
            return filled
        return [{**old, **dict(zip(self.names, row, strict=True))} for old, row in zip(X, filled, strict=True)]

    def _filled(self, given: nw.Series[Any], k: int, index: IndexArray) -> nw.Series[Any]:
        new = _taken(self.columns[k], np.maximum(index, 0)).alias(given.name)
        keep = nw.new_series("keep", (index < 0).tolist(), nw.Boolean(), backend=given.implementation)
        categorical = given.implementation.is_pandas() and given.dtype in (nw.Categorical, nw.Enum)
        # pandas does not put different categories together; those of the training table have all the values
        if categorical and given.to_native().dtype != (kind := new.to_native().dtype):
            mixed = given.cast(nw.Object()).zip_with(keep, new.cast(nw.Object()))
            return nw.from_native(mixed.to_native().astype(kind), series_only=True)
        return given.zip_with(keep, new if new.dtype == given.dtype else new.cast(given.dtype))


def _array(X: Any, names: Sequence[str]) -> Any:
    """The cells as they are; a list of mappings as an array of objects."""
    if not is_records(X):
        return as_array(X)
    array = np.empty((len(X), len(names)), dtype=object)
    array[:] = [[row.get(name) for name in names] for row in X]
    return array


def _taken(values: Any, rows: IndexArray) -> Any:
    """These rows of a series, in its own type; those at -1 are missing."""
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
