"""A picture as SVG that lives inside a page: in the page's colours, light or dark, and fetching nothing."""

from __future__ import annotations

import html
import io
import re
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from sbnet import plots
from sbnet.paper.record import Picture
from sbnet.paper.style import FIRST, INK, RC, SECOND

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
    svg = _own_names(svg, name)
    for colour, own in _OF_THE_PAGE.items():
        svg = svg.replace(colour, own)
    width, height = (72 * inches for inches in picture.size)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" role="img" '
        f'aria-label="{html.escape(picture.alt)}" viewBox="0 0 {width:g} {height:g}" '
        f'style="max-width:{1.5 * width:.0f}px">'
    )
    return re.sub(r"<svg[^>]*>", lambda _: head, svg, count=1).strip()


def _own_names(svg: str, name: str) -> str:
    """Identifiers that are used get the name of the drawing in front; the others go."""
    used = set(re.findall(r"(?:url\(#|href=\"#)([^)\"]+)", svg))
    svg = re.sub(r' id="([^"]+)"', lambda m: f' id="{name}-{m[1]}"' if m[1] in used else "", svg)
    return re.sub(r"(url\(#|href=\"#)", rf"\g<1>{name}-", svg)
