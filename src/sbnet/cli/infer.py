"""Ask for causes: posterior means, a bound on ln P, what each finding contributed; for one pattern or a table."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sbnet._types import HIDDEN, FloatArray, IndexArray
from sbnet.cli import commands
from sbnet.cli.evidence import certain, findings_apart, listed_units, pattern
from sbnet.cli.models import read_model
from sbnet.cli.units import PREDICTED, helpers_line, is_predicted, open_units
from sbnet.decisions import Contributions, contributions, single_cause
from sbnet.decisions.contributions import terms
from sbnet.errors import EvidenceError, ParameterError, in_line
from sbnet.files.atomic import write_atomically
from sbnet.inference import Posterior, Solver, infer
from sbnet.inference.solvers.enumeration import best
from sbnet.model import roles
from sbnet.model.network import Network
from sbnet.questions import printing
from sbnet.questions.by_state import by_state, probabilities, state_value
from sbnet.questions.printing import Cell, Reading
from sbnet.tables.stored import schema_of

EXAMPLES = """
  sbnet infer clinic.toml fever=yes cough=no --top 10
  sbnet infer clinic.toml fever=high                 a variable with states of its own
  sbnet infer clinic.toml fever=none:0.1,mild:0.5,high:1   not sure: how likely the report is in each state
  sbnet infer patients.sbn smokes=yes age=70 "chest pain=no" --about ill   columns of a table, in its words
  sbnet infer clinic.toml fever=yes --single         if exactly one cause is present
  sbnet infer clinic.toml fever=yes --certain        with intervals that are guaranteed
  sbnet infer clinic.toml fever=yes --json | jq '.units[0]'
  sbnet infer clinic.toml --table visits.csv -o answers.csv
  cat visits.csv | sbnet infer clinic.toml --table - | head -3"""
_SHOWN = 20
_MEAN_FIELD = "means of mean field theory; --certain says where they lie"
_IMPOSSIBLE = -100.0
"""Nats a finding: less is no more than a number that stands for zero."""
_CONTRIBUTING = 100
"""Findings up to which their contributions are worked out unasked: each takes one more solution."""


def options(one: argparse.ArgumentParser) -> None:
    commands.model(one)
    commands.evidence(one)
    commands.table(one, required=False)
    one.add_argument("--about", nargs="+", metavar="VARIABLE", help="the variables to list (default: causes)")
    one.add_argument("--top", type=commands.whole, metavar="N", help=f"variables to list (a terminal has {_SHOWN})")
    one.add_argument("--certain", action="store_true", help="guaranteed intervals, and means within them")
    one.add_argument("--mean-field", action="store_true", help="mean field theory also where sums are small")
    one.add_argument("--single", action="store_true", help="exactly one of the causes is present: which one?")
    commands.output(one, "where to write the answers")


def run(chosen: argparse.Namespace) -> int:
    network = read_model(chosen)
    if chosen.single and (chosen.certain or chosen.mean_field or chosen.table is not None):
        raise ParameterError("--single is exact, and for one pattern; leave --certain, --mean-field and --table away")
    if chosen.table is not None:
        from sbnet.cli import infer_table

        return infer_table.run(network, chosen)
    text = _asked_once(network, chosen)
    if chosen.out == "-":
        sys.stdout.write(text)
    else:
        write_atomically(chosen.out, text.encode())
    return 0


def _asked_once(network: Network, chosen: argparse.Namespace) -> str:
    about = findings_apart(network, chosen.about, chosen.evidence)
    evidence = pattern(network, chosen.evidence)
    if chosen.single:
        return _written(_single(network, evidence, about, chosen), chosen)
    units, schema = _units(network, evidence, about), schema_of(network)
    learned = schema is not None and len(schema.names) == network.n_units and certain(evidence) == evidence.keys()
    if schema is not None and learned and not (chosen.mean_field or chosen.certain):
        if chosen.about is None:  # all columns, in the order of the table
            units = np.array([network.index(name) for name in schema.names if name not in evidence], np.int64)
        from sbnet.cli.infer_columns import ColumnAnswers

        answers = ColumnAnswers.ask(network, evidence, units)
        return _written(answers.as_json() if chosen.json else answers.reading(chosen.top or len(units)), chosen)

    def ask(solver: Solver | None) -> Posterior:
        return infer(network, evidence, solver=solver)

    posterior, exact = (ask(None), False) if chosen.mean_field else best(ask, (network.names[i] for i in units))
    if posterior.impossible:
        raise EvidenceError(f"{posterior.impossible}. Leave out a finding, or give the variable a leak")
    intervals: dict[str, Any] = {}
    if chosen.certain and len(units):
        from sbnet.certificates import posterior_intervals

        intervals = dict(posterior_intervals(network, evidence, units=units.tolist()))
    means = posterior.means.copy()
    for name, ends in intervals.items():  # what is proven goes before what mean field theory says
        if isinstance(ends, tuple):
            own = network.columns_of(name)
            means[own] = np.clip(means[own], *ends)
    units = units[np.argsort([-means[network.columns_of(int(i))].sum() for i in units], kind="stable")]
    why = None
    if 0 < len(evidence) <= _CONTRIBUTING and len(units):
        known = evidence if posterior.question is not None else posterior
        why = contributions(network, known, about=units.tolist())
    before = _before(posterior, exact, why)
    prior = posterior.prior if before is None else before
    answer = _Answer(posterior, evidence, exact, means, intervals, why, prior, before is not None, chosen.about is None)
    if chosen.json:
        return _written(answer.as_json(units[: chosen.top]), chosen)
    if chosen.about is None:  # for people, what has no causes of its own comes first
        units = units[np.argsort(np.diff(network.graph.indptr)[units] > 0, kind="stable")]
    return _written(answer.reading(units, _most(chosen, len(units))), chosen)


def _most(chosen: argparse.Namespace, n: int) -> int:
    """How many rows are shown."""
    return chosen.top or (_SHOWN if chosen.out == "-" and sys.stdout.isatty() else n)


def _single(
    network: Network, evidence: Mapping[str, Any], about: Sequence[str] | None, chosen: argparse.Namespace
) -> dict[str, Any] | Reading:
    """Which cause, if it is exactly one, for machines or for people."""
    found = single_cause(network, evidence, about=None if about is None else listed_units(network, about, "--about"))
    if not chosen.json:
        return found._reading(_most(chosen, len(found)))
    listed = []
    for cause in found.ranked[: chosen.top]:
        k = found.causes.index(cause)
        name, state = (cause, None) if isinstance(cause, str) else cause
        numbers = {"prior": float(found.prior[k]), "mean": float(found.probability[k]), "kind": _kind(True)}
        odds = found.log_odds[k] if np.isfinite(found.log_odds[k]) else None  # JSON has no infinity
        note = {key: value for key in ("about", "group") if (value := getattr(network.notes[name], key))}
        listed.append({"name": name} | ({"state": state} if state else {}) | numbers | {"log_odds": odds} | note)
    return {"exact": True, "single": True, "evidence": evidence, "units": listed}


def _written(told: dict[str, Any] | Reading, chosen: argparse.Namespace) -> str:
    if isinstance(told, dict):
        return json.dumps(told, indent=None if chosen.out == "-" and not sys.stdout.isatty() else 1) + "\n"
    return (str(told) if chosen.out == "-" else told.text()) + "\n"


def _kind(exact: bool) -> str:
    return "exact" if exact else "estimate"


def _because(why: Contributions | None) -> list[str]:
    """The title of what findings contribute, if that is told."""
    return [] if why is None else [f"because of{'' if why.exact else ' (estimates)'}: nats (odds)"]


def outward(low: float, high: float) -> str:
    """An interval, rounded outwards, so that what is printed holds too."""
    return f"{np.floor(low * 1e4) / 1e4:.4f} to {np.ceil(high * 1e4) / 1e4:.4f}"


def intervals_told(interval: Any) -> dict[str, Any]:
    """The two bounds of a variable with two states; else those of each state, by name."""
    if isinstance(interval, tuple):
        return {"lower": interval[0], "upper": interval[1]}
    return {"intervals": {state: {"lower": low, "upper": high} for state, (low, high) in interval.items()}}


def _units(network: Network, evidence: Mapping[str, Any], about: Sequence[str] | None) -> IndexArray:
    """The hidden units to list, those with soft evidence among them."""
    known = certain(evidence)
    if about is not None:
        named = listed_units(network, about, "--about")
    else:
        named = [network.names[i] for i in roles.asked(network)]
        named = named if set(named) - known else open_units(network)
    return np.array([network.index(name) for name in named if name not in known], np.int64)


def _before(posterior: Posterior, exact: bool, why: Contributions | None) -> FloatArray | None:
    """The prior by column, that of the units asked about, where sums over all states gave it beside the answer."""
    if why is None:
        unknown = posterior.question is None and (posterior.evidence == HIDDEN).all()
        return posterior.means if exact and unknown else None
    if not why.exact:
        return None
    prior = posterior.prior.copy()
    known, network = dict(zip(why.about, why.prior.tolist(), strict=True)), posterior.network
    for column, (i, state) in enumerate(zip(*(array.tolist() for array in network.columns), strict=True)):
        name = network.names[i]
        prior[column] = known.get(name, known.get(f"{name} = {network.states[name][state]}", prior[column]))
    return prior


@dataclass(frozen=True)
class _Answer:
    """What is to be told: the means, by column; intervals, if they were asked for; contributions, if there are some."""

    posterior: Posterior
    evidence: Mapping[str, Any]
    exact: bool
    means: FloatArray
    intervals: dict[str, Any]
    why: Contributions | None
    prior: FloatArray
    """What was known before, by column."""
    summed: bool
    """Is it the sum over all states, and no prediction?"""
    every: bool
    """Was no unit asked for by name?"""

    def as_json(self, units: IndexArray) -> dict[str, Any]:
        """For machines."""
        posterior, network = self.posterior, self.posterior.network
        seen = np.flatnonzero(posterior.evidence != HIDDEN).tolist()
        observed = {network.names[i]: state_value(network, i, posterior.evidence[i]) for i in seen}
        reports = {name: given for name, given in self.evidence.items() if name not in observed}
        how = {"exact": self.exact, "converged": posterior.converged}
        listed = [self._unit(i) for i in units.tolist()]
        return {"bound": posterior.bound, **how, "evidence": observed | reports, "units": listed}

    def _unit(self, i: int) -> dict[str, Any]:
        network = self.posterior.network
        name, own = network.names[i], network.columns_of(i)
        prior, mean = (by_state(network.states[name], every[own]) for every in (self.prior, self.means))
        one = {"name": name, "prior": prior, "mean": mean, "kind": _kind(self.exact)}
        if name in self.intervals:
            one |= intervals_told(self.intervals[name])
        if self.why is not None:
            one["contributions"] = self.why[name]
        return one | {key: value for key in ("about", "group") if (value := getattr(network.notes[name], key))}

    def reading(self, units: IndexArray, most: int) -> Reading:
        """For people."""
        posterior, network, shown = self.posterior, self.posterior.network, units[:most]
        rows = printing.moved_variables(network, self.prior, self.means, shown, ranked=shown)
        predicted = not self.summed and is_predicted(network, [network.names[i] for i in shown])
        before = f"{'predicted' if predicted else 'prior'} → {'mean' if network.is_binary else 'probability'}"
        titles = ["variable", before, "kind", rows[0][2], *(["guaranteed"] if self.intervals else [])]
        table: list[list[Cell]] = [[*titles, *_because(self.why)]]
        for (name, moved, bar), i in zip(rows[1:], shown, strict=True):
            table.append([name, moved, _kind(self.exact), bar, *self._beside(int(i))])
        reports = "" if posterior.question is None else posterior.question.text()
        given = printing.given(posterior.evidence).removeprefix("given ") + reports
        head = f"Given {given}: {printing.in_nats(posterior.bound, self.exact)}"
        others = [*self._findings_line(units), *helpers_line(network)] if self.every else []
        return Reading(head, [*table, *printing.more(len(units) - len(shown)), *others], self._remarks(predicted))

    def _remarks(self, predicted: bool) -> list[str]:
        """What else should be known."""
        posterior, found = self.posterior, int((self.posterior.evidence != HIDDEN).sum())
        remarks = [] if self.exact or self.intervals else [_MEAN_FIELD]
        remarks += [] if posterior.converged else [posterior.status.value]
        if posterior.bound < _IMPOSSIBLE * max(1, found):
            remarks.append("by this model these findings hardly ever occur: is a leak missing?")
        return [*remarks, PREDICTED] if predicted else remarks

    def _findings_line(self, units: IndexArray) -> list[list[str]]:
        """A last line that counts the findings that are not known, where the graph told causes from them."""
        network = self.posterior.network
        told = {*units.tolist(), *roles.asked(network)}
        grouped = roles.of_group(network, roles.CAUSES)
        hidden = set(np.flatnonzero(self.posterior.evidence == HIDDEN).tolist())
        n = len(hidden.intersection(roles.observable(network)) - told)
        return [[f"... {n:,} finding{'s' * (n != 1)}, which --about lists"]] if n and not grouped else []

    def _beside(self, i: int) -> list[Cell]:
        """The interval of a variable, and what findings add to it, or to its likeliest state."""
        network, found = self.posterior.network, list[Cell]()
        name = network.names[i]
        states = network.states[name]
        if self.intervals:
            by_name = self.intervals[name]
            told = {"": by_name} if isinstance(by_name, tuple) else by_name
            texts = (f"{in_line(state)} {outward(*ends)}".strip() for state, ends in told.items())
            found.append(", ".join(texts))
        if self.why is not None:
            nats = self.why[name]
            if len(states) > 2:
                likeliest = states[int(np.argmax(probabilities(self.means[network.columns_of(i)])))]
                own = nats[likeliest].items()
                nats = {f"{likeliest}: {finding}" if k == 0 else finding: x for k, (finding, x) in enumerate(own)}
            found.append(terms(nats))
        return found
