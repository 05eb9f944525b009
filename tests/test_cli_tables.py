"""Tables on the command line: fit, score, impute, sample; in blocks, in any format, in their own words."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
import lzma
import os
import shlex
import subprocess
import sys
import tracemalloc
import unicodedata
from pathlib import Path

import numpy as np
import pytest

import sbnet as sb
from sbnet.cli import main
from sbnet.cli.commands import COMMANDS
from sbnet.tables import reading
from sbnet.tables.stored import schema_of

WORDS = {"tea": ("no", "yes"), "car": ("0", "1"), "vote": ("blue", "green"), "smokes": ("1", "2")}


def survey(n, seed=0, holes=0.1):
    """Rows of four columns that follow one hidden trait, in four codings, with a name for each row."""
    rng = np.random.default_rng(seed)
    trait = rng.random(n) < 0.5
    bits = [rng.random(n) < np.where(trait, 0.9, 0.1) for _ in WORDS]
    gone = rng.random((n, len(WORDS))) < holes
    columns = [[words[int(b)] for b in bit] for words, bit in zip(WORDS.values(), bits, strict=True)]
    rows = [["" if gone[r, k] else columns[k][r] for k in range(len(WORDS))] for r in range(n)]
    return [["person", *WORDS], *([f"p{r}", *row] for r, row in enumerate(rows))]


def written(path, rows, delimiter=","):
    with open(path, "w", newline="") as file:
        csv.writer(file, delimiter=delimiter, lineterminator="\n").writerows(rows)
    return str(path)


def read(path):
    return list(csv.reader(io.StringIO(Path(path).read_text())))


@pytest.fixture(scope="module")
def learned(tmp_path_factory):
    """A model that was learned from the survey, and the survey."""
    folder = tmp_path_factory.mktemp("survey")
    table = written(folder / "survey.csv", survey(400))
    model = str(folder / "survey.sbn")
    assert main(["fit", table, "--id", "person", "--hidden", "2", "--epochs", "5", "-o", model, "--quiet"]) == 0
    return model, table


def complaint(capsys, *arguments):
    assert main(arguments) == 2
    return capsys.readouterr().err


# --- fit --------------------------------------------------------------------------------------------------------------


def test_fit_keeps_the_names_and_the_words_of_the_columns(learned):
    network = sb.read(learned[0])
    columns = [name for name in network.names if network.notes[name].group == "columns"]
    assert columns == list(WORDS)
    assert sorted(network.states["vote"]) == ["blue", "green"]
    assert network.states["car"] == ("no", "yes")
    assert schema_of(network)["vote"].states == network.states["vote"]
    others = [name for name in network.names if name not in columns]  # hidden units, and switches where they pay
    assert others[:2] == ["h1_0", "h1_1"]
    assert {network.notes[name].group for name in others} == {"hidden"}


def test_the_label_is_learned_last_whatever_order_is_best_for_the_others(tmp_path):
    rng = np.random.default_rng(0)
    causes = rng.random((8000, 5)) < 0.4
    # An alarm is a regression on its causes, four of these five; not the other way round.
    alarm = causes[:, :4].sum(axis=1) > 1
    rows = [["alarm", "a", "b", "c", "d", "ill"], *np.column_stack([alarm, causes]).astype(int).tolist()]
    table = written(tmp_path / "t.csv", rows)
    assert main(["fit", table, "--label", "ill", "--hidden", "0", "-o", str(tmp_path / "m.sbn"), "--quiet"]) == 0
    network = sb.read(tmp_path / "m.sbn")
    names = [name for name in network.names if network.notes[name].group == "columns"]
    assert names[-1] == "ill"
    assert names[0] != "alarm"


def test_fit_tells_what_it_did(tmp_path, capsys):
    table = written(tmp_path / "t.csv", survey(50))
    arguments = ["fit", table, "--ignore", "person", "--label", "tea", "--hidden", "0", "--epochs", "1"]
    assert main([*arguments, "-o", str(tmp_path / "m.sbn"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["rows"], told["columns"], told["epochs"]) == (50, 4, 1)
    assert sb.read(tmp_path / "m.sbn").names[-1] == "tea"  # the label is learned last
    assert "did you mean 'person'" in complaint(capsys, "fit", table, "--id", "persn", "-o", str(tmp_path / "m.sbn"))
    assert "--hidden is '2,x'" in complaint(capsys, "fit", table, "--hidden", "2,x", "-o", str(tmp_path / "m.sbn"))


def test_fit_prints_how_columns_were_read(tmp_path, capsys):
    rows = [["a", "b", "grade", "id"], *([str(k % 3), "yes", "ABD"[k % 3], str(k)] for k in range(60))]
    table, model = written(tmp_path / "t.csv", rows), str(tmp_path / "m.sbn")
    assert main(["fit", table, "--columns", "grade=D,C,B,A", "-o", model]) == 0
    told = capsys.readouterr()
    assert "a       numbers" in told.out
    assert "D < C < B < A" in told.out
    assert "'b (always yes)'" in told.err.replace('"', "'").replace("''", "'") or "always 'yes'" in told.err
    assert schema_of(sb.read(model)).names == ("a", "grade")
    assert "say COLUMN=KIND" in complaint(capsys, "fit", table, "--columns", "grade", "-o", model)
    assert "did you mean 'grade'" in complaint(capsys, "fit", table, "--columns", "grad=words", "-o", model)


# --- score, impute, sample --------------------------------------------------------------------------------------------


def states_of(network, rows):
    """The survey as mappings from units to states, by their names."""
    return [{name: cell for name, cell in zip(WORDS, row[1:], strict=True) if cell} for row in rows[1:]]


def test_score_is_the_bound_of_each_row(learned, tmp_path):
    model, table = learned
    assert main(["score", model, table, "--id", "person", "-o", str(tmp_path / "out.csv")]) == 0
    header, *rows = read(tmp_path / "out.csv")
    assert header == ["person", "bound"]
    network = sb.read(model)
    expected = sb.infer_many(network, states_of(network, read(table))).bound
    np.testing.assert_allclose([float(row[1]) for row in rows], expected, rtol=1e-9)


def test_score_of_a_label_is_its_chance_without_a_look(learned, capsys):
    model, table = learned
    assert main(["score", model, table, "--id", "person", "--label", "vote", "--json"]) == 0
    network = sb.read(model)
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    patterns = [{k: v for k, v in row.items() if k != "vote"} for row in states_of(network, read(table))]
    expected = sb.infer_many(network, patterns)["vote"]
    title = f"P(vote={network.states['vote'][1]})"
    np.testing.assert_allclose([line[title] for line in lines], expected, atol=1e-9)


@pytest.mark.parametrize("delimiter", [",", ";", "|"])
def test_impute_fills_every_hole_and_changes_nothing_else(learned, tmp_path, capsys, delimiter):
    model, table = learned
    given = read(table)
    own = written(tmp_path / "own.csv", given, delimiter)
    assert main(["impute", model, own, "--id", "person"]) == 0
    found = list(csv.reader(io.StringIO(capsys.readouterr().out), delimiter=delimiter))
    network = sb.read(model)
    means = sb.infer_many(network, states_of(network, given))
    for r, (old, new) in enumerate(zip(given[1:], found[1:], strict=True)):
        for name, before, after in zip(WORDS, old[1:], new[1:], strict=True):
            words = WORDS[name] if network.states[name] == ("no", "yes") else network.states[name]
            assert after == (before or words[int(means[name][r] > 0.5)])
    assert found[0] == given[0]


def test_impute_can_fill_with_chances(learned, capsys):
    assert main(["impute", learned[0], learned[1], "--id", "person", "--means"]) == 0
    rows = list(csv.reader(io.StringIO(capsys.readouterr().out)))
    assert any(0.0 < float(row[2]) < 1.0 for row in rows[1:])


def test_sample_speaks_the_words_of_the_table(learned, tmp_path):
    assert main(["sample", learned[0], "5000", "--seed", "1", "-o", str(tmp_path / "s.csv")]) == 0
    header, *rows = read(tmp_path / "s.csv")
    assert header == list(WORDS)
    assert {tuple(sorted({row[k] for row in rows})) for k in range(4)} == set(WORDS.values())
    network = sb.read(learned[0])
    states = sb.sample(network, 4096, rng=np.random.default_rng(1))
    assert [row[2] for row in rows[:4096]] == [network.states["vote"][s] for s in states[:, network.index("vote")]]


def test_sample_of_a_network_by_hand(tmp_path, capsys):
    sb.save(sb.from_edges({("rain", "wet"): 2.0}), tmp_path / "net.sbn")
    assert main(["sample", str(tmp_path / "net.sbn"), "3", "--do", "rain=yes", "--json"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["rain"] for line in lines] == [1, 1, 1]


def test_tables_of_categories_and_numbers(tmp_path, capsys):
    rng = np.random.default_rng(0)
    n = 300
    old = rng.random(n) < 0.5
    age = np.where(old, rng.integers(60, 90, n), rng.integers(18, 40, n))
    colour = np.where(old, rng.choice(["red", "green"], n), rng.choice(["blue", "green"], n))
    rows = [
        [str(a) if rng.random() > 0.1 else "", c if rng.random() > 0.1 else ""]
        for a, c in zip(age, colour, strict=True)
    ]
    table = written(tmp_path / "t.csv", [["age", "colour"], *rows])
    model = str(tmp_path / "m.sbn")
    assert main(["fit", table, "--hidden", "2", "--epochs", "10", "-o", model, "--quiet"]) == 0
    assert main(["score", model, table]) == 0
    bounds = [float(line) for line in capsys.readouterr().out.splitlines()[1:]]
    assert len(bounds) == n
    assert all(bound < 0.0 or row == ["", ""] for bound, row in zip(bounds, rows, strict=True))
    assert main(["impute", model, table]) == 0
    filled = list(csv.reader(io.StringIO(capsys.readouterr().out)))[1:]
    assert all(
        not cell or cell == new
        for row, whole in zip(rows, filled, strict=True)
        for cell, new in zip(row, whole, strict=True)
    )
    assert {row[1] for row in filled} == {"red", "green", "blue"}
    assert all(18 <= float(row[0]) < 90 for row in filled)
    assert main(["sample", model, "50", "--seed", "0"]) == 0
    assert {row[1] for row in list(csv.reader(io.StringIO(capsys.readouterr().out)))[1:]} <= {"red", "green", "blue"}


# --- formats ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "csv.bz2", "csv.xz", "csv.zst", "parquet"])
def test_every_format_goes_out_and_comes_in_again(learned, tmp_path, capsys, ending):
    if ending in ("csv.zst", "parquet"):
        pytest.importorskip("pyarrow")
    path = str(tmp_path / f"s.{ending}")
    assert main(["sample", learned[0], "40", "--seed", "2", "-o", path]) == 0
    assert main(["score", learned[0], path]) == 0
    found = capsys.readouterr().out
    assert main(["sample", learned[0], "40", "--seed", "2", "-o", str(tmp_path / "plain.csv")]) == 0
    assert main(["score", learned[0], str(tmp_path / "plain.csv")]) == 0
    assert capsys.readouterr().out == found
    assert len(found.splitlines()) == 41


def test_numbers_in_npz(tmp_path, capsys):
    network = sb.layered((2, 3), rng=0, scale=1.0)
    sb.save(network, tmp_path / "net.sbn")
    X = np.array([[1, 0, np.nan], [0, 1, 1]])
    np.savez(tmp_path / "x.npz", X=X)
    assert main(["score", str(tmp_path / "net.sbn"), str(tmp_path / "x.npz"), "-o", str(tmp_path / "s.npz")]) == 0
    np.testing.assert_allclose(np.load(tmp_path / "s.npz")["X"][:, 0], sb.infer_many(network, X).bound)
    np.savez(tmp_path / "two.npz", X=X, Y=X)
    assert "holds 2 arrays" in complaint(capsys, "score", str(tmp_path / "net.sbn"), str(tmp_path / "two.npz"))


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress, bytes])
def test_standard_input_is_known_by_its_first_bytes(learned, pack, capsys, monkeypatch):
    given = pack(Path(learned[1]).read_bytes())
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given)))
    assert main(["score", learned[0], "-", "--id", "person"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 401


# --- blocks -----------------------------------------------------------------------------------------------------------


def test_standard_input_that_contradicts_its_beginning_is_refused(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("sbnet.cli.columns._LOOKED_AT", 50)
    sb.save(sb.from_edges({("rain", "wet"): 2.0}), tmp_path / "net.sbn")
    rows = [["wet"], *([["1"]] * 200), ["2"]]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("\n".join(row[0] for row in rows).encode())))
    line = complaint(capsys, "infer", str(tmp_path / "net.sbn"), "--table", "-")
    assert "column 'wet' holds '2' on line 202; its states are no and yes" in line


def test_a_file_with_a_bad_row_far_down_leaves_the_old_answers(learned, lawn, tmp_path, capsys):
    rows = [["wet"], *(["yes"] for _ in range(6000))]
    rows[5500][0] = "purple"
    table, out = written(tmp_path / "t.csv", rows), tmp_path / "out.csv"
    out.write_text("old")
    line = complaint(capsys, "score", lawn, table, "-o", str(out))
    assert "column 'wet' holds 'purple' on line 5501; its states are no and yes" in line
    assert out.read_text() == "old"
    assert set(os.listdir(tmp_path)) == {"t.csv", "out.csv", "lawn.sbn"}


def test_a_word_that_a_learned_model_never_saw_is_missing_and_told(learned, tmp_path, capsys):
    rows = survey(100)
    rows[50][list(WORDS).index("vote") + 1] = "purple"
    table = written(tmp_path / "t.csv", rows)
    assert main(["score", learned[0], table]) == 0
    told = capsys.readouterr()
    assert "not there in fitting count as missing: vote ('purple')" in told.err
    rows[50][list(WORDS).index("vote") + 1] = ""
    assert main(["score", learned[0], written(tmp_path / "t.csv", rows)]) == 0
    assert capsys.readouterr().out == told.out


def test_a_long_table_takes_no_more_memory_than_a_block(learned, tmp_path):
    """A hundred thousand rows, of which the cells alone would take sixty megabytes."""
    lines = [",".join(row) for row in survey(1000)]
    (tmp_path / "long.csv").write_text("\n".join([lines[0], *(lines[1:] * 100)]) + "\n")
    tracemalloc.start()
    try:
        out = str(tmp_path / "out.csv")
        assert main(["score", learned[0], str(tmp_path / "long.csv"), "--id", "person", "-o", out]) == 0
        assert tracemalloc.get_traced_memory()[1] < 12e6
    finally:
        tracemalloc.stop()
    assert len((tmp_path / "out.csv").read_text().splitlines()) == 100_001


def test_the_first_answers_do_not_wait_for_the_last_rows(learned, monkeypatch):
    """Three hundred rows come, then nothing more for now; the first answers are there."""
    block = next(iter(reading._in_blocks(iter([(k, ["a"]) for k in range(300)]))))
    assert len(block) == 32
    rows = [",".join(row) for row in survey(5000)]
    command = [sys.executable, "-m", "sbnet", "score", learned[0], "-", "--id", "person"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        process.stdin.write("\n".join(rows) + "\n")
        process.stdin.flush()
        assert process.stdout.readline() == "person,bound\n"
        assert process.stdout.readline().startswith("p0,-")
        process.stdin.close()
        assert sum(1 for _ in process.stdout) == 4999


def test_a_reader_that_has_seen_enough_is_no_error(learned, tmp_path):
    table = written(tmp_path / "t.csv", survey(30_000))
    command = f"{sys.executable} -m sbnet score {learned[0]} {table} --id person | head -2"
    done = subprocess.run(["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert len(done.stdout.splitlines()) == 2


# --- slips ------------------------------------------------------------------------------------------------------------


def test_slips_are_told_in_a_line(learned, tmp_path, capsys):
    model, table = learned
    other = written(tmp_path / "other.csv", [["pearson", "tea"], ["a", "yes"]])
    assert "names variable 'pearson', which is not in the network" in complaint(capsys, "score", model, other)
    assert "has no column 'persona'; did you mean 'person'?" in complaint(
        capsys, "score", model, table, "--id", "persona"
    )
    assert "are both -" in complaint(capsys, "score", "-", "-")
    assert "No such file" in complaint(capsys, "score", model, str(tmp_path / "none.csv"))
    assert "'vot' is not one of the columns or variables of the model; did you mean 'vote'?" in complaint(
        capsys, "score", model, table, "--label", "vot"
    )


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_knows_every_command_and_option(shell, capsys):
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    for word in ("infer", "impute", "reproduce", "certain"):
        assert word in script


def test_names_and_states_of_a_model_are_completed(capsys):
    for word, found in (
        ("he", ["headlights="]),
        ("headlights=d", ["headlights=dim", "headlights=dark"]),
        ("no s", ["no sound="]),
        ("clicks=", ["clicks=no", "clicks=yes"]),
    ):
        assert main(["completion", "names", "car", word]) == 0
        assert capsys.readouterr().out.splitlines() == found
    assert main(["completion", "names", "gone.toml", "a"]) == 0
    assert capsys.readouterr().out.strip() == ""


def test_bash_completes(tmp_path):
    script = subprocess.run(
        [sys.executable, "-m", "sbnet", "completion", "bash"], capture_output=True, text=True, check=True
    )
    ask = "COMP_WORDS=(sbnet infer m.toml --cer); COMP_CWORD=3; _sbnet; echo ${COMPREPLY[@]}"
    done = subprocess.run(["bash", "-c", script.stdout + "\n" + ask], capture_output=True, text=True, check=True)
    assert done.stdout == "--certain\n"
    ours = f'sbnet() {{ {sys.executable} -m sbnet "$@"; }}'
    for words, found in (
        (["hea"], "headlights=\n"),
        (["headlights", "=", "d"], "dim dark\n"),
        (["headlights", "="], "bright dim dark\n"),
        (["no\\ so"], "no\\ sound=\n"),
        (["$(touch gone)"], "\n"),
    ):
        listed = f"COMP_WORDS=(sbnet infer car {shlex.join(words)}); COMP_CWORD={2 + len(words)}"
        ask = f"{listed}; _sbnet; echo ${{COMPREPLY[@]}}"
        text = "\n".join([ours, script.stdout, ask])
        done = subprocess.run(["bash", "-c", text], capture_output=True, text=True, check=True, cwd=tmp_path)
        assert done.stdout == found
    assert list(tmp_path.iterdir()) == []


def test_every_command_has_examples_and_exit_codes(capsys):
    for names in (["--help"], *([name, "--help"] for name in COMMANDS)):
        with pytest.raises(SystemExit) as stop:
            main(names)
        assert stop.value.code == 0
        text = capsys.readouterr().out
        assert "exit codes:" in text
        if len(names) > 1:
            assert f"examples:\n  sbnet {names[0]}" in text or "eval" in text
            assert "--json" in text
            assert "--quiet" in text


def test_large_whole_numbers_keep_their_digits(tmp_path, capsys):
    """1000001 and 1000002 are two values: with six digits both would be called 1e+06."""
    table, model = tmp_path / "codes.csv", str(tmp_path / "codes.sbn")
    table.write_text("code,ill\n" + "1000001,yes\n1000002,no\n" * 10)
    assert main(["fit", str(table), "--epochs", "2", "--quiet", "-o", model]) == 0
    network = sb.load(model)
    assert network.states["code"] == ("1000001", "1000002")
    capsys.readouterr()
    assert main(["infer", model, "code=1000002", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["evidence"] == {"code": "1000002"}


def said(capsys, *arguments):
    assert main([*arguments]) == 0
    return capsys.readouterr().out


def lists(text, delimiter=","):
    return list(csv.reader(io.StringIO(text), delimiter=delimiter))


# --- names, headers, encodings ----------------------------------------------------------------------------------------


@pytest.fixture
def lawn(tmp_path):
    sb.save(
        sb.from_edges({("rain", "wet"): 2.0, ("sprinkler", "wet"): 1.0, ("wet", "grün"): 1.0}), tmp_path / "lawn.sbn"
    )
    return str(tmp_path / "lawn.sbn")


def test_all_columns_that_cannot_be_units_are_named_at_once(lawn, tmp_path, capsys):
    table = written(tmp_path / "t.csv", [["rain", "age", "sex", "town"], ["1", "2", "3", "4"]])
    assert "names 'age', 'sex' and 'town', which are not in the network. Leave" in complaint(
        capsys, "infer", lawn, "--table", table
    )


@pytest.mark.parametrize("header", ["rain,,wet,", ",,wet,rain"])
def test_columns_without_a_name_are_left_alone_and_told(header, lawn, tmp_path, capsys):
    cells = {"rain,,wet,": "1,x,0,", ",,wet,rain": "x,,0,1"}[header]
    (tmp_path / "t.csv").write_text(f"{header}\n{cells}\n")
    assert main(["infer", lawn, "--table", str(tmp_path / "t.csv")]) == 0
    told = capsys.readouterr()
    assert lists(told.out, ",")[1][2:] == lists(said(capsys, "infer", lawn, "--table", plain(tmp_path)), ",")[1][2:]
    place = header.split(",").index("") + 1
    assert f"t.csv: column {place} has no name, and is left alone" in told.err
    assert told.err.count("has no name") == 1  # of the other there is nothing to tell
    many = "\n".join([header, *[cells, cells.replace("1", "0"), cells.replace("0", "1")] * 5]) + "\n"
    (tmp_path / "t.csv").write_text(many)
    learn = ["fit", str(tmp_path / "t.csv"), "--hidden", "0", "--epochs", "2", "-o", str(tmp_path / "m.sbn")]
    assert main(learn) == 0
    assert "has no name" in capsys.readouterr().err
    filled = said(capsys, "impute", str(tmp_path / "m.sbn"), str(tmp_path / "t.csv"))
    assert filled == many


def plain(folder):
    return written(folder / "plain.csv", [["rain", "wet"], ["1", "0"]])


def test_names_are_compared_in_normal_form_and_come_back_letter_for_letter(lawn, tmp_path, capsys):
    composed, apart = "grün", unicodedata.normalize("NFD", "grün")
    assert composed != apart
    assert sb.infer(sb.load(lawn), {apart: 1}).bound == sb.infer(sb.load(lawn), {composed: 1}).bound
    assert said(capsys, "infer", lawn, f"{apart}=1") == said(capsys, "infer", lawn, f"{composed}=1")
    answers = []
    for name in (composed, apart):
        table = written(tmp_path / "t.csv", [["id", name], ["a", "1"], ["b", "0"]])
        answers.append(said(capsys, "infer", lawn, "--table", table, "--id", "id"))
        learned = str(tmp_path / f"{len(answers)}.sbn")
        rows = [["id", name, "wet"], *([str(r), str(r % 2), str(r % 3 % 2)] for r in range(12))]
        table = written(tmp_path / "t.csv", rows)
        flags = ["--ignore", "id", "--label", composed, "--hidden", "0", "--epochs", "2", "--quiet"]
        assert main(["fit", table, *flags, "-o", learned]) == 0
        assert said(capsys, "score", learned, table, "--label", apart).startswith("bound,P(")
        assert said(capsys, "impute", learned, table).splitlines()[0] == f"id,{name},wet"
    assert answers[0] == answers[1]
    table = written(tmp_path / "t.csv", [[composed, apart], ["1", "1"]])
    complained = complaint(capsys, "infer", lawn, "--table", table)
    assert "names variable 'grün' twice" in unicodedata.normalize("NFC", complained)


def test_encodings_can_be_named(lawn, tmp_path, capsys):
    (tmp_path / "t.csv").write_bytes("grün\n1\n0\n".encode("latin-1"))
    line = complaint(capsys, "infer", lawn, "--table", str(tmp_path / "t.csv"))
    assert "cannot be decoded as UTF-8 (line 1 has 0xfc)" in line
    (tmp_path / "long.csv").write_bytes(b"wet\n" + 9000 * b"1\n" + b"\xfc\n")  # beyond what is read at once
    assert "(line 9002 has 0xfc)" in complaint(capsys, "infer", lawn, "--table", str(tmp_path / "long.csv"))
    assert "save it as UTF-8, or name its own with --encoding, such as latin-1" in line
    told = said(capsys, "infer", lawn, "--table", str(tmp_path / "t.csv"), "--encoding", "latin-1")
    (tmp_path / "t.csv").write_text("grün\n1\n0\n", encoding="utf-8")
    assert told == said(capsys, "infer", lawn, "--table", str(tmp_path / "t.csv"))
    for wrong, hint in (("latin-l", "did you mean 'latin-1'?"), ("base64", "name one such as utf-8")):
        line = complaint(capsys, "infer", lawn, "--table", str(tmp_path / "t.csv"), "--encoding", wrong)
        assert f"{wrong!r} is no encoding of text; {hint}" in line


def test_about_is_honoured_for_tables_and_what_cannot_be_is_refused(lawn, tmp_path, capsys):
    table = written(tmp_path / "t.csv", [["wet"], ["1"], [""]])
    whole, some = (
        lists(said(capsys, "infer", lawn, "--table", table, *more), ",") for more in ([], ["--about", "rain"])
    )
    assert some[0] == ["bound", "converged", "exact", "rain"]
    assert [row[3] for row in some] == [row[whole[0].index("rain")] for row in whole]
    told = said(capsys, "infer", lawn, "--table", table, "--about", "rain", "--json").splitlines()
    assert [[unit["name"] for unit in json.loads(line)["units"]] for line in told] == [["rain"], ["rain"]]
    assert "'snow', which is not in the network" in complaint(
        capsys, "infer", lawn, "--table", table, "--about", "snow"
    )
    assert "--certain is for one pattern" in complaint(capsys, "infer", lawn, "--table", table, "--certain")
    assert "say --about or --json" in complaint(capsys, "infer", lawn, "--table", table, "--top", "2")


# --- outputs that are inputs ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["itself", "link", "hard link", "roundabout"])
def test_no_output_destroys_an_input(way, lawn, tmp_path, capsys, monkeypatch):
    table = written(tmp_path / "t.csv", [["rain", "wet"], *([str(r % 2), str(r % 3 % 2)] for r in range(12))])
    model = str(tmp_path / "lawn.toml")
    assert main(["convert", lawn, "-o", model]) == 0
    (tmp_path / "folder").mkdir()

    def other(name):
        new = str(tmp_path / f"{way} of {Path(name).name}")
        if way == "itself":
            return name
        if way == "roundabout":
            return str(tmp_path / "folder" / ".." / Path(name).name)
        os.symlink(name, new) if way == "link" else os.link(name, new)
        return new

    same, again = other(model), other(table)
    before = Path(model).read_bytes(), Path(table).read_bytes()
    for command, kind in (
        (["infer", model, "wet=1", "-o", same], "model"),
        (["infer", model, "--table", table, "-o", same], "model"),
        (["infer", model, "--table", table, "-o", again], "table"),
        (["sample", model, "5", "-o", same], "model"),
        (["explore", model, "--html", same], "model"),
        (["convert", model, "-o", same], "model"),
        (["score", model, table, "-o", same], "model"),
        (["score", model, table, "-o", again], "table"),
        (["impute", model, table, "-o", again], "table"),
        (["fit", table, "-o", again], "table"),
    ):
        assert f"is the {kind} that is read, and would be lost; give the output another name" in complaint(
            capsys, *command
        )
    with open(model) as stream:
        monkeypatch.setattr("sys.stdin", stream)
        assert "is the model that is read" in complaint(capsys, "infer", "-", "wet=1", "-o", same)
    assert (Path(model).read_bytes(), Path(table).read_bytes()) == before


# --- what people write ------------------------------------------------------------------------------------------------


def test_slips_of_commands_and_options_are_answered_with_what_is_near(lawn, capsys):
    for words, hint in (
        (["infr", lawn], "there is no command 'infr'; did you mean 'infer'?"),
        (["infer", lawn, "--abuot", "rain"], "unrecognized arguments: --abuot rain; did you mean --about?"),
        (["certify", lawn, "--effort", "hihg"], "there is no choice for --effort 'hihg'; did you mean 'high'?"),
        (["xyzzy"], "invalid choice: 'xyzzy'"),
    ):
        with pytest.raises(SystemExit) as left:
            main(words)
        assert left.value.code == 2
        assert hint in capsys.readouterr().err


def test_findings_may_have_blanks_and_capitals(lawn, tmp_path, capsys):
    told = said(capsys, "infer", lawn, "wet=yes", "--about", "rain")
    for words in (["wet = yes"], ["Wet=Yes"], [" WET=YES "], ["wet= yes"]):
        assert said(capsys, "infer", lawn, *words, "--about", "Rain") == told
    sb.save(sb.from_edges({("Wet", "wet"): 2.0}), tmp_path / "two.sbn")
    assert "names variable 'WET', which is not in the network" in complaint(
        capsys, "infer", str(tmp_path / "two.sbn"), "WET=1"
    )
    assert said(capsys, "infer", str(tmp_path / "two.sbn"), "Wet=1") != said(
        capsys, "infer", str(tmp_path / "two.sbn"), "wet=1"
    )


def test_the_number_of_rows_may_be_an_option(lawn, capsys):
    told = said(capsys, "sample", lawn, "3", "--seed", "1")
    assert said(capsys, "sample", lawn, "-n", "3", "--seed", "1") == told
    assert said(capsys, "sample", lawn, "--rows", "3", "--seed", "1") == told
    assert "it is said to draw 3 rows and 4; say one" in complaint(capsys, "sample", lawn, "3", "-n", "4")
    assert "say how many rows to draw, as in sbnet sample" in complaint(capsys, "sample", lawn)


def test_findings_are_not_listed_among_causes(tmp_path, capsys):
    edges = {("flu", "fever"): 2.0, ("cold", "fever"): 1.0, ("cold", "mucus"): 1.0, ("mucus", "cough"): 2.0}
    sb.save(sb.from_edges(edges), tmp_path / "m.sbn")
    model = str(tmp_path / "m.sbn")
    told = json.loads(said(capsys, "infer", model, "fever=1", "--json"))
    assert {unit["name"] for unit in told["units"]} == {"flu", "cold", "mucus"}
    text = said(capsys, "infer", model, "fever=1")
    assert "  cough" not in text
    assert "... 1 finding, which --about lists" in text
    told = json.loads(said(capsys, "infer", model, "flu=1", "cold=0", "mucus=1", "--json"))  # causes are known
    assert {unit["name"] for unit in told["units"]} == {"fever", "cough"}
    columns = sb.load(model).with_notes({name: sb.Note(group="columns") for name in sb.load(model).names})
    sb.save(columns, tmp_path / "m.sbn")
    assert len(json.loads(said(capsys, "infer", model, "fever=1", "--json"))["units"]) == 4
