"""Real patients with rare diseases: which of 9,260 is it, by the network of a catalogue and by simpler ones.

The data are not part of this project: ``annotations.csv.gz`` (disease, term, frequency), ``ontology.csv.gz`` (term,
name, parents) and ``cases.json`` (pairs of terms and true diseases), from xiaohaomao/timgroup_disease_diagnosis with
the terms of the Human Phenotype Ontology, in a folder ``rare`` below the one that SBNET_TABLES names, an environment
variable.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import scipy.sparse

import sbnet as sb
from sbnet import catalogue
from sbnet.errors import SBNetError
from sbnet.model import hierarchy
from sbnet.model.graph import Graph

from .report import NONE, Table, say

FEW = 9
"""Terms of a patient, at most, for whom the posterior over all diseases is worked out exactly."""
TOPS = (1, 3, 10)
Score = Callable[[list[str]], "np.ndarray | None"]


def table() -> list[Table]:
    folder = Path(os.environ.get("SBNET_TABLES", ".")) / "rare"
    if not (folder / "cases.json").exists():
        note = f"{folder} has no cases.json; name the folder that holds `rare` in SBNET_TABLES"
        return [Table("diagnosis: rare diseases", ("model",), [], (note,))]
    cases = json.loads((folder / "cases.json").read_text())
    say("diagnosis: reading and building")
    start = time.process_time()
    ontology = catalogue.read_ontology(folder / "ontology.csv.gz")
    annotations = catalogue.read_annotations(folder / "annotations.csv.gz")
    read = time.process_time()
    network = catalogue.network(annotations, ontology)
    built = time.process_time()
    plain = _plain(network, annotations, ontology)
    few = [case for case in cases if len(case[0]) <= FEW]
    rows = [
        _row("plain noisy-OR, exactly one disease", plain, cases, _single(plain)),
        _row("the catalogue's network, exactly one disease", network, cases, _single(network)),
        _row("plain noisy-OR, mean field over all diseases", plain, cases, _mean_field(plain)),
        _row(f"plain noisy-OR, exact over all diseases, up to {FEW} terms", plain, few, _exact(plain)),
        _row("— mean field on these", plain, few, _mean_field(plain)),
        _row("— exactly one disease on these", plain, few, _single(plain)),
        _row("— the catalogue's network on these", network, few, _single(network)),
    ]
    notes = (
        f"{len(cases)} patients, {len(ontology):,} terms, {len(annotations):,} annotations; {network.n_edges:,} links "
        f"in the catalogue's network, {plain.n_edges:,} in the plain one. A patient's terms are present, nothing "
        "else is known. Rank of the best true disease, ties by their expected rank.",
        f"Files are read in {read - start:.1f} s, and the catalogue's network is built in {built - read:.1f} s, of "
        "processor time as all times here.",
        "Published on all 873 patients, of which these are a half: PhenoBrain 0.304 / 0.483 / 0.640, the best of "
        "twelve other tools 0.257 / 0.424 / 0.593 (npj Digital Medicine 2025, s41746-025-01452-1, table 2).",
    )
    columns = ("model", "patients", *(f"top {k}" for k in TOPS), "ms a patient")
    return [Table("diagnosis: which of 9,260 rare diseases", columns, rows, notes)]


def _plain(network: sb.Network, annotations: list[catalogue.Annotation], ontology: catalogue.Ontology) -> sb.Network:
    """Links of annotated terms and 0.6 times that to their ancestors, leaks of 0.3 times the share, equal priors."""
    n = sum(note.group == "causes" for note in network.notes.values())
    number = {name: k for k, name in enumerate(network.names)}
    ends = [(number[one.disease], number[ontology.term(one.term)] - n) for one in annotations]
    p = np.array([0.5 if one.frequency is None else min(one.frequency, 0.98) for one in annotations])
    shape = (n, len(network.names) - n)
    above = hierarchy.ancestors(network.names[n:], ontology.parents)
    own, vague = (scipy.sparse.csr_array((-np.log1p(-c * p), np.array(ends).T), shape=shape) for c in (1.0, 0.6))
    links = (own + vague @ above).tocsc()
    links.sort_indices()
    leak = np.clip(0.3 * np.diff(links.indptr) / n, 1e-5, 0.5)
    bias = np.concatenate([np.full(n, -np.log(n - 1.0)), -np.log1p(-leak)])
    graph = Graph(np.concatenate([np.zeros(n, np.int64), links.indptr]), links.indices)
    return sb.Network(network.names, graph, links.data, bias, network.gate, notes=network.notes)


def _single(network: sb.Network) -> Score:
    return lambda terms: sb.single_cause(network, dict.fromkeys(terms, 1)).log_odds


def _mean_field(network: sb.Network) -> Score:
    n = sum(note.group == "causes" for note in network.notes.values())
    return lambda terms: sb.infer(network, dict.fromkeys(terms, 1)).means[:n]


def _exact(network: sb.Network) -> Score:
    causes = [name for name, note in network.notes.items() if note.group == "causes"]

    def score(terms: list[str]) -> np.ndarray | None:
        try:
            return np.asarray(sb.exact_posterior(network, dict.fromkeys(terms, 1), units=causes))
        except SBNetError:
            return None

    return score


def _row(name: str, network: sb.Network, cases: list[tuple[list[str], list[str]]], score: Score) -> tuple[str, ...]:
    say(f"diagnosis: {name}")
    ranks, took = list[float](), list[float]()
    for terms, true in cases:
        start = time.process_time()
        found = score(terms)
        took.append(time.process_time() - start)
        if found is not None:
            best = max(found[network.index(disease)] for disease in true)
            tied = np.isclose(found, best, rtol=1e-9, atol=0.0)  # which of them is first is rounding's choice
            ranks.append(float((~tied & (found > best)).sum() + (tied.sum() + 1) / 2))
    shares = [f"{np.mean(np.array(ranks) <= k):.3f}" if ranks else NONE for k in TOPS]
    return name, str(len(ranks)), *shares, f"{1e3 * np.median(took):.1f}"
