"""Learning from the partitions of a Dask collection, where they lie.

A step is a map and a sum: each partition adds up the slopes of its share of the batch, a tree of tasks adds up those of
all partitions, and only that sum comes here. All tasks are pure functions of the rows, of the parameters and of a seed,
and sums are taken in an order that the partitions alone decide; so the number of workers does not change a bit, and
what a lost worker had is computed once more, from its lineage, by another.

The means that an epoch leaves behind, to start the next one from, are results of tasks that stay on the worker of
their rows. Their lineage is the parameters of all steps since the means were last fresh, which the scheduler keeps; so
that this does not grow for ever, an epoch starts afresh when they take more than 200 MB.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from sbnet import checks
from sbnet._types import HIDDEN, FloatArray, IndexArray, States
from sbnet.errors import ParameterError
from sbnet.exact.answers import log_likelihood as exact_log_likelihood
from sbnet.inference import infer_many
from sbnet.learning import sources
from sbnet.learning.gradients import Climbing
from sbnet.learning.sources import Batch, BoundGradient, How, held_out_rows
from sbnet.model.network import Network
from sbnet.parallel import lazy
from sbnet.parallel.blocks import thread_count
from sbnet.parallel.parcels import Shared
from sbnet.questions.evidence import check_columns, read_many, read_part

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
    out: int
    digest: bytes


class Distributed:
    """Rows on the workers of a cluster, or wherever Dask computes."""

    def __init__(self, network: Network, rows: Sequence[Any], how: How, validation: Any) -> None:
        self._rows, self._how, self._network, self._validation = rows, how, network, validation
        self._sizes: list[_Size] = lazy.computed([lazy.task(_size)(part, how.saved) for part in rows])
        if not self.n_rows:
            raise ParameterError("there are no rows to learn from")
        if not 0.0 < self.weight < math.inf:
            raise ParameterError("sample_weight must not be negative, nor zero in all rows")
        threads = 1 if how.climbing.threads is None else thread_count(how.climbing.threads)
        climbing = Climbing(Shared(network.model), how.climbing.solver, None, threads)
        (self._climbing,) = lazy.kept(lazy.once(climbing))
        small = 8 * self.n_rows * network.n_units <= sources.WARM_BYTES
        self._keeps = small or not how.saved  # a checkpoint holds them, so that they have to come here
        self._warm: list[Any] | None = None
        self._history = 0

    n_rows = property(lambda self: sum(size.rows for size in self._sizes))
    weight = property(lambda self: sum(size.weight for size in self._sizes))
    holds_out = property(lambda self: self._validation is not None)
    n_warm = property(lambda self: sum(size.hidden for size in self._sizes) if self._keeps else None)

    def fingerprints(self) -> dict[str, Any]:
        digest = hashlib.sha256(b"".join(size.digest for size in self._sizes)).digest()
        held = self._validation if sources.is_share(self._validation) or self._validation is None else "a table"
        return {"table": np.frombuffer(digest, np.uint8), "validation": held}

    def batches(self, generator: np.random.Generator) -> Iterator[Batch]:
        """As many steps as batches of that size would take; each has the same share of every partition."""
        seed = int(generator.integers(2**63))
        order = lazy.task(_order)
        orders = [order(seed if self._how.shuffle else None, p, size.rows) for p, size in enumerate(self._sizes)]
        orders = list(lazy.kept(*orders))
        steps, found = -(-self.n_rows // self._how.batch_size), [list[Any]() for _ in self._sizes]
        begin = self._warm
        for step in range(steps):
            cuts = [_share(size.rows, p, len(self._sizes), step, steps) for p, size in enumerate(self._sizes)]
            if any(cut.start < cut.stop for cut in cuts):
                yield partial(self._slope, orders, begin, cuts, found)
        if self._keeps:
            merge = lazy.task(_merged)
            made = [merge(rows, o, *means) for rows, o, means in zip(self._rows, orders, found, strict=True)]
            self._warm = list(lazy.kept(*made))
            self._forget()

    def _slope(
        self,
        orders: list[Any],
        begin: list[Any] | None,
        cuts: list[slice],
        found: list[list[Any]],
        parameters: FloatArray,
    ) -> BoundGradient:
        climb, first, second = lazy.task(_climb), lazy.task(_first), lazy.task(_second)
        shared = lazy.once(np.array(parameters))
        used = [p for p, cut in enumerate(cuts) if cut.start < cut.stop]
        made = [
            climb(self._climbing, shared, self._rows[p], orders[p], cuts[p], None if begin is None else begin[p])
            for p in used
        ]
        total, *means = lazy.kept(lazy.tree([first(one) for one in made], _added), *[second(one) for one in made])
        if self._keeps:
            for p, one in zip(used, means, strict=True):
                found[p].append(one)
            self._history += parameters.nbytes
        slope: BoundGradient = lazy.computed([total])[0]
        return slope._replace(direction=slope.direction / max(slope.weight, np.finfo(float).tiny))

    def _forget(self) -> None:
        """Cut the lineage of the means where it has become long."""
        if self._history > _HISTORY:
            self._history = 0
            self.take_up(self.warm() if self._how.saved else None, self.n_rows)

    def warm(self) -> FloatArray | None:
        if self._warm is None:
            return None
        packed = lazy.task(_packed)
        parts = [packed(rows, means) for rows, means in zip(self._rows, self._warm, strict=True)]
        return np.concatenate(lazy.computed(parts))

    def take_up(self, warm: FloatArray | None, n_rows: int) -> None:
        if warm is None:
            self._warm = None
            return
        ends = np.cumsum([size.hidden for size in self._sizes])
        make = lazy.task(_unpacked)
        pieces = zip(self._rows, np.split(warm, ends[:-1]), strict=True)
        self._warm = list(lazy.kept(*[make(rows, lazy.once(part)) for rows, part in pieces]))

    def held_out(self, network: Network) -> float:
        held = self._validation
        if isinstance(held, np.ndarray):
            climbing = self._how.climbing
            return float(infer_many(network, held, solver=climbing.solver, threads=climbing.threads).bound.mean())
        sums = np.array(self._judged(network, _held_out_bounds, self._rows if sources.is_share(held) else held))
        return float(sums[:, 0].sum() / sums[:, 1].sum())

    def exact(self, network: Network) -> tuple[float, float]:
        bounds, truths = np.array(self._judged(network, _exact, self._rows)).sum(axis=0)
        return float(bounds / self.n_rows), float(truths / self.n_rows)

    def check_exact(self, network: Network) -> None:
        rows = np.concatenate(lazy.computed([lazy.task(_most_hidden)(part) for part in self._rows]))
        exact_log_likelihood(network, rows[[np.argmax((rows == HIDDEN).sum(axis=1))]])

    def _judged(self, network: Network, judge: Any, rows: Sequence[Any]) -> list[tuple[float, float]]:
        make, shared = lazy.task(judge), lazy.once(network)
        return lazy.computed([make(self._climbing, shared, part) for part in rows])


def distributed(
    network: Network,
    X: Any,
    how: How,
    sample_weight: Any,
    validation: Any,
    missing: Any,
    generator: np.random.Generator,
) -> Distributed:
    """The partitions of a collection, read on their workers and kept there, a byte for each unit of a row."""
    parts = lazy.Partitions.of(X)
    check_columns(network, parts, missing)
    shared, read = lazy.once(network), lazy.task(partial(_read, missing))
    weights = _weights(sample_weight, parts)
    rows = list(lazy.kept(*[read(shared, piece, w) for piece, w in zip(parts.pieces, weights, strict=True)]))
    if sample_weight is not None and not lazy.is_lazy(sample_weight):
        wanted = "it must hold numbers, one per row, none negative and not all zero"
        rows = _weighted(rows, checks.numbers("sample_weight", sample_weight, wanted))
    if sources.is_share(validation):
        rows = _divided(rows, checks.fraction("validation", validation), int(generator.integers(2**63)))
    elif lazy.is_lazy(validation):
        out = lazy.Partitions.of(validation)
        check_columns(network, out, missing)
        validation = list(lazy.kept(*[read(shared, piece, None) for piece in out.pieces]))
    elif validation is not None:
        validation = held_out_rows(read_many(network, validation, missing=missing))
    return Distributed(network, rows, how, validation)


def _weights(sample_weight: Any, parts: lazy.Partitions) -> list[Any]:
    if not lazy.is_lazy(sample_weight):
        return [None] * len(parts.pieces)
    pieces = list(np.ravel(sample_weight.to_delayed()))
    if len(pieces) != len(parts.pieces):
        raise ParameterError(
            f"sample_weight has {len(pieces)} partitions, X has {len(parts.pieces)}; give them the same ones"
        )
    return pieces


def _weighted(rows: list[Any], weights: FloatArray) -> list[Any]:
    """With weights that came from here."""
    counts = [size.rows for size in lazy.computed([lazy.task(_size)(part, False) for part in rows])]
    weights = sources.row_weights(sum(counts), weights)
    pieces, put = np.split(weights, np.cumsum(counts)[:-1]), lazy.task(_with_weights)
    return list(lazy.kept(*[put(part, lazy.once(piece)) for part, piece in zip(rows, pieces, strict=True)]))


def _divided(rows: list[Any], share: float, seed: int) -> list[Any]:
    """A share of the rows of each partition held out, at least one in all, and one kept."""
    counts = np.array([size.rows for size in lazy.computed([lazy.task(_size)(part, False) for part in rows])])
    if counts.sum() < 2:
        raise ParameterError("one row cannot be divided into rows to learn from and rows to hold out")
    ends = np.clip(np.round(share * np.cumsum(counts)), 0, counts.sum() - 1).astype(int)
    ends[-1] = max(ends[-1], 1)
    split = lazy.task(_split)
    made = [
        split(part, int(n), seed, p) for p, (part, n) in enumerate(zip(rows, np.diff(ends, prepend=0), strict=True))
    ]
    return list(lazy.kept(*made))


def _share(n: int, p: int, partitions: int, step: int, steps: int) -> slice:
    """Which rows of partition p, in its order, take part in a step; partitions take turns with what is left over."""
    turn = (2 * p + 1) * steps
    first, last = ((2 * partitions * n * s + turn) // (2 * partitions * steps) for s in (step, step + 1))
    return slice(first, last)


# --- in the workers ---------------------------------------------------------------------------------------------------


def _read(missing: Any, network: Network, table: Any, weights: Any) -> _Rows:
    states = read_part(network, table, missing)
    if weights is None:
        return _Rows(states, np.ones(len(states)), None)
    found = np.array(weights, dtype=np.float64).ravel()
    if found.shape != (len(states),) or not np.all(found >= 0.0):
        raise ParameterError(f"sample_weight has {len(found)} numbers for the {len(states)} rows of a partition")
    return _Rows(states, found, None)


def _with_weights(rows: _Rows, weights: FloatArray) -> _Rows:
    return rows._replace(weights=np.array(weights))


def _split(rows: _Rows, n_out: int, seed: int, p: int) -> _Rows:
    order = np.random.default_rng([seed, p]).permutation(len(rows.states))
    out, kept = np.sort(order[:n_out]), np.sort(order[n_out:])
    return _Rows(rows.states[kept], rows.weights[kept], rows.states[out])


def _size(rows: _Rows, digest: bool) -> _Size:
    n_out = 0 if rows.out is None else len(rows.out)
    bits = hashlib.sha256(rows.states.tobytes() + rows.weights.tobytes()).digest() if digest else b""
    return _Size(len(rows.states), float(rows.weights.sum()), int((rows.states == HIDDEN).sum()), n_out, bits)


def _order(seed: int | None, p: int, n: int) -> IndexArray:
    return np.arange(n) if seed is None else np.random.default_rng([seed, p]).permutation(n)


def _climb(
    climbing: Climbing,
    parameters: FloatArray,
    rows: _Rows,
    order: IndexArray,
    cut: slice,
    begin: FloatArray | None,
) -> tuple[BoundGradient, FloatArray]:
    """The sum of the slopes of some rows, and their means."""
    chosen = order[cut]
    parameters = np.array(parameters)
    parameters.setflags(write=False)  # as it is everywhere: one kind of array, one compiled kernel
    states, weights = rows.states[chosen], rows.weights[chosen]
    n_edges = len(parameters) - states.shape[1]
    start = None if begin is None else begin[chosen]
    found = climbing.gradient(parameters[:n_edges], parameters[n_edges:], states, start, weights)
    direction = np.concatenate([found.weight, found.bias])
    return BoundGradient(len(states), float(weights.sum()), float(weights @ found.bound), direction), found.means


def _first(pair: tuple[BoundGradient, FloatArray]) -> BoundGradient:
    return pair[0]


def _second(pair: tuple[BoundGradient, FloatArray]) -> FloatArray:
    return pair[1]


def _added(slopes: list[BoundGradient]) -> BoundGradient:
    total = slopes[0]
    for slope in slopes[1:]:
        sums = total.rows + slope.rows, total.weight + slope.weight, total.bound + slope.bound
        total = BoundGradient(*sums, total.direction + slope.direction)
    return total


def _merged(rows: _Rows, order: IndexArray, *means: FloatArray) -> FloatArray:
    """The means of an epoch, row by row."""
    whole = np.empty(rows.states.shape)
    if means:
        whole[order] = np.concatenate(means)
    return whole


def _packed(rows: _Rows, means: FloatArray) -> FloatArray:
    warm: FloatArray = means[rows.states == HIDDEN]
    return warm


def _unpacked(rows: _Rows, warm: FloatArray) -> FloatArray:
    return sources.unpacked(rows.states, warm)


def _held_out_bounds(climbing: Climbing, network: Network, rows: _Rows) -> tuple[float, float]:
    states = rows.states if rows.out is None else rows.out
    return _bounds(climbing, network, states), float(len(states))


def _exact(climbing: Climbing, network: Network, rows: _Rows) -> tuple[float, float]:
    truth = exact_log_likelihood(network, rows.states, threads=climbing.threads, progress=False)
    return _bounds(climbing, network, rows.states), float(np.sum(truth))


def _bounds(climbing: Climbing, network: Network, states: States) -> float:
    found = infer_many(network, states, solver=climbing.solver, threads=climbing.threads, progress=False)
    return float(found.bound.sum())


def _most_hidden(rows: _Rows) -> States:
    return rows.states[np.argsort((rows.states == HIDDEN).sum(axis=1))[-1:]]
