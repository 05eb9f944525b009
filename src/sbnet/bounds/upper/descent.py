"""Minimisation by limited-memory BFGS, for few parameters and few steps.

SciPy's L-BFGS-B takes about as many evaluations, for bounds that were at most 4e-4 nats worse, some better. With one
thread for linear algebra it is as quick; with two, the default on a busy machine of two cores, it took 2 to 8 times as
long on findings of `make_clinic()`.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from sbnet._types import FloatArray

_MEMORY = 12
_HALVINGS = 30
_PATIENCE = 3


def descend(evaluate: Callable[[FloatArray, FloatArray], float], x: FloatArray, max_steps: int, tol: float) -> float:
    """Lower a function from x, in place; stop when several steps in a row gain less than `tol`.

    `evaluate` gives the value at its first argument, and puts the gradient into its second.
    """
    gradient, new_gradient = np.empty_like(x), np.empty_like(x)
    memory = _Memory(len(x))
    value, quiet = evaluate(x, gradient), 0
    for _ in range(max_steps):
        direction = memory.direction(gradient)
        slope = float(direction @ gradient)
        new_x, new_value = x, value
        if slope < 0.0:
            step = 1.0 if memory.size else min(1.0, 1.0 / math.sqrt(-slope))
            for _ in range(_HALVINGS):
                new_x = x + step * direction
                new_value = evaluate(new_x, new_gradient)
                if new_value <= value + 1e-4 * step * slope:
                    break
                # the minimum of the parabola through what is known, within reason
                parabola = -0.5 * slope * step * step / (new_value - value - slope * step)
                step = min(max(parabola, 0.1 * step), 0.5 * step)
        if not new_value < value:
            if memory.size == 0:
                break
            memory.size = 0  # it misleads: start afresh
            continue
        memory.add(new_x - x, new_gradient - gradient)
        quiet = quiet + 1 if value - new_value < tol else 0
        value, x[:] = new_value, new_x
        gradient, new_gradient = new_gradient, gradient
        if quiet == _PATIENCE:
            break
    return value


class _Memory:
    """The last moves, oldest first, how they turned the gradient, and the products of these with one another."""

    def __init__(self, n: int) -> None:
        self.size = 0
        self.moves, self.turns = np.empty((_MEMORY, n)), np.empty((_MEMORY, n))

    def add(self, move: FloatArray, turn: FloatArray) -> None:
        """Remember a move, if the function is curved along it."""
        if not move @ turn > 1e-12 * math.sqrt((move @ move) * (turn @ turn)):
            return
        if self.size == _MEMORY:
            self.moves[:-1], self.turns[:-1] = self.moves[1:], self.turns[1:]
            self.size -= 1
        self.moves[self.size], self.turns[self.size] = move, turn
        self.size += 1

    def direction(self, gradient: FloatArray) -> FloatArray:
        """Minus the gradient, times the inverse curvature as far as the memory tells (Nocedal's two loops)."""
        direction = -gradient
        if not self.size:
            return direction
        moves, turns = self.moves[: self.size], self.turns[: self.size]
        rho = 1.0 / np.einsum("mi,mi->m", moves, turns)
        alpha = np.empty(self.size)
        for m in range(self.size - 1, -1, -1):
            alpha[m] = rho[m] * (moves[m] @ direction)
            direction -= alpha[m] * turns[m]
        direction /= rho[-1] * (turns[-1] @ turns[-1])
        for m in range(self.size):
            direction += (alpha[m] - rho[m] * (turns[m] @ direction)) * moves[m]
        return direction
