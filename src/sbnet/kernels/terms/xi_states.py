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
from sbnet.kernels.terms.xi import rescale, value_by
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
def _probability(tile, q):
    """Q of the state that a tile is for: Q has the states from 1 on."""
    if tile.state > 0:
        return q[tile.column + tile.state - 1]
    rest = 1.0
    for k in range(tile.column, tile.column + tile.states - 1):
        rest -= q[k]
    return rest


@inner(fast=True)
def _factors(tiles, k, block, q):
    """f_A and f_B of the parent whose group begins at tile k."""
    for i in range(LANES):
        block.f_a[i] = block.f_b[i] = 0.0
    for s in range(k, k + tiles[k].states):
        tile, p = tiles[s], _probability(tiles[s], q)
        for i in range(LANES):
            block.f_a[i] += p * tile.e_a[i]
            block.f_b[i] += p * tile.e_b[i]


@inner(fast=True)
def pull(parent, problem, blocks, tiles, numbers, q, field):
    """What the children say about each state, compared with state 0, eq. (24)."""
    if parent.states == 2:
        xi.pull(parent, problem, blocks, tiles, numbers, q, field)
        return
    for k in range(parent.tile[XI], parent.tile_end[XI], parent.states):
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
    for k in range(parent.tile[XI], parent.tile_end[XI], parent.states):
        block = blocks[tiles[k].block]
        _factors(tiles, k, block, q)
        for i in range(LANES):
            block.share_a[i] *= block.f_a[i]
            block.share_b[i] *= block.f_b[i]
        for s in range(1, parent.states):
            tile, change = tiles[k + s], q[parent.column + s - 1] - old[s - 1]
            for i in range(LANES):
                block.x[i] += tile.weight[i] * change


@inner(fast=True)
def _add_up(block, tiles, q):
    """All parents of a block into its products, and into means and variances under the tilted distributions."""
    xi.add_up(block, tiles, q)
    k = block.group
    while k >= 0:
        _factors(tiles, k, block, q)
        for i in range(LANES):
            block.power_a[i] = block.power_b[i] = 0.0
        for s in range(k, k + tiles[k].states):
            tile, p = tiles[s], _probability(tiles[s], q)
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
def _multiply(block, tiles, q):
    """All exponentials at the present xi, and the products there."""
    xi.multiply(block, tiles, q)
    k = block.group
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
        rescale(block)
        k = tiles[k].after


value = value_by(_multiply, _add_up)


@inner
def look(f, problem, blocks, tiles, numbers, q):
    """The term of one factor at the present Q and xi, eq. (20): parent after parent, logarithms throughout."""
    factor, slots = problem.factors[f], problem.slots
    block, i, s = blocks[factor.block], factor.lane, factor.slot
    y, x = block.xi[i], block.h[i]
    log_a, log_b = -y * x, (1.0 - y) * x
    while s < factor.slot_end:
        end, least, most, rest = s + problem.hidden[slots[s].parent].states - 1, 0.0, 0.0, 1.0
        for c in range(s, end):
            j, p = slots[c].weight, q[slots[c].column]
            least, most, rest, x = min(least, j), max(most, j), rest - p, x + p * j
        a, b = rest * math.exp(y * least), rest * math.exp((y - 1.0) * most)
        for c in range(s, end):
            j, p = slots[c].weight, q[slots[c].column]
            a, b = a + p * math.exp(y * (least - j)), b + p * math.exp((y - 1.0) * (most - j))
        log_a, log_b, s = log_a + math.log(a) - y * least, log_b + math.log(b) + (1.0 - y) * most, end
    return y * x + log_a + softplus(log_b - log_a)


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
