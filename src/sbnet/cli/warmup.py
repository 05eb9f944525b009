"""Compile all kernels now, in parallel, so that no later process has to."""

from __future__ import annotations

import argparse
import json
import os
import time

from sbnet.cli import commands

EXAMPLES = """
  sbnet warmup
  sbnet warmup --jobs 2 --quiet"""


def options(one: argparse.ArgumentParser) -> None:
    """How many at once."""
    one.add_argument("--jobs", type=commands.whole, default=os.cpu_count() or 1, help="processes (default: all cores)")


def run(chosen: argparse.Namespace) -> int:
    """Compile."""
    from sbnet.cli.compile_ahead import compile_all

    begin = time.monotonic()
    compile_all(processes=chosen.jobs, say=(lambda line: None) if chosen.quiet or chosen.json else print)
    if chosen.json:
        print(json.dumps({"seconds": time.monotonic() - begin}))
    return 0
