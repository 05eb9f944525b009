"""ln P of variables with any number of states, and of tables, with a proven error: hidden variables are summed out.

The entries of factors come from ball arithmetic, as floating-point numbers with a power of two beside each, so that
nothing is too small. No term is negative: an error of a factor is no larger in the sum, relative to it, and what the
roundings amount to is counted. With u = 2^-53, a number with n roundings behind it is off by a factor between
(1 - u)^n and (1 + u)^n.
"""

from __future__ import annotations

import math
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from sbnet._types import HIDDEN, FloatArray, IndexArray, States
from sbnet.bounds.proven import balls, round_down, round_up
from sbnet.errors import TooManyHiddenError, enumerated
from sbnet.exact.factors import Family, families_of, log_table
from sbnet.exact.planning import TooWide, best_order
from sbnet.kernels.codes import NOISY_OR
from sbnet.model.network import Network
from sbnet.questions.reduction import live_variables

LIMIT = 24
"""The logarithm to base 2 of the largest table: its numbers take 16 bytes each, and some copies are needed."""
_BALLS = 18
"""The largest of those that gates are as tables: their numbers come from ball arithmetic, a thousand times slower."""
_ZERO = -(1 << 60)
"""The power of two beside 0."""


class _Factor(NamedTuple):
    """Positive numbers, fraction times two to the power, with the number of roundings behind each at most."""

    fraction: FloatArray  # from 1/2 to 1, or 0
    power: IndexArray
    roundings: int

    def __mul__(self, other: Any) -> _Factor:
        both = self.power + other.power
        return _fitted(self.fraction * other.fraction, both, self.roundings + other.roundings + 1)

    def plus(self, other: _Factor) -> _Factor:
        """The sum; what is too small beside the other number to be held, 2^-1074 of it, is less than a rounding."""
        top = np.maximum(self.power, other.power)
        below = (np.maximum(one.power - top, -2000).astype(np.int32) for one in (self, other))
        parts = (np.ldexp(one.fraction, power) for one, power in zip((self, other), below, strict=True))
        return _fitted(np.add(*parts), top, max(self.roundings, other.roundings) + 2)

    def at(self, place: Any) -> _Factor:
        """Some of the numbers."""
        return _Factor(self.fraction[place], self.power[place], self.roundings)

    def over(self, shape: tuple[int, ...]) -> _Factor:
        """With axes of length 1 more."""
        return _Factor(self.fraction.reshape(shape), self.power.reshape(shape), self.roundings)


def _fitted(number: FloatArray, power: IndexArray, roundings: int) -> _Factor:
    fraction, more = np.frexp(number)
    return _Factor(fraction, np.where(fraction == 0.0, _ZERO, power + more), roundings)


def enclosed_sum(network: Network, row: States) -> tuple[float, float]:
    """Two numbers with ln P of the evidence between them; both minus infinity if it cannot be.

    Raises
    ------
    TooManyHiddenError
        If a table has more than ``2**LIMIT`` numbers.
    """
    tables = {network.index(name): table for name, table in network.tables.items()}
    live = np.flatnonzero(live_variables(network.model, row)).tolist()
    with balls() as flint:
        factors, scopes = list[_Factor](), list[tuple[int, ...]]()
        for family in families_of(network.model, network.bias, live, tables):
            scopes.append(tuple(v for v in (*family.parents, family.variable) if row[v] == HIDDEN))
            bits = math.fsum(math.log2(network.n_states[v]) for v in scopes[-1])
            if bits > (limit := LIMIT if family.table is not None else _BALLS):
                whose = f", the family of {network.names[family.variable]!r}"
                raise _too_wide(network, scopes[-1], bits, limit, whose)
            factors.append(_table(flint.arb, network, family, row, scopes[-1]))
        total = _summed(network, factors, scopes)
        if total.fraction == 0.0:
            return -math.inf, -math.inf
        arb = flint.arb
        ball = arb(total.fraction.item()).log() + total.power.item() * arb.const_log2()
        off = arb(total.roundings) / 2**52  # -ln(1 - u) < 2 u
        return round_down(ball - off), min(round_up(ball + off), 0.0)


def _summed(network: Network, factors: list[_Factor], scopes: list[tuple[int, ...]]) -> _Factor:
    """The sum of the product over all joint states."""
    hidden = sorted({v for scope in scopes for v in scope})
    number = {v: k for k, v in enumerate(hidden)}
    sizes = [int(network.n_states[v]) for v in hidden]
    masks = [sum(1 << number[v] for v in scope) for scope in scopes]
    try:
        order = best_order(sizes, masks, {}, {}, LIMIT)
    except TooWide as wide:
        raise _too_wide(network, [hidden[k] for k in wide.widest], wide.bits, LIMIT) from None
    found = [(tuple(number[v] for v in scope), one) for scope, one in zip(scopes, factors, strict=True)]
    for step in order.steps:
        joint = (step.variable, *step.scope)
        near = sorted((_aligned(*found[t], joint, sizes) for t in step.inputs), key=lambda one: one.fraction.size)
        for t in step.inputs:
            found[t] = ((), _ONE)
        terms = (
            reduce(_Factor.__mul__, [one.at(s if len(one.fraction) > 1 else 0) for one in near])
            for s in range(sizes[step.variable])
        )
        found.append((step.scope, reduce(_Factor.plus, terms)))
    return reduce(_Factor.__mul__, (one for _, one in found), _ONE)


_ONE = _Factor(np.array(0.5), np.array(1), 0)


def _aligned(axes: tuple[int, ...], one: _Factor, joint: tuple[int, ...], sizes: list[int]) -> _Factor:
    """With the axes in the order of a product, of length 1 where there is none."""
    turn = sorted(range(len(axes)), key=lambda k: joint.index(axes[k]))
    shape = tuple(sizes[v] if v in axes else 1 for v in joint)
    return _Factor(one.fraction.transpose(turn), one.power.transpose(turn), one.roundings).over(shape)


def _too_wide(network: Network, axes: Any, bits: float, limit: int, whose: str = "") -> TooManyHiddenError:
    names = enumerated([network.names[v] for v in axes], 60)
    return TooManyHiddenError(
        f"proven=True needs a table of 2**{bits:.4g} numbers over {names}{whose}; the limit is {limit}. Leave it out: "
        "rounding is covered by a margin"
    )


def _table(arb: Any, network: Network, family: Family, row: States, axes: tuple[int, ...]) -> _Factor:
    """P of a variable for each joint state of what is hidden."""
    members = (*family.parents, family.variable)
    if family.table is not None:
        seen = tuple(slice(None) if row[v] == HIDDEN else int(row[v]) for v in members)
        return _fitted(np.asarray(family.table[seen], np.float64), np.zeros((), np.int64), 0)
    shape = [int(network.n_states[v]) for v in axes]
    fraction, power, digits = np.zeros(shape), np.full(shape, _ZERO), 53
    for place in np.argwhere(log_table(family, row[None, :])[0] > -np.inf).tolist():
        hidden = dict(zip(axes, place, strict=True))
        *parents, own = (hidden.get(v, int(row[v])) for v in members)
        ball = _probability(arb, family, parents, own)
        if not ball.is_zero():
            digits = min(digits, ball.rel_accuracy_bits())
            whole, exponent = (int(part) for part in ball.mid().man_exp())
            bits = whole.bit_length()
            fraction[*place], power[*place] = whole / (1 << bits), exponent + bits
    # One rounding of the middle of the ball, the radius is less than another; 1 stands for 1/2 times 2.
    return _fitted(fraction, power, 2 << (53 - digits))


def _probability(arb: Any, family: Family, parents: list[int], own: int) -> Any:
    if family.table is not None:
        return arb(float(family.table[(*parents, own)]))
    p, above = arb(1), arb(0)
    for level in range(1, len(family.bias) + 1):
        x = arb(float(family.bias[level - 1]))
        for weight, s in zip(family.weights, parents, strict=True):
            x += arb(float(_weight(weight, level, s)))
        if family.gate == NOISY_OR:  # P(v <= k) = exp(-sum of x_l over l > k)
            p *= -(-x).expm1() if level == own else 1
            above += x if level > own else 0
        elif level <= own + 1:  # P(v >= l | v >= l - 1) = sigma(x_l)
            p /= 1 + (-x if level <= own else x).exp()
    return p * (-above).exp()


def _weight(block: FloatArray, level: int, state: int) -> float:
    return float(block[level - 1, state - 1]) if state else 0.0
