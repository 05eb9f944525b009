"""Conditioning: some units are enumerated, and only the rest is treated by mean field theory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from sbnet import checks
from sbnet._types import HIDDEN, FloatArray, IndexArray, States
from sbnet.bounds.margins import log_sum_below
from sbnet.errors import ParameterError, TooManyHiddenError
from sbnet.inference.solution import Solution
from sbnet.inference.solvers.mean_field import MeanField
from sbnet.inference.solvers.protocol import Solver, check_solver
from sbnet.model.network import Network
from sbnet.questions.reduction import live_variables

LIMIT = 16
"""Units that will be enumerated in a row: 65,536 problems."""
_BATCH = 4_000_000  # numbers in an array of one batch of trials
_TRIALS, _LEAST = 256, 2  # problems that may be solved to choose a unit after the first; units that are tried at least


@dataclass(frozen=True)
class Conditioned:
    r"""Enumerate the states t of a few hidden variables T, and solve the rest for each state.

    .. math:: \ln P(V) = \ln \sum_t P(t, V) \ge \ln \sum_t e^{L_t}, \qquad Q(t) = e^{L_t} \Big/ \sum_{t'} e^{L_{t'}}

    where :math:`L_t` is the bound of `solver` with t added to the evidence. The means are those of the mixture. The
    variables of T are enumerated one after the other, and the problems that one of them splits in two start from the
    means found before. So the bound is never below that of `solver` alone, nor below that for a shorter list of
    variables that this one begins with, or for fewer variables chosen by number. A variable of T that is observed in a
    row, or has no observed descendant there, needs no enumeration and is passed over. There is no trace.

    Parameters
    ----------
    on : "roots", int, or sequence of variables
        Which variables to enumerate: the variables without parents (the top layer); those that are listed, by name or
        number; or a number of variables, chosen in each row by measured gain: hidden variables are tried beside those
        already chosen, and the one that raises the bound most is taken. All are tried for the first place; for later
        ones, when that would take more than 256 problems, those that gained most when last tried.
    solver : Solver
        What solves each problem; :class:`MeanField` by default, or anything else that has a bound.

    Notes
    -----
    k enumerated variables cost 2 + 4 + ... + 2^k problems, with good starting points. Choosing them among n hidden
    variables costs 2 n problems for the first and at most 256, or twice its own cost, for each of the others: with k =
    8 and n = 40, some two thousand problems, four times as many as for a list.

    Examples
    --------
    >>> import sbnet as sb
    >>> net = sb.layered((2, 4, 6), rng=0, scale=2.0)
    >>> bounds = [sb.infer(net, [0] * 6, solver=s).bound for s in (sb.MeanField(), sb.Conditioned(on="roots"))]
    >>> print(f"{bounds[0]:.4f}, {bounds[1]:.4f} <= {sb.log_likelihood(net, [0] * 6):.4f}")
    -6.6400, -6.5414 <= -6.5381
    """

    on: int | Literal["roots"] | Sequence[str | int] = "roots"
    solver: Solver = field(default_factory=MeanField)

    def __post_init__(self) -> None:
        if isinstance(self.on, str) and self.on != "roots":
            raise ParameterError(f"on is {self.on!r}; it must be 'roots', or variables, a number or a list of them")
        if isinstance(self.on, int | np.integer):
            checks.whole("on", self.on, 0, LIMIT)
        elif not isinstance(self.on, str):
            object.__setattr__(self, "on", tuple(checks.units("on", self.on)))
        check_solver(self.solver)

    def solve(self, network: Network, states: States, *, start: FloatArray | None, trace: bool) -> Solution:
        """Solve every row without conditioning first, and go on from there; see :meth:`sbnet.solvers.Solver.solve`."""
        solution = self.solver.solve(network, states, start=start, trace=False).draft()
        if np.isnan(solution.bound).any():
            raise ParameterError(f"{type(self.solver).__name__} has no bound to condition; use a solver that has one")
        for r, row in enumerate(states):
            for _, part in self.problems(network, row, solution.means[r].copy()):
                share = np.exp(part.bound - part.bound.max())
                bound = log_sum_below(part.bound)
                if not part.converged.all():
                    solution.status[r] = part.status[~part.converged][0]
                solution.sweeps[r] = max(solution.sweeps[r], part.sweeps.max())
                if bound > solution.bound[r]:  # only rounding, or a solver whose bound may fall, can bring it below
                    solution.bound[r] = bound
                    solution.means[r] = np.clip(share @ part.means / share.sum(), 0.0, 1.0)
        solution.means[states != HIDDEN] = states[states != HIDDEN]
        return solution

    def problems(self, network: Network, row: States, means: FloatArray) -> Iterator[tuple[States, Solution]]:
        """The evidence and the solution of each problem, after the first variable, after the second, and so on."""
        useful = np.flatnonzero(live_variables(network.model, row) & (row == HIDDEN))
        if isinstance(self.on, int | np.integer):
            return self._chosen(network, row, means, int(self.on), useful)
        if isinstance(self.on, str):
            listed = np.flatnonzero(np.diff(network.graph.indptr) == 0)
        else:  # each once, in the order given
            listed = np.array(list(dict.fromkeys(network.index(unit) for unit in self.on)), dtype=np.int64)
        return self._given(network, row, means, listed[np.isin(listed, useful)])

    def _given(
        self, network: Network, row: States, means: FloatArray, units: IndexArray
    ) -> Iterator[tuple[States, Solution]]:
        if len(units) > LIMIT:
            raise TooManyHiddenError(
                f"conditioning on {len(units)} hidden variables needs 2**{len(units)} problems; the limit is {LIMIT}. "
                "List fewer variables, or give their number to have them chosen"
            )
        states, points = row[None, :], means[None, :]
        for unit in units:
            states, part = self._split(network, states, points, unit[None])
            points = part.means
            yield states, part

    def _chosen(
        self, network: Network, row: States, means: FloatArray, number: int, useful: IndexArray
    ) -> Iterator[tuple[States, Solution]]:
        """Each unit is chosen by trial, of those that gained most when last tried if there are too many for all."""
        states, points = row[None, :], means[None, :]
        for step in range(min(number, len(useful))):
            problems = 2 * len(states)
            tried = useful[: max(_LEAST, _TRIALS // problems)] if step else useful
            gain, best = np.empty(len(tried)), None
            size = max(1, _BATCH // (problems * network.n_units))
            for first in range(0, len(tried), size):
                units = tried[first : first + size]
                trial, part = self._split(network, states, points, units)
                found = np.logaddexp.reduce(part.bound.reshape(len(units), problems), axis=1)
                k = int(found.argmax())
                if best is None or found[k] > gain[:first].max():
                    mine = slice(k * problems, (k + 1) * problems)
                    best = trial[mine], part.rows(mine)
                gain[first : first + len(units)] = found
            assert best is not None
            states, part = best
            points = part.means
            order = np.argsort(-gain, kind="stable")  # the first is the one that was chosen
            useful = np.concatenate([tried[order[1:]], useful[len(tried) :]])
            yield states, part

    def _split(
        self, network: Network, states: States, points: FloatArray, units: IndexArray
    ) -> tuple[States, Solution]:
        """Each problem with each of the units at 0 and at 1, unit by unit, solved from the means found before."""
        halves = np.repeat(np.tile(states, (len(units), 1)), 2, axis=0)
        halves[np.arange(len(halves)), np.repeat(units, 2 * len(states))] = np.arange(len(halves)) % 2
        begin = np.repeat(np.tile(points, (len(units), 1)), 2, axis=0)
        return halves, self.solver.solve(network, halves, start=begin, trace=False)
