"""Arguments of estimators that cannot be: an error of our own at fit, which names the argument; and sizes."""

from __future__ import annotations

import inspect
import math
import pickle
from concurrent.futures import ThreadPoolExecutor
from dataclasses import FrozenInstanceError, fields

import numpy as np
import pytest
from sklearn.base import clone

from sbnet.errors import ParameterError, SBNetError
from sbnet.estimators import SBNClassifier, SBNDensity, SBNImputer, SBNOutlier, Training, _learning

HOSTILE = ("a", "", None, math.nan, math.inf, -math.inf, -1, -0.5, 10**400, [], [None], {}, object(), b"a", 1 + 2j, int)
X = np.array([[1, 1, 0], [1, 0, np.nan], [0, 0, 1], [0, np.nan, 1]] * 2)
LABEL = np.array([0, 0, 1, 1] * 2)
ESTIMATORS = (SBNDensity, SBNImputer, SBNOutlier, SBNClassifier)
ARGUMENTS = [(kind, name) for kind in ESTIMATORS for name in inspect.signature(kind).parameters]


def made(kind, **given):
    if kind is SBNDensity:
        return kind(**{"epochs": 1, "hidden": 1, "random_state": 0, **given})
    return kind(**{"density": SBNDensity(epochs=1, hidden=1), "random_state": 0, **given})


def refusal(estimator) -> SBNetError | None:
    """What it says of itself; any other exception than ours ends the test."""
    try:
        estimator.fit(X, LABEL)
    except SBNetError as error:
        return error
    return None


@pytest.mark.parametrize(("kind", "name"), ARGUMENTS, ids=lambda value: getattr(value, "__name__", value))
def test_wrong_arguments_are_named(kind, name):
    refused = 0
    for value in HOSTILE:
        error = refusal(made(kind, **{name: value}))
        if error is not None:
            assert isinstance(error, ParameterError), (value, error)
            assert name in str(error), (value, error)
            refused += 1
    assert refused >= (1 if name == "missing" else 6)


@pytest.mark.parametrize("name", [field.name for field in fields(Training)])
def test_wrong_settings_of_training_are_named(name):
    for value in ("a", -0.5, math.nan, 10**400, object(), int):
        with pytest.raises(ParameterError, match=name):
            Training(**{"validation_fraction": 0.5, name: value})


def test_training_is_a_record_that_copies_share():
    training = Training(batch_size=7, executor=ThreadPoolExecutor(1))
    with training.executor, pytest.raises(FrozenInstanceError):
        training.batch_size = 8
    density = SBNDensity(settings=training)
    assert clone(density).settings is training
    assert density.get_params()["settings"] is training
    assert density.set_params(settings=None).settings is None
    assert pickle.loads(pickle.dumps(training)) == Training(batch_size=7)
    with pytest.raises(ParameterError, match=r"settings is 7; give sbnet.estimators.Training\(batch_size=20\), or"):
        SBNDensity(settings=7).fit(X)


def test_words_for_numbers():
    with pytest.raises(ParameterError, match="epochs is 'a'; it must be a whole number, one or more, or 'auto'"):
        SBNDensity(epochs="a").fit(X)
    with pytest.raises(
        ParameterError, match=r"hidden is \[1.5\]; give the sizes of the hidden layers, such as \(8, 24\)"
    ):
        SBNDensity(hidden=[1.5]).fit(X)


# --- sizes ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "columns", "weights"),
    [
        ({}, 20_000, "200,150,000"),
        ({"hidden": 10**9}, 5, "10,000,000,025"),
        ({"hidden": (10**5, 10**5)}, 5, "10,001,000,025"),
        ({"hidden": 0, "column_mixtures": 10**8}, 5, "1,500,000,010"),
    ],
)
def test_networks_that_do_not_fit_are_refused_before_they_are_made(settings, columns, weights):
    table = np.tile([0.0, 1.0], (3, columns))[:, :columns]
    with pytest.raises(
        ParameterError, match=rf"make {weights} weights, which take about [\d,]+ GB; at most 20,000,000"
    ):
        SBNDensity(**settings).fit(table)
    with pytest.raises(
        ParameterError, match="Take fewer columns or hidden units, autoregressive=False, or column_mixtures=0"
    ):
        SBNDensity(**settings).partial_fit(table)


def test_the_weights_are_counted_as_they_are_made():
    table = np.tile([0.0, 1.0, 1.0, 0.0, 1.0], (4, 1))
    for settings in (
        {"hidden": (3, 2)},
        {"hidden": 0, "column_mixtures": 2},
        {"hidden": 2, "column_mixtures": 1, "autoregressive": False},
    ):
        density = SBNDensity(**settings, epochs=1, prior=1.0, random_state=0)
        made = density.fit(table).network_.n_edges
        _counted(density, table.shape[1], made)


def _counted(density, width, made):
    """The limit at the number that was made lets it pass; one less does not. (The first column has no switch.)"""
    slack = 2 * 4
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_learning, "MOST_WEIGHTS", made + slack)
        _learning.check_size(density._settings(), width)
        patch.setattr(_learning, "MOST_WEIGHTS", made - 1)
        with pytest.raises(ParameterError, match="weights, which take about"):
            _learning.check_size(density._settings(), width)


def test_a_wide_table_of_few_rows_takes_steps_in_proportion():
    few, many = (_learning._epochs(10, 100, weights) for weights in (43_200, 1_016_000))
    assert few == 250
    assert many <= 25
    assert _learning.column_mixtures_of(SBNDensity()._settings(), 100) == 1
    assert _learning.column_mixtures_of(SBNDensity()._settings(), 1000) == 0
    assert _learning.column_mixtures_of(SBNDensity(column_mixtures=2)._settings(), 1000) == 2
