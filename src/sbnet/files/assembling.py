"""Networks from the variables of a file: their states in the order that sbnet has them, with tables or gates."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence

import numpy as np

from sbnet._types import FloatArray
from sbnet.errors import ConversionWarning, FileFormatError, NetworkError
from sbnet.files.plain import at
from sbnet.files.variables import MOST_ENTRIES, ROUNDED_SUM, NoisyMax, Variable, Weighted, entries_of, no_first
from sbnet.model.build import from_edges
from sbnet.model.network import Network
from sbnet.model.notes import Note
from sbnet.model.probabilities import thresholds_of

_ROUNDED = 1e-6
"""A sum of probabilities that is so near to one is scaled without a warning."""
_SURE = 1.0 - 1e-12
"""From this probability on, a state of a parent has no effect."""

Orders = Mapping[str, tuple[int, ...]]
"""The states of each variable in the order of the network, by their numbers in the file."""


def assembled(variables: Sequence[Variable], name: str, stacklevel: int = 3) -> Network:
    """The network of some variables; `name` is that of the file, for errors."""
    orders = _orders(variables)
    states = {one.name: tuple(one.states[k] for k in orders[one.name]) for one in variables}
    edges: list[tuple[str, str, object]] = []
    bias: dict[str, object] = {}
    gate: dict[str, str] = {}
    tables: dict[str, FloatArray] = {}
    totals: dict[str, float] = {}
    for one in variables:
        formula = one.formula
        if isinstance(formula, NoisyMax):
            formula, totals[one.name] = _scaled(one, formula, name)
        if isinstance(formula, NoisyMax) and _is_gate(one, formula, orders):
            weights, bias[one.name] = _thresholds(formula, [orders[parent] for parent in one.parents])
            edges += zip(one.parents, [one.name] * len(one.parents), weights, strict=True)
            gate[one.name] = "noisy-or"
        elif isinstance(formula, Weighted):
            bias[one.name], gate[one.name] = formula.bias, formula.gate
            edges += zip(one.parents, [one.name] * len(one.parents), formula.weights, strict=True)
        else:
            if formula is None:
                rows, totals[one.name] = _normalised(one, one.table, name)
            else:
                rows = _as_table(one, formula, name)
            tables[one.name] = _arranged(rows, [orders[parent] for parent in one.parents], orders[one.name])
    parents = {one.name: one.parents for one in variables if one.name in tables}
    names = [one.name for one in variables]
    try:
        network = from_edges(edges, bias=bias, gate=gate, names=names, states=states, tables=tables, parents=parents)
        network = network.with_notes({one.name: Note(about=one.about) for one in variables if one.about})
    except NetworkError as error:  # a cycle, which no table shows
        raise FileFormatError(f"{error} ({name[-60:]})") from None
    worst = max(totals, key=lambda own: abs(totals[own] - 1.0), default="")
    if worst and abs(totals[worst] - 1.0) > _ROUNDED:
        text = f"a row of the table of {worst!r} adds up to {totals[worst]:.10g}, not 1, and was scaled"
        warnings.warn(text, ConversionWarning, stacklevel=stacklevel)
    return network


def _orders(variables: Sequence[Variable]) -> Orders:
    """The order of states: of two the one that says no first; of a noisy-MAX the absent one; else that of the file.

    A parent of a noisy-MAX begins with the state that has no effect there.
    """
    ranks: dict[str, tuple[int, ...]] = {}
    for one in variables:
        if isinstance(one.formula, NoisyMax):
            ranks[one.name] = tuple(range(len(one.states)))
    for one in variables:
        if isinstance(one.formula, NoisyMax):
            for parent, ranked in zip(one.parents, one.formula.ranks, strict=True):
                ranks.setdefault(parent, ranked)
    return {
        one.name: no_first(one.states) or ranks.get(one.name, tuple(range(len(one.states)))[::-1])[::-1]
        for one in variables
    }


def _arranged(rows: FloatArray, parents: Sequence[tuple[int, ...]], own: tuple[int, ...]) -> FloatArray:
    """A table with an axis for each parent and one for the variable, its states in the order of the network."""
    table = rows.reshape([len(order) for order in (*parents, own)])
    return table[np.ix_(*parents, own)]


def _normalised(variable: Variable, table: FloatArray, name: str) -> tuple[FloatArray, float]:
    """Rows that add up to one, and the sum that was farthest from it."""
    bad = ~((table >= 0.0) & (table <= 1.0 + ROUNDED_SUM))
    if bad.any():
        row = int(np.flatnonzero(bad.any(axis=1))[0])
        raise _at_row(
            variable, row, f"the table of {variable.name!r} holds {table[bad][0]}, which is no probability", name
        )
    sums = table.sum(axis=1)
    worst = int(np.argmax(np.abs(sums - 1.0)))
    if abs(sums[worst] - 1.0) > ROUNDED_SUM:
        text = (
            f"the probabilities of {variable.name!r} in row {worst + 1} of its table add up to {sums[worst]:.6g}, not 1"
        )
        raise _at_row(variable, worst, text, name)
    off = np.abs(sums - 1.0) > 1e-15 * table.shape[1]  # what was divided once stays as it is
    return np.where(off[:, None], table / sums[:, None], table), float(sums[worst])


def _at_row(variable: Variable, row: int, text: str, name: str) -> FileFormatError:
    """An error in a row of a table, with its place where that is known."""
    return FileFormatError(f"{text} ({name})") if variable.place is None else at(variable.place(row), text, name)


# --- noisy-MAX --------------------------------------------------------------------------------------------------------


def _scaled(variable: Variable, formula: NoisyMax, name: str) -> tuple[NoisyMax, float]:
    """The numbers with distributions that add up to one, and the sum that was farthest from it."""
    rows, total = _normalised(variable, np.vstack([*formula.effects, formula.leak]), name)
    cuts = np.cumsum([len(effect) for effect in formula.effects])
    *effects, leak = np.split(rows, cuts)
    return formula._replace(effects=tuple(effects), leak=leak[0]), total


def _is_gate(variable: Variable, formula: NoisyMax, orders: Orders) -> bool:
    """Do the states stand as the gate has them: the absent one first, also of each parent?"""
    own = orders[variable.name] == tuple(range(len(variable.states)))[::-1]
    pairs = zip(variable.parents, formula.effects, strict=True)
    return own and bool(variable.parents) and all(effect[orders[name][0], -1] >= _SURE for name, effect in pairs)


def _thresholds(formula: NoisyMax, parents: Sequence[tuple[int, ...]]) -> tuple[list[FloatArray], FloatArray]:
    """The weights of each parent, thresholds by its states from the second one on, and the biases."""
    nothing = np.zeros(len(formula.leak) - 1)

    def inputs(p: FloatArray) -> FloatArray:
        return thresholds_of(p[::-1], "noisy-or", nothing)

    weights = [
        np.column_stack([inputs(effect[s]) for s in order[1:]])
        for effect, order in zip(formula.effects, parents, strict=True)
    ]
    return weights, inputs(formula.leak)


def _as_table(variable: Variable, formula: NoisyMax, name: str) -> FloatArray:
    """The table of a noisy-MAX: P(Y <= k) is a product over the parents and the leak."""
    sizes = [len(effect) for effect in formula.effects]
    if entries_of((*sizes, len(variable.states))) > MOST_ENTRIES:
        raise FileFormatError(
            f"{variable.name[:60]!r} is a noisy-MAX whose parents have other states without effect elsewhere; as a "
            f"table it has more than {MOST_ENTRIES:,} entries, and that is the limit ({name[-60:]})"
        )
    n, k = len(sizes), len(variable.states)
    below = np.cumsum(formula.leak[::-1]).reshape(*(1,) * n, k)
    for j, effect in enumerate(formula.effects):
        shape = [1] * n + [k]
        shape[j] = sizes[j]
        below = below * np.cumsum(effect[:, ::-1], axis=1).reshape(shape)
    table = np.diff(np.broadcast_to(below, (*sizes, k)), axis=-1, prepend=0.0).clip(0.0)
    table = table.reshape(math.prod(sizes), k)[:, ::-1]
    return np.asarray(table / table.sum(axis=1, keepdims=True))
