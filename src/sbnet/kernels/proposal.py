"""Complete states of hidden units, drawn from what an upper bound defines; `sbnet.bounds.upper.proposal` has the proof.

Units are drawn parents first. For each state there are three logarithms: of P(H, V), of the proposal of the upper bound
and of a factorial distribution, whichever of the two it was drawn from.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sbnet._types import BoolArray, FloatArray, IndexArray, Problem, States
from sbnet.kernels import gates
from sbnet.kernels._compile import bare, entry
from sbnet.kernels.arrays import load
from sbnet.kernels.gates import SIGMOID
from sbnet.kernels.random import GOLDEN, uniform
from sbnet.kernels.upper import Regions, log_table

_LARGE_PRODUCT = 1e250


class Joint(NamedTuple):
    """What ln P(H, V) depends on, by unit that is drawn and by factor; parents come first."""

    gate: States
    bias: FloatArray
    factor: IndexArray  # the unit's own, or -1
    child_ptr: IndexArray
    child: IndexArray  # factors
    weight: FloatArray
    base: FloatArray  # by factor: its input while all parents are off
    seen: IndexArray  # factors of observed units
    seen_gate: States
    seen_state: States


class Holder(NamedTuple):
    """The proposal of an upper bound: the shares of a unit's own factor and of the tables it is in."""

    share: FloatArray  # by unit: of its own factor
    omega: FloatArray
    eta: FloatArray
    ptr: IndexArray  # by unit: where its tables are
    table: IndexArray  # the factor of each
    part: FloatArray  # the share of each
    step: IndexArray  # 2^d, if it is number d of the parents in that table
    root: IndexArray  # by factor: where its tree begins
    on: FloatArray  # the chance of each next parent to be on, in the table, given those before
    off: FloatArray


class Factorial(NamedTuple):
    """Independent units: their means, and logarithms of both chances."""

    mu: FloatArray
    log_on: FloatArray
    log_off: FloatArray


@entry
def grow(problem: Problem, regions: Regions, x: FloatArray, root: IndexArray, on: FloatArray, off: FloatArray) -> None:
    """The chance of each parent in a table, in the distribution over its states, given the parents before it.

    Node 2^d + s is for parent number d where s are the states of those before, the first in the lowest bit.
    """
    p, tau = regions.by_state[1], regions.of_factor.tau
    for f in range(len(problem.factor)):
        if load(root, f) == load(root, f, 1):
            continue
        half = log_table(problem, regions, f, x) // 2
        while half > 0:
            for s in range(half):
                low, high = load(p, s) / load(tau, f), load(p, s, half) / load(tau, f)
                node = load(root, f) + half + s
                on[node], off[node] = gates.sigmoid(high - low), gates.sigmoid(low - high)
                p[s] = load(tau, f) * (max(low, high) + math.log1p(math.exp(-abs(high - low))))
            half //= 2


@entry
def draw(
    joint: Joint,
    holder: Holder,
    factorial: Factorial,
    seeds: NDArray[np.uint64],
    from_factorial: BoolArray,
    z: FloatArray,
    node: IndexArray,
    out: FloatArray,
) -> None:
    """For each seed, ln P(H, V), ln q(H) and ln of the factorial distribution: three stretches of `out`.

    `z` and `node` are scratch, with a number for each factor.
    """
    n = len(seeds)
    for t in range(n):
        for f in range(len(z)):
            z[f], node[f] = load(joint.base, f), 1
        seed, log_p, log_q, log_factorial = load(seeds, t), 0.0, 0.0, 0.0
        for k in range(len(joint.gate)):
            own = load(joint.factor, k)
            x = load(z, own) if own >= 0 else load(joint.bias, k)
            on, off = _chances(holder, k, load(joint.gate, k), x, node)
            seed += GOLDEN
            u, mu = uniform(seed), load(factorial.mu, k)
            state = 1 if (u < mu if load(from_factorial, t) else u * (on + off) < on) else 0
            log_q += math.log(max((on if state == 1 else off) / (on + off), gates.LEAST))
            log_factorial += load(factorial.log_on, k) if state == 1 else load(factorial.log_off, k)
            log_p += gates.log_p(load(joint.gate, k), state, x)
            _push(joint, holder, k, state, z, node)
        out[t], out[n + t], out[2 * n + t] = log_p + _observed(joint, z), log_q, log_factorial


@bare
def _chances(holder: Holder, k: int, gate: int, x: float, node: IndexArray) -> tuple[float, float]:
    """The chances of unit k to be on and off: means over its own factor and the tables it is in."""
    ptr, table, part, root = holder.ptr, holder.table, holder.part, holder.root
    y, share = (gates.log_odds(gate, x) + load(holder.eta, k)) / load(holder.omega, k), load(holder.share, k)
    on, off = share * gates.sigmoid(y), share * gates.sigmoid(-y)
    for c in range(load(ptr, k), load(ptr, k, 1)):
        f, mine = load(table, c), load(part, c)
        place = load(root, f) + load(node, f)
        on += mine * load(holder.on, place)
        off += mine * load(holder.off, place)
    return on, off


@bare
def _push(joint: Joint, holder: Holder, k: int, state: int, z: FloatArray, node: IndexArray) -> None:
    """Tell the children of unit k, and the tables it is in."""
    ptr, child, weight = joint.child_ptr, joint.child, joint.weight
    if state == 1:
        for c in range(load(ptr, k), load(ptr, k, 1)):
            z[load(child, c)] += load(weight, c)
    for c in range(load(holder.ptr, k), load(holder.ptr, k, 1)):
        node[load(holder.table, c)] += load(holder.step, c) * (1 + state)


@bare
def _observed(joint: Joint, z: FloatArray) -> float:
    """ln P of the observed units. Those of sigmoid units are multiplied up before the logarithm is taken."""
    total, product = 0.0, 1.0
    for c in range(len(joint.seen)):
        x, gate, state = load(z, load(joint.seen, c)), load(joint.seen_gate, c), load(joint.seen_state, c)
        if gate == SIGMOID:
            x = -x if state == 1 else x
            total -= max(x, 0.0)
            product *= 1.0 + math.exp(-abs(x))
            if product > _LARGE_PRODUCT:
                total, product = total - math.log(product), 1.0
        else:
            total += gates.log_p(gate, state, x)
    return total - math.log(product)
