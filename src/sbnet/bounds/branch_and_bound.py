"""Branch and bound: states of the hidden units in subproblems, split where most is to be gained.

A subproblem is a set of states, given by the states of some units. Those that there are at any time have no state in
common and make up the whole, so that P(V) is the sum of their parts, and sums of their bounds are bounds.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Generic, Protocol, TypeVar

import numpy as np

from sbnet.bounds import margins


class Subproblem(Protocol):
    """Some of the states, with an upper bound on the logarithm of their part of P(V)."""

    @property
    def upper(self) -> float: ...

    @property
    def priority(self) -> float:
        """The logarithm of what a split may take off the sum of the bounds; minus infinity: nothing."""
        ...


S = TypeVar("S", bound=Subproblem)


class Partition(Generic[S]):
    """The subproblems at one time: a queue of those that may be split, and those that cannot be."""

    def __init__(self, first: Iterable[S]) -> None:
        self._queue, self._closed, self._made = list[tuple[float, int, S]](), list[tuple[int, S]](), 0
        self._add(first)

    def __len__(self) -> int:
        return len(self._queue) + len(self._closed)

    def subproblems(self) -> list[S]:
        """All subproblems, in the order in which they were made."""
        every = [*self._closed, *((made, problem) for _, made, problem in self._queue)]
        return [problem for _, problem in sorted(every, key=lambda both: both[0])]

    def _add(self, problems: Iterable[S]) -> None:
        for problem in problems:
            heapq.heappush(self._queue, (-problem.priority, self._made, problem))
            self._made += 1

    def split(self, divide: Callable[[list[S]], Sequence[Sequence[S]]], at_once: int, negligible: float) -> bool:
        """Split those with the highest priorities; was any of them worth it?"""
        least = -math.inf
        if negligible:
            every = *(problem.upper for _, problem in self._closed), *(problem.upper for _, _, problem in self._queue)
            least = max(every, default=-math.inf) + math.log(negligible)
        chosen = list[tuple[float, int, S]]()
        most = min(1 + len(self) // 4, at_once)
        while self._queue and len(chosen) < most and -self._queue[0][0] > least:
            chosen.append(heapq.heappop(self._queue))
        for (_, made, problem), parts in zip(chosen, divide([c[2] for c in chosen]) if chosen else (), strict=True):
            if parts:
                self._add(parts)
            else:
                self._closed.append((made, problem))
        return bool(chosen)


def branch_and_bound(
    first: Iterable[S],
    divide: Callable[[list[S]], Sequence[Sequence[S]]],
    *,
    most: int,
    at_once: int = 1,
    negligible: float = 0.0,
) -> Iterator[Partition[S]]:
    """The partition at first and after each round of splits: the same object, for the caller to look at, or to stop.

    It ends with `most` subproblems, or where no split is worth it.

    Parameters
    ----------
    first
        Subproblems that make up the whole.
    divide
        The parts of each of some subproblems; no parts for one that is to stay as it is.
    most : int
        Subproblems from which on none is split.
    at_once : int
        How many are split in one round; fewer while there are few.
    negligible : float
        A priority that is so small a share of the largest upper bound is not worth a split.
    """
    partition = Partition(first)
    yield partition
    while len(partition) < most and partition.split(divide, at_once, negligible):
        yield partition


def log_difference(upper: float, lower: float) -> float:
    """ln(e^upper - e^lower); minus infinity where the difference is not positive."""
    return upper + math.log(-math.expm1(lower - upper)) if lower < upper else -math.inf


def upper(problems: Sequence[Subproblem]) -> float:
    """An upper bound on ln P(V) from those of all subproblems, rounding of the sum included."""
    return margins.log_sum_above(np.array([problem.upper for problem in problems]))
