"""Microsoft's belief networks (DSC): nodes with named states, and rows of probabilities by the states of parents."""

from __future__ import annotations

import math
import re

import numpy as np

from sbnet.files.plain import read_text
from sbnet.files.positions import place_at
from sbnet.files.tokens import Tokens
from sbnet.files.variables import Variable

_TOKEN = re.compile(
    r'(?P<skip>\s+|//[^\n]*|/\*.*?(?:\*/|\Z))|"(?P<quoted>[^"]*)"|(?P<sign>[{}()\[\],;|:=])'
    r'|(?P<word>(?:(?!//|/\*)[^\s{}()\[\],;|:="])+)|(?P<odd>.)',
    re.DOTALL,
)


def read_dsc(name: str) -> list[Variable]:
    """The variables of a file, in its order. A node of another kind is refused, by its name."""
    return _Reader(name, read_text(name)).variables()


class _Reader(Tokens):
    def __init__(self, name: str, text: str) -> None:
        super().__init__(name, text, _TOKEN, re.compile(r"//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL))
        self.states: dict[str, tuple[str, ...]] = {}
        self.about: dict[str, str] = {}
        self.tables: dict[str, Variable] = {}

    def variables(self) -> list[Variable]:
        self.expect("belief")
        self.expect("network")
        while self.now.kind != "end":
            if self.skipped("node"):
                self.node()
            elif self.skipped("probability"):
                self.probability()
            elif self.now.kind == "quoted" or not self.states:
                self.take()  # the name of the network, and what is said of it
            else:
                raise self.wrong(f"node or probability is expected here, not {self.now.text[:40]!r}")
        if not self.states:
            raise self.wrong("there is no node in the file; is it DSC?")
        for own in self.states:
            if own not in self.tables:
                raise self.wrong(f"node {own[:60]!r} has no probabilities; add probability({own[:60]}) {{ … }}")
        return [self.tables[own] for own in self.states]

    def node(self) -> None:
        offset, own = self.now.offset, self.named("the name of a node")
        if own in self.states:
            raise self.wrong(f"there are two nodes {own[:60]!r}", offset)
        self.expect("{")
        states: list[str] = []
        self.about[own] = ""
        while not self.sees("}"):
            key = self.named("an attribute, or }")
            self.skipped(":") or self.skipped("=")
            if key == "type":
                if not self.skipped("discrete"):
                    text = f"node {own[:60]!r} is of kind {self.now.text[:40]!r}; only discrete nodes are read"
                    raise self.wrong(text, offset)
                states = self.state_names()
            elif key == "name" and self.now.kind == "quoted":
                self.about[own] = "" if self.now.text == own else self.now.text
            while not self.skipped(";"):
                if self.now.kind == "end":
                    raise self.wrong("; is expected after an attribute")
                self.take()
        self.expect("}")
        if len(states) < 2 or len(set(states)) < len(states):
            what = "two of them have the same name" if len(states) > 1 else "a variable needs two or more"
            raise self.wrong(f"node {own[:60]!r} has {len(states)} states; {what}", offset)
        self.states[own] = tuple(states)

    def state_names(self) -> list[str]:
        self.expect("[")
        count = self.named("a number of states")
        self.expect("]")
        self.expect("=")
        self.expect("{")
        states = []
        while not self.sees("}"):
            states.append(self.named("the name of a state"))
            self.skipped(",")
        self.expect("}")
        if count != str(len(states)):
            raise self.wrong(f"{count[:20]} states are announced, and {len(states)} are named")
        return states

    def probability(self) -> None:
        offset, own, parents, sizes = self.heading("node", self.states, self.tables)
        table = np.full((math.prod(sizes), len(self.states[own])), np.nan)
        self.expect("{")
        while not self.sees("}"):
            self.row(own, sizes, table)
        self.expect("}")
        lacking = np.flatnonzero(np.isnan(table[:, 0]))
        if len(lacking):
            states = np.unravel_index(lacking[0], sizes) if sizes else ()
            raise self.wrong(f"the table of {own[:60]!r} has no row for ({', '.join(map(str, states))})", offset)
        place = str(place_at(self.text, offset))
        self.tables[own] = Variable(own, self.states[own], parents, table, self.about[own], place=lambda row: place)

    def row(self, own: str, sizes: list[int], table: np.ndarray) -> None:
        """Numbers, of all rows that have none yet (default), or of the one whose states stand in front of them."""
        offset = self.now.offset
        if self.skipped("default"):
            chosen = np.flatnonzero(np.isnan(table[:, 0]))
            self.skipped(":")
        elif self.sees("("):
            chosen = np.array([self.key(own, sizes)])
            self.skipped(":")
        elif self.sees("function"):
            raise self.wrong(f"{own[:60]!r} is given by a function; save it with its table", offset)
        else:
            chosen = np.arange(len(table)) if not sizes else np.arange(0)
        if not sizes and len(chosen) != 1:
            raise self.wrong(f"the table of {own[:60]!r} has more than one row", offset)
        values = self.numbers(own)
        if not len(chosen) and len(values) == table.size:
            table[:] = np.reshape(values, table.shape)
            return
        if len(values) != table.shape[1] or not len(chosen):
            text = f"a row of the table of {own[:60]!r} has {len(values)} numbers for {table.shape[1]} states"
            raise self.wrong(text, offset)
        table[chosen] = values

    def key(self, own: str, sizes: list[int]) -> int:
        """The number of the row of some states of the parents."""
        self.expect("(")
        states: list[int] = []
        while not self.sees(")"):
            offset, word = self.now.offset, self.named("the number of a state")
            if not word.isdecimal() or len(states) >= len(sizes) or int(word) >= sizes[len(states)]:
                raise self.wrong(f"{word[:40]!r} is no number of a state of a parent of {own[:60]!r}", offset)
            states.append(int(word))
            self.skipped(",")
        self.expect(")")
        if len(states) != len(sizes):
            raise self.wrong(f"a row of {own[:60]!r} names {len(states)} states, and it has {len(sizes)} parents")
        return int(np.ravel_multi_index(states, sizes)) if sizes else 0
