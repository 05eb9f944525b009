"""Chains side by side: complete states of a network for one row of evidence, and the inputs that follow from them."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from sbnet._types import BoolArray, FloatArray, Model, States
from sbnet.kernels import thresholds
from sbnet.kernels.codes import SIGMOID
from sbnet.kernels.compiling import inner
from sbnet.kernels.random import GOLDEN, uniform
from sbnet.kernels.sampling import LANES, Record, add_weight, cell_t, draw_t, input_t, lanes, sigmoid, widest
from sbnet.kernels.structs import Problem, struct

MILD = 700.0
"""The largest input of a mild threshold: e^-700 is an ordinary number."""

variable_t = struct(  # hidden, with an observed descendant
    ("variable", "i8"),  # its number in the network
    ("states", "i8"),  # how many it has
    ("gate", "i8"),
    ("threshold", "i8"),  # its first one in the network
    ("own", "i8"),  # its first side, or -1 if its inputs are known
    ("edge", "i8"),  # where its edges begin, and end
    ("edge_end", "i8"),
)
edge_t = struct(  # from a hidden variable to a threshold of a child
    ("side", "i8"),
    ("tilt", "i8"),  # the first of the parent's tilts there
    ("reach", "f8"),  # how far the parent can move the input
    ("variable", "i8"),  # the child
    ("state", "i8"),  # its state, or -1 if it is hidden
    ("level", "i8"),
    ("gate", "i8"),
    ("mild", "i8"),
)
tilt_t = struct(("weight", "f8"), ("up", "f8"), ("down", "f8"))  # w, e^w and e^-w of a state of a parent
side_t = struct(  # a threshold with hidden parents
    *lanes("x", "rest"),  # its input, and what that has lost to rounding
    *lanes("p", "q"),  # sigma(x) and its complement, if it is mild
    *lanes("t"),  # t(x), if it is not
)
state_t = struct(*lanes("x", "gain"))  # of a state: ln P relative to state 0; what children say to a move
move_t = struct(
    ("target", "i8", LANES),  # where a variable goes, or would go
    *lanes("ratio", "inverse"),  # e^d and e^-d
    *lanes("product", "gain"),  # what children say: a product of ratios; a sum of logarithms
    *lanes("arg", "power"),  # room for `vector`
    bits="power",
)
column_t = struct(
    *lanes("p"),  # the probability of a state, given all other variables, at the last draw
    *lanes("average", "spread"),  # its mean over sweeps, and the sum of its squared deviations
)


class Chains(NamedTuple):
    """Complete states of a network side by side, and what follows from them."""

    known: States  # the evidence, -1 for none
    bias: FloatArray  # by threshold, with the evidence absorbed
    variables: np.ndarray
    edges: np.ndarray
    tilts: np.ndarray
    cells: np.ndarray  # by variable of the network: its states; one block
    factors: np.ndarray  # of the problem: what a side is
    mild: BoolArray  # by side
    sides: np.ndarray
    columns: np.ndarray  # by threshold of the network, for the state from which on it counts
    states: np.ndarray  # room, by state
    inputs: np.ndarray  # room, by threshold; one block
    x: FloatArray  # room, by threshold or state
    moves: np.ndarray  # room, two
    draws: np.ndarray  # room, one, and the seeds


@inner
def chains_of(model: Model, problem: Problem, known: States, bias: FloatArray) -> Chains:
    """For one row of evidence."""
    sides, tilts = np.zeros(len(problem.factors), side_t), np.zeros(len(problem.slots), tilt_t)
    mild = np.zeros(len(sides), np.bool_)
    for f in range(len(sides)):
        factor, size = problem.factors[f], abs(bias[problem.factors[f].threshold])
        for s in range(factor.slot, factor.slot_end):
            tilts[s].weight = problem.slots[s].weight
            size += abs(tilts[s].weight)
        mild[f] = factor.gate == SIGMOID and size <= MILD
        for s in range(factor.slot, factor.slot_end if mild[f] else factor.slot):
            tilts[s].up, tilts[s].down = math.exp(tilts[s].weight), math.exp(-tilts[s].weight)
    variables, edges = np.zeros(len(problem.hidden), variable_t), np.zeros(len(problem.children), edge_t)
    for j in range(len(variables)):
        one, hidden = variables[j], problem.hidden[j]
        one.variable, one.states, one.own = hidden.variable, hidden.states, hidden.own
        one.edge, one.edge_end = hidden.child, hidden.child_end
        one.gate, one.threshold = model.gate[one.variable], model.threshold[one.variable]
        for c in range(one.edge, one.edge_end):
            edge, child = edges[c], problem.children[c]
            factor, low, high = problem.factors[child.factor], 0.0, 0.0
            for s in range(child.slot, child.slot + one.states - 1):
                low, high = min(low, tilts[s].weight), max(high, tilts[s].weight)
            edge.side, edge.tilt, edge.reach, edge.state = child.factor, child.slot, high - low, known[factor.variable]
            edge.variable, edge.level, edge.gate = factor.variable, factor.level, factor.gate
            edge.mild = mild[child.factor]
    cells, most = np.zeros((len(known), 1), cell_t), widest(model)
    for v in range(len(known)):
        for i in range(LANES):
            cells[v, 0].state[i] = max(known[v], 0)
    return Chains(
        known, bias, variables, edges, tilts, cells, problem.factors, mild, sides, np.zeros(len(bias), column_t),
        np.zeros(most + 1, state_t), np.zeros((most, 1), input_t), np.zeros(most + 1), np.zeros(2, move_t),
        np.zeros(1, draw_t),
    )  # fmt: skip


@inner(fast=True)
def next_uniform(out: Record) -> None:
    """A random number in each lane."""
    for i in range(LANES):
        out.seed[i] += GOLDEN
        out.uniform[i] = uniform(out.seed[i])


@inner
def added(x: float, y: float) -> tuple[float, float]:
    """x + y, and what its rounding has lost (Knuth's two-sum)."""
    total = x + y
    back = total - x
    return total, (x - (total - back)) + (y - back)


@inner
def refresh(chains: Chains) -> None:
    """The inputs of all sides, from the states."""
    variables, edges, tilts, cells, sides = chains.variables, chains.edges, chains.tilts, chains.cells, chains.sides
    room = chains.inputs[0, 0]
    for f in range(len(sides)):
        for i in range(LANES):
            sides[f].x[i], sides[f].rest[i] = chains.bias[chains.factors[f].threshold], 0.0
    for j in range(len(variables)):
        one = variables[j]
        for e in range(one.edge, one.edge_end):
            edge, cell = edges[e], cells[one.variable, 0]
            side = sides[edge.side]
            for k in range(1, one.states):
                weight = tilts[edge.tilt + k - 1].weight
                if edge.mild == 1:
                    add_weight(side, cell, k, weight)
                    continue
                for i in range(LANES):
                    side.x[i], lost = added(side.x[i], weight if cell.state[i] == k else 0.0)
                    side.rest[i] += lost
    for f in range(len(sides)):
        side = sides[f]
        if not chains.mild[f]:
            for i in range(LANES):
                side.t[i] = thresholds.t(chains.factors[f].gate, side.x[i] + side.rest[i])
            continue
        for i in range(LANES):
            room.x[i] = side.x[i]
        sigmoid(room, 1.0, side)
        for i in range(LANES):
            side.q[i] = (room.power[i] if room.x[i] >= 0.0 else 1.0) / (1.0 + room.power[i])


@inner
def input_of(side: Record, mild: bool, i: int) -> float:
    """x of a lane."""
    return math.log(side.p[i] / side.q[i]) if mild else side.x[i] + side.rest[i]
