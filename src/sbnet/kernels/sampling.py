"""Ancestral sampling."""

from __future__ import annotations

import math

from sbnet._types import FloatArray, Graph, States
from sbnet.kernels._compile import kernel


@kernel
def ancestral(graph: Graph, uniform: FloatArray, states: States) -> None:
    """Fill in the entries of `states` that are -1, unit after unit, from eq. (2)."""
    for r in range(states.shape[0]):
        for i in range(states.shape[1]):
            if states[r, i] >= 0:
                continue
            z = graph.bias[i]
            for e in range(graph.indptr[i], graph.indptr[i + 1]):
                if states[r, graph.parent[e]] == 1:
                    z += graph.weight[e]
            # u < sigmoid(z), written so that neither tail loses digits or overflows
            u = uniform[r, i]
            if z >= 0.0:
                on = u * (1.0 + math.exp(-z)) < 1.0
            else:
                t = math.exp(z)
                on = u * (1.0 + t) < t
            states[r, i] = 1 if on else 0
