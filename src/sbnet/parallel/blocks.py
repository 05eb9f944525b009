"""Blocks of rows, given to threads or to any other executor; a bar for long work; Ctrl-C at any time.

A task is a pure function of one block that returns a record, so that it can run in a thread, a process or on another
machine, and so that nothing is lost if it is left to itself: whoever waits for it may be interrupted and go away.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sized
from concurrent.futures import BrokenExecutor, Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from itertools import islice
from operator import itemgetter
from queue import Empty, SimpleQueue
from typing import Any, ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray

from sbnet import checks
from sbnet.errors import ParameterError, WorkerError
from sbnet.parallel.parcels import Answer, Parcel, Shared

_PATIENCE = 1.0
"""Seconds of work before a progress bar appears."""
_TICK = 0.1
"""Seconds after which one who waits looks up: for Ctrl-C, and to move the bar."""
_QUICK, _LONG = 0.1, 0.4
"""Seconds: blocks grow while they take less than the first, and shrink if they take more than the second."""
_FIRST, _MORE = 8, 8
"""Rows of the first block that travels, and how many times as many rows such a block may have as one for a thread."""
_WORKING = 2_000_000
"""Numbers in a working array of one block of rows: 16 MB."""

B = TypeVar("B", bound=Sized)
R = TypeVar("R")
P = ParamSpec("P")


def map_blocks(
    task: Callable[[B], R], blocks: Iterable[B], *, executor: Executor | None = None, progress: Bar | None = None
) -> list[R]:
    """The results of `task` for each block, in order.

    Parameters
    ----------
    task
        A pure function, of module level (or a :func:`functools.partial` of one), so that it can be pickled.
    blocks
        Anything with lengths: the bar counts them as rows. :class:`RowBlocks` adapts them to what rows cost.
    executor
        Any :class:`concurrent.futures.Executor`; by default, as many threads as there are cores.
    progress
        Shows how far the work is; closed at the end.
    """
    numbered = each_block(task, blocks, executor=executor, progress=progress)
    return [result for _, _, result in sorted(numbered, key=itemgetter(0))]


def pool(executor: Any, threads: int | None = None) -> Executor:
    """Where blocks go: to the executor that a user gave, or to threads. A Dask client is taken for its executor."""
    if executor is None:
        return Threads(threads)
    if callable(getattr(executor, "get_executor", None)):
        executor = executor.get_executor()
    if isinstance(executor, type) or not callable(getattr(executor, "submit", None)):
        raise ParameterError(
            f"executor is {executor!r}; give a concurrent.futures.Executor, such as ProcessPoolExecutor(), or the "
            "get_executor() of a Dask client"
        )
    found: Executor = executor
    return found


def each_block(
    task: Callable[[B], R], blocks: Iterable[B], *, executor: Executor | None = None, progress: Bar | None = None
) -> Iterator[tuple[int, B, R]]:
    """Number, block and result, as soon as they are there: for results that are put away and need not be kept.

    An error, or Ctrl-C, comes through at once: blocks that have not begun are dropped, and those that have are not
    waited for.
    """
    pool = Threads() if executor is None else executor
    away, workers, parcel = not isinstance(pool, Threads | Inline | ThreadPoolExecutor), _workers(pool), Parcel(task)
    if away and isinstance(blocks, RowBlocks):
        blocks.travel()
    new = parcel.unknown_to(pool) if away else []
    done: SimpleQueue[Future[Answer[R]]] = SimpleQueue()
    running: dict[Future[Answer[R]], tuple[int, B]] = {}
    waiting, finished, room = enumerate(blocks), 0, min(2 * workers, sys.maxsize)

    def begin(number: int, block: B, sent: list[Shared[Any]]) -> None:
        with deaths_told():
            future = pool.submit(parcel.away(sent) if away else parcel.here, block)
        running[future] = number, block
        future.add_done_callback(done.put)

    try:
        while True:
            for number, block in islice(waiting, room - len(running)):
                begin(number, block, new if number < workers else [])
            if not running:
                return
            try:
                future = done.get(timeout=_TICK)
            except Empty:
                pass
            else:
                number, block = running.pop(future)
                with deaths_told():
                    answer = future.result()
                if answer is None:  # this worker lacks what others were sent
                    begin(number, block, parcel.large)
                    continue
                finished += len(block)
                if isinstance(blocks, RowBlocks):
                    blocks.took(len(block), answer[1])
                yield number, block, answer[0]
                del future, answer  # put away by now
            if progress is not None:
                progress.update(finished)
    finally:
        for future in running:
            future.cancel()
        if progress is not None:
            progress.close()


_BROKEN = "Nothing is wrong with the rest; make a new executor, perhaps with fewer workers, and call again"


@contextmanager
def deaths_told(way_out: str = _BROKEN) -> Iterator[None]:
    """A worker that died is told of in words; Dask says so when several have died of the same block."""
    try:
        yield
    except Exception as error:
        if not isinstance(error, BrokenExecutor) and type(error).__name__ != "KilledWorker":
            raise
        raise WorkerError(
            f"a worker process ended before it had answered ({type(error).__name__}): it was killed, or ran out of "
            f"memory. {way_out}"
        ) from error


def _workers(pool: Executor) -> int:
    """How many blocks an executor works on at once, as far as it says."""
    for name in ("_max_workers", "num_workers"):
        count = getattr(pool, name, None)
        if isinstance(count, int) and count > 0:
            return count
    client: Any = getattr(pool, "_client", None)  # Dask's
    cores = sum(client.nthreads().values()) if hasattr(client, "nthreads") else 0
    return cores or 2 * thread_count(None)


@dataclass(frozen=True)
class Block:
    """A stretch of rows of one table or of several side by side; None stays None."""

    rows: slice
    columns: tuple[Any, ...]

    def __len__(self) -> int:
        return int(self.rows.stop - self.rows.start)


@dataclass(frozen=True)
class Taken:
    """Some rows of a table in some order, taken a stretch at a time."""

    table: NDArray[Any]
    rows: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, stretch: slice) -> NDArray[Any]:
        return self.table[self.rows[stretch]]


class RowBlocks(Iterable[Block]):
    """Tables cut into blocks of at most `most` rows, few where rows are dear: the first has `least`, quick ones grow.

    Where a table is cut depends on the clock, so a task must answer each row alone.
    """

    def __init__(self, first: Any, *others: Any, most: int, least: int = 1) -> None:
        self._columns, self._size, self._most = (first, *others), least, max(most, least)

    def __iter__(self) -> Iterator[Block]:
        start, n = 0, len(self._columns[0])
        while start < n:
            rows = slice(start, min(start + self._size, n))
            yield Block(rows, tuple(None if column is None else column[rows] for column in self._columns))
            start = rows.stop

    def travel(self) -> None:
        """Blocks go to other processes, which costs about a millisecond each: they begin larger, and may grow more."""
        self._most *= _MORE
        self._size = min(_FIRST, self._most)

    def took(self, n_rows: int, seconds: float) -> None:
        """A block of so many rows took so long."""
        if seconds < _QUICK:
            self._size = min(max(self._size, 2 * n_rows), self._most)
        elif seconds > _LONG:
            self._size = max(min(self._size, n_rows // 2), 1)


def rows_at_once(width: int) -> int:
    """How many rows a working array of `width` columns may have, to stay small."""
    return max(1, _WORKING // max(width, 1))


def row_blocks(n_rows: int, width: int) -> Iterator[slice]:
    """Slices of so many rows."""
    step = rows_at_once(width)
    for start in range(0, n_rows, step):
        yield slice(start, min(start + step, n_rows))


def join(parts: Iterable[Any], empty: Any) -> Any:
    """Arrays of rows end to end; without any, `empty`."""
    arrays = list(parts)
    return np.concatenate(arrays) if arrays else empty


class Threads(Executor):
    """Threads that live as long as there is work. The process may end without them, so nobody has to wait for them."""

    def __init__(self, n: int | None = None) -> None:
        self._max_workers = thread_count(n)
        self._lock = threading.Lock()
        self._waiting: deque[Callable[[], None]] = deque()
        self._alive = 0

    def submit(self, fn: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Future[R]:
        future: Future[R] = Future()
        with self._lock:
            self._waiting.append(partial(_fulfil, future, partial(fn, *args, **kwargs)))
            more = self._alive < self._max_workers
            self._alive += more
        if more:
            threading.Thread(target=self._work, daemon=True, name="sbnet").start()
        return future

    def _work(self) -> None:
        while True:
            with self._lock:
                if not self._waiting:
                    self._alive -= 1
                    return
                call = self._waiting.popleft()
            call()
            del call  # or its result would live until the next one


class Inline(Executor):
    """Does at once, in the caller's thread, what it is given: for work that takes less time than to start a thread."""

    _max_workers = 1

    def submit(self, fn: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Future[R]:
        future: Future[R] = Future()
        _fulfil(future, partial(fn, *args, **kwargs))
        return future


def _fulfil(future: Future[R], function: Callable[[], R]) -> None:
    if future.set_running_or_notify_cancel():
        try:
            future.set_result(function())
        except BaseException as error:
            future.set_exception(error)


def thread_count(threads: int | None) -> int:
    """How many threads to use; by default, as many as this process may run at once."""
    if threads is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return checks.whole("threads", threads, 1)


class Bar:
    """A line with a bar, the rows done, their rate, the time so far and the time left, on standard error.

    It appears when the work has taken a second, if standard error is a terminal (or `show` says so), and is gone when
    the work is done. The time left is that of the rows that remain at the average cost of all so far: the last few
    would mislead where dear rows and cheap ones come in runs.
    """

    def __init__(self, what: str, n: int, show: bool | None, begun: int = 0) -> None:
        self._what, self._n, self._begun = what, n, begun
        self._begin = time.monotonic()
        self._show = sys.stderr.isatty() if show is None else checks.flag("progress", show)
        self._progress: Any = None
        self._drawn = 0.0

    def update(self, finished: int) -> None:
        """Tell that `finished` more rows are done."""
        now = time.monotonic()
        if not self._show or now - self._begin < _PATIENCE or now - self._drawn < _PATIENCE / 10:
            return
        self._drawn = now
        if self._progress is None:
            self._open()
        seconds, rows = now - self._begin, finished - self._begun
        self._progress.update(
            self._task,
            completed=finished,
            description=self._what,
            rate=f"{rows / seconds:,.{0 if rows >= 10 * seconds else 2}f} rows/s",
            time=f"{_clock(seconds)}, {_clock(seconds * (self._n - finished) / rows) if rows else '?'} left",
        )

    def describe(self, what: str) -> None:
        """Say what is going on, from the next update on."""
        self._what = what

    def close(self) -> None:
        """Remove the bar."""
        if self._progress is not None:
            self._progress.stop()

    def _open(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]}"),
            TextColumn("{task.fields[time]}"),
        )
        console = Console(stderr=True)  # in a file or a pipe, only the last state is written
        self._progress = Progress(*columns, console=console, transient=console.is_terminal)
        self._task = self._progress.add_task(self._what, total=self._n, completed=self._begun, rate="", time="")
        self._progress.start()


def _clock(seconds: float) -> str:
    return str(timedelta(seconds=round(seconds)))
