"""Many complete states of one row, drawn from its posterior: sequential Monte Carlo.

Variable by variable, parents first, every particle draws what is hidden and is weighed by what is observed; when few of
them count, those of little weight give way to copies of others (Gordon, Salmond & Smith 1993). So a row gets from one
value of several cells that hang together to another, where a chain that moves cell by cell would be caught. Gibbs
sweeps then part the copies.

The mean of the weights is an unbiased estimate of P(evidence). Its variance falls if hidden variables are marginalised
exactly instead of drawn. That is cheap for *private* parents, which have no child with a say in the evidence but one
observed variable, as those of a per-column mixture do: their joint states are summed over when that variable is
weighed, and one of them is drawn, given it.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from sbnet._types import FloatArray, IndexArray, States
from sbnet.kernels import thresholds
from sbnet.kernels.chains import (
    BARREN,
    HIDDEN,
    KNOWN,
    LANES,
    Chains,
    Graph,
    choose,
    distribution,
    next_uniform,
    set_inputs,
)  # fmt: skip
from sbnet.kernels.compiling import inner, kernel
from sbnet.kernels.random import GOLDEN, Seeds, uniform

_FEW = 0.5  # particles are resampled when fewer than this share of them count
_LEAST = 1e-300


class Private(NamedTuple):
    """Which parents are private, and room for their joint states, the first parent's state counting up first."""

    child: IndexArray  # rows by variables: the only child of a private parent, else -1
    joint: IndexArray  # rows by variables: how many joint states the private parents of a variable have
    share: FloatArray  # by joint state and lane: its probability
    x: FloatArray  # by joint state, threshold of the child and lane
    total: FloatArray  # by lane
    chosen: IndexArray  # by lane


@kernel
def filter_rows(
    graph: Graph, chains: Chains, states: States, seeds: Seeds, number: int, private: Private, source: IndexArray,
    log_p: FloatArray,
) -> None:  # fmt: skip
    """Particles of each row by its posterior, all of the same weight, and an estimate of P(evidence): its logarithm."""
    variables, draws, room, n_blocks = graph.variables, chains.draws, chains.room, (number + LANES - 1) // LANES
    for r in range(len(states)):
        first, seed, log_p[r] = r * n_blocks, seeds[r], 0.0
        _set_weights(draws, first, n_blocks)
        for v in range(len(variables)):
            one, state, role = variables[v], states[r, v], chains.roles[r, v]
            if role == BARREN or private.child[r, v] >= 0:
                continue
            if role == KNOWN:
                for l in range(1, one.states):  # noqa: E741 (the letter of the definition)
                    x = chains.bias[r, one.threshold + l - 1]
                    log_p[r] += thresholds.log_part(one.gate, l, state, x)
                continue
            for b in range(first, first + n_blocks):
                out, cell = draws[b], chains.cells[b, v]
                if private.joint[r, v] > 1:
                    _weigh_sum(graph, chains, r, b, v, state, private)
                    continue
                distribution(one.gate, set_inputs(graph, chains, r, b, v), room)
                if role == HIDDEN:
                    next_uniform(out)
                    choose(one.states - 1, room, out)
                    for i in range(LANES):
                        cell.state[i] = out.state[i]
                    continue
                for i in range(LANES):
                    out.weight[i] *= room[state].p[i]
            if role != HIDDEN:
                total, squares = _total(draws, first, n_blocks)
                if total < number * _LEAST:  # impossible for all of them: none is better than another
                    log_p[r] += math.log(_LEAST)
                    _set_weights(draws, first, n_blocks)
                elif total * total < _FEW * number * squares or total < 1e-100:
                    log_p[r] += math.log(total / number)
                    seed += GOLDEN
                    _resample(chains, r, v, number, total, uniform(seed), source)
                    _set_weights(draws, first, n_blocks)
        total, _ = _total(draws, first, n_blocks)
        _resample(chains, r, len(variables), number, total, uniform(seed + GOLDEN), source)
        log_p[r] += math.log(total / number)


@inner
def _weigh_sum(graph: Graph, chains: Chains, r: int, b: int, v: int, state: int, private: Private) -> None:
    """Weigh by P(v), its private parents marginalised; they are drawn given v."""
    variables, parents, tilts, cells, room = graph.variables, graph.parents, graph.tilts, chains.cells, chains.room
    only, _, share, x, total, chosen = private
    one, out, size = variables[v], chains.draws[b], 1
    for e in range(one.parent, one.parent_end):  # they are left out of the input
        for i in range(LANES if only[r, parents[e].variable] == v else 0):
            cells[b, parents[e].variable].state[i] = 0
    n = set_inputs(graph, chains, r, b, v)
    for i in range(LANES):
        total[i], chosen[i], share[0, i] = 0.0, 0, 1.0
        for l in range(n):  # noqa: E741
            x[0, l, i] = room[l + 1].x[i]
    for e in range(one.parent, one.parent_end):
        parent = parents[e]
        if only[r, parent.variable] != v:
            continue
        distribution(variables[parent.variable].gate, set_inputs(graph, chains, r, b, parent.variable), room)
        for s in range(parent.width, -1, -1):
            for m in range(size):
                for i in range(LANES):
                    share[s * size + m, i] = share[m, i] * room[s].p[i]
                for l in range(n):  # noqa: E741
                    weight = tilts[parent.block + l * parent.width + s - 1].weight if s > 0 else 0.0
                    for i in range(LANES):
                        x[s * size + m, l, i] = x[m, l, i] + weight
        size *= parent.width + 1
    next_uniform(out)
    for m in range(size):
        for l in range(n):  # noqa: E741
            for i in range(LANES):
                room[l + 1].x[i] = x[m, l, i]
        distribution(one.gate, n, room)
        for i in range(LANES):
            p = share[m, i] * room[state].p[i]
            total[i] += p
            new = p / total[i] if total[i] > 0.0 else 0.0
            chosen[i] = m if out.uniform[i] < new else chosen[i]
            # what is left of the number serves the joint states to come
            out.uniform[i] = out.uniform[i] / new if out.uniform[i] < new else (out.uniform[i] - new) / (1.0 - new)
    for i in range(LANES):
        out.weight[i] *= total[i]
    for e in range(one.parent, one.parent_end):
        u = parents[e].variable
        for i in range(LANES if only[r, u] == v else 0):
            cells[b, u].state[i] = chosen[i] % variables[u].states
            chosen[i] //= variables[u].states


@inner
def _resample(chains: Chains, r: int, end: int, number: int, total: float, u: float, source: IndexArray) -> None:
    """Each particle as often as its weight says: systematic resampling of the hidden variables before `end`."""
    draws, cells, n_blocks, k = chains.draws, chains.cells, (number + LANES - 1) // LANES, 0
    first = r * n_blocks
    above = draws[first].weight[0]
    for m in range(number):
        while above < (m + u) * total / number and k < number - 1:
            k += 1
            above += draws[first + k // LANES].weight[k % LANES]
        source[0, m] = k
    for v in range(end):
        if chains.roles[r, v] == HIDDEN:
            for m in range(number):
                source[1, m] = cells[first + source[0, m] // LANES, v].state[source[0, m] % LANES]
            for m in range(number):
                cells[first + m // LANES, v].state[m % LANES] = source[1, m]


@inner
def _set_weights(draws: np.ndarray, first: int, n_blocks: int) -> None:
    """All particles count as much; lanes without one do not."""
    for b in range(first, first + n_blocks):
        for i in range(LANES):
            draws[b].weight[i] = 1.0 if i < draws[b].used else 0.0


@inner
def _total(draws: np.ndarray, first: int, n_blocks: int) -> tuple[float, float]:
    """The sum of the weights, and that of their squares."""
    total = squares = 0.0
    for b in range(first, first + n_blocks):
        for i in range(LANES):
            weight = draws[b].weight[i]
            total, squares = total + weight, squares + weight * weight
    return total, squares
