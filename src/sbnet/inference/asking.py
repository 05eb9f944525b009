"""What was asked and what was solved: starting means on the way in, answers for the network that was asked after."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from sbnet import checks
from sbnet._types import HIDDEN, FloatArray, States
from sbnet.bounds.lower import Breakdown, bound_terms
from sbnet.errors import EvidenceError
from sbnet.inference.solution import Chains, Solution, Xi
from sbnet.questions.question import Part, Question


def check_start(states: States, start: ArrayLike | None) -> FloatArray | None:
    """Starting means for every row and unit, or an error."""
    if start is None:
        return None
    array = checks.numbers("start", start)
    if array.shape not in (states.shape, states.shape[1:]):
        raise EvidenceError(f"start has shape {array.shape}; expected {states.shape}, a mean for every unit")
    point = np.array(np.broadcast_to(array, states.shape))
    used = point[states == HIDDEN]
    if np.any((used < 0.0) | (used > 1.0)):
        raise EvidenceError("starting means must lie between 0 and 1; NaN stands for one half")
    point[np.isnan(point)] = 0.5
    return point


def as_asked(part: Part, solution: Solution) -> Solution:
    """A solution without the units that stand for reports, and with what the reports add to ln P."""
    terms, chains, trace = solution.parameters, solution.chains, solution.trace
    return replace(
        solution,
        bound=part.below(solution.bound),
        means=part.shown(solution.means),
        parameters=None if terms is None else Xi(terms.bound, part.shown(terms.xi, np.nan)),
        chains=None if chains is None else Chains(part.shown(chains.error, 0.0), part.shown(chains.r_hat, 1.0)),
        trace=None if trace is None else trace + part.constant[:, None],
    )


def broken_down(question: Question, means: FloatArray, terms: Xi) -> Breakdown:
    """The bound of one row by term and by unit; a report is part of its unit, and so is what it adds to ln P."""
    (part,) = question.parts
    wide = part.widened(means[None, :], 0.5), part.widened(terms.xi, np.nan)
    parts = [rows[0] for rows in bound_terms(part.network, part.states, *wide, terms.bound)]
    for values in parts:
        np.add.at(values, part.owner, values[part.n_units :])
    energy, log_term, entropy = (values[: part.n_units] for values in parts)
    owners = part.owner if len(part.owner) else np.arange(part.n_units)
    energy[owners[:1]] += part.constant
    return Breakdown(question.network.names, energy, log_term, entropy)
