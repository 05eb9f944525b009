"""Complete states of a network side by side, a *lane* each: records of them, and draws of variables from their parents.

Lanes stand in *blocks* of 64, a row of evidence in one or more of them. Observed variables are absorbed in the biases;
the others are *hidden*, or *barren* if they have no observed descendant: they then follow from their parents.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from sbnet._types import FloatArray, Model, States
from sbnet.kernels.codes import LEAST, NOISY_OR, SIGMOID
from sbnet.kernels.compiling import inner, kernel
from sbnet.kernels.random import GOLDEN, uniform
from sbnet.kernels.sampling import generative
from sbnet.kernels.structs import struct
from sbnet.kernels.vector import exp_minus

Record: TypeAlias = Any  # an element of an array of structs
LANES = 64
"""Enough that loops along lanes cost more than what leads to them."""
KNOWN, OBSERVED, HIDDEN, BARREN = range(4)
"""Roles of a variable in a row: observed, and so are all its parents; observed; hidden; barren."""


def lanes(*names: str) -> list[Any]:
    """Fields with a number for each lane."""
    return [(name, "f8", LANES) for name in names]


edge_t = struct(  # from a variable to a threshold of a child
    ("variable", "i8"),  # the child
    ("threshold", "i8"),  # in the network
    ("level", "i8"),  # l
    ("gate", "i8"),
    ("tilt", "i8"),  # the first of the parent's tilts there, one for each state from 1 on
    ("reach", "f8"),  # how far the parent can move the input
)
tilt_t = struct(("weight", "f8"), ("up", "f8"), ("down", "f8"))  # w, e^w and e^-w; the last two if |w| <= 700
cell_t = struct(("state", "i8", LANES))  # of a variable
mild_t = struct(*lanes("odds"))  # e^x of a threshold, if it is mild
steep_t = struct(*lanes("x", "rest"))  # else its input, and what that has lost to rounding
column_t = struct(*lanes("average", "spread"))  # of P(v = k | all others) over sweeps: mean, sum of squared deviations
draw_t = struct(
    ("used", "i8"),  # lanes in use, the first ones
    ("lanes", "i8"),  # those and some more, so that no vector is cut: what loops run along
    ("seed", "u8", LANES),
    ("state", "i8", LANES),  # the one that is drawn
    *lanes("uniform"),  # random numbers
    *lanes("weight"),  # of particles
    *lanes("gap", "total"),  # ln P - ln Q of the present state, and its sum over sweeps
)
room_t = struct(  # for one variable at a time, by threshold or by state
    *lanes("x"),  # the input of a threshold; ln P of a state
    *lanes("p"),  # the probability of a state
    *lanes("ratio"),  # what children say to a state, inverted
    *lanes("arg", "power"),  # room for `vector`
    bits="power",
)


class Graph(NamedTuple):
    """The network as samplers read it."""

    variables: np.ndarray
    parents: np.ndarray  # of all variables
    edges: np.ndarray  # by parent
    tilts: np.ndarray  # by weight


def graph_of(model: Model) -> Graph:
    """The graph of a network, shared by all rows."""
    n, width = len(model.gate), model.n_states - 1
    child = np.repeat(np.arange(n), np.diff(model.indptr))
    variables, parents = generative(model)
    tilts, mild = np.zeros(len(model.weight), tilt_t), np.clip(model.weight, -700.0, 700.0)
    tilts["weight"], tilts["up"], tilts["down"] = model.weight, np.exp(mild), np.exp(-mild)
    copies = width[child[model.child_edge]]
    of = np.repeat(model.child_edge, copies)
    edges = np.zeros(len(of), edge_t)
    edges["variable"], edges["gate"] = child[of], model.gate[child[of]]
    ends = np.concatenate([[0], np.cumsum(copies)])
    edges["level"] = np.arange(1, len(of) + 1) - np.repeat(ends[:-1], copies)
    edges["threshold"] = model.threshold[child[of]] + edges["level"] - 1
    edges["tilt"] = model.block[of] + (edges["level"] - 1) * width[model.parent[of]]
    order = np.argsort(edges["tilt"])
    edges["reach"][order] = np.add.reduceat(np.abs(model.weight), edges["tilt"][order]) if len(of) else 0.0
    variables["edge"], variables["edge_end"] = ends[model.child_indptr[:-1]], ends[model.child_indptr[1:]]
    return Graph(variables, parents, edges, tilts)


class Chains(NamedTuple):
    """Rows of evidence, each in as many blocks of lanes as it needs."""

    roles: States  # rows by variables
    bias: FloatArray  # rows by thresholds, with the evidence absorbed
    size: FloatArray  # rows by thresholds: how large inputs can be; infinite if not sigmoid
    prior: FloatArray  # rows by thresholds: ln Q of a state, relative to that of state 0
    cells: np.ndarray  # blocks by variables
    columns: np.ndarray  # blocks by thresholds, for the state from which on it counts
    draws: np.ndarray  # by block
    mild: np.ndarray  # room for one block at a time, by threshold
    steep: np.ndarray  # likewise
    room: np.ndarray  # by state


def chains_of(graph: Graph, states: States, bias: FloatArray, number: int) -> Chains:
    """Room for so many chains of each row, the evidence in its place; `bias` is that of the network."""
    n, n_blocks, t, widest = len(states), len(states) * -(-number // LANES), len(bias), graph.variables["states"].max()
    blocks = (
        np.empty((n_blocks, states.shape[1]), cell_t),
        np.zeros((n_blocks, t), column_t),
        np.zeros(n_blocks, draw_t),
    )
    rows = np.zeros(states.shape, np.int8), np.repeat(bias[None], n, axis=0), np.zeros((n, t)), np.zeros((n, t))
    chains = Chains(*rows, *blocks, np.zeros(t, mild_t), np.zeros(t, steep_t), np.zeros(widest, room_t))
    _put_evidence(graph, chains, states, number)
    return chains


@kernel
def _put_evidence(graph: Graph, chains: Chains, states: States, number: int) -> None:
    """Roles, biases, sizes of inputs, states and lanes in use."""
    variables, edges, tilts = graph.variables, graph.edges, graph.tilts
    roles, bias, size, cells, draws = chains.roles, chains.bias, chains.size, chains.cells, chains.draws
    n_blocks = (number + LANES - 1) // LANES
    for r in range(len(states)):
        for v in range(len(variables) - 1, -1, -1):  # children first
            one, state = variables[v], states[r, v]
            role = KNOWN if state >= 0 else BARREN
            for e in range(one.edge, one.edge_end):
                edge = edges[e]
                child = roles[r, edge.variable]
                if state > 0:
                    bias[r, edge.threshold] += tilts[edge.tilt + state - 1].weight
                elif state < 0:
                    size[r, edge.threshold] += edge.reach
                    roles[r, edge.variable] = OBSERVED if child == KNOWN else child
                    role = HIDDEN if child != BARREN else role
            roles[r, v] = role
        for v in range(len(variables)):
            for t in range(variables[v].threshold, variables[v].threshold + variables[v].states - 1):
                size[r, t] = size[r, t] + abs(bias[r, t]) if variables[v].gate == SIGMOID else np.inf
        for b in range(r * n_blocks, (r + 1) * n_blocks):
            draws[b].used = min(number - (b - r * n_blocks) * LANES, LANES)
            draws[b].lanes = draws[b].used + -draws[b].used % 8
            for v in range(len(variables)):
                for i in range(LANES):
                    cells[b, v].state[i] = max(states[r, v], 0)


@inner
def set_inputs(graph: Graph, chains: Chains, r: int, b: int, v: int) -> int:
    """x of the thresholds of v, from 1 on: biases, and what parents add that are not observed."""
    one, parents, tilts, cells, roles = graph.variables[v], graph.parents, graph.tilts, chains.cells, chains.roles
    for l in range(1, one.states):  # noqa: E741 (the letter of the definition)
        room, bias = chains.room[l], chains.bias[r, one.threshold + l - 1]
        for i in range(LANES):
            room.x[i] = bias
        for e in range(one.parent, one.parent_end):
            parent = parents[e]
            for k in range(1, parent.width + 1 if roles[r, parent.variable] >= HIDDEN else 0):
                _add_weight(tilts[parent.block + (l - 1) * parent.width + k - 1], cells[b, parent.variable], k, room)
    return one.states - 1


@inner(fast=True)
def _add_weight(tilt: Record, cell: Record, state: int, out: Record) -> None:
    """Add a weight to x where the parent is in that state."""
    weight = tilt.weight
    for i in range(LANES):
        out.x[i] += weight if cell.state[i] == state else 0.0


@inner
def distribution(gate: int, n: int, room: np.ndarray) -> None:
    """p of the states 0 ... n from the inputs of n thresholds; no digit is lost where it is small."""
    for i in range(LANES):
        room[0].p[i] = 1.0
    for l in range(1, n + 1 if gate == SIGMOID else 0):  # noqa: E741
        one, below = room[l], room[l - 1]  # below has P(v >= l - 1) so far
        for i in range(LANES):
            one.arg[i] = abs(one.x[i])
        exp_minus(one)
        for i in range(LANES):
            share = below.p[i] / (1.0 + one.power[i])
            one.p[i] = share if one.x[i] >= 0.0 else share * one.power[i]
            below.p[i] = share * one.power[i] if one.x[i] >= 0.0 else share
    for k in range(n, 0 if gate != SIGMOID else n, -1):
        for i in range(LANES):  # room[0] has P(v <= k)
            y = max(room[k].x[i], LEAST) if gate == NOISY_OR else math.nan
            room[k].p[i] = -math.expm1(-y) * room[0].p[i]
            room[0].p[i] *= math.exp(-y)


@inner(fast=True)
def next_uniform(out: Record) -> None:
    """A random number in each lane."""
    for i in range(out.lanes):
        out.seed[i] += GOLDEN
        out.uniform[i] = uniform(out.seed[i])


@inner(fast=True)
def choose(n: int, room: np.ndarray, out: Record) -> None:
    """A state by its probability; random numbers are used up."""
    for i in range(out.lanes):
        out.state[i] = 0
    for k in range(1, n + 1):
        one = room[k]
        for i in range(out.lanes):
            out.state[i] = k if 0.0 <= out.uniform[i] < one.p[i] else out.state[i]
            out.uniform[i] -= one.p[i]
