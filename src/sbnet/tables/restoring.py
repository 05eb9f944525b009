"""Tables given back as they came: a data frame of the same library and types, an array, records, or a mapping."""

from __future__ import annotations

import importlib
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sbnet.tables import copies, frames

if TYPE_CHECKING:
    from sbnet.tables.schema import Schema


def types(table: Any, n: int) -> list[str]:
    """The types of the columns of a data frame, in its library's words; blank for other tables."""
    frame = None if isinstance(table, dict) else frames.as_frame(table)
    if frame is None:
        array = table if isinstance(table, np.ndarray) and table.dtype.names is None else None
        return ["" if array is None else str(array.dtype)] * n
    if frame.implementation.is_pandas_like():
        return [str(frame.to_native().dtypes.iloc[k]) for k in range(n)]
    return [str(kind) for kind in frame.schema.values()]


def table(schema: Schema, states: Any, rng: np.random.Generator | None) -> Any:
    """The values that rows of states stand for, in a table like the one that was learned from."""
    place = {column.name: v for v, column in enumerate(schema.variables)}
    cells = {}
    for column in schema.columns:
        if column.is_variable:
            cells[column.name] = schema.cells(column.name, states[:, place[column.name]], rng)
        else:
            cells[column.name] = [column.cells[0][0] if column.cells else None] * len(states)
    unknown, every = frames.column("", [None] * len(states)), np.ones(len(states), np.bool_)
    copies.agree(schema.columns, lambda _: unknown, {name: (every, own) for name, own in cells.items()})
    if schema.table == "mapping":
        return cells
    if schema.table == "records":
        return [dict(zip(cells, row, strict=True)) for row in zip(*cells.values(), strict=True)]
    if schema.table == "array":
        return _array(list(cells.values()), len(states), schema.columns[0].dtype if schema.columns else "")
    if schema.table in ("pandas", "modin", "cudf"):
        library = importlib.import_module("modin.pandas" if schema.table == "modin" else schema.table)
        labels = range(len(schema.columns)) if schema.is_unnamed else [column.name for column in schema.columns]
        made = [_pandas(library, cells[c.name], c) for c in schema.columns]
        return library.concat(made, axis=1).set_axis(list(labels), axis=1) if made else library.DataFrame()
    import narwhals.stable.v2 as nw

    series = [_series(nw, cells[c.name], c, schema.table) for c in schema.columns]
    return nw.concat([one.to_frame() for one in series], how="horizontal").to_native()


def filled(schema: Schema, given: Any, new: dict[int, tuple[str, Any, list[Any]]]) -> Any:
    """A table with some cells replaced: by position of a column its name, which rows, and their new cells."""
    if isinstance(given, Mapping) and not hasattr(given, "toarray"):
        return {
            name: _replaced(cells, *new[k][1:]) if k in new else cells for k, (name, cells) in enumerate(given.items())
        }
    if frames.is_records(given):
        rows = [dict(row) for row in given]
        for name, which, cells in new.values():
            for r, cell in zip(np.flatnonzero(which).tolist(), cells, strict=True):
                rows[r][name] = cell
        return rows
    frame = frames.as_frame(given)
    if frame is None:
        return _filled_array(frames.as_array(given), new)
    if frame.implementation.is_pandas_like():
        native, pandas = frame.to_native().copy(), importlib.import_module("pandas")
        for k, (name, which, cells) in new.items():
            label = native.columns[k]
            old, every = native[label], _replaced([None] * len(native), which, cells)
            if isinstance(old.dtype, pandas.CategoricalDtype):
                known = set(old.cat.categories)
                old = old.cat.add_categories([cell for cell in dict.fromkeys(cells) if cell not in known])
                fresh = pandas.Series(every, native.index, old.dtype)
            else:
                fresh = _pandas(pandas, every, schema[name]).set_axis(native.index)
            native[label] = old.where(~which, fresh)
        return native
    import narwhals.stable.v2 as nw

    columns = []
    for k, (name, which, cells) in new.items():
        series, every = frame[:, k], _replaced([None] * len(frame), which, cells)
        fresh = _series(nw, every, schema[name], schema.table).alias(series.name)
        keep = nw.new_series("keep", (~which).tolist(), nw.Boolean(), backend=series.implementation)
        columns.append(series.zip_with(keep, fresh if fresh.dtype == series.dtype else fresh.cast(series.dtype)))
    return frame.with_columns(*columns).to_native() if columns else frame.to_native()


def _replaced(cells: Any, which: Any, new: list[Any]) -> list[Any]:
    found = list(cells)
    for r, cell in zip(np.flatnonzero(which).tolist(), new, strict=True):
        found[r] = cell
    return found


def _filled_array(array: Any, new: dict[int, tuple[str, Any, list[Any]]]) -> Any:
    if array.dtype.names is not None:
        found = array.copy()
        for name, which, cells in new.values():
            found[name][which] = cells
        return found
    found = array.astype(object) if array.dtype.kind in "SU" else array.copy()
    for k, (_, which, cells) in new.items():
        found[which, k] = cells
    return found


def _pandas(library: Any, cells: list[Any], column: Any) -> Any:
    """A series of its type; where that has no missing cells, as whole numbers, of what pandas takes instead."""
    if column.dtype == "category":
        values = list(dict.fromkeys(cell for own in column.cells for cell in own))
        return library.Series(library.Categorical(cells, categories=values, ordered=column.kind == "ordered"))
    try:
        return library.Series(cells, dtype=column.dtype or None)
    except (TypeError, ValueError, OverflowError, AttributeError):
        return library.Series(cells)


def _series(nw: Any, cells: Sequence[Any], column: Any, library: str) -> Any:
    """A series of its type, or of what the library takes for the cells."""
    name = column.dtype.split("(")[0]
    kind = getattr(nw, name, None) if name not in ("Object", "Unknown", "Enum", "Decimal") else None
    if name == "Enum":
        kind = nw.Enum([cell for own in column.cells for cell in own])
    if name == "Datetime":
        told = re.fullmatch(r"Datetime\(time_unit='(\w+)', time_zone=(?:None|'(.*)')\)", column.dtype)
        kind = nw.Datetime(*told.groups()) if told else nw.Datetime()
    try:
        return nw.new_series(column.name, list(cells), kind, backend=library)
    except Exception:  # libraries differ in what they raise; without a type any of them takes the cells
        return nw.new_series(column.name, list(cells), None, backend=library)


def _array(columns: list[list[Any]], n_rows: int, dtype: str) -> Any:
    """An array of its type; of floats where numbers are missing, else of objects."""
    array = np.empty((n_rows, len(columns)), dtype=object)
    for k, cells in enumerate(columns):
        array[:, k] = cells
    missing = array == None  # noqa: E711  # cell by cell
    numbers = dtype and np.dtype(dtype).kind in "biuf"
    if numbers and missing.any():
        return np.where(missing, np.nan, array).astype(np.float64)
    return array.astype(dtype) if numbers else array
