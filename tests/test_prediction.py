"""Predictions of variables that have no say in the evidence, against sums over the joint states of their parents."""

from __future__ import annotations

import itertools
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit

import oracle
from sbnet.kernels.codes import NOISY_OR
from sbnet.questions import prediction
from sbnet.questions.prediction import predict_rows
from sbnet.questions.reduction import absorb_rows, make_model

pytestmark = pytest.mark.small
seeds = st.integers(0, 2**32 - 1)
SUMMED = 64  # joint states of the parents of a sigmoid variable


def variables(rng, n, most_states, scale, density=0.6):
    """A model of both gates, its biases, rows of evidence, and means of which some are known."""
    n_states, gate = rng.integers(2, most_states + 1, n), (rng.random(n) < 0.4).astype(np.int8)
    child, parent = np.nonzero(np.tril(rng.random((n, n)) < density, -1))
    width = (n_states[child] - 1) * (n_states[parent] - 1)
    weight = rng.normal(0.0, scale, width.sum())
    weight = np.where(np.repeat(gate[child], width) == NOISY_OR, np.abs(weight), weight)
    noisy = np.repeat(gate, n_states - 1) == NOISY_OR
    bias = np.where(noisy, rng.uniform(1e-3, 0.5, len(noisy)), rng.normal(0.0, scale, len(noisy)))
    states = np.where(rng.random((3, n)) < 0.7, -1, rng.integers(0, n_states, (3, n))).astype(np.int8)
    means = np.full((3, len(bias)), np.nan)
    model = make_model(child, parent, weight, gate, n_states)
    for r, v in np.argwhere((states >= 0) | (rng.random(states.shape) < 0.2)):
        q = np.eye(n_states[v])[states[r, v]] if states[r, v] >= 0 else rng.dirichlet(np.ones(n_states[v]))
        means[r, model.threshold[v] : model.threshold[v + 1]] = q[1:]
    return model, bias, states, means


def distribution(gate, x):
    """P(v = k) of all states, from the inputs of the thresholds."""
    if gate == NOISY_OR:
        at_most = np.exp(-np.append(np.cumsum(x[::-1])[::-1], 0.0))
        return np.diff(at_most, prepend=0.0)
    return np.cumprod([1.0, *expit(x)]) * np.append(expit(-x), 1.0)


def one_by_one(model, h, states, means):
    """Means of one row, by sums over the joint states of parents; of many, thresholds are taken as independent."""
    means = means.copy()
    for v, K in enumerate(model.n_states):
        own = slice(model.threshold[v], model.threshold[v + 1])
        if not np.isnan(means[own]).any():
            continue
        hidden = [u for u in model.parent[model.indptr[v] : model.indptr[v + 1]] if states[u] < 0]
        q = {u: means[model.threshold[u] : model.threshold[u + 1]] for u in hidden}
        total, sigmoids, n = np.zeros(K), np.zeros(K - 1), 0
        for joint in itertools.product(*[range(model.n_states[u]) for u in hidden]):
            S, n = states.copy(), n + 1
            S[hidden] = joint
            p = np.prod([q[u][s - 1] if s > 0 else 1.0 - q[u].sum() for u, s in zip(hidden, joint, strict=True)])
            x = oracle.absorbed(model, h, S)[own]
            total, sigmoids = total + p * distribution(model.gate[v], x), sigmoids + p * expit(x)
        if model.gate[v] != NOISY_OR and n > SUMMED:
            total = np.cumprod([1.0, *sigmoids]) * np.append(1.0 - sigmoids, 1.0)
        means[own] = total[1:]
    return means


@given(seed=seeds, most_states=st.integers(2, 4))
def test_predictions_are_sums_over_joint_states(seed, most_states):
    rng = np.random.default_rng(seed)
    model, bias, states, given_ = variables(rng, 6 if most_states > 2 else 9, most_states, 2.0)
    found = given_.copy()
    predict_rows(model, states, absorb_rows(model, bias, states), found)
    expected = np.array([one_by_one(model, bias, *row) for row in zip(states, given_, strict=True)])
    assert found == pytest.approx(expected, abs=2e-7)
    few = np.array([model.n_states[model.parent[a:b]].prod() <= SUMMED for a, b in itertools.pairwise(model.indptr)])
    if few[model.gate != NOISY_OR].all():
        assert found == pytest.approx(expected, abs=1e-13)
    assert np.array_equal(found[~np.isnan(given_)], given_[~np.isnan(given_)])  # what is known stays


@pytest.mark.parametrize("most_states", [2, 3])
def test_a_row_has_the_same_digits_alone_and_among_others(most_states, monkeypatch):
    rng = np.random.default_rng(0)
    model, bias, _, _ = variables(rng, 24, most_states, 1.0)
    states = np.where(rng.random((40, 24)) < 0.8, -1, rng.integers(0, model.n_states, (40, 24))).astype(np.int8)
    absorbed, together = absorb_rows(model, bias, states), np.full((40, len(bias)), np.nan)
    predict_rows(model, states, absorbed, together)
    for at_once in (1, 100, prediction._AT_ONCE):
        monkeypatch.setattr(prediction, "_AT_ONCE", at_once)
        for r in range(0, 40, 7):
            alone = np.full((1, len(bias)), np.nan)
            predict_rows(model, states[r : r + 1], absorbed[r : r + 1], alone)
            assert np.array_equal(alone[0], together[r], equal_nan=True)


@given(seed=seeds)
def test_predictions_are_probabilities_whatever_the_weights(seed):
    rng = np.random.default_rng(seed)
    model, bias, states, found = variables(rng, 12, 3, 10.0 ** rng.uniform(0.0, 3.0))
    predict_rows(model, states, absorb_rows(model, bias, states), found)
    assert np.all((found >= 0.0) & (found <= 1.0))
    assert np.all(np.add.reduceat(found, model.threshold[:-1], axis=1) <= 1.0 + 1e-12)


def test_variables_without_parents_have_their_own_probabilities():
    none = np.zeros(0, np.int64)
    model = make_model(none, none, np.zeros(0), np.array([0, 1], np.int8), np.array([3, 3]))
    bias, found = np.array([[0.3, -1.0, 0.2, 0.1]]), np.full((1, 4), np.nan)
    predict_rows(model, np.full((1, 2), -1, np.int8), bias, found)
    assert found[0, :2] == pytest.approx(distribution(0, bias[0, :2])[1:], abs=1e-15)
    assert found[0, 2:] == pytest.approx(distribution(NOISY_OR, bias[0, 2:])[1:], abs=1e-15)


def test_predictions_do_without_the_compiler():
    asked = "import sys, sbnet.questions.prediction; assert 'numba' not in sys.modules"
    subprocess.run([sys.executable, "-c", asked], check=True)


def test_variables_with_the_same_ancestors_are_predicted_together(monkeypatch):
    """Effects stand among their causes in a network's order; they are a second group, and not one group each."""
    child, parent = np.array([1, 3, 3, 5, 5, 5]), np.array([0, 0, 2, 0, 2, 4])
    model = make_model(child, parent, np.ones(6), np.ones(6, np.int8), np.full(6, 2))
    groups, predict = [], prediction._predict
    monkeypatch.setattr(prediction, "_predict", lambda *all: (groups.append(all[-1].tolist()), predict(*all)))
    means = np.full((1, 6), np.nan)
    predict_rows(model, np.full((1, 6), -1, np.int8), np.full((1, 6), 0.1), means)
    assert groups == [[0, 2, 4], [1, 3, 5]]
    assert not np.isnan(means).any()
