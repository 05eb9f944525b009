"""Tables in text, as programs write them, row by row: commas, semicolons, tabs or bars, in UTF-8 or UTF-16."""

from __future__ import annotations

import codecs
import contextlib
import csv
import io
import re
from collections.abc import Collection, Iterable, Iterator
from typing import BinaryIO, NamedTuple

from sbnet.errors import ParameterError, TableError, near_name
from sbnet.model.names import normal

_MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",  # before UTF-16, whose mark is the beginning of this one
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_DELIMITERS = (",", ";", "\t", "|")
_DECIMAL_COMMA = re.compile(r"([+-]?\d+),(\d+)")


class Manner(NamedTuple):
    """How to read a table: names that its columns may have, which tell what divides them; or what was said."""

    known: Collection[str] = ()
    delimiter: str | None = None
    encoding: str | None = None


class Delimited(NamedTuple):
    """A table that is being read: the names of its columns, which may be blank, then rows of cells with their lines."""

    names: tuple[str, ...]
    delimiter: str
    rows: Iterator[tuple[int, list[str]]]


def read(file: BinaryIO, what: str, how: Manner) -> Delimited:
    """A table in a file that can `peek`; its first line names columns."""
    delimiter = how.delimiter
    encoding = _said(how.encoding) or _encoding(file.peek(64)[:64])  # type: ignore[attr-defined]
    text = io.TextIOWrapper(file, encoding=encoding, newline="")
    lines = _lines(text, what, encoding)
    first = next(lines, "")
    announced = re.match(r"sep=(.)\r?\n", first)  # a line that spreadsheets put above the names
    skipped = 0
    if announced is not None:
        delimiter, first, skipped = announced[1], next(lines, ""), 1
    delimiter = delimiter or _delimiter(first, set(map(normal, how.known)))
    reader = csv.reader(_again(first, lines), delimiter=delimiter, strict=True)
    names = [name.strip() for name in _next(reader, what, delimiter)]
    if not any(names):
        raise TableError(f"{what} is empty; its first line must name the units")
    double = twice(names)
    if double is not None:
        raise TableError(f"the first line of {what} names unit {double!r} twice")
    return Delimited(tuple(names), delimiter, _rows(reader, what, delimiter, len(names), skipped))


def twice(names: Iterable[str]) -> str | None:
    """The first name that is there twice; columns without a name are not meant."""
    seen: set[str] = set()
    for name in names:
        if name and normal(name) in seen:
            return name
        seen.add(normal(name))
    return None


def plain(cell: str, delimiter: str) -> str:
    """A cell without blanks around it; where cells are divided by something else, its comma may be a point."""
    text = cell.strip()
    if delimiter != "," and _DECIMAL_COMMA.fullmatch(text):
        return _DECIMAL_COMMA.sub(r"\1.\2", text)
    return text


def _rows(
    reader: Iterator[list[str]], what: str, delimiter: str, width: int, skipped: int
) -> Iterator[tuple[int, list[str]]]:
    while True:
        row = _next(reader, what, delimiter)
        number = reader.line_num + skipped  # type: ignore[attr-defined]
        if row is _END:
            return
        # csv gives blank lines as []: where there is one column, that is a row in which it was not observed
        if not row and width > 1:
            continue
        row = row or [""]
        if len(row) != width:
            raise TableError(f"line {number} of {what} has {len(row)} cells; the first line has {width}")
        yield number, row


_END: list[str] = []


def _next(reader: Iterator[list[str]], what: str, delimiter: str) -> list[str]:
    try:
        return next(reader, _END)
    except csv.Error as error:
        raise TableError(f"{what} is no table of cells divided by {delimiter!r}: {error}") from None


def _lines(text: io.TextIOWrapper, what: str, encoding: str) -> Iterator[str]:
    number = 0
    try:
        for line in text:
            number += 1
            yield line
    except UnicodeDecodeError as error:
        byte = error.object[error.start]
        raise TableError(
            f"{what} cannot be decoded as {encoding.upper()} (soon after line {number} there is {byte:#04x}); "
            "save it as UTF-8, or name its own with --encoding, such as latin-1 or cp1252"
        ) from None
    finally:
        with contextlib.suppress(ValueError):  # it is closed already
            text.detach()  # who opened the file will close it


def _again(first: str, rest: Iterator[str]) -> Iterator[str]:
    yield first
    yield from rest


def _said(encoding: str | None) -> str | None:
    """An encoding of text that Python knows; anything else is refused."""
    if encoding is None:
        return None
    try:
        "a".encode(encoding)
        return codecs.lookup(encoding).name
    except (LookupError, TypeError, ValueError):
        near = near_name(
            encoding, ("utf-8", "utf-16", "latin-1", "cp1252", "cp1251", "cp437", "shift_jis", "gb18030"), 0.6
        )
        hint = f"did you mean {near!r}?" if near else "name one such as utf-8, latin-1 or cp1252"
        raise ParameterError(f"{encoding!r} is no encoding of text; {hint}") from None


def _encoding(first: bytes) -> str:
    """What the first bytes tell: a mark; or UTF-16 where every second one is zero, as with Latin letters; or UTF-8."""
    marked = next((name for mark, name in _MARKS.items() if first.startswith(mark)), None)
    if marked is not None:
        return marked
    if len(first) > 1 and 0 in first:
        return "utf-16-le" if first[1::2].count(0) >= first[::2].count(0) else "utf-16-be"
    return "utf-8"


def _delimiter(line: str, known: Collection[str]) -> str:
    """What divides the first line into known names; else what is most frequent in it, outside quotation marks."""
    first = line.rstrip("\r\n")
    for delimiter in _DELIMITERS:
        try:
            names = next(csv.reader([first], delimiter=delimiter), [])
        except csv.Error:  # reading all of it will say what is wrong
            continue
        listed = [normal(name.strip()) for name in names if name.strip()]
        if listed and all(name in known for name in listed):
            return delimiter
    bare = re.sub(r'"[^"]*"', "", first)
    return max(_DELIMITERS, key=bare.count)
