"""Columns with several switches each, and nothing else hidden: likelihoods as products over columns.

With all columns observed, a column and its switches depend on nothing else that is hidden. So the probability of a cell
is a sum over the states of its few switches, each a product of their chances and of a sigmoid.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from sbnet._types import FloatArray, IndexArray
from sbnet.kernels._compile import bare, kernel, vector
from sbnet.kernels.root_slots import MOST, Grid, Table


class Switched(NamedTuple):
    """The units of columns; where the switches of each begin; the units of these, and their weights to the columns."""

    unit: IndexArray
    first: IndexArray
    switch: IndexArray
    strength: FloatArray


class Found(NamedTuple):
    """ln P of each row, NaN where inputs are too large; the chances of its switches, rows by switches."""

    log_p: FloatArray
    on: Grid


class Climb(NamedTuple):
    """A weight for each row; slopes in the inputs of units, by row, and in the weights from switches."""

    row_weight: FloatArray
    by_row: Grid
    strength: FloatArray


class _Cell(NamedTuple):
    """By state of the switches: its probability, and e to minus what it adds to the input; by switch: its chance, and e
    to minus its weight, or plus for a cell that is 0.
    """

    chance: FloatArray
    tilt: FloatArray
    q: FloatArray
    k: FloatArray


@bare
def _too_large(columns: Switched, inputs: FloatArray, c: int) -> bool:
    size = abs(inputs[columns.unit[c]])
    for w in range(columns.first[c], columns.first[c + 1]):
        if abs(inputs[columns.switch[w]]) > MOST:
            return True
        size += abs(columns.strength[w])
    return size > MOST


@bare
def _spread(columns: Switched, inputs: FloatArray, sign: float, c: int, cell: _Cell) -> int:
    """Goes through the states of the switches of a column; their number is returned."""
    n, cell.chance[0], cell.tilt[0] = 1, 1.0, math.exp(-sign * inputs[columns.unit[c]])
    for w in range(columns.first[c], columns.first[c + 1]):
        place = w - columns.first[c]
        cell.q[place], cell.k[place] = _sigmoid(inputs[columns.switch[w]]), math.exp(-sign * columns.strength[w])
        off = _sigmoid(-inputs[columns.switch[w]])  # not 1 - q, which keeps no digits
        for s in range(n):
            cell.chance[n + s], cell.tilt[n + s] = cell.chance[s] * cell.q[place], cell.tilt[s] * cell.k[place]
            cell.chance[s] *= off
        n *= 2
    return n


@bare
def _sigmoid(x: float) -> float:
    t = math.exp(-abs(x))
    return (1.0 if x >= 0.0 else t) / (1.0 + t)


@bare
def _differentiate(
    columns: Switched, r: int, c: int, sign: float, n: int, p: float, cell: _Cell, found: Found, climb: Climb
) -> None:
    """Slopes of ln P of a cell, by the chances of its switches given the cell."""
    weight, own = climb.row_weight[r], 0.0
    for s in range(n):
        u = 1.0 / (1.0 + cell.tilt[s])
        share = cell.chance[s] * u / p
        slope = sign * share * cell.tilt[s] * u
        own += slope
        for w in range(columns.first[c], columns.first[c + 1]):
            if (s >> (w - columns.first[c])) & 1:
                found.on[r, w] += share
                climb.strength[w] += weight * slope
    climb.by_row[r, columns.unit[c]] = weight * own
    for w in range(columns.first[c], columns.first[c + 1]):
        climb.by_row[r, columns.switch[w]] = weight * (found.on[r, w] - cell.q[w - columns.first[c]])


@kernel
def sum_cells(columns: Switched, most: int, inputs: Grid, rows: Table, found: Found, climb: Climb) -> None:
    """Each row's ln P, the chances of its switches, and the slopes; no column has more switches than `most`."""
    cell = _Cell(np.empty(2**most), np.empty(2**most), np.empty(most), np.empty(most))
    for r in range(len(rows)):
        log_p = 0.0
        for c in range(len(columns.unit)):
            if _too_large(columns, inputs[r], c):
                log_p = np.nan
        if math.isnan(log_p):
            found.log_p[r] = log_p
            continue
        for c in range(len(columns.unit)):
            sign = 1.0 if rows[r, columns.unit[c]] == 1 else -1.0
            n, p = _spread(columns, inputs[r], sign, c, cell), 0.0
            for s in range(n):
                p += cell.chance[s] / (1.0 + cell.tilt[s])
            log_p += math.log(p)
            _differentiate(columns, r, c, sign, n, p, cell, found, climb)
        found.log_p[r] = log_p


@vector
def _dot(a: FloatArray, b: FloatArray) -> float:
    found = 0.0
    for r in range(len(a)):
        found += a[r] * b[r]
    return found


@kernel
def edge_slopes(indptr: IndexArray, parent: IndexArray, on: Grid, by_row: Grid, slope: FloatArray) -> None:
    """Slopes in the weights from columns; both of these are units by rows."""
    for i in range(len(by_row)):
        for e in range(indptr[i], indptr[i + 1]):
            slope[e] = _dot(on[parent[e]], by_row[i])
