"""An imputer fills holes with posterior means, or with draws from the posterior, and touches nothing else."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit
from scipy.stats import t as student
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import sbnet as sb
from sbnet.estimators import SBNDensity, SBNImputer
from sbnet.inference.solvers.places import BINARY, Place
from tables import classes, quick, rows_of, with_holes


@pytest.fixture(scope="module")
def table():
    return rows_of(0, 120)


def test_filled_cells_are_posterior_means_and_observed_cells_keep_every_bit():
    rng = np.random.default_rng(0)
    X = np.where(rng.random((80, 4)) < 0.5, 1.0, -0.0)
    X[::3, 3] = np.nan
    before = X.copy()
    imputer = SBNImputer(density=SBNDensity(epochs=5), hidden=(), random_state=0).fit(X)
    filled = imputer.transform(X)
    seen = ~np.isnan(X)
    assert_array_equal(X.view(np.int64), before.view(np.int64))  # the input is not touched
    assert_array_equal(filled.view(np.int64)[seen], X.view(np.int64)[seen])  # bits, so that -0.0 is not 0.0
    j, h = imputer.network_.weight_matrix(), imputer.network_.bias
    assert_allclose(filled[::3, 3], expit((X[::3, :3] > 0.0) @ j[3, :3] + h[3]), atol=1e-12)
    density = SBNDensity(hidden=(), column_mixtures=0, epochs=5, random_state=0).fit(X)
    assert_allclose(density.impute(X), filled, rtol=1e-15)
    assert_array_equal(imputer.transform(X[1:2]), X[1:2])  # no holes at all


def test_a_density_fills_in_what_an_imputer_does():
    """Also where missing cells depend on one another, of which mean field theory is overconfident."""
    rng = np.random.default_rng(0)
    cause = rng.random((300, 1)) < 0.5
    X = np.where(rng.random((300, 6)) < 0.1, ~cause, cause).astype(float)
    density = SBNDensity(epochs=5, random_state=0).fit(X)
    X[:, 2:][rng.random((300, 4)) < 0.7] = np.nan
    assert_array_equal(density.impute(X), SBNImputer.from_networks(density.mixture_, random_state=0).transform(X))


@pytest.mark.parametrize("autoregressive", [True, False])
def test_draws_have_the_posterior_means(table, autoregressive):
    imputer = SBNImputer(strategy="sample", density=quick(autoregressive=autoregressive)).fit(table)
    row = np.array([[1.0, np.nan, 0.0, np.nan, np.nan, 1.0]])
    drawn = imputer.transform(np.repeat(row, 20_000, axis=0))
    assert set(np.unique(drawn)) == {0.0, 1.0}
    assert_array_equal(drawn[:, [0, 2, 5]], np.repeat(row[:, [0, 2, 5]], 20_000, axis=0))
    means = imputer.set_params(strategy="mean", particles=20_000).transform(row)[0]  # 256 may be wrong by 0.03
    assert_allclose(drawn.mean(axis=0), means, atol=0.015)


def test_draws_keep_the_correlations_of_the_network(table):
    imputer = SBNImputer(strategy="sample", density=quick(autoregressive=False, epochs=60)).fit(table)
    drawn = imputer.transform(np.full((20_000, 6), np.nan))
    states = sb.sample(imputer.network_, 20_000, rng=9)[:, 2:]
    expected = np.corrcoef(states.T)
    assert np.abs(expected - np.eye(6)).max() > 0.2
    assert_allclose(np.corrcoef(drawn.T), expected, atol=0.04)


def test_a_table_without_observed_cells():
    nothing = np.full((5, 3), np.nan)
    assert_allclose(SBNImputer(density=quick()).fit(nothing).transform(nothing), 0.5)


def test_infinite_cells_are_refused(table):
    X = table.copy()
    X[0, 0] = np.inf
    with pytest.raises(ValueError, match="infinity"):
        SBNImputer(density=quick()).fit(X)


def test_a_table_with_names_gives_a_table_with_names(table):
    frame = pd.DataFrame(with_holes(table), columns=[f"question {k}" for k in range(6)], index=np.arange(120) * 10)
    imputer = SBNImputer(density=quick()).set_output(transform="pandas")
    filled = imputer.fit_transform(frame)
    assert list(filled.columns) == list(frame.columns) == list(imputer.get_feature_names_out())
    assert_array_equal(filled.index, frame.index)
    assert not filled.isna().any().any()


def test_an_imputer_stands_before_any_classifier():
    X, y = classes()
    assert make_pipeline(SBNImputer(density=quick(epochs=3)), LogisticRegression()).fit(X, y).score(X, y) > 0.5


def test_an_unknown_strategy_is_refused(table):
    with pytest.raises(sb.errors.ParameterError, match="strategy is 'median'; give 'mean', 'mode' or 'sample'"):
        SBNImputer(strategy="median").fit(table)


def test_means_are_near_the_truth_where_mean_field_is_too_sure():
    rng = np.random.default_rng(0)
    table = ((rng.random((400, 12)) < 0.02) != (rng.random((400, 1)) < 0.5)).astype(float)  # columns mostly agree
    imputer = SBNImputer(density=SBNDensity(hidden=0, prior=sb.Laplace(5.0), epochs=20), random_state=0).fit(table)
    holes = with_holes(table[:20], 0.6)
    exact, gone = np.array([sb.exact_posterior(imputer.network_, row) for row in holes]), np.isnan(holes)
    mean_field, sampled = (
        np.abs(imputer.set_params(particles=number).transform(holes) - exact)[gone].mean() for number in (0, 256)
    )
    assert sampled < mean_field / 2


def test_means_depend_neither_on_threads_nor_on_the_other_rows(table):
    holes = with_holes(table, 0.4)
    imputer = SBNImputer(density=quick(random_state=None)).fit(table)
    filled = imputer.transform(holes)
    assert_array_equal(imputer.set_params(n_jobs=1).transform(holes[::-1])[::-1], filled)
    assert_array_equal(np.vstack([imputer.transform(row[None]) for row in holes[:5]]), filled[:5])


@pytest.mark.parametrize("orders", [1, 2])
def test_multiple_draws_are_complete_tables_from_networks_of_their_own(table, orders):
    holes = with_holes(table, 0.3)
    imputer = SBNImputer(density=quick(orders=orders), multiple=3).fit(holes)
    tables = imputer.draws(holes)
    seen = ~np.isnan(holes)
    assert len(tables) == len(imputer.draw_networks_) == 3
    for drawn in tables:
        assert_array_equal(drawn[seen], holes[seen])
        assert set(np.unique(drawn)) == {0.0, 1.0}
    assert (tables[0] != tables[1]).any()
    assert imputer.draw_networks_[0] != imputer.draw_networks_[1]
    assert_array_equal(imputer.draws(holes), tables)  # a whole number as random_state
    assert imputer.transform(holes).shape == holes.shape  # whatever `multiple` is


def test_draws_come_back_as_the_table_was_given():
    words = pd.DataFrame({"a": ["yes", "no", None, "no"] * 15, "b": ["x", "y", "x", None] * 15, "c": [1, 2, 3, 3] * 15})
    imputer = SBNImputer(density=quick(), multiple=2).fit(words)
    for drawn in imputer.draws(words):
        assert list(drawn.columns) == ["a", "b", "c"]
        assert set(drawn["a"]) == {"yes", "no"}
    frame = pd.DataFrame(with_holes(rows_of(0, 60)), columns=list("abcdef"))
    for drawn in SBNImputer(density=quick(), multiple=2).set_output(transform="pandas").fit(frame).draws(frame):
        assert list(drawn.columns) == list("abcdef")
        assert not drawn.isna().any().any()


def test_equal_rows_are_drawn_apart(table):
    imputer = SBNImputer(density=quick(), multiple=1).fit(table)
    drawn = imputer.draws(np.full((500, 6), np.nan))[0]
    assert 0.2 < drawn[:, 0].mean() < 0.8


@pytest.mark.parametrize("setting", [{"particles": -1}, {"multiple": 0}, {"particles": 1.5}])
def test_impossible_numbers_are_refused(table, setting):
    ((name, value),) = setting.items()
    with pytest.raises(sb.errors.ParameterError, match=f"{name} is {value}|{name} must be"):
        SBNImputer(density=quick(), **setting).fit(table)


def test_draws_without_networks_for_them_are_refused(table):
    with pytest.raises(sb.errors.ParameterError, match="set it before fit"):
        SBNImputer(density=quick()).fit(table).draws(table)


def covered(n_tables, n_rows=150, share=0.4):
    """How often intervals by Rubin's rules hold the proportions of four columns, cells missing completely at random."""
    edges = {("a", "b"): 2.5, ("a", "c"): -2.0, ("b", "c"): 1.5, ("c", "d"): 2.0}
    network = sb.from_edges(edges, bias={"a": -0.5, "b": -1.0, "c": 0.3, "d": -1.0})
    truth, settings = sb.exact_posterior(network, {}), SBNDensity(hidden=0, prior=sb.Laplace(2.0), epochs=30)
    hits = 0
    for k in range(n_tables):
        rng = np.random.default_rng(k)
        whole = sb.sample(network, n_rows, rng=rng).astype(float)
        holes = np.where(rng.random(whole.shape) < share, np.nan, whole)
        tables = np.array(SBNImputer(density=settings, multiple=5, random_state=k).fit(holes).draws(holes))
        estimates, within = tables.mean(axis=1), (tables.var(axis=1) / n_rows).mean(axis=0)
        extra = (1 + 1 / 5) * estimates.var(axis=0, ddof=1)
        wide = student.ppf(0.975, 4 * (1 + within / extra) ** 2) * np.sqrt(within + extra)
        hits += (np.abs(estimates.mean(axis=0) - truth) < wide).sum()
    return hits / (4 * n_tables)


@pytest.mark.slow
def test_intervals_from_draws_cover_a_proportion_as_often_as_they_say():
    share = covered(150)
    print(f"intervals of 95 % from five draws hold the proportion in {100 * share:.1f} % of 600 cases")
    assert 0.92 < share < 0.985


def test_an_imputer_of_networks_fills_as_the_one_that_learned_them(table):
    learned = SBNImputer(density=quick(), random_state=0).fit(table)
    density = SBNDensity.from_networks(sb.NetworkMixture(learned.networks_, learned._names()))
    again = SBNImputer.from_networks(density.mixture_, random_state=0)
    holes = np.where(np.random.default_rng(0).random(table.shape) < 0.2, np.nan, table)
    assert_array_equal(again.transform(holes), learned.transform(holes))
    states = density._states(density.network_, density._table(holes, reset=False)[0])
    network = density.network_
    places = [Place(name, np.array([network.index(name)]), BINARY, network.states[name]) for name in learned._names()]
    probabilities = again.cell_probabilities(states, places)
    missing = np.isnan(holes)
    found = np.column_stack([each[:, 1] for each in probabilities])
    assert_array_equal(found[missing], again.transform(holes)[missing])
    for each in probabilities:
        assert_allclose(each.sum(axis=1), 1.0, rtol=1e-12)
    with pytest.raises(sb.errors.ParameterError, match="networks is None; give a NetworkMixture, or a Network"):
        SBNImputer.from_networks(None)


def test_units_that_are_no_sigmoid_units_are_filled_by_another_solver():
    net = sb.noisy_or({("flu", "fever"): 0.9, ("cold", "fever"): 0.2}, leak=0.01, prior={"flu": 0.1, "cold": 0.2})
    filled = SBNImputer.from_networks(net).transform(pd.DataFrame({"flu": [np.nan], "cold": [0.0], "fever": [1.0]}))
    exact = sb.exact_posterior(net, {"cold": 0, "fever": 1})
    assert_allclose(filled[0, 0], exact.means[net.index("flu")], atol=1e-6)
