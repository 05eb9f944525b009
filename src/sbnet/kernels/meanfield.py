"""The mean field equations of one pattern, solved by coordinate ascent.

One sweep updates the means one at a time by eq. (24), then gives every logarithm term a new parameter xi. Each of these
steps can only raise the bound (footnote 4): in one mean, the bound is concave plus convex, and eq. (24) maximises it
with the convex part replaced by its tangent; in one xi it is concave.
"""

from __future__ import annotations

import math

import numpy as np

from sbnet._types import FloatArray, Problem, Settings, States
from sbnet.kernels._compile import bare, inner
from sbnet.kernels.gates import sigmoid, softplus
from sbnet.kernels.terms import (
    contract,
    mix_in,
    moments,
    powers,
    put_back,
    quadratic_lambda,
    quadratic_term,
    real_sum,
    slope_sum,
    softplus_table,
    take_out,
)
from sbnet.kernels.tiles import (
    E_A,
    E_B,
    EXP_A,
    EXP_B,
    FREE,
    HIGH,
    LOW,
    MEAN,
    NEXT,
    OVER_A,
    OVER_B,
    PHI,
    PRODUCT_A,
    PRODUCT_B,
    TERM,
    VALUE,
    add_parent,
    close_block,
    entropy,
    exponentials,
    open_block,
    pull,
    push,
    rescale,
    shorten,
    step_block,
)
from sbnet.kernels.tiles import XI as XI_
from sbnet.kernels.work import (
    ENUMERATED,
    EXACT,
    JENSEN,
    NEAR_ZERO,
    QUADRATIC,
    XI,
    Waves,
    Work,
    make_waves,
    no_waves,
    stale,
)

EDGE = 1e-14  # means keep this distance from 0 and 1; it costs a bound at most 1e-14 of the weights
_SHARE = 0.2  # of the rise of the bound: what steps of xi must promise to be worth taking
_XI_STEPS = 20
_ROUNDS = 4  # how often the exact term may be given new frequencies
_SAFE = 16  # factors of at least EDGE that can be multiplied before the product is rescaled
_ROUGH = 1e-2  # nats: how far the paper's bound is taken before the exact term replaces it


# A tuple of many arrays is dear to pass, and to look into: functions that take one are called once a sweep, name the
# arrays they need first, and then loop.


@bare
def _pass(work: Work, mu: FloatArray, fresh: bool) -> None:
    """Add up what the terms of the active blocks are made of; with new exponentials if their xi are new."""
    blocks, tiles, tile_block, tile_ptr, active = work.blocks, work.tiles, work.tile_block, work.tile_ptr, work.active
    for b in range(len(active)):
        if active[b] == 1:
            open_block(blocks, b)
    for j in range(len(mu)):
        if fresh:
            exponentials(tiles, tile_block, tile_ptr[j], tile_ptr[j + 1], blocks, active)
        add_parent(tiles, tile_block, tile_ptr[j], tile_ptr[j + 1], blocks, active, mu[j])
        if j % _SAFE == _SAFE - 1:
            rescale(blocks, len(active), PRODUCT_A, EXP_A)
            rescale(blocks, len(active), PRODUCT_B, EXP_B)


@bare
def _renew_xi(work: Work, mu: FloatArray, first: bool, enough: float) -> float:
    """Compute the paper's terms at the present means, and give each xi a step of Newton's method.

    A first pass, with the exponentials of the present xi, finds the terms and their slopes. Blocks whose steps promise
    more than `enough` take them, in a second pass; steps that have raised their term are shortened. Returns what
    further steps promise.
    """
    blocks, active = work.blocks, work.active
    promised = 0.0
    for b in range(len(active)):
        active[b] = 1
    _pass(work, mu, first)
    left = 0
    for b in range(len(active)):
        promise = close_block(blocks, b)
        if promise > enough:
            step_block(blocks, b)
            left += 1
        else:
            active[b] = 0
            promised += promise
    while left > 0:
        _pass(work, mu, True)
        left = 0
        for b in range(len(active)):
            if active[b] == 1:
                promise = close_block(blocks, b)
                if shorten(blocks, b):
                    left += 1
                else:
                    active[b] = 0
                    promised += promise
    return promised


@bare
def _renew_others(problem: Problem, work: Work, waves: Waves, bias: FloatArray, mu: FloatArray) -> None:
    """Compute the terms of all other factors."""
    factor, ptr, parent, weight = problem.factor, problem.ptr, problem.parent, problem.weight
    kind, near, table, table_ptr, scratch = work.kind, work.near, work.table, work.table_ptr, work.scratch
    place, blocks, squares, curve = work.place, work.blocks, work.second, work.c
    wave_ptr, wave_weight, re, im = waves.ptr, waves.weight, waves.re, waves.im
    edge_ptr, edge_re, edge_im = waves.edge_ptr, waves.edge_re, waves.edge_im
    for f in range(len(factor)):
        if kind[f] == XI or kind[f] == JENSEN:
            continue
        start, k, h = ptr[f], ptr[f + 1] - ptr[f], bias[factor[f]]
        for s in range(k):
            near[s] = mu[parent[start + s]]
        mean, second = moments(weight[start : start + k], near[:k], h)
        if kind[f] == ENUMERATED:
            term = contract(table, table_ptr[f], k, near, -1, scratch)
        elif kind[f] == QUADRATIC:
            curve[f] = math.sqrt(second)
            term = quadratic_term(mean, second, curve[f])
        else:
            a, n, step = wave_ptr[f], wave_ptr[f + 1] - wave_ptr[f], waves.step[f]
            powers(step * h, re[a : a + n], im[a : a + n])
            for s in range(k):
                mix_in(re, im, a, n, edge_re, edge_im, edge_ptr[start + s], near[s])
            wave = real_sum(wave_weight, re, a, n)
            term = waves.constant[f] + 0.5 * mean + step * second / (4.0 * math.pi) - wave
        squares[f] = second
        blocks[place[f] + MEAN], blocks[place[f] + TERM] = mean, term


@bare
def _sweep(problem: Problem, work: Work, waves: Waves, tiled: bool, bias: FloatArray, mu: FloatArray) -> None:
    """Eq. (24) for one hidden unit after the other. `tiled`: all factors that have a xi are served by tiles."""
    hidden, factor_of, factor, ptr, parent = (
        problem.hidden, problem.factor_of, problem.factor, problem.ptr, problem.parent
    )  # fmt: skip
    child_ptr, child, child_slot, weight = problem.child_ptr, problem.child, problem.child_slot, problem.weight
    kind, place, second, curve, near = work.kind, work.place, work.second, work.c, work.near
    blocks, tiles, tile_block, tile_ptr = work.blocks, work.tiles, work.tile_block, work.tile_ptr
    child_place, others = work.child_place, work.others
    table, table_ptr, scratch = work.table, work.table_ptr, work.scratch
    wave_ptr, wave_weight, step, re, im = waves.ptr, waves.weight, waves.step, waves.re, waves.im
    edge_ptr, edge_re, edge_im = waves.edge_ptr, waves.edge_re, waves.edge_im
    less_ptr, less_re, less_im = waves.less_ptr, waves.less_re, waves.less_im
    for j in range(len(hidden)):
        start, end, own = child_ptr[j], child_ptr[j + 1], factor_of[j]
        field = blocks[place[own] + MEAN] if own >= 0 else bias[hidden[j]]
        if tiled:
            field += pull(tiles, tile_block, tile_ptr[j], tile_ptr[j + 1], blocks)
            if others[j] == 0:
                end = start
        for c in range(start, end):
            f, slot = child[c], child_slot[c]
            w, at = weight[slot], place[f]
            bend = w * (2.0 * blocks[at + MEAN] + w * (1.0 - 2.0 * mu[j]))  # slope of <z^2>
            if kind[f] == XI or kind[f] == JENSEN:
                if not tiled:
                    t, phi = child_place[c], blocks[at + PHI]
                    k = (1.0 - phi) * (1.0 - tiles[t + E_A]) * tiles[t + OVER_A]
                    k -= phi * (1.0 - tiles[t + E_B]) * tiles[t + OVER_B]
                    field += w * (blocks[at + VALUE] - blocks[at + XI_]) + (k if w > 0.0 else -k)
                continue
            field += w * blocks[at + VALUE]
            if kind[f] == ENUMERATED:
                for s in range(ptr[f], ptr[f + 1]):
                    near[s - ptr[f]] = mu[parent[s]]
                field -= contract(table, table_ptr[f], ptr[f + 1] - ptr[f], near, slot - ptr[f], scratch)
            elif kind[f] == QUADRATIC:
                field -= quadratic_lambda(curve[f]) * bend + 0.5 * w
            else:
                a, n, e, b = wave_ptr[f], wave_ptr[f + 1] - wave_ptr[f], edge_ptr[slot], less_ptr[c - start]
                if take_out(re, im, a, n, edge_re, edge_im, e, mu[j], less_re, less_im, b) < NEAR_ZERO:
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
            blocks[place[own] + VALUE] = new
        if tiled:
            push(tiles, tile_block, tile_ptr[j], tile_ptr[j + 1], blocks, new, new - old)
        for c in range(start, end):
            f, slot = child[c], child_slot[c]
            w, at = weight[slot], place[f]
            if kind[f] == XI or kind[f] == JENSEN:
                if not tiled:
                    t, phi = child_place[c], blocks[at + PHI]
                    p, q = (new, 1.0 - new) if w > 0.0 else (1.0 - new, new)
                    part_a = (1.0 - phi) * ((q + p * tiles[t + E_A]) * tiles[t + OVER_A])
                    part_b = phi * ((p + q * tiles[t + E_B]) * tiles[t + OVER_B])
                    blocks[at + PHI] = part_b / (part_a + part_b)
                    blocks[at + MEAN] += w * (new - old)
                continue
            if kind[f] == EXACT:
                a, n, b = wave_ptr[f], wave_ptr[f + 1] - wave_ptr[f], less_ptr[c - start]
                put_back(less_re, less_im, b, n, edge_re, edge_im, edge_ptr[slot], new, re, im, a)
            second[f] += (new - old) * w * (2.0 * blocks[at + MEAN] + w * (1.0 - 2.0 * old))
            blocks[at + MEAN] += w * (new - old)


@bare
def _bound(problem: Problem, work: Work, constant: float, bias: FloatArray, mu: FloatArray) -> float:
    """Eq. (16), the logarithm terms being whatever they are."""
    hidden, factor_of, place, blocks = problem.hidden, problem.factor_of, work.place, work.blocks
    total = constant + entropy(mu)
    for j in range(len(hidden)):
        if factor_of[j] < 0:
            total += mu[j] * bias[hidden[j]]
    for f in range(len(place)):
        total += blocks[place[f] + VALUE] * blocks[place[f] + MEAN] - blocks[place[f] + TERM]
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
    phase: int,
    tol: float,
    last: int,
    constant: float,
    bias: FloatArray,
    mu: FloatArray,
    trace: FloatArray,
    done: int,
) -> tuple[int, bool]:
    """Sweep until the bound rises by less than `tol`; returns the number of sweeps so far, and whether it settled."""
    any_xi = False
    for kind in work.kind:
        if kind == XI or kind == JENSEN:  # noqa: SIM109
            any_xi = True
    bound = _bound(problem, work, constant, bias, mu)
    rise = np.inf
    while done < last:
        _sweep(problem, work, waves, phase == 0, bias, mu)
        enough = max(_SHARE * tol, _SHARE * min(rise, _ROUGH)) / len(work.active) if any_xi else 0.0
        promise = _renew_xi(work, mu, False, enough) if any_xi else 0.0
        _renew_others(problem, work, waves, bias, mu)
        done += 1
        before, bound = bound, _bound(problem, work, constant, bias, mu)
        rise = bound - before
        if done < len(trace):
            trace[done] = bound
        if rise + promise < tol:
            return done, True
    return done, False


@inner
def _switch(problem: Problem, work: Work, waves: Waves, bias: FloatArray, mu: FloatArray) -> None:
    """Replace the paper's term by the exact one, or by the quadratic one, wherever that is tighter."""
    blocks, place, kind = work.blocks, work.place, work.kind
    for f in range(len(kind)):
        if kind[f] != ENUMERATED:
            kind[f], blocks[place[f] + FREE] = XI, 1.0
    for b in range(len(work.active)):
        work.active[b] = 1
    _pass(work, mu, False)
    for b in range(len(work.active)):
        close_block(blocks, b)
    paper = np.empty(len(kind))
    for f in range(len(kind)):
        paper[f] = blocks[place[f] + TERM]
        if kind[f] == XI:  # the quadratic term may win where z reaches too far for the exact one
            kind[f] = EXACT if waves.ptr[f + 1] > waves.ptr[f] else QUADRATIC
    _renew_others(problem, work, waves, bias, mu)
    for f in range(len(kind)):
        if kind[f] != ENUMERATED and blocks[place[f] + TERM] >= paper[f]:
            kind[f], blocks[place[f] + TERM] = XI, paper[f]
        elif kind[f] != ENUMERATED:
            blocks[place[f] + FREE], blocks[place[f] + NEXT] = 0.0, blocks[place[f] + XI_]


@bare
def _start(problem: Problem, work: Work, settings: Settings, states: States, bias: FloatArray, mu: FloatArray) -> None:
    """Bring the pattern into the state: what is observed, the range of z, the kind of each term."""
    kind, place, blocks, below, above = work.kind, work.place, work.blocks, work.below, work.above
    for j in range(len(mu)):
        mu[j] = min(max(mu[j], EDGE), 1.0 - EDGE)
    for f in range(len(kind)):
        i, own, at = problem.factor[f], problem.own[f], place[f]
        blocks[at + VALUE] = mu[own] if own >= 0 else states[i]
        blocks[at + LOW], blocks[at + HIGH] = bias[i] + below[f], bias[i] + above[f]
        if settings.log_term == EXACT and kind[f] != ENUMERATED:  # it starts as the paper's, whatever it ended as
            kind[f] = XI
        if kind[f] == JENSEN:
            blocks[at + XI_] = 0.0
        elif kind[f] == ENUMERATED:
            slots = slice(problem.ptr[f], problem.ptr[f + 1])
            softplus_table(problem.weight[slots], bias[i], work.table[work.table_ptr[f] : work.table_ptr[f + 1]])
        blocks[at + FREE] = 1.0 if kind[f] == XI else 0.0
        blocks[at + NEXT] = blocks[at + XI_]


@inner
def solve(
    problem: Problem,
    work: Work,
    settings: Settings,
    states: States,
    bias: FloatArray,
    mu: FloatArray,
    warm: bool,
    trace: FloatArray,
) -> tuple[float, int, bool, Waves]:
    """Solve one problem from the means in `mu` and the xi in `work.blocks`: (bound, sweeps, settled, waves)."""
    constant = _settled(problem, states, bias)
    waves = no_waves()
    if len(mu) == 0:
        if len(trace):
            trace[0] = constant
        return constant, 0, True, waves
    _start(problem, work, settings, states, bias, mu)
    promise = _renew_xi(work, mu, True, 0.0)
    for _ in range(_XI_STEPS if warm else 0):  # means that someone has found deserve the best xi before they move
        if promise < settings.tol:
            break
        promise = _renew_xi(work, mu, False, 0.0)
    _renew_others(problem, work, waves, bias, mu)
    if len(trace):
        trace[0] = _bound(problem, work, constant, bias, mu)
    done, settled, best = np.int64(0), False, -np.inf
    for phase in range(1 + _ROUNDS if settings.log_term == EXACT else 1):
        if phase == 0 and warm and settings.log_term == EXACT:
            continue  # straight to the exact term
        if phase > 1 and not stale(problem, work, waves, bias, mu):
            break
        if phase > 0:
            waves = make_waves(problem, work, waves, bias, mu)
            _switch(problem, work, waves, bias, mu)
        tol = max(settings.tol, _ROUGH) if settings.log_term == EXACT and phase == 0 else settings.tol
        done, settled = _climb(problem, work, waves, phase, tol, settings.max_sweeps, constant, bias, mu, trace, done)
        before, best = best, max(best, _bound(problem, work, constant, bias, mu))
        if phase > 1 and best - before < settings.tol:
            break
    if done < len(trace):
        trace[done] = best  # new frequencies may have raised it after the last sweep
    return best, int(done), settled, waves
