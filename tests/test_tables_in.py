"""Networks of tables from elsewhere: variables with the states of the file, or a refusal that names the place."""

from __future__ import annotations

import gzip
import json
import os
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sbnet as sb
from sbnet.cli import main
from sbnet.errors import LONGEST_MESSAGE, FileFormatError, MissingExtraError
from sbnet.files.agrum import check_all_read, declared_in, from_tensors
from sbnet.files.assembling import assembled
from sbnet.files.bif import read_bif
from sbnet.files.uai import read_uai
from sbnet.files.variables import NoisyMax, Variable, no_first
from sbnet.kernels.codes import NOISY_OR, TABLE
from strategies import mixed_networks, networks, seeds

gum = pytest.importorskip("pyagrum")

ASIA = """\
network asia { property author "A. // not a comment"; }
/* eight variables,
   in Lauritzen's and Spiegelhalter's words */
variable visit { type discrete [ 2 ] { yes, no }; property where = "Asia"; }
variable tub { type discrete [ 2 ] { yes, no }; }
variable smoke { type discrete[2] { yes no }; }
variable "lung cancer" { type discrete [ 2 ] { yes, no }; }
variable bronc { type discrete [ 2 ] { yes, no }; }
variable either { type discrete [ 2 ] { yes, no }; }
variable xray { type discrete [ 2 ] { abnormal, normal }; }
variable dysp { type discrete [ 2 ] { yes, no }; }
probability ( visit ) { table 0.01, 0.99; }   // a prior
probability ( tub | visit ) { (yes) 0.05, 0.95; (no) 0.01, 0.99; }
probability ( smoke ) { table 0.5 0.5; }
probability ( "lung cancer" | smoke ) { table 0.1, 0.01, 0.9, 0.99; }
probability ( bronc | smoke ) { (yes) 0.6, 0.4; default 0.3, 0.7; }
probability ( either | "lung cancer", tub ) {
  (yes, yes) 1.0, 0.0; (no, yes) 1.0, 0.0; (yes, no) 1.0, 0.0; (no, no) 0.0, 1.0; }
probability ( xray | either ) { (yes) 0.98, 0.02; (no) 0.05, 0.95; }
probability ( dysp bronc, either ) {
  (yes, yes) 0.9, 0.1; (no, yes) 0.7, 0.3; (yes, no) 0.8, 0.2; (no, no) 0.1, 0.9; }
"""


@pytest.fixture
def asia(tmp_path):
    (tmp_path / "asia.bif").write_text(ASIA)
    return tmp_path / "asia.bif"


def joint(variables: list[Variable]) -> dict[tuple[int, ...], float]:
    """The slow, obvious oracle: the probability of every joint state, by the tables."""
    place = {variable.name: k for k, variable in enumerate(variables)}
    found = {}
    for states in np.ndindex(*(len(variable.states) for variable in variables)):
        p = 1.0
        for variable, own in zip(variables, states, strict=True):
            row = 0
            for parent in variable.parents:
                row = row * len(variables[place[parent]].states) + states[place[parent]]
            p *= variable.table[row, own]
        found[states] = p
    return found


def states_of(variables: list[Variable], states: tuple[int, ...]) -> dict[str, str]:
    """A joint state as evidence."""
    return {variable.name: variable.states[own] for variable, own in zip(variables, states, strict=True)}


def agrees(variables: list[Variable], network: sb.Network, within: float) -> None:
    for states, p in joint(variables).items():
        assert np.exp(sb.log_likelihood(network, states_of(variables, states))) == pytest.approx(p, abs=within)


# --- BIF --------------------------------------------------------------------------------------------------------------


def test_asia_is_read_exactly(asia):
    network = sb.read(asia)
    assert (network.gate == TABLE).all()
    assert network.states["xray"] == ("normal", "abnormal")  # the one that says no first, as everywhere
    assert network.states["visit"] == ("no", "yes")
    post = sb.exact_posterior(network, {"xray": "abnormal", "smoke": "no"})
    assert post["tub"] == pytest.approx(0.98 * 0.0104 / 0.06887528, abs=1e-9)  # by hand
    assert network.conditional("dysp", {"bronc": "yes", "either": "no"}).p[0] == 0.8


@pytest.mark.parametrize(
    ("states", "order"),
    [
        (("yes", "no"), (1, 0)),
        (("FALSE", "TRUE"), (0, 1)),
        (("absent", "present"), (0, 1)),
        (("ja", "nein"), (1, 0)),
        (("abnormal", "normal"), (1, 0)),
        (("visited", "no"), (1, 0)),
        (("wet", "dry"), None),
        (("LOW", "NORMAL"), None),
        (("a", "no", "c"), None),
    ],
)
def test_of_two_states_the_one_that_says_no_comes_first(states, order):
    assert no_first(states) == order


def test_complete_states_of_asia(asia):
    """ln P of all states together, and the most probable ones, against the tables multiplied out."""
    network, variables = sb.read(asia), read_bif(str(asia))
    every = joint(variables)
    rows = [states_of(variables, states) for states in every]
    assert np.exp(sb.log_joint(network, rows)) == pytest.approx(list(every.values()), abs=1e-15)
    dyspnoea = [variable.name for variable in variables].index("dysp")
    best = max((states for states in every if states[dyspnoea] == 0), key=every.__getitem__)
    found = sb.most_probable(network, {"dysp": "yes"})
    assert found.log_p == pytest.approx(np.log(every[best]), abs=1e-12)
    assert {name: network.states[name][found.state[network.index(name)]] for name in network.names} == states_of(
        variables, best
    )


TYPOS = [
    (
        "( tub | visit )",
        "( tubb | visit )",
        "line 13, column 15: 'tubb' is not a variable of the file; did you mean 'tub'?",
    ),
    ("(yes) 0.05", "(yess) 0.05", "'yess' is not a state of 'visit'; did you mean 'yes'?"),
    ("(no) 0.01, 0.99;", "", "line 13, column 15: the table of 'tub' has no row for no"),
    ("(no) 0.01, 0.99;", "(yes) 0.01, 0.99;", "has two rows for yes"),
    ("(no) 0.01, 0.99;", "(no, no) 0.01, 0.99;", "a row of 'tub' names 2 states, and it has 1 parents"),
    ("(no) 0.01, 0.99;", "(no) 0.01;", "a row of the table of 'tub' has 1 numbers for 2 states"),
    ("(no) 0.01, 0.99;", "(no) 0.01, 0.9;", "the probabilities of 'tub' in row 2 of its table add up to 0.91, not 1"),
    ("(no) 0.01, 0.99;", "(no) -0.01, 1.01;", "the table of 'tub' holds -0.01, which is no probability"),
    ("(no) 0.01, 0.99;", "(no) zero, 0.99;", "'zero' in the table of 'tub' is no number"),
    ("table 0.01, 0.99;", "table 0.01, 0.9, 0.1;", "the table of 'visit' has 3 numbers; 2 are needed"),
    ("table 0.01, 0.99;", "table 0.01, 0.99", "a number, or ; after the last one, is expected here, not '}'"),
    ("variable tub {", "variable visit {", "there are two variables 'visit'"),
    ("variable tub {", "varable tub {", "'varable' is not a block of a BIF file"),
    ("probability ( visit ) { table 0.01, 0.99; }", "", "variable 'visit' has no table"),
    ("( tub | visit )", "( tub | tub )", "the table of 'tub' names a variable twice"),
    ("discrete[2] { yes no }", "discrete[3] { yes no }", "variable 'smoke' should have 3 states, and 2 are named"),
    ("discrete[2] { yes no }", "discrete[1] { yes }", "variable 'smoke' has 1 states; a variable needs two or more"),
    ("discrete[2] { yes no }", "continuous", "'discrete' is expected here, not 'continuous'"),
    ("either ) { (yes) 0.98", "either ) { (yes) 0.98 // ", "'probability' in the table of 'xray' is no number"),
    ("( visit )", "( visit | dysp )", "cycle"),
]


@pytest.mark.parametrize(("old", "new", "message"), TYPOS)
def test_typos_in_bif_are_refused(asia, old, new, message):
    text = ASIA.replace(old, new, 1)
    if message == "cycle":
        text = text.replace("table 0.01, 0.99; }   // a prior", "default 0.01, 0.99; }")
    asia.write_text(text)
    with pytest.raises(FileFormatError, match=re.escape(message)) as error:
        sb.read(asia)
    assert len(str(error.value)) <= LONGEST_MESSAGE


# --- UAI --------------------------------------------------------------------------------------------------------------

SMALL = """\
BAYES
3
2 2 3
3
1 0
2 0 1
3 0 1 2

2
 0.9 0.1
4
 0.8 0.2
 0.3 0.7
12
 0.1 0.2 0.7
 0.3 0.3 0.4
 0.5 0.25 0.25
 0.0 1.0 0.0
"""


def test_uai_runs_fastest_along_the_last_variable(tmp_path):
    (tmp_path / "small.uai").write_text(SMALL)
    network = sb.read(tmp_path / "small.uai")
    on = np.exp(sb.log_likelihood(network, {"0": 1, "1": 0, "2": "0"}))  # 0.1 · 0.3 · 0.5
    assert on == pytest.approx(0.015, abs=1e-12)
    agrees(read_uai(str(tmp_path / "small.uai")), network, 1e-12)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("BAYES", "MARKOV", "line 1, column 1: this is a Markov network; only BAYES"),
        ("BAYES", "bytes", "a UAI file begins with BAYES; this one with 'bytes'"),
        ("2 0 1\n", "2 0 7\n", "line 6, column 5: a variable of table 1 is '7'; it is a whole number from 0 to 2"),
        ("2 0 1\n", "2 0 0\n", "table 1 names a variable twice"),
        ("2 0 1\n", "2 1 0\n", "variable 0 has two tables"),
        (
            "\n12\n",
            "\n11\n",
            "the number of entries of the table of variable 2 is 11; its variables have 12 joint states",
        ),
        ("0.25 0.25", "0.25 x", "is 'x'; it is a number that is not negative"),
        ("0.25 0.25", "0.25 -1", "is '-1'; it is a number that is not negative"),
        ("0.0 1.0 0.0\n", "0.0 1.0", "the file ends where an entry of the table of variable 2 should stand"),
        ("0.0 1.0 0.0\n", "0.0 1.0 0.0 5", "the file goes on after its last table"),
        ("2 2 3", "2 2 1", "variable 2 has one state; a variable needs two"),
        ("2 2 3", "4000 4000 3", "the table of variable 1 has more than 4,194,304 entries; that is the limit"),
        ("\n3\n1 0", "\n4\n1 0", "a Bayesian network of 3 variables has 3 tables"),
        ("BAYES\n3", "BAYES\n3e", "the number of variables is '3e'"),
    ],
)
def test_typos_in_uai_are_refused(tmp_path, old, new, message):
    text = SMALL.replace(old, new, 1)
    if "4000" in new:
        text = text.replace("\n2\n 0.9 0.1\n", f"\n4000\n{' 0' * 4000}\n")
    (tmp_path / "small.uai").write_text(text)
    with pytest.raises(FileFormatError, match=re.escape(message)):
        sb.read(tmp_path / "small.uai")


def test_a_uai_file_of_pyagrum_is_read_in_its_order(tmp_path):
    bn = gum.fastBN("a->c<-b")
    for a in (0, 1):
        for b in (0, 1):
            bn.cpt("c")[{"a": a, "b": b}] = [0.9 - 0.2 * a - 0.5 * b, 0.1 + 0.2 * a + 0.5 * b]
    gum.saveBN(bn, str(tmp_path / "made.uai"))
    network = sb.read(tmp_path / "made.uai")
    assert network.conditional("c", {"a": 1}).p[0] == pytest.approx(0.3, abs=1e-6)
    assert network.conditional("c", {"b": 1}).p[0] == pytest.approx(0.6, abs=1e-6)


# --- tables -----------------------------------------------------------------------------------------------------------


@settings(max_examples=40)
@given(st.one_of(networks(5, max_weight=4.0, scales=("tame", "strong")), mixed_networks(5, scales=("tame",))), seeds)
def test_networks_of_gates_come_back_as_tables(tmp_path_factory, network, seed):
    path = tmp_path_factory.getbasetemp() / ("there.bif" if seed % 2 else "there.uai")
    sb.write(network, path)
    again = sb.read(path)
    names = dict(zip(network.names, network.names if seed % 2 else map(str, range(network.n_units)), strict=True))
    for states in np.ndindex(*(2,) * network.n_units):
        evidence = dict(zip(network.names, map(int, states), strict=True))
        own = {names[name]: state for name, state in evidence.items()}
        assert sb.log_likelihood(again, own) == pytest.approx(sb.log_likelihood(network, evidence), abs=1e-9)


@st.composite
def any_tables(draw):
    """Up to four variables of two or three states, with any tables: random, with zeros."""
    rng, sizes = (
        np.random.default_rng(draw(seeds)),
        draw(st.lists(st.sampled_from([2, 2, 2, 3]), min_size=1, max_size=4)),
    )
    variables: list[Variable] = []
    for k, size in enumerate(sizes):
        parents = [j for j in range(k) if rng.random() < 0.6][:2]
        table = rng.dirichlet(np.ones(size) * rng.choice([0.1, 1.0, 10.0]), int(np.prod([sizes[j] for j in parents])))
        table = np.where(rng.random(table.shape) < 0.15, 0.0, table) + 1e-12 * (rng.random() < 0.5)
        table[table.sum(axis=1) == 0.0] = 1.0
        words = (("no", "yes"), ("present", "absent"), ("x", "y"))[rng.integers(3)]
        states = words if size == 2 else ("x", "y", "z")
        table = table / table.sum(axis=1, keepdims=True)
        variables.append(Variable(f"v{k}", states, tuple(f"v{j}" for j in parents), table))
    return variables


@settings(max_examples=50)
@given(any_tables())
def test_any_table_is_exact(variables):
    agrees(variables, assembled(variables, "made"), 1e-14)


RARE = "BAYES 3 2 2 2 3 1 0 1 1 3 0 1 2 2 0.5 0.5 2 0.5 0.5 8 0 1 1e-12 0.999999999999 1e-12 0.999999999999 0 1"
"""Zeros and rare states: probabilities that differ by a million millionth, and by any number of nats."""


def test_rare_states_and_zeros_are_kept(tmp_path, recwarn):
    (tmp_path / "rare.uai").write_text(RARE)
    network = sb.read(tmp_path / "rare.uai")
    assert sb.log_likelihood(network, {"0": 0, "1": 1, "2": 0}) == pytest.approx(np.log(0.25e-12), abs=1e-9)
    assert sb.log_likelihood(network, {"0": 0, "1": 0, "2": 0}) == -np.inf
    assert not recwarn.list


# --- pyAgrum and pgmpy ------------------------------------------------------------------------------------------------


def posterior(bn, evidence: dict[str, int]) -> tuple[dict[str, float], float]:
    engine = gum.LazyPropagation(bn)
    engine.setEvidence(evidence)
    engine.makeInference()
    return {name: engine.posterior(name)[1] for name in bn.names()}, float(np.log(engine.evidenceProbability()))


@settings(max_examples=40)
@given(st.one_of(networks(7, max_weight=3.0, scales=("tame", "strong")), mixed_networks(7, scales=("tame",))), seeds)
def test_exact_answers_are_those_of_pyagrum(network, seed):
    rng = np.random.default_rng(seed)
    evidence = {name: int(rng.integers(2)) for name in network.names if rng.random() < 0.3}
    bn = sb.convert.to_pyagrum(network)
    means, log_p = posterior(bn, evidence)
    ours = sb.exact_posterior(network, evidence)
    assert ours.log_likelihood == pytest.approx(log_p, abs=1e-9)
    for name in network.names:
        assert ours[name] == pytest.approx(means[name], abs=1e-9)
    again = sb.exact_posterior(sb.convert.from_pyagrum(bn), evidence)
    assert [again[name] for name in network.names] == pytest.approx([means[name] for name in network.names], abs=1e-9)


def test_forty_parents_stay_units_through_pyagrum(tmp_path):
    rng = np.random.default_rng(0)
    causes = {(f"c{k}", "f"): float(rng.uniform(0.1, 0.9)) for k in range(40)}
    clinic = sb.noisy_or(causes, leak=0.01, prior=0.05)
    weights = {(f"c{k}", "g"): float(rng.normal()) for k in range(40)}
    sigmoid = sb.from_edges(weights, bias={"g": -1.0, **{f"c{k}": -2.0 for k in range(40)}})
    for network in (clinic, sigmoid):
        gum.saveBN(sb.convert.to_pyagrum(network), str(tmp_path / "many.jgum"))
        again = sb.read(tmp_path / "many.jgum")
        assert again.names[-1] == network.names[-1]
        assert again.gate[-1] == network.gate[-1]
        assert again.states["c0"] == ("0", "1")
        np.testing.assert_allclose(again.weight, network.weight, atol=1e-9)


@pytest.mark.parametrize("ending", ["bif", "bifxml", "net", "xdsl", "dsl", "jgum", "bgum", "uai"])
def test_files_that_pyagrum_writes_are_read(tmp_path, ending):
    gum.initRandom(3)
    bn = gum.fastBN("a->c<-b;c->d")
    path = str(tmp_path / f"made.{ending}")
    gum.saveBN(bn, path)
    read = sb.read(path)
    again = gum.loadBN(path) if ending != "uai" else bn
    means, log_p = posterior(again, {"d": 1})
    ours = sb.exact_posterior(read, {"d": 1})
    assert ours.log_likelihood == pytest.approx(log_p, abs=1e-6)
    assert [ours[name] for name in "abc"] == pytest.approx([means[name] for name in "abc"], abs=1e-6)


def test_a_file_that_pyagrum_cannot_read_is_refused(tmp_path):
    (tmp_path / "x.bifxml").write_text("<oh")
    with pytest.raises(FileFormatError, match="line 1, column 1: this is not XML: unclosed token"):
        sb.read(tmp_path / "x.bifxml")
    (tmp_path / "x.dsl").write_text("oh")
    with pytest.raises(FileFormatError, match="pyAgrum cannot read"):
        sb.read(tmp_path / "x.dsl")
    with pytest.raises(FileNotFoundError):
        sb.read(tmp_path / "gone.bifxml")
    (tmp_path / "x.pkl").write_text("oh")
    with pytest.raises(FileFormatError, match="its suffix is '.pkl', none of"):
        sb.read(tmp_path / "x.pkl")


def test_without_pyagrum_the_way_out_is_shown(monkeypatch, tmp_path):
    monkeypatch.setitem(__import__("sys").modules, "pyagrum", None)
    with pytest.raises(MissingExtraError, match=r'needs pyagrum; install it with: pip install "sbnet\[pyagrum\]"'):
        sb.read(tmp_path / "x.dsl")
    with pytest.raises(MissingExtraError, match="pyagrum"):
        sb.convert.to_pyagrum(sb.layered((2,), rng=0))


# --- GeNIe's files ----------------------------------------------------------------------------------------------------

XDSL = """\
<?xml version="1.0" encoding="UTF-8"?>
<smile version="1.0" id="Garden" numsamples="10000"><nodes>
  <cpt id="rain"><state id="yes"/><state id="no"/><probabilities>0.2 0.8</probabilities></cpt>
  <cpt id="season"><state id="dry"/><state id="mild"/><state id="wet"/><probabilities>0.5 0.3 0.2</probabilities></cpt>
  <cpt id="grass"><state id="wet"/><state id="dry"/><parents>rain season</parents>
    <probabilities>0.7 0.3 0.8 0.2 0.9 0.1 0.1 0.9 0.2 0.8 0.3 0.7</probabilities></cpt>
</nodes><extensions><genie version="1.0" app="GeNIe" name="Garden">
  <submodel id="more"><node id="grass"><name>the lawn</name></node></submodel>
</genie></extensions></smile>
"""


def test_in_xdsl_the_last_parent_runs_fastest(tmp_path):
    """As GeNIe writes, and pgmpy reads it; pyAgrum takes the first parent for the fastest, in its own files only."""
    pytest.importorskip("pgmpy")
    from pgmpy.readwrite import XDSLReader

    (tmp_path / "garden.xdsl").write_text(XDSL)
    network = sb.read(tmp_path / "garden.xdsl")
    given = {"rain": "yes", "season": "wet"}
    assert sb.exact_posterior(network, given)["grass"] == pytest.approx(0.1, abs=1e-12)  # of dry, the second state
    assert network.notes["grass"] == sb.Note(about="the lawn")
    assert network.states["grass"] == ("wet", "dry")
    assert network.states["season"] == ("dry", "mild", "wet")
    theirs = sb.convert.from_pgmpy(XDSLReader(string=XDSL.encode()).get_model())
    assert sb.exact_posterior(theirs, given)["grass"] == pytest.approx(0.1, abs=1e-6)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("</nodes>", '<noisyadder id="x"/></nodes>', "'x' is of kind 'noisyadder': a noisy-adder node has no table"),
        ("</nodes>", '<equation id="x"/></nodes>', "node 'x' is of kind 'equation': its values are continuous"),
        ("</nodes>", '<deterministic id="x"/></nodes>', "'x' is of kind 'deterministic': a deterministic node has no"),
        ("</nodes>", '<decision id="x"/></nodes>', "'x' is of kind 'decision': a belief network has no decisions"),
        ("</nodes>", '<utility id="x"/></nodes>', "'x' is of kind 'utility': a belief network has no utilities"),
        ("</nodes>", '<mau id="x"/></nodes>', "'x' is of kind 'mau': a belief network has no utilities"),
        ("</nodes>", '<newkind id="x"/></nodes>', "'x' is of kind 'newkind': only nodes with a table, and noisy-MAX"),
        ("</nodes>", "</nodes><dynamic/>", "is a dynamic network, of several time steps; unroll it in GeNIe first"),
        ("<parents>rain", "<parents>rian", "'grass' has the parent 'rian', which is no node of the file; did you mean"),
        ("<parents>rain", "<parents>grass", "the table of 'grass' names a variable twice"),
        ("0.2 0.8</prob", "0.2</prob", "the table of 'rain' has 1 numbers; 2 are needed"),
        ("0.2 0.8</prob", "0.2 x</prob", "'x' in the table of 'rain' is no number"),
        ("0.2 0.8</prob", "0.2 0.9</prob", "the probabilities of 'rain' in row 1 of its table add up to 1.1, not 1"),
        ('id="season"', 'id="rain"', "there are two nodes 'rain'"),
        ('<state id="dry"/><state id="mild"/>', "", "variable 'season' has 1 states; a variable needs two or more"),
        ('id="mild"', 'id="dry"', "variable 'season' has 3 states; two of them have the same name"),
        ("<smile", "<smiles", "line 9, column 24: this is not XML: mismatched tag"),
        ("<nodes>", "<points><nodes>", "this is not XML"),
        ("<smile", '<!DOCTYPE s [<!ENTITY a "aaaa">]><smile', "it declares the entity 'a'"),
    ],
)
def test_nodes_without_a_table_and_slips_in_xdsl_are_refused(tmp_path, old, new, message):
    (tmp_path / "garden.xdsl").write_text(XDSL.replace(old, new, 1))
    with pytest.raises(FileFormatError) as error:
        sb.read(tmp_path / "garden.xdsl")
    assert message in str(error.value)
    assert len(str(error.value)) <= LONGEST_MESSAGE


COUGH = """\
<smile version="1.0"><nodes>
  <cpt id="smoke"><state id="much"/><state id="some"/><state id="none"/><probabilities>0.2 0.3 0.5</probabilities></cpt>
  <cpt id="cold"><state id="no"/><state id="yes"/><probabilities>0.9 0.1</probabilities></cpt>
  <noisymax id="cough"><state id="bad"/><state id="mild"/><state id="none"/><parents>smoke cold</parents>
    <strengths>0 1 2 1 0</strengths>
    <parameters>0.5 0.3 0.2 0.1 0.4 0.5 0 0 1 0.2 0.6 0.2 0 0 1 0.01 0.04 0.95</parameters></noisymax>
</nodes></smile>
"""


def maximum(smoke: str, cold: str) -> dict[str, float]:
    """The slow, obvious oracle: each cause and the leak bring about a state on their own, and the worst one is seen."""
    alone = {"much": (0.5, 0.3, 0.2), "some": (0.1, 0.4, 0.5), "yes": (0.2, 0.6, 0.2)}
    alone |= dict.fromkeys(("none", "no"), (0.0, 0.0, 1.0))
    found = dict.fromkeys(("bad", "mild", "none"), 0.0)
    for states in np.ndindex(3, 3, 3):
        p = alone[smoke][states[0]] * alone[cold][states[1]] * (0.01, 0.04, 0.95)[states[2]]
        found[("bad", "mild", "none")[min(states)]] += p
    return found


def test_strengths_are_the_numbers_of_states_from_the_strongest_on(tmp_path):
    """As SMILE has it: the outcome of strength k stands at place k. Turned round, "1 2 0" would be another order."""
    before, after = "0 1 2", "1 2 0"
    order = '<state id="none"/><state id="much"/><state id="some"/><probabilities>0.5 0.2 0.3'
    text = COUGH.replace('<state id="much"/><state id="some"/><state id="none"/><probabilities>0.2 0.3 0.5', order)
    (tmp_path / "cough.xdsl").write_text(text.replace(f"<strengths>{before}", f"<strengths>{after}"))
    network = sb.read(tmp_path / "cough.xdsl")
    for smoke in ("none", "some", "much"):
        for cold in ("no", "yes"):
            found = sb.exact_posterior(network, {"smoke": smoke, "cold": cold})["cough"]
            assert found == pytest.approx(maximum(smoke, cold))


@pytest.mark.parametrize("other", [False, True])
def test_a_noisy_max_node_is_the_maximum_of_what_its_causes_do(tmp_path, other):
    text = COUGH
    if other:  # a second child for which "much" has no effect: its states would have to stand the other way round
        text = COUGH.replace(
            "</nodes>",
            '<noisymax id="sport"><state id="y"/><state id="n"/><parents>smoke</parents>'
            "<strengths>2 1 0</strengths><parameters>0.7 0.3 0.4 0.6 0 1 0.1 0.9</parameters></noisymax></nodes>",
        )
    (tmp_path / "cough.xdsl").write_text(text)
    network = sb.read(tmp_path / "cough.xdsl")
    assert network.gate[network.index("cough")] == NOISY_OR
    assert network.states["cough"] == ("none", "mild", "bad")
    assert network.states["smoke"] == ("none", "some", "much")
    assert network.states["cold"] == ("no", "yes")
    for smoke in ("none", "some", "much"):
        for cold in ("no", "yes"):
            post = sb.exact_posterior(network, {"smoke": smoke, "cold": cold})
            assert dict(post["cough"]) == pytest.approx(maximum(smoke, cold), abs=1e-14)
    if other:
        assert network.gate[network.index("sport")] == TABLE
        sport = [sb.exact_posterior(network, {"smoke": smoke})["sport"] for smoke in ("none", "some", "much")]
        assert sport == pytest.approx([1 - 0.3 * 0.9, 1 - 0.6 * 0.9, 0.1], abs=1e-14)


def test_a_noisy_max_of_many_parents_stays_a_gate_and_a_small_one_equals_its_table(tmp_path):
    rng = np.random.default_rng(0)
    roots = [Variable(f"c{k}", ("s", "m", "n"), (), rng.dirichlet(np.ones(3), 1)) for k in range(40)]
    nothing = np.array([[0.0, 0.0, 1.0]])
    effects = tuple(np.vstack([rng.dirichlet(np.ones(3), 2), nothing]) for _ in roots)
    formula = NoisyMax(effects, rng.dirichlet(np.ones(3)), ((0, 1, 2),) * 40)
    child = Variable("f", ("s", "m", "n"), tuple(one.name for one in roots), np.zeros((0, 3)), formula=formula)
    network = assembled([*roots, child], "made")
    given = {one.name: one.states[k % 3] for k, one in enumerate(roots)}
    below = np.cumsum(formula.leak[::-1]) * np.prod([np.cumsum(e[k % 3, ::-1]) for k, e in enumerate(effects)], axis=0)
    post = sb.exact_posterior(network, given)["f"]
    assert [post[s] for s in "nms"] == pytest.approx(np.diff(below, prepend=0.0), abs=1e-12)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("0 1 2 1 0<", "0 1 1 1 0<", "'0 1 1' among the strengths of 'cough' should have the numbers of all 3 states"),
        ("0 1 2 1 0<", "0 1 2<", "'' among the strengths of 'cough' should have the numbers of all 2 states of 'cold'"),
        ("0.04 0.95<", "0.04<", "the table of 'cough' has 17 numbers; 18 are needed"),
        ("0.04 0.95<", "0.04 0.5<", "the probabilities of 'cough' in row 6 of its table add up to 0.55, not 1"),
        ("0.04 0.95<", "-0.04 0.95<", "the table of 'cough' holds -0.04, which is no probability"),
    ],
)
def test_typos_in_noisy_max_nodes_are_refused(tmp_path, old, new, message):
    (tmp_path / "cough.xdsl").write_text(COUGH.replace(old, new, 1))
    with pytest.raises(FileFormatError) as error:
        sb.read(tmp_path / "cough.xdsl")
    assert message in str(error.value)


# --- what pyAgrum passes over -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ending", "old", "new", "message"),
    [
        ("bifxml", 'TYPE="nature"', 'TYPE="decision"', "variable 'a' is of kind 'decision'; only variables with a"),
        ("bifxml", 'TYPE="nature"', 'TYPE="utility"', "variable 'a' is of kind 'utility'; only variables with a"),
        (
            "bifxml",
            "</NETWORK>",
            '</NETWORK><NETWORK><VARIABLE TYPE="nature"><NAME>z</NAME></VARIABLE></NETWORK>',
            "the file has 2 <NETWORK>; an XMLBIF file has one",
        ),
        ("dsl", "TYPE = CPT", "TYPE = NOISY_MAX", "is of kind 'NOISY_MAX'; only variables with a table"),
    ],
)
def test_what_pyagrum_passes_over_is_refused(tmp_path, ending, old, new, message):
    path = tmp_path / f"made.{ending}"
    gum.saveBN(gum.fastBN("a->c<-b"), str(path))
    path.write_text(path.read_text().replace(old, new, 1))
    with pytest.raises(FileFormatError) as error:
        sb.read(path)
    assert message in str(error.value)


@pytest.mark.parametrize("ending", ["dsl", "jgum"])
def test_every_variable_that_a_file_declares_is_counted(tmp_path, ending):
    path = tmp_path / f"made.{ending}"
    gum.saveBN(gum.fastBN("a->c<-b"), str(path))
    assert sorted(declared_in(str(path))) == ["a", "b", "c"]
    with pytest.raises(FileFormatError, match=r"pyAgrum read 2 of the 3 variables of .* and left out 'b'; save"):
        check_all_read(str(path), declared_in(str(path)), {"a", "c"})


def test_pgmpy_and_back(asia):
    pytest.importorskip("pgmpy")
    network = sb.read(asia)
    model = sb.convert.to_pgmpy(network)
    assert model.check_model()
    again = sb.convert.from_pgmpy(model)
    for evidence in ({"dysp": 1}, {"xray": 1, "smoke": 0}):
        one, other = sb.exact_posterior(network, evidence), sb.exact_posterior(again, evidence)
        assert [other[name] for name in network.names] == pytest.approx([one[name] for name in network.names], abs=1e-9)
    many = sb.noisy_or({(f"c{k}", "f"): 0.5 for k in range(21)}, prior=0.1)
    with pytest.raises(FileFormatError, match=r"'f' has 21 parents, and a table of pgmpy has a row for each of"):
        sb.convert.to_pgmpy(many)
    with pytest.raises(FileFormatError, match="the limit is 16 parents"):
        sb.write(many, asia)


# --- published networks -----------------------------------------------------------------------------------------------

FOLDER = Path(os.environ.get("SBNET_TABLES", "."))
NETWORKS = ("asia", "sachs", "alarm", "win95pts", "hepar2")


def published(name: str) -> Path | None:
    return next((path for path in FOLDER.glob(f"**/{name}")), None) if os.environ.get("SBNET_TABLES") else None


def in_double_precision(bn, network: sb.Network) -> float:
    """Put the numbers of the file into what pyAgrum has read, in single precision, and tell how far off that was."""
    off = 0.0
    for name in network.names:
        parents, labels = network.parents(name), bn.variable(name).labels()
        columns = [network.states[name].index(label) for label in labels]
        for place in np.ndindex(*(len(network.states[parent]) for parent in parents)):
            row = network.tables[name][place][columns]
            given = {parent: network.states[parent][k] for parent, k in zip(parents, place, strict=True)}
            theirs = np.asarray(bn.cpt(name)[given]) if given else bn.cpt(name).toarray()
            off = max(off, np.abs(theirs - row).max())
            if given:
                bn.cpt(name)[given] = row.tolist()
            else:
                bn.cpt(name).fillWith(row.tolist())
    return off


@pytest.mark.skipif(published("asia.bif.gz") is None, reason="SBNET_TABLES names the folder of asia.bif.gz and others")
@pytest.mark.parametrize("name", NETWORKS)
def test_published_networks_are_asked_by_their_states_and_agree_with_pyagrum(name, tmp_path, capsys):
    network = sb.read(published(f"{name}.bif.gz"))
    path = tmp_path / f"{name}.bif"
    path.write_bytes(gzip.decompress(published(f"{name}.bif.gz").read_bytes()))
    bn = gum.loadBN(str(path))
    assert {own: set(network.states[own]) for own in network.names} == {
        own: set(bn.variable(own).labels()) for own in bn.names()
    }
    assert in_double_precision(bn, network) < 1e-7  # that of its reader, and of tables with four digits
    rng = np.random.default_rng(0)
    for share in (0.0, 0.1, 0.4):
        row = sb.sample(network, 1, rng=1)[0]
        evidence = {own: network.states[own][row[i]] for i, own in enumerate(network.names) if rng.random() < share}
        engine = gum.LazyPropagation(bn)
        engine.setEvidence(evidence)
        engine.makeInference()
        ours = sb.exact_posterior(network, evidence)
        assert ours.log_likelihood == pytest.approx(np.log(engine.evidenceProbability()), abs=1e-9)
        for own in network.names:
            theirs = dict(zip(bn.variable(own).labels(), engine.posterior(own).toarray(), strict=True))
            no, yes = network.states[own][0], network.states[own][1]
            found = {no: 1.0 - ours[own], yes: ours[own]} if len(theirs) == 2 else dict(ours[own])
            assert found == pytest.approx(theirs, abs=1e-9)
    given = [f"{own}={state}" for own, state in evidence.items()]
    assert main(["infer", str(path), *given, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["exact"]
    assert told["bound"] == pytest.approx(ours.log_likelihood, abs=1e-9)
    for unit in told["units"]:
        own = ours[unit["name"]]
        assert unit["mean"] == pytest.approx(own if isinstance(own, float) else dict(own), abs=1e-9)


@pytest.mark.skipif(published("noisymax.xdsl") is None, reason="SBNET_TABLES names the folder of noisymax.xdsl")
def test_a_noisy_max_file_of_genie():
    network = sb.read(published("noisymax.xdsl"))
    assert network.gate[network.index("Fever")] == NOISY_OR
    none = (1 - 0.05 * 0.9) * (1 - 0.2 * 0.2) * 0.99
    assert sb.exact_posterior(network, {})["Fever"] == pytest.approx(1.0 - none, abs=1e-14)
    assert network.conditional("Fever", ["Flu"]).p[0] == pytest.approx(1.0 - 0.1 * 0.99, abs=1e-14)


@pytest.mark.skipif(published("tcc4e.uai") is None, reason="SBNET_TABLES names the folder of tcc4e.uai")
def test_a_diagnosis_network_agrees_with_pyagrum():
    path = str(published("tcc4e.uai"))
    network, bn = sb.read(path), built(read_uai(path))
    rng = np.random.default_rng(0)
    for size in (0, 1, 2, 4, 8):
        evidence = {str(i): int(rng.integers(2)) for i in rng.choice(98, size, replace=False)}
        means, log_p = posterior(bn, evidence)
        ours = sb.exact_posterior(network, evidence)
        assert ours.log_likelihood == pytest.approx(log_p, abs=1e-9)
        assert max(abs(ours[name] - means[name]) for name in means) < 1e-9


def built(variables: list[Variable]):
    """The same tables in pyAgrum: its own reader takes the first parent for the fastest."""
    bn = gum.BayesNet()
    for one in variables:
        bn.add(gum.LabelizedVariable(one.name, "", list(one.states)))
    for one in variables:
        for parent in one.parents:
            bn.addArc(parent, one.name)
        table = one.table / one.table.sum(axis=1, keepdims=True)
        for row, states in enumerate(np.ndindex(*(2,) * len(one.parents))):
            bn.cpt(one.name)[dict(zip(one.parents, map(int, states), strict=True))] = table[row].tolist()
    assert len(from_tensors(bn)) == len(variables)
    return bn
