"""What boosted trees say of a binary answer, as a sum of functions of one, two or three variables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from sbnet._types import BoolArray, FloatArray, IndexArray, States
from sbnet.kernels.trees import Table, Trees, boost

_MOST, _SHARE, _VARIABLES = 500, 0.7, 40
"""Trees, at most; the share of the variables that are tried in each of them, and at most about so many."""

Functions = dict[tuple[int, ...], FloatArray]
"""Functions of variables with states, by their variables: a value for each joint state."""


@dataclass(frozen=True, eq=False)
class Bins:
    """States of rows; a condition of a tree is v >= s if the states of v are ordered, else v = s.

    Attributes
    ----------
    states : ndarray of int8, rows by variables
    begin : ndarray of int, length variables + 1
        Where the states of each variable begin among those of all.
    ordered : ndarray of bool
    """

    states: States
    begin: IndexArray
    ordered: BoolArray

    def of(self, rows: BoolArray) -> Bins:
        return Bins(np.ascontiguousarray(self.states[rows]), self.begin, self.ordered)

    def boosted(
        self, y: FloatArray, weight: FloatArray, held_out: FloatArray, z: FloatArray, depth: int, seed: int,
        loss: FloatArray,
    ) -> Trees:  # fmt: skip
        """Trees that tell y, from inputs z; the losses of rows with weights in `held_out` are added to `loss`."""
        n, leaves, share = len(loss) - 1, 2**depth, min(_SHARE, _VARIABLES / max(self.states.shape[1], 1))
        trees = Trees(np.full((n, leaves - 1), -1), np.zeros((n, leaves - 1), np.int64), np.zeros((n, leaves)))
        table = Table(self.states, self.begin, self.ordered, y, weight, held_out)
        boost(table, z.copy(), np.uint64(seed), share, loss, trees)
        return trees

    def functions(self, parts: Sequence[Trees], n: int) -> Functions:
        """The mean of some sums of trees, of the first n of each: a leaf is a function of the variables above it."""
        found: Functions = {}
        for trees in parts:
            for t in np.flatnonzero(trees.leaf[:n].any(axis=1)).tolist():
                for value, met in self._leaves(trees, t, 0, {}):
                    key = tuple(sorted(met))
                    leaf = reduce(np.multiply.outer, [met[v] for v in key], np.array(value / len(parts)))
                    found[key] = found[key] + leaf if key in found else leaf
        return found

    def _leaves(
        self, trees: Trees, t: int, k: int, met: dict[int, FloatArray]
    ) -> Iterator[tuple[float, dict[int, FloatArray]]]:
        """The leaves below condition k: the value of each, and the states that lead there, as zeros and ones."""
        n = trees.variable.shape[1]
        if k >= n:
            yield float(trees.leaf[t, k - n]), met
            return
        v = int(trees.variable[t, k])
        if v < 0:  # never met
            yield from self._leaves(trees, t, 2 * k + 1, met)
            return
        state = np.arange(self.begin[v + 1] - self.begin[v])
        inside = state >= trees.state[t, k] if self.ordered[v] else state == trees.state[t, k]
        for yes in (False, True):
            yield from self._leaves(trees, t, 2 * k + 1 + yes, met | {v: met.get(v, 1.0) * (inside == yes)})


def no_loss() -> FloatArray:
    """Room for the losses of no tree, of one, and so on."""
    return np.zeros(_MOST + 1)


def centred(functions: Functions, shares: Sequence[FloatArray]) -> Functions:
    """A sum of functions written anew, so that each is zero on average over any of its variables (functional ANOVA)."""
    found = dict(functions)
    for size in range(max(map(len, found), default=0), 0, -1):
        for key in [one for one in found if len(one) == size]:
            for axis, v in enumerate(key):
                mean, rest = np.tensordot(found[key], shares[v], (axis, 0)), key[:axis] + key[axis + 1 :]
                found[rest] = found.get(rest, 0.0) + mean
                found[key] = found[key] - np.expand_dims(mean, axis)
    return found
