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
from sbnet.kernels.terms.work import FACTOR_OF, HIDDEN_GATE, MEAN, N_BLOCKS, PLACE, TERM, UNIT, VALUE, Work
from sbnet.kernels.vector_math import entropy

EDGE = 1e-14  # means keep this distance from 0 and 1; it costs a bound at most 1e-14 of the weights
_SHARE = 0.2  # of the rise of the bound: what steps of xi must promise to be worth taking
_XI_STEPS = 20
_ROUNDS = 4  # how often the exact term may be given new frequencies
_ROUGH = 1e-2  # nats: how far the paper's bound is taken before the exact term replaces it


@inlined
def _sweep(work: Work, bias: FloatArray, mu: FloatArray) -> None:
    """Eq. (24) for one hidden unit after the other: all at once, the bound could fall."""
    index, numbers = work.ints, work.numbers
    factor_of, gate, unit, place = index[FACTOR_OF], index[HIDDEN_GATE], index[UNIT], index[PLACE]
    terms.open_sweep(work, mu)
    for j in range(len(mu)):
        own, at = index[factor_of + j], np.uint64(0)
        if own >= 0:
            at = np.uint64(index[place + own])
            field = numbers[at + MEAN]
            if gates.weighs(index[gate + j]) > 0.0:
                field -= numbers[at + TERM]
        else:
            field = gates.log_odds(index[gate + j], bias[index[unit + j]])
        field += terms.pull(work, j, mu)
        old, new = mu[j], min(max(gates.sigmoid(field), EDGE), 1.0 - EDGE)
        mu[j] = new
        if own >= 0:
            numbers[at + VALUE] = new
        terms.push(work, mu, j, old, new)


@bare
def _bound(work: Work, constant: float, bias: FloatArray, mu: FloatArray) -> float:
    """Eq. (16), the logarithm terms being whatever they are."""
    index, total = work.ints, constant + entropy(mu) + terms.total(work)
    factor_of, gate, unit = index[FACTOR_OF], index[HIDDEN_GATE], index[UNIT]
    for j in range(len(mu)):
        if index[factor_of + j] < 0:
            total += mu[j] * gates.log_odds(index[gate + j], bias[index[unit + j]])
    return total


@bare
def _climb(
    work: Work,
    stop: Stop,
    rough: bool,
    fine: bool,
    warm: bool,
    states: States,
    constant: float,
    bias: FloatArray,
    mu: FloatArray,
    trace: FloatArray,
    done: int,
) -> tuple[int, bool, float]:
    """Sweep until the bound rises too little: sweeps so far, whether that came about, and the bound.

    If `rough`, the paper's term stands in for the exact one, and need not be taken far. If `fine`, the bound is
    evaluated with all frequencies in the end.
    """
    terms.begin(work, states, bias, mu)
    exact.attend(work, done < 0)
    promise = np.inf
    for _ in range(1 + _XI_STEPS if warm else 1):  # means that someone has found deserve the best xi before they move
        if promise >= stop.tol:
            promise = terms.renew(work, mu, 0.0, done >= 0)
    bound, rise, converged = _bound(work, constant, bias, mu), np.inf, False
    if done == 0 and done < len(trace):
        trace[0] = bound
    tol = max(stop.tol, _ROUGH) if rough else stop.tol
    while done < stop.max_sweeps and not converged:
        _sweep(work, bias, mu)
        enough = _SHARE * max(tol, min(rise, _ROUGH)) / max(float(work.ints[N_BLOCKS]), 1.0)
        promise = terms.renew(work, mu, enough, done < 0)
        done += 1
        before, bound = bound, _bound(work, constant, bias, mu)
        rise = bound - before
        converged = rise + promise < tol
        if done < len(trace):
            trace[done] = bound
    if fine:
        exact.attend(work, done >= 0)
        terms.renew(work, mu, 0.0, done >= 0)
        bound = _bound(work, constant, bias, mu)
    return done, converged, bound


@inner
def _attuned(
    problem: Problem, kind: IndexArray, fine: Work, work: Work, again: bool, bias: FloatArray, mu: FloatArray
) -> tuple[Work, bool, bool]:
    """A state with the exact term and waves for the frequencies that are needed at these means.

    If `again`, this row had `work`, with fewer: no block may lose any, or its term would loosen. Also returned: whether
    it has the same terms now, and whether it has all that is needed.
    """
    needed = exact.nodes_of(problem, bias, mu)
    now = terms.exact_kinds(problem, kind, needed, bias, mu)
    again = again and terms.same_kinds(work, now)
    if not again:
        work = fine if terms.same_kinds(fine, now) else terms.prepare(problem, now, again)
    chunks, enough = exact.chunks_for(work, needed), again
    if again:
        for b in range(len(chunks)):
            has = work.wave_index[b]
            if chunks[b] > has:
                enough = False
            else:
                chunks[b] = has
    if not enough:
        if not exact.has_room(work, chunks):
            work = exact.make_room(work, chunks)
        exact.tune(work, chunks)
    return work, again, enough


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
    work, done, converged, best, again = rough, np.int64(0), False, -np.inf, len(mu) < 0
    for turn in range(1 if climbs_exact and warm else 0, 1 + _ROUNDS if climbs_exact else 1):
        if turn > 0:
            work, again, enough = _attuned(problem, kind, fine, work, again, bias, mu)
            if enough:
                break
        is_rough, before = turn == 0 and climbs_exact, best
        done, converged, bound = _climb(work, stop, is_rough, turn > 0, warm, states, constant, bias, mu, trace, done)
        best = best if bound <= best else bound  # the larger, or NaN: a term that has no room shows
        if again and best - before < stop.tol:
            break
        again = turn > 0
    if done < len(trace):
        trace[done] = best  # with all frequencies it is a little above that of the last sweep
    for k in range(1, min(int(done) + 1, len(trace))):
        trace[k] = min(max(trace[k], trace[k - 1]), best)  # the best so far: the exact term begins a little lower
    return best, int(done), converged, work
