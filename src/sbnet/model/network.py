"""The model: a frozen record of a graph and of its units: names, weights, biases and gates."""

from __future__ import annotations

import html
import operator
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike

from sbnet import checks
from sbnet._types import FloatArray, Matrix, Model, States
from sbnet.errors import NetworkError, short, unknown_unit
from sbnet.kernels import codes as gates
from sbnet.model.conditional import Conditional, conditional
from sbnet.model.graph import Graph, as_floats, count, frozen, read_only
from sbnet.model.names import Index
from sbnet.model.notes import Note, notes_of, written
from sbnet.model.validation import MAX_PARAMETER as MAX_PARAMETER
from sbnet.model.validation import check_names, check_parameters, check_shapes, checked_gates

CERTAIN = 1000.0
"""What stands for certainty: the weight of a link of probability 1, and the size of the log-odds of 0 and of 1.

Sums take it as it is, e^-1000; evidence that it rules out is impossible, :mod:`sbnet.questions.support`.
"""


@dataclass(frozen=True, eq=False, repr=False)
class Network:
    r"""A belief network of binary units, eqs. (2)-(6). Parents precede children.

    .. math::
        P(S) = \prod_i P(S_i \mid x_i), \qquad x_i = h_i + \sum_j J_{ij} S_j

    A sigmoid unit is on with probability :math:`\sigma(x_i) = 1/(1 + e^{-x_i})`, a noisy-OR unit (the paper's
    appendix A) with probability :math:`1 - e^{-x_i}`, where no weight and no bias is negative.

    Build one with :func:`sbnet.from_edges`, :func:`sbnet.noisy_or`, :func:`sbnet.layered`,
    :func:`sbnet.from_weight_matrix` or :func:`sbnet.convert.from_networkx`. A network never changes:
    :meth:`with_parameters` gives a copy with other numbers.

    Attributes
    ----------
    names : tuple of str
        The units, in topological order: every unit comes after its parents.
    graph : Graph
        The edges: the parents of unit ``i`` are ``graph.parent[graph.indptr[i]:graph.indptr[i + 1]]``.
    weight : array of float, shape (n_edges,)
        The weight :math:`J_{ij}` of each edge, in the order of the graph.
    bias : array of float, shape (n_units,)
        The biases :math:`h_i`.
    gate : array of int8, shape (n_units,)
        What each unit is, as a code: 0, a sigmoid unit, by default; 1, a noisy-OR unit. Names are taken too.
    layers : tuple of int or None
        Sizes of the layers, top to bottom, if the network was built in layers.
    notes : mapping from str to Note
        What people wrote beside each unit: see :class:`Note`. Empty where nothing was written.

    Notes
    -----
    All arrays are read-only. Two networks are equal if they have the same units in the same order, the same edges, and
    the same numbers, whatever is written beside them; equal networks have equal hashes.
    """

    names: tuple[str, ...]
    graph: Graph
    weight: FloatArray
    bias: FloatArray
    gate: States = None  # type: ignore[assignment]  # filled in below
    layers: tuple[int, ...] | None = None
    notes: Mapping[str, Note] = None  # type: ignore[assignment]  # filled in below

    def __post_init__(self) -> None:
        set_ = object.__setattr__  # the one place where a frozen record is filled in
        names = checks.listed("names", self.names, "it must be a list", NetworkError)
        set_(self, "names", tuple(str(name) if isinstance(name, str) else name for name in names))
        set_(self, "weight", frozen(self.weight))
        set_(self, "bias", frozen(self.bias))
        if self.layers is not None:
            sizes = checks.listed("layers", self.layers, "it must be a list", NetworkError)
            for size in sizes:
                if not checks.is_whole(size):
                    raise NetworkError(f"the sizes of layers are whole numbers; got {checks.shown(size)}")
            set_(self, "layers", tuple(int(size) for size in sizes))
        check_names(self.names)
        if not isinstance(self.graph, Graph):
            raise NetworkError(f"graph is {self.graph!r}; give a Graph(indptr, parent), or use from_edges()")
        check_shapes(self.names, self.graph, self.weight, self.bias, self.layers)
        set_(self, "gate", read_only(checked_gates(self.gate, self.names)))
        check_parameters(self.names, self.graph, self.weight, self.bias, self.gate)
        set_(self, "notes", notes_of(self.names, self.notes))

    @property
    def n_units(self) -> int:
        """Number of units."""
        return len(self.names)

    @property
    def n_edges(self) -> int:
        """Number of edges."""
        return len(self.weight)

    @cached_property
    def _index(self) -> Index:
        return Index(self.names)

    @cached_property
    def model(self) -> Model:
        """The arrays that kernels read."""
        graph = self.graph
        by_parent = graph.child_indptr, graph.child, graph.child_edge
        n, edges = len(self.gate), len(self.weight)
        states = (read_only(array) for array in (np.full(n, 2), np.arange(n + 1), np.arange(edges + 1)))
        return Model(graph.indptr, graph.parent, *by_parent, self.weight, self.gate, *states)

    @cached_property
    def _cache(self) -> dict[Any, Any]:
        """What others have worked out about this network and would have to work out again; it never changes."""
        return {}

    def with_notes(self, notes: Mapping[str, Note]) -> Network:
        """A copy with other notes beside the units that are named.

        Examples
        --------
        >>> import sbnet as sb
        >>> net = sb.from_edges({("flu", "fever"): 2.0}).with_notes({"flu": sb.Note(about="influenza", group="causes")})
        >>> net.notes["flu"].about
        'influenza'
        """
        given = checks.mapping("notes", notes, "give a mapping from names to Note(about=…)", NetworkError)
        return replace(self, notes={**self.notes, **given})

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
            raise NetworkError(f"a unit is given by its name or its number; got {checks.shown(unit)}") from None
        if not 0 <= position < self.n_units:
            raise NetworkError(
                f"there is no unit number {checks.shown(position)}; the network has units 0 to {self.n_units - 1}"
            )
        return position

    def parents(self, unit: str | int) -> tuple[str, ...]:
        """Names of the parents of a unit."""
        i = self.index(unit)
        return tuple(self.names[j] for j in self.graph.parent[self.graph.indptr[i] : self.graph.indptr[i + 1]])

    def children(self, unit: str | int) -> tuple[str, ...]:
        """Names of the children of a unit."""
        j, graph = self.index(unit), self.graph
        return tuple(self.names[i] for i in graph.child[graph.child_indptr[j] : graph.child_indptr[j + 1]])

    def conditional(self, unit: str | int, given: Any = None) -> Conditional:
        """P(unit = 1) for chosen states of its parents, as a table of probabilities.

        Parameters
        ----------
        unit
            Its name or number.
        given
            A mapping from parents to states, or the parents that are on, or a list of either; parents that are not
            named are off. By default all states of up to five parents; of more, none on, each alone, and all.

        Examples
        --------
        >>> import sbnet as sb
        >>> sb.noisy_or({("flu", "fever"): 0.9, ("cold", "fever"): 0.2}, prior=0.1).conditional("fever")
        P(fever = 1), noisy-or, with these parents on:
          none of its parents  0.0000
          cold                 0.2000
          flu                  0.9000
          flu + cold           0.9200
        """
        i = self.index(unit)
        edges = slice(self.graph.indptr[i], self.graph.indptr[i + 1])
        name, code = self.names[i], int(self.gate[i])
        return conditional(
            name, code, gates.NAMES[code], self.parents(i), self.weight[edges], float(self.bias[i]), given
        )

    def edges(self) -> Iterator[tuple[str, str, float]]:
        """Each edge as (parent, child, weight), by child."""
        names, graph = self.names, self.graph
        for j, i, w in zip(graph.parent.tolist(), graph.child_of_edge.tolist(), self.weight.tolist(), strict=True):
            yield names[j], names[i], w

    def weight_matrix(self) -> FloatArray:
        """The dense matrix J; ``J[i, j]`` is the weight from parent j to child i.

        It takes 8 n_units² bytes; :meth:`sparse_weights` takes memory in proportion to the edges.
        """
        dense = np.zeros((self.n_units, self.n_units))
        dense[self.graph.child_of_edge, self.graph.parent] = self.weight
        return dense

    def sparse_weights(self) -> scipy.sparse.csr_array:
        """The matrix J as a sparse array; every edge is stored, also one of weight zero."""
        shape = (self.n_units, self.n_units)
        return scipy.sparse.csr_array((self.weight, self.graph.parent, self.graph.indptr), shape=shape)

    def with_parameters(
        self,
        *,
        weight: ArrayLike | Matrix | Mapping[tuple[str, str], float] | None = None,
        bias: ArrayLike | Mapping[str, float] | None = None,
    ) -> Network:
        """A copy with the same graph and other numbers.

        Parameters
        ----------
        weight
            One number per edge, in the order of :attr:`weight` and :meth:`edges`; or a matrix J, dense or sparse, that
            is zero where there is no edge; or a mapping from (parent, child) to the weights that change.
        bias
            One number per unit, or a mapping from names to the biases that change.
        """
        edges = self.weight if weight is None else self._edge_weights(weight)
        biases = self.bias if bias is None or isinstance(bias, Mapping) else as_floats(bias)
        if isinstance(bias, Mapping):
            biases = self.bias.copy()
            for name, value in bias.items():
                biases[self.index(name)] = _number(value)
        return replace(self, weight=edges, bias=biases)

    def _edge_weights(self, weight: Any) -> FloatArray:
        if isinstance(weight, Mapping) and not scipy.sparse.issparse(weight):  # scipy's dok matrices are mappings too
            ends = zip(self.graph.parent.tolist(), self.graph.child_of_edge.tolist(), strict=True)
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
        sparse, square = scipy.sparse.issparse(weight), (self.n_units, self.n_units)
        matrix: Any = scipy.sparse.csr_array(weight) if sparse else as_floats(weight)
        if matrix.shape == (self.n_edges,):
            return matrix  # type: ignore[no-any-return]
        if matrix.shape != square:
            expected = f"({self.n_edges},), one number per edge, or {square}" if matrix.ndim != 2 else f"{square}"
            raise NetworkError(f"weight has shape {matrix.shape}; expected {expected}")
        if self.n_edges == 0:
            values = np.zeros(0)
        else:
            values = np.asarray(matrix[self.graph.child_of_edge, self.graph.parent], dtype=np.float64).ravel()
        nonzero = int(matrix.count_nonzero() if sparse else np.count_nonzero(matrix))
        outside = nonzero - int(np.count_nonzero(values))
        if outside:
            raise NetworkError(f"weight has {outside} entries other than zero where the network has no edge")
        return values

    def subnetwork(self, units: Iterable[str | int]) -> Network:
        """The network of the given units and the edges among them, in the order of this network."""
        kept = sorted({self.index(unit) for unit in checks.units("units", units)})
        place = np.full(self.n_units, -1, dtype=np.int64)
        place[kept] = np.arange(len(kept))
        parent, child = place[self.graph.parent], place[self.graph.child_of_edge]
        inside = (parent >= 0) & (child >= 0)
        counts = np.bincount(child[inside], minlength=len(kept))
        graph = Graph(np.concatenate([[0], np.cumsum(counts)]), parent[inside])
        names = tuple(self.names[i] for i in kept)
        notes = {name: self.notes[name] for name in names}
        return Network(names, graph, self.weight[inside], self.bias[kept], self.gate[kept], notes=notes)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Network):
            return NotImplemented
        return self is other or (
            self.names == other.names
            and self.graph == other.graph
            and np.array_equal(self.weight, other.weight)
            and np.array_equal(self.bias, other.bias)
            and np.array_equal(self.gate, other.gate)
        )

    def __hash__(self) -> int:
        return hash((self.names, self.graph, self.weight.tobytes(), self.bias.tobytes(), self.gate.tobytes()))

    def __reduce__(self) -> tuple[Any, ...]:
        rest = self.gate, self.layers, written(self.notes)
        return Network, (self.names, self.graph, self.weight, self.bias, *rest)

    def _summary(self) -> list[tuple[str, str]]:
        """What a person wants to know at a glance, as (label, value)."""
        strongest = "none"
        if self.n_edges:
            e = int(np.argmax(np.abs(self.weight)))
            parent, child = self.names[self.graph.parent[e]], self.names[self.graph.child_of_edge[e]]
            strongest = f"{self.weight[e]:+.3g} ({short(parent)} -> {short(child)})"
        sizes = np.bincount(self.graph.depths).tolist() if self.layers is None else self.layers
        layers = " × ".join(f"{size:,}" for size in sizes)
        kinds = np.bincount(self.gate, minlength=len(gates.NAMES)).tolist()
        return [
            ("units", f"{self.n_units:,}"),
            ("edges", f"{self.n_edges:,}"),
            ("layers", layers if self.layers is not None or len(sizes) <= 6 else f"{len(sizes):,} levels"),
            ("gates", ", ".join(f"{n:,} {name}" for n, name in zip(kinds, gates.NAMES, strict=True) if n)),
            ("largest weight", strongest),
        ]

    def __repr__(self) -> str:
        _, _, layers, gate, strongest = (value for _, value in self._summary())
        size = f"{count(self.n_units, 'unit')}, {count(self.n_edges, 'edge')}"
        mixed = f", {gate} units" if self.gate.any() else ""
        return f"<Network: {size}{mixed}, layers {layers}, largest weight {strongest}>"

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


def _number(value: Any) -> float:
    number = as_floats(value)
    if number.ndim:
        raise NetworkError(f"a weight or a bias is one number; got {checks.shown(value)}")
    return float(number)
