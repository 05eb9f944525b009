"""Gradients and posterior means from the joint states that count in a row, sixteen slots at once: see `columns`.

Gradients are means over s of those of ln P_c(s), and only few s have a share in a row that counts.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sbnet._types import FloatArray, IndexArray
from sbnet.kernels.columns import PLAIN, SUM, Given, Record
from sbnet.kernels.compiling import inner, kernel
from sbnet.kernels.structs import LANES, lanes, struct

# Sixteen slots side by side
# Of s: e^-(what it contributes to x), and the sum over rows of gradients in x
above_t = struct(*lanes("d", "gradient"))
# Of a row: a and off; its weight, with a minus if off; the gradient in x, times the weight; P(mixture variable is on)
side_t = struct(*lanes("a", "off", "signed", "gradient", "posterior"))
# Of a mixture variable with weight J to its column: e^-J, the gradient in J
strength_t = struct(*lanes("k", "gradient"))


class Means(NamedTuple):
    """Where gradients and means are found."""

    above: np.ndarray  # of above_t, s by slots; the last s is none
    sides: np.ndarray  # of side_t, by slots
    strengths: np.ndarray  # of strength_t, by slots
    mixed: np.ndarray  # of mixed_t, by m; the last is for sums
    kept: IndexArray  # the joint states that count in a row
    own: FloatArray  # and their shares
    x: FloatArray  # the gradients in the inputs of slots, times the weights of rows, by slot and row
    mean: FloatArray  # the means of mixture variables, by row and slot


@inner(fast=True)
def _plain(side: Record, up: Record, over: Record, share: float, other: float, weight: float) -> None:
    """Two states' parts of the gradients in the inputs of columns: their shares times S - sigma(x)."""
    for i in range(LANES):
        u, v = 1.0 + side.a[i] * up.d[i], 1.0 + side.a[i] * over.d[i]
        on, one = 1.0 - side.off[i], 1.0 / (u * v)
        g, h = weight * share * (on - v * one), weight * other * (on - u * one)
        side.gradient[i] += g + h
        up.gradient[i] += g
        over.gradient[i] += h


@inner(fast=True)
def _fraction(
    side: Record, up: Record, mixture: Record, over: Record, strength: Record, share: float, weight: float
) -> None:
    """Gradients of columns with one mixture variable, and of the weights between them, by a single division.

    With the letters of `columns`, and f = P(cell) (1 + A), the posterior probability of the mixture variable, given the
    cell and s, is R = f_1 u_0 / t. The gradient of ln P(cell) in x is +-A / (f u), + if the cell is 1.
    """
    for i in range(LANES):
        a_0, odds, off = side.a[i] * up.d[i], mixture.a[i] * over.d[i], side.off[i]
        a_1, on = a_0 * strength.k[i], 1.0 - off
        u_0, u_1, v = 1.0 + a_0, 1.0 + a_1, 1.0 + odds
        f_1, t_0 = on + off * a_1, odds * u_1
        t = f_1 * u_0 + t_0 * (on + off * a_0)
        tuu = t * (u_0 * u_1)
        one = share / (tuu * v)
        w = one * v  # share / (t u_0 u_1)
        r = u_0 * u_0 * w
        with_it, without = r * a_1, t_0 * u_1 * w * a_0  # R +-A_1 / (f_1 u_1), (1 - R) +-A_0 / (f_0 u_0)
        r *= f_1 * u_1
        g, h = side.signed[i] * (with_it + without), weight * (r - tuu * one)
        side.gradient[i] += g
        mixture.gradient[i] += h
        mixture.posterior[i] += r
        up.gradient[i] += g
        over.gradient[i] += h
        strength.gradient[i] += side.signed[i] * with_it


@inner(fast=True)
def _fraction_mean(side: Record, up: Record, mixture: Record, over: Record, strength: Record, share: float) -> None:
    """Only the mean of the one mixture variable of columns."""
    for i in range(LANES):
        a_0, odds, off = side.a[i] * up.d[i], mixture.a[i] * over.d[i], side.off[i]
        a_1, on = a_0 * strength.k[i], 1.0 - off
        n_1, n_0 = (on + off * a_1) * (1.0 + a_0), odds * (on + off * a_0) * (1.0 + a_1)
        mixture.posterior[i] += share * n_1 / (n_0 + n_1)


@inner(fast=True)
def _sum(
    sides: np.ndarray, above: np.ndarray, strengths: np.ndarray, mixed: np.ndarray, s: int, b: int, wide: int, n: int,
    share: float, weight: float,
) -> None:  # fmt: skip
    """Gradients of columns with n mixture variables, from the posterior probabilities of joint states m."""
    side, up, none, total = sides[b], above[s, b], mixed[0], mixed[len(mixed) - 1]
    for i in range(LANES):
        none.p[i], none.k[i], total.p[i] = 1.0, 1.0, 0.0
    for j in range(n):
        w = b + (j + 1) * wide
        mixture, over, strength = sides[w], above[s, w], strengths[w]
        for i in range(LANES):
            total.u[i] = 1.0 / (1.0 + mixture.a[i] * over.d[i])
            h = weight * share * total.u[i]
            mixture.gradient[i] -= h
            over.gradient[i] -= h
        for m in range(1 << j):
            without, of = mixed[m], mixed[(1 << j) + m]
            for i in range(LANES):
                of.p[i], of.k[i] = without.p[i] * total.u[i], without.k[i] * strength.k[i]
                without.p[i] *= mixture.a[i] * over.d[i] * total.u[i]
    for m in range(1 << n):
        of = mixed[m]
        for i in range(LANES):
            a, off = side.a[i] * up.d[i] * of.k[i], side.off[i]
            of.u[i] = 1.0 / (1.0 + a)
            of.p[i] *= ((1.0 - off) + off * a) * of.u[i]
            total.p[i] += of.p[i]
    for m in range(1 << n):
        of = mixed[m]
        for i in range(LANES):
            of.p[i] *= share / total.p[i]
            of.u[i] = weight * of.p[i] * ((1.0 - side.off[i]) - of.u[i])
            side.gradient[i] += of.u[i]
            up.gradient[i] += of.u[i]
        for j in range(n):
            if (m >> j) & 1:
                w = b + (j + 1) * wide
                mixture, over, strength = sides[w], above[s, w], strengths[w]
                for i in range(LANES):
                    mixture.gradient[i] += weight * of.p[i]
                    mixture.posterior[i] += of.p[i]
                    over.gradient[i] += weight * of.p[i]
                    strength.gradient[i] += of.u[i]


@inner
def _keep(share: FloatArray, r: int, least: float, kept: IndexArray, own: FloatArray) -> int:
    """The states that count in a row, with their shares among these, and how many they are; one more has no share."""
    n, total = 0, 0.0
    for s in range(share.shape[1]):
        if share[r, s] > least:
            kept[n], own[n] = s, share[r, s]
            n += 1
            total += share[r, s]
    for q in range(n):
        own[q] /= total
    kept[n], own[n] = share.shape[1], 0.0
    return n


@kernel
def differentiate(
    groups: np.ndarray, given: Given, share: FloatArray, weight: FloatArray, least: float, gradients: bool, means: Means
) -> None:
    """Gradients in inputs, if they are wanted, and the means of mixture variables, row by row.

    States with a share below `least` are left out.
    """
    a, off, d = given.a, given.off, given.d
    above, sides, strengths, mixed, kept, own, x, mean = means
    for s in range(d.shape[1]):
        for c in range(len(d)):
            above[s, c // LANES].d[c % LANES] = d[c, s]
    for r in range(len(share)):
        n, w = _keep(share, r, least, kept, own), weight[r]
        for c in range(len(x)):
            side, i, cell_off = sides[c // LANES], c % LANES, off[c, r // LANES, r % LANES]
            side.a[i], side.off[i], side.signed[i] = a[c, r // LANES, r % LANES], cell_off, w * (1.0 - 2.0 * cell_off)
            side.gradient[i], side.posterior[i] = 0.0, 0.0
        for g in range(len(groups)):
            group = groups[g]
            form, first, wide = group.form, group.first // LANES, group.width // LANES
            if form == PLAIN:
                for q in range(0, n if gradients else 0, 2):
                    for b in range(first, first + wide):
                        _plain(sides[b], above[kept[q], b], above[kept[q + 1], b], own[q], own[q + 1], w)
                continue
            for q in range(n):
                s, p = kept[q], own[q]
                for b in range(first, first + wide):
                    side, up, m = sides[b], above[s, b], b + wide
                    if form == SUM:
                        _sum(sides, above, strengths, mixed, s, b, wide, group.mixtures, p, w)
                    elif gradients:
                        _fraction(side, up, sides[m], above[s, m], strengths[m], p, w)
                    else:
                        _fraction_mean(side, up, sides[m], above[s, m], strengths[m], p)
        for c in range(len(x)):
            side = sides[c // LANES]
            x[c, r], mean[r, c] = side.gradient[c % LANES], side.posterior[c % LANES]


@inner(fast=True)
def _dot(one: FloatArray, s: int, other: FloatArray, t: int) -> float:
    total = 0.0
    for r in range(one.shape[1]):
        total += one[s, r] * other[t, r]
    return total


@kernel
def add_gradients(edges: np.ndarray, source: FloatArray, target: FloatArray, gradient: FloatArray) -> None:
    """The gradients in the weights of edges, from those in the inputs of their targets, for all rows."""
    for e in range(len(edges)):
        edge = edges[e]
        gradient[edge.place] += _dot(source, edge.source, target, edge.target)
