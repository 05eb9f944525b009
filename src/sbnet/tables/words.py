"""Cells as words and numbers: which two are the same, what they mean, how they are written."""

from __future__ import annotations

import datetime
import math
import re
import unicodedata
from typing import Any

import numpy as np

from sbnet.model import yes_no
from sbnet.tables import frames

_MEASURE = re.compile(
    r"[$€£]?\s*([+-]?\d{1,3}(?:,\d{3})+(?:\.\d+)?|[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*[%€$£]?"
)
SUSPICIOUS_WORDS = {
    "-", "--", "---", "?", "??", ".", "..", "*", "#", "unknown", "unk", "missing", "none", "n.a.", "n.a", "nil",
    "blank", "refused", "undefined",
    "don't know", "don’t know", "dont know", "do not know", "no answer", "not answered", "no response", "not available",
    "not applicable", "prefer not to say", "prefer not to answer", "not stated", "not specified", "not known",
    "keine angabe", "weiß nicht", "inconnu", "desconocido",
}  # fmt: skip
"""Words that may stand for a missing cell, or for an answer of its own: who has the table knows."""


def key(value: Any) -> Any:
    """What two cells must share to be one value: the number that they are or spell, or their letters in any case."""
    if isinstance(value, str):
        number = frames.as_number(value)
        plain = not re.fullmatch(r"[+-]?0\d+.*", value)
        return number if number is not None and plain and math.isfinite(number) else _folded(value)
    return None if value is None else _folded(str(value)) if isinstance(value, bytes) else _as_float(value)


def _as_float(value: Any) -> Any:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return str(value)


def _folded(text: str) -> str:
    return unicodedata.normalize("NFC", re.sub(r"\s+", " ", text).strip().casefold())


def as_number(value: Any) -> float | None:
    """The number that a cell is or spells: also $1,200 and 5 %."""
    if not isinstance(value, str):
        return float(value)
    match = _MEASURE.fullmatch(value)
    number = float("inf") if match is None else float(match[1].replace(",", ""))
    return number if math.isfinite(number) else None


def bit(value: Any) -> int | None:
    """0 for a word that means no, or 0 itself, 1 for yes; None for any other."""
    text = value if isinstance(value, str) else word(float(value)) if isinstance(value, int | float) else ""
    meant = yes_no.bits([text.strip()])
    return None if meant is None else meant[0]


def no_first(values: list[Any]) -> list[Any] | None:
    """Two values, that which means no before the other; None if neither says what it means."""
    both = yes_no.bits(map(word, values))
    meant = list(both) if both is not None else [bit(value) for value in values]
    if meant in ([0, 1], [0, None], [None, 1]):
        return values
    return values[::-1] if meant in ([1, 0], [None, 0], [1, None]) else None


def word(value: Any) -> str:
    """A number as a person writes it."""
    whole = isinstance(value, float) and value.is_integer() and abs(value) < 1e15
    return str(int(value)) if whole else repr(float(value)) if isinstance(value, float) else str(value)


def shown(value: Any) -> str:
    """A cell within a phrase."""
    text = word(value)
    text = text if len(text) <= 30 else text[:29] + "…"
    return repr(text) if isinstance(value, str) else text


def plain(value: Any) -> Any:
    """A cell as Python has it: text, a number, a truth value, a date."""
    if isinstance(value, np.datetime64 | np.timedelta64):
        return value.astype("datetime64[us]" if isinstance(value, np.datetime64) else "timedelta64[us]").item()
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    for convert in ("to_pydatetime", "to_pytimedelta"):
        if hasattr(value, convert):
            return getattr(value, convert)(**({"warn": False} if convert == "to_pydatetime" else {}))
    if hasattr(value, "start_time"):
        return str(value)
    value = value.item() if hasattr(value, "item") else value
    if isinstance(value, int) and abs(value) > 1e300:
        return str(value)
    if (
        isinstance(value, str | bool | int | float | datetime.date | datetime.time | datetime.timedelta)
        or value is None
    ):
        return value
    return float(value)


def is_missing(value: Any) -> bool:
    """None, NaN and their kin."""
    return value is None or value != value


def by_kind(value: Any) -> tuple[bool, Any]:
    """To sort numbers before text."""
    return isinstance(value, str), value
