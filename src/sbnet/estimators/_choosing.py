"""What a density chooses by itself on validation rows: scales of its prior, hidden units, per-column mixtures.

Autoregressive weights come first: their regressions are convex, so that a regularisation path of scales, each started
from the last, costs little more than one. Hidden units and per-column mixtures are tried on top of the best, and
stay if the validation log-likelihood improves. With several orders of the columns, each is another model of the same
table: what is chosen for the first is taken for the others.
"""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from typing import Any

import numpy as np

from sbnet.estimators import _learning
from sbnet.estimators._autoregressive import Autoregressive, Scales
from sbnet.estimators._rows import Rows, place
from sbnet.estimators._search import GENTLE, LEARNED, MOST_STAGES, Candidate, Report, Search, best_of
from sbnet.estimators.settings import Settings, is_auto
from sbnet.inference import infer_many
from sbnet.learning import FitResult
from sbnet.learning.regressions import without_edges
from sbnet.learning.results import Trial
from sbnet.learning.state_networks import FEW_COSTS, StatesReport, learn_states
from sbnet.model.network import Network

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


def learn(settings: Settings, rows: Rows, generator: np.random.Generator) -> list[tuple[FitResult, Any]]:
    """The network of the table as it stands, and others with its columns in random orders, chosen alike."""
    found = [learn_one(settings, rows, generator)]
    report = found[0][1]
    for _ in range(1, settings.orders):
        found.append(learn_one(settings, rows.shuffled(generator), generator, report))
    return found


def learn_one(
    settings: Settings, rows: Rows, generator: np.random.Generator, report: Any = None
) -> tuple[FitResult, Any]:
    """A start and all epochs, from one generator; and what was chosen, now or in an earlier report."""
    if rows.variables:
        return _learn_states(settings, rows, generator, report)
    _learning.check_size(settings, len(rows.names))
    choosing = is_auto(settings.prior) and len(rows.cells) >= FEWEST
    if report is None and not choosing:
        return _learning.learn(settings, _learning.start(settings, rows, generator), rows, generator), None
    if is_auto(settings.weight_scale):  # beside weights that have been found already, small ones would stay small
        settings = replace(settings, weight_scale=1.0)
    if report is None:
        return _learn_chosen(settings, rows, generator)
    return _learn_alike(settings, rows, generator, report), report


def _learn_states(
    settings: Settings, rows: Rows, generator: np.random.Generator, report: StatesReport | None
) -> tuple[FitResult, StatesReport]:
    """Columns of any states, in the order with the best validation log-likelihood, or with a report in theirs."""
    begin, trials, threads = time.monotonic(), list[Trial](), _learning.threads(settings)
    seed, some = int(generator.integers(2**62)), rows.keep(np.sort(generator.permutation(len(rows.cells))[:_COMPARED]))
    wide = len(some.cells) * sum(len(column.states) for column in rows.variables.values()) ** 2 >= _WIDE
    choosing = report is None and not wide and len(rows.cells) >= FEWEST
    orders = {AS_GIVEN: some, **some.orders(generator)} if choosing else {}
    for name, others in orders.items():
        clock, folds = time.monotonic(), np.random.default_rng(seed)  # the same for all
        _, found = learn_states(others.with_states(), folds, threads=threads, interactions=False, costs=FEW_COSTS)
        trials.append(Trial(f"columns {name}", found.held_out, time.monotonic() - clock))
    if orders:
        best = max(range(len(trials)), key=lambda k: trials[k].bound)
        if trials[best].bound - trials[0].bound > _CHANCE / np.sqrt(len(some.cells)):
            rows = rows.named(list(orders.values())[best].names)
    network, chosen = learn_states(rows.with_states(), np.random.default_rng(seed), threads=threads, interactions=False)
    chosen = replace(chosen, trials=tuple(trials))
    if settings.verbose:
        print(chosen, file=sys.stderr)
    return FitResult(network, np.array([chosen.held_out]), None, None, 1, False, time.monotonic() - begin), chosen


def _learn_chosen(settings: Settings, rows: Rows, generator: np.random.Generator) -> tuple[FitResult, Report]:
    """Choose on held-out rows, then learn from all."""
    search = Search.of(settings, rows, generator)
    best, weaker, order = _choose_autoregressive(search)
    best = _choose_units(search, weaker, best)
    result = _learn_all(search, rows.named(search.rows.names), best)
    scales = best.scales
    report = Report(
        scales.autoregressive, scales.hidden, scales.before, scales.spread, order, best.hidden, best.hidden_first,
        best.column_mixtures, result.network.n_edges, len(search.held.cells), tuple(search.trials), best.stages,
        best.rate, len(result.bounds) if _needs_training(rows, best) else 0, time.monotonic() - search.begin,
    )  # fmt: skip
    if settings.verbose:
        print(report, file=sys.stderr)
    return result, report


def _learn_alike(settings: Settings, rows: Rows, generator: np.random.Generator, report: Report) -> FitResult:
    """From all rows, what was chosen before for the same table; in the order of these rows."""
    every = rows
    if len(rows.cells) > LEARNED:  # as while choosing, some are enough for all but the last epochs
        rows = rows.keep(np.sort(generator.permutation(len(rows.cells))[:LEARNED]))
    search = Search(settings, rows, rows, generator)
    scales = Scales(report.autoregressive_scale, report.first_scale, report.hidden_scale, report.autoregressive_spread)
    plain = replace(scales, autoregressive=scales.first, before=None)
    regressions = Autoregressive.of(rows) if settings.autoregressive else None
    if regressions is not None:
        for scale in (*(s for s in PATH if s < scales.first), scales.first):
            regressions = search.solve(regressions, replace(plain, autoregressive=scale))
        regressions = search.solve(regressions, scales) if scales.adaptive else regressions
    network = search.start(regressions, hidden=report.layers, column_mixtures=report.column_mixtures)
    if report.hidden_first:
        alone = _hidden_alone(search, scales, report.layers)
        network = (
            Autoregressive.behind(settings, rows, alone, generator, regressions).solved(plain, search.threads).network()
        )
        if report.column_mixtures:
            network = _learning.with_mixtures(settings, rows, generator, network, report.column_mixtures)
    for number in range(1, report.stages + 1):
        network = search.stage(scales, network, number, report.rate)
    made = Candidate(
        "", network, scales, hidden=report.layers, column_mixtures=report.column_mixtures, rate=report.rate,
        autoregressive=regressions,
    )  # fmt: skip
    return _learn_all(search, every, made)


def _choose_autoregressive(search: Search) -> tuple[Candidate, Candidate, str]:
    """The best scale for autoregressive weights, or each weight by its own; the weakest prior that is hardly worse; and
    the order of the columns, in which the search has its rows from now on.
    """
    if not search.settings.autoregressive:
        network = search.start(hidden=(), column_mixtures=0)
        alone = search.scored(Candidate("independent columns", network, Scales(1.0)))
        return alone, alone, AS_GIVEN
    rows, columns = search.rows.cells.shape
    every = min(max(round(rows * columns * columns / _WIDE), 1), max(columns // _SOME, 1))
    found: list[Candidate] = []
    for scale in PATH:
        start = found[-1].autoregressive if found else Autoregressive.of(search.rows, every)
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
        found.append(_solved(search, other.autoregressive, scales))
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
        path.append(_solved(search, path[-1].autoregressive, scales))
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
    return search.scored(Candidate(what, network, scales, autoregressive=regressions))


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
    settings, missing = search.settings, bool((search.rows.cells < 0).any())
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
        best = search.trained(Candidate(what, best.network, weaker.scales))
    options: list[Candidate] = []
    drawn: Autoregressive | None = None
    if free:
        before = bool(settings.autoregressive) and not mixtures and (wide or not missing)
        start = _with(search, weaker, HIDDEN, mixtures, "hidden units")
        options.append(_trained(search, start, None if before else best))
        if before and not search.is_late:
            first, drawn = _hidden_before(search, weaker)
            options += first
    if auto and not search.is_late:
        start = _with(search, weaker, layers, COLUMN_MIXTURES, "per-column mixtures")
        options.append(_trained(search, start, None if any(o.improves(best) for o in options) else best))
    if not options:
        return _until_settled(search, best) if best.stages else best
    top = best_of(options)
    if free and top.hidden and top.improves(best):
        options += _begun_again(search, weaker, drawn, top, mixtures)
        top = best_of(options)
    if auto and free and top.improves(best):
        top = _with_both(search, weaker.scales, options)
    if top.mean > best.mean - _NEAR * abs(best.mean):
        top = _until_settled(search, top)
    return top if top.improves(best) else best


def _with(search: Search, weaker: Candidate, hidden: tuple[int, ...], mixtures: int, what: str) -> Candidate:
    """The autoregressive network with hidden units and mixtures that have not learned anything yet."""
    network = search.start(weaker.autoregressive, hidden=hidden, column_mixtures=mixtures)
    return Candidate(what, network, weaker.scales, hidden=hidden, column_mixtures=mixtures)


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
        add, count = (_learning.with_mixtures, COLUMN_MIXTURES) if option.hidden else (_learning.with_hidden, *HIDDEN)
        network = add(search.settings, search.rows, search.generator, option.network, count)
        what = f"{option.kind}, and {'per-column mixtures' if option.hidden else 'hidden units'}"
        mixtures, first = COLUMN_MIXTURES if option.hidden else option.column_mixtures, option.hidden_first
        both = Candidate(what, network, scales, hidden=HIDDEN, column_mixtures=mixtures, hidden_first=first)
        made = search.trained(both)
        if 0.0 <= top.mean - made.mean < _LATE * abs(top.mean):  # the more there is to learn, the longer it takes
            made = _gone_on(search, made, 2, 1.0)
        best = best_of([best, made])
        if best is top:
            break
    return best


def _hidden_before(search: Search, weaker: Candidate) -> tuple[list[Candidate], Autoregressive]:
    """Hidden units first, and then autoregressive edges for what they leave: fewer, so that a stronger prior may be
    better. The regressions behind the edges come last.
    """
    alone, what = _hidden_alone(search, weaker.scales, HIDDEN), "hidden units before autoregressive edges"
    drawn = Autoregressive.behind(search.settings, search.rows, alone, search.generator, weaker.autoregressive)
    found: list[Candidate] = []
    for share in _FEWER:
        fewer = replace(weaker.scales, autoregressive=share * weaker.scales.first, before=None)
        drawn, named = search.solve(drawn, fewer), f"{what}, scale {fewer.autoregressive:.3g}"
        found.append(search.scored(Candidate(named, drawn.network(), fewer, hidden=HIDDEN, hidden_first=True)))
    best = best_of(found)
    return [best, search.trained(replace(best, what=f"{what}, stage 1"))], drawn


def _begun_again(
    search: Search, weaker: Candidate, drawn: Autoregressive | None, top: Candidate, mixtures: int
) -> list[Candidate]:
    """Hidden units from other random weights: which are best after one stage mostly are so in the end."""
    found: list[Candidate] = []
    what = f"{top.kind}, stage 1 from other weights"
    while len(found) < _AGAIN and top.stages == 1 and not search.is_late:
        if top.hidden_first:
            alone = _hidden_alone(search, weaker.scales, top.hidden)
            drawn = Autoregressive.behind(search.settings, search.rows, alone, search.generator, drawn)
            drawn = search.solve(drawn, top.scales)
            start = replace(top, what=what, network=drawn.network())
        else:
            start = _with(search, weaker, top.hidden, mixtures, what)
        found.append(search.trained(start))
    return found


def _hidden_alone(search: Search, scales: Scales, hidden: tuple[int, ...]) -> Network:
    alone = search.start(hidden=hidden, column_mixtures=0, edges=False)
    return search.stage(replace(scales, before=None), alone)


def _until_settled(search: Search, best: Candidate) -> Candidate:
    """More stages, each at a lower rate, as long as held-out bounds rise; with a stronger prior on weights from hidden
    units if the first of them is better for it.
    """
    if not is_auto(search.settings.epochs):
        return best
    failed, shares = 0, (1.0, _STRONGER) if best.hidden else (1.0,)
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


def _learn_all(search: Search, rows: Rows, best: Candidate) -> FitResult:
    if best.autoregressive is not None and not _needs_training(rows, best):
        regressions = best.autoregressive.refitted(rows, best.scales, search.threads)
        network = search.start(regressions, hidden=(), column_mixtures=0)
        states = place(network, rows.cells, rows.names)
        bound = infer_many(network, states, threads=search.threads, progress=False).bound
        mean = np.array([np.average(bound, weights=rows.weights)])
        sparse = without_edges(network, network.weight == 0.0)
        return FitResult(sparse, mean, None, None, 1, False, time.monotonic() - search.begin)
    result = search.last_stage(rows, best)
    return replace(result, network=without_edges(result.network, result.network.weight == 0.0))


def _needs_training(rows: Rows, best: Candidate) -> bool:
    """Is there more to learn than regressions of observed cells?"""
    return bool(best.hidden or best.column_mixtures) or bool((rows.cells < 0).any())
