"""Slopes of sums over roots, from the states that count in each row: see :mod:`sbnet.kernels.roots`."""

from __future__ import annotations

import numpy as np

from sbnet._types import FloatArray
from sbnet.kernels._compile import bare
from sbnet.kernels.lanes import EIGHT, put, take, total, zeros
from sbnet.kernels.root_slots import Above, Answer, Climb, Edges, Inputs, Slots, Task, Work, signed_exp


@bare
def _keep(work: Work, of: int, least: float) -> tuple[int, float]:
    """The states that count, how many they are, and their share."""
    n, share = 0, 0.0
    for s in range(len(work.kept)):
        if work.num[of + s] > least:
            work.kept[n] = s
            n += 1
            share += work.num[of + s]
    return n, share


@bare
def _lean(slots: Slots, above: Above, given: Inputs, r: int, s: int, share: float, weight: float, climb: Climb) -> None:
    """One state's part of the slopes in the inputs of columns without switches: its share times S - sigmoid(x)."""
    n_slots = len(slots.unit)
    at, by = np.uint64(r * n_slots), np.uint64(s * n_slots)
    for c in range(np.uint64(0), np.uint64(slots.plain), EIGHT):
        p = share / (1.0 + take(given.minus, at + c) * take(above.beside, by + c))
        g = share * take(given.cell, at + c) - p
        put(climb.by_row, at + c, take(climb.by_row, at + c) + g)
        put(climb.by_state, by + c, take(climb.by_state, by + c) + weight * g)


@bare
def _lean_mixed(
    slots: Slots, above: Above, given: Inputs, factor: FloatArray, r: int, s: int, share: float, weight: float,
    climb: Climb,
) -> None:  # fmt: skip
    """Those in the inputs of columns and their switches, and in the weights between them; and the means of switches.

    With P = B0 / (1 + E0) of the cell if its switch is off, B1 / (1 + E1) if it is on, and odds V against that, one
    division does for all. `factor` is e to minus the weights from switches.
    """
    n_slots, gap = len(slots.unit), np.uint64(slots.mixed)
    at, by = np.uint64(r * n_slots + slots.plain), np.uint64(s * n_slots + slots.plain)
    for c in range(np.uint64(0), gap, EIGHT):
        e0 = take(given.minus, at + c) * take(above.beside, by + c)
        odds = take(given.minus, at + gap + c) * take(above.beside, by + gap + c)
        e1, on = e0 * take(factor, c), take(given.cell, at + c)
        u0, u1, v, off = 1.0 + e0, 1.0 + e1, 1.0 + odds, 1.0 - on
        n1 = (on + off * e1) * u0
        t, uu = n1 + odds * (on + off * e0) * u1, u0 * u1
        tv = t * v
        one = 1.0 / (tv * uu)
        chance = n1 * v * uu * one  # of the switch, given the column
        raised = share * chance * (on - tv * u0 * one)
        g = raised + share * (1.0 - chance) * (on - tv * u1 * one)
        h = share * (chance - t * uu * one)
        put(climb.by_row, at + c, take(climb.by_row, at + c) + g)
        put(climb.by_row, at + gap + c, take(climb.by_row, at + gap + c) + h)
        put(climb.by_state, by + c, take(climb.by_state, by + c) + weight * g)
        put(climb.by_state, by + gap + c, take(climb.by_state, by + gap + c) + weight * h)
        put(climb.strength, c, take(climb.strength, c) + weight * raised)
        put(climb.switch, at + gap + c, take(climb.switch, at + gap + c) + share * chance)


@bare
def differentiate(
    slots: Slots, above: Above, given: Inputs, task: Task, factor: FloatArray, r: int, of: int, work: Work,
    climb: Climb,
) -> None:  # fmt: skip
    """The slopes of a row, and the means of its switches, by the states that count."""
    weight = task.weight[r]
    for s in range(np.uint64(0), np.uint64(len(climb.chance)), EIGHT):
        put(climb.chance, s, take(climb.chance, s) + weight * take(work.num, np.uint64(of) + s))
    n, every = _keep(work, of, task.least)
    for q in range(n):
        s = work.kept[q]
        share = work.num[of + s] / every
        if task.slopes:
            _lean(slots, above, given, r, s, share, weight, climb)
        if slots.mixed:
            _lean_mixed(slots, above, given, factor, r, s, share, weight, climb)


@bare
def gather(slots: Slots, edges: Edges, task: Task, given: Inputs, climb: Climb, answer: Answer) -> None:
    """Slopes in weights and biases, from those in the inputs of slots."""
    wide, n_slots, every, z = np.uint64(len(given.lost)), len(slots.unit), 0.0, given.z
    for c in range(n_slots):
        for r in range(len(given.lost)):  # which are more than there are rows
            row = r < len(task.rows)
            z[c * len(given.lost) + r] = task.weight[r] * climb.by_row[r * n_slots + c] if row else 0.0
    for r in range(len(task.rows)):
        every += 0.0 if given.lost[r] > 0.0 else task.weight[r]
    for c in range(n_slots):
        i, at = slots.unit[c], np.uint64(c) * wide
        if i < 0:
            continue
        own = zeros()
        for r in range(np.uint64(0), wide, EIGHT):
            own += take(z, at + r)
        answer.bias[i] = total(own)
        for e in range(edges.indptr[i], edges.indptr[i + 1]):
            if slots.root[edges.parent[e]] >= 0:
                continue
            slope, by = zeros(), np.uint64(edges.parent[e]) * wide
            for r in range(np.uint64(0), wide, EIGHT):
                slope += take(z, at + r) * take(given.on, by + r)
            answer.weight[e] = total(slope)
    for c in range(len(slots.edge)):
        answer.weight[slots.edge[c]] = climb.strength[c]
    for k in range(len(slots.roots) - 1, -1, -1):
        _gather_root(slots, edges, climb, k, every, answer)


@bare
def _gather_root(slots: Slots, edges: Edges, climb: Climb, k: int, every: float, answer: Answer) -> None:
    """The slopes of a root, of which those with higher numbers have been summed over: states with it on go to those
    with it off.
    """
    i, n_slots, half = slots.roots[k], len(slots.unit), 1 << k
    own = 0.0
    for s in range(half):
        own += climb.chance[half + s]
        climb.chance[s] += climb.chance[half + s]
    answer.bias[i] = own - every / (1.0 + signed_exp(-edges.bias[i]))
    wide = np.uint64(n_slots)
    for c in range(np.uint64(0), wide, EIGHT):
        slope = zeros()
        for s in range(c, c + np.uint64(half) * wide, wide):
            more = take(climb.by_state, s + np.uint64(half) * wide)
            slope += more
            put(climb.by_state, s, take(climb.by_state, s) + more)
        put(climb.strength, c, slope)
    for c in range(n_slots):
        for e in range(edges.indptr[max(slots.unit[c], 0)], edges.indptr[slots.unit[c] + 1]):
            if slots.root[edges.parent[e]] == k:
                answer.weight[e] = climb.strength[c]
