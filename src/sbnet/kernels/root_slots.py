"""What roots, and what columns, say to the columns and switches of a network: what sums over roots are made of.

Columns, and switches, have *slots*: first the columns without a switch, then those with one, and then their switches in
the same order. Each of the three is filled up to a multiple of eight, so that loops along slots, and those along states
and rows, go by lanes of eight (:mod:`sbnet.kernels.lanes`) and have no remainder.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sbnet._types import FloatArray, IndexArray
from sbnet.kernels._compile import bare
from sbnet.kernels.lanes import EIGHT, put, size, take, where, zeros
from sbnet.kernels.vector_math import exp_minus

Grid: TypeAlias = NDArray[np.float64]
Table: TypeAlias = NDArray[np.int8]

MOST = 300.0
"""The largest input, or sum of inputs of a column and its switch, that is multiplied here: e to twice that is a number
yet.
"""


class Slots(NamedTuple):
    """Which unit has each slot, -1 where none has; the edge from each switch to its column; how many slots columns
    without a switch have, and columns with one; and the number of each unit among the roots, -1 if it is none.
    """

    unit: IndexArray
    edge: IndexArray
    plain: int
    mixed: int
    roots: IndexArray
    root: IndexArray


class Edges(NamedTuple):
    """Of a model, with its weights and biases."""

    indptr: IndexArray
    parent: IndexArray
    weight: FloatArray
    bias: FloatArray


class Task(NamedTuple):
    """Rows of cells, by unit, with a weight for each; which shares of states count in slopes and in means of switches;
    and whether slopes are wanted, or only means.
    """

    rows: Table
    weight: FloatArray
    least: float
    slopes: bool


class Answer(NamedTuple):
    """What is found: ln P of each row, NaN where it was not; chances of the roots' states; means of switches, by slot;
    slopes of the weighted sum of all ln P in the weights and in the biases.
    """

    log_p: FloatArray
    share: Grid
    switch: Grid
    weight: FloatArray
    bias: FloatArray


class Above(NamedTuple):
    """What the roots say: their weights to each slot, slots by roots, filled up; e to minus their part of each input,
    slots by states, and states by slots; and the largest such part.
    """

    weight: FloatArray
    down: FloatArray
    beside: FloatArray
    most: FloatArray


class Inputs(NamedTuple):
    """What columns say: cells that are one, units by rows; inputs, and then e to minus them, slots by rows, and rows by
    slots beside the cells; of the cells that are 0, the sum of minus the inputs without roots, and of minus the weights
    from each root; what each slot adds to exponents at most; which rows are lost.
    """

    on: FloatArray
    z: FloatArray
    minus: FloatArray
    cell: FloatArray
    first: FloatArray
    root: FloatArray
    cost: FloatArray
    lost: FloatArray


class Work(NamedTuple):
    """Of each row of a group, state by state: P so far as a fraction and a power of two, or its share; eight of these
    powers; the states that count.
    """

    num: FloatArray
    den: FloatArray
    power: FloatArray
    best: FloatArray
    kept: IndexArray


class Climb(NamedTuple):
    """Slopes in the inputs of slots, rows by slots; summed over rows, states by slots; in the weights from switches;
    the chance of each state, summed over rows; and the means of switches, rows by slots.
    """

    by_row: FloatArray
    by_state: FloatArray
    strength: FloatArray
    chance: FloatArray
    switch: FloatArray


@bare
def signed_exp(x: float) -> float:
    """e^x, of either sign."""
    t = exp_minus(size(x))
    return 1.0 / t if x > 0.0 else t


@bare
def look_above(slots: Slots, edges: Edges, factor: FloatArray, above: Above) -> None:
    """What the roots say to each slot; `factor` is for e to minus their weights, roots by slots."""
    n_slots, n_roots = len(slots.unit), len(slots.roots)
    n, wide, gap = len(above.down) // n_slots, np.uint64(n_slots), len(above.weight) // n_slots
    for c in range(n_slots):
        i, rise, fall = slots.unit[c], 0.0, 0.0
        above.down[c * n] = above.beside[c] = 1.0
        for e in range(edges.indptr[max(i, 0)], edges.indptr[i + 1]):
            k, w = slots.root[edges.parent[e]], edges.weight[e]
            if k >= 0:
                rise, fall, above.weight[c * gap + k] = rise + max(w, 0.0), fall - min(w, 0.0), w
        above.most[c] = max(rise, fall)
        for k in range(n_roots):
            # Where they say too much all rows are lost, and nothing needs to be multiplied.
            factor[k * n_slots + c] = signed_exp(-above.weight[c * gap + k]) if above.most[c] <= MOST else 1.0
            _double(above.down, c * n, 1 << k, factor[k * n_slots + c])
    for k in range(n_roots):
        more, by = np.uint64(1 << k) * wide, np.uint64(k) * wide
        for t in range(np.uint64(0), more, wide):
            for c in range(np.uint64(0), wide, EIGHT):
                put(above.beside, more + t + c, take(above.beside, t + c) * take(factor, by + c))


@bare
def _double(product: FloatArray, first: int, n: int, factor: float) -> None:
    """The states in which one more root is on are those before, times its factor."""
    if n < 8:
        for t in range(n):
            product[first + n + t] = product[first + t] * factor
        return
    for t in range(np.uint64(first), np.uint64(first + n), EIGHT):
        put(product, t + np.uint64(n), take(product, t) * factor)


@bare
def absorb(slots: Slots, edges: Edges, task: Task, given: Inputs) -> None:
    """Cells that are one, and the inputs that they give."""
    wide = np.uint64(len(given.lost))
    for r in range(len(task.rows)):
        for i in range(len(edges.bias)):
            if task.rows[r, i] == 1:
                given.on[i * len(given.lost) + r] = 1.0
    for c in range(len(slots.unit)):
        i = slots.unit[c]
        if i < 0:
            continue
        for r in range(np.uint64(0), wide, EIGHT):
            x = zeros() + edges.bias[i]
            for e in range(edges.indptr[i], edges.indptr[i + 1]):
                x += edges.weight[e] * take(given.on, np.uint64(edges.parent[e]) * wide + r)
            put(given.z, np.uint64(c) * wide + r, x)


@bare
def lose(slots: Slots, task: Task, strength: FloatArray, above: Above, given: Inputs) -> None:
    """Which rows have a hole, or inputs too large to be multiplied; what the others add to exponents at most."""
    n, wide, first = len(task.rows), len(given.lost), slots.plain
    for turn in range(2):
        for c in range(slots.plain + slots.mixed):
            i, at, more = slots.unit[c], c * wide, above.most[c] + 1.0
            if i < 0:
                continue
            if c < first:
                for r in range(n):
                    _charge(task, given, turn, r, i, c, abs(given.z[at + r]) + more)
                continue
            by = at + slots.mixed * wide
            more = 2.0 * (more + abs(strength[c - first])) + above.most[c + slots.mixed] + 2.0
            for r in range(n):
                _charge(task, given, turn, r, i, c, 2.0 * abs(given.z[at + r]) + abs(given.z[by + r]) + more)


@bare
def _charge(task: Task, given: Inputs, turn: int, r: int, i: int, c: int, cost: float) -> None:
    """First to find out who cannot pay, then to see what the others pay."""
    if turn == 0:
        if not cost <= MOST or task.rows[r, i] < 0:
            given.lost[r] = 1.0
    elif given.lost[r] == 0.0:
        given.cost[c] = max(given.cost[c], cost)


@bare
def exponentiate(slots: Slots, task: Task, above: Above, given: Inputs) -> None:
    """e to minus the inputs. A slot that nobody has adds nothing: its input is infinite, and its cell is one."""
    wide, n_slots, last = len(given.lost), len(slots.unit), slots.plain + slots.mixed
    gap = np.uint64(len(above.weight) // n_slots)
    for c in range(n_slots):
        i = slots.unit[c]
        for r in range(len(task.rows)):
            off = i >= 0 and c < last and task.rows[r, i] != 1
            given.cell[r * n_slots + c] = 0.0 if off else 1.0
            if off:
                given.first[r] -= given.z[c * wide + r]
                at, by = np.uint64(r) * gap, np.uint64(c) * gap
                for k in range(np.uint64(0), gap, EIGHT):
                    put(given.root, at + k, take(given.root, at + k) - take(above.weight, by + k))
        if i < 0:
            continue
        for r in range(np.uint64(c * wide), np.uint64((c + 1) * wide), EIGHT):
            x = take(given.z, r)
            t = exp_minus(where(size(x) - MOST, MOST, size(x)))  # where it is more the row is lost
            put(given.z, r, where(x, t, 1.0 / t))
        for r in range(len(task.rows)):
            given.minus[r * n_slots + c] = given.z[c * wide + r]
