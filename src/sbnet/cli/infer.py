"""Ask for causes: posterior means, a bound on ln P, what each finding contributed; for one pattern or a table."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from sbnet import reading
from sbnet._types import HIDDEN, FloatArray, IndexArray
from sbnet.asking import Contributions, contributions, terms
from sbnet.certificates import posterior_intervals
from sbnet.cli import commands, rows
from sbnet.cli.models import check_out, listed_units, one_input, pattern, read_model
from sbnet.cli.sinks import open_sink
from sbnet.errors import ParameterError
from sbnet.files.atomic import write_atomically
from sbnet.inference import MeanField, Posterior, infer
from sbnet.network import Network
from sbnet.prior import predicted_prior
from sbnet.reading import Reading

EXAMPLES = """
  sbnet infer clinic.toml fever=yes cough=no --top 10
  sbnet infer clinic.toml fever=yes --certain        with intervals that are guaranteed
  sbnet infer clinic.toml fever=yes --json | jq '.units[0]'
  sbnet infer clinic.toml --table visits.csv -o answers.csv
  cat visits.csv | sbnet infer clinic.toml --table - | head -3"""
_SHOWN = 20
_CONTRIBUTING = 100
"""Findings up to which their contributions are worked out unasked: each takes one more solution."""


def options(one: argparse.ArgumentParser) -> None:
    """Model, evidence or a table, and how much to show."""
    commands.model(one)
    commands.evidence(one)
    commands.table(one, required=False)
    one.add_argument("--about", nargs="+", metavar="UNIT", help="the units to list (default: the group causes, or all)")
    one.add_argument("--top", type=commands.whole, metavar="N", help=f"units to list (a terminal has {_SHOWN})")
    one.add_argument("--certain", action="store_true", help="intervals that are guaranteed to hold the exact chances")
    commands.output(one, "where to write the answers")


def run(chosen: argparse.Namespace) -> int:
    """Ask."""
    one_input(chosen.model, chosen.table)
    check_out(chosen.out)
    network = read_model(chosen.model, chosen.ending)
    if chosen.table is not None:
        if chosen.evidence:
            raise ParameterError("findings come from the command or from a table; give UNIT=STATE or --table, not both")
        return _ask_table(network, chosen)
    text = _asked_once(network, chosen)
    if chosen.out == "-":
        sys.stdout.write(text)
    else:
        write_atomically(chosen.out, text.encode())
    return 0


def _asked_once(network: Network, chosen: argparse.Namespace) -> str:
    posterior = infer(network, pattern(network, chosen.evidence))
    units = _units(posterior, chosen.about)
    findings = int((posterior.evidence != HIDDEN).sum())
    why = None
    if 0 < findings <= _CONTRIBUTING and len(units):
        why = contributions(network, posterior.evidence.tolist(), units.tolist(), solver=MeanField())
    if chosen.json:
        found = _as_json(posterior, units[: chosen.top], why, certain=chosen.certain)
        return json.dumps(found, indent=None if chosen.out == "-" and not sys.stdout.isatty() else 1) + "\n"
    most = chosen.top or (_SHOWN if chosen.out == "-" and sys.stdout.isatty() else len(units))
    return _reading(posterior, units, most, why, certain=chosen.certain).text() + "\n"


def _units(posterior: Posterior, about: Sequence[str] | None) -> IndexArray:
    """The hidden units to list, the likeliest first."""
    network = posterior.network
    if about is not None:
        named = listed_units(network, about, "--about")
    else:
        named = [name for name in network.names if network.notes[name].group == "causes"] or list(network.names)
    hidden = [i for i in map(network.index, named) if posterior.evidence[i] == HIDDEN]
    return np.array(sorted(hidden, key=lambda i: -posterior.means[i]), np.int64)


def _intervals(posterior: Posterior, units: Iterable[int]) -> dict[str, tuple[float, float]]:
    names = [posterior.network.names[i] for i in units]
    return dict(posterior_intervals(posterior.network, posterior.evidence, names)) if names else {}


def _as_json(posterior: Posterior, units: IndexArray, why: Contributions | None, *, certain: bool) -> dict[str, Any]:
    network, prior = posterior.network, posterior.prior
    intervals = _intervals(posterior, units) if certain else {}
    listed = []
    for i in units.tolist():
        name = network.names[i]
        one: dict[str, Any] = {"name": name, "prior": float(prior[i]), "mean": float(posterior.means[i])}
        if name in intervals:
            one["lower"], one["upper"] = intervals[name]
        if why is not None:
            one["contributions"] = why[name]
        if network.notes[name]:
            one |= {key: value for key in ("about", "group") if (value := getattr(network.notes[name], key))}
        listed.append(one)
    observed = {network.names[i]: int(posterior.evidence[i]) for i in np.flatnonzero(posterior.evidence != HIDDEN)}
    return {"bound": posterior.bound, "converged": posterior.converged, "evidence": observed, "units": listed}


def _reading(posterior: Posterior, units: IndexArray, most: int, why: Contributions | None, *, certain: bool) -> Reading:
    network, prior, means = posterior.network, posterior.prior, posterior.means
    shown = units[:most]
    top = reading.scale(prior[shown], means[shown]) if len(shown) else 1.0
    intervals = _intervals(posterior, shown) if certain else {}
    titles = ["unit", "prior → mean", f"0 to {top:g}", *(["guaranteed"] if certain else [])]
    table: list[list[Any]] = [[*titles, *(["because of, in nats"] if why is not None else [])]]
    for i in shown.tolist():
        name = network.names[i]
        row = [name, f"{reading.chance(prior[i])} → {reading.chance(means[i])}"]
        row.append(f"{reading.Move(prior[i], means[i], top).text():<20}")
        if certain:
            row.append("{:.4f} to {:.4f}".format(*_outwards(intervals[name])))
        table.append([*row, *([terms(why[name])] if why is not None else [])])
    head = f"Given {reading.given(posterior.evidence).removeprefix('given ')}: ln P ≥ {posterior.bound:.6g} nats"
    remarks = () if posterior.converged else (posterior.status.value,)
    return Reading(head, [*table, *reading.more(len(units) - len(shown))], remarks)


def _outwards(ends: tuple[float, float]) -> tuple[float, float]:
    """To four digits, so that what is printed holds too."""
    return float(np.floor(ends[0] * 1e4) / 1e4), float(np.ceil(ends[1] * 1e4) / 1e4)


def _ask_table(network: Network, chosen: argparse.Namespace) -> int:
    table = rows.open_for(network, chosen)
    kept = table.picked(chosen.id)
    if chosen.json:
        return _ask_lines(network, table, chosen)
    with open_sink(chosen.out, [*chosen.id, "bound", "converged", *network.names], table.source.delimiter) as sink:
        for block, states in table.pieces():
            batch = rows.solve(network, states)
            means = [rows.shown(column, 6) for column in batch.means.T]
            own = [rows.shown(batch.bound), batch.converged.astype(int).tolist()]
            sink.put([*(block.columns[k] for k in kept), *own, *means])
    return 0


def _ask_lines(network: Network, table: rows.Table, chosen: argparse.Namespace) -> int:
    """An object for each row, each on a line."""
    if chosen.out != "-":
        raise ParameterError("--json with --table goes to standard output, a line for each row; leave -o away")
    prior = predicted_prior(network)
    for block, states in table.pieces():
        batch = rows.solve(network, states)
        for r in range(len(block)):
            names = {name: block.columns[k][r] for name, k in zip(chosen.id, table.picked(chosen.id), strict=True)}
            units = _ranked(network, batch.means[r], states[r] == HIDDEN, prior)
            print(json.dumps({**names, "bound": float(batch.bound[r]), "units": units[: chosen.top]}))
        sys.stdout.flush()
    return 0


def _ranked(network: Network, means: FloatArray, hidden: Any, prior: FloatArray) -> list[dict[str, Any]]:
    order = sorted(np.flatnonzero(hidden).tolist(), key=lambda i: -means[i])
    return [{"name": network.names[i], "prior": float(prior[i]), "mean": float(means[i])} for i in order]
