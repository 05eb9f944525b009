"""Complete states of the hidden units of a problem: the inputs that follow from them, and ln P."""

from __future__ import annotations

from typing import NamedTuple

from sbnet._types import FloatArray, Problem, States
from sbnet.kernels import gates
from sbnet.kernels._compile import bare


class Complete(NamedTuple):
    """States of all hidden units, and what follows from them."""

    on: States  # by hidden unit
    z: FloatArray  # by factor: its input
    rest: FloatArray  # what z has lost to rounding: small leaks must survive large weights that come and go
    t: FloatArray  # by factor: t of its input, see `gates`


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


@bare
def state_of(problem: Problem, f: int, on: States, states: States) -> float:
    """The state of the unit of factor f, hidden or observed."""
    return float(on[problem.own[f]] if problem.own[f] >= 0 else states[problem.factor[f]])


@bare
def input_of(problem: Problem, j: int, bias: FloatArray, complete: Complete) -> float:
    """The input of hidden unit j."""
    f = problem.factor_of[j]
    return complete.z[f] + complete.rest[f] if f >= 0 else bias[problem.hidden[j]]


@bare
def set_input(problem: Problem, f: int, bias: FloatArray, complete: Complete) -> None:
    """The input of factor f."""
    x, rest = bias[problem.factor[f]], 0.0
    for s in range(problem.ptr[f], problem.ptr[f + 1]):
        if complete.on[problem.parent[s]] == 1:
            x, lost = added(x, problem.weight[s])
            rest += lost
    complete.z[f], complete.rest[f] = x, rest


@bare
def set_inputs(problem: Problem, bias: FloatArray, complete: Complete) -> None:
    """The inputs of all factors, and t of them."""
    for f in range(len(complete.z)):
        set_input(problem, f, bias, complete)
        complete.t[f] = gates.t(problem.gate[problem.factor[f]], complete.z[f] + complete.rest[f])
