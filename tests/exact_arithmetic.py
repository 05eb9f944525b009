"""ln P(evidence) with more digits than the library has: 80 bits for all states at once, sixty decimals for one pattern.

Neither shares a line with the library, and neither reduces anything: every sum runs over all states of all units.
"""

from __future__ import annotations

import decimal
import itertools
from decimal import Decimal
from functools import cached_property

import numpy as np

import oracle

LONG = np.longdouble
EPS = float(np.finfo(LONG).eps)
DIGITS = decimal.Context(prec=60, Emin=-(10**15), Emax=10**15, traps=[decimal.InvalidOperation, decimal.Overflow])
NOISE = 1e-40  # of 60 digits, at numbers to 1e10


class Joint:
    """ln P of every state of a small network, in 80 bits."""

    def __init__(self, network) -> None:
        self.J, self.h, self.gate = network.weight_matrix(), network.bias, network.gate
        self.states = np.array(list(itertools.product((0, 1), repeat=len(self.h))), dtype=np.int8)
        J, h = self.J.astype(LONG), self.h.astype(LONG)
        z = (self.states[:, None, :] * J).sum(axis=2) + h
        units = -(np.maximum(z, 0) - self.states * z + np.log1p(np.exp(-np.abs(z))))
        if self.gate.any():
            on = oracle.log_some(z)
            units = np.where(self.gate == 1, np.where(self.states == 1, on, -z), units)
        self.log_p = units.sum(axis=1)
        self.error = 10 * len(h) * EPS * oracle.magnitude(self.J, self.h, self.gate)

    def truth(self, row) -> Truth:
        """What is known of one pattern; NaN marks hidden units."""
        return Truth(self, np.asarray(row, dtype=float))


class Truth:
    """ln P of one pattern, in 80 bits, and in decimals where those cannot tell."""

    def __init__(self, joint: Joint, row) -> None:
        self.joint, self.row = joint, row
        seen = ~np.isnan(row)
        agree = joint.log_p[np.all(joint.states[:, seen] == row[seen], axis=1)]
        self.log_p = agree.max() + np.log(np.exp(agree - agree.max()).sum()) if seen.any() else LONG(0)

    @cached_property
    def decimals(self) -> Decimal:
        return log_likelihood(self.joint.J, self.joint.h, self.row, self.joint.gate)

    def excess(self, low) -> float:
        """How far `low` is above ln P, in nats."""
        return self._over(low, 1)

    def shortfall(self, high) -> float:
        """How far `high` is below ln P; nothing that is not below zero can be."""
        return self._over(high, -1) if high < 0.0 else -0.0

    def _over(self, end, sign: int) -> float:
        found = sign * (LONG(end) - self.log_p)
        if abs(found) > self.joint.error:
            return float(found)
        exact = sign * float(Decimal(float(end)) - self.decimals)
        return exact if abs(exact) > NOISE else 0.0


def log_likelihood(J, h, row, gate=None) -> Decimal:
    """ln P of one pattern to some fifty digits, eq. (8)."""
    with decimal.localcontext(DIGITS):
        terms = [_log_joint(J, h, state, gate) for state in _completions(row)]
        top = max(terms)
        return top + sum((term - top).exp() for term in terms).ln()


def posterior(J, h, row, unit, gate=None) -> Decimal:
    """P(S_unit = 1 | V) likewise; no power of ten is too small for it."""
    both = []
    for state in (0.0, 1.0):
        with_unit = np.array(row, dtype=float)
        with_unit[unit] = state
        both.append(log_likelihood(J, h, with_unit, gate))
    with decimal.localcontext(DIGITS):
        return 1 / (1 + (both[0] - both[1]).exp())


def outside(low: float, p: Decimal, high: float) -> float:
    """How far a probability is outside an interval; negative inside, and -0.0 if that is less than any number."""
    with decimal.localcontext(DIGITS):
        return float(max(Decimal(low) - p, p - Decimal(high)))


def _completions(row):
    return itertools.product(*[(0, 1) if np.isnan(value) else (int(value),) for value in row])


def _log_joint(J, h, state, gate) -> Decimal:
    """ln P(S), eq. (6)."""
    total = Decimal(0)
    for i, s in enumerate(state):
        z = Decimal(float(h[i])) + sum(Decimal(float(w)) for w, on in zip(J[i], state, strict=True) if on)
        if gate is None or gate[i] == 0:
            total -= _softplus(-z if s else z)
        else:
            total += _log_chance(z) if s else -z
    return total


def _softplus(z: Decimal) -> Decimal:
    return max(z, Decimal(0)) + (1 + (-abs(z)).exp()).ln()


def _log_chance(x: Decimal) -> Decimal:
    """ln(1 - e^-x); by its series where the difference would leave too few digits."""
    if x == 0:
        return Decimal("-Infinity")
    if x < Decimal("1e-10"):
        return (x * (1 - x / 2 * (1 - x / 3 * (1 - x / 4 * (1 - x / 5 * (1 - x / 6)))))).ln()
    return (1 - (-x).exp()).ln()
