"""Blocks of rows over threads: all are done once, errors and interruptions come through, long work is shown."""

from __future__ import annotations

import threading
import time

import pytest

from sbnet import _progress
from sbnet._progress import Bar, run_blocks, thread_count
from sbnet.errors import ParameterError


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("n", [0, 1, 7, 100])
def test_every_row_is_done_once(threads, n):
    done, lock = [], threading.Lock()

    def work(rows):
        with lock:
            done.extend(range(rows.start, rows.stop))
        return rows.stop - rows.start

    run_blocks(work, n, 7, threads, False, "work")
    assert sorted(done) == list(range(n))


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_errors_come_through_and_stop_what_has_not_begun(error):
    begun = []

    def work(rows):
        begun.append(rows.start)
        time.sleep(0.001)
        if rows.start == 0:
            raise error("stop")
        return 1

    with pytest.raises(error, match="stop"):
        run_blocks(work, 10_000, 1, 2, False, "work")
    assert len(begun) < 10_000


def test_long_work_shows_rows_rate_and_what_is_going_on(monkeypatch, capsys):
    monkeypatch.setattr(_progress, "_PATIENCE", 0.0)
    bar = Bar("learning", 200, True)
    bar.update(50)
    bar.describe("epoch 2 of 4")
    bar.update(100)
    bar.close()
    shown = capsys.readouterr().err
    assert "100/200" in shown
    assert "rows/s" in shown
    assert "epoch 2 of 4" in shown


def test_short_work_and_work_without_a_terminal_show_nothing(monkeypatch, capsys):
    Bar("work", 10, True).update(10)  # less than a second
    monkeypatch.setattr(_progress, "_PATIENCE", 0.0)
    run_blocks(lambda rows: 1, 10, 1, 2, None, "work")  # standard error is captured here, not a terminal
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("threads", [0, -1, 1.5, True])
def test_a_number_of_threads_that_is_none_is_refused(threads):
    with pytest.raises(ParameterError, match="threads is .*; it must be a whole number, one or more"):
        thread_count(threads)
