"""What to ask next, and what each finding adds, against sums over all states."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oracle
import sbnet as sb
from sbnet.cli import main
from sbnet.datasets import make_clinic
from sbnet.errors import EvidenceError, ParameterError, TooManyHiddenError, UnknownUnitError
from sbnet.inference.solvers.enumeration import Sums

small = pytest.mark.small
EFFECTS = {("flu", "fever"): 0.9, ("cold", "fever"): 0.2, ("cold", "sneezing"): 0.8, ("flu", "aches"): 0.5}


def visit():
    return sb.noisy_or(EFFECTS, leak=0.01, prior={"flu": 0.05, "cold": 0.1})


def entropies(means):
    return np.array([oracle.entropy(mean) for mean in means])


def expected_fall(network, evidence, f, about):
    """By how much the summed entropies of units are expected to fall, term by term."""
    J, h, gate = network.weight_matrix(), network.bias, network.gate
    row = np.full(network.n_units, np.nan)
    for name, state in evidence.items():
        row[network.index(name)] = state
    here = [network.index(name) for name in about]
    before = entropies(oracle.posterior(J, h, row, gate)[here]).sum()
    after = 0.0
    for state in (0, 1):
        then = row.copy()
        then[network.index(f)] = state
        share = np.exp(oracle.log_likelihood(J, h, then, gate) - oracle.log_likelihood(J, h, row, gate))
        after += share * entropies(oracle.posterior(J, h, then, gate)[here]).sum()
    return before - after


@st.composite
def cases(draw):
    """Networks of two levels and a third unit below both, of either gate, some of it observed."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n = draw(st.integers(3, 7))
    names = [f"u{i}" for i in range(n)]
    noisy = {name for name in names if rng.random() < 0.5}
    edges = {
        (names[j], names[i]): abs(w) if names[i] in noisy else w
        for i in range(n)
        for j in range(i)
        if rng.random() < 0.5
        for w in [float(rng.normal(0, 2))]
    }
    bias = {name: float(abs(b) if name in noisy else b) for name, b in zip(names, rng.normal(0, 1, n), strict=True)}
    network = sb.from_edges(edges, bias=bias, gate=dict.fromkeys(noisy, "noisy-or"), names=names)
    return network, {name: int(rng.integers(2)) for name in names if rng.random() < 0.3}


@small
@settings(max_examples=25)
@given(cases())
def test_information_is_the_expected_fall_of_the_summed_entropies(case):
    network, evidence = case
    found = sb.next_question(network, evidence)
    assert found.exact
    for one in found:
        assert one.information == pytest.approx(expected_fall(network, evidence, one.name, found.about), abs=2e-9)
    assert np.all(np.diff(found.information) <= 0)
    assert not set(found.names) & set(evidence)


@small
def test_every_hidden_unit_is_asked_about_and_for_once():
    network = sb.from_edges({("a", "x"): 1.0, ("b", "y"): -1.0, ("a", "y"): 0.5})
    found = sb.next_question(network, {"x": 1})
    assert found.about == ("a", "b")
    assert found.names == ("y",)


@small
def test_units_that_say_nothing_have_no_information():
    network = sb.from_edges({("a", "x"): 1.0, ("b", "y"): 2.0, ("b", "z"): 0.0})
    found = sb.next_question(network, {"a": 1})
    assert {one.name: one.information > 0 for one in found} == {"y": True, "x": False, "z": False}
    assert found[-1].information == 0.0
    solved = sb.next_question(network, {"a": 1}, solver=sb.MeanField())
    assert [one.information > 0 for one in solved] == [True, False, False]


@small
def test_a_cause_that_is_asked_for_tells_all_about_itself():
    network = visit()
    (one,) = sb.next_question(network, {}, about="flu", among=["flu"])
    assert one.information == pytest.approx(oracle.entropy(np.array([0.05])))
    assert one.probability == pytest.approx(0.05)


@small
def test_observed_units_are_never_asked_for_and_groups_are_known():
    network = visit()
    assert "fever" not in sb.next_question(network, {"fever": 1}, among=["fever", "aches"]).names
    notes = {"flu": sb.Note(group="causes"), "aches": sb.Note(group="findings"), "fever": sb.Note(group="findings")}
    found = sb.next_question(network.with_notes(notes), {"fever": 0})
    assert found.about == ("flu",)
    assert found.names == ("aches",)


@small
def test_nothing_left_to_ask_is_no_error():
    network = visit()
    nothing = sb.next_question(network, {"fever": 1, "sneezing": 0, "aches": 1})
    assert len(nothing) == 0
    assert "nothing left" in repr(nothing)
    known = sb.next_question(network, {"flu": 1, "cold": 0})
    assert known.entropy == 0.0
    assert not known.information.any()


@small
def test_questions_print_and_are_a_table():
    found = sb.next_question(visit(), {"fever": 1})
    assert "1  sneezing  0.5182 nats (×1.68)  exact  0.2727" in repr(found)
    assert (
        found[0] == found[:1][0] == sb.results.NextQuestion(1, "sneezing", found.information[0], found.probability[0])
    )
    assert "<table>" in found._repr_html_()
    frame = found.to_frame()
    assert list(frame.index) == ["sneezing", "aches"]
    assert list(frame["rank"]) == [1, 2]


@small
def test_slips_are_told():
    network = visit()
    with pytest.raises(UnknownUnitError, match="did you mean 'flu'"):
        sb.next_question(network, {}, about=["flue"])
    with pytest.raises(EvidenceError, match="one pattern was expected"):
        sb.next_question(network, [{"fever": 1}, {"fever": 0}])
    with pytest.raises(ParameterError, match="tries is 0"):
        sb.next_question(network, {}, tries=0)
    with pytest.raises(UnknownUnitError, match="the variables asked about"):
        sb.contributions(network, {"fever": 1})["fever"]


@small
@settings(max_examples=25)
@given(cases())
def test_the_best_of_a_few_tries_are_among_the_best(case):
    network, evidence = case
    every = sb.next_question(network, evidence)
    one = sb.next_question(network, evidence, tries=1)
    assert one.considered == len(every)
    assert len(one) == min(1, len(every))
    if len(one):
        assert one.information[0] == pytest.approx(every.information[every.names.index(one.names[0])], abs=1e-9)


def test_few_candidates_of_a_clinic_are_tried_and_the_first_choice_is_good(solved):
    """Candidates are chosen by a formula for independent causes, in a network of 600 causes and 4,000 findings."""
    network = make_clinic(rng=0)
    patient = sb.sample(network, 1, rng=3)[0]
    present = [name for name, s in zip(network.names[600:], patient[600:], strict=True) if s][:5]
    evidence, solver = dict.fromkeys(present, 1), sb.MeanField()
    few = sb.next_question(network, evidence, tries=10, solver=solver)
    assert len(solved) <= 1 + 2 * 10
    more = sb.next_question(network, evidence, tries=60, solver=solver)
    assert few.considered == 4000 - 5
    assert few.information[0] >= 0.8 * more.information[0]


@small
@settings(max_examples=25)
@given(cases())
def test_contributions_are_differences_of_log_odds(case):
    network, evidence = case
    found = sb.contributions(network, evidence)
    assert found.findings == tuple(evidence)
    assert list(found.means) == sorted(found.means, reverse=True)
    for f in evidence:
        less = {name: state for name, state in evidence.items() if name != f}
        with_it, without = (sb.exact_posterior(network, given) for given in (evidence, less))
        for unit in found.about:
            odds = [np.log(p[unit] / (1 - p[unit])) for p in (with_it, without)]
            assert found[unit][f] == pytest.approx(odds[0] - odds[1], abs=1e-6)


@small
def test_contributions_read_from_the_likeliest_cause_down():
    found = sb.contributions(visit(), {"fever": 1, "sneezing": 0})
    assert found.about == ("flu", "cold")
    assert list(found["flu"]) == ["fever", "sneezing"]
    assert "flu       0.0500 → 0.7683    fever +4.14 (×63), sneezing +0.73 (×2.1)" in repr(found)
    assert found.to_frame().loc["flu", "fever"] == pytest.approx(4.14, abs=0.005)
    assert len(sb.contributions(visit(), {})["flu"]) == 0


@small
def test_reports_count_as_findings():
    network = visit()
    doubtful = {"fever": (0.2, 0.6), "sneezing": 0}
    found = sb.contributions(network, doubtful)
    assert set(found.findings) == {"fever", "sneezing"}
    assert found["flu"]["fever"] > 0
    assert sb.next_question(network, doubtful).names == ("aches",)
    assert sb.next_question(network, doubtful).entropy > sb.next_question(network, {"sneezing": 0}).entropy


@small
@pytest.mark.parametrize("solver", [None, sb.MeanField(), Sums(frozenset({"flu", "cold"}))])
def test_a_posterior_in_place_of_evidence_is_not_solved_for_again(solved, solver):
    network, evidence = visit(), {"fever": 1, "sneezing": 0}
    posterior = sb.infer(network, evidence, solver=solver)
    said, asked = sb.contributions(network, posterior), sb.next_question(network, posterior)
    assert solved.count(evidence) == 1
    plain, open_ = (ask(network, evidence, solver=posterior.solver) for ask in (sb.contributions, sb.next_question))
    np.testing.assert_allclose(said.nats, plain.nats, atol=1e-9)
    np.testing.assert_allclose(said.means, plain.means, atol=1e-12)
    np.testing.assert_allclose(asked.information, open_.information, atol=1e-9)
    assert asked.entropy == pytest.approx(open_.entropy, abs=1e-12)
    assert said.exact is asked.exact is isinstance(solver, Sums)


@small
def test_a_posterior_is_solved_for_again_where_it_does_not_say_what_is_asked(solved):
    """Sums leave the mean of a variable without observed descendants to a prediction, unless it is wanted."""
    network, evidence = visit(), {"fever": 1}
    posterior = sb.infer(network, evidence, solver=Sums())
    said = sb.contributions(network, posterior, about=["aches", "sneezing"])
    assert solved.count(evidence) == 2
    exact = sb.exact_posterior(network, evidence)
    np.testing.assert_allclose(said.means, [exact[name] for name in said.about], atol=1e-12)
    sb.contributions(network, posterior, solver=sb.MeanField())
    assert solved.count(evidence) == 3


@small
def test_sums_that_are_too_large_without_a_finding_are_given_up_for_all_rows():
    """A finding has nineteen causes, of which one is observed; without that, there is a cause too many."""
    network = sb.from_edges({(f"c{k}", "finding"): 1.0 for k in range(19)})
    evidence = {"finding": 1, "c18": 1}
    posterior = sb.infer(network, evidence, solver=Sums(frozenset({"c0"})))
    assert not sb.contributions(network, posterior, about="c0").exact
    with pytest.raises(TooManyHiddenError):
        sb.contributions(network, posterior, about="c0", solver=Sums(frozenset({"c0"})))
    fallen, plain = (sb.contributions(network, given, about="c0") for given in (posterior, evidence))
    np.testing.assert_array_equal(fallen.nats, plain.nats)


@small
def test_findings_that_count_as_one_are_taken_away_together():
    network = sb.from_edges({("flu", "crp"): 4.0, ("flu", "leucocytes"): 4.0, ("flu", "fever"): 1.0})
    seen = {"crp": 1, "leucocytes": 1, "fever": 1}
    found = sb.contributions(network, seen, together={"blood": ["crp", "leucocytes"]})
    assert set(found.findings) == {"blood", "fever"}
    without = sb.exact_posterior(network, {"fever": 1})["flu"]
    whole = sb.exact_posterior(network, seen)["flu"]
    expected = np.log(whole / (1 - whole)) - np.log(without / (1 - without))
    assert found["flu"]["blood"] == pytest.approx(expected, abs=1e-9)


@small
def test_a_posterior_of_something_else_is_refused():
    network = visit()
    with pytest.raises(ParameterError, match="that of another network; give one of this network, or evidence"):
        sb.contributions(network, sb.infer(sb.from_edges({("a", "b"): 1.0}), {"b": 1}))
    with pytest.raises(ParameterError, match="has reports or interventions.*give the evidence"):
        sb.next_question(network, sb.infer(network, {"fever": (0.2, 0.6)}))


def test_the_choice_of_candidates_and_the_questions_take_one_solution(solved):
    network = make_clinic(60, 200, rng=0)
    evidence = dict.fromkeys(network.names[60:90], 1)
    assert len(sb.next_question(network, evidence, tries=2, solver=sb.MeanField())) == 2
    assert solved.count(evidence) == 1


def test_two_states_that_say_neither_yes_nor_no_are_named(tmp_path, capsys):
    """A probability says of which state it is, in Python and in the command."""
    net = sb.from_edges(
        {("supply", "gauge"): 2.0, ("leak", "gauge"): -1.0},
        states={"supply": ["low", "normal"], "gauge": ["red", "green"]},
    )
    assert "supply    normal 0.5000 → 0." in repr(sb.exact_posterior(net, {"gauge": "green"}))
    assert "leak      0.5000 → 0." in repr(sb.exact_posterior(net, {"gauge": "green"}))
    assert "0.5952 not red" in repr(sb.next_question(net, {}, about=["supply", "leak"]))
    sb.write(net, tmp_path / "net.toml")
    for words, expected in ((["infer"], "normal 0.5000 → 0.5000"), (["show"], "green 0.5952"), (["next"], "not red")):
        assert main([words[0], str(tmp_path / "net.toml"), *words[1:]]) == 0
        assert expected in capsys.readouterr().out


def test_questions_that_cost_more_have_to_tell_more():
    effects = {("flu", "fever"): 0.9, ("cold", "fever"): 0.2, ("cold", "sneezing"): 0.8, ("flu", "aches"): 0.5}
    net = sb.noisy_or(effects, leak=0.01, prior={"flu": 0.05, "cold": 0.1})
    plain = sb.next_question(net, {"fever": 1})
    assert plain.names == ("sneezing", "aches")
    ratio = plain.information[0] / plain.information[1]
    for factor, first in ((0.99, "sneezing"), (1.01, "aches")):
        found = sb.next_question(net, {"fever": 1}, cost={"sneezing": factor * ratio})
        assert found.names[0] == first
        assert sorted(found.information) == sorted(plain.information)
    assert "cost" in repr(found)
    assert "cost" not in repr(plain)
    assert found.to_frame().loc["sneezing", "cost"] == pytest.approx(1.01 * ratio)
    one = sb.next_question(net, {"fever": 1}, cost={"sneezing": 1.01 * ratio}, tries=1)
    assert len(one) == 1
    with pytest.raises(ParameterError, match="cost\\['aches'\\] is 0"):
        sb.next_question(net, {"fever": 1}, cost={"aches": 0})


def test_contributions_in_odds_are_factors():
    net = sb.noisy_or({("flu", "fever"): 0.9, ("cold", "fever"): 0.2}, leak=0.01, prior={"flu": 0.05, "cold": 0.1})
    found = sb.contributions(net, {"fever": 1}, about="flu")
    before, after = 0.05, sb.exact_posterior(net, {"fever": 1})["flu"]
    assert found.odds[0, 0] == pytest.approx(after / (1.0 - after) / (before / (1.0 - before)))


def test_exact_questions_of_large_networks_do_without_the_compiler():
    """Its import takes longer than they do."""
    asked = """
        import sys, numpy as np, sbnet as sb
        rng = np.random.default_rng(0)
        effects = {(f"c{c}", f"f{f}"): 0.5 for f in range(300) for c in rng.choice(300, 40, replace=False)}
        net = sb.noisy_or(effects, leak=0.01, prior=0.01)
        assert sb.next_question(net, {"f0": 1, "f1": 1}).exact
        assert sb.contributions(net, {"f0": 1, "f1": 1}).exact
        assert "numba" not in sys.modules
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(asked)], check=True)
