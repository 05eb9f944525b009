"""Evidence in words: of the states of variables, and of the columns that a model was learned from."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from sbnet.errors import EvidenceError, hint, shortened, unknown_unit
from sbnet.model.names import normal
from sbnet.model.network import Network
from sbnet.model.states import shown, takes_bits
from sbnet.questions.evidence import as_evidence
from sbnet.tables import frames
from sbnet.tables.kinds import YES_NO, Column
from sbnet.tables.stored import column_of

_UNKNOWN = frozenset({"unknown", "unobserved", "missing", "na", "?", ""})
_REPORT = re.compile(r"([^:]+):([^:,]*)(?:,|$)")
"""A state and its likelihood, in front of a comma or at the end."""


def pattern(network: Network, items: Sequence[str]) -> dict[str, Any]:
    """Evidence from words such as ``rain=1``, ``rain=yes`` or ``age=70``; ``rain=unknown`` says nothing.

    A likelihood for each state, as in ``fever=none:0.1,mild:0.5,high:1``, is soft evidence, by state.
    """
    found, named = dict[str, Any](), set[str]()
    for item in items:
        name, state = _parted(network, item)
        if name in named:
            raise EvidenceError(f"evidence names variable {name!r} twice")
        named.add(name)
        if state.casefold() not in _UNKNOWN:
            i = network.index(name)
            column = column_of(network, i)
            if (k := _number(column, state)) is not None:
                found[name] = as_evidence(network, i, k)
            elif ":" in state:
                found[name] = {network.states[name][k]: p for k, p in _report(column, state).items()}
            else:
                raise _refused(column, state)
    return found


def listed_units(network: Network, names: Sequence[str], what: str) -> list[str]:
    """Units by their names, each once."""
    found = []
    for name in names:
        if (meant := _meant(network, name)) is None:
            raise unknown_unit(name, network.names, what)
        found.append(meant)
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


def _meant(network: Network, name: str) -> str | None:
    """The name that is meant: to the letter, else in normal form, else in any case where that is one name, else what
    it is about."""
    if name in network._index:
        return name
    plain = normal(name.strip())
    alike = [one for one in network.names if normal(one) == plain]
    alike = alike or [one for one in network.names if normal(one).casefold() == plain.casefold()]
    if not alike:  # what a network says a name is about, as the label of a term in a catalogue
        notes = network.notes.items()
        alike = [one for one, note in notes if note.about and normal(note.about).casefold() == plain.casefold()]
    return alike[0] if len(alike) == 1 else None


def _parted(network: Network, item: str) -> tuple[str, str]:
    """Name and state: both may hold the sign that parts them; the longest name goes first."""
    signs = [k for k, letter in enumerate(item) if letter == "=" and item[:k].strip()]
    if not signs:
        example = shlex.quote(f"{network.names[-1][:60]}=yes")
        raise EvidenceError(
            f"evidence {item!r} is not of the form VARIABLE=STATE, such as {example}; names with spaces stand in quotes"
        )
    for k in reversed(signs):
        if (meant := _meant(network, item[:k])) is not None:
            return meant, item[k + 1 :].strip()
    raise unknown_unit(item[: signs[-1]].strip(), network.names, "evidence")


def certain(evidence: Mapping[str, Any]) -> set[str]:
    """The variables whose states are known, and not only reported."""
    return {name for name, state in evidence.items() if not isinstance(state, Mapping)}


def _number(column: Column, state: str) -> int | None:
    """The number of the state that a word names; of a column of numbers, of the interval that a number is in."""
    if state in column.states:
        return column.states.index(state)
    found, new = column.read(frames.column(column.name, [state]))
    return int(found[0]) if not new[0] and found[0] >= 0 else None


def _report(column: Column, text: str) -> dict[int, float]:
    """A likelihood for each state, by its number."""
    found: dict[int, float] = {}
    given = f"variable {column.name!r} is given as {text!r}"
    for word, number in _REPORT.findall(text):
        k = _number(column, word.strip())
        if k is None or k in found:
            wrong = f"{word.strip()!r} is none of its states" if k is None else f"{word.strip()!r} stands there twice"
            near = hint(word.strip(), column.states, f"they are {shown(column.states)}", 0.6) if k is None else ""
            raise EvidenceError(shortened(f"{given}; {wrong}{near}"))
        try:
            found[k] = float(number)
        except ValueError:
            found[k] = math.nan
        if not 0.0 <= found[k] < math.inf:
            raise EvidenceError(f"{given}; {number.strip()!r} is no likelihood: say a number, zero or more")
    if len(found) < len(column.states) or not any(found.values()):
        example = ",".join(f"{state}:{'1' if k else '0.2'}" for k, state in enumerate(column.states))
        raise EvidenceError(
            shortened(f"{given}; say a likelihood for each state, 0 for those that are ruled out, as in {example}")
        )
    return found


def _refused(column: Column, state: str) -> EvidenceError:
    """What a variable may be given as, where a word names none of its states."""
    given, states = f"variable {column.name!r} is given as {state!r}", column.states
    if column.cuts:
        return EvidenceError(shortened(f"{given}; say a number ({shown(states)}) or unknown"))
    if len(states) > 2:
        near = hint(state, states, f"say {shown(states, 'or')}, or unknown", 0.6)
        return EvidenceError(f"{given}; its states are {shown(states)}{near}")
    plain = ("yes", "no") if column.kind == YES_NO else ("1", "0") if takes_bits(states) else ()
    return EvidenceError(f"{given}; say {', '.join(dict.fromkeys((*states[::-1], *plain)))} or unknown")
