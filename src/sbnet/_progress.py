"""Blocks of rows, spread over threads, with a progress bar for long work."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

from sbnet.errors import ParameterError

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
    begin, finished, bar = time.monotonic(), 0, None
    with ThreadPoolExecutor(max(n_threads, 1)) as pool:
        waiting: set[Future[int]] = {pool.submit(work, block) for block in blocks}
        try:
            while waiting:
                done, waiting = wait(waiting, timeout=_PATIENCE / 5 if show else None, return_when=FIRST_COMPLETED)
                finished += sum(future.result() for future in done)
                if show and bar is None and waiting and time.monotonic() - begin > _PATIENCE:
                    bar = _Bar(what, n)
                if bar is not None:
                    bar.update(finished)
        finally:
            for future in waiting:  # after an error or Ctrl-C: do not start what has not begun
                future.cancel()
            if bar is not None:
                bar.close()


class _Bar:
    """A line with a bar, the rows done and the time left, on standard error; it is gone when the work is done."""

    def __init__(self, what: str, n: int) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("rows"))
        self._progress = Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True), transient=True)
        self._task = self._progress.add_task(what, total=n)
        self._progress.start()

    def update(self, finished: int) -> None:
        self._progress.update(self._task, completed=finished)

    def close(self) -> None:
        self._progress.stop()


def thread_count(threads: int | None) -> int:
    """How many threads to use; by default, as many as this process may run at once."""
    if threads is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if isinstance(threads, bool) or not isinstance(threads, int) or threads < 1:
        raise ParameterError(f"threads is {threads!r}; it must be a whole number, one or more")
    return threads
