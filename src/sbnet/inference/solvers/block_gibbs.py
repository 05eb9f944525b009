"""Gibbs sampling of missing values, a whole cell at a time: each is drawn from all its values, given everything else.

A sampler that moves one unit at a time would have to leave a category before it can enter another; drawn as one, a cell
goes from any value to any other. Two columns that say the same would still hold each other; so chains start from the
particles of sequential Monte Carlo, which are in all states that the evidence leaves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from sbnet._types import HIDDEN, BoolArray, FloatArray, IndexArray, States
from sbnet.inference.equal_rows import first_equal
from sbnet.inference.solvers.particles import particles, seeds_of_rows
from sbnet.inference.solvers.places import Place
from sbnet.model.network import Network
from sbnet.parallel.blocks import row_blocks
from sbnet.questions.ties import blocks

CHAINS = 32
"""Chains of a batch."""
_PARTICLES, _SWEEPS = 256, 2
"""Particles that the chains of a batch start from; sweeps, of which all but the first count."""
_FIRST, _BATCHES, _ENOUGH = 4, 32, 0.01
"""Batches at least and at most, and the standard error that is small enough."""


@dataclass(frozen=True, eq=False)
class _Block:
    """Units that are drawn together, the rows where they are not observed, and the units whose terms they change.

    Where some of the units are observed, only the states that agree with them are open.
    """

    place: Place
    rows: IndexArray
    changed: IndexArray
    open: BoolArray

    @classmethod
    def of(cls, network: Network, place: Place, states: States) -> _Block:
        graph = network.graph
        children = [graph.child[slice(*graph.child_indptr[j : j + 2])] for j in place.units]
        rows = np.flatnonzero((states[:, place.units] == HIDDEN).any(axis=1))
        own = states[np.ix_(rows, place.units)][:, None, :]
        agree = ((own == place.codes) | (own == HIDDEN)).all(axis=2)
        agree |= ~agree.any(axis=1, keepdims=True)  # what contradicts itself is left to its probability
        return cls(place, rows, np.unique(np.concatenate([place.units, *children])), agree)


@dataclass(frozen=True, eq=False)
class Chains:
    """One chain for each row: the state of every unit, 0.0 or 1.0. They are moved in place.

    Blocks are units that are tied to each other, or single ones.
    """

    on: FloatArray
    blocks: tuple[_Block, ...]

    @classmethod
    def at(cls, network: Network, states: States, places: Sequence[Place], start: States) -> Chains:
        """From given states of all units; the places hold every unit."""
        found = [_Block.of(network, place, states) for place in places if len(place.units)]
        return cls(start.astype(np.float64), tuple(block for block in found if len(block.rows)))

    def sweep(self, network: Network, uniforms: FloatArray) -> list[FloatArray]:
        """Draw every block in every row, by numbers between 0 and 1, blocks by rows.

        The probabilities of the values of each block, given everything else, are returned.
        """
        weight = network.weight_matrix()
        z = self.on @ weight.T + network.bias
        found = []
        for block, numbers in zip(self.blocks, uniforms, strict=True):
            own, codes = block.place.units, block.place.codes.astype(np.float64)
            fan = weight[np.ix_(block.changed, own)].T
            before = self.on[np.ix_(block.rows, own)]
            probability = self._probabilities(z, block, before, codes, fan)
            draw = numbers[block.rows]
            value = np.minimum((probability.cumsum(axis=1) <= draw[:, None]).sum(axis=1), len(codes) - 1)
            self.on[np.ix_(block.rows, own)] = codes[value]
            z[np.ix_(block.rows, block.changed)] += (codes[value] - before) @ fan
            found.append(probability)
        return found

    def _probabilities(
        self, z: FloatArray, block: _Block, before: FloatArray, codes: FloatArray, fan: FloatArray
    ) -> FloatArray:
        """Of each value of a block: what changes in ln P(S) are the terms of its own units and of their children."""
        places = np.ix_(block.rows, block.changed)
        rest, on = z[places] - before @ fan, self.on[places]
        mine, logs = np.searchsorted(block.changed, block.place.units), np.empty((len(on), len(codes)))
        for k, code in enumerate(codes):
            x = rest + code @ fan
            on[:, mine] = code
            logs[:, k] = (on * x - np.maximum(x, 0.0) - np.log1p(np.exp(-np.abs(x)))).sum(axis=1)
        logs[~block.open] = -np.inf
        logs = np.exp(logs - logs.max(axis=1, keepdims=True))
        probability: FloatArray = logs / logs.sum(axis=1, keepdims=True)
        return probability


class Averages(NamedTuple):
    """Posterior means of all units, rows by units; their standard errors; how many chains each row has had."""

    means: FloatArray
    error: FloatArray
    chains: IndexArray


def block_means(network: Network, states: States) -> Averages:
    """Means of the units of a network whose ties leave blocks (see :func:`sbnet.questions.ties.blocks`), from chains.

    They are averages of conditional probabilities over independent batches of chains, as many as a row needs for a
    standard error of 0.01, within limits. The answer for a row depends on nothing but the row.
    """
    first = first_equal(states)
    each = np.unique(first)
    found = _averaged(network, states[each])
    back = np.searchsorted(each, first)
    return Averages(found.means[back], found.error[back], found.chains[back])


def _averaged(network: Network, states: States) -> Averages:
    own = blocks(network)
    assert own is not None
    places = [Place("", block.units, block.codes, ()) for block in own]
    n = len(states)
    sums, squares, count = np.zeros(states.shape), np.zeros(states.shape), np.zeros(n, np.int64)
    active = np.flatnonzero((states == HIDDEN).any(axis=1))
    for batch in range(_BATCHES):
        for part in row_blocks(len(active), CHAINS * network.n_units):
            rows = active[part]
            found = _batch(network, states[rows], places, batch)
            sums[rows], squares[rows] = sums[rows] + found, squares[rows] + found**2
        count[active] = batch + 1
        if batch + 1 >= _FIRST:
            active = active[_error(sums[active], squares[active], batch + 1).max(axis=1) > _ENOUGH]
    times = np.maximum(count, 1)[:, None]
    means = np.where(states == HIDDEN, sums / times, states)
    return Averages(means, _error(sums, squares, np.maximum(count, 2)[:, None]), count * CHAINS)


def _error(sums: FloatArray, squares: FloatArray, n: Any) -> FloatArray:
    """The standard error of the mean of n batches."""
    error: FloatArray = np.sqrt(np.maximum(squares / n - (sums / n) ** 2, 0.0) / (n - 1))
    return error


def _batch(network: Network, states: States, places: Sequence[Place], number: int) -> FloatArray:
    """Means of all units over some chains, rows by units. All rows share their random numbers."""
    n, seeds = len(states), seeds_of_rows(number, states)
    drawn = particles(network, states, seeds, number=_PARTICLES, draws=CHAINS).drawn
    chains = Chains.at(network, np.repeat(states, CHAINS, axis=0), places, drawn.reshape(n * CHAINS, -1))
    rng, sums = np.random.default_rng(number), np.zeros(chains.on.shape)
    number_of = {id(place): k for k, place in enumerate(places)}
    for sweep in range(_SWEEPS):
        uniforms = np.tile(rng.random((len(places), CHAINS)), n)
        found = chains.sweep(network, uniforms[[number_of[id(block.place)] for block in chains.blocks]])
        for block, probability in zip(chains.blocks, found, strict=True) if sweep else ():
            sums[np.ix_(block.rows, block.place.units)] += probability @ block.place.codes
    means: FloatArray = (sums / (_SWEEPS - 1)).reshape(n, CHAINS, -1).mean(axis=1)
    return means
