"""Ways to build a network: from edges, in layers, from a matrix, from and to networkx."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import scipy
from numpy.typing import ArrayLike

from sbnet import checks
from sbnet._types import FloatArray, IndexArray, Matrix, RngLike, States
from sbnet.errors import NetworkError, hint, unknown_unit
from sbnet.kernels import codes as gates
from sbnet.model.graph import Graph, as_floats, topological_order
from sbnet.model.network import Network, numbers
from sbnet.model.notes import NOTHING
from sbnet.model.states import NO_YES, as_table, checked_states, checked_table, states_of
from sbnet.model.suggestions import check_network, warn_of_near_names
from sbnet.model.validation import check_name, check_names

if TYPE_CHECKING:
    import networkx

GateLike: TypeAlias = "str | Mapping[str, str] | None"


def from_edges(
    edges: Mapping[tuple[str, str], Any] | Iterable[tuple[str, str, Any]],
    *,
    bias: Mapping[str, Any] | None = None,
    gate: GateLike = None,
    names: Sequence[str] | None = None,
    states: Mapping[str, Sequence[str]] | None = None,
    tables: Mapping[str, Any] | None = None,
    parents: Mapping[str, Sequence[str]] | None = None,
) -> Network:
    """Build a network from its edges.

    Parameters
    ----------
    edges : mapping or iterable of tuples
        A mapping from (parent, child) to the weight, or (parent, child, weight) triples. The weight is a number between
        variables with two states, else an array, thresholds of the child by states of the parent from 1 on; None into a
        variable that has a table.
    bias : mapping, optional
        Biases by name; zero where none is given. A variable that appears only here has no edges. A variable with K
        states has K - 1 of them.
    gate : str or mapping
        What variables are, by name: ``"sigmoid"`` (which all others are) or ``"noisy-or"``; or one word for all
        variables that have parents. Weights into a noisy-OR variable are -ln(1 - p) of its causes, its bias is that of
        its leak; :func:`sbnet.noisy_or` takes the probabilities themselves.
    names : sequence of str, optional
        The variables in the order they should have, as far as parents may come before children. Without it, the order
        is that in which the variables are first mentioned.
    states : mapping, optional
        The names of the states of variables that have others than no and yes, in order.
    tables : mapping, optional
        Tables by name: probabilities in an array with an axis for each parent and a last one for the states of the
        variable, or in nested mappings from states to what follows; P(second state) is enough of two states.
    parents : mapping, optional
        The parents of variables with tables, in the order of the axes; by default, as their edges are listed. Edges
        from them need not be listed.

    Returns
    -------
    Network

    Examples
    --------
    >>> import sbnet as sb
    >>> net = sb.from_edges({("rain", "wet"): 2.0, ("sprinkler", "wet"): 1.5}, bias={"rain": -1.0})
    >>> net.names
    ('rain', 'sprinkler', 'wet')
    >>> net = sb.from_edges(
    ...     {("flu", "fever"): [[2.0], [1.0]]}, bias={"flu": -2.0}, states={"fever": ["none", "mild", "high"]}
    ... )
    >>> net.conditional("fever")
    P(fever), sigmoid, with these parents on:
                           none    mild    high
      none of its parents  0.5000  0.2500  0.2500
      flu                  0.1192  0.2369  0.6439
    """
    named = () if names is None else _names(names)
    if named:
        check_names(named)
    number = {name: k for k, name in enumerate(named)}
    parent, child, weight = list[int](), list[int](), list[Any]()
    for item in _triples(edges):
        try:
            a, b, w = item
        except (TypeError, ValueError):
            raise NetworkError(f"an edge is (parent, child, weight); got {item!r}") from None
        if not (isinstance(a, str) and isinstance(b, str)):
            odd = b if isinstance(a, str) else a
            raise NetworkError(f"variable names are strings; {odd!r} is of type {type(odd).__name__}")
        parent.append(number.setdefault(a, len(number)))
        child.append(number.setdefault(b, len(number)))
        weight.append(w)
    if not (bias is None or isinstance(bias, Mapping)):
        name = next(iter(number), "rain")
        raise NetworkError(f"bias is {bias!r}; give numbers by name, such as bias={{{name!r}: -1.0}}")
    biases = bias or {}
    warn_of_near_names(number, biases)
    tabled = _tabled(tables, parents, number, parent, child, weight)
    for name in biases:
        number.setdefault(name, len(number))
    listed = tuple(number)
    if names is not None and len(listed) > len(named):
        raise NetworkError(f"variable {listed[len(named)]!r} is not among the given names")
    ends = np.array(parent, np.int64), np.array(child, np.int64)
    arrays = any(issubclass(kind, list | tuple | np.ndarray) for kind in set(map(type, (*weight, *biases.values()))))
    if states is None and not tabled and not arrays:
        h = [biases.get(name, 0.0) for name in listed]
        network = _assemble(listed, *ends, weight, h)
    else:
        network = _with_states(listed, *ends, weight, biases, states, tabled)
    return network if gate is None else replace(network, gate=gate_codes(network, gate))


def _tabled(
    tables: Any, parents: Any, number: dict[str, int], parent: list[int], child: list[int], weight: list[Any]
) -> dict[str, tuple[tuple[str, ...], Any]]:
    """The tables with the parents that their axes are for; parents that are named beside them become edges."""
    if tables is None and parents is None:
        return {}
    given = checks.mapping("tables", {} if tables is None else tables, "give tables by name", NetworkError)
    wanted = "give lists of parents by name"
    axes = checks.mapping("parents", {} if parents is None else parents, wanted, NetworkError)
    for name in axes:
        if name not in given:
            raise NetworkError(f"parents are given for {name!r}, which has no table{hint(str(name), given)}")
    names = list(number)
    of_edges: dict[str, list[str]] = {}
    for j, i, w in zip(parent, child, weight, strict=True):
        if names[i] in given:
            of_edges.setdefault(names[i], []).append(names[j])
            if w is not None:
                text = f"the edge {names[j]!r} -> {names[i]!r} has the weight {checks.shown(w)}, and {names[i]!r} has a"
                raise NetworkError(f"{text} table, which says all; give None for the weight")
    found: dict[str, tuple[tuple[str, ...], Any]] = {}
    for name, table in given.items():
        check_name(name)
        own = of_edges.get(name, [])
        order = _names(axes[name], f"the parents of {name!r}") if name in axes else tuple(own)
        for one in order:
            check_name(one)
        left = [one for one in own if one not in order]
        if left or len(set(order)) < len(order):
            text = f"lack {left[0]!r}, from which there is an edge" if left else "name one of them twice"
            raise NetworkError(f"the parents of {name!r} {text}; they are the axes of its table, each once")
        for one in order:
            number.setdefault(one, len(number))
        number.setdefault(name, len(number))
        for one in order:
            if one not in own:
                parent.append(number[one])
                child.append(number[name])
                weight.append(None)
        found[name] = order, table
    return found


def _with_states(
    names: tuple[str, ...],
    parent: IndexArray,
    child: IndexArray,
    weight: list[Any],
    bias: Mapping[str, Any],
    states: Any,
    tabled: Mapping[str, tuple[tuple[str, ...], Any]],
) -> Network:
    """A network of variables with states; numbers are brought into the shapes that the states ask for."""
    check_names(names)
    known = states_of(names, states, dict.fromkeys(names, NOTHING))
    order, edge, indptr, above = _sorted(names, parent, child)
    listed = tuple(names[i] for i in order)
    h = [np.zeros(len(known[name]) - 1) for name in listed]
    for k, name in enumerate(listed):
        if name in bias and name in tabled:
            raise NetworkError(f"{name!r} has a bias and a table, which says all; leave one of them out")
        h[k] = numbers(bias[name], h[k].shape, f"the bias of {name!r}") if name in bias else h[k]
    blocks = [np.zeros(0)]
    for e in edge.tolist():
        a, b = names[parent[e]], names[child[e]]
        if b in tabled:
            continue
        if weight[e] is None:
            raise NetworkError(f"the edge {a!r} -> {b!r} has no weight, and {b!r} no table; give one of them")
        shape = len(known[b]) - 1, len(known[a]) - 1
        blocks.append(numbers(weight[e], shape, f"the weight {a!r} -> {b!r}").ravel())
    tables, place = {}, {name: k for k, name in enumerate(listed)}
    for name, (axes, given) in tabled.items():
        table = checked_table(name, axes, known, as_table(name, axes, known, given))
        tables[name] = np.transpose(table, [*np.argsort([place[axis] for axis in axes]), len(axes)])
    graph = Graph(indptr, above)
    return Network(listed, graph, np.concatenate(blocks), np.concatenate(h), states=known, tables=tables)


def gate_codes(network: Network, gate: GateLike) -> States:
    """The codes of all units from words: by name, or one for all units that have parents."""
    codes = network.gate.copy()
    if isinstance(gate, str):
        codes[(np.diff(network.graph.indptr) > 0) & (codes != gates.TABLE)] = gate_code(gate, "all variables")
        return codes
    if not isinstance(gate, Mapping):
        raise NetworkError(f"gate is a word or a mapping from names to words; got {type(gate).__name__}")
    for name, word in gate.items():
        if not isinstance(name, str) or name not in network._index:
            raise unknown_unit(name, network.names, "gate")
        codes[network._index[name]] = gate_code(word, repr(name))
    return codes


def gate_code(word: Any, unit: str) -> int:
    if not isinstance(word, str) or word not in gates.NAMES:
        known = " or ".join(repr(name) for name in gates.NAMES)
        raise NetworkError(f"the gate of {unit} is {checks.shown(word)}; it is {known}")
    return gates.NAMES.index(word)


def _names(names: Any, what: str = "names") -> tuple[Any, ...]:
    """Names as a tuple; those of a text are its letters."""
    if isinstance(names, str):
        return tuple(names)
    return tuple(checks.listed(what, names, "give a list of names, one for each variable", NetworkError))


def _triples(edges: Any) -> Iterable[Any]:
    if not isinstance(edges, Mapping):
        wanted = "give a mapping such as {('rain', 'wet'): 2.0}, or (parent, child, weight) triples; {} for no edges"
        yield from checks.listed("edges", edges, wanted, NetworkError)
        return
    for key, weight in edges.items():
        if not (isinstance(key, tuple) and len(key) == 2):
            raise NetworkError(f"the keys of a mapping of edges are (parent, child); got {key!r}")
        yield *key, weight


def from_weight_matrix(
    weight: ArrayLike | Matrix, *, bias: ArrayLike | None = None, names: Sequence[str] | None = None
) -> Network:
    """Build a network from a matrix of weights.

    Parameters
    ----------
    weight : array_like or sparse matrix
        Square matrix J, a dense array or any scipy sparse matrix; ``J[i, j]`` is the weight from parent j to child i.
        Entries other than zero are edges; a sparse matrix may also store zeros, which are then edges of weight zero.
    bias : array_like, optional
        One number per variable; zero by default.
    names : sequence of str, optional
        One name per variable; ``u0``, ``u1``, … by default. If the matrix is not lower triangular, variables are put in
        topological order and keep their names.

    Returns
    -------
    Network

    Examples
    --------
    >>> import sbnet as sb
    >>> sb.from_weight_matrix([[0, 0], [2.0, 0]], bias=[-1.0, 0.0], names=["rain", "wet"])
    <Network: 2 variables, 1 edge, layers 1 × 1, largest weight +2 (rain -> wet)>
    """
    matrix: Any = weight if scipy.sparse.issparse(weight) else as_floats(weight)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise NetworkError(f"a weight matrix is square; got shape {matrix.shape}")
    n = matrix.shape[0]
    if scipy.sparse.issparse(matrix):
        coo = scipy.sparse.csr_array(matrix).tocoo()
        child, parent, values = coo.row, coo.col, coo.data
    else:
        child, parent = np.nonzero(matrix)
        values = matrix[child, parent]
    listed = tuple(f"u{i}" for i in range(n)) if names is None else _names(names)
    if len(listed) != n:
        raise NetworkError(f"{len(listed)} names were given for {n} variables")
    h = np.zeros(n) if bias is None else as_floats(bias)
    if h.shape != (n,):
        raise NetworkError(f"bias has shape {h.shape}; expected ({n},), one number per variable")
    return _assemble(listed, parent.astype(np.int64), child.astype(np.int64), values, h)


def layered(
    sizes: Sequence[int],
    *,
    rng: RngLike = None,
    scale: float = 0.1,
    autoregressive: bool = False,
    bottom_names: Sequence[str] | None = None,
    gate: GateLike = None,
    states: Mapping[str, Sequence[str]] | Sequence[str] | None = None,
) -> Network:
    """Build a network of fully connected layers, with random parameters.

    Parameters
    ----------
    sizes : sequence of int
        Variables in each layer, top to bottom. The bottom layer is the data: an array with as many columns matches it.
    rng : int or numpy.random.Generator, optional
        Seed or generator.
    scale : float
        Weights and biases are uniform between ``-scale`` and ``scale``, as in the paper's Figure 5 (``scale=1``).
    autoregressive : bool
        Add edges inside the bottom layer: its variable k has the variables 0 to k-1 among its parents.
    bottom_names : sequence of str, optional
        Names of the bottom layer; ``x0``, ``x1``, … by default. Hidden variables are ``h1_0``, … from the top layer
        down.
    gate : str, sequence or mapping
        What variables are, as in :func:`from_edges`. Weights and biases of noisy-OR variables are uniform between 0 and
        ``scale``.
    states : mapping or sequence of str, optional
        The names of the states of variables that have others than no and yes, by name; or one list for all variables of
        the bottom layer.

    Returns
    -------
    Network

    Examples
    --------
    >>> import sbnet as sb
    >>> sb.layered((8, 24, 64), rng=0)
    <Network: 96 variables, 1,728 edges, layers 8 × 24 × 64, largest weight -0.1 (h2_15 -> x27)>
    """
    wanted = "give the sizes of the layers, top to bottom, such as (8, 24, 64)"
    layers = (sizes,) if checks.is_whole(sizes) else tuple(checks.listed("sizes", sizes, wanted, NetworkError))
    if not layers:
        raise NetworkError("the network is empty; give the size of at least one layer")
    for size in layers:
        if not checks.is_whole(size) or not 1 <= size <= checks.MOST:
            raise NetworkError(f"the size of a layer is a positive whole number; got {checks.shown(size)}")
    layers = tuple(map(int, layers))
    scale, autoregressive = checks.not_negative("scale", scale), checks.flag("autoregressive", autoregressive)
    bottom = tuple(f"x{k}" for k in range(layers[-1])) if bottom_names is None else _names(bottom_names, "bottom_names")
    if len(bottom) != layers[-1]:
        raise NetworkError(f"{len(bottom)} names were given for a bottom layer of {layers[-1]} variables")
    hidden = tuple(f"h{d}_{k}" for d, size in enumerate(layers[:-1], 1) for k in range(size))
    ends = np.cumsum(layers)
    parents: list[IndexArray] = []
    for d, size in enumerate(layers):
        above = np.arange(ends[d - 1] - layers[d - 1], ends[d - 1]) if d else np.zeros(0, np.int64)
        for k in range(size):
            earlier = k if autoregressive and d == len(layers) - 1 else 0
            parents.append(np.concatenate([above, ends[d] - size + np.arange(earlier)]))
    indptr = np.concatenate([[0], np.cumsum([len(p) for p in parents])])
    generator, graph = checks.generator(rng), Graph(indptr, np.concatenate(parents))
    if states is not None and not isinstance(states, Mapping):
        states = dict.fromkeys(bottom, checked_states("the bottom layer", states))
    check_names(hidden + bottom)
    known = states_of(hidden + bottom, states, dict.fromkeys(hidden + bottom, NOTHING))
    n = np.array([len(known[name]) for name in hidden + bottom]) - 1
    block = n[graph.child_of_edge] * n[graph.parent]
    weight = generator.uniform(-scale, scale, size=int(block.sum()))
    bias = generator.uniform(-scale, scale, size=int(n.sum()))
    network = Network(hidden + bottom, graph, weight, bias, layers=layers, states=known)
    if gate is None:
        return network
    codes = gate_codes(network, gate)
    noisy = codes == gates.NOISY_OR
    weight = np.where(np.repeat(noisy[graph.child_of_edge], block), abs(weight), weight)
    return replace(network, weight=weight, bias=np.where(np.repeat(noisy, n), abs(bias), bias), gate=codes)


def add_column_mixtures(
    network: Network,
    *,
    units: Iterable[str] | None = None,
    count: int = 1,
    rng: RngLike = None,
    scale: float = 0.1,
    strength: float = 2.0,
) -> Network:
    """Make the conditional distributions of variables mixtures: each variable gets binary latent variables of its own.

    A latent variable has the parents of the variable that it belongs to, and that one as its only child.

    A logistic regression then becomes a mixture of two (of up to ``2 ** count``), which can tell cases apart that one
    cannot. Where a variable and its parents are observed, as in a fully visible network, its latent variables
    depend on nothing else: one is inferred exactly, and the bound is the log-likelihood itself.

    Parameters
    ----------
    network : Network
    units : iterable of str, optional
        Names of the variables that get mixtures; by default the bottom layer, or all variables that have parents.
    count : int
        Latent variables for each of them.
    rng : int or numpy.random.Generator, optional
        Seed or generator.
    scale : float
        Weights into latent variables are uniform between ``-scale`` and ``scale``.
    strength : float
        Weight from a latent variable to its variable; learning needs a start away from zero. The bias of the variable
        goes down by half of it, so that its mean input stays.

    Returns
    -------
    Network
        The latent variables of ``x`` are called ``x.switch1``, … and stand before it. So the bottom layer is no longer
        the last stretch of variables: give evidence by name, in a mapping or a DataFrame.

    Examples
    --------
    >>> import sbnet as sb
    >>> sb.add_column_mixtures(sb.layered((3,), autoregressive=True, rng=0), rng=0).names
    ('x0', 'x1.switch1', 'x1', 'x2.switch1', 'x2')
    """
    check_network(network)
    network.check_binary("a mixture of columns", "leave such variables out with subnetwork()")
    count = checks.whole("count", count, 0)
    scale, strength = checks.not_negative("scale", scale), checks.finite("strength", strength)
    graph, fan_in = network.graph, np.diff(network.graph.indptr)
    if units is None:
        low = network.n_units - network.layers[-1] if network.layers else 0
        chosen = {i for i in range(low, network.n_units) if fan_in[i]}
    else:
        chosen = {network.index(unit) for unit in checks.units("units", units)}
    generator = checks.generator(rng)
    place = np.cumsum([1 + (count if i in chosen else 0) for i in range(network.n_units)]) - 1
    names, bias = list[str](), list[float]()
    parents, weights = list[IndexArray](), list[FloatArray]()
    for i, name in enumerate(network.names):
        edges = slice(graph.indptr[i], graph.indptr[i + 1])
        above, weight, h = place[graph.parent[edges]], network.weight[edges], network.bias[i]
        own = np.arange(place[i] - count, place[i]) if i in chosen else np.zeros(0, np.int64)
        names += [*(f"{name}.switch{k + 1}" for k in range(len(own))), name]
        bias += [*([0.0] * len(own)), h - 0.5 * strength * len(own)]
        for _ in own:
            parents.append(above)
            weights.append(generator.uniform(-scale, scale, size=len(above)))
        parents.append(np.concatenate([above, own]))
        weights.append(np.concatenate([weight, np.full(len(own), float(strength))]))
    larger = Graph(np.concatenate([[0], np.cumsum([len(p) for p in parents])]), np.concatenate(parents))
    gate = np.full(len(names), gates.SIGMOID, dtype=np.int8)
    gate[place] = network.gate
    return Network(tuple(names), larger, np.concatenate(weights), np.array(bias), gate, notes=network.notes)


def from_networkx(
    graph: networkx.DiGraph[Any],
    *,
    weight: str = "weight",
    bias: str = "bias",
    gate: str = "gate",
    states: str = "states",
    table: str = "table",
) -> Network:
    """Build a network from a networkx ``DiGraph``.

    Parameters
    ----------
    graph : networkx.DiGraph
        Its nodes become variables; nodes that are not strings are named by ``str(node)``.
    weight, bias, gate : str
        The edge attribute and the node attributes that hold the parameters and the gate; where they are missing, zero
        and ``"sigmoid"``.
    states, table : str
        The node attributes that hold the names of states and a table, where there are more than no and yes, or one. The
        axes of a table are the parents in the order of the edges into the node.

    Returns
    -------
    Network

    Examples
    --------
    >>> import networkx as nx
    >>> import sbnet as sb
    >>> graph = nx.DiGraph()
    >>> graph.add_edge("rain", "wet", weight=2.0)
    >>> sb.convert.from_networkx(graph).names
    ('rain', 'wet')
    """
    networkx = sys.modules.get("networkx")  # a graph can only come from someone who has imported networkx
    known = networkx is not None and isinstance(graph, networkx.Graph)
    directed = known and graph.is_directed() and not graph.is_multigraph()
    if not directed:
        raise NetworkError(f"a network needs a networkx.DiGraph; got {type(graph).__name__}")
    chosen = ("weight", weight), ("bias", bias), ("gate", gate), ("states", states), ("table", table)
    for name, value in chosen:
        checks.text(name, value)
    names = tuple(str(node) for node in graph)
    nodes = {str(node): data for node, data in graph.nodes(data=True)}
    own, tables = ({name: data[key] for name, data in nodes.items() if key in data} for key in (states, table))
    kinds = {name: data[gate] for name, data in nodes.items() if gate in data}
    if not own and not tables:
        triples = [(str(a), str(b), data.get(weight, 0.0)) for a, b, data in graph.edges(data=True)]
        return from_edges(
            triples, bias={name: data.get(bias, 0.0) for name, data in nodes.items()}, gate=kinds, names=names
        )
    sizes = {name: len(own.get(name, NO_YES)) - 1 for name in nodes}
    edges = list[tuple[str, str, Any]]()
    for child in graph:  # by child, so that parents come in the order of the axes
        for parent, _, data in graph.in_edges(child, data=True):
            a, b = str(parent), str(child)
            zero = None if b in tables else np.zeros((sizes[b], sizes[a]))
            edges.append((a, b, data.get(weight, zero)))
    biases = {name: data[bias] for name, data in nodes.items() if bias in data and name not in tables}
    return from_edges(edges, bias=biases, gate=kinds, names=names, states=own, tables=tables)


def to_networkx(network: Network) -> networkx.DiGraph[Any]:
    """The network as a networkx ``DiGraph``: nodes have ``bias``, ``layer`` and ``gate``, edges have ``weight``.

    Variables with other states than no and yes have ``states``, those with a table ``table``.

    Parameters
    ----------
    network : Network

    Returns
    -------
    networkx.DiGraph

    Examples
    --------
    >>> import sbnet as sb
    >>> net = sb.from_edges({("rain", "wet"): 2.0, ("sprinkler", "wet"): 1.5}, bias={"rain": -1.0})
    >>> sorted(sb.convert.to_networkx(net).edges)
    [('rain', 'wet'), ('sprinkler', 'wet')]
    """
    import networkx

    check_network(network)
    graph: networkx.DiGraph[Any] = networkx.DiGraph()
    layers, kinds = layer_of_units(network).tolist(), network.gate.tolist()
    for i, (name, layer, code) in enumerate(zip(network.names, layers, kinds, strict=True)):
        h = network.bias[network.columns_of(i)].tolist()
        own = {"bias": h[0] if len(h) == 1 else h} if code != gates.TABLE else {"table": network.tables[name]}
        own |= {"states": network.states[name]} if network.states[name] != NO_YES else {}
        graph.add_node(name, **own, layer=layer, gate=gates.NAMES[code])
    for a, b, w in network.edges():
        graph.add_edge(a, b, **({} if w is None else {"weight": w}))
    return graph


def layer_of_units(network: Network) -> IndexArray:
    """The layer of each unit: as built, or by depth."""
    if network.layers is None:
        return network.graph.depths
    return np.repeat(np.arange(len(network.layers)), network.layers)


def _assemble(names: tuple[str, ...], parent: IndexArray, child: IndexArray, weight: Any, bias: Any) -> Network:
    """Sort units and edges into the order of a :class:`Network`, or say what is wrong with them."""
    if isinstance(weight, list) and None in weight:
        e = weight.index(None)
        ends = f"{names[parent[e]]!r} -> {names[child[e]]!r}"
        raise NetworkError(f"the edge {ends} has no weight, and {names[child[e]]!r} no table; give one of them")
    _check_loops(names, parent, child)
    w, h = as_floats(weight), as_floats(bias)
    order, edge, indptr, above = _sorted(names, parent, child)
    return Network(tuple(names[i] for i in order), Graph(indptr, above), w[edge], h[order])


def _check_loops(names: tuple[str, ...], parent: IndexArray, child: IndexArray) -> None:
    loops = np.flatnonzero(parent == child)
    if loops.size:
        raise NetworkError(f"variable {names[parent[loops[0]]]!r} is its own parent; a variable cannot cause itself")


def _sorted(
    names: tuple[str, ...], parent: IndexArray, child: IndexArray
) -> tuple[IndexArray, IndexArray, IndexArray, IndexArray]:
    """The units and the edges in their order, where the edges of each unit begin, and the parents of all edges."""
    _check_loops(names, parent, child)
    order = topological_order(names, parent, child)
    place = np.empty(len(names), dtype=np.int64)
    place[order] = np.arange(len(names))
    edge = np.lexsort((place[parent], place[child]))
    p, c = place[parent[edge]], place[child[edge]]
    double = np.flatnonzero((np.diff(p) == 0) & (np.diff(c) == 0))
    if double.size:
        first = edge[double[0]]
        raise NetworkError(f"the edge {names[parent[first]]!r} -> {names[child[first]]!r} is given twice")
    indptr = np.concatenate([[0], np.cumsum(np.bincount(c, minlength=len(names)))])
    return order, edge, indptr, p
