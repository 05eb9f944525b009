"""Small boosted trees over states: each fits the gradient of the logistic loss of those before it (Friedman 2001).

A tree has a condition and, on either side of it, another one, a few deep: v >= s if the states of v are ordered, else
v = s. On a way to a leaf are at most three variables, of which the leaf is a function. A tree is fitted to half of the
rows, drawn anew for each tree, over some of the variables.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from sbnet._types import BoolArray, FloatArray, IndexArray, States
from sbnet.kernels.compiling import inner, kernel
from sbnet.kernels.random import GOLDEN, uniform

RATE = 0.1
"""The share of each tree that is taken."""
_SHARE, _RIDGE, _FEWEST, _LEAST = 0.5, 1.0, 5.0, 1e-3
"""Of rows in a tree; what half the square of a leaf costs; rows that a side needs; the gain that a condition needs."""
_VARIABLES, _PATIENCE = 3, 50
"""Variables on a way to a leaf; trees without a gain for the rows that are held out after which no more are fitted."""


class Table(NamedTuple):
    """What trees are fitted to."""

    states: States  # rows by variables
    begin: IndexArray  # the first of the bins of each variable, and their number
    ordered: BoolArray
    y: FloatArray
    weight: FloatArray
    held_out: FloatArray  # weights of rows that tell how many trees are enough


class Trees(NamedTuple):
    """Conditions of each tree, and its leaves: after condition k come 2k + 1 where it is not met, 2k + 2 where it is.

    A variable of -1 is no condition: it is never met.
    """

    variable: IndexArray
    state: IndexArray
    leaf: FloatArray


@inner
def _met(table: Table, trees: Trees, t: int, k: int, r: int) -> int:
    """Does a row meet a condition?"""
    v, s = trees.variable[t, k], trees.state[t, k]
    if v < 0:
        return 0
    x = table.states[r, v]
    return int(x >= s if table.ordered[v] else x == s)


@inner
def _allow(use: BoolArray, trees: Trees, t: int, k: int, allowed: BoolArray) -> None:
    """The variables that condition k may have."""
    found, allowed[:] = 0, False
    while k > 0:
        k = (k - 1) // 2
        v = trees.variable[t, k]
        if v >= 0 and not allowed[v]:
            found, allowed[v] = found + 1, True
    if found < _VARIABLES:
        allowed[:] = use


@inner
def _split(table: Table, use: BoolArray, sums: FloatArray, total: FloatArray, trees: Trees, t: int, k: int) -> None:
    """The condition that gains most, from sums of gradients, curvatures and weights by bins."""
    best, base = _LEAST, total[0] ** 2 / (total[1] + _RIDGE)
    trees.variable[t, k] = -1
    for v in range(len(use)):
        if not use[v]:
            continue
        first, g, h, n = table.begin[v], 0.0, 0.0, 0.0
        for b in range(table.begin[v + 1] - 1, first - 1 + table.ordered[v], -1):
            if not table.ordered[v]:
                g = h = n = 0.0
            g, h, n = g + sums[b, 0], h + sums[b, 1], n + sums[b, 2]
            if n < _FEWEST or total[2] - n < _FEWEST:
                continue
            gain = g**2 / (h + _RIDGE) + (total[0] - g) ** 2 / (total[1] - h + _RIDGE) - base
            if gain > best:
                best = gain
                trees.variable[t, k], trees.state[t, k] = v, b - first


@kernel
def boost(table: Table, z: FloatArray, seed: np.uint64, share: float, loss: FloatArray, trees: Trees) -> None:
    """Trees one after the other; `z` are the inputs of rows, where to start and where it ends, and `share` is that of
    variables in a tree. The loss of rows that are held out, before each tree and after the last, is added to `loss`.
    """
    states, begin, y, weight = table.states, table.begin, table.y, table.weight
    n, m = states.shape
    allowed, own, best = np.empty(m, np.bool_), np.zeros(len(loss)), 0
    conditions, leaves = trees.variable.shape[1], trees.leaf.shape[1]
    g, h, node, use = np.empty(n), np.empty(n), np.empty(n, np.int8), np.empty(m, np.bool_)
    sums, total = np.empty((leaves // 2, begin[m], 3)), np.empty((leaves, 3))
    for t in range(len(loss)):
        for r in range(n):
            tail = math.exp(-abs(z[r]))
            q = 1.0 / (1.0 + tail)
            p = q if z[r] > 0.0 else tail * q
            own[t] += table.held_out[r] * (max(z[r], 0.0) + math.log1p(tail) - y[r] * z[r])
            g[r], h[r] = weight[r] * (y[r] - p), weight[r] * max(p * (1.0 - p), 1e-6)
            seed += GOLDEN
            node[r] = 0 if weight[r] > 0.0 and uniform(seed) < _SHARE else -1
        best = t if own[t] < own[best] else best
        if t == len(trees.leaf) or t - best == _PATIENCE:
            own[t:] = own[t]
            break
        for v in range(m):
            seed += GOLDEN
            use[v] = uniform(seed) < share
        first, width = 0, 1
        while first < conditions:  # those of one depth
            sums[:], total[:] = 0.0, 0.0
            for r in range(n):
                k = node[r]
                if k < 0:
                    continue
                total[k, 0], total[k, 1], total[k, 2] = total[k, 0] + g[r], total[k, 1] + h[r], total[k, 2] + weight[r]
                for v in range(m):
                    if use[v]:
                        b = begin[v] + states[r, v]
                        sums[k, b, 0] += g[r]
                        sums[k, b, 1] += h[r]
                        sums[k, b, 2] += weight[r]
            for k in range(width):
                _allow(use, trees, t, first + k, allowed)
                _split(table, allowed, sums[k], total[k], trees, t, first + k)
            for r in range(n):
                if node[r] >= 0:
                    node[r] = 2 * node[r] + _met(table, trees, t, first + node[r], r)
            first, width = first + width, 2 * width
        total[:] = 0.0
        for r in range(n):
            if node[r] >= 0:
                total[node[r], 0] += g[r]
                total[node[r], 1] += h[r]
        for k in range(leaves):
            trees.leaf[t, k] = RATE * total[k, 0] / (total[k, 1] + _RIDGE)
        for r in range(n):
            k = 0
            while k < conditions:
                k = 2 * k + 1 + _met(table, trees, t, k, r)
            z[r] += trees.leaf[t, k - conditions]
    loss += own
