"""Branch and bound: both ends of ln P(evidence) in cells, split one after the other where the ends are furthest apart.

A cell is a set of states of the hidden units, given by the states of some of them: evidence again, with a lower and an
upper end of its own. Cells have no state in common and make up the whole, so the sum over all lower ends is a lower end
and the sum over all upper ends an upper one. A cell whose ends are both next to nothing is never split again.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import numpy as np

from sbnet._types import FloatArray
from sbnet.bounds import margins
from sbnet.bounds.branch_and_bound import Partition, branch_and_bound, log_difference
from sbnet.bounds.upper.cells import Cells, Limits, pick, split_cells
from sbnet.certificates.enclosure import EFFORTS, Bounded, Ends, MeanFields, clinic, count, summed
from sbnet.exact.enumeration import Reduced
from sbnet.inference import MeanField
from sbnet.model.network import Network

MOST_CELLS = 2**14
"""Cells of one row, at most."""
_NUMBERS = 50_000_000  # in the parameters of all cells: 400 MB
_AT_ONCE = 16  # cells that are split together, which is quicker; fewer while there are few
_SAMPLED = 256  # cells at most that samples are drawn from: more would cost more than they save
_PAYS = 0.8  # of the gap with lines: tables cost several times as much, and must leave less than that
_NOTHING = 1e-12  # of the largest upper end: a distance between ends that is not worth a split
_STEPS, _TOL = 15, 1e-2  # of the descent in each cell: half as good in a tenth of the time is twice as good


class Until(NamedTuple):
    """When to stop: by the clock, and when the ends are so near."""

    moment: float  # of `time.monotonic`
    gap: float

    def reached(self, ends: Ends) -> bool:
        """Is it time?"""
        return ends.upper - ends.lower <= self.gap or time.monotonic() >= self.moment


class Leaf(NamedTuple):
    """A cell, its ends, and the means of mean field theory in it."""

    cell: Cells
    lower: float
    means: FloatArray
    upper: float
    divisible: bool  # does a split at some unit promise anything?

    @property
    def priority(self) -> float:
        """The distance between the ends, in probability."""
        return log_difference(self.upper, self.lower) if self.divisible else -math.inf


def branch(root: Bounded) -> Iterator[Partition[Leaf]]:
    """The cells at first, and after each round of splits; ends where no split promises anything, or with too many."""
    network, limits = root.row.network, root.limits._replace(max_steps=_STEPS, tol=_TOL)
    leaves = _leaves(network, limits, root.cells, root.mean_field_in_each())
    most = min(MOST_CELLS, _NUMBERS // (network.n_edges + 4 * network.n_units))
    divide = partial(_split, network, limits)
    return branch_and_bound(leaves, divide, most=most, at_once=_AT_ONCE, negligible=_NOTHING)


def _split(network: Network, limits: Limits, leaves: list[Leaf]) -> list[tuple[Leaf, ...]]:
    """Each cell in two, at the unit that promises most."""
    whole = joined([leaf.cell for leaf in leaves])
    cells = split_cells(network, limits, whole, np.argmax(whole.score, axis=1).tolist())
    bound = np.minimum(cells.bound, np.tile(whole.bound, 2))  # a part is not above the whole
    start = np.array([leaf.means for leaf in leaves] * 2)
    solution = MeanField().solve(network, cells.states, start=start, trace=False)
    parts = _leaves(network, limits, cells._replace(bound=bound), MeanFields(solution.bound, solution.means))
    return list(zip(parts[: len(leaves)], parts[len(leaves) :], strict=True))


def _leaves(network: Network, limits: Limits, cells: Cells, below: MeanFields) -> list[Leaf]:
    """The lower end of each cell: that of mean field theory, or ln P where all its states are summed."""
    leaves = []
    for k, row in enumerate(cells.states):
        lower = float(below.bound[k])
        if cells.exact[k]:
            found = summed(Reduced(network, row), limits.exact_up_to)
            lower = max(lower, found.value - found.margin)
        leaves.append(Leaf(pick(cells, [k]), lower, below.means[k], float(cells.bound[k]), bool(cells.score[k].any())))
    return leaves


def joined(cells: list[Cells]) -> Cells:
    """One record of all of them."""
    return Cells._make(np.concatenate(parts) for parts in zip(*cells, strict=True))


def close(ends: Ends, until: Until) -> Ends:
    """The ends brought nearer, cell by cell, until it is time to stop; neither is ever given up for a worse one."""
    cells, lines = ends.cells, ends.lines
    if cells is None or lines is None:
        return _close_clinic(ends, until)
    tables_pay = ends.upper - ends.lower < _PAYS * (float(lines.cells.bound[0]) - ends.lower)
    return _close(ends, cells if tables_pay else lines, until)


def _close(ends: Ends, root: Bounded, until: Until) -> Ends:
    best: list[Leaf] = []
    for partition in branch(root):
        leaves = partition.subproblems()
        lower = margins.log_sum_below(np.array([leaf.lower for leaf in leaves]))
        upper = min(margins.log_sum_above(np.array([leaf.upper for leaf in leaves])), 0.0)
        cells = count(len(leaves), "cell")
        if lower > ends.lower:
            ends = ends._replace(lower=lower, lower_from=f"mean field in each of {cells}")
        if upper < ends.upper:
            best = leaves if len(leaves) <= _SAMPLED else best
            ends = ends._replace(upper=upper, upper_from=f"Hölder's inequality, {cells}")
        if until.reached(ends):
            break
    if not best:
        return ends
    below = MeanFields(np.array([leaf.lower for leaf in best]), np.array([leaf.means for leaf in best]))
    return ends._replace(cells=root._replace(cells=joined([leaf.cell for leaf in best]), mean_field=below))


def _close_clinic(ends: Ends, until: Until) -> Ends:
    """The same where causes are independent and their findings observed: from the start, with twice as many cells."""
    level, begin = EFFORTS["high"]._replace(cells=2), time.monotonic()
    while level.cells < MOST_CELLS and not until.reached(ends):
        level = level._replace(cells=2 * level.cells)
        found = clinic(ends.row, [level], ends.mean_field)
        assert found is not None
        if found.lower > ends.lower:
            ends = ends._replace(lower=found.lower, lower_from=found.lower_from)
        if found.upper < ends.upper:
            ends = ends._replace(upper=found.upper, upper_from=found.upper_from)
        now = time.monotonic()
        if now + (now - begin) > until.moment:  # the next would take as long as all before it
            break
    return ends
