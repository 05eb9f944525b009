"""Where the columns of a table stand in a network: the units of each, and their states at each of its values."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sbnet._types import HIDDEN, IndexArray, States


@dataclass(frozen=True, eq=False)
class Place:
    """One column in a network.

    Attributes
    ----------
    name : str
        Of the column.
    units : ndarray of int
        Numbers of its units in the network.
    codes : ndarray of int8, values by units
        The states of its units at each of its values; other states are impossible.
    labels : tuple of str
        The values, in words.
    """

    name: str
    units: IndexArray
    codes: States
    labels: tuple[str, ...]

    def values_of(self, states: States) -> IndexArray:
        """The number of the value in each row; -1 where it is missing."""
        own = states[:, self.units]
        same = (own[:, None, :] == self.codes).all(axis=2)
        return np.where((own == HIDDEN).any(axis=1), -1, same.argmax(axis=1))

    def each_value(self, states: States) -> States:
        """Every row once for each value, with that value in the place of its own."""
        wide = np.repeat(states, len(self.codes), axis=0)
        wide[:, self.units] = np.tile(self.codes, (len(states), 1))
        return wide


BINARY: States = np.array([[0], [1]], dtype=np.int8)
