"""Draw rows from a network, in the words of the table that it was learned from, if it was."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

import numpy as np

from sbnet.cli import commands
from sbnet.cli.columns import drawn_columns
from sbnet.cli.models import check_out, read_model
from sbnet.cli.sinks import open_sink
from sbnet.cli.words import pattern
from sbnet.errors import ParameterError
from sbnet.exact.probability import sample

EXAMPLES = """
  sbnet sample clinic.toml 1000 -o visits.csv
  sbnet sample clinic.toml 10 --seed 1 --do flu=yes
  sbnet sample survey.sbn 5 --units all"""
_BLOCK = 4096


def options(one: argparse.ArgumentParser) -> None:
    """Model, how many, where to."""
    commands.model(one)
    one.add_argument("n", type=commands.whole, nargs="?", metavar="N", help="how many rows")
    one.add_argument("-n", "--rows", type=commands.whole, metavar="N", help="the same, as an option")
    one.add_argument("--seed", type=int, help="the same rows each time")
    one.add_argument("--do", nargs="+", default=[], metavar="UNIT=STATE", help="units held by intervention")
    one.add_argument(
        "--units", choices=("columns", "all"), default="columns",
        help="of a model learned from a table its columns, or all units (default: %(default)s)",
    )  # fmt: skip
    commands.output(one, "where to write the rows")


def run(chosen: argparse.Namespace) -> int:
    """Draw, block by block."""
    check_out(chosen.out, chosen)
    n = _number(chosen)
    if chosen.json and chosen.out != "-":
        raise ParameterError("--json goes to standard output, a line for each row; leave -o away")
    network = read_model(chosen)
    held = pattern(network, chosen.do)
    columns = drawn_columns(network, every=chosen.units == "all")
    rng = np.random.default_rng(chosen.seed)
    names = [column.name for column in columns]

    def blocks() -> Any:
        for begin in range(0, n, _BLOCK):
            states = sample(network, min(_BLOCK, n - begin), rng=rng, do=held or None)
            yield [column.cells(states) for column in columns]

    if chosen.json:
        for block in blocks():
            for row in zip(*block, strict=True):
                print(json.dumps(dict(zip(names, row, strict=True))))
        sys.stdout.flush()
        return 0
    with open_sink(chosen.out, names) as sink:
        for block in blocks():
            sink.put(block)
    return 0


def _number(chosen: argparse.Namespace) -> int:
    """How many rows, said once, in one way or the other."""
    said = [n for n in (chosen.n, chosen.rows) if n is not None]
    if len(set(said)) != 1:
        model = chosen.model
        way = "say how many rows to draw" if not said else f"it is said to draw {said[0]} rows and {said[1]}; say one"
        raise ParameterError(f"{way}, as in sbnet sample {model} 10")
    return int(said[0])
