"""Variables with states: probabilities from thresholds add up to one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiled import compiled
from sbnet.kernels import thresholds
from sbnet.kernels.codes import NOISY_OR, SIGMOID
from sbnet.questions import reduction
from strategies import INTERPRETED, model_of

pytestmark = pytest.mark.small
inputs = st.lists(st.floats(-30.0, 30.0), min_size=1, max_size=4)


@compiled
def _all(gate, x, log_p, log_odds, parts):
    for k in range(len(x) + 1):
        log_odds[k] = thresholds.log_odds(gate, k, x)
        log_p[k] = parts[k] = 0.0
        for l in range(len(x)):  # noqa: E741
            a, c = thresholds.loads(gate, l + 1, k)
            log_p[k] += thresholds.log_part(gate, l + 1, k, x[l])
            parts[k] += a * x[l] - c * thresholds.t(gate, x[l])


def _table(gate, x):
    x = np.abs(x) + 1e-3 if gate == NOISY_OR else np.array(x)
    tables = [np.zeros(len(x) + 1) for _ in range(3)]
    _all(gate, x, *tables)
    return x, *tables


@given(gate=st.sampled_from([SIGMOID, NOISY_OR]), x=inputs)
def test_probabilities_of_states_add_up_to_one(gate, x):
    _, log_p, log_odds, parts = _table(gate, np.array(x))
    assert np.exp(log_p).sum() == pytest.approx(1.0, abs=1e-12)
    assert parts == pytest.approx(log_p, abs=1e-9)
    assert log_odds == pytest.approx(log_p - log_p[0], abs=1e-9)


def _model(n_states, parents):
    """A network with zero-one-two... weights; parents come first."""
    n_states = np.array(n_states)
    indptr = np.cumsum([0, *map(len, parents)])
    parent = np.array([u for us in parents for u in us], dtype=np.int64)
    child = np.repeat(np.arange(len(n_states)), np.diff(indptr))
    size = (n_states[child] - 1) * (n_states[parent] - 1)
    block = np.cumsum([0, *size])
    order = np.argsort(parent, kind="stable")
    child_indptr = np.searchsorted(parent[order], np.arange(len(n_states) + 1))
    threshold = np.cumsum([0, *(n_states - 1)])
    gate = np.zeros(len(n_states), np.int8)
    weight = np.arange(block[-1], dtype=float)
    return model_of(indptr, parent, child_indptr, child[order], order, weight, gate, n_states, threshold, block)


def test_a_problem_has_a_factor_for_each_threshold_with_hidden_parents():
    model = _model([3, 2, 4, 2], [(), (0,), (0, 1), (2,)])
    problem = reduction.reduce(model, np.array([-1, 0, 2, -1], np.int8))
    assert problem.hidden["variable"].tolist() == [0]  # the last has no observed descendant
    assert problem.known.tolist() == [0]
    assert problem.factors["variable"].tolist() == [1, 2, 2, 2]
    assert problem.factors["level"].tolist() == [1, 1, 2, 3]
    assert problem.slots["column"].tolist() == [0, 1] * 4
    # Edges 0 -> 1 and 0 -> 2 have blocks of 1 x 2 and 3 x 2 weights; 1 -> 2 is observed at its end.
    assert problem.slots["weight"].tolist() == [0, 1, 2, 3, 4, 5, 6, 7]
    assert problem.children["factor"].tolist() == [0, 1, 2, 3]
    assert reduction.components(problem).tolist() == [0]


def test_nothing_is_compiled_without_a_compiler():
    assert (not hasattr(_all, "py_func")) == INTERPRETED
