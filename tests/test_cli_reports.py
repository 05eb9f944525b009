"""Soft evidence in the command: a likelihood for each state of a variable, in one word."""

from __future__ import annotations

import json

import numpy as np
import pytest

import sbnet as sb
from sbnet.cli import main

WORDS = "fever=none:0.1,mild:0.5,high:1"
REPORT = {"fever": {"none": 0.1, "mild": 0.5, "high": 1.0}}
PLAIN = "say a likelihood for each state, 0 for those that are ruled out, as in none:0.2,mild:1,high:1"


@pytest.fixture
def net() -> sb.Network:
    edges = {("flu", "fever"): {"mild": 0.3, "high": 0.6}, ("cold", "fever"): {"mild": 0.2}, ("cold", "cough"): 0.8}
    states = {"fever": ["none", "mild", "high"]}
    leak = {"fever": {"mild": 0.02}, "cough": 0.05}
    return sb.noisy_or(edges, leak=leak, prior={"flu": 0.05, "cold": 0.2}, states=states)


@pytest.fixture
def path(net, tmp_path):
    sb.write(net, tmp_path / "net.toml")
    return str(tmp_path / "net.toml")


def told(capsys, *arguments):
    assert main([*arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_infer_answers_reports_exactly_and_says_what_they_add(net, path, capsys):
    found = told(capsys, "infer", path, WORDS, "cough=no:0.3,yes:0.9", "--about", "flu", "fever")
    evidence = REPORT | {"cough": {"no": 0.3, "yes": 0.9}}
    exact = sb.exact_posterior(net, evidence)
    assert found["exact"]
    assert found["bound"] == pytest.approx(exact.log_likelihood, abs=1e-12)
    units = {one["name"]: one for one in found["units"]}
    assert units["flu"]["mean"] == pytest.approx(exact["flu"], abs=1e-12)
    assert units["fever"]["mean"] == pytest.approx(exact["fever"], abs=1e-12)
    assert found["evidence"] == evidence
    odds = [np.log(p / (1.0 - p)) for p in (exact["flu"], sb.exact_posterior(net, {"cough": (0.3, 0.9)})["flu"])]
    assert units["flu"]["contributions"]["fever"] == pytest.approx(odds[0] - odds[1], abs=1e-9)


def test_what_is_reported_alone_has_moved_from_its_prior(net, path, capsys):
    (cold,) = told(capsys, "infer", path, "cold=no:1,yes:3")["units"][:1]
    assert (cold["name"], cold["prior"]) == ("cold", pytest.approx(0.2))
    assert cold["mean"] == pytest.approx(0.6 / 1.4)
    assert cold["contributions"] == {"cold": pytest.approx(np.log(3.0))}


def test_every_command_about_evidence_takes_reports(net, path, capsys):
    assert told(capsys, "infer", path, WORDS, "--single")["units"][0]["mean"] == pytest.approx(
        max(sb.single_cause(net, REPORT).probability)
    )
    asked = told(capsys, "next", path, WORDS)["questions"][0]
    assert asked["information"] == pytest.approx(sb.next_question(net, REPORT)[0].information)
    moved = told(capsys, "sensitivity", path, WORDS, "--about", "flu")
    assert moved["answer"] == pytest.approx(sb.exact_posterior(net, REPORT)["flu"])
    sure = told(capsys, "certify", path, WORDS)
    assert sure["lower"] <= sb.log_likelihood(net, REPORT) <= sure["upper"]
    between = told(capsys, "infer", path, WORDS, "--certain")["units"][0]
    assert between["lower"] <= between["mean"] <= between["upper"]


def test_a_listing_counts_reports(path, capsys):
    assert main(["infer", path, WORDS, "cough=yes"]) == 0
    assert capsys.readouterr().out.startswith("Given 1 of 4 variables, 1 report: ln P = ")


def test_states_may_be_said_in_other_words(path, capsys):
    same = [told(capsys, "infer", path, words)["bound"] for words in (WORDS, "fever= High: 1 ,MILD:.5,none:1e-1")]
    assert same[0] == same[1]
    assert told(capsys, "infer", path, "cough=0:.2,1:.9") == told(capsys, "infer", path, "cough=no:.2,yes:.9")


def test_states_that_hold_the_signs_of_a_report_are_states(tmp_path, capsys):
    states = {"when": ["before 10:30", "10:30, or later"]}
    net = sb.from_edges({("late", "when"): 2.0}, states=states)
    sb.write(net, tmp_path / "net.toml")
    found = told(capsys, "infer", str(tmp_path / "net.toml"), "when=10:30, or later")
    assert found["units"][0]["mean"] == pytest.approx(sb.exact_posterior(net, {"when": "10:30, or later"})["late"])


def test_a_cause_with_a_report_is_still_asked_about(net):
    assert sb.next_question(net, {"flu": (1.0, 3.0)}).about == ("flu", "cold")
    assert sb.contributions(net, {"flu": (1.0, 3.0), "cold": 1})["flu"]["flu"] == pytest.approx(np.log(3.0))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("none:0.1,mild:0.5", PLAIN),
        ("none:0,mild:0,high:0", PLAIN),
        ("none:0.1,mild:0.5,hgh:1", "'hgh' is none of its states; did you mean 'high'?"),
        ("none:0.1,mild:0.5,dark:1", "'dark' is none of its states; they are none, mild and high"),
        ("none:0.1,none:0.5,high:1", "'none' stands there twice"),
        ("none:0.1,mild:-0.5,high:1", "'-0.5' is no likelihood: say a number, zero or more"),
        ("none:0.1,mild:x,high:1", "'x' is no likelihood: say a number, zero or more"),
        ("none:inf,mild:1,high:1", "'inf' is no likelihood: say a number, zero or more"),
    ],
)
def test_wrong_reports_are_refused_with_the_value_and_the_way_out(path, capsys, words, message):
    assert main(["infer", path, f"fever={words}"]) == 2
    assert capsys.readouterr().err == f"sbnet: error: variable 'fever' is given as '{words}'; {message}\n"


def test_what_is_held_is_certain(path, capsys):
    assert main(["sample", path, "3", "--do", "cough=no:1,yes:2"]) == 2
    assert "--do holds 'cough' at one state; say which, without likelihoods" in capsys.readouterr().err
