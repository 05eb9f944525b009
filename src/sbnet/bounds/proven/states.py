"""ln P of variables with any number of states, and of tables, in ball arithmetic: hidden variables are summed out."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from sbnet._types import HIDDEN, FloatArray, States
from sbnet.bounds.proven import balls, round_down, round_up
from sbnet.errors import TooManyHiddenError, enumerated
from sbnet.exact.factors import Family, families_of
from sbnet.kernels.codes import NOISY_OR
from sbnet.model.network import Network
from sbnet.questions.reduction import live_variables

LIMIT = 14
"""The logarithm to base 2 of the largest table: balls are a thousand times slower than numbers."""


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
        families = families_of(network.model, network.bias, live, tables)
        factors, constant = list[tuple[tuple[int, ...], Any]](), flint.arb(1)
        for family in families:
            axes = tuple(v for v in (*family.parents, family.variable) if row[v] == HIDDEN)
            _check(network, axes)
            factors.append((axes, _table(flint.arb, network, family, row, axes)))
        left = {v for axes, _ in factors for v in axes}
        while left:
            joints = {v: tuple(sorted({u for axes, _ in factors if v in axes for u in axes})) for v in left}
            v = min(left, key=lambda u: (math.prod(network.n_states[list(joints[u])].tolist()), u))
            left.remove(v)
            _check(network, joints[v])
            near = [(axes, table) for axes, table in factors if v in axes]
            factors = [(axes, table) for axes, table in factors if v not in axes]
            whole = _product(network, joints[v], near)
            rest = tuple(u for u in joints[v] if u != v)
            factors.append((rest, np.add.reduce(whole, axis=joints[v].index(v))))
        for _, table in factors:
            constant *= table if not isinstance(table, np.ndarray) else table.item()
        if constant == 0:
            return -math.inf, -math.inf
        ball = constant.log()
        return round_down(ball), min(round_up(ball), 0.0)


def _check(network: Network, axes: tuple[int, ...]) -> None:
    bits = math.fsum(math.log2(network.n_states[v]) for v in axes)
    if bits > LIMIT:
        names = enumerated([network.names[v] for v in axes], 60)
        raise TooManyHiddenError(
            f"proven=True needs a table of 2**{bits:.4g} numbers over {names}; the limit is {LIMIT}. Leave it out: "
            "rounding is covered by a margin"
        )


def _product(network: Network, joint: tuple[int, ...], factors: list[tuple[tuple[int, ...], Any]]) -> Any:
    total: Any = None
    for axes, table in factors:
        order = sorted(range(len(axes)), key=axes.__getitem__)
        shape = [network.n_states[v] if v in axes else 1 for v in joint]
        one = table.transpose(order).reshape(shape)
        total = one if total is None else total * one
    return np.broadcast_to(total, [network.n_states[v] for v in joint])


def _table(arb: Any, network: Network, family: Family, row: States, axes: tuple[int, ...]) -> Any:
    """P of a variable for each joint state of what is hidden, in balls."""
    shape = [int(network.n_states[v]) for v in axes]
    found = np.empty(shape, dtype=object)
    members = (*family.parents, family.variable)
    for place in np.ndindex(*shape):
        hidden = dict(zip(axes, place, strict=True))
        *parents, own = (hidden.get(v, int(row[v])) for v in members)
        found[place] = _probability(arb, family, parents, own)
    return found


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
