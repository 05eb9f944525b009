"""The paper's term where parents have more than two states: sums over states where `xi` has one exponential.

A group of K tiles holds, for each state s of the parent, J_s - least and most - J_s, and e_a = e^{-xi (J_s - least)},
e_b = e^{-(1-xi) (most - J_s)}. Parents with two states stay with `xi`.
"""

from __future__ import annotations

from sbnet.kernels.compiling import inner, kernel
from sbnet.kernels.kinds import JENSEN, XI
from sbnet.kernels.structs import LANES
from sbnet.kernels.terms import xi
from sbnet.kernels.terms.xi_alone import one_term
from sbnet.kernels.terms.xi_block import check, evaluate, newton, rescale
from sbnet.kernels.vector import exp_minus

SERVES = (XI, JENSEN)


@kernel
def prepare(problem, blocks, tiles, numbers):
    """How far the weight of each state is from the least and from the most."""
    xi.prepare(problem, blocks, tiles, numbers)
    for k in range(len(tiles)):
        n = tiles[k].states
        for i in range(LANES if n > 2 and tiles[k].state == 0 else 0):
            least = most = 0.0
            for s in range(n):
                least, most = min(least, tiles[k + s].weight[i]), max(most, tiles[k + s].weight[i])
            for s in range(n):
                tiles[k + s].from_least[i] = tiles[k + s].weight[i] - least
                tiles[k + s].from_most[i] = most - tiles[k + s].weight[i]


@inner
def probability(q, column, states, s):
    """Q(s) of a variable: Q has the states from 1 on."""
    if s > 0:
        return q[column + s - 1]
    rest = 1.0
    for k in range(column, column + states - 1):
        rest -= q[k]
    return rest


@inner(fast=True)
def _factors(tiles, k, block, q):
    """f_A and f_B of the parent whose group begins at tile k."""
    for i in range(LANES):
        block.f_a[i] = block.f_b[i] = 0.0
    for s in range(tiles[k].states):
        tile, p = tiles[k + s], probability(q, tiles[k].column, tiles[k].states, s)
        for i in range(LANES):
            block.f_a[i] += p * tile.e_a[i]
            block.f_b[i] += p * tile.e_b[i]


@inner(fast=True)
def pull(parent, problem, blocks, tiles, numbers, q, field):
    """What the children say about each state, compared with state 0, eq. (24)."""
    if parent.states == 2:
        xi.pull(parent, problem, blocks, tiles, numbers, q, field)
        return
    for kind in SERVES:
        for k in range(parent.tile[kind], parent.tile_end[kind], parent.states):
            base, block = tiles[k], blocks[tiles[k].block]
            _factors(tiles, k, block, q)
            for i in range(LANES):  # A and B without this parent, as shares of their sum with it
                f_a, f_b = block.f_a[i], block.f_b[i]
                over = 1.0 / (f_a * f_b * (block.share_a[i] + block.share_b[i]))
                block.share_a[i], block.share_b[i] = block.share_a[i] * f_b * over, block.share_b[i] * f_a * over
            for s in range(1, base.states):
                tile, total = tiles[k + s], 0.0
                for i in range(LANES):
                    influence = block.share_a[i] * (tile.e_a[i] - base.e_a[i])
                    influence += block.share_b[i] * (tile.e_b[i] - base.e_b[i])
                    total += tile.weight[i] * (block.a[i] - block.c[i] * block.xi[i]) - block.c[i] * influence
                field[s - 1] += total


@inner(fast=True)
def push(parent, problem, blocks, tiles, numbers, old, q):
    """The parent has moved: A and B of its children change by one factor each, and <x> follows."""
    if parent.states == 2:
        xi.push(parent, problem, blocks, tiles, numbers, old, q)
        return
    for kind in SERVES:
        for k in range(parent.tile[kind], parent.tile_end[kind], parent.states):
            base, block = tiles[k], blocks[tiles[k].block]
            _factors(tiles, k, block, q)
            for i in range(LANES):
                block.share_a[i] *= block.f_a[i]
                block.share_b[i] *= block.f_b[i]
            for s in range(1, base.states):
                tile, change = tiles[k + s], q[base.column + s - 1] - old[s - 1]
                for i in range(LANES):
                    block.x[i] += tile.weight[i] * change


@inner(fast=True)
def _add_up(block, tiles, q):
    """All such parents of a block into its products, and into means and variances under the tilted distributions."""
    k = block.group
    while k >= 0:
        _factors(tiles, k, block, q)
        for i in range(LANES):
            block.power_a[i] = block.power_b[i] = 0.0
        for s in range(tiles[k].states):
            tile, p = tiles[k + s], probability(q, tiles[k].column, tiles[k].states, s)
            for i in range(LANES):
                d = tile.from_least[i]
                a, b = p * tile.e_a[i] * d / block.f_a[i], p * tile.e_b[i] * d / block.f_b[i]
                block.x[i] += p * d
                block.power_a[i] += a
                block.power_b[i] += b
                block.variance_a[i] += a * d
                block.variance_b[i] += b * d
        for i in range(LANES):
            a, b = block.power_a[i], block.power_b[i]
            block.product_a[i] *= block.f_a[i]
            block.product_b[i] *= block.f_b[i]
            block.mean_a[i] += a
            block.mean_b[i] += b
            block.variance_a[i] -= a * a
            block.variance_b[i] -= b * b
        rescale(block)
        k = tiles[k].after


@inner(fast=True)
def _exponentials(block, tiles):
    """e_a and e_b of every state at the present xi."""
    k = block.group
    while k >= 0:
        for s in range(2 * tiles[k].states):
            tile, second = tiles[k + s // 2], s % 2 == 1
            for i in range(LANES):
                block.arg[i] = (1.0 - block.xi[i]) * tile.from_most[i] if second else block.xi[i] * tile.from_least[i]
            exp_minus(block)
            for i in range(LANES):
                if second:
                    tile.e_b[i] = block.power[i]
                else:
                    tile.e_a[i] = block.power[i]
        k = tiles[k].after


@inner(fast=True)
def _multiply(block, tiles, q):
    """Such parents into the products, at the present xi."""
    _exponentials(block, tiles)
    k = block.group
    while k >= 0:
        _factors(tiles, k, block, q)
        for i in range(LANES):
            block.product_a[i] *= block.f_a[i]
            block.product_b[i] *= block.f_b[i]
        rescale(block)
        k = tiles[k].after


@inner(fast=True)
def value(problem, blocks, tiles, numbers, q, enough, fresh, more):
    """The terms at the present Q, as in `xi.value`, with the parents of both kinds."""
    promised = 0.0
    for b in range(len(blocks)):
        block = blocks[b]
        if block.kind != XI and block.kind != JENSEN:
            continue
        if fresh:
            xi.start(block)
            xi.multiply(block, tiles, q)
            _multiply(block, tiles, q)
        xi.add_up(block, tiles, q)
        _add_up(block, tiles, q)
        evaluate(block)
        promise = newton(block, enough)
        too_far = promise > enough
        while too_far:
            xi.multiply(block, tiles, q)
            _multiply(block, tiles, q)
            evaluate(block)
            promise, too_far = check(block)
        promised += promise
    return promised


@inner
def look(f, problem, blocks, tiles, numbers, q):
    """The term of one factor at the present Q and xi."""
    factor = problem.factors[f]
    block = blocks[factor.block]
    return one_term(problem.hidden, problem.slots, factor, q, block.h[factor.lane], block.xi[factor.lane])[0]


@inner
def gradient(problem, blocks, tiles, numbers, q, by_slot, by_factor):
    """The derivatives of the terms in biases and weights: xi Q(s) - (1 - phi) xi Q_A(s) + phi (1 - xi) Q_B(s)."""
    xi.gradient(problem, blocks, tiles, numbers, q, by_slot, by_factor)
    for k in range(len(tiles) - 1):
        tile, block = tiles[k], blocks[tiles[k].block]
        if tile.states == 2 or (block.kind != XI and block.kind != JENSEN):
            continue
        if tile.state == 0:  # it has no weight, and opens the group
            _factors(tiles, k, block, q)
            continue
        for i in range(LANES):
            if tile.slot[i] >= 0:
                xi_i, phi, p = block.xi[i], block.share_b[i], q[tile.column + tile.state - 1]
                alpha, beta = p * tile.e_a[i] / block.f_a[i], p * tile.e_b[i] / block.f_b[i]
                by_slot[tile.slot[i]] = xi_i * p - (1.0 - phi) * xi_i * alpha + phi * (1.0 - xi_i) * beta
