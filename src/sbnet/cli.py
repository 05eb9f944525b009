"""The command ``sbnet``: parses, calls, prints."""

from __future__ import annotations

import argparse
import csv
import io
import os
import sys
import time
import warnings
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NoReturn

from sbnet import codings, delimited, tables
from sbnet._types import States
from sbnet._version import __version__
from sbnet.errors import CodingWarning, EvidenceError, ParameterError, SBNetError, TableError, unknown_unit
from sbnet.evidence import read_sheet
from sbnet.files import load
from sbnet.files.atomic import check_target, write_atomically
from sbnet.inference import PosteriorBatch, infer, infer_many
from sbnet.network import Network


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; the exit status is 0, or 2 for bad input, which is explained in one line."""
    chosen = _parser().parse_args(arguments)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal without "≥" gets a question mark, not a traceback
            stream.reconfigure(errors="replace")
    try:
        status: int = chosen.run(chosen)
    except KeyboardInterrupt:
        print("sbnet: stopped; nothing was written", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader, such as `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        what = f"{error.filename}: {error.strerror}" if error.filename else str(error)
        return _complain(what)
    except SBNetError as error:
        return _complain(str(error))
    return status


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """One line, and the way out."""
        self.exit(2, f"{self.prog}: error: {message}. See {self.prog} --help\n")


def _complain(message: str) -> int:
    print(f"sbnet: error: {' '.join(message.split())}", file=sys.stderr)
    return 2


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="sbnet", description="Sigmoid belief networks: posterior means and rigorous bounds.")
    parser.add_argument("--version", action="version", version=f"sbnet {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="command")

    reproduce = commands.add_parser("reproduce", help="make the paper's figures and tables anew, beside its numbers")
    reproduce.add_argument(
        "names", nargs="*", default=["all"], metavar="experiment", help="figure5, table1 …; all; list"
    )
    reproduce.add_argument("--seeds", type=_positive, default=5, help="repetitions (default: %(default)s)")
    reproduce.add_argument("--out", type=Path, default=Path("report"), help="folder (default: %(default)s)")
    reproduce.add_argument("--jobs", type=_positive, default=os.cpu_count() or 1, help="processes (default: all cores)")
    reproduce.add_argument("--quick", action="store_true", help="tiny versions, to see that everything runs")
    reproduce.set_defaults(run=_reproduce)

    about = commands.add_parser("info", help="describe a network file")
    about.add_argument("network", type=Path)
    about.set_defaults(run=_info)

    ask = commands.add_parser("infer", help="posterior means and a bound, for one pattern or a table")
    ask.add_argument("network", type=Path)
    given = ask.add_mutually_exclusive_group(required=True)
    given.add_argument(
        "--evidence",
        nargs="*",
        action="extend",
        metavar="UNIT=STATE",
        help="such as rain=1 wet=0; none at all is allowed",
    )
    given.add_argument(
        "--table",
        type=Path,
        help="names of units above, then 0, 1, words such as yes and no, or nothing in each cell; divided by commas, "
        "semicolons or tabs, in UTF-8 or UTF-16",
    )
    ask.add_argument(
        "--missing",
        nargs="+",
        default=[],
        metavar="VALUE",
        help="what stands for a missing cell in the table, such as -99 9",
    )
    ask.add_argument("--out", type=Path, help="write the csv there instead of to standard output")
    ask.set_defaults(run=_infer)

    warm = commands.add_parser("warmup", help="compile all kernels now, in parallel, so that no later process has to")
    warm.add_argument("--jobs", type=_positive, default=os.cpu_count() or 1, help="processes (default: all cores)")
    warm.add_argument("--quiet", action="store_true", help="print nothing")
    warm.set_defaults(run=_warmup)
    return parser


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number, one or more")
    return int(text)


def _reproduce(chosen: argparse.Namespace) -> int:
    from rich.console import Console

    from sbnet.experiments import EXPERIMENTS, Experiment, Settings, choose, report, run

    if chosen.names == ["list"]:
        for name, experiment in EXPERIMENTS.items():
            print(f"{name:<10} {(experiment.__doc__ or '').splitlines()[0]}")
        return 0
    names = choose(chosen.names)
    if chosen.out.exists() and not chosen.out.is_dir():
        raise ParameterError(f"{chosen.out} is a file; --out names a folder for index.html and results.json")
    chosen.out.mkdir(parents=True, exist_ok=True)  # complain now, not in five minutes
    for name in ("index.html", "results.json"):
        check_target(chosen.out / name)
    started, begin = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"), time.monotonic()
    done: list[Experiment] = []
    out, progress = Console(), Console(stderr=True)
    with progress.status("starting") as status:

        def say(message: str) -> None:
            status.update(f"{message} [dim]({len(done) + 1} of {len(names)}, {time.monotonic() - begin:.0f} s)[/]")
            if not progress.is_terminal and message in names:
                print(f"{message} ({len(done) + 1} of {len(names)})", file=sys.stderr, flush=True)

        settings = Settings(seeds=chosen.seeds, quick=chosen.quick, jobs=chosen.jobs, say=say)
        for one in run(names, settings):
            done.append(one)
            report.show(out, one)
        status.update("writing the report")
        report.write(chosen.out, done, settings, started=started, seconds=time.monotonic() - begin)
    agree = [sum(counts) for counts in zip(*(one.verdict for one in done), strict=True)]
    out.print(f"{agree[0]} of {agree[1]} published numbers agree within the spread. Report: {chosen.out}/index.html")
    return 0


def _info(chosen: argparse.Namespace) -> int:
    network = load(chosen.network)
    print(repr(network))
    shown = ", ".join(network.names[:20]) + (f", … {network.n_units - 20:,} more" if network.n_units > 20 else "")
    print(f"units: {shown}")
    if network.n_edges:
        print(f"weights: from {network.weight.min():.4g} to {network.weight.max():.4g}")
    print(f"biases: from {network.bias.min():.4g} to {network.bias.max():.4g}")
    return 0


def _infer(chosen: argparse.Namespace) -> int:
    if chosen.out is not None:  # complain now, not after the work
        _check_out(chosen.out)
    network = load(chosen.network)
    if chosen.table is not None:
        text = _as_csv(infer_many(network, _read_table(chosen.table, network, chosen.missing)))
    else:
        text = repr(infer(network, _pattern(chosen.evidence))) + "\n"
    if chosen.out is None:
        sys.stdout.write(text)
        sys.stdout.flush()
    else:
        write_atomically(chosen.out, text.encode())
    return 0


def _check_out(path: Path) -> None:
    instead = "leave --out away to write to standard output"
    if str(path) == "-":
        raise ParameterError(f"--out names a file, and - is none; {instead}")
    check_target(path, instead=instead)


def _warmup(chosen: argparse.Namespace) -> int:
    from sbnet.warmup import compile_all

    compile_all(processes=chosen.jobs, say=(lambda line: None) if chosen.quiet else print)
    return 0


def _pattern(items: Sequence[str]) -> dict[str, int]:
    """Evidence from words such as ``rain=1`` or ``rain=yes``."""
    pattern: dict[str, int] = {}
    for item in items:
        name, _, state = item.rpartition("=")
        bit = codings.bit(state)
        if not name or bit is None:
            raise EvidenceError(f"evidence {item!r} is not of the form unit=0 or unit=1")
        if name in pattern:
            raise EvidenceError(f"evidence names unit {name!r} twice")
        pattern[name] = bit
    return pattern


def _read_table(path: Path, network: Network, missing: Sequence[str]) -> States:
    """Rows by all units of the network; how values were read that do not say what they mean is told in a line."""
    gone = (*tables.missing_values(missing), -1.0)
    sheet = delimited.read(path, network.names, gone)
    for name in sheet.names or ():
        if name not in network.names:
            raise unknown_unit(name, network.names, f"the first line of {path}")
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", CodingWarning)
        try:
            states = read_sheet(network, sheet, gone)
        except TableError as error:
            raise EvidenceError(f"{path}: {error}") from None
    for warning in told:
        print(f"sbnet: {path}: {warning.message}", file=sys.stderr)
    return states


def _as_csv(batch: PosteriorBatch) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["bound", "converged", *batch.network.names])
    for bound, converged, means in zip(batch.bound, batch.converged, batch.means, strict=True):
        writer.writerow([f"{bound:.10g}", int(converged), *(f"{mean:.6g}" for mean in means)])
    return text.getvalue()
