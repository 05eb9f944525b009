"""Many patterns: one problem after the other, each row on its own."""

from __future__ import annotations

import numpy as np

from sbnet._types import FloatArray, IndexArray, Model, Problem, Settings, States
from sbnet.kernels._compile import bare, inner, kernel
from sbnet.kernels.gradient import add_gradient
from sbnet.kernels.meanfield import solve
from sbnet.kernels.reduce import reduce
from sbnet.kernels.terms import mean_sigmoid
from sbnet.kernels.tiles import XI as XI_
from sbnet.kernels.work import JENSEN, XI, Work, prepare


@inner
def predict_barren(model: Model, states: States, bias: FloatArray, means: FloatArray) -> None:
    """Means of the units that were dropped: <sigma(z)> under the means of their parents, which come first."""
    for i in range(len(states)):
        if states[i] < 0 and np.isnan(means[i]):
            start, end = model.indptr[i], model.indptr[i + 1]
            weight, near = np.empty(end - start), np.empty(end - start)
            k = 0
            for e in range(start, end):
                j = model.parent[e]
                if states[j] < 0:
                    weight[k] = model.weight[e]
                    near[k] = means[j]
                    k += 1
            means[i] = mean_sigmoid(weight[:k], near[:k], bias[i])


@bare
def _same_mask(states: States, r: int) -> bool:
    """Are the same units observed in row r as in the row before?"""
    for i in range(states.shape[1]):  # noqa: SIM110 (kernels have no generators)
        if (states[r, i] < 0) != (states[r - 1, i] < 0):
            return False
    return True


@bare
def _load(problem: Problem, work: Work, means: FloatArray, xi: FloatArray, mu: FloatArray) -> bool:
    """The starting point of a row; has someone given one?"""
    hidden, factor, place, blocks = problem.hidden, problem.factor, work.place, work.blocks
    warm = False
    for j in range(len(hidden)):
        given = not np.isnan(means[hidden[j]])
        mu[j] = means[hidden[j]] if given else 0.5
        warm |= given
    for f in range(len(factor)):
        blocks[place[f] + XI_] = 0.5 if np.isnan(xi[factor[f]]) else xi[factor[f]]
    return warm


@bare
def _store(problem: Problem, work: Work, states: States, mu: FloatArray, means: FloatArray, xi: FloatArray) -> bool:
    """The results of a row, but for its barren units; are there any?"""
    hidden, factor, kind, place, blocks = problem.hidden, problem.factor, work.kind, work.place, work.blocks
    n_hidden = 0
    for i in range(len(states)):
        means[i] = np.nan if states[i] < 0 else states[i]
        xi[i] = np.nan
        n_hidden += states[i] < 0
    for j in range(len(hidden)):
        means[hidden[j]] = mu[j]
    for f in range(len(factor)):
        if kind[f] == XI or kind[f] == JENSEN:
            xi[factor[f]] = blocks[place[f] + XI_]
    return n_hidden > len(hidden)


@kernel
def solve_rows(
    model: Model,
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
    n_rows = len(states)
    if n_rows == 0:
        return
    problem = reduce(model, states[0])
    work = prepare(problem, settings)
    mu = np.empty(len(problem.hidden))
    for r in range(n_rows):
        if r > 0 and not _same_mask(states, r):
            problem = reduce(model, states[r])
            work = prepare(problem, settings)
            mu = np.empty(len(problem.hidden))
        warm = _load(problem, work, means[r], xi[r], mu)
        bound[r], sweeps[r], settled[r], waves = solve(problem, work, settings, states[r], bias[r], mu, warm, trace[r])
        if len(grad_bias):
            add_gradient(model, problem, work, waves, states[r], bias[r], mu, row_weight[r], grad_weight, grad_bias)
        if _store(problem, work, states[r], mu, means[r], xi[r]):
            predict_barren(model, states[r], bias[r], means[r])
