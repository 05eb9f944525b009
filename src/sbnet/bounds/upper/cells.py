"""Conditioning: the states of the hidden units in cells, each with an upper bound of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from sbnet._types import BoolArray, FloatArray, IndexArray, States
from sbnet.evidence import absorb
from sbnet.kernels.upper_rows import upper_rows
from sbnet.network import Network

BLOCK = 500_000
"""Numbers in an array of one block of rows: 4 MB."""

_CANDIDATES = 3


class Settings(NamedTuple):
    limits: tuple[int, int, int]
    tol: float


class Cells(NamedTuple):
    """Extended evidence, its bounds, the parameters that gave them, and what a split at each unit promises."""

    states: States
    bound: FloatArray
    exact: BoolArray
    edge: FloatArray
    unit: FloatArray
    score: FloatArray


def solve(network: Network, settings: Settings, states: States, start: Cells | None = None) -> Cells:
    n = len(states)
    cells = Cells(
        states,
        np.empty(n),
        np.empty(n, np.bool_),
        np.full((n, network.n_edges), np.nan) if start is None else start.edge,
        np.full((n, network.n_units, 2), np.nan) if start is None else start.unit,
        np.empty((n, network.n_units)),
    )
    upper_rows(
        network.model,
        states,
        absorb(network, states),
        settings.limits,
        settings.tol,
        *cells[3:5],
        *cells[1:3],
        cells.score,
    )
    return cells


def pick(cells: Cells, rows: Sequence[int] | IndexArray) -> Cells:
    return Cells._make(part[rows] for part in cells)


def split_cells(network: Network, settings: Settings, cells: Cells, units: Sequence[int]) -> Cells:
    """Each cell k split at ``units[k]``: first the halves where it is 0, then those where it is 1."""
    n = len(units)
    start = Cells._make(np.concatenate([part, part]) for part in cells)
    for k, i in enumerate(units):
        start.states[k, i], start.states[n + k, i] = 0, 1
        for r in (k, n + k):  # observed now: the slopes of its factor are other ones
            start.unit[r, i, 0] = np.nan
            start.edge[r, network.indptr[i] : network.indptr[i + 1]] = np.nan
    return solve(network, settings, start.states, start)


def split_all(
    network: Network, settings: Settings, cells: Cells, units: Sequence[int]
) -> tuple[FloatArray, BoolArray, IndexArray]:
    """Bounds of the cells when each is split at all units, whether they are exact, and the number of parts."""
    n = len(cells.bound)
    if not units:
        return cells.bound, cells.exact, np.ones(n, np.int64)
    if n > 1 and 2 * n * network.n_edges > BLOCK:  # one half after the other, to save memory
        halves = [split_all(network, settings, pick(cells, k), units) for k in np.array_split(np.arange(n), 2)]
        return tuple(np.concatenate(parts) for parts in zip(*halves, strict=True))  # type: ignore[return-value]
    children = split_cells(network, settings, cells, [units[0]] * n)
    bound, exact, count = split_all(network, settings, children, units[1:])
    both = np.logaddexp(bound[:n], bound[n:])
    better = both < cells.bound
    return (
        np.where(better, both, cells.bound),
        np.where(better, exact[:n] & exact[n:], cells.exact),
        np.where(better, count[:n] + count[n:], 1),
    )


def _gain(before: float, after: float) -> float:
    return float(np.exp(before) - np.exp(min(after, before)))


def split_best(network: Network, settings: Settings, root: Cells, n_cells: int) -> tuple[float, bool, int, list[int]]:
    """Split cells one after the other, each time where it lowers the sum most; also the units that were split."""
    leaves, used = [_Leaf(root, *_best_split(network, settings, root))], set[int]()
    while len(leaves) < n_cells:
        top = max(leaf.cell.bound[0] for leaf in leaves)
        gains = [_gain(leaf.cell.bound[0] - top, leaf.split_bound - top) for leaf in leaves]
        best = int(np.argmax(gains))
        if not gains[best] > 0.0:
            break
        leaf = leaves.pop(best)
        used.add(leaf.unit)
        for k in range(2):
            child = pick(leaf.children, [k])
            leaves.append(_Leaf(child, *_best_split(network, settings, child)))
    bounds = np.array([leaf.cell.bound[0] for leaf in leaves])
    total = min(float(np.logaddexp.reduce(bounds)), float(root.bound[0]))
    return total, all(leaf.cell.exact[0] for leaf in leaves), len(leaves), list(used)


class _Leaf(NamedTuple):
    """A cell, the best way to split it, and the bound that this would give."""

    cell: Cells
    unit: int
    children: Cells
    split_bound: float


def _best_split(network: Network, settings: Settings, cell: Cells) -> tuple[int, Cells, float]:
    """Try the units that promise most, and keep the best."""
    units = [int(i) for i in np.argsort(-cell.score[0], kind="stable")[:_CANDIDATES] if cell.score[0, i] > 0.0]
    if not units:
        return -1, cell, float(cell.bound[0])
    children = split_cells(network, settings, pick(cell, [0] * len(units)), units)
    both = np.logaddexp(children.bound[: len(units)], children.bound[len(units) :])
    k = int(np.argmin(both))
    return units[k], pick(children, [k, len(units) + k]), float(both[k])
