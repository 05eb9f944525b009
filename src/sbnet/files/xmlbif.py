"""The interchange format in XML (XMLBIF): variables with named outcomes, and a definition with a table for each. The
variable itself runs fastest, then the last of those it is given."""

from __future__ import annotations

import math
from xml.etree.ElementTree import Element

import numpy as np

from sbnet._types import FloatArray
from sbnet.errors import FileFormatError, hint
from sbnet.files.plain import at, place_of, read_xml
from sbnet.files.variables import MOST_ENTRIES, Variable, entries_of, parsed_number


def read_xmlbif(name: str) -> list[Variable]:
    """The variables of a file, in its order. A variable that is no chance node is refused, by its name."""
    return _Definitions(name, read_xml(name)).variables()


def _texts(element: Element, tag: str) -> list[str]:
    return [(one.text or "").strip() for one in element.iterfind(tag)]


class _Definitions:
    def __init__(self, name: str, root: Element) -> None:
        self.name = name
        networks = [root] if root.tag == "NETWORK" else root.findall("NETWORK")
        if len(networks) != 1:
            raise self.wrong(f"the file has {len(networks)} <NETWORK>; an XMLBIF file has one", root)
        self.network = networks[0]
        self.states: dict[str, tuple[str, ...]] = {}
        self.about: dict[str, str] = {}
        for variable in self.network.iterfind("VARIABLE"):
            self.declare(variable)

    def wrong(self, message: str, element: Element) -> FileFormatError:
        return at(place_of(element), message, self.name)

    def declare(self, variable: Element) -> None:
        own, kind = next(iter(_texts(variable, "NAME")), ""), variable.get("TYPE", "nature")
        if kind not in ("nature", "discrete"):
            raise self.wrong(
                f"variable {own[:60]!r} is of kind {kind[:40]!r}; only variables with a table of probabilities are "
                "read. Make it one, or remove it, in the program that wrote the file",
                variable,
            )
        if not own or own in self.states:
            raise self.wrong(f"there are two variables {own[:60]!r}" if own else "a variable has no NAME", variable)
        states = tuple(_texts(variable, "OUTCOME") or _texts(variable, "VALUE"))
        if len(states) < 2 or len(set(states)) < len(states):
            what = "two of them have the same name" if len(states) > 1 else "a variable needs two or more"
            raise self.wrong(f"variable {own[:60]!r} has {len(states)} outcomes; {what}", variable)
        self.states[own] = states
        notes = [text for text in _texts(variable, "PROPERTY") if text.startswith("description")]
        about = notes[0].partition("=")[2].strip() if notes else ""
        self.about[own] = "" if about == own else about

    def variables(self) -> list[Variable]:
        if not self.states:
            raise self.wrong("there is no VARIABLE in the file; is it XMLBIF?", self.network)
        found: dict[str, Variable] = {}
        for definition in self.network.iterfind("DEFINITION"):
            variable = self.defined(definition)
            if variable.name in found:
                raise self.wrong(f"{variable.name[:60]!r} has two definitions", definition)
            found[variable.name] = variable
        for own in self.states:
            if own not in found:
                raise self.wrong(f"variable {own[:60]!r} has no DEFINITION", self.network)
        return [found[own] for own in self.states]

    def defined(self, definition: Element) -> Variable:
        own, parents = next(iter(_texts(definition, "FOR")), ""), tuple(_texts(definition, "GIVEN"))
        for one in (own, *parents):
            if one not in self.states:
                raise self.wrong(
                    f"a definition names {one[:60]!r}, which is no variable{hint(one, self.states)}", definition
                )
        if own in parents or len(set(parents)) < len(parents):
            raise self.wrong(f"the definition of {own[:60]!r} names a variable twice", definition)
        return Variable(own, self.states[own], parents, self.table(own, parents, definition), self.about[own])

    def table(self, own: str, parents: tuple[str, ...], definition: Element) -> FloatArray:
        sizes, n = [len(self.states[parent]) for parent in parents], len(self.states[own])
        entries = entries_of((*sizes, n))
        if entries > MOST_ENTRIES:
            text = f"the table of {own[:60]!r} has more than {MOST_ENTRIES:,} entries; that is the limit"
            raise self.wrong(text, definition)
        element = definition.find("TABLE")
        words = [] if element is None else "".join(element.itertext()).split()
        if len(words) != entries:
            raise self.wrong(f"the table of {own[:60]!r} has {len(words)} numbers; {entries} are needed", definition)
        values = np.array([parsed_number(word) for word in words])
        if not np.isfinite(values).all():
            word = words[int(np.flatnonzero(~np.isfinite(values))[0])]
            raise self.wrong(f"{word[:40]!r} in the table of {own[:60]!r} is no number", definition)
        return values.reshape(math.prod(sizes), n)
