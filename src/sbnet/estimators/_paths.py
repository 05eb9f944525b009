"""The choice of autoregressive edges: a path of scales from strong to weak priors, and the order of the columns.

Their regressions are convex, so that a path of scales, each started from the last, costs little more than one of them.
"""

from __future__ import annotations

import numpy as np

from sbnet.estimators._autoregressive import Autoregressive, Scales, first_of
from sbnet.estimators._rows import Rows
from sbnet.estimators._search import Candidate, Search, best_of

PATH = tuple(2.0**k for k in range(-5, 5))
_FLAT = 5e-4
"""The share of a bound that a weaker prior may be below the best to be taken for it, which leaves more to hidden units
and per-column mixtures to find; one that is further below ends the path.
"""
_SPREADS = (1.0, 0.5, 0.25)
"""Standard deviations of weights under a Gaussian prior beside the other, from weak to strong."""
AS_GIVEN = "as given"


def choose_autoregressive(search: Search) -> tuple[Candidate, Candidate, str]:
    """The best scale for autoregressive weights, or each weight by its own; the weakest prior that is hardly worse; and
    the order of the columns, in which the search has its rows from now on.
    """
    if not search.settings.autoregressive:
        network = search.start(hidden=(), column_mixtures=0)
        alone = search.scored(Candidate("independent columns", network, Scales(1.0)))
        return alone, alone, AS_GIVEN
    found = _along_path(search)
    best = best_of(found)
    order, other = _choose_order(search, best)
    if order != AS_GIVEN:
        found = [other]
    s = best.scales.autoregressive
    # Half a step to either side, which matters where the path is steep; and the adaptive lasso.
    for scales in (Scales(s / np.sqrt(2.0)), Scales(s * np.sqrt(2.0)), Scales(s, s), Scales(0.5 * s, s)):
        found.append(_solved(search, other.autoregressive, scales))
    found += _elastic_nets(search, found)
    first = best_of(found)
    least = first.mean * (1.0 + _FLAT)
    plain = [choice for choice in found if not choice.scales.adaptive and choice.mean >= least]
    return first, max(plain, key=lambda choice: choice.scales.autoregressive) if plain else first, order


def _along_path(search: Search) -> list[Candidate]:
    found: list[Candidate] = []
    for scale in PATH:
        found.append(_solved(search, found[-1].autoregressive if found else first_of(search.rows), Scales(scale)))
        if _falls([choice.mean for choice in found]):
            break
    return found


def _elastic_nets(search: Search, found: list[Candidate]) -> list[Candidate]:
    """A Gaussian prior beside the Laplace prior (an elastic net), if the validation log-likelihood improves, as it does
    where many columns say the same; with a larger Laplace scale, for the Gaussian prior shrinks weights too.
    """
    plain = best_of([choice for choice in found if not choice.scales.adaptive])
    path = [plain]
    for spread in _SPREADS:
        scales = Scales(np.sqrt(2.0) * plain.scales.autoregressive, spread=spread)
        path.append(_solved(search, path[-1].autoregressive, scales))
        if path[-1].mean < path[-2].mean:
            break
    best = best_of(found)
    return [choice for choice in path[1:] if choice.improves(best)]


def _falls(bounds: list[float]) -> bool:
    """Have the last two been below the best, or the last one by more than a little?"""
    best = max(bounds)
    return bounds[-1] < best * (1.0 + _FLAT) or (len(bounds) > 2 and max(bounds[-2:]) < best)


def _solved(search: Search, regressions: Autoregressive | None, scales: Scales, order: str = "") -> Candidate:
    assert regressions is not None
    regressions = search.solve(regressions, scales)
    network = search.start(regressions, hidden=(), column_mixtures=0)
    what = "adaptive lasso" if scales.adaptive else "autoregressive edges"
    what = what if np.isinf(scales.spread) else f"elastic net, spread {scales.spread:.3g}"
    what = f"{what}, {order or f'scale {scales.autoregressive:.3g}'}"
    return search.scored(Candidate(what, network, scales, autoregressive=regressions))


def _choose_order(search: Search, best: Candidate) -> tuple[str, Candidate]:
    """Another order of the columns, if the validation log-likelihood improves: parents come first, and what is easily
    told one way round need not be the other way.
    """
    found = {AS_GIVEN: best}
    for name, order in _orders(search.rows, search.generator).items():
        choice = _solved(search, first_of(search.rows.named(order)), best.scales, f"columns {name}")
        if choice.improves(best):
            found[name] = choice
    name = max(found, key=lambda key: found[key].mean)
    if name != AS_GIVEN:
        search.rows = search.rows.named(found[name].network.names)
    return name, found[name]


def _orders(rows: Rows, generator: np.random.Generator) -> dict[str, tuple[str, ...]]:
    n = len(rows.names) - rows.label_last
    share = rows.weights @ (rows.cells == 1) / np.maximum(rows.weights @ (rows.cells >= 0), 1e-9)
    undecided = np.argsort(np.abs(share[:n] - 0.5), kind="stable")
    found = {"backwards": range(n)[::-1], "undecided first": undecided, "at random": generator.permutation(n)}
    return {what: tuple(rows.names[k] for k in order) + rows.names[n:] for what, order in found.items()}
