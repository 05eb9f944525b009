"""What a user's script knows of the answers before it runs; `test_typing.py` has mypy read it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, assert_type

import numpy as np
from numpy.typing import NDArray

import sbnet as sb
from sbnet.inference import Model  # what kernels read of a network

Floats = NDArray[np.float64]

net = sb.from_edges({("rain", "wet"): 2.0, ("sprinkler", "wet"): 1.5}, bias={"rain": -1.0})

post = sb.infer(net, {"wet": 1})
assert_type(post, sb.results.Posterior)
assert_type(post.bound, float)
assert_type(post["rain"], Any)  # a float, or a mapping from more than two states
assert_type(post.means, Floats)
assert_type(post.xi, Floats)
assert_type(post.trace, Floats)
assert_type(post.error, Floats | None)
assert_type(post.status, sb.results.Status)
assert_type(post.converged, bool)
assert_type(post.sweeps, int)

many = sb.infer_many(net, [[0, 1, 1], [1, 1, 1], [0, 0, 1]], solver=sb.MeanField(log_term="xi"))
assert_type(many, sb.results.PosteriorBatch)
assert_type(many.bound, Floats)
assert_type(many["rain"], Any)
assert_type(many[0], sb.results.Posterior)
assert_type(many[np.int64(0)], sb.results.Posterior)
assert_type(many[1:3], sb.results.PosteriorBatch)
assert_type(many[[0, 2]], sb.results.PosteriorBatch)
assert_type(many[many.converged], sb.results.PosteriorBatch)
assert_type(many[np.argsort(many.bound)], sb.results.PosteriorBatch)
assert_type([row.bound for row in many], list[float])
assert_type(many.status, list[sb.results.Status])

result = sb.fit(net, np.array([[0, 1, 1], [1, 1, 1]]), epochs=1, rng=0)
assert_type(result, sb.results.FitResult)
assert_type(result.network, sb.Network)
assert_type(result.bounds, Floats)
assert_type(result.held_out, Floats | None)

estimate = sb.estimate(net, {"wet": 1}, method="annealed")
assert_type(estimate, sb.results.Estimate)
assert_type(estimate.log_probability, float)
estimates = sb.estimate(net, [{"wet": 1}, {}])
assert_type(estimates, sb.results.Estimates)
assert_type(estimates.error, Floats)
assert_type(estimates[0], sb.results.Estimate)


@dataclass(frozen=True)
class Doubled:
    """A solver of one's own: the better of two, and learning through the first."""

    first: sb.solvers.DifferentiableSolver
    second: sb.solvers.Solver

    def solve(
        self, network: sb.Network, states: NDArray[np.int8], *, start: Floats | None, trace: bool
    ) -> sb.solvers.Solution:
        one = self.first.solve(network, states, start=start, trace=trace)
        two = self.second.solve(network, states, start=start, trace=trace)
        return replace(one, bound=np.maximum(one.bound, two.bound), parameters=None)

    def maximise(
        self,
        model: Model,
        bias: Floats,
        states: NDArray[np.int8],
        start: Floats | None,
        *,
        row_weight: Floats | None = None,
        trace: bool = False,
    ) -> tuple[sb.solvers.Solution, sb.solvers.BoundGradient | None]:
        return self.first.maximise(model, bias, states, start, row_weight=row_weight, trace=trace)


mine = Doubled(sb.MeanField(log_term="quadratic"), sb.MeanField(log_term="xi"))
assert_type(sb.infer(net, {"wet": 1}, solver=mine), sb.results.Posterior)
assert_type(sb.fit(net, [[0, 1, 1]], epochs=1, solver=mine).network, sb.Network)
gradient = sb.gradient(net, {"wet": 1}, solver=mine)
assert_type(gradient.weight, Floats)
