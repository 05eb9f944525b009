"""Variables with tables among others, in samplers, estimates and mean field theory; and likelihoods of zero."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp

import oracle
import sbnet as sb
from sbnet.bounds.upper import buckets
from sbnet.errors import ConvergenceWarning, EvidenceError, TooRareError
from sbnet.inference import Status
from sbnet.inference.solvers import families, tabular
from sbnet.inference.solvers.particles import average
from sbnet.inference.solvers.row_completions import Completions
from sbnet.kernels.codes import NOISY_OR
from strategies import seeds, state_networks, states_of
from test_states_bounds import magnitude, possible_states, random_case

pytestmark = pytest.mark.small


@pytest.fixture
def clinic():
    """Tables, two of them with zeros, a noisy-MAX variable and a sigmoid one."""
    return sb.from_edges(
        [("a", "c", None), ("b", "c", None), ("a", "d", [[0.5, 1.2], [0.3, 2.0]]), ("b", "d", [[0.7], [0.4]]),
         ("c", "e", None)],
        bias={"b": -0.4, "d": [0.1, 0.05]},
        states={"a": ["x", "y", "z"], "c": ["p", "q", "r", "s"], "d": ["low", "mid", "high"]},
        gate={"d": "noisy-or"},
        tables={
            "a": [0.2, 0.5, 0.3],
            "c": [[[0.5, 0.5, 0.0, 0.0], [0.1, 0.2, 0.3, 0.4]], [[0.25, 0.25, 0.25, 0.25], [0.7, 0.1, 0.1, 0.1]],
                  [[0.2, 0.2, 0.3, 0.3], [0.0, 0.0, 0.4, 0.6]]],
            "e": [[1.0, 0.0], [0.0, 1.0], [0.4, 0.6], [0.9, 0.1]],
        },
    )  # fmt: skip


EVIDENCE = [{"e": 1, "d": "high"}, {"d": "mid"}, {"e": 0}, {"a": [0.0, 0.4, 0.9], "e": 1}]


# --- likelihoods of zero ----------------------------------------------------------------------------------------------


@given(state_networks(max_units=4, max_states=4), st.data(), seeds)
@settings(max_examples=60, deadline=None)
def test_a_likelihood_of_zero_excludes_a_state(network, data, seed):  # weights to 1000, ln P far below -1000
    row, rng = data.draw(states_of(network)), np.random.default_rng(seed)
    soft = [rng.choice([0.0, 1e-300, 0.3, 2.0], n) for n in network.n_states]
    told = {i: one for i, one in enumerate(soft) if row[i] < 0 and network.n_states[i] > 2 and one.any()}
    evidence = {name: int(row[i]) for i, name in enumerate(network.names) if row[i] >= 0}
    evidence = {name: network.states[name][k] for name, k in evidence.items()}
    evidence |= {network.names[i]: one.tolist() for i, one in told.items()}
    S, log_p = possible_states(network, row)
    with np.errstate(divide="ignore"):
        for i, one in told.items():
            log_p = log_p + np.log(one)[S[:, i]]
    truth = logsumexp(log_p) if len(S) else -np.inf
    rounding = 1e-11 * magnitude(network)
    # A noisy-OR variable without a cause counts as on with a probability of 1e-300 where ln P is as low.
    assume(truth in (-np.inf, max(truth, -600.0)) or not (network.gate == NOISY_OR).any())
    assert sb.log_likelihood(network, evidence) == pytest.approx(truth, abs=rounding, rel=1e-12)
    if truth > -np.inf:
        assert sb.infer(network, evidence).bound <= truth + rounding
        exact = sb.exact_posterior(network, evidence)
        for i, one in told.items():
            for k in np.flatnonzero(one == 0.0):
                assert exact[network.names[i]][network.states[network.names[i]][k]] <= 1e-15  # one less the others


@pytest.mark.parametrize("ask", [sb.next_question, sb.contributions, sb.sensitivity, sb.posterior_intervals])
def test_what_only_a_sum_shows_to_be_impossible_is_refused(ask):
    """Two sums modulo two of the same coins differ: each variable alone could be anything."""
    odd = [[[1, 0], [0, 1]], [[0, 1], [1, 0]]]
    edges = [(coin, total, None) for total in "st" for coin in "ab"]
    net = sb.from_edges(edges, tables={"s": odd, "t": odd, "a": [0.5, 0.5], "b": [0.5, 0.5]})
    with pytest.raises(EvidenceError, match="the evidence is impossible: no joint state .* leave out a finding"):
        ask(net, {"s": 1, "t": 0}, **({} if ask is sb.posterior_intervals else {"about": "a"}))


def test_evidence_that_only_an_excluded_state_explains_is_impossible():
    net = sb.from_edges([("u", "v", [[0.0, 0.0]]), ("u", "w", None)], bias={"u": [0.0, 0.0]},
                        states={"u": ["a", "b", "c"]}, tables={"w": [[1, 0], [1, 0], [0, 1]]})  # fmt: skip
    assert sb.log_likelihood(net, {"w": 1, "u": [1, 1, 0]}) == -np.inf
    assert sb.infer(net, {"w": 1, "u": [1, 1, 0]}).bound == -np.inf


# --- samplers ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("evidence", EVIDENCE)
def test_gibbs_samples_tables(clinic, evidence):
    exact, found = sb.exact_posterior(clinic, evidence), sb.infer(clinic, evidence, solver=sb.Gibbs(samples=600))
    assert found.means == pytest.approx(exact.means, abs=0.04)
    again = sb.infer_many(clinic, [evidence, {"d": "low"}], solver=sb.Gibbs(samples=600))
    assert np.array_equal(again.means[0], found.means)  # whatever stands beside it


def test_gibbs_has_no_posterior_of_impossible_evidence():
    """A row that cannot be is told as one, and those beside it are answered."""
    net = sb.from_edges([("a", "b", None), ("b", "c", [[1.0, 2.0]])], states={"b": ["x", "y", "z"]},
                        tables={"b": [[1, 0, 0], [0, 0.5, 0.5]]})  # fmt: skip
    solver = sb.Gibbs(samples=20, burn_in=2)
    found = sb.infer(net, {"a": "no", "b": "z"}, solver=solver)
    assert found.status == Status.IMPOSSIBLE
    assert np.isnan(found["c"])
    rows = sb.infer_many(net, [{"a": "no", "b": "z"}, {"a": "no"}], solver=solver)
    assert rows.means[1] == pytest.approx(sb.infer(net, {"a": "no"}, solver=solver).means)
    assert sb.infer(net, {"b": {"x": 0, "y": 0.5, "z": 0.5}, "a": "no"}, solver=solver).status == Status.IMPOSSIBLE


def test_particles_and_estimates_know_tables(clinic):
    rows = np.array([[-1, -1, -1, 2, 1], [-1, -1, -1, 1, -1], [-1, -1, -1, -1, 0]], np.int8)
    exact = sb.exact_posterior(clinic, rows)
    found = average(clinic, rows, number=4000)
    assert found.log_p == pytest.approx(exact.log_likelihood, abs=0.06)
    assert found.means == pytest.approx(exact.means, abs=0.04)
    assert np.isfinite(sb.log_joint(clinic, average(clinic, rows, number=64).drawn.reshape(-1, 5))).all()


@pytest.mark.parametrize("method", ["importance", "annealed"])
def test_estimates_with_tables_are_right(clinic, method):
    exact = sb.log_likelihood(clinic, EVIDENCE)
    found = sb.estimate(clinic, EVIDENCE, samples=2000, method=method, steps=10, rng=3)
    assert (np.abs(found.log_probability - exact) <= 5.0 * found.error + 1e-12).all()
    assert (found.lower <= exact).all()
    assert (found.bound <= exact).all()


@pytest.mark.parametrize("seed", range(40))
def test_weights_of_families_have_the_mean_p(seed):
    network, row = random_case(seed, tables=True)
    log_p = logsumexp(possible_states(network, row)[1]) if len(possible_states(network, row)[1]) else -np.inf
    if log_p < -6.0:  # too rare for a few thousand samples
        return
    means = np.repeat(1.0 / network.n_states, network.n_states - 1)
    w = np.exp(families.log_weights(network, row, means, 0.5, np.uint64(1), 20_000) - log_p)
    assert w.max() <= 2.0 * np.exp(-log_p) * (1.0 + 1e-9)  # the share of the network is one half
    assert abs(w.mean() - 1.0) <= 6.0 * w.std() / np.sqrt(len(w)) + 1e-9


@pytest.mark.parametrize("seed", range(30))
def test_what_a_family_says_is_what_the_oracle_says(seed):  # also where a parent moves
    network, row = random_case(seed, tables=True)
    given_, S = families.Row(network, row), np.random.default_rng(seed).integers(0, network.n_states, (6, 5))
    tables = {network.index(name): table for name, table in network.tables.items()}

    def joint(states):
        return oracle.log_of_states(network.model, network.bias, states, tables)

    S = S.astype(np.int8)
    with np.errstate(divide="ignore"):
        every = np.array([joint(s) for s in S])
        assert pytest.approx(every, abs=1e-9) == np.array([one.of_state(S) for one in given_.all]).T
        for one in given_.all:
            for u in one.parents:
                for k in range(network.n_states[u]):
                    moved = S.copy()
                    moved[:, u] = k
                    truth = [joint(s)[one.variable] for s in moved]
                    assert one.told(u, S)[:, k] == pytest.approx(truth, abs=1e-9)


# --- mean field theory ------------------------------------------------------------------------------------------------


def test_a_zero_counts_as_less_than_any_state_that_can_be():  # and not as e^-690, which is more than P here
    net = sb.from_edges([("u", "v", [[0.0]]), ("u", "w", None)], bias={"v": -900.0}, tables={"w": [[1, 0], [0.5, 0.5]]})
    truth = sb.log_likelihood(net, {"v": 1, "w": 1})
    assert truth == pytest.approx(-900.0 + np.log(0.25))
    assert truth - 1e-6 <= sb.infer(net, {"v": 1, "w": 1}).bound <= truth


def test_restarts_with_tables_find_the_better_bound(clinic):
    bounds = [sb.infer(clinic, {"e": 1}, solver=sb.MeanField(restarts=k)).bound for k in (1, 8)]
    assert bounds[0] <= bounds[1] <= sb.log_likelihood(clinic, {"e": 1})


def no_completions(network, states, **_):
    return Completions(np.full(1, -np.inf), np.zeros(1, np.int64), states, np.ones(1))


def test_where_no_state_of_positive_probability_is_found_it_is_said(monkeypatch):
    def nothing(*_):
        raise TooRareError("none")

    monkeypatch.setattr(tabular, "begin", nothing)
    edges = [("a", "b", None), ("b", "c", None), ("c", "d", None)]
    copies = sb.from_edges(edges, tables={name: np.eye(2) for name in "bcd"})
    with pytest.warns(ConvergenceWarning, match="in 1 of 1 row no state of positive probability was found"):
        found = sb.infer(copies, {"d": 1}, start=[0.0] * 4)
    assert (found.bound, found.status) == (-np.inf, Status.NO_STATE)
    monkeypatch.setattr(families, "complete", no_completions)
    monkeypatch.setattr(families, "most_probable_state", lambda *_: None)
    with pytest.raises(TooRareError, match="none of 256 particles has a positive probability"):
        sb.infer(copies, {"d": 1}, solver=sb.Gibbs())


def test_chains_start_from_the_most_probable_state_where_particles_find_none(monkeypatch):
    copies = sb.from_edges([("a", "b", None)], tables={"b": np.eye(2)})
    monkeypatch.setattr(families, "complete", no_completions)
    assert sb.infer(copies, {"b": 1}, solver=sb.Gibbs(samples=10))["a"] == 1.0


# --- upper bounds and certificates ------------------------------------------------------------------------------------


@given(state_networks(max_units=6, max_states=4), st.data(), st.sampled_from([0.0, 2.0, 4.0, 9.0]))
@settings(max_examples=80, deadline=None)
def test_mini_buckets_are_never_below_the_sum(network, data, room):  # also with tangents in the place of families
    row = data.draw(states_of(network))
    truth = sb.log_likelihood(network, row)
    found = buckets.bucket_bound(network, row, room)
    assert found.bound >= truth
    if found.exact and truth > -600.0:  # where ln P is lower, a noisy-OR variable without a cause counts as 1e-300
        assert found.bound == pytest.approx(truth, abs=1e-9 * magnitude(network), rel=1e-9)
    assert buckets.bucket_bound(network, row, 30.0).exact
    hidden = [int(v) for v in np.flatnonzero(row < 0)[:2]]
    assert buckets.split_bound(network, row, room, hidden) >= truth - 1e-12 * abs(truth)


def large(n=12, rng=0):
    """A chain of variables with three states beside a variable that depends on all: room for few of them."""
    rng = np.random.default_rng(rng)
    names = [f"v{k}" for k in range(n)]
    edges = [(names[k], names[k + 1], None) for k in range(n - 1)]
    edges += [(name, "all", rng.normal(size=(1, 2))) for name in names]
    tables = {names[0]: rng.dirichlet(np.ones(3))} | {name: rng.dirichlet(np.ones(3), 3) for name in names[1:]}
    return sb.from_edges(edges, bias={"all": -1.0}, states={name: ["a", "b", "c"] for name in names}, tables=tables)


def test_certificates_with_tables_that_cannot_be_eliminated_enclose_ln_p():
    net, few = large(8), sb.solvers.CertifySettings(exact_up_to=3)
    evidence = {"all": 1, "v3": "b"}
    exact = sb.exact_posterior(net, evidence)
    for effort in ("fast", "normal", "high"):
        found = sb.certify(net, evidence, effort=effort, settings=few)
        assert found.lower <= exact.log_likelihood <= found.upper
        assert found.lower <= found.estimate <= found.upper
        assert not found.exact
    assert "mini-buckets, 27 subproblems" in found.upper_from
    upper = sb.upper_bound(net, evidence, exact_up_to=3, condition=["v1", "v5"])
    assert exact.log_likelihood <= upper.bound <= sb.upper_bound(net, evidence, exact_up_to=3).bound
    assert sb.upper_bound(net, evidence, exact_up_to=3, condition=2).bound >= exact.log_likelihood
    intervals = sb.posterior_intervals(net, evidence, units=["v1"], settings=few)["v1"]
    for state, (low, high) in intervals.items():
        assert low <= exact["v1"][state] <= high
    assert sb.upper_bound(net, evidence).bound == pytest.approx(exact.log_likelihood, abs=0.5)
