"""Score the rows of a table: a lower bound on ln P of each, in nats; the lower, the stranger the row."""

from __future__ import annotations

import argparse

import numpy as np

from sbnet._types import HIDDEN, FloatArray, States
from sbnet.cli import commands, rows
from sbnet.cli.evidence import words_of
from sbnet.cli.models import read_model
from sbnet.cli.stored import stored_columns, units_of
from sbnet.cli.writing import open_writer
from sbnet.errors import not_among
from sbnet.inference.solvers.block_gibbs import cell_probabilities
from sbnet.inference.solvers.places import Place
from sbnet.model.names import spelled
from sbnet.model.network import Network
from sbnet.questions.evidence import words_of as words_of_states

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
        names = [*table.ids, "bound", *([] if label is None else _titles(label))]
        with open_writer(chosen.out, names, table.source.delimiter, as_json=chosen.json) as writer:
            for block, states in table.blocks():
                writer.put([*table.names(block), *_scores(table, states, label)])
    return 0


def _scores(table: rows.Table, states: States, label: Place | None) -> list[FloatArray]:
    """The bounds of the rows, and the probabilities of the values of the label; of two values, one says all."""
    if label is None:
        return [table.bounds(states)]
    states[:, label.units] = HIDDEN
    if len(label.codes) == 2 and not table.many_valued:
        batch = rows.answers(table.network, states)
        return [batch.bound, batch.means[:, label.units[0]]]
    others = [column for column in table.columns if column.name != label.name]
    found = cell_probabilities(table.network, states, [label, *others])[0]
    return [table.bounds(states), *(found.T if len(label.codes) > 2 else [found[:, 1]])]


def _label(network: Network, name: str) -> Place:
    """A column that the model was learned from, or a unit; its labels are its values in words, if it has some."""
    stored = stored_columns(network)
    name = spelled(name, [*stored, *network.names])
    if name in stored:
        column = stored[name]
        return Place(name, units_of(network, column), column.codes, tuple(words_of(column)))
    if name not in network._index:
        raise not_among(name, [*stored, *network.names], "the columns or units of the model")
    i = network.index(name)
    codes = np.arange(network.n_states[i], dtype=np.int8)[:, None]
    return Place(name, np.array([i]), codes, words_of_states(network, i))


def _titles(label: Place) -> list[str]:
    if not label.labels:
        return [f"P({label.name})"]
    titles = []
    for word in label.labels if len(label.labels) > 2 else label.labels[1:]:
        interval = word.startswith(("up to ", "above ")) or " to " in word
        titles.append(f"P({label.name}{' ' if interval else '='}{word})")
    return titles
