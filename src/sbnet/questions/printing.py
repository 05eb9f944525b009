"""How answers read: a headline, a table whose last column may be bars, and remarks, in a terminal and in a notebook."""

from __future__ import annotations

import html
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from sbnet._types import HIDDEN, FloatArray, IndexArray, States
from sbnet.errors import cut, in_line, printable
from sbnet.errors import width as screen_width
from sbnet.model.network import Network
from sbnet.model.states import NO_YES
from sbnet.model.yes_no import bits
from sbnet.questions.by_state import probabilities

SHOWN = 12
"""Units in a table; the others are counted."""
_STATES = 4
"""States of a variable that are told in a line; of more, the likeliest."""
_LENGTH = 20
_SHORTEST = 8
"""Characters of a name beside its number."""
_NARROWEST, _LEGIBLE = 16, 40
"""Characters that a column of texts has at least, and below which it is more than bars are."""
_PADDED = 60
"""Characters up to which texts are brought to one length where nothing is cut."""
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
        kept, end = sorted((_length(self.before, self.top), _length(self.after, self.top)))
        return "█" * kept + ("+" if self.after > self.before else "-") * (end - kept)

    def html(self) -> str:
        """The bar in colours."""
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
        first = min(int(_LENGTH * self.low / self.top), _LENGTH - 1)
        last = min(max(first + 1, math.ceil(_LENGTH * self.high / self.top)), _LENGTH)
        return "·" * first + "█" * (last - first) + "·" * (_LENGTH - last)

    def html(self) -> str:
        """The interval in colour."""
        width = max(self.high - self.low, 0.01 * self.top)  # a point is seen too
        return _strip(self.top, (min(self.low, self.top - width), "none"), (width, _GAINED))


Bar: TypeAlias = "Move | Span"


@dataclass(frozen=True)
class Terms:
    """Names with a number each, the first few of them."""

    parts: tuple[tuple[str, str], ...]
    most: int = 3

    def text(self, room: int | None = None) -> str:
        """In a line; names are cut where there is little room, and then fewer of them stand there, but no number is."""
        for n in range(min(self.most, len(self.parts)), 0, -1):
            names = [in_line(name) for name, _ in self.parts[:n]]
            if room is None:
                return self._text(names)
            free = room - len(self._text([""] * n))
            if free >= sum(min(len(name), _SHORTEST) for name in names) or n == 1:
                longest = _share([len(name) for name in names], free, _SHORTEST)
                text = self._text([cut(name, longest) for name in names])
                for extra in (r"(?<=…) .* more$", r" \([^()]*\)(?=(, …)?$)", ", …$"):  # what is missed least goes first
                    text = text if len(text) <= room else re.sub(extra, "", text)
                return text
        return "nothing"

    def _text(self, names: Sequence[str]) -> str:
        left = len(self.parts) - len(names)
        told = [f"{name} {number}" for name, (_, number) in zip(names, self.parts, strict=False)]
        return ", ".join([*told, *([f"… {left:,} more"] if left else [])])

    def html(self) -> str:
        """The text, escaped for HTML."""
        return html.escape(self.text())


Cell: TypeAlias = "str | Bar | Terms"


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
    cuts : sequence of int
        The columns that are cut where the screen is narrow: the one of names, then those of other texts; numbers stay.
    """

    headline: str
    table: Sequence[Sequence[Cell]] = ()
    remarks: Sequence[str] = ()
    summary: Sequence[str] = ()
    cuts: Sequence[int] = (0,)

    def __str__(self) -> str:
        return self.text(screen_width())

    def text(self, width: int | None = None) -> str:
        """For a terminal, of some width; else nothing is cut, and one long name does not widen all lines."""
        lines = _lines(self._table(), self.cuts, width)
        extra, last = [f"  {line}" for line in self.summary], [f"  ({line})" for line in self.remarks]
        return printable("\n".join([self.headline, *extra, *lines, *last]))

    def html(self) -> str:
        """For a notebook."""
        if not self._table():
            return f"<pre>{html.escape(self.text())}</pre>"
        small = "".join(f"<br><small>{html.escape(line)}</small>" for line in (*self.summary, *self.remarks))
        caption = f"<caption style='{_LEFT};white-space:nowrap'><b>{html.escape(self.headline)}</b>{small}</caption>"
        titles, *rows = self._table()
        head = "".join(f"<th style='{_LEFT}'>{html.escape(str(title))}</th>" for title in titles)
        cells = [[html.escape(cell) if isinstance(cell, str) else cell.html() for cell in row] for row in rows]
        lines = ["".join(f"<td style='{_LEFT}'>{cell}</td>" for cell in row) for row in cells]
        body = "".join(f"<tr>{line}</tr>" for line in lines)
        return f"<table>{caption}<tr>{head}</tr>{body}</table>"

    def _table(self) -> Sequence[Sequence[Cell]]:
        """Titles alone are no table."""
        return self.table if len(self.table) > 1 else ()


class Readable:
    """A record that prints, and that notebooks show, as its reading."""

    __slots__ = ()

    def _reading(self) -> Reading:
        raise NotImplementedError

    def __repr__(self) -> str:
        return str(self._reading())

    def _repr_html_(self) -> str:
        return self._reading().html()


def by_change(before: FloatArray, after: FloatArray, places: IndexArray) -> IndexArray:
    """These places, those with the largest change first; rounding is no change."""
    change = np.round(np.abs(after[places] - before[places]), 9)
    return places[np.argsort(-change, kind="stable")]


def more(left: int) -> list[list[str]]:
    """A row that says how many rows were left out, if any were."""
    return [[f"... {left:,} more"]] if left > 0 else []


def moved(
    names: Sequence[str], before: FloatArray, after: FloatArray, places: IndexArray, errors: FloatArray | None = None
) -> list[Sequence[str | Bar]]:
    """A row for each of the units that moved most: its name, both means, and a bar; the titles come first."""
    ranked = by_change(before, after, places)
    top = scale(before[ranked[:SHOWN]], after[ranked[:SHOWN]])
    rows: list[Sequence[str | Bar]] = [("variable", "prior → posterior", f"0 to {top:g}")]
    for i in ranked[:SHOWN]:
        means = f"{probability(before[i])} → {probability(after[i])}{plus_minus(errors, i)}"
        rows.append((names[i], means, Move(before[i], after[i], top)))
    return [*rows, *more(len(ranked) - SHOWN)]


def moved_variables(
    network: Network,
    before: FloatArray,
    after: FloatArray,
    variables: IndexArray,
    errors: FloatArray | None = None,
    ranked: IndexArray | None = None,
) -> list[Sequence[str | Bar]]:
    """A row for each of the variables that moved most, as in :func:`moved`, or for all that are `ranked` already.

    One with more than two states has all of them in its row, and the bar of the one that moved most.
    """
    if ranked is None and network.is_binary and not any(map(second, network.states.values())):
        return moved(network.names, before, after, variables, errors)
    own = [network.columns_of(int(i)) for i in variables]
    pairs = [(probabilities(before[one]), probabilities(after[one])) for one in own]
    most = [int(np.argmax(np.abs(new - old))) for old, new in pairs]
    old = np.array([pair[0][max(k, 1) if len(pair[0]) == 2 else k] for pair, k in zip(pairs, most, strict=True)])
    new = np.array([pair[1][max(k, 1) if len(pair[1]) == 2 else k] for pair, k in zip(pairs, most, strict=True)])
    order = np.arange(len(variables)) if ranked is not None else by_change(old, new, np.arange(len(variables)))
    listed = order if ranked is not None else order[:SHOWN]
    top = scale(old[listed], new[listed]) if len(listed) else 1.0
    rows: list[Sequence[str | Bar]] = [("variable", "prior → posterior", f"0 to {top:g}")]
    for k in listed:
        name = network.names[variables[k]]
        error = None if errors is None else errors[own[k]].max(keepdims=True)
        text = states_moved(network.states[name], *pairs[k]) + plus_minus(error, 0)
        rows.append((name, text, Move(old[k], new[k], top)))
    return [*rows, *more(len(order) - len(listed))]


def second(states: Sequence[str]) -> str:
    """The name of the second of two states, before its probability: nothing where it says yes."""
    return "" if states == NO_YES or bits(states) == (0, 1) else f"{in_line(states[1])} "


def states_moved(states: Sequence[str], before: FloatArray, after: FloatArray) -> str:
    """The probabilities of states before and after: of the second one of two, of all of a few, of the likeliest."""
    if len(states) == 2:
        return f"{second(states)}{probability(before[1])} → {probability(after[1])}"
    kept = range(len(states))
    if len(states) > _STATES:
        kept = sorted(np.argsort(-after, kind="stable")[: _STATES - 1].tolist())  # type: ignore[assignment]
    told = [f"{in_line(states[k])} {probability(before[k])} → {probability(after[k])}" for k in kept]
    left = len(states) - len(told)
    return ", ".join([*told, *([f"… {left} more"] if left else [])])


def states_told(states: Sequence[str], p: FloatArray) -> str:
    """The probabilities of states in one line: of the second one of two, of all of a few, of the likeliest of many."""
    if len(states) == 2:
        return f"{second(states)}{probability(float(p[1]))}"
    kept = (
        range(len(states)) if len(states) <= _STATES else sorted(np.argsort(-p, kind="stable")[: _STATES - 1].tolist())
    )
    left = len(states) - len(kept)
    return ", ".join([*(f"{in_line(states[k])} {p[k]:.4f}" for k in kept), *([f"… {left} more"] if left else [])])


def probability(p: float) -> str:
    """A probability to four places; to two digits if it is rare."""
    return f"{p:.4f}" if p >= 1e-3 or p == 0.0 else f"{p:.1e}"


def factor(nats: float) -> str:
    """By what nats multiply odds: ×2.2, ÷3; the fewer digits the larger it is."""
    return ("÷" if nats < 0.0 else "×") + _size(nats)


def odds(log_odds: float) -> str:
    """Log-odds as people say them: 9 to 1."""
    return f"1 to {_size(log_odds)}" if log_odds < 0.0 else f"{_size(log_odds)} to 1"


def _size(nats: float) -> str:
    """e to the power of what it is without its sign, the fewer digits the larger it is."""
    size = math.exp(min(abs(nats), 700.0))
    text = (
        f"{size:.2f}"
        if size < 1.995
        else f"{size:.1f}"
        if size < 9.95
        else f"{size:,.0f}"
        if size < 1e4
        else f"{size:.0e}"
    )
    return re.sub(r"\.0+$", "", text).replace("e+0", "e").replace("e+", "e")


def in_nats(log_p: float, exact: bool) -> str:
    """ln P, and what is known of it; the rounding of a sum is no digit."""
    value = 0.0 if exact and abs(log_p) < 1e-12 else log_p
    return f"ln P {'=' if exact else '≥'} {value:.6g} nats, {'exact' if exact else 'a bound'}"


def plus_minus(errors: FloatArray | None, i: int) -> str:
    """The error of a mean, if there is one."""
    return "" if errors is None else f" ± {errors[i]:.3f}"


def scale(*values: FloatArray) -> float:
    """What the length of a bar stands for: 1, 0.5, 0.2, 0.1 and so on, the least that has room for all values."""
    most, top = max((float(v.max(initial=0.0)) for v in values), default=1.0), 1.0
    for power in range(-1, -7, -1):
        for digit in (5, 2, 1):
            if most > (step := digit * 10.0**power):
                return top
            top = step
    return top


def given(evidence: States) -> str:
    """How much was observed."""
    return f"given {int((evidence != HIDDEN).sum()):,} of {len(evidence):,} variables"


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


def _lines(table: Sequence[Sequence[Cell]], cuts: Sequence[int], width: int | None) -> list[str]:
    """A table in lines, fitted to the screen if its width is given."""
    whole = [row for row in table if len(row) == len(table[0])]  # one that counts what is left out is short
    layout = _layout(whole, cuts, width) if whole else []
    pads, lines = [size for _, size in layout], list[str]()
    for row in table:
        if len(row) < len(table[0]):
            lines.append(_line([_plain(cell) for cell in row], [0] * len(row)))
        elif width is None:
            lines.append(_line([_plain(cell) for cell in row], pads))
        else:
            lines.append(_line([_fitted(row[k], size, k == cuts[0]) for k, size in layout], pads))
    return lines


def _layout(whole: Sequence[Sequence[Cell]], cuts: Sequence[int], width: int | None) -> list[tuple[int, int]]:
    """The columns that are shown, and how wide they are.

    Where the screen is too narrow, bars are left out, and then texts are cut, the longest first. Without a screen, one
    long text does not widen all others.
    """
    sizes = [max(len(_plain(row[k])) for row in whole) for k in range(len(whole[0]))]
    soft = {k for k in range(len(sizes)) if k in cuts or _holds(whole, k, Terms)}
    if width is None:
        return [(k, min(size, _PADDED) if k in soft else size) for k, size in enumerate(sizes)]
    legible = [min(size, _LEGIBLE) if k in soft else size for k, size in enumerate(sizes)]
    shown = [k for k in range(len(sizes)) if _total(legible) <= width or not _holds(whole, k, Move, Span)]
    room = width - _total([0 if k in soft else sizes[k] for k in shown])
    most = _share([sizes[k] for k in soft], room, _NARROWEST)
    return [(k, min(sizes[k], most) if k in soft else sizes[k]) for k in shown]


def _holds(rows: Sequence[Sequence[Cell]], k: int, *kinds: type) -> bool:
    return any(isinstance(row[k], kinds) for row in rows)


def _line(texts: Sequence[str], pads: Sequence[int]) -> str:
    return "  " + "  ".join(f"{text:<{pad}}" for text, pad in zip(texts, pads, strict=True)).rstrip()


def _plain(cell: Cell) -> str:
    return cell.text() if isinstance(cell, Terms) else in_line(cell if isinstance(cell, str) else cell.text())


def _fitted(cell: Cell, room: int, is_name: bool) -> str:
    """A cell as text that fits: a name without its middle, other texts without their end."""
    if isinstance(cell, Terms):
        return cell.text(room)
    text = _plain(cell)
    return cut(text, room) if is_name or len(text) <= room else f"{text[: room - 1]}…"


def _total(widths: Sequence[int]) -> int:
    """The length of a line with columns of these widths, two blanks before each."""
    return sum(widths) + 2 * len(widths)


def _share(wanted: Sequence[int], room: int, least: int) -> int:
    """The most that each text may take, so that all of them fit; the shortest are not cut for the longest, and none is
    cut below the least."""
    left = room
    for n, size in enumerate(sorted(wanted)):
        each = left // (len(wanted) - n)
        if size > each:
            return max(each, least)
        left -= size
    return max(wanted, default=0)


def _length(value: float, top: float) -> int:
    return min(round(_LENGTH * float(value / top)), _LENGTH)


def _strip(top: float, *parts: tuple[float, str]) -> str:
    """Coloured parts of a strip of fixed length, which is the top."""
    spans = "".join(
        f"<span style='{_BLOCK};height:0.8em;width:{100 * share / top:.1f}%;background:{colour}'></span>"
        for share, colour in parts
    )
    return f"<span style='{_BLOCK};width:10em;background:#eee;white-space:nowrap;line-height:0'>{spans}</span>"
