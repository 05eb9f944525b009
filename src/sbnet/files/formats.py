"""Any network file, by the ending of its name: :func:`read` and :func:`write`."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, TypeVar

from sbnet.errors import FileFormatError
from sbnet.files.atomic import PathLike, as_name
from sbnet.files.network import load, save
from sbnet.network import Network
from sbnet.slips import check_network

Reader = Callable[[str], Network]
Writer = Callable[[Network, str], None]
_Way = TypeVar("_Way", bound=Callable[..., Any])

_READERS: dict[str, Reader] = {".sbn": load}
_WRITERS: dict[str, Writer] = {".sbn": save}


def read(path: PathLike) -> Network:
    """Read a network from a file; the ending of its name says how.

    Parameters
    ----------
    path
        ``.sbn`` is what :func:`save` writes.
    """
    name = as_name(path)
    return _by_ending(_READERS, name, "read")(name)


def write(network: Network, path: PathLike) -> None:
    """Write a network to a file; the ending of its name says how. The file is written whole or not at all."""
    check_network(network)
    name = as_name(path)
    _by_ending(_WRITERS, name, "written")(network, name)


def _by_ending(table: dict[str, _Way], name: str, verb: str) -> _Way:
    ending = os.path.splitext(name)[1].lower()
    if ending not in table:
        known = ", ".join(table)
        raise FileFormatError(f"{name} cannot be {verb}: the ending of the name says how, and it is none of {known}")
    return table[ending]
