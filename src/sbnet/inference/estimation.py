"""Estimates of P(evidence) by sampling: unbiased, with an error, and a lower bound that holds with confidence."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, NamedTuple, TypeAlias, get_args

import numpy as np

from sbnet import checks
from sbnet._types import FloatArray, RngLike
from sbnet.exact.enumeration import Reduced
from sbnet.inference.chains import anneal
from sbnet.inference.importance import log_weights
from sbnet.inference.solution import Solution
from sbnet.inference.solvers import families
from sbnet.inference.solvers.mean_field import MeanField
from sbnet.inference.solvers.protocol import Solver, check_solver, check_states
from sbnet.model.network import Network
from sbnet.parallel.blocks import Bar, Block, RowBlocks, join, map_blocks, pool
from sbnet.questions import printing
from sbnet.questions.batches import Batch, answers
from sbnet.questions.evidence import EvidenceLike
from sbnet.questions.printing import Readable, Reading
from sbnet.questions.question import Part, ask
from sbnet.questions.support import IMPOSSIBLE, remote

_BLOCK = 500_000
Method: TypeAlias = Literal["importance", "annealed"]


@dataclass(frozen=True, repr=False)
class Estimate(Readable):
    """An estimate of ln P(evidence) for one pattern, in nats.

    Attributes
    ----------
    log_probability : float
        Logarithm of an unbiased estimate of P(evidence).
    error : float
        Its standard error, as far as the weights that were drawn tell: the relative error of the estimate.
    lower : float
        ln P(evidence) is at least this, with a probability of 1 - `delta`, whatever the weights that were not drawn.
    bound : float
        The bound of the solver that the samples start from; ln P(evidence) is at least this, for certain.
    effective_samples : float
        How many equal weights would be as good as these, :math:`(\\sum w)^2 / \\sum w^2`. If they are few, do not trust
        `log_probability` and `error`.
    samples : int
        Number of weights drawn.
    delta : float
        Probability that `lower` is too high.
    impossible : str
        Why the evidence is impossible, if it is: then all logarithms are minus infinity, and nothing was drawn.

    Examples
    --------
    >>> import sbnet as sb
    >>> net = sb.from_edges({("rain", "wet"): 2.0, ("sprinkler", "wet"): 1.5}, bias={"rain": -1.0})
    >>> found = sb.estimate(net, {"wet": 1}, rng=0)
    >>> bool(abs(found.log_probability - sb.log_likelihood(net, {"wet": 1})) < 0.1)
    True
    """

    log_probability: float
    error: float
    lower: float
    bound: float
    effective_samples: float
    samples: int
    delta: float
    impossible: str = ""

    def _reading(self) -> Reading:
        if self.bound == -np.inf:
            return Reading(f"ln P = -inf: {self.impossible or IMPOSSIBLE}")
        drawn = f"from {self.effective_samples:,.1f} effective of {self.samples:,} samples"
        head = f"ln P ≈ {self.log_probability:.6g} ± {self.error:.2g} nats, {drawn}"
        sure = f"ln P ≥ {self.lower:.6g} with {1.0 - self.delta:.4g} confidence, ≥ {self.bound:.6g} for certain"
        return Reading(head, summary=(sure,))


@dataclass(frozen=True, eq=False, repr=False)
class Estimates(Batch[Estimate]):
    """Estimates for a table: arrays with a number for each row.

    ``estimates[3]`` is the :class:`Estimate` of row 3; a slice, or an array of row numbers or of truth values, gives
    the estimates of those rows.

    Attributes
    ----------
    log_probability, error, lower, bound, effective_samples : ndarray of shape (n,)
    samples : int
    delta : float

    Examples
    --------
    >>> import sbnet as sb
    >>> net = sb.from_edges({("rain", "wet"): 2.0, ("sprinkler", "wet"): 1.5}, bias={"rain": -1.0})
    >>> found = sb.estimate(net, [{"wet": 1}, {"wet": 0}], rng=0)
    >>> found.log_probability.shape
    (2,)
    """

    log_probability: FloatArray
    error: FloatArray
    lower: FloatArray
    bound: FloatArray
    effective_samples: FloatArray
    samples: int
    delta: float

    _columns = ("log_probability", "error", "lower", "bound", "effective_samples")

    def _one(self, r: int) -> Estimate:
        numbers = {name: float(getattr(self, name)[r]) for name in self._columns}
        return Estimate(**numbers, samples=self.samples, delta=self.delta, impossible="")

    def _reading(self) -> Reading:
        n = len(self)
        head = f"Estimates: {printing.rows(n)}, {self.samples:,} samples each"
        if n == 0:
            return Reading(head)
        fewest = f"errors up to {self.error.max():.2g}, effective samples from {self.effective_samples.min():,.1f} up"
        confidence = f"with {1.0 - self.delta:.4g} confidence in each row"
        summary = (
            f"ln P ≈ {printing.spread(self.log_probability)}; {fewest}",
            f"ln P ≥ {printing.spread(self.lower)} {confidence}",
        )
        shown = [
            [f"{r}", f"{e.log_probability:.6g} ± {e.error:.2g}", f"{e.lower:.6g}", f"{e.effective_samples:,.1f}"]
            for r, e in enumerate(self[:_SHOWN])
        ]
        titles = ["row", "ln P ≈", "ln P ≥", "effective samples"]
        return Reading(head, [titles, *shown, *printing.more(n - _SHOWN)], (), summary)


_SHOWN = 5


@dataclass(frozen=True)
class EstimateSettings:
    """Settings of :func:`estimate` that few have to change.

    Attributes
    ----------
    defence : float
        Share of the samples from the network itself, of the method "importance".
    threads, executor : int, concurrent.futures.Executor, optional
        As in :func:`infer_many`.

    Examples
    --------
    >>> import sbnet as sb
    >>> net = sb.from_edges({("rain", "wet"): 2.0, ("sprinkler", "wet"): 1.5}, bias={"rain": -1.0})
    >>> settings = sb.solvers.EstimateSettings(threads=1)
    >>> bool(sb.estimate(net, {"wet": 1}, rng=0, settings=settings).error < 0.1)
    True
    """

    defence: float = 0.1
    threads: int | None = None
    executor: Executor | None = None

    def __post_init__(self) -> None:
        checks.fraction("defence", self.defence)
        pool(self.executor, self.threads)


@answers(Estimate, Estimates)
def estimate(
    network: Network,
    evidence: EvidenceLike,
    *,
    do: EvidenceLike | None = None,
    samples: int = 1000,
    method: Method = "importance",
    steps: int = 100,
    delta: float = 0.05,
    solver: Solver | None = None,
    rng: RngLike = 0,
    progress: bool | None = None,
    settings: EstimateSettings | None = None,
) -> Estimate | Estimates:
    r"""Estimate P(evidence) by sampling the hidden variables, around the means that a solver finds.

    Weights w are drawn whose mean is P(V). The average of R independent batches of them has the same mean, and so the
    product of R averages has mean :math:`P(V)^R`; by Markov's inequality,

    .. math:: \ln P(V) \ge \frac1R \sum_r \ln \bar w_r - \frac1R \ln \frac1\delta \qquad
        \text{with a probability of at least } 1 - \delta .

    Batches of 1, 4, 16, ... weights are tried, each with its share of :math:`\delta`, and the best result is taken.

    Parameters
    ----------
    network : Network
    evidence : mapping, sequence or table
        One pattern or a table of them; a pair in a mapping is soft evidence, as in :func:`infer`.
    do : mapping, sequence or table, optional
        Variables held by intervention, as in :func:`infer`.
    samples : int
        Number of weights for each row.
    method : {"importance", "annealed"}
        ``"importance"``: H is drawn from a mixture of the factorial distribution Q and of the network itself with
        the evidence held fixed, and :math:`w = P(H, V) / Q_\mathrm{mix}(H)`, which is never above 1 / `defence`.
        ``"annealed"``: H is drawn from Q and brought to the posterior by Gibbs sweeps at `steps` intermediate
        distributions :math:`Q^{1-b} P^b` (Neal 2001). Each weight costs `steps` sweeps, and in a large network one of
        them is worth more than any number of the others.
    steps : int
        Intermediate distributions of the annealed method.
    delta : float
        Probability that `lower` may be too high.
    solver : Solver, optional
        Gives the means of Q; :class:`MeanField` by default.
    rng : int or numpy.random.Generator, optional
        Seed. Equal seeds give equal answers, wherever the work is done and wherever a row stands in a table.
    progress : bool, optional
        As in :func:`infer_many`.
    settings : EstimateSettings, optional
        What few have to change: the share of samples from the network itself, threads, an executor.

    Returns
    -------
    Estimate, or Estimates for a table

    Examples
    --------
    >>> import sbnet as sb
    >>> net = sb.layered((2, 4, 6), rng=0, scale=2.0)
    >>> found = sb.estimate(net, [0] * 6, samples=10_000, rng=0)
    >>> abs(found.log_probability - sb.log_likelihood(net, [0] * 6)) < 4 * found.error
    True
    """
    solver = MeanField() if solver is None else solver
    check_solver(solver)
    samples = checks.whole("samples", samples, 2)
    checks.choice("method", method, get_args(Method))
    steps = checks.whole("steps", steps, 1)
    delta = checks.fraction("delta", delta)
    chosen = checks.settings(settings, EstimateSettings)
    seed = checks.generator(rng).integers(2**64, dtype=np.uint64)
    question = ask(network, evidence, do)
    check_states(solver, network)
    draw = Draw(samples, steps if method == "annealed" else 0, delta, float(chosen.defence), seed)
    where = pool(chosen.executor, chosen.threads)
    table = question.gather(lambda part: _table(part, solver, draw, where, progress))
    log_p, error, lower, effective, bound = table.T.copy()
    lower = np.fmax(lower, bound)  # the bound is certain, so that the larger of the two holds as often
    log_p, lower, bound = (question.rule_out(values) for values in (log_p, lower, bound))
    error[question.impossible] = effective[question.impossible] = 0.0
    found = Estimates(log_p, error, lower, bound, effective, samples, delta)
    return replace(found[0], impossible=question.reason()) if question.single else found


class Draw(NamedTuple):
    """How weights are drawn."""

    samples: int
    anneal: int  # intermediate distributions; none for plain importance sampling
    delta: float
    defence: float
    seed: np.uint64


def _table(part: Part, solver: Solver, draw: Draw, executor: Executor, progress: bool | None) -> FloatArray:
    """What :func:`_sample` says of all rows; its logarithms of probabilities have what the reports add to them."""
    network, states = part.network, part.states
    found = map_blocks(
        partial(_sample, network, solver, draw),
        RowBlocks(states, most=min(256, _BLOCK // max(network.n_units, draw.samples))),
        executor=executor,
        progress=Bar("sampling", len(states), progress),
    )
    table: FloatArray = join(found, np.zeros((0, 5)))
    table[:, [0, 2]] += part.constant[:, None]
    table[:, 4] = part.below(table[:, 4])
    return table


def _sample(network: Network, solver: Solver, draw: Draw, block: Block) -> FloatArray:
    """What :func:`summary` says of each row, and the bound, in columns."""
    (states,) = block.columns
    solution = solver.solve(network, states, start=None, trace=False)
    rows = (Reduced(network, row) for row in states)
    return np.column_stack((*weigh(rows, solution, draw), solution.bound))


def weigh(
    rows: Iterable[Reduced], solution: Solution, draw: Draw
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """What :func:`summary` says of each row, for samples around the means of a solution."""
    weights = np.empty((len(solution.bound), draw.samples))
    for r, row in enumerate(rows):
        means, own, how = solution.means[r], row.network, (draw.seed, draw.samples)
        if own.tables or remote(own, solution.bound[r]):
            if draw.anneal:
                weights[r] = families.annealed_weights(own, row.states, means, draw.anneal, *how)
            else:
                weights[r] = families.log_weights(own, row.states, means, draw.defence, *how)
        elif draw.anneal:
            weights[r] = anneal(own.model, row.states, own.bias, means, draw.anneal, *how)
        else:
            weights[r] = log_weights(row, means, draw.defence, *how)
    return summary(weights, draw.delta)


def summary(weights: FloatArray, delta: float) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """ln of the mean weight, its relative error, the lower bound with confidence, effective samples, by row."""
    samples = weights.shape[1]
    log_mean = np.logaddexp.reduce(weights, axis=1) - np.log(samples)
    relative = np.exp(weights - np.where(log_mean == -np.inf, 0.0, log_mean)[:, None])  # their mean is one, or zero
    error = relative.std(axis=1, ddof=1) / np.sqrt(samples)
    effective = samples * relative.mean(axis=1) / np.maximum((relative**2).mean(axis=1), 1.0)
    sizes = [4**k for k in range(samples.bit_length()) if 4**k <= samples]
    lower = np.full(len(weights), -np.inf)
    for size in sizes:  # each may fail with its share of delta, so that the best one may be taken
        batches = samples // size
        kept = weights[:, : batches * size].reshape(-1, batches, size)
        means = np.logaddexp.reduce(kept, axis=2) - np.log(size)
        lower = np.maximum(lower, means.mean(axis=1) + np.log(delta / len(sizes)) / batches)
    return log_mean, error, lower, effective
