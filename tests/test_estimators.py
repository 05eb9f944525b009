"""What the three estimators have in common: one template owns the settings of learning, and is never fitted itself."""

from __future__ import annotations

import io
import pickle

import joblib
import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.ensemble import BaggingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV

import sbnet as sb
from sbnet.estimators import SBNClassifier, SBNDensity, SBNImputer, Training
from tables import classes, quick

ALL = (SBNDensity, SBNClassifier, SBNImputer)
TEMPLATED = (SBNClassifier, SBNImputer)


@pytest.fixture(scope="module")
def labelled():
    return classes()


def made(make, template):
    return template if make is SBNDensity else make(density=template)


def networks(estimator):
    return estimator.networks_ if isinstance(estimator, SBNClassifier) else [estimator.network_]


def answers(estimator, X):
    return estimator.predict_proba(X) if isinstance(estimator, SBNClassifier) else estimator.transform(X)


# Templates


def test_a_template_is_copied_and_one_network_is_what_it_learns(labelled):
    X, y = labelled
    template = quick()
    before = template.get_params()
    imputer = SBNImputer(density=template).fit(X)
    SBNClassifier(density=template, hidden=2, random_state=5).fit(X, y)
    assert not hasattr(template, "network_")
    assert template.get_params() == before
    assert imputer.network_ == template.fit(X).network_
    assert SBNImputer(density=template).fit(X).network_ == imputer.network_  # a fitted one may be given, and counts not


def test_no_template_is_a_density_with_its_defaults(labelled):
    X, y = labelled[0][::6], labelled[1][::6]
    for make in TEMPLATED:
        one, two = make(random_state=0).fit(X, y), make(density=SBNDensity(), random_state=0).fit(X, y)
        assert networks(one) == networks(two)


def test_what_auto_stands_for(labelled):
    X, y = labelled
    template = SBNDensity(epochs=1, prior=2.0, random_state=0)  # with a prior of one's own nothing is chosen
    hidden = {make: networks(made(make, template).fit(X, y))[0].names[:-6] for make in TEMPLATED}
    assert hidden[SBNClassifier] == sb.layered((8, 24, 6)).names[:-6]
    assert hidden[SBNImputer] == sb.layered((8, 6)).names[:-6]
    names = template.fit(X).network_.names
    assert (names[:8], sum(".switch1" in name for name in names)) == (hidden[SBNImputer], 6)
    for make in TEMPLATED:  # what is said of column mixtures holds
        assert "x0.switch1" in networks(made(make, clone(template).set_params(column_mixtures=1)).fit(X, y))[0].names


@pytest.mark.parametrize("make", TEMPLATED)
def test_short_hands_take_the_place_of_what_the_template_says(make, labelled):
    expected = networks(make(density=quick(hidden=3, random_state=7)).fit(*labelled))
    template = quick(hidden="auto", random_state=1)
    assert networks(make(density=template, hidden=3, random_state=7).fit(*labelled)) == expected
    same = quick(hidden=(3,), random_state=7)
    assert networks(make(density=same, hidden=3).fit(*labelled)) == expected  # one size, two spellings


@pytest.mark.parametrize("make", TEMPLATED)
def test_two_different_networks_are_refused(make, labelled):
    message = r"hidden is 4, but hidden of density is 8; give one of them"
    with pytest.raises(sb.errors.ParameterError, match=message):
        make(density=SBNDensity(hidden=8), hidden=4).fit(*labelled)


@pytest.mark.parametrize("make", TEMPLATED)
def test_only_a_density_is_a_template(make, labelled):
    for wrong in (8, SBNDensity, SBNImputer()):
        with pytest.raises(sb.errors.ParameterError, match="give an SBNDensity, such as SBNDensity"):
            make(density=wrong).fit(*labelled)


@pytest.mark.parametrize("make", TEMPLATED)
def test_settings_of_the_template_can_be_set_from_outside(make):
    assert make().set_params(density__epochs=3).density.epochs == 3
    template = SBNDensity(hidden=4)
    nested = make(density=template).set_params(density__epochs=3, hidden=4)
    assert nested.density is template
    assert nested.get_params()["density__epochs"] == 3
    assert make(density=template).set_params(density=None, density__epochs=5).density.hidden == "auto"
    assert make().set_params(hidden=2).density is None
    with pytest.raises(ValueError, match="Invalid parameter 'epoch'"):
        make().set_params(density__epoch=3)


def test_searches_reach_the_template(labelled):
    X, y = labelled
    search = GridSearchCV(SBNClassifier(density=quick(epochs=3)), {"density__hidden": [1, 2]}, cv=2).fit(X, y)
    assert search.best_estimator_.density.hidden == search.best_params_["density__hidden"]
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    lost = GridSearchCV(SBNClassifier(hidden=3), {"density__hidden": [1, 2]}, cv=2)
    with pytest.raises(ValueError, match="give one of them"):  # a search among networks that would all be the same
        lost.fit(X, y)
    bag = BaggingClassifier(SBNClassifier(density=quick(epochs=1), random_state=0), n_estimators=2, random_state=0)
    assert bag.fit(X, y).predict(X).shape == y.shape  # it sets every random_state there is, of template and classifier


def test_the_solver_of_the_template_is_read_at_each_call(labelled):
    X, y = labelled
    classifier = SBNClassifier(density=quick()).fit(X, y)
    loose = classifier.decision_function(X)
    tight = classifier.set_params(density__solver=sb.MeanField()).decision_function(X)
    assert np.all(tight >= loose - 1e-3)
    assert tight.mean() > loose.mean()


# Working together with scikit-learn


@pytest.mark.parametrize("make", ALL)
def test_copies_give_the_same_answers(make, labelled):
    X, y = labelled
    template = quick(optimizer=sb.Adam(0.02), prior=sb.Laplace(1.0), solver=sb.MeanField(tol=1e-3))
    fitted = made(make, template).fit(X, y)
    expected = answers(fitted, X)
    file = io.BytesIO()
    joblib.dump(fitted, file)
    file.seek(0)
    for copy in (pickle.loads(pickle.dumps(fitted)), joblib.load(file), clone(fitted).fit(X, y)):
        assert_array_equal(answers(copy, X), expected)


@pytest.mark.parametrize("make", ALL)
def test_estimators_show_themselves(make, labelled):
    estimator = make(hidden=(3,))
    assert repr(estimator) == f"{make.__name__}(hidden=(3,))"
    assert make.__name__ in estimator._repr_html_inner()
    with pytest.raises(NotFittedError):
        answers(estimator, labelled[0])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"solver": sb.Gibbs()}, "solver is Gibbs"),
        ({"hidden": (3, 0)}, "hidden is .*; give the sizes of the hidden layers"),
        ({"hidden": 2.5}, "hidden is .*; give the sizes of the hidden layers"),
        ({"hidden": "many"}, "hidden is .*; give the sizes of the hidden layers"),
        ({"column_mixtures": 1.5}, "column_mixtures is 1.5; it must be a whole number, zero or more, or 'auto'"),
        ({"column_mixtures": -1}, "column_mixtures is -1; it must be a whole number, zero or more, or 'auto'"),
        ({"epochs": 0}, "epochs is 0; it must be a whole number, one or more"),
        ({"prior": 0.0}, "prior is 0.0; give 'auto', a positive scale such as 2.0"),
    ],
)
def test_bad_arguments_are_refused(labelled, arguments, message):
    for make in ALL:
        with pytest.raises(sb.errors.SBNetError, match=message):
            made(make, SBNDensity(**arguments)).fit(*labelled)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"optimizer": "newton"}, "optimizer is 'newton'; give 'adam', 'sgd', or an object such as sbnet.SGD"),
        ({"patience": 2}, "patience watches held-out rows; give their share with validation_fraction="),
        ({"validation_fraction": 1.5}, "validation_fraction is 1.5; a fraction lies between 0 and 1"),
        ({"learning_rate": -1.0}, "rate is -1.0; it must be positive"),
    ],
)
def test_bad_training_is_refused(arguments, message):
    with pytest.raises(sb.errors.ParameterError, match=message):
        Training(**arguments)


class Quick:
    """A climber of one's own: neither a MeanField nor derived from it."""

    def solve(self, network, states, *, start, trace):
        return sb.MeanField(log_term="jensen", tol=1e-2).solve(network, states, start=start, trace=trace)

    def maximise(self, model, bias, states, start, *, row_weight=None, trace=False):
        solver = sb.MeanField(log_term="jensen", tol=1e-2)
        return solver.maximise(model, bias, states, start, row_weight=row_weight, trace=trace)


@pytest.mark.parametrize("make", ALL)
def test_any_climber_learns_and_scores(make, labelled):
    X, y = labelled
    own, ours = (made(make, quick(solver=s)).fit(X, y) for s in (Quick(), sb.MeanField(log_term="jensen", tol=1e-2)))
    assert networks(own) == networks(ours)
