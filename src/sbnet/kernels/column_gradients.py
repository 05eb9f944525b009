"""Gradients and posterior means from the joint states that count in a row, sixteen slots at once: see `columns`."""

from __future__ import annotations

import numpy as np

from sbnet._types import FloatArray, IndexArray
from sbnet.kernels.column_records import FRACTION, PLAIN, Answer, Columns, Record, Room, Task, form_of
from sbnet.kernels.compiling import inner
from sbnet.kernels.structs import LANES
from sbnet.kernels.thresholds import sigmoid


@inner(fast=True)
def _dot(on: FloatArray, f: int, x: FloatArray, c: int) -> float:
    total = 0.0
    for r in range(x.shape[1]):
        total += x[c, r] * on[f, r]
    return total


@inner(fast=True)
def _differentiate_plain(side: Record, up: Record, over: Record, share: float, other: float, weight: float) -> None:
    """Two states' parts of the gradients in the inputs of columns: their shares times S - sigma(x)."""
    for i in range(LANES):
        u, v = 1.0 + side.a[i] * up.d[i], 1.0 + side.a[i] * over.d[i]
        one = 1.0 / (u * v)
        g, h = share * (side.on[i] - v * one), other * (side.on[i] - u * one)
        side.gradient[i] += g + h
        up.gradient[i] += weight * g
        over.gradient[i] += weight * h


@inner(fast=True)
def _differentiate_fraction(
    side: Record, up: Record, mixture: Record, over: Record, strength: Record, share: float,
    weight: float,
) -> None:  # fmt: skip
    """Of columns and their one mixture variable, and of the weights between them, by a single division.

    `chance` is the posterior probability of the mixture variable, given the cell and s.
    """
    for i in range(LANES):
        a_0, odds, on = side.a[i] * up.d[i], mixture.a[i] * over.d[i], side.on[i]
        a_1, off = a_0 * strength.k[i], 1.0 - on
        u_0, u_1, v = 1.0 + a_0, 1.0 + a_1, 1.0 + odds
        n_1 = (on + off * a_1) * u_0
        t, uu = n_1 + odds * (on + off * a_0) * u_1, u_0 * u_1
        one = 1.0 / (t * v * uu)
        chance = n_1 * v * uu * one
        raised = share * chance * (on - t * v * u_0 * one)
        g = raised + share * (1.0 - chance) * (on - t * v * u_1 * one)
        h = share * (chance - t * uu * one)
        side.gradient[i] += g
        mixture.gradient[i] += h
        mixture.posterior[i] += share * chance
        up.gradient[i] += weight * g
        over.gradient[i] += weight * h
        strength.gradient[i] += weight * raised


@inner(fast=True)
def _average_fraction(side: Record, up: Record, mixture: Record, over: Record, strength: Record, share: float) -> None:
    """Only the mean of the one mixture variable of columns."""
    for i in range(LANES):
        a_0, odds, on = side.a[i] * up.d[i], mixture.a[i] * over.d[i], side.on[i]
        a_1 = a_0 * strength.k[i]
        n_1, n_0 = (on + (1.0 - on) * a_1) * (1.0 + a_0), odds * (on + (1.0 - on) * a_0) * (1.0 + a_1)
        mixture.posterior[i] += share * n_1 / (n_0 + n_1)


@inner(fast=True)
def _differentiate_sum(
    sides: np.ndarray, i_row: int, above: np.ndarray, s: int, strengths: np.ndarray, mixed: np.ndarray, b: int,
    wide: int, n: int, share: float, weight: float,
) -> None:  # fmt: skip
    """Of columns and their n mixture variables, by the posterior probabilities of joint states m."""
    side, up = sides[i_row, b], above[s, b]
    for i in range(LANES):
        mixed[0].p[i], mixed[0].k[i] = 1.0, 1.0
    for j in range(n):
        w = b + (j + 1) * wide
        mixture, over, strength = sides[i_row, w], above[s, w], strengths[w]
        for m in range(1 << j):
            off, on = mixed[m], mixed[(1 << j) + m]
            for i in range(LANES):
                q = 1.0 / (1.0 + mixture.a[i] * over.d[i])
                on.p[i], on.k[i] = off.p[i] * q, off.k[i] * strength.k[i]
                off.p[i] *= mixture.a[i] * over.d[i] * q
        for i in range(LANES):
            q = share / (1.0 + mixture.a[i] * over.d[i])
            mixture.gradient[i] -= q
            over.gradient[i] -= weight * q
    total = mixed[1 << n]
    for i in range(LANES):
        total.p[i] = 0.0
    for m in range(1 << n):
        of = mixed[m]
        for i in range(LANES):
            a = side.a[i] * up.d[i] * of.k[i]
            of.u[i] = 1.0 / (1.0 + a)
            of.p[i] *= (side.on[i] + (1.0 - side.on[i]) * a) * of.u[i]
            total.p[i] += of.p[i]
    for m in range(1 << n):
        of = mixed[m]
        for i in range(LANES):
            of.p[i] *= share / total.p[i]
            of.u[i] = of.p[i] * (side.on[i] - of.u[i])
            side.gradient[i] += of.u[i]
            up.gradient[i] += weight * of.u[i]
        for j in range(n):
            if (m >> j) & 1:
                w = b + (j + 1) * wide
                mixture, over, strength = sides[i_row, w], above[s, w], strengths[w]
                for i in range(LANES):
                    mixture.gradient[i] += of.p[i]
                    mixture.posterior[i] += of.p[i]
                    over.gradient[i] += weight * of.p[i]
                    strength.gradient[i] += weight * of.u[i]


@inner
def stand_by_slot(d: FloatArray, above: np.ndarray) -> None:
    """What joint states contribute, sixteen slots side by side."""
    for s in range(d.shape[1]):
        for b in range(above.shape[1]):
            for i in range(LANES):
                above[s, b].d[i] = d[b * LANES + i, s]


@inner(fast=True)
def _turn(cell: Record, sides: np.ndarray, b: int, lane: int) -> None:
    for i in range(LANES):
        side = sides[i, b]
        side.a[lane], side.on[lane], side.gradient[lane], side.posterior[lane] = cell.a[i], cell.on[i], 0.0, 0.0


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


@inner
def differentiate(columns: Columns, task: Task, first: int, room: Room, row: Record, answer: Answer) -> None:
    """Gradients in the inputs of sixteen rows, and the means of their mixture variables."""
    groups, sides, above, strengths, mixed = columns.groups, room.sides, room.above, room.strengths, room.mixed
    kept, own = room.kept, room.own
    for c in range(len(columns.slots)):
        _turn(room.cells[c], sides, c // LANES, c % LANES)
    for i in range(min(LANES, len(task.rows) - first)):
        n = _keep(answer.share, first + i, task.least, kept, own) if row.lost[i] == 0.0 else 0
        for g in range(len(groups)):
            group, weight = groups[g], row.weight[i]
            form, begin, wide = form_of(group, task.careful), group.first // LANES, group.width // LANES
            if form == PLAIN:
                for q in range(0, n * task.differentiates, 2):
                    for b in range(begin, begin + wide):
                        up, over = above[kept[q], b], above[kept[q + 1], b]
                        _differentiate_plain(sides[i, b], up, over, own[q], own[q + 1], weight)
            elif form == FRACTION:
                for q in range(n):
                    for b in range(begin, begin + wide):
                        side, up, strength = sides[i, b], above[kept[q], b], strengths[b + wide]
                        mixture, over = sides[i, b + wide], above[kept[q], b + wide]
                        if task.differentiates:
                            _differentiate_fraction(side, up, mixture, over, strength, own[q], weight)
                        else:
                            _average_fraction(side, up, mixture, over, strength, own[q])
            else:
                for q in range(n):
                    for b in range(begin, begin + wide):
                        _differentiate_sum(
                            sides, i, above, kept[q], strengths, mixed, b, wide, group.mixtures, own[q], weight
                        )


@inner
def hand_over(columns: Columns, first: int, room: Room, row: Record, answer: Answer) -> None:
    """Means of mixture variables; gradients in inputs, times the weights of rows, replace the inputs."""
    slots, mean, x, sides = columns.slots, answer.mean, room.x, room.sides
    for c in range(len(slots)):
        b, lane = c // LANES, c % LANES
        for i in range(LANES):
            x[c, first + i] = row.weight[i] * sides[i, b].gradient[lane] if row.lost[i] == 0.0 else 0.0
        if slots[c].strength >= 0:
            for i in range(min(LANES, len(mean) - first)):
                mean[first + i, c] = sides[i, b].posterior[lane]


@inner
def gather(columns: Columns, bias: FloatArray, chance: FloatArray, room: Room, answer: Answer) -> None:
    """Gradients in weights and biases, from those in the inputs of slots: by row for edges from columns, by joint state
    for edges from shared latent variables. `chance` are the shares of states, summed over rows with their weights.
    """
    slots, edges, strengths, every = columns.slots, columns.edges, room.strengths, 0.0
    for s in range(len(chance)):
        every += chance[s]
    for c in range(len(slots)):
        slot = slots[c]
        if slot.variable < 0:
            continue
        answer.bias[slot.threshold] = _dot(room.on, len(columns.features), room.x, c)
        for e in range(slot.edge, slot.latent_edge):
            answer.weight[edges[e].place] = _dot(room.on, edges[e].parent, room.x, c)
        if slot.strength >= 0:
            answer.weight[slot.strength] = strengths[c // LANES].gradient[c % LANES]
    for k in range(len(columns.latents) - 1, -1, -1):  # those above have been summed over
        half, own = 1 << k, 0.0
        for s in range(half):
            own += chance[half + s]
            chance[s] += chance[half + s]
        answer.bias[columns.latents[k]] = own - every * sigmoid(bias[columns.latents[k]])
        _fold(room.above, half, strengths)
        for c in range(len(slots)):
            for e in range(slots[c].latent_edge, slots[c].edge_end):
                if edges[e].parent == k:
                    answer.weight[edges[e].place] = strengths[c // LANES].gradient[c % LANES]


@inner(fast=True)
def _fold(above: np.ndarray, half: int, into: np.ndarray) -> None:
    """Gradients of states with a latent variable on: their sum, and beside those of states with it off."""
    for b in range(len(into)):
        for i in range(LANES):
            into[b].gradient[i] = 0.0
    for s in range(half):
        for b in range(len(into)):
            on, off, total = above[half + s, b], above[s, b], into[b]
            for i in range(LANES):
                total.gradient[i] += on.gradient[i]
                off.gradient[i] += on.gradient[i]
