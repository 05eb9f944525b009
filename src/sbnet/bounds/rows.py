"""Mean field theory for many rows: problems are laid out, and their rows handed to the kernels."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Lock
from typing import NamedTuple

import numpy as np

from sbnet._types import BoolArray, Bound, FloatArray, IndexArray, Model, States, Stop
from sbnet.bounds.layout import lay_out
from sbnet.kernels import terms
from sbnet.kernels.codes import NOISY_OR
from sbnet.kernels.compiling import announce
from sbnet.kernels.gradient import Gradients, add_gradient
from sbnet.kernels.kinds import ENUMERATED, EXACT, JENSEN, LINEAR, QUADRATIC, SERIES, XI
from sbnet.kernels.mean_field import EDGE, ascend, set_weights
from sbnet.kernels.structs import Problem
from sbnet.kernels.terms import LACKS
from sbnet.kernels.terms.frequencies import MAX_NUMBERS, make_room, room_for
from sbnet.quadrature.frequencies import MAX_NODES, nodes
from sbnet.questions.prediction import predict_rows
from sbnet.questions.reduction import reduce

_ROUGH = 1e-2  # nats: how far the paper's bound is taken where it shows which terms to take
_ROOM = 32 << 20  # bytes of problems that are kept for later rows, with other weights


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
    answers.bound[:], answers.sweeps[:], barren = -np.inf, 0, False
    if which.log_term == JENSEN:
        answers.xi[:] = 0.0
    rows = Rows(np.ascontiguousarray(states), np.ascontiguousarray(bias), answers)
    for first, end in _same_mask(states):
        key = (*map(id, _structure(model)), which, (states[first] < 0).tobytes())
        work = _LAID_OUT.take(key) or Work(model, reduce(model, states[first]), which)
        work.use(model.weight)
        solved = first
        while solved < end:
            used, last = work, end if gradients is None else solved + 1
            stopped = work.solve(rows, stop, warm, solved, last)
            if stopped < last:  # the exact term would need too many frequencies
                last, used = stopped + 1, _solve_crowded(model, which, rows, stop, warm, stopped)
            if gradients is not None:
                used.differentiate(rows, gradients, last - 1)
            solved = last
        barren = barren or len(work.problem.hidden) < int((states[first] < 0).sum())
        _LAID_OUT.keep(key, work)
    if which.log_term == JENSEN:
        answers.xi[:] = np.nan
    if answers.trace.shape[1]:  # the best so far: with all frequencies the last is a little above that of its sweep
        answers.trace[np.arange(len(states)), answers.sweeps] = answers.bound
        answers.trace[:] = np.minimum(np.maximum.accumulate(answers.trace, axis=1), answers.bound[:, None])
    if barren:
        predict_rows(model, states, bias, answers.means)


def _same_mask(states: States) -> Iterator[tuple[int, int]]:
    """Stretches of rows in which the same variables are observed: they pose the same problem."""
    if len(states) == 1:
        return iter([(0, 1)])
    hidden = states < 0
    ends = [*(np.flatnonzero((hidden[1:] != hidden[:-1]).any(axis=1)) + 1).tolist(), len(states)]
    return zip([0, *ends[:-1]], ends, strict=True) if len(states) else iter(())


def kinds_of(problem: Problem, which: Bound) -> IndexArray:
    """The kind of each factor: what was asked for, or a sum over the states of its parents where they are few.

    What is cheap for one gate is not for the other.
    """
    noisy = LINEAR if which.log_term in (QUADRATIC, JENSEN) else SERIES
    asked = np.where(problem.factors["gate"] == NOISY_OR, noisy, XI if which.log_term == JENSEN else which.log_term)
    return np.where(problem.factors["joint"] <= 2.0**which.enumerate_up_to, ENUMERATED, asked)


class Scratch(NamedTuple):
    """A number for each column of a problem."""

    root: FloatArray  # what a root says about its states itself
    field: FloatArray
    old: FloatArray
    q: FloatArray


class Rows(NamedTuple):
    """What is known of the rows, and where their answers go."""

    states: States
    bias: FloatArray
    answers: Answers


class Work:
    """A problem laid out for its terms, and the numbers of the row that is being solved."""

    def __init__(self, model: Model, problem: Problem, which: Bound | IndexArray) -> None:
        kinds = kinds_of(problem, which) if isinstance(which, Bound) else which
        self.model, self.problem, problem.factors["kind"] = model, problem, kinds
        present, many = sorted(set(kinds.tolist())), bool((model.n_states > 2).any())
        self.terms = terms.terms_for(set(present), many)
        self.files = [(terms.file_of(kind, many), np.flatnonzero(kinds == kind)) for kind in present]
        self.blocks, self.tiles = lay_out(problem)
        self.numbers, self.places = np.zeros(0), np.zeros(len(self.blocks), np.int64)
        self.scratch, self.weight = Scratch(*np.zeros((4, problem.n_columns))), np.zeros(0)

    def use(self, weight: FloatArray) -> None:
        """Make what depends on the weights, and not on a row; those of a network, which nobody can write to, once."""
        if weight is self.weight and not weight.flags.writeable:
            return
        self.weight, problem, size = weight, self.problem, 0
        set_weights(problem, weight, self.blocks, self.tiles)
        for file, some in self.files:
            if hasattr(file, "room"):
                room = file.room(problem, problem.factors[some])
                problem.factors["table"][some], size = size + np.cumsum(room) - room, size + int(room.sum())
        self.blocks["places"] = 0
        if size or not self.blocks["kept"].any():
            self.numbers, self.blocks["kept"] = np.zeros(size), 0
        for file, _ in self.files:
            if hasattr(file, "prepare"):
                file.prepare(problem, self.blocks, self.tiles, self.numbers)

    def solve(self, rows: Rows, stop: Stop, warm: bool, first: int, end: int, at_all: bool = False) -> int:
        """Solve rows `first` to `end`, or to the one that is returned: there would be too many frequencies.

        Unless `at_all`, nothing is done where some factor would need too many.
        """
        while True:
            first, why = ascend(
                self.terms, self.model.gate, self.model.threshold, self.problem, self.blocks, self.tiles, self.numbers,
                self.places, self.scratch, *rows, stop, warm, at_all, first, end,
            )  # fmt: skip
            if why != LACKS:
                return int(first)
            self.numbers = make_room(self.blocks, self.numbers, self.places)

    def differentiate(self, rows: Rows, gradients: Gradients, r: int) -> None:
        """Add the gradient of the bound of the row that was solved last, times its weight."""
        add_gradient(
            self.terms, self.model, self.problem, self.blocks, self.tiles, self.numbers, self.scratch.q, *rows[:2],
            gradients, r,
        )  # fmt: skip


class _Kept:
    """Problems by what they depend on, the last ones that there is room for; one that is at work is not here.

    In learning, weights alone change. As long as a problem is kept, so are the arrays that its key names.
    """

    def __init__(self) -> None:
        self._works: dict[tuple[object, ...], tuple[Work, int]] = {}
        self._bytes, self._lock = 0, Lock()

    def take(self, key: tuple[object, ...]) -> Work | None:
        with self._lock:
            work, size = self._works.pop(key, (None, 0))
            self._bytes -= size
        return work

    def keep(self, key: tuple[object, ...], work: Work) -> None:
        size = work.blocks.nbytes + work.tiles.nbytes + work.numbers.nbytes
        with self._lock:
            self._bytes += size - self._works.pop(key, (None, 0))[1]  # another thread has had the same
            self._works[key] = work, size
            while self._bytes > _ROOM:  # the oldest make room
                self._bytes -= self._works.pop(next(iter(self._works)))[1]


_LAID_OUT = _Kept()


def _structure(model: Model) -> tuple[object, ...]:
    return model.indptr, model.parent, model.gate, model.n_states, model.block


def _solve_crowded(model: Model, which: Bound, rows: Rows, stop: Stop, warm: bool, r: int) -> Work:
    """Row r, in which the exact term would need too many frequencies.

    The paper's term leads to means, unless they are such already (`warm`), at which the tighter of it and the quadratic
    one takes the place of the exact term where that needs too many.
    """
    problem, asked = reduce(model, rows.states[r]), reduce(model, rows.states[r])
    kinds = kinds_of(problem, which)
    rough = Work(model, problem, np.where(kinds == EXACT, XI, kinds))
    rough.use(model.weight)
    if stop.max_sweeps > 0:  # no state is certain while means move
        rows.answers.means[r] = np.clip(rows.answers.means[r], EDGE, 1.0 - EDGE)
    rough.solve(rows, Stop(max(stop.tol, _ROUGH), 0 if warm else stop.max_sweeps), warm, r, r + 1)
    paper = rough.blocks["t"][problem.factors["block"], problem.factors["lane"]]
    parabola, needs = _needs(problem, rows.bias[r], rough.scratch.q)
    taken = np.where(kinds == EXACT, room_for(problem.factors["slot_end"] - problem.factors["slot"], needs), 0)
    crowded = (kinds == EXACT) & ((needs > MAX_NODES) | (np.cumsum(taken * (needs <= MAX_NODES)) > MAX_NUMBERS))
    work = Work(model, asked, np.where(crowded, np.where(paper <= parabola, XI, QUADRATIC), kinds))
    work.use(model.weight)
    answers, settled = rows.answers, rows.answers.converged[r]
    kept = [column[r].copy() for column in (answers.bound, answers.means, answers.xi, answers.t)]
    for most in dict.fromkeys((stop.max_sweeps, 0)):  # from these means, and at them if that leads to worse ones
        answers.means[r], answers.xi[r], answers.bound[r] = kept[1], np.nan, -np.inf  # nothing is held
        work.solve(rows, stop._replace(max_sweeps=most), warm or most == 0, r, r + 1, at_all=True)
        answers.converged[r] |= settled and most == 0
        if answers.bound[r] >= kept[0]:
            return work
    answers.bound[r], answers.means[r], answers.xi[r], answers.t[r] = kept  # the paper's term was the tighter one
    return rough


def _needs(problem: Problem, bias: FloatArray, q: FloatArray) -> tuple[FloatArray, IndexArray]:
    """For each factor the quadratic term at these means, and how many frequencies the exact term needs."""
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
