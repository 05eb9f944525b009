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
from sbnet.kernels.chains import BARREN, HIDDEN, LANES, Chains, Graph, Record, choose, next_uniform
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
                if _ask_children(graph, chains, r, b, v) and beta[s] == 1.0:
                    _multiply(one, chains)
                else:
                    _add_logarithms(one, chains, r, b, beta[s])
                next_uniform(out)
                choose(one.states - 1, room, out)
                _follow(graph, chains, r, b, v, beta[s] < 1.0)
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
def _refresh(graph: Graph, chains: Chains, r: int, b: int) -> None:
    """All inputs, from the states: every variable moves there from state 0."""
    mild, steep, size, out = chains.mild, chains.steep, chains.size, chains.draws[b]
    for t in range(len(mild)):
        x = chains.bias[r, t]
        odds = math.exp(min(x, MILD))
        for i in range(LANES if size[r, t] <= MILD else 0):
            mild[t].odds[i] = odds
        for i in range(LANES if size[r, t] > MILD else 0):
            steep[t].x[i], steep[t].rest[i] = x, 0.0
    for v in range(chains.roles.shape[1]):
        cell = chains.cells[b, v]
        for i in range(LANES if chains.roles[r, v] >= HIDDEN else 0):
            out.state[i], cell.state[i] = cell.state[i], 0
        if chains.roles[r, v] >= HIDDEN:
            _follow(graph, chains, r, b, v, out.used == 0)


@inner(fast=True)
def _ask_children(graph: Graph, chains: Chains, r: int, b: int, v: int) -> bool:
    """What all children say to each state of v: products, and if need be logarithms. Are products enough?"""
    edges, tilts, one, cell, room = graph.edges, graph.tilts, graph.variables[v], chains.cells[b, v], chains.room
    cells, roles, size, mild, steep = chains.cells, chains.roles, chains.size, chains.mild, chains.steep
    states, used, far, tall = one.states, chains.draws[b].used, 0.0, 0.0
    none, other = room[0], room[1]
    for k in range(states):
        for i in range(LANES):
            room[k].ratio[i] = room[k].product[i] = room[k].arg[i] = 1.0
            room[k].gain[i] = 0.0
    for t in range(one.threshold, one.threshold + states - 1):
        far += size[r, t]
    simple, far = far <= MILD, far if far <= MILD else 0.0  # far: ln of the largest product there can be, or smallest
    for e in range(one.edge, one.edge_end):
        edge = edges[e]
        height, side, child = size[r, edge.threshold] + 1.0, mild[edge.threshold], cells[b, edge.variable]
        if roles[r, edge.variable] == BARREN:
            continue
        if height > MILD + 1.0:
            simple = False
            _say_log(edge, tilts, states, steep[edge.threshold], child, cell, used, room)
            continue
        if max(far + edge.reach, tall + height) > MILD:  # tall: that of the largest ratio
            _fold(states, room)
            tall = 0.0
            if far + edge.reach > MILD:
                _gather(states, used, room)
                simple, far = False, 0.0
        far, tall = far + edge.reach, tall + height
        if states > 2 or roles[r, edge.variable] == HIDDEN:
            _say(edge, tilts, states, side, child, cell, room)
        elif child.state[0] >= edge.level - 1:  # the usual case, which is quicker
            down = tilts[edge.tilt].down
            f = down if child.state[0] >= edge.level else 1.0
            f_up = f * tilts[edge.tilt].up
            for i in range(LANES):
                o = side.odds[i] * (down if cell.state[i] == 1 else 1.0)
                none.ratio[i] *= 1.0 + o
                other.ratio[i] *= f + o * f_up
    _fold(states, room)
    return simple


@inner(fast=True)
def _say(
    edge: Record, tilts: np.ndarray, states: int, side: Record, child: Record, cell: Record, room: np.ndarray
) -> None:
    """What a mild child says to each state, inverted."""
    none, one, level, up, down = room[0], room[1], edge.level, tilts[edge.tilt].up, tilts[edge.tilt].down
    for k in range(2, states):
        other = tilts[edge.tilt + k - 1].down
        for i in range(LANES):
            before = none.arg[i] if k > 2 else 1.0
            none.arg[i] = other if cell.state[i] == k else before
    for i in range(LANES):
        odds, other, state = side.odds[i], none.arg[i], child.state[i]  # loads in a branch would not become vectors
        o = odds * (down if cell.state[i] == 1 else other) if state >= level - 1 else 0.0
        none.ratio[i] *= 1.0 + o
        one.ratio[i] *= (1.0 + o * up) * (down if state >= level else 1.0)
        none.x[i] = o
    for k in range(2, states):
        one, up, down = room[k], tilts[edge.tilt + k - 1].up, tilts[edge.tilt + k - 1].down
        for i in range(LANES):
            one.ratio[i] *= (1.0 + none.x[i] * up) * (down if child.state[i] >= level else 1.0)


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
            room[k].gain[i] += thresholds.log_part(edge.gate, edge.level, child.state[i], x + (side.rest[i] + lost))


@inner(fast=True)
def _fold(states: int, room: np.ndarray) -> None:
    """The ratios so far enter the products, relative to state 0."""
    none = room[0]
    for k in range(1, states):
        one = room[k]
        for i in range(LANES):
            one.product[i] *= none.ratio[i] / one.ratio[i]
            one.ratio[i] = 1.0
    for i in range(LANES):
        none.ratio[i] = 1.0


@inner
def _gather(states: int, used: int, room: np.ndarray) -> None:
    """The products so far enter the sums of logarithms."""
    for k in range(1, states):
        for i in range(used):
            room[k].gain[i] += math.log(room[k].product[i])
            room[k].product[i] = 1.0


@inner(fast=True)
def _multiply(one: Record, chains: Chains) -> None:
    """p of each state, from products: P(v = k | parents) is as o_1 ... o_k (1 + o_k+2) ..., with the odds o_l."""
    room, mild, states, total = chains.room, chains.mild, one.states, chains.room[0]
    if states == 2:
        side, state = mild[one.threshold], room[1]
        for i in range(LANES):
            yes = side.odds[i] * state.product[i]
            state.p[i] = yes / (1.0 + yes)
        return
    for i in range(LANES):
        total.arg[i] = 0.0
    for k in range(states):
        state = room[k]
        for i in range(LANES):
            state.p[i] = state.product[i]
        for l in range(1, states):  # noqa: E741 (the letter of the definition)
            side = mild[one.threshold + l - 1]
            for i in range(LANES if l <= k else 0):
                state.p[i] *= side.odds[i]
            for i in range(LANES if l > k + 1 else 0):
                state.p[i] *= 1.0 + side.odds[i]
        for i in range(LANES):
            total.arg[i] += state.p[i]
    for k in range(states):
        state = room[k]
        for i in range(LANES):
            state.p[i] /= total.arg[i]


@inner
def _add_logarithms(one: Record, chains: Chains, r: int, b: int, beta: float) -> None:
    """p of each state, from sums: x = ln P(v = k | all others) but for a constant."""
    room, mild, steep, prior, used = chains.room, chains.mild, chains.steep, chains.prior, chains.draws[b].used
    _gather(one.states, used, room)
    for i in range(used):
        highest, total = -math.inf, 0.0
        for k in range(one.states):
            room[k].x[i] = room[k].gain[i]
            for l in range(1, one.states):  # noqa: E741
                t = one.threshold + l - 1
                x = math.log(mild[t].odds[i]) if chains.size[r, t] <= MILD else steep[t].x[i] + steep[t].rest[i]
                room[k].x[i] += thresholds.log_part(one.gate, l, k, x)
            ln_q = prior[r, one.threshold + k - 1] if k > 0 else 0.0
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


@inner
def _follow(graph: Graph, chains: Chains, r: int, b: int, v: int, annealed: bool) -> None:
    """The variable moves, and the inputs of its children follow; so does ln P - ln Q, if it is wanted."""
    edges, tilts, mild, steep, size = graph.edges, graph.tilts, chains.mild, chains.steep, chains.size
    out, one, cell, moved = chains.draws[b], graph.variables[v], chains.cells[b, v], 0
    for k in range(one.states if annealed else 0):
        ln_q, state = chains.prior[r, one.threshold + k - 1] if k > 0 else 0.0, chains.room[k]
        for i in range(LANES):
            out.gap[i] += state.x[i] - ln_q if out.state[i] == k else 0.0
            out.gap[i] -= state.x[i] - ln_q if cell.state[i] == k else 0.0
    for i in range(LANES):
        moved += out.state[i] != cell.state[i]
    for e in range(one.edge, one.edge_end if moved > 0 else one.edge):
        edge = edges[e]
        side, far = mild[edge.threshold], steep[edge.threshold]
        if size[r, edge.threshold] <= MILD:
            for k in range(1, one.states):
                up, down = tilts[edge.tilt + k - 1].up, tilts[edge.tilt + k - 1].down
                for i in range(LANES):
                    factor = up if out.state[i] == k else down if cell.state[i] == k else 1.0
                    side.odds[i] *= factor if out.state[i] != cell.state[i] else 1.0
            continue
        for i in range(out.used):
            if out.state[i] != cell.state[i]:
                new = tilts[edge.tilt + out.state[i] - 1].weight if out.state[i] > 0 else 0.0
                old = tilts[edge.tilt + cell.state[i] - 1].weight if cell.state[i] > 0 else 0.0
                far.x[i], lost = _added(far.x[i], new - old)
                far.rest[i] += lost
    for i in range(LANES):
        cell.state[i] = out.state[i]
