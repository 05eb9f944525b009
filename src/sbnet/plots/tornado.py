"""How an answer moves with the numbers of a network: a tornado."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes

from sbnet import checks
from sbnet.decisions import Sensitivity
from sbnet.errors import ParameterError, cut
from sbnet.plots.style import INK, NEGATIVE, POSITIVE, axes_of, name_rows


def tornado(sensitivity: Sensitivity, *, n: int = 15, ax: Axes | None = None) -> Axes:
    """Draw what a probability becomes when the odds of each number of the network are halved, and doubled.

    Parameters
    ----------
    sensitivity : Sensitivity
        What :func:`sbnet.sensitivity` says.
    n : int
        How many numbers are drawn, at most: those that move the answer most.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default in a new figure of a fitting size.

    Returns
    -------
    matplotlib.axes.Axes

    Examples
    --------
    >>> import sbnet as sb
    >>> import sbnet.plots
    >>> net = sb.noisy_or({("flu", "fever"): 0.9, ("cold", "fever"): 0.2}, leak=0.01, prior=0.1)
    >>> ax = sb.plots.tornado(sb.sensitivity(net, {"fever": 1}))
    """
    if not isinstance(sensitivity, Sensitivity):
        raise ParameterError(f"tornado() draws what sensitivity() says; got {checks.shown(sensitivity)}")
    shown = min(checks.whole("n", n, 1), len(sensitivity))
    ax = axes_of(ax, 6.4, 1.3 + 0.3 * shown)
    places, answer = np.arange(shown), sensitivity.answer
    style: dict[str, Any] = {"left": answer, "height": 0.6, "edgecolor": "white", "linewidth": 0}
    ax.barh(places, sensitivity.halved[:shown] - answer, color=NEGATIVE, hatch="////", label="odds halved", **style)
    ax.barh(places, sensitivity.doubled[:shown] - answer, color=POSITIVE, label="odds doubled", **style)
    ax.axvline(answer, color=INK, linewidth=0.8)
    name_rows(ax, [cut(name, 40) for name in sensitivity.numbers[:shown]])
    ax.set_xlabel(f"P({cut(sensitivity.about, 40)}), now {answer:.4f}", parse_math=False)
    ax.legend(loc="lower right", frameon=False, fontsize=8)
    return ax
