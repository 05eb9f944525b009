"""Tables in files and on standard input, block by block: delimited text, compressed or not, Parquet, NPZ.

Delimited text is parsed by Python's `csv`, so that every cell stays as it is written, to the letter; Parquet is read by
pyarrow, which is an optional dependency.
"""

from __future__ import annotations

import bz2
import codecs
import contextlib
import csv
import gzip
import io
import lzma
import re
import struct
import sys
import tokenize
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any, NamedTuple

import numpy as np

from sbnet import checks
from sbnet.errors import ParameterError, SBNetError, TableError, near_name, shortened
from sbnet.model.names import normal
from sbnet.tables import frames

_FIRST, _MOST = 32, 4096
"""Rows of the first block, so that answers appear at once, and of all later ones."""
_BYTE_ORDER_MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",  # before UTF-16, whose mark is the beginning of this one
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_ENCODINGS = ("utf-8", "utf-16", "latin-1", "cp1252", "cp1251", "cp437", "shift_jis", "gb18030")
_DELIMITERS = (",", ";", "\t", "|")
_DECIMAL_COMMA = re.compile(r"([+-]?\d+),(\d+)")
_COMPRESSED: dict[bytes, Callable[..., Any]] = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ\0": lzma.open}
_ZSTANDARD = b"\x28\xb5\x2f\xfd"
_DAMAGED_ZIP = (
    OSError, ValueError, EOFError, KeyError, MemoryError, NotImplementedError, RuntimeError, SyntaxError, TypeError,
    struct.error, tokenize.TokenError, zipfile.BadZipFile, zlib.error,
)  # fmt: skip
"""What a damaged archive of arrays raises: in its list of files, in how they are packed, or in what they hold."""

Rows = Iterator[tuple[int, Sequence[Any]]]
"""The number of each row, by line or from 1, and its cells."""


class Hints(NamedTuple):
    """What is known of a text file: names that its columns may have, its delimiter and its encoding, if they are."""

    names: Collection[str] = ()
    delimiter: str | None = None
    encoding: str | None = None
    lenient: bool = False
    """May names be there twice? Whoever reads them has to make them differ."""


@dataclass(frozen=True)
class Block:
    """Some rows of a table, by column, with the line of each row or its number; cells are as they were read."""

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
        Of the columns; in text they may be blank.
    blocks : iterator of Block
        All rows, once.
    row : str
        How messages say where a row stands: on a line, or in a row.
    delimiter : str
        Between cells of text.
    schema : object or None
        The types of the columns of a Parquet file, as pyarrow has them.
    """

    what: str
    names: tuple[str, ...]
    blocks: Iterator[Block]
    row: str = "in row"
    delimiter: str = ","
    schema: Any = None


@contextmanager
def open_table(name: str, hints: Hints) -> Iterator[Source]:
    """A table in a file, or on standard input if it is called ``-``; the first bytes tell its format."""
    if name == "-":
        with _damage_of("standard input"):
            yield _source(sys.stdin.buffer, "standard input", hints)
        return
    with _damage_of(name), open(name, "rb") as file:
        yield _source(file, name, hints)


def text(cell: Any, delimiter: str) -> Any:
    """A cell without blanks around it; 1,5 is 1.5 where commas do not divide cells."""
    if not isinstance(cell, str):
        return cell
    words = cell.strip()
    decimal = delimiter != "," and _DECIMAL_COMMA.fullmatch(words)
    return _DECIMAL_COMMA.sub(r"\1.\2", words) if decimal else words


def value(cell: Any, delimiter: str) -> Any:
    """A cell as a number if it spells one."""
    words = text(cell, delimiter)
    number = frames.as_number(words) if isinstance(words, str) else None
    return words if number is None else number


@contextmanager
def _damage_of(what: str) -> Iterator[None]:
    """Errors of libraries about a damaged file as one of ours; an OSError without a number is one of theirs."""
    try:
        yield
    except (EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile, OSError) as error:
        if isinstance(error, OSError) and (error.errno is not None or isinstance(error, SBNetError)):
            raise
        raise TableError(f"{what} is damaged or not complete: {error}") from None


def _source(file: Any, what: str, hints: Hints) -> Source:
    raw = file if hasattr(file, "peek") else io.BufferedReader(file)
    start = raw.peek(8)[:8]
    if start.startswith(b"PAR1"):
        return _parquet(raw, what)
    if start.startswith(b"PK\x03\x04"):
        return _npz(raw, what)
    if start.startswith(_ZSTANDARD):
        pyarrow = checks.extra("pyarrow", "reading a .zst file", of="tables")
        return _text(io.BufferedReader(pyarrow.CompressedInputStream(raw, "zstd")), what, hints)
    opened = next((opened for magic, opened in _COMPRESSED.items() if start.startswith(magic)), None)
    return _text(raw if opened is None else opened(raw), what, hints)


def _in_blocks(rows: Rows) -> Iterator[Block]:
    size = _FIRST
    while some := list(islice(rows, size)):
        yield Block(list(zip(*(row for _, row in some), strict=True)), [line for line, _ in some])
        size = min(4 * size, _MOST)


def _twice(names: Iterable[str]) -> str | None:
    """The first name that is there twice, blank ones apart."""
    seen: set[str] = set()
    for name in names:
        if name and normal(name) in seen:
            return name
        seen.add(normal(name))
    return None


# --- delimited text ---------------------------------------------------------------------------------------------------


def _text(file: Any, what: str, hints: Hints) -> Source:
    """A table whose first line names columns; above it, spreadsheets write a line such as ``sep=;``."""
    encoding = _encoding(hints.encoding, file.peek(64)[:64])
    lines = _decoded(io.TextIOWrapper(file, encoding=encoding, newline=""), what, encoding)
    first = next(lines, "")
    announced = re.match(r"sep=(.)\r?\n", first)
    first = first if announced is None else next(lines, "")
    delimiter = announced[1] if announced else hints.delimiter or _guessed_delimiter(first, hints.names)
    rows = _parsed(chain([first], lines), what, delimiter, skipped=int(announced is not None))
    names = tuple(name.strip() for name in next(rows, (1, ()))[1])
    if not any(names):
        raise TableError(f"{what} is empty; its first line must name the variables")
    if not hints.lenient and (double := _twice(names)) is not None:
        raise TableError(f"the first line of {what} names variable {double!r} twice")
    return Source(what, names, _in_blocks(rows), "on line", delimiter)


def _parsed(lines: Iterable[str], what: str, delimiter: str, skipped: int) -> Rows:
    """All rows with their lines, that of the names first; blank lines are none, unless there is but one column."""
    reader, width = csv.reader(lines, delimiter=delimiter, strict=True), None
    try:
        for row in reader:
            cells, number = row or [""], reader.line_num + skipped
            width = len(cells) if width is None else width
            if row or width == 1:
                if len(cells) != width:
                    raise TableError(f"line {number} of {what} has {len(cells)} cells; the first line has {width}")
                yield number, cells
    except csv.Error as error:
        raise TableError(f"{what} is no table of cells divided by {delimiter!r}: {error}") from None


def _decoded(text: io.TextIOWrapper, what: str, encoding: str) -> Iterator[str]:
    number = 0
    try:
        for line in text:
            number += 1
            yield line
    except UnicodeDecodeError as error:
        byte, number = error.object[error.start], number + error.object.count(b"\n", 0, error.start) + 1
        raise TableError(
            f"{what} cannot be decoded as {encoding.upper()} (line {number} has {byte:#04x}); "
            "save it as UTF-8, or name its own with --encoding, such as latin-1 or cp1252"
        ) from None
    finally:
        with contextlib.suppress(ValueError):  # it is closed already
            text.detach()  # who opened the file will close it


def _encoding(given: str | None, start: bytes) -> str:
    """The encoding that is given, if Python knows it; else by a byte order mark, by zeros (UTF-16), or UTF-8."""
    if given is not None:
        try:
            "a".encode(given)
            return codecs.lookup(given).name
        except (LookupError, TypeError, ValueError):
            near = near_name(given, _ENCODINGS, 0.6)
            hint = f"did you mean {near!r}?" if near else "name one such as utf-8, latin-1 or cp1252"
            raise ParameterError(f"{given!r} is no encoding of text; {hint}") from None
    marked = next((name for mark, name in _BYTE_ORDER_MARKS.items() if start.startswith(mark)), None)
    if marked is None and len(start) > 1 and 0 in start:  # every second byte, with Latin letters
        return "utf-16-le" if start[1::2].count(0) >= start[::2].count(0) else "utf-16-be"
    return marked or "utf-8"


def _guessed_delimiter(line: str, names: Collection[str]) -> str:
    """What divides the first line into known names; else what is most frequent in it, outside quotation marks."""
    first, known = line.rstrip("\r\n"), set(map(normal, names))
    for delimiter in _DELIMITERS:
        with contextlib.suppress(csv.Error):  # reading all of it will say what is wrong
            cells = next(csv.reader([first], delimiter=delimiter), [])
            listed = {normal(name.strip()) for name in cells if name.strip()}
            if listed and listed <= known:
                return delimiter
    bare = re.sub(r'"[^"]*"', "", first)
    return max(_DELIMITERS, key=bare.count)


# --- Parquet, NPZ -----------------------------------------------------------------------------------------------------


def _parquet(raw: Any, what: str) -> Source:
    """Batches are read one after the other; standard input, which has no random access, is read whole."""
    parquet = checks.extra("pyarrow.parquet", "reading Parquet", of="tables")
    errors = checks.extra("pyarrow", "reading Parquet", of="tables").ArrowException
    try:
        file = parquet.ParquetFile(raw if raw.seekable() else io.BytesIO(raw.read()))
    except (OSError, ValueError) as error:
        raise TableError(shortened(f"{what} is no Parquet file: {error}")) from None

    def rows() -> Iterator[Sequence[Any]]:
        try:
            for batch in file.iter_batches(batch_size=_MOST):
                yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)
        except errors as error:
            raise TableError(shortened(f"{what} is damaged: {error}")) from None

    names = tuple(file.schema_arrow.names)
    if (double := _twice(names)) is not None:
        raise TableError(f"{what} has two columns {double!r}")
    return Source(what, names, _in_blocks(enumerate(rows(), 1)), schema=file.schema_arrow)


def _npz(raw: Any, what: str) -> Source:
    """One two-dimensional array of numbers, and the names of its columns in an array of text, if there is one."""
    try:
        arrays = dict(np.load(io.BytesIO(raw.read()), allow_pickle=False))
    except _DAMAGED_ZIP as error:
        raise TableError(shortened(f"{what} cannot be read: {error or type(error).__name__}")) from None
    tables = [array for array in arrays.values() if array.ndim == 2]
    if len(tables) != 1:
        raise TableError(f"{what} holds {len(tables)} arrays of rows and columns; it must hold one")
    width = tables[0].shape[1]
    listed = [array for array in arrays.values() if array.ndim == 1 and array.dtype.kind == "U"]
    names = next((tuple(array.tolist()) for array in listed if len(array) == width), None)
    rows = enumerate(tables[0].tolist(), 1)
    return Source(what, names or tuple(f"x{k}" for k in range(width)), _in_blocks(rows))
