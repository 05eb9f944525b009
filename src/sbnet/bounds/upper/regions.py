"""How the factors of one row are bounded: which parents are in tables, and where the parameters start."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sbnet._types import BoolArray, FloatArray, IndexArray, Problem, States
from sbnet.kernels import array_gates as gates
from sbnet.kernels.gates import NOISY_OR
from sbnet.kernels.upper import OfFactor, OfUnit, Regions

_SPLIT_WEIGHT = 4.0  # a weight beyond that decides a unit alone; it counts no more for the choice of a split


class Parameters(NamedTuple):
    """The parameters of one row by edge and by unit of the network; NaN where there are none."""

    edge: FloatArray  # the slope of a parent in a table
    unit: FloatArray  # the slope of a line, and the logarithm of the claim


def divide(problem: Problem, states: States, bias: FloatArray, large: BoolArray, room: int) -> Regions:
    """Put up to `room` parents of each factor of the large groups in its table: those with the largest weights."""
    n_factors, first = len(problem.factor), problem.ptr[:-1]
    active = large[problem.parent[first]]
    table = _tables(problem, states, active, room) if room else np.zeros(len(problem.weight), np.bool_)
    outside = np.where(table | ~np.repeat(active, np.diff(problem.ptr)), 0.0, problem.weight)
    low, high = (np.add.reduceat(end(outside, 0.0), first) for end in (np.minimum, np.maximum))
    most = int(np.add.reduceat(table, problem.ptr[:-1], dtype=np.int64).max(initial=0))
    return Regions(
        states,
        bias,
        large,
        active,
        table,
        low,
        high,
        OfUnit(*np.zeros((6, len(problem.hidden)))),
        OfFactor(np.empty(n_factors, np.int64), *np.zeros((4, n_factors))),
        np.empty((5, 1 << most)),
    )


def _tables(problem: Problem, states: States, active: BoolArray, room: int) -> BoolArray:
    """The slots of the parents that go in tables."""
    table, absent = np.zeros(len(problem.weight), np.bool_), _absent(problem, states)
    # A hidden unit whose input is known only up to an interval takes all of Hölder's weight itself (its term then has
    # a closed form), so it may be in no table. Parents come first: what they are is known when a child asks.
    alone = np.zeros(len(problem.hidden), np.bool_)
    for f in np.flatnonzero(active):
        slots = np.arange(problem.ptr[f], problem.ptr[f + 1])
        free = slots[~alone[problem.parent[slots]]]
        table[free[np.argsort(-np.abs(problem.weight[free]), kind="stable")[: 0 if absent[f] else room]]] = True
        if problem.own[f] >= 0 and not table[slots].all():
            alone[problem.own[f]] = True
    return table


def start(problem: Problem, regions: Regions, given: Parameters) -> FloatArray:
    """The parameters at the start: those that are given, or else those of lines at the middle of the inputs."""
    n_factors, first, table = len(problem.factor), problem.ptr[:-1], regions.table
    factor_of_slot = np.repeat(np.arange(n_factors), np.diff(problem.ptr))
    middle = regions.bias[problem.factor] + 0.5 * np.add.reduceat(problem.weight, first)
    children = 1.0 + np.bincount(problem.parent[table], minlength=len(problem.hidden))
    most = np.maximum.reduceat(children[problem.parent], first)
    slope, log_claim = given.unit[problem.factor, 0], given.unit[problem.factor, 1]
    gate, states = problem.gate[problem.factor], regions.states[problem.factor]
    first_slope = np.where(states >= 0, gates.slope(gate, states, middle), 0.0)  # none for a hidden unit
    slope = np.where(np.isnan(slope) | _absent(problem, regions.states), first_slope, slope)
    log_claim = np.where(np.isnan(log_claim), -np.log(most), log_claim)
    edge = given.edge[problem.edge]
    edge = np.where(np.isnan(edge), slope[factor_of_slot] * problem.weight, edge)
    active = regions.active
    return np.concatenate(
        [np.where(active[factor_of_slot], edge, 0.0), np.where(active, slope, 0.0), np.where(active, log_claim, 0.0)]
    )


def free_places(problem: Problem, regions: Regions) -> IndexArray:
    """Where the parameters are that the bound depends on: for lines alone, one for each factor and none for slots."""
    tabled = np.logical_or.reduceat(regions.table, problem.ptr[:-1])
    lines = (regions.low < regions.high) & ~_absent(problem, regions.states)
    return np.flatnonzero(np.concatenate([regions.table, lines, tabled]))


def _absent(problem: Problem, states: States) -> BoolArray:
    """Noisy-OR findings that are absent: ln P is straight, -x, so that the line of that slope is exact."""
    absent: BoolArray = (problem.gate[problem.factor] == NOISY_OR) & (states[problem.factor] == 0)
    return absent


def positive_slopes(problem: Problem, regions: Regions) -> BoolArray:
    """Which parameters are slopes of lines above ln(1 - e^-x), a function that rises."""
    on = (problem.gate[problem.factor] == NOISY_OR) & (regions.states[problem.factor] == 1)
    return np.concatenate([np.zeros(len(problem.parent), np.bool_), on, np.zeros(len(on), np.bool_)])


def keep(problem: Problem, regions: Regions, x: FloatArray, given: Parameters) -> None:
    """Put the parameters back where they came from."""
    n_slots, n_factors, active = len(problem.parent), len(problem.factor), regions.active
    tabled = np.logical_or.reduceat(regions.table, problem.ptr[:-1])
    units, used = problem.factor[active], np.repeat(active, np.diff(problem.ptr))
    given.unit[units, 0] = x[n_slots : n_slots + n_factors][active]
    given.unit[units, 1] = np.where(tabled, x[n_slots + n_factors :], np.nan)[active]
    given.edge[problem.edge[used]] = np.where(regions.table, x[:n_slots], np.nan)[used]


def rate(problem: Problem, regions: Regions) -> FloatArray:
    """How much would be gained by a split at each unit, after an evaluation at the parameters that were found."""
    mu = regions.of_unit.mu[problem.parent]
    curvature = np.where(regions.active, regions.of_factor.curvature, 0.0)
    step = np.minimum(np.abs(problem.weight), _SPLIT_WEIGHT)
    gain = mu * (1.0 - mu) * step * step * np.repeat(curvature, np.diff(problem.ptr))
    score = np.zeros(len(regions.states))
    score[problem.hidden] = np.bincount(problem.parent, gain, len(problem.hidden))
    return score
