"""Ordinary tables through imputer, outlier detector and command: right answers with nothing to set."""

from __future__ import annotations

import csv
import io
import json

import matplotlib
import numpy as np
import pandas as pd
import pytest

matplotlib.use("Agg")

import matplotlib.pyplot as plt

import sbnet as sb
from sbnet import plots
from sbnet.cli import main
from sbnet.cli.infer_columns import ColumnAnswers
from sbnet.estimators import SBNClassifier, SBNDensity, SBNImputer, SBNOutlier
from sbnet.inference.associations import associations, mutual_information
from sbnet.tables.schema import Schema
from sbnet.tables.stored import schema_of

pytestmark = pytest.mark.filterwarnings("ignore::sbnet.errors.CodingWarning")


@pytest.fixture(scope="module")
def passengers():
    """Made up after the manner of the Titanic: `alive` repeats `survived`, `class` repeats `pclass`, `deck` is rare."""
    rng, n = np.random.default_rng(0), 900
    pclass = rng.choice([1, 2, 3], n, p=[0.25, 0.2, 0.55])
    sex = rng.choice(["male", "female"], n, p=[0.65, 0.35])
    age = np.clip(rng.normal(42 - 5 * pclass, 12, n), 0.5, 80).round()
    score = 2.6 * (sex == "female") - 1.1 * (pclass - 1) - 0.02 * (age - 30) - 0.4
    survived = (rng.random(n) < 1 / (1 + np.exp(-score))).astype(int)
    fare = np.exp(rng.normal(4.6 - 0.9 * pclass, 0.5, n)).round(2)
    frame = pd.DataFrame({"id": np.arange(n) + 7000, "survived": survived, "pclass": pclass, "sex": sex, "age": age})
    frame["fare"], frame["class"] = fare, np.array(["First", "Second", "Third"])[pclass - 1]
    frame["alive"], frame["deck"] = np.where(survived == 1, "yes", "no"), rng.choice(list("ABC"), n)
    frame.loc[rng.random(n) < 0.2, "age"] = np.nan
    frame.loc[rng.random(n) < 0.6, "deck"] = None
    return frame


@pytest.fixture(scope="module")
def holes(passengers):
    """A fifth of the cells hidden, but for the names of rows."""
    hide = np.random.default_rng(1).random(passengers.shape) < 0.2
    hide[:, 0] = False
    return passengers.mask(hide), hide


@pytest.fixture(scope="module")
def imputer(holes):
    return SBNImputer(random_state=0, multiple=2).fit(holes[0])


def test_observed_cells_stay_and_copies_agree(imputer, holes):
    given, _ = holes
    whole = imputer.transform(given)
    assert whole.notna().all().all()
    assert whole.dtypes.equals(given.dtypes)
    for name in given:
        seen = given[name].notna()
        assert (whole.loc[seen, name] == given.loc[seen, name]).all()
    agree = (whole["alive"] == "yes") == (whole["survived"] == 1)
    contradicted = ((given["alive"] == "yes") != (given["survived"] == 1)) & given["alive"].notna()
    assert agree[~contradicted | given["survived"].isna()].all()
    number = whole["class"].map({"First": 1, "Second": 2, "Third": 3})
    assert (number == whole["pclass"]).mean() > 0.995


def test_a_number_is_what_is_expected_and_not_what_is_commonest():
    """Few values, of which the commonest are the outermost: 2 is nearest to the mean, and never the likeliest."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"size": rng.choice([1, 2, 3], 400, p=[0.45, 0.1, 0.45]), "word": rng.choice(list("ab"), 400)})
    asked = pd.DataFrame({"size": [np.nan, np.nan], "word": ["a", "b"]})
    imputer = SBNImputer(random_state=0).fit(frame)
    assert imputer.transform(asked)["size"].tolist() == [2, 2]
    assert 2 not in imputer.set_params(strategy="mode").transform(asked)["size"].tolist()


@pytest.mark.parametrize(("apart", "low", "high"), [(1.0, 0.3, 0.6), (12.0, -3.0, 3.0)])
def test_a_number_is_its_mean_unless_that_contradicts_the_word_beside_it(apart, low, high):
    """Both are missing: 1.0 apart any number may stand beside either word, 12.0 apart none beside both."""
    rng = np.random.default_rng(0)
    second = rng.random(3000) < 0.45
    frame = pd.DataFrame({"word": np.where(second, "b", "a"), "size": rng.normal(apart * second)})
    asked = pd.DataFrame({"word": [None], "size": [np.nan]})
    filled = SBNImputer(random_state=0).fit(frame).transform(asked)
    assert filled["word"][0] == "a"
    assert low < filled["size"][0] < high


def test_categories_stay_as_they_are_and_new_ones_are_added_where_they_are_filled_in():
    """Recognised as an order they would have become ordered, in the order of how often they are there or not."""
    rng = np.random.default_rng(0)
    size, word = rng.choice(["low", "medium", "high"], 200), rng.choice(["b", "a"], 200)
    frame = pd.DataFrame({"size": pd.Categorical(size), "word": pd.Categorical(word, ["a", "b", "c"])})
    holes = frame.mask(rng.random(frame.shape) < 0.2)
    imputer = SBNImputer(random_state=0).fit(holes)
    assert imputer.transform(holes).dtypes.equals(frame.dtypes)
    lacking = pd.DataFrame({"size": pd.Categorical(["low", None]), "word": pd.Categorical(["a", None])})
    filled = imputer.transform(lacking)
    assert not filled.isna().any().any()
    assert filled["word"].cat.categories[0] == "a"
    plain = imputer.transform(lacking.astype(object))
    assert plain["word"].astype(object).tolist() == filled["word"].astype(object).tolist()


@pytest.fixture(scope="module")
def measured():
    """The same temperature three times, and a whole number of months beside years."""
    rng, n = np.random.default_rng(0), 400
    celsius, years = rng.normal(15, 8, n).round(1), rng.integers(20, 60, n)
    frame = pd.DataFrame({"celsius": celsius, "fahrenheit": 1.8 * celsius + 32, "months": 12 * years, "years": years})
    frame["again"], frame["near"] = celsius, celsius + rng.normal(0, 0.01, n)
    return frame, frame.astype(float).mask(rng.random(frame.shape) < 0.3)


@pytest.mark.parametrize("strategy", ["mean", "mode", "sample"])
def test_copies_of_numbers_agree(measured, strategy):
    frame, holes = measured
    imputer = SBNImputer(random_state=0, strategy=strategy).fit(holes)
    copies = {column.name: column.copy_of for column in imputer.schema_.columns}
    assert copies == dict.fromkeys(frame, "") | {"fahrenheit": "celsius", "years": "months", "again": "celsius"}
    whole = imputer.transform(holes)
    assert not whole.isna().any().any()
    assert ((whole == holes) | holes.isna()).all().all()
    np.testing.assert_allclose(whole["fahrenheit"], 1.8 * whole["celsius"] + 32, atol=1e-9)
    assert (whole["again"] == whole["celsius"]).all()
    assert (whole["months"] == 12 * whole["years"]).all()
    known = holes[["celsius", "fahrenheit", "again"]].notna().any(axis=1)
    assert (whole["celsius"][known] == frame["celsius"][known]).all()


def test_copies_of_numbers_agree_in_samples_and_a_model_keeps_which_they_are(measured):
    _, holes = measured
    density = SBNDensity(random_state=0).fit(holes)
    drawn, schema = density.sample(50), density.schema_
    np.testing.assert_allclose(drawn["fahrenheit"], 1.8 * drawn["celsius"] + 32, atol=1e-9)
    assert schema.decode([[-1] * len(schema.variables)]).isna().all().all()
    assert "numbers, a copy of celsius" in str(schema["again"])
    kept = type(schema).from_dict(json.loads(json.dumps(schema.to_dict())))
    assert kept["fahrenheit"].copy_of == "celsius"
    assert kept["fahrenheit"].line == pytest.approx((1.8, 32.0), abs=1e-9)


def test_a_density_fills_in_tables_of_any_columns(imputer, holes):
    given, _ = holes
    density = SBNDensity(random_state=0).fit(given)
    pd.testing.assert_frame_equal(density.impute(given), imputer.transform(given))


def test_what_is_filled_in_is_better_than_the_commonest_value(imputer, holes, passengers):
    given, hide = holes
    whole = imputer.transform(given)
    for name in ("survived", "sex", "class", "alive"):
        gone = hide[:, list(given).index(name)]
        right = (whole.loc[gone, name] == passengers.loc[gone, name]).mean()
        assert right > (passengers.loc[gone, name] == given[name].mode()[0]).mean()
    gone = hide[:, list(given).index("fare")]
    error = np.sqrt(np.mean((whole.loc[gone, "fare"] - passengers.loc[gone, "fare"]) ** 2))
    assert error < 0.9 * passengers["fare"].std()
    assert set(whole["fare"]) <= set(given["fare"].dropna())  # fares that somebody paid


def test_draws_differ_where_cells_are_missing_and_nowhere_else(imputer, holes):
    given, _ = holes
    one, other = imputer.draws(given)
    same = one == other
    assert same.to_numpy()[given.notna().to_numpy()].all()
    assert not same["deck"].all()
    assert ((one["alive"] == "yes") == (one["survived"] == 1)).mean() > 0.97
    spread = one.loc[given["age"].isna(), "age"].std()
    assert 0.7 < spread / given["age"].std() < 1.3  # as wide as ages are, which means are not


def test_probabilities_of_a_column(imputer):
    asked = pd.DataFrame({"sex": ["female", "male"], "class": ["First", "Third"]})
    p = imputer.probabilities(asked, column="survived")
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    assert p[0, 1] > 0.8 > 0.3 > p[1, 1]
    assert imputer.schema_["survived"].states == ("no", "yes")


def test_names_of_rows_are_not_invented(passengers):
    part = passengers.head(300)
    lacking = part.assign(id=part["id"].where(part["id"] % 3 > 0))
    assert SBNImputer(random_state=0).fit_transform(lacking)["id"].isna().sum() == 100


def test_an_outlier_is_explained_by_column_and_state(passengers):
    table = passengers.drop(columns="id")
    outlier = SBNOutlier(random_state=0).fit(table)
    odd = table.dropna().head(1).assign(alive="yes", survived=0)
    assert outlier.predict(odd)[0] == -1
    explained = outlier.explain(odd)[0]
    assert set(explained.names[:2]) == {"alive", "survived"}
    assert explained.nats[0] > 3.0
    cell = dict(zip(explained.names, explained.values, strict=True))
    assert cell["class"] in ("First", "Second", "Third")
    assert cell["fare"] in outlier.schema_["fare"].states


# --- the command ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def model(passengers, tmp_path_factory):
    folder = tmp_path_factory.mktemp("ship")
    table, learned = str(folder / "ship.csv"), str(folder / "ship.sbn")
    passengers.to_csv(table, index=False)
    assert main(["fit", table, "-o", learned, "--quiet"]) == 0
    return learned, table


def said(capsys, *arguments):
    assert main([*arguments]) == 0
    return capsys.readouterr().out


def test_a_question_about_a_first_class_woman_is_answered_as_the_data_do(model, passengers, capsys):
    asked = ["sex=female", "class=First", "age=30"]
    told = json.loads(said(capsys, "infer", model[0], *asked, "--json"))
    found = {unit["name"]: unit["mean"] for unit in told["units"]}
    alike = passengers[(passengers["sex"] == "female") & (passengers["pclass"] == 1)]
    assert found["survived"]["yes"] == pytest.approx(alike["survived"].mean(), abs=0.06)
    assert found["alive"]["yes"] == pytest.approx(found["survived"]["yes"], abs=0.01)
    assert found["pclass"]["1"] > 0.99
    lines = said(capsys, "infer", model[0], *asked).splitlines()
    assert [line.split()[0] for line in lines[2:7]] == ["survived", "pclass", "fare", "alive", "deck"]


def test_infer_impute_and_exact_answers_agree(model, tmp_path, capsys):
    network = sb.read(model[0])
    schema = schema_of(network)
    told = json.loads(said(capsys, "infer", model[0], "sex=female", "class=Second", "--json"))
    exact = sb.exact_posterior(network, {"sex": "female", "class": "Second"}, units=["survived", "deck"])
    means = {unit["name"]: unit["mean"] for unit in told["units"]}
    assert means["survived"]["yes"] == pytest.approx(exact["survived"], abs=0.02)
    for state, p in exact["deck"].items():
        assert means["deck"][state] == pytest.approx(p, abs=0.03)
    names = ["survived", "sex", "class", "pclass", "alive"]
    (tmp_path / "row.csv").write_text(",".join(names) + "\n,female,Second,,\n")
    filled = next(csv.DictReader(io.StringIO(said(capsys, "impute", model[0], str(tmp_path / "row.csv")))))
    likeliest = max(means["survived"], key=means["survived"].get)
    assert filled == {"survived": str(int(likeliest == "yes")), "sex": "female", "class": "Second", "pclass": "2",
                      "alive": likeliest}  # fmt: skip
    assert schema["fare"].kind == "numbers"


def test_columns_that_are_nearly_copies_or_seen_together_in_few_rows_are_none():
    rng = np.random.default_rng(0)
    x = rng.normal(1e6, 1.0, 60).round(3)
    apart = np.arange(60) < 40
    table = {"x": x, "near": x + rng.normal(0, 1e-5, 60), "less": -x / 7, "late": np.where(apart, np.nan, 2 * x)}
    table |= {"early": np.where(apart, x + 3, np.nan)[::-1], "square": x * x, "text": [f"{one:.3f}" for one in x]}
    schema = Schema.learn(table, dict.fromkeys(table, "numbers"))
    copies = {column.name: column.copy_of for column in schema.columns if column.copy_of}
    assert copies == {"less": "x", "late": "x", "text": "x"}
    assert schema["less"].line == pytest.approx((-1 / 7, 0.0), rel=1e-9, abs=1e-4)


def test_the_command_fills_in_copies_of_numbers_as_estimators_do(measured, tmp_path, capsys):
    frame, _ = measured
    table, learned, asked = (str(tmp_path / name) for name in ("t.csv", "t.sbn", "asked.csv"))
    frame.to_csv(table, index=False)
    assert main(["fit", table, "-o", learned, "--quiet"]) == 0
    (tmp_path / "asked.csv").write_text("celsius,fahrenheit,months,years\n,77.0,,20\n21.3,,276,\n,,,\n")
    hot, warm, nothing = csv.DictReader(io.StringIO(said(capsys, "impute", learned, asked)))
    assert (float(hot["celsius"]), hot["months"], warm["fahrenheit"], warm["years"]) == (25.0, "240", "70.34", "23")
    assert 1.8 * float(nothing["celsius"]) + 32 == pytest.approx(float(nothing["fahrenheit"]))
    assert int(nothing["months"]) == 12 * int(nothing["years"])


def test_a_question_is_answered_exactly_where_that_takes_a_few_seconds_at_most():
    rng, n = np.random.default_rng(0), 15
    names = [f"v{k}" for k in range(n)]
    edges = {(a, b): rng.normal(size=(3, 3)) for k, b in enumerate(names) for a in names[:k]}
    network = sb.from_edges(edges, states=dict.fromkeys(names, tuple("abcd")))
    evidence = {"v14": "a", "v3": "b", "v4": "c"}  # which leaves a table of 2^24 numbers
    found = ColumnAnswers.ask(network, evidence, np.array([0, 5]))
    assert found.exact
    expected = sb.exact_posterior(network, evidence, units=["v0", "v5"])
    for name, p in zip(("v0", "v5"), found.probabilities, strict=True):
        np.testing.assert_allclose(p, list(expected[name].values()), rtol=1e-9)
    assert not ColumnAnswers.ask(network, {"v14": "a"}, np.array([0])).exact


def test_the_schema_is_in_the_file_in_any_format(model, tmp_path, capsys):
    again = str(tmp_path / "ship.toml")
    assert main(["convert", model[0], "-o", again]) == 0
    capsys.readouterr()
    assert schema_of(sb.read(again)) == schema_of(sb.read(model[0]))
    assert said(capsys, "score", again, model[1]) == said(capsys, "score", model[0], model[1])


# --- associations -----------------------------------------------------------------------------------------------------


def test_copies_are_the_strongest_associations(passengers):
    density = SBNDensity(random_state=0).fit(passengers.drop(columns="id"))
    pairs = associations(density.network_)
    assert {frozenset(pair[:2]) for pair in pairs[:2]} == {
        frozenset({"survived", "alive"}),
        frozenset({"pclass", "class"}),
    }
    about = associations(density.network_, about="survived")
    assert about[0][:2] in (("survived", "alive"), ("alive", "survived"))
    deck = next(pair for pair in about if "deck" in pair[:2])
    assert deck.nats < 0.02
    ax = plots.associations(density, about="survived")
    assert [tick.get_text() for tick in ax.get_yticklabels()][:2] == ["alive", "sex"]
    ax = plots.associations(density)
    assert ax.get_xlabel() == "mutual information, nats"
    ax = plots.missing(passengers)
    assert [tick.get_text() for tick in ax.get_yticklabels()] == list(passengers)
    widths = [bar.get_width() for bar in ax.patches]
    assert widths[4] == pytest.approx(passengers["age"].isna().mean())
    plt.close("all")


def test_mutual_information_is_that_of_the_table():
    rng = np.random.default_rng(0)
    one = rng.integers(0, 3, 200_000)
    other = np.where(rng.random(200_000) < 0.5, one, rng.integers(0, 3, 200_000))
    joint = np.full((3, 3), 0.5 / 9) + 0.5 / 3 * np.eye(3)
    expected = float((joint * np.log(joint * 9)).sum())
    pairs = np.column_stack([one, other]).astype(np.int8)
    assert mutual_information(pairs, np.array([3, 3])) == pytest.approx(expected, abs=0.005)
    apart = np.column_stack([one, rng.integers(0, 3, 200_000)]).astype(np.int8)
    assert mutual_information(apart, np.array([3, 3])) < 1e-4


@pytest.mark.parametrize("n", [3, 4])
def test_classes_that_lie_on_a_line_are_told_apart_from_one_end(n):
    """Whatever they are called and however many rows they have: the rarest is in the middle."""
    rng, names = np.random.default_rng(0), ["low", "high", "middle", "more"][:n]
    size = rng.choice(n, 400, p=[[0.4, 0.2, 0.4], [0.3, 0.1, 0.2, 0.4]][n - 3])
    table = pd.DataFrame({"height": size + 0.5 * rng.normal(size=400), "weight": size + rng.normal(size=400)})
    table = table.mask(rng.random(table.shape) < 0.1)
    along = [names[k] for k in ([2, 0, 1], [3, 1, 0, 2])[n - 3]]
    classifier = SBNClassifier(random_state=0).fit(table, np.array(along)[size])
    assert list(classifier.network_.states["label"]) in (along, along[::-1])
    assert classifier.score(table, np.array(along)[size]) > 0.6
    assert classifier.predict_proba(pd.DataFrame({"height": [3.0 * n], "weight": [3.0 * n]})).argmax() == list(
        classifier.classes_
    ).index(along[-1])
