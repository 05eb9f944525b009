"""Networks in and out, also by standard input and output."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from sbnet.datasets import car_path, clinic_path
from sbnet.errors import FileFormatError, ParameterError
from sbnet.files import kind_of, read, write
from sbnet.files.atomic import check_target
from sbnet.model.network import Network

EXAMPLES = {"example": clinic_path, "car": car_path}
"""Stand for the made-up networks that come with the package, where there is no file of this name."""
_TABLES = (".csv", ".tsv", ".parquet", ".npz", ".txt")
_PACKED = (".gz", ".bz2", ".xz", ".zst")


def read_model(chosen: argparse.Namespace) -> Network:
    """The network that a command names: a file, or standard input in the format of an ending, or by its first bytes.

    What is wrong with the place of the output, or with a second input, is said before.
    """
    if chosen.model == "-" == getattr(chosen, "table", None):
        raise ParameterError("the model and the table are both -, but there is one standard input")
    check_out(getattr(chosen, "out", "-"), chosen)
    if chosen.model != "-":
        plain = chosen.model
        for ending in _PACKED:
            plain = plain.removesuffix(ending)
        if plain.endswith(_TABLES) and not _is_network(chosen.model):  # model and table are easily swapped
            raise ParameterError(
                f"{chosen.model} is a table; the model comes first, as in sbnet score model.sbn {chosen.model}. sbnet "
                "fit learns a model"
            )
        return _read(_place(chosen.model))
    data = sys.stdin.buffer.read()
    if not data:
        raise FileFormatError("standard input is empty; it should hold a network")
    with _passing(chosen.ending or kind_of(data) or (".sbn" if data[8:9] == b"{" else ".toml")) as path:
        with open(path, "wb") as file:
            file.write(data)
        return _read(path)


def _is_network(name: str) -> bool:
    with contextlib.suppress(OSError), open(name, "rb") as file:
        return kind_of(file.read(4096)) is not None
    return False


def _place(name: str) -> str:
    return os.fspath(EXAMPLES[name]()) if name in EXAMPLES and not os.path.exists(name) else name


def _read(path: str) -> Network:
    network = read(path)
    if not isinstance(network, Network):
        raise FileFormatError(f"{path} holds a mixture of networks, and a command takes one; sbnet.read() reads it")
    return network


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


def check_out(name: str, chosen: argparse.Namespace) -> None:
    """Complain about a place where nothing can or should be written now, not after the work."""
    if name == "-":
        return
    for kind in ("model", "table"):
        given = getattr(chosen, kind, None)
        if given is not None and _is_same(name, given):
            raise ParameterError(f"{name} is the {kind} that is read, and would be lost; give the output another name")
    folder = os.path.dirname(name)
    if folder and not os.path.exists(folder):
        raise ParameterError(f"{name} cannot be written: the folder {folder} does not exist")
    check_target(name, instead="leave --out away to write to standard output")


def _is_same(out: str, given: str) -> bool:
    """Whether an output is an input, under this name or another: a link, or a file that standard input comes from."""
    with contextlib.suppress(OSError, ValueError, AttributeError):  # one of them is not there, or is no file
        read = os.fstat(sys.stdin.fileno()) if given == "-" else os.stat(_place(given))
        return os.path.samestat(os.stat(out), read)
    return False


@contextmanager
def _passing(ending: str) -> Iterator[str]:
    """A file of that ending in a folder of its own, for as long as it is needed."""
    if not ending.startswith("."):
        ending = f".{ending}"
    with tempfile.TemporaryDirectory() as folder:
        yield os.path.join(folder, f"standard{ending}")
