"""Densities and classifiers of ordinary tables: words, numbers, orders and missing cells, with nothing set."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

import sbnet as sb
from sbnet.estimators import SBNClassifier, SBNDensity, _large


def passengers(n: int = 600, seed: int = 0, holes: float = 0.05) -> pd.DataFrame:
    """A synthetic ship: a class, its copy in words, sex, age, and who survived, by all of them."""
    rng = np.random.default_rng(seed)
    pclass, sex, age = rng.integers(1, 4, n), rng.choice(["male", "female"], n), rng.gamma(6.0, 5.0, n).round()
    z = 2.5 * (sex == "female") - 1.0 * (pclass - 2) - 0.02 * (age - 30) - 1.0 + 1.5 * (sex == "female") * (pclass < 3)
    survived = rng.random(n) < 1.0 / (1.0 + np.exp(-z))
    words = np.array(["First", "Second", "Third"])[pclass - 1]
    frame = pd.DataFrame({"pclass": pclass, "class": words, "sex": sex, "age": age, "survived": survived})
    return frame.mask(rng.random(frame.shape) < holes) if holes else frame


@pytest.fixture(scope="module")
def density() -> SBNDensity:
    return SBNDensity(random_state=0).fit(passengers())


def test_how_columns_were_read_is_told(density: SBNDensity) -> None:
    assert density.schema_["survived"].states == ("no", "yes")
    assert len(density.schema_["class"].states) == 3
    assert "read as" in str(density.schema_)
    assert set(density.network_.names) == {"pclass", "class", "sex", "age", "survived"}
    assert density.report_.held_out == pytest.approx(density.score(passengers(seed=1)), abs=0.25)


def _summed(n: int) -> pd.DataFrame:
    """A column that follows from the sum of five others, which it does not tell apart; it comes first."""
    others = np.random.default_rng(1).integers(0, 3, (n, 5))
    total = np.array(["low", "middle", "high"])[np.digitize(others.sum(axis=1), [4, 7])]
    return pd.DataFrame({"total": total} | {f"part {k}": np.array(list("xyz"))[others[:, k]] for k in range(5)})


def test_the_order_of_the_columns_is_chosen() -> None:
    density = SBNDensity(random_state=0).fit(_summed(800))
    assert density.network_.names[-1] == "total"
    assert density.score(_summed(800)) > -5.0 * np.log(3.0) - 0.1
    assert [trial.what for trial in density.report_.trials][:2] == ["columns as given", "columns backwards"]
    assert "columns undecided first" in str(density.report_)


def test_several_orders_are_a_mixture() -> None:
    mixed = SBNDensity(orders=3, random_state=0).fit(passengers(300))
    assert len({network.names for network in mixed.networks_}) > 1
    rows, names = passengers(20, seed=1), mixed.schema_.names
    cells = mixed.schema_.encode(rows)
    logs = [sb.log_likelihood(n, cells[:, [names.index(name) for name in n.names]]) for n in mixed.networks_]
    np.testing.assert_allclose(mixed.score_samples(rows), np.log(np.mean(np.exp(logs), axis=0)), atol=1e-9)
    np.testing.assert_allclose(mixed.probabilities(rows, column="survived").sum(axis=1), 1.0)
    assert len(mixed.sample(10)) == 10


def test_scores_are_likelihoods(density: SBNDensity) -> None:
    frame = passengers(20, seed=1, holes=0.3)
    rows = density.schema_.encode(frame)
    states = np.full(rows.shape, -1)
    for k, name in enumerate(density.schema_.names):
        states[:, density.network_.index(name)] = rows[:, k]
    np.testing.assert_allclose(density.score_samples(frame), sb.log_likelihood(density.network_, states), atol=1e-9)


def test_probabilities_are_posteriors(density: SBNDensity) -> None:
    question = pd.DataFrame({"sex": ["female", "male"], "class": ["First", "Third"]})
    found = density.probabilities(question, column="survived")
    exact = [
        sb.exact_posterior(density.network_, {"sex": sex, "class": name})["survived"]
        for sex, name in zip(question["sex"], question["class"], strict=True)
    ]
    np.testing.assert_allclose(found[:, 1], exact, atol=1e-9)
    assert found[0, 1] > 0.85
    assert found[1, 1] < 0.25
    whole = passengers(5, seed=2)
    np.testing.assert_allclose(density.probabilities(whole, column="age").sum(axis=1), 1.0)
    with pytest.raises(sb.errors.ParameterError, match="survive"):
        density.probabilities(whole, column="survive")


def test_samples_are_a_table_like_the_one_learned_from(density: SBNDensity) -> None:
    drawn = density.sample(2000)
    assert list(drawn.columns) == list(passengers(3).columns)
    copies = drawn["pclass"].map({1: "First", 2: "Second", 3: "Third"})
    assert (copies != drawn["class"]).mean() < 0.01
    assert set(drawn["age"]) <= set(passengers()["age"].dropna())
    pd.testing.assert_frame_equal(drawn, density.sample(2000))
    other = SBNDensity(random_state=0).fit(pl.from_pandas(passengers(100)))
    assert isinstance(other.sample(3), pl.DataFrame)


def test_columns_can_be_said(density: SBNDensity) -> None:
    other = SBNDensity(columns={"age": "ignore", "class": ["Third", "Second", "First"]}, random_state=0)
    other.fit(passengers(200))
    assert other.schema_.names == ("pclass", "class", "sex", "survived")
    assert other.schema_["class"].states == ("Third", "Second", "First")


def test_a_density_of_a_given_network_reads_the_names_of_states(density: SBNDensity) -> None:
    frame = passengers(20, seed=4, holes=0.1)
    rows, given = density.schema_.encode(frame), SBNDensity.from_networks(density.mixture_, random_state=0)
    named = {
        column.name: [column.states[s] if s >= 0 else None for s in rows[:, k]]
        for k, column in enumerate(density.schema_.variables)
    }
    np.testing.assert_allclose(given.score_samples(pd.DataFrame(named)), density.score_samples(frame), atol=1e-9)
    assert set(given.sample(50)[:, 1]) <= {"First", "Second", "Third"}


def test_weights_count_as_repetitions() -> None:
    frame = passengers(80)
    twice = pd.concat([frame, frame[:40]], ignore_index=True)
    weights = np.where(np.arange(80) < 40, 2.0, 1.0)
    one, other = SBNDensity(random_state=0).fit(frame, sample_weight=weights), SBNDensity(random_state=0).fit(twice)
    assert one.score(frame) == pytest.approx(other.score(frame), abs=0.5)
    assert SBNDensity(random_state=0).fit(twice, sample_weight=np.r_[np.ones(80), np.zeros(40)]).n_samples_seen_ == 80


def test_parts_add_up(density: SBNDensity) -> None:
    frame = passengers()
    parts = SBNDensity(random_state=0).partial_fit(frame[:300]).partial_fit(frame[300:])
    assert parts.n_samples_seen_ == 600
    assert parts.score(frame) == pytest.approx(density.score(frame), abs=0.1)


def test_long_streams_are_learned_from_all_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_large, "CELLS", 0)
    monkeypatch.setattr(_large, "LIMIT", 500)

    def blocks():
        return (passengers(2_000, k).drop(columns="age") for k in range(4))

    density = SBNDensity(random_state=0).fit(blocks)
    sample = SBNDensity(random_state=0).fit(passengers(500).drop(columns="age"))
    assert density.n_samples_seen_ == 8_000
    test = passengers(2_000, 9).drop(columns="age")
    assert density.score(test) > sample.score(test)


def test_copies_and_pickles_are_the_same(density: SBNDensity) -> None:
    frame = passengers(30, seed=3)
    again = pickle.loads(pickle.dumps(density))
    np.testing.assert_array_equal(again.score_samples(frame), density.score_samples(frame))
    np.testing.assert_array_equal(clone(density).fit(passengers()).score_samples(frame), density.score_samples(frame))
    assert SBNDensity(random_state=0, n_jobs=1).fit(passengers()).network_ == density.network_


# --- classifiers ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def classifier() -> SBNClassifier:
    frame = passengers(1000).dropna(subset=["survived"])
    return SBNClassifier(random_state=0).fit(frame.drop(columns="survived"), _words(frame))


def _words(frame: pd.DataFrame) -> np.ndarray:
    return np.where(frame["survived"].astype(bool), "lived", "died")


def test_a_label_is_a_variable_of_the_network(classifier: SBNClassifier) -> None:
    assert classifier.classes_.tolist() == ["died", "lived"]
    assert classifier.network_.states["label"] == ("died", "lived")
    assert classifier.network_.names[-1] == "label"


def test_probabilities_are_right_with_missing_cells(classifier: SBNClassifier) -> None:
    frame = passengers(3000, seed=5, holes=0.3).dropna(subset=["survived"])
    p, y = classifier.predict_proba(frame.drop(columns="survived"))[:, 1], _words(frame) == "lived"
    np.testing.assert_allclose(classifier.predict_proba(frame.drop(columns="survived")).sum(axis=1), 1.0)
    for low, high in ((0.0, 0.25), (0.25, 0.5), (0.5, 0.75), (0.75, 1.0)):
        inside = (p >= low) & (p < high)
        assert abs(y[inside].mean() - p[inside].mean()) < 0.08
    prior = y.mean()
    assert -np.mean(np.log(np.where(y, p, 1 - p))) < -(prior * np.log(prior) + (1 - prior) * np.log(1 - prior)) - 0.1


def test_a_row_without_cells_has_the_shares_of_the_classes(classifier: SBNClassifier) -> None:
    frame = passengers(2, holes=0.0).drop(columns="survived").astype(object)
    frame.iloc[0] = None
    share = (_words(passengers(1000).dropna(subset=["survived"])) == "lived").mean()
    assert classifier.predict_proba(frame)[0, 1] == pytest.approx(share, abs=0.05)


def test_words_that_were_not_there_are_missing(classifier: SBNClassifier) -> None:
    frame = passengers(2, holes=0.0).drop(columns="survived")
    frame.loc[0, "class"] = "Fourth"
    with pytest.warns(sb.errors.CodingWarning, match="Fourth"):
        found = classifier.predict_proba(frame)
    frame.loc[0, "class"] = None
    np.testing.assert_array_equal(found, classifier.predict_proba(frame))


def test_classes_may_count_alike() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(600, 3))
    y = (x[:, 0] + rng.normal(size=600) > 1.8).astype(int)
    plain, balanced = (SBNClassifier(class_weight=w, random_state=0).fit(x, y) for w in (None, "balanced"))
    assert balanced.predict(x).mean() > plain.predict(x).mean() + 0.1
    prior = SBNClassifier(class_prior=[0.5, 0.5], random_state=0).fit(x, y)
    assert abs(prior.predict(x).mean() - balanced.predict(x).mean()) < 0.15


@pytest.mark.parametrize("classes", [3, 12])
def test_many_classes(classes: int) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(900, 4))
    y = np.digitize(x[:, 0] + 0.3 * rng.normal(size=900), np.quantile(x[:, 0], np.arange(1, classes) / classes))
    fitted = SBNClassifier(random_state=0).fit(pd.DataFrame(x, columns=list("abcd")), y)
    assert fitted.score(pd.DataFrame(x, columns=list("abcd")), y) > 2.0 / classes


def test_a_classifier_learns_from_parts() -> None:
    frame = passengers(600).dropna(subset=["survived"])
    X, y = frame.drop(columns="survived"), _words(frame)
    parts = SBNClassifier(random_state=0)
    parts.partial_fit(X[:50], y[:50], classes=["died", "lived", "unknown"])
    assert parts.predict_proba(X).shape == (len(X), 3)
    parts.partial_fit(X[50:], y[50:])
    whole = SBNClassifier(random_state=0).fit(X, y)
    assert abs(parts.score(X, y) - whole.score(X, y)) < 0.03
    with pytest.raises(sb.errors.ParameterError, match="classes"):
        SBNClassifier().partial_fit(X, y)


def test_one_class_is_refused() -> None:
    with pytest.raises(sb.errors.ParameterError, match="one class, 'a'"):
        SBNClassifier().fit(passengers(30), np.full(30, "a"))


@parametrize_with_checks([SBNDensity(random_state=0), SBNClassifier(random_state=0)])
def test_the_contract_of_scikit_learn(estimator: object, check: object) -> None:
    check(estimator)  # type: ignore[operator]
