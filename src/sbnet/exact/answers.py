"""Exact answers: ln P(V), posterior means, KL(Q‖P), where the structure of the network makes them feasible."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import ArrayLike

from sbnet import checks
from sbnet._types import HIDDEN, BoolArray, FloatArray, IndexArray, States
from sbnet.errors import TooManyHiddenError
from sbnet.exact.enumeration import MOST_BITS, Effort, enumerate_states
from sbnet.exact.means import ExactPosterior, ExactPosteriors
from sbnet.exact.of_states import kl_of_states, means_of_states
from sbnet.exact.predictions import barren_means, predictions
from sbnet.exact.sparse import Sum, patterns
from sbnet.kernels.codes import LEAST, NOISY_OR
from sbnet.model.gates import log_p as log_p_of
from sbnet.model.network import Network
from sbnet.parallel.blocks import Taken
from sbnet.questions.batches import answers
from sbnet.questions.by_state import columns_at
from sbnet.questions.evidence import EvidenceLike, check_means, coerce, observed_means
from sbnet.questions.question import Part, ask
from sbnet.questions.reduction import absorb, live_variables
from sbnet.questions.support import impossible

LIMIT = 25
"""The logarithm to base 2 of the largest table that exact functions work on, by default: that takes about a minute."""
_SEVERAL, _NARROW = 4, 16.0
"""Predictions of one row that are worth a sum of all of them, if none of its tables has more than 2**16 numbers."""
_MANY = 16
"""Predictions of one row that are worth a reduction of their own; fewer are sums beside those of other rows."""


@answers(float, FloatArray)
def log_likelihood(
    network: Network,
    evidence: EvidenceLike,
    *,
    do: EvidenceLike | None = None,
    limit: int = LIMIT,
    threads: int | None = None,
    progress: bool | None = None,
) -> float | FloatArray:
    r"""Exact log-likelihood of the evidence, eq. (8), in nats.

    .. math:: \ln P(V) = \ln \sum_H P(H, V)

    Evidence is absorbed into the biases, variables without observed descendants are dropped, groups of hidden variables
    that do not interact are summed separately, and within a group one variable after the other is eliminated, all of
    which is exact. So sparse networks of thousands of variables are feasible, and dense ones of about 25 hidden
    variables.

    Parameters
    ----------
    network : Network
    evidence : mapping, sequence or table
        One pattern (a mapping, a sequence) or a table of them; variables left out, NaN or -1 are not observed. In a
        mapping, likelihoods, one for each state of a variable, are soft evidence; P(V) is then the expected likelihood
        of all reports.
    do : mapping, sequence or table, optional
        Variables held at given states by intervention, as in :func:`sbnet.sample`: they ignore their parents, and are
        no part of P.
    limit : int
        The logarithm to base 2 of the largest table of an elimination. A group of n hidden variables that all have a
        child in common takes 2**n numbers; the causes of noisy-OR variables take 2 to the power of the findings that
        are present.
    threads, progress : as in :func:`sbnet.infer_many`
        The answer does not depend on them.

    Returns
    -------
    float or ndarray of shape (n,)
        One number for a single pattern, one per row for a table; minus infinity for evidence that is impossible.

    Examples
    --------
    >>> import sbnet as sb
    >>> net = sb.from_edges({("rain", "wet"): 2.0, ("sprinkler", "wet"): 1.5}, bias={"rain": -1.0})
    >>> round(sb.log_likelihood(net, {"wet": 1}), 4)
    -0.3139
    """
    question, effort = ask(network, evidence, do), Effort(limit, threads, progress, means=False)
    log_p = question.gather(lambda part: _log_p(part, effort) + part.constant)
    log_p = question.rule_out(log_p)
    return float(log_p[0]) if question.single else log_p


@answers(ExactPosterior, ExactPosteriors)
def exact_posterior(
    network: Network,
    evidence: EvidenceLike,
    *,
    do: EvidenceLike | None = None,
    units: str | int | Sequence[str | int] | None = None,
    limit: int = LIMIT,
    threads: int | None = None,
    progress: bool | None = None,
) -> ExactPosterior | ExactPosteriors:
    """Exact posterior means P(S_i = 1 | V) of all variables, or of those asked for.

    Parameters
    ----------
    network : Network
    evidence : mapping, sequence or table
        One pattern or a table of them.
    units : str, int or sequence of these, optional
        The variables asked for, by name or number; all by default. The others are not worked out: without it, each
        unobserved variable that nothing observed depends on takes a prediction of its own.
    do, limit, threads, progress : as in :func:`log_likelihood`

    Returns
    -------
    ExactPosterior, or ExactPosteriors for a table
        The means as an array of shape (n_units,), or (n, n_units) for a table, of the variables asked for, with names:
        ``exact["rain"]``, ``exact.log_likelihood``, ``exact.to_frame()``. Where the evidence is impossible ln P is
        minus infinity and the means of hidden variables are NaN.

    Examples
    --------
    >>> import sbnet as sb
    >>> net = sb.from_edges({("rain", "wet"): 2.0, ("sprinkler", "wet"): 1.5}, bias={"rain": -1.0})
    >>> sb.exact_posterior(net, {"wet": 1})
    Exact posterior given 1 of 3 variables: ln P = -0.313913 nats
      variable   prior → posterior  0 to 1
      sprinkler  0.5000 → 0.5877    ██████████++
      rain       0.2689 → 0.3408    █████++
    """
    question, effort = ask(network, evidence, do), Effort(limit, threads, progress)
    every = range(network.n_units) if units is None else map(network.index, checks.units("units", units))
    asked = np.array(list(dict.fromkeys(every)), np.int64)
    both = question.gather(lambda part: np.column_stack(_exact_means(part, effort, None if units is None else asked)))
    log_p, means, given = question.rule_out(both[:, 0]), both[:, 1:].copy(), question.given
    means[(log_p == -np.inf)[:, None] & np.isnan(observed_means(network, given))] = np.nan
    means = means[:, columns_at(network, asked.tolist())]
    if question.single:
        return ExactPosterior.of(network, given[0], asked, means[0], float(log_p[0]), question.reason())
    return ExactPosteriors.of(network, given, asked, means, log_p)


def exact_pairs(
    network: Network,
    evidence: EvidenceLike,
    *,
    do: EvidenceLike | None = None,
    limit: int = LIMIT,
    threads: int | None = None,
    progress: bool | None = None,
) -> FloatArray:
    """Exact posterior probabilities P(S_i = 1, S_j = 1 | V) of all pairs of variables; the means are the diagonal.

    A variable with K states has K - 1 rows and columns, one for each state from the second one on.

    Parameters
    ----------
    network : Network
    evidence : mapping, sequence or table
        One pattern or a table of them.
    do, limit, threads, progress : as in :func:`log_likelihood`
        There is one more sum for each hidden variable.

    Returns
    -------
    ndarray of shape (n_units, n_units), or (n, n_units, n_units) for a table
        Rows and columns are those of :attr:`sbnet.Network.columns`.

    Examples
    --------
    >>> import sbnet as sb
    >>> net = sb.from_edges({("rain", "wet"): 2.0, ("sprinkler", "wet"): 1.5}, bias={"rain": -1.0})
    >>> pairs = sb.exact_pairs(net, {"wet": 1})
    >>> round(float(pairs[0, 1]), 3)  # P(rain, sprinkler | wet)
    0.179
    """
    question, effort = ask(network, evidence, do), Effort(limit, threads, progress)
    n = len(network.bias)
    pairs = question.gather(lambda part: np.array(list(_pairs(part, effort))).reshape(-1, n, n))
    pairs[question.impossible] = np.nan
    return pairs[0] if question.single else pairs


@answers(float, FloatArray)
def kl(network: Network, evidence: EvidenceLike, means: ArrayLike, *, limit: int = LIMIT) -> float | FloatArray:
    r"""Kullback-Leibler divergence of a factorial distribution from the exact posterior, eq. (12), in nats.

    .. math:: \mathrm{KL}(Q\|P) = \sum_H Q(H|V) \ln \frac{Q(H|V)}{P(H|V)}, \qquad
        Q(H|V) = \prod_{i \in H} \mu_i^{S_i} (1 - \mu_i)^{1 - S_i}

    Parameters
    ----------
    network : Network
    evidence : mapping, sequence or table
        One pattern or a table of them.
    means : array_like
        The means μ of Q, one per variable (and row), or per state of a variable from the second one on; those of
        observed variables are not used.
    limit : int
        As in :func:`log_likelihood`; and the largest number of hidden parents of a variable, or the logarithm to base 2
        of the number of their joint states.

    Returns
    -------
    float or ndarray of shape (n,)
        Infinite where Q has joint states that are impossible.

    Examples
    --------
    >>> import sbnet as sb
    >>> net = sb.from_edges({("rain", "wet"): 2.0, ("sprinkler", "wet"): 1.5}, bias={"rain": -1.0})
    >>> post = sb.infer(net, {"wet": 1})
    >>> gap = sb.log_likelihood(net, {"wet": 1}) - post.bound
    >>> bool(abs(gap - sb.kl(net, {"wet": 1}, post.means)) < 1e-6)  # below eq. (11)
    True
    """
    states, single = coerce(network, evidence)
    mu = check_means(network, states, means, single)
    checks.whole("limit", limit, 0, MOST_BITS)
    result = np.maximum(kl_of_states(network, states, mu, limit), 0.0)  # only rounding can bring it below
    result[impossible(network, states)] = np.nan  # there is no posterior
    return float(result[0]) if single else result


def _log_p(part: Part, effort: Effort) -> FloatArray:
    """ln P(V) of each row, without what reports add."""
    if part.network.is_binary:
        return enumerate_states(part.network, part.states, effort)[0]
    return means_of_states(part.network, part.states, effort, np.empty(0, np.int64))[0]


def _exact_means(part: Part, effort: Effort, asked: IndexArray | None = None) -> tuple[FloatArray, FloatArray]:
    """ln P(V), and the means of all units; of barren ones only those asked for."""
    if not part.network.is_binary:
        log_p, means = means_of_states(
            part.network, part.states, effort, np.arange(part.n_units) if asked is None else asked
        )
        return log_p + part.constant, part.shown(means)
    network, states = part.network, part.states
    log_p, means = enumerate_states(network, states, effort)
    means = part.shown(means)
    for place in np.flatnonzero(np.isnan(means).any(axis=1)):
        _fill_known(network, states[place], means[place])
    open_ = np.isnan(means)
    if asked is not None:
        open_[:, np.isin(np.arange(part.n_units), asked, invert=True)] = False
    many = open_ & (network.gate[: part.n_units] == NOISY_OR)
    for r in np.flatnonzero(many.sum(axis=1) >= _MANY):
        units = np.flatnonzero(many[r])
        means[r, units] = predictions(network, states[r], means[r], units, effort.limit)
    _eliminate(network, states, open_ & np.isnan(means), means, effort)
    rows, barren = np.nonzero(open_ & np.isnan(means))
    means[rows, barren] = barren_means(network, Taken(states, rows), log_p[rows], barren, effort)
    return log_p + part.constant, means


def _eliminate(network: Network, states: States, wanted: BoolArray, means: FloatArray, effort: Effort) -> None:
    """The means of barren units in rows where several are wanted, all from one sum, if its tables are small."""
    several = np.flatnonzero(wanted.sum(axis=1) >= _SEVERAL)
    for rows in patterns(network, states[several]):
        some = several[rows]
        units = np.flatnonzero(wanted[some].any(axis=0))
        seen = states[some[0]].copy()
        seen[units] = 0
        with contextlib.suppress(TooManyHiddenError):
            above = np.flatnonzero(live_variables(network.model, seen)).tolist()
            found = Sum(network, states[some[:1]], above, min(effort.limit, _NARROW)).solve(
                states[some], units.tolist()
            )
            for unit, posterior in found.posteriors.items():
                means[some, unit] = np.where(wanted[some, unit], posterior[:, 1], means[some, unit])


def _fill_known(network: Network, row: States, means: FloatArray) -> None:
    """The means of barren units of one row whose parents are all observed, if they have any: no sum is needed."""
    graph, hidden = network.graph, row == HIDDEN
    open_ = np.bincount(graph.child_of_edge[hidden[graph.parent]], minlength=network.n_units) > 0
    loose = np.flatnonzero(np.isnan(means) & ~open_[: len(means)])
    bias = absorb(network, row[None, :])[0]
    means[loose] = np.exp(log_p_of(network.gate[loose], 1, bias[loose]))
    means[loose[means[loose] < 2.0 * LEAST]] = 0.0  # it means never


def _pairs(part: Part, effort: Effort) -> Iterator[FloatArray]:
    """P(S_i, S_j | V) = P(S_i | V) P(S_j | S_i, V) of each row."""
    for row, means in zip(part.states, _exact_means(part, effort)[1], strict=True):
        try:
            apart = not part.network.is_binary
            given = _given_each_apart(part, row, means, effort) if apart else _given_each(part, row, means, effort)
        except TooManyHiddenError:
            given = _given_each_apart(part, row, means, effort)
        pairs = means[:, None] * np.where(np.isnan(given), 0.0, given)  # of a state that is impossible but for rounding
        pairs = (pairs + pairs.T) / 2
        np.fill_diagonal(pairs, means)
        yield pairs


def _given_each(part: Part, row: States, means: FloatArray, effort: Effort) -> FloatArray:
    """P(S_j | S_i, V) from one plan: that a unit is on is a likelihood of its own in a row of its own."""
    network, n = part.network, part.n_units
    units = np.flatnonzero((row[:n] == HIDDEN) & (part.held == HIDDEN) & (means > 0.0))
    seen = row.copy()
    seen[units] = 0  # reports of other rows are no part of the sum
    variables = np.flatnonzero(live_variables(network.model, seen)).tolist()
    sums = Sum(network, row[None, :], variables, min(effort.limit, _NARROW), soft=units.tolist())
    likelihoods = {i: np.where((units == i)[:, None], [0.0, 1.0], 1.0) for i in units.tolist()}
    found = sums.solve(np.repeat(row[None, :], len(units), axis=0), units.tolist(), likelihoods).posteriors
    given = np.repeat(means[None, :], n, axis=0)  # of a unit that is on for certain
    for j, posterior in found.items():
        given[units, j] = posterior[:, 1]
    return given


def _given_each_apart(part: Part, row: States, means: FloatArray, effort: Effort) -> FloatArray:
    """P(S_j | S_i, V), one more sum for each column i."""
    variable, state = (array[: part.n_columns] for array in part.network.columns)
    rows = np.repeat(row[None, :], part.n_columns, axis=0)
    free = np.flatnonzero(part.held[variable] == HIDDEN)  # a held unit is cut out of the network
    rows[free, variable[free]] = state[free]
    possible = np.flatnonzero(means > 0.0)
    given = np.zeros((part.n_columns, part.n_columns))
    some = part._replace(states=rows[possible], constant=np.zeros(len(possible)))
    given[possible] = _exact_means(some, effort)[1]
    return given
