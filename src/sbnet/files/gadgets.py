"""A table that is no unit: a sigmoid unit whose hidden switches correct what does not add up.

Each switch is on in one row of the table alone: it is the AND of the states of the parents in that row, certain to
e^-1000. In that row it adds what is lacking to the log-odds, so that every row is right.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sbnet._types import FloatArray
from sbnet.files.nearest_units import Fit, Table, judge_log_odds

_MOST_WORK = 10**9
"""Steps in which the best row is looked for; of a larger table only the first rows are tried."""
_SAME = 1e-9
"""Log-odds that differ by no more need no switch."""


@dataclass(frozen=True, eq=False)
class Gadget:
    """Sigmoid fits that are right but in some rows, the cells, and what is lacking there, by unit and cell."""

    fits: tuple[Fit, ...]
    cells: tuple[tuple[int, ...], ...]
    lacking: FloatArray


def gadget(sticks: tuple[Table, ...], max_hidden: int) -> Gadget | None:
    """The gadget with the fewest switches, or None if that takes more than `max_hidden`.

    What adds up is taken from a row and its neighbours, for each row in turn, or is nothing but a constant.
    """
    n_rows, sizes = len(sticks[0].zero), sticks[0].sizes
    star = sum(size - 1 for size in sizes) + 1
    log_odds = np.array([stick.log_odds for stick in sticks])
    constant = _constant(log_odds)
    best = constant, _wrong(log_odds, constant[:, None])
    tried = min(n_rows, max(1, _MOST_WORK // (n_rows * star * len(sticks)))) if n_rows - star <= 4 * max_hidden else 0
    for row in range(tried):
        pairs, states = sticks[0].columns(row)
        near = sticks[0].neighbours(row, pairs)
        numbers = np.column_stack([log_odds[:, row], log_odds[:, near] - log_odds[:, [row]]])
        design = np.column_stack([np.ones(n_rows), states])
        found = _wrong(log_odds, numbers @ design.T)
        if len(found) < len(best[1]):
            best, reference, shape = (numbers, found), row, design
    numbers, wrong = best
    if len(wrong) > max_hidden:
        return None
    if numbers.ndim == 1:
        reference, shape, numbers = 0, np.ones((n_rows, 1)), numbers[:, None]
    pairs = sticks[0].columns(reference)[0] if shape.shape[1] > 1 else []
    sums = numbers @ shape.T
    lacking = log_odds[:, wrong] - sums[:, wrong]
    sums[:, wrong] += lacking
    fits = tuple(
        judge_log_odds(stick, x, float(own[0]), dict(zip(pairs, own[1:].tolist(), strict=True)))
        for stick, x, own in zip(sticks, sums, numbers, strict=True)
    )
    return Gadget(fits, tuple(tuple(states) for states in sticks[0].states[wrong].tolist()), lacking)


def _constant(log_odds: FloatArray) -> FloatArray:
    """The column of log-odds that comes most often."""
    columns, counts = np.unique(log_odds, axis=1, return_counts=True)
    most: FloatArray = columns[:, int(np.argmax(counts))]
    return most


def _wrong(log_odds: FloatArray, sums: FloatArray) -> list[int]:
    found: list[int] = np.flatnonzero((np.abs(log_odds - sums) > _SAME).any(axis=0)).tolist()
    return found
