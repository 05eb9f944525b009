"""Readers: ontologies (OBO, or CSV), annotations of diseases (HPOA, or CSV), patients (phenopackets)."""

from __future__ import annotations

import csv
import io
import json
import math
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from sbnet import checks
from sbnet.errors import CodingWarning, FileFormatError, ParameterError, SBNetError, enumerated, in_line
from sbnet.files.atomic import PathLike, as_file
from sbnet.files.plain import read_text

_FREQUENCY = {
    "HP:0040280": 1.0,  # obligate
    "HP:0040281": 0.895,  # very frequent, 80 to 99 %
    "HP:0040282": 0.545,  # frequent, 30 to 79 %
    "HP:0040283": 0.17,  # occasional, 5 to 29 %
    "HP:0040284": 0.025,  # very rare, 1 to 4 %
    "HP:0040285": 0.0,  # excluded
}
"""The frequencies that HPO has words for, as the middle of what they stand for."""


@dataclass(frozen=True)
class Ontology:
    """Terms of a hierarchy.

    Attributes
    ----------
    names : mapping of str to str
        What each is called.
    parents : mapping of str to tuple of str
        What each is a kind of.
    other_ids : mapping of str to str
        Which term an older identifier stands for now.

    Examples
    --------
    >>> from sbnet.catalogue import Ontology
    >>> ontology = Ontology({"S1": "Seizure", "S2": "Focal seizure"}, {"S2": ("S1",)}, {"S9": "S2"})
    >>> len(ontology), ontology.term("S9")
    (2, 'S2')
    """

    names: Mapping[str, str]
    parents: Mapping[str, tuple[str, ...]]
    other_ids: Mapping[str, str] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.names)

    def term(self, identifier: str) -> str:
        """The identifier, a str, by which a term is known now."""
        known = checks.text("identifier", identifier)
        return self.other_ids.get(known, known)


class Annotation(NamedTuple):
    """A finding of a disease.

    Attributes
    ----------
    disease, term : str
        Their identifiers.
    frequency : float or None
        How often patients have it, if that is known.
    name : str
        What the disease is called.

    Examples
    --------
    >>> from sbnet.catalogue import Annotation
    >>> Annotation("flu", "fever", 0.9).frequency
    0.9
    """

    disease: str
    term: str
    frequency: float | None = None
    name: str = ""


def read_ontology(path: PathLike) -> Ontology:
    r"""Read an ontology: an OBO file, or a CSV table with the columns term, name and parents (``HP:1|HP:2``).

    Files that end in .gz are unpacked. Obsolete terms are left out, or renamed where they are replaced.

    Parameters
    ----------
    path : str or PathLike

    Returns
    -------
    Ontology

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from sbnet import catalogue
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "terms.csv")
    ...     _ = path.write_text("term,name,parents\nS1,Seizure,\nS2,Focal seizure,S1\n")
    ...     found = catalogue.read_ontology(path)
    >>> found.parents["S2"]
    ('S1',)
    """
    name = as_file(path)
    lines = read_text(name).splitlines()
    first = next((line for line in lines if line.strip()), "")
    if "term" in first.split(","):
        rows = list(_rows(name, lines, ("term", "name", "parents")))
        listed = {row["term"]: tuple(filter(None, row["parents"].split("|"))) for _, row in rows}
        return Ontology({row["term"]: row["name"] for _, row in rows}, listed)
    if not any(line.strip() == "[Term]" for line in lines):
        raise FileFormatError(f"{name} has no [Term]; give an OBO file, or CSV with term, name and parents")
    names, parents, other = dict[str, str](), dict[str, tuple[str, ...]](), dict[str, str]()
    for tags in _stanzas(lines):
        if not (own := tags.get("id", [""])[0]):
            continue
        if tags.get("is_obsolete") == ["true"]:
            other |= {own: tags["replaced_by"][0]} if "replaced_by" in tags else {}
            continue
        names[own], parents[own] = tags.get("name", [own])[0], tuple(tags.get("is_a", ()))
        other |= dict.fromkeys(tags.get("alt_id", ()), own)
    known = {term: tuple(one for one in above if one in names) for term, above in parents.items()}
    return Ontology(names, known, other)


def read_annotations(path: PathLike) -> list[Annotation]:
    r"""Read the findings of diseases: HPO's ``phenotype.hpoa``, or a CSV table with disease, term and frequency.

    Of HPOA, lines on phenotypes count; NOT, and what is excluded, do not. A frequency is a share (``3/7``), a
    percentage (``45%``), a number, or one of HPO's words for it; it may be left out.

    Parameters
    ----------
    path : str or PathLike

    Returns
    -------
    list of Annotation

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from sbnet import catalogue
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "found.csv")
    ...     _ = path.write_text("disease,term,frequency\nflu,fever,3/4\nflu,cough,\n")
    ...     found = catalogue.read_annotations(path)
    >>> [line.frequency for line in found]
    [0.75, None]
    """
    name = as_file(path)
    lines = [line for line in read_text(name).splitlines() if line.strip()]
    body = [(k, line) for k, line in enumerate(lines, 1) if not line.startswith("#") or "\thpo_id" in line.lower()]
    if body and "\t" in body[0][1]:
        titles = body[0][1].lower().lstrip("#").split("\t")
        return list(_hpoa(name, titles, body[1:]))
    found = []
    for line, row in _rows(name, lines, ("disease", "term", "frequency")):
        share = _frequency(name, line, row["frequency"])
        if share != 0.0:
            found.append(Annotation(row["disease"], row["term"], share, row.get("name", "")))
    return found


def read_patient(path: PathLike, ontology: Ontology | None = None) -> dict[str, int]:
    """Read the findings of a patient from a phenopacket (JSON): 1 for those that are present, 0 for excluded ones.

    Parameters
    ----------
    path : str or PathLike
    ontology : Ontology, optional
        With it, older identifiers become those of today, and terms that it does not have are left out: a
        :class:`~sbnet.errors.CodingWarning` names them.

    Returns
    -------
    dict of str to int
        Evidence, as :func:`sbnet.infer` and :func:`sbnet.single_cause` take it.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from sbnet import catalogue
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "patient.json")
    ...     _ = path.write_text('{"phenotypicFeatures": [{"type": {"id": "S2"}, "excluded": true}]}')
    ...     found = catalogue.read_patient(path)
    >>> found
    {'S2': 0}
    """
    if not isinstance(ontology, Ontology | None):
        raise ParameterError(f"ontology is {checks.shown(ontology)}; give what read_ontology() gives")
    name = as_file(path)
    try:
        packet = json.loads(read_text(name))
    except ValueError as error:
        raise FileFormatError(f"{name} is not JSON: {error}") from None
    packet = packet.get("phenopacket", packet) if isinstance(packet, dict) else packet
    features = packet.get("phenotypicFeatures") if isinstance(packet, dict) else None
    if not isinstance(features, list):
        raise FileFormatError(f"{name} has no list phenotypicFeatures; a phenopacket has one")
    found, unknown = dict[str, int](), list[str]()
    for feature in features:
        kind = feature.get("type") if isinstance(feature, dict) else None
        kind = kind if isinstance(kind, dict) else {}
        term = kind.get("id")
        if not isinstance(term, str):
            raise FileFormatError(f"{name}: {checks.shown(feature)} has no type with an id")
        term = term if ontology is None else ontology.term(term)
        if ontology is not None and term not in ontology.names:
            unknown.append(f"{term} {kind.get('label', '')}".strip())
            continue
        state = 0 if feature.get("excluded") or feature.get("negated") else 1
        if found.setdefault(term, state) != state:
            raise FileFormatError(f"{name} has {term!r} both as present and as excluded; take one of them out")
    if unknown:
        left_out(name, unknown, None if found else FileFormatError)
    return found


def left_out(where: str, unknown: list[str], refused: type[SBNetError] | None) -> None:
    """Name the terms that an ontology does not have; an error if nothing is left without them."""
    terms = f"{enumerated(unknown)}, which {'is' if len(unknown) == 1 else 'are'} not in the ontology"
    if refused is not None:
        raise refused(f"{where} has {terms}, and nothing else; read the ontology that they are from")
    text = f"left out: {where} has {terms}; a newer ontology, or a term above, would make them count"
    warnings.warn(in_line(text), CodingWarning, stacklevel=3)


def _rows(name: str, lines: list[str], columns: tuple[str, ...]) -> Iterator[tuple[int, dict[str, str]]]:
    """The rows of a table with a first line of titles, and the lines they stand in."""
    reader = csv.DictReader(io.StringIO("\n".join(lines)))
    lacking = [title for title in columns if title not in (reader.fieldnames or ())]
    if lacking:
        wanted = f"expected {', '.join(columns)} in the first line, with commas between them"
        raise FileFormatError(f"{name} has no column {lacking[0]!r}; {wanted}")
    for row in reader:
        yield reader.line_num, {key: value or "" for key, value in row.items() if isinstance(key, str)}


def _stanzas(lines: list[str]) -> Iterator[dict[str, list[str]]]:
    """The tags of each term, without comments and modifiers."""
    tags: dict[str, list[str]] | None = None
    for line in [*lines, "["]:
        text = line.strip()
        if text.startswith("["):
            if tags is not None:
                yield tags
            tags = {} if text == "[Term]" else None
        elif tags is not None and ": " in text:
            key, value = text.split(": ", 1)
            tags.setdefault(key, []).append(value.split(" ! ")[0].split(" {")[0].strip())


def _hpoa(name: str, titles: list[str], body: list[tuple[int, str]]) -> Iterator[Annotation]:
    known = {"database_id": "disease", "databaseid": "disease", "disease_name": "name", "diseasename": "name"}
    titles = [known.get(title.strip(), title.strip()) for title in titles]
    for wanted in ("disease", "hpo_id"):
        if wanted not in titles:
            raise FileFormatError(f"{name} has no column {wanted!r}; give a phenotype.hpoa, or CSV")
    for k, line in body:
        row = dict(zip(titles, line.split("\t"), strict=False))
        if len(row) < 2 or row.get("qualifier") == "NOT" or row.get("aspect", "P") != "P":
            continue
        share = _frequency(name, k, row.get("frequency", ""))
        if share != 0.0:
            yield Annotation(row["disease"], row["hpo_id"], share, row.get("name", ""))


def _frequency(name: str, line: int, text: str) -> float | None:
    """A frequency in any of its forms; None where there is none."""
    text = text.strip()
    if not text:
        return None
    try:
        if text in _FREQUENCY:
            return _FREQUENCY[text]
        above, _, below = text.removesuffix("%").partition("/")
        share = float(above) / (float(below) if below else 1.0) / (100.0 if text.endswith("%") else 1.0)
    except (ValueError, ZeroDivisionError):
        share = math.nan
    if not 0.0 <= share <= 1.0:
        wanted = "give a share such as 3/7, 45% or 0.45, or one of HPO's words, or nothing"
        raise FileFormatError(f"{name}, line {line}: frequency {text!r} is none; {wanted}")
    return share
