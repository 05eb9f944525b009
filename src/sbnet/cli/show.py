"""Describe a network: its size, its units and the notes on them; or what some units depend on."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from typing import Any

from sbnet.cli import commands
from sbnet.cli.evidence import listed_units
from sbnet.cli.models import read_model
from sbnet.cli.units import helpers_line, is_predicted, open_units, prior_remarks
from sbnet.errors import in_line
from sbnet.exact.prior import MOST_EDGES, best_prior
from sbnet.inference.associations import associations
from sbnet.kernels.codes import NAMES
from sbnet.model.network import Network
from sbnet.model.notes import as_words
from sbnet.questions import printing
from sbnet.questions.by_state import by_state, probabilities
from sbnet.questions.printing import Reading
from sbnet.tables.stored import is_own, schema_of

EXAMPLES = """
  sbnet show clinic.toml               variables, groups, probabilities before anything is known
  sbnet show clinic.toml fever         P(fever) for the states of its causes
  sbnet show clinic.toml --json | jq .units[0]"""
_SHOWN, _ASSOCIATED = 40, 10


def options(one: argparse.ArgumentParser) -> None:
    commands.model(one)
    one.add_argument("units", nargs="*", metavar="VARIABLE", help="show what these depend on")
    one.add_argument("--top", type=commands.whole, metavar="N", help=f"variables to list (a terminal has {_SHOWN})")


def run(chosen: argparse.Namespace) -> int:
    network = read_model(chosen)
    units = listed_units(network, chosen.units, "the command")
    prior = best_prior(network) if network.n_edges <= MOST_EDGES and (chosen.json or not units) else None
    if chosen.json:
        listed = units or open_units(network)[: chosen.top]
        about = {"units": network.n_units, "edges": network.n_edges, "layers": network.layers}
        print(json.dumps({"size": about, "units": [_unit(network, name, prior) for name in listed]}))
    elif units:
        print("\n\n".join(_dependence(network, name) for name in units))
    else:
        most = chosen.top or (_SHOWN if sys.stdout.isatty() else network.n_units)
        schema = schema_of(network)
        if schema is not None:
            print(f"{schema}\n\n{_associated(network, schema.names)}\n")
        print(_list(network, prior, most))
    return 0


def _associated(network: Network, columns: Sequence[str]) -> Reading:
    """The pairs of columns that tell most about each other."""
    rows = [
        [pair.one, pair.other, f"{pair.nats:.3f} ({printing.factor(pair.nats)})"]
        for pair in associations(network, among=columns)
    ]
    table = [["column", "and", "nats"], *rows[:_ASSOCIATED], *printing.more(len(rows) - _ASSOCIATED)]
    return Reading("What columns tell about each other (mutual information of those that edges join)", table)


def _unit(network: Network, name: str, prior: Any) -> dict[str, Any]:
    """A variable for machines: with its states, and arrays, where some variable has more than two, or a table."""
    family, own, binary = network.family(name), network.columns_of(name), network.is_binary
    if family.table is not None:
        numbers: dict[str, Any] = {"parents": family.parents, "table": family.table.tolist()}
    else:
        weights = {u: w.item() if binary else w.tolist() for u, w in zip(family.parents, family.weights, strict=True)}
        numbers = {"bias": family.bias.item() if binary else family.bias.tolist(), "weights": weights}
    note = {key: value for key, value in as_words(network.notes[name]).items() if binary or key != "states"}
    return {
        "name": name,
        **({} if binary else {"states": family.states}),
        "gate": NAMES[family.gate],
        "prior": None if prior is None else by_state(family.states, prior[own]),
        **numbers,
        **note,
    }


def _dependence(network: Network, name: str) -> str:
    note = network.notes[name]
    head = [f"{name}: {note.about}"] if note.about else []
    causes = f"  causes: {', '.join(network.parents(name)) or 'none'}"
    effects = f"  causes of: {', '.join(network.children(name)) or 'nothing'}" if network.children(name) else ""
    told = {key: value for key, value in as_words(note).items() if key in ("group", "source", "note")}
    extra = [f"  {key}: {value}" for key, value in told.items() if not is_own(value)]
    about, more = (map(in_line, lines) for lines in (head, [causes, *filter(None, [effects]), *extra]))
    return "\n".join([*about, repr(network.conditional(name)), *more])


def _list(network: Network, prior: Any, most: int) -> Reading:
    grouped = any(note.group for note in network.notes.values())
    listed = open_units(network)
    predicted = prior is not None and is_predicted(network, listed)
    titles = ["variable", "predicted" if predicted else "prior", "parents", *(["group"] if grouped else []), "about"]
    rows = []
    for name in listed[:most]:
        i = network.index(name)
        note, own = network.notes[name], network.columns_of(i)
        shown = "" if prior is None else printing.states_told(network.states[name], probabilities(prior[own]))
        rows.append([name, shown, f"{len(network.parents(i)):,}", *([note.group] if grouped else []), note.about])
    table = [titles, *rows, *printing.more(len(listed) - most), *helpers_line(network)]
    remarks = () if prior is None else prior_remarks(network, listed)
    return Reading(repr(network)[1:-1], table, remarks, cuts=(0, len(titles) - 1))
