"""Evidence in words: of units, of the columns that a model was learned from, of variables with several states."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sbnet.cli.stored import coding_of, stored_columns
from sbnet.errors import EvidenceError, hint, shortened, unknown_unit
from sbnet.model.names import normal
from sbnet.model.network import Network
from sbnet.model.states import find, shown
from sbnet.questions.evidence import as_evidence
from sbnet.tables import codings, frames
from sbnet.tables.several import is_variable, several

if TYPE_CHECKING:
    from sbnet.estimators.codings import ColumnCoding

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
    """What can be named in evidence: units; columns; variables whose units are called after their states.

    `known` has the units of each name.
    """

    def __init__(self, network: Network) -> None:
        self._network, self._columns = network, stored_columns(network)
        self._variables = {name: units for name, units in several(network).items() if is_variable(network, name)}
        columns = {name: column.units for name, column in self._columns.items()}
        variables = {name: tuple(network.names[i] for i in v.values()) for name, v in self._variables.items()}
        self.known: dict[str, tuple[str, ...]] = columns | variables | {name: (name,) for name in network.names}

    def meant(self, name: str) -> str | None:
        """The name that is meant: to the letter, else in normal form, else in any case where that is one name."""
        if name in self.known:
            return name
        plain = normal(name.strip())
        alike = [one for one in self.known if normal(one) == plain]
        alike = alike or [one for one in self.known if normal(one).casefold() == plain.casefold()]
        return alike[0] if len(alike) == 1 else None

    def kind(self, name: str) -> str:
        if name in self._network._index:
            return "unit"
        return "column" if name in self._columns else "variable"

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
        kind = self.kind(name)
        if kind == "unit":
            return {name: _state(self._network, name, state)}
        if kind == "column":
            column = self._columns[name]
            words, value = words_of(column), _value(column, state)
            codes = column.codes
        else:
            words = list(self._variables[name])
            value, codes = _spelled(state, words), np.eye(len(words), dtype=np.int8)
        if value is None:
            shown = ", ".join(words[:8]) + (f", … {len(words) - 8} more" if len(words) > 8 else "")
            shown = f"a number ({shown})" if words[0].startswith("up to ") else shown
            raise EvidenceError(shortened(f"{kind} {name!r} is given as {state!r}; say {shown} or unknown"))
        return dict(zip(self.known[name], codes[value].tolist(), strict=True))


def _value(column: ColumnCoding, state: str) -> int | None:
    """The number of one of its values; of a column of numbers, of the interval that holds a number."""
    number = frames.as_number(state)
    k = int(column.reader.index(np.array([state if number is None else number], dtype=object))[0])
    if k >= 0:
        return k
    if not (values := getattr(column.reader, "values", ())):
        return None
    found = _spelled(state, [str(value) for value in values])
    bits = [codings.bit(value) for value in values]
    if found is None and sorted(bits, key=str) == [0, 1] and codings.bit(state) is not None:
        return bits.index(codings.bit(state))
    if found is None and len(values) == 2 and values[0] == codings.NOT_CHOSEN:
        return codings.bit(state)
    return found


def words_of(column: ColumnCoding) -> list[str]:
    """The values of a column in words; of numbers, intervals."""
    values = getattr(column.reader, "values", None)
    if values is not None:
        return [codings.show(value) if isinstance(value, float) else str(value) for value in values]
    ends = [codings.show(float(cut)) for cut in column.reader.cuts]  # type: ignore[attr-defined]
    inner = [f"{low} to {high}" for low, high in pairwise(ends)]
    return [f"up to {ends[0]}", *inner, f"above {ends[-1]}"]


def _spelled(state: str, words: Sequence[str]) -> int | None:
    """The number of a word, to the letter or in any case, where that is one word."""
    if state in words:
        return words.index(state)
    near = [k for k, word in enumerate(words) if normal(word).casefold() == normal(state).casefold()]
    return near[0] if len(near) == 1 else None


def _state(network: Network, name: str, state: str) -> Any:
    """What evidence says of a unit: 0 or 1, or the name of a state where there are more, or where they are numbers."""
    states = network.states[name]
    if len(states) == 2:
        return as_evidence(network, network.index(name), _bit(network, name, state))
    found = find(states, state)
    if found is None:
        near = hint(state, states, f"say {shown(states, 'or')}, or unknown", 0.6)
        raise EvidenceError(f"unit {name!r} is given as {state!r}; its states are {shown(states)}{near}")
    return states[found]


def _bit(network: Network, name: str, state: str) -> int:
    stated = coding_of(network, name)
    if stated is not None:
        bit = _spelled(state, (stated.zero, stated.one))
        if bit is not None:
            return bit
    number = frames.as_number(state) is not None
    said = codings.bit(state) if stated is None or number else codings.meaning(state, stated)
    if said is None:
        own = () if stated is None else (stated.one, stated.zero)
        plain = ("yes", "no") if stated is None or codings.meaning("yes", stated) is not None else ("1", "0")
        words = ", ".join(dict.fromkeys((*own, *plain)))
        raise EvidenceError(f"unit {name!r} is given as {state!r}; say {words} or unknown")
    return said
