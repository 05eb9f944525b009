"""Rows of a table that are equal, so that each is solved once; and an order in which equal masks are neighbours."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sbnet._types import IndexArray, States
from sbnet.parallel.blocks import row_blocks

_ODD = np.uint64(0x9E3779B97F4A7C15)
_SHIFTS = np.uint64(29), np.uint64(32)
_WORD = 8


def first_equal(states: States) -> IndexArray:
    """For each row the number of the first one that equals it.

    Rows with equal hashes become neighbours, and neighbours are compared: a collision may hide that two rows are equal,
    but never makes two rows equal.
    """
    n, first = len(states), np.arange(len(states))
    hashes = _hashes(states)
    order = np.argsort(hashes, kind="stable")
    hashes = hashes[order]
    same = np.flatnonzero(hashes[1:] == hashes[:-1]) + 1  # places in the order
    del hashes
    if not len(same):
        return first
    alike = np.zeros(n, np.bool_)
    for block in row_blocks(len(same), 2 * states.shape[1]):
        at = same[block]
        alike[at] = (states[order[at]] == states[order[at - 1]]).all(axis=1)
    begins = np.maximum.accumulate(np.where(alike, 0, first))
    first[order] = order[begins]
    return first


def by_mask(states: States, rows: IndexArray) -> IndexArray:
    """These rows, in an order in which those with the same units observed stand together."""
    hashes = np.empty(len(rows), np.uint64)
    for block in row_blocks(len(rows), states.shape[1]):
        hashes[block] = _hashes(states[rows[block]] < 0)
    return rows[np.argsort(hashes, kind="stable")]


def _hashes(table: NDArray[Any]) -> NDArray[np.uint64]:
    """A number for each row of a table of bytes, equal for equal rows: multiply, shift, and take in the next word."""
    n, width = table.shape
    hashes = np.zeros(n, np.uint64)
    for block in row_blocks(n, width):
        words = np.zeros((block.stop - block.start, -(-width // _WORD) * _WORD), np.uint8)
        words[:, :width] = table[block].view(np.uint8)
        found = hashes[block]
        for word in words.view(np.uint64).T:
            found ^= word
            for shift in _SHIFTS:
                found *= _ODD
                found ^= found >> shift
    return hashes
