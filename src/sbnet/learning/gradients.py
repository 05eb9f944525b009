"""The gradient of the bound in weights and biases, eqs. (34)-(35), for any logarithm term."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from sbnet import checks
from sbnet._types import FloatArray, Model, States
from sbnet.errors import ParameterError
from sbnet.inference import DifferentiableSolver, MeanField, check_differentiable, check_start
from sbnet.inference.solvers.tabular import add_statistics, ascend, fill_means
from sbnet.model.network import Network
from sbnet.parallel.blocks import Block, Inline, Threads, join, map_blocks, pool, thread_count
from sbnet.parallel.parcels import Shared
from sbnet.questions.evidence import EvidenceLike, coerce, observed_means

_BLOCK = 50
"""Rows whose gradients are added up by one thread; fixed, so that sums do not depend on the number of threads. A solver
that takes little time for a row may ask for more of them: `rows_at_once`.
"""

_SMALL = 20_000
"""Rows times edges that one thread does alone, in milliseconds: learning row by row starts no threads."""


class Gradient(NamedTuple):
    """The gradient of a sum of bounds: one number per edge and per unit, in the order of the network.

    Of each table, by name, it is the gradient in the logarithms of its entries: how often each is expected to be used.
    """

    bound: FloatArray
    means: FloatArray
    weight: FloatArray
    bias: FloatArray
    tables: Mapping[str, FloatArray] = MappingProxyType({})


class Solved(NamedTuple):
    """Bounds and means of some rows, and the gradient of the sum in all parameters, one after the other."""

    bound: FloatArray
    means: FloatArray
    gradient: FloatArray


def gradient(
    network: Network,
    evidence: EvidenceLike,
    *,
    solver: DifferentiableSolver | None = None,
    start: ArrayLike | None = None,
    row_weight: ArrayLike | None = None,
    threads: int | None = None,
    executor: Executor | None = None,
) -> Gradient:
    """Solve the mean field equations of every row, and differentiate the sum of the bounds there.

    At fixed means and parameters of the terms the partial derivatives are the whole gradient: where the bound is
    stationary in them, their own dependence on the weights does not count (envelope theorem). So it is as exact as the
    solver's `tol` is small. By default it is the gradient of the bound with the exact logarithm term, eq. (16); that of
    the paper's bound (22), eqs. (34) and (35), is given by ``solver=MeanField(log_term="xi", enumerate_up_to=0)``.

    Parameters
    ----------
    network : Network
    evidence : mapping, sequence or table
        One pattern or a table of them; NaN where a variable is hidden or missing.
    solver : DifferentiableSolver
        :class:`MeanField` by default, with any `log_term`; each has its own gradient.
    start : array_like, optional
        Starting means, rows by variables.
    row_weight : array_like, optional
        A weight for each row, one by default.
    threads : int, optional
        Number of threads; all cores by default. The result does not depend on it.
    executor : concurrent.futures.Executor, optional
        Where the work is done instead, as in :func:`sbnet.infer_many`; nor on that.

    Returns
    -------
    Gradient
        The bound and the means of each row, and the gradient of the sum in ``network.weight`` and ``network.bias``, and
        in the logarithms of the entries of ``network.tables``.

    Examples
    --------
    >>> import sbnet as sb
    >>> net = sb.from_edges({("rain", "wet"): 2.0, ("sprinkler", "wet"): 1.5}, bias={"rain": -1.0})
    >>> found = sb.gradient(net, {"wet": 1})
    >>> found.weight.shape, found.bias.shape
    ((2,), (3,))
    """
    solver = MeanField() if solver is None else solver
    check_differentiable(solver)
    states, _ = coerce(network, evidence)
    check_learns_tables(network, solver)
    n = len(states)
    weight = np.ones(n)
    if row_weight is not None:
        weight = checks.numbers("row_weight", row_weight, "give one finite number per row")
    if weight.shape != (n,) or not np.all(np.isfinite(weight)):
        raise ParameterError(f"row_weight has shape {weight.shape}; expected ({n},), one finite number per row")
    point = check_start(network, observed_means(network, states), start)
    found = Objective.of(network, solver, executor, threads).gradient(parameters_of(network), states, point, weight)
    n_weights, end = len(network.weight), len(network.weight) + len(network.bias)
    weights, bias, entries = np.split(found.gradient, [n_weights, end])
    return Gradient(found.bound, found.means, weights, bias, tables_from(network, entries))


def parameters_of(network: Network) -> FloatArray:
    """Weights, biases and entries of tables in one array."""
    together = np.concatenate([network.weight, network.bias, *(table.ravel() for table in network.tables.values())])
    together.setflags(write=False)  # as the arrays of a network are: one kind of array, one compiled kernel
    return together


def tables_from(network: Network, entries: FloatArray) -> dict[str, FloatArray]:
    """Tables by name, from the numbers of all of them."""
    ends = np.cumsum([table.size for table in network.tables.values()])[:-1]
    parts = np.split(entries, ends) if network.tables else []
    return {name: part.reshape(network.tables[name].shape) for name, part in zip(network.tables, parts, strict=True)}


def check_learns_tables(network: Network, solver: object) -> None:
    """Only mean field theory says how often an entry of a table is used."""
    if not isinstance(solver, MeanField):
        network.check_no_tables(f"learning with {type(solver).__name__}()", "MeanField() does")


@dataclass(frozen=True)
class Objective:
    """The bounds of rows as a function of the parameters: the edges, the solver, and where the work is done."""

    model: Shared[Model]
    solver: DifferentiableSolver
    executor: Executor | None = None
    threads: int | None = None
    network: Shared[Network] | None = None  # if some of its variables have tables

    @classmethod
    def of(
        cls, network: Network, solver: DifferentiableSolver, executor: Executor | None, threads: int | None
    ) -> Objective:
        """For the edges of a network; its weights, biases and tables are the parameters."""
        where, tables = None if executor is None else pool(executor), Shared(network) if network.tables else None
        return cls(Shared(network.model), solver, where, threads, tables)

    def gradient(
        self, parameters: FloatArray, states: States, start: FloatArray | None, row_weight: FloatArray
    ) -> Solved:
        """The gradient for checked rows of states, at parameters (weights first) that belong to no network yet."""
        n_weights, n_bias = len(self.model.value.weight), int(self.model.value.threshold[-1])
        n, size = len(states), getattr(self.solver, "rows_at_once", _BLOCK)
        cuts = [slice(first, min(first + size, n)) for first in range(0, n, size)]
        begin = [None if start is None else start[rows] for rows in cuts]
        blocks = [Block(r, (states[r], means, row_weight[r])) for r, means in zip(cuts, begin, strict=True)]
        shared: Any = self.model if self.network is None else self.network  # a task is given what is in it
        if self.network is None:
            task = partial(_gradient, shared, parameters[:n_weights], parameters[n_weights:], self.solver)
        else:
            task = partial(_gradient_with_tables, shared, parameters, self.solver)
        executor = self.executor
        if executor is None:
            alone = len(blocks) == 1 or n * n_weights <= _SMALL or thread_count(self.threads) == 1
            executor = Inline() if alone else Threads(self.threads)
        parts = map_blocks(task, blocks, executor=executor)
        return Solved(
            join((part.bound for part in parts), np.zeros(0)),
            join((part.means for part in parts), np.zeros((0, n_bias))),
            sum((part.gradient for part in parts), np.zeros(len(parameters))),
        )


def _gradient(model: Model, weight: FloatArray, bias: FloatArray, solver: DifferentiableSolver, block: Block) -> Solved:
    states, start, row_weight = block.columns
    model = model._replace(weight=weight)
    solution, gradient = solver.maximise(model, bias, states, start, row_weight=row_weight)
    if gradient is None:
        raise ParameterError(f"solver is {solver!r}; its maximise() gives no gradient, though row_weight asks for one")
    return Solved(solution.bound, solution.means, np.concatenate(gradient))


def _gradient_with_tables(network: Network, parameters: FloatArray, solver: Any, block: Block) -> Solved:
    """The gradient where variables have tables; impossible rows have none."""
    states, start, row_weight = block.columns
    weight, bias, entries = np.split(parameters, [len(network.weight), len(network.weight) + len(network.bias)])
    network = network.with_parameters(weight=weight, bias=bias, tables=tables_from(network, entries))
    bound, means, gradient = np.empty(len(states)), np.empty((len(states), len(bias))), np.zeros(len(parameters))
    for r, row in enumerate(states):
        found = ascend(network, row, [None if start is None else start[r]], solver.stop)
        bound[r] = found.bounds[-1]
        fill_means(network, row, found.q, means[r])
        if bound[r] > -np.inf:
            add_statistics(network, row, found.q, row_weight[r], gradient)
    return Solved(bound, means, gradient)
