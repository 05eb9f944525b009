"""Importance sampling for one row, all samples at once: a few products of matrices, and nothing to compile."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from sbnet._types import BoolArray, FloatArray, Problem, States
from sbnet.exact.enumeration import known_part
from sbnet.kernels import array_gates as gates
from sbnet.kernels._compile import plain
from sbnet.kernels.random import GOLDEN, mix

Seeds: TypeAlias = NDArray[np.uint64]
_NUMBERS = 200_000  # in an array of several samples: it stays in the cache of a core


def log_weights(
    problem: Problem, states: States, bias: FloatArray, means: FloatArray, defence: float, seed: np.uint64, samples: int
) -> FloatArray:
    """ln w of each sample, with <w> = P(V).

    H comes from the factorial distribution Q with the given means, or with probability `defence` from the network with
    the evidence held fixed, and w = P(H, V) / [(1 - defence) Q(H) + defence P(H)] is at most 1 / defence.
    """
    constant = known_part(problem, states, bias)
    n, n_factors = len(problem.hidden), len(problem.factor)
    if n == 0:
        return np.full(samples, constant)
    mu = np.clip(means[problem.hidden], 1e-14, 1.0 - 1e-14)[:, None]  # no state is impossible
    coupling = scipy.sparse.csr_array((problem.weight, problem.parent, problem.ptr), shape=(n_factors, n))
    streams = seeds_of(seed, states, samples)
    parts, most = [], max(_NUMBERS // (n + n_factors), 1)
    for first in range(0, samples, most):
        stream = streams[first : first + most]
        u = uniform(stream + np.arange(1, n + 1, dtype=np.uint64)[:, None] * GOLDEN)
        on = u < mu
        defended = uniform(stream) < defence
        on[:, defended] = _from_network(problem, bias, u[:, defended])
        z = coupling @ on.astype(np.float64) + bias[problem.factor][:, None]
        log_prior, log_p = _log_p(problem, states, bias, on, z)
        log_q = np.where(on, np.log(mu), np.log1p(-mu)).sum(axis=0)
        parts.append(log_p - np.logaddexp(np.log1p(-defence) + log_q, np.log(defence) + log_prior))
    weights: FloatArray = np.concatenate(parts)
    return weights + constant


def seeds_of(seed: np.uint64, states: States, samples: int, first: int = 0) -> Seeds:
    """A seed for each sample after the `first` ones, from that of the evidence: `kernels.random` again."""
    mixed = plain(mix)
    with np.errstate(over="ignore"):
        for state in (states + 2).astype(np.uint64):
            seed = mixed(seed * np.uint64(3) + state)
    streams: Seeds = mixed(seed + np.arange(first + 1, first + samples + 1, dtype=np.uint64) * GOLDEN)
    return streams + GOLDEN


def uniform(seeds: Seeds) -> FloatArray:
    """A number in [0, 1) from each seed."""
    numbers: FloatArray = (plain(mix)(seeds) >> np.uint64(11)) * 2.0**-53
    return numbers


def _from_network(problem: Problem, bias: FloatArray, numbers: FloatArray) -> BoolArray:
    """Draw the hidden units from their parents, first to last."""
    hidden, ptr, gate = problem.hidden, problem.ptr, problem.gate
    on = gates.draw(gate[hidden][:, None], bias[hidden][:, None], numbers)  # right for those without hidden parents
    for j in np.flatnonzero(problem.factor_of >= 0):
        f, i = problem.factor_of[j], hidden[j]
        slots = slice(ptr[f], ptr[f + 1])
        x = bias[i] + problem.weight[slots] @ on[problem.parent[slots]]
        on[j] = gates.draw(gate[i], x, numbers[j])
    return on


def _log_p(
    problem: Problem, states: States, bias: FloatArray, on: BoolArray, z: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """ln P of the hidden units given their parents; and ln P(H, V), but for units with known inputs."""
    gate, root, seen = problem.gate[:, None], problem.factor_of < 0, problem.own < 0
    first, observed, inner = problem.hidden[root], problem.factor[seen], problem.own[~seen]
    hidden = gates.log_p(gate[first], on[root], bias[first][:, None]).sum(axis=0)
    hidden += gates.log_p(gate[problem.hidden[inner]], on[inner], z[~seen]).sum(axis=0)
    return hidden, hidden + gates.log_p(gate[observed], states[observed][:, None], z[seen]).sum(axis=0)
