"""Any network file, by the suffix of its name: :func:`read` and :func:`write`, which are also `load` and `save`."""

from __future__ import annotations

import gzip
import os
import re
import zlib
from collections.abc import Callable
from typing import Any

from sbnet.errors import FileFormatError, near_name
from sbnet.files import agrum
from sbnet.files.assembling import assembled
from sbnet.files.atomic import PathLike, as_file, as_name
from sbnet.files.bif import read_bif
from sbnet.files.dsc import read_dsc
from sbnet.files.net import read_net
from sbnet.files.own import read_own, write_own
from sbnet.files.tables_writing import write_bif, write_uai
from sbnet.files.tensors import is_tensors
from sbnet.files.text import read_toml
from sbnet.files.text_writing import write_toml
from sbnet.files.uai import read_uai
from sbnet.files.variables import Variable
from sbnet.files.xdsl import read_xdsl
from sbnet.files.xml_writing import write_xdsl, write_xmlbif
from sbnet.files.xmlbif import read_xmlbif
from sbnet.model.mixtures import NetworkMixture
from sbnet.model.network import Network
from sbnet.model.suggestions import check_network

OWN = ".sbn"
"""The suffix of the files of this library, which other names may have too."""
_TABLES: dict[str, Callable[[str], list[Variable]]] = {
    ".bif": read_bif,
    ".uai": read_uai,
    ".xdsl": read_xdsl,
    ".xmlbif": read_xmlbif,
    ".bifxml": read_xmlbif,
    ".net": read_net,
    ".dsc": read_dsc,
    **dict.fromkeys(agrum.ENDINGS, agrum.read_pyagrum),
}
_WRITERS: dict[str, Callable[[Network, str], None]] = {
    ".toml": write_toml,
    ".bif": write_bif,
    ".uai": write_uai,
    **dict.fromkeys((".xmlbif", ".bifxml", ".xml"), write_xmlbif),
    ".xdsl": write_xdsl,
}
_CONTENT = (
    (re.compile(rb"\s*<.*?<smile\b|\s*<smile\b", re.DOTALL), ".xdsl"),
    (re.compile(rb"\s*<.*?<BIF\b|\s*<BIF\b", re.DOTALL), ".xmlbif"),
    (re.compile(rb"\s*(?://[^\n]*\n\s*)*network\b"), ".bif"),
    (re.compile(rb"\s*(?:%[^\n]*\n\s*)*(?:net\s*\{|class\s+\w+\s*\{)"), ".net"),
    (re.compile(rb"\s*(?://[^\n]*\n\s*)*belief\s+network\b"), ".dsc"),
    (re.compile(rb"\s*(?:BAYES|MARKOV)\s"), ".uai"),
)
"""How files of other programs begin, for names that do not say what they are."""
_PACKED = (".toml", ".bif", ".uai", ".xdsl", ".xmlbif", ".bifxml", ".xml", ".net", ".dsc")
"""Suffixes that may have .gz behind them."""
_READ = (".toml", OWN, *_TABLES, ".xml")
_WRITTEN = (".toml", OWN, ".bif", ".uai", ".xmlbif", ".bifxml", ".xml", ".xdsl")
_NEAR = 0.8
"""Likeness from which an unknown suffix is a typo: .tml is, .bin and .sbnet are not."""


def read(path: PathLike) -> Network | Any:
    """Read a network from a file; the suffix of its name says how. ``sbnet.load`` is another name for this function.

    Variables of other programs keep their states, in the order of the file; of two states the one whose name says no
    (false, absent, off, …) comes first. Tables stay tables; GeNIe's noisy-MAX nodes are noisy-OR gates over states.

    Parameters
    ----------
    path : str or os.PathLike
        ``.toml``, written by hand or by :func:`write`; ``.sbn``, sbnet's own format; ``.bif``, ``.uai``, ``.xmlbif``
        (``.bifxml``), GeNIe's ``.xdsl``, Hugin's ``.net`` and ``.dsc``, networks of tables; ``.dsl``, ``.o3prm``,
        ``.jgum`` and ``.bgum``, which pyAgrum reads. Texts and tables may be compressed (``.bif.gz``). A file with
        another name, or ``.xml``, is known by its content.

    Returns
    -------
    Network or NetworkMixture
        A mixture if that is what was written.

    Raises
    ------
    FileFormatError
        If the file cannot be read, with the place; if it is cut short, damaged, of another kind, or from a later
        version of sbnet.

    Warns
    -----
    ConversionWarning
        If probabilities of a table did not add up to one, and were scaled.

    Examples
    --------
    >>> import sbnet as sb
    >>> from sbnet.datasets import clinic_path
    >>> sb.read(clinic_path()).notes["influenza"].group
    'causes'
    """
    name = as_file(path)
    plain, suffix = _suffix(name).removesuffix(".gz"), _suffix(name)
    suffix = plain if plain in _PACKED else suffix
    # A pipe can be read once, so that its name alone decides.
    if suffix == OWN or (is_tensors(name) if os.path.isfile(name) else suffix not in _READ or suffix == ".xml"):
        return read_own(name)
    content = _kind(name) if suffix not in _READ or suffix == ".xml" else None
    suffix = content or suffix
    if suffix == ".xml":
        raise FileFormatError(f"{name} cannot be read: its content is neither XMLBIF nor GeNIe's XDSL")
    if suffix != ".toml" and suffix not in _TABLES:
        listed = ", ".join(_READ)
        raise FileFormatError(f"{name} cannot be read: {_called(suffix)}, none of {listed}, nor is its content sbnet's")
    try:
        return read_toml(name) if suffix == ".toml" else assembled(_TABLES[suffix](name), name)
    except FileFormatError as error:
        kind = _kind(name) if os.path.isfile(name) else None
        if kind is None or _TABLES[kind] is _TABLES.get(suffix):
            raise
        raise FileFormatError(f"{error}; it begins as {kind} files do, so let its name end in that") from None


def write(network: Network | NetworkMixture, path: PathLike) -> None:
    """Write a network to a file; the suffix of its name says how. ``sbnet.save`` is another name for this function.

    The file is written beside its final place, flushed to disk, then renamed: whatever happens on the way, `path` holds
    either the old file or the new one, whole. A link is followed to the real file, which keeps its permissions.

    Parameters
    ----------
    network : Network or NetworkMixture
        A mixture is written in sbnet's own format alone.
    path : str or os.PathLike
        ``.toml``, a text for people, and ``.sbn``, sbnet's own format: both give every number back bit for bit.
        ``.bif``, ``.uai`` and ``.xmlbif`` (``.bifxml``, ``.xml``): tables for other programs, for variables of up to 16
        parents. ``.xdsl``: GeNIe's, in which noisy-OR variables are noisy-MAX nodes. In UAI the variable runs fastest,
        then its last parent, as the format says; pyAgrum reads it otherwise, so hand it a ``.bif`` file. A name without
        a suffix, or with an unknown one, is written in sbnet's own format.

    Raises
    ------
    FileFormatError
        If files of this suffix can be read, but not written; or if it looks like a typo of one that can.
    TargetError
        If `path` is there and is not a regular file, but a device, a pipe or a folder: it is left as it is.

    Examples
    --------
    >>> import sbnet as sb
    >>> sb.write(sb.layered((2, 4, 6), rng=0), "small.sbn")  # doctest: +SKIP
    >>> sb.read("small.sbn")  # doctest: +SKIP
    """
    name = as_name(path)
    if not isinstance(network, NetworkMixture):
        check_network(network)
    suffix, listed = _suffix(name), ", ".join(_WRITTEN)
    if suffix not in _WRITTEN and suffix.removesuffix(".gz") in _READ:
        raise FileFormatError(f"{name} can be read, but not written: {_called(suffix)}; end its name in {listed}")
    near = None if suffix in _WRITTEN else near_name(suffix, _READ, _NEAR)
    if near not in (None, OWN):
        raise FileFormatError(f"{name} cannot be written: {_called(suffix)}; did you mean {near}? Known are {listed}")
    if suffix not in _WRITERS:
        write_own(network, name)
    elif isinstance(network, NetworkMixture):
        raise FileFormatError(f"{name} cannot hold a mixture of networks; end its name in {OWN}")
    else:
        _WRITERS[suffix](network, name)


def kind_of(begin: bytes) -> str | None:
    """The suffix that a file of another program should have, by how it begins; None if that says nothing."""
    return next((suffix for pattern, suffix in _CONTENT if pattern.match(begin.removeprefix(b"\xef\xbb\xbf"))), None)


def _kind(name: str) -> str | None:
    with open(name, "rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
    with gzip.open(name) if packed else open(name, "rb") as file:
        try:
            return kind_of(file.read(4096))
        except (EOFError, OSError, zlib.error):
            return None


def _suffix(name: str) -> str:
    """The suffix of a name in small letters, with the one before it if it is .gz."""
    base, suffix = os.path.splitext(name.lower())
    return os.path.splitext(base)[1] + suffix if suffix == ".gz" else suffix


def _called(suffix: str) -> str:
    return f"its suffix is {suffix[:20]!r}" if suffix else "its name has no suffix"
