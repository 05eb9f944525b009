"""The mean field solver."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sbnet import checks
from sbnet._types import FloatArray, RngLike, Settings, States
from sbnet.bounds.lower import check_log_term
from sbnet.inference.solvers import Solution
from sbnet.kernels._compile import announce
from sbnet.kernels.rows import solve_rows
from sbnet.network import Network
from sbnet.reduction import absorb


@dataclass(frozen=True)
class MeanField:
    """Mean field theory: factorial posteriors and a rigorous lower bound on ln P(evidence), eqs. (15)-(24).

    Parameters
    ----------
    log_term : {"exact", "xi", "quadratic", "jensen"}
        How the mean of ln(1 + e^z) is bounded, from tight to loose:

        - ``"exact"``: its exact value, at any number of parents, plus a proven error of about 1e-7 (units whose
          inputs spread over several hundred nats keep the tighter of the next two);
        - ``"xi"``: the paper's bound, eq. (20), with the best xi for each unit; several times faster;
        - ``"quadratic"``: a parabola above ln(1 + e^z);
        - ``"jensen"``: the standard bound, xi = 0.
    tol : float
        Stop when a sweep raises the bound by less than this, in nats.
    max_sweeps : int
        Stop after that many sweeps; the bound is valid all the same.
    restarts : int
        Number of starting points; the best answer of each row is kept. The first start has all means at one half.
    enumerate_up_to : int
        A unit with at most that many hidden parents gets its exact term by a sum over their states, which is tighter.
        Zero gives the bound of `log_term` to the letter.
    rng
        Seed of the random starting points.

    Examples
    --------
    >>> import sbnet as sb
    >>> net = sb.from_edges({("rain", "wet"): 2.0, ("sprinkler", "wet"): 1.5}, bias={"rain": -1.0})
    >>> paper = sb.MeanField(log_term="xi", enumerate_up_to=0)
    >>> print(f"{sb.infer(net, {'wet': 1}, solver=paper).bound:.4f}")
    -0.3233
    """

    log_term: str = "exact"
    tol: float = 1e-6
    max_sweeps: int = 500
    restarts: int = 1
    enumerate_up_to: int = 4
    rng: RngLike = 0

    def __post_init__(self) -> None:
        check_log_term(self.log_term, self.enumerate_up_to)
        checks.tolerance("tol", self.tol)
        checks.whole("max_sweeps", self.max_sweeps, 1)
        checks.whole("restarts", self.restarts, 1)

    @property
    def settings(self) -> Settings:
        """What the kernels are told."""
        code, enumerated = check_log_term(self.log_term, self.enumerate_up_to)
        return Settings(code, enumerated, float(self.tol), int(self.max_sweeps))

    @cached_property
    def _seed(self) -> int:
        return int(np.random.default_rng(self.rng).integers(2**63))

    def solve(self, network: Network, states: States, *, start: FloatArray | None, trace: bool) -> Solution:
        """Solve every row from each starting point, and keep the best."""
        best = self._solve_from(network, states, np.full(states.shape, np.nan) if start is None else start, trace)
        for k in range(1, self.restarts):
            # The same starting point for every row, so that a row's answer does not depend on its neighbours.
            point = np.random.default_rng([self._seed, k]).random(network.n_units)
            new = self._solve_from(network, states, np.repeat(point[None, :], len(states), axis=0), trace)
            better = new.bound > best.bound
            for old, fresh in zip(best[:6], new[:6], strict=True):
                old[better] = fresh[better]
        return best

    def _solve_from(self, network: Network, states: States, start: FloatArray, trace: bool) -> Solution:
        return self.climb(network, states, start, trace=trace)[0]

    def climb(
        self,
        network: Network,
        states: States,
        start: FloatArray,
        *,
        trace: bool = False,
        row_weight: FloatArray | None = None,
    ) -> tuple[Solution, FloatArray, FloatArray]:
        """Solve every row from one starting point, NaN for one half.

        With `row_weight`, also return the gradients of the weighted sum of the bounds, in weights and in biases.
        """
        n, settings = len(states), self.settings
        means, xi = np.array(start, dtype=np.float64), np.full(states.shape, np.nan)
        bound, sweeps, settled = np.empty(n), np.empty(n, np.int64), np.empty(n, np.int64)
        path = np.full((n, settings.max_sweeps + 1 if trace else 0), np.nan)
        wanted = row_weight is not None
        scale = np.asarray(row_weight, dtype=np.float64) if wanted else np.empty(0)
        grad_weight = np.zeros(network.n_edges if wanted else 0)
        grad_bias = np.zeros(network.n_units if wanted else 0)
        announce(solve_rows)
        solve_rows(
            network.model,
            settings,
            states,
            absorb(network, states),
            means,
            xi,
            bound,
            sweeps,
            settled,
            path,
            scale,
            grad_weight,
            grad_bias,
        )
        xi[np.isnan(xi)] = 0.5
        return Solution(bound, means, xi, sweeps, settled == 1, path), grad_weight, grad_bias
