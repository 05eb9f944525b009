"""Rows with holes, where every hidden unit is a switch of a column: estimates of ln P by sequential Monte Carlo.

Column by column, parents first, every particle draws what is missing and is weighed by what is observed, as in
:mod:`sbnet.kernels.particles`. But switches are summed over, not drawn: fewer particles do, and they are sooner done.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from sbnet._types import FloatArray, IndexArray, Model, States
from sbnet.kernels._compile import bare, kernel, vector
from sbnet.kernels.particles import (
    _FEW,
    _LEAST,
    Room,
    Seeds,
    _add,
    _after,
    _choose,
    _draw,
    _multiply,
    _set,
    _sigmoid,
    _sum,
    _sum_of_squares,
)
from sbnet.kernels.random import GOLDEN, uniform
from sbnet.kernels.root_slots import Grid, Table
from sbnet.kernels.switches import Switched


class _Holes(NamedTuple):
    """States of missing cells, holes by particles, and which hole a unit is, or -1; inputs of switches by particle."""

    on: Grid
    slot: IndexArray
    switch: Grid


@vector
def _shift(x: FloatArray, by: float, sign: float, out: FloatArray) -> None:
    for m in range(np.uint64(len(out))):
        out[m] = sign * (x[m] + by)


@vector
def _gather(chance: FloatArray, share: FloatArray, out: FloatArray) -> None:
    for m in range(np.uint64(len(out))):
        out[m] += chance[m] * share[m]


@vector
def _less(q: FloatArray, share: FloatArray) -> None:
    for m in range(np.uint64(len(share))):
        share[m] *= 1.0 - q[m]


@bare
def _input(model: Model, bias: FloatArray, i: int, holes: _Holes, out: FloatArray) -> None:
    _set(out, bias[i])
    for e in range(model.indptr[i], model.indptr[i + 1]):
        j = holes.slot[model.parent[e]]
        if j >= 0:
            _add(out, model.weight[e], holes.on[j])


@bare
def _chances(
    model: Model, columns: Switched, c: int, bias: FloatArray, sign: float, holes: _Holes, room: Room, out: FloatArray
) -> None:
    """The chance, by particle, of a column to be 1, or with the sign -1 to be 0."""
    begin, n = columns.first[c], columns.first[c + 1] - columns.first[c]
    for w in range(n):
        _input(model, bias, columns.switch[begin + w], holes, room.x)
        _sigmoid(room.x, holes.switch[w])
    _input(model, bias, columns.unit[c], holes, room.x)
    _set(out, 0.0)
    for s in range(2**n):
        _set(room.new, 1.0)
        by = 0.0
        for w in range(n):
            if (s >> w) & 1:
                by += columns.strength[begin + w]
                _multiply(room.new, holes.switch[w])
            else:
                _less(holes.switch[w], room.new)
        _shift(room.x, by, sign, room.chance)
        _sigmoid(room.chance, room.chance)
        _gather(room.chance, room.new, out)


@bare
def _row(
    model: Model, columns: Switched, row: States, bias: FloatArray, holes: _Holes, room: Room, p: FloatArray,
    seed: np.uint64,
) -> float:  # fmt: skip
    n, number, log_p, last = 0, len(p), 0.0, -1
    for c in range(len(columns.unit)):
        holes.slot[columns.unit[c]] = -1
        last = c if row[columns.unit[c]] >= 0 else last
    _set(room.weight, 1.0)
    for c in range(last + 1):  # what comes after the last observed cell changes nothing
        i = columns.unit[c]
        _chances(model, columns, c, bias, -1.0 if row[i] == 0 else 1.0, holes, room, p)
        if row[i] < 0:
            _draw(p, seed, holes.on[n])
            seed, holes.slot[i], n = _after(seed, room), n, n + 1
            continue
        _multiply(room.weight, p)
        total = max(_sum(room.weight), number * _LEAST)
        if total * total < _FEW * number * _sum_of_squares(room.weight) or total < 1e-100:
            log_p += math.log(total / number)
            seed += GOLDEN
            _choose(holes.on, n, total, room, uniform(seed))
            _set(room.weight, 1.0)
    return log_p + math.log(max(_sum(room.weight) / number, _LEAST))


@kernel
def filter_rows(
    model: Model, columns: Switched, most: int, rows: Table, bias: Grid, seeds: Seeds, number: int, log_p: FloatArray
) -> None:
    """Estimates of ln P of rows from so many particles each; columns stand as in the network, parents first."""
    room = Room(np.zeros(number), np.zeros(number), np.zeros(number), np.zeros(number), np.zeros(number, np.int64))
    shape = len(columns.unit), number
    holes = _Holes(np.zeros(shape), np.full(rows.shape[1], -1), np.zeros((max(most, 1), number)))
    p = np.zeros(number)
    for r in range(len(rows)):
        log_p[r] = _row(model, columns, rows[r], bias[r], holes, room, p, seeds[r])
