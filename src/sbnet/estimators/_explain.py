"""Why a row is unlikely: what each of its cells costs, given the others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import log_softmax

from sbnet._types import FloatArray, States
from sbnet.errors import ParameterError
from sbnet.inference.solvers.places import Place
from sbnet.questions.printing import Readable, Reading, more

if TYPE_CHECKING:
    import pandas
    from matplotlib.axes import Axes

_SHOWN, _DRAWN = 12, 20
"""Cells or rows that are printed, and cells that are drawn."""
_ODD, _USUAL, _INK = "#D55E00", "#9ecae1", "#222222"


@dataclass(frozen=True, eq=False, repr=False)
class Explanation(Readable):
    """What each observed cell of one row costs given its other cells; the most expensive cell comes first.

    Attributes
    ----------
    row : object
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

    Examples
    --------
    >>> import pandas as pd
    >>> from sbnet.estimators import SBNOutlier
    >>> table = pd.DataFrame({"wings": [1, 0] * 20, "flies": [1, 0] * 19 + [1, 1]})
    >>> one = SBNOutlier(random_state=0).fit(table).explain(table.tail(1))[0]
    >>> one.names[0], one.values[0], one.usual[0]
    ('wings', '0', '1')
    """

    row: Any
    score: float
    names: tuple[str, ...]
    values: tuple[str, ...]
    nats: FloatArray
    usual: tuple[str, ...]
    probability: FloatArray

    def to_frame(self) -> pandas.DataFrame:
        """A pandas table, one row for each cell.

        Returns
        -------
        pandas.DataFrame
        """
        import pandas

        columns = {"value": self.values, "nats": self.nats, "usual": self.usual, "probability": self.probability}
        return pandas.DataFrame(columns, index=pandas.Index(self.names, name="cell"))

    def plot(self, ax: Axes | None = None) -> Axes:
        """Horizontal bars, one for each cell, in nats; orange where another value would be more usual.

        Of a row with more than 20 observed cells only the 20 most expensive are drawn, and the title says so.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to draw; by default in a new figure.

        Returns
        -------
        matplotlib.axes.Axes
        """
        import matplotlib.pyplot as plt  # slow to import, and few draw

        shown = min(len(self.names), _DRAWN)
        if ax is None:
            _, ax = plt.subplots(figsize=(6.4, 1.2 + 0.28 * max(shown, 2)), layout="constrained")
        odd = [value != usual for value, usual in zip(self.values, self.usual, strict=True)][:shown]
        bars = ax.barh(range(shown), self.nats[:shown], color=[_ODD if o else _USUAL for o in odd], height=0.72)
        notes = [f"{self.usual[k]}: {100 * self.probability[k]:.0f} %" if odd[k] else "" for k in range(shown)]
        ax.bar_label(bars, notes, padding=4, fontsize=8, color=_INK)
        cells = list(zip(self.names, self.values, strict=True))[:shown]
        labels = [value if value.startswith(name) else f"{name} = {value}" for name, value in cells]
        ax.set_yticks(range(shown), [text if len(text) <= 40 else text[:39] + "…" for text in labels])
        ax.invert_yaxis()
        ax.margins(x=0.25)
        ax.set_xlim(left=0.0)
        ax.set_xlabel("nats: −ln P(cell | other cells); beside a bar, the more usual value")
        left_out = f", the {shown} most expensive of {len(self.names)} cells" if shown < len(self.names) else ""
        ax.set_title(f"row {self.row}: ln P ≥ {self.score:.4g}{left_out}", fontsize=10, loc="left")
        ax.spines[["top", "right"]].set_visible(False)
        return ax

    def _reading(self) -> Reading:
        cells = zip(self.names, self.values, self.nats, self.usual, self.probability, strict=True)
        lines = [
            [name, value, f"{nats:.2f}", "" if usual == value else f"{usual} ({100 * p:.0f} %)"]
            for name, value, nats, usual, p in cells
        ]
        table = [["cell", "value", "nats", "more usual"], *lines[:_SHOWN], *more(len(lines) - _SHOWN)]
        headline = f"Row {self.row}: ln P ≥ {self.score:.4g} nats; what its cells cost, given the others"
        return Reading(headline, table)


class Explanations(tuple[Explanation, ...]):
    """An :class:`Explanation` for each row of a table: a tuple of them.

    Examples
    --------
    >>> import pandas as pd
    >>> from sbnet.estimators import SBNOutlier
    >>> table = pd.DataFrame({"wings": [1, 0] * 20, "flies": [1, 0] * 19 + [1, 1]})
    >>> outlier = SBNOutlier(random_state=0).fit(table)
    >>> len(outlier.explain(table.tail(3)))
    3
    """

    __slots__ = ()

    def to_frame(self) -> pandas.DataFrame:
        """A pandas table, one row for each cell of each row, under the labels of both.

        Returns
        -------
        pandas.DataFrame
        """
        import pandas

        return pandas.concat([one.to_frame() for one in self], keys=[one.row for one in self], names=["row"])

    def plot(self, ax: Axes | None = None) -> Axes:
        """Bars for the cells of the row, if there is one only.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to draw; by default in a new figure.

        Returns
        -------
        matplotlib.axes.Axes
        """
        if len(self) != 1:
            raise ParameterError(f"there are {len(self)} explanations; draw one of them: explanations[0].plot()")
        return self[0].plot(ax)

    def __repr__(self) -> str:
        return "\n".join(map(repr, self[:_SHOWN])) + self._left_out()

    def _repr_html_(self) -> str:
        return "".join(one._repr_html_() for one in self[:_SHOWN]) + self._left_out()

    def _left_out(self) -> str:
        return f"\n... {len(self) - _SHOWN:,} more rows" if len(self) > _SHOWN else ""


def explain_rows(
    states: States, places: Sequence[Place], score: Callable[[States], FloatArray], labels: Iterable[Any]
) -> Explanations:
    """Score every row with each of its observed cells at each value that the cell could have.

    The sum of the probabilities over the values of a cell is that of the row without the cell, so the values of one
    cell compare as conditional probabilities do; with bounds in their place they still sum to one.
    """
    scores, found = score(states), []
    logs = [np.zeros((len(states), len(place.codes))) for place in places]  # of the probability of each value
    values = [place.values_of(states) for place in places]
    for place, value, log in zip(places, values, logs, strict=True):
        rows = np.flatnonzero(value >= 0)
        if len(rows):
            log[rows] = log_softmax(score(place.each_value(states[rows])).reshape(len(rows), -1), axis=1)
    for r, label in enumerate(labels):
        triples = zip(places, values, logs, strict=True)
        cells = [(place, int(value[r]), log[r]) for place, value, log in triples if value[r] >= 0]
        cells.sort(key=lambda cell: cell[2][cell[1]])  # stable: equal cells keep the order of the columns
        names = tuple(place.name for place, _, _ in cells)
        held = tuple(place.labels[value] for place, value, _ in cells)
        nats = np.array([-log[value] for _, value, log in cells]) + 0.0
        usual = tuple(place.labels[int(log.argmax())] for place, _, log in cells)
        probability = np.exp([log.max() for _, _, log in cells])
        found.append(Explanation(label, float(scores[r]), names, held, nats, usual, probability))
    return Explanations(found)
