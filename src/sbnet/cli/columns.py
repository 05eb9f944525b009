"""The columns of a table as variables of a model: by the schema that the model was learned with, or by its states."""

from __future__ import annotations

import shlex
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from itertools import chain
from typing import Any

import numpy as np

from sbnet._types import IndexArray
from sbnet.errors import CodingWarning, ParameterError, TableError, enumerated, near_name, shortened, unknown_unit
from sbnet.model.names import normal
from sbnet.model.network import Network
from sbnet.model.states import shown
from sbnet.tables import frames, headers, reading
from sbnet.tables.kinds import Column
from sbnet.tables.reading import Block, Source
from sbnet.tables.stored import column_of, schema_of

_LOOKED_AT = 2048
"""Rows that tell whether there is a second line of names, and how cells are spelled."""
_MOST = 100_000


class Unknown(Exception):
    """A cell that is none of the states of its column."""


@dataclass(frozen=True)
class TableHead:
    """A table, its first rows, and the values that count as missing.

    `names` are those of the columns, from two lines where there are two; `second` is the second of them as it stands.
    """

    source: Source
    names: tuple[str, ...]
    second: tuple[Any, ...] | None
    head: Sequence[Block]
    gone: tuple[Any, ...]

    @classmethod
    def begin(cls, source: Source, gone: tuple[Any, ...]) -> TableHead:
        """Read the first rows, and put them back, but for a second line of names."""
        head: list[Block] = []
        while sum(map(len, head)) < _LOOKED_AT and (block := next(source.blocks, None)) is not None:
            head.append(block)
        names, second = source.names, None
        if head and headers.is_second_line(_columns(source, head[0]), names):
            second = tuple(column[0] for column in head[0].columns)
            names = headers.with_second_line(names, second)
            head[0] = Block([column[1:] for column in head[0].columns], head[0].lines[1:])
        names = tuple(made if name else name for name, made in zip(names, headers.unique(names), strict=True))
        return cls(replace(source, blocks=chain(head, source.blocks)), names, second, head, gone)

    def cells(self, position: int) -> Iterator[Any]:
        """The cells of a column in the first rows."""
        return (cell for block in self.head for cell in block.columns[position])

    def named_columns(self) -> list[int]:
        """The positions of columns with names; where cells stand below a blank name, the user is told."""
        for k, name in enumerate(self.names):
            if not name and any(str(cell).strip() for cell in self.cells(k) if cell is not None):
                text = f"{self.source.what}: column {k + 1} has no name, and is left alone; name it in the first line"
                warnings.warn(f"{text} to use it", CodingWarning, stacklevel=2)
        return [k for k, name in enumerate(self.names) if name]

    def check_cells(self, position: int) -> None:
        """Refuse a column of lists and the like."""
        for block in self.head:
            for cell, line in zip(block.columns[position], block.lines, strict=True):
                if not (cell is None or isinstance(cell, str | int | float | Decimal) or frames.is_date(cell)):
                    raise TableError(
                        f"{self.source.what}: column {self.names[position]!r} holds {frames.brief(cell)} "
                        f"{self.source.row} {line}; cells are text or numbers. Leave the column out with --ignore, or "
                        "name rows by it with --id"
                    )


def _columns(source: Source, block: Block) -> list[frames.Column]:
    """The first rows as columns, to see whether they begin with names; what cannot be read begins with none."""
    texts = [[reading.text(cell, source.delimiter) for cell in column] for column in block.columns]
    try:
        return [frames.column("", column) for column in texts]
    except TableError:
        return []


class Lexicon(dict[Any, int]):
    """The number of the state that a cell has, -1 if it is missing; each spelling is looked up once."""

    def __init__(self, table: TableHead, column: Column, *, lenient: bool) -> None:
        super().__init__()
        self._gone, self._delimiter, self._column, self._lenient = table.gone, table.source.delimiter, column, lenient
        self.strange: list[str] = []

    def learn(self, cells: Iterable[Any]) -> None:
        """Look cells up together: some words say what they mean in pairs alone."""
        listed = list(cells)
        texts = [reading.text(cell, self._delimiter) for cell in listed]
        states, new = self._column.read(frames.column(self._column.name, texts, self._gone))
        self.update({cell: int(s) for cell, s, odd in zip(listed, states, new, strict=True) if not odd})

    def __missing__(self, cell: Any) -> int:
        cells = frames.column(self._column.name, [reading.text(cell, self._delimiter)], self._gone)
        states, new = self._column.read(cells)
        if new[0]:
            if not self._lenient:
                raise Unknown(cell)
            self.strange.append(str(cell))
        if cell == cell and len(self) < _MOST:  # NaN is not equal to itself, and would fill the memory
            self[cell] = int(states[0])
        return int(states[0])


@dataclass(frozen=True, eq=False)
class TableColumn:
    """A column of the table at hand: its variable in a network, and where it stands in the table."""

    column: Column
    unit: int
    position: int
    lexicon: Lexicon = field(repr=False)
    spelled: dict[int, Any] = field(repr=False)
    """The first cell of each state."""

    @property
    def name(self) -> str:
        return self.column.name

    def read(self, block: Block, source: Source) -> IndexArray:
        """The number of the state of each cell."""
        cells = block.columns[self.position]
        try:
            return np.fromiter(map(self.lexicon.__getitem__, cells), np.int64, len(cells))
        except Unknown as unknown:
            (cell,) = unknown.args
            raise TableError(
                shortened(
                    f"{source.what}: column {self.name!r} holds {frames.brief(cell)} {source.row} "
                    f"{block.lines[cells.index(cell)]}; its states are {shown(self.column.states)}. If it marks "
                    f"missing cells, say --missing {shlex.quote(str(cell))[:40]}"
                )
            ) from None

    def cell(self, state: int) -> Any:
        """A state as the table would have it: as it stands there; of numbers, the median of those seen in fitting."""
        own = self.column.cells[state]
        value = own[len(own) // 2]
        return value if self.column.cuts else self.spelled.get(state, value)


def match(network: Network, table: TableHead, left_out: Iterable[str]) -> tuple[TableColumn, ...]:
    """The columns of a table in a network."""
    source, left = table.source, set(left_out)
    for name in left.difference(table.names):
        near = near_name(name, table.names, 0.5)
        raise ParameterError(f"{source.what} has no column {name!r}" + (f"; did you mean {near!r}?" if near else ""))
    listed = [k for k in table.named_columns() if table.names[k] not in left]
    schema = schema_of(network)
    if schema is None:
        known = {normal(name): column_of(network, i) for i, name in enumerate(network.names)}
    else:
        known = {normal(column.name): column for column in schema.columns}
    _check_known([table.names[k] for k in listed if normal(table.names[k]) not in known], list(known), source)
    found = []
    for k in listed:
        column = known[normal(table.names[k])]
        if not column.is_variable:
            continue
        table.check_cells(k)
        lexicon, spelled = Lexicon(table, column, lenient=schema is not None), dict[int, Any]()
        lexicon.learn(dict.fromkeys(cell for cell in table.cells(k) if cell == cell))
        one = TableColumn(column, network.index(column.name), k, lexicon, spelled)
        for block in table.head:  # what is wrong with the first rows is said before there are answers
            for state, cell in zip(one.read(block, source).tolist(), block.columns[k], strict=True):
                spelled.setdefault(state, cell.strip() if isinstance(cell, str) else cell)
        found.append(one)
    return tuple(found)


def _check_known(unknown: Sequence[str], names: Sequence[str], source: Source) -> None:
    """Refuse columns that are no variables, all of them at once."""
    if len(unknown) == 1:
        error = unknown_unit(unknown[0], names, f"the first line of {source.what}")
        raise TableError(f"{error}. Leave the column out with --ignore, or name rows by it with --id")
    if unknown:
        raise TableError(
            f"the first line of {source.what} names {enumerated(unknown)}, which are not in the network. "
            "Leave these columns out with --ignore, or name rows by them with --id"
        )
