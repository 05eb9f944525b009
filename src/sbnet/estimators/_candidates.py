"""What a density tries while it chooses: candidates, judged by rows that are held out."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from sbnet._types import FloatArray
from sbnet.estimators import _learning
from sbnet.estimators._lateral import Scales
from sbnet.estimators._report import Trial
from sbnet.estimators._rows import Rows, place
from sbnet.estimators._stages import RATE
from sbnet.inference import infer_many
from sbnet.model.network import Network

if TYPE_CHECKING:
    from sbnet.estimators.density import SBNDensity

LEARNED = 20_000
"""The most rows to learn from while choosing."""
_SHARE, _LEAST, _HELD = 0.1, 20, 3_000
"""The share of rows held out, the least number, and the largest."""
_PATIENCE = 400.0  # seconds of processor time after which nothing new is tried
_PAYS = 2.0  # standard errors of the mean gain of held-out rows


@dataclass(frozen=True, eq=False)
class Candidate:
    """A network, the bound of each held-out row, and what it is made of."""

    what: str
    network: Network
    bounds: FloatArray
    hidden: tuple[int, ...] = ()
    switches: int = 0
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
    spent: float = field(default_factory=time.process_time)
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
        """Has the choice taken long enough?"""
        return time.process_time() - self.spent > _PATIENCE

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
