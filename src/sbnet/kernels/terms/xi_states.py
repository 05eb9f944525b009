"""The paper's term where parents have more than two states: sums over states where `xi` has one exponential.

A group of K tiles holds, for each state s of the parent, J_s - least and most - J_s, and e_a = e^{-xi (J_s - least)},
e_b = e^{-(1-xi) (most - J_s)}. Parents with two states stay with `xi`.
"""

import math

import numpy as np

from sbnet.kernels.compiling import inner
from sbnet.kernels.kinds import XI
from sbnet.kernels.structs import LANES
from sbnet.kernels.terms import xi
from sbnet.kernels.terms.xi import SAFE, factors, rescale, value_by
from sbnet.kernels.thresholds import softplus
from sbnet.kernels.vector import exp_of_minus


def prepare(problem, blocks, tiles, numbers):
    """How far the weight of each state is from the least and from the most of its group; a pair is one too."""
    xi.prepare(problem, blocks, tiles, numbers)
    first = (tiles["states"] == 2) | (tiles["state"] == 0)
    group, weight = np.cumsum(first) - 1, tiles["weight"]
    tiles["from_least"] = weight - np.minimum.reduceat(weight, np.flatnonzero(first))[group]
    tiles["from_most"] = np.maximum.reduceat(weight, np.flatnonzero(first))[group] - weight


@inner
def _rest(tile, q):
    """Q of state 0 of the parent of a tile: Q has the states from 1 on."""
    rest = 1.0
    for k in range(tile.column, tile.column + tile.states - 1):
        rest -= q[k]
    return rest


@inner(fast=True)
def _factors(tiles, k, block, q):
    """f_A and f_B of the parent whose group begins at tile k."""
    first, rest = tiles[k], _rest(tiles[k], q)
    for i in range(LANES):
        block.f_a[i], block.f_b[i] = rest * first.e_a[i], rest * first.e_b[i]
    for s in range(1, first.states):
        tile, p = tiles[k + s], q[first.column + s - 1]
        for i in range(LANES):
            block.f_a[i] += p * tile.e_a[i]
            block.f_b[i] += p * tile.e_b[i]


@inner(fast=True)
def _others(tiles, k, block, q):
    """f_A and f_B of the states from the fourth on: the first three stay in registers, where most parents have all."""
    for i in range(LANES):
        block.f_a[i] = block.f_b[i] = 0.0
    for s in range(3, tiles[k].states):
        tile, p = tiles[k + s], q[tiles[k].column + s - 1]
        for i in range(LANES):
            block.f_a[i] += p * tile.e_a[i]
            block.f_b[i] += p * tile.e_b[i]


@inner(fast=True)
def pull(parent, problem, blocks, tiles, numbers, q, field):
    """What the children say about each state, compared with state 0, eq. (24); A and B go on without this parent."""
    if parent.states == 2:
        xi.pull(parent, problem, blocks, tiles, numbers, q, field)
        return
    p, r, t = _rest(parent, q), q[parent.column], q[parent.column + 1]
    for k in range(parent.tile[XI], parent.tile_end[XI], parent.states):
        base, one, two, block, first, second = tiles[k], tiles[k + 1], tiles[k + 2], blocks[tiles[k].block], 0.0, 0.0
        _others(tiles, k, block, q)
        for i in range(LANES):
            f_a = block.f_a[i] + p * base.e_a[i] + r * one.e_a[i] + t * two.e_a[i]
            f_b = block.f_b[i] + p * base.e_b[i] + r * one.e_b[i] + t * two.e_b[i]
            over = 1.0 / (f_a * f_b * (block.share_a[i] + block.share_b[i]))
            rest_a, rest_b = block.share_a[i] * f_b * over, block.share_b[i] * f_a * over
            a, b, straight = block.c[i] * rest_a, block.c[i] * rest_b, block.a[i] - block.c[i] * block.xi[i]
            first += one.weight[i] * straight - a * (one.e_a[i] - base.e_a[i]) - b * (one.e_b[i] - base.e_b[i])
            second += two.weight[i] * straight - a * (two.e_a[i] - base.e_a[i]) - b * (two.e_b[i] - base.e_b[i])
            block.share_a[i], block.share_b[i] = rest_a, rest_b
        field[0] += first
        field[1] += second
        for s in range(3, parent.states):
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
    p, r, t = _rest(parent, q), q[parent.column], q[parent.column + 1]
    r_more, t_more = r - old[0], t - old[1]
    for k in range(parent.tile[XI], parent.tile_end[XI], parent.states):
        base, one, two, block = tiles[k], tiles[k + 1], tiles[k + 2], blocks[tiles[k].block]
        _others(tiles, k, block, q)
        for i in range(LANES):
            block.share_a[i] *= block.f_a[i] + p * base.e_a[i] + r * one.e_a[i] + t * two.e_a[i]
            block.share_b[i] *= block.f_b[i] + p * base.e_b[i] + r * one.e_b[i] + t * two.e_b[i]
            block.x[i] += one.weight[i] * r_more + two.weight[i] * t_more
        for s in range(3, parent.states):
            tile, change = tiles[k + s], q[parent.column + s - 1] - old[s - 1]
            for i in range(LANES):
                block.x[i] += tile.weight[i] * change


@inner(fast=True)
def _add_up(block, tiles, q):
    """All parents of a block into its products, and into means and variances under the tilted distributions."""
    xi.add_up(block, tiles, q)
    rescale(block)
    k, left = block.group, SAFE
    while k >= 0:
        base, one, two = tiles[k], tiles[k + 1], tiles[k + 2]
        p, r, t = _rest(base, q), q[base.column], q[base.column + 1]
        _others(tiles, k, block, q)
        for i in range(LANES):
            block.power_a[i] = block.power_b[i] = block.arg[i] = block.power[i] = 0.0
        for s in range(3, base.states):
            tile, u = tiles[k + s], q[base.column + s - 1]
            for i in range(LANES):
                d = tile.from_least[i]
                a, b = u * tile.e_a[i] * d, u * tile.e_b[i] * d
                block.x[i] += u * d
                block.power_a[i] += a
                block.power_b[i] += b
                block.arg[i] += a * d
                block.power[i] += b * d
        for i in range(LANES):
            d, e, f = base.from_least[i], one.from_least[i], two.from_least[i]
            a, b = p * base.e_a[i], p * base.e_b[i]
            c, g = r * one.e_a[i], r * one.e_b[i]
            h, j = t * two.e_a[i], t * two.e_b[i]
            f_a, f_b = block.f_a[i] + a + c + h, block.f_b[i] + b + g + j
            over = 1.0 / (f_a * f_b)
            over_a, over_b = f_b * over, f_a * over
            mean_a = (block.power_a[i] + a * d + c * e + h * f) * over_a
            mean_b = (block.power_b[i] + b * d + g * e + j * f) * over_b
            block.x[i] += p * d + r * e + t * f
            block.product_a[i] *= f_a
            block.product_b[i] *= f_b
            block.mean_a[i] += mean_a
            block.mean_b[i] += mean_b
            block.variance_a[i] += (block.arg[i] + a * d * d + c * e * e + h * f * f) * over_a - mean_a * mean_a
            block.variance_b[i] += (block.power[i] + b * d * d + g * e * e + j * f * f) * over_b - mean_b * mean_b
        k, left = base.after, left - 1
        if left == 0:
            left = SAFE
            rescale(block)


@inner(fast=True)
def _multiply(block, tiles, q):
    """All exponentials at the present xi, and the products there."""
    xi.multiply(block, tiles, q)
    rescale(block)
    k, left = block.group, SAFE
    while k >= 0:
        for s in range(tiles[k].states):
            tile = tiles[k + s]
            for i in range(LANES):
                tile.e_a[i] = exp_of_minus(block.xi[i] * tile.from_least[i])
                tile.e_b[i] = exp_of_minus((1.0 - block.xi[i]) * tile.from_most[i])
        _factors(tiles, k, block, q)
        for i in range(LANES):
            block.product_a[i] *= block.f_a[i]
            block.product_b[i] *= block.f_b[i]
        k, left = tiles[k].after, left - 1
        if left == 0:
            left = SAFE
            rescale(block)


value = value_by(_multiply, _add_up)


@inner(fast=True)
def look(f, problem, blocks, tiles, numbers, q):
    """The term of one factor at the present Q, eq. (20), from the exponentials of its lane: xi is where it was."""
    block, i, a, b, log_a, log_b = blocks[problem.factors[f].block], problem.factors[f].lane, 1.0, 1.0, 0.0, 0.0
    k, pairs = (block.pair, True) if block.pair >= 0 else (block.group, False)
    while k >= 0:
        tile = tiles[k]
        if pairs:
            f_a, f_b = factors(tile, i, q[tile.column], 1.0 - q[tile.column])
        else:
            p = _rest(tile, q)
            f_a, f_b = p * tile.e_a[i], p * tile.e_b[i]
            for s in range(1, tile.states):
                p = q[tile.column + s - 1]
                f_a, f_b = f_a + p * tiles[k + s].e_a[i], f_b + p * tiles[k + s].e_b[i]
        a, b = a * f_a, b * f_b
        if min(a, b) < 1e-200:  # each factor is at least 1e-14
            log_a, log_b, a, b = log_a + math.log(a), log_b + math.log(b), 1.0, 1.0
        k = tile.after
        if k < 0 and pairs:
            k, pairs = block.group, False
    log_a += math.log(a) - block.xi[i] * block.low[i]
    log_b += math.log(b) + (1.0 - block.xi[i]) * block.high[i]
    return block.xi[i] * block.x[i] + log_a + softplus(log_b - log_a)


@inner
def gradient(problem, blocks, tiles, numbers, q, by_slot, by_factor):
    """The derivatives of the terms in biases and weights: xi Q(s) - (1 - phi) xi Q_A(s) + phi (1 - xi) Q_B(s)."""
    xi.gradient(problem, blocks, tiles, numbers, q, by_slot, by_factor)
    for k in range(len(tiles) - 1):
        tile, block = tiles[k], blocks[tiles[k].block]
        if tile.states == 2 or block.kind != XI:
            continue
        if tile.state == 0:  # it has no weight, and opens the group
            _factors(tiles, k, block, q)
            continue
        for i in range(LANES):
            if tile.slot[i] >= 0:
                y, phi, p = block.xi[i], block.share_b[i], q[tile.column + tile.state - 1]
                alpha, beta = p * tile.e_a[i] / block.f_a[i], p * tile.e_b[i] / block.f_b[i]
                by_slot[tile.slot[i]] = y * p - (1.0 - phi) * y * alpha + phi * (1.0 - y) * beta
