"""The record: frozen, comparable, copyable; its views of the graph agree with one another."""

from __future__ import annotations

import copy
import dataclasses
import pathlib
import pickle

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

import sbnet as sb
from sbnet.errors import NetworkError, UnknownUnitError
from sbnet.model.components import connected, members
from strategies import networks

FORMATS = ["csr", "csc", "coo", "lil", "dok", "dia", "bsr"]


# --- a network never changes ----------------------------------------------------------------------------------------


def test_fields_cannot_be_set(sprinkler):
    for field in dataclasses.fields(sprinkler):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(sprinkler, field.name, None)


def test_arrays_are_read_only(sprinkler):
    for array in (sprinkler.graph.indptr, sprinkler.graph.parent, sprinkler.weight, sprinkler.bias, *sprinkler.model):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


def test_arrays_are_private_copies():
    weight, bias = np.array([1.0]), np.array([2.0, 3.0])
    network = sb.Network(("a", "b"), sb.Graph(np.array([0, 0, 1]), np.array([0])), weight, bias)
    weight[0] = bias[0] = 9.0
    assert network.weight.tolist() == [1.0]
    assert network.bias.tolist() == [2.0, 3.0]


def test_matrices_are_copies_that_may_be_changed(sprinkler):
    sprinkler.weight_matrix()[:] = 9.0
    assert sprinkler.weight_matrix().max() == 2.0


# --- equality, hashes and copies ------------------------------------------------------------------------------------


@given(networks())
def test_copies_are_equal_frozen_and_hash_alike(network):
    for made in (copy.copy(network), copy.deepcopy(network), pickle.loads(pickle.dumps(network))):
        assert made == network
        assert hash(made) == hash(network)
        assert not made.weight.flags.writeable
        assert not made.bias.flags.writeable


def test_a_copy_keeps_the_layers():
    network = sb.layered((2, 3), rng=0)
    assert pickle.loads(pickle.dumps(network)).layers == (2, 3)
    assert network.with_parameters(bias=np.zeros(5)).layers == (2, 3)


def test_networks_that_differ_in_one_thing_are_not_equal():
    network = sb.from_edges({("a", "b"): 1.0, ("b", "c"): 2.0})
    others = [
        sb.from_edges({("a", "b"): 1.0, ("b", "c"): 2.5}),  # a weight
        sb.from_edges({("a", "b"): 1.0, ("b", "c"): 2.0}, bias={"a": 1e-300}),  # a bias
        sb.from_edges({("a", "b"): 1.0, ("a", "c"): 2.0}),  # an edge
        sb.from_edges({("a", "b"): 1.0, ("b", "d"): 2.0}),  # a name
        sb.from_edges({("a", "b"): 1.0}, bias={"c": 0.0}),  # an edge less
        sb.from_edges({("a", "b"): 1.0, ("b", "c"): 2.0, ("a", "c"): 0.0}),  # an edge of weight zero
    ]
    for other in others:
        assert network != other
    assert len({network, *others}) == 1 + len(others)
    assert network != "a network"


def test_networks_that_differ_only_in_which_unit_has_the_edges_are_not_equal():
    assert sb.from_edges({("a", "b"): 1.0}, names="abc") != sb.from_edges({("a", "c"): 1.0}, names="abc")


def test_zero_has_no_sign():
    plus, minus = (sb.from_edges({("a", "b"): zero}, bias={"a": zero}) for zero in (0.0, -0.0))
    assert plus == minus
    assert hash(plus) == hash(minus)


# --- views of the graph ---------------------------------------------------------------------------------------------


def test_weight_matrix_has_children_in_rows_and_parents_in_columns(sprinkler):  # J_ij in eq. (2)
    J = sprinkler.weight_matrix()
    assert J[sprinkler.index("wet"), sprinkler.index("rain")] == 2.0
    assert J[sprinkler.index("rain"), sprinkler.index("wet")] == 0.0
    assert np.count_nonzero(J) == sprinkler.n_edges == 3


@given(networks())
def test_all_views_show_the_same_edges(network):
    J = network.weight_matrix()
    assert np.array_equal(J, np.tril(J, -1))  # parents precede children
    assert np.array_equal(network.sparse_weights().toarray(), J)
    assert network.sparse_weights().nnz == network.n_edges
    edges = list(network.edges())
    assert len(edges) == network.n_edges
    for parent, child, weight in edges:
        assert J[network.index(child), network.index(parent)] == weight
        assert parent in network.parents(child)
        assert child in network.children(parent)
    for listing in (network.parents, network.children):
        assert sum(len(listing(name)) for name in network.names) == network.n_edges
    model = network.model
    by_parent = np.repeat(np.arange(network.n_units), np.diff(model.child_indptr))
    rebuilt = np.zeros_like(J)
    rebuilt[model.child, by_parent] = network.weight[model.child_edge]
    assert np.array_equal(rebuilt, J)


@given(networks())
def test_depth_is_the_longest_path_from_a_root(network):
    depths = network.graph.depths
    for i, name in enumerate(network.names):
        above = [depths[network.index(parent)] for parent in network.parents(name)]
        assert depths[i] == (1 + max(above) if above else 0)


def test_units_are_known_by_name_and_by_number(sprinkler):
    assert [sprinkler.index(name) for name in sprinkler.names] == [0, 1, 2, 3]
    assert sprinkler.index(np.int64(2)) == 2
    assert sprinkler.parents(2) == sprinkler.parents("wet") == ("rain", "sprinkler")
    assert sprinkler.children(2) == sprinkler.children("wet") == ("slippery",)


def test_units_that_are_not_there_are_refused(sprinkler):
    with pytest.raises(UnknownUnitError) as by_name:
        sprinkler.parents("rian")
    assert str(by_name.value) == "the call names variable 'rian', which is not in the network; did you mean 'rain'?"
    for number in (4, -1):
        with pytest.raises(NetworkError) as by_number:
            sprinkler.children(number)
        assert str(by_number.value) == f"there is no variable number {number}; the network has 0 to 3"


@given(networks())
def test_a_subnetwork_keeps_the_edges_among_its_units(network):
    kept = network.names[::2]
    part = network.subnetwork(reversed(kept))
    assert part.names == kept
    inside = [edge for edge in network.edges() if edge[0] in kept and edge[1] in kept]
    assert list(part.edges()) == inside
    assert part.bias.tolist() == network.bias[::2].tolist()
    assert network.subnetwork(range(network.n_units)) == network


def test_a_subnetwork_without_units_is_refused(sprinkler):
    with pytest.raises(NetworkError, match="the network is empty"):
        sprinkler.subnetwork([])


# --- with_parameters ------------------------------------------------------------------------------------------------


@given(networks())
def test_every_form_of_the_same_weights_gives_the_same_network(network):
    doubled = network.with_parameters(weight=2 * network.weight)
    assert np.array_equal(doubled.weight_matrix(), 2 * network.weight_matrix())
    assert doubled.names == network.names
    assert np.array_equal(doubled.bias, network.bias)
    assert network.with_parameters(weight=2 * network.weight_matrix()) == doubled
    assert network.with_parameters(weight={(a, b): 2 * w for a, b, w in network.edges()}) == doubled
    for name in FORMATS:
        assert network.with_parameters(weight=(2 * network.sparse_weights()).asformat(name)) == doubled


def test_biases_come_as_a_vector_or_by_name(sprinkler):
    changed = sprinkler.with_parameters(bias={"wet": 5.0})
    assert changed.bias.tolist() == [-1.0, 0.0, 5.0, 0.25]
    assert np.array_equal(changed.weight, sprinkler.weight)
    assert sprinkler.with_parameters(bias=[-1, 0, 5, 0.25]) == changed
    assert sprinkler.bias.tolist() == [-1.0, 0.0, -2.0, 0.25]  # the old network is as it was


def test_a_mapping_changes_only_what_it_names(sprinkler):
    changed = sprinkler.with_parameters(weight={("sprinkler", "wet"): -7.0})
    assert list(changed.edges()) == [("rain", "wet", 2.0), ("sprinkler", "wet", -7.0), ("wet", "slippery", -0.5)]


def test_with_nothing_to_change_the_network_is_equal(sprinkler):
    assert sprinkler.with_parameters() == sprinkler


def test_edges_of_weight_zero_stay_edges(sprinkler):
    assert sprinkler.with_parameters(weight=np.zeros((4, 4))).n_edges == 3


OUTSIDE = np.zeros((4, 4))
OUTSIDE[3, 0] = OUTSIDE[0, 3] = 1.0


@pytest.mark.parametrize(
    ("parameters", "text"),
    [
        ({"weight": [1.0, 2.0]}, "weight has shape (2,); expected (3,), one number per edge, or (4, 4)"),
        ({"weight": np.zeros((3, 4))}, "weight has shape (3, 4); expected (4, 4)"),
        ({"weight": scipy.sparse.csr_array((2, 2))}, "weight has shape (2, 2); expected (4, 4)"),
        ({"weight": np.zeros((1, 1, 3))}, "weight has shape (1, 1, 3); expected (3,), one number per edge, or (4, 4)"),
        ({"weight": OUTSIDE}, "weight has 2 entries other than zero where the network has no edge"),
        (
            {"weight": scipy.sparse.coo_array(OUTSIDE)},
            "weight has 2 entries other than zero where the network has no edge",
        ),
        ({"weight": {("wet", "rain"): 1.0}}, "there is no edge 'wet' -> 'rain' whose weight could change"),
        ({"weight": {"rw": 1.0}}, "the keys of a mapping of weights are (parent, child); got 'rw'"),
        (
            {"weight": {("rain", "wet"): [1.0, 2.0]}},
            "the weight 'rain' -> 'wet' is [1.0, 2.0]; two states ask for one number",
        ),
        ({"bias": [0.0]}, "bias has shape (1,); expected (4,), one number per variable"),
        ({"bias": np.zeros((4, 1))}, "bias has shape (4, 1); expected (4,), one number per variable"),
        (
            {"bias": {"wet": np.nan}},
            "the bias of 'wet' is nan; parameters must be finite, and at most 1e+08 in size",
        ),
        (
            {"weight": [1.0, np.inf, 1.0]},
            "the weight 'sprinkler' -> 'wet' is inf; parameters must be finite, and at most 1e+08 in size",
        ),
        (
            {"weight": ["heavy", 1, 1]},
            "weights and biases must be numbers: could not convert string to float: 'heavy'",
        ),
        (
            {"bias": {"wet": "high"}},
            "the bias of 'wet' must be numbers: could not convert string to float: 'high'",
        ),
    ],
)
def test_parameters_that_do_not_fit_are_refused(sprinkler, parameters, text):
    with pytest.raises(NetworkError) as caught:
        sprinkler.with_parameters(**parameters)
    assert str(caught.value) == text


def test_parameters_of_unknown_units_are_refused_with_the_nearest_name(sprinkler):
    for parameters in ({"bias": {"wett": 1.0}}, {"weight": {("rain", "wett"): 1.0}}):
        with pytest.raises(UnknownUnitError) as caught:
            sprinkler.with_parameters(**parameters)
        assert str(caught.value) == "the call names variable 'wett', which is not in the network; did you mean 'wet'?"


# --- how it looks ---------------------------------------------------------------------------------------------------


def test_repr_says_what_a_person_wants_to_know(sprinkler):
    assert repr(sprinkler) == "<Network: 4 variables, 3 edges, layers 2 × 1 × 1, largest weight +2 (rain -> wet)>"
    one = sb.from_edges({}, bias={"a": 0.0})
    assert repr(one) == "<Network: 1 variable, 0 edges, layers 1, largest weight none>"
    two = sb.from_edges({("a", "b"): -3.14159})
    assert repr(two) == "<Network: 2 variables, 1 edge, layers 1 × 1, largest weight -3.14 (a -> b)>"


def test_repr_of_large_networks_is_short():
    wide = repr(sb.layered((2000, 3), rng=0))
    assert wide.startswith("<Network: 2,003 variables, 6,000 edges, layers 2,000 × 3, largest weight ")
    chain = sb.from_edges([(f"u{k}", f"u{k + 1}", 1.0) for k in range(1500)])
    assert repr(chain) == "<Network: 1,501 variables, 1,500 edges, layers 1,501 levels, largest weight +1 (u0 -> u1)>"


def test_html_shows_the_same_and_escapes_names():
    network = sb.from_edges({("<a>", "b & c"): 1.5}, bias={f"u{k}": 0.0 for k in range(20)})
    page = network._repr_html_()
    for piece in ("<b>sbnet.Network</b>", "22", "+1.5 (&lt;a&gt; -&gt; b &amp; c)", "&lt;a&gt;, b &amp; c, u0", "…"):
        assert piece in page
    assert "<a>" not in page
    assert "u15" not in page
    assert "…" not in sb.from_edges({("a", "b"): 1.0})._repr_html_()


# --- records that cannot be -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        (((), [0], [], [], []), "the network is empty; give at least one variable, by an edge or by a bias"),
        (((3,), [0, 0], [], [], [0]), "variable names are strings; 3 is of type int"),
        ((("",), [0, 0], [], [], [0]), "a variable has an empty name"),
        ((("a", "a"), [0, 0, 0], [], [], [0, 0]), "two variables are called 'a'; names must differ"),
        ((("a",), [0, 0], [], [], ["x"]), "parameters must be numbers: could not convert string to float: 'x'"),
        (
            (("a", "b"), [0, 0], [], [], [0, 0]),
            "the graph has 1 variable, the network 2 names; each variable needs one",
        ),
        ((("a",), [[0, 0]], [], [], [0]), "indptr and parent do not describe the edges of 1 variables"),
        ((("a",), [], [], [], [0]), "indptr and parent do not describe the edges of 0 variables"),
        (("abcd", [0, 2**63 - 1, -2, -1, 0], [], [], [0] * 4), "indptr must not fall"),
        ((("a", "b"), [0, 0, 2], [0], [1], [0, 0]), "indptr and parent do not describe the edges of 2 variables"),
        ((("a", "b", "c"), [0, 1, 0, 1], [0], [1], [0, 0, 0]), "indptr must not fall"),
        ((("a", "b"), [0, 0, 1], [0], [1, 2], [0, 0]), "weight has shape (2,); expected (1,), one number per edge"),
        ((("a", "b"), [0, 0, 1], [0], [1], [0]), "bias has shape (1,); expected (2,), one number per variable"),
        (
            (("a", "b"), [0, 1, 1], [1], [1], [0, 0]),
            "parents must precede their children; from_edges() puts variables in order",
        ),
        (
            (("a", "b"), [0, 0, 1], [-1], [1], [0, 0]),
            "parents must precede their children; from_edges() puts variables in order",
        ),
        (
            (("a", "b", "c"), [0, 0, 0, 2], [1, 0], [1, 1], [0, 0, 0]),
            "the parents of each variable must be in rising order, each once",
        ),
        (
            (("a", "b", "c"), [0, 0, 0, 2], [1, 1], [1, 1], [0, 0, 0]),
            "the parents of each variable must be in rising order, each once",
        ),
        ((("a", "b"), [0, 0, 0], [], [], [0, 0], (1, 2)), "layers (1, 2) do not add up to 2 variables"),
        ((("a", "b"), [0, 0, 0], [], [], [0, 0], (2, 0)), "layers (2, 0) do not add up to 2 variables"),
        (
            (("a",), [0, 0], [], [], [2e8]),
            "the bias of 'a' is 200000000.0; parameters must be finite, and at most 1e+08 in size",
        ),
    ],
)
def test_records_that_cannot_be_are_refused(fields, text):
    names, indptr, parent, weight, bias, *layers = fields
    with pytest.raises(NetworkError) as caught:
        sb.Network(names, sb.Graph(indptr, parent), weight, bias, None, *layers)
    assert str(caught.value) == text


@pytest.mark.parametrize(
    ("gate", "text"),
    [
        ([0], "gate has shape (1,); expected (2,), one code per variable"),
        ([0, 3], "the gate of 'b' is 3; the gates are 0 (sigmoid), 1 (noisy-or), 2 (table)"),
        ([256, 0], "the gate of 'a' is 256; the gates are 0 (sigmoid), 1 (noisy-or), 2 (table)"),
        ([0, 0.5], "the gate of 'b' is 0.5; the gates are 0 (sigmoid), 1 (noisy-or), 2 (table)"),
        (["sigmoid", "or"], "the gate of 'b' is 'or'; the gates are 0 (sigmoid), 1 (noisy-or), 2 (table)"),
    ],
)
def test_gates_that_nobody_knows_are_refused(gate, text):
    with pytest.raises(NetworkError) as caught:
        sb.Network(("a", "b"), sb.Graph([0, 0, 0], []), [], [0, 0], gate)
    assert str(caught.value) == text


def test_a_network_wants_a_graph():
    with pytest.raises(NetworkError, match=r"graph is \[0, 0\]; give a Graph\(indptr, parent\), or use from_edges\(\)"):
        sb.Network(("a",), [0, 0], [], [0])


# --- what is shared, and what is not --------------------------------------------------------------------------------


def test_units_are_sigmoid_units_unless_something_else_is_said(sprinkler):
    assert sprinkler.gate.tolist() == [0] * sprinkler.n_units
    assert sprinkler.gate.dtype == np.int8
    assert sprinkler.model.gate is sprinkler.gate


def test_other_numbers_share_the_graph_and_nothing_that_hangs_on_numbers(sprinkler):
    before = sprinkler.model  # and all else that is worked out once
    other = sprinkler.with_parameters(weight=sprinkler.weight + 1.0, bias=sprinkler.bias - 1.0)
    assert other.graph is sprinkler.graph
    assert other.model.child is before.child
    assert other.model.weight is other.weight
    assert before.weight is sprinkler.weight
    assert dataclasses.replace(other, weight=sprinkler.weight, bias=sprinkler.bias) == sprinkler


def test_graphs_are_equal_by_what_they_hold():
    graph, same, other = sb.Graph([0, 0, 1], [0]), sb.Graph(np.array([0, 0, 1]), np.array([0])), sb.Graph([0, 0, 0], [])
    assert graph == same
    assert hash(graph) == hash(same)
    assert graph != other
    assert graph != "graph"
    assert repr(graph) == "<Graph: 2 variables, 1 edge>"
    assert graph.depths.tolist() == [0, 1]
    copy = pickle.loads(pickle.dumps(graph))
    assert copy == graph
    assert "child_of_edge" in vars(copy)  # checked again, as files and pickles must be


@pytest.mark.parametrize(
    ("indptr", "parent", "text"),
    [
        ([0, 2**63 - 1, -2, -1, 0], [], "indptr must not fall"),  # differences of these wrap, and look like a graph
        (
            np.array([0, 2**63, 2**63, 0], np.uint64),
            [],
            "indptr must hold whole numbers below 2**63; it is of type uint64",
        ),
        (
            [0, 0, 1],
            np.array([2**64 - 1], np.uint64),
            "parent must hold whole numbers below 2**63; it is of type uint64",
        ),
        ([0, 0, 10**30], [0], "indptr must hold whole numbers below 2**63; it is of type object"),
        ([0, 0, 1], [0.5], "parent must hold whole numbers below 2**63; it is of type float64"),
        ([0, 0, np.nan], [0], "indptr must hold whole numbers below 2**63; it is of type float64"),
        ([0, 0, 1], [False], "parent must hold whole numbers below 2**63; it is of type bool"),
        ([0, 0, 1], ["0"], "parent must hold whole numbers below 2**63; it is of type <U1"),
        ([0, 0, 1], [[0]], "indptr and parent do not describe the edges of 2 variables"),
        ([0, 0, 1], None, "parent must hold whole numbers below 2**63; it is of type object"),
        (0, [], "indptr and parent do not describe the edges of 0 variables"),
    ],
)
def test_graphs_are_looked_at_before_anything_is_worked_out(indptr, parent, text):
    with pytest.raises(NetworkError) as caught:
        sb.Graph(indptr, parent)
    assert str(caught.value) == text


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"weight": [10**400]}, "parameters must be numbers: int too large to convert to float"),
        ({"bias": np.array([0j, 1j])}, "parameters must be numbers: these are complex"),
        ({"layers": (1, 1.0)}, "the sizes of layers are whole numbers; got 1.0"),
        ({"layers": ("1", "1")}, "the sizes of layers are whole numbers; got '1'"),
        ({"layers": (1, np.inf)}, "the sizes of layers are whole numbers; got inf"),
        ({"layers": ((1, 1),)}, "the sizes of layers are whole numbers; got (1, 1)"),
        ({"layers": 2}, "layers is 2; it must be a list"),
        ({"layers": np.array([2**63 - 1, 2**63 - 1, 4])}, "do not add up to 2 variables"),  # in 64 bits they would
        ({"names": "ab"}, "names is 'ab'; it must be a list"),
        ({"names": 2}, "names is 2; it must be a list"),
    ],
)
def test_fields_are_looked_at_before_they_are_cast(change, text):
    fields = {"names": ("a", "b"), "graph": sb.Graph([0, 0, 1], [0]), "weight": [1.0], "bias": [0.0, 0.0]} | change
    with pytest.raises(NetworkError) as caught:
        sb.Network(**fields)
    assert str(caught.value).endswith(text)


def test_messages_stay_short_whatever_they_name():
    for fields in (
        {"names": ("x" * 10_000, "x" * 10_000)},
        {"layers": (1,) * 10_000},
        {"names": ("a", ["b"] * 10_000)},
    ):
        with pytest.raises(NetworkError) as caught:
            sb.Network(**{"names": ("a", "b"), "graph": sb.Graph([0, 0, 0], []), "weight": [], "bias": [0, 0]} | fields)
        assert len(str(caught.value)) <= 300


@pytest.mark.small
@given(pairs=st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8)), max_size=12))
def test_components_are_the_finest_partition_that_keeps_pairs_together(pairs):
    one, other = np.array(pairs, np.int64).reshape(-1, 2).T
    groups = [set(part.tolist()) for part in members(connected(9, one, other))]
    merged = [{k} for k in range(9)]  # by hand: join what a pair has in common
    for a, b in pairs:
        both = [group for group in merged if group & {a, b}]
        merged = [group for group in merged if group not in both] + [set().union(*both)]
    assert sorted(map(sorted, groups)) == sorted(map(sorted, merged))


@pytest.mark.small
def test_components_are_found_in_one_place():
    package = pathlib.Path(sb.__file__).parent
    users = [
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        if "connected_components" in path.read_text()
    ]
    assert set(users) <= {"model/components.py", "plots/layout.py"}
