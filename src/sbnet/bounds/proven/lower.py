"""The mean field bound at given means, in ball arithmetic."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from sbnet._types import HIDDEN, Bound, FloatArray, States
from sbnet.bounds.lower import bound_terms
from sbnet.bounds.proven import balls, gates, log_sum, round_down, series, softplus
from sbnet.kernels.codes import NOISY_OR, SIGMOID
from sbnet.kernels.kinds import XI
from sbnet.model.network import Network
from sbnet.quadrature.frequencies import MAX_NODES, OMEGA, nodes
from sbnet.questions.reduction import live_variables

_FEW = 6  # parents of a noisy-OR unit whose states are quicker summed than the nodes of the series


class Piece(NamedTuple):
    """A part of P(evidence): a network, its evidence, and the means of a factorial distribution."""

    network: Network
    states: States
    means: FloatArray


def lower(pieces: Sequence[Piece], which: Bound) -> float:
    """A number that ln of the sum over the pieces is not below, rounding included."""
    with balls() as flint:
        return round_down(log_sum([_bound(flint, piece, which) for piece in pieces]))


def _bound(flint: Any, piece: Piece, which: Bound) -> Any:
    """Eq. (16), with an upper bound on each logarithm term."""
    network, row, means = piece
    arb, xi = flint.arb, np.full((1, network.n_units), np.nan)
    bound_terms(network, row[None, :], means[None, :], xi, which._replace(log_term=XI))  # for the best xi
    xi = np.nan_to_num(xi, nan=0.5)  # where a parent is as good as observed
    mu = np.where(row == HIDDEN, means, row)
    value = arb(0)
    for i in np.flatnonzero(live_variables(network.model, row)):
        bias, weight, near = arb(float(network.bias[i])), [], []
        for e in range(network.graph.indptr[i], network.graph.indptr[i + 1]):
            j = network.graph.parent[e]
            if mu[j] == 1.0:  # observed, or as good as that
                bias += arb(float(network.weight[e]))
            elif mu[j] != 0.0:
                weight.append(arb(float(network.weight[e])))
                near.append(arb(float(mu[j])))
        own = arb(float(mu[i]))
        mean = bias + sum(w * m for w, m in zip(weight, near, strict=True))
        gate = int(network.model.gate[i])
        a, c = gates.loads(gate, own)
        value += a * mean
        if mu[i] > 0.0 or gate != NOISY_OR:  # a finding that is absent has no term
            value -= c * _term(flint, gate, weight, near, bias, mean, float(xi[0, i]), which)
        if 0.0 < mu[i] < 1.0:
            value -= own * own.log() + (1 - own) * (1 - own).log()
    return value


def _term(
    flint: Any, gate: int, weight: list[Any], mu: list[Any], bias: Any, mean: Any, xi: float, bound: Bound
) -> Any:
    """An upper bound on the mean of t; a sum over all states if the parents are few."""
    if len(weight) <= max(bound.enumerate_up_to, _FEW * (gate == NOISY_OR)):
        return _enumerated(gate, weight, mu, bias)
    if gate == NOISY_OR:
        return series.term(weight, mu, bias)
    return _log_term(flint, weight, mu, bias, mean, xi) if gate == SIGMOID else mean * math.nan


def _log_term(flint: Any, weight: list[Any], mu: list[Any], bias: Any, mean: Any, xi: float) -> Any:
    """The least of several upper bounds on <ln(1 + e^z)>."""
    variance = sum(w * w * m * (1 - m) for w, m in zip(weight, mu, strict=True))
    second = mean * mean + variance
    c = flint.arb(max(math.sqrt(float(second)), 1e-3))  # near the root of <z^2>; the parabola at any c > 0 would do
    quadratic = (c / 2).tanh() / (4 * c) * (second - c * c) + (mean - c) / 2 + softplus(c)
    terms = [_paper(weight, mu, bias, mean, flint.arb(xi)), quadratic]
    plain_weight = np.array([float(w) for w in weight])
    low, high = (float(bias) + sum(limit(plain_weight, 0.0).tolist()) for limit in (np.minimum, np.maximum))
    widest = float(np.abs(plain_weight).max())
    n = int(nodes(low, high, float(mean), float(variance), widest, math.inf))  # any number gives a bound
    if 0 < n <= MAX_NODES:
        terms.append(_trapezoid(flint, weight, mu, bias, mean, second, n))
    return min(terms, key=lambda term: float(term.upper()))


def _enumerated(gate: int, weight: list[Any], mu: list[Any], bias: Any) -> Any:
    """The mean itself, one parent after the other."""
    if not weight:
        return gates.t(gate, bias)
    off, on = (_enumerated(gate, weight[1:], mu[1:], b) for b in (bias, bias + weight[0]))
    return (1 - mu[0]) * off + mu[0] * on


def _paper(weight: list[Any], mu: list[Any], bias: Any, mean: Any, xi: Any) -> Any:
    """xi <z> + ln(A + B), eqs. (20), (30) and (31)."""
    log_a, log_b = -xi * bias, (1 - xi) * bias
    for w, m in zip(weight, mu, strict=True):
        log_a += (1 - m + m * (-xi * w).exp()).log()
        log_b += (1 - m + m * ((1 - xi) * w).exp()).log()
    return xi * mean + log_sum([log_a, log_b])


def _trapezoid(flint: Any, weight: list[Any], mu: list[Any], bias: Any, mean: Any, second: Any, nodes: int) -> Any:
    """The trapezoid rule, which is never below the integral, and its tail."""
    arb, acb = flint.arb, flint.acb
    pi, end = arb.pi(), arb(OMEGA)
    step = end / nodes
    turn = [acb(0, step * w).exp() for w in [bias, *weight]]
    power = list(turn)
    total = arb(2).log() + mean / 2 + step * second / (4 * pi)
    total += 4 * (-pi * end).exp() / (pi * end * (1 - (-2 * pi * end).exp()))
    for q in range(1, nodes + 1):
        phi = power[0]
        for p, m in zip(power[1:], mu, strict=True):
            phi *= 1 - m + m * p
        total += (1 - phi.real) / (q * (q * step * pi).sinh())
        power = [p * t for p, t in zip(power, turn, strict=True)]
    return total
