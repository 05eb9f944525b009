"""The gradient of the bound in weights and biases, eqs. (34)-(35), at the parameters where the solver stopped.

At fixed Q and xi this is the whole gradient: those were chosen to make the bound stationary (envelope theorem).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sbnet._types import FloatArray, Model, States
from sbnet.kernels import thresholds
from sbnet.kernels.compiling import inner
from sbnet.kernels.structs import Problem


class Gradients(NamedTuple):
    """Where the gradients of the bounds are added up, each times the weight of its row."""

    row_weight: FloatArray
    weight: FloatArray
    bias: FloatArray


@inner
def add_gradient(
    model: Model, problem: Problem, blocks: np.ndarray, states: States, bias: FloatArray, q: FloatArray,
    by_slot: FloatArray, by_factor: FloatArray, gradients: Gradients, row: int,
) -> None:  # fmt: skip
    """Add the gradient of the bound of a solved row, times its weight, from the derivatives of the terms."""
    hidden, factors, slots = problem.hidden, problem.factors, problem.slots
    gate, threshold, n_states = model.gate, model.threshold, model.n_states
    scale, by_weight = gradients.row_weight[row], gradients.weight
    by_input = np.zeros(len(bias))  # of each threshold, times `scale`: zero for barren variables
    for f in range(len(factors)):
        factor = factors[f]
        a, c = blocks[factor.block].a[factor.lane], blocks[factor.block].c[factor.lane]
        by_input[factor.threshold] = scale * (a - c * by_factor[f])
        for s in range(factor.slot, factor.slot_end):
            by_weight[slots[s].place] += scale * (a * q[slots[s].column] - c * by_slot[s])
    for v in problem.known:
        for level in range(1, n_states[v] if states[v] >= 0 else 0):
            l = threshold[v] + level - 1  # noqa: E741 (the letter of the definition)
            a, c = thresholds.loads(gate[v], level, states[v])
            by_input[l] = scale * (a - c * thresholds.dt(gate[v], bias[l]))
    for j in range(len(hidden)):
        one = hidden[j]
        for level in range(1, one.states if one.own < 0 else 0):
            l = threshold[one.variable] + level - 1  # noqa: E741
            a, c = thresholds.mean_loads(gate[one.variable], level, q, one.column, one.column_end)
            by_input[l] = scale * (a - c * thresholds.dt(gate[one.variable], bias[l]))
    _add_observed(model, states, by_input, by_weight, gradients.bias)


@inner
def _add_observed(
    model: Model, states: States, by_input: FloatArray, by_weight: FloatArray, by_bias: FloatArray
) -> None:
    """The derivatives in biases, eq. (35), and in weights of observed parents: likewise, where the parent is so."""
    indptr, parent, n_states, threshold, block = (
        model.indptr, model.parent, model.n_states, model.threshold, model.block,
    )  # fmt: skip
    for v in range(len(states)):
        for level in range(n_states[v] - 1):
            push = by_input[threshold[v] + level]
            if push == 0.0:
                continue
            by_bias[threshold[v] + level] += push
            for e in range(indptr[v], indptr[v + 1]):
                state = states[parent[e]]
                if state > 0:
                    by_weight[block[e] + level * (n_states[parent[e]] - 1) + state - 1] += push
