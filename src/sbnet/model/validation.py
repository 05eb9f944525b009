"""What a network must be: names that differ, arrays that fit the graph, finite numbers, gates that are known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np

from sbnet import checks
from sbnet._types import FloatArray, Model, States
from sbnet.errors import NetworkError
from sbnet.kernels import codes as gates
from sbnet.model.graph import Graph, count

MAX_PARAMETER = 1e8
"""Largest weight or bias: beyond it a double no longer tells the sum of inputs to a nat."""
_RANGE = f"parameters must be finite, and at most {MAX_PARAMETER:.0e} in size"
_NOT_NEGATIVE = (
    "a noisy-OR variable takes -ln(1 - p), which is not negative. A cause that prevents needs a sigmoid variable, "
    "or a variable for its absence"
)


def check_names(names: Sequence[str]) -> None:
    if not names:
        raise NetworkError("the network is empty; give at least one variable, by an edge or by a bias")
    for name in names:
        check_name(name)
    if len(set(names)) < len(names):
        seen: set[str] = set()
        double = next(name for name in names if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise NetworkError(f"two variables are called {double!r}; names must differ")


def check_name(name: Any) -> None:
    if not isinstance(name, str):
        raise NetworkError(f"variable names are strings; {checks.shown(name)} is of type {type(name).__name__}")
    if not name:
        raise NetworkError("a variable has an empty name")


def check_units(names: Sequence[str], graph: Graph, layers: tuple[int, ...] | None) -> None:
    """One name for each unit of the graph, and layers that add up."""
    n = len(names)
    if graph.n_units != n:
        units = count(graph.n_units, "variable")
        raise NetworkError(f"the graph has {units}, the network {count(n, 'name')}; each variable needs one")
    if layers is not None and (sum(layers) != n or min(layers) < 1):
        raise NetworkError(f"layers {layers} do not add up to {n} variables")


def check_shapes(names: Sequence[str], graph: Graph, weight: FloatArray, bias: FloatArray, model: Model) -> None:
    """One bias for each unit, one weight for each edge; or as many as their states ask for."""
    n, n_edges, binary = int(model.threshold[-1]), int(model.block[-1]), bool((model.n_states == 2).all())
    if weight.shape != (n_edges,):
        whose = "edge" if binary else "threshold of a child and state of its parent from 1 on, edge by edge"
        raise NetworkError(f"weight has shape {weight.shape}; expected ({n_edges},), one number per {whose}")
    if bias.shape != (n,):
        whose = "variable" if binary else "threshold: a variable with K states has K - 1"
        raise NetworkError(f"bias has shape {bias.shape}; expected ({n},), one number per {whose}")
    tabled = np.repeat(model.gate == gates.TABLE, model.n_states - 1) & (bias != 0.0)
    if tabled.any():
        name = names[int(np.searchsorted(model.threshold, int(tabled.argmax()), side="right")) - 1]
        raise NetworkError(
            f"the bias of {name!r} is {bias[tabled][0]}; it has a table, which says all, and biases of 0"
        )


def check_parameters(names: Sequence[str], graph: Graph, weight: FloatArray, bias: FloatArray, model: Model) -> None:
    """Finite numbers; of noisy-OR units, which add up -ln(1 - p) of causes and leak, none that is negative."""
    noisy = model.gate == gates.NOISY_OR
    noisy_bias = np.repeat(noisy, model.n_states - 1)
    noisy_weight = np.repeat(noisy[graph.child_of_edge], np.diff(model.block))

    def unit(k: int) -> str:
        return repr(names[int(np.searchsorted(model.threshold, k, side="right")) - 1])

    def edge(k: int) -> str:
        e = int(np.searchsorted(model.block, k, side="right")) - 1
        return f"the weight {names[graph.parent[e]]!r} -> {names[graph.child_of_edge[e]]!r}"

    for values, bad, called, wanted in (
        (bias, ~(np.abs(bias) <= MAX_PARAMETER), lambda k: f"the bias of {unit(k)}", _RANGE),
        (weight, ~(np.abs(weight) <= MAX_PARAMETER), edge, _RANGE),
        (bias, noisy_bias & (bias < 0.0), lambda k: f"the leak of noisy-OR variable {unit(k)}", _NOT_NEGATIVE),
        (weight, noisy_weight & (weight < 0.0), edge, _NOT_NEGATIVE),
    ):
        if bad.any():
            first = int(bad.argmax())
            raise NetworkError(f"{called(first)} is {values[first]}; {wanted}")


def checked_gates(gate: Any, names: Sequence[str], tables: Mapping[str, Any]) -> States:
    """The codes of all units, sigmoid units or tables by default; each is looked at before it is cast."""
    if gate is None:
        tabled = np.array([name in tables for name in names], np.bool_)
        return np.where(tabled, gates.TABLE, gates.SIGMOID).astype(np.int8)
    known = ", ".join(f"{code} ({name})" for code, name in enumerate(gates.NAMES))
    given: Any = gate
    if isinstance(gate, np.ndarray) and gate.dtype.kind in "biuf":
        codes = gate
    else:
        given = checks.listed("gate", gate, f"give one code per variable: {known}", NetworkError)
        codes = np.array([_code(one) for one in given])
    if codes.shape != (len(names),):
        raise NetworkError(f"gate has shape {codes.shape}; expected ({len(names)},), one code per variable")
    bad = np.flatnonzero(~np.isin(codes, np.arange(len(gates.NAMES))))
    if bad.size:
        raise NetworkError(f"the gate of {names[bad[0]]!r} is {checks.shown(given[bad[0]])}; the gates are {known}")
    for i in np.flatnonzero(codes == gates.TABLE).tolist():
        if names[i] not in tables:
            raise NetworkError(f"the gate of {names[i]!r} is 'table', and it has none; give tables={{{names[i]!r}: …}}")
    for name in tables:
        if codes[names.index(name)] != gates.TABLE:
            kind = gates.NAMES[int(codes[names.index(name)])]
            raise NetworkError(f"{name!r} has a table, and its gate is {kind!r}; leave one of them out")
    return codes.astype(np.int8)


def _code(gate: Any) -> float:
    """The code of a gate by its name or by its code; -1 for what is neither."""
    if isinstance(gate, str):
        return gates.NAMES.index(gate) if gate in gates.NAMES else -1
    return float(gate) if isinstance(gate, Real) and gate in range(len(gates.NAMES)) else -1
