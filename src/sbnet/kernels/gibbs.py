"""Gibbs sampling of the hidden units given the evidence."""

from __future__ import annotations

import numpy as np

from sbnet._types import FloatArray, Model, Problem, States
from sbnet.kernels._compile import bare, kernel
from sbnet.kernels.gates import sigmoid, softplus
from sbnet.kernels.random import GOLDEN, mix, row_seed, uniform
from sbnet.kernels.reduce import reduce


@bare
def _sweep(
    problem: Problem, states: States, bias: FloatArray, on: States, z: FloatArray, chance: FloatArray, seed: np.uint64
) -> np.uint64:
    """Draw every hidden unit once given all others; its probability of being 1 goes to `chance`."""
    own, weight = problem.own, problem.weight
    for j in range(len(problem.hidden)):
        f = problem.factor_of[j]
        field = z[f] if f >= 0 else bias[problem.hidden[j]]
        for c in range(problem.child_ptr[j], problem.child_ptr[j + 1]):
            f = problem.child[c]
            w = weight[problem.child_slot[c]]
            off = z[f] - w * on[j]
            value = on[own[f]] if own[f] >= 0 else states[problem.factor[f]]
            field += value * w - (softplus(off + w) - softplus(off))
        chance[j] = sigmoid(field)
        seed += GOLDEN
        new = 1 if uniform(seed) < chance[j] else 0
        if new != on[j]:
            for c in range(problem.child_ptr[j], problem.child_ptr[j + 1]):
                z[problem.child[c]] += (new - on[j]) * weight[problem.child_slot[c]]
            on[j] = new
    return seed


@kernel
def gibbs_rows(
    model: Model,
    states: States,
    bias: FloatArray,
    seed: np.uint64,
    samples: int,
    burn_in: int,
    chains: int,
    means: FloatArray,
    within: FloatArray,
) -> None:
    """Means of the conditional probabilities in each chain, rows by chains by units, and their variances within it."""
    n_rows, n_units = states.shape
    for r in range(n_rows):
        problem = reduce(model, states[r])
        n_hidden, n_factors = len(problem.hidden), len(problem.factor)
        place = np.full(n_units, -1, np.int64)
        for j in range(n_hidden):
            place[problem.hidden[j]] = j
        own_seed = row_seed(seed, states[r])
        on = np.zeros(n_hidden, np.int8)
        z, chance = np.zeros(n_factors), np.zeros(n_hidden)
        every, probability = np.zeros(n_units, np.int8), np.zeros(n_units)
        for chain in range(chains):
            state = mix(own_seed + np.uint64(chain + 1) * GOLDEN)
            for j in range(n_hidden):
                state += GOLDEN
                on[j] = np.int8(mix(state) >> np.uint64(63))
            for f in range(n_factors):
                z[f] = bias[r, problem.factor[f]]
                for s in range(problem.ptr[f], problem.ptr[f + 1]):
                    z[f] += problem.weight[s] * on[problem.parent[s]]
            for t in range(burn_in + samples):
                state = _sweep(problem, states[r], bias[r], on, z, chance, state)
                if t < burn_in:
                    continue
                for i in range(n_units):  # barren units follow from their parents
                    if states[r, i] >= 0:
                        every[i], probability[i] = states[r, i], states[r, i]
                    elif place[i] >= 0:
                        every[i], probability[i] = on[place[i]], chance[place[i]]
                    else:
                        total = bias[r, i]
                        for e in range(model.indptr[i], model.indptr[i + 1]):
                            if states[r, model.parent[e]] < 0:
                                total += model.weight[e] * every[model.parent[e]]
                        probability[i] = sigmoid(total)
                        state += GOLDEN
                        every[i] = 1 if uniform(state) < probability[i] else 0
                    change = probability[i] - means[r, chain, i]
                    means[r, chain, i] += change / (t - burn_in + 1)
                    within[r, chain, i] += change * (probability[i] - means[r, chain, i])
            for i in range(n_units):
                within[r, chain, i] /= samples - 1
