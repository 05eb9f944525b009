"""The network of a catalogue: diseases above findings, noisy-OR links, findings in their hierarchy."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from sbnet import checks
from sbnet._types import FloatArray, IndexArray
from sbnet.catalogue.reading import Annotation, Ontology, left_out
from sbnet.errors import NetworkError
from sbnet.kernels.codes import NOISY_OR, SIGMOID
from sbnet.model import hierarchy, roles
from sbnet.model.graph import Graph
from sbnet.model.network import Network
from sbnet.model.notes import Note

if TYPE_CHECKING:
    import scipy.sparse

UNKNOWN, MOST = 0.5, 0.98
"""The frequency of a finding of which none is known, and the largest one that counts."""
TELLING, FEW, RAREST = 0.1, 100, 1e-4
"""The share of diseases up to which a finding tells many of them apart (of a few, any finding may); the least leak."""
NEIGHBOURS, BORROWED = 5, 0.05
"""How many similar diseases lend a disease their findings, and how much of them at a similarity of one."""
UNREPORTED = 0.05
"""How often a finding of a disease would be on a patient's list: what is not there counts against it by so much."""


def network(
    annotations: Iterable[Annotation | tuple[Any, ...]],
    ontology: Ontology | None = None,
    *,
    borrowed: float = BORROWED,
    vague: float = hierarchy.VAGUE,
    specific: float = hierarchy.SPECIFIC,
) -> Network:
    r"""Build the network of a catalogue of diseases, to ask :func:`sbnet.single_cause` which of them a patient has.

    A disease is a cause, a term a finding. The link between them has the frequency of the annotation, one half where
    none is known; the leak of a finding is the share of diseases that have it, the ontology considered. To that come

    - links to vaguer and to more specific terms, :mod:`sbnet.model.hierarchy`: p · `vague` to ancestors, and as much as
      the shares of diseases say, times `specific`, to descendants, of terms that at most a tenth of many diseases have;
    - links to what the five most similar diseases have, p · `borrowed` · similarity, for no catalogue is complete
      (similarity: the cosine over terms with ancestors, weighted by their information content);
    - priors in proportion to exp(-0.05 · the expected number of findings): a disease of which much is known would have
      shown more of it.

    Parameters
    ----------
    annotations : iterable of Annotation or tuple
        Those of :func:`read_annotations`, or tuples (disease, term) or (disease, term, frequency).
    ontology : Ontology, optional
        That of :func:`read_ontology`. All of its terms become findings, and annotations with others are left out, with
        a :class:`~sbnet.errors.CodingWarning`. Without it, terms stand side by side.
    borrowed, vague, specific : float
        From 0 to 1; 0 leaves out what they stand for.

    Returns
    -------
    Network
        Diseases first, in the group "causes", then findings, in the group "findings"; notes have what they are called.

    Examples
    --------
    >>> import sbnet as sb
    >>> from sbnet import catalogue
    >>> lines = [("flu", "fever", 0.9), ("flu", "cough"), ("cold", "cough", 0.6), ("cold", "sneezing", 0.8)]
    >>> net = catalogue.network(lines)
    >>> sb.single_cause(net, {"fever": 1, "cough": 1}).ranked
    ('flu', 'cold')
    """
    import scipy.sparse

    for what, value in (("borrowed", borrowed), ("vague", vague), ("specific", specific)):
        checks.probability(what, value)
    table = _Table(annotations, ontology)
    shape = (len(table.diseases), len(table.terms))
    weight = scipy.sparse.csr_array((-np.log1p(-table.frequency), (table.disease, table.term)), shape=shape)
    is_a = {} if ontology is None else {term: ontology.parents.get(term, ()) for term in table.terms}
    above = hierarchy.ancestors(table.terms, is_a)
    has = weight + weight @ above
    leak = np.clip(np.bincount(has.indices, minlength=shape[1]) / shape[0], RAREST, MOST)
    expected = np.asarray((-np.expm1(-weight)).sum(axis=1)).ravel()
    telling = TELLING if shape[0] > FEW else 1.0
    down = hierarchy.spread(weight, above, leak, vague=0.0, specific=specific, telling=telling) - weight
    if borrowed > 0.0 and shape[0] > 1:
        p = -np.expm1(-weight)
        weight = p + (_similar(has, leak, telling) * borrowed) @ p
        weight.data = -np.log1p(-np.minimum(weight.data, MOST))
    links = (hierarchy.spread(weight, above, leak, vague=vague, specific=0.0) + down).tocsc()
    return table.network(links, leak, -UNREPORTED * expected)


class _Table:
    """Annotations as numbers: diseases and terms in the order in which they come, and a frequency each."""

    def __init__(self, annotations: Any, ontology: Ontology | None) -> None:
        if ontology is not None and not isinstance(ontology, Ontology):
            raise NetworkError(f"ontology is {checks.shown(ontology)}; give what read_ontology() gives")
        wanted = "give (disease, term, frequency) for each, as read_annotations() does"
        self.names: dict[str, str] = {}
        self.terms = [] if ontology is None else list(ontology.names)
        number = {term: k for k, term in enumerate(self.terms)}
        place: dict[str, int] = {}
        rows, unknown = list[tuple[int, int, float]](), dict[str, str]()
        for one in checks.listed("annotations", annotations, wanted, NetworkError):
            if not isinstance(one, tuple) or not 2 <= len(one) <= 4 or not all(isinstance(x, str) for x in one[:2]):
                raise NetworkError(f"an annotation is {checks.shown(one)}; {wanted}")
            disease, term, frequency, name = Annotation(*one)
            term = term if ontology is None else ontology.term(term)
            if term not in number:
                if ontology is not None:
                    unknown.setdefault(term, disease)
                    continue
                number[term] = len(self.terms)
                self.terms.append(term)
            if name:
                self.names[disease] = name
            share = UNKNOWN if frequency is None else checks.probability(f"the frequency of {term!r}", frequency)
            rows.append((place.setdefault(disease, len(place)), number[term], min(share, MOST)))
        if unknown:
            where = repr(next(iter(unknown.values()))) if len(unknown) == 1 else "the catalogue"
            left_out(where, list(unknown), None if rows else NetworkError)
        if not rows:
            raise NetworkError(f"there are no annotations; {wanted}")
        self.diseases = list(place)
        both = set(self.diseases) & set(self.terms)
        if both:
            raise NetworkError(f"{min(both)!r} is a disease and a term; give one of them another name")
        self.names |= {} if ontology is None else ontology.names
        columns = np.array(rows)
        self.disease, self.term = columns[:, 0].astype(np.int64), columns[:, 1].astype(np.int64)
        self.frequency: FloatArray = columns[:, 2]

    def network(self, links: scipy.sparse.csc_array, leak: FloatArray, log_odds: FloatArray) -> Network:
        """Diseases, then findings; `links` are weights by finding."""
        n, m = links.shape
        links.sort_indices()
        indptr = np.concatenate([np.zeros(n, np.int64), links.indptr])
        prior = log_odds - np.log(np.exp(log_odds).sum())  # one disease is expected; single causes see odds alone
        group = dict.fromkeys(self.diseases, roles.CAUSES) | dict.fromkeys(self.terms, roles.FINDINGS)
        return Network(
            tuple(group),
            Graph(indptr, links.indices.astype(np.int64)),
            links.data,
            np.concatenate([prior, -np.log1p(-leak)]),
            np.repeat(np.array([SIGMOID, NOISY_OR], np.int8), [n, m]),
            notes={name: Note(about=self.names.get(name, ""), group=word) for name, word in group.items()},
        )


def _similar(has: scipy.sparse.csr_array, leak: FloatArray, telling: float) -> scipy.sparse.csr_array:
    """Diseases by diseases: the cosines of the most similar ones, over terms that tell them apart."""
    import scipy.sparse

    kept, most = np.flatnonzero(leak <= telling), min(NEIGHBOURS, has.shape[0] - 1)
    own = has[:, kept].astype(np.float32)
    own.data = -np.log(leak[kept]).astype(np.float32)[own.indices]
    size = np.sqrt(np.asarray((own * own).sum(axis=1)).ravel())
    own = (scipy.sparse.diags_array(1.0 / np.maximum(size, 1e-9)) @ own).tocsr().astype(np.float32)
    other, n = own.T.tocsr(), own.shape[0]
    near: IndexArray = np.empty((n, most), np.int64)
    cosine = np.empty((n, most))
    for start in range(0, n, 512):
        block = (own[start : start + 512] @ other).toarray()
        rows = np.arange(len(block))
        block[rows, start + rows] = -1.0  # itself
        near[start + rows] = np.argpartition(-block, most - 1, axis=1)[:, :most]
        cosine[start + rows] = np.take_along_axis(block, near[start + rows], axis=1)
    return scipy.sparse.csr_array((cosine.ravel(), near.ravel(), np.arange(0, n * most + 1, most)), shape=(n, n))
