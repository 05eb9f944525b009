"""Rows to learn from: what learning asks of them, wherever they lie, and those that lie in memory.

Learning goes through a source batch by batch. A batch is a function of the parameters, so that whoever holds the rows
computes their gradient where they are; nothing but gradients comes back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from sbnet import checks
from sbnet._types import HIDDEN, FloatArray, IndexArray, States
from sbnet.errors import ParameterError
from sbnet.exact.answers import log_likelihood as exact_log_likelihood
from sbnet.inference import infer_many
from sbnet.learning.gradients import Objective
from sbnet.model.network import Network
from sbnet.questions.evidence import read_many

WARM_BYTES = 500_000_000
"""Means of all rows are kept between epochs, to start from, as long as they take no more than this."""


class Task(NamedTuple):
    """What is to be learned from, as :func:`sbnet.fit` was given it."""

    network: Network
    X: Any
    sample_weight: Any
    validation: Any
    missing: Any
    objective: Objective
    batch_size: int
    shuffle: bool
    saved: bool  # is each epoch written to a checkpoint?


class BoundGradient(NamedTuple):
    """The gradient of a batch: its rows, the sum of weights, the weighted sum of bounds, the gradient of their mean."""

    rows: int
    weight: float
    bound: float
    gradient: FloatArray


Batch: TypeAlias = Callable[[FloatArray], BoundGradient]
"""From the parameters, weights first, to a gradient."""
Sums: TypeAlias = Callable[[Objective, Network, States], tuple[float, float]]


class Source:
    """Rows to learn from, some of them perhaps held out. By default, no means are kept between two epochs.

    Attributes
    ----------
    n_rows : int
        Rows of an epoch; 0 as long as nobody knows.
    weight : float
        The sum of their weights; 0 as long as nobody knows.
    n_warm : int or None
        How many means of hidden cells there are between two epochs, which the next one starts from; None if none are.
    """

    n_rows: int = 0
    weight: float = 0.0
    n_warm: int | None = None

    def __init__(self, task: Task, states: Any, out: Any) -> None:
        self.task, self.states, self.out = task, states, out

    def fingerprints(self) -> dict[str, Any]:
        """What tells these rows from others, by name, for checkpoints."""
        raise NotImplementedError

    def batches(self, generator: np.random.Generator) -> Iterator[Batch]:
        """All rows once, in an order that the generator decides."""
        raise NotImplementedError

    def warm(self) -> FloatArray | None:
        """The means of hidden cells that the next epoch starts from, in the order of the table."""
        return None

    def resume(self, warm: FloatArray | None, n_rows: int) -> None:
        """Go on from such means, in an epoch of that many rows."""

    def held_out(self, network: Network) -> float:
        """The mean bound of the held-out rows."""
        total, n = self._sums(bound_sum, network, self.out)
        return float(total / n)

    def exact(self, network: Network) -> tuple[float, float]:
        """The mean bound and the mean exact log-likelihood of the rows."""
        bounds, truths = self._sums(exact_sums, network, self.states)
        return float(bounds / self.n_rows), float(truths / self.n_rows)

    def _sums(self, function: Sums, network: Network, states: Any) -> FloatArray:
        return np.array(function(self.task.objective, network, states))

    def most_hidden(self) -> States:
        """The row with the most hidden cells, whose exact log-likelihood takes longest."""
        raise NotImplementedError


class Table(Source):
    """Rows in memory, and the means that the last epoch has left, row by row."""

    def __init__(self, task: Task, states: States, weights: FloatArray, out: States | None) -> None:
        super().__init__(task, states, out)
        self.weights, self.n_rows, self.weight = weights, len(states), float(weights.sum())
        if 8 * len(states) * len(task.network.bias) <= WARM_BYTES:
            self.n_warm = n_hidden(task.network, states)
        self._means: FloatArray | None = None

    def fingerprints(self) -> dict[str, Any]:
        return {"table": self.states, "sample_weight": self.weights, "validation": self.out}

    def batches(self, generator: np.random.Generator) -> Iterator[Batch]:
        n, size = self.n_rows, self.task.batch_size
        order = generator.permutation(n) if self.task.shuffle else np.arange(n)
        begin = self._means
        means = np.empty((n, len(self.task.network.bias))) if self.n_warm is not None and begin is None else begin
        for start in range(0, n, size):
            yield partial(self._gradient, order[start : start + size], begin, means)
        self._means = means

    def _gradient(
        self, rows: IndexArray, begin: FloatArray | None, means: FloatArray | None, parameters: FloatArray
    ) -> BoundGradient:
        start = None if begin is None else begin[rows]
        found, after = batch_gradient(self.task.objective, parameters, self.states[rows], self.weights[rows], start)
        if means is not None:
            means[rows] = after
        return found

    def warm(self) -> FloatArray | None:
        return None if self._means is None else packed(self.task.network, self.states, self._means)

    def resume(self, warm: FloatArray | None, n_rows: int) -> None:
        if warm is not None:
            self._means = unpacked(self.task.network, self.states, warm)

    def most_hidden(self) -> States:
        return most_hidden(self.states)


def batch_gradient(
    objective: Objective,
    parameters: FloatArray,
    states: States,
    weights: FloatArray,
    start: FloatArray | None,
    *,
    mean: bool = True,
) -> tuple[BoundGradient, FloatArray]:
    """The gradient of the weighted mean of their bounds, or of the sum, and their means."""
    total = weights.sum()
    share = weights / max(total, np.finfo(float).tiny) if mean else weights
    found = objective.gradient(parameters, states, start, share)
    bound = float(weights[weights > 0.0] @ found.bound[weights > 0.0])  # what cannot be counts if it has a weight
    return BoundGradient(len(states), float(total), bound, found.gradient), found.means


def bound_sum(objective: Objective, network: Network, states: States) -> tuple[float, float]:
    """The sum of the bounds of rows, by the solver that learning uses, and their number."""
    threads, executor = objective.threads, objective.executor
    found = infer_many(network, states, solver=objective.solver, threads=threads, executor=executor, progress=False)
    return float(found.bound.sum()), float(len(states))


def exact_sums(objective: Objective, network: Network, states: States) -> tuple[float, float]:
    """The sum of the bounds of rows, and that of their exact log-likelihoods."""
    truth = exact_log_likelihood(network, states, threads=objective.threads, progress=False)
    return bound_sum(objective, network, states)[0], float(np.sum(truth))


def most_hidden(states: States) -> States:
    """The row with the most hidden cells; of no rows, none."""
    return states[np.argsort((states == HIDDEN).sum(axis=1))[-1:]]


def n_hidden(network: Network, states: States) -> int:
    """Means of hidden cells, one for each state from the second one on."""
    return int((states == HIDDEN).sum(axis=0) @ (network.n_states - 1))


def packed(network: Network, states: States, means: FloatArray) -> FloatArray:
    """Means of hidden cells."""
    hidden: FloatArray = means[states[:, network.columns[0]] == HIDDEN]
    return hidden


def unpacked(network: Network, states: States, warm: FloatArray) -> FloatArray:
    """Means of all cells; those of observed ones are in the table."""
    variable, state = network.columns
    means: FloatArray = (states[:, variable] == state).astype(np.float64)
    means[states[:, variable] == HIDDEN] = warm
    return means


def table(task: Task, generator: np.random.Generator) -> Table:
    """The rows of a table, some of them held out if `validation` says so."""
    states = read_many(task.network, task.X, missing=task.missing).states
    weights = row_weights(len(states), task.sample_weight)
    if task.validation is None:
        return Table(task, states, weights, None)
    if not is_share(task.validation):
        return Table(task, states, weights, held_out_rows(task))
    share = checks.fraction("validation", task.validation)
    n_out = min(max(1, round(share * len(states))), len(states) - 1)
    if n_out < 1:
        raise ParameterError("one row cannot be divided into rows to learn from and rows to hold out")
    order = generator.permutation(len(states))
    out, kept = np.sort(order[:n_out]), np.sort(order[n_out:])
    return Table(task, states[kept], weights[kept], states[out])


def held_out_rows(task: Task) -> States:
    """The rows of a table that is held out."""
    states = read_many(task.network, task.validation, missing=task.missing).states
    if not len(states):
        raise ParameterError("validation has no rows; give some, a share of the table such as 0.1, or None")
    return states


def is_share(validation: Any) -> bool:
    """A number, rather than a table."""
    return isinstance(validation, float | int)


def row_weights(n: int, sample_weight: ArrayLike | None) -> FloatArray:
    """A weight for each row."""
    if n == 0:
        raise ParameterError("there are no rows to learn from")
    if sample_weight is None:
        return np.ones(n)
    wanted = f"it must hold {n} numbers, one per row, none negative and not all zero"
    weights = checks.numbers("sample_weight", sample_weight, wanted)
    if weights.shape != (n,) or not np.all(weights >= 0.0) or not np.isfinite(weights.sum()) or weights.sum() <= 0.0:
        raise ParameterError(f"sample_weight is {checks.shown(sample_weight)}; {wanted}")
    return weights
