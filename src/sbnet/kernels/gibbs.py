"""Gibbs sampling of the hidden variables given the evidence, many chains side by side.

A hidden variable is drawn given all others: state k has a probability in proportion to P(v = k | parents) times what
its children say. With o the odds e^x of a child's threshold l while v is in state 0, and w = J_l[v, k], that is

    1 / (1 + o e^w)     if the child is in state l - 1 ,        e^w / (1 + o e^w)     if it is above ,

which needs no exponential: e^w and e^-w are known for each weight, and odds follow a move by a product. These serve
*mild* thresholds, those of sigmoid variables whose input cannot be so large that o overflows. All others, steep and
noisy-OR ones, are served by logarithms, a x - c t(x) in `thresholds`. Barren variables have no children with a say.
"""

from __future__ import annotations

import math

import numpy as np

from sbnet._types import FloatArray
from sbnet.kernels import thresholds
from sbnet.kernels.chains import BARREN, HIDDEN, Chains, Graph, Record, choose, next_uniform
from sbnet.kernels.compiling import inner, kernel
from sbnet.kernels.vector import exp_of_minus, ln

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
    n, n_blocks = roles.shape[1], len(cells) // max(len(roles), 1)
    for b in range(len(cells)):
        out, r = draws[b], b // n_blocks
        for s in range(len(beta)):
            if s % FRESH == 0:
                _refresh(graph, chains, r, b)
            for j in range(2 * n if s >= burn_in else n):
                v = j % n
                if roles[r, v] != (HIDDEN if j < n else BARREN):
                    continue
                one = graph.variables[v]
                _ask_children(graph, chains, r, b, v)
                _ask_parents(one, chains, r, b)
                _weigh(one, room, chains.prior[r], beta[s], out.lanes)
                next_uniform(out)
                choose(one.states - 1, room, out)
                _follow(graph, chains, r, b, v, beta[s] < 1.0)
                for k in range(1, one.states if s >= burn_in else 1):
                    _average(room[k], s - burn_in, columns[b, one.threshold + k - 1], out.lanes)
            for i in range(out.lanes):
                out.total[i] += out.gap[i]


@inner
def _added(x: float, y: float) -> tuple[float, float]:
    """x + y, and what its rounding has lost (Knuth's two-sum)."""
    total = x + y
    back = total - x
    return total, (x - (total - back)) + (y - back)


@inner
def _refresh(graph: Graph, chains: Chains, r: int, b: int) -> None:
    """All inputs, from the states: every variable moves there from state 0."""
    mild, steep, size, out = chains.mild, chains.steep, chains.size, chains.draws[b]
    lanes = out.lanes
    for t in range(len(mild)):
        x = chains.bias[r, t]
        odds = math.exp(min(x, MILD))
        for i in range(lanes if size[r, t] <= MILD else 0):
            mild[t].odds[i] = odds
        for i in range(lanes if size[r, t] > MILD else 0):
            steep[t].x[i], steep[t].rest[i] = x, 0.0
    for v in range(chains.roles.shape[1]):
        cell = chains.cells[b, v]
        for i in range(lanes if chains.roles[r, v] >= HIDDEN else 0):
            out.state[i], cell.state[i] = cell.state[i], 0
        if chains.roles[r, v] >= HIDDEN:
            _follow(graph, chains, r, b, v, out.used == 0)


@inner(fast=True)
def _ask_children(graph: Graph, chains: Chains, r: int, b: int, v: int) -> None:
    """x of each state: ln of what all children say to it, relative to state 0."""
    edges, tilts, one, cell, room = graph.edges, graph.tilts, graph.variables[v], chains.cells[b, v], chains.room
    cells, roles, size, mild, steep = chains.cells, chains.roles, chains.size, chains.mild, chains.steep
    states, tall, lanes = one.states, 0.0, chains.draws[b].lanes
    for k in range(states):
        for i in range(lanes):
            room[k].x[i], room[k].ratio[i] = 0.0, 1.0
    for e in range(one.edge, one.edge_end):
        edge = edges[e]
        height, child = size[r, edge.threshold] + 1.0, cells[b, edge.variable]
        if roles[r, edge.variable] == BARREN:
            continue
        if height > MILD + 1.0:
            _say_log(edge, tilts, states, steep[edge.threshold], child, cell, chains.draws[b].used, room)
            continue
        if tall + height > MILD:  # ln of the largest ratio that there can be
            _fold(states, room, lanes)
            tall = 0.0
        tall += height
        side, none, other = mild[edge.threshold], room[0], room[1]
        if states > 2 or roles[r, edge.variable] == HIDDEN:
            _say(edge, tilts, states, side, child, cell, room, lanes)
        elif child.state[0] >= edge.level - 1:  # all lanes are in one state, which is quicker
            down = tilts[edge.tilt].down
            f = down if child.state[0] >= edge.level else 1.0
            f_up = f * tilts[edge.tilt].up
            for i in range(lanes):
                o = side.odds[i] * (down if cell.state[i] == 1 else 1.0)
                none.ratio[i] *= 1.0 + o
                other.ratio[i] *= f + o * f_up
    _fold(states, room, lanes)


@inner(fast=True)
def _say(
    edge: Record, tilts: np.ndarray, states: int, side: Record, child: Record, cell: Record, room: np.ndarray,
    lanes: int,
) -> None:  # fmt: skip
    """What a mild child says to each state, inverted."""
    none, level = room[0], edge.level
    for k in range(1, states):
        down = tilts[edge.tilt + k - 1].down
        for i in range(lanes):
            before = none.arg[i] if k > 1 else 1.0
            none.arg[i] = down if cell.state[i] == k else before
    for i in range(lanes):
        none.power[i] = side.odds[i] * none.arg[i] if child.state[i] >= level - 1 else 0.0
        none.ratio[i] *= 1.0 + none.power[i]
    for k in range(1, states):
        one, up, down = room[k], tilts[edge.tilt + k - 1].up, tilts[edge.tilt + k - 1].down
        for i in range(lanes):
            one.ratio[i] *= (1.0 + none.power[i] * up) * (down if child.state[i] >= level else 1.0)


@inner
def _say_log(
    edge: Record, tilts: np.ndarray, states: int, side: Record, child: Record, cell: Record, used: int,
    room: np.ndarray,
) -> None:  # fmt: skip
    """What any child says, by logarithms."""
    for i in range(used):
        old = tilts[edge.tilt + cell.state[i] - 1].weight if cell.state[i] > 0 else 0.0
        for k in range(states):
            x, lost = _added(side.x[i], (tilts[edge.tilt + k - 1].weight if k > 0 else 0.0) - old)
            room[k].x[i] += thresholds.log_part(edge.gate, edge.level, child.state[i], x + (side.rest[i] + lost))


@inner(fast=True)
def _fold(states: int, room: np.ndarray, lanes: int) -> None:
    """The ratios so far enter the logarithms, relative to state 0."""
    none = room[0]
    for k in range(1, states):
        one = room[k]
        for i in range(lanes):
            one.x[i] += ln(none.ratio[i] / one.ratio[i])
            one.ratio[i] = 1.0
    for i in range(lanes):
        none.ratio[i] = 1.0


@inner(fast=True)
def _ask_parents(one: Record, chains: Chains, r: int, b: int) -> None:
    """Add ln P(v = k | parents) to x of each state, but for a constant."""
    room, mild, steep, lanes = chains.room, chains.mild, chains.steep, chains.draws[b].lanes
    for l in range(1, one.states):  # noqa: E741 (the letter of the definition)
        t, far = one.threshold + l - 1, steep[one.threshold + l - 1]
        if chains.size[r, t] <= MILD:  # as o_1 ... o_k / (1 + o_2) ... (1 + o_k+1)
            for i in range(lanes):
                room[0].arg[i], room[0].power[i] = ln(mild[t].odds[i]), ln(1.0 + mild[t].odds[i])
            for k in range(l - 1, one.states):
                state, counts, rest = room[k], 1.0 if k >= l else 0.0, 1.0 if l > 1 else 0.0
                for i in range(lanes):
                    state.x[i] += counts * room[0].arg[i] - rest * room[0].power[i]
            continue
        for i in range(chains.draws[b].used):
            for k in range(one.states):
                room[k].x[i] += thresholds.log_part(one.gate, l, k, far.x[i] + far.rest[i])


@inner(fast=True)
def _weigh(one: Record, room: np.ndarray, prior: FloatArray, beta: float, lanes: int) -> None:
    """p of each state, from Q^(1-b) P^b."""
    total, states = room[0], one.states
    for k in range(states):
        state, ln_q = room[k], prior[one.threshold + k - 1] if k > 0 else 0.0
        for i in range(lanes):
            state.p[i] = beta * state.x[i] + (1.0 - beta) * ln_q
            total.arg[i] = max(total.arg[i], state.p[i]) if k > 0 else state.p[i]
    for i in range(lanes):
        total.ratio[i] = 0.0
    for k in range(states):
        state = room[k]
        for i in range(lanes):
            state.p[i] = exp_of_minus(total.arg[i] - state.p[i])
            total.ratio[i] += state.p[i]
    for k in range(states):
        state = room[k]
        for i in range(lanes):
            state.p[i] /= total.ratio[i]


@inner(fast=True)
def _average(state: Record, k: int, column: Record, lanes: int) -> None:
    """The probabilities of sweep k, the first being 0, enter their means and deviations."""
    share = 1.0 / (k + 1)
    for i in range(lanes):
        before, spread = (column.average[i], column.spread[i]) if k > 0 else (0.0, 0.0)
        change = state.p[i] - before
        column.average[i] = before + change * share
        column.spread[i] = spread + change * (state.p[i] - column.average[i])


@inner
def _follow(graph: Graph, chains: Chains, r: int, b: int, v: int, annealed: bool) -> None:
    """The variable moves, and the inputs of its children follow; so does ln P - ln Q, if it is wanted."""
    edges, tilts, mild, steep, size = graph.edges, graph.tilts, chains.mild, chains.steep, chains.size
    out, one, cell, moved = chains.draws[b], graph.variables[v], chains.cells[b, v], 0
    lanes = out.lanes
    for k in range(one.states if annealed else 0):
        ln_q, state = chains.prior[r, one.threshold + k - 1] if k > 0 else 0.0, chains.room[k]
        for i in range(lanes):
            out.gap[i] += state.x[i] - ln_q if out.state[i] == k else 0.0
            out.gap[i] -= state.x[i] - ln_q if cell.state[i] == k else 0.0
    for i in range(lanes):
        moved += out.state[i] != cell.state[i]
    for e in range(one.edge, one.edge_end if moved > 0 else one.edge):
        edge = edges[e]
        side, far = mild[edge.threshold], steep[edge.threshold]
        if size[r, edge.threshold] <= MILD:
            for k in range(1, one.states):
                up, down = tilts[edge.tilt + k - 1].up, tilts[edge.tilt + k - 1].down
                for i in range(lanes):
                    factor = up if out.state[i] == k else down if cell.state[i] == k else 1.0
                    side.odds[i] *= factor if out.state[i] != cell.state[i] else 1.0
            continue
        for i in range(out.used):
            if out.state[i] != cell.state[i]:
                new = tilts[edge.tilt + out.state[i] - 1].weight if out.state[i] > 0 else 0.0
                old = tilts[edge.tilt + cell.state[i] - 1].weight if cell.state[i] > 0 else 0.0
                far.x[i], lost = _added(far.x[i], new - old)
                far.rest[i] += lost
    for i in range(lanes):
        cell.state[i] = out.state[i]
