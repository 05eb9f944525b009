"""The joint distribution itself: its logarithm, samples from it; and the entropy of a factorial one."""

from __future__ import annotations

from typing import overload

import numpy as np

from sbnet import checks, kernels
from sbnet._types import HIDDEN, FloatArray, RngLike, States
from sbnet.errors import EvidenceError
from sbnet.model.network import Network
from sbnet.model.suggestions import check_network
from sbnet.parallel.blocks import row_blocks
from sbnet.questions.evidence import EvidenceLike, OnePattern, Table, coerce
from sbnet.questions.question import interventions
from sbnet.questions.support import impossible


@overload
def log_joint(network: Network, states: OnePattern) -> float: ...
@overload
def log_joint(network: Network, states: Table) -> FloatArray: ...
@overload
def log_joint(network: Network, states: EvidenceLike) -> float | FloatArray: ...
def log_joint(network: Network, states: EvidenceLike) -> float | FloatArray:
    r"""Logarithm of the joint probability of complete states, eq. (6), in nats.

    .. math:: \ln P(S) = \sum_i \big[ S_i z_i - \ln(1 + e^{z_i}) \big], \qquad z_i = \sum_j J_{ij} S_j + h_i

    Parameters
    ----------
    network : Network
    states
        A value for every unit: a mapping, one pattern, or an array of shape (n, n_units).

    Returns
    -------
    float or ndarray of shape (n,)
        One number for a single pattern, one per row for a table.
    """
    complete, single = coerce(network, states)
    if np.any(complete == HIDDEN):
        row, unit = (int(k) for k in np.argwhere(complete == HIDDEN)[0])
        raise EvidenceError(
            f"unit {network.names[unit]!r} has no value in row {row}; log_joint() needs all {network.n_units} units. "
            "Use log_likelihood() for partial evidence"
        )
    result = np.empty(len(complete))
    net, every = kernels.sampling.generative(network.model, network.bias), np.ones(network.n_units, np.bool_)
    kernels.sampling.log_joint_rows(net, complete, every, result)
    result[impossible(network, complete)] = -np.inf
    return float(result[0]) if single else result


def sample(network: Network, n: int, *, rng: RngLike = None, do: EvidenceLike | None = None) -> States:
    """Draw states from the network, parents before children.

    Parameters
    ----------
    network : Network
    n : int
        Number of draws.
    rng
        Seed or generator.
    do
        Units held at given values by intervention: they ignore their parents, and everything else follows from them.
        One pattern for all draws, or one row for each. This is not conditioning: the units above are not affected.

    Returns
    -------
    ndarray of int8, shape (n, n_units)
        Zeros and ones.
    """
    check_network(network)
    n = checks.whole("n", n, 0)
    states = np.empty((n, network.n_units), dtype=np.int8)
    states[:] = interventions(network, do, n, "draws")
    generator = checks.generator(rng)
    net = kernels.sampling.generative(network.model, network.bias)
    for rows in row_blocks(n, network.n_units):
        kernels.sampling.draw_rows(net, generator.random(states[rows].shape), states[rows])
    return states


def entropy_of(means: FloatArray) -> FloatArray:
    """The entropy of each of several independent units, in nats; zero at means of 0 and 1."""
    inside = np.clip(means, 1e-300, 1.0 - 2.0**-53)
    parts: FloatArray = -(means * np.log(inside) + (1.0 - means) * np.log1p(-inside))
    return parts
