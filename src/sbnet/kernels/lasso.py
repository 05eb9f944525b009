"""Logistic regressions with an L1 penalty, and perhaps an L2 one: Newton steps, each by coordinate descent over few.

The columns of the design are binary. Where ones are rare a coordinate costs as many operations as its column has ones;
where they are not it is quicker to go through all rows, eight at a time.
What is minimised is sum_r w_r [ln(1 + e^z_r) - y_r z_r] + sum_j (penalty_j |b_j| + ridge_j b_j^2 / 2), with an
intercept that is free.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sbnet._types import BoolArray, FloatArray, IndexArray
from sbnet.kernels._compile import bare, kernel, vector
from sbnet.kernels.arrays import flags, real_numbers, whole_numbers
from sbnet.kernels.lanes import size, where
from sbnet.kernels.vector_math import exp_minus, log

Places: TypeAlias = NDArray[np.int32]
Cells: TypeAlias = NDArray[np.int8]

_ROUNDS, _STEPS, _CYCLES, _PASSES, _HALVES = 20, 30, 4, 4, 12
_FLAT = 1e-6  # the least curvature of a row: rows that are certain still count a little
_SLACK = 1.001  # how far a slope may pass its penalty before its coefficient is let in
_DENSE = 12  # a column with more ones than one in so many rows is gone through row by row
_INNER = 0.05  # coordinate descent ends when it gains this share of what its first pass gained


class Ones(NamedTuple):
    """Where the ones of each column stand, ``row[begin[j]:begin[j + 1]]``; and the columns themselves, as rows."""

    begin: IndexArray
    row: Places
    cell: Cells


class Rows(NamedTuple):
    """What is kept for each row: its answer between 0 and 1, its weight, its input, residual and curvature."""

    y: FloatArray
    weight: FloatArray
    z: FloatArray
    residual: FloatArray
    curve: FloatArray


@vector
def _sum_at(rows: Places, values: FloatArray) -> float:
    total = 0.0
    for t in range(len(rows)):
        total += values[np.uint64(rows[t])]
    return total


@vector
def _sum_through(cell: Cells, values: FloatArray) -> float:
    total = 0.0
    for r in range(len(cell)):
        total += cell[r] * values[r]
    return total


@bare
def _sum(ones: Ones, j: int, values: FloatArray) -> float:
    """The sum of values over the rows where a column is one."""
    if (ones.begin[j + 1] - ones.begin[j]) * _DENSE > len(values):
        return _sum_through(ones.cell[j], values)
    return _sum_at(ones.row[ones.begin[j] : ones.begin[j + 1]], values)


@vector
def _lower_through(cell: Cells, by: float, curve: FloatArray, residual: FloatArray) -> None:
    for r in range(len(cell)):
        residual[r] -= by * cell[r] * curve[r]


@bare
def _lower(ones: Ones, j: int, by: float, of: Rows) -> None:
    """A coefficient has moved: residuals of the rows where its column is one follow."""
    if (ones.begin[j + 1] - ones.begin[j]) * _DENSE > len(of.z):
        _lower_through(ones.cell[j], by, of.curve, of.residual)
        return
    for t in range(ones.begin[j], ones.begin[j + 1]):
        r = np.uint64(ones.row[t])
        of.residual[r] -= of.curve[r] * by


@vector
def _raise_through(cell: Cells, by: float, z: FloatArray) -> None:
    for r in range(len(cell)):
        z[r] += by * cell[r]


@bare
def _raise(ones: Ones, j: int, by: float, z: FloatArray) -> None:
    """The inputs follow."""
    if (ones.begin[j + 1] - ones.begin[j]) * _DENSE > len(z):
        _raise_through(ones.cell[j], by, z)
        return
    for t in range(ones.begin[j], ones.begin[j + 1]):
        z[np.uint64(ones.row[t])] += by


@vector
def _losses(y: FloatArray, weight: FloatArray, z: FloatArray) -> float:
    total = 0.0
    for r in range(len(z)):
        total += weight[r] * (where(z[r], z[r], 0.0) + log(1.0 + exp_minus(size(z[r]))) - y[r] * z[r])
    return total


@bare
def _loss(of: Rows) -> float:
    return _losses(of.y, of.weight, of.z)


@vector
def _expand_all(y: FloatArray, weight: FloatArray, z: FloatArray, residual: FloatArray, curve: FloatArray) -> None:
    for r in range(len(z)):
        t = exp_minus(size(z[r]))
        q = 1.0 / (1.0 + t)
        residual[r] = weight[r] * (y[r] - where(z[r], q, t * q))
        steep = t * q * q
        curve[r] = weight[r] * where(steep - _FLAT, steep, _FLAT)


@bare
def _expand(of: Rows) -> None:
    """The quadratic around the present input: residuals and curvatures."""
    _expand_all(of.y, of.weight, of.z, of.residual, of.curve)


@bare
def _intercept(of: Rows, intercept: FloatArray) -> float:
    slope = curve = 0.0
    for r in range(len(of.z)):
        slope += of.residual[r]
        curve += of.curve[r]
    if curve <= 0.0:
        return 0.0
    by = slope / curve
    for r in range(len(of.z)):
        of.residual[r] -= of.curve[r] * by
    intercept[0] += by
    return by * slope


@bare
def _pass(
    ones: Ones,
    of: Rows,
    penalty: FloatArray,
    ridge: FloatArray,
    curve: FloatArray,
    chosen: IndexArray,
    n: int,
    coefficient: FloatArray,
    intercept: FloatArray,
) -> float:
    """Every chosen coefficient to its best place, one after the other; the largest gain among them."""
    most = _intercept(of, intercept)
    for q in range(n):
        j = chosen[q]
        pull = coefficient[j] * curve[j] + _sum(ones, j, of.residual)
        place = 0.0
        if pull > penalty[j]:
            place = (pull - penalty[j]) / (curve[j] + ridge[j])
        elif pull < -penalty[j]:
            place = (pull + penalty[j]) / (curve[j] + ridge[j])
        by = place - coefficient[j]
        if by != 0.0:
            _lower(ones, j, by, of)
            coefficient[j] = place
            most = max(most, by * by * (curve[j] + ridge[j]))
    return most


@bare
def _descend(
    ones: Ones,
    of: Rows,
    penalty: FloatArray,
    ridge: FloatArray,
    curve: FloatArray,
    working: IndexArray,
    n: int,
    active: IndexArray,
    coefficient: FloatArray,
    intercept: FloatArray,
    tol: float,
) -> None:
    """Minimise the quadratic: all working coefficients, then those that are not zero a few times, and so on."""
    most = _pass(ones, of, penalty, ridge, curve, working, n, coefficient, intercept)
    enough = max(0.1 * tol, _INNER * most)
    for _ in range(_CYCLES):
        if most < enough:
            break
        m = 0
        for q in range(n):
            if coefficient[working[q]] != 0.0:
                active[m] = working[q]
                m += 1
        for _ in range(_PASSES):
            if _pass(ones, of, penalty, ridge, curve, active, m, coefficient, intercept) < enough:
                break
        most = _pass(ones, of, penalty, ridge, curve, working, n, coefficient, intercept)


@bare
def _copy(values: FloatArray, to: FloatArray) -> None:
    for r in range(len(values)):
        to[r] = values[r]


@bare
def _halve(before: FloatArray, values: FloatArray) -> None:
    """Half of the way back."""
    for r in range(len(values)):
        values[r] = 0.5 * (values[r] + before[r])


@bare
def _follow(
    ones: Ones, working: IndexArray, n: int, before: FloatArray, coefficient: FloatArray, z: FloatArray
) -> None:
    """Inputs after a step; within it only residuals were needed."""
    k = len(coefficient) - 1
    for r in range(len(z)):
        z[r] += coefficient[k] - before[k]
    for q in range(n):
        j = working[q]
        if coefficient[j] != before[j]:
            _raise(ones, j, coefficient[j] - before[j], z)


@bare
def _let_in(ones: Ones, of: Rows, penalty: FloatArray, inside: BoolArray, working: IndexArray, n: int) -> int:
    """Columns whose slope is larger than their penalty join the working set; how many there are now."""
    for j in range(len(penalty)):
        if not inside[j]:
            slope = _sum(ones, j, of.residual)
            if abs(slope) > _SLACK * penalty[j]:
                inside[j] = True
                working[n] = j
                n += 1
    return n


@bare
def _size(penalty: FloatArray, ridge: FloatArray, coefficient: FloatArray) -> float:
    total = 0.0
    for j in range(len(penalty)):
        if coefficient[j] != 0.0:
            total += penalty[j] * abs(coefficient[j]) + 0.5 * ridge[j] * coefficient[j] ** 2
    return total


@bare
def _inputs(ones: Ones, coefficient: FloatArray, z: FloatArray) -> None:
    """The input of each row: the intercept, and the coefficients of the columns that are one there."""
    k = len(coefficient) - 1
    for r in range(len(z)):
        z[r] = coefficient[k]
    for j in range(k):
        if coefficient[j] != 0.0:
            _raise(ones, j, coefficient[j], z)


@kernel
def regress(
    ones: Ones,
    y: FloatArray,
    weight: FloatArray,
    penalty: FloatArray,
    ridge: FloatArray,
    coefficient: FloatArray,
    tol: float,
) -> float:
    """The regression of y on the first columns; `coefficient`, those of the columns and then the intercept, is where to
    start, and is replaced. The least loss, with its penalties, is returned; `tol` is the gain of a step that ends it.
    """
    n, k = len(y), len(penalty)
    of = Rows(y, weight, real_numbers(n), real_numbers(n), real_numbers(n))
    b, intercept = coefficient[:k], coefficient[k:]
    _inputs(ones, coefficient, of.z)
    curve, inside = real_numbers(k), flags(k)
    working, active = whole_numbers(k), whole_numbers(k)
    z, before = real_numbers(n), real_numbers(k + 1)
    n_in = 0
    for j in range(k):
        if b[j] != 0.0:
            inside[j] = True
            working[n_in] = j
            n_in += 1
    least = _loss(of) + _size(penalty, ridge, b)
    for turn in range(_ROUNDS):
        for step in range(_STEPS):
            _expand(of)
            if step == 0:
                grown = _let_in(ones, of, penalty, inside, working, n_in)
                if turn > 0 and grown == n_in:
                    return least
                n_in = grown
            for q in range(n_in):
                j = working[q]
                curve[j] = _sum(ones, j, of.curve) + 1e-9
            _copy(of.z, z)
            _copy(coefficient, before)
            _descend(ones, of, penalty, ridge, curve, working, n_in, active, b, intercept, tol)
            _follow(ones, working, n_in, before, coefficient, of.z)
            loss = _loss(of) + _size(penalty, ridge, b)
            for _ in range(_HALVES):  # a Newton step may go too far
                if loss <= least:
                    break
                _halve(z, of.z)
                _halve(before, coefficient)
                loss = _loss(of) + _size(penalty, ridge, b)
            gain = least - loss
            least = loss
            if gain < tol:
                break
    return least
