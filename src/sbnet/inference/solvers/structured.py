"""Structured mean field: trees of hidden units keep their couplings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from sbnet import checks, kernels
from sbnet._types import HIDDEN, FloatArray, IndexArray, States
from sbnet.bounds import margins
from sbnet.errors import ParameterError
from sbnet.inference.solution import Solution, Status
from sbnet.inference.solvers.forests import Links, Planted, couplings, plant, spanning
from sbnet.inference.solvers.mean_field import MeanField
from sbnet.inference.solvers.mixture import MeanFieldLike, check_mean_field, lengthened
from sbnet.inference.solvers.products import Expansion, expand, lay_out
from sbnet.kernels.structs import Problem
from sbnet.model.network import Network
from sbnet.questions.prediction import predict_rows
from sbnet.questions.reduction import absorb, reduce
from sbnet.questions.support import remote

if TYPE_CHECKING:
    from sbnet.kernels.structured import Products

_WEAK = 0.01
"""Nats: couplings below this are not worth a link, unless a group asks for them."""
_MOST = 4_000_000
"""Messages, half a gigabyte: where more would be needed, the weaker half of the links is left out."""


@dataclass(frozen=True)
class Structured:
    r"""Mean field theory with trees of hidden variables: exact within a tree, factorial between trees.

    .. math:: Q(H) = \prod_k Q(S_k \mid S_{q(k)})

    where :math:`q(k)` is one other hidden variable, or none (Saul & Jordan 1995). Chains of hidden variables, as in a
    network that is repeated step by step, keep their couplings at a cost that grows with their length, not
    exponentially: for one hidden Markov chain the bound is ln P itself. Coordinate ascent begins at the answer of
    `solver`, and no sweep lowers the bound, so it is never below that of `solver`; the trace goes on from there.

    The means of ln(1 + e^z) are exact whatever the `log_term` of `solver`, as sums of products over the tree: over
    states where a variable has few hidden parents (`enumerate_up_to`), over frequencies otherwise, with a proven error
    of about 4e-7. (Variables whose inputs may reach beyond 600 nats lose a little more.) A margin for rounding is taken
    off.

    Parameters
    ----------
    groups : "auto", or sequence of groups of variables
        Which hidden variables stay together: lists of variables, by name or number. Within a group the tree is the one
        with the strongest couplings; a group whose variables are not coupled falls apart, and variables in no group
        stand alone. The strength of a coupling is how far the effect of two variables on ln P departs from the sum of
        their effects, all others at their means: the size of J for a parent and its child. ``"auto"`` takes all hidden
        variables for one group, but leaves out couplings below 0.01 nats. Variables that are observed in a row are
        passed over.
    solver : MeanField
        Where coordinate ascent begins, and when it stops; or any solver that has its `bound` and `stop`.

    Notes
    -----
    A sweep costs, for each variable with hidden parents, the size of the smallest subtree that has them all, times the
    number of states or frequencies. Where that would take more than half a gigabyte, the weakest links are left out.

    Examples
    --------
    A hidden chain that is seen through noise:

    >>> import sbnet as sb
    >>> edges = {(f"h{t}", f"h{t + 1}"): 4.0 for t in range(9)} | {(f"h{t}", f"x{t}"): 2.0 for t in range(10)}
    >>> bias = {f"h{t}": -2.0 for t in range(10)} | {f"x{t}": -1.0 for t in range(10)}
    >>> net, seen = sb.from_edges(edges, bias=bias), {f"x{t}": t % 3 % 2 for t in range(10)}
    >>> bounds = [sb.infer(net, seen, solver=s).bound for s in (sb.MeanField(), sb.Structured())]
    >>> print(f"{bounds[0]:.4f}, {bounds[1]:.4f} <= {sb.log_likelihood(net, seen):.4f}")
    -7.1563, -6.8573 <= -6.8573
    """

    groups: Literal["auto"] | Sequence[Sequence[str | int]] = "auto"
    solver: MeanFieldLike = field(default_factory=MeanField)

    def __post_init__(self) -> None:
        if not isinstance(self.groups, str):
            object.__setattr__(self, "groups", _check_groups(self.groups))
        elif self.groups != "auto":
            raise ParameterError(f"groups is {self.groups!r}; it must be 'auto' or a list of groups of variables")
        check_mean_field(self.solver, "coordinate ascent begins")

    def solve(self, network: Network, states: States, *, start: FloatArray | None, trace: bool) -> Solution:
        """Solve every row without structure first, and go on from there; see :meth:`sbnet.solvers.Solver.solve`."""
        more = np.flatnonzero(network.n_states != 2)
        if len(more):
            known, n = f"Structured() knows variables with two states; {network.names[more[0]]!r}", network.n_states
            raise ParameterError(f"{known} has {n[more[0]]}. Use MeanField() instead")
        first = self.solver.solve(network, states, start=start, trace=trace)
        label = None if isinstance(self.groups, str) else self._labels(network)
        solution, bias = first.draft(), absorb(network, states)
        paths: list[list[float]] = [[] for _ in states]
        far = remote(network, first.bound)  # where kernels cannot tell what is impossible
        for r, row in enumerate(states):
            problem = reduce(network.model, row)
            if len(problem.hidden) == 0 or far[r]:
                continue
            hidden = problem.hidden["variable"]
            path, means, settled = self._maximised(network, problem, row, bias[r], first.means[r, hidden], label)
            if not path[-1] > solution.bound[r]:
                continue
            solution.bound[r], paths[r] = path[-1], path
            solution.means[r] = np.where(row == HIDDEN, np.nan, row)
            solution.means[r, hidden] = means
            solution.sweeps[r] = max(solution.sweeps[r], len(path) - 1)
            solution.status[r] = (Status.CONVERGED if settled else Status.MAX_SWEEPS).code
        predict_rows(network.model, states, bias, solution.means)
        return replace(solution, trace=None if first.trace is None else lengthened(first.trace, paths, solution.bound))

    def _labels(self, network: Network) -> IndexArray:
        """The group of each unit of the network, or -1."""
        label = np.full(network.n_units, -1)
        for g, group in enumerate(self.groups):
            for unit in group:
                i = network.index(unit)
                if label[i] not in (-1, g):
                    raise ParameterError(
                        f"groups has {network.names[i]!r} twice; a variable is in one group at most: leave it in the "
                        "one where its couplings are strongest"
                    )
                label[i] = g
        return label

    def _maximised(
        self, network: Network, problem: Problem, row: States, bias: FloatArray, mu: FloatArray,
        label: IndexArray | None,
    ) -> tuple[list[float], FloatArray, bool]:  # fmt: skip
        """For one row, from factorial means, the bounds on the way, the means, and whether it is done."""
        n, stop = len(mu), self.solver.stop
        whole = expand(network.model, problem, row, bias, self.solver.bound.enumerate_up_to)
        links = couplings(problem, row, bias, mu)
        if label is None:
            links = links.some(links.strength >= _WEAK)
        else:
            one, other = (label[problem.hidden["variable"][end]] for end in (links.one, links.other))
            links = links.some((one == other) & (one >= 0) & (links.strength > 0.0))
        planted, products = _planted(spanning(links, n), whole, n)
        units, trace, kernel = planted.forest.units, np.empty(stop.max_sweeps + 1), kernels.structured
        units["theta"], units["field"] = mu[:, None], whole.field
        sweeps, settled = kernel.maximise(
            planted.forest, products, kernel.messages(products), whole.constant, stop.tol, trace
        )
        scale = margins.scale(network).of(margins.involved(problem, row))
        path = np.maximum.accumulate(trace[: sweeps + 1]) - _margin(scale, whole, planted, products)
        return path.tolist(), np.clip(units["p"][:, 1], 0.0, 1.0), settled


def _check_groups(groups: object) -> tuple[tuple[str | int, ...], ...]:
    found = checks.listed("groups", groups, "it must be 'auto' or a list of groups of variables")
    for group in found:
        if isinstance(group, str) or checks.is_whole(group):
            raise ParameterError(
                f"groups has {group!r}, one variable; give lists of variables, such as [[{group!r}, ...], ...]"
            )
    return tuple(tuple(checks.units("a group", group)) for group in found)


def _planted(links: Links, whole: Expansion, n: int) -> tuple[Planted, Products]:
    """The forest with as many of the links as there is room for, the strongest, and the factors under it."""
    while True:
        planted = plant(links, n)
        products = lay_out(whole.factors, *planted)
        if len(links.strength) == 0 or products.entries["terms"].sum() <= _MOST:
            return planted, products
        links = links.some(np.arange(len(links.strength) // 2))


def _margin(scale: margins.Scale, whole: Expansion, planted: Planted, products: Products) -> float:
    """How far the bound, as computed, may be above the bound itself.

    A product goes through a dozen roundings for each entry (two sums of products of complex numbers) and through four
    for each level of the tree above its pieces; coefficients and constants are in proportion to the inputs of units.
    """
    n_factors, size = len(whole.factors), float(scale.size.sum())
    terms, pieces = (products.factors[f"{part}_end"] - products.factors[part] for part in ("term", "piece"))
    entries = np.bincount(products.entries["factor"], minlength=n_factors)
    weight = np.array([np.abs(factor.coefficient).sum() for factor in whole.factors])
    levels, adds = 4 * (int(planted.depth.max(initial=0)) + 1), n_factors + 2 * len(planted.depth) + 40
    products_off = float(weight @ (12 * entries + levels * pieces + terms + 20))
    sums_off = adds * (float(weight.sum()) + whole.size + size)
    return margins.UNIT * (products_off + sums_off + float((3 * scale.parents + levels + 40) @ scale.size))
