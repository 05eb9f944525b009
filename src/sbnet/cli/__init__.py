"""The command ``sbnet``: parses, calls, prints. A file for each command; exit codes are in ``sbnet --help``."""

from __future__ import annotations

import io
import os
import sys
import warnings
from collections.abc import Sequence
from typing import Any

from sbnet.cli import commands
from sbnet.errors import (
    CodingWarning,
    ConvergenceWarning,
    ConversionWarning,
    ImpossibleWarning,
    NearNameWarning,
    SBNetError,
    in_line,
)

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; the exit status is 0, or 2 for bad input, which is explained in one line."""
    chosen = commands.parse(arguments)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal without "≥" gets a question mark, not a traceback
            stream.reconfigure(errors="replace")
    try:
        with warnings.catch_warnings():
            for told in (CodingWarning, ConvergenceWarning, ConversionWarning, ImpossibleWarning, NearNameWarning):
                warnings.simplefilter("always", told)
            warnings.showwarning = _remark(quiet=chosen.quiet)
            status: int = chosen.run(chosen)
            sys.stdout.flush()
    except KeyboardInterrupt:
        print("sbnet: stopped; no file was changed", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader, such as `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (OSError, SBNetError) as error:
        what = str(error)
        if isinstance(error, OSError) and error.filename:
            what = f"{error.filename}: {error.strerror}"
        print(f"sbnet: error: {in_line(' '.join(what.split()))}", file=sys.stderr)
        return 2
    return status


def _remark(*, quiet: bool) -> Any:
    """Warnings as a line on standard error, each once."""
    told: set[str] = set()

    def show(message: Warning | str, *rest: object) -> None:
        text = in_line(" ".join(str(message).split()))
        if not quiet and text not in told:
            told.add(text)
            print(f"sbnet: {text}", file=sys.stderr)

    return show
