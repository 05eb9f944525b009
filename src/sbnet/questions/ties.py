"""Units that are tied: weights so strong that some states together are impossible, whatever all other units say.

Columns that estimators encode have them: of the units for several values one at most is on, and so it is with
thermometers of numbers. A product of independent means cannot say "one of these": mean field theory settles on
states that contradict each other. Its bound holds all the same; its means of such units say nothing.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sbnet._types import HIDDEN, BoolArray, IndexArray, States
from sbnet.kernels import codes as gates
from sbnet.model.components import connected, members
from sbnet.model.network import Network
from sbnet.model.roles import HIDDEN_UNITS
from sbnet.questions.reduction import live_variables

STRONG = 40.0
"""A weight of this size ties two units: against it, a state has a probability of e^-40."""
_FORCED = 30.0
"""An input beyond this, both ways, leaves one state."""
_MOST = 256
"""States of a block; one that has more is none."""


_STEEPEST = 600.0
"""Weights that samplers of blocks take as they are."""


class Block(NamedTuple):
    """Units that are tied to each other, and the states that they can have together, states by units."""

    units: IndexArray
    codes: States


class _Strong:
    """Where a network keeps its strong edges."""


class _Blocks:
    """Where a network keeps its blocks."""


def strong_edges(network: Network) -> IndexArray:
    """The edges that tie two units."""
    known: IndexArray | None = network._cache.get(_Strong)
    if known is None:
        strong = np.abs(network.weight) >= STRONG if network.is_binary else np.zeros(0, np.bool_)
        known = network._cache[_Strong] = np.flatnonzero(strong)
    return known


def emulates(network: Network) -> bool:
    """Do units stand for states of one variable? Their notes say so.

    Strong weights alone may be what somebody means by them.
    """
    return any(note.variable or note.group == HIDDEN_UNITS for note in network.notes.values())


def is_tied(network: Network) -> bool:
    """Are units tied if nothing is observed?"""
    return bool(tied_rows(network, np.full((1, network.n_units), HIDDEN))[0])


def tied_rows(network: Network, states: States) -> BoolArray:
    """The rows in which a hidden unit is tied to a hidden parent, so that means of independent units say nothing.

    A unit with one hidden parent and nothing observed below it is no harm: its mean follows from that of the parent.
    """
    found: BoolArray = np.zeros(len(states), dtype=np.bool_)
    graph, edges = network.graph, strong_edges(network)
    if not len(edges):
        return found
    hidden = states == HIDDEN
    for i in np.unique(graph.child_of_edge[edges]).tolist():
        own = slice(graph.indptr[i], graph.indptr[i + 1])
        above = hidden[:, graph.parent[own]]
        strong = above[:, np.abs(network.weight[own]) >= STRONG].any(axis=1) & hidden[:, i] & ~found
        found |= strong & (above.sum(axis=1) > 1)
        for r in np.flatnonzero(strong & ~found).tolist():
            found[r] = bool(live_variables(network.model, states[r])[i])
    return found


def blocks(network: Network) -> tuple[Block, ...] | None:
    """All units in blocks, parents first, those that are tied together in one; None if one has too many states,
    and for networks that such samplers do not take: of noisy-OR units, or of weights by the thousand."""
    known: tuple[tuple[Block, ...] | None] | None = network._cache.get(_Blocks)
    if known is None:
        known = network._cache[_Blocks] = (_found(network),)
    return known[0]


def _found(network: Network) -> tuple[Block, ...] | None:
    n, edges = network.n_units, strong_edges(network)
    if (
        not network.is_binary
        or (network.gate != gates.SIGMOID).any()
        or np.abs(network.weight).max(initial=0.0) > _STEEPEST
    ):
        return None
    label = connected(n, network.graph.parent[edges], network.graph.child_of_edge[edges])
    found = []
    for units in sorted(members(label), key=lambda group: int(group[0])):
        codes = _codes(network, units)
        if codes is None:
            return None
        found.append(Block(units, codes))
    return tuple(found)


def _codes(network: Network, units: IndexArray) -> States | None:
    """The states that tied units can have together, unit by unit: where a unit is forced, it is in one state only."""
    graph = network.graph
    codes = np.zeros((1, 0), dtype=np.int8)
    for i in units.tolist():
        own = slice(graph.indptr[i], graph.indptr[i + 1])
        parent, weight = graph.parent[own], network.weight[own]
        inside = np.isin(parent, units)
        place = np.searchsorted(units, parent[inside])
        x = network.bias[i] + codes[:, place] @ weight[inside]
        low, high = np.minimum(weight[~inside], 0.0).sum(), np.maximum(weight[~inside], 0.0).sum()
        off, on = x + low < _FORCED, x + high > -_FORCED
        zero, one = np.zeros((int(off.sum()), 1), np.int8), np.ones((int(on.sum()), 1), np.int8)
        codes = np.vstack([np.hstack([codes[off], zero]), np.hstack([codes[on], one])])
        if len(codes) > _MOST:
            return None
    return codes
