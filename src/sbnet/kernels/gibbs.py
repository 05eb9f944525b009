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

from sbnet._types import BoolArray, FloatArray, Model, States
from sbnet.kernels import thresholds
from sbnet.kernels.chains import MILD, Chains, added, chains_of, input_of, next_uniform, refresh
from sbnet.kernels.compiling import inner, kernel
from sbnet.kernels.random import GOLDEN, mix, row_seed
from sbnet.kernels.sampling import LANES, Record, draw, probability, set_inputs, sigmoid
from sbnet.kernels.vector import log
from sbnet.questions.reduction import live_variables, reduce

FRESH = 64
"""Sweeps after which inputs are summed anew, so that rounding does not pile up."""


@inner
def _ratios(tilts: np.ndarray, s: int, cell: Record, move: Record) -> None:
    """e^d and e^-d of a child for the move of a variable to its target; its tilts there are from s on."""
    for i in range(LANES):
        old, new = cell.state[i], move.target[i]
        move.ratio[i] = move.inverse[i] = 1.0
        if new != old and new > 0:
            move.ratio[i], move.inverse[i] = tilts[s + new - 1].up, tilts[s + new - 1].down
        if new != old and old > 0:
            move.ratio[i] *= tilts[s + old - 1].down
            move.inverse[i] *= tilts[s + old - 1].up


@inner
def _difference(tilts: np.ndarray, s: int, old: int, new: int) -> float:
    """d of a child whose parent goes from one state to another."""
    return (tilts[s + new - 1].weight if new > 0 else 0.0) - (tilts[s + old - 1].weight if old > 0 else 0.0)


@inner(fast=True)
def _say(side: Record, child: Record, level: int, move: Record) -> None:
    """What a mild child says to a move, inverted."""
    for i in range(LANES):
        one = side.p[i] + side.q[i] * move.inverse[i]
        zero = side.q[i] + side.p[i] * move.ratio[i]
        below = zero if child.state[i] == level - 1 else 1.0
        move.product[i] *= one if child.state[i] >= level else below


@inner(fast=True)
def _say_two(side: Record, child: Record, level: int, cell: Record, tilt: Record, move: Record) -> None:
    """Likewise, if a variable with two states goes from one to the other."""
    up, down = tilt.up, tilt.down
    for i in range(LANES):
        one = side.p[i] + side.q[i] * (down if cell.state[i] == 0 else up)
        zero = side.q[i] + side.p[i] * (up if cell.state[i] == 0 else down)
        below = zero if child.state[i] == level - 1 else 1.0
        move.product[i] *= one if child.state[i] >= level else below


@inner(fast=True)
def _say_observed(a: FloatArray, b: FloatArray, up: float, down: float, cell: Record, move: Record) -> None:
    """Likewise, if the child is observed, with a = p and b = q if it is 1."""
    for i in range(LANES):
        move.product[i] *= a[i] + b[i] * (up if cell.state[i] == 0 else down)


@inner
def _say_log(
    edge: Record, tilts: np.ndarray, side: Record, child: Record, cell: Record, used: int,
    move: Record,
) -> None:  # fmt: skip
    """What any child says to a move, by logarithms."""
    for i in range(used):
        a, c = thresholds.loads(edge.gate, edge.level, child.state[i])
        d = _difference(tilts, edge.tilt, cell.state[i], move.target[i])
        move.gain[i] += a * d
        if c != 0.0 and d != 0.0:
            x, lost = added(side.x[i], d)
            move.gain[i] -= c * (thresholds.t(edge.gate, x + (side.rest[i] + lost)) - side.t[i])


@inner(fast=True)
def _gather(moves: np.ndarray) -> None:
    """The logarithm of the products so far."""
    move, other = moves[0], moves[1]
    for i in range(LANES):
        move.power[i] = move.product[i] * other.product[i]
        move.product[i] = other.product[i] = 1.0
    log(move)
    for i in range(LANES):
        move.gain[i] -= move.arg[i]


@inner
def _ask_children(
    one: Record, edges: np.ndarray, tilts: np.ndarray, cells: np.ndarray, sides: np.ndarray, used: int,
    moves: np.ndarray,
) -> None:  # fmt: skip
    """What all children say to the move of a variable to its target: the logarithm of a ratio of probabilities."""
    cell, move, far = cells[one.variable, 0], moves[0], 0.0
    for i in range(LANES):
        move.product[i], moves[1].product[i], move.gain[i] = 1.0, 1.0, 0.0
    for e in range(one.edge, one.edge_end):
        edge = edges[e]
        side, child = sides[edge.side], cells[edge.variable, 0]
        if edge.mild == 0:
            _say_log(edge, tilts, side, child, cell, used, move)
            continue
        if far + edge.reach > MILD:
            _gather(moves)
            far = 0.0
        far += edge.reach
        if one.states == 2 and edge.state >= edge.level:
            _say_observed(side.p, side.q, tilts[edge.tilt].down, tilts[edge.tilt].up, cell, moves[e & 1])
        elif one.states == 2 and edge.state == edge.level - 1:
            _say_observed(side.q, side.p, tilts[edge.tilt].up, tilts[edge.tilt].down, cell, moves[e & 1])
        elif one.states == 2:
            _say_two(side, child, edge.level, cell, tilts[edge.tilt], moves[e & 1])
        else:
            _ratios(tilts, edge.tilt, cell, move)
            _say(side, child, edge.level, move)
    _gather(moves)


@inner
def _own(
    one: Record, sides: np.ndarray, mild: BoolArray, bias: FloatArray, used: int, x: FloatArray, room: Record,
    states: np.ndarray,
) -> None:  # fmt: skip
    """ln P(v = k | parents) of each state, relative to that of state 0."""
    n = one.states - 1
    if one.own >= 0 and n == 1 and mild[one.own]:
        side, state = sides[one.own], states[1]
        for i in range(LANES):
            room.power[i] = side.p[i] / side.q[i]
        log(room)
        for i in range(LANES):
            state.x[i] = room.arg[i]
        return
    for i in range(used if one.own >= 0 else 1):
        for l in range(n):  # noqa: E741 (the letter of the definition)
            x[l] = input_of(sides[one.own + l], mild[one.own + l], i) if one.own >= 0 else bias[one.threshold + l]
        for k in range(1, n + 1):
            states[k].x[i] = thresholds.log_odds(one.gate, k, x[:n])
    for k in range(1, n + 1):
        for i in range(LANES if one.own < 0 else 0):
            states[k].x[i] = states[k].x[0]


@inner
def _choose(
    one: Record, cell: Record, states: np.ndarray, prior: FloatArray, b: float, used: int, p: FloatArray,
    out: Record, columns: np.ndarray, move: Record,
) -> None:  # fmt: skip
    """Draw the target of a variable with more than two states."""
    for i in range(used):
        p[0] = b * states[-cell.state[i] % one.states].gain[i] if cell.state[i] > 0 else 0.0
        highest = p[0]
        for k in range(1, one.states):
            shift = (k - cell.state[i]) % one.states
            log_odds = states[k].x[i] + (states[shift].gain[i] if shift > 0 else 0.0)
            p[k] = (1.0 - b) * prior[one.threshold + k - 1] + b * log_odds
            highest = max(highest, p[k])
        total, above, move.target[i] = 0.0, 0.0, 0
        for k in range(one.states):
            p[k] = math.exp(p[k] - highest)
            total += p[k]
        for k in range(1, one.states):
            columns[one.threshold + k - 1].p[i] = p[k] / total
            if above <= out.uniform[i] < above + p[k] / total:
                move.target[i] = k
            above += p[k] / total


@inner
def _follow(
    one: Record, edges: np.ndarray, tilts: np.ndarray, cells: np.ndarray, sides: np.ndarray, used: int,
    move: Record,
) -> None:  # fmt: skip
    """A variable goes to its target, and the inputs of its children follow."""
    cell, moved = cells[one.variable, 0], 0
    for i in range(LANES):
        moved += move.target[i] != cell.state[i]
    for e in range(one.edge, one.edge_end if moved > 0 else one.edge):
        edge = edges[e]
        side = sides[edge.side]
        if edge.mild == 1 and one.states == 2:
            _turn_two(side, cell, tilts[edge.tilt], move)
            continue
        if edge.mild == 1:
            _ratios(tilts, edge.tilt, cell, move)
            _turn(side, move)
            continue
        for i in range(used):
            if move.target[i] != cell.state[i]:
                d = _difference(tilts, edge.tilt, cell.state[i], move.target[i])
                side.x[i], lost = added(side.x[i], d)
                side.rest[i] += lost
                side.t[i] = thresholds.t(edge.gate, side.x[i] + side.rest[i])
    for i in range(LANES):
        cell.state[i] = move.target[i]


@inner(fast=True)
def _turn(side: Record, move: Record) -> None:
    """A mild input moves by d."""
    for i in range(LANES):
        share = 1.0 / (side.q[i] + side.p[i] * move.ratio[i])
        side.p[i] *= move.ratio[i] * share
        side.q[i] *= share


@inner(fast=True)
def _turn_two(side: Record, cell: Record, tilt: Record, move: Record) -> None:
    """Likewise, if a variable with two states goes to its target."""
    up, down = tilt.up, tilt.down
    for i in range(LANES):
        step = move.target[i] - cell.state[i]
        ratio = up if step > 0 else down if step < 0 else 1.0
        share = 1.0 / (side.q[i] + side.p[i] * ratio)
        side.p[i] *= ratio * share
        side.q[i] *= share


@inner
def sweep(chains: Chains, prior: FloatArray, b: float, used: int) -> None:
    """Draw every hidden variable given all others, from Q^(1-b) P^b; from P at b = 1. So many lanes are used.

    `prior` has ln Q of each state from 1 on, relative to that of state 0, by threshold.
    """
    edges, tilts, cells, sides, columns = chains.edges, chains.tilts, chains.cells, chains.sides, chains.columns
    variables, states, bias, x = chains.variables, chains.states, chains.bias, chains.x
    moves, move, out, room = chains.moves, chains.moves[0], chains.draws[0], chains.inputs[0, 0]
    for j in range(len(variables)):
        one = variables[j]
        cell = cells[one.variable, 0]
        _own(one, sides, chains.mild, bias, used, x, room, states)
        for shift in range(1, one.states):
            for i in range(LANES):
                move.target[i] = 1 - cell.state[i] if one.states == 2 else (cell.state[i] + shift) % one.states
            _ask_children(one, edges, tilts, cells, sides, used, moves)
            for i in range(LANES):
                states[shift].gain[i] = move.gain[i]
        next_uniform(out)
        if one.states == 2:
            odds, column = states[1], columns[one.threshold]
            for i in range(LANES):
                log_odds = odds.x[i] + (move.gain[i] if cell.state[i] == 0 else -move.gain[i])
                room.x[i] = (1.0 - b) * prior[one.threshold] + b * log_odds
            sigmoid(room, 1.0, column)
            for i in range(LANES):
                move.target[i] = 1 if out.uniform[i] < column.p[i] else 0
        else:
            _choose(one, cell, states, prior, b, used, x, out, columns, move)
        _follow(one, edges, tilts, cells, sides, used, move)


@inner
def predict(model: Model, chains: Chains, live: BoolArray) -> None:
    """Variables without observed descendants follow from their parents, and are drawn from them."""
    out = chains.draws[0]
    for v in range(len(live)):
        if not live[v]:
            n = set_inputs(model, chains.known, v, chains.bias, chains.cells, chains.inputs)
            for k in range(n):
                probability(model.gate[v], chains.inputs, n, 0, k + 1, chains.columns[model.threshold[v] + k])
            next_uniform(out)
            draw(model.gate[v], chains.inputs, n, 0, chains.x, out)
            for i in range(LANES):
                chains.cells[v, 0].state[i] = out.state[i]


@inner
def average(model: Model, known: States, columns: np.ndarray, k: int) -> None:
    """The probabilities of sweep k, the first being 0, enter their means and deviations."""
    for v in range(len(known)):
        for t in range(model.threshold[v], model.threshold[v + 1] if known[v] < 0 else 0):
            _average(columns[t], k)


@inner(fast=True)
def _average(column: Record, k: int) -> None:
    share = 1.0 / (k + 1)
    for i in range(LANES):
        before, spread = (column.average[i], column.spread[i]) if k > 0 else (0.0, 0.0)
        change = column.p[i] - before
        column.average[i] = before + change * share
        column.spread[i] = spread + change * (column.p[i] - column.average[i])


@kernel
def gibbs_rows(
    model: Model, states: States, bias: FloatArray, seed: np.uint64, samples: int, burn_in: int, chains: int,
    means: FloatArray, within: FloatArray,
) -> None:  # fmt: skip
    """Means of the conditional probabilities in each chain, rows by chains by thresholds, and their variances."""
    flat = np.zeros(bias.shape[1])
    for r in range(len(states)):
        problem, live, own_seed = reduce(model, states[r]), live_variables(model, states[r]), row_seed(seed, states[r])
        room = chains_of(model, problem, states[r], bias[r])
        for first in range(0, chains, LANES):
            used = min(LANES, chains - first)
            start(room, own_seed, first)
            for k in range(burn_in + samples):
                if k % FRESH == 0:
                    refresh(room)
                sweep(room, flat, 1.0, used)
                if k >= burn_in:
                    predict(model, room, live)
                    average(model, states[r], room.columns, k - burn_in)
            for t in range(len(flat)):
                for i in range(used):
                    means[r, first + i, t] = room.columns[t].average[i]
                    within[r, first + i, t] = room.columns[t].spread[i] / (samples - 1)
        for v in range(len(live)):
            for k in range(model.n_states[v] - 1 if states[r, v] >= 0 else 0):
                means[r, :, model.threshold[v] + k] = 1.0 if states[r, v] == k + 1 else 0.0
                within[r, :, model.threshold[v] + k] = 0.0


@inner
def start(chains: Chains, seed: np.uint64, first: int) -> None:
    """Random states, and a stream of random numbers for each lane."""
    out = chains.draws[0]
    for i in range(LANES):
        out.seed[i] = mix(seed + np.uint64(first + i + 1) * GOLDEN)
    for j in range(len(chains.variables)):
        one = chains.variables[j]
        next_uniform(out)
        for i in range(LANES):
            chains.cells[one.variable, 0].state[i] = int(out.uniform[i] * one.states)
