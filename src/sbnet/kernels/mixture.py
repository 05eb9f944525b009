"""Components of a mixture: problems with observed gates added.

A mixture of two components adds to their average bound the mutual information I between the component m and the hidden
units H. For every conditional distribution rho(m | H),

    I >= sum_m a_m <ln rho(m | H)>_m - sum_m a_m ln a_m,

with equality at the posterior of m, which for two factorial components is sigma(w H + b) or 1 - sigma(w H + b): the
conditional distribution of one more sigmoid unit, a *gate*, with all hidden units for parents. So a component is the
solution of the problem to which an observed gate has been added (at 1 for the one, at 0 for the other): the same
logarithm term, exact or bounded, and the same sweeps. The gate is summed over in the end: if L_m is the bound with the
gate at m, then ln(e^L_0 + e^L_1) is a bound without it, for any w and b. More components come from splitting a
component by a further gate.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sbnet._types import Bound, FloatArray, IndexArray, Problem, States, Stop
from sbnet.kernels import terms
from sbnet.kernels._compile import inner, kernel
from sbnet.kernels.gates import SIGMOID
from sbnet.kernels.meanfield import Kit, call_solve, kit_for


@inner
def with_gates(problem: Problem, first: int, weight: FloatArray) -> Problem:
    """The problem with observed units `first`, `first` + 1, ... added, each a child of every hidden unit."""
    n, n_slots, n_factors, gates = len(problem.hidden), len(problem.weight), len(problem.factor), len(weight)
    own = np.full(n_factors + gates, -1, np.int64)
    own[:n_factors] = problem.own
    factor, ptr = np.empty(n_factors + gates, np.int64), np.empty(n_factors + gates + 1, np.int64)
    factor[:n_factors], ptr[: n_factors + 1] = problem.factor, problem.ptr
    parent, edge = np.empty(n_slots + gates * n, np.int64), np.full(n_slots + gates * n, -1, np.int64)
    every = np.empty(n_slots + gates * n)
    parent[:n_slots], edge[:n_slots], every[:n_slots] = problem.parent, problem.edge, problem.weight
    for g in range(gates):
        factor[n_factors + g] = first + g
        ptr[n_factors + g + 1] = n_slots + (g + 1) * n
        for j in range(n):
            parent[n_slots + g * n + j] = j
            every[n_slots + g * n + j] = weight[g, j]
    child_ptr = np.zeros(n + 1, np.int64)
    child, child_slot = np.empty(len(parent), np.int64), np.empty(len(parent), np.int64)
    c = 0
    for j in range(n):
        for k in range(problem.child_ptr[j], problem.child_ptr[j + 1]):
            child[c], child_slot[c] = problem.child[k], problem.child_slot[k]
            c += 1
        for g in range(gates):
            child[c], child_slot[c] = n_factors + g, n_slots + g * n + j
            c += 1
        child_ptr[j + 1] = c
    gate = np.zeros(first + gates, np.int8)
    gate[:first] = problem.gate[:first]
    return Problem(
        problem.hidden, problem.factor_of, factor, own, ptr, parent, every, edge, child_ptr, child, child_slot,
        problem.known, gate,
    )  # fmt: skip


def solve_components(problem: Problem, which: Bound, *rest: Any) -> None:
    """As `climb_components`, with what such problems need."""
    parents = max(int(np.diff(problem.ptr).max(initial=0)), len(problem.hidden))  # all hidden units have the gates
    present = frozenset({SIGMOID, *np.unique(problem.gate[problem.factor]).tolist()})
    if not climb_components(kit_for(terms.rooms_for(which, present, 0, parents)), problem, which, *rest):
        climb_components(kit_for(terms.any_rooms(present)), problem, which, *rest)


@kernel
def climb_components(
    kit: Kit,
    problem: Problem,
    which: Bound,
    stop: Stop,
    states: States,
    bias: FloatArray,
    gate_weight: FloatArray,
    gate_bias: FloatArray,
    side: States,
    mu: FloatArray,
    bound: FloatArray,
    sweeps: IndexArray,
    converged: IndexArray,
) -> bool:
    """Solve components of one pattern, each with gates of its own, from the means of the hidden units in `mu`.

    Component m has gates with weights ``gate_weight[m]``, gates by hidden units, and biases ``gate_bias[m]``, which are
    observed to be ``side[m]``. Returns whether the kit could solve them all.
    """
    n, gates = len(states), side.shape[1]
    more_states, more_bias = np.empty(n + gates, np.int8), np.empty(n + gates)
    more_states[:n], more_bias[:n] = states, bias
    for m in range(len(mu)):
        whole = with_gates(problem, n, gate_weight[m])
        more_states[n:], more_bias[n:] = side[m], gate_bias[m]
        kind = terms.kinds_of(whole, which)
        work = terms.call_layout(kit.layout, whole, kind, False, kit.fine.prepare)
        bound[m], sweeps[m], converged[m], solved, _ = call_solve(
            kit.solve, whole, work, kind, kit, stop, more_states, more_bias, mu[m], True, np.empty(0)
        )
        if not solved:
            return False
    return True
