"""Exact answers against brute force on random networks, eqs. (7), (8) and (12)."""

from __future__ import annotations

import pickle
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import oracle
import sbnet as sb
from sbnet.errors import ParameterError, UnknownUnitError
from sbnet.exact import answers, enumeration
from sbnet.exact.enumeration import Reduced
from strategies import MAX_UNITS, cases, means, networks, tables


def dense(network):
    return network.weight_matrix(), network.bias


# --- against the oracle ---------------------------------------------------------------------------------------------


@given(cases())
def test_log_likelihood_is_the_sum_over_all_hidden_states(case):  # eq. (8)
    network, evidence = case
    J, h = dense(network)
    found = sb.log_likelihood(network, evidence)
    assert_allclose(found, oracle.log_likelihood(J, h, evidence), rtol=0, atol=oracle.rounding(J, h))


@given(cases())
def test_posterior_means_are_exact_for_every_unit(case):  # eq. (7), with observed and barren units
    network, evidence = case
    J, h = dense(network)
    found = sb.exact_posterior(network, evidence)
    assert_allclose(found, oracle.posterior(J, h, evidence), rtol=0, atol=4 * oracle.rounding(J, h))


@given(cases(max_units=min(10, MAX_UNITS)))
def test_pairwise_posteriors_are_exact_for_every_pair(case):
    network, evidence = case
    J, h = dense(network)
    found = sb.exact_pairs(network, evidence)
    assert_allclose(found, oracle.posterior_pairs(J, h, evidence), rtol=0, atol=8 * oracle.rounding(J, h))
    assert np.array_equal(np.diagonal(found), sb.exact_posterior(network, evidence))


@given(cases(max_units=min(12, MAX_UNITS)), st.data())
def test_kl_is_the_sum_over_all_hidden_states(case, data):  # eq. (12)
    network, evidence = case
    mu = data.draw(means(network.n_units))
    J, h = dense(network)
    found = sb.kl(network, evidence, mu)
    assert found >= 0.0
    assert_allclose(found, oracle.kl(J, h, evidence, mu), rtol=0, atol=4 * oracle.rounding(J, h))


@given(cases(max_units=min(12, MAX_UNITS)), st.data())
def test_kl_is_the_gap_of_the_bound(case, data):  # below eq. (11): ln P(V) - KL is eq. (16)
    network, evidence = case
    mu = oracle.clamp(evidence, data.draw(means(network.n_units)))
    J, h = dense(network)
    gap = sb.log_likelihood(network, evidence) - oracle.exact_average_bound(J, h, mu)
    assert_allclose(sb.kl(network, evidence, mu), gap, rtol=0, atol=4 * oracle.rounding(J, h))


# --- theorems -------------------------------------------------------------------------------------------------------


@given(networks())
def test_probabilities_of_all_patterns_of_the_last_units_sum_to_one(network):
    k = min(4, network.n_units)
    patterns = oracle.all_states(np.full(k, np.nan))
    total = np.exp(sb.log_likelihood(network, patterns)).sum()
    assert_allclose(total, 1.0, rtol=0, atol=2**k * oracle.rounding(*dense(network)))


@given(networks())
def test_no_evidence_has_probability_one_and_complete_evidence_has_its_joint_probability(network):
    state = sb.sample(network, 1, rng=0)[0]
    assert sb.log_likelihood(network, {}) == 0.0
    atol = oracle.rounding(*dense(network))
    assert_allclose(sb.log_likelihood(network, state), sb.log_joint(network, state), rtol=0, atol=atol)
    assert np.array_equal(sb.exact_posterior(network, state), state)


@given(cases(scales=("zero", "tame", "strong")))
def test_every_observation_more_makes_the_evidence_less_likely(case):
    network, evidence = case
    more = np.where(np.isnan(evidence), 1.0, evidence)
    more[0] = evidence[0]
    atol = oracle.rounding(*dense(network))
    assert sb.log_likelihood(network, more) <= sb.log_likelihood(network, evidence) + atol


@given(cases())
def test_kl_of_the_exact_posterior_is_zero_if_hidden_units_are_independent(case):
    network, _ = case
    roots = network.with_parameters(weight=np.zeros(network.n_edges))
    mu = sb.exact_posterior(roots, {})
    assert sb.kl(roots, {}, mu) <= 4 * oracle.rounding(*dense(network))


# --- tables ---------------------------------------------------------------------------------------------------------


@given(tables(max_units=min(10, MAX_UNITS)))
def test_a_table_gives_what_its_rows_give_one_by_one(table):
    network, rows = table
    mu = np.full(rows.shape, 0.3)
    shape = (network.n_units, network.n_units)
    functions = [
        (sb.log_likelihood, ()),
        (sb.exact_posterior, (network.n_units,)),
        (sb.exact_pairs, shape),
        (lambda net, rows: sb.kl(net, rows, mu[0] if rows.ndim == 1 else mu), ()),
    ]
    for function, tail in functions:
        together = function(network, rows)
        assert together.shape == (len(rows), *tail)
        for row, answer in zip(rows, together, strict=True):
            assert np.array_equal(function(network, row), answer)


def test_one_pattern_gives_a_float_and_a_table_of_one_row_an_array(sprinkler):
    assert type(sb.log_likelihood(sprinkler, {"wet": 1})) is float
    assert type(sb.kl(sprinkler, {"wet": 1}, np.full(4, 0.5))) is float
    assert sb.log_likelihood(sprinkler, [{"wet": 1}]).shape == (1,)
    assert sb.kl(sprinkler, [{"wet": 1}], np.full((1, 4), 0.5)).shape == (1,)


def test_a_table_larger_than_one_block_of_work_gives_the_same_answers(sprinkler, monkeypatch):
    rows = np.where(np.random.default_rng(0).random((50, 4)) < 0.5, np.nan, sb.sample(sprinkler, 50, rng=0))
    whole = sb.log_likelihood(sprinkler, rows), sb.exact_posterior(sprinkler, rows)
    monkeypatch.setattr("sbnet.parallel.blocks._WORKING", 12)
    assert np.array_equal(whole[0], sb.log_likelihood(sprinkler, rows))
    assert np.array_equal(whole[1], sb.exact_posterior(sprinkler, rows))


# --- reductions and the limit ---------------------------------------------------------------------------------------


def pairs_of_units(n):
    """n separate networks: hidden a with an observed child b, numbered; the answers are those of one, n times over."""
    edges = {(f"a{k}", f"b{k}"): 0.1 * k - 3.0 for k in range(n)}
    return sb.from_edges(edges, bias={f"a{k}": 0.5 - 0.02 * k for k in range(n)})


def test_sixty_hidden_units_in_independent_pairs_are_summed_pair_by_pair():
    network = pairs_of_units(60)
    evidence = {f"b{k}": k % 2 for k in range(60)}
    one_by_one = [network.subnetwork([f"a{k}", f"b{k}"]) for k in range(60)]
    expected = sum(sb.log_likelihood(net, {f"b{k}": k % 2}) for k, net in enumerate(one_by_one))
    assert_allclose(sb.log_likelihood(network, evidence, limit=1), expected, rtol=1e-14)
    found = sb.exact_posterior(network, evidence, limit=1)
    for k, net in enumerate(one_by_one):
        assert_allclose(found[network.index(f"a{k}")], sb.exact_posterior(net, {f"b{k}": k % 2})[0], rtol=1e-14)


def test_hidden_units_without_observed_descendants_do_not_count_for_the_limit():
    network = sb.layered((3, 40), rng=0, scale=1.0)
    assert np.isfinite(sb.log_likelihood(network, {"x0": 1}, limit=3))


def test_observed_parents_separate_their_children():
    network = sb.layered((1, 30, 30), rng=0, scale=1.0).subnetwork(
        [f"h2_{k}" for k in range(30)] + [f"x{k}" for k in range(30)]
    )
    everything_above = dict.fromkeys([f"h2_{k}" for k in range(30)], 1)
    assert np.isfinite(sb.log_likelihood(network, {**everything_above, "x3": 0}, limit=0))


def test_too_many_hidden_units_are_counted_in_the_error_which_shows_the_way_out():
    network = sb.layered((32, 4), rng=0)
    text = (
        "exact enumeration over 32 hidden variables needs 2**32 terms; the limit is 25. "
        "Use infer() for a lower bound instead"
    )
    for call in (
        lambda: sb.log_likelihood(network, [0, 0, 0, 0]),
        lambda: sb.exact_posterior(network, [0, 0, 0, 0]),
    ):
        with pytest.raises(sb.errors.TooManyHiddenError) as caught:
            call()
        assert str(caught.value) == text
    with pytest.raises(sb.errors.TooManyHiddenError, match="a table of 2\\*\\*32 numbers over 32 variables, 'h1_0', "):
        sb.kl(network, [0, 0, 0, 0], np.full(36, 0.5))


def test_only_the_worst_row_of_a_table_counts_for_the_limit():
    network = sb.layered((4, 2), rng=0)
    rows = np.full((2, 6), np.nan)
    rows[1, -1] = 1.0
    with pytest.raises(sb.errors.TooManyHiddenError, match=r"4 hidden variables needs 2\*\*4 terms; the limit is 3\."):
        sb.log_likelihood(network, rows, limit=3)
    assert sb.log_likelihood(network, rows[:1], limit=0) == [0.0]


@pytest.mark.parametrize("limit", [-1, 61, 2.0, True, None])
def test_a_limit_is_a_whole_number_up_to_sixty(sprinkler, limit):
    with pytest.raises(sb.errors.ParameterError, match=f"limit is {limit}; it must be a whole number from 0 to 60"):
        sb.log_likelihood(sprinkler, {}, limit=limit)


# --- large groups ---------------------------------------------------------------------------------------------------


def test_a_sum_in_parts_is_the_sum(monkeypatch):
    network = sb.add_column_mixtures(sb.layered((3, 4, 5), rng=1, scale=3.0), rng=2)
    rows = np.full((4, network.n_units), -1, np.int8)
    rows[1:, network.index("x0")] = 1
    rows[2:, network.index("x3")] = 0
    rows[3, :3] = 1  # with the top layer observed, several groups are left
    groups = [group for row in rows for group in Reduced(network, row).groups]
    whole = [group.with_arrays() for group in groups]
    monkeypatch.setattr("sbnet.exact.enumeration._ARRAYS", 3)
    assert max(group.bits for group in groups) > 6
    for group, (log_p, p) in zip(groups, whole, strict=True):
        assert_allclose(group.with_arrays()[0], log_p, rtol=1e-13)
        assert_allclose(group.with_arrays()[1], p, rtol=1e-12)


def test_a_sum_in_parts_does_not_depend_on_the_number_of_threads():
    network, evidence = sb.layered((17, 3), rng=0, scale=2.0), [1, 0, 1]
    alone = sb.log_likelihood(network, evidence, threads=1)
    assert sb.log_likelihood(network, evidence, threads=3) == alone
    assert sb.log_likelihood(network, [evidence], threads=2).tolist() == [alone]


INTERRUPTED = """
import sbnet as sb
sb.log_likelihood(sb.layered((16, 1), rng=0), [1])  # compile
print("begun", flush=True)
try:
    sb.log_likelihood(sb.layered((40, 200), rng=0), [1] * 200, limit=40)  # years
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="SIGINT cannot be sent to one process there")
def test_ctrl_c_ends_a_sum_over_very_many_states():
    with subprocess.Popen([sys.executable, "-c", INTERRUPTED], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        time.sleep(0.5)  # it is adding up
        process.send_signal(signal.SIGINT)
        try:
            rest, _ = process.communicate(timeout=30)
        finally:
            process.kill()
        assert rest == "interrupted\n"


# --- means ----------------------------------------------------------------------------------------------------------


def test_means_of_observed_units_are_not_used(sprinkler):
    a, b = np.full(4, 0.5), np.full(4, 0.5)
    b[sprinkler.index("wet")] = np.nan
    assert sb.kl(sprinkler, {"wet": 1}, a) == sb.kl(sprinkler, {"wet": 1}, b)


@pytest.mark.parametrize(
    ("mu", "text"),
    [
        ([0.5, 0.5], "means have shape (2,); expected (4,), one for every variable"),
        ([[0.5] * 4], "means have shape (1, 4); expected (4,), one for every variable"),
        ([0.5, 0.5, 0.5, 1.25], "means must lie between 0 and 1; got 1.25"),
        ([0.5, np.nan, 0.5, 0.5], "means must lie between 0 and 1; got nan"),
    ],
)
def test_means_that_cannot_be_are_refused(sprinkler, mu, text):
    with pytest.raises(sb.errors.EvidenceError) as caught:
        sb.kl(sprinkler, {"wet": 1}, mu)
    assert str(caught.value) == text


# --- the oracle itself ----------------------------------------------------------------------------------------------


@given(cases(max_units=min(8, MAX_UNITS)), st.data())
def test_oracle_bounds_are_in_order(case, data):  # eqs. (11), (16), (20) and (22): each step only lowers the bound
    network, evidence = case
    J, h = dense(network)
    mu = oracle.clamp(evidence, data.draw(means(network.n_units)))
    some_xi = data.draw(means(network.n_units))
    steps = [
        oracle.bound(J, h, mu, some_xi),
        oracle.bound(J, h, mu, oracle.tightest_xi(J, h, mu)),
        oracle.exact_average_bound(J, h, mu),
        oracle.log_likelihood(J, h, evidence),
    ]
    assert np.all(np.isfinite(steps))
    assert np.all(np.diff(steps) >= -4 * oracle.rounding(J, h))


@given(networks(max_units=6, scales=("tame",)), st.data())
def test_oracle_gradients_are_those_of_the_bound(network, data):  # eqs. (23), (34) and (35), by central differences
    J, h = dense(network)
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    mu, xi = rng.uniform(0.1, 0.9, len(h)), rng.uniform(0.1, 0.9, len(h))

    def slope(function, step=1e-5):
        return (function(step) - function(-step)) / (2 * step)

    unit = np.eye(len(h))
    for i in range(len(h)):
        by_bias = slope(lambda t, i=i: oracle.bound(J, h + t * unit[i], mu, xi))
        assert_allclose(oracle.gradient_bias(J, h, mu, xi)[i], by_bias, atol=1e-8)
        for j in np.flatnonzero(J[i]):
            by_weight = slope(lambda t, i=i, j=j: oracle.bound(J + t * np.outer(unit[i], unit[j]), h, mu, xi))
            assert_allclose(oracle.gradient_weight(J, h, mu, xi)[i, j], by_weight, atol=1e-8)
            by_mean = slope(lambda t, i=i, j=j: np.logaddexp(*oracle.log_moments(J, h, mu + t * unit[j], xi))[i])
            assert_allclose(oracle.K(J, h, mu, xi)[i, j], -by_mean, atol=1e-8)


def test_a_finding_that_was_not_asked_about_does_not_count_for_the_limit():
    edges = {(f"cause {j}", f"finding {k}"): 0.05 + 0.02 * j + 0.1 * k for j in range(30) for k in range(4)}
    net = sb.noisy_or(edges, leak=0.01, prior={f"cause {j}": 0.02 + 0.01 * j for j in range(30)})
    seen = {"finding 0": 1, "finding 1": 1, "finding 2": 0}
    exact = sb.exact_posterior(net, seen, limit=2)  # two are present; a third would be one too many
    joint = sb.log_likelihood(net, seen | {"finding 3": 1})
    assert exact["finding 3"] == pytest.approx(np.exp(joint - sb.log_likelihood(net, seen)), rel=1e-9)


def test_a_unit_whose_parents_are_known_needs_no_sum():
    causes = {(f"cause {j}", "finding"): 0.3 for j in range(20)} | {("other", "sign"): 0.25}
    net = sb.noisy_or(causes, leak=0.1, prior={f"cause {j}": 0.1 for j in range(20)} | {"other": 0.3})
    exact = sb.exact_posterior(net, {"finding": 1})
    assert exact["other"] == pytest.approx(0.3, abs=1e-15)
    assert exact["sign"] == pytest.approx(1.0 - 0.9 * (1.0 - 0.3 * 0.25), rel=1e-12)
    assert sb.exact_posterior(net, {"finding": 1, "other": 1})["sign"] == pytest.approx(1.0 - 0.9 * 0.75, rel=1e-14)


# --- some units, and predictions in bulk ------------------------------------------------------------------------------


def two_levels(rng, n_causes=8, n_findings=40, leak=0.02) -> sb.Network:
    """Causes and findings; some findings share several causes, some have none in common."""
    pairs = [(j, i) for i in range(n_findings) for j in rng.choice(n_causes, rng.integers(1, 5), replace=False)]
    chances = [float(rng.choice([rng.uniform(0.05, 0.95), 0.0, 1.0], p=[0.8, 0.1, 0.1])) for _ in pairs]
    links = {(f"d{j}", f"f{i}"): p for (j, i), p in zip(pairs, chances, strict=True)}
    return sb.noisy_or(links, leak=leak, prior={f"d{j}": float(rng.uniform(0.05, 0.6)) for j in {j for j, _ in pairs}})


@settings(max_examples=25)
@given(seed=st.integers(0, 2**32 - 1), leak=st.sampled_from([0.0, 0.02]))
def test_predictions_in_bulk_are_the_sums_of_each(seed, leak):
    """P(finding | V) of all unobserved findings from one reduction, against a sum for each. Links of 1 cost digits."""
    rng = np.random.default_rng(seed)
    network = two_levels(rng, leak=leak)
    evidence = {f"f{i}": int(rng.random() < 0.5) for i in rng.choice(40, 6, replace=False)}
    assume(np.isfinite(sb.log_likelihood(network, evidence)))
    every = sb.exact_posterior(network, evidence)
    for name in network.names:
        assert sb.exact_posterior(network, evidence, units=[name])[name] == pytest.approx(every[name], abs=1e-10)


def test_the_network_is_reduced_once_for_all_predictions(monkeypatch):
    network, calls = two_levels(np.random.default_rng(0), n_findings=60), []
    reduce = enumeration.reduce
    monkeypatch.setattr(enumeration, "reduce", lambda *given: calls.append(1) or reduce(*given))
    every = sb.exact_posterior(network, {"f0": 1, "f1": 1, "f2": 0})
    assert np.isfinite(every.means).all()
    assert len(calls) == 2  # once for the sum


def test_units_that_are_not_asked_for_are_not_worked_out(monkeypatch):
    network, asked = two_levels(np.random.default_rng(0)), []
    means = answers.barren_means
    monkeypatch.setattr(answers, "barren_means", lambda *given: asked.extend(given[3].tolist()) or means(*given))
    monkeypatch.setattr(answers, "predictions", lambda *given: pytest.fail("nobody asked for so many"))
    evidence, units = {"f0": 1, "f1": 0}, ["d3", "f7", "d1", "f0"]
    some = sb.exact_posterior(network, evidence, units=units)
    assert asked == [network.index("f7")]
    assert some.names == tuple(units)
    assert some.shape == (4,)
    assert some["f0"] == 1.0
    monkeypatch.undo()
    every = sb.exact_posterior(network, evidence)
    assert some.means == pytest.approx([every[name] for name in units], abs=1e-12)
    assert some.log_likelihood == every.log_likelihood
    assert list(some.to_frame().index) == units
    assert "d3" in repr(some)
    assert "d2" not in repr(some)
    assert some.copy().names == pickle.loads(pickle.dumps(some)).names == tuple(units)
    with pytest.raises(UnknownUnitError) as caught:
        some["d2"]
    assert str(caught.value) == "there is no mean of variable 'd2'; ask for it with units=['d2', ...]"
    with pytest.raises(ParameterError, match="the means of all variables; leave out units="):
        sb.infer(network, evidence).compare(some)
    table = sb.exact_posterior(network, [evidence, {}], units=[network.index("d3"), "f7"])
    assert table.shape == (2, 2)
    assert table["d3"][0] == table[0]["d3"] == pytest.approx(some["d3"])
    assert table[1:].names == ("d3", "f7")
    assert sb.exact_posterior(network, evidence, units="d3").shape == (1,)
