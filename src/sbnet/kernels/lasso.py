"""Logistic regressions with an L1 penalty (the lasso), and perhaps an L2 one: Newton steps by coordinate descent.

What is minimised is sum_r w_r [ln(1 + e^z_r) - y_r z_r] + sum_j (penalty_j |b_j| + ridge_j b_j^2 / 2), with an
intercept that is free. A Newton step minimises the quadratic around the present inputs z, one coefficient after the
other, over a working set; the set grows by the columns whose gradient is larger than their penalty.

The columns of the design are binary. Where ones are rare a coordinate costs as many operations as its column has ones;
where they are not it is quicker to go through all rows.
"""

from __future__ import annotations

import math
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sbnet._types import FloatArray, IndexArray
from sbnet.kernels.compiling import inner, kernel
from sbnet.kernels.exponential import exp_parts, log_one_plus
from sbnet.kernels.structs import struct

Places: TypeAlias = NDArray[np.int32]
Cells: TypeAlias = NDArray[np.int8]

_ROUNDS, _STEPS, _CYCLES, _PASSES, _HALVES = 20, 30, 4, 4, 12
_FLAT = 1e-6  # the least curvature of a row: rows that are certain still count a little
_SLACK = 1.001  # how far a gradient may pass its penalty before its coefficient is let in
_DENSE = 12  # a column with more ones than one in so many rows is gone through row by row
_INNER = 0.05  # coordinate descent ends when it gains this share of what its first pass gained

coefficient_t = struct(
    ("value", "f8"),  # b_j
    ("before", "f8"),  # the Newton step
    ("penalty", "f8"),
    ("ridge", "f8"),
    ("curve", "f8"),  # second derivative of the loss
    ("inside", "i8"),  # is it in the working set?
)


class Ones(NamedTuple):
    """Where the ones of each column stand, ``row[begin[j]:begin[j + 1]]``; and the columns themselves, as rows."""

    begin: IndexArray
    row: Places
    cell: Cells


class Rows(NamedTuple):
    """Of each row: its answer between 0 and 1, its weight, its input z, now and before the Newton step, e^-|z| and the
    bits of that, minus the gradient in z, and the second derivative.
    """

    y: FloatArray
    weight: FloatArray
    z: FloatArray
    before: FloatArray
    tail: FloatArray
    bits: IndexArray
    residual: FloatArray
    curve: FloatArray


@inner(fast=True)
def _sum_dense(cell: Cells, j: int, values: FloatArray) -> float:
    total = 0.0
    for r in range(len(values)):
        total += cell[j, r] * values[r]
    return total


@inner(fast=True)
def _sum_sparse(row: Places, first: int, end: int, values: FloatArray) -> float:
    total = 0.0
    for t in range(first, end):
        total += values[row[t]]
    return total


@inner
def _sum(ones: Ones, j: int, values: FloatArray) -> float:
    """The sum of values over the rows where a column is one."""
    first, end = ones.begin[j], ones.begin[j + 1]
    if (end - first) * _DENSE > len(values):
        return _sum_dense(ones.cell, j, values)
    return _sum_sparse(ones.row, first, end, values)


@inner(fast=True)
def _add_dense(cell: Cells, j: int, by: float, values: FloatArray) -> None:
    for r in range(len(values)):
        values[r] += by * cell[j, r]


@inner
def _add(ones: Ones, j: int, by: float, z: FloatArray) -> None:
    """A coefficient has moved: the inputs of the rows where its column is one follow."""
    first, end = ones.begin[j], ones.begin[j + 1]
    if (end - first) * _DENSE > len(z):
        _add_dense(ones.cell, j, by, z)
    else:
        for t in range(first, end):
            z[ones.row[t]] += by


@inner(fast=True)
def _lower_dense(cell: Cells, j: int, by: float, curve: FloatArray, residual: FloatArray) -> None:
    for r in range(len(residual)):
        residual[r] -= by * cell[j, r] * curve[r]


@inner
def _lower(ones: Ones, j: int, by: float, curve: FloatArray, residual: FloatArray) -> None:
    """Within a Newton step only the residuals follow."""
    row, first, end = ones.row, ones.begin[j], ones.begin[j + 1]
    if (end - first) * _DENSE > len(residual):
        _lower_dense(ones.cell, j, by, curve, residual)
    else:
        for t in range(first, end):
            residual[row[t]] -= curve[row[t]] * by


@inner(fast=True)
def _exponentials(z: FloatArray, factor: FloatArray, bits: IndexArray) -> None:
    """e^-|z| as a factor and a power of two, given by its bits."""
    for r in range(len(z)):
        factor[r], n = exp_parts(-min(abs(z[r]), 708.0))
        bits[r] = (n + 1023) << 52


@inner(fast=True)
def _losses(y: FloatArray, weight: FloatArray, z: FloatArray, factor: FloatArray, tail: FloatArray) -> float:
    """The sum of w [ln(1 + e^z) - y z]; `tail`, until now a power of two, becomes e^-|z|."""
    total = 0.0
    for r in range(len(z)):
        tail[r] *= factor[r]
        total += weight[r] * (max(z[r], 0.0) + log_one_plus(tail[r]) - y[r] * z[r])
    return total


@inner
def _objective(rows: Rows, b: np.ndarray) -> float:
    """The loss with its penalties; e^-|z| stays for the next quadratic."""
    _exponentials(rows.z, rows.residual, rows.bits)
    total = _losses(rows.y, rows.weight, rows.z, rows.residual, rows.tail)
    for j in range(len(b) - 1):
        total += b[j].penalty * abs(b[j].value) + 0.5 * b[j].ridge * b[j].value ** 2
    return total


@inner(fast=True)
def _expand(
    y: FloatArray, weight: FloatArray, z: FloatArray, tail: FloatArray, residual: FloatArray, curve: FloatArray
) -> None:
    """The quadratic around the present input: residuals and curvatures."""
    for r in range(len(z)):
        q = 1.0 / (1.0 + tail[r])
        residual[r] = weight[r] * (y[r] - (q if z[r] > 0.0 else tail[r] * q))
        curve[r] = weight[r] * max(tail[r] * q * q, _FLAT)


@inner(fast=True)
def _shift(curve: FloatArray, residual: FloatArray) -> tuple[float, float]:
    """The intercept to its best place: how far, and the gain."""
    slope = bend = 0.0
    for r in range(len(curve)):
        slope += residual[r]
        bend += curve[r]
    by = slope / bend if bend > 0.0 else 0.0
    for r in range(len(curve)):
        residual[r] -= curve[r] * by
    return by, by * slope


@inner
def _fill(z: FloatArray, value: float) -> None:
    for r in range(len(z)):
        z[r] = value


@inner
def _move(z: FloatArray, before: FloatArray, by: float) -> None:
    """Remember the inputs, and move all of them."""
    for r in range(len(z)):
        before[r] = z[r]
        z[r] += by


@inner
def _halve(z: FloatArray, before: FloatArray) -> None:
    """Half of the way back."""
    for r in range(len(z)):
        z[r] = 0.5 * (z[r] + before[r])


@inner
def _pass(ones: Ones, rows: Rows, b: np.ndarray, chosen: IndexArray, n: int) -> float:
    """Every chosen coefficient to its best place, one after the other; the largest gain among them."""
    residual, curve = rows.residual, rows.curve
    by, most = _shift(curve, residual)
    b[len(b) - 1].value += by
    for q in range(n):
        c = b[chosen[q]]
        pull = c.value * c.curve + _sum(ones, chosen[q], residual)
        place = 0.0
        if abs(pull) > c.penalty:
            place = (pull - math.copysign(c.penalty, pull)) / (c.curve + c.ridge)
        by = place - c.value
        if by != 0.0:
            _lower(ones, chosen[q], by, curve, residual)
            c.value = place
            most = max(most, by * by * (c.curve + c.ridge))
    return most


@inner
def _descend(
    ones: Ones, rows: Rows, b: np.ndarray, working: IndexArray, n: int, active: IndexArray, tol: float
) -> None:
    """Minimise the quadratic: all working coefficients, then those that are not zero a few times, and so on."""
    most = _pass(ones, rows, b, working, n)
    enough = max(0.1 * tol, _INNER * most)
    for _ in range(_CYCLES):
        if most < enough:
            break
        m = 0
        for q in range(n):
            if b[working[q]].value != 0.0:
                active[m] = working[q]
                m += 1
        for _ in range(_PASSES):
            if _pass(ones, rows, b, active, m) < enough:
                break
        most = _pass(ones, rows, b, working, n)


@inner
def _let_in(ones: Ones, residual: FloatArray, b: np.ndarray, working: IndexArray, n: int) -> int:
    """Columns whose gradient is larger than their penalty join the working set; how many there are now."""
    for j in range(len(b) - 1):
        if not b[j].inside and abs(_sum(ones, j, residual)) > _SLACK * b[j].penalty:
            b[j].inside = 1
            working[n] = j
            n += 1
    return n


@inner
def _step(
    ones: Ones, rows: Rows, b: np.ndarray, working: IndexArray, n: int, active: IndexArray, least: float, tol: float
) -> float:
    """A Newton step, and back by half of it as often as it went too far; the objective after it."""
    for q in range(n):
        b[working[q]].curve = _sum(ones, working[q], rows.curve) + 1e-9
    for j in range(len(b)):
        b[j].before = b[j].value
    _descend(ones, rows, b, working, n, active, tol)
    _move(rows.z, rows.before, b[len(b) - 1].value - b[len(b) - 1].before)
    for q in range(n):
        c = b[working[q]]
        if c.value != c.before:
            _add(ones, working[q], c.value - c.before, rows.z)
    loss = _objective(rows, b)
    for _ in range(_HALVES):
        if loss <= least:
            break
        _halve(rows.z, rows.before)
        for j in range(len(b)):
            b[j].value = 0.5 * (b[j].value + b[j].before)
        loss = _objective(rows, b)
    return loss


@inner
def _minimise(ones: Ones, rows: Rows, b: np.ndarray, tol: float) -> float:
    working, active, n = np.zeros(len(b), np.int64), np.zeros(len(b), np.int64), 0
    _fill(rows.z, b[len(b) - 1].value)
    for j in range(len(b) - 1):
        if b[j].value != 0.0:
            _add(ones, j, b[j].value, rows.z)
            b[j].inside = 1
            working[n] = j
            n += 1
    least = _objective(rows, b)
    for turn in range(_ROUNDS):
        for step in range(_STEPS):
            _expand(rows.y, rows.weight, rows.z, rows.tail, rows.residual, rows.curve)
            if step == 0:
                grown = _let_in(ones, rows.residual, b, working, n)
                if turn > 0 and grown == n:
                    return least
                n = grown
            loss = _step(ones, rows, b, working, n, active, least, tol)
            gain, least = least - loss, loss
            if gain < tol:
                break
    return least


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
    tail, b = np.zeros(n), np.zeros(k + 1, coefficient_t)
    rows = Rows(y, weight, np.zeros(n), np.zeros(n), tail, tail.view(np.int64), np.zeros(n), np.zeros(n))
    for j in range(k):
        b[j].penalty, b[j].ridge = penalty[j], ridge[j]
    for j in range(k + 1):
        b[j].value = coefficient[j]
    least = _minimise(ones, rows, b, tol)
    for j in range(k + 1):
        coefficient[j] = b[j].value
    return least
