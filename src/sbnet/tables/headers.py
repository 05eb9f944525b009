"""Names of columns where a table has them twice, leaves them blank, or goes on with them in a second line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sbnet.model.names import normal
from sbnet.tables import frames
from sbnet.tables.words import as_number

_LOOKED_AT = 200
_SAYS_NOTHING = frozenset({"", "response", "value", "answer"})


def unique(names: Sequence[str]) -> tuple[str, ...]:
    """Names that differ: a blank one is called by its place, and the second "a" is "a (2)"."""
    found: list[str] = []
    seen: set[str] = set()
    for k, name in enumerate(names):
        plain = name.strip() or f"column {k + 1}"
        made, n = plain, 1
        while normal(made) in seen:
            n += 1
            made = f"{plain} ({n})"
        seen.add(normal(made))
        found.append(made)
    return tuple(found)


def with_second_line(names: Sequence[str], second: Sequence[Any]) -> tuple[str, ...]:
    """One line of names from two: a blank in the first line goes on with what stands to its left."""
    found, left = [], ""
    blank_next = [*(not name.strip() for name in names[1:]), False]
    for name, cell, alone in zip(names, second, [not blank for blank in blank_next], strict=True):
        text = "" if cell is None else str(cell).strip()
        goes_on = not name.strip()
        left = left if goes_on else name.strip()
        plain = text.casefold() in _SAYS_NOTHING or (alone and not goes_on)
        found.append(left if plain and left else f"{left}: {text}" if left else text)
    return unique(found)


def is_second_line(columns: Sequence[frames.Column], names: Sequence[str] | None) -> bool:
    """Whether the first row names columns: it has words above columns of numbers, and a number above none of them."""
    above = 0
    for column in columns:
        values = column.values[:_LOOKED_AT].tolist()
        if len(values) < 5:
            return False
        if column.dates or column.is_number:
            if values[0] == values[0] and _all_numbers(values[1:]):
                return False
            continue
        first, rest = values[0], values[1:]
        if not _all_numbers(rest):
            continue
        if first is not None and as_number(first) is not None:
            return False
        above += first is not None
    blank = any(not name.strip() or name.startswith("Unnamed: ") for name in names or ())
    return above >= (1 if blank else 2)


def _all_numbers(values: Sequence[Any]) -> bool:
    known = [value for value in values if value is not None and value == value]
    return len(known) >= 3 and all(as_number(value) is not None for value in known)
