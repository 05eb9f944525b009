"""Learning from rows that pass by: an iterator of blocks, a function that makes one, or a folder of Parquet files.

Rows are shuffled within a buffer: when it is full, half of its rows, drawn at random, go into batches, and the other
half stays. Memory is that of the buffer and of one block, however many rows there are; and how a stream is cut into
blocks does not matter, to the last bit.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from sbnet import checks
from sbnet._types import FloatArray, States
from sbnet.errors import ParameterError
from sbnet.learning.sources import Batch, BoundGradient, Source, Task, batch_gradient, held_out_rows, is_share
from sbnet.questions.evidence import read_part

BUFFER = 64_000_000
"""Bytes of rows that are shuffled together: one for each unit of a row."""
_PARQUET_ROWS = 65_536
"""Rows of a Parquet file that are read at a time."""


def is_stream(X: Any) -> bool:
    """Is it something that gives blocks, rather than a table?"""
    if isinstance(X, str | os.PathLike):
        return isinstance(X, os.PathLike) or X.endswith(("/", ".parquet")) or Path(X).is_dir()  # not "wet=1"
    if hasattr(X, "__next__"):
        return True
    if isinstance(X, list | tuple):  # of tables; a list of rows is a table
        return len(X) > 0 and (hasattr(type(X[0]), "columns") or getattr(X[0], "ndim", 1) == 2)
    # Of a lazy frame the type is asked: its columns would have to be found out first.
    if isinstance(X, Mapping) or any(hasattr(type(X), name) for name in ("__array__", "columns", "toarray")):
        return False
    return callable(X) or (hasattr(X, "__iter__") and not hasattr(X, "__getitem__"))


def is_once(X: Any) -> bool:
    """Can it be gone through only once?"""
    return hasattr(X, "__next__")


class Files:
    """The Parquet files of a folder, or one of them, in an order that may be drawn."""

    def __init__(self, path: Any) -> None:
        place = Path(os.fsdecode(path))
        self.paths = sorted(place.glob("*.parquet")) if place.is_dir() else [place]
        if not self.paths or not all(file.is_file() for file in self.paths):
            raise ParameterError(f"there is no Parquet file at {os.fspath(place)!r}; give a folder of *.parquet files")
        self._parquet = checks.extra("pyarrow.parquet", "a folder of Parquet files", of="tables")
        self.sizes = [self._parquet.read_metadata(file).num_rows for file in self.paths]

    def blocks(self, order: Iterable[int]) -> Iterator[Any]:
        """Their rows as tables, file by file."""
        arrow = checks.extra("pyarrow", "a folder of Parquet files", of="tables")
        for k in order:
            with self._parquet.ParquetFile(self.paths[k]) as file:
                for batch in file.iter_batches(batch_size=_PARQUET_ROWS):
                    yield arrow.Table.from_batches([batch])


def blocks_of(X: Any, generator: np.random.Generator | None = None) -> Iterator[Any]:
    """The blocks of a stream once, in its own order; of files, given a generator, in an order that it draws."""
    if isinstance(X, str | os.PathLike):
        X = Files(X)
    if isinstance(X, Files):
        n = len(X.paths)
        return X.blocks(range(n) if generator is None else generator.permutation(n).tolist())
    made = X() if callable(X) and not hasattr(X, "__iter__") else X
    if not isinstance(made, Iterable):
        raise ParameterError(f"X is a function that gives {checks.shown(made)}; it must give an iterator of tables")
    return iter(made)


class Stream(Source):
    """Rows that pass by. There are no means to start from: nobody knows which row comes when."""

    def __init__(self, task: Task) -> None:
        if task.sample_weight is not None:
            raise ParameterError("sample_weight goes with a table; from a stream every row counts once")
        held = task.validation
        if is_share(held):
            raise ParameterError(f"validation is {held!r}; of a stream no share is held out. Give a table of rows")
        out = None if held is None else held_out_rows(task)
        super().__init__(task, None, out)
        self._files = Files(task.X) if isinstance(task.X, str | os.PathLike) else None
        if self._files is not None:
            self.resume(None, sum(self._files.sizes))

    def fingerprints(self) -> dict[str, Any]:
        files = self._files
        names = None if files is None else [(file.name, n) for file, n in zip(files.paths, files.sizes, strict=True)]
        return {"table": names or "a stream", "validation": self.out}

    def batches(self, generator: np.random.Generator) -> Iterator[Batch]:
        task, size, count = self.task, self.task.batch_size, 0
        drawn = generator if task.shuffle else None
        capacity = 2 * size * max(1, BUFFER // (2 * size * task.network.n_units)) if task.shuffle else size
        states = (read_part(task.network, block, task.missing) for block in blocks_of(self._files or task.X, drawn))
        for rows in buffered(states, capacity, drawn):
            for start in range(0, len(rows), size):
                batch = rows[start : start + size]
                count += len(batch)
                yield partial(self._gradient, batch)
        if not count:
            raise ParameterError("there are no rows to learn from")
        self.resume(None, count)

    def _gradient(self, states: States, parameters: FloatArray) -> BoundGradient:
        return batch_gradient(self.task.objective, parameters, states, np.ones(len(states)), None)[0]

    def resume(self, warm: FloatArray | None, n_rows: int) -> None:
        """By now the rows have been counted."""
        self.n_rows, self.weight = n_rows, float(n_rows)

    def most_hidden(self) -> States:
        raise ParameterError("log_likelihood=True needs a table; a stream is gone through once in each epoch")


def buffered(blocks: Iterator[States], capacity: int, generator: np.random.Generator | None) -> Iterator[States]:
    """Rows shuffled within a buffer of that many; or in their own order, without a generator."""
    held: list[States] = []
    count = 0
    for block in blocks:
        start = 0
        while start < len(block):
            part = block[start : start + capacity - count]
            held.append(part)
            start, count = start + len(part), count + len(part)
            if count == capacity:
                rows = _mixed(held, generator)
                n = capacity if generator is None else max(capacity // 2, 1)
                yield rows[:n]
                held, count = [rows[n:]], capacity - n
    if count:
        yield _mixed(held, generator)


def _mixed(parts: list[States], generator: np.random.Generator | None) -> States:
    rows = np.concatenate(parts)
    return rows if generator is None else rows[generator.permutation(len(rows))]
