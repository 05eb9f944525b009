"""All commands in one parser, and what they share: options, examples, exit codes."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Collection, Sequence
from importlib import import_module
from typing import Any, NoReturn

from sbnet._version import __version__
from sbnet.errors import in_line, near_name

COMMANDS = {
    "show": "describe a network",
    "infer": "the probabilities of causes, given findings",
    "next": "say what to ask next",
    "sensitivity": "say how an answer moves with each number of a network",
    "certify": "prove an interval for ln P of what was observed",
    "explore": "open a page to click",
    "fit": "learn a network from a table with missing values",
    "score": "score the rows of a table",
    "impute": "impute the missing values of a table",
    "sample": "draw rows from a network",
    "convert": "write a network in another format",
    "reproduce": "make the paper's figures and tables anew",
    "warmup": "compile all kernels now",
    "completion": "print a script that completes commands in a shell",
}
"""Each command and what it does. The module of that name is imported when it is needed; its docstring and `EXAMPLES`
are the help, `options` adds arguments to a parser, and `run` does the work and returns the exit code."""
_EXIT = """exit codes:
  0    done; also if the reader of a pipe, such as head, has seen enough
  2    bad input, or a wrong argument: one line on standard error says what
  130  stopped with Ctrl-C; no file was changed"""


class Parser(argparse.ArgumentParser):
    """One line for a wrong argument, and the way out."""

    def error(self, message: str) -> NoReturn:
        end = "" if message.endswith("?") else "."
        self.exit(2, f"{self.prog}: error: {in_line(message)}{end} See {self.prog} --help\n")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """The nearest of the words that there are, where that is no choice."""
        if action.choices is not None and value not in action.choices:
            near = near_name(value, map(str, action.choices), 0.6)
            if near is not None:
                kind = "command" if action.dest == "command" else f"choice for {'/'.join(action.option_strings)}"
                raise argparse.ArgumentError(None, f"there is no {kind} {value!r}; did you mean {near!r}?")
        super()._check_value(action, value)


def parser(needed: Collection[str] = tuple(COMMANDS)) -> tuple[Parser, dict[str, Parser]]:
    """The parser of the whole command, and that of each command; those that are not needed have no options."""
    whole = Parser(
        prog="sbnet",
        description="Belief networks: causes, findings, tables with missing values, rigorous bounds.",
        epilog=f"{_EXIT}\n\nsbnet COMMAND --help has examples of each.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    whole.add_argument("--version", action="version", version=f"sbnet {__version__}")
    added = whole.add_subparsers(title="commands", required=True, metavar="COMMAND", dest="command")
    each = {name: added.add_parser(name, help=summary) for name, summary in COMMANDS.items()}
    for name in needed:
        one, module = each[name], import_module(f"sbnet.cli.{name}")
        one.description, one.formatter_class = module.__doc__, argparse.RawDescriptionHelpFormatter
        one.epilog = f"examples:{module.EXAMPLES.rstrip()}\n\n{_EXIT}"
        module.options(one)
        one.add_argument("--json", action="store_true", help="print JSON")
        one.add_argument("--quiet", action="store_true", help="say nothing on standard error unless it is an error")
        one.set_defaults(run=module.run)
    return whole, each


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The command that was chosen; findings may stand before its options or after them."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    named = next((word for word in words if not word.startswith("-")), "")
    every, each = parser([named] if named in COMMANDS else [])
    chosen, rest = every.parse_known_args(words)
    if rest and (any(one.startswith("-") for one in rest) or not hasattr(chosen, "evidence")):
        known = [flag for action in each[chosen.command]._actions for flag in action.option_strings]
        wrong = next((word.partition("=")[0] for word in rest if word.startswith("-")), "")
        near = near_name(wrong, known, 0.6)
        meant = "" if near is None else f"; did you mean {near}?"
        every.error(f"unrecognized arguments: {' '.join(rest)}{meant}")
    if rest:
        chosen.evidence += rest
    return chosen


def whole(text: str) -> int:
    """A whole number, one or more."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number, one or more")
    return int(text)


def _separator(text: str) -> str:
    """One character; a tab may be written as \\t."""
    sign = "\t" if text == "\\t" else text
    if len(sign) != 1 or sign in '\r\n"':
        raise argparse.ArgumentTypeError(f"{text!r} is not one character between cells, such as ; or \\t")
    return sign


def model(one: argparse.ArgumentParser) -> None:
    """The argument that every command about a network begins with."""
    one.add_argument("model", metavar="MODEL", help="a network in any format that sbnet reads; - is standard input")
    ending = "how to read standard input, such as .toml or .bif"
    one.add_argument("--from", dest="ending", metavar="ENDING", help=ending)


def evidence(one: argparse.ArgumentParser) -> None:
    one.add_argument(
        "evidence",
        nargs="*",
        metavar="VARIABLE=STATE",
        help="yes, no, true, false, 1, 0, unknown, or what the model calls its states; or COLUMN=VALUE, as in age=70; "
        "or, of a report that may be wrong, its likelihood in each state, as in fever=none:0.1,mild:0.5,high:1",
    )


def table(one: argparse.ArgumentParser, *, required: bool = True) -> None:
    what = "CSV with any separator, .gz, .bz2, .xz, .zst; Parquet; NPZ; - is standard input"
    if required:
        one.add_argument("table", metavar="TABLE", help=what)
    else:
        one.add_argument("--table", metavar="TABLE", help=f"a row of answers for each row: {what}")
    one.add_argument("--missing", nargs="+", default=[], metavar="VALUE", help="cells that are missing, such as -99 9")
    one.add_argument("--separator", type=_separator, metavar="SIGN", help="between cells, if it is not found by itself")
    one.add_argument("--encoding", metavar="NAME", help="of text, such as latin-1 or cp1252 (default: UTF-8 or UTF-16)")
    one.add_argument("--id", nargs="+", default=[], metavar="COLUMN", help="columns that name rows, kept in the output")
    one.add_argument("--ignore", nargs="+", default=[], metavar="COLUMN", help="columns to leave alone")


def output(one: argparse.ArgumentParser, what: str, *, required: bool = False) -> None:
    one.add_argument(
        "-o", "--out", metavar="OUT", required=required, default="-",
        help=f"{what}, written whole or not at all; - is standard output",
    )  # fmt: skip
