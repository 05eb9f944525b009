"""Colours, sizes and text that all pictures share."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import text_to_path

from sbnet import checks

POSITIVE, NEGATIVE, THIRD, ZERO, INK, FAINT = "#0072B2", "#D55E00", "#009E73", "#999999", "#222222", "#5a5a5a"
MEANS = LinearSegmentedColormap.from_list("means", ["white", "#74c476", "#006d2c"])
WEIGHTS = LinearSegmentedColormap.from_list("weights", ["#8c3a00", NEGATIVE, "#ececec", POSITIVE, "#003d66"])
"""Orange below zero, blue above, and grey at zero: where there is no edge, there is no colour at all."""

POINTS, FONT = 60.0, FontProperties(size=100)
"""A network is composed at 60 points to the unit of length, then grown or shrunk as a whole to fit its axes."""


def axes_of(ax: Axes | None, width: float, height: float) -> Axes:
    """The axes given, or those of a new figure of that size in inches."""
    return plt.subplots(figsize=(width, height), layout="constrained")[1] if ax is None else checks.axes(ax)


def name_rows(ax: Axes, names: Sequence[str], size: float | None = None) -> None:
    """A name for each row, the first on top, and no frame around them."""
    ax.set_yticks(range(len(names)), names, size=size)
    plain(ax)
    ax.set_ylim(max(len(names), 1) - 0.4, -0.6)
    ax.tick_params(axis="y", length=0)
    ax.spines[["top", "right", "left"]].set_visible(False)


def bars(ax: Axes, rows: Sequence[tuple[str, float, str]], title: str, label: str, room: float = 0.2) -> Axes:
    """A bar for each name and value, blue or orange by its sign, with a text at its end and room for that."""
    names, values, texts = zip(*rows, strict=True) if rows else ((), (), ())
    ax.barh(range(len(rows)), values, height=0.7, color=[POSITIVE if value > 0 else NEGATIVE for value in values])
    ax.axvline(0.0, color=INK, linewidth=0.8)
    low, high = min([0.0, *values]), max([0.0, *values]) or 1.0
    for k, (value, text) in enumerate(zip(values, texts, strict=True)):
        place = value + math.copysign(0.02 * (high - low), value)
        ax.text(place, k, text, size=8, color=FAINT, va="center", ha="left" if value > 0 else "right")
    name_rows(ax, names, 9)
    room *= high - low
    ax.set_xlim(low - room * (low < 0), high + room * (high > 0))
    ax.set_title(title, size=10, color=INK, loc="left", parse_math=False)
    ax.set_xlabel(label, size=8, color=FAINT)
    return ax


def plain(ax: Axes) -> None:
    """Names on ticks as they are: a dollar sign begins no formula."""
    for tick in (*ax.get_xticklabels(), *ax.get_yticklabels()):
        tick.set_parse_math(False)


def wrap(name: str, width: int, **options: Any) -> str:
    """The name in lines that end at a space or after an underscore."""
    return textwrap.fill(name.replace("_", "_\0 "), width, **options).replace("\0 ", "").replace("\0", "")


def signed(number: float, digits: str = ".3g") -> str:
    """With its sign, a minus that is as wide as a plus; zero alone has none."""
    return f"{number:+{digits}}".replace("-", "\N{MINUS SIGN}") if number else "0"


def extent(text: str, points: float) -> tuple[float, float]:
    """Width and height of a text, in units of length."""
    lines = text.split("\n")
    width = max(text_to_path.get_text_width_height_descent(line, FONT, False)[0] if line else 0.0 for line in lines)
    return width / FONT.get_size_in_points() * points / POINTS, 1.2 * len(lines) * points / POINTS
