"""Certificates: an interval that holds ln P(evidence), and intervals that hold the posterior means."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import partial
from numbers import Real
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from sbnet import checks
from sbnet._types import HIDDEN, BoolArray, IndexArray, RngLike, States
from sbnet.bounds import margins
from sbnet.bounds import proven as _proven
from sbnet.bounds.lower import bound_terms, check_log_term
from sbnet.bounds.upper import LIMIT
from sbnet.certificates.betting import Plan
from sbnet.certificates.branching import Until, close
from sbnet.certificates.confidence import DRAWS, WIDTH, Sampled, sample
from sbnet.certificates.enclosure import (
    EFFORTS,
    Bracketed,
    Eliminated,
    Enclosed,
    How,
    count,
    eliminate_or_enclose,
    enclose,
    in_lines,
    proven_sum,
)
from sbnet.certificates.records import Certificate, Certificates, Interval, PosteriorIntervals
from sbnet.errors import EvidenceError, ParameterError
from sbnet.inference.estimation import Draw, summary, weigh
from sbnet.inference.solvers.families import annealed_weights
from sbnet.model.network import Network
from sbnet.parallel.blocks import Bar, Block, RowBlocks, map_blocks, pool, row_blocks
from sbnet.questions.batches import answers
from sbnet.questions.evidence import EvidenceLike
from sbnet.questions.question import Part, Question, ask
from sbnet.questions.support import NO_STATE, refusal, remote

__all__ = ["Certificate", "Certificates", "CertifySettings", "PosteriorIntervals", "certify", "posterior_intervals"]

Effort: TypeAlias = Literal["fast", "normal", "high"]


@dataclass(frozen=True)
class CertifySettings:
    """Settings of :func:`certify` and :func:`posterior_intervals` that few have to change.

    Attributes
    ----------
    exact_up_to : int, optional
        Groups of at most that many coupled hidden variables, or of causes with as many findings present, are summed
        exactly, whatever the effort says. 0: no exact sums, so that the bounds show what they can do.
    threads, executor : int, concurrent.futures.Executor, optional
        As in :func:`sbnet.infer_many`.

    Examples
    --------
    >>> import sbnet as sb
    >>> net = sb.from_edges({("rain", "wet"): 2.0, ("sprinkler", "wet"): 1.5}, bias={"rain": -1.0})
    >>> settings = sb.solvers.CertifySettings(exact_up_to=0)
    >>> sb.certify(net, {"wet": 1}, settings=settings).exact
    False
    """

    exact_up_to: int | None = None
    threads: int | None = None
    executor: Executor | None = None

    def __post_init__(self) -> None:
        if self.exact_up_to is not None:
            checks.whole("exact_up_to", self.exact_up_to, 0, LIMIT)
        pool(self.executor, self.threads)


@answers(Certificate, Certificates)
def certify(
    network: Network,
    evidence: EvidenceLike,
    *,
    do: EvidenceLike | None = None,
    effort: Effort = "fast",
    proven: bool = False,
    confidence: float = 1.0,
    seconds: float | None = None,
    gap: float | None = None,
    rng: RngLike = 0,
    progress: bool | None = None,
    settings: CertifySettings | None = None,
) -> Certificate | Certificates:
    """An interval that is certain to hold ln P(evidence), as narrow as the effort makes it.

    Parameters
    ----------
    network : Network
    evidence : mapping, sequence or table
        One pattern or a table of them; a pair in a mapping is soft evidence, as in :func:`sbnet.infer`.
    do : mapping, sequence or table, optional
        Variables held by intervention, as in :func:`sbnet.infer`.
    effort : {"fast", "normal", "high"}
        How much time may be spent. Each effort does all that the ones before it do, and takes the best of it, so that
        more effort never gives a wider interval:

        - ``"fast"``: mean field from below, Hölder's inequality from above; exact sums over groups of up to 12 coupled
          hidden variables, or of as many noisy-OR findings that are present;
        - ``"normal"``: the states of four variables are enumerated from below, of three from above; exact sums up to
          16;
        - ``"high"``: of seven and five, larger tables, a mixture, annealed samples for the estimate; exact sums up to
          20.

        Where all causes are independent and have only observed noisy-OR findings, both bounds come from
        :mod:`sbnet.bounds.findings` instead (unless `proven`): sums over 6, 8 and 10 findings, in 1, 30 and 100
        subproblems.
    proven : bool
        Evaluate both bounds in ball arithmetic, where every rounding is counted as it comes about, instead of taking
        off a margin for the worst; needs ``sbnet[proven]``. Exact sums end at 14 variables; where variables have more
        than two states, or tables, there are no others, and none over more than 2**24 joint states, or 2**18 of parents
        of a sigmoid or noisy-OR variable.
    confidence : float
        Below one, say 0.999: find a narrower `interval` too, which holds ln P(evidence) with that probability, in each
        row. It comes from samples with bounded weights, :mod:`sbnet.bounds.upper.proposal`: as many as bring it to a
        tenth of a nat, but at most 2^18 with effort ``"fast"``, 2^20 and 2^22 with the others, and fewer in networks
        of more than 4,000 edges. It takes for granted that the random numbers are as good as random. `lower` and
        `upper` stay certain.
    seconds : float, optional
        Bring the certain bounds nearer by branch and bound, :mod:`sbnet.certificates.branching`, for that long in each
        row, what the effort takes included. Subproblems are split where the bounds are furthest apart, so that more
        time never gives a wider interval; how far it comes depends on the clock.
    gap : float, optional
        Nats that are near enough. Alone, or with `seconds`: branch and bound ends there, and also with 16,384
        subproblems; without `seconds` the answer does not depend on the clock. With a `confidence`: the width of
        `interval` at which no more samples are drawn, instead of a tenth; branch and bound is then for `seconds` only.
    rng : int or numpy.random.Generator, optional
        Seed of the samples; the certain bounds do not depend on it.
    progress : bool, optional
        As in :func:`sbnet.infer_many`.
    settings : CertifySettings, optional
        What few have to change: the limit of exact sums, threads, an executor.

    Returns
    -------
    Certificate, or Certificates for a table
        Where the evidence is impossible both bounds are minus infinity, and `lower_from` says why.

    Examples
    --------
    >>> import sbnet as sb
    >>> net = sb.from_edges({("rain", "wet"): 2.0, ("sprinkler", "wet"): 1.5}, bias={"rain": -1.0})
    >>> sb.certify(net, {"wet": 1})
    ln P(evidence) = -0.3139 (sum over all states, 2 hidden variables at most together)
      mean field: -0.318167; a factorial posterior costs 0.00425
                  the paper's logarithm terms would cost 0.0051 more
      rounding:   covered, by a margin for the worst; proven=True counts it in ball arithmetic
    """
    question = ask(network, evidence, do)
    how, executor = _check(network, effort, proven, settings)
    task = _Task(how, *_check_search(proven, confidence, seconds, gap), int(checks.generator(rng).integers(2**63)))

    def certified(part: Part) -> list[Certificate]:
        numbers = np.arange(len(question.states))[part.rows]
        possible = part.some(~question.impossible[numbers])
        blocks = map_blocks(
            partial(_certified, part.network, task),
            RowBlocks(possible.states, most=16),
            executor=executor,
            progress=Bar("certificates", len(possible.states), progress),
        )
        rows = [row for block in blocks for row in block]
        # with what reports add to ln P, outward by the rounding of what was made of them
        below = possible.below(np.array([[row.lower, row.interval[0]] for row in rows]).T)
        above = possible.above(np.array([[row.upper, row.interval[1]] for row in rows]).T)
        found = iter(
            replace(
                row,
                lower=float(below[0, k]),
                upper=float(above[0, k]),
                interval=(float(below[1, k]), float(above[1, k])),
                estimate=row.estimate + float(possible.constant[k]),
                mean_field=row.mean_field + float(possible.constant[k]),
            )
            for k, row in enumerate(rows)
        )
        return [_impossible(question.reason(r), task) if question.impossible[r] else next(found) for r in numbers]

    made = tuple(question.collect(certified))
    return made[0] if question.single else Certificates(made)


def _impossible(reason: str, task: _Task) -> Certificate:
    """The certificate of evidence whose probability is zero."""
    none, how = -math.inf, task.how
    known = (none, none, none, 0.0, True, reason, reason, none, 0.0, how.effort, how.proven, (none, none))
    return Certificate(*known, task.confidence)


def posterior_intervals(
    network: Network,
    evidence: EvidenceLike,
    *,
    do: EvidenceLike | None = None,
    units: str | int | Sequence[str | int] | None = None,
    effort: Effort = "fast",
    proven: bool = False,
    progress: bool | None = None,
    settings: CertifySettings | None = None,
) -> PosteriorIntervals:
    r"""An interval that is certain to hold P(S_i = 1 | evidence), for each hidden variable.

    With bounds :math:`L_s \le P(S_i = s, V) \le U_s`, the share of one of two numbers is smallest if it is small itself
    and the other one large:

    .. math:: \frac{L_1}{L_1 + U_0} \le P(S_i = 1 \mid V) \le \frac{U_1}{U_1 + L_0}

    and likewise for each state of a variable that has more, with the sum over its other states.

    Rounding is covered: by margins in proportion to the weights and biases of the variables involved,
    :mod:`sbnet.bounds.margins`, or with `proven` by ball arithmetic. A tail too small for a number is above zero.

    Parameters
    ----------
    network : Network
    evidence : mapping, sequence or table
        One pattern; a pair in a mapping is soft evidence, as in :func:`sbnet.infer`.
    do : mapping, sequence or table, optional
        Variables held by intervention, as in :func:`sbnet.infer`.
    units : str, int or sequence of these, optional
        The variables asked for, by name or number; all hidden ones by default.
    effort, proven, progress, settings : as in :func:`certify`
        Each variable takes two certificates.

    Returns
    -------
    PosteriorIntervals
        A mapping from the name of a variable to the two bounds; of a variable with more than two states, to a mapping
        from each state to its two bounds: ``intervals["fever"]["high"]``. An observed variable has its state twice, and
        so has one whose other state the evidence makes impossible. Evidence that is impossible itself is an error.

    Examples
    --------
    >>> import sbnet as sb
    >>> net = sb.layered((10, 20, 30), rng=0, scale=0.3)
    >>> low, high = sb.posterior_intervals(net, [0] * 30, units=["h1_0"])["h1_0"]
    >>> print(f"{low:.2f} to {high:.2f}, mean field {sb.infer(net, [0] * 30)['h1_0']:.2f}")
    0.43 to 0.73, mean field 0.60
    """
    question = ask(network, evidence, do)
    if not question.single:
        raise EvidenceError(
            "posterior_intervals() takes one pattern, but the evidence is a table; call it for each row"
        )
    question.check_possible()
    how, executor = _check(network, effort, proven, settings)
    (part,) = question.parts
    row, slack = question.given[0], 2.0 * float(part.slack[0])
    wanted = np.flatnonzero(row == HIDDEN).tolist() if units is None else checks.units("units", units)
    asked = [network.index(unit) for unit in wanted]
    known = {i: [(float(k == row[i]),) * 2 for k in range(network.n_states[i])] for i in asked if row[i] != HIDDEN}
    open_ = [i for i in dict.fromkeys(asked) if i not in known]
    left = _possible(question, np.array(open_, np.int64))
    blocks = map_blocks(
        partial(_all_bounds, part.network, part.states[0], how, left),
        RowBlocks(open_, most=16),
        executor=executor,
        progress=Bar("posterior intervals", len(open_), progress),
    )
    for i, enclosed in zip(open_, (unit for block in blocks for unit in block), strict=True):
        known[i] = _shares(enclosed, slack)
        if all(high == 0.0 for _, high in known[i]):
            raise refusal()
    answer = {network.names[i]: _by_state(network, i, known[i]) for i in asked}
    return PosteriorIntervals.of(network, row, answer, effort, how.proven)


def _possible(question: Question, units: IndexArray) -> dict[int, BoolArray]:
    """The states that each of some hidden units can be in."""
    n_states = question.network.n_states
    left = {i: np.ones(n_states[i], np.bool_) for i in units.tolist()}
    for state in range(n_states[units].max(initial=0)):
        free = units[n_states[units] > state]
        for rows in row_blocks(len(free), question.network.n_units):
            for i in free[rows][question.with_state(free[rows], state).impossible].tolist():
                left[i][state] = False
    return left


def _shares(bounds: list[tuple[float, float]], slack: float) -> list[tuple[float, float]]:
    """Bounds of P(S_i = s | V) from those of ln P(V, S_i = s), by state; minus infinity is impossible."""
    shares = []
    for k, (low, high) in enumerate(bounds):
        others = [both for j, both in enumerate(bounds) if j != k and both[1] > -math.inf]
        if high == -math.inf or not others:
            shares.append((float(high > -math.inf),) * 2)
            continue
        below, above = others[0] if len(others) == 1 else _log_sums(others)
        shares.append(_outward(low - above - slack, high - below + slack))
    return shares


def _log_sums(bounds: list[tuple[float, float]]) -> tuple[float, float]:
    low, high = np.array(bounds).T
    return margins.log_sum_below(low), margins.log_sum_above(high)


def _by_state(network: Network, i: int, shares: list[tuple[float, float]]) -> Interval:
    """The interval of the second of two states; else intervals by state."""
    states = network.states[network.names[i]]
    return shares[1] if len(states) == 2 else dict(zip(states, shares, strict=True))


def _outward(low: float, high: float) -> tuple[float, float]:
    """The sigmoid of two differences, each rounded once, a few roundings further out: never 0 above, nor 1 below."""
    below, above = _sigmoid(math.nextafter(low, -math.inf)), _sigmoid(math.nextafter(high, math.inf))
    above = math.nextafter(above * (1.0 + 1e-15), 1.0)  # among denormal numbers, only a step to the next one counts
    return math.nextafter(below * (1.0 - 1e-15), 0.0), min(above, 1.0)


def _sigmoid(x: float) -> float:
    """1 / (1 + e^-x), through denormal numbers down to zero."""
    tail = math.exp(-abs(x))
    return (1.0 if x >= 0.0 else tail) / (1.0 + tail)


def _check(network: Network, effort: str, proven: bool, settings: CertifySettings | None) -> tuple[How, Executor]:
    checks.choice("effort", effort, EFFORTS)
    if checks.flag("proven", proven):
        _proven.load()
    settings = checks.settings(settings, CertifySettings)
    where = pool(settings.executor, 1 if proven else settings.threads)  # balls are no faster in threads
    most = settings.exact_up_to
    return How(effort, bool(proven), None if most is None else int(most)), where


def _all_bounds(
    network: Network, row: States, how: How, left: dict[int, BoolArray], block: Block
) -> list[list[tuple[float, float]]]:
    """Lower and upper bounds of ln P(V, S_i = s) for each state s, of each unit i of the block."""
    answer = []
    for i in block.columns[0]:
        bounds = [(-math.inf, -math.inf)] * len(left[i])
        states = np.flatnonzero(left[i])
        if len(states) == 1:  # certain: any number will do
            bounds[states[0]] = (0.0, 0.0)
        else:
            rows = np.repeat(row[None, :], len(states), axis=0)
            rows[:, i] = states
            for state, enclosed in zip(states.tolist(), _enclosed(network, rows, how), strict=True):
                bounds[state] = (enclosed.lower, enclosed.upper)
        answer.append(bounds)
    return answer


def _enclosed(network: Network, rows: States, how: How) -> Sequence[Enclosed | Eliminated | Bracketed]:
    """Both bounds of each row."""
    if network.is_binary:
        return [enclose(network, row, how) for row in rows]
    if how.proven:
        return [proven_sum(network, row) for row in rows]
    return eliminate_or_enclose(network, rows, how)


class _Task(NamedTuple):
    """What a row is asked for: bounds by an effort, and what is wanted beyond that."""

    how: How
    confidence: float
    width: float  # of the interval with confidence
    seconds: float  # for branch and bound; none without any
    gap: float  # of the certain bounds, at which it stops
    seed: int


def _check_search(
    proven: bool, confidence: float, seconds: float | None, gap: float | None
) -> tuple[float, float, float, float]:
    sure = isinstance(confidence, Real) and confidence == 1.0
    confidence = 1.0 if sure else checks.fraction("confidence", confidence)
    if proven and (seconds is not None or (gap is not None and sure)):
        raise ParameterError(
            "proven=True evaluates subproblem by subproblem in ball arithmetic, too slow for branch and bound; "
            "leave out seconds= and gap=, and choose an effort"
        )
    near = 0.0 if gap is None else checks.positive("gap", gap)
    if seconds is None:
        return confidence, near or WIDTH, math.inf if near and sure else 0.0, near
    return confidence, near or WIDTH, checks.positive("seconds", seconds), near


def _certified(network: Network, task: _Task, block: Block) -> list[Certificate]:
    return [_certificate(network, row, task) for row in block.columns[0]]


def _certificate(network: Network, row: States, task: _Task) -> Certificate:
    how, begin = task.how, time.monotonic()
    (enclosed,) = _enclosed(network, row[None, :], how)
    if isinstance(enclosed, Eliminated):
        return _summed(enclosed, task)
    if isinstance(enclosed, Bracketed):
        return _bracketed(network, enclosed, task)
    if enclosed.value is None:
        if task.seconds:
            enclosed = close(enclosed, Until(begin + task.seconds, task.gap))
        certain = task.confidence == 1.0 or remote(network, np.array(enclosed.lower))
        drawn = _estimate(enclosed, task) if certain else _draw(enclosed, task)
        known = drawn.within(enclosed.lower, enclosed.upper)
    else:
        known = Sampled(enclosed.lower, enclosed.upper, enclosed.value, 0.0, 0)
    mean_field = float(enclosed.mean_field.bound[0])
    return Certificate(
        enclosed.lower, enclosed.upper, known.estimate, known.error, enclosed.value is not None, enclosed.lower_from,
        enclosed.upper_from, mean_field, _cost_of_logarithms(enclosed), how.effort, how.proven,
        (known.low, known.high), task.confidence, known.samples,
    )  # fmt: skip


def _cost_of_logarithms(enclosed: Enclosed) -> float:
    """What the paper's terms, eq. (20), cost at the means with the best xi; NaN for networks with states."""
    network, states, mean_field = enclosed.row.network, enclosed.row.states[None, :], enclosed.mean_field
    if not network.is_binary:
        return math.nan
    xi = np.full((1, network.n_units), np.nan)
    parts = bound_terms(network, states, mean_field.means, xi, check_log_term("xi", 0))
    paper = math.fsum(np.concatenate(parts, axis=None).tolist())  # rounded once: the same beside other rows
    return max(float(mean_field.bound[0]) - paper, 0.0)


def _summed(found: Eliminated, task: _Task) -> Certificate:
    """The certificate of a row whose variables are eliminated."""
    if found.value == -math.inf:
        return _impossible(NO_STATE, task)
    low, high, value = found.lower, found.upper, min(found.value, 0.0)
    how, source = task.how, "elimination of all hidden variables"
    parts = (low, high, value, 0.0, True, source, source, math.nan, math.nan, how.effort, how.proven, (low, high))
    return Certificate(*parts, task.confidence)


def _bracketed(network: Network, found: Bracketed, task: _Task) -> Certificate:
    """The certificate of a row with tables that cannot be summed; its bounds hold with any confidence."""
    low, high, how = found.lower, found.upper, task.how
    seed = np.random.default_rng(task.seed).integers(2**64, dtype=np.uint64)
    weights = annealed_weights(network, found.row, found.mean_field.means[0], 100, seed, 100)
    (estimate,), (error,), *_ = summary(weights[None, :], 0.05)
    drawn = Sampled(low, high, float(estimate), float(error), 0).within(low, high)
    source = f"mini-buckets, {count(found.subproblems, 'subproblem')}"
    parts = (low, high, drawn.estimate, drawn.error, False, "mean field", source, low, math.nan, how.effort)
    return Certificate(*parts, how.proven, (low, high), task.confidence)


def _estimate(enclosed: Enclosed, task: _Task) -> Sampled:
    """An estimate of ln P and its error, from samples around the means that were found."""
    annealed = task.how.effort == "high" or not enclosed.row.network.is_binary
    samples, anneal = (100, 100) if annealed else (1000, 0)
    seed = np.random.default_rng(task.seed).integers(2**64, dtype=np.uint64)
    log_p, error, _, _ = weigh([enclosed.row], enclosed.mean_field, Draw(samples, anneal, 0.05, 0.1, seed))
    return Sampled(enclosed.lower, enclosed.upper, float(log_p[0]), float(error[0]), 0)


def _draw(enclosed: Enclosed, task: _Task) -> Sampled:
    """An interval that holds with confidence, and the estimate from the same samples."""
    subproblems = enclosed.subproblems or in_lines(enclosed.row, enclosed.mean_field, task.how)
    return sample(subproblems, Plan(1.0 - task.confidence, task.width, DRAWS[task.how.effort]), task.seed)
