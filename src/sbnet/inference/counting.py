"""How many logarithm terms of a bound are sums over all states of the parents, by the structure of the network."""

from __future__ import annotations

import numpy as np

from sbnet._types import HIDDEN, IndexArray, States
from sbnet.inference.equal_rows import first_equal
from sbnet.inference.solution import Xi
from sbnet.kernels.kinds import LOG_TERMS
from sbnet.model.network import Network
from sbnet.questions.reduction import live_variables


def count_terms(network: Network, states: States, terms: Xi | None) -> IndexArray:
    """For each row, how many logarithm terms were enumerated and how many there are; none where there is no bound.

    A unit has one if it has hidden parents and bears on the evidence, observed or above an observed unit.
    """
    counts = np.zeros((len(states), 2), np.int64)
    if terms is None:
        return counts
    masks = np.where(states == HIDDEN, HIDDEN, np.int8(0))
    first = first_equal(masks)
    for r in np.unique(first):
        children = network.graph.child_of_edge[masks[r][network.graph.parent] == HIDDEN]
        parents = np.bincount(children, minlength=network.n_units)[live_variables(network.model, masks[r])]
        few = (parents > 0) & (parents <= terms.bound.enumerate_up_to)
        counts[r] = few.sum(), (parents > 0).sum()
    return counts[first]


def remark(counts: IndexArray, terms: Xi | None, where: str = "") -> tuple[str, ...]:
    """A remark on the terms that are not what was asked for. The exact term, however it is found, is."""
    enumerated, total = (int(count) for count in counts)
    if terms is None or terms.bound.log_term == LOG_TERMS["exact"] or not enumerated:
        return ()
    asked = next(name for name, code in LOG_TERMS.items() if code == terms.bound.log_term)
    found = f"logarithm terms enumerated exactly, in place of {asked!r}: {enumerated:,} of {total:,}{where}"
    return (f"{found}; enumerate_up_to=0 switches that off",)
