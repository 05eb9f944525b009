"""Why a row is unlikely: what each of its cells costs, given the others."""

from __future__ import annotations

import html
import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from scipy.special import log_softmax

from sbnet._types import BoolArray, FloatArray, IndexArray, States
from sbnet.errors import ParameterError, printable
from sbnet.inference.solvers.places import Place

if TYPE_CHECKING:
    import pandas
    from matplotlib.axes import Axes

_SHOWN = 12
_HEAD = ("cell", "value", "nats", "more usual")


@dataclass(frozen=True, eq=False, repr=False)
class Explanation:
    """What each observed cell of one row costs given its other cells; the most expensive cell comes first.

    Attributes
    ----------
    row
        The label of the row.
    score : float
        Lower bound on the logarithm of the probability of the row, in nats.
    names : tuple of str
        The columns of the observed cells.
    values : tuple of str
        What the cells hold.
    nats : ndarray
        -ln P(cell | other observed cells), with bounds in the place of likelihoods: how far the score rises if the cell
        is left out.
    usual : tuple of str
        The value that is most probable given the other cells; often the one that is there.
    probability : ndarray
        The probability of that value.
    """

    row: Any
    score: float
    names: tuple[str, ...]
    values: tuple[str, ...]
    nats: FloatArray
    usual: tuple[str, ...]
    probability: FloatArray

    def to_frame(self) -> pandas.DataFrame:
        """A pandas table, one row for each cell."""
        import pandas

        columns = {"value": self.values, "nats": self.nats, "usual": self.usual, "probability": self.probability}
        return pandas.DataFrame(columns, index=pandas.Index(self.names, name="cell"))

    def plot(self, ax: Axes | None = None) -> Axes:
        """Horizontal bars, one for each cell, in nats; orange where another value would be more usual."""
        from sbnet.estimators._bars import draw_cells  # matplotlib is slow to import, and few draw

        return draw_cells(self, ax)

    def _headline(self) -> str:
        return f"Row {self.row}: ln P ≥ {self.score:.4g} nats; what its cells cost, given the others"

    def _lines(self) -> list[tuple[str, str, str, str]]:
        found = [
            (name, value, f"{nats:.2f}", "" if usual == value else f"{usual} ({100 * p:.0f} %)")
            for name, value, nats, usual, p in zip(
                self.names, self.values, self.nats, self.usual, self.probability, strict=True
            )
        ]
        more = len(found) - _SHOWN
        return found if more <= 0 else [*found[:_SHOWN], (f"... {more} more", "", "", "")]

    def __repr__(self) -> str:
        lines = [_HEAD, *self._lines()]
        widths = [max(len(line[k]) for line in lines) for k in range(4)]
        text = [f"  {a:<{widths[0]}}  {b:<{widths[1]}}  {c:>{widths[2]}}  {d}".rstrip() for a, b, c, d in lines]
        return printable("\n".join([self._headline(), *text]))

    def _repr_html_(self) -> str:
        left, right = "<td style='text-align:left'>", "<td style='text-align:right'>"
        rows = "".join(
            "<tr>" + "".join(f"{right if k == 2 else left}{html.escape(text)}</td>" for k, text in enumerate(line))
            for line in self._lines()
        )
        head = "".join(f"<th style='text-align:left'>{text}</th>" for text in _HEAD)
        caption = f"<caption style='text-align:left'><b>{html.escape(self._headline())}</b></caption>"
        return f"<table>{caption}<tr>{head}</tr>{rows}</table>"


@dataclass(frozen=True, eq=False, repr=False)
class Explanations(Sequence[Explanation]):
    """An :class:`Explanation` for each row of a table: ``explanations[0]`` is that of its first row."""

    rows: tuple[Explanation, ...]

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, key: int) -> Explanation: ...
    @overload
    def __getitem__(self, key: slice) -> Explanations: ...
    def __getitem__(self, key: int | slice) -> Explanation | Explanations:
        return Explanations(self.rows[key]) if isinstance(key, slice) else self.rows[operator.index(key)]

    def __iter__(self) -> Iterator[Explanation]:
        return iter(self.rows)

    def to_frame(self) -> pandas.DataFrame:
        """A pandas table, one row for each cell of each row, under the labels of both."""
        import pandas

        return pandas.concat([one.to_frame() for one in self.rows], keys=[one.row for one in self.rows], names=["row"])

    def plot(self, ax: Axes | None = None) -> Axes:
        """Bars for the cells of the row, if there is one only."""
        if len(self.rows) != 1:
            raise ParameterError(f"there are {len(self.rows)} explanations; draw one of them: explanations[0].plot()")
        return self.rows[0].plot(ax)

    def __repr__(self) -> str:
        return "\n".join(map(repr, self.rows[:_SHOWN])) + _more(len(self.rows))

    def _repr_html_(self) -> str:
        return "".join(one._repr_html_() for one in self.rows[:_SHOWN]) + _more(len(self.rows))


def _more(n: int) -> str:
    return f"\n... {n - _SHOWN:,} more rows" if n > _SHOWN else ""


def explain_rows(
    states: States, places: Sequence[Place], score: Callable[[States], FloatArray], labels: Iterable[Any]
) -> Explanations:
    """Score every row with each of its observed cells at each value that the cell could have.

    The sum of the probabilities over the values of a cell is that of the row without the cell, so the values of one
    cell compare as conditional probabilities do; with bounds in their place they still sum to one.
    """
    scores, costs = score(states), [_costs(states, place, score) for place in places]
    found = [_explanation(label, scores[r], costs, r, places) for r, label in enumerate(labels)]
    return Explanations(tuple(found))


@dataclass(frozen=True)
class _Costs:
    """Of one column: which value each row has (-1: none), and the logarithm of the probability of each."""

    value: IndexArray
    logs: FloatArray

    @property
    def seen(self) -> BoolArray:
        return self.value >= 0


def _costs(states: States, place: Place, score: Callable[[States], FloatArray]) -> _Costs:
    value, logs = place.values_of(states), np.zeros((len(states), len(place.codes)))
    rows = np.flatnonzero(value >= 0)
    if len(rows):
        logs[rows] = log_softmax(score(place.each_value(states[rows])).reshape(len(rows), -1), axis=1)
    return _Costs(value, logs)


def _explanation(label: Any, score: float, costs: list[_Costs], r: int, places: Sequence[Place]) -> Explanation:
    cells = [
        (place, int(cost.value[r]), cost.logs[r]) for place, cost in zip(places, costs, strict=True) if cost.seen[r]
    ]
    cells.sort(key=lambda cell: cell[2][cell[1]])  # stable: equal cells keep the order of the columns
    best = [int(logs.argmax()) for _, _, logs in cells]
    return Explanation(
        label,
        float(score),
        tuple(place.name for place, _, _ in cells),
        tuple(place.labels[value] for place, value, _ in cells),
        np.array([-logs[value] for _, value, logs in cells]) + 0.0,
        tuple(place.labels[k] for (place, _, _), k in zip(cells, best, strict=True)),
        np.exp([logs[k] for (_, _, logs), k in zip(cells, best, strict=True)]),
    )
