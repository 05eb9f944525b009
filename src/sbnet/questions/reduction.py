"""What evidence makes of a network: exact simplifications, before anything is approximated."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy

from sbnet._types import BoolArray, FloatArray, IndexArray, Model, States
from sbnet.kernels import structs
from sbnet.model.components import connected
from sbnet.model.network import Network

_GENERATIONS = 32  # of variables whose parents are found all at once


def columns_of_hidden(model: Model, problem: structs.Problem) -> IndexArray:
    """The number in the network of each column of the hidden variables of a problem."""
    hidden, numbers = problem.hidden, np.empty(problem.n_columns, np.int64)
    width = hidden["states"] - 1
    k = np.repeat(np.arange(len(hidden)), width)
    state = np.arange(len(k)) - (np.cumsum(width) - width)[k]
    numbers[hidden["column"][k] + state] = model.threshold[hidden["variable"][k]] + state
    return numbers


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
    parents = np.zeros(len(model.n_states), np.bool_)
    parents[model.parent] = True
    if not ((states > 0) & parents).any():  # all observed states beside 0 are those of leaves, as a rule
        return np.repeat(bias[None, :], len(states), axis=0)
    variable, state = columns(model)
    on = states[:, variable] == state
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
    if len(model.weight) == len(child) and (model.n_states == 2).all():  # an edge into a table has no weight
        return child, model.parent
    width = model.n_states[model.parent] - 1
    edge = np.repeat(np.arange(len(child)), np.diff(model.block))
    level, state = np.divmod(np.arange(len(edge)) - model.block[edge], width[edge])
    return model.threshold[child[edge]] + level, model.threshold[model.parent[edge]] + state


def live_variables(model: Model, states: States) -> BoolArray:
    """Variables that are observed or have an observed descendant; all others sum to one and drop out."""
    live: BoolArray = states >= 0
    new = np.flatnonzero(live)
    for _ in range(_GENERATIONS):
        if not len(new) or live.all():
            return live
        above = np.zeros(len(live), np.bool_)
        above[model.parent[stretches(model.indptr, new)[0]]] = True
        new = np.flatnonzero(above > live)
        live[new] = True
    for v in range(int(new.max(initial=-1)), -1, -1):  # a long chain
        if live[v]:
            live[model.parent[model.indptr[v] : model.indptr[v + 1]]] = True
    return live


def reduce(model: Model, states: States) -> structs.Problem:
    """The problem that one pattern of observed variables poses."""
    live, width = live_variables(model, states), model.n_states - 1
    kept, unknown = np.flatnonzero(live), np.flatnonzero(live & (states < 0))
    place = np.full(len(live), -1)  # among the hidden ones
    place[unknown] = np.arange(len(unknown))
    edge, begin = stretches(model.indptr, kept)
    parent = place[model.parent[edge]]
    open_ = parent >= 0
    count = np.diff(np.append(0, np.cumsum(open_))[begin])  # hidden parents of each variable
    fed = kept[count > 0]
    hidden = np.zeros(len(unknown), structs.hidden_t)
    hidden["variable"], hidden["states"], hidden["column_end"] = unknown, width[unknown] + 1, np.cumsum(width[unknown])
    hidden["column"] = hidden["column_end"] - width[unknown]
    first_factor = np.full(len(live), -1)
    first_factor[fed] = np.cumsum(width[fed]) - width[fed]
    hidden["own"] = first_factor[unknown]
    factors, slots, children = _list_factors(model, fed, count[count > 0], edge[open_], parent[open_], hidden)
    factors["hidden"] = place[factors["variable"]]
    return structs.Problem(hidden, factors, slots, children, kept[count == 0], int(width[unknown].sum()))


def _list_factors(
    model: Model, fed: IndexArray, count: IndexArray, edge: IndexArray, parent: IndexArray, hidden: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Factors, their slots, and the children of hidden variables: of the variables that have hidden parents, so many
    each. A variable has a factor for each threshold, a factor all edges, and an edge a slot for each state.
    """
    width = model.n_states - 1
    own, begin = np.repeat(np.arange(len(fed)), width[fed]), np.append(0, np.cumsum(count))
    if len(own) > len(fed):
        among, begin = stretches(begin, own)
        edge, parent = edge[among], parent[among]
    factors, variable, size = np.zeros(len(own), structs.factor_t), fed[own], hidden["states"][parent] - 1
    level, end = np.arange(len(own)) - np.searchsorted(own, own), np.cumsum(size)
    factors["variable"], factors["level"], factors["threshold"] = variable, level + 1, model.threshold[variable] + level
    factors["gate"], factors["parents"], factors["slot_end"] = model.gate[variable], np.diff(begin), end[begin[1:] - 1]
    factors["slot"][1:] = factors["slot_end"][:-1]
    with np.errstate(over="ignore"):  # ten thousand parents have infinitely many joint states
        factors["joint"] = np.multiply.reduceat(size + 1.0, begin[:-1]) if len(own) else 1.0
    factor = np.repeat(np.arange(len(own)), np.diff(begin))
    order = np.argsort(parent.astype(np.int16 if len(hidden) < 1 << 15 else np.int64), kind="stable")
    children = np.zeros(len(edge), structs.child_t)
    children["factor"], children["slot"] = factor[order], (end - size)[order]
    children["place"] = (np.arange(len(edge)) - begin[factor])[order]
    hidden["child_end"] = np.cumsum(np.bincount(parent, minlength=len(hidden)))
    hidden["child"][1:] = hidden["child_end"][:-1]
    place, column = model.block[edge] + level[factor] * size, hidden["column"][parent]
    if len(edge) and end[-1] > len(edge):
        state = np.arange(end[-1]) - np.repeat(end - size, size)
        parent, place, column = np.repeat(parent, size), np.repeat(place, size) + state, np.repeat(column, size) + state
    slots = np.zeros(len(place), structs.slot_t)
    slots["parent"], slots["place"], slots["column"], slots["weight"] = parent, place, column, model.weight[place]
    return factors, slots, children


def components(problem: structs.Problem) -> IndexArray:
    """The number of the group of each hidden variable: those of a group are coupled, directly or through others."""
    factors, parent = problem.factors, problem.slots["parent"]
    if not len(factors):
        return np.arange(len(problem.hidden))
    one = np.where(factors["hidden"] >= 0, factors["hidden"], parent[factors["slot"]])
    return connected(len(problem.hidden), np.repeat(one, factors["slot_end"] - factors["slot"]), parent)


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
    kept = np.flatnonzero(variables)
    edge, begin = stretches(model.indptr, kept)
    mine = hidden[model.parent[edge]]
    edge, child, place = edge[mine], np.repeat(np.arange(len(kept)), np.diff(begin))[mine], np.cumsum(variables) - 1
    weight = model.weight[stretches(model.block, edge)[0]]
    made = make_model(child, place[model.parent[edge]], weight, model.gate[kept], model.n_states[kept])
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
