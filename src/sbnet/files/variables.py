"""Variables with tables, as other programs have them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

from sbnet._types import FloatArray
from sbnet.model.yes_no import bits

_YES = ("1", "yes", "true", "present", "on", "positive", "abnormal", "high", "y", "t")
_NO = ("0", "no", "false", "absent", "off", "negative", "normal", "low", "n", "f")

MOST_ENTRIES = 2**22
"""Numbers of a table, at most."""
ROUNDED_SUM = 0.01
"""How far the probabilities of a row may be from adding up to one: tables are rounded."""


class NoisyMax(NamedTuple):
    """The numbers of a noisy-MAX node, whose states come with the strongest first and the absent one last.

    `effects` has an array for each parent, its states by those of the node: what that state alone brings about; `leak`
    is what happens without any of them. `ranks` has the states of each parent, the one without effect last.
    """

    effects: tuple[FloatArray, ...]
    leak: FloatArray
    ranks: tuple[tuple[int, ...], ...]


class Weighted(NamedTuple):
    """The numbers of a sigmoid or noisy-OR variable with two states, and parents that have as many, no first."""

    gate: str
    bias: float
    weights: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class Variable:
    """A variable and its table: a row for each joint state of its parents, the last fastest, and a column a state.

    One with a `formula` has no rows: its conditional distribution is that of a gate.
    """

    name: str
    states: tuple[str, ...]
    parents: tuple[str, ...]
    table: FloatArray
    about: str = ""
    formula: NoisyMax | Weighted | None = None
    place: Callable[[int], str] | None = None  # where a row of the table stands in its file


def no_first(states: tuple[str, ...]) -> tuple[int, ...] | None:
    """The numbers of two states, the one whose name says no first; None if neither name says anything."""
    if len(states) != 2:
        return None
    meant = bits(states)
    if meant is not None and meant[0] != meant[1]:
        return meant
    first, second = (state.lower() for state in states)
    if (first in _YES and second not in _YES) or (second in _NO and first not in _NO):
        return 1, 0
    return (0, 1) if (second in _YES) != (first in _YES) or (first in _NO) != (second in _NO) else None


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
