"""What a density chooses by itself on validation rows, and how it learns what was chosen from all rows.

The candidates, in the order in which they are tried; each that is best so far is what the next ones are built on:

| candidate | tried for |
|---|---|
| autoregressive edges, a regularisation path of scales | columns of two states |
| autoregressive edges, a penalty for each column | tables with columns of more states |
| the columns backwards, undecided ones first, at random | tables that are not very wide |
| scales between those of the path, adaptive lasso, elastic net | columns of two states |
| hidden units on top of the edges | columns of two states, hidden="auto" |
| hidden units before the edges, for what they leave | the same, if cells are complete or rows few for the columns |
| per-column mixtures | columns of two states, column_mixtures="auto", many rows for the columns |
| hidden units and per-column mixtures | where both are left open, and one improved the validation log-likelihood |
| more stages, at lower rates | the best of those above |

Regressions are convex, so that each scale of the path, started from the last, costs little more than one. Beside
penalties that each column has of its own, hidden variables gained nothing on mixed tables (within 0.003 nats on two of
about a thousand rows), and without them rows with missing cells are summed up exactly. With several orders of the
columns, each is another model of the same table: what is chosen for the first is taken for the others.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sbnet.estimators import _learning
from sbnet.estimators._autoregressive import Autoregressive, Scales
from sbnet.estimators._rows import Rows
from sbnet.estimators._search import GENTLE, MOST_STAGES, Candidate, Made, Report, Search, best_of
from sbnet.estimators.settings import Settings, is_auto
from sbnet.learning import FitResult
from sbnet.learning.state_networks import FEW_COSTS, learn_states

PATH = tuple(2.0**k for k in range(-5, 5))
_FLAT = 5e-4
"""The share of a bound that a weaker prior may be below the best to be taken for it, which leaves more to hidden units
and per-column mixtures to find; one that is further below ends the path.
"""
_SPREADS = (1.0, 0.5, 0.25)
"""Standard deviations of weights under a Gaussian prior beside the other, from weak to strong."""
AS_GIVEN = "as given"
FEWEST = 50
"""Below so many rows nothing is chosen: too few of them could be held out."""
HIDDEN, COLUMN_MIXTURES = (8,), 1
"""Sizes that are tried."""
_NEAR, _NEARLY, _LATE, _RISES = 2e-3, 4e-3, 1e-3, 1e-4
"""Shares of a bound: how far below others a candidate may be after one stage to go on, or to be tried with what it does
not have, or to have a second stage; what a stage must gain.
"""
_WIDE, _SOME = 2e9, 100
"""Rows times squared columns from which on scales are compared on some of the columns, and the least number of those.
Orders of the columns are not tried there: what a column gains by another order is what others lose.
"""
_COMPARED = 1_500
"""Rows by which orders of columns of any states are compared, at most."""
_CHANCE = 0.5
"""By so much over the root of the number of rows two orders may differ by chance: two standard errors, if rows differ
by a quarter of a nat.
"""
_FEWER = (1.0, 0.7, 0.5)  # shares of the scale that autoregressive edges have without hidden units
_AGAIN = 2  # other random weights to begin with
_STRONGER = 0.25  # the share of the scale of hidden units that is tried beside it


def learn(settings: Settings, rows: Rows, generator: np.random.Generator) -> list[tuple[FitResult, Report | None]]:
    """The network of the table as it stands, and others with its columns in random orders, chosen alike."""
    found = [learn_one(settings, rows, generator)]
    report = found[0][1]
    for _ in range(1, settings.orders):
        found.append(learn_one(settings, rows.shuffled(generator), generator, report))
    return found


def learn_one(
    settings: Settings, rows: Rows, generator: np.random.Generator, report: Report | None = None
) -> tuple[FitResult, Report | None]:
    """A start and all epochs, from one generator; and what was chosen, now or in an earlier report."""
    if rows.variables:
        return _learn_states(settings, rows, generator, report)
    _learning.check_size(settings, len(rows.names))
    choosing = is_auto(settings.prior) and len(rows.cells) >= FEWEST
    if report is None and not choosing:
        return _learning.learn(settings, _learning.start(settings, rows, generator), rows, generator), None
    if is_auto(settings.weight_scale):  # beside weights that have been found already, small ones would stay small
        settings = replace(settings, weight_scale=1.0)
    search = Search.of(settings, rows, generator, choosing=report is None)
    if report is not None:
        return search.refitted(_made_again(search, report)), report
    best, weaker, order = _choose_autoregressive(search)
    best = _choose_units(search, weaker, best)
    result = search.refitted(best)
    told = {"held_out": best.mean, "epochs": 0 if search.is_solved(best) else len(result.bounds)}
    return result, search.report(best, result.network, order=order, held_out_rows=len(search.held.cells), **told)


def _learn_states(
    settings: Settings, rows: Rows, generator: np.random.Generator, report: Report | None
) -> tuple[FitResult, Report]:
    """Columns of any states, in the order with the best validation log-likelihood, or with a report in theirs."""
    search, seed, order = Search(settings, rows, rows, rows, generator), int(generator.integers(2**62)), AS_GIVEN
    some = rows.keep(np.sort(generator.permutation(len(rows.cells))[:_COMPARED]))
    wide = len(some.cells) * sum(len(column.states) for column in rows.variables.values()) ** 2 >= _WIDE
    choosing = report is None and not wide and len(rows.cells) >= FEWEST
    orders = {AS_GIVEN: some, **some.orders(generator)} if choosing else {}
    for name, others in orders.items():  # with the same folds for all
        folds = np.random.default_rng(seed)
        _, found = learn_states(
            others.with_states(), folds, threads=search.threads, interactions=False, costs=FEW_COSTS
        )
        search.tried(f"columns {name}", found.held_out)
    if orders:
        bounds = {name: trial.bound for name, trial in zip(orders, search.trials, strict=True)}
        best = max(bounds, key=bounds.__getitem__)
        if bounds[best] - bounds[AS_GIVEN] > _CHANCE / np.sqrt(len(some.cells)):
            rows, order = rows.named(orders[best].names), best
    folds = np.random.default_rng(seed)
    network, chosen = learn_states(rows.with_states(), folds, threads=search.threads, interactions=False)
    search.tried("a penalty for each column", chosen.held_out)
    told = {"order": order, "held_out": chosen.held_out, "held_out_rows": len(rows.cells), "columns": chosen.variables}
    report = search.report(Made(scales=None), network, **told)
    return FitResult(network, np.array([chosen.held_out]), None, None, 1, False, report.seconds), report


def _made_again(search: Search, report: Report) -> Candidate:
    """What was chosen before for the same table; in the order of these rows."""
    settings, rows, scales = search.settings, search.rows, report.scales
    assert scales is not None
    plain, regressions = replace(scales, autoregressive=scales.first, before=None), None
    if settings.autoregressive:
        regressions = Autoregressive.of(rows)
        for scale in (*(s for s in PATH if s < scales.first), scales.first):
            regressions = search.solve(regressions, replace(plain, autoregressive=scale))
        regressions = search.solve(regressions, scales) if scales.adaptive else regressions
    network = search.start(regressions, hidden=report.layers, column_mixtures=report.column_mixtures)
    if report.hidden_first:
        network = search.solve(_behind(search, scales, report.layers, regressions), plain).network()
        if report.column_mixtures:
            network = _learning.with_mixtures(settings, rows, search.generator, network, report.column_mixtures)
    for number in range(1, report.stages + 1):
        network = search.stage(scales, network, number, report.rate)
    return Candidate(
        what="as before", network=network, scales=scales, regressions=regressions, layers=report.layers,
        column_mixtures=report.column_mixtures, rate=report.rate,
    )  # fmt: skip


def _behind(search: Search, scales: Scales, layers: tuple[int, ...], before: Autoregressive | None) -> Autoregressive:
    """Regressions for what hidden units leave, which are learned alone for a stage; those of columns go on."""
    alone = search.stage(replace(scales, before=None), search.start(hidden=layers, column_mixtures=0, edges=False))
    return Autoregressive.behind(search.settings, search.rows, alone, search.generator, before)


def _choose_autoregressive(search: Search) -> tuple[Candidate, Candidate, str]:
    """The best scale for autoregressive weights, or each weight by its own; the weakest prior that is hardly worse; and
    the order of the columns, in which the search has its rows from now on.
    """
    if not search.settings.autoregressive:
        network = search.start(hidden=(), column_mixtures=0)
        alone = search.scored(Candidate(what="independent columns", network=network, scales=Scales(1.0)))
        return alone, alone, AS_GIVEN
    rows, columns = search.rows.cells.shape
    every = min(max(round(rows * columns * columns / _WIDE), 1), max(columns // _SOME, 1))
    found: list[Candidate] = []
    for scale in PATH:
        start = found[-1].regressions if found else Autoregressive.of(search.rows, every)
        found.append(_solved(search, start, Scales(scale)))
        best, last = best_of(found), found[-2:]
        far_below = last[-1].mean < best.mean * (1.0 + _FLAT / every)
        if far_below or (len(found) > 2 and best_of(last).mean < best.mean):
            break
    order, other = _choose_order(search, best) if every == 1 else (AS_GIVEN, best)
    if order != AS_GIVEN:
        found = [other]
    s = best.scales.autoregressive
    # Half a step to either side, which matters where the path is steep; and the adaptive lasso.
    for scales in (Scales(s / np.sqrt(2.0)), Scales(s * np.sqrt(2.0)), Scales(s, s), Scales(0.5 * s, s)):
        found.append(_solved(search, other.regressions, scales))
    found += _elastic_nets(search, found)
    first = best_of(found)
    least = first.mean * (1.0 + _FLAT / every)
    plain = [choice for choice in found if not choice.scales.adaptive and choice.mean >= least]
    weaker = max(plain, key=lambda choice: choice.scales.autoregressive) if plain else first
    if every > 1:
        whole = {choice.scales: _whole(search, choice.scales) for choice in (weaker, first)}
        first, weaker = whole[first.scales], whole[weaker.scales]
    return first, weaker, order


def _whole(search: Search, scales: Scales) -> Candidate:
    """All columns under scales that were chosen on some of them."""
    regressions = Autoregressive.of(search.rows)
    if scales.before is not None:
        regressions = search.solve(regressions, Scales(scales.before))
    return _solved(search, regressions, scales)


def _elastic_nets(search: Search, found: list[Candidate]) -> list[Candidate]:
    """A Gaussian prior beside the Laplace prior (an elastic net), if the validation log-likelihood improves, as it does
    where many columns say the same; with a larger Laplace scale, for the Gaussian prior shrinks weights too.
    """
    plain = best_of([choice for choice in found if not choice.scales.adaptive])
    path = [plain]
    for spread in _SPREADS:
        scales = Scales(np.sqrt(2.0) * plain.scales.autoregressive, spread=spread)
        path.append(_solved(search, path[-1].regressions, scales))
        if path[-1].mean < path[-2].mean:
            break
    best = best_of(found)
    return [choice for choice in path[1:] if choice.improves(best)]


def _solved(search: Search, regressions: Autoregressive | None, scales: Scales, order: str = "") -> Candidate:
    assert regressions is not None
    regressions = search.solve(regressions, scales)
    network = search.start(regressions, hidden=(), column_mixtures=0)
    what = "adaptive lasso" if scales.adaptive else "autoregressive edges"
    what = what if np.isinf(scales.spread) else f"elastic net, spread {scales.spread:.3g}"
    what = f"{what}, {order or f'scale {scales.autoregressive:.3g}'}"
    what += f", one column of {regressions.every}" if regressions.every > 1 else ""
    return search.scored(Candidate(what=what, network=network, scales=scales, regressions=regressions))


def _choose_order(search: Search, best: Candidate) -> tuple[str, Candidate]:
    """Another order of the columns, if the validation log-likelihood improves: parents come first, and what is easily
    told one way round need not be the other way.
    """
    found, rows = {AS_GIVEN: best}, search.rows
    for name, others in rows.orders(search.generator).items():
        choice = _solved(search, Autoregressive.of(others), best.scales, f"columns {name}")
        if choice.improves(best):
            found[name] = choice
    name = max(found, key=lambda key: found[key].mean)
    if name != AS_GIVEN:
        search.rows = rows.named(found[name].network.names)
    return name, found[name]


def _choose_units(search: Search, weaker: Candidate, best: Candidate) -> Candidate:
    """Hidden units and per-column mixtures, if given; otherwise those that improve the validation log-likelihood.

    Both are tried with the regressions of `weaker`, whose prior leaves them more to find.
    """
    settings, missing = search.settings, search.rows.has_missing
    # With few rows for so many columns, autoregressive edges would explain all that hidden units could, and there is
    # nothing to tell a mixture of regressions from one.
    wide = len(search.rows.cells) < 25 * len(search.rows.names)
    free = is_auto(settings.hidden)
    auto = is_auto(settings.column_mixtures) and bool(settings.autoregressive) and not wide
    layers = () if free else settings.layers
    mixtures = 0 if is_auto(settings.column_mixtures) else int(settings.column_mixtures)
    if layers or mixtures:
        best = search.trained(_with(search, weaker, layers, mixtures, "as given"))
    elif missing:
        what = "autoregressive edges, missing values"
        best = search.trained(Candidate(what=what, network=best.network, scales=weaker.scales))
    options: list[Candidate] = []
    if free:
        before = bool(settings.autoregressive) and not mixtures and (wide or not missing)
        start = _with(search, weaker, HIDDEN, mixtures, "hidden units")
        options.append(_trained(search, start, None if before else best))
        if before and not search.is_late:
            options += _hidden_before(search, weaker)
    if auto and not search.is_late:
        start = _with(search, weaker, layers, COLUMN_MIXTURES, "per-column mixtures")
        options.append(_trained(search, start, None if any(o.improves(best) for o in options) else best))
    if not options:
        return _until_settled(search, best) if best.stages else best
    top = best_of(options)
    if free and top.layers and top.improves(best):
        options += _begun_again(search, weaker, top)
        top = best_of(options)
    if auto and free and top.improves(best):
        top = _with_both(search, weaker.scales, options)
    if top.mean > best.mean - _NEAR * abs(best.mean):
        top = _until_settled(search, top)
    return top if top.improves(best) else best


def _with(search: Search, weaker: Candidate, layers: tuple[int, ...], mixtures: int, what: str) -> Candidate:
    """The autoregressive network with hidden units and mixtures that have not learned anything yet."""
    network = search.start(weaker.regressions, hidden=layers, column_mixtures=mixtures)
    return Candidate(what=what, network=network, scales=weaker.scales, layers=layers, column_mixtures=mixtures)


def _trained(search: Search, start: Candidate, above: Candidate | None) -> Candidate:
    """One stage; and if that ends below another candidate, one that goes gently: large steps have undone too much."""
    found = search.trained(start)
    if above is None or found.mean > above.mean or not is_auto(search.settings.epochs):
        return found
    return best_of([found, search.trained(replace(start, what=f"{start.what}, gently", rate=GENTLE))])


def _with_both(search: Search, scales: Scales, options: list[Candidate]) -> Candidate:
    """Hidden units and per-column mixtures together, the ones on top of the others that have learned already: from the
    best without the others, and if that improves, from the next.
    """
    best = top = best_of(options)
    for option in sorted(options, key=lambda candidate: -candidate.mean)[:2]:
        if search.is_late or option.mean < top.mean - _NEARLY * abs(top.mean):
            break
        add, count = (_learning.with_mixtures, COLUMN_MIXTURES) if option.layers else (_learning.with_hidden, *HIDDEN)
        network = add(search.settings, search.rows, search.generator, option.network, count)
        what = f"{option.kind}, and {'per-column mixtures' if option.layers else 'hidden units'}"
        start = Candidate(
            what=what, network=network, scales=scales, layers=HIDDEN, column_mixtures=COLUMN_MIXTURES,
            hidden_first=option.hidden_first,
        )  # fmt: skip
        both = search.trained(start)
        if 0.0 <= top.mean - both.mean < _LATE * abs(top.mean):  # the more there is to learn, the longer it takes
            both = _gone_on(search, both, 2, 1.0)
        best = best_of([best, both])
        if best is top:
            break
    return best


def _hidden_before(search: Search, weaker: Candidate) -> list[Candidate]:
    """Hidden units first, and then autoregressive edges for what they leave: fewer, so that a stronger prior may be
    better. The best of them, with one stage more and without.
    """
    drawn, what = _behind(search, weaker.scales, HIDDEN, weaker.regressions), "hidden units before autoregressive edges"
    found: list[Candidate] = []
    for share in _FEWER:
        fewer = replace(weaker.scales, autoregressive=share * weaker.scales.first, before=None)
        drawn = search.solve(drawn, fewer)
        start = Candidate(
            what=f"{what}, scale {fewer.autoregressive:.3g}", network=drawn.network(), scales=fewer, layers=HIDDEN,
            hidden_first=True, regressions=drawn,
        )  # fmt: skip
        found.append(search.scored(start))
    best = best_of(found)
    return [best, search.trained(replace(best, what=f"{what}, stage 1"))]


def _begun_again(search: Search, weaker: Candidate, top: Candidate) -> list[Candidate]:
    """Hidden units from other random weights: which are best after one stage mostly are so in the end."""
    found: list[Candidate] = []
    start, what = top, f"{top.kind}, stage 1 from other weights"
    while len(found) < _AGAIN and top.stages == 1 and not search.is_late:
        if top.hidden_first:
            drawn = search.solve(_behind(search, weaker.scales, top.layers, start.regressions), top.scales)
            start = replace(top, what=what, network=drawn.network(), regressions=drawn)
        else:
            start = _with(search, weaker, top.layers, top.column_mixtures, what)
        found.append(search.trained(start))
    return found


def _until_settled(search: Search, best: Candidate) -> Candidate:
    """More stages, each at a lower rate, as long as held-out bounds rise; with a stronger prior on weights from hidden
    units if the first of them is better for it.
    """
    if not is_auto(search.settings.epochs):
        return best
    failed, shares = 0, (1.0, _STRONGER) if best.layers else (1.0,)
    for number in range(best.stages + 1, MOST_STAGES + 1):
        option = best_of([_gone_on(search, best, number, share) for share in shares])
        gain, best, shares = option.mean - best.mean, best_of([best, option]), (1.0,)
        failed = failed + 1 if gain < _RISES * abs(best.mean) else 0
        if search.is_late or failed == 2:  # one may have been bad luck
            break
    return best


def _gone_on(search: Search, best: Candidate, number: int, share: float) -> Candidate:
    """A candidate after one more stage, with a share of its scale for hidden units."""
    scales = replace(best.scales, hidden=share * best.scales.hidden)
    what = f"{best.kind}, stage {number}" + (f", their scale {scales.hidden:.3g}" if share != 1.0 else "")
    return search.trained(replace(best, what=what, scales=scales), number)
