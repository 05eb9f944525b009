"""Make the paper's figures and tables anew, beside its numbers."""

from __future__ import annotations

import argparse
import os
import sys
import time
import warnings
from datetime import UTC, datetime
from pathlib import Path

from sbnet.cli import commands
from sbnet.errors import ParameterError
from sbnet.files.atomic import check_target

EXAMPLES = """
  sbnet reproduce                       everything, in some minutes
  sbnet reproduce list                  what there is
  sbnet reproduce figure2 table1 --seeds 3 --out here"""


def options(one: argparse.ArgumentParser) -> None:
    one.add_argument("names", nargs="*", default=["all"], metavar="EXPERIMENT", help="figure5, table1 …; all; list")
    one.add_argument("--seeds", type=commands.whole, default=5, help="repetitions (default: %(default)s)")
    one.add_argument("-o", "--out", type=Path, default=Path("report"), help="folder (default: %(default)s)")
    one.add_argument("--jobs", type=commands.whole, default=os.cpu_count() or 1, help="processes (default: all cores)")
    one.add_argument("--quick", action="store_true", help="tiny versions, to see that everything runs")


def run(chosen: argparse.Namespace) -> int:
    from rich.console import Console

    from sbnet.paper import EXPERIMENTS, Experiment, Settings, choose, report, run

    if chosen.names == ["list"]:
        for name, experiment in EXPERIMENTS.items():
            print(f"{name:<10} {(experiment.__doc__ or '').splitlines()[0]}")
        return 0
    names = choose(chosen.names)
    # joblib sends idle processes away and starts others, which nobody needs to know.
    warnings.filterwarnings("ignore", message="A worker stopped while some jobs")
    if chosen.out.exists() and not chosen.out.is_dir():
        raise ParameterError(f"{chosen.out} is a file; --out names a folder for index.html and results.json")
    chosen.out.mkdir(parents=True, exist_ok=True)  # complain now, not in five minutes
    for name in ("index.html", "results.json"):
        check_target(chosen.out / name)
    started, begin = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"), time.monotonic()
    done: list[Experiment] = []
    out, progress = Console(quiet=chosen.json), Console(stderr=True, quiet=chosen.quiet)
    with progress.status("starting") as status:

        def say(message: str) -> None:
            status.update(f"{message} [dim]({len(done) + 1} of {len(names)}, {time.monotonic() - begin:.0f} s)[/]")
            if not progress.is_terminal and not chosen.quiet and message in names:
                print(f"{message} ({len(done) + 1} of {len(names)})", file=sys.stderr, flush=True)

        settings = Settings(seeds=chosen.seeds, quick=chosen.quick, jobs=chosen.jobs, say=say)
        for one in run(names, settings):
            done.append(one)
            report.show(out, one)
        status.update("writing the report")
        report.write(chosen.out, done, settings, started=started, seconds=time.monotonic() - begin)
    agree = [sum(counts) for counts in zip(*(one.verdict for one in done), strict=True)]
    out.print(f"{agree[0]} of {agree[1]} published numbers agree within the spread. Report: {chosen.out}/index.html")
    if chosen.json:
        print((chosen.out / "results.json").read_text(encoding="utf-8"))
    return 0
