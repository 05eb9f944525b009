"""What evidence makes of a network: exact simplifications, before anything is approximated."""

from __future__ import annotations

import sys

import numpy as np
import scipy.sparse

from sbnet import kernels
from sbnet._types import BoolArray, FloatArray, IndexArray, Model, Problem, States
from sbnet.kernels import structs
from sbnet.model.components import connected, members
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
    threshold, column = ends_of_weights(model)
    shifted: FloatArray
    if len(on) == 1:  # as below, in the same order, without the cost of setting up a sparse matrix
        sums = np.bincount(threshold, weights=model.weight * on[0, column], minlength=len(bias))
        shifted = sums.astype(np.float64, copy=False)[None, :]
    else:
        weights = scipy.sparse.csr_array((model.weight, (threshold, column)), shape=(len(bias), len(bias)))
        shifted = np.ascontiguousarray((weights @ on.T.astype(np.float64)).T)
    shifted += bias
    return shifted


def ends_of_weights(model: Model) -> tuple[IndexArray, IndexArray]:
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


def coupled(problem: Problem) -> IndexArray:
    """The number of the group of each hidden unit: those of a group are coupled, directly or through others."""
    n, n_factors = len(problem.hidden), len(problem.factor)
    sizes = np.diff(problem.ptr)
    inner = np.flatnonzero(problem.own >= 0)
    if n_factors and _near_all(problem, int(np.argmax(sizes)), inner):
        return np.zeros(n, np.int64)
    factor = np.concatenate([np.repeat(np.arange(n_factors), sizes), inner])
    unit = np.concatenate([problem.parent, problem.own[inner]])
    return connected(n + n_factors, unit, n + factor)[:n]


def _near_all(problem: Problem, f: int, inner: IndexArray) -> bool:
    """Does factor f couple all hidden units, those that share another factor with one of its own included?"""
    near = np.zeros(len(problem.hidden), np.bool_)
    near[problem.parent[problem.ptr[f] : problem.ptr[f + 1]]] = True
    near[problem.own[f : f + 1][problem.own[f : f + 1] >= 0]] = True
    met = np.logical_or.reduceat(near[problem.parent], problem.ptr[:-1])
    met[inner] |= near[problem.own[inner]]
    near[problem.parent[np.repeat(met, np.diff(problem.ptr))]] = True
    near[problem.own[inner[met[inner]]]] = True
    return bool(near.all())


def uncoupled(problem: Problem) -> list[Problem]:
    """The parts of a problem that have nothing to do with each other; units with known inputs stay with the first."""
    label = coupled(problem)
    n = int(label.max(initial=0)) + 1
    if n == 1:
        return [problem]
    factors = members(label[problem.parent[problem.ptr[:-1]]], n)
    parts = [_part(problem, *both) for both in zip(members(label, n), factors, strict=True)]
    return [parts[0]._replace(known=problem.known), *parts[1:]]


def _part(problem: Problem, units: IndexArray, factors: IndexArray) -> Problem:
    """What is left of a problem with some of its hidden units, and the factors that they have."""
    slots, ptr = stretches(problem.ptr, factors)
    children, child_ptr = stretches(problem.child_ptr, units)
    unit, factor = _places(units, len(problem.hidden)), _places(factors, len(problem.factor))
    slot = _places(slots, len(problem.parent))
    return Problem(
        problem.hidden[units], factor[problem.factor_of[units]], problem.factor[factors], unit[problem.own[factors]],
        ptr, unit[problem.parent[slots]], problem.weight[slots], problem.edge[slots], child_ptr,
        factor[problem.child[children]], slot[problem.child_slot[children]], problem.known[:0], problem.gate,
    )  # fmt: skip


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
