"""What the columns of a table mean to a model: which units they are, and what each cell says of them.

A two-valued column is a unit of its name. What its two values are is known from the model, where it was learned from a
table; or they say it themselves, as 0 and 1, yes and no do. Where a model is learned, and for numbers, it is the order
rule of :mod:`sbnet.tables.codings`, decided by the first rows once and for all, so that it holds in every block. A
column of more values has a unit for each step or category, as :class:`sbnet.estimators.BinaryEncoder` makes them; the
model has a note on how.
"""

from __future__ import annotations

import json
import os
import shlex
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np

from sbnet._types import HIDDEN, IndexArray, States
from sbnet.cli.cells import as_numbers
from sbnet.cli.sources import Block, Source
from sbnet.cli.stored import COLUMNS, coding_of, stored_columns
from sbnet.errors import CodingWarning, ParameterError, TableError, enumerated, near_name, shortened, unknown_unit
from sbnet.model.names import normal
from sbnet.model.network import Network
from sbnet.tables import codings, delimited, frames
from sbnet.tables.codings import Coding

if TYPE_CHECKING:  # these bring scikit-learn along, which takes a second; not every command needs them
    from sbnet.estimators.codings import Reader
    from sbnet.inference.solvers.places import Place

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

    def look_up(self, column: frames.Column) -> int:
        """The value of the one cell of a column; -2 if it is not known."""
        raise NotImplementedError

    def __missing__(self, cell: Any) -> int:
        text = delimited.plain(cell, self._delimiter) if isinstance(cell, str) else cell
        number = frames.as_number(text) if isinstance(text, str) else None
        column = frames.column("", _one(text if number is None else number), self._gone)
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

    def look_up(self, column: frames.Column) -> int:
        states, strange = codings.read(column, self._coding)
        if strange is None:
            return int(states[0])
        bit = codings.meaning(column.values[0], self._coding)
        return -2 if bit is None else bit


class _ManyValues(Lexicon):
    """The values of an encoded column."""

    def __init__(self, reader: Reader, gone: tuple[Any, ...], delimiter: str) -> None:
        super().__init__(gone, delimiter)
        self._reader = reader

    def look_up(self, column: frames.Column) -> int:
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
        return all(frames.as_number(value) is not None for value in self.values)

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
                    f"{source.what}: column {self.name!r} holds {frames.brief(cell)} {source.row} {line}; its values "
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
        from sbnet.inference.solvers.places import Place

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
    stored = {normal(name): column for name, column in stored_columns(network).items()}
    found, refused = list[TableColumn](), list[NotTwoValued]()
    listed = [(place, name) for place, name in named_columns(source, head) if name not in left]
    _check_known([name for _, name in listed if normal(name) not in stored], network, source)
    for place, name in listed:
        check_plain(name, place, head, source)
        if normal(name) in stored:
            one = stored[normal(name)]
            units = np.array([network.index(unit) for unit in one.units], np.int64)
            lexicon: Lexicon = _ManyValues(one.reader, gone, source.delimiter)
            found.append(TableColumn(name, place, units, one.codes, one.labels, lexicon))
            continue
        i = network.index(name)
        try:
            coding = coding_of(network, network.names[i]) or _told(
                decide(name, place, head, source, gone), name, source
            )
        except NotTwoValued as error:
            refused.append(error)
        else:
            found.append(column_reader(name, place, i, coding, head, gone, source.delimiter))
    if refused:
        raise TableError(
            f"{source.what}: column{'s' * (len(refused) > 1)} {_not_two_valued(refused, 120)}; a unit is 0 or 1. Say "
            f"--missing for those that are no state, or --ignore the column{'s' * (len(refused) > 1)}"
        )
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


def named_columns(source: Source, head: Sequence[Block]) -> list[tuple[int, str]]:
    """The places and names of columns; one without a name is left alone, which is told if there is something in it."""
    for place, name in enumerate(source.names):
        if not name and any(str(cell).strip() for block in head for cell in block.columns[place] if cell is not None):
            text = (
                f"{source.what}: column {place + 1} has no name, and is left alone; name it in the first line to use it"
            )
            warnings.warn(text, CodingWarning, stacklevel=2)
    return [(place, name) for place, name in enumerate(source.names) if name]


def _check_known(names: Sequence[str], network: Network, source: Source) -> None:
    """Refuse columns that are no unit, all of them at once."""
    strange = [name for name in names if name not in network._index]
    if len(strange) == 1:
        error = unknown_unit(strange[0], network.names, f"the first line of {source.what}")
        raise TableError(f"{error}. Leave the column out with --ignore, or name rows by it with --id")
    if strange:
        raise TableError(
            f"the first line of {source.what} names {enumerated(strange)}, which are not in the network. "
            "Leave these columns out with --ignore, or name rows by them with --id"
        )


def _not_two_valued(refused: Sequence[NotTwoValued], room: int = 170) -> str:
    """All columns that are wrong, by name, and some cells of the first ones where there is room."""
    names = [error.args[0] for error in refused]
    for k in range(len(refused), 0, -1):
        told = "; ".join("{!r} holds {}".format(*error.args) for error in refused[:k])
        text = "; also ".join(filter(None, [told, enumerated(names[k:], room) if names[k:] else ""]))
        if len(text) <= room:
            return text
    return enumerated(names, room)


def _as_they_stand(place: int, head: Sequence[Block], most: int = 3) -> str:
    """The first different cells of a column, numbers digit by digit; nothing, if there are none or one."""
    cells = dict.fromkeys(str(cell).strip() for block in head for cell in block.columns[place] if cell == cell)
    told = [c[:20] if frames.as_number(c) is not None else codings.show(c) for c in cells if c not in ("", "None")]
    if len(told) < 2:
        return ""
    if len(told) > most:
        return ", ".join(told[:most]) + ", …"
    return f"{', '.join(told[:-1])} and {told[-1]}"


def refuse(source: Source, refused: Sequence[NotTwoValued]) -> TableError:
    """All columns that cannot be learned as they are, and the ways out."""
    told = _not_two_valued(refused)
    return TableError(
        f"{os.path.basename(source.what)[:30]}: not two-valued: {told}. Say --encode auto (categories, numbers), "
        "--missing -99 (no values), --id or --ignore COLUMN (no unit)"
    )


def _told(coding: Coding, name: str, source: Source) -> Coding:
    """A coding that does not say itself which value is 1 is told; words and measurements are refused."""
    if coding.known:
        return coding
    if not coding.has_order:
        raise TableError(
            f"{source.what}: column {name!r} holds {codings.listing([coding.zero, coding.one])}, which the model does "
            f"not know; say yes and no, or 0 and 1, or write states = [{_quoted(coding)}] beside the unit, 0 first"
        )
    if not codings.are_states(coding):
        raise TableError(f"{source.what}: column {name!r} holds {codings.show(coding.zero)}; units are binary, 0 or 1")
    text = f"{source.what}: column {name!r}: read as {coding}, the smaller value as 0; recode to 0 and 1 to be sure"
    warnings.warn(text, CodingWarning, stacklevel=2)
    return coding


def _quoted(coding: Coding) -> str:
    return ", ".join(json.dumps(word[:25], ensure_ascii=False) for word in (coding.zero, coding.one))


def decide(name: str, place: int, head: Sequence[Block], source: Source, gone: tuple[Any, ...]) -> Coding:
    """How a column is read of which the model says nothing: by the first rows, or by all rows of a file if those have
    but one value, which does not tell."""
    column = _column(name, place, head, source, gone)
    values = codings.distinct(column)
    if len(values) == 1 and not codings.is_settled(values[0]) and source.again is not None:
        with source.again() as whole:
            column = _column(name, place, whole.blocks, source, gone)
    coding = codings.learn(column)
    if coding is None:
        values = codings.distinct(column)
        raise NotTwoValued(name, (_as_they_stand(place, head) or codings.listing(values)) + codings.clash(values))
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
    signs = {number for number in (-1.0, 1.0) for cell in cells if frames.is_number(cell, number)}
    if len(cells) == len(signs) == 2 and codings.may_be_signs(sum(map(len, head)), gone):
        warnings.warn(f"{source.what}: column {name!r} {codings.SIGNS}--missing -1", CodingWarning, stacklevel=2)


def _column(name: str, place: int, blocks: Iterable[Block], source: Source, gone: tuple[Any, ...]) -> frames.Column:
    """The different cells of a column, in the order of their first appearance."""
    cells = dict.fromkeys(cell for block in blocks for cell in block.columns[place])
    plain = [delimited.plain(cell, source.delimiter) if isinstance(cell, str) else cell for cell in cells]
    numbers = [frames.as_number(cell) if isinstance(cell, str) else None for cell in plain]
    objects = np.empty(len(plain), dtype=object)
    objects[:] = [cell if number is None else number for cell, number in zip(plain, numbers, strict=True)]
    return frames.column(name, objects, gone)


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
                    f"{source.what}: column {name!r} holds {frames.brief(cell)} {source.row} {line}; cells are text or "
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
