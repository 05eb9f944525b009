"""Rows of columns marginalised: what is done once for a network or a row, around :mod:`sbnet.kernels.columns`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import expit

from sbnet._types import BoolArray, FloatArray, IndexArray, States
from sbnet.kernels import columns as kernels
from sbnet.kernels.column_gradients import Means, above_t, add_gradients, differentiate, side_t, strength_t
from sbnet.kernels.columns import FRACTION, LIMIT, PLAIN, ROOM, SUM, Given, add_inputs, multiply
from sbnet.kernels.structs import LANES, aligned
from sbnet.kernels.vector import LN2, LN2_HIGH, LN2_LOW, LOG2E

_SLIGHT, _NOTHING = 1e-5, 1e-12
"""Shares of states in a row that do not count: while learning, and in means."""


class Columns(NamedTuple):
    """Where everything stands, by slot: see :mod:`sbnet.kernels.columns`."""

    groups: np.ndarray  # of group_t
    variable: IndexArray  # -1 if nobody has the slot
    strength: IndexArray  # of a mixture variable: where its weight to its column stands, else -1
    edges: np.ndarray  # of edge_t, from features to slots
    latent_edges: np.ndarray  # of edge_t, from slots to the shared latent variables above them, the first being 1
    features: IndexArray  # the columns, which are features where they are 1
    latents: IndexArray  # the shared latent variables


class Answer(NamedTuple):
    """What is found, of each row and in all."""

    log_p: FloatArray  # ln P, NaN if a cell is missing or inputs are too large to multiply
    share: FloatArray  # the posterior of joint states of the shared latent variables
    latent_mean: FloatArray
    mixture_mean: FloatArray  # by slot
    weight: FloatArray  # gradients of the weighted sum of ln P
    bias: FloatArray


def _given(columns: Columns, weight: FloatArray, bias: FloatArray, rows: States) -> tuple[Given, FloatArray, BoolArray]:
    """What is multiplied, the features of rows, and the rows that are lost: cells are missing, or inputs too large."""
    n_rows, used, mixture = len(rows) + -len(rows) % LANES, columns.variable >= 0, columns.strength >= 0
    cells = np.ones((rows.shape[1] + 1, n_rows), np.int8)  # the last: mixture variables, and slots that nobody has
    cells[:-1, : len(rows)] = rows.T
    state = cells[np.where(mixture, -1, columns.variable)]
    features = (cells[columns.features] == 1).astype(np.float64)
    off, x = aligned((2, *state.shape), np.float64)
    off[:], x[:] = state == 0, np.where(used, bias[columns.variable], 0.0)[:, None]
    add_inputs(columns.edges, weight, features, x)
    strength = np.zeros(len(x))
    strength[mixture] = weight[columns.strength[mixture]]
    d, most = _above(columns, weight)
    cost, lost = _costs(columns.groups, x, most, strength)
    lost |= (state < 0).any(axis=0)
    head, power = _heads(columns, weight, bias, off, x)
    a = np.exp(np.negative(x, out=x), out=x)
    a[~used] = 0.0
    k, lanes = np.exp(-np.clip(strength, -ROOM, ROOM)), (-1, n_rows // LANES, LANES)
    a, off, head, power = a.reshape(lanes), off.reshape(lanes), head.reshape(lanes), power.reshape(lanes)
    return Given(a, off, cost, head, power, d, k), features, lost[: len(rows)]


def _heads(
    columns: Columns, weight: FloatArray, bias: FloatArray, off: FloatArray, x: FloatArray
) -> tuple[FloatArray, IndexArray]:
    """By row, P(s = 0) and all numerators, and what each latent variable that is on makes of that: m 2^n."""
    head, h = np.empty((1 + len(columns.latents), x.shape[1])), bias[columns.latents]
    head[0] = (off * x).sum(axis=0) + np.logaddexp(0.0, h).sum()
    head[1:] = -h[:, None]
    add_inputs(columns.latent_edges, weight, off, head)
    n = np.rint(head * -LOG2E)
    return np.exp((-head - n * LN2_HIGH) - n * LN2_LOW), n.astype(np.int64)


def _above(columns: Columns, weight: FloatArray) -> tuple[FloatArray, FloatArray]:
    """By slot, e^-(what each joint state of the shared latent variables contributes), and the most that one does."""
    edges, n = columns.latent_edges, len(columns.latents)
    above = np.zeros((len(columns.variable), n))
    above[edges["source"], edges["target"] - 1] = weight[edges["place"]]
    most = np.maximum(np.maximum(above, 0.0).sum(axis=1), np.maximum(-above, 0.0).sum(axis=1))
    above[~(most <= ROOM)] = 0.0  # all rows are lost
    d, factor = np.ones((len(above), 1 << n)), np.exp(-above)
    for k in range(n):
        np.multiply(d[:, : 1 << k], factor[:, k : k + 1], out=d[:, 1 << k : 2 << k])
    return d, most


def _costs(groups: np.ndarray, x: FloatArray, most: FloatArray, strength: FloatArray) -> tuple[FloatArray, BoolArray]:
    """The largest exponents that columns add, and the rows in which one adds too much: their inputs become zero."""
    lost: BoolArray = np.zeros(x.shape[1], np.bool_)
    cost = _cost(groups, np.abs(x).max(axis=1, keepdims=True), most, strength)
    if np.isinf(cost).any():  # in some of the rows
        lost |= np.isinf(_cost(groups, np.abs(x), most, strength)).any(axis=0)
        x[:, lost] = 0.0
        cost = _cost(groups, np.abs(x).max(axis=1, keepdims=True), most, strength)
    return cost[:, 0], lost


def _cost(groups: np.ndarray, size: FloatArray, most: FloatArray, strength: FloatArray) -> FloatArray:
    """The largest exponents that columns add, from the sizes of inputs; infinite if they are too large."""
    size, strength, cost = size + (most + 1.0)[:, None], np.abs(strength)[:, None], np.zeros_like(size)
    for first, width, _, mixtures, form in groups.tolist():
        begin, end = first + width, first + (1 + mixtures) * width
        own = size[first:begin] + strength[begin:end].reshape(mixtures, width, 1).sum(axis=0)
        if form == FRACTION:
            own *= 2.0
        if mixtures:
            own += size[begin:end].reshape(mixtures, *own.shape).max(axis=0) + 1.0
        own[~(own <= LIMIT[form])] = np.inf
        cost[first:begin] = own
        if form == PLAIN:
            cost[first : begin : kernels.FOUR] = own.reshape(-1, kernels.FOUR, own.shape[1]).sum(axis=1)
    return cost


def marginalise(
    columns: Columns,
    weight: FloatArray,
    bias: FloatArray,
    rows: States,
    row_weight: FloatArray | None,
    *,
    careful: bool = False,
) -> Answer:
    """Likelihoods and means of rows of states by variable, and gradients if rows have weights.

    If `careful`, all columns are treated as those with several mixture variables: slower, but for larger inputs. What
    becomes of a row does not depend on the rows beside it.
    """
    if careful:
        groups = columns.groups.copy()
        groups["form"] = SUM
        columns = columns._replace(groups=groups)
    groups, n_slots, n_states = columns.groups, len(columns.variable), 1 << len(columns.latents)
    given, features, lost = _given(columns, weight, bias, rows)
    share, total, top = np.empty((len(rows), n_states)), np.empty(len(rows)), np.empty(len(rows), np.int64)
    most = int(groups["mixtures"].max(initial=0))
    mixed, states = aligned(((1 << most) + 1,), kernels.mixed_t), aligned((n_states,), kernels.state_t)
    multiply(groups, given, states, mixed, aligned((1,), kernels.row_t), share, total, top)
    log_p = np.log(total) + top * LN2
    log_p[lost], share[lost] = np.nan, 0.0
    latent_mean, mean = _folded(share, len(columns.latents)), np.zeros((len(rows), n_slots))
    answer = Answer(log_p, share, latent_mean, mean, np.zeros(len(weight)), np.zeros(len(bias)))
    if row_weight is None and most == 0:
        return answer
    x, n_blocks = np.zeros((n_slots, features.shape[1])), n_slots // LANES
    above, strengths = aligned((n_states + 1, n_blocks), above_t), aligned((n_blocks,), strength_t)
    strengths["k"] = given.k.reshape(-1, LANES)
    room = aligned((n_blocks,), side_t), strengths, mixed, np.zeros(n_states + 1, np.int64), np.zeros(n_states + 1)
    means, least = Means(above, *room, x, mean), _NOTHING if row_weight is None else _SLIGHT
    w = np.ones(len(rows)) if row_weight is None else row_weight
    differentiate(groups, given, share, w, least, row_weight is not None, means)
    if row_weight is not None:
        _gather(columns, bias, features, means, np.where(lost, 0.0, w), answer)
    return answer


def _gather(
    columns: Columns, bias: FloatArray, features: FloatArray, means: Means, row_weight: FloatArray, answer: Answer
) -> None:
    """Gradients in weights and biases, from those in the inputs of slots: by row for edges from columns, by joint state
    for edges from shared latent variables.
    """
    used, mixture, latents, edges = columns.variable >= 0, columns.strength >= 0, columns.latents, columns.latent_edges
    add_gradients(columns.edges, features, means.x, answer.weight)
    answer.bias[columns.variable[used]] = means.x.sum(axis=1)[used]
    answer.weight[columns.strength[mixture]] = means.strengths["gradient"].ravel()[mixture]
    above = means.above["gradient"][:-1].reshape(-1, len(used))
    answer.weight[edges["place"]] = _folded(above.T, len(latents))[edges["source"], edges["target"] - 1]
    answer.bias[latents] = (row_weight[:, None] * (answer.latent_mean - expit(bias[latents]))).sum(axis=0)


def _folded(share: FloatArray, n: int) -> FloatArray:
    """Sums over the joint states in which each shared variable is on: the last one is the highest bit.

    Row by row: the rounding of a product of matrices would depend on how many rows are asked for at once.
    """
    sums = np.empty((len(share), n))
    for k in reversed(range(n)):
        off, on = share[:, : 2**k], share[:, 2**k :]
        sums[:, k], share = on.sum(axis=1), off + on
    return sums
