"""Mean field theory for many rows: problems are laid out, and rows handed to the kernels one after the other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from sbnet._types import BoolArray, Bound, FloatArray, IndexArray, Model, States, Stop
from sbnet.kernels import terms
from sbnet.kernels.codes import NOISY_OR
from sbnet.kernels.compiling import announce
from sbnet.kernels.gradient import Gradients, add_gradient
from sbnet.kernels.kinds import ENUMERATED, EXACT, JENSEN, LINEAR, MAX_NODES, QUADRATIC, SERIES, XI, nodes
from sbnet.kernels.layout import lay_out
from sbnet.kernels.mean_field import EDGE, LEAST, ascend, begin, store
from sbnet.kernels.structs import Problem
from sbnet.kernels.terms.frequencies import MAX_NUMBERS, attend, attune, room_for
from sbnet.questions.prediction import predict_rows
from sbnet.questions.reduction import reduce

_ROUGH = 1e-2  # nats: how far the paper's bound is taken where it shows which terms to take
_ROUNDS = 4  # how often the exact term may be given new frequencies
_FEW = 1e-6  # nats: the exact term makes do with few frequencies until a sweep gains less


class Answers(NamedTuple):
    """Where the answers go, row by row."""

    bound: FloatArray
    means: FloatArray  # rows by columns of all variables; they hold the starting points first
    xi: FloatArray  # rows by thresholds; NaN where the term has no such parameter
    sweeps: IndexArray
    converged: BoolArray
    trace: FloatArray
    t: FloatArray  # rows by thresholds: the terms; no columns, if nobody asks


def solve_rows(
    model: Model, which: Bound, stop: Stop, states: States, bias: FloatArray, warm: bool, answers: Answers,
    gradients: Gradients | None = None,
) -> None:  # fmt: skip
    """Solve every row from its starting point; `warm`: someone has found it, and it deserves a good start.

    An xi that is not NaN at the beginning is held. What the terms of these rows do not need is not compiled, nor what
    differentiates without `gradients`.
    """
    announce(ascend)
    barren = False
    for first, end in _same_mask(states):
        problem = reduce(model, states[first])
        work = Work(model, problem, kinds_of(problem, which))
        for r in range(first, end):
            row = Row(states[r], bias[r], answers.means[r], answers.xi[r], answers.trace[r], answers.t[r])
            used, found = work, work.solve(row, stop, warm)
            if found is None:
                used, found = _solve_crowded(model, which, row, stop, warm)
            answers.bound[r], answers.sweeps[r], answers.converged[r] = found
            if gradients is not None:
                used.differentiate(row, gradients, r)
            barren |= used.store(row)
    if barren:
        predict_rows(model, states, bias, answers.means)


def _same_mask(states: States) -> Iterator[tuple[int, int]]:
    """Stretches of rows in which the same variables are observed: they pose the same problem."""
    hidden = states < 0
    ends = [*(np.flatnonzero((hidden[1:] != hidden[:-1]).any(axis=1)) + 1).tolist(), len(states)]
    return zip([0, *ends[:-1]], ends, strict=True) if len(states) else iter(())


def kinds_of(problem: Problem, which: Bound) -> IndexArray:
    """The kind of each factor: what was asked for, or a sum over the states of its parents where they are few.

    What is cheap for one gate is not for the other.
    """
    noisy = LINEAR if which.log_term in (QUADRATIC, JENSEN) else SERIES
    asked = np.where(problem.factors["gate"] == NOISY_OR, noisy, which.log_term)
    return np.where(problem.factors["joint"] <= 2.0**which.enumerate_up_to, ENUMERATED, asked)


class Row(NamedTuple):
    """What is known of a row, and where its answers go."""

    states: States
    bias: FloatArray
    means: FloatArray
    xi: FloatArray
    trace: FloatArray
    t: FloatArray


class Work:
    """A problem laid out for its terms, and the numbers of the row that is being solved."""

    def __init__(self, model: Model, problem: Problem, kinds: IndexArray) -> None:
        self.model, self.problem, factors = model, problem, problem.factors
        factors["kind"], present, size = kinds, set(np.unique(kinds).tolist()), 0
        many = bool((model.n_states > 2).any())
        self.terms, self.has_frequencies = terms.terms_for(present, many), EXACT in present
        self.blocks, self.tiles = lay_out(problem)
        files = [(terms.file_of(kind, many), np.flatnonzero(kinds == kind)) for kind in sorted(present)]
        for file, some in files:
            if hasattr(file, "room"):
                room = file.room(problem, factors[some])
                factors["table"][some], size = size + np.cumsum(room) - room, size + int(room.sum())
        self.numbers = np.zeros(size)
        for file, _ in files:
            if hasattr(file, "prepare"):
                file.prepare(problem, self.blocks, self.tiles, self.numbers)
        self.root, self.field, self.old, self.q = np.zeros((4, problem.n_columns))

    def solve(
        self, row: Row, stop: Stop, warm: bool, done: int = 0, best: float = -np.inf, *, at_all: bool = False
    ) -> tuple[float, int, bool] | None:
        """The bound, the sweeps and whether they have converged; none, if there would be too many frequencies.

        The exact term makes do with a few frequencies unless the bound is to be taken far, and the bound that counts is
        evaluated with all of them; `done` and `best` are those of sweeps that came before. Where Q has moved so far
        that more are needed, it goes on with those. Unless `at_all`, nothing is done where some factor would need too
        many.
        """
        start = begin(
            self.problem, self.blocks, self.model.gate, self.model.threshold, row.states, row.bias, row.means, row.xi,
            self.q, self.root, EDGE if stop.max_sweeps > 0 else LEAST,
        )  # fmt: skip
        tol, most = stop.tol, stop.max_sweeps
        for turn in range(_ROUNDS if self.has_frequencies else 1):
            if self.has_frequencies:
                self.numbers, enough = attune(
                    self.problem, self.blocks, self.tiles, self.numbers, self.q, turn > 0, at_all or turn > 0
                )
                if enough and turn == 0:
                    return None
                if enough:
                    break
                attend(self.blocks, self.numbers, False, True)
                done, converged, _ = self._ascend(row, start, max(tol, _FEW), most, warm, done, turn == 0)
                attend(self.blocks, self.numbers, True, False)
                if tol < _FEW:
                    done, converged, bound = self._ascend(row, start, tol, most, False, done, False)
                else:  # no sweep, only the bound
                    bound = self._ascend(row, start, tol, done, False, done, False)[2]
            else:
                done, converged, bound = self._ascend(row, start, tol, most, warm, done, True)
            rise, best = bound - best, best if bound <= best else bound  # NaN shows
            if turn > 0 and rise < tol:
                break
        if done < len(row.trace):  # the best so far: with all frequencies the last is a little above that of its sweep
            row.trace[done] = best
            np.minimum(np.maximum.accumulate(row.trace[: done + 1]), best, out=row.trace[: done + 1])
        return best, done, converged

    def _ascend(
        self, row: Row, start: float, tol: float, most: int, warm: bool, done: int, fresh: bool
    ) -> tuple[int, bool, float]:
        found: tuple[int, bool, float] = ascend(
            self.terms, self.problem, self.blocks, self.tiles, self.numbers, self.root, self.field, self.old, self.q,
            start, row.trace, tol, most, warm, done, fresh,
        )  # fmt: skip
        return found

    def differentiate(self, row: Row, gradients: Gradients, r: int) -> None:
        """Add the gradient of the bound of a solved row, times its weight."""
        add_gradient(
            self.terms, self.problem, self.blocks, self.tiles, self.numbers, self.q, self.model, row.states, row.bias,
            gradients, gradients.row_weight[r],
        )  # fmt: skip

    def store(self, row: Row) -> bool:
        """Keep the answers of a solved row; are there variables that had no part in it?"""
        threshold = self.model.threshold
        return bool(store(self.problem, self.blocks, threshold, row.states, self.q, row.means, row.xi, row.t))


def _solve_crowded(
    model: Model, which: Bound, row: Row, stop: Stop, warm: bool
) -> tuple[Work, tuple[float, int, bool]]:
    """A row in which the exact term would need too many frequencies.

    The paper's term leads to means, unless they are such already (`warm`), at which the tighter of it and the quadratic
    one takes the place of the exact term where that needs too many.
    """
    problem = reduce(model, row.states)
    kinds = kinds_of(problem, which)
    rough = Work(model, problem, np.where(kinds == EXACT, XI, kinds))
    loose = Stop(max(stop.tol, _ROUGH), 0 if warm else stop.max_sweeps)
    bound, done, _ = rough.solve(row, loose, warm)  # type: ignore[misc]
    paper = rough.blocks["t"][problem.factors["block"], problem.factors["lane"]]
    parabola, needs = _needs(problem, row.bias, rough.q)
    taken = np.where(kinds == EXACT, room_for(problem.factors["slot_end"] - problem.factors["slot"], needs), 0)
    crowded = (kinds == EXACT) & ((needs > MAX_NODES) | (np.cumsum(taken * (needs <= MAX_NODES)) > MAX_NUMBERS))
    kinds = np.where(crowded, np.where(paper <= parabola, XI, QUADRATIC), kinds)
    rough.store(row)
    row.xi[:] = np.nan  # nothing is held
    work = Work(model, reduce(model, row.states), kinds)
    return work, work.solve(row, stop, warm, done, bound, at_all=True)  # type: ignore[return-value]


def _needs(problem: Problem, bias: FloatArray, q: FloatArray) -> tuple[FloatArray, IndexArray]:
    """Of each factor, the quadratic term at these means, and how many frequencies the exact one needs."""
    factors, slots, first = problem.factors, problem.slots, np.sort(problem.children["slot"])
    w, p, factor = slots["weight"], q[slots["column"]], np.searchsorted(factors["slot"], first, side="right") - 1
    least, most = (np.minimum(np.minimum.reduceat(w, first), 0.0), np.maximum(np.maximum.reduceat(w, first), 0.0))
    mean, second = np.add.reduceat(p * w, first), np.add.reduceat(p * w * w, first)
    parts = least, most, mean, second - mean * mean, (most - least) ** 2
    h, n = bias[factors["threshold"]], len(factors)
    low, high, mean, variance, squares = (np.bincount(factor, part, n) for part in parts)
    low, high, mean, variance = low + h, high + h, mean + h, np.maximum(variance, 0.0)
    largest = np.zeros(n)
    np.maximum.at(largest, factor, most - least)
    c = np.sqrt(mean * mean + variance)  # the best parabola touches there
    needs = np.array([nodes(*map(float, one)) for one in zip(low, high, mean, variance, largest, squares, strict=True)])
    return 0.5 * (mean + c) + np.log1p(np.exp(-c)), needs
