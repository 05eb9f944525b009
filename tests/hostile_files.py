"""Hostile files by the thousand: whole, with right checksums, and of contents that no file should have.

Hypothesis chooses which parts go wrong, and a seed; a seeded generator chooses how. Files are put together here byte by
byte from what docs/reference/file_format.md says, not by the code under test.
"""

from __future__ import annotations

import hashlib
import json
import random
import struct
from dataclasses import dataclass, field

import numpy as np
from hypothesis import strategies as st

TYPES = {"F64": "<f8", "I64": "<i8"}
WHOLE = (-1, 0, 1, 2, 3, 4, 5, -2, 2**31, 2**62, 2**63 - 1, -(2**63), -(2**63) + 1)
REAL = (0.0, -0.0, 0.5, 1.0, 1.0000001, -1e-9, 2.0, 1e8, 1.0000001e8, -1e300, np.nan, np.inf, -np.inf, 5e-324)
LONG = "long " * 2_000
DEEP = "[" * 3_000
JSON = (
    None,
    True,
    0,
    -1,
    1.5,
    10**30,
    float("nan"),
    float("inf"),
    "",
    "x",
    "\ud800",
    "a\0b",
    LONG,
    [],
    {},
    [[]],
    [None],
)
TEXTS = (
    "",
    "x",
    "null",
    "NaN",
    "{",
    "[",
    "]",
    "[]",
    "{}",
    '""',
    "0",
    "-1",
    "1e999",
    "9" * 5_000,
    DEEP,
    LONG,
    "[[],[]]",
)


@dataclass
class Entry:
    """An array as the header describes it; `place` and `code` may be anything."""

    code: object
    shape: object
    place: object
    more: dict = field(default_factory=dict)


@dataclass
class File:
    """A safetensors file in parts, before it is sealed."""

    arrays: dict[str, np.ndarray]
    metadata: dict[str, object]
    entries: dict[str, Entry] = field(default_factory=dict)
    twice: list[str] = field(default_factory=list)
    header: dict[str, object] = field(default_factory=dict)
    tail: bytes = b""
    blanks: int = 0
    slip: int = 0

    def sealed(self) -> bytes:
        """The bytes of the file, with the checksum that its contents ask for."""
        entries, data = {}, b""
        for name, array in self.arrays.items():
            code = "F64" if array.dtype.kind == "f" else "I64"
            entries[name] = Entry(code, list(array.shape), [len(data), len(data) + array.nbytes])
            data += array.tobytes()
        entries |= self.entries
        data += self.tail
        metadata = dict(self.metadata)
        if "sha256" not in metadata:
            metadata["sha256"] = _digest(metadata, entries, data)
        pairs = [("__metadata__", metadata), *self.header.items()]
        pairs += [
            (name, {"dtype": e.code, "shape": e.shape, "data_offsets": e.place} | e.more) for name, e in entries.items()
        ]
        pairs += [pair for pair in pairs if pair[0] in self.twice]
        text = "{" + ",".join(f"{json.dumps(key)}:{json.dumps(value)}" for key, value in pairs) + "}"
        raw = text.encode() + b" " * self.blanks
        return struct.pack("<Q", max(0, len(raw) + self.slip)) + raw + data


def _digest(metadata, entries, data):
    digest = hashlib.sha256()
    for key in sorted(metadata):
        digest.update(f"{key}\0{metadata[key]}\0".encode("utf-8", "surrogatepass"))
    for name in sorted(entries):
        e = entries[name]
        if isinstance(e.code, str) and e.code in TYPES and isinstance(e.place, list) and isinstance(e.shape, list):
            digest.update(f"{name}\0{TYPES[e.code]}\0{tuple(e.shape)}\0".encode("utf-8", "surrogatepass"))
            digest.update(data[_bound(e.place[0]) : _bound(e.place[-1])] if e.place else b"")
    return digest.hexdigest()


def _bound(value):
    return value if isinstance(value, int) and abs(value) < 2**62 else 0


def opened(data: bytes) -> File:
    """The parts of a good file, read by hand."""
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    metadata = {key: value for key, value in header.pop("__metadata__").items() if key != "sha256"}
    arrays = {}
    for name, entry in header.items():
        begin, end = (8 + length + offset for offset in entry["data_offsets"])
        arrays[name] = np.frombuffer(data[begin:end], TYPES[entry["dtype"]]).reshape(entry["shape"]).copy()
    return File(arrays, metadata)


# --- what can go wrong with any file --------------------------------------------------------------------------------


def number(file, rng):
    """One number, or several, of an array."""
    array = file.arrays[rng.choice(sorted(file.arrays))]
    for _ in range(rng.choice([1, 1, 2, 5])):
        if array.size:
            array.flat[rng.randrange(array.size)] = rng.choice(REAL if array.dtype.kind == "f" else WHOLE)


def length(file, rng):
    """An array that is too short, too long or empty."""
    name = rng.choice(sorted(file.arrays))
    array = file.arrays[name].ravel()
    size = max(0, rng.choice([0, 1, array.size - 1, array.size + 1, 2 * array.size]))
    file.arrays[name] = np.resize(array, size).astype(array.dtype) if array.size else np.zeros(size, array.dtype)


def shape(file, rng):
    """Another number of dimensions, or a shape that is none."""
    name = rng.choice(sorted(file.arrays))
    size = file.arrays[name].size
    good = [(size, 1), (1, size), (), (0,), (0, 2**40), (1,) * 9, (size,) + (1,) * 7]
    if rng.random() < 0.5:
        wanted = rng.choice([other for other in good if np.prod(other, dtype=object) == size] or [(size, 1)])
        file.arrays[name] = file.arrays[name].reshape(wanted) if len(wanted) < 33 else file.arrays[name]
    else:
        _entry(file, name).shape = rng.choice(
            [None, 3, "x", [-1], [2**63], [2**59, 2**59], [1.5], [True], [[1]], [10**30]]
        )


def kind(file, rng):
    """An array of another type, or of none."""
    name = rng.choice(sorted(file.arrays))
    if rng.random() < 0.5:
        other = "<i8" if file.arrays[name].dtype.kind == "f" else "<f8"
        file.arrays[name] = np.nan_to_num(file.arrays[name]).clip(-9e15, 9e15).astype(other)
    else:
        _entry(file, name).code = rng.choice(
            ["F32", "I32", "BF16", "F6", "U64", "C64", "BOOL", "", None, 3, [], {}, LONG]
        )


def place(file, rng):
    """Arrays that share their bytes, leave gaps, run backwards or out of the file."""
    name, other = rng.choice(sorted(file.arrays)), rng.choice(sorted(file.arrays))
    entry, there = _entry(file, name), _entry(file, other).place
    good = isinstance(entry.place, list) and len(entry.place) == 2 and all(type(k) is int for k in entry.place)
    begin, end = entry.place if good else (0, 8)
    entry.place = rng.choice(
        [there, [end, begin], [begin, end + 8], [begin + 8, end + 8], [0, 2**62], [-8, 0], [2**63, 2**63], [begin],
         [begin, end, end], [0.0, 8.0], ["0", "8"], [True, False], None, "x", [10**30, 10**31], {}, [[], []]]
    )  # fmt: skip


def described(file, rng):
    """An entry of the header with a part too many."""
    _entry(file, rng.choice(sorted(file.arrays))).more = {rng.choice(["x", "dtype", "shape"]): rng.choice(JSON)}


def lacking(file, rng):
    """An array or a text is missing."""
    parts = rng.choice([file.arrays, file.metadata])
    if len(parts) > 1:
        del parts[rng.choice(sorted(parts))]


def additional(file, rng):
    """An array, a text or something else that nobody asked for."""
    name = rng.choice(["gate", "warm", "optimizer_1", "optimizer_99", "optimizer_x", "", "__x__", "ü", LONG, "\ud800"])
    if rng.random() < 0.5:
        file.arrays[name] = np.zeros(rng.randrange(3))
    elif rng.random() < 0.5:
        file.metadata[name] = rng.choice(TEXTS)
    else:
        file.header[name] = rng.choice(JSON)


def version(file, rng):
    texts = ["0", "-1", "2", "01", "1 ", " 1", "1.0", "1e0", "２", "²", "+1", "", "one", "9" * 9, "9" * 5_000, LONG]
    file.metadata["format_version"] = rng.choice(texts)
    if rng.random() < 0.3:
        file.metadata["made_by"] = rng.choice(["", LONG, "\n" * 400])


def other_format(file, rng):
    file.metadata["format"] = rng.choice(["sbnet-network", "sbnet-checkpoint", "pt", "", LONG, "sbnet-network "])


def not_text(file, rng):
    """Metadata that is not a text."""
    file.metadata[rng.choice(sorted(file.metadata))] = rng.choice([*JSON])


def repeated(file, rng):
    """A key that comes twice."""
    file.twice.append(rng.choice(["__metadata__", *file.arrays]))


def slipped(file, rng):
    """A header whose length is a little, or far, from the truth; or blanks after it, which are allowed."""
    file.blanks = rng.choice([0, 1, 7, 8])
    file.slip = rng.choice([0, 0, -1, 1, 8, -8, 10**6, 2**62, -(2**62)])


def more_data(file, rng):
    file.tail = rng.choice([b"\0", b"\0" * 8, b"tail" * 20])


def _entry(file, name):
    """The entry of an array as it would be written, to be changed."""
    if name not in file.entries:
        before = list(file.arrays)[: list(file.arrays).index(name)]
        begin, array = sum(file.arrays[other].nbytes for other in before), file.arrays[name]
        code = "F64" if array.dtype.kind == "f" else "I64"
        file.entries[name] = Entry(code, list(array.shape), [begin, begin + array.nbytes])
    return file.entries[name]


ANY = (
    number,
    number,
    number,
    length,
    shape,
    kind,
    place,
    described,
    lacking,
    additional,
    version,
    other_format,
    not_text,
)
ANY += (repeated, slipped, more_data)


# --- networks -------------------------------------------------------------------------------------------------------


def names(file, rng):
    """Names that are no list, no texts, not as many as units, twice, or absurd."""
    n = max(0, file.arrays["indptr"].size - 1) if "indptr" in file.arrays else 3
    good = [f"u{k}" for k in range(n)]
    odd = rng.choice([1, None, "", [], {}, True, LONG, "\ud800", "a\0b", "\n", "u0", 1.5, "ü" * 50, 10**30])
    choices = [*TEXTS, json.dumps([*good, odd]), json.dumps([odd, *good][:n]), json.dumps(good[:-1]), json.dumps(odd)]
    choices += [json.dumps(dict.fromkeys(good, 0)), json.dumps([good]), json.dumps("u" * n), json.dumps([LONG] * n)]
    file.metadata["names"] = rng.choice(choices)


def layers(file, rng):
    """Layers that are negative, not whole, huge, nested, or do not add up."""
    n = file.arrays["bias"].size if "bias" in file.arrays else 3
    choices = [[n], [1, n - 1], [n, 0], [-1, n + 1], [float(n)], [n + 0.5], [True] * n, [10**30], [2**63, -(2**63), n]]
    choices += [[[n]], [str(n)], [None], [], {}, n, str(n), False, [float("inf")], [float("nan")], [1] * n, [0] * 500]
    file.metadata["layers"] = rng.choice([*TEXTS, *map(json.dumps, choices)])


def wrapping(file, rng):
    """Offsets whose differences wrap around, all of them in the end where they should be."""
    n, m = max(1, file.arrays["bias"].size if "bias" in file.arrays else 4), 0
    if "parent" in file.arrays:
        m = file.arrays["parent"].size
    inner = [rng.choice(WHOLE) for _ in range(n - 1)]
    if rng.random() < 0.3 and n == 4:
        inner = [2**63 - 1, -2, -1]
    file.arrays["indptr"] = np.array([0, *inner, m], dtype=np.int64)


def edges(file, rng):
    """Parents anywhere at all."""
    if "parent" in file.arrays:
        size = file.arrays["parent"].size
        file.arrays["parent"] = np.array([rng.choice(WHOLE) for _ in range(size)], dtype=np.int64)


NETWORK = (*ANY, names, names, layers, layers, wrapping, edges)


# --- mixtures -------------------------------------------------------------------------------------------------------


def columns(file, rng):
    """Columns that are no list, no texts, no units, twice, or absurd."""
    odd = rng.choice([1, None, [], {}, [[]], True, LONG, "\ud800", "nobody", "", 1.5])
    choices = [["rain", "wet"], ["rain", "rain"], ["rain", odd], [odd], odd, [["rain"]], {"rain": 0}, ["rain"] * 500]
    file.metadata["columns"] = rng.choice([*TEXTS, *map(json.dumps, choices)])


def count(file, rng):
    """Another number of networks, or none."""
    counts = ["0", "1", "2", "3", "00002", "0000299999999", "2.0", "+2", " 2", "²", "٢", "1_0", "199", "200", "201"]
    file.metadata["networks"] = rng.choice([*TEXTS, *counts])


def part(file, rng):
    """Whatever can be wrong with a network, in one of them."""
    mark = rng.choice(["0.", "1."])
    kept = [key for key in file.arrays if not key.startswith(mark)]
    arrays = {key[2:]: array for key, array in file.arrays.items() if key.startswith(mark)}
    inner = File(arrays, {key[2:]: text for key, text in file.metadata.items() if key.startswith(mark)})
    if inner.arrays and inner.metadata:
        rng.choice([number, length, lacking, additional, not_text, names, layers, wrapping, edges])(inner, rng)
    file.arrays = {key: file.arrays[key] for key in kept} | {mark + key: a for key, a in inner.arrays.items()}
    file.metadata = {key: text for key, text in file.metadata.items() if not key.startswith(mark)}
    file.metadata |= {mark + key: text for key, text in inner.metadata.items()}


def renumbered(file, rng):
    """An array or a text that belongs to another network, or to none."""
    parts = rng.choice([file.arrays, file.metadata])
    key = rng.choice(sorted(parts))
    parts[rng.choice(["0", "1", "7", "00", "-1", "", "x"]) + "." + key.partition(".")[2]] = parts.pop(key)


MIXTURE = (*ANY, columns, columns, columns, count, count, part, part, part, part, renumbered, renumbered)


# --- checkpoints ----------------------------------------------------------------------------------------------------


def generator(file, rng):
    """The name of a generator, or a number of its state."""
    key = rng.choice(["rng", "first_rng"])
    try:
        state = json.loads(file.metadata[key])
        inner = state["state"]
    except (KeyError, TypeError, ValueError, RecursionError):
        file.metadata[key] = rng.choice(TEXTS)
        return
    what = rng.random()
    if what < 0.4:
        known = ["MT19937", "PCG64", "PCG64DXSM", "Philox", "SFC64"]
        others = [
            "RandomState",
            "bytes",
            "seed",
            "default_rng",
            "Generator",
            "__class__",
            "shuffle",
            "",
            LONG,
            None,
            3,
            [],
        ]
        state["bit_generator"] = rng.choice(known + others)
    elif what < 0.7 and isinstance(inner, dict):
        inner[rng.choice([*inner, "pos", "x"])] = rng.choice(
            [*WHOLE, *JSON, [0] * 624, [2**32] * 624, [-1] * 4, [0.5] * 4]
        )
    elif what < 0.9:
        state[rng.choice([*state, "has_uint32", "uinteger", "buffer_pos", "x"])] = rng.choice([*WHOLE, *JSON])
    else:
        state.pop(rng.choice(sorted(state)), None)
    file.metadata[key] = json.dumps(state)


def best(file, rng):
    number = rng.choice([*JSON, *WHOLE])
    pairs = [[number, -1.0], [1, number], [1], [1, -1.0, 0], number, [1, None], [0, -3.5], [True, -1.0], [2, 5]]
    file.metadata["best"] = rng.choice([*TEXTS, *map(json.dumps, pairs)])


def seconds(file, rng):
    file.metadata["seconds"] = rng.choice([*TEXTS, "nan", "-1.0", "inf", "1_0", "0x1p3", "٣", "1e-400", " 3 ", "3j"])


def settings(file, rng):
    """Settings that are no mapping, or other ones."""
    try:
        known = json.loads(file.metadata["settings"])
        known[rng.choice(sorted(known))] = rng.choice([*JSON])
        file.metadata["settings"] = rng.choice([json.dumps(known), *TEXTS])
    except (IndexError, KeyError, TypeError, ValueError, AttributeError, RecursionError):
        file.metadata["settings"] = rng.choice(TEXTS)


def warm(file, rng):
    """Starting points that are no means."""
    if "warm" in file.arrays and file.arrays["warm"].size:
        flat = file.arrays["warm"] = file.arrays["warm"].ravel().astype(float)
        flat[rng.randrange(flat.size)] = rng.choice(REAL)


CHECKPOINT = (*ANY, generator, generator, generator, best, seconds, settings, warm, warm)


@st.composite
def wrecks(draw, ways):
    """What to do to a good file, in many ways: a function from files and numbers to bytes."""
    chosen = draw(st.lists(st.sampled_from(ways), min_size=1, max_size=3))
    seed = draw(st.integers(0, 2**32 - 1))

    def wreck(file: File, number: int) -> bytes:
        rng = random.Random(f"{seed} {number}")
        for way in chosen:
            if file.arrays:
                way(file, rng)
        data = file.sealed()
        if rng.random() < 0.05:  # and some that are damaged, of all kinds
            at = rng.randrange(len(data))
            data = data[:at] + rng.randbytes(rng.randrange(4)) + data[at + rng.randrange(9) :]
        return data

    return wreck
