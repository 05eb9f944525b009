"""sbnet's own files: a network, or a mixture of networks. Nothing in them is executed.

A network is four arrays, the names of its units and the sizes of its layers. One with other units than sigmoid ones has
a fifth array, their gates, and version 2 of the format, which tells an older sbnet that it cannot read the file. One
with variables of more than two states, or with tables, has version 3: the names of states are one more text, and the
numbers of all tables, one after the other in the order of the variables, one more array. Tables of zeros and ones are
functions, in version 4: their states are one more array. Notes, where there are any, are one more text, which an older
one passes over. A mixture has the arrays of each network under its number, and the
names of the columns.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np

from sbnet._version import __version__
from sbnet.errors import FileFormatError
from sbnet.files.tensors import Kind, Stored, parse, read_tensors, write_tensors
from sbnet.kernels.codes import TABLE
from sbnet.model.graph import Graph
from sbnet.model.mixtures import NetworkMixture
from sbnet.model.network import Network
from sbnet.model.notes import GONE, WORDS, Note, as_words, written
from sbnet.model.states import NO_YES, Tables

_T = TypeVar("_T")
NETWORK = Kind("sbnet-network", 4, "one that sbnet.write() wrote")
MIXTURE = Kind("sbnet-mixture", 3, "one that sbnet.write() wrote")
_SIGMOID_ONLY, _TWO_STATES, _NO_FUNCTIONS = (NETWORK._replace(version=version) for version in (1, 2, 3))
_MIXTURE_OF_TWO_STATES, _MIXTURE_NO_FUNCTIONS = (MIXTURE._replace(version=version) for version in (1, 2))
_FUNCTION = 3
"""The gate, in files, of a table of zeros and ones: there are the numbers of states in its place."""
_NOTE_PARTS = 5 * (len((*WORDS, *GONE)) + 2)
"""Strings, brackets and commas of one note, at most, with its name."""
_ARRAYS = {"indptr": "int64", "parent": "int64", "weight": "float64", "bias": "float64"}
_MOST = 200
"""Networks of a mixture, at most: the header of a file with more would be refused."""
_COUNT = re.compile("[1-9][0-9]{0,2}", re.ASCII)


def write_own(network: Network | NetworkMixture, name: str) -> None:
    """Write a network, or a mixture of networks, in sbnet's own format."""
    if isinstance(network, Network):
        arrays, texts = _described(network)
        kind = _TWO_STATES if "gate" in arrays else _SIGMOID_ONLY
        if not network.is_binary:
            kind = NETWORK if "functions" in arrays else _NO_FUNCTIONS
    elif len(network) > _MOST:
        raise FileFormatError(f"{name} can hold a mixture of {_MOST} networks at most, not of {len(network):,}")
    else:
        arrays, texts = {}, {"networks": str(len(network)), "columns": json.dumps(network.columns)}
        for number, part in enumerate(network):
            own, words = _described(part)
            arrays |= {f"{number}.{key}": array for key, array in own.items()}
            texts |= {f"{number}.{key}": text for key, text in words.items()}
        kind = _MIXTURE_OF_TWO_STATES if all(part.is_binary for part in network) else _MIXTURE_NO_FUNCTIONS
        kind = MIXTURE if any(key.endswith(".functions") for key in arrays) else kind
    write_tensors(name, kind, arrays, {"made_by": f"sbnet {__version__}", **texts})


def read_own(name: str) -> Network | NetworkMixture:
    """Read what :func:`write_own` wrote, or say in one sentence why it cannot be read."""
    stored = read_tensors(name, NETWORK, MIXTURE)
    if stored.metadata["format"] == NETWORK.name:
        return _made("network", _network, stored)
    return _made("mixture", _mixture, stored)


def _described(network: Network) -> tuple[dict[str, Any], dict[str, str]]:
    """The arrays and the texts that a network is made of."""
    graph = network.graph
    arrays = {"indptr": graph.indptr, "parent": graph.parent, "weight": network.weight, "bias": network.bias}
    texts = {"names": json.dumps(network.names), "layers": json.dumps(network.layers)}
    notes = {name: as_words(note) for name, note in written(network.notes).items()}
    if notes:
        texts["notes"] = json.dumps(notes)
    states = {name: own for name, own in network.named_states.items() if own != network.notes[name].states}
    if states:
        texts["states"] = json.dumps(states)
    assert isinstance(network.tables, Tables)
    kept, functions = network.tables.kept, [*network.tables.n_states]
    for part, names, kind in (("tables", [*(kept.keys() - functions)], np.float64), ("functions", functions, np.int64)):
        if names:
            in_order = sorted(names, key=network.index)
            arrays[part] = np.concatenate([kept[name].ravel() for name in in_order]).astype(kind)
    if network.gate.any():
        arrays["gate"] = network.gate.astype(np.int64)
        arrays["gate"][[network.index(name) for name in functions]] = _FUNCTION
    return arrays, texts


def _made(what: str, make: Callable[[Stored], _T], stored: Stored) -> _T:
    """What arrays and texts describe, or one sentence on why they do not."""
    try:
        return make(stored)
    except FileFormatError:
        raise
    except ValueError as error:
        raise FileFormatError(f"{stored.name} does not describe a {what}: {error}") from None


def _network(stored: Stored) -> Network:
    arrays = stored.arrays
    lacking = [part for part in _ARRAYS if part not in arrays]
    lacking += [part for part in ("names", "layers") if part not in stored.metadata]
    if lacking:
        raise ValueError(f"it lacks {lacking[0]!r}")
    known = _ARRAYS | {"gate": "int64", "tables": "float64", "functions": "int64"}
    if unknown := arrays.keys() - known.keys():
        raise ValueError(f"nothing is known about its array {min(unknown)[:40]!r}")
    if any(array.dtype != known[part] for part, array in arrays.items()):
        raise FileFormatError(f"{stored.name} holds arrays of unexpected types")
    names, layers = stored.metadata["names"], stored.metadata["layers"]
    most = arrays["indptr"].size  # the names of a network with so many units, and one to spare
    listed, graph = _listed(names, most), Graph(arrays["indptr"], arrays["parent"])
    states = _states(stored.metadata.get("states", "{}"), most, arrays["bias"].size)
    gate = arrays.get("gate", np.zeros(graph.n_units, np.int64))
    return Network(
        listed,
        graph,
        arrays["weight"],
        arrays["bias"],
        np.where(gate == _FUNCTION, TABLE, gate),
        layers=None if layers == "null" else _listed(layers, most),
        notes=_notes(stored.metadata.get("notes", "{}"), most),
        states=states,  # type: ignore[arg-type]  # checked there
        tables=_tables(listed, graph, gate, states, arrays),
    )


def _states(text: str, most: int, thresholds: int) -> dict[str, list[Any]]:
    """The names of states in JSON, by variable."""
    states = parse(text, 2 * (thresholds + most) + 5 * most + 2)
    if not isinstance(states, dict) or not all(isinstance(own, list) for own in states.values()):
        raise ValueError(f"{text[:40]!r} are no states")
    return states


def _tables(
    names: tuple[Any, ...], graph: Graph, gate: Any, states: dict[str, list[Any]], arrays: Mapping[str, Any]
) -> Tables:
    """The tables of variables, cut from the array of all, and the functions, cut from theirs."""
    tables, functions = dict[str, Any](), dict[str, int]()
    if gate.ndim != 1 or len(gate) != graph.n_units or len(names) != graph.n_units:
        return Tables({}, {})  # the record says what is wrong
    sizes = [len(states.get(name, NO_YES)) if isinstance(name, str) else 2 for name in names]
    for part, code in (("tables", TABLE), ("functions", _FUNCTION)):
        numbers, end = arrays.get(part, np.empty(0)), 0
        for i in np.flatnonzero(gate == code).tolist():
            shape = [*(sizes[j] for j in graph.parent[graph.indptr[i] : graph.indptr[i + 1]])]
            shape += [sizes[i]] if code == TABLE else []
            begin, end = end, end + math.prod(shape)
            if end > numbers.size:
                break
            tables[names[i]] = numbers[begin:end].reshape(shape)
            if code == _FUNCTION:
                functions[names[i]] = sizes[i]
        if numbers.ndim != 1 or end != numbers.size:
            raise ValueError(
                f"its {part} have {numbers.size:,} numbers, and the states of its variables ask for others"
            )
    return Tables(tables, functions)


def _notes(text: str, most: int) -> dict[str, Note]:
    """Notes in JSON, by name: objects of texts and of a list of two."""
    values = parse(text, _NOTE_PARTS * most + 2)
    if not isinstance(values, dict) or not all(isinstance(note, dict) for note in values.values()):
        raise ValueError(f"{text[:40]!r} are no notes")
    for note in values.values():
        if unknown := note.keys() - {*WORDS, *GONE, "states"}:
            raise ValueError(f"nothing is known about {min(unknown)[:40]!r} in its notes")
    kept = {name: {key: part for key, part in note.items() if key not in GONE} for name, note in values.items()}
    return {name: Note(**note) for name, note in kept.items()}


def _listed(text: str, most: int) -> tuple[Any, ...]:
    """A list in JSON of at most so many texts or numbers."""
    values = parse(text, 2 * most + 1)
    if not isinstance(values, list):
        raise ValueError(f"{text[:40]!r} is not a list")
    return tuple(values)


def _mixture(stored: Stored) -> NetworkMixture:
    count, columns = stored.metadata.get("networks", ""), stored.metadata.get("columns")
    if not _COUNT.fullmatch(count) or int(count) > _MOST or columns is None:
        raise ValueError("it does not say how many networks there are, and of which columns")
    parts = {str(number): Stored(stored.name, {}, {}) for number in range(int(count))}
    for key, array in stored.arrays.items():
        number, _, own = key.partition(".")
        if number not in parts:
            raise ValueError("it has arrays that belong to none of its networks")
        parts[number].arrays[own] = array
    for key, text in stored.metadata.items():
        number, dot, own = key.partition(".")
        if dot and number in parts:
            parts[number].metadata[own] = text
    networks = [_made("network", _network, part) for part in parts.values()]
    names = _listed(columns, networks[0].n_units)
    if not all(isinstance(name, str) for name in names):
        raise ValueError("the names of its columns are not all texts")
    return NetworkMixture(tuple(networks), names)
