"""Rows without missing values: likelihoods, gradients and posterior means where latent variables can be marginalised.

Latent are up to ten *shared* variables without parents, and *mixture* variables, which have one child, a column. Given
the joint state s of the shared ones, columns are independent of each other's mixture variables. So

    P(row) = sum over s of P(s) product over columns c of P_c(s) ,

where P_c(s) is a sigmoid, or a small sum of sigmoids over the joint states m of the column's own mixture variables.

Inputs x are sums of what columns and what shared variables contribute, so e^-x is a product a d of one number for each
row and one for each s. A cell that is 1 has the probability 1 / (1 + e^-x), one that is 0 has e^-x / (1 + e^-x):
exponents of numerators are linear in the shared variables and are summed up at once, so that only denominators are left
to multiply. Products are kept as numbers and powers of two, and no logarithm is taken but that of the sum.

Gradients are means over s of those of ln P_c(s), and only few s have a share in a row that counts.

The unit of work is a *threshold* of a variable, and its place here is a *slot*. A threshold that does not count for the
state of its variable is one whose input is infinite and whose cell is 1: a = 0, on = 1, and so is a slot that nobody
has. Slots stand in groups, one for each number of mixture variables that columns have: first the columns, filled up to
a multiple of sixteen, then the first mixture variables of all of them, then the second, and so on.
"""

from __future__ import annotations

import math

import numpy as np

from sbnet._types import FloatArray
from sbnet.kernels.column_gradients import differentiate, gather, hand_over, stand_by_slot
from sbnet.kernels.column_likelihoods import (
    absorb,
    begin,
    exponentiate,
    look_above,
    multiply,
    normalise,
    open_rows,
    weigh,
)
from sbnet.kernels.column_records import (
    Answer,
    Columns,
    Room,
    Task,
    above_t,
    cell_t,
    mixed_t,
    row_t,
    side_t,
    state_t,
    strength_t,
)
from sbnet.kernels.compiling import inner, kernel
from sbnet.kernels.structs import LANES


@inner
def _strengths(columns: Columns, weight: FloatArray, strengths: np.ndarray) -> int:
    """e to minus the weights of mixture variables; the most that a column has."""
    most = 0
    for c in range(len(columns.slots)):
        place = columns.slots[c].strength
        strengths[c // LANES].k[c % LANES] = math.exp(-weight[place]) if place >= 0 else 1.0
    for g in range(len(columns.groups)):
        most = max(most, columns.groups[g].mixtures)
    return most


@kernel
def marginalise(columns: Columns, weight: FloatArray, bias: FloatArray, task: Task, answer: Answer) -> None:
    """Fill in the answer for some rows, sixteen at a time."""
    n_slots, n_rows, n_states = len(columns.slots), len(task.rows), 1 << len(columns.latents)
    n_blocks, padded = n_slots // LANES, (n_rows + LANES - 1) // LANES * LANES
    strengths = np.zeros(n_blocks, strength_t)
    n_mixtures = _strengths(columns, weight, strengths)
    differs = task.differentiates or n_mixtures > 0
    room = Room(
        np.ones((len(columns.features) + 1, padded)), np.zeros((n_slots, padded)),
        np.zeros((n_slots + LANES, n_states)), np.zeros(n_slots),
        np.zeros(n_slots + 1, cell_t), np.zeros(1 + len(columns.latents), cell_t), np.zeros(max(n_states, 2), state_t),
        np.zeros((n_states + 1 if differs else 0, n_blocks), above_t), np.zeros((LANES, n_blocks), side_t), strengths,
        np.zeros((1 << n_mixtures) + 1, mixed_t), np.zeros(n_states + 1, np.int64), np.zeros(n_states + 1),
    )  # fmt: skip
    absorb(columns, task.rows, weight, bias, room)
    look_above(columns, weight, room)
    row = np.zeros(1, row_t)[0]
    if differs:
        stand_by_slot(room.d, room.above)
    for first in range(0, n_rows, LANES):
        open_rows(columns, task, first, room, row)
        weigh(columns, task.careful, weight, room, row)
        begin(columns, weight, bias, room, row)
        exponentiate(columns, task.rows, first, room.cells)
        multiply(columns, task.careful, room, row)
        normalise(room.states, row, first, answer)
        if differs:
            differentiate(columns, task, first, room, row, answer)
            hand_over(columns, first, room, row, answer)
    if task.differentiates:
        gather(columns, bias, _chances(task.weight, answer), room, answer)


@inner
def _chances(weight: FloatArray, answer: Answer) -> FloatArray:
    """The shares of joint states, summed over rows with their weights."""
    log_p, share = answer.log_p, answer.share
    total = np.zeros(share.shape[1])
    for r in range(len(log_p)):
        if not math.isnan(log_p[r]):
            for s in range(len(total)):
                total[s] += weight[r] * share[r, s]
    return total
