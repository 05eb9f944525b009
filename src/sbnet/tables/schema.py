"""Which columns of a table are what variables: one reader for evidence, estimators and the command."""

from __future__ import annotations

import datetime
import html
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sbnet import checks
from sbnet._types import BoolArray, FloatArray
from sbnet.errors import (
    CodingWarning,
    FileFormatError,
    ParameterError,
    TableError,
    enumerated,
    hint,
    in_line,
    short,
)
from sbnet.tables import copies, frames, headers, restoring
from sbnet.tables.kinds import IGNORED, TICK_BOX, Column, Sample, decide, listing, yes_or_no
from sbnet.tables.sizes import sizes

__all__ = ["Column", "Schema"]


@dataclass(frozen=True)
class Schema:
    """How the columns of a table are read, each as a variable with states or as one that is left out.

    Attributes
    ----------
    columns : tuple of Column
        All columns of the table, in its order.
    table : str
        What the table was: "array", "records", "mapping", or the library of its data frame.
    missing_values : tuple
        What counts as missing beside NaN, None and blanks.
    second_line : tuple of str
        The first row, where it named columns once more; such a row is one of missing cells. Empty where there is none.
    n_rows : int
        Of the table that was learned from.

    Examples
    --------
    >>> from sbnet.tables.schema import Schema
    >>> schema = Schema.learn({"smoker": ["yes", "no", "no", None], "size": ["M", "S", "L", "S"]})
    >>> schema["size"].states
    ('S', 'M', 'L')
    >>> schema.encode({"smoker": ["yes", None], "size": ["L", "S"]})
    array([[ 1,  2],
           [-1,  0]], dtype=int16)
    """

    columns: tuple[Column, ...]
    table: str = "mapping"
    missing_values: tuple[Any, ...] = ()
    second_line: tuple[str, ...] = ()
    n_rows: int = 0

    @classmethod
    def learn(
        cls, table: Any, columns: Mapping[str, Any] | None = None, *, missing: Any = (), weights: Any = None,
        classes: NDArray[np.int64] | None = None,
    ) -> Schema:  # fmt: skip
        """Decide how each column is read.

        Parameters
        ----------
        table
            A data frame of any library, an array, a mapping from names to columns, or a list of mappings.
        columns : mapping, optional
            What is known better: ``{"age": "numbers", "id": "ignore", "grade": ["D", "C", "B", "A"]}``. Kinds are
            "yes/no", "words", "ordered", "numbers", "dates", "tick box" and "ignore".
        missing
            Values that mean "missing", beside NaN, None and blanks: ``("don't know", -99)``.
        weights : array-like, optional
            Of rows; they count as repetitions. A row of weight zero is no row.
        classes : array of int, optional
            The class of each row, by its number: numbers are cut into intervals where it changes, too.
        """
        gone = frames.missing_values(missing)
        sheet = frames.sheet(_unique(table), gone)
        said = _said(columns, [column_name(sheet, k) for k in range(len(sheet.columns))])
        counted = np.ones(sheet.n_rows) if weights is None else np.asarray(weights, np.float64)
        rows = np.flatnonzero(counted > 0.0)
        second = _first_row(sheet) if headers.is_second_line(sheet.columns, sheet.names) else ()
        rows = rows[rows > 0] if second else rows
        binary = _all_binary(sheet) if not said else None
        if binary is not None:
            names = [column_name(sheet, k) for k in range(len(sheet.columns))]
            found = [yes_or_no(name, int(n)) for name, n in zip(names, binary, strict=True)]
            gone = (*gone, -1.0) if sheet.kind == "array" else gone
        else:
            found = [_decide(sheet, k, rows, counted, said, classes) for k in range(len(sheet.columns))]
        types = restoring.types(_unique(table), len(found))
        columns_ = tuple(replace(column, dtype=t) for column, t in zip(found, types, strict=True))
        schema = cls(copies.marked(columns_, sheet, rows), sheet.kind, gone, second, len(rows))
        _warn(schema)
        return schema

    # --- variables ----------------------------------------------------------------------------------------------------

    @cached_property
    def variables(self) -> tuple[Column, ...]:
        """The columns that are variables."""
        return tuple(column for column in self.columns if column.is_variable)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the variables."""
        return tuple(column.name for column in self.variables)

    @property
    def states(self) -> dict[str, tuple[str, ...]]:
        """The states of each variable, as :func:`sbnet.from_edges` takes them."""
        return {column.name: column.states for column in self.variables}

    @property
    def ordered(self) -> BoolArray:
        """Whether the states of each variable have an order."""
        return np.array([column.ordered for column in self.variables], np.bool_)

    @property
    def n_states(self) -> NDArray[np.int64]:
        """How many states each variable has."""
        return np.array([len(column.states) for column in self.variables], np.int64)

    @property
    def is_binary(self) -> bool:
        """Whether every column is one of 0 and 1, or of yes and no."""
        return all(column.states == ("no", "yes") and column.kind != TICK_BOX for column in self.columns)

    def __getitem__(self, name: str) -> Column:
        for column in self.columns:
            if column.name == name:
                return column
        known = [column.name for column in self.columns]
        raise KeyError(f"the table has no column {name!r}{hint(name, known, '')}")

    def __len__(self) -> int:
        return len(self.columns)

    # --- rows of states -----------------------------------------------------------------------------------------------

    def encode(self, table: Any) -> NDArray[np.int16]:
        """Rows of states, one column for each variable; -1 where a cell is missing.

        Data frames, mappings and records are matched by name, and columns that are not there are missing; arrays have
        all columns, in their order. A word that was never seen is "other" where that is a state, and else missing,
        with a warning; a number is always known.
        """
        sheet = frames.sheet(_unique(table), self.missing_values)
        place = self._matched(sheet)
        rows = np.full((sheet.n_rows, len(self.variables)), -1, np.int16)
        strange: dict[str, list[Any]] = {}
        begin = int(bool(self.second_line) and _first_row(sheet) == self.second_line)
        for v, column in enumerate(self.variables):
            k = place.get(column.name)
            if k is None:
                continue
            cells = sheet.columns[k]
            rows[begin:, v], new = column.read(replace(cells, values=cells.values[begin:]))
            if new.any():
                strange[column.name] = list(dict.fromkeys(cells.values[begin:][new].tolist()))
        if strange:
            told = [f"{name!r} ({enumerated(list(map(str, values)), 60)})" for name, values in strange.items()]
            more = f" and {len(told) - 5} more columns" if len(told) > 5 else ""
            text = f"values that were not there in fitting count as missing: {', '.join(told[:5])}{more}"
            warnings.warn(in_line(text), CodingWarning, stacklevel=2)
        return rows

    def fill(
        self, table: Any, rows: Any, probabilities: Sequence[FloatArray] | None = None, *,
        rng: np.random.Generator | None = None,
    ) -> Any:  # fmt: skip
        """The table as it is, but for missing cells, which have the values that rows of states stand for.

        Cells with values that were not there in fitting stay as they are. Given `probabilities` of states, rows by
        states for each variable, a number is the one seen that is nearest to its mean. Columns that are copies of
        one another agree. Columns that are left out stay as they are too, but for those that never change.
        """
        sheet = frames.sheet(_unique(table), self.missing_values)
        place, cells = self._matched(sheet), dict[str, tuple[BoolArray, list[Any]]]()
        states, missing = np.asarray(rows), self._missing(sheet, place)
        for v, column in enumerate(self.variables):
            own = missing.get(column.name)
            if own is None or not own.any():
                continue
            if probabilities is not None and rng is None and column.cuts:
                new = column.nearest(probabilities[v][own])
            else:
                new = self.cells(column.name, states[own, v], rng)
            cells[column.name] = own, new
        there = [column for column in self.columns if column.name in place]
        copies.agree(there, lambda name: sheet.columns[place[name]], cells)
        for column in self.columns:
            if not column.is_variable and column.cells and (own := missing.get(column.name)) is not None and own.any():
                cells[column.name] = own, [column.cells[0][0]] * int(own.sum())
        return restoring.filled(self, _unique(table), {place[name]: (name, *new) for name, new in cells.items()})

    def _missing(self, sheet: frames.Sheet, place: Mapping[str, int]) -> dict[str, BoolArray]:
        """Cells that are missing, by column; blanks of tick boxes are not, and words between numbers are."""
        found = {}
        begin = int(bool(self.second_line) and _first_row(sheet) == self.second_line)
        for column in self.columns:
            if column.name not in place or column.kind == TICK_BOX:
                continue
            cells = sheet.columns[place[column.name]]
            own = np.isnan(column.sizes(cells)) if column.cuts else cells.missing
            own[:begin] = False
            found[column.name] = own
        return found

    def decode(self, rows: Any, rng: np.random.Generator | None = None) -> Any:
        """A table, of the kind that was learned from, with the values that these rows of states stand for.

        Of an interval it is a value seen in it: the median, or given `rng` a draw. Columns that are left out are blank,
        but for those that never change.
        """
        states = np.asarray(rows)
        if states.ndim != 2 or states.shape[1] != len(self.variables):
            raise ParameterError(f"rows have shape {states.shape}; expected (rows, {len(self.variables)})")
        if states.dtype.kind not in "iub" or (states.size and (states < -1).any()):
            raise ParameterError("rows must hold whole numbers: those of states, or -1 for a missing cell")
        big = (states >= self.n_states).any(axis=0)
        if big.any():
            column = self.variables[int(np.flatnonzero(big)[0])]
            raise ParameterError(f"rows hold states of {column.name!r} that it has not: there are {len(column.states)}")
        return restoring.table(self, states, rng)

    def cells(self, name: str, states: Any, rng: np.random.Generator | None = None) -> list[Any]:
        """Values of one column that these states stand for; None for a missing one."""
        own = self[name].cells
        numbers = np.asarray(states).tolist()
        if rng is None:
            return [None if s < 0 else own[s][len(own[s]) // 2] for s in numbers]
        draws = rng.random(len(numbers)).tolist()
        return [None if s < 0 else own[s][int(u * len(own[s]))] for s, u in zip(numbers, draws, strict=True)]

    def _matched(self, sheet: frames.Sheet) -> dict[str, int]:
        """The number of the column of each name."""
        if sheet.names is not None and not self.is_unnamed:
            return {column_name(sheet, k): k for k in range(len(sheet.columns))}
        if len(sheet.columns) != len(self.columns):
            raise TableError(f"the table has {len(sheet.columns)} columns; {len(self.columns)} were learned from")
        return {column.name: k for k, column in enumerate(self.columns)}

    @property
    def is_unnamed(self) -> bool:
        """Whether the columns have no names of their own."""
        return [column.name for column in self.columns] == [f"x{k}" for k in range(len(self.columns))]

    # --- words --------------------------------------------------------------------------------------------------------

    def __str__(self) -> str:
        return listing(self.columns)

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"

    def to_dict(self) -> dict[str, Any]:
        """The schema as values of JSON."""
        columns = [
            {k: _to_json(v) for k, v in asdict(column).items() if v or k in ("name", "kind")} for column in self.columns
        ]
        told: dict[str, Any] = {"columns": columns, "table": self.table, "missing_values": list(self.missing_values)}
        told["n_rows"] = self.n_rows
        return told | ({"second_line": list(self.second_line)} if self.second_line else {})

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Schema:
        """What :meth:`to_dict` gave."""
        try:
            columns = tuple(Column(**{k: _from_json(v) for k, v in column.items()}) for column in given["columns"])
            for column in columns:
                if len(column.cells) < len(column.states):
                    raise ValueError(f"column {column.name!r} has too few cells")
            second = tuple(given.get("second_line", ()))
            return cls(columns, given["table"], tuple(given["missing_values"]), second, int(given["n_rows"]))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise FileFormatError(f"the schema of a table cannot be read: {error}") from None


def column_name(sheet: frames.Sheet, k: int) -> str:
    """The name of a column, or x0, x1, …"""
    return f"x{k}" if sheet.names is None else sheet.names[k]


def _unique(table: Any) -> Any:
    """A data frame whose columns have names that differ; anything else as it is."""
    labels = list(getattr(table, "columns", ())) if hasattr(table, "set_axis") else []
    if len(set(map(str, labels))) == len(labels) or not all(isinstance(label, str) for label in labels):
        return table
    return table.set_axis(list(headers.unique(labels)), axis=1)


def _first_row(sheet: frames.Sheet) -> tuple[str, ...]:
    cells = [column.values[0] if sheet.n_rows else None for column in sheet.columns]
    return tuple("" if cell is None or cell != cell else str(cell) for cell in cells)


def _said(columns: Mapping[str, Any] | None, names: Sequence[str]) -> Mapping[str, Any]:
    if columns is None:
        return {}
    example = 'say how to read some, as in columns={"age": "numbers", "id": "ignore"}'
    given = checks.mapping("columns", columns, example, ParameterError)
    strange = next((name for name in given if name not in names), None)
    if strange is not None:
        raise ParameterError(f"columns names {strange!r}, which is not in the table{hint(strange, names)}")
    return given


def _decide(
    sheet: frames.Sheet, k: int, rows: Any, weights: FloatArray, said: Mapping[str, Any],
    classes: NDArray[np.int64] | None,
) -> Column:  # fmt: skip
    column = replace(sheet.columns[k], name=column_name(sheet, k))
    if len(rows) < sheet.n_rows:
        column = replace(column, values=column.values[rows])
    own = None if classes is None else classes[rows]
    sample = Sample(column, weights[rows], lambda r: sheet.given(int(rows[r]), k), own)
    return decide(sample, said.get(column.name))


def _all_binary(sheet: frames.Sheet) -> list[int] | None:
    """How many cells are missing in each column of a table of zeros and ones alone; None for any other table.

    In arrays, which have no other mark for whole numbers, -1 is a missing cell.
    """
    found = []
    for column in sheet.columns:
        if column.categories is not None or column.dates or not _spells_bits(column):
            return None
        missing = np.isnan(sizes(column))
        if sheet.kind == "array":
            missing |= column.values == -1.0
        elif column.is_number and np.any(column.values == -1.0):
            return None
        if sheet.kind != "array" and missing.any() and not np.any(sizes(column) == 0.0):
            return None  # ticked or blank
        found.append(int(missing.sum()))
    return found if len(sheet.columns) else None


def _spells_bits(column: frames.Column) -> bool:
    """Whether all cells are 0, 1 or -1, in figures or as numbers, or missing."""
    if column.is_number:
        return bool(np.all(np.isin(column.values, (0.0, 1.0, -1.0)) | np.isnan(column.values)))
    return all(cell in (None, "0", "1", 0.0, 1.0) for cell in set(column.values.tolist()))


def _warn(schema: Schema) -> None:
    """Name the columns that were read in a way that may surprise."""
    columns, texts = schema.columns, list[str]()
    if schema.second_line:
        texts.append(
            "the first row seems to name columns once more: it is taken as one of missing cells; drop it to be sure"
        )
    out = [f"{short(c.name)} ({c.about})" for c in columns if c.kind == IGNORED and c.about != "as you said"]
    if out:
        texts.append(f"left out: {enumerated(out, 400)}; columns= (--columns in the command) says how to read one")
    boxes = [short(column.name) for column in columns if column.kind == TICK_BOX]
    if boxes:
        text = f"one value and blanks are read as ticked or not, in {enumerated(boxes, 300)}"
        texts.append(f'{text}. If a blank is a missing answer, say columns={{name: "ignore"}} (--columns NAME=ignore)')
    figures = [short(column.name) for column in columns if column.in_figures]
    if figures:
        text = f"whole numbers such as 19750103 are read as dates, in {enumerated(figures, 300)}"
        texts.append(f'{text}. If they are numbers, say columns={{name: "numbers"}} (--columns NAME=numbers)')
    doubts = [f"{short(c.name)}: {', '.join(c.doubts)}" for c in columns if c.doubts]
    if doubts:
        text = "values that may mark missing cells; if they do, list them in missing= (--missing):"
        texts.append(f"{text} {'; '.join(doubts[:10])}{'; …' * (len(doubts) > 10)}")
    for text in texts:
        warnings.warn(text, CodingWarning, stacklevel=4)


_TAGS: tuple[tuple[str, type], ...] = (
    ("datetime", datetime.datetime),
    ("date", datetime.date),
    ("time", datetime.time),
)


def _to_json(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return [_to_json(one) for one in value]
    for tag, kind in _TAGS:
        if isinstance(value, kind):
            return {tag: value.isoformat()}  # type: ignore[attr-defined]
    return {"seconds": value.total_seconds()} if isinstance(value, datetime.timedelta) else value


def _from_json(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_from_json(one) for one in value)
    if isinstance(value, dict):
        (tag, text), kinds = next(iter(value.items())), dict(_TAGS)
        return datetime.timedelta(seconds=text) if tag == "seconds" else kinds[tag].fromisoformat(text)  # type: ignore[attr-defined]
    return value
