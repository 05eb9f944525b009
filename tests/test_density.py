"""A density adds nothing to the mathematics: it prepares tables and passes on what fit and infer_many say."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

import sbnet as sb
from sbnet.estimators import SBNDensity, SBNImputer, Training
from tables import by_hand, classes, quick, rows_of, with_holes


@pytest.fixture(scope="module")
def table():
    return rows_of(0, 120)


@pytest.fixture(scope="module")
def holes(table):
    return with_holes(table)


@pytest.fixture(scope="module")
def density(holes):
    return quick().fit(holes)


@pytest.fixture(scope="module")
def labelled():
    return classes()


def test_a_density_is_what_fit_gives(holes):
    same = {"hidden": (2, 3), "column_mixtures": 0, "epochs": 4, "settings": Training(batch_size=25), "prior": 2.0}
    density = SBNDensity(**same, random_state=7).fit(holes)
    adam = sb.Adam(0.03, until=4)
    settings = {"epochs": 4, "batch_size": 25, "optimizer": adam, "prior": sb.Gaussian(2.0)}
    result = by_hand(holes, (2, 3), np.random.default_rng(7), True, **settings)
    assert density.network_ == result.network
    assert_array_equal(density.bounds_, result.bounds)
    assert density.n_iter_ == 4
    assert density.held_out_bounds_ is None


def test_scores_are_bounds(density, holes):
    scores = density.score_samples(holes)
    solver = sb.MeanField(log_term="xi", tol=1e-3)
    plain = sb.infer_many(density.network_, holes, solver=solver).bound
    assert np.all(scores >= plain)  # from a second start, too
    assert_array_equal(clone_with(density, solver).score_samples(holes), plain)
    assert np.all(scores <= sb.log_likelihood(density.network_, holes) + 1e-12)
    assert density.score(holes) == scores.mean()
    assert density.score_samples(np.full((1, 6), np.nan)) == 0.0  # nothing observed: ln 1


def test_learning_beats_independent_columns(table):
    p = (table.sum(axis=0) + 0.5) / (len(table) + 1)
    independent = np.mean(table * np.log(p) + (1 - table) * np.log(1 - p), axis=0).sum()
    assert SBNDensity(random_state=0).fit(table).score(table) > independent + 0.1


def clone_with(density, solver):
    """The same fitted density with another solver."""
    return pickle.loads(pickle.dumps(density)).set_params(solver=solver)


def test_another_solver_may_score_a_network(density, holes):
    loose = clone_with(density, sb.MeanField(log_term="jensen", enumerate_up_to=0))
    assert loose.score(holes) < density.score(holes) - 0.01


def test_features_are_posterior_means_of_hidden_units(density, holes):
    features = clone_with(density, sb.MeanField(log_term="xi", tol=1e-3)).transform(holes)
    means = sb.infer_many(density.network_, holes, solver=sb.MeanField(log_term="xi", tol=1e-3)).means
    assert_array_equal(features, means[:, :2])
    assert list(density.get_feature_names_out()) == ["sbndensity_h1_0", "sbndensity_h1_1"]
    shallow = clone(density).set_params(hidden=()).fit(holes)  # its features are the columns, without missing cells
    seen = ~np.isnan(holes)
    assert_allclose(shallow.transform(holes)[seen], np.asarray(holes)[seen], atol=1e-12)
    assert list(shallow.get_feature_names_out())[:2] == ["sbndensity_x0=yes", "sbndensity_x1=yes"]


def test_samples_follow_the_network(density):
    drawn = density.sample(20_000)
    assert drawn.shape == (20_000, 6)
    assert drawn.dtype == np.float64
    assert_array_equal(drawn[:5], density.sample(20_000)[:5])
    assert_allclose(drawn.mean(axis=0), sb.exact_posterior(density.network_, [np.nan] * 6)[2:], atol=0.02)
    assert density.sample().shape == (1, 6)


def test_column_mixtures_are_hidden_units_beside_the_columns():
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 2, (2, 400))
    table = pd.DataFrame({"a": a, "b": b, "parity": a ^ b})  # no single regression can tell it
    settings = {"hidden": (), "epochs": 60, "settings": Training(learning_rate=0.1, weight_scale=1.0), "prior": 3.0}
    plain, switched = (SBNDensity(**settings, column_mixtures=k, random_state=0).fit(table) for k in (0, 1))
    assert plain.score(table) == pytest.approx(-3 * np.log(2), abs=0.05)
    assert switched.score(table) > -2 * np.log(2) - 0.2
    assert switched.score(table) == pytest.approx(sb.log_likelihood(switched.network_, table).mean())
    rows = switched.sample(200)
    assert np.mean(rows["a"] ^ rows["b"] == rows["parity"]) > 0.8
    holes = table.astype(float)
    holes.iloc[:50, 2] = np.nan
    template = SBNDensity(**settings, column_mixtures=1)
    filled = SBNImputer(density=template, random_state=0).fit(table).transform(holes)
    assert np.mean((filled[:50, 2] > 0.5) == table["parity"][:50]) > 0.8
    deep = SBNDensity(hidden=(2, 3), column_mixtures=1, epochs=1, random_state=0).fit(table)
    assert deep.transform(table).shape == (400, 5)  # mixture variables are no features
    assert list(deep.get_feature_names_out()) == [f"sbndensity_{name}" for name in deep.network_.names[:5]]
    assert deep.partial_fit(table).n_iter_ == 2


def test_no_prior_has_two_spellings(table):
    one, two = (quick(prior=scale).fit(table).network_ for scale in (None, np.inf))
    assert one == two


# Tables that are hard to learn from


@pytest.mark.parametrize("value", [0.0, 1.0])
@pytest.mark.parametrize("optimizer", ["adam", "sgd"])
def test_a_constant_column(table, value, optimizer):
    X = table.copy()
    X[:, 2] = value
    density = quick(optimizer=optimizer).fit(X)
    X[0, 2] = np.nan
    assert abs(density.impute(X)[0, 2] - value) < 0.1
    assert np.all(np.isfinite(density.score_samples(1 - X)))  # also if the column then holds something else


@pytest.mark.parametrize("autoregressive", [True, False])
def test_a_column_without_observed_cells_is_a_fair_coin_apart_from_everything(holes, autoregressive):
    X = holes.copy()
    X[:, 2] = np.nan
    density = quick(autoregressive=autoregressive).fit(X)
    j = density.network_.weight_matrix()
    assert not j[4].any()
    assert not j[:, 4].any()
    assert_allclose(density.impute(X)[:, 2], 0.5)
    without = np.delete(X, 2, axis=1)
    observed = X.copy()
    observed[:, 2] = 1.0
    exact = [sb.log_likelihood(density.network_, rows) for rows in (X, observed)]
    assert_allclose(exact[1], exact[0] + np.log(0.5))
    assert_allclose(density.score_samples(observed), density.score_samples(X) + np.log(0.5), atol=0.01)
    assert_allclose(density.impute(X)[:, [0, 1, 3, 4, 5]][~np.isnan(without)], without[~np.isnan(without)])


def test_a_table_without_observed_cells():
    nothing = np.full((5, 3), np.nan)
    density = quick().fit(nothing)
    assert density.score(nothing) == 0.0
    assert_allclose(density.impute(nothing), 0.5)


def test_more_units_than_rows(table):
    density = SBNDensity(hidden=(5, 40), random_state=0).fit(table[:4])
    assert np.all(np.isfinite(density.network_.weight))
    assert np.all(density.score_samples(table) < 0.0)


def test_learning_may_stop_early(table):
    density = SBNDensity(
        hidden=6,
        epochs=400,
        prior=None,
        settings=Training(learning_rate=0.3, validation_fraction=0.3, patience=3),
    )
    density.set_params(random_state=0).fit(table[:30])
    assert density.n_iter_ < 400
    assert len(density.held_out_bounds_) == density.n_iter_
    assert density.held_out_bounds_.argmax() == density.n_iter_ - 4


# Weights


def test_a_weight_of_zero_is_no_row_and_weights_count(holes):
    weight = np.ones(len(holes))
    weight[::4] = 0.0
    weighted = quick(batch_size=10).fit(holes, sample_weight=weight)
    assert weighted.network_ == quick(batch_size=10).fit(holes[weight > 0]).network_
    weight = np.arange(1.0, 1.0 + len(holes))
    same, prior = {"batch_size": 50, "optimizer": sb.Adam(0.01)}, sb.Gaussian(1.0)
    result = by_hand(holes, (8,), np.random.default_rng(1), True, weights=weight, prior=prior, epochs=3, **same)
    solver = sb.MeanField(log_term="xi", tol=1e-3)  # as fit() has it
    settings = Training(**same)
    template = SBNDensity(settings=settings, epochs=3, solver=solver, column_mixtures=0, prior=1.0, random_state=1)
    for estimator in (template, SBNImputer(density=template)):
        assert estimator.fit(holes, sample_weight=weight).network_ == result.network


@pytest.mark.parametrize("weight", [np.zeros(120), -np.ones(120)])
def test_impossible_weights_are_refused(table, weight):
    with pytest.raises(ValueError, match="(?i)sample.weight"):
        quick().fit(table, sample_weight=weight)


# Learning by parts


def test_the_first_part_is_one_epoch(holes):
    one = SBNDensity(prior={"hidden": 2.0, "autoregressive": 0.5}, random_state=3).partial_fit(holes)
    assert (
        one.network_
        == SBNDensity(prior={"hidden": 2.0, "autoregressive": 0.5}, random_state=3, epochs=1).fit(holes).network_
    )
    assert one.n_iter_ == 1
    assert one.n_samples_seen_ == 120


@pytest.mark.parametrize("optimizer", [sb.Adam(0.05), sb.SGD(0.2, momentum=0.9, decay=0.5)])
def test_parts_go_on_where_the_last_stopped(holes, optimizer):
    solver = sb.MeanField(log_term="xi", tol=1e-12)  # so that warm starts, which parts do not have, make no difference
    training = Training(optimizer=optimizer, batch_size=120)
    settings = {"hidden": 2, "settings": training, "prior": None, "solver": solver}
    whole = SBNDensity(**settings, epochs=4, random_state=0).fit(holes)
    parts = SBNDensity(**settings, epochs=99, random_state=0)
    for _ in range(4):
        parts = pickle.loads(pickle.dumps(parts.partial_fit(holes)))
    assert_allclose(parts.network_.weight, whole.network_.weight, atol=1e-5)  # the square root of tol, and Adam's scale
    assert_allclose(parts.bounds_, whole.bounds_, atol=1e-6)
    assert parts.n_iter_ == 4


def test_the_prior_counts_once_for_all_parts(table):
    rows = np.tile(table, (5, 1))
    whole = quick(prior={"hidden": 0.1, "autoregressive": 0.5}, epochs=1).fit(rows)
    parts, free = quick(prior={"hidden": 0.1, "autoregressive": 0.5}), quick(prior=None)
    for part in np.split(rows, 50):
        parts.partial_fit(part)
        free.partial_fit(part)
    size = [np.abs(model.network_.weight).mean() for model in (whole, parts, free)]
    assert 0.5 * size[0] < size[1] < size[2]


def test_parts_follow_fit_and_must_have_the_same_columns(density, table):
    more = pickle.loads(pickle.dumps(density)).partial_fit(table)
    assert more.n_iter_ == density.n_iter_ + 1
    assert more.network_ != density.network_
    with pytest.raises(ValueError, match="5 features"):
        more.partial_fit(table[:, :5])


# Tables in other forms


def test_named_columns_become_named_units(holes):
    frame = pd.DataFrame(holes, columns=[f"question {k}" for k in range(6)])
    density = quick().fit(frame)
    assert density.network_.names == ("h1_0", "h1_1", *frame.columns)
    assert_array_equal(density.feature_names_in_, frame.columns)
    assert density.network_.weight.tolist() == quick().fit(holes).network_.weight.tolist()
    features = density.set_output(transform="pandas").transform(frame)
    assert list(features.columns) == ["sbndensity_h1_0", "sbndensity_h1_1"]
    with pytest.raises(ValueError, match="feature names should match"):
        density.score(frame.rename(columns={"question 3": "q"}))
    with pytest.raises(sb.errors.NetworkError, match="'h1_1' has the name of a hidden variable; rename the column"):
        quick().fit(frame.rename(columns={"question 3": "h1_1"}))


@pytest.mark.parametrize("kind", ["Int8", "boolean", "object", "Float32"])
def test_tables_of_every_type(holes, kind):
    frame = pd.DataFrame(holes).astype("Float64").astype(kind)
    if kind == "object":
        frame = frame.where(frame.notna(), None)
    assert quick().fit(frame).network_ == quick().fit(holes).network_


# Working together with scikit-learn


def test_pipelines_and_searches(labelled):
    X, y = labelled
    features = make_pipeline(quick(epochs=3), LogisticRegression()).fit(X, y)
    assert features.predict_proba(X).shape == (180, 3)
    grid = {"hidden": [(), 3], "prior": [0.1, 1.0, sb.Laplace(0.5)]}
    search = GridSearchCV(quick(epochs=3), grid, cv=2).fit(X)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


def test_progress_is_shown_if_asked(table, capsys, monkeypatch):
    monkeypatch.setattr("sbnet.parallel.blocks._PATIENCE", 0.0)
    quick().fit(table)
    assert capsys.readouterr().err == ""
    quick(verbose=1).fit(table)
    assert "of 8, bound -" in capsys.readouterr().err


def test_an_interruption_leaves_no_estimator_behind(table, monkeypatch):
    def interrupted(*args, **kwargs):
        return replace(sb.fit(*args, **kwargs), interrupted=True)

    monkeypatch.setattr("sbnet.estimators._learning.fit", interrupted)
    density = SBNDensity()
    for learn in (density.fit, density.partial_fit):
        with pytest.raises(KeyboardInterrupt):
            learn(table)
        assert not hasattr(density, "network_")
        assert not hasattr(density, "n_samples_seen_")
