"""The cheap term of a noisy-OR variable (Jaakkola & Jordan 1999): t is convex, so for shares r_u that sum to one

    t(h + sum_u J_u) <= sum_u r_u t(h + J_u / r_u) ,

whose mean is t(h) + sum_u sum_s Q_u(s) gain_u(s), gain_u(s) = r_u [t(h + J_s / r_u) - t(h)]: linear in Q. Shares that
sum to less than one leave the rest to t(h). The best ones have no closed form; a fixed point, with a look whether it
helped, finds good ones. The table of a factor: a share for each parent, as many new ones, a gain for each slot.
"""

from __future__ import annotations

from typing import Any

from sbnet.kernels.codes import NOISY_OR
from sbnet.kernels.compiling import inner
from sbnet.kernels.kinds import LINEAR
from sbnet.kernels.structs import Problem
from sbnet.kernels.thresholds import dt, rarity

_STEPS = 3  # of the fixed point, after each sweep
_LEAST = 1e-12  # share


SERVES = (LINEAR,)


def room(problem: Problem, factors: Any) -> Any:
    """Shares, new shares, gains."""
    return 2 * factors["parents"] + factors["slot_end"] - factors["slot"]


@inner
def _better(problem, factor, h, q, share, new):
    """A step of the fixed point: r_u in proportion to how much the term falls with it."""
    slots, total, s = problem.slots, 0.0, factor.slot
    for u in range(len(share)):
        new[u], n = 0.0, problem.hidden[slots[s].parent].states - 1
        for c in range(s, s + n):
            y = slots[c].weight / share[u]
            new[u] += q[slots[c].column] * max(rarity(h) - rarity(h + y) + y * dt(NOISY_OR, h + y), 0.0)
        new[u] = max(share[u] * new[u], _LEAST)
        total, s = total + new[u], s + n
    for u in range(len(share)):
        new[u] = max(new[u] / total, _LEAST) / (1.0 + len(share) * _LEAST)


@inner
def _gains(problem, factor, h, q, share, gain):
    """The gain of each slot with these shares, and the term."""
    slots, total, s = problem.slots, rarity(h), factor.slot
    for u in range(len(share)):
        n = problem.hidden[slots[s].parent].states - 1
        for c in range(s, s + n):
            gain[c - factor.slot] = share[u] * (rarity(h + slots[c].weight / share[u]) - rarity(h))
            total += q[slots[c].column] * gain[c - factor.slot]
        s += n
    return total


@inner
def value(problem, blocks, tiles, numbers, q, enough, fresh, more):
    """New shares, and the terms with them; nothing more to promise."""
    for f in range(len(problem.factors)):
        factor = problem.factors[f]
        if factor.kind != LINEAR:
            continue
        block, i, at, n = blocks[factor.block], factor.lane, factor.table, factor.parents
        share, new, gain = numbers[at : at + n], numbers[at + n : at + 2 * n], numbers[at + 2 * n :]
        block.x[i] = block.h[i]
        for s in range(factor.slot, factor.slot_end):
            block.x[i] += problem.slots[s].weight * q[problem.slots[s].column]
        for u in range(n if fresh else 0):
            share[u] = 1.0 / n
        block.t[i] = _gains(problem, factor, block.h[i], q, share, gain)
        for _ in range(_STEPS):
            _better(problem, factor, block.h[i], q, share, new)
            term = _gains(problem, factor, block.h[i], q, new, gain)
            if not term < block.t[i]:
                block.t[i] = _gains(problem, factor, block.h[i], q, share, gain)
                break
            block.t[i] = term
            share[:] = new
    return 0.0


@inner
def look(f, problem, blocks, tiles, numbers, q):
    """The term of one factor, which follows Q."""
    return float(blocks[problem.factors[f].block].t[problem.factors[f].lane])


@inner
def pull(parent, problem, blocks, tiles, numbers, q, field):
    """What children say about each state: a J less c times the gain."""
    for k in range(parent.child, parent.child_end):
        child = problem.children[k]
        factor = problem.factors[child.factor]
        if factor.kind == LINEAR:
            a, c = blocks[factor.block].a[factor.lane], blocks[factor.block].c[factor.lane]
            gain = factor.table + 2 * factor.parents - factor.slot
            for s in range(parent.states - 1):
                field[s] += a * problem.slots[child.slot + s].weight - c * numbers[gain + child.slot + s]


@inner
def push(parent, problem, blocks, tiles, numbers, old, q):
    """A parent has moved: mean inputs and terms of its children follow."""
    for k in range(parent.child, parent.child_end):
        child = problem.children[k]
        factor = problem.factors[child.factor]
        if factor.kind == LINEAR:
            block, gain = blocks[factor.block], factor.table + 2 * factor.parents - factor.slot
            for s in range(parent.states - 1):
                change = q[parent.column + s] - old[s]
                block.x[factor.lane] += change * problem.slots[child.slot + s].weight
                block.t[factor.lane] += change * numbers[gain + child.slot + s]


@inner
def gradient(problem, blocks, tiles, numbers, q, by_slot, by_factor):
    """The derivatives of the terms: Q_u(s) t'(h + J_s / r_u) in weights; t'(h) and what shares add in the leak."""
    slots = problem.slots
    for f in range(len(by_factor)):
        factor = problem.factors[f]
        if factor.kind != LINEAR:
            continue
        h, s = blocks[factor.block].h[factor.lane], factor.slot
        flat = dt(NOISY_OR, h)
        by_factor[f] = flat
        for u in range(factor.parents):
            share, n = numbers[factor.table + u], problem.hidden[slots[s].parent].states - 1
            for c in range(s, s + n):
                p, slope = q[slots[c].column], dt(NOISY_OR, h + slots[c].weight / share)
                by_slot[c] = p * slope
                by_factor[f] += share * p * (slope - flat)
            s += n
