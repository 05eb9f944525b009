"""The logarithm term of the paper, eqs. (19)-(20) and (30)-(33), for sigmoid variables; xi held at 0 is Jensen's bound.

    <t(x)> <= xi <x> + ln(A + B) ,    A = <e^{-xi x}> ,    B = <e^{(1-xi) x}>

A and B are products with a factor for each parent. With `least` and `most` the smallest and the largest weight of a
parent's states (state 0 has the weight 0), and x between `low` and `high`,

    A = e^{-xi low}       prod_u f_A ,    f_A = sum_s Q_u(s) e^{-xi (J_s - least)}
    B = e^{(1-xi) high}   prod_u f_B ,    f_B = sum_s Q_u(s) e^{-(1-xi) (most - J_s)}

so that all factors lie between 0 and 1, and no weight, however large, overflows. A parent with two states has one of
its two exponentials equal to 1, by the sign of J; the other two, E_A = e^{-xi W} and E_B = e^{-(1-xi) W} with W = |J|,
come from one evaluation of a polynomial: e^r = cosh r + sinh r and e^{-r} = cosh r - sinh r. This file serves parents
with two states; `xi_states` adds those that have more.

In a sweep A and B follow Q by multiplication, without a logarithm. After it, one pass over the tiles adds up the terms
anew, with what the next step of Newton's method needs; where that promises much, xi moves. With f(xi) = xi <x> +
ln(A + B) and phi = B / (A + B), eq. (32): f' = <x> - (1 - phi) m_A - phi m_B, and f'' = (1 - phi) v_A + phi v_B +
phi (1 - phi) (m_B - m_A)^2, which is never negative; m and v are the means and variances of x under the distributions
tilted by e^{-xi x} and e^{(1-xi) x}.
"""

import math

import numpy as np

from sbnet.kernels.compiling import inner
from sbnet.kernels.kinds import XI
from sbnet.kernels.structs import LANES
from sbnet.kernels.vector import (
    LN2,
    LN2_HIGH,
    LN2_LOW,
    LOG2E,
    cosh_sinh,
    digits_and_exponent,
    exp_of_minus,
    ln,
    parts_of,
    power_of_two,
    unsigned,
)  # fmt: skip

SAFE = 16  # factors that can be multiplied before the product is rescaled: each is at least 1e-14
_ROUNDING, _SHORT = 1e-13, 1e-3  # of a term; a step of xi that is not worth halving


def prepare(problem, blocks, tiles, numbers):
    """e^-W of every edge, and e^{-W/2}: its exponentials where xi is 1/2."""
    w = np.abs(tiles["weight"])
    tiles["exponent"] = n = -np.floor(w * LOG2E)
    tiles["mantissa"] = m = np.exp(-(w + n * LN2_HIGH) - n * LN2_LOW)
    tiles["e_half"] = np.sqrt(np.ldexp(m, n.astype(np.int32)))  # 0 where e^-W is nothing beside any mean
    tiles["e_a"] = tiles["e_b"] = 1.0  # and so they stay in the blank tile


@inner(fast=True)
def factors(tile, i, m, off):
    """f_A and f_B of a parent of mean m."""
    p, rest = (m, off) if tile.weight[i] > 0.0 else (off, m)
    return rest + p * tile.e_a[i], p + rest * tile.e_b[i]


@inner(fast=True)
def pull(parent, problem, blocks, tiles, numbers, q, field):
    """What children say to a parent of mean m, a J - c (xi J - K), eqs. (24) and (33); A and B go on without it."""
    m, off, total = q[parent.column], 1.0 - q[parent.column], 0.0
    for k in range(unsigned(parent.tile[XI]), unsigned(parent.tile_end[XI])):
        tile, block, part = tiles[k], blocks[tiles[k].block], 0.0
        for i in range(LANES):
            f_a, f_b = factors(tile, i, m, off)
            over = 1.0 / (f_a * f_b * (block.share_a[i] + block.share_b[i]))
            a, b = block.share_a[i] * f_b * over, block.share_b[i] * f_a * over
            influence = a * (1.0 - tile.e_a[i]) - b * (1.0 - tile.e_b[i])
            part += tile.weight[i] * (block.a[i] - block.c[i] * block.xi[i])
            part += block.c[i] * (influence if tile.weight[i] > 0.0 else -influence)
            block.share_a[i], block.share_b[i] = a, b
        total += part  # apart, so that no tile waits for the sum over another
    field[0] += total


@inner(fast=True)
def push(parent, problem, blocks, tiles, numbers, old, q):
    """A parent has moved: A and B of its children change by one factor each, and <x> follows."""
    before, new, off = old[0], q[parent.column], 1.0 - q[parent.column]
    for k in range(unsigned(parent.tile[XI]), unsigned(parent.tile_end[XI])):
        tile, block = tiles[k], blocks[tiles[k].block]
        for i in range(LANES):
            f_a, f_b = factors(tile, i, new, off)
            block.share_a[i] *= f_a
            block.share_b[i] *= f_b
        for i in range(block.asked):
            block.x[i] += tile.weight[i] * (new - before)


@inner(fast=True)
def add_up(block, tiles, q):
    """The products that A and B are made of, and means and variances of x under the distributions tilted by A and B.

    Two parents at a time: they share a division, and what is added up is read and written once.
    """
    for i in range(LANES):
        block.x[i] = block.low[i]
        block.product_a[i] = block.product_b[i] = 1.0
        block.exponent_a[i] = block.exponent_b[i] = 0.0
        block.mean_a[i] = block.mean_b[i] = block.variance_a[i] = block.variance_b[i] = 0.0
    k, left = block.pair, SAFE
    while k >= 0:
        one, two = tiles[k], tiles[tiles[k].after]  # after the last one, -1, comes the blank tile
        m, n = q[one.column], q[two.column]
        off_m, off_n = 1.0 - m, 1.0 - n  # not 1 - (1 - m), which has few digits left
        for i in range(LANES):
            w, v = abs(one.weight[i]), abs(two.weight[i])
            p, p_off = (m, off_m) if one.weight[i] > 0.0 else (off_m, m)
            r, r_off = (n, off_n) if two.weight[i] > 0.0 else (off_n, n)
            f_a, f_b = p_off + p * one.e_a[i], p + p_off * one.e_b[i]
            g_a, g_b = r_off + r * two.e_a[i], r + r_off * two.e_b[i]
            f, g = f_a * f_b, g_a * g_b
            over = 1.0 / (f * g)
            wp, vr = w * p, v * r
            w_a, w_b = wp * g * over * one.e_a[i] * f_b, wp * g * over * f_a
            v_a, v_b = vr * f * over * two.e_a[i] * g_b, vr * f * over * g_a
            block.product_a[i] *= f_a * g_a
            block.product_b[i] *= f_b * g_b
            block.x[i] += wp + vr
            block.mean_a[i] += w_a + v_a
            block.mean_b[i] += w_b + v_b
            block.variance_a[i] += w_a * (w - w_a) + v_a * (v - v_a)
            block.variance_b[i] += w_b * (w - w_b) + v_b * (v - v_b)
        k, left = two.after, left - 2
        if left == 0:
            left = SAFE
            rescale(block)


@inner(fast=True)
def rescale(block):
    """Long products must not underflow: bring them back into [1/2, 1), and keep their powers of two apart."""
    for i in range(LANES):
        block.product_a[i], n_a = digits_and_exponent(block.product_a[i])
        block.product_b[i], n_b = digits_and_exponent(block.product_b[i])
        block.exponent_a[i] += n_a
        block.exponent_b[i] += n_b


@inner(fast=True)
def multiply(block, tiles, q):
    """E_A and E_B at the present xi, and the products there."""
    for i in range(LANES):
        block.product_a[i] = block.product_b[i] = 1.0
        block.exponent_a[i] = block.exponent_b[i] = 0.0
    k, left = block.pair, SAFE
    while k >= 0:
        tile, m, off = tiles[k], q[tiles[k].column], 1.0 - q[tiles[k].column]
        for i in range(LANES):
            n, r = parts_of(-block.xi[i] * abs(tile.weight[i]))
            even, odd = cosh_sinh(r)
            tile.e_a[i] = (even + odd) * power_of_two(n)
            tile.e_b[i] = (even - odd) * tile.mantissa[i] * power_of_two(tile.exponent[i] - n)
            f_a, f_b = factors(tile, i, m, off)
            block.product_a[i] *= f_a
            block.product_b[i] *= f_b
        k, left = tile.after, left - 1
        if left == 0:
            left = SAFE
            rescale(block)


@inner(fast=True)
def halfway(block, tiles):
    """E_A and E_B where every xi is 1/2, as it is in the beginning unless it is held; are they all?"""
    far, k = 0.0, block.pair
    for i in range(LANES):
        far += abs(block.xi[i] - 0.5)
    while k >= 0:
        tile = tiles[k]
        for i in range(LANES):
            tile.e_a[i] = tile.e_b[i] = tile.e_half[i]
        k = tile.after
    return far == 0.0 and block.group < 0


@inner(fast=True)
def evaluate(block):
    """Term and shares, eq. (32), from the products."""
    for i in range(LANES):
        log_a = block.exponent_a[i] * LN2 - block.xi[i] * block.low[i]
        log_b = block.exponent_b[i] * LN2 + (1.0 - block.xi[i]) * block.high[i]
        small = exp_of_minus(abs(log_b - log_a))
        a = (small if log_b > log_a else 1.0) * block.product_a[i]
        b = (1.0 if log_b > log_a else small) * block.product_b[i]
        over = 1.0 / (a + b)
        block.share_a[i], block.share_b[i] = a * over, b * over
        block.t[i] = block.xi[i] * block.x[i] + max(log_a, log_b) + ln(a + b)


@inner(fast=True)
def newton(block, enough):
    """What a step of each xi promises in all; where that is enough, it is taken, and `check` must follow."""
    total = 0.0
    for i in range(LANES):
        apart, phi = block.mean_b[i] - block.mean_a[i], block.share_b[i]
        slope = (block.x[i] - block.low[i]) - block.mean_a[i] - phi * apart
        curvature = block.share_a[i] * (block.variance_a[i] + phi * apart * apart) + phi * block.variance_b[i]
        new = block.xi[i] - block.free[i] * slope / max(curvature, 1e-300)  # zero: inputs are known
        block.next_xi[i] = min(max(new, 0.0), 1.0)
        block.gain[i] = 0.5 * abs(slope * (block.next_xi[i] - block.xi[i]))
        total += block.gain[i]
    for i in range(LANES if total > enough else 0):
        block.old_xi[i], block.limit[i], block.xi[i] = block.xi[i], block.t[i], block.next_xi[i]
    return total


@inner(fast=True)
def check(block):
    """After a step: by how much it missed what it promised; did an xi go too far?

    A step after which a term has risen beyond rounding is halved, and a short one is taken back.
    """
    missed = risen = 0.0
    for i in range(LANES):
        far, limit = abs(block.xi[i] - block.old_xi[i]), block.limit[i]
        missed += abs(limit - block.t[i] - block.gain[i])
        bad = far > 0.0 and block.t[i] - limit > _ROUNDING * (1.0 + abs(limit))
        risen += 1.0 if bad else 0.0
        shorter = 0.5 * (block.old_xi[i] + block.xi[i]) if far > _SHORT else block.old_xi[i]
        block.xi[i] = shorter if bad else block.xi[i]
        block.gain[i] = -abs(block.gain[i]) if bad else block.gain[i]  # it cannot have kept its promise
    return missed, risen > 0.0


def value_by(multiply, add_up):
    """The verb, with these loops over the parents of a block."""

    @inner(fast=True)
    def value(problem, blocks, tiles, numbers, q, enough, fresh, more):
        """The terms at the present Q; a step of xi where it promises more than `enough`, cut until no term rises."""
        promised = 0.0
        for b in range(len(blocks)):
            block = blocks[b]
            if block.kind != XI:
                continue
            if fresh and not halfway(block, tiles):
                multiply(block, tiles, q)
            add_up(block, tiles, q)
            evaluate(block)
            promise = newton(block, enough)
            too_far = promise > enough
            while too_far:
                multiply(block, tiles, q)
                evaluate(block)
                promise, too_far = check(block)
            promised += promise
        return promised

    return value


value = value_by(multiply, add_up)


@inner
def look(f, problem, blocks, tiles, numbers, q):
    """No variable with two states asks: its own states all weigh the term alike."""
    return math.nan


@inner
def gradient(problem, blocks, tiles, numbers, q, by_slot, by_factor):
    """The derivatives of the terms in biases, phi, and in weights: xi <S> - (1 - phi) xi <S>_A + phi (1 - xi) <S>_B."""
    for f in range(len(by_factor)):
        factor = problem.factors[f]
        if factor.kind == XI:
            by_factor[f] = blocks[factor.block].share_b[factor.lane]
    for k in range(len(tiles) - 1):
        tile, block, m = tiles[k], blocks[tiles[k].block], q[tiles[k].column]
        ours = tile.states == 2 and block.kind == XI
        for i in range(block.width if ours else 0):
            e_a, e_b, xi, phi = tile.e_a[i], tile.e_b[i], block.xi[i], block.share_b[i]
            f_a, f_b = factors(tile, i, m, 1.0 - m)
            if tile.weight[i] > 0.0:  # the tilted means of S: alpha under A, beta under B
                alpha, beta = e_a * m / f_a, m / f_b
            else:
                alpha, beta = m / f_a, e_b * m / f_b
            if tile.slot[i] >= 0:
                by_slot[tile.slot[i]] = xi * m - (1.0 - phi) * xi * alpha + phi * (1.0 - xi) * beta
