"""What boosted trees say of a binary answer, as a sum over features of states and products of two of them.

A tree of conditions a, b where a is not met, and c where it is, has leaves l0 to l3, and gives a row the input

    l0 + (l2 - l0) a + (l1 - l0) b + (l0 - l1) ab + (l3 - l2) ac
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sbnet._types import BoolArray, FloatArray, IndexArray, States
from sbnet.kernels.trees import Table, Trees, boost

_MOST, _SHARE, _VARIABLES = 300, 0.7, 40
"""Trees, at most; the share of the variables that are tried in each of them, and at most about so many."""


@dataclass(frozen=True, eq=False)
class Bins:
    """States of rows, and the feature of each state of a variable: v >= s if states are ordered, else v = s.

    Attributes
    ----------
    states : ndarray of int8, rows by variables
    begin : ndarray of int, length variables + 1
        Where the states of each variable begin among those of all.
    ordered : ndarray of bool
    feature : ndarray of int
        That of each state.
    """

    states: States
    begin: IndexArray
    ordered: BoolArray
    feature: IndexArray

    def of(self, rows: BoolArray) -> Bins:
        """Some of the rows."""
        return Bins(np.ascontiguousarray(self.states[rows]), self.begin, self.ordered, self.feature)

    def boosted(
        self, y: FloatArray, weight: FloatArray, held_out: FloatArray, z: FloatArray, seed: int, loss: FloatArray
    ) -> Trees:
        """Trees that tell y, from inputs z; the losses of rows with weights in `held_out` are added to `loss`."""
        n, m = len(loss) - 1, self.states.shape[1]
        trees = Trees(np.full((n, 3), -1), np.zeros((n, 3), np.int64), np.zeros((n, 4)))
        table = Table(self.states, self.begin, self.ordered, y, weight, held_out)
        boost(table, z.copy(), np.uint64(seed), min(_SHARE, _VARIABLES / max(m, 1)), loss, trees)
        return trees

    def products(self, trees: Trees, n: int) -> Products:
        """The first n trees as a sum."""
        v, s, (l0, l1, l2, l3) = trees.variable[:n], trees.state[:n], trees.leaf[:n].T
        f = self.feature[np.where(v < 0, 0, self.begin[v] + s)]
        (a, b, c), none = f.T, np.full(n, -1)
        first = np.concatenate([none, a, b, a, a])
        second = np.concatenate([none, none, none, b, c])
        value = np.concatenate([l0, l2 - l0, l1 - l0, l0 - l1, l3 - l2])
        # A condition that is never met is a feature of zeros, and an intercept is the product of none.
        a, b, c = (v < 0).T
        absent = np.concatenate([np.zeros(n, np.bool_), a, b, a | b, a | c])
        return Products(first[~absent], second[~absent], value[~absent])


@dataclass(frozen=True, eq=False, slots=True)
class Products:
    """A sum of products of features, each by its number; -1 is one that is always met."""

    first: IndexArray
    second: IndexArray
    value: FloatArray


def no_loss() -> FloatArray:
    """Room for the losses of no tree, of one, and so on."""
    return np.zeros(_MOST + 1)
