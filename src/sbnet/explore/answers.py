"""What the page asks, answered by the functions that everyone calls: evidence by number in, plain numbers out.

A file that computes its own answers (``solver.js`` and ``sums.js``) has the same two solvers and the same rule which of
them answers: both show the same numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache, partial
from typing import Any, TypeVar

from sbnet.certificates import CertifySettings, certify, posterior_intervals
from sbnet.decisions import contributions, next_question
from sbnet.errors import EvidenceError, TooManyHiddenError
from sbnet.inference import MeanField, Posterior, infer
from sbnet.inference.solvers.enumeration import Sampled, Sums
from sbnet.model import roles
from sbnet.model.network import Network
from sbnet.questions.evidence import as_evidence
from sbnet.questions.ties import strong_edges

MOST_INTERVALS = 8
"""Units of one request: each takes two certificates, and a click must not wait for those of the click before."""
MOST_REASONS = 20
"""Units of one request for reasons; those that are drawn are fewer."""
TRIES = 24
"""Questions whose answers are worked out, of those that promise most."""


MEAN_FIELD = MeanField(log_term="xi", tol=1e-9)
"""The solver where sums are large: that of ``solver.js``."""

T = TypeVar("T")


def _best(network: Network, units: Iterable[int], ask: Callable[..., T], present: Posterior | None = None) -> T:
    """What a function of a solver returns, by sums where these are small for all it asks.

    They are not tried where they were too large for the present evidence, which is part of all that is asked.
    """
    if present is None or isinstance(present.solver, Sums):
        try:
            return ask(solver=Sums(frozenset(network.names[i] for i in units)))
        except TooManyHiddenError:
            pass
    return ask(solver=Sampled() if strong_edges(network).size else MEAN_FIELD)


@lru_cache(maxsize=4)
def _solved(network: Network, evidence: frozenset[tuple[int, Any]], causes: tuple[int, ...]) -> Posterior:
    """The answer to some evidence, kept: after it, the page asks for reasons and for questions."""
    return _best(network, causes, partial(infer, network, dict(evidence)))


def _present(network: Network, evidence: Mapping[int, Any]) -> Posterior:
    found = _solved(network, frozenset(evidence.items()), tuple(roles.causes(network)))
    if found.impossible:
        raise EvidenceError(found.impossible)
    return found


def answer(network: Network, asked: Mapping[str, Any]) -> dict[str, Any]:
    """ln P or a bound on it, and the mean of every unit: exact where that is quick, elsewhere mean field, or samples
    where units are tied to each other.
    """
    evidence = evidence_of(network, asked)
    posterior = _present(network, evidence)
    means, converged = posterior.means.tolist(), bool(posterior.converged)
    exact, sampled = isinstance(posterior.solver, Sums), posterior.error is not None
    return {"bound": posterior.bound, "means": means, "exact": exact, "sampled": sampled, "converged": converged}


def reasons(network: Network, asked: Mapping[str, Any]) -> dict[str, dict[str, float]]:
    """What each finding adds to some units, in nats of log-odds."""
    evidence = evidence_of(network, asked)
    about = [i for i in units_of(network, asked, MOST_REASONS) if i not in evidence]
    present = _present(network, evidence)
    ask = partial(contributions, network, present, about=about, together={})  # by unit, as the page has them
    found = _best(network, about, ask, present)
    return {str(i): {str(network.index(f)): x for f, x in found[network.names[i]].items()} for i in about}


def questions(network: Network, asked: Mapping[str, Any]) -> list[dict[str, float]]:
    """What to ask next, the most informative first."""
    evidence = evidence_of(network, asked)
    causes = roles.causes(network)
    about = [i for i in causes if i not in evidence]
    among = [i for i in roles.findings(network, causes) if i not in evidence]
    if not about or not among:
        return []
    present = _present(network, evidence)
    ask = partial(next_question, network, present, about=about, among=among, tries=TRIES)
    found = _best(network, about, ask, present)
    return [
        {"unit": network.index(one.name), "information": one.information, "probability": one.probability}
        for one in found
    ]


def certificate(network: Network, asked: Mapping[str, Any]) -> dict[str, float]:
    """An interval that is certain to hold ln P(evidence)."""
    found = certify(network, evidence_of(network, asked), progress=False, settings=CertifySettings(threads=1))
    if found.upper == -math.inf:
        raise EvidenceError(found.upper_from)
    return {"lower": found.lower, "upper": found.upper}


def intervals(network: Network, asked: Mapping[str, Any]) -> dict[str, list[float]]:
    """Intervals that are certain to hold the probabilities of a few units; the page asks for some at a time."""
    evidence, wanted = evidence_of(network, asked), units_of(network, asked, MOST_INTERVALS)
    inside = posterior_intervals(network, evidence, units=wanted, progress=False, settings=CertifySettings(threads=1))
    return {str(i): list(inside[network.names[i]]) for i in wanted}


VERBS: dict[str, Callable[[Network, Mapping[str, Any]], Any]] = {
    verb.__name__: verb for verb in (answer, reasons, questions, certificate, intervals)
}
"""All that can be asked, by name."""


def evidence_of(network: Network, asked: Mapping[str, Any]) -> dict[int, Any]:
    """Evidence as the page writes it, ``{"3": 1}``."""
    given = asked.get("evidence")
    if not isinstance(given, dict):
        raise EvidenceError(f"evidence is {given!r}; give an object such as {{'3': 1}}")
    for key, state in given.items():
        if state not in (0, 1) or isinstance(state, bool | float):
            raise EvidenceError(f"unit {key!r} is {state!r}; a state is 0 or 1")
    states = {unit_of(network, key): state for key, state in given.items()}
    return {unit: as_evidence(network, unit, state) for unit, state in states.items()}


def units_of(network: Network, asked: Mapping[str, Any], most: int) -> list[int]:
    """The units that a request names, each once."""
    units = asked.get("units")
    if not isinstance(units, list) or len(units) > most:
        raise EvidenceError(f"units is {units!r}; give a list of at most {most} numbers of units")
    return list(dict.fromkeys(unit_of(network, unit) for unit in units))


def unit_of(network: Network, key: Any) -> int:
    """The number of a unit, which JSON may have made a text."""
    if isinstance(key, str) and key.isascii() and key.isdigit() and len(key) < 10:
        key = int(key)
    if not isinstance(key, int) or isinstance(key, bool):
        raise EvidenceError(f"{key!r} is not the number of a unit")
    return network.index(key)
