"""The mean field equations of one pattern, solved by coordinate ascent, and of many patterns, in parallel.

One sweep updates the means one at a time by eq. (24), then gives every logarithm term a new parameter xi. Each of these
steps can only raise the bound (footnote 4): in one mean, the bound is concave plus convex, and eq. (24) maximises it
with the convex part replaced by its tangent; in one xi it is concave.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from sbnet._types import FloatArray, Graph, IndexArray, PlaceArray, Problem, Settings, States
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
from sbnet.kernels.tiles import (
    BLOCK,
    E_A,
    E_B,
    EXP_A,
    EXP_B,
    FREE,
    HIGH,
    LANES,
    LOW,
    MEAN,
    NEXT,
    OVER_A,
    OVER_B,
    PHI,
    PRODUCT_A,
    PRODUCT_B,
    TERM,
    TILE,
    VALUE,
    add_parent,
    close_block,
    entropy,
    exponentials,
    open_block,
    pull,
    push,
    rescale,
    set_weight,
    shorten,
    step_block,
)
from sbnet.kernels.tiles import XI as XI_

XI, EXACT, QUADRATIC, JENSEN, ENUMERATED = 0, 1, 2, 3, 4
EDGE = 1e-14  # means keep this distance from 0 and 1; it costs a bound at most 1e-14 of the weights
_SHARE = 0.2  # of the rise of the bound: what steps of xi must promise to be worth taking
_ROUNDS = 4  # how often the exact term may be given new frequencies
_SAFE = 16  # factors of at least EDGE that can be multiplied before the product is rescaled
_NEAR_ZERO = 1e-4  # squared size of a factor too small to divide by: multiply the others anew
_ROUGH = 1e-2  # nats: how far the paper's bound is taken before the exact term replaces it
_CHUNK = 32  # rows that one thread takes at a time


class Work(NamedTuple):
    """The state of one problem while it is solved: arrays by factor, by tile, and by child."""

    kind: IndexArray  # by factor: which logarithm term
    place: PlaceArray  # by factor: its lane in `blocks`
    below: FloatArray  # by factor: the sum of its negative weights
    above: FloatArray  # by factor: the sum of its positive weights
    second: FloatArray  # by factor: <z^2>, for the quadratic and the exact term
    c: FloatArray  # by factor: parameter of the quadratic term
    blocks: FloatArray  # the numbers of all factors; see the module `tiles`
    tiles: FloatArray  # the edges into factors that have a xi
    tile_block: IndexArray
    tile_ptr: IndexArray  # by hidden unit: its tiles
    child_place: PlaceArray  # by child: its lane in `tiles`, if it has one
    active: IndexArray  # by block: does it take part in the pass?
    others: IndexArray  # by hidden unit: how many of its children have no xi
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
    place = np.empty(n_factors, np.uint64)
    below, above = np.zeros(n_factors), np.zeros(n_factors)
    table_ptr = np.zeros(n_factors + 1, np.int64)
    widest = 0
    lanes = np.int64(LANES)
    for f in range(n_factors):
        place[f] = np.uint64(f // lanes) * BLOCK + np.uint64(f % lanes)
        for s in range(problem.ptr[f], problem.ptr[f + 1]):
            below[f] += min(problem.weight[s], 0.0)
            above[f] += max(problem.weight[s], 0.0)
        k = problem.ptr[f + 1] - problem.ptr[f]
        widest = max(widest, k)
        kind[f] = XI if settings.log_term == EXACT else settings.log_term
        table_ptr[f + 1] = table_ptr[f]
        if k <= settings.enumerate_up_to:
            kind[f] = ENUMERATED
            table_ptr[f + 1] += 1 << k
    child_place = np.zeros(n_slots, np.uint64)
    others = np.zeros(n_hidden, np.int64)
    tile_ptr = np.zeros(n_hidden + 1, np.int64)
    tile_block = np.empty(n_slots, np.int64)  # at most one tile for each edge
    n_tiles = 0
    for j in range(n_hidden):
        last = -1
        for c in range(problem.child_ptr[j], problem.child_ptr[j + 1]):
            f = problem.child[c]
            if kind[f] == XI or kind[f] == JENSEN:
                if f // lanes != last:
                    last = f // lanes
                    tile_block[n_tiles] = last
                    n_tiles += 1
                child_place[c] = np.uint64(n_tiles - 1) * TILE + np.uint64(f % lanes)
            else:
                others[j] += 1
        tile_ptr[j + 1] = n_tiles
    tiles = np.zeros(n_tiles * np.int64(TILE))
    for t in range(n_tiles * lanes):  # edges that do not exist: weight zero
        set_weight(tiles, np.uint64(t // lanes) * TILE + np.uint64(t % lanes), 0.0)
    for c in range(n_slots):
        f = problem.child[c]
        if kind[f] == XI or kind[f] == JENSEN:
            set_weight(tiles, child_place[c], problem.weight[problem.child_slot[c]])
    active = np.zeros((n_factors + lanes - 1) // lanes, np.int64)
    blocks = np.zeros(len(active) * np.int64(BLOCK))
    return Work(
        kind, place, below, above, np.zeros(n_factors), np.zeros(n_factors), blocks, tiles, tile_block[:n_tiles].copy(),
        tile_ptr, child_place, active, others, np.zeros(widest), np.zeros(table_ptr[n_factors]), table_ptr,
        np.zeros(1 << min(widest, settings.enumerate_up_to)),
    )  # fmt: skip


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


@inner
def _no_waves() -> Waves:
    none, zero = np.empty(0), np.zeros(1, np.int64)
    return Waves(zero, none, none, none, none, none, zero, none, none, zero, none, none)


@bare
def _nodes(problem: Problem, f: int, bias: FloatArray, mu: FloatArray) -> int:
    """How many frequencies the exact term of factor f needs at the present means; none if that is too many."""
    low = high = mean = bias[problem.factor[f]]
    variance = 0.0
    for s in range(problem.ptr[f], problem.ptr[f + 1]):
        j, m = problem.weight[s], mu[problem.parent[s]]
        low += min(j, 0.0)
        high += max(j, 0.0)
        mean += j * m
        variance += j * j * m * (1.0 - m)
    nodes = trapezoid_nodes(low, high, mean, math.sqrt(variance))
    return nodes if nodes <= MAX_NODES else 0


@bare
def _stale(problem: Problem, work: Work, waves: Waves, bias: FloatArray, mu: FloatArray) -> bool:
    """Would new frequencies help: has z moved beyond those of an exact term, or is there a term still to replace?"""
    for f in range(len(problem.factor)):
        if work.kind[f] == XI and _nodes(problem, f, bias, mu) > 0:
            return True
        if work.kind[f] == EXACT and _nodes(problem, f, bias, mu) > waves.ptr[f + 1] - waves.ptr[f]:
            return True
    return False


@inner
def _make_waves(problem: Problem, work: Work, old: Waves, bias: FloatArray, mu: FloatArray) -> Waves:
    """Frequencies for every factor that has, or may have, the exact term; no fewer than it had, or it would loosen."""
    n_factors = len(problem.factor)
    ptr = np.zeros(n_factors + 1, np.int64)
    edge_ptr = np.zeros(len(problem.weight) + 1, np.int64)
    most = 1
    for f in range(n_factors):
        nodes = _nodes(problem, f, bias, mu) if work.kind[f] == XI or work.kind[f] == EXACT else 0
        if work.kind[f] == EXACT:
            nodes = max(nodes, old.ptr[f + 1] - old.ptr[f])
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
    """Replace the paper's term by the exact one wherever that is tighter."""
    blocks, place, kind = work.blocks, work.place, work.kind
    for f in range(len(kind)):
        if kind[f] == EXACT:
            kind[f], blocks[place[f] + FREE] = XI, 1.0
    for b in range(len(work.active)):
        work.active[b] = 1
    _pass(work, mu, False)
    for b in range(len(work.active)):
        close_block(blocks, b)
    paper = np.empty(len(kind))
    for f in range(len(kind)):
        paper[f] = blocks[place[f] + TERM]
        if waves.ptr[f + 1] > waves.ptr[f]:
            kind[f] = EXACT
    _renew_others(problem, work, waves, bias, mu)
    for f in range(len(kind)):
        if kind[f] == EXACT and blocks[place[f] + TERM] >= paper[f]:
            kind[f], blocks[place[f] + TERM] = XI, paper[f]
        elif kind[f] == EXACT:
            blocks[place[f] + FREE], blocks[place[f] + NEXT] = 0.0, blocks[place[f] + XI_]


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
    """Solve one problem from the means in `mu` and the parameters in `work.blocks`: (bound, sweeps, settled)."""
    kind, place, blocks, below, above = work.kind, work.place, work.blocks, work.below, work.above
    constant = _settled(problem, states, bias)
    if len(mu) == 0:
        if len(trace):
            trace[0] = constant
        return constant, 0, True
    waves = _no_waves()
    for j in range(len(mu)):
        mu[j] = min(max(mu[j], EDGE), 1.0 - EDGE)
    for f in range(len(kind)):
        i, own, at = problem.factor[f], problem.own[f], place[f]
        blocks[at + VALUE] = mu[own] if own >= 0 else states[i]
        blocks[at + LOW], blocks[at + HIGH] = bias[i] + below[f], bias[i] + above[f]
        if kind[f] == EXACT:  # of the pattern solved before
            kind[f] = XI
        elif kind[f] == JENSEN:
            blocks[at + XI_] = 0.0
        elif kind[f] == ENUMERATED:
            slots = slice(problem.ptr[f], problem.ptr[f + 1])
            softplus_table(problem.weight[slots], bias[i], work.table[work.table_ptr[f] : work.table_ptr[f + 1]])
        blocks[at + FREE] = 1.0 if kind[f] == XI else 0.0
        blocks[at + NEXT] = blocks[at + XI_]
    _renew_xi(work, mu, True, 0.0)
    _renew_others(problem, work, waves, bias, mu)
    if len(trace):
        trace[0] = _bound(problem, work, constant, bias, mu)
    done, settled, best = np.int64(0), False, -np.inf
    for phase in range(1 + _ROUNDS if settings.log_term == EXACT else 1):
        if phase > 1 and not _stale(problem, work, waves, bias, mu):
            break
        if phase > 0:
            waves = _make_waves(problem, work, waves, bias, mu)
            _switch(problem, work, waves, bias, mu)
        tol = max(settings.tol, _ROUGH) if settings.log_term == EXACT and phase == 0 else settings.tol
        done, settled = _climb(problem, work, waves, phase, tol, settings.max_sweeps, constant, bias, mu, trace, done)
        before, best = best, max(best, _bound(problem, work, constant, bias, mu))
        if phase > 1 and best - before < settings.tol:
            break
    if done < len(trace):
        trace[done] = best  # new frequencies may have raised it after the last sweep
    return best, int(done), settled


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
                guess = xi[r, problem.factor[f]]
                work.blocks[work.place[f] + XI_] = 0.5 if np.isnan(guess) else guess
            bound[r], sweeps[r], settled[r] = solve(problem, work, settings, states[r], bias[r], mu, trace[r])
            for i in range(n_units):
                means[r, i] = np.nan if states[r, i] < 0 else states[r, i]
                xi[r, i] = np.nan
            for j in range(len(mu)):
                means[r, problem.hidden[j]] = mu[j]
            for f in range(len(problem.factor)):
                if work.kind[f] == XI or work.kind[f] == JENSEN:
                    xi[r, problem.factor[f]] = work.blocks[work.place[f] + XI_]
            predict_barren(graph, states[r], bias[r], means[r])
