"""Missing values in columns of more than two: every value in turn, and what their bounds come to together.

Mean field treats hidden units one by one, and units of which only few states are possible tie its hands: it settles on
one value. The sum over all values is still a lower bound, and a much tighter one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sbnet._types import HIDDEN, BoolArray, FloatArray, IndexArray, States
from sbnet.inference.solvers.places import Place
from sbnet.model.network import Network
from sbnet.questions.reduction import live_variables

MOST = 64
"""Ways to fill in missing values that are tried for one row, in all; beyond that they are left to mean field."""


@dataclass(frozen=True)
class Completions:
    """Rows with some of their missing values filled in, in every way.

    Attributes
    ----------
    states : ndarray of int8
        The completed rows; those of one row stand together.
    row : ndarray of int
        Which row each of them completes.
    """

    states: States
    row: IndexArray

    def sum(self, bounds: FloatArray) -> FloatArray:
        """The bound of each row: the logarithm of the sum over its completions."""
        starts = np.flatnonzero(np.diff(self.row, prepend=-1))
        found: FloatArray = np.logaddexp.reduceat(bounds, starts)
        return found


def complete(network: Network, states: States, places: Sequence[Place], most: int = MOST) -> Completions:
    """Every row with its missing values that matter filled in in every way, as far as `most` goes.

    Those without observed descendants do not matter: they sum to one by themselves.
    """
    many = [place for place in places if len(place.codes) > 2]
    missing = states[:, [place.units[0] for place in many]] == HIDDEN
    if not missing.any():
        return Completions(states, np.arange(len(states)))
    below = informed(network, states)  # something observed bears on the value
    needed = missing & np.column_stack([below[:, place.units].any(axis=1) for place in many])
    parts, rows = [], []
    masks, which = np.unique(needed, axis=0, return_inverse=True)
    for number, mask in enumerate(masks):
        own = np.flatnonzero(which.ravel() == number)
        wide, times = states[own], 1
        for place in (many[k] for k in np.flatnonzero(mask)):
            if times * len(place.codes) <= most:
                wide, times = place.each_value(wide), times * len(place.codes)
        parts.append(wide)
        rows.append(np.repeat(own, times))
    row = np.concatenate(rows)
    order = np.argsort(row, kind="stable")
    return Completions(np.concatenate(parts)[order], row[order])


def informed(network: Network, states: States) -> BoolArray:
    """Rows by units: is the unit observed, or has it an observed descendant?"""
    masks, which = np.unique(states != HIDDEN, axis=0, return_inverse=True)
    live = [live_variables(network.model, np.where(mask, np.int8(0), HIDDEN)) for mask in masks]
    return np.array(live, np.bool_).reshape(masks.shape)[which.ravel()]
