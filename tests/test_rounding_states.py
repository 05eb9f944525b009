"""Bounds of variables with states and tables against sums in fifty digits: no case may be on the wrong side."""

from __future__ import annotations

import itertools
import math
import warnings
from fractions import Fraction

import numpy as np
import pytest

import hostile
import sbnet as sb
from sbnet.errors import ConvergenceWarning, TooManyHiddenError

flint = pytest.importorskip("flint")
arb = flint.arb


@pytest.fixture(autouse=True)
def digits():
    """Fifty digits, in comparisons too: with sixteen, what is not certain there would pass."""
    with flint.ctx.workdps(50):
        yield


def log_p_in_digits(network, row):
    """ln P of one row by a sum over all joint states of hidden variables, in fifty digits."""
    families = [network.family(i) for i in range(network.n_units)]
    numbers = [[network.index(name) for name in family.parents] for family in families]
    ranges = [range(n) if s < 0 else [int(s)] for n, s in zip(network.n_states, row, strict=True)]
    known = {}

    def factor(i, own):
        if (i, own) not in known:
            known[i, own] = _factor(families[i], own)
        return known[i, own]

    total = arb(0)
    for joint in itertools.product(*ranges):
        term = arb(1)
        for i in range(network.n_units):
            term *= factor(i, (*(joint[u] for u in numbers[i]), joint[i]))
            if term.is_zero():
                break
        total += term
    return -math.inf if total.is_zero() else total.log()


def _factor(family, states):
    *parents, own = states
    if family.table is not None:
        return arb(float(family.table[tuple(states)]))
    p, above = arb(1), arb(0)
    for level in range(len(family.bias), 0, -1):
        x = arb(float(family.bias[level - 1]))
        for weight, s in zip(family.weights, parents, strict=True):
            x += float(weight[level - 1, s - 1]) if s else 0.0
        if family.gate == 1:  # P(v <= k) = exp(-sum of x_l over l > k)
            p *= -(-x).expm1() if level == own else 1
            above += x if level > own else 0
        elif level <= own + 1:  # P(v >= l | v >= l - 1) = sigma(x_l)
            p /= 1 + (-x if level <= own else x).exp()
    return p * (-above).exp()


def check(network, row):
    """How many bounds were looked at; none may be on the wrong side."""
    truth, wrong, looked = log_p_in_digits(network, row), [], 0
    lower = [sb.infer(network, row, solver=sb.MeanField(log_term=t, max_sweeps=50)) for t in ("exact", "xi", "jensen")]
    again = sb.infer_many(network, row[None], solver=sb.MeanField(max_sweeps=50), threads=1)
    assert again.bound[0] == lower[0].bound
    assert np.array_equal(again.means[0], lower[0].means, equal_nan=True)
    below = {f"mean field {k}": one.bound for k, one in enumerate(lower)}
    above = {}
    for limits in ({"exact_up_to": 0, "table_up_to": 0}, {"exact_up_to": 3}, {}):
        above[f"upper bound {limits}"] = sb.upper_bound(network, row, **limits).bound
    if truth > -600 or not (network.gate == 1).any():  # lower, what a noisy-OR cannot be counts as 1e-300
        found = sb.certify(network, row)
        below["certify"], above["certify"] = found.lower, found.upper
    near = 1e-15 * network.n_units if network.tables else 1e-45  # what rows of a table, or fifty digits, are off
    for name, bound in below.items():
        looked += 1
        if bound > truth + near:
            wrong.append((name, bound, truth))
    for name, bound in above.items():
        looked += 1
        if bound < truth - near:
            wrong.append((name, bound, truth))
    assert not wrong, wrong
    return looked


def run(cases, each=4):
    looked = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for seed in range(cases // each):
            network = hostile.states(seed)
            for row in hostile.state_rows(network, seed, each):
                if np.prod(network.n_states[row < 0].astype(float)) <= 700:
                    looked += check(network, row)
    return looked


def test_no_bound_of_a_hostile_case_with_states_is_on_the_wrong_side():
    assert run(24) > 100


@pytest.mark.slow
def test_hundreds_of_hostile_cases_with_states():
    cases = 600
    print(f"\nrounding, two to five states: {run(cases):,} bounds of {cases:,} hostile cases")


@pytest.mark.parametrize("seed", range(12))
def test_proven_bounds_of_states_hold_the_sum_in_fifty_digits(seed):
    network = hostile.states(seed)
    for row in hostile.state_rows(network, seed, 2):
        if np.prod(network.n_states[row < 0].astype(float)) <= 200:
            truth, found = log_p_in_digits(network, row), sb.certify(network, row, proven=True)
            near = 1e-15 * network.n_units if network.tables else 1e-45
            assert found.lower - near <= truth <= found.upper + near
            assert found.proven
            assert truth == -math.inf or found.upper - found.lower <= 1e-13 * (1.0 + abs(float(truth)))


@pytest.mark.parametrize("seed", range(6))
def test_proven_bounds_of_tables_hold_the_exact_rational_number(seed):
    """Entries are rational numbers: some are zero, some so small that their products are below all doubles."""
    rng, names, states = np.random.default_rng([5, seed]), [f"v{k}" for k in range(7)], {}
    tables, above = {}, {}
    for k, name in enumerate(names):
        states[name] = [f"s{i}" for i in range(rng.integers(2, 5))]
        above[name] = sorted(rng.choice(names[:k], min(k, 2), replace=False).tolist())
        shape = [len(states[u]) for u in (*above[name], name)]
        p = rng.random(shape) * (rng.random(shape) < 0.8)
        p[..., 0] += p.sum(axis=-1) == 0.0
        p /= p.sum(axis=-1, keepdims=True)
        if k > 3 and seed % 2:  # observed below
            p[..., 0] *= 1e-250
            p[..., 1] = 1.0 - p[..., 0] - p[..., 2:].sum(axis=-1)
        tables[name] = p
    edges = [(u, v, None) for v in names for u in above[v]]
    net = sb.from_edges(edges, states=states, tables=tables, names=names)
    row = np.full(7, -1, np.int8)
    row[4 if seed % 2 else 6 :], total = 0, Fraction(0)
    exact = [np.vectorize(Fraction, otypes=[object])(net.tables[name]) for name in names]
    numbers = [[names.index(u) for u in (*above[name], name)] for name in names]
    for joint in itertools.product(*(range(len(states[v]) if row[k] < 0 else 1) for k, v in enumerate(names))):
        total += math.prod(p[tuple(joint[u] for u in who)] for p, who in zip(exact, numbers, strict=True))
    found = sb.certify(net, row, proven=True)
    if not total:
        assert found.upper == -np.inf
        return
    truth = (arb(total.numerator) / arb(total.denominator)).log()
    assert found.lower <= truth <= found.upper
    assert found.upper - found.lower <= 1e-13 * (1.0 + abs(float(truth)))


def test_proven_sums_go_as_far_as_others():
    """A table of 2**17 numbers at once, the sum of which is known."""
    hidden = [f"v{k}" for k in range(17)]
    tables = {name: np.array([0.25, 0.75]) for name in hidden} | {"all": np.zeros((2,) * 17 + (2,))}
    tables["all"][..., 0] = 0.5**30
    tables["all"][..., 1] = 1.0 - 0.5**30
    net = sb.from_edges([(name, "all", None) for name in hidden], tables=tables)
    found = sb.certify(net, {"all": "no"}, proven=True)
    assert found.lower < -30 * np.log(2.0) < found.upper < found.lower + 1e-13


def test_proven_sums_that_are_too_large_are_named():
    names = [f"v{k}" for k in range(12)]
    edges = {(name, "all"): [[0.5, 1.0]] for name in names}
    net = sb.from_edges(edges, states={name: ["a", "b", "c"] for name in names})
    with pytest.raises(TooManyHiddenError) as caught:
        sb.certify(net, {"all": 1}, proven=True)
    assert str(caught.value).startswith("proven=True needs a table of 2**19.02 numbers over 'v0', 'v1', ")
    assert ", the family of 'all'; the limit is 18. Leave it out" in str(caught.value)
    given = {"all": 1} | dict.fromkeys(names[1:], "b")
    assert sb.posterior_intervals(net, given, units=["v0"], proven=True)["v0"]
