"""How much the answers to questions are expected to tell: exactly, from samples of the posterior, or by a solver."""

from __future__ import annotations

import contextlib
from functools import partial
from typing import NamedTuple

import numpy as np

from sbnet._types import HIDDEN, FloatArray, IndexArray, States
from sbnet.decisions.answers import Answers, Present, answers
from sbnet.errors import TooManyHiddenError
from sbnet.exact.probability import entropy_of
from sbnet.exact.sparse import Sum
from sbnet.inference import Solver
from sbnet.inference.solvers.enumeration import WIDE, Sums
from sbnet.inference.solvers.families import shares
from sbnet.model.network import Network
from sbnet.questions.by_state import columns_at, probabilities
from sbnet.questions.evidence import as_evidence
from sbnet.questions.reduction import live_variables
from sbnet.questions.support import refusal

_NOTHING = 1e-9
"""Nats: what is less than this is the rounding of a solver, and no information."""
_WORK = 2.0**28
"""Numbers that are multiplied for the exact answers to all questions about variables with states: some seconds."""
_WIDEST = 24
"""The logarithm to base 2 of the largest table, 128 MB, from which samples are drawn, where those are more."""
_DRAWN = 1 << 15
"""Samples of the posterior then."""


class Told(NamedTuple):
    """The summed entropies before the answer; the information of each question, and its probability of a yes."""

    entropy: float
    information: FloatArray
    probability: FloatArray
    exact: bool


def information(present: Present, candidates: IndexArray, targets: IndexArray, solver: Solver | None) -> Told:
    """What each candidate tells about the targets; :func:`sbnet.next_question` says what that is."""
    network = present.question.network
    summed = solver is None and (present.given is None or isinstance(present.given.solver, Sums))
    if summed and not network.is_binary and len(candidates):
        with contextlib.suppress(TooManyHiddenError):  # a table of a gate's parents may be, where the gate is none
            return _by_one_order(present, candidates, targets)
    rows = [
        present.findings | {network.names[f]: as_evidence(network, int(f), state)}
        for f, n in zip(candidates, network.n_states[candidates], strict=True)
        for state in range(n)
    ]
    return _from_answers(network, candidates, targets, answers(present, rows, targets, solver))


def _from_answers(network: Network, candidates: IndexArray, targets: IndexArray, found: Answers) -> Told:
    """From the answers to the present evidence, and to each state of each candidate."""
    entropy = partial(summed_entropy, network, targets.tolist())
    told, yes = np.zeros(len(candidates)), np.zeros(len(candidates))
    for k, own in enumerate(_places(network, candidates)):
        p = shares(found.bound[own][None, :])[0]
        means = np.where(p[:, None] > 0.0, found.means[own], 0.0)  # an answer that cannot be has none, and no weight
        told[k] = entropy((p @ means)[None, :])[0] - p @ entropy(means)
        yes[k] = p[1:].sum()
    before = float(entropy(found.means[:1])[0])
    return Told(before, np.where(told < _NOTHING, 0.0, told), yes, found.exact)


def _places(network: Network, candidates: IndexArray) -> list[IndexArray]:
    """The rows of the states of each candidate, behind one for the present evidence."""
    end = 1 + np.cumsum(network.n_states[candidates])
    return [np.arange(e - n, e) for e, n in zip(end, network.n_states[candidates], strict=True)]


def summed_entropy(network: Network, variables: list[int], means: FloatArray) -> FloatArray:
    """The summed entropy of some variables in each row of means."""
    size = network.n_states[variables] - 1
    begin = np.cumsum(size) - size
    total: FloatArray = entropy_of(means[:, begin[size == 1]]).sum(axis=1)
    for k in np.flatnonzero(size > 1):
        p = np.clip(probabilities(means[:, begin[k] : begin[k] + size[k]]), 0.0, 1.0)
        total -= (p * np.log(np.maximum(p, 1e-300))).sum(axis=1)
    return total


# --- variables with states, by one order of elimination for all answers -----------------------------------------------


def _by_one_order(present: Present, candidates: IndexArray, targets: IndexArray) -> Told:
    """Exactly, if that is feasible for all answers; else from samples of the exact posterior."""
    part, asked = present.question.parts[0], np.union1d(candidates, targets)
    network, row = part.network, part.states[0]
    seen = row.copy()
    seen[asked] = 0
    variables, places = np.flatnonzero(live_variables(network.model, seen)).tolist(), _places(network, candidates)
    try:
        one = Sum(network, row[None, :], variables, _WIDEST, soft=candidates.tolist())
    except TooManyHiddenError:  # an order is found step by step, and that of all variables may be the better one
        one = Sum(network, row[None, :], range(len(row)), _WIDEST, soft=candidates.tolist())
    if one.plan.bits > WIDE or one.plan.work * (places[-1][-1] + 1) > _WORK:
        unasked = {f: np.ones((1, n)) for f, n in zip(candidates.tolist(), network.n_states[candidates], strict=True)}
        if one.solve(row[None, :], (), unasked).log_p[0] == -np.inf:
            raise refusal()
        return _from_samples(network, _drawn(network, row, one.variables), candidates, targets)
    likelihoods = {}
    for f, own in zip(candidates.tolist(), places, strict=True):
        likelihoods[f] = np.ones((places[-1][-1] + 1, len(own)))
        likelihoods[f][own] = np.eye(len(own))
    hidden = [v for v in targets.tolist() if row[v] == HIDDEN]
    found = one.solve(np.repeat(row[None, :], places[-1][-1] + 1, axis=0), hidden, likelihoods)
    if found.log_p[0] == -np.inf:
        raise refusal()
    means = np.zeros((len(found.log_p), len(columns_at(network, targets.tolist()))))
    begin = 0
    for v in targets.tolist():
        n = int(network.n_states[v]) - 1
        known = np.eye(n + 1)[[row[v]]] if row[v] != HIDDEN else found.posteriors[v]
        means[:, begin : begin + n] = known[:, 1:]
        begin += n
    return _from_answers(network, candidates, targets, Answers(found.log_p, means, True, False))


def _drawn(network: Network, row: States, variables: list[int]) -> States:
    """Samples of the posterior, the same ones each time."""
    return Sum(network, row[None, :], variables, _WIDEST, maximum=True).draw(row, _DRAWN, np.random.default_rng(0))


def _from_samples(network: Network, drawn: States, candidates: IndexArray, targets: IndexArray) -> Told:
    """From samples: relative frequencies, with the mean by which those of independent variables seem to tell."""
    entropy = np.array([_entropy_of_codes(drawn[:, v].astype(np.int64)) for v in targets]).reshape(-1, 2)
    told, yes = np.zeros(len(candidates)), (drawn[:, candidates] > 0).mean(axis=0)
    for k, f in enumerate(candidates):
        code = drawn[:, f].astype(np.int64)
        own, n_own = _entropy_of_codes(code)
        for v, (alone, n_alone) in zip(targets, entropy, strict=True):
            both, n_both = _entropy_of_codes(code * int(network.n_states[v]) + drawn[:, v])
            seeming = (n_both - n_own - n_alone + 1) / (2 * len(drawn))  # Miller (1955)
            told[k] += max(own + alone - both - seeming, 0.0)
    return Told(float(entropy[:, 0].sum()), told, yes, False)


def _entropy_of_codes(codes: IndexArray) -> tuple[float, int]:
    """The entropy of relative frequencies, and how many numbers there are."""
    count = np.bincount(codes)
    p = count[count > 0] / len(codes)
    return -float(p @ np.log(p)), len(p)
