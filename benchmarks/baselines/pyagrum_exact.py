"""Exact inference with tables: the same network in pyAgrum, every conditional written out as a table.

A unit with k parents needs 2**(k + 1) numbers, and the junction tree needs tables over its cliques. The memory is
estimated first, and a network that does not fit is refused before anything is built.
"""

from __future__ import annotations

import time
from typing import NamedTuple

import networkx as nx
import numpy as np
import pyagrum as gum
from numpy.typing import ArrayLike, NDArray

from sbnet import Network

MEMORY = 2e9
"""Bytes that tables may take, by default."""

SHRUNK, COPIES = 1.5, 4.0
"""At the worst moment every table is there twice, once without its evidence (half the size), and the largest table or
clique some times more. Measured: 70 to 95 % of this."""


class DoesNotFit(MemoryError):
    """The tables of the network need more memory than is allowed."""


class Exact(NamedTuple):
    """Exact ln P(evidence) in nats (n,), seconds to build the tables, seconds of inference."""

    log_likelihood: NDArray[np.float64]
    build_seconds: float
    seconds: float


def log_likelihood(network: Network, X: ArrayLike, memory: float = MEMORY) -> Exact:
    """ln P of each row of X; the observed units are the last ones of the network, as many as X has columns."""
    rows = np.asarray(X)
    n_hidden = network.n_units - rows.shape[1]
    needed = needed_bytes(network, n_hidden)
    if needed > memory:
        widest = int(np.diff(network.graph.indptr).max())
        raise DoesNotFit(
            f"tables for this network need about {needed:.1e} bytes; {memory:.1e} are allowed. Its widest unit has "
            f"{widest} parents; a single unit fits with at most {largest_fan_in(memory)}"
        )
    start = time.perf_counter()
    engine = gum.LazyPropagation(build(network))
    built = time.perf_counter()
    result = np.empty(len(rows))
    for r, row in enumerate(rows):
        engine.setEvidence({network.names[n_hidden + k]: int(value) for k, value in enumerate(row)})
        result[r] = np.log(engine.evidenceProbability())
    return Exact(result, built - start, time.perf_counter() - built)


def build(network: Network) -> gum.BayesNet:
    """The network with explicit tables. Check `needed_bytes` first."""
    tables = gum.BayesNet()
    for name in network.names:
        tables.add(gum.LabelizedVariable(name, name, 2))
    for parent, child, _ in network.edges():
        tables.addArc(parent, child)
    for i, name in enumerate(network.names):
        edges = slice(network.graph.indptr[i], network.graph.indptr[i + 1])
        names = [network.names[j] for j in network.graph.parent[edges]]
        weight_of = dict(zip(names, network.weight[edges].tolist(), strict=True))
        table = tables.cpt(name)
        z = np.array([network.bias[i]])
        for parent in table.names[1:]:  # in the order of the table; the first changes fastest
            z = np.concatenate([z, z + weight_of[parent]])
        table[:] = np.exp(-np.logaddexp(0.0, np.stack([z, -z], axis=-1))).reshape((2,) * (len(names) + 1))
    return tables


def needed_bytes(network: Network, n_hidden: int) -> float:
    """Estimate: all tables, and some more of the size of the largest table or clique of the hidden units."""
    fan_in = np.diff(network.graph.indptr).astype(float)
    moral = nx.Graph()
    moral.add_nodes_from(range(n_hidden))
    for i in range(network.n_units):
        edges = slice(network.graph.indptr[i], network.graph.indptr[i + 1])
        family = [int(j) for j in network.graph.parent[edges] if j < n_hidden]
        family += [i] if i < n_hidden else []
        moral.add_edges_from((a, b) for k, a in enumerate(family) for b in family[:k])
    width = nx.algorithms.approximation.treewidth_min_degree(moral)[0] if n_hidden else 0
    largest = max(float(fan_in.max(initial=0.0)), float(width)) + 1.0
    return float(SHRUNK * np.sum(8 * 2.0 ** (fan_in + 1)) + COPIES * 8 * 2.0**largest)


def largest_fan_in(memory: float = MEMORY) -> int:
    """The most parents that one unit may have, by the same estimate, in a network of that unit and its parents."""
    k = 0
    while (SHRUNK + COPIES) * 8 * 2.0 ** (k + 2) <= memory:
        k += 1
    return k
