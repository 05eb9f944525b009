"""How columns of ordinary tables are read as variables with states."""

import datetime
import json
import warnings
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sbnet.errors import CodingWarning, ParameterError, TableError
from sbnet.tables.headers import unique, with_second_line
from sbnet.tables.schema import Schema
from sbnet.tables.words import word

pytestmark = pytest.mark.filterwarnings("ignore::sbnet.errors.CodingWarning")


def one(cells, said=None, **kwargs):
    """The column that a list of cells is read as."""
    return Schema.learn(pd.DataFrame({"a": cells}), None if said is None else {"a": said}, **kwargs)["a"]


def told(table, **kwargs):
    """What is said in warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        Schema.learn(table, **kwargs)
    return " ".join(str(w.message) for w in caught)


MANY = np.random.default_rng(0)


@pytest.mark.parametrize(
    ("cells", "kind", "states"),
    [
        ([0, 1, 1, np.nan], "yes/no", ("no", "yes")),
        ([True, False, None, True], "yes/no", ("no", "yes")),
        (["False", "True", "True"], "yes/no", ("no", "yes")),
        (["Yes", "No", "yes", None], "yes/no", ("No", "yes")),
        (["present", "absent"], "yes/no", ("absent", "present")),
        (["oui", "non"], "yes/no", ("non", "oui")),
        (["sick", "no", "sick"], "yes/no", ("no", "sick")),
        (["male", "male", "female"], "words", ("female", "male")),
        (["female", "female", "male"], "words", ("male", "female")),
        (["S", "C", "S", "Q", "S", "C"], "words", ("Q", "C", "S")),
        (["30-44", "18-29", "> 60", "45-60"], "ordered", ("18-29", "30-44", "45-60", "> 60")),
        (["$1,000+", "$0 - $249", "$250 - $999"], "ordered", ("$0 - $249", "$250 - $999", "$1,000+")),
        (["under 18", "65 and over", "18 to 64"], "ordered", ("under 18", "18 to 64", "65 and over")),
        (["Agree", "Strongly disagree", "Neutral"], "ordered", ("Strongly disagree", "Neutral", "Agree")),
        (["often", "never", "Sometimes"], "ordered", ("never", "Sometimes", "often")),
        (["high", "none", "low", "medium"], "ordered", ("none", "low", "medium", "high")),
        (["Fairly low", "Very high", "Average"], "ordered", ("Fairly low", "Average", "Very high")),
        (["H", "L", "M"], "ordered", ("L", "M", "H")),
        (["II", "IV", "I", "III"], "ordered", ("I", "II", "III", "IV")),
        (["2: medium", "1: small", "3: large"], "ordered", ("1: small", "2: medium", "3: large")),
        (["1-2Yr", "<1Mo", "3-12Mo", "1-3Mo"], "ordered", ("<1Mo", "1-3Mo", "3-12Mo", "1-2Yr")),
        (["40-79", "0-39g/day", "120+", "80-119"], "ordered", ("0-39g/day", "40-79", "80-119", "120+")),
        (["15-24", "40-", "25-39"], "ordered", ("15-24", "25-39", "40-")),
        ([">3cm", "<=3cm", ">3cm"], "ordered", ("<=3cm", ">3cm")),
        (["12 months", "6 months"], "ordered", ("6 months", "12 months")),
        (["4/4", "2/3", "4/4", "2/3", "4/4"], "words", ("2/3", "4/4")),
        (["May 1, 2005", "Apr 30, 2005", "May 1, 2005"], "dates", ("2005-04-30", "2005-05-01")),
        (["3 March 2001", "28 Feb 2001", "3 March 2001"], "dates", ("2001-02-28", "2001-03-03")),
        (["First", "Third", "Second"], "ordered", ("First", "Second", "Third")),
        (pd.Categorical(["b", "a", "b"], ["b", "a", "z"], ordered=True), "ordered", ("b", "a")),
        (pd.Categorical(["b", "a", "b", "c", "c", "c"], ["a", "b", "c", "z"]), "words", ("a", "b", "c")),
        ([1, 2, 3, 2, 1], "numbers", ("1", "2", "3")),
        (["1", "2", "3", "2"], "numbers", ("1", "2", "3")),
        (["x", None, "x"], "tick box", ("no", "yes")),
        ([1.0, None, 1.0], "tick box", ("no", "yes")),
        (["x", "x"], "ignored", ()),
        ([7, 7, 7], "ignored", ()),
        ([None, None], "ignored", ()),
        (["007", "042", "007", "099"], "words", ("042", "099", "007")),
        (list(range(1000, 1030)), "ignored", ()),
        ([f"Dear Sir, number {k}" for k in range(30)], "ignored", ()),
    ],
)  # fmt: skip
def test_what_a_column_is_read_as(cells, kind, states):
    column = one(cells)
    assert (column.kind, column.states) == (kind, states)


def test_numbers_become_intervals_with_about_equally_many_rows():
    ages = MANY.gamma(6.0, 6.0, 800).round(1)
    schema = Schema.learn({"age": ages})
    rows = schema.encode({"age": ages})
    counts = np.bincount(rows[:, 0])
    assert len(counts) == 12
    assert 50 < counts.min() <= counts.max() < 85
    assert schema["age"].states[0].startswith("up to ")
    assert schema["age"].states[-1].startswith("above ")


@pytest.mark.parametrize(("n", "bins"), [(30, 3), (100, 10), (2000, 12), (5_000, 15), (100_000, 16)])
def test_more_rows_have_more_intervals(n, bins):
    assert len(Schema.learn({"x": MANY.normal(size=n)})["x"].states) == bins


def test_an_interval_is_cut_where_a_label_changes_in_it():
    """Two changes inside of intervals of equally many rows are found; classes that change nowhere cut nothing."""
    rng = np.random.default_rng(0)
    x = rng.random(1000)
    plain, own = one(x), one(x, classes=((x > 0.3) & (x < 0.345)).astype(int))
    assert set(plain.cuts) < set(own.cuts)
    found = sorted(set(own.cuts) - set(plain.cuts))
    np.testing.assert_allclose(found, [0.3, 0.345], atol=0.006)
    assert one(x, classes=rng.integers(0, 3, 1000)).cuts == plain.cuts


def test_a_label_in_rows_that_are_no_rows_cuts_nothing():
    x = np.concatenate([np.random.default_rng(0).random(600), np.full(200, 0.31)])
    label, weights = (x == 0.31).astype(int), np.repeat([1.0, 0.0], [600, 200])
    table = pd.DataFrame({"a": x})
    assert Schema.learn(table, weights=weights, classes=label)["a"].cuts == one(x[:600]).cuts


def test_a_frequent_number_has_an_interval_of_its_own():
    spent = np.where(MANY.random(500) < 0.4, 0.0, MANY.gamma(2.0, 10.0, 500))
    schema = Schema.learn({"spent": spent})
    assert schema["spent"].states[0] == "0"
    assert np.array_equal(schema.encode({"spent": spent})[:, 0] == 0, spent == 0.0)


def test_dates_are_numbers():
    days = [datetime.date(2020, 1, 1) + datetime.timedelta(days=int(d)) for d in MANY.integers(0, 900, 200)]
    for cells in (days, pd.to_datetime(days).tz_localize("Europe/Rome"), [day.isoformat() for day in days]):
        frame = pd.DataFrame({"when": cells})
        schema = Schema.learn(frame)
        assert schema["when"].kind == "dates"
        assert len(schema["when"].states) == 12
        rows = schema.encode(frame)
        assert np.all(np.diff(rows[np.argsort(days, kind="stable"), 0]) >= 0)
        back = schema.decode(rows)
        assert back.dtypes.equals(frame.dtypes)
        assert np.array_equal(schema.encode(back), rows)


def test_whole_numbers_that_are_all_dates_are_dates_and_said():
    days = [datetime.date(1975, 1, 3) + datetime.timedelta(days=int(d)) for d in MANY.permutation(900)[:200]]
    whole = [int(day.strftime("%Y%m%d")) for day in days]
    for cells in (whole, [float(day) for day in whole], [str(day) for day in whole], [*whole[:-1], None]):
        frame = pd.DataFrame({"when": cells})
        with pytest.warns(CodingWarning, match=r"such as 19750103 are read as dates, in 'when'.*numbers"):
            schema = Schema.learn(frame)
        assert (schema["when"].kind, len(schema["when"].states)) == ("dates", 12)
        assert "1975-01-" in schema["when"].states[0]
        rows = schema.encode(frame)[:199, 0]
        assert np.all(np.diff(rows[np.argsort(days[:199], kind="stable")]) >= 0)
        assert schema.decode(rows[:, None]).when.isin(cells).all()
        assert one(cells, "numbers").kind == "numbers"
    assert schema.encode({"when": [19750231, 19760101]}).tolist()[0] == [-1]  # no day of February
    assert one([*whole, 19750231]).kind == "ignored"  # equal in length, and none of them twice: names of rows
    assert one([19750103, 19750103, 12, 40] * 9).kind == "numbers"


def test_a_column_is_printed_as_a_row_of_the_schema():
    schema = Schema.learn({"age": ["18-29", "> 60", "30-44"] * 5, "smoker": ["no", "yes", None] * 5})
    assert repr(schema["smoker"]) == "column  read as  states   missing\nsmoker  yes/no   no, yes  5"
    assert repr(schema["age"]).splitlines()[1] in str(schema)


def test_what_is_left_out_is_named():
    frame = pd.DataFrame({"id": range(30), "k": [1] * 30, "none": [None] * 30, "x": MANY.normal(size=30)})
    text = told(frame)
    for part in ("id (names rows)", "k (always 1)", "none (empty)"):
        assert part in text
    assert Schema.learn(frame).names == ("x",)


def test_a_measurement_without_equal_values_is_no_identifier():
    income = MANY.permutation(np.unique(MANY.integers(900, 90_000, 60)))
    assert one(income).kind == "numbers"
    assert one(np.sort(income)).kind == "numbers"
    patients = np.cumsum(MANY.integers(1, 9, 60))
    assert one(patients).kind == "ignored"
    assert one(patients, "numbers").kind == "numbers"


def test_suspicious_values_are_said_and_not_guessed():
    age = [*MANY.integers(18, 80, 60).tolist(), -99, -99]
    assert "-99" in told({"age": age})
    assert one(age).missing == 0
    assert one(age, missing=[-99]).missing == 2
    assert "don't know" in told({"a": ["red", "green", "don't know", "blue", "red"]})
    text = told({"a": ["1.5", "2.5", "-", "7", "3.25", "4", "5", "6"]})
    assert "'-' counts as missing" in text
    assert "missing=" in text


@pytest.mark.parametrize("mark", [-99.0, -200.0, 999.0, 88.0])
def test_numbers_far_from_all_others_are_suspicious_below_and_above(mark):
    degrees = MANY.normal(5.0, 8.0, 200).round(1).clip(-15.0, 25.0)
    assert word(mark) in told({"degrees": [*degrees, mark, mark, mark]})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Schema.learn({"degrees": degrees, "income": [*np.exp(MANY.normal(8.0, 1.0, 198)), 1e6, 1e6]})


def test_rare_and_unseen_words():
    cells = ["a"] * 60 + ["b"] * 30 + ["c", "d", "e"]
    schema = Schema.learn({"w": cells})
    assert schema["w"].states == ("other", "b", "a")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert schema.encode({"w": ["d", "never seen", "a"]})[:, 0].tolist() == [0, 0, 2]
    schema = Schema.learn({"w": ["a", "b", "c"] * 20})
    with pytest.warns(CodingWarning, match="'w' .'z'"):
        assert schema.encode({"w": ["z", "b"]})[:, 0].tolist() == [-1, 1]


def test_words_on_the_left_are_found_in_any_case_and_by_their_meaning():
    schema = Schema.learn({"smoker": ["Yes", "No", "No"], "sex": ["Male", "male ", "female"]})
    assert schema["sex"].states == ("female", "male")
    rows = schema.encode({"smoker": ["YES", True, 0, "non"], "sex": ["MALE", None, "Female", ""]})
    assert rows.tolist() == [[1, 1], [1, -1], [0, 0], [0, -1]]


def test_overrides():
    table = {"id": list(range(50)), "grade": ["A", "B", "D", "A", "B"] * 10, "n": [1, 2, 3, 4, 5] * 10}
    schema = Schema.learn(table, columns={"id": "numbers", "grade": ["D", "C", "B", "A"], "n": "words"})
    assert schema["id"].kind == "numbers"
    assert schema["grade"].states == ("D", "C", "B", "A")
    assert schema["n"].kind == "words"
    assert Schema.learn(table, columns={"n": "ignore", "grade": "ignore", "id": "numbers"}).names == ("id",)
    with pytest.raises(ParameterError, match="'grad'.*did you mean 'grade'"):
        Schema.learn(table, columns={"grad": "ordered"})
    with pytest.raises(ParameterError, match="read as 'colour'; say one of"):
        Schema.learn(table, columns={"grade": "colour"})
    with pytest.raises(TableError, match="holds 'D', which is not in its list: A, B"):
        Schema.learn(table, columns={"grade": ["A", "B"]})


def test_a_table_of_zeros_and_ones_stays_binary():
    X = np.array([[0, 1, -1], [1, 1, 0], [0, 1, 0]])
    schema = Schema.learn(X)
    assert schema.names == ("x0", "x1", "x2")
    assert schema.is_binary
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.array_equal(schema.encode(X), X)
    assert np.array_equal(Schema.learn(X.astype(float)).encode(np.where(X < 0, np.nan, X)), X)
    frame = pd.DataFrame(np.where(X < 0, np.nan, X), columns=list("abc"))
    assert Schema.learn(frame).states == dict.fromkeys("abc", ("no", "yes"))


def survey(n=40):
    """A table as a survey has it: blank names, and a second line of them."""
    rank = MANY.integers(1, 4, (n, 2)).astype(str)
    ticked = MANY.random(n) < 0.4
    rows = [["", "Film A", "Film B", "Film A", "Response"]]
    rows += [[str(900_000 - k), *rank[k], "Film A" if ticked[k] else None, "Yes" if k % 3 else "No"] for k in range(n)]
    return ["ID", "Please rank", "Unnamed: 2", "Seen", "Fan?"], rows


def test_a_second_line_of_names():
    names, rows = survey()
    frame = pd.DataFrame(rows, columns=names)
    assert "the first row seems to name columns once more" in told(frame)
    schema = Schema.learn(frame)
    kinds = [schema[name].kind for name in names]
    assert kinds == ["ignored", "numbers", "numbers", "tick box", "yes/no"]
    assert schema["Please rank"].states == ("1", "2", "3")
    assert (schema.encode(frame)[0] == -1).all()
    assert np.array_equal(schema.encode(frame)[1:], schema.encode(frame.iloc[1:]))
    assert "first row" not in told(frame.iloc[1:])
    blank = ["ID", "Please rank", "", "Seen", "Fan?"]
    assert with_second_line(blank, rows[0]) == ("ID", "Please rank: Film A", "Please rank: Film B", "Seen", "Fan?")


def test_names_that_are_there_twice():
    frame = pd.DataFrame([["x", "u"], ["y", "v"]] * 3, columns=["a", "a"])
    schema = Schema.learn(frame)
    assert schema.names == ("a", "a (2)")
    assert schema.encode(frame).shape == (6, 2)
    assert unique(["a", "", "a", "a (2)"]) == ("a", "column 2", "a (2)", "a (2) (2)")


def test_weights_are_repetitions():
    frame = pd.DataFrame({"x": MANY.normal(size=60), "w": MANY.choice(list("abcdef"), 60)})
    weights = MANY.integers(0, 4, 60)
    assert Schema.learn(frame, weights=weights).states == Schema.learn(frame.loc[frame.index.repeat(weights)]).states


def test_the_print_has_a_line_a_column():
    text = str(Schema.learn({"age": MANY.normal(size=100), "class": ["First", "Third"] * 50, "id": list(range(100))}))
    lines = text.splitlines()
    assert lines[0].split() == ["column", "read", "as", "states", "missing"]
    assert [line.split()[0] for line in lines[1:]] == ["age", "class", "id"]
    assert "First < Third" in text
    assert "left out: names rows" in text


cells = st.one_of(
    st.none(), st.booleans(), st.integers(-5, 5), st.integers(-(10**400), 10**400), st.floats(allow_infinity=False),
    st.text(max_size=8), st.binary(max_size=4), st.decimals(allow_nan=True, allow_infinity=False, places=2),
    st.sampled_from(["yes", "no", "1", "0", "-99", "1,000", "$5", "7%", "٣", "2020-02-30", "1/2/2020", "\x00", "NA"]),
    st.just(pd.NA), st.just(np.datetime64("NaT")), st.just(pd.NaT),
)  # fmt: skip
dates = st.one_of(
    st.none(), st.just(pd.NaT), st.dates(), st.datetimes(timezones=st.none() | st.just(datetime.UTC)),
    st.times(), st.timedeltas(),
)  # fmt: skip
columns = st.one_of(
    st.lists(cells, min_size=5, max_size=5),
    st.lists(dates, min_size=5, max_size=5),
    st.lists(st.sampled_from(["a", "b", "c", None]), min_size=5, max_size=5).map(
        lambda c: pd.Categorical(c, ["c", "b", "a", "unused"], ordered=True)
    ),
    st.lists(st.sampled_from([True, False, None]), min_size=5, max_size=5).map(lambda c: pd.array(c, "boolean")),
    st.lists(st.integers(0, 2**62), min_size=5, max_size=5).map(lambda c: pd.array(c, "Int64")),
    st.lists(st.datetimes(datetime.datetime(1700, 1, 1), datetime.datetime(2200, 1, 1)), min_size=5, max_size=5).map(
        lambda c: pd.Series(c).dt.tz_localize("UTC").dt.tz_convert("Asia/Tokyo")
    ),
)


@settings(max_examples=300, deadline=None)
@given(
    st.dictionaries(st.sampled_from(["a", "é", "Unnamed: 1", "x0", " ", "id"]), columns, min_size=1), st.integers(0, 5)
)
def test_hostile_frames_are_read_and_given_back(table, n_rows):
    frame = pd.DataFrame({name: pd.Series(c) for name, c in table.items()}).iloc[:n_rows]
    check_whole(frame)
    check_whole({name: list(frame[name]) for name in frame})
    if n_rows:
        check_whole(frame.to_dict("records"))


def check_whole(table):
    """A schema keeps its promises, for any table that it takes."""
    try:
        schema = Schema.learn(table)
    except TableError:
        return
    rows = schema.encode(table)
    assert rows.dtype == np.int16
    assert rows.shape[1] == len(schema.variables)
    for v, column in enumerate(schema.variables):
        assert len(set(column.states)) == len(column.states) == len(column.cells) >= 2
        assert all(isinstance(state, str) and state.strip() for state in column.states)
        assert rows[:, v].max(initial=-1) < len(column.states)
    ticks = np.array([column.kind == "tick box" for column in schema.variables], bool)
    back = np.where(ticks & (rows < 0), 0, rows)  # a second line of names has missing cells, and blanks are not ticked
    for rng in (None, np.random.default_rng(0)):
        assert np.array_equal(schema.encode(schema.decode(rows, rng)), back)
    again = Schema.from_dict(json.loads(json.dumps(schema.to_dict())))
    assert again.to_dict() == schema.to_dict()
    assert np.array_equal(again.encode(table), rows)
    assert str(schema)


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame, pa.table], ids=["pandas", "polars", "pyarrow"])
def test_tables_come_back_as_they_were(library):
    n = 50
    cells = {
        "sex": MANY.choice(["male", "female"], n).tolist(),
        "age": MANY.integers(1, 80, n).tolist(),
        "fare": MANY.gamma(2.0, 10.0, n).tolist(),
        "alive": (MANY.random(n) < 0.5).tolist(),
        "when": [datetime.datetime(2020, 1, 1) + datetime.timedelta(hours=int(h)) for h in MANY.integers(0, 9999, n)],
    }
    table = library(cells)
    schema = Schema.learn(table)
    rows = schema.encode(table)
    back = schema.decode(rows)
    assert type(back) is type(table)
    for name in cells:
        assert back[name].dtype == table[name].dtype if library is not pa.table else back[name].type == table[name].type
        if name not in ("sex", "alive"):
            assert set(np.asarray(back[name]).tolist()) <= set(np.asarray(table[name]).tolist())
    assert np.array_equal(schema.encode(back), rows)
    again = Schema.from_dict(json.loads(json.dumps(schema.to_dict())))
    assert np.array_equal(again.encode(again.decode(rows)), rows)


LIBRARIES = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table, "mapping": dict}


@pytest.mark.parametrize("library", [*LIBRARIES.values(), "records", "array"], ids=[*LIBRARIES, "records", "array"])
def test_missing_cells_are_filled_and_all_others_stay(library):
    cells = {
        "id": list(range(100, 140)),
        "sex": ["male", None, "female", "male"] * 10,
        "age": [None, *MANY.normal(40.0, 9.0, 39).round(1).tolist()],
        "n": [1, 2, None, 3] * 10,
        "ill": [True, False, None, True] * 10,
        "same": ["x", "x", "x", "x"] * 10,
    }
    table = library(cells) if callable(library) else pd.DataFrame(cells).to_dict("records")
    if library == "array":
        table = np.array([[cells[name][r] for name in cells] for r in range(40)], dtype=object)
    schema = Schema.learn(table)
    rows = schema.encode(table)
    whole = schema.fill(table, np.where(rows < 0, 0, rows))
    assert type(whole) is type(table)
    found = whole
    if library == "records":
        found = {name: [row[name] for row in whole] for name in cells}
    elif library == "array":
        found = {name: whole[:, k].tolist() for k, name in enumerate(cells)}
    for name, old in cells.items():
        new = list(found[name].to_pylist() if library is pa.table else found[name])
        assert all(b == a for a, b in zip(old, new, strict=True) if a is not None)
        assert all(b is not None and b == b for b in new)
        if library in (pd.DataFrame, pl.DataFrame):
            assert found[name].dtype == table[name].dtype or name in ("ill", "sex")
    assert list(found["sex"])[1] in ("female", "male") or str(list(found["sex"])[1]) == "female"
    again = schema.encode(whole)
    assert (again >= 0).all()


def test_draws_are_values_that_somebody_has():
    ages = np.array([20, 20, 20, 20, 30, 41, 52, 63] * 30 + list(range(10, 90)))
    schema = Schema.learn({"age": ages})
    rows = schema.encode({"age": ages})
    drawn = schema.decode(rows, np.random.default_rng(0))["age"]
    assert set(drawn) <= set(ages.tolist())
    assert abs(np.mean(drawn) - ages.mean()) < 1.0
    assert schema.decode(np.array([[-1]]))["age"] == [None]


def test_decimals_and_bytes():
    column = one([Decimal("1.10"), Decimal("2.20"), None, Decimal("1.10"), Decimal("3.3")] * 4)
    assert column.kind == "numbers"
    assert one([b"no", b"yes", b"no"]).states == ("no", "yes")


def test_rows_that_are_none():
    schema = Schema.learn({"a": ["x", "y"]})
    with pytest.raises(ParameterError, match="shape"):
        schema.decode([[0, 1]])
    with pytest.raises(ParameterError, match="'a' that it has not"):
        schema.decode([[2]])
    with pytest.raises(KeyError, match="did you mean"):
        Schema.learn({"colour": ["x", "y"]})["color"]


def test_days_and_months_stand_as_in_the_rows_learned_from_whatever_dates_come_later():
    days = pd.date_range("2020-01-01", periods=200)
    for spelled in ("%d/%m/%Y", "%m/%d/%Y"):
        learned = days.strftime(spelled).tolist()
        schema = Schema.learn({"day": learned})
        states = schema.encode({"day": learned})[:, 0]
        assert schema.encode({"day": [learned[93]]})[0, 0] == states[93]  # 3 April, or 4 March
        with pytest.warns(CodingWarning, match="32/32/2020"):
            told = schema.encode({"day": [learned[93], "32/32/2020", learned[130], None]})[:, 0]
        assert told.tolist() == [states[93], -1, states[130], -1]
        seen = schema["day"].nearest(np.eye(12))
        assert schema.encode({"day": seen})[:, 0].tolist() == list(range(12))
