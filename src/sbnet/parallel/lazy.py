"""Dask arrays and data frames, as partitions of rows. Dask is not imported unless someone brings a collection."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import import_module
from secrets import token_hex
from typing import Any, Protocol, TypeGuard

import numpy as np

from sbnet import checks
from sbnet.errors import TableError
from sbnet.parallel.blocks import deaths_told

_FAN_IN = 8
"""Sums that one task of a tree adds up."""
_WAY_OUT = "Perhaps a partition is too large: give workers more memory, or make smaller ones (rechunk, repartition)"


class LazyTable(Protocol):
    """A Dask array or data frame, as far as types are concerned."""

    def to_delayed(self) -> Any: ...
    def __dask_keys__(self) -> Any: ...


def is_lazy(X: Any) -> TypeGuard[LazyTable]:
    """Is it a Dask collection? Only someone who has imported Dask can have one."""
    dask = sys.modules.get("dask")
    return dask is not None and not isinstance(X, np.ndarray) and bool(dask.is_dask_collection(X))


@dataclass(frozen=True)
class Partitions:
    """The rows of a collection in pieces, each to be made where it is needed; `sizes` are their rows, if known."""

    pieces: list[Any]
    sizes: tuple[float, ...]
    meta: Any

    @classmethod
    def of(cls, X: Any) -> Partitions:
        """The partitions of an array of rows by columns, whose columns may be cut as well, or of a data frame."""
        if hasattr(X, "columns"):
            pieces = list(X.to_delayed())
            return cls(pieces, (np.nan,) * len(pieces), X._meta)
        if getattr(X, "ndim", None) != 2:
            what = f"{X.ndim} dimensions" if hasattr(X, "ndim") else f"the type {type(X).__name__}"
            raise TableError(f"a Dask table has rows and columns; this one has {what}. Give an array or a data frame")
        if X.numblocks[1] > 1:
            X = X.rechunk({1: -1})
        pieces = list(X.to_delayed().ravel())
        return cls(pieces, X.chunks[0], np.empty((0, X.shape[1]), X.dtype))

    @property
    def no_rows(self) -> Any:
        """The columns without rows, by which a table can be refused before anything runs; None if unknown."""
        return None if np.isnan(self.meta.shape[1]) else self.meta


def once(value: Any) -> Any:
    """A value that many tasks share: one task of the graph, so that it travels once to each worker."""
    return _dask().delayed(value, traverse=False)


def task(function: Any) -> Any:
    """A function as a maker of tasks."""
    return _dask().delayed(function, traverse=False, pure=False)


def mapped(function: Any, shared: Sequence[Any], *columns: Iterable[Any]) -> list[Any]:
    """A task for each block of rows: a function of what all of them share, then of one value of each column."""
    make, values = task(function), [once(value) for value in shared]
    return [make(*values, *block) for block in zip(*columns, strict=True)]


def tree(parts: Sequence[Any], add: Any) -> Any:
    """The sum of some tasks, in an order that depends on nothing but their number."""
    level = list(parts)
    while len(level) > 1:
        level = [task(add)(level[k : k + _FAN_IN]) for k in range(0, len(level), _FAN_IN)]
    return level[0]


def kept(tasks: Sequence[Any]) -> list[Any]:
    """The tasks, begun, with their results held where they are made."""
    with deaths_told(_WAY_OUT):
        return list(_dask().persist(*tasks))


def computed(tasks: Sequence[Any]) -> list[Any]:
    """Their results, here."""
    with deaths_told(_WAY_OUT):
        return list(_dask().compute(*tasks))


def _dask() -> Any:
    return checks.extra("dask", "a Dask table")


def collected(pieces: Sequence[Any], sizes: Sequence[float], like: Any) -> Any:
    """A Dask data frame or array of rows whose blocks these tasks make, like `like`, which has no rows."""
    if hasattr(like, "columns"):
        frames = checks.extra("dask.dataframe", "a Dask data frame", of="dask")
        return frames.from_delayed(pieces, meta=like, verify_meta=False)
    da, graphs = checks.extra("dask.array", "a Dask table", of="dask"), import_module("dask.highlevelgraph")
    name, width = f"sbnet-{token_hex(16)}", like.shape[1:]
    blocks = {(name, k, *(0 for _ in width)): (_same, piece.key) for k, piece in enumerate(pieces)}
    graph = graphs.HighLevelGraph.from_collections(name, blocks, dependencies=list(pieces))
    return da.Array(graph, name, (tuple(sizes), *((n,) for n in width)), meta=like)


def _same(value: Any) -> Any:
    return value
