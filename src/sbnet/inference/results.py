"""What inference gives back: one posterior, or a batch of them."""

from __future__ import annotations

import html
import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import NDArray

from sbnet._types import HIDDEN, BoolArray, FloatArray, IndexArray, States
from sbnet.bounds.lower import Breakdown, bound_terms
from sbnet.errors import ParameterError
from sbnet.inference.asking import broken_down
from sbnet.inference.solution import Solution, Status
from sbnet.network import Network
from sbnet.question import Question

if TYPE_CHECKING:
    import pandas

_SHOWN = 12


@dataclass(frozen=True, eq=False, repr=False)
class Posterior:
    """The answer for one pattern of evidence.

    Attributes
    ----------
    network : Network
    evidence : ndarray of int8, shape (n_units,)
        0, 1, or -1 for a hidden unit.
    solution : Solution
        What the solver answered, for one row; the properties below look it up.
    question : Question or None
        What was asked, if it was more than evidence: interventions or soft evidence.
    """

    network: Network
    evidence: States
    solution: Solution
    question: Question | None = None

    @property
    def means(self) -> FloatArray:
        """Posterior mean of every unit; 0 or 1 for observed ones.

        Units without observed descendants have their prediction, the average of :math:`\\sigma(z)` over their parents.
        """
        return _first(self.solution.means)

    @property
    def bound(self) -> float:
        """Lower bound on ln P(evidence), in nats; NaN for a solver that has none."""
        return float(self.solution.bound[0])

    @property
    def xi(self) -> FloatArray:
        """Parameters of the paper's logarithm terms, between 0 and 1; NaN where a term has no such parameter."""
        return _first(_xi(self.solution))

    @property
    def trace(self) -> FloatArray:
        """The bound at the start and after each sweep; it never falls. Empty for a row of a batch."""
        trace = self.solution.trace
        return np.empty(0) if trace is None else _first(trace)[: self.sweeps + 1]

    @property
    def status(self) -> Status:
        """Why the solver stopped; ``status.value`` says it in words."""
        return _STATUSES[int(self.solution.status[0])]

    @property
    def converged(self) -> bool:
        """Did the solver finish its work?"""
        return self.status.done

    @property
    def sweeps(self) -> int:
        """Number of sweeps done."""
        return int(self.solution.sweeps[0])

    @property
    def error(self) -> FloatArray | None:
        """Monte Carlo error of the means, for a sampler."""
        return None if self.solution.chains is None else _first(self.solution.chains.error)

    @property
    def r_hat(self) -> FloatArray | None:
        """Whether the chains of a sampler agree: near 1 if they do."""
        return None if self.solution.chains is None else _first(self.solution.chains.r_hat)

    def __getitem__(self, unit: str | int) -> float:
        """Posterior mean of a unit."""
        return float(self.means[self.network.index(unit)])

    def breakdown(self) -> Breakdown:
        """The bound by term (energy, logarithm terms, entropy) and by unit."""
        if np.isnan(self.bound):
            raise ParameterError("this posterior has no bound to break down; use the MeanField solver")
        terms = self.solution.parameters
        if terms is None:
            raise ParameterError("this bound is not a sum over units; use the MeanField solver")
        if self.question is not None:
            return broken_down(self.question, self.means, terms)
        parts = bound_terms(self.network, self.evidence[None, :], self.solution.means, terms.xi.copy(), terms.bound)
        return Breakdown(self.network.names, *(part[0] for part in parts))

    def to_frame(self) -> pandas.DataFrame:
        """A pandas table, one row for each unit: observed state, mean, and Monte Carlo error if there is one."""
        import pandas

        observed = np.where(self.evidence == HIDDEN, np.nan, self.evidence)
        columns: dict[str, Any] = {"observed": observed, "mean": self.means}
        if self.error is not None:
            columns |= {"error": self.error, "r_hat": self.r_hat}
        return pandas.DataFrame(columns, index=pandas.Index(self.network.names, name="unit"))

    def _lines(self) -> list[tuple[str, str, str]]:
        hidden = np.flatnonzero(self.evidence == HIDDEN)
        lines = []
        for i in hidden[:_SHOWN]:
            spread = "" if self.error is None else f" ± {self.error[i]:.3f}"
            lines.append((self.network.names[i], f"{self.means[i]:.4f}{spread}", "█" * round(20 * self.means[i])))
        if len(hidden) > _SHOWN:
            lines.append((f"... {len(hidden) - _SHOWN} more", "", ""))
        return lines

    def _headline(self) -> str:
        n_observed, more = int((self.evidence != HIDDEN).sum()), ""
        if self.question is not None:
            n_observed, more = n_observed - self.question.n_held, self.question.text()
        given = f"Posterior given {n_observed} of {self.network.n_units} units{more}: "
        return given + (_no_bound(self.solution) if np.isnan(self.bound) else f"ln P ≥ {self.bound:.6g} nats")

    def __repr__(self) -> str:
        width = max((len(name) for name, _, _ in self._lines()), default=0)
        lines = [f"  {name:<{width}}  {mean}  {bar}".rstrip() for name, mean, bar in self._lines()]
        return "\n".join([self._headline(), *lines, f"  ({self.status.value})"])

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td style='text-align:left'>{html.escape(name)}</td><td>{mean}</td>"
            f"<td style='text-align:left;color:#1b7837'>{bar}</td></tr>"
            for name, mean, bar in self._lines()
        )
        head, note = html.escape(self._headline()), html.escape(self.status.value)
        return (
            f"<table><caption style='text-align:left'><b>{head}</b><br><small>{note}</small></caption>"
            f"<tr><th style='text-align:left'>hidden unit</th><th>mean</th><th></th></tr>{rows}</table>"
        )


@dataclass(frozen=True, eq=False, repr=False)
class PosteriorBatch:
    """The answers for a table of evidence, one for each row; see :class:`Posterior` for what they are.

    ``batch["rain"]`` are the means of a unit in all rows; ``batch[3]`` is the :class:`Posterior` of row 3; a slice, or
    an array of row numbers or of truth values, gives a batch of those rows.

    Attributes
    ----------
    network : Network
    evidence : ndarray of int8, rows by units
    solution : Solution
        What the solver answered.
    index
        The labels of the rows, if the evidence was a pandas table.
    question : Question or None
        What was asked, if it was more than evidence: interventions or soft evidence.
    """

    network: Network
    evidence: States
    solution: Solution
    index: pandas.Index[Any] | None = None
    question: Question | None = None

    @property
    def means(self) -> FloatArray:
        """Posterior means, rows by units."""
        return self.solution.means

    @property
    def bound(self) -> FloatArray:
        """Lower bounds on ln P(evidence), in nats, by row."""
        return self.solution.bound

    @property
    def xi(self) -> FloatArray:
        """Parameters of the paper's logarithm terms, rows by units; NaN where a term has no such parameter."""
        return _xi(self.solution)

    @property
    def sweeps(self) -> IndexArray:
        """Number of sweeps done, by row."""
        return self.solution.sweeps

    @property
    def status(self) -> list[Status]:
        """Why the solver stopped, for each row."""
        return [_STATUSES[code] for code in self.solution.status.tolist()]

    @property
    def converged(self) -> BoolArray:
        """Did the solver finish its work, for each row?"""
        return self.solution.converged

    @property
    def error(self) -> FloatArray | None:
        """Monte Carlo errors of the means, rows by units, for a sampler."""
        return None if self.solution.chains is None else self.solution.chains.error

    @property
    def r_hat(self) -> FloatArray | None:
        """Whether the chains of a sampler agree, rows by units."""
        return None if self.solution.chains is None else self.solution.chains.r_hat

    def __len__(self) -> int:
        return len(self.solution)

    def __iter__(self) -> Iterator[Posterior]:
        return (self[r] for r in range(len(self)))

    @overload
    def __getitem__(self, key: str) -> FloatArray: ...

    @overload
    def __getitem__(self, key: int | np.integer[Any]) -> Posterior: ...

    @overload
    def __getitem__(self, key: slice | Sequence[int] | Sequence[bool] | NDArray[Any]) -> PosteriorBatch: ...

    def __getitem__(
        self, key: str | int | np.integer[Any] | slice | Sequence[int] | Sequence[bool] | NDArray[Any]
    ) -> FloatArray | Posterior | PosteriorBatch:
        if isinstance(key, str):
            return self.means[:, self.network.index(key)]
        if isinstance(key, slice):
            return self._some(key)
        if isinstance(key, np.ndarray | Sequence):
            rows = np.asarray(key)
            return self._some(np.arange(len(self))[rows if rows.size else rows.astype(np.int64)])
        r = range(len(self))[operator.index(key)]
        row = self._some(slice(r, r + 1))
        return Posterior(row.network, row.evidence[0], row.solution, row.question)

    def _some(self, rows: slice | IndexArray) -> PosteriorBatch:
        index = None if self.index is None else self.index[rows]
        question = None if self.question is None else self.question.some(rows)
        return PosteriorBatch(self.network, self.evidence[rows], self.solution.rows(rows), index, question)

    def to_frame(self) -> pandas.DataFrame:
        """A pandas table, one row for each pattern: its bound, whether it settled, and the mean of every unit."""
        import pandas

        means = pandas.DataFrame(self.means, columns=list(self.network.names), index=self.index)
        head = pandas.DataFrame({"bound": self.bound, "converged": self.converged}, index=self.index)
        return pandas.concat([head, means], axis=1)

    def __repr__(self) -> str:
        n = len(self)
        head = f"PosteriorBatch: {n:,} row{'' if n == 1 else 's'} × {self.network.n_units:,} units"
        if n == 0:
            return head
        done = f"{int(self.converged.sum()):,} of {n:,} settled"
        if np.isnan(self.bound).all():
            return f"{head}\n  {_no_bound(self.solution)}; {done}"
        return (
            f"{head}\n  bound: mean {self.bound.mean():.6g}, from {self.bound.min():.6g} to {self.bound.max():.6g} nats"
            f"\n  {done}, {self.sweeps.mean():.1f} sweeps on average"
        )

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(repr(self))}</pre>"


_STATUSES = tuple(Status)


def _first(rows: FloatArray) -> FloatArray:
    one: FloatArray = rows[0]
    return one


def _xi(solution: Solution) -> FloatArray:
    return np.full(solution.means.shape, np.nan) if solution.parameters is None else solution.parameters.xi


def _no_bound(solution: Solution) -> str:
    return "no bound" if solution.chains is None else "no bound, means by sampling"
