"""Mean field theory for variables with several states, asked as users ask, held to exact sums."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import sbnet as sb
from strategies import state_networks, states_of

pytestmark = pytest.mark.filterwarnings("ignore::sbnet.errors.ConvergenceWarning")


def rounding(network):
    return 1e-12 * (1.0 + np.abs(network.weight).sum() + np.abs(network.bias).sum())


@pytest.mark.small
@pytest.mark.parametrize("log_term", ["exact", "xi", "quadratic", "jensen"])
@given(data=st.data(), enumerate_up_to=st.sampled_from([0, 4]))
def test_bounds_stay_below_ln_p_and_never_fall(log_term, data, enumerate_up_to):  # eq. (11), footnote 4
    network = data.draw(state_networks(tables=False))
    row = data.draw(states_of(network))
    exact = sb.log_likelihood(network, row)
    assume(exact > -600.0)  # what is rarer counts as impossible, or nearly so
    post = sb.infer(network, row, solver=sb.MeanField(log_term=log_term, enumerate_up_to=enumerate_up_to))
    assert post.bound <= exact + rounding(network)
    assert np.diff(post.trace).min(initial=0.0) >= -rounding(network) - (1e-6 if log_term == "exact" else 0.0)
    for name in network.names:
        shares = post[name]
        if isinstance(shares, float):
            shares = {"no": 1.0 - shares, "yes": shares}
        assert sum(shares.values()) == pytest.approx(1.0, abs=1e-9)
        assert min(shares.values()) >= -1e-12


@pytest.mark.small
@given(data=st.data())
def test_one_row_and_a_table_of_it_agree(data):
    network = data.draw(state_networks(tables=False))
    row = data.draw(states_of(network))
    assume(sb.log_likelihood(network, row) > -600.0)
    alone, among = sb.infer(network, row), sb.infer_many(network, np.array([row, row]))
    assert among.bound.tolist() == [alone.bound] * 2
    assert np.array_equal(among.means[1], alone.means)


def test_the_exact_answer_where_hidden_variables_do_not_meet():
    net = sb.from_edges(
        {("flu", "fever"): [[1.0], [2.0]]}, bias={"flu": -2.0, "fever": [-1.0, -0.5]},
        states={"fever": ["none", "mild", "high"]},
    )  # fmt: skip
    post = sb.infer(net, {"fever": "high"})
    assert post.bound == pytest.approx(sb.log_likelihood(net, {"fever": "high"}), abs=1e-9)
    assert post["flu"] == pytest.approx(sb.exact_posterior(net, {"fever": "high"})["flu"], abs=1e-6)


@pytest.mark.small
@given(data=st.data())
def test_bounds_with_tables_stay_below_ln_p_and_never_fall(data):  # zeros in tables too
    network = data.draw(state_networks())
    assume(network.tables)
    row = data.draw(states_of(network))
    exact = sb.log_likelihood(network, row)
    assume(exact > -600.0)
    post = sb.infer(network, row)
    assert post.bound <= exact + rounding(network)
    assert np.diff(post.trace).min(initial=0.0) >= -1e-9
    alone = sb.infer_many(network, np.array([row, row]))
    assert alone.bound.tolist() == [post.bound] * 2


def test_a_table_of_zeros_and_ones_is_answered_from_a_state_that_can_be():
    net = sb.from_edges(
        {("a", "xor"): None, ("b", "xor"): None},
        tables={"xor": [[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [1.0, 0.0]]]},
        bias={"a": 0.5, "b": -0.2},
    )
    post = sb.infer(net, {"xor": "yes"})
    assert sb.log_likelihood(net, {"xor": "yes"}) - 1.0 < post.bound <= sb.log_likelihood(net, {"xor": "yes"})
    assert {round(post["a"]), round(post["b"])} == {0, 1}


@pytest.mark.small
@pytest.mark.parametrize("log_term", ["exact", "xi", "quadratic"])
@given(data=st.data())
def test_the_gradient_is_that_of_finite_differences(log_term, data):  # eqs. (34)-(35), for any number of states
    network = data.draw(state_networks(tables=False, scales=("tame",), max_units=4, max_states=4))
    row = data.draw(states_of(network))
    assume(sb.log_likelihood(network, row) > -100.0)
    solver = sb.MeanField(log_term=log_term, enumerate_up_to=0, tol=1e-12)
    found = sb.gradient(network, row[None], solver=solver)
    for what, step in (("weight", found.weight), ("bias", found.bias)):
        values = getattr(network, what)
        for k in range(min(len(values), 3)):
            size = 1e-5 * min(1.0, values[k]) if network.gate.any() and values[k] > 0.0 else 1e-5
            ends = []
            for sign in (1.0, -1.0):
                moved = values.copy()
                moved[k] += sign * size
                assume(not (moved < 0.0).any() or not network.gate.any())
                net = network.with_parameters(**{what: moved})
                ends.append(sb.infer(net, row, solver=solver, start=found.means[0]).bound)
            assert (ends[0] - ends[1]) / (2 * size) == pytest.approx(step[k], rel=2e-3, abs=2e-3)


def test_learning_raises_the_bound_and_finds_the_states():
    truth = sb.from_edges(
        {("mood", "smile"): [[1.0, 3.0]], ("mood", "walk"): [[2.0, -1.0], [0.5, 2.0]]},
        bias={"mood": [0.5, -0.5], "smile": -1.0, "walk": [-0.5, 0.2]},
        states={"mood": ["bad", "fair", "good"], "walk": ["none", "short", "long"]},
    )  # fmt: skip
    X = sb.sample(truth, 1500, rng=0)
    begin = truth.with_parameters(weight=np.zeros(len(truth.weight)), bias=np.zeros(len(truth.bias)))
    result = sb.fit(begin, X, epochs=150, batch_size=1500, rng=0, optimizer=sb.Adam(0.1))
    learned = sb.log_likelihood(result.network, X).mean()
    assert learned > sb.log_likelihood(begin, X).mean() + 0.1
    assert learned >= sb.log_likelihood(truth, X).mean()  # the maximum of a likelihood is no lower
