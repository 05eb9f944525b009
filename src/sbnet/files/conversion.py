"""Networks of tables turned into networks of units, and how far off the units are.

A table that is a sigmoid, a noisy-OR or a noisy-AND becomes that unit. Any other becomes a sigmoid unit with hidden
switches, each on in one row of the table only. A variable of more than two states becomes a unit for each state.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from sbnet import checks
from sbnet._types import FloatArray
from sbnet.errors import ConversionWarning, FileFormatError, NetworkError
from sbnet.files.gadgets import Gadget, gadget
from sbnet.files.nearest_units import EXACT, KINDS, Fit, Table, first_fits, nearest
from sbnet.files.plain import at
from sbnet.files.units import Builder
from sbnet.files.variables import ROUNDED_SUM, Variable
from sbnet.model.network import Network

_MOST_EXCLUSIVE = 1_000_000
"""Edges by which the units for the states of one variable keep each other off, in a whole network."""
_MOST_LETTERS = 20_000_000
"""Letters in the names of all units for states, each of which has the name of its variable before its own."""
_ROUNDED = 1e-6
"""A difference of probabilities of which nobody is warned."""
_MOST_NATS = 1.0
"""A difference of the logarithm of a probability for which switches are better than a unit without them."""
_WARNED_NATS = 0.1
"""A difference of ln P of which everybody is warned: a posterior probability may be off by half as much."""


class TableReport(NamedTuple):
    """What became of one table.

    `unit` is the variable; `kind` is "prior", "sigmoid", "noisy-or", "noisy-and" or "switches"; `hidden` counts the
    switches; `error` is the largest difference of a probability, and `nats` that of the logarithm of one; `total` is
    the sum of a row that was farthest from one, before rows were scaled.
    """

    unit: str
    kind: str
    hidden: int
    error: float
    nats: float
    total: float = 1.0


@dataclass(frozen=True, eq=False, repr=False)
class Conversion:
    """A network that was made from tables, and how far off it is.

    Attributes
    ----------
    network : Network
    error : float
        The largest difference between a probability in a table and that of the unit: at most ``tol``, or rounding.
    nats : float
        The largest differences of the logarithms, added up over all tables: ln P of any evidence is that near to what
        the tables say, and a posterior probability half as far off at most.
    tables : tuple of TableReport
        What became of each table, in the order of the file.
    """

    network: Network
    tables: tuple[TableReport, ...] = ()

    @property
    def error(self) -> float:
        return max((table.error for table in self.tables), default=0.0)

    @property
    def nats(self) -> float:
        return sum(table.nats for table in self.tables)

    def __repr__(self) -> str:
        counts = Counter(table.kind for table in self.tables)
        kinds = ", ".join(f"{n} {kind}" for kind, n in counts.items()) or "nothing to convert"
        return f"<Conversion: {self.network.n_units:,} units; {kinds}; error {self.error:.2g}, {self.nats:.2g} nats>"


@dataclass(frozen=True, eq=False)
class _Plan:
    """What becomes of a variable: a fit for each unit that it gets, or switches for all of them."""

    variable: Variable
    sizes: tuple[int, ...]
    sticks: tuple[Table, ...]
    fits: tuple[Fit, ...] = ()
    gadget: Gadget | None = None
    total: float = 1.0
    choices: tuple[Fit, ...] = field(default=())

    @property
    def report(self) -> TableReport:
        name, parts = self.variable.name, self.gadget.fits if self.gadget else self.fits
        kind = "switches" if self.gadget else _NAMES[self.fits[0].kind] if self.sizes else "prior"
        hidden = len(self.gadget.cells) if self.gadget else 0
        error, nats = max(part.error for part in parts), sum(part.nats for part in parts)
        slack = abs(float(np.log(self.total)))
        return TableReport(name, kind, hidden, max(error, slack), nats + slack, self.total)


_NAMES = {"sigmoid": "sigmoid", "or": "noisy-or", "and": "noisy-and"}


def convert(variables: Sequence[Variable], *, tol: float, max_hidden: int, name: str) -> Conversion:
    """The network of units; `name` is that of the file, for errors."""
    tol, max_hidden = checks.not_negative("tol", tol), checks.whole("max_hidden", max_hidden, 0)
    known = {variable.name: variable for variable in variables}
    _check_states(variables, name)
    plans = [_planned(variable, known, tol, max_hidden, name) for variable in variables]
    votes = Counter(plan.choices[0].kind for plan in plans if len(plan.choices) == 1)
    plans = [_decided(plan, votes, known) for plan in plans]
    try:
        return Conversion(_built(plans, known), tuple(plan.report for plan in plans))
    except NetworkError as error:  # a cycle, which no table shows
        raise FileFormatError(f"{error} ({name})") from None


def _check_states(variables: Sequence[Variable], name: str) -> None:
    """Refuse states by the thousand: of n states, each needs an edge to all that come after it."""
    several = [variable for variable in variables if len(variable.states) > 2]
    edges = sum(len(variable.states) * (len(variable.states) - 1) // 2 for variable in several)
    letters = sum(len(variable.states) * len(variable.name) for variable in several)
    if edges > _MOST_EXCLUSIVE or letters > _MOST_LETTERS:
        most = max(several, key=lambda variable: len(variable.states))
        what = f"{edges:,} edges" if edges > _MOST_EXCLUSIVE else f"names of {letters:,} letters"
        limit = _MOST_EXCLUSIVE if edges > _MOST_EXCLUSIVE else _MOST_LETTERS
        raise FileFormatError(
            f"units for all states, as the {len(most.states):,} of {most.name[:60]!r}, need {what}, and the limit "
            f"is {limit:,}; join states that are rare ({name[-60:]})"
        )


def announced(report: Conversion, stacklevel: int) -> Network:
    """The network of a report, with a warning if it is farther off than rounding explains."""
    text = _warning(report) if report.tables else ""
    if text:
        warnings.warn(f"{text}; see read_report()", ConversionWarning, stacklevel=stacklevel + 1)
    return report.network


def _warning(report: Conversion) -> str:
    """How far off the network is, by the table that is farthest off, if that is worth a warning."""
    worst = max(report.tables, key=lambda table: table.error)
    far = max(report.tables, key=lambda table: table.nats)
    nats = f"ln P of evidence can be off by {report.nats:.2g} nats from what the tables say"
    if worst.error > _ROUNDED:
        text = f"the table of {worst.unit!r} is read as {worst.kind} within {worst.error:.2g} only"
        if abs(worst.total - 1.0) > _ROUNDED:
            text = f"a row of the table of {worst.unit!r} adds up to {worst.total:.6g}, not 1, and was scaled: {text}"
        return f"{text}, and {nats}" if report.nats > _WARNED_NATS else text
    if report.nats > _WARNED_NATS:
        return (
            f"{nats}, {far.nats:.2g} of them by the table of {far.unit!r}, read as {far.kind}, whose rare states suffer"
        )
    return ""


def _planned(variable: Variable, known: dict[str, Variable], tol: float, max_hidden: int, name: str) -> _Plan:
    sizes = tuple(len(known[parent].states) for parent in variable.parents)
    if variable.fit is not None:
        return _Plan(variable, sizes, (), (variable.fit,))
    table, total = _normalised(variable, name)
    if len(variable.states) == 2:
        one = variable.one
        sticks: tuple[Table, ...] = (Table(sizes, table[:, 1 - one], table[:, one]),)
    else:
        sticks = tuple(_sticks(sizes, table))
    plan = _Plan(variable, sizes, sticks, total=total)
    # A prior, or one of several states, is a sigmoid; so is what has one parent, but it may be another too.
    kinds = KINDS if len(sticks) == 1 and sizes else KINDS[:1]
    first = [first_fits(stick, kinds) for stick in sticks]
    for enough in (EXACT, min(max(tol, EXACT), _ROUNDED)):
        near = [tuple(fit for fit in fits if fit.error <= enough and fit.nats <= _MOST_NATS) for fits in first]
        if all(near):
            best = tuple(min(fits, key=_error) for fits in near)
            return _Plan(variable, sizes, sticks, best, None, total, near[0])
    if tol > _ROUNDED:
        best = tuple(nearest(stick, kinds) for stick in sticks)
        if max(map(_error, best)) <= tol:
            return _Plan(variable, sizes, sticks, best, None, total, best[:1])
    made = gadget(sticks, max_hidden)
    if made is not None:
        return _Plan(variable, sizes, sticks, (), made, total)
    best = tuple(min(fits, key=_error) for fits in first)
    if max(map(_error, best)) <= min(max(tol, EXACT), _ROUNDED):  # near in probabilities, not in their logarithms
        return _Plan(variable, sizes, sticks, best, None, total, best[:1])
    raise FileFormatError(_too_far(plan, tol, max_hidden, name))


def _error(fit: Fit) -> float:
    return fit.error


def _decided(plan: _Plan, votes: Counter[str], known: dict[str, Variable]) -> _Plan:
    """Where several kinds of unit are exact, as with one parent, the one that most other tables of the file are.

    A table of zeros and ones that is an OR becomes one: a sigmoid has to say that with weights of thousands.
    """
    if len(plan.choices) < 2:
        return plan
    either = [fit for fit in plan.choices if fit.kind == "or" and _is_or(plan, fit, known)]
    chosen = either[0] if either else max(plan.choices, key=lambda fit: votes[fit.kind])
    return _Plan(plan.variable, plan.sizes, plan.sticks, (chosen,), None, plan.total, (chosen,))


def _is_or(plan: _Plan, fit: Fit, known: dict[str, Variable]) -> bool:
    """Whether all is certain, and follows from states of the parents that have units of their own."""
    parents = [known[name] for name in plan.variable.parents]
    causes = [(parents[j], s) for (j, s), theta in fit.terms.items() if theta > 0.0]
    certain = bool(np.isin(plan.sticks[0].one, (0.0, 1.0)).all())
    return certain and all(len(parent.states) > 2 or s == parent.one for parent, s in causes)


def _normalised(variable: Variable, name: str) -> tuple[FloatArray, float]:
    """Rows that add up to one, and the sum that was farthest from it."""
    table = variable.table
    bad = ~((table >= 0.0) & (table <= 1.0 + ROUNDED_SUM))
    if bad.any():
        row = int(np.flatnonzero(bad.any(axis=1))[0])
        raise _at_row(
            variable, row, f"the table of {variable.name!r} holds {table[bad][0]}, which is no probability", name
        )
    sums = table.sum(axis=1)
    worst = int(np.argmax(np.abs(sums - 1.0)))
    if abs(sums[worst] - 1.0) > ROUNDED_SUM:
        text = (
            f"the probabilities of {variable.name!r} in row {worst + 1} of its table add up to {sums[worst]:.6g}, not 1"
        )
        raise _at_row(variable, worst, text, name)
    total = float(sums[np.argmax(np.abs(np.log(sums)))])
    return table / sums[:, None], total if abs(total - 1.0) > 1e-14 else 1.0


def _at_row(variable: Variable, row: int, text: str, name: str) -> FileFormatError:
    """An error in a row of a table, with its place where that is known."""
    return FileFormatError(f"{text} ({name})") if variable.place is None else at(variable.place(row), text, name)


def _sticks(sizes: tuple[int, ...], table: FloatArray) -> list[Table]:
    """Several states one after the other: the probability of each, if it is none of those before it."""
    found, rests = [], np.cumsum(table[:, :0:-1], axis=1)[:, ::-1]
    for s in range(table.shape[1] - 1):
        one, rest = table[:, s], rests[:, s]
        left = one + rest
        one = np.where(left > 0.0, one / np.where(left > 0.0, left, 1.0), 0.5)
        found.append(Table(sizes, np.where(left > 0.0, rest / np.where(left > 0.0, left, 1.0), 0.5), one))
    return found


def _too_far(plan: _Plan, tol: float, max_hidden: int, name: str) -> str:
    variable = plan.variable
    what = f"the table of {variable.name!r} ({len(plan.sticks[0].zero):,} rows) is no unit"
    if len(variable.states) > 2:
        return f"{what}, and its {len(variable.states)} states need more than max_hidden={max_hidden} switches ({name})"
    off = nearest(plan.sticks[0])
    return (
        f"{what} within tol={tol:g}: the nearest, {_NAMES[off.kind]}, is off by {off.error:.3g}; read with "
        f"tol={_rounded_up(off.error):g} to take it, or with more than max_hidden={max_hidden} switches ({name})"
    )


def _rounded_up(error: float) -> float:
    return float(f"{error * 1.05:.2g}")


def _built(plans: list[_Plan], known: dict[str, Variable]) -> Network:
    """All units, each variable after its plan."""
    wanted: Counter[tuple[str, int]] = Counter()
    for plan in plans:
        for fit in plan.fits:
            if fit.kind != "sigmoid":
                wanted.update((plan.variable.parents[j], s) for j, s in fit.terms)
    primary = {p.variable.name: _primary(p, wanted) for p in plans if len(p.variable.states) == 2}
    builder = Builder(known, primary)
    for plan in plans:
        fits = plan.gadget.fits if plan.gadget else plan.fits
        if len(plan.variable.states) > 2:
            builder.many(plan.variable, fits, plan.gadget)
        elif fits[0].kind == "sigmoid":
            builder.sigmoid(plan.variable, fits[0], plan.gadget)
        else:
            builder.product(plan.variable, fits[0])
    return builder.network()


def _primary(plan: _Plan, wanted: Counter[tuple[str, int]]) -> int:
    """Which of two states the unit stands for: of a product it is given, else zero if children ask for that alone."""
    name, one = plan.variable.name, plan.variable.one
    kind = plan.fits[0].kind if plan.fits else "sigmoid"
    if kind != "sigmoid":
        return one if kind == "or" else 1 - one
    return 1 - one if wanted[name, 1 - one] and not wanted[name, one] else one
