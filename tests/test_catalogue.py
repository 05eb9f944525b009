"""Catalogues: readers of ontologies, annotations and patients; hierarchies of findings; the network that they make."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sbnet as sb
from sbnet import catalogue
from sbnet.errors import CodingWarning, CycleError, FileFormatError, NetworkError
from sbnet.model import hierarchy

OBO = """format-version: 1.2

[Term]
id: HP:1
name: Seizure
alt_id: HP:9

[Term]
id: HP:2
name: Focal seizure
is_a: HP:1 ! Seizure

[Term]
id: HP:3
name: Fever {xref="x"}

[Term]
id: HP:4
name: obsolete Fit
is_obsolete: true
replaced_by: HP:1

[Typedef]
id: part_of
name: part of
"""
HPOA = """#description: "HPO annotations"
#version: 2024-01-01
database_id\tdisease_name\tqualifier\thpo_id\treference\tevidence\tonset\tfrequency\tsex\tmodifier\taspect\tbiocuration
OMIM:1\tEpilepsy A\t\tHP:2\tPMID:1\tPCS\t\t3/4\t\t\tP\tx
OMIM:1\tEpilepsy A\tNOT\tHP:3\tPMID:1\tPCS\t\t\t\t\tP\tx
OMIM:1\tEpilepsy A\t\tHP:0000006\tPMID:1\tPCS\t\t\t\t\tI\tx
OMIM:2\tFebrile B\t\tHP:3\tPMID:2\tPCS\t\tHP:0040281\t\t\tP\tx
OMIM:2\tFebrile B\t\tHP:9\tPMID:2\tPCS\t\t25%\t\t\tP\tx
OMIM:3\tFebrile C\t\tHP:3\tPMID:2\tPCS\t\t\t\t\tP\tx
OMIM:3\tFebrile C\t\tHP:2\tPMID:2\tPCS\t\tHP:0040285\t\t\tP\tx
"""


@pytest.fixture
def files(tmp_path):
    (tmp_path / "hp.obo").write_text(OBO)
    with gzip.open(tmp_path / "phenotype.hpoa.gz", "wt") as file:
        file.write(HPOA)
    return tmp_path


def test_an_ontology_is_read_from_obo_and_from_csv(files):
    found = catalogue.read_ontology(files / "hp.obo")
    assert found.names == {"HP:1": "Seizure", "HP:2": "Focal seizure", "HP:3": "Fever"}
    assert found.parents == {"HP:1": (), "HP:2": ("HP:1",), "HP:3": ()}
    assert found.term("HP:9") == found.term("HP:4") == "HP:1"
    (files / "terms.csv").write_text('term,name,parents\nHP:1,"Seizure, any",\nHP:2,Focal,HP:1|HP:3\nHP:3,Fever,\n')
    found = catalogue.read_ontology(files / "terms.csv")
    assert found.names["HP:1"] == "Seizure, any"
    assert found.parents["HP:2"] == ("HP:1", "HP:3")


def test_annotations_are_read_from_hpoa_and_from_csv(files):
    found = catalogue.read_annotations(files / "phenotype.hpoa.gz")
    assert [(one.disease, one.term, one.frequency) for one in found] == [
        ("OMIM:1", "HP:2", 0.75),
        ("OMIM:2", "HP:3", 0.895),
        ("OMIM:2", "HP:9", 0.25),
        ("OMIM:3", "HP:3", None),
    ]
    assert found[0].name == "Epilepsy A"
    (files / "a.csv").write_text("disease,term,frequency\nA,HP:1,\nA,HP:2,0.5\nB,HP:2,0\n")
    assert catalogue.read_annotations(files / "a.csv") == [("A", "HP:1", None, ""), ("A", "HP:2", 0.5, "")]


def test_a_patient_is_read_from_a_phenopacket(files):
    features = [{"type": {"id": "HP:9"}}, {"type": {"id": "HP:3", "label": "Fever"}, "excluded": True}]
    (files / "p.json").write_text(json.dumps({"phenopacket": {"phenotypicFeatures": features}}))
    assert catalogue.read_patient(files / "p.json") == {"HP:9": 1, "HP:3": 0}
    ontology = catalogue.read_ontology(files / "hp.obo")
    assert catalogue.read_patient(files / "p.json", ontology) == {"HP:1": 1, "HP:3": 0}


def test_terms_that_the_ontology_does_not_have_are_named_and_left_out(files):
    ontology = catalogue.read_ontology(files / "hp.obo")
    lines = [*catalogue.read_annotations(files / "phenotype.hpoa.gz"), ("OMIM:3", "HP:77", 0.5)]
    with pytest.warns(CodingWarning, match="left out: 'OMIM:3' has 'HP:77', which is not in the ontology; a newer"):
        net = catalogue.network(lines, ontology)
    assert net == catalogue.network(lines[:-1], ontology)
    known = [{"type": {"id": "HP:2"}}, {"type": {"id": "HP:3"}, "excluded": True}]
    strange = [{"type": {"id": "HP:88", "label": "Staring"}}, {"type": {"id": "MONDO:1"}}]
    (files / "p.json").write_text(json.dumps({"phenotypicFeatures": known + strange}))
    with pytest.warns(CodingWarning, match="p.json has 'HP:88 Staring' and 'MONDO:1', which are not in the ontology"):
        patient = catalogue.read_patient(files / "p.json", ontology)
    assert patient == {"HP:2": 1, "HP:3": 0}
    (files / "p.json").write_text(json.dumps({"phenotypicFeatures": strange}))
    with pytest.raises(FileFormatError, match="and nothing else; read the ontology that they are from"):
        catalogue.read_patient(files / "p.json", ontology)


def test_a_finding_cannot_be_there_and_not(files):
    features = [{"type": {"id": "HP:9"}}, {"type": {"id": "HP:1"}, "excluded": True}]
    (files / "p.json").write_text(json.dumps({"phenotypicFeatures": features}))
    with pytest.raises(FileFormatError, match="has 'HP:1' both as present and as excluded; take one of them out"):
        catalogue.read_patient(files / "p.json", catalogue.read_ontology(files / "hp.obo"))


@pytest.mark.parametrize(
    ("read", "text", "message"),
    [
        (catalogue.read_ontology, "id: HP:1\n", "has no \\[Term\\]; give an OBO file"),
        (catalogue.read_ontology, "term,parents\n", "has no column 'name'"),
        (catalogue.read_annotations, "disease,hpo\n", "has no column 'term'"),
        (
            catalogue.read_annotations,
            "disease,term,frequency\nA,B,often\n",
            "line 2: frequency 'often' is none; give a",
        ),
        (catalogue.read_annotations, "disease,term,frequency\nA,B,3/0\n", "'3/0'"),
        (catalogue.read_annotations, "disease,term,frequency\nA,B,120%\n", "'120%'"),
        (catalogue.read_annotations, "a\thpo_id\n", "has no column 'disease'"),
        (catalogue.read_patient, "[", "is not JSON"),
        (catalogue.read_patient, "[]", "has no list phenotypicFeatures"),
        (catalogue.read_patient, '{"phenotypicFeatures": [{"type": 3}]}', "has no type with an id"),
    ],
)
def test_what_is_no_such_file_is_refused(tmp_path, read, text, message):
    (tmp_path / "x").write_text(text)
    with pytest.raises(FileFormatError, match=message):
        read(tmp_path / "x")


def test_the_whole_way_from_files_to_a_diagnosis(files):
    ontology = catalogue.read_ontology(files / "hp.obo")
    net = catalogue.network(catalogue.read_annotations(files / "phenotype.hpoa.gz"), ontology)
    assert net.names == ("OMIM:1", "OMIM:2", "OMIM:3", "HP:1", "HP:2", "HP:3")
    assert net.notes["OMIM:1"].about == "Epilepsy A"
    assert net.notes["HP:2"].about == "Focal seizure"
    found = sb.single_cause(net, {"HP:2": 1, "HP:3": 0})
    assert found.ranked[0] == "OMIM:1"
    assert "Epilepsy A" in repr(found)
    assert sb.single_cause(net, {"HP:1": 1})["OMIM:1"] > sb.single_cause(net, {})["OMIM:1"]  # a vague word speaks too
    more = sb.single_cause(net, {"HP:2": 1})  # and what is more specific than what a catalogue has
    assert more["OMIM:2"] > more["OMIM:3"]


def _brute_force(p, is_a, leak, vague, specific):
    """Of each link, each relative: one minus the product of what fails."""

    def above(x):
        return {y for parent in is_a[x] for y in {parent, *above(parent)}}

    stays = 1.0 - p
    for d, a in np.argwhere(p > 0.0):
        for x in above(a):
            stays[d, x] *= 1.0 - vague * p[d, a]
    for d in range(len(p)):
        for x in range(p.shape[1]):
            share = sum(specific * p[d, a] / leak[a] for a in above(x) if leak[a] > 0.0)
            stays[d, x] *= 1.0 - min(share * leak[x], specific)
    return 1.0 - stays


@given(st.integers(0, 2**32 - 1))
def test_links_to_relatives_are_what_the_formulas_say(seed):
    rng = np.random.default_rng(seed)
    n, m = 3, 6
    is_a = {x: [y for y in range(x) if rng.random() < 0.4] for x in range(m)}
    p = np.where(rng.random((n, m)) < 0.4, rng.uniform(0.01, 0.98, (n, m)), 0.0)
    leak = np.where(rng.random(m) < 0.2, 0.0, rng.uniform(0.001, 0.5, m))
    names = [f"f{k}" for k in range(m)]
    effects = {(f"d{i}", names[j]): p[i, j] for i in range(n) for j in range(m)}
    found = hierarchy.links(
        effects, dict(zip(names, leak, strict=True)), {names[x]: [names[y] for y in ys] for x, ys in is_a.items()}
    )
    expected = _brute_force(p, is_a, leak, hierarchy.VAGUE, hierarchy.SPECIFIC)
    for i in range(n):
        assert [found[f"d{i}", name] for name in names] == pytest.approx(expected[i], abs=1e-12)


def test_findings_in_a_hierarchy_speak_for_each_other():
    effects = {("tumour", "focal seizure"): 0.6, ("flu", "fever"): 0.9, ("stress", "seizure"): 0.2}
    leak = {"seizure": 0.02, "focal seizure": 0.01, "fever": 0.05}
    net = sb.noisy_or(effects, leak=leak, prior=0.1, is_a={"focal seizure": "seizure"}, group={"flu": "causes"})
    plain = sb.noisy_or(effects, leak=leak, prior=0.1)
    assert net.notes["flu"].group == "causes"
    by_alone = {("tumour", "seizure"): 0.18, ("stress", "focal seizure"): 0.3 * 0.2 * 0.01 / 0.02}
    for (cause, effect), p in by_alone.items():
        alone = net.conditional(effect, {cause: 1}).p[0]
        assert alone == pytest.approx(1.0 - (1.0 - leak[effect]) * (1.0 - p))
    assert "tumour" not in plain.parents("seizure")


def test_what_a_hierarchy_cannot_be():
    effects = {("flu", "fever"): 0.9, ("flu", "chills"): 0.5}
    with pytest.raises(CycleError, match="is_a goes round in a circle: fever -> chills -> fever"):
        sb.noisy_or(effects, prior=0.1, is_a={"fever": "chills", "chills": ["fever"]})
    with pytest.raises(NetworkError, match="'fever', which has 3 states"):
        sb.noisy_or(effects, prior=0.1, is_a={"fever": "chills"}, states={"fever": ["none", "mild", "high"]})
    with pytest.raises(NetworkError, match="give a mapping from findings to what they are kinds of"):
        sb.noisy_or(effects, prior=0.1, is_a={"fever": 3})
    with pytest.raises(NetworkError, match="a note is about 'flue'"):
        sb.noisy_or(effects, prior=0.1, about={"flue": "influenza"})
    deep = {f"t{k}": f"t{k + 1}" for k in range(3000)}
    assert hierarchy.ancestors([f"t{k}" for k in range(3001)], hierarchy.checked(deep)).nnz == 3000 * 3001 // 2


def test_what_makes_no_catalogue():
    ontology = catalogue.Ontology({"HP:1": "Seizure"}, {"HP:1": ()})
    with pytest.raises(NetworkError, match="'A' has 'HP:2', which is not in the ontology"):
        catalogue.network([("A", "HP:2")], ontology)
    with pytest.raises(NetworkError, match="there are no annotations"):
        catalogue.network([])
    with pytest.raises(NetworkError, match="an annotation is \\('A',\\)"):
        catalogue.network([("A",)])
    with pytest.raises(NetworkError, match="'A' is a disease and a term"):
        catalogue.network([("A", "B"), ("B", "A")])
