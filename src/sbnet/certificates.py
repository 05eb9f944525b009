"""Certificates: an interval that holds ln P(evidence), and intervals that hold the posterior means."""

from __future__ import annotations

import html
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import expit

from sbnet import proven as _proven
from sbnet._progress import run_blocks
from sbnet._types import HIDDEN, FloatArray, RngLike, Settings, States
from sbnet.bounds import bound_terms
from sbnet.enclosure import EFFORTS, enclose
from sbnet.errors import EvidenceError, ParameterError
from sbnet.evidence import EvidenceLike, coerce
from sbnet.inference import estimate
from sbnet.kernels.work import XI
from sbnet.network import Network

if TYPE_CHECKING:
    import pandas

__all__ = ["Certificate", "Certificates", "certify", "posterior_intervals"]


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
        lines = [] if self.exact else [("lower end", self.lower_from), ("upper end", self.upper_from)]
        if not self.exact:
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
        low, high = math.floor(self.lower * scale) / scale, min(math.ceil(self.upper * scale) / scale, 0.0)
        ratio = f"{100 * math.expm1(gap):.2g} %" if gap < 0.5 else f"a factor of {math.exp(min(gap, 700.0)):,.3g}"
        return (
            f"ln P(evidence) lies between {low:.{digits}f} and {high:.{digits}f} "
            f"(gap {gap:.2g} nats: P is known within {ratio})"
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

    def __getitem__(self, key: Any) -> Any:
        return self.rows[key]

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


def certify(
    network: Network,
    evidence: EvidenceLike,
    *,
    effort: str = "fast",
    proven: bool = False,
    rng: RngLike = 0,
    threads: int | None = None,
    progress: bool | None = None,
) -> Any:
    """An interval that is certain to hold ln P(evidence), as narrow as the effort makes it.

    Parameters
    ----------
    network : Network
    evidence
        One pattern or a table of them.
    effort : {"fast", "normal", "high"}
        How much time may be spent. Each effort does all that the ones before it do, and takes the best of it, so that
        more effort never gives a wider interval:

        - ``"fast"``: mean field from below, Hölder's inequality from above; exact sums over groups of up to 12 coupled
          hidden units;
        - ``"normal"``: the states of four units are enumerated from below, of three from above; exact sums up to 16;
        - ``"high"``: of seven and five, larger tables, a mixture, annealed samples for the guess; exact sums up to 20.
    proven : bool
        Evaluate both ends in ball arithmetic, so that rounding is covered too; needs ``sbnet[proven]``. Exact sums end
        at 14 units.
    rng
        Seed of the samples behind the guess; the ends do not depend on it.
    threads, progress
        As in :func:`sbnet.infer_many`.

    Returns
    -------
    Certificate, or Certificates for a table

    Examples
    --------
    >>> import sbnet as sb
    >>> net = sb.from_edges({("rain", "wet"): 2.0, ("sprinkler", "wet"): 1.5}, bias={"rain": -1.0})
    >>> sb.certify(net, {"wet": 1})
    ln P(evidence) = -0.3139 (sum over all states, 2 hidden units at most together)
      mean field: -0.318167; taking the hidden units as independent costs 0.00425
                  the paper's logarithm terms would cost 0.0051 more
      rounding:   not covered; proven=True does that
    """
    states, single = coerce(network, evidence)
    _check(effort, proven)
    seed = int(np.random.default_rng(rng).integers(2**63))
    found: list[Certificate | None] = [None] * len(states)

    def work(rows: slice) -> int:
        for r in range(rows.start, rows.stop):
            found[r] = _certificate(network, states[r], effort, proven, seed)
        return int(rows.stop - rows.start)

    run_blocks(work, len(states), 1, threads, progress, "certificates")
    made = tuple(row for row in found if row is not None)
    return made[0] if single else Certificates(made)


def posterior_intervals(
    network: Network,
    evidence: EvidenceLike,
    *,
    units: Sequence[str | int] | None = None,
    effort: str = "fast",
    proven: bool = False,
    threads: int | None = None,
    progress: bool | None = None,
) -> dict[str, tuple[float, float]]:
    r"""An interval that is certain to hold P(S_i = 1 | evidence), for each hidden unit.

    With bounds :math:`L_s \le P(S_i = s, V) \le U_s`, the share of one of two numbers is smallest if it is small itself
    and the other one large:

    .. math:: \frac{L_1}{L_1 + U_0} \le P(S_i = 1 \mid V) \le \frac{U_1}{U_1 + L_0}

    Parameters
    ----------
    network : Network
    evidence
        One pattern.
    units
        The units asked for, by name or number; all hidden ones by default.
    effort, proven, threads, progress
        As in :func:`certify`; each unit takes two certificates.

    Returns
    -------
    dict
        From the name of a unit to the two ends. An observed unit has its state twice.

    Examples
    --------
    >>> import sbnet as sb
    >>> net = sb.layered((10, 20, 30), rng=0, scale=0.3)
    >>> low, high = sb.posterior_intervals(net, [0] * 30, units=["h1_0"])["h1_0"]
    >>> print(f"{low:.2f} to {high:.2f}, mean field {sb.infer(net, [0] * 30)['h1_0']:.2f}")
    0.40 to 0.59, mean field 0.49
    """
    states, single = coerce(network, evidence)
    if not single:
        raise EvidenceError(
            "posterior_intervals() takes one pattern, but the evidence is a table; call it for each row"
        )
    _check(effort, proven)
    row = states[0]
    asked = np.flatnonzero(row == HIDDEN).tolist() if units is None else [network.index(unit) for unit in units]
    ends = np.empty((len(asked), 2, 2))

    def work(block: slice) -> int:
        for k in range(block.start, block.stop):
            for state in (0, 1):
                with_unit = row.copy()
                with_unit[asked[k]] = state
                ends[k, state] = enclose(network, with_unit, effort, proven)[:2]
        return int(block.stop - block.start)

    run_blocks(work, len(asked), 1, threads, progress, "posterior intervals")
    answer = {}
    for k, i in enumerate(asked):
        (low_0, high_0), (low_1, high_1) = ends[k]
        inside = _outward(low_1 - high_0, high_1 - low_0)
        answer[network.names[i]] = inside if row[i] == HIDDEN else (float(row[i]), float(row[i]))
    return answer


def _outward(low: float, high: float) -> tuple[float, float]:
    """The sigmoid of two differences, a few roundings further out."""
    ends = expit([np.nextafter(low, -np.inf), np.nextafter(high, np.inf)])
    return float(ends[0] * (1.0 - 1e-15)), float(min(ends[1] * (1.0 + 1e-15), 1.0))


def _check(effort: str, proven: bool) -> None:
    if effort not in EFFORTS:
        raise ParameterError(f"effort is {effort!r}; choose one of {', '.join(map(repr, EFFORTS))}")
    if proven:
        _proven.load()


def _certificate(network: Network, row: States, effort: str, proven: bool, seed: int) -> Certificate:
    ends = enclose(network, row, effort, proven)
    guess, error = 0.5 * (ends.lower + ends.upper), 0.0
    if not ends.exact:
        anneal = {"samples": 100, "method": "annealed"} if effort == "high" else {}
        sampled = estimate(network, row, rng=seed, threads=1, progress=False, **anneal)  # type: ignore[arg-type]
        guess, error = min(max(sampled.log_probability, ends.lower), ends.upper), sampled.error
    paper = bound_terms(
        network,
        row[None, :],
        np.where(row == HIDDEN, ends.means, row)[None, :],
        np.full((1, network.n_units), np.nan),
        Settings(XI, 0, 0.0, 0),
    )
    logarithm = max(ends.mean_field - float(sum(part.sum() for part in paper)), 0.0)
    return Certificate(
        ends.lower,
        ends.upper,
        float(guess),
        float(error),
        ends.exact,
        ends.lower_from,
        ends.upper_from,
        ends.mean_field,
        logarithm,
        effort,
        proven,
    )
