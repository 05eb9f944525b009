"""What an SBNDensity chooses by itself: scales of its prior, hidden units, per-column mixtures; on held-out rows.

Autoregressive weights come first. Hidden units and per-column mixtures are tried on top of the best, and
stay if the validation log-likelihood improves.
"""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone

from sbnet.estimators import _learning
from sbnet.estimators._autoregressive import Autoregressive, Drawn, Scales, first_of, refitted
from sbnet.estimators._candidates import LEARNED, Candidate, Search, best_of
from sbnet.estimators._paths import PATH, choose_autoregressive
from sbnet.estimators._priors import is_auto
from sbnet.estimators._report import Report
from sbnet.estimators._rows import Rows, place
from sbnet.estimators._stages import GENTLE, MOST, last_stage
from sbnet.inference import check_differentiable, infer_many
from sbnet.learning import FitResult
from sbnet.learning.regressions import without_edges
from sbnet.model.network import Network

if TYPE_CHECKING:
    from sbnet.estimators.density import SBNDensity

HIDDEN, COLUMN_MIXTURES = 8, 1
"""Sizes that are tried."""
_NEAR, _NEARLY, _LATE, _RISES = 2e-3, 4e-3, 1e-3, 1e-4
"""Shares of a bound: how far below others a candidate may be after one stage to go on, or to be tried with what it does
not have, or to have a second stage; what a stage must gain.
"""
_FEWER = (1.0, 0.7, 0.5)  # shares of the scale that autoregressive edges have without hidden units
_AGAIN = 2  # other random weights to begin with
_STRONGER = 0.25  # the share of the scale of hidden units that is tried beside it


def learn(density: SBNDensity, rows: Rows, generator: np.random.Generator) -> tuple[FitResult, Report]:
    """Choose on held-out rows, then learn from all."""
    begin, density = time.monotonic(), _bold(density)
    _learning.optimizer(density)  # refuse now, not after a path
    check_differentiable(_learning.solver(density))
    search = Search.of(density, rows, generator)
    (best, scales, autoregressive), weaker, order = choose_autoregressive(search)
    chosen = _choose_units(search, weaker.scales, weaker.autoregressive, best)
    if chosen is not best:
        best, scales, autoregressive = chosen, chosen.scales or weaker.scales, weaker.autoregressive
    result = _learn_all(search, rows.named(search.rows.names), scales, autoregressive, best)
    report = Report(
        scales.autoregressive, scales.hidden, scales.before, scales.spread, order, best.hidden, best.hidden_first,
        best.column_mixtures, result.network.n_edges, len(search.held.cells), tuple(search.trials), best.stages,
        best.rate, len(result.bounds) if _climbs(rows, best) else 0, time.monotonic() - begin,
    )  # fmt: skip
    if density.verbose:
        print(report, file=sys.stderr)
    return result, report


def learn_alike(density: SBNDensity, rows: Rows, generator: np.random.Generator, report: Report) -> FitResult:
    """From all rows, what was chosen before for the same table; in the order of these rows."""
    density, every = _bold(density), rows
    if len(rows.cells) > LEARNED:  # as while choosing, some are enough for all but the last epochs
        rows = rows.keep(np.sort(generator.permutation(len(rows.cells))[:LEARNED]))
    search = Search(density, rows, rows, generator)
    scales = Scales(report.autoregressive_scale, report.first_scale, report.hidden_scale, report.autoregressive_spread)
    plain = replace(scales, autoregressive=scales.first, before=None)
    autoregressive = first_of(rows) if density.autoregressive else None
    if autoregressive is not None:
        for scale in (*(s for s in PATH if s < scales.first), scales.first):
            autoregressive = search.solve(autoregressive, replace(plain, autoregressive=scale))
        autoregressive = search.solve(autoregressive, scales) if scales.adaptive else autoregressive
    network = _made(search, autoregressive, report.layers, report.column_mixtures)
    if report.hidden_first:
        alone = _hidden_alone(search, scales, report.layers)
        network = Drawn.of(density, rows, alone, generator, autoregressive).solved(plain, search.threads).network()
        if report.column_mixtures:
            network = _learning.switched(density, rows, generator, network, report.column_mixtures)
    for number in range(1, report.stages + 1):
        network = search.stage(scales, network, number, report.rate)
    made = Candidate("", network, np.zeros(1), report.layers, report.column_mixtures, rate=report.rate)
    return _learn_all(search, every, scales, autoregressive, made)


def _bold(density: SBNDensity) -> SBNDensity:
    """Beside autoregressive weights that have been found already, hidden units must not be shy at first."""
    bold: SBNDensity = clone(density)
    return bold.set_params(weight_scale=1.0) if is_auto(density.weight_scale) else bold


def _choose_units(search: Search, scales: Scales, autoregressive: Autoregressive | None, best: Candidate) -> Candidate:
    """Hidden units and per-column mixtures, if given; otherwise those that improve the validation log-likelihood."""
    density, holes = search.density, bool((search.rows.cells < 0).any())
    wide = _is_wide(search.rows)
    free, auto = is_auto(density.hidden), is_auto(density.column_mixtures) and bool(density.autoregressive) and not wide
    layers = () if free else _learning.layers(density.hidden)
    column_mixtures = 0 if is_auto(density.column_mixtures) else _learning.column_mixtures_of(density)
    if layers or column_mixtures:
        best = _climbed(
            search, scales, _made(search, autoregressive, layers, column_mixtures), layers, column_mixtures, "as given"
        )
    elif holes:
        best = _climbed(search, scales, best.network, layers, column_mixtures, "autoregressive edges, missing values")
    options: list[Candidate] = []
    drawn: Drawn | None = None
    if free:
        many = (HIDDEN,)
        before = bool(density.autoregressive) and not column_mixtures and (wide or not holes)
        start, above = _made(search, autoregressive, many, column_mixtures), None if before else best
        options.append(_climbed(search, scales, start, many, column_mixtures, "hidden units", above))
        if before and not search.is_late:
            first, drawn = _hidden_before(search, scales, autoregressive, many)
            options += first
    if auto and not search.is_late:
        start, above = (
            _made(search, autoregressive, layers, COLUMN_MIXTURES),
            None if any(o.pays(best) for o in options) else best,
        )
        options.append(_climbed(search, scales, start, layers, COLUMN_MIXTURES, "per-column mixtures", above))
    if not options:
        return _until_settled(search, scales, best) if best.stages else best
    top = best_of(options)
    if free and top.hidden and top.pays(best):
        options += _begun_again(search, scales, autoregressive, drawn, top, column_mixtures)
        top = best_of(options)
    if auto and free and top.pays(best):
        top = _with_both(search, scales, options)
    if top.mean > best.mean - _NEAR * abs(best.mean):
        top = _until_settled(search, scales, top)
    return top if top.pays(best) else best


def _is_wide(rows: Rows) -> bool:
    """Are there few rows for so many columns? Then autoregressive edges would explain all that hidden units could, and
    there is nothing to tell a mixture of regressions from one.
    """
    return len(rows.cells) < 25 * len(rows.names)


def _with_both(search: Search, scales: Scales, options: list[Candidate]) -> Candidate:
    """Hidden units and per-column mixtures together: the best without the others, and if that improves, the next."""
    best = top = best_of(options)
    for option in sorted(options, key=lambda candidate: -candidate.mean)[:2]:
        if search.is_late or option.mean < top.mean - _NEARLY * abs(top.mean):
            break
        made = (_with_mixtures if option.hidden else _with_hidden)(search, scales, option)
        if 0.0 <= top.mean - made.mean < _LATE * abs(top.mean):  # the more there is to learn, the longer it takes
            made = _gone_on(search, replace(made, scales=made.scales or scales), 2, 1.0)
        best = best_of([best, made])
        if best is top:
            break
    return best


def _with_mixtures(search: Search, scales: Scales, best: Candidate) -> Candidate:
    """Per-column mixtures on top of hidden units that have learned already."""
    network = _learning.switched(search.density, search.rows, search.generator, best.network, COLUMN_MIXTURES)
    made = _climbed(search, scales, network, best.hidden, COLUMN_MIXTURES, f"{_kind(best)}, and per-column mixtures")
    return replace(made, hidden_first=best.hidden_first)


def _with_hidden(search: Search, scales: Scales, best: Candidate) -> Candidate:
    """Hidden units on top of per-column mixtures that have learned already."""
    network = _learning.crowned(search.density, search.rows, search.generator, best.network, HIDDEN)
    return _climbed(search, scales, network, (HIDDEN,), best.column_mixtures, f"{_kind(best)}, and hidden units")


def _kind(candidate: Candidate) -> str:
    return candidate.what.split(", stage")[0]


def _made(
    search: Search, autoregressive: Autoregressive | None, hidden: tuple[int, ...], column_mixtures: int
) -> Network:
    """The autoregressive network with hidden units and mixtures that have not learned anything yet."""
    return _learning.start(
        search.density,
        search.rows,
        search.generator,
        hidden=hidden,
        column_mixtures=column_mixtures,
        autoregressive=autoregressive,
    )


def _hidden_before(
    search: Search, scales: Scales, autoregressive: Autoregressive | None, hidden: tuple[int, ...]
) -> tuple[list[Candidate], Drawn]:
    """Hidden units first, and then autoregressive edges for what they leave: fewer, so that a stronger prior may be
    better. The regressions behind the edges come last.
    """
    alone, what = _hidden_alone(search, scales, hidden), "hidden units before autoregressive edges"
    drawn = Drawn.of(search.density, search.rows, alone, search.generator, autoregressive)
    made: dict[str, Any] = {"hidden": hidden, "hidden_first": True}
    found: list[Candidate] = []
    for share in _FEWER:
        fewer = replace(scales, autoregressive=share * scales.first, before=None)
        drawn = search.solve(drawn, fewer)
        found.append(search.scored(f"{what}, scale {fewer.autoregressive:.3g}", drawn.network(), scales=fewer, **made))
    best = best_of(found)
    return [best, _climbed_before(search, best, f"{what}, stage 1")], drawn


def _climbed_before(search: Search, begun: Candidate, what: str) -> Candidate:
    assert begun.scales is not None
    climbed = _climbed(search, begun.scales, begun.network, begun.hidden, 0, what)
    return replace(climbed, hidden_first=True, scales=begun.scales)


def _begun_again(
    search: Search,
    scales: Scales,
    autoregressive: Autoregressive | None,
    drawn: Drawn | None,
    top: Candidate,
    column_mixtures: int,
) -> list[Candidate]:
    """The same hidden units from other random weights: which are best after one stage mostly are so in the end."""
    found: list[Candidate] = []
    what = f"{_kind(top)}, stage 1 from other weights"
    while len(found) < _AGAIN and top.stages == 1 and not search.is_late:
        if top.hidden_first:
            assert top.scales is not None
            alone = _hidden_alone(search, scales, top.hidden)
            drawn = Drawn.of(search.density, search.rows, alone, search.generator, drawn)
            drawn = search.solve(drawn, top.scales)
            found.append(_climbed_before(search, replace(top, network=drawn.network()), what))
        else:
            found.append(
                _climbed(
                    search,
                    scales,
                    _made(search, autoregressive, top.hidden, column_mixtures),
                    top.hidden,
                    column_mixtures,
                    what,
                )
            )
    return found


def _hidden_alone(search: Search, scales: Scales, hidden: tuple[int, ...]) -> Network:
    density, rows = search.density, search.rows
    alone = _learning.start(density, rows, search.generator, hidden=hidden, column_mixtures=0, edges=False)
    return search.stage(replace(scales, before=None), alone)


def _climbed(
    search: Search,
    scales: Scales,
    network: Network,
    hidden: tuple[int, ...],
    column_mixtures: int,
    what: str,
    above: Candidate | None = None,
) -> Candidate:
    """One stage; and if that ends below another candidate, one that goes gently: large steps have undone too much."""
    density, made = search.density, {"hidden": hidden, "column_mixtures": column_mixtures, "stages": 1}
    found = search.scored(what, search.stage(scales, network), **made)
    if above is None or found.mean > above.mean or not is_auto(density.epochs):
        return found
    gentle = search.stage(scales, network, rate=GENTLE)
    return best_of([found, search.scored(f"{what}, gently", gentle, rate=GENTLE, **made)])


def _until_settled(search: Search, scales: Scales, best: Candidate) -> Candidate:
    """More stages, each at a lower rate, as long as held-out bounds rise; with a stronger prior on weights from hidden
    units if the first of them is better for it.
    """
    if not is_auto(search.density.epochs):
        return best
    best, failed = replace(best, scales=best.scales or scales), 0
    shares = (1.0, _STRONGER) if best.hidden else (1.0,)
    for number in range(best.stages + 1, MOST + 1):
        option = best_of([_gone_on(search, best, number, share) for share in shares])
        gain, best, shares = option.mean - best.mean, best_of([best, option]), (1.0,)
        failed = failed + 1 if gain < _RISES * abs(best.mean) else 0
        if search.is_late or failed == 2:  # one may have been bad luck
            break
    return best


def _gone_on(search: Search, best: Candidate, number: int, share: float) -> Candidate:
    """A candidate after one more stage, with a share of its scale for hidden units."""
    assert best.scales is not None
    scales = replace(best.scales, hidden=share * best.scales.hidden)
    network = search.stage(scales, best.network, number, best.rate)
    what = f"{_kind(best)}, stage {number}" + (f", their scale {scales.hidden:.3g}" if share != 1.0 else "")
    found = search.scored(what, network)
    return replace(best, network=network, bounds=found.bounds, stages=number, scales=scales)


def _learn_all(
    search: Search, rows: Rows, scales: Scales, autoregressive: Autoregressive | None, best: Candidate
) -> FitResult:
    """From what was chosen, with all rows."""
    density, network = search.density, best.network
    if autoregressive is not None and not _climbs(rows, best):
        network = _learning.start(
            density, rows, search.generator, hidden=(), column_mixtures=0,
            autoregressive=refitted(autoregressive, rows, scales, search.threads),
        )  # fmt: skip
        states = place(network, rows.cells, rows.names)
        bound = infer_many(network, states, threads=search.threads, progress=False).bound
        mean = np.array([np.average(bound, weights=rows.weights)])
        return FitResult(_sparse(network), mean, None, None, 1, False, time.monotonic() - search.begin)
    result = last_stage(density, rows, scales, network, search.generator, best.rate)
    return replace(result, network=_sparse(result.network))


def _sparse(network: Network) -> Network:
    """Without edges of weight zero."""
    return without_edges(network, network.weight == 0.0)


def _climbs(rows: Rows, best: Candidate) -> bool:
    """Is there more to learn than regressions of observed cells?"""
    return bool(best.hidden or best.column_mixtures) or bool((rows.cells < 0).any())
