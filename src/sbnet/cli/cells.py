"""Cells in the types of their columns: what is filled in must be what its column holds, and numbers stay numbers."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from sbnet import checks
from sbnet.cli.sources import Source
from sbnet.errors import TableError
from sbnet.tables import codings, delimited, frames


def kind_of(source: Source, place: int, cells: Sequence[Any]) -> type:
    """The type of a column, by the types that come with its table, or by its cells."""
    if source.schema is None:
        return next((type(cell) for cell in cells if cell is not None), str)
    types = checks.extra("pyarrow.types", "Parquet", of="tables")

    found = source.schema.field(place).type
    found = found.value_type if types.is_dictionary(found) else found
    known = {types.is_boolean: bool, types.is_integer: int, types.is_floating: float, types.is_decimal: Decimal}
    return next((kind for is_one, kind in known.items() if is_one(found)), str)


def as_cell(word: Any, kind: type, column: str) -> Any:
    """A value in the type of its column."""
    if kind is str or not isinstance(word, str):
        return word
    number = frames.as_number(word)
    number = codings.bit(word) if number is None else number
    if number is None:
        raise TableError(f"column {column!r} holds numbers, and {word!r}, which is to be filled in, is none")
    return round(number) if kind is int else kind(number)


def for_json(cell: Any, delimiter: str) -> Any:
    """A cell of a column of numbers: the number that it spells; nothing for a hole."""
    number = frames.as_number(delimited.plain(cell, delimiter)) if isinstance(cell, str) else cell
    if number is None or number != number:
        return cell if isinstance(cell, str) and cell.strip() else None
    return int(number) if isinstance(number, float) and number.is_integer() else number


def as_numbers(words: Sequence[Any]) -> tuple[Any, ...]:
    """Words that all spell numbers, just as they would be printed, as numbers; else as they are."""
    spelled = [frames.as_number(word) if isinstance(word, str) else None for word in words]
    numbers = [
        int(n) if n is not None and n.is_integer() and "." not in w else n for n, w in zip(spelled, words, strict=True)
    ]
    return tuple(numbers) if all(str(n) == w for n, w in zip(numbers, words, strict=True)) else tuple(words)
