"""The logarithm terms of all units for given means, one obvious unit at a time."""

from __future__ import annotations

import math

import numpy as np

from sbnet._types import FloatArray, Model, Settings, States
from sbnet.kernels._compile import bare, kernel
from sbnet.kernels.enumerate import mean_softplus
from sbnet.kernels.gates import sigmoid, softplus
from sbnet.kernels.reduce import live_units
from sbnet.kernels.terms import MAX_NODES, moments, quadratic_term, trapezoid_term
from sbnet.kernels.work import ENUMERATED, EXACT, JENSEN, QUADRATIC

_XI_STEPS = 60


@bare
def paper_term(weight: FloatArray, mu: FloatArray, bias: float, xi: float) -> tuple[float, float, float]:
    """xi <z> + ln(A + B), eq. (20), and its first two derivatives in xi; logarithms throughout."""
    mean, log_a, log_b = bias, -xi * bias, (1.0 - xi) * bias
    mean_a, mean_b, variance_a, variance_b = bias, bias, 0.0, 0.0
    for s in range(len(weight)):
        j, log_odds = weight[s], math.log(mu[s]) - math.log1p(-mu[s])
        base = math.log1p(-mu[s])
        log_a += base + softplus(log_odds - xi * j)  # ln(1 - mu + mu e^{-xi J}), eq. (30)
        log_b += base + softplus(log_odds + (1.0 - xi) * j)  # eq. (31)
        alpha, beta = sigmoid(log_odds - xi * j), sigmoid(log_odds + (1.0 - xi) * j)
        mean += j * mu[s]
        mean_a += j * alpha
        mean_b += j * beta
        variance_a += j * j * alpha * (1.0 - alpha)
        variance_b += j * j * beta * (1.0 - beta)
    phi = sigmoid(log_b - log_a)  # eq. (32)
    slope = mean - (1.0 - phi) * mean_a - phi * mean_b
    curvature = (1.0 - phi) * variance_a + phi * variance_b + phi * (1.0 - phi) * (mean_b - mean_a) ** 2
    return xi * mean + log_a + softplus(log_b - log_a), slope, curvature


@bare
def best_xi(weight: FloatArray, mu: FloatArray, bias: float, xi: float) -> tuple[float, float]:
    """The paper's term at `xi`, or at the best xi if that is NaN: (xi, term)."""
    if not np.isnan(xi):
        return xi, paper_term(weight, mu, bias, xi)[0]
    left, right, x, term = 0.0, 1.0, 0.5, np.inf
    for _ in range(_XI_STEPS):
        value, slope, curvature = paper_term(weight, mu, bias, x)
        if value <= term:
            xi, term = x, value
        # The slope rises with xi: its sign tells on which side the minimum lies.
        if slope > 0.0:
            right = x
        else:
            left = x
        new = x - slope / curvature if curvature > 0.0 else 0.5 * (left + right)
        new = min(max(new, left), right)
        if (new == left and left > 0.0) or (new == right and right < 1.0):  # been there
            new = 0.5 * (left + right)
        if abs(new - x) < 1e-12:
            break
        x = new
    return xi, term


@kernel
def log_terms(
    model: Model,
    settings: Settings,
    states: States,
    bias: FloatArray,
    means: FloatArray,
    xi: FloatArray,
    terms: FloatArray,
) -> None:
    """Fill `terms` for every row and unit; barren units have none (NaN), and units with known inputs an exact one.

    Where `xi` is NaN it is replaced by its best value. A mean of exactly 0 or 1 is treated as an observation.
    """
    n_rows, n_units = states.shape
    for r in range(n_rows):
        live = live_units(model, states[r])
        for i in range(n_units):
            terms[r, i] = np.nan
            if not live[i]:
                continue
            start, end = model.indptr[i], model.indptr[i + 1]
            weight, near = np.empty(end - start), np.empty(end - start)
            h, k = bias[r, i], 0
            for e in range(start, end):
                j = model.parent[e]
                if states[r, j] < 0:
                    if means[r, j] == 1.0:
                        h += model.weight[e]
                    elif means[r, j] != 0.0:
                        weight[k], near[k] = model.weight[e], means[r, j]
                        k += 1
            weight, near = weight[:k], near[:k]
            if k == 0:
                terms[r, i] = softplus(h)
                continue
            kind = ENUMERATED if k <= settings.enumerate_up_to else settings.log_term
            if kind == ENUMERATED:
                terms[r, i] = mean_softplus(weight, near, h)
            elif kind == QUADRATIC:
                mean, second = moments(weight, near, h)
                terms[r, i] = quadratic_term(mean, second, math.sqrt(second))
            else:
                xi[r, i], terms[r, i] = best_xi(weight, near, h, 0.0 if kind == JENSEN else xi[r, i])
                if kind == EXACT:
                    mean, second = moments(weight, near, h)
                    terms[r, i] = min(terms[r, i], quadratic_term(mean, second, math.sqrt(second)))
                    terms[r, i] = min(terms[r, i], trapezoid_term(weight, near, h, MAX_NODES))
