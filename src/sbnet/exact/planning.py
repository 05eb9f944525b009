"""In which order variables are eliminated, and what that costs: known before anything is computed.

Summing out a variable joins all tables that it is in. A noisy-MAX variable with several parents is no table over them:
its own axis is an *accumulator*, "the largest so far", that the parents pass one after the other, each when it is
summed out (Zhang & Poole 1996). An accumulator is in one table at a time, its home, and what a parent does to it is
done there; so a network of two levels is a sweep over the causes, with a table over the findings that are present.
An accumulator that is needed as a whole before all of its parents are gone is *completed*: they become axes of its
home.

Sets of variables are whole numbers, with a bit for each variable.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple


class Step(NamedTuple):
    """A variable is summed out of the product of some tables; or, if there is none, an accumulator is completed."""

    variable: int  # or -1
    inputs: tuple[int, ...]  # numbers of tables: those given come first, then the results of steps
    passed: tuple[tuple[int, int], ...]  # (accumulator, cause) that is dealt with here
    scope: tuple[int, ...]  # the variables of the result


@dataclass(frozen=True, eq=False)
class Order:
    """All steps; `bits` is the logarithm to base 2 of the largest table, `widest` the variables that it is over."""

    steps: tuple[Step, ...]
    bits: float
    widest: tuple[int, ...]
    work: float  # numbers that are multiplied
    position: tuple[int, ...]  # of each variable, in the order of elimination


class TooWide(Exception):
    """A table is larger than the limit."""

    def __init__(self, bits: float, widest: tuple[int, ...]) -> None:
        super().__init__(bits, widest)
        self.bits, self.widest = bits, widest


def members(mask: int) -> Iterator[int]:
    """The variables of a set."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def best_order(
    n_states: Sequence[int], scopes: Sequence[int], homes: Mapping[int, int], causes: Mapping[int, int], limit: float
) -> Order:
    """The cheapest of some greedy orders: by least fill, ties by size; by least size, ties by fill; and such that
    accumulators wait until their causes are gone.

    Where many findings are present, the others complete them one by one, as tables over few causes each, which in the
    end have all causes in common.

    `scopes` are the sets of variables of the tables, `homes` the table that each accumulator begins in, `causes` the
    set of its causes.
    """
    found, failed = list[Order](), list[TooWide]()
    for by_fill, patient in ((True, False), (False, False), (False, True))[: 3 if causes else 2]:
        try:
            found.append(_Greedy(n_states, scopes, homes, causes, by_fill, patient).run(limit))
        except TooWide as error:
            failed.append(error)
    if not found:
        raise min(failed, key=lambda error: error.bits)
    return min(found, key=lambda order: order.work)


@dataclass
class _Greedy:
    """The state of the tables while variables go."""

    n_states: Sequence[int]
    scopes: Sequence[int]
    homes: Mapping[int, int]
    causes: Mapping[int, int]
    by_fill: bool
    patient: bool
    steps: list[Step] = field(default_factory=list)
    widest: int = 0
    work: float = 0.0

    def __post_init__(self) -> None:
        n = len(self.n_states)
        self.log2 = [math.log2(k) for k in self.n_states]
        self.binary = sum(1 << v for v in range(n) if self.n_states[v] == 2)
        self.scope = dict(enumerate(self.scopes))
        self.tables = [set[int]() for _ in range(n)]  # that each variable is in
        for t, mask in self.scope.items():
            for v in members(mask):
                self.tables[v].add(t)
        self.home, self.pending = dict(self.homes), dict(self.causes)
        self.effects = [0] * n  # the accumulators that each variable has still to pass
        for y, mask in self.pending.items():
            for u in members(mask):
                self.effects[u] |= 1 << y
        self.near = [0] * n
        for v in range(n):
            self._look_around(v)

    def bits(self, mask: int) -> float:
        rest = mask & ~self.binary
        return (mask & self.binary).bit_count() + (math.fsum(self.log2[v] for v in members(rest)) if rest else 0.0)

    def run(self, limit: float) -> Order:
        """Eliminate all variables, the cheapest first."""
        n = len(self.n_states)
        self._check(max(self.scope.values(), key=self.bits, default=0), limit)
        current = [self._score(v) for v in range(n)]
        heap = [(score, v) for v, score in enumerate(current)]
        heapq.heapify(heap)
        gone, stale, order = 0, 0, list[int]()
        while heap:
            score, v = heapq.heappop(heap)
            if gone >> v & 1 or score != current[v]:
                continue
            if stale >> v & 1:
                looked_at = 1 << v
            else:
                gone |= 1 << v
                order.append(v)
                looked_at, changed = self._eliminate(v, limit)
                stale = (stale | changed) & ~gone  # these are looked at when their turn comes
            for w in members(looked_at & ~gone):
                current[w] = self._score(w)
                heapq.heappush(heap, (current[w], w))
            stale &= ~looked_at
        position = [0] * n
        for k, v in enumerate(order):
            position[v] = k
        steps = (s._replace(scope=tuple(sorted(s.scope, key=position.__getitem__))) for s in self.steps)
        return Order(tuple(steps), self.bits(self.widest), tuple(members(self.widest)), self.work, tuple(position))

    def _bucket(self, v: int) -> tuple[set[int], int, int]:
        """The tables that are joined to sum out v, the accumulators that have to be complete, and the joint scope."""
        tables = set(self.tables[v])
        for y in members(self.effects[v]):
            tables.add(self.home[y])
        scope, new = 0, (1 << v) if v in self.pending else 0
        for t in tables:
            new |= scope & self.scope[t]
            scope |= self.scope[t]
        complete = 0
        while new:  # an accumulator that is also in another table than its home is needed as a whole
            whole = [y for y in members(new) if y in self.pending and self.home[y] in tables]
            complete |= sum(1 << y for y in whole)
            new = 0
            for y in whole:
                new |= self.pending[y]  # its causes become axes: those that are accumulators come first
            scope |= new
            new &= ~complete
        return tables, complete, scope

    def _score(self, v: int) -> tuple[float, float]:
        if self.patient and v in self.pending:
            return math.inf, 0.0
        _, _, scope = self._bucket(v)
        fill = sum((scope & ~self.near[w]).bit_count() for w in members(scope))
        size = self.bits(scope & ~(1 << v))
        return (fill, size) if self.by_fill else (size, fill)

    def _eliminate(self, v: int, limit: float) -> tuple[int, int]:
        """Take the steps that eliminate a variable; those whose buckets changed, and whose fill did."""
        _, complete, _ = self._bucket(v)
        changed = 0
        for y in members(complete):
            changed |= self._complete(y, limit)
        tables, _, scope = self._bucket(v)
        passed = tuple((y, v) for y in members(self.effects[v]))
        result = scope & ~(1 << v)
        self.work += 2.0 ** self.bits(scope | 1 << v) * (len(tables) + 2 * len(passed))
        self._step(v, tables, passed, result, limit)
        for y, _ in passed:
            self._pass(y, v)
        bucket, near = self._touched(result)
        return bucket | changed, near

    def _complete(self, y: int, limit: float) -> int:
        """All causes that are left become axes of the home of an accumulator; the variables of that."""
        left, table = self.pending[y], self.home[y]
        scope = self.scope[table] | left
        passed = tuple((y, u) for u in members(left))
        self.work += 2.0 ** self.bits(scope) * (1 + 2 * len(passed))
        self._step(-1, {table}, passed, scope, limit)
        for u in members(left):
            self._pass(y, u)
        return scope

    def _pass(self, y: int, u: int) -> None:
        self.effects[u] &= ~(1 << y)
        self.pending[y] &= ~(1 << u)
        if not self.pending[y]:
            del self.pending[y], self.home[y]

    def _step(self, v: int, inputs: set[int], passed: tuple[tuple[int, int], ...], scope: int, limit: float) -> None:
        self._check(scope, limit)
        number = len(self.scopes) + len(self.steps)
        for t in inputs:
            for w in members(self.scope.pop(t)):
                self.tables[w].discard(t)
                if self.home.get(w) == t:
                    self.home[w] = number
        self.scope[number] = scope
        for w in members(scope):
            self.tables[w].add(number)
            self._look_around(w)
        self.steps.append(Step(v, tuple(sorted(inputs)), passed, tuple(members(scope))))

    def _check(self, scope: int, limit: float) -> None:
        if self.bits(scope) > self.bits(self.widest):
            self.widest = scope
        if self.bits(scope) > limit:
            raise TooWide(self.bits(scope), tuple(members(scope)))

    def _look_around(self, v: int) -> None:
        near = self.effects[v] | self.pending.get(v, 0) | 1 << v
        for t in self.tables[v]:
            near |= self.scope[t]
        self.near[v] = near

    def _touched(self, scope: int) -> tuple[int, int]:
        """Variables whose buckets a new table changes, and those whose fill it may change."""
        near = bucket = scope
        for w in members(scope):
            near |= self.near[w]
            bucket |= self.pending.get(w, 0)
        return bucket, near
