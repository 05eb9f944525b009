"""The posterior if exactly one cause is present: against the sum over all joint states with one cause on."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import logsumexp

import oracle
import sbnet as sb
from sbnet.errors import EvidenceError, SBNetError
from strategies import seeds, state_networks, states_of

EFFECTS = {("flu", "fever"): 0.9, ("cold", "fever"): 0.2, ("cold", "sneezing"): 0.8, ("flu", "aches"): 0.5}


PRIORS = {"flu": 1e-3, "cold": 1e-3, "plague": 0.5}


def visit():
    return sb.noisy_or(EFFECTS, leak=0.01, prior={"flu": 0.05, "cold": 0.1})


@st.composite
def questions(draw, **options):
    """A network with states, evidence on it, and causes anywhere in it."""
    network = draw(state_networks(**options))
    rng = np.random.default_rng(draw(seeds))
    chosen = np.flatnonzero(rng.random(network.n_units) < draw(st.sampled_from([0.3, 0.7, 1.0])))
    roots = np.flatnonzero(np.diff(network.graph.indptr) == 0)
    return network, draw(states_of(network)), (chosen if len(chosen) and draw(st.booleans()) else roots).tolist()


def check(network, row, causes):
    tables = {network.index(name): table for name, table in network.tables.items()}
    expected = oracle.single_cause(network.model, network.bias, row, causes, tables)
    try:
        found = sb.single_cause(network, row, about=causes)
    except EvidenceError:
        assert np.isnan(expected).all() or sum(row[d] > 0 for d in causes) > 1
        return
    size = np.abs(network.bias).sum() + np.abs(network.weight).sum()
    assert found.probability == pytest.approx(np.exp(expected), abs=1e-10 + 1e-14 * size)
    assert found.probability.sum() == pytest.approx(1.0)
    for k, log_odds in enumerate(found.log_odds):
        rest = logsumexp(np.delete(expected, k)) if len(expected) > 1 else -np.inf
        if expected[k] - rest > -500.0 and np.isfinite(rest):  # certainties are a thousand nats in sums
            assert log_odds == pytest.approx(expected[k] - rest, abs=1e-8 + 1e-13 * size)


@given(questions())
def test_it_is_the_sum_over_all_states_with_one_cause_on(case):
    check(*case)


@given(questions(max_units=4, scales=("hostile",), max_states=3))
def test_hostile_numbers_and_certainties(case):
    check(*case)


@given(st.integers(0, 2**32 - 1))
def test_two_levels_are_a_closed_form(seed):
    """ln p - ln(1 - p) + sum over findings: the formula itself, with a leak, absences and an excluded cause."""
    rng = np.random.default_rng(seed)
    p, prior, leak = rng.uniform(0.0, 1.0, (4, 6)), rng.uniform(0.001, 0.5, 4), rng.uniform(0.01, 0.5, 6)
    effects = {(f"d{i}", f"f{j}"): p[i, j] for i in range(4) for j in range(6)}
    net = sb.noisy_or(effects, leak={f"f{j}": leak[j] for j in range(6)}, prior={f"d{i}": prior[i] for i in range(4)})
    seen = rng.integers(-1, 2, 6)
    absent = (1.0 - p) * (1.0 - leak)
    terms = np.where(seen == 1, np.log1p(-absent), np.where(seen == 0, np.log(absent), 0.0)).sum(axis=1)
    score = np.log(prior) - np.log1p(-prior) + terms
    score[1] = -np.inf
    found = sb.single_cause(net, {f"f{j}": int(s) for j, s in enumerate(seen) if s >= 0} | {"d1": 0})
    assert found.causes == ("d0", "d1", "d2", "d3")
    assert found.probability == pytest.approx(np.exp(score - logsumexp(score)), abs=1e-12)
    assert found["d1"] == 0.0
    assert found.log_odds[1] == -np.inf
    assert found.ranked[-1] == "d1"


def test_soft_evidence_counts_as_the_likelihoods_that_it_is():
    net = visit()
    hard = [sb.single_cause(net, {"fever": 1, "sneezing": s}) for s in (0, 1)]
    # P(sneezing = s | fever, one cause): from the causes, each by Bayes' rule once more
    p = 1.0 - 0.99 * (1.0 - 0.8)
    only = sb.single_cause(net, {"fever": 1})
    weight = np.array([only["flu"] * (0.2 * 0.99 + 0.7 * 0.01), only["cold"] * (0.2 * (1.0 - p) + 0.7 * p)])
    found = sb.single_cause(net, {"fever": 1, "sneezing": (0.2, 0.7)})
    assert found.probability == pytest.approx(weight / weight.sum())
    assert hard[1]["cold"] > found["cold"] > hard[0]["cold"]


def test_states_of_a_cause_are_pairs():
    net = sb.noisy_or(
        {("asthma", "wheeze"): {"mild": 0.4, "severe": 0.9}, ("cold", "wheeze"): 0.1},
        leak=0.02,
        prior={"asthma": {"mild": 0.1, "severe": 0.02}, "cold": 0.2},
        states={"asthma": ["none", "mild", "severe"]},
    )
    found = sb.single_cause(net, {"wheeze": 1})
    assert set(found.causes) == {("asthma", "mild"), ("asthma", "severe"), "cold"}
    assert found["asthma"]["mild"] == found["asthma", "mild"]
    assert sum(found["asthma"].values()) == pytest.approx(1.0)
    assert found["asthma"]["none"] == pytest.approx(found["cold"])
    assert sb.single_cause(net, {"wheeze": 1, "asthma": "mild"})["asthma"]["mild"] == 1.0
    assert "asthma = mild" in repr(found)
    assert found.to_frame().index[0] == found._reading(1).table[1][0]


def test_what_it_refuses_and_how_it_says_so():
    net = visit()
    with pytest.raises(EvidenceError, match="'flu' and 'cold' are both observed as present"):
        sb.single_cause(net, {"flu": 1, "cold": 1})
    with pytest.raises(EvidenceError, match="no single cause explains the evidence; give the findings a leak"):
        sb.single_cause(sb.noisy_or(EFFECTS, prior=0.1), {"sneezing": 1, "aches": 1})
    with pytest.raises(EvidenceError, match="no single cause"):
        sb.single_cause(net, {"flu": 0, "cold": 0})
    with pytest.raises(SBNetError, match="'flue' is not one of the causes; did you mean 'flu'"):
        sb.single_cause(net, {"fever": 1})["flue"]
    with pytest.raises(SBNetError, match="about is empty"):
        sb.single_cause(net, {"fever": 1}, about=[])


def test_hidden_variables_between_causes_and_findings_are_summed_out():
    net = sb.noisy_or(
        {("flu", "inflamed"): 0.7, ("cold", "inflamed"): 0.4, ("inflamed", "fever"): 0.9, ("flu", "fever"): 0.2},
        leak=0.01,
        prior={"flu": 0.05, "cold": 0.1},
    )
    check(net, np.array([{"fever": 1}.get(name, -1) for name in net.names]), [net.index("flu"), net.index("cold")])


def test_what_cannot_bring_a_finding_without_a_leak_is_excluded():
    """Both zeros must be lifted by one cause, however rare the ones are that lift none or one."""
    net = sb.noisy_or({**EFFECTS, ("plague", "sneezing"): 0.9, ("plague", "aches"): 0.9}, prior=PRIORS)
    assert sb.single_cause(net, {"sneezing": 1})["flu"] == 0.0
    found = sb.single_cause(net, {"sneezing": 1, "aches": 1})
    assert found["plague"] == 1.0
    assert sorted(found.log_odds) == [-np.inf, -np.inf, np.inf]


def test_certain_causes_are_told_from_impossible_ones():
    """A link of probability 1 and an absent finding: no cause is left, and none is ranked by thousands of nats."""
    net = sb.noisy_or({("a", "x"): 1.0, ("b", "x"): 1.0}, leak=0.1, prior=0.1)
    with pytest.raises(EvidenceError, match="no single cause"):
        sb.single_cause(net, {"x": 0})


def test_the_command_ranks_single_causes(tmp_path, capsys):
    from sbnet.cli import main

    sb.write(visit(), tmp_path / "visit.toml")
    found = sb.single_cause(visit(), {"fever": 1, "sneezing": 0})
    words = ["infer", str(tmp_path / "visit.toml"), "fever=yes", "sneezing=no", "--single"]
    assert main(words) == 0
    assert capsys.readouterr().out == f"{found}\n"
    assert main([*words, "--json", "--top", "1"]) == 0
    (told,) = json.loads(capsys.readouterr().out)["units"]
    assert told == {
        "name": "flu",
        "prior": found.prior[0],
        "mean": found["flu"],
        "log_odds": found.log_odds[0],
        "kind": "exact",
    }
    for other in (["--certain"], ["--mean-field"], ["--table", "x.csv"]):
        assert main([*words, *other]) == 2
        assert "--single" in capsys.readouterr().err
