"""What the page asks, answered by the functions that everyone calls: evidence by number in, plain numbers out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sbnet import roles
from sbnet.asking import contributions, next_question
from sbnet.certificates import certify, posterior_intervals
from sbnet.errors import EvidenceError
from sbnet.inference import infer
from sbnet.network import Network
from sbnet.sums import best
from sbnet.ties import strong_edges

MOST_INTERVALS = 8
"""Units of one request: each takes two certificates, and a click must not wait for those of the click before."""
TRIES = 24
"""Questions whose answers are worked out, of those that promise most."""


def answer(network: Network, asked: Mapping[str, Any]) -> dict[str, Any]:
    """ln P or a bound on it, and the mean of every unit: exact where that is quick, elsewhere mean field, or samples
    where units are tied to each other.
    """
    evidence = evidence_of(network, asked)
    wanted = tuple(roles.observable(network)) if strong_edges(network).size else ()
    posterior, exact = best(lambda solver: infer(network, evidence, solver=solver), wanted)
    sampled = posterior.error is not None
    return {"bound": posterior.bound, "means": posterior.means.tolist(), "exact": exact, "sampled": sampled}


def reasons(network: Network, asked: Mapping[str, Any]) -> dict[str, float]:
    """What each finding adds to one unit, in nats of log-odds."""
    unit = network.names[unit_of(network, asked.get("unit"))]
    evidence = evidence_of(network, asked)
    found = contributions(network, evidence, about=[unit], together={})  # by unit, as the page has them
    return {str(network.index(name)): nats for name, nats in found[unit].items()}


def questions(network: Network, asked: Mapping[str, Any]) -> list[dict[str, float]]:
    """What to ask next, the most informative first."""
    evidence = evidence_of(network, asked)
    causes = roles.causes(network)
    about = [i for i in causes if i not in evidence]
    among = [i for i in roles.findings(network, causes) if i not in evidence]
    found = next_question(network, evidence, about=about, among=among, tries=TRIES) if about and among else ()
    return [
        {"unit": network.index(one.name), "information": one.information, "probability": one.probability}
        for one in found
    ]


def certificate(network: Network, asked: Mapping[str, Any]) -> dict[str, float]:
    """An interval that is certain to hold ln P(evidence)."""
    found = certify(network, evidence_of(network, asked), threads=1, progress=False)
    return {"lower": found.lower, "upper": found.upper}


def intervals(network: Network, asked: Mapping[str, Any]) -> dict[str, list[float]]:
    """Intervals that are certain to hold the chances of a few units; the page asks for some at a time."""
    evidence, units = evidence_of(network, asked), asked.get("units")
    if not isinstance(units, list) or len(units) > MOST_INTERVALS:
        raise EvidenceError(f"units is {units!r}; give a list of at most {MOST_INTERVALS} numbers of units")
    wanted = [unit_of(network, unit) for unit in units]
    inside = posterior_intervals(network, evidence, units=wanted, threads=1, progress=False)
    return {str(i): list(inside[network.names[i]]) for i in wanted}


VERBS: dict[str, Callable[[Network, Mapping[str, Any]], Any]] = {
    verb.__name__: verb for verb in (answer, reasons, questions, certificate, intervals)
}
"""All that can be asked, by name."""


def evidence_of(network: Network, asked: Mapping[str, Any]) -> dict[int, int]:
    """Evidence as the page writes it, ``{"3": 1}``."""
    given = asked.get("evidence")
    if not isinstance(given, dict):
        raise EvidenceError(f"evidence is {given!r}; give an object such as {{'3': 1}}")
    for key, state in given.items():
        if state not in (0, 1) or isinstance(state, bool | float):
            raise EvidenceError(f"unit {key!r} is {state!r}; a state is 0 or 1")
    return {unit_of(network, key): state for key, state in given.items()}


def unit_of(network: Network, key: Any) -> int:
    """The number of a unit, which JSON may have made a text."""
    if isinstance(key, str) and key.isascii() and key.isdigit() and len(key) < 10:
        key = int(key)
    if not isinstance(key, int) or isinstance(key, bool):
        raise EvidenceError(f"{key!r} is not the number of a unit")
    return network.index(key)
