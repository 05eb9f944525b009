"""Distributions of one variable with sequential logits, for many complete states of its parents."""

from __future__ import annotations

import math

from sbnet._types import FloatArray, Model, States
from sbnet.kernels.compiling import kernel


@kernel
def log_distribution(model: Model, bias: FloatArray, v: int, states: States, log_p: FloatArray) -> None:
    """ln P(v = k | parents) of each row of states, rows by states of v; v is a sigmoid variable."""
    indptr, parent, block, weight, n_states = model.indptr, model.parent, model.block, model.weight, model.n_states
    first, n = model.threshold[v], n_states[v] - 1
    for r in range(len(states)):
        for k in range(n):
            log_p[r, k + 1] = bias[first + k]
        for e in range(indptr[v], indptr[v + 1]):
            s, width = states[r, parent[e]], n_states[parent[e]] - 1
            if s > 0:
                for k in range(n):
                    log_p[r, k + 1] += weight[block[e] + k * width + s - 1]
        above = 0.0  # ln P(v >= k)
        for k in range(n):
            x = log_p[r, k + 1]
            t = max(x, 0.0) + math.log1p(math.exp(-abs(x)))
            log_p[r, k] = above - t
            above += x - t
        log_p[r, n] = above
