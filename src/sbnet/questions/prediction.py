"""Variables that have no say in the evidence: the mean of their distribution if their parents were independent.

A *case* is such a variable in a row. Its hidden parents have a *slot* for each of their states; observed ones are
absorbed in the bias, which counts as a parent with one state. A row has the same digits alone and among others.
"""

from __future__ import annotations

import numpy as np

from sbnet._types import FloatArray, IndexArray, Model, States
from sbnet.kernels.codes import NOISY_OR
from sbnet.model.gates import sigma
from sbnet.quadrature.frequencies import MAX_NODES, OMEGA, nodes
from sbnet.questions.reduction import stretches

_ENUMERATED = 6.0 + 1e-9  # log2 of the joint states of parents that are summed over
_AT_ONCE = 1 << 14  # edges


def predict_rows(model: Model, states: States, bias: FloatArray, means: FloatArray) -> None:
    """Fill in the means that are NaN, rows by columns, parents first; `bias` has the evidence absorbed."""
    wanted = (states < 0) & np.isnan(means[:, model.threshold[:-1]])
    some, size = np.flatnonzero(wanted.any(axis=0)), np.diff(model.indptr) + 1
    model = model._replace(parent=np.append(model.parent, -1), weight=np.append(model.weight, 0.0))  # of no edge
    newest = np.maximum.reduceat(np.where(size[model.parent] > 1, model.parent, -1), model.indptr[:-1])
    first, rest, start = some[size[some] == 1], some[size[some] > 1], 0
    groups = [first]  # those of a group do not depend on each other
    for k in range(1, len(rest) + 1):
        if k == len(rest) or newest[rest[k]] >= rest[start]:
            groups.append(rest[start:k])
            start = k
    for group in groups:
        row, place = np.nonzero(wanted[:, group])
        v = group[place]
        for case in np.split(np.arange(len(v)), np.flatnonzero(np.diff(np.cumsum(size[v]) // _AT_ONCE)) + 1):
            if len(case):
                _predict(model, states, bias, means, row[case], v[case])


def _predict(model: Model, states: States, bias: FloatArray, means: FloatArray, row: IndexArray, v: IndexArray) -> None:
    place, begin = stretches(model.indptr + np.arange(len(model.indptr)), v)
    case = np.repeat(np.arange(len(v)), np.diff(begin))
    edge = place - v[case] - 1  # the first stands for the bias
    size = np.where(states[row[case], model.parent[edge]] < 0, model.n_states[model.parent[edge]], 0)
    size[begin[:-1]] = 1
    joint = np.add.reduceat(np.log2(np.maximum(size, 1)), begin[:-1])
    way = np.select([model.gate[v] == NOISY_OR, joint <= _ENUMERATED], [0, 1], 2)
    for kind in set(zip(way.tolist(), model.n_states[v].tolist(), strict=True)):
        mine, levels = (way == kind[0]) & (model.n_states[v] == kind[1]), np.arange(kind[1] - 1)[:, None]
        parent = np.flatnonzero(mine[case] & (size > 0))
        first, slot = np.cumsum(size[parent]) - size[parent], np.repeat(parent, size[parent])
        state, of = np.arange(len(slot)) - np.repeat(first, size[parent]), model.parent[edge[slot]]
        place = model.block[edge[slot]] + levels * (model.n_states[of] - 1) + state - 1
        w = model.weight[np.where(state > 0, place, -1)]  # thresholds by slots
        q = np.where(state > 0, means[row[case[slot]], model.threshold[of] + state - 1], 0.0)
        q[first] = np.maximum(1.0 - np.add.reduceat(q, first), 0.0)
        start, column = np.searchsorted(parent, begin[:-1][mine]), model.threshold[v[mine]] + levels
        w[:, first[start]] = bias[row[mine], column]
        found = (_noisy_max, _enumerate, _thresholds)[kind[0]](start, first, q, w)
        means[row[mine], column] = np.clip(found, 0.0, 1.0)


def _noisy_max(begin: IndexArray, first: IndexArray, q: FloatArray, w: FloatArray) -> FloatArray:
    """P(v <= k) = <exp(-sum of x_l over l > k)>: a product with one factor a parent."""
    factor = np.add.reduceat(q * np.exp(-np.cumsum(w[::-1], axis=0)), first, axis=1)
    return np.diff(1.0 - np.multiply.reduceat(factor, begin, axis=1), axis=0, prepend=0.0)[::-1]


def _enumerate(begin: IndexArray, first: IndexArray, q: FloatArray, w: FloatArray) -> FloatArray:
    """The sum over the joint states of the parents, one parent after the other."""
    case, end, slots = np.arange(len(begin)), np.append(begin[1:], len(first)), np.append(first, [len(q), len(q) + 1])
    q, w, p, x = np.append(q, 1.0), np.pad(w, ((0, 0), (0, 1))), np.ones(len(begin)), np.zeros((len(w), len(begin)))
    for i in range(int((end - begin).max())):  # the last slot is that of no parent
        slot, split = stretches(slots, np.where(begin + i < end, begin + i, len(first))[case])
        old = np.repeat(np.arange(len(p)), np.diff(split))
        case, p, x = case[old], p[old] * q[slot], x[:, old] + w[:, slot]
    return np.add.reduceat(p * _states(sigma(x), sigma(-x)), np.searchsorted(case, np.arange(len(begin))), axis=1)


def _thresholds(begin: IndexArray, first: IndexArray, q: FloatArray, w: FloatArray) -> FloatArray:
    """Thresholds as if their inputs were independent, each by frequencies, as the exact term: see `kernels.terms`."""
    least, most = np.minimum.reduceat(w, first, axis=1), np.maximum.reduceat(w, first, axis=1)
    one, two = np.add.reduceat(q * w, first, axis=1), np.add.reduceat(q * w * w, first, axis=1)
    parts = np.stack([least, most, one, two - one * one, (most - least) ** 2])
    low, high, mean, variance, squares = np.add.reduceat(parts, begin, axis=2)
    needs = np.stack([low, high, mean, variance, np.maximum.reduceat(most - least, begin, axis=1), squares], axis=2)
    n = np.array([nodes(*each) for each in needs.reshape(-1, 6).tolist()]).reshape(mean.shape)
    step = OMEGA / np.maximum(n, 1)
    turn = np.exp(1j * w * np.repeat(step, np.diff(np.append(first[begin], len(q))), axis=1))
    wave, p = np.zeros(w.shape) + q + 0j, 0.5 + step * mean / (2.0 * np.pi)  # half of what stands at frequency 0
    for k in range(1, int(n.max(where=n <= MAX_NODES, initial=0)) + 1):
        wave *= turn  # phi: the characteristic function at k steps, one factor a parent
        phi = np.multiply.reduceat(np.add.reduceat(wave, first, axis=1), begin, axis=1)
        p += np.where(k <= n, step / np.sinh(np.pi * np.minimum(k * step, OMEGA)), 0.0) * phi.imag
    normal = sigma(mean / np.sqrt(1.0 + np.pi * variance / 8.0))  # if x is far from 0, or spread too far
    p = np.where((n > 0) & (n <= MAX_NODES), np.clip(p, 0.0, 1.0), normal)
    return _states(p, 1.0 - p)


def _states(p: FloatArray, rest: FloatArray) -> FloatArray:
    """P(v = k), k > 0, from P(v >= l | v >= l - 1) and 1 minus that."""
    return np.cumprod(p, axis=0) * np.append(rest[1:], np.ones_like(p[:1]), axis=0)
