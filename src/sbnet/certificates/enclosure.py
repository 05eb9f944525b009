"""The two ends of ln P(evidence) for one row: what each effort tries, and the best of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from sbnet._types import HIDDEN, FloatArray, IndexArray, Problem, States
from sbnet.bounds import findings, margins
from sbnet.bounds.proven import lower as ball_lower
from sbnet.bounds.proven import upper as ball_upper
from sbnet.bounds.proven.lower import Piece
from sbnet.bounds.proven.upper import Cell
from sbnet.bounds.upper.cells import Cells, Limits, solve, split_cells
from sbnet.exact.enumeration import group_sums, known_part, sum_groups
from sbnet.exact.quickscore import two_levels
from sbnet.inference import Conditioned, MeanField, Mixture
from sbnet.inference.solvers.mixture import Component
from sbnet.inference.solvers.protocol import Solution
from sbnet.kernels.reduce import reduce
from sbnet.model.graph import Graph
from sbnet.model.network import MAX_PARAMETER, Network
from sbnet.questions.reduction import absorb

_MAX_STEPS, _TOL = 200, 1e-5
_GROUP = 12  # coupled hidden units that an upper bound sums exactly
_PROVEN_UP_TO = 14  # the same, for a sum in ball arithmetic, which is a thousand times slower


class Effort(NamedTuple):
    """What is tried, beside all that a lower effort tries."""

    exact_up_to: int  # coupled hidden units that are summed exactly
    lower_units: int  # hidden units enumerated for the lower end
    components: int  # of a mixture
    table_up_to: int  # parents of a unit enumerated for the upper end
    upper_units: int  # hidden units enumerated for the upper end
    findings: int  # of noisy-OR findings that are present, those that both ends sum over
    cells: int  # into which their causes are split


EFFORTS = {
    "fast": Effort(12, 0, 1, 4, 0, 6, 1),
    "normal": Effort(16, 4, 1, 4, 3, 8, 30),
    "high": Effort(20, 7, 3, 6, 5, 10, 100),
}


class Bounded(NamedTuple):
    """An upper bound in cells, how it was obtained, and the means of all units in mean field theory."""

    limits: Limits
    cells: Cells
    means: FloatArray


class Ends(NamedTuple):
    """Both ends, how they were obtained, and the solution of mean field theory alone."""

    lower: float
    upper: float
    value: float | None  # ln P, if it could be summed
    lower_from: str
    upper_from: str
    mean_field: Solution
    cells: Bounded | None  # of the upper end, if it has some


class How(NamedTuple):
    """How the ends are sought."""

    effort: str
    proven: bool
    exact_up_to: int | None = None  # coupled hidden units that are summed exactly; None: as the effort says


def enclose(network: Network, row: States, effort: str, proven: bool, exact_up_to: int | None = None) -> Ends:
    """The best ends that an effort, or a lower one, finds."""
    tried = list(EFFORTS.values())[: list(EFFORTS).index(effort) + 1]
    solver = MeanField()
    first = solver.solve(network, row[None, :], start=None, trace=False)
    most = tried[-1].exact_up_to if exact_up_to is None else exact_up_to
    in_group = min(_GROUP, most)
    value, margin, group, whole = summed(network, row, -1 if proven else most)
    if group <= min(most, _PROVEN_UP_TO) if proven else whole:
        together = f"sum over all states, {count(group, 'hidden unit')} at most together"
        if group > most:
            together = f"sum over all findings that are present, of {count(group, 'cause')} at most together"
        how = together if group else "product of known factors"
        low, high = ball_upper.enclosed(network, row) if proven else (value - margin, min(value + margin, 0.0))
        return Ends(low, high, 0.5 * (low + high) if proven else min(value, 0.0), how, how, first, None)
    ends = None if proven else clinic(network, row, tried, first)
    if ends is not None:
        return ends
    lower, lower_from, pieces = float(first.bound[0]), "mean field", [Piece(network, row, first.means[0])]
    best = in_lines(network, row, first, How(effort, proven, exact_up_to))  # may be as good as tables
    upper = float(best.cells.bound[0])
    order: IndexArray | None = None
    for level in tried:
        limits = Limits(in_group, level.table_up_to, _MAX_STEPS, _TOL, not proven)
        root = solve(network, limits, row[None, :])
        if order is None:
            order = np.argsort(-root.score[0], kind="stable")[: int((root.score[0] > 0.0).sum())]
        for cells in _split(network, limits, root, order[: level.upper_units]):
            total = min(margins.log_sum_above(cells.bound), 0.0)
            if total < upper:
                upper, best = total, Bounded(limits, cells, first.means[0])
        for total, how, parts in _tighter(network, row, first, order[: level.lower_units], level.components):
            if total > lower:
                lower, lower_from, pieces = total, how, parts
    found = best.cells
    upper_from = f"Hölder's inequality, {count(len(found.bound), 'cell')}"
    if proven:
        lower = ball_lower.lower(pieces, solver.bound)
        parameters = zip(found.states, found.edge, found.unit, strict=True)
        upper = ball_upper.upper([Cell(network, *given, in_group) for given in parameters])
    return Ends(lower, upper, None, lower_from, upper_from, first, best)


def in_lines(network: Network, row: States, first: Solution, how: How) -> Bounded:
    """The quickest upper bound: one cell, lines alone."""
    most = EFFORTS[how.effort].exact_up_to if how.exact_up_to is None else how.exact_up_to
    limits = Limits(min(_GROUP, most), 0, _MAX_STEPS, _TOL, not how.proven)
    return Bounded(limits, solve(network, limits, row[None, :]), first.means[0])


def count(n: int, what: str) -> str:
    """In words: 1 cell, 2 cells."""
    return f"{n} {what}{'s' * (n != 1)}"


class Sum(NamedTuple):
    """ln P if all groups of coupled hidden units are small enough, its margin, the size of the largest; are they?"""

    value: float
    margin: float
    largest: int
    whole: bool


def summed(network: Network, row: States, most: int) -> Sum:
    """The sum over groups of up to so many units."""
    problem: Problem = reduce(network.model, row)
    sums = sum_groups(problem, row, absorb(network, row[None, :])[0], most)
    scale = margins.scale(network).of(margins.involved(problem, row))
    margin = margins.of_sum(scale, problem, sums.label, most) + sums.error
    return Sum(sums.total, margin, int(np.bincount(sums.label).max(initial=0)), not sums.large.any())


def clinic(network: Network, row: States, tried: list[Effort], first: Solution) -> Ends | None:
    """The ends where causes are independent and their findings observed noisy-OR units; None anywhere else.

    There the bounds of `sbnet.bounds.findings` leave nothing to those for any network.
    """
    if not network.gate.any():
        return None
    problem: Problem = reduce(network.model, row)
    bias = absorb(network, row[None, :])[0]
    groups = [two_levels(problem, row, bias, group.units, group.factors) for group in group_sums(problem, row, bias)]
    clinics = [group for group in groups if group is not None]
    if len(clinics) < len(groups):
        return None
    known = known_part(problem, row, bias)
    scale = margins.scale(network).of(margins.involved(problem, row))
    margin = margins.of_sum(scale, problem, np.zeros(len(problem.hidden), np.int64), 0)
    best = Ends(float(first.bound[0]), 0.0, None, "mean field", "no chance is above one", first, None)
    for level in tried:
        found = [findings.enclose(group, level.findings, level.cells) for group in clinics]
        lower, upper = (known + sum(getattr(part, end) for part in found) for end in ("lower", "upper"))
        cells = count(max(part.cells for part in found), "cell")
        together = f"sum over {count(level.findings, 'finding')} at most in each of {cells} of causes"
        if lower - margin > best.lower:
            best = best._replace(lower=lower - margin, lower_from=f"{together}, Jensen's inequality for the others")
        if upper + margin < best.upper:
            best = best._replace(upper=upper + margin, upper_from=f"{together}, lines above the others")
    return best


def _split(network: Network, limits: Limits, cells: Cells, units: Sequence[int] | IndexArray) -> Iterator[Cells]:
    """The whole, its parts after the first unit, after the second, and so on."""
    yield cells
    for unit in units:
        cells = split_cells(network, limits, cells, [int(unit)] * len(cells.bound))
        yield cells


def _tighter(
    network: Network, row: States, first: Solution, units: IndexArray, components: int
) -> Iterator[tuple[float, str, list[Piece]]]:
    """Lower bounds above that of mean field theory, each with the pieces that it is the sum of."""
    if len(units):
        for states, part in Conditioned([int(i) for i in units]).problems(network, row, first.means[0]):
            pieces = [Piece(network, *both) for both in zip(states, part.means, strict=True)]
            enumerated = count(len(pieces).bit_length() - 1, "unit")
            how = f"mean field for each of {len(pieces)} states of {enumerated}"
            yield margins.log_sum_below(part.bound), how, pieces
    if components > 1:
        problem, bias = reduce(network.model, row), absorb(network, row[None, :])[0]
        parts = Mixture(components).divide(network, problem, row, bias, first.bound[0], first.means[0])
        # A component with a gate that no network may have is left out; what is left is a lower bound as well.
        kept = [
            part
            for part in parts
            if max(np.abs(numbers).max(initial=0.0) for numbers in (part.gates.weight, part.gates.bias))
            <= MAX_PARAMETER
        ]
        if kept:
            total = margins.log_sum_below(np.array([part.bound for part in kept]))
            pieces = [_with_gates(network, row, problem, part) for part in kept]
            yield total, f"mixture of {count(len(kept), 'factorial component')}", pieces


def _with_gates(network: Network, row: States, problem: Problem, part: Component) -> Piece:
    """A component of a mixture as evidence on a larger network: gates are observed units below all hidden ones."""
    gates, n = part.gates, network.n_units
    edges = network.n_edges + len(problem.hidden) * np.arange(1, len(gates.bias) + 1)
    larger = Network(
        tuple(f"unit {i}" for i in range(n + len(gates.bias))),
        Graph(
            np.concatenate([network.graph.indptr, edges]),
            np.concatenate([network.graph.parent, np.tile(problem.hidden, len(gates.bias))]),
        ),
        np.concatenate([network.weight, gates.weight.ravel()]),
        np.concatenate([network.bias, gates.bias]),
    )
    means = np.concatenate([np.where(row == HIDDEN, 0.5, row), gates.side])
    means[problem.hidden] = part.mu
    return Piece(larger, np.concatenate([row, gates.side]).astype(np.int8), means)
