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
from sbnet.kernels.structs import LANES, struct
from sbnet.kernels.vector import exp_minus, log_one_plus, zeros

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
    """What is known of each row."""

    y: FloatArray  # its answer, between 0 and 1
    weight: FloatArray
    z: FloatArray  # its input, now
    before: FloatArray  # and before the Newton step
    arg: FloatArray  # |z|
    power: FloatArray  # e^-|z|
    bits: IndexArray  # the bits of that
    residual: FloatArray  # minus the gradient in z
    curve: FloatArray  # the second derivative
    one: FloatArray  # 1


def rows_of(y: FloatArray, weight: FloatArray) -> Rows:
    """Room for a regression of y, with a weight for each row."""
    room = zeros((9, len(y) + -len(y) % LANES), np.float64)[:, : len(y)]
    room[0], room[1], room[8] = y, weight, 1.0
    y, weight, z, before, arg, power, residual, curve, one = room
    return Rows(y, weight, z, before, arg, power, power.view(np.int64), residual, curve, one)


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
def _add(ones: Ones, j: int, by: float, factor: FloatArray, values: FloatArray) -> None:
    """A coefficient has moved: the values of the rows where its column is one follow, each by its factor."""
    row, cell, first, end = ones.row, ones.cell, ones.begin[j], ones.begin[j + 1]
    if (end - first) * _DENSE > len(values):
        for r in range(len(values)):
            values[r] += by * cell[j, r] * factor[r]
    else:
        for t in range(first, end):
            values[row[t]] += by * factor[row[t]]


@inner(fast=True)
def _objective(rows: Rows, b: np.ndarray) -> float:
    """The loss with its penalties; e^-|z| stays for the next quadratic."""
    y, weight, z, arg, tail, total = rows.y, rows.weight, rows.z, rows.arg, rows.power, 0.0
    for r in range(len(z)):
        arg[r] = abs(z[r])
    exp_minus(rows)
    for r in range(len(z)):
        total += weight[r] * (max(z[r], 0.0) + log_one_plus(tail[r]) - y[r] * z[r])
    for j in range(len(b) - 1):
        total += b[j].penalty * abs(b[j].value) + 0.5 * b[j].ridge * b[j].value ** 2
    return total


@inner(fast=True)
def _expand(rows: Rows) -> None:
    """The quadratic around the present inputs: residuals and curvatures."""
    y, weight, z, tail, residual, curve = rows.y, rows.weight, rows.z, rows.power, rows.residual, rows.curve
    for r in range(len(z)):
        q = 1.0 / (1.0 + tail[r])
        residual[r] = weight[r] * (y[r] - (q if z[r] > 0.0 else tail[r] * q))
        curve[r] = weight[r] * max(tail[r] * q * q, _FLAT)


@inner(fast=True)
def _shift(curve: FloatArray, residual: FloatArray) -> tuple[float, float]:
    """The intercept to its best place: how far, and the gain."""
    gradient = bend = 0.0
    for r in range(len(curve)):
        gradient += residual[r]
        bend += curve[r]
    by = gradient / bend if bend > 0.0 else 0.0
    for r in range(len(curve)):
        residual[r] -= curve[r] * by
    return by, by * gradient


@inner
def _pass(ones: Ones, rows: Rows, b: np.ndarray, chosen: IndexArray, n: int) -> float:
    """Every chosen coefficient to its best place, one after the other; the largest gain among them."""
    residual, curve = rows.residual, rows.curve
    by, most = _shift(curve, residual)
    b[len(b) - 1].value += by
    for q in range(n):
        c = b[chosen[q]]
        pull, place = c.value * c.curve + _sum(ones, chosen[q], residual), 0.0
        if abs(pull) > c.penalty:
            place = (pull - math.copysign(c.penalty, pull)) / (c.curve + c.ridge)
        by = place - c.value
        if by != 0.0:
            _add(ones, chosen[q], -by, curve, residual)
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
        m = np.int64(0)
        for q in range(n):
            if b[working[q]].value != 0.0:
                active[m] = working[q]
                m += 1
        for _ in range(_PASSES):
            if _pass(ones, rows, b, active, m) < enough:
                break
        most = _pass(ones, rows, b, working, n)


@inner
def _follow(ones: Ones, rows: Rows, b: np.ndarray, least: float) -> float:
    """The inputs after a Newton step, and back by half of it as often as it went too far; the objective there."""
    z, before, by = rows.z, rows.before, b[len(b) - 1].value - b[len(b) - 1].before
    for r in range(len(z)):
        before[r] = z[r]
        z[r] += by
    for j in range(len(b) - 1):
        if b[j].value != b[j].before:
            _add(ones, j, b[j].value - b[j].before, rows.one, z)
    loss = _objective(rows, b)
    for _ in range(_HALVES):
        if loss <= least:
            break
        for r in range(len(z)):
            z[r] = 0.5 * (z[r] + before[r])
        for j in range(len(b)):
            b[j].value = 0.5 * (b[j].value + b[j].before)
        loss = _objective(rows, b)
    return loss


@kernel
def regress(
    ones: Ones, rows: Rows, b: np.ndarray, working: IndexArray, n: int, active: IndexArray, tol: float
) -> float:
    """The regression of y on the first columns; `b`, of coefficient_t, has those of the columns and then the intercept:
    where to start, and what is found. The first n of `working` are not zero. The least loss, with its penalties, is
    returned; `tol` is the gain of a step that ends it.
    """
    least = _follow(ones, rows, b, np.inf)  # from the coefficients before, zero, to those where to start
    for turn in range(_ROUNDS):
        for step in range(_STEPS):
            _expand(rows)
            if step == 0:  # columns whose gradient is larger than their penalty join the working set
                known = n
                for j in range(len(b) - 1):
                    if not b[j].inside and abs(_sum(ones, j, rows.residual)) > _SLACK * b[j].penalty:
                        b[j].inside, working[n] = 1, j
                        n += 1
                if turn > 0 and n == known:
                    return least
            for q in range(n):
                b[working[q]].curve = _sum(ones, working[q], rows.curve) + 1e-9
            for j in range(len(b)):
                b[j].before = b[j].value
            _descend(ones, rows, b, working, n, active, tol)
            loss = _follow(ones, rows, b, least)
            gain, least = least - loss, loss
            if gain < tol:
                break
    return least
