"""What inference answered: means beside what was believed before, the bound by sweep, and the bound by unit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from sbnet import checks
from sbnet._types import HIDDEN, FloatArray
from sbnet.bounds import Breakdown
from sbnet.errors import ParameterError, cut, unknown_unit
from sbnet.exact.means import ExactPosterior
from sbnet.inference import Posterior, infer
from sbnet.model.graph import count
from sbnet.model.network import Network
from sbnet.plots.style import FAINT, INK, NEGATIVE, POSITIVE, THIRD, axes_of, name_rows, signed
from sbnet.questions.by_state import frame_columns


def means(
    posterior: Posterior | ExactPosterior,
    intervals: Mapping[str, tuple[float, float]] | None = None,
    *,
    n: int = 15,
    by: Literal["change", "mean"] = "change",
    ax: Axes | None = None,
) -> Axes:
    """Draw the means of hidden variables, ranked, each beside its mean before the evidence.

    Parameters
    ----------
    posterior : Posterior
        One answer: of :func:`sbnet.infer`, or a row of :func:`sbnet.infer_many`.
    intervals : mapping, optional
        Drawn as whiskers: what :func:`sbnet.posterior_intervals` returns, or any mapping from names to two bounds.
        Variables left out have none.
    n : int
        How many variables are drawn, at most.
    by : {"change", "mean"}
        What comes first: the variables that the evidence moved most, up or down, or those with the largest means.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default in a new figure of a fitting size.

    Returns
    -------
    matplotlib.axes.Axes

    Notes
    -----
    The mean before the evidence is the ``prior`` of the answer, or what :func:`sbnet.infer` answers without evidence.

    Examples
    --------
    >>> import sbnet as sb
    >>> import sbnet.plots
    >>> net = sb.from_edges({("rain", "wet"): 2.0, ("sprinkler", "wet"): 1.5}, bias={"rain": -1.0})
    >>> ax = sb.plots.means(sb.infer(net, {"wet": 1}), sb.posterior_intervals(net, {"wet": 1}))
    """
    _check_answer(posterior, "network", "evidence", "means")
    net, mean = posterior.network, np.asarray(posterior.means, dtype=np.float64)
    if mean.ndim != 1:
        raise ParameterError(f"means() draws one answer; these are {len(mean):,} rows. Choose one: batch[0]")
    n = checks.whole("n", n, 1)
    checks.choice("by", by, ("change", "mean"))
    before = getattr(posterior, "prior", None)
    prior = infer(net, {}).means if before is None else np.asarray(before, dtype=np.float64)
    hidden, names = np.asarray(posterior.evidence) == HIDDEN, list(net.names)
    if not net.is_binary:  # a row for each state
        (mean, prior), names = frame_columns(net, range(net.n_units), np.array([mean, prior]))
        hidden = np.repeat(hidden, np.where(net.n_states == 2, 1, net.n_states))
        intervals = _by_title(net, intervals)
    bounds, hidden = _bounds(names, intervals), np.flatnonzero(hidden)
    if not hidden.size:
        raise ParameterError("all variables are observed; there are no means to draw")
    size = np.abs(mean - prior)[hidden].round(12) if by == "change" else mean[hidden]
    shown = hidden[np.lexsort((-mean[hidden], -size))][:n]  # equal ones by mean, then in the order of the network
    ax = axes_of(ax, 6.4, 1.3 + 0.3 * len(shown))
    places = np.arange(len(shown))
    given, held = ~np.isnan(bounds[shown, 0]), bounds[shown]
    if given.any():
        middle, half = held[given].mean(axis=1), np.ptp(held[given], axis=1) / 2
        look: dict[str, Any] = {"ecolor": NEGATIVE, "elinewidth": 1.8, "capsize": 5, "capthick": 1.8, "zorder": 1}
        ax.errorbar(middle, places[given], xerr=half, fmt="none", label="holds it for certain", **look)
    ax.hlines(places, prior[shown], mean[shown], color=POSITIVE, linewidth=1.2, alpha=0.45, zorder=2)
    ax.scatter(prior[shown], places, marker="|", s=110, color=FAINT, label="before", zorder=3, gid="prior")
    ax.scatter(mean[shown], places, s=34, color=POSITIVE, label="given the evidence", zorder=4, gid="mean")
    _name_rows(ax, [names[i] for i in shown])
    first = {"change": "most moved first", "mean": "largest first"}[by]
    ax.set(xlim=(-0.02, 1.02), xlabel=f"probability\n{_some(len(shown), len(hidden), 'hidden variable')}, {first}")
    _legend_above(ax)
    return ax


def trace(posterior: Posterior, *, ax: Axes | None = None) -> Axes:
    """Draw the bound at the start and after each sweep.

    Parameters
    ----------
    posterior : Posterior
        Of :func:`sbnet.infer`; rows of a batch keep no trace.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default in a new figure.

    Returns
    -------
    matplotlib.axes.Axes

    Examples
    --------
    >>> import sbnet as sb
    >>> import sbnet.plots
    >>> ax = sb.plots.trace(sb.infer(sb.layered((8, 24, 64), rng=0, scale=1.0), [0] * 64))
    """
    _check_answer(posterior, "trace", "converged")
    bounds = np.asarray(posterior.trace, dtype=np.float64)
    if not bounds.size or np.isnan(bounds).all():
        raise ParameterError(
            "this posterior has no trace: rows of a batch and samplers keep none. Use infer(network, evidence) with "
            "the MeanField solver"
        )
    ax = axes_of(ax, 6.0, 3.6)
    sweeps = np.arange(len(bounds))
    ax.plot(sweeps, bounds, "o-", color=POSITIVE, markersize=4 if len(bounds) <= 40 else 0, clip_on=False, zorder=3)
    ax.axhline(bounds[-1], color=FAINT, linewidth=0.8, linestyle=":")
    word = "settled" if posterior.converged else "stopped before it settled"
    ax.set_title(f"{word} after {count(len(bounds) - 1, 'sweep')}, at {signed(float(bounds[-1]), '.6g')} nats", size=10)
    ax.set(xlabel="sweep", ylabel="bound on ln P(evidence), nats", xlim=(0, max(len(bounds) - 1, 1)))
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def breakdown(posterior: Posterior | Breakdown, *, n: int = 15, ax: Axes | None = None) -> Axes:
    """Draw where a bound comes from: what each variable adds to it, by term.

    Parameters
    ----------
    posterior : Posterior or Breakdown
        An answer of :class:`sbnet.MeanField`, or what its ``breakdown()`` returns.
    n : int
        How many variables are drawn, at most: those that add or take most.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default in a new figure of a fitting size.

    Returns
    -------
    matplotlib.axes.Axes

    Notes
    -----
    The sums over all variables stand in the legend; what variables that are not drawn add stands below the axis.

    Examples
    --------
    >>> import sbnet as sb
    >>> import sbnet.plots
    >>> ax = sb.plots.breakdown(sb.infer(sb.layered((3, 6), rng=0, scale=1.0), [0, 1, 0, 1, 1, 0]))
    """
    if not isinstance(posterior, Breakdown):
        _check_answer(posterior, "breakdown")
    parts = posterior if isinstance(posterior, Breakdown) else posterior.breakdown()
    n = checks.whole("n", n, 1)
    total = parts.by_unit
    shown = np.argsort(-np.abs(total), kind="stable")[:n]
    ax = axes_of(ax, 6.4, 1.4 + 0.3 * len(shown))
    places = np.arange(len(shown))
    right, left = np.zeros(len(shown)), np.zeros(len(shown))
    looks = (POSITIVE, ""), (NEGATIVE, "////"), (THIRD, "....")
    for (term, added), (colour, hatch) in zip(parts.by_term.items(), looks, strict=True):
        nats = getattr(parts, term)[shown]
        begin = np.where(nats >= 0.0, right, left)
        name = f"{term.replace('_', ' ')} {signed(added)}"
        style: dict[str, Any] = {"color": colour, "hatch": hatch, "edgecolor": "white", "linewidth": 0}
        ax.barh(places, nats, left=begin, height=0.66, label=name, gid=term, **style)
        right, left = right + np.maximum(nats, 0.0), left + np.minimum(nats, 0.0)
    ax.scatter(
        total[shown], places, marker="|", s=150, color=INK, label=f"sum {signed(parts.bound)}", zorder=4, gid="sum"
    )
    ax.axvline(0.0, color=FAINT, linewidth=0.8)
    ax.use_sticky_edges = False  # a bar that ends at the frame would look cut
    ax.margins(x=0.04)
    _name_rows(ax, [parts.names[i] for i in shown])
    others = float(np.delete(total, shown).sum())
    rest = f"; the others add {signed(others)}" if len(shown) < len(total) else ""
    ax.set_xlabel(f"nats\n{_some(len(shown), len(total), 'variable')}{rest}")
    _legend_above(ax)
    return ax


def _check_answer(posterior: Any, *parts: str) -> None:
    """Is it an answer, with the parts that are drawn?"""
    lacking = [part for part in parts if not hasattr(posterior, part)]
    if isinstance(posterior, type) or type(posterior) is np.ndarray or lacking:
        raise ParameterError(f"posterior is {checks.shown(posterior)}; give an answer, such as sbnet.infer() returns")


def _by_title(network: Network, intervals: Any) -> Any:
    """Intervals of the states of a variable by the titles of their rows."""
    if not isinstance(intervals, Mapping):
        return intervals
    found: dict[str, Any] = {}
    for name, one in intervals.items():
        many = isinstance(one, Mapping) and network.n_states[network.index(name)] > 2
        found |= {f"{name} = {state}": ends for state, ends in one.items()} if many else {name: one}
    return found


def _bounds(names: list[str], intervals: Mapping[str, tuple[float, float]] | None) -> FloatArray:
    """A lower and an upper bound for each row; NaN where no interval is given."""
    bounds = np.full((len(names), 2), np.nan)
    wanted = "give a mapping from variables to two bounds, such as {'rain': (0.2, 0.4)}"
    for name, interval in checks.mapping("intervals", {} if intervals is None else intervals, wanted).items():
        both = checks.numbers(f"intervals[{name!r}]", interval, wanted)
        if both.shape != (2,):
            raise ParameterError(f"intervals[{name!r}] is {checks.shown(interval)}; {wanted}")
        low, high = both.tolist()
        if not 0.0 <= low <= high <= 1.0:
            raise ParameterError(f"the interval of {name!r} runs from {low} to {high}; it must lie within 0 and 1")
        if name not in names:
            raise unknown_unit(name, names, "intervals")
        bounds[names.index(name)] = low, high
    return bounds


def _name_rows(ax: Axes, names: list[str]) -> None:
    """A name for each row, the first on top."""
    name_rows(ax, [cut(name, 28) for name in names])
    ax.grid(axis="x", color="#dddddd", linewidth=0.6)
    ax.set_axisbelow(True)


def _legend_above(ax: Axes) -> None:
    """Put the legend above the axes, where it covers no data."""
    ax.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=4, frameon=False, fontsize=8.5, borderaxespad=0.2,
              columnspacing=1.2, handletextpad=0.4)  # fmt: skip


def _some(shown: int, all_of_them: int, word: str) -> str:
    return count(shown, word) if shown == all_of_them else f"{shown:,} of {count(all_of_them, word)}"
