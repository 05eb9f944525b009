"""The joint distribution itself: its logarithm, samples from it; and the entropy of a factorial one."""

from __future__ import annotations

from typing import overload

import numpy as np

from sbnet import checks, kernels
from sbnet._types import HIDDEN, FloatArray, Model, RngLike, States
from sbnet.errors import EvidenceError
from sbnet.kernels.codes import SIGMOID, TABLE
from sbnet.model import gates
from sbnet.model.network import Network
from sbnet.model.suggestions import check_network
from sbnet.parallel.blocks import row_blocks
from sbnet.questions.evidence import EvidenceLike, OnePattern, Table, coerce
from sbnet.questions.question import interventions
from sbnet.questions.reduction import absorb_rows, columns
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
    states : mapping, sequence or table
        A value for every variable: a mapping, one pattern, or an array of shape (n, n_units), which holds the numbers
        of states.

    Returns
    -------
    float or ndarray of shape (n,)
        One number for a single pattern, one per row for a table.

    Examples
    --------
    >>> import sbnet as sb
    >>> net = sb.from_edges({("rain", "wet"): 2.0, ("sprinkler", "wet"): 1.5}, bias={"rain": -1.0})
    >>> round(sb.log_joint(net, [1, 0, 1]), 4)
    -2.1333
    """
    complete, single = coerce(network, states)
    if np.any(complete == HIDDEN):
        row, unit = (int(k) for k in np.argwhere(complete == HIDDEN)[0])
        raise EvidenceError(
            f"variable {network.names[unit]!r} has no value in row {row}; log_joint() needs all {network.n_units}. "
            "Use log_likelihood() for partial evidence"
        )
    result = np.empty(len(complete))
    for rows in row_blocks(len(complete), len(network.bias)):
        result[rows] = log_p_rows(network, complete[rows]).sum(axis=1)
    result[impossible(network, complete)] = -np.inf
    return float(result[0]) if single else result


def log_p_rows(network: Network, states: States) -> FloatArray:
    """ln P(v | parents) of each variable, rows by variables, for complete states."""
    total = log_p_of_inputs(network.model, network.bias, states)
    with np.errstate(divide="ignore"):  # what a table says cannot be
        for name, table in network.tables.items():
            i = network.index(name)
            parents = network.graph.parent[network.graph.indptr[i] : network.graph.indptr[i + 1]]
            total[:, i] = np.log(table[(*states[:, parents].T, states[:, i])])
    return total


def log_p_of_inputs(model: Model, bias: FloatArray, states: States) -> FloatArray:
    """ln P(v | parents) for parameters that are not those of a network, where there are no tables."""
    variable, _ = columns(model)
    level = np.arange(len(variable)) - model.threshold[variable] + 1
    x = absorb_rows(model, bias, states)
    gate = np.where(model.gate == TABLE, SIGMOID, model.gate)[variable]
    part = gates.log_part(np.broadcast_to(gate, x.shape), np.broadcast_to(level, x.shape), states[:, variable], x)
    total: FloatArray = np.add.reduceat(part, model.threshold[:-1], axis=1)
    return total


def _draw_with_tables(network: Network, uniform: FloatArray, states: States) -> None:
    """Fill in the entries that are -1, variable after variable: v >= s where the uniform number is below P(v >= s)."""
    for i in range(network.n_units):
        parents = network.graph.parent[network.graph.indptr[i] : network.graph.indptr[i + 1]]
        p = network.family(i).distribution(states[:, parents])
        at_least = np.cumsum(p[:, :0:-1], axis=1)
        drawn = (uniform[:, i : i + 1] < at_least).sum(axis=1)
        states[:, i] = np.where(states[:, i] == HIDDEN, drawn, states[:, i])


def sample(network: Network, n: int, *, rng: RngLike = None, do: EvidenceLike | None = None) -> States:
    """Draw states from the network, parents before children.

    Parameters
    ----------
    network : Network
    n : int
        Number of draws.
    rng : int or numpy.random.Generator, optional
        Seed or generator.
    do : mapping, sequence or table, optional
        Variables held at given values by intervention: they ignore their parents, and everything else follows from
        them. One pattern for all draws, or one row for each. This is not conditioning: the variables above are not
        affected.

    Returns
    -------
    ndarray of int8, shape (n, n_units)
        Zeros and ones, or the numbers of states; ``net.states["fever"][number]`` is the name of one.

    Examples
    --------
    >>> import sbnet as sb
    >>> net = sb.from_edges({("rain", "wet"): 2.0, ("sprinkler", "wet"): 1.5}, bias={"rain": -1.0})
    >>> sb.sample(net, 3, rng=0)
    array([[0, 1, 1],
           [1, 0, 0],
           [0, 0, 0]], dtype=int8)
    """
    check_network(network)
    n = checks.whole("n", n, 0)
    states = np.empty((n, network.n_units), dtype=np.int8)
    states[:] = interventions(network, do, n, "draws")
    generator = checks.generator(rng)
    net = None if network.tables else kernels.sampling.generative(network.model)
    for rows in row_blocks(n, network.n_units):
        uniform = generator.random(states[rows].shape)
        if net is None:
            _draw_with_tables(network, uniform, states[rows])
        else:
            kernels.sampling.draw_rows(*net, network.weight, network.bias, uniform, states[rows])
    return states


def entropy_of(means: FloatArray) -> FloatArray:
    """The entropy of each of several independent units, in nats; zero at means of 0 and 1."""
    inside = np.clip(means, 1e-300, 1.0 - 2.0**-53)
    parts: FloatArray = -(means * np.log(inside) + (1.0 - means) * np.log1p(-inside))
    return parts
