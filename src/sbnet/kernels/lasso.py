"""Logistic regressions with an L1 penalty, and perhaps an L2 one: Newton steps, each by coordinate descent over few.

The columns of the design are binary and sparse, so that a coordinate costs as many operations as its column has ones.
What is minimised is sum_r w_r [ln(1 + e^z_r) - y_r z_r] + sum_j (penalty_j |b_j| + ridge_j b_j^2 / 2), with an
intercept that is free.
"""

from __future__ import annotations

import math
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sbnet._types import BoolArray, FloatArray, IndexArray
from sbnet.kernels._compile import bare, kernel, vector

Places: TypeAlias = NDArray[np.int32]

_ROUNDS, _STEPS, _CYCLES, _PASSES, _HALVES = 20, 30, 4, 4, 12
_FLAT = 1e-6  # the least curvature of a row: rows that are certain still count a little
_SLACK = 1.001  # how far a slope may pass its penalty before its coefficient is let in
_INNER = 0.05  # coordinate descent ends when it gains this share of what its first pass gained


class Ones(NamedTuple):
    """Where the ones of each column stand: ``row[begin[j]:begin[j + 1]]``."""

    begin: IndexArray
    row: Places


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


@bare
def _shift(rows: Places, by: float, of: Rows) -> None:
    """A coefficient has moved: inputs and residuals of the rows where its column is one follow."""
    for t in range(len(rows)):
        r = np.uint64(rows[t])
        of.z[r] += by
        of.residual[r] -= of.curve[r] * by


@bare
def _loss(of: Rows) -> float:
    total = 0.0
    for r in range(len(of.z)):
        z = of.z[r]
        total += of.weight[r] * (max(z, 0.0) + math.log1p(math.exp(-abs(z))) - of.y[r] * z)
    return total


@bare
def _expand(of: Rows) -> None:
    """The quadratic around the present input: residuals and curvatures."""
    for r in range(len(of.z)):
        t = math.exp(-abs(of.z[r]))
        q = 1.0 / (1.0 + t)
        p = q if of.z[r] >= 0.0 else t * q
        of.residual[r] = of.weight[r] * (of.y[r] - p)
        of.curve[r] = of.weight[r] * max(t * q * q, _FLAT)


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
        of.z[r] += by
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
        rows = ones.row[ones.begin[j] : ones.begin[j + 1]]
        pull = coefficient[j] * curve[j] + _sum_at(rows, of.residual)
        place = 0.0
        if pull > penalty[j]:
            place = (pull - penalty[j]) / (curve[j] + ridge[j])
        elif pull < -penalty[j]:
            place = (pull + penalty[j]) / (curve[j] + ridge[j])
        by = place - coefficient[j]
        if by != 0.0:
            _shift(rows, by, of)
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
def _let_in(ones: Ones, of: Rows, penalty: FloatArray, inside: BoolArray, working: IndexArray, n: int) -> int:
    """Columns whose slope is larger than their penalty join the working set; how many there are now."""
    for j in range(len(penalty)):
        if not inside[j]:
            slope = _sum_at(ones.row[ones.begin[j] : ones.begin[j + 1]], of.residual)
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
    of = Rows(y, weight, np.empty(n), np.empty(n), np.empty(n))
    b, intercept = coefficient[:k], coefficient[k:]
    inputs(ones, coefficient, of.z)
    curve, inside = np.zeros(k), np.zeros(k, np.bool_)
    working, active = np.empty(k, np.int64), np.empty(k, np.int64)
    z, before = np.empty(n), np.empty(k + 1)
    size = 0
    for j in range(k):
        if b[j] != 0.0:
            inside[j] = True
            working[size] = j
            size += 1
    least = _loss(of) + _size(penalty, ridge, b)
    for turn in range(_ROUNDS):
        for step in range(_STEPS):
            _expand(of)
            if step == 0:
                grown = _let_in(ones, of, penalty, inside, working, size)
                if turn > 0 and grown == size:
                    return least
                size = grown
            for q in range(size):
                j = working[q]
                curve[j] = _sum_at(ones.row[ones.begin[j] : ones.begin[j + 1]], of.curve) + 1e-9
            z[:], before[:] = of.z, coefficient
            _descend(ones, of, penalty, ridge, curve, working, size, active, b, intercept, tol)
            loss = _loss(of) + _size(penalty, ridge, b)
            for _ in range(_HALVES):  # a Newton step may go too far
                if loss <= least:
                    break
                of.z[:] = 0.5 * (of.z + z)
                coefficient[:] = 0.5 * (coefficient + before)
                loss = _loss(of) + _size(penalty, ridge, b)
            gain = least - loss
            least = loss
            if gain < tol:
                break
    return least


@kernel
def inputs(ones: Ones, coefficient: FloatArray, z: FloatArray) -> None:
    """The input of each row: the intercept, and the coefficients of the columns that are one there."""
    k = len(coefficient) - 1
    z[:] = coefficient[k]
    for j in range(k):
        if coefficient[j] != 0.0:
            for t in range(ones.begin[j], ones.begin[j + 1]):
                z[ones.row[t]] += coefficient[j]
