"""Which of the two values of a column means 0, and which means 1.

Known without looking at other rows: 0 and 1 (as numbers, truth values or text), and the words true and false, yes and
no, y and n, t and f, in any case. Any other column with exactly two values follows the *order rule*: the smaller one is
0, numbers by size, text by alphabet, and ordered categories by their own order.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from sbnet._types import HIDDEN, BoolArray, States
from sbnet.tables import Array, Column, as_number, is_number

_PAIRS = (("0", "1"), ("false", "true"), ("no", "yes"), ("n", "y"), ("f", "t"))
_WORDS = {word: (pair, bit) for pair in _PAIRS for bit, word in enumerate(pair)}
NOT_CHOSEN = "not chosen"
"""What a blank says in a column of one value and blanks."""
_LARGE = 1e15  # whole numbers from here on are written in powers of ten
_FEW = 4  # rows: too few to tell a coding by -1 and 1 from a unit that happens to be 1 or not observed
SIGNS = "holds -1 and 1: -1 was read as not observed. If it means no, recode it to 0; if it marks missing cells, say "


@dataclass(frozen=True, slots=True)
class Coding:
    """The value of a column that means 0, and the one that means 1."""

    zero: Any
    one: Any

    def __str__(self) -> str:
        return f"{show(self.zero)} = 0, {show(self.one)} = 1"

    @property
    def known(self) -> bool:
        """Whether both values say themselves what they mean."""
        zero, one = _meaning(self.zero), _meaning(self.one)
        return zero is not None and one is not None and (zero[0], zero[1], one[1]) == (one[0], 0, 1)

    @property
    def is_plain(self) -> bool:
        """Whether the values are the numbers 0 and 1."""
        return self == PLAIN


PLAIN = Coding(0.0, 1.0)


def learn(column: Column) -> Coding | None:
    """The coding of a column by its own values; None where they cannot be read as zeros and ones."""
    values = distinct(column)
    meanings = [_meaning(value) for value in values]
    pairs = {meaning[0] for meaning in meanings if meaning is not None}
    if None not in meanings and len(pairs) <= 1:
        return _known(values)
    if len(values) != 2 or len(pairs) > 1:
        return None
    return _in_order(values, column)


def read(column: Column, coding: Coding) -> tuple[States, int | None]:
    """0, 1 or -1 (missing) for each cell, and the first row that holds neither of the two values, if there is one."""
    if column.is_number:
        return _read_numbers(column, coding)
    bits = {_key(coding.zero): 0, _key(coding.one): 1}
    known = {value: bits.get(_key(value)) for value in dict.fromkeys(column.values.tolist()) if value is not None}
    strange = [value for value, bit in known.items() if bit is None]
    if strange:
        return np.empty(0, np.int8), column.values.tolist().index(strange[0])
    known[None] = int(HIDDEN)
    return np.array([known[value] for value in column.values.tolist()], dtype=np.int8), None


def zeros_and_ones(table: Array, gone: tuple[Any, ...] = ()) -> tuple[States, BoolArray]:
    """0, 1 and -1 from numbers of any type, and which cells could be read; `gone` are not observed."""
    kind = table.dtype.kind
    if kind == "b":
        return table.astype(np.int8), np.ones(table.shape, dtype=np.bool_)
    observed = (table == 0) | (table == 1)
    good = observed | np.isnan(table) if kind == "f" else observed.copy()
    for number in [number for number in map(as_number, gone) if number is not None]:
        absent = table == (int(number) if kind in "iu" and number.is_integer() else number)
        good |= absent
        if number in (0.0, 1.0):
            observed &= ~absent
    return np.where(observed, table, -1).astype(np.int8), good


def are_states(coding: Coding) -> bool:
    """Two words or two numbers; but fractions within [0, 1] are chances that a unit is 1, and no states."""
    numbers = [as_number(value) for value in (coding.zero, coding.one)]
    known = [number for number in numbers if number is not None]
    chances = len(known) == 2 and all(0 <= number <= 1 for number in known)
    return not chances or all(number.is_integer() for number in known)


def may_be_signs(n_rows: int, gone: tuple[Any, ...]) -> bool:
    """Whether a column of -1 and 1 may be one of no and yes: there are a few rows, and -1 was not said to be missing,
    beside what `gone` has of itself."""
    return n_rows >= _FEW and sum(is_number(value, -1.0) for value in gone) <= 1


def bit(value: Any) -> int | None:
    """0 or 1 for a value that says itself what it means; None for any other."""
    meaning = _meaning(value.strip() if isinstance(value, str) else value)
    return None if meaning is None else meaning[1]


def distinct(column: Column, most: int = 5) -> list[Any]:
    """Values of a column, up to `most` and one more: numbers by size, text as it comes; or its two categories."""
    if column.categories is not None and len(column.categories) == 2:
        return list(column.categories)
    if column.is_number:
        return _numbers(column, most)
    found: dict[Any, Any] = {}
    for value in dict.fromkeys(column.values.tolist()):
        if value is not None and len(found) <= most:
            found.setdefault(_key(value), value)
    return list(found.values())


def first_strange(column: Column) -> int:
    """The first row whose value does not say by itself, or not in the words of the cells before it, what it means."""
    pair = None
    for r, value in enumerate(column.values.tolist()):
        if value is None or value != value:
            continue
        meaning = _meaning(value)
        if meaning is None or pair not in (None, meaning[0]):
            return r
        pair = meaning[0]
    return 0


def listing(values: list[Any], most: int = 5) -> str:
    """Values for a message: the first few, in words."""
    shown = [show(value) for value in values[:most]]
    if len(values) > most:
        return ", ".join(shown) + ", …"
    return " and ".join(filter(None, [", ".join(shown[:-1]), shown[-1]])) if shown else "nothing"


def show(value: Any) -> str:
    """A value as its user would write it: no needless point, text in quotation marks, not too long."""
    if isinstance(value, float):
        return word(value)
    return repr(value if len(value) <= 25 else value[:24] + "…")


def word(value: Any) -> str:
    """A value as a table of text has it: all digits, and no needless point."""
    whole = isinstance(value, float) and value.is_integer() and abs(value) < _LARGE
    return str(int(value)) if whole else str(value)


def _numbers(column: Column, most: int) -> list[float]:
    values = column.values
    seen = values[~np.isnan(values)]
    if not len(seen):
        return []
    low, high = seen.min(), seen.max()
    if np.all((seen == low) | (seen == high)):  # nearly always: no need to sort
        return [float(low)] if low == high else [float(low), float(high)]
    return [float(value) for value in np.unique(seen)[: most + 1]]


def _read_numbers(column: Column, coding: Coding) -> tuple[States, int | None]:
    values = column.values
    zero, one = as_number(coding.zero), as_number(coding.one)
    states: States = np.full(len(values), HIDDEN, dtype=np.int8)
    for bit, number in enumerate((zero, one)):
        if number is not None:
            states[values == number] = bit
    strange = np.flatnonzero((states == HIDDEN) & ~np.isnan(values))
    return states, int(strange[0]) if len(strange) else None


def _key(value: Any) -> Any:
    """What two cells must share to count as equal: the number they spell, or the word in any case, or all letters."""
    number = as_number(value)
    if number is not None:
        return number
    folded = value.casefold()
    return folded if folded in _WORDS else value


def _meaning(value: Any) -> tuple[tuple[str, str], int] | None:
    """The pair of words that a value belongs to, and whether it is 0 or 1; None if it does not say."""
    number = as_number(value)
    if number is not None:
        return (_PAIRS[0], int(number)) if number in (0.0, 1.0) else None
    return _WORDS.get(value.casefold())


def _known(values: list[Any]) -> Coding:
    """The coding of values that say what they mean; one that is not there is written as the other is."""
    if not values or any(isinstance(value, float) for value in values):
        return PLAIN
    pair = next(pair for pair, _ in filter(None, map(_meaning, values)))
    found = {bit: value for value in values for _, bit in filter(None, [_meaning(value)])}
    return Coding(*(found.get(bit, _like(values[0], pair[bit])) for bit in (0, 1)))


def _like(seen: str, word: str) -> str:
    """A word in capitals, or with one, as another is written."""
    if seen.isupper():
        return word.upper()
    return word.capitalize() if seen[:1].isupper() else word


def _in_order(values: list[Any], column: Column) -> Coding | None:
    """The order rule; None for values that have no order among them."""
    if column.ordered and column.categories is not None:
        return Coding(*sorted(values, key=column.categories.index))
    numbers = [as_number(value) for value in values]
    if None not in numbers:
        ranked = sorted(values, key=lambda value: as_number(value) or 0.0)
        return Coding(*ranked) if all(map(math.isfinite, filter(None, numbers))) else None
    if any(isinstance(value, float) for value in values):
        return None  # a number beside a word
    return Coding(*sorted(values, key=lambda text: (text.casefold(), text)))
