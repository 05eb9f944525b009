"""Score the rows of a table: a lower bound on ln P of each, in nats; the lower, the stranger the row."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import dataclass

import numpy as np

from sbnet._types import HIDDEN, FloatArray, IndexArray, States
from sbnet.cli import commands, rows
from sbnet.cli.columns import BITS, TableColumns
from sbnet.cli.models import check_out, one_input, read_model
from sbnet.cli.sinks import open_sink
from sbnet.cli.stored import stored_columns
from sbnet.cli.words import words_of
from sbnet.errors import ParameterError, not_among
from sbnet.model.names import spelled
from sbnet.model.network import Network

EXAMPLES = """
  sbnet score survey.sbn new.csv -o scores.csv
  sbnet score survey.sbn new.csv --id person | sort -t, -k2 -g | head     the strangest first; of a table
                                                                          divided by semicolons, sort -t';'
  sbnet score patients.sbn new.csv --label ill                            how likely is each ill?"""


def options(one: argparse.ArgumentParser) -> None:
    """Model, table, where to."""
    commands.model(one)
    commands.table(one)
    one.add_argument(
        "--label", metavar="COLUMN", help="a column that is not looked at, and whose chances are told instead"
    )
    commands.output(one, "where to write the scores")


def run(chosen: argparse.Namespace) -> int:
    """Score, block by block."""
    one_input(chosen.model, chosen.table)
    check_out(chosen.out, chosen)
    network = read_model(chosen)
    label = None if chosen.label is None else _label(network, chosen.label)
    if chosen.json and chosen.out != "-":
        raise ParameterError("--json goes to standard output, a line for each row; leave -o away")
    with rows.opened_for(network, chosen) as table:
        return _score(table, label, chosen)


def _score(table: rows.Table, label: _Label | None, chosen: argparse.Namespace) -> int:
    names = ["bound", *([] if label is None else label.titles)]
    if chosen.json:
        return _lines(table, names, label)
    with open_sink(chosen.out, [*table.ids, *names], table.source.delimiter) as sink:
        for block, states in table.pieces():
            sink.put([*table.named(block), *_scores(table, states, label)])
    return 0


def _scores(table: rows.Table, states: States, label: _Label | None) -> list[FloatArray]:
    if label is None:
        return [rows.bounds(table.columns, states)]
    states[:, label.units] = HIDDEN
    if len(label.codes) == 2 and not table.columns.many_valued:
        batch = rows.answers(table.columns.network, states)
        return [batch.bound, batch.means[:, label.units[0]]]
    return [rows.bounds(table.columns, states), *label.chances(table.columns, states)]


def _lines(table: rows.Table, names: list[str], label: _Label | None) -> int:
    for block, states in table.pieces():
        found = [rows.for_json(column) for column in _scores(table, states, label)]
        for values in zip(*table.named(block), *found, strict=True):
            print(json.dumps(dict(zip([*table.ids, *names], values, strict=True)), default=str))
        sys.stdout.flush()
    return 0


@dataclass(frozen=True, eq=False)
class _Label:
    """A column whose chances are told: its units, their states at each value, and what the values are called."""

    name: str
    units: IndexArray
    codes: States
    words: tuple[str, ...]

    @property
    def titles(self) -> list[str]:
        """Of two values, one chance says all."""
        if not self.words:
            return [f"P({self.name})"]
        own = [f"{self.name} {word}" if _is_interval(word) else f"{self.name}={word}" for word in self.words]
        return [f"P({text})" for text in (own if len(own) > 2 else own[1:])]

    def chances(self, columns: TableColumns, states: States) -> list[FloatArray]:
        """By value, beside columns of many values: averages over a chain."""
        from sbnet.inference.solvers.block_gibbs import cell_probabilities
        from sbnet.inference.solvers.places import Place

        own = Place(self.name, self.units, self.codes, self.words)
        others = [place for place in columns.places() if place.name != self.name]
        chances = cell_probabilities(columns.network, states, [own, *others])[0]
        return list(chances.T) if len(self.codes) > 2 else [chances[:, 1]]


def _is_interval(word: str) -> bool:
    return word.startswith(("up to ", "above ")) or " to " in word


def _label(network: Network, name: str) -> _Label:
    """A column that the model was learned from, or a unit."""
    stored = stored_columns(network)
    name = spelled(name, [*stored, *network.names])
    if name in stored:
        column = stored[name]
        units = np.array([network.index(unit) for unit in column.units], np.int64)
        return _Label(name, units, column.codes, tuple(words_of(column)))
    if name not in network._index:
        raise not_among(name, [*stored, *network.names], "the columns or units of the model")
    return _Label(name, np.array([network.index(name)]), BITS, network.notes[name].states)
