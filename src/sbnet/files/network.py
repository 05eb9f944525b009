"""A network in a file: four arrays, the names of its units and the sizes of its layers. Nothing in it is executed.

A network with other units than sigmoid ones has a fifth array, their gates, and version 2 of the format, which tells an
older sbnet that it cannot read the file. Notes, where there are any, are one more text, which an older one passes over.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from sbnet._version import __version__
from sbnet.errors import FileFormatError
from sbnet.files.tensors import Kind, Stored, parse, write_tensors
from sbnet.model.graph import Graph
from sbnet.model.network import Network
from sbnet.model.notes import WORDS, Note, as_words, written

NETWORK = Kind("sbnet-network", 2, "one that sbnet.write() wrote")
_SIGMOID_ONLY = NETWORK._replace(version=1)
_NOTE_PARTS = 5 * (len(WORDS) + 2)
"""Strings, brackets and commas of one note, at most, with its name."""
_ARRAYS = {"indptr": "int64", "parent": "int64", "weight": "float64", "bias": "float64"}


def save_network(network: Network, name: str) -> None:
    """Write a network to a file, all or nothing."""
    arrays, texts = described(network)
    kind = NETWORK if "gate" in arrays else _SIGMOID_ONLY
    write_tensors(name, kind, arrays, {"made_by": f"sbnet {__version__}", **texts})


def described(network: Network) -> tuple[dict[str, Any], dict[str, str]]:
    """The arrays and the texts that a network is made of."""
    graph = network.graph
    arrays = {"indptr": graph.indptr, "parent": graph.parent, "weight": network.weight, "bias": network.bias}
    texts = {"names": json.dumps(network.names), "layers": json.dumps(network.layers)}
    notes = {name: as_words(note) for name, note in written(network.notes).items()}
    if notes:
        texts["notes"] = json.dumps(notes)
    if network.gate.any():
        arrays["gate"] = network.gate.astype(np.int64)
    return arrays, texts


def network_of(stored: Stored) -> Network:
    """The network that arrays and texts describe, or one sentence on why they do not."""
    try:
        return _network(stored)
    except FileFormatError:
        raise
    except ValueError as error:
        raise FileFormatError(f"{stored.name} does not describe a network: {error}") from None


def _network(stored: Stored) -> Network:
    arrays = stored.arrays
    lacking = [part for part in _ARRAYS if part not in arrays]
    lacking += [part for part in ("names", "layers") if part not in stored.metadata]
    if lacking:
        raise ValueError(f"it lacks {lacking[0]!r}")
    known = _ARRAYS | {"gate": "int64"}
    if arrays.keys() - known.keys():
        raise ValueError(f"nothing is known about its array {min(arrays.keys() - known.keys())[:40]!r}")
    if any(array.dtype != known[part] for part, array in arrays.items()):
        raise FileFormatError(f"{stored.name} holds arrays of unexpected types")
    names, layers = stored.metadata["names"], stored.metadata["layers"]
    most = arrays["indptr"].size  # the names of a network with so many units, and one to spare
    return Network(
        listed(names, most),
        Graph(arrays["indptr"], arrays["parent"]),
        arrays["weight"],
        arrays["bias"],
        arrays.get("gate", np.zeros(arrays["bias"].shape, np.int64)),
        layers=None if layers == "null" else listed(layers, most),
        notes=_notes(stored.metadata.get("notes", "{}"), most),
    )


def _notes(text: str, most: int) -> dict[str, Note]:
    """Notes in JSON, by name: objects of texts and of a list of two."""
    values = parse(text, _NOTE_PARTS * most + 2)
    if not isinstance(values, dict) or not all(isinstance(note, dict) for note in values.values()):
        raise ValueError(f"{text[:40]!r} are no notes")
    for note in values.values():
        if note.keys() - {*WORDS, "states"}:
            raise ValueError(f"nothing is known about {min(note.keys() - {*WORDS, 'states'})[:40]!r} in its notes")
    return {name: Note(**note) for name, note in values.items()}


def listed(text: str, most: int) -> tuple[Any, ...]:
    """A list in JSON of at most so many texts or numbers."""
    values = parse(text, 2 * most + 1)
    if not isinstance(values, list):
        raise ValueError(f"{text[:40]!r} is not a list")
    return tuple(values)
