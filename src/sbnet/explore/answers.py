"""What the page asks, answered by the functions that everyone calls: evidence by number in, plain numbers out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sbnet.asking import contributions, next_question
from sbnet.certificates import certify, posterior_intervals
from sbnet.errors import EvidenceError
from sbnet.inference import infer
from sbnet.network import Network

MOST_INTERVALS = 100
"""Causes whose intervals are worked out for one request: each takes two certificates."""
MOST_QUESTIONS = 20


def answer(network: Network, asked: Mapping[str, Any]) -> dict[str, Any]:
    """The bound, and the mean of every unit."""
    posterior = infer(network, evidence_of(network, asked))
    return {"bound": posterior.bound, "means": posterior.means.tolist()}


def reasons(network: Network, asked: Mapping[str, Any]) -> dict[str, float]:
    """What each finding adds to one unit, in nats of log-odds."""
    unit = network.names[unit_of(network, asked.get("unit"))]
    found = contributions(network, evidence_of(network, asked), about=[unit])
    return {str(network.index(name)): nats for name, nats in found[unit].items()}


def questions(network: Network, asked: Mapping[str, Any]) -> list[dict[str, float]]:
    """What to ask next, the most informative first."""
    found = next_question(network, evidence_of(network, asked))[:MOST_QUESTIONS]
    return [
        {"unit": network.index(one.name), "information": one.information, "probability": one.probability}
        for one in found
    ]


def intervals(network: Network, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Intervals that are certain to hold ln P(evidence), and the chances of some units."""
    evidence, units = evidence_of(network, asked), asked.get("units")
    if not isinstance(units, list):
        raise EvidenceError(f"units is {units!r}; give a list of numbers of units")
    wanted = [unit_of(network, unit) for unit in units[:MOST_INTERVALS]]
    whole = certify(network, evidence, threads=1, progress=False)
    inside = posterior_intervals(network, evidence, units=wanted, progress=False) if wanted else {}
    return {
        "lower": whole.lower,
        "upper": whole.upper,
        "units": {str(i): list(inside[network.names[i]]) for i in wanted},
    }


VERBS: dict[str, Callable[[Network, Mapping[str, Any]], Any]] = {
    verb.__name__: verb for verb in (answer, reasons, questions, intervals)
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
