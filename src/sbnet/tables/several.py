"""Variables of several states: a unit for each, of which one is on. Notes say which units these are, not names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sbnet import checks
from sbnet.errors import EvidenceError
from sbnet.model.names import spelled
from sbnet.model.network import Network
from sbnet.tables import frames, words

_SHOWN = 8


class _Key:
    """Where a network keeps what was found."""


def several(network: Network) -> Mapping[str, Mapping[str, int]]:
    """The units of each variable of several states, by number: ``{"sky": {"clear": 1, "rain": 2}}``."""
    known: dict[str, dict[str, int]] | None = network._cache.get(_Key)
    if known is None:
        known = {}
        for i, name in enumerate(network.names):
            note = network.notes[name]
            if note.variable:
                known.setdefault(note.variable, {})[note.state] = i
        network._cache[_Key] = known
    return known


def is_variable(network: Network, key: Any) -> bool:
    """Whether this names a variable of several states, and no unit."""
    return isinstance(key, str) and key not in network._index and _spelled(network, key) in several(network)


def _spelled(network: Network, key: str) -> str:
    return key if key.isascii() else spelled(key, several(network))


def spread(network: Network, row: Mapping[Any, Any], gone: tuple[Any, ...]) -> Mapping[Any, Any]:
    """Evidence with such a variable, as in {"sky": "clear"}, spread over all of its units."""
    named = [key for key in row if is_variable(network, key)]
    if not named:
        return row
    more = {key: value for key, value in row.items() if key not in named}
    numbers = {_number(network, key): key for key in more}
    for variable in named:
        units = several(network)[_spelled(network, variable)]
        state = _state(variable, row[variable], tuple(units), gone)
        for word, unit in units.items() if state is not None else ():
            on, name = int(word == state), network.names[unit]
            key = numbers.get(unit)
            cell = None if key is None else frames.one_cell(name, more[key], gone)
            if cell is not None and words.bit(cell) != on:
                raise EvidenceError(
                    f"evidence contradicts itself: {variable!r} is {state!r}, so that unit {name!r} is {on}, and it is "
                    f"given as {frames.brief(more[key])}; leave one of them out"
                )
            more[name if key is None else key] = on
    return more


def _number(network: Network, key: Any) -> Any:
    """The number of a unit; anything else as it is, for others to refuse."""
    if checks.is_whole(key):
        return int(key)
    return network._index.get(key) if isinstance(key, str) else None


def _state(variable: str, value: Any, states: tuple[str, ...], gone: tuple[Any, ...]) -> str | None:
    """The state that a value names; None if it is missing. A whole number is the state that is called so."""
    if isinstance(value, str) and value in states:
        return value
    cell = frames.one_cell(variable, value, gone)
    word = None if cell is None else words.word(cell)
    if word is not None:
        word = spelled(word, states)
    if word is not None and word not in states:
        listed = ", ".join(states[:_SHOWN]) + (", …" if len(states) > _SHOWN else "")
        raise EvidenceError(f"evidence says that {variable!r} is {frames.brief(value)}; its states are {listed}")
    return word
