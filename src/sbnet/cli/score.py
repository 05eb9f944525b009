"""Score the rows of a table: a lower bound on ln P of each, in nats; the lower, the stranger the row."""

from __future__ import annotations

import argparse
import json
import sys

import numpy as np

from sbnet._types import HIDDEN
from sbnet.cli import commands, rows
from sbnet.cli.models import check_out, one_input, read_model
from sbnet.cli.sinks import open_sink
from sbnet.errors import ParameterError, not_among

EXAMPLES = """
  sbnet score survey.sbn new.csv -o scores.csv
  sbnet score survey.sbn new.csv --id person | sort -t, -k2 -g | head     the strangest first
  sbnet score patients.sbn new.csv --label ill                            how likely is each ill?"""


def options(one: argparse.ArgumentParser) -> None:
    """Model, table, where to."""
    commands.model(one)
    commands.table(one)
    one.add_argument("--label", metavar="COLUMN", help="a unit that is not looked at, and whose chance is told instead")
    commands.output(one, "where to write the scores")


def run(chosen: argparse.Namespace) -> int:
    """Score, block by block."""
    one_input(chosen.model, chosen.table)
    check_out(chosen.out)
    network = read_model(chosen.model, chosen.ending)
    if chosen.label is not None and chosen.label not in network.names:
        raise not_among(chosen.label, network.names, "the units of the model")
    if chosen.json and chosen.out != "-":
        raise ParameterError("--json goes to standard output, a line for each row; leave -o away")
    table = rows.open_for(network, chosen)
    unit = None if chosen.label is None else network.index(chosen.label)
    names = ["bound"] if unit is None else ["bound", f"P({chosen.label})"]
    kept = table.picked(chosen.id)
    if chosen.json:
        return _lines(table, chosen, names, unit)
    with open_sink(chosen.out, [*chosen.id, *names], table.source.delimiter) as sink:
        for block, states in table.pieces():
            found = _scores(table, states, unit)
            sink.put([*(block.columns[k] for k in kept), *(rows.shown(column) for column in found)])
    return 0


def _scores(table: rows.Table, states: np.ndarray, unit: int | None) -> list[np.ndarray]:
    if unit is None:
        return [rows.bounds(table.columns, states)]
    states[:, unit] = HIDDEN
    batch = rows.solve(table.columns.network, states)
    return [batch.bound, batch.means[:, unit]]


def _lines(table: rows.Table, chosen: argparse.Namespace, names: list[str], unit: int | None) -> int:
    for block, states in table.pieces():
        found = [column.tolist() for column in _scores(table, states, unit)]
        for r, values in enumerate(zip(*found, strict=True)):
            ids = {name: block.columns[k][r] for name, k in zip(chosen.id, table.picked(chosen.id), strict=True)}
            print(json.dumps({**ids, **dict(zip(names, values, strict=True))}))
        sys.stdout.flush()
    return 0
