"""The model: a frozen record of a graph, its weights and biases, and the names of its units."""

from __future__ import annotations

import html
import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike

from sbnet._types import FloatArray, IndexArray, Matrix, Model
from sbnet.errors import NetworkError, unknown_unit

MAX_PARAMETER = 1e8
"""Largest weight or bias: beyond it a double no longer tells the sum of inputs to a nat."""


@dataclass(frozen=True, eq=False, repr=False)
class Network:
    r"""A sigmoid belief network, eqs. (2)-(6). Parents precede children.

    .. math::
        P(S_i = 1 \mid \mathrm{pa}(S_i)) = \sigma\Big(\sum_j J_{ij} S_j + h_i\Big), \qquad
        P(S) = \prod_i P(S_i \mid \mathrm{pa}(S_i))

    Build one with :func:`sbnet.from_edges`, :func:`sbnet.layered`, :func:`sbnet.from_weight_matrix` or
    :func:`sbnet.from_networkx`. A network never changes: :meth:`with_parameters` gives a copy with other numbers.

    Attributes
    ----------
    names : tuple of str
        The units, in topological order: every unit comes after its parents.
    indptr, parent : arrays of int
        The parents of unit ``i`` are ``parent[indptr[i]:indptr[i + 1]]``, in rising order.
    weight : array of float, shape (n_edges,)
        The weight :math:`J_{ij}` of each of these edges, in the same order.
    bias : array of float, shape (n_units,)
        The biases :math:`h_i`.
    layers : tuple of int or None
        Sizes of the layers, top to bottom, if the network was built in layers.

    Notes
    -----
    All arrays are read-only. Two networks are equal if they have the same units in the same order, the same edges, and
    the same numbers; equal networks have equal hashes.
    """

    names: tuple[str, ...]
    indptr: IndexArray
    parent: IndexArray
    weight: FloatArray
    bias: FloatArray
    layers: tuple[int, ...] | None = field(default=None)

    def __post_init__(self) -> None:
        set_ = object.__setattr__  # the one place where a frozen record is filled in
        set_(self, "names", tuple(str(name) if isinstance(name, str) else name for name in self.names))
        set_(self, "indptr", _frozen(self.indptr, np.int64))
        set_(self, "parent", _frozen(self.parent, np.int64))
        set_(self, "weight", _frozen(self.weight, np.float64))
        set_(self, "bias", _frozen(self.bias, np.float64))
        if self.layers is not None:
            set_(self, "layers", tuple(int(size) for size in self.layers))
        _check_names(self.names)
        _check_graph(self)
        _check_finite(self)

    @property
    def n_units(self) -> int:
        """Number of units."""
        return len(self.names)

    @property
    def n_edges(self) -> int:
        """Number of edges."""
        return len(self.weight)

    @cached_property
    def _index(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.names)}

    @cached_property
    def child_of_edge(self) -> IndexArray:
        """The child of each edge; its parent is in :attr:`parent`."""
        return np.repeat(np.arange(self.n_units, dtype=np.int64), np.diff(self.indptr))

    @cached_property
    def model(self) -> Model:
        """The arrays that kernels read."""
        order = np.argsort(self.parent, kind="stable").astype(np.int64)
        counts = np.bincount(self.parent, minlength=self.n_units)
        child_indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        child = self.child_of_edge[order]
        gate = np.zeros(self.n_units, dtype=np.int8)
        for array in (child_indptr, child, order, gate):
            array.setflags(write=False)
        return Model(self.indptr, self.parent, child_indptr, child, order, self.weight, gate)

    def index(self, unit: str | int) -> int:
        """Position of a unit, given by name or by position."""
        if isinstance(unit, str):
            try:
                return self._index[unit]
            except KeyError:
                raise unknown_unit(unit, self.names, "the call") from None
        try:
            position = operator.index(unit)
        except TypeError:
            raise NetworkError(f"a unit is given by its name or its number; got {unit!r}") from None
        if not 0 <= position < self.n_units:
            raise NetworkError(f"there is no unit number {position}; the network has units 0 to {self.n_units - 1}")
        return position

    def parents(self, unit: str | int) -> tuple[str, ...]:
        """Names of the parents of a unit."""
        i = self.index(unit)
        return tuple(self.names[j] for j in self.parent[self.indptr[i] : self.indptr[i + 1]])

    def children(self, unit: str | int) -> tuple[str, ...]:
        """Names of the children of a unit."""
        j, model = self.index(unit), self.model
        return tuple(self.names[i] for i in model.child[model.child_indptr[j] : model.child_indptr[j + 1]])

    def edges(self) -> Iterator[tuple[str, str, float]]:
        """Each edge as (parent, child, weight), by child."""
        names = self.names
        for j, i, w in zip(self.parent.tolist(), self.child_of_edge.tolist(), self.weight.tolist(), strict=True):
            yield names[j], names[i], w

    def weight_matrix(self) -> FloatArray:
        """The dense matrix J; ``J[i, j]`` is the weight from parent j to child i.

        It takes 8 n_units² bytes; :meth:`sparse_weights` takes memory in proportion to the edges.
        """
        dense = np.zeros((self.n_units, self.n_units))
        dense[self.child_of_edge, self.parent] = self.weight
        return dense

    def sparse_weights(self) -> scipy.sparse.csr_array:
        """The matrix J as a sparse array; every edge is stored, also one of weight zero."""
        shape = (self.n_units, self.n_units)
        return scipy.sparse.csr_array((self.weight, self.parent, self.indptr), shape=shape)

    def depths(self) -> IndexArray:
        """Length of the longest path that ends in each unit; roots have depth 0."""
        depth = [0] * self.n_units
        for j, i in zip(self.parent.tolist(), self.child_of_edge.tolist(), strict=True):
            depth[i] = max(depth[i], depth[j] + 1)  # parents come first, so depth[j] is final
        return np.asarray(depth, dtype=np.int64)

    def with_parameters(
        self,
        *,
        weight: ArrayLike | Matrix | Mapping[tuple[str, str], float] | None = None,
        bias: ArrayLike | Mapping[str, float] | None = None,
    ) -> Network:
        """The same graph with other numbers.

        Parameters
        ----------
        weight
            One number per edge, in the order of :attr:`weight` and :meth:`edges`; or a matrix J, dense or sparse, that
            is zero where there is no edge; or a mapping from (parent, child) to the weights that change.
        bias
            One number per unit, or a mapping from names to the biases that change.
        """
        new_weight = self.weight if weight is None else self._edge_weights(weight)
        new_bias = self.bias if bias is None else self._unit_biases(bias)
        # Graph and names were checked when this network was made: share them, and all that follows from them alone.
        new = object.__new__(Network)
        new.__dict__.update(self.__dict__)
        new.__dict__.update(weight=_frozen(new_weight, np.float64), bias=_frozen(new_bias, np.float64))
        if "model" in self.__dict__:
            new.__dict__["model"] = self.model._replace(weight=new.weight)
        _check_finite(new)
        return new

    def _edge_weights(self, weight: Any) -> FloatArray:
        if isinstance(weight, Mapping) and not scipy.sparse.issparse(weight):  # scipy's dok matrices are mappings too
            ends = zip(self.parent.tolist(), self.child_of_edge.tolist(), strict=True)
            edge = {pair: e for e, pair in enumerate(ends)}
            changed = self.weight.copy()
            for key, value in weight.items():
                if not (isinstance(key, tuple) and len(key) == 2):
                    raise NetworkError(f"the keys of a mapping of weights are (parent, child); got {key!r}")
                parent, child = key
                place = edge.get((self.index(parent), self.index(child)))
                if place is None:
                    raise NetworkError(f"there is no edge {parent!r} -> {child!r} whose weight could change")
                changed[place] = _number(value)
            return changed
        if scipy.sparse.issparse(weight):
            matrix = scipy.sparse.csr_array(weight)
        else:
            array = as_floats(weight)
            if array.ndim != 2:
                if array.shape != (self.n_edges,):
                    raise NetworkError(
                        f"weight has shape {array.shape}; expected ({self.n_edges},), one number per edge, "
                        f"or ({self.n_units}, {self.n_units})"
                    )
                return array
            matrix = array
        if matrix.shape != (self.n_units, self.n_units):
            raise NetworkError(f"weight has shape {matrix.shape}; expected ({self.n_units}, {self.n_units})")
        if self.n_edges == 0:
            values = np.zeros(0)
        else:
            values = np.asarray(matrix[self.child_of_edge, self.parent], dtype=np.float64).ravel()
        outside = _count_nonzero(matrix) - int(np.count_nonzero(values))
        if outside:
            raise NetworkError(f"weight has {outside} entries other than zero where the network has no edge")
        return values

    def _unit_biases(self, bias: Any) -> FloatArray:
        if isinstance(bias, Mapping):
            changed = self.bias.copy()
            for name, value in bias.items():
                changed[self.index(name)] = _number(value)
            return changed
        array = as_floats(bias)
        if array.shape != (self.n_units,):
            raise NetworkError(f"bias has shape {array.shape}; expected ({self.n_units},), one number per unit")
        return array

    def subnetwork(self, units: Iterable[str | int]) -> Network:
        """The network of the given units and the edges among them, in the order of this network."""
        kept = sorted({self.index(unit) for unit in units})
        place = np.full(self.n_units, -1, dtype=np.int64)
        place[kept] = np.arange(len(kept))
        inside = (place[self.parent] >= 0) & (place[self.child_of_edge] >= 0)
        counts = np.bincount(place[self.child_of_edge[inside]], minlength=len(kept))
        indptr = np.concatenate([[0], np.cumsum(counts)])
        names = tuple(self.names[i] for i in kept)
        return Network(names, indptr, place[self.parent[inside]], self.weight[inside], self.bias[kept])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Network):
            return NotImplemented
        return self is other or (
            self.names == other.names
            and np.array_equal(self.indptr, other.indptr)
            and np.array_equal(self.parent, other.parent)
            and np.array_equal(self.weight, other.weight)
            and np.array_equal(self.bias, other.bias)
        )

    def __hash__(self) -> int:
        return hash((self.names, self.parent.tobytes(), self.weight.tobytes(), self.bias.tobytes()))

    def __reduce__(self) -> tuple[Any, ...]:
        return Network, (self.names, self.indptr, self.parent, self.weight, self.bias, self.layers)

    def _summary(self) -> list[tuple[str, str]]:
        """What a person wants to know at a glance, as (label, value)."""
        strongest = "none"
        if self.n_edges:
            e = int(np.argmax(np.abs(self.weight)))
            parent, child = self.names[self.parent[e]], self.names[self.child_of_edge[e]]
            strongest = f"{self.weight[e]:+.3g} ({parent} -> {child})"
        return [
            ("units", f"{self.n_units:,}"),
            ("edges", f"{self.n_edges:,}"),
            ("layers", self._layer_text()),
            ("largest weight", strongest),
        ]

    def _layer_text(self) -> str:
        if self.layers is not None:
            return " × ".join(f"{size:,}" for size in self.layers)
        sizes = np.bincount(self.depths()).tolist()
        if len(sizes) > 6:
            return f"{len(sizes):,} levels"
        return " × ".join(f"{size:,}" for size in sizes)

    def __repr__(self) -> str:
        units, edges, layers, strongest = (value for _, value in self._summary())
        plural = "" if units == "1" else "s", "" if edges == "1" else "s"
        return (
            f"<Network: {units} unit{plural[0]}, {edges} edge{plural[1]}, layers {layers}, largest weight {strongest}>"
        )

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th style='text-align:left'>{label}</th><td style='text-align:left'>{html.escape(value)}</td></tr>"
            for label, value in self._summary()
        )
        shown = [html.escape(name) for name in self.names[:12]]
        names = ", ".join(shown) + (", …" if self.n_units > len(shown) else "")
        return (
            "<table><caption style='text-align:left'><b>sbnet.Network</b></caption>"
            f"{rows}<tr><th style='text-align:left'>names</th><td style='text-align:left'>{names}</td></tr></table>"
        )


def _frozen(values: Any, dtype: type[np.generic]) -> Any:
    """A private, read-only, contiguous copy; adding zero turns -0.0 into 0.0, so that equal arrays hash alike."""
    try:
        array = np.array(values, dtype=dtype, order="C")
    except (TypeError, ValueError) as error:
        raise NetworkError(f"parameters must be numbers: {error}") from None
    array += 0
    array.setflags(write=False)
    return array


def as_floats(values: Any) -> FloatArray:
    """Weights or biases as an array of numbers."""
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise NetworkError(f"weights and biases must be numbers: {error}") from None


def _number(value: Any) -> float:
    if np.ndim(value) != 0:
        raise NetworkError(f"a weight or a bias is one number; got {value!r}")
    return float(as_floats(value))


def _count_nonzero(matrix: Any) -> int:
    return int(matrix.count_nonzero() if scipy.sparse.issparse(matrix) else np.count_nonzero(matrix))


def _check_names(names: Sequence[str]) -> None:
    if not names:
        raise NetworkError("the network is empty; give at least one unit, by an edge or by a bias")
    for name in names:
        if not isinstance(name, str):
            raise NetworkError(f"unit names are strings; {name!r} is of type {type(name).__name__}")
        if not name:
            raise NetworkError("a unit has an empty name")
    if len(set(names)) < len(names):
        seen: set[str] = set()
        double = next(name for name in names if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise NetworkError(f"two units are called {double!r}; names must differ")


def _check_graph(net: Network) -> None:
    n, n_edges = len(net.names), len(net.parent) if net.parent.ndim == 1 else -1
    if net.indptr.shape != (n + 1,) or n_edges < 0 or net.indptr[0] != 0 or net.indptr[-1] != n_edges:
        raise NetworkError(f"indptr and parent do not describe the edges of {n} units")
    if np.any(np.diff(net.indptr) < 0):
        raise NetworkError("indptr must not fall")
    if net.weight.shape != (n_edges,):
        raise NetworkError(f"weight has shape {net.weight.shape}; expected ({n_edges},), one number per edge")
    if net.bias.shape != (n,):
        raise NetworkError(f"bias has shape {net.bias.shape}; expected ({n},), one number per unit")
    child = net.child_of_edge
    if np.any(net.parent < 0) or np.any(net.parent >= child):
        raise NetworkError("parents must precede their children; from_edges() puts units in order")
    within = np.diff(child) == 0
    if np.any(np.diff(net.parent)[within] <= 0):
        raise NetworkError("the parents of each unit must be in rising order, each once")
    if net.layers is not None and (sum(net.layers) != n or min(net.layers) < 1):
        raise NetworkError(f"layers {net.layers} do not add up to {n} units")


def _check_finite(net: Network) -> None:
    bad = np.flatnonzero(~(np.abs(net.bias) <= MAX_PARAMETER))
    if bad.size:
        raise NetworkError(f"the bias of {net.names[bad[0]]!r} is {net.bias[bad[0]]}; {_RANGE}")
    bad = np.flatnonzero(~(np.abs(net.weight) <= MAX_PARAMETER))
    if bad.size:
        parent, child = net.names[net.parent[bad[0]]], net.names[net.child_of_edge[bad[0]]]
        raise NetworkError(f"the weight {parent!r} -> {child!r} is {net.weight[bad[0]]}; {_RANGE}")


_RANGE = f"parameters must be finite, and at most {MAX_PARAMETER:.0e} in size"
