"""What a density has chosen, and what each choice was worth on rows that were held out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from sbnet.learning import Gaussian, Laplace


@dataclass(frozen=True)
class Trial:
    """One candidate: what it was, its mean bound on the held-out rows in nats, and the seconds it took."""

    what: str
    bound: float
    seconds: float


@dataclass(frozen=True)
class Report:
    """What :meth:`SBNDensity.fit` has chosen.

    Attributes
    ----------
    autoregressive_scale, hidden_scale : float
        Scales of the Laplace priors on the weights from columns, and on those from hidden units.
    first_scale : float or None
        If each autoregressive weight has a scale of its own (an adaptive lasso): the scale under which their sizes were
        found. That helps where a few strong parents are enough.
    autoregressive_spread : float
        The standard deviation of autoregressive weights under a Gaussian prior beside the Laplace prior (an elastic
        net), which helps where many columns say the same. Infinite where there is none.
    order : str
        Of the columns: as given, or another with a better validation log-likelihood, for parents come first.
    layers : tuple of int
        Hidden units, layer by layer.
    hidden_first : bool
        Were they learned before there were autoregressive edges, or on top of them?
    column_mixtures : int
        Mixture variables of each column.
    n_edges : int
        Edges of the network; those of weight zero have been dropped.
    held_out_rows : int
        Rows that the choice was made on; afterwards they are learned from like all others.
    trials : tuple of Trial
        The candidates, in order.
    stages : int
        How often the rate fell to nothing while choosing, until held-out bounds rose no more.
    rate : float
        The rate of the first of them.
    epochs : int
        Passes over all rows after the choice; 0 where regressions were all there was to solve.
    seconds : float
    """

    autoregressive_scale: float
    hidden_scale: float
    first_scale: float | None
    autoregressive_spread: float
    order: str
    layers: tuple[int, ...]
    hidden_first: bool
    column_mixtures: int
    n_edges: int
    held_out_rows: int
    trials: tuple[Trial, ...]
    stages: int
    rate: float
    epochs: int
    seconds: float

    @property
    def hidden(self) -> int:
        """Number of hidden units, those of per-column mixtures not among them."""
        return sum(self.layers)

    @property
    def priors(self) -> dict[str, Any]:
        """By group of edges; without scales of their own for strong weights."""
        sparse = Laplace(self.autoregressive_scale)
        spread = self.autoregressive_spread
        beside = sparse if np.isinf(spread) else sparse.penalty + Gaussian(spread).penalty
        return {"autoregressive": beside, "hidden": Laplace(self.hidden_scale)}

    def __str__(self) -> str:
        title = f"mean bound of {self.held_out_rows:,} held-out rows"
        width = max(len(text) for text in (title, *(t.what for t in self.trials))) + 2
        lines = [f"{title:<{width + 12}}{'seconds':>11}"]
        lines += [f"  {t.what:<{width - 2}}{t.bound:>12.4f}{t.seconds:>11.1f}" for t in self.trials]
        strong = " (adaptive lasso)" if self.first_scale is not None else ""
        if np.isfinite(self.autoregressive_spread):
            strong = f" (elastic net, Gaussian scale {self.autoregressive_spread:.3g})"
        units = f"{self.hidden} hidden units, {self.column_mixtures} mixture variables a column; {self.n_edges:,} edges"
        lines.append(
            f"chosen: Laplace prior, scale {self.autoregressive_scale:.3g} for autoregressive edges{strong}, "
            f"{self.hidden_scale:.3g} for hidden ones; {units}; columns {self.order}"
        )
        lines.append(f"learned from all rows: {self.epochs} epochs; {self.seconds:.1f} seconds in all")
        return "\n".join(lines)
