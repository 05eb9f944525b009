"""Many patterns: one problem after the other, each row on its own."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from sbnet._types import BoolArray, Bound, FloatArray, IndexArray, Model, States, Stop
from sbnet.kernels import newterms
from sbnet.kernels.bound_gradient import Gradients, add_gradient
from sbnet.kernels.compiling import announce, inner, kernel
from sbnet.kernels.kinds import EXACT, XI
from sbnet.kernels.layout import lay_out
from sbnet.kernels.mean_field import FEW, ROUNDS, Scratch, ascend, begin, bound_at, entropy_of
from sbnet.kernels.newterms import xi
from sbnet.kernels.newterms.choice import choose, kind_for, other_kinds
from sbnet.kernels.prediction import predict_rows
from sbnet.kernels.reduction import reduced
from sbnet.kernels.structs import Problem

_ROUGH = 1e-2  # nats: how far the paper's bound is taken where it shows which terms to take
_AS_ASKED = np.zeros(0, np.int64)


class Answers(NamedTuple):
    """Where the answers go, row by row."""

    bound: FloatArray
    means: FloatArray  # rows by columns of all variables; they hold the starting points first
    xi: FloatArray  # rows by thresholds; NaN where the term has no such parameter
    sweeps: IndexArray
    converged: BoolArray
    trace: FloatArray


def solve_rows(
    model: Model, which: Bound, stop: Stop, states: States, bias: FloatArray, warm: bool, answers: Answers,
    gradients: Gradients | None = None,
) -> None:  # fmt: skip
    """Solve every row from its starting point; `warm`: someone has found it, and it deserves a good start.

    What the terms of these rows do not need is not compiled, nor what differentiates without `gradients`.
    """
    announce(ascend_rows)
    kinds, row, barren = _likely_kinds(which, model), 0, False
    while row < len(states):
        call = model, which, _AS_ASKED, stop, states, bias, warm, answers, gradients, row, 0
        row, missing, more = _ascend(kinds, *call)
        barren = barren or more
        kinds = kinds | {kind for kind in range(missing.bit_length()) if missing >> kind & 1}
        if row < len(states) and not missing:
            _solve_crowded(model, which, stop, states, bias, warm, answers, gradients, row)
            row += 1
    if barren:
        predict_rows(model, states, bias, answers.means)


def _likely_kinds(which: Bound, model: Model) -> set[int]:
    """The kinds of factors whose parents are all hidden, with the fewest parents and with the most."""
    child = np.repeat(np.arange(len(model.gate)), np.diff(model.indptr))
    log_joint = np.bincount(child, np.log2(model.n_states[model.parent]), len(model.gate))
    kinds = set()
    for gate in np.unique(model.gate[log_joint > 0.0]):
        some = log_joint[(log_joint > 0.0) & (model.gate == gate)]
        kinds |= {kind_for(which, int(gate), 2.0 ** min(bits, 1000.0)) for bits in (some.min(), some.max())}
    return kinds


def _solve_crowded(
    model: Model, which: Bound, stop: Stop, states: States, bias: FloatArray, warm: bool, answers: Answers,
    gradients: Gradients | None, row: int,
) -> None:  # fmt: skip
    """Solve a row in which the exact term would need too many frequencies.

    The paper's term leads to means at which others are chosen in place of it; if `warm`, the means are such already.
    """
    here = slice(row, row + 1)
    states, bias, answers = states[here], bias[here], Answers(*(array[here] for array in answers))
    weights = gradients and gradients._replace(row_weight=gradients.row_weight[here])
    kinds, rough, done = _likely_kinds(which, model) | {XI}, -math.inf, 0
    if not warm:
        cheap, loose = Bound(XI, which.enumerate_up_to), Stop(max(stop.tol, _ROUGH), stop.max_sweeps)
        _until_served(kinds - {EXACT}, model, cheap, _AS_ASKED, loose, states, bias, warm, answers, None, 0, 0)
        rough, done = float(answers.bound[0]), int(answers.sweeps[0])
    replaced = other_kinds(model, which, states[0], bias[0], answers.means[0])
    kinds |= set(replaced[replaced >= 0].tolist())
    _until_served(kinds, model, which, replaced, stop, states, bias, warm, answers, weights, 0, done)
    answers.bound[0] = max(rough, answers.bound[0])


def _until_served(kinds: set[int], *call: Any) -> None:
    """Solve one row, with more terms where some are missing."""
    missing = 1
    while missing:
        _, missing, _ = _ascend(kinds, *call)
        kinds = kinds | {kind for kind in range(missing.bit_length()) if missing >> kind & 1}


def _ascend(kinds: set[int], model: Model, *call: Any) -> tuple[int, int, bool]:
    """Call the kernel with the terms that serve these kinds."""
    terms = newterms.terms_for(kinds, bool((model.n_states > 2).any()))
    served = sum(1 << kind for kind in newterms.served_by(terms))
    row, missing, barren = ascend_rows(terms, served, model, *call)
    return int(row), int(missing), bool(barren)


@inner
def _same_mask(states: States, r: int) -> bool:
    """Are the same variables observed in row r as in the row before?"""
    for v in range(states.shape[1]):  # noqa: SIM110 (kernels have no generators)
        if (states[r, v] < 0) != (states[r - 1, v] < 0):
            return False
    return True


@inner
def _store(
    model: Model, problem: Problem, blocks: np.ndarray, states: States, q: FloatArray, means: FloatArray,
    parameter: FloatArray,
) -> bool:  # fmt: skip
    """The results of a row, but for its barren variables, which are NaN; are there any?"""
    hidden, factors, threshold, n_hidden = problem.hidden, problem.factors, model.threshold, 0
    for v in range(len(states)):
        n_hidden += 1 if states[v] < 0 else 0
        for k in range(threshold[v], threshold[v + 1]):
            means[k], parameter[k] = math.nan if states[v] < 0 else 0.0, math.nan
        if states[v] > 0:
            means[threshold[v] + states[v] - 1] = 1.0
    for j in range(len(hidden)):
        one = hidden[j]
        for k in range(one.column, one.column_end):
            means[threshold[one.variable] + k - one.column] = q[k]
    for f in range(len(factors)):
        if factors[f].kind in xi.SERVES:
            parameter[factors[f].threshold] = blocks[factors[f].block].xi[factors[f].lane]
    return n_hidden > len(hidden)


@inner
def _tidy(trace: FloatArray, done: int, best: float) -> None:
    """The best bound so far after each sweep: with all frequencies the last is a little above that of its sweep."""
    if done < len(trace):
        trace[done] = best
    for k in range(1, min(done + 1, len(trace))):
        trace[k] = min(max(trace[k], trace[k - 1]), best)


@kernel
def ascend_rows(
    terms: Any, served: int, model: Model, which: Bound, kinds: IndexArray, stop: Stop, states: States,
    bias: FloatArray, warm: bool, answers: Answers, gradients: Gradients | None, first: int, done: int,
) -> tuple[int, int, bool]:  # fmt: skip
    """Solve the rows from `first` on, with terms that serve some kinds; `done`: sweeps that came before.

    Returns the first row that could not be solved, the kinds that it lacks, none if it would need too many frequencies;
    and are there barren variables?

    The exact term makes do with a few frequencies unless the bound is to be taken far, and the bound that counts is
    evaluated with all of them. Where Q has moved so far that more are needed, it goes on with those.
    """
    verbs, barren = newterms.verbs(terms), False
    while first < len(states):  # rows with the same variables observed pose the same problem
        problem = reduced(model, states[first])
        found = choose(problem, which, kinds)
        if found & ~served != 0:
            return first, found & ~served, barren
        blocks, tiles = lay_out(problem)
        size = 0
        for f in range(len(problem.factors)):
            problem.factors[f].table = size
            size += verbs.room(problem, problem.factors[f])
        numbers, q, root = np.zeros(size), np.zeros(problem.n_columns), np.zeros(problem.n_columns)
        scratch = Scratch(root, np.zeros(problem.n_columns), np.zeros(problem.n_columns))
        verbs.prepare(problem, blocks, tiles, numbers)
        wavy, r = found >> EXACT & 1 == 1, first
        while r < len(states) and (r == first or _same_mask(states, r)):
            constant = begin(problem, blocks, model, states[r], bias[r], answers.means[r], q, root)
            turn, whole, best, sweeps = 0, not wavy, -np.inf, done
            numbers, enough = verbs.attune(problem, blocks, tiles, numbers, q, turn > 0, len(kinds) > 0)
            if enough:
                return r, 0, barren
            while not enough:
                verbs.attend(problem, blocks, numbers, whole)
                tol = stop.tol if whole else max(stop.tol, FEW)
                sweeps, converged, bound = ascend(
                    verbs, problem, blocks, tiles, numbers, scratch, q, constant, answers.trace[r], tol,
                    stop.max_sweeps, warm, sweeps,
                )  # fmt: skip
                if wavy and not whole and stop.tol < FEW:
                    whole = True
                    continue
                if wavy:
                    verbs.attend(problem, blocks, numbers, turn >= 0)
                    verbs.final(problem, blocks, tiles, numbers, q)
                    bound = constant + entropy_of(problem.hidden, q) + bound_at(problem.hidden, blocks, root, q)
                turn, rise, best = turn + 1, bound - best, best if bound <= best else bound  # NaN shows
                enough = not wavy or turn == ROUNDS or (turn > 1 and rise < stop.tol)
                if not enough:
                    numbers, enough = verbs.attune(problem, blocks, tiles, numbers, q, turn > 0, turn > 0)
                whole = not wavy
            answers.bound[r], answers.sweeps[r], answers.converged[r] = best, sweeps, converged
            _tidy(answers.trace[r], sweeps, best)
            if gradients is not None:
                by_slot, by_factor = np.zeros(len(problem.slots)), np.zeros(len(problem.factors))
                verbs.gradient(problem, blocks, tiles, numbers, q, by_slot, by_factor)
                add_gradient(model, problem, blocks, states[r], bias[r], q, by_slot, by_factor, gradients, r)
            if _store(model, problem, blocks, states[r], q, answers.means[r], answers.xi[r]):
                barren = True
            r += 1
        first = r
    return first, 0, barren
