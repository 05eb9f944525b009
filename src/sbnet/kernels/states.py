"""Sums without loss of digits, and ln P of what is observed above all that is hidden."""

from __future__ import annotations

from sbnet._types import FloatArray, Problem, States
from sbnet.kernels import gates
from sbnet.kernels._compile import bare


@bare
def added(x: float, y: float) -> tuple[float, float]:
    """x + y, and what its rounding has lost (Knuth's two-sum)."""
    total = x + y
    back = total - x
    return total, (x - (total - back)) + (y - back)


@bare
def known_units(problem: Problem, states: States, bias: FloatArray) -> float:
    """ln P of the observed units whose parents are all observed."""
    total = 0.0
    for i in problem.known:
        if states[i] >= 0:
            total += gates.log_p(problem.gate[i], states[i], bias[i])
    return total
