"""The search for a density: candidates, trained in stages on some rows and compared on validation rows.

A stage is some epochs at a rate that falls to zero; each begins at a lower rate than the one before.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from sbnet._types import FloatArray
from sbnet.estimators import _learning
from sbnet.estimators._autoregressive import Autoregressive, Scales
from sbnet.estimators._rows import Rows, place
from sbnet.estimators.settings import Settings, is_auto, is_autoregressive
from sbnet.inference import infer_many
from sbnet.learning import Adam, FitResult, Gaussian, Laplace
from sbnet.learning.results import Trial, listing
from sbnet.model.network import Network


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
        lines = listing(f"mean bound of {self.held_out_rows:,} held-out rows", self.trials)
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


LEARNED = 20_000
"""The most rows to learn from while choosing."""
_SHARE, _LEAST, _HELD = 0.1, 20, 3_000
"""The share of rows held out, the least number, and the largest."""
_BUDGET = 1e12
"""Steps after which nothing new is tried: about 400 seconds of one processor. They are counted, not timed, so that the
same seed gives the same network on any machine."""
_PER_UNIT, _PER_PAIR = 32, 4
"""Steps of a row: one for each edge, and so many for each unit of a network, or pair of columns in a regression."""
_ERRORS = 2.0  # standard errors of the mean gain of held-out rows
RATE, GENTLE = 0.1, 0.03
"""The rate of the first stage, and a gentle one."""
MOST_STAGES = 8
_SLOW, _SLOWER = 0.3, 0.1  # how much slower autoregressive weights go in either: they start where they belong
_FEW, _MANY, _MOST = 8, 12, 20  # epochs of a stage, from and to; and the most over all rows
_LAST = 6  # the last stage, over all rows, goes at the rate of this one
_STEPS, _ENOUGH = 400, 1_000  # steps of a stage, at least, and those after which no more epochs are needed
_LONG = 180_000  # rows in all that the last epochs go over, if there are at least two of them


@dataclass(frozen=True, eq=False)
class Candidate:
    """A network, the scales of its prior, what it is made of, and the bound of each held-out row once it is scored."""

    what: str
    network: Network
    scales: Scales
    bounds: FloatArray = field(default_factory=lambda: np.zeros(1))
    hidden: tuple[int, ...] = ()
    column_mixtures: int = 0
    hidden_first: bool = False
    stages: int = 0
    rate: float = RATE
    autoregressive: Autoregressive | None = None  # the regressions behind it, if it is nothing else

    @property
    def mean(self) -> float:
        """The mean bound of the held-out rows."""
        return float(self.bounds.mean())

    @property
    def kind(self) -> str:
        """What it is, whatever the stage."""
        return self.what.split(", stage")[0]

    def improves(self, other: Candidate) -> bool:
        """Is its validation log-likelihood better than another's by more than sampling error?"""
        difference = self.bounds - other.bounds
        return bool(difference.mean() > max(_ERRORS * difference.std() / np.sqrt(len(difference)), 1e-3))


def best_of(candidates: list[Candidate]) -> Candidate:
    """The likeliest; the first of those that are equal."""
    return max(candidates, key=lambda candidate: candidate.mean)


@dataclass
class Search:
    """The rows to learn from while choosing, those held out, and what has been tried."""

    settings: Settings
    rows: Rows
    held: Rows
    generator: np.random.Generator
    begin: float = field(default_factory=time.monotonic)
    steps: int = 0
    trials: list[Trial] = field(default_factory=list)
    clock: float = field(default_factory=time.monotonic)

    @classmethod
    def of(cls, settings: Settings, rows: Rows, generator: np.random.Generator) -> Search:
        """Rows to learn from and rows to hold out; of long tables some are enough to choose by."""
        n = len(rows.cells)
        order = generator.permutation(n)
        held = min(max(_LEAST, round(_SHARE * n)), _HELD)
        out, kept = np.sort(order[:held]), np.sort(order[held : held + LEARNED])
        return cls(settings, rows.keep(kept), rows.keep(out), generator)

    @property
    def threads(self) -> int | None:
        """None: as many as there are cores."""
        return _learning.threads(self.settings)

    @property
    def is_late(self) -> bool:
        """Is the budget of steps spent?"""
        return self.steps > _BUDGET

    def start(self, autoregressive: Autoregressive | None = None, **made_of: Any) -> Network:
        """A network of these rows that has learned nothing but regressions: see :func:`_learning.start`."""
        rows = self.rows if autoregressive is None else autoregressive.rows
        return _learning.start(self.settings, rows, self.generator, autoregressive=autoregressive, **made_of)

    def stage(self, scales: Scales, network: Network, number: int = 1, rate: float = RATE) -> Network:
        """A network after one stage of learning, whose steps are counted; the first of a gentle rate is twice as
        long.
        """
        auto = min(max(_FEW, -(-_ENOUGH // self._steps_of_epoch(self.rows))), _MANY)
        epochs = self._epochs(self.rows, auto) * (2 if rate == GENTLE and number == 1 else 1)
        self.steps += epochs * len(self.rows.cells) * (network.n_edges + _PER_UNIT * network.n_units)
        return self._train(self.rows, scales, network, epochs, rate, number, quiet=True).network

    def trained(self, candidate: Candidate, number: int = 1) -> Candidate:
        """A candidate after one more stage, scored."""
        network = self.stage(candidate.scales, candidate.network, number, candidate.rate)
        return self.scored(replace(candidate, network=network, stages=number))

    def solve(self, regressions: Autoregressive, scales: Scales) -> Autoregressive:
        """Regressions solved under some scales; their steps are counted."""
        rows, columns = regressions.rows.cells.shape
        self.steps += _PER_PAIR * rows * (columns * (columns - 1) // 2) // regressions.every
        return regressions.solved(scales, self.threads)

    def scored(self, candidate: Candidate) -> Candidate:
        """A candidate with the bounds of the held-out rows, entered in the list."""
        network = candidate.network
        states = place(network, self.held.cells, self.held.names)
        solver = _learning.solver_for(self.settings, network, self.held.names)
        bounds = infer_many(network, states, solver=solver, threads=self.threads, progress=False).bound
        candidate = replace(candidate, bounds=bounds)
        now = time.monotonic()
        self.trials.append(Trial(candidate.what, candidate.mean, now - self.clock))
        self.clock = now
        if self.settings.verbose:
            print(f"  {candidate.what}: held-out bound {candidate.mean:.4f}", file=sys.stderr)
        return candidate

    def last_stage(self, rows: Rows, candidate: Candidate) -> FitResult:
        """The stage over all rows: as many epochs as were asked for, or few, the fewer the longer the table."""
        epochs = self.settings.epochs
        if is_auto(epochs):
            epochs = self._epochs(rows, max(2, min(_MOST, round(_LONG / max(len(rows.cells), 1)))))
        return self._train(rows, candidate.scales, candidate.network, epochs, candidate.rate, _LAST, quiet=False)

    def _epochs(self, rows: Rows, auto: int) -> int:
        """The number of epochs: more for small tables, and no more than were asked for."""
        if is_auto(self.settings.epochs):
            return max(auto, -(-_STEPS // self._steps_of_epoch(rows)))
        return min(auto, int(self.settings.epochs))

    def _steps_of_epoch(self, rows: Rows) -> int:
        return max(-(-len(rows.cells) // self.settings.batch_size), 1)

    def _train(
        self, rows: Rows, scales: Scales, network: Network, epochs: int, rate: float, number: int, *, quiet: bool
    ) -> FitResult:
        slow = np.where(is_autoregressive(network, rows.names), _SLOW if rate == RATE else _SLOWER, 1.0)
        stepping: Any = self.settings.optimizer_until(epochs)
        if self.settings.steps_are_ours:
            stepping = Adam(rate / number, until=epochs, scale=np.append(slow, np.ones(network.n_units)))
        chosen = {"epochs": epochs, "prior": scales.prior(network, rows.names), "stepping": stepping, "quiet": quiet}
        return _learning.learn(self.settings, network, rows, self.generator, **chosen)
