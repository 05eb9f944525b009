"""The mean field equations of one pattern, solved by coordinate ascent, and of many patterns, in parallel.

One sweep updates the means one at a time by eq. (24), then gives every logarithm term a new parameter xi. Each of these
steps can only raise the bound (footnote 4): in one mean, the bound is concave plus convex, and eq. (24) maximises it
with the convex part replaced by its tangent; in one xi it is concave.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from sbnet._types import FloatArray, Graph, IndexArray, Problem, Settings, States
from sbnet.kernels._compile import bare, inner, kernel
from sbnet.kernels.reduce import reduce
from sbnet.kernels.terms import (
    MAX_NODES,
    OMEGA,
    contract,
    mean_sigmoid,
    mix_in,
    moments,
    powers,
    put_back,
    quadratic_lambda,
    quadratic_term,
    real_sum,
    sigmoid,
    slope_sum,
    softplus,
    softplus_table,
    take_out,
    trapezoid_nodes,
    trapezoid_weights,
)
from sbnet.kernels.xi import split_exponential, xi_pass, xi_pull, xi_push

XI, EXACT, QUADRATIC, JENSEN, ENUMERATED = 0, 1, 2, 3, 4
EDGE = 1e-14  # means keep this distance from 0 and 1; it costs a bound at most 1e-14 of the weights
_REPASS = 1e-2  # nats: a second step for xi in the same sweep, if the first has left that much to gain
_MORE_STEPS = 4
_NEAR_ZERO = 1e-4  # squared size of a factor too small to divide by: multiply the others anew
_ROUGH = 1e-2  # nats: how far the paper's bound is taken before the exact term replaces it
_CHUNK = 32  # rows that one thread takes at a time


class Work(NamedTuple):
    """The state of one problem while it is solved: arrays by factor, by slot (edge into a factor), and by child."""

    kind: IndexArray  # by factor: which logarithm term
    xi: FloatArray
    xi_next: FloatArray  # where Newton's method would go
    gain: FloatArray  # what it expects to win there
    phi: FloatArray  # eq. (32)
    log_sum: FloatArray  # ln(A + B) when it was last computed
    growth: FloatArray  # (A + B) now, over (A + B) then
    mean: FloatArray  # <z>
    second: FloatArray  # <z^2>, for the quadratic and the exact term
    c: FloatArray  # parameter of the quadratic term
    value: FloatArray  # the state or mean of the unit itself
    term: FloatArray  # the logarithm term when it was last computed
    below: FloatArray  # sum of the negative weights: z is at least the bias plus this
    above: FloatArray  # sum of the positive weights
    contiguous: IndexArray  # by hidden unit: are its children consecutive factors, all of them with a xi?
    mantissa: FloatArray  # by slot: e^-|J|
    exponent: FloatArray
    back: IndexArray  # by slot: its place among the children of its parent
    child_weight: FloatArray  # by child
    child_ea: FloatArray  # by child: E_A, E_B, 1 / fA, 1 / fB
    child_eb: FloatArray
    child_oa: FloatArray
    child_ob: FloatArray
    e_a: FloatArray  # scratch: the same for the parents of one factor
    e_b: FloatArray
    o_a: FloatArray
    o_b: FloatArray
    near: FloatArray  # scratch: means of the parents of one factor
    table: FloatArray  # ln(1 + e^z) by state, for enumerated factors
    table_ptr: IndexArray
    scratch: FloatArray


class Waves(NamedTuple):
    """Characteristic functions of z, for the factors whose logarithm term is the exact one."""

    ptr: IndexArray  # by factor: its frequencies
    weight: FloatArray
    constant: FloatArray
    step: FloatArray
    re: FloatArray
    im: FloatArray
    edge_ptr: IndexArray  # by slot: e^(i w J) at the frequencies of its factor
    edge_re: FloatArray
    edge_im: FloatArray
    less_ptr: IndexArray  # scratch, by child of one unit: the functions without that unit
    less_re: FloatArray
    less_im: FloatArray


@inner
def prepare(problem: Problem, settings: Settings) -> Work:
    """Everything about a problem that does not depend on the values of the evidence."""
    n_factors, n_hidden, n_slots = len(problem.factor), len(problem.hidden), len(problem.weight)
    kind = np.empty(n_factors, np.int64)
    table_ptr = np.zeros(n_factors + 1, np.int64)
    widest = 0
    for f in range(n_factors):
        k = problem.ptr[f + 1] - problem.ptr[f]
        widest = max(widest, k)
        kind[f] = XI if settings.log_term == EXACT else settings.log_term
        table_ptr[f + 1] = table_ptr[f]
        if k <= settings.enumerate_up_to:
            kind[f] = ENUMERATED
            table_ptr[f + 1] += 1 << k
    contiguous = np.zeros(n_hidden, np.int64)
    for j in range(n_hidden):
        start, end = problem.child_ptr[j], problem.child_ptr[j + 1]
        if end > start and problem.child[end - 1] - problem.child[start] == end - start - 1:
            contiguous[j] = 1
            for c in range(start, end):
                if kind[problem.child[c]] != XI and kind[problem.child[c]] != JENSEN:
                    contiguous[j] = 0
    mantissa, exponent = np.empty(n_slots), np.empty(n_slots)
    split_exponential(problem.weight, mantissa, exponent)
    back = np.empty(n_slots, np.int64)
    child_weight = np.empty(n_slots)
    for c in range(n_slots):
        back[problem.child_slot[c]] = c
        child_weight[c] = problem.weight[problem.child_slot[c]]
    below, above = np.zeros(n_factors), np.zeros(n_factors)
    for f in range(n_factors):
        for s in range(problem.ptr[f], problem.ptr[f + 1]):
            below[f] += min(problem.weight[s], 0.0)
            above[f] += max(problem.weight[s], 0.0)
    a = np.zeros((11, n_factors))
    b = np.zeros((4, n_slots))
    d = np.zeros((5, widest))
    return Work(
        kind, a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10], below, above, contiguous,
        mantissa, exponent, back, child_weight, b[0], b[1], b[2], b[3], d[0], d[1], d[2], d[3], d[4],
        np.zeros(table_ptr[n_factors]), table_ptr, np.zeros(1 << min(widest, settings.enumerate_up_to)),
    )  # fmt: skip


# A tuple of many arrays is dear to pass, and to look into: functions that take one are called once a sweep, name the
# arrays they need first, and then loop. (Each look costs an atomic reference count, as much as several edges.)


@bare
def _renew_xi(problem: Problem, work: Work, bias: FloatArray, mu: FloatArray) -> None:
    """Compute the paper's term of every factor that has one, with xi where Newton's method wanted it.

    The term is convex in xi: it has fallen if its slope at the new place still points the way we came. Past the
    minimum, compare it with the term at the old xi, which `growth` has followed, and go back if it has risen.
    """
    factor, ptr, parent, weight = problem.factor, problem.ptr, problem.parent, problem.weight
    kind, xi, xi_next, gain, phi = work.kind, work.xi, work.xi_next, work.gain, work.phi
    log_sum, growth, mean, term, below, above = work.log_sum, work.growth, work.mean, work.term, work.below, work.above
    mantissa, exponent, back, near = work.mantissa, work.exponent, work.back, work.near
    e_a, e_b, o_a, o_b = work.e_a, work.e_b, work.o_a, work.o_b
    child_ea, child_eb, child_oa, child_ob = work.child_ea, work.child_eb, work.child_oa, work.child_ob
    for f in range(len(factor)):
        if kind[f] != XI and kind[f] != JENSEN:
            continue
        start, k = ptr[f], ptr[f + 1] - ptr[f]
        first = np.uint64(start)  # unsigned places need no check for being negative
        for s in range(np.uint64(k)):
            near[s] = mu[np.uint64(parent[first + s])]
        low, high = bias[factor[f]] + below[f], bias[factor[f]] + above[f]
        old, trial, steps, before = xi[f], xi_next[f], 0, np.inf
        while True:
            value, share, average, slope, curvature = xi_pass(
                weight, mantissa, exponent, start, k, near, low, high, trial, e_a, e_b, o_a, o_b
            )
            if steps == 0 and slope * (trial - old) > 0.0:
                before = -np.inf
                if 1e-250 < growth[f] < 1e250:
                    before = old * mean[f] + log_sum[f] + math.log(growth[f])
            if value > before and trial != old:  # too far: half as far, then not at all
                trial, steps = old if steps < 0 else 0.5 * (trial + old), -1
                continue
            target, promise = trial, 0.0
            if kind[f] == XI and curvature > 0.0:
                target = min(max(trial - slope / curvature, 0.0), 1.0)
                promise = 0.5 * abs(slope * (target - trial))
            if promise < _REPASS or steps < 0 or steps >= _MORE_STEPS:
                break
            old, before, trial, steps = trial, value, target, steps + 1
        xi[f], xi_next[f], gain[f] = trial, target, promise
        phi[f], mean[f], term[f] = share, average, value
        log_sum[f], growth[f] = value - trial * average, 1.0
        for s in range(np.uint64(k)):  # hand out by child, for the updates of the parents
            c = np.uint64(back[first + s])
            child_ea[c], child_eb[c], child_oa[c], child_ob[c] = e_a[s], e_b[s], o_a[s], o_b[s]


@inner
def _no_waves() -> Waves:
    none, zero = np.empty(0), np.zeros(1, np.int64)
    return Waves(zero, none, none, none, none, none, zero, none, none, zero, none, none)


@inner
def _make_waves(problem: Problem, work: Work, bias: FloatArray, mu: FloatArray) -> Waves:
    """Frequencies for every factor that has a xi, as many as its z needs now; none where that is too many."""
    n_factors = len(problem.factor)
    ptr = np.zeros(n_factors + 1, np.int64)
    edge_ptr = np.zeros(len(problem.weight) + 1, np.int64)
    most = 1
    for f in range(n_factors):
        nodes = 0
        low = high = mean = bias[problem.factor[f]]
        variance = 0.0
        for s in range(problem.ptr[f], problem.ptr[f + 1]):
            j, m = problem.weight[s], mu[problem.parent[s]]
            low += min(j, 0.0)
            high += max(j, 0.0)
            mean += j * m
            variance += j * j * m * (1.0 - m)
        if work.kind[f] == XI:
            nodes = trapezoid_nodes(low, high, mean, math.sqrt(variance))
            nodes = 0 if nodes > MAX_NODES else nodes
        most = max(most, nodes)
        ptr[f + 1] = ptr[f] + nodes
        for s in range(problem.ptr[f], problem.ptr[f + 1]):
            edge_ptr[s + 1] = edge_ptr[s] + nodes
    total, edges = ptr[n_factors], edge_ptr[len(problem.weight)]
    children = 1
    for j in range(len(problem.hidden)):
        children = max(children, problem.child_ptr[j + 1] - problem.child_ptr[j])
    less_ptr = most * np.arange(children)
    less = np.empty((2, most * children))
    waves = Waves(
        ptr, np.empty(total), np.empty(n_factors), np.empty(n_factors), np.empty(total), np.empty(total),
        edge_ptr, np.empty(edges), np.empty(edges), less_ptr, less[0], less[1],
    )  # fmt: skip
    for f in range(n_factors):
        nodes = ptr[f + 1] - ptr[f]
        if nodes:
            waves.step[f] = OMEGA / nodes
            waves.constant[f] = trapezoid_weights(nodes, waves.weight[ptr[f] : ptr[f + 1]])
            for s in range(problem.ptr[f], problem.ptr[f + 1]):
                e = slice(edge_ptr[s], edge_ptr[s + 1])
                powers(waves.step[f] * problem.weight[s], waves.edge_re[e], waves.edge_im[e])
    return waves


@bare
def _renew_others(problem: Problem, work: Work, waves: Waves, bias: FloatArray, mu: FloatArray) -> None:
    """Compute the terms of all other factors."""
    factor, ptr, parent, weight = problem.factor, problem.ptr, problem.parent, problem.weight
    kind, near, table, table_ptr, scratch = work.kind, work.near, work.table, work.table_ptr, work.scratch
    wave_ptr, wave_weight, re, im = waves.ptr, waves.weight, waves.re, waves.im
    edge_ptr, edge_re, edge_im = waves.edge_ptr, waves.edge_re, waves.edge_im
    for f in range(len(factor)):
        if kind[f] == XI or kind[f] == JENSEN:
            continue
        start, k, h = ptr[f], ptr[f + 1] - ptr[f], bias[factor[f]]
        for s in range(k):
            near[s] = mu[parent[start + s]]
        mean, second = moments(weight[start : start + k], near[:k], h)
        work.mean[f], work.second[f] = mean, second
        if kind[f] == ENUMERATED:
            work.term[f] = contract(table, table_ptr[f], k, near, -1, scratch)
        elif kind[f] == QUADRATIC:
            work.c[f] = math.sqrt(second)
            work.term[f] = quadratic_term(mean, second, work.c[f])
        else:
            a, n, step = wave_ptr[f], wave_ptr[f + 1] - wave_ptr[f], waves.step[f]
            powers(step * h, re[a : a + n], im[a : a + n])
            for s in range(k):
                mix_in(re, im, a, n, edge_re, edge_im, edge_ptr[start + s], near[s])
            wave = real_sum(wave_weight, re, a, n)
            work.term[f] = waves.constant[f] + 0.5 * mean + step * second / (4.0 * math.pi) - wave


@bare
def _sweep(problem: Problem, work: Work, waves: Waves, plain: bool, bias: FloatArray, mu: FloatArray) -> None:
    """Eq. (24) for one hidden unit after the other."""
    hidden, factor_of, factor, ptr, parent = (
        problem.hidden, problem.factor_of, problem.factor, problem.ptr, problem.parent
    )  # fmt: skip
    child_ptr, child, child_slot, child_weight = problem.child_ptr, problem.child, problem.child_slot, work.child_weight
    kind, xi, phi, growth, mean, second = work.kind, work.xi, work.phi, work.growth, work.mean, work.second
    value, curve, contiguous, near = work.value, work.c, work.contiguous, work.near
    e_a, e_b, o_a, o_b = work.child_ea, work.child_eb, work.child_oa, work.child_ob
    table, table_ptr, scratch = work.table, work.table_ptr, work.scratch
    wave_ptr, wave_weight, step, re, im = waves.ptr, waves.weight, waves.step, waves.re, waves.im
    edge_ptr, edge_re, edge_im = waves.edge_ptr, waves.edge_re, waves.edge_im
    less_ptr, less_re, less_im = waves.less_ptr, waves.less_re, waves.less_im
    for j in range(len(hidden)):
        start, end, own = child_ptr[j], child_ptr[j + 1], factor_of[j]
        field = mean[own] if own >= 0 else bias[hidden[j]]
        quick = plain and contiguous[j] == 1
        shift = start - child[start] if quick else 0
        if quick:
            field += xi_pull(child_weight, e_a, e_b, o_a, o_b, start, end, value, xi, phi, shift)
        else:
            for c in range(start, end):
                f, slot, w = child[c], child_slot[c], child_weight[c]
                field += w * value[f]
                bend = w * (2.0 * mean[f] + w * (1.0 - 2.0 * mu[j]))  # slope of <z^2>
                if kind[f] == XI or kind[f] == JENSEN:
                    k = (1.0 - phi[f]) * (1.0 - e_a[c]) * o_a[c] - phi[f] * (1.0 - e_b[c]) * o_b[c]
                    field -= xi[f] * w - (k if w > 0.0 else -k)
                elif kind[f] == ENUMERATED:
                    for s in range(ptr[f], ptr[f + 1]):
                        near[s - ptr[f]] = mu[parent[s]]
                    field -= contract(table, table_ptr[f], ptr[f + 1] - ptr[f], near, slot - ptr[f], scratch)
                elif kind[f] == QUADRATIC:
                    field -= quadratic_lambda(curve[f]) * bend + 0.5 * w
                else:
                    a, n, e, b = wave_ptr[f], wave_ptr[f + 1] - wave_ptr[f], edge_ptr[slot], less_ptr[c - start]
                    if take_out(re, im, a, n, edge_re, edge_im, e, mu[j], less_re, less_im, b) < _NEAR_ZERO:
                        powers(step[f] * bias[factor[f]], less_re[b : b + n], less_im[b : b + n])
                        for s in range(ptr[f], ptr[f + 1]):
                            if s != slot:
                                mix_in(less_re, less_im, b, n, edge_re, edge_im, edge_ptr[s], mu[parent[s]])
                    wave = slope_sum(wave_weight, a, n, less_re, less_im, b, edge_re, edge_im, e)
                    field -= 0.5 * w + step[f] * bend / (4.0 * math.pi) - wave
        old, new = mu[j], min(max(sigmoid(field), EDGE), 1.0 - EDGE)
        if new == old:
            continue
        mu[j] = new
        if own >= 0:
            value[own] = new
        if quick:
            xi_push(child_weight, e_a, e_b, o_a, o_b, start, end, new, new - old, phi, growth, mean, shift)
            continue
        for c in range(start, end):
            f, w = child[c], child_weight[c]
            if kind[f] == XI or kind[f] == JENSEN:
                p, q = (new, 1.0 - new) if w > 0.0 else (1.0 - new, new)
                part_a = (1.0 - phi[f]) * ((q + p * e_a[c]) * o_a[c])
                part_b = phi[f] * ((p + q * e_b[c]) * o_b[c])
                phi[f] = part_b / (part_a + part_b)
                growth[f] *= part_a + part_b
            elif kind[f] == EXACT:
                a, n, b = wave_ptr[f], wave_ptr[f + 1] - wave_ptr[f], less_ptr[c - start]
                put_back(less_re, less_im, b, n, edge_re, edge_im, edge_ptr[child_slot[c]], new, re, im, a)
            second[f] += (new - old) * w * (2.0 * mean[f] + w * (1.0 - 2.0 * old))
            mean[f] += w * (new - old)


@bare
def _bound(problem: Problem, work: Work, constant: float, bias: FloatArray, mu: FloatArray) -> float:
    """Eq. (16), the logarithm terms being whatever they are."""
    hidden, factor_of = problem.hidden, problem.factor_of
    value, mean, term = work.value, work.mean, work.term
    total = constant
    for j in range(len(hidden)):
        m = mu[j]
        total -= m * math.log(m) + (1.0 - m) * math.log1p(-m)
        if factor_of[j] < 0:
            total += m * bias[hidden[j]]
    for f in range(len(value)):
        total += value[f] * mean[f] - term[f]
    return total


@bare
def _settled(problem: Problem, states: States, bias: FloatArray) -> float:
    """Terms of the units whose inputs are known."""
    total = 0.0
    for i in problem.settled:
        total -= softplus(bias[i])
        if states[i] >= 0:
            total += states[i] * bias[i]
    return total


@bare
def _climb(
    problem: Problem,
    work: Work,
    waves: Waves,
    plain: bool,
    tol: float,
    last: int,
    constant: float,
    bias: FloatArray,
    mu: FloatArray,
    trace: FloatArray,
    done: int,
) -> tuple[int, bool]:
    """Sweep until the bound rises by less than `tol`; returns the number of sweeps so far, and whether it settled."""
    bound = _bound(problem, work, constant, bias, mu)
    while done < last:
        _sweep(problem, work, waves, plain, bias, mu)
        _renew_xi(problem, work, bias, mu)
        _renew_others(problem, work, waves, bias, mu)
        done += 1
        before, bound = bound, _bound(problem, work, constant, bias, mu)
        if done < len(trace):
            trace[done] = bound
        if bound - before + work.gain.sum() < tol:
            return done, True
    return done, False


@inner
def _switch(problem: Problem, work: Work, waves: Waves, bias: FloatArray, mu: FloatArray) -> None:
    """Replace the paper's term by the exact one wherever that is tighter."""
    paper = work.term.copy()
    for f in range(len(problem.factor)):
        if waves.ptr[f + 1] > waves.ptr[f]:
            work.kind[f] = EXACT
    _renew_others(problem, work, waves, bias, mu)
    for f in range(len(problem.factor)):
        if work.kind[f] == EXACT and work.term[f] < paper[f]:
            work.gain[f] = 0.0
        elif work.kind[f] == EXACT:
            work.kind[f], work.term[f] = XI, paper[f]


@inner
def solve(
    problem: Problem,
    work: Work,
    settings: Settings,
    states: States,
    bias: FloatArray,
    mu: FloatArray,
    trace: FloatArray,
) -> tuple[float, int, bool]:
    """Solve one problem from the means in `mu` and the parameters in `work.xi`: (bound, sweeps, settled)."""
    constant = _settled(problem, states, bias)
    waves = _no_waves()
    for j in range(len(mu)):
        mu[j] = min(max(mu[j], EDGE), 1.0 - EDGE)
    for f in range(len(problem.factor)):
        i = problem.factor[f]
        work.value[f] = mu[problem.own[f]] if problem.own[f] >= 0 else states[i]
        if work.kind[f] == EXACT:  # of the pattern solved before
            work.kind[f] = XI
        elif work.kind[f] == JENSEN:
            work.xi[f] = 0.0
        elif work.kind[f] == ENUMERATED:
            slots = slice(problem.ptr[f], problem.ptr[f + 1])
            softplus_table(problem.weight[slots], bias[i], work.table[work.table_ptr[f] : work.table_ptr[f + 1]])
        work.xi_next[f] = work.xi[f]
    _renew_xi(problem, work, bias, mu)
    _renew_others(problem, work, waves, bias, mu)
    if len(trace):
        trace[0] = _bound(problem, work, constant, bias, mu)
    done, settled = np.int64(0), False
    for phase in range(2 if settings.log_term == EXACT else 1):
        if phase == 1:
            waves = _make_waves(problem, work, bias, mu)
            _switch(problem, work, waves, bias, mu)
        tol = max(settings.tol, _ROUGH) if settings.log_term == EXACT and phase == 0 else settings.tol
        done, settled = _climb(
            problem, work, waves, phase == 0, tol, settings.max_sweeps, constant, bias, mu, trace, done
        )
    return _bound(problem, work, constant, bias, mu), int(done), settled


@inner
def predict_barren(graph: Graph, states: States, bias: FloatArray, means: FloatArray) -> None:
    """Means of the units that were dropped: <sigma(z)> under the means of their parents, which come first."""
    for i in range(len(states)):
        if states[i] < 0 and np.isnan(means[i]):
            start, end = graph.indptr[i], graph.indptr[i + 1]
            weight, near = np.empty(end - start), np.empty(end - start)
            k = 0
            for e in range(start, end):
                j = graph.parent[e]
                if states[j] < 0:
                    weight[k] = graph.weight[e]
                    near[k] = means[j]
                    k += 1
            means[i] = mean_sigmoid(weight[:k], near[:k], bias[i])


@kernel
def solve_rows(
    graph: Graph,
    settings: Settings,
    states: States,
    bias: FloatArray,
    means: FloatArray,
    xi: FloatArray,
    bound: FloatArray,
    sweeps: IndexArray,
    settled: IndexArray,
    trace: FloatArray,
) -> None:
    """Solve every row. `means` and `xi` hold the starting points, and then the results; NaN stands for one half.

    On return, `xi` is NaN for units whose logarithm term has no such parameter.
    """
    n_rows, n_units = states.shape
    for chunk in range((n_rows + _CHUNK - 1) // _CHUNK):
        first = chunk * _CHUNK
        problem = reduce(graph, states[first])
        work = prepare(problem, settings)
        for r in range(first, min(first + _CHUNK, n_rows)):
            for i in range(n_units):
                if (states[r, i] < 0) != (states[r - 1, i] < 0) and r > first:
                    problem = reduce(graph, states[r])
                    work = prepare(problem, settings)
                    break
            mu = np.empty(len(problem.hidden))
            for j in range(len(mu)):
                mu[j] = means[r, problem.hidden[j]]
                if np.isnan(mu[j]):
                    mu[j] = 0.5
            for f in range(len(problem.factor)):
                work.xi[f] = xi[r, problem.factor[f]]
                if np.isnan(work.xi[f]):
                    work.xi[f] = 0.5
            bound[r], sweeps[r], settled[r] = solve(problem, work, settings, states[r], bias[r], mu, trace[r])
            for i in range(n_units):
                means[r, i] = np.nan if states[r, i] < 0 else states[r, i]
                xi[r, i] = np.nan
            for j in range(len(mu)):
                means[r, problem.hidden[j]] = mu[j]
            for f in range(len(problem.factor)):
                if work.kind[f] == XI or work.kind[f] == JENSEN:
                    xi[r, problem.factor[f]] = work.xi[f]
            predict_barren(graph, states[r], bias[r], means[r])
