"""Answers to the present evidence and to variations of it, with a finding more or with one less."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from sbnet import checks
from sbnet._types import HIDDEN, FloatArray, IndexArray
from sbnet.errors import ParameterError, TooManyHiddenError
from sbnet.inference import MeanField, Posterior, Solver, infer_many
from sbnet.inference.solvers.enumeration import Sums
from sbnet.model import roles
from sbnet.model.network import Network
from sbnet.questions.by_state import columns_at
from sbnet.questions.evidence import OnePattern, as_evidence
from sbnet.questions.question import Question, ask_one
from sbnet.questions.reduction import live_variables
from sbnet.questions.support import refusal

_WORK = 2.0**31
"""Numbers that are multiplied for all rows of variables with states: half a minute."""


class Present(NamedTuple):
    """What is known now: the findings, and answers to them that need not be worked out again."""

    question: Question
    findings: dict[str, Any]  # by name: states, or pairs of likelihoods
    given: Posterior | None  # the answer that came in place of evidence
    known: tuple[Posterior, ...]  # by different solvers

    @classmethod
    def of(cls, network: Network, evidence: OnePattern | Posterior) -> Present:
        """From evidence, or from an answer to it; impossible evidence is refused."""
        given = evidence if isinstance(evidence, Posterior) else None
        if given is not None and given.network != network:
            raise ParameterError("the posterior is that of another network; give one of this network, or evidence")
        if given is not None and given.question is not None:
            raise ParameterError(
                "the posterior has reports or interventions, which it does not tell apart by finding; give the evidence"
            )
        question = ask_one(network, evidence.evidence if isinstance(evidence, Posterior) else evidence, None)
        question.check_possible()
        states = question.states[0]
        found: dict[str, Any] = {
            network.names[i]: as_evidence(network, int(i), states[i]) for i in np.flatnonzero(states != HIDDEN)
        }
        if isinstance(evidence, Mapping):
            soft = {key: value for key, value in evidence.items() if np.ndim(value) > 0 or isinstance(value, Mapping)}
            found |= {network.names[network.index(key)]: value for key, value in soft.items()}
        return cls(question, found, given, () if given is None else (given,))

    def answered(self, solver: Solver, targets: Iterable[str]) -> Posterior | None:
        """The answer that is known, if it is what this solver would say of these units."""
        for one in self.known:
            summed = not isinstance(one.solver, Sums) or one.solver.sums(self.question.network, targets)
            alike = isinstance(one.solver, Sums) and isinstance(solver, Sums)
            alike = alike or (isinstance(one.solver, MeanField) and one.solver == solver)
            if summed and (one.solver is solver or alike):  # other settings are not compared: some are arrays
                return one
        return None


def units_about(present: Present, about: Any) -> list[int]:
    """The numbers of the variables to learn about: those that are named, or the causes that are not observed."""
    network, states = present.question.network, present.question.states[0]
    if about is not None:
        return list(dict.fromkeys(network.index(unit) for unit in checks.units("about", about)))
    return [i for i in roles.causes(network) if states[i] == HIDDEN]


class Answers(NamedTuple):
    """Bounds by row, and means of the variables asked about, rows by columns; the present evidence comes first.

    A variable has a column for each state from the second one on.
    """

    bound: FloatArray
    means: FloatArray
    exact: bool
    sampled: bool


def answers(present: Present, others: list[dict[str, Any]], targets: IndexArray, solver: Solver | None) -> Answers:
    """The answers to the present evidence and to other rows, all by one solver.

    Without a solver it is that of the known answer, or sums over all states; where sums are too large for some row,
    all of them are asked of mean field theory.
    """
    ask = partial(_answers, present, others, targets)
    if solver is None and present.given is not None and not isinstance(present.given.solver, Sums):
        solver = present.given.solver
    if solver is not None:
        return ask(solver)
    try:
        sums = sums_about(present, targets)
        found = ask(replace(sums, work=_WORK / (1 + len(others))))._replace(exact=True)
    except TooManyHiddenError:
        return ask(MeanField())
    if found.bound[0] == -np.inf:
        raise refusal()
    return found


def sums_about(present: Present, targets: IndexArray) -> Sums:
    """Sums over all states in which the means of these variables are exact."""
    return Sums(frozenset(present.question.network.names[i] for i in targets))


def _answers(present: Present, others: list[dict[str, Any]], targets: IndexArray, solver: Solver) -> Answers:
    """What :func:`infer_many` says of the rows; variables that no row has below it are left out, which is exact."""
    network = present.question.network
    names = [network.names[i] for i in targets]
    known = present.answered(solver, names)
    rows = others if known is not None else [present.findings, *others]
    seen = np.full(network.n_units, HIDDEN)
    seen[[network.index(name) for name in {*names, *present.findings, *(name for row in others for name in row)}]] = 1
    small = network.subnetwork(np.flatnonzero(live_variables(network.model, seen) | (seen == 1)).tolist())
    batch = infer_many(small, rows, solver=solver, progress=False)
    bound, means = batch.bound, batch.means[:, columns_at(small, [small.index(name) for name in names])]
    if known is None:
        return Answers(bound, means, False, batch.error is not None)
    bound = np.concatenate([known.solution.bound, bound])
    means = np.concatenate([known.solution.means[:, columns_at(network, targets.tolist())], means])
    return Answers(bound, means, False, batch.error is not None or known.error is not None)
