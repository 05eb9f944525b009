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
    needed = _needed(network, states, many)
    if not needed.any():
        return Completions(states, np.arange(len(states)))
    parts, rows = [], []
    masks, which = np.unique(needed, axis=0, return_inverse=True)
    for number, mask in enumerate(masks):
        own = np.flatnonzero(which.ravel() == number)
        chosen = _within([place for place, flag in zip(many, mask, strict=True) if flag], most)
        wide, times = _filled(states[own], chosen)
        parts.append(wide)
        rows.append(np.repeat(own, times))
    row = np.concatenate(rows)
    order = np.argsort(row, kind="stable")
    return Completions(np.concatenate(parts)[order], row[order])


def _needed(network: Network, states: States, places: Sequence[Place]) -> BoolArray:
    """Rows by places: is the value missing, with something observed below it?"""
    if not places or not (states[:, [place.units[0] for place in places]] == HIDDEN).any():
        return np.zeros((len(states), len(places)), dtype=np.bool_)
    below = informed(network, states)
    return np.column_stack(
        [(states[:, place.units[0]] == HIDDEN) & below[:, place.units].any(axis=1) for place in places]
    )


def informed(network: Network, states: States) -> BoolArray:
    """Rows by units: is the unit observed, or has it an observed descendant?"""
    model = network.model
    found: BoolArray = states != HIDDEN
    for j in reversed(range(network.n_units)):
        children = model.child[model.child_indptr[j] : model.child_indptr[j + 1]]
        found[:, j] |= found[:, children].any(axis=1)
    return found


def _within(places: Sequence[Place], most: int) -> list[Place]:
    """The first of these whose values make no more than so many combinations."""
    chosen: list[Place] = []
    count = 1
    for place in places:
        if count * len(place.codes) <= most:
            chosen.append(place)
            count *= len(place.codes)
    return chosen


def _filled(states: States, places: Sequence[Place]) -> tuple[States, int]:
    for place in places:
        states = place.each_value(states)
    times = int(np.prod([len(place.codes) for place in places], dtype=np.int64))
    return states, times
