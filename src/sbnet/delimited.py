"""Tables in text files, as programs write them: commas, semicolons or tabs, in UTF-8 or UTF-16."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Collection
from pathlib import Path
from typing import Any

from sbnet import tables
from sbnet.errors import TableError

_MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",  # before UTF-16, whose mark is the beginning of this one
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_DELIMITERS = (",", ";", "\t")
_DECIMAL_COMMA = re.compile(r"([+-]?\d+),(\d+)")


def read(path: Path, known: Collection[str] = (), missing: tuple[Any, ...] = ()) -> tables.Sheet:
    """The columns of a file whose first line names them; `known` names tell what divides that line, if in doubt."""
    text = decode(path)
    announced = re.match(r"sep=(.)\r?\n", text)  # a line that spreadsheets put above the names
    skipped = 0 if announced is None else 1
    delimiter = _delimiter(text, known) if announced is None else announced[1]
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        rows = [(reader.line_num, row) for row in reader][skipped:]
    except csv.Error as error:
        raise TableError(f"{path} is no table of cells divided by {delimiter!r}: {error}") from None
    if not rows or not any(rows[0][1]):
        raise TableError(f"{path} is empty; its first line must name the units")
    names = [name.strip() for name in rows[0][1]]
    for k, name in enumerate(names):
        if name in names[:k]:
            raise TableError(f"the first line of {path} names unit {name!r} twice")
    # csv gives blank lines as []: where there is one column, that is a row in which it was not observed
    lines = [(number, row or [""]) for number, row in rows[1:] if row or len(names) == 1]
    for number, row in lines:
        if len(row) != len(names):
            raise TableError(f"line {number} of {path} has {len(row)} cells; the first line has {len(names)}")
    cells = {name: [_cell(row[k], delimiter) for _, row in lines] for k, name in enumerate(names)}
    return tables.from_columns(cells, len(lines), missing, lines=[number for number, _ in lines])


def decode(path: Path) -> str:
    """The text of a file, in the encoding that its first bytes tell."""
    data = path.read_bytes()
    encoding = next((name for mark, name in _MARKS.items() if data.startswith(mark)), None) or _unmarked(data)
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        raise TableError(
            f"{path} cannot be decoded as {encoding.upper()} (byte {error.start + 1} is {data[error.start]:#04x}); "
            "save it as UTF-8"
        ) from None


def _unmarked(data: bytes) -> str:
    """UTF-8; or UTF-16 where every second byte of the beginning is zero, as with Latin letters in it."""
    first = data[:64]
    if len(first) > 1 and 0 in first:
        return "utf-16-le" if first[1::2].count(0) >= first[::2].count(0) else "utf-16-be"
    return "utf-8"


def _delimiter(text: str, known: Collection[str]) -> str:
    """What divides the first line into known names; else what is most frequent in it, outside quotation marks."""
    first = text.split("\n", 1)[0].rstrip("\r")
    for delimiter in _DELIMITERS:
        try:
            names = next(csv.reader([first], delimiter=delimiter), [])
        except csv.Error:  # reading all of it will say what is wrong
            continue
        if names and all(name.strip() in known for name in names):
            return delimiter
    bare = re.sub(r'"[^"]*"', "", first)
    return max(_DELIMITERS, key=bare.count)


def _cell(text: str, delimiter: str) -> Any:
    """A number, if the cell spells one; where cells are divided by something else, its comma may be a point."""
    text = text.strip()
    if delimiter != ",":
        text = _DECIMAL_COMMA.sub(r"\1.\2", text) if _DECIMAL_COMMA.fullmatch(text) else text
    number = tables.as_number(text)
    return text if number is None else number
