"""A classifier learns a density for each class, and chooses by bound and prior."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import softmax
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.model_selection import cross_val_score

import sbnet as sb
from sbnet.datasets import load_digits
from sbnet.estimators import SBNClassifier, SBNDensity
from tables import by_hand, classes, quick

PAPER = {"lateral": False, "optimizer": sb.SGD(0.05), "batch_size": 1, "epochs": 2, "prior_scale": None}


@pytest.fixture(scope="module")
def labelled():
    return classes()


@pytest.fixture(scope="module")
def classifier(labelled):
    return SBNClassifier(density=quick()).fit(*labelled)


def test_the_papers_procedure_is_what_fit_gives(labelled):
    X, y = labelled
    classifier = SBNClassifier(density=SBNDensity(**PAPER), hidden=(2, 3), random_state=7).fit(X, y)
    for k, name in enumerate(classifier.classes_):
        result = by_hand(X[y == name], (2, 3), np.random.default_rng([7, k]), False, epochs=2)  # the defaults of fit
        assert classifier.networks_[k] == result.network


def test_a_class_is_chosen_by_bound_and_prior(classifier, labelled):
    X, y = labelled
    bounds = [sb.infer_many(n, X, solver=sb.MeanField(log_term="xi", tol=1e-3)).bound for n in classifier.networks_]
    least, joint = np.column_stack(bounds) + np.log(1 / 3), classifier.decision_function(X)
    assert np.all(joint >= least - 1e-12)  # sums over hidden units are tighter
    assert_allclose(joint, least, atol=1e-4)
    assert_array_equal(classifier.predict(X), classifier.classes_[joint.argmax(axis=1)])
    assert_allclose(classifier.predict_proba(X), softmax(joint, axis=1))
    assert_allclose(classifier.predict_log_proba(X), np.log(classifier.predict_proba(X)))
    assert classifier.score(X, y) > 0.6
    assert classifier.n_iter_ == len(classifier.bounds_[0]) == 8


def test_two_classes_have_one_decision(labelled):
    X, y = labelled[0][:120], labelled[1][:120]
    classifier = SBNClassifier(density=quick(), class_prior=[0.9, 0.1]).fit(X, y)
    decision = classifier.decision_function(X)
    assert decision.shape == (120,)
    assert_allclose(decision, np.diff(classifier.predict_log_proba(X), axis=1)[:, 0])
    assert_array_equal(classifier.predict(X), np.where(decision > 0, "b", "a"))


def test_a_row_without_observed_cells_has_the_prior(labelled):
    X, y = labelled[0][:150], labelled[1][:150]
    nothing = np.full((1, 6), np.nan)
    assert_allclose(SBNClassifier(density=quick()).fit(X, y).predict_proba(nothing), [[0.4, 0.4, 0.2]])
    given = SBNClassifier(density=quick(), class_prior=[0.5, 0.3, 0.2]).fit(X, y)
    assert_allclose(given.predict_proba(nothing), [[0.5, 0.3, 0.2]])


def test_processes_learn_the_same_networks(classifier, labelled):
    parallel = clone(classifier).set_params(n_jobs=2).fit(*labelled)
    assert parallel.networks_ == classifier.networks_
    assert_array_equal(parallel.predict_proba(labelled[0]), classifier.predict_proba(labelled[0]))


def test_the_digits_are_told_apart():
    digits = load_digits()
    classifier = SBNClassifier(density=SBNDensity(epochs=6), hidden=(6,), random_state=0)
    classifier.fit(digits.train[::7], digits.train_target[::7])  # 100 of each
    assert classifier.score(digits.test[::20], digits.test_target[::20]) > 0.85


def test_a_column_that_one_class_never_shows(labelled):
    X, y = labelled[0].copy(), labelled[1]
    X[y == "a", 2] = np.nan
    proba = SBNClassifier(density=quick()).fit(X, y).predict_proba(np.nan_to_num(X))
    assert np.all(np.isfinite(proba))


def test_a_class_with_one_row(labelled):
    X, y = labelled
    keep = np.r_[np.flatnonzero(y != "c"), np.flatnonzero(y == "c")[:1]]
    classifier = SBNClassifier(density=quick(validation_fraction=0.2, patience=3)).fit(X[keep], y[keep])
    assert list(classifier.classes_) == ["a", "b", "c"]
    assert np.all(np.isfinite(classifier.predict_log_proba(X)))
    assert_allclose(np.exp(classifier.class_log_prior_), [60 / 121, 60 / 121, 1 / 121])
    assert classifier.score(X[keep], y[keep]) > 0.6


def test_one_class_only(labelled):
    X = labelled[0][:20]
    classifier = SBNClassifier(density=quick()).fit(X, np.full(20, "only"))
    assert set(classifier.predict(X)) == {"only"}
    assert_array_equal(classifier.predict_proba(X), np.ones((20, 1)))


def test_weights_enter_the_priors_of_classes(labelled):
    X, y = labelled
    weight = np.where(y == "a", 2.0, np.where(y == "b", 1.0, 0.0))
    classifier = SBNClassifier(density=quick()).fit(X, y, sample_weight=weight)
    assert_allclose(np.exp(classifier.class_log_prior_), [2 / 3, 1 / 3, 0.0])
    assert_array_equal(classifier.predict_proba(X)[:, 2], 0.0)  # a class without weight is never chosen
    assert set(classifier.predict(X)) == {"a", "b"}


def test_cross_validation_and_calibration(labelled):
    X, y = labelled
    classifier = SBNClassifier(density=quick(epochs=3))
    scores = cross_val_score(classifier, X, y, cv=3, scoring="neg_log_loss")
    assert np.isfinite(scores).all()
    calibrated = CalibratedClassifierCV(classifier, cv=2).fit(X, y)
    assert_allclose(calibrated.predict_proba(X).sum(axis=1), 1.0)


@pytest.mark.parametrize("prior", [[0.5, 0.5], [0.5, 0.6, 0.1], [1.5, -0.5, 0.0]])
def test_impossible_priors_are_refused(labelled, prior):
    with pytest.raises(sb.errors.ParameterError, match="give a probability for each of the 3 classes, with sum 1"):
        SBNClassifier(class_prior=prior).fit(*labelled)


def test_classes_must_be_known(labelled):
    with pytest.raises(ValueError, match="NaN"):
        SBNClassifier().fit(labelled[0], np.full(180, np.nan))
