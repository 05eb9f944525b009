"""The exact reductions: evidence is absorbed, and variables without an observed descendant drop out."""

from __future__ import annotations

import numpy as np

from sbnet._types import BoolArray, IndexArray, Model, States
from sbnet.kernels.compiling import kernel
from sbnet.kernels.structs import Problem, child_t, factor_t, hidden_t, slot_t


def live_variables(model: Model, states: States) -> BoolArray:
    """Variables that are observed or have an observed descendant; all others sum to one and drop out."""
    live: BoolArray = states >= 0
    _mark_live(model.indptr, model.parent, live)
    return live


def reduce(model: Model, states: States) -> Problem:
    """The problem that one pattern of observed variables poses."""
    n, n_weights = len(states), len(model.weight)
    live, place = live_variables(model, states), np.full(n, -1)  # place among the hidden ones
    unknown = np.flatnonzero(live & (states < 0))
    place[unknown] = np.arange(len(unknown))
    hidden, factors = np.zeros(len(unknown), hidden_t), np.zeros(int(model.threshold[-1]), factor_t)
    hidden["variable"], hidden["states"], hidden["own"] = unknown, model.n_states[unknown], -1
    hidden["column_end"] = np.cumsum(hidden["states"] - 1)
    hidden["column"] = hidden["column_end"] - hidden["states"] + 1
    slots, known = np.empty(n_weights, slot_t), np.empty(n, np.int64)
    f, s, n_known = _list_factors(
        model.indptr, model.parent, model.n_states, model.threshold, model.weight, model.block, model.gate,
        live, place, hidden, factors, slots, known,
    )  # fmt: skip
    count = hidden["child_end"].copy()
    hidden["child"] = hidden["child_end"] = np.cumsum(count) - count
    children = np.empty(int(count.sum()), child_t)
    _list_children(hidden, factors[:f], slots, children)
    n_columns = int(hidden["column_end"][-1]) if len(hidden) else 0
    return Problem(hidden, factors[:f], slots[:s], children, known[:n_known], n_columns)


@kernel
def _mark_live(indptr, parent, live):
    for v in range(len(live) - 1, -1, -1):
        for e in range(indptr[v], indptr[v + 1] if live[v] else 0):
            live[parent[e]] = True


@kernel
def _list_factors(
    indptr, parent_of, n_states, threshold, weight, block, gate, live, place, hidden, factors, slots, known
):  # fmt: skip
    """The thresholds of each variable that has hidden parents, their slots; the variables that have none."""
    f = s = n_known = 0
    for v in range(len(place)):
        first = f
        for level in range(1, n_states[v] if live[v] else 0):
            factor = factors[f]
            factor.slot, factor.parents, factor.joint = s, 0, 1.0
            for e in range(indptr[v], indptr[v + 1]):
                if place[parent_of[e]] < 0:
                    continue
                parent, at = hidden[place[parent_of[e]]], block[e] + (level - 1) * (n_states[parent_of[e]] - 1)
                factor.parents += 1
                factor.joint *= parent.states
                parent.child_end += 1
                for c in range(parent.states - 1):
                    slot = slots[s]
                    slot.weight, slot.place, slot.column = weight[at + c], at + c, parent.column + c
                    slot.parent = place[parent_of[e]]
                    s += 1
            if s == factor.slot:
                break  # all parents are observed
            factor.threshold, factor.variable, factor.level = threshold[v] + level - 1, v, level
            factor.gate, factor.hidden, factor.slot_end = gate[v], place[v], s
            f += 1
        if live[v] and f == first:
            known[n_known] = v
            n_known += 1
        elif live[v] and place[v] >= 0:
            hidden[place[v]].own = first
    return f, s, n_known


@kernel
def _list_children(hidden, factors, slots, children):
    for f in range(len(factors)):
        s, place = factors[f].slot, 0
        while s < factors[f].slot_end:
            parent = hidden[slots[s].parent]
            child = children[parent.child_end]
            child.factor, child.slot, child.place = f, s, place
            parent.child_end += 1
            s, place = s + parent.states - 1, place + 1


def components(problem: Problem) -> IndexArray:
    """A label for each hidden variable: those with the same label are coupled, directly or through others.

    A factor couples its hidden parents with one another, and with its own variable if that is hidden.
    """
    label = np.arange(len(problem.hidden))
    _join(problem.factors, problem.slots, label)
    return label


@kernel
def _join(factors, slots, label):
    """Union and find: the label of a group is its first variable."""
    for f in range(len(factors)):
        factor = factors[f]
        a = factor.hidden if factor.hidden >= 0 else slots[factor.slot].parent
        for s in range(factor.slot, factor.slot_end):
            while label[a] != a:
                label[a] = label[label[a]]
                a = label[a]
            b = slots[s].parent
            while label[b] != b:
                label[b] = label[label[b]]
                b = label[b]
            label[max(a, b)] = min(a, b)
    for k in range(len(label)):
        label[k] = label[label[k]]  # labels only fall, so those before are final
