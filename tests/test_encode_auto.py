"""Tables of categories and numbers, taken as they are: densities over their cells, holes filled in their own types."""

from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import logsumexp
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

import sbnet as sb
from sbnet.errors import CodingWarning
from sbnet.estimators import BinaryEncoder, SBNClassifier, SBNDensity, SBNImputer, SBNOutlier, Training
from sbnet.inference.solvers.block_gibbs import Chains, cell_probabilities
from sbnet.inference.solvers.completions import complete

QUICK = {"epochs": 5, "settings": Training(learning_rate=0.05), "encode": "auto"}


@parametrize_with_checks(
    [
        SBNDensity(**QUICK, hidden=(2,), column_mixtures=0),
        SBNClassifier(density=SBNDensity(**QUICK), hidden=(2,)),
        SBNImputer(density=SBNDensity(**QUICK), hidden=(2,)),
        SBNOutlier(density=SBNDensity(**QUICK, column_mixtures=0), hidden=(2,)),
    ]
)
def test_the_contract_of_scikit_learn(estimator, check):
    check(estimator)


def survey(n=150, share=0.15, seed=0):
    """Four kinds of columns that depend on one another, with holes."""
    rng = np.random.default_rng(seed)
    size = rng.integers(0, 3, n)
    colour = np.where(rng.random(n) < 0.75, size, rng.integers(0, 3, n))
    weight = np.round(50 + 12 * size + 8 * rng.normal(size=n), 1)
    table = pd.DataFrame(
        {
            "size": pd.Categorical(np.array(["S", "M", "L"])[size], categories=["S", "M", "L"], ordered=True),
            "colour": np.array(["red", "green", "blue"])[colour],
            "weight": weight,
            "old": pd.array(rng.random(n) < 0.2 + 0.3 * size, dtype="boolean"),
        }
    )
    for k, name in enumerate(table):
        table.loc[np.random.default_rng([seed, k]).random(n) < share, name] = pd.NA if name == "old" else None
    return table


@pytest.fixture(scope="module")
def table():
    return survey()


def every_cell(encoder):
    """Every combination of values, as a table of units."""
    rows = [np.concatenate(codes) for codes in product(*(coding.codes for coding in encoder.columns_))]
    return np.array(rows, dtype=float)


def exact(estimator, units):
    names = list(estimator.encoder_.get_feature_names_out())
    return sb.log_likelihood(estimator.network_, pd.DataFrame(units, columns=names))


@pytest.mark.parametrize(
    ("hidden", "autoregressive", "mixtures"), [((), True, 0), (2, True, 1), (3, False, 0), ((), False, 0)]
)
def test_the_probabilities_of_all_cells_sum_to_one(table, hidden, autoregressive, mixtures):
    settings = {
        "hidden": hidden,
        "autoregressive": autoregressive,
        "column_mixtures": mixtures,
        "epochs": 5,
        "random_state": 0,
    }
    density = SBNDensity(encode="auto", settings=Training(learning_rate=0.3), **settings).fit(table)
    units = every_cell(density.encoder_)
    assert len(units) == 3 * 3 * 4 * 2
    assert abs(np.exp(exact(density, units)).sum() - 1.0) < 1e-9
    if not hidden and not mixtures:
        whole = density.encoder_.inverse_transform(units)
        assert_allclose(density.score_samples(whole), exact(density, units), atol=1e-9)


def test_impossible_combinations_have_no_probability(table):
    density = SBNDensity(encode="auto", epochs=5, hidden=2, column_mixtures=0, random_state=0).fit(table)
    names, units = list(density.encoder_.get_feature_names_out()), every_cell(density.encoder_)
    every = np.array(list(product((0.0, 1.0), repeat=len(names))))
    possible = {tuple(row) for row in units}
    others = np.array([row for row in every if tuple(row) not in possible])
    assert logsumexp(exact(density, others)) < np.log(1e-20)


@pytest.mark.parametrize("hidden", [(), 2])
def test_scores_with_holes_are_bounds(table, hidden):
    density = SBNDensity(encode="auto", epochs=10, hidden=hidden, column_mixtures=0, random_state=0).fit(table)
    holes = table[table.isna().any(axis=1)]
    scores, truth = density.score_samples(holes), exact(density, density.encoder_.transform(holes))
    assert np.all(scores <= truth + 1e-9)
    assert np.all(scores > truth - 0.5)
    nothing = table.iloc[:2].mask(np.ones((2, 4), dtype=bool))
    assert_allclose(density.score_samples(nothing), 0.0, atol=1e-9)


def test_more_combinations_than_are_summed_over_still_give_bounds():
    rng = np.random.default_rng(0)
    words = np.array([f"w{k}" for k in range(5)], dtype=object)
    X = words[(rng.integers(0, 5, (80, 1)) + (rng.random((80, 5)) < 0.3)) % 5]
    density = SBNDensity(
        encode="auto",
        epochs=5,
        hidden=(),
        column_mixtures=0,
        prior={"hidden": 2.0, "autoregressive": 0.5},
        random_state=0,
    ).fit(X)
    row = X[:4].copy()
    row[:, :4] = None
    states = density._states(density.network_, density._table(row, reset=False)[0])
    whole = complete(density.network_, states, density._places(density.network_))
    assert len(whole.states) == 4 * 25  # two of four cells: three would be 125
    assert np.all(density.score_samples(row) <= exact(density, density.encoder_.transform(row)) + 1e-9)


def test_probabilities_of_missing_cells_are_posterior(table):
    """Chains against enumeration, where there are hidden units and several missing cells."""
    density = SBNDensity(encode="auto", epochs=30, hidden=1, column_mixtures=0, random_state=0).fit(table)
    network, places = density.network_, density._places(density.network_)
    rows = np.flatnonzero(table.isna().sum(axis=1) >= 2)[:5]
    states = density._states(network, density._table(table.iloc[rows], reset=False)[0])
    found = cell_probabilities(network, states, places)
    for r in range(len(rows)):
        for place, chance in zip(places, found, strict=True):
            if place.values_of(states[r : r + 1])[0] < 0:
                logs = sb.log_likelihood(network, place.each_value(states[r : r + 1]))
                assert_allclose(chance[r], np.exp(logs - logsumexp(logs)), atol=0.12)


def test_draws_follow_the_posterior(table):
    density = SBNDensity(encode="auto", epochs=30, hidden=1, column_mixtures=0, random_state=0).fit(table)
    network, places = density.network_, density._places(density.network_)
    row = table.iloc[[int(table.isna().sum(axis=1).argmax())]]
    one = density._states(network, density._table(row, reset=False)[0])
    rng = np.random.default_rng(1)
    drawn = Chains.begin(network, np.repeat(one, 4000, axis=0), places, rng).run(network, rng).states
    for place in places:
        if place.values_of(one)[0] < 0:
            logs = sb.log_likelihood(network, place.each_value(one))
            share = np.bincount(place.values_of(drawn), minlength=len(place.codes)) / 4000
            assert_allclose(share, np.exp(logs - logsumexp(logs)), atol=0.03)


@pytest.mark.parametrize("strategy", ["mean", "mode", "sample"])
@pytest.mark.parametrize("kind", [lambda t: t, pl.from_pandas, pa.Table.from_pandas])
def test_an_imputer_gives_back_the_table_it_was_given(table, kind, strategy):
    given = kind(table)
    imputer = SBNImputer(density=SBNDensity(epochs=3), hidden=(), encode="auto", random_state=0, strategy=strategy)
    filled = imputer.fit(given).transform(given)
    assert type(filled) is type(given)
    back = filled if isinstance(filled, pd.DataFrame) else filled.to_pandas()
    source = table if isinstance(filled, pd.DataFrame) else given.to_pandas()
    assert filled.dtypes.equals(given.dtypes) if isinstance(filled, pd.DataFrame) else filled.schema == given.schema
    assert not back.isna().any().any()
    same = (back.astype(object) == source.astype(object)) | source.isna()
    assert same.to_numpy(dtype=bool).all()
    for name in table:
        assert set(back[name]) <= set(source[name].dropna())


def test_an_imputer_of_arrays_and_of_numbers():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3)) @ rng.normal(size=(3, 3))
    X[rng.random(X.shape) < 0.2] = np.nan
    filled = SBNImputer(density=SBNDensity(epochs=5), hidden=(), encode="auto", random_state=0).fit_transform(X)
    seen = ~np.isnan(X)
    assert_array_equal(filled[seen], X[seen])
    assert np.isfinite(filled).all()
    words = np.array([["a", 1.0], ["b", 2.0], ["c", 3.0], [None, 1.0], ["a", None]] * 5, dtype=object)
    filled = SBNImputer(density=SBNDensity(epochs=2), hidden=(), encode="auto", random_state=0).fit_transform(words)
    assert set(filled[:, 0]) == {"a", "b", "c"}
    assert set(filled[:, 1]) == {1.0, 2.0, 3.0}


def test_the_index_of_a_pandas_table_stays(table):
    odd = table.set_index(np.arange(len(table))[::-1] // 2)  # with labels that stand twice, too
    filled = SBNImputer(density=SBNDensity(epochs=2), hidden=(), encode="auto", random_state=0).fit_transform(odd)
    assert_array_equal(filled.index, odd.index)
    seen = odd["weight"].notna().to_numpy()
    assert filled["weight"][seen].equals(odd["weight"][seen])


def test_imputing_beats_the_most_frequent_value():
    whole, holes = survey(400, 0.0, seed=3), survey(400, 0.2, seed=3)
    filled = SBNImputer(hidden=(), encode="auto", random_state=0, density=SBNDensity(epochs=20)).fit_transform(holes)
    for name in ("size", "colour"):
        gone = holes[name].isna()
        right = (filled[name].astype(object) == whole[name].astype(object))[gone].mean()
        usual = (holes[name].mode()[0] == whole[name].astype(object))[gone].mean()
        assert right > usual + 0.15


def test_a_draw_of_a_density_is_a_table(table):
    density = SBNDensity(encode="auto", epochs=10, hidden=2, column_mixtures=0, random_state=0).fit(table)
    drawn = density.sample(2000)
    assert drawn.dtypes.equals(table.dtypes.drop("old").reindex(drawn.columns).fillna(drawn["old"].dtype))
    assert_allclose(
        drawn["size"].value_counts(normalize=True).sort_index(),
        table["size"].value_counts(normalize=True).sort_index(),
        atol=0.08,
    )
    assert density.impute(table).isna().sum().sum() == 0
    assert density.transform(table).shape == (150, 2)


def test_outliers_and_explanations_speak_of_the_original_cells(table):
    outlier = SBNOutlier(density=SBNDensity(epochs=30), hidden=(), encode="auto", random_state=0).fit(table)
    odd = pd.DataFrame({"size": ["S"], "colour": ["red"], "weight": [95.0], "old": [False]}).astype(
        {"size": table["size"].dtype, "old": "boolean"}
    )
    one = outlier.explain(odd)[0]
    assert one.names[0] == "weight"
    assert one.values[0].startswith("above ")
    assert outlier.score_samples(odd)[0] < np.median(outlier.score_samples(table))
    units = outlier.encoder_.transform(odd)
    if outlier.network_.n_units == units.shape[1]:
        assert_allclose(one.score, exact(outlier, units)[0], atol=1e-9)


def test_a_classifier_of_categories(table):
    y = np.where(table["size"].astype(object) == "L", "large", "other")
    X = table[["colour", "weight", "old"]]
    classifier = SBNClassifier(density=SBNDensity(epochs=10), hidden=(), encode="auto", random_state=0).fit(X, y)
    assert classifier.score(X, y) > 0.75
    assert_allclose(classifier.predict_proba(X).sum(axis=1), 1.0)
    assert len(classifier.encoder_.columns_) == 3


def test_a_class_without_any_cell_of_a_column():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"c": rng.choice(["a", "b", "c"], 60), "q": rng.integers(1, 6, 60).astype(float)})
    y = np.repeat([0, 1], 30)
    X.loc[y == 1, ["c", "q"]] = None
    classifier = SBNClassifier(density=SBNDensity(epochs=3), hidden=(), encode="auto", random_state=0).fit(X, y)
    for network in classifier.networks_:
        units = every_cell(classifier.encoder_)
        frame = pd.DataFrame(units, columns=classifier.encoder_.get_feature_names_out())
        assert abs(np.exp(sb.log_likelihood(network, frame)).sum() - 1.0) < 1e-9


def test_rows_may_come_in_parts_and_be_held_out(table):
    parts = SBNDensity(encode="auto", hidden=2, random_state=0, settings=Training(batch_size=20))
    for _ in range(3):
        parts.partial_fit(table)
    assert len(parts.bounds_) == 3
    assert parts.score(table) > clone(parts).partial_fit(table).score(table)
    watched = {"settings": Training(validation_fraction=0.2, patience=2), "epochs": 12}
    held = SBNDensity(encode="auto", hidden=2, random_state=0, **watched).fit(table)
    assert len(held.held_out_bounds_) == len(held.bounds_) <= 12
    assert abs(np.exp(exact(held, every_cell(held.encoder_))).sum() - 1.0) < 1e-9


def test_how_columns_were_read_is_kept_and_printed(table, capsys):
    density = SBNDensity(encode="auto", hidden=(), epochs=1, verbose=1, random_state=0).fit(table)
    assert "size: ordered, S < M < L" in capsys.readouterr().err
    assert "colour: categories, blue, green, red" in repr(density.encoder_.columns_)


def test_an_encoder_may_be_given(table):
    density = SBNDensity(encode=BinaryEncoder(n_bins=2), hidden=(), column_mixtures=1, epochs=1, random_state=0).fit(
        table
    )
    assert len([unit for unit in density.network_.names if unit.startswith("weight>")]) == 2  # and a switch
    assert density.get_params()["encode__n_bins"] == 2
    marked = SBNDensity(encode="auto", missing=["red"], hidden=(), epochs=1).fit(table)
    assert marked.encoder_.columns_[1].labels == ("blue", "green")
    other = table.assign(colour="pink")
    with pytest.raises(sb.errors.TableError, match="column 'colour' holds 'pink' in row 0"):
        density.score_samples(other)
    lenient = SBNDensity(encode=BinaryEncoder(handle_unknown="missing"), hidden=(), epochs=1, random_state=0).fit(table)
    assert np.isfinite(lenient.score_samples(other)).all()


def test_settings_that_do_not_go_together_are_refused(table):
    with pytest.raises(sb.errors.ParameterError, match="encode is 'yes'; give None, 'auto', or a BinaryEncoder"):
        SBNDensity(encode="yes").fit(table)
    with pytest.raises(sb.errors.ParameterError, match="encode= and binarize= were both given"):
        SBNDensity(encode="auto", binarize=0.5).fit(table)
    with pytest.raises(sb.errors.ParameterError, match="no column of the table has two different values"):
        SBNDensity(encode="auto").fit(pd.DataFrame({"a": ["x", "x"]}))


def test_drawing_missing_cells_learns_more_than_mean_field(monkeypatch):
    """From a table with many holes, scored on one without."""
    holes, whole = survey(300, 0.4, seed=1), survey(300, 0.0, seed=2)
    whole["weight"] = whole["weight"].clip(30, 100)
    density = SBNDensity(encode="auto", hidden=(), column_mixtures=0, epochs=30, random_state=0)
    drawn = clone(density).fit(holes).score(whole)
    monkeypatch.setattr("sbnet.estimators._learning.is_needed", lambda rows: False)
    assert drawn > density.fit(holes).score(whole) + 0.02


def filler(X, **settings):
    density = SBNDensity(epochs=2)
    return SBNImputer(density=density, hidden=(), encode="auto", random_state=0, **settings).fit(X)


def test_lists_and_records_come_back_as_they_were():
    rows = [["a", 1.5, True], ["b", 2.5, None], ["c", 3.5, False], [None, None, True]] * 5
    filled = filler(rows).transform(rows[:1])
    assert filled.tolist() == rows[:1]  # a number beside text stays a number
    records = [dict(zip("xyz", row, strict=True)) for row in rows]
    imputer = filler(records)
    assert imputer.transform(records[:1]) == records[:1]
    (found,) = imputer.transform([{"z": True, "x": "a"}])  # in another order, and without a key
    assert found["x"] == "a"
    assert found["y"] in (1.5, 2.5, 3.5)
    assert set(SBNDensity(encode="auto", hidden=(), epochs=1).fit(records).sample(1)[0]) == {"x", "y", "z"}
    masked = np.ma.masked_equal(np.array([[0.0, 1.5], [1.0, 99.0], [0.0, 2.5]] * 4), 99.0)
    assert_array_equal(np.unique(filler(masked).transform(masked)[:, 1]), [1.5, 2.5])


def test_types_that_differ_from_those_in_fitting():
    table = pd.DataFrame({"c": pd.Categorical(["a", "b", "c", "a"] * 5), "n": [1, 2, 3, 4] * 5})
    fewer = pd.DataFrame({"c": pd.Categorical(["a", None]), "n": [np.nan, 2.0]})
    filled = filler(table).transform(fewer)
    assert filled["c"].dtype == table["c"].dtype  # the category that is filled in need not be among those given
    assert filled["c"][0] == "a"
    assert filled["n"].dtype == np.float64
    assert filled["n"][1] == 2.0
    unnamed = pd.DataFrame(table.to_numpy())
    assert filler(unnamed).transform(unnamed).equals(unnamed)
    marked = filler(table, missing=[4]).transform(pd.DataFrame({"c": table["c"][:1], "n": [4]}))
    assert marked["n"].dtype == np.int64
    assert marked["n"][0] in (1, 2, 3)


def test_columns_about_which_nothing_is_known():
    table = pd.DataFrame({"a": ["x", "y", "z", "y"] * 5, "one": ["q", None] * 10, "none": [np.nan] * 20})
    with pytest.warns(CodingWarning, match="column 'one' holds one value and blanks: read as chosen or not chosen"):
        imputer = filler(table)
    filled = imputer.transform(table)
    assert filled["one"].equals(table["one"])
    assert filled["none"].isna().all()


def any_table(rng):
    """A few rows of up to three columns of any kind, a third of the cells missing."""
    n, columns = int(rng.integers(3, 40)), {}
    kinds = [
        lambda: rng.choice(list("abcd")[: rng.integers(2, 5)], n),
        lambda: rng.integers(0, rng.integers(1, 5), n).astype(float),
        lambda: rng.normal(size=n) * 10.0 ** rng.integers(-5, 6),
        lambda: rng.random(n) < 0.5,
    ]
    for k in range(rng.integers(1, 4)):
        cells = kinds[rng.integers(0, 4)]().astype(object)
        cells[rng.random(n) < 0.3] = None
        columns[f"c{k}"] = cells
    return pd.DataFrame({**columns, "b": rng.integers(0, 2, n)})


@pytest.mark.slow
def test_any_table_has_a_density_over_its_cells():
    """Whatever the columns, the network and the rate of learning: a sum of one, and scores that are bounds."""
    off, excess, count = 0.0, -np.inf, 300
    for seed in range(count):
        rng = np.random.default_rng(seed)
        X, rate = any_table(rng), float(rng.choice([0.03, 1.0, 5.0]))
        shape = {"hidden": [(), 1, 2][rng.integers(0, 3)], "column_mixtures": int(rng.integers(0, 2))}
        training = Training(batch_size=5, learning_rate=rate)
        settings = {"epochs": 3, "prior": None, "random_state": 0, "settings": training}
        density = SBNDensity(encode="auto", autoregressive=bool(rng.integers(0, 2)), **shape, **settings).fit(X)
        off = max(off, abs(np.exp(exact(density, every_cell(density.encoder_))).sum() - 1.0))
        truth = exact(density, density.encoder_.transform(X))
        excess = max(excess, float(np.max(density.score_samples(X) - truth)))
    print(f"\n{count} tables: sums of probabilities off by {off:.1e} at most, bounds above the truth by {excess:.1e}")
    assert off < 1e-9
    assert excess < 1e-9
