"""Importance sampling for one row, all samples at once."""

from __future__ import annotations

import numpy as np

from sbnet import kernels
from sbnet._types import FloatArray, IndexArray, States
from sbnet.exact.enumeration import Reduced
from sbnet.exact.probability import log_p_of_inputs
from sbnet.kernels.random import GOLDEN, Seeds, row_seeds, streams_of, uniforms
from sbnet.questions.reduction import columns, whole

_NUMBERS = 200_000  # in an array of several samples: it stays in the cache of a core


def log_weights(row: Reduced, means: FloatArray, defence: float, seed: np.uint64, samples: int) -> FloatArray:
    """ln w of each sample, with <w> = P(V).

    H comes from the factorial distribution Q with the given means, or with probability `defence` from the network with
    the evidence held fixed, and w = P(H, V) / [(1 - defence) Q(H) + defence P(H)] is at most 1 / defence.
    """
    part = whole(row.network.model, row.states)
    model, inside = part.model, part.variables[columns(row.network.model)[0]]
    free, bias, given = part.hidden[part.variables], row.bias[inside], row.states[part.variables]
    hidden, (variable, state), log_w = np.flatnonzero(free), columns(model), np.empty(samples)
    if not len(hidden):
        return np.full(samples, row.known)
    q, log_q0 = factorial(means[inside], variable, len(given))
    ratio = np.where(free[variable], np.log(q) - log_q0[variable], 0.0)
    streams, net, most = seeds_of(seed, row.states, samples), kernels.sampling.generative(model), _NUMBERS // len(bias)
    for first in range(0, samples, max(most, 1)):
        stream = streams[first : first + max(most, 1)]
        numbers = uniforms(stream + np.arange(1, len(hidden) + 1, dtype=np.uint64)[:, None] * GOLDEN)
        states = np.repeat(given[None, :], len(stream), axis=0)
        for v, u in zip(hidden.tolist(), numbers, strict=True):
            states[:, v] = draw(q[model.threshold[v] : model.threshold[v + 1]], u)
        defended = uniforms(stream) < defence
        uniform, forward = np.zeros((int(defended.sum()), len(given))), states[defended]
        uniform[:, hidden], forward[:, hidden] = numbers[:, defended].T, -1
        kernels.sampling.draw_rows(*net, model.weight, bias, uniform, forward)
        states[defended] = forward
        log_p = log_p_of_inputs(model, bias, states)
        log_prior, log_q = log_p[:, free].sum(axis=1), log_q0[free].sum() + (states[:, variable] == state) @ ratio
        log_mixed = np.logaddexp(np.log1p(-defence) + log_q, np.log(defence) + log_prior)
        log_w[first : first + len(stream)] = log_prior + log_p[:, ~free].sum(axis=1) - log_mixed
    return log_w


def factorial(means: FloatArray, variable: IndexArray, n: int) -> tuple[FloatArray, FloatArray]:
    """Q of states from the second one on, by column, and ln Q of the first, by variable; no state is impossible."""
    q = np.maximum(means, 1e-14)
    q *= np.minimum((1.0 - 1e-14) / np.bincount(variable, q, n), 1.0)[variable]
    return q, np.log1p(-np.bincount(variable, q, n))


def draw(q: FloatArray, u: FloatArray) -> IndexArray:
    """A state for each number: 1 and those that follow by their probabilities, 0 by what is left."""
    state: IndexArray = (np.searchsorted(np.cumsum(q), u, side="right") + 1) % (len(q) + 1)
    return state


def seeds_of(seed: np.uint64, states: States, samples: int, first: int = 0) -> Seeds:
    """A seed for each sample after the `first` ones, from that of the evidence."""
    streams: Seeds = streams_of(row_seeds(seed, states[None]), samples, first)[0] + GOLDEN
    return streams
