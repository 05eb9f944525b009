"""Networks as tables, for other programs: a row for each state of the parents, so only for units with few of them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from sbnet.errors import FileFormatError
from sbnet.files.atomic import write_atomically
from sbnet.files.variables import Variable
from sbnet.network import Network

MOST_PARENTS = 16
"""Parents of a unit that is written as a table of 65,536 rows."""


def as_variables(network: Network, *, most: int = MOST_PARENTS, into: str = "a table") -> Iterator[Variable]:
    """The units as variables with tables; states are called by the notes, else "0" and "1"."""
    from sbnet.kernels import array_gates

    graph = network.graph
    for i, name in enumerate(network.names):
        edges = slice(graph.indptr[i], graph.indptr[i + 1])
        parents, weight = network.parents(i), network.weight[edges]
        if len(parents) > most:
            rows = f"a row for each of their 2**{len(parents)} states; the limit is {most} parents"
            way_out = "Keep such a network in a .toml or .sbn file"
            raise FileFormatError(f"{name!r} has {len(parents)} parents, and {into} has {rows}. {way_out}")
        n = len(parents)
        states = np.indices((2,) * n).reshape(n, 2**n).T.astype(np.float64)
        x, gate = states @ weight + network.bias[i], np.full(len(states), network.gate[i])
        table = np.column_stack([np.exp(array_gates.log_p(gate, s, x)) for s in (0, 1)])
        table[table < 2e-300] = 0.0
        yield Variable(name, network.notes[name].states or ("0", "1"), parents, table, network.notes[name].about)


def write_bif(network: Network, name: str) -> None:
    """Write a network as BIF."""
    variables = list(as_variables(network))
    lines = ["network unknown {", "}"]
    for one in variables:
        states = ", ".join(map(_quoted, one.states))
        lines += [f"variable {_quoted(one.name)} {{", f"  type discrete [ {len(one.states)} ] {{ {states} }};", "}"]
    for one in variables:
        lines += _probability(one, {other.name: other.states for other in variables})
    write_atomically(name, ("\n".join(lines) + "\n").encode())


def _probability(one: Variable, states: dict[str, tuple[str, ...]]) -> Iterator[str]:
    given = f" | {', '.join(map(_quoted, one.parents))}" if one.parents else ""
    yield f"probability ( {_quoted(one.name)}{given} ) {{"
    keys = itertools.product(*(states[parent] for parent in one.parents))
    for key, row in zip(keys, one.table.tolist(), strict=True):
        head = f"({', '.join(map(_quoted, key))})" if key else "table"
        yield f"  {head} {', '.join(map(repr, row))};"
    yield "}"


def _quoted(name: str) -> str:
    """A name as BIF has it: bare, or in quotes."""
    if name.isidentifier() and name.isascii() and name not in ("table", "default", "property", "type"):
        return name
    if '"' in name or "\n" in name:
        raise FileFormatError(f"the name {name!r} cannot be written in BIF, which has no quotes in names; rename it")
    return f'"{name}"'


def write_uai(network: Network, name: str) -> None:
    """Write a network in the UAI format, which has no names: units are numbered in the order of the network."""
    variables = list(as_variables(network))
    scopes = [(*(network.index(parent) for parent in one.parents), i) for i, one in enumerate(variables)]
    lines = ["BAYES", str(len(variables)), " ".join("2" for _ in variables), str(len(variables))]
    lines += [" ".join(map(str, (len(scope), *scope))) for scope in scopes]
    for one in variables:
        lines += ["", str(one.table.size), *(" " + " ".join(map(repr, row)) for row in one.table.tolist())]
    write_atomically(name, ("\n".join(lines) + "\n").encode())
