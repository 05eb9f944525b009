"""Networks as tables, for other programs: a row for each state of the parents, so only for units with few of them."""

from __future__ import annotations

import itertools
import math
import re

from sbnet.errors import FileFormatError
from sbnet.files.atomic import write_atomically
from sbnet.files.variables import Variable
from sbnet.model.network import Network
from sbnet.model.states import NO_YES

MOST_PARENTS = 16
"""Parents of a unit that is written as a table of 65,536 rows."""
_BITS = ("0", "1")
_RESERVED = {"network", "variable", "probability", "table", "default", "property", "type", "discrete"}


def as_variables(network: Network, *, most: int = MOST_PARENTS, into: str = "a table") -> list[Variable]:
    """The units as variables with tables."""
    return [_as_variable(network, i, most, into) for i in range(network.n_units)]


def _as_variable(network: Network, i: int, most: int, into: str) -> Variable:
    family = network.family(i)
    if family.table is None or into != "a table":  # what is a table already was read from somewhere
        check_rows(family.name, [len(states) for states in family.parent_states], most, into)
    table = family.distribution(family.every_row())
    return Variable(family.name, words(network, family.name), family.parents, table, network.notes[family.name].about)


def words(network: Network, name: str) -> tuple[str, ...]:
    """What states are called: where all variables have two, "0" and "1" if nothing is said of them."""
    if not network.is_binary or network.states[name] != NO_YES:
        return network.states[name]
    return network.notes[name].states or _BITS


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
    """A name as BIF has it: bare if it is a word, 20_MG among them, which all programs read, else in quotes."""
    if re.fullmatch("[A-Za-z_][A-Za-z_0-9.-]*|[A-Za-z_0-9]+", name) and name.lower() not in _RESERVED:
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
