"""The gradient of the bound in weights and biases, eqs. (34)-(35), at the parameters where the solver stopped.

At fixed Q and xi this is the whole gradient: those were chosen to make the bound stationary (envelope theorem).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sbnet._types import FloatArray
from sbnet.kernels import terms, thresholds
from sbnet.kernels.compiling import kernel


class Gradients(NamedTuple):
    """Where the gradients of the bounds are added up, each times the weight of its row."""

    row_weight: FloatArray
    weight: FloatArray
    bias: FloatArray


@kernel
def add_gradient(which, model, problem, blocks, tiles, numbers, q, states, bias, gradients, r):
    """Add the gradient of the bound of a solved row, times its weight."""
    hidden, factors, slots = problem.hidden, problem.factors, problem.slots
    gate, threshold, n_states, block_of = model.gate, model.threshold, model.n_states, model.block
    indptr, parent, by_weight, by_bias = model.indptr, model.parent, gradients.weight, gradients.bias
    scale = gradients.row_weight[r]
    by_slot, by_factor, by_input = np.zeros(len(slots)), np.zeros(len(factors)), np.zeros(bias.shape[1])
    terms.verbs(which).gradient(problem, blocks, tiles, numbers, q, by_slot, by_factor)
    for f in range(len(factors)):
        factor = factors[f]
        a, c = blocks[factor.block].a[factor.lane], blocks[factor.block].c[factor.lane]
        by_input[factor.threshold] = scale * (a - c * by_factor[f])
        for s in range(factor.slot, factor.slot_end):
            by_weight[slots[s].place] += scale * (a * q[slots[s].column] - c * by_slot[s])
    for v in problem.known:
        for k in range(threshold[v], threshold[v + 1] if states[r, v] >= 0 else 0):
            a, c = thresholds.loads(gate[v], k - threshold[v] + 1, states[r, v])
            by_input[k] = scale * (a - c * thresholds.dt(gate[v], bias[r, k]))
    for j in range(len(hidden)):
        v = hidden[j]
        for level in range(1, v.states if v.own < 0 else 0):
            k = threshold[v.variable] + level - 1
            a, c = thresholds.mean_loads(gate[v.variable], level, q, v.column, v.column_end)
            by_input[k] = scale * (a - c * thresholds.dt(gate[v.variable], bias[r, k]))
    for v in range(states.shape[1]):  # biases, eq. (35), and likewise weights of observed parents
        for level in range(n_states[v] - 1):
            push = by_input[threshold[v] + level]  # zero for barren variables
            if push == 0.0:
                continue
            by_bias[threshold[v] + level] += push
            for e in range(indptr[v], indptr[v + 1]):
                state = states[r, parent[e]]
                if state > 0:
                    by_weight[block_of[e] + level * (n_states[parent[e]] - 1) + state - 1] += push
