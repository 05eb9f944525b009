"""Checkpoints as files that anyone can make: every part is held against the run that would go on from it."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hostile_files
import sbnet as sb
from sbnet.errors import FileFormatError, ParameterError
from sbnet.learning.checkpoint import GENERATORS, generator_from, state_text

START = sb.layered((2, 3), rng=0)
ROWS = sb.sample(START, 6, rng=1)[:, 2:].astype(float)
ROWS[0, 0] = np.nan
FULL = {"optimizer": sb.Adam(0.01), "validation": ROWS[:2], "log_likelihood": True, "threads": 1}


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    """A checkpoint after two epochs that has every part, as bytes."""
    path = tmp_path_factory.mktemp("run") / "run.sbn"
    sb.fit(START, ROWS, epochs=2, checkpoint=path, rng=0, **FULL)
    return path.read_bytes()


def refusal(tmp_path, good, *, arrays=None, texts=None, lacking=()):
    """What is said about a checkpoint with other parts, and a right checksum."""
    file = hostile_files.opened(good)
    file.arrays |= {name: np.asarray(array) for name, array in (arrays or {}).items()}
    file.metadata |= texts or {}
    for part in lacking:
        (file.arrays if part in file.arrays else file.metadata).pop(part)
    (tmp_path / "run.sbn").write_bytes(file.sealed())
    with pytest.raises(FileFormatError) as caught:
        sb.fit(START, ROWS, epochs=3, resume=tmp_path / "run.sbn", **FULL)
    said = str(caught.value)
    assert said.startswith(f"{tmp_path / 'run.sbn'} cannot be resumed; its parts do not fit: ")
    return said.split("do not fit: ")[1]


def test_the_file_by_itself_is_fine(tmp_path, good):
    (tmp_path / "run.sbn").write_bytes(hostile_files.opened(good).sealed())
    assert len(sb.fit(START, ROWS, epochs=3, resume=tmp_path / "run.sbn", **FULL).bounds) == 3


# --- generators -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", ["rng", "first_rng"])
@pytest.mark.parametrize(
    "name", ["seed", "RandomState", "default_rng", "Generator", "bytes", "__class__", "PCG32", 3, None]
)
def test_only_known_generators_are_made(tmp_path, good, monkeypatch, key, name):
    called = []
    monkeypatch.setattr(np.random, "seed", lambda *_: called.append("seed"))
    state = json.loads(hostile_files.opened(good).metadata[key]) | {"bit_generator": name}
    said = refusal(tmp_path, good, texts={key: json.dumps(state)})
    assert said == f"its random generator is {str(name)!r}; known are MT19937, PCG64, PCG64DXSM, Philox, SFC64"
    assert called == []


@given(st.sampled_from(sorted(GENERATORS)), st.integers(0, 2**64), st.integers(0, 1500))
def test_every_known_generator_goes_on_where_it_was(kind, seed, drawn):
    generator = np.random.Generator(GENERATORS[kind](seed))
    generator.integers(0, 2**31, drawn, dtype=np.int32)  # odd counts leave half a number behind
    again = generator_from(state_text(generator.bit_generator.state))
    assert again.integers(0, 2**31, 700, dtype=np.int32).tolist() == (
        generator.integers(0, 2**31, 700, dtype=np.int32).tolist()
    )


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        ("MT19937", {"state": {"key": [0] * 624, "pos": 625}}),  # NumPy would read behind the key, and die
        ("MT19937", {"state": {"key": [0] * 624, "pos": -1}}),
        ("MT19937", {"state": {"key": [0] * 623, "pos": 0}}),
        ("MT19937", {"state": {"key": [2**32] * 624, "pos": 0}}),
        ("MT19937", {"state": {"key": [0.5] * 624, "pos": 0}}),
        ("Philox", {"buffer_pos": 5}),
        ("Philox", {"buffer_pos": -(2**31)}),
        ("Philox", {"buffer": [0] * 3}),
        ("PCG64", {"state": {"state": 2**128, "inc": 1}}),
        ("PCG64", {"state": {"state": -1, "inc": 1}}),
        ("PCG64", {"has_uint32": 2}),
        ("PCG64", {"has_uint32": True}),
        ("PCG64", {"uinteger": 1.5}),
        ("PCG64", {"state": {"state": 1}}),
        ("PCG64", {"more": 1}),
        ("SFC64", {"state": {"state": None}}),
    ],
)
def test_states_that_no_generator_has(kind, change):
    state = json.loads(state_text(GENERATORS[kind](0).state)) | change
    with pytest.raises(ValueError, match="the state of its random generator"):
        generator_from(json.dumps(state))


class Foreign(np.random.PCG64):
    """A generator from elsewhere."""


def test_a_generator_that_could_not_be_brought_back_is_refused_at_once(tmp_path):
    with pytest.raises(ParameterError, match="checkpoint= cannot keep the state of a Foreign; give rng= a seed"):
        sb.fit(START, ROWS, checkpoint=tmp_path / "run.sbn", rng=np.random.Generator(Foreign(0)))
    assert list(tmp_path.iterdir()) == []


def test_a_run_does_not_change_its_generator(tmp_path, good):
    state = state_text(np.random.MT19937(0).state)
    assert "begins with one random generator and goes on with another" in refusal(tmp_path, good, texts={"rng": state})


# --- parts ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mean", [-0.001, 1.001, -1.0, 2.0, np.nan, np.inf])
def test_starts_that_are_no_means(tmp_path, good, mean):
    warm = hostile_files.opened(good).arrays["warm"].copy()
    warm[3] = mean
    said = refusal(tmp_path, good, arrays={"warm": warm})
    assert said == (
        f"'warm' holds a mean of {mean}, which is not between 0 and 1" if np.isfinite(mean) else "'warm' is not finite"
    )


PARTS = (
    "weight",
    "bias",
    "best_weight",
    "best_bias",
    "bounds",
    "held_out",
    "exact",
    "optimizer_0",
    "optimizer_2",
    "warm",
)


@pytest.mark.parametrize("part", PARTS)
def test_parts_of_other_shapes_types_or_values(tmp_path, good, part):
    array = hostile_files.opened(good).arrays[part]
    longer = np.concatenate([array, array])
    if part != "bounds":  # whose length is the number of epochs
        assert refusal(tmp_path, good, arrays={part: longer}).startswith(f"{part!r} has type float64 and shape (")
    assert refusal(tmp_path, good, arrays={part: array[:, None]}).startswith(f"{part!r} has type float64 and shape (")
    assert refusal(tmp_path, good, arrays={part: array[:0]})
    assert refusal(tmp_path, good, arrays={part: array.astype(np.int64)}).startswith(f"{part!r} has type int64")
    assert refusal(tmp_path, good, arrays={part: np.full_like(array, np.nan)}) == f"{part!r} is not finite"


@pytest.mark.parametrize("part", [*PARTS, "rng", "first_rng", "settings", "best", "seconds"])
def test_parts_that_are_missing(tmp_path, good, part):
    assert refusal(tmp_path, good, lacking=[part]).endswith(f"it lacks {part!r}") or part == "bounds"


def test_parts_that_nobody_asked_for(tmp_path, good):
    assert refusal(tmp_path, good, arrays={"optimizer_3": np.zeros(1)}) == "there is no place for 'optimizer_3'"


def test_weights_are_those_of_a_network(tmp_path, good):
    weight = hostile_files.opened(good).arrays["weight"] * 1e300
    assert "parameters must be finite, and at most 1e+08 in size" in refusal(tmp_path, good, arrays={"weight": weight})


@pytest.mark.parametrize("change", [{"optimizer_1": -1.0}, {"optimizer_2": -1e300}, {"optimizer_0": 1e300}])
def test_the_state_of_the_optimiser_leads_somewhere(tmp_path, good, change):
    arrays = {name: np.full_like(hostile_files.opened(good).arrays[name], value) for name, value in change.items()}
    assert refusal(tmp_path, good, arrays=arrays) == "the state of its optimiser leads nowhere"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[3, -1.0]", "'best' names epoch 3 of 2"),
        ("[-1, -1.0]", "'best' names epoch -1 of 2"),
        ("[1.0, -1.0]", "'best' names epoch 1.0 of 2"),
        ("[true, -1.0]", "'best' names epoch True of 2"),
        ("[1, NaN]", "'best' has a bound that is not a finite number"),
        ('[1, "x"]', "'best' has a bound that is not a finite number"),
        ("[1]", "'best' is not an epoch and its bound"),
        ("{}", "'best' is not an epoch and its bound"),
    ],
)
def test_the_best_epoch_is_one_of_them(tmp_path, good, text, said):
    assert refusal(tmp_path, good, texts={"best": text}) == said


@pytest.mark.parametrize("text", ["-1.0", "nan", "inf", "an hour", "", "9" * 5000])
def test_seconds_are_a_number(tmp_path, good, text):
    assert len(refusal(tmp_path, good, texts={"seconds": text})) < 80


def test_settings_are_texts(tmp_path, good):
    file = hostile_files.opened(good)
    file.metadata["settings"] = "[]"
    (tmp_path / "run.sbn").write_bytes(file.sealed())
    with pytest.raises(FileFormatError, match="it does not say with what settings it was begun"):
        sb.fit(START, ROWS, epochs=3, resume=tmp_path / "run.sbn", **FULL)
