"""Variables with states through all files and programs and back."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sbnet as sb
from sbnet.files import own
from sbnet.files.assembling import assembled
from sbnet.kernels.codes import TABLE
from sbnet.model.notes import as_words
from test_tables_in import ASIA, any_tables, joint

gum = pytest.importorskip("pyagrum")

SKY = """\
network sky { }
variable season { type discrete [ 2 ] { winter, summer }; }
variable sky { type discrete [ 3 ] { clear, cloud, rain }; }
variable wet { type discrete [ 2 ] { no, yes }; }
variable mood { type discrete [ 3 ] { low, mid, great }; }
probability ( season ) { table 0.4, 0.6; }
probability ( sky | season ) { (winter) 0.2, 0.5, 0.3; (summer) 0.6, 0.3, 0.1; }
probability ( wet | sky, season ) {
  (clear, winter) 0.95, 0.05; (cloud, winter) 0.7, 0.3; (rain, winter) 0.03, 0.97;
  (clear, summer) 0.98, 0.02; (cloud, summer) 0.85, 0.15; (rain, summer) 0.1, 0.9; }
probability ( mood | sky, wet ) {
  (clear, no) 0.1, 0.2, 0.7; (cloud, no) 0.3, 0.4, 0.3; (rain, no) 0.4, 0.4, 0.2;
  (clear, yes) 0.2, 0.3, 0.5; (cloud, yes) 0.5, 0.3, 0.2; (rain, yes) 0.7, 0.2, 0.1; }
"""


@pytest.fixture
def sky(tmp_path):
    (tmp_path / "sky.bif").write_text(SKY)
    return sb.read(tmp_path / "sky.bif")


def through_file(ending):
    def there_and_back(network, folder):
        sb.write(network, folder / f"there.{ending}")
        return sb.read(folder / f"there.{ending}")

    return there_and_back


def through_pgmpy(network, folder):
    pytest.importorskip("pgmpy")
    return sb.convert.from_pgmpy(sb.convert.to_pgmpy(network))


def through_pyagrum_file(network, folder):
    sb.write(network, folder / "there.bif")
    return sb.convert.from_pyagrum(gum.loadBN(str(folder / "there.bif")))


WAYS = {
    "bif": through_file("bif"),
    "toml": through_file("toml"),
    "sbn": through_file("sbn"),
    "pgmpy": through_pgmpy,
    "pyagrum": lambda network, folder: sb.convert.from_pyagrum(sb.convert.to_pyagrum(network)),
    "pyagrum reads bif": through_pyagrum_file,
}


@pytest.mark.parametrize("way", WAYS)
def test_states_are_evidence_after_a_round_trip(sky, tmp_path, way):
    again = WAYS[way](WAYS[way](sky, tmp_path), tmp_path)  # twice: what comes back goes there once more
    within = 1e-6 if "reads" in way else 1e-9  # pyAgrum's tables are of single precision where it reads them
    assert again.names == sky.names
    assert again.states == sky.states
    assert sb.log_likelihood(again, {"sky": "clear"}) == pytest.approx(np.log(0.44), abs=within)
    for evidence in ({"mood": "great"}, {"sky": "rain", "season": "summer"}, {"mood": "low", "wet": "yes"}):
        one, other = sb.exact_posterior(sky, evidence), sb.exact_posterior(again, evidence)
        assert other.log_likelihood == pytest.approx(one.log_likelihood, abs=within)
        for name in sky.names:
            two = isinstance(one[name], float)
            assert (other[name] if two else dict(other[name])) == pytest.approx(
                one[name] if two else dict(one[name]), abs=within
            )


@settings(max_examples=30)
@given(any_tables(), st.sampled_from(["bif", "pyagrum"]))
def test_any_tables_come_back_as_the_variables_they_were(tmp_path_factory, variables, way):
    network = assembled(variables, "made")
    again = WAYS[way](network, tmp_path_factory.getbasetemp())
    assert again.states == network.states
    for states, p in joint(variables).items():
        evidence = {variable.name: variable.states[s] for variable, s in zip(variables, states, strict=True)}
        assert np.exp(sb.log_likelihood(again, evidence)) == pytest.approx(p, abs=1e-12)


def test_names_with_a_sign_mean_nothing():
    network = sb.from_edges({("a=b", "a=b=0"): -2.0})
    with pytest.raises(sb.errors.UnknownUnitError, match="names variable 'a'"):
        sb.log_likelihood(network, {"a": "b"})


def test_notes_of_older_files_that_called_units_states_are_passed_over(tmp_path, monkeypatch):
    network = sb.from_edges({("sky=clear", "sky=rain"): -20.0}).with_notes({"sky=rain": sb.Note(about="wet")})
    (tmp_path / "old.toml").write_text(
        '[units."sky=clear"]\nprior = 0.5\nvariable = "sky"\nstate = "clear"\n\n'
        '[units."sky=rain"]\nweights = {"sky=clear" = -20.0}\nabout = "wet"\nvariable = "sky"\nstate = "rain"\n'
    )
    more = {"variable": "sky", "state": "rain"}
    monkeypatch.setattr(own, "as_words", lambda note: as_words(note) | more)
    sb.save(network, tmp_path / "old.sbn")
    assert b"variable" in (tmp_path / "old.sbn").read_bytes()
    for old in (sb.read(tmp_path / "old.toml"), sb.load(tmp_path / "old.sbn")):
        assert old == network
        assert old.notes == network.notes


# --- what other programs read -----------------------------------------------------------------------------------------


def test_asia_goes_through_pyagrum_as_bif(tmp_path):
    (tmp_path / "asia.bif").write_text(ASIA.replace('"lung cancer"', "lung"))
    asia = sb.read(tmp_path / "asia.bif")
    sb.write(asia, tmp_path / "again.bif")
    assert '"' not in (tmp_path / "again.bif").read_text()
    engine = gum.LazyPropagation(gum.loadBN(str(tmp_path / "again.bif")))
    engine.setEvidence({"dysp": "yes"})
    engine.makeInference()
    assert engine.posterior("lung")[{"lung": "yes"}] == pytest.approx(
        sb.exact_posterior(asia, {"dysp": "yes"})["lung"], abs=1e-6
    )


def test_states_that_begin_with_a_digit_go_through_pyagrum_as_bif(tmp_path):
    """As the files of the bnlearn repository have them; pyAgrum does not read them in quotes."""
    salt = sb.from_edges({}, states={"salt": ["20_MG_L", "30_MG_L", "4"]}, tables={"salt": [0.5, 0.25, 0.25]})
    assert through_pyagrum_file(salt, tmp_path).states == salt.states


@pytest.mark.parametrize("cold", ["cold", "common.cold", "common-cold", "_cold2"])
def test_plain_units_are_read_by_pyagrum(tmp_path, cold):
    clinic = sb.noisy_or({("flu", "fever"): 0.9, (cold, "fever"): 0.2}, leak=0.01, prior=0.1)
    sb.write(clinic, tmp_path / "clinic.bif")
    bn = gum.loadBN(str(tmp_path / "clinic.bif"))
    assert bn.variable("flu").labels() == ("0", "1")
    again = sb.convert.from_pyagrum(bn)
    assert again.conditional("fever").p == pytest.approx(clinic.conditional("fever").p, abs=1e-6)


def test_a_certain_or_keeps_its_zeros(tmp_path):
    either = sb.noisy_or({("a", "c"): 1.0, ("b", "c"): 1.0, ("c", "d"): 1.0}, prior=0.3)
    for way in ("bif", "pyagrum"):
        again = WAYS[way](either, tmp_path)
        assert (again.gate == TABLE).all()
        assert again.conditional("c").p.tolist() == [0.0, 1.0, 1.0, 1.0]
        assert sb.log_likelihood(again, {"a": 1, "c": 0}) == -np.inf


# --- files that are not what they seem --------------------------------------------------------------------------------


def refused(path, text: str) -> str:
    path.write_text(text)
    with pytest.raises(sb.errors.FileFormatError) as error:
        sb.read(path)
    return str(error.value)


def test_a_row_that_does_not_add_up_is_named_by_its_line(tmp_path):
    wrong = SKY.replace("0.85, 0.15", "0.85, 0.25")
    found = refused(tmp_path / "sky.bif", wrong)
    assert found.startswith("line 10, column 31: the probabilities of 'wet' in row 4 of its table add up to 1.1, not 1")
    assert refused(tmp_path / "sky.bif", SKY.replace("0.4, 0.6;", "0.4, 0.7;")).startswith("line 6, column 26: ")
    default = SKY.replace("(summer) 0.6, 0.3, 0.1;", "\n default 1, 1, 1;")
    assert refused(tmp_path / "sky.bif", default).startswith("line 8, column 2: ")
    found = refused(tmp_path / "x.uai", "BAYES 2 2 2 2\n1 0\n2 0 1\n2 0.5 0.5\n4\n0.5 0.5\n0.9 0.9")
    assert found.startswith("line 7, column 1: the probabilities of '1' in row 2 of its table add up to 1.8, not 1")


def test_a_uai_file_of_pgmpy_is_refused_with_the_reason(tmp_path):
    found = refused(tmp_path / "x.uai", "BAYES 2 2 2 2\n1 0\n2 0 1\n2 0.5 0.5\n4\n0.6 0.3 0.4 0.7")
    assert found.startswith("line 6, column 1: rows of the table of '1' add up only if its own state runs slowest")
    assert "sb.convert.from_pgmpy(model)" in found
    assert "…" not in found


def test_a_sum_that_is_off_is_told(tmp_path):
    (tmp_path / "sky.bif").write_text(SKY.replace("0.4, 0.6;", "0.4, 0.595;"))
    with pytest.warns(
        sb.errors.ConversionWarning, match="a row of the table of 'season' adds up to 0.995, not 1, and was scaled"
    ) as told:
        network = sb.read(tmp_path / "sky.bif")
    assert told[0].filename == __file__
    assert sb.exact_posterior(network, {})["season"] == pytest.approx(0.595 / 0.995, abs=1e-14)


@pytest.mark.parametrize("read", [sb.read, sb.load])
@pytest.mark.parametrize("ending", ["", ".bif", ".sbn"])
def test_a_folder_is_no_network(tmp_path, read, ending):
    folder = tmp_path / f"models{ending}"
    folder.mkdir()
    with pytest.raises(sb.errors.FileFormatError, match="is a folder; give the name of a file in it"):
        read(folder)
