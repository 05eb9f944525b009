"""The gradient of the bound in weights and biases, eqs. (34)-(35), for any logarithm term."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from sbnet._types import FloatArray, States
from sbnet.errors import ParameterError
from sbnet.evidence import EvidenceLike, coerce
from sbnet.execution import Block, Inline, Threads, join, map_blocks
from sbnet.inference import MeanField, check_start
from sbnet.network import Network

_BLOCK = 50
"""Rows whose gradients are added up by one thread; fixed, so that sums do not depend on the number of threads."""

_SMALL = 20_000
"""Rows times edges that one thread does alone, in milliseconds: learning row by row starts no threads."""


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
    solver: MeanField | None = None,
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
    solver : MeanField
        With any `log_term`; each has its own gradient.
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
    states, _ = coerce(network, evidence)
    n = len(states)
    weight = np.ones(n) if row_weight is None else np.asarray(row_weight, dtype=np.float64)
    if weight.shape != (n,) or not np.all(np.isfinite(weight)):
        raise ParameterError(f"row_weight has shape {weight.shape}; expected ({n},), one finite number per row")
    return gradient_of_states(network, states, solver, check_start(states, start), weight, threads)


def gradient_of_states(
    network: Network,
    states: States,
    solver: MeanField,
    start: FloatArray | None,
    row_weight: FloatArray,
    threads: int | None,
) -> Gradient:
    """The same for checked rows in the internal form."""
    point = np.full(states.shape, np.nan) if start is None else start
    cuts = [slice(first, min(first + _BLOCK, len(states))) for first in range(0, len(states), _BLOCK)]
    blocks = [Block(rows, (states[rows], point[rows], row_weight[rows])) for rows in cuts]
    small = len(states) * network.n_edges <= _SMALL
    parts = map_blocks(partial(_gradient, network, solver), blocks, executor=Inline() if small else Threads(threads))
    return Gradient(
        join((part.bound for part in parts), np.zeros(0)),
        join((part.means for part in parts), np.zeros(states.shape)),
        sum((part.weight for part in parts), np.zeros(network.n_edges)),
        sum((part.bias for part in parts), np.zeros(network.n_units)),
    )


def _gradient(network: Network, solver: MeanField, block: Block) -> Gradient:
    states, point, row_weight = block.columns
    solution, by_edge, by_unit = solver.climb(network, states, point, row_weight=row_weight)
    return Gradient(solution.bound, solution.means, by_edge, by_unit)
