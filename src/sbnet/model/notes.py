"""What people write beside a unit: what it is about, which group it belongs to, where its numbers come from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import Any

from sbnet.errors import NetworkError, hint


@dataclass(frozen=True, slots=True)
class Note:
    """What people write beside a variable. None of it changes an answer; words in evidence are read by it.

    Attributes
    ----------
    about : str
        What the variable stands for, in words: "influenza".
    group : str
        A free word for variables that belong together; "causes" and "findings" are usual.
    source : str
        Where its numbers come from.
    note : str
        Anything else.
    states : tuple of str
        What the states 0 and 1 are called, as in ("absent", "present"); empty for 0 and 1 themselves. They are those of
        :attr:`Network.states`, which also has those of variables with more than two.

    Examples
    --------
    >>> import sbnet as sb
    >>> net = sb.from_edges({("flu", "fever"): 2.0}).with_notes({"flu": sb.Note(about="influenza", group="causes")})
    >>> net.notes["flu"].about
    'influenza'
    """

    about: str = ""
    group: str = ""
    source: str = ""
    note: str = ""
    states: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for key in WORDS:
            if not isinstance(getattr(self, key), str):
                raise NetworkError(f"{key} is {getattr(self, key)!r}; give a text")
        object.__setattr__(self, "states", _states(self.states))

    def __bool__(self) -> bool:
        """Is anything written here?"""
        return self != NOTHING


WORDS = tuple(field.name for field in fields(Note) if field.name != "states")
"""The parts of a note that are texts."""
GONE = ("variable", "state")
"""Parts of notes in older files, of units that stood for one state of a variable: they are passed over."""


def _states(states: Any) -> tuple[str, ...]:
    listed = isinstance(states, Sequence) and not isinstance(states, str | bytes)
    names = tuple(states) if listed else None
    if names is None or len(names) not in (0, 2) or not all(isinstance(name, str) and name for name in names):
        raise NetworkError(f"states is {states!r}; give what 0 and 1 are called, such as ['absent', 'present']")
    if len(set(names)) < len(names):
        raise NetworkError(f"both states are called {names[0]!r}; their names must differ")
    return names


NOTHING = Note()


def notes_of(names: Sequence[str], given: Any) -> Mapping[str, Note]:
    """A note for each unit, read-only; those that nobody wrote are empty."""
    notes = dict.fromkeys(names, NOTHING)
    if given is None:
        return MappingProxyType(notes)
    if not isinstance(given, Mapping):
        raise NetworkError(f"notes is {given!r}; give a mapping from names to Note(about=…)")
    for name, note in given.items():
        if note is NOTHING:  # so that units can be renamed as long as nothing is written beside them
            continue
        if name not in notes:
            raise NetworkError(f"a note is about {name!r}, which is not a variable{hint(name, names)}")
        if not isinstance(note, Note):
            raise NetworkError(f"the note of {name!r} is {note!r}; write Note(about=…)")
        notes[name] = note
    return MappingProxyType(notes)


def as_words(note: Note) -> dict[str, Any]:
    """What is written in a note, by key, for files."""
    parts = {key: getattr(note, key) for key in WORDS} | {"states": list(note.states)}
    return {key: value for key, value in parts.items() if value}


def written(notes: Mapping[str, Note]) -> dict[str, Note]:
    """The notes that are not empty."""
    return {name: note for name, note in notes.items() if note is not NOTHING and note}
