"""What boosted trees say of a binary answer, as a sum of functions of one, two or three variables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from sbnet._types import BoolArray, FloatArray, IndexArray, States
from sbnet.kernels.trees import Table, Trees, boost

_MOST, _SHARE, _VARIABLES = 300, 0.7, 40
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
            for t in range(n):
                for k, value in enumerate(trees.leaf[t].tolist()):
                    met = self._met(trees, t, k)
                    if met is None:
                        continue
                    key = tuple(sorted(met))
                    leaf = reduce(np.multiply.outer, [met[v] for v in key], np.array(value / len(parts)))
                    found[key] = found[key] + leaf if key in found else leaf
        return found

    def _met(self, trees: Trees, t: int, leaf: int) -> dict[int, FloatArray] | None:
        """The states of each variable that lead to a leaf, as zeros and ones; None if no row comes there."""
        found, k = dict[int, FloatArray](), 0
        for bit in f"{leaf:0{trees.leaf.shape[1].bit_length() - 1}b}":
            v, s, yes = int(trees.variable[t, k]), trees.state[t, k], bit == "1"
            k = 2 * k + 1 + yes
            if v >= 0:
                state = np.arange(self.begin[v + 1] - self.begin[v])
                inside = (state >= s if self.ordered[v] else state == s) == yes
                found[v] = found.get(v, 1.0) * inside
            elif yes:
                return None
        return found


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
