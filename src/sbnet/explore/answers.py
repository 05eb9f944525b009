"""What the page asks, answered by the functions that everyone calls: evidence by number in, plain numbers out.

Answers are exact where elimination is feasible, else those of mean field theory or of samples, and say which. A file
that computes its own answers (``elimination.js`` and ``engine.js``) has the same rules, and shows the same numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from sbnet._types import FloatArray
from sbnet.certificates import CertifySettings, certify, posterior_intervals
from sbnet.decisions import contributions, next_question, single_cause
from sbnet.errors import EvidenceError, TooManyHiddenError
from sbnet.exact.answers import exact_posterior
from sbnet.inference import MeanField, Posterior, infer
from sbnet.inference.solvers.enumeration import LIMIT
from sbnet.model import roles
from sbnet.model.network import Network
from sbnet.model.strengths import edge_strengths
from sbnet.questions.by_state import probabilities
from sbnet.questions.evidence import as_evidence
from sbnet.questions.reduction import live_variables

MOST_INTERVALS = 8
"""Variables of one request: each takes two certificates, and a click must not wait for those of the click before."""
MOST_REASONS = 20
"""Variables of one request for reasons; those that are drawn are fewer."""
SMALL, TRIES = 150, 24
"""Variables up to which all questions are worked out; else so many, of those that promise most."""
EDGE = 1e-12
"""Probabilities nearer to 0 or 1 than this count as this in log-odds."""

Evidence = dict[int, Any]


# --- exactly --------------------------------------------------------------------------------------------------------


class Exact(NamedTuple):
    """ln P of each row of evidence, and the probabilities of states of each variable asked for, rows by states."""

    log_p: FloatArray
    beliefs: dict[int, FloatArray]


def exactly(network: Network, rows: Sequence[Evidence], units: Iterable[int]) -> Exact:
    """All at once; or, where that is too large, each variable that has no say in the evidence by itself: NaN for one
    that is too large even so."""
    asked = list(dict.fromkeys(units))
    try:
        return _exactly(network, rows, asked)
    except TooManyHiddenError:
        seen = np.full(network.n_units, -1)
        seen[list({i for row in rows for i in row})] = 1
        above = live_variables(network.model, seen)
        core = [i for i in asked if above[i] or not network.parents(i)]
        if len(core) == len(asked):
            raise
    found = _exactly(network, rows, core)
    for i in asked:
        if i not in found.beliefs:
            found.beliefs[i] = np.full((len(rows), int(network.n_states[i])), np.nan)
            with suppress(TooManyHiddenError):
                found.beliefs.update(_exactly(network, rows, [i]).beliefs)
    return found


def _exactly(network: Network, rows: Sequence[Evidence], units: list[int]) -> Exact:
    exact = exact_posterior(network, list(rows), units=units, limit=LIMIT, threads=1, progress=False)
    log_p = np.atleast_1d(exact.log_likelihood)
    if network.is_binary:
        both = np.stack([1.0 - exact.means, exact.means], axis=-1)  # rows by variables by states
        return Exact(log_p, dict(zip(units, both.swapaxes(0, 1), strict=True)))
    ends = np.cumsum(network.n_states[units] - 1)
    parts = np.split(exact.means, ends[:-1], axis=1) if units else []
    return Exact(log_p, {i: probabilities(part) for i, part in zip(units, parts, strict=True)})


# --- what the page asks ---------------------------------------------------------------------------------------------


def answer(network: Network, asked: Mapping[str, Any]) -> dict[str, Any]:
    """ln P or a bound on it, and the probabilities of the states of some variables."""
    evidence, units = evidence_of(network, asked), units_of(network, asked, network.n_units)
    try:
        found = exactly(network, [evidence], units)
        log_p, beliefs = float(found.log_p[0]), {i: p[0] for i, p in found.beliefs.items()}
        settled: dict[str, Any] = {"kind": "exact"}
        if log_p == -math.inf:
            raise EvidenceError(exact_posterior(network, evidence, units=[0], limit=LIMIT).impossible)
    except TooManyHiddenError:
        posterior = _estimate(network, _key(evidence))
        log_p = posterior.bound
        beliefs = {i: probabilities(posterior.means[network.columns_of(i)]) for i in units}
        settled = {
            "kind": "estimate",
            "method": "mean field" if posterior.error is None else "samples",
            "converged": bool(posterior.converged),
        }
    numbers = {str(i): p.tolist() for i, p in beliefs.items()}
    return {"logP": log_p, "beliefs": {i: None if own[0] != own[0] else own for i, own in numbers.items()}} | settled


def single(network: Network, asked: Mapping[str, Any]) -> dict[str, Any]:
    """The probabilities of causes if exactly one is present, before and given the findings."""
    found = single_cause(network, evidence_of(network, asked), limit=LIMIT)
    own: dict[str, list[int]] = {}
    for k, cause in enumerate(found.causes):
        own.setdefault(cause if isinstance(cause, str) else cause[0], []).append(k)
    places = {str(network.index(name)): list_ for name, list_ in own.items()}

    def by_cause(p: list[float]) -> dict[str, list[float]]:
        return {i: [max(1.0 - sum(p[k] for k in list_), 0.0), *(p[k] for k in list_)] for i, list_ in places.items()}

    return {"kind": "exact", "beliefs": by_cause(found.probability.tolist()), "prior": by_cause(found.prior.tolist())}


def reasons(network: Network, asked: Mapping[str, Any]) -> dict[str, dict[str, list[float]]]:
    """What each finding adds to each state of some variables, in nats of log-odds."""
    evidence = evidence_of(network, asked)
    wanted = units_of(network, asked, MOST_REASONS)
    about = [i for i in wanted if i not in evidence or isinstance(evidence[i], tuple)]
    if not about:
        return {}
    rows = [evidence, *({i: s for i, s in evidence.items() if i != f} for f in evidence)]
    try:
        odds = {i: _log_odds(p) for i, p in exactly(network, rows, about).beliefs.items()}
    except TooManyHiddenError:
        return _estimated_reasons(network, evidence, about)
    return {str(i): {str(f): (x[0] - x[k]).tolist() for k, f in enumerate(evidence, 1)} for i, x in odds.items()}


def questions(network: Network, asked: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What to ask next, the most informative first: the sum of mutual informations with each cause, in nats."""
    evidence, causes = evidence_of(network, asked), roles.causes(network)
    known = {i for i, state in evidence.items() if not isinstance(state, tuple)}
    about = [i for i in causes if i not in known]
    among = [i for i in roles.findings(network, causes) if i not in known]
    if not about or not among:
        return []
    try:
        if network.n_units > SMALL:
            among = _promising(network, among, exactly(network, [evidence], causes).beliefs)
        score, chances = _information(network, evidence, about, among)
    except TooManyHiddenError:
        return _estimated_questions(network, evidence, about, among)
    found = [{"unit": f, "information": score[f] if score[f] >= 1e-9 else 0.0, "chances": chances[f]} for f in among]
    return sorted(found, key=lambda one: (-one["information"], one["unit"]))


def _information(
    network: Network, evidence: Evidence, about: list[int], among: list[int]
) -> tuple[dict[int, float], dict[int, list[float]]]:
    """The information of each finding, and the probabilities of its states. Findings, or causes if fewer, are set to
    each of their states in turn: mutual information is symmetric."""
    if network.n_units <= SMALL and len(about) < len(among) and not network.is_binary:
        with suppress(TooManyHiddenError):
            return _informed(network, evidence, about, among, by_cause=True)
    return _informed(network, evidence, about, among, by_cause=False)


def _informed(
    network: Network, evidence: Evidence, about: list[int], among: list[int], *, by_cause: bool
) -> tuple[dict[int, float], dict[int, list[float]]]:
    given, others = (about, among) if by_cause else (among, about)
    rows = [evidence | {c: state} for c in given for state in _states(network, c)]
    solved = _exactly(network, rows, others)
    sizes = network.n_states[others].tolist()
    alike = [[o for o, k in zip(others, sizes, strict=True) if k == n] for n in sorted(set(sizes))]
    score, chances, begin = dict.fromkeys(among, 0.0), dict[int, list[float]](), 0
    for c in given:
        part = slice(begin, begin := begin + int(network.n_states[c]))
        report = evidence.get(c)
        with np.errstate(divide="ignore"):
            log_p = solved.log_p[part] + (0.0 if report is None else np.log(np.array(report)))
        weight = np.exp(log_p - log_p.max())
        weight /= weight.sum()
        chances[c] = weight.tolist()
        for some in alike:
            p = np.stack([solved.beliefs[o][part] for o in some], axis=1)  # states of c by variables by their states
            p = np.where(weight[:, None, None] > 0.0, p, 0.0)
            mean = np.einsum("s,sok->ok", weight, p)
            told = np.maximum(_entropy(mean) - weight @ _entropy(p), 0.0)
            told[[k for k, o in enumerate(some) if o == c]] = 0.0
            if by_cause:
                score.update({o: score[o] + x for o, x in zip(some, told.tolist(), strict=True)})
                chances.update(zip(some, mean.tolist(), strict=True))
            else:
                score[c] += float(told.sum())
    return score, chances


def _promising(network: Network, among: list[int], beliefs: Mapping[int, FloatArray]) -> list[int]:
    """The findings with the strongest links to causes that are neither certain nor excluded."""
    open_ = np.full(network.n_units, 0.01)
    for j, p in beliefs.items():
        open_[j] = p[0, 0] * (1.0 - p[0, 0])
    graph = network.graph
    share = np.round(np.abs(edge_strengths(network)), 4) * open_[graph.parent]  # the page has so many digits of them
    score = np.bincount(graph.child_of_edge, share, network.n_units)[among]
    return sorted(among[k] for k in np.argsort(-score, kind="stable")[:TRIES])


def certificate(network: Network, asked: Mapping[str, Any]) -> dict[str, float]:
    """An interval that is certain to hold ln P(evidence)."""
    found = certify(network, evidence_of(network, asked), progress=False, settings=CertifySettings(threads=1))
    if found.upper == -math.inf:
        raise EvidenceError(found.upper_from)
    return {"lower": found.lower, "upper": found.upper}


def intervals(network: Network, asked: Mapping[str, Any]) -> dict[str, list[list[float]]]:
    """Intervals that are certain to hold the probabilities of the states of a few variables."""
    evidence, wanted = evidence_of(network, asked), units_of(network, asked, MOST_INTERVALS)
    inside = posterior_intervals(network, evidence, units=wanted, progress=False, settings=CertifySettings(threads=1))
    found = {}
    for i in wanted:
        own: Any = inside[network.names[i]]
        if not isinstance(own, Mapping):
            low, high = own
            own = {0: (1.0 - high, 1.0 - low), 1: (low, high)}
        found[str(i)] = [[float(low), float(high)] for low, high in own.values()]
    return found


VERBS: dict[str, Callable[[Network, Mapping[str, Any]], Any]] = {
    verb.__name__: verb for verb in (answer, single, reasons, questions, certificate, intervals)
}
"""All that can be asked, by name."""


# --- where elimination is too large -----------------------------------------------------------------------------------


def _key(evidence: Evidence) -> frozenset[tuple[int, Any]]:
    return frozenset(evidence.items())


@lru_cache(maxsize=4)
def _estimate(network: Network, evidence: frozenset[tuple[int, Any]]) -> Posterior:
    """The answer of a solver, kept: after it, the page asks for reasons and for questions."""
    found = infer(network, dict(evidence), solver=MeanField())
    if found.impossible:
        raise EvidenceError(found.impossible)
    return found


def _estimated_reasons(network: Network, evidence: Evidence, about: list[int]) -> dict[str, dict[str, list[float]]]:
    given = evidence if any(isinstance(s, tuple) for s in evidence.values()) else _estimate(network, _key(evidence))
    found = contributions(network, given, about=about, solver=MeanField())
    nats: dict[str, dict[str, list[float]]] = {}
    for i in about:
        own, states = found[network.names[i]], network.states[network.names[i]]
        by_state = {states[0]: {f: -x for f, x in own.items()}, states[1]: own} if len(states) == 2 else own
        nats[str(i)] = {str(network.index(f)): [by_state[state][f] for state in states] for f in found.findings}
    return nats


def _estimated_questions(
    network: Network, evidence: Evidence, about: list[int], among: list[int]
) -> list[dict[str, Any]]:
    given = evidence if any(isinstance(s, tuple) for s in evidence.values()) else _estimate(network, _key(evidence))
    found = next_question(network, given, about=about, among=among, tries=TRIES, solver=MeanField())
    means = _estimate(network, _key(evidence)).means
    numbers = [network.index(q.name) for q in found]
    chances = [probabilities(means[network.columns_of(i)]).tolist() for i in numbers]
    told = zip(numbers, found.information.tolist(), chances, strict=True)
    return [{"unit": i, "information": nats, "chances": p} for i, nats, p in told]


def _log_odds(p: FloatArray) -> FloatArray:
    kept = np.clip(p, EDGE, 1.0 - EDGE)
    odds: FloatArray = np.log(kept) - np.log1p(-kept)
    return odds


def _entropy(p: FloatArray) -> FloatArray:
    """The entropy of distributions along the last axis, in nats."""
    with np.errstate(divide="ignore", invalid="ignore"):
        total: FloatArray = -np.where(p > 0.0, p * np.log(p), 0.0).sum(axis=-1)
    return total


# --- reading a request ------------------------------------------------------------------------------------------------


def _states(network: Network, i: int) -> list[Any]:
    return [as_evidence(network, i, s) for s in range(int(network.n_states[i]))]


def evidence_of(network: Network, asked: Mapping[str, Any]) -> Evidence:
    """Evidence as the page writes it, ``{"3": 1, "5": [0.2, 0.9]}``: the number of a state, or likelihoods of all."""
    given = asked.get("evidence")
    if not isinstance(given, dict):
        raise EvidenceError(f"evidence is {given!r}; give an object such as {{'3': 1}}")
    found: Evidence = {}
    for key, state in given.items():
        unit = unit_of(network, key)
        most = int(network.n_states[unit]) - 1
        if isinstance(state, list):
            if len(state) != most + 1 or not all(isinstance(x, int | float) for x in state):
                raise EvidenceError(f"variable {key!r} is {state!r}; give {most + 1} likelihoods, one for each state")
            found[unit] = tuple(map(float, state))
            continue
        if not isinstance(state, int) or isinstance(state, bool) or not 0 <= state <= most:
            raise EvidenceError(f"variable {key!r} is {state!r}; a state is a number from 0 to {most}")
        found[unit] = as_evidence(network, unit, state)
    return found


def units_of(network: Network, asked: Mapping[str, Any], most: int) -> list[int]:
    """The variables that a request names, each once."""
    units = asked.get("units")
    if not isinstance(units, list) or len(units) > most:
        raise EvidenceError(f"units is {units!r}; give a list of at most {most} numbers of variables")
    return list(dict.fromkeys(unit_of(network, unit) for unit in units))


def unit_of(network: Network, key: Any) -> int:
    """The number of a variable, which JSON may have made a text."""
    if isinstance(key, str) and key.isascii() and key.isdigit() and len(key) < 10:
        key = int(key)
    if not isinstance(key, int) or isinstance(key, bool):
        raise EvidenceError(f"{key!r} is not the number of a variable")
    return network.index(key)
