"""Say how the probability of a cause moves with each number of the network, and when another cause would lead."""

from __future__ import annotations

import argparse
import json
import math
import sys
from typing import Any

from sbnet.cli import commands
from sbnet.cli.evidence import findings_apart, listed_units, pattern
from sbnet.cli.models import read_model
from sbnet.decisions import sensitivity
from sbnet.errors import ParameterError

EXAMPLES = """
  sbnet sensitivity clinic.toml fever=yes
  sbnet sensitivity clinic.toml fever=yes --about flu --top 5
  sbnet sensitivity clinic.toml fever=yes --about fever=high --of flu cold
  sbnet sensitivity clinic.toml fever=yes --json | jq '.numbers[0]'"""
_SHOWN = 20


def options(one: argparse.ArgumentParser) -> None:
    commands.model(one)
    commands.evidence(one)
    one.add_argument("--about", metavar="CAUSE", help="the cause, or CAUSE=STATE (default: the likeliest)")
    one.add_argument("--of", nargs="+", metavar="VARIABLE", help="variables whose numbers are looked at (default: all)")
    one.add_argument("--top", type=commands.whole, metavar="N", help=f"numbers to list (a terminal has {_SHOWN})")


def run(chosen: argparse.Namespace) -> int:
    network = read_model(chosen)
    of = findings_apart(network, chosen.of, chosen.evidence)
    named = None if of is None else listed_units(network, of, "--of")
    found = sensitivity(network, pattern(network, chosen.evidence), about=_cause(network, chosen.about), of=named)
    if chosen.json:
        listed = [{"number": name, **_finite(found[name]._asdict())} for name in found.numbers[: chosen.top]]
        print(json.dumps({"about": found.about, "answer": found.answer, "leader": found.leader, "numbers": listed}))
    else:
        print(found._reading(chosen.top or (_SHOWN if sys.stdout.isatty() else len(found))))
    return 0


def _cause(network: Any, words: str | None) -> Any:
    """A cause, or a cause and its state."""
    if words is None or words in network._index:
        return words
    name, sign, state = words.rpartition("=")
    if not sign:
        return listed_units(network, [words], "--about")[0]
    (name,) = listed_units(network, [name], "--about")
    if len(network.states[name]) == 2:
        raise ParameterError(f"--about {words}: {name!r} has two states; name it alone")
    return name, state


def _finite(numbers: dict[str, float]) -> dict[str, float | None]:
    return {key: value if math.isfinite(value) else None for key, value in numbers.items()}
