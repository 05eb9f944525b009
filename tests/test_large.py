"""Estimators that learn from streams: what a sample decides, and what all rows add to it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest

import sbnet as sb
from sbnet.errors import ParameterError
from sbnet.estimators import SBNClassifier, SBNDensity, SBNImputer, SBNOutlier, _large

TRUTH = sb.layered((2, 6), rng=0, scale=4.0)
ROWS = sb.sample(TRUTH, 600, rng=1)[:, 2:].astype(float)
NAMES = list("abcdef")


def quick(**settings):
    return SBNDensity(**{"hidden": 2, "prior": None, "epochs": 2, "random_state": 0} | settings)


def same(one, other):
    return one.network_.weight.tobytes() == other.network_.weight.tobytes()


def test_a_short_stream_is_learned_from_like_a_table():
    table = quick(epochs=3).fit(ROWS)
    for stream in (iter(np.split(ROWS, 4)), list(np.split(ROWS, 3)), lambda: iter([ROWS])):
        assert same(quick(epochs=3).fit(stream), table)


@pytest.mark.parametrize("make", [pd.DataFrame, lambda rows: pl.DataFrame(dict(rows)), pa.table])
def test_frames_of_any_kind_with_columns_in_any_order(monkeypatch, make):
    monkeypatch.setattr(_large, "LIMIT", 200)
    monkeypatch.setattr(_large, "CELLS", 0)
    parts = [{name: rows[:, k] for k, name in enumerate(NAMES)} for rows in np.split(ROWS, 3)]
    parts[1] = dict(reversed(parts[1].items()))
    found = quick().fit([make(part) for part in parts])
    assert list(found.feature_names_in_) == NAMES
    assert same(found, quick().fit([pd.DataFrame(part)[NAMES] for part in parts]))


def test_all_rows_count_after_the_sample(monkeypatch, tmp_path):
    """Of a short sample and of all rows: the second knows more; and the arguments stay what they were."""
    monkeypatch.setattr(_large, "LIMIT", 60)
    monkeypatch.setattr(_large, "CELLS", 0)
    test = sb.sample(TRUTH, 2_000, rng=2)[:, 2:].astype(float)
    some, density = SBNDensity(random_state=0).fit(ROWS[:60]), SBNDensity(random_state=0)
    before = density.get_params()
    density.fit(lambda: iter(np.split(ROWS, 6)))
    assert density.get_params() == before
    assert density.n_samples_seen_ == 600
    assert density.score(test) > some.score(test) + 0.02

    for k, rows in enumerate(np.split(ROWS, 3)):
        pa.parquet.write_table(pa.table({name: rows[:, j] for j, name in enumerate(NAMES)}), tmp_path / f"{k}.parquet")
    folder = SBNDensity(random_state=0).fit(tmp_path)
    assert folder.n_samples_seen_ == 600
    assert folder.score(pd.DataFrame(test, columns=NAMES)) > some.score(test) + 0.02


def test_an_iterator_is_gone_through_once(monkeypatch):
    monkeypatch.setattr(_large, "LIMIT", 100)
    monkeypatch.setattr(_large, "CELLS", 0)
    density = quick(epochs=1).fit(iter(np.split(ROWS, 6)))
    assert density.n_samples_seen_ == 600
    assert density.n_iter_ == 2  # the sample's epoch, and that of the stream
    with pytest.raises(ParameterError, match="epochs is 2, but an iterator can be gone through once; give a function"):
        quick().fit(iter(np.split(ROWS, 6)))


def test_a_sample_has_every_row_with_the_same_chance(monkeypatch):
    monkeypatch.setattr(_large, "LIMIT", 50)
    monkeypatch.setattr(_large, "CELLS", 0)
    rows, counts = np.arange(400)[:, None], np.zeros(400)
    for seed in range(400):
        found, n = _large._drawn(iter(np.array_split(rows, 37)), np.random.default_rng(seed))
        assert n == 400
        assert len(found) == 50
        assert (np.diff(found[:, 0]) > 0).all()
        counts[found[:, 0]] += 1
    assert abs(counts - 50).max() < 5 * np.sqrt(50 * 7 / 8)


def test_what_a_stream_cannot_give_is_said(monkeypatch):
    with pytest.raises(ParameterError, match="there are no rows to learn from"):
        quick().fit(iter([]))
    with pytest.raises(ParameterError, match="sample_weight goes with a table"):
        quick().fit(iter([ROWS]), sample_weight=np.ones(600))
    with pytest.raises(ParameterError, match="multiple= draws rows of the whole table"):
        SBNImputer(multiple=2).fit(iter([ROWS]))
    with pytest.raises(ParameterError, match="needs the class of each row beside it"):
        SBNClassifier().fit(iter([ROWS]), np.zeros(600))
    with pytest.raises(ParameterError, match="scored once more for a threshold; give a table"):
        SBNOutlier().fit(iter([ROWS]))
    monkeypatch.setattr(_large, "LIMIT", 100)
    monkeypatch.setattr(_large, "CELLS", 0)
    with pytest.raises(ParameterError, match="a mixture is learned from 100 rows at most of a stream; set orders=1"):
        quick(orders=2).fit(iter([ROWS]))


def test_an_imputer_learns_from_a_stream(monkeypatch):
    monkeypatch.setattr(_large, "LIMIT", 100)
    monkeypatch.setattr(_large, "CELLS", 0)
    imputer = SBNImputer(density=quick()).fit(lambda: iter(np.split(ROWS, 6)))
    assert np.isfinite(imputer.transform(np.where(np.eye(6, dtype=bool), np.nan, ROWS[:6]))).all()
