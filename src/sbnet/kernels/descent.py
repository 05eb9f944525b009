"""The parameters of an upper bound, by limited-memory BFGS, compiled for this one function.

SciPy's, with which :mod:`sbnet.bounds.upper.descent` serves other bounds, took 1.8 times as long for small networks and
in branch and bound, where thousands of short descents are made, and as long for networks of the paper's size.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from sbnet._types import BoolArray, FloatArray, IndexArray, Problem
from sbnet.kernels._compile import bare, entry, vector
from sbnet.kernels.arrays import load
from sbnet.kernels.upper import Regions, evaluated

MEMORY = 12
_HALVINGS = 30
_PATIENCE = 3
_STEEPEST = 460.0  # the logarithm of a slope: far above all that matters, as inputs below 1e-300 count as that


class Search(NamedTuple):
    """What moves: the free places among the parameters. Of a slope that is positive, the logarithm is what moves."""

    free: IndexArray
    positive: BoolArray
    x: FloatArray  # all parameters
    gradient: FloatArray  # in all of them


class Scratch(NamedTuple):
    """Numbers for each free place, and the last moves and how they turned the gradient, a row for each."""

    trial: FloatArray
    direction: FloatArray
    slope: FloatArray
    new_slope: FloatArray
    moves: FloatArray
    turns: FloatArray
    curvature: FloatArray  # of each move with its turn
    alpha: FloatArray


@entry
def lower(
    problem: Problem,
    regions: Regions,
    search: Search,
    at: FloatArray,
    scratch: Scratch,
    max_steps: int,
    tol: float,
) -> float:
    """Lower the bound from `at`, in place; stop when several steps in a row gain less than `tol`."""
    trial, direction, slope, new_slope = scratch.trial, scratch.direction, scratch.slope, scratch.new_slope
    n, size, oldest, quiet = len(at), 0, 0, 0
    value = _value(problem, regions, search, at, slope)
    for _ in range(max_steps):
        _aim(scratch, size, oldest)
        fall = _product(direction, slope)
        new_value = value
        if fall < 0.0:
            step = 1.0 if size > 0 else min(1.0, 1.0 / math.sqrt(-fall))
            for _ in range(_HALVINGS):
                for j in range(n):
                    trial[j] = load(at, j) + step * load(direction, j)
                new_value = _value(problem, regions, search, trial, new_slope)
                if new_value <= value + 1e-4 * step * fall:
                    break
                # the minimum of the parabola through what is known, within reason
                parabola = -0.5 * fall * step * step / (new_value - value - fall * step)
                step = min(max(parabola, 0.1 * step), 0.5 * step)
        if not new_value < value:
            if size == 0:
                break
            size = oldest = 0  # the memory misleads: start afresh
            continue
        size, oldest = _remember(scratch, at, size, oldest)
        quiet = quiet + 1 if value - new_value < tol else 0
        value = new_value
        for j in range(n):
            at[j], slope[j] = load(trial, j), load(new_slope, j)
        if quiet == _PATIENCE:
            break
    return _value(problem, regions, search, at, slope)


_evaluate = bare(evaluated)


@bare
def _value(problem: Problem, regions: Regions, search: Search, at: FloatArray, slope: FloatArray) -> float:
    """The bound, and its slopes in what moves."""
    free, positive, x, gradient = search.free, search.positive, search.x, search.gradient
    for j in range(len(at)):
        x[load(free, j)] = math.exp(min(load(at, j), _STEEPEST)) if load(positive, j) else load(at, j)
    value = _evaluate(problem, regions, x, gradient)
    for j in range(len(at)):
        slope[j] = load(gradient, load(free, j))
        if load(positive, j):
            slope[j] *= load(x, load(free, j))
    return value


@vector
def _product(a: FloatArray, b: FloatArray) -> float:
    total = 0.0
    for j in range(len(a)):
        total += a[j] * b[j]
    return total


@vector
def _add(a: FloatArray, factor: float, b: FloatArray) -> None:
    for j in range(len(a)):
        a[j] += factor * b[j]


@bare
def _aim(scratch: Scratch, size: int, oldest: int) -> None:
    """Minus the gradient, times the inverse curvature as far as the memory tells (Nocedal's two loops)."""
    direction, slope, curvature, alpha = scratch.direction, scratch.slope, scratch.curvature, scratch.alpha
    for j in range(len(direction)):
        direction[j] = -load(slope, j)
    if size == 0:
        return
    for k in range(size):
        m = (oldest + size - 1 - k) % MEMORY
        alpha[m] = _product(scratch.moves[m], direction) / load(curvature, m)
        _add(direction, -load(alpha, m), scratch.turns[m])
    last = scratch.turns[(oldest + size - 1) % MEMORY]
    scale = load(curvature, (oldest + size - 1) % MEMORY) / _product(last, last)
    for j in range(len(direction)):
        direction[j] *= scale
    for k in range(size):
        m = (oldest + k) % MEMORY
        back = _product(scratch.turns[m], direction) / load(curvature, m)
        _add(direction, load(alpha, m) - back, scratch.moves[m])


@bare
def _remember(scratch: Scratch, at: FloatArray, size: int, oldest: int) -> tuple[int, int]:
    """Keep the move from `at` to the trial, if the function is curved along it; size and start of the memory."""
    m = (oldest + size) % MEMORY
    full = size == MEMORY
    move, turn = scratch.moves[m], scratch.turns[m]
    along = steps = turned = 0.0
    for j in range(len(at)):
        a, b = load(scratch.trial, j) - load(at, j), load(scratch.new_slope, j) - load(scratch.slope, j)
        along, steps, turned = along + a * b, steps + a * a, turned + b * b
    if not along > 1e-12 * math.sqrt(steps * turned):
        return size, oldest
    for j in range(len(at)):
        move[j], turn[j] = load(scratch.trial, j) - load(at, j), load(scratch.new_slope, j) - load(scratch.slope, j)
    scratch.curvature[m] = along
    return (size, (oldest + 1) % MEMORY) if full else (size + 1, oldest)
