"""Evidence in any form a user may have it, turned once into one exact internal form.

The internal form is an ``int8`` array, rows by units: 0, 1, or -1 for "not observed".

One pattern or many, and what comes back, is the same everywhere: one pattern is answered by numbers (or by the record
of one), a table by arrays with an axis of rows in front (or by the record of many). A mapping and a list of numbers are
one pattern (:data:`OnePattern`); a data frame and a list of mappings, of lists or of arrays are tables
(:data:`Table`). Of an array only its dimensions tell, which its type does not: functions that take either have three
signatures, and the third promises one of the two.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np

from sbnet import checks
from sbnet._types import HIDDEN, BoolArray, FloatArray, States
from sbnet.errors import EvidenceError, unknown_unit
from sbnet.execution import row_blocks
from sbnet.network import Network
from sbnet.slips import check_kinds

if TYPE_CHECKING:
    import pandas
    from numpy.typing import ArrayLike, NDArray


class Frame(Protocol):
    """A data frame, as far as types are concerned: a table with named columns."""

    @property
    def columns(self) -> Any: ...


OnePattern: TypeAlias = "Mapping[Any, Any] | Sequence[float | None]"
Table: TypeAlias = "Frame | Sequence[Mapping[Any, Any]] | Sequence[Sequence[float | None]] | Sequence[NDArray[Any]]"
EvidenceLike: TypeAlias = "OnePattern | Table | ArrayLike | pandas.Series[Any]"

_BINARY = 'units are binary: 0, 1 or NaN for "not observed"'


def coerce_one(network: Network, evidence: EvidenceLike) -> States:
    """One pattern, shape (1, n_units)."""
    states, _ = coerce(network, evidence)
    if len(states) != 1:
        raise EvidenceError(f"one pattern was expected, but the evidence has {len(states)} rows; use infer_many()")
    return states


def coerce_many(network: Network, evidence: EvidenceLike) -> States:
    """A batch of patterns, shape (n_rows, n_units); a single pattern is refused."""
    states, single = coerce(network, evidence)
    if isinstance(evidence, list | tuple) and not evidence:  # a search that found nothing: a table without rows
        return states[:0]
    if single:
        raise EvidenceError("a table of patterns was expected, but the evidence is one pattern; use infer()")
    return states


def coerce(network: Network, evidence: EvidenceLike) -> tuple[States, bool]:
    """The internal form of `evidence`, and whether it was a single pattern rather than a table."""
    check_kinds(network, evidence)
    if isinstance(evidence, Mapping) and not hasattr(evidence, "toarray"):  # scipy's dok matrices are mappings too
        return _from_mapping(network, evidence)[None, :], True
    pandas = sys.modules.get("pandas")  # a DataFrame can only come from someone who has imported pandas
    if pandas is not None and isinstance(evidence, pandas.DataFrame):
        return _from_frame(network, evidence), False
    if pandas is not None and isinstance(evidence, pandas.Series):
        if any(isinstance(label, str) for label in evidence.index):
            if not evidence.index.is_unique:
                double = evidence.index[evidence.index.duplicated()][0]
                raise EvidenceError(f"evidence names unit {double!r} twice")
            return _from_mapping(network, dict(evidence.items()))[None, :], True
        evidence = evidence.to_numpy(dtype=object, na_value=None)
    if _is_records(evidence):
        rows = [_from_mapping(network, row, f" in row {r}") for r, row in enumerate(evidence)]  # type: ignore[arg-type]
        return np.stack(rows), False
    array = _as_array(evidence)
    if array.ndim not in (1, 2):
        raise EvidenceError(f"evidence has {array.ndim} dimensions; expected one pattern or a table of rows by units")
    table = np.atleast_2d(array)
    width = table.shape[1]
    if width > network.n_units:
        raise EvidenceError(
            f"evidence has {width} columns, but the network has only {network.n_units} units; "
            "rows are patterns, columns are units"
        )
    first = network.n_units - width  # fewer columns than units: the last units, the bottom layer
    states = np.full((len(table), network.n_units), HIDDEN, dtype=np.int8)
    for block in row_blocks(len(table), width):  # a long table must not cost several more of its size on the way
        states[block, first:] = _binary(table[block], network.names[first:], row=block.start)
    return states, array.ndim == 1


def check_means(states: States, means: ArrayLike, single: bool) -> FloatArray:
    """Means for every row and unit, with those of observed units put in."""
    mu = checks.numbers("means", means)
    expected = states.shape[1:] if single else states.shape
    if mu.shape != expected:
        raise EvidenceError(f"means have shape {mu.shape}; expected {expected}, one for every unit")
    mu = np.where(states == HIDDEN, mu, states)
    good: BoolArray = (mu >= 0.0) & (mu <= 1.0)
    if not good.all():
        raise EvidenceError(f"means must lie between 0 and 1; got {mu[~good][0]}")
    return mu


def _is_records(evidence: Any) -> bool:
    return isinstance(evidence, Sequence) and bool(evidence) and all(isinstance(row, Mapping) for row in evidence)


def _from_mapping(network: Network, evidence: Mapping[Any, Any], where: str = "") -> States:
    states = np.full(network.n_units, HIDDEN, dtype=np.int8)
    given: dict[int, Any] = {}
    for key, value in evidence.items():
        i = _unit_index(network, key)
        if i in given:
            raise EvidenceError(
                f"evidence{where} names unit {network.names[i]!r} twice, as {given[i]!r} and as {key!r}"
            )
        given[i] = key
        try:
            states[i] = _binary_object(value)
        except ValueError:
            raise EvidenceError(f"unit {network.names[i]!r} holds {_plain(value)!r}{where}; {_BINARY}") from None
    return states


def _unit_index(network: Network, key: Any) -> int:
    if isinstance(key, str):
        if key not in network._index:
            raise unknown_unit(key, network.names, "evidence")
        return network._index[key]
    if checks.is_whole(key):
        if 0 <= key < network.n_units:
            return int(key)
        raise EvidenceError(f"evidence names unit number {key}; the network has units 0 to {network.n_units - 1}")
    raise EvidenceError(f"evidence names units by name or by number; got {key!r}")


def _from_frame(network: Network, frame: Any) -> States:
    labels = list(frame.columns)
    if not any(isinstance(label, str) for label in labels):  # the default columns 0, 1, …: an array in disguise
        return coerce(network, frame.to_numpy(dtype=object, na_value=None))[0]
    columns = [_unit_index(network, label) for label in labels]
    if len(set(columns)) < len(columns):
        double = next(label for k, label in enumerate(labels) if columns[k] in columns[:k])
        raise EvidenceError(f"the table has two columns for unit {double!r}")
    states = np.full((len(frame), network.n_units), HIDDEN, dtype=np.int8)
    for k, i in enumerate(columns):
        column = frame.iloc[:, k]
        kind = getattr(column.dtype, "kind", "O")
        plain = isinstance(column.dtype, np.dtype) and kind in "biuf"
        values = column.to_numpy() if plain else column.to_numpy(dtype=object, na_value=None)
        states[:, i] = _binary(values[:, None], (network.names[i],), first=k)[:, 0]
    return states


def _as_array(evidence: Any) -> np.ndarray[Any, Any]:
    if isinstance(evidence, np.ma.MaskedArray):
        number = evidence.dtype.kind in "biuf"
        return np.ma.filled(evidence.astype(np.float64 if number else object), np.nan)
    if hasattr(evidence, "toarray"):  # a scipy sparse matrix: absent entries are zeros, as everywhere
        return np.asarray(evidence.toarray())
    if not isinstance(evidence, np.ndarray | Sequence) and not hasattr(evidence, "__array__"):
        raise EvidenceError(f"evidence is a mapping, an array or a table; got {type(evidence).__name__}")
    try:
        array = np.asarray(evidence)
    except ValueError:
        raise EvidenceError("the rows of the evidence differ in length") from None
    if array.dtype.kind in "SU":  # numpy turns [0, "1"] into two strings; keep what was given
        array = np.asarray(evidence, dtype=object)
    return array


def _binary(table: np.ndarray[Any, Any], names: Sequence[str], *, row: int = 0, first: int = 0) -> States:
    """0, 1 and -1 from a 2-D table of any type; `row` and `first` are the numbers of its first row and column."""
    kind = table.dtype.kind
    if kind == "b":
        return table.astype(np.int8)
    if kind in "iu":
        observed = (table == 0) | (table == 1)
        good = observed if kind == "u" else observed | (table == -1)
    elif kind == "f":
        observed = (table == 0) | (table == 1)
        good = observed | np.isnan(table) | (table == -1)
    else:
        return _binary_objects(table, names, row, first)
    if not good.all():
        r, c = (int(k) for k in np.argwhere(~good)[0])
        raise _not_binary(table[r, c], row + r, first + c, names[c])
    return np.where(observed, table, -1).astype(np.int8)


def _binary_objects(table: np.ndarray[Any, Any], names: Sequence[str], row: int, first: int) -> States:
    states = np.full(table.shape, HIDDEN, dtype=np.int8)
    for (r, c), value in np.ndenumerate(table):
        try:
            states[r, c] = _binary_object(value)
        except ValueError:
            raise _not_binary(value, row + r, first + c, names[c]) from None
    return states


def _binary_object(value: Any) -> int:
    """0, 1 or -1 from one Python object; None, NaN, pandas.NA and -1 mean "not observed"."""
    if value is None or value is np.ma.masked or type(value).__name__ in ("NAType", "NaTType"):
        return -1
    if isinstance(value, str | bytes) or np.iscomplexobj(value) or np.ndim(value) != 0:
        raise ValueError
    try:
        number = float(value)
    except TypeError:
        raise ValueError from None
    if np.isnan(number) or number == -1.0:
        return -1
    if number in (0.0, 1.0):
        return int(number)
    raise ValueError


def _not_binary(value: Any, row: int, column: int, name: str) -> EvidenceError:
    return EvidenceError(f"column {column} ({name!r}) holds {_plain(value)!r} in row {row}; {_BINARY}")


def _plain(value: Any) -> Any:
    """A numpy scalar as the Python number that a reader expects in a message."""
    return value.item() if isinstance(value, np.generic) else value
