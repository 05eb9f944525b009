"""The paper's algorithm one step at a time, in slow and plain Python: to be looked at, not to be fast.

The bound is that of eq. (22), with the entropy of eq. (16), over the thresholds l of all variables:

    L = sum_l <a_l> <x_l> - <c_l> [xi_l <x_l> + ln <e^(-xi_l x_l) + e^((1 - xi_l) x_l)>] + entropy(Q)

where a_l = [state >= l] and c_l = [state >= l - 1]: with two states, a is the variable itself, and c is 1. The paper's
two steps alternate: (i) one xi after the other for fixed Q, (ii) the distribution of one hidden variable after the
other by eq. (24) for fixed xi. None of these updates lowers L (footnote 4).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import scipy
from numpy.typing import ArrayLike

from sbnet import checks
from sbnet._types import HIDDEN, FloatArray, Stop
from sbnet.errors import NetworkError, short
from sbnet.inference.solution import check_start, equal_shares
from sbnet.kernels.codes import SIGMOID, TABLE
from sbnet.kernels.mean_field import EDGE
from sbnet.model.gates import sigma, softplus
from sbnet.model.network import Network
from sbnet.questions.by_state import by_state, probabilities
from sbnet.questions.evidence import EvidenceLike, observed_means
from sbnet.questions.prediction import predict_rows
from sbnet.questions.printing import states_told
from sbnet.questions.question import Part, Question, ask_one
from sbnet.questions.reduction import absorb, live_variables

What: TypeAlias = Literal["start", "mean", "xi"]


@dataclass(frozen=True, eq=False, repr=False)
class Step:
    """Where the algorithm stands after one update.

    ``step["rain"]`` is the mean of a variable; of a variable with more states, a mapping from state to probability.

    Attributes
    ----------
    network : Network
    sweep : int
        How often the means have been gone through, this time included.
    what : {"start", "mean", "xi"}
        What was updated.
    unit : str or None
        The variable whose mean or xi it was; none at the start.
    state : str or None
        Of a variable with more than two states, the state whose threshold the xi belongs to.
    means : ndarray of shape (n_units,)
        The means of all variables: 0 or 1 where observed, their prediction where there is no observed descendant. With
        more states, a column for each state from the second one on, as in :func:`sbnet.infer`.
    xi : ndarray of shape (n_units,)
        The parameters of the logarithm terms; NaN for variables whose input is known or that have no term. With more
        states, one for each threshold.
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
    state: str | None
    means: FloatArray
    xi: FloatArray
    bound: float
    gain: float

    def __getitem__(self, unit: str | int) -> Any:
        own = self.network.columns_of(unit)
        return by_state(self.network.states[self.network.names[self.network.index(unit)]], self.means[own])

    def __repr__(self) -> str:
        if self.unit is None:
            return f"start: bound {self.bound:.6f}"
        states, own = self.network.states[self.unit], self.network.columns_of(self.unit)
        if self.what == "xi":
            now = f"{self.xi[own][0 if self.state is None else states.index(self.state) - 1]:.4f}"
        else:
            now = states_told(states, probabilities(self.means[own]))
        of = "distribution" if self.what == "mean" and len(states) > 2 else self.what
        at = "" if self.state is None else f" at {short(self.state)}"
        now = f"{of} of {short(self.unit)}{at} is {now}"
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
    every :math:`\xi` is given its best value, (ii) every mean is updated by eq. (24). The bound never falls. Variables
    with more states have a :math:`\xi` for each threshold, and their distribution in place of the mean. A sweep is
    (ii) and the (i) that follows, sweep 0 the first (i) alone, so that the last record of sweep ``s`` stands beside
    ``post.trace[s]`` of ``MeanField(log_term="xi", enumerate_up_to=0)``. That solver moves :math:`\xi` by one step of
    Newton's method in each sweep, so the two agree to a few digits on the way and to all in the end; this one is a
    thousand times slower, for looking on.

    Parameters
    ----------
    network : Network
    evidence : mapping or sequence
        One pattern; a pair in a mapping is soft evidence, as in :func:`sbnet.infer`.
    do : mapping or sequence, optional
        Variables held by intervention, as in :func:`sbnet.infer`.
    tol : float
        Stop after a sweep that raises the bound by less than this, in nats.
    max_sweeps : int
        Stop after that many sweeps.
    start : array_like, optional
        Starting means, one for every variable.

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
    others = np.flatnonzero(network.gate != SIGMOID)
    if len(others):
        kind = "has a table" if network.gate[others[0]] == TABLE else "is a noisy-OR variable"
        raise NetworkError(
            f"variable {network.names[others[0]]!r} {kind}; steps() shows the paper's algorithm, which is for sigmoid "
            "variables. infer(network, evidence).trace has the bound after each sweep"
        )
    question.check_possible()
    stop = Stop(checks.tolerance("tol", tol), checks.whole("max_sweeps", max_sweeps, 1))
    point = check_start(network, observed_means(network, question.given), start)
    return _steps(question, _Ascent(question.parts[0], None if point is None else point[0]), stop)


def _steps(question: Question, ascent: _Ascent, stop: Stop) -> Iterator[Step]:
    yield ascent.step(question, 0, "start", None, 0.0)
    for sweep in range(stop.max_sweeps + 1):
        before = ascent.bound
        for j in ascent.hidden if sweep else ():
            gain = ascent.take(ascent.q, j, ascent.best_distribution(j))
            yield ascent.step(question, sweep, "mean", j, gain)
        for k in ascent.with_xi:
            gain = ascent.take(ascent.xi, k, ascent.best_xi(k))
            yield ascent.step(question, sweep, "xi", k, gain)
        if sweep and ascent.bound - before < stop.tol:
            return


class _Ascent:
    """Q, xi and bound of one pattern, after the exact reductions: evidence absorbed, barren variables left out."""

    def __init__(self, part: Part, start: FloatArray | None) -> None:
        self.part, network = part, part.network
        row, model = part.states[0], network.model
        live = live_variables(model, row)
        self.live = np.flatnonzero(live[: part.n_units]).tolist()
        self.hidden = np.flatnonzero(live & (row == HIDDEN)).tolist()
        self.bias = absorb(network, part.states)[0]
        point = equal_shares(network) if start is None else part.widened(start[None, :], 0.5)[0]
        self.q = {v: _inside(probabilities(point[network.columns_of(v)])) for v in self.hidden}
        self.q |= {v: np.eye(model.n_states[v])[row[v]] for v in np.flatnonzero(row != HIDDEN).tolist()}
        self.of = {k: v for k, v in enumerate(network.columns[0].tolist()) if v in self.live}  # whose thresholds are
        self.parents = {k: self.weights(k) for k in (*self.of, *range(part.n_columns, len(self.bias)))}
        self.with_xi = [k for k in self.of if self.parents[k]]
        self.xi = np.full(len(self.bias), np.nan)
        self.xi[self.with_xi] = 0.5
        self.known, self.reports = 0.0, {v: np.zeros(model.n_states[v]) for v in self.hidden}
        for k in range(part.n_columns, len(self.bias)):  # a report, seen on: its mean logarithm is a plain sum
            self.known += 0.0 if self.parents[k] else -float(softplus(-self.bias[k]))
            for v, weights in self.parents[k].items():
                self.reports[v] -= softplus(-self.bias[k] - weights)
        self.bound = self.value()

    def weights(self, k: int) -> dict[int, FloatArray]:
        """The hidden parents of the variable of a threshold, and the weights of their states, that of the first 0."""
        network = self.part.network
        v, level = (int(array[k]) for array in network.columns)
        family = network.family(v)
        pairs = zip(map(network.index, family.parents), family.weights, strict=True)
        return {u: np.append(0.0, block[level - 1]) for u, block in pairs if u in self.hidden}

    def loads(self, k: int) -> tuple[float, float]:
        """<a_l> = Q(v >= l) and <c_l> = Q(v >= l - 1) of a threshold: the mean and 1, if there are two states."""
        q, level = self.q[self.of[k]], int(self.part.network.columns[1][k])
        return float(q[level:].sum()), float(q[level - 1 :].sum())

    def mean_input(self, k: int) -> float:
        """<x_l>."""
        return float(self.bias[k] + sum(weights @ self.q[u] for u, weights in self.parents[k].items()))

    def log_moment(self, k: int, t: float) -> float:
        """ln <e^(t x_l)>: eq. (30) at t = -xi, eq. (31) at t = 1 - xi."""
        factors = (_log_mix(self.q[u], t * weights) for u, weights in self.parents[k].items())
        return t * float(self.bias[k]) + sum(factors)

    def log_term(self, k: int, xi: float) -> float:
        """The bound on <ln(1 + e^x_l)>, eq. (20); the value itself, whatever xi, where the input is known."""
        moments = self.log_moment(k, -xi), self.log_moment(k, 1.0 - xi)
        return xi * self.mean_input(k) + float(np.logaddexp(*moments))

    def own_term(self, k: int) -> float:
        return self.log_term(k, float(self.xi[k]) if self.parents[k] else 0.5)

    def value(self) -> float:
        """The bound, eq. (22)."""
        total = self.known
        for k in self.of:
            a, c = self.loads(k)
            total += a * self.mean_input(k) - c * self.own_term(k)
        return total + sum(float(self.q[v] @ (self.reports[v] - np.log(self.q[v]))) for v in self.hidden)

    def best_distribution(self, v: int) -> FloatArray:
        """Eq. (24): Q_v(s) in proportion to e^field."""
        field = self.reports[v].copy()
        for k, owner in self.of.items():
            if owner == v:
                level = int(self.part.network.columns[1][k])
                field[level:] += self.mean_input(k)
                field[level - 1 :] -= self.own_term(k)
            elif v in self.parents[k]:
                (a, c), weights = self.loads(k), self.parents[k][v]
                field += a * weights - c * (self.xi[k] * weights + self.pull(k, v))
        return _inside(np.exp(field - field.max()))

    def pull(self, k: int, v: int) -> FloatArray:
        """The derivative of ln <e^(-xi x) + e^((1 - xi) x)> in Q_v(s): K_ij of eq. (33), with phi of eq. (32)."""
        xi, weights, q = self.xi[k], self.parents[k][v], self.q[v]
        phi = float(sigma(self.log_moment(k, 1.0 - xi) - self.log_moment(k, -xi)))
        a, b = -xi * weights, (1.0 - xi) * weights
        slope: FloatArray = (1.0 - phi) * np.exp(a - _log_mix(q, a)) + phi * np.exp(b - _log_mix(q, b))
        return slope

    def best_xi(self, k: int) -> float:
        """Where eq. (20) is smallest: it is convex in xi."""
        exactly = {"xatol": 1e-12, "maxiter": 100}
        return float(scipy.optimize.minimize_scalar(lambda xi: self.log_term(k, xi), bounds=(0, 1), options=exactly).x)

    def take(self, values: Any, k: int, new: Any) -> float:
        """Take a new value, unless rounding would let the bound fall; returns what is gained."""
        old, before = values[k], self.bound
        values[k] = new
        after = self.value()
        if after < before:
            values[k], after = old, before
        self.bound = after
        return after - before

    def step(self, question: Question, sweep: int, what: What, k: int | None, gain: float) -> Step:
        """What a user sees of it: of a variable whose distribution has moved, or of a threshold with a new xi."""
        network, part = question.network, self.part
        found = observed_means(part.network, part.states)
        for v in self.hidden:
            found[0, part.network.columns_of(v)] = self.q[v][1:]
        predict_rows(part.network.model, part.states, self.bias[None, :], found)  # those that were left out
        means, xi = part.shown(found), part.shown(self.xi[None, :], np.nan)
        unit = state = None
        if k is not None:
            v = self.of[k] if what == "xi" else k
            unit = network.names[v]
            if what == "xi" and network.n_states[v] > 2:
                state = network.states[unit][int(network.columns[1][k])]
        bound = self.bound + float(part.constant[0])
        return Step(network, sweep, what, unit, state, means[0].copy(), xi[0].copy(), bound, gain)


def _inside(share: FloatArray) -> FloatArray:
    """Shares as a distribution that is nowhere zero."""
    share = np.maximum(share / share.sum(), EDGE)
    inside: FloatArray = share / share.sum()
    return inside


def _log_mix(q: FloatArray, t: FloatArray) -> float:
    """ln of sum_s Q(s) e^t(s), with the largest of the terms in front."""
    top = t.max()
    return float(top + np.log(q @ np.exp(t - top)))
