"""How strong each edge is, as one number, for pictures and for rough choices."""

from __future__ import annotations

import numpy as np

from sbnet._types import FloatArray
from sbnet.model.network import Network


def edge_strengths(network: Network) -> FloatArray:
    """The weight of each edge; of several the one of largest size; in a table, how much the parent moves the states.

    That is four times the largest difference between probabilities, about the gradient of a logistic function.
    """
    if network.is_binary:
        return network.weight
    model, edges = network.model, np.zeros(network.n_edges)
    full = np.flatnonzero(np.diff(model.block) > 0)
    if len(full):
        begin = model.block[:-1][full]
        high, low = np.maximum.reduceat(network.weight, begin), np.minimum.reduceat(network.weight, begin)
        edges[full] = np.where(high >= -low, high, low)
    for name, table in network.tables.items():
        v = network.index(name)
        for axis, e in enumerate(range(network.graph.indptr[v], network.graph.indptr[v + 1])):
            edges[e] = 4.0 * np.ptp(table, axis=axis).max()
    return edges
