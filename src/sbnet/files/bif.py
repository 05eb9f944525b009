"""The Bayesian interchange format (BIF): variables with named states, and a table for each."""

from __future__ import annotations

import math
import re
from typing import NamedTuple

import numpy as np

from sbnet._types import FloatArray
from sbnet.errors import hint
from sbnet.files.plain import read_text
from sbnet.files.positions import place_at
from sbnet.files.tokens import Tokens
from sbnet.files.variables import Variable

MOST_FILLED = 2**18
"""Numbers that defaults stand for, in all tables of a file: a few bytes can ask for any number of them."""
_TOKEN = re.compile(
    r"(?P<skip>\s+|//[^\n]*|/\*.*?(?:\*/|\Z)|\bproperty\b[^;]*+(?:;|\Z))"
    r'|"(?P<quoted>[^"]*)"|(?P<sign>[{}()\[\],;|])|(?P<word>(?:(?!//|/\*)[^\s{}()\[\],;|"])+)|(?P<odd>.)',
    re.DOTALL,
)


_COMMENT = re.compile(r"//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)


class _Table(NamedTuple):
    """What a probability block says: parents, rows by the states of the parents, and all numbers at once."""

    parents: tuple[str, ...]
    rows: dict[tuple[str, ...], tuple[float, ...]]
    default: tuple[float, ...]
    table: tuple[float, ...]
    offset: int
    places: dict[tuple[str, ...], int]  # where each row begins, and with an empty key all others


def read_bif(name: str) -> list[Variable]:
    """The variables of a file, in its order."""
    return _Reader(name, read_text(name)).variables()


class _Reader(Tokens):
    """Goes through the tokens of a file, one at a time."""

    def __init__(self, name: str, text: str) -> None:
        super().__init__(name, text, _TOKEN, _COMMENT)
        self.states: dict[str, dict[str, int]] = {}  # of each variable, with their numbers
        self.filled = 0  # entries that no file holds, but a default
        self.tables: dict[str, _Table] = {}

    # --- blocks ------------------------------------------------------------------------------------------------------

    def variables(self) -> list[Variable]:
        while self.now.kind != "end":
            block = self.named("network, variable or probability").lower()
            if block == "network":
                self.network()
            elif block == "variable":
                self.variable()
            elif block == "probability":
                self.probability()
            else:
                known = "network, variable, probability"
                raise self.wrong(f"{block[:40]!r} is not a block of a BIF file; these are {known}")
        if not self.states:
            raise self.wrong("there is no variable in the file; is it BIF?")
        return [self.finished(variable) for variable in self.states]

    def network(self) -> None:
        for sign in "{}":
            while not self.sees(sign) and self.now.kind != "end":
                self.take()
            self.expect(sign)

    def variable(self) -> None:
        offset, name = self.now.offset, self.named("the name of a variable")
        if name in self.states:
            raise self.wrong(f"there are two variables {name!r}", offset)
        self.expect("{")
        states: dict[str, int] = {}
        while not self.sees("}"):
            self.expect("type")
            self.expect("discrete")
            states = self.state_names(name)
        self.expect("}")
        if len(states) < 2:
            raise self.wrong(f"variable {name!r} has {len(states)} states; a variable needs two or more", offset)
        self.states[name] = states

    def state_names(self, name: str) -> dict[str, int]:
        self.expect("[")
        count = self.named("a number of states")
        self.expect("]")
        self.expect("{")
        states = []
        while not self.sees("}"):
            states.append(self.named("the name of a state"))
            self.skipped(",")
        self.expect("}")
        self.skipped(";")
        if count != str(len(states)):
            raise self.wrong(f"variable {name!r} should have {count[:20]} states, and {len(states)} are named")
        numbered = {state: k for k, state in enumerate(states)}
        if len(numbered) < len(states):
            raise self.wrong(f"two states of {name!r} have the same name")
        return numbered

    def probability(self) -> None:
        offset, name, parents, _ = self.heading("variable", self.states, self.tables)
        self.expect("{")
        self.tables[name] = self.entries(name, parents, offset)
        self.expect("}")

    def entries(self, name: str, parents: tuple[str, ...], offset: int) -> _Table:
        rows: dict[tuple[str, ...], tuple[float, ...]] = {}
        default: tuple[float, ...] = ()
        table: tuple[float, ...] = ()
        places: dict[tuple[str, ...], int] = {(): offset}
        while not self.sees("}"):
            begin = self.now.offset
            if self.sees("("):
                key = self.row(name, parents)
                if key in rows:
                    raise self.wrong(f"the table of {name!r} has two rows for {', '.join(key)}")
                rows[key] = self.numbers(name)
                places[key] = begin
            elif self.skipped("table"):
                table, places[()] = self.numbers(name), begin
            elif self.skipped("default"):
                default, places[()] = self.numbers(name), begin
            else:
                raise self.wrong(f"a row, table or default is expected here, not {self.now.text[:40]!r}")
        return _Table(parents, rows, default, table, offset, places)

    def row(self, name: str, parents: tuple[str, ...]) -> tuple[str, ...]:
        """The states of the parents in front of a row."""
        self.expect("(")
        key: list[str] = []
        while not self.sees(")"):
            state = self.named("a state")
            if len(key) < len(parents) and state not in (known := self.states[parents[len(key)]]):
                raise self.wrong(f"{state!r} is not a state of {parents[len(key)]!r}{hint(state, known)}")
            key.append(state)
            self.skipped(",")
        self.expect(")")
        if len(key) != len(parents):
            raise self.wrong(f"a row of {name!r} names {len(key)} states, and it has {len(parents)} parents")
        return tuple(key)

    # --- tables ------------------------------------------------------------------------------------------------------

    def finished(self, name: str) -> Variable:
        if name not in self.tables:
            raise self.wrong(f"variable {name!r} has no table; add probability ( {name} ) {{ … }}")
        table, states = self.tables[name], self.states[name]
        sizes = [len(self.states[parent]) for parent in table.parents]
        self.filled += math.prod(sizes) * len(states) if table.default and table.parents else 0
        if self.filled > MOST_FILLED:
            text = f"defaults fill more than {MOST_FILLED:,} entries of tables; that is the limit"
            raise self.wrong(text, table.offset)
        values = self.whole(name, table, sizes) if table.table else self.by_rows(name, table, sizes)
        return Variable(name, tuple(states), table.parents, values, place=lambda row: self.place(table, sizes, row))

    def place(self, table: _Table, sizes: list[int], row: int) -> str:
        states = np.unravel_index(row, sizes) if sizes else ()
        key = tuple(list(self.states[parent])[int(s)] for parent, s in zip(table.parents, states, strict=True))
        return str(place_at(self.text, table.places.get(key, table.places[()])))

    def whole(self, name: str, table: _Table, sizes: list[int]) -> FloatArray:
        """All numbers at once: the states of the variable slowest, as the format has it, or fastest, as some write."""
        n_states, n_rows = len(self.states[name]), math.prod(sizes)
        if len(table.table) != n_states * n_rows:
            count = len(table.table)
            raise self.wrong(f"the table of {name!r} has {count} numbers; {n_states * n_rows} are needed", table.offset)
        values = np.array(table.table)
        slow, fast = values.reshape(n_states, n_rows).T, values.reshape(n_rows, n_states)
        return min((slow, fast), key=lambda found: float(np.abs(found.sum(axis=1) - 1.0).max().round(3)))

    def by_rows(self, name: str, table: _Table, sizes: list[int]) -> FloatArray:
        places = [self.states[parent] for parent in table.parents]
        n_states = len(self.states[name])
        values = np.full((*sizes, n_states), np.nan)
        for key, row in (((), table.default), *table.rows.items()):
            if key == () and not row and table.parents:
                continue  # there is no default
            if len(row) != n_states:
                text = f"a row of the table of {name!r} has {len(row)} numbers for {n_states} states"
                raise self.wrong(text, table.offset)
            values[tuple(place[state] for place, state in zip(places, key, strict=False))] = row
        lacking = np.argwhere(np.isnan(values[..., 0]))
        if len(lacking):
            row_ = ", ".join(list(self.states[p])[k] for p, k in zip(table.parents, lacking[0].tolist(), strict=True))
            raise self.wrong(f"the table of {name!r} has no row for {row_}", table.offset)
        return values.reshape(-1, n_states)
