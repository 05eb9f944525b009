"""The structure of a network alone: which units are the parents of which."""

from __future__ import annotations

import graphlib
import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from sbnet import checks
from sbnet._types import FloatArray, IndexArray
from sbnet.errors import CycleError, NetworkError

_Array = TypeVar("_Array", bound="np.ndarray[Any, Any]")


@dataclass(frozen=True, eq=False, repr=False)
class Graph:
    """Which variables are the parents of which; variables are numbers, and parents precede children.

    Attributes
    ----------
    indptr, parent : arrays of int
        The parents of variable ``i`` are ``parent[indptr[i]:indptr[i + 1]]``, in rising order.

    Notes
    -----
    The arrays are read-only, and so is all that follows from them: it is worked out once, however many networks share
    the graph. Two graphs are equal if they have the same variables and edges.

    Examples
    --------
    >>> import sbnet as sb
    >>> net = sb.from_edges({("rain", "wet"): 2.0, ("sprinkler", "wet"): 1.5}, bias={"rain": -1.0})
    >>> net.graph.parent.tolist(), net.graph.child_of_edge.tolist()
    ([0, 1], [2, 2])
    """

    indptr: IndexArray
    parent: IndexArray

    def __post_init__(self) -> None:
        object.__setattr__(self, "indptr", _whole_numbers("indptr", self.indptr))
        object.__setattr__(self, "parent", _whole_numbers("parent", self.parent))
        indptr, parent = self.indptr, self.parent
        n_edges = len(parent) if parent.ndim == 1 else -1
        if indptr.ndim != 1 or not len(indptr) or n_edges < 0 or indptr[0] != 0 or indptr[-1] != n_edges:
            raise NetworkError(f"indptr and parent do not describe the edges of {max(indptr.size - 1, 0)} variables")
        # By comparison, not by differences: those of numbers that no graph has could wrap, and pass.
        if np.any(indptr[1:] < indptr[:-1]):
            raise NetworkError("indptr must not fall")
        child = self.child_of_edge
        if np.any(parent < 0) or np.any(parent >= child):
            raise NetworkError("parents must precede their children; from_edges() puts variables in order")
        if np.any((parent[1:] <= parent[:-1]) & (child[1:] == child[:-1])):
            raise NetworkError("the parents of each variable must be in rising order, each once")

    @property
    def n_units(self) -> int:
        """Number of variables."""
        return len(self.indptr) - 1

    @property
    def n_edges(self) -> int:
        """Number of edges."""
        return len(self.parent)

    @cached_property
    def child_of_edge(self) -> IndexArray:
        """The child of each edge; its parent is in :attr:`parent`."""
        return read_only(np.repeat(np.arange(self.n_units, dtype=np.int64), np.diff(self.indptr)))

    @cached_property
    def child_indptr(self) -> IndexArray:
        """The children of variable ``j`` are ``child[child_indptr[j]:child_indptr[j + 1]]``."""
        counts = np.bincount(self.parent, minlength=self.n_units)
        return read_only(np.concatenate([[0], np.cumsum(counts)]).astype(np.int64))

    @cached_property
    def child_edge(self) -> IndexArray:
        """The edges by parent: the number of each entry of :attr:`child` among the edges by child."""
        return read_only(np.argsort(self.parent, kind="stable").astype(np.int64))

    @cached_property
    def child(self) -> IndexArray:
        """The children of all variables, by parent."""
        return read_only(self.child_of_edge[self.child_edge])

    @cached_property
    def depths(self) -> IndexArray:
        """Length of the longest path that ends in each variable; variables without parents have depth 0."""
        depth = [0] * self.n_units
        for j, i in zip(self.parent.tolist(), self.child_of_edge.tolist(), strict=True):
            depth[i] = max(depth[i], depth[j] + 1)  # parents come first, so depth[j] is final
        return read_only(np.asarray(depth, dtype=np.int64))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Graph):
            return NotImplemented
        return self is other or (
            np.array_equal(self.indptr, other.indptr) and np.array_equal(self.parent, other.parent)
        )

    def __hash__(self) -> int:
        return hash((self.n_units, self.parent.tobytes()))

    def __reduce__(self) -> tuple[Any, ...]:
        return Graph, (self.indptr, self.parent)

    def __repr__(self) -> str:
        return f"<Graph: {count(self.n_units, 'variable')}, {count(self.n_edges, 'edge')}>"


def frozen(values: Any) -> FloatArray:
    """A private, read-only, contiguous copy; adding zero turns -0.0 into 0.0, so that equal arrays hash alike."""
    array = np.array(as_floats(values, "parameters"), order="C")
    array += 0
    return read_only(array)


def as_floats(values: Any, what: str = "weights and biases") -> FloatArray:
    """Weights or biases as an array of numbers."""
    try:
        return checks.floats(values)
    except (TypeError, ValueError, OverflowError) as error:
        why = "rows differ in length" if "inhomogeneous" in str(error) else error
        raise NetworkError(f"{what} must be numbers: {why}") from None


def _whole_numbers(name: str, values: Any) -> IndexArray:
    """A private, read-only copy; each number is looked at before it is cast, which would wrap it or cut it off."""
    try:
        array = np.array(values, order="C")
    except (TypeError, ValueError, OverflowError) as error:
        raise NetworkError(f"{name} must hold whole numbers: {error}") from None
    if array.size and (array.dtype.kind not in "iu" or int(array.max()) > np.iinfo(np.int64).max):
        raise NetworkError(f"{name} must hold whole numbers below 2**63; it is of type {array.dtype}")
    return read_only(array.astype(np.int64, order="C", copy=False))


def read_only(array: _Array) -> _Array:
    array.setflags(write=False)
    return array


def count(n: int, what: str) -> str:
    return f"{n:,} {what}{'s' * (n != 1)}"


def topological_order(names: Sequence[str], parent: IndexArray, child: IndexArray) -> IndexArray:
    """The order with parents first that is nearest the given one: of the units that may come next, the first."""
    n = len(names)
    if np.all(parent < child):
        return np.arange(n, dtype=np.int64)
    by_parent = np.argsort(parent, kind="stable")
    start = np.concatenate([[0], np.cumsum(np.bincount(parent, minlength=n))]).tolist()
    followers = child[by_parent].tolist()
    waiting = np.bincount(child, minlength=n).tolist()
    ready = [i for i in range(n) if waiting[i] == 0]
    order: list[int] = []
    while ready:
        j = heapq.heappop(ready)
        order.append(j)
        for i in followers[start[j] : start[j + 1]]:
            waiting[i] -= 1
            if waiting[i] == 0:
                heapq.heappush(ready, i)
    if len(order) < n:
        cycle = _cycle(names, parent, child)
        raise CycleError("the edges contain a cycle: " + " -> ".join(cycle), cycle)
    return np.asarray(order, dtype=np.int64)


def _cycle(names: Sequence[str], parent: IndexArray, child: IndexArray) -> tuple[str, ...]:
    """A cycle, from the unit that was named first and back to it."""
    graph = graphlib.TopologicalSorter[int]()
    for j, i in zip(parent.tolist(), child.tolist(), strict=True):
        graph.add(i, j)
    try:
        graph.prepare()
    except graphlib.CycleError as error:
        cycle = error.args[1][:-1]
        first = cycle.index(min(cycle))
        return tuple(names[i] for i in [*cycle[first:], *cycle[: first + 1]])
    raise AssertionError("every variable that waits has a parent that waits, so there is a cycle")
