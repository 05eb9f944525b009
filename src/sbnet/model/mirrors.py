"""Mirrors: units that say what their one parent says, or the opposite, with certainty.

Networks that come from tables have them, where a state and its absence are both needed. Evidence on a mirror is
evidence on what it mirrors. That is taken as exact only where it is so to far less than a rounding, whatever the rest
of the network does: the mirror is surer than all other units together can be.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sbnet._types import HIDDEN, BoolArray, FloatArray, IndexArray, States
from sbnet.kernels import codes as gates
from sbnet.model.network import Network

SURE = 1e6
"""The input of a mirror, both ways; sums of this size are still right to 1e-10 nats."""
_SUREST = -np.log(gates.LEAST)
"""The most that a noisy-OR unit without a cause can be against being on."""
_MARGIN = 100.0


class Mirrors(NamedTuple):
    """Units, their parents, and whether each says the opposite."""

    unit: IndexArray
    parent: IndexArray
    opposite: BoolArray

    def fill(self, means: FloatArray) -> None:
        """Put in the means of mirrors that are not known, from those of their parents."""
        for i, j, turned in zip(*self, strict=True):
            if i >= means.shape[1]:
                continue
            lacking = np.isnan(means[:, i])
            means[lacking, i] = 1.0 - means[lacking, j] if turned else means[lacking, j]


def mirrors(network: Network) -> Mirrors:
    """The mirrors of a network, parents first."""
    known: Mirrors | None = network._cache.get(Mirrors)
    if known is None:
        known = network._cache[Mirrors] = _found(network)
    return known


def _found(network: Network) -> Mirrors:
    if not network.is_binary:
        return Mirrors(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.bool_))
    graph, bias = network.graph, network.bias
    alone = np.flatnonzero((np.diff(graph.indptr) == 1) & (network.gate == gates.SIGMOID) & (np.abs(bias) >= SURE))
    edge = graph.indptr[alone]
    off, on = bias[alone], bias[alone] + network.weight[edge]
    sure = np.flatnonzero((off * on < 0.0) & (np.abs(on) >= SURE))
    rest = np.ones(network.n_units, dtype=np.bool_)
    rest[alone[sure]] = False
    if not sure.size or _against(network, rest) + _MARGIN > SURE:
        sure = sure[:0]
    return Mirrors(alone[sure], graph.parent[edge[sure]], off[sure] > 0.0)


def _against(network: Network, units: BoolArray) -> float:
    """How unlikely some units can make a pattern, at most, in nats."""
    size = np.abs(network.bias) + np.bincount(
        network.graph.child_of_edge, weights=np.abs(network.weight), minlength=network.n_units
    )
    return float(np.where(network.gate == gates.NOISY_OR, np.maximum(size, _SUREST), size + 1.0)[units].sum())


def with_mirrored(network: Network, states: States, held: States) -> States:
    """Evidence with what the evidence on mirrors says about their parents, unless either is held by an intervention."""
    found = mirrors(network)
    if not found.unit.size or not (states[:, found.unit] != HIDDEN).any():
        return states
    more = states.copy()
    for i, j, turned in zip(found.unit[::-1], found.parent[::-1], found.opposite[::-1], strict=True):
        free = (held[:, i] == HIDDEN) & (held[:, j] == HIDDEN)
        told = (more[:, i] != HIDDEN) & (more[:, j] == HIDDEN) & free
        more[told, j] = 1 - more[told, i] if turned else more[told, i]
    return more
