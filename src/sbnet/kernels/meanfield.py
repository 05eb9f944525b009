"""The mean field equations of one pattern, solved by coordinate ascent.

One sweep updates the means one at a time by eq. (24), then gives every logarithm term a new parameter. Each of these
steps can only raise the bound (footnote 4): in one mean, the bound is concave plus convex, and eq. (24) maximises it
with the convex part replaced by its tangent; in one xi it is concave.
"""

from __future__ import annotations

import numpy as np

from sbnet._types import FloatArray, IndexArray, Problem, States, Stop
from sbnet.kernels import gates, terms
from sbnet.kernels._compile import bare, inlined, inner
from sbnet.kernels.states import known_units
from sbnet.kernels.terms import exact
from sbnet.kernels.terms.work import FACTOR_OF, HIDDEN_GATE, N_BLOCKS, UNIT, Work
from sbnet.kernels.vector_math import entropy

EDGE = 1e-14  # means keep this distance from 0 and 1; it costs a bound at most 1e-14 of the weights
_SHARE = 0.2  # of the rise of the bound: what steps of xi must promise to be worth taking
_XI_STEPS = 20
_ROUNDS = 4  # how often the exact term may be given new frequencies
_ROUGH = 1e-2  # nats: how far the paper's bound is taken before the exact term replaces it


@inlined
def _sweep(work: Work, bias: FloatArray, mu: FloatArray) -> None:
    """Eq. (24) for one hidden unit after the other: all at once, the bound could fall."""
    index = work.ints
    terms.open_sweep(work, mu)
    for j in range(len(mu)):
        own, i = index[index[FACTOR_OF] + j], index[index[UNIT] + j]
        field = terms.input_of(work, own) if own >= 0 else gates.log_odds(index[index[HIDDEN_GATE] + j], bias[i])
        field += terms.pull(work, j, mu)
        old, new = mu[j], min(max(gates.sigmoid(field), EDGE), 1.0 - EDGE)
        mu[j] = new
        if own >= 0:
            terms.set_value(work, own, new)
        terms.push(work, j, old, new)


@inlined
def _bound(work: Work, constant: float, bias: FloatArray, mu: FloatArray) -> float:
    """Eq. (16), the logarithm terms being whatever they are."""
    total = constant + entropy(mu) + terms.total(work)
    for j in range(len(mu)):
        if work.ints[work.ints[FACTOR_OF] + j] < 0:
            gate = work.ints[work.ints[HIDDEN_GATE] + j]
            total += mu[j] * gates.log_odds(gate, bias[work.ints[work.ints[UNIT] + j]])
    return total


@bare
def _climb(
    work: Work, stop: Stop, tol: float, constant: float, bias: FloatArray, mu: FloatArray, trace: FloatArray, done: int
) -> tuple[int, bool, float]:
    """Sweep until the bound rises by less than `tol`: sweeps so far, whether that came about, and the bound."""
    bound = _bound(work, constant, bias, mu)
    rise = np.inf
    while done < stop.max_sweeps:
        _sweep(work, bias, mu)
        enough = _SHARE * max(tol, min(rise, _ROUGH)) / max(work.ints[N_BLOCKS], 1)
        promise = terms.close_sweep(work, mu, enough)
        done += 1
        before, bound = bound, _bound(work, constant, bias, mu)
        rise = bound - before
        if done < len(trace):
            trace[done] = bound
        if rise + promise < tol:
            return done, True, bound
    return done, False, bound


@bare
def _covers(one: IndexArray, other: IndexArray) -> bool:
    """Is no number of the other larger?"""
    for k in range(len(other)):  # noqa: SIM110 (kernels have no generators)
        if other[k] > one[k]:
            return False
    return True


@inner
def _attuned(work: Work, needed: IndexArray, again: bool) -> Work:
    """The same with waves for the frequencies that are needed, where it has others.

    If `again`, this row had fewer: no block may lose any, or its term would loosen.
    """
    chunks = exact.chunks_for(work, needed)
    if again:
        for b in range(len(chunks)):
            chunks[b] = max(chunks[b], work.wave_index[b])
    if not exact.has_room(work, chunks):
        work = exact.make_room(work, chunks)
    exact.tune(work, chunks)
    return work


@inlined
def solve(
    problem: Problem,
    rough: Work,
    fine: Work,
    kind: IndexArray,
    stop: Stop,
    states: States,
    bias: FloatArray,
    mu: FloatArray,
    warm: bool,
    trace: FloatArray,
) -> tuple[float, int, bool, Work]:
    """Solve one problem from the means in `mu`: (bound, sweeps, converged), and the state in which it was left.

    `rough` has the paper's term wherever `kind` has the exact one, and `fine` has that: the climb begins with the one,
    which is quick while the means are far from where they end, and goes on with the lower frequencies of the other. The
    bound that counts is evaluated with all frequencies. Where the means have moved so far that more are needed, it goes
    on with those. Means that someone has found (`warm`) go straight to the exact term.
    """
    constant = known_units(problem, states, bias)
    for j in range(len(mu)):
        if problem.factor_of[j] < 0:  # its mean times its log-odds is added later
            constant += gates.log_p(problem.gate[problem.hidden[j]], 0, bias[problem.hidden[j]])
    if len(mu) == 0:
        if len(trace):
            trace[0] = constant
        return constant, 0, True, rough
    for j in range(len(mu)):
        mu[j] = min(max(mu[j], EDGE), 1.0 - EDGE)
    climbs_exact = not terms.same_kinds(rough, kind)
    work, done, converged, best, again = rough, np.int64(0), False, -np.inf, False
    for turn in range(1 + _ROUNDS if climbs_exact else 1):
        if turn == 0 and climbs_exact and warm:
            continue
        if turn > 0:
            needed = exact.nodes_of(problem, bias, mu)
            now = terms.exact_kinds(problem, kind, needed, bias, mu)
            if again and terms.same_kinds(work, now):
                if _covers(work.wave_index, exact.chunks_for(work, needed)):
                    break
            elif terms.same_kinds(fine, now):
                work, again = fine, turn < 0
            else:
                work, again = terms.prepare(problem, now), turn < 0
            work = _attuned(work, needed, again)
        terms.begin(work, states, bias, mu)
        if turn > 0:
            exact.attend(work, turn < 0)
        promise = terms.renew(work, mu, 0.0)
        for _ in range(_XI_STEPS if warm else 0):  # means that someone has found deserve the best xi before they move
            if promise < stop.tol:
                break
            promise = terms.renew(work, mu, 0.0)
        if len(trace) and done == 0:
            trace[0] = _bound(work, constant, bias, mu)
        tol = max(stop.tol, _ROUGH) if turn == 0 and climbs_exact else stop.tol
        done, converged, bound = _climb(work, stop, tol, constant, bias, mu, trace, done)
        if turn > 0:
            exact.attend(work, turn > 0)
            terms.renew(work, mu, 0.0)
            bound = _bound(work, constant, bias, mu)
        before, best = best, best if bound <= best else bound  # the larger, or NaN: a term that has no room shows
        if again and best - before < stop.tol:
            break
        again = turn > 0
    if done < len(trace):
        trace[done] = best  # with all frequencies it is a little above that of the last sweep
    return best, int(done), converged, work
