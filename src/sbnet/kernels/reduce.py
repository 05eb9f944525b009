"""The exact reductions that come before any sum or iteration."""

from __future__ import annotations

from typing import Any

import numpy as np

from sbnet._types import BoolArray, IndexArray, Model, Problem, States
from sbnet.kernels._compile import address, bare, caller, inner, kernel, light
from sbnet.kernels.arrays import flags, load, real_numbers, whole_numbers


@bare
def _mark_live(model: Model, states: States, live: BoolArray | IndexArray) -> None:
    for i in range(len(states) - 1, -1, -1):
        if load(states, i) >= 0:
            live[i] = 1
        if load(live, i):
            for e in range(load(model.indptr, i), load(model.indptr, i, 1)):
                live[load(model.parent, e)] = 1


@kernel
def live_units(model: Model, states: States) -> BoolArray:
    """Units that are observed or have an observed descendant; all others sum to one and drop out."""
    live = flags(len(states))
    _mark_live(model, states, live)
    return live


def posed(model: Model, states: States) -> Problem:
    """The problem that one pattern poses; it depends on which units are observed, not on their values."""
    n = len(states)
    live, place = whole_numbers(n), whole_numbers(n)
    _mark_live(model, states, live)
    n_hidden = 0
    for i in range(n):
        place[i] = -1
        if load(live, i) and load(states, i) < 0:
            place[i] = n_hidden
            n_hidden += 1
    n_factors = n_slots = n_known = 0
    for i in range(n):
        if load(live, i):
            before = n_slots
            for e in range(load(model.indptr, i), load(model.indptr, i, 1)):
                if load(place, load(model.parent, e)) >= 0:
                    n_slots += 1
            if n_slots > before:
                n_factors += 1
            else:
                n_known += 1
    hidden, factor_of, child_ptr = whole_numbers(n_hidden), whole_numbers(n_hidden), whole_numbers(n_hidden + 1)
    factor, own, ptr = whole_numbers(n_factors), whole_numbers(n_factors), whole_numbers(n_factors + 1)
    parent, weight, edge = whole_numbers(n_slots), real_numbers(n_slots), whole_numbers(n_slots)
    child, child_slot = whole_numbers(n_slots), whole_numbers(n_slots)
    known = whole_numbers(n_known)
    f = s = t = 0
    for i in range(n):
        if not load(live, i):
            continue
        if load(place, i) >= 0:
            hidden[load(place, i)], factor_of[load(place, i)] = i, -1
        for e in range(load(model.indptr, i), load(model.indptr, i, 1)):
            k = load(place, load(model.parent, e))
            if k >= 0:
                parent[s] = k
                weight[s] = load(model.weight, e)
                edge[s] = e
                s += 1
        if s > load(ptr, f):
            factor[f] = i
            own[f] = load(place, i)
            if load(place, i) >= 0:
                factor_of[load(place, i)] = f
            f += 1
            ptr[f] = s
        else:
            known[t] = i
            t += 1
    for s in range(n_slots):
        child_ptr[load(parent, s) + 1] += 1
    for k in range(n_hidden):
        child_ptr[k + 1] += load(child_ptr, k)
        place[k] = load(child_ptr, k)  # from now on: where the next child of a hidden unit goes
    for f in range(n_factors):
        for s in range(load(ptr, f), load(ptr, f, 1)):
            k = load(parent, s)
            child[load(place, k)], child_slot[load(place, k)] = f, s
            place[k] += 1
    return Problem(
        hidden, factor_of, factor, own, ptr, parent, weight, edge, child_ptr, child, child_slot, known,
        model.gate,
    )  # fmt: skip


call_posed = caller(posed)


@light
def _reduced(address: int, model: Model, states: States) -> Problem:
    return call_posed(address, model, states)


def reduce(model: Model, states: States) -> Problem:
    """The same for Python, without a second copy of it."""
    return _reduced(address(posed, allocates=True), model, np.ascontiguousarray(states))


reduced: Any = inner(posed)
"""And as a part of kernels."""


@kernel
def components(problem: Problem) -> IndexArray:
    """A label for each hidden unit: units with the same label are coupled, directly or through others.

    A factor couples its hidden parents with one another, and with itself if it is hidden.
    """
    n = len(problem.hidden)
    label = np.arange(n)
    for f in range(len(problem.factor)):
        first = problem.parent[problem.ptr[f]] if problem.own[f] < 0 else problem.own[f]
        a = _root(label, first)
        for s in range(problem.ptr[f], problem.ptr[f + 1]):
            b = _root(label, problem.parent[s])
            if a < b:
                label[b] = a
            elif b < a:
                label[a] = b
                a = b
    for k in range(n):
        label[k] = _root(label, k)
    return label


@bare
def _root(label: IndexArray, k: int) -> int:
    while label[k] != k:
        label[k] = label[label[k]]
        k = label[k]
    return k
