"""What a certificate holds, and how it reads."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from sbnet._types import FloatArray, States
from sbnet.errors import UnknownUnitError, unknown_unit
from sbnet.exact.prior import MOST_EDGES, best_prior
from sbnet.model.network import Network
from sbnet.questions import printing
from sbnet.questions.batches import Batch, framed
from sbnet.questions.by_state import columns_at, frame_columns
from sbnet.questions.printing import Readable, Reading, Span

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True, repr=False)
class Certificate(Readable):
    r"""An interval that holds ln P(evidence), in nats, and where it comes from.

    Attributes
    ----------
    lower, upper : float
        ln P(evidence) lies between them: by theorems for the two bounds, rounding included.
    estimate, error : float
        An estimate of ln P(evidence), from sampling, and its standard error; not proven, but never outside the
        interval. The value itself, and zero, if it is known.
    exact : bool
        Are both bounds ln P itself, but for rounding, because all states could be summed?
    lower_from, upper_from : str
        How the two bounds were obtained; why the evidence is impossible, if it is.
    mean_field : float
        The lower bound of mean field theory alone, :class:`sbnet.MeanField`; NaN where it was not sought, since
        variables with more than two states, or tables, were eliminated.
    logarithm : float
        How much lower that would be with the paper's logarithm terms, eq. (20), at the same means. Known, or NaN too.
    effort : str
    proven : bool
        Is rounding counted, in ball arithmetic? Otherwise there is a margin for the worst that it can do.
    interval : tuple of float
        ln P(evidence) lies between these two with a probability of at least `confidence`: from samples, and inside the
        certain interval. The certain bounds themselves where no confidence below one was asked for, or all states were
        summed.
    confidence : float
        How sure that is; one without samples.
    samples : int
        How many were drawn for it.

    Examples
    --------
    >>> import sbnet as sb
    >>> net = sb.from_edges({("rain", "wet"): 2.0, ("sprinkler", "wet"): 1.5}, bias={"rain": -1.0})
    >>> one = sb.certify(net, {"wet": 1})
    >>> one.exact, bool(one.lower <= sb.log_likelihood(net, {"wet": 1}) <= one.upper)
    (True, True)
    """

    lower: float
    upper: float
    estimate: float
    error: float
    exact: bool
    lower_from: str
    upper_from: str
    mean_field: float
    logarithm: float
    effort: str
    proven: bool
    interval: tuple[float, float]
    confidence: float = 1.0
    samples: int = 0

    @property
    def gap(self) -> float:
        """The length of the interval; zero where both bounds are minus infinity."""
        return 0.0 if self.upper == self.lower else self.upper - self.lower

    @property
    def factorisation(self) -> tuple[float, float]:
        r"""What the independence of mean field theory costs lies between these two.

        That is :math:`\mathrm{KL}(Q \| P) = \ln P(V) - L`, and ln P(V) is known to lie between the bounds. The slack of
        the exact logarithm terms, about 1e-7 for a variable, is in it.
        """
        if self.mean_field == -math.inf:
            return 0.0, 0.0
        return max(self.lower - self.mean_field, 0.0), max(self.upper - self.mean_field, 0.0)

    def _sentences(self) -> list[tuple[str, str]]:
        """A label and a text for each line but the first."""
        if self.upper == -math.inf:
            return []
        low, high = self.factorisation
        cost, rounding = max(self.estimate - self.mean_field, 0.0), ("rounding", _ROUNDING[self.proven])
        lines = []
        if not self.exact:
            if self.lower > -700.0:
                p_low, p_high = _three_digits(math.exp(self.lower), -1), _three_digits(math.exp(self.upper), 1)
                lines.append(("that is", f"P(evidence) between {p_low:.3g} and {p_high:.3g}"))
            lines += [("lower bound", self.lower_from), ("upper bound", self.upper_from)]
            if self.confidence < 1.0:
                (left, right), drawn = self.interval, f"{self.samples:,} samples"
                held = f"with that confidence, between {_outward(left, right)} ({right - left:.2g} nats); {drawn}"
                lines.append((f"{100 * self.confidence:.12g} %", held))
            lines.append(("estimate", f"{self.estimate:.6g} ± {self.error:.2g}, from samples (not proven)"))
        if math.isnan(self.mean_field):
            return [*lines, rounding]
        spread = f"{cost:.3g}" if self.exact else f"{low:.3g} to {high:.3g} nats, about {cost:.3g}"
        lines.append(("mean field", f"{self.mean_field:.6g}; a factorial posterior costs {spread}"))
        if math.isnan(self.logarithm):  # variables with more than two states
            return [*lines, rounding]
        lines.append(("", f"the paper's logarithm terms would cost {self.logarithm:.3g} more"))
        return [*lines, rounding]

    def _headline(self) -> str:
        gap = self.gap
        if self.upper == -math.inf:
            return f"ln P(evidence) = -inf: {self.upper_from}"
        if self.exact:
            digits = _digits(gap) if self.proven else 4
            return f"ln P(evidence) = {self.estimate:.{digits}f} ({self.lower_from})"
        ratio = f"{100 * math.expm1(gap):.2g} %" if gap < 0.5 else f"a factor of {math.exp(min(gap, 700.0)):,.3g}"
        return (
            f"ln P(evidence) lies between {_outward(self.lower, self.upper)} "
            f"(gap {gap:.2g} nats, so P is known within {ratio})"
        )

    def _reading(self) -> Reading:
        sentences = self._sentences()
        width = max((len(label) + 2 for label, _ in sentences), default=0)
        lines = [f"{label + ':' if label else '':<{width}}{text}" for label, text in sentences]
        return Reading(self._headline(), summary=lines)


@dataclass(frozen=True, repr=False)
class Certificates(Batch[Certificate]):
    """The certificates of a table, one for each row: ``certificates[3]``, ``certificates.lower``.

    A slice, or an array of row numbers or of truth values, gives the certificates of those rows.

    Attributes
    ----------
    rows : tuple of Certificate

    Examples
    --------
    >>> import sbnet as sb
    >>> net = sb.from_edges({("rain", "wet"): 2.0, ("sprinkler", "wet"): 1.5}, bias={"rain": -1.0})
    >>> some = sb.certify(net, [{"wet": 1}, {"wet": 0}])
    >>> len(some), some.lower.round(3)
    (2, array([-0.314, -1.311]))
    """

    rows: tuple[Certificate, ...]

    _columns = ("rows",)

    def _one(self, r: int) -> Certificate:
        return self.rows[r]

    def _column(self, name: str) -> FloatArray:
        return np.array([getattr(row, name) for row in self.rows], dtype=np.float64)

    @property
    def lower(self) -> FloatArray:
        """The lower bounds."""
        return self._column("lower")

    @property
    def upper(self) -> FloatArray:
        """The upper bounds."""
        return self._column("upper")

    @property
    def interval(self) -> tuple[FloatArray, FloatArray]:
        """The bounds that hold with confidence, in each row: all lower ones, and all upper ones."""
        low, high = self._column("interval").reshape(-1, 2).T.copy()
        return low, high

    @property
    def estimate(self) -> FloatArray:
        """The estimates."""
        return self._column("estimate")

    @property
    def gap(self) -> FloatArray:
        """The lengths of the intervals."""
        return self._column("gap")

    def to_frame(self) -> pandas.DataFrame:
        """A pandas table, one row for each pattern.

        Returns
        -------
        pandas.DataFrame
        """
        names = ("lower", "upper", "estimate", "error", "gap", "mean_field", "logarithm")
        low, high = self.interval
        exact = [row.exact for row in self.rows]
        return framed({name: self._column(name) for name in names} | {"low": low, "high": high, "exact": exact})

    def _reading(self) -> Reading:
        n, possible = len(self), self[self.upper > -np.inf]
        head, impossible = f"Certificates: {printing.rows(n)}", f"{n - len(possible):,} impossible"
        if not len(possible):
            return Reading(head, summary=[impossible] * (n > 0))
        exact = sum(row.exact for row in possible)
        total = f"mean ln P between {possible.lower.mean():.6g} and {possible.upper.mean():.6g} nats"
        gaps = f"gap {possible.gap.mean():.3g} on average, {possible.gap.max():.3g} at most; {exact:,} exact"
        lines = [f"{total}; {gaps}" + (f"; {impossible}" if len(possible) < n else "")]
        if min(row.confidence for row in self.rows) < 1.0:
            width = np.subtract(*possible.interval[::-1])
            sure = f"with {100 * self.rows[0].confidence:.12g} % confidence in each row"
            lines.append(f"{sure}: width {width.mean():.3g} on average, {width.max():.3g} at most")
        return Reading(head, summary=lines)


_ROUNDING = {
    True: "covered, by ball arithmetic",
    False: "covered, by a margin for the worst; proven=True counts it in ball arithmetic",
}


Interval: TypeAlias = "tuple[float, float] | dict[str, tuple[float, float]]"
"""Two bounds, or for a variable with more than two states two for each state."""


class PosteriorIntervals(Readable, dict[str, Any]):
    """An interval that holds P(S_i = 1 | evidence), for each variable asked for: a mapping from names to two bounds.

    ``intervals["rain"]`` are the bounds for a variable; ``intervals["fever"]["high"]`` for a state of a variable that
    has more than two. It prints first the variables whose interval is furthest from the prior.

    Attributes
    ----------
    network : Network
    evidence : ndarray of int8, shape (n_units,)
        0, 1, or -1 for a hidden variable.
    effort : str
    proven : bool
        Is rounding covered, by ball arithmetic?

    Examples
    --------
    >>> import sbnet as sb
    >>> net = sb.from_edges({("rain", "wet"): 2.0, ("sprinkler", "wet"): 1.5}, bias={"rain": -1.0})
    >>> low, high = sb.posterior_intervals(net, {"wet": 1}, units=["rain"])["rain"]
    >>> bool(low <= sb.exact_posterior(net, {"wet": 1})["rain"] <= high)
    True
    """

    network: Network
    evidence: States
    effort: str
    proven: bool

    @classmethod
    def of(
        cls, network: Network, evidence: States, bounds: dict[str, Interval], effort: str, proven: bool
    ) -> PosteriorIntervals:
        """The intervals of one pattern."""
        new = cls(bounds)
        new.network, new.evidence, new.effort, new.proven = network, evidence, effort, proven
        return new

    @property
    def names(self) -> tuple[str, ...]:
        """The variables asked for."""
        return tuple(self)

    def _each(self) -> list[tuple[str, tuple[float, float]]]:
        """Names and bounds, of a variable with more than two states those of each: fever = high."""
        found = list[tuple[str, tuple[float, float]]]()
        for name, bounds in self.items():
            by_state = bounds.items() if isinstance(bounds, dict) else ()
            found += [(f"{name} = {state}", both) for state, both in by_state] or [(name, bounds)]
        return found

    @property
    def lower(self) -> FloatArray:
        """The lower bounds, in the order of the names; of each state, where a variable has more than two."""
        return np.array([low for _, (low, _) in self._each()], dtype=np.float64)

    @property
    def upper(self) -> FloatArray:
        """The upper bounds, likewise."""
        return np.array([high for _, (_, high) in self._each()], dtype=np.float64)

    @property
    def prior(self) -> FloatArray:
        """The means before anything is observed, for the variables asked for: exact where that takes no time."""
        means, units = best_prior(self.network), [self.network.index(name) for name in self]
        prior: FloatArray = frame_columns(self.network, units, means[None, columns_at(self.network, units)])[0][0]
        return prior

    def __missing__(self, name: object) -> Interval:
        if name in self.network.names:
            raise UnknownUnitError(f"there is no interval for variable {name!r}; ask for it with units=[{name!r}, ...]")
        raise unknown_unit(name, self.network.names, "the call")

    def to_frame(self) -> pandas.DataFrame:
        """A pandas table, one row for each variable: prior, lower and upper bound.

        Returns
        -------
        pandas.DataFrame
        """
        names = tuple(name for name, _ in self._each())
        return framed({"prior": self.prior, "lower": self.lower, "upper": self.upper}, units=names)

    def _reading(self) -> Reading:
        head = f"Posterior intervals {printing.given(self.evidence)}: the probability lies between"
        known = self.network.n_edges <= MOST_EDGES
        middle = 0.5 * (self.lower + self.upper)
        prior = self.prior if known else middle
        bounds = self._each()
        ranked = printing.by_change(prior, middle, np.arange(len(bounds)))
        top = printing.scale(self.upper[ranked[: printing.SHOWN]])
        titles = ("variable", "prior" if known else "", "from", "to", f"0 to {top:g}")
        rows = []
        for k in ranked[: printing.SHOWN].tolist():
            name, (low, high) = bounds[k]
            before = printing.probability(prior[k]) if known else ""
            rows.append((name, before, _rounded(low, 4, -1), _rounded(high, 4, 1), Span(low, high, top)))
        covered = "covered, by ball arithmetic" if self.proven else "covered by a margin"
        covered += "; proven=True proves it" * (self.network.is_binary and not self.proven)
        remarks = (f"effort {self.effort!r}; rounding is {covered}",)
        return Reading(head, (titles, *rows, *printing.more(len(bounds) - len(rows))), remarks)


def _digits(gap: float) -> int:
    """Decimals that tell the bounds of an interval apart."""
    return min(max(3, 1 - math.floor(math.log10(gap))), 15) if gap > 0.0 else 4


def _rounded(bound: float, digits: int, sign: int) -> str:
    """A bound, rounded down or up, so that what is printed holds too."""
    scale = 10.0**digits
    return f"{(math.floor if sign < 0 else math.ceil)(bound * scale) / scale:.{digits}f}"


def _outward(low: float, high: float) -> str:
    digits = _digits(high - low)
    return f"{_rounded(low, digits, -1)} and {_rounded(high, digits, 1)}"


def _three_digits(p: float, sign: int) -> float:
    """A probability to three digits, rounded down or up."""
    unit = 10.0 ** (math.floor(math.log10(p)) - 2)
    return min(unit * (math.floor(p / unit) if sign < 0 else math.ceil(p / unit)), 1.0)
