"""Blocks of rows over executors: all are done once and in order, errors and Ctrl-C come through, long work is shown."""

from __future__ import annotations

import multiprocessing
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest

from sbnet.errors import ParameterError
from sbnet.parallel import blocks
from sbnet.parallel.blocks import Bar, Inline, RowBlocks, Threads, map_blocks, thread_count


def rows_of(block):
    return block.columns[0].tolist()


def nap(seconds, block):
    time.sleep(seconds)
    return block


@pytest.mark.parametrize("executor", [None, Threads(1), Threads(2), Threads(5), Inline(), ThreadPoolExecutor(2)])
@pytest.mark.parametrize("n", [0, 1, 7, 1000])
def test_every_row_is_done_once_and_in_order(executor, n):
    blocks = RowBlocks(np.arange(n), most=7)
    parts = map_blocks(rows_of, blocks, executor=executor)
    assert [row for part in parts for row in part] == list(range(n))
    assert all(len(part) <= 7 for part in parts)


def test_results_come_in_the_order_of_blocks_whatever_they_cost():
    blocks = [range(k) for k in (5, 1, 4, 2, 3)]
    assert map_blocks(partial(nap, 0.0), blocks) == blocks
    assert map_blocks(_slow_first, blocks, executor=Threads(3)) == [5, 1, 4, 2, 3]


def _slow_first(block):
    time.sleep(0.01 * len(block))
    return len(block)


def test_tasks_run_in_processes_too():
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        parts = map_blocks(rows_of, RowBlocks(np.arange(5), most=2), executor=pool)
    assert [row for part in parts for row in part] == list(range(5))


def test_tables_are_cut_side_by_side_and_what_is_missing_stays_missing():
    blocks = list(RowBlocks(np.arange(3), None, np.arange(3) + 10, most=1))
    assert [[None if c is None else c.tolist() for c in block.columns] for block in blocks] == [
        [[k], None, [k + 10]] for k in range(3)
    ]


def test_quick_blocks_grow_and_dear_ones_shrink():
    blocks = RowBlocks(np.arange(1000), most=64)
    sizes = []
    for block in blocks:
        sizes.append(len(block))
        blocks.took(len(block), 1.0 if block.rows.start > 500 else 0.001)
    assert sizes[:8] == [1, 2, 4, 8, 16, 32, 64, 64]
    assert sizes[-1] == 1


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_errors_come_through_and_stop_what_has_not_begun(error):
    begun = []

    def work(block):
        begun.append(block)
        time.sleep(0.001)
        if len(begun) >= 2:
            raise error("stop")

    with pytest.raises(error, match="stop"):
        map_blocks(work, [range(1)] * 10_000, executor=Threads(2))
    assert len(begun) < 10_000


def test_threads_end_when_there_is_nothing_to_do():
    pool = Threads(3)
    for _ in range(2):  # and begin again
        map_blocks(rows_of, RowBlocks(np.arange(9), most=1), executor=pool)
    deadline = time.monotonic() + 10.0
    while _alive() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not _alive()


def _alive():
    return [thread for thread in threading.enumerate() if thread.name == "sbnet"]


INTERRUPTED = """
import sys, time
from functools import partial
from sbnet.parallel.blocks import Threads, map_blocks

def nap(block):
    sys.stdout.write("begun\\n")  # one write: two threads must not share a line
    sys.stdout.flush()
    time.sleep(30)

try:
    map_blocks(nap, [range(1)] * 3, executor=Threads({threads}))
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="SIGINT cannot be sent to one process there")
@pytest.mark.parametrize("threads", [1, 2])
def test_ctrl_c_does_not_wait_for_a_long_row(threads):
    script = [sys.executable, "-c", INTERRUPTED.format(threads=threads)]
    with subprocess.Popen(script, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        process.send_signal(signal.SIGINT)
        try:
            rest, _ = process.communicate(timeout=15)  # the rows would take 30 seconds and more
        finally:
            process.kill()
        assert "interrupted" in rest.splitlines()  # another thread may begin as late
        assert process.returncode == 0


def test_long_work_shows_rows_rate_and_what_is_going_on(monkeypatch, capsys):
    monkeypatch.setattr(blocks, "_PATIENCE", 0.0)
    bar = Bar("learning", 200, True)
    bar.update(50)
    bar.describe("epoch 2 of 4")
    bar.update(100)
    bar.close()
    shown = capsys.readouterr().err
    assert "100/200" in shown
    assert "rows/s" in shown
    assert "epoch 2 of 4" in shown


def test_the_time_left_is_that_of_the_average_row(monkeypatch, capsys):
    now = [1000.0]
    monkeypatch.setattr(blocks.time, "monotonic", lambda: now[0])
    monkeypatch.setenv("COLUMNS", "120")
    bar = Bar("work", 110, True, begun=10)
    for finished, at in ((10, 5.0), (30, 10.0), (60, 100.0)):  # cheap rows first: 2 s each on average in the end
        now[0] = 1000.0 + at
        bar.update(finished)
    bar.close()
    assert "0:01:40, 0:01:40 left" in capsys.readouterr().err


def test_a_bar_moves_while_a_row_takes_long(monkeypatch):
    monkeypatch.setattr(blocks, "_TICK", 0.001)
    shown = []
    bar = Bar("work", 1, False)
    monkeypatch.setattr(bar, "update", shown.append)
    map_blocks(partial(nap, 0.1), [range(1)], progress=bar)
    assert shown[0] == 0
    assert len(shown) > 2
    assert shown[-1] == 1


def test_short_work_and_work_without_a_terminal_show_nothing(monkeypatch, capsys):
    Bar("work", 10, True).update(10)  # less than a second
    monkeypatch.setattr(blocks, "_PATIENCE", 0.0)
    map_blocks(rows_of, RowBlocks(np.arange(9), most=1), progress=Bar("work", 9, None))  # captured: not a terminal
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("threads", [0, -1, 1.5, True])
def test_a_number_of_threads_that_is_none_is_refused(threads):
    with pytest.raises(ParameterError, match="threads is .*; it must be a whole number, one or more"):
        thread_count(threads)
