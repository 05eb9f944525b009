"""Inference: posterior means and bounds, for one pattern or a table of them. These two functions are the only loops."""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from sbnet._types import HIDDEN, FloatArray, States
from sbnet.errors import ConvergenceWarning, EvidenceError, ParameterError
from sbnet.evidence import EvidenceLike, coerce_many, coerce_one
from sbnet.execution import Bar, Block, RowBlocks, Threads, map_blocks
from sbnet.inference.conditioned import Conditioned
from sbnet.inference.estimate import Estimate, Estimates, estimate
from sbnet.inference.gibbs import Gibbs
from sbnet.inference.meanfield import MeanField
from sbnet.inference.mixture import Mixture
from sbnet.inference.results import Posterior, PosteriorBatch, Status, status_of
from sbnet.inference.solvers import Solution, Solver
from sbnet.network import Network

__all__ = [
    "Conditioned",
    "Estimate",
    "Estimates",
    "Gibbs",
    "MeanField",
    "Mixture",
    "Posterior",
    "PosteriorBatch",
    "Solver",
    "Status",
    "estimate",
    "infer",
    "infer_many",
]

_BLOCK = 500_000
"""Numbers in an array of one block of rows: 4 MB, of which a solver needs a few for each thread."""


def infer(
    network: Network, evidence: EvidenceLike, *, solver: Solver | None = None, start: ArrayLike | None = None
) -> Posterior:
    """Posterior means, and a lower bound on the log-likelihood, for one pattern of evidence.

    Parameters
    ----------
    network : Network
    evidence
        A mapping by name or number, or a sequence with NaN (or None, or -1) for units that are not observed; fewer
        values than units mean the last units.
    solver
        :class:`MeanField` by default.
    start
        Starting means, one for every unit.

    Returns
    -------
    Posterior

    Examples
    --------
    >>> import sbnet as sb
    >>> net = sb.from_edges({("rain", "wet"): 2.0, ("sprinkler", "wet"): 1.5}, bias={"rain": -1.0})
    >>> post = sb.infer(net, {"wet": 1})
    >>> print(f"{post.bound:.4f} <= {sb.log_likelihood(net, {'wet': 1}):.4f}, P(rain) about {post['rain']:.2f}")
    -0.3182 <= -0.3139, P(rain) about 0.34
    """
    solver = _checked(solver)
    states = coerce_one(network, evidence)
    solution = solver.solve(network, states, start=check_start(states, start), trace=True)
    _warn_if_stopped(solver, solution.converged)
    path = solution.trace[0]
    path = path[: int(solution.sweeps[0]) + 1] if path.size else path
    return Posterior(
        network,
        states[0],
        solution.means[0],
        float(solution.bound[0]),
        solution.xi[0],
        path,
        status_of(solver.settings, bool(solution.converged[0])),
        int(solution.sweeps[0]),
        solver.settings,
        None if solution.error is None else solution.error[0],
        None if solution.r_hat is None else solution.r_hat[0],
    )


def infer_many(
    network: Network,
    evidence: EvidenceLike,
    *,
    solver: Solver | None = None,
    start: ArrayLike | None = None,
    threads: int | None = None,
    progress: bool | None = None,
) -> PosteriorBatch:
    """The same for a table of evidence, with a different mask in every row if need be.

    Rows are answered independently: each has the answer it would have alone, in any order, with any number of threads.

    Parameters
    ----------
    network : Network
    evidence
        An array of rows by units with NaN (or -1, or a mask) where a unit is not observed; fewer columns than units
        mean the last units. Or a DataFrame, matched by column name; or a list of mappings.
    solver
        :class:`MeanField` by default.
    start
        Starting means, rows by units.
    threads
        Number of threads; all cores by default.
    progress
        Show a progress bar; by default, if the work is long and standard error is a terminal.

    Returns
    -------
    PosteriorBatch
    """
    solver = _checked(solver)
    states = coerce_many(network, evidence)
    point = check_start(states, start)
    parts = map_blocks(
        partial(_solve, network, solver),
        RowBlocks(states, point, most=min(256, _BLOCK // network.n_units)),
        executor=Threads(threads),
        progress=Bar("inference", len(states), progress),
    )
    # An empty table has an empty answer: ask the solver for the shape of it.
    parts = parts or [solver.solve(network, states, start=point, trace=False)]
    columns = [list(column) for column in zip(*parts, strict=True)]
    parts.clear()  # or all parts would be there twice; so it is one column
    batch = Solution._make(_end_to_end(columns.pop(0)) for _ in Solution._fields)
    _warn_if_stopped(solver, batch.converged)
    return PosteriorBatch(
        network,
        states,
        batch.means,
        batch.bound,
        batch.xi,
        batch.sweeps,
        batch.converged,
        solver.settings,
        batch.error,
        batch.r_hat,
        getattr(evidence, "index", None) if hasattr(evidence, "columns") else None,
    )


def _end_to_end(parts: list[Any]) -> Any:
    return None if parts[0] is None else np.concatenate(parts)


def _solve(network: Network, solver: Solver, block: Block) -> Solution:
    states, start = block.columns
    return solver.solve(network, states, start=start, trace=False)


def check_start(states: States, start: ArrayLike | None) -> FloatArray | None:
    """Starting means for every row and unit, or an error."""
    if start is None:
        return None
    array = np.asarray(start, dtype=np.float64)
    if array.shape not in (states.shape, states.shape[1:]):
        raise EvidenceError(f"start has shape {array.shape}; expected {states.shape}, a mean for every unit")
    point = np.array(np.broadcast_to(array, states.shape))
    used = point[states == HIDDEN]
    if np.any((used < 0.0) | (used > 1.0)):
        raise EvidenceError("starting means must lie between 0 and 1; NaN stands for one half")
    return point


def _checked(solver: Solver | None) -> Solver:
    if solver is not None and not hasattr(solver, "solve"):
        raise ParameterError(f"solver is {solver!r}; give a solver, such as sbnet.MeanField() or sbnet.Gibbs()")
    return MeanField() if solver is None else solver


def _warn_if_stopped(solver: Solver, converged: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> None:
    stopped = int((~converged).sum())
    if not stopped:
        return
    rows = f"{stopped:,} of {len(converged):,} row{'' if len(converged) == 1 else 's'}"
    if solver.settings is None:
        message = f"in {rows} the chains disagree (R-hat is 1.05 or more); draw more samples"
    else:
        message = (
            f"{rows} reached max_sweeps={solver.settings.max_sweeps} before the bound settled; "
            "their bounds are valid all the same. Raise max_sweeps or tol"
        )
    warnings.warn(message, ConvergenceWarning, stacklevel=3)
