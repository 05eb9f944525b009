"""The gradient of the bound in weights and biases, eqs. (34)-(35), for any logarithm term."""

from __future__ import annotations

from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from sbnet import checks
from sbnet._types import FloatArray, Model, States
from sbnet.errors import ParameterError
from sbnet.inference import DifferentiableSolver, MeanField, check_differentiable, check_start
from sbnet.model.network import Network
from sbnet.parallel.blocks import Block, Inline, Threads, join, map_blocks, pool, thread_count
from sbnet.parallel.parcels import Shared
from sbnet.questions.evidence import EvidenceLike, coerce

_BLOCK = 50
"""Rows whose gradients are added up by one thread; fixed, so that sums do not depend on the number of threads. A solver
that takes little time for a row may ask for more of them: `rows_at_once`.
"""

_SMALL = 20_000
"""Rows times edges that one thread does alone, in milliseconds: learning row by row starts no threads."""


class Gradient(NamedTuple):
    """The gradient of a sum of bounds: one number per edge and per unit, in the order of the network."""

    bound: FloatArray
    means: FloatArray
    weight: FloatArray
    bias: FloatArray


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
    evidence
        One pattern or a table of them; NaN where a unit is hidden or missing.
    solver : DifferentiableSolver
        :class:`MeanField` by default, with any `log_term`; each has its own gradient.
    start
        Starting means, rows by units.
    row_weight
        A weight for each row, one by default.
    threads
        Number of threads; all cores by default. The result does not depend on it.
    executor
        Where the work is done instead, as in :func:`sbnet.infer_many`; nor on that.

    Returns
    -------
    Gradient
        The bound and the means of each row, and the gradient of the sum in ``network.weight`` and ``network.bias``.
    """
    solver = MeanField() if solver is None else solver
    check_differentiable(solver)
    states, _ = coerce(network, evidence)
    network.check_no_tables("gradient()", "it has no numbers to differentiate by")
    n = len(states)
    weight = np.ones(n)
    if row_weight is not None:
        weight = checks.numbers("row_weight", row_weight, "give one finite number per row")
    if weight.shape != (n,) or not np.all(np.isfinite(weight)):
        raise ParameterError(f"row_weight has shape {weight.shape}; expected ({n},), one finite number per row")
    parameters = np.concatenate([network.weight, network.bias])
    parameters.setflags(write=False)  # as the arrays of a network are: one kind of array, one compiled kernel
    return Objective.of(network, solver, executor, threads).gradient(
        parameters, states, check_start(states, start), weight
    )


@dataclass(frozen=True)
class Objective:
    """The bounds of rows as a function of the parameters: the edges, the solver, and where the work is done."""

    model: Shared[Model]
    solver: DifferentiableSolver
    executor: Executor | None = None
    threads: int | None = None

    @classmethod
    def of(
        cls, network: Network, solver: DifferentiableSolver, executor: Executor | None, threads: int | None
    ) -> Objective:
        """For the edges of a network; its weights and biases are the parameters."""
        return cls(Shared(network.model), solver, None if executor is None else pool(executor), threads)

    def gradient(
        self, parameters: FloatArray, states: States, start: FloatArray | None, row_weight: FloatArray
    ) -> Gradient:
        """That of checked rows in the internal form, at parameters (weights first) that no network has yet."""
        n_weights = len(parameters) - int(self.model.value.threshold[-1])
        weight, bias = parameters[:n_weights], parameters[n_weights:]
        n, size = len(states), getattr(self.solver, "rows_at_once", _BLOCK)
        cuts = [slice(first, min(first + size, n)) for first in range(0, n, size)]
        begin = [None if start is None else start[rows] for rows in cuts]
        blocks = [Block(r, (states[r], means, row_weight[r])) for r, means in zip(cuts, begin, strict=True)]
        model: Any = self.model  # a task is given what is in it
        task = partial(_gradient, model, weight, bias, self.solver)
        executor = self.executor
        if executor is None:
            alone = len(blocks) == 1 or n * len(weight) <= _SMALL or thread_count(self.threads) == 1
            executor = Inline() if alone else Threads(self.threads)
        parts = map_blocks(task, blocks, executor=executor)
        return Gradient(
            join((part.bound for part in parts), np.zeros(0)),
            join((part.means for part in parts), np.zeros((0, len(bias)))),
            sum((part.weight for part in parts), np.zeros(len(weight))),
            sum((part.bias for part in parts), np.zeros(len(bias))),
        )


def _gradient(
    model: Model, weight: FloatArray, bias: FloatArray, solver: DifferentiableSolver, block: Block
) -> Gradient:
    states, start, row_weight = block.columns
    model = model._replace(weight=weight)
    solution, gradient = solver.maximise(model, bias, states, start, row_weight=row_weight)
    if gradient is None:
        raise ParameterError(f"solver is {solver!r}; its maximise() gives no gradient, though row_weight asks for one")
    return Gradient(solution.bound, solution.means, *gradient)
