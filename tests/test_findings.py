"""Bounds on sums over independent causes of noisy-OR findings, where nothing is summed over all of them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.special import expit

import oracle
import sbnet as sb
from sbnet.bounds import findings
from sbnet.datasets import make_clinic
from sbnet.errors import ParameterError
from sbnet.exact import quickscore
from sbnet.exact.enumeration import Reduced
from sbnet.kernels.firing import all_fired
from strategies import INTERPRETED, causes, leaks, seeds

few = settings(max_examples=5 if INTERPRETED else 40)


def clinic(seed, n, present, absent, hostile):
    """Causes, findings that are present and absent; chances from next to none to certain if `hostile`."""
    rng = np.random.default_rng(seed)
    edges, m = {}, present + absent
    for i in range(m):
        for j in rng.choice(n, int(rng.integers(1, n + 1)), replace=False):
            edges[f"d{j}", f"f{i}"] = float(causes(hostile, (), rng))
    bias = {f"d{j}": float(rng.choice([-1001.0, -8.0, -3.0, 0.0, 4.0]) if hostile else -2.0) for j in range(n)}
    bias |= {f"f{i}": float(leaks(hostile, (), rng)) for i in range(m)}
    names = [*bias]
    net = sb.from_edges(edges, bias=bias, gate={f"f{i}": "noisy-or" for i in range(m)}, names=names)
    return net, {f"f{i}": int(i < present) for i in range(m)}


def levels_of(net, evidence):
    states = sb.questions.evidence.coerce_one(net, evidence)
    row = Reduced(net, states[0])
    every = np.arange(len(row.problem.hidden)), np.arange(len(row.problem.factors))
    return quickscore.two_levels(net.model, row.problem, row.states, row.bias, *every), row.known


def truth(net, evidence):
    row = np.array([evidence.get(name, np.nan) for name in net.names])
    J, h = net.weight_matrix(), net.bias
    return oracle.log_likelihood(J, h, row, net.gate), oracle.rounding(J, h, net.gate)


shapes = {"seed": seeds, "n": st.integers(1, 8), "present": st.integers(1, 6), "absent": st.integers(0, 2)}


@pytest.mark.small
@few
@given(**shapes, hostile=st.booleans(), kept=st.integers(0, 5), subproblems=st.sampled_from([1, 2, 9]))
def test_both_bounds_hold(seed, n, present, absent, hostile, kept, subproblems):
    net, evidence = clinic(seed, n, present, absent, hostile)
    exact, error = truth(net, evidence)
    levels, known = levels_of(net, evidence)
    found = findings.enclose(levels, kept, subproblems)
    assert found.lower + known <= exact + error
    assert found.upper + known >= exact - error
    assert 1 <= found.subproblems <= subproblems


@few
@given(**shapes, hostile=st.booleans(), effort=st.sampled_from(["fast", "normal"]))
@pytest.mark.filterwarnings("ignore::sbnet.errors.ConvergenceWarning")
def test_certificates_hold_without_exact_sums(seed, n, present, absent, hostile, effort):
    net, evidence = clinic(seed, n, present, absent, hostile)
    assume(not sb.infer(net, evidence).impossible)
    exact, error = truth(net, evidence)
    found = sb.certify(net, evidence, effort=effort, settings=sb.solvers.CertifySettings(exact_up_to=0))
    assert found.lower - error <= exact <= found.upper + error
    assert found.lower <= found.estimate <= found.upper
    assert sb.infer(net, evidence).bound <= found.lower + error


@pytest.mark.small
@few
@given(**shapes, hostile=st.booleans())
def test_a_sum_without_a_minus_sign_is_the_sum_over_causes(seed, n, present, absent, hostile):
    net, evidence = clinic(seed, n, present, absent, hostile)
    exact, error = truth(net, evidence)
    levels, known = levels_of(net, evidence)
    odds, weight = levels.log_odds, np.zeros((len(levels.log_odds), present))
    weight[levels.parent, np.repeat(np.arange(present), np.diff(levels.ptr))] = levels.weight
    firing = findings.firing_of(weight, levels.leak)
    rows = np.ones((2, len(odds)))
    rows[1] = 0.5
    some, others = np.arange(0, len(odds), 2), np.arange(1, len(odds), 2)
    found = all_fired(firing, expit(-odds), expit(odds), others, some, rows[:, some])
    assert found[1] <= found[0]
    if found[0] > 1e-250:
        assert levels.constant + np.log(found[0]) + known == pytest.approx(exact, abs=1e-9 + error, rel=1e-12)


def test_the_ends_are_close_where_quickscore_knows_the_value():
    """The yardstick: at most 0.15 nats below and 0.5 above."""
    net = make_clinic(diseases=120, findings=150, rng=1)
    rng = np.random.default_rng(0)
    for present in (3, 7, 11):
        while True:
            state = sb.sample(net, 1, rng=int(rng.integers(2**31)))[0]
            on = np.flatnonzero(state[120:]) + 120
            if len(on) >= present:
                break
        evidence = {int(k): 0 for k in range(120, 270) if k not in on} | {int(k): 1 for k in on[:present]}
        exact = sb.log_likelihood(net, evidence)
        found = sb.certify(net, evidence, effort="normal", settings=sb.solvers.CertifySettings(exact_up_to=0))
        assert not found.exact
        assert exact - 0.15 <= found.lower <= exact <= found.upper <= exact + 0.5
        assert sb.certify(net, evidence, effort="normal").exact


@pytest.mark.small
def test_how_many_units_may_be_summed_over_is_checked():
    net = sb.noisy_or({("a", "x"): 0.5}, leak=0.1, prior=0.1)
    with pytest.raises(ParameterError, match="exact_up_to is -1"):
        sb.certify(net, {"x": 1}, settings=sb.solvers.CertifySettings(exact_up_to=-1))


def test_more_effort_never_widens_the_interval():
    net, evidence = clinic(3, 8, 6, 2, False)
    found = [
        sb.certify(net, evidence, effort=effort, settings=sb.solvers.CertifySettings(exact_up_to=0))
        for effort in ("fast", "normal")
    ]
    assert found[0].gap >= found[1].gap
    assert "subproblems of causes" in found[1].upper_from
