"""What a model remembers of the table that it was learned from: how its columns are read, what marks missing cells."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from sbnet._types import IndexArray
from sbnet.errors import FileFormatError
from sbnet.model.network import Network
from sbnet.model.notes import Note
from sbnet.questions.evidence import words_of
from sbnet.tables.codings import NOT_CHOSEN, Coding, word

if TYPE_CHECKING:  # these bring scikit-learn along, which takes a second; not every command needs them
    from sbnet.estimators.codings import ColumnCoding, Reader

_COLUMN, _TABLE = "column: ", "table: "
COLUMNS = "columns"
"""The group of the units of a learned model that stand for its table."""


def is_own(text: str) -> bool:
    """Is a note written by this module, for itself and not for people?"""
    return text.startswith((_COLUMN, _TABLE))


def coding_of(network: Network, name: str) -> Coding | None:
    """What the model calls the two states of a unit."""
    states = words_of(network, network.index(name))
    return Coding(*states) if len(states) == 2 else None


def units_of(network: Network, column: ColumnCoding) -> IndexArray:
    """The numbers of the units of an encoded column."""
    return np.array([network.index(unit) for unit in column.units], np.int64)


# --- columns ----------------------------------------------------------------------------------------------------------


def notes_on(encoder: Any) -> dict[str, Note]:
    """Which units are columns of an encoded table, and, beside the first unit of each, how a later table is read."""
    from sbnet.estimators.codings import Chosen, Known, Thresholds

    notes = {unit: Note(group=COLUMNS) for column in encoder.columns_ for unit in column.units}
    how = dict[str, Any]()
    for column, values in zip(encoder.columns_, encoder.values_, strict=True):
        match column.reader:
            case Chosen(value=value):
                how = {"chosen": value}
            case Known(values=known):
                how = {"values": known}
            case Thresholds(cuts=cuts):
                how = {"cuts": cuts}
        if not column.units:
            continue
        labels = enumerate(column.labels)
        fill = ["" if label == NOT_CHOSEN else word(values[k]) for k, label in labels]
        words = {"name": column.name, "kind": column.kind.value, "units": column.units, "codes": column.codes.tolist()}
        notes[column.units[0]] = Note(
            about=repr(column), group=COLUMNS, note=_COLUMN + json.dumps({**words, **how, "fill": fill})
        )
    return notes


def stored_columns(network: Network) -> dict[str, ColumnCoding]:
    """The encoded columns that a model was learned from; the labels are what a missing cell is filled with."""
    texts = [note.note for note in network.notes.values() if note.note.startswith(_COLUMN)]
    return {column.name: column for column in map(_parsed, texts)}


def _parsed(text: str) -> ColumnCoding:
    from sbnet.estimators.codings import Chosen, ColumnCoding, Kind, Known, Thresholds

    try:
        words = json.loads(text.removeprefix(_COLUMN))
        reader: Reader = Thresholds(tuple(words.get("cuts", ())))
        if "chosen" in words:
            reader = Chosen(words["chosen"])
        elif "values" in words:
            reader = Known(tuple(words["values"]))
        units, codes = tuple(words["units"]), np.array(words["codes"], np.int8).reshape(-1, len(words["units"]))
        none = np.empty(0)
        fill = tuple(map(str, words["fill"]))
        return ColumnCoding(words["name"], Kind(words["kind"]), fill, units, codes, reader, none.astype(np.int64), none)
    except (ValueError, KeyError, TypeError) as error:
        raise FileFormatError(f"the model has a note on a column that cannot be read: {error}") from None


# --- the table --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ReadingOptions:
    """How a table was read: what marks missing cells, columns that name rows, columns that were left alone."""

    missing: tuple[str, ...] = ()
    id: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()


def with_reading_options(network: Network, options: ReadingOptions) -> Network:
    """The network with a note on how its table was read, beside the first of its columns."""
    if options == ReadingOptions():
        return network
    first = next(name for name in network.names if network.notes[name].group == COLUMNS)
    source = _TABLE + json.dumps({key: words for key, words in asdict(options).items() if words})
    return network.with_notes({first: replace(network.notes[first], source=source)})


def reading_options(network: Network) -> ReadingOptions:
    """How the table was read that a model was learned from; nothing, if it was not."""
    text = next((note.source for note in network.notes.values() if note.source.startswith(_TABLE)), None)
    if text is None:
        return ReadingOptions()
    try:
        said = json.loads(text.removeprefix(_TABLE))
        return ReadingOptions(**{key: tuple(map(str, words)) for key, words in said.items()})
    except (ValueError, TypeError, AttributeError) as error:
        raise FileFormatError(f"the model has a note on its table that cannot be read: {error}") from None
