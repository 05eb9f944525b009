"""How the report draws: colours for light and dark pages, small images, and drawings as SVG inside the page."""

from __future__ import annotations

import html
import io
import re
from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from sbnet import plots
from sbnet.paper.record import Picture

FIRST, SECOND, THIRD = "#1c8fd6", "#e07b1a", "#2ba36f"
INK = "#7f0123"
"""Stands for the colour of the text of the page; the report puts that in its place."""

RC: dict[str, Any] = {
    "svg.fonttype": "none",  # text stays text: sharp, searchable, in the page's own font
    "font.family": "sans-serif",
    "font.size": 10,
    "axes.titlesize": 10,
    "legend.frameon": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.facecolor": "none",
    "figure.facecolor": "none",
    "figure.constrained_layout.use": True,
    "lines.linewidth": 1.8,
}
_INKED = "text.color", "axes.edgecolor", "axes.labelcolor", "axes.titlecolor", "xtick.color", "ytick.color"
RC |= dict.fromkeys((*_INKED, "legend.labelcolor"), INK)


def tile(figure: Figure, images: Sequence[Sequence[Any]], *, titles: Sequence[str] = ()) -> None:
    """Draw images in rows: black ink on nothing, thin for means between 0 and 1, and NaN, for hidden pixels, as orange.

    A page can turn black ink white for dark paper, which it could not do with a white background.
    """
    side, step, columns = 8, 9, max(len(row) for row in images)
    sheet = np.zeros((len(images) * step, columns * step, 4))
    ax = figure.subplots()
    for r, row in enumerate(images):
        for c, image in enumerate(row):
            pixels = np.asarray(image, dtype=np.float64).reshape(side, side)
            place = sheet[r * step : r * step + side, c * step : c * step + side]
            place[..., 3] = np.nan_to_num(pixels)
            place[np.isnan(pixels)] = to_rgba("#e07b1a", 0.45)
            frame = Rectangle((c * step - 0.5, r * step - 0.5), side, side, fill=False, edgecolor="#999999", lw=0.6)
            ax.add_patch(frame)
    for c, title in enumerate(titles):
        ax.text(c * step + side / 2 - 0.5, -1.2, title, ha="center", va="bottom", color=INK)
    ax.imshow(sheet, interpolation="none")
    ax.axis("off")


_OF_THE_PAGE = {
    INK: "currentColor",
    plots.INK: "currentColor",
    "#ffffff": "var(--page)",
    plots.POSITIVE.lower(): FIRST,
    plots.NEGATIVE.lower(): SECOND,
}
"""Colours of a drawing that become those of the page: its text, its paper, and two that can be read on dark paper."""


def render(picture: Picture, name: str) -> str:
    """The drawing as an ``<svg>`` element; `name` keeps its identifiers apart from those of other drawings."""
    text = io.StringIO()
    settings: Any = {**RC, "svg.hashsalt": name}
    with mpl.rc_context(settings):
        figure = Figure(figsize=picture.size)
        picture.draw(figure)
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    svg = text.getvalue()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    used = set(re.findall(r"(?:url\(#|href=\"#)([^)\"]+)", svg))  # other identifiers go
    svg = re.sub(r' id="([^"]+)"', lambda m: f' id="{name}-{m[1]}"' if m[1] in used else "", svg)
    svg = re.sub(r"(url\(#|href=\"#)", rf"\g<1>{name}-", svg)
    for colour, own in _OF_THE_PAGE.items():
        svg = svg.replace(colour, own)
    width, height = (72 * inches for inches in picture.size)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" role="img" '
        f'aria-label="{html.escape(picture.alt)}" viewBox="0 0 {width:g} {height:g}" '
        f'style="max-width:{1.5 * width:.0f}px">'
    )
    return re.sub(r"<svg[^>]*>", lambda _: head, svg, count=1).strip()
