"""Typos and wrong arguments: each is answered with what to write instead, never with a traceback from inside."""

from __future__ import annotations

import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sbnet as sb
from sbnet.errors import EvidenceError, NearNameWarning, NetworkError, ParameterError, SBNetError

pytestmark = pytest.mark.small

X = [[0, 1, 1, 0], [1, 1, 1, 1]]
EDGES = {("rain", "wet"): 1.0}
NO_SEED = "give a whole number, zero or more, or a numpy Generator"


def show(value):
    return getattr(value, "__name__", None) or str(value)


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("wet=1", "{'wet': 1}"),
        ("rain = 0", "{'rain': 0}"),
        ("rain", "{'rain': 1}"),
        ("data.csv", "{'slippery': 1}"),
        (b"wet=1", "{'slippery': 1}"),
    ],
)
def test_evidence_as_a_text_is_shown_as_a_mapping(sprinkler, text, written):
    calls = (sb.infer, sb.infer_many, sb.log_likelihood, sb.exact_posterior, sb.certify, sb.estimate, sb.fit)
    for call in calls:
        with pytest.raises(EvidenceError) as caught:
            call(sprinkler, text)
        assert str(caught.value) == f"evidence is the text {text!r}; write a mapping from names to 0 or 1: {written}"


def test_long_texts_and_names_are_cut():
    net = sb.from_edges({}, bias={"x" * 500: 1.0})
    with pytest.raises(EvidenceError) as caught:
        sb.infer(net, "y" * 1000)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("nothing", [[], (), [{"wet": 1} for _ in ()]])
def test_a_table_without_rows_has_an_answer_without_rows(sprinkler, nothing):
    many = sb.infer_many(sprinkler, nothing)
    assert len(many) == 0
    assert many.means.shape == (0, 4)
    assert many.bound.shape == (0,)
    assert list(many) == []
    assert repr(many) == "PosteriorBatch: 0 rows × 4 variables"
    assert len(many.to_frame()) == 0


QUESTIONS = (
    sb.infer,
    sb.infer_many,
    sb.log_likelihood,
    sb.exact_posterior,
    sb.exact_pairs,
    sb.log_joint,
    sb.upper_bound,
    sb.certify,
    sb.posterior_intervals,
    sb.estimate,
    sb.gradient,
    sb.fit,
    sb.wake_sleep,
)


@pytest.mark.parametrize("call", QUESTIONS, ids=show)
def test_network_and_evidence_may_not_change_places(sprinkler, call):
    for evidence in ({"wet": 1}, X, np.zeros((2, 4))):
        with pytest.raises(
            EvidenceError, match=r"^the network comes first, then the evidence; they are given the other"
        ):
            call(evidence, sprinkler)
    with pytest.raises(EvidenceError, match=r"^evidence is a Network; write a mapping"):
        call(sprinkler, sprinkler)


@pytest.mark.parametrize("call", QUESTIONS, ids=show)
def test_a_file_is_no_network(call):
    for path in ("net.sbn", Path("net.sbn")):
        with pytest.raises(ParameterError, match=r"which is no Network; sbnet.load\(\) reads one from a file$"):
            call(path, {"wet": 1})
    with pytest.raises(
        ParameterError, match=r"^network is None, which is no Network; sbnet.from_edges\(\) builds one$"
    ):
        call(None, {"wet": 1})


def test_one_pass_iterators_are_no_tables(sprinkler):
    with pytest.raises(EvidenceError, match=r"^evidence is a generator; write list\(\.\.\.\) around it"):
        sb.infer_many(sprinkler, (row for row in X))


TYPOS = {
    "edges are None": (lambda net: sb.from_edges(None), "edges is None; give a mapping such as {('rain', 'wet'): 2.0}"),
    "edges are a text": (lambda net: sb.from_edges("rain -> wet"), "edges is 'rain -> wet'; give a mapping such as"),
    "edges are a number": (lambda net: sb.from_edges(3), "edges is 3; give a mapping"),
    "edges are a network": (lambda net: sb.from_edges(net), "edges is <Network"),
    "biases in a list": (
        lambda net: sb.from_edges(EDGES, bias=[1, 2]),
        "bias is [1, 2]; give numbers by name, such as bias={'rain': -1.0}",
    ),
    "one bias": (lambda net: sb.from_edges(EDGES, bias=-1.0), "bias is -1.0; give numbers by name"),
    "no bias": (lambda net: sb.from_edges(EDGES, bias=0), "bias is 0; give numbers by name"),
    "a name as bias": (lambda net: sb.from_edges({}, bias="rain"), "bias is 'rain'; give numbers by name"),
    "a number of names": (lambda net: sb.from_edges(EDGES, names=3), "names is 3; give a list of names"),
    "names of a matrix": (lambda net: sb.from_weight_matrix(np.zeros((2, 2)), names=2), "names is 2; give a list"),
    "names of a layer": (lambda net: sb.layered((2, 3), bottom_names=3), "bottom_names is 3; give a list of names"),
    "no DiGraph": (lambda net: sb.convert.from_networkx(net), "a network needs a networkx.DiGraph; got Network"),
    "no graph": (lambda net: sb.convert.from_networkx(None), "a network needs a networkx.DiGraph; got NoneType"),
    "nothing to networkx": (lambda net: sb.convert.to_networkx(None), "network is None, which is no Network"),
    "switches on nothing": (lambda net: sb.add_column_mixtures(None), "network is None, which is no Network"),
    "switches nowhere": (lambda net: sb.add_column_mixtures(net, units=1.5), "units is 1.5; give a list of variables"),
    "scale of switches": (
        lambda net: sb.add_column_mixtures(net, scale="a"),
        "scale is 'a'; it must be finite and not",
    ),
    "strength": (lambda net: sb.add_column_mixtures(net, strength="a"), "strength is 'a'; it must be a finite number"),
    "part of a network": (lambda net: net.subnetwork(1.5), "units is 1.5; give a list of variables"),
    "sample of a file": (
        lambda net: sb.sample("net.sbn", 3),
        "network is 'net.sbn', which is no Network; sbnet.load()",
    ),
    "sample less than none": (lambda net: sb.sample(net, -1), "n is -1; it must be a whole number, zero or more"),
    "seed of a sample": (lambda net: sb.sample(net, 3, rng="seed"), f"rng is 'seed'; {NO_SEED}"),
    "negative seed": (lambda net: sb.sample(net, 3, rng=-1), f"rng is -1; {NO_SEED}"),
    "seed of layers": (lambda net: sb.layered((2, 3), rng=1.5), f"rng is 1.5; {NO_SEED}"),
    "seed of switches": (lambda net: sb.add_column_mixtures(net, rng="a"), f"rng is 'a'; {NO_SEED}"),
    "seed of chains": (lambda net: sb.infer(net, {}, solver=sb.Gibbs(rng="a")), f"rng is 'a'; {NO_SEED}"),
    "seed of restarts": (
        lambda net: sb.infer(net, {}, solver=sb.MeanField(rng="a", restarts=2)),
        f"rng is 'a'; {NO_SEED}",
    ),
    "seed of estimates": (lambda net: sb.estimate(net, {}, rng="a"), f"rng is 'a'; {NO_SEED}"),
    "seed of certificates": (lambda net: sb.certify(net, {}, rng="a"), f"rng is 'a'; {NO_SEED}"),
    "seed of learning": (lambda net: sb.fit(net, X, rng="a"), f"rng is 'a'; {NO_SEED}"),
    "seed of wake and sleep": (lambda net: sb.wake_sleep(net, X, rng="a"), f"rng is 'a'; {NO_SEED}"),
    "a class as solver": (
        lambda net: sb.infer(net, {}, solver=sb.Gibbs),
        "solver is the class Gibbs; write solver=sb.Gibbs()",
    ),
    "another class as solver": (
        lambda net: sb.infer(net, {}, solver=dict),
        "solver is the class dict; write solver=dict()",
    ),
    "a class as optimiser": (
        lambda net: sb.fit(net, X, optimizer=sb.SGD),
        "optimizer is the class SGD; write optimizer=sb.SGD()",
    ),
    "a class as prior": (
        lambda net: sb.fit(net, X, prior=sb.Gaussian),
        "prior is the class Gaussian; write prior=sb.Gaussian()",
    ),
    "start by word": (lambda net: sb.infer(net, {}, start="x"), "start is 'x'; give an array of numbers"),
    "start by name": (lambda net: sb.infer(net, {}, start={"rain": 0.5}), "start is {'rain': 0.5}; give an array of"),
    "means by word": (lambda net: sb.kl(net, {"wet": 1}, "x"), "means is 'x'; give an array of numbers"),
    "means by name": (lambda net: sb.bounds.lower_bound(net, {}, {"a": 1}), "means is {'a': 1}; give an array"),
    "xi by word": (lambda net: sb.bounds.lower_bound(net, {}, [0.5] * 4, "x"), "xi is 'x'; give an array of numbers"),
    "effort misspelt": (
        lambda net: sb.certify(net, {}, effort="hgh"),
        "effort is 'hgh'; choose one of 'fast', 'normal', 'high'",
    ),
    "effort in a list": (lambda net: sb.certify(net, {}, effort=["fast"]), "effort is ['fast']; choose one of"),
    "term in a list": (lambda net: sb.MeanField(log_term=["xi"]), "log_term is ['xi']; choose one of"),
    "no threads": (
        lambda net: sb.infer_many(net, X, threads=0),
        "threads is 0; it must be a whole number, one or more",
    ),
    "variables of intervals": (
        lambda net: sb.posterior_intervals(net, {}, units=1.5),
        "units is 1.5; give a list of variables",
    ),
    "nothing to condition on": (lambda net: sb.Conditioned(None), "on is None; give a list of variables"),
    "a variable twice": (lambda net: sb.infer(net, {"wet": 1, 2: 1}), "evidence names variable 'wet' twice"),
}


@pytest.mark.parametrize("typo", TYPOS)
def test_a_typo_is_named_with_the_way_out(sprinkler, typo):
    call, text = TYPOS[typo]
    with pytest.raises(SBNetError) as caught:
        call(sprinkler)
    assert str(caught.value).startswith(text)
    assert len(str(caught.value)) <= 300


# --- names that are nearly those of other units ---------------------------------------------------------------------


def test_a_bias_for_a_name_near_that_of_a_unit_is_warned_of():
    with pytest.warns(NearNameWarning) as caught:
        net = sb.from_edges(EDGES, bias={"rian": -1})
    assert net.names == ("rain", "wet", "rian")  # it may be meant
    assert [str(warning.message) for warning in caught] == [
        "variable 'rian' has a bias and no edges; did you mean 'rain'? If not, list it in names"
    ]
    assert caught[0].filename == __file__


@pytest.mark.parametrize("near", ["Rain", "rains", "rain ", "rai"])
def test_case_and_letters_too_many_or_too_few_are_slips(near):
    with pytest.warns(NearNameWarning, match="did you mean 'rain'"):
        sb.from_edges(EDGES, bias={near: -1.0})


@pytest.mark.parametrize(
    "bias",
    [{"rain": -1.0}, {"snow": 1.0}, {"sprinkler": 1.0}],
)
def test_names_that_are_far_are_left_alone(bias):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sb.from_edges(EDGES, bias=bias)


@given(st.integers(2, 30))
def test_numbered_units_are_told_apart_by_their_numbers(n):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sb.from_edges({("cause 0", "cause 1"): 1.0}, bias={f"cause {k}": -1.0 for k in range(n)})


def test_names_that_are_listed_are_meant():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sb.from_edges(EDGES, bias={"rian": -1}, names=["rain", "rian", "wet"])
        networkx = pytest.importorskip("networkx")
        graph = networkx.DiGraph([("rain", "wet")])
        graph.add_node("rian", bias=1.0)
        sb.convert.from_networkx(graph)


def test_many_units_without_edges_are_meant_and_cost_nothing():
    edges = [(f"a{k}", f"b{k}", 1.0) for k in range(2000)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sb.from_edges(edges, bias={f"x{'y' * k}": 1.0 for k in range(60)})


# --- modules that are imported when they are asked for ---------------------------------------------------------------


def test_modules_are_there_without_being_imported():
    code = """
import sys, sbnet as sb
heavy = {"matplotlib", "sklearn", "pandas", "networkx"}
assert not heavy & set(sys.modules), heavy & set(sys.modules)
names = ("datasets", "estimators", "paper", "plots")
assert not [name for name in names if f"sbnet.{name}" in sys.modules]
assert set(names) <= set(dir(sb))
assert sb.datasets.load_digits and not heavy & set(sys.modules)
assert sb.estimators.SBNDensity and "sklearn" in sys.modules
assert sb.plots.network and "matplotlib" in sys.modules
assert sb.paper.__name__ == "sbnet.paper"
try:
    sb.nothing
except AttributeError as error:
    print(error)
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert found.stderr == ""
    assert found.stdout == "module 'sbnet' has no attribute 'nothing'\n"


def test_networks_that_cannot_be_are_still_network_errors():
    for wrong in (None, 3, "a"):
        with pytest.raises(NetworkError):
            sb.from_edges(wrong)
