"""Answers for the rows of a table: posterior means and a bound for each."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from sbnet._types import HIDDEN, BoolArray
from sbnet.cli import rows
from sbnet.cli.evidence import listed_units
from sbnet.cli.units import open_units
from sbnet.cli.writing import open_writer
from sbnet.errors import ParameterError
from sbnet.exact.prior import predicted_prior
from sbnet.inference import PosteriorBatch, Status
from sbnet.model.network import Network
from sbnet.questions.by_state import by_state, columns_at, frame_columns


def run(network: Network, chosen: argparse.Namespace) -> int:
    """Write a column for each unit; or, with --json, an object for each row, each on a line."""
    if chosen.evidence:
        raise ParameterError("findings come from the command or from a table; give VARIABLE=STATE or --table, not both")
    if chosen.certain:
        raise ParameterError("--certain is for one pattern; leave it away, or give its findings as VARIABLE=STATE")
    if chosen.top is not None and not chosen.json:
        way_out = "a table has a column for each; say --about or --json"
        raise ParameterError(f"--top ranks the variables of each row, and {way_out}")
    if chosen.json and chosen.out != "-":
        raise ParameterError("--json with --table goes to standard output, a line for each row; leave -o away")
    named = open_units(network) if chosen.about is None else listed_units(network, chosen.about, "--about")
    wanted = () if chosen.mean_field else named
    units = [network.index(name) for name in named]
    with rows.opened_for(network, chosen) as table:
        if chosen.json:
            _print_lines(network, table, units, chosen.top, wanted)
            return 0
        columns = columns_at(network, units)
        titles = frame_columns(network, units, np.zeros((0, len(columns))))[1]
        names = [*table.ids, "bound", "converged", "exact", *titles]
        with open_writer(chosen.out, names, table.source.delimiter) as writer:
            for block, states in table.blocks():
                batch = rows.answers(network, states, wanted)
                shown = frame_columns(network, units, batch.means[:, columns])[0]
                means = [np.array([float(f"{p:.6g}") for p in column.tolist()]) for column in shown.T]
                settled = batch.converged.astype(int).tolist()
                writer.put([*table.names(block), batch.bound, settled, _exact(batch).astype(int).tolist(), *means])
    return 0


def _exact(batch: PosteriorBatch) -> BoolArray:
    """Is ln P of each row exact, and are the probabilities?"""
    exact: BoolArray = (batch.solution.status == Status.EXACT.code) | (batch.bound == -np.inf)
    return exact


def _print_lines(network: Network, table: rows.Table, units: list[int], top: int | None, wanted: Sequence[str]) -> None:
    """The hidden units of each row, the most probable first."""
    prior, units = predicted_prior(network), sorted(units)
    for block, states in table.blocks():
        batch = rows.answers(network, states, wanted)
        exact = _exact(batch).tolist()
        for r, ids in enumerate(zip(*table.names(block), strict=True) if table.ids else [()] * len(block)):
            row: dict[str, Any] = dict(zip(table.ids, ids, strict=True))
            if batch.bound[r] == -np.inf:
                row |= {"bound": None, "impossible": batch[r].impossible, "units": []}
            else:
                means, hidden = batch.means[r], [i for i in units if states[r, i] == HIDDEN]
                own = {i: network.columns_of(i) for i in hidden}
                ranked = sorted(hidden, key=lambda i: -means[own[i]].sum())[:top]
                told = [
                    {"name": name, "prior": by_state(network.states[name], prior[own[i]]), "mean": batch[r][name]}
                    for i in ranked
                    for name in [network.names[i]]
                ]
                row |= {"bound": batch.bound[r], "exact": exact[r], "units": told}
            print(json.dumps(row, default=str))
        sys.stdout.flush()
