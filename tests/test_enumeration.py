"""Exact sums over joint states of variables with two to four states, both gates, against all states one by one."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oracle
import sbnet as sb
from sbnet.exact import enumeration
from sbnet.exact.enumeration import Effort, Reduced, enumerate_states
from sbnet.kernels.codes import NOISY_OR
from sbnet.questions import reduction
from strategies import model_of

pytestmark = pytest.mark.small
seeds = st.integers(0, 2**32 - 1)


class Variables:
    """As much of a network as exact sums look at, with any number of states."""

    def __init__(self, seed, n=6, scale=2.0):
        rng = np.random.default_rng(seed)
        n_states, gate = rng.integers(2, 5, n), (rng.random(n) < 0.4).astype(np.int8)
        parents = [np.flatnonzero(rng.random(v) < 0.5) for v in range(n)]
        indptr, parent = np.cumsum([0, *map(len, parents)]), np.concatenate(parents).astype(np.int64)
        child = np.repeat(np.arange(n), np.diff(indptr))
        block = np.cumsum([0, *((n_states[child] - 1) * (n_states[parent] - 1))])
        threshold = np.cumsum([0, *(n_states - 1)])
        noisy = np.repeat(gate, n_states - 1) == NOISY_OR
        self.bias = np.where(noisy, rng.uniform(1e-3, 0.5, len(noisy)), rng.normal(0.0, scale, len(noisy)))
        weight = rng.normal(0.0, scale, block[-1])
        noisy = np.repeat(gate[child], np.diff(block)) == NOISY_OR
        weight = np.where(noisy, np.abs(weight), weight)
        order = np.argsort(parent, kind="stable")
        ptr = np.searchsorted(parent[order], np.arange(n + 1))
        self.model = model_of(indptr, parent, ptr, child[order], order, weight, gate, n_states, threshold, block)
        self.columns = reduction.columns(self.model)
        self.gate, self.weight, self.n_edges, self.names = gate, weight, len(parent), [f"v{v}" for v in range(n)]
        hidden = rng.random(n) < 0.6
        self.states, self._cache = np.where(hidden, -1, rng.integers(0, n_states)).astype(np.int8), {}


def rows_of(many, n):
    """Other rows of the same variables."""
    rng = np.random.default_rng(0)
    states = rng.integers(0, many.model.n_states, (n, len(many.states)))
    return np.where(rng.random(states.shape) < 0.5, -1, states).astype(np.int8)


@given(seed=seeds)
def test_evidence_shifts_biases_by_the_weights_of_states(seed):
    many = Variables(seed)
    rows = rows_of(many, 3)
    expected = [oracle.absorbed(many.model, many.bias, row) for row in rows]
    assert reduction.absorb_rows(many.model, many.bias, rows) == pytest.approx(np.array(expected), abs=1e-12)
    assert reduction.absorb_rows(many.model, many.bias, rows[:1]) == pytest.approx(np.array(expected[:1]), abs=1e-12)


@settings(max_examples=50)
@given(seed=seeds, way=st.sampled_from(["arrays", "elimination", "threads"]))
def test_sums_over_joint_states(seed, way):
    many, monkeypatch = Variables(seed), pytest.MonkeyPatch()
    if way == "elimination":
        monkeypatch.setattr(enumeration, "_ARRAYS", -1)
    if way == "threads":
        monkeypatch.setattr(enumeration, "_ROWS", 1)
    rows = np.concatenate([many.states[None, :], rows_of(many, 2)])
    log_p, means = enumerate_states(many, rows, Effort(25, 2, progress=False))
    monkeypatch.undo()
    for r, row in enumerate(rows):
        expected, probabilities = oracle.exact_of_states(many.model, many.bias, row)
        assert log_p[r] == pytest.approx(expected, abs=1e-10)
        summed = ~np.isnan(means[r])
        assert means[r, summed] == pytest.approx(probabilities[summed], abs=1e-10)
        live = reduction.live_variables(many.model, row)
        assert np.array_equal(summed, live[reduction.columns(many.model)[0]])


def test_every_joint_state_is_met_once_wherever_a_part_begins():
    many = Variables(3)
    group = max(Reduced(many, many.states).groups, key=lambda group: group.bits)
    n = int(np.prod(group.radix))
    whole, each = group._part(0, n), [group._part(k, k + 1) for k in range(n)]
    terms = np.exp([part[0] for part in each])
    assert terms.sum() == pytest.approx(np.exp(whole[0]) * whole[1], rel=1e-12)
    assert len({tuple(part[2:]) for part in each}) == n


@pytest.mark.parametrize("large", [1e3, 3e7])
def test_small_leaks_survive_large_weights(large):
    edges = {(c, "x"): large * k for k, c in enumerate("abc", 1)} | {("a", "y"): 1e-30, ("d", "y"): 1e-30}
    bias = {"x": 1e-9, "a": -20.0, "b": -20.0, "c": -20.0, "d": 0.0, "y": np.log(2.0)}
    net = sb.from_edges(edges, bias=bias, gate={"x": "noisy-or", "y": "noisy-or"}, names=["a", "b", "c", "d", "x", "y"])
    none, one = 3 * -np.logaddexp(0, -20.0) + np.log(1e-9), np.log(-np.expm1(3 * -np.logaddexp(0, -20.0)))
    none, one = none - np.log(2.0), one - np.log(2.0)  # y; a, b, c come and go twice, once for each state of d
    row = np.array([[-1, -1, -1, -1, 1, 1]], np.int8)
    log_p, _ = enumerate_states(net, row, Effort(25, 1, progress=False))
    assert log_p[0] == pytest.approx(np.logaddexp(none, one), abs=1e-9)
    assert Reduced(net, row[0]).sums(25).total == pytest.approx(np.logaddexp(none, one), abs=1e-9)


@pytest.mark.parametrize("limit", [3, 5])
def test_a_limit_counts_joint_states(limit):
    many = Variables(3)
    row = Reduced(many, many.states)
    bits = max(group.bits for group in row.groups)
    if bits > limit:
        with pytest.raises(sb.errors.TooManyHiddenError, match=f"the limit is {limit}"):
            enumerate_states(many, many.states[None, :], Effort(limit, 1, progress=False))
    assert row.sums(limit).large.any() == (bits > limit)


SMALL = """
import sys
import sbnet as sb
net = sb.noisy_or({("flu", "fever"): 0.9, ("cold", "fever"): 0.2, ("flu", "cough"): 0.5}, leak=0.01, prior=0.1)
sb.log_likelihood(net, {"fever": 1})
print(sb.exact_posterior(net, {"fever": 1}))
sb.exact_pairs(net, {"fever": 1})
clinic = sb.datasets.example_clinic()
print(sb.exact_posterior(clinic, {"fever": 1, "cough": 1}))
assert "numba" not in sys.modules, "the compiler was imported"
"""


def test_small_exact_answers_do_without_the_compiler():
    subprocess.run([sys.executable, "-c", SMALL], check=True)
