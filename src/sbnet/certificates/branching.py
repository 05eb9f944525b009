"""Branch and bound: both bounds of ln P(evidence) in subproblems, split where they are furthest apart.

A subproblem is a set of states of the hidden units, given by the states of some of them: evidence again, with a lower
and an upper bound of its own. Subproblems have no state in common and make up the whole, so the sum over all lower
bounds is a lower bound and the sum over all upper bounds an upper one. A subproblem whose bounds are both next to
nothing is never split again.
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
from sbnet.bounds.upper.subproblems import Limits, Subproblems, pick, split_each
from sbnet.certificates.enclosure import EFFORTS, Bounded, Enclosed, MeanFields, clinic, count, summed
from sbnet.exact.enumeration import Reduced
from sbnet.inference import MeanField
from sbnet.model.network import Network

MOST_SUBPROBLEMS = 2**14
"""Subproblems of one row, at most."""
_NUMBERS = 50_000_000  # in the parameters of all subproblems: 400 MB
_AT_ONCE = 16  # subproblems that are split together, which is quicker; fewer while there are few
_SAMPLED = 256  # subproblems at most that samples are drawn from: more would cost more than they save
_PAYS = 0.8  # of the gap with lines: tables cost several times as much, and must leave less than that
_NOTHING = 1e-12  # of the largest upper bound: a distance between bounds that is not worth a split
_STEPS, _TOL = 15, 1e-2  # of the descent in each subproblem: half as good in a tenth of the time is twice as good


class Until(NamedTuple):
    """When to stop: by the clock, and when the bounds are so near."""

    moment: float  # of `time.monotonic`
    gap: float

    def reached(self, enclosed: Enclosed) -> bool:
        """Is it time?"""
        return enclosed.upper - enclosed.lower <= self.gap or time.monotonic() >= self.moment


class Leaf(NamedTuple):
    """A subproblem, its bounds, and the means of mean field theory in it."""

    subproblem: Subproblems
    lower: float
    means: FloatArray
    upper: float
    divisible: bool  # does a split at some unit promise anything?

    @property
    def priority(self) -> float:
        """The distance between the bounds, in probability."""
        return log_difference(self.upper, self.lower) if self.divisible else -math.inf


def branch(root: Bounded) -> Iterator[Partition[Leaf]]:
    """The subproblems at first and after each round, until no split promises anything or there are too many."""
    network, limits = root.row.network, root.limits._replace(max_steps=_STEPS, tol=_TOL)
    leaves = _leaves(network, limits, root.subproblems, root.mean_field_in_each())
    most = min(MOST_SUBPROBLEMS, _NUMBERS // (len(network.weight) + 4 * len(network.bias)))
    divide = partial(_split, network, limits)
    return branch_and_bound(leaves, divide, most=most, at_once=_AT_ONCE, negligible=_NOTHING)


def _split(network: Network, limits: Limits, leaves: list[Leaf]) -> list[tuple[Leaf, ...]]:
    """Each subproblem in its parts, at the unit that promises most."""
    whole = joined([leaf.subproblem for leaf in leaves])
    subproblems, of = split_each(network, limits, whole, np.argmax(whole.score, axis=1))
    bound = np.minimum(subproblems.bound, whole.bound[of])  # a part is not above the whole
    start = np.array([leaf.means for leaf in leaves])[of]
    solution = MeanField().solve(network, subproblems.states, start=start, trace=False)
    parts = _leaves(network, limits, subproblems._replace(bound=bound), MeanFields(solution.bound, solution.means))
    return [tuple(parts[r] for r in np.flatnonzero(of == k)) for k in range(len(leaves))]


def _leaves(network: Network, limits: Limits, subproblems: Subproblems, below: MeanFields) -> list[Leaf]:
    """The lower bound of each subproblem: that of mean field theory, or ln P where all its states are summed."""
    leaves = []
    for k, row in enumerate(subproblems.states):
        lower = float(below.bound[k])
        if subproblems.exact[k]:
            found = summed(Reduced(network, row), limits.exact_up_to)
            lower = max(lower, found.value - found.margin)
        upper, divisible = float(subproblems.bound[k]), bool(subproblems.score[k].any())
        leaves.append(Leaf(pick(subproblems, [k]), lower, below.means[k], upper, divisible))
    return leaves


def joined(subproblems: list[Subproblems]) -> Subproblems:
    """One record of all of them."""
    return Subproblems._make(np.concatenate(parts) for parts in zip(*subproblems, strict=True))


def close(enclosed: Enclosed, until: Until) -> Enclosed:
    """The bounds brought nearer until it is time to stop; neither is ever given up for a worse one."""
    subproblems, lines = enclosed.subproblems, enclosed.lines
    if subproblems is None or lines is None:
        return _close_clinic(enclosed, until)
    tables_pay = enclosed.upper - enclosed.lower < _PAYS * (float(lines.subproblems.bound[0]) - enclosed.lower)
    return _close(enclosed, subproblems if tables_pay else lines, until)


def _close(enclosed: Enclosed, root: Bounded, until: Until) -> Enclosed:
    best: list[Leaf] = []
    for partition in branch(root):
        leaves = partition.subproblems()
        lower = margins.log_sum_below(np.array([leaf.lower for leaf in leaves]))
        upper = min(margins.log_sum_above(np.array([leaf.upper for leaf in leaves])), 0.0)
        number = count(len(leaves), "subproblem")
        if lower > enclosed.lower:
            enclosed = enclosed._replace(lower=lower, lower_from=f"mean field in each of {number}")
        if upper < enclosed.upper:
            best = leaves if len(leaves) <= _SAMPLED else best
            enclosed = enclosed._replace(upper=upper, upper_from=f"Hölder's inequality, {number}")
        if until.reached(enclosed):
            break
    if not best:
        return enclosed
    below = MeanFields(np.array([leaf.lower for leaf in best]), np.array([leaf.means for leaf in best]))
    subproblems = joined([leaf.subproblem for leaf in best])
    return enclosed._replace(subproblems=root._replace(subproblems=subproblems, mean_field=below))


def _close_clinic(enclosed: Enclosed, until: Until) -> Enclosed:
    """Where causes are independent and their findings observed: from the start, with twice as many subproblems."""
    level, begin = EFFORTS["high"]._replace(subproblems=2), time.monotonic()
    while level.subproblems < MOST_SUBPROBLEMS and not until.reached(enclosed):
        level = level._replace(subproblems=2 * level.subproblems)
        found = clinic(enclosed.row, [level], enclosed.mean_field)
        assert found is not None
        if found.lower > enclosed.lower:
            enclosed = enclosed._replace(lower=found.lower, lower_from=found.lower_from)
        if found.upper < enclosed.upper:
            enclosed = enclosed._replace(upper=found.upper, upper_from=found.upper_from)
        now = time.monotonic()
        if now + (now - begin) > until.moment:  # the next would take as long as all before it
            break
    return enclosed
