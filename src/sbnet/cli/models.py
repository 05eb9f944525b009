"""Networks in and out, also by standard input and output; evidence in words."""

from __future__ import annotations

import os
import shlex
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from sbnet import codings
from sbnet.codings import Coding
from sbnet.datasets import clinic_path
from sbnet.errors import EvidenceError, FileFormatError, ParameterError, unknown_unit
from sbnet.files import read, write
from sbnet.files.atomic import check_target
from sbnet.network import Network

EXAMPLE = "example"
"""Stands for the made-up clinic that comes with the package, where there is no file of this name."""
_UNKNOWN = frozenset({"unknown", "unobserved", "missing", "na", "?", ""})


def read_model(name: str, ending: str | None = None) -> Network:
    """A network from a file, or from standard input in the format of an ending; which one, its first bytes tell."""
    if name == EXAMPLE and not os.path.exists(name):
        return read(clinic_path())
    if name != "-":
        return read(name)
    data = sys.stdin.buffer.read()
    if not data:
        raise FileFormatError("standard input is empty; it should hold a network")
    with _passing(ending or (".sbn" if data[8:9] == b"{" else ".toml")) as path:
        with open(path, "wb") as file:
            file.write(data)
        return read(path)


def write_model(network: Network, name: str, ending: str | None = None) -> None:
    """A network to a file, or to standard output in the format of an ending."""
    if name != "-":
        write(network, name)
        return
    with _passing(ending or ".toml") as path:
        write(network, path)
        with open(path, "rb") as file:
            sys.stdout.buffer.write(file.read())
    sys.stdout.buffer.flush()


def check_out(name: str) -> None:
    """Complain about a place where nothing can be written now, not after the work."""
    if name != "-":
        check_target(name, instead="leave --out away to write to standard output")


@contextmanager
def _passing(ending: str) -> Iterator[str]:
    """A file of that ending in a folder of its own, for as long as it is needed."""
    if not ending.startswith("."):
        ending = f".{ending}"
    with tempfile.TemporaryDirectory() as folder:
        yield os.path.join(folder, f"standard{ending}")


def pattern(network: Network, items: Sequence[str]) -> dict[str, int]:
    """Evidence from words such as ``rain=1``, ``rain=yes`` or ``rain=unknown``, which says nothing."""
    found: dict[str, int] = {}
    for item in items:
        name, sign, state = item.rpartition("=")
        if not sign or not name:
            example = shlex.quote(f"{network.names[-1][:60]}=yes")
            raise EvidenceError(
                f"evidence {item!r} is not of the form UNIT=STATE, such as {example}; names with spaces stand in quotes"
            )
        if name not in network.names:
            raise unknown_unit(name, network.names, "evidence")
        if name in found:
            raise EvidenceError(f"evidence names unit {name!r} twice")
        if state.strip().casefold() not in _UNKNOWN:
            found[name] = _bit(network, name, state.strip())
    return found


def _bit(network: Network, name: str, state: str) -> int:
    stated = stored_coding(network, name)
    if stated is not None:
        for bit, value in enumerate((stated.zero, stated.one)):
            if state.casefold() == value.casefold():
                return bit
    said = codings.bit(state)
    if said is None:
        own = "" if stated is None else f"{stated.one}, {stated.zero}, "
        raise EvidenceError(f"unit {name!r} is given as {state!r}; say {own}yes, no or unknown")
    return said


def stored_coding(network: Network, name: str) -> Coding | None:
    """What the model calls the two states of a unit."""
    states = network.notes[name].states
    return Coding(*states) if states else None


def listed_units(network: Network, names: Sequence[str], what: str) -> list[str]:
    """Names that must be units."""
    for name in names:
        if name not in network.names:
            raise unknown_unit(name, network.names, what)
    return list(names)


def findings_apart(about: Sequence[str] | None, evidence: list[str]) -> list[str] | None:
    """The units behind an option that takes many, which would take in findings that stand behind it too."""
    if about is None:
        return None
    evidence += [word for word in about if "=" in word]
    return [word for word in about if "=" not in word]


def one_input(*names: str | None) -> None:
    """Standard input can be read once."""
    if [*names].count("-") > 1:
        raise ParameterError("the model and the table are both -, but there is one standard input")
