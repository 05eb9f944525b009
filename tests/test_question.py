"""Interventions and soft evidence: whatever answers evidence answers them too, as the truncated product says."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp

import oracle
import sbnet as sb
from sbnet.questions.question import ask
from strategies import INTERPRETED, questions

pytestmark = pytest.mark.filterwarnings("ignore::sbnet.errors.ConvergenceWarning")


def truth(network, arrays):
    """ln P, the means, and how far apart two right answers may lie."""
    evidence, do, pairs = arrays
    J, h = network.weight_matrix(), network.bias
    S, weight = oracle.log_weights(J, h, evidence, do, pairs)
    logs = np.log(pairs[pairs > 0.0])
    rounding = 10 * oracle.rounding(J, h) + 1e-13 * np.abs(logs).sum()
    total = logsumexp(weight)
    return total, np.exp(weight - total) @ S, rounding


# --- exact answers ----------------------------------------------------------------------------------------------------


@pytest.mark.small
@given(questions())
def test_exact_answers_are_those_of_the_truncated_product(case):
    network, evidence, do, arrays = case
    log_p, means, rounding = truth(network, arrays)
    assert abs(sb.log_likelihood(network, evidence, do=do) - log_p) <= rounding
    found = sb.exact_posterior(network, evidence, do=do)
    assert np.allclose(found, means, rtol=0, atol=max(1e-9, 10 * rounding))
    held = ~np.isnan(arrays[1])
    assert np.array_equal(found[held], arrays[1][held])


@given(questions(max_units=5))
def test_exact_pairs_are_too(case):
    network, evidence, do, arrays = case
    S, weight = oracle.log_weights(network.weight_matrix(), network.bias, *arrays)
    share = np.exp(weight - logsumexp(weight))
    found = sb.exact_pairs(network, evidence, do=do)
    assert np.allclose(found, (S * share[:, None]).T @ S, rtol=0, atol=1e-8)


# --- bounds -----------------------------------------------------------------------------------------------------------

SOLVERS = [
    sb.MeanField(),
    sb.MeanField(log_term="xi", enumerate_up_to=0),
    sb.MeanField(log_term="quadratic", enumerate_up_to=0),
    sb.MeanField(log_term="jensen", enumerate_up_to=0, restarts=2),
    sb.Conditioned("roots"),
]


@pytest.mark.small
@settings(max_examples=5 if INTERPRETED else 60)
@given(questions(), st.sampled_from(SOLVERS))
def test_lower_bounds_hold_and_means_are_shown_for_the_network_that_was_asked(case, solver):
    network, evidence, do, arrays = case
    log_p, _, rounding = truth(network, arrays)
    post = sb.infer(network, evidence, do=do, solver=solver)
    assert post.bound <= log_p + rounding
    assert post.bound <= sb.log_likelihood(network, evidence, do=do) + rounding
    assert post.means.shape == post.xi.shape == post.evidence.shape == (network.n_units,)
    assert np.all((post.means >= 0.0) & (post.means <= 1.0))
    held = ~np.isnan(arrays[1])
    assert np.array_equal(post.means[held], arrays[1][held])
    if isinstance(solver, sb.MeanField):
        assert np.all(np.diff(post.trace) >= -rounding)
        assert abs(post.trace[-1] - post.bound) <= rounding
        assert abs(post.breakdown().bound - post.bound) <= rounding + 1e-5


@settings(max_examples=40)
@given(questions(max_units=7))
def test_upper_bounds_and_certificates_hold(case):
    network, evidence, do, arrays = case
    log_p, means, rounding = truth(network, arrays)
    assert sb.upper_bound(network, evidence, do=do, exact_up_to=0).bound >= log_p - rounding
    row = sb.certify(network, evidence, do=do)
    assert row.lower - rounding <= log_p <= row.upper + rounding
    assert row.mean_field <= log_p + rounding
    assert abs(row.estimate - log_p) <= rounding
    intervals = sb.posterior_intervals(network, evidence, do=do)
    assert list(intervals) == [
        network.names[i] for i in np.flatnonzero(sb.infer(network, evidence, do=do).evidence < 0)
    ]
    for name, (low, high) in intervals.items():
        assert low - 1e-9 - rounding <= means[network.index(name)] <= high + 1e-9 + rounding


def test_a_proof_covers_what_was_made_of_reports_and_interventions():
    pytest.importorskip("flint")
    from fractions import Fraction

    network = sb.from_edges({("a", "b"): 0.1}, bias={"a": 0.0, "b": 0.2})
    exact = sb.certify(network, {"a": (0.1, 0.3)}, proven=True)  # (0.1 + 0.3) / 2, whatever b does
    truth = (Fraction(0.1) + Fraction(0.3)) / 2
    assert exact.lower < np.log(float(truth)) < exact.upper
    assert exact.gap < 1e-14
    cut = sb.certify(network, {"b": 1}, do={"a": 1}, proven=True)  # 0.1 + 0.2 is not 0.3 in doubles
    assert cut.lower < -np.log1p(np.exp(-0.3)) < cut.upper


@pytest.mark.slow
def test_many_hostile_questions():
    seen = []

    @settings(max_examples=3000, database=None)
    @given(questions(max_units=9, scales=("hostile", "strong")), st.sampled_from(SOLVERS[:2]))
    def run(case, solver):
        network, evidence, do, arrays = case
        log_p, _, rounding = truth(network, arrays)
        exact = abs(sb.log_likelihood(network, evidence, do=do) - log_p) / rounding
        bound = (sb.infer(network, evidence, do=do, solver=solver).bound - log_p) / rounding
        seen.append((exact, bound))
        assert max(exact, bound) <= 1.0

    run()
    worst = np.max(seen, axis=0)
    print(
        f"\ninterventions and reports: {len(seen)} questions; of the rounding allowed, ln P took {worst[0]:.2g} and "
        f"bounds exceeded it by {max(worst[1], 0.0):.2g}"
    )


def test_estimates_are_near_the_truth():
    network = sb.layered((2, 4, 6), rng=0, scale=2.0)
    evidence, do = {"x0": 1, "x1": (0.2, 0.6), "h2_1": (3.0, 1.0)}, {"h2_0": 1}
    truth = sb.log_likelihood(network, evidence, do=do)
    estimate = sb.estimate(network, evidence, do=do, samples=4000)
    assert abs(estimate.log_probability - truth) < 5 * estimate.error
    assert estimate.bound <= estimate.lower <= truth + 1e-9


# --- what it means ----------------------------------------------------------------------------------------------------


@pytest.mark.small
@given(questions())
def test_holding_is_what_sampling_does(case):
    # P(V | do) of all units that are not held, by eq. (6) of a state that was drawn
    network, _, do, (_, held, _) = case
    state = sb.sample(network, 1, rng=0, do=do)[0].astype(float)
    J, h = network.weight_matrix(), network.bias
    z = oracle.inputs(J, h, state)
    expected = np.sum(np.where(np.isnan(held), state * z - np.logaddexp(0, z), 0.0))
    assert abs(sb.log_likelihood(network, state, do=do) - expected) <= oracle.rounding(J, h)


def test_an_intervention_says_nothing_about_causes(sprinkler):
    assert sb.infer(sprinkler, {}, do={"wet": 1})["rain"] == pytest.approx(sb.infer(sprinkler, {})["rain"], abs=1e-12)
    assert sb.infer(sprinkler, {"wet": 1})["rain"] > sb.infer(sprinkler, {})["rain"] + 0.05
    assert sb.log_likelihood(sprinkler, {}, do={"wet": 1}) == 0.0
    assert -1e-12 < sb.infer(sprinkler, {}, do={"wet": 1}).bound <= 0.0


def test_a_unit_that_is_held_adds_nothing_at_all():
    network = sb.from_edges({("a", "b"): 1.0, ("b", "c"): -3.0}, bias={"a": 30.0, "b": 1e8, "c": 0.5})
    alone = sb.from_edges({}, bias={"c": 0.5 - 3.0})
    assert sb.log_likelihood(network, {"c": 1}, do={"b": 1}) == sb.log_likelihood(alone, {"c": 1})
    bound = sb.infer(network, {"c": 1}, do={"b": 1}).bound  # below by a margin for rounding in the bias of c
    assert 0.0 <= sb.infer(alone, {"c": 1}).bound - bound < 1e-13


def test_evidence_that_repeats_an_intervention_is_not_counted(sprinkler):
    once = sb.log_likelihood(sprinkler, {"slippery": 1}, do={"wet": 0})
    assert sb.log_likelihood(sprinkler, {"slippery": 1, "wet": 0}, do={"wet": 0}) == once
    twice = sb.log_likelihood(sprinkler, {"slippery": 1, "wet": (0.25, 0.5)}, do={"wet": 0})
    assert twice == pytest.approx(once + np.log(0.25), abs=1e-15)


def test_soft_evidence_by_hand(sprinkler):
    one, zero = (sb.log_likelihood(sprinkler, {"wet": s}) for s in (1, 0))
    soft = sb.log_likelihood(sprinkler, {"wet": (0.1, 0.9)})
    assert soft == pytest.approx(np.log(0.1 * np.exp(zero) + 0.9 * np.exp(one)), abs=1e-14)
    assert sb.log_likelihood(sprinkler, {"wet": (10, 90)}) == pytest.approx(soft + np.log(100), abs=1e-14)
    assert sb.log_likelihood(sprinkler, {"wet": (0, 0.5)}) == pytest.approx(one + np.log(0.5), abs=1e-15)
    assert sb.log_likelihood(sprinkler, {"wet": (0.5, 0.5)}) == pytest.approx(np.log(0.5), abs=1e-15)
    assert sb.infer(sprinkler, {"wet": [0, 1]}).means[2] == 1.0
    assert sb.infer(sprinkler, {2: np.array([1, 1])})["rain"] == pytest.approx(sb.infer(sprinkler, {})["rain"])


def test_weights_too_large_to_add_up_are_kept_apart():
    network = sb.from_edges({("a", "b"): 1e8, ("c", "b"): -1e8}, bias={"b": 1e8})
    evidence, do = {"b": 1, "c": (0.0, 2.0)}, {"a": 1}
    expected = np.log(0.5) + np.log(2.0)  # c is 1 with chance one half, and then b is certain
    assert sb.log_likelihood(network, evidence, do=do) == pytest.approx(expected, abs=1e-12)
    assert sb.infer(network, evidence, do=do).bound == pytest.approx(expected, abs=1e-5)
    assert sb.infer(network, evidence, do=do)["a"] == 1.0


# --- tables -----------------------------------------------------------------------------------------------------------


def rows_of(network, n, seed=0):
    """Rows with reports of their own, some the same, and interventions of their own."""
    rng = np.random.default_rng(seed)
    rows, held = [], []
    for _ in range(n):
        kind = rng.integers(0, 4, network.n_units)
        own = {}
        for i, name in enumerate(network.names):
            if kind[i] == 1:
                own[name] = int(rng.integers(2))
            elif kind[i] == 2:
                own[name] = (float(rng.integers(1, 4)), float(rng.random()))
        rows.append(own)
        held.append({network.names[i]: 1 for i in np.flatnonzero(kind == 3)[:1]})
    return rows, held


@pytest.mark.parametrize("most", [1, 64])
def test_each_row_of_a_table_has_the_answer_it_has_alone(most, monkeypatch):
    monkeypatch.setattr("sbnet.questions.question._REPORTS", most)
    network = sb.layered((2, 3, 3), rng=1, scale=3.0)
    rows, held = rows_of(network, 12)
    many = sb.infer_many(network, rows, do=held)
    exact, means = sb.log_likelihood(network, rows, do=held), sb.exact_posterior(network, rows, do=held)
    upper, certain = sb.upper_bound(network, rows, do=held), sb.certify(network, rows, do=held)
    estimate, joint = sb.estimate(network, rows, do=held, samples=10), sb.exact_pairs(network, rows, do=held)
    for r, (row, do) in enumerate(zip(rows, held, strict=True)):
        one = sb.infer(network, row, do=do)
        assert many.bound[r] == one.bound
        assert np.array_equal(many.means[r], one.means)
        assert np.array_equal(many.xi[r], one.xi, equal_nan=True)
        assert many[r].breakdown().bound == pytest.approx(one.breakdown().bound, abs=1e-12)
        assert repr(many[r]) == repr(many[[r]][0])
        assert exact[r] == sb.log_likelihood(network, row, do=do)
        assert np.array_equal(means[r], sb.exact_posterior(network, row, do=do))
        assert np.array_equal(joint[r], sb.exact_pairs(network, row, do=do))
        assert upper.bound[r] == sb.upper_bound(network, row, do=do).bound
        assert certain[r] == sb.certify(network, row, do=do)
        assert estimate[r].bound == one.bound


def test_one_intervention_may_hold_for_a_whole_table(sprinkler):
    table = np.array([[0, 1, np.nan, 0], [1, np.nan, np.nan, 1]])
    found = sb.log_likelihood(sprinkler, table, do={"wet": 1})
    assert found.tolist() == [sb.log_likelihood(sprinkler, row, do={"wet": 1}) for row in table]
    started = sb.infer_many(sprinkler, table, do={"wet": 1}, start=np.full(4, 0.3))
    assert np.array_equal(started.means[:, 2], [1.0, 1.0])
    assert len(sb.infer_many(sprinkler, np.empty((0, 4)), do={"wet": 1})) == 0


def test_a_plain_table_is_not_copied(sprinkler):
    table = np.array([[0, 1, -1, 0]], np.int8)
    question = ask(sprinkler, table, None)
    assert question.conditions is None
    assert question.parts[0].states is question.states
    assert question.parts[0].network is sprinkler
    values = np.zeros((1, 4))
    assert question.parts[0].shown(values) is values


def test_solvers_find_units_by_name_in_spite_of_interventions():
    network = sb.layered((2, 3, 3), rng=1, scale=3.0)
    solver = sb.Conditioned(["h1_0", "h2_1"])
    evidence, do = {"x0": 1, "x1": (0.1, 0.8)}, {"h1_0": 1}
    assert sb.infer(network, evidence, do=do, solver=solver)["h1_0"] == 1.0
    assert sb.upper_bound(network, evidence, do=do, condition=["h1_0", "h2_1"], exact_up_to=0).conditioned == ("h2_1",)
    assert sb.posterior_intervals(network, evidence, do=do, units=["h1_0"]) == {"h1_0": (1.0, 1.0)}


def test_samplers_answer_too():
    network = sb.layered((2, 3, 3), rng=1, scale=1.0)
    evidence, do = {"x0": 1, "x1": (0.1, 0.8)}, {"h1_0": 1, "h2_0": 0}
    post = sb.infer(network, evidence, do=do, solver=sb.Gibbs(samples=4000))
    assert np.allclose(post.means, sb.exact_posterior(network, evidence, do=do), rtol=0, atol=0.1)
    assert post.error[0] == 0.0
    assert post.error.shape == post.r_hat.shape == (8,)


# --- what is said -----------------------------------------------------------------------------------------------------


def test_a_posterior_says_what_was_asked(sprinkler):
    post = sb.infer(sprinkler, {"slippery": 1, "rain": (1, 3)}, do={"wet": 1})
    assert repr(post).startswith("Posterior given 1 of 4 variables, do(wet = 1), 1 report: ln P ≥ ")
    assert post.to_frame()["observed"].isna().tolist() == [True, True, False, False]
    assert repr(sb.infer(sprinkler, {"wet": 1})).startswith("Posterior given 1 of 4 variables: ")


def test_a_certificate_of_likely_reports_is_printed_as_it_is():
    network = sb.layered((20, 3), rng=0, scale=1.0)
    row = sb.certify(network, {"x0": (50.0, 80.0), "x1": 1, "x2": 0})
    assert row.lower > 0.0
    assert str(row).startswith(f"ln P(evidence) lies between {int(row.lower * 100) / 100}"[:34])


@pytest.mark.small
@pytest.mark.parametrize(
    ("evidence", "do", "text"),
    [
        (
            {"wet": 1},
            {"wet": 0},
            "variable 'wet' is observed as 1 and held at 0 by do, in row 0; "
            "such evidence is impossible: leave it out of one of the two",
        ),
        (
            {"wet": (0.0, 1.0)},
            {"wet": 0},
            "variable 'wet' is observed as 1 and held at 0 by do, in row 0; "
            "such evidence is impossible: leave it out of one of the two",
        ),
        ({"wet": (0.0, 0.0)}, None, "variable 'wet' holds (0.0, 0.0); soft evidence is a pair of likelihoods, "),
        ({"wet": (-1.0, 1.0)}, None, "variable 'wet' holds (-1.0, 1.0); soft evidence is a pair of likelihoods, "),
        ({"wet": (np.nan, 1.0)}, None, "variable 'wet' holds (nan, 1.0); soft evidence is a pair of likelihoods, "),
        ({"wet": (np.inf, 1.0)}, None, "variable 'wet' holds (inf, 1.0); soft evidence is a pair of likelihoods, "),
        ({"wet": (0.2, 0.3, 0.5)}, None, "variable 'wet' holds (0.2, 0.3, 0.5); soft evidence is a pair of"),
        ({"wet": ("a", "b")}, None, "variable 'wet' holds ('a', 'b'); soft evidence is a pair of likelihoods, "),
        ([{}, {2: [2, -2]}], None, "variable 'wet' holds [2, -2] in row 1; soft evidence is a pair of likelihoods, "),
        ({"wat": (0.2, 0.3)}, None, "evidence names variable 'wat', which is not in the network; did you mean 'wet'?"),
        ({"wet": 1}, [{"rain": 1}, {"rain": 0}], "do has 2 rows; give one pattern, or one for each of the 1 rows"),
        ({"wet": 1}, {"rain": (0.5, 0.5)}, "variable 'rain' holds (0.5, 0.5); variables are binary: 0, 1 or NaN"),
        ({"wet": (1, 2), 2: (1, 2)}, None, "evidence names variable 'wet' twice, as 'wet' and 2"),
    ],
)
def test_what_cannot_be_asked_is_refused(sprinkler, evidence, do, text):
    with pytest.raises(sb.errors.SBNetError) as caught:
        sb.log_likelihood(sprinkler, evidence, do=do)
    assert str(caught.value).startswith(text)
    assert len(str(caught.value)) <= 300
