"""Means of barren variables, which drop out of a sum because nothing below them is observed."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from sbnet._types import HIDDEN, FloatArray, IndexArray, States
from sbnet.exact.enumeration import WORST, Effort, Reduced, enumerate_states
from sbnet.exact.quickscore import MOST_FINDINGS, TwoLevels, log_sums, total
from sbnet.kernels.codes import NOISY_OR
from sbnet.model.network import Network
from sbnet.parallel.blocks import Taken, row_blocks


def barren_means(network: Network, states: Taken, log_p: FloatArray, units: IndexArray, effort: Effort) -> FloatArray:
    """In each row, the mean of a unit that dropped out of its sum, P(S_i = 1 | V) = P(S_i = 1, V) / P(V).

    A noisy-OR unit is asked for its absence: that factorises over its parents, where its presence would couple them.
    """
    means = np.empty(len(units))
    for block in row_blocks(len(units), network.n_units):
        absent = network.gate[units[block]] == NOISY_OR
        with_unit = states[block]
        with_unit[np.arange(len(with_unit)), units[block]] = np.where(absent, 0, 1)
        log_with = enumerate_states(network, with_unit, effort._replace(means=False))[0]
        with np.errstate(invalid="ignore"):  # impossible evidence
            log_share = np.minimum(log_with - log_p[block], 0.0)
        means[block] = np.where(absent, -np.expm1(log_share), np.exp(log_share))
    return means


def predictions(network: Network, row: States, means: FloatArray, units: IndexArray, limit: int) -> FloatArray:
    """Means of barren noisy-OR units of one row, all at once: one reduction, and sums only where parents are coupled.

    The absence of a unit factorises over parents that are independent given the evidence, with their posterior means;
    of those that are coupled, it moves the log-odds in the sum over their findings. NaN for a unit of another kind.
    """
    graph, hidden = network.graph, row == HIDDEN
    reduced = Reduced(network, row)
    bias, (label, sums) = reduced.bias, _coupled_causes(reduced, limit)
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
    several = defaultdict[int, list[IndexArray]](list)  # by group
    for mine in np.split(rest, cuts) if len(rest) else ():
        if len(mine) == 1:
            log_off[child[mine]] += alone[mine]
        else:
            several[label[parent[mine[0]]]].append(mine)
    for k, edges_of in several.items():
        group, moves = sums[k], [(parent[mine], -weight[mine]) for mine in edges_of]
        log_off[child[[mine[0] for mine in edges_of]]] += math.nan if group is None else group.moved(moves)
    return np.where(known, -np.expm1(np.minimum(log_off, 0.0)), np.nan)[units]


class _CoupledCauses(NamedTuple):
    """Causes that share findings which are present, and ln of the sum over them."""

    levels: TwoLevels
    place: IndexArray  # of a unit of the network among the causes
    value: float

    def moved(self, moves: Sequence[tuple[IndexArray, FloatArray]]) -> FloatArray:
        """How much ln of the sum rises for each move of the log-odds of some causes; NaN where digits are lost."""
        found = np.empty(len(moves))
        for block in row_blocks(len(moves), 1 << self.levels.positive):
            log_odds = np.repeat(self.levels.log_odds[None], len(found[block]), axis=0)
            for row, (units, by) in zip(log_odds, moves[block], strict=True):
                row[self.place[units]] += by
            found[block] = log_sums(self.levels, log_odds) - self.value
        return np.where(found > -np.inf, found, np.nan)


def _coupled_causes(row: Reduced, limit: int) -> tuple[IndexArray, list[_CoupledCauses | None]]:
    """For each unit the number of its group, -1 if it is independent of all others; and the sum over each group."""
    label, sums = np.full(len(row.states), -1), list[_CoupledCauses | None]()
    for group in row.groups:
        two = group.levels
        if two is None:
            label[group.variables] = len(sums)
            sums.append(None)
            continue
        label[group.variables[np.unique(two.parent)]] = len(sums)
        place = np.full(len(row.states), -1)
        place[group.variables] = np.arange(len(group.variables))
        few = two.positive <= min(limit, MOST_FINDINGS)
        value, _, error = total(two, with_means=False) if few else (0.0, None, math.inf)
        sums.append(_CoupledCauses(two, place, value) if error <= WORST else None)
    return label, sums
