"""Array aliases, and the tuples of arrays that kernels read."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

FloatArray: TypeAlias = NDArray[np.float64]
IndexArray: TypeAlias = NDArray[np.int64]
States: TypeAlias = NDArray[np.int8]
BoolArray: TypeAlias = NDArray[np.bool_]
RngLike: TypeAlias = "np.random.Generator | np.random.SeedSequence | int | None"
LogTerm: TypeAlias = Literal["exact", "xi", "quadratic", "jensen"]
Matrix: TypeAlias = Any  # a dense array or any scipy sparse matrix

HIDDEN = np.int8(-1)
"""The mark of a unit that is not observed, in the internal form of evidence."""


class Bound(NamedTuple):
    """Which lower bound: how <ln(1 + e^z)> is bounded, and up to how many hidden parents it is a sum over states."""

    log_term: int
    enumerate_up_to: int


class Stop(NamedTuple):
    """When to stop: a sweep gains less than `tol` nats, or there were `max_sweeps` of them."""

    tol: float
    max_sweeps: int


class Model(NamedTuple):
    """What kernels read of a network: its edges twice over, by child (rows of J) and by parent, weights and gates.

    The edges into unit i are ``parent[indptr[i]:indptr[i + 1]]``, their weights ``weight[...]`` likewise. The edges
    out of unit j are ``child[child_indptr[j]:child_indptr[j + 1]]``; ``child_edge`` gives their place in `weight`.
    Biases are not among them: each row has its own, with the evidence absorbed.

    Variable v has ``n_states[v]`` states, and one threshold fewer, from ``threshold[v]`` on. Edge e has a block of
    weights from ``block[e]`` on, thresholds of the child by states of the parent from 1 on: one for two states each.
    """

    indptr: IndexArray
    parent: IndexArray
    child_indptr: IndexArray
    child: IndexArray
    child_edge: IndexArray
    weight: FloatArray
    gate: States
    n_states: IndexArray
    threshold: IndexArray
    block: IndexArray
