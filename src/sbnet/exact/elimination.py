"""Exact answers by variable elimination: sums over the states of hidden variables, one variable after the other.

`plan` decides the order from which variables are observed; its cost is known before anything is computed. One pass up
gives ln P(evidence); the derivatives of that sum, one pass down, are the posteriors of all variables; with maxima in
the place of sums it is the most probable explanation. Rows of evidence on the same variables share a plan, and are
worked on side by side: every table has an axis of rows in front.

No term is negative, so nothing cancels. Where the numbers of a row span more than doubles do, its sums are taken again
in logarithms.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from sbnet._types import FloatArray, IndexArray, States
from sbnet.errors import TooManyHiddenError, enumerated
from sbnet.exact import factors
from sbnet.exact.factors import Cause, Family
from sbnet.exact.passes import LOGS, MAXIMA, SUMS, Numbers, Passes, Semiring, Work, scaled
from sbnet.exact.planning import Order, TooWide, best_order, members
from sbnet.kernels.codes import NOISY_OR

LIMIT = 25
"""The logarithm to base 2 of the largest table, by default."""
_FEW = 2
"""Hidden parents up to which a noisy-MAX variable is a table over them."""
_WHOLE = 1 << 14
"""Numbers in a table from which on the states of a variable are summed a few at a time."""
_AT_ONCE = 1 << 18
"""Numbers in the largest table of all rows that are worked on at once."""
_UNLIKELY = -600.0
"""Where ln P is lower, nothing counts as zero that is not."""

Likelihoods = Mapping[int, FloatArray]
"""Soft evidence: the likelihood of each state of a variable, (K,), or for each row (rows, K)."""


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

    def scope(self, table: int) -> tuple[int, ...]:
        """The variables of a table: given, or the result of a step."""
        n = len(self.tables)
        return self.tables[table] if table < n else self.order.steps[table - n].scope

    @property
    def work(self) -> float:
        """How many numbers are multiplied, for one row."""
        return self.order.work

    @cached_property
    def steps(self) -> list[Work]:
        """The steps, with the shapes of what they work on."""
        steps, n_states, found = self.order.steps, self.n_states, list[Work]()
        scopes = [*map(set, self.tables), *(set(step.scope) for step in steps)]
        user = {t: k for k, step in enumerate(steps) for t in step.inputs}
        for k, step in enumerate(steps):
            joint = step.scope if step.variable < 0 else (step.variable, *step.scope)
            sizes = tuple(n_states[v] for v in joint)
            shapes = tuple(tuple(n_states[v] if v in scopes[t] else 1 for v in joint) for t in step.inputs)
            slices: tuple[slice, ...] = (slice(None),)
            if step.variable >= 0 and math.prod(sizes) > _WHOLE:
                most = max(1, _WHOLE * sizes[0] // math.prod(sizes))
                slices = tuple(slice(s, s + most) for s in range(0, sizes[0], most))
            found.append(Work(step, joint, sizes, shapes, slices, user.get(len(self.tables) + k, -1)))
        return found


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


class _Given:
    """The numbers of some rows, as logarithms."""

    def __init__(self, plan: Plan, states: States, likelihoods: Likelihoods, rows: IndexArray) -> None:
        self.plan, self.states, self.likelihoods, self.rows = plan, states, likelihoods, rows
        self.fired = {
            k: factors.fired(plan.families[k], states)
            for k in {s.family for parts in (plan.constant, *plan.sources) for s in parts if s.kind == "straight"}
        }
        self.tables = [self._table(parts) for parts in plan.sources]
        self.constant = np.zeros(len(states))
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
            p = np.atleast_2d(self.likelihoods[source.variable])
            p, seen = p[self.rows] if len(p) > 1 else p, self.states[:, source.variable]
            with np.errstate(divide="ignore"):
                return np.log(
                    p if seen[0] < 0 else np.broadcast_to(p, (len(seen), p.shape[1]))[np.arange(len(seen)), seen]
                )
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

    @property
    def numbers(self) -> Numbers:
        """The logarithms as they are, for semirings of logarithms."""
        return Numbers(self.tables, self.causes, self.constant, [], {}, np.zeros(len(self.rows), np.bool_))


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
    answers = Answers(np.empty(len(states)), {k: np.empty((len(states), plan.n_states[k])) for k in asked})
    for rows in _blocks(plan, len(states)):
        given = _Given(plan, states[rows], likelihoods or {}, rows)
        numbers = scaled(given.tables, given.causes, given.constant)
        passes = _run(plan, numbers, SUMS, rows, answers)
        risky = passes.risky | (numbers.dropped & ~(passes.log_p > _UNLIKELY))
        if risky.any():  # these again, with logarithms
            _run(
                plan,
                _Given(plan, states[rows[risky]], likelihoods or {}, rows[risky]).numbers,
                LOGS,
                rows[risky],
                answers,
            )
    for posterior in answers.posteriors.values():
        posterior[answers.log_p == -np.inf] = np.nan
    return Answers(answers.log_p, {plan.names[k]: p for k, p in answers.posteriors.items()})


def _blocks(plan: Plan, n: int) -> Iterable[IndexArray]:
    """Rows that are worked on at once."""
    most = max(1, int(_AT_ONCE / 2.0**plan.bits))
    return (np.arange(first, min(first + most, n)) for first in range(0, n, most))


def _run(plan: Plan, numbers: Numbers, semiring: Semiring, rows: IndexArray, answers: Answers) -> Passes:
    """Put the answers of some rows in their places."""
    passes = Passes(plan.steps, numbers, semiring)
    if answers.posteriors:
        for k, posterior in passes.posteriors(answers.posteriors).items():
            answers.posteriors[k][rows] = posterior
    else:
        passes.up()
    answers.log_p[rows] = passes.log_p
    return passes


def explain(plan: Plan, states: States, likelihoods: Likelihoods | None = None) -> tuple[FloatArray, States]:
    """The most probable explanation: the largest ln P(H, V) of each row, and the states of all variables."""
    log_p, best = np.empty(len(states)), states.copy()
    for rows in _blocks(plan, len(states)):
        passes = Passes(plan.steps, _Given(plan, states[rows], likelihoods or {}, rows).numbers, MAXIMA)
        passes.up(keep=True)
        log_p[rows] = passes.log_p
        for v, chosen in _chosen(plan, passes, len(rows), lambda total: total.argmax(axis=1)):
            best[rows, v] = chosen
    return log_p, best


def draw(plan: Plan, row: States, n: int, rng: np.random.Generator) -> States:
    """Samples of the posterior of one row, the variables in the order opposite to that of elimination.

    The plan is one without accumulators, which are not variables: that of a maximum.
    """
    passes, found = Passes(plan.steps, _Given(plan, row[None, :], {}, np.arange(1)).numbers, LOGS), np.tile(row, (n, 1))
    passes.up(keep=True)

    def at_random(total: FloatArray) -> IndexArray:
        share = np.cumsum(np.exp(total - total.max(axis=1, keepdims=True)), axis=1)
        return np.asarray((rng.random((n, 1)) * share[:, -1:] >= share).sum(axis=1))

    for v, chosen in _chosen(plan, passes, n, at_random):
        found[:, v] = chosen
    return found


def _chosen(
    plan: Plan, passes: Passes, n: int, choose: Callable[[FloatArray], IndexArray]
) -> Iterator[tuple[int, IndexArray]]:
    """The states of all variables, the one that is eliminated last first: by the logarithms of what is left for it."""
    rows, chosen = np.arange(n), dict[int, IndexArray]()
    for k in passes.back():
        step, *_ = plan.steps[k]
        total = np.zeros((n, plan.n_states[step.variable]))
        for t in step.inputs:
            scope, table = plan.scope(t), passes.tables[t]
            total += table[(rows if len(table) > 1 else 0, slice(None), *(chosen[v] for v in scope[1:]))]
        chosen[step.variable] = choose(total)
        yield plan.names[step.variable], chosen[step.variable]
