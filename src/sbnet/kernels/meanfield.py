"""The mean field equations of one pattern, solved by coordinate ascent.

One sweep updates the means one at a time by eq. (24), then gives every logarithm term a new parameter. Each of these
steps can only raise the bound (footnote 4): in one mean, the bound is concave plus convex, and eq. (24) maximises it
with the convex part replaced by its tangent; in one xi it is concave.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from sbnet._types import FloatArray, IndexArray, Problem, States, Stop
from sbnet.kernels import gates, terms
from sbnet.kernels._compile import PAUSE, address, bare, caller, variant
from sbnet.kernels.arrays import load
from sbnet.kernels.reduce import posed
from sbnet.kernels.states import known_units
from sbnet.kernels.terms import exact, waves
from sbnet.kernels.terms.work import FACTOR_OF, HIDDEN_GATE, MEAN, N_BLOCKS, PLACE, TERM, UNIT, VALUE, Work
from sbnet.kernels.vector_math import entropy

EDGE = 1e-14  # means keep this distance from 0 and 1; it costs a bound at most 1e-14 of the weights
# What steps of xi must promise to be worth taking: a share of the tolerance, or, while the bound rises faster, of its
# rise, but no more nats than that.
_SHARE, _OF_RISE, _AT_MOST = 0.2, 0.02, 2e-3
_XI_STEPS = 20
_ROUNDS = 4  # how often the exact term may be given new frequencies
_ROUGH = 1e-2  # nats: how far the paper's bound is taken where it shows which terms to take


class Verbs(NamedTuple):
    """Where the verbs of some terms are, compiled for these alone."""

    prepare: int
    begin: int
    attend: int
    sweep: int
    renew: int


class Kit(NamedTuple):
    """Where the kernels are that solve a problem: the verbs of its terms, and what all problems have in common."""

    rough: Verbs
    fine: Verbs
    enumerates: bool  # is there a sum over states for factors with few parents?
    any_term: bool  # does `fine` serve whatever term may take the place of the exact one?
    posed: int
    layout: int
    climb: int
    attuned: int
    other_kinds: int
    solve: int


def sweep(work: Work, bias: FloatArray, mu: FloatArray) -> None:
    """Eq. (24) for one hidden unit after the other: all at once, the bound could fall."""
    index, numbers = work.ints, work.numbers
    factor_of, gate, unit, place = (
        load(index, FACTOR_OF),
        load(index, HIDDEN_GATE),
        load(index, UNIT),
        load(index, PLACE),
    )
    open_sweep(work, mu)
    for j in range(len(mu)):
        own, at = load(index, factor_of, j), np.uint64(0)
        if own >= 0:
            at = np.uint64(load(index, place, own))
            field = load(numbers, at, MEAN)
            if gates.weighs(load(index, gate, j)) > 0.0:
                field -= load(numbers, at, TERM)
        else:
            field = gates.log_odds(load(index, gate, j), load(bias, load(index, unit, j)))
        field += pull(work, j, mu)
        old, new = load(mu, j), min(max(gates.sigmoid(field), EDGE), 1.0 - EDGE)
        mu[j] = new
        if own >= 0:
            numbers[at + VALUE] = new
        push(work, mu, j, old, new)


open_sweep = bare(terms.each("open_sweep", "work, mu"))
pull = bare(terms.each("pull", "work, j, mu", adds=True))
push = bare(terms.each("push", "work, mu, j, old, new"))
_call_sweep = caller(sweep)


@bare
def _bound(work: Work, constant: float, bias: FloatArray, mu: FloatArray) -> float:
    """Eq. (16), the logarithm terms being whatever they are."""
    index, total = work.ints, constant + entropy(mu) + terms.total(work)
    factor_of, gate, unit = load(index, FACTOR_OF), load(index, HIDDEN_GATE), load(index, UNIT)
    for j in range(len(mu)):
        if load(index, factor_of, j) < 0:
            total += load(mu, j) * gates.log_odds(load(index, gate, j), load(bias, load(index, unit, j)))
    return total


def climb(
    work: Work,
    verbs: Verbs,
    max_sweeps: int,
    tol: float,
    whole: bool,
    fine: bool,
    warm: bool,
    constant: float,
    bias: FloatArray,
    mu: FloatArray,
    trace: FloatArray,
    done: int,
) -> tuple[int, bool, float]:
    """Sweep until the bound rises too little: sweeps so far, whether that came about, and the bound.

    The exact term has a few frequencies, or all of them if `whole`; if `fine`, the bound is evaluated with all in the
    end.
    """
    terms.call_attend(verbs.attend, work, whole)
    promise = np.inf
    for _ in range(1 + _XI_STEPS if warm else 1):  # means that someone has found deserve the best xi before they move
        if promise >= tol:
            promise = terms.call_renew(verbs.renew, work, mu, 0.0, True)
    bound, rise, converged = _bound(work, constant, bias, mu), np.inf, False
    if done == 0 and done < len(trace):
        trace[0] = bound
    while done < max_sweeps and not converged:
        _call_sweep(verbs.sweep, work, bias, mu)
        enough = max(_SHARE * tol, min(_OF_RISE * rise, _AT_MOST)) / max(float(load(work.ints, N_BLOCKS)), 1.0)
        promise = terms.call_renew(verbs.renew, work, mu, enough, False)
        done += 1
        before, bound = bound, _bound(work, constant, bias, mu)
        rise = bound - before
        converged = rise + promise < tol
        if done < len(trace):
            trace[done] = bound
    if fine:
        terms.call_attend(verbs.attend, work, True)
        terms.call_renew(verbs.renew, work, mu, 0.0, True)
        bound = _bound(work, constant, bias, mu)
    return done, converged, bound


_call_climb = caller(climb)


def attuned(work: Work, mu: FloatArray, again: bool, whole: bool, at_all: bool) -> tuple[Work, bool]:
    """The state with the frequencies that are needed at these means; and did it need no others?

    If `again`, this row had some: no block may lose any, or its term would loosen. If `whole`, it sweeps with them all.
    Unless `at_all`, it is left alone where some factor would need too many.
    """
    places, crowded = waves.places_for(work, mu, again)
    enough = again or (crowded and not at_all)
    if again and not crowded:
        for b in range(len(places)):
            has = load(work.wave_index, b)
            enough = enough and load(places, b) <= has
            places[b] = max(load(places, b), has)
    if not enough:
        if not waves.has_room(work, places):
            work = waves.make_room(work, places, whole)
        waves.tune(work, places)
    return work, enough


_call_attuned = caller(attuned)


def solve(
    problem: Problem,
    work: Work,
    kind: IndexArray,
    kit: Kit,
    stop: Stop,
    states: States,
    bias: FloatArray,
    mu: FloatArray,
    warm: bool,
    trace: FloatArray,
) -> tuple[float, int, bool, bool, Work]:
    """Solve one problem from the means in `mu`: (bound, sweeps, converged), and the state in which it was left.

    Before that: whether it was solved at all, or needs a kit for any term. `work` is laid out for `kind`.

    The climb makes do with a few frequencies of the exact term unless it is to be taken far, and the bound that counts
    is evaluated with all of them. Where the means have moved so far that more are needed, it goes on with those. Where
    there would be too many, the paper's term leads to means where others are chosen in place of the exact one; means
    that someone has found (`warm`) are such at once.
    """
    constant = known_units(problem, states, bias)
    for j in range(len(mu)):
        if load(problem.factor_of, j) < 0:  # its mean times its log-odds is added later
            constant += gates.log_p(load(problem.gate, load(problem.hidden, j)), 0, load(bias, load(problem.hidden, j)))
    if len(mu) == 0:
        if len(trace):
            trace[0] = constant
        return constant, 0, True, True, work
    for j in range(len(mu)):
        mu[j] = min(max(load(mu, j), EDGE), 1.0 - EDGE)
    terms.begin(work, states, bias, mu, kit.fine.begin)
    done, converged, best, crowded, wavy = np.int64(0), False, -np.inf, False, waves.has(work)
    far = wavy and stop.tol < waves.FEW
    if wavy:
        work, crowded = _call_attuned(kit.attuned, work, mu, False, far, False)
    if crowded:
        if not kit.any_term:
            return best, 0, False, False, work
        if not warm:
            work = terms.call_layout(kit.layout, problem, kind, True, kit.rough.prepare)
            terms.begin(work, states, bias, mu, kit.rough.begin)
            done, converged, best = _call_climb(
                kit.climb, work, kit.rough, stop.max_sweeps, max(stop.tol, _ROUGH), False, False, warm, constant, bias,
                mu, trace, done,
            )  # fmt: skip
        kind = terms.call_other_kinds(kit.other_kinds, problem, kind, bias, mu)
        work = terms.call_layout(kit.layout, problem, kind, False, kit.fine.prepare)
        terms.begin(work, states, bias, mu, kit.fine.begin)
        wavy, far = waves.has(work), far and waves.has(work)
        if wavy:
            work, _ = _call_attuned(kit.attuned, work, mu, False, far, True)
    for turn in range(_ROUNDS if wavy else 1):
        if turn > 0:
            work, enough = _call_attuned(kit.attuned, work, mu, True, far, True)
            if enough:
                break
        if far:
            done, _, _ = _call_climb(
                kit.climb, work, kit.fine, stop.max_sweeps, waves.FEW, False, False, warm, constant, bias, mu, trace,
                done,
            )  # fmt: skip
        before = best
        done, converged, bound = _call_climb(
            kit.climb, work, kit.fine, stop.max_sweeps, stop.tol, far, wavy, warm, constant, bias, mu, trace, done
        )
        best = best if bound <= best else bound  # the larger, or NaN: a term that has no room shows
        if turn > 0 and best - before < stop.tol:
            break
    if done < len(trace):
        trace[done] = best  # with all frequencies it is a little above that of the last sweep
    for k in range(1, min(int(done) + 1, len(trace))):
        trace[k] = min(max(load(trace, k), load(trace, k - 1)), best)  # the best so far
    return best, int(done), converged, True, work


call_solve = caller(solve)


@cache
def kit_for(rooms: tuple[Any, ...]) -> Kit:
    """What solves problems that these rooms serve, compiled now unless it has been before."""
    with PAUSE.throughout():
        any_term = {terms.xi, exact, terms.quadratic, terms.enumerated} <= set(rooms)
        return Kit(
            _verbs(terms.roughly(rooms) if any_term else rooms),
            _verbs(rooms),
            terms.enumerated in rooms,
            any_term,
            address(posed, allocates=True),
            address(terms.prepare, allocates=True),
            address(climb),
            address(attuned, allocates=True) if exact in rooms else 0,
            address(terms.other_kinds, allocates=True) if any_term else 0,
            address(solve, allocates=True),
        )


@cache
def _verbs(rooms: tuple[Any, ...]) -> Verbs:
    names = {"open_sweep": "work, mu", "pull": "work, j, mu", "push": "work, mu, j, old, new"}
    parts = {verb: bare(terms.each(verb, given, rooms, adds=verb == "pull")) for verb, given in names.items()}
    return Verbs(
        address(terms.each("prepare", "work", rooms), terms.xi.prepare),
        address(terms.each("begin", "work", rooms), terms.xi.begin),
        address(terms.each("attend", "work, whole", rooms), exact.attend),
        address(variant(sweep, "_".join(("sweep", *map(terms.name_of, rooms))), **parts)),
        address(terms.each("renew", "work, mu, enough, fresh", rooms, adds=True), terms.enumerated.renew),
    )
