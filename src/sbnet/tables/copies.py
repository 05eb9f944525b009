"""Columns of numbers that are copies of one another, in another unit perhaps: what is missing in one, another tells."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from sbnet._types import BoolArray, FloatArray, IndexArray
from sbnet.tables import frames
from sbnet.tables.kinds import NUMBERS, Column

_SHARED, _ROWS, _COLUMNS = 20, 2_000, 200
"""Rows in which two columns must both be seen; rows and columns that are looked at, at most."""
_EXACT = 1e-9
"""The error that rounding may leave, as a share of how far numbers are apart."""


def marked(columns: Sequence[Column], sheet: frames.Sheet, rows: IndexArray) -> tuple[Column, ...]:
    """The columns, with what those of numbers are copies of; numbers with a state for each value are told by states."""
    made = list(columns)
    own = [k for k, one in enumerate(made) if one.kind == NUMBERS and _is_plain(one)]
    if 2 <= len(own) <= _COLUMNS:
        numbers = np.column_stack([made[k].sizes(sheet.columns[k])[rows] for k in own])
        for k, (u, *line) in found(numbers).items():
            made[own[k]] = replace(made[own[k]], copy_of=made[own[u]].name, line=tuple(line))
    return tuple(made)


def _is_plain(column: Column) -> bool:
    """Are its cells numbers, or figures alone, more of them than states?"""
    try:
        return len({float(cell) for own in column.cells for cell in own}) > len(column.states)
    except (TypeError, ValueError):
        return False


def found(numbers: FloatArray) -> dict[int, tuple[int, float, float]]:
    """By its place, a column that is a straight line in one before it: the place of that, the slope and the start; of
    rows by columns, NaN where a cell is missing.
    """
    numbers, copies = numbers[:: max(len(numbers) // _ROWS, 1)], dict[int, tuple[int, float, float]]()
    for k, own in enumerate(numbers.T):
        for u in (u for u in range(k) if u not in copies):
            both = ~np.isnan(own - numbers[:, u])
            x, y = numbers[both, u], own[both]
            if len(x) < _SHARED or not np.ptp(x):
                continue
            low, high = x.argmin(), x.argmax()
            slope = (y[high] - y[low]) / (x[high] - x[low])
            start, size = y[low] - slope * x[low], np.ptp(y)
            if slope and np.abs(slope * x + start - y).max() <= _EXACT * size:
                copies[k] = u, float(_text(slope)), float(_text(start)) if abs(start) > _EXACT * size else 0.0
                break
    return copies


def agree(
    columns: Sequence[Column],
    given: Callable[[str], frames.Column],
    filled: Mapping[str, tuple[BoolArray, list[Any]]],
) -> None:
    """New cells, by column which rows and what they hold, made to follow from the copies of their columns."""
    by_name = {column.name: column for column in columns}
    pairs = [(one, by_name[one.copy_of]) for one in columns if one.copy_of in by_name]
    whole = {one.name: one.sizes(given(one.name)).copy() for pair in pairs for one in pair}
    for one, first in pairs:
        slope, start = one.line
        whole[first.name] = np.where(np.isnan(whole[first.name]), (whole[one.name] - start) / slope, whole[first.name])
    for first in {pair[1].name: pair[1] for pair in pairs}.values():
        _put(first, whole[first.name], filled)
        if first.name in filled:
            which, cells = filled[first.name]
            whole[first.name][which] = [np.nan if cell is None else float(cell) for cell in cells]
    for one, first in pairs:
        _put(one, one.line[0] * whole[first.name] + one.line[1], filled)


def _put(column: Column, wanted: FloatArray, filled: Mapping[str, tuple[BoolArray, list[Any]]]) -> None:
    """New cells of a column, those that are wanted: as they were seen, or else as numbers of their type."""
    if column.name not in filled:
        return
    which, cells = filled[column.name]
    known = {_text(float(cell)): cell for own in column.cells for cell in own}
    kind = type(next(iter(known.values())))
    for k, number in enumerate(wanted[which].tolist()):
        if number == number and cells[k] is not None:
            cells[k] = known.get(_text(number), round(number) if kind is int else kind(_text(number)))


def _text(number: float) -> str:
    """Twelve digits of it: what is left of copies after rounding."""
    return f"{number:.12g}"
