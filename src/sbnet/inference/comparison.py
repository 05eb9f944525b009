"""What changes from one answer to another."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from sbnet._types import HIDDEN, FloatArray, States
from sbnet.errors import unknown_unit
from sbnet.questions import printing
from sbnet.questions.batches import framed
from sbnet.questions.printing import Readable, Reading

if TYPE_CHECKING:
    import pandas

State: TypeAlias = "int | None"


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Readable):
    """What changes from one posterior to another: what was observed, the bound, and the means.

    ``comparison["rain"]`` is the change of a mean.

    Attributes
    ----------
    names : tuple of str
        The units.
    evidence : pair of ndarrays of int8
        What was observed, before and after: 0, 1, or -1 for a hidden unit.
    means : pair of ndarrays
        The means of all units, before and after.
    bounds : pair of float
        Lower bounds on ln P(evidence), in nats, before and after; of an exact posterior ln P itself.
    same_network : bool
        Have both networks the same edges and numbers?
    """

    names: tuple[str, ...]
    evidence: tuple[States, States]
    means: tuple[FloatArray, FloatArray]
    bounds: tuple[float, float]
    same_network: bool

    @property
    def change(self) -> FloatArray:
        """How much each mean has risen."""
        return self.means[1] - self.means[0]

    @property
    def bound_change(self) -> float:
        """How much the bound has risen, in nats."""
        return self.bounds[1] - self.bounds[0]

    @property
    def evidence_changes(self) -> dict[str, tuple[State, State]]:
        """The units whose evidence differs: their states before and after, None for a hidden unit."""
        pairs = np.stack(self.evidence, axis=1)
        states = [(None if a == HIDDEN else a, None if b == HIDDEN else b) for a, b in pairs.tolist()]
        return {name: both for name, both in zip(self.names, states, strict=True) if both[0] != both[1]}

    def __getitem__(self, unit: str) -> float:
        if not isinstance(unit, str) or unit not in self.names:
            raise unknown_unit(unit, self.names, "the call")
        return float(self.change[self.names.index(unit)])

    def to_frame(self) -> pandas.DataFrame:
        """A pandas table, one row for each unit: its mean before and after, and the change."""
        return framed({"before": self.means[0], "after": self.means[1], "change": self.change}, units=self.names)

    def _reading(self) -> Reading:
        hidden = np.flatnonzero((self.evidence[0] == HIDDEN) & (self.evidence[1] == HIDDEN))
        (_, _, scale), *rows = printing.moved(self.names, *self.means, hidden)
        before, after = self.bounds
        if math.isnan(self.bound_change):
            bound = "one of the two has no bound" if math.isnan(before) != math.isnan(after) else "no bounds"
        else:
            moved = "rises" if self.bound_change > 0.0 else "falls"
            verb = f"{moved} by {abs(self.bound_change):.4g} nats" if self.bound_change else "stays"
            bound = f"the bound {verb}, {before:.6g} → {after:.6g}"
        changes = [_spoken(name, *states) for name, states in self.evidence_changes.items()]
        left = len(changes) - printing.SHOWN
        more = f", and {left:,} more" if left > 0 else ""
        evidence = f"evidence: {', '.join(changes[: printing.SHOWN])}{more}" if changes else "the evidence is the same"
        remarks = () if self.same_network else ("the two networks have the same units, but other edges or numbers",)
        titles = ("hidden in both", "before → after", scale)
        return Reading(f"Comparison: {bound}", (titles, *rows), remarks, (evidence,))


def _spoken(name: str, before: State, after: State) -> str:
    if before is None:
        return f"now {name} = {after}"
    return f"no longer {name} = {before}" if after is None else f"{name} = {before} → {after}"
