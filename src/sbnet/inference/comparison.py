"""What changes from one answer to another."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from sbnet._types import HIDDEN, FloatArray, States
from sbnet.errors import unknown_unit
from sbnet.model.network import Network
from sbnet.questions import printing
from sbnet.questions.batches import framed
from sbnet.questions.by_state import by_variable, probabilities, state_values
from sbnet.questions.printing import Readable, Reading

if TYPE_CHECKING:
    import pandas

State: TypeAlias = "int | str | None"


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Readable):
    """What changes from one posterior to another: what was observed, the bound, and the means.

    ``comparison["rain"]`` is the change of a mean.

    Attributes
    ----------
    network : Network
        That of the first one.
    evidence : pair of ndarrays of int8
        What was observed, before and after: 0, 1, or -1 for a hidden variable.
    means : pair of ndarrays
        The means of all variables, before and after.
    bounds : pair of float
        Lower bounds on ln P(evidence), in nats, before and after; of an exact posterior ln P itself.
    same_network : bool
        Have both networks the same edges and numbers?

    Examples
    --------
    >>> import sbnet as sb
    >>> net = sb.from_edges({("rain", "wet"): 2.0, ("sprinkler", "wet"): 1.5}, bias={"rain": -1.0})
    >>> change = sb.infer(net, {"wet": 1}).compare(sb.infer(net, {"wet": 1, "rain": 1}))
    >>> round(change["sprinkler"], 2)
    -0.06
    """

    network: Network
    evidence: tuple[States, States]
    means: tuple[FloatArray, FloatArray]
    bounds: tuple[float, float]
    same_network: bool

    @property
    def names(self) -> tuple[str, ...]:
        """The variables."""
        return self.network.names

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
        """The variables whose evidence differs: their states before and after, None for a hidden variable."""
        before, after = (state_values(self.network, one) for one in self.evidence)
        return {name: (a, b) for name, a, b in zip(self.names, before, after, strict=True) if a != b}

    def __getitem__(self, unit: str) -> Any:
        """The change of a mean; of a unit with more than two states a mapping from states to changes."""
        if not isinstance(unit, str) or unit not in self.names:
            raise unknown_unit(unit, self.names, "the call")
        states, own = self.network.states[unit], self.network.columns_of(unit)
        if len(states) == 2:
            return float(self.change[own.start])
        before, after = (probabilities(means[own]) for means in self.means)
        return dict(zip(states, (after - before).tolist(), strict=True))

    def to_frame(self) -> pandas.DataFrame:
        """A pandas table, one row per variable: its mean before and after, and the change; where some have more than
        two states, the probabilities of all states, and the largest change of one.

        Returns
        -------
        pandas.DataFrame
        """
        if not self.network.is_binary:
            every = range(len(self.names))
            before, after = (by_variable(self.network, every, means)["distribution"] for means in self.means)
            change = [max((new[s] - old[s] for s in old), key=abs) for old, new in zip(before, after, strict=True)]
            return framed({"before": before, "after": after, "change": change}, units=self.names)
        return framed({"before": self.means[0], "after": self.means[1], "change": self.change}, units=self.names)

    def _reading(self) -> Reading:
        hidden = np.flatnonzero((self.evidence[0] == HIDDEN) & (self.evidence[1] == HIDDEN))
        if self.network.is_binary:
            (_, _, scale), *rows = printing.moved(self.names, *self.means, hidden)
        else:
            (_, _, scale), *rows = printing.moved_variables(self.network, *self.means, hidden)
        before, after = self.bounds
        if math.isnan(self.bound_change):
            bound = "one of the two has no bound" if math.isnan(before) != math.isnan(after) else "no bounds"
        else:
            moved = "rises" if self.bound_change > 0.0 else "falls"
            verb = (
                f"{moved} by {abs(self.bound_change):.4g} nats ({printing.factor(self.bound_change)})"
                if self.bound_change
                else "stays"
            )
            bound = f"the bound {verb}, {before:.6g} → {after:.6g}"
        changes = [_spoken(name, *states) for name, states in self.evidence_changes.items()]
        left = len(changes) - printing.SHOWN
        more = f", and {left:,} more" if left > 0 else ""
        evidence = f"evidence: {', '.join(changes[: printing.SHOWN])}{more}" if changes else "the evidence is the same"
        remarks = () if self.same_network else ("the two networks have the same variables, but other edges or numbers",)
        titles = ("hidden in both", "before → after", scale)
        return Reading(f"Comparison: {bound}", (titles, *rows), remarks, (evidence,))


def _spoken(name: str, before: State, after: State) -> str:
    if before is None:
        return f"now {name} = {after}"
    return f"no longer {name} = {before}" if after is None else f"{name} = {before} → {after}"
