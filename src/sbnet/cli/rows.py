"""The rows of a table for a model, block by block: nothing is kept, and progress goes to standard error."""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from sbnet._types import HIDDEN, FloatArray, States
from sbnet.cli.columns import TableColumn, TableHead, match
from sbnet.errors import CodingWarning, ParameterError, enumerated
from sbnet.inference import MeanField, PosteriorBatch, Solver, infer_many
from sbnet.inference.results import warn_of_impossible
from sbnet.inference.solvers.enumeration import Best
from sbnet.inference.solvers.filling import Completed
from sbnet.inference.solvers.row_completions import complete, log_probabilities
from sbnet.model.names import spelled
from sbnet.model.network import Network
from sbnet.tables import frames
from sbnet.tables.reading import Block, Hints, Source, open_table
from sbnet.tables.stored import ids_of, ignored_of, schema_of

COMPLETIONS = 1024
"""Ways to complete a row that are gone through before they are drawn."""


@dataclass(frozen=True)
class Table:
    """A table that is being read for a network: the columns that are variables, and the `ids` that name its rows."""

    network: Network
    head: TableHead
    columns: tuple[TableColumn, ...]
    ids: tuple[str, ...]
    quiet: bool

    @property
    def source(self) -> Source:
        """Where its rows come from."""
        return self.head.source

    def blocks(self) -> Iterator[tuple[Block, States]]:
        """Some rows at a time, as they were read, and as states of the variables."""
        with Progress(self.quiet) as progress:
            for block in self.source.blocks:
                states = np.full((len(block), self.network.n_units), HIDDEN, dtype=np.int8)
                for column in self.columns:
                    states[:, column.unit] = column.read(block, self.source)
                yield block, states
                progress.more(len(block))
        strange = [f"{c.name} ({enumerated(c.lexicon.strange, 60)})" for c in self.columns if c.lexicon.strange]
        if strange:
            text = f"values that were not there in fitting count as missing: {', '.join(strange[:5])}"
            warnings.warn(text + ", …" * (len(strange) > 5), CodingWarning, stacklevel=2)

    def bounds(self, states: States) -> FloatArray:
        """ln P of each row, or a bound on it."""
        if is_completed(self.network):
            return log_probabilities(self.network, states, most=COMPLETIONS)
        if not self.network.is_binary:
            return answers(self.network, states).bound
        return warn_of_impossible(infer_many(self.network, states, progress=False)).bound

    def names(self, block: Block) -> list[Any]:
        """The cells that name rows."""
        return [block.columns[self.head.names.index(name)] for name in self.ids]


def hints(chosen: argparse.Namespace, network: Network | None = None) -> Hints:
    """How to read text, by the options of a command, and names that its columns may have."""
    lenient = network is None or schema_of(network) is not None
    return Hints(() if network is None else network.names, chosen.separator, chosen.encoding, lenient)


@contextmanager
def opened_for(network: Network, chosen: argparse.Namespace) -> Iterator[Table]:
    """The table that a command names, matched to the variables of a network, for as long as it is needed.

    What was said of missing cells and of columns in learning need not be said again.
    """
    schema = schema_of(network)
    learned = () if schema is None else schema.missing_values
    gone = (*frames.missing_values([*learned, *chosen.missing]), *(() if schema is not None else (-1.0,)))
    with open_table(chosen.table, hints(chosen, network)) as source:
        head = TableHead.begin(source, gone)
        said, ignored, ids, left = (
            [spelled(name, head.names) for name in names]
            for names in (chosen.id, chosen.ignore, ids_of(network), ignored_of(network))
        )
        known = [name for name in (*ids, *left) if name in head.names]
        ids = said or [name for name in ids if name in known and name not in ignored]
        columns = match(network, head, [*ids, *ignored, *known])
        if not columns:
            raise ParameterError(f"{source.what} has no column that is a variable of the model")
        yield Table(network, head, columns, tuple(ids), chosen.quiet)


def answers(network: Network, states: States, wanted: Iterable[str] = ()) -> PosteriorBatch:
    """The answers of a block: those of some variables by sums where that is feasible, and the status says where."""
    solver: Solver = MeanField() if network.is_binary and not is_completed(network) else Completed(COMPLETIONS)
    wanted = frozenset(network.names if not network.is_binary else wanted)
    if wanted and not is_completed(network):
        solver = Best(solver, wanted)
    return warn_of_impossible(infer_many(network, states, solver=solver, progress=False))


def is_completed(network: Network) -> bool:
    """Was the network learned from a table of states, without hidden variables?"""
    schema = schema_of(network)
    return schema is not None and len(schema.names) == network.n_units


def probabilities(network: Network, states: States, unit: int) -> FloatArray:
    """The probabilities of the states of a variable, rows by states."""
    if network.is_binary and not is_completed(network):
        on = answers(network, states).means[:, unit]
        return np.column_stack([1.0 - on, on])
    found = complete(network, states, asked=np.array([unit]), most=COMPLETIONS)
    return found.probabilities(unit, int(network.n_states[unit]))


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
