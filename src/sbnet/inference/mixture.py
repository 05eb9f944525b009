"""Mixture mean field: several factorial components instead of one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np
from scipy.special import logit

from sbnet import checks
from sbnet._types import Bound, FloatArray, Problem, States, Stop
from sbnet.bounds import margins
from sbnet.errors import ParameterError
from sbnet.inference.meanfield import MeanField
from sbnet.inference.solution import Solution, Status
from sbnet.inference.solvers import Solver, check_solver
from sbnet.kernels.mixture import predict_components, solve_components
from sbnet.kernels.reduce import reduce
from sbnet.network import Network
from sbnet.reduction import absorb

_TRIALS = 8  # units, those nearest to one half, that a new gate may follow at first
_STEEP = (4.0, 1000.0)  # the weight of that unit: a leaning, or an order, which leads to other modes
_SHORT, _LONG = 3, 100  # rounds of a trial, and of the best one
_FASTER = 1.5
_ENOUGH = 100.0  # times `tol`: rounds that gain less are not worth two solutions


class MeanFieldLike(Solver, Protocol):
    """A solver by mean field theory, which says what its kernels are told."""

    @property
    def bound(self) -> Bound:
        """Which bound it climbs."""

    @property
    def stop(self) -> Stop:
        """When it stops."""


@dataclass(frozen=True)
class Mixture:
    r"""Mean field theory with a mixture of factorial distributions, :math:`Q = \sum_m a_m Q_m`.

    .. math:: \ln P(V) \ge \sum_m a_m L(Q_m) + I(m; H)

    where :math:`L(Q_m)` is the bound of one component, and the mutual information I between the component and the
    hidden units is what a mixture gains over the average of its components (Jaakkola & Jordan 1998). Components are
    found by splitting: the first is the answer of `solver`; then the component whose division in two raises the bound
    most is divided, until there are enough. So the bound is never below that of `solver`, nor below that with fewer
    components. There is no trace.

    Which component a state of the hidden units belongs to is told, at each division, by a sigmoid unit with all hidden
    units as parents. Its logarithm term stands for the mutual information, which is therefore rigorous at any number of
    hidden units, and with two components and the logarithm term ``"exact"`` the whole of it; nothing is enumerated.

    Parameters
    ----------
    components : int
        Number of components.
    solver : MeanField
        How each component is found; or any solver that has its `bound` and `stop`.

    Notes
    -----
    A division tries the eight hidden units nearest to one half in two ways, and takes some ten more rounds for the
    best of them: m components cost a few hundred times m of one.

    Examples
    --------
    >>> import sbnet as sb
    >>> net = sb.layered((2, 4, 6), rng=0, scale=2.0)
    >>> bounds = [sb.infer(net, [0] * 6, solver=sb.Mixture(m)).bound for m in (1, 2, 5)]
    >>> print(", ".join(f"{b:.4f}" for b in bounds), f"<= {sb.log_likelihood(net, [0] * 6):.4f}")
    -6.6400, -6.5593, -6.5394 <= -6.5381
    """

    components: int = 2
    solver: MeanFieldLike = field(default_factory=MeanField)

    def __post_init__(self) -> None:
        checks.whole("components", self.components, 1)
        check_solver(self.solver)
        if not (hasattr(self.solver, "bound") and hasattr(self.solver, "stop")):
            raise ParameterError(
                f"solver is {self.solver!r}; components are found by mean field theory: give a solver that says which "
                "bound it climbs and when it stops, such as sbnet.MeanField()"
            )

    def solve(self, network: Network, states: States, *, start: FloatArray | None, trace: bool) -> Solution:
        """Solve every row with one component first, and divide that."""
        solution = self.solver.solve(network, states, start=start, trace=False).draft()
        bias = absorb(network, states)
        for r, row in enumerate(states):
            problem = reduce(network.model, row)
            if len(problem.hidden) == 0 or self.components == 1:
                continue
            parts, most, settled = self.divide(network, problem, row, bias[r], solution.bound[r], solution.means[r])
            if len(parts) == 1:
                continue
            value = np.array([part.bound for part in parts])
            share = np.exp(value - value.max())
            each = np.empty((len(parts), network.n_units))
            predict_components(network.model, problem, row, bias[r], np.array([part.mu for part in parts]), each)
            solution.bound[r] = max(solution.bound[r], margins.log_sum_below(value))
            solution.means[r] = np.clip(share @ each / share.sum(), 0.0, 1.0)
            solution.sweeps[r] = max(solution.sweeps[r], most)
            if not settled:
                solution.status[r] = Status.MAX_SWEEPS.code
        return solution

    def divide(
        self, network: Network, problem: Problem, row: States, bias: FloatArray, bound: float, means: FloatArray
    ) -> tuple[list[Component], int, bool]:
        """The components of one row, from the answer with one of them; sweeps, and whether all have settled."""
        scale = margins.scale(network).of(margins.involved(problem, row))
        pattern = _Pattern(problem, self.solver.bound, self.solver.stop, row, bias, scale)
        return _grow(pattern, Component(bound, means[problem.hidden], _no_gates(problem)), int(self.components))


class _Pattern(NamedTuple):
    """One row, as the kernels see it."""

    problem: Problem
    bound: Bound
    stop: Stop
    states: States
    bias: FloatArray
    scale: margins.Scale  # of the units involved


class _Gates(NamedTuple):
    """The gates above a component: weights (gates by hidden units), biases, and where they stand."""

    weight: FloatArray
    bias: FloatArray
    side: States


class Component(NamedTuple):
    """The bound with the gates observed, and the means."""

    bound: float
    mu: FloatArray
    gates: _Gates


class _Division(NamedTuple):
    """Two components in place of one: the bound of both together, and what it took."""

    bound: float
    parts: tuple[Component, Component]
    sweeps: int
    settled: bool


def _no_gates(problem: Problem) -> _Gates:
    return _Gates(np.empty((0, len(problem.hidden))), np.empty(0), np.empty(0, np.int8))


def _grow(pattern: _Pattern, first: Component, components: int) -> tuple[list[Component], int, bool]:
    """Divide until there are so many components, each time the one whose division gains most."""
    parts, divisions = [first], [_divide(pattern, first)]
    sweeps, settled = divisions[0].sweeps, divisions[0].settled
    while len(parts) < components:
        top = max(max(part.bound for part in parts), max(division.bound for division in divisions))
        gains = [np.exp(d.bound - top) - np.exp(p.bound - top) for p, d in zip(parts, divisions, strict=True)]
        k = int(np.argmax(gains))
        if not gains[k] > pattern.stop.tol * sum(np.exp(p.bound - top) for p in parts):
            break  # a gain of less than `tol` nats
        parts[k : k + 1] = divisions[k].parts
        if len(parts) < components:
            divisions[k : k + 1] = [_divide(pattern, part) for part in parts[k : k + 2]]
            sweeps = max(sweeps, *(d.sweeps for d in divisions))
            settled &= all(d.settled for d in divisions)
    return parts, sweeps, settled


def _divide(pattern: _Pattern, whole: Component) -> _Division:
    """Two components for one: first with gates that follow one unit, then with the best gate."""
    n = len(whole.mu)
    units = np.argsort(np.abs(whole.mu - 0.5), kind="stable")[:_TRIALS]
    units, steep = np.tile(units, 2), np.repeat(_STEEP, len(units))
    weight, bias = np.zeros((len(units), n)), -0.5 * steep
    weight[np.arange(len(units)), units] = steep
    mu = np.tile(whole.mu, (len(units), 2, 1))
    climb = _Climb(pattern, whole.gates)
    total, trials = climb(mu, weight, bias, _SHORT)
    k = slice(int(total.argmax()), int(total.argmax()) + 1)
    # A trial that gains nothing is not worth a hundred rounds.
    rounds = _LONG if total.max() > whole.bound + pattern.stop.tol else 1
    total, (bound, mu, weight, bias) = climb(trials[1][k], trials[2][k], trials[3][k], rounds)
    old = whole.gates
    parts = (
        Component(
            float(bound[0, side]),
            mu[0, side],
            _Gates(np.vstack([old.weight, weight]), np.append(old.bias, bias), np.append(old.side, np.int8(side))),
        )
        for side in (0, 1)
    )
    return _Division(float(total[0]), tuple(parts), climb.sweeps, climb.settled)  # type: ignore[arg-type]


class _Climb:
    """Divisions of one component, improved side by side: the two solutions and the gate between them in turn."""

    def __init__(self, pattern: _Pattern, gates: _Gates) -> None:
        self.pattern, self.gates = pattern, gates
        self.sweeps, self.settled = 0, True

    def __call__(
        self, mu: FloatArray, weight: FloatArray, bias: FloatArray, rounds: int
    ) -> tuple[FloatArray, tuple[FloatArray, FloatArray, FloatArray, FloatArray]]:
        bound, mu = self._solve(mu, weight, bias)
        total, speed = np.logaddexp(bound[:, 0], bound[:, 1]), np.ones(len(mu))
        for _ in range(rounds - 1):
            # The posterior of the component given the hidden units, for components with weights e^bound: no gate is
            # better. Going further in that direction is quicker, and taken back if the bound falls.
            move = logit(mu[:, 1]) - logit(mu[:, 0]) - weight
            shift = bound[:, 1] - bound[:, 0] + np.log1p(-mu[:, 1]).sum(1) - np.log1p(-mu[:, 0]).sum(1) - bias
            new_weight, new_bias = weight + speed[:, None] * move, bias + speed * shift
            new_bound, new_mu = self._solve(mu, new_weight, new_bias)
            rise = np.logaddexp(new_bound[:, 0], new_bound[:, 1]) - total
            up = rise >= 0.0
            done = np.all((rise < _ENOUGH * self.pattern.stop.tol) & (up | (speed == 1.0)))
            speed = np.where(up, _FASTER * speed, 1.0)
            weight, mu = np.where(up[:, None], new_weight, weight), np.where(up[:, None, None], new_mu, mu)
            bias, bound = np.where(up, new_bias, bias), np.where(up[:, None], new_bound, bound)
            total = np.logaddexp(bound[:, 0], bound[:, 1])
            if done:
                break
        return total, (bound, mu, weight, bias)

    def _solve(self, mu: FloatArray, weight: FloatArray, bias: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Bounds and means of both sides of each gate."""
        old, n, h = self.gates, 2 * len(mu), mu.shape[2]
        d = len(old.bias)
        weights, biases, side = np.empty((n, d + 1, h)), np.empty((n, d + 1)), np.empty((n, d + 1), np.int8)
        weights[:, :d], biases[:, :d], side[:, :d] = old.weight, old.bias, old.side
        weights[:, d], biases[:, d], side[:, d] = np.repeat(weight, 2, axis=0), np.repeat(bias, 2), np.arange(n) % 2
        means, bound = mu.reshape(n, h).copy(), np.empty(n)
        sweeps, settled = np.empty(n, np.int64), np.empty(n, np.int64)
        p = self.pattern
        given = (weights, biases, side, means, bound, sweeps, settled)
        solve_components(p.problem, p.bound, p.stop, p.states, p.bias, *given)
        bound -= margins.of_components(p.scale, p.bound, weights, biases)
        self.sweeps, self.settled = max(self.sweeps, int(sweeps.max())), self.settled and bool(settled.all())
        return bound.reshape(-1, 2), means.reshape(-1, 2, h)
