"""Rows without missing values: likelihoods where latent variables can be marginalised.

Latent are up to ten *shared* variables without parents, and *mixture* variables, which have one child, a column. Given
the joint state s of the shared ones, columns are independent of each other's mixture variables. So

    P(row) = sum over s of P(s) product over columns c of P_c(s) ,

where P_c(s) is a sigmoid, or a small sum of sigmoids over the joint states m of the column's own mixture variables.

Inputs x are sums of what columns and what shared variables contribute, so e^-x is a product a d of one number for each
row and one for each s. A cell that is 1 has the probability 1 / (1 + e^-x), one that is 0 has e^-x / (1 + e^-x):
exponents of numerators are linear in the shared variables and are summed up at once, so that only denominators are left
to multiply. Products are kept as numbers and powers of two, and no logarithm is taken but that of the sum.

The unit of work is a *threshold* of a variable, and its place here is a *slot*. A threshold that does not count for the
state of its variable is one whose input is infinite and whose cell is 1, a = 0 and off = 0, and so is a slot that
nobody has. Slots stand in groups, one for each number of mixture variables that columns have: first the columns, filled
up to a multiple of sixteen, then the first mixture variables of all of them, then the second, and so on.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np

from sbnet._types import FloatArray, IndexArray
from sbnet.kernels.compiling import inner, kernel
from sbnet.kernels.structs import LANES, lanes, struct
from sbnet.kernels.vector import HALF, MANTISSA

Record: TypeAlias = Any
"""One record; many are an array."""

PLAIN, FRACTION, SUM = range(3)
"""How P of a column is written: as a sigmoid, four columns at once; with one mixture variable, as a fraction; as a sum
over the joint states of any number of mixture variables, slower, but for larger inputs.
"""
FOUR = 4
ROOM = 650.0
"""The largest exponent between two times that powers of two are taken out: e^650 is a number yet."""
LIMIT = ROOM / FOUR, 300.0, ROOM
"""The largest exponents that a column may add, by form; gradients of fractions multiply twice of them."""

group_t = struct(
    ("first", "i8"),  # its first slot
    ("width", "i8"),  # slots of its columns, and of the first, second ... mixture variables of each: a multiple of 16
    ("columns", "i8"),  # how many there are
    ("mixtures", "i8"),  # how many mixture variables each of them has
    ("form", "i8"),
)
edge_t = struct(
    ("source", "i8"),
    ("target", "i8"),
    ("place", "i8"),  # where its weight stands in the network
)
# Sixteen rows side by side
# P(row, s) = num / den 2^power
state_t = struct(*lanes("num", "den", "scale"), num_bits="num", den_bits="den", power="scale")
row_t = struct(*lanes("total", "top"), power="top")  # the sum over s; the highest power
# Either rows or slots
mixed_t = struct(*lanes("p", "k", "u"))  # of m: its probability, product of k of the variables that are on, P(1 | m)


class Given(NamedTuple):
    """What is multiplied; rows stand sixteen by sixteen."""

    a: FloatArray  # e^-(what columns contribute to x), by slot and row
    off: FloatArray  # likewise: is the cell 0?
    cost: FloatArray  # the largest exponent that a column adds, by slot
    head: FloatArray  # P(s = 0) and all numerators, then what each latent variable that is on makes of that, by row
    power: IndexArray  # the powers of two of these
    d: FloatArray  # e^-(what s contributes to x), by slot and s
    k: FloatArray  # e^-J of mixture variables with the weight J to their column, by slot


@inner(lanewise=True)
def _add(weight: float, source: FloatArray, s: int, target: FloatArray, t: int) -> None:
    for r in range(target.shape[1]):
        target[t, r] += weight * source[s, r]


@kernel
def add_inputs(edges: np.ndarray, weight: FloatArray, source: FloatArray, target: FloatArray) -> None:
    """What edges contribute to their targets, for all rows."""
    for e in range(len(edges)):
        edge = edges[e]
        _add(weight[edge.place], source, edge.source, target, edge.target)


@inner(lanewise=True)
def _begin(head: FloatArray, power: IndexArray, b: int, states: np.ndarray) -> None:
    """P(s) times all numerators, for all s: one latent variable more is on in the second half."""
    none = states[0]
    for i in range(LANES):
        none.num[i], none.den[i], none.power[i] = head[0, b, i], 1.0, power[0, b, i]
    for h in range(1, len(head)):
        half = 1 << (h - 1)
        for s in range(half):
            without, state = states[s], states[half + s]
            for i in range(LANES):
                state.num[i], state.den[i] = without.num[i] * head[h, b, i], 1.0
                state.power[i] = without.power[i] + power[h, b, i]


@inner(lanewise=True)
def _times_four(states: np.ndarray, a: FloatArray, d: FloatArray, c: int, b: int) -> None:
    """Four columns without mixture variables: 1 + e^-x is the denominator of each."""
    for s in range(len(states)):
        state, d_0, d_1, d_2, d_3 = states[s], d[c, s], d[c + 1, s], d[c + 2, s], d[c + 3, s]
        for i in range(LANES):
            first = (1.0 + a[c, b, i] * d_0) * (1.0 + a[c + 1, b, i] * d_1)
            state.den[i] *= first * ((1.0 + a[c + 2, b, i] * d_2) * (1.0 + a[c + 3, b, i] * d_3))


@inner(lanewise=True)
def _times_fraction(
    states: np.ndarray, a: FloatArray, off: FloatArray, d: FloatArray, c: int, w: int, b: int, k: float
) -> None:
    """A column with one mixture variable. With odds E against it, A_0 = e^-x without it and A_1 = K A_0 with it, P is
    [F (1 + A_0) + E (1 + A_1)] / [(1 + E) (1 + A_0) (1 + A_1)]; F is 1, or K if the cell is 0.
    """
    for s in range(len(states)):
        state, d_c, d_w = states[s], d[c, s], d[w, s]
        for i in range(LANES):
            a_0, odds = a[c, b, i] * d_c, a[w, b, i] * d_w
            u_0, u_1 = 1.0 + a_0, 1.0 + k * a_0
            state.num[i] *= ((1.0 - off[c, b, i]) + off[c, b, i] * k) * u_0 + odds * u_1
            state.den[i] *= (1.0 + odds) * u_0 * u_1


@inner(lanewise=True)
def _times_sum(
    states: np.ndarray, a: FloatArray, off: FloatArray, d: FloatArray, k: FloatArray, mixed: np.ndarray, group: Record,
    c: int, b: int,
) -> None:  # fmt: skip
    """A column with any number of mixture variables, a sum over their joint states m."""
    n, total = group.mixtures, mixed[len(mixed) - 1]
    for s in range(len(states)):
        state, none = states[s], mixed[0]
        for i in range(LANES):
            none.p[i], none.k[i], total.p[i] = 1.0, 1.0, 0.0
        for j in range(n):
            w = c + (j + 1) * group.width
            d_w, k_w = d[w, s], k[w]
            for m in range(1 << j):
                without, of = mixed[m], mixed[(1 << j) + m]
                for i in range(LANES):
                    q = 1.0 / (1.0 + a[w, b, i] * d_w)
                    of.p[i], of.k[i] = without.p[i] * q, without.k[i] * k_w
                    without.p[i] *= a[w, b, i] * d_w * q
        d_c = d[c, s]
        for m in range(1 << n):
            of = mixed[m]
            for i in range(LANES):
                numerator = of.p[i] * ((1.0 - off[c, b, i]) + off[c, b, i] * of.k[i])
                total.p[i] += numerator / (1.0 + a[c, b, i] * d_c * of.k[i])
        for i in range(LANES):
            state.num[i] *= total.p[i]


@inner
def _rescale(states: np.ndarray, row: Record) -> None:
    """What is large or small about fractions goes into their powers of two; the highest of them."""
    for i in range(LANES):
        row.power[i] = -(1 << 40)
    for s in range(len(states)):
        state = states[s]
        for i in range(LANES):
            state.power[i] += (state.num_bits[i] >> 52) - (state.den_bits[i] >> 52)
            state.num_bits[i] = (state.num_bits[i] & MANTISSA) | HALF
            state.den_bits[i] = (state.den_bits[i] & MANTISSA) | HALF
            row.power[i] = max(row.power[i], state.power[i])


@inner(lanewise=True)
def _sum(states: np.ndarray, row: Record) -> None:
    """P of all states in units of 2^(highest power), in the place of `num`, and their sum."""
    for i in range(LANES):
        row.total[i] = 0.0
    for s in range(len(states)):
        state = states[s]
        for i in range(LANES):
            state.power[i] = max(state.power[i] - row.power[i] + 1023, 0) << 52  # the bits of `scale`
        for i in range(LANES):
            state.num[i] *= state.scale[i] / state.den[i]
            row.total[i] += state.num[i]


@kernel
def multiply(
    groups: np.ndarray, given: Given, states: np.ndarray, mixed: np.ndarray, row: np.ndarray, share: FloatArray,
    total: FloatArray, top: IndexArray,
) -> None:  # fmt: skip
    """P = total 2^top of each row, and the shares of joint states in it, sixteen rows at a time."""
    a, off, cost, head, power, d, k = given
    for b in range(a.shape[1]):
        _begin(head, power, b, states)
        left = ROOM
        for g in range(len(groups)):
            group = groups[g]
            form = group.form
            for c in range(group.first, group.first + group.columns, FOUR if form == PLAIN else 1):
                if cost[c] > left:
                    _rescale(states, row[0])
                    left = ROOM
                left -= cost[c]
                if form == PLAIN:
                    _times_four(states, a, d, c, b)
                elif form == FRACTION:
                    _times_fraction(states, a, off, d, c, c + group.width, b, k[c + group.width])
                else:
                    _times_sum(states, a, off, d, k, mixed, group, c, b)
        _rescale(states, row[0])
        _sum(states, row[0])
        for i in range(min(LANES, len(share) - b * LANES)):
            r, one = b * LANES + i, 1.0 / row[0].total[i]
            total[r], top[r] = row[0].total[i], row[0].power[i]
            for s in range(len(states)):
                share[r, s] = states[s].num[i] * one
