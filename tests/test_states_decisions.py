"""What findings add, what to ask next, and where a bound comes from, for variables with states and tables."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import oracle
import sbnet as sb
from sbnet.bounds import lower_bound
from sbnet.cli import main
from sbnet.decisions import information
from sbnet.errors import EvidenceError, TooManyHiddenError
from sbnet.exact.sparse import Sum
from sbnet.inference import results
from sbnet.inference.solvers import enumeration
from strategies import live_units, state_networks, states_of
from test_states_bounds import magnitude, mixed  # noqa: F401 (a fixture)

pytestmark = pytest.mark.small


def log_odds(p):
    return np.log(p) - np.log1p(-p)


def named(network, row):
    return {name: network.states[name][k] for name, k in zip(network.names, row, strict=True) if k >= 0}


# --- contributions and questions --------------------------------------------------------------------------------------


def test_contributions_are_changes_of_log_odds_by_state(mixed):  # noqa: F811
    evidence = {"ill": 1, "mood": "poor"}
    found = sb.contributions(mixed, evidence, about=["fever", "flu"])
    assert found.exact
    assert set(found.about) == {"flu", *(f"fever = {state}" for state in mixed.states["fever"])}
    with_all = sb.exact_posterior(mixed, evidence)
    for finding in evidence:
        less = sb.exact_posterior(mixed, {name: state for name, state in evidence.items() if name != finding})
        assert found["flu"][finding] == pytest.approx(log_odds(with_all["flu"]) - log_odds(less["flu"]))
        for state in mixed.states["fever"]:
            change = log_odds(with_all["fever"][state]) - log_odds(less["fever"][state])
            assert found["fever"][state][finding] == pytest.approx(change)
    assert found.to_frame().loc["fever = high", "mood"] == pytest.approx(found["fever"]["high"]["mood"])
    assert "fever = high" in str(found)
    soft = sb.contributions(mixed, {"mood": {"good": 0.1, "fair": 0.5, "poor": 1.0}}, about="flu")
    assert soft["flu"]["mood"] > 0.0


def test_the_information_of_a_question_is_mutual_information(mixed):  # noqa: F811
    evidence, about = {"ill": 1}, ["fever", "cold"]
    found = sb.next_question(mixed, evidence, about=about, among=["mood", "flu"])
    assert found.exact
    for question in found:
        pairs, means = sb.exact_pairs(mixed, evidence), sb.exact_posterior(mixed, evidence).means
        total = 0.0
        for name in about:
            a, b = mixed.columns_of(question.name), mixed.columns_of(name)
            joint = np.zeros((a.stop - a.start + 1, b.stop - b.start + 1))
            joint[1:, 1:] = pairs[a, b]
            joint[1:, 0], joint[0, 1:] = means[a] - pairs[a, b].sum(axis=1), means[b] - pairs[a, b].sum(axis=0)
            joint[0, 0] = 1.0 - joint.sum()
            apart = np.outer(joint.sum(axis=1), joint.sum(axis=0))
            total += float((joint * np.log(joint / apart)).sum())
        assert question.information == pytest.approx(total, abs=1e-9)
        assert question.probability == pytest.approx(means[mixed.columns_of(question.name)].sum())
    assert "not good" in str(found)
    assert found.first == tuple("good" if name == "mood" else "" for name in found.names)
    assert sb.next_question(mixed, evidence, about=about, tries=1).considered == 2  # the best by samples
    by_solver = sb.next_question(mixed, evidence, about=about, among=["mood"], solver=sb.MeanField())
    assert not by_solver.exact


@given(state_networks(max_units=4, max_states=3), st.data())
@settings(max_examples=20, deadline=None)
def test_information_is_never_negative_and_impossible_answers_weigh_nothing(network, data):
    row = data.draw(states_of(network))
    assume(sb.log_likelihood(network, row) > -500.0)
    found = sb.next_question(network, row, about=list(network.names))
    assert (found.information >= 0.0).all()
    assert np.isfinite(found.entropy)
    assert ((found.probability >= 0.0) & (found.probability <= 1.0 + 1e-12)).all()


def test_questions_share_one_order_of_elimination_and_soft_evidence_counts(mixed, monkeypatch):  # noqa: F811
    evidence = {"ill": 1, "mood": [0.2, 0.5, 0.9]}
    asked = {"about": ["fever", "cold"], "among": ["mood", "flu", "cold"]}
    made, sums = [], information.Sum
    monkeypatch.setattr(information, "Sum", lambda *given, **more: made.append(1) or sums(*given, **more))
    found = sb.next_question(mixed, evidence, **asked)
    assert len(made) == 1

    def refused(*given):
        raise TooManyHiddenError("each by itself")

    monkeypatch.setattr(information, "_by_one_order", refused)
    apart = sb.next_question(mixed, evidence, **asked)
    assert found.exact
    assert (found.names, found.considered) == (apart.names, apart.considered)
    assert found.information == pytest.approx(apart.information, abs=1e-9)
    assert found.probability == pytest.approx(apart.probability)
    assert found.entropy == pytest.approx(apart.entropy)


@pytest.mark.parametrize("work", [np.inf, 10.0])
def test_what_to_ask_of_impossible_evidence_is_refused(monkeypatch, work):
    """Exactly or by samples, where only a sum shows it: two sums modulo two of the same coins differ."""
    monkeypatch.setattr(information, "_WORK", work)
    odd = [[[1, 0], [0, 1]], [[0, 1], [1, 0]]]
    edges = [(coin, total, None) for total in "st" for coin in "ab"]
    net = sb.from_edges(edges, tables={"s": odd, "t": odd, "a": [0.5, 0.5], "b": [0.5, 0.5]})
    with pytest.raises(EvidenceError, match="the evidence is impossible"):
        sb.next_question(net, {"s": 1, "t": 0}, about="a", among="b")


@pytest.mark.parametrize("small", [("_WORK", 10.0), ("WIDE", 1)])
def test_where_exact_answers_to_all_questions_are_too_much_samples_estimate_them(mixed, monkeypatch, small):  # noqa: F811
    evidence, asked = {"ill": 1}, {"about": ["fever", "cold"], "among": ["mood", "flu"]}
    exact = sb.next_question(mixed, evidence, **asked)
    monkeypatch.setattr(information, *small)
    found = sb.next_question(mixed, evidence, **asked)
    assert not found.exact
    assert "estimate" in str(found)
    assert found.names == exact.names
    assert found.information == pytest.approx(exact.information, abs=0.01)
    assert found.probability == pytest.approx(exact.probability, abs=0.02)
    assert found.entropy == pytest.approx(exact.entropy, abs=0.02)
    assert (sb.next_question(mixed, evidence, **asked).information == found.information).all()  # the same samples


def test_means_are_exact_part_by_part_where_one_sum_for_all_is_too_large():
    """An effect of each pair of six causes: together they couple all causes, and each alone two of them."""
    rng, causes = np.random.default_rng(5), [f"c{k}" for k in range(6)]
    edges = {(u, f"{a}{b}"): rng.normal(0, 2, (1, 3)) for a, b in itertools.combinations(causes, 2) for u in (a, b)}
    states = {cause: ["none", "some", "more", "most"] for cause in causes}
    net = sb.from_edges(edges, bias={cause: rng.normal(0, 1, 3) for cause in causes}, states=states)
    with pytest.raises(TooManyHiddenError):
        sb.exact_posterior(net, dict.fromkeys(["c0c1", "c1c2", "c2c3", "c3c4", "c4c5", "c0c5", "c0c3"], 1), limit=5)
    found = sb.exact_posterior(net, {"c0c1": 1}, limit=8)
    assert found == pytest.approx(sb.exact_posterior(net, {"c0c1": 1}), abs=1e-12)
    assert found.log_likelihood == pytest.approx(sb.log_likelihood(net, {"c0c1": 1}))


@given(state_networks(max_units=4, max_states=4), st.data())
@settings(max_examples=20, deadline=None)
def test_samples_of_the_posterior_have_its_means(network, data):
    row = data.draw(states_of(network)).astype(np.int8)
    exact = sb.exact_posterior(network, row)
    assume(exact.log_likelihood > -500.0)
    sums = Sum(network, row[None, :], range(network.n_units), 22, maximum=True)
    drawn = sums.draw(row, 4000, np.random.default_rng(0))
    variable, state = network.columns
    shares = (drawn[:, variable] == state).mean(axis=0)
    assert shares == pytest.approx(exact.means, abs=0.05)
    assert np.isfinite(sb.log_joint(network, drawn[:50])).all()


# --- the command ------------------------------------------------------------------------------------------------------


def test_the_command_shows_intervals_and_contributions_of_states(mixed, tmp_path, capsys):  # noqa: F811
    place = str(tmp_path / "ward.toml")
    sb.write(mixed, place)
    exact = sb.exact_posterior(mixed, {"ill": 1, "mood": "poor"})
    asked = ["infer", place, "ill=yes", "mood=poor", "--about", "fever", "flu", "--certain"]
    assert main(asked) == 0
    text = capsys.readouterr().out
    assert "guaranteed" in text
    p = exact["fever"]["high"]
    assert f"high {np.floor(p * 1e4) / 1e4:.4f} to {np.ceil(p * 1e4) / 1e4:.4f}" in text
    assert "high: ill +" in text
    assert main([*asked, "--json"]) == 0
    fever = next(unit for unit in json.loads(capsys.readouterr().out)["units"] if unit["name"] == "fever")
    for state, ends in fever["intervals"].items():
        assert ends["lower"] <= exact["fever"][state] <= ends["upper"]
    assert fever["contributions"]["high"]["ill"] > 0.0
    assert main(["next", place, "ill=yes"]) == 0
    assert "not good" in capsys.readouterr().out


# --- the bound, term by term ------------------------------------------------------------------------------------------


@given(state_networks(max_units=4, max_states=4), st.data(), st.sampled_from(["exact", "xi", "quadratic", "jensen"]))
@settings(max_examples=40, deadline=None)
def test_a_breakdown_adds_up_to_the_bound(network, data, log_term):
    row = data.draw(states_of(network))
    found = sb.infer(network, row, solver=sb.MeanField(log_term=log_term, tol=1e-9))
    assume(found.bound > -500.0)
    parts = found.breakdown()
    assert parts.names == network.names
    assert parts.bound == pytest.approx(found.bound, abs=1e-5 + 1e-11 * magnitude(network))


@given(state_networks(max_units=4, max_states=4, scales=("tame",)), st.data())
@settings(max_examples=40, deadline=None)
def test_the_lower_bound_at_any_means_is_that_of_the_oracle(network, data):
    row = data.draw(states_of(network))
    rng = np.random.default_rng(0)
    Q = [rng.dirichlet(np.ones(n)) if s < 0 else np.eye(n)[s] for n, s in zip(network.n_states, row, strict=True)]
    found = lower_bound(network, row, np.concatenate([q[1:] for q in Q]), log_term="exact", enumerate_up_to=12)
    tables = {network.index(name): table for name, table in network.tables.items()}
    live = live_units(network, np.where(row < 0, np.nan, row))
    truth = sum(oracle.mean_log_of_states(network.model, network.bias, Q, v, tables) for v in live)
    truth -= sum(float((Q[v] * np.log(Q[v])).sum()) for v in live if row[v] < 0)
    assert found == pytest.approx(truth, abs=1e-6)
    assert found <= sb.log_likelihood(network, row) + 1e-9


def test_a_breakdown_with_a_report_and_an_intervention(mixed):  # noqa: F811
    found = sb.infer(mixed, {"ill": 1, "mood": [0.2, 0.0, 0.9]}, do={"flu": 1})
    assert found.breakdown().bound == pytest.approx(found.bound, abs=1e-6)


def test_tables_of_half_a_million_numbers_are_summed_before_means_are_estimated(monkeypatch):
    """Two effects of five causes with 14 states: 14**5 numbers are a tenth of a second."""
    rng, causes = np.random.default_rng(3), [f"c{k}" for k in range(5)]
    edges = {(cause, effect): rng.normal(0, 2, (1, 13)) for cause in causes for effect in ("first", "second")}
    net = sb.from_edges(edges, states={cause: [f"s{k}" for k in range(14)] for cause in causes})
    evidence = {"first": 1, "second": 0}
    found = sb.next_question(net, {"first": 1}, about=causes, among="second")
    assert found.exact
    assert sb.contributions(net, evidence, about=causes).exact
    post, exact = enumeration.best(lambda solver: sb.infer(net, evidence, solver=solver))
    assert exact
    assert post.bound == pytest.approx(sb.log_likelihood(net, evidence), rel=1e-12)
    monkeypatch.setattr(enumeration, "_WORK", 2.0**19)  # half of it
    assert not enumeration.best(lambda solver: sb.infer(net, evidence, solver=solver))[1]


def test_what_is_asked_for_is_summed_where_all_variables_would_be_too_much(monkeypatch, tmp_path, capsys):
    """A chain of five states with an effect of every variable: one variable is a smaller sum than all."""
    rng, names = np.random.default_rng(4), [f"c{k}" for k in range(6)]
    edges = {(u, v): rng.normal(0, 2, (4, 4)) for u, v in itertools.pairwise(names)}
    edges |= {(name, "all"): rng.normal(0, 1, (1, 4)) for name in names}
    net = sb.from_edges(edges, states={name: [f"s{k}" for k in range(5)] for name in names})
    monkeypatch.setattr(enumeration, "WIDE", 8)
    post, exact = enumeration.best(lambda solver: sb.infer(net, {"c1": "s2"}, solver=solver), ["c2"])
    assert exact
    assert post.bound == pytest.approx(sb.log_likelihood(net, {"c1": "s2"}))
    assert post["c2"] == pytest.approx(sb.exact_posterior(net, {"c1": "s2"})["c2"])
    assert not enumeration.best(lambda solver: sb.infer(net, {"c1": "s2"}, solver=solver), ["all"])[1]
    monkeypatch.setattr(results, "best_prior", lambda network: np.full(len(network.bias), 0.2))  # from samples
    sb.save(net, tmp_path / "chain.sbn")
    assert main(["infer", str(tmp_path / "chain.sbn"), "c1=s2", "--about", "c2", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["exact"]
    (one,) = told["units"]
    assert one["mean"] == pytest.approx(sb.exact_posterior(net, {"c1": "s2"})["c2"])
    assert one["prior"] == pytest.approx(sb.exact_posterior(net, {})["c2"])


# --- pictures and the page --------------------------------------------------------------------------------------------


def test_pictures_show_states(mixed):  # noqa: F811
    pytest.importorskip("matplotlib").use("agg")
    import sbnet.plots as plots

    evidence = {"ill": 1, "mood": "poor"}
    for answer in (sb.infer(mixed, evidence), sb.exact_posterior(mixed, evidence)):
        ax = plots.means(answer, sb.posterior_intervals(mixed, evidence))
        assert {text.get_text() for text in ax.get_yticklabels()} == {
            "flu", "cold", "fever = none", "fever = mild", "fever = high"
        }  # fmt: skip
        drawn = plots.network(mixed, evidence=evidence, means=answer)
        assert any("= poor" in text.get_text() for text in drawn.texts)
    assert plots.weights(mixed).images[0].get_array().max() == pytest.approx(4 * (0.9 - 0.2))  # into the table
    assert plots.breakdown(sb.infer(mixed, evidence)) is not None
    assert plots.trace(sb.infer(mixed, evidence)) is not None


def test_the_page_has_estimates_by_state_where_elimination_is_too_large(mixed, monkeypatch):  # noqa: F811
    from sbnet.explore import answers as page

    def too_large(*_, **__):
        raise TooManyHiddenError("too large")

    asked = {"evidence": {str(mixed.index("ill")): 1}, "units": [mixed.index("fever"), mixed.index("flu")]}
    exact = page.reasons(mixed, asked)
    monkeypatch.setattr(page, "exact_posterior", too_large)
    found = page.reasons(mixed, asked)
    for i, by_finding in exact.items():
        for f, nats in by_finding.items():
            assert len(found[i][f]) == len(nats)
            assert np.sign(found[i][f]).tolist() == np.sign(nats).tolist()
    for question in page.questions(mixed, asked):
        assert sum(question["chances"]) == pytest.approx(1.0)
        assert len(question["chances"]) == mixed.n_states[question["unit"]]
    assert sum(page.answer(mixed, asked)["beliefs"][str(mixed.index("fever"))]) == pytest.approx(1.0)
