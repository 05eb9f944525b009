"""Complete states of a network side by side, a *lane* each: records of them, and draws of variables from their parents.

Lanes stand in *blocks* of 64, a row of evidence in one or more of them. Observed variables are absorbed in the biases;
the others are *hidden*, or *barren* if they have no observed descendant: they then follow from their parents.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import scipy

from sbnet._types import FloatArray, Model, States
from sbnet.kernels.codes import LEAST, NOISY_OR, SIGMOID
from sbnet.kernels.compiling import inner
from sbnet.kernels.random import GOLDEN, uniform
from sbnet.kernels.sampling import generative
from sbnet.kernels.structs import struct
from sbnet.kernels.vector import exp_minus

Record: TypeAlias = Any  # an element of an array of structs
LANES = 64
"""Enough that loops along lanes cost more than what leads to them."""
OBSERVED, HIDDEN, BARREN = 0, 1, 2
"""Roles of a variable in a row."""


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
side_t = struct(  # a threshold whose input is random, or that of a variable that is not observed
    *lanes("odds"),  # e^x, if it is mild
    *lanes("x", "rest", "t"),  # else its input, what that has lost to rounding, and t(x)
)
column_t = struct(*lanes("average", "spread"))  # of P(v = k | all others) over sweeps: mean, sum of squared deviations
draw_t = struct(
    ("used", "i8"),  # lanes in use, the first ones
    ("seed", "u8", LANES),
    *lanes("uniform"),  # random numbers
    *lanes("weight"),  # of particles
    *lanes("gap", "total"),  # ln P - ln Q of the present state, and its sum over sweeps
)
room_t = struct(  # for one variable at a time, by threshold or by state
    *lanes("x"),  # the input of a threshold; ln P of a state
    *lanes("p"),  # the probability of a state
    *lanes("ratio", "product", "gain"),  # what children say to a state: so far, in all; the sum of its logarithms
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
    """Of a network, for all rows."""
    n, width = len(model.gate), model.n_states - 1
    child = np.repeat(np.arange(n), np.diff(model.indptr))
    variables, parents, *_ = generative(model, model.weight)
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
    """Rows of evidence in blocks of lanes."""

    roles: States  # blocks by variables
    bias: FloatArray  # blocks by thresholds, with the evidence absorbed
    prior: FloatArray  # blocks by thresholds: ln Q of a state, relative to that of state 0
    cells: np.ndarray  # blocks by variables
    columns: np.ndarray  # blocks by thresholds, for the state from which on it counts
    draws: np.ndarray  # by block
    size: FloatArray  # blocks by thresholds: how large inputs can be; infinite if not sigmoid, -1 if known
    sides: np.ndarray  # room for one block at a time, by threshold
    room: np.ndarray  # by state
    new: np.ndarray  # the state that a variable goes to; one


def chains_of(model: Model, graph: Graph, states: States, bias: FloatArray, number: int) -> Chains:
    """Room for so many chains of each row, the evidence in its place."""
    n_blocks, width, t, live = -(-number // LANES), int(model.n_states.max(initial=2)), bias.shape[1], states >= 0
    for v in range(states.shape[1] - 1, -1, -1):  # observed, or with an observed descendant
        live[:, model.parent[model.indptr[v] : model.indptr[v + 1]]] |= live[:, v, None]
    roles = np.where(states >= 0, OBSERVED, np.where(live, HIDDEN, BARREN)).astype(np.int8)
    variable, edges = np.repeat(np.arange(len(model.gate)), model.n_states - 1), graph.edges
    parent = np.repeat(np.arange(len(model.gate)), graph.variables["edge_end"] - graph.variables["edge"])
    reach = scipy.sparse.csr_array(
        (np.maximum(edges["reach"], 1e-300), (edges["threshold"], parent)), shape=(t, len(model.gate))
    )
    size = (reach @ (states < 0).T.astype(np.float64)).T
    size = np.where((states[:, variable] < 0) | (size > 0.0), np.abs(bias) + size, -1.0)
    size[(model.gate[variable] != SIGMOID) & (size >= 0.0)] = np.inf
    roles, bias, states, size = (np.repeat(values, n_blocks, axis=0) for values in (roles, bias, states, size))
    cells, draws = np.empty(states.shape, cell_t), np.zeros(len(states), draw_t)
    cells["state"] = np.maximum(states, 0)[:, :, None]
    draws["used"] = np.minimum(number - np.arange(len(states)) % n_blocks * LANES, LANES)
    columns, room = np.zeros(bias.shape, column_t), (np.zeros(t, side_t), np.zeros(width, room_t), np.zeros(1, cell_t))
    return Chains(roles, bias, np.zeros_like(bias), cells, columns, draws, size, *room)


@inner
def set_inputs(graph: Graph, chains: Chains, b: int, v: int) -> int:
    """x of the thresholds of v, from 1 on: biases, and what parents add that are not observed."""
    one, parents, tilts, cells, roles = graph.variables[v], graph.parents, graph.tilts, chains.cells, chains.roles
    for l in range(1, one.states):  # noqa: E741 (the letter of the definition)
        room, bias = chains.room[l], chains.bias[b, one.threshold + l - 1]
        for i in range(LANES):
            room.x[i] = bias
        for e in range(one.parent, one.parent_end):
            parent = parents[e]
            for k in range(1, parent.width + 1 if roles[b, parent.variable] != OBSERVED else 0):
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
    for i in range(LANES):
        out.seed[i] += GOLDEN
        out.uniform[i] = uniform(out.seed[i])


@inner(fast=True)
def choose(n: int, room: np.ndarray, out: Record, cell: Record) -> None:
    """A state by its probability; random numbers are used up."""
    for i in range(LANES):
        cell.state[i] = 0
    for k in range(1, n + 1):
        one = room[k]
        for i in range(LANES):
            rest = out.uniform[i]
            cell.state[i] = k if 0.0 <= rest < one.p[i] else cell.state[i]
            out.uniform[i] = rest - one.p[i]
