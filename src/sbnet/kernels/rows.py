"""Many patterns: one problem after the other, each row on its own."""

from __future__ import annotations

import numpy as np

from sbnet._types import FloatArray, Graph, IndexArray, Settings, States
from sbnet.kernels._compile import inner, kernel
from sbnet.kernels.gradient import add_gradient
from sbnet.kernels.meanfield import solve
from sbnet.kernels.reduce import reduce
from sbnet.kernels.terms import mean_sigmoid
from sbnet.kernels.tiles import XI as XI_
from sbnet.kernels.work import JENSEN, XI, prepare


@inner
def predict_barren(graph: Graph, states: States, bias: FloatArray, means: FloatArray) -> None:
    """Means of the units that were dropped: <sigma(z)> under the means of their parents, which come first."""
    for i in range(len(states)):
        if states[i] < 0 and np.isnan(means[i]):
            start, end = graph.indptr[i], graph.indptr[i + 1]
            weight, near = np.empty(end - start), np.empty(end - start)
            k = 0
            for e in range(start, end):
                j = graph.parent[e]
                if states[j] < 0:
                    weight[k] = graph.weight[e]
                    near[k] = means[j]
                    k += 1
            means[i] = mean_sigmoid(weight[:k], near[:k], bias[i])


@kernel
def solve_rows(
    graph: Graph,
    settings: Settings,
    states: States,
    bias: FloatArray,
    means: FloatArray,
    xi: FloatArray,
    bound: FloatArray,
    sweeps: IndexArray,
    settled: IndexArray,
    trace: FloatArray,
    row_weight: FloatArray,
    grad_weight: FloatArray,
    grad_bias: FloatArray,
) -> None:
    """Solve every row. `means` and `xi` hold the starting points, and then the results; NaN stands for one half.

    On return, `xi` is NaN for units whose logarithm term has no such parameter. If `grad_bias` is not empty, the
    gradients of the bounds, times the weights of the rows, are added to it and to `grad_weight`.
    """
    n_rows, n_units = states.shape
    if n_rows == 0:
        return
    problem = reduce(graph, states[0])
    work = prepare(problem, settings)
    for r in range(n_rows):
        for i in range(n_units):
            if (states[r, i] < 0) != (states[r - 1, i] < 0) and r > 0:
                problem = reduce(graph, states[r])
                work = prepare(problem, settings)
                break
        mu = np.empty(len(problem.hidden))
        for j in range(len(mu)):
            mu[j] = means[r, problem.hidden[j]]
            if np.isnan(mu[j]):
                mu[j] = 0.5
        for f in range(len(problem.factor)):
            guess = xi[r, problem.factor[f]]
            work.blocks[work.place[f] + XI_] = 0.5 if np.isnan(guess) else guess
        bound[r], sweeps[r], settled[r], waves = solve(problem, work, settings, states[r], bias[r], mu, trace[r])
        if len(grad_bias):
            add_gradient(graph, problem, work, waves, states[r], bias[r], mu, row_weight[r], grad_weight, grad_bias)
        for i in range(n_units):
            means[r, i] = np.nan if states[r, i] < 0 else states[r, i]
            xi[r, i] = np.nan
        for j in range(len(mu)):
            means[r, problem.hidden[j]] = mu[j]
        for f in range(len(problem.factor)):
            if work.kind[f] == XI or work.kind[f] == JENSEN:
                xi[r, problem.factor[f]] = work.blocks[work.place[f] + XI_]
        predict_barren(graph, states[r], bias[r], means[r])
