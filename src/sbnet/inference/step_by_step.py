"""The paper's algorithm one step at a time, in slow and plain Python: to be looked at, not to be fast.

The bound is that of eq. (22), with the entropy of eq. (16):

    L = sum_i mu_i <z_i> - sum_i [xi_i <z_i> + ln <e^(-xi_i z_i) + e^((1 - xi_i) z_i)>] + entropy(mu)

The paper's two steps alternate: (i) one xi after the other for fixed means, (ii) the mean of one hidden unit after the
other by eq. (24) for fixed xi. None of these updates lowers L (footnote 4).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from sbnet import checks
from sbnet._types import HIDDEN, FloatArray, Stop
from sbnet.errors import NetworkError, short
from sbnet.exact.probability import entropy_of
from sbnet.inference.solution import check_start
from sbnet.kernels.codes import SIGMOID
from sbnet.kernels.mean_field import EDGE
from sbnet.model.gates import sigma
from sbnet.model.network import Network
from sbnet.questions.evidence import EvidenceLike
from sbnet.questions.prediction import predict_rows
from sbnet.questions.question import Part, Question, ask_one
from sbnet.questions.reduction import absorb, live_variables

What: TypeAlias = Literal["start", "mean", "xi"]


@dataclass(frozen=True, eq=False, repr=False)
class Step:
    """Where the algorithm stands after one update.

    ``step["rain"]`` is the mean of a unit.

    Attributes
    ----------
    network : Network
    sweep : int
        How often the means have been gone through, this time included.
    what : {"start", "mean", "xi"}
        What was updated.
    unit : str or None
        The unit whose mean or xi it was; none at the start.
    means : ndarray of shape (n_units,)
        The means of all units: 0 or 1 where observed, their prediction where there is no observed descendant.
    xi : ndarray of shape (n_units,)
        The parameters of the logarithm terms; NaN for units whose input is known or that have no term.
    bound : float
        The bound on ln P(evidence), in nats.
    gain : float
        How much the update raised it.

    Examples
    --------
    >>> import sbnet as sb
    >>> net = sb.from_edges({("rain", "wet"): 2.0, ("sprinkler", "wet"): 1.5}, bias={"rain": -1.0})
    >>> *_, last = sb.steps(net, {"wet": 1})
    >>> round(last["rain"], 2), round(last.bound, 3)
    (0.34, -0.323)
    """

    network: Network
    sweep: int
    what: What
    unit: str | None
    means: FloatArray
    xi: FloatArray
    bound: float
    gain: float

    def __getitem__(self, unit: str | int) -> float:
        return float(self.means[self.network.index(unit)])

    def __repr__(self) -> str:
        if self.unit is None:
            return f"start: bound {self.bound:.6f}"
        values = self.means if self.what == "mean" else self.xi
        i = self.network.index(self.unit)
        now = f"{self.what} of {short(self.network.names[i])} is {values[i]:.4f}"
        return f"sweep {self.sweep}: {now}, bound {self.bound:.6f} (+{self.gain:.2g})"


def steps(
    network: Network,
    evidence: EvidenceLike,
    *,
    do: EvidenceLike | None = None,
    tol: float = 1e-6,
    max_sweeps: int = 500,
    start: ArrayLike | None = None,
) -> Iterator[Step]:
    r"""The paper's algorithm, eqs. (22)-(24), one update after the other.

    The start comes first, with all means and all :math:`\xi` at one half. Then the paper's two steps alternate: (i)
    every :math:`\xi` is given its best value, (ii) every mean is updated by eq. (24). The bound never falls. A sweep is
    (ii) and the (i) that follows, sweep 0 the first (i) alone, so that the last record of sweep ``s`` stands beside
    ``post.trace[s]`` of ``MeanField(log_term="xi", enumerate_up_to=0)``. That solver moves :math:`\xi` by one step of
    Newton's method in each sweep, so the two agree to a few digits on the way and to all in the end; this one is a
    thousand times slower, for looking on.

    Parameters
    ----------
    network : Network
    evidence
        One pattern; a pair in a mapping is soft evidence, as in :func:`sbnet.infer`.
    do
        Units held by intervention, as in :func:`sbnet.infer`.
    tol : float
        Stop after a sweep that raises the bound by less than this, in nats.
    max_sweeps : int
        Stop after that many sweeps.
    start
        Starting means, one for every unit.

    Returns
    -------
    iterator of Step

    Examples
    --------
    >>> import sbnet as sb
    >>> net = sb.from_edges({("rain", "wet"): 2.0, ("sprinkler", "wet"): 1.5}, bias={"rain": -1.0})
    >>> for step in sb.steps(net, {"wet": 1}, max_sweeps=1):
    ...     print(step)
    start: bound -0.469177
    sweep 0: xi of wet is 0.8111, bound -0.387804 (+0.081)
    sweep 1: mean of rain is 0.3475, bound -0.338996 (+0.049)
    sweep 1: mean of sprinkler is 0.5875, bound -0.323426 (+0.016)
    sweep 1: xi of wet is 0.8071, bound -0.323413 (+1.3e-05)
    """
    question = ask_one(network, evidence, do)
    network.check_binary("steps()")
    noisy = np.flatnonzero(network.gate != SIGMOID)
    if len(noisy):
        raise NetworkError(
            f"unit {network.names[noisy[0]]!r} is a noisy-OR unit; steps() shows the paper's algorithm, which is for "
            "sigmoid units. infer(network, evidence).trace has the bound after each sweep"
        )
    question.check_possible()
    stop = Stop(checks.tolerance("tol", tol), checks.whole("max_sweeps", max_sweeps, 1))
    point = check_start(question.given, start)
    return _steps(question, _Ascent(question.parts[0], None if point is None else point[0]), stop)


def _steps(question: Question, ascent: _Ascent, stop: Stop) -> Iterator[Step]:
    yield ascent.step(question, 0, "start", None, 0.0)
    for sweep in range(stop.max_sweeps + 1):
        before = ascent.bound
        for j in ascent.hidden if sweep else ():
            gain = ascent.take(ascent.mu, j, ascent.best_mean(j))
            yield ascent.step(question, sweep, "mean", j, gain)
        for i in ascent.with_xi:
            gain = ascent.take(ascent.xi, i, ascent.best_xi(i))
            yield ascent.step(question, sweep, "xi", i, gain)
        if sweep and ascent.bound - before < stop.tol:
            return


class _Ascent:
    """Means, xi and bound of one pattern, after the exact reductions: evidence absorbed, barren units left out."""

    def __init__(self, part: Part, start: FloatArray | None) -> None:
        self.part, network = part, part.network
        row, graph = part.states[0], network.graph
        live = live_variables(network.model, row)
        self.live = np.flatnonzero(live).tolist()
        self.hidden = np.flatnonzero(live & (row == HIDDEN)).tolist()
        self.bias = absorb(network, part.states)[0]
        self.parents = {}
        for i in self.live:
            edges = np.arange(graph.indptr[i], graph.indptr[i + 1])
            edges = edges[row[graph.parent[edges]] == HIDDEN]
            self.parents[i] = dict(zip(graph.parent[edges].tolist(), network.weight[edges].tolist(), strict=True))
        with_term = [i for i in self.live if self.parents[i]]
        self.with_xi = [i for i in with_term if i < part.n_units]  # the xi of a report is best at one half, for good
        point = np.full(network.n_units, 0.5) if start is None else part.widened(start[None, :], 0.5)[0]
        self.mu = np.where(row == HIDDEN, np.clip(point, EDGE, 1.0 - EDGE), row.astype(np.float64))
        self.xi = np.full(network.n_units, np.nan)
        self.xi[with_term] = 0.5
        self.bound = self.value()

    def mean_input(self, i: int) -> float:
        """<z_i>."""
        return float(self.bias[i] + sum(weight * self.mu[j] for j, weight in self.parents[i].items()))

    def log_moment(self, i: int, t: float) -> float:
        """ln <e^(t z_i)>: eq. (30) at t = -xi, eq. (31) at t = 1 - xi."""
        factors = (_log_mix(float(self.mu[j]), t * weight) for j, weight in self.parents[i].items())
        return t * float(self.bias[i]) + sum(factors)

    def log_term(self, i: int, xi: float) -> float:
        """The bound on <ln(1 + e^z_i)>, eq. (20); the value itself, whatever xi, for a unit whose input is known."""
        moments = self.log_moment(i, -xi), self.log_moment(i, 1.0 - xi)
        return xi * self.mean_input(i) + float(np.logaddexp(*moments))

    def xi_of(self, i: int) -> float:
        return float(self.xi[i]) if self.parents[i] else 0.5

    def value(self) -> float:
        """The bound, eq. (22)."""
        units = (self.mu[i] * self.mean_input(i) - self.log_term(i, self.xi_of(i)) for i in self.live)
        return float(sum(units) + entropy_of(self.mu[self.hidden]).sum())

    def best_mean(self, j: int) -> float:
        """Eq. (24)."""
        field = self.mean_input(j)
        for i in self.live:
            if j in self.parents[i]:
                field += self.parents[i][j] * (self.mu[i] - self.xi_of(i)) + self.pull(i, j)
        return float(np.clip(sigma(field), EDGE, 1.0 - EDGE))

    def pull(self, i: int, j: int) -> float:
        """K_ij, eq. (33), with phi_i of eq. (32)."""
        xi, weight, mu = self.xi_of(i), self.parents[i][j], float(self.mu[j])
        phi = float(sigma(self.log_moment(i, 1.0 - xi) - self.log_moment(i, -xi)))
        return (1.0 - phi) * _share(mu, -xi * weight) + phi * _share(mu, (1.0 - xi) * weight)

    def best_xi(self, i: int) -> float:
        """Where eq. (20) is smallest: it is convex in xi, so golden sections find it."""
        low, high, golden = 0.0, 1.0, (math.sqrt(5.0) - 1.0) / 2.0
        for _ in range(60):
            one, other = high - golden * (high - low), low + golden * (high - low)
            if self.log_term(i, one) < self.log_term(i, other):
                high = other
            else:
                low = one
        return (low + high) / 2.0

    def take(self, values: FloatArray, k: int, new: float) -> float:
        """Take a new value, unless rounding would let the bound fall; returns what is gained."""
        old, before = float(values[k]), self.bound
        values[k] = new
        after = self.value()
        if after < before:
            values[k], after = old, before
        self.bound = after
        return after - before

    def step(self, question: Question, sweep: int, what: What, k: int | None, gain: float) -> Step:
        """What a user sees of it."""
        network, part = question.network, self.part
        found = np.full((1, part.network.n_units), np.nan)
        found[:, self.live] = self.mu[self.live]
        predict_rows(part.network.model, part.states, self.bias[None, :], found)  # those that were left out
        means, xi = part.shown(found), part.shown(self.xi[None, :], np.nan)
        unit = None if k is None else network.names[k]
        bound = self.bound + float(part.constant[0])
        return Step(network, sweep, what, unit, means[0].copy(), xi[0].copy(), bound, gain)


def _log_mix(mu: float, t: float) -> float:
    """ln(1 - mu + mu e^t), with the larger of the two terms in front."""
    if t <= 0.0:
        return math.log1p(mu * math.expm1(t))
    return t + math.log1p((1.0 - mu) * math.expm1(-t))


def _share(mu: float, t: float) -> float:
    """(1 - e^t) / (1 - mu + mu e^t), without overflow."""
    if t <= 0.0:
        return -math.expm1(t) / (1.0 + mu * math.expm1(t))
    return math.expm1(-t) / (1.0 + (1.0 - mu) * math.expm1(-t))
