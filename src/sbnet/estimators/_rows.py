"""The rows of a table as learning and inference take them, and the units of a network that stand for its columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from sbnet._types import HIDDEN, BoolArray, FloatArray, IndexArray, States
from sbnet.learning.state_networks import StateRows
from sbnet.model.network import Network
from sbnet.tables.schema import Column


@dataclass(frozen=True)
class Rows:
    """Cells of 0, 1 or -1 (not observed), a weight for each row and a name for each column.

    With `label_last` the last column stays the last one, whatever the order of the others. Where columns have more than
    two states `variables` has all of them, by name.
    """

    cells: States
    weights: FloatArray
    names: tuple[str, ...]
    label_last: bool = False
    variables: Mapping[str, Column] = field(default_factory=dict)

    @cached_property
    def unseen(self) -> BoolArray:
        """Columns without a single observed cell."""
        found: BoolArray = (self.cells == HIDDEN).all(axis=0)
        return found

    @property
    def has_missing(self) -> bool:
        """Is there a cell that is not observed?"""
        return bool((self.cells == HIDDEN).any())

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

    def orders(self, generator: np.random.Generator) -> dict[str, Rows]:
        """The columns in other orders: backwards, those of the largest entropy first, at random."""
        n = len(self.names) - self.label_last
        undecided = np.argsort([-_entropy(self.cells[:, k], self.weights) for k in range(n)], kind="stable")
        places = {"backwards": range(n)[::-1], "undecided first": undecided, "at random": generator.permutation(n)}
        rest = self.names[n:]
        return {name: self.named((*(self.names[k] for k in own), *rest)) for name, own in places.items()}

    def with_states(self) -> StateRows:
        """The rows as those of `variables`."""
        own = [self.variables[name] for name in self.names]
        states, ordered = tuple(column.states for column in own), np.array([column.ordered for column in own])
        label = len(own) - 1 if self.label_last else None
        return StateRows(self.cells, self.weights, self.names, states, ordered, label)


def _entropy(cells: States, weights: FloatArray) -> float:
    """The entropy of the states of a column, as often as they were observed."""
    seen = cells != HIDDEN
    count = np.bincount(cells[seen], weights[seen])
    share = count[count > 0.0] / count.sum()
    return float(-share @ np.log(share))


def columns(network: Network, names: tuple[str, ...]) -> IndexArray:
    """The units that stand for the columns of a table."""
    return np.array([network.index(name) for name in names], dtype=np.int64)


def place(network: Network, cells: States, names: tuple[str, ...]) -> States:
    """The cells in the places of their units; everything else is hidden."""
    states: States = np.full((len(cells), network.n_units), HIDDEN, dtype=np.int8)
    states[:, columns(network, names)] = cells
    return states
