"""The two bounds of ln P(evidence) for one row: what each effort tries, and the best of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from sbnet._types import HIDDEN, FloatArray, IndexArray, States
from sbnet.bounds import findings, margins
from sbnet.bounds.proven import lower as ball_lower
from sbnet.bounds.proven import states as ball_states
from sbnet.bounds.proven import upper as ball_upper
from sbnet.bounds.proven.lower import Piece
from sbnet.bounds.proven.upper import Subproblem
from sbnet.bounds.upper.buckets import bucket_bound, split_bound
from sbnet.bounds.upper.subproblems import Limits, Subproblems, solve_row, split_each
from sbnet.errors import TooManyHiddenError
from sbnet.exact.answers import LIMIT
from sbnet.exact.enumeration import Effort as Efforts
from sbnet.exact.enumeration import Reduced
from sbnet.exact.of_states import means_of_states
from sbnet.inference import Conditioned, MeanField, Mixture
from sbnet.inference.solution import Solution
from sbnet.inference.solvers.mixture import Component
from sbnet.model.graph import Graph
from sbnet.model.network import MAX_PARAMETER, Network
from sbnet.questions.reduction import live_variables
from sbnet.questions.support import remote, without_zeros

_MAX_STEPS, _TOL = 200, 1e-5
_GROUP = 12  # coupled hidden units that an upper bound sums exactly
_PROVEN_UP_TO = 14  # for a sum in ball arithmetic, which is a thousand times slower


class Effort(NamedTuple):
    """What is tried, beside all that a lower effort tries."""

    exact_up_to: int  # coupled hidden units that are summed exactly
    lower_units: int  # hidden units enumerated for the lower bound
    components: int  # of a mixture
    table_up_to: int  # parents of a unit enumerated for the upper bound
    upper_units: int  # hidden units enumerated for the upper bound
    findings: int  # of noisy-OR findings that are present, those that both bounds sum over
    subproblems: int  # into which their causes are split


EFFORTS = {
    "fast": Effort(12, 0, 1, 4, 0, 6, 1),
    "normal": Effort(16, 4, 1, 4, 3, 8, 30),
    "high": Effort(20, 7, 3, 6, 5, 10, 100),
}


class MeanFields(NamedTuple):
    """The bounds and means of mean field theory, for one row or for each of several subproblems."""

    bound: FloatArray
    means: FloatArray


class Bounded(NamedTuple):
    """An upper bound on a row in subproblems, how it was obtained, and mean field theory in the row, or in each."""

    row: Reduced
    limits: Limits
    subproblems: Subproblems
    mean_field: MeanFields

    def reduced(self, r: int) -> Reduced:
        """Subproblem r: the row itself if it is the only one."""
        return self.row if len(self.subproblems.bound) == 1 else Reduced(self.row.network, self.subproblems.states[r])

    def mean_field_in_each(self) -> MeanFields:
        """Mean field theory in each subproblem: as it is known, or solved from the means of the row."""
        n, known = len(self.subproblems.bound), self.mean_field
        if len(known.bound) == n:
            return known
        start = np.tile(known.means, (n, 1))
        found = MeanField().solve(self.row.network, self.subproblems.states, start=start, trace=False)
        return MeanFields(found.bound, found.means)


class Enclosed(NamedTuple):
    """Both bounds, how they were obtained, the row, and the solution of mean field theory alone."""

    lower: float
    upper: float
    value: float | None  # ln P, if it could be summed
    lower_from: str
    upper_from: str
    row: Reduced
    mean_field: Solution
    subproblems: Bounded | None  # of the upper bound, if it has some
    lines: Bounded | None  # the quickest upper bound, if it was sought


class How(NamedTuple):
    """How the bounds are sought."""

    effort: str
    proven: bool
    exact_up_to: int | None = None  # coupled hidden units that are summed exactly; None: as the effort says


class Eliminated(NamedTuple):
    """ln P by elimination, and how far rounding may have moved it."""

    value: float
    margin: float

    @property
    def lower(self) -> float:
        """Not above ln P."""
        return self.value - self.margin

    @property
    def upper(self) -> float:
        """Not below ln P."""
        return min(self.value + self.margin, 0.0)


class Bracketed(NamedTuple):
    """Both bounds of a row of a network with tables whose sum is too large, and mean field theory in it."""

    lower: float
    upper: float
    row: States
    mean_field: Solution
    subproblems: int


def bracket(network: Network, row: States, how: How) -> Bracketed:
    """Mean field theory below, mini-buckets above, for as many joint states of some variables as the effort says."""
    effort = EFFORTS[how.effort]
    most = effort.exact_up_to if how.exact_up_to is None else how.exact_up_to
    room = max(most, *(np.log2(table.size) for table in network.tables.values()))
    first = MeanField().solve(network, row[None, :], start=None, trace=False)
    whole, used, size = bucket_bound(network, row, room), list[int](), 1
    for v in whole.widest:
        if size * network.n_states[v] <= 2**effort.upper_units:
            used, size = [*used, v], size * int(network.n_states[v])
    upper = min(whole.bound, split_bound(network, row, room, used)) if used else whole.bound
    return Bracketed(float(first.bound[0]), upper, row, first, size)


def enclose(network: Network, states: States, how: How) -> Enclosed:
    """The best bounds that an effort, or a lower one, finds.

    Where variables have more than two states, those are for rows that cannot be `eliminated`.
    """
    effort, proven, exact_up_to = how
    tried = list(EFFORTS.values())[: list(EFFORTS).index(effort) + 1]
    row, solver = Reduced(network, states), MeanField()
    first = solver.solve(network, states[None, :], start=None, trace=False)
    most = tried[-1].exact_up_to if exact_up_to is None else exact_up_to
    in_group = min(_GROUP, most)
    value, margin, group, whole = summed(row, -1 if proven else most)
    if group <= min(most, _PROVEN_UP_TO) if proven else whole:
        together = f"sum over all states, {count(group, 'hidden variable')} at most together"
        if group > most:
            together = f"sum over all findings that are present, of {count(group, 'cause')} at most together"
        source = together if group else "product of known factors"
        low, high = value - margin, min(value + margin, 0.0)
        if proven:
            low, high = ball_upper.enclosed(network, states)
        if proven and remote(network, np.array(low)):
            low, high = ball_states.enclosed_sum(network, states)
        middle = 0.5 * (low + high) if proven else min(value, 0.0)
        return Enclosed(low, high, middle, source, source, row, first, None, None)
    enclosed = None if proven else clinic(row, tried, first)
    if enclosed is not None:
        return enclosed
    lower, lower_from, pieces = float(first.bound[0]), "mean field", [Piece(network, states, first.means[0])]
    best = lines = in_lines(row, first, how)  # may be as good as tables
    upper = float(best.subproblems.bound[0])
    order: IndexArray | None = None
    roots = dict[int, Subproblems]()
    for level in tried:
        limits = Limits(in_group, level.table_up_to, _MAX_STEPS, _TOL, not proven)
        room = level.table_up_to
        if room not in roots:
            roots[room] = solve_row(row, limits, lines.subproblems)
        root = roots[room]
        if order is None:
            order = np.argsort(-root.score[0], kind="stable")[: int((root.score[0] > 0.0).sum())]
        for subproblems in _split(network, limits, root, order[: level.upper_units]):
            total = min(margins.log_sum_above(subproblems.bound), 0.0)
            if total < upper:
                upper, best = total, best._replace(limits=limits, subproblems=subproblems)
        if not network.is_binary or remote(network, first.bound)[0]:  # what is below knows two states, and no zeros
            continue
        for total, source, parts in _tighter(row, first, order[: level.lower_units], level.components):
            if total > lower:
                lower, lower_from, pieces = total, source, parts
    found = best.subproblems
    upper_from = f"Hölder's inequality, {count(len(found.bound), 'subproblem')}"
    if proven:
        lower = ball_lower.lower(pieces, solver.bound)
        if remote(network, np.array(lower)):
            lower = without_zeros(network, states, first.means[0], lower)
        parameters = zip(found.states, found.edge, found.unit, strict=True)
        upper = ball_upper.upper([Subproblem(network, *given, in_group) for given in parameters])
    return Enclosed(lower, upper, None, lower_from, upper_from, row, first, best, lines)


def eliminated(network: Network, rows: States, how: How) -> list[Eliminated]:
    """ln P of each row by elimination, for variables with any number of states, and tables.

    Raises
    ------
    TooManyHiddenError
        If it takes larger tables than the effort allows; where the network has tables, whose other bounds are loose,
        than those of exact answers.
    """
    limit = EFFORTS[how.effort].exact_up_to if how.exact_up_to is None else how.exact_up_to
    if network.tables and how.exact_up_to is None:
        limit = LIMIT
    nothing = np.empty(0, np.int64)
    log_p, _ = means_of_states(network, rows, Efforts(limit, 1, progress=False, means=False), nothing)
    margin = [margins.of_elimination(network, live_variables(network.model, row)) for row in rows]
    return [Eliminated(*both) for both in zip(log_p.tolist(), margin, strict=True)]


def proven_sum(network: Network, row: States) -> Eliminated:
    """ln P of a row of a network with states, in ball arithmetic."""
    low, high = ball_states.enclosed_sum(network, row)
    if high == -np.inf:
        return Eliminated(high, 0.0)
    middle = low + 0.5 * (high - low)
    return Eliminated(middle, float(np.nextafter(max(high - middle, middle - low), np.inf)) + float(np.spacing(-low)))


def eliminate_or_enclose(network: Network, rows: States, how: How) -> Sequence[Eliminated | Enclosed | Bracketed]:
    """Both bounds of each row of a network with states, which have some variables observed in common."""
    try:
        return eliminated(network, rows, how)
    except TooManyHiddenError:
        if network.tables:
            return [bracket(network, row, how) for row in rows]
    return [enclose(network, row, how) for row in rows]


def in_lines(row: Reduced, first: Solution, how: How) -> Bounded:
    """The quickest upper bound: one subproblem, lines alone."""
    most = EFFORTS[how.effort].exact_up_to if how.exact_up_to is None else how.exact_up_to
    limits = Limits(min(_GROUP, most), 0, _MAX_STEPS, _TOL, not how.proven)
    return Bounded(row, limits, solve_row(row, limits), MeanFields(first.bound, first.means))


def count(n: int, what: str) -> str:
    """A number with its noun: 1 subproblem, 2 subproblems."""
    return f"{n} {what}{'s' * (n != 1)}"


class Sum(NamedTuple):
    """ln P if all groups of coupled hidden units are small enough, its margin, the size of the largest; are they?"""

    value: float
    margin: float
    largest: int
    whole: bool


def summed(row: Reduced, most: int) -> Sum:
    """The sum over groups of up to so many units."""
    sums = row.sums(most)
    scale = margins.scale(row.network).of(margins.involved(row.problem, row.states))
    margin = margins.of_sum(scale, row.problem, sums.label, most) + sums.error
    return Sum(sums.total, margin, int(np.bincount(sums.label).max(initial=0)), not sums.large.any())


def clinic(row: Reduced, tried: list[Effort], first: Solution) -> Enclosed | None:
    """The bounds where causes are independent and their findings observed noisy-OR units; None anywhere else.

    There the bounds of `sbnet.bounds.findings` leave nothing to those for any network.
    """
    if not row.network.gate.any():
        return None
    clinics = [group.levels for group in row.groups if group.levels is not None]
    if len(clinics) < len(row.groups):
        return None
    scale = margins.scale(row.network).of(margins.involved(row.problem, row.states))
    margin = margins.of_sum(scale, row.problem, np.zeros(len(row.problem.hidden), np.int64), 0)
    best = Enclosed(
        float(first.bound[0]), 0.0, None, "mean field", "no probability is above one", row, first, None, None
    )
    for level in tried:
        found = [findings.enclose(group, level.findings, level.subproblems) for group in clinics]
        lower, upper = (row.known + sum(getattr(part, end) for part in found) for end in ("lower", "upper"))
        subproblems = count(max(part.subproblems for part in found), "subproblem")
        together = f"sum over {count(level.findings, 'finding')} at most in each of {subproblems} of causes"
        if lower - margin > best.lower:
            best = best._replace(lower=lower - margin, lower_from=f"{together}, Jensen's inequality for the others")
        if upper + margin < best.upper:
            best = best._replace(upper=upper + margin, upper_from=f"{together}, lines above the others")
    return best


def _split(
    network: Network, limits: Limits, subproblems: Subproblems, units: Sequence[int] | IndexArray
) -> Iterator[Subproblems]:
    """The whole, its parts after the first unit, after the second, and so on."""
    yield subproblems
    for unit in units:
        subproblems, _ = split_each(network, limits, subproblems, [int(unit)] * len(subproblems.bound))
        yield subproblems


def _tighter(
    row: Reduced, first: Solution, units: IndexArray, components: int
) -> Iterator[tuple[float, str, list[Piece]]]:
    """Lower bounds above that of mean field theory, each with the pieces that it is the sum of."""
    network = row.network
    if len(units):
        for states, part in Conditioned([int(i) for i in units]).problems(network, row.states, first.means[0]):
            pieces = [Piece(network, *both) for both in zip(states, part.means, strict=True)]
            enumerated = count(len(pieces).bit_length() - 1, "variable")
            how = f"mean field for each of {len(pieces)} states of {enumerated}"
            yield margins.log_sum_below(part.bound), how, pieces
    if components > 1:
        parts = Mixture(components).divide(network, row.states, row.bias, first.bound[0], first.means[0])
        # A component with a gate that no network may have is left out; what is left is a lower bound as well.
        sizes = [np.abs(np.append(part.gates.weight, part.gates.bias)).max(initial=0.0) for part in parts]
        kept = [part for part, size in zip(parts, sizes, strict=True) if size <= MAX_PARAMETER]
        if kept:
            total = margins.log_sum_below(np.array([part.bound for part in kept]))
            pieces = [_with_gates(row, part) for part in kept]
            yield total, f"mixture of {count(len(kept), 'factorial component')}", pieces


def _with_gates(row: Reduced, part: Component) -> Piece:
    """A component of a mixture as evidence on a larger network: gates are observed units below all hidden ones."""
    gates, network, states, hidden = part.gates, row.network, row.states, row.problem.hidden["variable"]
    n = network.n_units
    edges = network.n_edges + len(hidden) * np.arange(1, len(gates.bias) + 1)
    names = tuple(f"unit {i}" for i in range(n + len(gates.bias)))
    parent = np.concatenate([network.graph.parent, np.tile(hidden, len(gates.bias))])
    graph = Graph(np.concatenate([network.graph.indptr, edges]), parent)
    weight, bias = np.append(network.weight, gates.weight), np.append(network.bias, gates.bias)
    larger = Network(names, graph, weight, bias)
    means = np.concatenate([np.where(states == HIDDEN, 0.5, states), gates.side])
    means[hidden] = part.mu
    return Piece(larger, np.concatenate([states, gates.side]).astype(np.int8), means)
