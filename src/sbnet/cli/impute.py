"""Fill the holes of a table: each missing cell gets its most probable value, in the words of its own column."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

import numpy as np

from sbnet._types import HIDDEN, IndexArray, States
from sbnet.cli import commands, rows
from sbnet.cli.columns import TableColumns
from sbnet.cli.models import check_out, one_input, read_model
from sbnet.cli.sinks import open_sink
from sbnet.errors import ParameterError

EXAMPLES = """
  sbnet impute survey.sbn survey.csv -o whole.csv
  sbnet impute survey.sbn survey.csv --means -o whole.csv     chances in the holes of two-valued columns
  zcat big.csv.gz | sbnet impute survey.sbn - | head -3"""


def options(one: argparse.ArgumentParser) -> None:
    """Model, table, what to fill in, where to."""
    commands.model(one)
    commands.table(one)
    one.add_argument("--means", action="store_true", help="fill with the chance of the second value instead")
    commands.output(one, "where to write the table")


def run(chosen: argparse.Namespace) -> int:
    """Fill, block by block."""
    one_input(chosen.model, chosen.table)
    check_out(chosen.out)
    network = read_model(chosen.model, chosen.ending)
    table = rows.open_for(network, chosen)
    if chosen.means and table.columns.many_valued:
        raise ParameterError("--means is for two-valued columns; the model has columns of more values")
    if chosen.json:
        if chosen.out != "-":
            raise ParameterError("--json goes to standard output, a line for each row; leave -o away")
        return _lines(table, chosen.means)
    with open_sink(chosen.out, table.source.names, table.source.delimiter) as sink:
        for block, states in table.pieces():
            sink.put(_filled(table.columns, block.columns, states, chosen.means))
    return 0


def _lines(table: rows.Table, means: bool) -> int:
    for block, states in table.pieces():
        for row in zip(*_filled(table.columns, block.columns, states, means), strict=True):
            print(json.dumps(dict(zip(table.source.names, row, strict=True))))
        sys.stdout.flush()
    return 0


def _filled(columns: TableColumns, cells: Any, states: States, means: bool) -> list[list[Any]]:
    """The columns of a block with their holes filled; every other cell stays as it was, to the letter."""
    filled = [list(column) for column in cells]
    places = columns.places()
    given = np.column_stack([(states[:, place.units] == HIDDEN).any(axis=1) for place in places])
    some = np.flatnonzero(given.any(axis=1))
    if not len(some):
        return filled
    best = _many(columns, states[some]) if columns.many_valued else _chances(columns, states[some])
    for k, column in enumerate(columns.columns):
        for r in np.flatnonzero(given[some, k]).tolist():
            if columns.many_valued:
                value: Any = column.values[int(best[r, k])]
            else:
                value = f"{best[r, k]:.6g}" if means else column.values[int(best[r, k] > 0.5)]
            filled[column.place][int(some[r])] = value
    return filled


def _chances(columns: TableColumns, states: States) -> Any:
    means = rows.solve(columns.network, states).means
    return means[:, [int(column.units[0]) for column in columns.columns]]


def _many(columns: TableColumns, states: States) -> IndexArray:
    from sbnet.estimators._chains import cell_probabilities

    chances = cell_probabilities(columns.network, states, columns.places())
    return np.column_stack([chance.argmax(axis=1) for chance in chances])
