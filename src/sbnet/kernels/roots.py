"""Networks whose hidden units are a few roots, and switches of columns: likelihoods as sums over the roots' states.

Given the roots, and with all columns observed, a column and its switch depend on nothing else that is hidden. So ln P
of a row is the logarithm of a sum over the states of the roots, of products over columns. Inputs are the sum of what
columns and what roots say, so their exponentials are products, and a state costs a few multiplications for each column.
"""

from __future__ import annotations

import math
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sbnet._types import FloatArray, IndexArray
from sbnet.kernels._compile import bare, kernel, vector

Grid: TypeAlias = NDArray[np.float64]
Table: TypeAlias = NDArray[np.int8]

MOST = 300.0
"""The largest sum of inputs of a column and its switch that is multiplied here; e to twice that is a number yet."""
_GROUP = 10
"""Rows that are gone through together."""


class Columns(NamedTuple):
    """The units of columns, and of their switches, -1 where there is none; the weights from these to the columns."""

    unit: IndexArray
    switch: IndexArray
    strength: FloatArray


class Above(NamedTuple):
    """What the roots say: ln P of each of their states; and for each unit e to plus and minus their part of its input,
    state by state, with the largest such part.
    """

    log_p: FloatArray
    up: Grid
    down: Grid
    most: FloatArray


class Answer(NamedTuple):
    """What is found: ln P of each row, NaN where it was not; chances of the roots' states; means of switches."""

    log_p: FloatArray
    share: Grid
    switch: Grid


class Slopes(NamedTuple):
    """What learning asks for: a weight for each row; slopes in the inputs of units, by row and, summed over rows, by
    state; and in the weights from switches.
    """

    row_weight: FloatArray
    by_row: Grid
    by_state: Grid
    strength: FloatArray


@vector
def _times(a: float, up: FloatArray, below: FloatArray) -> None:
    for s in range(len(below)):
        below[s] *= 1.0 + a * up[s]


@vector
def _times_mixed(
    a: float, k: float, e: float, up: FloatArray, off: FloatArray, above: FloatArray, below: FloatArray
) -> None:
    """A column with a switch: P = [(1 + A0) + E (1 + A1)] / [(1 + E) (1 + A0) (1 + A1)], all of them e^-input."""
    for s in range(len(below)):
        a0, odds = a * up[s], e * off[s]
        u0, u1 = 1.0 + a0, 1.0 + k * a0
        above[s] *= u0 + odds * u1
        below[s] *= (1.0 + odds) * u0 * u1


@vector
def _flush(log_p: FloatArray, above: FloatArray, below: FloatArray) -> None:
    for s in range(len(below)):
        log_p[s] += math.log(above[s] / below[s])
    for s in range(len(below)):
        above[s] = below[s] = 1.0


@vector
def _lean(a: float, sign: float, up: FloatArray, share: FloatArray, slope: FloatArray) -> float:
    """The slope in the input of a column without a switch."""
    total = 0.0
    for s in range(len(share)):
        t = a * up[s]
        g = sign * share[s] * t / (1.0 + t)
        slope[s] += g
        total += g
    return total


@vector
def _lean_mixed(
    a: float,
    k: float,
    e: float,
    sign: float,
    up: FloatArray,
    off: FloatArray,
    share: FloatArray,
    slope: FloatArray,
    slope_off: FloatArray,
) -> tuple[float, float, float, float]:
    """Those in the inputs of a column and its switch, and in the weight between them; and the mean of the switch.

    One division does for all.
    """
    total = total_off = strength = mean = 0.0
    for s in range(len(share)):
        a0, odds = a * up[s], e * off[s]
        a1 = k * a0
        u0, u1, v = 1.0 + a0, 1.0 + a1, 1.0 + odds
        t = u0 + odds * u1
        tv, uu = t * v, u0 * u1
        one = 1.0 / (tv * uu)
        on = u0 * v * uu * one  # the chance of the switch, given the column
        b = on * a1 * tv * u0 * one
        g = sign * share[s] * (b + (1.0 - on) * a0 * tv * u1 * one)
        h = share[s] * (on - t * uu * one)
        slope[s] += g
        slope_off[s] += h
        total += g
        total_off += h
        strength += sign * share[s] * b
        mean += share[s] * on
    return total, total_off, strength, mean


@bare
def _cost(columns: Columns, above: Above, inputs: FloatArray, c: int) -> float:
    """How large the exponents of a column may be."""
    i, w = columns.unit[c], columns.switch[c]
    cost = abs(inputs[i]) + above.most[i] + 1.0
    if w < 0:
        return cost
    return 2.0 * cost + abs(columns.strength[c]) + abs(inputs[w]) + above.most[w] + 1.0


class Work(NamedTuple):
    """What is kept for each row of a group, state by state: ln P so far, and what is yet to be added to it as the
    logarithm of a fraction; and how much larger the exponents of that may become, less than nothing for lost rows.
    """

    log_p: Grid
    num: Grid
    den: Grid
    room: FloatArray


@bare
def _begin(above: Above, work: Work, n: int) -> None:
    for q in range(n):
        work.room[q] = MOST
        for s in range(len(above.log_p)):
            work.log_p[q, s], work.num[q, s], work.den[q, s] = above.log_p[s], 1.0, 1.0


@bare
def _multiply(columns: Columns, above: Above, inputs: Grid, rows: Table, first: int, n: int, work: Work) -> None:
    """ln P of some rows in each state of the roots; column by column, for the states of a column are many numbers."""
    _begin(above, work, n)
    for c in range(len(columns.unit)):
        i, w = columns.unit[c], columns.switch[c]
        for q in range(n):
            r = first + q
            cost = _cost(columns, above, inputs[r], c)
            if cost > MOST or work.room[q] < 0.0:
                work.room[q] = -1.0
                continue
            if cost > work.room[q]:
                _flush(work.log_p[q], work.num[q], work.den[q])
                work.room[q] = MOST
            work.room[q] -= cost
            sign = 1.0 if rows[r, i] == 1 else -1.0
            a, up = math.exp(-sign * inputs[r, i]), above.down[i] if rows[r, i] == 1 else above.up[i]
            if w < 0:
                _times(a, up, work.den[q])
            else:
                k, e = math.exp(-sign * columns.strength[c]), math.exp(-inputs[r, w])
                _times_mixed(a, k, e, up, above.down[w], work.num[q], work.den[q])
    for q in range(n):
        _flush(work.log_p[q], work.num[q], work.den[q])


@bare
def _differentiate(
    columns: Columns,
    above: Above,
    inputs: Grid,
    rows: Table,
    first: int,
    n: int,
    work: Work,
    answer: Answer,
    slopes: Slopes,
) -> None:
    """Slopes of some rows, whose weights are in the shares of the states, `work.num`, already."""
    for c in range(len(columns.unit)):
        i, w = columns.unit[c], columns.switch[c]
        for q in range(n):
            r = first + q
            if work.room[q] < 0.0:
                continue
            sign = 1.0 if rows[r, i] == 1 else -1.0
            a, up = math.exp(-sign * inputs[r, i]), above.down[i] if rows[r, i] == 1 else above.up[i]
            if w < 0:
                slopes.by_row[r, i] = _lean(a, sign, up, work.num[q], slopes.by_state[i])
                continue
            k, e = math.exp(-sign * columns.strength[c]), math.exp(-inputs[r, w])
            slopes.by_row[r, i], slopes.by_row[r, w], strength, mean = _lean_mixed(
                a, k, e, sign, up, above.down[w], work.num[q], slopes.by_state[i], slopes.by_state[w]
            )
            slopes.strength[c] += strength
            weight = slopes.row_weight[r]
            answer.switch[r, c] = mean / weight if weight != 0.0 else 0.0


@bare
def _normalise(log_p: FloatArray, share: FloatArray) -> float:
    """The logarithm of a sum; and each term's share in it."""
    top = log_p[0]
    for s in range(len(log_p)):
        top = max(top, log_p[s])
    total = 0.0
    for s in range(len(log_p)):
        share[s] = math.exp(log_p[s] - top)
        total += share[s]
    for s in range(len(log_p)):
        share[s] /= total
    return top + math.log(total)


@kernel
def sum_rows(columns: Columns, above: Above, inputs: Grid, rows: Table, answer: Answer, slopes: Slopes) -> None:
    """Each row's ln P and the chances of the roots' states, the slopes, and the means of switches."""
    shape = _GROUP, len(above.log_p)
    work = Work(np.empty(shape), np.empty(shape), np.empty(shape), np.empty(_GROUP))
    for first in range(0, len(rows), _GROUP):
        n = min(_GROUP, len(rows) - first)
        _multiply(columns, above, inputs, rows, first, n, work)
        for q in range(n):
            r = first + q
            answer.log_p[r] = _normalise(work.log_p[q], answer.share[r]) if work.room[q] >= 0.0 else np.nan
            for s in range(len(above.log_p)):
                work.num[q, s] = slopes.row_weight[r] * answer.share[r, s]
        _differentiate(columns, above, inputs, rows, first, n, work, answer, slopes)


@vector
def _dot(a: FloatArray, b: FloatArray) -> float:
    total = 0.0
    for r in range(len(a)):
        total += a[r] * b[r]
    return total


@kernel
def edge_slopes(
    indptr: IndexArray, parent: IndexArray, root: IndexArray, on: Grid, by_row: Grid, states: Grid, by_state: Grid,
    slope: FloatArray,
) -> None:  # fmt: skip
    """Slopes in the weights: from columns, units by rows; from roots, roots by states and units by states."""
    for i in range(len(by_row)):
        for e in range(indptr[i], indptr[i + 1]):
            j = parent[e]
            if root[j] >= 0:
                slope[e] += _dot(states[root[j]], by_state[i])
            else:
                slope[e] += _dot(on[j], by_row[i])
