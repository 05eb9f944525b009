"""The estimators add nothing to the mathematics: they prepare tables and pass on what fit and infer_many say."""

from __future__ import annotations

import io
import pickle
from dataclasses import replace

import joblib
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit, softmax
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline

import sbnet as sb
from sbnet.datasets import load_digits
from sbnet.estimators import SBNClassifier, SBNDensity, SBNImputer, _base

ALL = (SBNDensity, SBNClassifier, SBNImputer)
QUICK = {"hidden": 2, "switches": 0, "epochs": 8, "batch_size": 50, "learning_rate": 0.05, "random_state": 0}
PAPER = {"lateral": False, "optimizer": sb.SGD(0.05), "batch_size": 1, "epochs": 2, "prior_scale": None}


def rows_of(seed, n, width=6, tilt=0.0):
    """Rows with strong correlations: two fair causes, each of which pushes every column up or down; and a tilt."""
    rng = np.random.default_rng(seed)
    weight = rng.choice([-4.0, 4.0], size=(width, 2))
    bias = -weight.sum(axis=1) / 2 + rng.choice([-tilt, tilt], size=width)
    network = sb.layered((2, width), scale=0.0)
    truth = network.with_parameters(weight=weight.ravel(), bias=np.r_[0.0, 0.0, bias])
    return sb.sample(truth, n, rng=seed + 100)[:, 2:].astype(float)


def with_holes(table, share=0.2, seed=5):
    return np.where(np.random.default_rng(seed).random(table.shape) < share, np.nan, table)


@pytest.fixture(scope="module")
def table():
    return rows_of(0, 120)


@pytest.fixture(scope="module")
def holes(table):
    return with_holes(table)


@pytest.fixture(scope="module")
def density(holes):
    return SBNDensity(**QUICK).fit(holes)


@pytest.fixture(scope="module")
def labelled():
    return with_holes(np.concatenate([rows_of(seed, 60, tilt=3.0) for seed in (0, 1, 2)])), np.repeat(
        ["a", "b", "c"], 60
    )


@pytest.fixture(scope="module")
def classifier(labelled):
    return SBNClassifier(**QUICK).fit(*labelled)


def by_hand(cells, hidden, generator, lateral, weights=None, **settings):
    """What an estimator does, in a few lines, for a table that has no empty column."""
    width = cells.shape[1]
    network = sb.layered((*hidden, width), rng=generator, scale=_base.WEIGHT_SCALE, lateral=lateral)
    weight = np.where(network.graph.parent < network.n_units - width, network.weight, 0.0)
    bias = network.bias.copy()
    for k in range(width):
        seen = ~np.isnan(cells[:, k])
        w = np.ones(len(cells)) if weights is None else weights
        ones = w[seen] @ cells[seen, k]
        bias[network.n_units - width + k] = np.log((ones + 0.5) / (w[seen].sum() - ones + 0.5))
    network = network.with_parameters(weight=weight, bias=bias)
    return sb.fit(network, cells, sample_weight=weights, rng=generator, **settings)


def test_a_density_is_what_fit_gives(holes):
    same = {"hidden": (2, 3), "switches": 0, "epochs": 4, "batch_size": 25, "lateral_prior_scale": None}
    density = SBNDensity(**same, random_state=7).fit(holes)
    adam = sb.Adam(_base.LEARNING_RATE, until=4)
    settings = {"epochs": 4, "batch_size": 25, "optimizer": adam, "prior": sb.Gaussian(_base.PRIOR_SCALE)}
    result = by_hand(holes, (2, 3), np.random.default_rng(7), True, **settings)
    assert density.network_ == result.network
    assert_array_equal(density.bounds_, result.bounds)
    assert density.n_iter_ == 4
    assert density.held_out_bounds_ is None


def test_the_papers_procedure_is_what_fit_gives(labelled):
    X, y = labelled
    classifier = SBNClassifier(hidden=(2, 3), **PAPER, random_state=7).fit(X, y)
    for k, name in enumerate(classifier.classes_):
        result = by_hand(X[y == name], (2, 3), np.random.default_rng([7, k]), False, epochs=2)  # the defaults of fit
        assert classifier.networks_[k] == result.network


def test_scores_are_bounds(density, holes):
    scores = density.score_samples(holes)
    solver = sb.MeanField(log_term="xi", tol=1e-3)
    assert_array_equal(scores, sb.infer_many(density.network_, holes, solver=solver).bound)
    assert np.all(scores <= sb.log_likelihood(density.network_, holes) + 1e-12)
    assert density.score(holes) == scores.mean()
    assert density.score_samples(np.full((1, 6), np.nan)) == 0.0  # nothing observed: ln 1


def test_learning_beats_independent_columns(table):
    p = (table.sum(axis=0) + 0.5) / (len(table) + 1)
    independent = np.mean(table * np.log(p) + (1 - table) * np.log(1 - p), axis=0).sum()
    assert SBNDensity(random_state=0).fit(table).score(table) > independent + 0.1


def test_another_solver_may_score_a_network(density, holes):
    sharp = clone(density).set_params(solver=sb.MeanField())
    sharp.__dict__.update({key: value for key, value in vars(density).items() if key.endswith("_")})
    assert sharp.score(holes) > density.score(holes)


def test_features_are_posterior_means_of_hidden_units(density, holes):
    features = density.transform(holes)
    means = sb.infer_many(density.network_, holes, solver=sb.MeanField(log_term="xi", tol=1e-3)).means
    assert_array_equal(features, means[:, :2])
    assert list(density.get_feature_names_out()) == ["sbndensity_h1_0", "sbndensity_h1_1"]
    with pytest.raises(sb.errors.ParameterError, match="a network without hidden layers has no features to give"):
        clone(density).set_params(hidden=()).fit(holes).transform(holes)


def test_samples_follow_the_network(density):
    drawn = density.sample(20_000)
    assert drawn.shape == (20_000, 6)
    assert drawn.dtype == np.float64
    assert_array_equal(drawn[:5], density.sample(20_000)[:5])
    assert_allclose(drawn.mean(axis=0), sb.exact_posterior(density.network_, [np.nan] * 6)[2:], atol=0.02)
    assert density.sample().shape == (1, 6)


def test_filled_cells_are_posterior_means_and_observed_cells_keep_every_bit():
    rng = np.random.default_rng(0)
    X = np.where(rng.random((80, 4)) < 0.5, rng.normal(size=(80, 4)), -0.0)
    X[::3, 3] = np.nan
    before = X.copy()
    imputer = SBNImputer(hidden=(), epochs=5, random_state=0).fit(X)
    filled = imputer.transform(X)
    seen = ~np.isnan(X)
    assert_array_equal(X.view(np.int64), before.view(np.int64))  # the input is not touched
    assert_array_equal(filled.view(np.int64)[seen], X.view(np.int64)[seen])  # bits, so that -0.0 is not 0.0
    j, h = imputer.network_.weight_matrix(), imputer.network_.bias
    assert_allclose(filled[::3, 3], expit((X[::3, :3] > 0.0) @ j[3, :3] + h[3]), atol=1e-12)
    density = SBNDensity(hidden=(), switches=0, epochs=5, random_state=0).fit(X)
    assert_array_equal(density.impute(X), filled)
    assert_array_equal(imputer.transform(X[1:2]), X[1:2])  # no holes at all


@pytest.mark.parametrize("lateral", [True, False])
def test_draws_have_the_posterior_means(table, lateral):
    imputer = SBNImputer(strategy="sample", lateral=lateral, **QUICK).fit(table)
    row = np.array([[1.0, np.nan, 0.0, np.nan, np.nan, 1.0]])
    drawn = imputer.transform(np.repeat(row, 20_000, axis=0))
    assert set(np.unique(drawn)) == {0.0, 1.0}
    assert_array_equal(drawn[:, [0, 2, 5]], np.repeat(row[:, [0, 2, 5]], 20_000, axis=0))
    means = imputer.set_params(strategy="mean").transform(row)[0]
    assert_allclose(drawn.mean(axis=0), means, atol=0.02)


def test_draws_keep_the_correlations_of_the_network(table):
    imputer = SBNImputer(strategy="sample", lateral=False, **{**QUICK, "epochs": 60}).fit(table)
    drawn = imputer.transform(np.full((20_000, 6), np.nan))
    states = sb.sample(imputer.network_, 20_000, rng=9)[:, 2:]
    expected = np.corrcoef(states.T)
    assert np.abs(expected - np.eye(6)).max() > 0.2
    assert_allclose(np.corrcoef(drawn.T), expected, atol=0.04)


def test_a_class_is_chosen_by_bound_and_prior(classifier, labelled):
    X, y = labelled
    bounds = [sb.infer_many(n, X, solver=sb.MeanField(log_term="xi", tol=1e-3)).bound for n in classifier.networks_]
    joint = np.column_stack(bounds) + np.log(1 / 3)
    assert_allclose(classifier.decision_function(X), joint)
    assert_array_equal(classifier.predict(X), classifier.classes_[joint.argmax(axis=1)])
    assert_allclose(classifier.predict_proba(X), softmax(joint, axis=1))
    assert_allclose(classifier.predict_log_proba(X), np.log(classifier.predict_proba(X)))
    assert classifier.score(X, y) > 0.6
    assert classifier.n_iter_ == len(classifier.bounds_[0]) == 8


def test_two_classes_have_one_decision(labelled):
    X, y = labelled[0][:120], labelled[1][:120]
    classifier = SBNClassifier(**QUICK, class_prior=[0.9, 0.1]).fit(X, y)
    decision = classifier.decision_function(X)
    assert decision.shape == (120,)
    assert_allclose(decision, np.diff(classifier.predict_log_proba(X), axis=1)[:, 0])
    assert_array_equal(classifier.predict(X), np.where(decision > 0, "b", "a"))


def test_a_row_without_observed_cells_has_the_prior(labelled):
    X, y = labelled[0][:150], labelled[1][:150]
    nothing = np.full((1, 6), np.nan)
    assert_allclose(SBNClassifier(**QUICK).fit(X, y).predict_proba(nothing), [[0.4, 0.4, 0.2]])
    given = SBNClassifier(**QUICK, class_prior=[0.5, 0.3, 0.2]).fit(X, y)
    assert_allclose(given.predict_proba(nothing), [[0.5, 0.3, 0.2]])


def test_processes_learn_the_same_networks(classifier, labelled):
    parallel = clone(classifier).set_params(n_jobs=2).fit(*labelled)
    assert parallel.networks_ == classifier.networks_
    assert_array_equal(parallel.predict_proba(labelled[0]), classifier.predict_proba(labelled[0]))


def test_the_digits_are_told_apart():
    digits = load_digits()
    classifier = SBNClassifier(hidden=(6,), epochs=6, learning_rate=0.03, random_state=0)
    classifier.fit(digits.train[::7], digits.train_target[::7])  # 100 of each
    assert classifier.score(digits.test[::20], digits.test_target[::20]) > 0.85


# Tables that are hard to learn from


@pytest.mark.parametrize("value", [0.0, 1.0])
@pytest.mark.parametrize("optimizer", ["adam", "sgd"])
def test_a_constant_column(table, value, optimizer):
    X = table.copy()
    X[:, 2] = value
    density = SBNDensity(**QUICK, optimizer=optimizer).fit(X)
    X[0, 2] = np.nan
    assert abs(density.impute(X)[0, 2] - value) < 0.1
    assert np.all(np.isfinite(density.score_samples(1 - X)))  # also if the column then holds something else


@pytest.mark.parametrize("lateral", [True, False])
def test_a_column_without_observed_cells_is_a_fair_coin_apart_from_everything(holes, lateral):
    X = holes.copy()
    X[:, 2] = np.nan
    density = SBNDensity(**QUICK, lateral=lateral).fit(X)
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
    assert_allclose(SBNImputer(**QUICK).fit(nothing).transform(nothing), 0.5)
    assert SBNDensity(**QUICK).fit(nothing).score(nothing) == 0.0


def test_a_column_that_one_class_never_shows(labelled):
    X, y = labelled[0].copy(), labelled[1]
    X[y == "a", 2] = np.nan
    proba = SBNClassifier(**QUICK).fit(X, y).predict_proba(np.nan_to_num(X))
    assert np.all(np.isfinite(proba))


def test_a_class_with_one_row(labelled):
    X, y = labelled
    keep = np.r_[np.flatnonzero(y != "c"), np.flatnonzero(y == "c")[:1]]
    classifier = SBNClassifier(**QUICK, validation_fraction=0.2, patience=3).fit(X[keep], y[keep])
    assert list(classifier.classes_) == ["a", "b", "c"]
    assert np.all(np.isfinite(classifier.predict_log_proba(X)))
    assert_allclose(np.exp(classifier.class_log_prior_), [60 / 121, 60 / 121, 1 / 121])
    assert classifier.score(X[keep], y[keep]) > 0.6


def test_one_class_only(labelled):
    X = labelled[0][:20]
    classifier = SBNClassifier(**QUICK).fit(X, np.full(20, "only"))
    assert set(classifier.predict(X)) == {"only"}
    assert_array_equal(classifier.predict_proba(X), np.ones((20, 1)))


def test_more_units_than_rows(table):
    density = SBNDensity(hidden=(5, 40), random_state=0).fit(table[:4])
    assert np.all(np.isfinite(density.network_.weight))
    assert np.all(density.score_samples(table) < 0.0)


def test_learning_may_stop_early(table):
    density = SBNDensity(hidden=6, epochs=400, learning_rate=0.3, validation_fraction=0.3, patience=3, prior_scale=None)
    density.set_params(random_state=0).fit(table[:30])
    assert density.n_iter_ < 400
    assert len(density.held_out_bounds_) == density.n_iter_
    assert density.held_out_bounds_.argmax() == density.n_iter_ - 4


# Weights


def test_a_weight_of_zero_is_no_row_and_weights_count(holes):
    weight = np.ones(len(holes))
    weight[::4] = 0.0
    settings = {**QUICK, "batch_size": 10}
    weighted = SBNDensity(**settings).fit(holes, sample_weight=weight)
    assert weighted.network_ == SBNDensity(**settings).fit(holes[weight > 0]).network_
    weight = np.arange(1.0, 1.0 + len(holes))
    settings = {"epochs": 3, "batch_size": 50, "optimizer": sb.Adam(0.01), "prior": sb.Gaussian(1.0)}
    result = by_hand(holes, (8,), np.random.default_rng(1), True, weights=weight, **settings)
    same = {"hidden": 8, "lateral": True, "switches": 0, "epochs": 3, "batch_size": 50, "optimizer": sb.Adam(0.01)}
    for estimator in (SBNDensity, SBNImputer):
        learned = estimator(**same, prior_scale=1.0, lateral_prior_scale=None, random_state=1).fit(
            holes, sample_weight=weight
        )
        assert learned.network_ == result.network


def test_weights_enter_the_priors_of_classes(labelled):
    X, y = labelled
    weight = np.where(y == "a", 2.0, np.where(y == "b", 1.0, 0.0))
    classifier = SBNClassifier(**QUICK).fit(X, y, sample_weight=weight)
    assert_allclose(np.exp(classifier.class_log_prior_), [2 / 3, 1 / 3, 0.0])
    assert_array_equal(classifier.predict_proba(X)[:, 2], 0.0)  # a class without weight is never chosen
    assert set(classifier.predict(X)) == {"a", "b"}


@pytest.mark.parametrize("weight", [np.zeros(120), -np.ones(120)])
def test_impossible_weights_are_refused(table, weight):
    with pytest.raises(ValueError, match="(?i)sample.weight"):
        SBNDensity(**QUICK).fit(table, sample_weight=weight)


# Learning by parts


def test_the_first_part_is_one_epoch(holes):
    one = SBNDensity(random_state=3).partial_fit(holes)
    assert one.network_ == SBNDensity(random_state=3, epochs=1).fit(holes).network_
    assert one.n_iter_ == 1
    assert one.n_samples_seen_ == 120


@pytest.mark.parametrize("optimizer", [sb.Adam(0.05), sb.SGD(0.2, momentum=0.9, decay=0.5)])
def test_parts_go_on_where_the_last_stopped(holes, optimizer):
    solver = sb.MeanField(log_term="xi", tol=1e-12)  # so that warm starts, which parts do not have, make no difference
    settings = {"hidden": 2, "optimizer": optimizer, "batch_size": 120, "prior_scale": None, "solver": solver}
    whole = SBNDensity(**settings, epochs=4, random_state=0).fit(holes)
    parts = SBNDensity(**settings, epochs=99, random_state=0)
    for _ in range(4):
        parts = pickle.loads(pickle.dumps(parts.partial_fit(holes)))
    assert_allclose(parts.network_.weight, whole.network_.weight, atol=1e-6)
    assert_allclose(parts.bounds_, whole.bounds_, atol=1e-6)
    assert parts.n_iter_ == 4


def test_the_prior_counts_once_for_all_parts(table):
    rows = np.tile(table, (5, 1))
    strong = {**QUICK, "prior_scale": 0.1}
    whole = SBNDensity(**{**strong, "epochs": 1}).fit(rows)
    parts, free = SBNDensity(**strong), SBNDensity(**QUICK, prior_scale=None)
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


def test_thresholds(table):
    numbers = np.where(table == 1.0, 7.5, 3.0)
    numbers[0, 0] = np.nan
    expected = np.where(np.isnan(numbers), np.nan, table)
    for binarize, X in ((5.0, numbers), (None, expected), (0.0, expected)):
        assert SBNDensity(**QUICK, binarize=binarize).fit(X).network_ == SBNDensity(**QUICK).fit(expected).network_


@pytest.mark.parametrize("bad", [-1.0, 0.5, 42.0])
def test_without_a_threshold_cells_are_binary(table, bad):
    X = pd.DataFrame(table, columns=list("abcdef"))
    X.iloc[17, 3] = bad
    message = rf"column 3 \('d'\) holds {bad} in row 17; with binarize=None cells are 0, 1 or NaN"
    with pytest.raises(sb.errors.ParameterError, match=message):
        SBNDensity(binarize=None).fit(X)


def test_infinite_cells_are_refused(table):
    X = table.copy()
    X[0, 0] = np.inf
    with pytest.raises(ValueError, match="infinity"):
        SBNImputer(**QUICK).fit(X)


def test_named_columns_become_named_units(holes):
    frame = pd.DataFrame(holes, columns=[f"question {k}" for k in range(6)], index=np.arange(120) * 10)
    density = SBNDensity(**QUICK).fit(frame)
    assert density.network_.names == ("h1_0", "h1_1", *frame.columns)
    assert_array_equal(density.feature_names_in_, frame.columns)
    assert density.network_.weight.tolist() == SBNDensity(**QUICK).fit(holes).network_.weight.tolist()
    features = density.set_output(transform="pandas").transform(frame)
    assert list(features.columns) == ["sbndensity_h1_0", "sbndensity_h1_1"]
    imputer = SBNImputer(**QUICK).set_output(transform="pandas")
    filled = imputer.fit_transform(frame)
    assert list(filled.columns) == list(frame.columns) == list(imputer.get_feature_names_out())
    assert_array_equal(filled.index, frame.index)
    assert not filled.isna().any().any()
    with pytest.raises(ValueError, match="feature names should match"):
        density.score(frame.rename(columns={"question 3": "q"}))
    with pytest.raises(sb.errors.NetworkError, match="column 'h1_1' has the name of a hidden unit; rename the column"):
        SBNDensity(**QUICK).fit(frame.rename(columns={"question 3": "h1_1"}))


@pytest.mark.parametrize("kind", ["Int8", "boolean", "object", "Float32"])
def test_tables_of_every_type(holes, kind):
    frame = pd.DataFrame(holes).astype("Float64").astype(kind)
    if kind == "object":
        frame = frame.where(frame.notna(), None)
    assert SBNDensity(**QUICK).fit(frame).network_ == SBNDensity(**QUICK).fit(holes).network_


# Working together with scikit-learn


def test_pipelines_searches_and_calibration(labelled):
    X, y = labelled
    quick = {**QUICK, "epochs": 3}
    features = make_pipeline(SBNDensity(**quick), LogisticRegression()).fit(X, y)
    assert features.predict_proba(X).shape == (180, 3)
    assert make_pipeline(SBNImputer(**quick), LogisticRegression()).fit(X, y).score(X, y) > 0.5
    search = GridSearchCV(SBNDensity(**quick), {"hidden": [(), 3], "prior_scale": [0.1, 1.0, sb.Laplace(0.5)]}, cv=2)
    search.fit(X)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    scores = cross_val_score(SBNClassifier(**quick), X, y, cv=3, scoring="neg_log_loss")
    assert np.isfinite(scores).all()
    calibrated = CalibratedClassifierCV(SBNClassifier(**quick), cv=2).fit(X, y)
    assert_allclose(calibrated.predict_proba(X).sum(axis=1), 1.0)


@pytest.mark.parametrize("make", ALL)
def test_copies_give_the_same_answers(make, labelled):
    X, y = labelled
    fitted = make(**QUICK, optimizer=sb.Adam(0.02), prior_scale=sb.Laplace(1.0), solver=sb.MeanField(tol=1e-3)).fit(
        X, y
    )
    method = "predict_proba" if make is SBNClassifier else "transform"
    expected = getattr(fitted, method)(X)
    file = io.BytesIO()
    joblib.dump(fitted, file)
    file.seek(0)
    for copy in (pickle.loads(pickle.dumps(fitted)), joblib.load(file), clone(fitted).fit(X, y)):
        assert_array_equal(getattr(copy, method)(X), expected)


@pytest.mark.parametrize("make", ALL)
def test_estimators_show_themselves(make, labelled):
    estimator = make(hidden=(3,))
    assert repr(estimator) == f"{make.__name__}(hidden=(3,))"
    assert make.__name__ in estimator._repr_html_inner()
    with pytest.raises(NotFittedError):
        getattr(estimator, "predict" if make is SBNClassifier else "transform")(labelled[0])


def test_progress_is_shown_if_asked(table, capsys, monkeypatch):
    monkeypatch.setattr("sbnet.execution._PATIENCE", 0.0)
    SBNDensity(**QUICK).fit(table)
    assert capsys.readouterr().err == ""
    SBNDensity(**QUICK, verbose=1).fit(table)
    assert "of 8, bound -" in capsys.readouterr().err


def test_an_interruption_leaves_no_estimator_behind(table, monkeypatch):
    def interrupted(*args, **kwargs):
        return replace(sb.fit(*args, **kwargs), interrupted=True)

    monkeypatch.setattr("sbnet.estimators._base.fit", interrupted)
    density = SBNDensity()
    with pytest.raises(KeyboardInterrupt):
        density.fit(table)
    assert not hasattr(density, "network_")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"optimizer": "newton"}, "optimizer is 'newton'; give 'adam', 'sgd', or an object such as sbnet.SGD"),
        ({"solver": sb.Gibbs()}, "estimators learn with it: give an sbnet.MeanField"),
        ({"patience": 2}, "patience watches held-out rows; give their share with validation_fraction="),
        ({"validation_fraction": 1.5}, "validation_fraction is 1.5; it must lie between 0 and 1"),
        ({"hidden": (3, 0)}, "the size of a layer is a positive whole number; got 0"),
        ({"hidden": 2.5}, "the size of a layer is a positive whole number; got 2.5"),
        ({"epochs": 0}, "epochs is 0; it must be a whole number, one or more"),
        ({"learning_rate": -1.0}, "rate is -1.0; it must be positive"),
        ({"prior_scale": 0.0}, "the scales of a prior are positive"),
    ],
)
def test_bad_arguments_are_refused(labelled, arguments, message):
    for make in ALL:
        with pytest.raises(sb.errors.SBNetError, match=message):
            make(**arguments).fit(*labelled)


def test_bad_arguments_of_one_estimator_are_refused(labelled):
    X, y = labelled
    with pytest.raises(sb.errors.ParameterError, match="strategy is 'median'; give 'mean' or 'sample'"):
        SBNImputer(strategy="median").fit(X)
    for prior in ([0.5, 0.5], [0.5, 0.6, 0.1], [1.5, -0.5, 0.0]):
        with pytest.raises(sb.errors.ParameterError, match="give a probability for each of the 3 classes, with sum 1"):
            SBNClassifier(class_prior=prior).fit(X, y)
    with pytest.raises(ValueError, match="NaN"):
        SBNClassifier().fit(X, np.full(len(X), np.nan))


def test_no_prior_has_two_spellings(table):
    one, two = (SBNDensity(**QUICK, prior_scale=scale).fit(table).network_ for scale in (None, np.inf))
    assert one == two


def test_switches_are_hidden_units_beside_the_columns():
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 2, (2, 400))
    table = pd.DataFrame({"a": a, "b": b, "parity": a ^ b})  # no single regression can tell it
    settings = {"hidden": (), "epochs": 60, "learning_rate": 0.1, "weight_scale": 1.0, "prior_scale": 3.0}
    settings["lateral_prior_scale"] = None
    plain, switched = (SBNDensity(**settings, switches=k, random_state=0).fit(table) for k in (0, 1))
    assert plain.score(table) == pytest.approx(-3 * np.log(2), abs=0.05)
    assert switched.score(table) > -2 * np.log(2) - 0.2
    assert switched.score(table) == pytest.approx(sb.log_likelihood(switched.network_, table).mean())
    rows = switched.sample(200)
    assert np.mean(rows[:, 0].astype(int) ^ rows[:, 1].astype(int) == rows[:, 2]) > 0.8
    holes = table.astype(float)
    holes.iloc[:50, 2] = np.nan
    filled = SBNImputer(**settings, switches=1, random_state=0).fit(table).transform(holes)
    assert np.mean((filled[:50, 2] > 0.5) == table["parity"][:50]) > 0.8
    deep = SBNDensity(hidden=(2, 3), switches=1, epochs=1, random_state=0).fit(table)
    assert deep.transform(table).shape == (400, 5)  # switches are no features
    assert list(deep.get_feature_names_out()) == [f"sbndensity_{name}" for name in deep.network_.names[:5]]
    assert deep.partial_fit(table).n_iter_ == 2
