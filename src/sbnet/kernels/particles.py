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
from sbnet.kernels import chains as complete
from sbnet.kernels import thresholds
from sbnet.kernels.chains import BARREN, HIDDEN, LANES, Chains, Graph, choose, distribution, lanes, next_uniform
from sbnet.kernels.compiling import inner, kernel
from sbnet.kernels.random import GOLDEN, Seeds, uniform
from sbnet.kernels.structs import struct

_FEW = 0.5  # particles are resampled when fewer than this share of them count
_LEAST = 1e-300

share_t = struct(*lanes("p"))  # P(u = k) of a state of a private parent
sum_t = struct(*lanes("share", "total"), ("chosen", "i8", LANES))  # over joint states: one of them; so far; drawn


class Private(NamedTuple):
    """Which parents are private."""

    child: IndexArray  # rows by variables: the only child of a private parent, else -1
    joint: IndexArray  # rows by variables: how many joint states the private parents of a variable have
    shares: np.ndarray  # room: by state of a private parent
    sums: np.ndarray  # room; one
    x: FloatArray  # room, thresholds by lanes


@kernel
def filter_rows(
    graph: Graph, chains: Chains, states: States, seeds: Seeds, number: int, private: Private, source: IndexArray,
    log_p: FloatArray,
) -> None:  # fmt: skip
    """Particles of each row by its posterior, all of the same weight, and an estimate of P(evidence): its logarithm."""
    variables, parents, roles, draws, cells, room = (
        graph.variables, graph.parents, chains.roles, chains.draws, chains.cells, chains.room,
    )  # fmt: skip
    n_blocks = (number + LANES - 1) // LANES
    for r in range(len(states)):
        first, seed, log_p[r] = r * n_blocks, seeds[r], 0.0
        _set_weights(draws, first, n_blocks)
        for v in range(len(variables)):
            if roles[first, v] == BARREN or private.child[r, v] >= 0:
                continue
            one, n_hidden, state = variables[v], 0, states[r, v]
            for e in range(one.parent, one.parent_end):
                n_hidden += roles[first, parents[e].variable] == HIDDEN
            if state >= 0 and n_hidden == 0:
                for l in range(1, one.states):  # noqa: E741 (the letter of the definition)
                    x = chains.bias[first, one.threshold + l - 1]
                    log_p[r] += thresholds.log_part(one.gate, l, state, x)
                continue
            for b in range(first, first + n_blocks):
                out, cell = draws[b], cells[b, v]
                if private.joint[r, v] > 1:
                    _weigh_sum(graph, chains, b, v, state, private, r)
                    continue
                distribution(one.gate, complete.set_inputs(graph, chains, b, v), room)
                if state < 0:
                    next_uniform(out)
                    choose(one.states - 1, room, out, cell)
                    continue
                for i in range(LANES):
                    out.weight[i] *= room[state].p[i]
            if state >= 0:
                total, squares = _total(draws, first, n_blocks)
                if total < number * _LEAST:  # impossible for all of them: none is better than another
                    log_p[r] += math.log(_LEAST)
                    _set_weights(draws, first, n_blocks)
                elif total * total < _FEW * number * squares or total < 1e-100:
                    log_p[r] += math.log(total / number)
                    seed += GOLDEN
                    _resample(chains, first, v, number, total, uniform(seed), source)
                    _set_weights(draws, first, n_blocks)
        total, _ = _total(draws, first, n_blocks)
        _resample(chains, first, len(variables), number, total, uniform(seed + GOLDEN), source)
        log_p[r] += math.log(total / number)


@inner
def _weigh_sum(graph: Graph, chains: Chains, b: int, v: int, state: int, private: Private, r: int) -> None:
    """Weigh by P(v), its private parents marginalised; they are drawn given v."""
    variables, parents, tilts, cells, room = graph.variables, graph.parents, graph.tilts, chains.cells, chains.room
    only, shares, one, out, so_far, k = private.child, private.shares, variables[v], chains.draws[b], private.sums[0], 0
    for e in range(one.parent, one.parent_end):
        u = parents[e].variable
        if only[r, u] == v:
            distribution(variables[u].gate, complete.set_inputs(graph, chains, b, u), room)
            for s in range(variables[u].states):
                for i in range(LANES):
                    shares[k + s].p[i] = room[s].p[i]
            for i in range(LANES):
                cells[b, u].state[i] = 0
            k += variables[u].states
    n = complete.set_inputs(graph, chains, b, v)
    next_uniform(out)
    for i in range(LANES):
        so_far.total[i], so_far.chosen[i] = 0.0, 0
        for l in range(1, n + 1):  # noqa: E741
            private.x[l, i] = room[l].x[i]
    for joint in range(private.joint[r, v]):
        rest, k = joint, 0
        for i in range(LANES):
            so_far.share[i] = 1.0
            for l in range(1, n + 1):  # noqa: E741
                room[l].x[i] = private.x[l, i]
        for e in range(one.parent, one.parent_end):
            parent = parents[e]
            if only[r, parent.variable] == v:
                s, rest = rest % (parent.width + 1), rest // (parent.width + 1)
                for i in range(LANES):
                    so_far.share[i] *= shares[k + s].p[i]
                for l in range(1, n + 1 if s > 0 else 0):  # noqa: E741
                    weight = tilts[parent.block + (l - 1) * parent.width + s - 1].weight
                    for i in range(LANES):
                        room[l].x[i] += weight
                k += parent.width + 1
        distribution(one.gate, n, room)
        for i in range(LANES):
            so_far.share[i] *= room[state].p[i]
            so_far.total[i] += so_far.share[i]
            new = so_far.share[i] / so_far.total[i] if so_far.total[i] > 0.0 else 0.0
            if out.uniform[i] < new:  # what is left of the number serves the joint states to come
                so_far.chosen[i] = joint
                out.uniform[i] /= new
            else:
                out.uniform[i] = (out.uniform[i] - new) / (1.0 - new)
    for i in range(LANES):
        out.weight[i] *= so_far.total[i]
    for e in range(one.parent, one.parent_end):
        u = parents[e].variable
        for i in range(LANES if only[r, u] == v else 0):
            cells[b, u].state[i] = so_far.chosen[i] % variables[u].states
            so_far.chosen[i] //= variables[u].states


@inner
def _resample(chains: Chains, first: int, end: int, number: int, total: float, u: float, source: IndexArray) -> None:
    """Each particle as often as its weight says: systematic resampling of the hidden variables before `end`."""
    draws, cells, k, above = chains.draws, chains.cells, 0, chains.draws[first].weight[0]
    for m in range(number):
        while above < (m + u) * total / number and k < number - 1:
            k += 1
            above += draws[first + k // LANES].weight[k % LANES]
        source[0, m] = k
    for v in range(end):
        if chains.roles[first, v] == HIDDEN:
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
