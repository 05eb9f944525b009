"""The upper bound: never below ln P, never looser for more work, and as tight as it is said to be."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import oracle
import sbnet as sb
from sbnet.bounds import UpperBound, UpperBoundSettings, upper_bound
from sbnet.bounds.upper.regions import Parameters, divide, evaluate, start
from sbnet.kernels.codes import SIGMOID
from sbnet.kernels.upper import peak, peak_hidden
from sbnet.questions.evidence import coerce
from sbnet.questions.reduction import absorb, reduce
from strategies import INTERPRETED, KINDS, SCALES, SHAPES, _edges, _evidence, _numbers, cases, tables

OPTIONS = [
    {"table_up_to": 0},
    {"table_up_to": 2},
    {},
    {"exact_up_to": 2},
    {"condition": 1},
    {"condition": 2, "table_up_to": 1},
    {"condition": 3},
]


def rounding(network):
    return oracle.rounding(network.weight_matrix(), network.bias)


def bound_of(network, evidence, **options):
    return upper_bound(network, evidence, **{"exact_up_to": 0, **options}).bound


# --- never below ln P -----------------------------------------------------------------------------------------------


@pytest.mark.small
@given(cases(max_units=5 if INTERPRETED else 10), st.sampled_from(OPTIONS))
def test_the_bound_is_never_below_the_exact_log_likelihood(case, options):
    network, evidence = case
    exact = sb.log_likelihood(network, evidence)
    assert exact - rounding(network) <= bound_of(network, evidence, **options) <= 0.0


def hostile_network(rng, n):
    """Any shape, any size of weights, many of them ±1000."""
    child, parent = np.nonzero(_edges(str(rng.choice(SHAPES)), n, rng))
    scale, names = str(rng.choice(SCALES)), [f"u{k}" for k in range(n)]
    weight, bias = _numbers(scale, len(child), 30.0, rng), _numbers(scale, n, 30.0, rng)
    edges = [(names[j], names[i], w) for i, j, w in zip(child, parent, weight.tolist(), strict=True)]
    return sb.from_edges(edges, bias=dict(zip(names, bias.tolist(), strict=True)), names=names)


def test_hundreds_of_patterns_on_hostile_networks():
    rng = np.random.default_rng(7)
    for _ in range(80):
        network = hostile_network(rng, int(rng.integers(1, 11)))
        rows = np.concatenate([_evidence(1, network.n_units, kind, rng) for kind in KINDS])
        exact, atol = sb.log_likelihood(network, rows), rounding(network)
        lines = bound_of(network, rows, table_up_to=0)
        plain = bound_of(network, rows)
        split = bound_of(network, rows, condition=2)
        named = bound_of(network, rows, condition=network.names[:2])
        assert np.all(np.isfinite(lines))
        assert np.all(plain <= lines)
        assert np.all(split <= plain)
        assert np.all(named <= plain)
        assert np.all(exact - atol <= np.minimum(split, named))


# --- more work, never looser ----------------------------------------------------------------------------------------


@settings(max_examples=30)
@given(cases(max_units=10))
def test_more_subproblems_never_loosen_the_bound(case):
    network, evidence = case
    atol = rounding(network)
    greedy = [bound_of(network, evidence, condition=k) for k in (None, 0, 1, 2, 3)]
    named = [bound_of(network, evidence, condition=network.names[:k]) for k in range(5)]
    assert np.all(np.diff(greedy) <= atol)
    assert np.all(np.diff(named) <= atol)
    assert greedy[0] == greedy[1] == named[0]


@given(cases(max_units=10))
def test_all_units_conditioned_or_summed_is_exact(case):
    network, evidence = case
    exact, atol = sb.log_likelihood(network, evidence), rounding(network)
    summed = upper_bound(network, evidence)
    assert summed.exact
    assert summed.n_subproblems == 1
    assert_allclose(summed.bound, min(exact, 0.0), rtol=0, atol=2 * atol)
    split = upper_bound(network, evidence, exact_up_to=0, condition=network.names)
    assert_allclose(split.bound, exact, rtol=0, atol=4 * atol)


def test_small_groups_are_summed_and_only_large_ones_bounded():
    edges = {(f"{g}{k}", f"{g}x{i}"): 1.0 + k - i for g, n in (("a", 2), ("b", 4)) for k in range(n) for i in range(3)}
    network = sb.from_edges(edges)
    evidence = {name: 1 for name in network.names if "x" in name}
    parts = [{name: 1 for name in evidence if name[0] == g} for g in "ab"]
    mixed = upper_bound(network, evidence, exact_up_to=3)
    assert not mixed.exact
    total = sb.log_likelihood(network, parts[0]) + bound_of(network, parts[1])
    assert_allclose(mixed.bound, total, rtol=0, atol=1e-6)


def test_a_single_hidden_unit_above_many_observed_ones_is_exact_by_one_split():
    network = sb.layered((1, 9), rng=0, scale=3.0)
    pattern = sb.sample(network, 1, rng=0)[0, 1:]
    split = upper_bound(network, pattern, exact_up_to=0, condition="h1_0")
    assert split.exact
    assert split.conditioned == ("h1_0",)
    assert split.n_subproblems == 2
    assert_allclose(split.bound, sb.log_likelihood(network, pattern), rtol=0, atol=1e-12)


# --- yardsticks -----------------------------------------------------------------------------------------------------

TOP = ["h1_0", "h1_1"]
LOOSENESS = {  # per cent, at weights to ±1, ±2 and ±5, with some room
    "linear": ({"table_up_to": 0}, (5.0, 11.0, 17.5)),
    "linear, 4 variables": ({"table_up_to": 0, "condition": [*TOP, "h2_0", "h2_1"]}, (2.2, 4.5, 6.0)),
    "tables": ({}, (1.9, 4.9, 5.2)),
    "tables, top layer": ({"condition": TOP}, (0.6, 1.6, 2.4)),
    "tables, 16 subproblems": ({"condition": 4}, (0.05, 0.05, 0.05)),
}


@pytest.mark.parametrize("name", LOOSENESS)
def test_looseness_on_the_networks_of_figure_5(name):
    options, limits = LOOSENESS[name]
    for scale, limit in zip((1.0, 2.0, 5.0), limits, strict=True):
        networks = [
            sb.layered((2, 4, 6), rng=seed, scale=scale) for seed in range(10 if "condition" in options else 40)
        ]
        exact = np.array([sb.log_likelihood(network, np.zeros(6)) for network in networks])
        bounds = np.array([bound_of(network, np.zeros(6), **options) for network in networks])
        assert 100 * np.mean(1 - bounds / exact) < limit


@pytest.mark.parametrize("scale", [0.1, 1.0, 1000.0])
def test_the_bound_of_a_large_network_is_finite(scale):
    network = sb.layered((500, 30), rng=0, scale=scale)
    pattern = sb.sample(network, 1, rng=0)[0, 500:]
    answer = upper_bound(network, pattern)
    assert not answer.exact
    assert np.isfinite(answer.bound)
    assert -1e300 < answer.bound <= 0.0
    if scale < 1.0:
        assert sb.infer(network, pattern).bound < answer.bound < -15.0


def test_a_deep_network_of_many_parents_encloses_ln_p_with_the_lower_bound():
    network = sb.layered((8, 10, 12), rng=1, scale=1.0)  # the bottom has more parents than a table takes
    pattern = sb.sample(network, 1, rng=0)[0, 18:]
    exact = sb.log_likelihood(network, pattern)
    for options in OPTIONS[:3]:
        assert exact < bound_of(network, pattern, **options) < 0.6 * exact


# --- the gradient, in slow motion -----------------------------------------------------------------------------------


@pytest.mark.small
@pytest.mark.parametrize("room", [0, 2, 8])
def test_gradient_is_that_of_the_bound(room):
    network = sb.layered((2, 3, 3), rng=0, scale=2.0)
    states, _ = coerce(network, [1, 0, 1])
    problem = reduce(network.model, states[0])
    regions = divide(problem, network.model, states[0], absorb(network, states)[0], np.ones(5, bool), room)
    nothing = Parameters(np.full(network.n_edges, np.nan), np.full((network.n_units, 2), np.nan))
    rng = np.random.default_rng(0)
    x = start(regions, nothing)
    x += rng.uniform(-0.3, 0.3, len(x))
    _, gradient = evaluate(regions, x)
    for k, unit in enumerate(1e-5 * np.eye(len(x))):
        up, down = (evaluate(regions, x + sign * unit)[0] for sign in (1, -1))
        assert_allclose(gradient[k], (up - down) / 2e-5, atol=1e-7)


@pytest.mark.small
@pytest.mark.skipif(not INTERPRETED, reason="kernels for kernels can be called from Python only when not compiled")
@pytest.mark.parametrize("scale", [0.5, 3.0, 30.0, 1000.0])
def test_the_highest_point_above_a_line_is_found(scale):
    rng = np.random.default_rng(0)
    for _ in range(200):
        c, eta = rng.uniform(-scale, scale, 2)
        low, high = np.sort(rng.uniform(-2 * scale, 2 * scale, 2))
        lam, slope, t = rng.uniform(-1.1, 1.1), rng.uniform(-0.1, 1.1), np.linspace(low, high, 2001)

        def hidden(t, c=c, eta=eta, lam=lam):
            return np.logaddexp(0, c + t + eta) - np.logaddexp(0, c + t) - lam * t

        def observed(t, c=c, slope=slope):
            return slope * t - np.logaddexp(0, c + t)

        inside = min(max(peak_hidden(SIGMOID, eta, lam) - c, low), high)
        best = max((low, high, inside), key=hidden), min(max(peak(SIGMOID, 1, 0, -slope) - c, low), high)
        assert low <= min(best) <= max(best) <= high
        assert hidden(best[0]) >= hidden(t).max() - 1e-12 * scale
        assert observed(best[1]) >= observed(t).max() - 1e-12 * scale


# --- form -----------------------------------------------------------------------------------------------------------


@given(tables(max_units=6))
@settings(max_examples=25)
def test_a_table_gives_what_its_rows_give_one_by_one(table):
    network, rows = table
    for options in ({"exact_up_to": 0}, {"exact_up_to": 0, "condition": 2}):
        many = upper_bound(network, rows, **options)
        assert many.bound.shape == many.exact.shape == many.n_subproblems.shape == (len(rows),)
        assert len(many.conditioned) == len(rows)
        for r, row in enumerate(rows):
            one = upper_bound(network, row, **options)
            assert (type(one.bound), type(one.exact), type(one.n_subproblems)) == (float, bool, int)
            assert one.bound == many.bound[r]
            assert one.exact == many.exact[r]
            assert one.n_subproblems == many.n_subproblems[r]
            assert one.conditioned == many.conditioned[r]


@pytest.mark.small
def test_special_evidence(sprinkler):
    assert upper_bound(sprinkler, {}).bound == 0.0
    assert upper_bound(sprinkler, {}, exact_up_to=0, condition=3).exact
    complete = upper_bound(sprinkler, [1, 0, 1, 0], exact_up_to=0)
    assert complete.exact
    assert_allclose(complete.bound, sb.log_joint(sprinkler, [1, 0, 1, 0]), rtol=0, atol=1e-13)
    single = sb.from_edges({}, bias={"a": 0.7})
    assert_allclose(upper_bound(single, {"a": 0}).bound, -np.log1p(np.exp(0.7)), rtol=0, atol=1e-14)
    observed = upper_bound(sprinkler, {"wet": 1}, exact_up_to=0, condition=["wet", "slippery", "rain"])
    assert observed.conditioned == ("rain",)  # one is observed, one has no observed descendant
    assert observed.n_subproblems == 2


@pytest.mark.small
def test_what_is_printed(sprinkler):
    exact = sb.log_likelihood(sprinkler, {"wet": 1})
    assert repr(upper_bound(sprinkler, {"wet": 1})) == f"UpperBound: ln P = {exact:.6g} nats, from 1 subproblem"
    loose = upper_bound(sprinkler, {"wet": 1}, exact_up_to=0)
    assert repr(loose) == f"UpperBound: ln P ≤ {loose.bound:.6g} nats, from 1 subproblem"
    assert repr(upper_bound(sprinkler, np.empty((0, 4)))) == "UpperBounds: 0 rows"
    text = repr(upper_bound(sprinkler, [{"wet": 1}, {}]))
    assert text.splitlines()[0] == "UpperBounds: 2 rows"
    assert text.splitlines()[2] == "  exact in 2 of 2"
    assert isinstance(upper_bound(sprinkler, {}), UpperBound)


@pytest.mark.small
@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"condition": 17}, "conditioning on 17 variables needs 2**17 subproblems; the limit is 16 variables"),
        ({"condition": -1}, "condition is -1; give variables, or a whole number from 0 to 16"),
        ({"condition": True}, "condition is True; give variables, or a whole number from 0 to 16"),
        ({"condition": "rian"}, "condition names variable 'rian', which is not in the network; did you mean 'rain'?"),
        ({"exact_up_to": 26}, "exact_up_to is 26; it must be a whole number from 0 to 25"),
        ({"table_up_to": 1.5}, "table_up_to is 1.5; it must be a whole number from 0 to 12"),
        ({"settings": 1}, "settings is 1; write settings=UpperBoundSettings(threads=1), for example"),
    ],
)
def test_settings_that_cannot_be_are_refused(sprinkler, options, text):
    with pytest.raises(sb.errors.SBNetError) as caught:
        upper_bound(sprinkler, {"wet": 1}, **options)
    assert str(caught.value) == text
    with pytest.raises(sb.errors.ParameterError, match="max_steps is 0; it must be a whole number, one or more"):
        UpperBoundSettings(max_steps=0)
    with pytest.raises(sb.errors.ParameterError, match="tol is -1.0; it must be zero or more nats"):
        UpperBoundSettings(tol=-1.0)
