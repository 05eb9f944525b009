"""Hugin's files (NET): nodes with named states, and a potential for each. The last parent of a table runs fastest after
the variable itself."""

from __future__ import annotations

import math
import re

import numpy as np

from sbnet.files.plain import read_text
from sbnet.files.positions import place_at
from sbnet.files.tokens import Tokens
from sbnet.files.variables import Variable

_TOKEN = re.compile(
    r'(?P<skip>\s+|%[^\n]*)|"(?P<quoted>(?:[^"\\]|\\.)*+)"|(?P<sign>[{}()=;|,])'
    r'|(?P<word>[^\s{}()=;|,"%]+)|(?P<odd>.)',
    re.DOTALL,
)
_WAYS_OUT = {
    "continuous": "its values are continuous; make it discrete in Hugin, and save the file again",
    "decision": "a belief network has no decisions; remove it in Hugin, or make it a chance node",
    "utility": "a belief network has no utilities; remove it in Hugin",
    "function": "function nodes have no table; remove it in Hugin",
    "instance": "a network within a network is not read; save the file as one flat network",
}


def read_net(name: str) -> list[Variable]:
    """The variables of a file, in its order. A node of another kind is refused, by its name."""
    return _Reader(name, read_text(name)).variables()


class _Reader(Tokens):
    def __init__(self, name: str, text: str) -> None:
        super().__init__(name, text, _TOKEN, re.compile("%[^\n]*"))
        self.states: dict[str, tuple[str, ...]] = {}
        self.about: dict[str, str] = {}
        self.tables: dict[str, Variable] = {}

    def variables(self) -> list[Variable]:
        if self.sees("class"):  # newer files have all of a network in one block
            self.take()
            self.named("the name of a class")
            self.expect("{")
        while self.now.kind != "end" and not self.sees("}"):
            self.block()
        if not self.states:
            raise self.wrong("there is no node in the file; is it a NET file of Hugin?")
        for own in self.states:
            if own not in self.tables:
                raise self.wrong(f"node {own[:60]!r} has no potential; add potential ({own[:60]}) {{ … }}")
        return [self.tables[own] for own in self.states]

    def block(self) -> None:
        offset, kind = self.now.offset, self.named("net, node or potential")
        if kind == "net":
            self.expect("{")
            self.attributes()
        elif kind == "potential":
            self.potential()
        elif kind in ("node", "discrete"):
            if kind == "discrete":
                self.expect("node")
            self.node()
        elif kind in _WAYS_OUT:
            self.skipped("node")
            raise self.wrong(f"node {self.now.text[:60]!r} is of kind {kind!r}: {_WAYS_OUT[kind]}", offset)
        elif self.sees("="):  # an attribute of the class
            self.attribute()
        else:
            raise self.wrong(f"{kind[:40]!r} is not a block of a NET file; these are net, node, potential", offset)

    def attributes(self, wanted: str = "") -> dict[str, list[str]]:
        """The words of each attribute up to the end of the block; those of one are left to the caller."""
        found: dict[str, list[str]] = {}
        while not self.sees("}"):
            key = self.named("an attribute, or }")
            if key == wanted:
                return found
            found[key] = self.attribute()
        self.expect("}")
        return found

    def attribute(self) -> list[str]:
        self.expect("=")
        words = []
        while not self.sees(";"):
            if self.now.kind == "end":
                raise self.wrong("; is expected after an attribute")
            token = self.take()
            words += [token.text] * (token.kind != "sign")
        self.expect(";")
        return words

    def node(self) -> None:
        offset, own = self.now.offset, self.named("the name of a node")
        if own in self.states:
            raise self.wrong(f"there are two nodes {own[:60]!r}", offset)
        self.expect("{")
        found = self.attributes()
        states = tuple(found.get("states", ()))
        if len(states) < 2 or len(set(states)) < len(states):
            what = "two of them have the same name" if len(states) > 1 else "a variable needs two or more"
            raise self.wrong(f"node {own[:60]!r} has {len(states)} states; {what}", offset)
        self.states[own] = states
        about = " ".join(found.get("label", ()))
        self.about[own] = "" if about == own else about

    def potential(self) -> None:
        offset, own, parents, sizes = self.heading("node", self.states, self.tables)
        self.expect("{")
        found = self.attributes("data")
        if "model_nodes" in found or not self.sees("="):
            what = "is given by an expression" if "model_nodes" in found else "has no data"
            raise self.wrong(f"the potential of {own[:60]!r} {what}; save it with its table", offset)
        begin = self.take().offset
        values = self.numbers(own)
        self.attributes()
        rows, n = math.prod(sizes), len(self.states[own])
        if len(values) != rows * n:
            raise self.wrong(f"the table of {own[:60]!r} has {len(values)} numbers; {rows * n} are needed", begin)
        table = np.array(values).reshape(rows, n)
        place = str(place_at(self.text, begin))
        self.tables[own] = Variable(own, self.states[own], parents, table, self.about[own], place=lambda row: place)
