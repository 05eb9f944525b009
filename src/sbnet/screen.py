"""Text for a terminal: nothing in it moves the cursor or turns the line round, and it is as wide as the screen."""

from __future__ import annotations

import re
import shutil
import sys

_UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters, marks that change the direction of writing, other ends of lines, and halves of characters."""


def printable(text: str, kept: str = "\n\t") -> str:
    """The text with escapes, as in ``\\x1b``, in the place of what a terminal would obey; what is `kept` stays."""
    return _UNSEEN.sub(lambda found: found[0] if found[0] in kept else _escape(found[0]), text)


def _escape(character: str) -> str:
    return f"\\x{ord(character):02x}" if ord(character) < 256 else f"\\u{ord(character):04x}"


def in_line(text: str) -> str:
    """A text that stands within a line."""
    return printable(text, kept="")


def cut(text: str, room: int) -> str:
    """A text with its middle left out where it is longer than there is room for: names may differ at either end."""
    if len(text) <= room:
        return text
    end = (room - 1) // 3
    return f"{text[: room - 1 - end]}…{text[len(text) - end :]}"


def short(name: str, room: int = 40) -> str:
    """A name within a sentence."""
    return cut(in_line(name), room)


def width() -> int | None:
    """Of the terminal that standard output is; None where it is something else, and nothing has to be cut."""
    try:
        seen = sys.stdout.isatty()
    except (AttributeError, ValueError):  # there is none, or it is closed
        return None
    return shutil.get_terminal_size().columns if seen else None
