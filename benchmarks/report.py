"""Tables, and the stopwatch that fills them."""

from __future__ import annotations

import contextlib
import functools
import json
import multiprocessing
import re
import sys
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from rich.box import ASCII_DOUBLE_HEAD, ROUNDED
from rich.console import Console
from rich.padding import Padding
from rich.table import Table as RichTable

NONE = "–"


class Table(NamedTuple):
    """A title that says what is measured, the columns, rows of text, and remarks below."""

    title: str
    columns: tuple[str, ...]
    rows: list[tuple[str, ...]]
    notes: tuple[str, ...] = ()

    def markdown(self) -> str:
        """The table as GitHub reads it; all columns but the first are aligned to the right."""
        rule = ["---", *["---:"] * (len(self.columns) - 1)]
        lines = [f"**{self.title}**", "", *(f"| {' | '.join(row)} |" for row in (self.columns, rule, *self.rows))]
        return "\n".join([*lines, "", *(f"{note}\n" for note in self.notes)])

    def print(self) -> None:
        """The table with lines and bold type in a terminal, as plain text elsewhere."""
        plain = not sys.stdout.isatty()
        console = Console(width=120 if plain else None, highlight=False)
        console.print(self.title, style="bold")
        table = RichTable(box=ASCII_DOUBLE_HEAD if plain else ROUNDED, header_style="bold")
        for k, column in enumerate(self.columns):
            table.add_column(column, justify="right" if k else "left", no_wrap=plain)
        for row in self.rows:
            table.add_row(*row)
        (Console(width=500) if plain else console).print(table)  # in a file no column is cut short
        for note in self.notes:
            console.print(Padding(note, (0, 0, 0, 2)), style="" if plain else "dim")
        console.print()


class Run(NamedTuple):
    """The best time of several by the clock, the least processor time, both in seconds, and what the last call gave."""

    seconds: float
    processor: float
    result: Any


@functools.cache
def _before() -> dict[str, Any]:
    return json.loads(Path(__file__).with_name("before.json").read_text())


def before(table: str, row: str | None = None) -> Any:
    """What before.json says of a row of a table, or of the measurement as a whole; None if nothing."""
    kept = _before().get(table)
    return kept if row is None else (kept or {}).get(row)


def before_note(table: str) -> str:
    """Of which commit the column "before" is, and how busy the machine was: times are fair beside equally busy ones."""
    return f"before: measured {before('measured', table)}."


def say(what: str) -> None:
    """A line about what is being measured."""
    print(f"  {what}", file=sys.stderr, flush=True)


_spent: list[tuple[float, float]] = []  # seconds that passed, and those in which this process was running


def busy_note() -> tuple[str, ...]:
    """A remark if, since it was last asked for, other programs took much of the time that was measured."""
    passed, used = sum(p for p, _ in _spent), sum(u for _, u in _spent)
    _spent.clear()
    if used >= 0.9 * passed:
        return ()
    share = f"{1.0 - used / passed:.0%}"
    return (f"Other programs took {share} of the time measured: run this again when the machine is idle.",)


def race(contestants: Mapping[str, Callable[[], Any]], repeats: int = 3) -> dict[str, Run]:
    """Time all contestants in turn, `repeats` times over, so that noise hits all alike; the best time counts.

    Of one thread take the processor time: waiting does not count. Cores and caches shared with other programs still do,
    and not alike for all: the same kernels beside the same C++ gave 0.77 on a quiet machine and 1.05 on a busy one.
    """
    runs: dict[str, Run] = {}
    for turn in range(repeats):
        for name, work in contestants.items():
            start, before = time.perf_counter(), time.process_time()
            result = work()
            spent, used = time.perf_counter() - start, time.process_time() - before
            best = runs.get(name, Run(spent, used, result))
            runs[name] = Run(min(best.seconds, spent), min(best.processor, used), result)
            _spent.append((spent, min(used, spent)))
            say(f"{name}: {spent:.3g} s, {used:.3g} s of a processor (turn {turn + 1} of {repeats})")
    return runs


def peak_memory(work: Callable[[], Any]) -> tuple[float | None, Any]:
    """The most memory that a call had in use beyond what was in use before, in bytes, and its result.

    The kernel counts whole pages, those of compiled code too; only Linux tells. None elsewhere.
    """
    before = None
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")  # start the count of the peak anew
        before = _status("VmRSS")
    result = work()
    return None if before is None else _status("VmHWM") - before, result


def in_new_process(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function where no memory is left over from earlier work, which would hide what it needs."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(function, *arguments).result()


def _status(key: str) -> float:
    found = re.search(rf"{key}:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found, f"no {key} in /proc/self/status"
    return 1024.0 * int(found[1])


def seconds(value: float) -> str:
    """A time with three digits and a fitting unit."""
    for factor, unit in ((1.0, "s"), (1e3, "ms"), (1e6, "µs")):
        if value * factor >= 1.0:
            return f"{value * factor:.3g} {unit}" if value * factor < 1000 else f"{value:,.0f} s"
    return f"{1e9 * value:.3g} ns"


def size(value: float) -> str:
    """A number of bytes with a fitting unit."""
    units = ("bytes", "kB", "MB", "GB", "TB", "PB", "EB")
    k = 0
    while value >= 1000 and k < len(units) - 1:
        value, k = value / 1000, k + 1
    return f"{value:,.3g} {units[k]}" if value < 1000 else f"{value:.1e} {units[k]}"
