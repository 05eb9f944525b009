"""The UAI format: numbers alone. The last variable of a table is the one it is about, and runs fastest.

pyAgrum writes such files in an order of its own, with the first parent fastest after the variable itself. They are
known by the names that it puts behind `#`, which the format does not have.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from sbnet._types import FloatArray
from sbnet.errors import FileFormatError
from sbnet.files.plain import at, read_text
from sbnet.files.positions import place_at
from sbnet.files.variables import MOST_ENTRIES, ROUNDED_SUM, Variable, entries_of, parsed_number

_COMMENT = re.compile("#.*")


def read_uai(name: str) -> list[Variable]:
    """The variables of a file, called by their numbers, as are their states."""
    text = read_text(name)
    names = list(_names(text))
    variables = _Numbers(name, _COMMENT.sub(lambda found: " " * len(found.group()), text)).variables()
    if len(names) == len(variables) == len(set(names)):
        return [_as_pyagrum(variable, variables, names) for variable in variables]
    for variable in variables:
        table = variable.table
        turned = table.reshape(table.shape[::-1]).T
        if variable.place is not None and not _adds_up(table) and _adds_up(turned):
            text = (
                f"rows of the table of {variable.name!r} add up only if its own state runs slowest, as pgmpy writes; "
                "in UAI it runs fastest. Take sb.convert.from_pgmpy(model) or a .bif file"
            )
            raise at(variable.place(0), text, name)
    return variables


def _names(text: str) -> Iterator[str]:
    """The names behind `#`, where the variables of a table stand before it, as pyAgrum writes them."""
    for line in text.split("\n"):
        scope, mark, name = line.partition("#")
        if mark and name.strip() and scope[-1:].isspace() and scope.split() and "".join(scope.split()).isdecimal():
            yield name.strip()


def _adds_up(table: FloatArray) -> bool:
    return bool(np.abs(table.sum(axis=1) - 1.0).max() <= ROUNDED_SUM)


def _as_pyagrum(variable: Variable, variables: list[Variable], names: list[str]) -> Variable:
    """A variable with its name, and its table with the parents in the order of the format."""
    parents = [int(parent) for parent in variable.parents]
    shape = [len(variables[j].states) for j in reversed(parents)]
    table = variable.table.reshape(*shape, -1)
    table = table.transpose(*reversed(range(len(parents))), len(parents)).reshape(variable.table.shape)
    own, place = names[int(variable.name)], variable.place
    first = None if place is None else lambda row: place(0)
    return replace(variable, name=own, parents=tuple(names[j] for j in parents), table=table, place=first)


class _Numbers:
    """The words of a file, one after the other, each with its place."""

    def __init__(self, name: str, text: str) -> None:
        self.name, self.text = name, text
        self.words: Iterator[re.Match[str]] = re.finditer(r"\S+", text)
        self.at = 0

    def wrong(self, message: str) -> FileFormatError:
        return at(place_at(self.text, self.at), message, self.name)

    def word(self, what: str) -> str:
        found = next(self.words, None)
        if found is None:
            self.at = len(self.text)
            raise self.wrong(f"the file ends where {what} should stand")
        self.at = found.start()
        return found.group()

    def whole(self, what: str, least: int, most: int) -> int:
        word = self.word(what)
        if not re.fullmatch("[0-9]{1,9}", word) or not least <= int(word) <= most:
            raise self.wrong(f"{what} is {word[:40]!r}; it is a whole number from {least} to {most}")
        return int(word)

    def probability(self, what: str) -> float:
        word = self.word(what)
        value = parsed_number(word)
        if not 0.0 <= value < math.inf:
            raise self.wrong(f"{what} is {word[:40]!r}; it is a number that is not negative")
        return value

    def variables(self) -> list[Variable]:
        kind = self.word("BAYES")
        if kind.upper() == "MARKOV":
            raise self.wrong("this is a Markov network; only BAYES, with a conditional table a variable, can be read")
        if kind.upper() != "BAYES":
            raise self.wrong(f"a UAI file begins with BAYES; this one with {kind[:40]!r}")
        n = self.whole("the number of variables", 1, len(self.text))
        sizes = [self.whole(f"the number of states of variable {i}", 1, 10**6) for i in range(n)]
        small = next((i for i, size in enumerate(sizes) if size < 2), None)
        if small is not None:
            raise self.wrong(f"variable {small} has one state; a variable needs two")
        if self.whole("the number of tables", 0, 10**9) != n:
            raise self.wrong(f"a Bayesian network of {n} variables has {n} tables")
        scopes = []
        for k in range(n):
            count = self.whole(f"the number of variables in table {k}", 1, n)
            scopes.append([self.whole(f"a variable of table {k}", 0, n - 1) for _ in range(count)])
            if len(set(scopes[k])) < count:
                raise self.wrong(f"table {k} names a variable twice")
        tables = {scope[-1]: self.table(scope, sizes) for scope in scopes}
        if len(tables) < n:
            twice = Counter(scope[-1] for scope in scopes).most_common(1)[0][0]
            raise self.wrong(f"variable {twice} has two tables; each variable has one, in which it comes last")
        if next(self.words, None) is not None:
            raise self.wrong("the file goes on after its last table")
        parents = {scope[-1]: scope[:-1] for scope in scopes}
        return [self.variable(i, sizes[i], parents[i], *tables[i]) for i in range(n)]

    def variable(self, i: int, size: int, parents: list[int], table: FloatArray, offsets: list[int]) -> Variable:
        states, names = tuple(map(str, range(size))), tuple(map(str, parents))
        return Variable(str(i), states, names, table, place=lambda row: str(place_at(self.text, offsets[row])))

    def table(self, scope: list[int], sizes: list[int]) -> tuple[FloatArray, list[int]]:
        """The table of a variable, and where each of its rows begins."""
        entries = entries_of(sizes[i] for i in scope)
        own = f"the table of variable {scope[-1]}"
        if entries > MOST_ENTRIES:
            raise self.wrong(f"{own} has more than {MOST_ENTRIES:,} entries; that is the limit")
        found = self.whole(f"the number of entries of {own}", 0, 10**9)
        if found != entries:
            raise self.wrong(f"the number of entries of {own} is {found}; its variables have {entries} joint states")
        values, offsets = [], []
        for k in range(entries):
            values.append(self.probability(f"an entry of {own}"))
            if k % sizes[scope[-1]] == 0:
                offsets.append(self.at)
        return np.array(values).reshape(-1, sizes[scope[-1]]), offsets
