"""The gradient of the bound in weights and biases, eqs. (34)-(35), at the parameters where the solver stopped.

At fixed means and xi this is the whole gradient: those were chosen to make the bound stationary (envelope theorem).
"""

from __future__ import annotations

import math

import numpy as np

from sbnet._types import FloatArray, IndexArray, Model, Problem, States
from sbnet.kernels._compile import bare, inner, vector
from sbnet.kernels.gates import sigmoid
from sbnet.kernels.terms import mix_in, powers, quadratic_lambda, take_out
from sbnet.kernels.tiles import E_A, E_B, MEAN, OVER_A, OVER_B, PHI
from sbnet.kernels.tiles import XI as XI_
from sbnet.kernels.work import ENUMERATED, JENSEN, NEAR_ZERO, QUADRATIC, XI, Waves, Work


@inner
def add_gradient(
    model: Model,
    problem: Problem,
    work: Work,
    waves: Waves,
    states: States,
    bias: FloatArray,
    mu: FloatArray,
    scale: float,
    grad_weight: FloatArray,
    grad_bias: FloatArray,
) -> None:
    """Add `scale` times the gradient of the bound of one solved pattern."""
    n = len(states)
    value, on = np.zeros(n), np.zeros(n)  # of each unit: its state or mean, and whether it was seen to be 1
    excess = np.zeros(n)  # of its value over the slope of its term in its bias: zero for barren units
    _load_values(problem.hidden, states, mu, value, on)
    for i in problem.settled:
        excess[i] = value[i] - sigmoid(bias[i])
    for f in range(len(problem.factor)):
        i = problem.factor[f]
        slope = _factor_gradient(problem, work, waves, f, bias[i], value[i], mu, scale, grad_weight)
        excess[i] = value[i] - slope
    _add_settled(model, excess, on, scale, grad_weight, grad_bias)


@bare
def _load_values(hidden: IndexArray, states: States, mu: FloatArray, value: FloatArray, on: FloatArray) -> None:
    for i in range(len(states)):
        if states[i] > 0:
            value[i] = on[i] = 1.0
    for j in range(len(mu)):
        value[hidden[j]] = mu[j]


@bare
def _add_settled(
    model: Model, excess: FloatArray, on: FloatArray, scale: float, grad_weight: FloatArray, grad_bias: FloatArray
) -> None:
    """The slopes in biases, eq. (35), and in the weights of observed parents: the same, where the parent is 1."""
    indptr, parent = model.indptr, model.parent
    for i in range(len(excess)):
        push = scale * excess[i]
        if push != 0.0:
            grad_bias[i] += push
            _add_row(push, parent[indptr[i] : indptr[i + 1]], on, grad_weight[indptr[i] : indptr[i + 1]])


@vector
def _add_row(push: float, parent: IndexArray, on: FloatArray, out: FloatArray) -> None:
    for e in range(len(parent)):
        out[e] += push * on[np.uint64(parent[e])]


@bare
def _factor_gradient(
    problem: Problem,
    work: Work,
    waves: Waves,
    f: int,
    bias: float,
    value: float,
    mu: FloatArray,
    scale: float,
    grad_weight: FloatArray,
) -> float:
    """Add the slopes of factor f in the weights of its hidden parents; returns that of its term in its bias."""
    start, end, at, kind = problem.ptr[f], problem.ptr[f + 1], work.place[f], work.kind[f]
    for s in range(start, end):  # the energy; then, less the term
        grad_weight[problem.edge[s]] += scale * value * mu[problem.parent[s]]
    mean, xi, phi = work.blocks[at + MEAN], work.blocks[at + XI_], work.blocks[at + PHI]
    if kind == XI or kind == JENSEN:  # noqa: SIM109 (a tuple would compile to a search)
        for s in range(start, end):
            t, w, m = work.child_place[problem.slot_child[s]], problem.weight[s], mu[problem.parent[s]]
            # The tilted means of S: alpha under A, beta under B.
            if w > 0.0:
                alpha = m * work.tiles[t + E_A] * work.tiles[t + OVER_A]
                beta = m * work.tiles[t + OVER_B]
            else:
                alpha = m * work.tiles[t + OVER_A]
                beta = m * work.tiles[t + E_B] * work.tiles[t + OVER_B]
            grad_weight[problem.edge[s]] -= scale * (  # eq. (34)
                xi * m - (1.0 - phi) * xi * alpha + phi * (1.0 - xi) * beta
            )
        return phi
    if kind == ENUMERATED:
        k = end - start
        total = 0.0
        for state in range(1 << k):
            z, chance = bias, 1.0
            for b in range(k):
                if (state >> b) & 1:
                    z += problem.weight[start + b]
                    chance *= mu[problem.parent[start + b]]
                else:
                    chance *= 1.0 - mu[problem.parent[start + b]]
            part = chance * sigmoid(z)
            total += part
            for b in range(k):
                if (state >> b) & 1:
                    grad_weight[problem.edge[start + b]] -= scale * part
        return total
    if kind == QUADRATIC:
        curve = quadratic_lambda(work.c[f])
        for s in range(start, end):
            m = mu[problem.parent[s]]
            grad_weight[problem.edge[s]] -= scale * (
                2.0 * curve * (mean * m + problem.weight[s] * m * (1.0 - m)) + 0.5 * m
            )
        return 2.0 * curve * mean + 0.5
    a, n, step = waves.ptr[f], waves.ptr[f + 1] - waves.ptr[f], waves.step[f]
    for s in range(start, end):
        m, e = mu[problem.parent[s]], waves.edge_ptr[s]
        less_re, less_im = waves.less_re, waves.less_im
        if take_out(waves.re, waves.im, a, n, waves.edge_re, waves.edge_im, e, m, less_re, less_im, 0) < NEAR_ZERO:
            powers(step * bias, less_re[:n], less_im[:n])
            for other in range(start, end):
                if other != s:
                    mix_in(
                        less_re, less_im, 0, n, waves.edge_re, waves.edge_im, waves.edge_ptr[other],
                        mu[problem.parent[other]],
                    )  # fmt: skip
        wave = 0.0
        for q in range(n):
            imaginary = less_re[q] * waves.edge_im[e + q] + less_im[q] * waves.edge_re[e + q]
            wave += waves.weight[a + q] * (q + 1) * step * imaginary
        second = 2.0 * (mean * m + problem.weight[s] * m * (1.0 - m))
        grad_weight[problem.edge[s]] -= scale * (0.5 * m + step * second / (4.0 * math.pi) + m * wave)
    total = 0.5 + step * mean / (2.0 * math.pi)
    for q in range(n):
        total += waves.weight[a + q] * (q + 1) * step * waves.im[a + q]
    return total
