"""GeNIe's files (XDSL): nodes with tables, and noisy-MAX nodes. The last parent of a table runs fastest after the
variable itself.

pyAgrum writes such files with the first parent fastest. They are known by its name, which it leaves in them.
"""

from __future__ import annotations

from xml.etree.ElementTree import Element

import numpy as np

from sbnet._types import FloatArray
from sbnet.errors import FileFormatError, hint
from sbnet.files.plain import at, place_of, read_xml
from sbnet.files.variables import MOST_ENTRIES, NoisyMax, Variable, entries_of, parsed_number

_AS_TABLE = "change its type to a general chance node (cpt) in GeNIe and save the file again"
_WAYS_OUT = {
    "noisyadder": f"a noisy-adder node has no table; {_AS_TABLE}",
    "deterministic": f"a deterministic node has no table of probabilities; {_AS_TABLE}",
    "equation": "its values are continuous; make it discrete in GeNIe, or remove it, and save the file again",
    "decision": "a belief network has no decisions; remove it in GeNIe, or make it a chance node",
    "utility": "a belief network has no utilities; remove it in GeNIe",
    "mau": "a belief network has no utilities; remove it in GeNIe",
}


def read_xdsl(name: str) -> list[Variable]:
    """The variables of a file, in its order. A node of another kind is refused, by its name."""
    root = read_xml(name)
    nodes = root.find("nodes")
    if root.tag != "smile" or nodes is None:
        raise FileFormatError(f"{name} is not an XDSL file of GeNIe: it has no <smile> with <nodes> in it")
    if root.find("dynamic") is not None:
        raise FileFormatError(f"{name} is a dynamic network, of several time steps; unroll it in GeNIe first")
    read = _Nodes(name, root, nodes)
    if not read.nodes:
        raise read.wrong("there is no node in the file", nodes)
    return [read.variable(own, node) for own, node in read.nodes.items()]


class _Nodes:
    """The nodes of a file by their names."""

    def __init__(self, name: str, root: Element, nodes: Element) -> None:
        self.name = name
        self.nodes: dict[str, Element] = {}
        for node in nodes:
            own, kind = node.get("id", ""), str(node.tag)
            if kind not in ("cpt", "noisymax"):
                way_out = _WAYS_OUT.get(kind, f"only nodes with a table, and noisy-MAX nodes, can be read; {_AS_TABLE}")
                raise self.wrong(f"node {own[:60]!r} is of kind {kind[:40]!r}: {way_out}", node)
            if not own or own in self.nodes:
                raise self.wrong(f"there are two nodes {own[:60]!r}" if own else "a node has no name (id)", node)
            self.nodes[own] = node
        written = {node.get("id", ""): node for node in root.iterfind("extensions/sbnet/node")}
        self.called = {own: (written[own].findtext("name") if own in written else None) or own for own in self.nodes}
        if len(set(self.called.values())) < len(self.called):
            raise self.wrong("its names make two nodes one", root.findall("extensions/sbnet")[0])
        self.states = {own: self.state_names(own, written.get(own)) for own in self.nodes}
        labels = root.iterfind("extensions/genie//node")
        self.about = {node.get("id", ""): (node.findtext("name") or "").strip() for node in labels}
        genie = root.find("extensions/genie")
        self.first_fastest = genie is not None and genie.get("app", "").startswith("aGrUM")

    def wrong(self, message: str, node: Element) -> FileFormatError:
        return at(place_of(node), message, self.name)

    def state_names(self, own: str, written: Element | None) -> tuple[str, ...]:
        called = {} if written is None else {one.get("id", ""): one.text for one in written.iterfind("state")}
        states = tuple(called.get(one := state.get("id", "")) or one for state in self.nodes[own].iterfind("state"))
        if len(states) < 2 or len(set(states)) < len(states):
            what = "two of them have the same name" if len(states) > 1 else "a variable needs two or more"
            raise self.wrong(f"variable {own[:60]!r} has {len(states)} states; {what}", self.nodes[own])
        return states

    def variable(self, own: str, node: Element) -> Variable:
        parents = tuple((node.findtext("parents") or "").split())
        for parent in parents:
            if parent not in self.nodes:
                unknown = f"{own[:60]!r} has the parent {parent[:60]!r}, which is no node of the file"
                raise self.wrong(unknown + hint(parent, self.nodes), node)
        if own in parents or len(set(parents)) < len(parents):
            raise self.wrong(f"the table of {own[:60]!r} names a variable twice", node)
        about, states = self.about.get(own, ""), self.states[own]
        name, above = self.called[own], tuple(self.called[parent] for parent in parents)
        about = "" if about in (own, name) else about
        if node.tag == "noisymax":
            formula = self.noisy_max(own, node, parents)
            return Variable(name, states, above, np.zeros((0, len(states))), about, formula)
        return Variable(name, states, above, self.table(own, node, parents), about)

    def noisy_max(self, own: str, node: Element, parents: tuple[str, ...]) -> NoisyMax:
        """Each state of each parent alone, in the order that <strengths> says, and the leak: a distribution each."""
        sizes, n_states = [len(self.states[parent]) for parent in parents], len(self.states[own])
        words, ranks, begin = (node.findtext("strengths") or "").split(), list[tuple[int, ...]](), 0
        for parent, size in zip(parents, sizes, strict=True):
            rank = words[begin : begin + size]
            if sorted(rank) != sorted(map(str, range(size))):
                text = f"{' '.join(rank)[:40]!r} among the strengths of {own[:60]!r} should have the numbers of all"
                raise self.wrong(f"{text} {size} states of {parent[:60]!r}, the one without effect last", node)
            ranks.append(tuple(map(int, rank)))
            begin += size
        values = self.numbers(own, node, "parameters", (sum(sizes) + 1) * n_states).reshape(-1, n_states)
        *listed, leak = np.split(values, np.cumsum(sizes))
        effects = tuple(rows[np.argsort(rank)] for rows, rank in zip(listed, ranks, strict=True))
        return NoisyMax(effects, leak[0], tuple(ranks))

    def table(self, own: str, node: Element, parents: tuple[str, ...]) -> FloatArray:
        sizes = [len(self.states[parent]) for parent in parents]
        entries = entries_of((*sizes, len(self.states[own])))
        if entries > MOST_ENTRIES:
            text = f"the table of {own[:60]!r} has more than {MOST_ENTRIES:,} entries; that is the limit"
            raise self.wrong(text, node)
        values = self.numbers(own, node, "probabilities", entries)
        if self.first_fastest:
            turned = values.reshape(*reversed(sizes), -1)
            values = turned.transpose(*reversed(range(len(sizes))), len(sizes))
        return values.reshape(-1, len(self.states[own]))

    def numbers(self, own: str, node: Element, tag: str, count: int) -> FloatArray:
        """The numbers of an element, `count` of them."""
        words = (node.findtext(tag) or "").split()
        if len(words) != count:
            raise self.wrong(f"the table of {own[:60]!r} has {len(words)} numbers; {count} are needed", node)
        values = np.array([parsed_number(word) for word in words])
        if not np.isfinite(values).all():
            word = words[int(np.flatnonzero(~np.isfinite(values))[0])]
            raise self.wrong(f"{word[:40]!r} in the table of {own[:60]!r} is no number", node)
        return values
