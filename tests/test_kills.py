"""Processes that are killed, full disks, two writers, two cores: no file is torn, and the bits stay the same."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import sbnet as sb
from sbnet.cli import main
from sbnet.errors import TargetError
from sbnet.files.locks import alone
from sbnet.learning import checkpoint

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked, so that none has to start anew")

NETWORK = sb.layered((2, 6, 12), rng=0, scale=0.5)
ROWS = sb.sample(sb.layered((2, 6, 12), rng=1, scale=3.0), 200, rng=1)[:, -12:].astype(float)
ROWS[np.random.default_rng(2).random(ROWS.shape) < 0.1] = np.nan
SETTINGS = {"batch_size": 20, "optimizer": sb.Adam(0.02), "rng": 0, "threads": 1}


def bits(result):
    return result.network.weight.tobytes(), result.network.bias.tobytes(), result.bounds.tobytes()


def child(work):
    """Another process that does some work; with the end of a pipe to tell of it."""
    reader, writer = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            work(writer)
            os._exit(0)
        except BaseException:
            os._exit(1)
    os.close(writer)
    return pid, reader


def killed(work, seconds):
    """Run and kill after some time: what it told until then, and whether it was done before."""
    pid, reader = child(work)
    time.sleep(seconds)
    os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    with os.fdopen(reader, "rb") as pipe:
        told = pipe.read()
    assert status in (0, signal.SIGKILL), status
    return told, status == 0


# --- two writers ------------------------------------------------------------------------------------------------------


def test_the_second_writer_of_a_checkpoint_is_told(tmp_path):
    path = tmp_path / "run.sbn"

    def interfere(*_):
        with pytest.raises(
            TargetError, match=rf"run\.sbn is being written by process {os.getpid()}.*give another name"
        ):
            sb.fit(NETWORK, ROWS, epochs=1, checkpoint=path, **SETTINGS)

    result = sb.fit(NETWORK, ROWS, epochs=2, checkpoint=path, callbacks=[interfere], **SETTINGS)
    assert len(result.bounds) == 2
    assert [file.name for file in tmp_path.iterdir()] == ["run.sbn"]
    sb.fit(NETWORK, ROWS, epochs=3, checkpoint=path, resume=True, **SETTINGS)  # it has let go


def test_a_lock_does_not_outlive_the_process_that_held_it(tmp_path):
    name = str(tmp_path / "run.sbn")

    def hold(writer):
        with alone(name):
            os.write(writer, b"held")
            time.sleep(60)

    pid, reader = child(hold)
    assert os.read(reader, 10) == b"held"
    with pytest.raises(TargetError, match=f"written by process {pid}"), alone(name):
        pass
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    os.close(reader)
    (left,) = os.listdir(tmp_path)
    assert left.endswith(".lock")
    with alone(name):
        pass
    assert os.listdir(tmp_path) == []


def test_a_file_system_without_locks_is_written_to_all_the_same(tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("fcntl.flock", refuse)
    sb.fit(NETWORK, ROWS, epochs=1, checkpoint=tmp_path / ("n" * 250), **SETTINGS)
    assert os.listdir(tmp_path) == ["n" * 250]


def test_of_many_who_want_a_lock_one_has_it(tmp_path):
    name, inside, most = str(tmp_path / "run.sbn"), [], []

    def take(_):
        for _ in range(200):
            with contextlib.suppress(TargetError), alone(name):
                inside.append(1)
                most.append(len(inside))
                inside.pop()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(take, range(4)))
    assert max(most) == 1


# --- a full disk ------------------------------------------------------------------------------------------------------


@pytest.fixture
def small_disk(tmp_path):
    """A file system of one megabyte."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(place)], capture_output=True)
    if mounted.returncode:
        pytest.skip(f"no file system may be mounted here: {mounted.stderr.decode().strip()}")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def test_a_full_disk_leaves_the_last_checkpoint(small_disk):
    wide = sb.layered((65, 700), rng=0, scale=0.1)  # a checkpoint takes two thirds of the disk
    rows = sb.sample(wide, 4, rng=1)[:, -700:]
    path, settings = small_disk / "run.sbn", {"batch_size": 4, "rng": 0, "threads": 1}
    with pytest.raises(OSError, match="No space left on device") as caught:
        sb.fit(wide, rows, epochs=3, checkpoint=path, **settings)
    assert str(path) in str(caught.value)
    assert [file.name for file in small_disk.iterdir()] == ["run.sbn"]
    assert len(checkpoint.read(path).arrays["bounds"]) == 1
    again = sb.fit(wide, rows, epochs=2, resume=path, **settings)
    assert bits(again) == bits(sb.fit(wide, rows, epochs=2, **settings))
    with pytest.raises(OSError, match="No space left on device"):
        sb.save(wide, small_disk / "net.sbn")
    assert [file.name for file in small_disk.iterdir()] == ["run.sbn"]


# --- two cores --------------------------------------------------------------------------------------------------------


def test_threads_that_race_give_the_same_bits():
    once, learned = sb.infer_many(NETWORK, ROWS, threads=1), sb.fit(NETWORK, ROWS, epochs=2, **SETTINGS)
    settings = {**SETTINGS, "batch_size": 200}
    large = sb.fit(NETWORK, ROWS, epochs=2, **settings)
    gate = threading.Barrier(4)

    def race(k):
        fresh = sb.layered((2, 6, 12), rng=0, scale=0.5)  # what follows from its graph is not known yet
        gate.wait()
        answer = sb.infer_many(fresh, ROWS, threads=1 + k % 3)
        assert answer.bound.tobytes() == once.bound.tobytes()
        assert answer.means.tobytes() == once.means.tobytes()
        assert bits(sb.fit(fresh, ROWS, epochs=2, **SETTINGS)) == bits(learned)
        assert bits(sb.fit(fresh, ROWS, epochs=2, **{**settings, "threads": 2})) == bits(large)
        return k

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(race, range(4))) == [0, 1, 2, 3]


# --- killed, over and over --------------------------------------------------------------------------------------------


def kill_fits(folder, kills, rng):
    """Kills, runs to the end, epochs lost: those that were told of and are not in the file."""
    path, straight, runs, done = folder / "run.sbn", sb.fit(NETWORK, ROWS, epochs=8, **SETTINGS), 0, 0
    began = time.monotonic()
    sb.fit(NETWORK, ROWS, epochs=8, **SETTINGS)
    span, epochs = time.monotonic() - began, 0

    def learn(writer):
        def tell(epoch, *_):
            os.write(writer, bytes([epoch]))

        sb.fit(NETWORK, ROWS, epochs=8, checkpoint=path, resume=True, callbacks=[tell], **SETTINGS)

    while done < kills:
        told, ended = killed(learn, rng.uniform(0.0, span))
        done += not ended
        before, epochs = epochs, len(checkpoint.read(path).arrays["bounds"]) if path.exists() else 0
        assert epochs >= max(before, *told, 0)  # whole, and nothing that was told of is lost
        if epochs == 8:
            final = sb.fit(NETWORK, ROWS, epochs=8, resume=path, **SETTINGS)
            assert bits(final) == bits(straight)
            path.unlink()
            epochs, runs = 0, runs + 1
        _sweep(folder)
    return done, runs


def _sweep(folder):
    """Halves of files that nobody takes for files, as a killed process leaves them."""
    for file in folder.glob(".sbnet-*.tmp"):
        file.unlink()


def kill_imputes(folder, kills, rng, copies=10):
    model, table, out = (folder / name for name in ("net.sbn", "table.csv", "whole.csv"))
    sb.save(NETWORK, model)
    names = NETWORK.names[-12:]
    lines = [",".join("" if np.isnan(cell) else f"{cell:.0f}" for cell in row) for row in np.tile(ROWS, (copies, 1))]
    table.write_text("\n".join([",".join(names), *lines]) + "\n")
    command, old = ["impute", str(model), str(table), "-o", str(out)], "an older file\n"
    assert main(command) == 0  # kernels are there from now on
    began = time.monotonic()
    assert main(command) == 0
    span, whole, done, runs = time.monotonic() - began, out.read_text(), 0, 0
    while done < kills:
        out.write_text(old)
        _, ended = killed(lambda _: main(command), rng.uniform(0.0, 1.2 * span))
        assert out.read_text() in ((whole,) if ended else (old, whole))
        done, runs = done + (not ended), runs + ended
        _sweep(folder)
    return done, runs


def kill_workers(kills, rng):
    """A cluster whose workers are killed at random while it learns, and started anew by their nannies."""
    import dask
    import dask.array as da
    import distributed

    table = da.from_array(ROWS, chunks=(50, 12))
    settings = {"epochs": 4, "batch_size": 40, "rng": 0}
    with dask.config.set(scheduler="sync"):
        straight = sb.fit(NETWORK, table, **settings)
    quiet = {"silence_logs": 50, "dashboard_address": "127.0.0.1:0", "threads_per_worker": 1}
    done, runs, over = [], 0, threading.Event()

    def strike(client):
        """One at a time: as soon as both workers are there, and some time has passed, one of them dies."""
        while len(done) < kills and not over.wait(0.2):  # a run must be let come to its end at last
            with contextlib.suppress(Exception):
                pids = list(client.run(os.getpid).values())
                if len(pids) == 2 and not over.wait(rng.uniform(0.0, 3.0)):
                    os.kill(pids[rng.integers(2)], signal.SIGKILL)
                    done.append(1)

    while len(done) < kills:  # in another cluster where nobody has been killed for long: a nanny may have given up
        over.clear()
        with (
            dask.config.set({"distributed.scheduler.allowed-failures": 1000}),
            distributed.LocalCluster(n_workers=2, memory_limit="2GB", **quiet) as cluster,
            distributed.Client(cluster) as client,
            distributed.Client(cluster, set_as_default=False) as other,
        ):
            killer = threading.Thread(target=strike, args=(other,))
            killer.start()
            try:
                before, idle = len(done), 0
                while len(done) < kills and idle < 8:
                    assert bits(sb.fit(NETWORK, table, **settings)) == bits(straight)
                    idle, before, runs = (idle + 1 if len(done) == before else 0), len(done), runs + 1
            finally:
                over.set()
                killer.join()
            assert client.status == "running"
    return len(done), runs


def test_a_few_kills_tear_nothing(tmp_path):
    kill_fits(tmp_path, 3, np.random.default_rng(0))
    kill_imputes(tmp_path, 2, np.random.default_rng(0), copies=2)


@pytest.mark.slow
@pytest.mark.filterwarnings("default")  # clusters that lose workers have a lot to say
def test_a_hundred_kills_tear_nothing(tmp_path, capfd):
    rng, began = np.random.default_rng(), time.monotonic()
    fits, finished = kill_fits(tmp_path, 45, rng)
    imputes, imputed = kill_imputes(tmp_path, 45, rng)
    workers, learned = kill_workers(12, rng)
    with capfd.disabled():
        print(
            f"\nkill -9: {fits + imputes + workers} times; fit with checkpoints {fits} ({finished} runs went on to the "
            f"end, all with the same bits), impute {imputes} ({imputed} ended before), workers of a cluster {workers} "
            f"({learned} runs, all with the same bits); no file torn, no epoch lost that was told of, "
            f"{time.monotonic() - began:.0f} s"
        )
    assert fits + imputes + workers >= 100
    assert sys.platform != "win32"
