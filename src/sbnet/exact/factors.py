"""What variables with states say about themselves and their parents, as tables of logarithms.

All tables have an axis of rows in front, of length 1 where the rows of evidence do not differ in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from sbnet._types import FloatArray, IndexArray, Model, States
from sbnet.kernels.codes import NOISY_OR, SIGMOID
from sbnet.model.network import CERTAIN
from sbnet.questions.domains import certainties

TABLE = 2
"""The gate of a variable with a probability for each joint state of its parents."""
_PIECE = 1 << 14  # numbers that are worked on at once: they stay in the cache


@dataclass(frozen=True, eq=False)
class Family:
    """A variable with K states given its parents u.

    A `sigmoid` or `noisy-or` variable has the inputs x_l = h_l + sum of J_l[u, s_u], l = 1 ... K - 1, J_l[u, 0] = 0:
    `bias` is h, of shape (K - 1,), and `weights` has J of each parent, (K - 1, K_u - 1). Where the gate is `TABLE`,
    ``table[s_1, ..., s_m, k]`` is P(v = k | parents).
    """

    variable: int
    parents: tuple[int, ...]
    gate: int
    bias: FloatArray
    weights: tuple[FloatArray, ...] = ()
    table: FloatArray | None = None


def families_of(
    model: Model, bias: FloatArray, variables: Iterable[int], tables: Mapping[int, FloatArray] | None = None
) -> list[Family]:
    """The families of some variables of a network; noisy-OR links and leaks of probability 1 are infinite."""
    found = []
    for v in variables:
        edges = range(int(model.indptr[v]), int(model.indptr[v + 1]))
        parents, gate = tuple(int(model.parent[e]) for e in edges), int(model.gate[v])
        h = bias[model.threshold[v] : model.threshold[v + 1]]
        if gate == TABLE:
            found.append(Family(int(v), parents, gate, h, (), None if tables is None else tables[v]))
            continue
        rows = len(h)
        blocks = [model.weight[model.block[e] : model.block[e + 1]].reshape(rows, -1) for e in edges]
        if gate == NOISY_OR:
            h, *blocks = (np.where(x == CERTAIN, np.inf, x) for x in (h, *blocks))
        found.append(Family(int(v), parents, gate, h, tuple(blocks)))
    return found


def absorbed(family: Family, states: States) -> FloatArray:
    """Biases with the weights of observed parents added, rows by thresholds."""
    x = family.bias[None, :]
    for u, weight in zip(family.parents, family.weights, strict=True):
        if states[0, u] >= 0:
            s = _few(states[:, u])
            x = x + np.where(s[:, None] > 0, weight.T[np.maximum(s, 1) - 1], 0.0)
    return x


def log_table(family: Family, states: States) -> FloatArray:
    """ln P of the variable: an axis for each parent that is not observed, and for the variable itself if it is not."""
    if family.table is not None:
        return _selected(family, states)
    hidden = [k for k, u in enumerate(family.parents) if states[0, u] < 0]
    x, own = absorbed(family, states), _few(states[:, family.variable])
    shape = [family.weights[k].shape[1] + 1 for k in hidden]
    inputs = []
    for l in range(x.shape[1]):  # noqa: E741 (the letter of the definition)
        parts = [np.concatenate([[0.0], family.weights[k][l]]) for k in hidden]
        grid = reduce(np.add.outer, parts, np.zeros(())).reshape(1, *shape)
        inputs.append(grid + x[:, l].reshape(-1, *[1] * len(shape)))
    if family.gate == SIGMOID:
        _make_certain(family, states, inputs)
    if own[0] >= 0:
        return _log_p(family.gate, inputs, own.reshape(-1, *[1] * len(shape)))
    return np.stack([_log_p(family.gate, inputs, np.array(k)) for k in range(len(inputs) + 1)], axis=-1)


def _make_certain(family: Family, states: States, inputs: list[FloatArray]) -> None:
    """Infinite inputs where a threshold of a sigmoid variable is certain to be passed, or cannot be."""
    certain = certainties(family.gate, family.bias, family.weights)
    ends = ((certain.needs, certain.raises, -np.inf), (certain.needs | True, certain.sure, np.inf))
    for mine, marks, end in ends if certain.any() else ():
        for k in np.flatnonzero(mine):
            found, hidden = np.array(end > 0.0 and certain.always[k]), 0
            for u, mark in zip(family.parents, marks, strict=True):
                if states[0, u] >= 0:
                    own = mark[k, _few(states[:, u])].reshape(-1, *[1] * (inputs[k].ndim - 1))
                else:
                    hidden += 1
                    own = mark[k].reshape([-1 if axis == hidden else 1 for axis in range(inputs[k].ndim)])
                found = found | own
            inputs[k] = np.where(found == (end > 0.0), end, inputs[k])


def _selected(family: Family, states: States) -> FloatArray:
    """The logarithm of a table, with what is observed put in."""
    assert family.table is not None
    axes = (*family.parents, family.variable)
    seen = [k for k, u in enumerate(axes) if states[0, u] >= 0]
    table = np.moveaxis(family.table, seen, range(len(seen)))
    rows = table[tuple(_few(states[:, axes[k]]) for k in seen)] if seen else table[None]
    with np.errstate(divide="ignore"):
        return np.log(rows)


def _log_p(gate: int, inputs: Sequence[FloatArray], state: IndexArray | States) -> FloatArray:
    """ln P(v = state | x), sum over thresholds of a x - c t(x), without loss of digits where it is near 0."""
    total: FloatArray | None = None
    for level, x in enumerate(inputs, 1):
        if gate == SIGMOID:  # P(v >= l | v >= l - 1) = sigma(x_l)
            if (state < level - 1).all():
                continue
            part = _log_sigmoid(np.where(state >= level, x, -x))
            part = part if (state >= level - 1).all() else np.where(state < level - 1, 0.0, part)
        else:  # P(v <= k) = exp(-sum of x_l over l > k)
            if (state > level).all():
                continue
            part = np.where(state < level, -x, np.where(state == level, log_some(x), 0.0))
        total = part if total is None else np.add(total, part, out=total)
    return np.zeros(np.broadcast_shapes(inputs[0].shape, state.shape)) if total is None else total


def _log_sigmoid(x: FloatArray) -> FloatArray:
    """-ln(1 + e^-x), in the place of x."""
    flat = x.reshape(-1)
    for first in range(0, flat.size, _PIECE):
        piece = flat[first : first + _PIECE]
        tail = np.log1p(np.exp(-np.abs(piece)))
        np.minimum(piece, 0.0, out=piece)
        piece -= tail
    return x


def log_some(x: FloatArray) -> FloatArray:
    """ln(1 - e^-x), that something fires: minus infinity at 0."""
    with np.errstate(divide="ignore"):
        small = np.log(-np.expm1(-np.minimum(x, 1.0)))
        return np.where(x < np.log(2.0), small, np.log1p(-np.exp(-np.maximum(x, 0.5))))


# --- noisy-MAX, cause by cause ----------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Cause:
    """What a parent does to "the largest so far": all it reads is rows by states of the parent.

    With z the largest before and z' after, P(z' | z, s) is ``hit[z'](s)`` for z' > z, which does not depend on z, and
    ``kept[z](s)``, the probability that the parent causes no more than z, for z' = z. No term is negative.
    """

    kept: tuple[FloatArray, ...]
    hit: tuple[FloatArray, ...]  # hit[0] is not used


def fired(family: Family, states: States) -> tuple[FloatArray, dict[int, FloatArray], dict[int, FloatArray]]:
    """An observed noisy-MAX variable v = k: exp(-sum of x_l over l > k) times the probability that x_k fires.

    The bias of x_k by row; its weights by parent, rows by 1 by states; and the logarithm of the first factor by parent,
    which is straight in x: rows by states. The part of the bias in that is under -1. Nothing fires where k = 0.
    """
    x, k = absorbed(family, states), _few(states[:, family.variable])[:, None]
    level = np.arange(1, x.shape[1] + 1)
    above, here = level > k, level == k
    straight, weight = {-1: -np.where(above, x, 0.0).sum(axis=1)}, dict[int, FloatArray]()
    for u, block in zip(family.parents, family.weights, strict=True):
        if states[0, u] < 0:
            straight[u] = np.zeros((len(k), block.shape[1] + 1))
            np.negative(np.where(above[:, :, None], block, 0.0).sum(axis=1), out=straight[u][:, 1:])
            weight[u] = np.where(here[:, :, None], block, 0.0).sum(axis=1)[:, None]
    return np.where(here, x, 0.0).sum(axis=1, keepdims=True), weight, straight


def _few(state: States) -> States:
    """One row, if all are the same."""
    return state[:1] if (state == state[0]).all() else state


def leak(x: FloatArray) -> FloatArray:
    """ln P(v = z) of a noisy-MAX variable with such inputs, rows by thresholds: rows by states."""
    above = np.cumsum(x[:, ::-1], axis=1)[:, ::-1]
    nothing = np.zeros((len(x), 1))
    return np.hstack([-above, nothing]) + np.hstack([nothing, log_some(x)])


def cause(weight: FloatArray) -> Cause:
    """A parent as a cause, from the weights of its states from 1 on: rows by thresholds by states."""
    rows, levels, _ = weight.shape
    theta = np.concatenate([np.zeros((rows, levels, 1)), weight], axis=2)
    above = np.cumsum(theta[:, ::-1], axis=1)[:, ::-1]  # -ln P(no more than z), z = 0 ... K - 2
    kept = (*(-above[:, z] for z in range(levels)), np.zeros_like(theta[:, 0]))
    hit = (np.full_like(kept[0], -np.inf), *(kept[z] + log_some(theta[:, z - 1]) for z in range(1, levels + 1)))
    return Cause(kept, hit)
