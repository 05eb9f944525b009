"""Many patterns: one problem after the other, each row on its own."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from sbnet._types import BoolArray, Bound, FloatArray, IndexArray, Model, Problem, States, Stop
from sbnet.kernels import gates, terms
from sbnet.kernels._compile import address, announce, bare, inner, kernel, light
from sbnet.kernels.arrays import real_numbers
from sbnet.kernels.gradient import add_gradient, call_add_gradient
from sbnet.kernels.meanfield import Kit, call_solve, kit_for
from sbnet.kernels.reduce import call_posed
from sbnet.kernels.terms import enumerated, exact, waves
from sbnet.kernels.terms.work import Work, spread

_ENUMERATED = 6  # parents whose states are summed for a prediction


@inner
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
    squares = 0.0
    for s in range(len(weight)):
        squares += weight[s] * weight[s]
    nodes = waves.nodes(low, high, mean, variance, largest, squares)
    if nodes == 0 or nodes > waves.MAX_NODES:  # far from 0, or spread too far: as if x had a normal distribution
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


@bare
def _same_mask(states: States, r: int) -> bool:
    """Are the same units observed in row r as in the row before?"""
    for i in range(states.shape[1]):  # noqa: SIM110 (kernels have no generators)
        if (states[r, i] < 0) != (states[r - 1, i] < 0):
            return False
    return True


@kernel
def predict_rows(model: Model, states: States, bias: FloatArray, means: FloatArray) -> None:
    """The same for every row."""
    for r in range(len(states)):
        predict_barren(model, states[r], bias[r], means[r])


@bare
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
    """Where the gradients of the bounds are added up, each times the weight of its row; no rows: no gradients."""

    row_weight: FloatArray
    weight: FloatArray
    bias: FloatArray


NO_SLOPES = Slopes(np.zeros(0), np.zeros(0), np.zeros(0))


class Learning(NamedTuple):
    """Where the kernels are that differentiate."""

    add_gradient: int
    gradient: int


_NO_LEARNING = Learning(0, 0)


def solve_rows(
    model: Model,
    which: Bound,
    stop: Stop,
    states: States,
    bias: FloatArray,
    warm: bool,
    answers: Answers,
    slopes: Slopes = NO_SLOPES,
) -> None:
    """Solve every row from its starting point; `warm`: someone has found it, and it deserves a good start.

    What the terms of these rows do not need is not compiled, nor what differentiates without `slopes`.
    """
    announce(climb_rows)
    row, barren = 0, False
    for rooms in _rooms_to_try(which, model.gate, model.indptr[1:] - model.indptr[:-1]):
        learning = _learning(rooms) if len(slopes.row_weight) else _NO_LEARNING
        row, more = climb_rows(kit_for(rooms), learning, model, which, stop, states, bias, warm, answers, slopes, row)
        barren = barren or more
        if row == len(states):
            break
    if barren:
        predict_rows(model, states, bias, answers.means)


def _rooms_to_try(which: Bound, gate: States, parents: IndexArray) -> Iterator[tuple[Any, ...]]:
    """The fewest terms first. Observed parents leave few hidden ones to a factor, and so a sum over their states; and
    where the exact term would need too many frequencies, any term may take its place.
    """
    some = parents[parents > 0]
    fewest, most = (int(some.min()), int(some.max())) if len(some) else (0, 0)
    present = frozenset(np.flatnonzero(np.bincount(gate[parents > 0])).tolist())
    yield terms.rooms_for(which, present, fewest, most)
    yield terms.rooms_for(which, present, 0, most)
    yield terms.any_rooms(present)


@cache
def _learning(rooms: tuple[Any, ...]) -> Learning:
    verb = terms.each("gradient", "work, mu, by_slot, by_factor", rooms)
    return Learning(address(add_gradient, allocates=True), address(verb, enumerated.gradient))


@light
def climb_rows(
    kit: Kit,
    learning: Learning,
    model: Model,
    which: Bound,
    stop: Stop,
    states: States,
    bias: FloatArray,
    warm: bool,
    answers: Answers,
    slopes: Slopes,
    first: int,
) -> tuple[int, bool]:
    """Solve the rows from `first` on: one more than the last that the kit could solve; and are any units barren?"""
    barren = False
    while first < len(states):  # rows with the same units observed pose the same problem
        problem = call_posed(kit.posed, model, states[first])
        kind = terms.kinds_of(problem, which)
        fine = terms.call_layout(kit.layout, problem, kind, False, kit.fine.prepare)
        if terms.lacks(kit.enumerates, fine):
            return first, barren
        mu = real_numbers(len(problem.hidden))
        r = first
        while r < len(states) and (r == first or _same_mask(states, r)):
            for j in range(len(mu)):
                mu[j] = answers.means[r, problem.hidden[j]]
            bound, sweeps, converged, solved, work = call_solve(
                kit.solve, problem, fine, kind, kit, stop, states[r], bias[r], mu, warm, answers.trace[r]
            )
            if not solved:
                return r, barren
            if terms.same_kinds(work, kind):
                fine = work  # the next row may need the same frequencies
            answers.bound[r], answers.sweeps[r], answers.converged[r] = bound, sweeps, converged
            if len(slopes.row_weight):
                scale = slopes.row_weight[r]
                call_add_gradient(
                    learning.add_gradient, model, problem, work, states[r], bias[r], mu, scale, slopes.weight,
                    slopes.bias, learning.gradient,
                )  # fmt: skip
            if _store(problem, work, states[r], mu, answers.means[r], answers.xi[r]):
                barren = True
            r += 1
        first = r
    return first, barren
