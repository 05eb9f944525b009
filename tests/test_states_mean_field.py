"""Mean field theory for variables with several states, asked as users ask, held to exact sums."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import sbnet as sb
from sbnet.errors import NetworkError
from strategies import state_networks, states_of


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


def test_a_table_is_refused_by_name():
    net = sb.from_edges({("a", "b"): None}, tables={"b": [[0.9, 0.1], [0.2, 0.8]]})
    with pytest.raises(NetworkError, match="variable 'b' has a table, and MeanField.* is for weights; exact_posterior"):
        sb.infer(net, {"b": "yes"})
