"""What columns and shared latent variables say of sixteen rows at once, and their likelihoods: see `columns`."""

from __future__ import annotations

import math

import numpy as np

from sbnet._types import FloatArray, States
from sbnet.kernels.column_records import FRACTION, PLAIN, SUM, Answer, Columns, Record, Room, Task, form_of
from sbnet.kernels.compiling import inner
from sbnet.kernels.exponential import LN2, exp_parts
from sbnet.kernels.structs import LANES
from sbnet.kernels.thresholds import softplus

MOST = 300.0
"""The largest input that is multiplied here, and the largest sum of those of a column and its mixture variable."""
_ROOM = 650.0
"""The largest sum of inputs between two times that powers of two are taken out: e^650 is a number yet."""
FOUR = 4  # columns without mixture variables that are multiplied at once
_NEVER = -(1 << 40)  # the power of two of a state that does not exist
_DIGITS, _HALF = 0x000FFFFFFFFFFFFF, 0x3FE0000000000000  # the bits of the digits of a number; those of 0.5


@inner(lanewise=True)
def _add(weight: float, on: FloatArray, f: int, x: FloatArray, c: int) -> None:
    for r in range(x.shape[1]):
        x[c, r] += weight * on[f, r]


@inner
def absorb(columns: Columns, rows: States, weight: FloatArray, bias: FloatArray, room: Room) -> None:
    """Features of each row, and the inputs of slots from columns."""
    slots, edges, on, x = columns.slots, columns.edges, room.on, room.x
    for f in range(len(columns.features)):
        feature = columns.features[f]
        for r in range(len(rows)):
            on[f, r] = 1.0 if rows[r, feature.variable] == feature.state else 0.0
    for c in range(len(slots)):
        slot = slots[c]
        if slot.variable >= 0:
            for r in range(x.shape[1]):
                x[c, r] = bias[slot.threshold]
            for e in range(slot.edge, slot.latent_edge):
                _add(weight[edges[e].place], on, edges[e].parent, x, c)


@inner
def look_above(columns: Columns, weight: FloatArray, room: Room) -> None:
    """e^-(what each joint state of the shared latent variables contributes) to each slot; the most that one does."""
    slots, edges, d, most = columns.slots, columns.edges, room.d, room.most
    for c in range(len(slots)):
        rise = fall = 0.0
        for e in range(slots[c].latent_edge, slots[c].edge_end):
            w = weight[edges[e].place]
            rise, fall = rise + max(w, 0.0), fall - min(w, 0.0)
        most[c] = max(rise, fall)
        for s in range(d.shape[1]):
            d[c, s] = 1.0
        for e in range(slots[c].latent_edge, slots[c].edge_end):
            if most[c] <= MOST:  # else all rows are lost
                _lower(d, c, 1 << edges[e].parent, math.exp(-weight[edges[e].place]))


@inner(lanewise=True)
def _lower(d: FloatArray, c: int, bit: int, factor: float) -> None:
    """In all joint states in which one latent variable is on."""
    for s in range(bit, d.shape[1], 2 * bit):
        for t in range(s, s + bit):
            d[c, t] *= factor


@inner(lanewise=True)
def _expand(cell: Record) -> None:
    """m and n with e^-x = m 2^n, in the places of `x` and `bits`."""
    for i in range(LANES):
        cell.x[i], cell.bits[i] = exp_parts(-cell.x[i])


@inner(lanewise=True)
def _exponentiate(cell: Record) -> None:
    """a = e^-x; `x` is used up."""
    for i in range(LANES):
        cell.x[i], n = exp_parts(-cell.x[i])
        cell.bits[i] = (n + 1023) << 52
    for i in range(LANES):
        cell.a[i] *= cell.x[i]


@inner
def open_rows(columns: Columns, task: Task, first: int, room: Room, row: Record) -> None:
    """Sixteen rows: their weights, inputs, and which cells are 1; a row with a missing cell is lost."""
    slots, rows, x, cells = columns.slots, task.rows, room.x, room.cells
    n = min(LANES, len(rows) - first)
    for i in range(LANES):
        row.lost[i] = 0.0 if i < n else 1.0
        row.weight[i] = task.weight[first + i] if i < n else 0.0
    for c in range(len(slots)):
        cell, v, level = cells[c], slots[c].variable, slots[c].level
        for i in range(LANES):
            cell.x[i], cell.on[i] = x[c, first + i], 1.0
        if v >= 0 and slots[c].strength < 0:
            for i in range(n):
                state = rows[first + i, v]
                cell.on[i] = 0.0 if state == level - 1 else 1.0
                cell.x[i] = cell.x[i] if state >= level - 1 else 0.0
                row.lost[i] = row.lost[i] if state >= 0 else 1.0


@inner
def weigh(columns: Columns, careful: bool, weight: FloatArray, room: Room, row: Record) -> None:
    """The largest exponents that each column adds, and which rows are lost by that."""
    slots, cells, most = columns.slots, room.cells, room.most
    for g in range(len(columns.groups)):
        group = columns.groups[g]
        form, end = form_of(group, careful), group.mixtures * group.width
        for c in range(group.first, group.first + group.columns):
            for i in range(LANES):
                size, other = abs(cells[c].x[i]) + most[c] + 1.0, 0.0
                for w in range(c + group.width, c + end + 1, group.width):
                    size += abs(weight[slots[w].strength])
                    other = max(other, abs(cells[w].x[i]) + most[w] + 2.0)
                cost = 2.0 * size + other if form == FRACTION else max(size, other)
                cells[c].cost[i] = cost
                if not cost <= MOST:
                    row.lost[i] = 1.0
        if form == PLAIN and not careful:
            for c in range(group.first, group.first + group.columns, FOUR):
                for i in range(LANES):
                    total = cells[c].cost[i] + cells[c + 1].cost[i] + cells[c + 2].cost[i] + cells[c + 3].cost[i]
                    row.lost[i] = row.lost[i] if total <= _ROOM else 1.0


@inner
def begin(columns: Columns, weight: FloatArray, bias: FloatArray, room: Room, row: Record) -> None:
    """P(s) times all numerators: the product of a number for each latent variable that is on, heads[1 + k]."""
    slots, edges, n = columns.slots, columns.edges, len(columns.latents)
    cells, heads, states = room.cells, room.heads, room.states
    none = 0.0
    for k in range(n):
        none += softplus(bias[columns.latents[k]])
    for i in range(LANES):
        heads[0].x[i] = none  # - ln P(s = 0)
        for k in range(n):
            heads[1 + k].x[i] = -bias[columns.latents[k]]
    for c in range(len(slots)):
        cell = cells[c]
        for i in range(LANES):
            cell.x[i] = cell.x[i] if row.lost[i] == 0.0 else 0.0
            heads[0].x[i] += (1.0 - cell.on[i]) * cell.x[i]
        for e in range(slots[c].latent_edge, slots[c].edge_end):
            head, w = heads[1 + edges[e].parent], weight[edges[e].place]
            for i in range(LANES):
                head.x[i] += (1.0 - cell.on[i]) * w
    for k in range(n + 1):
        _expand(heads[k])
    for i in range(LANES):
        states[0].num[i], states[0].power[i], states[0].den[i] = heads[0].x[i], heads[0].bits[i], 1.0
        states[1].num[i], states[1].power[i], states[1].den[i] = heads[0].x[i], _NEVER, 1.0
        if n > 0:
            states[1].num[i] *= heads[1].x[i]
            states[1].power[i] = heads[0].bits[i] + heads[1].bits[i]
    for k in range(1, n):
        half = 1 << k
        for s in range(0, half, 2):
            _switch_on(states[s], states[s + 1], heads[1 + k], states[half + s], states[half + s + 1])


@inner(lanewise=True)
def _switch_on(one: Record, two: Record, head: Record, to_one: Record, to_two: Record) -> None:
    """Two states in which one more latent variable is on."""
    for i in range(LANES):
        to_one.num[i], to_two.num[i] = one.num[i] * head.x[i], two.num[i] * head.x[i]
        to_one.power[i], to_two.power[i] = one.power[i] + head.bits[i], two.power[i] + head.bits[i]
        to_one.den[i], to_two.den[i] = 1.0, 1.0


@inner
def exponentiate(columns: Columns, rows: States, first: int, cells: np.ndarray) -> None:
    """a = e^-x of each slot, 0 where a threshold does not count."""
    for c in range(len(columns.slots)):
        cell, slot = cells[c], columns.slots[c]
        _exponentiate(cell)
        if slot.variable < 0:
            for i in range(LANES):
                cell.a[i] = 0.0
        elif slot.level > 1:
            for i in range(min(LANES, len(rows) - first)):
                cell.a[i] = cell.a[i] if rows[first + i, slot.variable] >= slot.level - 1 else 0.0


@inner(lanewise=True)
def _times_plain(
    states: np.ndarray, c_0: Record, c_1: Record, c_2: Record, c_3: Record, down: FloatArray, c: int
) -> None:
    """Four columns without mixture variables: 1 + e^-x is the denominator of each."""
    for s in range(down.shape[1]):
        state, d_0, d_1, d_2, d_3 = states[s], down[c, s], down[c + 1, s], down[c + 2, s], down[c + 3, s]
        for i in range(LANES):
            first, rest = (
                (1.0 + c_0.a[i] * d_0) * (1.0 + c_1.a[i] * d_1),
                (1.0 + c_2.a[i] * d_2) * (1.0 + c_3.a[i] * d_3),
            )
            state.den[i] *= first * rest


@inner(lanewise=True)
def _times_fraction(
    states: np.ndarray, cell: Record, mixture: Record, down: FloatArray, c: int, w: int, k: float
) -> None:
    """A column with one mixture variable. With odds E against it, A_0 = e^-x without it and A_1 = K A_0 with it, P is
    [F (1 + A_0) + E (1 + A_1)] / [(1 + E) (1 + A_0) (1 + A_1)]; F is 1, or K if the cell is 0.
    """
    for s in range(down.shape[1]):
        state, d, e = states[s], down[c, s], down[w, s]
        for i in range(LANES):
            a_0, odds = cell.a[i] * d, mixture.a[i] * e
            u_0, u_1 = 1.0 + a_0, 1.0 + k * a_0
            state.num[i] *= (cell.on[i] + (1.0 - cell.on[i]) * k) * u_0 + odds * u_1
            state.den[i] *= (1.0 + odds) * u_0 * u_1


@inner(lanewise=True)
def _times_sum(
    state: Record, cells: np.ndarray, down: FloatArray, strengths: np.ndarray, mixed: np.ndarray, s: int, c: int,
    width: int, n: int,
) -> None:  # fmt: skip
    """A column with n mixture variables, a sum over their joint states m."""
    cell, d = cells[c], down[c, s]
    for i in range(LANES):
        mixed[0].p[i], mixed[0].k[i] = 1.0, 1.0
    for j in range(n):
        w = c + (j + 1) * width
        mixture, e, k = cells[w], down[w, s], strengths[w // LANES].k[w % LANES]
        for m in range(1 << j):
            off, on = mixed[m], mixed[(1 << j) + m]
            for i in range(LANES):
                q = 1.0 / (1.0 + mixture.a[i] * e)
                on.p[i], on.k[i] = off.p[i] * q, off.k[i] * k
                off.p[i] *= mixture.a[i] * e * q
    for i in range(LANES):
        mixed[0].u[i] = 0.0
    for m in range(1 << n):
        of = mixed[m]
        for i in range(LANES):
            mixed[0].u[i] += of.p[i] * (cell.on[i] + (1.0 - cell.on[i]) * of.k[i]) / (1.0 + cell.a[i] * d * of.k[i])
    for i in range(LANES):
        state.num[i] *= mixed[0].u[i]


@inner(lanewise=True)
def _rescale(one: Record, two: Record, row: Record) -> None:
    """What is large or small about the fractions of two states goes into their powers of two."""
    for i in range(LANES):
        one.power[i] += (one.num_bits[i] >> 52) - (one.den_bits[i] >> 52)
        two.power[i] += (two.num_bits[i] >> 52) - (two.den_bits[i] >> 52)
        one.num_bits[i], two.num_bits[i] = (one.num_bits[i] & _DIGITS) | _HALF, (two.num_bits[i] & _DIGITS) | _HALF
        one.den_bits[i], two.den_bits[i] = (one.den_bits[i] & _DIGITS) | _HALF, (two.den_bits[i] & _DIGITS) | _HALF
        row.power[i] = max(row.power[i], max(one.power[i], two.power[i]))


@inner
def _rescale_all(states: np.ndarray, row: Record) -> None:
    for i in range(LANES):
        row.power[i] = _NEVER
    for s in range(0, len(states), 2):
        _rescale(states[s], states[s + 1], row)


@inner
def _cost(cells: np.ndarray, first: int, end: int, row: Record) -> float:
    """The largest exponents that columns add, in rows that are not lost."""
    most = 0.0
    for i in range(LANES):
        total = 0.0
        for c in range(first, end):
            total += cells[c].cost[i]
        most = max(most, total if row.lost[i] == 0.0 else 0.0)
    return most


@inner
def multiply(columns: Columns, careful: bool, room: Room, row: Record) -> None:
    """P(row, s) of sixteen rows, for every joint state of the shared latent variables."""
    cells, states, d, strengths, mixed = room.cells, room.states, room.d, room.strengths, room.mixed
    idle, left = cells[len(cells) - 1], _ROOM
    for g in range(len(columns.groups)):
        group = columns.groups[g]
        form = form_of(group, careful)
        step = FOUR if form == PLAIN and not careful else 1
        for c in range(group.first, group.first + group.columns, step):
            cost = _cost(cells, c, c + step, row) * (2.0 if form == SUM else 1.0)
            if cost > left:
                _rescale_all(states, row)
                left = _ROOM
            left -= cost
            if form == PLAIN and careful:
                _times_plain(states, cells[c], idle, idle, idle, d, c)
            elif form == PLAIN:
                _times_plain(states, cells[c], cells[c + 1], cells[c + 2], cells[c + 3], d, c)
            elif form == FRACTION:
                w = c + group.width
                _times_fraction(states, cells[c], cells[w], d, c, w, strengths[w // LANES].k[w % LANES])
            else:
                for s in range(d.shape[1]):
                    _times_sum(states[s], cells, d, strengths, mixed, s, c, group.width, group.mixtures)
    _rescale_all(states, row)


@inner(lanewise=True)
def _sum(one: Record, two: Record, row: Record) -> None:
    """P of two states, as shares of 2^(highest power); `power` are the bits of `scale`."""
    for i in range(LANES):
        least = row.power[i] - 1023
        one.power[i], two.power[i] = max(one.power[i] - least, 0) << 52, max(two.power[i] - least, 0) << 52
    for i in range(LANES):
        both = 1.0 / (one.den[i] * two.den[i])
        one.num[i] *= one.scale[i] * two.den[i] * both
        two.num[i] *= two.scale[i] * one.den[i] * both
        row.total[i] += one.num[i] + two.num[i]


@inner
def normalise(states: np.ndarray, row: Record, first: int, answer: Answer) -> None:
    """ln P of each row, and the shares of states in P."""
    log_p, share = answer.log_p, answer.share
    for i in range(LANES):
        row.total[i] = 0.0
    for s in range(0, len(states), 2):
        _sum(states[s], states[s + 1], row)
    for i in range(min(LANES, len(log_p) - first)):
        r, one = first + i, 1.0 / row.total[i]
        if row.lost[i] > 0.0:
            log_p[r] = np.nan
            continue
        log_p[r] = math.log(row.total[i]) + row.power[i] * LN2
        for s in range(share.shape[1]):
            share[r, s] = states[s].num[i] * one
