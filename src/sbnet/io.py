"""Files: a network in an open, safe format.

A file is in the safetensors format, which every language can read: four arrays, and metadata as text: the names of the
units, the version of the format, what made it, and a checksum of all the rest. Nothing in it is ever executed.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import safetensors
import safetensors.numpy

from sbnet._version import __version__
from sbnet.errors import FileFormatError
from sbnet.graph import Graph
from sbnet.network import Network

FORMAT = "sbnet-network"
FORMAT_VERSION = 1
_ARRAYS = {"indptr": "int64", "parent": "int64", "weight": "float64", "bias": "float64"}


def save(network: Network, path: str | os.PathLike[str]) -> None:
    """Write a network to a file.

    The file is written beside its final place, flushed to disk, then renamed: whatever happens on the way, `path` holds
    either the old file or the new one, whole.

    Examples
    --------
    >>> import sbnet as sb
    >>> sb.save(sb.layered((2, 4, 6), rng=0), "small.sbn")  # doctest: +SKIP
    >>> sb.load("small.sbn")  # doctest: +SKIP
    """
    if not isinstance(network, Network):
        raise TypeError(f"save() writes a Network; got {type(network).__name__}")
    graph = network.graph
    arrays = {"indptr": graph.indptr, "parent": graph.parent, "weight": network.weight, "bias": network.bias}
    metadata = {
        "format": FORMAT,
        "format_version": str(FORMAT_VERSION),
        "made_by": f"sbnet {__version__}",
        "names": json.dumps(network.names),
        "layers": json.dumps(network.layers),
    }
    write_tensors(path, arrays, metadata)


def load(path: str | os.PathLike[str]) -> Network:
    """Read a network from a file written by :func:`save`.

    Raises
    ------
    FileFormatError
        If the file is not a whole network: cut short, damaged, of another kind, or from a later version of sbnet.
    """
    arrays, metadata = read_tensors(path, FORMAT, FORMAT_VERSION, "one that sbnet.save() wrote")
    try:
        names, layers = json.loads(metadata["names"]), json.loads(metadata["layers"])
        if not isinstance(names, list):
            raise TypeError("its names are not a list")
        fields = {name: np.asarray(arrays[name]) for name in _ARRAYS}
        if any(fields[name].dtype != dtype for name, dtype in _ARRAYS.items()):
            raise FileFormatError(f"{os.fspath(path)} holds arrays of unexpected types")
        graph = Graph(fields["indptr"], fields["parent"])
        layers = None if layers is None else tuple(layers)
        return Network(tuple(names), graph, fields["weight"], fields["bias"], layers=layers)
    except FileFormatError:
        raise
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise FileFormatError(f"{os.fspath(path)} does not describe a network: {error}") from None


def write_tensors(path: str | os.PathLike[str], arrays: Mapping[str, Any], metadata: dict[str, str]) -> None:
    """Write arrays and text to a safetensors file with a checksum, all or nothing."""
    sealed = {**metadata, "sha256": _checksum(arrays, metadata)}
    write_atomically(path, safetensors.numpy.save(dict(arrays), metadata=sealed))


def read_tensors(
    path: str | os.PathLike[str], format_name: str, version: int, wanted: str
) -> tuple[dict[str, Any], dict[str, str]]:
    """Read what :func:`write_tensors` wrote, or say in one sentence why it cannot be read; `wanted` is what it is."""
    name = os.fspath(path)
    data = Path(path).read_bytes()
    metadata = _metadata(data, name)
    if metadata.get("format") == "sbnet-checkpoint" != format_name:
        raise FileFormatError(
            f"{name} is a checkpoint of learning, not a network; fit(..., resume={name!r}) goes on from it"
        )
    if metadata.get("format") != format_name:
        raise FileFormatError(f"{name} is a safetensors file, but not {wanted}")
    found = metadata.get("format_version", "")
    if not found.isdecimal() or len(found) > 9:
        raise FileFormatError(f"{name} is damaged: its format version reads {found[:20]!r}")
    if int(found) > version:
        raise FileFormatError(
            f"{name} has format version {found} (made by {metadata.get('made_by', 'an unknown program')}); "
            f"this sbnet reads up to version {version}. Upgrade sbnet to read it"
        )
    try:
        arrays = safetensors.numpy.load(data)
    except (safetensors.SafetensorError, ValueError, KeyError, TypeError) as error:
        raise FileFormatError(f"{name} is damaged or cut short: {error}") from None
    if metadata.pop("sha256", None) != _checksum(arrays, metadata):
        raise FileFormatError(f"{name} is damaged: its contents do not match its checksum")
    return arrays, metadata


def write_atomically(path: str | os.PathLike[str], data: bytes) -> None:
    """Replace the file at `path` by `data`, or leave it as it was."""
    target = Path(os.path.realpath(path))  # through a symbolic link, as an ordinary write would go
    handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=".sbnet-", suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, _mode_for(target))
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
    if hasattr(os, "O_DIRECTORY"):  # make the rename itself last
        folder = os.open(target.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _mode_for(target: Path) -> int:
    """The permissions an ordinary write would leave: those of the old file, or the default of the process."""
    try:
        return target.stat().st_mode & 0o777
    except FileNotFoundError:
        mask = os.umask(0)
        os.umask(mask)
        return 0o666 & ~mask


def _checksum(arrays: Mapping[str, Any], metadata: Mapping[str, str]) -> str:
    digest = hashlib.sha256()
    for key in sorted(metadata):
        if key != "sha256":
            digest.update(f"{key}\0{metadata[key]}\0".encode())
    for key in sorted(arrays):
        array = np.asarray(arrays[key])
        digest.update(f"{key}\0{array.dtype.str}\0{array.shape}\0".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def _metadata(data: bytes, name: str) -> dict[str, str]:
    """The metadata in the header: its length in 8 bytes, little-endian, then JSON."""
    if len(data) < 8:
        raise FileFormatError(f"{name} is cut short: it has only {len(data)} bytes")
    length = int.from_bytes(data[:8], "little")
    if data[8:9] != b"{":
        raise FileFormatError(f"{name} is not a network file: it is not in the safetensors format")
    if length > len(data) - 8:
        raise FileFormatError(f"{name} is damaged or cut short: its header should have {length} bytes")
    try:
        metadata = json.loads(data[8 : 8 + length].decode()).get("__metadata__", {})
    except (ValueError, AttributeError, RecursionError):  # not UTF-8, not JSON, not an object, or absurd numbers
        raise FileFormatError(f"{name} is damaged: its header cannot be read") from None
    if not isinstance(metadata, dict):
        raise FileFormatError(f"{name} is damaged: its header cannot be read")
    return {str(key): str(value) for key, value in metadata.items()}
