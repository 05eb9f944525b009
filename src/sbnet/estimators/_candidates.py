"""What a density tries while it chooses: candidates, judged by rows that are held out."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from sbnet._types import FloatArray
from sbnet.estimators import _learning
from sbnet.estimators._autoregressive import Autoregressive, Drawn, Scales
from sbnet.estimators._report import Trial
from sbnet.estimators._rows import Rows, place
from sbnet.estimators._stages import RATE, stage, stage_epochs
from sbnet.inference import infer_many
from sbnet.model.network import Network

if TYPE_CHECKING:
    from sbnet.estimators.density import SBNDensity

_Regressions = TypeVar("_Regressions", Autoregressive, Drawn)
LEARNED = 20_000
"""The most rows to learn from while choosing."""
_SHARE, _LEAST, _HELD = 0.1, 20, 3_000
"""The share of rows held out, the least number, and the largest."""
_BUDGET = 8e10
"""Steps after which nothing new is tried: about 400 seconds of one processor. They are counted, not timed, so that the
same seed gives the same network on any machine."""
_PER_UNIT, _PER_PAIR = 32, 4
"""Steps of a row: one for each edge, and so many for each unit of a network, or pair of columns in a regression."""
_PAYS = 2.0  # standard errors of the mean gain of held-out rows


@dataclass(frozen=True, eq=False)
class Candidate:
    """A network, the bound of each held-out row, and what it is made of."""

    what: str
    network: Network
    bounds: FloatArray
    hidden: tuple[int, ...] = ()
    column_mixtures: int = 0
    hidden_first: bool = False
    stages: int = 0
    rate: float = RATE
    scales: Scales | None = None  # if other than those it was begun with

    @property
    def mean(self) -> float:
        """The mean bound of the held-out rows."""
        return float(self.bounds.mean())

    def pays(self, other: Candidate) -> bool:
        """Is it better than another by more than chance?"""
        difference = self.bounds - other.bounds
        return bool(difference.mean() > max(_PAYS * difference.std() / np.sqrt(len(difference)), 1e-3))


def best_of(candidates: list[Candidate]) -> Candidate:
    """The likeliest; the first of those that are equal."""
    return max(candidates, key=lambda candidate: candidate.mean)


@dataclass
class Search:
    """The rows to learn from while choosing, those held out, and what has been tried."""

    density: SBNDensity
    rows: Rows
    held: Rows
    generator: np.random.Generator
    begin: float = field(default_factory=time.monotonic)
    steps: int = 0
    trials: list[Trial] = field(default_factory=list)
    clock: float = field(default_factory=time.monotonic)

    @classmethod
    def of(cls, density: SBNDensity, rows: Rows, generator: np.random.Generator) -> Search:
        """Rows to learn from and rows to hold out; of long tables some are enough to choose by."""
        n = len(rows.cells)
        order = generator.permutation(n)
        held = min(max(_LEAST, round(_SHARE * n)), _HELD)
        out, kept = np.sort(order[:held]), np.sort(order[held : held + LEARNED])
        return cls(density, rows.keep(kept), rows.keep(out), generator)

    @property
    def threads(self) -> int | None:
        """None: as many as there are cores."""
        return _learning.threads(self.density)

    @property
    def is_late(self) -> bool:
        """Is the budget of steps spent?"""
        return self.steps > _BUDGET

    def stage(self, scales: Scales, network: Network, number: int = 1, rate: float = RATE) -> Network:
        """A network after one stage of learning, whose steps are counted."""
        epochs = stage_epochs(self.density, self.rows, number, rate)
        self.steps += epochs * len(self.rows.cells) * (network.n_edges + _PER_UNIT * network.n_units)
        return stage(self.density, self.rows, scales, network, self.generator, epochs=epochs, number=number, rate=rate)

    def solve(self, regressions: _Regressions, scales: Scales) -> _Regressions:
        """Regressions solved under some scales; their steps are counted."""
        rows, columns = regressions.rows.cells.shape
        self.steps += _PER_PAIR * rows * (columns * (columns - 1) // 2)
        return regressions.solved(scales, self.threads)

    def scored(self, what: str, network: Network, **made_of: Any) -> Candidate:
        """A candidate, entered in the list."""
        candidate = Candidate(what, network, self._bounds(network), **made_of)
        now = time.monotonic()
        self.trials.append(Trial(what, candidate.mean, now - self.clock))
        self.clock = now
        if self.density.verbose:
            print(f"  {what}: held-out bound {candidate.mean:.4f}", file=sys.stderr)
        return candidate

    def _bounds(self, network: Network) -> FloatArray:
        states = place(network, self.held.cells, self.held.names)
        solver = _learning.solver_for(self.density, network, self.held.names)
        return infer_many(network, states, solver=solver, threads=self.threads, progress=False).bound
