"""Gibbs sampling of missing cells, a whole cell at a time: each is drawn from all its values, given everything else.

A sampler that moves one unit at a time would have to leave a category before it can enter another; drawn as one, a cell
goes from any value to any other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sbnet._types import HIDDEN, FloatArray, IndexArray, States
from sbnet.estimators._places import BINARY, Place
from sbnet.network import Network
from sbnet.probability import sample

BURN_IN, SWEEPS = 15, 40
"""Sweeps before a chain counts, and sweeps that are averaged."""


@dataclass(frozen=True, eq=False)
class _Block:
    """Units that are drawn together, the rows where they are not observed, and the units whose terms they change."""

    place: Place
    rows: IndexArray
    changed: IndexArray

    @classmethod
    def of(cls, network: Network, place: Place, states: States) -> _Block:
        graph = network.graph
        children = [graph.child[slice(*graph.child_indptr[j : j + 2])] for j in place.units]
        rows = np.flatnonzero(states[:, place.units[0]] == HIDDEN)
        return cls(place, rows, np.unique(np.concatenate([place.units, *children])))


@dataclass(frozen=True, eq=False)
class Chains:
    """One chain for each row: the state of every unit, 0.0 or 1.0. They are moved in place.

    Blocks are hidden units, one by one, and the columns of the table.
    """

    on: FloatArray
    blocks: tuple[_Block, ...]

    @classmethod
    def begin(
        cls, network: Network, states: States, places: Sequence[Place], rng: np.random.Generator | None
    ) -> Chains:
        """From the network's own probabilities, parents first, with what is observed in its place.

        Without a generator everything that is not observed starts at 0.
        """
        seen = np.concatenate([place.units for place in places])
        hidden = np.setdiff1d(np.arange(network.n_units), seen)
        alone = [Place(network.names[j], np.array([j]), BINARY, ("0", "1")) for j in hidden]
        found = [_Block.of(network, place, states) for place in (*alone, *places) if len(place.units)]
        start = np.maximum(states, 0) if rng is None else sample(network, len(states), rng=rng, do=states)
        return cls(start.astype(np.float64), tuple(block for block in found if len(block.rows)))

    @property
    def states(self) -> States:
        """The states of all units, rows by units."""
        return self.on.astype(np.int8)

    def run(self, network: Network, rng: np.random.Generator, sweeps: int = BURN_IN) -> Chains:
        """Some sweeps, with random numbers of its own for each row."""
        for _ in range(sweeps):
            self.sweep(network, rng.random((len(self.blocks), len(self.on))))
        return self

    def sweep(self, network: Network, uniforms: FloatArray) -> list[FloatArray]:
        """Draw every block in every row, by numbers between 0 and 1, blocks by rows; or one for all rows.

        The probabilities of the values of each block, given everything else, are returned.
        """
        weight = network.weight_matrix()
        z = self.on @ weight.T + network.bias
        found = []
        for block, numbers in zip(self.blocks, uniforms, strict=True):
            own, codes = block.place.units, block.place.codes.astype(np.float64)
            fan = weight[np.ix_(block.changed, own)].T
            before = self.on[np.ix_(block.rows, own)]
            chance = self._chances(z, block, before, codes, fan)
            draw = numbers[block.rows] if len(numbers) > 1 else numbers
            value = np.minimum((chance.cumsum(axis=1) <= draw[:, None]).sum(axis=1), len(codes) - 1)
            self.on[np.ix_(block.rows, own)] = codes[value]
            z[np.ix_(block.rows, block.changed)] += (codes[value] - before) @ fan
            found.append(chance)
        return found

    def _chances(
        self, z: FloatArray, block: _Block, before: FloatArray, codes: FloatArray, fan: FloatArray
    ) -> FloatArray:
        """Of each value of a block: what changes in ln P(S) are the terms of its own units and of their children."""
        cells = np.ix_(block.rows, block.changed)
        rest, on = z[cells] - before @ fan, self.on[cells]
        mine, logs = np.searchsorted(block.changed, block.place.units), np.empty((len(on), len(codes)))
        for k, code in enumerate(codes):
            x = rest + code @ fan
            on[:, mine] = code
            logs[:, k] = (on * x - np.maximum(x, 0.0) - np.log1p(np.exp(-np.abs(x)))).sum(axis=1)
        logs = np.exp(logs - logs.max(axis=1, keepdims=True))
        chance: FloatArray = logs / logs.sum(axis=1, keepdims=True)
        return chance


def cell_probabilities(network: Network, states: States, places: Sequence[Place]) -> list[FloatArray]:
    """Rows by values, for each place: the probability of each value where the cell is missing; 0 elsewhere.

    The averages of the conditional probabilities over the sweeps of a chain. All rows share their random numbers, so
    that the answer for a row depends on nothing but the row.
    """
    rng, chains = np.random.default_rng(0), Chains.begin(network, states, places, None)
    sums = [np.zeros((len(block.rows), len(block.place.codes))) for block in chains.blocks]
    for k in range(BURN_IN + SWEEPS):
        found = chains.sweep(network, rng.random((len(chains.blocks), 1)))
        if k >= BURN_IN:
            sums = [total + chance for total, chance in zip(sums, found, strict=True)]
    every = [np.zeros((len(states), len(place.codes))) for place in places]
    number = {id(place): k for k, place in enumerate(places)}
    for block, total in zip(chains.blocks, sums, strict=True):
        if id(block.place) in number:
            every[number[id(block.place)]][block.rows] = total / SWEEPS
    return every
