"""Results as one page that needs nothing else, as a file of numbers, and as tables in a terminal."""

from __future__ import annotations

import html
import json
import os
import platform
import re
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from string import Template
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table as RichTable

from sbnet._version import __version__
from sbnet.files.atomic import write_atomically
from sbnet.paper import published
from sbnet.paper.drawing import render
from sbnet.paper.record import Experiment, Settings, Table

_PACKAGES = ("numpy", "scipy", "numba", "scikit-learn", "matplotlib")
_MARKS = {"yes": "✓", "no": "✗"}


def write(folder: Path, done: Sequence[Experiment], settings: Settings, *, started: str, seconds: float) -> None:
    """Write ``index.html`` and ``results.json``, each whole or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    facts = _facts(settings, started, seconds)
    results = {**facts, "paper": published.CITATION, "experiments": [_as_data(one) for one in done]}
    text = json.dumps(results, indent=1, ensure_ascii=False, default=_plain)
    write_atomically(folder / "results.json", text.encode())
    write_atomically(folder / "index.html", page(done, facts).encode())


def show(console: Console, one: Experiment) -> None:
    agree, judged = one.verdict
    verdict = f", {agree} of {judged} agree with the paper" if judged else ""
    console.print(f"[bold]{one.title}[/] [dim]({one.seconds:.1f} s{verdict})[/]", highlight=False)
    for table in one.tables:
        grid = RichTable(title=table.title, title_justify="left", title_style="italic", box=None, pad_edge=False)
        for k, name in enumerate(table.header):
            grid.add_column(name, justify="left" if k == 0 else "right")
        for k, cells in enumerate(table.cells):
            colours = {"yes": "[green]yes[/]", "no": "[red]no[/]"}
            grid.add_row(*(colours.get(cell, cell) for cell in cells), style="bold" if k in table.best else None)
        console.print(grid)
    console.print()


def page(done: Sequence[Experiment], facts: dict[str, Any]) -> str:
    counts = [one.verdict for one in done]
    agree, judged = (sum(count[k] for count in counts) for k in (0, 1))
    summary = f"{agree} of {judged} published numbers agree with ours within the spread." if judged else ""
    if facts["quick"]:
        summary = "A quick run of tiny versions: its numbers mean nothing. " + summary
    contents = ""
    for one, (agree, judged) in zip(done, counts, strict=True):
        mark = f'<span class="count">{agree}/{judged}</span>' if judged else ""
        contents += f'<li><a href="#{one.name}">{_prose(one.title)}</a> {mark}</li>'
    return Template((Path(__file__).parent / "page.html").read_text(encoding="utf-8")).substitute(
        summary=html.escape(summary),
        citation=html.escape(published.CITATION),
        contents=contents,
        sections="".join(_section(one) for one in done),
        facts=_prose(_sentence(facts)),
    )


def _section(one: Experiment) -> str:
    tables = "".join(_table(table) for table in one.tables)
    pictures = ""
    for k, picture in enumerate(one.pictures):
        kind, drawn = ' class="wide"' * (picture.size[0] > 6), render(picture, f"{one.name}-{k}")
        pictures += f"<figure{kind}>{drawn}<figcaption>{_prose(picture.title)}</figcaption></figure>"
    here = "".join(f"<p>{'<b>Here.</b> ' * (k == 0)}{_prose(p)}</p>" for k, p in enumerate(one.found.split("\n\n")))
    return (
        f'<section id="{one.name}"><h2>{_prose(one.title)}</h2>'
        f'<p class="paper"><b>The paper.</b> {_prose(one.paper)}</p>'
        f'{here}<div class="pictures">{pictures}</div>{tables}'
        f'<p class="seconds">{one.seconds:.1f} s</p></section>'
    )


def _table(table: Table) -> str:
    head = "".join(f'<th scope="col">{_prose(name)}</th>' for name in table.header)
    body = "".join(
        f"<tr{' class=best' * (k in table.best)}>{_cells(cells)}</tr>" for k, cells in enumerate(table.cells)
    )
    note = f'<p class="note">{_prose(table.note)}</p>' if table.note else ""
    return (
        f'<div class="table"><table><caption>{html.escape(table.title)}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>{note}"
    )


def _cells(cells: Sequence[str]) -> str:
    first, *others = cells
    texts = [f'<th scope="row">{_prose(first)}</th>']
    for cell in others:
        mark = _MARKS.get(cell)
        texts.append(f'<td class="{cell}">{mark} {cell}</td>' if mark else f"<td>{html.escape(cell)}</td>")
    return "".join(texts)


def _facts(settings: Settings, started: str, seconds: float) -> dict[str, Any]:
    return {
        "started": started,
        "seconds": round(seconds, 1),
        "seeds": list(range(settings.seeds)),
        "quick": settings.quick,
        "processes": settings.jobs,
        "cores": os.cpu_count(),
        "machine": platform.machine(),
        "system": platform.system(),
        "versions": {
            "sbnet": __version__,
            "python": platform.python_version(),
            **{name: version(name) for name in _PACKAGES},
        },
    }


def _prose(text: str) -> str:
    """Escaped, with what stands between backquotes as code, and exponents raised."""
    text = re.sub("`([^`]+)`", r"<code>\1</code>", html.escape(text)).replace(" %", "\N{NO-BREAK SPACE}%")
    return re.sub("[⁻ᶻ]+", lambda found: f"<sup>{found[0].translate(_RAISED)}</sup>", text)


_RAISED = str.maketrans("⁻ᶻ", "−z")


def _sentence(facts: dict[str, Any]) -> str:
    versions = ", ".join(f"{name} {number}" for name, number in facts["versions"].items())
    seeds = f"{len(facts['seeds'])} seed{'s' * (len(facts['seeds']) != 1)}"
    return (
        f"Made by `sbnet reproduce` on {facts['started']} in {facts['seconds']:.0f} s, with {seeds} and "
        f"{facts['processes']} processes on {facts['cores']} cores ({facts['system']}, {facts['machine']}); "
        f"{versions}. Every number is in results.json, beside this page."
    )


def _as_data(one: Experiment) -> dict[str, Any]:
    tables = []
    for table in one.tables:
        rows: list[Any] = [row._asdict() | {"agree": row.agree} for row in table.rows]
        rows = rows or [dict(zip(table.header, cells, strict=True)) for cells in table.cells]
        tables.append({"title": table.title, "note": table.note, "rows": rows})
    return {
        "name": one.name,
        "title": one.title,
        "seconds": round(one.seconds, 2),
        "paper": one.paper,
        "found": one.found,
        "tables": tables,
        "numbers": dict(one.numbers),
    }


def _plain(value: Any) -> Any:
    """NumPy's numbers and arrays as Python's own."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    raise TypeError(f"results hold a {type(value).__name__}, which JSON cannot")
