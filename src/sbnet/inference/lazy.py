"""Answers for Dask collections: tasks, one for each partition, that run when and where someone computes them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from sbnet._types import FloatArray, States
from sbnet.errors import ParameterError
from sbnet.inference.results import PosteriorBatch
from sbnet.inference.solution import Gather, Solution
from sbnet.model.network import Network
from sbnet.parallel import lazy
from sbnet.parallel.blocks import thread_count
from sbnet.questions.evidence import check_columns, read_part

if TYPE_CHECKING:
    import pandas

Answer = Callable[..., PosteriorBatch]


@dataclass(frozen=True)
class _Answered:
    """A partition, answered; without the network, which is the same for all."""

    evidence: States
    solution: Solution
    index: pandas.Index[Any] | None


@dataclass(frozen=True, eq=False)
class LazyPosteriors:
    """What :func:`sbnet.infer_many` answers to a Dask array or data frame: Dask arrays, partitioned as it was.

    Nothing is computed before it is asked for. ``dask.compute(many.bound, many.means)`` solves each row once for both;
    one after the other, each would solve anew, unless :meth:`persist` keeps the answers on the workers.

    Attributes
    ----------
    network : Network

    Examples
    --------
    >>> import dask.array as da
    >>> import sbnet as sb
    >>> net = sb.layered((2, 5), rng=0)
    >>> many = sb.infer_many(net, da.from_array(sb.sample(net, 100, rng=1)[:, 2:], chunks=(50, 5)))
    >>> many.bound.compute().shape
    (100,)
    """

    network: Network
    _pieces: list[Any]
    _sizes: tuple[float, ...]

    @property
    def bound(self) -> Any:
        """Lower bounds on ln P(evidence), in nats, by row."""
        return self._array("bound", (), np.float64)

    @property
    def means(self) -> Any:
        """Posterior means, rows by variables."""
        return self._array("means", (len(self.network.bias),), np.float64)

    @property
    def sweeps(self) -> Any:
        """Number of sweeps done, by row."""
        return self._array("sweeps", (), np.int64)

    @property
    def converged(self) -> Any:
        """Did the solver finish its work, for each row?"""
        return self._array("converged", (), np.bool_)

    def __getitem__(self, unit: str) -> Any:
        """The means of one unit, by name; of one with more than two states a mapping from states to arrays."""
        states, own = self.network.states[self.network.names[self.network.index(unit)]], self.network.columns_of(unit)
        if len(states) == 2:
            return self.means[:, own.start]
        means = self.means[:, own]
        return {states[0]: 1.0 - means.sum(axis=1), **{name: means[:, k] for k, name in enumerate(states[1:])}}

    def persist(self) -> LazyPosteriors:
        """Solve now, and keep the answers where they are made.

        Returns
        -------
        LazyPosteriors
        """
        return LazyPosteriors(self.network, lazy.kept(self._pieces), self._sizes)

    def compute(self) -> PosteriorBatch:
        """All answers, in the memory of this process.

        Returns
        -------
        PosteriorBatch
        """
        parts: list[_Answered] = lazy.computed(self._pieces)
        evidence = np.concatenate([part.evidence for part in parts])
        whole, start = Gather(len(evidence), len(self.network.bias)), 0
        for part in parts:
            if len(part.solution) or not len(evidence):
                whole.put(slice(start, start + len(part.solution)), part.solution)
            start += len(part.solution)
        labels = [part.index for part in parts if part.index is not None]
        index = labels[0].append(labels[1:]) if labels else None
        return PosteriorBatch(self.network, evidence, whole.solution(), index)

    def to_frame(self) -> Any:
        """A Dask data frame: the bound of each row, whether it settled, and the mean of every variable.

        Returns
        -------
        dask.dataframe.DataFrame
        """
        nothing = np.zeros((0, len(self.network.bias)))
        empty = Solution(np.zeros(0), nothing, np.zeros(0, np.int8), np.zeros(0, np.int64))
        meta = _frame(self.network, _Answered(np.zeros((0, self.network.n_units), np.int8), empty, None))
        return lazy.collected(lazy.mapped(_frame, (self.network,), self._pieces), self._sizes, meta)

    def __repr__(self) -> str:
        rows = sum(self._sizes)
        known = "rows not counted yet" if np.isnan(rows) else f"{int(rows):,} rows"
        return f"<LazyPosteriors: {known} in {len(self._pieces):,} partitions × {self.network.n_units:,} variables>"

    def _array(self, name: str, width: tuple[int, ...], dtype: Any) -> Any:
        pieces = [getattr(piece.solution, name) for piece in self._pieces]
        return lazy.collected(pieces, self._sizes, np.empty((0, *width), dtype))


def answer_lazily(
    network: Network, X: Any, answer: Answer, start: Any, missing: Any, threads: int | None
) -> LazyPosteriors:
    """Tasks that answer the partitions, each in one thread unless more are asked for: workers have several."""
    parts = lazy.Partitions.of(X)
    check_columns(network, parts, missing)
    n = len(parts.pieces)
    starts = lazy.Partitions.of(start).pieces if lazy.is_lazy(start) else [None] * n if start is None else []
    if len(starts) != n:
        raise ParameterError(f"start has {len(starts)} partitions; give a Dask array with the {n} of the evidence")
    solve = partial(_answered, answer, missing, 1 if threads is None else thread_count(threads))
    return LazyPosteriors(network, lazy.mapped(solve, (network,), parts.pieces, starts), parts.sizes)


def _answered(
    answer: Answer, missing: Any, threads: int, network: Network, table: Any, start: FloatArray | None
) -> _Answered:
    """In a worker: the answers of one partition."""
    states = read_part(network, table, missing)
    index = getattr(table, "index", None) if hasattr(table, "columns") else None
    found = answer(network, states, start=None if start is None else np.array(start), threads=threads, progress=False)
    return _Answered(found.evidence, found.solution, index)


def _frame(network: Network, answered: _Answered) -> Any:
    return PosteriorBatch(network, answered.evidence, answered.solution, answered.index).to_frame()
