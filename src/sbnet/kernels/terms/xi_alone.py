"""The logarithm term of the paper for one factor, parent after parent: slow, obvious, and good for any weight."""

from __future__ import annotations

import math

import numpy as np

from sbnet._types import FloatArray
from sbnet.kernels._compile import bare
from sbnet.kernels.arrays import load
from sbnet.kernels.gates import sigmoid, softplus

_STEPS = 60


@bare
def _term(weight: FloatArray, mu: FloatArray, bias: float, xi: float) -> tuple[float, float, float]:
    """xi <z> + ln(A + B), eq. (20), and its first two derivatives in xi; logarithms throughout."""
    mean, log_a, log_b = bias, -xi * bias, (1.0 - xi) * bias
    mean_a, mean_b, variance_a, variance_b = bias, bias, 0.0, 0.0
    for s in range(len(weight)):
        j, log_odds = load(weight, s), math.log(load(mu, s)) - math.log1p(-load(mu, s))
        base = math.log1p(-load(mu, s))
        log_a += base + softplus(log_odds - xi * j)  # ln(1 - mu + mu e^{-xi J}), eq. (30)
        log_b += base + softplus(log_odds + (1.0 - xi) * j)  # eq. (31)
        alpha, beta = sigmoid(log_odds - xi * j), sigmoid(log_odds + (1.0 - xi) * j)
        mean += j * load(mu, s)
        mean_a += j * alpha
        mean_b += j * beta
        variance_a += j * j * alpha * (1.0 - alpha)
        variance_b += j * j * beta * (1.0 - beta)
    phi = sigmoid(log_b - log_a)  # eq. (32)
    slope = mean - (1.0 - phi) * mean_a - phi * mean_b
    curvature = (1.0 - phi) * variance_a + phi * variance_b + phi * (1.0 - phi) * (mean_b - mean_a) * (mean_b - mean_a)
    return xi * mean + log_a + softplus(log_b - log_a), slope, curvature


@bare
def best(weight: FloatArray, mu: FloatArray, bias: float, xi: float) -> tuple[float, float]:
    """The term of one factor at the given xi, or at the best one if that is NaN: (xi, term)."""
    if not np.isnan(xi):
        return xi, _term(weight, mu, bias, xi)[0]
    left, right, x, term = 0.0, 1.0, 0.5, np.inf
    for _ in range(_STEPS):
        value, slope, curvature = _term(weight, mu, bias, x)
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
