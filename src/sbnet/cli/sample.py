"""Draw rows from a network, in the words of the table that it was learned from, if it was."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

import numpy as np

from sbnet.cli import commands
from sbnet.cli.evidence import certain, pattern
from sbnet.cli.models import read_model
from sbnet.cli.writing import open_writer
from sbnet.errors import ParameterError
from sbnet.exact.probability import sample
from sbnet.model.network import Network
from sbnet.questions.evidence import words_of
from sbnet.tables import frames
from sbnet.tables.kinds import Column
from sbnet.tables.stored import COLUMNS, schema_of

EXAMPLES = """
  sbnet sample clinic.toml 1000 -o visits.csv
  sbnet sample clinic.toml 10 --seed 1 --do flu=yes
  sbnet sample survey.sbn 5 --units all"""
_BLOCK = 4096


def options(one: argparse.ArgumentParser) -> None:
    commands.model(one)
    one.add_argument("n", type=commands.whole, nargs="?", metavar="N", help="how many rows")
    one.add_argument("-n", "--rows", type=commands.whole, metavar="N", help="how many rows, as an option")
    one.add_argument("--seed", type=int, help="of the random numbers, for equal rows each time")
    one.add_argument("--do", nargs="+", default=[], metavar="VARIABLE=STATE", help="variables held by intervention")
    one.add_argument(
        "--units", choices=("columns", "all"), default="columns",
        help="of a model learned from a table its columns, or all variables (default: %(default)s)",
    )  # fmt: skip
    commands.output(one, "where to write the rows")


def run(chosen: argparse.Namespace) -> int:
    n = _number(chosen)
    network = read_model(chosen)
    held = pattern(network, chosen.do) or None
    if reported := sorted(set(held or ()) - certain(held or {})):
        raise ParameterError(f"--do holds {reported[0]!r} at one state; say which, without likelihoods")
    schema = None if chosen.units == "all" else schema_of(network)
    named = _names(network, every=chosen.units == "all") if schema is None else list(schema.names)
    units = [network.index(name) for name in named]
    numbers = {} if schema is None else {name: _spell_numbers(schema[name]) for name in named}
    rng = np.random.default_rng(chosen.seed)
    with open_writer(chosen.out, named, as_json=chosen.json) as writer:
        for begin in range(0, n, _BLOCK):
            states = sample(network, min(_BLOCK, n - begin), rng=rng, do=held)[:, units]
            if schema is not None:
                drawn = {name: schema.cells(name, states[:, k], rng) for k, name in enumerate(named)}
                writer.put([list(_as_numbers(cells)) if numbers[name] else cells for name, cells in drawn.items()])
                continue
            words = [_as_numbers(words_of(network, i)) or (0, 1) for i in units]
            writer.put([[own[s] for s in states[:, k].tolist()] for k, own in enumerate(words)])
    return 0


def _number(chosen: argparse.Namespace) -> int:
    """How many rows, said once, in one way or the other."""
    said = [n for n in (chosen.n, chosen.rows) if n is not None]
    if len(set(said)) != 1:
        way = "say how many rows to draw" if not said else f"it is said to draw {said[0]} rows and {said[1]}; say one"
        raise ParameterError(f"{way}, as in sbnet sample {chosen.model} 10")
    return int(said[0])


def _names(network: Network, *, every: bool) -> list[str]:
    """The names of the columns of a model that was learned from a table, or of all variables."""
    own = [name for name in network.names if every or network.notes[name].group == COLUMNS]
    return own or list(network.names)


def _spell_numbers(column: Column) -> bool:
    """Are all cells of a column text that spells numbers just as they would be printed?"""
    cells = [cell for own in column.cells for cell in own]
    return all(isinstance(cell, str) for cell in cells) and not isinstance(_as_numbers(cells)[0], str)


def _as_numbers(words: Sequence[str]) -> tuple[Any, ...]:
    """Words that all spell numbers, just as they would be printed, as numbers; else as they are."""
    spelled = [frames.as_number(word) for word in words]
    numbers = [
        int(n) if n is not None and n.is_integer() and "." not in w else n for n, w in zip(spelled, words, strict=True)
    ]
    return tuple(numbers) if all(str(n) == w for n, w in zip(numbers, words, strict=True)) else tuple(words)
