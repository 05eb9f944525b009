"""What an experiment hands back: tables beside the paper's numbers, figures, and every number behind them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure as Canvas
from numpy.typing import ArrayLike

NOTHING = "–"


def _silent(message: str) -> None:
    """Say nothing."""


@dataclass(frozen=True)
class Settings:
    """How to run the experiments.

    Attributes
    ----------
    seeds : int
        Repetitions of whatever depends on a seed, with the seeds 0, 1, 2, …
    quick : bool
        Tiny versions, to see that everything runs; their numbers mean nothing.
    jobs : int
        Processes to work in.
    say : callable
        Told what is being done, in a few words.

    Examples
    --------
    >>> from sbnet.paper import Settings
    >>> Settings(quick=True).size(full=500, quick=20)
    20
    """

    seeds: int = 5
    quick: bool = False
    jobs: int = 2
    say: Callable[[str], None] = field(default=_silent, compare=False)

    @property
    def quiet(self) -> Settings:
        """Settings without `say`, which can be sent to other processes."""
        return replace(self, say=_silent)

    def size(self, full: int, quick: int) -> int:
        """The size, an int, of a full run, or that of a quick one."""
        return quick if self.quick else full


class Row(NamedTuple):
    """A number of ours beside the paper's; `spread` is how far apart the two may be by sampling alone, about two
    standard errors of their difference. `test` is False where agreement would prove nothing, or was counted before."""

    label: str
    ours: float
    spread: float | None = None
    paper: float | None = None
    test: bool = True

    @property
    def agree(self) -> bool | None:
        """Do the two agree within the spread? None if the paper has no such number, or if it is no test."""
        if self.paper is None or self.spread is None or not self.test:
            return None
        return abs(self.ours - self.paper) <= self.spread + 1e-12


@dataclass(frozen=True)
class Table:
    """A table of text; `best` marks lines to be set in bold, `rows` are what :func:`compared` was given."""

    title: str
    header: tuple[str, ...]
    cells: tuple[tuple[str, ...], ...]
    note: str = ""
    best: frozenset[int] = frozenset()
    rows: tuple[Row, ...] = ()


def compared(title: str, rows: Sequence[Row], digits: str = ".3f", note: str = "") -> Table:
    """Our numbers beside the paper's, in the columns that have anything to show."""
    header = ["", "ours"]
    header += ["±"] if any(row.spread is not None for row in rows) else []
    header += ["paper", "agree"] if any(row.paper is not None for row in rows) else []
    agree = {True: "yes", False: "no", None: NOTHING}
    cells = []
    for row in rows:
        numbers = {"ours": row.ours, "±": row.spread, "paper": row.paper}
        texts = {name: NOTHING if value is None else signed(value, digits) for name, value in numbers.items()}
        texts |= {"": row.label, "agree": agree[row.agree]}
        cells.append(tuple(texts[name] for name in header))
    return Table(title, tuple(header), tuple(cells), note, rows=tuple(rows))


@dataclass(frozen=True)
class Picture:
    """A figure as a function that draws it.

    Attributes
    ----------
    title : str
        The caption.
    draw : callable
        Draws on an empty matplotlib figure of the given `size`, in inches.
    alt : str
        What there is to see, for those who cannot.

    All take the colours of the page, light or dark: see :mod:`sbnet.paper.drawing`.
    """

    title: str
    draw: Callable[[Canvas], None]
    alt: str
    size: tuple[float, float] = (4.4, 3.0)


@dataclass(frozen=True)
class Experiment:
    """One experiment, done.

    Attributes
    ----------
    title : str
    paper : str
        What the paper says.
    found : str
        What was done here, and what came out; an empty line begins a new paragraph.
    tables : tuple of Table
    pictures : tuple of Picture
    numbers : mapping
        Everything behind the tables and pictures that is worth keeping; goes to ``results.json``.
    name : str
        That of its command, filled in by the one who runs it.
    seconds : float
        Wall-clock time, filled in likewise.

    Examples
    --------
    >>> from sbnet.paper import Experiment
    >>> Experiment("Coins", paper="One half.", found="0.49 of 1,000.").title
    'Coins'
    """

    title: str
    paper: str
    found: str
    tables: tuple[Table, ...] = ()
    pictures: tuple[Picture, ...] = ()
    numbers: Mapping[str, Any] = field(default_factory=dict)
    name: str = ""
    seconds: float = 0.0

    @property
    def verdict(self) -> tuple[int, int]:
        """How many rows agree with the paper, and how many could."""
        judged = [row.agree for table in self.tables for row in table.rows]
        return judged.count(True), len(judged) - judged.count(None)


def signed(number: float, digits: str) -> str:
    """A number as text, with a minus sign that is as wide as a plus."""
    return f"{number:{digits}}".replace("-", "\N{MINUS SIGN}")


def tolerance(over_seeds: ArrayLike, sampling: float = 0.0, printed: float = 0.0) -> float:
    """Two standard errors of the difference between a mean over seeds and one published run.

    `sampling` is the standard error that comes from another choice of data, `printed` half a unit of the last digit
    that the paper prints.
    """
    values = np.asarray(over_seeds, dtype=np.float64)
    spread = values.std(ddof=1) if values.size > 1 else 0.0
    return float(2.0 * np.hypot(spread * np.sqrt(1.0 + 1.0 / values.size), sampling) + printed)
