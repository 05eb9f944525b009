"""Mixture mean field: several factorial components instead of one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Protocol

import numpy as np

from sbnet import checks
from sbnet._types import HIDDEN, BoolArray, Bound, FloatArray, IndexArray, Model, States, Stop
from sbnet.bounds import margins
from sbnet.bounds.rows import Answers, solve_rows
from sbnet.errors import ParameterError
from sbnet.inference.solution import Solution, Status
from sbnet.inference.solvers.mean_field import MeanField
from sbnet.inference.solvers.protocol import Solver, check_solver
from sbnet.kernels.kinds import EXACT, XI
from sbnet.model.network import Network
from sbnet.questions.prediction import predict_rows
from sbnet.questions.reduction import Part, absorb, uncoupled, whole, with_gates
from sbnet.questions.support import remote

_TRIALS = 3
"""Units, those nearest to one half, that a new gate may follow at first."""
_STEEP = (4.0, 1000.0)
"""The weight of that unit: a leaning, or an order, which leads to other modes."""
_FEW, _SHORT, _LONG = 3, 2, 100
"""Sweeps of a trial between two moves of its gate; how often gates move in trials, and in the one that is chosen."""
_FASTER = 1.5
_MOST = 500.0  # nats that a division may promise: e to this power is still a number
_ENOUGH = 1000.0
"""Times `tol`: rounds that gain less are not worth two solutions."""


class MeanFieldLike(Solver, Protocol):
    """A solver by mean field theory, which says what its kernels are told."""

    @property
    def bound(self) -> Bound:
        """Which bound it maximises."""

    @property
    def stop(self) -> Stop:
        """When it stops."""


def check_mean_field(solver: object, why: str) -> None:
    """Can it answer rows, and say what its kernels are told?"""
    check_solver(solver)
    if not (hasattr(solver, "bound") and hasattr(solver, "stop")):
        raise ParameterError(
            f"solver is {solver!r}; {why} by mean field theory: give a solver that says which bound it maximises and "
            "when it stops, such as sbnet.MeanField()"
        )


@dataclass(frozen=True)
class Mixture:
    r"""Mean field theory with a mixture of factorial distributions, :math:`Q = \sum_m a_m Q_m`.

    .. math:: \ln P(V) \ge \sum_m a_m L(Q_m) + I(m; H)

    where :math:`L(Q_m)` is the bound of one component, and the mutual information I between the component and the
    hidden units is what a mixture gains over the average of its components (Jaakkola & Jordan 1998). Components are
    found by splitting: the first is the answer of `solver`; then the component whose division in two promises most is
    divided, until there are enough. So the bound is never below that of `solver`, nor below that with fewer
    components; the trace goes on from that of `solver`, and rises with every division. Hidden variables that the
    evidence leaves uncoupled have mixtures of their own.

    Which component a state of the hidden variables belongs to is told, at each division, by a sigmoid variable with all
    hidden variables as parents. Its logarithm term stands for the mutual information, which is therefore rigorous at
    any number of hidden variables, and with two components and the logarithm term ``"exact"`` the whole of it; nothing
    is enumerated.

    Parameters
    ----------
    components : int
        Number of components.
    solver : MeanField
        How each component is found; or any solver that has its `bound` and `stop`.

    Notes
    -----
    A division tries the three hidden variables nearest to one half in two ways, for a few sweeps of the paper's term,
    and takes the best two further: a component costs some ten times what one solution does.

    Examples
    --------
    >>> import sbnet as sb
    >>> net = sb.layered((2, 4, 6), rng=0, scale=2.0)
    >>> bounds = [sb.infer(net, [0] * 6, solver=sb.Mixture(m)).bound for m in (1, 2, 5)]
    >>> print(", ".join(f"{b:.4f}" for b in bounds), f"<= {sb.log_likelihood(net, [0] * 6):.4f}")
    -6.6400, -6.5593, -6.5403 <= -6.5381
    """

    components: int = 2
    solver: MeanFieldLike = field(default_factory=MeanField)

    def __post_init__(self) -> None:
        checks.whole("components", self.components, 1)
        check_mean_field(self.solver, "components are found")

    def solve(self, network: Network, states: States, *, start: FloatArray | None, trace: bool) -> Solution:
        """Solve every row with one component first, and divide that; see :meth:`sbnet.solvers.Solver.solve`."""
        first = self.solver.solve(network, states, start=start, trace=trace)
        solution, bias = first.draft(), absorb(network, states)
        paths: list[list[float]] = [[] for _ in states]
        far = remote(network, first.bound)  # where kernels cannot tell what is impossible
        for r, row in enumerate(states):
            if not self.components > 1 or not (row == HIDDEN).any() or far[r]:
                continue
            parts = uncoupled(network.model, row)
            mixed = [self._grown(network, part, row, bias[r], solution.means[r]) for part in parts if part.hidden.any()]
            if not mixed:
                continue
            bound = margins.sum_below(np.array([one.bound for one in mixed]))
            if not bound > solution.bound[r]:
                continue
            solution.bound[r] = bound
            solution.means[r] = _means(network, mixed, row, bias[r])
            solution.sweeps[r] = max(solution.sweeps[r], *(one.sweeps for one in mixed))
            rises = [rise for one in mixed for rise in np.diff(one.path)]  # one part is divided after the other
            paths[r] = (sum(one.path[0] for one in mixed) + np.cumsum(rises)).tolist()
            if not all(one.settled for one in mixed):
                solution.status[r] = Status.MAX_SWEEPS.code
        path = None if first.trace is None else lengthened(first.trace, paths, solution.bound)
        return replace(solution, trace=path)

    def _grown(self, network: Network, part: Part, row: States, bias: FloatArray, means: FloatArray) -> Grown:
        """The mixture of one part of a row, from the means of a single component."""
        pattern = self._pattern(network, part, row, bias)
        none = _no_gates(pattern)
        found = _Ascent(pattern, none).alone(means[pattern.place])
        return _grow(pattern, Component(float(found[0][0]), found[1][0], none), int(self.components))

    def divide(
        self, network: Network, row: States, bias: FloatArray, bound: float, means: FloatArray
    ) -> list[Component]:
        """The components of one row, from the answer with one of them."""
        pattern = self._pattern(network, whole(network.model, row), row, bias)
        first = Component(bound, means[pattern.place], _no_gates(pattern))
        return _grow(pattern, first, int(self.components)).parts

    def _pattern(self, network: Network, part: Part, row: States, bias: FloatArray) -> _Pattern:
        of, model = np.repeat(np.arange(len(row)), network.model.n_states - 1), part.model
        scale = margins.scale(network).of(part.variables)
        inside, hidden = np.flatnonzero(part.variables[of]), part.hidden[part.variables]
        place = np.flatnonzero(part.hidden[of])
        return _Pattern(
            model, self.solver.bound, self.solver.stop, row[part.variables], bias[inside], hidden, place, scale
        )


class _Pattern(NamedTuple):
    """One row, or a part of it that has nothing to do with the rest, as a model of its own."""

    model: Model
    bound: Bound
    stop: Stop
    states: States
    bias: FloatArray
    hidden: BoolArray  # which variables of the model take part and are not observed
    place: IndexArray  # where their columns stand in the network
    scale: margins.Scale  # of the variables involved

    @property
    def first(self) -> IndexArray:
        """The first column of each hidden variable, among all of those."""
        width = self.model.n_states[self.hidden] - 1
        first: IndexArray = np.cumsum(width) - width
        return first

    def log_odds(self, mu: FloatArray) -> tuple[FloatArray, FloatArray]:
        """ln Q(s) - ln Q(0) of all columns, and the sum over variables of ln Q(0)."""
        first = self.first
        off = np.log1p(-np.add.reduceat(mu, first, axis=-1))
        width = np.diff(np.append(first, mu.shape[-1]))
        return np.log(mu) - np.repeat(off, width, axis=-1), off.sum(axis=-1)

    def rough(self) -> _Pattern:
        """The solver with the paper's term in place of the exact one, and a few sweeps at a time."""
        term = XI if self.bound.log_term == EXACT else self.bound.log_term
        few = self.stop._replace(max_sweeps=min(_FEW, self.stop.max_sweeps))
        return self._replace(bound=self.bound._replace(log_term=term), stop=few)


class _Gates(NamedTuple):
    """The gates above a component: weights (gates by hidden columns), biases, and where they stand."""

    weight: FloatArray
    bias: FloatArray
    side: States


class Component(NamedTuple):
    """The bound with the gates observed, and the means."""

    bound: float
    mu: FloatArray
    gates: _Gates


class Grown(NamedTuple):
    """A mixture: its components, the bounds on the way to it, and what it took."""

    place: IndexArray
    parts: list[Component]
    path: list[float]
    sweeps: int
    settled: bool

    @property
    def bound(self) -> float:
        """The bound of all components together."""
        return _together(self.parts)

    @property
    def share(self) -> FloatArray:
        """The weights of the components."""
        value = np.array([part.bound for part in self.parts])
        weight = np.exp(value - value.max())
        share: FloatArray = weight / weight.sum()
        return share


def _together(parts: Sequence[Component]) -> float:
    return margins.log_sum_below(np.array([part.bound for part in parts]))


def _no_gates(pattern: _Pattern) -> _Gates:
    return _Gates(np.empty((0, len(pattern.place))), np.empty(0), np.empty(0, np.int8))


# --- division ---------------------------------------------------------------------------------------------------------


class _Pairs(NamedTuple):
    """Divisions of one component, side by side: bounds and means of both halves, and the gate between them."""

    bound: FloatArray
    mu: FloatArray
    weight: FloatArray
    bias: FloatArray

    @property
    def total(self) -> FloatArray:
        """The bound of both halves together."""
        joint: FloatArray = np.logaddexp(self.bound[:, 0], self.bound[:, 1])
        return joint

    def best(self) -> _Pairs:
        """The best of them alone."""
        k = int(self.total.argmax())
        return _Pairs(*(array[k : k + 1] for array in self))

    @staticmethod
    def joined(pairs: Sequence[_Pairs]) -> _Pairs:
        """Several records as one."""
        return _Pairs(*(np.concatenate(arrays) for arrays in zip(*pairs, strict=True)))

    def where(self, up: BoolArray, others: _Pairs) -> _Pairs:
        """The others where they are better."""
        return _Pairs(
            *(np.where(up.reshape(-1, *[1] * (old.ndim - 1)), new, old) for old, new in zip(self, others, strict=True))
        )


def _grow(pattern: _Pattern, first: Component, components: int) -> Grown:
    """Divide until there are so many components, each time the one whose division promises most."""
    parts, trials = [first], [_try(pattern, first)]
    path, sweeps, settled = [first.bound], 0, True
    while len(parts) < components:
        top = max(part.bound for part in parts)
        worth = [np.exp(p.bound - top) * gain for p, (gain, _) in zip(parts, trials, strict=True)]
        k = int(np.argmax(worth))
        if not worth[k] > 0.0:
            break
        halves, most, done = _finish(pattern, parts[k], trials[k][1])
        new = [*parts[:k], *halves, *parts[k + 1 :]]
        if not _together(new) > path[-1] + pattern.stop.tol:
            trials[k] = 0.0, trials[k][1]  # nothing came of it; another may gain
            continue
        parts, sweeps, settled = new, max(sweeps, most), settled and done
        path.append(_together(parts))
        if len(parts) < components:
            trials[k : k + 1] = [_try(pattern, part) for part in halves]
    return Grown(pattern.place, parts, path, sweeps, settled)


def _try(pattern: _Pattern, whole: Component) -> tuple[float, _Pairs]:
    """Divisions by a gate that follows one unit, the best one of each steepness, as far as a few sweeps show: the gain
    to expect, and the halves to begin with.
    """
    units = np.argsort(np.abs(whole.mu - 0.5), kind="stable")[:_TRIALS]
    ascent = _Ascent(pattern.rough(), whole.gates)
    halves = _Pairs.joined([ascent.by_unit(whole.mu, units, steep).best() for steep in _STEEP])
    halves, before = ascent(halves, _SHORT), ascent.alone(whole.mu)[0][0]
    return float(np.expm1(min(halves.total.max() - before, _MOST))), halves


def _finish(pattern: _Pattern, whole: Component, halves: _Pairs) -> tuple[list[Component], int, bool]:
    """Two components for one; the most sweeps it took, and whether both have settled."""
    ascent, old = _Ascent(pattern, whole.gates), whole.gates
    halves = ascent(ascent.begin(halves.mu, halves.weight, halves.bias).best(), _LONG)
    gates = (
        _Gates(np.vstack([old.weight, halves.weight]), np.append(old.bias, halves.bias), np.append(old.side, side))
        for side in np.array([0, 1], np.int8)
    )
    parts = [Component(float(halves.bound[0, m]), halves.mu[0, m], gate) for m, gate in enumerate(gates)]
    return parts, ascent.sweeps, ascent.settled


class _Ascent:
    """Divisions of one component, improved side by side: the two solutions and the gate between them in turn."""

    def __init__(self, pattern: _Pattern, gates: _Gates) -> None:
        self.pattern, self.gates = pattern, gates
        self.sweeps, self.settled = 0, True

    def __call__(self, halves: _Pairs, rounds: int) -> _Pairs:
        speed = np.ones(len(halves.bias))
        for _ in range(rounds):
            # The posterior of the component given the hidden units, for components with weights e^bound: no gate is
            # better. Going further in that direction is quicker, and taken back if the bound falls.
            odds, off = self.pattern.log_odds(halves.mu)
            move = odds[:, 1] - odds[:, 0] - halves.weight
            shift = halves.bound[:, 1] - halves.bound[:, 0] + off[:, 1] - off[:, 0] - halves.bias
            new = self.begin(halves.mu, halves.weight + speed[:, None] * move, halves.bias + speed * shift)
            rise = new.total - halves.total
            up = rise >= 0.0
            done = np.all((rise < _ENOUGH * self.pattern.stop.tol) & (up | (speed == 1.0)))
            speed, halves = np.where(up, _FASTER * speed, 1.0), halves.where(up, new)
            if done:
                break
        return halves

    def by_unit(self, mu: FloatArray, units: IndexArray, steep: float) -> _Pairs:
        """Gates that follow one unit each."""
        weight = np.zeros((len(units), len(mu)))
        weight[np.arange(len(units)), units] = steep
        return self.begin(np.tile(mu, (len(units), 2, 1)), weight, np.full(len(units), -0.5 * steep))

    def begin(self, mu: FloatArray, weight: FloatArray, bias: FloatArray) -> _Pairs:
        """Both sides of each gate, solved."""
        n = 2 * len(mu)
        side = np.arange(n, dtype=np.int8)[:, None] % 2
        bound, means = self._solve(
            mu.reshape(n, -1), np.repeat(weight, 2, axis=0)[:, None, :], np.repeat(bias, 2)[:, None], side
        )
        return _Pairs(bound.reshape(-1, 2), means.reshape(mu.shape), weight, bias)

    def alone(self, mu: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The component itself, without another gate."""
        return self._solve(mu[None, :], np.empty((1, 0, len(mu))), np.empty((1, 0)), np.empty((1, 0), np.int8))

    def _solve(
        self, mu: FloatArray, weight: FloatArray, bias: FloatArray, side: States
    ) -> tuple[FloatArray, FloatArray]:
        """Bounds and means of components, each with the gates that all have and some of its own."""
        n, old, p = len(mu), self.gates, self.pattern
        pairs = ((old.weight, weight), (old.bias, bias), (old.side, side))
        gates = [np.concatenate([np.broadcast_to(common, (n, *common.shape)), own], axis=1) for common, own in pairs]
        width = len(p.bias) + gates[1].shape[1]
        answers = Answers(
            np.empty(n), np.full((n, width), 0.5), np.full((n, width), np.nan), np.empty(n, np.int64),
            np.empty(n, np.bool_), np.empty((n, 0)), np.empty((n, 0)),
        )  # fmt: skip
        inside = np.flatnonzero(np.repeat(p.hidden, p.model.n_states - 1))
        answers.means[:, inside] = mu
        for m, (weights, biases, sides) in enumerate(zip(*gates, strict=True)):
            here = Answers._make(array[m : m + 1] for array in answers)
            states, shifted = np.append(p.states, sides).astype(np.int8), np.append(p.bias, biases)
            model = with_gates(p.model, p.hidden, weights)
            solve_rows(model, p.bound, p.stop, states[None], shifted[None], True, here)
        bound = answers.bound - margins.of_components(p.scale, p.bound, gates[0], gates[1])
        self.sweeps, self.settled = max(self.sweeps, int(answers.sweeps.max())), bool(answers.converged.all())
        return bound, answers.means[:, inside]


# --- answers ----------------------------------------------------------------------------------------------------------


def _means(network: Network, mixtures: Sequence[Grown], row: States, bias: FloatArray) -> FloatArray:
    """The means of all units. Barren ones follow from each component of the part that they depend on."""
    means = np.where(row == HIDDEN, np.nan, row)[None, :]
    each = [np.array([part.mu for part in one.parts]) for one in mixtures]
    for one, mu in zip(mixtures, each, strict=True):
        means[0, one.place] = np.clip(one.share @ mu, 0.0, 1.0)
    known = means.copy()
    predict_rows(network.model, row[None, :], bias[None, :], means)
    for one, mu in zip(mixtures, each, strict=True):
        found = np.repeat(known, len(mu), axis=0)
        found[:, one.place] = mu
        predict_rows(network.model, np.tile(row, (len(mu), 1)), np.tile(bias, (len(mu), 1)), found)
        moved = np.flatnonzero((found != found[0]).any(axis=0))
        means[0, moved] = np.clip(one.share @ found[:, moved], 0.0, 1.0)
    answer: FloatArray = means[0]
    return answer


def lengthened(trace: FloatArray, paths: Sequence[Sequence[float]], bound: FloatArray) -> FloatArray:
    """Traces that go on, and end with the bound."""
    longer = np.full((len(trace), trace.shape[1] + max(map(len, paths), default=0)), np.nan)
    longer[:, : trace.shape[1]] = trace
    for r, path in enumerate(paths):
        if path:
            start = int(np.isfinite(trace[r]).sum())
            before = trace[r, start - 1]
            longer[r, start : start + len(path)] = np.clip([*path[:-1], bound[r]], before, bound[r])
    return longer
