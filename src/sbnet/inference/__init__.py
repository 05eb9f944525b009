"""Inference: posterior means and bounds, for one pattern or a table of them. These two functions are the only loops."""

from __future__ import annotations

import warnings
from concurrent.futures import Executor
from dataclasses import replace
from functools import partial
from typing import Any, TypedDict, Unpack, overload

import numpy as np
from numpy.typing import ArrayLike

from sbnet._types import Bound, FloatArray, Model, Stop
from sbnet.errors import ConvergenceWarning
from sbnet.inference.best_state import MostProbable, MostProbableBatch, most_probable
from sbnet.inference.comparison import Comparison
from sbnet.inference.equal_rows import by_mask, first_equal
from sbnet.inference.estimation import Estimate, Estimates, EstimateSettings, estimate
from sbnet.inference.lazy import LazyPosteriors, answer_lazily
from sbnet.inference.results import Posterior, PosteriorBatch
from sbnet.inference.solution import Chains, Gather, Solution, Status, Xi, check_start
from sbnet.inference.solvers.conditioned import Conditioned
from sbnet.inference.solvers.gibbs import Gibbs
from sbnet.inference.solvers.mean_field import MeanField
from sbnet.inference.solvers.mixture import Mixture
from sbnet.inference.solvers.protocol import (
    BoundGradient,
    DifferentiableSolver,
    Solver,
    check_differentiable,
    check_solver,
    check_states,
)
from sbnet.inference.solvers.structured import Structured
from sbnet.inference.step_by_step import Step, steps
from sbnet.model.network import Network
from sbnet.parallel.blocks import Bar, Block, RowBlocks, Taken, each_block, pool
from sbnet.parallel.lazy import LazyTable, is_lazy
from sbnet.questions.evidence import EvidenceLike, observed_means
from sbnet.questions.question import Part, Question, ask_many, ask_one

__all__ = [
    "Bound",
    "BoundGradient",
    "Chains",
    "Comparison",
    "Conditioned",
    "DifferentiableSolver",
    "Estimate",
    "EstimateSettings",
    "Estimates",
    "Gibbs",
    "LazyPosteriors",
    "MeanField",
    "Mixture",
    "Model",
    "MostProbable",
    "MostProbableBatch",
    "Posterior",
    "PosteriorBatch",
    "Solution",
    "Solver",
    "Status",
    "Step",
    "Stop",
    "Structured",
    "Xi",
    "check_differentiable",
    "check_solver",
    "check_start",
    "estimate",
    "infer",
    "infer_many",
    "most_probable",
    "steps",
]

_BLOCK = 500_000
"""Numbers in an array of one block of rows: 4 MB, of which a solver needs a few for each thread."""


def infer(
    network: Network,
    evidence: EvidenceLike,
    *,
    do: EvidenceLike | None = None,
    solver: Solver | None = None,
    start: ArrayLike | None = None,
) -> Posterior:
    """Posterior means, and a lower bound on the log-likelihood, for one pattern of evidence.

    Parameters
    ----------
    network : Network
    evidence : mapping or sequence
        A mapping by name or number, or a sequence with NaN (or None, or -1) for variables that are not observed; fewer
        values than variables mean the last variables. In a mapping, likelihoods, one for each state of a variable and
        on any scale, are soft evidence. The bound is then on the expected likelihood of all reports.
    do : mapping or sequence, optional
        Variables held at given states by intervention, as in :func:`sbnet.sample`: they ignore their parents, and are
        no part of P. This is not evidence: the variables above are not affected.
    solver : Solver, optional
        :class:`MeanField` by default.
    start : array_like, optional
        Starting means, one for every variable.

    Returns
    -------
    Posterior
        Where the evidence is impossible its bound is minus infinity, the means of hidden variables are NaN, and
        :attr:`Posterior.impossible` says why.

    Examples
    --------
    >>> import sbnet as sb
    >>> net = sb.from_edges({("rain", "wet"): 2.0, ("sprinkler", "wet"): 1.5}, bias={"rain": -1.0})
    >>> post = sb.infer(net, {"wet": 1})
    >>> print(f"{post.bound:.4f} <= {sb.log_likelihood(net, {'wet': 1}):.4f}, P(rain) about {post['rain']:.2f}")
    -0.3182 <= -0.3139, P(rain) about 0.34
    """
    return _answer(ask_one(network, evidence, do), solver, start, None, trace=True)[0]


class _Options(TypedDict, total=False):
    """What :func:`infer_many` takes after the data, for its signatures."""

    do: EvidenceLike | None
    solver: Solver | None
    start: ArrayLike | None
    threads: int | None
    executor: Executor | None
    progress: bool | None
    missing: Any


@overload
def infer_many(network: Network, evidence: LazyTable, **options: Unpack[_Options]) -> LazyPosteriors: ...
@overload
def infer_many(network: Network, evidence: EvidenceLike, **options: Unpack[_Options]) -> PosteriorBatch: ...
def infer_many(
    network: Network,
    evidence: Any,
    *,
    do: EvidenceLike | None = None,
    solver: Solver | None = None,
    start: ArrayLike | None = None,
    threads: int | None = None,
    executor: Executor | None = None,
    progress: bool | None = None,
    missing: Any = (),
) -> PosteriorBatch | LazyPosteriors:
    """Posterior means and lower bounds for a table of evidence, with a different mask in every row if need be.

    Rows are answered independently: each has the answer it would have alone, in any order, with any number of threads.
    Equal rows are solved once, unless `start` gives them starting points.

    Parameters
    ----------
    network : Network
    evidence : mapping, sequence or table
        An array of rows by variables with NaN (or -1, or a mask) where a variable is not observed; fewer columns than
        variables mean the last variables. Or a data frame of any kind, matched by column name; or a list of mappings,
        with soft evidence as in :func:`infer`. A cell names a state of its variable, as "yes" and "no" do.
    do : mapping, sequence or table, optional
        Variables held by intervention, as in :func:`infer`: one pattern for all rows, or one for each.
    solver : Solver, optional
        :class:`MeanField` by default.
    start : array_like, optional
        Starting means, rows by variables.
    threads : int, optional
        Number of threads; all cores by default.
    executor : concurrent.futures.Executor, optional
        Where the work is done instead: processes, or the workers of a cluster. The network travels once to each
        worker, rows in blocks; the answers are the same to the last bit.
    progress : bool, optional
        Show a progress bar; by default, if the work is long and standard error is a terminal.
    missing : sequence, optional
        Values that stand for "not observed", such as ``[-99, 9]``, beside NaN, None, NA, -1 and empty cells.

    Returns
    -------
    PosteriorBatch
        For a Dask array or data frame a :class:`LazyPosteriors`, whose arrays are computed on the workers, partition by
        partition, when they are asked for.

    Examples
    --------
    >>> import sbnet as sb
    >>> net = sb.from_edges({("rain", "wet"): 2.0, ("sprinkler", "wet"): 1.5}, bias={"rain": -1.0})
    >>> many = sb.infer_many(net, [{"wet": 1}, {"wet": 0, "rain": 0}])
    >>> many["sprinkler"].round(2)
    array([0.59, 0.27])
    """
    if is_lazy(evidence):
        answer: Any = partial(infer_many, do=do, solver=solver)
        return answer_lazily(network, evidence, answer, start, missing, threads)
    question = ask_many(network, evidence, do, missing=missing)
    index = getattr(evidence, "index", None) if hasattr(evidence, "columns") else None
    return _answer(question, solver, start, pool(executor, threads), index=index, progress=progress)


def _answer(
    question: Question,
    solver: Solver | None,
    start: ArrayLike | None,
    executor: Executor | None,
    *,
    index: Any = None,
    trace: bool = False,
    progress: bool | None = False,
) -> PosteriorBatch:
    """The one way from rows to answers."""
    solver = MeanField() if solver is None else solver
    check_solver(solver)
    check_states(solver, question.network)
    given = question.given
    known = observed_means(question.network, given)
    point = check_start(question.network, known, start)
    whole = Gather(*known.shape)
    for part in question.parts:
        begin = None if point is None else part.widened(point[part.rows], 0.5)
        if executor is None or not len(given):  # here and now; an empty table gets an empty answer with the same parts
            found = solver.solve(part.network, part.states, start=begin, trace=trace)
        else:
            found = _gathered(part, solver, begin, executor, trace, progress)
        solution = found if question.conditions is None else _as_asked(part, found)
        if len(question.parts) > 1:
            whole.put(part.rows, solution)
    solution = whole.solution() if len(question.parts) > 1 else solution
    solution = solution.ruled_out(question.impossible, known)
    _warn_if_stopped(solution)
    asked = None if question.conditions is None else question
    return PosteriorBatch(question.network, given, solution, index, asked, solver)


def _as_asked(part: Part, solution: Solution) -> Solution:
    """A solution without the units that stand for reports, and with what the reports add to ln P."""
    terms, chains, trace = solution.parameters, solution.chains, solution.trace
    return replace(
        solution,
        bound=part.below(solution.bound),
        means=part.shown(solution.means),
        parameters=None if terms is None else Xi(terms.bound, part.shown(terms.xi, np.nan)),
        chains=None if chains is None else Chains(part.shown(chains.error, 0.0), part.shown(chains.r_hat, 1.0)),
        trace=None if trace is None else trace + part.constant[:, None],
    )


def _gathered(
    part: Part,
    solver: Solver,
    point: FloatArray | None,
    executor: Executor,
    trace: bool,
    progress: bool | None,
) -> Solution:
    """The answers of many rows: equal ones are solved once, rows with equal masks share their reduction."""
    network, states = part.network, part.states
    whole, first = Gather(len(states), int(network.model.threshold[-1])), np.arange(len(states))
    rows = first
    if point is None:
        first = first_equal(states)
        rows = by_mask(states, np.flatnonzero(first == rows))
    blocks = RowBlocks(
        Taken(states, rows),
        None if point is None else Taken(point, rows),
        most=min(256, _BLOCK // network.n_units),
    )
    task = partial(_solve, network, solver, trace)
    for _, block, found in each_block(task, blocks, executor=executor, progress=Bar("inference", len(rows), progress)):
        whole.put(rows[block.rows], found)
    again = np.flatnonzero(first != np.arange(len(states)))
    whole.copy(again, first[again])
    return whole.solution()


def _solve(network: Network, solver: Solver, trace: bool, block: Block) -> Solution:
    states, start = block.columns
    return solver.solve(network, states, start=start, trace=trace)


def _warn_if_stopped(solution: Solution) -> None:
    """Say how many rows are not done and what would help, by their status."""
    n = len(solution)
    for status, text in _WARNINGS.items():
        stopped = solution.status == status.code
        if stopped.any():
            rows = f"{int(stopped.sum()):,} of {n:,} row{'' if n == 1 else 's'}"
            most = int(solution.sweeps[stopped].max())
            warnings.warn(text.format(rows=rows, most=most), ConvergenceWarning, stacklevel=4)


_WARNINGS = {
    Status.MAX_SWEEPS: "{rows} reached max_sweeps={most} before the bound settled; "
    "their bounds are valid all the same. Raise max_sweeps or tol",
    Status.NOT_MIXED: "in {rows} the chains disagree (R-hat is 1.05 or more); draw more samples",
    Status.NO_STATE: "in {rows} no state of positive probability was found to start from; their bounds are minus "
    "infinity, and their means say nothing. Ask exact_posterior() or log_likelihood()",
}
