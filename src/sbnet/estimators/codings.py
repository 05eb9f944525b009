"""How a column of more than two values becomes units: one for each category, or a thermometer of thresholds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property
from itertools import pairwise
from typing import Any, Protocol

import numpy as np

from sbnet._types import FloatArray, IndexArray, States
from sbnet.errors import TableError, enumerated, in_line
from sbnet.tables import codings
from sbnet.tables.frames import Array, Column

MOST_CATEGORIES = 200
_ALL_DIFFERENT = 20
"""Whole numbers that name rows rather than measure them, if so many are there and no two of them are equal."""


class Kind(Enum):
    """What a column was taken for; the value says it in words."""

    TWO = "two values"
    CHOSEN = "chosen or not"
    CATEGORIES = "categories"
    ORDERED = "ordered"
    LEVELS = "levels"
    NUMBER = "number"
    IDENTIFIER = "left out, all different whole numbers"


class Reader(Protocol):
    """Finds the number of the value that a cell has."""

    def index(self, values: Array) -> IndexArray:
        """From 0; -1 where a cell is missing, -2 where its value is not known."""


@dataclass(frozen=True)
class Known:
    """A list of values, numbers or text."""

    values: tuple[Any, ...]

    def index(self, values: Array) -> IndexArray:
        """Look each value up."""
        place = {value: k for k, value in enumerate(self.values)} | {None: -1}
        cells = [None if cell != cell else cell for cell in values.tolist()]
        return np.array([place.get(cell, -2) for cell in cells], dtype=np.int64)


@dataclass(frozen=True)
class Chosen:
    """One value that a cell has or not: a blank is an answer."""

    value: Any

    @property
    def values(self) -> tuple[Any, ...]:
        """Both, in words."""
        return codings.NOT_CHOSEN, self.value

    def index(self, values: Array) -> IndexArray:
        """0 for a blank, 1 for the value."""
        cells = [0 if cell is None or cell != cell else 1 if cell == self.value else -2 for cell in values.tolist()]
        return np.array(cells, dtype=np.int64)


@dataclass(frozen=True)
class LeftOut:
    """A column that is not looked at: no cell of it is missing."""

    def index(self, values: Array) -> IndexArray:
        """All cells are alike."""
        return np.zeros(len(values), dtype=np.int64)


@dataclass(frozen=True)
class Thresholds:
    """A number counts the thresholds below it, so that every number is known."""

    cuts: tuple[float, ...]

    def index(self, values: Array) -> IndexArray:
        """Strictly below: a number on a threshold belongs to the lower side."""
        numbers = values
        if values.dtype.kind == "O":  # text in a column of numbers is not known, and infinity stands for that
            found = [np.nan if cell is None else cell if isinstance(cell, float) else np.inf for cell in values]
            numbers = np.array(found)
        index = np.searchsorted(self.cuts, numbers, side="left").astype(np.int64)
        return np.where(np.isnan(numbers), -1, np.where(np.isinf(numbers), -2, index))


@dataclass(frozen=True, eq=False, repr=False)
class ColumnCoding:
    """How one column was read, and its units.

    Attributes
    ----------
    name : str
        Of the column.
    kind : Kind
        What the column was taken for; its ``value`` says it in words.
    labels : tuple of str
        Its values in words; for a number, intervals.
    units : tuple of str
        Names of its units.
    codes : ndarray of int8, values by units
        The states of the units at each value; no other states are possible.
    reader
        Finds the value of a cell.
    rows : ndarray of int
        A row of the training table that has each value; of an interval, its median; -1 if there is none.
    shares : ndarray of float
        How often each value was seen, as a share of the observed cells.
    """

    name: str
    kind: Kind
    labels: tuple[str, ...]
    units: tuple[str, ...]
    codes: States
    reader: Reader
    rows: IndexArray
    shares: FloatArray

    @property
    def is_thermometer(self) -> bool:
        """Whether a unit can only be 1 if the one before it is; two values are the shortest thermometer."""
        return self.kind is not Kind.CATEGORIES

    def read(self, column: Column, handle_unknown: str = "error") -> IndexArray:
        """The number of each cell's value; -1 where it is missing."""
        index = self.reader.index(column.values)
        unknown = np.flatnonzero(index == -2)
        if len(unknown) and handle_unknown == "error":
            row = int(unknown[0])
            raise TableError(
                f"column {self.name!r} holds {_text(column.values[row])!r} in row {row}, which is not among its values "
                f"{_some(self.labels)}; handle_unknown='missing' takes such cells as missing"
            )
        return np.maximum(index, -1)

    def states(self, index: IndexArray) -> FloatArray:
        """The units of rows with these values; NaN where a value is missing."""
        found = self.codes[index].astype(np.float64)
        found[index < 0] = np.nan
        return found

    def probabilities(self, means: FloatArray) -> FloatArray:
        """Of each value, from the means of the units; states of zeros and ones give the value itself."""
        n, ones = len(means), np.ones((len(means), 1))
        if self.is_thermometer:
            steps = np.hstack([ones, means, np.zeros((n, 1))])
            return steps[:, :-1] - steps[:, 1:]
        rest = 1.0 - means.sum(axis=1)
        of = [int(code.argmax()) if code.any() else -1 for code in self.codes]
        return np.column_stack([rest if k < 0 else means[:, k] for k in of])

    def most_probable(self, means: FloatArray) -> IndexArray:
        """The number of the value with the highest probability; -1 where means are missing."""
        if not means.shape[1]:
            return np.zeros(len(means), dtype=np.int64)
        whole = ~np.isnan(means.sum(axis=1))
        return np.where(whole, self.probabilities(np.nan_to_num(means)).argmax(axis=1), -1)

    def __repr__(self) -> str:
        words = f", {_some(self.labels, ' < ' if self.kind is Kind.ORDERED else ', ')}"
        if self.kind is Kind.IDENTIFIER:
            words = ""
        elif self.kind is Kind.TWO:
            words = f", {' and '.join(self.labels)}"
        elif self.kind is Kind.CHOSEN:
            words = f", {self.labels[1]}, or blank"
        elif isinstance(self.reader, Thresholds) and self.kind is Kind.NUMBER:
            words = f", threshold{'s' * (len(self.reader.cuts) > 1)} at {', '.join(_texts(self.reader.cuts))}"
        return in_line(f"{self.name}: {self.kind.value}{words}")


@dataclass(frozen=True)
class _Sample:
    """A column to learn from, and the weights of its cells, all of them above zero."""

    column: Column
    weights: FloatArray

    @cached_property
    def seen(self) -> set[Any]:
        """The values that are there."""
        return {cell for cell in self.column.values.tolist() if cell is not None and cell == cell}


class _TooManyValues(Exception):
    """A column of categories, by its name and their number, that would need too many units."""


@dataclass(frozen=True)
class Rules:
    """What decides how a column is read."""

    n_bins: int
    n_levels: int
    drop: str | None
    identifiers: str

    def codes(
        self, columns: Iterable[Column], weights: FloatArray, order: Mapping[str, Sequence[Any]]
    ) -> list[ColumnCoding]:
        """All columns of a table; those with too many values are named at once."""
        found, refused, counted = list[ColumnCoding](), list[tuple[str, int]](), np.flatnonzero(weights > 0.0)
        for column in columns:
            some = _Sample(replace(column, values=column.values[counted]), weights[counted])
            try:
                coding = self._code(some, order.get(column.name))
            except _TooManyValues as error:
                refused.append(error.args)
            else:
                found.append(replace(coding, rows=np.where(coding.rows < 0, -1, counted[coding.rows])))
        if not refused:
            return found
        way = f"at most {MOST_CATEGORIES} are taken. "
        if len(refused) == 1:
            name, n = refused[0]
            many = f"{n:,} different values, which would be a unit each"
            text = f"column {name!r} holds {many}; {way}Leave the column out"
        else:
            named, least = enumerated([name for name, _ in refused]), min(n for _, n in refused)
            text = f"columns {named} hold {least:,} or more different values, a unit each; {way}Leave them out"
        raise TableError(f"{text}, merge rare values, or make numbers of them")

    def _code(self, some: _Sample, order: Sequence[Any] | None) -> ColumnCoding:
        """Ordered values; then numbers, few or many; all else is categories. Two values are one unit in each case."""
        column = some.column
        if order is not None:
            return _listed(some, tuple(order), "ordered")
        blank = sum(cell is None or cell != cell for cell in column.values.tolist())
        # One value and blanks, as where all that apply are ticked: zero is no tick, and listed categories tell more.
        if len(column.categories or ()) < 2 and 0 < blank < len(column.values) and len(some.seen) == 1:
            (value,) = some.seen
            if codings.bit(value) != 0:
                text = _text(value)
                unit = column.name if value == 1.0 else f"{column.name}={text}"
                return _coding(some, Kind.CHOSEN, Chosen(value), (codings.NOT_CHOSEN, text), (unit,))
        if column.is_number and column.categories is None:
            return self._numbers(some)
        if column.ordered and column.categories is not None:
            return _listed(some, column.categories, "the table's own order")
        return self._categories(some)

    def _numbers(self, some: _Sample) -> ColumnCoding:
        name, values = some.column.name, some.column.values
        if np.isinf(values).any():
            row = int(np.flatnonzero(np.isinf(values))[0])
            raise TableError(f"column {name!r} holds infinity in row {row}; a number is finite, or NaN if missing")
        distinct = np.unique(values[~np.isnan(values)])
        whole = bool(np.all(distinct == np.round(distinct)))
        if len(distinct) == 2 and whole:
            return _two(some, tuple(distinct.tolist()))
        if 2 <= len(distinct) <= self.n_levels and whole:
            # A number that was never seen counts as the next level above it, or as the last.
            labels = _texts(distinct.tolist())
            return _coding(some, Kind.LEVELS, Thresholds(tuple(distinct[:-1].tolist())), labels, _above(name, labels))
        different = len(distinct) == int((~np.isnan(values)).sum()) >= _ALL_DIFFERENT
        if whole and different and self.identifiers == "leave out":
            codes: States = np.zeros((1, 0), dtype=np.int8)
            return ColumnCoding(name, Kind.IDENTIFIER, ("",), (), codes, LeftOut(), np.array([-1]), np.array([1.0]))
        cuts = _cuts(some, distinct, self.n_bins)
        ends = _texts(cuts)
        inner = [f"{low} to {high}" for low, high in pairwise(ends)]
        labels = (f"up to {ends[0]}", *inner, f"above {ends[-1]}")
        return _coding(some, Kind.NUMBER, Thresholds(cuts), labels, tuple(f"{name}>{end}" for end in ends))

    def _categories(self, some: _Sample) -> ColumnCoding:
        column, seen = some.column, some.seen
        order = sorted(seen, key=_by_kind) if column.categories is None else column.categories
        known = tuple(value for value in order if value in seen)
        if len(known) == 2:
            return _two(some, known)
        if len(known) > MOST_CATEGORIES:
            raise _TooManyValues(column.name, len(known))
        labels = _texts(known)
        units = tuple(f"{column.name}={label}" for label in labels)
        coding = _coding(some, Kind.CATEGORIES, Known(known), labels, units)
        if self.drop is None or not known:
            return coding
        # The most frequent category has no unit: it is the state with all units at 0.
        kept = np.arange(len(known)) != coding.shares.argmax()
        return replace(coding, units=tuple(np.array(units, object)[kept]), codes=coding.codes[:, kept])


def _two(some: _Sample, known: tuple[Any, ...]) -> ColumnCoding:
    name = some.column.name
    unit = name if known == (0.0, 1.0) else f"{name}={_text(known[1])}"
    return _coding(some, Kind.TWO, Known(known), _texts(known), (unit,))


def _listed(some: _Sample, order: tuple[Any, ...], source: str) -> ColumnCoding:
    """A thermometer over the values that were seen, in a given order."""
    column, seen = some.column, some.seen
    order = tuple(float(value) if column.is_number else value for value in order)
    strange = sorted(seen - set(order), key=_by_kind)
    if strange:
        raise TableError(
            f"column {column.name!r} holds {_text(strange[0])!r}, which is not in {source}: {_some(_texts(order))}"
        )
    known = tuple(value for value in order if value in seen)
    if len(known) == 2:
        return _two(some, known)
    labels = _texts(known)
    return _coding(some, Kind.ORDERED, Known(known), labels, _above(column.name, labels))


def _above(name: str, labels: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"{name}>{label}" for label in labels[:-1])


def _cuts(some: _Sample, distinct: FloatArray, n_bins: int) -> tuple[float, ...]:
    """Thresholds at quantiles, each as short a number as tells the same training values apart.

    A column that never changes has its own value as the threshold, and one without any observed cell has zero.
    """
    if len(distinct) < 2:
        return (float(distinct[0]) if len(distinct) else 0.0,)
    observed = np.flatnonzero(~np.isnan(some.column.values))
    at = some.column.values[[_quantile(some, observed, k / n_bins) for k in range(1, n_bins)]]
    lower = np.unique(at[at < distinct[-1]]) if np.any(at < distinct[-1]) else distinct[-2:-1]
    upper = distinct[np.searchsorted(distinct, lower, side="right")]
    return tuple(_short(low, high) for low, high in zip(lower.tolist(), upper.tolist(), strict=True))


def _short(low: float, high: float) -> float:
    """The decimal with the fewest digits that is at least `low` and below `high`."""
    if low <= 0.0 < high:
        return 0.0
    for digits in range(1, 17):
        for text in (f"{low:.{digits}g}", f"{0.5 * low + 0.5 * high:.{digits}g}"):
            if low <= float(text) < high:
                return float(text)
    return low


def _coding(some: _Sample, kind: Kind, reader: Reader, labels: tuple[str, ...], units: tuple[str, ...]) -> ColumnCoding:
    n = len(labels)
    codes = np.eye(n, dtype=np.int8) if kind is Kind.CATEGORIES else np.tri(n, max(n - 1, 0), -1, dtype=np.int8)
    index, name = reader.index(some.column.values), some.column.name
    counts = np.bincount(index[index >= 0], weights=some.weights[index >= 0], minlength=n)
    rows: IndexArray = np.full(n, -1)
    for k in np.unique(index[index >= 0]):  # the first row with a value; of numbers, that with the (lower) median
        own = np.flatnonzero(index == k)
        rows[k] = own[0] if some.column.values.dtype.kind == "O" else _quantile(some, own, 0.5)
    if kind is Kind.NUMBER:  # an interval without a training value borrows the value of its neighbour
        rows = np.where(rows < 0, rows.max(), rows)
    return ColumnCoding(name, kind, labels, units, codes, reader, rows, counts / (counts.sum() or 1.0))


def _quantile(some: _Sample, rows: IndexArray, share: float) -> int:
    """The first row, by size, up to which these rows have that share of their weight; weights count as repetitions."""
    order = rows[np.argsort(some.column.values[rows], kind="stable")]
    below = np.cumsum(some.weights[order])
    # A share that is met but for rounding is met.
    return int(order[np.searchsorted(below, share * below[-1] * (1.0 - 1e-12), side="left")])


def _by_kind(value: Any) -> tuple[bool, Any]:
    return isinstance(value, str), value


def _texts(values: Sequence[Any]) -> tuple[str, ...]:
    return tuple(_text(value) for value in values)


def _text(value: Any) -> str:
    """A value in words: whole numbers without a point."""
    if isinstance(value, float):
        return str(int(value)) if value == np.round(value) and abs(value) < 1e15 else repr(float(value))
    return str(value)


def _some(labels: Sequence[str], sign: str = ", ") -> str:
    return sign.join(labels) if len(labels) <= 8 else sign.join([*labels[:7], f"... {len(labels) - 7} more"])
