"""What evidence makes of a network: exact simplifications, before anything is approximated."""

from __future__ import annotations

import sys
from typing import NamedTuple

import numpy as np
import scipy.sparse

from sbnet import kernels
from sbnet._types import BoolArray, FloatArray, IndexArray, Model, States
from sbnet.kernels import structs
from sbnet.model.network import Network

_COMPILER = "numba"


def columns(model: Model) -> tuple[IndexArray, IndexArray]:
    """The variable and the state of each column: a column is a state from 1 on, and has the number of a threshold."""
    variable = np.repeat(np.arange(len(model.n_states)), model.n_states - 1)
    return variable, np.arange(len(variable)) - model.threshold[variable] + 1


def absorb(network: Network, states: States) -> FloatArray:
    """Biases with the evidence absorbed: h_l plus the weights of the states that observed parents have."""
    return absorb_rows(network.model, network.bias, states)


def absorb_rows(model: Model, bias: FloatArray, states: States) -> FloatArray:
    """Biases with the evidence absorbed, for parameters that are not, or not yet, those of a network.

    Exact (an observed parent only shifts its child's biases), and one product for all rows whatever their masks.
    """
    variable, state = columns(model)
    on = states[:, variable] == state
    parents = np.zeros(len(model.n_states), np.bool_)
    parents[model.parent] = True
    if not on[:, parents[variable]].any():  # all observed states beside 0 are those of leaves, as a rule
        return np.repeat(bias[None, :], len(states), axis=0)
    threshold, column = _ends(model)
    shifted: FloatArray
    if len(on) == 1:  # as below, in the same order, without the cost of setting up a sparse matrix
        sums = np.bincount(threshold, weights=model.weight * on[0, column], minlength=len(bias))
        shifted = sums.astype(np.float64, copy=False)[None, :]
    else:
        weights = scipy.sparse.csr_array((model.weight, (threshold, column)), shape=(len(bias), len(bias)))
        shifted = np.ascontiguousarray((weights @ on.T.astype(np.float64)).T)
    shifted += bias
    return shifted


def _ends(model: Model) -> tuple[IndexArray, IndexArray]:
    """The threshold and the column that each weight of the network stands between."""
    child = np.repeat(np.arange(len(model.n_states)), np.diff(model.indptr))
    if (model.n_states == 2).all():
        return child, model.parent
    width = model.n_states[model.parent] - 1
    edge = np.repeat(np.arange(len(child)), np.diff(model.block))
    level, state = np.divmod(np.arange(len(edge)) - model.block[edge], width[edge])
    return model.threshold[child[edge]] + level, model.threshold[model.parent[edge]] + state


def live_variables(model: Model, states: States) -> BoolArray:
    """Variables that are observed or have an observed descendant; all others sum to one and drop out."""
    live: BoolArray = states >= 0
    new = np.flatnonzero(live)
    while len(new):
        above = model.parent[stretches(model.indptr, new)[0]]
        new = np.unique(above[~live[above]])
        live[new] = True
    return live


def reduce(model: Model, states: States) -> structs.Problem:
    """The problem that one pattern of observed variables poses."""
    if _COMPILER in sys.modules:  # somebody has paid for the compiler
        left: structs.Problem = kernels.reduction.reduce(model, np.ascontiguousarray(states))
        return left
    return reduce_with_arrays(model, states)


def reduce_with_arrays(model: Model, states: States) -> structs.Problem:
    """The same records as from the kernel, without the compiler."""
    live = live_variables(model, states)
    unknown = np.flatnonzero(live & (states < 0))
    place, width = _places(unknown, len(states)), model.n_states - 1
    child = np.repeat(np.arange(len(states)), np.diff(model.indptr))
    edge = np.flatnonzero(live[child] & (place[model.parent] >= 0))
    with_parents, edges_of = np.unique(child[edge], return_counts=True)
    hidden = np.zeros(len(unknown), structs.hidden_t)
    hidden["variable"], hidden["states"], hidden["column_end"] = unknown, width[unknown] + 1, np.cumsum(width[unknown])
    hidden["column"] = hidden["column_end"] - width[unknown]
    # Factors are thresholds; each has all edges of its variable, and each edge a slot for each state of the parent.
    own = np.repeat(np.arange(len(with_parents)), width[with_parents])
    begins = np.concatenate([[0], np.cumsum(edges_of)])
    of_factor, first = stretches(begins, own)
    factor, between = np.repeat(np.arange(len(own)), np.diff(first)), edge[of_factor]
    n_slots = width[model.parent[between]]
    end_of = np.cumsum(n_slots)
    factors = np.zeros(len(own), structs.factor_t)
    factors["variable"] = variable = with_parents[own]
    factors["level"] = np.arange(len(own)) - np.searchsorted(own, own) + 1
    factors["threshold"] = model.threshold[variable] + factors["level"] - 1
    factors["gate"], factors["hidden"] = model.gate[variable], place[variable]
    factors["slot_end"] = end_of[first[1:] - 1]
    factors["slot"] = np.concatenate([[0], factors["slot_end"]])[:-1]
    factors["parents"] = np.diff(first)
    factors["joint"] = np.multiply.reduceat(model.n_states[model.parent[between]].astype(np.float64), first[:-1])
    slots = np.zeros(int(n_slots.sum()), structs.slot_t)
    pair = np.repeat(np.arange(len(between)), n_slots)
    state = np.arange(len(slots)) - (end_of - n_slots)[pair]
    slots["parent"] = parent = place[model.parent[between[pair]]]
    slots["column"] = hidden["column"][parent] + state
    slots["place"] = model.block[between[pair]] + (factors["level"][factor[pair]] - 1) * n_slots[pair] + state
    slots["weight"] = model.weight[slots["place"]]
    hidden["own"] = np.where(np.isin(unknown, with_parents), np.searchsorted(variable, unknown), -1)
    parent = place[model.parent[between]]
    order = np.argsort(parent, kind="stable")
    children = np.zeros(len(between), structs.child_t)
    children["factor"], children["slot"] = factor[order], (end_of - n_slots)[order]
    hidden["child_end"] = np.cumsum(np.bincount(parent, minlength=len(unknown)))
    hidden["child"] = np.concatenate([[0], hidden["child_end"]])[:-1]
    known = np.setdiff1d(np.flatnonzero(live), with_parents, assume_unique=True)
    return structs.Problem(hidden, factors, slots, children, known, int(width[unknown].sum()))


def components(problem: structs.Problem) -> IndexArray:
    """The number of the group of each hidden variable: those of a group are coupled, directly or through others."""
    if _COMPILER in sys.modules:
        label: IndexArray = kernels.reduction.components(problem)
    else:
        label = _least_coupled(problem)
    return np.unique(label, return_inverse=True)[1].reshape(-1)


def _least_coupled(problem: structs.Problem) -> IndexArray:
    """For each hidden variable the first one that it is coupled with, directly or through others."""
    factors, parent, label = problem.factors, problem.slots["parent"], np.arange(len(problem.hidden))
    if not len(factors):
        return label
    size, inner = factors["slot_end"] - factors["slot"], np.flatnonzero(factors["hidden"] >= 0)
    own = factors["hidden"][inner]
    while True:
        least = np.minimum.reduceat(label[parent], factors["slot"])
        least[inner] = np.minimum(least[inner], label[own])
        new = label.copy()
        np.minimum.at(new, parent, np.repeat(least, size))
        np.minimum.at(new, own, least[inner])
        new = new[new]
        if np.array_equal(new, label):
            return label
        label = new


class Part(NamedTuple):
    """Some variables of a row, those of them that are hidden, and the model that these make: observed parents are gone,
    for they are absorbed in the biases.
    """

    variables: BoolArray
    hidden: BoolArray
    model: Model


def whole(model: Model, states: States) -> Part:
    """All that a row is about."""
    live = live_variables(model, states)
    return _part(model, live, live & (states < 0))


def uncoupled(model: Model, states: States) -> list[Part]:
    """The parts of a row that have nothing to do with each other; variables with known inputs stay with the first."""
    problem = reduce(model, states)
    label = components(problem)
    n = int(label.max(initial=0)) + 1
    if n == 1:
        return [whole(model, states)]
    parts = []
    first = label[problem.slots["parent"][problem.factors["slot"]]]
    for k in range(n):
        hidden, variables = np.zeros(len(states), np.bool_), np.zeros(len(states), np.bool_)
        hidden[problem.hidden["variable"][label == k]] = True
        variables[problem.factors["variable"][first == k]] = True
        if k == 0:
            variables[problem.known[states[problem.known] >= 0]] = True
        parts.append(_part(model, variables | hidden, hidden))
    return parts


def _part(model: Model, variables: BoolArray, hidden: BoolArray) -> Part:
    child = np.repeat(np.arange(len(variables)), np.diff(model.indptr))
    edges = np.flatnonzero(variables[child] & hidden[model.parent])
    place, kept = np.cumsum(variables) - 1, np.flatnonzero(variables)
    weight = model.weight[stretches(model.block, edges)[0]]
    made = make_model(place[child[edges]], place[model.parent[edges]], weight, model.gate[kept], model.n_states[kept])
    return Part(variables, hidden, made)


def with_gates(model: Model, hidden: BoolArray, weight: FloatArray) -> Model:
    """A model with further sigmoid variables of two states, the last ones, each a child of every hidden variable.

    `weight` has a row for each of them, with a number for each column of the hidden variables.
    """
    n, more, parents = len(model.gate), len(weight), np.flatnonzero(hidden)
    child = np.concatenate(
        [np.repeat(np.arange(n), np.diff(model.indptr)), np.repeat(np.arange(n, n + more), len(parents))]
    )
    parent = np.concatenate([model.parent, np.tile(parents, more)])
    gate = np.append(model.gate, np.zeros(more, model.gate.dtype))
    states = np.append(model.n_states, np.full(more, 2))
    return make_model(child, parent, np.append(model.weight, weight), gate, states)


def make_model(child: IndexArray, parent: IndexArray, weight: FloatArray, gate: States, n_states: IndexArray) -> Model:
    """The arrays that kernels read, from edges in the order of their children."""
    n, start = len(gate), np.zeros(1, np.int64)
    order = np.argsort(parent, kind="stable")
    indptr = np.concatenate([start, np.cumsum(np.bincount(child, minlength=n))])
    child_indptr = np.concatenate([start, np.cumsum(np.bincount(parent, minlength=n))])
    threshold = np.concatenate([start, np.cumsum(n_states - 1)])
    block = np.concatenate([start, np.cumsum((n_states[child] - 1) * (n_states[parent] - 1))])
    return Model(indptr, parent, child_indptr, child[order], order, weight, gate, n_states, threshold, block)


def stretches(ptr: IndexArray, which: IndexArray) -> tuple[IndexArray, IndexArray]:
    """The places between ``ptr[k]`` and ``ptr[k + 1]`` for each k, end to end, and where each stretch begins."""
    size = np.diff(ptr)[which]
    begins = np.concatenate([[0], np.cumsum(size)])
    return np.arange(begins[-1]) + np.repeat(ptr[which] - begins[:-1], size), begins


def _places(chosen: IndexArray, n: int) -> IndexArray:
    """Where each of n things is among the chosen ones; -1 for none, and for the number -1."""
    place = np.full(n + 1, -1, np.int64)
    place[chosen] = np.arange(len(chosen))
    return place
