"""Which of the two values of a column means 0, and which means 1.

Known are 0 and 1 (as numbers, truth values or text), and the words for yes and no, true and false that
:mod:`sbnet.tables.yes_no` lists, in any case. Beside one such word, any other is its opposite. Any other column with
exactly two values follows the *order rule*: the smaller one is 0, numbers by size, text by alphabet, and ordered
categories by their own order. It decides what estimators and ``sbnet fit`` call 0 and 1, which they remember; evidence
on a network is read by it only where the values are numbers, or have an order of their own.
"""

from __future__ import annotations

import math
import unicodedata
from dataclasses import dataclass
from typing import Any

import numpy as np

from sbnet._types import HIDDEN, BoolArray, States
from sbnet.tables import yes_no
from sbnet.tables.frames import Array, Column, as_number, is_number

NOT_CHOSEN = "not chosen"
"""What a blank says in a column of one value and blanks."""
_SHOWN = 5  # values in a message
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
        return yes_no.bits(_texts([self.zero, self.one])) == (0, 1)

    @property
    def is_translatable(self) -> bool:
        """Whether words of any language can stand for the two: neither value says the opposite of its place."""
        return bit(self.zero) in (None, 0) and bit(self.one) in (None, 1)

    @property
    def has_order(self) -> bool:
        """Whether the two values are numbers."""
        return as_number(self.zero) is not None and as_number(self.one) is not None


PLAIN = Coding(0.0, 1.0)


def learn(column: Column) -> Coding | None:
    """The coding of a column by its own values; None where they cannot be read as zeros and ones."""
    values = distinct(column)
    if not values:
        return PLAIN
    bits = yes_no.bits(_texts(values))
    if bits is not None:
        return _known(values, bits)
    known = [bit(value) for value in values]
    if len(values) != 2 or None not in known:
        return None
    words = not any(isinstance(value, float) or as_number(value) is not None for value in values)
    if words and known != [None, None] and not column.ordered:
        return Coding(*(values if known[0] == 0 or known[1] == 1 else values[::-1]))
    return _in_order(values, column)


def read(column: Column, coding: Coding) -> tuple[States, int | None]:
    """0, 1 or -1 (missing) for each cell, and the first row that holds neither of the two values, if there is one."""
    if column.is_number:
        values = column.values
        states: States = np.full(len(values), HIDDEN, dtype=np.int8)
        for bit, number in enumerate((as_number(coding.zero), as_number(coding.one))):
            if number is not None:
                states[values == number] = bit
        unread = np.flatnonzero((states == HIDDEN) & ~np.isnan(values))
        return states, int(unread[0]) if len(unread) else None
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


def numbers_of_states(table: Array, n_states: Any, gone: tuple[Any, ...] = ()) -> tuple[States, BoolArray]:
    """Numbers of states from numbers of any type, -1 for none, for columns with so many states; which could be read."""
    if table.dtype.kind == "b":
        return table.astype(np.int8), np.ones(table.shape, dtype=np.bool_)
    absent = np.isnan(table) if table.dtype.kind == "f" else np.zeros(table.shape, dtype=np.bool_)
    for number in [number for number in map(as_number, gone) if number is not None]:
        absent |= table == (int(number) if table.dtype.kind in "iu" and number.is_integer() else number)
    known = (table >= 0) & (table < n_states) & ~absent
    if table.dtype.kind == "f":
        known &= table == np.floor(table)
    return np.where(known, table, -1).astype(np.int8), known | absent


def place_of(value: float, n_states: int) -> int | None:
    """The number of a state that a number is; None if there is none."""
    return int(value) if value.is_integer() and 0 <= value < n_states else None


def are_states(coding: Coding) -> bool:
    """Two words or two numbers; but fractions within [0, 1] are probabilities that a unit is 1, and no states."""
    numbers = [as_number(value) for value in (coding.zero, coding.one)]
    known = [number for number in numbers if number is not None]
    probabilities = len(known) == 2 and all(0 <= number <= 1 for number in known)
    return not probabilities or all(number.is_integer() for number in known)


def may_be_signs(n_rows: int, gone: tuple[Any, ...]) -> bool:
    """Whether a column of -1 and 1 may be one of no and yes: there are a few rows, and -1 was not said to be missing,
    beside what `gone` has of itself."""
    return n_rows >= _FEW and sum(is_number(value, -1.0) for value in gone) <= 1


def bit(value: Any) -> int | None:
    """0 or 1 for a value that says itself what it means; None for any other."""
    meant = yes_no.bits(_texts([value.strip() if isinstance(value, str) else value]))
    return None if meant is None else meant[0]


def meaning(value: Any, coding: Coding) -> int | None:
    """0 or 1 for a word that says what it means, where a coding has other words for that; None for any other."""
    words = not any(isinstance(one, float) or as_number(one) is not None for one in (coding.zero, coding.one))
    return bit(value) if words and coding.is_translatable else None


def is_settled(value: Any) -> bool:
    """Whether a column that begins with this value alone has it for its 0, whatever comes later."""
    return bit(value) == 0 and not yes_no.may_pair_otherwise(_text(value))


def clash(values: list[Any]) -> str:
    """What is wrong with two words that do not belong together, for a message; nothing if they are not known."""
    meant = [bit(value) for value in values]
    if len(values) != 2 or None in meant:
        return ""
    return (
        f", which both mean {'yes' if meant[0] else 'no'}" if meant[0] == meant[1] else ", which do not belong together"
    )


def distinct(column: Column) -> list[Any]:
    """Values of a column, at most six of them: numbers by size, text as it comes; or its two categories."""
    if column.categories is not None and len(column.categories) == 2:
        return list(column.categories)
    if column.is_number:
        seen = column.values[~np.isnan(column.values)]
        if not len(seen):
            return []
        low, high = float(seen.min()), float(seen.max())
        if np.all((seen == low) | (seen == high)):  # nearly always: no need to sort
            return [low] if low == high else [low, high]
        return [float(value) for value in np.unique(seen)[: _SHOWN + 1]]
    found: dict[Any, Any] = {}
    for value in dict.fromkeys(column.values.tolist()):
        if value is not None and len(found) <= _SHOWN:
            found.setdefault(_key(value), value)
    return list(found.values())


def first_strange(column: Column) -> int:
    """The first row whose value does not say by itself, or not in the words of the cells before it, what it means."""
    seen: dict[Any, None] = {}
    for r, value in enumerate(column.values.tolist()):
        if value is not None and value == value and (key := _key(value)) not in seen:
            seen[key] = None
            if yes_no.bits(_texts(list(seen))) is None:
                return r
    return 0


def listing(values: list[Any]) -> str:
    """Values for a message: the first few, in words."""
    shown = [show(value) for value in values[:_SHOWN]]
    if len(values) > _SHOWN:
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


def _key(value: Any) -> Any:
    """What two cells must share to count as equal: the number they spell, or the known word in any case, or all
    letters."""
    number = as_number(value)
    if number is not None:
        return number
    return yes_no.spelling(value) or unicodedata.normalize("NFC", value)


def _texts(values: list[Any]) -> list[str]:
    return list(map(_text, values))


def _text(value: Any) -> str:
    """A cell as a word: numbers that are equal are one."""
    number = as_number(value)
    return value if number is None else word(number)


def _known(values: list[Any], bits: tuple[int, ...]) -> Coding:
    """The coding of values that say what they mean; one that is not there is written as the other is."""
    if any(isinstance(value, float) for value in values):
        return PLAIN
    found = dict(zip(reversed(bits), reversed(values), strict=True))
    for bit, side in enumerate(yes_no.PAIRS[next(iter(yes_no.in_common(_texts(values))))]):
        word, first = side[0], values[0]  # in capitals, or with one, as the other is written
        word = word.upper() if first.isupper() else word.capitalize() if first[:1].isupper() else word
        found.setdefault(bit, word)
    return Coding(found[0], found[1])


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
