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
from sbnet.inference import infer_many
from sbnet.learning.sources import Batch, BoundGradient, How, held_out_rows, is_share, slope_of_rows
from sbnet.model.network import Network
from sbnet.questions.evidence import read_many, read_part

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


class Stream:
    """Rows that pass by."""

    def __init__(self, network: Network, X: Any, how: How, out: States | None, missing: Any) -> None:
        self._network, self._X, self._how, self._out, self._missing = network, X, how, out, missing
        self._files = Files(X) if isinstance(X, str | os.PathLike) else None
        self.n_rows = 0 if self._files is None else sum(self._files.sizes)
        self._passed = False

    weight = property(lambda self: float(self.n_rows))
    holds_out = property(lambda self: self._out is not None)
    n_warm = None

    def fingerprints(self) -> dict[str, Any]:
        files = None if self._files is None else [file.name for file in self._files.paths]
        table = "a stream" if self._files is None else list(zip(files or [], self._files.sizes, strict=True))
        return {"table": table, "validation": self._out}

    def batches(self, generator: np.random.Generator) -> Iterator[Batch]:
        if self._passed and is_once(self._X):
            raise ParameterError("an iterator can be gone through once; give a function that makes one, or epochs=1")
        self._passed, size, count = True, self._how.batch_size, 0
        capacity = 2 * size * max(1, BUFFER // (2 * size * self._network.n_units)) if self._how.shuffle else size
        for rows in buffered(self._states(generator), capacity, generator if self._how.shuffle else None):
            for start in range(0, len(rows), size):
                batch = rows[start : start + size]
                count += len(batch)
                yield partial(self._slope, batch)
        if not count:
            raise ParameterError("there are no rows to learn from")
        self.n_rows = count

    def _states(self, generator: np.random.Generator) -> Iterator[States]:
        for block in blocks_of(self._files or self._X, generator if self._how.shuffle else None):
            yield read_part(self._network, block, self._missing)

    def _slope(self, states: States, parameters: FloatArray) -> BoundGradient:
        return slope_of_rows(self._how.climbing, parameters, states, np.ones(len(states)), None)[0]

    def warm(self) -> FloatArray | None:
        return None

    def take_up(self, warm: FloatArray | None, n_rows: int) -> None:
        """There are no means: nobody knows which row comes when. But by now the rows have been counted."""
        self.n_rows = n_rows

    def held_out(self, network: Network) -> float:
        assert self._out is not None
        climbing = self._how.climbing
        found = infer_many(
            network, self._out, solver=climbing.solver, threads=climbing.threads, executor=climbing.executor
        )
        return float(found.bound.mean())

    def exact(self, network: Network) -> tuple[float, float]:
        raise NotImplementedError

    def check_exact(self, network: Network) -> None:
        raise ParameterError("log_likelihood=True needs a table; a stream is gone through once in each epoch")


def buffered(blocks: Iterator[States], capacity: int, generator: np.random.Generator | None) -> Iterator[States]:
    """The same rows, shuffled within a buffer of that many; or in their own order, without a generator."""
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


def stream(network: Network, X: Any, how: How, sample_weight: Any, validation: Any, missing: Any) -> Stream:
    """A stream to learn from; what it cannot have is refused."""
    if sample_weight is not None:
        raise ParameterError("sample_weight goes with a table; from a stream every row counts once")
    if is_share(validation):
        raise ParameterError(f"validation is {validation!r}; of a stream no share is held out. Give a table of rows")
    out = None if validation is None else held_out_rows(read_many(network, validation, missing=missing))
    return Stream(network, X, how, out, missing)
