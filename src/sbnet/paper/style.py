"""Colours that can be told apart on white and on black, by colour-blind readers too, and small helpers for drawing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

FIRST, SECOND, THIRD = "#1c8fd6", "#e07b1a", "#2ba36f"
INK = "#7f0123"
"""Stands for the colour of the text of the page; the report puts that in its place."""

RC: dict[str, Any] = {
    "svg.fonttype": "none",  # text stays text: sharp, searchable, in the page's own font
    "font.family": "sans-serif",
    "font.size": 10,
    "text.color": INK,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "axes.titlesize": 10,
    "xtick.color": INK,
    "ytick.color": INK,
    "legend.frameon": False,
    "legend.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.facecolor": "none",
    "figure.facecolor": "none",
    "figure.constrained_layout.use": True,
    "lines.linewidth": 1.8,
}


def tile(figure: Figure, images: Sequence[Sequence[Any]], *, titles: Sequence[str] = (), side: int = 8) -> None:
    """Draw images in rows: black ink on nothing, thin for means between 0 and 1, and NaN, for hidden pixels, as orange.

    A page can turn black ink white for dark paper, which it could not do with a white background.
    """
    step, columns = side + 1, max(len(row) for row in images)
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
