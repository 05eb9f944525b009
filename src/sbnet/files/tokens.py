"""A text as words and signs, one after the other, with their places: what readers of BIF, NET and DSC share."""

from __future__ import annotations

import math
import re
from collections.abc import Container, Mapping, Sized
from functools import cached_property
from typing import NamedTuple

from sbnet.errors import FileFormatError, hint
from sbnet.files.plain import at
from sbnet.files.positions import place_at
from sbnet.files.variables import MOST_ENTRIES, entries_of, parsed_number

_NUMBER = re.compile(r'[^\s,(){}\[\]|"]+|[{}\[\]|"]')


class Token(NamedTuple):
    """A word, a text in quotes, a sign or the end of the file, and where it begins."""

    text: str
    kind: str
    offset: int


class Tokens:
    """Goes through a text. `pattern` has the groups skip, quoted, sign, word and odd; `comment` matches a comment."""

    def __init__(self, name: str, text: str, pattern: re.Pattern[str], comment: re.Pattern[str]) -> None:
        self.name, self.text, self.pattern, self.comment = name, text, pattern, comment
        self._next = 0
        self.now = self._scanned()

    def _scanned(self) -> Token:
        while found := self.pattern.match(self.text, self._next):
            kind = str(found.lastgroup)
            if kind == "odd":
                raise self.wrong(f"{found.group()!r} has no place here", found.start())
            self._next = found.end()
            if kind != "skip":
                return Token(found[kind], kind, found.start())
        return Token("the end of the file", "end", len(self.text))

    def wrong(self, message: str, offset: int | None = None) -> FileFormatError:
        """An error at the present token, or at another place."""
        return at(place_at(self.text, self.now.offset if offset is None else offset), message, self.name)

    def take(self) -> Token:
        """The present token; the next one is the present one then."""
        token = self.now
        if token.kind != "end":
            self.now = self._scanned()
        return token

    def sees(self, text: str) -> bool:
        """Does this sign or word stand here?"""
        return self.now.text == text and self.now.kind != "quoted"

    def expect(self, text: str) -> None:
        """Step over a sign or word that must stand here."""
        if not self.sees(text):
            raise self.wrong(f"{text!r} is expected here, not {self.now.text[:40]!r}")
        self.take()

    def skipped(self, text: str) -> bool:
        """Step over a sign or word, if it stands here."""
        if self.sees(text):
            self.take()
            return True
        return False

    def named(self, what: str) -> str:
        """A word or a text in quotes."""
        if self.now.kind not in ("word", "quoted") or not self.now.text:
            raise self.wrong(f"{what} is expected here, not {self.now.text[:40]!r}")
        return self.take().text

    def known(self, what: str, states: Mapping[str, object]) -> str:
        """The name of a variable that has states already; `what` the format calls it."""
        offset, name = self.now.offset, self.named(f"the name of a {what}")
        if name not in states:
            raise self.wrong(f"{name[:60]!r} is not a {what} of the file{hint(name, states)}", offset)
        return name

    def heading(
        self, what: str, states: Mapping[str, Sized], tables: Container[str]
    ) -> tuple[int, str, tuple[str, ...], list[int]]:
        """What a table is of, (child | parents), each once: where that stands, and how many states parents have."""
        self.expect("(")
        offset, own = self.now.offset, self.known(what, states)
        self.skipped("|")
        parents = []
        while not self.sees(")"):
            parents.append(self.known(what, states))
            self.skipped(",")
        self.expect(")")
        if own in tables:
            raise self.wrong(f"{own[:60]!r} has two tables", offset)
        if own in parents or len(set(parents)) < len(parents):
            raise self.wrong(f"the table of {own[:60]!r} names a variable twice", offset)
        sizes = [len(states[parent]) for parent in parents]
        if entries_of((*sizes, len(states[own]))) > MOST_ENTRIES:
            text = f"the table of {own[:60]!r} has more than {MOST_ENTRIES:,} entries; that is the limit"
            raise self.wrong(text, offset)
        return offset, own, tuple(parents), sizes

    def numbers(self, name: str) -> tuple[float, ...]:
        """All numbers up to a semicolon, which is stepped over; commas and brackets between them say nothing."""
        begin, end = self.now.offset, self._plain.find(";", self.now.offset)
        chunk = self._plain[begin : len(self.text) if end < 0 else end]
        words = chunk.replace(",", " ").replace("(", " ").replace(")", " ").split()
        try:
            values = tuple(map(float, words))
        except ValueError:
            values = (math.nan,)
        if not all(map(math.isfinite, values)) or "_" in chunk or not chunk.isascii():
            for found in _NUMBER.finditer(chunk):
                if not math.isfinite(parsed_number(found.group())):
                    raise self._no_number(found.group(), name, begin + found.start())
        if end < 0:
            raise self._no_number("the end of the file", name, len(self.text))
        self._next = end
        self.now = self._scanned()
        self.expect(";")
        return values

    def _no_number(self, word: str, name: str, offset: int) -> FileFormatError:
        if word in (*"{}[]|", "the end of the file"):
            return self.wrong(f"a number, or ; after the last one, is expected here, not {word!r}", offset)
        return self.wrong(f"{word[:40]!r} in the table of {name[:60]!r} is no number", offset)

    @cached_property
    def _plain(self) -> str:
        """The text with blanks for comments, in which numbers are looked for: places stay as they are."""
        return self.comment.sub(lambda found: " " * len(found.group()), self.text)
