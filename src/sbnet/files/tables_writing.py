"""Networks as tables, for other programs: a row for each state of the parents, so only for units with few of them."""

from __future__ import annotations

import itertools
import math
import re
from graphlib import CycleError, TopologicalSorter
from typing import NamedTuple

import numpy as np

from sbnet.errors import FileFormatError
from sbnet.files.atomic import write_atomically
from sbnet.files.variables import Variable
from sbnet.model.network import Network
from sbnet.model.states import NO_YES
from sbnet.tables.several import several

MOST_PARENTS = 16
"""Parents of a unit that is written as a table of 65,536 rows."""
_BITS = ("0", "1")
_ROUNDING = 1e-9
"""How far the probabilities of the states of a variable may be from adding up to one."""
_RESERVED = {"network", "variable", "probability", "table", "default", "property", "type", "discrete"}


class Block(NamedTuple):
    """A variable of a file, with the states in which each of its units is on: one unit, or one for each state."""

    name: str
    states: tuple[str, ...]
    units: tuple[int, ...]
    on: tuple[int, ...]


def as_variables(network: Network, *, most: int = MOST_PARENTS, into: str = "a table") -> list[Variable]:
    """The units as variables with tables; states are called by the notes, else "0" and "1".

    Units for the states of one variable are that variable again.
    """
    if not network.is_binary:
        return [_with_states(network, i, most, into) for i in range(network.n_units)]
    blocks = arranged(network)
    return [as_variable(network, block, parents_of(network, block, blocks), most, into) for block in blocks]


def _with_states(network: Network, i: int, most: int, into: str) -> Variable:
    """A variable of a network where some have more than two states, or tables."""
    family = network.family(i)
    rows = math.prod(map(len, family.parent_states))
    check_rows(family.name, [len(states) for states in family.parent_states], most, into)
    table = family.distribution(family.every_row()).reshape(rows, len(family.states))
    return Variable(family.name, family.states, family.parents, table, network.notes[family.name].about)


def check_rows(name: str, sizes: list[int], most: int, into: str) -> None:
    """Has a table few enough rows?"""
    rows = math.prod(sizes)
    if rows > 2**most:
        count = f"2**{len(sizes)}" if set(sizes) == {2} else f"{rows:,}"
        limit = f"{most} parents" if set(sizes) == {2} else f"{2**most:,} rows"
        raise FileFormatError(
            f"{name!r} has {len(sizes)} parents, and {into} has a row for each of their {count} states; the "
            f"limit is {limit}. Keep such a network in a .toml or .sbn file"
        )


def arranged(network: Network) -> list[Block]:
    """All variables, in the order of their first units: several units are one where exactly one of them is on."""
    groups = [group for variable in several(network) if (group := _group(network, variable)) is not None]
    blocks = _blocks(network, groups)
    sums = [as_variable(network, group, parents_of(network, group, blocks)).table.sum(axis=1) for group in groups]
    sound = [group for group, total in zip(groups, sums, strict=True) if np.abs(total - 1.0).max() < _ROUNDING]
    blocks = _blocks(network, sound)
    try:
        TopologicalSorter({b.name: [p.name for p in parents_of(network, b, blocks)] for b in blocks}).prepare()
    except CycleError:
        return _blocks(network, [])
    return blocks


def _group(network: Network, variable: str) -> Block | None:
    """The units of a variable together; None if there is one alone, or if another unit has the name."""
    units = several(network)[variable]
    own = network._index.get(variable)
    states = tuple(units) if own is None else network.notes[variable].states or _BITS
    if len(units) < 2 or set(states) != set(units) or (own is not None and own not in units.values()):
        return None
    return Block(variable, states, tuple(units.values()), tuple(states.index(state) for state in units))


def _blocks(network: Network, groups: list[Block]) -> list[Block]:
    grouped = {unit for group in groups for unit in group.units}
    alone = [Block(name, _words(network, name), (i,), (1,)) for i, name in enumerate(network.names) if i not in grouped]
    return sorted([*groups, *alone], key=lambda block: block.units)


def _words(network: Network, name: str) -> tuple[str, ...]:
    """What two states are called; "0" and "1" if nothing is said of them."""
    return (network.notes[name].states if network.states[name] == NO_YES else network.states[name]) or _BITS


def parents_of(network: Network, block: Block, blocks: list[Block]) -> list[Block]:
    """The blocks of all parents of its units, but for itself."""
    graph = network.graph
    parents = {int(j) for i in block.units for j in graph.parent[graph.indptr[i] : graph.indptr[i + 1]]}
    return [other for other in blocks if not parents.isdisjoint(other.units) and other.name != block.name]


def as_variable(
    network: Network, block: Block, parents: list[Block], most: int = MOST_PARENTS, into: str = "a table"
) -> Variable:
    """A variable with its table, whose rows are the joint states of its parents."""
    from sbnet.model import gates

    sizes = [len(parent.states) for parent in parents]
    check_rows(block.name, sizes, most, into)
    shape = (*sizes, len(block.states))
    joint = np.indices(shape).reshape(len(shape), -1)
    value = {
        unit: (states == on).astype(np.float64)
        for other, states in zip((*parents, block), joint, strict=True)
        for unit, on in zip(other.units, other.on, strict=True)
    }
    log_p = np.zeros(joint.shape[1])
    for i in block.units:
        edges = slice(network.graph.indptr[i], network.graph.indptr[i + 1])
        x = np.full(len(log_p), network.bias[i])
        for j, weight in zip(network.graph.parent[edges].tolist(), network.weight[edges].tolist(), strict=True):
            if weight:
                x += weight * value[j]
        log_p += gates.log_p(np.full(len(x), network.gate[i]), value[i], x)
    table = np.exp(log_p)
    table[table < 2e-300] = 0.0
    about = network.notes[block.name].about if block.name in network.notes else ""
    names = tuple(parent.name for parent in parents)
    return Variable(block.name, block.states, names, table.reshape(-1, len(block.states)), about)


def write_bif(network: Network, name: str) -> None:
    variables = as_variables(network)
    lines = ["network unknown {", "}"]
    for one in variables:
        states = ", ".join(map(_quoted, one.states))
        lines += [f"variable {_quoted(one.name)} {{", f"  type discrete [ {len(one.states)} ] {{ {states} }};", "}"]
    states_of = {one.name: one.states for one in variables}
    for one in variables:
        given = f" | {', '.join(map(_quoted, one.parents))}" if one.parents else ""
        lines.append(f"probability ( {_quoted(one.name)}{given} ) {{")
        keys = itertools.product(*(states_of[parent] for parent in one.parents))
        for key, row in zip(keys, one.table.tolist(), strict=True):
            head = f"({', '.join(map(_quoted, key))})" if key else "table"
            lines.append(f"  {head} {', '.join(map(repr, row))};")
        lines.append("}")
    write_atomically(name, ("\n".join(lines) + "\n").encode())


def _quoted(name: str) -> str:
    """A name as BIF has it: bare if it is a word or a whole number, which all programs read, else in quotes."""
    if re.fullmatch("[A-Za-z_][A-Za-z_0-9.-]*|[0-9]+", name) and name.lower() not in _RESERVED:
        return name
    if '"' in name or "\n" in name:
        raise FileFormatError(f"the name {name!r} cannot be written in BIF, which has no quotes in names; rename it")
    return f'"{name}"'


def write_uai(network: Network, name: str) -> None:
    """Write a network in the UAI format, which has no names: variables are numbered in the order of the network."""
    variables = as_variables(network)
    number = {one.name: i for i, one in enumerate(variables)}
    scopes = [[number[other] for other in (*one.parents, one.name)] for one in variables]
    sizes = " ".join(str(len(one.states)) for one in variables)
    lines = ["BAYES", str(len(variables)), sizes, str(len(variables))]
    lines += [" ".join(map(str, (len(scope), *scope))) for scope in scopes]
    for one in variables:
        lines += ["", str(one.table.size), *(" " + " ".join(map(repr, row)) for row in one.table.tolist())]
    write_atomically(name, ("\n".join(lines) + "\n").encode())
