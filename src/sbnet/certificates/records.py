"""What a certificate holds, and how it reads."""

from __future__ import annotations

import html
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, overload

import numpy as np

from sbnet._types import FloatArray

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True)
class Certificate:
    r"""An interval that holds ln P(evidence), in nats, and where it comes from.

    Attributes
    ----------
    lower, upper : float
        ln P(evidence) lies between them: by theorems for the two bounds, and, if `proven`, rounding included.
    estimate, error : float
        A guess at ln P(evidence), from sampling, and its standard error; not proven, but never outside the interval.
        The value itself, and zero, if it is known.
    exact : bool
        Are both ends ln P itself, because all states could be summed?
    lower_from, upper_from : str
        How the two ends were obtained.
    mean_field : float
        The lower bound of mean field theory alone, :class:`sbnet.MeanField`.
    logarithm : float
        How much lower that would be with the paper's logarithm terms, eq. (20), at the same means. Known.
    effort : str
    proven : bool
        Is rounding covered, by ball arithmetic?
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

    @property
    def gap(self) -> float:
        """The length of the interval."""
        return self.upper - self.lower

    @property
    def factorisation(self) -> tuple[float, float]:
        r"""What the independence of mean field theory costs lies between these two.

        That is :math:`\mathrm{KL}(Q \| P) = \ln P(V) - L`, and ln P(V) is known to lie between the ends. The slack of
        the exact logarithm terms, about 1e-7 for a unit, is in it.
        """
        return max(self.lower - self.mean_field, 0.0), max(self.upper - self.mean_field, 0.0)

    def _sentences(self) -> list[tuple[str, str]]:
        """A label and a text for each line but the first."""
        low, high = self.factorisation
        guess = max(self.estimate - self.mean_field, 0.0)
        lines = []
        if not self.exact:
            if self.lower > -700.0:
                p_low, p_high = _three_digits(math.exp(self.lower), -1), _three_digits(math.exp(self.upper), 1)
                lines.append(("that is", f"P(evidence) between {p_low:.3g} and {p_high:.3g}"))
            lines += [("lower end", self.lower_from), ("upper end", self.upper_from)]
            lines.append(("best guess", f"{self.estimate:.6g} ± {self.error:.2g}, from samples (not proven)"))
        spread = f"{guess:.3g}" if self.exact else f"{low:.3g} to {high:.3g} nats, about {guess:.3g}"
        lines.append(("mean field", f"{self.mean_field:.6g}; taking the hidden units as independent costs {spread}"))
        lines.append(("", f"the paper's logarithm terms would cost {self.logarithm:.3g} more"))
        covered = "covered, by ball arithmetic" if self.proven else "not covered; proven=True does that"
        return [*lines, ("rounding", covered)]

    def _headline(self) -> str:
        # Numbers are rounded outwards, so that what is printed holds too.
        gap, digits = self.gap, 4
        if gap > 0.0:
            digits = min(max(3, 1 - math.floor(math.log10(gap))), 15)
        scale = 10.0**digits
        if self.exact:
            return f"ln P(evidence) = {self.estimate:.{digits}f} ({self.lower_from})"
        low, high = math.floor(self.lower * scale) / scale, math.ceil(self.upper * scale) / scale
        ratio = f"{100 * math.expm1(gap):.2g} %" if gap < 0.5 else f"a factor of {math.exp(min(gap, 700.0)):,.3g}"
        return (
            f"ln P(evidence) lies between {low:.{digits}f} and {high:.{digits}f} "
            f"(gap {gap:.2g} nats, so P is known within {ratio})"
        )

    def __str__(self) -> str:
        lines = [f"  {label + ':' if label else '':<12}{text}" for label, text in self._sentences()]
        return "\n".join([self._headline(), *lines])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th style='text-align:left'>{label}</th><td style='text-align:left'>{html.escape(text)}</td></tr>"
            for label, text in self._sentences()
        )
        return f"<table><caption style='text-align:left'><b>{html.escape(self._headline())}</b></caption>{rows}</table>"


@dataclass(frozen=True)
class Certificates(Sequence[Certificate]):
    """The certificates of a table, one for each row: ``certificates[3]``, ``certificates.lower``."""

    rows: tuple[Certificate, ...]

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, key: int) -> Certificate: ...
    @overload
    def __getitem__(self, key: slice) -> Certificates: ...
    def __getitem__(self, key: int | slice) -> Certificate | Certificates:
        return Certificates(self.rows[key]) if isinstance(key, slice) else self.rows[key]

    def __iter__(self) -> Iterator[Certificate]:
        return iter(self.rows)

    def _column(self, name: str) -> FloatArray:
        return np.array([getattr(row, name) for row in self.rows], dtype=np.float64)

    @property
    def lower(self) -> FloatArray:
        """The lower ends."""
        return self._column("lower")

    @property
    def upper(self) -> FloatArray:
        """The upper ends."""
        return self._column("upper")

    @property
    def estimate(self) -> FloatArray:
        """The guesses."""
        return self._column("estimate")

    @property
    def gap(self) -> FloatArray:
        """The lengths of the intervals."""
        return self._column("gap")

    def to_frame(self) -> pandas.DataFrame:
        """A pandas table, one row for each pattern."""
        import pandas

        names = ("lower", "upper", "estimate", "error", "gap", "mean_field", "logarithm")
        frame = pandas.DataFrame({name: self._column(name) for name in names})
        return frame.assign(exact=[row.exact for row in self.rows])

    def __repr__(self) -> str:
        n = len(self)
        head = f"Certificates: {n:,} row{'s' * (n != 1)}"
        if n == 0:
            return head
        exact = sum(row.exact for row in self.rows)
        total = f"mean ln P between {self.lower.mean():.6g} and {self.upper.mean():.6g} nats"
        return f"{head}\n  {total}; gap {self.gap.mean():.3g} on average, {self.gap.max():.3g} at most; {exact:,} exact"

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(repr(self))}</pre>"


def _three_digits(p: float, sign: int) -> float:
    """A probability to three digits, rounded down or up."""
    unit = 10.0 ** (math.floor(math.log10(p)) - 2)
    return min(unit * (math.floor(p / unit) if sign < 0 else math.ceil(p / unit)), 1.0)
