"""The exact reductions: evidence is absorbed, and variables without an observed descendant drop out."""

from __future__ import annotations

import numpy as np

from sbnet._types import BoolArray, IndexArray, Model, States
from sbnet.kernels.compiling import inner, kernel
from sbnet.kernels.structs import Problem, child_t, factor_t, hidden_t, slot_t


@kernel
def live_variables(model: Model, states: States) -> BoolArray:
    """Variables that are observed or have an observed descendant; all others sum to one and drop out."""
    live = states >= 0
    for v in range(len(states) - 1, -1, -1):
        if live[v]:
            for e in range(model.indptr[v], model.indptr[v + 1]):
                live[model.parent[e]] = True
    return live


@kernel
def reduce(model: Model, states: States) -> Problem:
    """The problem that one pattern of observed variables poses."""
    live, place = live_variables(model, states), np.full(len(states), -1)  # place among the hidden ones
    n_hidden = n_factors = n_slots = n_known = n_children = n_columns = 0
    for v in range(len(states)):
        if live[v] and states[v] < 0:
            place[v] = n_hidden
            n_hidden += 1
            n_columns += model.n_states[v] - 1
    for v in range(len(states)):
        if live[v]:
            columns = parents = 0
            for e in range(model.indptr[v], model.indptr[v + 1]):
                if place[model.parent[e]] >= 0:
                    columns, parents = columns + model.n_states[model.parent[e]] - 1, parents + 1
            thresholds = model.n_states[v] - 1 if parents > 0 else 0
            n_factors += thresholds
            n_slots += thresholds * columns
            n_children += thresholds * parents
            n_known += 1 if parents == 0 else 0
    hidden, factors, slots = np.zeros(n_hidden, hidden_t), np.zeros(n_factors, factor_t), np.zeros(n_slots, slot_t)
    children, known = np.zeros(n_children, child_t), np.zeros(n_known, np.int64)
    _list_hidden(model.n_states, place, hidden)
    _list_factors(model, live, place, hidden, factors, slots, known)
    _list_children(hidden, factors, slots, children)
    return Problem(hidden, factors, slots, children, known, n_columns)


@inner
def _list_hidden(n_states: IndexArray, place: IndexArray, hidden: np.ndarray) -> None:
    column = 0
    for v in range(len(place)):
        if place[v] >= 0:
            one = hidden[place[v]]
            one.variable, one.states, one.own, one.column = v, n_states[v], -1, column
            column += n_states[v] - 1
            one.column_end = column


@inner
def _list_factors(
    model: Model, live: BoolArray, place: IndexArray, hidden: np.ndarray, factors: np.ndarray, slots: np.ndarray,
    known: IndexArray,
) -> None:  # fmt: skip
    """The thresholds of each variable that has hidden parents, and their slots; the variables that have none."""
    f = s = n_known = 0
    for v in range(len(place)):
        if not live[v]:
            continue
        first = f
        for level in range(1, model.n_states[v]):
            begin = s
            for e in range(model.indptr[v], model.indptr[v + 1]):
                j = place[model.parent[e]]
                if j < 0:
                    continue
                width = hidden[j].states - 1
                for c in range(width):
                    slot, at = slots[s], model.block[e] + (level - 1) * width + c
                    slot.weight, slot.parent, slot.column, slot.place = model.weight[at], j, hidden[j].column + c, at
                    s += 1
            if s == begin:
                break  # all parents are observed
            factor = factors[f]
            factor.threshold, factor.variable, factor.level = model.threshold[v] + level - 1, v, level
            factor.gate, factor.hidden, factor.slot, factor.slot_end = model.gate[v], place[v], begin, s
            f += 1
        if f == first:
            known[n_known] = v
            n_known += 1
        elif place[v] >= 0:
            hidden[place[v]].own = first


@inner
def _list_children(hidden: np.ndarray, factors: np.ndarray, slots: np.ndarray, children: np.ndarray) -> None:
    """The factors in which each hidden variable is a parent, in their order."""
    for turn in range(2):  # count, then fill
        for f in range(len(factors)):
            s = factors[f].slot
            while s < factors[f].slot_end:
                parent = hidden[slots[s].parent]
                if turn == 1:
                    children[parent.child_end].factor, children[parent.child_end].slot = f, s
                parent.child_end += 1
                s += parent.states - 1
        if turn == 0:
            n = 0
            for j in range(len(hidden)):
                hidden[j].child, n = n, n + hidden[j].child_end
                hidden[j].child_end = hidden[j].child


@kernel
def components(problem: Problem) -> IndexArray:
    """A label for each hidden variable: those with the same label are coupled, directly or through others.

    A factor couples its hidden parents with one another, and with its own variable if that is hidden.
    """
    label = np.arange(len(problem.hidden))
    for f in range(len(problem.factors)):
        factor = problem.factors[f]
        a = _root(label, factor.hidden if factor.hidden >= 0 else problem.slots[factor.slot].parent)
        for s in range(factor.slot, factor.slot_end):
            b = _root(label, problem.slots[s].parent)
            label[max(a, b)] = min(a, b)
            a = min(a, b)
    for k in range(len(label)):
        label[k] = _root(label, k)
    return label


@inner
def _root(label: IndexArray, k: int) -> int:
    while label[k] != k:
        label[k] = label[label[k]]
        k = label[k]
    return k
