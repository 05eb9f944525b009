"""Reading a file takes a few times its size in memory, whatever it says of itself."""

from __future__ import annotations

import json
import struct
import tracemalloc

import numpy as np
import pytest

import hostile_files
import sbnet as sb
from sbnet.errors import FileFormatError, SBNetError

SIZE = 1_000_000
FEW = 8  # times the size of the file; short names take most: each is an object of fifty bytes


def network(n=4, **metadata):
    """The bytes of a network of n units without edges, with other texts."""
    arrays = {
        "bias": np.zeros(n),
        "indptr": np.zeros(n + 1, np.int64),
        "parent": np.zeros(0, np.int64),
        "weight": np.zeros(0),
    }
    good = {"names": json.dumps([f"u{k}" for k in range(n)]), "layers": "null"}
    texts = {"format": "sbnet-network", "format_version": "1", "made_by": "me", **good, **metadata}
    return hostile_files.File(arrays, texts).sealed()


def header(text, data=b"", length=None):
    raw = text.encode()
    return struct.pack("<Q", len(raw) if length is None else length) + raw + data


def filled(piece):
    return piece * (SIZE // len(piece))


META = '{"__metadata__":{"format":"sbnet-network","format_version":"1"}'
FILES = {
    "names in lists": network(names="[" + filled("[],") + "[]]"),
    "names in objects": network(names="[" + filled("{},") + "{}]"),
    "names without variables": network(names=json.dumps([f"u{k}" for k in range(SIZE // 8)])),
    "one long name": network(1, names=json.dumps([filled("x")])),
    "numbers for names": network(names="[" + filled("-9,") + "1]"),
    "layers in lists": network(layers="[" + filled("[],") + "[]]"),
    "layers without variables": network(layers="[" + filled("999,") + "1]"),
    "many arrays": header(META + filled(',"a":{"dtype":"F64","shape":[0],"data_offsets":[0,0]}') + "}"),
    "many texts": header('{"__metadata__":{"a":"b"' + filled(',"aa":""') + "}}"),
    "lists in the header": header(META + ',"x":[' + filled("[],") + "[]]}"),
    "a deep header": header(META + ',"x":' + filled("[")),
    "a header that is not there": header("{", filled(b"\0"), 2**62),
    "a long header that is not there": header("{", filled(b"\0"), 99_000_000),
    "an array that is not there": header(
        f'{META},"bias":{{"dtype":"F64","shape":[{2**58}],"data_offsets":[0,{2**61}]}}}}'
    ),
    "many dimensions": header(META + ',"bias":{"dtype":"F64","shape":[' + filled("1,") + '1],"data_offsets":[0,8]}}'),
    "version": network(format_version=filled("9")),
    "a network": network(SIZE // 30),
}


@pytest.mark.parametrize("kind", FILES)
def test_a_file_takes_a_few_times_its_size_in_memory(tmp_path, kind):
    path, data = tmp_path / "net.sbn", FILES[kind]
    path.write_bytes(data)
    tracemalloc.start()
    try:
        if kind in ("a network", "one long name"):
            assert sb.load(path).n_units > 0
        else:
            with pytest.raises(FileFormatError):
                sb.load(path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < FEW * max(len(data), SIZE), (peak, len(data))


START = sb.layered((2, 3), rng=0)
ROWS = sb.sample(START, 6, rng=1)[:, 2:]


@pytest.mark.parametrize("key", ["settings", "rng", "first_rng", "best", "seconds"])
def test_a_checkpoint_takes_a_few_times_its_size_in_memory(tmp_path, key):
    path = tmp_path / "run.sbn"
    sb.fit(START, ROWS, epochs=1, checkpoint=path, rng=0, threads=1)
    file = hostile_files.opened(path.read_bytes())
    file.metadata[key] = "[" + filled("[],") + "[]]"
    path.write_bytes(file.sealed())
    tracemalloc.start()
    try:
        with pytest.raises(SBNetError, match="cannot be resumed"):
            sb.fit(START, ROWS, epochs=2, resume=path, threads=1)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < FEW * SIZE


# --- texts ------------------------------------------------------------------------------------------------------------

FEW_FOR_TEXTS = 120
"""What a small text may take in memory, for each of its bytes: `tomllib` and tables take some dozens."""


def bif(name: str, states: int) -> str:
    listed = ", ".join(f"s{k}" for k in range(states))
    table = ", ".join([repr(1.0 / states)] * states)
    block = f"variable {name} {{ type discrete [ {states} ] {{ {listed} }}; }}"
    return f"{block} probability ( {name} ) {{ table {table}; }}"


def defaults(n: int) -> str:
    """Tables of many parents in a few bytes each: rows that are not there, and a default."""
    heads = [f"variable v{i} {{ type discrete [ 2 ] {{ y, n }}; }}" for i in range(n)]
    given = [", ".join(f"v{j}" for j in range(max(0, i - 17), i)) for i in range(n)]
    rows = [f"probability ( v{i} {'|' if p else ''} {p} ) {{ default 0.5, 0.5; }}" for i, p in enumerate(given)]
    return "\n".join(heads + rows)


LETTERS = 40_000
TEXTS = {
    "a key of many parts": ("toml", "a" + ".a" * LETTERS + " = 1", "a key has more than 8 parts"),
    "a table of many parts": ("toml", "[a" + ".a" * LETTERS + "]", "a key has more than 8 parts"),
    "a prior of many parts": ("toml", "[units.x]\nprior" + ".a" * LETTERS + " = 1", "a key has more than 8 parts"),
    "an array that ends with a newline": ("toml", "x = [" + "#\n" * LETTERS, "this is not TOML"),
    "a variable of many states": ("bif", bif("a", 6_000), "has 6000 states; 127 are the limit"),
    "long names for states": ("bif", bif("a" * LETTERS, 1_000), "1000 states; 127 are the limit"),
    "tables of defaults": ("bif", defaults(60), "defaults fill more than 262,144 entries of tables; that is the limit"),
    "properties without end": ("bif", "network x { " + "property " * LETTERS, "'}' is expected here"),
    "comments without end": ("bif", "/* " * LETTERS, "there is no variable in the file; is it BIF?"),
    "names behind numbers": ("uai", "1 # a" + " a" * LETTERS, "a UAI file begins with BAYES"),
    "a table of all variables": (
        "uai",
        f"BAYES 15000 {'2 ' * 15_000} 15000 15000 {' '.join(map(str, range(15_000)))}" + " 1 0" * 14_999,
        "the table of variable 14999 has more than 4,194,304 entries",
    ),
    "nodes in nodes": ("xdsl", "<a>" * LETTERS, "this is not XML: no element found"),
}


@pytest.mark.parametrize("kind", TEXTS)
def test_a_text_takes_a_few_times_its_size_in_memory(tmp_path, kind):
    ending, text, message = TEXTS[kind]
    path = tmp_path / f"net.{ending}"
    path.write_text(text)
    tracemalloc.start()
    try:
        with pytest.raises(FileFormatError) as error:
            sb.read(path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert message in str(error.value)
    assert peak < FEW_FOR_TEXTS * max(len(text), 100_000), (peak, len(text))
