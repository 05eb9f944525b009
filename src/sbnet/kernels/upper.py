"""The upper bound on ln P(evidence) at given parameters, and its gradient; `sbnet.bounds.upper` has the proof."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from sbnet._types import BoolArray, FloatArray, Problem, States
from sbnet.kernels._compile import inner
from sbnet.kernels.gates import sigmoid, softplus

LARGEST = 25.0  # of the logarithm of a share: weights of Hölder's inequality stay above e^-25


class Regions(NamedTuple):
    """How the factors of a problem are bounded.

    A factor f is `active` unless it is summed exactly with its group. The states of its hidden parents in `table`
    (places of slots) are enumerated; the others together move its input between `low[f]` and `high[f]`.
    """

    problem: Problem
    state: States  # of each factor: 0, 1, or -1 for a hidden one
    bias: FloatArray  # of each factor
    root_bias: FloatArray  # of each hidden unit without hidden parents
    active: BoolArray
    root: BoolArray  # the hidden units without hidden parents that are not summed exactly
    table: BoolArray
    low: FloatArray
    high: FloatArray


@inner
def evaluate(regions: Regions, x: FloatArray, gradient: FloatArray) -> float:
    """The bound on the active part at the parameters x, and its gradient."""
    mu, curvature = np.zeros(len(regions.root)), np.zeros(len(regions.active))
    return evaluate_all(regions, x, gradient, mu, curvature)


@inner
def evaluate_all(regions: Regions, x: FloatArray, gradient: FloatArray, mu: FloatArray, curvature: FloatArray) -> float:
    problem = regions.problem
    n_slots, n_factors, n_hidden = len(problem.parent), len(problem.factor), len(problem.hidden)
    field, load, pull, spread = np.zeros(n_hidden), np.zeros(n_hidden), np.zeros(n_hidden), np.zeros(n_hidden)
    omega, share, tau = np.ones(n_hidden), np.zeros(n_factors), np.zeros(n_factors)
    busiest, own_spread = np.full(n_factors, -1), np.zeros(n_factors)
    for f in range(n_factors):
        share[f] = math.exp(min(max(x[n_slots + n_factors + f], -LARGEST), LARGEST))
        if regions.active[f]:
            for s in range(problem.ptr[f], problem.ptr[f + 1]):
                k = problem.parent[s]
                field[k] += x[s] if regions.table[s] else problem.weight[s] * x[n_slots + f]
                if regions.table[s]:
                    load[k] += share[f]
    for f in range(n_factors):  # weights of Hölder's inequality: those of a unit and its tables add up to one
        most = 0.0
        for s in range(problem.ptr[f], problem.ptr[f + 1]):
            if regions.table[s] and load[problem.parent[s]] > most:
                most, busiest[f] = load[problem.parent[s]], problem.parent[s]
        tau[f] = share[f] / (1.0 + most)
        for s in range(problem.ptr[f], problem.ptr[f + 1]):
            if regions.table[s]:
                omega[problem.parent[s]] -= tau[f]
    value = 0.0
    for k in range(n_hidden):
        omega[k] = max(omega[k], 1e-12)  # more weight than one is valid too
        if regions.root[k]:
            y = (regions.root_bias[k] + field[k]) / omega[k]
            value += omega[k] * softplus(y) - softplus(regions.root_bias[k])
            mu[k] = sigmoid(y)
            spread[k] = softplus(y) - mu[k] * y
    for f in range(n_factors):
        if regions.active[f]:
            k = problem.own[f]
            eta, weight = (field[k], omega[k]) if k >= 0 else (0.0, 1.0)
            part, own_spread[f], slope, mean, mean_spread, curvature[f] = _table(
                regions, f, x, eta, weight, tau[f], gradient
            )
            value += part
            gradient[n_slots + f] = slope
            if k >= 0:
                mu[k], spread[k] = mean, mean_spread
    for f in range(n_factors):
        if not regions.active[f]:
            continue
        for s in range(problem.ptr[f], problem.ptr[f + 1]):
            k = problem.parent[s]
            if regions.table[s]:  # `gradient` holds the mean of the parent in the table
                gradient[s] = mu[k] - gradient[s]
                own_spread[f] -= spread[k]
            else:
                gradient[s] = 0.0
                gradient[n_slots + f] += problem.weight[s] * mu[k]
        if busiest[f] >= 0:
            pull[busiest[f]] += own_spread[f] * tau[f] * tau[f] / share[f]
    for f in range(n_factors):
        slope = tau[f] * own_spread[f]
        for s in range(problem.ptr[f], problem.ptr[f + 1]):
            if regions.table[s]:
                slope -= share[f] * pull[problem.parent[s]]
        if not regions.active[f]:
            gradient[problem.ptr[f] : problem.ptr[f + 1]] = 0.0
            gradient[n_slots + f] = slope = 0.0
        gradient[n_slots + n_factors + f] = slope if abs(x[n_slots + n_factors + f]) < LARGEST else 0.0
    return value


@inner
def _table(
    regions: Regions, f: int, x: FloatArray, eta: float, omega: float, tau: float, gradient: FloatArray
) -> tuple[float, float, float, float, float, float]:
    """tau ln sum exp((G - b S) / tau) over the states of the parents in the table of factor f.

    Also its slope in tau (the entropy of the states), its slope in the slope of the other parents, the mean of the
    unit itself and its conditional entropy, and the mean curvature of ln(1 + e^z). The means of the parents in the
    table go to `gradient`.
    """
    problem, n_slots = regions.problem, len(regions.problem.parent)
    slots = np.empty(problem.ptr[f + 1] - problem.ptr[f], np.int64)
    n = 0
    for s in range(problem.ptr[f], problem.ptr[f + 1]):
        if regions.table[s]:
            slots[n] = s
            n += 1
    lam, state, size = x[n_slots + f], regions.state[f], 1
    z, log_p, t = np.empty(1 << n), np.empty(1 << n), np.zeros(1 << n)
    z[0], log_p[0] = regions.bias[f], 0.0
    for b in range(n):
        w = problem.weight[slots[b]]
        for c in range(size):
            z[c + size] = z[c] + w
            log_p[c + size] = log_p[c] - x[slots[b]]
        size *= 2
    top = -np.inf
    for c in range(size):
        if state >= 0:
            t[c] = _highest_observed(z[c], state - lam, regions.low[f], regions.high[f])
        elif regions.low[f] < regions.high[f]:
            t[c] = _highest_hidden(z[c], eta, lam, regions.low[f], regions.high[f])
        z[c] += t[c]
        gain = state * z[c] if state >= 0 else omega * softplus((z[c] + eta) / omega)
        log_p[c] += gain - softplus(z[c]) - lam * t[c]
        top = max(top, log_p[c])
    total = mean_log = mean_t = mean = spread = curvature = 0.0
    for c in range(size):
        a = (log_p[c] - top) / tau
        p = math.exp(a)
        log_p[c] = p
        total += p
        if p > 0.0:
            mean_log += p * a
            mean_t += p * t[c]
            s = sigmoid(z[c])
            curvature += p * s * (1.0 - s)
            if state < 0:
                y = (z[c] + eta) / omega
                s = sigmoid(y)
                mean += p * s
                spread += p * (softplus(y) - s * y)
    for b in range(n):
        on = 0.0
        for c in range(size):
            if (c >> b) & 1:
                on += log_p[c]
        gradient[slots[b]] = on / total
    entropy = math.log(total) - mean_log / total
    return (
        top + tau * math.log(total),
        entropy,
        -mean_t / total,
        mean / total,
        spread / total,
        curvature / total,
    )


@inner
def _highest_observed(c: float, slope: float, low: float, high: float) -> float:
    """Where in [low, high] slope t - ln(1 + e^(c + t)), which is concave, is largest."""
    if slope <= 0.0:
        return low
    if slope >= 1.0:
        return high
    return min(max(math.log(slope) - math.log1p(-slope) - c, low), high)


@inner
def _highest_hidden(c: float, eta: float, lam: float, low: float, high: float) -> float:
    """Where in [low, high] sp(c + t + eta) - sp(c + t) - lam t, with sp(z) = ln(1 + e^z), is largest.

    Its slope is sinh(eta / 2) / (cosh(c + t + eta / 2) + cosh(eta / 2)) - lam: at most one local maximum inside.
    """
    best, highest = low, -np.inf
    for candidate in (low, high, _turn(eta, lam) - 0.5 * eta - c):
        t = min(max(candidate, low), high)
        value = softplus(c + t + eta) - softplus(c + t) - lam * t
        if value > highest:
            best, highest = t, value
    return best


@inner
def _turn(eta: float, lam: float) -> float:
    """The y with cosh y = sinh(eta / 2) / lam - cosh(eta / 2) at which the slope above falls; 0 if there is none."""
    if eta * lam <= 0.0 or abs(lam) < 1e-300:  # so flat a line: the ends decide
        return 0.0
    a, ratio = 0.5 * abs(eta), 1.0 / abs(lam)
    # cosh y = e^a q, and e^a is kept apart: eta may be in the thousands
    q = 0.5 * (ratio * (1.0 - math.exp(-2.0 * a)) - 1.0 - math.exp(-2.0 * a))
    if q <= 0.0:
        return 0.0
    log_cosh = a + math.log(q)
    if log_cosh <= 0.0:
        return 0.0
    y = log_cosh + math.log1p(math.sqrt(max(1.0 - math.exp(-2.0 * log_cosh), 0.0)))  # arcosh of e^log_cosh
    return y if eta > 0.0 else -y
