"""Learn a network from a table with holes."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from sbnet._types import States
from sbnet.cli import commands
from sbnet.cli.columns import (
    NotTwoValued,
    check_choice,
    check_plain,
    column_reader,
    decide,
    named_columns,
    peek,
    refuse,
)
from sbnet.cli.models import check_out, write_model
from sbnet.cli.rows import Progress
from sbnet.cli.sources import Block, Source, open_table
from sbnet.cli.stored import COLUMNS, Habits, notes_on, with_habits
from sbnet.errors import ParameterError, TableError, not_among
from sbnet.model.names import spelled
from sbnet.model.network import Network
from sbnet.model.notes import Note
from sbnet.model.roles import HIDDEN_UNITS
from sbnet.tables import delimited, frames
from sbnet.tables.codings import NOT_CHOSEN, Coding, word

EXAMPLES = """
  sbnet fit survey.csv -o survey.sbn
  sbnet fit survey.csv.gz --hidden 8 --missing -99 9 --id person --ignore comment -o survey.sbn
  sbnet fit patients.parquet --encode auto --label ill -o patients.sbn   ages, categories, numbers
  zcat big.csv.gz | sbnet fit - -o big.sbn"""


def options(one: argparse.ArgumentParser) -> None:
    """Table, and how to learn."""
    commands.table(one)
    one.add_argument("--label", metavar="COLUMN", help="a column to be told from the others: it is learned last")
    one.add_argument("--hidden", metavar="N[,N…]", default="auto", help="sizes of the hidden layers (default: chosen)")
    one.add_argument("--encode", choices=("auto",), help="take categories and numbers too, each column as its units")
    one.add_argument("--epochs", metavar="N", default="auto", help="passes over the table (default: chosen)")
    one.add_argument("--seed", type=int, default=0, help="of all that is random (default: %(default)s)")
    commands.output(one, "the model", required=True)
    one.add_argument("--to", metavar="ENDING", help="the format of standard output, such as .sbn (default: .toml)")


def run(chosen: argparse.Namespace) -> int:
    """Read, learn, write."""
    check_out(chosen.out, chosen)
    settings = {"hidden": _layers(chosen.hidden), "epochs": _epochs(chosen.epochs), "random_state": chosen.seed}
    with open_table(chosen) as source:
        return _fit(source, settings, chosen)


def _fit(source: Source, settings: dict[str, Any], chosen: argparse.Namespace) -> int:
    from sbnet.estimators import SBNDensity

    head, source = peek(source)
    names = _columns(source, head, chosen)
    gone = frames.missing_values(chosen.missing)
    verbose = int(sys.stderr.isatty() and not chosen.quiet)
    if chosen.encode is None:
        cells, known = _two_valued(source, head, names, gone, chosen.quiet)
        label = None if chosen.label is None else f"x{len(names) - 1}"
        density = SBNDensity(**settings, label=label, missing=[-1], verbose=verbose).fit(cells)
        network, n = _named(density.network_, names, known), len(cells)
    else:
        table, label = _records(source, names, gone, chosen.quiet), None if chosen.label is None else names[-1]
        density = SBNDensity(**settings, encode="auto", label=label, missing=list(gone), verbose=verbose).fit(table)
        network, n = _with_notes(density), len(table)
    network = with_habits(network, Habits(tuple(chosen.missing), tuple(chosen.id), (*chosen.ignore, *_unread(density))))
    write_model(network, chosen.out, chosen.to)
    bound = float(density.bounds_[-1])
    if chosen.json and chosen.out != "-":
        told = {"out": chosen.out, "rows": n, "columns": len(names), "units": network.n_units, "bound": bound}
        print(json.dumps({**told, "epochs": density.n_iter_}))
    elif not chosen.quiet:
        print(
            f"sbnet: {n:,} rows of {len(names):,} columns: {network.n_units:,} units, mean bound {bound:.4f} nats in "
            f"epoch {density.n_iter_}",
            file=sys.stderr,
        )
    return 0


def _layers(text: str) -> Any:
    if text == "auto":
        return text
    parts = [part for part in text.split(",") if part]
    if not all(part.isdecimal() and int(part) > 0 for part in parts) and text != "0":
        raise ParameterError(f"--hidden is {text!r}; give sizes such as 8 or 8,24, top to bottom, or 0 for none")
    return () if text == "0" else tuple(map(int, parts))


def _epochs(text: str) -> Any:
    if text == "auto":
        return text
    if not text.isdecimal() or int(text) < 1:
        raise ParameterError(f"--epochs is {text!r}; give a whole number, one or more")
    return int(text)


def _columns(source: Source, head: Sequence[Block], chosen: argparse.Namespace) -> list[str]:
    """The columns to learn, the label last."""
    label = [chosen.label] if chosen.label else []
    left, last = ([spelled(name, source.names) for name in names] for names in ([*chosen.id, *chosen.ignore], label))
    for name in [*left, *last]:
        if name not in source.names:
            raise not_among(name, source.names, f"the columns of {source.what}")
    names = [name for _, name in named_columns(source, head) if name not in {*left, *last}] + last
    if not names:
        raise TableError(f"{source.what} has no column left to learn from")
    return names


def _two_valued(
    source: Source, head: Sequence[Block], names: Sequence[str], gone: tuple[Any, ...], quiet: bool
) -> tuple[States, dict[str, Coding]]:
    """All rows as states, one byte a cell, and what 0 and 1 are called in each column."""
    places = [source.names.index(name) for name in names]
    known = _decided(names, places, head, source, gone)
    readers = [
        column_reader(name, place, 0, known[name], head, gone, source.delimiter)
        for name, place in zip(names, places, strict=True)
    ]
    parts = []
    with Progress(quiet) as progress:
        for block in source.blocks:
            parts.append(np.column_stack([reader.read(block, source) for reader in readers]).astype(np.int8))
            progress.more(len(block))
    if not parts:
        raise TableError(f"{source.what} has no rows")
    return np.concatenate(parts), known


def _decided(
    names: Sequence[str], places: Sequence[int], head: Sequence[Block], source: Source, gone: tuple[Any, ...]
) -> dict[str, Coding]:
    """How each column is read; all that cannot be are named at once."""
    known, refused = dict[str, Coding](), list[NotTwoValued]()
    for name, place in zip(names, places, strict=True):
        check_plain(name, place, head, source)
        try:
            known[name] = decide(name, place, head, source, gone)
            check_choice(name, place, head, source, gone)
        except NotTwoValued as error:
            refused.append(error)
    if refused:
        raise refuse(source, refused)
    return known


def _named(network: Network, names: Sequence[str], known: dict[str, Coding]) -> Network:
    """The units of the columns under their names; what their values were is written beside them."""
    own, taken = {f"x{k}": name for k, name in enumerate(names)}, set(names)
    new = tuple(own[name] if name in own else _free(_switch(name, own), taken) for name in network.names)
    words = {name: (word(coding.zero), word(coding.one)) for name, coding in known.items() if not coding.is_plain}
    notes = {name: Note(group=COLUMNS, states=words.get(name, ())) for name in names}
    hidden = {name: Note(group=HIDDEN_UNITS) for name in new if name not in notes}
    return replace(network, names=new, notes=notes | hidden)


def _switch(name: str, own: dict[str, str]) -> str:
    """A unit that a column has for its own, called after it."""
    column, point, rest = name.partition(".")
    return f"{own[column]}.{rest}" if point and column in own else name


def _free(name: str, taken: set[str]) -> str:
    """A name that no column has."""
    while name in taken:
        name += "'"
    return name


def _records(source: Source, names: Sequence[str], gone: tuple[Any, ...], quiet: bool) -> list[dict[str, Any]]:
    """All rows, with numbers as numbers."""
    places = [source.names.index(name) for name in names]
    rows: list[dict[str, Any]] = []
    with Progress(quiet) as progress:
        for block in source.blocks:
            columns = [[_cell(cell, source.delimiter) for cell in block.columns[k]] for k in places]
            rows += [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
            progress.more(len(block))
    if not rows:
        raise TableError(f"{source.what} has no rows")
    return rows


def _cell(cell: Any, delimiter: str) -> Any:
    if not isinstance(cell, str):
        return cell
    text = delimited.plain(cell, delimiter)
    number = frames.as_number(text)
    return text if number is None else number


def _unread(density: Any) -> list[str]:
    """The columns that have no unit: they tell nothing, and are passed over in other tables too."""
    columns = () if density.encoder_ is None else density.encoder_.columns_
    return [column.name for column in columns if not column.units]


def _with_notes(density: Any) -> Network:
    encoder = density.encoder_
    columns = list(encoder.columns_)
    fills = [
        ["" if label == NOT_CHOSEN else word(encoder.values_[k][v]) for v, label in enumerate(column.labels)]
        for k, column in enumerate(columns)
    ]
    network: Network = density.network_
    units = {unit for column in columns for unit in column.units}
    every = {name: Note(group=COLUMNS if name in units else HIDDEN_UNITS) for name in network.names}
    return network.with_notes(every | notes_on(columns, fills))
