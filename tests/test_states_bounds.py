"""Bounds, certificates and samplers for variables with states, against sums over all joint states."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp, xlogy

import oracle
import sbnet as sb
from sbnet.errors import EvidenceError, NetworkError, TooManyHiddenError
from strategies import state_networks, states_of

pytestmark = pytest.mark.small

FEVER = ("none", "mild", "high")
ROUNDING = 1e-11


def by_number(network):
    return {network.index(name): table for name, table in network.tables.items()}


def possible_states(network, row):
    """Joint states of a positive probability that agree with the evidence, and their ln P."""
    tables = by_number(network)
    S, log_p = oracle.weights_of_states(network.model, network.bias, row, tables=tables)
    kept = [not oracle.cannot_be_of_states(network.model, network.bias, s, tables) for s in S]
    return S[kept], log_p[kept]


def magnitude(network):
    return 1.0 + np.abs(network.bias).sum() + np.abs(network.weight).sum()


def on(network, S):
    """Joint states by columns: is the variable in that state?"""
    variable, state = network.columns
    return (S[:, variable] == state) * 1.0


@pytest.fixture
def mixed():
    """A noisy-MAX variable with three states, one with sequential logits, and a table."""
    return sb.from_edges(
        [("flu", "fever", [[0.7], [0.4]]), ("cold", "fever", [[0.5], [0.0]]), ("fever", "ill", None),
         ("fever", "mood", [[1.0, 2.0], [-1.0, 0.5]])],
        bias={"flu": -1.0, "cold": -2.0, "fever": [0.1, 0.05], "mood": [0.2, -0.3]},
        states={"fever": FEVER, "mood": ["good", "fair", "poor"]},
        gate={"fever": "noisy-or"},
        tables={"ill": [[0.9, 0.1], [0.4, 0.6], [0.2, 0.8]]},
    )  # fmt: skip


# --- exact answers ----------------------------------------------------------------------------------------------------


@given(state_networks(max_units=4), st.data())
@settings(max_examples=40, deadline=None)
def test_pairs_are_those_of_a_sum_over_all_joint_states(network, data):
    row = data.draw(states_of(network))
    S, log_p = possible_states(network, row)
    if not len(S):
        return
    S1 = on(network, S)
    expected = (S1 * np.exp(log_p - logsumexp(log_p))[:, None]).T @ S1
    assert sb.exact_pairs(network, row) == pytest.approx(expected, abs=1e-8)


@given(state_networks(max_units=4), st.data())
@settings(max_examples=40, deadline=None)
def test_kl_is_that_of_a_sum_over_all_joint_states(network, data):  # eq. (12)
    row, rng = data.draw(states_of(network)), np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    Q = [np.eye(K)[s] if s >= 0 else rng.dirichlet(np.ones(K)) for K, s in zip(network.n_states, row, strict=True)]
    S, log_p = possible_states(network, row)
    if not len(S) or logsumexp(log_p) < -500.0:
        return
    q = np.prod([[Q[v][k] for v, k in enumerate(s)] for s in S], axis=1)
    found = sb.kl(network, row, np.concatenate([p[1:] for p in Q]))
    if q.sum() < 1.0 - 1e-9:
        assert found == np.inf
    else:
        expected = np.sum(xlogy(q, q) - q * (log_p - logsumexp(log_p)))
        assert found == pytest.approx(max(expected, 0.0), abs=ROUNDING * magnitude(network), rel=1e-9)


def test_kl_refuses_means_of_states_that_are_no_distribution(mixed):
    means = np.full(len(mixed.bias), 0.6)
    with pytest.raises(EvidenceError, match="the means of 'fever' add up to 1.2"):
        sb.kl(mixed, {"ill": 1}, means)
