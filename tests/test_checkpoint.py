"""Checkpoints: a run that was stopped goes on to the very weights it would have reached."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest

import sbnet as sb
from sbnet.errors import FileFormatError, ParameterError
from sbnet.learning import checkpoint


@pytest.fixture(scope="module")
def data():
    truth = sb.layered((2, 8), rng=0, scale=3.0)
    table = sb.sample(truth, 120, rng=1)[:, 2:].astype(float)
    table[np.random.default_rng(0).random(table.shape) < 0.1] = np.nan
    return table


NETWORK = sb.layered((2, 8), rng=2, scale=0.1)
SETTINGS = [
    {},
    {"batch_size": 7, "optimizer": sb.Adam(0.02), "validation": 0.25},
    {"batch_size": 16, "optimizer": sb.SGD(0.1, momentum=0.9, decay=0.1), "prior": sb.Laplace(0.5), "shuffle": False},
    {"batch_size": 50, "log_likelihood": True, "frozen": [NETWORK.names[0]]},
]


def epochs_in(path):
    return len(checkpoint.read(path).arrays["bounds"])


@pytest.mark.parametrize("settings", SETTINGS, ids=["online", "adam", "momentum", "exact"])
@pytest.mark.parametrize("rng", [0, np.random.Generator(np.random.MT19937(3))], ids=["seed", "generator"])
def test_a_resumed_run_ends_with_the_same_bits(data, tmp_path, settings, rng):
    straight, pieces = tmp_path / "straight.sbn", tmp_path / "pieces.sbn"
    begin = np.random.default_rng(rng).bit_generator.state if not isinstance(rng, int) else None
    whole = sb.fit(NETWORK, data, epochs=5, rng=rng, checkpoint=straight, **settings)
    if begin is not None:
        rng.bit_generator.state = begin
    sb.fit(NETWORK, data, epochs=2, rng=rng, checkpoint=pieces, **settings)
    sb.fit(NETWORK, data, epochs=3, checkpoint=pieces, resume=True, **settings)  # whatever its own rng
    last = sb.fit(NETWORK, data, epochs=5, rng=99, resume=pieces, **settings)
    assert last.network == whole.network
    for name in ("bounds", "held_out", "log_likelihood"):
        np.testing.assert_array_equal(getattr(last, name), getattr(whole, name))
    assert last.best_epoch == whole.best_epoch
    assert epochs_in(straight) == 5
    assert epochs_in(pieces) == 3  # the last piece was not asked to write


def test_it_stops_where_patience_ends_and_stays_there(data, tmp_path):
    path = tmp_path / "run.sbn"
    settings = {"validation": data[:20], "patience": 2, "optimizer": sb.SGD(3.0), "rng": 1}
    first = sb.fit(NETWORK, data, epochs=40, checkpoint=path, **settings)
    assert len(first.bounds) < 40
    again = sb.fit(NETWORK, data, epochs=40, checkpoint=path, resume=True, **settings)
    assert again.network == first.network
    assert len(again.bounds) == len(first.bounds)


def test_the_file_is_there_when_callbacks_are_called(data, tmp_path):
    seen = []
    path = tmp_path / "run.sbn"
    sb.fit(NETWORK, data, epochs=3, checkpoint=path, callbacks=[lambda *_: seen.append(epochs_in(path))], rng=0)
    assert seen == [1, 2, 3]
    assert [file.name for file in tmp_path.iterdir()] == ["run.sbn"]


def test_only_the_same_run_can_be_resumed(data, tmp_path):
    path = tmp_path / "run.sbn"
    sb.fit(NETWORK, data, epochs=1, checkpoint=path, rng=0)
    other = sb.layered((2, 8), rng=3, scale=0.1)
    for network, table, change, what in [
        (other, data, {}, r"with this network; that run was begun with another$"),
        (NETWORK, data[:50], {}, r"with this table; that run was begun with another$"),
        (NETWORK, data, {"batch_size": 2}, r"with this batch_size; that run was begun with batch_size=1$"),
        (NETWORK, data, {"optimizer": sb.Adam()}, r"this optimizer; that run was begun with optimizer=SGD\(rate=0.05"),
        (NETWORK, data, {"validation": data[:5]}, r"with this validation; "),
        (NETWORK, data, {"sample_weight": np.arange(120.0)}, r"with this sample_weight; "),
        (NETWORK, data, {"frozen": [NETWORK.names[0]]}, r"with this frozen; "),
    ]:
        with pytest.raises(ParameterError, match=r"run.sbn cannot be resumed " + what if not change else what):
            sb.fit(network, table, epochs=2, resume=path, **change)


def test_a_missing_or_damaged_checkpoint_is_named(data, tmp_path):
    path = tmp_path / "run.sbn"
    with pytest.raises(ParameterError, match=r"there is no checkpoint '.*run.sbn' to resume; with checkpoint= and "):
        sb.fit(NETWORK, data, resume=path)
    with pytest.raises(ParameterError, match=r"resume=True goes on from the file given as checkpoint=; give one"):
        sb.fit(NETWORK, data, resume=True)
    with pytest.raises(
        ParameterError, match=r"checkpoint is '.*nowhere.run.sbn', but there is no such folder; make it"
    ):
        sb.fit(NETWORK, data, checkpoint=tmp_path / "nowhere" / "run.sbn")
    sb.save(NETWORK, path)
    with pytest.raises(FileFormatError, match=r"but not a checkpoint that sbnet.fit\(\) wrote"):
        sb.fit(NETWORK, data, resume=path)
    sb.fit(NETWORK, data, epochs=1, checkpoint=path, resume=False, rng=0)
    with pytest.raises(
        FileFormatError, match=r"run.sbn is a checkpoint of learning, not a network; fit\(\.\.\., resume="
    ):
        sb.load(path)
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(FileFormatError, match="damaged or cut short"):
        sb.fit(NETWORK, data, resume=path)


SCRIPT = """
import sys, numpy as np, sbnet as sb
truth = sb.layered((2, 8), rng=0, scale=3.0)
table = sb.sample(truth, 150, rng=1)[:, 2:]
result = sb.fit(sb.layered((2, 8), rng=2), table, epochs=40, optimizer=sb.SGD(0.05, momentum=0.5), rng=7,
                checkpoint=sys.argv[1], resume=True, threads=1)
sb.save(result.network, sys.argv[2])
"""


def test_a_killed_process_loses_at_most_one_epoch(tmp_path):
    path, done, script = tmp_path / "run.sbn", tmp_path / "done.sbn", tmp_path / "script.py"
    script.write_text(textwrap.dedent(SCRIPT))
    rng, kills, epochs = np.random.default_rng(0), 0, 0
    while not done.exists():
        process = subprocess.Popen([sys.executable, str(script), str(path), str(done)])
        reached = epochs
        while process.poll() is None and kills < 3:
            now = epochs_in(path) if path.exists() else 0  # readable at any moment
            if now > reached:
                time.sleep(rng.uniform(0.0, 0.04))  # about an epoch: before, while or after the next one is written
                process.send_signal(signal.SIGKILL)
                kills += 1
            reached = max(now, reached)
            time.sleep(0.002)
        process.wait(timeout=120)
        assert process.returncode in (0, -signal.SIGKILL)
        left = epochs_in(path)
        assert left >= reached  # what was seen on disk is never lost
        epochs = left
    assert kills == 3
    whole = subprocess.run(
        [sys.executable, str(script), str(tmp_path / "b.sbn"), str(tmp_path / "whole.sbn")], timeout=120
    )
    assert whole.returncode == 0
    assert sb.load(done) == sb.load(tmp_path / "whole.sbn")
