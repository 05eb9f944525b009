"""A table of columns of two values each: its cells as they came, and filled in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from sklearn.utils._set_output import _get_output_config

from sbnet._types import HIDDEN, States
from sbnet.tables import frames
from sbnet.tables.schema import Schema, column_name
from sbnet.tables.words import bit, shown


@dataclass(frozen=True, slots=True)
class Coding:
    """The value of a column that means 0, and the one that means 1."""

    zero: Any
    one: Any

    def __str__(self) -> str:
        return f"{shown(self.zero)} = 0, {shown(self.one)} = 1"


PLAIN = Coding(0.0, 1.0)


@dataclass(frozen=True)
class Given:
    """A table as it came, and its cells as states; -1 where they are not observed."""

    table: Any
    schema: Schema
    cells: States

    def fill(self, means_of: Callable[[States], Any], certain: bool = False) -> frames.Array:
        """A table of columns of two values with means of the missing cells in their places.

        A column of zeros and ones takes means as they are, unless an answer is to be `certain`; between two other
        values there is none, and the more probable one is filled in.
        """
        rows = np.flatnonzero((self.cells == HIDDEN).any(axis=1))
        filled, codings = _stacked(self.table, self.schema, self.cells), codings_of(self.schema)
        if not len(rows):
            return filled
        found = means_of(self.cells[rows])
        words = any(isinstance(value, str) for coding in codings for value in (coding.zero, coding.one))
        filled = filled.astype(object if words else filled.dtype)  # a column of words may hold none here
        for k, coding in enumerate(codings):
            missing = rows[self.cells[rows, k] == HIDDEN]
            means = found[self.cells[rows, k] == HIDDEN, k]
            if coding == PLAIN and not certain:
                filled[missing, k] = means
            else:
                filled[missing, k] = np.where(means > 0.5, coding.one, coding.zero)
        return filled


def as_asked(estimator: Any, filled: frames.Array, X: Any) -> Any:
    """An array; or, if words and numbers are in it and a data frame was asked for, one with a type for each column."""
    kind = _get_output_config("transform", estimator)["dense"]
    if filled.dtype.kind != "O" or kind == "default":
        return filled
    columns = dict(zip(estimator.get_feature_names_out(), filled.T.tolist(), strict=True))
    frame = nw.from_dict(columns, backend=kind).to_native()
    given = frames.as_frame(X)
    index = None if given is None else getattr(given.to_native(), "index", None)
    return frame.set_axis(index) if kind == "pandas" and index is not None else frame


def codings_of(schema: Schema) -> tuple[Coding, ...]:
    """The two values of each column of a binary table."""
    found = []
    for column in schema.variables:
        zero, one = (own[0] if own else k for k, own in enumerate(column.cells))
        plain = bit(zero) == 0 and bit(one) == 1 and not isinstance(zero, str)
        found.append(PLAIN if plain else Coding(zero, one))
    return tuple(found)


def _stacked(X: Any, schema: Schema, cells: States) -> frames.Array:
    """The cells of a binary table as they came, in one array: numbers with NaN, or objects with None."""
    sheet = frames.sheet(X, schema.missing_values)
    columns = list(sheet.columns)
    if sheet.names is not None:
        place = {column_name(sheet, k): k for k in range(len(columns))}
        nothing = frames.Column("", np.full(sheet.n_rows, np.nan))
        columns = [columns[place[name]] if name in place else nothing for name in schema.names]
    numbers = all(column.is_number for column in columns)
    values = np.empty(cells.shape, dtype=np.float64 if numbers else object)
    for k, column in enumerate(columns):
        values[:, k] = column.values
    values[cells == HIDDEN] = np.nan if numbers else None
    return values
