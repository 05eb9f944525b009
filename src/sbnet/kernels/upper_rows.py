"""Upper bounds row by row: groups of hidden units that are few are summed exactly, the others by descent."""

from __future__ import annotations

import math

import numpy as np

from sbnet._types import BoolArray, FloatArray, Model, Problem, States
from sbnet.kernels._compile import inner, kernel
from sbnet.kernels.enumerate import enumerate_group
from sbnet.kernels.gates import sigmoid, softplus
from sbnet.kernels.reduce import components, reduce
from sbnet.kernels.upper import Regions, evaluate, evaluate_all

_MEMORY = 12
_HALVINGS = 30
_PATIENCE = 3
_SPLIT_WEIGHT = 4.0  # a weight beyond that decides a unit alone; it counts no more for the choice of a split


@kernel
def upper_rows(
    model: Model,
    states: States,
    bias: FloatArray,
    limits: tuple[int, int, int],
    tol: float,
    edge_start: FloatArray,
    unit_start: FloatArray,
    bound: FloatArray,
    exact: BoolArray,
    score: FloatArray,
) -> None:
    """Fill `bound`, whether it is exact, and a `score` for each unit that might be split.

    `limits` are the largest group that is summed exactly, the largest table, and the number of steps. Parameters start
    from `edge_start` and `unit_start` (NaN: from scratch) and are left there.
    """
    for r in range(states.shape[0]):
        problem = reduce(model, states[r])
        total = 0.0
        for i in problem.settled:
            if states[r, i] >= 0:
                total += states[r, i] * bias[r, i] - softplus(bias[r, i])
        label = components(problem)
        size = np.bincount(label) if len(label) else np.zeros(0, np.int64)
        large = np.zeros(len(label), np.bool_)
        means = np.empty(states.shape[1])
        for k in range(len(label)):
            large[k] = size[label[k]] > limits[0]
            if label[k] == k and not large[k]:
                total += enumerate_group(problem, np.flatnonzero(label == k), states[r], bias[r], means)
        exact[r] = not large.any()
        if exact[r]:
            score[r] = 0.0
        else:
            part = np.inf
            fresh = np.isnan(unit_start[r, :, 0]).all()
            last = 1 if limits[1] > 0 or not fresh else 0
            for stage in range(0 if fresh else 1, last + 1):  # lines first: a quick way to a good start
                regions = _regions(problem, large, states[r], bias[r], stage * limits[1])
                x = _start(regions, edge_start[r], unit_start[r])
                part = min(part, _descend(regions, x, limits[2], tol))
                _keep(regions, x, edge_start[r], unit_start[r], score[r])
            total += part
        bound[r] = min(total, 0.0)  # P <= 1


@inner
def _regions(problem: Problem, large: BoolArray, states: States, bias: FloatArray, largest: int) -> Regions:
    n_factors, n_hidden = len(problem.factor), len(problem.hidden)
    state, shifted = np.empty(n_factors, np.int8), np.empty(n_factors)
    active, table = np.zeros(n_factors, np.bool_), np.zeros(len(problem.parent), np.bool_)
    low, high = np.zeros(n_factors), np.zeros(n_factors)
    # A hidden unit whose input is known only up to an interval takes all of Hölder's weight itself (its term then has
    # a closed form), so it may be in no table. Parents come first: what they are is known when a child asks.
    alone = np.zeros(n_hidden, np.bool_)
    for f in range(n_factors):
        state[f], shifted[f] = states[problem.factor[f]], bias[problem.factor[f]]
        active[f] = large[problem.parent[problem.ptr[f]]]
        if not active[f]:
            continue
        room = largest
        first, last = problem.ptr[f], problem.ptr[f + 1]
        for s in first + np.argsort(-np.abs(problem.weight[first:last])):
            if room > 0 and not alone[problem.parent[s]]:
                table[s] = True
                room -= 1
            else:
                low[f] += min(problem.weight[s], 0.0)
                high[f] += max(problem.weight[s], 0.0)
                if problem.own[f] >= 0:
                    alone[problem.own[f]] = True
    root, root_bias = np.zeros(n_hidden, np.bool_), np.zeros(n_hidden)
    for k in range(n_hidden):
        root[k] = large[k] and problem.factor_of[k] < 0
        root_bias[k] = bias[problem.hidden[k]]
    return Regions(problem, state, shifted, root_bias, active, root, table, low, high)


@inner
def _start(regions: Regions, edge_start: FloatArray, unit_start: FloatArray) -> FloatArray:
    """Slopes of the table slots, then of the factors, then the logarithms of the shares of the factors."""
    problem = regions.problem
    n_slots, n_factors = len(problem.parent), len(problem.factor)
    x = np.zeros(n_slots + 2 * n_factors)
    children = np.ones(len(problem.hidden))
    for s in range(n_slots):
        if regions.table[s]:
            children[problem.parent[s]] += 1.0
    for f in range(n_factors):
        if not regions.active[f]:
            continue
        i = problem.factor[f]
        slope, share = unit_start[i, 0], unit_start[i, 1]
        if np.isnan(slope):
            slope, middle = 0.0, regions.bias[f]
            for s in range(problem.ptr[f], problem.ptr[f + 1]):
                middle += 0.5 * problem.weight[s]
            if regions.state[f] >= 0:
                slope = regions.state[f] - sigmoid(middle)
        if np.isnan(share):
            most = 1.0
            for s in range(problem.ptr[f], problem.ptr[f + 1]):
                most = max(most, children[problem.parent[s]])
            share = -math.log(most)
        x[n_slots + f], x[n_slots + n_factors + f] = slope, share
        for s in range(problem.ptr[f], problem.ptr[f + 1]):
            given = edge_start[problem.edge[s]]
            x[s] = slope * problem.weight[s] if np.isnan(given) else given
    return x


@inner
def _keep(regions: Regions, x: FloatArray, edge_start: FloatArray, unit_start: FloatArray, score: FloatArray) -> None:
    """Put the parameters back where they came from, and rate the units: how much would be gained by a split?"""
    problem = regions.problem
    n_slots, n_factors = len(problem.parent), len(problem.factor)
    mu, curvature = np.zeros(len(problem.hidden)), np.zeros(n_factors)
    gradient = np.empty(len(x))
    score[:] = 0.0
    evaluate_all(regions, x, gradient, mu, curvature)
    for f in range(n_factors):
        if regions.active[f]:
            unit_start[problem.factor[f], 0] = x[n_slots + f]
            unit_start[problem.factor[f], 1] = (
                x[n_slots + n_factors + f] if regions.table[problem.ptr[f] : problem.ptr[f + 1]].any() else np.nan
            )
            for s in range(problem.ptr[f], problem.ptr[f + 1]):
                edge_start[problem.edge[s]] = x[s] if regions.table[s] else np.nan
                k = problem.parent[s]
                step = min(abs(problem.weight[s]), _SPLIT_WEIGHT)
                score[problem.hidden[k]] += mu[k] * (1.0 - mu[k]) * step * step * curvature[f]


@inner
def _descend(regions: Regions, x: FloatArray, max_steps: int, tol: float) -> float:
    """Lower the bound from x, in place; stop when several steps in a row gain less than `tol`."""
    n = len(x)
    moves, turns, rho = np.zeros((_MEMORY, n)), np.zeros((_MEMORY, n)), np.zeros(_MEMORY)
    gradient, new_gradient, alpha = np.empty(n), np.empty(n), np.empty(_MEMORY)
    value = evaluate(regions, x, gradient)
    known, quiet = 0, 0
    for _ in range(max_steps):
        direction = -gradient
        for back in range(min(known, _MEMORY)):
            m = (known - 1 - back) % _MEMORY
            alpha[m] = rho[m] * np.sum(moves[m] * direction)
            direction -= alpha[m] * turns[m]
        if known:
            m = (known - 1) % _MEMORY
            direction /= rho[m] * np.sum(turns[m] * turns[m])
        for back in range(min(known, _MEMORY) - 1, -1, -1):
            m = (known - 1 - back) % _MEMORY
            direction += (alpha[m] - rho[m] * np.sum(turns[m] * direction)) * moves[m]
        slope = np.sum(direction * gradient)
        if not slope < 0.0:
            if known == 0:
                break
            known = 0  # the memory misleads: start afresh
            continue
        step = 1.0 if known else min(1.0, 1.0 / math.sqrt(-slope))
        new_value, new_x = value, x
        for _ in range(_HALVINGS):
            new_x = x + step * direction
            new_value = evaluate(regions, new_x, new_gradient)
            if new_value <= value + 1e-4 * step * slope:
                break
            # the minimum of the parabola through what is known, within reason
            parabola = -0.5 * slope * step * step / (new_value - value - slope * step)
            step = min(max(parabola, 0.1 * step), 0.5 * step)
        if not new_value < value:
            if known == 0:
                break
            known = 0
            continue
        gain = value - new_value
        m = known % _MEMORY
        moves[m], turns[m] = new_x - x, new_gradient - gradient
        product = np.sum(moves[m] * turns[m])
        if product > 1e-12 * math.sqrt(np.sum(moves[m] ** 2) * np.sum(turns[m] ** 2)):
            rho[m] = 1.0 / product
            known += 1
        x[:], gradient[:], value = new_x, new_gradient, new_value
        quiet = quiet + 1 if gain < tol else 0
        if quiet == _PATIENCE:
            break
    return value
