"""The logarithm term of the paper for one factor, parent after parent: slow, obvious, and good for any weight."""

from __future__ import annotations

import math

import numpy as np

from sbnet.kernels.compiling import inner
from sbnet.kernels.thresholds import sigmoid, softplus

_STEPS = 60


@inner
def one_term(hidden, slots, factor, q, bias, xi):
    """xi <x> + ln(A + B), eq. (20), and its first two derivatives in xi; logarithms throughout."""
    mean, log_a, log_b = bias, -xi * bias, (1.0 - xi) * bias
    mean_a, mean_b, variance_a, variance_b = bias, bias, 0.0, 0.0
    s = factor.slot
    while s < factor.slot_end:
        n = hidden[slots[s].parent].states - 1
        for tilt in range(2):
            by = -xi if tilt == 0 else 1.0 - xi
            top, rest = 0.0, 1.0
            for c in range(n):
                top, rest = max(top, by * slots[s + c].weight), rest - q[slots[s + c].column]
            total, first, second = rest * math.exp(-top), 0.0, 0.0
            for c in range(n):
                j = slots[s + c].weight
                w = q[slots[s + c].column] * math.exp(by * j - top)
                total, first, second = total + w, first + w * j, second + w * j * j
                if tilt == 0:
                    mean += q[slots[s + c].column] * j
            first, second = first / total, second / total
            if tilt == 0:  # eq. (30)
                log_a, mean_a = log_a + top + math.log(total), mean_a + first
                variance_a += second - first * first
            else:  # eq. (31)
                log_b, mean_b = log_b + top + math.log(total), mean_b + first
                variance_b += second - first * first
        s += n
    phi = sigmoid(log_b - log_a)  # eq. (32)
    slope = mean - (1.0 - phi) * mean_a - phi * mean_b
    curvature = (1.0 - phi) * variance_a + phi * variance_b + phi * (1.0 - phi) * (mean_b - mean_a) * (mean_b - mean_a)
    return xi * mean + log_a + softplus(log_b - log_a), slope, curvature


@inner
def best(hidden, slots, factor, q, bias, xi):
    """The term of one factor at the given xi, or at the best one if that is NaN: (xi, term)."""
    if not np.isnan(xi):
        return xi, one_term(hidden, slots, factor, q, bias, xi)[0]
    left, right, x, term = 0.0, 1.0, 0.5, np.inf
    for _ in range(_STEPS):
        value, slope, curvature = one_term(hidden, slots, factor, q, bias, x)
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
