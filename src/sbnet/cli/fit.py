"""Learn a network from a table with missing values."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sbnet.cli import commands
from sbnet.cli.columns import NotTwoValued, TableHead, check_choice, decide, told_of, two_valued
from sbnet.cli.models import check_out, write_model
from sbnet.cli.rows import Progress, hints
from sbnet.cli.stored import COLUMNS, ReadingOptions, notes_on, with_reading_options
from sbnet.errors import ParameterError, TableError, not_among
from sbnet.model.names import spelled
from sbnet.model.notes import Note
from sbnet.model.roles import HIDDEN_UNITS
from sbnet.tables import frames, reading
from sbnet.tables.codings import PLAIN, Coding, word
from sbnet.tables.reading import Block, open_table

if TYPE_CHECKING:  # this brings scikit-learn along, which takes a second
    from sbnet.estimators import SBNDensity

EXAMPLES = """
  sbnet fit survey.csv -o survey.sbn
  sbnet fit survey.csv.gz --hidden 8 --missing -99 9 --id person --ignore comment -o survey.sbn
  sbnet fit patients.parquet --encode auto --label ill -o patients.sbn   ages, categories, numbers
  zcat big.csv.gz | sbnet fit - -o big.sbn"""


def options(one: argparse.ArgumentParser) -> None:
    commands.table(one)
    one.add_argument("--label", metavar="COLUMN", help="a column to be predicted from the others: it is learned last")
    one.add_argument("--hidden", metavar="N[,N…]", default="auto", help="sizes of the hidden layers (default: chosen)")
    one.add_argument("--encode", choices=("auto",), help="take categories and numbers too, each column as its units")
    one.add_argument("--epochs", metavar="N", default="auto", help="passes over the table (default: chosen)")
    one.add_argument("--seed", type=int, default=0, help="of the random numbers (default: %(default)s)")
    commands.output(one, "the model", required=True)
    one.add_argument("--to", metavar="ENDING", help="the format of standard output, such as .sbn (default: .toml)")


def run(chosen: argparse.Namespace) -> int:
    check_out(chosen.out, chosen)
    settings = {"hidden": _layers(chosen.hidden), "epochs": _epochs(chosen.epochs), "random_state": chosen.seed}
    with open_table(chosen.table, hints(chosen)) as source:
        table = TableHead.begin(source, frames.missing_values(chosen.missing))
        positions = _columns(table, chosen)
        density, notes, n = _learned(table, positions, settings, chosen)
    names = density.network_.names
    network = density.network_.with_notes({name: notes.get(name) or Note(group=HIDDEN_UNITS) for name in names})
    columns = () if density.encoder_ is None else density.encoder_.columns_
    unread = [column.name for column in columns if not column.units]  # they tell nothing, here and in other tables
    read = ReadingOptions(tuple(chosen.missing), tuple(chosen.id), (*chosen.ignore, *unread))
    network = with_reading_options(network, read)
    write_model(network, chosen.out, chosen.to)
    bound, width = float(density.bounds_[-1]), len(positions)
    if chosen.json and chosen.out != "-":
        told = {"out": chosen.out, "rows": n, "columns": width, "units": network.n_units, "bound": bound}
        print(json.dumps({**told, "epochs": density.n_iter_}))
    elif not chosen.quiet:
        size = f"{n:,} rows of {width:,} columns: {network.n_units:,} units"
        print(f"sbnet: {size}, mean bound {bound:.4f} nats in epoch {density.n_iter_}", file=sys.stderr)
    return 0


def _layers(text: str) -> Any:
    if text in ("auto", "0"):
        return () if text == "0" else text
    parts = [part for part in text.split(",") if part]
    if not all(part.isdecimal() and int(part) > 0 for part in parts):
        raise ParameterError(f"--hidden is {text!r}; give sizes such as 8 or 8,24, top to bottom, or 0 for none")
    return tuple(map(int, parts))


def _epochs(text: str) -> Any:
    if text == "auto":
        return text
    if not text.isdecimal() or int(text) < 1:
        raise ParameterError(f"--epochs is {text!r}; give a whole number, one or more")
    return int(text)


def _columns(table: TableHead, chosen: argparse.Namespace) -> list[int]:
    """The positions of the columns to learn, the label last."""
    known = table.source.names
    named = [spelled(name, known) for name in (*chosen.id, *chosen.ignore, *([chosen.label] if chosen.label else []))]
    for name in named:
        if name not in known:
            raise not_among(name, known, f"the columns of {table.source.what}")
    last = [known.index(named[-1])] if chosen.label else []
    positions = [k for k in table.named_columns() if known[k] not in named] + last
    if not positions:
        raise TableError(f"{table.source.what} has no column left to learn from")
    return positions


def _learned(
    table: TableHead, positions: Sequence[int], settings: dict[str, Any], chosen: argparse.Namespace
) -> tuple[SBNDensity, dict[str, Note], int]:
    """The density of all rows, notes on the units of its columns, and the number of rows."""
    from sbnet.estimators import SBNDensity

    settings["label"] = None if chosen.label is None else table.source.names[positions[-1]]
    settings["verbose"] = int(sys.stderr.isatty() and not chosen.quiet)
    if chosen.encode is not None:
        rows = _records(table, positions, chosen.quiet)
        density = SBNDensity(**settings, encode="auto", missing=list(table.gone)).fit(rows)
        return density, notes_on(density.encoder_), len(rows)
    known = _decided(table, positions)
    states = _states(table, dict(zip(positions, known.values(), strict=True)), chosen.quiet)
    density = SBNDensity(**settings, missing=[-1]).fit(states)
    words = {name: () if one == PLAIN else (word(one.zero), word(one.one)) for name, one in known.items()}
    return density, {name: Note(group=COLUMNS, states=states) for name, states in words.items()}, len(states)


def _blocks(table: TableHead, quiet: bool) -> Iterator[Block]:
    n = 0
    with Progress(quiet) as progress:
        for block in table.source.blocks:
            yield block
            n += len(block)
            progress.more(len(block))
    if not n:
        raise TableError(f"{table.source.what} has no rows")


# --- columns of two values --------------------------------------------------------------------------------------------


def _decided(table: TableHead, positions: Sequence[int]) -> dict[str, Coding]:
    """How each column is read; all that cannot be are named at once."""
    known, refused = dict[str, Coding](), list[NotTwoValued]()
    for k in positions:
        table.check_cells(k)
        try:
            known[table.source.names[k]] = decide(table, k)
            check_choice(table, k)
        except NotTwoValued as error:
            refused.append(error)
    if refused:
        raise TableError(
            f"{os.path.basename(table.source.what)[:30]}: not two-valued: {told_of(refused, 170)}. Say --encode auto "
            "(categories, numbers), --missing -99 (no values), --id or --ignore COLUMN (no unit)"
        )
    return known


def _states(table: TableHead, known: dict[int, Coding], quiet: bool) -> Any:
    """All rows as an array with a field for each column, one byte a cell: 0, 1 or -1 where it is missing."""
    columns = [two_valued(table, k, 0, coding) for k, coding in known.items()]
    fields = np.dtype([(column.name, np.int8) for column in columns])
    parts = []
    for block in _blocks(table, quiet):
        part = np.empty(len(block), fields)
        for column in columns:
            part[column.name] = column.read(block, table.source)
        parts.append(part)
    return np.concatenate(parts)


# --- columns of any kind ----------------------------------------------------------------------------------------------


def _records(table: TableHead, positions: Sequence[int], quiet: bool) -> list[dict[str, Any]]:
    """All rows, with numbers as numbers."""
    names, delimiter, rows = [table.source.names[k] for k in positions], table.source.delimiter, []
    for block in _blocks(table, quiet):
        columns = [[reading.value(cell, delimiter) for cell in block.columns[k]] for k in positions]
        rows += [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
    return rows
