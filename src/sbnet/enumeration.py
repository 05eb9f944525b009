"""Sums over all states of the hidden units: many small ones at once, large ones in parts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from sbnet import checks
from sbnet._types import HIDDEN, FloatArray, IndexArray, Problem, States
from sbnet.errors import TooManyHiddenError
from sbnet.execution import Bar, Block, Inline, RowBlocks, Threads, map_blocks, row_blocks, rows_at_once
from sbnet.kernels.enumerate import enumerate_part, enumerate_rows
from sbnet.kernels.reduce import components, reduce
from sbnet.network import Network
from sbnet.reduction import absorb

_PART = 15
"""Larger groups are summed in parts of 2**15 terms, a tenth of a second or less: on all cores, with a moving bar."""
_TINY = 1000
"""Terms that are not worth a thread."""


class Effort(NamedTuple):
    """How far to go, and how."""

    limit: int
    threads: int | None
    progress: bool | None


def enumerate_states(network: Network, states: States, effort: Effort) -> tuple[FloatArray, FloatArray]:
    """ln P(V) and the means of each row; the means of barren units are left as NaN."""
    checks.whole("limit", effort.limit, 0, 60)
    largest = _largest_groups(network, states)
    check_limit(int(largest.max(initial=0)), effort.limit)
    log_p = np.empty(len(states))
    means = np.where(states == HIDDEN, np.nan, states.astype(np.float64))
    small = np.flatnonzero(largest <= _PART)
    tiny = bool(np.sum(2.0 ** largest[small]) <= _TINY)
    blocks = map_blocks(
        partial(_sum_rows, network),
        RowBlocks(states[small], small, most=rows_at_once(network.n_units)),
        executor=Inline() if tiny else Threads(effort.threads),
        progress=Bar("exact sums", len(small), effort.progress),
    )
    for block in blocks:
        log_p[block.rows], means[block.rows] = block.log_p, block.means
    if len(small) < len(states):
        _sum_large(network, states, np.flatnonzero(largest > _PART), effort, log_p, means)
    return log_p, means


def _largest_groups(network: Network, states: States) -> IndexArray:
    """For each row, how many hidden units the largest coupled group has."""
    largest = np.zeros(len(states), np.int64)
    for rows in row_blocks(len(states), network.n_units):
        nothing = np.zeros(states[rows].shape)
        enumerate_rows(network.model, states[rows], nothing, -1, nothing, largest[rows])
    return largest


class _Rows(NamedTuple):
    rows: IndexArray
    log_p: FloatArray
    means: FloatArray


def _sum_rows(network: Network, block: Block) -> _Rows:
    states, rows = block.columns
    means = np.where(states == HIDDEN, np.nan, states.astype(np.float64))
    largest = np.empty(len(states), np.int64)
    log_p = enumerate_rows(network.model, states, absorb(network, states), _PART, means, largest)
    return _Rows(rows, log_p, means)


@dataclass(frozen=True)
class _Part:
    """Some of the terms of one group of one row: from `first` to `last`."""

    row: int
    problem: Problem
    group: IndexArray
    first: int
    last: int

    def __len__(self) -> int:
        return self.last - self.first


def _sum_large(
    network: Network, states: States, rows: IndexArray, effort: Effort, log_p: FloatArray, means: FloatArray
) -> None:
    """The same for rows with a large group, part by part: the same parts in the same order, whoever adds them up."""
    bias = {int(r): absorb(network, states[r : r + 1])[0] for r in rows}
    groups = [(r, problem, group) for r in bias for problem, group in _groups(network, states[r])]
    for r, own in bias.items():  # the terms of units with known inputs alone
        one = slice(r, r + 1)
        log_p[one] = enumerate_rows(network.model, states[one], own[None, :], -1, means[one], np.empty(1, np.int64))
    sums = map_blocks(
        partial(_sum_part, states, bias),
        (part for group in groups for part in _parts(*group)),
        executor=Threads(effort.threads),
        progress=Bar("exact sum", sum(2 ** len(group) for _, _, group in groups), effort.progress, unit="terms"),
    )
    found = iter(sums)
    for r, problem, group in groups:
        parts = np.array([next(found) for _ in range(0, 2 ** len(group), 2**_PART)])
        top = parts[:, 0].max()
        total = (np.exp(parts[:, 0] - top)[:, None] * parts[:, 1:]).sum(axis=0)
        log_p[r] += top + np.log(total[0])
        means[r, problem.hidden[group]] = total[1:] / total[0]


def _groups(network: Network, row: States) -> Iterator[tuple[Problem, IndexArray]]:
    """The groups of coupled hidden units of one row."""
    problem: Problem = reduce(network.model, row)
    label = components(problem)
    for first in np.unique(label):
        yield problem, np.flatnonzero(label == first)


def _parts(row: int, problem: Problem, group: IndexArray) -> Iterator[_Part]:
    n = 2 ** len(group)
    for first in range(0, n, 2**_PART):
        yield _Part(row, problem, group, first, min(first + 2**_PART, n))


def _sum_part(states: States, bias: dict[int, FloatArray], part: _Part) -> FloatArray:
    found: FloatArray = enumerate_part(
        part.problem, part.group, states[part.row], bias[part.row], part.first, part.last
    )
    return found


def check_limit(n_hidden: int, limit: int) -> None:
    if n_hidden > limit:
        raise TooManyHiddenError(
            f"exact enumeration over {n_hidden} hidden units needs 2**{n_hidden} terms; the limit is {limit}. "
            "Use infer() for a lower bound instead"
        )
