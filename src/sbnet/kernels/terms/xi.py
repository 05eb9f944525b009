"""The logarithm term of the paper, eqs. (19)-(20) and (30)-(33), for sigmoid variables; xi held at 0 is Jensen's bound.

    <t(x)> <= xi <x> + ln(A + B) ,    A = <e^{-xi x}> ,    B = <e^{(1-xi) x}>

A and B are products with a factor for each parent. With `least` and `most` the smallest and the largest weight of a
parent's states (state 0 has the weight 0), and x between `low` and `high`,

    A = e^{-xi low}       prod_u f_A ,    f_A = sum_s Q_u(s) e^{-xi (J_s - least)}
    B = e^{(1-xi) high}   prod_u f_B ,    f_B = sum_s Q_u(s) e^{-(1-xi) (most - J_s)}

so that all factors lie between 0 and 1, and no weight, however large, overflows. A parent with two states has one of
its two exponentials equal to 1, by the sign of J; the other two, E_A = e^{-xi W} and E_B = e^{-(1-xi) W} with W = |J|,
come from one evaluation of a polynomial: e^r = cosh r + sinh r and e^{-r} = cosh r - sinh r.

This file serves parents with two states; `xi_states` adds those that have more.

In a sweep A and B follow Q by multiplication, without a logarithm. After it, one pass over the tiles adds up the terms
anew, with what the next step of Newton's method needs; where that promises much, xi moves.
"""

from __future__ import annotations

import math

import numpy as np

from sbnet.kernels.compiling import inner, kernel
from sbnet.kernels.kinds import JENSEN, XI
from sbnet.kernels.structs import LANES
from sbnet.kernels.terms.xi_block import check, evaluate, newton, rescale
from sbnet.kernels.vector import C2, C3, C4, C5, C6, C7, C8, C9, C10, C11, C12, C13, LN2_HIGH, LN2_LOW, LOG2E

_SAFE = 16  # factors that can be multiplied before the product is rescaled: each is at least 1e-14


SERVES = (XI, JENSEN)


@kernel
def prepare(problem, blocks, tiles, numbers):
    """e^-W of every edge."""
    for k in range(len(tiles)):
        tile = tiles[k]
        for i in range(LANES):
            w = abs(tile.weight[i])
            n = math.floor(w * LOG2E)
            tile.mantissa[i], tile.exponent[i] = math.exp(-((w - n * LN2_HIGH) - n * LN2_LOW)), n
            tile.e_a[i] = tile.e_b[i] = 1.0  # and so they stay in the blank tile


@inner(fast=True)
def pull(parent, problem, blocks, tiles, numbers, q, field):
    """What children say to a parent of mean m, a J - c (xi J - K), eqs. (24) and (33); A and B go on without it."""
    m, off, total = q[parent.column], 1.0 - q[parent.column], 0.0
    for kind in SERVES:
        for k in range(parent.tile[kind], parent.tile_end[kind]):
            tile, block = tiles[k], blocks[tiles[k].block]
            for i in range(LANES):
                j, e_a, e_b = tile.weight[i], tile.e_a[i], tile.e_b[i]
                p, rest = (m, off) if j > 0.0 else (off, m)
                f_a, f_b = rest + p * e_a, p + rest * e_b
                over = 1.0 / (f_a * f_b * (block.share_a[i] + block.share_b[i]))
                rest_a, rest_b = block.share_a[i] * f_b * over, block.share_b[i] * f_a * over
                influence = rest_a * (1.0 - e_a) - rest_b * (1.0 - e_b)
                total += j * (block.a[i] - block.c[i] * block.xi[i])
                total += block.c[i] * (influence if j > 0.0 else -influence)
                block.share_a[i], block.share_b[i] = rest_a, rest_b
    field[0] += total


@inner(fast=True)
def push(parent, problem, blocks, tiles, numbers, old, q):
    """A parent has moved: A and B of its children change by one factor each, and <x> follows."""
    before, new, off = old[0], q[parent.column], 1.0 - q[parent.column]
    for kind in SERVES:
        for k in range(parent.tile[kind], parent.tile_end[kind]):
            tile, block = tiles[k], blocks[tiles[k].block]
            for i in range(LANES):
                p, rest = (new, off) if tile.weight[i] > 0.0 else (off, new)
                block.share_a[i] *= rest + p * tile.e_a[i]
                block.share_b[i] *= p + rest * tile.e_b[i]
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
    k, left = block.pair, _SAFE
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
        if left == 0:  # long products must not underflow
            left = _SAFE
            rescale(block)


@inner(fast=True)
def multiply(block, tiles, q):
    """E_A and E_B at the present xi, and the products there."""
    for i in range(LANES):
        block.product_a[i] = block.product_b[i] = 1.0
        block.exponent_a[i] = block.exponent_b[i] = 0.0
    k, left = block.pair, _SAFE
    while k >= 0:
        tile, m, off = tiles[k], q[tiles[k].column], 1.0 - q[tiles[k].column]
        for i in range(LANES):
            x = block.xi[i] * abs(tile.weight[i])
            n = math.floor(x * LOG2E + 0.5)
            r = (x - n * LN2_HIGH) - n * LN2_LOW
            s = r * r
            even = 1.0 + s * (C2 + s * (C4 + s * (C6 + s * (C8 + s * (C10 + s * C12)))))  # cosh r
            odd = r * (1.0 + s * (C3 + s * (C5 + s * (C7 + s * (C9 + s * (C11 + s * C13))))))  # sinh r
            tile.e_a[i], tile.e_b[i] = even - odd, (even + odd) * tile.mantissa[i]
            block.bits_a[i] = (1023 + np.int64(max(-n, -1022.0))) << 52
            block.bits_b[i] = (1023 + np.int64(max(n - tile.exponent[i], -1022.0))) << 52
        for i in range(LANES):
            e_a, e_b = tile.e_a[i] * block.power_a[i], tile.e_b[i] * block.power_b[i]
            p, rest = (m, off) if tile.weight[i] > 0.0 else (off, m)
            block.product_a[i] *= rest + p * e_a
            block.product_b[i] *= p + rest * e_b
            tile.e_a[i], tile.e_b[i] = e_a, e_b
        k, left = tile.after, left - 1
        if left == 0:
            left = _SAFE
            rescale(block)


@inner(fast=True)
def start(block):
    """A new row: every xi is one half, or held where it was given (`mean_field.begin`); Jensen's bound has 0."""
    if block.kind == JENSEN:
        for i in range(LANES):
            block.free[i] = block.xi[i] = 0.0


@inner(fast=True)
def value(problem, blocks, tiles, numbers, q, enough, fresh, more):
    """The terms at the present Q; a step of xi where it promises more than `enough`, shortened until no term rises."""
    promised = 0.0
    for b in range(len(blocks)):
        block = blocks[b]
        if block.kind != XI and block.kind != JENSEN:
            continue
        if fresh:
            start(block)
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


@inner
def look(f, problem, blocks, tiles, numbers, q):
    """No variable with two states asks: its own states all weigh the term alike."""
    return math.nan


@inner
def gradient(problem, blocks, tiles, numbers, q, by_slot, by_factor):
    """The derivatives of the terms in biases, phi, and in weights: xi <S> - (1 - phi) xi <S>_A + phi (1 - xi) <S>_B."""
    for f in range(len(by_factor)):
        factor = problem.factors[f]
        if factor.kind == XI or factor.kind == JENSEN:
            by_factor[f] = blocks[factor.block].share_b[factor.lane]
    for k in range(len(tiles) - 1):
        tile, block = tiles[k], blocks[tiles[k].block]
        if tile.states > 2 or (block.kind != XI and block.kind != JENSEN):
            continue
        m = q[tile.column]
        for i in range(block.width):
            if tile.slot[i] < 0:
                continue
            e_a, e_b, xi, phi = tile.e_a[i], tile.e_b[i], block.xi[i], block.share_b[i]
            if tile.weight[i] > 0.0:  # the tilted means of S: alpha under A, beta under B
                alpha, beta = e_a * m / (1.0 - m + m * e_a), m / (m + (1.0 - m) * e_b)
            else:
                alpha, beta = m / (m + (1.0 - m) * e_a), e_b * m / (1.0 - m + m * e_b)
            by_slot[tile.slot[i]] = xi * m - (1.0 - phi) * xi * alpha + phi * (1.0 - xi) * beta
