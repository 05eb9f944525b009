"""The logarithm terms of all units for given means, one obvious unit at a time."""

from __future__ import annotations

import math

import numpy as np

from sbnet._types import FloatArray, Graph, Settings, States
from sbnet.kernels._compile import inner, kernel
from sbnet.kernels.enumerate import mean_softplus
from sbnet.kernels.meanfield import ENUMERATED, EXACT, JENSEN, QUADRATIC
from sbnet.kernels.reduce import live_units
from sbnet.kernels.terms import MAX_NODES, moments, quadratic_term, softplus, trapezoid_term
from sbnet.kernels.xi import split_exponential, xi_pass

_XI_STEPS = 60


@inner
def best_xi(weight: FloatArray, mu: FloatArray, bias: float, xi: float) -> tuple[float, float]:
    """The paper's term at `xi`, or at the best xi if that is NaN: (xi, term)."""
    k = len(weight)
    scratch = np.empty((6, k))
    split_exponential(weight, scratch[4], scratch[5])
    low, high = bias, bias
    for j in weight:
        low += min(j, 0.0)
        high += max(j, 0.0)
    search = np.isnan(xi)
    left, right, x = 0.0, 1.0, 0.5 if search else xi
    term = np.inf
    for _ in range(_XI_STEPS if search else 1):
        value, _phi, _mean, slope, curvature = xi_pass(
            weight, scratch[4], scratch[5], 0, k, mu, low, high, x, scratch[0], scratch[1], scratch[2], scratch[3]
        )
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
    graph: Graph,
    settings: Settings,
    states: States,
    bias: FloatArray,
    means: FloatArray,
    xi: FloatArray,
    terms: FloatArray,
) -> None:
    """Fill `terms` for every row and unit; barren units have none, and units with known inputs an exact one.

    Where `xi` is NaN it is replaced by its best value. A mean of exactly 0 or 1 is treated as an observation.
    """
    n_rows, n_units = states.shape
    for r in range(n_rows):
        live = live_units(graph, states[r])
        for i in range(n_units):
            terms[r, i] = 0.0
            if not live[i]:
                continue
            start, end = graph.indptr[i], graph.indptr[i + 1]
            weight, near = np.empty(end - start), np.empty(end - start)
            h, k = bias[r, i], 0
            for e in range(start, end):
                j = graph.parent[e]
                if states[r, j] < 0:
                    if means[r, j] == 1.0:
                        h += graph.weight[e]
                    elif means[r, j] != 0.0:
                        weight[k], near[k] = graph.weight[e], means[r, j]
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
                    terms[r, i] = min(terms[r, i], trapezoid_term(weight, near, h, MAX_NODES))
