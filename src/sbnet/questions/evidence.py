"""Evidence in any form a user may have it, turned once into one exact internal form.

The internal form is an ``int8`` array, rows by variables: the number of the state, or -1 for "not observed".

One pattern or many, and what comes back, is the same everywhere: one pattern is answered by numbers (or by the record
of one), a table by arrays with an axis of rows in front (or by the record of many). A mapping and a list of numbers are
one pattern (:data:`OnePattern`); a data frame and a list of mappings, of lists or of arrays are tables
(:data:`Table`). Of an array only its dimensions tell, which its type does not.

Tables are read in :mod:`sbnet.tables.frames`, and the words and numbers in them as columns of states, see
:mod:`sbnet.tables.schema`; a network that was learned from a table takes what that table had. Other words are refused.

States are named in mappings and in tables with names, where a number is the state that is called so: 0 and 1 where the
states are no and yes, or other words. In plain arrays, which have no names, a number is the number of the state.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np

from sbnet import checks
from sbnet._types import HIDDEN, BoolArray, FloatArray, IndexArray, States
from sbnet.errors import EvidenceError, TableError, UnknownUnitError, hint, unknown_unit
from sbnet.model.network import Network
from sbnet.model.states import NO_YES, are_words, find, shown, takes_bits
from sbnet.model.suggestions import check_kinds
from sbnet.parallel.blocks import row_blocks
from sbnet.parallel.lazy import Partitions
from sbnet.tables import frames
from sbnet.tables.kinds import DATES, TICK_BOX, YES_NO
from sbnet.tables.stored import column_of

if TYPE_CHECKING:
    import pandas
    from numpy.typing import ArrayLike, NDArray


class Frame(Protocol):
    """A data frame, as far as types are concerned: a table with named columns."""

    @property
    def columns(self) -> Any: ...


OnePattern: TypeAlias = "Mapping[Any, Any] | Sequence[float | None]"
Table: TypeAlias = "Frame | Sequence[Mapping[Any, Any]] | Sequence[Sequence[float | None]] | Sequence[NDArray[Any]]"
EvidenceLike: TypeAlias = "OnePattern | Table | ArrayLike | pandas.Series[Any]"

_NUMBERS = (int, float, np.integer, np.bool_)
_BINARY = 'variables are binary: 0, 1 or NaN for "not observed"'


@dataclass(frozen=True)
class Reading:
    """Evidence in the internal form, and whether it was one pattern."""

    states: States
    single: bool


def coerce_one(network: Network, evidence: EvidenceLike) -> States:
    """One pattern, shape (1, n_units)."""
    states, _ = coerce(network, evidence)
    if len(states) != 1:
        raise EvidenceError(f"one pattern was expected, but the evidence has {len(states)} rows; use infer_many()")
    return states


def coerce_many(network: Network, evidence: EvidenceLike, *, missing: Any = ()) -> States:
    """A batch of patterns, shape (n_rows, n_units); a single pattern is refused."""
    return read_many(network, evidence, missing=missing).states


def coerce(network: Network, evidence: EvidenceLike, *, missing: Any = ()) -> tuple[States, bool]:
    """The internal form of `evidence`, and whether it was a single pattern rather than a table."""
    reading = read(network, evidence, missing=missing)
    return reading.states, reading.single


def read_many(network: Network, evidence: EvidenceLike, *, missing: Any = ()) -> Reading:
    """A table of patterns."""
    return _of_many(evidence, read(network, evidence, missing=missing))


def _of_many(evidence: EvidenceLike, reading: Reading) -> Reading:
    if isinstance(evidence, list | tuple) and not evidence:  # a search that found nothing: a table without rows
        return replace(reading, states=reading.states[:0], single=False)
    if reading.single:
        raise EvidenceError("a table of patterns was expected, but the evidence is one pattern; use infer()")
    return reading


def check_columns(network: Network, parts: Partitions, missing: Any) -> None:
    """Refuse now, by its columns alone, what would be refused on the workers later."""
    if parts.no_rows is not None:
        read_many(network, parts.no_rows, missing=missing)


def read_part(network: Network, table: Any, missing: Any) -> States:
    """One part of a table of which nobody sees the whole."""
    return np.ascontiguousarray(read_many(network, table, missing=missing).states)


def read(network: Network, evidence: EvidenceLike, *, missing: Any = ()) -> Reading:
    """Evidence in any form; what is in `missing` is not observed, nor are -1, NaN, None, NA and empty cells."""
    check_kinds(network, evidence)
    return _Reader(network, (*frames.missing_values(missing), -1.0)).read(evidence)


def numbers_of_states(table: frames.Array, n_states: Any, gone: tuple[Any, ...] = ()) -> tuple[States, BoolArray]:
    """Numbers of states from numbers of any type, -1 for none, for columns with so many states; which could be read."""
    if table.dtype.kind == "b":
        return table.astype(np.int8), np.ones(table.shape, dtype=np.bool_)
    absent = np.isnan(table) if table.dtype.kind == "f" else np.zeros(table.shape, dtype=np.bool_)
    for number in [number for number in map(frames.as_number, gone) if number is not None]:
        absent |= table == (int(number) if table.dtype.kind in "iu" and number.is_integer() else number)
    known = (table >= 0) & (table < n_states) & ~absent
    if table.dtype.kind == "f":
        known &= table == np.floor(table)
    return np.where(known, table, -1).astype(np.int8), known | absent


def check_means(network: Network, states: States, means: ArrayLike, single: bool) -> FloatArray:
    """Means for every row and column, with those of observed variables put in."""
    mu, known = checks.numbers("means", means), observed_means(network, states)
    expected = known.shape[1:] if single else known.shape
    if mu.shape != expected:
        whose = "variable" if network.is_binary else "state from the second one on of every variable"
        raise EvidenceError(f"means have shape {mu.shape}; expected {expected}, one for every {whose}")
    mu = np.where(np.isnan(known), mu, known)
    good: BoolArray = (mu >= 0.0) & (mu <= 1.0)
    if not good.all():
        raise EvidenceError(f"means must lie between 0 and 1; got {mu[~good][0]}")
    return mu


def observed_means(network: Network, states: States) -> FloatArray:
    """Means that evidence gives: rows by columns, NaN for variables that are not observed."""
    if network.is_binary:
        means = states.astype(np.float64)
        np.copyto(means, np.nan, where=states == HIDDEN)
        return means
    variable, state = network.columns
    own = states[..., variable]
    return np.where(own == HIDDEN, np.nan, own == state)


def as_evidence(network: Network, i: int, state: int) -> Any:
    """A state as a mapping may give it: its number, or its name where numbers are names."""
    states = network.states[network.names[i]]
    return int(state) if takes_bits(states) else states[state]


def words_of(network: Network, i: int) -> tuple[str, ...]:
    """What the states of a variable are called; nothing if they are no and yes, and no note says so."""
    name = network.names[i]
    return network.notes[name].states if network.states[name] == NO_YES else network.states[name]


def _series(evidence: Any) -> Any:
    """A pandas series as a mapping, if units are named in it, or as an array; anything else as it is."""
    pandas = sys.modules.get("pandas")  # a series can only come from someone who has imported pandas
    if pandas is None or not isinstance(evidence, pandas.Series):
        return evidence
    if not any(isinstance(label, str) for label in evidence.index):
        return evidence.to_numpy(dtype=object, na_value=None)
    if not evidence.index.is_unique:
        double = evidence.index[evidence.index.duplicated()][0]
        raise EvidenceError(f"evidence names variable {double!r} twice")
    return dict(evidence.items())


class _Reader:
    """Puts columns in the places of their units."""

    def __init__(self, network: Network, gone: tuple[Any, ...]) -> None:
        self.network, self.gone = network, gone
        self.positions = False  # are numbers those of states, as in arrays, and not what states are called?

    def read(self, evidence: Any) -> Reading:
        """Evidence in any form."""
        frame = None if isinstance(evidence, dict) else frames.as_frame(evidence)
        if frame is not None:
            return self.frame(frame)
        evidence = _series(evidence)
        if isinstance(evidence, Mapping) and not hasattr(evidence, "toarray"):  # scipy's dok matrices are mappings too
            return self.records([evidence], single=True)
        if frames.is_records(evidence):
            return self.records(evidence)
        array = frames.as_array(evidence)
        if array.dtype.names is not None and array.ndim == 1:
            return self.sheet(frames.sheet(array, self.gone))
        if array.ndim not in (1, 2):
            expected = "expected one pattern or a table of rows by variables"
            raise EvidenceError(f"evidence has {array.ndim} dimensions; {expected}")
        return self.array(np.atleast_2d(array), single=array.ndim == 1)

    def frame(self, frame: Any) -> Reading:
        labels: list[Any] = list(frame.columns)
        if frames.are_default(labels) or not any(isinstance(label, str) for label in labels):
            self.positions = True
            sheet = frames.from_frame(frame, frames.names_of(frame), self.gone)
            return self.place(sheet, range(self.first(len(sheet.columns)), self.network.n_units))
        units = [_unit_index(self.network, label) for label in labels]
        if len(set(units)) < len(units):
            double = next(label for k, label in enumerate(labels) if units[k] in units[:k])
            raise EvidenceError(f"the table has two columns for variable {double!r}")
        names = tuple(self.network.names[i] for i in units)
        return self.sheet(frames.from_frame(frame, names, self.gone))

    def sheet(self, sheet: frames.Sheet) -> Reading:
        """Columns matched by name."""
        return self.place(sheet, [_unit_index(self.network, name) for name in sheet.names or ()])

    def array(self, table: np.ndarray[Any, Any], single: bool) -> Reading:
        """An array; if it is one of numbers, zeros and ones are seen at once, for many columns together."""
        width, first = table.shape[1], self.first(table.shape[1])
        states, n = self.hidden(len(table)), self.network.n_states[self.first(table.shape[1]) :]
        self.positions = True
        odd: BoolArray = np.zeros(width, dtype=np.bool_)
        if table.dtype.kind in "biuf":
            for block in row_blocks(len(table), width):  # a long table must not cost several more of its size
                states[block, first:], good = numbers_of_states(table[block], n, self.gone)
                odd |= ~good.all(axis=0)
        else:
            odd[:] = [not self.plain(table[:, k].tolist(), states[:, first + k], int(n[k])) for k in range(width)]
        if not odd.any():
            return Reading(states, single)
        sheet, columns = frames.from_array(table, self.gone), np.flatnonzero(odd)
        return self.place(sheet, columns + first, columns, states=states, single=single)

    def records(self, rows: Sequence[Mapping[Any, Any]], single: bool = False) -> Reading:
        """Mappings from units, by name or by number, to values."""
        cells: dict[int, list[Any]] = {}
        for r, row in enumerate(rows):
            given: dict[int, Any] = {}
            for key, value in row.items():
                i = _unit_index(self.network, key)
                if i in given:
                    where = "" if single else f" in row {r}"
                    raise EvidenceError(
                        f"evidence{where} names variable {self.network.names[i]!r} twice, as {given[i]!r} and {key!r}"
                    )
                given[i] = key
                cells.setdefault(i, [None] * len(rows))[r] = value
        states = self.hidden(len(rows))
        odd = [i for i, own in cells.items() if self.named(i) or not self.plain(own, states[:, i])]
        if not odd:
            return Reading(states, single)
        sheet = frames.from_columns({self.network.names[i]: cells[i] for i in odd}, len(rows), self.gone)
        return self.place(sheet, odd, states=states, single=single, records=True)

    def named(self, i: int) -> bool:
        """Are the states of a variable known by their names alone?"""
        states = self.network.states[self.network.names[i]]
        return states != NO_YES and not takes_bits(states)

    def plain(self, values: list[Any], out: States, n_states: int = 2) -> bool:
        """Put states `out` for cells that are 0, 1, -1, NaN or None, as most are; False if there are others."""
        if len(self.gone) > 1:
            return False
        states: list[int] = []
        for value in values:
            number = isinstance(value, _NUMBERS)
            if value is None or (number and (value != value or value == -1)):
                states.append(-1)
            elif number and 0 <= value < n_states and value == int(value):
                states.append(int(value))
            else:
                return False
        out[:] = states
        return True

    def place(
        self,
        sheet: frames.Sheet,
        units: Sequence[int] | IndexArray,
        columns: Sequence[int] | IndexArray | None = None,
        *,
        states: States | None = None,
        single: bool = False,
        records: bool = False,
    ) -> Reading:
        """The `columns` of a sheet, or all of them, in the places of their `units`."""
        states = self.hidden(sheet.n_rows) if states is None else states
        for i, k in zip(units, range(len(sheet.columns)) if columns is None else columns, strict=True):
            name = repr(self.network.names[i])
            what = f"variable {name}" if records else f"column {k} ({name})"
            states[:, i] = self.column(sheet, int(k), int(i), what, "" if records and single else None)
        return Reading(states, single)

    def column(self, sheet: frames.Sheet, k: int, i: int, what: str, where: str | None) -> States:
        """One column, by the names of states; in arrays, by their numbers."""
        own = column_of(self.network, i)
        words = words_of(self.network, i)

        def refuse(r: int, more: str = "") -> TableError:
            cell, place = frames.brief(sheet.given(r, k)), f" {sheet.row(r)}" if where is None else where
            in_words = "; in words, no or yes" if isinstance(sheet.given(r, k), str) else ""
            states = f"its states are {' and '.join(words)}, or 0 and 1" if words else _BINARY + in_words
            if self.named(i):
                numbers = f"; in an array their numbers, 0 to {len(words) - 1}" if self.positions else ""
                order = ", in this order: say which by name" if len(words) == 2 and are_words(words) else ""
                states = f"its states are {shown(words)}{order}{numbers}"
            return TableError(f"{what} holds {cell}{place}; {states}{more}")

        try:
            cells = sheet.columns[k]
            if cells.dates and own.kind != DATES:
                raise frames.dates(cells.name)
        except TableError:
            if where is None:
                raise
            raise refuse(0) from None
        if cells.is_number and self.positions:
            found, good = numbers_of_states(cells.values, len(own.states))
            if not good.all():
                raise refuse(int(np.flatnonzero(~good)[0]))
            return found
        states, new = (replace(own, kind=YES_NO) if own.kind == TICK_BOX else own).read(cells)
        if new.any():
            r = int(np.flatnonzero(new)[0])
            text = cells.values[r]
            raise refuse(r, hint(text, own.states, likeness=0.6) if isinstance(text, str) and self.named(i) else "")
        absent = [word for word in own.states if frames.one_cell("", word, self.gone) is None]
        for r in np.flatnonzero(states < 0).tolist() if absent and not self.positions else ():
            given = find(absent, sheet.given(r, k))  # a state that is called as missing cells are
            states[r] = HIDDEN if given is None else own.states.index(absent[given])
        return states.astype(np.int8)

    def first(self, width: int) -> int:
        """Fewer columns than units are the last units, the bottom layer."""
        if width > self.network.n_units:
            raise EvidenceError(
                f"evidence has {width} columns, but the network has only {self.network.n_units} variables; "
                "rows are patterns, columns are variables"
            )
        return self.network.n_units - width

    def hidden(self, n_rows: int) -> States:
        return np.full((n_rows, self.network.n_units), HIDDEN, dtype=np.int8)


def _unit_index(network: Network, key: Any) -> int:
    if isinstance(key, str):
        if key not in network._index:
            called = [one for one, note in network.notes.items() if note.about and note.about == key]
            if called:  # as terms of a catalogue are
                raise UnknownUnitError(
                    f"evidence names {key!r}, which is what variable {called[0]!r} is about; write its name"
                )
            raise unknown_unit(key, network.names, "evidence")
        return network._index[key]
    if checks.is_whole(key):
        if 0 <= key < network.n_units:
            return int(key)
        raise EvidenceError(f"evidence names variable number {key}; the network has 0 to {network.n_units - 1}")
    raise EvidenceError(f"evidence names variables by name or by number; got {key!r}")
