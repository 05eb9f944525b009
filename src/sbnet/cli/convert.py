"""Write a network in another format, by the ending of the name."""

from __future__ import annotations

import argparse
import json

from sbnet.cli import commands
from sbnet.cli.models import read_model, write_model

EXAMPLES = """
  sbnet convert asia.bif -o asia.toml      to read it and change it by hand
  sbnet convert clinic.toml -o clinic.sbn  small, fast, checked by a checksum
  sbnet convert - --from .bif -o - --to .toml < asia.bif"""


def options(one: argparse.ArgumentParser) -> None:
    commands.model(one)
    commands.output(one, "the new file", required=True)
    one.add_argument("--to", metavar="ENDING", help="the format of standard output, such as .sbn (default: .toml)")


def run(chosen: argparse.Namespace) -> int:
    network = read_model(chosen)
    write_model(network, chosen.out, chosen.to)
    if chosen.json and chosen.out != "-":
        print(json.dumps({"out": chosen.out, "units": network.n_units, "edges": network.n_edges}))
    return 0
