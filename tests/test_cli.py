"""The command `sbnet`: what it prints, what it writes, and one line for bad input."""

from __future__ import annotations

import csv
import io
import json
import re
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


def shown(capsys, *arguments):
    """What a command prints, after checking that all went well."""
    assert main(arguments) == 0
    return capsys.readouterr().out


def answer(capsys, *arguments):
    return json.loads(shown(capsys, *arguments, "--json"))


CLINIC = """
[units.flu]
about = "influenza"
group = "causes"
prior = 0.05
[units.cold]
group = "causes"
prior = 0.1
[units.fever]
gate = "noisy-or"
leak = 0.01
causes = { flu = 0.9, cold = 0.2 }
states = ["absent", "present"]
[units.aches]
about = "aching muscles"
gate = "noisy-or"
leak = 0.02
causes = { flu = 0.7 }
"""


@pytest.fixture
def clinic(tmp_path):
    (tmp_path / "clinic.toml").write_text(CLINIC)
    return str(tmp_path / "clinic.toml")


# --- show, convert ----------------------------------------------------------------------------------------------------


def test_show_lists_units_with_their_priors_and_notes(clinic, capsys):
    text = shown(capsys, "show", clinic)
    assert "4 variables, 3 edges" in text
    assert "flu       0.0500  0        causes  influenza" in text
    assert "P(fever = 1), noisy-or" in shown(capsys, "show", clinic, "fever")
    assert "flu + cold           0.9208" in shown(capsys, "show", clinic, "fever")
    units = answer(capsys, "show", clinic)["units"]
    assert [unit["name"] for unit in units] == ["flu", "cold", "fever", "aches"]
    assert units[0]["prior"] == pytest.approx(0.05)
    assert "did you mean 'fever'" in complaint(capsys, "show", clinic, "feber")


def test_a_command_takes_one_network(sprinkler, tmp_path, capsys):
    sb.write(sb.NetworkMixture((sprinkler,), sprinkler.names), tmp_path / "mixed.sbn")
    assert "mixed.sbn holds a mixture of networks, and a command takes one; sbnet.read() reads it" in complaint(
        capsys, "show", str(tmp_path / "mixed.sbn")
    )


def test_convert_goes_there_and_back(clinic, tmp_path, capsys):
    assert main(["convert", clinic, "-o", str(tmp_path / "clinic.sbn")]) == 0
    assert main(["convert", str(tmp_path / "clinic.sbn"), "-o", str(tmp_path / "again.toml")]) == 0
    assert sb.read(tmp_path / "again.toml") == sb.read(clinic)
    assert sb.read(tmp_path / "again.toml").notes == sb.read(clinic).notes
    assert answer(capsys, "convert", clinic, "-o", str(tmp_path / "x.sbn"))["units"] == 4


def piped(given, *arguments):
    """The command in a process of its own, with standard input."""
    return subprocess.run([sys.executable, "-m", "sbnet", *arguments], input=given, capture_output=True, check=False)


def test_standard_input_and_output(clinic):
    made = piped(CLINIC.encode(), "convert", "-", "-o", "-", "--to", ".sbn")
    assert (made.returncode, made.stderr) == (0, b"")
    read = piped(made.stdout, "infer", "-", "fever=present", "--json")
    assert [unit["name"] for unit in json.loads(read.stdout)["units"]] == ["flu", "cold"]
    tables = piped(CLINIC.encode(), "convert", "-", "-o", "-", "--to", ".bif").stdout
    assert piped(tables, "show", "-").stdout.startswith(b"Network: 4 variables")  # known by its content


def test_a_network_may_have_the_ending_of_a_table(clinic, tmp_path, capsys):
    sb.write(sb.read(clinic), tmp_path / "x.bif")
    (tmp_path / "x.bif").rename(tmp_path / "x.txt")
    assert "4 variables" in shown(capsys, "show", str(tmp_path / "x.txt"))
    (tmp_path / "y.txt").write_text("a,b\n1,0\n")
    assert "y.txt is a table; the model comes first" in complaint(capsys, "show", str(tmp_path / "y.txt"))


# --- infer ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mean_field", [False, True])
def test_infer_ranks_units_by_their_means(path, sprinkler, capsys, mean_field):
    evidence = {"wet": 1, "slippery": 0}
    found = answer(capsys, "infer", path, "wet=1", "slippery=no", *["--mean-field"] * mean_field)
    posterior = sb.infer(sprinkler, evidence)
    means = posterior.means if mean_field else sb.exact_posterior(sprinkler, evidence)
    assert_allclose(found["bound"], posterior.bound if mean_field else sb.log_likelihood(sprinkler, evidence))
    assert found["exact"] is not mean_field
    assert found["evidence"] == evidence
    shown = [unit["mean"] for unit in found["units"]]
    assert shown == sorted(shown, reverse=True)
    assert {unit["name"] for unit in found["units"]} == {"rain", "sprinkler"}
    for unit in found["units"]:
        assert_allclose(unit["mean"], means[sprinkler.index(unit["name"])])
        assert unit["prior"] == posterior.prior[sprinkler.index(unit["name"])]
        assert unit["contributions"].keys() == {"wet", "slippery"}


@pytest.mark.parametrize("option", ["--json", "--mean-field"])
def test_infer_solves_for_the_evidence_once(clinic, capsys, solved, option):
    assert "fever" in shown(capsys, "infer", clinic, "fever=yes", "aches=no", option)
    assert solved.count({"fever": 1, "aches": 0}) == 1


def test_infer_is_exact_for_units_below_nothing_observed(tmp_path, capsys):
    """Both effects of one cause that is not sure: independent parents would say something else."""
    net = sb.noisy_or(
        {("flu", "ache"): 0.9, ("cold", "ache"): 0.6, ("flu", "both"): 0.8, ("cold", "both"): 0.7}, leak=0.01, prior=0.3
    )
    sb.write(net, tmp_path / "clinic.toml")
    exact = sb.exact_posterior(net, {"ache": 1})
    for unit in answer(capsys, "infer", str(tmp_path / "clinic.toml"), "ache=yes")["units"]:
        assert_allclose(unit["mean"], exact[unit["name"]], rtol=1e-9)


def test_infer_in_lines(clinic, capsys):
    lines = shown(capsys, "infer", clinic, "fever=present", "aches=yes").splitlines()
    assert lines[0].startswith("Given 2 of 4 variables: ln P = -")
    assert [line.split()[0] for line in lines[2:4]] == ["flu", "cold"]
    assert lines[0].endswith(" nats, exact")
    assert len(lines) == 4
    assert all(" exact " in line for line in lines[2:])
    assert re.search(r"aches \+[0-9.]+ \(×[0-9.]+\), fever \+", lines[2])
    lines = shown(capsys, "infer", clinic, "fever=present", "aches=yes", "--mean-field").splitlines()
    assert lines[0].startswith("Given 2 of 4 variables: ln P ≥ -")
    assert lines[0].endswith(" nats, a bound")
    assert all(" estimate " in line for line in lines[2:4])
    assert lines[4] == "  (means of mean field theory; --certain says where they lie)"


def test_evidence_may_say_what_a_unit_is_about(clinic, capsys):
    named, told = (answer(capsys, "infer", clinic, words) for words in ("aches=yes", "Aching Muscles=yes"))
    assert named == told
    assert "which is not in the network" in complaint(capsys, "infer", clinic, "aching bones=yes")


def test_infer_can_be_certain(clinic, capsys):
    network = sb.read(clinic)
    exact = sb.exact_posterior(network, {"fever": 1})
    for unit in answer(capsys, "infer", clinic, "fever=yes", "--certain")["units"]:
        assert unit["lower"] <= exact[unit["name"]] <= unit["upper"]
        assert unit["lower"] <= unit["mean"] <= unit["upper"]
    assert "guaranteed" in shown(capsys, "infer", clinic, "--certain", "fever=yes")  # options may stand in between


def test_states_in_words(clinic, capsys):
    answers = [
        answer(capsys, "infer", clinic, f"fever={word}")["bound"]
        for word in ("yes", "TRUE", "1", "present", "Y", "on")[:5]
    ]
    assert len(set(answers)) == 1
    assert answer(capsys, "infer", clinic, "fever=unknown")["evidence"] == {}
    assert answer(capsys, "infer", clinic)["bound"] == 0.0


def test_nothing_is_cut_unless_it_is_asked_for(tmp_path, capsys):
    sb.save(sb.layered((30, 40), rng=0), tmp_path / "net.sbn")
    path = str(tmp_path / "net.sbn")
    assert len(answer(capsys, "infer", path, "x0=1")["units"]) == 30
    assert len(answer(capsys, "infer", path, "x0=1", "--top", "3")["units"]) == 3
    assert len(shown(capsys, "infer", path, "x0=1").splitlines()) == 34
    assert shown(capsys, "infer", path, "x0=1", "--top", "3").splitlines()[-3:-1] == [
        "  ... 27 more",
        "  ... 39 findings, which --about lists",
    ]
    assert main(["infer", path, "x0=1", "-o", str(tmp_path / "out.txt")]) == 0
    assert len((tmp_path / "out.txt").read_text().splitlines()) == 34


def test_infer_about_some(path, capsys):
    assert [u["name"] for u in answer(capsys, "infer", path, "wet=1", "--about", "sprinkler")["units"]] == ["sprinkler"]
    assert "did you mean 'sprinkler'" in complaint(capsys, "infer", path, "--about", "sprinkle")


# --- next, certify, explore -------------------------------------------------------------------------------------------


def test_next_is_next_question(clinic, capsys):
    found = answer(capsys, "next", clinic, "fever=yes")
    expected = sb.next_question(sb.read(clinic), {"fever": 1})
    assert [question["name"] for question in found["questions"]] == list(expected.names) == ["aches"]
    assert found["questions"][0]["information"] == expected.information[0]
    assert found["questions"][0]["about"] == "aching muscles"
    assert "1  aches  0.3694 nats (×1.45)  exact  0.4416  aching muscles" in shown(capsys, "next", clinic, "fever=yes")
    assert "nothing left to ask" in shown(capsys, "next", clinic, "fever=yes", "aches=no")


def test_next_asks_for_information_over_cost(tmp_path, capsys):
    """By words and by a file; the order is that of the same costs in Python."""
    net = sb.noisy_or({("flu", "ache"): 0.9, ("flu", "x-ray, new"): 0.95, ("cold", "cough"): 0.3}, leak=0.01, prior=0.2)
    sb.write(net, tmp_path / "net.toml")
    (tmp_path / "costs.csv").write_text('"x-ray, new",50\n\ncough , 2\n')
    asked = ("next", str(tmp_path / "net.toml"), "--cost", str(tmp_path / "costs.csv"))
    for more, cost in (((), 1.0), (("--cost", "ACHE=0.5"), 0.5)):
        found = answer(capsys, *asked, *more)["questions"]
        want = sb.next_question(net, {}, cost={"x-ray, new": 50, "cough": 2, "ache": cost})
        assert [one["name"] for one in found] == list(want.names)
        assert [one["cost"] for one in found] == want.cost.tolist()
    lines = shown(capsys, *asked).splitlines()
    assert lines[1].split() == ["ask", "information", "kind", "P(yes)", "cost"]
    assert lines[2].split()[-1] == "1"
    assert "has no number at its end" in complaint(capsys, *asked, "--cost", "ache=dear")
    assert "neither VARIABLE=NUMBER nor a file" in complaint(capsys, *asked, "--cost", "nothing.csv")
    assert "did you mean 'ache'" in complaint(capsys, *asked, "--cost", "achhe=3")
    assert "cost['ache'] is 0.0; it must be positive" in complaint(capsys, *asked, "--cost", "ache=0")


def test_certify_encloses(clinic, capsys):
    found = answer(capsys, "certify", clinic, "fever=yes", "--about", "flu")
    network = sb.read(clinic)
    assert found["lower"] <= sb.log_likelihood(network, {"fever": 1}) <= found["upper"]
    assert found["units"]["flu"]["lower"] <= sb.exact_posterior(network, {"fever": 1})["flu"]
    assert "ln P(evidence) = " in shown(capsys, "certify", clinic, "fever=yes")


def test_certify_takes_a_confidence_seconds_and_a_gap(tmp_path, capsys):
    net = sb.layered((30, 3), rng=0, scale=1.0)
    sb.save(net, tmp_path / "net.sbn")
    asked = ("certify", str(tmp_path / "net.sbn"), "x0=1", "x1=0")
    found = answer(capsys, *asked, "--effort", "fast", "--confidence", "0.99", "--gap", "0.05")
    assert found["interval"] == list(sb.certify(net, {"x0": 1, "x1": 0}, confidence=0.99, gap=0.05).interval)
    assert found["confidence"] == 0.99
    near = answer(capsys, *asked, "--effort", "fast", "--seconds", "60", "--gap", str(0.7 * found["gap"]))
    assert near["gap"] <= 0.7 * found["gap"]
    assert "99 %:" in shown(capsys, *asked, "--confidence", "0.99")


def test_explore_writes_a_page(clinic, tmp_path, capsys):
    assert answer(capsys, "explore", clinic, "fever=yes", "--html", str(tmp_path / "page.html"))["bytes"] > 1000
    assert "aching muscles" in (tmp_path / "page.html").read_text(encoding="utf-8")


# --- tables -----------------------------------------------------------------------------------------------------------

TABLE = "wet,rain\n1,\n0,1\n\n,\n"  # columns in another order than the network's, and a blank line


def test_a_row_of_a_table_has_the_answer_of_its_findings(clinic, tmp_path, capsys):
    """Exact where sums are small, and mean field theory if that is asked for: both say so."""
    (tmp_path / "visits.csv").write_text("fever,aches\n1,\n,0\n1,0\n,\n1,1\n")
    asked = ("infer", clinic, "--table", str(tmp_path / "visits.csv"))
    for more, kind in (((), "exact"), (("--mean-field",), "estimate")):
        rows = list(csv.DictReader(io.StringIO(shown(capsys, *asked, *more))))
        assert {row["exact"] for row in rows} == {"1" if kind == "exact" else "0"}
        for row, found in zip(rows, ("fever=1", "aches=0", "fever=1 aches=0", "", "fever=1 aches=1"), strict=True):
            alone = answer(capsys, "infer", clinic, *found.split(), "--about", "flu", "cold", *more)
            assert {one["kind"] for one in alone["units"]} == {kind}
            for one in alone["units"]:
                assert_allclose(float(row[one["name"]]), one["mean"], rtol=1e-5)


def test_infer_for_a_table(path, sprinkler, tmp_path, capsys):
    (tmp_path / "data.csv").write_text(TABLE)
    assert main(["infer", path, "--table", str(tmp_path / "data.csv")]) == 0
    header, *rows = csv.reader(io.StringIO(capsys.readouterr().out))
    assert header == ["bound", "converged", "exact", "rain", "sprinkler", "wet", "slippery"]
    patterns = [{"wet": 1}, {"wet": 0, "rain": 1}, {}]
    for row, pattern in zip(rows, patterns, strict=True):
        exact = sb.exact_posterior(sprinkler, pattern)
        assert_allclose([float(cell) for cell in row], [exact.log_likelihood, 1, 1, *exact], rtol=1e-5, atol=1e-9)


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
        ("wet=2", "variable 'wet' is given as '2'; say yes, no or unknown"),
        ("wet", "evidence 'wet' is not of the form VARIABLE=STATE, such as slippery=yes"),
        ("wit=1", "which is not in the network; did you mean 'wet'?"),
    ],
)
def test_bad_evidence(path, capsys, evidence, message):
    assert message in complaint(capsys, "infer", path, evidence)


def test_evidence_given_twice(path, capsys):
    assert "names variable 'wet' twice" in complaint(capsys, "infer", path, "wet=1", "wet=0")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty; its first line must name the variables"),
        ("wet,snow\n1,0\n", "names variable 'snow', which is not in the network"),
        ("wet,wet\n1,0\n", "names variable 'wet' twice"),
        ("wet,rain\n1,0\n1\n", "has 1 cells; the first line has 2"),
        ("wet,rain\n1,0\n\n1,maybe\n1,1\n", "column 'rain' holds 'maybe' on line 4; its states are no and yes. If it"),
        ('wet,rain\n1,"0\n', "is no table of cells divided by ','"),
    ],
)
def test_bad_tables(path, tmp_path, capsys, text, message):
    (tmp_path / "data.csv").write_text(text)
    assert message in complaint(capsys, "infer", path, "--table", str(tmp_path / "data.csv"))


def test_bad_files(tmp_path, path, capsys):
    assert "No such file or directory" in complaint(capsys, "show", str(tmp_path / "none.sbn"))
    (tmp_path / "text.sbn").write_text("not a network at all")
    assert "is not a network file" in complaint(capsys, "show", str(tmp_path / "text.sbn"))
    (tmp_path / "data.csv").write_bytes(b"wet\n\xff\n")
    assert "decode" in complaint(capsys, "infer", path, "--table", str(tmp_path / "data.csv"))


def test_bad_commands(capsys, path, tmp_path):
    assert "See sbnet --help" in complaint(capsys, "predict")
    assert "is not a whole number, one or more" in complaint(capsys, "reproduce", "--seeds", "0")
    assert "give VARIABLE=STATE or --table, not both" in complaint(capsys, "infer", path, "wet=1", "--table", path)
    assert "unrecognized arguments: --tpo" in complaint(capsys, "infer", path, "--tpo", "3")
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
    monkeypatch.setattr("sbnet.cli.show.read_model", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    assert main(["show", path]) == 130
    assert "stopped" in capsys.readouterr().err


def test_hidden_units_keep_their_column_order(tmp_path, capsys):
    network = sb.layered((2, 3), rng=0, scale=2)
    sb.save(network, tmp_path / "net.sbn")
    X = sb.sample(network, 5, rng=1)[:, 2:]
    np.savetxt(tmp_path / "x.csv", X, fmt="%d", delimiter=",", header="x0,x1,x2", comments="")
    main(["infer", str(tmp_path / "net.sbn"), "--table", str(tmp_path / "x.csv")])
    rows = np.loadtxt(io.StringIO(capsys.readouterr().out), delimiter=",", skiprows=1)
    assert_allclose(rows[:, 3:], sb.exact_posterior(network, X), rtol=1e-5)


def test_tables_as_pandas_writes_them_and_evidence_in_parts(tmp_path, capsys):
    network = sb.from_edges({("rain", "wet"): 2.0, ("sprinkler", "wet"): 1.5}, bias={"rain": -1.0})
    sb.save(network, tmp_path / "lawn.sbn")
    (tmp_path / "one.csv").write_text("rain\n1.0\n\n0.0\nNaN\n")  # blank: not observed, and still a row
    assert main(["infer", str(tmp_path / "lawn.sbn"), "--table", str(tmp_path / "one.csv")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(",")[3] for line in lines[1:]] == ["1", "0.268941", "0", "0.268941"]
    assert main(["infer", str(tmp_path / "lawn.sbn"), "wet=1", "rain=0"]) == 0
    assert "Given 2 of 3 variables" in capsys.readouterr().out


def test_a_question_imports_nothing_that_it_does_not_need():
    """Libraries for tables, estimators and pictures take longer to import than an answer takes."""
    ask = "import sys; from sbnet.cli import main; main(['infer', 'example', 'fever=yes']); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.splitlines()[-1].split())
    heavy = {"sklearn", "pandas", "polars", "pyarrow", "narwhals", "matplotlib", "networkx", "rich", "starlette"}
    heavy |= {"numba", "scipy.sparse", "scipy.special", "scipy.optimize"}
    own = {f"sbnet.cli.{name}" for name in ("columns", "writing", "fit", "explore")} | {"sbnet.tables.reading"}
    assert not loaded & (heavy | own)
