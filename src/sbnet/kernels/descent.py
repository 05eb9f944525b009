"""The parameters of an upper bound, by limited-memory BFGS.

SciPy's, which calls the bound from Python, takes 1.8 times as long for a certificate of a small network, and 1.9 times
in branch and bound (one thread for linear algebra); for networks of the paper's size it is as quick.
"""

from __future__ import annotations

import math

import numpy as np

from sbnet._types import BoolArray, FloatArray, IndexArray
from sbnet.kernels.compiling import inner, kernel
from sbnet.kernels.upper import Regions, differentiate, sum_tables, weigh

_MEMORY = 12
_ROWS = _MEMORY + 1  # the move that comes next may not be worth keeping
_HALVINGS = 30
_PATIENCE = 3
_STEEPEST = 460.0  # the logarithm of a slope: far above all that matters, as inputs below 1e-300 count as that


def descend(
    regions: Regions, x: FloatArray, free: IndexArray, positive: BoolArray, max_steps: int, tol: float
) -> tuple[float, FloatArray]:
    """Lower the bound from x, in place; stop when several steps in a row gain less than `tol`.

    Only the parameters in the places `free` move. Of those that are `positive`, the logarithm does. The value and the
    gradient are those at the last x, and so is what an evaluation leaves in `regions`.
    """
    gradient, vectors, memory = np.zeros_like(x), np.zeros((5, len(free))), np.zeros((2, _ROWS, len(free)))
    vectors[0] = np.where(positive, np.log(np.where(positive, x[free], 1.0)), x[free])
    value = lower(regions, x, gradient, free, positive, vectors, memory, np.zeros((2, _ROWS)), max_steps, tol)
    return float(value), gradient


@kernel
def lower(
    regions: Regions, x: FloatArray, gradient: FloatArray, free: IndexArray, positive: BoolArray, vectors: FloatArray,
    memory: FloatArray, factors: FloatArray, max_steps: int, tol: float,
) -> float:  # fmt: skip
    """The loop. What moves is in the first of the `vectors`; all the rest is scratch."""
    families, lines, entries, nodes, eta, mu, _, _, by_state = regions
    at, trial, slope, new_slope, direction = vectors[0], vectors[1], vectors[2], vectors[3], vectors[4]
    moves, turns, along, alpha = memory[0], memory[1], factors[0], factors[1]
    none = np.int64(0)  # a plain 0 has a type of its own, and what is called with it would be compiled twice
    n, size, quiet, steps, stop = len(free), none, 0, 0, False
    value, new_value, fall, step = math.inf, math.inf, 0.0, 0.0
    while True:  # at first, and after a last step that failed, it goes nowhere: the bound is compiled in one place
        for _ in range(_HALVINGS):
            for j in range(n):
                trial[j] = at[j] + step * direction[j]
                x[free[j]] = math.exp(min(trial[j], _STEEPEST)) if positive[j] else trial[j]
            weigh(families, lines, entries, nodes, eta, x)
            new_value = sum_tables(families, lines, entries, nodes, eta, mu, by_state, x, gradient)
            differentiate(families, lines, entries, nodes, mu, x, gradient)
            if new_value <= value + 1e-4 * step * fall:
                break
            # the minimum of the parabola through what is known, within reason
            parabola = -0.5 * fall * step * step / (new_value - value - fall * step)
            step = min(max(parabola, 0.1 * step), 0.5 * step)
        if stop:
            return new_value
        better = new_value < value
        if better:
            for j in range(n):
                new_slope[j] = gradient[free[j]] * (x[free[j]] if positive[j] else 1.0)
            size = _remember(at, trial, slope, new_slope, moves, turns, along, size) if steps > 0 else none
            quiet = quiet + 1 if value - new_value < tol else 0
            value = new_value
            for j in range(n):
                at[j], slope[j] = trial[j], new_slope[j]
        else:
            stop, size = size == 0, none  # the memory misleads: start afresh
        fall = _aim(direction, slope, moves, turns, along, alpha, size)
        if not fall < 0.0:
            fall, size = -_product(slope, slope), none
            for j in range(n):
                direction[j] = -slope[j]
        steps += 1
        stop = stop or steps > max_steps or quiet == _PATIENCE or not fall < 0.0
        if stop and better:
            return value
        step = 1.0 if size > 0 else min(1.0, 1.0 / math.sqrt(max(-fall, 1e-300)))
        if stop:
            step = 0.0


@inner
def _remember(
    at: FloatArray, trial: FloatArray, slope: FloatArray, new_slope: FloatArray, moves: FloatArray, turns: FloatArray,
    along: FloatArray, size: int,
) -> int:  # fmt: skip
    """Keep a move and how it turned the gradient, if the function is curved along it; how many there were so far."""
    m = size % _ROWS
    move, turn = moves[m], turns[m]
    for j in range(len(at)):
        move[j], turn[j] = trial[j] - at[j], new_slope[j] - slope[j]
    along[m] = _product(move, turn)
    return size + 1 if along[m] > 1e-12 * math.sqrt(_product(move, move) * _product(turn, turn)) else size


@inner(fast=True)
def _product(a: FloatArray, b: FloatArray) -> float:
    total = 0.0
    for j in range(len(a)):
        total += a[j] * b[j]
    return total


@inner(fast=True)
def _add(a: FloatArray, factor: float, b: FloatArray) -> None:
    for j in range(len(a)):
        a[j] += factor * b[j]


@inner
def _aim(
    direction: FloatArray, slope: FloatArray, moves: FloatArray, turns: FloatArray, along: FloatArray,
    alpha: FloatArray, size: int,
) -> float:  # fmt: skip
    """Minus the gradient, times the inverse curvature as far as the last moves tell (Nocedal's two loops).

    Also how fast the bound falls that way.
    """
    scale, oldest = 1.0, max(size - _MEMORY, 0)
    for j in range(len(direction)):
        direction[j] = -slope[j]
    for k in range(size - 1, oldest - 1, -1):
        m = k % _ROWS
        alpha[m] = _product(moves[m], direction) / along[m]
        _add(direction, -alpha[m], turns[m])
        if k == size - 1:
            scale = along[m] / _product(turns[m], turns[m])
    for j in range(len(direction)):
        direction[j] *= scale
    for k in range(oldest, size):
        m = k % _ROWS
        _add(direction, alpha[m] - _product(turns[m], direction) / along[m], moves[m])
    return _product(direction, slope)
