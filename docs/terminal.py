"""The terminals on a page of the documentation: every command is run, in order, and must print what the page says."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

from sbnet.cli import main

_BLOCK = re.compile(r"^```console\n(.*?)^```", flags=re.DOTALL | re.MULTILINE)
_STEP = re.compile(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", flags=re.MULTILINE)


def steps(text: str) -> list[tuple[str, str]]:
    """Each command of the page, and what stands below it."""
    return [step for block in _BLOCK.findall(text) for step in _STEP.findall(block)]


def differences(text: str) -> Iterator[tuple[str, str, str]]:
    """Commands that print something else than the page says, run in the present folder, with both texts.

    ``cat`` shows a file that the commands below it use: it is written as it stands there, unless a command made it.
    """
    for command, printed in steps(text):
        name, *arguments = shlex.split(command)
        if name == "cat":
            path = Path(arguments[0])
            if not path.exists():
                path.write_text(printed, encoding="utf-8")
            found = path.read_text(encoding="utf-8")
        else:
            found = _printed(arguments)
        if _rounded(found) != _rounded(printed):
            yield command, printed, found


def _rounded(text: str) -> str:
    """The text with long numbers cut and tiny ones left out: their last digits depend on the processor."""
    return re.sub(r"-?\d+\.\d{7,}|-?\d\.\d+e-\d+", lambda number: f"{float(number[0]):.5f}", text)


def _printed(arguments: list[str]) -> str:
    """What a command prints, remarks first."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), contextlib.suppress(SystemExit):
        main(arguments)
    return err.getvalue() + out.getvalue()
