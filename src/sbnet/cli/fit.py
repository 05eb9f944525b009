"""Learn a network from a table with missing values, and say how its columns were read."""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

from sbnet.cli import commands
from sbnet.cli.columns import TableHead
from sbnet.cli.models import check_out, write_model
from sbnet.cli.rows import Progress, hints
from sbnet.errors import CodingWarning, ParameterError, TableError, not_among
from sbnet.model.names import spelled
from sbnet.tables import frames, reading
from sbnet.tables.kinds import KINDS
from sbnet.tables.reading import Block, open_table
from sbnet.tables.stored import with_schema

EXAMPLES = """
  sbnet fit survey.csv -o survey.sbn
  sbnet fit survey.csv.gz --missing -99 "don't know" --id person --ignore comment -o survey.sbn
  sbnet fit patients.parquet --columns age=numbers "grade=D,C,B,A" --label ill -o patients.sbn
  zcat big.csv.gz | sbnet fit - -o big.sbn"""


def options(one: argparse.ArgumentParser) -> None:
    commands.table(one)
    one.add_argument("--label", metavar="COLUMN", help="a column to be predicted from the others: it is learned last")
    kinds = ", ".join(KINDS[:-1])
    one.add_argument(
        "--columns", nargs="+", default=[], metavar="COLUMN=KIND",
        help=f"how to read columns: {kinds}, ignore; or their values in order, divided by commas",
    )  # fmt: skip
    one.add_argument("--hidden", metavar="N[,N…]", default="auto", help="sizes of the hidden layers (default: chosen)")
    one.add_argument("--epochs", metavar="N", default="auto", help="passes over the table (default: chosen)")
    one.add_argument("--seed", type=int, default=0, help="of the random numbers (default: %(default)s)")
    commands.output(one, "the model", required=True)
    one.add_argument("--to", metavar="ENDING", help="the format of standard output, such as .sbn (default: .toml)")


def run(chosen: argparse.Namespace) -> int:
    check_out(chosen.out, chosen)
    settings = {"hidden": _layers(chosen.hidden), "epochs": _epochs(chosen.epochs), "random_state": chosen.seed}
    settings["verbose"] = int(sys.stderr.isatty() and not chosen.quiet)
    with open_table(chosen.table, hints(chosen)) as source:
        table = TableHead.begin(source, frames.missing_values(chosen.missing))
        positions, ids = _columns(table, chosen)
        names = [table.names[k] for k in positions]
        said, label = _said(chosen.columns, names), names[-1] if chosen.label else None
        cells = _cells(table, positions, chosen.quiet)
    from sbnet.estimators import SBNDensity

    with warnings.catch_warnings():
        if chosen.quiet:
            warnings.simplefilter("ignore", CodingWarning)
        density = SBNDensity(**settings, columns=said, label=label, missing=list(table.gone)).fit(cells)
    schema = density.schema_
    assert schema is not None
    network = with_schema(density.network_, schema, ids, chosen.ignore)
    write_model(network, chosen.out, chosen.to)
    bound, n = float(density.bounds_[-1]), len(cells[names[0]])
    if chosen.json and chosen.out != "-":
        told = {"out": chosen.out, "rows": n, "columns": len(names), "units": network.n_units, "bound": bound}
        print(json.dumps({**told, "epochs": density.n_iter_, "schema": schema.to_dict()}))
    elif not chosen.quiet:
        print(schema, file=sys.stderr if chosen.out == "-" else sys.stdout)
        size = f"{n:,} rows of {len(names):,} columns: {network.n_units:,} variables"
        print(f"sbnet: {size}, mean ln P {bound:.4f} nats", file=sys.stderr)
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


def _columns(table: TableHead, chosen: argparse.Namespace) -> tuple[list[int], list[str]]:
    """The positions of the columns to learn, the label last; and the names of those that name rows."""
    known = table.names
    named = [spelled(name, known) for name in (*chosen.id, *chosen.ignore, *([chosen.label] if chosen.label else []))]
    for name in named:
        if name not in known:
            raise not_among(name, known, f"the columns of {table.source.what}")
    last = [known.index(named[-1])] if chosen.label else []
    positions = [k for k in table.named_columns() if known[k] not in named] + last
    if not positions:
        raise TableError(f"{table.source.what} has no column left to learn from")
    return positions, named[: len(chosen.id)]


def _said(items: Sequence[str], names: Sequence[str]) -> dict[str, Any] | None:
    """What --columns says: a kind, or values in order, by column."""
    said: dict[str, Any] = {}
    for item in items:
        name, sign, how = item.rpartition("=")
        if not sign:
            raise ParameterError(f"--columns has {item!r}; say COLUMN=KIND, as in age=numbers, or grade=D,C,B,A")
        name = spelled(name, names)
        if name not in names:
            raise not_among(name, names, "the columns of the table")
        said[name] = [value.strip() for value in how.split(",")] if "," in how else how.strip()
    return said or None


def _cells(table: TableHead, positions: Sequence[int], quiet: bool) -> dict[str, list[Any]]:
    """All rows, column by column."""
    cells: list[list[Any]] = [[] for _ in positions]
    for k in positions:
        table.check_cells(k)
    for block in _blocks(table, quiet):
        for own, k in zip(cells, positions, strict=True):
            own += [reading.text(cell, table.source.delimiter) for cell in block.columns[k]]
    return {table.names[k]: own for k, own in zip(positions, cells, strict=True)}


def _blocks(table: TableHead, quiet: bool) -> Iterator[Block]:
    n = 0
    with Progress(quiet) as progress:
        for block in table.source.blocks:
            yield block
            n += len(block)
            progress.more(len(block))
    if not n:
        raise TableError(f"{table.source.what} has no rows")
