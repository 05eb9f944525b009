"""Many patterns: one problem after the other, each row on its own."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from sbnet._types import BoolArray, Bound, FloatArray, IndexArray, Model, Problem, States, Stop
from sbnet.kernels import gates, terms
from sbnet.kernels._compile import inlined, inner, kernel
from sbnet.kernels.arrays import real_numbers
from sbnet.kernels.gradient import add_gradient
from sbnet.kernels.meanfield import solve
from sbnet.kernels.reduce import posed
from sbnet.kernels.terms import enumerated, exact
from sbnet.kernels.terms.work import Work, spread

_ENUMERATED = 6  # parents whose states are summed for a prediction


@inlined
def mean_p(gate: int, weight: FloatArray, mu: FloatArray, bias: float) -> float:
    """The mean chance of being 1 for independent parents: the prediction for a unit that has no say in the evidence."""
    if gate == gates.NOISY_OR:
        none = math.exp(-bias)
        for s in range(len(weight)):
            none *= 1.0 - mu[s] + mu[s] * math.exp(-weight[s])
        return 1.0 - none
    if len(weight) <= _ENUMERATED:
        return enumerated.mean_p(gate, weight, mu, bias)
    low, high, mean, variance, largest = spread(weight, mu, bias)
    nodes = exact.nodes(low, high, mean, variance, largest)
    if nodes == 0 or nodes > exact.MAX_NODES:  # far from 0, or spread too far: as if x had a normal distribution
        return gates.p(gate, mean / math.sqrt(1.0 + math.pi * variance / 8.0))
    return exact.mean_sigmoid(weight, mu, bias, mean, nodes)


@inner
def predict_barren(model: Model, states: States, bias: FloatArray, means: FloatArray) -> None:
    """Means of the units that were dropped: the mean of P under the means of their parents, which come first."""
    for i in range(len(states)):
        if states[i] < 0 and np.isnan(means[i]):
            start, end = model.indptr[i], model.indptr[i + 1]
            weight, near = real_numbers(end - start), real_numbers(end - start)
            k = 0
            for e in range(start, end):
                j = model.parent[e]
                if states[j] < 0:
                    weight[k] = model.weight[e]
                    near[k] = means[j]
                    k += 1
            means[i] = mean_p(model.gate[i], weight[:k], near[:k], bias[i])


@inlined
def _same_mask(states: States, r: int) -> bool:
    """Are the same units observed in row r as in the row before?"""
    for i in range(states.shape[1]):  # noqa: SIM110 (kernels have no generators)
        if (states[r, i] < 0) != (states[r - 1, i] < 0):
            return False
    return True


@inlined
def _store(problem: Problem, work: Work, states: States, mu: FloatArray, means: FloatArray, xi: FloatArray) -> bool:
    """The results of a row, but for its barren units; are there any?"""
    n_hidden = 0
    for i in range(len(states)):
        means[i] = math.nan if states[i] < 0 else states[i]
        xi[i] = math.nan
        n_hidden += states[i] < 0
    for j in range(len(mu)):
        means[problem.hidden[j]] = mu[j]
    for f in range(len(problem.factor)):
        xi[problem.factor[f]] = terms.parameter(work, f)
    return n_hidden > len(mu)


class Answers(NamedTuple):
    """Where the answers go, row by row."""

    bound: FloatArray
    means: FloatArray  # they hold the starting points first
    xi: FloatArray  # NaN where the logarithm term of a unit has no such parameter
    sweeps: IndexArray
    converged: BoolArray
    trace: FloatArray


class Slopes(NamedTuple):
    """Where the gradients of the bounds are added up, each times the weight of its row."""

    row_weight: FloatArray
    weight: FloatArray
    bias: FloatArray


@kernel
def solve_rows(
    model: Model,
    which: Bound,
    stop: Stop,
    states: States,
    bias: FloatArray,
    warm: bool,
    answers: Answers,
    slopes: Slopes | None,
) -> None:
    """Solve every row from its starting point; `warm`: someone has found it, and it deserves a good start.

    Without `slopes`, no code for gradients is compiled.
    """
    first = 0
    while first < len(states):  # rows with the same units observed pose the same problem
        problem = posed(model, states[first])
        kind = terms.kinds_of(problem, which)
        rough = terms.prepare(problem, kind, first >= 0)
        fine = rough if terms.same_kinds(rough, kind) else terms.prepare(problem, kind, first < 0)
        mu = real_numbers(len(problem.hidden))
        r = first
        while r < len(states) and (r == first or _same_mask(states, r)):
            for j in range(len(mu)):
                mu[j] = answers.means[r, problem.hidden[j]]
            bound, sweeps, converged, work = solve(
                problem, rough, fine, kind, stop, states[r], bias[r], mu, warm, answers.trace[r]
            )
            if terms.same_kinds(work, kind):
                fine = work  # the next row may need the same frequencies
            answers.bound[r], answers.sweeps[r], answers.converged[r] = bound, sweeps, converged
            if slopes is not None:
                add_gradient(
                    model, problem, work, states[r], bias[r], mu, slopes.row_weight[r], slopes.weight, slopes.bias
                )
            if _store(problem, work, states[r], mu, answers.means[r], answers.xi[r]):
                predict_barren(model, states[r], bias[r], answers.means[r])
            r += 1
        first = r
