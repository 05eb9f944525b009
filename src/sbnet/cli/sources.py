"""Tables in, block by block, from a file or standard input: text in any separator, compressed or not, Parquet, NPZ."""

from __future__ import annotations

import argparse
import bz2
import gzip
import io
import lzma
import struct
import sys
import tokenize
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Any, BinaryIO, cast

import numpy as np

from sbnet import checks
from sbnet.errors import SBNetError, TableError, shortened
from sbnet.tables import delimited
from sbnet.tables.delimited import Manner

_FIRST, _MOST = 32, 4096
"""Rows of the first block, so that answers appear at once, and of all later ones."""


@dataclass(frozen=True)
class Block:
    """Some rows of a table, by column: cells as they came, and where the rows stand."""

    columns: Sequence[Sequence[Any]]
    lines: Sequence[int]

    def __len__(self) -> int:
        return len(self.lines)


@dataclass(frozen=True)
class Source:
    """A table that is being read.

    Attributes
    ----------
    what : str
        What to call it in messages.
    names : tuple of str
    blocks : iterator of Block
        To be gone through once.
    row : str
        What a row is called in messages: it stands on a line, or in a row.
    delimiter : str
        What divides the cells, if it is text.
    again : callable or None
        The same table from its beginning; None for standard input.
    schema : object or None
        The types of the columns, as pyarrow has them, if it is Parquet.
    """

    what: str
    names: tuple[str, ...]
    blocks: Iterator[Block]
    row: str = "on line"
    delimiter: str = ","
    again: Callable[[], AbstractContextManager[Source]] | None = None
    schema: Any = None


@contextmanager
def open_table(chosen: argparse.Namespace, known: Collection[str] = ()) -> Iterator[Source]:
    """The table that a command names, for as long as it is needed; its first bytes tell what it is."""
    name, how = chosen.table, Manner(known, chosen.separator, chosen.encoding)
    if name == "-":
        with _readable("standard input"):
            yield _source(sys.stdin.buffer, "standard input", how, None)
        return
    with _readable(name), open(name, "rb") as file:
        yield _source(file, name, how, lambda: open_table(chosen, known))


@contextmanager
def _readable(what: str) -> Iterator[None]:
    """What libraries say of a broken file, in a sentence of ours; an OSError without a number is theirs too."""
    try:
        yield
    except (EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile) as error:
        raise TableError(f"{what} is damaged or not complete: {error}") from None
    except OSError as error:
        if error.errno is not None or isinstance(error, SBNetError):
            raise
        raise TableError(f"{what} is damaged or not complete: {error}") from None


def _source(file: BinaryIO, what: str, how: Manner, again: Any) -> Source:
    raw: Any = file if hasattr(file, "peek") else io.BufferedReader(cast(io.RawIOBase, file))
    start = raw.peek(8)[:8]
    if start[:4] == b"PAR1":
        return _parquet(raw, what, again)
    if start[:4] == b"PK\x03\x04":
        return _npz(raw, what, again)
    found = delimited.read(_unpacked(raw, start), what, how)
    return Source(what, found.names, _blocks(found.rows), "on line", found.delimiter, again)


def _unpacked(raw: Any, start: bytes) -> BinaryIO:
    """What is in a compressed file, by its first bytes."""
    if start[:2] == b"\x1f\x8b":
        return gzip.GzipFile(fileobj=raw)  # type: ignore[return-value]
    if start[:3] == b"BZh":
        return bz2.BZ2File(raw)  # type: ignore[return-value]
    if start[:6] == b"\xfd7zXZ\x00":
        return lzma.LZMAFile(raw)  # type: ignore[return-value]
    if start[:4] == b"\x28\xb5\x2f\xfd":
        pyarrow = checks.extra("pyarrow", "reading a .zst file", of="tables")
        return io.BufferedReader(_Passed(pyarrow.CompressedInputStream(raw, "zstd")))
    return raw  # type: ignore[no-any-return]


class _Passed(io.RawIOBase):
    """A stream of another library."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._inner.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)


def _sizes() -> Iterator[int]:
    size = _FIRST
    while True:
        yield size
        size = min(4 * size, _MOST)


def _blocks(rows: Iterator[tuple[int, list[str]]]) -> Iterator[Block]:
    for size in _sizes():
        some = list(islice(rows, size))
        if not some:
            return
        yield Block(list(zip(*(row for _, row in some), strict=True)), [line for line, _ in some])


def _parquet(raw: Any, what: str, again: Any) -> Source:
    """Row groups are read one after the other; standard input cannot be gone through at will, and is read whole."""
    parquet = checks.extra("pyarrow.parquet", "reading Parquet", of="tables")

    whole = raw if again is not None else io.BytesIO(raw.read())
    try:
        file = parquet.ParquetFile(whole)
    except (OSError, ValueError) as error:
        raise TableError(shortened(f"{what} is no Parquet file: {error}")) from None
    errors = checks.extra("pyarrow", "reading Parquet", of="tables").ArrowException

    def blocks() -> Iterator[Block]:
        begin, batches = 1, file.iter_batches(batch_size=_MOST)
        while True:
            try:
                batch = next(batches, None)
            except errors as error:
                raise TableError(shortened(f"{what} is damaged: {error}")) from None
            if batch is None:
                return
            yield Block([column.to_pylist() for column in batch.columns], range(begin, begin + len(batch)))
            begin += len(batch)

    return Source(what, _distinct(file.schema_arrow.names, what), blocks(), "in row", ",", again, file.schema_arrow)


def _distinct(names: Sequence[str], what: str) -> tuple[str, ...]:
    """Text is checked where it is read."""
    double = delimited.twice(names)
    if double is not None:
        raise TableError(f"{what} has two columns {double!r}")
    return tuple(names)


_DAMAGED_ZIP = (
    OSError, ValueError, EOFError, KeyError, MemoryError, NotImplementedError, RuntimeError, SyntaxError, TypeError,
    struct.error, tokenize.TokenError, zipfile.BadZipFile, zlib.error,
)  # fmt: skip
"""What a damaged archive of arrays raises: in its list of files, in how they are packed, or in what they hold."""


def _npz(raw: Any, what: str, again: Any) -> Source:
    """One two-dimensional array of numbers, and the names of its columns in an array of text, if there is one."""
    try:
        arrays = dict(np.load(io.BytesIO(raw.read()), allow_pickle=False))
    except _DAMAGED_ZIP as error:
        raise TableError(shortened(f"{what} cannot be read: {error or type(error).__name__}")) from None
    tables = [key for key, array in arrays.items() if array.ndim == 2]
    if len(tables) != 1:
        raise TableError(f"{what} holds {len(tables)} arrays of rows and columns; it must hold one")
    table = arrays[tables[0]]
    listed = [array for array in arrays.values() if array.ndim == 1 and array.dtype.kind == "U"]
    names = next((tuple(a.tolist()) for a in listed if len(a) == table.shape[1]), None)

    def blocks() -> Iterator[Block]:
        begin = 0
        for size in _sizes():
            some = table[begin : begin + size]
            if not len(some):
                return
            yield Block(some.T.tolist(), range(begin + 1, begin + 1 + len(some)))
            begin += len(some)

    return Source(what, names or tuple(f"x{k}" for k in range(table.shape[1])), blocks(), "in row", ",", again)
