"""Importance sampling for one row, all samples at once: a few products of matrices, and nothing to compile."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy

from sbnet._types import BoolArray, FloatArray, IndexArray, States
from sbnet.exact.enumeration import Reduced
from sbnet.kernels.random import GOLDEN, Seeds, row_seeds, streams_of, uniforms
from sbnet.model import gates
from sbnet.questions.reduction import columns_of_hidden

_NUMBERS = 200_000  # in an array of several samples: it stays in the cache of a core


class _Places(NamedTuple):
    """The columns of the hidden variables of a row, and where they stand."""

    hidden: IndexArray  # by column: its variable among the hidden ones
    state: IndexArray
    first: IndexArray  # by variable: its first column
    column: IndexArray  # the number in the network


def _places(row: Reduced) -> _Places:
    width = row.problem.hidden["states"] - 1
    hidden, first = np.repeat(np.arange(len(width)), width), np.cumsum(width) - width
    column = columns_of_hidden(row.network.model, row.problem)
    return _Places(hidden, np.arange(1, len(hidden) + 1) - first[hidden], first, column)


def log_weights(row: Reduced, means: FloatArray, defence: float, seed: np.uint64, samples: int) -> FloatArray:
    """ln w of each sample, with <w> = P(V).

    H comes from the factorial distribution Q with the given means, or with probability `defence` from the network with
    the evidence held fixed, and w = P(H, V) / [(1 - defence) Q(H) + defence P(H)] is at most 1 / defence.
    """
    hidden, factors, slots, *_ = row.problem
    n, n_factors, places = len(hidden), len(factors), _places(row)
    if n == 0:
        return np.full(samples, row.known)
    mu = np.clip(means[places.column], 1e-14, 1.0 - 1e-14)  # no state is impossible
    mu *= np.minimum((1.0 - 1e-14) / np.bincount(places.hidden, mu), 1.0)[places.hidden]
    cumulative = np.cumsum(mu)
    before = cumulative - mu - (cumulative - mu)[places.first][places.hidden]
    log_q0 = np.log1p(-np.bincount(places.hidden, mu))[:, None]
    first_slot = np.append(factors["slot"], len(slots))
    coupling = scipy.sparse.csr_array((slots["weight"], slots["column"], first_slot), shape=(n_factors, len(mu)))
    streams = seeds_of(seed, row.states, samples)
    parts, most = [], max(_NUMBERS // (len(mu) + n_factors), 1)
    for first in range(0, samples, most):
        stream = streams[first : first + most]
        u = uniforms(stream + np.arange(1, n + 1, dtype=np.uint64)[:, None] * GOLDEN)
        rest = u[places.hidden] - before[:, None]
        on = (rest >= 0.0) & (rest < mu[:, None])
        defended = uniforms(stream) < defence
        on[:, defended] = _from_network(row, places, u[:, defended])
        z = coupling @ on.astype(np.float64) + row.bias[factors["threshold"]][:, None]
        log_prior, log_p = _log_p(row, places, on, z)
        off = ~np.logical_or.reduceat(on, places.first)
        log_q = np.add.reduceat(np.where(on, np.log(mu)[:, None], 0.0), places.first)
        log_q = np.where(off, log_q0, log_q).sum(axis=0)
        parts.append(log_p - np.logaddexp(np.log1p(-defence) + log_q, np.log(defence) + log_prior))
    weights: FloatArray = np.concatenate(parts)
    return weights + row.known


def seeds_of(seed: np.uint64, states: States, samples: int, first: int = 0) -> Seeds:
    """A seed for each sample after the `first` ones, from that of the evidence."""
    streams: Seeds = streams_of(row_seeds(seed, states[None]), samples, first)[0] + GOLDEN
    return streams


def _from_network(row: Reduced, places: _Places, numbers: FloatArray) -> BoolArray:
    """Draw the hidden variables from their parents, first to last: by column, is the variable in that state?"""
    hidden, factors, slots, *_ = row.problem
    on = np.zeros((len(places.hidden), numbers.shape[1]), np.bool_)
    for j, (gate, first) in enumerate(zip(row.network.gate[hidden["variable"]], places.first, strict=True)):
        last, x = first + hidden["states"][j] - 1, []
        for t in range(last - first):
            z = np.full(numbers.shape[1], row.bias[places.column[first + t]])
            if hidden["own"][j] >= 0:
                factor = factors[hidden["own"][j] + t]
                mine = slots[factor["slot"] : factor["slot_end"]]
                z += mine["weight"] @ on[mine["column"]]
            x.append(z)
        if last == first + 1:
            on[first] = gates.draw(gate, x[0], numbers[j])
            continue
        level, inputs = np.arange(1, len(x) + 1)[:, None], np.array(x)
        each = (np.full(inputs.shape, k) for k in range(len(x), 0, -1))  # the highest state first
        p = [np.exp(gates.log_part(gate, level, state, inputs).sum(axis=0)) for state in each]
        at_least = np.cumsum(p, axis=0)  # P(v >= k)
        on[first:last] = (numbers[j] < at_least).sum(axis=0) == level
    return on


def _log_p(row: Reduced, places: _Places, on: BoolArray, z: FloatArray) -> tuple[FloatArray, FloatArray]:
    """ln P of the hidden variables given their parents; and ln P(H, V), but for variables with known inputs."""
    hidden, factors, *_ = row.problem
    state = np.add.reduceat(on * places.state[:, None], places.first)
    seen, root = factors["hidden"] < 0, hidden["own"][places.hidden] < 0
    owner = places.hidden[root]
    x = np.broadcast_to(row.bias[places.column[root]][:, None], (len(owner), on.shape[1]))
    gate = row.network.gate[hidden["variable"][owner]][:, None]
    log_p = gates.log_part(gate, places.state[root][:, None], state[owner], x).sum(axis=0)

    def part(mine: BoolArray, states: IndexArray) -> FloatArray:
        one = factors[mine]
        total: FloatArray = gates.log_part(one["gate"][:, None], one["level"][:, None], states, z[mine]).sum(axis=0)
        return total

    log_p += part(~seen, state[factors["hidden"][~seen]])
    return log_p, log_p + part(seen, np.broadcast_to(row.states[factors["variable"][seen]][:, None], z[seen].shape))
