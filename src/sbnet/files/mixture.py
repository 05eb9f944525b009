"""A network or a mixture of networks in a file: the arrays of each under its number, and the names of the columns.

The ending of a name decides here too: what :func:`sbnet.write` would write as a text is never written as anything else.
"""

from __future__ import annotations

import json
import re
from typing import Any

from sbnet._version import __version__
from sbnet.errors import FileFormatError
from sbnet.files.atomic import PathLike, as_file, as_name
from sbnet.files.conversion import announced
from sbnet.files.formats import is_text, read_report, write
from sbnet.files.network import NETWORK, check_saved, described, listed, network_of, save_network
from sbnet.files.tensors import Kind, Stored, is_tensors, read_tensors, write_tensors
from sbnet.model.mixtures import NetworkMixture
from sbnet.model.network import Network

MIXTURE = Kind("sbnet-mixture", 1, "one that sbnet.save() wrote")
_MOST = 200
"""Networks of a mixture, at most: the header of a file with more would be refused."""
_COUNT = re.compile("[1-9][0-9]{0,2}", re.ASCII)


def save(network: Network | NetworkMixture, path: PathLike) -> None:
    """Write a network, or a mixture of networks, to a file, by custom with the ending ``.sbn``.

    A name that ends in ``.toml``, ``.bif`` or ``.uai`` is written as :func:`sbnet.write` does.

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
    if is_text(as_name(path)):
        _write_text(network, path)
    elif isinstance(network, NetworkMixture):
        _save_mixture(network, path)
    else:
        save_network(network, path)


def _write_text(network: Network | NetworkMixture, path: PathLike) -> None:
    if isinstance(network, NetworkMixture):
        raise FileFormatError(f"{as_name(path)} cannot hold a mixture of networks; end its name in .sbn")
    check_saved(network)
    write(network, path)


def _save_mixture(network: NetworkMixture, path: PathLike) -> None:
    if len(network) > _MOST:
        raise FileFormatError(
            f"{as_name(path)} can hold a mixture of {_MOST} networks at most, not of {len(network):,}"
        )
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

    A file whose name ends as a text or a network of tables does (``.toml``, ``.bif``, …) is read as :func:`sbnet.read`
    does, unless it holds what :func:`save` once wrote under such names.

    Raises
    ------
    FileFormatError
        If the file is not a whole network: cut short, damaged, of another kind, or from a later version of sbnet.
    """
    name = as_file(path)
    if is_text(name) and not is_tensors(name):
        return announced(read_report(name), 2)
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
