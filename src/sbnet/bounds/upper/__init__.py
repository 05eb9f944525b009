r"""A rigorous upper bound on ln P(evidence), for any network and any evidence.

Write :math:`\mathrm{sp}(z) = \ln(1 + e^z)`. Evidence is absorbed and barren variables are dropped, which is exact; then
the hidden variables are summed out one by one, children before parents.

*Summing out.* A hidden variable c is met in its own factor :math:`p_c` and in those of its children. Hölder's
inequality parts them, with weights :math:`\omega_c + \sum_f \tau_f = 1`, one for its own factor and one for each child
f:

.. math:: \sum_{S_c} p_c \prod_f p_f \le \Big(\sum_{S_c} p_c^{1/\omega_c}\Big)^{\omega_c}
    \prod_f \Big(\sum_{S_c} p_f^{1/\tau_f}\Big)^{\tau_f}

Beforehand, a factor :math:`e^{b_s}` for each state s (:math:`b_0 = 0`) may move from one bracket to another. What the
children send up is then :math:`e^{\eta_{cs}}` with :math:`\eta_{cs} = \sum_f b_{fcs}`, and the variable's own bracket
depends on the inputs z of its thresholds alone:
:math:`G_c(z) = \omega_c \ln \sum_s [P(s \mid z)\, e^{\eta_{cs}}]^{1/\omega_c}`, which for a sigmoid variable with two
states is :math:`\omega_c\,\mathrm{sp}((z + \eta_c)/\omega_c) - \mathrm{sp}(z)`. For an observed variable there is
nothing to sum: :math:`G_c(z) = \ln P(S_c \mid z)`.

*The parents of a factor.* The states of a few (those in its table; by default all of up to eight) stay as they are. The
others move the input by :math:`t = \sum_j J_{cj} S_j`, which lies in an interval, and are replaced by a line:
:math:`G_c(z + t) \le \lambda_c t + \max_{t'} [G_c(z + t') - \lambda_c t']`. The maximum over the interval has a closed
form (for a hidden variable if :math:`\omega_c = 1`, so such a variable is in no table), and the line adds
:math:`\lambda_c J_{cj}` to :math:`\eta_j`. For observed variables without tables, on an unbounded interval, this is the
linear bound :math:`\mathrm{sp}(z) \ge \xi z + H(\xi)`, H the entropy of one variable, at :math:`\xi = S_c - \lambda_c`.

*More than two states.* Each threshold l has an input :math:`z_l`, an interval and a line. As :math:`\ln P(s \mid z)` is
the sum of :math:`a_l(s) z_l - c_l(s) t(z_l)` with :math:`c_l(s) \ge 0` and t convex, each part is concave: its maximum
above a line has a closed form again, which is all that an observed variable needs. A hidden one takes the maxima of
each state apart,

.. math:: G_c(z + t) \le \sum_l \lambda_l t_l + \omega_c \ln \sum_s \exp \frac{\eta_{cs} + \sum_l \max_{t'}
    \{a_l(s) (z_l + t') - c_l(s) t(z_l + t') - \lambda_l t'\}}{\omega_c} .

*Together.* All states of a table have one weight, so the brackets close in any order. When all variables are summed
out,

.. math:: \ln P(V) \le \sum_c \tau_c \ln \sum_S
    \exp \frac{\max_t [G_c(z_c(S) + t) - \lambda_c t] - b_c \cdot S}{\tau_c}

with S the states of the parents in the table of c; a root adds :math:`G_c(h_c)`. This holds for all b and λ and all
weights, so it needs no convergence. It is convex in all of them together (perspectives of convex functions, and
maxima of such), and limited-memory BFGS lowers it.

*Tables* are no function of inputs: networks that have some are bounded by mini-buckets,
:mod:`sbnet.bounds.upper.buckets`.

*Conditioning.* :math:`P(V) = \sum_s P(V, S_A = s)`: each term is evidence again, with a bound and parameters of its
own. A split that does not lower the sum is not made. Groups of a few coupled hidden variables are summed exactly.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from sbnet import checks
from sbnet._types import HIDDEN, BoolArray, FloatArray, IndexArray, States
from sbnet.bounds.margins import widened
from sbnet.bounds.upper.buckets import bucket_bound, split_bound
from sbnet.bounds.upper.subproblems import MOST_NUMBERS, Limits, pick, solve, split_all, split_best
from sbnet.errors import ParameterError, unknown_unit
from sbnet.kernels.compiling import announce
from sbnet.kernels.descent import lower
from sbnet.model.network import Network
from sbnet.parallel.blocks import Bar, Block, RowBlocks, map_blocks, pool
from sbnet.questions import printing
from sbnet.questions.batches import Batch, answers
from sbnet.questions.evidence import EvidenceLike
from sbnet.questions.printing import Readable, Reading
from sbnet.questions.question import Part, ask
from sbnet.questions.reduction import live_variables
from sbnet.questions.support import IMPOSSIBLE

__all__ = ["UpperBound", "UpperBoundSettings", "UpperBounds", "upper_bound"]

LIMIT = 25
MAX_CONDITIONED = 16
MAX_TABLE = 12


@dataclass(frozen=True, repr=False)
class UpperBound(Readable):
    """An upper bound on ln P(evidence).

    Attributes
    ----------
    bound : float
        In nats; never above zero, unless soft evidence has likelihoods above one. Rounding is covered: a margin in
        proportion to weights and biases, :mod:`sbnet.bounds.margins`, has been added.
    exact : bool
        Is the bound ln P itself, but for that margin, because everything could be summed?
    n_subproblems : int
        Number of parts into which the states of the hidden variables were split; one without conditioning.
    conditioned : tuple of str
        The variables at which they were split.
    impossible : str
        Why the evidence is impossible, if it is: then the bound is minus infinity.

    Examples
    --------
    >>> import sbnet as sb
    >>> net = sb.from_edges({("rain", "wet"): 2.0, ("sprinkler", "wet"): 1.5}, bias={"rain": -1.0})
    >>> above = sb.upper_bound(net, {"wet": 1})
    >>> bool(above.bound >= sb.log_likelihood(net, {"wet": 1}))
    True
    """

    bound: float
    exact: bool
    n_subproblems: int
    conditioned: tuple[str, ...]
    impossible: str = ""

    def _reading(self) -> Reading:
        if self.bound == -np.inf:
            return Reading(f"UpperBound: ln P = -inf, {self.impossible or IMPOSSIBLE}")
        relation = "=" if self.exact else "≤"
        parts = f"{self.n_subproblems} subproblem{'s' * (self.n_subproblems != 1)}"
        return Reading(f"UpperBound: ln P {relation} {self.bound:.6g} nats, from {parts}")


@dataclass(frozen=True, eq=False, repr=False)
class UpperBounds(Batch[UpperBound]):
    """An :class:`UpperBound` for each row of a table: arrays of shape (n,), and a tuple of variables for each row.

    ``bounds[3]`` is that of row 3; a slice, or an array of row numbers or of truth values, gives those of some rows.

    Attributes
    ----------
    bound, exact, n_subproblems : ndarray of shape (n,)
    conditioned : tuple of tuples of str

    Examples
    --------
    >>> import sbnet as sb
    >>> net = sb.from_edges({("rain", "wet"): 2.0, ("sprinkler", "wet"): 1.5}, bias={"rain": -1.0})
    >>> above = sb.upper_bound(net, [{"wet": 1}, {"wet": 0}])
    >>> above.bound.shape
    (2,)
    """

    bound: FloatArray
    exact: BoolArray
    n_subproblems: IndexArray
    conditioned: tuple[tuple[str, ...], ...]

    _columns = ("bound", "exact", "n_subproblems", "conditioned")

    def _one(self, r: int) -> UpperBound:
        return UpperBound(float(self.bound[r]), bool(self.exact[r]), int(self.n_subproblems[r]), self.conditioned[r])

    def _reading(self) -> Reading:
        n, head = len(self), f"UpperBounds: {printing.rows(len(self))}"
        if n == 0:
            return Reading(head)
        summary = (f"bound: {printing.spread(self.bound)}", f"exact in {int(self.exact.sum()):,} of {n:,}")
        return Reading(head, summary=summary)


@dataclass(frozen=True)
class UpperBoundSettings:
    """Settings of :func:`upper_bound` that few have to change.

    Attributes
    ----------
    tol : float
        Stop when three steps in a row lower a bound by less than this, in nats.
    max_steps : int
        Stop after that many steps; the bound is valid all the same.
    threads, executor : int, concurrent.futures.Executor, optional
        As in :func:`sbnet.infer_many`.

    Examples
    --------
    >>> import sbnet as sb
    >>> net = sb.from_edges({("rain", "wet"): 2.0, ("sprinkler", "wet"): 1.5}, bias={"rain": -1.0})
    >>> settings = sb.solvers.UpperBoundSettings(max_steps=50)
    >>> bool(sb.upper_bound(net, {"wet": 1}, settings=settings).bound < 0.1)
    True
    """

    tol: float = 1e-5
    max_steps: int = 200
    threads: int | None = None
    executor: Executor | None = None

    def __post_init__(self) -> None:
        checks.tolerance("tol", self.tol)
        checks.whole("max_steps", self.max_steps, 1)
        pool(self.executor, self.threads)


@answers(UpperBound, UpperBounds)
def upper_bound(
    network: Network,
    evidence: EvidenceLike,
    *,
    do: EvidenceLike | None = None,
    condition: int | str | Sequence[str | int] | None = None,
    exact_up_to: int = 12,
    table_up_to: int = 8,
    progress: bool | None = None,
    settings: UpperBoundSettings | None = None,
) -> UpperBound | UpperBounds:
    r"""A rigorous upper bound on the log-likelihood of the evidence, in nats.

    Hidden variables are summed out one by one with Hölder's inequality; :mod:`sbnet.bounds.upper` has the proof. With
    the lower bound of :func:`sbnet.infer` it encloses ln P(evidence) where that cannot be computed.

    Parameters
    ----------
    network : Network
    evidence : mapping, sequence or table
        One pattern or a table of them; variables left out, NaN or -1 are not observed, and a pair in a mapping is soft
        evidence, as in :func:`sbnet.infer`.
    do : mapping, sequence or table, optional
        Variables held by intervention, as in :func:`sbnet.infer`.
    condition : int, str or sequence of these, optional
        Variables whose joint states are enumerated, each with a bound of its own: names, or a whole number k, for about
        :math:`2^k` subproblems at most, split one after the other where that lowers the bound most. Never worse than
        without, and the work grows as :math:`2^k`. Names that a row observes are passed over.
    exact_up_to : int
        Groups of at most that many coupled hidden variables are summed exactly.
    table_up_to : int
        The states of that many hidden parents of a variable, those with the largest weights, are enumerated; the others
        are bounded by a line, which is quicker and looser. Zero: lines only.
    progress : bool, optional
        Show a progress bar; by default, if the work is long and standard error is a terminal.
    settings : UpperBoundSettings, optional
        What few have to change: when to stop, threads, an executor.

    Returns
    -------
    UpperBound, or UpperBounds for a table

    Examples
    --------
    >>> import sbnet as sb
    >>> net = sb.layered((10, 20, 30), rng=0, scale=1.0)
    >>> upper = sb.upper_bound(net, [0] * 30, condition=2)
    >>> sb.infer(net, [0] * 30).bound < upper.bound
    True
    """
    question = ask(network, evidence, do)
    chosen = checks.settings(settings, UpperBoundSettings)
    limits = Limits(
        checks.whole("exact_up_to", exact_up_to, 0, LIMIT),
        checks.whole("table_up_to", table_up_to, 0, MAX_TABLE),
        int(chosen.max_steps),
        float(chosen.tol),
    )
    units, most = _check_condition(network, condition)
    announce(lower)

    def bounded(part: Part) -> list[UpperBound]:
        blocks = map_blocks(
            partial(_solve, part.network, limits, units, most),
            RowBlocks(part.states, most=min(256, MOST_NUMBERS // _n_parameters(part.network))),
            executor=pool(chosen.executor, chosen.threads),
            progress=Bar("upper bounds", len(part.states), progress),
        )
        found = [row for block in blocks for row in block]
        bound = part.above(np.array([row.bound for row in found]))
        return [replace(row, bound=float(value)) for row, value in zip(found, bound, strict=True)]

    rows = question.collect(bounded)
    for r in np.flatnonzero(question.impossible).tolist():
        rows[r] = UpperBound(-np.inf, True, 1, (), question.reason(r))
    if question.single:
        return rows[0]
    return UpperBounds(
        np.array([row.bound for row in rows], np.float64),
        np.array([row.exact for row in rows], np.bool_),
        np.array([row.n_subproblems for row in rows], np.int64),
        tuple(row.conditioned for row in rows),
    )


def _n_parameters(network: Network) -> int:
    return len(network.weight) + 3 * len(network.bias)


def _solve(network: Network, limits: Limits, units: list[int], most: int, block: Block) -> list[UpperBound]:
    (states,) = block.columns
    if network.tables:
        return [_with_tables(network, limits, units, most, row) for row in states]
    whole = solve(network, limits, states)
    rows = []
    for k, row in enumerate(states):
        bound, exact, n_subproblems, used = float(whole.bound[k]), bool(whole.exact[k]), 1, list[int]()
        if most > 1 and not exact and units:
            live = live_variables(network.model, row)
            used = [i for i in units if live[i] and row[i] == HIDDEN]
            answer = split_all(network, limits, pick(whole, [k]), used)
            bound, exact, n_subproblems = float(answer[0][0]), bool(answer[1][0]), int(answer[2][0])
        elif most > 1 and not exact:
            bound, exact, n_subproblems, used = split_best(network, limits, pick(whole, [k]), most)
        names = tuple(network.names[i] for i in sorted(used)) if n_subproblems > 1 else ()
        bound = bound if n_subproblems == 1 else min(widened(bound), float(whole.bound[k]))
        rows.append(UpperBound(bound, exact, n_subproblems, names))
    return rows


def _with_tables(network: Network, limits: Limits, units: list[int], most: int, row: States) -> UpperBound:
    """One row of a network with tables: mini-buckets, perhaps for each joint state of some variables."""
    room = max(limits.exact_up_to, limits.table_up_to, *(np.log2(table.size) for table in network.tables.values()))
    whole = bucket_bound(network, row, room)
    if most == 1 or whole.exact:
        return UpperBound(whole.bound, whole.exact, 1, ())
    used, size = list[int](), 1
    for v in units or whole.widest:
        if row[v] == HIDDEN and live_variables(network.model, row)[v] and size * network.n_states[v] <= most:
            used.append(v)
            size *= int(network.n_states[v])
    split = split_bound(network, row, room, used)
    if not used or split >= whole.bound:
        return UpperBound(whole.bound, False, 1, ())
    return UpperBound(split, False, size, tuple(network.names[v] for v in sorted(used)))


def _check_condition(network: Network, condition: Any) -> tuple[list[int], int]:
    """The units to split at, none if they are to be chosen, and the largest number of subproblems."""
    units: list[int] = []
    if condition is None:
        k = 0
    elif checks.is_whole(condition):
        k = int(condition)
    elif isinstance(condition, Iterable):
        for unit in checks.units("condition", condition):
            if isinstance(unit, str) and unit not in network.names:
                raise unknown_unit(unit, network.names, "condition")
            units.append(network.index(unit))
        units = list(dict.fromkeys(units))
        k = len(units)
    else:
        k = -1
    if k < 0:
        raise ParameterError(
            f"condition is {checks.shown(condition)}; give variables, or a whole number from 0 to {MAX_CONDITIONED}"
        )
    if k > MAX_CONDITIONED:
        n = checks.shown(k)
        raise ParameterError(
            f"conditioning on {n} variables needs 2**{n} subproblems; the limit is {MAX_CONDITIONED} variables"
        )
    most = math.prod(network.n_states[units].tolist()) if units else 2**k
    if most > 2**MAX_CONDITIONED:
        raise ParameterError(
            f"conditioning on these {k} variables needs {most:,} subproblems, one for each of their joint states; the "
            f"limit is 2**{MAX_CONDITIONED}: name fewer"
        )
    return units, most
