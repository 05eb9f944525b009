"""Catalogues of causes and their findings: ontologies, annotations and patients, and the network that they make.

``network = catalogue.network(catalogue.read_annotations("phenotype.hpoa"), catalogue.read_ontology("hp.obo"))``, and
then ``sb.single_cause(network, catalogue.read_patient("patient.json"))``.
"""

from __future__ import annotations

from sbnet.catalogue.building import network
from sbnet.catalogue.reading import Annotation, Ontology, read_annotations, read_ontology, read_patient

__all__ = ["Annotation", "Ontology", "network", "read_annotations", "read_ontology", "read_patient"]
