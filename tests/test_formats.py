"""Networks of other programs: NET, DSC and XMLBIF read, XMLBIF and XDSL written, and what each refuses."""

from __future__ import annotations

import gzip
import os
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import sbnet as sb
from sbnet.errors import FileFormatError
from sbnet.files.xml_writing import _alone
from sbnet.model.probabilities import thresholds_of
from strategies import state_networks

NET = """\
% made by hand
net { name = "garden"; node_size = (80 40); }
node rain { label = "does it; rain?"; states = ("no" "yes"); position = (10 20); }
discrete node sky { states = ("clear" "grey" "black"); }
node wet { states = ("no" "yes"); HR_State = "x"; }
potential (sky) { data = (0.5 0.3 0.2); }
potential (rain | sky) { data = ((0.99 0.01) % clear
  (0.8 0.2) (0.1, 0.9)); }
potential (wet | rain sky) { data = (((0.9 0.1) (0.8 0.2) (0.7 0.3)) ((0.3 0.7) (0.2 0.8) (0.1 0.9))); }
"""
DSC = """\
belief network "garden" // made by hand
node sky { name: "the sky"; type: discrete[3] = {"clear", "grey", "black"}; position: (1, 2); }
node rain { name: "rain"; type : discrete [ 2 ] = { no, yes }; }
node wet { type: discrete[2] = {no, yes}; }
probability(sky) { 0.5, 0.3, 0.2; }
probability(rain | sky) { (0): 0.99, 0.01; (2): 0.1, 0.9; default: 0.8, 0.2; }
probability(wet | rain, sky) {
  (0, 0): 0.9, 0.1; (0, 1): 0.8, 0.2; (0, 2): 0.7, 0.3;
  (1, 0): 0.3, 0.7; (1, 1): 0.2, 0.8; (1, 2): 0.1, 0.9;
}
"""
XMLBIF = """\
<?xml version="1.0"?>
<!DOCTYPE BIF [ <!ELEMENT BIF ( NETWORK )*> ]>
<BIF VERSION="0.3"><NETWORK><NAME>garden</NAME>
<VARIABLE TYPE="nature"><NAME>sky</NAME><OUTCOME>clear</OUTCOME><OUTCOME>grey</OUTCOME><OUTCOME>black</OUTCOME>
</VARIABLE>
<VARIABLE TYPE="nature"><NAME>rain</NAME><OUTCOME>no</OUTCOME><OUTCOME>yes</OUTCOME></VARIABLE>
<VARIABLE TYPE="nature"><NAME>wet</NAME><OUTCOME>no</OUTCOME><OUTCOME>yes</OUTCOME></VARIABLE>
<DEFINITION><FOR>sky</FOR><TABLE>0.5 0.3 0.2</TABLE></DEFINITION>
<DEFINITION><FOR>rain</FOR><GIVEN>sky</GIVEN><TABLE>0.99 0.01 <!-- clear --> 0.8 0.2 0.1 0.9</TABLE></DEFINITION>
<DEFINITION><FOR>wet</FOR><GIVEN>rain</GIVEN><GIVEN>sky</GIVEN>
<TABLE>0.9 0.1 0.8 0.2 0.7 0.3 0.3 0.7 0.2 0.8 0.1 0.9</TABLE></DEFINITION>
</NETWORK></BIF>
"""
TEXTS = {"net": NET, "dsc": DSC, "xmlbif": XMLBIF}


def read(tmp_path, text, name):
    (tmp_path / name).write_text(text)
    return sb.read(tmp_path / name)


@pytest.mark.parametrize("ending", TEXTS)
def test_a_garden_in_three_formats(tmp_path, ending):
    net = read(tmp_path, TEXTS[ending], f"garden.{ending}")
    assert net.states["sky"] == ("clear", "grey", "black")
    assert net.tables["rain"].tolist() == [[0.99, 0.01], [0.8, 0.2], [0.1, 0.9]]
    assert net.conditional("wet", {"rain": "yes", "sky": "grey"}).p.tolist() == [0.8]
    assert net.conditional("wet", {"rain": "no", "sky": "black"}).p.tolist() == [0.3]
    if ending == "net":
        assert net.notes["rain"].about == "does it; rain?"
    if ending == "dsc":
        assert net.notes["sky"].about == "the sky"


@pytest.mark.parametrize("ending", [*TEXTS, "bif"])
def test_files_are_known_by_their_content(tmp_path, ending):
    net = read(tmp_path, NET, "garden.net")
    if ending == "bif":
        sb.write(net, tmp_path / "garden.bif")
    text = TEXTS.get(ending) or (tmp_path / "garden.bif").read_text()
    assert read(tmp_path, text, "garden.xml" if ending == "xmlbif" else "garden.txt").n_edges == 3
    with gzip.open(tmp_path / f"garden.{ending}.gz", "wt") as file:
        file.write(text)
    assert sb.read(tmp_path / f"garden.{ending}.gz").n_edges == 3
    with pytest.raises(FileFormatError, match="cannot be read: its suffix is '.txt', none of"):
        read(tmp_path, "what is this?", "x.txt")


@pytest.mark.parametrize("ending", ["bif", "net", "xdsl", "uai", "toml", "dsc"])
def test_a_wrong_suffix_is_named_with_the_right_one(tmp_path, ending):
    other = "bif" if ending == "net" else "net"
    net = read(tmp_path, NET, "garden.net")
    if other == "bif":
        sb.write(net, tmp_path / "garden.bif")
    text = (tmp_path / f"garden.{other}").read_text()
    with pytest.raises(FileFormatError, match=rf"; it begins as \.{other} files do, so let its name end in that"):
        read(tmp_path, text, f"x.{ending}")
    with pytest.raises(FileFormatError) as error:
        read(tmp_path, "what is this?", f"x.{ending}")
    assert "it begins" not in str(error.value)


def test_other_xml_and_compressed_texts_are_told_apart(tmp_path):
    for text in ("", "<html>404 not found</html>"):
        with pytest.raises(FileFormatError, match=r"x\.xml cannot be read: its content is neither XMLBIF nor GeNIe's"):
            read(tmp_path, text, "x.xml")
    for ending in ("net", "toml", "xdsl"):
        (tmp_path / f"x.{ending}").write_bytes(gzip.compress(NET.encode()))
        with pytest.raises(FileFormatError, match=r"is compressed; let its name end in \.gz"):
            sb.read(tmp_path / f"x.{ending}")


def test_an_xml_file_may_be_genies(tmp_path):
    sb.write(sb.noisy_or({("flu", "fever"): 0.9}, leak=0.01, prior=0.05), tmp_path / "visit.xdsl")
    net = read(tmp_path, (tmp_path / "visit.xdsl").read_text(), "visit.xml")
    assert net.parents("fever") == ("flu",)


@pytest.mark.parametrize(
    ("ending", "old", "new", "message"),
    [
        ("net", "discrete node sky", "continuous node sky", "line 4, column 1: node 'sky' is of kind 'continuous'"),
        ("net", "discrete node sky", "decision sky", "node 'sky' is of kind 'decision': a belief network has no"),
        ("net", "0.5 0.3 0.2", "0.5 0.3 x", "line 6, column 35: 'x' in the table of 'sky' is no number"),
        ("net", "0.5 0.3 0.2", "0.5 0.5", "line 6, column 24: the table of 'sky' has 2 numbers; 3 are needed"),
        ("net", "data = (0.5", "model_nodes = (); data = (0.5", "'sky' is given by an expression"),
        ("net", "(rain | sky)", "(rain | sly)", "line 7, column 19: 'sly' is not a node of the file; did you mean"),
        ("net", "potential (sky) { data = (0.5 0.3 0.2); }\n", "", "node 'sky' has no potential"),
        ("net", '("clear" "grey" "black")', '("a" "a" "b")', "node 'sky' has 3 states; two of them have the same"),
        ("net", NET, "", "there is no node in the file; is it a NET"),
        ("dsc", "(2): 0.1", "(3): 0.1", "line 6, column 45: '3' is no number of a state of a parent of 'rain'"),
        ("dsc", "default: 0.8, 0.2; ", "", "line 6, column 13: the table of 'rain' has no row for \\(1\\)"),
        ("dsc", "type: discrete[3]", "type: continuous[3]", "node 'sky' is of kind 'continuous'"),
        ("dsc", "discrete[3]", "discrete[4]", "4 states are announced, and 3 are named"),
        ("dsc", "{ 0.5, 0.3, 0.2; }", "{ function: max; }", "'sky' is given by a function"),
        ("dsc", "0.5, 0.3, 0.2;", "0.5, 0.3 }", "a number, or ; after the last one, is expected here, not '}'"),
        ("xmlbif", 'TYPE="nature"', 'TYPE="decision"', "line 4, column 1: variable 'sky' is of kind 'decision'"),
        ("xmlbif", "0.5 0.3 0.2", "0.5 0.3", "line 8, column 1: the table of 'sky' has 2 numbers; 3 are needed"),
        ("xmlbif", "<GIVEN>sky</GIVEN><TABLE>", "<GIVEN>sly</GIVEN><TABLE>", "'sly', which is no variable; did you"),
        ("xmlbif", "<FOR>sky</FOR>", "<FOR>wet</FOR>", "the table of 'wet' has 3 numbers; 2 are needed"),
        ("xmlbif", "0.5 0.3 0.2", "0.5 0.3 0,2", "'0,2' in the table of 'sky' is no number"),
        ("xmlbif", "0.5 0.3 0.2", "0.5 0.9 0.2", "add up to 1.6, not 1"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named_with_its_place(tmp_path, ending, old, new, message):
    assert old in TEXTS[ending]
    with pytest.raises(FileFormatError, match=message):
        read(tmp_path, TEXTS[ending].replace(old, new, 1), f"garden.{ending}")


def test_a_noisy_adder_is_refused_by_its_name(tmp_path):
    text = '<smile><nodes>\n<noisyadder id="sum"><state id="a"/><state id="b"/></noisyadder></nodes></smile>'
    with pytest.raises(FileFormatError, match="line 2, column 1: node 'sum' is of kind 'noisyadder': a noisy-adder"):
        read(tmp_path, text, "x.xdsl")


@pytest.mark.parametrize("ending", ["xmlbif", "bif", "xdsl"])
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(network=state_networks(max_units=4, scales=("tame",)))
def test_what_is_written_is_read_back(tmp_path, ending, network):
    """Tables come back bit for bit; gates as tables, and in XDSL a noisy-MAX as such."""
    sb.write(network, tmp_path / f"x.{ending}")
    again = sb.read(tmp_path / f"x.{ending}")
    assert set(again.names) == set(network.names)
    for name in network.names:
        assert again.states[name] == (("0", "1") if network.is_binary and ending != "xdsl" else network.states[name])
        own, back = network.family(name), again.family(name)
        axes = [back.parents.index(parent) for parent in own.parents]
        rows = own.every_row()
        given = np.empty_like(rows)
        given[:, axes] = rows
        if own.table is not None:
            assert (back.distribution(given) == own.distribution(rows)).all()
        assert back.distribution(given) == pytest.approx(own.distribution(rows), abs=1e-12)
        if ending == "xdsl" and own.parents:
            assert (own.gate == 1) == (back.gate == 1)
    sb.write(again, tmp_path / f"y.{ending}")
    assert sb.read(tmp_path / f"y.{ending}") == again


@given(st.integers(2, 9), st.integers(0, 2**32 - 1))
def test_what_was_a_distribution_in_a_file_is_written_such_that_the_same_numbers_are_read(n_states, seed):
    """Of a noisy-MAX, whose numbers are others than those of the file: rounding there and back must meet them again."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(n_states, rng.choice([0.1, 1.0, 5.0])))
    weight = thresholds_of(p, "noisy-or", np.zeros(n_states - 1))
    written = _alone(weight)
    assert written == pytest.approx(p, abs=1e-14)
    assert (thresholds_of(written, "noisy-or", np.zeros(n_states - 1)) == weight).all()


def test_numbers_that_no_distribution_gives_are_written_as_near_as_can_be():
    weight = np.random.default_rng(0).uniform(0.0, 0.1, 60)
    assert thresholds_of(_alone(weight), "noisy-or", np.zeros(60)) == pytest.approx(weight, abs=1e-12)


def test_names_that_genie_does_not_take_become_identifiers_and_come_back(tmp_path):
    net = sb.noisy_or({("the flu", "a b"): 0.9, ("the flu", "a_b"): 0.2}, leak=0.01, prior=0.05)
    three = sb.from_edges({}, bias={"how much": [0.5, 1.0]}, states={"how much": ["none", "a <lot>\r", "a_lot"]})
    three = three.with_notes({"how much": sb.Note(about="what it is")})
    for one in (net, three):
        sb.write(one, tmp_path / "x.xdsl")
        again = sb.read(tmp_path / "x.xdsl")
        assert (again.names, again.states, again.notes) == (one.names, one.states, one.notes)
    text = (tmp_path / "x.xdsl").read_text()
    assert re.findall('<(?:cpt|state) id="([^"]*)"', text)[:4] == ["how_much", "none", "a__lot__", "a_lot"]
    assert "<name>what it is</name>" in text

    sb.write(net, tmp_path / "x.xdsl")
    text = (tmp_path / "x.xdsl").read_text()
    assert re.findall('<(?:cpt|noisymax) id="([^"]*)"', text) == ["the_flu", "a_b", "a_b_2"]
    assert read(tmp_path, re.sub("<sbnet>.*</sbnet>", "", text, flags=re.DOTALL), "y.xdsl").notes["a_b"].about == "a b"
    with pytest.raises(FileFormatError, match="its names make two nodes one"):
        read(tmp_path, text.replace("<name>the flu</name>", "<name>a_b</name>"), "y.xdsl")


def _published():
    folder = Path(os.environ.get("SBNET_TABLES", ".")) / "networks"
    return sorted(folder.glob("*.bif.gz")) + sorted(folder.glob("*.xdsl"))


@pytest.mark.parametrize("path", _published(), ids=lambda path: path.name)
@pytest.mark.parametrize("ending", ["bif", "xmlbif", "xdsl", "toml", "sbn"])
def test_published_networks_come_back_from_every_writer(tmp_path, path, ending):
    net = sb.read(path)
    sb.write(net, tmp_path / f"x.{ending}")
    again = sb.read(tmp_path / f"x.{ending}")
    if path.name != "noisymax.xdsl" or ending in ("xdsl", "toml", "sbn"):
        assert again == net
    else:
        evidence = {"Fever": "Present"}
        assert sb.exact_posterior(again, evidence)["Flu"] == pytest.approx(sb.exact_posterior(net, evidence)["Flu"])


@pytest.mark.parametrize("ending", ["bif", "xmlbif", "xdsl"])
def test_a_table_that_was_read_is_written_however_many_rows_it_has(tmp_path, ending):
    """Of a gate with so many parents a table is refused: it would be made for the file alone."""
    names = [f"p{k}" for k in range(17)]
    table = np.full((2,) * 17 + (2,), 0.5)
    net = sb.from_edges({}, names=[*names, "all"], tables={"all": table}, parents={"all": names})
    sb.write(net, tmp_path / f"x.{ending}")
    assert sb.read(tmp_path / f"x.{ending}").tables["all"].shape == table.shape
    with pytest.raises(FileFormatError, match="has 17 parents, and a table has a row for each"):
        sb.write(sb.from_edges({(name, "all"): 1.0 for name in names}), tmp_path / f"y.{ending}")


def test_places_of_wrong_numbers_behind_comments(tmp_path):
    text = re.sub("0.1, 0.9", "0.1, oops", NET)
    with pytest.raises(FileFormatError, match="line 8, column 19: 'oops' in the table of 'rain'"):
        read(tmp_path, text, "x.net")
