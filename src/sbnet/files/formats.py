"""Any network file, by the ending of its name: :func:`read` and :func:`write`."""

from __future__ import annotations

import os
from collections.abc import Callable

from sbnet import checks
from sbnet.errors import FileFormatError
from sbnet.files import agrum
from sbnet.files.atomic import PathLike, as_file, as_name
from sbnet.files.bif import read_bif
from sbnet.files.conversion import Conversion, announced, convert
from sbnet.files.network import load_network, save_network
from sbnet.files.tables_writing import write_bif, write_uai
from sbnet.files.text import read_toml
from sbnet.files.text_writing import write_toml
from sbnet.files.uai import read_uai
from sbnet.files.variables import Variable
from sbnet.files.xdsl import read_xdsl
from sbnet.model.network import Network
from sbnet.model.suggestions import check_network

_UNITS: dict[str, Callable[[str], Network]] = {".toml": read_toml, ".sbn": load_network}
_TABLES: dict[str, Callable[[str], list[Variable]]] = {
    ".bif": read_bif,
    ".uai": read_uai,
    ".xdsl": read_xdsl,
    **dict.fromkeys(agrum.ENDINGS, agrum.read_pyagrum),
}
_WRITERS: dict[str, Callable[[Network, str], None]] = {
    ".toml": write_toml,
    ".sbn": save_network,
    ".bif": write_bif,
    ".uai": write_uai,
}
_PACKED = (".toml", ".bif", ".uai", ".xdsl")
"""Endings that may have .gz behind them."""


def read(path: PathLike, *, tol: float = 1e-6, max_hidden: int = 64) -> Network:
    """Read a network from a file; the ending of its name says how.

    Parameters
    ----------
    path
        ``.toml``, written by hand or by :func:`write`; ``.sbn``, written by :func:`save`; ``.bif``, ``.uai`` and
        GeNIe's ``.xdsl``, networks of tables; ``.bifxml``, ``.dsl``, ``.net``, ``.o3prm``, ``.jgum`` and ``.bgum``,
        which pyAgrum reads. Texts and tables may be compressed (``.bif.gz``).
    tol : float
        A table becomes a sigmoid, noisy-OR or noisy-AND unit if all its chances are that near to those of the unit.
    max_hidden : int
        Any other table becomes a sigmoid unit with hidden switches, at most so many of them.

    Raises
    ------
    FileFormatError
        If the file cannot be read, with the place; or if a table is no unit, with how far the nearest one is.

    Warns
    -----
    ConversionWarning
        If a unit is farther from its table than rounding explains; :func:`read_report` tells more.

    Examples
    --------
    >>> import sbnet as sb
    >>> from sbnet.datasets import clinic_path
    >>> sb.read(clinic_path()).notes["influenza"].group
    'causes'
    """
    return announced(read_report(path, tol=tol, max_hidden=max_hidden), 2)


def read_report(path: PathLike, *, tol: float = 1e-6, max_hidden: int = 64) -> Conversion:
    """The same with a report: what became of each table, and how far off the network is.

    Examples
    --------
    >>> import sbnet as sb
    >>> sb.convert.read_report("asia.bif")  # doctest: +SKIP
    <Conversion: 9 units; 2 prior, 4 sigmoid, 1 noisy-or, 1 switches; error 1.1e-16, 9.8e-16 nats>
    """
    name = as_file(path)
    checks.probability("tol", tol)
    checks.whole("max_hidden", max_hidden, 0)
    ending = _ending(name, (*_UNITS, *_TABLES), "read")
    if ending in _UNITS:
        return Conversion(_UNITS[ending](name))
    return convert(_TABLES[ending](name), tol=float(tol), max_hidden=max_hidden, name=name)


def write(network: Network, path: PathLike) -> None:
    """Write a network to a file; the ending of its name says how. The file is written whole or not at all.

    Parameters
    ----------
    network : Network
    path
        ``.toml``, a text for people, and ``.sbn``, as :func:`save` does: both give every number back bit for bit.
        ``.bif`` and ``.uai``: tables for other programs, for units of up to sixteen parents; units for the states of
        one variable are that variable again. In UAI the variable runs fastest, then its last parent, as the format
        says; pyAgrum reads it otherwise, so hand it a ``.bif`` file.
    """
    check_network(network)
    name = as_name(path)
    _WRITERS[_ending(name, tuple(_WRITERS), "written")](network, name)


def is_text(name: str) -> bool:
    """Does the ending of a name belong to a format of texts or tables, not to a file of :func:`sbnet.save`?"""
    base, ending = os.path.splitext(name.lower())
    ending = os.path.splitext(base)[1] if ending == ".gz" else ending
    return ending != ".sbn" and ending in (*_UNITS, *_TABLES, *_WRITERS)


def _ending(name: str, known: tuple[str, ...], verb: str) -> str:
    base, ending = os.path.splitext(name.lower())
    if ending == ".gz" and verb == "read" and os.path.splitext(base)[1] in _PACKED:
        ending = os.path.splitext(base)[1]
    if ending not in known:
        listed = ", ".join(known)
        if verb == "written" and is_text(name):
            raise FileFormatError(f"{name} can be read, but not written; end its name in {listed}")
        raise FileFormatError(f"{name} cannot be {verb}: the ending of the name says how, and it is none of {listed}")
    return ending
