"""Impute the missing values of a table: each gets its most probable value, in the words of its own column."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np

from sbnet import checks
from sbnet._types import HIDDEN, BoolArray, FloatArray, States
from sbnet.cli import commands, rows
from sbnet.cli.columns import TableColumn
from sbnet.cli.models import read_model
from sbnet.cli.writing import open_writer
from sbnet.errors import ParameterError, TableError
from sbnet.inference.solvers.filling import fill
from sbnet.inference.solvers.places import BINARY, Place
from sbnet.model.network import Network
from sbnet.tables import copies, frames, reading
from sbnet.tables.reading import Block, Source
from sbnet.tables.words import bit

EXAMPLES = """
  sbnet impute survey.sbn survey.csv -o whole.csv
  sbnet impute survey.sbn survey.csv --means -o whole.csv     probabilities, for two-valued columns
  zcat big.csv.gz | sbnet impute survey.sbn - | head -3"""


def options(one: argparse.ArgumentParser) -> None:
    commands.model(one)
    commands.table(one)
    one.add_argument("--means", action="store_true", help="fill with the probability of the second value instead")
    commands.output(one, "where to write the table")


def run(chosen: argparse.Namespace) -> int:
    network = read_model(chosen)
    with rows.opened_for(network, chosen) as table:
        if chosen.means and any(len(column.column.states) > 2 for column in table.columns):
            raise ParameterError("--means is for two-valued columns; the model has columns of more values")
        source, schema = table.source, _schema(table, chosen.means)
        with open_writer(chosen.out, source.names, source.delimiter, schema=schema, as_json=chosen.json) as writer:
            if table.head.second is not None:
                writer.put([[cell] for cell in table.head.second])
            for block, states in table.blocks():
                filled = _filled(table, block, states, chosen.means)
                for column in table.columns if chosen.json else ():
                    if all(frames.as_number(str(column.cell(s))) is not None for s in range(len(column.column.states))):
                        filled[column.position] = [_for_json(cell, source) for cell in filled[column.position]]
                writer.put(filled)
    return 0


def _schema(table: rows.Table, means: bool) -> Any:
    """The types of a Parquet table; probabilities are no whole numbers."""
    schema = table.source.schema
    if schema is None or not means:
        return schema
    pyarrow = checks.extra("pyarrow", "Parquet", of="tables")
    for column in table.columns:
        if _kind_of(table.source, column, ()) is not str:
            schema = schema.set(column.position, schema.field(column.position).with_type(pyarrow.float64()))
    return schema


def _filled(table: rows.Table, block: Block, states: States, means: bool) -> list[list[Any]]:
    """The columns of a block without missing values; every other cell stays as it was, to the letter."""
    filled, columns = [list(column) for column in block.columns], table.columns
    kinds = [_kind_of(table.source, column, block.columns[column.position]) for column in columns]
    if means:
        for column, kind in zip(columns, kinds, strict=True):
            if kind is not str:
                filled[column.position] = [x if x is None else float(x) for x in filled[column.position]]
    missing = states[:, [column.unit for column in columns]] == HIDDEN
    some = np.flatnonzero(missing.any(axis=1))
    if not len(some):
        return filled
    whole, probabilities = _completed(table.network, states[some], columns)
    new = dict[str, tuple[BoolArray, list[Any]]]()
    for k, column in enumerate(columns):
        own = missing[some, k]
        if means:
            cells = [f"{p:.6g}" for p in probabilities[k][own, 1].tolist()]
        elif column.column.cuts:
            cells = column.column.nearest(probabilities[k][own])
        else:
            cells = [column.cell(s) for s in whole[own, column.unit].tolist()]
        new[column.name] = missing[:, k], cells
    if not means:
        place = {column.name: column.position for column in columns}
        own_columns = [column.column for column in columns]
        copies.agree(own_columns, lambda name: frames.column(name, block.columns[place[name]]), new)
    for column, kind in zip(columns, kinds, strict=True):
        which, cells = new[column.name]
        kind = str if kind is str else float if means else kind
        for r, cell in zip(np.flatnonzero(which).tolist(), cells, strict=True):
            filled[column.position][r] = _as_cell(cell, kind, column.name)
    return filled


def _completed(network: Network, states: States, columns: Sequence[TableColumn]) -> tuple[States, list[FloatArray]]:
    """Rows without missing values, and the probabilities of the states of each column; as estimators do."""
    if not network.is_binary or rows.is_completed(network):
        numbers = [column.unit for column in columns if column.column.cuts]
        found = fill(network, states, np.array(numbers, np.int64))
        return found.states, [found.probabilities[column.unit] for column in columns]
    from sbnet.estimators import SBNImputer

    places = [Place(column.name, np.array([column.unit]), BINARY, column.column.states) for column in columns]
    each = SBNImputer.from_networks(network).cell_probabilities(states, places)
    whole = states.copy()
    for column, probability in zip(columns, each, strict=True):
        own = states[:, column.unit] == HIDDEN
        whole[own, column.unit] = probability[own].argmax(axis=1)
    return whole, each


# --- cells in the types of their columns ------------------------------------------------------------------------------


def _kind_of(source: Source, column: TableColumn, cells: Sequence[Any]) -> type:
    """The type of a column, by the types that come with its table, or by its cells."""
    if source.schema is None:
        return next((type(cell) for cell in cells if cell is not None), str)
    types = checks.extra("pyarrow.types", "Parquet", of="tables")
    found = source.schema.field(column.position).type
    found = found.value_type if types.is_dictionary(found) else found
    known = {types.is_boolean: bool, types.is_integer: int, types.is_floating: float, types.is_decimal: Decimal}
    return next((kind for is_one, kind in known.items() if is_one(found)), str)


def _as_cell(word: Any, kind: type, column: str) -> Any:
    if kind is str or not isinstance(word, str):
        return word
    number = frames.as_number(word)
    number = bit(word) if number is None else number
    if number is None:
        raise TableError(f"column {column!r} holds numbers, and {word!r}, which is to be filled in, is none")
    return round(number) if kind is int else kind(number)


def _for_json(cell: Any, source: Source) -> Any:
    """A cell of a column of numbers: the number that it spells; null where it is missing."""
    number = reading.value(cell, source.delimiter)
    if number is None or isinstance(number, str) or number != number:
        return cell if number and isinstance(cell, str) else None
    return int(number) if isinstance(number, float) and number.is_integer() else number
