"""Say what to ask next: findings ranked by the information that their answers are expected to give."""

from __future__ import annotations

import argparse
import json
import sys

from sbnet.cli import commands
from sbnet.cli.evidence import findings_apart, listed_units, pattern
from sbnet.cli.models import read_model
from sbnet.decisions import Questions, next_question
from sbnet.model.network import Network
from sbnet.questions import printing
from sbnet.questions.printing import Reading

EXAMPLES = """
  sbnet next clinic.toml fever=yes
  sbnet next clinic.toml fever=yes --about flu --among cough sneezing
  sbnet next clinic.toml fever=yes --json | jq -r '.questions[0].name'"""
_SHOWN = 10


def options(one: argparse.ArgumentParser) -> None:
    commands.model(one)
    commands.evidence(one)
    one.add_argument("--about", nargs="+", metavar="UNIT", help="units to learn about (default: causes)")
    one.add_argument("--among", nargs="+", metavar="UNIT", help="units that can be asked for (default: findings)")
    one.add_argument("--top", type=commands.whole, metavar="N", help=f"questions to list (a terminal has {_SHOWN})")
    one.add_argument("--tries", type=commands.whole, default=50, help="candidates to work out (default: %(default)s)")


def run(chosen: argparse.Namespace) -> int:
    network = read_model(chosen)
    about, among = (findings_apart(network, words, chosen.evidence) for words in (chosen.about, chosen.among))
    about = None if about is None else listed_units(network, about, "--about")
    among = None if among is None else listed_units(network, among, "--among")
    found = pattern(network, chosen.evidence)
    questions = next_question(network, found, about=about, among=among, tries=max(chosen.tries, chosen.top or 1))
    if chosen.json:
        listed = []
        for one in questions[: chosen.top]:
            words = network.notes[one.name].about
            listed.append(one._asdict() | ({"about": words} if words else {}))
        whole = {"about": questions.about, "entropy": questions.entropy, "exact": questions.exact}
        print(json.dumps({**whole, "considered": questions.considered, "evidence": found, "questions": listed}))
    else:
        most = chosen.top or (_SHOWN if sys.stdout.isatty() else len(questions))
        print(_reading(network, questions, most))
    return 0


def _reading(network: Network, questions: Questions, most: int) -> Reading:
    whole = questions._reading()
    rows = [
        (*row[:4], network.notes[one.name].about)
        for one, row in zip(questions[:most], questions.rows(most), strict=True)
    ]
    titles = ("", "ask", "information", "P(yes)", "about")
    table = [titles, *rows, *printing.more(len(questions) - most)] if rows else []
    return Reading(whole.headline, table, whole.remarks, cuts=(1, 4))
