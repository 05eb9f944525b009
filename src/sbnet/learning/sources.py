"""Rows to learn from: what learning asks of them, wherever they lie, and those that lie in memory.

Learning goes through a source batch by batch. A batch is a function of the parameters, so that whoever holds the rows
computes their slope where they are; nothing but slopes comes back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from sbnet import checks
from sbnet._types import HIDDEN, FloatArray, IndexArray, States
from sbnet.errors import ParameterError
from sbnet.exact.answers import log_likelihood as exact_log_likelihood
from sbnet.inference import infer_many
from sbnet.learning.gradients import Climbing
from sbnet.model.network import Network
from sbnet.questions.evidence import Reading, read_many

WARM_BYTES = 500_000_000
"""Means of all rows are kept between epochs, to start from, as long as they take no more than this."""


class How(NamedTuple):
    """How rows are gone through."""

    batch_size: int
    shuffle: bool
    climbing: Climbing
    saved: bool = False  # is each epoch written to a checkpoint?


class BoundGradient(NamedTuple):
    """Of a batch: its rows, the sum of their weights, the weighted sum of bounds, and the gradient of their mean."""

    rows: int
    weight: float
    bound: float
    direction: FloatArray


Batch: TypeAlias = Callable[[FloatArray], BoundGradient]
"""From the parameters, weights first, to a slope."""


class Source(Protocol):
    """Rows to learn from, some of them perhaps held out."""

    @property
    def n_rows(self) -> int:
        """Rows of an epoch; 0 as long as nobody knows."""

    @property
    def weight(self) -> float:
        """The sum of their weights; 0 as long as nobody knows."""

    @property
    def holds_out(self) -> bool:
        """Are there held-out rows?"""

    def fingerprints(self) -> dict[str, Any]:
        """What tells these rows from others, by name, for checkpoints."""

    def batches(self, generator: np.random.Generator) -> Iterator[Batch]:
        """All rows once, in an order that the generator decides."""

    def warm(self) -> FloatArray | None:
        """The means of hidden cells that the next epoch starts from, in the order of the table."""

    def take_up(self, warm: FloatArray | None, n_rows: int) -> None:
        """Go on from such means, in an epoch of that many rows."""

    @property
    def n_warm(self) -> int | None:
        """How many there are between two epochs; None for a source that keeps none."""

    def held_out(self, network: Network) -> float:
        """The mean bound of the held-out rows."""

    def exact(self, network: Network) -> tuple[float, float]:
        """The mean bound and the mean exact log-likelihood of the rows."""

    def check_exact(self, network: Network) -> None:
        """Refuse to sum over the states of too many hidden units."""


class Table:
    """Rows in memory, and the means that the last epoch has left, row by row."""

    def __init__(self, states: States, weights: FloatArray, out: States | None, how: How, warm: bool = True) -> None:
        self.states, self.weights, self._out, self._how = states, weights, out, how
        self._keeps = warm and 8 * states.size <= WARM_BYTES
        self._means: FloatArray | None = None

    n_rows = property(lambda self: len(self.states))
    weight = property(lambda self: float(self.weights.sum()))
    holds_out = property(lambda self: self._out is not None)
    n_warm = property(lambda self: int((self.states == HIDDEN).sum()) if self._keeps else None)

    def fingerprints(self) -> dict[str, Any]:
        return {"table": self.states, "sample_weight": self.weights, "validation": self._out}

    def batches(self, generator: np.random.Generator) -> Iterator[Batch]:
        n, size = len(self.states), self._how.batch_size
        order = generator.permutation(n) if self._how.shuffle else np.arange(n)
        begin = self._means
        means = np.empty(self.states.shape) if self._keeps and begin is None else begin
        for start in range(0, n, size):
            yield partial(self._slope, order[start : start + size], begin, means)
        self._means = means

    def _slope(
        self, rows: IndexArray, begin: FloatArray | None, means: FloatArray | None, parameters: FloatArray
    ) -> BoundGradient:
        start = None if begin is None else begin[rows]
        slope, found = slope_of_rows(self._how.climbing, parameters, self.states[rows], self.weights[rows], start)
        if means is not None:
            means[rows] = found
        return slope

    def warm(self) -> FloatArray | None:
        return None if self._means is None else self._means[self.states == HIDDEN]

    def take_up(self, warm: FloatArray | None, n_rows: int) -> None:
        if warm is not None:
            self._means = unpacked(self.states, warm)

    def held_out(self, network: Network) -> float:
        assert self._out is not None
        return float(self._bounds(network, self._out).mean())

    def exact(self, network: Network) -> tuple[float, float]:
        truth = exact_log_likelihood(network, self.states, threads=self._how.climbing.threads, progress=False)
        return float(self._bounds(network, self.states).mean()), float(np.mean(truth))

    def check_exact(self, network: Network) -> None:
        exact_log_likelihood(network, self.states[[np.argmax((self.states == HIDDEN).sum(axis=1))]])

    def _bounds(self, network: Network, states: States) -> FloatArray:
        climbing = self._how.climbing
        return infer_many(
            network, states, solver=climbing.solver, threads=climbing.threads, executor=climbing.executor
        ).bound


def slope_of_rows(
    climbing: Climbing, parameters: FloatArray, states: States, weights: FloatArray, start: FloatArray | None
) -> tuple[BoundGradient, FloatArray]:
    """The slope of the weighted mean of their bounds, and their means."""
    total = weights.sum()
    share = weights / max(total, np.finfo(float).tiny)
    n_edges = len(parameters) - states.shape[1]
    found = climbing.gradient(parameters[:n_edges], parameters[n_edges:], states, start, share)
    direction = np.concatenate([found.weight, found.bias])
    return BoundGradient(len(states), float(total), float(weights @ found.bound), direction), found.means


def unpacked(states: States, warm: FloatArray) -> FloatArray:
    """Means of all units; those of observed ones are in the table."""
    means = states.astype(np.float64)
    means[states == HIDDEN] = warm
    return means


def table(
    network: Network,
    X: Any,
    how: How,
    sample_weight: Any,
    validation: Any,
    missing: Any,
    generator: np.random.Generator,
) -> Table:
    """The rows of a table, some of them held out if `validation` says so."""
    reading = read_many(network, X, missing=missing)
    weights = row_weights(len(reading.states), sample_weight)
    if validation is None:
        return Table(reading.states, weights, None, how)
    if not is_share(validation):  # in the codings of the table to learn from
        out = held_out_rows(read_many(network, validation, missing=missing, known=reading.codings))
        return Table(reading.states, weights, out, how)
    return _divided(reading, weights, validation, how, generator)


def held_out_rows(reading: Reading) -> States:
    """The rows of a table that is held out."""
    if not len(reading.states):
        raise ParameterError("validation has no rows; give some, a share of the table such as 0.1, or None")
    return reading.states


def is_share(validation: Any) -> bool:
    """A number, rather than a table."""
    return isinstance(validation, float | int)


def _divided(reading: Reading, weights: FloatArray, share: float, how: How, generator: np.random.Generator) -> Table:
    """A share of the rows held out, at least one of each."""
    states = reading.states
    checks.fraction("validation", share)
    n_out = min(max(1, round(share * len(states))), len(states) - 1)
    if n_out < 1:
        raise ParameterError("one row cannot be divided into rows to learn from and rows to hold out")
    order = generator.permutation(len(states))
    out, kept = np.sort(order[:n_out]), np.sort(order[n_out:])
    return Table(states[kept], weights[kept], states[out], how)


def row_weights(n: int, sample_weight: ArrayLike | None) -> FloatArray:
    """One for each row."""
    if n == 0:
        raise ParameterError("there are no rows to learn from")
    if sample_weight is None:
        return np.ones(n)
    wanted = f"it must hold {n} numbers, one per row, none negative and not all zero"
    weights = checks.numbers("sample_weight", sample_weight, wanted)
    if weights.shape != (n,) or not np.all(weights >= 0.0) or not np.isfinite(weights.sum()) or weights.sum() <= 0.0:
        raise ParameterError(f"sample_weight is {checks.shown(sample_weight)}; {wanted}")
    return weights
