"""The gradient of the bound in weights and biases, eqs. (34)-(35), at the parameters where the solver stopped.

At fixed means and xi this is the whole gradient: those were chosen to make the bound stationary (envelope theorem).
"""

from __future__ import annotations

import numpy as np

from sbnet._types import FloatArray, IndexArray, Model, Problem, States
from sbnet.kernels import gates, terms
from sbnet.kernels._compile import bare, caller, vector
from sbnet.kernels.arrays import real_numbers
from sbnet.kernels.terms.work import Work


def add_gradient(
    model: Model,
    problem: Problem,
    work: Work,
    states: States,
    bias: FloatArray,
    mu: FloatArray,
    scale: float,
    grad_weight: FloatArray,
    grad_bias: FloatArray,
    verb: int,
) -> None:
    """Add `scale` times the gradient of the bound of one solved pattern."""
    n = len(states)
    value, on = real_numbers(n), real_numbers(n)  # of each unit: its state or mean, and whether it was seen to be 1
    push = real_numbers(n)  # the slope of its part of the bound in its input: zero for barren units
    _load_values(problem.hidden, states, mu, value, on)
    for i in problem.known:
        a, c = gates.loads(problem.gate[i], value[i])
        push[i] = a - c * gates.t_slope(problem.gate[i], bias[i])
    by_slot, by_factor = real_numbers(len(problem.weight)), real_numbers(len(problem.factor))
    terms.call_gradient(verb, work, mu, by_slot, by_factor)
    for f in range(len(problem.factor)):
        i = problem.factor[f]
        a, c = gates.loads(problem.gate[i], value[i])
        push[i] = a - c * by_factor[f]
        for s in range(problem.ptr[f], problem.ptr[f + 1]):
            grad_weight[problem.edge[s]] += scale * (a * mu[problem.parent[s]] - c * by_slot[s])
    _add_known(model, push, on, scale, grad_weight, grad_bias)


call_add_gradient = caller(add_gradient)


@bare
def _load_values(hidden: IndexArray, states: States, mu: FloatArray, value: FloatArray, on: FloatArray) -> None:
    for i in range(len(states)):
        if states[i] > 0:
            value[i] = on[i] = 1.0
    for j in range(len(mu)):
        value[hidden[j]] = mu[j]


@bare
def _add_known(
    model: Model, push: FloatArray, on: FloatArray, scale: float, grad_weight: FloatArray, grad_bias: FloatArray
) -> None:
    """The slopes in biases, eq. (35), and in the weights of observed parents: the same, where the parent is 1."""
    indptr, parent = model.indptr, model.parent
    for i in range(len(push)):
        if push[i] != 0.0:
            grad_bias[i] += scale * push[i]
            _add_row(scale * push[i], parent[indptr[i] : indptr[i + 1]], on, grad_weight[indptr[i] : indptr[i + 1]])


@vector
def _add_row(push: float, parent: IndexArray, on: FloatArray, out: FloatArray) -> None:
    for e in range(len(parent)):
        out[e] += push * on[np.uint64(parent[e])]
