"""Tables of every kind are read in one way, and what is said on their page is true, cell by cell."""

from __future__ import annotations

import csv
import io
import os
import re
import subprocess
import sys
import unicodedata
import warnings
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sbnet as sb
from sbnet.cli import main
from sbnet.errors import CodingWarning, EvidenceError, SBNetError, TableError, UnknownUnitError
from sbnet.estimators import SBNDensity, SBNImputer, Training
from sbnet.estimators._given import PLAIN, Coding, codings_of
from sbnet.model import yes_no
from sbnet.questions.evidence import coerce
from sbnet.tables import words
from sbnet.tables.frames import sheet
from sbnet.tables.schema import Schema
from strategies import tables

nan = np.nan
PAGE = (Path(__file__).parents[1] / "docs" / "reference" / "cells.md").read_text(encoding="utf-8")
NET = sb.from_edges({("winter", "rain"): 1.0, ("rain", "wet"): 2.0}, bias={"winter": -1.0, "wet": -2.0})
FILL = {"hidden": 1, "density": SBNDensity(epochs=60, settings=Training(learning_rate=0.1)), "random_state": 0}
QUICK = {"hidden": 1, "column_mixtures": 0, "epochs": 2, "random_state": 0}

# --- the table of codings -------------------------------------------------------------------------------------------


def rows_of_the_page():
    """(values, arguments, how each function reads them) of each row of the table of all codings."""
    table = PAGE.split("# Cells of tables")[1]
    header, _, *rows = [line.strip("|").split("|") for line in table.splitlines() if line.startswith("|")]
    heads = [cell.strip(" `") for cell in header[1:]]
    for first, *cells in rows:
        yield first.strip(), dict(zip(heads, (cell.strip() for cell in cells), strict=True))


def made(first):
    """The column of a row of the page, and the arguments beside it."""
    literal, *more = re.findall("`([^`]+)`", first)
    names = {"nan": nan, "Categorical": pd.Categorical}
    arguments = dict(re.fullmatch(r"(\w+)=(.*)", argument).groups() for argument in more)
    return eval(literal, names), {name: eval(value) for name, value in arguments.items()}


def long(values):
    """More rows, of which the first value has more than its share."""
    order = [k % len(values) for k in range(2 * len(values))] + [0] * 5
    return pd.Series(values).iloc[order] if isinstance(values, pd.Categorical) else [values[k] for k in order]


def frame(values):
    column = pd.Series(long(values)).reset_index(drop=True)
    return pd.DataFrame({"wet": [k % 2 for k in range(len(column))], "rain": column})


def inferred(X, **arguments):
    return sb.infer_many(NET, X, **arguments).evidence


def fitted(X, **arguments):
    return sb.fit(NET, X, epochs=1, rng=0, **arguments).network


def density(X, **arguments):
    return SBNDensity(**QUICK, **arguments).fit(X).network_


def command(X, missing=()):
    """What the command prints; its warnings and errors become ours."""
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        out, err = io.StringIO(), io.StringIO()
        patch.setattr(sys, "stdout", out)
        patch.setattr(sys, "stderr", err)
        X.to_csv("x.csv", index=False)
        sb.save(NET, "net.sbn")
        more = ["--missing", *map(str, missing)] if missing else []
        status = main(["infer", "net.sbn", "--table", "x.csv", *more])
    if status:
        raise TableError(err.getvalue())
    if err.getvalue():
        warnings.warn(err.getvalue(), CodingWarning, stacklevel=2)
    return out.getvalue()


FUNCTIONS = {
    "infer_many": inferred,
    "fit": fitted,
    "sbnet infer": command,
}
CELLS = [(first, name, cell) for first, cells in rows_of_the_page() for name, cell in cells.items() if cell != "–"]


@pytest.mark.parametrize(("first", "name", "cell"), CELLS)
def test_every_cell_of_the_table_of_codings(first, name, cell, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (values, arguments), function = made(first), FUNCTIONS[name]
    if cell == "refused":
        with pytest.raises(TableError, match="rain"):
            function(frame(values), **arguments)
        return
    states = [{"0": 0.0, "1": 1.0, "·": nan}[word] for word in cell.split() if word != "warned"]
    assert len(states) == len(values)
    expected = function(frame(states))
    if cell.endswith("warned"):
        with pytest.warns(CodingWarning, match="rain"):
            found = function(frame(values), **arguments)
    else:
        found = function(frame(values), **arguments)
    assert np.array_equal(found, expected) if name == "infer_many" else found == expected


def test_the_table_of_codings_is_whole():
    rows = dict(rows_of_the_page())
    assert len(rows) >= 35
    assert all(set(cells) == set(FUNCTIONS) for cells in rows.values())
    for cells in rows.values():  # one room: evidence, learning and command line agree
        assert len({cells[name] for name in ("infer_many", "fit", "sbnet infer")} - {"–"}) <= 1


# --- one table in many forms ----------------------------------------------------------------------------------------

WORDS = [(0, 1), (False, True), ("0", "1"), ("no", "yes"), ("N", "Y"), ("False", "TRUE"), ("f", "t"), (0.0, 1.0)]


@settings(max_examples=30)
@given(tables(), st.randoms(use_true_random=False), st.lists(st.sampled_from(WORDS), min_size=8, max_size=8))
def test_every_form_says_the_same_in_any_order_of_columns(table, random, words):
    network, rows = table
    expected = np.nan_to_num(rows, nan=-1)
    order = list(range(network.n_units))
    random.shuffle(order)
    cells = {
        network.names[i]: [None if np.isnan(x) else words[i % 8][int(x)] for x in rows[:, i].tolist()] for i in order
    }
    records = [{name: column[r] for name, column in cells.items()} for r in range(len(rows))]
    forms = [
        pd.DataFrame(cells),
        pd.DataFrame({name: pd.Categorical(column) for name, column in cells.items()}),
        pd.DataFrame(cells).convert_dtypes(),
        pl.DataFrame(cells),
        pa.table(cells),
        np.array([[cells[name][r] for name in network.names] for r in range(len(rows))], object).reshape(rows.shape),
    ]
    for form in [*forms, records] if records else forms:
        assert np.array_equal(coerce(network, form)[0], expected)


def test_a_table_keeps_its_names():
    for make in (pd.DataFrame, pl.DataFrame, pa.table):
        many = sb.infer_many(NET, make({"wet": [1.0], "winter": [0.0]}))
        assert many.evidence.tolist() == [[0, -1, 1]]
        with pytest.raises(
            UnknownUnitError, match="names variable 'wett', which is not in the network; did you mean 'wet'"
        ):
            sb.infer_many(NET, make({"wett": [1.0]}))
    named = np.array([(1, 0)], dtype=[("wet", int), ("winter", float)])
    assert coerce(NET, named)[0].tolist() == [[0, -1, 1]]


def test_every_type_of_the_libraries():
    nullable = {"wet": pd.array([1, None], dtype="Int8"), "rain": pd.array([True, None], dtype="boolean")}
    arrow = pa.table(
        {"wet": pa.array(["yes", None]).dictionary_encode(), "rain": pa.array([1, None], pa.decimal128(3, 1))}
    )
    enums = pl.DataFrame({"wet": ["b", None], "rain": [True, None]}, schema_overrides={"wet": pl.Enum(["a", "b"])})
    for form in (pd.DataFrame(nullable), pd.DataFrame(nullable).astype("Float32"), arrow):
        assert coerce(NET, form)[0].tolist() == [[-1, 1, 1], [-1, -1, -1]]
    with pytest.raises(TableError, match="holds 'b' in row 0; variables are binary"):
        coerce(NET, enums)
    nothing = pl.DataFrame({"wet": [None, None], "rain": [1, 0]})
    assert coerce(NET, nothing)[0].tolist() == [[-1, 1, -1], [-1, 0, -1]]


def test_labels_that_are_numbers_are_by_position_only_where_that_cannot_be_wrong():
    array = np.array([[1, 0, 1], [0, 0, 1]])
    whole = pd.DataFrame(array)
    assert coerce(NET, whole)[0].tolist() == array.tolist()
    for wrong in (whole[[2, 0]], whole[[1, 2]], whole.rename(columns=float).rename(columns={2.0: 0.5})):
        with pytest.raises(TableError, match="columns are matched by names. Rename them, or give an array"):
            coerce(NET, wrong)
        with pytest.raises(TableError, match="columns are matched by names"):
            SBNDensity(**QUICK).fit(wrong)


class Odd:
    def __repr__(self):
        return "odd" * 50


HOSTILE = [
    [1],
    {"a": 1},
    (1, 2, 3),
    {1},
    1j,
    Odd(),
    pd.Timestamp("2020"),
    np.datetime64("2020"),
    np.ones(3),
    object,
    Decimal("sNaN"),
]


@pytest.mark.parametrize("cell", HOSTILE, ids=lambda cell: type(cell).__name__)
def test_cells_that_are_neither_numbers_nor_text_are_refused(cell):
    column = np.empty(2, dtype=object)
    column[:] = [0, 1]
    column[1] = cell
    for X in (pd.DataFrame({"wet": column}), [{"wet": 0}, {"wet": cell}]):
        for ask in (inferred, fitted, density):
            if ask is inferred and isinstance(X, list) and isinstance(cell, list | tuple | np.ndarray | dict):
                continue  # in a mapping that would be soft evidence, which has its own tests
            with pytest.raises(TableError, match="'wet'") as caught:
                ask(X)
            assert len(str(caught.value)) <= 300
    with pytest.raises(EvidenceError, match="variable 'wet' holds"):
        sb.infer(NET, {"wet": cell})


texts = st.one_of(
    st.text(max_size=40), st.sampled_from(["yes", "no", "t", "f", "0", "1", "-1", "1e3", "inf", "NA", "٣"])
)
numbers = st.one_of(st.floats(width=16), st.integers(-3, 3), st.booleans(), st.sampled_from([10**400, -99]))
hostile_cells = st.one_of(st.none(), texts, numbers, st.sampled_from([pd.NA, pd.NaT, np.ma.masked, np.float32(1)]))


@given(st.lists(hostile_cells, min_size=1, max_size=5))
def test_hostile_columns_are_read_or_refused_in_plain_words(cells):
    column = np.empty(len(cells), dtype=object)
    column[:] = cells
    seen = set()
    forms = [[{"wet": cell} for cell in cells], column[:, None]]
    if not any(isinstance(cell, int) and cell == 10**400 for cell in cells):  # pandas does not take it
        forms.append(pd.DataFrame({"wet": pd.Series(column, dtype=object)}))
    for X in forms:
        text, states = "", None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CodingWarning)
            try:
                states = coerce(NET, X)[0][:, 2]
            except SBNetError as error:
                text = str(error)
        assert len(text) <= 300
        seen.add(None if states is None else tuple(states.tolist()))
    assert len(seen) == 1  # all forms are read alike


def test_tables_that_cannot_be():
    cases = {
        "lazy": (pl.LazyFrame({"wet": [1]}), "a lazy LazyFrame; give the table itself, with .collect"),
        "twice": (pa.table([[1], [0]], names=["wet", "wet"]), "two columns 'wet'; rename one of them"),
        "dates": (pl.DataFrame({"wet": pd.to_datetime(["2020"]).to_pydatetime()}), "column 'wet' holds dates or times"),
        "nested": (pl.DataFrame({"wet": [[1]]}), "column 'wet' holds List"),
    }
    for name, (X, text) in cases.items():
        for ask in (inferred, density) if name != "dates" else (inferred,):
            with pytest.raises(TableError, match=re.escape(text)):
                ask(X)
    with pytest.raises(TableError, match="have a key 3; the columns of a table are named by text"):
        density([{3: 1}])
    with pytest.raises(TableError, match="this one has 1 dimension$"):
        sheet([1, 2])


def test_small_tables_and_empty_ones():
    for make in (pd.DataFrame, pl.DataFrame, pa.table):
        assert coerce(NET, make({"wet": pa.array([], pa.float64()).to_pylist()}))[0].shape == (0, 3)
        assert coerce(NET, make({"wet": ["yes"]}))[0].tolist() == [[-1, -1, 1]]
        assert coerce(NET, make({"wet": [None], "rain": [None]}))[0].tolist() == [[-1, -1, -1]]
        assert density(make({"wet": ["yes", "no"], "rain": ["no", "yes"]})).n_units == 3
        with pytest.raises(ValueError, match="0 sample"):
            density(make({"wet": [], "rain": []}))
    assert np.isfinite(sb.infer_many(NET, pl.DataFrame({"wet": [None, 1]})).bound).all()


@pytest.mark.slow
def test_modin():
    pytest.importorskip("modin")
    program = "import modin.pandas as pd, sbnet as sb; net = sb.from_edges({('rain', 'wet'): 1.0}); " + (
        "print(sb.infer_many(net, pd.DataFrame({'wet': ['yes', None], 'rain': [0, 1]})).evidence.tolist())"
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program],
        capture_output=True,
        text=True,
        env={**os.environ, "MODIN_ENGINE": "python"},
    )
    assert done.stdout.splitlines()[-1] == "[[0, 1], [1, -1]]"


# --- evidence -------------------------------------------------------------------------------------------------------


def test_words_in_one_pattern():
    assert coerce(NET, {"wet": "Yes", "rain": " f"})[0].tolist() == [[-1, 0, 1]]
    assert coerce(NET, ["no", None, "1"])[0].tolist() == [[0, -1, 1]]
    assert coerce(NET, pd.Series({"wet": "true"}))[0].tolist() == [[-1, -1, 1]]
    assert coerce(NET, pl.Series(["n", "", "y"]))[0].tolist() == [[0, -1, 1]]


def test_too_many_values_are_named_with_the_way_out():
    with pytest.raises(TableError) as caught:
        coerce(NET, pl.DataFrame({"rain": [1, 1, 1, 1], "wet": [0, 1, 9, 8]}))
    assert str(caught.value) == (
        "column 1 ('wet') holds 9 in row 2; variables are binary: 0, 1 or NaN for \"not observed\""
    )


@pytest.mark.parametrize("missing", [[-99, 9], (9.0, "-99"), np.array([9, -99])])
def test_what_is_listed_is_missing(missing):
    cells = [0, 1, -99, 9]
    array = np.array([cells]).T
    for X in (
        array,
        array.astype(float),
        array.astype(np.int16),
        pl.DataFrame({"wet": cells}),
        [{"wet": c} for c in cells],
    ):
        assert sb.infer_many(NET, X, missing=missing).evidence[:, 2].tolist() == [0, 1, -1, -1]
    text = pd.DataFrame({"wet": ["0", "1", "-99", "9"]})
    assert sb.infer_many(NET, text, missing=missing).evidence[:, 2].tolist() == [0, 1, -1, -1]
    assert sb.infer_many(NET, array[:2], missing=1).evidence[:, 2].tolist() == [0, -1]


def test_a_long_table_of_strings_takes_no_longer_than_it_must():
    rng = np.random.default_rng(0)
    states = rng.integers(0, 2, (50_000, 3))
    table = pd.DataFrame(np.array(["no", "yes"], dtype=object)[states], columns=list(NET.names))
    assert np.array_equal(coerce(NET, table)[0], states)


# --- estimators -----------------------------------------------------------------------------------------------------

SMOKERS = {"smoker": ["never", "now", "now", None] * 10, "ill": [1, 2, 2, 1] * 10, "old": [0, 1, None, 1] * 10}
FRAMES = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}


@pytest.mark.parametrize("kind", FRAMES)
def test_estimators_keep_names_and_codings(kind):
    X = FRAMES[kind](SMOKERS)
    density = SBNDensity(**QUICK).fit(X)
    assert list(density.feature_names_in_) == list(SMOKERS)
    assert density.network_.names[-3:] == tuple(SMOKERS)
    assert codings_of(density.schema_) == (Coding("never", "now"), Coding(1.0, 2.0), PLAIN)
    as_numbers = pd.DataFrame(
        {"smoker": [0, 1, 1, nan] * 10, "ill": [0, 1, 1, 0] * 10, "old": pd.Series([0, 1, nan, 1] * 10)}
    )
    assert density.network_ == SBNDensity(**QUICK).fit(as_numbers).network_
    one = FRAMES[kind]({"smoker": ["now"], "ill": [1], "old": [None]})  # a table with only one value of each
    zero_one = (
        SBNDensity(**QUICK).fit(as_numbers).score_samples(pd.DataFrame({"smoker": [1], "ill": [0], "old": [nan]}))
    )
    assert density.score_samples(one) == zero_one
    turned = FRAMES[kind]({name: SMOKERS[name] for name in ("ill", "smoker", "old")})
    with pytest.raises(ValueError, match="must be in the same order as they were in fit"):
        density.score(turned)


def test_fields_have_names():
    X = np.array([(0, 1), (1, 0), (1, 1)], dtype=[("a", int), ("b", float)])
    density = SBNDensity(**QUICK).fit(X)
    assert list(density.feature_names_in_) == ["a", "b"]
    assert np.array_equal(density.score_samples(X[["b", "a"]]), density.score_samples(X))


def test_records_have_no_order():
    X = [dict(zip(SMOKERS, row, strict=True)) for row in zip(*SMOKERS.values(), strict=True)]
    density = SBNDensity(**QUICK).fit(X)
    assert density.network_ == SBNDensity(**QUICK).fit(pd.DataFrame(SMOKERS)).network_
    assert density.score([{"old": 1, "smoker": "now"}]) == density.score([{"smoker": "now", "ill": None, "old": 1}])
    with pytest.raises(TableError, match="name a column 'sex', which the table that was learned from did not have"):
        density.score([{"sex": 1}])


def test_a_value_that_was_not_there_in_fit_is_named_and_missing():
    density = SBNDensity(**QUICK).fit(pl.DataFrame(SMOKERS))
    X = pl.DataFrame({**{name: values[:2] for name, values in SMOKERS.items()}, "smoker": ["now", "then"]})
    with pytest.warns(CodingWarning, match=r"count as missing: 'smoker' .'then'."):
        scores = density.score_samples(X)
    blank = X.with_columns(smoker=pl.Series(["now", None]))
    assert scores.tolist() == density.score_samples(blank).tolist()


def test_a_default_reads_what_is_not_two_valued():
    table = np.array([[1, 2, -99], [2, 1, 0], [9, 2, 1], [1, 1, 1]] * 5)
    density = SBNDensity(missing=[-99], random_state=0).fit(table)
    assert density.schema_["x0"].states == ("1", "2", "9")
    assert density.network_.n_states[density.network_.index("x0")] == 3
    few = SBNDensity(epochs=1, missing=[9, -99], hidden=1).fit(table)
    assert codings_of(few.schema_) == (Coding(1.0, 2.0), Coding(1.0, 2.0), PLAIN)


def test_an_imputer_fills_in_what_the_column_holds():
    ones_and_twos = np.array([[1, 2, 1], [2, 1, 2], [1, 2, nan], [nan, 1, 2]] * 20)
    filled = SBNImputer(**FILL).fit_transform(ones_and_twos)
    assert filled.dtype == np.float64
    assert set(np.unique(filled)) == {1.0, 2.0}
    assert filled[2:4].tolist() == [[1, 2, 1], [2, 1, 2]]
    words = pd.DataFrame(np.where(np.isnan(ones_and_twos), None, np.where(ones_and_twos == 1, "no", "Yes")))
    for strategy in ("mean", "mode", "sample"):
        filled = SBNImputer(**FILL, strategy=strategy).fit_transform(words)
        assert set(np.unique(filled)) == {"no", "Yes"}
    empty = np.full((1, 3), nan)  # no word is left to tell that they are words
    assert set(SBNImputer(**FILL).fit(words).transform(empty)[0]) <= {"no", "Yes"}
    zeros = ones_and_twos - 1
    means, modes = (SBNImputer(**FILL, strategy=s).fit_transform(zeros) for s in ("mean", "mode"))
    assert 0.0 < means[2, 2] < 0.5
    assert modes[2, 2] == 0.0
    assert SBNDensity(hidden=1, epochs=60, settings=Training(learning_rate=0.1), random_state=0).fit(words).impute(
        words
    )[2].tolist() == [
        "no",
        "Yes",
        "no",
    ]


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_a_filled_table_is_of_the_kind_that_was_asked_for(kind):
    X = FRAMES[kind](SMOKERS)
    imputer = SBNImputer(density=SBNDensity(**QUICK)).set_output(transform=kind)
    filled = imputer.fit_transform(X)
    assert isinstance(filled, FRAMES[kind])
    assert list(filled.columns) == list(SMOKERS)
    assert list(filled["smoker"])[:3] == ["never", "now", "now"]
    assert list(filled["ill"]) == SMOKERS["ill"]
    assert filled["ill"].dtype == (np.float64 if kind == "pandas" else pl.Float64)
    assert 0.0 < list(filled["old"])[2] < 1.0
    if kind == "pandas":
        later = imputer.transform(X.set_index(np.arange(40) * 10))
        assert later.index.tolist() == list(range(0, 400, 10))


def test_codings_are_shown_if_asked(capsys):
    SBNDensity(**{**QUICK, "verbose": 1}).fit(pd.DataFrame(SMOKERS))
    shown = capsys.readouterr().err
    assert "never, now" in shown
    assert "1 < 2" in shown


def test_parts_keep_the_codings_of_the_first():
    X = pd.DataFrame(SMOKERS)
    parts = SBNDensity(**QUICK).partial_fit(X[:3]).partial_fit(X[1:3])  # only "now" and 2 are left
    whole = pd.DataFrame({"smoker": [0, 1, 1], "ill": [0, 1, 1], "old": [0, 1, nan]})
    assert parts.network_ == SBNDensity(**QUICK).partial_fit(whole).partial_fit(whole[1:]).network_


# --- files ----------------------------------------------------------------------------------------------------------

CONTENT = [["wet", "rain"], ["1", ""], ["0", "yes"], ["", "no"]]


def delimited(delimiter):
    text = io.StringIO()
    csv.writer(text, delimiter=delimiter).writerows(CONTENT)
    return text.getvalue()


FILES = {
    "commas": delimited(",").encode(),
    "semicolons": delimited(";").encode(),
    "tabs": delimited("\t").encode("utf-8-sig"),
    "UTF-16": delimited(",").encode("utf-16"),
    "UTF-16, the other way round": b"\xfe\xff" + delimited(";").encode("utf-16-be"),
    "UTF-16 without a mark": delimited("\t").encode("utf-16-le"),
    "UTF-32": delimited(";").encode("utf-32"),
    "spreadsheet": b"sep=;\r\n" + delimited(";").encode(),
    "points and commas": b"wet;rain\n1,0;\n0,0;yes\n;no\n",
}


@pytest.mark.parametrize("kind", FILES)
def test_files_as_programs_write_them(kind, tmp_path, capsys):
    sb.save(NET, tmp_path / "net.sbn")
    outputs = []
    for content in (FILES["commas"], FILES[kind]):
        (tmp_path / "x.csv").write_bytes(content)
        assert main(["infer", str(tmp_path / "net.sbn"), "--table", str(tmp_path / "x.csv")]) == 0
        outputs.append(re.split(r"[,;\t\n]", capsys.readouterr().out))  # answers keep what divides the cells
    assert outputs[0] == outputs[1]
    assert len(outputs[0]) == 4 * 6 + 1


def test_names_with_a_semicolon_are_names(tmp_path, capsys):
    network = sb.from_edges({("a;b", "c"): 1.0})
    sb.save(network, tmp_path / "net.sbn")
    (tmp_path / "x.csv").write_text("a;b\n1\n0\n")
    assert main(["infer", str(tmp_path / "net.sbn"), "--table", str(tmp_path / "x.csv")]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 3


def test_words_and_guesses_on_the_command_line(tmp_path, capsys):
    sb.save(NET, tmp_path / "net.sbn")
    (tmp_path / "x.csv").write_text("wet,rain\nja,1\nnein,0\n,-99\n")
    assert main(["infer", str(tmp_path / "net.sbn"), "wet=yes", "rain=F"]) == 0
    exact = sb.log_likelihood(NET, {"wet": 1, "rain": 0})
    assert f"Given 2 of 3 variables: ln P = {exact:.6g}" in capsys.readouterr().out
    assert main(["infer", str(tmp_path / "net.sbn"), "--table", str(tmp_path / "x.csv"), "--missing", "-99", "9"]) == 0
    assert not capsys.readouterr().err
    (tmp_path / "x.csv").write_text("wet,rain\nja,1\nnein,2\n")
    assert main(["infer", str(tmp_path / "net.sbn"), "--table", str(tmp_path / "x.csv")]) == 2
    assert "column 'rain' holds '2' on line 3; its states are no and yes" in capsys.readouterr().err


# --- words ----------------------------------------------------------------------------------------------------------

YES_AND_NO = """ja nein|ja nee|ja nej|ja nei|oui non|sí no|si no|sì no|sim não|sim nao|tak nie|да нет|так ні|evet hayır
ano ne|igen nem|kyllä ei|ναι όχι|da nu|نعم لا|हाँ नहीं|是 否|はい いいえ|예 아니요|네 아니오|ya tidak|có không
j n|s n|o n|t n|i n|e h|wahr falsch|vrai faux|vero falso|да не|da ne|כן לא|ใช่ ไม่"""
PAIRS = [pair.split() for pair in re.split(r"[|\n]", YES_AND_NO)]


@pytest.mark.parametrize(("yes", "no"), PAIRS)
def test_yes_and_no_are_known_in_the_larger_languages(yes, no):
    for one, zero in ((yes, no), (yes.upper(), no.title()), [unicodedata.normalize("NFD", w) for w in (yes, no)]):
        table = pd.DataFrame({"wet": [one, zero, one]})
        assert coerce(NET, table)[0][:, 2].tolist() == [1, 0, 1]
        assert coerce(NET, table[::-1][1:])[0][:, 2].tolist() == [0, 1]
        assert Schema.learn(table)["wet"].states == (zero, one)


def test_no_word_means_yes_in_one_language_and_no_in_another():
    for word in {word for pair in yes_no.PAIRS for side in pair for word in side}:
        meant = {bits[0] for bits in yes_no.in_common([word]).values()}
        assert len(meant) <= 1
    assert [words.bit(word) for word in ("ne", "s", "e", "jo", "co")] == [None] * 5  # known in pairs only


@pytest.mark.parametrize(
    ("cells", "reason"),
    [
        (["ill", "well"], "holds 'ill' in row 0; variables are binary: 0, 1 or NaN"),
        (["no", "mild"], "holds 'mild' in row 1; variables are binary: 0, 1 or NaN"),
    ],
)
def test_words_that_a_network_does_not_know_are_refused_by_name(cells, reason):
    for X in (pd.DataFrame({"wet": cells}), [{"wet": cell} for cell in cells]):
        with pytest.raises(TableError) as caught:
            coerce(NET, X)
        assert "'wet'" in str(caught.value)
        assert reason in str(caught.value)


def test_words_of_two_languages_never_stand_for_their_opposites_in_what_is_learned():
    learned = SBNDensity(**QUICK).fit(pd.DataFrame({"wet": ["mild", "no"] * 9, "rain": ["a", "yes"] * 9}))
    assert codings_of(learned.schema_) == (Coding("no", "mild"), Coding("a", "yes"))


def test_notes_say_what_words_mean_and_the_other_way_round_too():
    noted = NET.with_notes({"wet": sb.Note(states=("yes", "no")), "rain": sb.Note(states=("1", "2"))})
    assert coerce(noted, pd.DataFrame({"wet": ["yes", "no"], "rain": [2, 1]}))[0].tolist() == [[-1, 1, 0], [-1, 0, 1]]
    with pytest.raises(TableError, match="holds 'ja' in row 0; its states are yes and no, in this order: say which"):
        coerce(noted, pd.DataFrame({"wet": ["ja", "nein"]}))
    # A number is the state that is called so; in an array, which has no names, it is the number of the state.
    assert coerce(noted, pd.DataFrame({"rain": [1, 1]}))[0][:, 1].tolist() == [0, 0]
    assert coerce(noted, {"rain": 2})[0][0, 1] == 1
    assert coerce(noted, [[0, 1, 0]])[0][0, 1] == 1
    with pytest.raises(TableError, match="variable 'rain' holds 0; its states are 1 and 2"):
        coerce(noted, {"rain": 0})
