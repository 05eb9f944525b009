"""Evidence in any form a user may have it, turned once into one exact internal form.

The internal form is an ``int8`` array, rows by variables: the number of the state, or -1 for "not observed".

One pattern or many, and what comes back, is the same everywhere: one pattern is answered by numbers (or by the record
of one), a table by arrays with an axis of rows in front (or by the record of many). A mapping and a list of numbers are
one pattern (:data:`OnePattern`); a data frame and a list of mappings, of lists or of arrays are tables
(:data:`Table`). Of an array only its dimensions tell, which its type does not.

Tables are read in :mod:`sbnet.tables.frames`, and the words and numbers in them in :mod:`sbnet.tables.codings`. The
units of a network have their meaning already: words that neither say what they mean nor stand in the note of their unit
are refused, and two numbers other than 0 and 1 are read by their order, with a warning.

States are named in mappings and in tables with names, where a number is the state that is called so: 0 and 1 where the
states are no and yes, or other words. In plain arrays, which have no names, a number is the number of the state.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np

from sbnet import checks
from sbnet._types import HIDDEN, BoolArray, FloatArray, IndexArray, States
from sbnet.errors import CodingWarning, EvidenceError, TableError, hint, unknown_unit
from sbnet.model.network import Network
from sbnet.model.states import NO_YES, are_words, find, shown
from sbnet.model.suggestions import check_kinds
from sbnet.parallel.blocks import row_blocks
from sbnet.parallel.lazy import Partitions
from sbnet.tables import codings, frames
from sbnet.tables.codings import Coding
from sbnet.tables.several import is_variable, several, spread

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
_BINARY = 'units are binary: 0, 1 or NaN for "not observed"'


@dataclass(frozen=True)
class Reading:
    """Evidence in the internal form, whether it was one pattern, and the codings that had to be inferred, by unit."""

    states: States
    single: bool
    codings: dict[int, Coding] = field(default_factory=dict)


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


def read_many(
    network: Network, evidence: EvidenceLike, *, missing: Any = (), known: Mapping[int, Coding] | None = None
) -> Reading:
    """A table of patterns; `known` are the codings of units, by number, that another table has shown."""
    return _of_many(evidence, read(network, evidence, missing=missing, known=known))


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
    """One part of a table of which nobody sees the whole; its cells must say what they mean without those of others."""
    reading, doubts = _read(network, table, missing, {})
    if doubts:
        raise EvidenceError(f"in one part of a table, {doubts[0]}")
    return np.ascontiguousarray(_of_many(table, reading).states)


def read(
    network: Network, evidence: EvidenceLike, *, missing: Any = (), known: Mapping[int, Coding] | None = None
) -> Reading:
    """Evidence in any form; what is in `missing` is not observed, nor are -1, NaN, None, NA and empty cells."""
    reading, doubts = _read(network, evidence, missing, known or {})
    for doubt in doubts:
        warnings.warn(doubt, CodingWarning, stacklevel=_outside())
    return reading


def _read(
    network: Network, evidence: EvidenceLike, missing: Any, known: Mapping[int, Coding]
) -> tuple[Reading, list[str]]:
    """Evidence in any form, and what may have been meant otherwise."""
    check_kinds(network, evidence)
    reader = _Reader(network, (*frames.missing_values(missing), -1.0), known)
    return reader.read(evidence), reader.doubts


def check_means(network: Network, states: States, means: ArrayLike, single: bool) -> FloatArray:
    """Means for every row and column, with those of observed variables put in."""
    mu, known = checks.numbers("means", means), observed_means(network, states)
    expected = known.shape[1:] if single else known.shape
    if mu.shape != expected:
        whose = "unit" if network.is_binary else "state from the second one on of every variable"
        raise EvidenceError(f"means have shape {mu.shape}; expected {expected}, one for every {whose}")
    mu = np.where(np.isnan(known), mu, known)
    good: BoolArray = (mu >= 0.0) & (mu <= 1.0)
    if not good.all():
        raise EvidenceError(f"means must lie between 0 and 1; got {mu[~good][0]}")
    return mu


def observed_means(network: Network, states: States) -> FloatArray:
    """Means that evidence gives: rows by columns, NaN for variables that are not observed."""
    if network.is_binary:
        return np.where(states == HIDDEN, np.nan, states)
    variable, state = network.columns
    own = states[..., variable]
    return np.where(own == HIDDEN, np.nan, own == state)


def as_evidence(network: Network, i: int, state: int) -> Any:
    """A state as a mapping may give it: its number, or its name where numbers are names."""
    states = network.states[network.names[i]]
    return int(state) if len(states) == 2 and are_words(states) else states[state]


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
        raise EvidenceError(f"evidence names unit {double!r} twice")
    return dict(evidence.items())


class _Reader:
    """Puts columns in the places of their units; keeps what had to be inferred, and what may be meant otherwise."""

    def __init__(self, network: Network, gone: tuple[Any, ...], known: Mapping[int, Coding]) -> None:
        self.network, self.gone, self.known = network, gone, known
        self.inferred: dict[int, Coding] = {}
        self.doubts: list[str] = []
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
            expected = "expected one pattern or a table of rows by units"
            raise EvidenceError(f"evidence has {array.ndim} dimensions; {expected}")
        return self.array(np.atleast_2d(array), single=array.ndim == 1)

    def frame(self, frame: Any) -> Reading:
        labels: list[Any] = list(frame.columns)
        if frames.are_default(labels) or not any(isinstance(label, str) for label in labels):
            self.positions = True
            sheet = frames.from_frame(frame, frames.names_of(frame), self.gone)
            return self.place(sheet, range(self.first(len(sheet.columns)), self.network.n_units))
        if any(is_variable(self.network, label) for label in labels):
            return self.records(list(frame.iter_rows(named=True)))
        units = [_unit_index(self.network, label) for label in labels]
        if len(set(units)) < len(units):
            double = next(label for k, label in enumerate(labels) if units[k] in units[:k])
            raise EvidenceError(f"the table has two columns for unit {double!r}")
        names = tuple(self.network.names[i] for i in units)
        return self.sheet(frames.from_frame(frame, names, self.gone))

    def sheet(self, sheet: frames.Sheet) -> Reading:
        """Columns matched by name."""
        units = [_unit_index(self.network, name) for name in sheet.names or ()]
        reading = self.place(sheet, units)
        self.doubt_signs(sheet, units, reading.states)
        return reading

    def array(self, table: np.ndarray[Any, Any], single: bool) -> Reading:
        """An array; if it is one of numbers, zeros and ones are seen at once, for many columns together."""
        width, first = table.shape[1], self.first(table.shape[1])
        states, n = self.hidden(len(table)), self.network.n_states[self.first(table.shape[1]) :]
        self.positions = True
        odd: BoolArray = np.zeros(width, dtype=np.bool_)
        if table.dtype.kind in "biuf":
            for block in row_blocks(len(table), width):  # a long table must not cost several more of its size
                if self.network.is_binary:
                    states[block, first:], good = codings.zeros_and_ones(table[block], self.gone)
                else:
                    states[block, first:], good = codings.numbers_of_states(table[block], n, self.gone)
                odd |= ~good.all(axis=0)
        else:
            odd[:] = [not self.plain(table[:, k].tolist(), states[:, first + k], int(n[k])) for k in range(width)]
        odd[[i - first for i in self.known if i >= first]] = True
        if not odd.any():
            return Reading(states, single)
        sheet, columns = frames.from_array(table, self.gone), np.flatnonzero(odd)
        return self.place(sheet, columns + first, columns, states=states, single=single)

    def records(self, rows: Sequence[Mapping[Any, Any]], single: bool = False) -> Reading:
        """Mappings from units, by name or by number, to values."""
        cells: dict[int, list[Any]] = {}
        for r, row in enumerate(rows):
            given: dict[int, Any] = {}
            for key, value in spread(self.network, row, self.gone).items():
                i = _unit_index(self.network, key)
                if i in given:
                    where = "" if single else f" in row {r}"
                    raise EvidenceError(
                        f"evidence{where} names unit {self.network.names[i]!r} twice, as {given[i]!r} and as {key!r}"
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
        """Are the states of a variable known by their names alone: more than two of them, or called by numbers?"""
        states = self.network.states[self.network.names[i]]
        return states != NO_YES and (len(states) > 2 or not are_words(states))

    def plain(self, values: list[Any], out: States, n_states: int = 2) -> bool:
        """Put states `out` for cells that are 0, 1, -1, NaN or None, as most are; False if there are others."""
        if self.known or len(self.gone) > 1:
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
            what = f"unit {name}" if records else f"column {k} ({name})"
            states[:, i] = self.column(sheet, int(k), int(i), what, "" if records and single else None)
        self.doubt_inferred()
        return Reading(states, single, self.inferred)

    def column(self, sheet: frames.Sheet, k: int, i: int, what: str, where: str | None) -> States:
        """One column, by the coding that is known, by its words, or by the order of its two values."""

        words = words_of(self.network, i)

        def refuse(r: int, more: str = "") -> TableError:
            cell, place = frames.brief(sheet.given(r, k)), f" {sheet.row(r)}" if where is None else where
            states = f"its states are {' and '.join(words)}, or 0 and 1" if words else _BINARY
            if self.named(i):
                numbers = f"; in an array their numbers, 0 to {len(words) - 1}" if self.positions else ""
                states = f"its states are {shown(words)}{numbers}"
            return TableError(f"{what} holds {cell}{place}; {states}{more}")

        try:
            column = sheet.columns[k]
            if column.dates:
                raise frames.dates(column.name)
        except TableError:
            if where is None:
                raise
            raise refuse(0) from None
        if self.named(i) and i not in self.known:
            return self.by_name(sheet, k, column, words, refuse)
        if i not in self.known and column.is_number:
            states, good = codings.zeros_and_ones(column.values, ())
            if good.all():
                return states
        noted = self.noted(column, i)
        coding = self.known.get(i) or noted or codings.learn(column)
        if coding is None or (not coding.known and i not in self.known and not codings.are_states(coding)):
            values = codings.distinct(column)
            many = "; say missing=[…] for those that are no state" if len(values) > 2 else codings.clash(values)
            raise refuse(codings.first_strange(column), f". It holds {codings.listing(values)}{many}" if many else "")
        if noted is None and i not in self.known:  # which value is 1 is said by the words, or by their order
            said = not words or Coding(*words).is_translatable if coding.known else column.ordered
            if not (coding.has_order or said):
                own = f"its states are {' and '.join(words)}"
                way = own if words else "say yes and no, or name them in Note(states=(…, …))"
                found = codings.listing(codings.distinct(column))
                raise TableError(f"{what} holds {found}, which the network does not know; {way}, or 0 and 1")
        states, strange = codings.read(column, coding)
        if strange is not None:
            raise refuse(strange, f"; elsewhere {coding}")
        if not coding.known and noted is None:
            self.inferred[i] = coding
        return states

    def by_name(
        self,
        sheet: frames.Sheet,
        k: int,
        column: frames.Column,
        words: tuple[str, ...],
        refuse: Callable[[int, str], TableError],
    ) -> States:
        """A column of the names of states, or of an array, of their numbers."""
        found: dict[Any, int | None] = {}
        cells = column.values.tolist()
        for value in dict.fromkeys(cells):
            if value is None or value != value:
                continue
            place = isinstance(value, float) and self.positions
            found[value] = codings.place_of(value, len(words)) if place else find(words, value)
        states = np.full(len(cells), HIDDEN, np.int8)
        absent = [word for word in words if frames.one_cell("", word, self.gone) is None]
        for r, value in enumerate(cells):
            if value is None or value != value:
                if absent and not self.positions:  # a state that is called as missing cells are
                    given = find(absent, sheet.given(r, k))
                    states[r] = HIDDEN if given is None else words.index(absent[given])
                continue
            state = found[value]
            if state is None:
                raise refuse(r, hint(value, words, likeness=0.6) if isinstance(value, str) else "")
            states[r] = state
        return states

    def noted(self, column: frames.Column, i: int) -> Coding | None:
        """The words for the states of a unit, if it has some and the column is written in them."""
        words = words_of(self.network, i)
        if not words or codings.read(column, Coding(*words))[1] is not None:
            return None
        return Coding(*words)

    def first(self, width: int) -> int:
        """Fewer columns than units are the last units, the bottom layer."""
        if width > self.network.n_units:
            raise EvidenceError(
                f"evidence has {width} columns, but the network has only {self.network.n_units} units; "
                "rows are patterns, columns are units"
            )
        return self.network.n_units - width

    def hidden(self, n_rows: int) -> States:
        return np.full((n_rows, self.network.n_units), HIDDEN, dtype=np.int8)

    def doubt_inferred(self) -> None:
        """Of each coding that was inferred here, once."""
        for coding in dict.fromkeys(coding for i, coding in self.inferred.items() if i not in self.known):
            units = [repr(self.network.names[i]) for i, other in self.inferred.items() if other == coding]
            shown = ", ".join(units[:3]) + (f" and {len(units) - 3} more" if len(units) > 3 else "")
            text = (
                f"column{'s' * (len(units) > 1)} {shown}: read as {coding}, the smaller value as 0. A table with only "
                "one of them would be read otherwise or refused; recode to 0 and 1 to be sure"
            )
            self.doubts.append(text)

    def doubt_signs(self, sheet: frames.Sheet, units: list[int], states: States) -> None:
        """Of columns of -1 and 1 alone, unless -1 was said to be missing: it may have been meant for "no"."""
        if not codings.may_be_signs(len(states), self.gone):
            return
        for k, i in enumerate(units):
            column = states[:, i]
            if self.named(i):
                continue
            if (column == 1).any() and not (column == 0).any():
                missing = np.flatnonzero(column == HIDDEN)
                if len(missing) and frames.is_number(sheet.given(int(missing[0]), k), -1.0):
                    self.doubts.append(f"column {self.network.names[i]!r} {codings.SIGNS}missing=[-1]")


def _outside() -> int:
    """How far up the first caller outside this package is, for warnings."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("sbnet."):
        level, frame = level + 1, frame.f_back
    return level


def _unit_index(network: Network, key: Any) -> int:
    if isinstance(key, str):
        if key not in network._index:
            raise unknown_unit(key, (*several(network), *network.names), "evidence")
        return network._index[key]
    if checks.is_whole(key):
        if 0 <= key < network.n_units:
            return int(key)
        raise EvidenceError(f"evidence names unit number {key}; the network has units 0 to {network.n_units - 1}")
    raise EvidenceError(f"evidence names units by name or by number; got {key!r}")
