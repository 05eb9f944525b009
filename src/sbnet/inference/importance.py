"""Importance sampling for one row, all samples at once: a few products of matrices, and nothing to compile."""

from __future__ import annotations

import numpy as np
import scipy.sparse

from sbnet._types import BoolArray, FloatArray, States
from sbnet.exact.enumeration import Reduced
from sbnet.kernels import array_gates as gates
from sbnet.kernels.random import GOLDEN, Seeds, row_seeds, streams_of, uniforms

_NUMBERS = 200_000  # in an array of several samples: it stays in the cache of a core


def log_weights(row: Reduced, means: FloatArray, defence: float, seed: np.uint64, samples: int) -> FloatArray:
    """ln w of each sample, with <w> = P(V), for variables with two states.

    H comes from the factorial distribution Q with the given means, or with probability `defence` from the network with
    the evidence held fixed, and w = P(H, V) / [(1 - defence) Q(H) + defence P(H)] is at most 1 / defence.
    """
    hidden, factors, slots, *_ = row.problem
    n, n_factors = len(hidden), len(factors)
    if n == 0:
        return np.full(samples, row.known)
    mu = np.clip(means[hidden["variable"]], 1e-14, 1.0 - 1e-14)[:, None]  # no state is impossible
    first_slot = np.append(factors["slot"], len(slots))
    coupling = scipy.sparse.csr_array((slots["weight"], slots["parent"], first_slot), shape=(n_factors, n))
    streams = seeds_of(seed, row.states, samples)
    parts, most = [], max(_NUMBERS // (n + n_factors), 1)
    for first in range(0, samples, most):
        stream = streams[first : first + most]
        u = uniforms(stream + np.arange(1, n + 1, dtype=np.uint64)[:, None] * GOLDEN)
        on = u < mu
        defended = uniforms(stream) < defence
        on[:, defended] = _from_network(row, u[:, defended])
        z = coupling @ on.astype(np.float64) + row.bias[factors["variable"]][:, None]
        log_prior, log_p = _log_p(row, on, z)
        log_q = np.where(on, np.log(mu), np.log1p(-mu)).sum(axis=0)
        parts.append(log_p - np.logaddexp(np.log1p(-defence) + log_q, np.log(defence) + log_prior))
    weights: FloatArray = np.concatenate(parts)
    return weights + row.known


def seeds_of(seed: np.uint64, states: States, samples: int, first: int = 0) -> Seeds:
    """A seed for each sample after the `first` ones, from that of the evidence."""
    streams: Seeds = streams_of(row_seeds(seed, states[None]), samples, first)[0] + GOLDEN
    return streams


def _from_network(row: Reduced, numbers: FloatArray) -> BoolArray:
    """Draw the hidden units from their parents, first to last."""
    hidden, factors, slots, *_ = row.problem
    gate, bias = row.network.gate[hidden["variable"]], row.bias[hidden["variable"]]
    on = gates.draw(gate[:, None], bias[:, None], numbers)  # right for those without hidden parents
    for j in np.flatnonzero(hidden["own"] >= 0):
        factor = factors[hidden["own"][j]]
        mine = slots[factor["slot"] : factor["slot_end"]]
        on[j] = gates.draw(gate[j], bias[j] + mine["weight"] @ on[mine["parent"]], numbers[j])
    return on


def _log_p(row: Reduced, on: BoolArray, z: FloatArray) -> tuple[FloatArray, FloatArray]:
    """ln P of the hidden units given their parents; and ln P(H, V), but for units with known inputs."""
    hidden, factors, *_ = row.problem
    gate, bias, variable = row.network.gate[:, None], row.bias[:, None], factors["variable"]
    root, seen = hidden["own"] < 0, factors["hidden"] < 0
    first, observed = hidden["variable"][root], variable[seen]
    log_p = gates.log_p(gate[first], on[root], bias[first]).sum(axis=0)
    log_p += gates.log_p(gate[variable[~seen]], on[factors["hidden"][~seen]], z[~seen]).sum(axis=0)
    return log_p, log_p + gates.log_p(gate[observed], row.states[observed][:, None], z[seen]).sum(axis=0)
