"""The gradient of the bound in weights and biases, eqs. (34)-(35), for any logarithm term."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from sbnet._progress import run_blocks
from sbnet._types import FloatArray, Model, States
from sbnet.errors import ParameterError
from sbnet.evidence import EvidenceLike, coerce
from sbnet.inference import Climber, MeanField, Slope, check_climber, check_start
from sbnet.network import Network

_BLOCK = 50
"""Rows whose gradients are added up by one thread; fixed, so that sums do not depend on the number of threads."""


class Gradient(NamedTuple):
    """The slope of a sum of bounds: one number per edge and per unit, in the order of the network."""

    bound: FloatArray
    means: FloatArray
    weight: FloatArray
    bias: FloatArray


def gradient(
    network: Network,
    evidence: EvidenceLike,
    *,
    solver: Climber | None = None,
    start: ArrayLike | None = None,
    row_weight: ArrayLike | None = None,
    threads: int | None = None,
) -> Gradient:
    """Solve the mean field equations of every row, and differentiate the sum of the bounds there.

    At fixed means and xi, eqs. (34) and (35) are the whole gradient: where the bound is stationary in them, their own
    dependence on the weights does not count (envelope theorem). So it is as exact as the solver's `tol` is small.

    Parameters
    ----------
    network : Network
    evidence
        One pattern or a table of them; NaN where a unit is hidden or missing.
    solver : Climber
        :class:`MeanField` by default, with any `log_term`; each has its own gradient.
    start
        Starting means, rows by units.
    row_weight
        A weight for each row, one by default.
    threads
        Number of threads; all cores by default. The result does not depend on it.

    Returns
    -------
    Gradient
        The bound and the means of each row, and the slopes of the sum in ``network.weight`` and ``network.bias``.
    """
    solver = MeanField() if solver is None else solver
    check_climber(solver)
    states, _ = coerce(network, evidence)
    n = len(states)
    weight = np.ones(n) if row_weight is None else np.asarray(row_weight, dtype=np.float64)
    if weight.shape != (n,) or not np.all(np.isfinite(weight)):
        raise ParameterError(f"row_weight has shape {weight.shape}; expected ({n},), one finite number per row")
    return gradient_of_rows(network.model, network.bias, states, solver, check_start(states, start), weight, threads)


def gradient_of_rows(
    model: Model,
    bias: FloatArray,
    states: States,
    solver: Climber,
    start: FloatArray | None,
    row_weight: FloatArray,
    threads: int | None,
) -> Gradient:
    """The same for checked rows in the internal form, and parameters that need not be those of a network yet."""
    n = len(states)
    bound, means = np.empty(n), np.empty(states.shape)
    parts: dict[int, Slope] = {}

    def work(rows: slice) -> int:
        given = None if start is None else start[rows]
        solution, slope = solver.climb(model, bias, states[rows], given, row_weight=row_weight[rows])
        if slope is None:
            raise ParameterError(f"solver is {solver!r}; its climb() gives no gradient, though row_weight asks for one")
        bound[rows], means[rows] = solution.bound, solution.means
        parts[rows.start] = slope
        return int(rows.stop - rows.start)

    run_blocks(work, n, _BLOCK, threads, False, "gradient")
    total = Slope(np.zeros(len(model.weight)), np.zeros(len(bias)))
    for first in sorted(parts):
        for whole, part in zip(total, parts[first], strict=True):
            whole += part
    return Gradient(bound, means, *total)
