"""What missing cells are filled with: means or draws from many complete states of a row, for one network or several."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sbnet._types import FloatArray, States
from sbnet.estimators import _mixtures
from sbnet.estimators._rows import columns, place
from sbnet.inference.equal_rows import first_equal
from sbnet.inference.particles import Particles, particles, seeds_of_places, seeds_of_rows
from sbnet.network import Network


@dataclass(frozen=True)
class Crowds:
    """Networks whose units have the names of columns, and how many particles each row gets, from which seed."""

    networks: Sequence[Network]
    names: tuple[str, ...]
    number: int
    seed: int
    threads: int | None

    def means(self, cells: States) -> FloatArray:
        """Posterior means, rows by columns. Equal rows are sampled once, and have one answer wherever they stand."""
        first = first_equal(cells)
        each = np.unique(first)
        parts = [self._sampled(network, cells[each], 0, None) for network in self.networks]
        values = np.array([p.means[:, columns(n, self.names)] for n, p in zip(self.networks, parts, strict=True)])
        log_p = np.array([part.log_p for part in parts])
        found: FloatArray = values[0] if len(parts) == 1 else _mixtures.together(values, log_p, None)
        return found[np.searchsorted(each, first)]

    def draw(self, cells: States) -> FloatArray:
        """Every row completed once, rows by columns. Equal rows are drawn apart, by their numbers."""
        parts = [self._sampled(network, cells, 1, k) for k, network in enumerate(self.networks)]
        drawn = [p.drawn[:, 0, columns(n, self.names)] for n, p in zip(self.networks, parts, strict=True)]
        if len(parts) == 1:
            return drawn[0].astype(np.float64)
        log_p, rng = np.array([part.log_p for part in parts]), np.random.default_rng(self.seed)
        return np.asarray(_mixtures.together(np.array(drawn), log_p, rng), dtype=np.float64)

    def _sampled(self, network: Network, cells: States, draws: int, turn: int | None) -> Particles:
        states = place(network, cells, self.names)
        seeds = seeds_of_rows(self.seed, states) if turn is None else seeds_of_places(self.seed + turn, len(states))
        return particles(network, states, seeds, number=self.number, draws=draws, threads=self.threads)
