"""The examples on hand-written pages: every one is run, in a folder of its own, and must print what the page shows."""

from __future__ import annotations

import doctest
import tempfile
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import chdir, redirect_stdout
from io import StringIO
from multiprocessing import get_context
from pathlib import Path

HERE = Path(__file__).parent


def pages() -> list[Path]:
    """All pages but notes."""
    return sorted(page for page in (HERE / "index.md", *HERE.glob("*/*.md")) if page.parent.name != "notes")


def wrong(page: Path) -> str:
    """What the examples of a page print that the page does not show; nothing if all is well."""
    text = "\n".join("" if line.startswith("```") else line for line in page.read_text(encoding="utf-8").splitlines())
    test, said = doctest.DocTestParser().get_doctest(text, {}, page.name, str(page), 0), StringIO()
    with tempfile.TemporaryDirectory() as folder, chdir(folder), redirect_stdout(said):
        failed = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(test).failed
    return said.getvalue() if failed else ""


def all_wrong(workers: int = 2) -> Iterator[str]:
    """What is wrong on each page where anything is; pages are run side by side."""
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        yield from filter(None, pool.map(wrong, pages()))
