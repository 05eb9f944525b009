"""The picture of an explanation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import matplotlib.pyplot as plt
from matplotlib.axes import Axes

if TYPE_CHECKING:
    from sbnet.estimators._explain import Explanation

_ODD, _USUAL, _INK, _LONGEST = "#D55E00", "#9ecae1", "#222222", 20


def draw_cells(explanation: Explanation, ax: Axes | None = None) -> Axes:
    """A bar for each cell, in nats, the most expensive on top; orange where another value would be more usual.

    Of a row with more than 20 observed cells only the 20 most expensive are drawn, and the title says so.
    """
    shown = min(len(explanation.names), _LONGEST)
    if ax is None:
        _, ax = plt.subplots(figsize=(6.4, 1.2 + 0.28 * max(shown, 2)), layout="constrained")
    names, values = explanation.names[:shown], explanation.values[:shown]
    usual, chance, nats = explanation.usual[:shown], explanation.probability[:shown], explanation.nats[:shown]
    odd = [value != most for value, most in zip(values, usual, strict=True)]
    places = range(shown)
    bars = ax.barh(places, nats, color=[_ODD if flag else _USUAL for flag in odd], height=0.72)
    notes = [f"{most}: {100 * p:.0f} %" if flag else "" for most, p, flag in zip(usual, chance, odd, strict=True)]
    ax.bar_label(bars, notes, padding=4, fontsize=8, color=_INK)
    ax.set_yticks(places, [_label(name, value) for name, value in zip(names, values, strict=True)])
    ax.invert_yaxis()
    ax.margins(x=0.25)
    ax.set_xlim(left=0.0)
    ax.set_xlabel("nats: −ln P(cell | other cells); beside a bar, the more usual value")
    more = f", the {shown} most expensive of {len(explanation.names)} cells" if shown < len(explanation.names) else ""
    ax.set_title(f"row {explanation.row}: ln P ≥ {explanation.score:.4g}{more}", fontsize=10, loc="left")
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def _label(name: str, value: str) -> str:
    text = value if value.startswith(name) else f"{name} = {value}"
    return text if len(text) <= 40 else text[:39] + "…"
