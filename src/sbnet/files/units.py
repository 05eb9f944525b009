"""Units put together from fits: which unit says that a variable is in a state, and what its weights are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from sbnet._types import FloatArray
from sbnet.files.gadgets import Gadget
from sbnet.files.nearest_units import Fit
from sbnet.files.variables import Variable
from sbnet.model.build import from_edges
from sbnet.model.mirrors import SURE
from sbnet.model.network import Network
from sbnet.model.notes import Note
from sbnet.model.probabilities import CERTAIN
from sbnet.model.roles import MIRRORS, SWITCHES


class Builder:
    """Collects units and edges.

    A variable of two states has one unit, which stands for its state `primary`; where the other state is needed as a
    cause, or is the one that the variable is named for, a mirror says the opposite. A variable of more states has a
    unit for each.
    """

    def __init__(self, variables: Mapping[str, Variable], primary: Mapping[str, int]) -> None:
        self.variables, self.primary = variables, primary
        self.taken = set(variables)
        self.own: dict[str, list[str]] = {name: [] for name in variables}  # the units of each variable, in order
        self.unit: dict[tuple[str, int], str] = {}  # (variable, state) → the unit that is 1 in that state
        self.bias: dict[str, float] = {}
        self.gate: dict[str, str] = {}
        self.edges: list[tuple[str, str, float]] = []
        self.notes: dict[str, Note] = {}

    def network(self) -> Network:
        for variable in self.variables.values():
            if len(variable.states) == 2:
                self.literal(variable.name, variable.one)
                self.pair(variable)
        listed = [unit for units in self.own.values() for unit in units]
        network = from_edges(self.edges, bias=self.bias, gate=self.gate, names=listed)
        return network.with_notes(self.notes)

    # --- names -------------------------------------------------------------------------------------------------------

    def state_unit(self, name: str, state: int) -> str:
        """The name of the unit that is 1 in a state; that of the variable itself where that says it."""
        if (name, state) not in self.unit:
            variable = self.variables[name]
            binary = len(variable.states) == 2
            if binary and state == variable.one:
                self.unit[name, state] = name
            else:
                self.unit[name, state] = self.fresh(f"{name}={variable.states[state]}")
        return self.unit[name, state]

    def fresh(self, name: str) -> str:
        while name in self.taken:
            name += "'"
        self.taken.add(name)
        return name

    def literal(self, name: str, state: int) -> str:
        """A unit that is 1 in a state, which may be the mirror of another."""
        unit = self.state_unit(name, state)
        if len(self.variables[name].states) == 2 and state != self.primary[name] and unit not in self.bias:
            self.add(name, unit, SURE, self.note(name, state))
            self.edges.append((self.state_unit(name, self.primary[name]), unit, -2.0 * SURE))
        return unit

    def pair(self, variable: Variable) -> None:
        """Two units for one variable: the one that does not bear its name is in the group of mirrors."""
        name, one = variable.name, variable.one
        other = self.unit.get((name, 1 - one))
        if other is not None:
            self.notes[other] = replace(self.notes[other], group=MIRRORS)
            self.notes[name] = replace(self.notes[name], variable=name, state=variable.states[one])

    def add(self, name: str, unit: str, bias: float, note: Note) -> None:
        self.own[name].append(unit)
        self.bias[unit] = bias
        self.notes[unit] = note

    def note(self, name: str, state: int) -> Note:
        variable = self.variables[name]
        if len(variable.states) == 2 and state == variable.one:
            states = variable.states[1 - state], variable.states[state]
            return Note(about=variable.about, states=() if states == ("0", "1") else states)
        about = f"{variable.about or name} is {variable.states[state]}"
        return Note(about=about, variable=name, state=variable.states[state])

    # --- units -------------------------------------------------------------------------------------------------------

    def product(self, variable: Variable, fit: Fit) -> None:
        """A noisy-OR unit; its causes are states of the parents."""
        unit = self.state_unit(variable.name, self.primary[variable.name])
        self.add(variable.name, unit, fit.bias, self.note(variable.name, self.primary[variable.name]))
        self.gate[unit] = "noisy-or"
        for (j, s), theta in fit.terms.items():
            self.edges.append((self.literal(variable.parents[j], s), unit, theta))

    def sigmoid(self, variable: Variable, fit: Fit, gadget: Gadget | None) -> None:
        """A sigmoid unit for one of two states."""
        state = self.primary[variable.name]
        sign = 1.0 if state == variable.one else -1.0
        switches = self.switches(variable, gadget)
        unit = self.state_unit(variable.name, state)
        lacking = np.zeros(0) if gadget is None else gadget.lacking[0]
        self.weighted(variable, unit, fit, dict(zip(switches, lacking.tolist(), strict=True)), sign)
        self.notes[unit] = self.note(variable.name, state)

    def many(self, variable: Variable, fits: tuple[Fit, ...], gadget: Gadget | None) -> None:
        """A unit for each state: each is on with its probability if none before it is, the last if none is at all."""
        switches, before = self.switches(variable, gadget), list[str]()
        for s in range(len(variable.states)):
            unit = self.state_unit(variable.name, s)
            if s < len(fits):
                lacking = np.zeros(0) if gadget is None else gadget.lacking[s]
                size = _size(fits[s], lacking)
                self.weighted(variable, unit, fits[s], dict(zip(switches, lacking.tolist(), strict=True)), 1.0)
            else:
                size = CERTAIN
                self.add(variable.name, unit, CERTAIN, Note())
            self.edges += [(other, unit, -CERTAIN - size) for other in before]
            self.notes[unit] = self.note(variable.name, s)
            before.append(unit)

    def weighted(self, variable: Variable, unit: str, fit: Fit, more: Mapping[str, float], sign: float) -> None:
        """A sigmoid unit whose weights are those of states: 1 - S stands for the state that a unit does not."""
        bias, edges = fit.bias, []
        for (j, s), weight in fit.terms.items():
            constant, parent, side = self.indicator(variable.parents[j], s)
            bias += constant * weight
            edges.append((parent, unit, sign * side * weight))
        self.add(variable.name, unit, sign * bias, Note())
        self.edges += edges + [(switch, unit, sign * weight) for switch, weight in more.items()]

    def indicator(self, name: str, state: int) -> tuple[float, str, float]:
        """A state as constant + side × unit."""
        if len(self.variables[name].states) > 2 or state == self.primary[name]:
            return 0.0, self.state_unit(name, state), 1.0
        return 1.0, self.state_unit(name, self.primary[name]), -1.0

    def switches(self, variable: Variable, gadget: Gadget | None) -> list[str]:
        """A unit for each cell: on if all parents are in the states of that row, by a margin of e^1000 both ways."""
        found = []
        for k, cell in enumerate(() if gadget is None else gadget.cells):
            unit, bias = self.fresh(f"{variable.name}_switch{k + 1}"), CERTAIN - 2.0 * CERTAIN * len(cell)
            for j, state in enumerate(cell):
                constant, parent, side = self.indicator(variable.parents[j], state)
                bias += 2.0 * CERTAIN * constant
                self.edges.append((parent, unit, 2.0 * CERTAIN * side))
            row = ", ".join(
                f"{parent} is {self.variables[parent].states[s]}"
                for parent, s in zip(variable.parents, cell, strict=True)
            )
            self.add(variable.name, unit, bias, Note(about=f"on if {row}", group=SWITCHES))
            found.append(unit)
        return found


def _size(fit: Fit, lacking: FloatArray) -> float:
    """The largest input that a unit can have."""
    return abs(fit.bias) + sum(map(abs, fit.terms.values())) + float(np.abs(lacking).sum())
