"""Notes: what people write beside units stays with the network, and changes no answer."""

from __future__ import annotations

import copy
import pickle

import pytest

import sbnet as sb
from sbnet.errors import FileFormatError, NetworkError

pytestmark = pytest.mark.small

FLU = sb.Note(about="influenza", group="causes", source="a textbook", note="rare", states=("absent", "present"))


@pytest.fixture
def clinic():
    return sb.noisy_or({("flu", "fever"): 0.9}, prior=0.05).with_notes({"flu": FLU})


def test_every_unit_has_a_note_and_an_empty_one_is_false(clinic):
    assert clinic.notes["flu"] == FLU
    assert clinic.notes["fever"] == sb.Note()
    assert list(clinic.notes) == list(clinic.names)
    assert clinic.notes["flu"]
    assert not clinic.notes["fever"]


def test_notes_stay_with_what_is_made_of_a_network(clinic, tmp_path):
    sb.save(clinic, tmp_path / "clinic.sbn")
    made = (
        clinic.with_parameters(bias={"flu": -1.0}),
        clinic.subnetwork(["flu"]),
        sb.add_column_mixtures(clinic, strength=0.0),
        copy.deepcopy(clinic),
        pickle.loads(pickle.dumps(clinic)),
        sb.load(tmp_path / "clinic.sbn"),
        sb.convert.nearest(clinic, "fever", gate="sigmoid").network,
    )
    assert [network.notes["flu"] for network in made] == [FLU] * len(made)


def test_notes_are_no_part_of_equality(clinic):
    bare = sb.noisy_or({("flu", "fever"): 0.9}, prior=0.05)
    assert bare == clinic
    assert hash(bare) == hash(clinic)


def test_a_file_without_notes_is_the_file_that_it_was(clinic, tmp_path):
    sb.save(sb.layered((2, 3), rng=0), tmp_path / "old.sbn")
    assert b"notes" not in (tmp_path / "old.sbn").read_bytes()


@pytest.mark.parametrize(
    ("notes", "message"),
    [
        ({"flue": FLU}, "a note is about 'flue', which is not a variable; did you mean 'flu'?"),
        ({"flu": "influenza"}, r"the note of 'flu' is 'influenza'; write Note\(about=…\)"),
    ],
)
def test_notes_of_no_unit_and_other_things_are_refused(clinic, notes, message):
    with pytest.raises(NetworkError, match=message):
        clinic.with_notes(notes)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"about": 3}, "about is 3; give a text"),
        ({"states": "no"}, "states is 'no'; give what 0 and 1 are called"),
        ({"states": ("no",)}, "give what 0 and 1 are called"),
        ({"states": ("no", "no")}, "both states are called 'no'"),
    ],
)
def test_a_note_is_made_of_texts(parts, message):
    with pytest.raises(NetworkError, match=message):
        sb.Note(**parts)


def test_a_network_file_with_other_notes_is_refused(clinic, tmp_path):
    from sbnet.files.own import NETWORK
    from sbnet.files.tensors import read_tensors, write_tensors

    path = tmp_path / "clinic.sbn"
    sb.save(clinic, path)
    stored = read_tensors(path, NETWORK)
    texts = {key: stored.metadata[key] for key in ("made_by", "names", "layers")}
    for notes in ("[]", '{"flu": 1}', '{"flu": {"color": "red"}}', '{"flue": {"about": "x"}}', '{"flu": {"about": 1}}'):
        write_tensors(path, NETWORK, stored.arrays, texts | {"notes": notes})
        with pytest.raises(FileFormatError, match="does not describe a network"):
            sb.load(path)
