"""The model: a frozen record of a graph and of its variables: names, states, weights, biases, gates and tables."""

from __future__ import annotations

import html
import math
import operator
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy
from numpy.typing import ArrayLike

from sbnet import checks
from sbnet._types import FloatArray, IndexArray, Matrix, Model, States
from sbnet.errors import NetworkError, short, unknown_unit
from sbnet.kernels import codes as gates
from sbnet.model.conditional import Conditional, Family, conditional
from sbnet.model.graph import Graph, as_floats, count, frozen, read_only
from sbnet.model.names import Index
from sbnet.model.notes import Note, notes_of, written
from sbnet.model.states import (
    StatesByName,
    block_sizes,
    checked_table,
    numbers_of_states,
    offsets,
    states_of,
    tables_of,
)
from sbnet.model.validation import MAX_PARAMETER as MAX_PARAMETER
from sbnet.model.validation import check_names, check_parameters, check_shapes, check_units, checked_gates

CERTAIN = 1000.0 + 2.0**-10
"""What stands for certainty: the weight of a link of probability 1, and the size of the log-odds of 0 and of 1.

Not 1000 itself, which people write, and which means e^-1000. Sums take it as it is; evidence that it rules out is
impossible, :mod:`sbnet.questions.support`.
"""


@dataclass(frozen=True, eq=False, repr=False)
class Network:
    r"""A belief network of variables with states, eqs. (2)-(6) where there are two. Parents precede children.

    .. math::
        P(S) = \prod_i P(S_i \mid x_i), \qquad x_i = h_i + \sum_j J_{ij} S_j

    A sigmoid variable is on with probability :math:`\sigma(x_i) = 1/(1 + e^{-x_i})`, a noisy-OR variable (the paper's
    appendix A) with probability :math:`1 - e^{-x_i}`, where no weight and no bias is negative.

    A variable with states 0 to K - 1 has K - 1 thresholds, each with an input of its own, to which a parent in state s
    adds the weight :math:`J_l[u, s]`, nothing in state 0. By its gate, :math:`P(v \ge l \mid v \ge l - 1) =
    \sigma(x_l)` (``"sigmoid"``, sequential logits), or :math:`P(v \le k) = \exp(-\sum_{l > k} x_l)`
    (``"noisy-or"``, which is a noisy-MAX then), or there is a table of its probabilities (``"table"``).

    Build one with :func:`sbnet.from_edges`, :func:`sbnet.noisy_or`, :func:`sbnet.layered`,
    :func:`sbnet.from_weight_matrix` or :func:`sbnet.convert.from_networkx`. A network never changes:
    :meth:`with_parameters` gives a copy with other numbers.

    Attributes
    ----------
    names : tuple of str
        The variables, in topological order: every variable comes after its parents.
    graph : Graph
        The edges: the parents of variable ``i`` are ``graph.parent[graph.indptr[i]:graph.indptr[i + 1]]``.
    weight : array of float, shape (n_edges,)
        The weight :math:`J_{ij}` of each edge, in the order of the graph. With more states, a block of them for each
        edge, one after the other: thresholds of the child by states of the parent from 1 on, row by row; none into a
        table.
    bias : array of float, shape (n_units,)
        The biases :math:`h_i`. With more states, one for each threshold; zeros for a variable that has a table.
    gate : array of int8, shape (n_units,)
        What each variable is, as a code: 0, a sigmoid variable, by default; 1, a noisy-OR variable; 2, a table. Names
        are taken too.
    layers : tuple of int or None
        Sizes of the layers, top to bottom, if the network was built in layers.
    notes : mapping from str to Note
        What people wrote beside each variable: see :class:`Note`. Empty where nothing was written.
    states : mapping from str to tuple of str
        The names of the states of each variable, in order; ``("no", "yes")`` by default.
    tables : mapping from str to array
        Of variables with a table, P(state given the states of its parents): an axis for each parent, in the order of
        the graph, and a last one for the states of the variable.

    Notes
    -----
    All arrays are read-only. Two networks are equal if they have the same variables in the same order, the same edges,
    and the same numbers, whatever is written beside them; what two states are called is such a note, the names of more
    are not. Equal networks have equal hashes.

    Examples
    --------
    >>> import sbnet as sb
    >>> net = sb.from_edges({("flu", "fever"): [[2.0], [1.0]]}, states={"fever": ["none", "mild", "high"]})
    >>> net.names, net.states["fever"]
    (('flu', 'fever'), ('none', 'mild', 'high'))
    >>> net.parents("fever")
    ('flu',)
    """

    names: tuple[str, ...]
    graph: Graph
    weight: FloatArray
    bias: FloatArray
    gate: States = None  # type: ignore[assignment]  # filled in below
    layers: tuple[int, ...] | None = None
    notes: Mapping[str, Note] = None  # type: ignore[assignment]  # filled in below
    states: Mapping[str, tuple[str, ...]] = None  # type: ignore[assignment]  # filled in below
    tables: Mapping[str, FloatArray] = None  # type: ignore[assignment]  # filled in below

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
        check_units(self.names, self.graph, self.layers)
        set_(self, "notes", notes_of(self.names, self.notes))
        set_(self, "states", states_of(self.names, self.states, self.notes))
        set_(self, "tables", tables_of(self.names, self.graph, self.states, self.tables))
        set_(self, "gate", read_only(checked_gates(self.gate, self.names, self.tables)))
        check_shapes(self.names, self.graph, self.weight, self.bias, self.model)
        check_parameters(self.names, self.graph, self.weight, self.bias, self.model)

    @property
    def n_units(self) -> int:
        """Number of variables."""
        return len(self.names)

    @property
    def n_edges(self) -> int:
        """Number of edges."""
        return self.graph.n_edges

    @property
    def n_states(self) -> IndexArray:
        """Number of states of each variable."""
        return self.model.n_states

    @cached_property
    def is_binary(self) -> bool:
        """Has every variable two states, and none a table? Then each has one bias, and each edge one weight."""
        return not self.tables and bool((self.model.n_states == 2).all())

    @cached_property
    def columns(self) -> tuple[IndexArray, IndexArray]:
        """The variable and the state of each column of means: one for each state from 1 on, as thresholds are."""
        n = self.model.n_states - 1
        variable = np.repeat(np.arange(self.n_units), n)
        return read_only(variable), read_only(np.arange(len(variable)) - self.model.threshold[variable] + 1)

    def columns_of(self, unit: str | int) -> slice:
        """Where the columns of a variable stand among those of all means, and its thresholds among all biases.

        Parameters
        ----------
        unit : str or int
            A name or a position.

        Returns
        -------
        slice
        """
        i, threshold = self.index(unit), self.model.threshold
        return slice(int(threshold[i]), int(threshold[i + 1]))

    @property
    def named_states(self) -> dict[str, tuple[str, ...]]:
        """The states of those variables that have others than no and yes."""
        assert isinstance(self.states, StatesByName)
        return self.states.own

    @cached_property
    def _index(self) -> Index:
        return Index(self.names)

    @cached_property
    def model(self) -> Model:
        """The arrays that kernels read."""
        graph = self.graph
        by_parent = graph.child_indptr, graph.child, graph.child_edge
        n_states = numbers_of_states(self.names, self.named_states)
        places = offsets(n_states - 1), offsets(block_sizes(graph, n_states, self.gate))
        return Model(graph.indptr, graph.parent, *by_parent, self.weight, self.gate, n_states, *places)

    @cached_property
    def _cache(self) -> dict[Any, Any]:
        """What others have worked out about this network and would have to work out again; it never changes."""
        return {}

    def with_notes(self, notes: Mapping[str, Note]) -> Network:
        """A copy with other notes beside the variables that are named.

        Parameters
        ----------
        notes : mapping of str to Note

        Returns
        -------
        Network

        Examples
        --------
        >>> import sbnet as sb
        >>> net = sb.from_edges({("flu", "fever"): 2.0}).with_notes({"flu": sb.Note(about="influenza", group="causes")})
        >>> net.notes["flu"].about
        'influenza'
        """
        given = checks.mapping("notes", notes, "give a mapping from names to Note(about=…)", NetworkError)
        said = {name for name, note in given.items() if isinstance(note, Note) and note.states}
        states = {name: own for name, own in self.named_states.items() if name not in said or len(own) > 2}
        return replace(self, notes={**self.notes, **given}, states=states)

    def index(self, unit: str | int) -> int:
        """Position of a variable, given by name or by position.

        Parameters
        ----------
        unit : str or int
            A name or a position.

        Returns
        -------
        int
        """
        if isinstance(unit, str):
            try:
                return self._index[unit]
            except KeyError:
                raise unknown_unit(unit, self.names, "the call") from None
        try:
            position = operator.index(unit)
        except TypeError:
            raise NetworkError(f"a variable is given by its name or its number; got {checks.shown(unit)}") from None
        if not 0 <= position < self.n_units:
            raise NetworkError(
                f"there is no variable number {checks.shown(position)}; the network has 0 to {self.n_units - 1}"
            )
        return position

    def parents(self, unit: str | int) -> tuple[str, ...]:
        """Names of the parents of a variable.

        Parameters
        ----------
        unit : str or int
            A name or a position.

        Returns
        -------
        tuple of str
        """
        i = self.index(unit)
        return tuple(self.names[j] for j in self.graph.parent[self.graph.indptr[i] : self.graph.indptr[i + 1]])

    def children(self, unit: str | int) -> tuple[str, ...]:
        """Names of the children of a variable.

        Parameters
        ----------
        unit : str or int
            A name or a position.

        Returns
        -------
        tuple of str
        """
        j, graph = self.index(unit), self.graph
        return tuple(self.names[i] for i in graph.child[graph.child_indptr[j] : graph.child_indptr[j + 1]])

    def conditional(self, unit: str | int, given: Any = None) -> Conditional:
        """P(variable = 1) for chosen states of its parents, as a table of probabilities.

        Parameters
        ----------
        unit : str or int
            Its name or number.
        given : sequence, optional
            A mapping from parents to states, or the parents that are on, or a list of either; parents that are not
            named are off. By default all states of up to five parents; of more, none on, each alone, and all.

        Returns
        -------
        Conditional

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
        return conditional(self.family(unit), given)

    def family(self, unit: str | int) -> Family:
        """What a variable is given its parents: its states and theirs, its biases and weights, or its table.

        Parameters
        ----------
        unit : str or int
            A name or a position.

        Returns
        -------
        Family
        """
        i = self.index(unit)
        name, parents = self.names[i], self.parents(i)
        own = slice(int(self.graph.indptr[i]), int(self.graph.indptr[i + 1]))
        weights = () if name in self.tables else tuple(self._block(e) for e in range(own.start, own.stop))
        states, bias = tuple(self.states[parent] for parent in parents), self.bias[self.columns_of(i)]
        return Family(name, self.states[name], int(self.gate[i]), parents, states, bias, weights, self.tables.get(name))

    def _block(self, e: int) -> FloatArray:
        """The weights of an edge, thresholds of the child by states of the parent from 1 on."""
        n, block = self.model.n_states, self.model.block
        shape = n[self.graph.child_of_edge[e]] - 1, n[self.graph.parent[e]] - 1
        return self.weight[block[e] : block[e + 1]].reshape(shape)

    def edges(self) -> Iterator[tuple[str, str, Any]]:
        """Each edge as (parent, child, weight), by child.

        The weight is a number between variables of two states, else an array, thresholds of the child by states of the
        parent from 1 on; None if the child has a table.

        Yields
        ------
        parent, child : str
        weight : float, ndarray or None
        """
        names, graph = self.names, self.graph
        ends = zip(graph.parent.tolist(), graph.child_of_edge.tolist(), strict=True)
        if self.is_binary:
            for (j, i), w in zip(ends, self.weight.tolist(), strict=True):
                yield names[j], names[i], w
            return
        for e, (j, i) in enumerate(ends):
            block = None if names[i] in self.tables else self._block(e)
            yield names[j], names[i], float(block[0, 0]) if block is not None and block.size == 1 else block

    def weight_matrix(self) -> FloatArray:
        """The dense matrix J; ``J[i, j]`` is the weight from parent j to child i.

        It takes 8 n_units² bytes; :meth:`sparse_weights` takes memory in proportion to the edges.

        Returns
        -------
        ndarray of shape (n_units, n_units)
        """
        self.check_binary("a matrix of weights", "edges() lists the weights of each edge")
        dense = np.zeros((self.n_units, self.n_units))
        dense[self.graph.child_of_edge, self.graph.parent] = self.weight
        return dense

    def sparse_weights(self) -> scipy.sparse.csr_array:
        """The matrix J as a sparse array; every edge is stored, also one of weight zero.

        Returns
        -------
        scipy.sparse.csr_array
        """
        self.check_binary("a matrix of weights", "edges() lists the weights of each edge")
        shape = (self.n_units, self.n_units)
        return scipy.sparse.csr_array((self.weight, self.graph.parent, self.graph.indptr), shape=shape)

    def check_binary(self, what: str, way_out: str = "exact answers and samples know them") -> None:
        """An error that names a variable with more than two states, or with a table, where only others are known."""
        if not self.is_binary:
            i = int(np.argmax((self.n_states != 2) | (self.gate == gates.TABLE)))
            more, but = (f"{self.n_states[i]} states", "") if self.n_states[i] > 2 else ("a table", " without tables")
            raise NetworkError(f"variable {self.names[i]!r} has {more}, and {what} is for two states{but}; {way_out}")

    def check_no_tables(self, what: str, way_out: str = "exact_posterior() and certify() know them") -> None:
        """An error that names a variable with a table, where only sigmoid and noisy-OR variables are known."""
        if self.tables:
            name = next(iter(self.tables))
            raise NetworkError(f"variable {name!r} has a table, and {what} knows none; {way_out}")

    def with_parameters(
        self,
        *,
        weight: ArrayLike | Matrix | Mapping[tuple[str, str], Any] | None = None,
        bias: ArrayLike | Mapping[str, Any] | None = None,
        tables: Mapping[str, ArrayLike] | None = None,
    ) -> Network:
        """A copy with the same graph and other numbers.

        Parameters
        ----------
        weight : array_like, sparse matrix or mapping, optional
            One number per edge, in the order of :attr:`weight` and :meth:`edges`; or a matrix J, dense or sparse, that
            is zero where there is no edge; or a mapping from (parent, child) to the weights that change, which are
            arrays where there are more than two states.
        bias : array_like or mapping, optional
            One number per variable, or a mapping from names to the biases that change.
        tables : mapping, optional
            The tables that change, by name.

        Returns
        -------
        Network
        """
        edges = self.weight if weight is None else self._edge_weights(weight)
        biases = self.bias if bias is None or isinstance(bias, Mapping) else as_floats(bias)
        if isinstance(bias, Mapping):
            biases = self.bias.copy()
            for name, value in bias.items():
                own = self.columns_of(name)
                biases[own] = numbers(value, (own.stop - own.start,), f"the bias of {name!r}")
        known, wanted = {**self.tables}, "give the tables that change, by name"
        for name, table in checks.mapping("tables", {} if tables is None else tables, wanted, NetworkError).items():
            i = self.index(name)
            if self.names[i] not in known:
                raise NetworkError(f"{self.names[i]!r} has no table that could change")
            known[self.names[i]] = checked_table(self.names[i], self.parents(i), self.states, table)
        return replace(self, weight=edges, bias=biases, tables=known)

    def _edge_weights(self, weight: Any) -> FloatArray:
        if isinstance(weight, Mapping) and not scipy.sparse.issparse(weight):  # scipy's dok matrices are mappings too
            ends = zip(self.graph.parent.tolist(), self.graph.child_of_edge.tolist(), strict=True)
            edge = {pair: e for e, pair in enumerate(ends)}
            changed, block, n = self.weight.copy(), self.model.block, self.model.n_states
            for key, value in weight.items():
                if not (isinstance(key, tuple) and len(key) == 2):
                    raise NetworkError(f"the keys of a mapping of weights are (parent, child); got {key!r}")
                parent, child = key
                j, i = self.index(parent), self.index(child)
                place = edge.get((j, i))
                if place is None:
                    raise NetworkError(f"there is no edge {parent!r} -> {child!r} whose weight could change")
                if self.names[i] in self.tables:
                    raise NetworkError(f"{child!r} has a table; give tables={{{self.names[i]!r}: …}} for other numbers")
                shape = int(n[i]) - 1, int(n[j]) - 1
                changed[block[place] : block[place + 1]] = numbers(value, shape, _edge_name(parent, child)).ravel()
            return changed
        sparse, square = scipy.sparse.issparse(weight), (self.n_units, self.n_units)
        matrix: Any = scipy.sparse.csr_array(weight) if sparse else as_floats(weight)
        if matrix.shape == self.weight.shape or not self.is_binary:  # the record says what is wrong with others
            return matrix.toarray() if sparse else matrix  # type: ignore[no-any-return]
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
        """The network of the given variables and the edges among them, in the order of this network.

        Parents that are left out are in their first state, which is what no edge says.

        Parameters
        ----------
        units : iterable of str or int

        Returns
        -------
        Network
        """
        kept = sorted({self.index(unit) for unit in checks.units("units", units)})
        place = np.full(self.n_units, -1, dtype=np.int64)
        place[kept] = np.arange(len(kept))
        parent, child = place[self.graph.parent], place[self.graph.child_of_edge]
        inside = (parent >= 0) & (child >= 0)
        counts = np.bincount(child[inside], minlength=len(kept))
        graph = Graph(np.concatenate([[0], np.cumsum(counts)]), parent[inside])
        names = tuple(self.names[i] for i in kept)
        notes = {name: self.notes[name] for name in names}
        weight = self.weight[np.repeat(inside, np.diff(self.model.block))]
        bias = self.bias[np.isin(self.columns[0], kept)]
        states, tables = {name: self.states[name] for name in names}, {}
        for i in kept:
            if self.names[i] in self.tables:
                own = slice(self.graph.indptr[i], self.graph.indptr[i + 1])
                at = tuple(slice(None) if one else 0 for one in inside[own])
                tables[self.names[i]] = self.tables[self.names[i]][at]
        return Network(names, graph, weight, bias, self.gate[kept], notes=notes, states=states, tables=tables)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Network):
            return NotImplemented
        return self is other or (
            self.names == other.names
            and self.graph == other.graph
            and np.array_equal(self.weight, other.weight)
            and np.array_equal(self.bias, other.bias)
            and np.array_equal(self.gate, other.gate)
            and self._more_states == other._more_states
            and self.tables.keys() == other.tables.keys()
            and all(np.array_equal(table, other.tables[name]) for name, table in self.tables.items())
        )

    @cached_property
    def _more_states(self) -> dict[str, tuple[str, ...]]:
        """The names of states where there are more than two."""
        return {name: states for name, states in self.named_states.items() if len(states) > 2}

    def __hash__(self) -> int:
        arrays: list[Any] = [self.weight, self.bias, self.gate, *self.tables.values()]
        return hash((self.names, self.graph, *(array.tobytes() for array in arrays)))

    def __reduce__(self) -> tuple[Any, ...]:
        rest = self.gate, self.layers, written(self.notes), self.named_states, self.tables
        return Network, (self.names, self.graph, self.weight, self.bias, *rest)

    def _summary(self) -> list[tuple[str, str]]:
        """What a person wants to know at a glance, as (label, value)."""
        strongest = "none"
        if len(self.weight):
            k = int(np.argmax(np.abs(self.weight)))
            e = int(np.searchsorted(self.model.block, k, side="right")) - 1
            parent, child = self.names[self.graph.parent[e]], self.names[self.graph.child_of_edge[e]]
            strongest = f"{self.weight[k]:+.3g} ({short(parent)} -> {short(child)})"
        sizes = np.bincount(self.graph.depths).tolist() if self.layers is None else self.layers
        layers = " × ".join(f"{size:,}" for size in sizes)
        least, most = int(self.n_states.min()), int(self.n_states.max())
        kinds = np.bincount(self.gate, minlength=len(gates.NAMES)).tolist()
        return [
            ("variables", f"{self.n_units:,}"),
            ("edges", f"{self.n_edges:,}"),
            ("layers", layers if self.layers is not None or len(sizes) <= 6 else f"{len(sizes):,} levels"),
            ("gates", ", ".join(f"{n:,} {name}" for n, name in zip(kinds, gates.NAMES, strict=True) if n)),
            ("largest weight", strongest),
            *([] if least == most == 2 else [("states", f"{least}" if least == most else f"{least} to {most}")]),
        ]

    def __repr__(self) -> str:
        (_, _, layers, gate, strongest, *states) = (value for _, value in self._summary())
        size = f"{count(self.n_units, 'variable')}, {count(self.n_edges, 'edge')}"
        size += f", {states[0]} states" if states else ""
        mixed = f", {gate}" if self.gate.any() else ""
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


def _edge_name(parent: Any, child: Any) -> str:
    return f"the weight {parent!r} -> {child!r}"


def numbers(value: Any, shape: tuple[int, ...], what: str) -> FloatArray:
    """A weight or a bias: one number for two states, else an array of the shape that the states ask for."""
    given = as_floats(value, what)
    if given.ndim and shape in ((1,), (1, 1)) and given.shape != shape:
        raise NetworkError(f"{what} is {checks.shown(value)}; two states ask for one number")
    if math.prod(shape) == 1 and given.size == 1:
        return given.reshape(shape)
    if given.shape != shape:
        got = f"{checks.shown(value)}, one number" if not given.ndim else f"an array of shape {given.shape}"
        meant = "(thresholds of the child, states of the parent from 1 on)" if len(shape) == 2 else "one per threshold"
        raise NetworkError(f"{what} is {got}; its states ask for an array of shape {shape}, {meant}")
    return given
