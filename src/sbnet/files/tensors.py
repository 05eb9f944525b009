"""The safetensors format, which every language can read, with a checksum: arrays, and metadata as text.

What is read is taken for hostile: nothing is built from it before its size, its range and its place were looked at, so
that a file costs a few times its own size in memory, and an error is one short sentence.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import stat
from collections.abc import Mapping
from itertools import islice
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from sbnet.errors import FileFormatError
from sbnet.files.atomic import PathLike, as_file, write_atomically

_TYPES = {"F64": "<f8", "I64": "<i8"}
_NAMES = {dtype: name for name, dtype in _TYPES.items()}
_SIZE = 8
"""Bytes of a number, of either type."""
_MAX_DIMENSIONS = 8
_MAX_HEADER = 100_000_000
"""Bytes of a header, at most, as in the reference implementation of the format."""
_MAX_PARTS = 20_000
"""Parts of a header: a dozen arrays and texts have a few hundred."""
_PART = re.compile(r'"(?:[^"\\]|\\.)*+"?|[\[\]{},]', re.DOTALL)


class Kind(NamedTuple):
    """A kind of file: its name and version in the metadata, and what a reader of errors would call it."""

    name: str
    version: int
    wanted: str


class Stored(NamedTuple):
    """What a file holds: its name, as it was given, its arrays and its texts."""

    name: str
    arrays: dict[str, np.ndarray[Any, Any]]
    metadata: dict[str, str]


def write_tensors(path: PathLike, kind: Kind, arrays: Mapping[str, Any], metadata: Mapping[str, str]) -> None:
    """Write arrays and text to a safetensors file with a checksum, all or nothing."""
    named = {"format": kind.name, "format_version": str(kind.version), **metadata}
    sealed = {**named, "sha256": checksum(arrays, named)}
    write_atomically(path, _serialised(arrays, sealed))


def read_tensors(path: PathLike, kind: Kind, *others: Kind) -> Stored:
    """Read what :func:`write_tensors` wrote, of one of these kinds, or say in one sentence why it cannot be read."""
    name = as_file(path)
    with open(name, "rb") as file:
        header, metadata = _header(file, name)
        _check_kind(name, metadata, next((k for k in others if k.name == metadata.get("format")), kind))
        data = file.read()
    try:
        arrays = _arrays(header, data)
    except ValueError as error:
        raise FileFormatError(f"{name} is damaged or cut short: {error}") from None
    if metadata.pop("sha256", None) != checksum(arrays, metadata):
        raise FileFormatError(f"{name} is damaged: its contents do not match its checksum")
    return Stored(name, arrays, metadata)


def is_tensors(name: str) -> bool:
    """Does a file begin as safetensors files do? The length of a header is never as large as eight letters read."""
    with open(name, "rb") as file:
        start = file.read(9)
        return start[8:] == b"{" and int.from_bytes(start[:8], "little") <= _MAX_HEADER


def _serialised(arrays: Mapping[str, Any], metadata: Mapping[str, str]) -> bytes:
    """The bytes of a file: equal contents give equal files, with the numbers at a multiple of eight."""
    header: dict[str, Any] = {"__metadata__": dict(sorted(metadata.items()))}
    data, end = [], 0
    for key in sorted(arrays):
        array = np.ascontiguousarray(arrays[key])
        begin, end = end, end + array.nbytes
        header[key] = {"dtype": _NAMES[array.dtype.str], "shape": list(array.shape), "data_offsets": [begin, end]}
        data.append(array.data)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % _SIZE)
    return b"".join([len(text).to_bytes(8, "little"), text, *data])


def checksum(arrays: Mapping[str, Any], metadata: Mapping[str, str]) -> str:
    """The digest of everything but itself; docs/files.md says how it is made."""
    digest = hashlib.sha256()
    for key in sorted(metadata):
        digest.update(f"{key}\0{metadata[key]}\0".encode())
    for key in sorted(arrays):
        array = np.ascontiguousarray(arrays[key])
        digest.update(f"{key}\0{array.dtype.str}\0{array.shape}\0".encode())
        digest.update(array.data)
    return digest.hexdigest()


def parse(text: str, parts: int) -> Any:
    """The value of a text in JSON that has at most so many strings, brackets and commas; a ValueError if it has none.

    Three bytes of text can be seventy of objects: what has more parts than there can be is refused before it is built.
    """
    if sum(1 for _ in islice(_PART.finditer(text), parts + 1)) > parts:
        raise ValueError("it has too many parts")
    try:
        return json.loads(text, object_pairs_hook=_each_once)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key comes twice")
    return found


def _header(file: BinaryIO, name: str) -> tuple[dict[str, Any], dict[str, str]]:
    """What the header says about the arrays, and the metadata: its length in 8 bytes, little-endian, then JSON."""
    start = file.read(9)
    if len(start) < 8:
        raise FileFormatError(f"{name} is cut short: it has only {len(start)} bytes")
    if start[8:] != b"{":
        is_text = all(32 <= byte < 127 or byte in b"\t\r\n" for byte in start)
        hint = "; the name of a text ends in .toml, .bif, .uai, …, which says how it is read" if is_text else ""
        raise FileFormatError(f"{name} is not a network file: it is not in the safetensors format{hint}")
    length = int.from_bytes(start[:8], "little")
    text = start[8:] + file.read(length - 1) if 0 < length <= _room(file) else b""
    if len(text) != length:
        raise FileFormatError(f"{name} is damaged or cut short: its header should have {length} bytes")
    try:
        return _divided(parse(text.decode(), _MAX_PARTS))
    except ValueError:  # not UTF-8, not JSON, not an object of what it should be, or absurd numbers
        raise FileFormatError(f"{name} is damaged: its header cannot be read") from None


def _divided(header: Any) -> tuple[dict[str, Any], dict[str, str]]:
    metadata = header.pop("__metadata__", {}) if isinstance(header, dict) else None
    if not isinstance(metadata, dict):
        raise ValueError
    for text in (*header, *metadata, *metadata.values()):
        if not isinstance(text, str):
            raise ValueError
        text.encode()  # half of a surrogate pair is an error, of which a checksum knows nothing
    return header, metadata


def _room(file: BinaryIO) -> int:
    """How long a header can be; asking for more than there is would take that much memory first."""
    status = os.fstat(file.fileno())
    return min(_MAX_HEADER, status.st_size - 8) if stat.S_ISREG(status.st_mode) else _MAX_HEADER


def _check_kind(name: str, metadata: Mapping[str, str], kind: Kind) -> None:
    if metadata.get("format") == "sbnet-checkpoint" != kind.name:
        raise FileFormatError(
            f"{name} is a checkpoint of learning, not a network; fit(..., resume={name!r}) goes on from it"
        )
    if metadata.get("format") != kind.name:
        raise FileFormatError(f"{name} is a safetensors file, but not {kind.wanted}")
    found = metadata.get("format_version", "")
    if not re.fullmatch("[1-9][0-9]{0,8}", found):
        raise FileFormatError(f"{name} is damaged: its format version reads {found[:20]!r}")
    if int(found) > kind.version:
        maker = " ".join(metadata.get("made_by", "an unknown program").split())[:40]
        raise FileFormatError(
            f"{name} has format version {found} (made by {maker}); "
            f"this sbnet reads up to version {kind.version}. Upgrade sbnet to read it"
        )


class _Place(NamedTuple):
    """Where an array stands among the data, in bytes."""

    begin: int
    end: int
    key: str
    type: str
    shape: tuple[int, ...]


def _arrays(header: Mapping[str, Any], data: bytes) -> dict[str, np.ndarray[Any, Any]]:
    """Views of the data; arrays follow one another without gaps, and none shares its bytes with another."""
    arrays, end = {}, 0
    for place in sorted(_place(key, entry) for key, entry in header.items()):
        if place.begin != end or place.end - end != _SIZE * math.prod(place.shape):
            raise ValueError(f"the place of its array {place.key[:40]!r} is wrong")
        end = place.end
        if end > len(data):
            break
        arrays[place.key] = np.frombuffer(memoryview(data)[place.begin : end], place.type).reshape(place.shape)
    if end != len(data):
        raise ValueError(f"its arrays should have {end:,} bytes, but have {len(data):,}")
    return arrays


def _place(key: str, entry: Any) -> _Place:
    if not isinstance(entry, dict) or entry.keys() != {"dtype", "shape", "data_offsets"}:
        raise ValueError(f"its array {key[:40]!r} is not described")
    kind, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(kind, str) or kind not in _TYPES:
        raise ValueError(f"its array {key[:40]!r} has an unknown type")
    if not (_are_counts(shape) and _are_counts(offsets)) or len(shape) > _MAX_DIMENSIONS or len(offsets) != 2:
        raise ValueError(f"its array {key[:40]!r} has an impossible shape or place")
    return _Place(offsets[0], offsets[1], key, _TYPES[kind], tuple(shape))


def _are_counts(values: Any) -> bool:
    """Whole numbers, each such that an array could have so many bytes."""
    return isinstance(values, list) and all(type(value) is int and 0 <= value < 2**59 for value in values)
