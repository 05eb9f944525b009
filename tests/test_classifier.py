"""A classifier learns a density for each class, and chooses by bound and prior."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import log_softmax, softmax
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.metrics import log_loss
from sklearn.model_selection import cross_val_score

import sbnet as sb
from sbnet.datasets import load_digits
from sbnet.estimators import SBNClassifier, SBNDensity, Training, _pooling, _tuning
from sbnet.estimators._rows import Rows
from tables import by_hand, classes, quick

STEPS = Training(optimizer=sb.SGD(0.05), batch_size=1)
PAPER = {"autoregressive": False, "settings": STEPS, "epochs": 2, "prior": None}


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


def noisy(seed, n_rows=500, n_classes=3, width=10):
    """Classes that overlap, from networks with autoregressive edges."""
    rng = np.random.default_rng(seed)
    common = rng.normal(size=(width, width)) * 1.5
    label = rng.integers(n_classes, size=n_rows)
    X = np.zeros((n_rows, width))
    tilt = np.random.default_rng(99).normal(size=(n_classes, width)) * 0.6
    for j in range(width):
        X[:, j] = rng.random(n_rows) < 1 / (1 + np.exp(-(X[:, :j] @ common[j, :j] + tilt[label, j])))
    return X, label


def test_signed_weights_climb_what_they_say():
    # The gradient with the weights [y = k] + s/(T M) ([y = k] - p_k) is that of the sum of ln P_y + s ln p_y, with the
    # mean of M networks' logarithms for ln P_k in p.
    X, y = noisy(0, 40, 2, 4)
    networks = [sb.layered((4,), rng=k, scale=1.0, autoregressive=True) for k in range(4)]
    rows = Rows(X.astype(np.int8), np.ones(40), networks[0].names)
    data = _tuning.Labelled(rows, y, np.log([0.5, 0.5]))

    def objective(weight):
        moved = networks[0].with_parameters(weight=weight, bias=networks[0].bias)
        logs = np.array([sb.log_joint(net, rows.cells) for net in (moved, *networks[1:])])
        p = log_softmax(logs.reshape(2, 2, 40).mean(axis=1).T / 2.5 + data.log_prior, axis=1)
        return logs[0, y == 0].sum() + 7.0 * p[np.arange(40), y].sum()

    bounds = np.column_stack([sb.log_joint(net, rows.cells) for net in networks])
    signed = _tuning._signed(bounds, np.array([0, 0, 1, 1]), data, np.arange(40), 7.0, 2.5)
    assert (signed[:, 0] < 0).any()
    slope = sb.gradient(networks[0], rows.cells, row_weight=signed[:, 0]).weight
    for e in range(networks[0].n_edges):
        step = np.eye(networks[0].n_edges)[e] * 1e-5
        change = objective(networks[0].weight + step) - objective(networks[0].weight - step)
        assert_allclose(slope[e], change / 2e-5, rtol=1e-4, atol=1e-4)


def test_tuned_classes_are_read_from_both_ends_and_scored_by_mean_likelihoods():
    X, y = noisy(5, 80, 2, 5)
    model = SBNClassifier(tune="discriminative", density=SBNDensity(epochs=2), random_state=0).fit(X, y)
    for networks in model.mixtures_:
        first, second = ([name for name in net.names if "." not in name] for net in networks)
        assert first == second[::-1] == [f"x{k}" for k in range(5)]
        assert sum(".switch" in name for name in networks[0].names) == 8  # two for each column that has parents
    named = [{f"x{k}": int(v) for k, v in enumerate(row)} for row in X[:9]]
    truth = [[[sb.log_likelihood(net, row) for net in nets] for nets in model.mixtures_] for row in named]
    joint = model._joint(X[:9]) - model.temperature_ * model.class_log_prior_
    assert_allclose(joint, np.mean(truth, axis=2), atol=1e-9)
    assert np.all(joint <= np.log(np.mean(np.exp(truth), axis=2)))  # a bound of the mean likelihood


def test_tuning_tells_classes_apart_and_stays_a_density():
    X, y = noisy(1)
    plain = SBNClassifier(density=quick(hidden=0), pooled=False, random_state=0).fit(X, y)
    tuned = SBNClassifier(density=quick(hidden=0), pooled=False, tune="discriminative", random_state=0).fit(X, y)
    assert tuned.strength_ in _tuning.STRENGTHS[1:]
    assert tuned.networks_[0] != plain.networks_[0]
    assert log_loss(y, tuned.predict_proba(X)) < log_loss(y, plain.predict_proba(X))
    bounds = [model.decision_function(X)[np.arange(500), y].mean() for model in (plain, tuned)]
    assert bounds[1] > bounds[0] - 1.0


def test_the_temperature_makes_probabilities_honest():
    X, y = noisy(2, 900)
    model = SBNClassifier(density=quick(hidden=6, epochs=60, prior=None), random_state=0).fit(X[:400], y[:400])
    raw = clone(model).set_params(calibrate=False).fit(X[:400], y[:400])
    assert model.temperature_ > 1.0 == raw.temperature_
    assert raw.networks_ == model.networks_
    assert log_loss(y[400:], model.predict_proba(X[400:])) < log_loss(y[400:], raw.predict_proba(X[400:]))
    assert_array_equal(model.predict(X), model.classes_[model.predict_proba(X).argmax(axis=1)])
    assert_array_equal(model.decision_function(X).argmax(axis=1), model.predict_proba(X).argmax(axis=1))
    prior = np.exp(model.class_log_prior_)
    assert_allclose(model.predict_proba(np.full((1, 10), np.nan))[0], prior)


def test_classes_of_few_rows_share_strength():
    X, y = noisy(3, 1060, width=16)
    losses = []
    for pooled in (False, True):
        model = SBNClassifier(hidden=0, pooled=pooled, random_state=0).fit(X[:60], y[:60])
        losses.append(log_loss(y[60:], model.predict_proba(X[60:])))
    assert losses[1] < losses[0]


def test_pairs_that_matter_in_all_classes_are_held_less():
    X, _ = noisy(3, 400, width=6)
    names = tuple(f"x{k}" for k in range(6))
    rows = Rows(X.astype(np.int8), np.ones(400), names)
    pooled, back = _pooling.pool(SBNDensity()._settings(), rows, np.random.default_rng(0), both_ways=True)
    assert back.names == names[::-1]
    assert (back.size.toarray() > 0).any()
    network = sb.add_column_mixtures(
        sb.layered((2, 6), autoregressive=True, bottom_names=names), units=names[1:], rng=0
    )
    scales = dict(zip(_edges(network), pooled.scales(network), strict=True))
    size = np.abs(pooled.size.toarray())
    j, i = np.unravel_index(size.argmax(), size.shape)[::-1]
    assert scales[f"x{j}", f"x{i}"] == np.hypot(size[i, j], _pooling.FLOOR) > 1.0
    assert scales[f"x{j}", f"x{i}.switch1"] == 2 * scales[f"x{j}", f"x{i}"]
    assert scales[f"x{i}.switch1", f"x{i}"] == _pooling.SWITCH
    assert scales[network.names[0], "x0"] == _pooling.HIDDEN


NAMES = ("a", "class0", "b", "c")


def _gathered(X, y, column_mixtures=1):
    """What classes have in common, with a network of all, for columns of which one has an awkward name."""
    rows, n = Rows(X.astype(np.int8), np.ones(len(X)), NAMES), y.max() + 1
    data = _tuning.Labelled(rows, y, np.full(n, -np.log(n)))
    settings = SBNDensity(hidden=0, column_mixtures=column_mixtures, n_jobs=1)._settings()
    pooled = _pooling.pool(settings, rows, np.random.default_rng(0), both_ways=True)
    return (
        settings,
        data,
        [_pooling.with_common_network(settings, data, np.random.default_rng(0), one) for one in pooled],
    )


def test_the_network_of_all_classes_as_rows_of_one_see_it():
    X, y = noisy(5, 300, width=4)
    settings, data, gathered = _gathered(X, y, column_mixtures=2)
    settings = replace(settings, epochs=1, learning_rate=1e-9)
    for pooled in gathered:
        labels = [dict(zip(pooled.labels, np.eye(len(data.log_prior))[k], strict=True)) for k in range(3)]
        for k in range(3):
            network = pooled.of_class(pooled.common, k)
            assert network.names[0] == pooled.names[0]  # nothing tells it, so it has no switch
            row = dict(zip(NAMES, X[k], strict=True))
            joint = sb.log_likelihood(pooled.common, labels[k] | row) - sb.log_likelihood(pooled.common, labels[k])
            assert_allclose(sb.log_likelihood(network, row), joint)
            assert_array_equal(pooled.prior(network, k).gradient(network.weight, network.bias), 0.0)
            assert pooled.prior(network, (k + 1) % 3).gradient(network.weight, network.bias).any()
            rows = data.rows.keep(y == k)
            ((begun, _),) = _pooling.learn(settings, rows, np.random.default_rng(0), [pooled], k)
            assert_allclose(begun.network.weight, network.weight, atol=1e-6)


def test_what_classes_alone_explain_ties_no_columns():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 1000)
    X = (rng.random((1000, 4)) < np.where(y, 0.85, 0.15)[:, None]).astype(float)  # independent within a class
    _, _, (pooled, _) = _gathered(X, y, column_mixtures=0)
    assert pooled.size.toarray()[3, :3].mean() > 0.5
    assert np.abs(pooled.of_class(pooled.common, 0).weight).max() < 0.5


def test_a_class_of_few_rows_learns_from_others_how_columns_are_tied():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], [300, 300, 6])
    X = rng.integers(0, 2, (606, 4)).astype(float)
    X[:, 2] = np.where(rng.random(606) < 0.1, 1 - X[:, 0], X[:, 0])
    settings, data, (pooled, _) = _gathered(X, y, column_mixtures=0)
    few = data.rows.keep(y == 2)
    alone = [replace(pooled, labels=(), common=None)]
    found, without = (
        _pooling.learn(settings, few, np.random.default_rng(0), one, 2)[0][0].network for one in ([pooled], alone)
    )
    held_out = rng.integers(0, 2, (500, 4)).astype(float)
    held_out[:, 2] = np.where(rng.random(500) < 0.1, 1 - held_out[:, 0], held_out[:, 0])
    assert found.weight_matrix()[2, 0] > 1.5 > without.weight_matrix()[2, 0]
    assert sb.infer_many(found, held_out).bound.mean() > sb.infer_many(without, held_out).bound.mean() + 0.05


def test_tuning_draws_to_the_network_of_all_classes_too(monkeypatch):
    X, y = noisy(3, 240, width=6)
    seen, real = [], _tuning.tune
    monkeypatch.setattr(_tuning, "tune", lambda *given: (seen.append(given), real(*given))[1])
    model = SBNClassifier(tune="discriminative", density=quick(hidden=0), random_state=0).fit(X, y)
    *_, priors = seen[-1]
    assert [len(each) for each in priors] == [2, 2, 2]
    for networks, theirs in zip(model.mixtures_, priors, strict=True):
        for network, prior in zip(networks, theirs, strict=True):
            assert prior.centre.weight.any()
            assert_array_equal(prior.gradient(*prior.centre), 0.0)
            assert len(prior.centre.weight) == network.n_edges
    assert not np.array_equal(priors[0][0].centre.bias, priors[1][0].centre.bias)


def _edges(network):
    graph = network.graph
    return [(network.names[j], network.names[i]) for j, i in zip(graph.parent, graph.child_of_edge, strict=True)]


def test_rows_with_holes_are_scored_by_estimates_near_the_truth():
    X, y = noisy(4, 120, 2, 8)
    model = SBNClassifier(density=quick(hidden=2), particles=4000, random_state=0).fit(X, y)
    holes = np.where(np.random.default_rng(0).random((20, 8)) < 0.5, np.nan, X[:20])
    truth = np.column_stack([[sb.log_likelihood(net, row) for row in holes] for net in model.networks_])
    joint = model.set_params(particles=4000)._joint(holes) - model.class_log_prior_
    assert_allclose(joint, truth, atol=0.1)
    bounds = model.set_params(particles=0)._joint(holes) - model.class_log_prior_
    assert np.all(bounds <= truth + 1e-9)


@pytest.mark.parametrize(
    ("setting", "text"),
    [
        ({"tune": "generative"}, "tune is 'generative'; give None or 'discriminative'"),
        ({"pooled": "yes"}, "pooled is 'yes'; give True, False or 'auto'"),
        ({"particles": -1}, "particles"),
    ],
)
def test_unknown_ways_are_refused(labelled, setting, text):
    with pytest.raises(sb.errors.ParameterError, match=text):
        SBNClassifier(**setting).fit(*labelled)


class Counting:
    """Mean field theory that counts the rows it solves from scratch, and those whose solution it is given."""

    def __init__(self):
        self.plain, self.afresh, self.begun = sb.MeanField(log_term="xi", tol=1e-3), 0, 0

    def solve(self, network, states, *, start, trace):
        return self.plain.solve(network, states, start=start, trace=trace)

    def maximise(self, model, bias, states, start, *, row_weight=None, trace=False):
        self.afresh += len(states) if start is None else 0
        self.begun += 0 if start is None else len(states)
        return self.plain.maximise(model, bias, states, start, row_weight=row_weight, trace=trace)


def test_tuning_solves_a_row_once_a_step():
    X, y = noisy(3, 60, width=4)
    names, solver = tuple(f"x{k}" for k in range(4)), Counting()
    data = _tuning.Labelled(Rows(X.astype(np.int8), np.ones(60), names), y, np.full(3, -np.log(3)))
    settings = SBNDensity(hidden=2, column_mixtures=0, solver=solver, n_jobs=1)._settings()
    networks = [(sb.layered((2, 4), rng=k, bottom_names=names),) for k in range(3)]
    _tuning.tune(settings, networks, data, 10.0, 1.0, np.random.default_rng(0), [[None]] * 3)
    assert solver.afresh == _tuning.EPOCHS * 60 * 3
    assert 0 < solver.begun <= solver.afresh


@pytest.mark.parametrize("one", [True, False])
def test_a_column_says_how_much_it_tells_about_the_class(one):
    """A copy of the label tells all of its entropy, noise nothing; a column that names rows is left out."""
    rng = np.random.default_rng(0)
    label = rng.random(600) < 0.3
    copy, hint, noise = label, label ^ (rng.random(600) < 0.2), rng.random(600) < 0.5
    table = np.column_stack([noise, copy, hint]).astype(float)
    if one:
        frame = pd.DataFrame({"noise": noise, "copy": copy, "hint": hint, "id": [f"p{k:04}" for k in range(600)]})
        with pytest.warns(sb.errors.CodingWarning, match="left out: 'id "):
            classifier = SBNClassifier(random_state=0).fit(frame, label)
    else:
        classifier = SBNClassifier(hidden=(), random_state=0).fit(table, label)
    told = classifier.feature_information_
    assert told.shape == (classifier.n_features_in_,)
    p = label.mean()
    assert told[1] == pytest.approx(-p * np.log(p) - (1 - p) * np.log(1 - p), abs=0.03)
    flip = 0.8 * p + 0.2 * (1 - p)
    entropy = -flip * np.log(flip) - (1 - flip) * np.log(1 - flip)
    assert told[2] == pytest.approx(entropy + 0.8 * np.log(0.8) + 0.2 * np.log(0.2), abs=0.03)
    assert told[0] < 0.01
    assert np.all(told[3:] == 0.0)
