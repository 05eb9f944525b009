"""Variables that have no say in the evidence: the mean of their distribution under Q of their parents."""

from __future__ import annotations

import math

import numpy as np

from sbnet.kernels import thresholds
from sbnet.kernels.codes import NOISY_OR
from sbnet.kernels.compiling import inner, kernel
from sbnet.kernels.terms.frequencies import MAX_NODES, OMEGA
from sbnet.kernels.terms.frequencies import nodes_in_kernels as nodes

_ENUMERATED = 64.0  # joint states of parents that are summed over


@kernel
def predict_rows(model, states, bias, means):
    """Means of the variables that were dropped, which are NaN; parents come first."""
    threshold, edges = model.threshold, np.zeros(len(model.parent), np.int64)
    for r in range(len(states)):
        for v in range(states.shape[1]):
            first, end = threshold[v], threshold[v + 1]
            if states[r, v] >= 0 or not np.isnan(means[r, first]):
                continue
            n, joint = 0, 1.0
            for e in range(model.indptr[v], model.indptr[v + 1]):
                if states[r, model.parent[e]] < 0:
                    edges[n], n, joint = e, n + 1, joint * model.n_states[model.parent[e]]
            out = means[r, first:end]
            if model.gate[v] == NOISY_OR:
                _noisy_max(model, v, edges[:n], bias[r, first:end], means[r], out)
            elif joint <= _ENUMERATED:
                _enumerate(model, v, edges[:n], bias[r, first:end], means[r], out)
            else:
                _sigmoid(model, v, edges[:n], bias[r, first:end], means[r], out)


@inner
def _state(model, means, u, s):
    """Q_u(s)."""
    if s > 0:
        return means[model.threshold[u] + s - 1]
    rest = 1.0
    for k in range(model.threshold[u], model.threshold[u + 1]):
        rest -= means[k]
    return max(rest, 0.0)


@inner
def _noisy_max(model, v, edges, bias, means, out):
    """P(v <= k) = <exp(-sum of x_l over l > k)>: a product with one factor a parent."""
    above = 0.0
    for k in range(len(out), -1, -1):  # at least k
        at_most = 1.0  # P(v < k)
        for l in range(max(k - 1, 0), len(out)):  # noqa: E741
            at_most *= math.exp(-bias[l])
        for e in edges:
            u, total = model.parent[e], 0.0
            width = model.n_states[u] - 1
            for s in range(width + 1):
                x = 0.0
                for l in range(max(k - 1, 0), len(out) if s > 0 else 0):  # noqa: E741
                    x += model.weight[model.block[e] + l * width + s - 1]
                total += _state(model, means, u, s) * math.exp(-x)
            at_most *= total
        if k > 0:
            out[k - 1], above = max(1.0 - at_most - above, 0.0), 1.0 - at_most


@inner
def _enumerate(model, v, edges, bias, means, out):
    """The sum over the joint states of the parents."""
    state, x = np.zeros(len(edges), np.int64), np.zeros(len(bias))
    for k in range(len(out)):
        out[k] = 0.0
    while True:
        p = 1.0
        for l in range(len(x)):  # noqa: E741
            x[l] = bias[l]
        for i in range(len(edges)):
            u = model.parent[edges[i]]
            width = model.n_states[u] - 1
            p *= _state(model, means, u, state[i])
            for l in range(len(x) if state[i] > 0 else 0):  # noqa: E741
                x[l] += model.weight[model.block[edges[i]] + l * width + state[i] - 1]
        for k in range(len(out)):
            out[k] += p * math.exp(thresholds.log_p(model.gate[v], k + 1, x))
        i = 0
        while i < len(edges) and state[i] == model.n_states[model.parent[edges[i]]] - 1:
            state[i], i = 0, i + 1
        if i == len(edges):
            break
        state[i] += 1
    for k in range(len(out)):
        out[k] = min(out[k], 1.0)  # probabilities sum to one but for rounding


@inner
def _sigmoid(model, v, edges, bias, means, out):
    """Thresholds one after the other, as if their inputs were independent; for two states there is only one."""
    at_least = 1.0
    for l in range(len(out)):  # noqa: E741
        p = _mean_sigmoid(model, l, edges, bias[l], means)
        if l > 0:
            out[l - 1] = at_least * (1.0 - p)
        at_least *= p
    out[len(out) - 1] = at_least


@inner
def _mean_sigmoid(model, l, edges, bias, means):  # noqa: E741
    """<sigma(x)> by the derivative of the sum over frequencies of the exact term, see `newterms.exact`."""
    low = high = mean = bias
    variance = largest = squares = 0.0
    for e in edges:
        width, first = model.n_states[model.parent[e]] - 1, model.threshold[model.parent[e]]
        least = most = one = two = 0.0
        for s in range(width):
            j, p = model.weight[model.block[e] + l * width + s], means[first + s]
            least, most, one, two = min(least, j), max(most, j), one + p * j, two + p * j * j
        low, high, mean, variance = low + least, high + most, mean + one, variance + two - one * one
        largest, squares = max(largest, most - least), squares + (most - least) * (most - least)
    n = nodes(low, high, mean, variance, largest, squares)
    if n == 0 or n > MAX_NODES:  # far from 0, or spread too far: as if x had a normal distribution
        return thresholds.sigmoid(mean / math.sqrt(1.0 + math.pi * variance / 8.0))
    step, total = OMEGA / n, 0.5 + (OMEGA / n) * mean / (2.0 * math.pi)  # half of what stands at frequency 0
    re, im = np.zeros(n), np.zeros(n)
    for k in range(n):
        re[k], im[k] = math.cos((k + 1) * step * bias), math.sin((k + 1) * step * bias)
    for e in edges:
        _turn(model, l, e, step, means, re, im)
    for k in range(n):
        total += step / math.sinh(math.pi * (k + 1) * step) * im[k]
    return min(max(total, 0.0), 1.0)


@inner
def _turn(model, l, e, step, means, re, im):  # noqa: E741
    """Multiply by the characteristic function of one parent, at multiples of `step`."""
    width, first = model.n_states[model.parent[e]] - 1, model.threshold[model.parent[e]]
    a, b, c, d = np.ones(width), np.zeros(width), np.zeros(width), np.zeros(width)
    for s in range(width):
        angle = step * model.weight[model.block[e] + l * width + s]
        c[s], d[s] = math.cos(angle), math.sin(angle)
    for k in range(len(re)):
        x, y = 1.0, 0.0
        for s in range(width):
            a[s], b[s] = a[s] * c[s] - b[s] * d[s], a[s] * d[s] + b[s] * c[s]
            x, y = x + means[first + s] * (a[s] - 1.0), y + means[first + s] * b[s]
        re[k], im[k] = re[k] * x - im[k] * y, re[k] * y + im[k] * x
