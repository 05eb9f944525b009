"""Evidence in words: of units, of the columns that a model was learned from, of variables with several states."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any, NamedTuple

from sbnet.errors import EvidenceError, hint, shortened, unknown_unit
from sbnet.model.names import normal
from sbnet.model.network import Network
from sbnet.model.states import shown
from sbnet.questions.evidence import as_evidence
from sbnet.tables import frames
from sbnet.tables.kinds import YES_NO, Column
from sbnet.tables.several import is_variable, several
from sbnet.tables.stored import column_of

_UNKNOWN = frozenset({"unknown", "unobserved", "missing", "na", "?", ""})


class Finding(NamedTuple):
    """Something that was found: what to call it, and what it says of units."""

    title: str
    states: dict[str, Any]


def findings(network: Network, items: Sequence[str]) -> list[Finding]:
    """Evidence from words such as ``rain=1``, ``rain=yes`` or ``age=70``; ``rain=unknown`` says nothing."""
    vocabulary, found, named = _Vocabulary(network), list[Finding](), set[str]()
    for item in items:
        name, state = vocabulary.parted(item)
        kind = vocabulary.kind(name)
        if name in named:
            raise EvidenceError(f"evidence names {kind} {name!r} twice")
        named.add(name)
        if state.casefold() not in _UNKNOWN:
            found.append(Finding(name if kind == "unit" else item, vocabulary.states(name, state)))
    return found


def pattern(network: Network, items: Sequence[str]) -> dict[str, Any]:
    """The states of units that such words say."""
    return together(findings(network, items))


def together(found: Sequence[Finding]) -> dict[str, Any]:
    """What all findings say, which must agree."""
    states: dict[str, Any] = {}
    for finding in found:
        for unit, bit in finding.states.items():
            if (known := states.setdefault(unit, bit)) != bit:
                both = sorted({str(known), str(bit)})
                raise EvidenceError(
                    f"evidence says that unit {unit!r} is {both[0]} and that it is {both[1]}; {finding.title!r} is one"
                )
    return states


def listed_units(network: Network, names: Sequence[str], what: str) -> list[str]:
    """Units by their names; a column, or a variable of several states, stands for all of its units."""
    vocabulary, found = _Vocabulary(network), list[str]()
    for name in names:
        if (meant := vocabulary.meant(name)) is None:
            raise unknown_unit(name, vocabulary.known, what)
        found += vocabulary.known[meant]
    return list(dict.fromkeys(found))


def findings_apart(network: Network, about: Sequence[str] | None, evidence: list[str]) -> list[str] | None:
    """The units behind an option that takes many, which would take in findings that stand behind it too.

    Where all words have a sign of equality, those that are units are meant as such: "sky=rain" can be one.
    """
    if about is None:
        return None
    only = all("=" in word for word in about)
    meant = [word for word in about if "=" not in word or (only and word in network._index)]
    evidence += [word for word in about if word not in meant]
    return meant


class _Vocabulary:
    """What can be named in evidence: variables, in the words of the table that a model was learned from, if it was;
    variables whose units are called after their states. `known` has the units of each name.
    """

    def __init__(self, network: Network) -> None:
        self._network = network
        self._variables = {name: units for name, units in several(network).items() if is_variable(network, name)}
        variables = {name: tuple(network.names[i] for i in v.values()) for name, v in self._variables.items()}
        self.known: dict[str, tuple[str, ...]] = variables | {name: (name,) for name in network.names}

    def meant(self, name: str) -> str | None:
        """The name that is meant: to the letter, else in normal form, else in any case where that is one name."""
        if name in self.known:
            return name
        plain = normal(name.strip())
        alike = [one for one in self.known if normal(one) == plain]
        alike = alike or [one for one in self.known if normal(one).casefold() == plain.casefold()]
        return alike[0] if len(alike) == 1 else None

    def kind(self, name: str) -> str:
        return "unit" if name in self._network._index else "variable"

    def parted(self, item: str) -> tuple[str, str]:
        """Name and state: both may hold the sign that parts them; the longest name goes first."""
        signs = [k for k, letter in enumerate(item) if letter == "=" and item[:k].strip()]
        if not signs:
            example = shlex.quote(f"{self._network.names[-1][:60]}=yes")
            raise EvidenceError(
                f"evidence {item!r} is not of the form UNIT=STATE, such as {example}; names with spaces stand in quotes"
            )
        for k in reversed(signs):
            if (meant := self.meant(item[:k])) is not None:
                return meant, item[k + 1 :].strip()
        raise unknown_unit(item[: signs[-1]].strip(), self.known, "evidence")

    def states(self, name: str, state: str) -> dict[str, Any]:
        """What the units of a name are in a state."""
        if name in self._network._index:
            i = self._network.index(name)
            return {name: as_evidence(self._network, i, _number(column_of(self._network, i), state))}
        words = list(self._variables[name])
        near = [k for k, word in enumerate(words) if normal(word).casefold() == normal(state).casefold()]
        if len(near) != 1:
            more = ", ".join(words[:8]) + (f", … {len(words) - 8} more" if len(words) > 8 else "")
            raise EvidenceError(shortened(f"variable {name!r} is given as {state!r}; say {more} or unknown"))
        return {unit: int(k == near[0]) for k, unit in enumerate(self.known[name])}


def _number(column: Column, state: str) -> int:
    """The number of the state that a word names; of a column of numbers, of the interval that a number is in."""
    found, new = column.read(frames.column(column.name, [state]))
    if not new[0] and found[0] >= 0:
        return int(found[0])
    given, states = f"unit {column.name!r} is given as {state!r}", column.states
    if column.cuts:
        raise EvidenceError(shortened(f"{given}; say a number ({shown(states)}) or unknown"))
    if len(states) > 2:
        near = hint(state, states, f"say {shown(states, 'or')}, or unknown", 0.6)
        raise EvidenceError(f"{given}; its states are {shown(states)}{near}")
    plain = ("yes", "no") if column.kind == YES_NO else ("1", "0")
    raise EvidenceError(f"{given}; say {', '.join(dict.fromkeys((*states[::-1], *plain)))} or unknown")
