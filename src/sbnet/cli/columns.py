"""What the columns of a table mean to a model: which units they are, and what each cell says of them.

A two-valued column is a unit of its name. What its two values are is known from the model, where it was learned from a
table; or they say it themselves, as 0 and 1, yes and no do; or it is the order rule of :mod:`sbnet.codings`, decided by
the first rows once and for all, so that it holds in every block. A column of more values has a unit for each step or
category, as :class:`sbnet.estimators.BinaryEncoder` makes them; the model has a note on how.
"""

from __future__ import annotations

import os
import shlex
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np

from sbnet import codings, delimited, tables
from sbnet._types import HIDDEN, IndexArray, States
from sbnet.cli.cells import as_numbers
from sbnet.cli.sources import Block, Source
from sbnet.cli.stored import COLUMNS, coding_of, stored_columns
from sbnet.codings import Coding
from sbnet.errors import CodingWarning, ParameterError, TableError, near_name, shortened, unknown_unit
from sbnet.network import Network

if TYPE_CHECKING:  # these bring scikit-learn along, which takes a second; not every command needs them
    from sbnet.estimators._codings import Reader
    from sbnet.inference.places import Place

_LOOKED_AT = 2048
"""Rows that decide how a column is read."""
_MOST = 100_000
BITS: States = np.array([[0], [1]], dtype=np.int8)


class NotTwoValued(Exception):
    """A column, by its name and some of its cells, that is no column of two values."""


class Strange(Exception):
    """A cell that is none of the values of its column."""


class Lexicon(dict[Any, int]):
    """The number of the value that a cell has, -1 if it is missing; each spelling is looked into once."""

    def __init__(self, gone: tuple[Any, ...], delimiter: str) -> None:
        super().__init__()
        self._gone, self._delimiter = gone, delimiter

    def look_up(self, column: tables.Column) -> int:
        """The value of the one cell of a column; -2 if it is not known."""
        raise NotImplementedError

    def __missing__(self, cell: Any) -> int:
        text = delimited.plain(cell, self._delimiter) if isinstance(cell, str) else cell
        number = tables.as_number(text) if isinstance(text, str) else None
        column = tables.column("", _one(text if number is None else number), self._gone)
        found = self.look_up(column)
        if found == -2:
            raise Strange(cell)
        if cell == cell and len(self) < _MOST:  # NaN is not equal to itself, and would fill the memory
            self[cell] = found
        return found


class _TwoValues(Lexicon):
    """The two values of a coding, and, where they are words, those that say themselves what they mean."""

    def __init__(self, coding: Coding, gone: tuple[Any, ...], delimiter: str) -> None:
        super().__init__(gone, delimiter)
        self._coding = coding

    def look_up(self, column: tables.Column) -> int:
        states, strange = codings.read(column, self._coding)
        if strange is None:
            return int(states[0])
        words = all(isinstance(v, str) and tables.as_number(v) is None for v in (self._coding.zero, self._coding.one))
        bit = codings.bit(column.values[0]) if words else None
        return -2 if bit is None else bit


class _ManyValues(Lexicon):
    """The values of an encoded column."""

    def __init__(self, reader: Reader, gone: tuple[Any, ...], delimiter: str) -> None:
        super().__init__(gone, delimiter)
        self._reader = reader

    def look_up(self, column: tables.Column) -> int:
        return int(self._reader.index(column.values)[0])


@dataclass(frozen=True, eq=False)
class TableColumn:
    """A column of the table at hand: its place in it, its units, its values in words and how cells are read."""

    name: str
    place: int
    units: IndexArray
    codes: States
    values: tuple[str, ...]
    lexicon: Lexicon = field(repr=False)

    @property
    def is_numeric(self) -> bool:
        """Are its values numbers, in digits or not?"""
        return all(tables.as_number(value) is not None for value in self.values)

    def read(self, block: Block, source: Source) -> IndexArray:
        """The number of the value of each cell."""
        cells = block.columns[self.place]
        try:
            return np.fromiter(map(self.lexicon.__getitem__, cells), np.int64, len(cells))
        except Strange as strange:
            line = block.lines[cells.index(strange.args[0])]
            cell = strange.args[0]
            raise TableError(
                shortened(
                    f"{source.what}: column {self.name!r} holds {tables.brief(cell)} {source.row} {line}; its values "
                    f"are {_some(self.values)}. If it marks missing cells, say --missing {shlex.quote(str(cell))[:40]}"
                )
            ) from None


@dataclass(frozen=True, eq=False)
class TableColumns:
    """The columns of a table that are units of a model."""

    network: Network
    columns: tuple[TableColumn, ...]

    def states(self, block: Block, source: Source) -> States:
        """Rows by all units of the network."""
        states = np.full((len(block), self.network.n_units), HIDDEN, dtype=np.int8)
        for column in self.columns:
            index = column.read(block, source)
            found = column.codes[index]
            found[index < 0] = HIDDEN
            states[:, column.units] = found
        return states

    def places(self) -> list[Place]:
        """For the functions that complete cells."""
        from sbnet.inference.places import Place

        return [Place(c.name, c.units, c.codes, c.values) for c in self.columns]

    @property
    def many_valued(self) -> bool:
        """Has a column more than one unit, so that not all states of its units are possible?"""
        return any(len(column.codes) > 2 for column in self.columns)


def match(
    network: Network, source: Source, gone: tuple[Any, ...], left_out: Iterable[str]
) -> tuple[TableColumns, Source]:
    """The columns of a table in a network, and the table with its first rows put back."""
    left = set(left_out)
    for name in left:
        if name not in source.names:
            near = near_name(name, source.names, 0.5)
            raise ParameterError(
                f"{source.what} has no column {name!r}" + (f"; did you mean {near!r}?" if near else "")
            )
    head, source = peek(source)
    stored = stored_columns(network)
    found = []
    for place, name in enumerate(source.names):
        if name in left:
            continue
        check_plain(name, place, head, source)
        if name in stored:
            one = stored[name]
            units = np.array([network.index(unit) for unit in one.units], np.int64)
            lexicon: Lexicon = _ManyValues(one.reader, gone, source.delimiter)
            found.append(TableColumn(name, place, units, one.codes, one.labels, lexicon))
        elif name in network._index:
            coding = coding_of(network, name) or _decided(name, place, head, source, gone)
            found.append(column_reader(name, place, network.index(name), coding, head, gone, source.delimiter))
        else:
            error = unknown_unit(name, network.names, f"the first line of {source.what}")
            raise TableError(f"{error}. Leave the column out with --ignore, or name rows by it with --id")
    for column in found:  # what is wrong with the first rows is said before there are answers
        for block in head:
            column.read(block, source)
    return TableColumns(network, tuple(found)), source


def column_reader(
    name: str, place: int, unit: int, coding: Coding, head: Sequence[Block], gone: tuple[Any, ...], delimiter: str
) -> TableColumn:
    """Its values are spelled as they were first seen."""
    lexicon, spelled = _TwoValues(coding, gone, delimiter), {0: codings.word(coding.zero), 1: codings.word(coding.one)}
    seen: set[int] = set()
    for block in head[:1]:
        for cell in block.columns[place]:
            try:
                bit = lexicon[cell]
            except Strange:
                continue
            if bit >= 0 and bit not in seen:
                seen.add(bit)
                spelled[bit] = cell.strip() if isinstance(cell, str) else cell
    return TableColumn(name, place, np.array([unit]), BITS, (spelled[0], spelled[1]), lexicon)


def _decided(name: str, place: int, head: Sequence[Block], source: Source, gone: tuple[Any, ...]) -> Coding:
    try:
        return _told(decide(name, place, head, source, gone), name, source)
    except NotTwoValued as refused:
        raise TableError(
            f"{source.what}: column {name!r} holds {refused.args[1]}; a unit is 0 or 1. Say --missing for "
            "those that are no state, or --ignore the column"
        ) from None


def _as_they_stand(place: int, head: Sequence[Block], most: int = 3) -> str:
    """The first different cells of a column, numbers digit by digit; nothing, if there are none or one."""
    cells = dict.fromkeys(str(cell).strip() for block in head for cell in block.columns[place] if cell == cell)
    told = [c[:20] if tables.as_number(c) is not None else codings.show(c) for c in cells if c not in ("", "None")]
    if len(told) < 2:
        return ""
    if len(told) > most:
        return ", ".join(told[:most]) + ", …"
    return f"{', '.join(told[:-1])} and {told[-1]}"


def refuse(source: Source, refused: Sequence[NotTwoValued]) -> TableError:
    """All columns that cannot be learned as they are, and the ways out."""
    named = [f"{error.args[0]!r} holds {error.args[1]}" for error in refused[:3]]
    more = [f"{len(refused) - 3} columns more"] if len(refused) > 3 else []
    text = f"{os.path.basename(source.what)[:30]}: not two-valued: {'; '.join([*named, *more])}"
    return TableError(
        f"{text if len(text) <= 165 else text[:164] + '…'}. Say --encode auto (categories, numbers, blanks that mean "
        "no), --missing -99 (no values), --id or --ignore COLUMN (no unit)"
    )


def _told(coding: Coding, name: str, source: Source) -> Coding:
    """A coding that does not say itself which value is 1 is told, or refused if its values are measurements."""
    if coding.known:
        return coding
    if not codings.are_states(coding):
        raise TableError(f"{source.what}: column {name!r} holds {codings.show(coding.zero)}; units are binary, 0 or 1")
    text = f"{source.what}: column {name!r}: read as {coding}, the smaller value as 0; recode to 0 and 1 to be sure"
    warnings.warn(text, CodingWarning, stacklevel=2)
    return coding


def decide(name: str, place: int, head: Sequence[Block], source: Source, gone: tuple[Any, ...]) -> Coding:
    """How a column is read of which the model says nothing: by the first rows, or by all rows of a file if those have
    but one value, which does not tell."""
    column = _column(name, place, head, source, gone)
    values = codings.distinct(column)
    if len(values) == 1 and codings.bit(values[0]) != 0 and source.again is not None:
        with source.again() as whole:
            column = _column(name, place, whole.blocks, source, gone)
    coding = codings.learn(column)
    if coding is None:
        raise NotTwoValued(name, _as_they_stand(place, head) or codings.listing(codings.distinct(column)))
    _warn_of_signs(name, place, head, source, gone)
    return coding


def check_choice(name: str, place: int, head: Sequence[Block], source: Source, gone: tuple[Any, ...]) -> None:
    """Refuse to learn one value and blanks: every blank would be filled with that value."""
    column = _column(name, place, head, source, gone)
    blank = any(cell is None or cell != cell for cell in column.values.tolist())
    values = codings.distinct(column)
    if not blank or len(values) != 1 or codings.bit(values[0]) == 0:
        return
    if source.again is not None:
        with source.again() as whole:
            values = codings.distinct(_column(name, place, whole.blocks, source, gone))
    if len(values) == 1:
        raise NotTwoValued(name, f"{codings.show(values[0])} and blanks alone")


def _warn_of_signs(name: str, place: int, head: Sequence[Block], source: Source, gone: tuple[Any, ...]) -> None:
    """As evidence does: -1 may have been meant for "no"."""
    cells = {cell for block in head for cell in block.columns[place]}
    signs = {number for number in (-1.0, 1.0) for cell in cells if tables.is_number(cell, number)}
    if len(cells) == len(signs) == 2 and codings.may_be_signs(sum(map(len, head)), gone):
        warnings.warn(f"{source.what}: column {name!r} {codings.SIGNS}--missing -1", CodingWarning, stacklevel=2)


def _column(name: str, place: int, blocks: Iterable[Block], source: Source, gone: tuple[Any, ...]) -> tables.Column:
    """The different cells of a column, in the order of their first appearance."""
    cells = dict.fromkeys(cell for block in blocks for cell in block.columns[place])
    plain = [delimited.plain(cell, source.delimiter) if isinstance(cell, str) else cell for cell in cells]
    numbers = [tables.as_number(cell) if isinstance(cell, str) else None for cell in plain]
    objects = np.empty(len(plain), dtype=object)
    objects[:] = [cell if number is None else number for cell, number in zip(plain, numbers, strict=True)]
    return tables.column(name, objects, gone)


def peek(source: Source) -> tuple[list[Block], Source]:
    """The first rows, and the table with them put back."""
    head: list[Block] = []
    while sum(map(len, head)) < _LOOKED_AT:
        block = next(source.blocks, None)
        if block is None:
            break
        head.append(block)

    def all_blocks() -> Any:
        yield from head
        yield from source.blocks

    return head, replace(source, blocks=all_blocks())


def _one(cell: Any) -> Any:
    objects = np.empty(1, dtype=object)
    objects[0] = cell
    return objects


def _some(values: Sequence[Any]) -> str:
    words = [str(value) for value in values]
    return " and ".join(words) if len(words) == 2 else ", ".join(words[:8]) + ", …" * (len(words) > 8)


def check_plain(name: str, place: int, head: Sequence[Block], source: Source) -> None:
    """Refuse a column of lists and the like."""
    for block in head:
        for cell, line in zip(block.columns[place], block.lines, strict=True):
            if not (cell is None or isinstance(cell, str | int | float | Decimal)):
                raise TableError(
                    f"{source.what}: column {name!r} holds {tables.brief(cell)} {source.row} {line}; cells are text or "
                    "numbers. Leave the column out with --ignore, or name rows by it with --id"
                )


@dataclass(frozen=True, eq=False)
class Drawn:
    """A column of rows that are drawn: its units, their states at each value, and a word for each."""

    name: str
    units: IndexArray
    codes: States
    words: tuple[Any, ...]

    def cells(self, states: States) -> list[Any]:
        """The value of each row, in its word."""
        same = (states[:, self.units][:, None, :] == self.codes).all(axis=2)
        return [self.words[k] for k in same.argmax(axis=1).tolist()]


def drawn_columns(network: Network, *, every: bool) -> list[Drawn]:
    """The columns that a model was learned from; or all units, of a model that was not."""
    stored = {} if every else stored_columns(network)
    coded = {unit for column in stored.values() for unit in column.units}
    own = [name for name in network.names if every or (network.notes[name].group == COLUMNS and name not in coded)]
    if not own and not stored:
        own = list(network.names)
    found = []
    for name in own:
        words = as_numbers(network.notes[name].states) or (0, 1)
        found.append(Drawn(name, np.array([network.index(name)]), BITS, words))
    for column in stored.values():
        units = np.array([network.index(unit) for unit in column.units], np.int64)
        found.append(Drawn(column.name, units, column.codes, as_numbers(column.labels)))
    return found
