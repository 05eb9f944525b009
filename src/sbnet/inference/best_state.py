"""The most probable explanation: the best joint state of all units, how good it is, and how good any could be."""

from __future__ import annotations

from concurrent.futures import Executor
from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from sbnet import checks
from sbnet._types import HIDDEN, BoolArray, FloatArray, RngLike, States
from sbnet.bounds.upper import UpperBoundSettings, upper_bound
from sbnet.errors import TooRareError, short
from sbnet.exact.probability import log_p_rows, sample
from sbnet.inference.local_search import good_state
from sbnet.inference.maximum import Found, Group, groups_of, largest, rounding_of
from sbnet.inference.solvers.families import most_probable_state
from sbnet.inference.solvers.mean_field import MeanField
from sbnet.model import gates
from sbnet.model.network import Network
from sbnet.parallel.blocks import Bar, Block, RowBlocks, map_blocks, pool
from sbnet.questions import printing
from sbnet.questions.batches import NamedBatch, answers, framed
from sbnet.questions.by_state import all_by_number, by_number, observed_column, state_value, state_values
from sbnet.questions.evidence import EvidenceLike
from sbnet.questions.printing import Readable, Reading
from sbnet.questions.question import Part, Question, ask
from sbnet.questions.reduction import absorb
from sbnet.questions.support import IMPOSSIBLE, remote

if TYPE_CHECKING:
    import pandas

LIMIT = 20
"""Coupled hidden units among which the best state is found for certain, by default."""
_SMALL, _TABLE = 12, 20
"""Larger groups are maximised by elimination, if no table has more than 2**20 numbers."""
_STARTS, _SAMPLES = 4, 16
_NUMBERS = 13_500_000  # that are worked out in a search without end: a second or so


@dataclass(frozen=True, eq=False, repr=False)
class MostProbable(Readable):
    """The best joint state that was found for one pattern of evidence.

    ``best["rain"]`` is the state of a variable: its number, or its name where there are more than two.

    Attributes
    ----------
    network : Network
    evidence : ndarray of int8, shape (n_units,)
        What was given, by evidence or by intervention; -1 for the variables that were looked for.
    state : ndarray of int8, shape (n_units,)
        The state of every variable.
    log_p : float
        ln P(state, evidence), in nats: of all variables together, with the likelihoods of soft evidence.
    upper : float
        No state has a larger ln P than this: certain, rounding included.
    exact : bool
        Is no state better? Then `upper` is above `log_p` by no more than rounding may take.
    impossible : str
        Why the evidence is impossible, if it is: then `log_p` and `upper` are minus infinity, and the variables that
        were looked for have the state -1.

    Examples
    --------
    >>> import sbnet as sb
    >>> net = sb.from_edges({("rain", "wet"): 2.0, ("sprinkler", "wet"): 1.5}, bias={"rain": -1.0})
    >>> best = sb.most_probable(net, {"wet": 1})
    >>> best["rain"], best["sprinkler"], best.exact
    (0, 1, True)
    """

    network: Network
    evidence: States
    state: States
    log_p: float
    upper: float
    exact: bool
    impossible: str = ""

    @property
    def states(self) -> dict[str, Any]:
        """The state of every variable, by name."""
        if all_by_number(self.network):
            return dict(zip(self.network.names, self.state.tolist(), strict=True))
        return dict(zip(self.network.names, state_values(self.network, self.state), strict=True))

    @property
    def gap(self) -> float:
        """How much better a state might be at most, in nats."""
        return 0.0 if self.upper == self.log_p else self.upper - self.log_p

    def __getitem__(self, unit: str | int) -> Any:
        i = self.network.index(unit)
        state = int(self.state[i])
        return state if by_number(self.network.states[self.network.names[i]]) else state_value(self.network, i, state)

    def to_frame(self) -> pandas.DataFrame:
        """A pandas table, one row for each variable: observed state, and the most probable one.

        Returns
        -------
        pandas.DataFrame
        """
        found = self.state if all_by_number(self.network) else state_values(self.network, self.state)
        return framed(
            {"observed": observed_column(self.network, self.evidence), "state": found}, units=self.network.names
        )

    def _reading(self) -> Reading:
        if self.log_p == -np.inf:
            return Reading(f"No state: ln P = -inf, {self.impossible or IMPOSSIBLE}")
        head = f"Best state found: ln P = {self.log_p:.6g} nats; the best is at most {self.upper:.6g}"
        if self.exact:
            head = f"Most probable state: ln P = {self.log_p:.6g} nats, the best there is"
        hidden, two = self.evidence == HIDDEN, self.network.n_states == 2
        parts = [(word, np.flatnonzero(hidden & (self.state == k) & two)) for k, word in ((1, "on:  "), (0, "off: "))]
        lines = []
        for word, units in (*parts, ("", np.flatnonzero(hidden & ~two))):
            if len(units) or (word and two.all()):
                told = [short(self.network.names[i]) for i in units[: printing.SHOWN]]
                if not word:
                    told = [f"{name} = {short(str(self[int(i)]))}" for name, i in zip(told, units, strict=False)]
                more = f" and {len(units) - printing.SHOWN} more" if len(units) > printing.SHOWN else ""
                lines.append(word + (", ".join(told) or "none") + more)
        return Reading(head, summary=lines)


@dataclass(frozen=True, eq=False, repr=False)
class MostProbableBatch(NamedBatch[MostProbable, Any]):
    """A :class:`MostProbable` for each row of a table, as arrays with an axis of rows in front.

    ``batch["rain"]`` are the states of a variable in all rows, ``batch[3]`` is the answer of row 3; a slice, or an
    array of row numbers or of truth values, gives a batch of those rows.

    Attributes
    ----------
    network : Network
    evidence, state : ndarray of int8, rows by variables
    log_p, upper, exact : ndarray of shape (n,)

    Examples
    --------
    >>> import sbnet as sb
    >>> net = sb.from_edges({("rain", "wet"): 2.0, ("sprinkler", "wet"): 1.5}, bias={"rain": -1.0})
    >>> best = sb.most_probable(net, [{"wet": 1}, {"wet": 0}])
    >>> best.state
    array([[0, 1, 1],
           [0, 0, 0]], dtype=int8)
    """

    network: Network
    evidence: States
    state: States
    log_p: FloatArray
    upper: FloatArray
    exact: BoolArray

    _columns = ("evidence", "state", "log_p", "upper", "exact")

    @property
    def gap(self) -> FloatArray:
        """How much better a state might be at most, in nats, by row."""
        gap = np.zeros(len(self))
        np.subtract(self.upper, self.log_p, out=gap, where=self.upper != self.log_p)
        return gap

    def _unit(self, name: str) -> Any:
        i = self.network.index(name)
        column: States = self.state[:, i]
        return (
            column
            if by_number(self.network.states[name])
            else np.array([state_value(self.network, i, s) for s in column])
        )

    def _one(self, r: int) -> MostProbable:
        numbers = float(self.log_p[r]), float(self.upper[r]), bool(self.exact[r])
        return MostProbable(self.network, self.evidence[r], self.state[r], *numbers)

    def to_frame(self) -> pandas.DataFrame:
        """A pandas table, one row for each pattern: its ln P, the upper bound, and the state of every variable.

        Returns
        -------
        pandas.DataFrame
        """
        head: dict[str, Any] = {"log_p": self.log_p, "upper": self.upper, "exact": self.exact}
        if all_by_number(self.network):
            return framed(head, self.state, self.network.names)
        return framed(head | {name: self._unit(name) for name in self.network.names})

    def _reading(self) -> Reading:
        n = len(self)
        head = f"MostProbableBatch: {printing.rows(n)} × {self.network.n_units:,} variables"
        best = f"the best there is in {int(self.exact.sum()):,} of {n:,}"
        return Reading(head, summary=(f"ln P: {printing.spread(self.log_p)}", best) if n else ())


@answers(MostProbable, MostProbableBatch)
def most_probable(
    network: Network,
    evidence: EvidenceLike,
    *,
    do: EvidenceLike | None = None,
    limit: int = LIMIT,
    parts: int | None = None,
    rng: RngLike = 0,
    threads: int | None = None,
    executor: Executor | None = None,
    progress: bool | None = None,
) -> MostProbable | MostProbableBatch:
    r"""The most probable state of all variables together, given the evidence.

    .. math:: \max_H \ln P(H, V)

    That is not the state in which each variable is as its mean says. The search begins at the means of mean field
    theory and at samples, flips variables as long as that helps, and then splits the space of states, and passes over
    the parts whose upper bound shows that they hold nothing better; :mod:`sbnet.inference.maximum` has the bound.
    Groups of hidden variables that do not meet are searched one by one; sparse ones are not searched, but maximised by
    elimination, however large they are. Where variables have more states and elimination is too large, particles go
    uphill, and the upper bound is that on ln P(evidence). Variables without observed descendants count: here they do
    not drop out.

    Parameters
    ----------
    network : Network
    evidence : mapping, sequence or table
        One pattern or a table of them; a pair in a mapping is soft evidence, as in :func:`sbnet.infer`.
    do : mapping, sequence or table, optional
        Variables held by intervention, as in :func:`sbnet.infer`.
    limit : int
        In groups of up to that many coupled hidden variables the search goes on until the best is found.
    parts : int, optional
        In larger ones it ends after so many splits, and what has not been searched is bounded; by default after so many
        as take a second or so, 5000 for a network of 8 × 24 × 64 variables.
    rng : int or numpy.random.Generator, optional
        Seed of the starting points.
    threads, executor, progress : as in :func:`sbnet.infer_many`

    Returns
    -------
    MostProbable, or MostProbableBatch for a table

    Examples
    --------
    >>> import sbnet as sb
    >>> net = sb.from_edges({("rain", "wet"): 2.0, ("sprinkler", "wet"): 1.5}, bias={"rain": -1.0})
    >>> best = sb.most_probable(net, {"wet": 1})
    >>> best
    Most probable state: ln P = -1.20782 nats, the best there is
      on:  sprinkler
      off: rain
    >>> best["sprinkler"], best.exact
    (1, True)
    """
    question = ask(network, evidence, do)
    limit, parts = checks.whole("limit", limit, 0, 60), None if parts is None else checks.whole("parts", parts, 0)
    seed = int(checks.generator(rng).integers(2**63))
    blocks = map_blocks(
        partial(_search_rows, question, limit, parts, seed),
        RowBlocks(np.arange(len(question.states)), most=16),
        executor=pool(executor, threads),
        progress=Bar("most probable states", len(question.states), progress),
    )
    rows = [row for block in blocks for row in block]
    if question.single:
        return rows[0]
    return MostProbableBatch(
        network,
        question.given,
        np.array([row.state for row in rows], np.int8).reshape(question.states.shape),
        np.array([row.log_p for row in rows], np.float64),
        np.array([row.upper for row in rows], np.float64),
        np.array([row.exact for row in rows], np.bool_),
    )


def _search_rows(question: Question, limit: int, parts: int | None, seed: int, block: Block) -> list[MostProbable]:
    return [_search(question.some(slice(r, r + 1)), limit, parts, seed) for r in block.columns[0]]


def _search(question: Question, limit: int, parts: int | None, seed: int) -> MostProbable:
    """One row: the sum of what is known, and of the best of each group."""
    if question.impossible[0]:
        given = question.given[0]
        return MostProbable(question.network, given, given, -np.inf, -np.inf, True, question.reason())
    (part,) = question.parts
    if not part.network.is_binary:
        return _of_states(question, part, limit, seed)
    network, row = part.network, part.states[0]
    bias = absorb(network, part.states)[0]
    held = np.concatenate([part.held != HIDDEN, np.zeros(len(part.owner), np.bool_)])
    groups, known = groups_of(network, row, bias, held)
    log_p = float(gates.log_p(network.gate[known], row[known], bias[known]).sum() + part.constant[0])
    upper, exact, state = log_p, True, row.copy()
    starts = cache(partial(_starts, part, seed))
    for group in groups:
        most = max(_NUMBERS // group.size, 1) if parts is None else parts
        most = 1 << len(group.hidden) if len(group.hidden) <= limit else most
        found = _eliminated(network, row, group) or largest(group, starts, most)
        state[group.units] = found.state
        log_p, upper, exact = log_p + found.value, upper + found.upper, exact and found.exact
    if remote(network, np.array(log_p)):
        return _of_states(question, part, limit, seed)
    # The margins of groups cover their sums; this one covers what was absorbed, and the sum of it all.
    upper += rounding_of(network.weight, network.bias, network.graph.indptr, network.gate) + float(part.slack[0])
    upper += 1e-15 * (len(groups) + 1) * (abs(log_p) + abs(float(part.constant[0])))
    own = np.where(part.held == HIDDEN, state[: part.n_units], part.held)
    return MostProbable(question.network, question.given[0], own, log_p, upper, exact)


def _of_states(question: Question, part: Part, limit: int, seed: int) -> MostProbable:
    """One row of variables with states, by elimination, or uphill; a variable that is held is no part of P."""
    network = part.network
    free = np.flatnonzero(np.append(part.held == HIDDEN, np.ones(len(part.owner), np.bool_))).tolist()
    try:
        best = most_probable_state(network, part.states[0], free, limit)
    except TooRareError as error:
        given = question.given[0]
        return MostProbable(question.network, given, given, -np.inf, -np.inf, True, str(error))
    exact = best is not None
    if best is None:
        best = good_state(network, part.states[0], free, seed)
    own = np.where(part.held == HIDDEN, best[: part.n_units], part.held)
    whole = np.append(own, best[part.n_units :])[None, :]
    parts = log_p_rows(network, whole.astype(np.int8))[0, free]
    log_p = float(parts.sum() + part.constant[0])
    # The search takes sums in another order: what it passed over is at most as far off as rounding brings two sums.
    size = np.abs(parts).sum() + np.abs(network.weight).sum() + np.abs(network.bias).sum()
    upper = log_p + float(part.slack[0]) + 1e-13 * (1.0 + float(size))
    if not exact:  # no state is more probable than all of them together
        bound = upper_bound(network, part.states, progress=False, settings=UpperBoundSettings(threads=1)).bound
        upper = max(upper, float(part.above(np.minimum(bound, 0.0))[0]))
    return MostProbable(question.network, question.given[0], own.astype(np.int8), log_p, upper, exact)


def _eliminated(network: Network, row: States, group: Group) -> Found | None:
    """The best state of a large group by elimination, if that takes small tables only."""
    if len(group.hidden) <= _SMALL:
        return None
    try:
        best = most_probable_state(network, row, group.units.tolist(), _TABLE)
    except TooRareError:  # no state has a positive probability: found out where zeros are looked for
        return None
    if best is None:
        return None
    state: States = best[group.units]
    value = float(group.log_p(state[None, :])[0])
    return Found(state, value, value + group.margin, True)


def _starts(part: Part, seed: int) -> States:
    """Complete states to begin with: what mean field theory makes of several starting points, and samples."""
    network, row = part.network, part.states
    points = np.random.default_rng(seed).random((_STARTS, network.n_units))
    points[0] = 0.5
    solver = MeanField(log_term="xi", tol=1e-2, max_sweeps=50)
    means = solver.solve(network, np.repeat(row, _STARTS, axis=0), start=points, trace=False).means
    samples = sample(network, _SAMPLES, rng=seed, do=row)
    return np.concatenate([(means > 0.5).astype(np.int8), samples])
