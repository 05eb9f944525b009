"""What a density has found between the columns of a table: by name, strength and, of two states each, sign."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from sklearn.base import clone

from sbnet import checks
from sbnet.errors import ParameterError, cut
from sbnet.inference.associations import associations as between
from sbnet.plots.style import axes_of, bars, signed

Pairs = dict[tuple[str, str], float]


def associations(
    density: Any, *, about: str | None = None, most: int = 20, bootstrap: int = 0, X: Any = None, random_state: int = 0,
    ax: Axes | None = None,
) -> Axes:  # fmt: skip
    """Draw the strongest associations between the columns of a density as bars, the strongest on top.

    Where columns have more than two states, or one column is asked `about`, bars are mutual information in nats: how
    much two columns tell about each other, drawn for pairs that an edge joins. Where all have two states, bars are the
    weights of edges: logarithms of odds ratios, by how much the one column raises or lowers the log odds of the other,
    *all columns before it given*. A correlation also counts what two columns have from a third one; an edge does not,
    so a table has many correlations and few edges.

    Parameters
    ----------
    density : SBNDensity
        Fitted. With ``hidden=0, column_mixtures=0`` all there is to tell is in the edges; otherwise they are what
        hidden variables leave. Of several orders the mean weight of a pair is drawn.
    about : str, optional
        How much does each of the other columns tell about this one?
    most : int
        Pairs to draw.
    bootstrap : int
        Learn again from so many tables of rows drawn with replacement, without hidden variables, and write beside each
        edge in how many of them there is one of the same sign. 20 tell accidents from what is stable.
    X : table, optional
        The table that the density was fitted to; a bootstrap needs it.
    random_state : int
        Seed of the bootstrap.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default in a new figure of a fitting size.

    Returns
    -------
    matplotlib.axes.Axes

    Examples
    --------
    >>> import numpy as np
    >>> import sbnet.plots
    >>> from sbnet.estimators import SBNDensity
    >>> X = np.array([[1, 1, 0], [1, 1, 0], [0, 0, 1], [0, 1, 1]] * 25)
    >>> ax = sbnet.plots.associations(SBNDensity(hidden=0, column_mixtures=0, random_state=0).fit(X))
    """
    if not hasattr(density, "networks_") or not hasattr(density, "mixture_"):
        raise ParameterError(
            f"density is {type(density).__name__}, which has learned no table; give a fitted SBNDensity"
        )
    most, bootstrap = checks.whole("most", most, 1), checks.whole("bootstrap", bootstrap, 0)
    if bootstrap and X is None:
        raise ParameterError(f"bootstrap is {bootstrap}, but X is not there; give the table that was fitted: X=table")
    if about is not None and not isinstance(about, str):
        raise ParameterError(f"about is {checks.shown(about)}; give the name of a column")
    told = about is not None or not all(network.is_binary for network in density.mixture_)
    pairs = _nats(density, about) if told else pairs_of(density)
    if told and bootstrap:
        raise ParameterError("bootstrap= compares signs, which mutual information has not; leave it out")
    strongest = sorted(pairs, key=lambda pair: -abs(pairs[pair]))[:most]
    stable = _stability(density, X, bootstrap, random_state, {pair: pairs[pair] for pair in strongest})
    ax = axes_of(ax, 7.0, 1.2 + 0.26 * max(len(strongest), 3))
    if told:
        names = [cut(b, 40) if about else f"{cut(a, 24)} – {cut(b, 24)}" for a, b in strongest]
        rows = [(name, pairs[pair], f"{pairs[pair]:.2g}") for name, pair in zip(names, strongest, strict=True)]
        title = f"what each column tells about {cut(about, 30)}" if about else "what columns tell about each other"
        return bars(ax, rows, title, "mutual information, nats")
    rows = []
    for a, b in strongest:
        again = f"   {stable[a, b]:.0%}" if bootstrap else ""
        rows.append((f"{cut(a, 24)} – {cut(b, 24)}", pairs[a, b], signed(pairs[a, b], ".2g") + again))
    many = f"the strongest {len(strongest)} of " if len(strongest) < len(pairs) else ""
    label = "weight: log odds ratio, the columns before given"
    label += "\n%: found again in tables drawn from this one" if bootstrap else ""
    return bars(ax, rows, f"{many}{len(pairs):,} edges between columns", label, 0.5 if bootstrap else 0.2)


def _nats(density: Any, about: str | None) -> Pairs:
    """The mutual information of pairs of columns, on average over networks; only what is more than nothing."""
    mixture, total = density.mixture_, Pairs()
    for network in mixture:
        for pair in between(network, about=about, among=mixture.columns):
            key = pair[:2] if about in (None, pair.one) else (pair.other, pair.one)
            total[key] = total.get(key, 0.0) + pair.nats / len(mixture)
    return {pair: nats for pair, nats in total.items() if nats > 0.0}


def pairs_of(density: Any) -> Pairs:
    """The weight between two columns, whichever is the parent, on average over networks; only those not zero."""
    mixture = density.mixture_
    total: Pairs = {}
    place = {name: k for k, name in enumerate(mixture.columns)}
    for network in mixture:
        for one, other, weight in network.edges():
            if one in place and other in place:
                pair = (one, other) if place[one] < place[other] else (other, one)
                total[pair] = total.get(pair, 0.0) + weight / len(mixture)
    return {pair: weight for pair, weight in total.items() if weight}


def _stability(density: Any, X: Any, bootstrap: int, seed: int, pairs: Pairs) -> dict[tuple[str, str], float]:
    """In which share of tables drawn from this one each pair has an edge of the same sign."""
    rng, count = checks.generator(seed, "random_state"), dict.fromkeys(pairs, 0)
    n = len(X) if bootstrap else 0
    for _ in range(bootstrap):
        rows = rng.integers(n, size=n)
        drawn = X.iloc[rows] if hasattr(X, "iloc") else np.asarray(X)[rows]
        again = pairs_of(clone(density).set_params(hidden=0, column_mixtures=0, orders=1, verbose=0).fit(drawn))
        for pair, weight in pairs.items():
            count[pair] += int(again.get(pair, 0.0) * weight > 0.0)
    return {pair: times / bootstrap for pair, times in count.items()} if bootstrap else {}
