"""The rows of a table as learning and inference take them, and the units of a network that stand for its columns.

A column of K values has K - 1 units, each a parent of those after it. At most one of the units of a category is 1: each
has a very negative weight from every unit before it. A unit of a thermometer is 1 only if the one before it is: it has
a very positive weight from that one, and a bias as much lower. All other states then have no probability to speak of,
so the K states that mean a value sum to one, and the likelihood of a network is one over the cells of the table.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from sbnet._types import HIDDEN, BoolArray, FloatArray, IndexArray, States
from sbnet.model.network import Network

STRENGTH = 50.0
"""An impossible state has a probability below e^-50, 2e-22, whatever the weights from other units say."""


@dataclass(frozen=True)
class Group:
    """The units of one column of more than two values, by name, in order; and whether they are a thermometer."""

    units: tuple[str, ...]
    is_thermometer: bool


@dataclass(frozen=True)
class Rows:
    """Cells of 0, 1 or -1 (not observed), a weight for each row and a name for each column.

    `groups` are the columns that stand for one column of more than two values each, if there are such. With
    `label_last` the last column stays the last one, whatever the order of the others.
    """

    cells: States
    weights: FloatArray
    names: tuple[str, ...]
    groups: tuple[Group, ...] = ()
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
        """The columns in a random order; those that stand for one column stay together, and in their order."""
        grouped, n = {unit for group in self.groups for unit in group.units}, len(self.names) - self.label_last
        blocks = [(name,) for name in self.names[:n] if name not in grouped] + [group.units for group in self.groups]
        order = generator.permutation(len(blocks))
        return self.named(tuple(unit for k in order for unit in blocks[k]) + self.names[n:])


def columns(network: Network, names: tuple[str, ...]) -> IndexArray:
    """The units that stand for the columns of a table."""
    return np.array([network.index(name) for name in names], dtype=np.int64)


def place(network: Network, cells: States, names: tuple[str, ...]) -> States:
    """The cells in the places of their units; everything else is hidden."""
    states: States = np.full((len(cells), network.n_units), HIDDEN, dtype=np.int8)
    states[:, columns(network, names)] = cells
    return states


def free(cells: States, group: IndexArray, is_thermometer: bool) -> BoolArray:
    """Rows by units of a group: can the unit still be either, after those before it?"""
    own = cells[:, group]
    before = np.zeros(own.shape, dtype=np.bool_)
    before[:, 1:] = own[:, :-1] == 1 if is_thermometer else np.maximum.accumulate(own[:, :-1] == 1, axis=1)
    if is_thermometer:
        before[:, 0] = True
        return before
    return ~before


def inside(network: Network, groups: tuple[Group, ...]) -> BoolArray:
    """Edges between two units of one column: their weights are fixed."""
    column = np.full(network.n_units, -1)
    for number, group in enumerate(groups):
        column[[network.index(unit) for unit in group.units]] = number
    parent, child = column[network.graph.parent], column[network.graph.child_of_edge]
    same: BoolArray = (parent == child) & (child >= 0)
    return same


def enforce(network: Network, groups: tuple[Group, ...]) -> Network:
    """Set the fixed weights so high that nothing can outweigh them; what is possible keeps its probability."""
    if not groups:
        return network
    graph, fixed = network.graph, inside(network, groups)
    weight, bias = network.weight.copy(), network.bias.copy()
    for group in groups:
        for k, unit in enumerate(group.units[1:], 1):
            i = network.index(unit)
            edges = np.arange(graph.indptr[i], graph.indptr[i + 1])
            own, others = edges[fixed[edges]], edges[~fixed[edges]]
            before = weight[own].sum() if group.is_thermometer else 0.0  # what the bias was lowered by
            strength = STRENGTH + float(np.abs(weight[others]).sum()) + abs(bias[i] + before)
            if group.is_thermometer:
                last = graph.parent[own] == network.index(group.units[k - 1])
                weight[own] = np.where(last, strength, 0.0)
                bias[i] += before - strength
            else:
                weight[own] = -strength
    return network.with_parameters(weight=weight, bias=bias)
