"""Rows completed by particles, where columns have two states each."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from sbnet._types import FloatArray, IndexArray, States
from sbnet.estimators._rows import columns, place
from sbnet.inference import infer_many
from sbnet.inference.results import warn_of_impossible
from sbnet.inference.solvers.particles import Particles, average, particles, seeds_of_places, suits
from sbnet.inference.solvers.places import Place
from sbnet.model.network import Network

_T = TypeVar("_T", bound=np.generic)


@dataclass(frozen=True)
class Completion:
    """Networks whose units have the names of columns, and how many particles each row gets, from which seed."""

    networks: Sequence[Network]
    names: tuple[str, ...]
    number: int
    seed: int
    executor: Executor

    def means(self, cells: States) -> FloatArray:
        """Posterior means, rows by columns."""
        parts = [self._averaged(network, place(network, cells, self.names)) for network in self.networks]
        values = [self._columns(network, part.means) for network, part in zip(self.networks, parts, strict=True)]
        if len(parts) == 1:
            return values[0]
        return np.asarray(together(np.array(values), np.array([part.log_p for part in parts]), None))

    def draw(self, cells: States) -> FloatArray:
        """Every row completed once, rows by columns. Equal rows are drawn apart, by their numbers."""
        parts = []
        for k, network in enumerate(self.networks):
            states, seeds = place(network, cells, self.names), seeds_of_places(self.seed + k, len(cells))
            parts.append(particles(network, states, seeds, number=self.number, draws=1, executor=self.executor))
        values = [self._columns(n, part.drawn[:, 0]) for n, part in zip(self.networks, parts, strict=True)]
        if len(parts) > 1:
            log_p, rng = np.array([part.log_p for part in parts]), np.random.default_rng(self.seed)
            return np.asarray(together(np.array(values), log_p, rng), dtype=np.float64)
        return values[0].astype(np.float64)

    def probabilities(self, states: States, places: Sequence[Place]) -> list[FloatArray]:
        """Probabilities of the values of each column, rows by values, given the states of the first network's units."""
        means = self._averaged(self.networks[0], states).means
        on = [means[:, place.units[0]] for place in places]
        return [np.column_stack([1.0 - one, one]) for one in on]

    def _averaged(self, network: Network, states: States) -> Particles:
        """Means of particles; where units are not sigmoid units, those of mean field theory."""
        if suits(network):
            return average(network, states, number=self.number, seed=self.seed, executor=self.executor)
        found = infer_many(network, states, executor=self.executor, progress=False)
        found = warn_of_impossible(found)
        return Particles(found.means, found.bound, np.empty((len(states), 0, network.n_units), np.int8))

    def _columns(self, network: Network, of_units: NDArray[_T]) -> NDArray[_T]:
        return of_units[:, columns(network, self.names)]


def chosen(bounds: FloatArray, rng: np.random.Generator | None) -> IndexArray:
    """For each row a network: the likeliest, or one that is drawn by how likely they are."""
    share = softmax(bounds, axis=0)
    if rng is None:
        return np.asarray(share.argmax(axis=0), dtype=np.int64)
    drawn: IndexArray = (share.cumsum(axis=0) < rng.random(share.shape[1])).sum(axis=0)
    return np.minimum(drawn, len(share) - 1)


def together(values: FloatArray, bounds: FloatArray, rng: np.random.Generator | None) -> Any:
    """Values of each network, rows by columns, as one: their mean, or those of one network for each row."""
    if rng is not None:
        return values[chosen(bounds, rng), np.arange(values.shape[1])]
    return np.einsum("kr,krc->rc", softmax(bounds, axis=0), values)
