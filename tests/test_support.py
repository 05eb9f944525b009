"""Impossible evidence: P is zero, and every function says so; where P is not, none does."""

from __future__ import annotations

import json
import math
import re
from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import sbnet as sb
from sbnet.errors import EvidenceError
from sbnet.questions import support

CHANCES = (0.0, 1.0, 0.3)


@st.composite
def deterministic(draw, gates=("noisy-or",)):
    """A network of probabilities, many of them 0 or 1, its probabilities, and evidence on any of its units."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.integers(2, 6))
    names = [f"u{k}" for k in range(n)]
    edges = [(j, i) for i in range(n) for j in range(i) if rng.random() < draw(st.sampled_from([0.3, 0.7]))]
    edges = edges or [(0, 1)]
    links = {edge: float(rng.choice(CHANCES)) for edge in edges}
    children, listed = {i for _, i in edges}, {k for edge in edges for k in edge}
    leak = {i: float(rng.choice([0.0, 0.0, 0.0, 1.0, 0.1])) for i in children}
    prior = {k: float(rng.choice(CHANCES)) for k in listed - children}
    network = sb.from_probabilities(
        {(names[j], names[i]): p for (j, i), p in links.items()},
        leak={names[i]: p for i, p in leak.items()},
        prior={names[k]: p for k, p in prior.items()},
        gate=draw(st.sampled_from(gates)),
    )
    row = {names[k]: int(rng.integers(2)) for k in listed if rng.random() < draw(st.sampled_from([0.3, 0.7]))}
    held = {names[k]: int(rng.integers(2)) for k in listed if names[k] not in row and rng.random() < 0.15}
    return network, (names, links, leak, prior), row, held


def is_possible(tables, row, held) -> bool:
    """Has any state of all units a positive probability? By the table of each, one state after the other."""
    names, links, leak, prior = tables
    listed = sorted({*leak, *prior})
    for states in product((0, 1), repeat=len(listed)):
        on = dict(zip(listed, states, strict=True))
        given_ = {**row, **held}
        if all(given_.get(names[k], s) == s for k, s in on.items()) and all(
            names[k] in held or _has_chance(k, s, on, links, leak, prior) for k, s in on.items()
        ):
            return True
    return False


def _has_chance(k, state, on, links, leak, prior) -> bool:
    if k in prior:
        return prior[k] > 0.0 if state else prior[k] < 1.0
    present = [leak[k], *(p for (j, i), p in links.items() if i == k and on[j])]
    return any(p > 0.0 for p in present) if state else all(p < 1.0 for p in present)


@settings(max_examples=150, deadline=None)
@given(case=deterministic())
def test_exactly_what_is_impossible_is_found(case):
    network, tables, row, held = case
    log_p = sb.log_likelihood(network, row, do=held)
    if is_possible(tables, row, held):
        assert -math.inf < sb.infer(network, row, do=held).bound <= log_p + 1e-9 <= 2e-9
    else:
        assert log_p == -math.inf


@settings(max_examples=40, deadline=None)
@given(case=deterministic())
def test_every_function_says_so(case):
    network, tables, row, held = case
    possible = is_possible(tables, row, held)
    certificate = sb.certify(network, row, do=held)
    found = [
        sb.log_likelihood(network, row, do=held),
        sb.exact_posterior(network, row, do=held).log_likelihood,
        sb.infer(network, row, do=held).bound,
        sb.infer_many(network, [{}, row], do=held).bound[1],
        sb.upper_bound(network, row, do=held).bound,
        sb.estimate(network, row, do=held, samples=10).log_probability,
        sb.most_probable(network, row, do=held).log_p,
        certificate.lower,
        certificate.upper,
    ]
    if possible:
        assert min(found) > -math.inf
        assert sb.infer(network, row, do=held).impossible == ""
    else:
        assert set(found) == {-math.inf}
        sentence = sb.infer(network, row, do=held).impossible
        said = re.match(r"the evidence is impossible: '(u\d)' cannot be (on|off), for ", sentence)
        assert {**row, **held}[said[1]] == (said[2] == "on")


@settings(max_examples=40, deadline=None)
@given(case=deterministic(gates=("sigmoid", "noisy-or")))
def test_complete_states_that_are_sampled_are_possible(case):
    network, *_ = case
    draws = sb.sample(network, 20, rng=0)
    assert np.isfinite(sb.log_joint(network, draws)).all()
    assert not support.impossible(network, draws).any()
    assert np.isfinite(sb.bounds.lower_bound(network, draws, np.full(draws.shape, 0.5))).all()


@settings(max_examples=40, deadline=None)
@given(case=deterministic())
def test_intervals_know_what_is_certain(case):
    """P(S = 1 | V) is 0 or 1 exactly where V with the other state is impossible."""
    network, tables, row, held = case
    assume(is_possible(tables, row, held))
    intervals = sb.posterior_intervals(network, row, do=held)
    for name, (low, high) in intervals.items():
        off, on = (is_possible(tables, {**row, name: state}, held) for state in (0, 1))
        assert (high == 0.0) == (not on)
        assert (low == 1.0) == (not off)
        assert low <= sb.exact_posterior(network, row, do=held)[name] + 1e-9 <= high + 2e-9


@pytest.fixture
def clinic() -> sb.Network:
    causes = {("flu", "fever"): 0.9, ("cold", "fever"): 0.2, ("cold", "cough"): 1.0}
    return sb.noisy_or(causes, prior={"flu": 0.1, "cold": 0.2})


SENTENCES = {
    (("flu", 0), ("cold", 0), ("fever", 1)): "'fever' cannot be on, for it has no leak and its causes 'flu' and 'cold' "
    "are off",
    (("flu", 0), ("cough", 0), ("fever", 1)): "'fever' cannot be on, for it has no leak and its causes 'flu' and "
    "'cold' cannot be on",
    (("cold", 1), ("cough", 0)): "'cold' cannot be on, for it never fails to turn on 'cough', which is off",
    (("cold", 0), ("cough", 1)): "'cough' cannot be on, for it has no leak and its cause 'cold' is off",
}


@pytest.mark.small
@pytest.mark.parametrize(("evidence", "sentence"), SENTENCES.items())
def test_sentences(clinic, evidence, sentence):
    posterior = sb.infer(clinic, dict(evidence))
    assert posterior.impossible == f"the evidence is impossible: {sentence}"
    assert posterior.status is sb.results.Status.IMPOSSIBLE
    assert posterior.impossible in repr(posterior)
    assert posterior.impossible in repr(sb.exact_posterior(clinic, dict(evidence)))
    assert posterior.impossible in repr(sb.certify(clinic, dict(evidence)))
    assert posterior.impossible in repr(sb.most_probable(clinic, dict(evidence)))
    assert posterior.impossible in repr(sb.estimate(clinic, dict(evidence)))
    assert posterior.impossible in repr(sb.upper_bound(clinic, dict(evidence)))


@pytest.mark.small
def test_sentences_of_what_follows():
    net = sb.noisy_or({("a", "x"): 1.0, ("b", "x"): 0.5, ("c", "y"): 0.5}, prior={"a": 1.0, "b": 0.3, "c": 0.0})
    assert sb.infer(net, {"x": 0}).impossible.endswith(
        "'x' cannot be off, for its cause 'a' has to be on and never fails"
    )
    assert sb.infer(net, {"y": 1}).impossible.endswith(
        "'y' cannot be on, for it has no leak and its cause 'c' cannot be on"
    )
    assert sb.infer(net, {"c": 1}).impossible.endswith("'c' cannot be on, for its prior is 0")
    assert sb.infer(net, {"a": 0}).impossible.endswith("'a' cannot be off, for its prior is 1")
    leaky = sb.noisy_or({("a", "x"): 0.5}, leak=1.0, prior=0.5)
    assert sb.infer(leaky, {"x": 0}).impossible.endswith("'x' cannot be off, for its leak is 1")
    chain = sb.noisy_or({("a", "b"): 0.5, ("a", "c"): 1.0, ("b", "d"): 0.5, ("c", "e"): 1.0}, prior=0.5)
    assert sb.infer(chain, {"d": 1, "e": 0}).impossible == (
        "the evidence is impossible: 'd' cannot be on, for it has no leak and its cause 'b' cannot be on"
    )
    assert sb.infer(chain, {"d": 1, "c": 0}).impossible.endswith("its cause 'b' cannot be on")


@pytest.mark.small
def test_interventions_have_no_rules_of_their_own(clinic):
    assert sb.log_likelihood(clinic, {"flu": 0, "cold": 0}, do={"fever": 1}) > -10.0
    assert sb.log_likelihood(clinic, {"cough": 0}, do={"cold": 1}) == -math.inf
    assert sb.log_likelihood(clinic, {"cough": 1}, do={"cold": 0}) == -math.inf
    rows = sb.infer_many(clinic, [{"cough": 0}] * 2, do=[{"cold": 1}, {"cold": 0}])
    assert rows.bound[0] == -math.inf < rows.bound[1]
    # Two held causes of 600 nats are a sum of 1200, not a probability of 1.
    net = sb.from_edges({("a", "x"): 600.0, ("b", "x"): 400.0}, gate={"x": "noisy-or"})
    assert sb.log_likelihood(net, {"x": 0}, do={"a": 1, "b": 1}) == pytest.approx(-1000.0)
    assert sb.log_likelihood(net, {"x": 0, "a": 1, "b": 1}) == pytest.approx(-1000.0 + 2.0 * math.log(0.5))


@pytest.mark.small
@pytest.mark.parametrize("gate", ["sigmoid", "noisy-or"])
@pytest.mark.parametrize("states", [{}, {"x": ["none", "some", "much"]}])
def test_a_weight_of_a_thousand_nats_is_a_number(gate, states):
    """P = e^-1000 by the definition of the gate; only a probability of 1 stands for certainty."""
    weight = [[1000.0], [0.0]] if states else 1000.0
    net = sb.from_edges({("a", "x"): weight}, bias={"a": math.log(3.0)}, gate={"x": gate}, states=states)
    first = {"a": 1, "x": net.states["x"][0]}
    expected = -1000.0 + math.log(0.75)
    assert sb.log_joint(net, [1, 0]) == pytest.approx(expected)
    assert sb.log_likelihood(net, first) == pytest.approx(expected)
    assert sb.infer(net, first).bound <= sb.log_likelihood(net, first) <= sb.upper_bound(net, first).bound
    assert sb.certify(net, first).lower <= expected <= sb.certify(net, first).upper
    certain = {"a": 1000.0, "x": [-1000.0, 0.0] if states else -1000.0}
    if gate == "sigmoid":
        net = sb.from_edges({("a", "x"): weight}, bias=certain, states=states)
        assert sb.log_likelihood(net, {"a": 0}) == pytest.approx(-1000.0)
        assert sb.log_likelihood(net, {"x": net.states["x"][-1]}, do={"a": 0}) <= -1000.0


@pytest.mark.small
def test_soft_evidence_with_a_zero_is_certain(clinic):
    assert sb.log_likelihood(clinic, {"fever": (0.0, 0.5), "flu": (1.0, 0.0), "cold": 0}) == -math.inf
    assert sb.infer(clinic, {"fever": (0.0, 0.5), "flu": 0, "cold": (0.7, 0.0)}).bound == -math.inf
    assert sb.log_likelihood(clinic, {"fever": (1e-300, 0.5), "flu": 0, "cold": 0}) > -math.inf


@pytest.mark.small
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"confidence": 0.99},
        {"seconds": 0.1},
        {"gap": 0.1},
        {"settings": sb.solvers.CertifySettings(exact_up_to=0)},
        {"effort": "high"},
    ],
)
def test_certificates_of_impossible_evidence_are_exact(clinic, options):
    made = sb.certify(clinic, {"cold": 1, "cough": 0}, **options)
    assert made.exact
    assert made.lower == made.upper == made.estimate == made.mean_field == -math.inf
    assert made.interval == (-math.inf, -math.inf)
    assert made.gap == made.error == 0.0
    assert made.factorisation == (0.0, 0.0)
    table = sb.certify(clinic, [{"cold": 1, "cough": 0}, {"cold": 1}], **options)
    assert table.gap[0] == 0.0
    assert table[0] == made
    assert table.lower[1] > -5.0
    assert "1 impossible" in repr(table)


@pytest.mark.small
@pytest.mark.parametrize("solver", [sb.MeanField(), sb.Gibbs(samples=10), sb.Structured(), sb.Mixture(2)])
def test_there_are_no_means_of_impossible_evidence(clinic, solver):
    batch = sb.infer_many(clinic, [{"cough": 1, "cold": 0}, {"cough": 1}], solver=solver)
    assert batch.bound[0] == -math.inf
    assert np.isnan(batch["flu"][0])
    assert batch["cough"].tolist() == [1.0, 1.0]
    assert np.isfinite(batch.means[1]).all()
    assert batch.status[0] is sb.results.Status.IMPOSSIBLE
    assert batch.converged[0]
    assert batch.sweeps[0] == 0
    assert batch[0].impossible.startswith("the evidence is impossible: 'cough'")
    assert batch[1].impossible == ""
    assert "1 impossible" in repr(batch)
    one = sb.infer(clinic, {"cough": 1, "cold": 0}, solver=solver)
    assert one.bound == -math.inf
    assert len(one.trace) == 0
    with pytest.raises(EvidenceError, match="the evidence is impossible: 'cough' cannot be on"):
        one.breakdown()


@pytest.mark.small
def test_exact_answers_to_impossible_evidence(clinic):
    table = sb.exact_posterior(clinic, [{"cough": 1, "cold": 0}, {"cough": 1}])
    assert table.log_likelihood[0] == -math.inf
    assert np.isnan(table["flu"][0])
    assert np.isfinite(table[1].means).all()
    assert "1 impossible" in repr(table)
    assert sb.log_likelihood(clinic, [{"cough": 1, "cold": 0}, {}]).tolist() == [-math.inf, 0.0]
    assert np.isnan(sb.exact_pairs(clinic, {"cough": 1, "cold": 0})).all()
    assert np.isnan(sb.kl(clinic, {"cough": 1, "cold": 0}, np.full(4, 0.5)))
    assert sb.bounds.lower_bound(clinic, {"cough": 1, "cold": 0}, np.full(4, 0.5)) == -math.inf
    assert sb.log_joint(clinic, {"flu": 0, "cold": 0, "fever": 1, "cough": 0}) == -math.inf


@pytest.mark.small
@pytest.mark.parametrize(
    "ask", [sb.posterior_intervals, sb.next_question, sb.contributions], ids=["intervals", "next", "contributions"]
)
def test_what_is_all_posterior_refuses_impossible_evidence(clinic, ask):
    with pytest.raises(EvidenceError) as caught:
        ask(clinic, {"cough": 1, "cold": 0})
    assert str(caught.value) == (
        "the evidence is impossible: 'cough' cannot be on, for it has no leak and its cause 'cold' is off; "
        "leave out a finding, or give the variable a leak"
    )


@pytest.mark.small
def test_steps_towards_a_posterior_that_does_not_exist():
    net = sb.from_probabilities({("a", "x"): 0.9}, prior={"a": 0.0}, leak=0.1)
    with pytest.raises(EvidenceError, match="'a' cannot be on, for its prior is 0; leave out a finding"):
        sb.steps(net, {"a": 1})


@pytest.mark.small
def test_a_question_may_have_one_answer_only(clinic):
    asked = sb.next_question(clinic, {"cold": 1}, about=["flu"], among=["cough", "fever"])
    by_name = {one.name: one for one in asked}
    assert by_name["cough"].probability == 1.0
    assert by_name["cough"].information == 0.0
    assert by_name["fever"].information > 0.0


@pytest.mark.small
def test_leakless_but_possible_evidence_keeps_a_finite_bound():
    net = sb.noisy_or({(f"d{j}", f"f{i}"): 0.01 for j in range(5) for i in range(4)}, prior=1e-4)
    found = {f"f{i}": 1 for i in range(4)}
    assert -200.0 < sb.infer(net, found).bound <= sb.log_likelihood(net, found) < -20.0


@pytest.mark.small
def test_weights_of_any_other_size_are_possible():
    for size in (999.0, 1001.0, 1e6):
        net = sb.from_edges({("a", "x"): size}, bias={"a": -size}, gate={"x": "noisy-or"})
        assert sb.log_likelihood(net, {"a": 1, "x": 0}) == pytest.approx(-2.0 * size)


def test_long_chains_and_many_rows():
    n = 300
    chain = sb.noisy_or({(f"u{k}", f"u{k + 1}"): 0.5 for k in range(n)}, prior={"u0": 0.0})
    assert sb.infer(chain, {f"u{n}": 1}).bound == -math.inf
    rows = np.full((500, chain.n_units), np.nan)
    rows[:, -1] = np.arange(500) % 2
    assert (support.impossible(chain, np.where(np.isnan(rows), -1, rows).astype(np.int8)) == (rows[:, -1] == 1)).all()


@pytest.mark.small
def test_the_command_says_it_in_words(clinic, tmp_path, capsys):
    from sbnet.cli import main

    model, table = tmp_path / "clinic.toml", tmp_path / "rows.csv"
    sb.write(clinic, model)
    table.write_text("cough,cold\n1,0\n1,1\n")
    sentence = "the evidence is impossible: 'cough' cannot be on, for it has no leak and its cause 'cold' is off"
    assert main(["infer", str(model), "cough=1", "cold=0"]) != 0
    assert sentence in capsys.readouterr().err
    assert main(["certify", str(model), "cough=1", "cold=0"]) == 0
    assert sentence in capsys.readouterr().out
    assert main(["certify", str(model), "cough=1", "cold=0", "--json"]) == 0
    told = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    assert told["upper"] is None
    assert told["upper_from"] == sentence
    assert main(["score", str(model), str(table)]) == 0
    assert capsys.readouterr().out.splitlines()[1] == "-inf"
    for verb in (["score", str(model), str(table)], ["infer", str(model), "--table", str(table)]):
        assert main([*verb, "--json"]) == 0
        first, second = (json.loads(line, parse_constant=pytest.fail) for line in capsys.readouterr().out.splitlines())
        assert first["bound"] is None
        assert second["bound"] < 0.0
    assert main(["infer", str(model), "--table", str(table)]) == 0
    captured = capsys.readouterr()
    assert "-inf" in captured.out.splitlines()[1]


@pytest.mark.small
def test_the_server_says_it_in_words(clinic):
    from sbnet.explore.answers import answer, certificate

    asked = {"evidence": {str(clinic.index("cough")): 1, str(clinic.index("cold")): 0}, "units": [0]}
    for verb in (answer, certificate):
        with pytest.raises(EvidenceError, match="the evidence is impossible: 'cough' cannot be on"):
            verb(clinic, asked)
