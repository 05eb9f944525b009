r"""Exact answers by variable elimination: sums over the states of hidden variables, in an order that keeps tables small.

`plan` decides the order from which variables are observed; its cost is known before anything is computed. One pass up
gives ln P(evidence); the derivatives of that sum, one pass down, are the posteriors of all variables; with maxima in the
place of sums it is the most probable explanation. Rows of evidence on the same variables share a plan, and are worked on
side by side: every table has an axis of rows in front.

Tables are probabilities, scaled by powers of two; no term is negative, so nothing cancels. Where the numbers of a row
span more than doubles do, its sums are taken again in logarithms.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from sbnet._types import BoolArray, FloatArray, IndexArray, States
from sbnet.errors import TooManyHiddenError, enumerated
from sbnet.exact import factors
from sbnet.exact.factors import Cause, Family
from sbnet.exact.planning import Order, TooWide, best_order, members
from sbnet.kernels.codes import NOISY_OR

LIMIT = 25
"""The logarithm to base 2 of the largest table, by default."""
_FEW = 2
"""Hidden parents up to which a noisy-MAX variable is a table over them."""
_WHOLE = 1 << 14
"""Numbers in a table from which on the states of a variable are summed one after the other."""
_AT_ONCE = 1 << 21
"""Numbers in the largest table of all rows that are worked on at once."""
_LOWEST = -700.0
"""Logarithms of probabilities that count as zero, unless ln P(evidence) is so low that they could matter."""
_UNLIKELY = -600.0
_SPAN = 600.0
"""The largest span of products, in nats, that doubles hold safely."""
_DIM = 1e-250
"""A share of a scaled sum so small that digits may be lost."""

Likelihoods = Mapping[int, FloatArray]
"""Soft evidence: the likelihood of each state of a variable, (K,), or for each row (rows, K)."""


class _Semiring(NamedTuple):
    """How terms are joined, and added up."""

    times: Any
    plus: Any
    one: float


_SUMS = _Semiring(np.multiply, np.add, 1.0)
_LOGS = _Semiring(np.add, np.logaddexp, 0.0)
_MAXIMA = _Semiring(np.add, np.maximum, 0.0)


class _Source(NamedTuple):
    """A part of a table that is given: what it is, of which family, and for which variable."""

    kind: str  # family, leak, fired, straight or soft
    family: int
    variable: int
    axes: tuple[int, ...]  # of its numbers, and where they come to be in the table
    shape: tuple[int, ...] = ()


@dataclass(frozen=True, eq=False)
class Plan:
    """An order of elimination for evidence on some variables, whatever their states."""

    families: Sequence[Family]
    names: tuple[int, ...]  # the variables of the network that are summed out; -1 for accumulators of observed ones
    n_states: tuple[int, ...]
    tables: tuple[tuple[int, ...], ...]  # scopes of the tables that are given, in the order of elimination
    sources: tuple[tuple[_Source, ...], ...]  # what they are made of
    accumulators: Mapping[int, int]  # the family of each
    constant: tuple[_Source, ...]  # what depends on observed variables only
    order: Order

    @property
    def bits(self) -> float:
        """The logarithm to base 2 of the largest table."""
        return self.order.bits

    @property
    def work(self) -> float:
        """How many numbers are multiplied, for one row."""
        return self.order.work

    @cached_property
    def scopes(self) -> list[tuple[int, ...]]:
        """Of all tables: given, and results of steps."""
        return [*self.tables, *(step.scope for step in self.order.steps)]

    def shape(self, table: int, within: Sequence[int]) -> tuple[int, ...]:
        """The shape of a table with an axis for each of some variables, of length 1 for those that are not its own."""
        own = set(self.scopes[table])
        return tuple(self.n_states[v] if v in own else 1 for v in within)

    @cached_property
    def joint(self) -> list[tuple[int, ...]]:
        """The variables of the product that each step works on: the one that is summed out comes first."""
        return [step.scope if step.variable < 0 else (step.variable, *step.scope) for step in self.order.steps]

    @cached_property
    def shapes(self) -> list[list[tuple[int, ...]]]:
        """The shapes of the inputs of each step within its product."""
        steps = zip(self.order.steps, self.joint, strict=True)
        return [[self.shape(t, joint) for t in step.inputs] for step, joint in steps]

    @cached_property
    def user(self) -> list[int]:
        """The step that uses each table, or -1."""
        user = [-1] * len(self.scopes)
        for k, step in enumerate(self.order.steps):
            for t in step.inputs:
                user[t] = k
        return user

    def slices(self, k: int) -> list[slice]:
        """The states of the variable of a step: all at once, or one by one."""
        n = self.n_states[self.joint[k][0]] if self.joint[k] else 1
        small = math.prod(self.n_states[v] for v in self.joint[k]) <= _WHOLE or self.order.steps[k].variable < 0
        return [slice(None)] if small else [slice(s, s + 1) for s in range(n)]


def plan(
    families: Sequence[Family],
    n_states: Sequence[int] | IndexArray,
    states: States,
    *,
    soft: Iterable[int] = (),
    limit: float = LIMIT,
    maximum: bool = False,
    names: Sequence[str] = (),
) -> Plan:
    """The plan for the sum of a product of families, with parents before children.

    Parameters
    ----------
    families
        Those that are in the product; leave out those that sum to one.
    n_states
        How many states each variable of the network has.
    states
        Rows by variables, -1 for those that are not observed: the same ones in all rows. Of the states it counts only
        which noisy-MAX variables are in state 0 in all rows: those factorise.
    soft
        Variables that have a likelihood of their own.
    maximum
        Is the largest term asked for? Then accumulators, which are sums, do not help.
    names
        Of variables, for the error.

    Raises
    ------
    TooManyHiddenError
        If the largest table has more than ``2**limit`` numbers.
    """
    make = _Making(families, n_states, states, maximum)
    for k, family in enumerate(families):
        make.add(k, family)
    for v in soft:
        make.put("soft", -1, v, [v] if states[0, v] < 0 else [])
    try:
        return make.plan(limit)
    except TooWide as wide:
        raise _too_wide(wide, make, limit, names or [f"v{v}" for v in range(len(n_states))]) from None


def _too_wide(wide: TooWide, make: _Making, limit: float, names: Sequence[str]) -> TooManyHiddenError:
    own = {y: make.families[k].variable for y, k in make.accumulators.items()}
    shown = [names[own.get(k, make.names[k])] for k in wide.widest]
    most = max(wide.widest, key=lambda k: (make.names[k] >= 0, sum(scope >> k & 1 for scope, _ in make.tables)))
    return TooManyHiddenError(
        f"exact elimination needs a table of 2**{wide.bits:.4g} numbers over {len(shown)} variables, "
        f"{enumerated(shown, 60)}; the limit is {limit:g}. Observe {names[own.get(most, make.names[most])]!r} to make "
        "it smaller, or use infer() for a lower bound instead"
    )


class _Making:
    """A plan in the making: numbers for what is summed out, and the tables that are given."""

    def __init__(
        self, families: Sequence[Family], n_states: Sequence[int] | IndexArray, states: States, maximum: bool
    ) -> None:
        self.families, self.states, self.maximum = families, states, maximum
        hidden = sorted({v for f in families for v in (f.variable, *f.parents) if states[0, v] < 0})
        self.number = {v: k for k, v in enumerate(hidden)}
        self.names, self.sizes = list(hidden), [int(n_states[v]) for v in hidden]
        self.leaks, self.parts, self.constant = list[_Source](), list[_Source](), list[_Source]()
        self.homes, self.causes, self.accumulators = dict[int, int](), dict[int, int](), dict[int, int]()

    def add(self, k: int, family: Family) -> None:
        """The tables of a family."""
        own, first = family.variable, self.states[0]
        above = [u for u in family.parents if first[u] < 0]
        nothing = first[own] >= 0 and not (self.states[:, own] > 0).any()  # v = 0: exp(-x) is a product over parents
        if family.gate != NOISY_OR or not above or (not nothing and (len(above) <= _FEW or self.maximum)):
            self.put("family", k, own, above if first[own] >= 0 else [*above, own])
            return
        y = self.number.get(own, len(self.names))
        if first[own] >= 0:
            for u in (-1, *above):
                self.put("straight", k, u, [u] if u >= 0 else [])
            if nothing:
                return
            self.names.append(-1)
            self.sizes.append(2)
            self.parts.append(_Source("fired", k, own, (y,)))
        self.homes[y], self.accumulators[y] = len(self.leaks), k
        self.causes[y] = sum(1 << self.number[u] for u in above)
        self.leaks.append(_Source("leak", k, own, (y,)))

    def put(self, kind: str, family: int, variable: int, scope: Sequence[int]) -> None:
        """A table over some variables of the network."""
        axes = tuple(self.number[v] for v in scope)
        (self.parts if axes else self.constant).append(_Source(kind, family, variable, axes))

    @cached_property
    def tables(self) -> list[tuple[int, list[_Source]]]:
        """Sets of variables and what is in the table over them: smaller tables are part of larger ones.

        Accumulators begin alone: nothing may be multiplied with them until they are complete.
        """
        found = [(1 << source.axes[0], [source]) for source in self.leaks]
        near = [list[int]() for _ in self.names]  # tables that each variable is in
        for source in sorted(self.parts, key=lambda part: -len(part.axes)):
            scope = sum(1 << v for v in source.axes)
            larger = [t for t in near[source.axes[0]] if not scope & ~found[t][0]]
            if larger:
                found[min(larger, key=lambda t: found[t][0].bit_count())][1].append(source)
                continue
            for v in source.axes:
                near[v].append(len(found))
            found.append((scope, [source]))
        return found

    def plan(self, limit: float) -> Plan:
        """With the axes of all tables in the order of elimination."""
        order = best_order(self.sizes, [scope for scope, _ in self.tables], self.homes, self.causes, limit)
        place, tables, sources = order.position.__getitem__, [], []
        for scope, parts in self.tables:
            axes = tuple(sorted(members(scope), key=place))
            tables.append(axes)
            shapes = [tuple(self.sizes[v] if v in part.axes else 1 for v in axes) for part in parts]
            turns = [tuple(sorted(range(len(part.axes)), key=lambda k: place(part.axes[k]))) for part in parts]
            zipped = zip(parts, turns, shapes, strict=True)
            sources.append(tuple(part._replace(axes=turn, shape=shape) for part, turn, shape in zipped))
        return Plan(
            self.families, tuple(self.names), tuple(self.sizes), tuple(tables), tuple(sources), self.accumulators,
            tuple(self.constant), order,
        )  # fmt: skip


# --- numbers ------------------------------------------------------------------------------------------------------------


class _Numbers(NamedTuple):
    """The tables that are given, what causes do to accumulators, and ln of what was taken out of them."""

    tables: list[FloatArray]
    causes: dict[tuple[int, int], Cause]
    log_scale: FloatArray
    span: list[FloatArray]  # at most, of the logarithms in each table, by row
    span_of: dict[tuple[int, int], FloatArray]  # likewise of causes
    dropped: BoolArray  # rows in which something counts as zero that is not


class _Given:
    """The numbers of some rows, as logarithms."""

    def __init__(self, plan: Plan, states: States, likelihoods: Likelihoods) -> None:
        self.plan, self.states, self.likelihoods, self.rows = plan, states, likelihoods, len(states)
        self.fired = {
            k: factors.fired(plan.families[k], states)
            for k in {s.family for parts in (plan.constant, *plan.sources) for s in parts if s.kind == "straight"}
        }
        self.tables = [self._table(parts) for parts in plan.sources]
        self.constant = np.zeros(self.rows)
        for source in plan.constant:
            self.constant += self._log(source)
        self.causes = {pair: self._cause(*pair) for step in plan.order.steps for pair in step.passed}

    def _table(self, parts: Sequence[_Source]) -> FloatArray:
        total: FloatArray | None = None
        for part in parts:
            log = self._log(part)
            log = log.transpose(0, *(a + 1 for a in part.axes)).reshape(len(log), *part.shape)
            total = log if total is None else total + log
        assert total is not None
        return total

    def _log(self, source: _Source) -> FloatArray:
        if source.kind == "family":
            return factors.log_table(self.plan.families[source.family], self.states)
        if source.kind == "soft":
            with np.errstate(divide="ignore"):
                log = np.log(np.atleast_2d(self.likelihoods[source.variable]))
            seen = self.states[:, source.variable]
            return log if seen[0] < 0 else np.broadcast_to(log, (self.rows, log.shape[1]))[np.arange(self.rows), seen]
        if source.kind == "fired":
            off = self.states[:, source.variable] == 0
            return np.where(np.stack([off, ~off], axis=1), 0.0, -np.inf)
        family = self.plan.families[source.family]
        if source.kind == "straight":
            return self.fired[source.family][2][source.variable]
        x = self.fired[source.family][0] if source.family in self.fired else factors.absorbed(family, self.states)
        return factors.leak(x)

    def _cause(self, y: int, u: int) -> Cause:
        k, parent = self.plan.accumulators[y], self.plan.names[u]
        if k in self.fired:
            return factors.cause(self.fired[k][1][parent])
        family = self.plan.families[k]
        return factors.cause(family.weights[family.parents.index(parent)][None])

    def logs(self) -> _Numbers:
        """As they are."""
        return _Numbers(self.tables, self.causes, self.constant, [], {}, np.zeros(self.rows, np.bool_))

    def scaled(self) -> _Numbers:
        """As probabilities; those of e^-700 and less are zero."""
        log_scale, dropped, tables, spans = self.constant.copy(), np.zeros(self.rows, np.bool_), [], []
        for log in self.tables:
            top = _most(log)
            top[top == -np.inf] = 0.0
            p, span, low = _plain(log - _wide(top, log.ndim))
            tables.append(p)
            spans.append(span)
            log_scale += top
            dropped |= low
        causes, span_of = {}, {}
        for pair, one in self.causes.items():
            kept, hit = (tuple(zip(*map(_plain, logs), strict=True)) for logs in (one.kept, one.hit))
            causes[pair] = Cause(kept[0], hit[0])
            span_of[pair] = np.maximum.reduce(np.broadcast_arrays(*kept[1], *hit[1]))
            dropped |= np.logical_or.reduce(np.broadcast_arrays(*kept[2], *hit[2]))
        return _Numbers(tables, causes, log_scale, spans, span_of, dropped)


def _plain(log: FloatArray) -> tuple[FloatArray, FloatArray, BoolArray]:
    """e to the power of numbers up to 0, the span of those that are not zero, and whether others were dropped."""
    low = log < _LOWEST
    axes = tuple(range(1, log.ndim))
    if not low.any():
        return np.exp(log), -log.min(axis=axes), np.zeros(len(log), np.bool_)
    high = np.where(low, 0.0, log)
    return np.where(low, 0.0, np.exp(high)), -high.min(axis=axes), (low & (log > -np.inf)).any(axis=axes)


def _most(table: FloatArray) -> FloatArray:
    """The largest number of each row."""
    top: FloatArray = table.max(axis=tuple(range(1, table.ndim))) if table.ndim > 1 else table.copy()
    return top


def _wide(by_row: FloatArray, ndim: int) -> FloatArray:
    return by_row.reshape(-1, *[1] * (ndim - 1))


def _fitted(table: FloatArray) -> tuple[FloatArray, FloatArray]:
    """A table divided by powers of two, so that the largest number of each row is about 1; and their logarithms."""
    power = np.frexp(_most(table))[1]
    if (np.abs(power) > 32).any():  # exact, so that a row does not depend on its neighbours
        table = np.ldexp(table, -_wide(power, table.ndim))
    else:
        power = np.zeros_like(power)
    return table, power * math.log(2.0)


# --- passes -------------------------------------------------------------------------------------------------------------


class _Passes:
    """The passes up and down, for some rows and one semiring."""

    def __init__(self, plan: Plan, numbers: _Numbers, semiring: _Semiring) -> None:
        self.plan, self.numbers, self.semiring = plan, numbers, semiring
        self.tables, self.n_given = list[FloatArray | None](numbers.tables), len(numbers.tables)
        self.rows = len(numbers.log_scale)
        self.log_p, self.risky = numbers.log_scale.copy(), np.zeros(self.rows, np.bool_)
        self.span = list(numbers.span)

    def up(self, *, keep: bool) -> None:
        """ln P; tables that are not kept go when they have been used."""
        for k, step in enumerate(self.plan.order.steps):
            out = self._sum_out(k)
            if self.semiring is _SUMS:
                out = self._scale(k, out)
            if not keep:
                for t in step.inputs:
                    self.tables[t] = None
            self.tables.append(out)
            if not step.scope:
                with np.errstate(divide="ignore"):
                    self.log_p += np.log(out) if self.semiring is _SUMS else out

    def _scale(self, k: int, out: FloatArray) -> FloatArray:
        """Keep a table within the range of doubles; rows in which products may have left it are risky."""
        step, numbers = self.plan.order.steps[k], self.numbers
        span = sum((self.span[t] for t in step.inputs), np.zeros(1))
        span = sum((numbers.span_of[pair] for pair in step.passed), span)
        if (span > _SPAN).any():  # bounds add up; look at what is there
            span = sum((_span(self._table(t)) for t in step.inputs), np.zeros(1))
            span = sum((numbers.span_of[pair] for pair in step.passed), span)
            self.risky |= span > _SPAN
        out, log = _fitted(out)
        self.log_p += log
        self.span.append(np.maximum(span, 0.0) + 64.0)
        return out

    def _table(self, t: int) -> FloatArray:
        table = self.tables[t]
        assert table is not None
        return table

    def _inputs(self, k: int, part: slice) -> list[FloatArray]:
        """The inputs of a step, with axes for all variables of its product, for some states of the first."""
        step = self.plan.order.steps[k]
        found = []
        for t, shape in zip(step.inputs, self.plan.shapes[k], strict=True):
            table = self._table(t)
            table = table.reshape(len(table), *shape)
            found.append(table[:, part] if shape and shape[0] > 1 else table)
        return found

    def _sum_out(self, k: int) -> FloatArray:
        step, (times, plus, _) = self.plan.order.steps[k], self.semiring
        out: FloatArray | None = None
        for part in self.plan.slices(k):
            term = self._product(sorted(self._inputs(k, part), key=np.size))
            if step.passed:
                term = self._full(k, term, part)
                for y, u in step.passed:
                    pass_up(self.semiring, *self._passing(k, term, y, u, part))
            if step.variable >= 0:
                term = plus.reduce(term, axis=1)
            out = term if out is None else plus(out, term, out=out)
        assert out is not None
        return out

    def _product(self, tables: Sequence[FloatArray]) -> FloatArray:
        total = tables[0]
        for table in tables[1:]:
            total = self.semiring.times(total, table)
        return total

    def _full(self, k: int, term: FloatArray, part: slice) -> FloatArray:
        """A copy with an axis of full length for each variable of the product."""
        joint, step = self.plan.joint[k], self.plan.order.steps[k]
        shape = [self.plan.n_states[v] for v in joint]
        if step.variable >= 0:
            shape[0] = len(range(shape[0])[part])
        rows = max(len(term), *(len(self.numbers.causes[pair].kept[0]) for pair in step.passed))
        return np.array(np.broadcast_to(term, (rows, *shape)))

    def _passing(
        self, k: int, term: FloatArray, y: int, u: int, part: slice
    ) -> tuple[FloatArray, list[FloatArray], list[FloatArray]]:
        """A product with the states of an accumulator in front, and what a cause does to it."""
        joint, one = self.plan.joint[k], self.numbers.causes[y, u]
        shape = [self.plan.n_states[v] if v == u else 1 for v in joint if v != y]
        both = []
        for numbers in (one.kept, one.hit):
            wide = [number.reshape(len(number), *shape) for number in numbers]
            both.append([number[:, part] for number in wide] if joint[0] == u else wide)
        return np.moveaxis(term, joint.index(y) + 1, 0), *both

    def down(self, wanted: Iterable[int]) -> dict[int, FloatArray]:
        """Posteriors of some variables of the plan, rows by states: derivatives of the sum, from the last step up."""
        plan, found = self.plan, dict[int, FloatArray]()
        step_of = {step.variable: k for k, step in enumerate(plan.order.steps)}
        chosen, needed = set(wanted), set[int]()
        for v in chosen:
            k = step_of[v]
            while k >= 0 and k not in needed:
                needed.add(k)
                k = plan.user[self.n_given + k]
        back = dict[int, FloatArray]()
        for k in sorted(needed, reverse=True):
            variable = plan.order.steps[k].variable
            above = back.pop(k) if k in back else np.full((1,), self.semiring.one)
            belief = self._share(k, above, back, needed)
            if variable in chosen:
                found[variable] = self._normalised(belief)
        return found

    def _share(self, k: int, above: FloatArray, back: dict[int, FloatArray], needed: set[int]) -> FloatArray:
        """From the derivative by the result of a step those by its inputs; and the share of each state."""
        step, joint, (times, plus, _) = self.plan.order.steps[k], self.plan.joint[k], self.semiring
        later = [i for i, t in enumerate(step.inputs) if t - self.n_given in needed]
        shares, gradients = list[FloatArray](), [list[FloatArray]() for _ in later]
        for part in self.plan.slices(k):
            out = above if step.variable < 0 else above[:, None]
            if step.passed:
                out = self._full(k, out, part)
                for y, u in reversed(step.passed):
                    pass_down(self.semiring, *self._passing(k, out, y, u, part))
            inputs = self._inputs(k, part)
            for i, parts in zip(later, gradients, strict=True):
                others = [table for j, table in enumerate(inputs) if j != i]
                gradient = self._reduced(self._product([*others, out]), inputs[i].shape)
                parts.append(np.broadcast_to(gradient, (len(gradient), *inputs[i].shape[1:])))
            if step.variable >= 0:
                with_it = [i for i in later if self.plan.shapes[k][i][0] > 1]
                if with_it:
                    whole = times(gradients[later.index(with_it[-1])][-1], inputs[with_it[-1]])
                else:
                    whole = self._product([*inputs, out])
                shares.append(self._reduced(whole, (0, 2, *[1] * (len(joint) - 1))))
        for i, parts in zip(later, gradients, strict=True):
            t, shape = step.inputs[i], self.plan.shapes[k][i]
            split = step.variable >= 0 and shape[0] > 1
            total = np.concatenate(parts, axis=1) if split else plus.reduce(parts, axis=0)
            total = total.reshape(len(total), *(n for v, n in zip(joint, shape, strict=True) if v in self._own(t)))
            back[t - self.n_given] = _fitted(total)[0] if self.semiring is _SUMS else total
        return np.concatenate(shares, axis=1).reshape(len(shares[0]), -1) if shares else above

    def _own(self, t: int) -> tuple[int, ...]:
        return self.plan.scopes[t]

    def _reduced(self, term: FloatArray, shape: tuple[int, ...]) -> FloatArray:
        """The sum over the axes that have the length 1 in a shape."""
        axes = tuple(a for a in range(1, term.ndim) if shape[a] == 1 and term.shape[a] > 1)
        if not axes:
            return term
        total: FloatArray = self.semiring.plus.reduce(term, axis=axes, keepdims=True)
        return total

    def _normalised(self, belief: FloatArray) -> FloatArray:
        if self.semiring is _SUMS:
            whole = belief.sum(axis=1)
            self.risky |= ~(whole > _DIM)
        else:
            top = belief.max(axis=1)
            belief = np.exp(belief - np.where(top > -np.inf, top, 0.0)[:, None])
            whole = belief.sum(axis=1)
        with np.errstate(invalid="ignore"):
            shares: FloatArray = belief / whole[:, None]
        return np.broadcast_to(shares, (self.rows, belief.shape[1]))


def _span(table: FloatArray) -> FloatArray:
    """How far the logarithms of the numbers of each row that are not zero lie from 0 at most."""
    axes = tuple(range(1, table.ndim))
    least, most = np.where(table > 0.0, table, np.inf).min(axis=axes), table.max(axis=axes)
    with np.errstate(divide="ignore"):
        span: FloatArray = np.where(most > 0.0, np.maximum(-np.log(least), np.log(most)), 0.0)
    return span


def pass_up(semiring: _Semiring, t: FloatArray, kept: Sequence[FloatArray], hit: Sequence[FloatArray]) -> None:
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


def pass_down(semiring: _Semiring, t: FloatArray, kept: Sequence[FloatArray], hit: Sequence[FloatArray]) -> None:
    """The transpose of that."""
    times, plus, _ = semiring
    last = len(t) - 1
    above = times(t[last], hit[last])
    for z in range(last - 1, -1, -1):
        fresh = times(t[z], hit[z]) if z else above
        times(t[z], kept[z], out=t[z])
        plus(t[z], above, out=t[z])
        above = plus(above, fresh)


# --- answers ------------------------------------------------------------------------------------------------------------


class Answers(NamedTuple):
    """ln P of each row, and posteriors by variable, rows by states: NaN where the evidence is impossible."""

    log_p: FloatArray
    posteriors: dict[int, FloatArray]


def solve(
    plan: Plan, states: States, likelihoods: Likelihoods | None = None, wanted: Iterable[int] | None = ()
) -> Answers:
    """ln P of rows of evidence, and the posteriors of those hidden variables that are wanted, or of all for None."""
    number = {v: k for k, v in enumerate(plan.names) if v >= 0}
    asked = [number[v] for v in wanted] if wanted is not None else list(number.values())
    log_p = np.empty(len(states))
    posteriors = {k: np.empty((len(states), plan.n_states[k])) for k in asked}
    for rows, given in _blocks(plan, states, likelihoods):
        log_p[rows] = _solve(given, asked, {k: p[rows] for k, p in posteriors.items()})
    return Answers(log_p, {plan.names[k]: p for k, p in posteriors.items()})


def _blocks(plan: Plan, states: States, likelihoods: Likelihoods | None) -> Iterable[tuple[slice, _Given]]:
    most = max(1, int(_AT_ONCE / 2.0**plan.bits))
    for first in range(0, len(states), most):
        rows = slice(first, first + most)
        soft = {v: p if np.ndim(p) == 1 or len(p) == 1 else p[rows] for v, p in (likelihoods or {}).items()}
        yield rows, _Given(plan, states[rows], soft)


def _solve(given: _Given, asked: Sequence[int], posteriors: dict[int, FloatArray]) -> FloatArray:
    """Some rows: with probabilities, and where these span too much, with logarithms."""
    numbers = given.scaled()
    passes = _Passes(given.plan, numbers, _SUMS)
    passes.up(keep=bool(asked))
    found = passes.down(asked) if asked else {}
    log_p, risky = passes.log_p, passes.risky | (numbers.dropped & ~(passes.log_p > _UNLIKELY))
    for k in asked:
        posteriors[k][:] = found[k]
    again = np.flatnonzero(risky & ~((log_p == -np.inf) & ~numbers.dropped & ~passes.risky))
    if len(again):
        soft = {v: p if np.ndim(p) == 1 or len(p) == 1 else p[again] for v, p in given.likelihoods.items()}
        some = _Given(given.plan, given.states[again], soft)
        passes = _Passes(given.plan, some.logs(), _LOGS)
        passes.up(keep=bool(asked))
        log_p[again] = passes.log_p
        for k, p in (passes.down(asked) if asked else {}).items():
            posteriors[k][again] = p
    gone = log_p == -np.inf
    for p in posteriors.values():
        p[gone] = np.nan
    return log_p


def explain(plan: Plan, states: States, likelihoods: Likelihoods | None = None) -> tuple[FloatArray, States]:
    """The most probable explanation: the largest ln P(H, V) of each row, and the states of all variables."""
    log_p, best = np.empty(len(states)), states.copy()
    for rows, given in _blocks(plan, states, likelihoods):
        passes = _Passes(plan, given.logs(), _MAXIMA)
        passes.up(keep=True)
        log_p[rows] = passes.log_p
        row, chosen = np.arange(given.rows), dict[int, IndexArray]()
        for step in reversed(plan.order.steps):
            total = np.zeros((given.rows, plan.n_states[step.variable]))
            for t in step.inputs:
                table = passes._table(t)
                at = (row if len(table) > 1 else 0, slice(None), *(chosen[v] for v in plan.scopes[t][1:]))
                total += table[at]
            chosen[step.variable] = total.argmax(axis=1)
            best[rows, plan.names[step.variable]] = chosen[step.variable]
    return log_p, best
