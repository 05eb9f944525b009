"""The mean field solver."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from sbnet import checks
from sbnet._types import Bound, FloatArray, IndexArray, LogTerm, Model, RngLike, States, Stop
from sbnet.bounds import margins
from sbnet.bounds.lower import check_log_term
from sbnet.bounds.rows import Answers, solve_rows
from sbnet.inference.solution import Gather, Solution, Status, Xi, codes
from sbnet.inference.solvers.protocol import BoundGradient
from sbnet.inference.solvers.tabular import solve_tables
from sbnet.kernels.gradient import Gradients
from sbnet.model.network import Network
from sbnet.questions.reduction import absorb_rows
from sbnet.questions.support import impossible, remote, without_zeros


@dataclass(frozen=True)
class MeanField:
    """Mean field theory (variational inference): factorial posteriors and a lower bound (the ELBO), eqs. (15)-(24).

    Rounding is covered: a margin in proportion to weights and biases, :mod:`sbnet.bounds.margins`, is taken off.

    Parameters
    ----------
    log_term : {"exact", "xi", "quadratic", "jensen"}
        How the mean of ln(1 + e^z) is bounded, from tight to loose:

        - ``"exact"``: its exact value, at any number of parents, plus a proven error of about 1e-7 (variables whose
          inputs spread over several hundred nats keep the tighter of the next two);
        - ``"xi"``: the paper's bound, eq. (20), with the best xi for each variable; several times faster (but variables
          with few hidden parents are enumerated whatever stands here, see `enumerate_up_to`);
        - ``"quadratic"``: a parabola above ln(1 + e^z);
        - ``"jensen"``: the standard bound, xi = 0.

        A noisy-OR variable that is on has ``"exact"`` and ``"xi"`` alike from a sum of exponentials. Otherwise it has
        the cheap linear bound of Jaakkola & Jordan (1999), in which every parent has a share. The shares are raised
        step by step as long as that helps, which may end short of the best ones: the bound holds all the same, but
        `breakdown()`, which seeks the shares anew, may tell of a slightly different one. In a network with tables all
        means are sums over the joint states of parents, unless these are more than 2**18: then ``"xi"`` stands for any
        term of a sigmoid variable.
    tol : float
        Stop when a sweep raises the bound by less than this, in nats.
    max_sweeps : int
        Stop after that many sweeps; the bound is valid all the same.
    restarts : int
        Number of starting points; the best answer of each row is kept. The first start has all means at one half.
    enumerate_up_to : int
        A variable with at most that many hidden parents gets its exact term by a sum over their states, which is
        tighter. In a small network that may be every variable, whatever `log_term` says; the answer tells how many
        (:attr:`Posterior.enumerated`), and prints it. Zero gives the bound of `log_term` to the letter.
    rng : int or numpy.random.Generator
        Seed of the random starting points.

    Examples
    --------
    >>> import sbnet as sb
    >>> net = sb.from_edges({("rain", "wet"): 2.0, ("sprinkler", "wet"): 1.5}, bias={"rain": -1.0})
    >>> paper = sb.MeanField(log_term="xi", enumerate_up_to=0)
    >>> print(f"{sb.infer(net, {'wet': 1}, solver=paper).bound:.4f}")
    -0.3233
    >>> sb.infer(net, {"wet": 1}, solver=sb.MeanField(log_term="xi")).enumerated  # of one variable with hidden parents
    1
    """

    log_term: LogTerm = "exact"
    tol: float = 1e-6
    max_sweeps: int = 500
    restarts: int = 1
    enumerate_up_to: int = 4
    rng: RngLike = 0
    knows_states: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_log_term(self.log_term, self.enumerate_up_to)
        checks.tolerance("tol", self.tol)
        checks.whole("max_sweeps", self.max_sweeps, 1)
        checks.whole("restarts", self.restarts, 1)

    @property
    def bound(self) -> Bound:
        """Which bound is maximised."""
        return check_log_term(self.log_term, self.enumerate_up_to)

    @property
    def stop(self) -> Stop:
        """When coordinate ascent ends."""
        return Stop(float(self.tol), int(self.max_sweeps))

    @cached_property
    def _seed(self) -> int:
        return int(checks.generator(self.rng).integers(2**63))

    def solve(self, network: Network, states: States, *, start: FloatArray | None, trace: bool) -> Solution:
        """Solve every row from each starting point, and keep the best; see :meth:`sbnet.solvers.Solver.solve`."""
        points = [start, *(self._point(network, k, len(states)) for k in range(1, self.restarts))]
        if network.tables:
            return solve_tables(network, self.bound, self.stop, states, points, trace)
        best, _ = self.maximise(network.model, network.bias, states, start, trace=trace)
        for point in points[1:]:
            new, _ = self.maximise(network.model, network.bias, states, point, trace=trace)
            best = best.where(new.bound > best.bound, new)
        margin = margins.of_mean_field(network, self.bound, states)
        best.bound[:] -= margin
        if best.trace is not None:
            best.trace[:] -= margin[:, None]
        far = np.flatnonzero(remote(network, best.bound))
        return best if not len(far) else self._with_zeros(network, states, best, far, points, trace)

    def _with_zeros(
        self, network: Network, states: States, best: Solution, far: IndexArray,
        points: list[FloatArray | None], trace: bool,
    ) -> Solution:  # fmt: skip
        """Answers in which zeros count as zeros, where those of the kernels may owe something to what cannot be."""
        gone = impossible(network, states[far])
        best.bound[far[gone]], far = -np.inf, far[~gone]
        held = np.array([without_zeros(network, states[r], best.means[r], best.bound[r]) for r in far])
        lost = far[~(held >= best.bound[far] - self.tol)]
        best.bound[far] = held
        if not len(lost):
            return best
        again = [None if point is None else point[lost] for point in points]
        found, whole = (
            solve_tables(network, self.bound, self.stop, states[lost], again, trace),
            Gather(*best.means.shape),
        )
        better = found.bound >= best.bound[lost]
        whole.put(slice(None), best)
        whole.put(lost[better], found.rows(better))
        return whole.solution()

    def _point(self, network: Network, k: int, n: int) -> FloatArray:
        """A starting point that all rows share, so that a row's answer does not depend on its neighbours."""
        point = np.random.default_rng([self._seed, k]).random(len(network.bias))
        point /= network.n_states[network.columns[0]] - 1  # those of a variable sum to less than one
        return np.repeat(point[None, :], n, axis=0)

    def maximise(
        self,
        model: Model,
        bias: FloatArray,
        states: States,
        start: FloatArray | None,
        *,
        row_weight: FloatArray | None = None,
        trace: bool = False,
    ) -> tuple[Solution, BoundGradient | None]:
        """Solve every row from one starting point; see :class:`DifferentiableSolver`. By default means
        start at one half.

        These bounds are for learning, which compares them: no margin for rounding is taken off.
        """
        n, stop, which = len(states), self.stop, self.bound
        share = 1.0 / np.repeat(model.n_states, model.n_states - 1)
        means = np.tile(share, (n, 1)) if start is None else np.array(start, dtype=np.float64)
        path = np.full((n, stop.max_sweeps + 1 if trace else 0), np.nan)
        answers = Answers(
            np.empty(n), means, np.full((n, len(bias)), np.nan), np.empty(n, np.int64), np.empty(n, np.bool_), path,
            np.empty((n, 0)),
        )  # fmt: skip
        gradient = gradients = None
        if row_weight is not None:
            gradient = BoundGradient(np.zeros(len(model.weight)), np.zeros(len(bias)))
            gradients = Gradients(np.asarray(row_weight, dtype=np.float64), *gradient)
        absorbed = absorb_rows(model, bias, states)
        solve_rows(model, which, stop, states, absorbed, start is not None, answers, gradients)
        status = codes(answers.converged, Status.CONVERGED, Status.MAX_SWEEPS)
        parameters = Xi(which, answers.xi)
        solution = Solution(answers.bound, means, status, answers.sweeps, parameters, trace=path if trace else None)
        return solution, gradient
