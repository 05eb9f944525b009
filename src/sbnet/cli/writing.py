"""Tables out, block by block: delimited text, compressed or not, Parquet, NPZ; a file appears whole or not at all."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
import lzma
import math
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, BinaryIO, TypeAlias

import numpy as np

from sbnet import checks
from sbnet._types import FloatArray
from sbnet.errors import ParameterError, TableError, shortened
from sbnet.files.atomic import replacing

Cells = Sequence[Any] | FloatArray
"""Of one column: cells as they were read, or an array of answers."""
_WHOLE = 1e15
"""Doubles below this are whole numbers to the last digit."""


Writer: TypeAlias = "_Text | _JsonLines | _Parquet | _Npz"
"""Takes rows, column by column: `put` some, and `close` when there are no more."""


@contextmanager
def open_writer(
    out: str, names: Sequence[str], delimiter: str = ",", *, schema: Any = None, as_json: bool = False
) -> Iterator[Writer]:
    """Where rows go, by the ending of the name; - is standard output, where every block appears at once.

    Parquet has the types of the `schema`, or of its first rows. JSON has an object for each row, on a line of its own.
    """
    if as_json and out != "-":
        raise ParameterError("--json goes to standard output, a line for each row; leave -o away")
    with ExitStack() as stack:
        writer: Writer
        if out == "-":
            writer = _JsonLines(names) if as_json else _Text(sys.stdout, names, delimiter)
        else:
            file = stack.enter_context(replacing(out))
            if out.endswith(".parquet"):
                writer = _Parquet(file, names, schema)
            elif out.endswith(".npz"):
                writer = _Npz(file, names)
            else:
                tab = out.removesuffix(".gz").endswith(".tsv")
                own = stack.enter_context(os.fdopen(os.dup(file.fileno()), "wb"))  # which is closed before the file
                compressed = _COMPRESSED.get(os.path.splitext(out)[1])
                packed = own if compressed is None else compressed(own)
                text = stack.enter_context(io.TextIOWrapper(packed, encoding="utf-8", newline=""))
                writer = _Text(text, names, "\t" if tab else delimiter)
        yield writer
        writer.close()


def _zstandard(file: BinaryIO) -> Any:
    return checks.extra("pyarrow", "writing a .zst file", of="tables").CompressedOutputStream(file, "zstd")


_COMPRESSED: dict[str, Callable[[BinaryIO], Any]] = {
    ".gz": lambda file: gzip.GzipFile(fileobj=file, mode="wb", mtime=0),
    ".bz2": lambda file: bz2.BZ2File(file, "wb"),
    ".xz": lambda file: lzma.LZMAFile(file, "wb"),  # noqa: SIM115
    ".zst": _zstandard,
}


class _Text:
    """Lines; the names of the columns come with the first rows, so that nothing is printed if there is an error."""

    def __init__(self, file: Any, names: Sequence[str], delimiter: str) -> None:
        self._file, self._writer = file, csv.writer(file, delimiter=delimiter, lineterminator="\n")
        self._names: Sequence[str] | None = names

    def put(self, columns: Sequence[Cells]) -> None:
        self.close()
        self._writer.writerows(zip(*map(_texts, columns), strict=True))
        self._file.flush()

    def close(self) -> None:
        if self._names is not None:
            self._writer.writerow(self._names)
            self._names = None
        self._file.flush()


def _texts(column: Cells) -> list[Any]:
    """Answers in ten digits; numbers of other tables in all of theirs, whole ones without a point; "" for nothing."""
    if isinstance(column, np.ndarray):
        return [f"{number:.10g}" for number in column.tolist()]
    texts = []
    for cell in column:
        if isinstance(cell, float):
            whole = cell.is_integer() and abs(cell) < _WHOLE
            cell = "" if cell != cell else str(int(cell)) if whole else repr(cell)
        texts.append(cell)
    return texts


class _JsonLines:
    def __init__(self, names: Sequence[str]) -> None:
        self._names = names

    def put(self, columns: Sequence[Cells]) -> None:
        cells = [  # minus infinity, of impossible evidence, is null
            [x if math.isfinite(x) else None for x in column.tolist()] if isinstance(column, np.ndarray) else column
            for column in columns
        ]
        for row in zip(*cells, strict=True):
            print(json.dumps(dict(zip(self._names, row, strict=True)), default=str))
        sys.stdout.flush()

    def close(self) -> None:
        sys.stdout.flush()


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

    def __init__(self, file: BinaryIO, names: Sequence[str]) -> None:
        self._file, self._names = file, list(names)
        self._parts: list[Any] = [np.empty((0, len(names)))]

    def put(self, columns: Sequence[Cells]) -> None:
        self._parts.append(np.array([_numbers(column) for column in columns], dtype=np.float64).T)

    def close(self) -> None:
        np.savez_compressed(self._file, X=np.concatenate(self._parts), names=np.array(self._names))


def _numbers(column: Cells) -> list[float]:
    try:
        return [np.nan if cell is None or cell == "" else float(cell) for cell in column]
    except (TypeError, ValueError) as error:
        raise TableError(f"a .npz file holds numbers: {error}. Write to a .csv or .parquet file instead") from None
