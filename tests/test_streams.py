"""Streams of rows: cut and shuffled in any way, in constant memory, and from folders of Parquet files."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sbnet as sb
from sbnet.errors import EvidenceError, ParameterError
from sbnet.estimators import SBNDensity
from sbnet.learning import streams

NETWORK = sb.layered((2, 8), rng=2, scale=0.1)
ROWS = sb.sample(sb.layered((2, 8), rng=0, scale=3.0), 300, rng=1)[:, 2:].astype(float)
ROWS[np.random.default_rng(0).random(ROWS.shape) < 0.1] = np.nan
SETTINGS = {"batch_size": 20, "optimizer": sb.Adam(0.02), "rng": 0}


def blocks(*cuts):
    return np.split(ROWS, cuts)


def bits(result):
    return result.network.weight.tobytes(), result.network.bias.tobytes(), result.bounds.tobytes()


@pytest.mark.small
@given(
    st.lists(st.integers(0, 30), max_size=8),
    st.integers(1, 40),
    st.one_of(st.none(), st.integers(0, 2**32)),
)
def test_a_buffer_gives_every_row_once_however_it_is_cut(sizes, capacity, seed):
    rows = np.arange(sum(sizes), dtype=np.int16)[:, None]
    pieces = np.split(rows, np.cumsum(sizes)[:-1]) if sizes else []

    def run(parts):
        generator = None if seed is None else np.random.default_rng(seed)
        return [part.ravel().tolist() for part in streams.buffered(iter(parts), capacity, generator)]

    found = run(pieces)
    given_ = [row for part in found for row in part]
    assert sorted(given_) == sorted(rows.ravel().tolist())
    assert found == run([rows])
    assert all(len(part) <= capacity for part in found)
    if seed is None:
        assert given_ == rows.ravel().tolist()


@pytest.mark.parametrize("shuffle", [True, False])
@pytest.mark.parametrize("buffer", [10, 1500, streams.BUFFER])
def test_how_a_stream_is_cut_does_not_matter(monkeypatch, shuffle, buffer):
    monkeypatch.setattr(streams, "BUFFER", buffer)
    settings = {**SETTINGS, "shuffle": shuffle, "epochs": 3}
    whole = sb.fit(NETWORK, lambda: iter(blocks()), **settings)
    for cuts in ((1, 2, 150), range(0, 300, 7)):
        assert bits(sb.fit(NETWORK, lambda cuts=cuts: blocks(*cuts), **settings)) == bits(whole)
    assert bits(sb.fit(NETWORK, blocks(100), **settings)) == bits(whole)  # a list of tables


def test_without_shuffling_a_stream_is_learned_from_as_a_table_is_in_its_first_epoch():
    settings = {**SETTINGS, "shuffle": False, "epochs": 1}
    assert bits(sb.fit(NETWORK, iter(blocks(50)), **settings)) == bits(sb.fit(NETWORK, ROWS, **settings))


def test_an_iterator_is_gone_through_once():
    once = sb.fit(NETWORK, iter(blocks(50)), **SETTINGS)
    assert len(once.bounds) == 1
    with pytest.raises(ParameterError, match="epochs is 2, but an iterator can be gone through once; give a function"):
        sb.fit(NETWORK, iter(blocks(50)), epochs=2)
    assert len(sb.fit(NETWORK, lambda: blocks(50), **SETTINGS).bounds) == 5


def test_a_folder_of_parquet_files(tmp_path):
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    names = list(NETWORK.names[2:])
    for k, part in enumerate(blocks(70, 180)):
        order = names[::-1] if k == 1 else names  # columns in another order
        pd.DataFrame(part, columns=names)[order].to_parquet(tmp_path / f"{k}.parquet")
    plain = {**SETTINGS, "shuffle": False, "epochs": 2}
    assert bits(sb.fit(NETWORK, tmp_path, **plain)) == bits(sb.fit(NETWORK, lambda: blocks(), **plain))
    shuffled = sb.fit(NETWORK, str(tmp_path), epochs=2, validation=ROWS[:50], prior=sb.Gaussian(1.0), **SETTINGS)
    assert len(shuffled.held_out) == 2
    assert bits(sb.fit(NETWORK, tmp_path / "0.parquet", **plain)) != bits(sb.fit(NETWORK, tmp_path, **plain))
    density = SBNDensity(hidden=2, random_state=0).partial_fit(tmp_path)
    assert density.n_samples_seen_ == 300
    with pytest.raises(ParameterError, match="there is no Parquet file at .*; give a folder"):
        sb.fit(NETWORK, tmp_path / "nowhere")


def test_a_checkpoint_goes_on_with_a_stream(tmp_path):
    path, settings = tmp_path / "run.sbn", {**SETTINGS, "prior": sb.Laplace(1.0)}
    whole = sb.fit(NETWORK, lambda: blocks(9), epochs=4, **settings)
    sb.fit(NETWORK, lambda: blocks(9), epochs=2, checkpoint=path, **settings)
    again = sb.fit(NETWORK, lambda: blocks(9), epochs=4, checkpoint=path, resume=True, **settings)
    assert bits(again)[:2] == bits(whole)[:2]


def test_partial_fit_takes_a_stream_block_by_block():
    one, other = SBNDensity(hidden=2, random_state=0), SBNDensity(hidden=2, random_state=0)
    for block in blocks(100, 200):
        one.partial_fit(block)
    other.partial_fit(iter(blocks(100, 200)))
    assert one.network_ == other.network_
    assert one.n_samples_seen_ == other.n_samples_seen_ == 300


@pytest.mark.small
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"sample_weight": [1.0]}, "sample_weight goes with a table"),
        ({"validation": 0.1}, r"validation is 0\.1; of a stream no share is held out\. Give a table"),
        ({"log_likelihood": True}, "log_likelihood=True needs a table"),
    ],
)
def test_what_a_stream_cannot_have_is_refused(settings, message):
    with pytest.raises(ParameterError, match=message):
        sb.fit(NETWORK, lambda: blocks(9), **settings)


def test_blocks_must_say_what_their_cells_mean():
    with pytest.raises(ParameterError, match="there are no rows to learn from"):
        sb.fit(NETWORK, iter([]))
    with pytest.raises(EvidenceError, match="holds 2.0 in row 0; variables are binary"):
        sb.fit(NETWORK, iter([ROWS + 1.0]))


MEMORY = """
import resource, sys
import numpy as np
import sbnet as sb
from sbnet.learning import streams

streams.BUFFER = 2_000_000
net = sb.from_edges({}, bias={f"x{k}": 0.0 for k in range(400)})

def rows(n):
    rng = np.random.default_rng(0)
    for _ in range(n // 1_000):
        yield rng.integers(0, 2, (1_000, 400), dtype=np.int8)

peaks = []
for n in (10_000, 70_000):
    sb.fit(net, rows(n), batch_size=1_000, rng=0)
    peaks.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
print(peaks[1] - peaks[0])
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no resource module")
def test_memory_does_not_grow_with_the_stream():
    done = subprocess.run([sys.executable, "-c", MEMORY], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 8_000  # kilobytes, for twenty-four million more cells
