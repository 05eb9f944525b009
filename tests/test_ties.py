"""Units that are states of one variable, or switches of a table: answers that cannot contradict each other."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest

import sbnet as sb
from sbnet.cli import main
from sbnet.errors import ApproximationWarning, ParameterError, TooRareError
from sbnet.estimators import SBNDensity
from sbnet.explore.answers import answer, questions
from sbnet.inference.solvers.block_gibbs import cell_probabilities
from sbnet.inference.solvers.enumeration import Sampled
from sbnet.questions import ties

STATES = ("low", "mid", "high")
N = 8


def tables() -> list[np.ndarray]:
    """P(V_k | V_{k-2}, V_{k-1}), all of three states."""
    rng = np.random.default_rng(5)
    return [rng.dirichlet([0.5] * 3, size=(3,) * min(k, 2)) for k in range(N)]


def as_bif() -> str:
    parts = ["network n { }"]
    for k in range(N):
        parts.append(f"variable V{k} {{ type discrete [ 3 ] {{ {', '.join(STATES)} }}; }}")
    for k, table in enumerate(tables()):
        parents = [f"V{j}" for j in range(max(k - 2, 0), k)]
        head = f"V{k} | {', '.join(parents)}" if parents else f"V{k}"
        if not parents:
            body = [f"  table {', '.join(f'{p:.17g}' for p in table)};"]
        else:
            body = [
                f"  ({', '.join(STATES[s] for s in key)}) {', '.join(f'{p:.17g}' for p in table[key])};"
                for key in itertools.product(range(3), repeat=len(parents))
            ]
        parts.append("\n".join([f"probability ( {head} ) {{", *body, "}"]))
    return "\n".join(parts)


def truth(evidence: dict[int, int]) -> np.ndarray:
    """The posterior of each variable, by enumeration of all states: variables by states."""
    joint = np.ones((3,) * N)
    for k, table in enumerate(tables()):
        own = [1] * N
        own[max(k - 2, 0) : k + 1] = [3] * table.ndim
        joint = joint * table.reshape(own)
    for k, state in evidence.items():
        joint = joint * np.eye(3)[state].reshape([3 if j == k else 1 for j in range(N)])
    found = np.array([joint.sum(axis=tuple(j for j in range(N) if j != k)) for k in range(N)])
    return found / joint.sum()


@pytest.fixture(scope="module")
def bif(tmp_path_factory):
    path = tmp_path_factory.mktemp("bif") / "chain.bif"
    path.write_text(as_bif())
    return str(path)


@pytest.fixture(scope="module")
def network(bif):
    return sb.read(bif)


EVIDENCE = {"V7": "high", "V0": "low"}
GIVEN = {7: 2, 0: 0}


def test_states_of_one_variable_agree_with_the_sum_over_all_states(bif, capsys):
    assert main(["infer", bif, "V7=high", "V0=low", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert not told["exact"]
    assert told["samples"] > 1000
    by_name, exact, prior = {one["name"]: one for one in told["units"]}, truth(GIVEN), truth({})
    for k in range(1, 7):
        means = [by_name[f"V{k}={state}"]["mean"] for state in STATES]
        assert sum(means) == pytest.approx(1.0, abs=1e-9)
        assert means == pytest.approx(exact[k], abs=0.03)
        assert all(by_name[f"V{k}={state}"]["error"] < 0.01 for state in STATES)
        before = [by_name[f"V{k}={state}"]["prior"] for state in STATES]
        assert before == pytest.approx(prior[k], abs=0.02)
    assert main(["infer", bif, "V7=high", "V0=low"]) == 0
    text = capsys.readouterr().out
    assert "samples, ± standard errors; --certain says where they lie" in text
    assert "mean field" not in text


def test_mean_field_has_no_means_of_tied_units(network, bif, capsys):
    posterior = sb.infer(network, EVIDENCE)
    with pytest.warns(ApproximationWarning, match="means of mean field theory say nothing: hidden units are tied by"):
        posterior["V3=low"]
    with pytest.warns(ApproximationWarning, match="say nothing in 2 rows"):
        sb.infer_many(network, [EVIDENCE, {"V7": "low"}])["V3=low"]
    assert "no means are shown" in repr(posterior)
    assert "V3" not in repr(posterior)
    assert posterior.bound <= np.log(0.5)
    assert main(["infer", bif, "V7=high", "--mean-field"]) == 2
    assert "--mean-field has no means here" in capsys.readouterr().err


def test_other_networks_are_not_doubted():
    """Strong weights alone may be meant; notes say where units stand for states of one variable."""
    plain = sb.from_edges({("a", "b"): 30.0, ("b", "c"): -30.0, ("a", "c"): 2.0})
    assert not sb.infer(plain, {"c": 1}).doubtful
    copy = sb.from_edges({("a", "b"): 60.0, ("a", "c"): 1.0})
    assert not sb.infer(copy, {"c": 1}).doubtful  # the mean of b follows from that of a
    chain = sb.from_edges({("a", "b"): 60.0, ("b", "c"): 1.0})
    assert not sb.infer(chain, {"c": 1}).doubtful
    assert sb.infer(chain.with_notes({"a": sb.Note(variable="v", state="x")}), {"c": 1}).doubtful


def test_samples_as_a_solver(network):
    posterior = sb.infer(network, EVIDENCE, solver=Sampled())
    assert posterior["V3=mid"] == pytest.approx(truth(GIVEN)[3, 1], abs=0.03)
    assert posterior.error[network.index("V3=mid")] < 0.01


def test_evidence_that_samples_do_not_meet_is_refused():
    noisy = sb.noisy_or({("a", "b"): 1.0, ("b", "c"): 0.9, ("a", "d"): 0.5, ("d", "c"): 0.5}, leak=0.0, prior=1e-7)
    with pytest.raises(
        TooRareError, match="agree with the evidence, too few for an answer; and mean field theory has none"
    ):
        sb.infer(noisy, {"c": 1}, solver=Sampled())


def test_the_next_question_is_that_of_the_tables(network, bif):
    found = sb.next_question(network, {"V7": "high"}, about=["V6=high"], among=["V5=low", "V1=low", "V0=high"])
    assert not found.exact
    joint = np.zeros((2, 2))
    given = truth({7: 2})
    low = truth({7: 2, 5: 0})[6, 2]
    p = given[5, 0]
    joint[1] = p * np.array([1.0 - low, low])
    joint[0] = np.array([1.0 - given[6, 2], given[6, 2]]) - joint[1]
    outer = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0, keepdims=True)
    information = float((joint * np.log(joint / outer)).sum())
    one = next(one for one in found if one.name == "V5=low")
    assert one.information == pytest.approx(information, abs=0.01)
    assert one.probability == pytest.approx(p, abs=0.02)


def test_the_page_is_answered_from_samples_or_refused(network):
    row = {str(network.index(f"V7={state}")): int(state == "high") for state in STATES}
    told = answer(network, {"evidence": row})
    assert told["sampled"]
    means = [told["means"][network.index(f"V6={state}")] for state in STATES]
    assert means == pytest.approx(truth({7: 2})[6], abs=0.03)
    assert questions(network, {"evidence": row})


def test_nothing_is_drawn_of_such_means(network):
    pytest.importorskip("matplotlib")
    with pytest.raises(ParameterError, match="hidden units are tied by weights of 40"):
        sb.plots.means(sb.infer(network, EVIDENCE))


# --- models of tables -------------------------------------------------------------------------------------------------


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
    assert main(["fit", str(folder / "people.csv"), "--encode", "auto", "-o", path, "--quiet"]) == 0
    return path


def asked(capsys, model: str, *words: str) -> dict[str, float]:
    assert main(["infer", model, *words, "--json"]) == 0
    return {one["name"]: one["mean"] for one in json.loads(capsys.readouterr().out)["units"]}


def test_answers_of_an_encoded_table_are_near_the_table(model, capsys):
    rows = [row for row in passengers() if row["sex"] == "female" and row["class"] == "First"]
    means = asked(capsys, model, "sex=female", "class=First")
    assert means["lived"] == pytest.approx(np.mean([row["lived"] for row in rows]), abs=0.15)
    assert means["pclass>1"] < 0.25
    assert means["pclass>2"] <= means["pclass>1"] + 1e-9  # a thermometer


def test_columns_that_say_the_same_do_not_hold_each_other(model, capsys):
    means, rows = asked(capsys, model, "sex=female"), [row for row in passengers() if row["sex"] == "female"]
    first = np.mean([row["class"] == "First" for row in rows])
    assert means["class=First"] == pytest.approx(first, abs=0.1)
    assert 1.0 - means["pclass>1"] == pytest.approx(first, abs=0.1)
    assert means["class=First"] + means["class=Second"] <= 1.0 + 1e-9


def test_a_row_has_one_answer_whoever_asks(model, capsys, tmp_path):
    means = asked(capsys, model, "sex=female", "class=First", "age=30")
    (tmp_path / "one.csv").write_text("lived,pclass,sex,age,class\n,,female,30,First\n")
    assert main(["impute", model, str(tmp_path / "one.csv")]) == 0
    filled = capsys.readouterr().out.splitlines()[1].split(",")
    assert filled == ["1", "1", "female", "30", "First"]
    assert means["lived"] > 0.5
    assert main(["infer", model, "--table", str(tmp_path / "one.csv")]) == 0
    header, line = (text.split(",") for text in capsys.readouterr().out.splitlines())
    assert float(line[header.index("lived")]) == pytest.approx(means["lived"], abs=1e-5)
    assert main(["score", model, str(tmp_path / "one.csv"), "--label", "lived"]) == 0
    assert float(capsys.readouterr().out.splitlines()[1].split(",")[1]) == pytest.approx(means["lived"], abs=1e-5)


def test_a_row_has_its_answer_whatever_rows_stand_beside_it():
    density = SBNDensity(encode="auto", epochs=2, hidden=2, random_state=0).fit(passengers(60))
    network, places = density.network_, density._places(density.network_)
    table = [
        {**row, key: None} for row, key in zip(passengers(5), ("age", "class", "sex", "pclass", "lived"), strict=True)
    ]
    states = density._states(network, density._table(table, reset=False)[0])
    whole = cell_probabilities(network, states, places)
    for r in range(len(states)):
        alone = cell_probabilities(network, states[r : r + 1], places)
        for one, every in zip(alone, whole, strict=True):
            np.testing.assert_array_equal(one[0], every[r])


def test_part_of_a_block_may_be_observed(model):
    network = sb.load(model)
    means = sb.infer(network, {"pclass>1": 1, "sex=male": 0}, solver=Sampled()).means
    assert means[network.index("class=First")] < 0.3
    assert 0.0 < means[network.index("pclass>2")] < 1.0
    assert len(ties.blocks(network)) < network.n_units
