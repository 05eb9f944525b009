r"""A rigorous upper bound on ln P(evidence), for any network and any evidence.

Write :math:`\mathrm{sp}(z) = \ln(1 + e^z)`. Evidence is absorbed and barren units are dropped, which is exact; then
hidden units are summed out one by one, children before parents.

*Summing out.* A hidden unit c is met in its own factor and in those of its children. Hölder's inequality with weights
:math:`\omega_c + \sum_f \tau_f = 1`, one for its own factor and one for each child f that has c in its table, parts them:

.. math:: \sum_{S_c} p_c \prod_f p_f \le \Big(\sum_{S_c} p_c^{1/\omega_c}\Big)^{\omega_c}
    \prod_f \Big(\sum_{S_c} p_f^{1/\tau_f}\Big)^{\tau_f}

Any factor :math:`e^{b S_c}` may move from one bracket to another beforehand, since :math:`e^{b S_c} e^{-b S_c} = 1`. What the
children send up is then :math:`e^{\eta_c S_c}` with :math:`\eta_c = \sum_f b_{fc}`, and the unit's own bracket is a
function of its input alone: :math:`G_c(z) = \omega_c\,\mathrm{sp}((z + \eta_c)/\omega_c) - \mathrm{sp}(z)`. For an
observed unit there is nothing to sum: :math:`G_c(z) = S_c z - \mathrm{sp}(z)`.

*The parents of a factor.* The states of a few (those in the table, by default all of up to eight) stay as they are.
The others move the input by :math:`t = \sum_j J_{cj} S_j`, somewhere in an interval; they are replaced by a line:
:math:`G_c(z + t) \le \lambda_c t + \max_{t'} [G_c(z + t') - \lambda_c t']`. The maximum over the interval has a closed form
(for a hidden unit, at :math:`\omega_c = 1`), and the line adds :math:`\lambda_c J_{cj}` to :math:`\eta_j`.
With no tables at all and wide intervals this is the linear bound :math:`\mathrm{sp}(z) \ge \xi z + H(\xi)`.

*Together.* When all units are summed out, in the same order in every bracket,

.. math:: \ln P(V) \le \sum_c \tau_c \ln \sum_{S} \exp \frac{\max_t [G_c(z_c(S) + t) - \lambda_c t] - b_c \cdot S}{\tau_c}

with S the states of the parents in the table of c; a root adds :math:`G_c(h_c)`. It holds for all b and λ and all weights,
so it needs no convergence. It is jointly convex in them (perspectives of convex functions, and maxima of those), and
limited-memory BFGS lowers it.

*Conditioning.* :math:`P(V) = \sum_s P(V, S_A = s)`, and each term is evidence again, with a bound of its own. A split that
does not lower the sum is not made. Groups of a few coupled hidden units are summed exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from sbnet._progress import run_blocks
from sbnet._types import HIDDEN, BoolArray, FloatArray, IndexArray, States
from sbnet.errors import ParameterError, unknown_unit
from sbnet.evidence import EvidenceLike, absorb, coerce
from sbnet.kernels._compile import announce
from sbnet.kernels.reduce import live_units
from sbnet.kernels.upper_rows import upper_rows
from sbnet.network import Network

__all__ = ["UpperBound", "upper_bound"]

MAX_CONDITIONED = 16
MAX_TABLE = 12
_CANDIDATES = 3
_BLOCK = 500_000
"""Numbers in an array of one block of rows: 4 MB."""


@dataclass(frozen=True, eq=False)
class UpperBound:
    """An upper bound on ln P(evidence), for one pattern or for each row of a table.

    Attributes
    ----------
    bound : float or ndarray of shape (n,)
        In nats; never above zero.
    exact : bool or ndarray of shape (n,)
        Is the bound ln P itself, because everything could be summed?
    cells : int or ndarray of shape (n,)
        Number of parts into which the states of the hidden units were split; one without conditioning.
    conditioned : tuple of str, or a list of them
        The units at which they were split.
    """

    bound: Any
    exact: Any
    cells: Any
    conditioned: Any

    def __repr__(self) -> str:
        if np.ndim(self.bound) == 0:
            relation = "=" if self.exact else "≤"
            return f"UpperBound: ln P {relation} {self.bound:.6g} nats, from {self.cells} cell{'s' * (self.cells != 1)}"
        n = len(self.bound)
        head = f"UpperBound: {n:,} row{'s' * (n != 1)}"
        if n == 0:
            return head
        spread = f"mean {self.bound.mean():.6g}, from {self.bound.min():.6g} to {self.bound.max():.6g} nats"
        return f"{head}\n  bound: {spread}\n  exact in {int(self.exact.sum()):,} of {n:,}"


class _Settings(NamedTuple):
    limits: tuple[int, int, int]
    tol: float


class _Cells(NamedTuple):
    """Extended evidence, its bounds, the parameters that gave them, and what a split at each unit promises."""

    states: States
    bound: FloatArray
    exact: BoolArray
    edge: FloatArray
    unit: FloatArray
    score: FloatArray


def upper_bound(
    network: Network,
    evidence: EvidenceLike,
    *,
    condition: int | str | Sequence[str | int] | None = None,
    exact_up_to: int = 12,
    table_up_to: int = 8,
    tol: float = 1e-5,
    max_steps: int = 200,
    threads: int | None = None,
    progress: bool | None = None,
) -> UpperBound:
    r"""A rigorous upper bound on the log-likelihood of the evidence, in nats.

    The hidden units are summed out one by one with Hölder's inequality; see the notes of :mod:`sbnet.upper`. With a lower
    bound from :func:`sbnet.infer`, it encloses ln P(evidence) where that cannot be computed.

    Parameters
    ----------
    network : Network
    evidence
        One pattern or a table of them; units left out, NaN or -1 are not observed.
    condition
        Units whose states are enumerated, each with a bound of its own: names, or a whole number k, for up to
        :math:`2^k` cells, split one after the other where that lowers the bound most. Never worse than without, and the
        work grows as :math:`2^k`. Names that a row observes are passed over.
    exact_up_to : int
        Groups of at most that many coupled hidden units are summed exactly.
    table_up_to : int
        The states of that many hidden parents of a unit, those with the largest weights, are enumerated; the others
        are bounded by a line, which is quicker and looser. Zero: lines only.
    tol : float
        Stop when three steps in a row lower a bound by less than this, in nats.
    max_steps : int
        Stop after that many steps; the bound is valid all the same.
    threads
        Number of threads; all cores by default.
    progress
        Show a progress bar; by default, if the work is long and standard error is a terminal.

    Returns
    -------
    UpperBound
        With numbers for a single pattern, with arrays for a table.

    Examples
    --------
    >>> import sbnet as sb
    >>> net = sb.layered((10, 20, 30), rng=0, scale=1.0)
    >>> upper = sb.upper_bound(net, [0] * 30, condition=2)
    >>> sb.infer(net, [0] * 30).bound < upper.bound
    True
    """
    states, single = coerce(network, evidence)
    settings = _check(exact_up_to, table_up_to, tol, max_steps)
    units, n_cells = _check_condition(network, condition)
    n = len(states)
    bound, exact, cells = np.empty(n), np.empty(n, np.bool_), np.ones(n, np.int64)
    conditioned: list[tuple[str, ...]] = [()] * n

    def work(rows: slice) -> int:
        whole = _solve(network, settings, states[rows])
        bound[rows], exact[rows] = whole.bound, whole.exact
        for k, r in enumerate(range(rows.start, rows.stop)):
            if n_cells > 1 and not whole.exact[k]:
                if units:
                    live = live_units(network.graph, states[r])
                    used = [i for i in units if live[i] and states[r, i] == HIDDEN]
                    answer = _split_all(network, settings, _pick(whole, [k]), used)
                    bound[r], exact[r], cells[r] = (part[0] for part in answer)
                else:
                    bound[r], exact[r], cells[r], used = _split_best(network, settings, _pick(whole, [k]), n_cells)
                conditioned[r] = tuple(network.names[i] for i in sorted(used))
        return int(rows.stop - rows.start)

    announce(upper_rows)
    width = network.n_edges + 3 * network.n_units
    run_blocks(work, n, max(1, min(256, _BLOCK // width)), threads, progress, "upper bounds")
    if single:
        return UpperBound(float(bound[0]), bool(exact[0]), int(cells[0]), conditioned[0])
    return UpperBound(bound, exact, cells, conditioned)


def _solve(network: Network, settings: _Settings, states: States, start: _Cells | None = None) -> _Cells:
    n = len(states)
    cells = _Cells(
        states,
        np.empty(n),
        np.empty(n, np.bool_),
        np.full((n, network.n_edges), np.nan) if start is None else start.edge,
        np.full((n, network.n_units, 2), np.nan) if start is None else start.unit,
        np.empty((n, network.n_units)),
    )
    upper_rows(
        network.graph,
        states,
        absorb(network, states),
        settings.limits,
        settings.tol,
        *cells[3:5],
        *cells[1:3],
        cells.score,
    )
    return cells


def _pick(cells: _Cells, rows: Sequence[int]) -> _Cells:
    return _Cells(*(part[rows] for part in cells))


def _children(network: Network, settings: _Settings, cells: _Cells, units: Sequence[int]) -> _Cells:
    """Each cell k split at ``units[k]``: first the halves where it is 0, then those where it is 1."""
    n = len(units)
    start = _Cells(*(np.concatenate([part, part]) for part in cells))
    for k, i in enumerate(units):
        start.states[k, i], start.states[n + k, i] = 0, 1
        for r in (k, n + k):  # observed now: the slopes of its factor are other ones
            start.unit[r, i, 0] = np.nan
            start.edge[r, network.indptr[i] : network.indptr[i + 1]] = np.nan
    return _solve(network, settings, start.states, start)


def _split_all(
    network: Network, settings: _Settings, cells: _Cells, units: Sequence[int]
) -> tuple[FloatArray, BoolArray, IndexArray]:
    """Bounds of the cells when each is split at all units, whether they are exact, and the number of parts."""
    n = len(cells.bound)
    if not units:
        return cells.bound, cells.exact, np.ones(n, np.int64)
    if n > 1 and 2 * n * network.n_edges > _BLOCK:  # one half after the other, to save memory
        halves = [_split_all(network, settings, _pick(cells, k), units) for k in np.array_split(np.arange(n), 2)]
        return tuple(np.concatenate(parts) for parts in zip(*halves, strict=True))  # type: ignore[return-value]
    children = _children(network, settings, cells, [units[0]] * n)
    bound, exact, count = _split_all(network, settings, children, units[1:])
    both = np.logaddexp(bound[:n], bound[n:])
    better = both < cells.bound
    return (
        np.where(better, both, cells.bound),
        np.where(better, exact[:n] & exact[n:], cells.exact),
        np.where(better, count[:n] + count[n:], 1),
    )


def _split_best(network: Network, settings: _Settings, root: _Cells, n_cells: int) -> tuple[float, bool, int, set[int]]:
    """Split cells one after the other, each time where it lowers the sum most; also the units that were split."""
    leaves, used = [_Leaf(root, *_best_split(network, settings, root))], set()
    while len(leaves) < n_cells:
        top = max(leaf.cell.bound[0] for leaf in leaves)
        gains = [np.exp(leaf.cell.bound[0] - top) - np.exp(leaf.split_bound - top) for leaf in leaves]
        best = int(np.argmax(gains))
        if not gains[best] > 0.0:
            break
        leaf = leaves.pop(best)
        used.add(leaf.unit)
        for k in range(2):
            child = _pick(leaf.children, [k])
            leaves.append(_Leaf(child, *_best_split(network, settings, child)))
    bounds = np.array([leaf.cell.bound[0] for leaf in leaves])
    total = min(float(np.logaddexp.reduce(bounds)), float(root.bound[0]))
    return total, all(leaf.cell.exact[0] for leaf in leaves), len(leaves), used


class _Leaf(NamedTuple):
    """A cell, the best way to split it, and the bound that this would give."""

    cell: _Cells
    unit: int
    children: _Cells
    split_bound: float


def _best_split(network: Network, settings: _Settings, cell: _Cells) -> tuple[int, _Cells, float]:
    """Try the units that promise most, and keep the best."""
    units = [int(i) for i in np.argsort(-cell.score[0], kind="stable")[:_CANDIDATES] if cell.score[0, i] > 0.0]
    if not units:
        return -1, cell, float(cell.bound[0])
    children = _children(network, settings, _pick(cell, [0] * len(units)), units)
    both = np.logaddexp(children.bound[: len(units)], children.bound[len(units) :])
    k = int(np.argmin(both))
    return units[k], _pick(children, [k, len(units) + k]), float(both[k])


def _check(exact_up_to: int, table_up_to: int, tol: float, max_steps: int) -> _Settings:
    for name, value, least, most in (
        ("exact_up_to", exact_up_to, 0, 25),
        ("table_up_to", table_up_to, 0, MAX_TABLE),
        ("max_steps", max_steps, 1, 2**31),
    ):
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or not least <= value <= most:
            raise ParameterError(f"{name} is {value!r}; it must be a whole number from {least} to {most}")
    if not tol >= 0.0:
        raise ParameterError(f"tol is {tol!r}; it must be zero or more nats")
    return _Settings((int(exact_up_to), int(table_up_to), int(max_steps)), float(tol))


def _check_condition(network: Network, condition: Any) -> tuple[list[int], int]:
    """The units to split at, or none for the best ones, and the number of cells."""
    if condition is None:
        return [], 1
    if isinstance(condition, int | np.integer) and not isinstance(condition, bool):
        units, k = [], int(condition)
    else:
        names = [condition] if isinstance(condition, str) else list(condition)
        for name in names:
            if isinstance(name, str) and name not in network.names:
                raise unknown_unit(name, network.names, "condition")
        units = list(dict.fromkeys(network.index(name) for name in names))
        k = len(units)
    if not 0 <= k <= MAX_CONDITIONED:
        raise ParameterError(f"conditioning on {k} units needs 2**{k} cells; at most {MAX_CONDITIONED} units, please")
    return units, 2**k
