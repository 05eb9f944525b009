r"""What is asked of a network beside plain evidence: units held by intervention, and reports that are not certain.

Both become evidence on another network, so that nothing that answers a question has to know of them.

*Intervention.* A unit held at a state does not listen to its parents, and its own conditional is no part of P. It is
cut out: the edges into it go, the biases of its children take up what it sends them, and what is left of it is a unit
without neighbours that nobody has observed, which sums to one.

With more states, each threshold of a child takes up the weight of the state, and a table loses the axis.

*Reports.* A report on unit i says how likely it is if the unit is off, :math:`l_0`, and on, :math:`l_1`. With
:math:`r = \ln(l_1 / l_0)` it is a child of the unit that was seen on, with weight 2r and bias -r:

.. math:: \sigma(-r) = \frac{l_0}{l_0 + l_1}, \qquad \sigma(r) = \frac{l_1}{l_0 + l_1}

so that the likelihoods are those of the child, times :math:`l_0 + l_1`. (By this choice of bias the paper's logarithm
term of the child is exact, at xi = 1/2, whatever the mean of the unit.) A likelihood of zero makes the report certain.

A report on a variable with more states has a likelihood :math:`l_s` for each. Its child is on with probability
:math:`l_s / 2m`, where m is the largest; a state with likelihood zero has an input that makes it less probable than any
joint state that can be, :func:`sbnet.questions.support.depth`. If only one is not zero, the report is certain.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

import numpy as np

from sbnet import checks
from sbnet._types import HIDDEN, BoolArray, FloatArray, IndexArray, States
from sbnet.errors import EvidenceError, hint
from sbnet.kernels.codes import NOISY_OR, SIGMOID
from sbnet.model.graph import Graph
from sbnet.model.network import MAX_PARAMETER, Network
from sbnet.model.states import find, shown
from sbnet.questions import domains, support
from sbnet.questions.evidence import EvidenceLike, coerce, coerce_many, coerce_one
from sbnet.questions.reduction import ends_of_weights

R = TypeVar("R")

_REPORTS = 64
"""Different reports that one network is given; tables with more of them are answered in parts."""
_ROUNDING = 2.0**-50
"""Of the numbers that make up a bias or a constant, relative: four roundings."""


class Report(NamedTuple):
    """A report on a unit: the input of the child that stands for it, in each state of the unit."""

    unit: int
    inputs: tuple[float, ...]


class Conditions(NamedTuple):
    """What a question has beside plain evidence, by row."""

    held: States  # the states given by intervention, -1 for none: one row for all, or one for each
    reports: tuple[tuple[Report, ...], ...]
    constant: FloatArray  # to be added to ln P: what the reports are worth beside their children
    slack: FloatArray  # how far rounding may bring ln P from that of the reports as they were given


class Part(NamedTuple):
    """Rows of a question that one network answers: plain evidence on it, and what is to be added to ln P."""

    rows: slice | IndexArray
    network: Network
    states: States
    held: States  # of the units of the question, one row for all
    constant: FloatArray
    slack: FloatArray
    owner: IndexArray  # the units that the last units of this network report on

    def some(self, kept: BoolArray) -> Part:
        """Some of its rows."""
        rows = self.rows if isinstance(self.rows, slice) else self.rows[kept]
        return self._replace(rows=rows, states=self.states[kept], constant=self.constant[kept], slack=self.slack[kept])

    @property
    def n_units(self) -> int:
        """Number of units of the question: the first ones of this network."""
        return self.network.n_units - len(self.owner)

    @property
    def n_columns(self) -> int:
        """Number of columns of means of the question; a report has two states, and one column."""
        return int(self.network.model.threshold[-1]) - len(self.owner)

    def above(self, bound: FloatArray) -> FloatArray:
        """Upper bounds of this network as those of the question: never below, whatever rounding does."""
        return bound + self.constant + self._rounding(bound)

    def below(self, bound: FloatArray) -> FloatArray:
        """Lower bounds of this network as those of the question: never above."""
        return bound + self.constant - self._rounding(bound)

    def _rounding(self, bound: FloatArray) -> FloatArray:
        """How far rounding may lead astray; not at all where there are no reports, and nothing was made of them."""
        size = np.abs(bound) + np.abs(self.constant) + self.slack
        changed = (self.constant != 0.0) | (self.slack != 0.0)
        return np.where(changed, self.slack + 4.0 * np.spacing(size), 0.0)

    def shown(self, values: FloatArray, fill: float | None = None) -> FloatArray:
        """Rows by columns of the question, with the states of held units (or `fill`) put in."""
        if not len(self.owner) and not (self.held != HIDDEN).any():
            return values
        variable, state = (array[: self.n_columns] for array in self.network.columns)
        held = self.held[variable] != HIDDEN
        own: FloatArray = values[..., : self.n_columns].copy()
        own[..., held] = (self.held[variable] == state)[held] if fill is None else fill
        return own

    def widened(self, values: FloatArray, fill: float) -> FloatArray:
        """Rows by columns of this network: one for each report is added."""
        if not len(self.owner):
            return values
        return np.pad(values, ((0, 0), (0, len(self.owner))), constant_values=fill)


@dataclass(frozen=True, eq=False)
class Question:
    """Evidence on a network, and perhaps conditions that plain evidence cannot say.

    Attributes
    ----------
    network : Network
    states : ndarray of int8, rows by units
        The evidence that is certain.
    single : bool
        Was it one pattern rather than a table?
    conditions : Conditions or None
    """

    network: Network
    states: States
    single: bool
    conditions: Conditions | None = None

    @property
    def given(self) -> States:
        """The states of all units that are known, by evidence or by intervention."""
        if self.conditions is None:
            return self.states
        return np.where(self.conditions.held == HIDDEN, self.states, self.conditions.held)

    def some(self, rows: slice | IndexArray) -> Question:
        """The question of some rows."""
        if self.conditions is None:
            return replace(self, states=self.states[rows])
        held, reports, constant, slack = self.conditions
        chosen = tuple(reports[r] for r in np.arange(len(reports))[rows])
        some = Conditions(held if len(held) == 1 else held[rows], chosen, constant[rows], slack[rows])
        return replace(self, states=self.states[rows], conditions=some)

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """The question in plain evidence, one part for each network that it takes."""
        n_units = self.network.n_units
        if self.conditions is None:
            nothing = np.broadcast_to(0.0, len(self.states))
            free, none = np.full(n_units, HIDDEN), np.empty(0, np.int64)
            return (Part(slice(None), self.network, self.states, free, nothing, nothing, none),)
        return tuple(self._part(rows) for rows in _groups(self.conditions, len(self.states)))

    def _part(self, rows: IndexArray) -> Part:
        assert self.conditions is not None
        free = np.full(self.network.n_units, HIDDEN)
        held = self.conditions.held[0 if len(self.conditions.held) == 1 else rows[0]] if len(rows) else free
        network, at, slack = intervene(self.network, held)
        states = np.where(held == HIDDEN, self.states[rows], at)
        mine = [self.conditions.reports[r] for r in rows]
        place = {report: k for k, report in enumerate(dict.fromkeys(report for row in mine for report in row))}
        seen = np.full((len(rows), len(place)), HIDDEN)
        for r, row in enumerate(mine):
            seen[r, [place[report] for report in row]] = 1
        network = _with_reports(network, list(place))
        owner = np.array([report.unit for report in place], np.int64)
        constant, slack_of = self.conditions.constant[rows], self.conditions.slack[rows] + slack
        return Part(rows, network, np.hstack([states, seen]), held, constant, slack_of, owner)

    def gather(self, task: Callable[[Part], FloatArray]) -> FloatArray:
        """The rows that a task answers part by part, in order."""
        found = [task(part) for part in self.parts]
        if len(found) == 1:
            return found[0]
        whole = np.empty((len(self.states), *found[0].shape[1:]))
        for part, rows in zip(self.parts, found, strict=True):
            whole[part.rows] = rows
        return whole

    def collect(self, task: Callable[[Part], Iterable[R]]) -> list[R]:
        """The records that a task answers part by part, in order."""
        found: dict[int, R] = {}
        for part in self.parts:
            numbers = np.arange(len(self.states))[part.rows].tolist()
            found.update(zip(numbers, task(part), strict=True))
        return [found[r] for r in range(len(self.states))]

    @cached_property
    def impossible(self) -> BoolArray:
        """Which rows have evidence of probability zero; there is no posterior for them."""
        held = None if self.conditions is None else self.conditions.held
        barred = None if self.conditions is None or self.network.is_binary else self._barred(self.conditions.reports)
        if barred is not None:
            return domains.impossible(self.network, self.states, held, barred)
        return support.impossible(self.network, self.states, held)

    def _barred(self, reports: tuple[tuple[Report, ...], ...]) -> domains.Domains | None:
        """The states that reports leave, those with a likelihood other than zero, if some rule out any."""
        if not any(min(report.inputs) <= -support.EXCLUDED for row in reports for report in row):
            return None
        left = [np.ones((len(self.states), n), np.bool_) for n in self.network.n_states.tolist()]
        for r, row in enumerate(reports):
            for report in row:
                left[report.unit][r] &= np.array(report.inputs) > -support.EXCLUDED
        return left

    def reason(self, r: int = 0) -> str:
        """Why a row is impossible, as a sentence; empty if it is possible."""
        held = None if self.conditions is None else self.conditions.held
        if held is not None:
            held = held[0 if len(held) == 1 else r]
        return support.reason(self.network, self.states[r], held) if self.impossible[r] else ""

    def with_state(self, units: IndexArray, state: int) -> Question:
        """A row for each of some units: the single row of this question, with that unit observed in the state."""
        states = np.repeat(self.states, len(units), axis=0)
        states[np.arange(len(units)), units] = state
        conditions = self.conditions and self.conditions._replace(reports=(), constant=np.empty(0), slack=np.empty(0))
        return replace(self, states=states, conditions=conditions, single=False)

    def check_possible(self) -> None:
        """A single row that has a posterior, or an error: for answers that are nothing but a posterior."""
        if self.impossible[0]:
            raise support.refusal(self.reason())

    def rule_out(self, log_p: FloatArray) -> FloatArray:
        """ln P, or a bound on it, of each row: minus infinity where the evidence is impossible.

        That is also where ln P is as low as only states can be that reports rule out.
        """
        gone = self.impossible
        if self.conditions is not None and not self.network.is_binary:
            ends = [min((min(report.inputs) for report in row), default=0.0) for row in self.conditions.reports]
            low = np.where(np.array(ends) <= -support.EXCLUDED, np.array(ends) + 500.0, -np.inf)
            gone = gone | (log_p - self.conditions.constant < low)
        return np.where(gone, -np.inf, log_p)

    def text(self) -> str:
        """The conditions of a single row in words, or nothing."""
        if self.conditions is None:
            return ""
        held, n = self.conditions.held[0], len(self.conditions.reports[0])
        units = np.flatnonzero(held != HIDDEN).tolist()
        set_to = [f"{self.network.names[i]} = {state_word(self.network, i, held[i])}" for i in units]
        shown = set_to[:3] + ["…"] * (len(set_to) > 3)
        return (f", do({', '.join(shown)})" if set_to else "") + (f", {n} report{'s' * (n != 1)}" if n else "")


def ask(network: Network, evidence: EvidenceLike, do: EvidenceLike | None) -> Question:
    """The question that a user asks, of one pattern or a table."""
    certain, reports = _parted(evidence)
    states, single = coerce(network, certain)
    return _question(network, states, single, reports, do)


def ask_one(network: Network, evidence: EvidenceLike, do: EvidenceLike | None) -> Question:
    """The question of one pattern."""
    certain, reports = _parted(evidence)
    return _question(network, coerce_one(network, certain), True, reports, do)


def ask_many(network: Network, evidence: EvidenceLike, do: EvidenceLike | None, *, missing: Any = ()) -> Question:
    """The question of a table; what is in `missing` is not observed."""
    certain, reports = _parted(evidence)
    return _question(network, coerce_many(network, certain, missing=missing), False, reports, do)


def interventions(network: Network, do: EvidenceLike | None, n: int, what: str = "rows") -> States:
    """The states that units are held at, -1 for those that are free: one row for all, or one for each of n."""
    if do is None:
        return np.full((1, network.n_units), HIDDEN)
    held = coerce(network, do)[0]
    if len(held) not in (1, n):
        raise EvidenceError(f"do has {len(held)} rows; give one pattern, or one for each of the {n} {what}")
    return held


def intervene(network: Network, held: States) -> tuple[Network, States, float]:
    """The network with some units cut out, the evidence that stands for them, and how far rounding may bring ln P.

    Biases are added up in doubles; where one would leave their range, the unit stays, observed, with a bias that makes
    its state certain and the largest bias that there may be: weights of that size have roundings of that size.
    """
    fixed, graph, model = held != HIDDEN, network.graph, network.model
    if not fixed.any():
        return network, held, 0.0
    into, out = fixed[graph.child_of_edge], fixed[graph.parent]
    threshold, column = ends_of_weights(model)
    variable, state = network.columns
    on = held[variable] == state
    sent = np.where(on[column] & ~fixed[variable[threshold]], network.weight, 0.0)
    n = len(network.bias)
    bias = network.bias + np.bincount(threshold, weights=sent, minlength=n)
    if np.abs(bias).max() <= MAX_PARAMETER:
        touched = np.bincount(threshold, weights=np.abs(sent), minlength=n)
        terms = 1 + np.bincount(threshold, weights=sent != 0.0, minlength=n)
        slack = _ROUNDING * float((terms * (touched + np.abs(network.bias)))[touched > 0.0].sum())
        free = np.where(fixed[variable], 0.0, bias)
        return _without_edges(network, into | out, free, held), np.full_like(held, HIDDEN), slack
    sure = np.where(held[variable] >= state, MAX_PARAMETER, -MAX_PARAMETER)
    sure = np.where((network.gate == NOISY_OR)[variable], MAX_PARAMETER * on, sure)
    return _without_edges(network, into, np.where(fixed[variable], sure, network.bias), held), held, 0.0


def _without_edges(network: Network, gone: BoolArray, bias: FloatArray, held: States) -> Network:
    """Edges go; a table loses the axes of the parents that are held. A variable that is held has no table."""
    graph, kept, model = network.graph, ~gone, network.model
    counts = np.bincount(graph.child_of_edge[kept], minlength=network.n_units)
    cut = Graph(np.concatenate([[0], np.cumsum(counts)]), graph.parent[kept])
    weight, gate, tables = network.weight[np.repeat(kept, np.diff(model.block))], network.gate.copy(), {}
    for name, table in network.tables.items():
        i = network.index(name)
        if held[i] != HIDDEN:
            gate[i] = SIGMOID
            continue
        own = slice(graph.indptr[i], graph.indptr[i + 1])
        at = [slice(None) if stays else held[j] for stays, j in zip(kept[own], graph.parent[own], strict=True)]
        tables[name] = table[tuple(at)]
    return Network(network.names, cut, weight, bias, gate, states=network.states, tables=tables)


def _with_reports(network: Network, reports: Sequence[Report]) -> Network:
    if not reports:
        return network
    graph = network.graph
    names, mark = [f"report {k} on {network.names[report.unit]}" for k, report in enumerate(reports)], ""
    while any(name + mark in network._index for name in names):
        mark += "'"  # until no unit is called so
    indptr = np.concatenate([graph.indptr, graph.indptr[-1] + 1 + np.arange(len(reports))])
    parent = np.concatenate([graph.parent, [report.unit for report in reports]])
    inputs = [np.array(report.inputs) for report in reports]
    return Network(
        (*network.names, *(name + mark for name in names)),
        Graph(indptr, parent),
        np.concatenate([network.weight, *(x[1:] - x[0] for x in inputs)]),
        np.concatenate([network.bias, [x[0] for x in inputs]]),
        np.concatenate([network.gate, np.full(len(reports), SIGMOID, np.int8)]),
        states=network.states,
        tables=network.tables,
    )


def _groups(conditions: Conditions, n: int) -> list[IndexArray]:
    """Rows that one network can answer: with the same interventions, and not too many different reports."""
    held, groups, reports = conditions.held, dict[bytes, list[list[int]]](), dict[bytes, set[Report]]()
    common = held[0].tobytes() if len(held) == 1 else None
    for r in range(n):
        key = held[r].tobytes() if common is None else common
        own = set(conditions.reports[r])
        if key not in groups or len(reports[key] | own) > _REPORTS:
            groups.setdefault(key, []).append([])
            reports[key] = set()
        groups[key][-1].append(r)
        reports[key] |= own
    parts = [np.array(rows, np.int64) for of_key in groups.values() for rows in of_key]
    return parts or [np.empty(0, np.int64)]


# --- reading ----------------------------------------------------------------------------------------------------------


def _is_mapping(evidence: Any) -> bool:
    return isinstance(evidence, Mapping) and not hasattr(evidence, "toarray")  # as in `evidence.coerce`


def _parted(evidence: EvidenceLike) -> tuple[EvidenceLike, list[dict[Any, Any]]]:
    """Evidence that is certain, and for each mapping the pairs that were in it; anything else is left as it is."""
    if _is_mapping(evidence):
        certain, pairs = _parted_row(evidence)  # type: ignore[arg-type]
        return certain, [pairs]
    if isinstance(evidence, Sequence) and evidence and all(map(_is_mapping, evidence)):
        rows = [_parted_row(row) for row in evidence]  # type: ignore[arg-type]
        return [row for row, _ in rows], [pairs for _, pairs in rows]
    return evidence, []


def _parted_row(row: Mapping[Any, Any]) -> tuple[Mapping[Any, Any], dict[Any, Any]]:
    pairs = {
        key: value
        for key, value in row.items()
        if isinstance(value, tuple | list | Mapping) or (isinstance(value, np.ndarray) and value.ndim != 0)
    }
    return ({**row, **dict.fromkeys(pairs)}, pairs) if pairs else (row, pairs)


def _question(
    network: Network, states: States, single: bool, pairs: list[dict[Any, Any]], do: EvidenceLike | None
) -> Question:
    held = interventions(network, do, len(states))
    if not any(pairs) and np.all(held == HIDDEN):
        return Question(network, states, single)
    pairs = pairs or [{}] * len(states)
    reports = [
        [(network.index(i), _logarithms(network, i, pair, f" in row {r}" * (not single))) for i, pair in row.items()]
        for r, row in enumerate(pairs)
    ]
    states = states.copy()
    constant, slack, kept = np.zeros(len(states)), np.zeros(len(states)), list[tuple[Report, ...]]()
    for r, row in enumerate(reports):
        by_do, own = held[0 if len(held) == 1 else r], list[Report]()
        for unit, logs in row:
            finite = [log for log in logs if log > -math.inf]
            if len(finite) == 1:
                states[r, unit] = logs.index(finite[0])
            known = by_do[unit] if states[r, unit] == HIDDEN else states[r, unit]
            if known != HIDDEN or len(set(logs)) == 1:  # nothing that depends on the unit
                constant[r] += logs[max(known, 0)]
            else:
                zero = min(support.depth(network), MAX_PARAMETER / 2.0) if len(finite) < len(logs) else 0.0
                more, report = _child(unit, logs, zero)
                constant[r] += more
                slack[r] += _ROUNDING * zero
                own.append(report)
            slack[r] += _ROUNDING * len(row) * (1.0 + sum(map(abs, finite)))
        kept.append(tuple(own))
    clash = (states != HIDDEN) & (held != HIDDEN) & (states != held)
    if clash.any():
        r, i = (int(k) for k in np.argwhere(clash)[0])
        seen, at = (state_word(network, i, state) for state in (states[r, i], held[0 if len(held) == 1 else r, i]))
        raise EvidenceError(
            f"variable {network.names[i]!r} is observed as {seen} and held at {at} by do, in row {r}; "
            "such evidence is impossible: leave it out of one of the two"
        )
    return Question(network, states, single, Conditions(held, tuple(kept), constant, slack))


def state_word(network: Network, i: int, state: int) -> str:
    """What to call a state in a message: its number where there are two, else its name."""
    states = network.states[network.names[i]]
    return str(state) if len(states) == 2 else states[state]


def _child(unit: int, logs: tuple[float, ...], zero: float) -> tuple[float, Report]:
    """What a report adds to ln P beside its child, and the child; minus `zero` is the input of what is ruled out."""
    if len(logs) == 2:
        ratio = logs[1] - logs[0]
        return float(np.logaddexp(*logs)), Report(unit, (-ratio, ratio))
    top = max(logs)
    inputs = tuple(-zero if log == -math.inf else log - top - math.log(2.0 - math.exp(log - top)) for log in logs)
    return top + math.log(2.0), Report(unit, inputs)


def _logarithms(network: Network, unit: Any, given: Any, where: str) -> tuple[float, ...]:
    """The logarithms of likelihoods, one for each state."""
    name = network.names[network.index(unit)]
    states = network.states[name]
    values: Any = given
    if isinstance(given, Mapping):
        named = {find(states, key): value for key, value in given.items()}
        if len(named) < len(given) or set(named) != set(range(len(states))):
            strange = next((key for key in given if find(states, key) is None), None)
            near = "" if strange is None else hint(strange, states)
            raise EvidenceError(
                f"variable {name!r} holds {checks.shown(given)}{where}; soft evidence by name has a likelihood for "
                f"each of its states, {shown(states)}, zero for those that are ruled out{near}"
            )
        values = [named[k] for k in range(len(states))]
    try:
        found = checks.floats(values)
    except (TypeError, ValueError, OverflowError):
        found = np.empty(0)
    if found.shape != (len(states),) or not (((found >= 0.0) & (found < math.inf)).all() and found.sum() > 0.0):
        meant = "a pair of likelihoods, of the report if it is 0 and if it is 1: finite, not negative and not both"
        if len(states) > 2:
            meant = f"a likelihood of the report for each of its {len(states)} states, in their order or by name: "
            meant += "finite, not negative and not all"
        raise EvidenceError(f"variable {name!r} holds {checks.shown(given)}{where}; soft evidence is {meant} zero")
    return tuple(math.log(value) if value else -math.inf for value in found.tolist())
