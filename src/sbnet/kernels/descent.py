"""The parameters of an upper bound, by limited-memory BFGS.

SciPy's, which calls the bound from Python, is as quick where tables are large; it takes 1.5 to 1.8 times as long for
certificates, branch and bound and bounds by lines alone, and up to 2.7 times for a small network (one thread).
"""

from __future__ import annotations

import math

import numpy as np

from sbnet._types import BoolArray, FloatArray, IndexArray
from sbnet.kernels.compiling import inner, kernel
from sbnet.kernels.upper import LARGEST, Regions, log_table, mix_states, sum_table, weigh

_MEMORY = 12
_KEPT = _MEMORY + 1  # the move that comes next may not be worth keeping
_HALVINGS = 30
_PATIENCE = 3
_STEEPEST = 460.0  # the logarithm of a slope: far above all that matters, as inputs below 1e-300 count as that
_AT, _TRIAL, _SLOPE, _DIRECTION, _MOVES = range(5)
_TURNS = _MOVES + _KEPT  # a move is the way from one point to the next, a turn what it changed in the gradient


def descend(
    regions: Regions, x: FloatArray, free: IndexArray, positive: BoolArray, max_steps: int, tol: float
) -> tuple[float, FloatArray]:
    """Lower the bound from x, in place; stop when several steps in a row gain less than `tol`.

    Only the parameters in the places `free` move. Of those that are `positive`, the logarithm does. The value and the
    gradient are those at the last x, and so is what an evaluation leaves in `regions`.
    """
    gradient, v = np.zeros_like(x), np.zeros((_TURNS + _KEPT, len(free)))
    v[_AT] = x[free]
    if positive.any():
        v[_AT, positive] = np.log(v[_AT, positive])
    value = lower(regions, x, gradient, free, positive, v, np.zeros((3, _KEPT)), max_steps, tol)
    return float(value), gradient


@kernel
def lower(
    regions: Regions, x: FloatArray, gradient: FloatArray, free: IndexArray, positive: BoolArray, v: FloatArray,
    of_moves: FloatArray, max_steps: int, tol: float,
) -> float:  # fmt: skip
    """The loop. What moves is in the first row of `v`; all the rest is scratch."""
    families, lines, entries, members, nodes, eta, mu, _, _, by_state = regions
    n, size, quiet, steps, stop, claims = len(free), 0, 0, 0, False, len(entries) + len(lines)
    value, new_value, fall, step = math.inf, math.inf, 0.0, 0.0
    while True:  # at first, and after a last step that failed, it goes nowhere: the bound is compiled in one place
        for _ in range(_HALVINGS):
            for j in range(n):
                v[_TRIAL, j] = v[_AT, j] + step * v[_DIRECTION, j]
                x[free[j]] = math.exp(min(v[_TRIAL, j], _STEEPEST)) if positive[j] else v[_TRIAL, j]
            weigh(families, len(lines), entries, members, nodes, eta, x)
            new_value = 0.0
            for f in range(len(families)):
                family = families[f]
                omega = nodes[family.hidden].omega if family.hidden >= 0 else 1.0
                log_table(family, lines, entries, omega, eta, by_state, x)
                if family.hidden >= 0 and family.states > 2:
                    mix_states(family.states - 1, family.table, omega, by_state)
                new_value += sum_table(family, lines, entries, nodes, mu, by_state, gradient)
            for f in range(len(families)):  # the gradient in the logarithms of the claims, where these may move
                moves = families[f].table > 1 and abs(x[claims + f]) < LARGEST
                gradient[claims + f] = families[f].tau * families[f].entropy if moves else 0.0
            for m in range(len(members)):
                f, k = members[m].family, members[m].parent
                if abs(x[claims + f]) < LARGEST:
                    gradient[claims + f] -= families[f].claim * nodes[k].pull
            if new_value <= value + 1e-4 * step * fall:
                break
            # the minimum of the parabola through what is known, within reason
            parabola = -0.5 * fall * step * step / (new_value - value - fall * step)
            step = min(max(parabola, 0.1 * step), 0.5 * step)
        if stop:
            return new_value
        better = new_value < value
        if better:
            along = moved = turned = 0.0
            m = size % _KEPT
            for j in range(n):
                slope = gradient[free[j]] * (x[free[j]] if positive[j] else 1.0)
                move, turn = v[_TRIAL, j] - v[_AT, j], slope - v[_SLOPE, j]
                v[_MOVES + m, j], v[_TURNS + m, j], v[_AT, j], v[_SLOPE, j] = move, turn, v[_TRIAL, j], slope
                along, moved, turned = along + move * turn, moved + move * move, turned + turn * turn
            of_moves[0, m], of_moves[1, m] = along, turned
            size += 1 if along > 1e-12 * math.sqrt(moved * turned) else 0  # keep it if the bound is curved along it
            quiet = quiet + 1 if value - new_value < tol else 0
            value = new_value
        else:
            stop, size = size == 0, 0  # the memory misleads: start afresh
        fall, size = _aim(v, of_moves, size)
        steps += 1
        stop = stop or steps > max_steps or quiet == _PATIENCE or not fall < 0.0
        if stop and better:
            return value
        step = 0.0 if stop else 1.0 if size > 0 else min(1.0, 1.0 / math.sqrt(max(-fall, 1e-300)))


@inner(fast=True)
def _aim(v: FloatArray, of_moves: FloatArray, size: int) -> tuple[float, int]:
    """Minus the gradient, times the inverse curvature as far as the last moves tell (Nocedal's two loops).

    Also how fast the bound falls that way, and how many moves there are: none, if they lead upwards.
    """
    n = v.shape[1]
    while True:
        oldest, scale, fall = max(size - _MEMORY, 0), 1.0, 0.0
        for j in range(n):
            v[_DIRECTION, j] = -v[_SLOPE, j]
        for back in range(size - oldest):
            m, product = (size - 1 - back) % _KEPT, 0.0
            for j in range(n):
                product += v[_MOVES + m, j] * v[_DIRECTION, j]
            of_moves[2, m] = alpha = product / of_moves[0, m]
            for j in range(n):
                v[_DIRECTION, j] -= alpha * v[_TURNS + m, j]
            if back == 0:
                scale = of_moves[0, m] / of_moves[1, m]
        for j in range(n):
            v[_DIRECTION, j] *= scale
        for k in range(oldest, size):
            m, product = k % _KEPT, 0.0
            for j in range(n):
                product += v[_TURNS + m, j] * v[_DIRECTION, j]
            alpha = of_moves[2, m] - product / of_moves[0, m]
            for j in range(n):
                v[_DIRECTION, j] += alpha * v[_MOVES + m, j]
        for j in range(n):
            fall += v[_DIRECTION, j] * v[_SLOPE, j]
        if fall < 0.0 or size == 0:
            return fall, size
        size = 0
