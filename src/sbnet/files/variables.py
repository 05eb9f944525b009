"""Variables with tables, as other programs have them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from sbnet._types import FloatArray
from sbnet.files.nearest_units import Fit

_YES = ("1", "yes", "true", "present", "on", "positive", "abnormal", "high", "y", "t")
_NO = ("0", "no", "false", "absent", "off", "negative", "normal", "low", "n", "f")

MOST_ENTRIES = 2**22
"""Numbers of a table, at most."""
ROUNDED_SUM = 0.01
"""How far the probabilities of a row may be from adding up to one: tables are rounded."""


@dataclass(frozen=True, eq=False)
class Variable:
    """A variable and its table: a row for each joint state of its parents, the last fastest, and a column a state."""

    name: str
    states: tuple[str, ...]
    parents: tuple[str, ...]
    table: FloatArray
    about: str = ""
    fit: Fit | None = None  # of a variable that has no table, but is known to be a unit
    place: Callable[[int], str] | None = None  # where a row of the table stands in its file

    @property
    def one(self) -> int:
        """Which of two states is 1: the one whose name says so; else the second."""
        first, second = (state.lower() for state in self.states)
        return 0 if (first in _YES and second not in _YES) or (second in _NO and first not in _NO) else 1


def entries_of(sizes: Iterable[int]) -> int:
    """The joint states of variables of such sizes; one more than a table may have stands for all larger numbers."""
    product = 1
    for size in sizes:
        product *= size
        if product > MOST_ENTRIES:
            return MOST_ENTRIES + 1
    return product


def parsed_number(word: str) -> float:
    """The number that a word of a file is; NaN if it is none."""
    try:
        return float(word) if word.isascii() and "_" not in word else math.nan
    except ValueError:
        return math.nan
