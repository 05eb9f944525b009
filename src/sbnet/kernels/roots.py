"""Networks whose hidden units are a few roots, and switches of columns: likelihoods as sums over the roots' states.

Given the roots, and with all columns observed, a column and its switch depend on nothing else that is hidden. So ln P
of a row is the logarithm of a sum over the states of the roots, of products over columns. Inputs are the sum of what
columns and what roots say, so their exponentials are products, and a state costs a few multiplications for each column.
A cell that is 0 has the probability e^-x / (1 + e^-x), one that is 1 has 1 / (1 + e^-x): exponents of numerators are
linear in the roots, and are summed up at once, so that only denominators are left to multiply. No logarithm is taken
but that of the sum: products are kept as a number and a power of two.

Slopes are sums over states, too, but only over those that count: of 256, few have a share in a row worth speaking of.

:mod:`sbnet.kernels.root_slots` has what is multiplied, :mod:`sbnet.kernels.root_slopes` the slopes.
"""

from __future__ import annotations

import numpy as np

from sbnet._types import FloatArray
from sbnet.kernels._compile import bare, kernel
from sbnet.kernels.arrays import real_numbers, whole_numbers
from sbnet.kernels.lanes import EIGHT, nearest, power_of_two, put, size, take, total, where, zeros
from sbnet.kernels.root_slopes import differentiate, gather
from sbnet.kernels.root_slots import (
    MOST,
    Above,
    Answer,
    Climb,
    Edges,
    Inputs,
    Slots,
    Task,
    Work,
    absorb,
    exponentiate,
    look_above,
    lose,
    signed_exp,
)
from sbnet.kernels.vector_math import LN2, LN2_HIGH, LN2_LOW, LOG2E, cosh_sinh, exp_minus, log, split

_GROUP = 8
"""Rows that are gone through together."""
_NEVER = -1e300
"""The power of two of a state that does not exist."""


@bare
def _begin(slots: Slots, edges: Edges, above: Above, given: Inputs, r: int, of: int, work: Work) -> None:
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
def _reduce(work: Work, of: int, mixed: bool) -> None:
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
def _times(above: Above, given: Inputs, c: int, r: int, of: int, work: Work) -> None:
    """Two columns without switches: 1 + e^-x is their denominator."""
    n, wide = len(work.kept), len(given.lost)
    a, b = given.z[c * wide + r], given.z[(c + 1) * wide + r]
    at, by, to = np.uint64(c * n), np.uint64((c + 1) * n), np.uint64(of)
    for s in range(np.uint64(0), np.uint64(n), EIGHT):
        both = (1.0 + a * take(above.down, at + s)) * (1.0 + b * take(above.down, by + s))
        put(work.den, to + s, take(work.den, to + s) * both)


@bare
def _times_mixed(slots: Slots, above: Above, given: Inputs, k: float, c: int, r: int, of: int, work: Work) -> None:
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
def _multiply(slots: Slots, above: Above, given: Inputs, factor: FloatArray, first: int, n: int, work: Work) -> None:
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
def _normalise(work: Work, of: int) -> float:
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


@kernel
def sum_rows(slots: Slots, edges: Edges, task: Task, answer: Answer) -> None:
    """Each row's ln P and the chances of the roots' states, the means of switches, and the slopes."""
    n_rows, n_slots, n_roots = len(task.rows), len(slots.unit), len(slots.roots)
    n_states, wide, gap = max(1 << n_roots, 8), (n_rows + 7) // 8 * 8, (n_roots + 7) // 8 * 8
    above = Above(
        real_numbers(n_slots * gap), real_numbers(n_slots * n_states), real_numbers(n_slots * n_states),
        real_numbers(n_slots),
    )  # fmt: skip
    given = Inputs(
        real_numbers(len(edges.bias) * wide), real_numbers(n_slots * wide), real_numbers(n_slots * n_rows),
        real_numbers(n_slots * n_rows), real_numbers(n_rows), real_numbers(n_rows * gap), real_numbers(n_slots),
        real_numbers(wide),
    )  # fmt: skip
    work = Work(
        real_numbers(_GROUP * n_states), real_numbers(_GROUP * n_states), real_numbers(_GROUP * n_states),
        real_numbers(8), whole_numbers(n_states),
    )  # fmt: skip
    differs = task.slopes or slots.mixed > 0
    climb = Climb(
        real_numbers(n_slots * n_rows * differs), real_numbers(n_slots * n_states * differs), real_numbers(n_slots),
        real_numbers(n_states), real_numbers(n_slots * n_rows * differs),
    )  # fmt: skip
    strength, factor = real_numbers(slots.mixed), real_numbers(slots.mixed)
    for c in range(slots.mixed):
        strength[c] = edges.weight[slots.edge[c]] if c < len(slots.edge) else 0.0
        factor[c] = signed_exp(min(max(-strength[c], -MOST), MOST))
    look_above(slots, edges, real_numbers(n_roots * n_slots), above)
    absorb(slots, edges, task, given)
    lose(slots, task, strength, above, given)
    exponentiate(slots, task, above, given)
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
                differentiate(slots, above, given, task, factor, r, of, work, climb)
                for c in range(len(slots.edge)):
                    answer.switch[r, c] = climb.switch[r * n_slots + slots.plain + slots.mixed + c]
    if task.slopes:
        gather(slots, edges, task, given, climb, answer)
