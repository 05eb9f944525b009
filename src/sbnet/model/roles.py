"""Which units are causes, which are findings, and which only help: by the groups in their notes, else by the graph."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from sbnet.model.network import Network

CAUSES, FINDINGS, HIDDEN_UNITS = "causes", "findings", "hidden"
"""Groups; nobody can observe hidden units."""


def causes(network: Network) -> list[int]:
    """The units that are asked about: the group "causes"; or, if there is none, the units without parents.

    Hidden units are causes only if there are no others.
    """
    parentless = np.diff(network.graph.indptr) == 0
    open_ = np.isin(np.arange(network.n_units), observable(network))
    named = of_group(network, CAUSES) or np.flatnonzero(parentless & open_).tolist()
    return named or np.flatnonzero(parentless).tolist()


def asked(network: Network) -> list[int]:
    """The units that an answer lists: the group "causes"; or, where notes make no groups of units that can be observed,
    those that have children or no parents. All others are findings."""
    named = of_group(network, CAUSES)
    every = observable(network)
    if named or any(_group(network, i) not in ("", HIDDEN_UNITS) for i in every):
        return named or every
    leaf = (np.diff(network.graph.indptr) > 0) & (np.diff(network.graph.child_indptr) == 0)
    return [i for i in every if not leaf[i]] or every


def findings(network: Network, causes: Iterable[int]) -> list[int]:
    """The units that can be asked for: the group "findings"; or, if there is none, all others but hidden
    units."""
    left = set(causes)
    return of_group(network, FINDINGS) or [i for i in observable(network) if i not in left]


def observable(network: Network) -> list[int]:
    """The units that someone can observe; all of them, if notes leave none."""
    every = range(network.n_units)
    return [i for i in every if _group(network, i) != HIDDEN_UNITS] or list(every)


def of_group(network: Network, group: str) -> list[int]:
    """The units of a group, if notes on the network name one."""
    return [i for i in range(network.n_units) if _group(network, i) == group]


def _group(network: Network, i: int) -> str:
    return network.notes[network.names[i]].group
