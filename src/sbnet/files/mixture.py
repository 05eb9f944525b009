"""sbnet's own files: a network, or a mixture of them, the arrays of each under its number with the columns' names."""

from __future__ import annotations

import json
import re
from typing import Any

from sbnet._version import __version__
from sbnet.errors import FileFormatError
from sbnet.files.network import NETWORK, described, listed, network_of, save_network
from sbnet.files.tensors import Kind, Stored, read_tensors, write_tensors
from sbnet.model.mixtures import NetworkMixture
from sbnet.model.network import Network

MIXTURE = Kind("sbnet-mixture", 1, "one that sbnet.write() wrote")
_MOST = 200
"""Networks of a mixture, at most: the header of a file with more would be refused."""
_COUNT = re.compile("[1-9][0-9]{0,2}", re.ASCII)


def write_own(network: Network | NetworkMixture, name: str) -> None:
    """Write a network, or a mixture of networks, in sbnet's own format."""
    if isinstance(network, NetworkMixture):
        _save_mixture(network, name)
    else:
        save_network(network, name)


def _save_mixture(network: NetworkMixture, name: str) -> None:
    if len(network) > _MOST:
        raise FileFormatError(f"{name} can hold a mixture of {_MOST} networks at most, not of {len(network):,}")
    arrays: dict[str, Any] = {}
    metadata = {
        "made_by": f"sbnet {__version__}",
        "networks": str(len(network)),
        "columns": json.dumps(network.columns),
    }
    for number, part in enumerate(network):
        own, texts = described(part)
        arrays |= {f"{number}.{key}": array for key, array in own.items()}
        metadata |= {f"{number}.{key}": text for key, text in texts.items()}
    write_tensors(name, MIXTURE, arrays, metadata)


def read_own(name: str) -> Network | NetworkMixture:
    """Read what :func:`write_own` wrote, or say in one sentence why it cannot be read."""
    stored = read_tensors(name, NETWORK, MIXTURE)
    if stored.metadata["format"] == NETWORK.name:
        return network_of(stored)
    try:
        return _mixture(stored)
    except FileFormatError:
        raise
    except ValueError as error:
        raise FileFormatError(f"{stored.name} does not describe a mixture: {error}") from None


def _mixture(stored: Stored) -> NetworkMixture:
    count, columns = stored.metadata.get("networks", ""), stored.metadata.get("columns")
    if not _COUNT.fullmatch(count) or int(count) > _MOST or columns is None:
        raise ValueError("it does not say how many networks there are, and of which columns")
    networks = [network_of(part) for part in _parts(stored, int(count))]
    names = listed(columns, networks[0].n_units)
    if not all(isinstance(name, str) for name in names):
        raise ValueError("the names of its columns are not all texts")
    return NetworkMixture(tuple(networks), names)


def _parts(stored: Stored, count: int) -> list[Stored]:
    """What belongs to each network, without the number of it."""
    parts = {str(number): Stored(stored.name, {}, {}) for number in range(count)}
    for key, array in stored.arrays.items():
        number, _, own = key.partition(".")
        if number not in parts:
            raise ValueError("it has arrays that belong to none of its networks")
        parts[number].arrays[own] = array
    for key, text in stored.metadata.items():
        number, dot, own = key.partition(".")
        if dot and number in parts:
            parts[number].metadata[own] = text
    return list(parts.values())
