"""The exact reductions: evidence is absorbed, and variables without an observed descendant drop out."""

from __future__ import annotations

import numpy as np

from sbnet._types import BoolArray, IndexArray, Model, States
from sbnet.kernels.compiling import inner, kernel
from sbnet.kernels.structs import Problem, child_t, factor_t, hidden_t, slot_t


def _live(model: Model, states: States) -> BoolArray:
    """Variables that are observed or have an observed descendant; all others sum to one and drop out."""
    live, indptr, parent = np.empty(len(states), np.bool_), model.indptr, model.parent
    for v in range(len(states)):
        live[v] = states[v] >= 0
    for v in range(len(states) - 1, -1, -1):
        for e in range(indptr[v], indptr[v + 1] if live[v] else 0):
            live[parent[e]] = True
    return live


def _reduce(model: Model, states: States) -> Problem:
    """The problem that one pattern of observed variables poses."""
    found, place = live(model, states), np.empty(len(states), np.int64)  # place among the hidden ones
    hidden, n_states, child_of = np.empty(len(states), hidden_t), model.n_states, model.child
    n = n_columns = n_children = 0
    for v in range(len(states)):
        place[v] = -1
        if found[v] and states[v] < 0:
            one, place[v] = hidden[n], n
            one.variable, one.states, one.own = v, n_states[v], -1
            one.column, one.column_end = n_columns, n_columns + n_states[v] - 1
            one.child = one.child_end = n_children  # room for all of them; they are filled in later
            for e in range(model.child_indptr[v], model.child_indptr[v + 1]):
                n_children += n_states[child_of[e]] - 1 if found[child_of[e]] else 0
            n, n_columns = n + 1, one.column_end
    return _list_factors(model, found, place, hidden[:n], np.empty(n_children, child_t))


@inner
def _list_factors(
    model: Model, live: BoolArray, place: IndexArray, hidden: np.ndarray, children: np.ndarray
) -> Problem:
    """The thresholds of each variable that has hidden parents, their slots; the variables that have none."""
    indptr, parent_of, n_states, threshold = model.indptr, model.parent, model.n_states, model.threshold
    weight, block, gate = model.weight, model.block, model.gate
    factors, slots, known = np.empty(threshold[-1], factor_t), np.empty(len(weight), slot_t), np.empty_like(place)
    f = s = n_known = 0
    for v in range(len(place)):
        first = f
        for level in range(1, n_states[v] if live[v] else 0):
            factor = factors[f]
            factor.slot, factor.parents, factor.joint = s, 0, 1.0
            for e in range(indptr[v], indptr[v + 1]):
                if place[parent_of[e]] < 0:
                    continue
                parent = hidden[place[parent_of[e]]]
                child = children[parent.child_end]
                child.factor, child.slot, child.place = f, s, factor.parents
                factor.parents += 1
                factor.joint *= parent.states
                parent.child_end += 1
                for c in range(parent.states - 1):
                    slot, at = slots[s], block[e] + (level - 1) * (parent.states - 1) + c
                    slot.weight, slot.parent, slot.column, slot.place = (
                        weight[at], place[parent_of[e]], parent.column + c, at,
                    )  # fmt: skip
                    s += 1
            if s == factor.slot:
                break  # all parents are observed
            factor.threshold, factor.variable, factor.level = threshold[v] + level - 1, v, level
            factor.gate, factor.hidden, factor.slot_end, factor.table, factor.width = gate[v], place[v], s, 0, 0
            f += 1
        if live[v] and f == first:
            known[n_known] = v
            n_known += 1
        elif live[v] and place[v] >= 0:
            hidden[place[v]].own = first
    n_columns = hidden[-1].column_end if len(hidden) else 0
    return Problem(hidden, factors[:f], slots[:s], children, known[:n_known], n_columns)


live, reduced = inner(_live), inner(_reduce)  # for kernels
live_variables, reduce = kernel(_live), kernel(_reduce)  # for Python


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
