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
    begin = time.monotonic()
    with ThreadPoolExecutor(max(n_threads, 1)) as pool:
        waiting: set[Future[int]] = {pool.submit(work, block) for block in blocks}
        try:
            while waiting and (not show or time.monotonic() - begin < _PATIENCE):
                done, waiting = wait(waiting, timeout=_PATIENCE / 10 if show else None, return_when=FIRST_COMPLETED)
                for future in done:
                    future.result()
            if waiting:
                _show(waiting, n, what)
        except BaseException:
            for future in waiting:
                future.cancel()
            raise


def _show(waiting: set[Future[int]], n: int, what: str) -> None:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("rows"))
    with Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=n, completed=0)
        left = sum(1 for _ in waiting)
        bar.update(task, completed=max(0, n - left * (n // max(left, 1))))
        while waiting:
            done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
            for future in done:
                bar.advance(task, future.result())
        bar.update(task, completed=n)


def thread_count(threads: int | None) -> int:
    """How many threads to use; by default, as many as this process may run at once."""
    if threads is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if isinstance(threads, bool) or not isinstance(threads, int) or threads < 1:
        raise ParameterError(f"threads is {threads!r}; it must be a whole number, one or more")
    return threads
