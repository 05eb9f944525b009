"""Score the rows of a table: a lower bound on ln P of each, in nats; the lower, the stranger the row."""

from __future__ import annotations

import argparse

from sbnet._types import HIDDEN, FloatArray, States
from sbnet.cli import commands, rows
from sbnet.cli.models import read_model
from sbnet.cli.writing import open_writer
from sbnet.errors import not_among
from sbnet.model.names import spelled
from sbnet.model.network import Network
from sbnet.questions.evidence import words_of

EXAMPLES = """
  sbnet score survey.sbn new.csv -o scores.csv
  sbnet score survey.sbn new.csv --id person | sort -t, -k2 -g | head     the strangest first; of a table
                                                                          divided by semicolons, sort -t';'
  sbnet score patients.sbn new.csv --label ill                            how likely is each ill?"""


def options(one: argparse.ArgumentParser) -> None:
    commands.model(one)
    commands.table(one)
    label = "a column that is taken as missing, and whose probabilities are told instead"
    one.add_argument("--label", metavar="COLUMN", help=label)
    commands.output(one, "where to write the scores")


def run(chosen: argparse.Namespace) -> int:
    network = read_model(chosen)
    label = None if chosen.label is None else _label(network, chosen.label)
    with rows.opened_for(network, chosen) as table:
        names = [*table.ids, "bound", *([] if label is None else _titles(network, label))]
        with open_writer(chosen.out, names, table.source.delimiter, as_json=chosen.json) as writer:
            for block, states in table.blocks():
                writer.put([*table.names(block), *_scores(table, states, label)])
    return 0


def _scores(table: rows.Table, states: States, label: int | None) -> list[FloatArray]:
    """ln P of the rows, or bounds on it, and the probabilities of the states of the label; of two, one says all."""
    if label is None:
        return [table.bounds(states)]
    states[:, label] = HIDDEN
    found = rows.probabilities(table.network, states, label)
    return [table.bounds(states), *(found.T if found.shape[1] > 2 else [found[:, 1]])]


def _label(network: Network, name: str) -> int:
    """The number of a variable."""
    name = spelled(name, network.names)
    if name not in network._index:
        raise not_among(name, network.names, "the columns or variables of the model")
    return network.index(name)


def _titles(network: Network, label: int) -> list[str]:
    name, words = network.names[label], words_of(network, label)
    if not words:
        return [f"P({name})"]
    return [f"P({name}={word})" for word in (words if len(words) > 2 else words[1:])]
