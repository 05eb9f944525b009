"""What a network must be: names that differ, arrays that fit the graph, finite numbers, gates that are known."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np

from sbnet import checks
from sbnet._types import FloatArray, States
from sbnet.errors import NetworkError
from sbnet.kernels import codes as gates
from sbnet.model.graph import Graph, count

MAX_PARAMETER = 1e8
"""Largest weight or bias: beyond it a double no longer tells the sum of inputs to a nat."""
_RANGE = f"parameters must be finite, and at most {MAX_PARAMETER:.0e} in size"
_NOT_NEGATIVE = (
    "a noisy-OR unit takes -ln(1 - p), which is not negative. A cause that prevents needs a sigmoid unit, "
    "or a unit for its absence"
)


def check_names(names: Sequence[str]) -> None:
    if not names:
        raise NetworkError("the network is empty; give at least one unit, by an edge or by a bias")
    for name in names:
        if not isinstance(name, str):
            raise NetworkError(f"unit names are strings; {checks.shown(name)} is of type {type(name).__name__}")
        if not name:
            raise NetworkError("a unit has an empty name")
    if len(set(names)) < len(names):
        seen: set[str] = set()
        double = next(name for name in names if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise NetworkError(f"two units are called {double!r}; names must differ")


def check_shapes(
    names: Sequence[str], graph: Graph, weight: FloatArray, bias: FloatArray, layers: tuple[int, ...] | None
) -> None:
    """One name and one bias for each unit, one weight for each edge, and layers that add up."""
    n, n_edges = len(names), graph.n_edges
    if graph.n_units != n:
        units = count(graph.n_units, "unit")
        raise NetworkError(f"the graph has {units}, the network {count(n, 'name')}; each unit needs one")
    if weight.shape != (n_edges,):
        raise NetworkError(f"weight has shape {weight.shape}; expected ({n_edges},), one number per edge")
    if bias.shape != (n,):
        raise NetworkError(f"bias has shape {bias.shape}; expected ({n},), one number per unit")
    if layers is not None and (sum(layers) != n or min(layers) < 1):
        raise NetworkError(f"layers {layers} do not add up to {n} units")


def check_parameters(names: Sequence[str], graph: Graph, weight: FloatArray, bias: FloatArray, gate: States) -> None:
    """Finite numbers; of noisy-OR units, which add up -ln(1 - p) of causes and leak, none that is negative."""
    noisy = gate == gates.NOISY_OR

    def edge(e: int) -> str:
        return f"the weight {names[graph.parent[e]]!r} -> {names[graph.child_of_edge[e]]!r}"

    for values, bad, called, wanted in (
        (bias, ~(np.abs(bias) <= MAX_PARAMETER), lambda i: f"the bias of {names[i]!r}", _RANGE),
        (weight, ~(np.abs(weight) <= MAX_PARAMETER), edge, _RANGE),
        (bias, noisy & (bias < 0.0), lambda i: f"the leak of noisy-OR unit {names[i]!r}", _NOT_NEGATIVE),
        (weight, noisy[graph.child_of_edge] & (weight < 0.0), edge, _NOT_NEGATIVE),
    ):
        if bad.any():
            first = int(bad.argmax())
            raise NetworkError(f"{called(first)} is {values[first]}; {wanted}")


def checked_gates(gate: Any, names: Sequence[str]) -> States:
    """The codes of all units, sigmoid units by default; each is looked at before it is cast."""
    if gate is None:
        return np.full(len(names), gates.SIGMOID, np.int8)
    known = ", ".join(f"{code} ({name})" for code, name in enumerate(gates.NAMES))
    given: Any = gate
    if isinstance(gate, np.ndarray) and gate.dtype.kind in "biuf":
        codes = gate
    else:
        given = checks.listed("gate", gate, f"give one code per unit: {known}", NetworkError)
        codes = np.array([_code(one) for one in given])
    if codes.shape != (len(names),):
        raise NetworkError(f"gate has shape {codes.shape}; expected ({len(names)},), one code per unit")
    bad = np.flatnonzero(~np.isin(codes, np.arange(len(gates.NAMES))))
    if bad.size:
        raise NetworkError(f"the gate of {names[bad[0]]!r} is {checks.shown(given[bad[0]])}; the gates are {known}")
    return codes.astype(np.int8)


def _code(gate: Any) -> float:
    """The code of a gate by its name or by its code; -1 for what is neither."""
    if isinstance(gate, str):
        return gates.NAMES.index(gate) if gate in gates.NAMES else -1
    return float(gate) if isinstance(gate, Real) and gate in range(len(gates.NAMES)) else -1
