"""A table given to an estimator: checked by scikit-learn's rules, with names, and read as zeros and ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from sklearn.utils._set_output import _get_output_config
from sklearn.utils.validation import check_array, validate_data

from sbnet._types import HIDDEN, BoolArray, FloatArray, States
from sbnet.errors import TableError
from sbnet.parallel.blocks import row_blocks
from sbnet.tables import frames
from sbnet.tables.schema import Schema, column_name
from sbnet.tables.words import bit, shown

_FINITE = {"ensure_all_finite": "allow-nan"}


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
    """The cells of a table as they came, numbers with NaN or objects with None, and as 0, 1 or -1 (not observed)."""

    values: frames.Array
    cells: States
    codings: tuple[Coding, ...]

    def fill(self, means_of: Callable[[States], Any], certain: bool = False) -> frames.Array:
        """The table with means of the missing cells in their places, for the rows that have some.

        A column of zeros and ones takes means as they are, unless an answer is to be `certain`; between two other
        values there is none, and the more probable one is filled in.
        """
        rows = np.flatnonzero((self.cells == HIDDEN).any(axis=1))
        if not len(rows):
            return self.values.copy()
        found = means_of(self.cells[rows])
        words = any(isinstance(value, str) for coding in self.codings for value in (coding.zero, coding.one))
        filled = self.values.astype(object if words else self.values.dtype)  # a column of words may hold none here
        for k, coding in enumerate(self.codings):
            missing = rows[self.cells[rows, k] == HIDDEN]
            means = found[self.cells[rows, k] == HIDDEN, k]
            if coding == PLAIN and not certain:
                filled[missing, k] = means
            else:
                filled[missing, k] = np.where(means > 0.5, coding.one, coding.zero)
        return filled


def checked(estimator: Any, X: Any, *, missing: Any) -> tuple[frames.Sheet, frames.Array]:
    """The columns of a table and their cells in one array, where a network has its names and no schema does."""
    gone = frames.missing_values(missing)
    sheet = _sheet(X, gone)
    if sheet is None:  # numbers, or what scikit-learn knows best how to refuse
        values = frames.without(validate_data(estimator, X, reset=False, dtype=np.float64, **_FINITE), gone)
        return frames.from_array(values), values
    if frames.as_frame(X) is not None:
        validate_data(estimator, X, reset=False, skip_check_array=True)  # names, and their order
    elif sheet.names is not None:
        sheet = _by_name(estimator, sheet)
    else:
        validate_data(estimator, np.empty((sheet.n_rows, len(sheet.columns))), reset=False, skip_check_array=True)
    sheet = replace(sheet, columns=list(sheet.columns))  # read once
    dated = next((column.name for column in sheet.columns if column.dates), None)
    if dated is not None:
        raise frames.dates(dated)
    values = _stacked(sheet)
    kind = None if values.dtype.kind == "O" else np.float64
    return sheet, check_array(values, input_name="X", dtype=kind, estimator=estimator, **_FINITE)


def cells(sheet: frames.Sheet, values: frames.Array, names: tuple[str, ...]) -> States:
    """0, 1 or -1 for each cell of zeros and ones."""
    if values.dtype.kind == "f":
        states: States = np.empty(values.shape, dtype=np.int8)
        good = True
        for block in row_blocks(*values.shape):
            states[block], right = _zeros_and_ones(values[block])
            good = good and bool(right.all())
        if good:
            return states
    columns = []
    for k, name in enumerate(names):
        column = sheet.columns[k]
        read, known = _zeros_and_ones(column.values if column.is_number else _numbers(column.values.tolist()))
        if not known.all():
            strange = int(np.flatnonzero(~known)[0])
            cell = shown(column.values[strange])
            raise TableError(
                f"column {k} ({name!r}) holds {cell} {sheet.row(strange)}; in fit it was {PLAIN}. "
                f"Ways out: recode it, or missing=[{cell}] if it marks a missing cell"
            )
        columns.append(read)
    return np.column_stack(columns)


def _zeros_and_ones(numbers: FloatArray) -> tuple[States, BoolArray]:
    """0, 1, and -1 for NaN; and which numbers are one of these."""
    observed = (numbers == 0.0) | (numbers == 1.0)
    return np.where(observed, numbers, HIDDEN).astype(np.int8), observed | np.isnan(numbers)


def _numbers(values: list[Any]) -> FloatArray:
    """The numbers that words spell; infinity where they spell none."""
    found = [np.nan if value is None else frames.as_number(value) for value in values]
    return np.array([np.inf if number is None else number for number in found])


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


def _sheet(X: Any, gone: tuple[Any, ...]) -> frames.Sheet | None:
    """The columns of a frame, of records, or of an array with words in it; None for other things."""
    if frames.as_frame(X) is not None or frames.is_records(X) or getattr(getattr(X, "dtype", None), "names", None):
        return frames.sheet(X, gone)
    if hasattr(X, "toarray"):
        return None
    try:
        array = frames.as_array(X)
    except TableError:
        return None
    return frames.from_array(array, gone) if array.ndim == 2 and array.dtype.kind in "OSU" and array.size else None


def _by_name(estimator: Any, sheet: frames.Sheet) -> frames.Sheet:
    """Records have names but no order: the columns in the order of the table that was learned from."""
    names = sheet.names or ()
    wanted = getattr(estimator, "feature_names_in_", None)
    if wanted is None or set(names) - set(wanted):
        strange = names[0] if wanted is None else min(set(names) - set(wanted))
        raise TableError(f"the records name a column {strange!r}, which the table that was learned from did not have")
    place = {name: k for k, name in enumerate(names)}
    nothing: FloatArray = np.full(sheet.n_rows, np.nan)
    columns = [sheet.columns[place[name]] if name in place else frames.Column(name, nothing) for name in wanted]
    return frames.Sheet(tuple(wanted), columns, sheet.n_rows, lambda r, k: columns[k].values[r])


def _stacked(sheet: frames.Sheet) -> frames.Array:
    """All cells in one array: of numbers, if all columns are."""
    columns = sheet.columns
    if not columns:
        return np.empty((sheet.n_rows, 0))
    if all(column.is_number for column in columns):
        return np.column_stack([column.values for column in columns])
    stacked = np.empty((sheet.n_rows, len(columns)), dtype=object)
    for k, column in enumerate(columns):
        missing = np.isnan(column.values) if column.is_number else np.zeros(sheet.n_rows, dtype=bool)
        stacked[:, k] = column.values
        stacked[missing, k] = None
    return stacked


def codings_of(schema: Schema) -> tuple[Coding, ...]:
    """The two values of each column of a binary table."""
    found = []
    for column in schema.variables:
        zero, one = (own[0] if own else k for k, own in enumerate(column.cells))
        plain = bit(zero) == 0 and bit(one) == 1 and not isinstance(zero, str)
        found.append(PLAIN if plain else Coding(zero, one))
    return tuple(found)


def stacked(X: Any, schema: Schema, cells: States) -> frames.Array:
    """The cells of a binary table as they came, in one array: numbers with NaN, or objects with None."""
    sheet = frames.sheet(X, schema.missing_values)
    if sheet.names is None:
        columns = list(sheet.columns)
    else:
        place = {column_name(sheet, k): k for k in range(len(sheet.columns))}
        nothing = frames.Column("", np.full(sheet.n_rows, np.nan))
        columns = [sheet.columns[place[name]] if name in place else nothing for name in schema.names]
    values = _stacked(replace(sheet, columns=columns))
    missing = cells == HIDDEN
    if values.dtype.kind == "f":
        values = np.where(missing, np.nan, values)
    else:
        values[missing] = None
    return values
