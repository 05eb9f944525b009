"""The lab as a notebook: prose and code of its page, with solutions or with room for them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

_PART = re.compile(r"^```(\S+)\n(.*?)^```\n|^<details><summary>Solution</summary>\n(.*?)^</details>\n", re.M | re.S)


def cells(text: str, *, solutions: bool) -> Iterator[tuple[str, str]]:
    """Cells of a page, each as its kind, "markdown" or "code", and its text."""
    end = 0
    for part in _PART.finditer(text):
        yield from _prose(text[end : part.start()])
        end = part.end()
        language, body, solution = part.groups()
        if solution is not None:
            yield from cells(solution, solutions=True) if solutions else [("code", "# your solution")]
        elif language == "pycon":
            lines = [line[4:] for line in body.splitlines() if line.startswith((">>>", "..."))]
            yield "code", "\n".join(lines)
    yield from _prose(text[end:])


def _prose(text: str) -> Iterator[tuple[str, str]]:
    text = re.sub(r"\{\w+\}`([^`<]+?)\s*(?:<[^>]*>)?`", r"`\1`", text)  # roles of Sphinx
    text = re.sub(r"\[([^\]]+)\]\((?!http)[^)]+\)", r"\1", text).strip()  # links to other pages
    if text:
        yield "markdown", text


def notebook(text: str, *, solutions: bool) -> str:
    """The page as a Jupyter notebook, version 4."""
    made = []
    for number, (kind, source) in enumerate(cells(text, solutions=solutions)):
        extra = {"execution_count": None, "outputs": []} if kind == "code" else {}
        made.append({"cell_type": kind, "id": f"c{number}", "metadata": {}, "source": source, **extra})
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    return json.dumps({"cells": made, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}, indent=1)


def write(page: Path) -> None:
    """Write the notebooks beside their page."""
    text = page.read_text(encoding="utf-8")
    for name, solutions in (("lab.ipynb", False), ("lab_solutions.ipynb", True)):
        page.with_name(name).write_text(notebook(text, solutions=solutions), encoding="utf-8")
