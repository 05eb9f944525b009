"""Ways to build a network agree with one another, and refuse what is not one."""

from __future__ import annotations

import gc
import itertools
import tracemalloc
from dataclasses import replace

import networkx
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from hypothesis import assume, given

import sbnet as sb
from sbnet.errors import CycleError, NetworkError, ParameterError
from strategies import networks, seeds


def refused(call, error=NetworkError):
    with pytest.raises(error) as caught:
        call()
    return str(caught.value)


# --- from_edges -----------------------------------------------------------------------------------------------------


def test_a_mapping_and_triples_give_the_same_network():
    mapping = {("a", "c"): 1.0, ("b", "c"): -2.0}
    triples = ((a, b, w) for (a, b), w in mapping.items())
    assert sb.from_edges(mapping) == sb.from_edges(triples) == sb.from_edges([["a", "c", 1], ["b", "c", -2]])


def test_units_come_in_the_order_they_are_first_mentioned():
    network = sb.from_edges({("b", "c"): 1.0, ("a", "d"): 1.0}, bias={"e": 1.0, "b": 2.0})
    assert network.names == ("b", "c", "a", "d", "e")
    assert network.bias.tolist() == [2.0, 0.0, 0.0, 0.0, 1.0]


def test_given_names_set_the_order_as_far_as_parents_come_first():
    edges = {("b", "c"): 1.0, ("a", "d"): 1.0}
    assert sb.from_edges(edges, names="abcd").names == ("a", "b", "c", "d")
    assert sb.from_edges(edges, names="dcba").names == ("b", "c", "a", "d")  # d waits for a, c for b
    assert sb.from_edges(edges, names="zabcd").names == ("z", "a", "b", "c", "d")  # a unit may have no edge


def test_names_may_be_an_array_or_the_columns_of_a_table():
    expected = sb.from_edges({("a", "b"): 1.0}, names=["a", "b"])
    for names in (np.array(["a", "b"]), pd.DataFrame(columns=["a", "b"]).columns):
        network = sb.from_edges({("a", "b"): 1.0}, names=names)
        assert network == expected
        assert [type(name) for name in network.names] == [str, str]


@given(networks(), seeds)
def test_the_order_of_the_edges_does_not_matter_if_names_are_given(network, seed):
    edges = list(network.edges())
    shuffled = [edges[k] for k in np.random.default_rng(seed).permutation(len(edges))]
    bias = dict(zip(network.names, network.bias.tolist(), strict=True))
    assert sb.from_edges(shuffled, bias=bias, names=network.names) == network


@given(networks(), seeds)
def test_any_order_of_the_names_gives_the_same_distribution(network, seed):
    rng = np.random.default_rng(seed)
    bias = dict(zip(network.names, network.bias.tolist(), strict=True))
    names = [network.names[k] for k in rng.permutation(network.n_units)]
    other = sb.from_edges(list(network.edges()), bias=bias, names=names)  # parents first, or Network would refuse it
    assert sorted(other.edges()) == sorted(network.edges())
    assert dict(zip(other.names, other.bias.tolist(), strict=True)) == bias


def test_edges_that_cannot_be_are_refused():
    assert refused(lambda: sb.from_edges({("a", "b"): 1, ("b", "a"): 1}), CycleError) == (
        "the edges contain a cycle: a -> b -> a"
    )
    assert refused(lambda: sb.from_edges([("a", "a", 1.0)])) == (
        "variable 'a' is its own parent; a variable cannot cause itself"
    )
    assert refused(lambda: sb.from_edges([("a", "b", 1.0), ("a", "b", 1.0)])) == "the edge 'a' -> 'b' is given twice"
    assert refused(lambda: sb.from_edges([("a", "b")])) == "an edge is (parent, child, weight); got ('a', 'b')"
    assert refused(lambda: sb.from_edges({"ab": 1.0})) == (
        "the keys of a mapping of edges are (parent, child); got 'ab'"
    )
    assert refused(lambda: sb.from_edges([("a", 2, 1.0)])) == "variable names are strings; 2 is of type int"
    assert refused(lambda: sb.from_edges({}, bias={7: 1.0})) == "variable names are strings; 7 is of type int"
    assert refused(lambda: sb.from_edges([("", "b", 1.0)])) == "a variable has an empty name"
    assert refused(lambda: sb.from_edges({})) == (
        "the network is empty; give at least one variable, by an edge or by a bias"
    )
    assert refused(lambda: sb.from_edges({("a", "b"): "x"})) == (
        "weights and biases must be numbers: could not convert string to float: 'x'"
    )


def test_names_that_do_not_fit_the_edges_are_refused():
    edges = {("a", "b"): 1.0}
    assert refused(lambda: sb.from_edges(edges, names=["a"])) == "variable 'b' is not among the given names"
    assert refused(lambda: sb.from_edges(edges, names=[])) == "variable 'a' is not among the given names"
    assert refused(lambda: sb.from_edges(edges, names=["a", "b"], bias={"c": 1})) == (
        "variable 'c' is not among the given names"
    )
    assert refused(lambda: sb.from_edges(edges, names=["a", "b", "a"])) == (
        "two variables are called 'a'; names must differ"
    )


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1.1e8])
def test_parameters_that_are_not_finite_are_refused_by_name(value):
    limits = "parameters must be finite, and at most 1e+08 in size"
    assert refused(lambda: sb.from_edges({("a", "b"): value})) == f"the weight 'a' -> 'b' is {value}; {limits}"
    assert refused(lambda: sb.from_edges({("a", "b"): 1}, bias={"b": value})) == f"the bias of 'b' is {value}; {limits}"


def test_a_cycle_is_shown_whole_and_alone():
    long = [("p", "q", 1.0), ("q", "r", 1.0), ("r", "s", 1.0), ("s", "q", 1.0), ("s", "t", 1.0)]
    assert refused(lambda: sb.from_edges(long), CycleError) == "the edges contain a cycle: q -> r -> s -> q"


@given(networks(max_units=10), seeds)
def test_every_cycle_that_is_reported_is_one(network, seed):
    edges = [(a, b) for a, b, _ in network.edges()]
    assume(edges)
    start, end = edges[seed % len(edges)]
    edges.append((end, start))
    text = refused(lambda: sb.from_edges([(a, b, 1.0) for a, b in edges]), CycleError)
    cycle = text.removeprefix("the edges contain a cycle: ").split(" -> ")
    assert cycle[0] == cycle[-1]
    assert len(set(cycle)) == len(cycle) - 1
    assert set(itertools.pairwise(cycle)) <= set(edges)


# --- from_weight_matrix ---------------------------------------------------------------------------------------------


@given(networks(), seeds)
def test_a_matrix_in_any_order_of_its_units_gives_the_same_distribution(network, seed):
    order = np.random.default_rng(seed).permutation(network.n_units)
    J, h = network.weight_matrix()[np.ix_(order, order)], network.bias[order]
    names = [network.names[k] for k in order]
    for matrix in (J, scipy.sparse.csr_array(J), scipy.sparse.coo_matrix(J), scipy.sparse.dok_array(J)):
        made = sb.from_weight_matrix(matrix, bias=h, names=names)
        assert sorted(made.edges()) == sorted(edge for edge in network.edges() if edge[2] != 0)
        assert dict(zip(made.names, made.bias, strict=True)) == dict(zip(network.names, network.bias, strict=True))


def test_a_matrix_that_is_not_triangular_is_put_in_order():
    network = sb.from_weight_matrix([[0.0, 2.0], [0.0, 0.0]], bias=[5.0, 6.0])  # u1 is the parent of u0
    assert network.names == ("u1", "u0")
    assert network.bias.tolist() == [6.0, 5.0]
    assert list(network.edges()) == [("u1", "u0", 2.0)]


def test_zeros_stored_in_a_sparse_matrix_are_edges():
    matrix = scipy.sparse.coo_array(([0.0, 1.0], ([1, 2], [0, 0])), shape=(3, 3))
    assert list(sb.from_weight_matrix(matrix).edges()) == [("u0", "u1", 0.0), ("u0", "u2", 1.0)]


def test_matrices_that_cannot_be_are_refused():
    assert refused(lambda: sb.from_weight_matrix(np.zeros((2, 3)))) == "a weight matrix is square; got shape (2, 3)"
    assert refused(lambda: sb.from_weight_matrix(np.zeros(3))) == "a weight matrix is square; got shape (3,)"
    assert (
        refused(lambda: sb.from_weight_matrix(np.eye(2)))
        == "variable 'u0' is its own parent; a variable cannot cause itself"
    )
    assert refused(lambda: sb.from_weight_matrix(1 - np.eye(2)), CycleError) == (
        "the edges contain a cycle: u0 -> u1 -> u0"
    )
    assert refused(lambda: sb.from_weight_matrix(np.zeros((2, 2)), names=["a"])) == "1 names were given for 2 variables"
    assert refused(lambda: sb.from_weight_matrix(np.zeros((2, 2)), bias=[1.0])) == (
        "bias has shape (1,); expected (2,), one number per variable"
    )
    assert refused(lambda: sb.from_weight_matrix(np.zeros((0, 0)))) == (
        "the network is empty; give at least one variable, by an edge or by a bias"
    )
    assert refused(lambda: sb.from_weight_matrix([["x"]])) == (
        "weights and biases must be numbers: could not convert string to float: 'x'"
    )


# --- layered --------------------------------------------------------------------------------------------------------


def test_each_layer_has_the_whole_layer_above_as_parents():
    network = sb.layered((2, 3, 4), rng=0)
    assert network.layers == (2, 3, 4)
    assert network.names == ("h1_0", "h1_1", "h2_0", "h2_1", "h2_2", "x0", "x1", "x2", "x3")
    assert network.n_edges == 2 * 3 + 3 * 4
    assert network.parents("h1_1") == ()
    assert network.parents("h2_2") == ("h1_0", "h1_1")
    assert network.parents("x3") == ("h2_0", "h2_1", "h2_2")
    assert network.graph.depths.tolist() == [0, 0, 1, 1, 1, 2, 2, 2, 2]


def test_autoregressive_edges_run_inside_the_bottom_layer_only():
    network = sb.layered((2, 3, 4), rng=0, autoregressive=True)
    assert network.n_edges == 2 * 3 + 3 * 4 + 4 * 3 // 2
    assert network.parents("h2_2") == ("h1_0", "h1_1")
    for k in range(4):
        assert network.parents(f"x{k}") == ("h2_0", "h2_1", "h2_2", *(f"x{j}" for j in range(k)))
    assert sb.layered((5,), autoregressive=True).n_edges == 10


def test_random_weights_follow_from_the_rng_and_fill_their_range():
    network = sb.layered((20, 100), rng=3, scale=0.5)
    assert network == sb.layered((20, 100), rng=np.random.default_rng(3), scale=0.5)
    assert network != sb.layered((20, 100), rng=4, scale=0.5)
    for values in (network.weight, network.bias):
        assert 0.4 < values.max() <= 0.5
        assert -0.5 <= values.min() < -0.4
    assert not sb.layered((2, 2), scale=0.0).weight.any()


def test_bottom_names_name_the_bottom_layer():
    assert sb.layered((1, 2), bottom_names=["wet", "cold"]).names == ("h1_0", "wet", "cold")
    assert refused(lambda: sb.layered((1, 2), bottom_names=["wet"])) == (
        "1 names were given for a bottom layer of 2 variables"
    )
    assert (
        refused(lambda: sb.layered((1, 1), bottom_names=["h1_0"]))
        == "two variables are called 'h1_0'; names must differ"
    )


@pytest.mark.parametrize("size", [0, -1, 2.0, True, "2"])
def test_sizes_of_layers_are_positive_whole_numbers(size):
    text = f"the size of a layer is a positive whole number; got {size!r}"
    assert refused(lambda: sb.layered((3, size))) == text


def test_layers_that_cannot_be_are_refused():
    assert refused(lambda: sb.layered(())) == "the network is empty; give the size of at least one layer"
    for scale in (-1.0, np.nan, np.inf):
        assert refused(lambda scale=scale: sb.layered((2,), scale=scale), ParameterError) == (
            f"scale is {scale}; it must be finite and not negative"
        )


# --- networkx -------------------------------------------------------------------------------------------------------


@given(networks())
def test_networkx_and_back_is_the_same_network(network):
    graph = sb.convert.to_networkx(network)
    assert networkx.is_directed_acyclic_graph(graph)
    assert sb.convert.from_networkx(graph) == network


def test_networkx_graphs_carry_biases_weights_and_layers():
    graph = sb.convert.to_networkx(sb.layered((1, 2), rng=0).with_parameters(weight=[1.0, 2.0], bias=[3.0, 4.0, 5.0]))
    assert graph.nodes["x1"] == {"bias": 5.0, "layer": 1, "gate": "sigmoid"}
    assert graph.edges["h1_0", "x1"] == {"weight": 2.0}
    by_depth = sb.convert.to_networkx(sb.from_edges({("a", "b"): 1.0, ("b", "c"): 1.0}))
    assert dict(by_depth.nodes(data="layer")) == {"a": 0, "b": 1, "c": 2}


def test_networkx_attributes_have_any_name_and_default_to_zero():
    graph = networkx.DiGraph()
    graph.add_node(1, h=2.5)
    graph.add_edge(1, "2", J=-1.0)
    graph.add_edge(1, 3)
    network = sb.convert.from_networkx(graph, weight="J", bias="h")
    assert list(network.edges()) == [("1", "2", -1.0), ("1", "3", 0.0)]
    assert network.bias.tolist() == [2.5, 0.0, 0.0]


def test_graphs_that_are_not_networks_are_refused():
    assert (
        refused(lambda: sb.convert.from_networkx(networkx.Graph())) == "a network needs a networkx.DiGraph; got Graph"
    )
    assert refused(lambda: sb.convert.from_networkx(networkx.MultiDiGraph())) == (
        "a network needs a networkx.DiGraph; got MultiDiGraph"
    )
    assert refused(lambda: sb.convert.from_networkx(networkx.DiGraph([(1, 2), (2, 1)])), CycleError) == (
        "the edges contain a cycle: 1 -> 2 -> 1"
    )
    assert refused(lambda: sb.convert.from_networkx(networkx.DiGraph([(1, "1")]))) == (
        "two variables are called '1'; names must differ"
    )


# --- size -----------------------------------------------------------------------------------------------------------


def test_a_network_of_a_million_edges_takes_memory_in_proportion_to_them():
    n, n_parents = 100_000, 10
    child = np.repeat(np.arange(n_parents, n), n_parents)
    back = 1 + np.random.default_rng(0).permuted(np.tile(np.arange(n_parents), (n - n_parents, 1)), axis=1).ravel()
    matrix = scipy.sparse.coo_array((np.ones(len(child)), (child, child - back)), shape=(n, n))
    gc.collect()
    tracemalloc.start()
    try:
        network = sb.from_weight_matrix(matrix)
        assert len(network.model.child) == network.sparse_weights().nnz  # as every solver needs them
        kept, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert network.n_edges == len(child) > 999_000
    assert kept < 200 * (n + network.n_edges)  # a dense matrix would take 80,000 bytes for each edge
    assert peak < 400 * (n + network.n_edges)
    assert network.parents("u50000") == tuple(f"u{k}" for k in range(49_990, 50_000))


def test_a_million_edges_in_any_order_build_the_same_network():
    n, n_parents = 100_000, 10
    triples = [(f"u{i - k}", f"u{i}", 1.0) for i in range(n - 1, n_parents - 1, -1) for k in range(1, n_parents + 1)]
    network = sb.from_edges(triples)
    assert network.n_units == n
    assert network.n_edges == len(triples)
    assert network.graph.depths[network.index("u99999")] == n - n_parents


@pytest.mark.parametrize("count", [1, 2])
def test_a_switch_makes_a_mixture_of_two_regressions(count):
    rng = np.random.default_rng(0)
    plain = sb.layered((3,), autoregressive=True, rng=1, scale=2.0)
    network = sb.add_column_mixtures(plain, count=count, rng=0, scale=1.5, strength=3.0)
    assert network.parents("x2") == ("x0", "x1", *(f"x2.switch{k + 1}" for k in range(count)))
    assert network.parents("x2.switch1") == ("x0", "x1")
    x = rng.integers(0, 2, 3)
    logits = network.weight_matrix() @ np.isin(network.names, [f"x{k}" for k in range(3) if x[k]]) + network.bias
    chance = 1.0
    for k in range(3):  # by hand: each unit given those before it, its switches summed over
        own = [network.index(f"x{k}.switch{s + 1}") for s in range(count)] if k else []
        total = 0.0
        for states in itertools.product((0, 1), repeat=len(own)):
            p = np.prod([1 / (1 + np.exp(-(1 if s else -1) * logits[j])) for s, j in zip(states, own, strict=True)])
            z = logits[network.index(f"x{k}")] + 3.0 * sum(states)
            total += p / (1 + np.exp(-z if x[k] else z))
        chance *= total
    evidence = {f"x{k}": int(x[k]) for k in range(3)}
    assert sb.log_likelihood(network, evidence) == pytest.approx(np.log(chance))
    bound = sb.infer(network, evidence).bound
    if count == 1:  # nothing else depends on the switch: its posterior is factorial
        assert bound == pytest.approx(np.log(chance))
    else:
        assert bound <= np.log(chance)


def test_switches_leave_the_rest_alone():
    network = sb.layered((2, 4), rng=0, autoregressive=True)
    switched = sb.add_column_mixtures(network, units=["x3"], count=2, rng=1)
    assert switched.names == ("h1_0", "h1_1", "x0", "x1", "x2", "x3.switch1", "x3.switch2", "x3")
    kept = [switched.index(name) for name in network.names]
    np.testing.assert_array_equal(switched.weight_matrix()[np.ix_(kept, kept)], network.weight_matrix())
    assert switched.bias[-1] == network.bias[-1] - 2.0  # half of the strength of both
    assert sb.add_column_mixtures(network, count=0) == replace(network, layers=None)
    assert sb.add_column_mixtures(sb.layered((3,), rng=0)).n_units == 3  # without parents there is nothing to switch by
    with pytest.raises(sb.errors.ParameterError, match="count is -1; it must be a whole number, zero or more"):
        sb.add_column_mixtures(network, count=-1)
    with pytest.raises(sb.errors.UnknownUnitError, match="'y'"):
        sb.add_column_mixtures(network, units=["y"])
