"""The rows of a table in the one form that learning and inference take, and their places in a network."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sbnet._types import HIDDEN, BoolArray, FloatArray, IndexArray, States
from sbnet.network import Network


@dataclass(frozen=True)
class Rows:
    """Cells of 0, 1 or -1 (not observed), a weight for each row and a name for each column."""

    cells: States
    weights: FloatArray
    names: tuple[str, ...]

    @cached_property
    def unseen(self) -> BoolArray:
        """Columns without a single observed cell."""
        found: BoolArray = (self.cells == HIDDEN).all(axis=0)
        return found

    def keep(self, chosen: BoolArray) -> Rows:
        """Some of the rows."""
        return Rows(self.cells[chosen], self.weights[chosen], self.names)


def columns(network: Network, names: tuple[str, ...]) -> IndexArray:
    """The units that stand for the columns of a table."""
    return np.array([network.index(name) for name in names], dtype=np.int64)


def place(network: Network, cells: States, names: tuple[str, ...]) -> States:
    """The cells in the places of their units; everything else is hidden."""
    states: States = np.full((len(cells), network.n_units), HIDDEN, dtype=np.int8)
    states[:, columns(network, names)] = cells
    return states
