"""The safetensors format, which every language can read, with a checksum: arrays, and metadata as text.

What is read is taken for hostile: nothing is built from it before its size, its range and its place were looked at, so
that a file costs a few times its own size in memory, and an error is one short sentence.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
from collections.abc import Mapping
from itertools import islice
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import safetensors.numpy

from sbnet.errors import FileFormatError
from sbnet.files.atomic import PathLike, as_file, write_atomically

_NAMES = {"<f8": "F64", "<i8": "I64"}
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
        data = b"".join((header, file.read()))
    try:
        arrays = safetensors.numpy.load(data)
    except (safetensors.SafetensorError, ValueError, KeyError) as error:  # KeyError: a type that NumPy lacks
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
    """The bytes of a file: equal contents give equal files, with the numbers at a multiple of eight.

    The library would write the metadata in an order that differs from one call to the next.
    """
    header: dict[str, Any] = {"__metadata__": dict(sorted(metadata.items()))}
    data, end = [], 0
    for key in sorted(arrays):
        array = np.ascontiguousarray(arrays[key])
        begin, end = end, end + array.nbytes
        header[key] = {"dtype": _NAMES[array.dtype.str], "shape": list(array.shape), "data_offsets": [begin, end]}
        data.append(array.data)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return b"".join([len(text).to_bytes(8, "little"), text, *data])


def checksum(arrays: Mapping[str, Any], metadata: Mapping[str, str]) -> str:
    """The digest of everything but itself; docs/reference/file_format.md says how it is made."""
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


def _header(file: BinaryIO, name: str) -> tuple[bytes, dict[str, str]]:
    """The header, its length in 8 bytes, little-endian, then JSON, and the metadata in it.

    The library gives metadata only of files that it opens itself, and builds what a header asks for without a limit.
    """
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
        return start[:8] + text, _metadata(parse(text.decode(), _MAX_PARTS))
    except ValueError:  # not UTF-8, not JSON, not an object of what it should be, or absurd numbers
        raise FileFormatError(f"{name} is damaged: its header cannot be read") from None


def _metadata(header: Any) -> dict[str, str]:
    metadata = header.get("__metadata__", {}) if isinstance(header, dict) else None
    if not isinstance(metadata, dict):
        raise ValueError
    for text in (*metadata, *metadata.values()):
        if not isinstance(text, str):
            raise ValueError
        text.encode()  # half of a surrogate pair is an error, of which a checksum knows nothing
    return metadata


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
