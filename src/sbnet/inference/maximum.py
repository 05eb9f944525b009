r"""The largest of the numbers ln P(S, V) over the states S of the hidden units: a search that knows what it has missed.

Every unit adds :math:`\ln p_i(S_i \mid z_i)`, with :math:`z_i = \sum_j J_{ij} S_j + h_i`. For any number
:math:`\alpha_i`, and with z between the least and the largest input that its parents can give it,

.. math:: \ln p_i(S_i \mid z_i) \le \alpha_i z_i + \beta_i(S_i), \qquad
    \beta_i(s) = \max_z [\ln p_i(s \mid z) - \alpha_i z],

a maximum of a concave function over an interval, in closed form. The right-hand sides add up to a function in which no
two units meet:

.. math:: \ln P(S, V) \le \sum_i \alpha_i h_i + \sum_j \big[ S_j c_j + \beta_j(S_j) \big],
    \qquad c_j = \sum_i \alpha_i J_{ij},

whose maximum is that of each unit alone. It is convex in :math:`\alpha`, and a few subgradient steps lower it. Where
some units are fixed, the intervals are shorter and the bound is tighter; where all are, it is ln P itself. So: branch
on one unit after the other, and bound. What has not been searched when patience ends is still bounded.

This search does not use :mod:`sbnet.bounds.branch_and_bound`, which is for sums: a maximum passes over parts that
cannot beat the best state known, which a sum may not, and its bounds are so cheap that 256 parts are one array.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import scipy

from sbnet._types import HIDDEN, BoolArray, FloatArray, IndexArray, States
from sbnet.kernels.codes import LEAST, NOISY_OR
from sbnet.model import gates
from sbnet.model.components import connected, members
from sbnet.model.network import Network
from sbnet.parallel.blocks import row_blocks

_ROOT_STEPS, _STEPS = 200, 3  # subgradient steps for the whole, and for each part
_BATCH = 256  # parts that are split at once
_WIDE = 4096  # parts in waiting, from which on the deepest come first, so that they stay so few
_ENUMERATED = 12  # hidden units whose states are all tried at once
_SHAKEN, _SHAKES = (0.3, 0.1, 0.05), 16  # shares of the hidden units that are flipped to get away; trials with each
_NUMBERS = 20_000_000  # that may be worked out to improve one set of states: a second or so
_PAIRED = 64  # hidden units of which pairs are flipped too
_ROUNDING = 2.0**-52
_STEEPEST = 100.0  # of the lines above ln P of a noisy-OR unit; those of a sigmoid unit have slopes from -1 to 1


@dataclass(frozen=True)
class Group:
    """Coupled hidden units and the units that depend on them: numbers of their own, from 0, parents first.

    `fixed` has the states of observed units and -1 for hidden ones; `bias` has all other parents absorbed.
    """

    units: IndexArray  # their numbers in the network
    weight: scipy.sparse.csr_array
    bias: FloatArray
    fixed: States
    gate: States

    @cached_property
    def hidden(self) -> IndexArray:
        """The hidden units, by their numbers in the group."""
        return np.flatnonzero(self.fixed == HIDDEN)

    def log_p(self, states: States) -> FloatArray:
        """ln P of each row of complete states."""
        z = (self.weight @ states.T).T + self.bias
        total: FloatArray = gates.log_p(self.gate, states, z).sum(axis=1)
        return total

    @property
    def size(self) -> int:
        """What a bound costs, in numbers to be worked out."""
        return int(self.weight.nnz) + 10 * len(self.bias)

    @cached_property
    def signed(self) -> tuple[scipy.sparse.csr_array, scipy.sparse.csr_array]:
        """The weights below zero, and those above."""
        return self.weight.minimum(0.0), self.weight.maximum(0.0)

    def inputs(self, states: States) -> tuple[FloatArray, FloatArray]:
        """The least and the largest inputs that free units can give."""
        free, known = states == HIDDEN, (self.weight @ (states == 1).T).T + self.bias
        low, high = (known + (weight @ free.T).T for weight in self.signed)
        return low, high

    @cached_property
    def margin(self) -> float:
        """More than rounding can make of ln P, or of a bound on it: it grows with the inputs, not with ln P."""
        return rounding_of(self.weight.data, self.bias, self.weight.indptr, self.gate)


def rounding_of(weight: FloatArray, bias: FloatArray, indptr: IndexArray, gate: States) -> float:
    """A margin for sums over all units of what depends on their inputs: so many terms, and of such a size."""
    size = np.abs(weight).sum() + np.abs(bias).sum() + len(bias) - np.log(LEAST) * np.count_nonzero(gate == NOISY_OR)
    terms = len(bias) + int(np.diff(indptr).max(initial=0))
    return float(4.0 * _ROUNDING * terms * size)


def groups_of(network: Network, row: States, bias: FloatArray, left_out: BoolArray) -> tuple[list[Group], IndexArray]:
    """The groups of hidden units that do not meet, and the observed units whose parents are all observed.

    Some units may be left out, if they have no edges.
    """
    graph, hidden = network.graph, (row == HIDDEN) & ~left_out
    child, parent = graph.child_of_edge, graph.parent
    live = hidden[parent]
    weights = scipy.sparse.csr_array((network.weight[live], (child[live], parent[live])), shape=(len(row), len(row)))
    label = connected(len(row), child[live], parent[live])
    random = hidden.copy()
    random[child[live]] = True
    found = []
    chosen = np.flatnonzero(random)
    for places in members(label[chosen]):
        if not len(places):
            continue
        units = chosen[places]
        own = weights[units][:, units]
        found.append(Group(units, own, bias[units], row[units], network.gate[units]))
    return found, np.flatnonzero(~random & ~left_out)


# --- bounds of parts --------------------------------------------------------------------------------------------------


class _Parts(NamedTuple):
    """Parts of the space of states: the units that are fixed in each, the lines of its bound, and the bound."""

    states: States
    slope: FloatArray
    bound: FloatArray

    def take(self, which: IndexArray | BoolArray) -> _Parts:
        return _Parts(self.states[which], self.slope[which], self.bound[which])

    def joined(self, other: _Parts) -> _Parts:
        return _Parts(
            np.concatenate([self.states, other.states]),
            np.concatenate([self.slope, other.slope]),
            np.concatenate([self.bound, other.bound]),
        )


class _Line(NamedTuple):
    """The bound by given lines: its value, the states at which it is reached, and its gradient in the slopes."""

    value: FloatArray
    states: States
    gradient: FloatArray


def _by_lines(group: Group, states: States, slope: FloatArray, low: FloatArray, high: FloatArray) -> _Line:
    free = states == HIDDEN
    best = [gates.touching(group.gate, s, slope, low, high) for s in (0, 1)]
    beta = [gates.log_p(group.gate, s, z) - slope * z for s, z in enumerate(best)]
    gain = (group.weight.T @ slope.T).T + beta[1] - beta[0]
    on = np.where(free, gain > 0.0, states == 1)
    value = slope @ group.bias + (beta[0] + np.where(on, gain, 0.0)).sum(axis=1)
    z = (group.weight @ on.T).T + group.bias
    return _Line(value, on.astype(np.int8), z - np.where(on, best[1], best[0]))


def _bounded(group: Group, parts: _Parts, target: float, steps: int) -> tuple[_Parts, States]:
    """Lower the bounds by steps of Polyak's length, towards the best value known; also the states on the way."""
    steepest = np.where(group.gate == NOISY_OR, _STEEPEST, 1.0)
    slope, kept, bound, seen = parts.slope, parts.slope, parts.bound, []
    low, high = group.inputs(parts.states)
    for k in range(steps + 1):
        line = _by_lines(group, parts.states, slope, low, high)
        better = line.value < bound
        bound, kept = np.where(better, line.value, bound), np.where(better[:, None], slope, kept)
        seen.append(line.states)
        if np.all(bound <= target + group.margin):
            break
        if k < steps:
            length = np.maximum(line.value - target, 0.0) / np.maximum((line.gradient**2).sum(axis=1), 1e-300)
            slope = np.clip(slope - length[:, None] * line.gradient, -1.0, steepest)
    return _Parts(parts.states, kept, bound), np.concatenate(seen[-2:])


# --- states that are good ---------------------------------------------------------------------------------------------


def good_state(group: Group, states: States) -> tuple[States, float]:
    """The best that comes of some states: each is improved, and what is best is perturbed and improved again."""
    most = max(_NUMBERS // (group.size * len(group.hidden)), 1)
    states = np.unique(states, axis=0)
    best, value = improve(group, states[np.argsort(-group.log_p(states), kind="stable")[:most]])
    rng, trials = np.random.default_rng(0), min(_SHAKES, most - 1)
    for share in np.repeat(_SHAKEN, 2 * (trials > 0)):
        shaken = np.repeat(best[None, :], trials, axis=0)
        shaken[:, group.hidden] ^= rng.random((trials, len(group.hidden))) < share
        other = improve(group, shaken)
        if other[1] > value:
            best, value = other
    return best, value


def improve(group: Group, states: States) -> tuple[States, float]:
    """The best of some states after single flips, as long as one helps, and after pairs of them."""
    best, value = _flipped(group, states)
    while len(group.hidden) <= _PAIRED:
        one, other = np.triu_indices(len(group.hidden), 1)
        pairs = np.repeat(best[None, :], len(one), axis=0)
        pairs[np.arange(len(one)), group.hidden[one]] ^= 1
        pairs[np.arange(len(one)), group.hidden[other]] ^= 1
        values = group.log_p(pairs)
        if not len(values) or values.max() <= value + group.margin:
            break
        best, value = _flipped(group, pairs[[values.argmax()]])
    return best, value


def _flipped(group: Group, states: States) -> tuple[States, float]:
    """Flip the unit that gains most in each of some states until none gains; the best that comes of it.

    Gains are differences, and small leaks are lost in them: what began better than it ends is kept.
    """
    begun = states.copy()
    for _ in range(4 * len(group.hidden)):
        gain = _gains(group, states)
        flip = gain.argmax(axis=1)
        rows = np.flatnonzero(gain[np.arange(len(gain)), flip] > group.margin)
        if not len(rows):
            break
        states[rows, flip[rows]] ^= 1
    states = np.concatenate([states, begun])
    values = group.log_p(states)
    return states[values.argmax()], float(values.max())


def _gains(group: Group, states: States) -> FloatArray:
    """What ln P gains if one unit flips, for each row and unit; minus infinity for observed ones."""
    n, edges = len(group.bias), group.weight.tocoo()
    child, parent = edges.row, edges.col
    by_parent = scipy.sparse.csr_array((np.ones(len(child)), (parent, np.arange(len(child)))), shape=(n, len(child)))
    gain = np.empty(states.shape)
    for rows in row_blocks(len(states), len(child)):
        on = states[rows]
        z = (group.weight @ on.T).T + group.bias
        before = gates.log_p(group.gate, on, z)
        flipped = z[:, child] + (1 - 2 * on)[:, parent] * edges.data
        change = gates.log_p(group.gate[child], on[:, child], flipped) - before[:, child]
        gain[rows] = gates.log_p(group.gate, 1 - on, z) - before + (by_parent @ change.T).T
    gain[:, group.fixed != HIDDEN] = -np.inf
    return gain


# --- the search -------------------------------------------------------------------------------------------------------


class Found(NamedTuple):
    """The best state that was found, its ln P, an upper bound on the best, and whether there is none better."""

    state: States
    value: float
    upper: float
    exact: bool


def largest(group: Group, starts: Callable[[], States], patience: int) -> Found:
    """Search a group, from complete states of all units if it takes any, splitting at most so many parts."""
    if (n := len(group.hidden)) <= _ENUMERATED:
        states = np.repeat(group.fixed[None, :], 2**n, axis=0)
        states[:, group.hidden] = np.arange(2**n)[:, None] >> np.arange(n) & 1
        values = group.log_p(states)
        return Found(states[values.argmax()], float(values.max()), float(values.max()) + group.margin, True)
    state, value = good_state(group, starts()[:, group.units])
    whole = _Parts(group.fixed[None, :], np.zeros((1, len(group.fixed))), np.array([np.inf]))
    waiting, seen = _bounded(group, whole, value, _ROOT_STEPS)
    state, value = _better(group, seen, state, value)
    strength = np.bincount(group.weight.indices, np.abs(group.weight.data), len(group.fixed))
    order = group.hidden[np.argsort(-strength[group.hidden], kind="stable")]
    missed, split = -np.inf, 0
    while True:
        open_ = waiting.bound > value + group.margin
        missed = max(missed, waiting.bound[~open_].max(initial=-np.inf))
        waiting = waiting.take(open_)
        if not len(waiting.bound) or split >= patience:
            break
        # those that might hold most, or where there are very many, those with the fewest states
        rank = waiting.bound if len(waiting.bound) <= _WIDE else (waiting.states != HIDDEN).sum(axis=1)
        chosen = np.argsort(-rank, kind="stable")[:_BATCH]
        halves, seen = _bounded(group, _halves(waiting.take(chosen), order), value, _STEPS)
        state, value = _better(group, seen, state, value)
        split += len(chosen)
        waiting = waiting.take(np.delete(np.arange(len(waiting.bound)), chosen))
        unknown = (halves.states == HIDDEN).any(axis=1)  # the value of a complete state is known
        waiting = waiting.joined(halves.take(unknown))
    upper = max(value, missed, waiting.bound.max(initial=-np.inf)) + group.margin
    return Found(state, value, float(upper), not len(waiting.bound))


def _better(group: Group, seen: States, state: States, value: float) -> tuple[States, float]:
    values = group.log_p(seen)
    if values.max() <= value:
        return state, value
    return improve(group, seen[[values.argmax()]])


def _halves(parts: _Parts, order: IndexArray) -> _Parts:
    """Each part split at the first unit of the order that is free in it."""
    unit = order[(parts.states[:, order] == HIDDEN).argmax(axis=1)]
    both = parts.joined(parts)
    both.states[np.arange(len(both.bound)), np.tile(unit, 2)] = np.repeat([0, 1], len(unit))
    return both
