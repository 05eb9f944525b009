"""Ancestral sampling."""

from __future__ import annotations

from sbnet._types import FloatArray, Model, States
from sbnet.kernels import gates
from sbnet.kernels._compile import kernel


@kernel
def ancestral(model: Model, bias: FloatArray, uniform: FloatArray, states: States) -> None:
    """Fill in the entries of `states` that are -1, unit after unit, from eq. (2)."""
    for r in range(states.shape[0]):
        for i in range(states.shape[1]):
            if states[r, i] >= 0:
                continue
            x = bias[i]
            for e in range(model.indptr[i], model.indptr[i + 1]):
                if states[r, model.parent[e]] == 1:
                    x += model.weight[e]
            states[r, i] = gates.draw(model.gate[i], x, uniform[r, i])
