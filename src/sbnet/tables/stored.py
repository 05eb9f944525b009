"""The schema of a table in the notes of the network that was learned from it, and so in its file."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from sbnet.errors import FileFormatError
from sbnet.model.network import Network
from sbnet.model.notes import Note
from sbnet.model.roles import HIDDEN_UNITS
from sbnet.model.states import NO_YES, takes_bits
from sbnet.tables.kinds import ORDERED, YES_NO, Column
from sbnet.tables.schema import Schema
from sbnet.tables.words import bit

COLUMNS = "columns"
"""The group of the variables that are columns of a table."""
_TABLE = "table: "


class _Key:
    """Where a network keeps what was read."""


def is_own(text: str) -> bool:
    """Is a note written by this module, for itself and not for people?"""
    return text.startswith(_TABLE)


def with_schema(network: Network, schema: Schema, ids: Sequence[str] = (), ignored: Sequence[str] = ()) -> Network:
    """The network with notes on the columns of its table, of which `ids` name rows; other variables are hidden ones."""
    notes = dict.fromkeys(network.names, Note(group=HIDDEN_UNITS))
    words = json.dumps({"schema": schema.to_dict(), "id": list(ids), "ignore": list(ignored)}, ensure_ascii=False)
    for column in schema.variables:
        own = column.states if network.states[column.name] == NO_YES != column.states else ()
        source = _TABLE + words if column is schema.variables[0] else ""
        notes[column.name] = Note(about=f"{column.kind}: {column.about}", group=COLUMNS, states=own, source=source)
    return network.with_notes(notes)


def schema_of(network: Network) -> Schema | None:
    """How the table was read that a network was learned from; None if it was not learned from one."""
    return _stored(network).schema


def ids_of(network: Network) -> tuple[str, ...]:
    """The columns that named the rows of that table."""
    return _stored(network).ids


def ignored_of(network: Network) -> tuple[str, ...]:
    """The columns of that table that were to be ignored."""
    return _stored(network).ignored


def column_of(network: Network, i: int) -> Column:
    """How a variable of a network is read: as in the table that it was learned from, or by its states.

    For two words, those for no and yes may stand in any language.
    """
    schema = schema_of(network)
    if schema is not None and network.names[i] in schema.names:
        return schema[network.names[i]]
    states = network.states[network.names[i]]
    two = len(states) == 2 and bit(states[0]) in (None, 0) and bit(states[1]) in (None, 1)
    numbers = takes_bits(states)
    cells: tuple[tuple[Any, ...], ...] = tuple((state, k) if numbers else (state,) for k, state in enumerate(states))
    if states == NO_YES:
        cells = ((0,), (1,))  # what is filled into a table
    return Column(network.names[i], YES_NO if two else ORDERED, states, cells=cells)


class _Stored(NamedTuple):
    schema: Schema | None = None
    ids: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()


def _stored(network: Network) -> _Stored:
    if _Key not in network._cache:
        text = next((note.source for note in network.notes.values() if is_own(note.source)), None)
        network._cache[_Key] = _Stored() if text is None else _parsed(network, text)
    found: _Stored = network._cache[_Key]
    return found


def _parsed(network: Network, text: str) -> _Stored:
    try:
        said = json.loads(text.removeprefix(_TABLE))
        if "schema" not in said:  # of a time when columns of a table were units
            return _Stored()
        schema = Schema.from_dict(said["schema"])
        stored = _Stored(schema, tuple(map(str, said["id"])), tuple(map(str, said["ignore"])))
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise FileFormatError(f"the model has a note on its table that cannot be read: {error}") from None
    for column in schema.variables:
        if network.states.get(column.name) != column.states:
            raise FileFormatError(f"the model has a note on column {column.name!r}, and no such variable")
    return stored
