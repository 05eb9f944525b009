"""The command in the words of its tables: columns of many values as evidence and labels, cells in their own types."""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
from pathlib import Path

import numpy as np
import pytest

import sbnet as sb
from sbnet.cli import main
from sbnet.tables.stored import schema_of

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

NAMES = ["person", "smokes", "car", "vote", "age", "ill"]
SKY = """network sky { }
variable season { type discrete [ 2 ] { winter, summer }; }
variable sky { type discrete [ 3 ] { clear, cloud, rain }; }
probability ( season ) { table 0.4, 0.6; }
probability ( sky | season ) { (winter) 0.2, 0.5, 0.3; (summer) 0.6, 0.3, 0.1; }
"""


def people(n=240, seed=0):
    """Rows of words, numbers and categories that follow one trait, with -99 and nothing in holes."""
    rng, rows = np.random.default_rng(seed), []
    for k in range(n):
        old = rng.random() < 0.4
        yes = [rng.random() < (0.8 if old else 0.2) for _ in range(3)]
        vote = rng.choice(["green", "blue, dark", "red"], p=[0.1, 0.7, 0.2] if old else [0.6, 0.1, 0.3])
        age = int(rng.normal(62 if old else 35, 6))
        row = [["no", "yes"][yes[0]], "12"[yes[1]], str(vote), str(age), ["no", "yes"][yes[2]]]
        holes = rng.random(5)
        rows.append(
            [f"{k:05d}", *("" if h < 0.08 else "-99" if h < 0.12 else c for c, h in zip(row, holes, strict=True))]
        )
    return rows


def written(path, rows, names=NAMES, delimiter=";"):
    with open(path, "w", newline="") as file:
        csv.writer(file, delimiter=delimiter, lineterminator="\n").writerows([names, *rows])
    return str(path)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A model of the people, learned from text."""
    folder = tmp_path_factory.mktemp("people")
    table, learned = written(folder / "people.csv", people()), str(folder / "people.sbn")
    flags = ["--id", "person", "--missing", "-99", "--label", "ill", "--quiet"]
    assert main(["fit", table, *flags, "--hidden", "2", "--epochs", "8", "-o", learned]) == 0
    return learned


@pytest.fixture
def table(tmp_path):
    return written(tmp_path / "people.csv", people())


@pytest.fixture
def sky(tmp_path):
    (tmp_path / "sky.bif").write_text(SKY)
    return str(tmp_path / "sky.bif")


def said(capsys, *arguments):
    assert main([*arguments]) == 0
    return capsys.readouterr().out


def complaint(capsys, *arguments):
    assert main([*arguments]) == 2
    line = capsys.readouterr().err
    assert line.count("\n") == 1
    assert len(line) < 340
    return line


def lists(text, delimiter=";"):
    return list(csv.reader(io.StringIO(text), delimiter=delimiter))


# --- evidence ---------------------------------------------------------------------------------------------------------


def test_columns_are_evidence_in_their_own_words(model, capsys):
    told = json.loads(
        said(capsys, "infer", model, "smokes=No", "vote=red", "age=70", "car=2", "--about", "ill", "--json")
    )
    schema = schema_of(sb.read(model))
    oldest = schema["age"].states[-1]
    assert told["evidence"] == {"smokes": "no", "vote": "red", "age": oldest, "car": "2"}
    (ill,) = told["units"]
    assert ill["name"] == "ill"
    assert sum(ill["mean"].values()) == pytest.approx(1.0)
    by_states = [f"{name}={state}" for name, state in told["evidence"].items()]
    assert json.loads(said(capsys, "infer", model, *by_states, "--about", "ill", "--json")) == told


def test_every_column_has_a_line_with_its_distribution(model, capsys):
    lines = said(capsys, "infer", model, "smokes=yes", "vote=red").splitlines()
    assert [line.split()[0] for line in lines[2:5]] == ["car", "age", "ill"]
    assert re.search(r"ill +no 0\.\d+, yes 0\.\d+", lines[4])


def test_errors_list_the_words_of_a_column(model, sky, capsys):
    assert "variable 'vote' is given as 'pink'; its states are " in complaint(capsys, "infer", model, "vote=pink")
    assert "variable 'smokes' is given as 'maybe'; say yes, no or unknown" in complaint(
        capsys, "infer", model, "smokes=maybe"
    )
    assert "variable 'age' is given as 'old'; say a number (up to " in complaint(capsys, "infer", model, "age=old")
    assert "names variable 'age' twice" in complaint(capsys, "infer", model, "age=20", "age=30")
    told = "'sky' is given as 'fog'; its states are clear, cloud and rain; say clear, cloud or rain, or unknown"
    assert told in complaint(capsys, "infer", sky, "sky=fog")
    assert "did you mean 'smokes'?" in complaint(capsys, "infer", model, "smoke=yes")


def test_variables_of_a_file_are_evidence_by_their_states(sky, capsys):
    told = json.loads(said(capsys, "infer", sky, "sky=rain", "--json"))
    assert told["bound"] == pytest.approx(np.log(0.18), abs=1e-6)
    (season,) = told["units"]
    assert season["mean"] == pytest.approx(0.06 / 0.18, abs=1e-6)  # Bayes' rule
    assert json.loads(said(capsys, "infer", sky, "sky=unknown", "--json"))["evidence"] == {}


# --- labels -----------------------------------------------------------------------------------------------------------


def test_the_label_of_a_score_is_a_column(model, table, tmp_path, capsys):
    rows = lists(said(capsys, "score", model, table, "--label", "ill"))
    assert rows[0] == ["person", "bound", "P(ill)"]
    chance = np.array([float(row[2]) for row in rows[1:]])
    truth = np.array([row[-1] for row in people()])
    assert chance[truth == "yes"].mean() > chance[truth == "no"].mean() + 0.1
    hidden = written(tmp_path / "hidden.csv", [[*row[:-1], ""] for row in people()])  # it was not looked at
    assert lists(said(capsys, "score", model, hidden, "--label", "ill")) == rows


def test_a_label_of_several_values_has_a_chance_for_each(model, table, capsys):
    rows = lists(said(capsys, "score", model, table, "--label", "vote"))
    assert sorted(rows[0][2:]) == ["P(vote=blue, dark)", "P(vote=green)", "P(vote=red)"]
    np.testing.assert_allclose([sum(map(float, row[2:])) for row in rows[1:]], 1.0, atol=1e-8)
    assert "P(age=up to " in said(capsys, "score", model, table, "--label", "age").splitlines()[0]


# --- what is remembered -----------------------------------------------------------------------------------------------


def test_missing_and_id_are_remembered(model, table, tmp_path, capsys):
    assert said(capsys, "score", model, table) == said(
        capsys, "score", model, table, "--id", "person", "--missing", "-99"
    )
    assert main(["convert", model, "-o", str(tmp_path / "people.toml")]) == 0
    assert said(capsys, "score", str(tmp_path / "people.toml"), table).startswith("person;bound\n00000;")
    shown = said(capsys, "show", model, "smokes")
    assert "table: " not in shown  # what the model remembers is not for people


def test_show_prints_the_schema_and_the_strongest_associations(model, capsys):
    shown = said(capsys, "show", model)
    assert shown.startswith("column  read as")
    assert "What columns tell about each other" in shown


# --- types ------------------------------------------------------------------------------------------------------------


def frame(rows):
    """The people as another program has them: numbers in doubles, with nothing in holes."""
    columns = [[None if cell in ("", "-99") else cell for cell in column] for column in zip(*rows, strict=True)]
    for k in (2, 4):
        columns[k] = [None if cell is None else float(cell) for cell in columns[k]]
    return pa.table(columns, names=NAMES)


def test_holes_in_parquet_are_filled_in_the_type_of_their_column(model, tmp_path):
    given = frame(people())
    pq.write_table(given, tmp_path / "people.parquet")
    assert main(["impute", model, str(tmp_path / "people.parquet"), "-o", str(tmp_path / "whole.parquet")]) == 0
    whole = pq.read_table(tmp_path / "whole.parquet")
    assert whole.schema.equals(given.schema)
    assert all(column.null_count == 0 for column in whole.columns)
    for old, new in zip(given.to_pylist(), whole.to_pylist(), strict=True):
        assert all(new[name] == cell for name, cell in old.items() if cell is not None)


@pytest.mark.parametrize("kind", [pa.int64(), pa.bool_(), pa.float32()])
def test_two_valued_columns_of_any_type(kind, tmp_path):
    values = [1, 0, None, 1] * 10
    given = pa.table(
        {"a": pa.array([v if v is None else bool(v) for v in values]).cast(kind), "b": ["x", "y", "x", None] * 10}
    )
    pq.write_table(given, tmp_path / "t.parquet")
    path, model = str(tmp_path / "t.parquet"), str(tmp_path / "m.sbn")
    assert main(["fit", path, "--hidden", "0", "--epochs", "1", "--quiet", "-o", model]) == 0
    assert main(["impute", model, path, "-o", str(tmp_path / "w.parquet")]) == 0
    assert pq.read_table(tmp_path / "w.parquet").schema.equals(given.schema)
    assert main(["impute", model, path, "--means", "-o", str(tmp_path / "c.parquet")]) == 0
    chances = pq.read_table(tmp_path / "c.parquet")["a"].to_pylist()
    assert all(0.0 < chance < 1.0 for chance in chances[2::4])


def test_numbers_are_written_as_numbers(model, table, tmp_path, capsys):
    line = json.loads(said(capsys, "impute", model, table, "--json").splitlines()[0])
    assert line["person"] == "00000"
    assert isinstance(line["age"], int)
    assert isinstance(line["car"], int)
    drawn = json.loads(said(capsys, "sample", model, "1", "--json"))
    assert isinstance(drawn["age"], int)
    assert drawn["car"] in (1, 2)
    assert main(["score", model, table, "-o", str(tmp_path / "s.parquet")]) == 0
    assert pq.read_schema(tmp_path / "s.parquet").field("bound").type == pa.float64()
    pq.write_table(frame(people()), tmp_path / "p.parquet")
    cells = lists(said(capsys, "impute", model, str(tmp_path / "p.parquet")), ",")
    assert {row[2] for row in cells[1:]} == {"1", "2"}


def test_answers_keep_the_separator_of_the_table(model, table, capsys):
    assert said(capsys, "infer", model, "--table", table).startswith("person;bound;converged;exact;")


# --- odd tables -------------------------------------------------------------------------------------------------------


def test_odd_tables_are_refused_in_a_line(model, table, tmp_path, capsys):
    whole = tmp_path / "p.parquet"
    pq.write_table(frame(people()), whole)
    data = whole.read_bytes()
    (tmp_path / "cut.parquet").write_bytes(data[: len(data) // 2])
    assert "is no Parquet file" in complaint(capsys, "score", model, str(tmp_path / "cut.parquet"))
    (tmp_path / "broken.parquet").write_bytes(data[:40] + bytes(400) + data[440:])
    complaint(capsys, "score", model, str(tmp_path / "broken.parquet"))
    pq.write_table(pa.table({"smokes": [["yes"], ["no"]]}), tmp_path / "lists.parquet")
    for command in (
        ["score", model],
        ["fit", "-o", str(tmp_path / "m.sbn")],
        ["fit", "-o", "m.sbn"],
    ):
        assert "column 'smokes' holds ['yes']" in complaint(capsys, *command, str(tmp_path / "lists.parquet"))
    packed = gzip.compress(Path(table).read_bytes())
    (tmp_path / "cut.csv.gz").write_bytes(packed[: len(packed) // 2])
    assert "damaged or not complete" in complaint(capsys, "score", model, str(tmp_path / "cut.csv.gz"))
    (tmp_path / "cut.npz").write_bytes(b"PK\x03\x04" + bytes(50))
    complaint(capsys, "score", model, str(tmp_path / "cut.npz"))
    assert "Write to a .csv" in complaint(capsys, "impute", model, table, "-o", str(tmp_path / "w.npz"))


def test_a_table_that_must_be_explained(model, tmp_path, capsys):
    raw = written(tmp_path / "people.csv", people())
    assert main(["fit", raw, "-o", str(tmp_path / "m.sbn")]) == 0
    told = capsys.readouterr()
    assert "left out: 'person (names rows)'; columns= (--columns in the command) says how to read one" in told.err
    assert "values that may mark missing cells" in told.err  # -99
    assert told.out.startswith("column  read as")
    rows = people()
    rows[3][1] = "-98"
    odd = written(tmp_path / "odd.csv", rows)
    assert main(["score", model, odd]) == 0
    assert "values that were not there in fitting count as missing: smokes ('-98')" in capsys.readouterr().err


def test_slips_with_files(model, table, tmp_path, capsys):
    assert "is a table; the model comes first" in complaint(capsys, "score", table, model)
    nowhere = str(tmp_path / "none" / "x.csv")
    assert f"the folder {tmp_path / 'none'} does not exist" in complaint(capsys, "score", model, table, "-o", nowhere)


# --- helpers ----------------------------------------------------------------------------------------------------------


def test_helpers_are_neither_asked_for_nor_listed(model, tmp_path, capsys):
    asked = json.loads(said(capsys, "next", model, "smokes=yes", "--about", "ill", "--json"))
    assert asked["about"] == ["ill"]
    binary = written(tmp_path / "two.csv", [[row[1], row[5]] for row in people()], ["smokes", "ill"])
    flags = ["--missing", "-99", "--hidden", "2", "--epochs", "8", "--quiet", "-o", str(tmp_path / "two.sbn")]
    assert main(["fit", binary, *flags]) == 0
    two = str(tmp_path / "two.sbn")
    network = sb.read(two)
    helpers = {name for name in network.names if network.notes[name].group == "hidden"}
    assert helpers >= {"h1_0", "h1_1"}
    assert not helpers & set(sb.next_question(network, {}).names)
    answers = said(capsys, "infer", two, "--table", binary).splitlines()[0].split(";")
    assert not helpers & set(answers)
    assert set(network.names) - helpers <= set(answers)
    shown = said(capsys, "show", two)
    assert f"... {len(helpers)} latent variables" in shown
    assert not any(line.split()[:1] == ["h1_0"] for line in shown.splitlines())
    assert "h1_0" in said(capsys, "infer", two, "smokes=yes", "--about", "h1_0")


def test_priors_say_where_they_come_from(model, sky, capsys):
    assert "ln P = " in said(capsys, "infer", model, "age=30")
    assert "prior → probability" in said(capsys, "infer", sky, "sky=rain")


def test_names_alone_make_no_variable(tmp_path, capsys):
    """Units that are called "a=x" and "a=y" are two units."""
    network = sb.from_edges({("a=x", "b"): 1.0, ("a=y", "b"): -1.0, ("b", "a=z"): 2.0})
    sb.save(network, tmp_path / "net.sbn")
    assert "evidence names variable 'a'" in complaint(capsys, "infer", str(tmp_path / "net.sbn"), "a=x")
    told = json.loads(said(capsys, "infer", str(tmp_path / "net.sbn"), "a=x=yes", "--json"))
    assert told["evidence"] == {"a=x": 1}
    assert sb.contributions(network, {"a=x": 1, "a=y": 0}, about="b").findings == ("a=x", "a=y")


# --- yes and no -------------------------------------------------------------------------------------------------------


@pytest.fixture
def two(tmp_path):
    """A cause and a finding."""
    sb.write(sb.from_edges({("flu", "fever"): 3.0}, bias={"fever": -2.0}), tmp_path / "two.toml")
    return str(tmp_path / "two.toml")


def by_word(capsys, tmp_path, model, cells, *flags):
    (tmp_path / "t.csv").write_text("\n".join(["fever", *cells]) + "\n", encoding="utf-8")
    return lists(said(capsys, "infer", model, "--table", str(tmp_path / "t.csv"), *flags), ",")[1:]


def test_words_of_a_table_mean_what_they_mean_on_the_command_line(two, tmp_path, capsys):
    assert by_word(capsys, tmp_path, two, ["ja", "nein"]) == by_word(capsys, tmp_path, two, ["1", "0"])
    assert said(capsys, "infer", two, "fever=ja") == said(capsys, "infer", two, "fever=yes")
    assert said(capsys, "infer", two, "fever=нет") == said(capsys, "infer", two, "fever=0")
    (tmp_path / "t.csv").write_text("fever\ngut\nschlecht\n")
    for more in ([], ["--quiet"]):
        line = complaint(capsys, "infer", two, "--table", str(tmp_path / "t.csv"), *more)
        assert "column 'fever' holds 'gut' on line 2; its states are no and yes" in line


def test_learned_models_remember_their_words_and_read_those_of_others(tmp_path, capsys):
    rows = [["ja", "nein"], ["ja", "ja"], ["nein", "nein"], ["nein", "ja"], ["nein", "nein"]] * 8
    table, learned = written(tmp_path / "t.csv", rows, ["a", "b"], ","), str(tmp_path / "m.toml")
    assert main(["fit", table, "--hidden", "0", "--epochs", "3", "--quiet", "-o", learned]) == 0
    answers = []
    for no, yes in (("nein", "ja"), ("NO", "Yes"), ("non", "oui")):
        told = json.loads(said(capsys, "infer", learned, f"a={yes}", f"b={no}", "--json"))
        answers.append(list(told["evidence"].values()))
        assert told["evidence"] == {name: int(name != "b") if "=nein" not in name else int("b" in name)
                                    for name in told["evidence"]}  # fmt: skip
    assert answers[0] == answers[1] == answers[2]
    drawn = lists(said(capsys, "sample", learned, "20", "--seed", "0"), ",")
    assert {cell for row in drawn[1:] for cell in row} == {"ja", "nein"}


def test_words_are_not_turned_round_where_a_model_names_its_states_the_other_way(tmp_path, capsys):
    network = sb.from_edges({("flu", "well"): -3.0}).with_notes({"well": sb.Note(states=("yes", "no"))})
    model = str(tmp_path / "m.toml")
    sb.write(network, model)
    assert json.loads(said(capsys, "infer", model, "well=yes", "--json"))["evidence"] == {"well": "yes"}
    assert "'well' is given as 'ja'; say no, yes or unknown" in complaint(capsys, "infer", model, "well=ja")
    assert "'well' is given as '1'; say no, yes or unknown" in complaint(capsys, "infer", model, "well=1")
    (tmp_path / "t.csv").write_text("well\nja\n")
    assert "holds 'ja' on line 2; its states are yes and no" in complaint(
        capsys, "infer", model, "--table", str(tmp_path / "t.csv")
    )


def test_a_word_that_is_both_a_state_and_plain_is_offered_once(tmp_path, capsys):
    net = sb.from_edges({("rain", "wet"): 2.0}).with_notes({"wet": sb.Note(states=("no", "yes"))})
    sb.save(net, tmp_path / "net.sbn")
    line = complaint(capsys, "infer", str(tmp_path / "net.sbn"), "wet=maybe")
    assert "variable 'wet' is given as 'maybe'; say yes, no or unknown" in line


# --- units that exclude each other by weights -------------------------------------------------------------------------


def one_hot(groups, coupled):
    """Groups of three units of which one is on, by weights of ±60, in a chain; or each listens to all before it."""
    edges, bias = {}, {}
    for g in range(groups):
        a, b, c = (f"{word}{g}" for word in ("low", "mid", "high"))
        edges |= {(a, b): -60.0, (a, c): -60.0, (b, c): -60.0}
        bias |= {a: -0.5, b: 0.0, c: 30.0}
        for before in range(0 if coupled else max(g - 1, 0), g):
            edges |= {(f"low{before}", a): 1.5, (f"high{before}", b): -1.0}
    return sb.from_edges({**edges, **{(f"high{g}", "seen"): 1.0 for g in (0, groups - 1)}}, bias=bias)


def test_the_command_answers_exactly_where_units_exclude_each_other(tmp_path, capsys):
    network = one_hot(8, coupled=False)
    sb.save(network, tmp_path / "chain.sbn")
    told = json.loads(said(capsys, "infer", str(tmp_path / "chain.sbn"), "seen=yes", "--json"))
    assert told["exact"]
    exact = sb.exact_posterior(network, {"seen": 1})
    for one in told["units"]:
        assert one["mean"] == pytest.approx(exact[one["name"]], abs=1e-9)
    assert exact["low3"] + exact["mid3"] + exact["high3"] == pytest.approx(1.0, abs=1e-9)


def test_where_sums_are_large_it_says_that_means_are_those_of_mean_field_theory(tmp_path, capsys):
    sb.save(one_hot(20, coupled=True), tmp_path / "dense.sbn")
    text = said(capsys, "infer", str(tmp_path / "dense.sbn"), "seen=yes")
    assert "ln P ≥ " in text
    assert "means of mean field theory; --certain says where they lie" in text
