"""What an SBNDensity chooses by itself: scales of its prior, hidden units, switches; on rows that are held out.

Lateral weights come first. Their regressions are convex, so a path of scales, each started from the last, costs little
more than one of them. Hidden units and switches are then tried on top of the best, and stay if they pay.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone

from sbnet import checks
from sbnet._types import FloatArray
from sbnet.estimators import _learning
from sbnet.estimators._lateral import Lateral, Scales, first_of, refitted, with_hidden_columns
from sbnet.estimators._priors import is_auto, is_lateral
from sbnet.estimators._report import Report, Trial
from sbnet.estimators._rows import Rows, place
from sbnet.inference import check_climber, infer_many
from sbnet.learning import Adam, FitResult, Laplace
from sbnet.learning.priors import ByEdge
from sbnet.learning.regressions import without_edges
from sbnet.network import Network

if TYPE_CHECKING:
    from sbnet.estimators.density import SBNDensity

HIDDEN, SWITCHES, HIDDEN_SCALE = 8, 1, 2.0
"""Sizes that are tried, and the scale of the weights from hidden units."""
_SHARE, _LEAST, _HELD, _LEARNED = 0.1, 20, 3_000, 20_000
"""The share of rows held out, the least number, the largest, and the most rows to learn from while choosing."""
_PATH = tuple(2.0**k for k in range(-5, 3))
_STAGE, _STAGES, _LAST = 8, 5, 6
"""Epochs of a stage, whose rate falls to nothing; stages as long as held-out bounds rise; epochs over all rows."""
_STEPS = 200  # of a stage, at least
_RATE, _GENTLE, _SLOW, _SLOWER = 0.1, 0.03, 0.3, 0.1
"""The rate of the first stage, a gentle one, and how much slower lateral weights go in
either: they start where they belong."""
_NEAR, _RISES, _FLAT, _FAR = 2e-3, 2e-4, 5e-4, 1e-2
"""Shares of a bound: how far below others a candidate may be after one stage to go on; what a stage must gain; how far
below the best a weaker prior may be to be taken for it, which leaves more to hidden units and switches to find; how far
below the best a prior is that ends the path.
"""
_PATIENCE = 400.0  # seconds of processor time after which nothing new is tried
_PAYS = 2.0  # standard errors of the mean gain of held-out rows


@dataclass(frozen=True, eq=False)
class _Candidate:
    """A network, the bound of each held-out row, and what it is made of."""

    what: str
    network: Network
    bounds: FloatArray
    hidden: tuple[int, ...] = ()
    switches: int = 0
    hidden_first: bool = False
    stages: int = 0
    rate: float = _RATE
    scales: Scales | None = None  # if other than those it was begun with

    def gain(self, other: _Candidate) -> tuple[float, float]:
        """By how much it is better on average, in nats, and the standard error of that."""
        difference = self.bounds - other.bounds
        return float(difference.mean()), float(difference.std() / np.sqrt(len(difference)))

    def pays(self, other: _Candidate) -> bool:
        mean, error = self.gain(other)
        return mean > _PAYS * error and mean > 1e-3


_Choice = tuple[_Candidate, Scales, Any]
"""A lateral network, its scales, and the regressions behind it, if it has lateral edges."""


@dataclass
class _Search:
    """The rows to learn from while choosing, those held out, and what has been tried."""

    density: SBNDensity
    rows: Rows
    held: Rows
    generator: np.random.Generator
    begin: float = field(default_factory=time.monotonic)
    spent: float = field(default_factory=time.process_time)
    trials: list[Trial] = field(default_factory=list)
    clock: float = field(default_factory=time.monotonic)

    @property
    def is_late(self) -> bool:
        """Has the choice taken long enough?"""
        return time.process_time() - self.spent > _PATIENCE

    def scored(self, what: str, network: Network, **made_of: Any) -> _Candidate:
        """A candidate, entered in the list."""
        bounds = self.bounds(network)
        now = time.monotonic()
        self.trials.append(Trial(what, float(bounds.mean()), now - self.clock))
        self.clock = now
        if self.density.verbose:
            print(f"  {what}: held-out bound {bounds.mean():.4f}", file=sys.stderr)
        return _Candidate(what, network, bounds, **made_of)

    def bounds(self, network: Network) -> FloatArray:
        states = place(network, self.held.cells, self.held.names)
        solver = _learning.solver_for(self.density, network, self.held.names)
        threads = _learning.threads(self.density)
        return infer_many(network, states, solver=solver, threads=threads, progress=False).bound


def learn(density: SBNDensity, rows: Rows, generator: np.random.Generator) -> tuple[FitResult, Report]:
    """Choose on held-out rows, then learn from all."""
    begin, density = time.monotonic(), _bold(density)
    _learning.optimizer(density)  # refuse now, not after a path
    check_climber(_learning.solver(density))
    search = _divided(density, rows, generator)
    (best, scales, lateral), weaker = _choose_lateral(search)
    chosen = _choose_units(search, weaker[1], weaker[2], best)
    if chosen is not best:
        best, scales, lateral = chosen, chosen.scales or weaker[1], weaker[2]
    result = _learn_all(search, rows, scales, lateral, best)
    report = Report(
        scales.lateral, HIDDEN_SCALE, scales.before, best.hidden, best.hidden_first, best.switches,
        result.network.n_edges, len(search.held.cells), tuple(search.trials), best.stages, best.rate,
        len(result.bounds) if _climbs(rows, best) else 0, time.monotonic() - begin,
    )  # fmt: skip
    if density.verbose:
        print(report, file=sys.stderr)
    return result, report


def learn_alike(density: SBNDensity, rows: Rows, generator: np.random.Generator, report: Report) -> FitResult:
    """From all rows, what was chosen before for the same table in another order."""
    density, every = _bold(density), rows
    if len(rows.cells) > _LEARNED:  # as while choosing, some are enough for all but the last epochs
        rows = rows.keep(np.sort(generator.permutation(len(rows.cells))[:_LEARNED]))
    search, scales = _Search(density, rows, rows, generator), Scales(report.lateral_scale, report.first_scale)
    lateral = first_of(rows) if density.lateral else None
    if lateral is not None:
        for scale in (*(s for s in _PATH if s < scales.first), scales.first):
            lateral = lateral.solved(Scales(scale), _learning.threads(density))
        lateral = lateral.solved(scales, _learning.threads(density)) if scales.adaptive else lateral
    network = _made(search, lateral, report.layers, report.switches)
    if report.hidden_first:
        alone = _hidden_alone(search, scales, report.layers)
        network = with_hidden_columns(density, rows, alone, Scales(scales.first), HIDDEN_SCALE, generator)
        if report.switches:
            network = _learning.switched(density, rows, generator, network, report.switches)
    for number in range(1, report.stages + 1):
        network = _stage(
            search, rows, scales, network, _epochs(density, rows, _STAGE), report.rate / number, report.rate
        ).network
    made = _Candidate("", network, np.zeros(1), report.layers, report.switches, rate=report.rate)
    return _learn_all(search, every, scales, lateral, made)


def _bold(density: SBNDensity) -> SBNDensity:
    """Beside lateral weights that have been found already, hidden units must not be shy at first."""
    bold: SBNDensity = clone(density)
    return bold.set_params(weight_scale=1.0) if is_auto(density.weight_scale) else bold


def _divided(density: SBNDensity, rows: Rows, generator: np.random.Generator) -> _Search:
    """Rows to learn from and rows to hold out; of long tables some are enough to choose by."""
    n = len(rows.cells)
    order = generator.permutation(n)
    held = min(max(_LEAST, round(_SHARE * n)), _HELD)
    out, kept = np.sort(order[:held]), np.sort(order[held : held + _LEARNED])
    return _Search(density, rows.keep(kept), rows.keep(out), generator)


def _choose_lateral(search: _Search) -> tuple[_Choice, _Choice]:
    """The best scale for lateral weights, along a path from strong to weak priors, or each weight by its own; and the
    weakest prior that is hardly worse.
    """
    density, rows = search.density, search.rows
    make = partial(_learning.start, density, rows, hidden=(), switches=0)
    if not density.lateral:
        network = make(search.generator)
        alone = search.scored("independent columns", network), Scales(1.0), None
        return alone, alone
    lateral, threads = first_of(rows), _learning.threads(density)
    found: list[_Choice] = []
    for scale in _PATH:
        scales = Scales(scale)
        lateral = lateral.solved(scales, threads)
        network = make(search.generator, lateral=lateral)
        found.append((search.scored(f"lateral edges, scale {scale:.3g}", network), scales, lateral))
        if _falls([c.bounds.mean() for c, _, _ in found]):
            break
    best = max(found, key=lambda f: f[0].bounds.mean())
    tried = [Scales(best[1].lateral / np.sqrt(2.0)), Scales(best[1].lateral, best[1].lateral)]
    tried.append(Scales(0.5 * best[1].lateral, best[1].lateral))
    for scales in tried:  # half a step back, which matters where the path is steep; strong weights held less
        other = best[2].solved(scales, threads)
        what = "strong weights held less" if scales.adaptive else "lateral edges"
        candidate = search.scored(f"{what}, scale {scales.lateral:.3g}", make(search.generator, lateral=other))
        found.append((candidate, scales, other))
    first = max(found, key=lambda f: f[0].bounds.mean())
    least = first[0].bounds.mean() * (1.0 + _FLAT)
    plain = [f for f in found if not f[1].adaptive and f[0].bounds.mean() >= least]
    return first, max(plain, key=lambda f: f[1].lateral) if plain else first


def _falls(bounds: list[float]) -> bool:
    """Have the last two been below the best, or the last one far below?"""
    best = max(bounds)
    return bounds[-1] < best * (1.0 + _FAR) if max(bounds[-2:]) == best else len(bounds) > 2


def _choose_units(search: _Search, scales: Scales, lateral: Lateral | None, best: _Candidate) -> _Candidate:
    """Hidden units and switches, if they were given; otherwise those that pay."""
    density = search.density
    wide = _is_wide(search.rows)
    free, auto = is_auto(density.hidden), is_auto(density.switches) and bool(density.lateral) and not wide
    layers = () if free else _learning.layers(density.hidden)
    switches = 0 if is_auto(density.switches) else _learning.switches_of(density)
    if layers or switches:
        best = _climbed(search, scales, _made(search, lateral, layers, switches), layers, switches, "as given")
    elif (search.rows.cells < 0).any():
        best = _climbed(search, scales, best.network, layers, switches, "lateral edges, from rows with holes")
    options = []
    if free:
        many = (HIDDEN,)
        before = bool(density.lateral) and not switches and (wide or not (search.rows.cells < 0).any())
        start, above = _made(search, lateral, many, switches), None if before else best
        options.append(_climbed(search, scales, start, many, switches, "hidden units", above))
        if before and not search.is_late:
            options += _hidden_before(search, scales, many)
    if auto and not search.is_late:
        start = _made(search, lateral, layers, SWITCHES)
        options.append(_climbed(search, scales, start, layers, SWITCHES, "switches", best))
    if options:
        top = max(options, key=lambda option: option.bounds.mean())
        if auto and free and top.pays(best) and not search.is_late:
            both = _with_switches(search, scales, top) if top.hidden else _with_hidden(search, scales, top)
            top = _better(top, both)
        if top.bounds.mean() > best.bounds.mean() - _NEAR * abs(best.bounds.mean()):
            top = _until_settled(search, scales, top)
        best = top if top.pays(best) else best
    elif best.stages:
        best = _until_settled(search, scales, best)
    return best


def _is_wide(rows: Rows) -> bool:
    """Are there few rows for so many columns? Then lateral edges would explain all that hidden units could, and there
    is nothing to tell a mixture of regressions from one.
    """
    return len(rows.cells) < 25 * len(rows.names)


def _better(one: _Candidate, other: _Candidate) -> _Candidate:
    return other if other.bounds.mean() > one.bounds.mean() else one


def _with_switches(search: _Search, scales: Scales, best: _Candidate) -> _Candidate:
    """Switches on top of hidden units that have learned already."""
    network = _learning.switched(search.density, search.rows, search.generator, best.network, SWITCHES)
    made = _climbed(search, scales, network, best.hidden, SWITCHES, f"{best.what.split(', stage')[0]}, and switches")
    return replace(made, hidden_first=best.hidden_first)


def _with_hidden(search: _Search, scales: Scales, best: _Candidate) -> _Candidate:
    """Hidden units on top of switches that have learned already."""
    network = _learning.crowned(search.density, search.rows, search.generator, best.network, HIDDEN)
    return _climbed(
        search, scales, network, (HIDDEN,), best.switches, f"{best.what.split(', stage')[0]}, and hidden units"
    )


def _made(search: _Search, lateral: Lateral | None, hidden: tuple[int, ...], switches: int) -> Network:
    """The lateral network with hidden units and switches that have not learned anything yet."""
    return _learning.start(
        search.density, search.rows, search.generator, hidden=hidden, switches=switches, lateral=lateral
    )


def _hidden_before(search: _Search, scales: Scales, hidden: tuple[int, ...]) -> list[_Candidate]:
    """Hidden units first, and then lateral edges for what they leave: fewer, so that a stronger prior may be better."""
    alone, what = _hidden_alone(search, scales, hidden), "hidden units before lateral edges"
    made: dict[str, Any] = {"hidden": hidden, "hidden_first": True}
    found: list[_Candidate] = []
    for share in (1.0, 0.7, 0.5):
        fewer = Scales(share * scales.first)
        network = with_hidden_columns(search.density, search.rows, alone, fewer, HIDDEN_SCALE, search.generator)
        found.append(search.scored(f"{what}, scale {fewer.lateral:.3g}", network, scales=fewer, **made))
    best = max(found, key=lambda option: option.bounds.mean())
    assert best.scales is not None
    climbed = _climbed(search, best.scales, best.network, hidden, 0, f"{what}, stage 1")
    return [best, replace(climbed, hidden_first=True, scales=best.scales)]


def _hidden_alone(search: _Search, scales: Scales, hidden: tuple[int, ...]) -> Network:
    density, rows = search.density, search.rows
    alone = _learning.start(density, rows, search.generator, hidden=hidden, switches=0, edges=False)
    return _stage(search, rows, Scales(scales.lateral), alone, _epochs(density, rows, _STAGE)).network


def _climbed(
    search: _Search,
    scales: Scales,
    network: Network,
    hidden: tuple[int, ...],
    switches: int,
    what: str,
    above: _Candidate | None = None,
) -> _Candidate:
    """One stage; and if that ends below another candidate, one that goes gently: large steps have undone too much."""
    epochs, made = _epochs(search.density, search.rows, _STAGE), {"hidden": hidden, "switches": switches, "stages": 1}
    found = search.scored(what, _stage(search, search.rows, scales, network, epochs).network, **made)
    if above is None or found.bounds.mean() > above.bounds.mean() or not is_auto(search.density.epochs):
        return found
    gentle = _stage(search, search.rows, scales, network, 2 * epochs, _GENTLE, _GENTLE).network
    return _better(found, search.scored(f"{what}, gently", gentle, rate=_GENTLE, **made))


def _until_settled(search: _Search, scales: Scales, best: _Candidate) -> _Candidate:
    """More stages, each at a lower rate, as long as held-out bounds rise."""
    if not is_auto(search.density.epochs):
        return best
    scales = best.scales or scales
    for number in range(best.stages + 1, _STAGES + 1):
        epochs = _epochs(search.density, search.rows, _STAGE)
        result = _stage(search, search.rows, scales, best.network, epochs, best.rate / number, best.rate)
        what = f"{best.what.split(', stage')[0]}, stage {number}"
        option = replace(best, network=result.network, bounds=search.scored(what, result.network).bounds, stages=number)
        gain, _ = option.gain(best)
        best = option if gain > 0.0 else best
        if search.is_late or gain < _RISES * abs(best.bounds.mean()):
            break
    return best


def _learn_all(search: _Search, rows: Rows, scales: Scales, lateral: Lateral | None, best: _Candidate) -> FitResult:
    """From what was chosen, with all rows."""
    density, network = search.density, best.network
    if lateral is not None and not _climbs(rows, best):
        network = _learning.start(
            density, rows, search.generator, hidden=(), switches=0,
            lateral=refitted(lateral, rows, scales, _learning.threads(density)),
        )  # fmt: skip
        states = place(network, rows.cells, rows.names)
        bound = infer_many(network, states, threads=_learning.threads(density), progress=False).bound
        mean = np.array([np.average(bound, weights=rows.weights)])
        return FitResult(_sparse(network), mean, None, None, 1, False, time.monotonic() - search.begin)
    epochs = _last_epochs(density, rows)
    result = _stage(search, rows, scales, network, epochs, best.rate / (_STAGES + 1), best.rate, final=True)
    return replace(result, network=_sparse(result.network))


def _sparse(network: Network) -> Network:
    """Without edges of weight zero."""
    return without_edges(network, network.weight == 0.0)


def _climbs(rows: Rows, best: _Candidate) -> bool:
    """Is there more to learn than regressions of observed cells?"""
    return bool(best.hidden or best.switches) or bool((rows.cells < 0).any())


def _epochs(density: SBNDensity, rows: Rows, auto: int) -> int:
    """So many, or more for small tables; no more than were asked for."""
    if is_auto(density.epochs):
        steps = -(-len(rows.cells) // max(density.batch_size, 1))
        return max(auto, -(-_STEPS // max(steps, 1)))
    return min(auto, checks.whole("epochs", density.epochs, 1))


def _last_epochs(density: SBNDensity, rows: Rows) -> int:
    """Over all rows: as many as were asked for, or few, the fewer the longer the table."""
    if not is_auto(density.epochs):
        return checks.whole("epochs", density.epochs, 1)
    return _epochs(density, rows, max(2, min(_LAST, round(60_000 / max(len(rows.cells), 1)))))


def _stage(
    search: _Search,
    rows: Rows,
    scales: Scales,
    network: Network,
    epochs: int,
    rate: float = _RATE,
    base: float = _RATE,
    final: bool = False,
) -> FitResult:
    """Some epochs, at a rate that falls to nothing."""
    lateral = is_lateral(network, rows.names)
    slow = _SLOW if base == _RATE else _SLOWER
    factor = np.concatenate([np.where(lateral, slow, 1.0), np.ones(network.n_units)])
    density = search.density
    ours = density.optimizer == "adam" and is_auto(density.learning_rate)
    stepping = _Paced(rate, epochs, factor) if ours else _learning.optimizer(density, until=epochs)
    prior = ByEdge((Laplace(HIDDEN_SCALE), scales.prior(network, rows.names)), lateral.astype(np.int64))
    return _learning.learn(
        density, network, rows, search.generator, epochs=epochs, prior=prior, stepping=stepping,
        quiet=not final,
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class _Paced:
    """Adam, at a pace of its own for each parameter."""

    rate: float
    until: int
    factor: FloatArray

    @property
    def _adam(self) -> Adam:
        return Adam(self.rate, until=self.until)

    def init(self, n: int) -> tuple[FloatArray, ...]:
        return self._adam.init(n)

    def step(self, gradient: FloatArray, state: tuple[FloatArray, ...], epoch: int) -> Any:
        move, state = self._adam.step(gradient, state, epoch)
        return move * self.factor, state

    def size(self, state: tuple[FloatArray, ...], epoch: int) -> FloatArray:
        return self._adam.size(state, epoch) * self.factor
