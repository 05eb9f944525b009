"""The command `sbnet`: what it prints, what it writes, and one line for bad input."""

from __future__ import annotations

import csv
import io
import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose

import sbnet as sb
from sbnet.cli import main


@pytest.fixture
def path(sprinkler, tmp_path):
    sb.save(sprinkler, tmp_path / "lawn.sbn")
    return str(tmp_path / "lawn.sbn")


def complaint(capsys, *arguments):
    """The one line on standard error, after checking that there is one and that the exit status is 2."""
    try:
        status = main(arguments)
    except SystemExit as stop:  # argparse leaves that way
        status = stop.code
    captured = capsys.readouterr()
    assert status == 2
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    return captured.err


def test_version(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["--version"])
    assert stop.value.code == 0
    assert capsys.readouterr().out == f"sbnet {sb.__version__}\n"


def test_python_dash_m_is_the_same_command():
    done = subprocess.run([sys.executable, "-m", "sbnet", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"sbnet {sb.__version__}\n"


def test_info(path, capsys):
    assert main(["info", path]) == 0
    text = capsys.readouterr().out
    assert "4 units, 3 edges" in text
    assert "rain, sprinkler, wet, slippery" in text
    assert "weights: from -0.5 to 2" in text


def test_infer_for_one_pattern(path, sprinkler, capsys):
    assert main(["infer", path, "--evidence", "wet=1", "rain=0"]) == 0
    assert capsys.readouterr().out == repr(sb.infer(sprinkler, {"wet": 1, "rain": 0})) + "\n"


def test_infer_without_any_evidence(path, sprinkler, capsys):
    assert main(["infer", path, "--evidence"]) == 0
    assert "given 0 of 4 units" in capsys.readouterr().out


TABLE = "wet,rain\n1,\n0,1\n\n,\n"  # columns in another order than the network's, and a blank line


def test_infer_for_a_table(path, sprinkler, tmp_path, capsys):
    (tmp_path / "data.csv").write_text(TABLE)
    assert main(["infer", path, "--table", str(tmp_path / "data.csv")]) == 0
    header, *rows = csv.reader(io.StringIO(capsys.readouterr().out))
    assert header == ["bound", "converged", "rain", "sprinkler", "wet", "slippery"]
    patterns = [{"wet": 1}, {"wet": 0, "rain": 1}, {}]
    for row, pattern in zip(rows, patterns, strict=True):
        expected = sb.infer(sprinkler, pattern)
        assert_allclose([float(cell) for cell in row], [expected.bound, 1, *expected.means], rtol=1e-5, atol=1e-9)


def test_out_holds_what_would_have_been_printed(path, tmp_path, capsys):
    (tmp_path / "data.csv").write_text(TABLE)
    arguments = ["infer", path, "--table", str(tmp_path / "data.csv")]
    main(arguments)
    printed = capsys.readouterr().out
    assert main([*arguments, "--out", str(tmp_path / "answers.csv")]) == 0
    assert (tmp_path / "answers.csv").read_text() == printed
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("evidence", "message"),
    [
        ("wet=2", "evidence 'wet=2' is not of the form unit=0 or unit=1"),
        ("wet", "evidence 'wet' is not of the form unit=0 or unit=1"),
        ("wit=1", "which is not in the network; did you mean 'wet'?"),
    ],
)
def test_bad_evidence(path, capsys, evidence, message):
    assert message in complaint(capsys, "infer", path, "--evidence", evidence)


def test_evidence_given_twice(path, capsys):
    assert "names unit 'wet' twice" in complaint(capsys, "infer", path, "--evidence", "wet=1", "wet=0")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty; its first line must name the units"),
        ("wet,snow\n1,0\n", "names unit 'snow', which is not in the network"),
        ("wet,wet\n1,0\n", "names unit 'wet' twice"),
        ("wet,rain\n1,0\n1\n", "has 1 cells; the first line has 2"),
        ("wet,rain\n1,0\n1,yes\n", "data.csv: column 1 ('rain') holds 'yes' on line 3; units are binary"),
        ("wet,rain\n1,0\n\n1,maybe\n1,1\n", "column 1 ('rain') holds 'maybe' on line 4; units are binary"),
        ('wet,rain\n1,"0\n', "is no table of cells divided by ','"),
    ],
)
def test_bad_tables(path, tmp_path, capsys, text, message):
    (tmp_path / "data.csv").write_text(text)
    assert message in complaint(capsys, "infer", path, "--table", str(tmp_path / "data.csv"))


def test_bad_files(tmp_path, path, capsys):
    assert "No such file or directory" in complaint(capsys, "info", str(tmp_path / "none.sbn"))
    (tmp_path / "text.sbn").write_text("not a network at all")
    assert "is not a network file" in complaint(capsys, "info", str(tmp_path / "text.sbn"))
    (tmp_path / "data.csv").write_bytes(b"wet\n\xff\n")
    assert "decode" in complaint(capsys, "infer", path, "--table", str(tmp_path / "data.csv"))


def test_bad_commands(capsys, path, tmp_path):
    assert "See sbnet --help" in complaint(capsys, "predict")
    assert "is not a whole number, one or more" in complaint(capsys, "reproduce", "--seeds", "0")
    assert "one of the arguments --evidence --table is required" in complaint(capsys, "infer", path)
    assert "there is no experiment 'figure9'; did you mean" in complaint(capsys, "reproduce", "figure9")
    assert "is a file; --out names a folder" in complaint(capsys, "reproduce", "figure1", "--out", path)


def test_reproduce_lists_the_experiments(capsys):
    assert main(["reproduce", "list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert {"figure1", "figure5", "table1", "table2", "table3"} <= {line.split()[0] for line in lines}
    assert all(len(line.split()) > 3 for line in lines)  # each says what it is


def test_reproduce_prints_tables_and_writes_a_report(tmp_path, capsys):
    assert main(["reproduce", "figure2", "figure5", "--quick", "--jobs", "1", "--out", str(tmp_path / "report")]) == 0
    captured = capsys.readouterr()
    assert "Figure 2" in captured.out
    assert "0.974" in captured.out
    assert "published numbers agree within the spread" in captured.out
    assert "figure2 (1 of 2)" in captured.err  # progress, where there is no terminal
    assert {item.name for item in (tmp_path / "report").iterdir()} == {"index.html", "results.json"}


def test_ctrl_c(monkeypatch, capsys, path):
    monkeypatch.setattr("sbnet.cli.load", lambda _: (_ for _ in ()).throw(KeyboardInterrupt))
    assert main(["info", path]) == 130
    assert "stopped" in capsys.readouterr().err


def test_hidden_units_keep_their_column_order(tmp_path, capsys):
    network = sb.layered((2, 3), rng=0, scale=2)
    sb.save(network, tmp_path / "net.sbn")
    X = sb.sample(network, 5, rng=1)[:, 2:]
    np.savetxt(tmp_path / "x.csv", X, fmt="%d", delimiter=",", header="x0,x1,x2", comments="")
    main(["infer", str(tmp_path / "net.sbn"), "--table", str(tmp_path / "x.csv")])
    rows = np.loadtxt(io.StringIO(capsys.readouterr().out), delimiter=",", skiprows=1)
    assert_allclose(rows[:, 2:], sb.infer_many(network, X).means, rtol=1e-5)


def test_tables_as_pandas_writes_them_and_evidence_in_parts(tmp_path, capsys):
    network = sb.from_edges({("rain", "wet"): 2.0, ("sprinkler", "wet"): 1.5}, bias={"rain": -1.0})
    sb.save(network, tmp_path / "lawn.sbn")
    (tmp_path / "one.csv").write_text("rain\n1.0\n\n0.0\nNaN\n")  # blank: not observed, and still a row
    assert main(["infer", str(tmp_path / "lawn.sbn"), "--table", str(tmp_path / "one.csv")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(",")[2] for line in lines[1:]] == ["1", "0.268941", "0", "0.268941"]
    assert main(["infer", str(tmp_path / "lawn.sbn"), "--evidence", "wet=1", "--evidence", "rain=0"]) == 0
    assert "given 2 of 3 units" in capsys.readouterr().out
