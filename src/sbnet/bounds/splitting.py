"""Branch and bound: the states of hidden units in cells, split one after the other where most is to be gained.

A cell is a set of states, given by the states of some units. The cells that there are have no state in common and make
up the whole, so that P(V) is the sum of their parts, and sums of bounds are bounds.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import Protocol, Self, TypeVar

import numpy as np

from sbnet.bounds import margins


class Cell(Protocol):
    """A part of the states, with an upper bound on the logarithm of its part of P(V)."""

    @property
    def upper(self) -> float: ...

    def halves(self) -> tuple[Self, Self] | None:
        """The same states in two parts, at the unit that promises most; None if no unit promises anything."""
        ...


C = TypeVar("C", bound=Cell)


def split(root: C, most: int) -> list[C]:
    """Up to `most` cells, each time splitting the one with the largest bound; the largest comes first.

    Halves that have a larger bound together than the whole are not taken, and the whole is not tried again.
    """
    waiting, done, made = [(-root.upper, 0, root)], list[C](), 1
    while waiting and len(waiting) + len(done) < most:
        cell = heapq.heappop(waiting)[2]
        parts = cell.halves()
        if parts is None or np.logaddexp(parts[0].upper, parts[1].upper) > cell.upper:
            done.append(cell)
            continue
        for part in parts:
            heapq.heappush(waiting, (-part.upper, made, part))
            made += 1
    return sorted([*done, *(cell for _, _, cell in waiting)], key=lambda cell: -cell.upper)


def upper(cells: Sequence[Cell]) -> float:
    """An upper bound on ln P(V) from those of all cells, rounding of the sum included."""
    return margins.log_sum_above(np.array([cell.upper for cell in cells]))
