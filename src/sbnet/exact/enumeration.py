"""Sums over all states of the hidden units: many small ones at once, large ones in parts."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np

from sbnet import checks
from sbnet._types import HIDDEN, BoolArray, FloatArray, IndexArray, Problem, States
from sbnet.errors import TooManyHiddenError
from sbnet.exact.quickscore import MOST_FINDINGS, TwoLevels, total, two_levels
from sbnet.kernels import array_gates as gates
from sbnet.kernels.enumerate import Flips, enumerate_rows, sum_states
from sbnet.kernels.gates import NOISY_OR
from sbnet.kernels.reduce import reduce
from sbnet.model.components import members
from sbnet.model.network import Network
from sbnet.parallel.blocks import Bar, Block, Inline, RowBlocks, Taken, Threads, map_blocks, row_blocks, rows_at_once
from sbnet.questions.reduction import absorb, coupled

_PART = 15
"""Larger groups are summed in parts of 2**15 terms, a tenth of a second or less: on all cores, with a moving bar."""
_TINY = 1000
"""Terms that are not worth a thread."""
_QUICK = 8
"""Coupled hidden units that are summed over without a look at their findings."""
_WORST = 1e-9  # relative error of a sum over findings
_DONE = -1  # in place of the size of a row's largest group


class Effort(NamedTuple):
    """How far to go, and how."""

    limit: int
    threads: int | None
    progress: bool | None
    means: bool = True  # are they asked for? Sums over findings take several times as long with them


def enumerate_states(network: Network, states: States, effort: Effort) -> tuple[FloatArray, FloatArray]:
    """ln P(V) and the means of each row; those of barren units, and of causes if none are asked for, may be NaN."""
    checks.whole("limit", effort.limit, 0, 60)
    largest = np.zeros(len(states), np.int64)  # hidden units in the largest coupled group of each row
    for rows in row_blocks(len(states), network.n_units):
        nothing = np.zeros(states[rows].shape)
        enumerate_rows(network.model, states[rows], nothing, -1, nothing, largest[rows])
    log_p = np.empty(len(states))
    means = np.where(states == HIDDEN, np.nan, states.astype(np.float64))
    if network.gate.any():  # where findings are fewer than causes, their subsets are the smaller sum
        for r in np.flatnonzero(largest > _QUICK):
            if _sum_findings(network, states[r], effort, log_p[r : r + 1], means[r]):
                largest[r] = _DONE
    check_limit(int(largest.max(initial=0)), effort.limit)
    small = np.flatnonzero((largest <= _PART) & (largest != _DONE))
    tiny = bool(np.sum(2.0 ** largest[small]) <= _TINY)
    blocks = map_blocks(
        partial(_sum_rows, network),
        RowBlocks(states[small], small, most=rows_at_once(network.n_units)),
        executor=Inline() if tiny else Threads(effort.threads),
        progress=Bar("exact sums", len(small), effort.progress),
    )
    for chosen, *found in blocks:
        log_p[chosen], means[chosen] = found
    if np.any(largest > _PART):
        _sum_large(network, states, np.flatnonzero(largest > _PART), effort, log_p, means)
    return log_p, means


def barren_means(network: Network, states: Taken, log_p: FloatArray, units: IndexArray, effort: Effort) -> FloatArray:
    """In each row, the mean of a unit that dropped out of its sum, P(S_i = 1 | V) = P(S_i = 1, V) / P(V).

    A noisy-OR unit is asked for its absence: that factorises over its parents, where its presence would couple them.
    """
    means = np.empty(len(units))
    for block in row_blocks(len(units), network.n_units):
        absent = network.gate[units[block]] == NOISY_OR
        with_unit = states[block]
        with_unit[np.arange(len(with_unit)), units[block]] = np.where(absent, 0, 1)
        log_share = enumerate_states(network, with_unit, effort._replace(means=False))[0] - log_p[block]
        log_share = np.minimum(log_share, 0.0)
        means[block] = np.where(absent, -np.expm1(log_share), np.exp(log_share))
    return means


def predictions(network: Network, row: States, means: FloatArray, units: IndexArray, limit: int) -> FloatArray:
    """Means of barren noisy-OR units of one row, all at once: one reduction, and sums only where parents are coupled.

    The absence of a unit factorises over parents that are independent given the evidence, with their posterior means;
    of those that are coupled, it moves the log-odds in the sum over their findings. NaN for a unit of another kind.
    """
    graph, hidden = network.graph, row == HIDDEN
    problem: Problem = reduce(network.model, row)
    bias = absorb(network, row[None, :])[0]
    label, sums = _coupled_causes(problem, row, bias, limit)
    edges = np.flatnonzero(np.isin(graph.child_of_edge, units) & hidden[graph.parent])
    child, parent, weight = graph.child_of_edge[edges], graph.parent[edges], network.weight[edges]
    strange = np.isnan(means)  # barren parents that depend on others
    with np.errstate(divide="ignore"):  # a cause that is certain and never fails
        alone = np.log1p(means[parent] * np.expm1(-weight))
    known = network.gate == NOISY_OR
    known[child[strange[parent]]] = False
    log_off = -bias + np.bincount(child, np.where(label[parent] < 0, alone, 0.0), network.n_units)
    rest = np.flatnonzero((label[parent] >= 0) & known[child])
    rest = rest[np.lexsort((label[parent[rest]], child[rest]))]
    cuts = np.flatnonzero(np.diff(child[rest]) | np.diff(label[parent[rest]])) + 1
    for mine in np.split(rest, cuts) if len(rest) else ():
        i, several = child[mine[0]], sums[label[parent[mine[0]]]]
        if len(mine) == 1:
            log_off[i] += alone[mine[0]]
        else:
            log_off[i] += math.nan if several is None else several.moved(parent[mine], -weight[mine])
    return np.where(known, -np.expm1(np.minimum(log_off, 0.0)), np.nan)[units]


class _CoupledCauses(NamedTuple):
    """Causes that share findings which are present, and ln of the sum over them."""

    levels: TwoLevels
    place: IndexArray  # of a unit of the network among the causes
    value: float

    def moved(self, units: IndexArray, by: FloatArray) -> float:
        """How much ln of the sum rises if the log-odds of some causes move; NaN where digits are lost."""
        log_odds = self.levels.log_odds.copy()
        log_odds[self.place[units]] += by
        change = np.logaddexp(0.0, log_odds) - np.logaddexp(0.0, self.levels.log_odds)
        moved = replace(self.levels, log_odds=log_odds, constant=self.levels.constant + float(change.sum()))
        value, _, error = total(moved, with_means=False)
        return value - self.value if error <= _WORST else math.nan


def _coupled_causes(
    problem: Problem, row: States, bias: FloatArray, limit: int
) -> tuple[IndexArray, list[_CoupledCauses | None]]:
    """For each unit the number of its group, -1 if it is independent of all others; and the sum over each group."""
    label, sums = np.full(len(row), -1), list[_CoupledCauses | None]()
    for group in group_sums(problem, row, bias):
        two = two_levels(problem, row, bias, group.units, group.factors)
        if two is None:
            label[group.hidden] = len(sums)
            sums.append(None)
            continue
        label[group.hidden[np.unique(two.parent)]] = len(sums)
        place = np.full(len(row), -1)
        place[group.hidden] = np.arange(len(group.hidden))
        few = two.positive <= min(limit, MOST_FINDINGS)
        value, _, error = total(two, with_means=False) if few else (0.0, None, math.inf)
        sums.append(_CoupledCauses(two, place, value) if error <= _WORST else None)
    return label, sums


def _sum_rows(network: Network, block: Block) -> tuple[IndexArray, FloatArray, FloatArray]:
    states, rows = block.columns
    means = np.where(states == HIDDEN, np.nan, states.astype(np.float64))
    largest = np.empty(len(states), np.int64)
    log_p = enumerate_rows(network.model, states, absorb(network, states), _PART, means, largest)
    return rows, log_p, means


@dataclass(frozen=True)
class _Part:
    """Some of the terms of one group: from `first` to `last`."""

    sum: GroupSum
    first: int
    last: int

    def __len__(self) -> int:
        return self.last - self.first

    def total(self) -> FloatArray:
        return self.sum.between(self.first, self.last)


def _sum_large(
    network: Network, states: States, rows: IndexArray, effort: Effort, log_p: FloatArray, means: FloatArray
) -> None:
    """ln P and means of rows with a large group, part by part: always in the same order, whoever adds them up."""
    sums = []
    for r in rows:
        bias = absorb(network, states[r : r + 1])[0]
        problem: Problem = reduce(network.model, states[r])
        log_p[r] = known_part(problem, states[r], bias)
        sums += [(int(r), group) for group in group_sums(problem, states[r], bias)]
    found = iter(
        map_blocks(
            _Part.total,
            (part for _, group in sums for part in _parts(group)),
            executor=Threads(effort.threads),
            progress=Bar("exact sum", sum(2 ** len(group.units) for _, group in sums), effort.progress, unit="terms"),
        )
    )
    for r, group in sums:
        parts = np.array([next(found) for _ in range(0, 2 ** len(group.units), 2**_PART)])
        value, probabilities = group.joined(parts)
        log_p[r] += value
        means[r, group.hidden] = probabilities


def _parts(group: GroupSum) -> Iterator[_Part]:
    n = 2 ** len(group.units)
    for first in range(0, n, 2**_PART):
        yield _Part(group, first, min(first + 2**_PART, n))


def _sum_findings(network: Network, row: States, effort: Effort, log_p: FloatArray, means: FloatArray) -> bool:
    """ln P and means of one row whose groups are causes and noisy-OR findings, or small; is it one?"""
    problem: Problem = reduce(network.model, row)
    bias = absorb(network, row[None, :])[0]
    groups = list(group_sums(problem, row, bias))
    levels = [two_levels(problem, row, bias, group.units, group.factors) for group in groups]
    costs = [len(g.units) if x is None else min(x.positive, len(g.units)) for g, x in zip(groups, levels, strict=True)]
    if max(costs) > min(effort.limit, MOST_FINDINGS) or all(x is None for x in levels):
        return False
    value, found = known_part(problem, row, bias), {}
    for group, two in zip(groups, levels, strict=True):
        if two is not None and two.positive < len(group.units):
            part, probabilities, error = total(two, with_means=effort.means)
            if not error <= _WORST:
                return False
        else:
            part, probabilities = group.joined(np.array([part.total() for part in _parts(group)]))
        value += part
        found[id(group)] = group.hidden, probabilities
    log_p[0] = value
    for hidden, probabilities in found.values():
        means[hidden] = probabilities
    return True


@dataclass(frozen=True, eq=False)
class Reduced:
    """One pattern of evidence, reduced once for all who ask about it; each part is made when it is first asked for."""

    network: Network
    states: States
    _sums: dict[tuple[int, bool], Sums] = field(default_factory=dict)

    @cached_property
    def problem(self) -> Problem:
        """What is left of the network."""
        left: Problem = reduce(self.network.model, self.states)
        return left

    @cached_property
    def bias(self) -> FloatArray:
        """The biases of all units, with the evidence absorbed."""
        bias: FloatArray = absorb(self.network, self.states[None, :])[0]
        return bias

    def sums(self, limit: int, *, findings: bool = True) -> Sums:
        """What :func:`sum_groups` says of it."""
        key = (limit, findings)
        if key not in self._sums:
            self._sums[key] = sum_groups(self.problem, self.states, self.bias, limit, findings=findings)
        return self._sums[key]


class Sums(NamedTuple):
    """Exact sums over the smaller groups of one row: ln P but for the others, and what margins depend on."""

    total: float
    label: IndexArray  # the group of each hidden unit
    large: BoolArray  # by hidden unit: is its group not summed?
    error: float  # of the sums over findings


def sum_groups(problem: Problem, states: States, bias: FloatArray, limit: int, *, findings: bool = True) -> Sums:
    """Sum over the groups of up to `limit` coupled hidden units, or, unless told otherwise, of as many `findings`.

    For one row after the other. It needs one small kernel, where `enumerate_rows` is several.
    """
    label, value, error = coupled(problem), known_part(problem, states, bias), 0.0
    large = np.bincount(label)[label] > limit
    noisy = findings and bool(large.any()) and bool(problem.gate[problem.factor].any())
    for group in group_sums(problem, states, bias, label, None if noisy else limit):
        if len(group.units) <= limit:
            value += group.joined(group.between(0, 2 ** len(group.units))[None, :])[0]
            continue
        two = two_levels(problem, states, bias, group.units, group.factors)
        if two is not None and two.positive <= min(limit, MOST_FINDINGS):
            part, _, off = total(two, with_means=False)
            if off <= _WORST:
                value, error, large[group.units] = value + part, error + off, False
    return Sums(value, label, large, error)


def known_part(problem: Problem, states: States, bias: FloatArray) -> float:
    """ln P of the observed units whose parents are all observed."""
    known = problem.known[states[problem.known] >= 0]
    return float(gates.log_p(problem.gate[known], states[known], bias[known]).sum())


def group_sums(
    problem: Problem, states: States, bias: FloatArray, label: IndexArray | None = None, limit: int | None = None
) -> Iterator[GroupSum]:
    """The groups of up to `limit` coupled hidden units of one row."""
    label = coupled(problem) if label is None else label
    sizes = np.bincount(label)
    if limit is not None and not np.any(sizes <= limit):
        return
    factors = label[problem.parent[problem.ptr[:-1]]]
    units_of, factors_of = members(label, len(sizes)), members(factors, len(sizes))
    flips = _flips(problem, states, bias)
    off = np.where(problem.factor_of < 0, gates.log_p(problem.gate[problem.hidden], 0, bias[problem.hidden]), 0.0)
    for units, mine in zip(units_of, factors_of, strict=True):
        if limit is None or len(units) <= limit:
            yield GroupSum(flips, problem.hidden[units], units, mine, float(off[units].sum()))


def _flips(problem: Problem, states: States, bias: FloatArray) -> Flips:
    units, hidden = problem.factor, problem.hidden
    return Flips(
        problem.child_ptr,
        problem.child,
        problem.weight[problem.child_slot],
        problem.factor_of,
        gates.log_odds(problem.gate[hidden], bias[hidden]),
        problem.gate[units].astype(np.int64),
        bias[units],
        np.maximum(states[units], 0).astype(np.float64),
        *(np.empty(len(units)) for _ in range(3)),
    )


class GroupSum(NamedTuple):
    """The sum over the states of one group of coupled hidden units."""

    flips: Flips
    hidden: IndexArray  # its units in the network
    units: IndexArray  # its units in the problem
    factors: IndexArray
    off: float  # ln P of its units without factors, all of them off

    def between(self, first: int, last: int) -> FloatArray:
        """The part of the sum over the states `first` to `last` of its code; `sum_states` says what is in it."""
        part, scratch = np.empty(len(self.units) + 2), [array.copy() for array in self.flips[-4:]]
        sum_states(Flips(*self.flips[:-4], *scratch), self.units, self.factors, first, last, part)
        return part

    def joined(self, parts: FloatArray) -> tuple[float, FloatArray]:
        """ln of the whole sum, and the probability of each unit to be 1."""
        top = parts[:, 0].max()
        total = (np.exp(parts[:, 0] - top)[:, None] * parts[:, 1:]).sum(axis=0)
        return float(top + np.log(total[0]) + self.off), total[1:] / total[0]


def check_limit(n_hidden: int, limit: int) -> None:
    if n_hidden > limit:
        raise TooManyHiddenError(
            f"exact enumeration over {n_hidden} hidden units needs 2**{n_hidden} terms; the limit is {limit}. "
            "Use infer() for a lower bound instead"
        )
