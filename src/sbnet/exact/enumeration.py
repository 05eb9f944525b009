"""Sums over all joint states of the hidden variables: small ones with arrays, large ones by elimination.

A group of coupled hidden variables is summed alone. Where it is small, ln P(H, V) of all its joint states is one array;
where it is large, variables are eliminated (:mod:`sbnet.exact.elimination`), or if it has two levels, findings are gone
through. Many rows with the same variables observed are eliminated side by side.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, partial
from typing import NamedTuple

import numpy as np

from sbnet import checks
from sbnet._types import HIDDEN, BoolArray, FloatArray, IndexArray, States
from sbnet.errors import NetworkError, TooManyHiddenError
from sbnet.exact.factors import families_of, log_table
from sbnet.exact.quickscore import MOST_FINDINGS, TwoLevels, total, two_levels
from sbnet.exact.sparse import Sum, patterns
from sbnet.kernels.codes import TABLE
from sbnet.kernels.structs import Problem
from sbnet.model import gates
from sbnet.model.components import members
from sbnet.model.network import Network
from sbnet.parallel.blocks import Bar, Block, Inline, RowBlocks, Threads, map_blocks
from sbnet.questions.reduction import absorb, columns, components, live_variables, reduce, stretches
from sbnet.questions.support import has_zeros, remote

_QUICK = 8
"""Coupled hidden units that are summed over without a look at their findings."""
_ARRAYS = 12
"""Groups of up to 2**12 joint states are summed with arrays; larger ones, where it has to be, in parts of so many."""
_ALIKE, _TERMS, _NARROW = 4, 1 << 15, 16.0
"""Four rows or more with the same variables observed, and of that many joint states in all, share an order of
elimination if no table is larger than 2**16."""
_ROWS = 64
"""Rows in a block; more of them are shared among threads."""
MOST_BITS = 60
"""The largest limit."""
WORST = 1e-9
"""The largest relative error of a sum over findings that counts as exact."""


class Effort(NamedTuple):
    """How far to go, and how."""

    limit: int
    threads: int | None
    progress: bool | None
    means: bool = True  # are they asked for? Sums over findings take several times as long with them
    work: float = math.inf  # numbers that are multiplied for a row of variables with states


def enumerate_states(network: Network, states: States, effort: Effort) -> tuple[FloatArray, FloatArray]:
    """ln P(V), and the means of each row by column; those of barren variables are NaN.

    So may be those of causes if none are asked for.
    """
    checks.whole("limit", effort.limit, 0, MOST_BITS)
    if (network.gate == TABLE).any():
        raise NetworkError(f"variable {next(iter(network.tables))!r} has a table; sums over states take none")
    log_p, (variable, state) = np.empty(len(states)), columns(network.model)
    seen = states[:, variable]
    means = np.where(seen == HIDDEN, np.nan, seen == state)
    rows = np.flatnonzero(_sum_alike(network, states, effort, log_p, means))
    wide = rows[(states[rows] == HIDDEN) @ np.log2(network.model.n_states) > effort.limit]
    reduced = {int(r): Reduced(network, states[r]) for r in wide}
    for row in reduced.values():
        row.check(effort)  # before anything is summed
    blocks = map_blocks(
        partial(_sum_rows, network, effort, reduced),
        RowBlocks(states[rows], means[rows], rows, most=_ROWS),
        executor=Inline() if len(rows) <= _ROWS else Threads(effort.threads),
        progress=Bar("exact sums", len(rows), effort.progress),
    )
    for chosen, *found in blocks:
        log_p[chosen], means[chosen] = found
    return log_p, means


def _sum_rows(
    network: Network, effort: Effort, reduced: Mapping[int, Reduced], block: Block
) -> tuple[IndexArray, FloatArray, FloatArray]:
    """ln P and means of some rows; some are reduced already."""
    states, means, rows = block.columns
    means, log_p = means.copy(), np.empty(len(states))
    for k, r in enumerate(rows.tolist()):
        row = reduced.get(r) or Reduced(network, states[k])
        log_p[k] = row.known
        for group in row.groups:
            value, probabilities = group.quickest(effort)
            log_p[k] += value
            means[k, group.columns] = probabilities
    return rows, log_p, means


def _sum_alike(network: Network, states: States, effort: Effort, log_p: FloatArray, means: FloatArray) -> BoolArray:
    """ln P and means of rows of which many have the same variables observed; which rows are left."""
    left = np.ones(len(states), np.bool_)
    for rows in patterns(network, states):
        if len(rows) < _ALIKE:
            continue
        live = np.flatnonzero(live_variables(network.model, states[rows[0]]))
        hidden = live[states[rows[0], live] < 0]
        if len(rows) * 2.0 ** min(len(hidden), 50) < _TERMS:
            continue
        try:
            one = Sum(network, states[rows[:1]], live.tolist(), min(effort.limit, _NARROW))
        except TooManyHiddenError:
            continue
        answers = one.solve(states[rows], hidden.tolist() if effort.means else ())
        log_p[rows], left[rows] = answers.log_p, False
        for v, posterior in answers.posteriors.items():
            means[rows, network.model.threshold[v] : network.model.threshold[v + 1]] = posterior[:, 1:]
    return left


@dataclass(frozen=True, eq=False)
class Reduced:
    """One pattern of evidence, reduced once for all who ask about it; each part is made when it is first asked for."""

    network: Network
    states: States
    _sums: dict[tuple[int, bool], Sums] = field(default_factory=dict)
    _orders: dict[tuple[int, int], Sum] = field(default_factory=dict)

    @cached_property
    def problem(self) -> Problem:
        """What is left of the network."""
        return reduce(self.network.model, self.states)

    @cached_property
    def bias(self) -> FloatArray:
        """The biases of all thresholds, with the evidence absorbed."""
        bias: FloatArray = absorb(self.network, self.states[None, :])[0]
        return bias

    @cached_property
    def known(self) -> float:
        """ln P of the observed variables whose parents are all observed."""
        model, known = self.network.model, np.zeros(len(self.states), np.bool_)
        known[self.problem.known[self.states[self.problem.known] >= 0]] = True
        variable, level = columns(model)
        mine = np.flatnonzero(known[variable])
        v = variable[mine]
        value = gates.log_part(model.gate[v], level[mine], self.states[v], self.bias[mine]).sum()
        if remote(self.network, value).any():
            families = families_of(model, self.network.bias, np.unique(v))
            return math.fsum(float(log_table(family, self.states[None, :])[0]) for family in families)
        return float(value)

    @cached_property
    def label(self) -> IndexArray:
        """The number of the group of each hidden variable."""
        return components(self.problem)

    @cached_property
    def groups(self) -> list[Group]:
        """The groups of coupled hidden variables."""
        hidden, factors, slots, *_ = self.problem
        if not len(hidden):
            return []
        n = int(self.label.max()) + 1
        of_factor = members(self.label[slots["parent"][factors["slot"]]], n)
        return [Group(self, *both) for both in zip(members(self.label, n), of_factor, strict=True)]

    def check(self, effort: Effort) -> None:
        """Raise an error if the sum over a group is too large for the limit, whichever way it is taken."""
        limit = effort.limit
        for group in self.groups:
            if group.bits > limit and not (group.levels and group.levels.positive <= min(limit, MOST_FINDINGS)):
                group.by_elimination(limit)

    def sums(self, limit: int, *, findings: bool = True) -> Sums:
        """Sums over the groups of up to 2**limit joint states, or, unless told otherwise, of as many `findings`."""
        key = (limit, findings)
        if key not in self._sums:
            self._sums[key] = _sum_groups(self, limit, findings)
        return self._sums[key]


class Sums(NamedTuple):
    """Exact sums over the smaller groups of one row: ln P but for the others, and what margins depend on."""

    total: float
    label: IndexArray  # the group of each hidden variable
    large: BoolArray  # by hidden variable: is its group not summed?
    error: float  # of the sums over findings


def _sum_groups(row: Reduced, limit: int, findings: bool) -> Sums:
    value, error, large = row.known, 0.0, np.zeros(len(row.label), np.bool_)
    for group in row.groups:
        if group.bits <= limit:
            value += group.with_arrays()[0]
            continue
        large[group.units] = True
        if findings and group.levels is not None and group.levels.positive <= min(limit, MOST_FINDINGS):
            part, _, off = total(group.levels, with_means=False)
            if off <= WORST:
                value, error, large[group.units] = value + part, error + off, False
    return Sums(value, row.label, large, error)


@dataclass(frozen=True, eq=False)
class Group:
    """Coupled hidden variables of one row, and the factors that they have: places in the problem."""

    row: Reduced
    units: IndexArray
    factors: IndexArray

    @property
    def variables(self) -> IndexArray:
        """Their numbers in the network."""
        numbers: IndexArray = self.row.problem.hidden["variable"][self.units]
        return numbers

    @cached_property
    def radix(self) -> tuple[int, ...]:
        """How many states each has."""
        return tuple(self.row.problem.hidden["states"][self.units].tolist())

    @property
    def bits(self) -> float:
        """The logarithm to base 2 of the number of joint states."""
        return math.fsum(map(math.log2, self.radix))

    @property
    def columns(self) -> IndexArray:
        """Their columns in the network."""
        return stretches(self.row.network.model.threshold, self.variables)[0]

    @cached_property
    def levels(self) -> TwoLevels | None:
        """Causes and their findings, if it is that."""
        row = self.row
        return two_levels(row.network.model, row.problem, row.states, row.bias, self.units, self.factors)

    def quickest(self, effort: Effort) -> tuple[float, FloatArray]:
        """ln of the sum over all joint states, and the probability of each column; by findings if they are few."""
        most = min(effort.limit, MOST_FINDINGS)
        if self.bits > _QUICK and self.levels and self.levels.positive <= min(most, self.bits - 1):
            value, probabilities, error = total(self.levels, with_means=effort.means)
            if error <= WORST:
                return value, probabilities
        if self.bits <= min(_ARRAYS, effort.limit):
            return self.with_arrays()
        return self._eliminated(effort.limit)

    def _eliminated(self, limit: int) -> tuple[float, FloatArray]:
        answers = self.by_elimination(limit).solve(self.row.states[None, :], self.variables.tolist())
        return float(answers.log_p[0]), np.concatenate([answers.posteriors[v][0, 1:] for v in self.variables.tolist()])

    def by_elimination(self, limit: int) -> Sum:
        """The sum with an order of elimination, or an error if that takes too large a table."""
        key = int(self.variables[0]), limit
        if key not in self.row._orders:
            mine = {*self.variables.tolist(), *self.row.problem.factors["variable"][self.factors].tolist()}
            try:
                self.row._orders[key] = Sum(self.row.network, self.row.states[None, :], mine, limit)
            except TooManyHiddenError:
                if max(map(self._n_parents, self.factors)) == len(self.units):  # all have a child in common
                    check_limit(self.bits, limit, len(self.units))
                raise
        return self.row._orders[key]

    def _n_parents(self, factor: int) -> int:
        one = self.row.problem.factors[factor]
        return len(np.unique(self.row.problem.slots["parent"][one["slot"] : one["slot_end"]]))

    def with_arrays(self) -> tuple[float, FloatArray]:
        """ln of the sum over all joint states, and the probability of each column."""
        if has_zeros(self.row.network):
            return self._eliminated(MOST_BITS)
        n, step = math.prod(self.radix), 1 << _ARRAYS
        found = np.array([self._part(first, min(first + step, n)) for first in range(0, n, step)])
        top = found[:, 0].max()
        whole = (np.exp(found[:, 0] - top)[:, None] * found[:, 1:]).sum(axis=0)
        return float(top + np.log(whole[0])), np.minimum(whole[1:] / whole[0], 1.0)

    def _part(self, first: int, last: int) -> FloatArray:
        """Some of the joint states: ln of the largest term, the sum in units of that, and the part of each column."""
        row, model = self.row, self.row.network.model
        states, on = _joint_states(self.radix, first, last)
        factors, own = row.problem.factors[self.factors], row.problem.hidden["own"][self.units]
        place = np.full(len(row.problem.hidden), -1)
        place[self.units] = np.arange(len(self.units))
        x = self._weights @ on + row.bias[factors["threshold"]][:, None]
        seen = row.states[factors["variable"]][:, None]
        state = np.where(seen >= 0, seen, states[place[factors["hidden"]]])
        log_p = gates.log_part(factors["gate"][:, None], factors["level"][:, None], state, x).sum(axis=0)
        for b in np.flatnonzero(own < 0):  # inputs are known
            v = self.variables[b]
            h = row.bias[model.threshold[v] : model.threshold[v + 1]]
            level, every = np.arange(1, len(h) + 1), np.arange(len(h) + 1)[:, None]
            log_p += gates.log_part(model.gate[v], level, every, np.tile(h, (len(every), 1))).sum(axis=1)[states[b]]
        top = log_p.max()
        p = np.exp(log_p - top)
        return np.concatenate([[top, p.sum()], on @ p])

    @cached_property
    def _weights(self) -> FloatArray:
        """The weights between the factors and the columns of the group, dense."""
        hidden, factors, slots, *_ = self.row.problem
        mine = factors[self.factors]
        size = mine["slot_end"] - mine["slot"]
        of = np.repeat(np.arange(len(mine)), size)
        slot = slots[np.arange(len(of)) + np.repeat(mine["slot"] - np.cumsum(size) + size, size)]
        width = hidden["states"][self.units] - 1
        shift = np.zeros(len(hidden), np.int64)
        shift[self.units] = np.cumsum(width) - width - hidden["column"][self.units]
        dense = np.zeros((len(mine), int(width.sum())))
        dense[of, slot["column"] + shift[slot["parent"]]] = slot["weight"]
        return dense


@lru_cache(maxsize=16)
def _joint_states(radix: tuple[int, ...], first: int, last: int) -> tuple[States, FloatArray]:
    """Joint states, variables by states; and for each column, whether its variable is in its state."""
    states = np.stack(np.unravel_index(np.arange(first, last), radix)).astype(np.int8)
    return states, np.concatenate([[one == k for k in range(1, n)] for one, n in zip(states, radix, strict=True)]) * 1.0


def check_limit(bits: float, limit: int, n_hidden: int = 0) -> None:
    """Raise an error if there are more than 2**limit joint states; of so many units, if they have more than two."""
    if bits > limit:
        raise TooManyHiddenError(
            f"exact enumeration over {n_hidden or round(bits)} hidden variables needs 2**{bits:.4g} terms; the limit "
            f"is {limit}. Use infer() for a lower bound instead"
        )
