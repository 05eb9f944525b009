"""What the columns of a table mean to a model: which units they are, and what each cell says of them.

A two-valued column is a unit of its name. What its two values are is known from the model, where it was learned from a
table; or they say it themselves, as 0 and 1, yes and no do. Where a model is learned, and for numbers, it is the order
rule of :mod:`sbnet.tables.codings`, decided by the first rows once and for all, so that it holds in every block. A
column of more values has a unit for each step or category, as :class:`sbnet.estimators.BinaryEncoder` makes them; the
model has a note on how.
"""

from __future__ import annotations

import json
import shlex
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from sbnet._types import IndexArray
from sbnet.cli.stored import coding_of, stored_columns, units_of
from sbnet.errors import CodingWarning, ParameterError, TableError, enumerated, near_name, shortened, unknown_unit
from sbnet.inference.solvers.places import BINARY, Place
from sbnet.model.names import normal
from sbnet.model.network import Network
from sbnet.model.states import find
from sbnet.tables import codings, frames, reading
from sbnet.tables.codings import Coding
from sbnet.tables.reading import Block, Source

if TYPE_CHECKING:  # this brings scikit-learn along, which takes a second; not every command needs it
    from sbnet.estimators.codings import Reader

_LOOKED_AT = 2048
"""Rows that decide how a column is read."""
_MOST = 100_000


class NotTwoValued(Exception):
    """A column, by its name and some of its cells, that is no column of two values."""


class Unknown(Exception):
    """A cell that is none of the values of its column."""


@dataclass(frozen=True)
class TableHead:
    """A table, its first rows, by which it is decided how columns are read, and the values that count as missing."""

    source: Source
    head: Sequence[Block]
    gone: tuple[Any, ...]

    @classmethod
    def begin(cls, source: Source, gone: tuple[Any, ...]) -> TableHead:
        """Read the first rows, and put them back."""
        head: list[Block] = []
        while sum(map(len, head)) < _LOOKED_AT and (block := next(source.blocks, None)) is not None:
            head.append(block)
        return cls(replace(source, blocks=chain(head, source.blocks)), head, gone)

    def cells(self, position: int) -> Iterator[Any]:
        return (cell for block in self.head for cell in block.columns[position])

    def column(self, position: int) -> frames.Column:
        """The different cells of a column, in the order of their first appearance."""
        return self._column(position, self.cells(position))

    def whole_column(self, position: int) -> frames.Column:
        """The different cells in all rows, if the table can be read a second time."""
        if self.source.again is None:
            return self.column(position)
        with self.source.again() as whole:
            return self._column(position, (cell for block in whole.blocks for cell in block.columns[position]))

    def _column(self, position: int, cells: Iterable[Any]) -> frames.Column:
        values = [reading.value(cell, self.source.delimiter) for cell in dict.fromkeys(cells)]
        return frames.column(self.source.names[position], values, self.gone)

    def named_columns(self) -> list[int]:
        """The positions of columns with names; where cells stand below a blank name, the user is told."""
        for k, name in enumerate(self.source.names):
            if not name and any(str(cell).strip() for cell in self.cells(k) if cell is not None):
                text = f"{self.source.what}: column {k + 1} has no name, and is left alone; name it in the first line"
                warnings.warn(f"{text} to use it", CodingWarning, stacklevel=2)
        return [k for k, name in enumerate(self.source.names) if name]

    def check_cells(self, position: int) -> None:
        """Refuse a column of lists and the like."""
        for block in self.head:
            for cell, line in zip(block.columns[position], block.lines, strict=True):
                if not (cell is None or isinstance(cell, str | int | float | Decimal)):
                    raise TableError(
                        f"{self.source.what}: column {self.source.names[position]!r} holds {frames.brief(cell)} "
                        f"{self.source.row} {line}; cells are text or numbers. Leave the column out with --ignore, or "
                        "name rows by it with --id"
                    )


class Lexicon(dict[Any, int]):
    """The number of the value that a cell has, -1 if it is missing; each spelling is looked up once."""

    def __init__(self, table: TableHead, look_up: Callable[[frames.Column], int]) -> None:
        super().__init__()
        self._gone, self._delimiter, self._look_up = table.gone, table.source.delimiter, look_up

    def __missing__(self, cell: Any) -> int:
        found = self._look_up(frames.column("", [reading.value(cell, self._delimiter)], self._gone))
        if found == -2:
            raise Unknown(cell)
        if cell == cell and len(self) < _MOST:  # NaN is not equal to itself, and would fill the memory
            self[cell] = found
        return found


@dataclass(frozen=True, eq=False)
class TableColumn(Place):
    """A column of the table at hand: where its units are in a network, and where it stands in the table.

    Its labels are its values as the table spells them; the lexicon reads cells.
    """

    position: int
    lexicon: Lexicon = field(repr=False)

    def read(self, block: Block, source: Source) -> IndexArray:
        """The number of the value of each cell."""
        cells = block.columns[self.position]
        try:
            return np.fromiter(map(self.lexicon.__getitem__, cells), np.int64, len(cells))
        except Unknown as unknown:
            (cell,) = unknown.args
            words = list(map(str, self.labels))
            known = " and ".join(words) if len(words) == 2 else ", ".join(words[:8]) + ", …" * (len(words) > 8)
            raise TableError(
                shortened(
                    f"{source.what}: column {self.name!r} holds {frames.brief(cell)} {source.row} "
                    f"{block.lines[cells.index(cell)]}; its values are {known}. If it marks missing cells, say "
                    f"--missing {shlex.quote(str(cell))[:40]}"
                )
            ) from None


def match(network: Network, table: TableHead, left_out: Iterable[str]) -> tuple[TableColumn, ...]:
    """The columns of a table in a network."""
    source, left = table.source, set(left_out)
    for name in left.difference(source.names):
        near = near_name(name, source.names, 0.5)
        raise ParameterError(f"{source.what} has no column {name!r}" + (f"; did you mean {near!r}?" if near else ""))
    stored = {normal(name): column for name, column in stored_columns(network).items()}
    listed = [k for k in table.named_columns() if source.names[k] not in left]
    _check_known([source.names[k] for k in listed if normal(source.names[k]) not in stored], network, source)
    found, refused = list[TableColumn](), list[NotTwoValued]()
    for k in listed:
        table.check_cells(k)
        name = source.names[k]
        if (one := stored.get(normal(name))) is not None:
            lexicon = Lexicon(table, partial(_index_of, one.reader))
            found.append(TableColumn(name, units_of(network, one), one.codes, one.labels, k, lexicon))
            continue
        i = network.index(name)
        if network.n_states[i] > 2:
            found.append(_of_states(network, table, k, i))
            continue
        try:
            coding = coding_of(network, network.names[i]) or _understood(decide(table, k), name, source)
            found.append(two_valued(table, k, i, coding))
        except NotTwoValued as error:
            refused.append(error)
    if refused:
        s = "s" * (len(refused) > 1)
        raise TableError(
            f"{source.what}: column{s} {told_of(refused, 120)}; a unit is 0 or 1. Say --missing for those that "
            f"are no state, or --ignore the column{s}"
        )
    for column in found:  # what is wrong with the first rows is said before there are answers
        for block in table.head:
            column.read(block, source)
    return tuple(found)


def _of_states(network: Network, table: TableHead, position: int, i: int) -> TableColumn:
    """A column of the states of a variable that has more than two."""
    states = network.states[network.names[i]]

    def look_up(column: frames.Column) -> int:
        value = column.values[0]
        if value is None or value != value:
            return -1
        state = find(states, value)
        return -2 if state is None else state

    codes = np.arange(len(states), dtype=np.int8)[:, None]
    return TableColumn(table.source.names[position], np.array([i]), codes, states, position, Lexicon(table, look_up))


def _index_of(reader: Reader, column: frames.Column) -> int:
    return int(reader.index(column.values)[0])


def _check_known(names: Sequence[str], network: Network, source: Source) -> None:
    """Refuse columns that are no unit, all of them at once."""
    unknown = [name for name in names if name not in network._index]
    if len(unknown) == 1:
        error = unknown_unit(unknown[0], network.names, f"the first line of {source.what}")
        raise TableError(f"{error}. Leave the column out with --ignore, or name rows by it with --id")
    if unknown:
        raise TableError(
            f"the first line of {source.what} names {enumerated(unknown)}, which are not in the network. "
            "Leave these columns out with --ignore, or name rows by them with --id"
        )


# --- two values -------------------------------------------------------------------------------------------------------


def two_valued(table: TableHead, position: int, unit: int, coding: Coding) -> TableColumn:
    """A column of two values, which are spelled as they were first seen."""

    def look_up(column: frames.Column) -> int:
        states, unknown = codings.read(column, coding)
        bit = int(states[0]) if unknown is None else codings.meaning(column.values[0], coding)
        return -2 if bit is None else bit

    lexicon, seen = Lexicon(table, look_up), dict[int, Any]()
    for cell in chain.from_iterable(block.columns[position] for block in table.head[:1]):
        try:
            seen.setdefault(lexicon[cell], cell.strip() if isinstance(cell, str) else cell)
        except Unknown:
            continue
    labels = (seen.get(0, codings.word(coding.zero)), seen.get(1, codings.word(coding.one)))
    return TableColumn(table.source.names[position], np.array([unit]), BINARY, labels, position, lexicon)


def decide(table: TableHead, position: int) -> Coding:
    """How a column is read of which the model says nothing: by the first rows, or by all rows of a file if those have
    but one value, which does not tell."""
    column = table.column(position)
    values = codings.distinct(column)
    if len(values) == 1 and not codings.is_settled(values[0]):
        column = table.whole_column(position)
    coding = codings.learn(column)
    if coding is None:
        values = codings.distinct(column)
        told = _as_they_stand(table.cells(position)) or codings.listing(values)
        raise NotTwoValued(column.name, told + codings.clash(values))
    cells = set(table.cells(position))
    signs = {number for number in (-1.0, 1.0) for cell in cells if frames.is_number(cell, number)}
    if len(cells) == len(signs) == 2 and codings.may_be_signs(sum(map(len, table.head)), table.gone):
        text = f"{table.source.what}: column {column.name!r} {codings.SIGNS}--missing -1"
        warnings.warn(text, CodingWarning, stacklevel=2)  # as evidence does: -1 may have been meant for "no"
    return coding


def check_choice(table: TableHead, position: int) -> None:
    """Refuse to learn one value and blanks: every blank would be filled with that value."""
    column = table.column(position)
    blank = any(cell is None or cell != cell for cell in column.values.tolist())
    values = codings.distinct(column)
    if blank and len(values) == 1 and codings.bit(values[0]) != 0:
        values = codings.distinct(table.whole_column(position))
        if len(values) == 1:
            raise NotTwoValued(column.name, f"{codings.show(values[0])} and blanks alone")


def _understood(coding: Coding, name: str, source: Source) -> Coding:
    """Warn of a coding by the order of two numbers; words that do not say which is 1, and fractions, are refused."""
    if coding.known:
        return coding
    if not coding.has_order:
        quoted = ", ".join(json.dumps(word[:25], ensure_ascii=False) for word in (coding.zero, coding.one))
        raise TableError(
            f"{source.what}: column {name!r} holds {codings.listing([coding.zero, coding.one])}, which the model does "
            f"not know; say yes and no, or 0 and 1, or write states = [{quoted}] beside the unit, 0 first"
        )
    if not codings.are_states(coding):
        raise TableError(f"{source.what}: column {name!r} holds {codings.show(coding.zero)}; units are binary, 0 or 1")
    text = f"{source.what}: column {name!r}: read as {coding}, the smaller value as 0; recode to 0 and 1 to be sure"
    warnings.warn(text, CodingWarning, stacklevel=2)
    return coding


def told_of(refused: Sequence[NotTwoValued], room: int) -> str:
    """All columns that are wrong, by name, and some cells of the first ones where there is room."""
    names = [error.args[0] for error in refused]
    for k in range(len(refused), 0, -1):
        told = "; ".join("{!r} holds {}".format(*error.args) for error in refused[:k])
        text = "; also ".join(filter(None, [told, enumerated(names[k:], room) if names[k:] else ""]))
        if len(text) <= room:
            return text
    return enumerated(names, room)


def _as_they_stand(cells: Iterable[Any]) -> str:
    """The first different cells of a column, numbers digit by digit; nothing, if there are none or one."""
    texts = dict.fromkeys(str(cell).strip() for cell in cells if cell == cell)
    told = [c[:20] if frames.as_number(c) is not None else codings.show(c) for c in texts if c not in ("", "None")]
    if len(told) < 2:
        return ""
    return ", ".join(told[:3]) + ", …" if len(told) > 3 else f"{', '.join(told[:-1])} and {told[-1]}"
