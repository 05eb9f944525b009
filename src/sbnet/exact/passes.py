"""The passes of variable elimination: up for the sum, down for its derivatives, which are the posteriors.

They run over tables with an axis of rows in front, in one of three semirings: probabilities with sums, logarithms with
sums, logarithms with maxima. Probabilities are scaled by powers of two, which changes no digit.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from sbnet._types import BoolArray, FloatArray
from sbnet.exact.factors import Cause
from sbnet.exact.planning import Step

_LOWEST = -700.0
"""Logarithms of probabilities that count as zero, unless ln P(evidence) is so low that they could matter."""
_SPAN = 600.0
"""The largest span of products, in nats, that doubles hold safely."""
_DIM = 1e-250
"""A share of a scaled sum so small that digits may be lost."""
ROOM = 1 << 24
"""Numbers that are kept for the pass down; where there are more, stretches of the pass up are gone through again."""


class Semiring(NamedTuple):
    """How terms are joined, and added up."""

    times: Any
    plus: Any
    one: float


SUMS = Semiring(np.multiply, np.add, 1.0)
LOGS = Semiring(np.add, np.logaddexp, 0.0)
MAXIMA = Semiring(np.add, np.maximum, 0.0)


class Work(NamedTuple):
    """A step, with the axes of its product."""

    step: Step
    joint: tuple[int, ...]  # the variables of the product: the one that is summed out comes first
    sizes: tuple[int, ...]  # how many states they have
    shapes: tuple[tuple[int, ...], ...]  # of the inputs within the product: 1 for variables that they do not have
    slices: tuple[slice, ...]  # the states of the first variable: all at once, or one by one
    user: int  # the step that uses the result, or -1


class Numbers(NamedTuple):
    """The tables that are given, what causes do to accumulators, and ln of what was taken out of them."""

    tables: list[FloatArray]
    causes: dict[tuple[int, int], Cause]
    log_scale: FloatArray
    span: list[FloatArray]  # at most, of the logarithms in each table, by row
    span_of: dict[tuple[int, int], FloatArray]  # likewise of causes
    dropped: BoolArray  # rows in which something counts as zero that is not


def scaled(tables: Sequence[FloatArray], causes: dict[tuple[int, int], Cause], constant: FloatArray) -> Numbers:
    """Logarithms as probabilities; those of e^-700 and less are zero."""
    log_scale, dropped, found, spans = constant.copy(), np.zeros(len(constant), np.bool_), [], []
    for log in tables:
        top = _most(log)
        top[top == -np.inf] = 0.0
        p, span, low = _plain(log - _wide(top, log.ndim))
        found.append(p)
        spans.append(span)
        log_scale += top
        dropped |= low
    plain, span_of = dict[tuple[int, int], Cause](), dict[tuple[int, int], FloatArray]()
    for pair, one in causes.items():
        p, span, low = _plain(np.stack([*one.kept, *one.hit], axis=-1))
        n = len(one.kept)
        plain[pair] = Cause(tuple(p[..., z] for z in range(n)), tuple(p[..., n + z] for z in range(n)))
        span_of[pair] = span
        dropped |= low
    return Numbers(found, plain, log_scale, spans, span_of, dropped)


def _plain(log: FloatArray) -> tuple[FloatArray, FloatArray, BoolArray]:
    """e to the power of numbers up to 0, the span of those that are not zero, and whether others were dropped."""
    low, axes = log < _LOWEST, tuple(range(1, log.ndim))
    high = np.where(low, 0.0, log)
    p = np.exp(high)
    p[low] = 0.0
    return p, np.asarray(-high.min(axis=axes)), np.asarray((low & (log > -np.inf)).any(axis=axes))


def _most(table: FloatArray) -> FloatArray:
    """The largest number of each row."""
    top: FloatArray = table.max(axis=tuple(range(1, table.ndim))) if table.ndim > 1 else table.copy()
    return top


def _wide(by_row: FloatArray, ndim: int) -> FloatArray:
    return by_row.reshape(-1, *[1] * (ndim - 1))


def _fitted(table: FloatArray) -> tuple[FloatArray, FloatArray]:
    """A table divided by powers of two, so that the largest number of each row is about 1; and their logarithms."""
    power = np.frexp(_most(table))[1]
    if (np.abs(power) <= 32).all():
        return table, np.zeros(1)
    power[np.abs(power) <= 32] = 0  # a row does not depend on its neighbours
    return np.ldexp(table, -_wide(power, table.ndim)), power * math.log(2.0)


def _span(table: FloatArray) -> FloatArray:
    """How far the logarithms of the numbers of each row that are not zero lie from 0 at most."""
    axes = tuple(range(1, table.ndim))
    least, most = np.where(table > 0.0, table, np.inf).min(axis=axes), table.max(axis=axes)
    with np.errstate(divide="ignore"):
        span: FloatArray = np.where(most > 0.0, np.maximum(-np.log(least), np.log(most)), 0.0)
    return span


class Passes:
    """The passes up and down, for some rows and one semiring."""

    def __init__(self, work: Sequence[Work], numbers: Numbers, semiring: Semiring) -> None:
        self.work, self.numbers, self.semiring = work, numbers, semiring
        self.tables, self.n_given = list[Any](numbers.tables), len(numbers.tables)
        self.span, self.log_p = list(numbers.span), numbers.log_scale.copy()
        self.risky = np.zeros(len(self.log_p), np.bool_)  # rows that doubles may not span
        self.saved, self.stretch = dict[int, list[Any]](), 0

    def up(self, *, keep: bool = False) -> None:
        """ln P; tables go when they have been used, but for what is kept: all, or those at the beginnings of stretches.

        So memory grows with the square root of the number of steps, where tables are large.
        """
        n, room = len(self.work), sum(math.prod(work.sizes) for work in self.work) * len(self.log_p)
        self.stretch = n + 1 if room <= ROOM else math.isqrt(n) + 1
        for k, (step, *_) in enumerate(self.work):
            if keep and k % self.stretch == 0:
                self.saved[k] = self.tables if self.stretch > n else list(self.tables)
            out = self._sum_out(k)
            if self.semiring is SUMS:
                out = self._scale(k, out)
            if not keep or self.stretch <= n:
                for t in step.inputs:
                    self.tables[t] = None
            self.tables.append(out)
            if not step.scope:
                with np.errstate(divide="ignore"):
                    self.log_p += np.log(out) if self.semiring is SUMS else out

    def back(self) -> Iterator[int]:
        """The steps from the last to the first, with their inputs in `tables`: stretches are gone through again."""
        for first in reversed(self.saved):
            self.tables, steps = self.saved[first], range(first, min(first + self.stretch, len(self.work)))
            for k in steps if self.stretch <= len(self.work) else ():
                out = self._sum_out(k)
                self.tables.append(_fitted(out)[0] if self.semiring is SUMS else out)
            yield from reversed(steps)

    def posteriors(self, wanted: Iterable[int]) -> dict[int, FloatArray]:
        """Posteriors of some variables, rows by states: the derivatives of the sum, by a pass up and one down."""
        chosen, needed = set(wanted), set[int]()
        for k in (k for k, work in enumerate(self.work) if work.step.variable in chosen):
            while k >= 0 and k not in needed:
                needed.add(k)
                k = self.work[k].user
        self.up(keep=True)
        found, back = dict[int, FloatArray](), dict[int, FloatArray]()
        for k in self.back():
            if k in needed:
                variable = self.work[k].step.variable
                belief = self._share(k, back.pop(k, np.full(1, self.semiring.one)), back, needed)
                if variable in chosen:
                    found[variable] = self._normalised(belief)
        return found

    def _scale(self, k: int, out: FloatArray) -> FloatArray:
        """Keep a table within the range of doubles; rows in which products may have left it are risky."""
        step, span_of = self.work[k].step, self.numbers.span_of
        passed = sum((span_of[pair] for pair in step.passed), np.zeros(1))
        span = sum((self.span[t] for t in step.inputs), passed)
        if (span > _SPAN).any():  # bounds add up; look at what is there
            span = sum((_span(self.tables[t]) for t in step.inputs), passed)
            self.risky |= span > _SPAN
        out, log = _fitted(out)
        self.log_p += log
        self.span.append(span + 64.0)
        return out

    def _inputs(self, k: int, part: slice) -> list[FloatArray]:
        """The inputs of a step, with axes for all variables of its product, for some states of the first."""
        found = []
        for t, shape in zip(self.work[k].step.inputs, self.work[k].shapes, strict=True):
            table = self.tables[t].reshape(-1, *shape)
            found.append(table[:, part] if shape and shape[0] > 1 else table)
        return found

    def _sum_out(self, k: int) -> FloatArray:
        step, plus, out = self.work[k].step, self.semiring.plus, None
        for part in self.work[k].slices:
            term = self._product(sorted(self._inputs(k, part), key=lambda table: table[0].size))
            if step.passed:
                term = self._full(k, term, part)
                for y, u in step.passed:
                    _pass_up(self.semiring, *self._passing(k, term, y, u, part))
            if step.variable >= 0:
                term = self._along(term, 1)
            out = term if out is None else plus(out, term)
        assert out is not None
        return out

    def _product(self, tables: Sequence[FloatArray]) -> FloatArray:
        return functools.reduce(self.semiring.times, tables)

    def _along(self, term: FloatArray, axis: int) -> FloatArray:
        """The sum along an axis, from first to last: NumPy's own order varies with the number of rows."""
        total: FloatArray = functools.reduce(self.semiring.plus, np.moveaxis(term, axis, 0))
        return total

    def _full(self, k: int, term: FloatArray, part: slice) -> FloatArray:
        """A copy with an axis of full length for each variable of the product."""
        step, _, sizes, *_ = self.work[k]
        if step.variable >= 0:
            sizes = (len(range(sizes[0])[part]), *sizes[1:])
        rows = max(len(term), *(len(self.numbers.causes[pair].kept[0]) for pair in step.passed))
        return np.array(np.broadcast_to(term, (rows, *sizes)))

    def _passing(
        self, k: int, term: FloatArray, y: int, u: int, part: slice
    ) -> tuple[FloatArray, list[FloatArray], list[FloatArray]]:
        """A product with the states of an accumulator in front, and what a cause does to it."""
        joint, cause = self.work[k].joint, self.numbers.causes[y, u]
        shape = [-1 if v == u else 1 for v in joint if v != y]
        kept, hit = ([p.reshape(len(p), *shape) for p in numbers] for numbers in (cause.kept, cause.hit))
        if joint[0] == u:
            kept, hit = ([p[:, part] for p in numbers] for numbers in (kept, hit))
        return np.moveaxis(term, joint.index(y) + 1, 0), kept, hit

    def _share(self, k: int, above: FloatArray, back: dict[int, FloatArray], needed: set[int]) -> FloatArray:
        """From the derivative by the result of a step those by its inputs; and the share of each state."""
        step, _, sizes, shapes, slices, _ = self.work[k]
        later = [i for i, t in enumerate(step.inputs) if t - self.n_given in needed]
        with_it = next((i for i in later if step.variable >= 0 and shapes[i][0] > 1), -1)
        shares, gradients = list[FloatArray](), {i: list[FloatArray]() for i in later}
        for part in slices:
            out = above if step.variable < 0 else above[:, None]
            if step.passed:
                out = self._full(k, out, part)
                for y, u in reversed(step.passed):
                    _pass_down(self.semiring, *self._passing(k, out, y, u, part))
            inputs = self._inputs(k, part)
            for i in later:
                others = [table for j, table in enumerate(inputs) if j != i]
                gradient = self._summed(self._product([*others, out]), inputs[i].shape)
                gradients[i].append(np.broadcast_to(gradient, (len(gradient), *inputs[i].shape[1:])))
            whole = (gradients[with_it][-1], inputs[with_it]) if with_it >= 0 else (*inputs, out)
            if step.variable >= 0:
                shares.append(self._summed(self._product(whole), (0, 2, *[1] * (len(sizes) - 1))))
        for i, parts in gradients.items():
            t = step.inputs[i] - self.n_given
            split = step.variable >= 0 and shapes[i][0] > 1
            total = np.concatenate(parts, axis=1) if split else functools.reduce(self.semiring.plus, parts)
            scope = self.work[t].step.scope
            total = total.reshape(
                len(total), *(n for v, n in zip(self.work[k].joint, sizes, strict=True) if v in scope)
            )
            back[t] = _fitted(total)[0] if self.semiring is SUMS else total
        return np.concatenate(shares, axis=1).reshape(-1, sizes[0]) if shares else above

    def _summed(self, term: FloatArray, shape: tuple[int, ...]) -> FloatArray:
        """The sum over the axes that have the length 1 in a shape."""
        for axis in range(1, term.ndim):
            if shape[axis] == 1 and term.shape[axis] > 1:
                term = np.expand_dims(self._along(term, axis), axis)
        return term

    def _normalised(self, belief: FloatArray) -> FloatArray:
        if self.semiring is not SUMS:
            belief = np.exp(belief - np.maximum(belief.max(axis=1, keepdims=True), -1e300))
        total = functools.reduce(np.add, belief.T)
        if self.semiring is SUMS:
            self.risky |= ~(total > _DIM)
        with np.errstate(invalid="ignore"):  # impossible evidence
            shares: FloatArray = belief / total[:, None]
        return np.broadcast_to(shares, (len(self.log_p), belief.shape[1]))


def _pass_up(semiring: Semiring, t: FloatArray, kept: Sequence[FloatArray], hit: Sequence[FloatArray]) -> None:
    """A cause passes an accumulator, whose states are the first axis: the largest so far is z, or less and z is hit."""
    times, plus, _ = semiring
    below, last = t[0], len(t) - 1
    for z in range(1, last + 1):
        fresh = times(below, hit[z])
        if z < last:
            below = plus(below, t[z])
            times(t[z], kept[z], out=t[z])
        plus(t[z], fresh, out=t[z])
    times(t[0], kept[0], out=t[0])


def _pass_down(semiring: Semiring, t: FloatArray, kept: Sequence[FloatArray], hit: Sequence[FloatArray]) -> None:
    """The transpose of :func:`_pass_up`."""
    times, plus, _ = semiring
    last = len(t) - 1
    above = times(t[last], hit[last])
    for z in range(last - 1, -1, -1):
        fresh = times(t[z], hit[z]) if z else above
        times(t[z], kept[z], out=t[z])
        plus(t[z], above, out=t[z])
        above = plus(above, fresh)
