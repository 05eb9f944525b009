"""Gibbs sampling of the hidden variables given the evidence, many chains side by side.

A hidden variable is drawn given all others: state k has a probability in proportion to P(v = k | parents) times what
its children say. If it moves, the input of a child's threshold moves by d, and the child says

    P(child | x + d) / P(child | x) = 1 / (p + q e^-d)   if it is at least l ,
                                      1 / (q + p e^d)    if it is l - 1 ,      p = sigma(x), q = 1 - p ,

which needs no exponential: e^d and e^-d are known for each weight, and p and q follow a move by a division. These
products serve *mild* thresholds, those of sigmoid variables whose input cannot be so large that p or q underflows. All
others, steep and noisy-OR ones, are served by logarithms of their inputs, a x - c t(x) in `thresholds`.
"""

from __future__ import annotations

import math

import numpy as np

from sbnet._types import FloatArray
from sbnet.kernels import thresholds
from sbnet.kernels.chains import (
    BARREN,
    HIDDEN,
    LANES,
    Chains,
    Graph,
    Record,
    choose,
    distribution,
    next_uniform,
    set_inputs,
)
from sbnet.kernels.codes import SIGMOID
from sbnet.kernels.compiling import inner, kernel
from sbnet.kernels.vector import exp_minus, log

FRESH = 64
"""Sweeps after which inputs are summed anew, so that rounding does not pile up."""
MILD = 700.0
"""The largest input of a mild threshold: e^-700 is an ordinary number."""


@kernel
def sweep(graph: Graph, chains: Chains, beta: FloatArray, burn_in: int) -> None:
    """Draw every hidden variable given all others, from Q^(1-b) P^b with one b for each sweep; from P at b = 1.

    After `burn_in` sweeps probabilities are averaged, and barren variables are drawn too.
    """
    roles, _, _, cells, columns, draws, sides, size, room, new = chains
    n, variables, goal = roles.shape[1], graph.variables, new[0]
    for b in range(len(cells)):
        out = draws[b]
        _set_sizes(graph, chains, b)
        for s in range(len(beta)):
            if s % FRESH == 0:
                _refresh(graph, chains, b)
            for j in range(2 * n if s >= burn_in else n):
                v = j % n
                if roles[b, v] != (HIDDEN if j < n else BARREN):
                    continue
                one, cell = variables[v], cells[b, v]
                if j >= n:
                    distribution(one.gate, set_inputs(graph, chains, b, v), room)
                elif _ask_children(graph, chains, b, v) and beta[s] == 1.0 and size[one.threshold] <= MILD:
                    _choose_of_two(sides[one.threshold], cell, room)
                else:
                    _soft_max(one, chains, b, cell, beta[s])
                next_uniform(out)
                choose(one.states - 1, room, out, goal)
                for k in range(1, one.states if s >= burn_in else 1):
                    _average(room[k], s - burn_in, columns[b, one.threshold + k - 1])
                if j < n:
                    _follow(graph, chains, b, v, beta[s] < 1.0)
                for i in range(LANES):
                    cell.state[i] = goal.state[i]
            for i in range(LANES):
                out.total[i] += out.gap[i]


@inner
def _set_sizes(graph: Graph, chains: Chains, b: int) -> None:
    """How large inputs can be."""
    variables, edges, roles, bias, size = graph.variables, graph.edges, chains.roles, chains.bias, chains.size
    for t in range(len(size)):
        size[t] = -1.0
    for v in range(len(variables)):
        one = variables[v]
        if roles[b, v] == HIDDEN:
            for t in range(one.threshold, one.threshold + one.states - 1):
                if size[t] < 0.0:
                    size[t] = abs(bias[b, t]) if one.gate == SIGMOID else math.inf
            for e in range(one.edge, one.edge_end):
                edge = edges[e]
                if roles[b, edge.variable] != BARREN:
                    t = edge.threshold
                    if size[t] < 0.0:
                        size[t] = abs(bias[b, t]) if edge.gate == SIGMOID else math.inf
                    size[t] += edge.reach


@inner
def _added(x: float, y: float) -> tuple[float, float]:
    """x + y, and what its rounding has lost (Knuth's two-sum)."""
    total = x + y
    back = total - x
    return total, (x - (total - back)) + (y - back)


@inner(fast=True)
def _refresh(graph: Graph, chains: Chains, b: int) -> None:
    """The inputs of all sides, from the states."""
    variables, edges, tilts, roles, bias = graph.variables, graph.edges, graph.tilts, chains.roles, chains.bias
    cells, sides, size, room = chains.cells, chains.sides, chains.size, chains.room[0]
    for t in range(len(size)):
        for i in range(LANES if size[t] >= 0.0 else 0):
            sides[t].x[i], sides[t].rest[i] = bias[b, t], 0.0
    for v in range(len(variables)):
        one, cell = variables[v], cells[b, v]
        for e in range(one.edge, one.edge_end if roles[b, v] == HIDDEN else one.edge):
            edge = edges[e]
            side = sides[edge.threshold]
            for k in range(1, one.states if roles[b, edge.variable] != BARREN else 1):
                weight = tilts[edge.tilt + k - 1].weight
                if size[edge.threshold] <= MILD:
                    for i in range(LANES):
                        side.x[i] += weight if cell.state[i] == k else 0.0
                else:
                    for i in range(LANES):
                        side.x[i], lost = _added(side.x[i], weight if cell.state[i] == k else 0.0)
                        side.rest[i] += lost
    for v in range(len(variables)):
        for t in range(variables[v].threshold, variables[v].threshold + variables[v].states - 1):
            side = sides[t]
            if 0.0 <= size[t] <= MILD:
                for i in range(LANES):
                    room.arg[i] = abs(side.x[i])
                exp_minus(room)
                for i in range(LANES):
                    share = 1.0 / (1.0 + room.power[i])
                    side.p[i] = share if side.x[i] >= 0.0 else share * room.power[i]
                    side.q[i] = share * room.power[i] if side.x[i] >= 0.0 else share
            for i in range(LANES if size[t] > MILD else 0):
                side.t[i] = thresholds.t(variables[v].gate, side.x[i] + side.rest[i])


@inner(fast=True)
def _ask_children(graph: Graph, chains: Chains, b: int, v: int) -> bool:
    """What all children say to each state of v, inverted: products, and if need be logarithms.

    With two states there is one product, for the state that v is not in. Is that all?
    """
    edges, tilts, cells, roles, size = graph.edges, graph.tilts, chains.cells, chains.roles, chains.size
    one, cell, room, sides, used = graph.variables[v], cells[b, v], chains.room, chains.sides, chains.draws[b].used
    simple, far, other, states = one.states == 2, 0.0, room[0], one.states
    for k in range(states):
        for i in range(LANES):
            room[k].product[i], room[k].gain[i] = 1.0, 0.0
    for e in range(one.edge, one.edge_end):
        edge = edges[e]
        role = roles[b, edge.variable]
        if role == BARREN:
            continue
        side, child, level = sides[edge.threshold], cells[b, edge.variable], edge.level
        if size[edge.threshold] > MILD:
            simple = False
            _say_log(edge, tilts, states, side, child, cell, used, room)
            continue
        far += edge.reach
        if far > MILD:
            simple, far = False, edge.reach
            _gather(states, cell, room)
        up, down = tilts[edge.tilt].up, tilts[edge.tilt].down
        if states > 2:
            _say(edge, tilts, states, side, child, cell, room)
        elif role == HIDDEN:
            for i in range(LANES):
                above = side.p[i] + side.q[i] * (down if cell.state[i] == 0 else up)
                below = side.q[i] + side.p[i] * (up if cell.state[i] == 0 else down)
                below = below if child.state[i] == level - 1 else 1.0
                other.product[i] *= above if child.state[i] >= level else below
        elif child.state[0] >= level:
            for i in range(LANES):
                other.product[i] *= side.p[i] + side.q[i] * (down if cell.state[i] == 0 else up)
        elif child.state[0] == level - 1:
            for i in range(LANES):
                other.product[i] *= side.q[i] + side.p[i] * (up if cell.state[i] == 0 else down)
    return simple


@inner(fast=True)
def _say(
    edge: Record, tilts: np.ndarray, states: int, side: Record, child: Record, cell: Record, room: np.ndarray
) -> None:
    """What a mild child says to each of several states, inverted."""
    odds, level = room[0], edge.level
    for i in range(LANES):
        odds.arg[i] = 1.0
    for k in range(1, states):  # e^J of the present state
        up = tilts[edge.tilt + k - 1].up
        for i in range(LANES):
            odds.arg[i] = up if cell.state[i] == k else odds.arg[i]
    for k in range(states):
        up, down = (tilts[edge.tilt + k - 1].up, tilts[edge.tilt + k - 1].down) if k > 0 else (1.0, 1.0)
        one = room[k]
        for i in range(LANES):
            below = side.q[i] + side.p[i] * up / odds.arg[i] if child.state[i] == level - 1 else 1.0
            one.product[i] *= side.p[i] + side.q[i] * down * odds.arg[i] if child.state[i] >= level else below


@inner
def _say_log(
    edge: Record, tilts: np.ndarray, states: int, side: Record, child: Record, cell: Record, used: int,
    room: np.ndarray,
) -> None:  # fmt: skip
    """What any child says, by logarithms."""
    for i in range(used):
        a, c = thresholds.loads(edge.gate, edge.level, child.state[i])
        old = tilts[edge.tilt + cell.state[i] - 1].weight if cell.state[i] > 0 else 0.0
        for k in range(states):
            d = (tilts[edge.tilt + k - 1].weight if k > 0 else 0.0) - old
            room[k].gain[i] += a * d
            if c != 0.0 and d != 0.0:
                x, lost = _added(side.x[i], d)
                room[k].gain[i] -= c * (thresholds.t(edge.gate, x + (side.rest[i] + lost)) - side.t[i])


@inner(fast=True)
def _gather(states: int, cell: Record, room: np.ndarray) -> None:
    """The logarithms of the products so far."""
    for k in range(states if states > 2 else 1):
        one = room[k]
        for i in range(LANES):
            one.power[i], one.product[i] = one.product[i], 1.0
        log(one)
        for i in range(LANES if states > 2 else 0):
            one.gain[i] -= one.arg[i]
    for k in range(2 if states == 2 else 0):
        for i in range(LANES):
            room[k].gain[i] -= room[0].arg[i] if cell.state[i] != k else 0.0


@inner(fast=True)
def _choose_of_two(side: Record, cell: Record, room: np.ndarray) -> None:
    """p of state 1, from products alone."""
    one, product = room[1], room[0].product
    for i in range(LANES):
        p = side.p[i] * (product[i] if cell.state[i] == 1 else 1.0)
        q = side.q[i] * (product[i] if cell.state[i] == 0 else 1.0)
        one.p[i] = p / (p + q)


@inner(fast=True)
def _soft_max(one: Record, chains: Chains, b: int, cell: Record, beta: float) -> None:
    """p of each state, from logarithms: x = ln P(v = k | all others) but for a constant."""
    room, sides, size, prior, used = chains.room, chains.sides, chains.size, chains.prior, chains.draws[b].used
    _gather(one.states, cell, room)
    highest = room[0].product
    for k in range(one.states):
        for i in range(LANES):
            room[k].x[i] = room[k].gain[i]
    for l in range(1, one.states):  # noqa: E741 (the letter of the definition)
        side = sides[one.threshold + l - 1]
        if size[one.threshold + l - 1] > MILD:
            for i in range(used):
                for k in range(one.states):
                    room[k].x[i] += thresholds.log_part(one.gate, l, k, side.x[i] + side.rest[i])
            continue
        for i in range(LANES):
            room[0].power[i], room[1].power[i] = side.q[i], side.p[i]
        log(room[0])
        log(room[1])
        for i in range(LANES):
            room[l - 1].x[i] += room[0].arg[i]
        for k in range(l, one.states):
            for i in range(LANES):
                room[k].x[i] += room[1].arg[i]
    for k in range(one.states):
        for i in range(LANES):
            ln_q = prior[b, one.threshold + k - 1] if k > 0 else 0.0
            room[k].gain[i] = beta * room[k].x[i] + (1.0 - beta) * ln_q
            highest[i] = max(highest[i], room[k].gain[i]) if k > 0 else room[k].gain[i]
    for k in range(one.states):
        for i in range(LANES):
            room[k].arg[i] = highest[i] - room[k].gain[i]
        exp_minus(room[k])
        for i in range(LANES):
            room[0].gain[i] = room[0].gain[i] + room[k].power[i] if k > 0 else room[k].power[i]
    for k in range(one.states):
        for i in range(LANES):
            room[k].p[i] = room[k].power[i] / room[0].gain[i]


@inner(fast=True)
def _average(one: Record, k: int, column: Record) -> None:
    """The probabilities of sweep k, the first being 0, enter their means and deviations."""
    share = 1.0 / (k + 1)
    for i in range(LANES):
        before, spread = (column.average[i], column.spread[i]) if k > 0 else (0.0, 0.0)
        change = one.p[i] - before
        column.average[i] = before + change * share
        column.spread[i] = spread + change * (one.p[i] - column.average[i])


@inner(fast=True)
def _follow(graph: Graph, chains: Chains, b: int, v: int, annealed: bool) -> None:
    """The inputs of the children follow a move; and ln P - ln Q, if it is wanted."""
    edges, tilts, roles, size, sides = graph.edges, graph.tilts, chains.roles, chains.size, chains.sides
    one, cell, goal, out, room, moved = (
        graph.variables[v],
        chains.cells[b, v],
        chains.new[0],
        chains.draws[b],
        chains.room[0],
        0,
    )
    for k in range(one.states if annealed else 0):
        ln_q, state = chains.prior[b, one.threshold + k - 1] if k > 0 else 0.0, chains.room[k]
        for i in range(LANES):
            out.gap[i] += state.x[i] - ln_q if goal.state[i] == k else 0.0
            out.gap[i] -= state.x[i] - ln_q if cell.state[i] == k else 0.0
    for i in range(LANES):
        moved += goal.state[i] != cell.state[i]
    for e in range(one.edge, one.edge_end if moved > 0 else one.edge):
        edge = edges[e]
        if roles[b, edge.variable] == BARREN:
            continue
        side = sides[edge.threshold]
        if size[edge.threshold] <= MILD:
            for i in range(LANES):
                room.arg[i] = 1.0  # e^d
            for k in range(1, one.states):
                up, down = tilts[edge.tilt + k - 1].up, tilts[edge.tilt + k - 1].down
                for i in range(LANES):
                    room.arg[i] *= (up if goal.state[i] == k else 1.0) * (down if cell.state[i] == k else 1.0)
            for i in range(LANES):
                share = 1.0 / (side.q[i] + side.p[i] * room.arg[i])
                side.p[i] *= room.arg[i] * share
                side.q[i] *= share
            continue
        for i in range(out.used):
            if goal.state[i] != cell.state[i]:
                new = tilts[edge.tilt + goal.state[i] - 1].weight if goal.state[i] > 0 else 0.0
                old = tilts[edge.tilt + cell.state[i] - 1].weight if cell.state[i] > 0 else 0.0
                side.x[i], lost = _added(side.x[i], new - old)
                side.rest[i] += lost
                side.t[i] = thresholds.t(edge.gate, side.x[i] + side.rest[i])
