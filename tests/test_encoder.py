"""An encoder reads each column by a rule that can be looked up, and gives back the table it was given."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

import sbnet as sb
from sbnet.estimators import BinaryEncoder, SBNDensity, SBNImputer

pytestmark = pytest.mark.small


def survey():
    return pd.DataFrame(
        {
            "smoker": ["no", "yes", "no", None, "yes", "no"],
            "asthma": pd.array([True, False, None, True, True, False], dtype="boolean"),
            "size": pd.Categorical(["S", "L", "M", "S", None, "L"], categories=["S", "M", "L", "XL"], ordered=True),
            "colour": pd.Categorical(["red", "blue", None, "green", "red", "red"], categories=["red", "green", "blue"]),
            "rating": [1, 5, 3, 2, 4, 5],
            "age": [31.5, 45.25, np.nan, 60.125, 28.0, 39.0],
            "code": pd.array([1, 2, 1, None, 2, 2], dtype="Int64"),
        },
        index=list("abcdef"),
    )


def test_the_rules():
    encoder = BinaryEncoder(n_bins=3).fit(survey())
    assert repr(encoder.columns_).split("\n") == [
        "smoker: two values, no and yes",
        "asthma: two values, 0 and 1",
        "size: ordered, S < M < L",
        "colour: categories, red, green, blue",
        "rating: levels, 1, 2, 3, 4, 5",
        "age: number, thresholds at 32, 50",
        "code: two values, 1 and 2",
    ]
    assert " ".join(encoder.get_feature_names_out()) == (
        "smoker=yes asthma size>S size>M colour=red colour=green colour=blue "
        "rating>1 rating>2 rating>3 rating>4 age>32 age>50 code=2"
    )
    units = encoder.transform(survey())
    assert units.dtype == np.float64
    assert_array_equal(units[0], [0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0])
    assert_array_equal(units[1], [1, 0, 1, 1, 0, 0, 1, 1, 1, 1, 1, 1, 0, 1])
    assert_array_equal(np.isnan(units[2]), [0, 1, 0, 0, 1, 1, 1, 0, 0, 0, 0, 1, 1, 0])


def test_a_reference_category_is_the_state_without_any_unit():
    encoder = BinaryEncoder(drop="most_frequent").fit(survey())
    names = [name for name in encoder.get_feature_names_out() if name.startswith("colour")]
    assert names == ["colour=green", "colour=blue"]
    units = encoder.set_output(transform="pandas").transform(survey())[names]
    assert_array_equal(units.to_numpy(), [[0, 0], [0, 1], [np.nan] * 2, [1, 0], [0, 0], [0, 0]])


@pytest.mark.parametrize("drop", [None, "most_frequent"])
@pytest.mark.parametrize("kind", [lambda t: t, pl.from_pandas, pa.Table.from_pandas])
def test_tables_come_back_as_they_were(kind, drop):
    table = kind(survey().drop(columns="age").reset_index(drop=True))
    encoder = BinaryEncoder(drop=drop).fit(table)
    back = encoder.inverse_transform(encoder.transform(table))
    assert type(back) is type(table)
    if isinstance(table, pa.Table):  # which may number the categories anew
        assert back.schema == table.schema
        back, table = back.to_pylist(), table.to_pylist()
    elif isinstance(table, pd.DataFrame):
        assert back.dtypes.equals(table.dtypes)
    assert back == table if isinstance(back, list) else back.equals(table)


def test_an_encoder_can_be_pickled():
    encoder = BinaryEncoder().fit(survey())
    again = pickle.loads(pickle.dumps(encoder))
    assert_array_equal(again.transform(survey()), encoder.transform(survey()))
    assert again.inverse_transform(again.transform(survey())).equals(
        encoder.inverse_transform(encoder.transform(survey()))
    )


def test_a_number_comes_back_as_the_median_of_its_interval():
    ages = np.array([[21.0], [25], [28], [33], [40], [41], [47], [55], [62], [np.nan]])
    encoder = BinaryEncoder(n_bins=3).fit(ages)
    assert repr(encoder.columns_) == "x0: number, thresholds at 30, 41"
    back = encoder.inverse_transform(encoder.transform(ages))
    assert_array_equal(back[:, 0], [25, 25, 25, 40, 40, 40, 55, 55, 55, np.nan])


cells = st.one_of(st.none(), st.sampled_from(["a", "b", "c", "d"]))


@pytest.mark.filterwarnings("ignore::sbnet.errors.CodingWarning")  # one value and blanks
@given(
    st.lists(st.tuples(cells, cells, st.one_of(st.none(), st.integers(-3, 3))), min_size=1, max_size=12),
    st.sampled_from([None, "most_frequent"]),
)
def test_round_trip(rows, drop):
    """Whatever categories and levels a table has, and wherever its holes are."""
    array = np.empty((len(rows), 3), dtype=object)
    array[:] = rows
    encoder = BinaryEncoder(drop=drop).fit(array)
    units = encoder.transform(array)
    assert set(np.unique(units[~np.isnan(units)])) <= {0.0, 1.0}
    back = encoder.inverse_transform(units)
    for k, coding in enumerate(encoder.columns_):
        for given_cell, cell in zip(array[:, k], back[:, k], strict=True):
            # A single category has no unit if it is the reference, so that nothing is left to be missing.
            assert cell == given_cell or (given_cell is None and (cell is None or cell != cell or not coding.units))


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=40), st.integers(2, 6), st.floats(-1e7, 1e7))
def test_thresholds_are_a_thermometer(numbers, n_bins, new):
    """A unit is 1 only if the one before it is, every training interval is used, and any number is known."""
    assume(len(set(numbers)) > 2)
    encoder = BinaryEncoder(n_bins=n_bins, identifiers="keep").fit(np.array(numbers)[:, None])
    assume(encoder.columns_[0].kind.value == "number")
    units = encoder.transform(np.array([*numbers, new])[:, None])
    assert units.shape[1] <= n_bins - 1
    assert np.all(np.diff(units, axis=1) <= 0)
    assert np.all((units[:-1].min(axis=0) == 0) & (units[:-1].max(axis=0) == 1))
    low, high = min(numbers), max(numbers)
    assert low <= float(encoder.inverse_transform(units[-1:])[0, 0]) <= high


def test_means_give_the_most_probable_value():
    encoder = BinaryEncoder(drop="most_frequent").fit(survey()[["size", "colour", "smoker"]])
    means = [[0.9, 0.7, 0.2, 0.3, 0.4], [0.4, 0.3, 0.6, 0.1, 0.6], [0.6, 0.1, np.nan, 0.5, 0.5]]
    back = encoder.inverse_transform(means)
    assert back["size"].tolist() == ["L", "S", "M"]
    assert back["colour"].tolist()[:2] == ["red", "green"]
    assert back["colour"].isna()[2]
    assert back["smoker"].tolist() == ["no", "yes", "no"]


def test_an_order_may_be_given():
    table = {"mood": ["bad", "good", "fair", "good", None]}
    encoder = BinaryEncoder(ordered={"mood": ["bad", "fair", "good", "great"]}).fit(pl.DataFrame(table))
    assert list(encoder.get_feature_names_out()) == ["mood>bad", "mood>fair"]
    with pytest.raises(sb.errors.TableError, match="column 'mood' holds 'fair', which is not in ordered: bad, good"):
        BinaryEncoder(ordered={"mood": ["bad", "good"]}).fit(pl.DataFrame(table))
    with pytest.raises(sb.errors.ParameterError, match="ordered names column 'mod', which is not in the table"):
        BinaryEncoder(ordered={"mod": ["bad", "good"]}).fit(pl.DataFrame(table))


def test_some_values_mean_missing():
    table = pd.DataFrame({"q": ["yes", "no", "don't know"], "n": [1, 2, 99]})
    units = BinaryEncoder(missing=("don't know", 99)).fit_transform(table)
    assert_array_equal(units, [[1, 0], [0, 1], [np.nan, np.nan]])


def test_an_unknown_category():
    table = pd.DataFrame({"colour": ["red", "green", "blue"], "code": [0, 1, 0]})
    other = pd.DataFrame({"colour": ["red", "pink"], "code": [0, 7]})
    encoder = BinaryEncoder().fit(table)
    with pytest.raises(sb.errors.TableError) as refused:
        encoder.transform(other)
    assert str(refused.value) == (
        "column 'colour' holds 'pink' in row 1, which is not among its values blue, green, red; "
        "handle_unknown='missing' takes such cells as missing"
    )
    units = encoder.set_params(handle_unknown="missing").transform(other)
    assert_array_equal(units, [[0, 0, 1, 0], [np.nan] * 4])


def test_columns_with_little_in_them():
    table = pd.DataFrame({"same": ["a", "a"], "fixed": [3.5, 3.5], "nothing": [np.nan, np.nan], "b": [0.0, 1.0]})
    encoder = BinaryEncoder().fit(table)
    units = encoder.transform(table)
    assert list(encoder.get_feature_names_out()) == ["same=a", "fixed>3.5", "nothing>0", "b"]
    assert_array_equal(units, [[1, 0, np.nan, 0], [1, 0, np.nan, 1]])
    assert encoder.inverse_transform(units).equals(table)
    assert BinaryEncoder(drop="most_frequent").fit(table).get_feature_names_out()[0] == "fixed>3.5"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_bins": 1}, "n_bins is 1; it must be a whole number, 2 or more"),
        ({"n_levels": 0}, "n_levels is 0"),
        ({"drop": "first"}, "drop is 'first'; choose one of None, 'most_frequent'"),
        ({"handle_unknown": "ignore"}, "handle_unknown is 'ignore'; choose one of 'error', 'missing'"),
    ],
)
def test_settings_are_checked(settings, message):
    with pytest.raises(sb.errors.ParameterError, match=message):
        BinaryEncoder(**settings).fit([[0.0], [1.0]])


def test_what_cannot_be_encoded_is_refused():
    with pytest.raises(sb.errors.TableError, match="holds 300 different values, which would be a unit each"):
        BinaryEncoder().fit(pd.DataFrame({"name": [f"n{k}" for k in range(300)]}))
    with pytest.raises(sb.errors.TableError, match="column 'x0' holds infinity in row 1"):
        BinaryEncoder().fit([[0.5], [np.inf], [0.25]])
    with pytest.raises(sb.errors.TableError, match="two columns would have a unit 'a=b=c'; rename one"):
        BinaryEncoder().fit(pd.DataFrame({"a": ["b=c", "a"], "a=b": ["c", "a"]}))
    encoder = BinaryEncoder().fit([[0.0], [1.0]])
    with pytest.raises(sb.errors.ParameterError, match="the table has 2 columns; the encoder makes 1 units"):
        encoder.inverse_transform([[0.0, 1.0]])
    with pytest.raises(sb.errors.ParameterError, match="means must lie between 0 and 1"):
        encoder.inverse_transform([[2.0]])


# --- columns that surprise --------------------------------------------------------------------------------------------


def ticked(n=30):
    """A survey: who answered, what applies, and how often."""
    rng = np.random.default_rng(3)
    tick = np.where(rng.random(n) < 0.4, "Episode I", None)
    return pd.DataFrame(
        {"RespondentID": 3_292_000_000 + rng.permutation(n), "film": tick, "times": rng.integers(0, 3, n)}
    )


def test_one_value_and_blanks_are_chosen_or_not():
    table = ticked().drop(columns="RespondentID")
    with pytest.warns(sb.errors.CodingWarning, match="column 'film' holds one value and blanks: read as chosen or not"):
        encoder = BinaryEncoder().fit(table)
    assert repr(encoder.columns_[0]) == "film: chosen or not, Episode I, or blank"
    units = encoder.transform(table)
    assert_array_equal(units[:, 0], table["film"].notna())
    back = encoder.inverse_transform(units)
    assert back["film"].isna().equals(table["film"].isna())
    with pytest.raises(sb.errors.TableError, match="which is not among its values not chosen, Episode I"):
        encoder.transform(table.assign(film="Episode II"))
    ones = pd.DataFrame({"tick": [1.0, np.nan, 1.0, np.nan], "never": [0.0, np.nan, 0.0, np.nan], "x": [0, 1, 1, 0]})
    with pytest.warns(sb.errors.CodingWarning, match="column 'tick' holds"):
        encoder = BinaryEncoder().fit(ones)
    assert list(encoder.get_feature_names_out()) == ["tick", "never>0", "x"]


def test_numbers_of_rows_are_left_out():
    table = ticked().assign(film="I")
    with pytest.warns(sb.errors.CodingWarning, match="column 'RespondentID' holds whole numbers of which no two are"):
        encoder = BinaryEncoder().fit(table)
    assert repr(encoder.columns_[0]) == "RespondentID: left out, all different whole numbers"
    assert not any("Respondent" in name for name in encoder.get_feature_names_out())
    assert any("RespondentID>" in name for name in BinaryEncoder(identifiers="keep").fit(table).get_feature_names_out())
    halves = table.assign(RespondentID=table["RespondentID"] + 0.5)  # a measurement
    assert BinaryEncoder().fit(halves).columns_[0].kind.value == "number"
    assert BinaryEncoder().fit(table[:19]).columns_[0].kind.value == "number"


def test_imputers_leave_their_cells_alone():
    table = ticked()
    table["times"] = table["times"].astype(float)
    table.loc[[2, 5], "times"] = np.nan
    table["RespondentID"] = table["RespondentID"].astype(float)
    table.loc[4, "RespondentID"] = np.nan
    with pytest.warns(sb.errors.CodingWarning) as told:
        imputer = SBNImputer(encode="auto", hidden=0, density=SBNDensity(epochs=1), random_state=0).fit(table)
    assert {str(warning.message).split(" holds")[0] for warning in told} == {"column 'film'", "column 'RespondentID'"}
    filled = imputer.transform(table)
    assert filled["RespondentID"].equals(table["RespondentID"])
    assert filled["film"].equals(table["film"])
    assert filled["times"].notna().all()
    drawn = SBNImputer(encode="auto", hidden=0, density=SBNDensity(epochs=1), random_state=0, strategy="sample")
    with pytest.warns(sb.errors.CodingWarning):
        assert drawn.fit_transform(table)["film"].equals(table["film"])


def test_blanks_of_tables_that_are_not_encoded():
    table = pd.DataFrame({"tick": ["yes", None, "yes", None], "other": ["no", "yes", "no", None]})
    with pytest.warns(
        sb.errors.CodingWarning, match="one value and blanks are all that is in 'tick': blanks are missing"
    ):
        SBNDensity(epochs=1, hidden=0).fit(table)
    numbers = pd.DataFrame({"tick": [1.0, np.nan, 1.0], "x": [0.0, 1.0, np.nan], "never": [0.0, 0.0, np.nan]})
    with pytest.warns(sb.errors.CodingWarning, match="all that is in 'tick': blanks"):
        SBNDensity(epochs=1, hidden=0).fit(numbers)
    SBNDensity(epochs=1, hidden=0).fit(numbers.to_numpy())  # NaN is a missing cell there, and nothing else
