"""Exact answers by enumeration: ln P(V), posterior means, KL(Q‖P). For small problems, and for testing bounds."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from sbnet import checks
from sbnet._types import HIDDEN, FloatArray, States
from sbnet.errors import TooManyHiddenError
from sbnet.evidence import EvidenceLike, absorb, check_means, coerce, entropy_of, row_blocks
from sbnet.kernels.enumerate import enumerate_rows, mean_softplus
from sbnet.network import Network

LIMIT = 25
"""Coupled hidden units that exact functions will enumerate, by default: 2**25 terms take about a minute."""


def log_likelihood(network: Network, evidence: EvidenceLike, *, limit: int = LIMIT) -> Any:
    r"""Exact log-likelihood of the evidence, eq. (8), in nats.

    .. math:: \ln P(V) = \ln \sum_H P(H, V)

    Evidence is absorbed into the biases, units without observed descendants are dropped, and groups of hidden units
    that do not interact are summed separately, all of which is exact. Only the largest group counts for the limit.

    Parameters
    ----------
    network : Network
    evidence
        One pattern (a mapping, a sequence) or a table of them; units left out, NaN or -1 are not observed.
    limit : int
        Largest number of coupled hidden units that will be enumerated.

    Returns
    -------
    float or ndarray of shape (n,)
        One number for a single pattern, one per row for a table.

    Examples
    --------
    >>> import sbnet as sb
    >>> net = sb.from_edges({("rain", "wet"): 2.0, ("sprinkler", "wet"): 1.5}, bias={"rain": -1.0})
    >>> round(sb.log_likelihood(net, {"wet": 1}), 4)
    -0.3139
    """
    states, single = coerce(network, evidence)
    result, _ = _enumerate(network, states, limit)
    return float(result[0]) if single else result


def exact_posterior(
    network: Network, evidence: EvidenceLike, *, pairwise: bool = False, limit: int = LIMIT
) -> FloatArray:
    """Exact posterior means P(S_i = 1 | V) of all units, or of all pairs of units.

    Parameters
    ----------
    network : Network
    evidence
        One pattern or a table of them.
    pairwise : bool
        Give P(S_i = 1, S_j = 1 | V) for all pairs instead; the means are its diagonal.
    limit : int
        Largest number of coupled hidden units that will be enumerated.

    Returns
    -------
    ndarray
        Shape (n_units,), or (n_units, n_units) for pairs; a table of evidence adds an axis of rows in front.
    """
    states, single = coerce(network, evidence)
    means = _exact_means(network, states, limit)
    if pairwise:
        pairs = [_pairs(network, row, mean, limit) for row, mean in zip(states, means, strict=True)]
        means = np.array(pairs).reshape(len(states), network.n_units, network.n_units)  # also without rows
    return means[0] if single else means


def kl(network: Network, evidence: EvidenceLike, means: ArrayLike, *, limit: int = LIMIT) -> Any:
    r"""Kullback-Leibler divergence of a factorial distribution from the exact posterior, eq. (12), in nats.

    .. math:: \mathrm{KL}(Q\|P) = \sum_H Q(H|V) \ln \frac{Q(H|V)}{P(H|V)}, \qquad
        Q(H|V) = \prod_{i \in H} \mu_i^{S_i} (1 - \mu_i)^{1 - S_i}

    Parameters
    ----------
    network : Network
    evidence
        One pattern or a table of them.
    means
        The means μ of Q, one per unit (and row); those of observed units are not used.
    limit : int
        Largest number of coupled hidden units, and of hidden parents of a unit, that will be enumerated.
    """
    states, single = coerce(network, evidence)
    mu = check_means(states, means, single)
    log_p, _ = _enumerate(network, states, limit)
    shifted = absorb(network, states)
    result = np.empty(len(states))
    for r, row in enumerate(states):
        hidden = row == HIDDEN
        q = mu[r, hidden]
        result[r] = log_p[r] + float(np.sum(-entropy_of(q)))
        for i in range(network.n_units):
            parents = slice(network.indptr[i], network.indptr[i + 1])
            random = hidden[network.parent[parents]]
            _check_limit(int(random.sum()), limit)
            j, w = network.parent[parents][random], network.weight[parents][random]
            mean_z = shifted[r, i] + w @ mu[r, j]
            result[r] -= mu[r, i] * mean_z - mean_softplus(w, mu[r, j], shifted[r, i])
    result = np.maximum(result, 0.0)  # only rounding can bring it below
    return float(result[0]) if single else result


def _enumerate(network: Network, states: States, limit: int) -> tuple[FloatArray, FloatArray]:
    """ln P(V) and the means of each row; the means of barren units are left as NaN."""
    checks.whole("limit", limit, 0, 60)
    means = np.where(states == HIDDEN, np.nan, states.astype(np.float64))
    result, largest = np.empty(len(states)), np.zeros(len(states), np.int64)
    for most in (
        -1,
        limit,
    ):  # first all sizes, and no sum; a sum may take long, and be of no use if another has to fail
        for rows in row_blocks(len(states), network.n_units):
            bias = absorb(network, states[rows])
            result[rows] = enumerate_rows(network.model, states[rows], bias, most, means[rows], largest[rows])
        _check_limit(int(largest.max(initial=0)), limit)
    return result, means


def _check_limit(n_hidden: int, limit: int) -> None:
    if n_hidden > limit:
        raise TooManyHiddenError(
            f"exact enumeration over {n_hidden} hidden units needs 2**{n_hidden} terms; the limit is {limit}. "
            "Use infer() for a lower bound instead"
        )


def _exact_means(network: Network, states: States, limit: int) -> FloatArray:
    log_p, means = _enumerate(network, states, limit)
    rows, barren = np.nonzero(np.isnan(means))
    for block in row_blocks(len(rows), network.n_units):
        # A barren unit dropped out of the sum; P(S_b = 1 | V) = P(S_b = 1, V) / P(V) brings it back.
        r, b = rows[block], barren[block]
        with_unit = states[r]
        with_unit[np.arange(len(r)), b] = 1
        means[r, b] = np.exp(np.minimum(_enumerate(network, with_unit, limit)[0] - log_p[r], 0.0))
    return means


def _pairs(network: Network, row: States, means: FloatArray, limit: int) -> FloatArray:
    """P(S_i, S_j | V) = P(S_i | V) P(S_j | S_i, V), one more enumeration for each hidden unit i."""
    given = np.repeat(row[None, :], network.n_units, axis=0)
    np.fill_diagonal(given, 1)
    possible = np.flatnonzero(means > 0.0)
    pairs = np.zeros((network.n_units, network.n_units))
    pairs[possible] = means[possible, None] * _exact_means(network, given[possible], limit)
    pairs = (pairs + pairs.T) / 2
    np.fill_diagonal(pairs, means)
    return pairs
