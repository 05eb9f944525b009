"""Gibbs sampling of the hidden units given the evidence."""

from __future__ import annotations

from typing import Any

import numpy as np

from sbnet._types import FloatArray, Model, Problem, States
from sbnet.kernels import gates
from sbnet.kernels._compile import address, bare, kernel
from sbnet.kernels.gates import sigmoid
from sbnet.kernels.random import GOLDEN, mix, row_seed, uniform
from sbnet.kernels.reduce import call_posed, posed
from sbnet.kernels.states import Complete, added, input_of, set_inputs, state_of

FRESH = 64
"""Sweeps after which inputs are summed anew, so that rounding does not pile up."""


@bare
def sweep(
    problem: Problem,
    states: States,
    bias: FloatArray,
    prior: FloatArray,
    b: float,
    complete: Complete,
    chance: FloatArray,
    seed: np.uint64,
) -> np.uint64:
    """Draw every hidden unit given all others, from Q^(1-b) P^b with `prior` the log odds of Q; from P at b = 1.

    Its probability of being 1 goes to `chance`.
    """
    weight, gate, factor = problem.weight, problem.gate, problem.factor
    on, z, rest, t = complete.on, complete.z, complete.rest, complete.t
    for j in range(len(on)):
        field = gates.log_odds(gate[problem.hidden[j]], input_of(problem, j, bias, complete))
        for c in range(problem.child_ptr[j], problem.child_ptr[j + 1]):
            f = problem.child[c]
            w, kind = weight[problem.child_slot[c]], gate[factor[f]]
            a, load = gates.loads(kind, state_of(problem, f, on, states))
            sign = -1.0 if on[j] == 1 else 1.0
            x, lost = added(z[f], sign * w)
            field += a * w - load * sign * (gates.t(kind, x + (rest[f] + lost)) - t[f])
        chance[j] = sigmoid((1.0 - b) * prior[j] + b * field)
        seed += GOLDEN
        new = 1 if uniform(seed) < chance[j] else 0
        if new != on[j]:
            for c in range(problem.child_ptr[j], problem.child_ptr[j + 1]):
                f = problem.child[c]
                z[f], lost = added(z[f], (new - on[j]) * weight[problem.child_slot[c]])
                rest[f] += lost
                t[f] = gates.t(gate[factor[f]], z[f] + rest[f])
            on[j] = new
    return seed


def gibbs_rows(*given: Any) -> None:
    """As `sample_rows`, with the kernel that poses problems."""
    sample_rows(address(posed, allocates=True), *given)


@kernel
def sample_rows(
    posed: int,
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
        problem = call_posed(posed, model, states[r])
        n, n_factors = len(problem.hidden), len(problem.factor)
        own_seed = row_seed(seed, states[r])
        complete = Complete(np.zeros(n, np.int8), np.zeros(n_factors), np.zeros(n_factors), np.zeros(n_factors))
        chance, flat = np.zeros(n), np.zeros(n)
        every, probability = np.zeros(n_units, np.int8), np.zeros(n_units)
        for chain in range(chains):
            state = mix(own_seed + np.uint64(chain + 1) * GOLDEN)
            for j in range(n):
                state += GOLDEN
                complete.on[j] = np.int8(mix(state) >> np.uint64(63))
            for k in range(burn_in + samples):
                if k % FRESH == 0:
                    set_inputs(problem, bias[r], complete)
                state = sweep(problem, states[r], bias[r], flat, 1.0, complete, chance, state)
                if k >= burn_in:
                    state = _all_units(
                        model, problem, states[r], bias[r], complete.on, chance, every, probability, state
                    )
                    for i in range(n_units):
                        change = probability[i] - means[r, chain, i]
                        means[r, chain, i] += change / (k - burn_in + 1)
                        within[r, chain, i] += change * (probability[i] - means[r, chain, i])
            for i in range(n_units):
                within[r, chain, i] /= samples - 1


@bare
def _all_units(
    model: Model,
    problem: Problem,
    states: States,
    bias: FloatArray,
    on: States,
    chance: FloatArray,
    every: States,
    probability: FloatArray,
    seed: np.uint64,
) -> np.uint64:
    """States and probabilities of all units: barren ones follow from their parents, and are drawn from them."""
    place = 0
    for i in range(len(states)):
        if states[i] >= 0:
            every[i], probability[i] = states[i], states[i]
        elif place < len(on) and problem.hidden[place] == i:
            every[i], probability[i] = on[place], chance[place]
            place += 1
        else:
            x = bias[i]
            for e in range(model.indptr[i], model.indptr[i + 1]):
                if states[model.parent[e]] < 0:
                    x += model.weight[e] * every[model.parent[e]]
            seed += GOLDEN
            probability[i], every[i] = gates.p(model.gate[i], x), gates.draw(model.gate[i], x, uniform(seed))
    return seed
