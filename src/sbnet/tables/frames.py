"""Any table, read in one place: columns with names, whose cells are numbers, words, or missing.

A table is a NumPy array (of objects and masked ones too), a SciPy sparse matrix, a list of rows, a list of mappings, a
mapping from names to columns, or any data frame that narwhals knows: pandas, polars, pyarrow, Modin and others. What
the cells of a column mean is the business of :mod:`sbnet.tables.schema`.
"""

from __future__ import annotations

import datetime
import functools
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from numbers import Real
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sbnet import checks
from sbnet._types import FloatArray
from sbnet.errors import TableError

if TYPE_CHECKING:
    import narwhals.stable.v2 as nw

Array: TypeAlias = NDArray[Any]

_NUMERIC = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_ABSENT = frozenset({"", "na", "nan", "<na>", "n/a", "null"})
_NO_FRAMES = (np.ndarray, dict, list, tuple)
_DATES = (datetime.date, datetime.time, datetime.timedelta, np.datetime64, np.timedelta64)


@dataclass(frozen=True, slots=True)
class Column:
    """One column: numbers and truth values as float64 with NaN where missing, all else as objects with None there.

    Text is without the blanks around it. `categories` are those of a categorical column, in their own order, which
    counts if it is `ordered`. Dates are seconds since 1970, durations and times of a day seconds too.
    """

    name: str
    values: Array
    categories: tuple[Any, ...] | None = None
    ordered: bool = False
    dates: bool = False

    @property
    def is_number(self) -> bool:
        """Whether the values are float64."""
        return self.values.dtype.kind == "f"

    @property
    def missing(self) -> NDArray[np.bool_]:
        """Which cells are missing."""
        if self.is_number:
            return np.isnan(self.values)
        return np.array([cell is None for cell in self.values.tolist()], np.bool_)


@dataclass(frozen=True, slots=True)
class Sheet:
    """A table as columns; `names` is None where it had none, and columns are then called x0, x1, …

    Columns are made when they are asked for, so that a long table does not cost several of its size. For messages,
    `given` tells a cell as it came, by row and column. `kind` is "array", "records", "mapping", or the library of a
    data frame.
    """

    names: tuple[str, ...] | None
    columns: Sequence[Column]
    n_rows: int
    given: Callable[[int, int], Any]
    kind: str = "array"

    def row(self, r: int) -> str:
        """What to call a row in a message."""
        return f"in row {r}"


class _Columns(Sequence[Column]):
    """Columns that are read when they are asked for."""

    def __init__(self, count: int, read: Callable[[int], Column]) -> None:
        self._count, self._read = count, read

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, k: Any) -> Any:
        return self._read(range(self._count)[k])


def sheet(X: Any, missing: Iterable[Any] | Any = ()) -> Sheet:
    """Any table as columns; cells that are equal to one in `missing` count as missing, beside NaN, None and NA."""
    gone = missing_values(missing)
    if isinstance(X, Mapping) and not hasattr(X, "toarray"):
        for name, cells in X.items():
            if not isinstance(name, str) or isinstance(cells, str | bytes) or not hasattr(cells, "__len__"):
                raise TableError(f"column {brief(name)} is {brief(cells)}; give a list of cells, under a name")
        lengths = {name: len(cells) for name, cells in X.items()}
        if len(set(lengths.values())) > 1:
            raise TableError(f"the columns of the table differ in length: {checks.shown(lengths)}")
        return from_columns(X, next(iter(lengths.values()), 0), gone, "mapping")
    frame = as_frame(X)
    if frame is not None:
        return from_frame(frame, names_of(frame), gone)
    if is_records(X):  # the columns are their keys, in the order of their first appearance
        names = list(dict.fromkeys(key for row in X for key in row))
        for name in names:
            if not isinstance(name, str):
                raise TableError(f"the records have a key {name!r}; the columns of a table are named by text")
        return from_columns({name: [row.get(name) for row in X] for name in names}, len(X), gone, "records")
    array = as_array(X)
    if array.dtype.names is not None and array.ndim == 1:
        return from_columns({name: array[name] for name in array.dtype.names}, len(array), gone)
    if array.ndim != 2:
        raise TableError(f"a table has rows and columns; this one has {array.ndim} dimension{'s' * (array.ndim != 1)}")
    return from_array(array, gone)


def missing_values(missing: Iterable[Any] | Any) -> tuple[Any, ...]:
    """What a user lists as missing; one value alone may stand without a list."""
    if isinstance(missing, tuple) and not missing:
        return ()
    if isinstance(missing, str | bytes) or not isinstance(missing, Iterable):
        missing = (missing,)
    elif isinstance(missing, np.ndarray):
        missing = missing.ravel()  # one without axes is one value
    return tuple(clean for clean in (_clean(value, "missing=") for value in missing) if clean is not None)


def as_frame(X: Any) -> nw.DataFrame[Any] | None:
    """A data frame of any kind, or None if `X` is none; one that is not computed yet is refused."""
    if isinstance(X, _NO_FRAMES):
        return None
    import narwhals.stable.v2 as nw  # not before someone has a data frame
    from narwhals.exceptions import DuplicateError

    try:
        frame = nw.from_native(nw.to_native(X, pass_through=True), pass_through=True)
    except DuplicateError:
        labels = list(getattr(X, "column_names", getattr(X, "columns", ())))
        twice = next(label for k, label in enumerate(labels) if label in labels[:k])
        raise TableError(f"the table has two columns {twice!r}; rename one of them") from None
    if isinstance(frame, nw.LazyFrame):
        raise TableError(
            f"the table is a lazy {type(X).__name__}; give the table itself, with .collect() or .compute()"
        )
    return frame if isinstance(frame, nw.DataFrame) else None


def is_records(X: Any) -> bool:
    """Whether `X` is a list of mappings."""
    return isinstance(X, Sequence) and len(X) > 0 and all(isinstance(row, Mapping) for row in X)


def as_array(X: Any) -> Array:
    """An array of numbers or of objects; masked cells are NaN."""
    if isinstance(X, np.ma.MaskedArray):
        number = X.dtype.kind in "biuf"
        return np.ma.filled(X.astype(np.float64 if number else object), np.nan)
    if hasattr(X, "toarray"):  # a scipy sparse matrix: absent entries are zeros, as everywhere
        return np.asarray(X.toarray())
    if not isinstance(X, np.ndarray | Sequence) and not hasattr(X, "__array__"):
        raise TableError(f"evidence is a mapping, an array or a table; got {type(X).__name__}")
    try:
        array = np.asarray(X)
    except ValueError:
        raise TableError("the rows of the evidence differ in length") from None
    if array.dtype.kind in "SU":  # numpy turns [0, "1"] into two strings; keep what was given
        array = np.asarray(X, dtype=object)
    return array


def from_columns(cells: Mapping[str, Any], n_rows: int, gone: tuple[Any, ...] = (), kind: str = "array") -> Sheet:
    """Named columns of cells of any kind."""
    names = tuple(cells)
    columns = _Columns(len(names), lambda k: column(names[k], cells[names[k]], gone))
    return Sheet(names, columns, n_rows, lambda r, k: cells[names[k]][r], kind)


def column(name: str, cells: Array | Sequence[Any], gone: tuple[Any, ...] = ()) -> Column:
    """A column from an array or a list of any kind."""
    values = _objects(cells)
    kind = values.dtype.kind
    if kind == "b":
        return Column(name, values.astype(np.float64))
    if kind in "iuf":
        return Column(name, without(values.astype(np.float64, copy=False), gone))
    if kind in "mM":
        return Column(name, _seconds(values), dates=True)
    return _from_objects(name, values, gone)


def without(values: FloatArray, gone: tuple[Any, ...]) -> FloatArray:
    """Numbers, with NaN in the place of those that count as missing."""
    numbers = [value for value in map(as_number, gone) if value is not None]
    return np.where(np.isin(values, numbers), np.nan, values) if numbers else values


def as_number(value: Any) -> float | None:
    """The number that a cell is or, if it is text, spells; None for all other cells."""
    if isinstance(value, str):
        return float(value) if _NUMERIC.fullmatch(value) else None
    return float(value)


def is_number(value: Any, number: float) -> bool:
    """Whether a cell of any kind is this number, or text that spells it."""
    return isinstance(value, str | Real) and as_number(value) == number


def from_frame(frame: nw.DataFrame[Any], names: tuple[str, ...] | None, gone: tuple[Any, ...] = ()) -> Sheet:
    """The columns of a data frame under `names`, if it has any."""
    n = len(frame.columns)
    called = names or [f"x{k}" for k in range(n)]
    columns = _Columns(n, lambda k: _from_series(called[k], frame[:, k], gone))
    series = functools.cache(lambda k: frame[:, k])  # cell by cell that would take ten times as long
    return Sheet(names, columns, len(frame), lambda r, k: series(k)[r], frame.implementation.name.lower())


def names_of(frame: nw.DataFrame[Any]) -> tuple[str, ...] | None:
    """Text; or None for the labels 0, 1, … of a frame made without names, which is an array in disguise.

    Other labels are neither: columns 2 and 0 of such a frame, taken by position, would be the wrong ones.
    """
    labels: list[Any] = list(frame.columns)
    if are_default(labels):
        return None
    for label in labels:
        if not isinstance(label, str):
            raise TableError(
                f"the table has a column labelled {label!r}; columns are matched by names. Rename them, "
                "or give an array, such as frame.to_numpy(), to match by position"
            )
    return tuple(labels)


def are_default(labels: list[Any]) -> bool:
    """Whether these are the labels 0, 1, … that a frame has if nobody named its columns."""
    return labels == list(range(len(labels))) and not any(isinstance(label, bool) for label in labels)


def _from_series(name: str, series: nw.Series[Any], gone: tuple[Any, ...]) -> Column:
    import narwhals.stable.v2 as nw

    kind = series.dtype
    if kind in (nw.Datetime, nw.Duration) and series.implementation.is_pandas():
        if getattr(kind, "time_zone", None):
            series = series.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
        return Column(name, _seconds(np.asarray(series.to_numpy())), dates=True)
    if kind.is_temporal():
        return column(name, series.to_list(), gone)
    if kind.is_nested():
        raise _nested(name, kind)
    if kind in (nw.Categorical, nw.Enum):  # by way of a list: arrays of pyarrow's lose what is missing
        native = series.to_native()
        cells = _from_objects(name, _objects(series.to_list()), gone)
        categories = [_clean(value, name) for value in series.cat.get_categories().to_list()]
        ordered = kind == nw.Enum or bool(getattr(getattr(native, "type", None), "ordered", False))
        kept = tuple(value for value in categories if value is not None and not _listed(value, gone))
        return Column(name, cells.values, kept, ordered)
    if kind == nw.Boolean:
        return Column(name, np.asarray(series.cast(nw.Float64).to_numpy(), dtype=np.float64))
    return column(name, series.to_numpy(), gone)


def from_array(array: Array, gone: tuple[Any, ...] = ()) -> Sheet:
    """The columns of a 2-D array."""
    columns = _Columns(array.shape[1], lambda k: column(f"x{k}", array[:, k], gone))
    return Sheet(None, columns, len(array), lambda r, k: array[r, k])


def _objects(cells: Any) -> Array:
    """A 1-D array of the cells as they are; numpy would look into lists, and turn numbers beside text into text."""
    return cells if isinstance(cells, np.ndarray) else np.fromiter(cells, dtype=object, count=len(cells))


def _from_objects(name: str, values: Array, gone: tuple[Any, ...]) -> Column:
    """Cells of any kind: numbers if there is no text among them."""
    if any(is_date(value) for value in values):
        return Column(name, np.array([_moment(value, name) for value in values]), dates=True)
    known: dict[tuple[type, Any], Any] = {}
    cells = np.empty(len(values), dtype=object)
    for r, value in enumerate(values.tolist() if values.dtype.kind != "O" else values):
        try:
            key = (type(value), value)
            if key not in known:
                clean = _clean(value, name)
                known[key] = None if clean is None or _listed(clean, gone) else clean
            cells[r] = known[key]
        except TypeError:  # what cannot be hashed holds other things
            cells[r] = _clean(value, name)
    if any(isinstance(value, str) for value in known.values()):
        return Column(name, cells)
    return Column(name, np.array([np.nan if cell is None else cell for cell in cells], dtype=np.float64))


def _clean(value: Any, name: str) -> Any:
    """A cell as a float or as text without blanks around it; None if it is missing."""
    if isinstance(value, str):
        text = value.strip()
        return None if text.lower() in _ABSENT else text
    if isinstance(value, bytes):
        return _clean(value.decode("utf-8", "backslashreplace"), name)
    if value is None or value is np.ma.masked or type(value).__name__ in ("NAType", "NaTType"):
        return None
    if isinstance(value, np.datetime64 | np.timedelta64) and np.isnat(value):
        return None
    if is_date(value):
        raise dates(name)
    if isinstance(value, Real | Decimal | np.bool_):
        try:
            return None if value != value else float(value)
        except ArithmeticError:
            if isinstance(value, int):  # no float is as large: a number that names something
                return str(value) if value.bit_length() < 10_000 else hex(value)  # Python spells no longer ones
    raise _nested(name, value)


def one_cell(name: str, value: Any, gone: tuple[Any, ...]) -> str | float | None:
    """A value as a number or as text; None if it is missing."""
    clean: str | float | None = _clean(value, name)
    return None if clean is None or _listed(clean, gone) else clean


def _listed(value: Any, gone: tuple[Any, ...]) -> bool:
    """Whether a cell is one that counts as missing; text that spells a number is that number."""
    number = as_number(value)
    return any(value == one or (number is not None and number == as_number(one)) for one in gone)


def is_date(value: Any) -> bool:
    """Is it a date, a time of a day or a duration?"""
    return (isinstance(value, _DATES) and value == value) or type(value).__name__ == "Period"


def _seconds(values: Array) -> FloatArray:
    """Dates of NumPy's, or durations, in seconds since 1970, to the microsecond; NaN for those that are none."""
    kind = "datetime64[us]" if values.dtype.kind == "M" else "timedelta64[us]"
    found: FloatArray = np.where(np.isnat(values), np.nan, values.astype(kind).astype(np.int64) / 1e6)
    return found


def _moment(value: Any, name: str) -> float:
    """A date, a time of a day or a duration in seconds; one without a time zone counts as one of UTC."""
    if type(value).__name__ == "Period":
        value = value.start_time
    if isinstance(value, datetime.time):
        return value.hour * 3600.0 + value.minute * 60.0 + value.second + value.microsecond / 1e6
    if isinstance(value, datetime.datetime) and value.tzinfo is not None and value == value:
        value = value - datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
    if isinstance(value, datetime.timedelta) and value == value:
        return value // datetime.timedelta(microseconds=1) / 1e6
    if isinstance(value, datetime.date) and value == value:
        value = np.datetime64(value, "us")
    if isinstance(value, np.datetime64 | np.timedelta64):
        return float(_seconds(np.array([value]))[0])
    clean = _clean(value, name)
    if clean is None:
        return np.nan
    raise _nested(name, value)


def dates(name: str) -> TableError:
    """An error for dates where states are wanted."""
    return TableError(f"column {name!r} holds dates or times; a variable is 0 or 1. Leave the column out, or recode it")


def _nested(name: str, value: Any) -> TableError:
    return TableError(f"column {name!r} holds {brief(value)}; a cell is a number, a truth value, text, or missing")


def brief(value: Any) -> str:
    """A value for a message, whatever it is."""
    return checks.shown(value, 40)
