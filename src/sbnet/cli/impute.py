"""Fill the holes of a table: each missing cell gets its most probable value, in the words of its own column."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

import numpy as np

from sbnet import checks
from sbnet._types import HIDDEN, States
from sbnet.cli import commands, rows
from sbnet.cli.cells import as_cell, for_json, kind_of
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
    check_out(chosen.out, chosen)
    network = read_model(chosen)
    with rows.opened_for(network, chosen) as table:
        return _impute(table, chosen)


def _impute(table: rows.Table, chosen: argparse.Namespace) -> int:
    if chosen.means and table.columns.many_valued:
        raise ParameterError("--means is for two-valued columns; the model has columns of more values")
    if chosen.json:
        if chosen.out != "-":
            raise ParameterError("--json goes to standard output, a line for each row; leave -o away")
        return _lines(table, chosen.means)
    source = table.source
    with open_sink(chosen.out, source.names, source.delimiter, _schema(table, chosen.means)) as sink:
        for block, states in table.pieces():
            sink.put(_filled(table, block.columns, states, chosen.means))
    return 0


def _schema(table: rows.Table, means: bool) -> Any:
    """The types of a Parquet table; chances are no whole numbers."""
    schema = table.source.schema
    if schema is None or not means:
        return schema
    pyarrow = checks.extra("pyarrow", "Parquet", of="tables")

    for column in table.columns.columns:
        if kind_of(table.source, column.place, ()) is not str:
            schema = schema.set(column.place, schema.field(column.place).with_type(pyarrow.float64()))
    return schema


def _lines(table: rows.Table, means: bool) -> int:
    """An object for each row, each on a line; columns of numbers have numbers."""
    names, delimiter = table.source.names, table.source.delimiter
    numeric = {column.place for column in table.columns.columns if column.is_numeric}
    for block, states in table.pieces():
        filled = _filled(table, block.columns, states, means)
        for k in numeric:
            filled[k] = [for_json(cell, delimiter) for cell in filled[k]]
        for row in zip(*filled, strict=True):
            print(json.dumps(dict(zip(names, row, strict=True)), default=str))
        sys.stdout.flush()
    return 0


def _filled(table: rows.Table, cells: Any, states: States, means: bool) -> list[list[Any]]:
    """The columns of a block with their holes filled; every other cell stays as it was, to the letter."""
    filled, columns = [list(column) for column in cells], table.columns
    kinds = {column.place: kind_of(table.source, column.place, cells[column.place]) for column in columns.columns}
    if means:
        for k, kind in kinds.items():
            if kind is not str:
                filled[k] = [cell if cell is None else float(cell) for cell in filled[k]]
    places = columns.places()
    given = np.column_stack([(states[:, place.units] == HIDDEN).any(axis=1) for place in places])
    some = np.flatnonzero(given.any(axis=1))
    if not len(some):
        return filled
    from sbnet.estimators import SBNImputer

    found = SBNImputer.from_networks(columns.network).cell_probabilities(states[some], places)
    for k, (column, chances) in enumerate(zip(columns.columns, found, strict=True)):
        kind = kinds[column.place]
        for r in np.flatnonzero(given[some, k]).tolist():
            if means:
                value: Any = as_cell(f"{chances[r, 1]:.6g}", str if kind is str else float, column.name)
            else:
                value = as_cell(column.values[int(chances[r].argmax())], kind, column.name)
            filled[column.place][int(some[r])] = value
    return filled
