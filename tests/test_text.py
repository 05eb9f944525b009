"""Networks written by hand: what is written is what is read, bit for bit, and every typo has a place and a way out."""

from __future__ import annotations

import gzip
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from scipy.special import expit

import hostile
import sbnet as sb
from sbnet.errors import LONGEST_MESSAGE, FileFormatError
from sbnet.files import positions, text_writing
from sbnet.files.positions import place_of
from sbnet.files.text import read_toml
from sbnet.files.text_writing import as_toml
from sbnet.model.network import CERTAIN
from sbnet.model.probabilities import log_odds, never
from strategies import mixed_networks, networks

pytestmark = pytest.mark.small

CLINIC = """\
[units.flu]
about = "influenza"
group = "causes"
prior = 0.05

[units.cold]
prior = 0.2

[units.fever]
gate = "noisy-or"
leak = 0.01
causes = { flu = 0.9, cold = 0.2 }

[units.tired]                    # gate = "sigmoid" is the default
bias = -2.0
weights = { flu = 2.0, fever = 1.5 }
"""


@pytest.fixture
def said(tmp_path):
    """What is read from a text, or from bytes."""

    def read(text: str | bytes) -> sb.Network:
        path = tmp_path / "clinic.toml"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return sb.read(path)

    return read


def same(one: sb.Network, other: sb.Network) -> bool:
    """Equal, and to the last bit and word."""
    return (
        one == other
        and one.weight.tobytes() == other.weight.tobytes()
        and one.bias.tobytes() == other.bias.tobytes()
        and one.layers == other.layers
        and one.notes == other.notes
    )


# --- what a file says -----------------------------------------------------------------------------------------------


def test_a_file_is_the_network_that_the_same_probabilities_make(said):
    causes = {("flu", "fever"): 0.9, ("cold", "fever"): 0.2}
    built = sb.noisy_or(causes, leak={"fever": 0.01}, prior={"flu": 0.05, "cold": 0.2})
    read = said(CLINIC)
    assert read.names == ("flu", "cold", "fever", "tired")
    assert same(read.subnetwork(["flu", "cold", "fever"]).with_notes({"flu": sb.Note()}), built)
    assert list(read.edges())[2:] == [("flu", "tired", 2.0), ("fever", "tired", 1.5)]
    assert read.bias[3] == -2.0
    assert read.notes["flu"] == sb.Note(about="influenza", group="causes")


def test_units_may_stand_in_any_order(said):
    head, tail = CLINIC.split("[units.fever]")
    turned = said("[units.fever]" + tail + head)
    assert turned.names == ("flu", "cold", "fever", "tired")
    assert same(turned, said(CLINIC))


@pytest.mark.parametrize(
    "data",
    [
        b"\xef\xbb\xbf" + CLINIC.encode(),
        CLINIC.replace("\n", "\r\n").encode(),
        CLINIC.replace("causes = { flu = 0.9, cold = 0.2 }", "causes.flu = 0.9\ncauses.cold = 0.2").encode(),
        CLINIC.replace("causes = { flu = 0.9, cold = 0.2 }", "[units.fever.causes]\nflu=0.9\ncold=0.2").encode(),
        CLINIC.replace("0.2 }", "2e-1 }").replace("[units.flu]", '[ "units" . flu ]').encode(),
    ],
)
def test_the_same_in_other_spellings(said, data):
    assert same(said(data), said(CLINIC))


def test_a_compressed_text_is_unpacked(tmp_path, said):
    (tmp_path / "clinic.toml.gz").write_bytes(gzip.compress(CLINIC.encode()))
    assert same(sb.read(tmp_path / "clinic.toml.gz"), said(CLINIC))
    (tmp_path / "clinic.toml.gz").write_bytes(gzip.compress(CLINIC.encode())[:-9])
    with pytest.raises(FileFormatError, match="cannot be unpacked"):
        sb.read(tmp_path / "clinic.toml.gz")


# --- there and back -------------------------------------------------------------------------------------------------

WORDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
NAMES = WORDS.filter(bool)
NOTES = st.builds(
    sb.Note,
    about=WORDS,
    group=st.sampled_from(["", "causes", "a\nb"]),
    source=WORDS,
    note=WORDS,
    states=st.sampled_from([(), ("no", "yes"), ('"', "\x7f")]),
)


@given(st.one_of(networks(), mixed_networks(), st.integers(0, 10**6).map(hostile.mixed)), st.data())
def test_what_is_written_is_read_bit_for_bit(tmp_path_factory, network, data):
    names = data.draw(st.lists(NAMES, min_size=network.n_units, max_size=network.n_units, unique=True))
    layers = data.draw(st.sampled_from([None, (network.n_units,)]))
    network = replace(network, names=tuple(names), layers=layers)
    network = network.with_notes({name: data.draw(NOTES) for name in names[:2]})
    path = tmp_path_factory.getbasetemp() / "there.toml"
    sb.write(network, path)
    assert same(sb.read(path), network)


@given(st.floats(0.0, 1.0), st.floats(0.0, 1.0))
def test_probabilities_that_were_written_are_written_again(tmp_path_factory, p, leak):
    path = tmp_path_factory.getbasetemp() / "again.toml"
    sb.write(sb.noisy_or({("a", "b"): p}, leak=leak, prior=0.3), path)
    again = sb.read(path)
    assert same(again, sb.noisy_or({("a", "b"): p}, leak=leak, prior=0.3))
    assert "prior = 0.3\n" in path.read_text()
    assert "theta" not in path.read_text()


def test_a_file_is_pleasant_to_read(said):
    assert as_toml(said(CLINIC)) == CLINIC.replace('                    # gate = "sigmoid" is the default', "")


def test_many_causes_get_a_line_each_and_odd_numbers_stay_what_they_are(said):
    names = [f"cause {k}" for k in range(12)]
    edges = {(name, "effect"): 0.1 * k for k, name in enumerate(names)} | {("cause 0", "effect"): 1000.5}
    bias = dict.fromkeys(names, -1.0) | {"effect": 1e-17}
    network = sb.from_edges(edges, bias=bias, gate={"effect": "noisy-or"})
    text = as_toml(network)
    assert '\n[units.effect.causes]\n"cause 1" = 0.0951' in text
    assert 'theta = { "cause 0" = 1000.5, "cause 7" = 0.7000000000000001 }' in text  # no probability makes either
    assert "bias = -1.0" in text  # shorter than the probability, 0.2689…
    assert same(said(text), network)


def test_a_name_that_utf8_cannot_hold_is_refused(tmp_path):
    network = sb.from_edges({}, bias={"a\ud800": 1.0})
    with pytest.raises(FileFormatError, match="cannot be written in UTF-8"):
        sb.write(network, tmp_path / "x.toml")
    assert not (tmp_path / "x.toml").exists()


# --- typos, each with its place and the way out ---------------------------------------------------------------------

TYPOS = [
    ("flu = 0.9", "fluu = 0.9", "line 12, column 12: 'fluu' is not a variable; did you mean 'flu'?"),
    ("fever = 1.5", "feverr = 1.5", "line 16, column 24: 'feverr' is not a variable; did you mean 'fever'?"),
    ("flu = 0.9", "plague = 0.9", "'plague' is not a variable; add a table [units.plague] for it"),
    ("prior = 0.05", "priro = 0.05", "line 4, column 1: 'priro' is not a key of variable 'flu'; did you mean 'prior'?"),
    ("[units.cold]", "[unit.cold]", "line 6, column 2: 'unit' is not a key of the file"),
    (
        "flu = 0.9",
        "flu = 90",
        "line 12, column 12: the probability 'flu' -> 'fever' is 90; a probability lies between 0 and 1",
    ),
    ("flu = 0.9", "flu = 90", "write 90 % as 0.9"),
    ("cold = 0.2", "the cold = 0.2", 'names with spaces stand in quotes, { "chest pain" = 0.9 }'),
    ("cold = 0.2", "cold = nan", "line 12, column 23: the probability 'cold' -> 'fever' is nan; a probability lies"),
    ("fever = 1.5", "fever = inf", "line 16, column 24: the weight 'fever' -> 'tired' is inf; it must be finite"),
    ("prior = 0.05", "prior = -0.05", "line 4, column 1: the prior of 'flu' is -0.05; a probability lies"),
    ("prior = 0.05", "prior = nan", "the prior of 'flu' is nan; a probability lies"),
    ("prior = 0.05", "prior = true", "the prior of 'flu' is True; it is a probability"),
    ("prior = 0.05", 'prior = "0.05"', "the prior of 'flu' is '0.05'; it is a probability"),
    ("prior = 0.05", "", "line 1, column 8: 'flu' has no prior; add prior = 0.05"),
    ("prior = 0.05", "prior = 0.05\nbias = 1", "line 5, column 1: 'flu' has prior and bias, which say the same"),
    ("bias = -2.0", "prior = 0.1", "'tired' has a prior and weights; a variable with parents has a bias"),
    ("bias = -2.0", "bias = inf", "line 15, column 1: the bias of 'tired' is inf; it must be finite"),
    ("bias = -2.0", "bias = [1]", "the bias of 'tired' is [1]; it is a number"),
    (
        'gate = "noisy-or"',
        "",
        "line 11, column 1: 'leak' is for noisy-OR variables, and 'fever' is a sigmoid variable; add gate",
    ),
    ('gate = "noisy-or"', 'gate = "or"', "line 10, column 1: the gate of 'fever' is 'or'; it is \"sigmoid\" or"),
    ("leak = 0.01", "prior = 0.01", "line 11, column 1: 'prior' is for sigmoid variables, and 'fever' is a noisy-OR"),
    ("leak = 0.01", "weights = {}", "'weights' is for sigmoid variables"),
    (
        "leak = 0.01",
        "leak_theta = -1.0",
        "the leak_theta of 'fever' is -1.0; -ln(1 - p) of a probability is not negative",
    ),
    ("leak = 0.01", "theta = { flu = 1 }", "line 11, column 11: 'flu' stands in causes and in theta of 'fever'"),
    ("prior = 0.05", "weights = { tired = 1 }", "line 4, column 13: the edges contain a cycle: flu -> fever"),
    ("cold = 0.2 }", "fever = 0.2 }", "line 12, column 23: 'fever' is its own parent"),
    ("causes = { flu = 0.9, cold = 0.2 }", "causes = 3", "causes is 3; write causes = { flu = 0.9"),
    ("flu = 0.9", "flu.b = 0.9", "'flu' is a table; a name with a dot stands in quotes: \"flu.b\" = 0.9"),
    ("[units.cold]", "[units.flu.cold]", "'cold' is not a key of variable 'flu'; a name with a dot stands in quotes"),
    ("[units.cold]", "[units.flu]", "line 6, column 11: this is not TOML: Cannot declare"),
    ("[units.cold]", "[units.cold", "line 6, column 12: this is not TOML"),
    ("[units.cold]", '[units.""]', "a variable has an empty name"),
    ("prior = 0.05", "prior = 0,05", "line 4, column 10: this is not TOML"),
    ('about = "influenza"', "about = 3", "line 2, column 1: about is 3; give a text"),
    ('about = "influenza"', 'states = ["a"]', "line 2, column 1: 'flu' has 1 state; one state is certain"),
    ("[units.flu]", "layers = [1]\n[units.flu]", "line 1, column 1: layers is [1]; it lists the sizes"),
    ("prior = 0.05", "prior = " + "9" * 5000, "holds a value that cannot be read"),
    ("prior = 0.05", "prior = 0x" + "f" * 9000, "holds a value that cannot be read"),
    ("prior = 0.05", "x = " + "[" * 9000, "is nested too deeply"),
    (
        "prior = 0.05",
        "prior" + ".a" * 2000 + " = 1",
        "line 4, column 21: a key has more than 8 parts; a name with dots",
    ),
    ("[units.flu]", "[units" + ".a" * 2000 + "]", "line 1, column 22: a key has more than 8 parts; a name with dots"),
    ("prior = 0.05", "prior = " + "{a.b.c.d.e.f = " * 200 + "1" + "}" * 200, "is nested too deeply"),
    ("prior = 0.05", "gate = [1]", "line 4, column 1: the gate of 'flu' is [1]; it is \"sigmoid\" or"),
    ("prior = 0.05", "gate = { a = 1 }", "line 4, column 1: the gate of 'flu' is {'a': 1}; it is \"sigmoid\" or"),
    ("prior = 0.05", "prior = .05", "line 4, column 9: this is not TOML: Invalid value; write .05 with a zero before"),
    ("prior = 0.05", "prior = 5.", "line 4, column 10: this is not TOML: Expected newline or end of document after a"),
    ("prior = 0.05", "prior = 5.", "; write 5. with a digit behind the point, 5.0"),
    (
        "prior = 0.05",
        "prior: 0.05",
        "line 4, column 6: this is not TOML: Expected '=' after a key in a key/value pair; ",
    ),
    ("prior = 0.05", "prior: 0.05", "; a value stands behind =, not behind a colon: prior = 0.05"),
    ("flu = 0.9,", "flu: 0.9,", "line 12, column 15: this is not TOML"),
    ("flu = 0.9,", "flu: 0.9,", "; a value stands behind =, not behind a colon: { flu = 0.9 }"),
    ('"influenza"', "“influenza”", "line 2, column 9: this is not TOML: Invalid value; texts stand in straight quotes"),
    ('"influenza"', "‘influenza’", '; texts stand in straight quotes, "influenza"'),
    (
        "0.9, cold",
        "0.9 cold",
        "line 12, column 22: this is not TOML: Unclosed inline table; a comma stands between two",
    ),
    ("cold = 0.2 }", "cold = 0.2, }", "; no comma stands before the closing brace"),
    ('about = "influenza"', 'states = ["a" "b"]', '; a comma stands between two of them: ["no", "yes"]'),
    (
        "prior = 0.05",
        "prior = 0.05 bias = 1",
        "line 4, column 14: this is not TOML: Expected newline or end of document",
    ),
    ("prior = 0.05", "prior = 0.05 bias = 1", "; each key stands in a line of its own"),
    ('gate = "noisy-or"', "gate = noisy-or", '; texts stand in quotes, gate = "noisy-or"'),
    ("bias = -2.0", "bias = −2.0", "; write a minus as -, the sign of the keyboard"),
    ("prior = 0.05", "prior = 5 %", "; write 85 % as 0.85"),
    ("prior = 0.05", "prior = 0,05", "; write 0,85 with a point, 0.85"),
    ("[units.cold]", "[units.kälte]", "; names with other letters stand in quotes"),
    ("[units.cold]", "[units.a cold]", '; names with spaces or dots stand in quotes, [units."chest pain"]'),
    ("flu = 0.9, cold", "flu = 0.9,\n  cold", "; what stands in braces stays on one line, or becomes a table"),
]


@pytest.mark.parametrize(("old", "new", "message"), TYPOS)
def test_typos_are_refused_with_their_place_and_the_way_out(said, old, new, message):
    text = CLINIC.replace(old, new, 1)
    with pytest.raises(FileFormatError) as error:
        said(text)
    assert message in str(error.value)
    assert len(str(error.value)) <= LONGEST_MESSAGE


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "there are no variables"),
        (b"units = 3", "there are no variables"),
        (b"[units]\nflu = 0.05", r"line 2, column 1: variable 'flu' is 0.05; write \[units.flu\] and below it prior"),
        (
            "[units.a]\nprior = 0.1 # é".encode("latin-1"),
            "line 2, column 15: the byte 0xe9 is not UTF-8; save the file as",
        ),
        (CLINIC.encode("utf-16"), "is written in UTF-16; save it as UTF-8"),
        (b"\x00\x01\x02", "this is not TOML"),
    ],
)
def test_what_is_no_such_text_is_refused(said, data, message):
    with pytest.raises(FileFormatError, match=message):
        said(data)


def test_a_text_without_end_is_refused(said, monkeypatch):
    monkeypatch.setattr("sbnet.files.plain.MOST_BYTES", 100)
    with pytest.raises(FileFormatError, match=r"keep such a network in a \.sbn file"):
        said(CLINIC)


@pytest.mark.parametrize("name", ["x.doc", "x", "toml", "x.toml.zip"])
def test_a_text_of_another_suffix_is_refused(tmp_path, name):
    (tmp_path / name).write_text(CLINIC)
    with pytest.raises(FileFormatError, match=r"cannot be read: its (suffix is|name has no).*, none of \.toml, \.sbn"):
        sb.read(tmp_path / name)


# --- many edges -----------------------------------------------------------------------------------------------------


def shortest(value, turn, back):
    """Slow and obvious: one number of digits after the other, then the neighbours."""
    if abs(value) == CERTAIN:
        return float(value > 0.0)
    p = float(back(np.array([value]))[0])
    tried = [float(f"{p:.{digits}g}") for digits in range(1, 18)]
    for q in (*tried, np.nextafter(p, 0.0), np.nextafter(p, 1.0)):
        if 0.0 <= q < 1.0 and turn(q) == value:
            return q
    return np.nan


numbers = st.one_of(
    st.sampled_from([0.0, 1000.0, CERTAIN, 5e-324, 1e-300, 36.8, 700.0]),
    st.floats(0.0, 40.0),
    st.integers(0, 10**6).map(lambda k: never(k / (10**6 + 1.0))),
    st.integers(0, 999).map(lambda k: never(k / 1000)),
    st.integers(1, 999).map(lambda k: log_odds(k / 1000)),
    st.integers(1, 99).map(lambda k: log_odds(k * 1e-300)),
)


@given(st.lists(numbers, min_size=1, max_size=6))
def test_probabilities_have_the_fewest_digits_that_give_the_same_number(values):
    for turn, back, turn_all, chosen in (
        (never, text_writing._cause, text_writing._theta, np.abs(values)),
        (log_odds, expit, text_writing._log_odds, np.array(values)),
    ):
        found = text_writing.as_probabilities(chosen, turn, back, turn_all)
        assert_array_equal(found, [shortest(value, turn, back) for value in chosen.tolist()])


def test_every_edge_is_turned_into_a_probability_once(monkeypatch):
    network, calls = sb.layered((20, 30), rng=0, gate="noisy-or"), []
    monkeypatch.setattr(text_writing, "never", lambda p: (calls.append(p), never(p))[1])
    as_toml(network)
    assert len(calls) <= network.n_edges + network.n_units  # readers decide, by each number once


def test_long_keys_are_looked_for_only_where_there_are_dots_enough(monkeypatch):
    class Counting:
        def __init__(self):
            self.searched = 0

        def search(self, text):
            self.searched += len(text)

    monkeypatch.setattr(positions, "_LONG_KEY", counting := Counting())
    assert positions.deep_key(as_toml(sb.layered((20, 30), rng=0))) is None
    assert counting.searched == 0


# --- places ---------------------------------------------------------------------------------------------------------

TRAPS = '''\
# [units.flu]
[a]
flu = "[units.flu] = { flu = 1 } # no"
text = """
[units.flu]
flu = 1 \\""" """
list = [ "flu", [1, 2], { flu = 3 },
  4 ]
lines = \'\'\'
[units.flu]\'\'\'
[units."fl\\u0075" . 'deep.er']
x.y = { one = 1, "t\\"wo" = [ 1 ], three.four = 4 }
'''


@pytest.mark.parametrize(
    ("path", "place"),
    [
        (("a", "flu"), (3, 1)),
        (("a", "lines"), (9, 1)),
        (("units", "flu"), (11, 8)),
        (("units", "flu", "deep.er"), (11, 21)),
        (("units", "flu", "deep.er", "x", "y", "one"), (12, 9)),
        (("units", "flu", "deep.er", "x", "y", 't"wo'), (12, 18)),
        (("units", "flu", "deep.er", "x", "y", "three", "four"), (12, 41)),
        (("units", "flu", "gone"), (11, 8)),
    ],
)
def test_places_are_found_behind_texts_comments_and_lists(path, place):
    assert place_of(TRAPS, path) == place


@pytest.mark.parametrize(
    "text",
    [
        'about = "a.b.c.d.e.f.g.h.i.j.k.l"\n',
        "# a.b.c.d.e.f.g.h.i.j.k.l\n",
        'about = """\na.b.c.d.e.f.g.h.i.j.k.l = 1\n"""\n',
        "about = 'a. b .c.d.e.f.g.h.i.j.k'\n",
    ],
)
def test_dots_in_texts_and_comments_are_no_keys(said, text):
    assert said(f"[units.flu]\nprior = 0.05\n{text}").names == ("flu",)


def test_reading_a_thousand_units_takes_no_minute(tmp_path):
    rng = np.random.default_rng(0)
    causes = {(f"c{j}", f"f{i}"): round(float(rng.random()), 3) for i in range(800) for j in rng.choice(200, 8, False)}
    network = sb.noisy_or(causes, leak=0.01, prior=0.02)
    sb.write(network, tmp_path / "large.toml")
    assert same(read_toml(str(tmp_path / "large.toml")), network)


# --- the worked example -----------------------------------------------------------------------------------------------


def test_the_worked_example_is_made_up_and_says_so():
    from sbnet.datasets import clinic_path, example_clinic

    clinic, text = example_clinic(), clinic_path().read_text(encoding="utf-8")
    assert "Every number in this file is invented" in text
    groups = [clinic.notes[name].group for name in clinic.names]
    assert (groups.count("causes"), groups.count("findings")) == (15, 30)
    assert all(clinic.notes[name].about for name in clinic.names)
    assert same(read_toml(str(clinic_path())), clinic)
    body = text[text.index("[units") :]
    assert as_toml(clinic) == body  # as sbnet itself would write it
    post = sb.exact_posterior(clinic, {"sneezing": 1, "itchy-eyes": 1, "fever": 0})
    assert max(clinic.names[:15], key=lambda name: post[name]) == "hay-fever"


# --- words for states -------------------------------------------------------------------------------------------------


def test_evidence_may_use_the_words_of_the_notes(said):
    plain = said(CLINIC)
    network = said(CLINIC.replace('group = "causes"', 'group = "causes"\nstates = ["well", "ill"]'))
    for word, state in (("ill", 1), ("well", 0)):
        assert sb.log_likelihood(network, {"flu": word}) == sb.log_likelihood(plain, {"flu": state})
    assert sb.log_likelihood(network, {"flu": "yes", "cold": 0}) == sb.log_likelihood(plain, {"flu": 1, "cold": 0})
    with pytest.raises(sb.errors.TableError, match="variable 'flu' holds 'sick'"):
        sb.log_likelihood(network, {"flu": "sick"})


def test_a_variable_of_several_states_is_evidence_by_its_name(tmp_path):
    text = "BAYES 2 3 2 2 1 0 2 0 1 3 0.2 0.3 0.5 6 0.9 0.1 0.5 0.5 0.2 0.8"
    (tmp_path / "sky.uai").write_text(text)
    network = sb.read(tmp_path / "sky.uai")
    assert sb.exact_posterior(network, {"0": "2"})["1"] == pytest.approx(0.8)
    assert np.exp(sb.log_likelihood(network, {"0": "1", "1": 1})) == pytest.approx(0.15)
    with pytest.raises(sb.errors.EvidenceError, match="variable '0' holds '7'; its states are 0, 1 and 2"):
        sb.log_likelihood(network, {"0": "7"})


SEIZURES = """
[units.tumour]
prior = 0.01
[units.fatigue]
prior = 0.1
[units.seizure]
gate = "noisy-or"
leak = 0.02
causes = { fatigue = 0.2 }
[units."focal seizure"]
is_a = "seizure"
gate = "noisy-or"
leak = 0.01
causes = { tumour = 0.6 }
"""


def test_a_hierarchy_in_text_is_that_of_noisy_or(tmp_path):
    path = tmp_path / "seizures.toml"
    path.write_text(SEIZURES)
    found = sb.read(path)
    causes = {("fatigue", "seizure"): 0.2, ("tumour", "focal seizure"): 0.6}
    leak, prior = {"seizure": 0.02, "focal seizure": 0.01}, {"tumour": 0.01, "fatigue": 0.1}
    expected = sb.noisy_or(causes, leak=leak, prior=prior, is_a={"focal seizure": ["seizure"]})
    for name in leak:
        for on in ([], ["tumour"], ["fatigue"], ["tumour", "fatigue"]):
            assert found.conditional(name, [on]).p == pytest.approx(expected.conditional(name, [on]).p, abs=1e-15)
    sb.write(found, tmp_path / "again.toml")  # with all links, and no hierarchy any more
    assert sb.read(tmp_path / "again.toml") == found


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            'is_a = "seizure"',
            'is_a = "seizures"',
            "line 11, column 1: 'seizures' is not a variable; did you mean",
        ),
        ('is_a = "seizure"', "is_a = 3", "line 11, column 1: is_a"),
        ('is_a = "seizure"', 'is_a = "tumour"', "is_a is for noisy-OR variables of two states, and 'tumour' is none"),
        (
            "prior = 0.1",
            'prior = 0.1\nis_a = "seizure"',
            "'is_a' is for noisy-OR variables, and 'fatigue' is a",
        ),
        ("leak = 0.02", 'leak = 0.02\nis_a = "focal seizure"', "is_a goes round in a circle"),
    ],
)
def test_what_a_hierarchy_in_text_cannot_be(tmp_path, old, new, message):
    (tmp_path / "x.toml").write_text(SEIZURES.replace(old, new, 1))
    with pytest.raises(FileFormatError, match=message):
        sb.read(tmp_path / "x.toml")
