"""Learning from a table of states: an order of the variables, missing cells drawn from the model, penalties chosen.

A missing cell tells nothing of its own variable; as a parent it is drawn from the model given the rest of its row, with
the network of the last round, a few times over (stochastic EM). The last round chooses the penalty of each variable on
held-out rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from sbnet._types import HIDDEN, BoolArray, FloatArray, IndexArray, States
from sbnet.inference.solvers.row_completions import complete
from sbnet.learning.sequential import (
    COSTS,
    FOLDS,
    Cost,
    Features,
    Regression,
    Table,
    network_of,
    regress_label,
    regress_variable,
)
from sbnet.model.build import from_edges
from sbnet.model.network import Network
from sbnet.parallel.blocks import Threads, map_blocks

_CHOOSING = 4_000
"""Rows that penalties are chosen on, at most."""
_ROUNDS, _DRAWS, _COMPLETIONS = 3, 3, 16
"""Networks from which missing cells are drawn; draws of a row that the last one learns from; completions of a row."""
_FIRST = (Cost(1.0),)
"""The penalty until one is chosen."""
_BESIDE = (Cost(3.0), Cost(0.5))
"""Penalties that are tried, on one fold, for variables beside a label: they count only where cells are missing."""
FEW_COSTS = (Cost(8.0), Cost(2.0), Cost(0.5, 0.5), Cost(0.1, 0.3))
"""Penalties by which orders of the variables are compared."""
_BLOCKS = 8


@dataclass(frozen=True, eq=False)
class StateRows:
    """A table of states as it was read.

    Attributes
    ----------
    cells : ndarray of int8
        Rows by variables; -1 where a state is missing.
    weight : ndarray
        Of rows, all positive.
    names : tuple of str
        Of the variables.
    states : tuple of tuple of str
        Their states.
    ordered : ndarray of bool
        Do the states of a variable have an order?
    label : int or None
        A variable that comes last, told by two or three variables together too.
    """

    cells: States
    weight: FloatArray
    names: tuple[str, ...]
    states: tuple[tuple[str, ...], ...]
    ordered: BoolArray
    label: int | None = None

    @property
    def n_states(self) -> IndexArray:
        """The number of states of each variable."""
        return np.array([len(listed) for listed in self.states], np.int64)

    def order(self) -> IndexArray:
        """The order of the variables: as given, but those with more missing cells later, and a label last."""
        missing = np.floor(10.0 * (self.cells == HIDDEN).mean(axis=0)) if len(self.cells) else np.zeros(len(self.names))
        if self.label is not None:
            missing[self.label] = np.inf
        return np.argsort(missing, kind="stable")

    def moved(self, order: IndexArray) -> StateRows:
        """The rows with their variables in another order."""
        label = None if self.label is None else int(np.flatnonzero(order == self.label)[0])
        listed = order.tolist()
        names, states = tuple(self.names[v] for v in listed), tuple(self.states[v] for v in listed)
        return StateRows(self.cells[:, order], self.weight, names, states, self.ordered[order], label)


@dataclass(frozen=True)
class VariableReport:
    """What was chosen for a variable: its penalty, its interactions, and mean ln P of its state in held-out rows."""

    name: str
    cost: Cost
    interactions: int
    held_out: float


@dataclass(frozen=True)
class StatesReport:
    """What was chosen for a table of states, variable by variable in the order of the network; print it."""

    variables: tuple[VariableReport, ...]

    @property
    def held_out(self) -> float:
        """Mean ln P of validation rows."""
        return float(sum(one.held_out for one in self.variables))

    def __str__(self) -> str:
        width = max([8, *(len(one.name) for one in self.variables)])
        lines = [f"{'variable':{width}}     L1     L2  interactions  held-out ln P"]
        for one in self.variables:
            l1, l2 = one.cost
            lines.append(f"{one.name:{width}} {l1:6.3g} {l2:6.3g} {one.interactions:13d} {one.held_out:14.4f}")
        return "\n".join([*lines, f"{'all':{width}} {self.held_out:42.4f}"])


def learn_states(
    rows: StateRows, rng: np.random.Generator, *, threads: int | None = None, interactions: bool = True,
    costs: Sequence[Cost] = COSTS,
) -> tuple[Network, StatesReport]:  # fmt: skip
    """The network of a table, and what was chosen for it, each penalty among `costs`."""
    rows = rows.moved(rows.order())
    fold = rng.permutation(len(rows.cells))
    fold = np.where(fold < _CHOOSING, fold % len(FOLDS), -1 - fold % len(FOLDS))
    missing = (rows.cells == HIDDEN).any()
    network, seen = _independent(rows), rows.cells
    if rows.label is not None:  # what is missing is drawn as it will be where the label is asked for
        seen = rows.cells.copy()
        seen[:, rows.label] = HIDDEN
    some = np.flatnonzero(fold >= 0)
    for _ in range(_ROUNDS - 1 if missing else 0):
        parents = _drawn(network, seen[some], rng)
        network, _ = _solved(rows, parents, np.full(len(fold), -1), some, _FIRST, threads, False)
    if not missing:
        return _solved(rows, rows.cells, fold, np.arange(len(fold)), costs, threads, interactions)
    holes = np.flatnonzero((rows.cells == HIDDEN).any(axis=1))
    draws = [_drawn(network, seen[holes], rng) for _ in range(_DRAWS)]
    whole = np.setdiff1d(np.arange(len(fold)), holes)
    parents = np.concatenate([rows.cells[whole], *draws])
    return _solved(rows, parents, fold, np.concatenate([whole, *[holes] * _DRAWS]), costs, threads, interactions)


def _solved(
    rows: StateRows, parents: States, fold: IndexArray, row: IndexArray, costs: Sequence[Cost], threads: int | None,
    interactions: bool,
) -> tuple[Network, StatesReport]:  # fmt: skip
    """Each variable regressed on those before it; `parents` are complete rows, and `row` says which they complete."""
    times = np.maximum(np.bincount(row, minlength=len(rows.cells)), 1)
    table = Table(parents, rows.cells[row], rows.n_states, rows.ordered, (rows.weight / times)[row], fold[row])
    features = Features.of(table.n_states, table.ordered)
    blocks = [range(first, len(rows.names), _BLOCKS) for first in range(min(_BLOCKS, len(rows.names)))]
    task = partial(_regress, table, features, tuple(costs), rows.label, interactions)
    parts = map_blocks(task, blocks, executor=Threads(threads))
    found = [parts[v % _BLOCKS][v // _BLOCKS] for v in range(len(rows.names))]
    each = zip(rows.names, found, strict=True)
    report = StatesReport(tuple(VariableReport(name, r.cost, len(r.interactions), r.held_out) for name, r in each))
    return network_of(features, found, rows.names, rows.states), report


def _regress(
    table: Table, features: Features, costs: tuple[Cost, ...], label: int | None, interactions: bool, variables: range
) -> list[Regression]:
    if label is None or len(costs) == 1:
        return [regress_variable(table, features, v, costs) for v in variables]
    some = table.in_folds()
    return [
        (regress_label(table, features, v) if interactions else regress_variable(table, features, v, costs))
        if v == label
        else regress_variable(some, features, v, _BESIDE, folds=FOLDS[:1])
        for v in variables
    ]


def _independent(rows: StateRows) -> Network:
    """Variables without parents."""
    bias = {}
    for v, (name, n) in enumerate(zip(rows.names, rows.n_states.tolist(), strict=True)):
        seen = rows.cells[:, v] != HIDDEN
        count = np.bincount(rows.cells[seen, v], weights=rows.weight[seen], minlength=n) + 0.5
        above = np.cumsum(count[::-1])[::-1]
        bias[name] = np.log(above[1:] / count[:-1])
    return from_edges({}, bias=bias, names=rows.names, states=dict(zip(rows.names, rows.states, strict=True)))


def _drawn(network: Network, cells: States, rng: np.random.Generator) -> States:
    """Rows with missing cells drawn from their posteriors."""
    found = complete(network, cells, most=_COMPLETIONS, seed=int(rng.integers(2**62)))
    return found.draw(rng.random(len(cells)))
