"""What learning returns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sbnet import checks
from sbnet._types import FloatArray
from sbnet.model.network import Network

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class Trial:
    """One candidate: what it was, its mean bound on validation rows in nats, and the seconds it took."""

    what: str
    bound: float
    seconds: float


def listing(title: str, trials: Sequence[Trial]) -> list[str]:
    """A line for each candidate."""
    width = max(len(text) for text in (title, *(t.what for t in trials))) + 2
    lines = [f"{title:<{width + 12}}{'seconds':>11}"]
    return [*lines, *(f"  {t.what:<{width - 2}}{t.bound:>12.4f}{t.seconds:>11.1f}" for t in trials)]


@dataclass(frozen=True, eq=False)
class FitResult:
    """What learning has come to.

    Attributes
    ----------
    network : Network
        The network of the best epoch: the last, or with held-out rows the one with the highest bound there.
    bounds : ndarray
        Mean bound per row over each epoch, in nats, measured while the weights were moving (after the epoch, if the
        log-likelihood was asked for too).
    held_out : ndarray or None
        Mean bound of the held-out rows after each epoch.
    log_likelihood : ndarray or None
        Exact mean log-likelihood of the training rows after each epoch, if it was asked for.
    best_epoch : int
        Counted from 1; 0 means the network that learning started from.
    interrupted : bool
        Was it stopped by Ctrl-C?
    seconds : float

    Examples
    --------
    >>> import sbnet as sb
    >>> net = sb.from_edges({("rain", "wet"): 2.0, ("sprinkler", "wet"): 1.5}, bias={"rain": -1.0})
    >>> result = sb.fit(net, [[1, 1, 1], [0, 0, 0]], epochs=3, rng=0)
    >>> len(result.bounds)
    3
    """

    network: Network
    bounds: FloatArray
    held_out: FloatArray | None
    log_likelihood: FloatArray | None
    best_epoch: int
    interrupted: bool
    seconds: float

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the bounds against the epochs, and the exact log-likelihood where it is known (Figure 6).

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to draw; by default in a new figure.

        Returns
        -------
        matplotlib.axes.Axes
        """
        import matplotlib.pyplot as plt
        from matplotlib.ticker import MaxNLocator

        ax = plt.subplots()[1] if ax is None else checks.axes(ax)
        epochs = np.arange(1, len(self.bounds) + 1)
        curves = {
            "log-likelihood, exact": self.log_likelihood,
            "bound": self.bounds,
            "bound, held-out rows": self.held_out,
        }
        colours, every = ("#222222", "#0072B2", "#D55E00"), max(1, len(epochs) // 15)
        for (label, values), colour, marker in zip(curves.items(), colours, "sov", strict=True):
            if values is not None:
                ax.plot(epochs, values, color=colour, marker=marker, markevery=every, label=label)
        ax.set_xlabel("epoch")
        ax.set_ylabel("nats per row")
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        ax.legend()
        return ax

    def __repr__(self) -> str:
        if not len(self.bounds):
            return "FitResult: no epoch was finished"
        text = f"FitResult: {len(self.bounds)} epochs in {self.seconds:.1f} s, mean bound {self.bounds[-1]:.6g} nats"
        if self.held_out is not None:
            text += f", held out {self.held_out[self.best_epoch - 1]:.6g} after epoch {self.best_epoch}"
        return text + (" (interrupted)" if self.interrupted else "")
