"""Wake-sleep learning: the delta rule to the letter, for any graph, and what it comes to on small networks."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.special import expit

import sbnet as sb
from oracle import log_joint
from sbnet.learning import wake_sleep
from strategies import live_units, networks, seeds


def by_hand(J, h, live, hidden, rows, uniform, rate):
    """Wake-sleep as it is written down, on dense matrices; returns J, h, their twins in R, and the mean estimate."""
    n = len(h)
    edge, (J, h) = J != 0, (J.copy(), h.copy())
    R, r, total = np.zeros((n, n)), np.zeros(n), 0.0  # R[j, i]: from unit i to hidden unit j
    drawn = [j for j in range(n) if hidden[j] and live[j]]
    for row, u in zip(rows, uniform, strict=True):
        S = np.where(hidden, 0.0, row)
        for j in drawn[::-1]:  # wake
            S[j] = u[0, j] < expit(R[j] @ S + r[j])
        total += log_joint(J[live][:, live], h[live], S[live])
        total -= sum(S[j] * (R[j] @ S + r[j]) - np.logaddexp(0, R[j] @ S + r[j]) for j in drawn)
        error = (S - expit(J @ S + h)) * live
        J, h = J + rate * np.outer(error, S) * edge, h + rate * error
        S = np.zeros(n)
        for i in np.flatnonzero(live):  # sleep
            S[i] = u[1, i] < expit(J[i] @ S + h[i])
        error = (S - expit(R @ S + r)) * live * hidden
        R, r = R + rate * np.outer(error, S) * (edge.T | edge & ~hidden), r + rate * error
    return J, h, R, r, total / len(rows)


@pytest.mark.small
@given(networks(max_units=9, max_weight=5.0, scales=("tame", "strong")), st.integers(1, 5), seeds)
def test_every_step_is_the_delta_rule(network, n_rows, seed):
    n, random = network.n_units, np.random.default_rng(seed)
    hidden, rate = random.random(n) < random.random(), random.uniform(0.01, 1.0)
    rows = np.where(hidden, np.nan, random.integers(0, 2, (n_rows, n)))
    result = wake_sleep(network, rows, epochs=1, rate=rate, shuffle=False, rng=np.random.default_rng(seed))
    live = np.isin(np.arange(n), live_units(network, rows[0]))
    uniform = np.random.default_rng(seed).random((n_rows, 2, n))
    J, h, R, r, estimate = by_hand(network.weight_matrix(), network.bias, live, hidden, rows, uniform, rate)
    assert_allclose(result.network.weight_matrix(), J, atol=1e-12)
    assert_allclose(result.network.bias, h, atol=1e-12)
    child, parent = np.repeat(np.arange(n), np.diff(network.graph.indptr)), network.graph.parent
    assert_allclose(result.recognition.weight, np.where(hidden[parent], R[parent, child], R[child, parent]), atol=1e-12)
    assert_allclose(result.recognition.bias, r, atol=1e-12)
    assert_allclose(result.estimates, [estimate], atol=1e-10)


@pytest.fixture(scope="module")
def data():
    weight = np.random.default_rng(3).choice([-4.0, 0.0, 4.0], 12)
    bias = [0.0, 0.0, *(-weight.reshape(6, 2).sum(axis=1) / 2)]  # no unit is nearly always on or off
    truth = sb.layered((2, 6)).with_parameters(weight=weight, bias=bias)
    return truth, sb.sample(truth, 400, rng=1)[:, 2:]


def start():
    return sb.layered((2, 6), rng=2, scale=0.1)


def test_learning_raises_the_likelihood_nearly_to_that_of_the_truth(data):
    truth, rows = data
    result = wake_sleep(start(), rows, epochs=100, rate=0.02, rng=0)
    p = rows.mean(axis=0)
    independent = (p * np.log(p) + (1 - p) * np.log(1 - p)).sum()
    before, after, best = (sb.log_likelihood(net, rows).mean() for net in (start(), result.network, truth))
    assert before < independent < after
    assert after - independent > 0.9 * (best - independent)
    assert after - 0.1 < result.estimates[-20:].mean() < after  # on average, it lies below


def test_recognition_finds_the_posterior_where_it_is_factorial():
    edges = {(f"h{k // 3}", f"x{k}"): 4.0 for k in range(6)}  # two causes that have no effect in common
    bias = {f"x{k}": -2.0 for k in range(6)}
    truth = sb.from_edges(edges, bias=bias, names=["h0", "h1", *bias])
    rows = sb.sample(truth, 1000, rng=0)[:, 2:]
    result = wake_sleep(truth, rows, epochs=30, rate=0.02, rng=0)
    R = np.zeros((2, 6))
    R[truth.graph.parent, np.repeat(np.arange(8), np.diff(truth.graph.indptr)) - 2] = result.recognition.weight
    means = expit(rows @ R.T + result.recognition.bias[:2])
    assert np.abs(means - sb.exact_posterior(result.network, rows)[:, :2]).max() < 0.1


def test_an_observed_parent_helps_to_recognise_its_child():
    network = sb.from_edges(
        {("cause", "middle"): 6.0, ("middle", "effect"): 4.0}, bias={"middle": -3.0, "effect": -2.0}
    )
    rows = np.where([False, True, False], np.nan, sb.sample(network, 1000, rng=0))
    result = wake_sleep(network, rows, epochs=10, rng=0)
    cause, effect = result.recognition.weight
    means = expit(result.recognition.bias[1] + rows[:, [0, 2]] @ [cause, effect])
    assert np.abs(means - sb.exact_posterior(result.network, rows)[:, 1]).max() < 0.1


def test_units_without_observed_descendants_do_not_learn():
    network = sb.from_edges({("seen", "unseen"): 2.0, ("unseen", "below"): 1.0})
    result = wake_sleep(network, [{"seen": 1}] * 50, epochs=3, rng=0)
    assert np.array_equal(result.network.weight, network.weight)
    assert np.flatnonzero(result.network.bias).tolist() == [network.index("seen")]
    assert not result.recognition.weight.any()
    assert not result.recognition.bias.any()


def test_equal_seeds_give_equal_weights(data):
    _, rows = data
    one, two, other = (wake_sleep(start(), rows[:50], epochs=3, rng=seed) for seed in (5, 5, 6))
    assert one.network == two.network
    assert np.array_equal(one.recognition.weight, two.recognition.weight)
    assert np.array_equal(one.estimates, two.estimates)
    assert one.network != other.network
    assert one.network != wake_sleep(start(), rows[:50], epochs=3, rng=5, shuffle=False).network


def test_long_tables_are_worked_off_in_blocks_that_do_not_count(data, monkeypatch):
    _, rows = data
    whole = wake_sleep(start(), rows, epochs=2, rng=0)
    monkeypatch.setattr("sbnet.parallel.blocks._WORKING", 500)
    parts = wake_sleep(start(), rows, epochs=2, rng=0)
    assert whole.network == parts.network
    assert_allclose(whole.estimates, parts.estimates)


def test_the_arguments_are_left_alone(data):
    _, rows = data
    network, copy = start(), rows.copy()
    result = wake_sleep(network, rows, epochs=1, rng=0)
    assert network == start()
    assert np.array_equal(rows, copy)
    with pytest.raises(ValueError, match="read-only"):
        result.recognition.weight[0] = 1.0


def test_callbacks_and_interruption_return_what_was_reached(data):
    seen = []

    def stop(epoch, network, estimate):
        seen.append((epoch, network, estimate))
        if epoch == 3:
            raise KeyboardInterrupt

    result = wake_sleep(start(), data[1], epochs=10, callbacks=[stop], rng=0)
    assert result.interrupted
    assert [epoch for epoch, _, _ in seen] == [1, 2, 3]
    assert result.network == seen[-1][1] != seen[0][1]
    assert result.estimates.tolist() == [estimate for _, _, estimate in seen]
    assert repr(result).startswith("WakeSleepResult: 3 epochs in ")
    assert repr(result).endswith(" nats (interrupted)")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"epochs": 0}, "epochs is 0; it must be a whole number, one or more"),
        ({"epochs": True}, "epochs is True; it must be a whole number, one or more"),
        ({"rate": 0.0}, "rate is 0.0; it must be positive and finite"),
        ({"rate": np.nan}, "rate is nan; it must be positive and finite"),
        ({"X": np.empty((0, 6))}, "there are no rows to learn from"),
    ],
)
def test_bad_arguments_are_refused(data, arguments, message):
    with pytest.raises(sb.errors.ParameterError, match=message):
        wake_sleep(start(), arguments.pop("X", data[1]), **arguments)


def test_rows_with_holes_are_sent_to_fit(data):
    holes = data[1].astype(float)
    holes[7, 2] = np.nan
    message = (
        r"^variable 'x2' has no value in row 7, but one in other rows; wake_sleep\(\) needs complete rows. "
        r"Use fit\(\), which takes missing values$"
    )
    with pytest.raises(sb.errors.EvidenceError, match=message):
        wake_sleep(start(), holes)


def test_it_refuses_variables_with_more_states_by_name():
    network = sb.from_edges({("flu", "fever"): [[1.0], [2.0]]}, states={"fever": ["none", "mild", "high"]})
    with pytest.raises(sb.errors.NetworkError, match=r"^variable 'fever' has 3 states.* fit\(\) learns them$"):
        wake_sleep(network, [{"fever": "mild"}])
