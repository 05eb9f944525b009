"""Where in a TOML text a key stands. `tomllib` finds out what a file says, and forgets where."""

from __future__ import annotations

import re
import tomllib
from typing import NamedTuple

_TOKEN = re.compile(
    r'(?P<text>"""(?:[^\\]|\\.)*?"{3,5}|\'\'\'.*?\'{3,5}|"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\')'
    r"|(?P<comment>#[^\n]*)|(?P<newline>\n)|(?P<sign>[\[\]{},.=])|(?P<bare>[^\s\[\]{},.=\"'#]+)",
    re.DOTALL,
)


MOST_PARTS = 8
"""Parts of a key with dots, at most: `tomllib` takes the square of their number, in time and memory."""
_KEY = r"""(?:[^\s.=\[\]{},"'#]++|"[^"\n]*+"|'[^'\n]*+')"""
_LONG_KEY = re.compile(rf"""(?<![^\s.=\[\]{{}},"'#]){_KEY}(?:[ \t]*+\.[ \t]*+{_KEY}){{{MOST_PARTS}}}""")


class Place(NamedTuple):
    """A line and a column, both counted from 1, as editors do."""

    line: int
    column: int

    def __str__(self) -> str:
        return f"line {self.line}, column {self.column}"


def place_of(text: str, path: tuple[str, ...]) -> Place:
    """Where the last of the keys of `path` stands, or the nearest one above it that does."""
    walk = _Walk()  # `tomllib` has read the text already, so that nothing in it is wrong
    for token in _TOKEN.finditer(text):
        walk.step(str(token.lastgroup), token.group(), token.start())
    offsets = walk.found
    while path and path not in offsets:
        path = path[:-1]
    return place_at(text, offsets.get(path, 0))


def place_at(text: str, offset: int) -> Place:
    """The line and the column of a character."""
    start = text.rfind("\n", 0, offset) + 1
    return Place(text.count("\n", 0, offset) + 1, offset - start + 1)


def deep_key(text: str) -> Place | None:
    """Where a key with more than `MOST_PARTS` parts ends, of any text; None if there is none."""
    if not any(line.count(".") >= MOST_PARTS and _LONG_KEY.search(line) for line in text.split("\n")):
        return None
    parts, dotted = 0, False
    for token in _TOKEN.finditer(text):  # what looked like a key may stand in a text or in a comment
        if token.lastgroup in ("text", "bare"):
            parts = parts + 1 if dotted else 1
            if parts > MOST_PARTS:
                return place_at(text, token.start())
        dotted = token.group() == "."
    return None


class _Walk:
    """Follows keys through tables, dotted keys and inline tables.

    `stack` holds what is open: for each inline table the path of its key, for each list None. Keys are read at the
    start of a line, after `{` and after the commas of an inline table; what follows `=` is a value.
    """

    def __init__(self) -> None:
        self.found: dict[tuple[str, ...], int] = {}
        self.table: tuple[str, ...] = ()
        self.stack: list[tuple[str, ...] | None] = []
        self.keys: list[str] = []
        self.in_header = self.in_value = False

    def step(self, kind: str, token: str, offset: int) -> None:
        if kind == "newline":
            if not self.stack:
                self.keys, self.in_header, self.in_value = [], False, False
        elif kind == "sign":
            self.sign(token)
        elif kind != "comment" and not self.in_value and not (self.stack and self.stack[-1] is None):
            quoted = token[0] in "\"'"  # quotes and escapes are TOML's
            self.keys.append(str(tomllib.loads(f"key = {token}")["key"]) if quoted else token)
            self.found.setdefault(self.path(), offset)

    def path(self) -> tuple[str, ...]:
        base = () if self.in_header else (self.stack[-1] or ()) if self.stack else self.table
        return base + tuple(self.keys)

    def sign(self, token: str) -> None:
        if token == "=":
            self.in_value = True
        elif token == "{":
            self.stack.append(self.path())
            self.keys, self.in_value = [], False
        elif token == "[" and (self.in_value or self.stack):
            self.stack.append(None)
        elif token == "[":
            self.in_header, self.keys = True, []
        elif token == "," and self.stack and self.stack[-1] is not None:
            self.keys, self.in_value = [], False
        elif token in "]}" and self.stack:
            self.stack.pop()
            self.in_value = True
        elif token == "]":
            self.table = tuple(self.keys)
