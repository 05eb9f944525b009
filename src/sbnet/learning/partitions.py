"""Learning from the partitions of a Dask collection, where they lie.

A step is a map and a sum: each partition adds up the gradients of its share of the batch, a tree of tasks adds up those
of all partitions, and only that sum comes here. All tasks are pure functions of the rows, of the parameters and of a
seed, and sums are taken in an order that the partitions alone decide; so the number of workers does not change a bit,
and what a lost worker had is computed once more, from its lineage, by another.

The means that an epoch leaves behind, to start the next one from, are results of tasks that stay on the worker of
their rows. Their lineage is the parameters of all steps since the means were last fresh, which the scheduler keeps; so
that this does not grow for ever, an epoch starts afresh when they take more than 200 MB.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from sbnet import checks
from sbnet._types import FloatArray, IndexArray, States
from sbnet.errors import ParameterError
from sbnet.learning import sources
from sbnet.learning.gradients import Objective
from sbnet.learning.sources import Batch, BoundGradient, Source, Sums, Task, batch_gradient, held_out_rows
from sbnet.model.network import Network
from sbnet.parallel import lazy
from sbnet.parallel.blocks import thread_count
from sbnet.questions.evidence import check_columns, read_part

_HISTORY = 200_000_000
"""Bytes of parameters that may be needed to compute lost means once more."""


class _Rows(NamedTuple):
    """The rows of a partition, on its worker."""

    states: States
    weights: FloatArray
    out: States | None  # those that are held out


class _Size(NamedTuple):
    """What has to be known here of a partition."""

    rows: int
    weight: float
    hidden: int
    digest: bytes


class Distributed(Source):
    """Rows on the workers of a cluster, or wherever Dask computes; `rows` are tasks, one for each partition."""

    def __init__(self, task: Task, rows: list[Any], out: Any) -> None:
        super().__init__(task, _states(rows), out)
        self._rows, network, objective = rows, task.network, task.objective
        self._sizes: list[_Size] = lazy.computed(lazy.mapped(_size, (task.saved, task.network), rows))
        self.n_rows, self.weight = sum(size.rows for size in self._sizes), sum(size.weight for size in self._sizes)
        if not self.n_rows:
            raise ParameterError("there are no rows to learn from")
        if not 0.0 < self.weight < math.inf:
            raise ParameterError("sample_weight must not be negative, nor zero in all rows")
        threads = 1 if objective.threads is None else thread_count(objective.threads)
        (self._objective,) = lazy.kept([lazy.once(Objective.of(network, objective.solver, None, threads))])
        # A checkpoint holds the means, so that they have to come here.
        if 8 * self.n_rows * len(network.bias) <= sources.WARM_BYTES or not task.saved:
            self.n_warm = sum(size.hidden for size in self._sizes)
        self._warm: list[Any] | None = None
        self._history = 0

    def fingerprints(self) -> dict[str, Any]:
        digest = hashlib.sha256(b"".join(size.digest for size in self._sizes)).digest()
        held = self.task.validation
        held = held if held is None or sources.is_share(held) else "a table"
        return {"table": np.frombuffer(digest, np.uint8), "validation": held}

    def batches(self, generator: np.random.Generator) -> Iterator[Batch]:
        """The batches of an epoch, each with an equal share of every partition."""
        seed = int(generator.integers(2**63))
        counts = [size.rows for size in self._sizes]
        n = len(counts)
        orders = lazy.kept(lazy.mapped(_order, (seed if self.task.shuffle else None,), range(n), counts))
        begin = [None] * n if self._warm is None else self._warm
        steps, found = -(-self.n_rows // self.task.batch_size), [list[Any]() for _ in counts]
        for step in range(steps):
            cuts = [_share(count, p, n, step, steps) for p, count in enumerate(counts)]
            used = [p for p, cut in enumerate(cuts) if cut.start < cut.stop]
            if used:
                blocks = [(self._rows[p], orders[p], cuts[p], begin[p]) for p in used]
                yield partial(self._gradient, blocks, [found[p] for p in used])
        if self.n_warm is not None:
            merge = lazy.task(_merged)
            parts = zip(self._rows, orders, found, strict=True)
            n = len(self.task.network.bias)
            self._warm = lazy.kept([merge(n, rows, order, *means) for rows, order, means in parts])
            if self._history > _HISTORY:  # cut the lineage of the means
                self._history = 0
                self.resume(self.warm() if self.task.saved else None, self.n_rows)

    def _gradient(self, blocks: list[tuple[Any, ...]], found: list[list[Any]], parameters: FloatArray) -> BoundGradient:
        """A step; the means of each partition's rows are noted in `found`, and stay where they are."""
        pairs = lazy.mapped(_batch, (self._objective, np.array(parameters)), *zip(*blocks, strict=True))
        total, *means = lazy.kept([lazy.tree([pair[0] for pair in pairs], _added), *(pair[1] for pair in pairs)])
        if self.n_warm is not None:
            for own, one in zip(found, means, strict=True):
                own.append(one)
            self._history += parameters.nbytes
        gradient: BoundGradient = lazy.computed([total])[0]
        return gradient._replace(gradient=gradient.gradient / max(gradient.weight, np.finfo(float).tiny))

    def warm(self) -> FloatArray | None:
        if self._warm is None:
            return None
        return np.concatenate(lazy.computed(lazy.mapped(sources.packed, (self.task.network,), self.states, self._warm)))

    def resume(self, warm: FloatArray | None, n_rows: int) -> None:
        if warm is None:
            self._warm = None
            return
        parts = np.split(warm, np.cumsum([size.hidden for size in self._sizes])[:-1])
        self._warm = lazy.kept(lazy.mapped(sources.unpacked, (self.task.network,), self.states, map(lazy.once, parts)))

    def _sums(self, function: Sums, network: Network, states: Any) -> FloatArray:
        if isinstance(states, np.ndarray):  # held-out rows that lie here
            return super()._sums(function, network, states)
        found = lazy.computed(lazy.mapped(function, (self._objective, network), states))
        sums: FloatArray = np.array(found).sum(axis=0)
        return sums

    def most_hidden(self) -> States:
        found = lazy.computed(lazy.mapped(sources.most_hidden, (), self.states))
        return sources.most_hidden(np.concatenate(found))


def distributed(task: Task, generator: np.random.Generator) -> Distributed:
    """The partitions of a collection, read on their workers and kept there, a byte for each unit of a row."""
    rows, held, weight = _read_all(task, task.X), task.validation, task.sample_weight
    if weight is not None:
        rows = lazy.kept(lazy.mapped(_weighted, (), rows, _weights(weight, rows)))
    if sources.is_share(held):
        share, seed, counts = checks.fraction("validation", held), int(generator.integers(2**63)), _counts(rows)
        if counts.sum() < 2:
            raise ParameterError("one row cannot be divided into rows to learn from and rows to hold out")
        ends = np.clip(np.round(share * np.cumsum(counts)), 0, counts.sum() - 1).astype(int)
        ends[-1] = max(ends[-1], 1)  # at least one held out in all, and one kept
        n_out = np.diff(ends, prepend=0).tolist()
        rows = lazy.kept(lazy.mapped(_split, (seed,), rows, n_out, range(len(rows))))
        held = [part.out for part in rows]
    elif lazy.is_lazy(held):
        held = _states(_read_all(task, held))
    elif held is not None:
        held = held_out_rows(task)
    return Distributed(task, rows, held)


def _read_all(task: Task, table: Any) -> list[Any]:
    parts = lazy.Partitions.of(table)
    check_columns(task.network, parts, task.missing)
    return lazy.kept(lazy.mapped(_read, (task.missing, task.network), parts.pieces))


def _weights(sample_weight: Any, rows: list[Any]) -> list[Any]:
    if not lazy.is_lazy(sample_weight):
        counts = _counts(rows)
        whole = sources.row_weights(int(counts.sum()), sample_weight)
        return [lazy.once(piece) for piece in np.split(whole, np.cumsum(counts)[:-1])]
    pieces = list(np.ravel(sample_weight.to_delayed()))
    if len(pieces) != len(rows):
        raise ParameterError(f"sample_weight has {len(pieces)} partitions, X has {len(rows)}; give them the same ones")
    return pieces


def _counts(rows: list[Any]) -> IndexArray:
    return np.array(lazy.computed(lazy.mapped(len, (), _states(rows))))


def _states(rows: list[Any]) -> list[Any]:
    return [part.states for part in rows]


def _share(n: int, p: int, partitions: int, step: int, steps: int) -> slice:
    """Which rows of partition p, in its order, take part in a step; partitions take turns with what is left over."""
    turn = (2 * p + 1) * steps
    first, last = ((2 * partitions * n * s + turn) // (2 * partitions * steps) for s in (step, step + 1))
    return slice(first, last)


# --- in the workers ---------------------------------------------------------------------------------------------------


def _read(missing: Any, network: Network, table: Any) -> _Rows:
    states = read_part(network, table, missing)
    return _Rows(states, np.ones(len(states)), None)


def _weighted(rows: _Rows, weights: Any) -> _Rows:
    found = np.array(weights, dtype=np.float64).ravel()
    if found.shape != rows.weights.shape or not np.all(found >= 0.0):
        raise ParameterError(f"sample_weight has {len(found)} numbers for the {len(rows.states)} rows of a partition")
    return rows._replace(weights=found)


def _split(seed: int, rows: _Rows, n_out: int, p: int) -> _Rows:
    order = np.random.default_rng([seed, p]).permutation(len(rows.states))
    out, kept = np.sort(order[:n_out]), np.sort(order[n_out:])
    return _Rows(rows.states[kept], rows.weights[kept], rows.states[out])


def _size(digest: bool, network: Network, rows: _Rows) -> _Size:
    bits = hashlib.sha256(rows.states.tobytes() + rows.weights.tobytes()).digest() if digest else b""
    return _Size(len(rows.states), float(rows.weights.sum()), sources.n_hidden(network, rows.states), bits)


def _order(seed: int | None, p: int, n: int) -> IndexArray:
    return np.arange(n) if seed is None else np.random.default_rng([seed, p]).permutation(n)


def _batch(
    objective: Objective, parameters: FloatArray, rows: _Rows, order: IndexArray, cut: slice, begin: FloatArray | None
) -> tuple[BoundGradient, FloatArray]:
    chosen, parameters = order[cut], np.array(parameters)
    parameters.setflags(write=False)  # as it is everywhere: one kind of array, one compiled kernel
    start = None if begin is None else begin[chosen]
    return batch_gradient(objective, parameters, rows.states[chosen], rows.weights[chosen], start, mean=False)


def _added(parts: list[BoundGradient]) -> BoundGradient:
    total = parts[0]
    for part in parts[1:]:
        sums = total.rows + part.rows, total.weight + part.weight, total.bound + part.bound
        total = BoundGradient(*sums, total.gradient + part.gradient)
    return total


def _merged(n_columns: int, rows: _Rows, order: IndexArray, *means: FloatArray) -> FloatArray:
    whole = np.empty((len(rows.states), n_columns))
    if means:
        whole[order] = np.concatenate(means)
    return whole
