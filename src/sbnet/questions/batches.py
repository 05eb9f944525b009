"""Answers for a table, one for each row; some of them by a slice, by their numbers or by truth values."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Concatenate,
    Generic,
    ParamSpec,
    Protocol,
    Self,
    TypeAlias,
    TypeVar,
    overload,
)

import numpy as np
from numpy.typing import NDArray

from sbnet import checks
from sbnet._types import IndexArray
from sbnet.errors import KindError, RowError
from sbnet.model.network import Network
from sbnet.questions.evidence import EvidenceLike, OnePattern, Table
from sbnet.questions.printing import Readable

if TYPE_CHECKING:
    import pandas

R = TypeVar("R")
C = TypeVar("C")
P = ParamSpec("P")
One = TypeVar("One", covariant=True)
Many = TypeVar("Many", covariant=True)

OneRow: TypeAlias = "int | np.integer[Any]"
SomeRows: TypeAlias = "slice | Sequence[int] | Sequence[bool] | NDArray[Any]"


class Answers(Protocol[P, One, Many]):
    """A function of a network and evidence: one pattern is answered by one record, a table by a batch.

    Of an array only its dimensions tell which of the two it is, and those its type does not say.
    """

    @overload
    def __call__(self, network: Network, evidence: OnePattern, *args: P.args, **options: P.kwargs) -> One: ...
    @overload
    def __call__(self, network: Network, evidence: Table, *args: P.args, **options: P.kwargs) -> Many: ...
    @overload
    def __call__(self, network: Network, evidence: EvidenceLike, *args: P.args, **options: P.kwargs) -> One | Many: ...


def answers(
    one: type[One], many: type[Many]
) -> Callable[[Callable[Concatenate[Network, EvidenceLike, P], One | Many]], Answers[P, One, Many]]:
    """Tell type checkers what a function returns for one pattern and for a table; it stays as it is."""

    def unchanged(function: Any) -> Any:
        return function

    return unchanged


class Batch(Readable, Generic[R]):
    """Answers for a table, one for each row.

    ``batch[3]`` is the answer of row 3; a slice, or an array of row numbers or of truth values, gives a batch of those
    rows. A subclass is a dataclass that names the columns among its fields and makes the answer of one row.
    """

    _columns: ClassVar[tuple[str, ...]]

    def __len__(self) -> int:
        return len(getattr(self, self._columns[0]))

    def __iter__(self) -> Iterator[R]:
        return (self._one(r) for r in range(len(self)))

    @overload
    def __getitem__(self, key: OneRow) -> R: ...
    @overload
    def __getitem__(self, key: SomeRows) -> Self: ...
    def __getitem__(self, key: OneRow | SomeRows) -> R | Self:
        if not isinstance(key, slice | Sequence) and not (isinstance(key, np.ndarray) and key.ndim > 0):
            return self._one(one(key, len(self)))
        rows = some(key, len(self))
        return self._some(key if isinstance(key, slice) else rows)  # a slice copies nothing

    def _one(self, r: int) -> R:
        raise NotImplementedError

    def _some(self, rows: slice | IndexArray) -> Self:
        some, numbers = {}, np.arange(len(self))[rows]
        for name in self._columns:
            column = getattr(self, name)
            some[name] = tuple(column[r] for r in numbers) if isinstance(column, tuple) else column[rows]
        return replace(self, **some)  # type: ignore[type-var]

    def to_frame(self) -> pandas.DataFrame:
        """A pandas table, one row for each pattern."""
        return framed({name: getattr(self, name) for name in self._columns})


class NamedBatch(Batch[R], Generic[R, C]):
    """Answers for a table that have a number for each variable: ``batch["rain"]`` are those of a variable by row."""

    @overload
    def __getitem__(self, key: str) -> C: ...
    @overload
    def __getitem__(self, key: OneRow) -> R: ...
    @overload
    def __getitem__(self, key: SomeRows) -> Self: ...
    def __getitem__(self, key: str | OneRow | SomeRows) -> C | R | Self:
        return self._unit(key) if isinstance(key, str) else super().__getitem__(key)

    def _unit(self, name: str) -> C:
        raise NotImplementedError


def framed(
    head: Mapping[str, Any],
    table: NDArray[Any] | None = None,
    names: Sequence[str] = (),
    *,
    index: Any = None,
    units: Sequence[str] | None = None,
) -> pandas.DataFrame:
    """A pandas table with these columns, and after them those of a table; names may occur twice. Rows may be units."""
    pd = checks.extra("pandas", "to_frame()")
    index = index if units is None else pd.Index(units, name="unit")
    frame: pandas.DataFrame = pd.DataFrame(head, index=index)
    if table is None:
        return frame
    whole: pandas.DataFrame = pd.concat([frame, pd.DataFrame(table, columns=list(names), index=index)], axis=1)
    return whole


def some(key: Any, n: int) -> IndexArray:
    """The numbers of the rows that are meant, of `n`."""
    try:
        if isinstance(key, slice):
            return np.arange(n)[key]
        rows = np.asarray(key)
    except (TypeError, ValueError):
        raise _no_rows(key) from None
    if rows.ndim != 1 or (rows.size and rows.dtype.kind not in "iub"):
        raise _no_rows(key)
    try:
        found: IndexArray = np.arange(n)[rows if rows.size else rows.astype(np.int64)]
    except IndexError as error:
        raise RowError(f"the batch has {n} rows; {error}") from None
    return found


def _no_rows(key: Any) -> KindError:
    return KindError(f"rows are a slice, their numbers or truth values; got {checks.shown(key)}")


def one(key: Any, n: int) -> int:
    """The number of the row that is meant, of `n`, counted from 0."""
    try:
        row = operator.index(key)
    except TypeError:
        raise KindError(f"a row is given by its number, a variable by its name; got {checks.shown(key)}") from None
    if not -n <= row < n:
        known = f"it has rows 0 to {n - 1}" if n else "it is empty"
        raise RowError(f"there is no row {checks.shown(row)} in this batch; {known}")
    return row % n
