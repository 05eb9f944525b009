"""Tables out, block by block: text, compressed or not, Parquet, NPZ; a file appears whole or not at all."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import lzma
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, BinaryIO, Protocol

import numpy as np

from sbnet import checks
from sbnet.files.atomic import replacing


class Sink(Protocol):
    """Takes rows, column by column."""

    def put(self, columns: Sequence[Sequence[Any]]) -> None:
        """Some rows."""


@contextmanager
def open_sink(name: str, names: Sequence[str], delimiter: str = ",") -> Iterator[Sink]:
    """Where rows go, by the ending of the name; - is standard output, where every block appears at once."""
    if name == "-":
        yield _Text(sys.stdout, names, delimiter)
        return
    with replacing(name) as file:
        if name.endswith(".parquet"):
            parquet = _Parquet(file, names)
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
        yield _Text(text, names, tab)
        text.flush()
        text.detach()


@contextmanager
def _packed(name: str, file: BinaryIO) -> Iterator[Any]:
    if name.endswith(".zst"):
        pyarrow = checks.extra("pyarrow", "writing a .zst file", of="tables")
        stream = pyarrow.CompressedOutputStream(file, "zstd")
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
    def __init__(self, file: Any, names: Sequence[str], delimiter: str) -> None:
        self._file, self._writer = file, csv.writer(file, delimiter=delimiter, lineterminator="\n")
        self._writer.writerow(names)

    def put(self, columns: Sequence[Sequence[Any]]) -> None:
        self._writer.writerows(zip(*columns, strict=True))
        self._file.flush()


class _Parquet:
    def __init__(self, file: BinaryIO, names: Sequence[str]) -> None:
        self._arrow = checks.extra("pyarrow", "writing Parquet", of="tables")
        self._parquet = checks.extra("pyarrow.parquet", "writing Parquet", of="tables")
        self._file, self._names = file, list(names)
        self._writer: Any = None

    def put(self, columns: Sequence[Sequence[Any]]) -> None:
        cells = [column.tolist() if isinstance(column, np.ndarray) else list(column) for column in columns]
        if self._writer is None:
            table = self._arrow.table(cells, names=self._names)
            self._writer = self._parquet.ParquetWriter(self._file, table.schema)
        else:
            table = self._arrow.table(cells, schema=self._writer.schema)
        self._writer.write_table(table)

    def close(self) -> None:
        if self._writer is None:
            self.put([[] for _ in self._names])
        self._writer.close()


class _Npz:
    """Numbers in one array; in memory until the end, as the format wants it."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = list(names)
        self._parts: list[Any] = []

    def put(self, columns: Sequence[Sequence[Any]]) -> None:
        self._parts.append(np.array([_numbers(column) for column in columns], dtype=np.float64).T)

    def save(self, file: BinaryIO) -> None:
        table = np.concatenate(self._parts) if self._parts else np.empty((0, len(self._names)))
        np.savez_compressed(file, X=table, names=np.array(self._names))


def _numbers(column: Sequence[Any]) -> list[float]:
    return [np.nan if cell in ("", None) else float(cell) for cell in column]
