"""A network or a mixture of networks in a file: the arrays of each under its number, and the names of the columns."""

from __future__ import annotations

import json
from typing import Any

from sbnet._version import __version__
from sbnet.errors import FileFormatError
from sbnet.files.atomic import PathLike
from sbnet.files.network import NETWORK, described, listed, network_of, save_network
from sbnet.files.tensors import Kind, Stored, read_tensors, write_tensors
from sbnet.network import Network
from sbnet.network_mixture import NetworkMixture

MIXTURE = Kind("sbnet-mixture", 1, "one that sbnet.save() wrote")
_MOST = 1_000
"""Networks of a mixture, at most: the header of a file with more would be refused."""


def save(network: Network | NetworkMixture, path: PathLike) -> None:
    """Write a network, or a mixture of networks, to a file.

    The file is written beside its final place, flushed to disk, then renamed: whatever happens on the way, `path` holds
    either the old file or the new one, whole. A link is followed to the real file, which keeps its permissions.

    Raises
    ------
    TargetError
        If `path` is there and is not a regular file, but a device, a pipe or a folder: it is left as it is.

    Examples
    --------
    >>> import sbnet as sb
    >>> sb.save(sb.layered((2, 4, 6), rng=0), "small.sbn")  # doctest: +SKIP
    >>> sb.load("small.sbn")  # doctest: +SKIP
    """
    if not isinstance(network, NetworkMixture):
        save_network(network, path)
        return
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
    write_tensors(path, MIXTURE, arrays, metadata)


def load(path: PathLike) -> Network | Any:
    """Read what :func:`save` wrote: a :class:`Network`, or a :class:`NetworkMixture` if the file holds one.

    Raises
    ------
    FileFormatError
        If the file is not a whole network: cut short, damaged, of another kind, or from a later version of sbnet.
    """
    stored = read_tensors(path, NETWORK, MIXTURE)
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
    if not (count.isascii() and count.isdecimal() and 0 < int(count[:5]) <= _MOST) or columns is None:
        raise ValueError("it does not say how many networks there are, and of which columns")
    parts = [_part(stored, f"{number}.") for number in range(int(count))]
    if sum(len(part.arrays) for part in parts) < len(stored.arrays):
        raise ValueError("it has arrays that belong to none of its networks")
    networks = [network_of(part) for part in parts]
    return NetworkMixture(tuple(networks), listed(columns, networks[0].n_units))


def _part(stored: Stored, prefix: str) -> Stored:
    """What belongs to one network, without the number of it."""
    n = len(prefix)
    arrays = {key[n:]: array for key, array in stored.arrays.items() if key.startswith(prefix)}
    texts = {key[n:]: text for key, text in stored.metadata.items() if key.startswith(prefix)}
    return Stored(stored.name, arrays, texts)
