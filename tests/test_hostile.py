"""Whatever a file or a table holds, it is read as it should be, or refused in one short sentence."""

from __future__ import annotations

import contextlib
import io
import math
import time
from collections import Counter
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings

import hostile_files
import hostile_tables
import sbnet as sb
from sbnet.cli import main
from sbnet.errors import FileFormatError, SBNetError
from strategies import INTERPRETED

pytestmark = [
    pytest.mark.filterwarnings("ignore::sbnet.errors.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore::sbnet.errors.CodingWarning"),
]

LONGEST = 300
EACH = 10
"""Cases of each example: Hypothesis chooses what goes wrong, which takes longer than to try it in several ways."""
LAWN = sb.from_edges(
    {("rain", "wet"): 2.0, ("sprinkler", "wet"): 1.5, ("wet", "slippery"): -0.5}, bias={"rain": -1.0, "wet": -2.0}
)


@dataclass
class Tally:
    """What became of the cases."""

    what: str
    ends: Counter = field(default_factory=Counter)
    longest: int = 0
    begin: float = field(default_factory=time.process_time)

    def refused(self, message: str) -> None:
        assert 0 < len(message) <= LONGEST, message
        assert "\n" not in message
        self.ends["refused"] += 1
        self.longest = max(self.longest, len(message))

    def __str__(self) -> str:
        counts = f"{self.ends.total():,} cases, {self.ends['read']:,} read, {self.ends['refused']:,} refused"
        seconds = f"{time.process_time() - self.begin:.0f} s of processor time"
        return f"{self.what}: {counts}, none crashed; longest message {self.longest} characters, {seconds}"


def many(count):
    """So many cases, without time for shrinking, from which a generator by seed does not gain."""
    return settings(
        max_examples=count // EACH,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )


def few(count=300):
    return many(50 if INTERPRETED else count)


# --- network files --------------------------------------------------------------------------------------------------


def check_network(network):
    """What any network keeps to, in plain Python."""
    indptr, parent = network.graph.indptr.tolist(), network.graph.parent.tolist()
    n = len(network.names)
    assert len(set(network.names)) == n >= 1
    assert all(type(name) is str and name for name in network.names)
    assert indptr[0] == 0
    sizes = [len(network.states[name]) for name in network.names]
    assert all(len(set(network.states[name])) == size >= 2 for name, size in zip(network.names, sizes, strict=True))
    assert indptr[-1] == len(parent)
    assert len(indptr) == n + 1
    assert len(network.bias) == sum(sizes) - n
    own_weights = 0
    for i in range(n):
        own = parent[indptr[i] : indptr[i + 1]] if indptr[i] <= indptr[i + 1] else [math.nan]
        assert own == sorted(set(own))
        assert all(0 <= j < i for j in own)
        table = network.tables.get(network.names[i])
        if table is None:
            own_weights += (sizes[i] - 1) * sum(sizes[j] - 1 for j in own)
        else:
            assert table.shape == (*(sizes[j] for j in own), sizes[i])
            assert all(0.0 <= p <= 1.0 + 1e-9 for p in table.ravel().tolist())
            assert abs(table.sum(axis=-1) - 1.0).max() < 1e-9
    assert len(network.weight) == own_weights
    assert all(abs(value) <= 1e8 for value in [*network.weight.tolist(), *network.bias.tolist()])
    assert network.layers is None or (sum(network.layers) == n and min(network.layers) > 0)


@pytest.fixture
def networks(tmp_path):
    """Good files, as bytes: without edges, with four units in a row, in layers."""
    found = []
    for network in (sb.from_edges({}, bias={"a": 1.0, "b": 0.0, "c": 0.5, "d": 0.0}), LAWN, sb.layered((2, 3), rng=0)):
        sb.save(network, tmp_path / "good.sbn")
        found.append((tmp_path / "good.sbn").read_bytes())
    return found


def fuzz_networks(path, good, count, tally):
    @count
    @given(hostile_files.wrecks(hostile_files.NETWORK))
    def run(wreck):
        for number in range(EACH):
            path.write_bytes(wreck(hostile_files.opened(good[number % len(good)]), number))
            try:
                network = sb.load(path)
            except FileFormatError as error:
                tally.refused(str(error))
            else:
                check_network(network)
                tally.ends["read"] += 1

    run()


def test_sealed_files_that_hold_anything_are_read_or_refused(tmp_path, networks):
    tally = Tally("network files")
    fuzz_networks(tmp_path / "net.sbn", networks, few(500), tally)
    assert tally.ends["refused"]


@pytest.mark.slow
def test_fifty_thousand_network_files(tmp_path, networks):
    tally = Tally("network files with right checksums")
    fuzz_networks(tmp_path / "net.sbn", networks, many(50_000), tally)
    print(f"\n{tally}")
    assert tally.ends.total() >= 50_000
    assert min(tally.ends.values()) > 1_000


def test_files_made_by_hand_are_the_files_that_are_written(networks):
    for data in networks:
        again = hostile_files.opened(hostile_files.opened(data).sealed())
        assert again.metadata == hostile_files.opened(data).metadata


# --- mixtures -------------------------------------------------------------------------------------------------------


@pytest.fixture
def mixtures(tmp_path):
    """Good files: of two networks that are the same, and of two that are not."""
    turned = sb.from_edges({("wet", "rain"): 2.0, ("wet", "sprinkler"): 1.0}, gate={"rain": "noisy-or"})
    found = []
    for other in (LAWN, turned.with_notes({"wet": sb.Note(about="the lawn")})):
        sb.save(sb.NetworkMixture((LAWN, other), ("rain", "wet")), tmp_path / "good.sbn")
        found.append((tmp_path / "good.sbn").read_bytes())
    return found


def fuzz_mixtures(path, good, count, tally):
    @count
    @given(hostile_files.wrecks(hostile_files.MIXTURE))
    def run(wreck):
        for number in range(EACH):
            path.write_bytes(wreck(hostile_files.opened(good[number % len(good)]), number))
            try:
                mixture = sb.load(path)
            except FileFormatError as error:
                tally.refused(str(error))
            else:
                assert all(name in network.names for name in mixture.columns for network in mixture)
                for network in mixture:
                    check_network(network)
                tally.ends["read"] += 1

    run()


def test_sealed_mixtures_that_hold_anything_are_read_or_refused(tmp_path, mixtures):
    tally = Tally("mixtures")
    fuzz_mixtures(tmp_path / "mixed.sbn", mixtures, few(500), tally)
    assert min(tally.ends["read"], tally.ends["refused"]) > 0


@pytest.mark.slow
def test_thirty_thousand_mixtures(tmp_path, mixtures):
    tally = Tally("mixtures with right checksums")
    fuzz_mixtures(tmp_path / "mixed.sbn", mixtures, many(30_000), tally)
    print(f"\n{tally}")
    assert tally.ends.total() >= 30_000
    assert min(tally.ends.values()) > 500


# --- checkpoints ----------------------------------------------------------------------------------------------------

START = sb.layered((2, 3), rng=0)
ROWS = sb.sample(START, 6, rng=1)[:, 2:].astype(float)
ROWS[0, 0] = np.nan
RUNS = (
    {"rng": 0},
    {"rng": np.random.Generator(np.random.MT19937(0)), "optimizer": sb.Adam(0.01), "validation": 0.3, "batch_size": 2},
    {"rng": np.random.Generator(np.random.Philox(0)), "optimizer": sb.SGD(0.1, momentum=0.5), "log_likelihood": True},
    {"rng": np.random.Generator(np.random.SFC64(0)), "batch_size": 6},
)


@pytest.fixture
def runs(tmp_path):
    """The settings of good runs and what they wrote after two epochs."""
    found = []
    for options in RUNS:
        sb.fit(START, ROWS, epochs=2, checkpoint=tmp_path / "good.sbn", threads=1, **options)
        found.append(({**options, "rng": None}, (tmp_path / "good.sbn").read_bytes()))
    return found


def fuzz_checkpoints(path, runs, count, tally):
    @count
    @given(hostile_files.wrecks(hostile_files.CHECKPOINT))
    def run(wreck):
        for number in range(EACH):
            options, data = runs[number % len(runs)]
            path.write_bytes(wreck(hostile_files.opened(data), number))
            try:
                result = sb.fit(START, ROWS, epochs=3, resume=path, threads=1, **options)
            except SBNetError as error:
                tally.refused(str(error))
            else:
                check_network(result.network)
                tally.ends["read"] += 1

    run()


def test_sealed_checkpoints_that_hold_anything_are_resumed_or_refused(tmp_path, runs):
    tally = Tally("checkpoints")
    fuzz_checkpoints(tmp_path / "run.sbn", runs, few(), tally)
    assert tally.ends["refused"]


@pytest.mark.slow
def test_thirty_thousand_checkpoints(tmp_path, runs):
    tally = Tally("checkpoints with right checksums")
    fuzz_checkpoints(tmp_path / "run.sbn", runs, many(30_000), tally)
    print(f"\n{tally}")
    assert tally.ends.total() >= 30_000
    assert min(tally.ends.values()) > 1_000


# --- tables ---------------------------------------------------------------------------------------------------------


def fuzz_csv(folder, count, tally):
    sb.save(LAWN, folder / "lawn.sbn")

    @count
    @given(hostile_tables.csv_files())
    def run(made):
        for number in range(EACH):
            (folder / "data.csv").write_bytes(made(number))
            infer_from_csv(folder, tally)

    run()


def infer_from_csv(folder, tally, name="data.csv"):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main(["infer", str(folder / "lawn.sbn"), "--table", str(folder / name)])
    notes, is_error, error = err.getvalue().partition("sbnet: error: ")
    said = (" read as ", " has no name, and is left alone")  # what must be said of a column
    assert all(any(words in line for words in said) for line in notes.splitlines())
    if status == 2:
        assert out.getvalue() == ""
        assert is_error
        assert error.endswith("\n")
        tally.refused(error[:-1])
    else:
        assert status == 0
        assert not is_error
        assert out.getvalue().startswith("bound,converged,exact,rain,sprinkler,wet,slippery\n")
        tally.ends["read"] += 1


def fuzz_packed(folder, count, tally):
    sb.save(LAWN, folder / "lawn.sbn")

    @count
    @given(hostile_tables.packed_tables())
    def run(made):
        for number in range(EACH):
            ending, data = made(number)
            (folder / f"data.{ending}").write_bytes(data)
            infer_from_csv(folder, tally, f"data.{ending}")

    run()


def fuzz_tables(count, tally):
    @count
    @given(hostile_tables.tables())
    def run(made):
        for number in range(EACH):
            try:
                batch = sb.infer_many(LAWN, made(number), threads=1)
            except SBNetError as error:
                tally.refused(str(error))
            else:
                assert np.isfinite(batch.bound).all()
                tally.ends["read"] += 1

    run()


def test_csv_files_that_hold_anything_are_read_or_refused(tmp_path):
    tally = Tally("csv files")
    fuzz_csv(tmp_path, few(), tally)
    assert tally.ends["refused"]


def test_packed_tables_that_are_damaged_are_read_or_refused(tmp_path):
    tally = Tally("packed tables")
    fuzz_packed(tmp_path, few(), tally)
    assert min(tally.ends["read"], tally.ends["refused"]) > 0


def test_an_archive_packed_in_an_unknown_way_is_refused(tmp_path):
    sb.save(LAWN, tmp_path / "lawn.sbn")
    np.savez(tmp_path / "data.npz", table=np.zeros((1, 4)))
    data = (tmp_path / "data.npz").read_bytes()
    for mark, offset in ((b"PK\x03\x04", 8), (b"PK\x01\x02", 10)):  # where a file, and the list of files, say how
        at = data.index(mark) + offset
        data = data[:at] + b"\x22\xf4" + data[at + 2 :]
    (tmp_path / "data.npz").write_bytes(data)
    tally = Tally("archives")
    infer_from_csv(tmp_path, tally, "data.npz")
    assert tally.ends["refused"] == 1


def test_tables_of_every_form_are_read_or_refused():
    tally = Tally("tables")
    fuzz_tables(few(500), tally)
    assert tally.ends["refused"]


@pytest.mark.slow
def test_ten_thousand_csv_files(tmp_path):
    tally = Tally("csv files for sbnet infer --table")
    fuzz_csv(tmp_path, many(10_000), tally)
    print(f"\n{tally}")
    assert tally.ends.total() >= 10_000
    assert min(tally.ends.values()) > 1_000


@pytest.mark.slow
def test_ten_thousand_packed_tables(tmp_path):
    tally = Tally("compressed csv files, npz and parquet for sbnet infer --table")
    fuzz_packed(tmp_path, many(10_000), tally)
    print(f"\n{tally}")
    assert tally.ends.total() >= 10_000
    assert min(tally.ends.values()) > 1_000


@pytest.mark.slow
def test_ten_thousand_tables():
    tally = Tally("arrays, frames, records and other tables")
    fuzz_tables(many(10_000), tally)
    print(f"\n{tally}")
    assert tally.ends.total() >= 10_000
    assert min(tally.ends.values()) > 1_000
