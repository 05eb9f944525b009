"""The mean of t(x) itself, for any number of parents of a sigmoid variable: a sum over frequencies.

ln(1 + e^x) = x/2 + ln 2 + int_0^inf (1 - cos wx) / (w sinh pi w) dw, by the trapezoid rule. With step d, Poisson's
summation formula gives the error of the rule in closed form: the sum over k >= 1 of
ln[1 + (cosh x - 1) / (cosh s_k + 1)] with s_k = 2 pi k / d. It is never negative, so the rule is an upper bound for
every step, and about e^(|x| - s_1) large. Cutting the sum at frequency W leaves out positive terms of at most
int_W^inf 2 / (w sinh pi w) dw <= 4 e^(-pi W) / (pi W (1 - e^(-2 pi W))), which is added. So the result is rigorous,
for every step and every W. The ascent makes do with a few frequencies (`frequencies`). An x that stays beyond 20 needs
none: there ln(1 + e^x) is straight, but for e^-20.

For independent parents the characteristic function is a product, <e^{iwx}> = e^{iwh} prod_u F_u with
F_u = 1 + sum_s Q_u(s) g_s, g_s = e^{iwJ_s} - 1. Before a sweep, R, the product over the parents that follow, grows from
the last parent to the first, and the *turn* R g_s of each state is kept; in the sweep, P, the product over the parents
before, grows from the first to the last. Re(P R g_s) is the derivative in Q_u(s): nothing is ever divided.

All factors of a block have the same parents, so a column of Q has one place among the edges of all of them.
"""

from __future__ import annotations

import numpy as np

from sbnet._types import FloatArray
from sbnet.kernels.compiling import inner
from sbnet.kernels.kinds import EXACT
from sbnet.kernels.newterms.frequencies import (
    BY,
    FIRST,
    HEADER,
    OMEGA,
    PLACES,
    USED,
    attend,
    attune,
    bring_biases,
    fill,
    lanes_of,
    multiple,
    ranges,
    unsigned,
)
from sbnet.kernels.newterms.quadratic import gradient_of_moments, moments, pull_moments, push_mean, second_moment
from sbnet.kernels.structs import LANES, Problem

SERVES = (EXACT,)
__all__ = ["SERVES", "attend", "attune", "final", "gradient", "look", "prepare", "pull", "push", "room", "value"]


@inner
def room(problem: Problem, factor: np.ndarray) -> int:
    """How many frequencies its block has, and where they are."""
    return HEADER


@inner
def prepare(problem: Problem, blocks: np.ndarray, tiles: np.ndarray, numbers: FloatArray) -> None:
    """How far inputs may reach; frequencies are for each row to ask for (`frequencies.attune`)."""
    ranges(problem, blocks)


@inner(fast=True)
def _where(numbers: FloatArray, table: int) -> tuple[int, int, int]:
    """Of the block whose first factor has this table: places that count, all places, and where its numbers begin."""
    return int(numbers[table + USED]), int(numbers[table + PLACES]), int(numbers[table + FIRST])


@inner(fast=True)
def _turn(numbers: FloatArray, edge: int, apart: int, turn: int, product: int, n: int, p: float) -> None:
    """The turn of a state: product times g; and p times that goes into the product."""
    e, t, x, far = unsigned(edge), unsigned(turn), unsigned(product), unsigned(apart)
    for i in range(unsigned(n)):
        a, b, r, s = numbers[e + i], numbers[e + far + i], numbers[x + i], numbers[x + far + i]
        re, im = a * r - b * s, a * s + b * r
        numbers[t + i], numbers[t + far + i] = re, im
        numbers[x + i], numbers[x + far + i] = r + p * re, s + p * im


@inner(fast=True)
def _multiply(numbers: FloatArray, edge: int, apart: int, product: int, n: int, p: float) -> None:
    """Times 1 + p g."""
    e, x, far = unsigned(edge), unsigned(product), unsigned(apart)
    for i in range(unsigned(n)):
        a, b, r, s = numbers[e + i], numbers[e + far + i], numbers[x + i], numbers[x + far + i]
        numbers[x + i], numbers[x + far + i] = r + p * (a * r - b * s), s + p * (a * s + b * r)


@inner(fast=True)
def _add(numbers: FloatArray, turn: int, apart: int, product: int, n: int, p: float) -> None:
    """Plus p times a turn."""
    t, x, far = unsigned(turn), unsigned(product), unsigned(apart)
    for i in range(unsigned(n)):
        numbers[x + i] += p * numbers[t + i]
        numbers[x + far + i] += p * numbers[t + far + i]


@inner(fast=True)
def _real(numbers: FloatArray, turn: int, apart: int, product: int, n: int) -> float:
    """The sum over frequencies and factors of the real part of a turn times a product."""
    t, x, far, total = unsigned(turn), unsigned(product), unsigned(apart), 0.0
    for i in range(unsigned(n)):
        total += numbers[x + i] * numbers[t + i] - numbers[x + far + i] * numbers[t + far + i]
    return total


@inner(fast=True)
def _include(numbers: FloatArray, edge: int, apart: int, product: int, n: int, q: FloatArray, c: int, m: int) -> None:
    """A parent with m states above 0, from column c on, into the product; its turns are made anew."""
    if m == 1:
        _turn(numbers, edge, apart, edge + 2 * apart, product, n, q[c])
        return
    for s in range(m):
        at = edge + 4 * s * apart
        _turn(numbers, at, apart, at + 2 * apart, product, n, 0.0)
    for s in range(m):
        _add(numbers, edge + (4 * s + 2) * apart, apart, product, n, q[c + s])


@inner(fast=True)
def pull(
    parent: np.ndarray, problem: Problem, blocks: np.ndarray, tiles: np.ndarray, numbers: FloatArray, q: FloatArray,
    field: FloatArray,
) -> None:  # fmt: skip
    """What children say about each state: the parts in <x> and <x^2>, and the frequencies."""
    factors, k = problem.factors, parent.tile[EXACT]
    pull_moments(EXACT, parent, blocks, tiles, q, field)
    while k < parent.tile_end[EXACT]:
        tile = tiles[k] if parent.states == 2 else tiles[k + 1]
        lead = factors[blocks[tile.block].factor[0]]
        n, places, first = _where(numbers, lead.table)
        turn = first + (7 + 4 * (tile.slot[0] - lead.slot)) * places
        for s in range(parent.states - 1):
            field[s] += _real(numbers, turn + 4 * s * places, places, first + 3 * places, n)
        k += 1 if parent.states == 2 else parent.states


@inner(fast=True)
def push(
    parent: np.ndarray, problem: Problem, blocks: np.ndarray, tiles: np.ndarray, numbers: FloatArray, old: FloatArray,
    q: FloatArray,
) -> None:  # fmt: skip
    """A parent is done with: into the products over the parents before, also if it has not moved."""
    factors, k = problem.factors, parent.tile[EXACT]
    push_mean(EXACT, parent, blocks, tiles, old, q)
    while k < parent.tile_end[EXACT]:
        tile = tiles[k] if parent.states == 2 else tiles[k + 1]
        lead = factors[blocks[tile.block].factor[0]]
        n, places, first = _where(numbers, lead.table)
        edge = first + (5 + 4 * (tile.slot[0] - lead.slot)) * places
        if parent.states == 2:
            _multiply(numbers, edge, places, first + 3 * places, n, q[parent.column])
            k += 1
        else:
            _include(numbers, edge, places, first + 3 * places, n, q, parent.column, parent.states - 1)
            k += parent.states


@inner(fast=True)
def _evaluate(block: np.ndarray, numbers: FloatArray, start: int, apart: int, product: int, n: int, by: float) -> None:
    """The terms of a block from the product over all parents; then the product over none of them takes its place.

    That one is multiplied by c, so that what children say needs no factor.
    """
    lanes = lanes_of(block)
    for i in range(LANES):
        block.power[i], block.f_a[i] = 0.0, by * block.c[i % lanes]
    for k in range(0, n, LANES):
        y, x, far = unsigned(start + k), unsigned(product + k), unsigned(apart)
        for i in range(unsigned(LANES)):
            re, im = numbers[y + i], numbers[y + far + i]
            block.power[i] += re * numbers[x + i] - im * numbers[x + far + i]
            numbers[x + i], numbers[x + far + i] = block.f_a[i] * re, block.f_a[i] * im
    for i in range(block.width):
        straight = block.constant[i] + block.straight[i] * block.x[i] + block.curve[i] * block.second[i]
        block.t[i] = straight - by * _of_lane(block, i, lanes)


@inner
def value(
    problem: Problem, blocks: np.ndarray, tiles: np.ndarray, numbers: FloatArray, q: FloatArray, enough: float,
    fresh: bool,
) -> float:  # fmt: skip
    """The terms at the present Q, and the turns for the next sweep; nothing more to promise."""
    _values(problem, blocks, tiles, numbers, q, fresh, True)
    return 0.0


@inner
def final(problem: Problem, blocks: np.ndarray, tiles: np.ndarray, numbers: FloatArray, q: FloatArray) -> None:
    """The terms at the present Q, when no sweep follows."""
    _values(problem, blocks, tiles, numbers, q, False, False)


@inner
def _values(
    problem: Problem, blocks: np.ndarray, tiles: np.ndarray, numbers: FloatArray, q: FloatArray, fresh: bool,
    sweeps: bool,
) -> None:  # fmt: skip
    hidden, factors = problem.hidden, problem.factors
    for b in range(len(blocks)):
        block = blocks[b]
        if block.kind != EXACT:
            continue
        n, places, first = _where(numbers, factors[block.factor[0]].table)
        moments(block, tiles, q)
        if fresh and places > 0:
            bring_biases(block, lanes_of(block), numbers, first, places)
        fill(numbers, first + 3 * places, 1.0, n)
        fill(numbers, first + 4 * places, 0.0, n)
    k = hidden[len(hidden) - 1].tile_end[EXACT] - 1 if len(hidden) > 0 else -1
    end = hidden[0].tile[EXACT] if len(hidden) > 0 else 0
    while k >= end:  # the last parent first
        states = tiles[k].states
        k -= 0 if states == 2 else states - 2  # of a group, the tile of state 1
        lead = factors[blocks[tiles[k].block].factor[0]]
        n, places, first = _where(numbers, lead.table)
        edge = first + (5 + 4 * (tiles[k].slot[0] - lead.slot)) * places
        if states == 2 and not sweeps:
            _multiply(numbers, edge, places, first + 3 * places, n, q[tiles[k].column])
        else:
            _include(numbers, edge, places, first + 3 * places, n, q, tiles[k].column, states - 1)
        k -= 1 if states == 2 else 2
    for b in range(len(blocks)):
        block = blocks[b]
        if block.kind == EXACT:
            table = factors[block.factor[0]].table
            n, places, first = _where(numbers, table)
            _evaluate(block, numbers, first + places, places, first + 3 * places, n, numbers[table + BY])


@inner
def look(f: int, problem: Problem, blocks: np.ndarray, tiles: np.ndarray, numbers: FloatArray, q: FloatArray) -> float:
    """The term of one factor, in a sweep that has come to its own variable: all its parents are in the product."""
    factor = problem.factors[f]
    block, i = blocks[factor.block], factor.lane
    n, places, first = _where(numbers, problem.factors[block.factor[0]].table)
    mean, second = second_moment(f, problem, blocks, q)
    wave = 0.0
    for k in range(first + 3 * places + i, first + 3 * places + n, lanes_of(block)):
        wave += numbers[k]
    return block.constant[i] + block.straight[i] * mean + block.curve[i] * second - wave / block.c[i]


@inner
def gradient(
    problem: Problem, blocks: np.ndarray, tiles: np.ndarray, numbers: FloatArray, q: FloatArray, by_slot: FloatArray,
    by_factor: FloatArray,
) -> None:  # fmt: skip
    """The derivatives of the terms: sums over w times the imaginary part of the characteristic function, in biases;
    in weights, times Q_u(s), of that in which e^{iwJ_s} has the place of F_u.
    """
    factors, slots = problem.factors, problem.slots
    for f in range(len(by_factor)):
        if factors[f].kind == EXACT:
            gradient_of_moments(f, problem, blocks, q, by_slot, by_factor)
    for b in range(len(blocks)):
        block = blocks[b]
        if block.kind != EXACT or not block.alive.any():
            continue
        lead, lanes = factors[block.factor[0]], lanes_of(block)
        n, places, first = _where(numbers, lead.table)
        product, edge, s = first + 3 * places, first + 5 * places, lead.slot
        before, omega = np.empty(2 * places * (lead.slot_end - lead.slot)), np.empty(places)
        for i in range(places):
            omega[i] = numbers[lead.table + BY] * multiple(i, places, lanes) * OMEGA * lanes / places
        numbers[product : product + 2 * places] = numbers[first + places : product]
        while s < lead.slot_end:  # the products over the parents before each
            at, m = s - lead.slot, problem.hidden[slots[s].parent].states - 1
            before[2 * places * at : 2 * places * (at + 1)] = numbers[product : product + 2 * places]
            _include(numbers, edge + 4 * places * at, places, product, n, q, slots[s].column, m)
            s += m
        numbers[product : product + places], numbers[product + places : product + 2 * places] = 1.0, 0.0
        while s > lead.slot:  # and over those after each
            m = problem.hidden[slots[s - 1].parent].states - 1
            s -= m
            at = s - lead.slot
            for c in range(at, at + m):
                _imaginary(
                    block, before, 2 * places * at, numbers, edge + 4 * places * c, 1.0, product, places, n, omega
                )
                for i in range(block.width):
                    p = q[slots[lead.slot + c].column]
                    by_slot[factors[block.factor[i]].slot + c] += p * _of_lane(block, i, lanes)
            _include(numbers, edge + 4 * places * at, places, product, n, q, slots[s].column, m)
        _imaginary(block, before, 0, numbers, edge, 0.0, product, places, n, omega)
        for i in range(block.width):
            by_factor[block.factor[i]] += _of_lane(block, i, lanes)


@inner(fast=True)
def _imaginary(
    block: np.ndarray, before: FloatArray, at: int, numbers: FloatArray, edge: int, has: float, after: int, apart: int,
    n: int, omega: FloatArray,
) -> None:  # fmt: skip
    """Sums of w times the imaginary part of (product before) (1 + g, or 1 if there is no edge) (product after)."""
    for i in range(LANES):
        block.power[i] = 0.0
    for k in range(0, n, LANES):
        x, y, e, far, w = unsigned(at + k), unsigned(after + k), unsigned(edge + k), unsigned(apart), unsigned(k)
        for i in range(unsigned(LANES)):
            a, b, c, d = before[x + i], before[x + far + i], numbers[y + i], numbers[y + far + i]
            g, h = 1.0 + has * numbers[e + i], has * numbers[e + far + i]
            block.power[i] += omega[w + i] * ((a * c - b * d) * h + (a * d + b * c) * g)


@inner
def _of_lane(block: np.ndarray, i: int, lanes: int) -> float:
    """The sum over the frequencies of one factor."""
    total = 0.0
    for k in range(i, LANES, lanes):
        total += block.power[k]
    return total
