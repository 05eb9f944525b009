"""Answers for the rows of a table, block by block: equal rows once, nothing kept, progress on standard error."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from sbnet import tables
from sbnet._types import FloatArray, States
from sbnet.cli.columns import TableColumns, match
from sbnet.cli.sources import Block, Source, open_table
from sbnet.errors import ParameterError
from sbnet.inference import PosteriorBatch, infer_many
from sbnet.network import Network


class Piece(NamedTuple):
    """Some rows: as they came, and as states of the units."""

    block: Block
    states: States


@dataclass(frozen=True)
class Table:
    """A table that is being read for a model."""

    source: Source
    columns: TableColumns
    quiet: bool

    def pieces(self) -> Iterator[Piece]:
        """Block by block."""
        with Progress(self.quiet) as progress:
            for block in self.source.blocks:
                yield Piece(block, self.columns.states(block, self.source))
                progress.more(len(block))

    def picked(self, names: Sequence[str]) -> list[int]:
        """The places of columns."""
        return [self.source.names.index(name) for name in names]


def open_for(network: Network, chosen: argparse.Namespace) -> Table:
    """The table that a command names, matched to the units of a network."""
    source = open_table(chosen.table, network.names, chosen.separator)
    gone = (*tables.missing_values(chosen.missing), -1.0)
    columns, source = match(network, source, gone, [*chosen.id, *chosen.ignore])
    if not columns.columns:
        raise ParameterError(f"{source.what} has no column that is a unit of the model")
    return Table(source, columns, chosen.quiet)


def solve(network: Network, states: States) -> PosteriorBatch:
    """The answers of a block."""
    return infer_many(network, states, progress=False)


def bounds(columns: TableColumns, states: States) -> FloatArray:
    """A bound for each row; missing cells of more than two values are taken at each of them, as estimators do."""
    if not columns.many_valued:
        return solve(columns.network, states).bound
    from sbnet.estimators._completions import complete

    whole = complete(columns.network, states, columns.places())
    return whole.sum(solve(columns.network, whole.states).bound)


def shown(values: Any, digits: int = 10) -> list[str]:
    """Numbers for a text file."""
    return [f"{value:.{digits}g}" for value in np.asarray(values).tolist()]


class Progress:
    """A count of rows on standard error, if that is a terminal."""

    def __init__(self, quiet: bool) -> None:
        self._on = sys.stderr.isatty() and not quiet
        self._rows, self._begin, self._last = 0, time.monotonic(), 0.0

    def __enter__(self) -> Progress:
        return self

    def more(self, rows: int) -> None:
        """So many rows are done."""
        self._rows += rows
        now = time.monotonic() - self._begin
        if self._on and now - self._last > 0.5:
            self._last = now
            print(f"\r{self._rows:,} rows, {self._rows / now:,.0f} a second ", end="", file=sys.stderr, flush=True)

    def __exit__(self, *what: object) -> None:
        if self._on and self._last:
            print(f"\r{self._rows:,} rows in {time.monotonic() - self._begin:.1f} s" + 20 * " ", file=sys.stderr)
