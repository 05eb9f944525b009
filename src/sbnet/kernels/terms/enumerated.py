"""Few parents: the mean of t(x) as a sum over their joint states. For any gate.

A factor has a table of t(x), in the mixed radix of its parents: state s_u of parent u counts s_u times the product of
the numbers of states of the parents before it. Parents are independent under Q, so the mean is taken over one after the
other, the last first, and each leaves a smaller table.
"""

import numpy as np

from sbnet.kernels import thresholds
from sbnet.kernels.compiling import inner
from sbnet.kernels.kinds import ENUMERATED

_NONE = np.int64(-1)  # no parent is held; a plain -1 would be a type of its own, and be compiled once more


def room(problem, factors):
    """The table, and what is left of it while means are taken."""
    return 2 * factors["joint"].astype(np.int64)


@inner
def _fill(problem, factor, bias, table, at, derivative):
    """t(x), or its derivative, in every joint state."""
    slots, gate, size, s, table[at] = problem.slots, factor.gate, 1, factor.slot, bias
    while s < factor.slot_end:
        n = problem.hidden[slots[s].parent].states
        for c in range(n - 1):
            for i in range(at, at + size):
                table[i + (c + 1) * size] = table[i] + slots[s + c].weight
        size, s = n * size, s + n - 1
    for i in range(at, at + size):
        table[i] = thresholds.dt(gate, table[i]) if derivative else thresholds.t(gate, table[i])


@inner
def _mean(problem, factor, q, table, at, scratch, to, held, state, less):
    """The mean of a table, the parent whose first slot is `held` being in a state, less so much of that in state 0."""
    slots, size, s = problem.slots, int(factor.joint), factor.slot_end
    while s > factor.slot:
        n = problem.hidden[slots[s - 1].parent].states
        s, size, rest = s - n + 1, size // n, 1.0
        for c in range(n - 1):
            rest -= q[slots[s + c].column]
        if s == held:
            rest = -less if state > 0 else 1.0
        for i in range(size):
            scratch[to + i] = rest * table[at + i]
        for c in range(n - 1):
            p = q[slots[s + c].column]
            if s == held:
                p = 1.0 if state == c + 1 else 0.0
            for i in range(size if p > 0.0 else 0):
                scratch[to + i] += p * table[at + (c + 1) * size + i]
        table, at = scratch, to
    return scratch[to]


@inner
def look(f, problem, blocks, tiles, numbers, q):
    """The term of one factor at the present Q."""
    factor, at = problem.factors[f], problem.factors[f].table
    return _mean(problem, factor, q, numbers, at, numbers, at + int(factor.joint), _NONE, _NONE, 0.0)


@inner
def pull(parent, problem, blocks, tiles, numbers, q, field):
    """What children say about each state: a J less c times what the mean is there above that in state 0."""
    for k in range(parent.child, parent.child_end):
        child, factor = problem.children[k], problem.factors[problem.children[k].factor]
        a, c = blocks[factor.block].a[factor.lane], blocks[factor.block].c[factor.lane]
        at, to = factor.table, factor.table + int(factor.joint)
        for s in range(parent.states - 1 if factor.kind == ENUMERATED else 0):
            field[s] += a * problem.slots[child.slot + s].weight
            if c > 0.0:
                field[s] -= c * _mean(problem, factor, q, numbers, at, numbers, to, child.slot, s + 1, 1.0)


@inner
def push(parent, problem, blocks, tiles, numbers, old, q):
    """A parent has moved: the mean inputs of its children follow."""
    for k in range(parent.child, parent.child_end):
        child, factor = problem.children[k], problem.factors[problem.children[k].factor]
        for s in range(parent.states - 1 if factor.kind == ENUMERATED else 0):
            change = q[parent.column + s] - old[s]
            blocks[factor.block].x[factor.lane] += change * problem.slots[child.slot + s].weight


@inner
def value(problem, blocks, tiles, numbers, q, enough, fresh, more):
    """Mean inputs and terms at the present Q; nothing more to promise."""
    for f in range(len(problem.factors)):
        factor = problem.factors[f]
        if factor.kind != ENUMERATED:
            continue
        block, i = blocks[factor.block], factor.lane
        if fresh:
            _fill(problem, factor, block.h[i], numbers, factor.table, False)
        block.x[i], block.t[i] = block.h[i], look(f, problem, blocks, tiles, numbers, q)
        for s in range(factor.slot, factor.slot_end):
            block.x[i] += problem.slots[s].weight * q[problem.slots[s].column]
    return 0.0


@inner
def gradient(problem, blocks, tiles, numbers, q, by_slot, by_factor):
    """The derivatives of the terms: <t'(x)> in biases, and Q_u(s) times its mean in state s of u in weights."""
    for f in range(len(by_factor)):
        factor = problem.factors[f]
        if factor.kind != ENUMERATED:
            continue
        table, to, s = np.empty(int(factor.joint)), factor.table + int(factor.joint), factor.slot
        _fill(problem, factor, blocks[factor.block].h[factor.lane], table, 0, True)
        by_factor[f] = _mean(problem, factor, q, table, 0, numbers, to, _NONE, _NONE, 0.0)
        while s < factor.slot_end:
            end = s + problem.hidden[problem.slots[s].parent].states - 1
            for c in range(s, end):
                there = _mean(problem, factor, q, table, 0, numbers, to, s, c - s + 1, 0.0)
                by_slot[c] = q[problem.slots[c].column] * there
            s = end
