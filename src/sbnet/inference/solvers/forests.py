"""Which hidden units stay coupled in a structured posterior: the forest with the strongest couplings."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import scipy

from sbnet import kernels
from sbnet._types import BoolArray, FloatArray, IndexArray, States
from sbnet.kernels.codes import NOISY_OR
from sbnet.kernels.structs import Problem
from sbnet.model import gates

if TYPE_CHECKING:
    from sbnet.kernels.structured import Forest

_PARENTS = 64
"""Of a unit with more hidden parents, those with the largest weights count."""


class Links(NamedTuple):
    """Pairs of hidden units that are coupled, and how strongly: in nats."""

    one: IndexArray
    other: IndexArray
    strength: FloatArray

    def some(self, which: BoolArray | IndexArray) -> Links:
        return Links(self.one[which], self.other[which], self.strength[which])


class Planted(NamedTuple):
    """A forest, and for each unit how far it is from the root of its tree, and which tree that is."""

    forest: Forest
    depth: IndexArray
    tree: IndexArray


def couplings(problem: Problem, states: States, bias: FloatArray, mu: FloatArray) -> Links:
    """How far the effect of two units on ln P departs from the sum of their effects, all others at their means.

    Two units meet as parent and child, and as parents of one unit; the effects of all their meetings are added up.
    """
    found: list[Links] = []
    parent, weight = problem.slots["parent"], problem.slots["weight"]
    for i, code, own, first, end in problem.factors[["variable", "gate", "hidden", "slot", "slot_end"]].tolist():
        near, w = parent[first:end], weight[first:end]
        x = bias[i] + w @ mu[near]
        strongest = np.argsort(-np.abs(w), kind="stable")[:_PARENTS]
        near, w = near[strongest], w[strongest]
        if own >= 0:
            gate, base = np.array([code], np.int8), x - w * mu[near]
            moved = gates.log_odds(gate, base + w) - gates.log_odds(gate, base)
            found.append(Links(near, np.full(len(near), own), moved))  # parents come first
        noisy, state = code == NOISY_OR, mu[own] if own >= 0 else float(states[i])
        load = state if noisy else 1.0
        if len(near) > 1 and load > 0.0:
            a, b = np.triu_indices(len(near), 1)
            t, mean = gates.rarity if noisy else gates.softplus, w * mu[near]
            base = x - mean[a] - mean[b]
            bend = t(base + w[a] + w[b]) - t(base + w[a]) - t(base + w[b]) + t(base)  # its second difference
            found.append(Links(np.minimum(near[a], near[b]), np.maximum(near[a], near[b]), -load * bend))
    if not found:
        return Links(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))
    n = len(problem.hidden)
    one, other, strength = (np.concatenate(parts) for parts in zip(*found, strict=True))
    pairs, place = np.unique(one * n + other, return_inverse=True)
    return Links(pairs // n, pairs % n, np.abs(np.bincount(place, weights=strength, minlength=len(pairs))))


def spanning(links: Links, n: int) -> Links:
    """The links of a maximum spanning forest of n units, the strongest first."""
    graph = scipy.sparse.coo_array((-links.strength, (links.one, links.other)), shape=(n, n)).tocsr()
    kept = scipy.sparse.csgraph.minimum_spanning_tree(graph).tocoo()
    order = np.argsort(kept.data, kind="stable")
    return Links(kept.row[order].astype(np.int64), kept.col[order].astype(np.int64), -kept.data[order])


def plant(links: Links, n: int) -> Planted:
    """The forest of these links: each tree from its first unit on."""
    near: list[list[int]] = [[] for _ in range(n)]
    for a, b in zip(links.one.tolist(), links.other.tolist(), strict=True):
        near[a].append(b)
        near[b].append(a)
    parent, depth, tree = np.full(n, -1), np.zeros(n, np.int64), np.full(n, -1)
    walk: list[int] = []
    starts = [0]
    for root in range(n):
        if tree[root] >= 0:
            continue
        rest = [root]
        while rest:
            k = rest.pop()
            walk.append(k)
            if k < 0:
                continue
            tree[k] = len(starts) - 1
            rest.append(~k)
            for c in near[k]:
                if c != parent[k]:
                    parent[c], depth[c] = k, depth[k] + 1
                    rest.append(c)
        starts.append(len(walk))
    units = np.zeros(n, kernels.structured.unit_t)
    units["parent"] = parent
    forest = kernels.structured.Forest(units, np.array(starts), np.array(walk, np.int64))
    return Planted(forest, depth, tree)
