"""Rows completed: every way to fill in what is missing as long as the ways are few, a weighted sample of them beyond.

Variables are gone through in order, parents first. One that is missing splits each completion into one for each of its
states, weighed by its probability; one that is observed multiplies the weights by that of its state. As long as a row
has no more than `most` completions nothing is random, and the sum of the weights is P(row). Beyond that they are drawn
down to `most` by their weights (systematic resampling: Fearnhead & Clifford 2003 draw so in filters of discrete
states), which leaves the sum right in the mean. What has no bearing on what is observed or asked for is left out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sbnet._types import HIDDEN, BoolArray, FloatArray, IndexArray, States
from sbnet.exact.factors import Family, families_of, leak, log_table
from sbnet.inference.equal_rows import first_equal
from sbnet.kernels.codes import NOISY_OR, SIGMOID, TABLE
from sbnet.kernels.random import GOLDEN, Seeds, row_seeds, splitmix, uniforms
from sbnet.model.network import Network
from sbnet.model.states import Tables, offsets
from sbnet.parallel.blocks import row_blocks
from sbnet.questions.domains import certainties

MOST = 256
"""Completions of a row."""
_FEW = 0.3
"""Completions are drawn again when the effective number of them is below this share."""
_SMALL = 1 << 12
"""Joint states of the parents of a variable for which zeros of its gate are put in a table."""


@dataclass(frozen=True, eq=False)
class Completions:
    """Completions of rows; those of a row stand together.

    Attributes
    ----------
    log_p : ndarray of shape (n_rows,)
        ln P of what is observed; exact where nothing was drawn, and else an estimate, of P itself right in the mean.
    row : ndarray of int
        Which row each of them completes.
    states : ndarray of int8
        -1 where a variable has no bearing on what was asked.
    share : ndarray
        The posterior probability of each; those of a row sum to one.
    """

    log_p: FloatArray
    row: IndexArray
    states: States
    share: FloatArray

    def probabilities(self, v: int, n_states: int) -> FloatArray:
        """Posterior probabilities of the states of a variable, rows by states."""
        place = self.row * n_states + self.states[:, v]
        found = np.bincount(place, weights=self.share, minlength=len(self.log_p) * n_states).astype(np.float64)
        return found.reshape(-1, n_states)

    def means(self, n_states: IndexArray) -> FloatArray:
        """Posterior probabilities of the states of all variables from the second one on, rows by columns."""
        parts = [self.probabilities(v, n)[:, 1:] for v, n in enumerate(n_states.tolist())]
        return np.concatenate(parts, axis=1)

    def draw(self, uniform: FloatArray) -> States:
        """One completion of each row, by its probability; `uniform` has a number in [0, 1) for each row."""
        above, begin = np.cumsum(self.share), _begin(self.row, len(self.log_p))
        before = np.concatenate([[0.0], above])[begin[:-1]]
        chosen = np.searchsorted(above, before + uniform * (above[begin[1:] - 1] - before), side="right")
        drawn: States = self.states[np.clip(chosen, begin[:-1], begin[1:] - 1)]
        return drawn


def complete(
    network: Network, states: States, *, asked: IndexArray | None = None, most: int = MOST, seed: int = 0
) -> Completions:
    """Completions of rows of states; those of the variables asked for are among what is completed, by default of all.

    Equal rows have equal completions.
    """
    first = first_equal(states)
    each, back = np.unique(first, return_inverse=True)
    wanted = np.arange(network.n_units) if asked is None else asked
    parts = [_complete(network, states[each[b]], wanted, most, seed) for b in row_blocks(len(each), 4 * most)]
    if len(each) == len(states) and len(parts) == 1:
        return parts[0]
    begins = offsets(np.array([len(part.log_p) for part in parts]))
    row = np.concatenate([part.row + b for part, b in zip(parts, begins[:-1], strict=True)] or [np.empty(0, np.int64)])
    log_p = np.concatenate([part.log_p for part in parts] or [np.empty(0)])
    begin = _begin(row, len(log_p))
    count = np.diff(begin)[back]
    place = np.repeat(begin[back] - offsets(count)[:-1], count) + np.arange(count.sum())
    joined = np.concatenate([part.states for part in parts] or [states])
    share = np.concatenate([part.share for part in parts] or [np.empty(0)])
    return Completions(log_p[back], np.repeat(np.arange(len(states)), count), joined[place], share[place])


def log_probabilities(network: Network, states: States, *, most: int = MOST, seed: int = 0) -> FloatArray:
    """ln P of what is observed in each row."""
    return complete(network, states, asked=np.empty(0, np.int64), most=most, seed=seed).log_p


def _complete(network: Network, rows: States, asked: IndexArray, most: int, seed: int) -> Completions:
    live = informed(network, rows, asked)
    seeds = row_seeds(seed % 2**64, rows)
    row, states, weight = np.arange(len(rows)), rows.copy(), np.zeros(len(rows))
    log_p = np.zeros(len(rows))
    needed = np.flatnonzero(live.any(axis=0)).tolist()
    for v in needed:
        seen, function = rows[row, v], _function(network, v, states)
        if function is not None:
            states[:, v] = function
            weight[(seen != HIDDEN) & (seen != function)] = -np.inf
            continue
        log_v = Conditional(*families_in(network, (v,))).log_p(states)
        split = (seen == HIDDEN) & live[row, v]
        known = np.flatnonzero(seen != HIDDEN)
        weight[known] += log_v[known, seen[known]]
        if split.any():
            n = int(network.n_states[v])
            times = np.where(split, n, 1)
            source = np.repeat(np.arange(len(row)), times)
            k = np.arange(len(source)) - np.repeat(np.cumsum(times) - times, times)
            new = split[source]
            row, states, weight = row[source], states[source], weight[source]
            states[new, v] = k[new]
            weight[new] += log_v[source[new], k[new]]
            possible = weight > -np.inf
            if not possible.all():  # a table rules it out
                possible |= (np.bincount(row, possible, len(rows)) == 0)[row]  # unless all are
                row, states, weight = row[possible], states[possible], weight[possible]
        if v == needed[-1]:
            break
        with np.errstate(over="ignore"):
            at = splitmix(seeds + np.uint64(v + 1) * GOLDEN)
        row, states, weight = _thinned(row, states, weight, log_p, most, at, v)
    top, total = _totals(row, weight, len(rows))
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.exp(weight - top[row]) / total[row]
        log_p += top + np.log(total)
    share[np.isnan(share)] = (1.0 / np.bincount(row, minlength=len(rows)))[row][np.isnan(share)]
    return Completions(log_p, row, states, share)


class Conditional:
    """P(v | parents) of one variable, for arrays of states, rows by variables; a parent that is missing counts as 0."""

    def __init__(self, family: Family) -> None:
        self.variable, self.parents, self.gate = family.variable, family.parents, family.gate
        self.bias = family.bias
        self.weights = [np.hstack([np.zeros((len(self.bias), 1)), block]).T for block in family.weights]
        self.table: FloatArray | None = None
        sizes = [len(weight) for weight in self.weights]
        certain = family.gate == SIGMOID and certainties(family.gate, family.bias, family.weights).any()
        if family.table is not None or (certain and math.prod(sizes) <= _SMALL):
            nothing = np.full((1, max(family.variable, *family.parents, 0) + 1), HIDDEN)
            self.table = log_table(family, nothing)[0]

    def log_p(self, states: States) -> FloatArray:
        """ln P of each state of the variable, samples by states."""
        if self.table is not None:
            given = tuple(np.maximum(states[:, u], 0) for u in self.parents)
            return np.broadcast_to(self.table[given], (len(states), self.table.shape[-1]))
        return self._of_inputs(self._inputs(states, -1))

    def of_state(self, states: States) -> FloatArray:
        """ln P of the state that it is in."""
        return self.log_p(states)[np.arange(len(states)), states[:, self.variable]]

    def told(self, parent: int, states: States) -> FloatArray:
        """ln P of the state that it is in, if a parent were in each of its states: samples by those."""
        k, own = self.parents.index(parent), states[:, self.variable]
        if self.table is not None:
            others = tuple(states[:, u] for u in self.parents if u != parent)
            entries: FloatArray = np.moveaxis(self.table, k, -1)[(*others, own)]
            return entries
        x = self._inputs(states, k)[:, None, :] + self.weights[k]
        log_p = self._of_inputs(x.reshape(-1, x.shape[2])).reshape(*x.shape[:2], -1)
        told: FloatArray = np.take_along_axis(log_p, own[:, None, None].astype(np.int64), axis=2)[:, :, 0]
        return told

    def _inputs(self, states: States, without: int) -> FloatArray:
        x = np.tile(self.bias, (len(states), 1))
        for k, (u, weight) in enumerate(zip(self.parents, self.weights, strict=True)):
            if k != without:
                x += weight[np.maximum(states[:, u], 0)]
        return x

    def _of_inputs(self, x: FloatArray) -> FloatArray:
        """ln P of each state from the inputs of thresholds."""
        if self.gate == NOISY_OR:
            return leak(np.maximum(x, 0.0))
        tail, nothing = np.log1p(np.exp(-np.abs(x))), np.zeros((len(x), 1))
        reached = np.cumsum(np.minimum(x, 0.0) - tail, axis=1)  # ln P(v >= l)
        log_p: FloatArray = np.hstack([nothing, reached]) + np.hstack([np.minimum(-x, 0.0) - tail, nothing])
        return log_p


def families_in(network: Network, variables: Sequence[int]) -> list[Family]:
    """Some variables of a network and their parents, with tables."""
    tables = {v: network.tables[network.names[v]] for v in variables if network.gate[v] == TABLE}
    return families_of(network.model, network.bias, variables, tables)


def _function(network: Network, v: int, states: States) -> States | None:
    """The states of a variable that is a function of its parents; None for any other."""
    name = network.names[v]
    tables = network.tables
    function = tables.function(name) if isinstance(tables, Tables) else None
    if function is None:
        return None
    parents = network.graph.parent[network.graph.indptr[v] : network.graph.indptr[v + 1]]
    found: States = function[tuple(states[:, parents].T)]
    return found


def informed(network: Network, rows: States, asked: IndexArray | tuple[()] = ()) -> BoolArray:
    """Rows by variables: is it observed or asked for, or has it such a descendant?"""
    live: BoolArray = rows != HIDDEN
    live[:, list(asked)] = True
    indptr, parent = network.graph.indptr, network.graph.parent
    for v in range(network.n_units - 1, 0, -1):
        above = parent[indptr[v] : indptr[v + 1]]
        live[:, above] |= live[:, v : v + 1]
    return live


def _thinned(
    row: IndexArray, states: States, weight: FloatArray, log_p: FloatArray, most: int, seeds: Seeds, v: int
) -> tuple[IndexArray, States, FloatArray]:
    """Completions of rows that have more than `most`, or of which few count, drawn down to `most` by their weights.

    Each is taken as often as its share of the row says, rounded up or down. Those with the same state of variable v
    stand together, so that each state keeps its share too; and in random order, since of completions that alternate in
    another variable all would lose the same state of that.
    """
    n, count = len(log_p), np.bincount(row, minlength=len(log_p))
    if count.max(initial=0) < most:
        return row, states, weight
    top, total = _totals(row, weight, n)
    squares = np.bincount(row, weights=np.exp(weight - top[row]) ** 2, minlength=n)
    many = ((count > most) | ((count == most) & (total**2 < _FEW * most * squares))) & (total > 0.0)
    if not many.any():
        return row, states, weight
    kept, taken, begin = ~many[row], np.flatnonzero(many[row]), _begin(row, n)
    own = row[taken]
    with np.errstate(over="ignore"):
        keys = splitmix(seeds[own] + (taken - begin[own]).astype(np.uint64) * GOLDEN)
    taken = taken[np.lexsort((keys, states[taken, v], own))]
    share = np.exp(weight[taken] - top[own]) / total[own]
    first = np.searchsorted(own, own)
    above = np.cumsum(share)
    above = (above - np.concatenate([[0.0], above])[first]) * most
    last = np.append(own[1:] != own[:-1], True)
    above[last] = most  # whatever rounding says
    upper = np.ceil(np.minimum(above, most) - uniforms(seeds[own]))
    lower = np.where(np.arange(len(own)) == first, 0.0, np.concatenate([[0.0], upper[:-1]]))
    source = np.concatenate([np.flatnonzero(kept), np.repeat(taken, (upper - lower).astype(np.int64))])
    log_p[many] += top[many] + np.log(total[many] / most)
    weight = np.where(kept, weight, 0.0)
    source = source[np.argsort(row[source], kind="stable")]
    return row[source], states[source], weight[source]


def _totals(row: IndexArray, weight: FloatArray, n: int) -> tuple[FloatArray, FloatArray]:
    """The largest weight of each row, and the sum of all in units of that."""
    top: FloatArray = np.maximum.reduceat(weight, _begin(row, n)[:-1]) if n else np.empty(0)
    top = np.where(np.isfinite(top), top, 0.0)
    return top, np.bincount(row, weights=np.exp(weight - top[row]), minlength=n).astype(np.float64)


def _begin(row: IndexArray, n: int) -> IndexArray:
    """Where the completions of each row begin, and where the last ones end."""
    return offsets(np.bincount(row, minlength=n))
