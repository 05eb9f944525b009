"""The upper bound at given parameters, and exact sums, in ball arithmetic; `sbnet.bounds.upper` has the proof."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from sbnet._types import FloatArray, IndexArray, Problem, States
from sbnet.bounds.proven import balls, log_sum, round_up, softplus
from sbnet.kernels.reduce import components, reduce
from sbnet.kernels.upper import LARGEST
from sbnet.network import Network


class Cell(NamedTuple):
    """A part of P(evidence), the parameters of its upper bound, and the groups that are summed exactly."""

    network: Network
    states: States
    edge: FloatArray  # b of a parent in a table; NaN for one that a line stands for
    unit: FloatArray  # the slope of the line, and the logarithm of the share
    exact_up_to: int


def upper(cells: Sequence[Cell]) -> float:
    """A number that ln of the sum over the cells is not above, rounding included."""
    with balls() as flint:
        return min(round_up(log_sum([_Bound(flint, cell).value() for cell in cells])), 0.0)


def exact(network: Network, row: States) -> Any:
    """A ball that holds ln P of the evidence."""
    nothing = np.full(network.n_edges, np.nan), np.full((network.n_units, 2), np.nan)
    with balls() as flint:
        return _Bound(flint, Cell(network, row, *nothing, network.n_units)).value()


class _Bound:
    """One cell, reduced: evidence absorbed, barren units dropped."""

    def __init__(self, flint: Any, cell: Cell) -> None:
        network, row = cell.network, cell.states
        self.arb, self.cell = flint.arb, cell
        self.problem: Problem = reduce(network.model, row)
        self.weight = [self.arb(float(w)) for w in self.problem.weight]
        self.bias = [self.arb(float(h)) for h in network.bias]
        for i in range(network.n_units):
            for e in range(network.indptr[i], network.indptr[i + 1]):
                if row[network.parent[e]] == 1:
                    self.bias[i] += self.arb(float(network.weight[e]))

    def value(self) -> Any:
        states, total = self.cell.states, self.arb(0)
        for i in self.problem.settled:
            if states[i] >= 0:
                total += int(states[i]) * self.bias[i] - softplus(self.bias[i])
        label = components(self.problem)
        large = np.zeros(len(label), np.bool_)
        for first in np.unique(label):
            group = np.flatnonzero(label == first)
            if len(group) > self.cell.exact_up_to:
                large[group] = True
            else:
                total += self._sum(group)
        return total + self._bounded(large) if large.any() else total

    def _sum(self, group: IndexArray) -> Any:
        """ln of the sum over the states of one group, in Gray code."""
        p, states = self.problem, self.cell.states
        inside = set(group.tolist())
        mine = [f for f in range(len(p.factor)) if int(p.parent[p.ptr[f]]) in inside]
        z = {f: self.bias[p.factor[f]] for f in mine}
        log_term = {f: softplus(z[f]) for f in mine}
        on = dict.fromkeys(group.tolist(), 0)
        roots = [k for k in on if p.factor_of[k] < 0]
        constant = -sum((softplus(self.bias[p.hidden[k]]) for k in roots), self.arb(0))
        terms = []
        for code in range(1 << len(group)):
            if code:
                k = int(group[(code & -code).bit_length() - 1])
                on[k] = 1 - on[k]
                for c in range(p.child_ptr[k], p.child_ptr[k + 1]):
                    f, w = int(p.child[c]), self.weight[p.child_slot[c]]
                    z[f] = z[f] + w if on[k] else z[f] - w
                    log_term[f] = softplus(z[f])
            value = constant + sum(self.bias[p.hidden[k]] for k in roots if on[k])
            for f in mine:
                if on[int(p.own[f])] if p.own[f] >= 0 else states[p.factor[f]]:
                    value += z[f]
                value -= log_term[f]
            terms.append(value)
        return log_sum(terms)

    def _bounded(self, large: Any) -> Any:
        """The units of the other groups, by Hölder's inequality."""
        p, arb = self.problem, self.arb
        n_factors, n_hidden = len(p.factor), len(p.hidden)
        active = [f for f in range(n_factors) if large[p.parent[p.ptr[f]]]]
        slots = {f: range(p.ptr[f], p.ptr[f + 1]) for f in active}
        b, unit = self.cell.edge[p.edge], self.cell.unit[p.factor]
        table = ~np.isnan(b)
        share = np.exp(np.clip(np.nan_to_num(unit[:, 1]), -LARGEST, LARGEST))
        load, eta, omega = np.zeros(n_hidden), [arb(0)] * n_hidden, [arb(1)] * n_hidden
        for f in active:
            for s in slots[f]:
                k = p.parent[s]
                load[k] += share[f] * table[s]
                eta[k] = eta[k] + (arb(float(b[s])) if table[s] else self.weight[s] * arb(float(unit[f, 0])))
        tau = {}
        for f in active:  # numbers as any other; what counts is that those of a unit add up to one, or more
            tau[f] = arb(float(share[f] / (1.0 + max((load[p.parent[s]] for s in slots[f] if table[s]), default=0.0))))
            for s in slots[f]:
                if table[s]:
                    omega[p.parent[s]] = omega[p.parent[s]] - tau[f]
        omega = [w if w > 1e-12 else arb(1e-12) for w in omega]
        total = arb(0)
        for k in range(n_hidden):
            if large[k] and p.factor_of[k] < 0:
                h = self.bias[p.hidden[k]]
                total += omega[k] * softplus((h + eta[k]) / omega[k]) - softplus(h)
        for f in active:
            k = int(p.own[f])
            own = (None, None) if k < 0 else (eta[k], omega[k])
            inside = [s for s in slots[f] if table[s]]
            total += self._table(f, inside, [s for s in slots[f] if not table[s]], b, tau[f], float(unit[f, 0]), *own)
        return total

    def _table(
        self, f: int, inside: list[int], outside: list[int], b: FloatArray, tau: Any, slope: float, eta: Any, omega: Any
    ) -> Any:
        """tau ln sum exp((max_t [G(z + t) - lam t] - b S) / tau) over the states of the parents in the table."""
        arb, state = self.arb, int(self.cell.states[self.problem.factor[f]])
        low, high = (sum((self.weight[s] for s in outside if sign * self.weight[s] > 0), arb(0)) for sign in (-1, 1))
        z, shift = [self.bias[self.problem.factor[f]]], [arb(0)]
        for s in inside:
            z += [x + self.weight[s] for x in z]
            shift += [x - arb(float(b[s])) for x in shift]
        lam, values = arb(slope), []
        for c, move in zip(z, shift, strict=True):
            if eta is None:
                best = state * c + highest_observed(arb, c, state - lam, low, high)
            elif not outside:
                best = omega * softplus((c + eta) / omega) - softplus(c)
            else:
                assert omega == 1  # such a unit is in no table
                best = highest_hidden(arb, c, eta, lam, low, high)
            values.append((best + move) / tau)
        return tau * log_sum(values)


def highest_observed(arb: Any, c: Any, slope: Any, low: Any, high: Any) -> Any:
    """Not below the maximum over [low, high] of slope t - ln(1 + e^(c + t)), which is concave.

    A concave function is below its tangents; the tangent where floating point sees the maximum is nearly level.
    """
    s, ends = float(slope), (float(low), float(high))
    if s <= 0.0 or s >= 1.0:
        t = arb(ends[s >= 1.0])
    else:
        t = arb(min(max(math.log(s) - math.log1p(-s) - float(c), ends[0]), ends[1]))
    value = slope * t - softplus(c + t)
    rise = slope - 1 / (1 + (-(c + t)).exp())
    return value + _larger(rise * (low - t), rise * (high - t))


def highest_hidden(arb: Any, c: Any, eta: Any, lam: Any, low: Any, high: Any) -> Any:
    """Not below the maximum over [low, high] of g(t) = sp(c + t + eta) - sp(c + t) - lam t, sp(z) = ln(1 + e^z).

    For eta > 0, g is convex up to t = m = -c - eta / 2 and concave from there: the maximum is at an end, at m, or below
    a tangent in the concave part. For eta < 0 it is the mirror image, since sp(z) = z + sp(-z).
    """
    if eta.contains(0):  # sp rises by at most eta
        return eta.abs_upper() + _larger(-lam * low, -lam * high)
    if eta < 0:
        return eta + highest_hidden(arb, -c, -eta, -lam, -high, -low)

    def g(t: Any) -> Any:
        return softplus(c + t + eta) - softplus(c + t) - lam * t

    ends = _larger(g(low), g(high))
    m = -c - eta / 2
    if m >= high:
        return ends
    # The slope is sinh(eta / 2) / (cosh y + cosh(eta / 2)) - lam at t = m + y: it falls from y = 0 on.
    a, s = float(eta) / 2.0, float(lam)
    y = 0.0
    if s > 0.0 and a > 0.0:
        q = 0.5 * ((1.0 - math.exp(-2.0 * a)) / s - 1.0 - math.exp(-2.0 * a))  # e^-a cosh y
        if q > 0.0 and a + math.log(q) > 0.0:
            log_cosh = a + math.log(q)
            y = log_cosh + math.log1p(math.sqrt(max(1.0 - math.exp(-2.0 * log_cosh), 0.0)))
    elif s <= 0.0:
        y = math.inf
    t = arb(min(max(float(m) + y, float(low)), float(high)))
    if not t >= m:  # the middle of a ball may be on the wrong side of m
        t = m.upper()
    rise = 1 / (1 + (-(c + t + eta)).exp()) - 1 / (1 + (-(c + t)).exp()) - lam
    first = low if m <= low else m
    tangent = g(t) + _larger(rise * (first - t), rise * (high - t))
    return _larger(ends, _larger(g(first), tangent))


def _larger(one: Any, other: Any) -> Any:
    return one.max(other)
