"""What inference gives back: one posterior, or a batch of them."""

from __future__ import annotations

import html
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any

import numpy as np

from sbnet._types import HIDDEN, NO_SUM, BoolArray, FloatArray, IndexArray, Settings, States
from sbnet.bounds.lower import Breakdown, bound_terms
from sbnet.errors import ParameterError
from sbnet.network import Network

if TYPE_CHECKING:
    import pandas

_SHOWN = 12


class Status(Enum):
    """Why a solver stopped; the value says it in words."""

    CONVERGED = "the bound rose by less than `tol` in the last sweep"
    MAX_SWEEPS = "`max_sweeps` was reached before the bound settled; it is still valid"
    MIXED = "the chains agree: R-hat is below 1.05 for every unit"
    NOT_MIXED = "the chains disagree: R-hat is 1.05 or more for some unit; draw more samples"


_DONE = {Status.CONVERGED, Status.MIXED}


def status_of(settings: Settings | None, converged: bool) -> Status:
    """The status of a row; a solver without settings for a bound is a sampler."""
    if settings is None:
        return Status.MIXED if converged else Status.NOT_MIXED
    return Status.CONVERGED if converged else Status.MAX_SWEEPS


@dataclass(frozen=True, eq=False)
class Posterior:
    """The answer for one pattern of evidence.

    Attributes
    ----------
    network : Network
    evidence : ndarray of int8, shape (n_units,)
        0, 1, or -1 for a hidden unit.
    means : ndarray of shape (n_units,)
        Posterior mean of every unit; 0 or 1 for observed ones. Units without observed descendants have their
        prediction, the average of :math:`\\sigma(z)` over their parents.
    bound : float
        Lower bound on ln P(evidence), in nats; NaN for a solver that has none.
    xi : ndarray of shape (n_units,)
        Parameters of the paper's logarithm terms, between 0 and 1; one half where a term has no such parameter.
    trace : ndarray
        The bound at the start and after each sweep; it never falls. Empty for a row of a batch.
    status : Status
        Why the solver stopped; ``status.value`` says it in words.
    sweeps : int
        Number of sweeps done.
    error, r_hat : ndarray of shape (n_units,) or None
        Monte Carlo error of the means and R-hat, for a sampler.
    """

    network: Network
    evidence: States
    means: FloatArray
    bound: float
    xi: FloatArray
    trace: FloatArray
    status: Status
    sweeps: int
    settings: Settings | None = field(default=None, repr=False)
    error: FloatArray | None = None
    r_hat: FloatArray | None = None

    @property
    def converged(self) -> bool:
        """Did the solver finish its work?"""
        return self.status in _DONE

    def __getitem__(self, unit: str | int) -> float:
        """Posterior mean of a unit."""
        return float(self.means[self.network.index(unit)])

    def breakdown(self) -> Breakdown:
        """The bound by term (energy, logarithm terms, entropy) and by unit."""
        if self.settings is None:
            raise ParameterError("this posterior has no bound to break down; use the MeanField solver")
        if self.settings.log_term == NO_SUM:
            raise ParameterError("the bound of a mixture is not a sum over units; use the MeanField solver")
        parts = bound_terms(
            self.network, self.evidence[None, :], self.means[None, :], self.xi[None, :].copy(), self.settings
        )
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
        n_observed = int((self.evidence != HIDDEN).sum())
        given = f"Posterior given {n_observed} of {self.network.n_units} units: "
        return given + ("no bound, means by sampling" if np.isnan(self.bound) else f"ln P ≥ {self.bound:.6g} nats")

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


@dataclass(frozen=True, eq=False)
class PosteriorBatch:
    """The answers for a table of evidence, one for each row; see :class:`Posterior` for the attributes.

    ``batch["rain"]`` are the means of a unit in all rows; ``batch[3]`` is the :class:`Posterior` of row 3.
    """

    network: Network
    evidence: States
    means: FloatArray
    bound: FloatArray
    xi: FloatArray
    sweeps: IndexArray
    converged: BoolArray
    settings: Settings | None = field(default=None, repr=False)
    error: FloatArray | None = None
    r_hat: FloatArray | None = None
    index: Any = None

    @property
    def status(self) -> list[Status]:
        """Why the solver stopped, for each row."""
        return [status_of(self.settings, ok) for ok in self.converged]

    def __len__(self) -> int:
        return len(self.bound)

    def __iter__(self) -> Iterator[Posterior]:
        return (self[r] for r in range(len(self)))

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, str):
            return self.means[:, self.network.index(key)]
        r = range(len(self))[key]
        return Posterior(
            self.network,
            self.evidence[r],
            self.means[r],
            float(self.bound[r]),
            self.xi[r],
            np.array([]),
            status_of(self.settings, bool(self.converged[r])),
            int(self.sweeps[r]),
            self.settings,
            None if self.error is None else self.error[r],
            None if self.r_hat is None else self.r_hat[r],
        )

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
        if self.settings is None:
            return f"{head}\n  no bound, means by sampling; {done}"
        return (
            f"{head}\n  bound: mean {self.bound.mean():.6g}, from {self.bound.min():.6g} to {self.bound.max():.6g} nats"
            f"\n  {done}, {self.sweeps.mean():.1f} sweeps on average"
        )

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(repr(self))}</pre>"
