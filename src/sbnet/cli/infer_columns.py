"""Answers of a model that was learned from a table: a line for each column, with the probabilities of its states."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from sbnet._types import HIDDEN, FloatArray, IndexArray, States
from sbnet.errors import EvidenceError, TooManyHiddenError, in_line
from sbnet.exact.enumeration import Effort
from sbnet.exact.of_states import means_of_states
from sbnet.inference.solvers.row_completions import complete
from sbnet.model.network import Network
from sbnet.questions import evidence as questions
from sbnet.questions import printing
from sbnet.questions.by_state import probabilities as by_column
from sbnet.questions.printing import Reading

EXACT = Effort(26, 1, progress=False, work=2.0**26.5)
"""What elimination may take: 2**26 joint states, in parts of 32 MB, about three seconds."""
COMPLETIONS = 1 << 14
"""Ways to complete the row that are gone through before they are drawn: errors of probabilities are below 0.01."""
_SHOWN = 4


@dataclass(frozen=True, eq=False)
class ColumnAnswers:
    """The probabilities of the states of variables, given what is observed; ln P of that, and whether it is exact."""

    network: Network
    states: States
    units: IndexArray
    log_p: float
    exact: bool
    probabilities: list[FloatArray]

    @classmethod
    def ask(cls, network: Network, evidence: Mapping[str, Any], units: IndexArray) -> ColumnAnswers:
        """By elimination where that is small, and else from weighted completions of the row."""
        states = questions.coerce_one(network, evidence)
        try:
            bound, means = means_of_states(network, states, EXACT, units)
            each = [by_column(means[0, network.columns_of(int(i))]) for i in units]
            log_p, exact = float(bound[0]), True
        except TooManyHiddenError:
            found = complete(network, states, asked=units, most=COMPLETIONS)
            each = [found.probabilities(int(i), int(network.n_states[i]))[0] for i in units]
            log_p, exact = float(found.log_p[0]), False
        if log_p == -np.inf:
            raise EvidenceError("by this model, what is given cannot be; leave out a finding")
        return cls(network, states[0], units, log_p, exact, each)

    def as_json(self) -> dict[str, Any]:
        """For machines."""
        network = self.network
        listed = []
        for i, p in zip(self.units.tolist(), self.probabilities, strict=True):
            name = network.names[i]
            kind = "exact" if self.exact else "estimate"
            listed.append(
                {"name": name, "mean": dict(zip(network.states[name], p.tolist(), strict=True)), "kind": kind}
            )
        seen = np.flatnonzero(self.states != HIDDEN).tolist()
        given = {network.names[i]: network.states[network.names[i]][self.states[i]] for i in seen}
        return {"bound": self.log_p, "exact": self.exact, "converged": True, "evidence": given, "units": listed}

    def reading(self, most: int) -> Reading:
        """For people: all states of a few, the likeliest of many."""
        network, rows = self.network, []
        for i, p in zip(self.units[:most].tolist(), self.probabilities, strict=False):
            states = network.states[network.names[i]]
            kept = range(len(states)) if len(states) <= _SHOWN else np.sort(np.argsort(-p, kind="stable")[:_SHOWN])
            told = [f"{in_line(states[k])} {printing.probability(p[k])}" for k in kept]
            left = len(states) - len(told)
            kind = "exact" if self.exact else "estimate"
            rows.append([network.names[i], ", ".join(told) + (f", … {left} more" if left else ""), kind])
        given = printing.given(self.states).removeprefix("given ")
        log_p = printing.in_nats(self.log_p, True) if self.exact else f"ln P ≈ {self.log_p:.6g} nats, an estimate"
        how = () if self.exact else (f"estimates from {COMPLETIONS:,} weighted completions of the row",)
        table = [["column", "probabilities", "kind"], *rows, *printing.more(len(self.units) - most)]
        return Reading(f"Given {given}: {log_p}", table, how)
