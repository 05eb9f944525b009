"""Blocks of rows, spread over threads, with a progress bar for long work."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Any

from sbnet import checks

_PATIENCE = 1.0
"""Seconds of work before a progress bar appears."""


def run_blocks(
    work: Callable[[slice], int], n: int, size: int, threads: int | None, progress: bool | None, what: str
) -> None:
    """Call `work` for each block of rows; it says how many rows it has done."""
    blocks = [slice(start, min(start + size, n)) for start in range(0, n, size)]
    n_threads = min(thread_count(threads), len(blocks))
    show = sys.stderr.isatty() if progress is None else progress
    if n_threads <= 1 and not show:
        for block in blocks:
            work(block)
        return
    finished, bar = 0, Bar(what, n, show)
    with ThreadPoolExecutor(max(n_threads, 1)) as pool:
        waiting: set[Future[int]] = {pool.submit(work, block) for block in blocks}
        try:
            while waiting:
                done, waiting = wait(waiting, timeout=_PATIENCE / 5 if show else None, return_when=FIRST_COMPLETED)
                finished += sum(future.result() for future in done)
                bar.update(finished)
        finally:
            for future in waiting:  # after an error or Ctrl-C: do not start what has not begun
                future.cancel()
            bar.close()


class Bar:
    """A line with a bar, the rows done, rows per second and the time left, on standard error.

    It appears when the work has taken a second, if standard error is a terminal (or `show` says so), and is gone when
    the work is done.
    """

    def __init__(self, what: str, n: int, show: bool | None, begun: int = 0) -> None:
        self._what, self._n, self._begun, self._begin = what, n, begun, time.monotonic()
        self._show = sys.stderr.isatty() if show is None else show
        self._progress: Any = None
        self._drawn = 0.0

    def update(self, finished: int) -> None:
        """So many rows are done."""
        now = time.monotonic()
        if not self._show or now - self._begin < _PATIENCE or now - self._drawn < _PATIENCE / 10:
            return
        self._drawn = now
        if self._progress is None:
            self._open()
        rate = (finished - self._begun) / (now - self._begin)
        self._progress.update(self._task, completed=finished, description=self._what, rate=f"{rate:,.0f} rows/s")

    def describe(self, what: str) -> None:
        """Say what is going on, from the next update on."""
        self._what = what

    def close(self) -> None:
        """Take the line away."""
        if self._progress is not None:
            self._progress.stop()

    def _open(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]}"),
        )
        console = Console(stderr=True)  # in a file or a pipe, only the last state is written
        self._progress = Progress(*columns, TimeRemainingColumn(), console=console, transient=console.is_terminal)
        self._task = self._progress.add_task(self._what, total=self._n, completed=self._begun, rate="")
        self._progress.start()


def thread_count(threads: int | None) -> int:
    """How many threads to use; by default, as many as this process may run at once."""
    if threads is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return checks.whole("threads", threads, 1)
