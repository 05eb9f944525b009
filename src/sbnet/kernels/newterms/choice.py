"""Which term serves a factor: what was asked for, or a sum over the states of its parents where they are few."""

from __future__ import annotations

import math

import numpy as np

from sbnet._types import Bound, FloatArray, IndexArray, Model, States
from sbnet.kernels.compiling import inner, kernel
from sbnet.kernels.gates import NOISY_OR
from sbnet.kernels.kinds import ENUMERATED, EXACT, JENSEN, LINEAR, QUADRATIC, SERIES, XI
from sbnet.kernels.newterms import xi_alone
from sbnet.kernels.newterms.frequencies import MAX_NODES, MAX_NUMBERS, nodes
from sbnet.kernels.reduction import reduced
from sbnet.kernels.structs import Problem


def kind_for(which: Bound, gate: int, joint: float) -> int:
    """The kind of a factor whose parents have so many joint states. What is cheap for one gate is not for the other."""
    if joint <= 2.0**which.enumerate_up_to:
        return ENUMERATED
    if gate == NOISY_OR:
        return LINEAR if which.log_term == QUADRATIC or which.log_term == JENSEN else SERIES
    return which.log_term


_kind_for = inner(kind_for)


@inner
def choose(problem: Problem, which: Bound, kinds: IndexArray) -> int:
    """Give each factor its kind, or that of its threshold in `kinds` if there are any; which occur, one bit each."""
    factors, found = problem.factors, 0
    for f in range(len(factors)):
        factor = factors[f]
        factor.kind = _kind_for(which, factor.gate, factor.joint)
        if len(kinds) > 0 and kinds[factor.threshold] >= 0:
            factor.kind = kinds[factor.threshold]
        found |= 1 << factor.kind
    return found


@kernel
def other_kinds(model: Model, which: Bound, states: States, bias: FloatArray, means: FloatArray) -> IndexArray:
    """By threshold, the kind that takes the place of the exact term where that would need too many frequencies; or -1.

    It is the tighter of the paper's term and the quadratic one at these means.
    """
    problem, kinds, taken = reduced(model, states), np.full(model.threshold[-1], -1), 0
    hidden, slots, q = problem.hidden, problem.slots, np.zeros(problem.n_columns)
    choose(problem, which, kinds[:0])
    for j in range(len(hidden)):
        for k in range(hidden[j].column, hidden[j].column_end):
            q[k] = means[model.threshold[hidden[j].variable] + k - hidden[j].column]
    for f in range(len(problem.factors)):
        factor = problem.factors[f]
        if factor.kind != EXACT:
            continue
        low = high = mean = bias[factor.threshold]
        variance = largest = squares = 0.0
        s = factor.slot
        while s < factor.slot_end:
            least = most = first = second = 0.0
            for _ in range(hidden[slots[s].parent].states - 1):
                w, p = slots[s].weight, q[slots[s].column]
                least, most, first, second = min(least, w), max(most, w), first + p * w, second + p * w * w
                s += 1
            low, high, mean, variance = low + least, high + most, mean + first, variance + second - first * first
            largest, squares = max(largest, most - least), squares + (most - least) * (most - least)
        n = nodes(low, high, mean, variance, largest, squares)
        more = 6 * (factor.slot_end - factor.slot) * max(n, 32)
        if n <= MAX_NODES and taken + more <= MAX_NUMBERS:
            taken += more
            continue
        second = mean * mean + max(variance, 0.0)
        c = math.sqrt(second)  # the best parabola touches there
        parabola = 0.5 * mean + 0.5 * c + math.log1p(math.exp(-c))
        paper = xi_alone.best(hidden, slots, factor, q, bias[factor.threshold], math.nan)[1]
        kinds[factor.threshold] = XI if paper <= parabola else QUADRATIC
    return kinds
