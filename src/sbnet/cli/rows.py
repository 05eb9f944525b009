"""Answers for the rows of a table, block by block: equal rows once, nothing kept, progress on standard error."""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from sbnet._types import FloatArray, States
from sbnet.cli.columns import TableColumns, match
from sbnet.cli.sources import Block, Source, open_table
from sbnet.cli.stored import habits_of
from sbnet.errors import ParameterError
from sbnet.inference import PosteriorBatch, infer_many
from sbnet.inference.impossible import warn_of_impossible
from sbnet.inference.solvers.enumeration import Sampled
from sbnet.model.names import spelled
from sbnet.model.network import Network
from sbnet.tables import frames


class Piece(NamedTuple):
    """Some rows: as they came, and as states of the units."""

    block: Block
    states: States


@dataclass(frozen=True)
class Table:
    """A table that is being read for a model."""

    source: Source
    columns: TableColumns
    ids: tuple[str, ...]
    quiet: bool

    def pieces(self) -> Iterator[Piece]:
        """Block by block."""
        with Progress(self.quiet) as progress:
            for block in self.source.blocks:
                yield Piece(block, self.columns.states(block, self.source))
                progress.more(len(block))

    def named(self, block: Block) -> list[Any]:
        """The columns that name rows."""
        return [block.columns[self.source.names.index(name)] for name in self.ids]


@contextmanager
def opened_for(network: Network, chosen: argparse.Namespace) -> Iterator[Table]:
    """The table that a command names, matched to the units of a network, for as long as it is needed.

    What was said of missing cells and of columns in learning need not be said again.
    """
    habits = habits_of(network)
    gone = (*frames.missing_values([*habits.missing, *chosen.missing]), -1.0)
    with open_table(chosen, network.names) as source:
        said, ignored, ids, left = (
            [spelled(name, source.names) for name in names]
            for names in (chosen.id, chosen.ignore, habits.id, habits.ignore)
        )
        known = [name for name in (*ids, *left) if name in source.names]
        ids = said or [name for name in ids if name in known and name not in ignored]
        columns, source = match(network, source, gone, [*ids, *ignored, *known])
        if not columns.columns:
            raise ParameterError(f"{source.what} has no column that is a unit of the model")
        yield Table(source, columns, tuple(ids), chosen.quiet)


def solve(network: Network, states: States) -> PosteriorBatch:
    """The bounds of a block, and means of mean field theory."""
    return warn_of_impossible(infer_many(network, states, progress=False))


def answers(network: Network, states: States) -> PosteriorBatch:
    """The answers of a block; where units are tied to each other, means from samples."""
    return warn_of_impossible(infer_many(network, states, solver=Sampled(), progress=False))


def bounds(columns: TableColumns, states: States) -> FloatArray:
    """A bound for each row; missing cells of more than two values are taken at each of them, as estimators do."""
    if not columns.many_valued:
        return solve(columns.network, states).bound
    from sbnet.inference.solvers.completions import complete

    whole = complete(columns.network, states, columns.places())
    return whole.sum(solve(columns.network, whole.states).bound)


def for_json(values: FloatArray) -> list[float | None]:
    """Numbers as JSON has them: minus infinity, of impossible evidence, is null."""
    return [value if math.isfinite(value) else None for value in values.tolist()]


def short(values: FloatArray, digits: int = 6) -> FloatArray:
    """Numbers without the digits that nobody reads."""
    return np.array([float(f"{value:.{digits}g}") for value in values.tolist()])


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
