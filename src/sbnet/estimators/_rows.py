"""The rows of a table as learning and inference take them, and the units of a network that stand for its columns."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from sbnet._types import HIDDEN, BoolArray, FloatArray, IndexArray, States
from sbnet.model.network import Network


@dataclass(frozen=True)
class Rows:
    """Cells of 0, 1 or -1 (not observed), a weight for each row and a name for each column.

    With `label_last` the last column stays the last one, whatever the order of the others.
    """

    cells: States
    weights: FloatArray
    names: tuple[str, ...]
    label_last: bool = False

    @cached_property
    def unseen(self) -> BoolArray:
        """Columns without a single observed cell."""
        found: BoolArray = (self.cells == HIDDEN).all(axis=0)
        return found

    def divide(self, fraction: float, rng: np.random.Generator) -> tuple[Rows, Rows]:
        """Rows to learn from and a share of them to hold out, at least one of each."""
        n = len(self.cells)
        out: BoolArray = np.zeros(n, dtype=np.bool_)
        out[rng.permutation(n)[: min(max(1, round(fraction * n)), n - 1)]] = True
        return self.keep(~out), self.keep(out)

    def keep(self, chosen: BoolArray | IndexArray) -> Rows:
        """Some of the rows."""
        return replace(self, cells=self.cells[chosen], weights=self.weights[chosen])

    def named(self, names: tuple[str, ...]) -> Rows:
        """With the columns in this order."""
        place = {name: k for k, name in enumerate(self.names)}
        return replace(self, cells=self.cells[:, [place[name] for name in names]], names=names)

    def shuffled(self, generator: np.random.Generator) -> Rows:
        """The columns in a random order."""
        n = len(self.names) - self.label_last
        return self.named((*(self.names[k] for k in generator.permutation(n)), *self.names[n:]))


def columns(network: Network, names: tuple[str, ...]) -> IndexArray:
    """The units that stand for the columns of a table."""
    return np.array([network.index(name) for name in names], dtype=np.int64)


def place(network: Network, cells: States, names: tuple[str, ...]) -> States:
    """The cells in the places of their units; everything else is hidden."""
    states: States = np.full((len(cells), network.n_units), HIDDEN, dtype=np.int8)
    states[:, columns(network, names)] = cells
    return states
