"""Say what to ask next: findings ranked by the information that their answers are expected to give."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from sbnet.cli import commands
from sbnet.cli.evidence import findings_apart, listed_units, pattern
from sbnet.cli.models import read_model
from sbnet.decisions import Questions, next_question
from sbnet.errors import ParameterError
from sbnet.model.network import Network
from sbnet.questions import printing
from sbnet.questions.printing import Reading

EXAMPLES = """
  sbnet next clinic.toml fever=yes
  sbnet next clinic.toml fever=yes --about flu --among cough sneezing
  sbnet next clinic.toml fever=yes --cost x-ray=50 --cost "blood test=8"   information for the money
  sbnet next clinic.toml fever=yes --cost costs.csv                        lines such as: x-ray,50
  sbnet next clinic.toml fever=yes --json | jq -r '.questions[0].name'"""
_SHOWN = 10


def options(one: argparse.ArgumentParser) -> None:
    commands.model(one)
    commands.evidence(one)
    one.add_argument("--about", nargs="+", metavar="VARIABLE", help="variables to learn about (default: causes)")
    one.add_argument("--among", nargs="+", metavar="VARIABLE", help="variables to ask for (default: findings)")
    one.add_argument("--top", type=commands.whole, metavar="N", help=f"questions to list (a terminal has {_SHOWN})")
    cost = "what it costs to ask, above zero: VARIABLE=NUMBER, or a file of lines VARIABLE,NUMBER (others cost 1)"
    one.add_argument("--cost", action="append", default=[], metavar="COST", help=cost)
    one.add_argument("--tries", type=commands.whole, default=50, help="candidates to work out (default: %(default)s)")


def run(chosen: argparse.Namespace) -> int:
    network = read_model(chosen)
    about, among = (findings_apart(network, words, chosen.evidence) for words in (chosen.about, chosen.among))
    about = None if about is None else listed_units(network, about, "--about")
    among = None if among is None else listed_units(network, among, "--among")
    found = pattern(network, chosen.evidence)
    cost, tries = _costs(network, chosen.cost), max(chosen.tries, chosen.top or 1)
    questions = next_question(network, found, about=about, among=among, cost=cost, tries=tries)
    if chosen.json:
        listed = []
        for one, price in zip(questions[: chosen.top], questions.cost.tolist(), strict=False):
            words = network.notes[one.name].about
            more = {"cost": price} if questions.priced else {}
            listed.append(one._asdict() | more | ({"about": words} if words else {}))
        whole = {"about": questions.about, "entropy": questions.entropy, "exact": questions.exact}
        print(json.dumps({**whole, "considered": questions.considered, "evidence": found, "questions": listed}))
    else:
        most = chosen.top or (_SHOWN if sys.stdout.isatty() else len(questions))
        print(_reading(network, questions, most))
    return 0


def _costs(network: Network, said: Sequence[str]) -> dict[str, float]:
    """What units cost, from words such as x-ray=50 and from files with a line for each."""
    costs: dict[str, float] = {}
    for item in said:
        lines, sign = [item], "="
        if "=" not in item or Path(item).is_file():
            try:
                lines, sign = Path(item).read_text(encoding="utf-8-sig").splitlines(), ","
            except (OSError, UnicodeDecodeError) as error:
                raise ParameterError(
                    f"--cost {item}: this is neither VARIABLE=NUMBER nor a file of text ({error})"
                ) from None
        for line in filter(str.strip, lines):
            name, _, number = line.rpartition(sign)
            try:
                value = float(number)
            except ValueError:
                wanted = f"say a variable and a number, such as {network.names[-1]}{sign}50"
                raise ParameterError(f"--cost: {line.strip()!r} has no number at its end; {wanted}") from None
            costs |= dict.fromkeys(listed_units(network, [name.strip().strip('"')], "--cost"), value)
    return costs


def _reading(network: Network, questions: Questions, most: int) -> Reading:
    whole = questions._reading()
    about = [network.notes[name].about for name in questions.names[:most]]
    rows = [(*row, *[words] * any(about)) for row, words in zip(questions.rows(most), about, strict=True)]
    titles = ("", "ask", "information", "kind", "P(yes)", *["cost"] * questions.priced, *["about"] * any(about))
    table = [titles, *rows, *printing.more(len(questions) - most)] if rows else []
    return Reading(whole.headline, table, whole.remarks, cuts=(1, len(titles) - 1) if any(about) else (1,))
