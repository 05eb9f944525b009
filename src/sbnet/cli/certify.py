"""Prove an interval for ln P of what was observed, and for the probability of units."""

from __future__ import annotations

import argparse
import json
import math
from dataclasses import asdict
from typing import Any

from sbnet.certificates import certify, posterior_intervals
from sbnet.certificates.records import Interval
from sbnet.cli import commands
from sbnet.cli.evidence import findings_apart, listed_units, pattern
from sbnet.cli.models import read_model

EXAMPLES = """
  sbnet certify clinic.toml fever=yes cough=no
  sbnet certify clinic.toml fever=yes --about flu cold --effort high
  sbnet certify clinic.toml fever=yes --confidence 0.999
  sbnet certify clinic.toml fever=yes --seconds 10 --gap 0.5
  sbnet certify clinic.toml fever=yes --json"""


def options(one: argparse.ArgumentParser) -> None:
    commands.model(one)
    commands.evidence(one)
    one.add_argument("--about", nargs="+", metavar="VARIABLE", help="variables whose probabilities to enclose too")
    one.add_argument("--effort", choices=("fast", "normal", "high"), default="normal", help="how hard to try")
    sure = "find an interval with that confidence too, from samples: 0.999, say"
    one.add_argument("--confidence", type=float, metavar="P", default=1.0, help=sure)
    one.add_argument("--seconds", type=float, help="narrow the certain interval by branch and bound for that long")
    one.add_argument("--gap", type=float, metavar="NATS", help="stop when the interval is that short")
    one.add_argument("--proven", action="store_true", help="count rounding in ball arithmetic (needs python-flint)")


def _ends(bounds: Interval) -> dict[str, Any]:
    """Two bounds by name, or those of each state."""
    if isinstance(bounds, dict):
        return {state: _ends(both) for state, both in bounds.items()}
    return {"lower": bounds[0], "upper": bounds[1]}


def run(chosen: argparse.Namespace) -> int:
    network = read_model(chosen)
    about = findings_apart(network, chosen.about, chosen.evidence)
    found = pattern(network, chosen.evidence)
    units = listed_units(network, about or [], "--about")
    how = {"effort": chosen.effort, "proven": chosen.proven}
    whole = certify(network, found, **how, confidence=chosen.confidence, seconds=chosen.seconds, gap=chosen.gap)
    possible = units and whole.upper > -math.inf
    intervals = posterior_intervals(network, found, units=units, **how) if possible else None
    if chosen.json:
        fields = asdict(whole)
        if whole.upper == -math.inf:  # of impossible evidence; JSON has no infinity
            fields |= dict.fromkeys(("lower", "upper", "estimate", "mean_field", "interval"))
        fields |= {name: None for name in ("mean_field", "logarithm") if math.isnan(fields[name] or 0.0)}
        means = {name: _ends(bounds) for name, bounds in (intervals or {}).items()}
        print(json.dumps({**fields, "gap": whole.gap, "evidence": found, "units": means}))
        return 0
    for told in (whole, intervals):
        if told is not None:
            print(str(told).replace("proven=True", "--proven"))
    return 0
