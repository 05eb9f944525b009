"""Priors by group of edges, and weights that are exactly zero."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import sbnet as sb
from sbnet.estimators import SBNClassifier, SBNDensity
from sbnet.learning.regressions import Design, regress_columns
from tables import quick, rows_of


@pytest.fixture(scope="module")
def table():
    return rows_of(0, 200)


def autoregressive(network):
    return network.graph.parent >= 2


@pytest.mark.small
@pytest.mark.parametrize("optimizer", [sb.SGD(0.2), sb.Adam(0.05), sb.SGD(0.1, momentum=0.5)])
def test_weights_under_a_laplace_prior_come_to_rest_at_zero(optimizer):
    rng = np.random.default_rng(0)
    a = rng.integers(0, 2, 300)
    X = np.column_stack([a, rng.integers(0, 2, 300), np.where(rng.random(300) < 0.1, 1 - a, a)])
    net = sb.layered((3,), autoregressive=True, scale=0.5, rng=0)
    result = sb.fit(net, X, epochs=60, batch_size=50, prior=sb.Laplace(0.1), optimizer=optimizer, shuffle=False)
    weight = result.network.weight_matrix()
    assert weight[1, 0] == weight[2, 1] == 0.0
    assert weight[2, 0] > 1.0
    assert result.network.bias.all()  # biases are free


def test_two_priors_at_once_are_an_elastic_net():
    rng = np.random.default_rng(0)
    a = rng.integers(0, 2, 300)
    X = np.column_stack([a, rng.integers(0, 2, 300), a ^ (rng.random(300) < 0.1), a ^ (rng.random(300) < 0.2)])
    net, prior = (
        sb.layered((4,), autoregressive=True, scale=0.5, rng=0),
        sb.Laplace(0.1).penalty + sb.Gaussian(0.4).penalty,
    )
    optimizer = sb.Adam(0.05, until=400)
    found = sb.fit(net, X, epochs=400, batch_size=300, prior=prior, optimizer=optimizer, rng=0).network
    design = Design.of(X.astype(np.int8), np.ones(300))
    weights, bias = regress_columns(design, lambda k: np.full(k, 10.0), ridge=lambda k: np.full(k, 6.25)).weights()
    assert_allclose(found.weight_matrix(), weights.toarray(), atol=0.01)
    assert_allclose(found.bias, bias, atol=0.01)
    assert found.weight_matrix()[1, 0] == 0.0 < found.weight_matrix()[3, 2] < found.weight_matrix()[2, 0]
    w, h = rng.normal(size=6), rng.normal(size=4)
    assert_allclose(prior.gradient(w, h), np.concatenate([-10.0 * np.sign(w) - 6.25 * w, np.zeros(4)]))


@pytest.mark.small
def test_a_prior_around_a_point_draws_to_it():
    net = sb.layered((3,), autoregressive=True, scale=0.5, rng=0)
    weight, bias = np.array([2.0, -1.0, 0.0]), np.array([1.0, 0.0, -3.0])
    prior = sb.Gaussian([0.5, 1.0, 2.0], bias_scale=2.0).penalty.around(weight, bias)
    assert_array_equal(prior.gradient(weight, bias), 0.0)
    assert_allclose(prior.gradient(weight + 1.0, bias + 1.0), [-4.0, -1.0, -0.25, -0.25, -0.25, -0.25])
    nothing = np.full((4, 3), np.nan)
    found = sb.fit(net, nothing, epochs=400, batch_size=4, prior=prior, optimizer=sb.SGD(0.5)).network
    assert_allclose(np.concatenate([found.weight, found.bias]), np.concatenate([weight, bias]), atol=1e-3)


@pytest.mark.small
def test_a_laplace_prior_around_a_point_comes_to_rest_there():
    net = sb.layered((3,), autoregressive=True, scale=0.5, rng=0)
    weight, bias = np.array([2.0, -1.0, 0.5]), np.array([1.0, 0.0, -3.0])
    prior = sb.Laplace(1.0, bias_scale=1.0).penalty.around(weight, bias)
    nothing = np.full((4, 3), np.nan)
    found = sb.fit(net, nothing, epochs=200, batch_size=4, prior=prior, optimizer=sb.SGD(0.5)).network
    assert_array_equal(np.concatenate([found.weight, found.bias]), np.concatenate([weight, bias]))


@pytest.mark.small
def test_frozen_weights_do_not_shrink():
    X = np.random.default_rng(0).integers(0, 2, (50, 3))
    net = sb.layered((3,), autoregressive=True, scale=0.5, rng=0)
    result = sb.fit(net, X, epochs=5, prior=sb.Laplace(1e-3), frozen=[("x0", "x1")], rng=0)
    assert result.network.weight.tolist() == [net.weight[0], 0.0, 0.0]


@pytest.mark.small
def test_an_optimiser_that_does_not_tell_its_size_climbs_the_prior():
    class Plain:
        def init(self, n):
            return ()

        def step(self, gradient, state, epoch):
            return 0.1 * gradient, state

    X = np.random.default_rng(0).integers(0, 2, (50, 3))
    net = sb.layered((3,), autoregressive=True, scale=0.5, rng=0)
    result = sb.fit(net, X, epochs=5, batch_size=50, prior=sb.Laplace(0.1), optimizer=Plain(), rng=0)
    assert result.network.weight.all()


def test_each_group_of_edges_has_its_prior(table):
    free = quick(prior=None).fit(table)
    assert free.network_ == quick(prior=np.inf).fit(table).network_ == quick(prior={}).fit(table).network_
    sparse = quick(prior={"autoregressive": sb.Laplace(1e-3)}).fit(table).network_
    kept = dict.fromkeys(sparse.graph.parent[~autoregressive(sparse)].tolist())
    assert not sparse.weight[autoregressive(sparse)].any()
    assert list(kept) == [0, 1]  # hidden units keep their edges: they have no prior
    both = quick(prior={"autoregressive": sb.Gaussian(0.5), "hidden": sb.Gaussian(2.0)}).fit(table)
    assert both.network_ == quick(prior={"autoregressive": 0.5, "hidden": 2}).fit(table).network_
    one = quick(prior=sb.Gaussian(1.0)).fit(table)
    assert one.network_ == quick(prior=1.0).fit(table).network_


def test_groups_may_have_priors_of_different_kinds(table):
    density = quick(prior={"autoregressive": sb.Laplace(0.2), "hidden": sb.Gaussian(0.1)}, epochs=20).fit(table)
    network = density.network_
    assert np.abs(network.weight[~autoregressive(network)]).max() < 1.0
    assert 0 < np.count_nonzero(network.weight[autoregressive(network)]) < 15


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"prior": {"lateral": sb.Laplace(0.5)}}, "prior names 'lateral'; the groups of edges are 'hidden' and 'autor"),
        ({"prior": -0.5}, "prior is -0.5; give 'auto', a positive scale such as 2.0, a penalty such as sbnet.Laplace"),
        ({"prior": True}, "prior is True; give 'auto', a positive scale"),
        ({"prior": float("nan")}, "prior is nan; give 'auto', a positive scale"),
        ({"prior": {"hidden": "0.5"}}, "prior is '0.5'; give 'auto', a positive scale"),
        ({"prior": sb.Laplace}, r"prior is the class Laplace; write prior=sb.Laplace\(\)"),
    ],
)
def test_priors_that_contradict_each_other_are_refused(table, arguments, message):
    for learn in ("fit", "partial_fit"):
        with pytest.raises(sb.errors.ParameterError, match=message):
            getattr(SBNDensity(**arguments), learn)(table)


def test_no_hidden_units_has_two_spellings(table):
    assert quick(hidden=0).fit(table).network_ == quick(hidden=()).fit(table).network_
    assert_array_equal(quick(hidden=0).fit(table).network_.names, [f"x{k}" for k in range(6)])


def test_parts_of_a_table_share_a_laplace_prior(table):
    parts = quick(prior=sb.Laplace(1e-3))
    for _ in range(3):
        parts.partial_fit(table)
    assert_allclose(parts.network_.weight, 0.0)


def test_a_classifier_takes_the_prior_of_its_template(table):
    template = quick(prior={"autoregressive": sb.Laplace(1e-3)})
    networks = SBNClassifier(density=template).fit(table[:, 1:], table[:, 0]).networks_
    assert all(not network.weight[network.graph.parent >= 2].any() for network in networks)
