"""Tables out, block by block: text, compressed or not, Parquet, NPZ; a file appears whole or not at all."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import lzma
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, BinaryIO, Protocol

import numpy as np

from sbnet import checks
from sbnet._types import FloatArray
from sbnet.errors import TableError, shortened
from sbnet.files.atomic import replacing

Cells = Sequence[Any] | FloatArray
"""Of one column: as they came, or answers."""
_WHOLE = 1e15
"""Doubles below this are whole numbers to the last digit."""


class Sink(Protocol):
    """Takes rows, column by column."""

    def put(self, columns: Sequence[Cells]) -> None:
        """Some rows."""


@contextmanager
def open_sink(name: str, names: Sequence[str], delimiter: str = ",", schema: Any = None) -> Iterator[Sink]:
    """Where rows go, by the ending of the name; - is standard output, where every block appears at once.

    Parquet has the types of the `schema`, or of its first rows.
    """
    if name == "-":
        printed = _Text(sys.stdout, names, delimiter)
        yield printed
        printed.close()
        return
    with replacing(name) as file:
        if name.endswith(".parquet"):
            parquet = _Parquet(file, names, schema)
            yield parquet
            parquet.close()
        elif name.endswith(".npz"):
            arrays = _Npz(names)
            yield arrays
            arrays.save(file)
        else:
            yield from _text(name, file, names, delimiter)


def _text(name: str, file: BinaryIO, names: Sequence[str], delimiter: str) -> Iterator[Sink]:
    tab = "\t" if name.removesuffix(".gz").endswith(".tsv") else delimiter
    with _packed(name, file) as packed:
        text = io.TextIOWrapper(packed, encoding="utf-8", newline="", write_through=False)
        written = _Text(text, names, tab)
        yield written
        written.close()
        text.detach()


@contextmanager
def _packed(name: str, file: BinaryIO) -> Iterator[Any]:
    if name.endswith(".zst"):
        pyarrow = checks.extra("pyarrow", "writing a .zst file", of="tables")
        stream = pyarrow.CompressedOutputStream(_Passed(file), "zstd")  # closing it leaves the file open
        yield _Passed(stream)
        stream.close()
        return
    packed: Any = file
    if name.endswith(".gz"):
        packed = gzip.GzipFile(fileobj=file, mode="wb", mtime=0)
    elif name.endswith(".bz2"):
        packed = bz2.BZ2File(file, "wb")
    elif name.endswith(".xz"):
        packed = lzma.LZMAFile(file, "wb")  # noqa: SIM115
    yield packed
    if packed is not file:
        packed.close()


class _Passed(io.RawIOBase):
    """A stream of another library."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._inner.write(bytes(data))
        return len(data)


class _Text:
    """Lines; the names of the columns come with the first rows, so that nothing is printed if there is an error."""

    def __init__(self, file: Any, names: Sequence[str], delimiter: str) -> None:
        self._file, self._writer = file, csv.writer(file, delimiter=delimiter, lineterminator="\n")
        self._names: Sequence[str] | None = names

    def close(self) -> None:
        if self._names is not None:
            self._writer.writerow(self._names)
            self._names = None
        self._file.flush()

    def put(self, columns: Sequence[Cells]) -> None:
        self.close()
        self._writer.writerows(zip(*map(_texts, columns), strict=True))
        self._file.flush()


def _texts(column: Cells) -> Iterable[Any]:
    """Answers in ten digits; numbers of other tables in all of theirs, whole ones without a point; "" for nothing."""
    if isinstance(column, np.ndarray):
        return [f"{number:.10g}" for number in column.tolist()]
    return [_text_of(cell) if isinstance(cell, float) else cell for cell in column]


def _text_of(number: float) -> str:
    if number != number:
        return ""
    return str(int(number)) if number.is_integer() and abs(number) < _WHOLE else repr(number)


class _Parquet:
    def __init__(self, file: BinaryIO, names: Sequence[str], schema: Any) -> None:
        self._arrow = checks.extra("pyarrow", "writing Parquet", of="tables")
        self._parquet = checks.extra("pyarrow.parquet", "writing Parquet", of="tables")
        self._file, self._names = file, list(names)
        self._writer: Any = None if schema is None else self._parquet.ParquetWriter(file, schema)

    def put(self, columns: Sequence[Cells]) -> None:
        cells = [column.tolist() if isinstance(column, np.ndarray) else list(column) for column in columns]
        try:
            if self._writer is None:
                table = self._arrow.table(cells, names=self._names)
                self._writer = self._parquet.ParquetWriter(self._file, table.schema)
            else:
                table = self._arrow.table(cells, schema=self._writer.schema)
            self._writer.write_table(table)
        except (self._arrow.ArrowException, TypeError) as error:
            text = f"Parquet wants one type for a column: {error}. Write to a .csv file instead"
            raise TableError(shortened(text)) from None

    def close(self) -> None:
        if self._writer is None:
            self.put([[] for _ in self._names])
        self._writer.close()


class _Npz:
    """Numbers in one array; in memory until the end, as the format wants it."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = list(names)
        self._parts: list[Any] = []

    def put(self, columns: Sequence[Cells]) -> None:
        self._parts.append(np.array([_numbers(column) for column in columns], dtype=np.float64).T)

    def save(self, file: BinaryIO) -> None:
        table = np.concatenate(self._parts) if self._parts else np.empty((0, len(self._names)))
        np.savez_compressed(file, X=table, names=np.array(self._names))


def _numbers(column: Cells) -> list[float]:
    try:
        return [np.nan if cell is None or cell == "" else float(cell) for cell in column]
    except (TypeError, ValueError) as error:
        raise TableError(f"a .npz file holds numbers: {error}. Write to a .csv or .parquet file instead") from None
