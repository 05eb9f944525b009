"""What a column of cells is taken for: yes/no, words, an order, numbers, dates, a tick box, or nothing to learn from.

Each reading is a function from the cells to a :class:`Column`, or to None where it does not apply; the first that
applies is taken. Weights of rows count as repetitions.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from sbnet._types import BoolArray, FloatArray, IndexArray
from sbnet.errors import ParameterError, TableError, cut, in_line
from sbnet.errors import short as short_name
from sbnet.model.yes_no import bits
from sbnet.tables import frames, scales
from sbnet.tables.sizes import (
    FIGURES,
    KEPT,
    check_finite,
    dates_in_figures,
    ends,
    intervals,
    moments,
    n_bins,
    short,
    sizes,
    some,
    spelled_dates,
    telling_ends,
)  # fmt: skip
from sbnet.tables.words import SUSPICIOUS_WORDS, as_number, bit, by_kind, is_missing, key, no_first, plain, shown, word

YES_NO, WORDS, ORDERED, NUMBERS, DATES, TICK_BOX, IGNORED = (
    "yes/no", "words", "ordered", "numbers", "dates", "tick box", "ignored",
)  # fmt: skip
KINDS = (YES_NO, WORDS, ORDERED, NUMBERS, DATES, TICK_BOX, IGNORED)
OTHER = "other"
"""The state of all rare words of a column together, and of those that were never seen."""
FEW = 10
"""Whole numbers with at most so many different values keep each of them."""
MOST_WORDS = 24
_ALL_DIFFERENT = 20
_ID_NAME = re.compile(r"(^|[^a-z])(id|ids|uuid|guid|key|index|nr|no|number|code|serial|row)($|[^a-z])|id$")
_MARKS = (-1.0, -7.0, -8.0, -9.0, -77.0, -88.0, -99.0, -999.0, -9999.0, 99.0, 999.0, 9999.0, 99999.0, 999999.0)
"""Numbers that often mark missing cells."""
_REPEATED = 3


@dataclass(frozen=True, repr=False)
class Column:
    """A column of a table as a variable, or as one that is left out; printed, a table of one row.

    Attributes
    ----------
    name : str
    kind : str
        "yes/no", "words", "ordered", "numbers", "dates", "tick box" or "ignored".
    states : tuple of str
        The names of the states, in their order; none if the column is left out.
    missing : int
        Missing cells in the table that was learned from.
    about : str
        What was decided, in a phrase.
    cells : tuple of tuples
        For each state some cells that have it, as they stood in the table; what is filled in is one of them. Of a
        column left out because it never changes, its cell.
    cuts : tuple of float
        Of numbers and dates: a number has the state that is the count of cuts below it.
    doubts : tuple of str
        Values that may have been meant otherwise.
    dtype : str
        The type of the column in its data frame.
    copy_of : str
        Of numbers: a column before it, in which they are a straight line without any error.
    line : tuple of float
        The slope and the start of that line.
    """

    name: str
    kind: str
    states: tuple[str, ...] = ()
    missing: int = 0
    about: str = ""
    cells: tuple[tuple[Any, ...], ...] = ()
    cuts: tuple[float, ...] = ()
    doubts: tuple[str, ...] = ()
    dtype: str = ""
    copy_of: str = ""
    line: tuple[float, ...] = ()

    @property
    def is_variable(self) -> bool:
        """Whether the column has states."""
        return bool(self.states)

    @property
    def ordered(self) -> bool:
        """Whether the states have an order, so that what they do to others grows or falls with it."""
        return self.kind in (ORDERED, NUMBERS, DATES)

    @property
    def in_figures(self) -> bool:
        """Is it a column of dates such as 19750103?"""
        return self.kind == DATES and FIGURES.fullmatch(word(self.cells[0][0])) is not None

    def __repr__(self) -> str:
        return listing([self])

    @cached_property
    def _places(self) -> dict[Any, int]:
        """The state of each word that is known: the names of states, and the cells that have them."""
        named = {key(state): k for k, state in enumerate(self.states)}
        return named | {key(cell): k for k, own in enumerate(self.cells) for cell in own if cell is not None}

    def read(self, cells: frames.Column) -> tuple[IndexArray, BoolArray]:
        """The number of the state of each cell, -1 where it is missing; and which cells have a value never seen."""
        if self.cuts or self.kind in (NUMBERS, DATES):
            return self._by_size(cells)
        if cells.is_number and self.kind == YES_NO and self._places.get(1.0, 1) == 1:
            states = np.where(cells.values == 1.0, 1, np.where(cells.values == 0.0, 0, -2))
            states[np.isnan(cells.values)] = -1
            if not np.any(states == -2):
                return states, np.zeros(len(states), np.bool_)
        values = cells.values.tolist()
        found = {value: self._place(value) for value in set(values) if not is_missing(value)}
        if self.kind == YES_NO and -2 in found.values():  # words that are known in pairs alone, as "s" beside "n"
            words = list(found)
            meant = bits([str(word) for word in words])
            found = found if meant is None else dict(zip(words, meant, strict=True))
        blank = 0 if self.kind == TICK_BOX else -1
        states = np.array([blank if is_missing(value) else found[value] for value in values], np.int64)
        return np.maximum(states, -1), states == -2

    @cached_property
    def _sizes(self) -> tuple[FloatArray, FloatArray]:
        """The mean of the cells of each interval; and the sizes of all of them, in their order."""
        every = self.sizes(frames.column(self.name, [cell for own in self.cells for cell in own]))
        each = np.split(every, np.cumsum([len(own) for own in self.cells])[:-1])
        return np.array([own.mean() for own in each]), every

    def sizes(self, cells: frames.Column) -> FloatArray:
        """The numbers that cells are or spell; days and months stand where they stood in the rows learned from."""
        if self.kind != DATES or cells.values.dtype.kind != "O":
            return sizes(cells, self.kind == DATES)
        return spelled_dates([*cells.values.tolist(), *(cell for own in self.cells for cell in own)])[
            : len(cells.values)
        ]

    def nearest(self, probabilities: FloatArray) -> list[Any]:
        """For numbers, the seen cells that are nearest to the posterior mean, given rows of
        probabilities of states."""
        means, every = self._sizes
        order = np.argsort(every, kind="stable")
        wanted = probabilities @ means
        above = np.searchsorted(every[order], wanted).clip(1, len(every) - 1)
        low, high = every[order][above - 1], every[order][above]
        place = order[np.where(wanted - low < high - wanted, above - 1, above)]
        cells = [cell for own in self.cells for cell in own]
        return [cells[k] for k in place.tolist()]

    def _place(self, value: Any) -> int:
        """The state of one cell; -2 if it has none."""
        known = self._places.get(key(value))
        if known is None and self.kind in (YES_NO, TICK_BOX):
            known = bit(value)
        if known is None and self.kind == WORDS:
            known = self._places.get(OTHER)
        return -2 if known is None else known

    def _by_size(self, cells: frames.Column) -> tuple[IndexArray, BoolArray]:
        """Words in a column of numbers are not known, unless they name a state."""
        numbers = self.sizes(cells)
        check_finite(self.name, numbers)
        states = np.where(np.isnan(numbers), -1, np.searchsorted(self.cuts, numbers, side="left"))
        strange = np.zeros(len(states), np.bool_)
        if cells.values.dtype.kind == "O":
            names = {key(state): k for k, state in enumerate(self.states)}
            for r in np.flatnonzero(np.isnan(numbers)).tolist():
                if cells.values[r] is not None:
                    states[r] = names.get(key(cells.values[r]), -1)
                    strange[r] = states[r] < 0
        return states, strange


def listing(columns: Sequence[Column]) -> str:
    """A table: how each column is read, its states, and how many of its cells are missing."""
    lines = [("column", "read as", "states", "missing")]
    for column in columns:
        kind = column.kind if column.is_variable else f"left out: {column.about}"
        kind += f", a copy of {short_name(column.copy_of, 40)}" if column.copy_of else ""
        lines.append((short_name(column.name, 40), kind, _told(column), str(column.missing or "")))
    wide = [max(len(line[k]) for line in lines) for k in range(3)]
    return "\n".join("  ".join([*(line[k].ljust(wide[k]) for k in range(3)), line[3]]).rstrip() for line in lines)


def _told(column: Column) -> str:
    """The states of a column in a line."""
    sign = " < " if column.ordered else ", "
    names = [shown(state).strip("'") for state in column.states]
    if len(names) > 6:
        names = [*names[:3], f"… {len(names) - 5} more …", *names[-2:]]
    return cut(in_line(sign.join(names)), 90)


@dataclass(frozen=True)
class Sample:
    """The cells of a column to decide by, with the weights of their rows."""

    column: frames.Column
    weights: FloatArray
    given: Any = field(repr=False)
    classes: IndexArray | None = None  # of rows, where there is a label

    @cached_property
    def observed(self) -> IndexArray:
        """Rows that are not missing."""
        return np.flatnonzero(~self.column.missing)

    @cached_property
    def total(self) -> float:
        """How many cells are observed."""
        return float(self.weights[self.observed].sum())

    @cached_property
    def counts(self) -> dict[Any, float]:
        """How often each value is there; words that differ in case or blanks alone are one, in their commonest form."""
        values, weights = self.column.values[self.observed], self.weights[self.observed]
        if values.dtype.kind == "f":
            distinct, place = np.unique(values, return_inverse=True)
            return dict(zip(distinct.tolist(), np.bincount(place, weights, len(distinct)).tolist(), strict=True))
        seen: dict[Any, float] = {}
        for value, weight in zip(values.tolist(), weights.tolist(), strict=True):
            seen[value] = seen.get(value, 0.0) + weight
        found: dict[Any, dict[Any, float]] = {}
        for value, weight in seen.items():
            found.setdefault(key(value), {})[value] = weight
        return {max(forms, key=lambda form: (forms[form], str(form))): sum(forms.values()) for forms in found.values()}

    @property
    def missing(self) -> int:
        """How many cells are not."""
        return len(self.column.values) - len(self.observed)

    def cell(self, r: int) -> Any:
        """A cell as it stood in the table."""
        return plain(self.given(r))

    def first(self, value: Any) -> Any:
        """A cell with that value, as it stood."""
        own = self.column.values
        if own.dtype.kind == "f":
            return self.cell(int(np.flatnonzero(own == value)[0]))
        return self.cell(own.tolist().index(value))


def decide(sample: Sample, said: Any = None) -> Column:
    """How a column is read: as it was `said`, or by what it holds."""
    name = sample.column.name
    found: Column | None
    if said is not None:
        found = _as_said(sample, said)
    elif not len(sample.observed):
        found = Column(name, IGNORED, about="empty")
    else:
        ways = (_one_value, _dates, _categories, _numbers, _words)
        found = next(column for way in ways if (column := way(sample)) is not None)
    return replace(found, name=name, missing=0 if found.kind == TICK_BOX else sample.missing)


def yes_or_no(name: str, missing: int = 0) -> Column:
    """A column of a table that has nothing but 0 and 1."""
    return Column(name, YES_NO, ("no", "yes"), missing, "0 is no, 1 is yes", ((0,), (1,)))


# --- readings ---------------------------------------------------------------------------------------------------------


def _one_value(sample: Sample) -> Column | None:
    """One value and blanks, as where all that apply are ticked; or a column that never changes."""
    if len(sample.counts) != 1:
        return None
    (value,) = sample.counts
    cell = sample.first(value)
    word = as_number(value) is None or value == 1.0
    if sample.missing and word and bit(value) != 0 and len(sample.column.categories or ()) < 2:
        return _tick_box(cell)
    return Column("", IGNORED, about=f"always {shown(cell)}", cells=((cell,),))


def _tick_box(cell: Any) -> Column:
    about = "ticked or blank" if bit(cell) == 1 else f"{shown(cell)} or blank"
    return Column("", TICK_BOX, ("no", "yes"), about=about, cells=((None,), (cell,)))


def _categories(sample: Sample) -> Column | None:
    """Categories whose order the table knows."""
    categories = sample.column.categories
    if categories is None or not sample.column.ordered:
        return None
    seen = [value for value in categories if value in sample.counts]
    return _in_order(sample, seen, "in the order of its categories")


def _dates(sample: Sample) -> Column | None:
    """Dates of a data frame's, or text or whole numbers that spell them, in one way."""
    column, values = sample.column, list(sample.counts)
    if not column.dates:
        if len(values) < 2 or not (column.is_number or all(isinstance(value, str) for value in values)):
            return None
        if np.isnan(dates_in_figures(np.array(values)) if column.is_number else spelled_dates(values)).any():
            return None
    return _by_size(sample, sizes(column, dates=True), DATES)


def _numbers(sample: Sample) -> Column | None:
    """Numbers, or text that spells them, with at most a few words between them, which then count as missing."""
    column = sample.column
    if column.categories is not None:
        return None
    numbers = {value: as_number(value) for value in sample.counts}
    words = [value for value, number in numbers.items() if number is None]
    if any(isinstance(value, str) and re.fullmatch(r"0\d+", value) for value in numbers):
        return None  # codes such as 007
    lost = sum(sample.counts[word] for word in words)
    if words and (len(words) > 3 or len(numbers) - len(words) < 3 or lost > 0.2 * sample.total):
        return None
    doubts = tuple(f"{word!r} counts as missing" for word in words)
    sized = sizes(column)
    check_finite(column.name, sized)
    seen = {number for number in numbers.values() if number is not None}
    if seen <= {0.0, 1.0} and len(seen) == 2:
        one = sample.first(next(value for value, number in numbers.items() if number == 1.0))
        zero = sample.first(next(value for value, number in numbers.items() if number == 0.0))
        about = "true or false" if isinstance(one, bool) else "0 is no, 1 is yes"
        return Column("", YES_NO, ("no", "yes"), about=about, cells=((zero,), (one,)), doubts=doubts)
    if _names_rows(sample, sized):
        return Column("", IGNORED, about="names rows")
    found = _by_size(sample, sized, NUMBERS)
    return replace(found, doubts=(*doubts, *_doubtful_numbers(sample, sized)))


def _words(sample: Sample) -> Column | None:
    """Two words of which one means no; words in an order that people know; any others, the commonest last."""
    counts = sample.counts
    words = {value: word(value) for value in counts}
    if len(counts) == 2:
        pair = no_first(list(counts))
        if pair is not None:
            first = [words[value] for value in pair]
            named = ("no", "yes") if {text.casefold() for text in first} == {"false", "true"} else tuple(first)
            about = "true or false" if named != tuple(first) else "no comes first"
            return Column("", YES_NO, named, about=about, cells=tuple((sample.first(value),) for value in pair))
    if len(counts) > max(_ALL_DIFFERENT, 0.5 * len(sample.observed)):  # more than half is there but once or twice
        blank = any(" " in text for text in words.values())
        return Column("", IGNORED, about="free text" if blank else "names rows")
    doubts = tuple(repr(text) for text in words.values() if text.casefold() in SUSPICIOUS_WORDS)
    known = scales.order(list(words.values()))
    if known is not None:
        back = {text: value for value, text in words.items()}
        order, beside = known
        about = "in the order of the scale" + (f", after {beside[0]!r}" if beside else "")
        return replace(_in_order(sample, [back[text] for text in (*beside, *order)], about), doubts=doubts)
    return replace(_by_frequency(sample, words), doubts=doubts)


def _by_frequency(sample: Sample, words: dict[Any, str]) -> Column:
    """The commonest word last; rare ones together where there are several of them."""
    ranked = sorted(sample.counts, key=lambda value: (sample.counts[value], words[value]))
    least = max(3.0, sample.total / 500) if sample.total >= 30 else 0.0
    rare = [value for value in ranked if sample.counts[value] < least]
    rare = ranked[: max(len(rare), len(ranked) - MOST_WORDS + 1 if len(ranked) > MOST_WORDS else 0)]
    if len(rare) < 2:
        rare = []
    kept = ranked[len(rare) :]
    if not kept:  # nothing is frequent
        return Column("", IGNORED, about="free text")
    about = f"{len(rare)} rare ones are {OTHER!r}" if rare else "no order"
    own = next((value for value in kept if key(words[value]) == OTHER), None) if rare else None
    kept = [value for value in kept if value != own]
    states, cells = [words[value] for value in kept], [(sample.first(value),) for value in kept]
    if rare:
        together = [value for value in (own, *reversed(rare)) if value is not None][:KEPT]
        states, cells = [OTHER, *states], [tuple(map(sample.first, together)), *cells]
    return Column("", WORDS, tuple(states), about=about, cells=tuple(cells))


def _in_order(sample: Sample, values: Sequence[Any], about: str) -> Column:
    states = tuple(map(word, values))
    cells = tuple((sample.first(value),) for value in values)
    if len(states) < 2:
        return Column("", IGNORED, about=f"always {states[0]}", cells=cells)
    return Column("", ORDERED, states, about=about, cells=cells)


def _as_said(sample: Sample, said: Any) -> Column:
    """A reading that the user asks for."""
    name = sample.column.name
    if isinstance(said, str):
        if said in ("ignore", IGNORED):
            return Column(name, IGNORED, about="as you said")
        if not len(sample.observed):
            return Column(name, IGNORED, about="empty")
        if said in (NUMBERS, DATES):
            sized = sizes(sample.column, said == DATES)
            check_finite(name, sized)
            if np.isnan(sized).all():
                raise TableError(
                    f"column {name!r} is to hold {said}; {shown(sample.cell(int(sample.observed[0])))} is none"
                )
            return _by_size(sample, sized, said)
        if said == TICK_BOX:
            return _tick_box(sample.first(max(sample.counts, key=lambda value: sample.counts[value])))
        words = {value: word(value) for value in sample.counts}
        if len(words) < 2:
            return Column(name, IGNORED, about=f"always {next(iter(words.values()))}")
        if said == WORDS:
            return _by_frequency(sample, words)
        if said == ORDERED:
            found = _categories(sample) or (_words(sample) if scales.order(list(words.values())) else None)
            return found or _in_order(sample, sorted(words, key=by_kind), "sorted, as you said")
        if said == YES_NO and len(words) == 2:
            pair = no_first(list(words)) or sorted(words, key=by_kind)
            return replace(_in_order(sample, pair, "as you said"), kind=YES_NO)
        if said == YES_NO:
            raise TableError(f"column {name!r} is to be yes/no, and holds {len(words)} different values")
        raise ParameterError(f"columns: {name!r} is to be read as {said!r}; say one of {', '.join(KINDS[:-1])}, ignore")
    if not isinstance(said, Sequence | np.ndarray) or isinstance(said, bytes) or len(said) < 2:
        raise ParameterError(f"columns: {name!r} is {said!r}; say how to read it, or list its values, lowest first")
    return _listed(sample, [plain(value) for value in said])


def _listed(sample: Sample, values: list[Any]) -> Column:
    """Values in an order that the user gives; all of them are states, whether they were seen or not."""
    keys = [key(value) for value in values]
    strange = next((value for value in sample.counts if key(value) not in keys), None)
    if strange is not None:
        listed = ", ".join(map(str, values[:8]))
        raise TableError(f"column {sample.column.name!r} holds {shown(strange)}, which is not in its list: {listed}")
    seen = {key(value): value for value in sample.counts}
    states = tuple(map(word, values))
    cells = tuple((sample.first(seen[k]) if k in seen else value,) for k, value in zip(keys, values, strict=True))
    return Column("", ORDERED, states, about="in the order that you gave", cells=cells)


# --- numbers ----------------------------------------------------------------------------------------------------------


def _by_size(sample: Sample, numbers: FloatArray, kind: str) -> Column:
    """Each of a few whole numbers, or of a few dates, by itself; else intervals with about equally many rows."""
    rows = np.flatnonzero(~np.isnan(numbers))
    distinct, place = np.unique(numbers[rows], return_inverse=True)
    mass: FloatArray = np.bincount(place, sample.weights[rows], len(distinct)).astype(np.float64)
    if len(distinct) < 2:
        cell = sample.cell(int(rows[0]))
        return Column("", IGNORED, about=f"always {shown(cell)}", cells=((cell,),))
    whole = bool(np.all(distinct == np.round(distinct)))
    repeated = len(distinct) <= 3 or mass.sum() >= 2 * len(distinct)
    if len(distinct) <= FEW and repeated and (whole or kind == DATES):
        last, about = np.arange(len(distinct) - 1), "each value"
    else:
        n = n_bins(float(mass.sum()))
        last = ends(mass, n)
        if sample.classes is not None:
            joint = place * (k := int(sample.classes.max()) + 1) + sample.classes[rows]
            counts = np.bincount(joint, sample.weights[rows], len(distinct) * k).astype(np.float64)
            last = telling_ends(counts.reshape(-1, k), last, n // 2)
        about = f"{len(last) + 1} intervals"
    cuts = [short(distinct[k], distinct[k + 1]) for k in last.tolist()]
    states = np.searchsorted(cuts, numbers[rows], side="left")
    cells, labels = [], []
    for s in range(len(cuts) + 1):
        own = rows[states == s]
        own = own[np.argsort(numbers[own], kind="stable")]
        cells.append(tuple(sample.cell(int(r)) for r in some(own, sample.weights[own])))
        labels.append((numbers[own[0]], numbers[own[-1]]))
    names = moments(labels, cuts) if kind == DATES else intervals(labels, cuts, whole)
    return Column("", kind, tuple(names), about=about, cells=tuple(cells), cuts=tuple(cuts))


def _names_rows(sample: Sample, numbers: FloatArray) -> bool:
    """Whole numbers, no two of them equal, that count the rows, follow their order without large gaps, have eight
    digits or more each, or are called by such a name.
    """
    seen = numbers[~np.isnan(numbers)]
    n = len(seen)
    if n < _ALL_DIFFERENT or not np.all(seen == np.round(seen)) or len(np.unique(seen)) < n:
        return False
    steps = np.diff(seen)
    in_order = bool((np.all(steps > 0) or np.all(steps < 0)) and np.ptp(seen) < 100 * n)
    digits = len({len(word(abs(value))) for value in seen.tolist()}) == 1 and abs(seen[0]) >= 1e7
    counted = np.ptp(seen) < 2 * n
    return in_order or digits or bool(counted) or _ID_NAME.search(sample.column.name.casefold()) is not None


def _doubtful_numbers(sample: Sample, numbers: FloatArray) -> tuple[str, ...]:
    """Numbers such as -99 that stand out, or any that is far from all others and repeated: they may mark missing
    cells.
    """
    distinct, count = np.unique(numbers[~np.isnan(numbers)], return_counts=True)
    found = []
    known = np.isin(distinct, _MARKS)
    for mark in distinct[known | (count >= _REPEATED) & np.isin(distinct, distinct[[0, -1]])].tolist():
        rest = distinct[(distinct != mark) & ~known]
        if len(rest) < 3:
            continue
        apart = max(rest[0] - mark, mark - rest[-1]) > (0.5 if mark in _MARKS else 1.0) * max(rest[-1] - rest[0], 1.0)
        if apart or (mark in _MARKS and mark < 0.0 <= rest[0] and (mark < -1.0 or rest[-1] > 1.0)):
            found.append(word(mark))
    return tuple(found)
