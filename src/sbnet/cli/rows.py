"""The rows of a table for a model, block by block: nothing is kept, and progress goes to standard error."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from sbnet._types import HIDDEN, FloatArray, States
from sbnet.cli.columns import TableColumn, TableHead, match
from sbnet.cli.stored import reading_options
from sbnet.errors import ParameterError
from sbnet.inference import PosteriorBatch, infer_many
from sbnet.inference.impossible import warn_of_impossible
from sbnet.inference.solvers.completions import complete
from sbnet.inference.solvers.enumeration import Sums
from sbnet.model.names import spelled
from sbnet.model.network import Network
from sbnet.solvers import Sampled
from sbnet.tables import frames
from sbnet.tables.reading import Block, Hints, Source, open_table


@dataclass(frozen=True)
class Table:
    """A table that is being read for a network: the columns that are units, and the `ids` that name its rows."""

    network: Network
    source: Source
    columns: tuple[TableColumn, ...]
    ids: tuple[str, ...]
    quiet: bool

    def blocks(self) -> Iterator[tuple[Block, States]]:
        """Some rows at a time, as they were read, and as states of the units."""
        with Progress(self.quiet) as progress:
            for block in self.source.blocks:
                states = np.full((len(block), self.network.n_units), HIDDEN, dtype=np.int8)
                for column in self.columns:
                    index = column.read(block, self.source)
                    found = column.codes[index]
                    found[index < 0] = HIDDEN
                    states[:, column.units] = found
                yield block, states
                progress.more(len(block))

    @property
    def many_valued(self) -> bool:
        """Has a column more than one unit, so that not all states of its units are possible?"""
        return any(len(column.codes) > 2 for column in self.columns)

    def bounds(self, states: States) -> FloatArray:
        """A bound for each row; missing cells of more than two values are taken at each of them, as estimators do."""
        whole = complete(self.network, states, self.columns)
        return whole.sum(warn_of_impossible(infer_many(self.network, whole.states, progress=False)).bound)

    def names(self, block: Block) -> list[Any]:
        return [block.columns[self.source.names.index(name)] for name in self.ids]


def hints(chosen: argparse.Namespace, network: Network | None = None) -> Hints:
    """How to read text, by the options of a command, and names that its columns may have."""
    return Hints(() if network is None else network.names, chosen.separator, chosen.encoding)


@contextmanager
def opened_for(network: Network, chosen: argparse.Namespace) -> Iterator[Table]:
    """The table that a command names, matched to the units of a network, for as long as it is needed.

    What was said of missing cells and of columns in learning need not be said again.
    """
    learned = reading_options(network)
    gone = (*frames.missing_values([*learned.missing, *chosen.missing]), -1.0)
    with open_table(chosen.table, hints(chosen, network)) as source:
        said, ignored, ids, left = (
            [spelled(name, source.names) for name in names]
            for names in (chosen.id, chosen.ignore, learned.id, learned.ignore)
        )
        known = [name for name in (*ids, *left) if name in source.names]
        ids = said or [name for name in ids if name in known and name not in ignored]
        head = TableHead.begin(source, gone)
        columns = match(network, head, [*ids, *ignored, *known])
        if not columns:
            raise ParameterError(f"{source.what} has no column that is a unit of the model")
        yield Table(network, head.source, columns, tuple(ids), chosen.quiet)


def answers(network: Network, states: States) -> PosteriorBatch:
    """The answers of a block; where units are tied to each other, means from samples."""
    solver = Sampled() if network.is_binary else Sums(frozenset(network.names))
    return warn_of_impossible(infer_many(network, states, solver=solver, progress=False))


class Progress:
    """A count of rows on standard error, if that is a terminal."""

    def __init__(self, quiet: bool) -> None:
        self._on = sys.stderr.isatty() and not quiet
        self._rows, self._begin, self._last = 0, time.monotonic(), 0.0

    def __enter__(self) -> Progress:
        return self

    def more(self, rows: int) -> None:
        self._rows += rows
        now = time.monotonic() - self._begin
        if self._on and now - self._last > 0.5:
            self._last = now
            print(f"\r{self._rows:,} rows, {self._rows / now:,.0f} a second ", end="", file=sys.stderr, flush=True)

    def __exit__(self, *what: object) -> None:
        if self._on and self._last:
            print(f"\r{self._rows:,} rows in {time.monotonic() - self._begin:.1f} s" + 20 * " ", file=sys.stderr)
