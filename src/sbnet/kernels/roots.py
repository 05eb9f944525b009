"""Networks whose hidden units are a few roots, and switches of columns: likelihoods as sums over the roots' states.

Given the roots, and with all columns observed, a column and its switch depend on nothing else that is hidden. So ln P
of a row is the logarithm of a sum over the states of the roots, of products over columns. Inputs are the sum of what
columns and what roots say, so their exponentials are products, and a state costs a few multiplications for each column.
A cell that is 0 has the probability e^-x / (1 + e^-x), one that is 1 has 1 / (1 + e^-x): exponents of numerators are
linear in the roots, and are summed up at once, so that only denominators are left to multiply. No logarithm is taken
but that of the sum: products are kept as a number and a power of two.

Slopes are sums over states, too, but only over those that count: of 256, few have a share in a row worth speaking of.

Columns, and switches, have *slots*: first the columns without a switch, then those with one, and then their switches in
the same order. Each of the three is filled up to a multiple of eight, so that loops along slots, and those along states
and rows, go by lanes of eight (:mod:`sbnet.kernels.lanes`) and have no remainder.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sbnet._types import FloatArray, IndexArray
from sbnet.kernels._compile import bare, kernel
from sbnet.kernels.arrays import real_numbers, whole_numbers
from sbnet.kernels.lanes import EIGHT, nearest, power_of_two, put, size, take, total, where, zeros
from sbnet.kernels.vector_math import LN2, LN2_HIGH, LN2_LOW, LOG2E, cosh_sinh, exp_minus, log, split

Grid: TypeAlias = NDArray[np.float64]
Table: TypeAlias = NDArray[np.int8]

MOST = 300.0
"""The largest input, or sum of inputs of a column and its switch, that is multiplied here: e to twice that is a number
yet.
"""
_GROUP = 8
"""Rows that are gone through together."""
_NEVER = -1e6
"""The power of two of a state that does not exist."""


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


class _Above(NamedTuple):
    """What the roots say: their weights to each slot, slots by roots, filled up; e to minus their part of each input,
    slots by states, and states by slots; and the largest such part.
    """

    weight: FloatArray
    down: FloatArray
    beside: FloatArray
    most: FloatArray


class _Inputs(NamedTuple):
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


class _Work(NamedTuple):
    """Of each row of a group, state by state: P so far as a fraction and a power of two, or its share; eight of these
    powers; the states that count.
    """

    num: FloatArray
    den: FloatArray
    power: FloatArray
    best: FloatArray
    kept: IndexArray


class _Climb(NamedTuple):
    """Slopes in the inputs of slots, rows by slots; summed over rows, states by slots; in the weights from switches;
    the chance of each state, summed over rows; and the means of switches, rows by slots.
    """

    by_row: FloatArray
    by_state: FloatArray
    strength: FloatArray
    chance: FloatArray
    switch: FloatArray


@bare
def _exp(x: float) -> float:
    t = exp_minus(size(x))
    return 1.0 / t if x > 0.0 else t


@bare
def _look_above(slots: Slots, edges: Edges, factor: FloatArray, above: _Above) -> None:
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
            factor[k * n_slots + c] = _exp(-above.weight[c * gap + k]) if above.most[c] <= MOST else 1.0
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
def _absorb(slots: Slots, edges: Edges, task: Task, given: _Inputs) -> None:
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
def _lose(slots: Slots, task: Task, strength: FloatArray, above: _Above, given: _Inputs) -> None:
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
def _charge(task: Task, given: _Inputs, turn: int, r: int, i: int, c: int, cost: float) -> None:
    """First to find out who cannot pay, then to see what the others pay."""
    if turn == 0:
        if not cost <= MOST or task.rows[r, i] < 0:
            given.lost[r] = 1.0
    elif given.lost[r] == 0.0:
        given.cost[c] = max(given.cost[c], cost)


@bare
def _exponentiate(slots: Slots, task: Task, above: _Above, given: _Inputs) -> None:
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


@bare
def _begin(slots: Slots, edges: Edges, above: _Above, given: _Inputs, r: int, of: int, work: _Work) -> None:
    """The probability of each state of the roots times all numerators; states that do not exist fill lanes."""
    n_states, gap = len(work.kept), len(above.weight) // len(slots.unit)
    for s in range(8):
        work.num[of + s] = 0.0
    work.num[of] = given.first[r]
    for k in range(len(slots.roots)):
        h = edges.bias[slots.roots[k]]
        work.num[of] -= max(h, 0.0) + log(1.0 + exp_minus(size(h)))
    for k in range(len(slots.roots)):
        _add(work.num, of, 1 << k, edges.bias[slots.roots[k]] + given.root[r * gap + k])
    for s in range(np.uint64(of), np.uint64(of + n_states), EIGHT):
        x = take(work.num, s)
        n = nearest(x * LOG2E)
        even, odd = cosh_sinh((x - n * LN2_HIGH) - n * LN2_LOW)
        put(work.num, s, even + odd)
        put(work.den, s, zeros() + 1.0)
        put(work.power, s, n)
    for s in range(1 << len(slots.roots), n_states):
        work.power[of + s] = _NEVER


@bare
def _add(sums: FloatArray, first: int, n: int, more: float) -> None:
    """The states in which one more root is on have so much more."""
    if n < 8:
        for t in range(n):
            sums[first + n + t] = sums[first + t] + more
        return
    for t in range(np.uint64(first), np.uint64(first + n), EIGHT):
        put(sums, t + np.uint64(n), take(sums, t) + more)


@bare
def _reduce(work: _Work, of: int, mixed: bool) -> None:
    """What is large or small about the fractions of a row goes into their powers of two."""
    for s in range(np.uint64(of), np.uint64(of + len(work.kept)), EIGHT):
        m, n = split(take(work.den, s))
        put(work.den, s, m)
        put(work.power, s, take(work.power, s) - n)
        if mixed:
            m, n = split(take(work.num, s))
            put(work.num, s, m)
            put(work.power, s, take(work.power, s) + n)


@bare
def _times(above: _Above, given: _Inputs, c: int, r: int, of: int, work: _Work) -> None:
    """Two columns without switches: 1 + e^-x is their denominator."""
    n, wide = len(work.kept), len(given.lost)
    a, b = given.z[c * wide + r], given.z[(c + 1) * wide + r]
    at, by, to = np.uint64(c * n), np.uint64((c + 1) * n), np.uint64(of)
    for s in range(np.uint64(0), np.uint64(n), EIGHT):
        both = (1.0 + a * take(above.down, at + s)) * (1.0 + b * take(above.down, by + s))
        put(work.den, to + s, take(work.den, to + s) * both)


@bare
def _times_mixed(slots: Slots, above: _Above, given: _Inputs, k: float, c: int, r: int, of: int, work: _Work) -> None:
    """A column with a switch, all of whose letters are e^-input: with odds E against the switch, A0 without it and
    A1 = K A0 with it, [F (1 + A0) + E (1 + A1)] / [(1 + E) (1 + A0) (1 + A1)]; F is 1, or K if the cell is 0.
    """
    n, wide, w = len(work.kept), len(given.lost), c + slots.mixed
    a, e, first = given.z[c * wide + r], given.z[w * wide + r], given.cell[r * len(slots.unit) + c]
    first = first + (1.0 - first) * k
    at, by, to = np.uint64(c * n), np.uint64(w * n), np.uint64(of)
    for s in range(np.uint64(0), np.uint64(n), EIGHT):
        a0, odds = a * take(above.down, at + s), e * take(above.down, by + s)
        u0, u1 = 1.0 + a0, 1.0 + k * a0
        put(work.num, to + s, take(work.num, to + s) * (first * u0 + odds * u1))
        put(work.den, to + s, take(work.den, to + s) * ((1.0 + odds) * u0 * u1))


@bare
def _multiply(slots: Slots, above: _Above, given: _Inputs, factor: FloatArray, first: int, n: int, work: _Work) -> None:
    """P of some rows in each state of the roots; column by column, for the states of a column are many numbers."""
    n_states, room, last = len(work.kept), 2.0 * MOST, slots.plain + slots.mixed
    for c in range(last):
        cost = given.cost[c]
        if c < slots.plain:
            if c % 2:
                continue
            cost += given.cost[c + 1]
        if cost > room:
            for q in range(n):
                _reduce(work, q * n_states, slots.mixed > 0)
            room = 2.0 * MOST
        room -= cost
        for q in range(n):
            if given.lost[first + q] > 0.0:
                continue
            if c < slots.plain:
                _times(above, given, c, first + q, q * n_states, work)
            else:
                _times_mixed(slots, above, given, factor[c - slots.plain], c, first + q, q * n_states, work)
    for q in range(n):  # those of lost rows are still one
        _reduce(work, q * n_states, slots.mixed > 0)


@bare
def _normalise(work: _Work, of: int) -> float:
    """The logarithm of the sum over states; each one's share in it replaces its number."""
    begin, end = np.uint64(of), np.uint64(of + len(work.kept))
    best, every, top = take(work.power, begin), zeros(), _NEVER
    for s in range(begin, end, EIGHT):
        best = where(take(work.power, s) - best, take(work.power, s), best)
    put(work.best, 0, best)
    for s in range(8):
        top = max(top, work.best[s])
    for s in range(begin, end, EIGHT):
        p = take(work.num, s) / take(work.den, s) * power_of_two(take(work.power, s) - top)
        put(work.num, s, p)
        every += p
    whole = total(every)
    for s in range(begin, end, EIGHT):
        put(work.num, s, take(work.num, s) * (1.0 / whole))
    return log(whole) + top * LN2


@bare
def _keep(work: _Work, of: int, least: float) -> tuple[int, float]:
    """The states that count, how many they are, and their share."""
    n, share = 0, 0.0
    for s in range(len(work.kept)):
        if work.num[of + s] > least:
            work.kept[n] = s
            n += 1
            share += work.num[of + s]
    return n, share


@bare
def _lean(
    slots: Slots, above: _Above, given: _Inputs, r: int, s: int, share: float, weight: float, climb: _Climb
) -> None:
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
    slots: Slots, above: _Above, given: _Inputs, factor: FloatArray, r: int, s: int, share: float, weight: float,
    climb: _Climb,
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
def _differentiate(
    slots: Slots, above: _Above, given: _Inputs, task: Task, factor: FloatArray, r: int, of: int, work: _Work,
    climb: _Climb,
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
def _gather(slots: Slots, edges: Edges, task: Task, given: _Inputs, climb: _Climb, answer: Answer) -> None:
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
def _gather_root(slots: Slots, edges: Edges, climb: _Climb, k: int, every: float, answer: Answer) -> None:
    """The slopes of a root, of which those with higher numbers have been summed over: states with it on go to those
    with it off.
    """
    i, n_slots, half = slots.roots[k], len(slots.unit), 1 << k
    own = 0.0
    for s in range(half):
        own += climb.chance[half + s]
        climb.chance[s] += climb.chance[half + s]
    answer.bias[i] = own - every / (1.0 + _exp(-edges.bias[i]))
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


@kernel
def sum_rows(slots: Slots, edges: Edges, task: Task, answer: Answer) -> None:
    """Each row's ln P and the chances of the roots' states, the means of switches, and the slopes."""
    n_rows, n_slots, n_roots = len(task.rows), len(slots.unit), len(slots.roots)
    n_states, wide, gap = max(1 << n_roots, 8), (n_rows + 7) // 8 * 8, (n_roots + 7) // 8 * 8
    above = _Above(
        real_numbers(n_slots * gap), real_numbers(n_slots * n_states), real_numbers(n_slots * n_states),
        real_numbers(n_slots),
    )  # fmt: skip
    given = _Inputs(
        real_numbers(len(edges.bias) * wide), real_numbers(n_slots * wide), real_numbers(n_slots * n_rows),
        real_numbers(n_slots * n_rows), real_numbers(n_rows), real_numbers(n_rows * gap), real_numbers(n_slots),
        real_numbers(wide),
    )  # fmt: skip
    work = _Work(
        real_numbers(_GROUP * n_states), real_numbers(_GROUP * n_states), real_numbers(_GROUP * n_states),
        real_numbers(8), whole_numbers(n_states),
    )  # fmt: skip
    differs = task.slopes or slots.mixed > 0
    climb = _Climb(
        real_numbers(n_slots * n_rows * differs), real_numbers(n_slots * n_states * differs), real_numbers(n_slots),
        real_numbers(n_states), real_numbers(n_slots * n_rows * differs),
    )  # fmt: skip
    strength, factor = real_numbers(slots.mixed), real_numbers(slots.mixed)
    for c in range(slots.mixed):
        strength[c] = edges.weight[slots.edge[c]] if c < len(slots.edge) else 0.0
        factor[c] = _exp(min(max(-strength[c], -MOST), MOST))
    _look_above(slots, edges, real_numbers(n_roots * n_slots), above)
    _absorb(slots, edges, task, given)
    _lose(slots, task, strength, above, given)
    _exponentiate(slots, task, above, given)
    for first in range(0, n_rows, _GROUP):
        n = min(_GROUP, n_rows - first)
        for q in range(n):
            _begin(slots, edges, above, given, first + q, q * n_states, work)
        _multiply(slots, above, given, factor, first, n, work)
        for q in range(n):
            r, of = first + q, q * n_states
            if given.lost[r] > 0.0:
                answer.log_p[r] = np.nan
                continue
            answer.log_p[r] = _normalise(work, of)
            for s in range(1 << n_roots):
                answer.share[r, s] = work.num[of + s]
            if differs:
                _differentiate(slots, above, given, task, factor, r, of, work, climb)
                for c in range(len(slots.edge)):
                    answer.switch[r, c] = climb.switch[r * n_slots + slots.plain + slots.mixed + c]
    if task.slopes:
        _gather(slots, edges, task, given, climb, answer)
