"""Conditioning: the states of the hidden units in subproblems, each with an upper bound of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from sbnet._types import BoolArray, FloatArray, IndexArray, States
from sbnet.bounds import margins
from sbnet.bounds.branch_and_bound import branch_and_bound, log_difference, upper
from sbnet.bounds.upper.regions import Parameters, divide, free_places, keep, rate
from sbnet.bounds.upper.regions import start as first_point
from sbnet.exact.enumeration import Reduced
from sbnet.kernels.descent import descend
from sbnet.model.network import Network

MOST_NUMBERS = 500_000
"""In an array of several subproblems: 4 MB."""

_CANDIDATES = 3
_NOTHING = 5e-324  # of the largest bound: less than that is no number, and not worth a split


class Limits(NamedTuple):
    """How far an upper bound is taken."""

    exact_up_to: int  # units in a group that is summed exactly
    table_up_to: int  # parents of a unit whose states are enumerated
    max_steps: int
    tol: float
    findings: bool = True  # may sums run over findings that are present? (Balls go through states only.)


class Subproblems(NamedTuple):
    """Extended evidence, its bounds, the parameters that gave them, and what a split at each unit promises."""

    states: States
    bound: FloatArray
    exact: BoolArray
    edge: FloatArray
    unit: FloatArray
    score: FloatArray


def solve_row(row: Reduced, limits: Limits, start: Subproblems | None = None) -> Subproblems:
    """The bound for one pattern that is reduced already, from parameters of `start`, which stay as they are."""
    copied = None if start is None else Subproblems._make(part.copy() for part in start)
    return solve(row.network, limits, row.states[None, :], copied, [row])


def solve(
    network: Network,
    limits: Limits,
    states: States,
    start: Subproblems | None = None,
    reduced: Sequence[Reduced] | None = None,
) -> Subproblems:
    """Small groups of coupled hidden units are summed, the others bounded, from the parameters of `start`."""
    (n, n_units), model = states.shape, network.model
    edge = np.full((n, len(model.weight)), np.nan) if start is None else start.edge
    unit = np.full((n, model.threshold[-1], 2), np.nan) if start is None else start.unit
    bound, exact, score = np.empty(n), np.empty(n, np.bool_), np.zeros((n, n_units))
    every = margins.scale(network)
    for r in range(n):
        row = Reduced(network, states[r]) if reduced is None else reduced[r]
        scale = every.of(margins.involved(row.problem, row.states))
        sums = row.sums(limits.exact_up_to, findings=limits.findings)
        bound[r] = sums.total + margins.of_sum(scale, row.problem, sums.label, limits.exact_up_to) + sums.error
        large = sums.large
        exact[r] = not large.any()
        if not exact[r]:
            part, score[r] = _bound(row, limits, scale, large, Parameters(edge[r], unit[r]))
            bound[r] += part
    return Subproblems(states, np.minimum(bound, 0.0), exact, edge, unit, score)  # P <= 1


def _bound(
    row: Reduced, limits: Limits, scale: margins.Scale, large: BoolArray, given: Parameters
) -> tuple[float, FloatArray]:
    """The bound on the large groups of one row, and a score for each unit; `given` is where to start, and to end."""
    model, problem, best = row.network.model, row.problem, np.inf
    fresh = bool(np.isnan(given.unit[:, 0]).all())
    stages = [0, limits.table_up_to] if fresh and limits.table_up_to else [limits.table_up_to]
    for room in stages:  # lines first: a quick way to a good start
        regions = divide(problem, model, row.states, row.bias, large, room)
        x, (free, positive) = first_point(regions, given), free_places(regions)
        with np.errstate(all="ignore"):  # a direction that overflows is no way down, and is given up
            value, _ = descend(regions, x, free, positive, limits.max_steps, limits.tol)
        best = min(best, value + margins.of_upper(scale, regions, x))
        keep(regions, x, given)
    return best, rate(problem, regions, len(row.states))


def pick(subproblems: Subproblems, rows: Sequence[int] | IndexArray) -> Subproblems:
    return Subproblems._make(part[rows] for part in subproblems)


def split_each(
    network: Network, limits: Limits, subproblems: Subproblems, units: Sequence[int] | IndexArray
) -> tuple[Subproblems, IndexArray]:
    """Each subproblem k split at ``units[k]``: first the parts where it is 0, then those where it is 1, and so on.

    Also the number k that each part comes from.
    """
    at, model = np.asarray(units, np.int64), network.model
    state, whole = np.nonzero(np.arange(model.n_states[at].max(initial=0))[:, None] < model.n_states[at])
    start = pick(subproblems, whole)
    for r, i in enumerate(at[whole].tolist()):
        start.states[r, i] = state[r]
        # observed now: the slopes of its factor are other ones
        start.unit[r, model.threshold[i] : model.threshold[i + 1], 0] = np.nan
        start.edge[r, model.block[model.indptr[i]] : model.block[model.indptr[i + 1]]] = np.nan
    return solve(network, limits, start.states, start), whole


def _log_sums(values: FloatArray, whole: IndexArray, n: int) -> FloatArray:
    """ln of the sum of e^x over the parts of each of n subproblems."""
    total = np.full(n, -np.inf)
    np.logaddexp.at(total, whole, values)
    return total


def split_all(
    network: Network, limits: Limits, subproblems: Subproblems, units: Sequence[int]
) -> tuple[FloatArray, BoolArray, IndexArray]:
    """Bounds of the subproblems when each is split at all units, whether they are exact, and the number of parts."""
    n = len(subproblems.bound)
    if not units:
        return subproblems.bound, subproblems.exact, np.ones(n, np.int64)
    parts = n * int(network.n_states[units[0]])
    if n > 1 and parts * len(network.weight) > MOST_NUMBERS:  # one half after the other, to save memory
        halves = [split_all(network, limits, pick(subproblems, k), units) for k in np.array_split(np.arange(n), 2)]
        return tuple(np.concatenate(both) for both in zip(*halves, strict=True))  # type: ignore[return-value]
    children, whole = split_each(network, limits, subproblems, [units[0]] * n)
    bound, exact, count = split_all(network, limits, children, units[1:])
    together, every = _log_sums(bound, whole, n), np.bincount(whole, ~exact, n) == 0
    better = together < subproblems.bound
    return (
        np.where(better, together, subproblems.bound),
        np.where(better, every, subproblems.exact),
        np.where(better, np.bincount(whole, count, n).astype(np.int64), 1),
    )


def split_best(network: Network, limits: Limits, root: Subproblems, most: int) -> tuple[float, bool, int, list[int]]:
    """Split subproblems one after the other, each time where it lowers the sum most; also the units that were split."""
    used = set[int]()

    def divide(leaves: list[_Leaf]) -> list[list[_Leaf]]:
        used.update(leaf.unit for leaf in leaves)
        parts = [[pick(leaf.children, [k]) for k in range(len(leaf.children.bound))] for leaf in leaves]
        return [[_Leaf(subproblem, *_best_split(network, limits, subproblem)) for subproblem in all_] for all_ in parts]

    first = _Leaf(root, *_best_split(network, limits, root))
    *_, partition = branch_and_bound([first], divide, most=most, negligible=_NOTHING)
    leaves = partition.subproblems()
    return min(upper(leaves), first.upper), all(leaf.subproblem.exact[0] for leaf in leaves), len(leaves), list(used)


class _Leaf(NamedTuple):
    """A subproblem, the best way to split it, and the bound that this would give."""

    subproblem: Subproblems
    unit: int
    children: Subproblems
    split_bound: float

    @property
    def upper(self) -> float:
        return float(self.subproblem.bound[0])

    @property
    def priority(self) -> float:
        """What the best split takes off the sum, which is known."""
        return log_difference(self.upper, self.split_bound)


def _best_split(network: Network, limits: Limits, subproblem: Subproblems) -> tuple[int, Subproblems, float]:
    """Try the units that promise most, and keep the best."""
    units = [
        int(i) for i in np.argsort(-subproblem.score[0], kind="stable")[:_CANDIDATES] if subproblem.score[0, i] > 0.0
    ]
    if not units:
        return -1, subproblem, float(subproblem.bound[0])
    children, whole = split_each(network, limits, pick(subproblem, [0] * len(units)), units)
    together = _log_sums(children.bound, whole, len(units))
    k = int(np.argmin(together))
    return units[k], pick(children, np.flatnonzero(whole == k)), float(together[k])
