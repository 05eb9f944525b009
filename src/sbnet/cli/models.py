"""Networks in and out, also by standard input and output."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from sbnet.datasets import clinic_path
from sbnet.errors import FileFormatError, ParameterError
from sbnet.files import read, write
from sbnet.files.atomic import check_target
from sbnet.network import Network

EXAMPLE = "example"
"""Stands for the made-up clinic that comes with the package, where there is no file of this name."""
_TABLES = (".csv", ".tsv", ".parquet", ".npz", ".txt")
_PACKED = (".gz", ".bz2", ".xz", ".zst")


def read_model(name: str, ending: str | None = None) -> Network:
    """A network from a file, or from standard input in the format of an ending; which one, its first bytes tell."""
    if name == EXAMPLE and not os.path.exists(name):
        return read(clinic_path())
    if name != "-":
        _refuse_table(name)
        return read(name)
    data = sys.stdin.buffer.read()
    if not data:
        raise FileFormatError("standard input is empty; it should hold a network")
    with _passing(ending or (".sbn" if data[8:9] == b"{" else ".toml")) as path:
        with open(path, "wb") as file:
            file.write(data)
        return read(path)


def _refuse_table(name: str) -> None:
    """Model and table are easily swapped."""
    plain = name
    for ending in _PACKED:
        plain = plain.removesuffix(ending)
    if plain.endswith(_TABLES):
        raise ParameterError(
            f"{name} is a table; the model comes first, as in sbnet score model.sbn {name}. sbnet fit learns a model"
        )


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
    if name == "-":
        return
    folder = os.path.dirname(name)
    if folder and not os.path.exists(folder):
        raise ParameterError(f"{name} cannot be written: the folder {folder} does not exist")
    check_target(name, instead="leave --out away to write to standard output")


@contextmanager
def _passing(ending: str) -> Iterator[str]:
    """A file of that ending in a folder of its own, for as long as it is needed."""
    if not ending.startswith("."):
        ending = f".{ending}"
    with tempfile.TemporaryDirectory() as folder:
        yield os.path.join(folder, f"standard{ending}")


def one_input(*names: str | None) -> None:
    """Standard input can be read once."""
    if [*names].count("-") > 1:
        raise ParameterError("the model and the table are both -, but there is one standard input")
