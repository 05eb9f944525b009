"""Networks of tables from elsewhere: exact where they are units, exact with switches, or refused with a distance."""

from __future__ import annotations

import os
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import sbnet as sb
from sbnet.errors import LONGEST_MESSAGE, ConversionWarning, FileFormatError, MissingExtraError
from sbnet.files.agrum import check_all_read, declared_in, from_tensors
from sbnet.files.conversion import convert
from sbnet.files.uai import read_uai
from sbnet.files.variables import Variable
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


def units_of(variables: list[Variable], states: tuple[int, ...]) -> dict[str, int]:
    """A joint state as evidence on units."""
    given: dict[str, int] = {}
    for variable, own in zip(variables, states, strict=True):
        if len(variable.states) == 2:
            given[variable.name] = int(own == variable.one)
        else:
            given |= {f"{variable.name}={state}": int(k == own) for k, state in enumerate(variable.states)}
    return given


def agrees(variables: list[Variable], network: sb.Network, within: float) -> None:
    for states, p in joint(variables).items():
        assert np.exp(sb.log_likelihood(network, units_of(variables, states))) == pytest.approx(p, abs=within)


# --- BIF --------------------------------------------------------------------------------------------------------------


def test_asia_is_read_exactly(asia):
    report = sb.convert.read_report(asia)
    kinds = {table.unit: table.kind for table in report.tables}
    assert kinds["either"] == "noisy-or"
    assert kinds["dysp"] == "switches"
    assert kinds["visit"] == "prior"
    assert report.error < 1e-15
    assert report.nats < 1e-13
    post = sb.exact_posterior(report.network, {"xray": "abnormal", "smoke": "no"})
    assert post["tub"] == pytest.approx(0.98 * 0.0104 / 0.06887528, abs=1e-9)  # by hand
    assert sb.read(asia) == report.network
    assert report.network.notes["xray"].states == ("normal", "abnormal")


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
    ("discrete[2] { yes no }", "discrete[1] { yes }", "variable 'smoke' has 1 states; a unit needs two or more"),
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
        ("2 2 3", "2 2 1", "variable 2 has one state; a unit needs two"),
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


# --- units and switches -----------------------------------------------------------------------------------------------


@settings(max_examples=40)
@given(st.one_of(networks(5, max_weight=4.0, scales=("tame", "strong")), mixed_networks(5, scales=("tame",))), seeds)
def test_tables_of_units_are_those_units_again(tmp_path_factory, network, seed):
    path = tmp_path_factory.getbasetemp() / ("there.bif" if seed % 2 else "there.uai")
    sb.write(network, path)
    report = sb.convert.read_report(path)
    assert report.error < 1e-9
    assert not any(table.kind == "switches" for table in report.tables)
    names = dict(zip(network.names, network.names if seed % 2 else map(str, range(network.n_units)), strict=True))
    for states in np.ndindex(*(2,) * network.n_units):
        evidence = dict(zip(network.names, map(int, states), strict=True))
        own = {names[name]: state for name, state in evidence.items()}
        assert sb.log_likelihood(report.network, own) == pytest.approx(sb.log_likelihood(network, evidence), abs=1e-7)


@st.composite
def any_tables(draw):
    """Up to four variables of two or three states, with any tables: random, with zeros, nearly units."""
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
def test_any_table_is_exact_with_switches(variables):
    report = convert(variables, tol=1e-9, max_hidden=64, name="made")
    assert report.error < 1e-9
    assume(report.network.n_units <= 20)
    agrees(variables, report.network, 1e-9)


def test_noisy_and_is_a_noisy_or_of_absences():
    rows = [[1 - p, p] for p in (0.9 * 0.2 * 0.3, 0.9 * 0.2, 0.9 * 0.3, 0.9)]
    prior = np.array([[0.3, 0.7]])
    variables = [
        Variable("fuel", ("no", "yes"), (), prior),
        Variable("spark", ("no", "yes"), (), prior),
        Variable("starts", ("no", "yes"), ("fuel", "spark"), np.array(rows)),
    ]
    report = convert(variables, tol=1e-9, max_hidden=0, name="car")
    assert report.tables[2].kind == "noisy-and"
    assert report.network.gate[report.network.index("starts=no")] == 1
    agrees(variables, report.network, 1e-14)


XOR = np.array([[0.9, 0.1], [0.2, 0.8], [0.2, 0.8], [0.9, 0.1]])


def test_a_table_that_is_no_unit_is_refused_with_the_nearest():
    roots = [Variable(name, ("0", "1"), (), np.array([[0.5, 0.5]])) for name in "ab"]
    variables = [*roots, Variable("c", ("0", "1"), ("a", "b"), XOR)]
    with pytest.raises(
        FileFormatError, match=r"the table of 'c' \(4 rows\) is no unit within tol=1e-06: the nearest"
    ) as e:
        convert(variables, tol=1e-6, max_hidden=0, name="x.bif")
    off = float(re.search(r"off by ([\d.]+)", str(e.value))[1])
    assert 0.34 < off < 0.36  # the best constant is the middle of 0.1 and 0.8
    wide = float(re.search(r"tol=([\d.]+) to take it", str(e.value))[1])
    report = convert(variables, tol=wide, max_hidden=0, name="x.bif")
    assert report.error == pytest.approx(off, abs=0.01)
    assert convert(variables, tol=1e-6, max_hidden=1, name="x.bif").error < 1e-12


RARE = "BAYES 3 2 2 2 3 1 0 1 1 3 0 1 2 2 0.5 0.5 2 0.5 0.5 8 0 1 1e-12 0.999999999999 1e-12 0.999999999999 0 1"
"""Chances that differ by a million millionth, and by more than six hundred nats: zeros and rare states."""


def test_rare_states_are_kept_by_switches(tmp_path, recwarn):
    (tmp_path / "rare.uai").write_text(RARE)
    report = sb.convert.read_report(tmp_path / "rare.uai")
    assert report.tables[2].kind == "switches"
    assert report.nats < 1e-3
    network = sb.read(tmp_path / "rare.uai")
    assert sb.log_likelihood(network, {"0": 0, "1": 1, "2": 0}) == pytest.approx(np.log(0.25e-12), abs=1e-3)
    assert not recwarn.list


def test_a_network_that_is_nats_off_is_announced(tmp_path):
    (tmp_path / "rare.uai").write_text(RARE)
    with pytest.warns(
        ConversionWarning, match=r"off by 6.*e\+02 nats from what the tables say, .* by the table of '2'"
    ):
        network = sb.read(tmp_path / "rare.uai", max_hidden=0)
    assert sb.log_likelihood(network, {"0": 0, "1": 0, "2": 0}) > -60.0  # the table says that it cannot be


def test_a_unit_within_tol_is_taken_with_a_warning(tmp_path):
    near = np.array([[0.99, 0.01], [0.79, 0.21], [0.1, 0.9], [0.07, 0.93]])  # 0.921 in a noisy-OR with leak 0.01
    rows = " ".join(f"{a} {b}" for a, b in near)
    text = f"BAYES 3 2 2 2 3 1 0 1 1 3 0 1 2 2 0.5 0.5 2 0.5 0.5 8 {rows}"
    (tmp_path / "near.uai").write_text(text)
    with pytest.warns(ConversionWarning, match="the table of '2' is read as noisy-or within 0.00"):
        network = sb.read(tmp_path / "near.uai", tol=0.01)
    report = sb.convert.read_report(tmp_path / "near.uai", tol=0.01)
    assert 0.001 < report.error <= 0.01
    assert network == report.network
    exact = sb.read(tmp_path / "near.uai")
    for evidence in ({"2": 1}, {"2": 0, "0": 1}):
        far = abs(sb.log_likelihood(network, evidence) - sb.log_likelihood(exact, evidence))
        assert far <= report.nats + 1e-9


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
        assert again.gate.tolist() == network.gate.tolist()
        np.testing.assert_allclose(again.weight_matrix(), network.weight_matrix(), atol=1e-9)


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
    (tmp_path / "x.net").write_text("oh")
    with pytest.raises(FileFormatError, match="pyAgrum cannot read"):
        sb.read(tmp_path / "x.net")
    with pytest.raises(FileNotFoundError):
        sb.read(tmp_path / "gone.bifxml")
    (tmp_path / "x.pkl").write_text("oh")
    with pytest.raises(FileFormatError, match="its suffix is '.pkl', none of"):
        sb.read(tmp_path / "x.pkl")


def test_without_pyagrum_the_way_out_is_shown(monkeypatch, tmp_path):
    monkeypatch.setitem(__import__("sys").modules, "pyagrum", None)
    with pytest.raises(MissingExtraError, match=r'needs pyagrum; install it with: pip install "sbnet\[pyagrum\]"'):
        sb.read(tmp_path / "x.net")
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
NOISY_MAX = (
    '<noisymax id="cough"><state id="yes"/><state id="no"/><parents>rain</parents><strengths>0 1</strengths>'
    "<parameters>0.9 0.1 0 1 0.01 0.99</parameters></noisymax></nodes>"
)


def test_in_xdsl_the_last_parent_runs_fastest(tmp_path):
    """As GeNIe writes, and pgmpy reads it; pyAgrum takes the first parent for the fastest, in its own files only."""
    pytest.importorskip("pgmpy")
    from pgmpy.readwrite import XDSLReader

    (tmp_path / "garden.xdsl").write_text(XDSL)
    network = sb.read(tmp_path / "garden.xdsl")
    given = {"rain": "yes", "season": "wet"}
    assert sb.exact_posterior(network, given)["grass"] == pytest.approx(0.1, abs=1e-6)  # the second state is 1
    assert network.notes["grass"] == sb.Note(about="the lawn", states=("wet", "dry"))
    theirs = sb.convert.from_pgmpy(XDSLReader(string=XDSL.encode()).get_model())
    assert sb.exact_posterior(theirs, given)["grass"] == pytest.approx(0.1, abs=1e-6)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("</nodes>", NOISY_MAX, "node 'cough' is of kind 'noisymax': a noisy-MAX node has no table; change its type"),
        ("</nodes>", '<equation id="x"/></nodes>', "node 'x' is of kind 'equation': its values are continuous"),
        ("</nodes>", '<deterministic id="x"/></nodes>', "'x' is of kind 'deterministic': a deterministic node has no"),
        ("</nodes>", '<decision id="x"/></nodes>', "'x' is of kind 'decision': a belief network has no decisions"),
        ("</nodes>", '<utility id="x"/></nodes>', "'x' is of kind 'utility': a belief network has no utilities"),
        ("</nodes>", '<mau id="x"/></nodes>', "'x' is of kind 'mau': a belief network has no utilities"),
        ("</nodes>", '<newkind id="x"/></nodes>', "'x' is of kind 'newkind': only nodes with a table can be read"),
        ("</nodes>", "</nodes><dynamic/>", "is a dynamic network, of several time steps; unroll it in GeNIe first"),
        ("<parents>rain", "<parents>rian", "'grass' has the parent 'rian', which is no node of the file; did you mean"),
        ("<parents>rain", "<parents>grass", "the table of 'grass' names a variable twice"),
        ("0.2 0.8</prob", "0.2</prob", "the table of 'rain' has 1 numbers; 2 are needed"),
        ("0.2 0.8</prob", "0.2 x</prob", "'x' in the table of 'rain' is no number"),
        ("0.2 0.8</prob", "0.2 0.9</prob", "the probabilities of 'rain' in row 1 of its table add up to 1.1, not 1"),
        ('id="season"', 'id="rain"', "there are two nodes 'rain'"),
        ('<state id="dry"/><state id="mild"/>', "", "variable 'season' has 1 states; a unit needs two or more"),
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
            "pyAgrum read 3 of the 4 variables of",
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


@pytest.mark.parametrize("ending", ["bifxml", "net", "dsl", "jgum"])
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


# --- a diagnosis network of 98 variables ------------------------------------------------------------------------------

FOLDER = os.environ.get("SBNET_TABLES", "")


@pytest.mark.skipif(not (Path(FOLDER) / "tcc4e.uai").is_file(), reason="SBNET_TABLES names the folder of tcc4e.uai")
def test_a_diagnosis_network_agrees_with_pyagrum_within_the_report():
    path = str(Path(FOLDER) / "tcc4e.uai")
    report = sb.convert.read_report(path)
    assert report.error < 1e-6
    bn = built(read_uai(path))
    rng = np.random.default_rng(0)
    for size in (0, 1, 2, 4, 8):
        evidence = {str(i): int(rng.integers(2)) for i in rng.choice(98, size, replace=False)}
        means, log_p = posterior(bn, evidence)
        ours = sb.exact_posterior(report.network, evidence)
        assert abs(ours.log_likelihood - log_p) <= report.nats
        assert max(abs(ours[name] - means[name]) for name in means) <= report.nats / 2


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
