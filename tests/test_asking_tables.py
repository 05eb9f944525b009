"""Questions to models of tables: answers near the table, that do not contradict each other, whoever asks."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest

import sbnet as sb
from sbnet.cli import main


def passengers(n: int = 600) -> list[dict[str, object]]:
    """Two columns that say the same in other words, as tables have them; a number, and what follows from all."""
    rng = np.random.default_rng(2)
    level = rng.choice(3, size=n, p=[0.25, 0.2, 0.55])
    woman = rng.random(n) < np.array([0.45, 0.4, 0.3])[level]
    lived = rng.random(n) < np.where(woman, np.array([0.97, 0.9, 0.5])[level], np.array([0.35, 0.15, 0.13])[level])
    age = np.round(rng.normal(np.array([38.0, 30.0, 25.0])[level], 8.0), 1)
    words = ["First", "Second", "Third"]
    return [
        {"lived": int(v), "pclass": int(c) + 1, "sex": "female" if w else "male", "age": float(a), "class": words[c]}
        for c, w, v, a in zip(level, woman, lived, age, strict=True)
    ]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder, table = tmp_path_factory.mktemp("people"), passengers()
    lines = [",".join(table[0]), *(",".join(map(str, row.values())) for row in table)]
    (folder / "people.csv").write_text("\n".join(lines) + "\n")
    path = str(folder / "people.sbn")
    assert main(["fit", str(folder / "people.csv"), "-o", path, "--quiet"]) == 0
    return path


def asked(capsys, model: str, *words: str) -> dict[str, float]:
    assert main(["infer", model, *words, "--json"]) == 0
    return {one["name"]: one["mean"] for one in json.loads(capsys.readouterr().out)["units"]}


def test_answers_of_a_table_are_near_the_table(model, capsys):
    rows = [row for row in passengers() if row["sex"] == "female" and row["class"] == "First"]
    means = asked(capsys, model, "sex=female", "class=First")
    assert means["lived"]["yes"] == pytest.approx(np.mean([row["lived"] for row in rows]), abs=0.1)
    assert means["pclass"]["1"] > 0.95


def test_columns_that_say_the_same_agree(model, capsys):
    means, rows = asked(capsys, model, "sex=female"), [row for row in passengers() if row["sex"] == "female"]
    first = np.mean([row["class"] == "First" for row in rows])
    assert means["class"]["First"] == pytest.approx(first, abs=0.05)
    assert means["pclass"]["1"] == pytest.approx(first, abs=0.05)


def test_a_row_has_one_answer_whoever_asks(model, capsys, tmp_path):
    lived = asked(capsys, model, "sex=female", "class=First", "age=30")["lived"]["yes"]
    (tmp_path / "one.csv").write_text("lived,pclass,sex,age,class\n,,female,30,First\n")
    assert main(["impute", model, str(tmp_path / "one.csv")]) == 0
    filled = capsys.readouterr().out.splitlines()[1].split(",")
    assert filled == ["1", "1", "female", "30", "First"]
    assert lived > 0.5
    assert main(["infer", model, "--table", str(tmp_path / "one.csv")]) == 0
    header, line = (text.split(",") for text in capsys.readouterr().out.splitlines())
    assert float(line[header.index("lived")]) == pytest.approx(lived, abs=1e-5)
    assert main(["score", model, str(tmp_path / "one.csv"), "--label", "lived"]) == 0
    assert float(capsys.readouterr().out.splitlines()[1].split(",")[1]) == pytest.approx(lived, abs=1e-5)


# --- the Titanic ------------------------------------------------------------------------------------------------------

TITANIC = Path(os.environ.get("SBNET_TABLES", ".")) / "tables" / "titanic.csv"


@pytest.mark.skipif(not TITANIC.exists(), reason="SBNET_TABLES names the folder of tables/titanic.csv")
def test_a_woman_of_thirty_in_first_class_survived(tmp_path, capsys):
    """19 of the 20 of them from 25 to 35 did, and 91 of all 94; `alive` repeats `survived`, `class` `pclass`."""
    path = str(tmp_path / "titanic.sbn")
    assert main(["fit", str(TITANIC), "-o", path, "--quiet"]) == 0
    capsys.readouterr()
    told, network = asked(capsys, path, "class=First", "sex=female", "age=30"), sb.load(path)
    evidence = {"class": "First", "sex": "female", "age": 30}
    exact = sb.exact_posterior(network, evidence, units=["survived", "alive", "pclass", "who", "adult_male"])
    assert exact["survived"] > 0.85
    assert exact["alive"] == pytest.approx(exact["survived"], abs=0.02)
    assert exact["pclass"]["1"] > 0.98
    assert exact["who"]["woman"] > 0.95
    assert exact["adult_male"] < 0.05
    for name, p in told.items():
        assert sum(p.values()) == pytest.approx(1.0, abs=1e-6)
        if name in exact.names:
            truth = exact[name] if len(p) > 2 else dict(zip(p, (1.0 - exact[name], exact[name]), strict=True))
            assert p == pytest.approx(truth, abs=0.02)
    found = sb.infer(network, evidence)  # overconfident where columns repeat each other, and a bound
    assert found.bound <= sb.log_likelihood(network, evidence)
    assert found["survived"] > 0.85
