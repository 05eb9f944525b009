"""Trees of hidden units inside Q: the bound against sums over all states, with Q written out as a table."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import xlogy

import oracle
import sbnet as sb
from sbnet.inference.solvers import structured
from sbnet.inference.solvers.forests import Links, couplings, plant, spanning
from sbnet.inference.solvers.products import expand, lay_out
from sbnet.kernels.structured import maximise, messages
from sbnet.questions.reduction import absorb, reduce
from strategies import INTERPRETED, cases, mixed_cases

pytestmark = pytest.mark.filterwarnings("ignore::sbnet.errors.ConvergenceWarning")  # hostile networks need long

TERM = 5e-7  # what a sum over frequencies adds to a term, at most


def chain(steps, keep=4.0, show=2.0):
    """One hidden chain and what is seen of it."""
    edges = {(f"h{t}", f"h{t + 1}"): keep for t in range(steps - 1)} | {(f"h{t}", f"x{t}"): show for t in range(steps)}
    bias = {f"h{t}": -keep / 2 for t in range(steps)} | {f"x{t}": -show / 2 for t in range(steps)}
    return sb.from_edges(edges, bias=bias), {f"x{t}": t % 3 % 2 for t in range(steps)}


def as_states(evidence):
    return np.where(np.isnan(evidence), -1, evidence).astype(np.int8)


def posed(network, evidence):
    states = as_states(np.asarray(evidence, float))
    return reduce(network.model, states), states, absorb(network, states[None, :])[0]


def random_links(n, rng):
    """A forest at random."""
    links = [(int(rng.integers(k)), k) for k in range(1, n) if rng.random() < 0.8]
    one, other = np.array(links, np.int64).reshape(-1, 2).T
    return Links(one, other, np.ones(len(one)))


def table_of(theta, parent):
    """Q of every state of the hidden units, in the order of `oracle.all_states`."""
    n = len(parent)
    q = []
    for s in itertools.product((0, 1), repeat=n):
        on = [theta[2 * k + (s[parent[k]] if parent[k] >= 0 else 0)] for k in range(n)]
        q.append(np.prod([on[k] if s[k] else 1.0 - on[k] for k in range(n)]))
    return np.array(q)


def climbed(network, evidence, links, theta, sweeps, enumerate_up_to):
    """Some sweeps: the bounds on the way, the forest, and the means."""
    problem, states, bias = posed(network, evidence)
    whole, planted = expand(network.model, problem, states, bias, enumerate_up_to), plant(links, len(problem.hidden))
    products, units, trace = lay_out(whole.factors, *planted), planted.forest.units, np.empty(sweeps + 1)
    units["theta"], units["field"] = theta.reshape(-1, 2), whole.field
    maximise(planted.forest, products, messages(products), whole.constant, -1.0, trace)
    theta[:] = units["theta"].ravel()
    return trace, units["parent"], units["p"][:, 1]


def whole_bound(network, evidence, q):
    """L = sum over all states of Q ln P - Q ln Q."""
    gate = np.asarray(network.gate)
    log_p = oracle.log_joint(network.weight_matrix(), network.bias, oracle.all_states(evidence), gate)
    return np.sum(q * log_p - xlogy(q, q))


# --- the bound is that of Q ------------------------------------------------------------------------------------------


@pytest.mark.small
@pytest.mark.parametrize("gate", ["sigmoid", "noisy-or"])
@pytest.mark.parametrize("enumerate_up_to", [0, 2, 12])
@settings(max_examples=2 if INTERPRETED else 25)
@given(seed=st.integers(0, 2**32 - 1), scale=st.sampled_from([0.5, 3.0]))
def test_the_bound_is_the_sum_over_all_states(enumerate_up_to, gate, seed, scale):
    rng = np.random.default_rng(seed)
    network = sb.layered((2, 4, 3), rng=rng, scale=scale, gate=gate, autoregressive=bool(rng.random() < 0.5))
    evidence = np.r_[np.full(6, np.nan), rng.integers(0, 2, 3)]
    links, theta = random_links(6, rng), np.repeat(rng.random(6), 2)
    trace, parent, means = climbed(network, evidence, links, theta, 3, enumerate_up_to)
    q = table_of(theta, parent)
    true = whole_bound(network, evidence, q)
    few = enumerate_up_to == 12
    assert trace[-1] <= true + 1e-11
    assert trace[-1] >= true - (1e-11 if few else 7 * TERM)
    assert np.allclose(means, q @ oracle.all_states(evidence)[:, :6], rtol=0, atol=1e-12)
    assert np.all(np.diff(trace) >= -1e-11)


@pytest.mark.small
@pytest.mark.parametrize("seed", range(3))
def test_no_unit_can_do_better_alone(seed):
    """At the end no Q(S_k = 1 | s) has a slope: the analogue of eq. (24)."""
    rng = np.random.default_rng(seed)
    network, evidence = sb.layered((2, 3, 3), rng=rng, scale=2.0), np.r_[np.full(5, np.nan), [1, 0, 1]]
    theta = np.full(10, 0.5)
    _, parent, _ = climbed(network, evidence, random_links(5, rng), theta, 60, 12)
    best = whole_bound(network, evidence, table_of(theta, parent))
    for k in range(10):
        pair = [k] if parent[k // 2] >= 0 else [k // 2 * 2, k // 2 * 2 + 1]
        for step in (-1e-4, 1e-4):
            moved = theta.copy()
            moved[pair] = np.clip(moved[pair] + step, 0.0, 1.0)
            assert whole_bound(network, evidence, table_of(moved, parent)) <= best + 1e-9


def test_units_between_the_parents_of_a_unit():
    """A factor whose parents stand at both ends of a chain, and others along it."""
    network = sb.from_edges({("a", "x"): 2.0, ("e", "x"): -3.0, ("b", "y"): 1.0, ("c", "y"): 1.5, ("d", "y"): -1.0})
    evidence = np.where([name in "xy" for name in network.names], 1.0, np.nan)
    hidden = [network.index(name) for name in "abcde"]
    place = {unit: k for k, unit in enumerate(sorted(hidden))}
    one, other = (np.array([place[unit] for unit in part]) for part in (hidden[:-1], hidden[1:]))
    rng = np.random.default_rng(0)
    for up_to in (0, 12):
        theta = rng.random(10)
        trace, parent, _ = climbed(network, evidence, Links(one, other, np.ones(4)), theta, 2, up_to)
        assert abs(trace[-1] - whole_bound(network, evidence, table_of(theta, parent))) < 2 * TERM


# --- rigour -----------------------------------------------------------------------------------------------------------


def rounding(network):
    return 4 * oracle.rounding(network.weight_matrix(), network.bias, np.asarray(network.gate))


@pytest.mark.parametrize("enumerate_up_to", [0, 4])
@settings(max_examples=3 if INTERPRETED else 60)
@given(case=cases(max_units=6 if INTERPRETED else 12))
def test_the_bound_lies_between_mean_field_and_the_truth(enumerate_up_to, case):
    network, evidence = case
    plain = sb.MeanField(tol=1e-4, enumerate_up_to=enumerate_up_to)
    post = sb.infer(network, evidence, solver=sb.Structured(solver=plain))
    truth = oracle.log_likelihood(network.weight_matrix(), network.bias, evidence)
    assert sb.infer(network, evidence, solver=plain).bound <= post.bound <= truth + rounding(network)
    assert np.all(np.diff(post.trace[np.isfinite(post.trace)]) >= -1e-12 * (1.0 + abs(post.bound)))
    assert post.trace[np.isfinite(post.trace)][-1] == post.bound


@settings(max_examples=3 if INTERPRETED else 40)
@given(case=mixed_cases())
def test_noisy_or_units_too(case):
    network, evidence = case
    truth = sb.log_likelihood(network, evidence)
    for up_to in (0, 4):
        plain = sb.MeanField(tol=1e-4, enumerate_up_to=up_to)
        bound = sb.infer(network, evidence, solver=sb.Structured(solver=plain)).bound
        assert sb.infer(network, evidence, solver=plain).bound <= bound <= truth + rounding(network)


@pytest.mark.small
@given(z=st.lists(st.floats(-3000, 3000), min_size=1, max_size=9), h=st.floats(-3000, 3000))
@settings(max_examples=30)
def test_the_midpoint_rule_lies_above_the_logarithm(z, h):
    """In every state of the parents, also where the range asks for more frequencies than there are."""
    network = sb.from_edges([(f"h{k}", "x", w) for k, w in enumerate(z)], bias={"x": h})
    evidence = np.r_[np.full(len(z), np.nan), 0.0]
    problem, states, bias = posed(network, evidence)
    whole = expand(network.model, problem, states, bias, 0)
    s = (np.random.default_rng(0).random((8, len(z))) < 0.5).astype(int)
    for row in s:
        found = whole.constant + whole.field[np.arange(len(z)), row].sum() + len(z) * np.log(2.0)
        for factor in whole.factors:
            waves = np.prod([factor.phi[k, row[unit]] for k, unit in enumerate(factor.units)], axis=0)
            found += (factor.coefficient @ waves).real
        x = h + row @ z
        heat = max(1.0, np.abs([*z, h]).sum() / 600)
        assert -np.logaddexp(0, x) - heat <= found <= -np.logaddexp(0, x) + 1e-9


# --- where it is exact ------------------------------------------------------------------------------------------------


@pytest.mark.small
def test_a_hidden_chain_has_its_log_likelihood():
    network, seen = chain(5 if INTERPRETED else 12)
    post = sb.infer(network, seen, solver=sb.Structured())
    assert abs(post.bound - sb.log_likelihood(network, seen)) < 1e-9
    assert post.bound < sb.log_likelihood(network, seen)
    assert np.allclose(post.means, sb.exact_posterior(network, seen), rtol=0, atol=1e-9)
    assert sb.infer(network, seen).bound < post.bound - 0.05


@pytest.mark.small
def test_a_hidden_tree_is_exact_and_a_barren_unit_predicted():
    edges = {("r", "a"): 2.0, ("r", "b"): -3.0, ("b", "c"): 4.0, ("a", "x"): 2.0, ("b", "y"): 2.0, ("c", "z"): 1.0}
    network = sb.from_edges({**edges, ("r", "idle"): 1.0})
    seen = {"x": 1, "y": 0, "z": 1}
    post = sb.infer(network, seen, solver=sb.Structured())
    assert abs(post.bound - sb.log_likelihood(network, seen)) < 1e-9
    assert abs(post["idle"] - sb.exact_posterior(network, seen)["idle"]) < 1e-9


def test_a_chain_is_found_among_other_couplings():
    edges = {(f"{c}{t}", f"{c}{t + 1}"): 6.0 for t in range(4) for c in "ab"}
    edges |= {(f"{c}{t}", f"x{t}"): 1.0 for t in range(5) for c in "ab"}
    network = sb.from_edges(edges, bias={f"{c}{t}": -3.0 for t in range(5) for c in "ab"})
    evidence = np.where([name[0] == "x" for name in network.names], 1.0, np.nan)
    problem, states, bias = posed(network, evidence)
    kept = spanning(couplings(problem, states, bias, np.full(10, 0.5)), 10)
    ends = problem.hidden["variable"][np.stack([kept.one, kept.other])]
    names = {frozenset(network.names[i] for i in pair) for pair in ends.T.tolist()}
    assert {frozenset(pair) for pair in edges if pair[1][0] != "x"} <= names
    assert len(names) == 9  # and one link between the chains


# --- groups -----------------------------------------------------------------------------------------------------------


@pytest.mark.small
def test_groups_by_name_and_number():
    network, seen = chain(4)
    names = [f"h{t}" for t in range(4)]
    bounds = [
        sb.infer(network, seen, solver=sb.Structured(groups)).bound
        for groups in ([], [names[:2]], [names[:2], names[2:]], [[network.index(name) for name in names]], "auto")
    ]
    assert bounds[0] == pytest.approx(sb.infer(network, seen).bound, abs=1e-5)
    assert bounds == sorted(bounds)
    assert bounds[2] - bounds[1] > 1e-3
    assert bounds[3] == pytest.approx(bounds[4], abs=1e-12)
    apart = sb.infer(network, seen, solver=sb.Structured([["h0", "h3"]])).bound  # not coupled: nothing to keep
    assert apart == bounds[0]


@pytest.mark.small
@pytest.mark.parametrize(
    ("groups", "text"),
    [
        ("chains", "groups is 'chains'; it must be 'auto' or a list of groups of variables"),
        (3, "groups is 3; it must be 'auto' or a list of groups of variables"),
        (["h0", "h1"], "groups has 'h0', one variable; give lists of variables, such as [['h0', ...], ...]"),
        ([[0, 1], None], "a group is None; give a list of variables, by name or by number"),
    ],
)
def test_groups_that_are_none(groups, text):
    with pytest.raises(sb.errors.ParameterError) as caught:
        sb.Structured(groups)
    assert str(caught.value) == text


@pytest.mark.small
def test_units_that_cannot_be_grouped():
    network, seen = chain(3)
    with pytest.raises(sb.errors.ParameterError, match="^groups has 'h1' twice; a variable is in one group at most"):
        sb.infer(network, seen, solver=sb.Structured([["h0", "h1"], ["h1", "h2"]]))
    with pytest.raises(sb.errors.UnknownUnitError, match="'h9'"):
        sb.infer(network, seen, solver=sb.Structured([["h0", "h9"]]))
    with pytest.raises(sb.errors.ParameterError, match="coordinate ascent begins by mean field theory"):
        sb.Structured(solver=sb.Gibbs())


@pytest.mark.small
def test_links_are_left_out_where_there_is_no_room(monkeypatch):
    network, seen = chain(4)
    free = sb.infer(network, seen, solver=sb.Structured()).bound
    monkeypatch.setattr(structured, "_MOST", 1)
    assert sb.infer(network, seen).bound <= sb.infer(network, seen, solver=sb.Structured()).bound < free


def test_more_than_two_states_are_refused_by_name(sprinkler, monkeypatch):
    three = sprinkler.model._replace(n_states=np.array([2, 3, 2, 2]))
    monkeypatch.setitem(vars(sprinkler), "model", three)
    with pytest.raises(sb.errors.NetworkError, match="variable 'sprinkler' has 3 states, and Structured.* is for two"):
        sb.infer(sprinkler, {"wet": 1}, solver=sb.Structured())
