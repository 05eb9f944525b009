"""Complete states: drawn from the network, parents before children, and their ln P."""

from __future__ import annotations

from sbnet._types import FloatArray, Model, States
from sbnet.kernels import gates
from sbnet.kernels._compile import bare, kernel


@kernel
def ancestral(model: Model, bias: FloatArray, uniform: FloatArray, states: States) -> None:
    """Fill in the entries of `states` that are -1, unit after unit, from eq. (2)."""
    for r in range(states.shape[0]):
        for i in range(states.shape[1]):
            if states[r, i] >= 0:
                continue
            states[r, i] = gates.draw(model.gate[i], _input(model, bias, states, r, i), uniform[r, i])


@kernel
def log_joint_rows(model: Model, bias: FloatArray, states: States, result: FloatArray) -> None:
    """ln P(S) of each row, eq. (6)."""
    for r in range(states.shape[0]):
        result[r] = 0.0
        for i in range(states.shape[1]):
            result[r] += gates.log_p(model.gate[i], states[r, i], _input(model, bias, states, r, i))


@bare
def _input(model: Model, bias: FloatArray, states: States, r: int, i: int) -> float:
    x = bias[i]
    for e in range(model.indptr[i], model.indptr[i + 1]):
        if states[r, model.parent[e]] == 1:
            x += model.weight[e]
    return x
