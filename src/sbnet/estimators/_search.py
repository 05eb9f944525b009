"""The search for a density: candidates, trained in stages on some rows and compared on validation rows.

A stage is some epochs at a rate that falls to zero; each begins at a lower rate than the one before.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np

from sbnet._types import FloatArray
from sbnet.estimators import _learning
from sbnet.estimators._autoregressive import Autoregressive, Scales
from sbnet.estimators._rows import Rows, place
from sbnet.estimators.settings import Settings, is_auto, is_autoregressive
from sbnet.inference import infer_many
from sbnet.learning import Adam, FitResult, Gaussian, Laplace
from sbnet.learning.regressions import without_edges
from sbnet.learning.results import Trial, listing
from sbnet.learning.state_networks import StatesReport, VariableReport
from sbnet.model.network import Network

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


@dataclass(frozen=True, eq=False, kw_only=True)
class Made:
    """What a network is made of.

    Attributes
    ----------
    scales : Scales or None
        Of the priors of networks of two states a column; others have a penalty for each column.
    layers : tuple of int
        Hidden units, layer by layer.
    column_mixtures : int
        Mixture variables of each column.
    hidden_first : bool
        Were hidden units learned before there were autoregressive edges, or on top of them?
    stages : int
        How often the rate fell to nothing.
    rate : float
        That of the first stage.
    """

    scales: Scales | None
    layers: tuple[int, ...] = ()
    column_mixtures: int = 0
    hidden_first: bool = False
    stages: int = 0
    rate: float = RATE

    @property
    def hidden(self) -> int:
        """Number of hidden units, those of per-column mixtures not among them."""
        return sum(self.layers)


@dataclass(frozen=True, eq=False, kw_only=True)
class Candidate(Made):
    """A network that is tried, the bound of each held-out row once it is scored, and regressions that it began with."""

    scales: Scales
    what: str
    network: Network
    bounds: FloatArray = field(default_factory=lambda: np.zeros(1))
    regressions: Autoregressive | None = None

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


@dataclass(frozen=True, eq=False, kw_only=True)
class Report(Made):
    """What :meth:`SBNDensity.fit` has chosen, from what it is made of to how long it took; print it.

    Attributes
    ----------
    order : str
        Of the columns: as given, or another with a better validation log-likelihood, for parents come first.
    n_edges : int
        Edges of the network; those of weight zero have been dropped.
    held_out : float
        Mean bound of the validation rows, in nats.
    held_out_rows : int
        Rows that the choice was made on; they are learned from like all others.
    trials : tuple of Trial
        The candidates, in order.
    columns : tuple of VariableReport
        The penalty of each column, where some have more than two states.
    epochs : int
        Passes over all rows after the choice; 0 where regressions were all there was to solve.
    seconds : float
    """

    order: str
    n_edges: int
    held_out: float
    held_out_rows: int
    trials: tuple[Trial, ...]
    columns: tuple[VariableReport, ...] = ()
    epochs: int = 0
    seconds: float = 0.0

    @property
    def priors(self) -> dict[str, Any]:
        """By group of edges; without scales of their own for strong weights, and without penalties by column."""
        if self.scales is None:
            return {}
        sparse, spread = Laplace(self.scales.autoregressive), self.scales.spread
        beside = sparse if np.isinf(spread) else sparse.penalty + Gaussian(spread).penalty
        return {"autoregressive": beside, "hidden": Laplace(self.scales.hidden)}

    def __str__(self) -> str:
        lines = listing(f"mean bound of {self.held_out_rows:,} held-out rows", self.trials)
        lines += str(StatesReport(self.columns)).split("\n") if self.columns else []
        units = f"{self.hidden} hidden units, {self.column_mixtures} mixture variables a column"
        prior = "penalties by column" if self.scales is None else self.scales
        lines.append(f"chosen: {prior}; {units}; {self.n_edges:,} edges; columns {self.order}")
        lines.append(f"learned from all rows: {self.epochs} epochs; {self.seconds:.1f} seconds in all")
        return "\n".join(lines)


def best_of(candidates: list[Candidate]) -> Candidate:
    """The likeliest; the first of those that are equal."""
    return max(candidates, key=lambda candidate: candidate.mean)


@dataclass
class Search:
    """All rows, those to learn from while choosing, those held out, and what has been tried."""

    settings: Settings
    every: Rows
    rows: Rows
    held: Rows
    generator: np.random.Generator
    begin: float = field(default_factory=time.monotonic)
    steps: int = 0
    trials: list[Trial] = field(default_factory=list)
    clock: float = field(default_factory=time.monotonic)

    @classmethod
    def of(cls, settings: Settings, rows: Rows, generator: np.random.Generator, *, choosing: bool = True) -> Search:
        """Rows to learn from and, while choosing, rows to hold out; of long tables some are enough to choose by."""
        n = len(rows.cells)
        if not choosing and n <= LEARNED:
            return cls(settings, rows, rows, rows, generator)
        order, held = generator.permutation(n), min(max(_LEAST, round(_SHARE * n)), _HELD) if choosing else 0
        out, kept = np.sort(order[:held]), np.sort(order[held : held + LEARNED])
        return cls(settings, rows, rows.keep(kept), rows.keep(out), generator)

    @property
    def threads(self) -> int | None:
        """None: as many as there are cores."""
        return _learning.threads(self.settings)

    @property
    def is_late(self) -> bool:
        """Is the budget of steps spent?"""
        return self.steps > _BUDGET

    def start(self, regressions: Autoregressive | None = None, **made_of: Any) -> Network:
        """A network of these rows that has learned nothing but regressions: see :func:`_learning.start`."""
        rows = self.rows if regressions is None else regressions.rows
        return _learning.start(self.settings, rows, self.generator, autoregressive=regressions, **made_of)

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
        candidate = replace(candidate, bounds=self._bounds(candidate.network, self.held))
        self.tried(candidate.what, candidate.mean)
        return candidate

    def tried(self, what: str, bound: float) -> None:
        """Enter a candidate in the list."""
        now = time.monotonic()
        self.trials.append(Trial(what, bound, now - self.clock))
        self.clock = now
        if self.settings.verbose:
            print(f"  {what}: held-out bound {bound:.4f}", file=sys.stderr)

    def refitted(self, best: Candidate) -> FitResult:
        """What was chosen, learned from all rows: as many epochs as were asked for, or few, the fewer the longer the
        table. Regressions of complete rows alone are solved.
        """
        rows, epochs = self.every.named(self.rows.names), self.settings.epochs
        if best.regressions is not None and self.is_solved(best):
            regressions = best.regressions.refitted(rows, best.scales, self.threads)
            network = self.start(regressions, hidden=(), column_mixtures=0)
            mean = np.array([np.average(self._bounds(network, rows), weights=rows.weights)])
            result = FitResult(network, mean, None, None, 1, False, time.monotonic() - self.begin)
        else:
            if is_auto(epochs):
                epochs = self._epochs(rows, max(2, min(_MOST, round(_LONG / max(len(rows.cells), 1)))))
            result = self._train(rows, best.scales, best.network, epochs, best.rate, _LAST, quiet=False)
        return replace(result, network=without_edges(result.network, result.network.weight == 0.0))

    def is_solved(self, best: Made) -> bool:
        """Are regressions of complete rows all that there is to learn?"""
        return not (best.layers or best.column_mixtures or self.every.has_missing)

    def report(self, best: Made, network: Network, **told: Any) -> Report:
        """What was chosen."""
        made = {one.name: getattr(best, one.name) for one in fields(Made)}
        seconds = time.monotonic() - self.begin
        report = Report(**made, n_edges=network.n_edges, trials=tuple(self.trials), seconds=seconds, **told)
        if self.settings.verbose:
            print(report, file=sys.stderr)
        return report

    def _bounds(self, network: Network, rows: Rows) -> FloatArray:
        states = place(network, rows.cells, rows.names)
        solver = _learning.solver_for(self.settings, network, rows.names)
        return infer_many(network, states, solver=solver, threads=self.threads, progress=False).bound

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
