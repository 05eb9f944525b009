"""An imputer fills holes with posterior means, or with draws from the posterior, and touches nothing else."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import sbnet as sb
from sbnet.estimators import SBNDensity, SBNImputer
from tables import classes, quick, rows_of, with_holes


@pytest.fixture(scope="module")
def table():
    return rows_of(0, 120)


def test_filled_cells_are_posterior_means_and_observed_cells_keep_every_bit():
    rng = np.random.default_rng(0)
    X = np.where(rng.random((80, 4)) < 0.5, rng.normal(size=(80, 4)), -0.0)
    X[::3, 3] = np.nan
    before = X.copy()
    imputer = SBNImputer(density=SBNDensity(epochs=5), hidden=(), binarize=0.0, random_state=0).fit(X)
    filled = imputer.transform(X)
    seen = ~np.isnan(X)
    assert_array_equal(X.view(np.int64), before.view(np.int64))  # the input is not touched
    assert_array_equal(filled.view(np.int64)[seen], X.view(np.int64)[seen])  # bits, so that -0.0 is not 0.0
    j, h = imputer.network_.weight_matrix(), imputer.network_.bias
    assert_allclose(filled[::3, 3], expit((X[::3, :3] > 0.0) @ j[3, :3] + h[3]), atol=1e-12)
    density = SBNDensity(hidden=(), switches=0, epochs=5, binarize=0.0, random_state=0).fit(X)
    assert_array_equal(density.impute(X), filled)
    assert_array_equal(imputer.transform(X[1:2]), X[1:2])  # no holes at all


@pytest.mark.parametrize("lateral", [True, False])
def test_draws_have_the_posterior_means(table, lateral):
    imputer = SBNImputer(strategy="sample", density=quick(lateral=lateral)).fit(table)
    row = np.array([[1.0, np.nan, 0.0, np.nan, np.nan, 1.0]])
    drawn = imputer.transform(np.repeat(row, 20_000, axis=0))
    assert set(np.unique(drawn)) == {0.0, 1.0}
    assert_array_equal(drawn[:, [0, 2, 5]], np.repeat(row[:, [0, 2, 5]], 20_000, axis=0))
    means = imputer.set_params(strategy="mean").transform(row)[0]
    assert_allclose(drawn.mean(axis=0), means, atol=0.02)


def test_draws_keep_the_correlations_of_the_network(table):
    imputer = SBNImputer(strategy="sample", density=quick(lateral=False, epochs=60)).fit(table)
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
