"""Gibbs sampling of the hidden variables given the evidence, many chains side by side.

A hidden variable is drawn given all others: state k has a probability in proportion to P(v = k | parents) times what
its children say. If it moves, the input of a child's threshold moves by d, and the child says

    P(child | x + d) / P(child | x) = (1 + o) / (o + e^-d)     if it is at least l ,
                                      (1 + o) / (1 + o e^d)    if it is l - 1 ,      o = e^x ,

which needs no exponential: e^d and e^-d are known for each weight, and o follows a move by a product. These serve
*mild* thresholds, those of sigmoid variables whose input cannot be so large that o overflows. All others, steep and
noisy-OR ones, are served by logarithms, a x - c t(x) in `thresholds`. Barren variables have no children with a say.
"""

from __future__ import annotations

import math

import numpy as np

from sbnet._types import FloatArray
from sbnet.kernels import thresholds
from sbnet.kernels.chains import BARREN, HIDDEN, LANES, OBSERVED, Chains, Graph, Record, choose, next_uniform
from sbnet.kernels.compiling import inner, kernel

FRESH = 64
"""Sweeps after which inputs are summed anew, so that rounding does not pile up."""
MILD = 350.0
"""The largest input of a mild threshold: a product of two numbers e^350 is an ordinary number."""


@kernel
def sweep(graph: Graph, chains: Chains, beta: FloatArray, burn_in: int) -> None:
    """Draw every hidden variable given all others, from Q^(1-b) P^b with one b for each sweep; from P at b = 1.

    After `burn_in` sweeps probabilities are averaged, and barren variables are drawn too.
    """
    roles, cells, columns, draws, room = chains.roles, chains.cells, chains.columns, chains.draws, chains.room
    n, goal = roles.shape[1], chains.new[0]
    for b in range(len(cells)):
        out = draws[b]
        for s in range(len(beta)):
            if s % FRESH == 0:
                _refresh(graph, chains, b)
            for j in range(2 * n if s >= burn_in else n):
                v = j % n
                if roles[b, v] != (HIDDEN if j < n else BARREN):
                    continue
                one = graph.variables[v]
                if _ask_children(graph, chains, b, v) and beta[s] == 1.0:
                    _multiply(one, chains, b, v)
                else:
                    _add_logarithms(one, chains, b, v, beta[s])
                next_uniform(out)
                choose(one.states - 1, room, out, goal)
                _follow(graph, chains, b, v, beta[s] < 1.0)
                for k in range(1, one.states if s >= burn_in else 1):
                    _average(room[k], s - burn_in, columns[b, one.threshold + k - 1])
            for i in range(LANES):
                out.total[i] += out.gap[i]


@inner
def _added(x: float, y: float) -> tuple[float, float]:
    """x + y, and what its rounding has lost (Knuth's two-sum)."""
    total = x + y
    back = total - x
    return total, (x - (total - back)) + (y - back)


@inner
def _refresh(graph: Graph, chains: Chains, b: int) -> None:
    """All inputs, from the states."""
    edges, tilts, cells, sides, size = graph.edges, graph.tilts, chains.cells, chains.sides, chains.size
    for t in range(len(sides)):
        side, x = sides[t], chains.bias[b, t]
        odds = math.exp(x) if size[b, t] <= MILD else 0.0
        for i in range(LANES if size[b, t] >= 0.0 else 0):
            side.odds[i], side.x[i], side.rest[i] = odds, x, 0.0
    for v in range(cells.shape[1]):
        one, cell = graph.variables[v], cells[b, v]
        for e in range(one.edge, one.edge_end if chains.roles[b, v] != OBSERVED else one.edge):
            edge = edges[e]
            side = sides[edge.threshold]
            for k in range(1, one.states):
                tilt = tilts[edge.tilt + k - 1]
                if size[b, edge.threshold] <= MILD:
                    up = tilt.up
                    for i in range(LANES):
                        side.odds[i] *= up if cell.state[i] == k else 1.0
                else:
                    for i in range(chains.draws[b].used):
                        side.x[i], lost = _added(side.x[i], tilt.weight if cell.state[i] == k else 0.0)
                        side.rest[i] += lost
    for v in range(cells.shape[1]):
        one = graph.variables[v]
        for t in range(one.threshold, one.threshold + one.states - 1):
            for i in range(chains.draws[b].used if size[b, t] > MILD else 0):
                sides[t].t[i] = thresholds.t(one.gate, sides[t].x[i] + sides[t].rest[i])


@inner(fast=True)
def _ask_children(graph: Graph, chains: Chains, b: int, v: int) -> bool:
    """What all children say to each state of v, inverted: products, and if need be logarithms.

    With two states there is one product, for the state that v is not in. Are products of ordinary size enough?
    """
    edges, tilts, cells, roles, size = graph.edges, graph.tilts, chains.cells, chains.roles, chains.size
    one, cell, room, sides, used = graph.variables[v], cells[b, v], chains.room, chains.sides, chains.draws[b].used
    other, states, far, tall = (
        room[0],
        one.states,
        0.0,
        0.0,
    )  # logarithms of the largest product, and ratio, there can be
    for k in range(states):
        for i in range(LANES):
            room[k].ratio[i] = room[k].product[i] = room[k].arg[i] = 1.0
            room[k].gain[i] = 0.0
    for t in range(one.threshold, one.threshold + states - 1):
        far += size[b, t]
    simple, far = far <= MILD, far if far <= MILD else 0.0
    for e in range(one.edge, one.edge_end):
        edge = edges[e]
        role, height = roles[b, edge.variable], size[b, edge.threshold] + 1.0
        side, child, level = sides[edge.threshold], cells[b, edge.variable], edge.level
        if role == BARREN:
            continue
        if height > MILD + 1.0:
            simple = False
            _say_log(edge, tilts, states, side, child, cell, used, room)
            continue
        if max(far + edge.reach, tall + height) > MILD:
            _fold(states, room)
            tall = 0.0
            if far + edge.reach > MILD:
                _gather(states, cell, used, room)
                simple, far = False, 0.0
        far, tall = far + edge.reach, tall + height
        up, down = tilts[edge.tilt].up, tilts[edge.tilt].down
        if states > 2:
            _say(edge, tilts, states, side, child, cell, room)
        elif role == HIDDEN:
            for i in range(LANES):
                odds = side.odds[i]
                above = odds + (down if cell.state[i] == 0 else up)
                below = 1.0 + odds * (up if cell.state[i] == 0 else down)
                below = below if child.state[i] == level - 1 else 1.0 + odds
                other.ratio[i] *= above if child.state[i] >= level else below
                other.arg[i] *= 1.0 + odds
        elif child.state[0] >= level:
            for i in range(LANES):
                other.ratio[i] *= side.odds[i] + (down if cell.state[i] == 0 else up)
                other.arg[i] *= 1.0 + side.odds[i]
        elif child.state[0] == level - 1:
            for i in range(LANES):
                other.ratio[i] *= 1.0 + side.odds[i] * (up if cell.state[i] == 0 else down)
                other.arg[i] *= 1.0 + side.odds[i]
    _fold(states, room)
    return simple


@inner(fast=True)
def _say(
    edge: Record, tilts: np.ndarray, states: int, side: Record, child: Record, cell: Record, room: np.ndarray
) -> None:
    """What a mild child says to each of several states, inverted."""
    other, level = room[0], edge.level
    for i in range(LANES):
        other.arg[i] *= 1.0 + side.odds[i]
        other.power[i] = 1.0
    for k in range(1, states):  # e^J of the present state
        up = tilts[edge.tilt + k - 1].up
        for i in range(LANES):
            other.power[i] = up if cell.state[i] == k else other.power[i]
    for k in range(states):
        up, down = (tilts[edge.tilt + k - 1].up, tilts[edge.tilt + k - 1].down) if k > 0 else (1.0, 1.0)
        one = room[k]
        for i in range(LANES):
            odds = side.odds[i]
            below = 1.0 + (odds * up / other.power[i] if child.state[i] == level - 1 else odds)
            one.ratio[i] *= odds + down * other.power[i] if child.state[i] >= level else below


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
def _fold(states: int, room: np.ndarray) -> None:
    """The ratios so far enter the products."""
    for k in range(states if states > 2 else 1):
        one, other = room[k], room[0]
        for i in range(LANES):
            one.product[i] *= one.ratio[i] / other.arg[i]
            one.ratio[i] = 1.0
    for i in range(LANES):
        room[0].arg[i] = 1.0


@inner
def _gather(states: int, cell: Record, used: int, room: np.ndarray) -> None:
    """The products so far enter the sums of logarithms."""
    for i in range(used):
        for k in range(states):
            if states > 2:
                room[k].gain[i] -= math.log(room[k].product[i])
            elif k != cell.state[i]:
                room[k].gain[i] -= math.log(room[0].product[i])
        for k in range(states):
            room[k].product[i] = 1.0


@inner(fast=True)
def _multiply(one: Record, chains: Chains, b: int, v: int) -> None:
    """p of each state, from products: P(v = k | parents) over what the children say, inverted."""
    room, cell, states, total = chains.room, chains.cells[b, v], one.states, chains.room[0]
    if states == 2:
        side, state = chains.sides[one.threshold], room[1]
        for i in range(LANES):
            yes = side.odds[i] * (total.product[i] if cell.state[i] == 1 else 1.0)
            state.p[i] = yes / (yes + (total.product[i] if cell.state[i] == 0 else 1.0))
        return
    for l in range(states):  # noqa: E741 (the letter of the definition)
        state, below, side = room[l], room[max(l - 1, 0)], chains.sides[one.threshold + max(l - 1, 0)]
        for i in range(LANES):
            share = below.p[i] / (1.0 + side.odds[i]) if l > 0 else 1.0
            state.p[i] = share * side.odds[i] if l > 0 else 1.0
            below.p[i] = share
    for k in range(states):
        state = room[k]
        for i in range(LANES):
            state.p[i] /= state.product[i]
            total.arg[i] = state.p[i] + (total.arg[i] if k > 0 else 0.0)
    for k in range(states):
        state = room[k]
        for i in range(LANES):
            state.p[i] /= total.arg[i]


@inner
def _add_logarithms(one: Record, chains: Chains, b: int, v: int, beta: float) -> None:
    """p of each state, from sums: x = ln P(v = k | all others) but for a constant."""
    room, sides, prior, used = chains.room, chains.sides, chains.prior, chains.draws[b].used
    _gather(one.states, chains.cells[b, v], used, room)
    for i in range(used):
        highest, total = -math.inf, 0.0
        for k in range(one.states):
            room[k].x[i] = room[k].gain[i]
            for l in range(1, one.states):  # noqa: E741
                t = one.threshold + l - 1
                x = math.log(sides[t].odds[i]) if chains.size[b, t] <= MILD else sides[t].x[i] + sides[t].rest[i]
                room[k].x[i] += thresholds.log_part(one.gate, l, k, x)
            ln_q = prior[b, one.threshold + k - 1] if k > 0 else 0.0
            room[k].p[i] = beta * room[k].x[i] + (1.0 - beta) * ln_q
            highest = max(highest, room[k].p[i])
        for k in range(one.states):
            room[k].p[i] = math.exp(room[k].p[i] - highest)
            total += room[k].p[i]
        for k in range(one.states):
            room[k].p[i] /= total


@inner(fast=True)
def _average(state: Record, k: int, column: Record) -> None:
    """The probabilities of sweep k, the first being 0, enter their means and deviations."""
    share = 1.0 / (k + 1)
    for i in range(LANES):
        before, spread = (column.average[i], column.spread[i]) if k > 0 else (0.0, 0.0)
        change = state.p[i] - before
        column.average[i] = before + change * share
        column.spread[i] = spread + change * (state.p[i] - column.average[i])


@inner(fast=True)
def _follow(graph: Graph, chains: Chains, b: int, v: int, annealed: bool) -> None:
    """The variable moves, and the inputs of its children follow; so does ln P - ln Q, if it is wanted."""
    edges, tilts, sides, room, moved = graph.edges, graph.tilts, chains.sides, chains.room, 0
    one, cell, goal, out = graph.variables[v], chains.cells[b, v], chains.new[0], chains.draws[b]
    for k in range(one.states if annealed else 0):
        ln_q, state = chains.prior[b, one.threshold + k - 1] if k > 0 else 0.0, room[k]
        for i in range(LANES):
            out.gap[i] += state.x[i] - ln_q if goal.state[i] == k else 0.0
            out.gap[i] -= state.x[i] - ln_q if cell.state[i] == k else 0.0
    for i in range(LANES):
        moved += goal.state[i] != cell.state[i]
    for e in range(one.edge, one.edge_end if moved > 0 else one.edge):
        edge = edges[e]
        side = sides[edge.threshold]
        if chains.size[b, edge.threshold] <= MILD:
            for k in range(1, one.states):
                up, down = tilts[edge.tilt + k - 1].up, tilts[edge.tilt + k - 1].down
                for i in range(LANES):
                    factor = up if goal.state[i] == k else down if cell.state[i] == k else 1.0
                    side.odds[i] *= factor if goal.state[i] != cell.state[i] else 1.0
            continue
        for i in range(out.used):
            if goal.state[i] != cell.state[i]:
                new = tilts[edge.tilt + goal.state[i] - 1].weight if goal.state[i] > 0 else 0.0
                old = tilts[edge.tilt + cell.state[i] - 1].weight if cell.state[i] > 0 else 0.0
                side.x[i], lost = _added(side.x[i], new - old)
                side.rest[i] += lost
                side.t[i] = thresholds.t(edge.gate, side.x[i] + side.rest[i])
    for i in range(LANES):
        cell.state[i] = goal.state[i]
