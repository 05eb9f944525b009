"""How answers read: a headline, a table whose last column may be bars, and remarks, in a terminal and in a notebook."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from sbnet._types import HIDDEN, FloatArray, IndexArray, States

SHOWN = 12
"""Units in a table; the others are counted."""
_CELLS = 20
_LEFT, _BLOCK = "text-align:left", "display:inline-block"
_KEPT, _GAINED, _LOST = "#8da0b3", "#1b7837", "#d95f02"


@dataclass(frozen=True)
class Move:
    """A bar from 0 to a probability that shows what it was before: █ is in both, + was gained, - was lost."""

    before: float
    after: float
    top: float = 1.0

    def text(self) -> str:
        """Twenty characters are the top."""
        kept, end = sorted((_cells(self.before, self.top), _cells(self.after, self.top)))
        return "█" * kept + ("+" if self.after > self.before else "-") * (end - kept)

    def html(self) -> str:
        """The same in colours."""
        kept, end = sorted((self.before, self.after))
        return _strip(self.top, (kept, _KEPT), (end - kept, _GAINED if self.after > self.before else _LOST))


@dataclass(frozen=True)
class Span:
    """Where an interval lies."""

    low: float
    high: float
    top: float = 1.0

    def text(self) -> str:
        """Twenty characters, of which those that the interval touches are █."""
        first = min(int(_CELLS * self.low / self.top), _CELLS - 1)
        last = min(max(first + 1, math.ceil(_CELLS * self.high / self.top)), _CELLS)
        return "·" * first + "█" * (last - first) + "·" * (_CELLS - last)

    def html(self) -> str:
        """The same in colour."""
        width = max(self.high - self.low, 0.01 * self.top)  # a point is seen too
        return _strip(self.top, (min(self.low, self.top - width), "none"), (width, _GAINED))


Bar: TypeAlias = "Move | Span"


@dataclass(frozen=True)
class Reading:
    """What a record says of itself.

    Attributes
    ----------
    headline : str
        What matters most.
    table : sequence of rows
        Texts, and bars; the first row has the titles.
    remarks : sequence of str
        What else should be known.
    summary : sequence of str
        Lines between the headline and the table.
    """

    headline: str
    table: Sequence[Sequence[str | Bar]] = ()
    remarks: Sequence[str] = ()
    summary: Sequence[str] = ()

    def text(self) -> str:
        """For a terminal."""
        table = [[cell if isinstance(cell, str) else cell.text() for cell in row] for row in self._table()]
        whole = [row for row in table if len(row) == len(table[0])]  # one that counts what is left out is short
        widths = [max(map(len, column)) for column in zip(*whole, strict=True)]
        lines = ["  " + "  ".join(f"{cell:<{widths[k]}}" for k, cell in enumerate(row)).rstrip() for row in table]
        extra, last = [f"  {line}" for line in self.summary], [f"  ({line})" for line in self.remarks]
        return "\n".join([self.headline, *extra, *lines, *last])

    def html(self) -> str:
        """For a notebook."""
        if not self._table():
            return f"<pre>{html.escape(self.text())}</pre>"
        small = "".join(f"<br><small>{html.escape(line)}</small>" for line in (*self.summary, *self.remarks))
        caption = f"<caption style='{_LEFT};white-space:nowrap'><b>{html.escape(self.headline)}</b>{small}</caption>"
        titles, *rows = self._table()
        head = "".join(f"<th style='{_LEFT}'>{html.escape(str(title))}</th>" for title in titles)
        body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
        return f"<table>{caption}<tr>{head}</tr>{body}</table>"

    def _table(self) -> Sequence[Sequence[str | Bar]]:
        """Titles alone are no table."""
        return self.table if len(self.table) > 1 else ()


class Readable:
    """A record that prints, and that notebooks show, as its reading."""

    __slots__ = ()

    def _reading(self) -> Reading:
        raise NotImplementedError

    def __repr__(self) -> str:
        return self._reading().text()

    def _repr_html_(self) -> str:
        return self._reading().html()


def by_change(before: FloatArray, after: FloatArray, places: IndexArray) -> IndexArray:
    """These places, those with the largest change first; rounding is no change."""
    change = np.round(np.abs(after[places] - before[places]), 9)
    return places[np.argsort(-change, kind="stable")]


def more(left: int, what: str = "") -> list[list[str]]:
    """A row that says how many rows were left out, if any were."""
    return [[f"... {left:,} {what}{' ' if what else ''}more"]] if left > 0 else []


def moved(
    names: Sequence[str], before: FloatArray, after: FloatArray, places: IndexArray, errors: FloatArray | None = None
) -> list[Sequence[str | Bar]]:
    """A row for each of the units that moved most: its name, both means, and a bar; the titles come first."""
    ranked = by_change(before, after, places)
    top = scale(before[ranked[:SHOWN]], after[ranked[:SHOWN]])
    rows = [
        (names[i], f"{chance(before[i])} → {chance(after[i])}{plus_minus(errors, i)}", Move(before[i], after[i], top))
        for i in ranked[:SHOWN]
    ]
    return [("hidden unit", "prior → posterior", f"0 to {top:g}"), *rows, *more(len(ranked) - SHOWN)]


def chance(p: float) -> str:
    """A probability to four places; to two digits if it is rare."""
    return f"{p:.4f}" if p >= 1e-3 or p == 0.0 else f"{p:.1e}"


def plus_minus(errors: FloatArray | None, i: int) -> str:
    """The error of a mean, if there is one."""
    return "" if errors is None else f" ± {errors[i]:.3f}"


def scale(*values: FloatArray) -> float:
    """The end of the bars: 1, 0.5, 0.2, 0.1 and so on, the least that has room for all values."""
    most, top = max((float(v.max(initial=0.0)) for v in values), default=1.0), 1.0
    for power in range(-1, -7, -1):
        for digit in (5, 2, 1):
            if most > (step := digit * 10.0**power):
                return top
            top = step
    return top


def given(evidence: States) -> str:
    """How much was observed."""
    return f"given {int((evidence != HIDDEN).sum()):,} of {len(evidence):,} units"


def rows(n: int) -> str:
    """A number of rows, in words."""
    return f"{n:,} row{'' if n == 1 else 's'}"


def spread(values: FloatArray) -> str:
    """Mean and range of some values of ln P, in nats; those of impossible evidence are counted apart."""
    known = values[values != -np.inf]
    gone = f"{len(values) - len(known):,} impossible" if len(known) < len(values) else ""
    if not len(known):
        return gone
    text = f"mean {known.mean():.6g}, from {known.min():.6g} to {known.max():.6g} nats"
    return f"{text}; {gone}" if gone else text


def _cells(value: float, top: float) -> int:
    return min(round(_CELLS * float(value / top)), _CELLS)


def _cell(cell: str | Bar) -> str:
    return f"<td style='{_LEFT}'>{html.escape(cell) if isinstance(cell, str) else cell.html()}</td>"


def _strip(top: float, *parts: tuple[float, str]) -> str:
    """Coloured parts of a strip of fixed length, which is the top."""
    spans = "".join(
        f"<span style='{_BLOCK};height:0.8em;width:{100 * share / top:.1f}%;background:{colour}'></span>"
        for share, colour in parts
    )
    return f"<span style='{_BLOCK};width:10em;background:#eee;white-space:nowrap;line-height:0'>{spans}</span>"
