"""What evidence makes of a network: exact simplifications, before anything is approximated."""

from __future__ import annotations

import numpy as np
import scipy.sparse

from sbnet._types import FloatArray, IndexArray, Model, Problem, States
from sbnet.model.components import connected, members
from sbnet.model.network import Network


def absorb(network: Network, states: States) -> FloatArray:
    """Biases with the evidence absorbed: h_i plus the weights of the observed parents that are 1."""
    return absorb_rows(network.model, network.bias, states)


def absorb_rows(model: Model, bias: FloatArray, states: States) -> FloatArray:
    """Biases with the evidence absorbed, for parameters that are not, or not yet, those of a network.

    Exact (an observed parent only shifts its child's bias), and one product for all rows whatever their masks.
    """
    parents, n = np.zeros(len(bias), np.bool_), len(bias)
    parents[model.parent] = True
    on = states == 1
    shifted: FloatArray
    if not on[:, parents].any():  # all that is observed to be 1 are leaves, as a rule
        return np.repeat(bias[None, :], len(states), axis=0)
    on = on.astype(np.float64)
    if len(on) == 1:  # as below, in the same order, without the cost of setting up a sparse matrix
        child = np.repeat(np.arange(n), np.diff(model.indptr))
        sums = np.bincount(child, weights=model.weight * on[0, model.parent], minlength=n)
        shifted = sums.astype(np.float64, copy=False)[None, :]
    else:
        weights = scipy.sparse.csr_array((model.weight, model.parent, model.indptr), shape=(n, n))
        shifted = np.ascontiguousarray((weights @ on.T).T)
    shifted += bias
    return shifted


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
